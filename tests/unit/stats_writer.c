/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plays a daemon for the monitor's tests: writes a stats segment that changes as a gateway's would,
 * with a radio whose rate swings, until it is ended.
 *
 * usage: stats_writer FILE [FLOWS [running|draining|bypass|hung|fixed]]
 *
 * "fixed" moves exactly 1,000,000 bytes a second down and 250,000 up, for tests of arithmetic.
 */
#include <arpa/inet.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/attribution.h"
#include "base/clock.h"
#include "base/stats.h"

#define MAX_FLOWS 20000
#define STEP_MS   50
#define STEPS     (1000 / STEP_MS)

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

struct world {
	struct pep_stats *stats;
	struct pep_stats_worker *worker[2];
	struct pep_stats_flow *flows[MAX_FLOWS];
	unsigned int n_flows, born;
	unsigned int class_slots[3], cca_slots[2];
	bool fixed;
	uint64_t step;
	double radio; /* 0..1 of the radio's best rate */
};

static double noise(double width)
{
	return 1.0 + width * ((double)rand() / RAND_MAX - 0.5);
}

static struct in6_addr address(uint32_t host_order)
{
	struct in6_addr a = {0};

	host_order = htonl(host_order);
	a.s6_addr[10] = a.s6_addr[11] = 0xff;
	memcpy(&a.s6_addr[12], &host_order, 4);
	return a;
}

static struct pep_stats_worker *worker_of(struct world *w, const struct pep_stats_flow *f)
{
	return w->worker[f->worker & 1];
}

static struct pep_stats_flow *bear(struct world *w)
{
	unsigned int n = w->born++;
	struct pep_stats_flow *f = pep_stats_flow_acquire(w->worker[n & 1]);

	pep_stats_add(w->worker[n & 1], PEP_COUNTER_SYNS, 1);
	pep_stats_add(w->worker[n & 1], PEP_COUNTER_CONNECT_ATTEMPTS, 1);
	pep_stats_add(w->worker[n & 1], PEP_COUNTER_FLOWS_SPLIT, 1);
	pep_stats_observe(w->worker[n & 1], PEP_HISTOGRAM_CONNECT, 80000000);
	if (!f)
		return NULL;
	pep_stats_flow_begin(f);
	f->state = PEP_STATS_FLOW_OPEN;
	f->client = address(0x0a2d0000u + n % 251 + 2);
	f->server = address(0xc6336400u + n % 7 + 10);
	if (n % 9 == 4)
		inet_pton(AF_INET6, "2001:db8:45::17", &f->client);
	f->client_port = (uint16_t)(32768 + n % 28000);
	f->server_port = n % 5 ? 443 : 80;
	f->class_slot = (uint8_t)w->class_slots[n % 3];
	f->dscp = n % 4 ? 0 : 34;
	strcpy(f->leg[PEP_SEGMENT_WIRELESS].cca, n % 11 ? "pep_bbr_a" : "bbr");
	f->leg[PEP_SEGMENT_WIRELESS].fallback = n % 11 == 0;
	f->leg[PEP_SEGMENT_WIRELESS].cca_slot = (uint8_t)w->cca_slots[0];
	strcpy(f->leg[PEP_SEGMENT_WIRED].cca, "cubic");
	f->leg[PEP_SEGMENT_WIRED].cca_slot = (uint8_t)w->cca_slots[1];
	pep_stats_flow_end(f);
	return f;
}

static void leg_step(struct world *w, struct pep_stats_flow *f, enum pep_segment s, uint64_t sent,
		     uint64_t received)
{
	struct pep_stats_block *b = worker_of(w, f)->block;
	struct pep_stats_leg *leg = &f->leg[s];
	struct pep_stats_tcp *t = &leg->tcp;
	bool wireless = s == PEP_SEGMENT_WIRELESS;
	uint32_t base = wireless ? 9000 + f->client_port % 7 * 900 : 78000;
	double loss = wireless ? 0.012 * noise(1) : 0.0002;
	uint64_t again = (uint64_t)((double)sent * loss);

	t->valid = 1;
	t->state = 1;
	t->snd_mss = t->rcv_mss = 1448;
	t->min_rtt_us = base;
	t->srtt_us = (uint32_t)(base * (wireless ? 1.3 + 1.2 * (1 - w->radio) : 1.08) * noise(0.1));
	t->rttvar_us = t->srtt_us / 9;
	t->rto_us = 200000 + t->srtt_us;
	t->rcv_rtt_us = t->srtt_us;
	t->bytes_sent += sent + again;
	t->bytes_acked += sent;
	t->bytes_retrans += again;
	t->bytes_received += received;
	t->delivery_rate = sent * STEPS;
	t->pacing_rate = sent * STEPS * 5 / 4;
	t->cwnd = 10 + (uint32_t)(t->delivery_rate * t->srtt_us / 1000000 / 1448 * 2);
	t->ssthresh = 0x7fffffff;
	t->unacked = t->cwnd / 2;
	t->delivered += (uint32_t)(sent / 1448);
	t->snd_wnd = 3 << 20;
	t->busy_us += sent ? STEP_MS * 1000 : 0;
	t->notsent_bytes = wireless ? 60000 : 0;
	pep_stats_word_add(&b->sent_bytes[s][leg->cca_slot], sent + again);
	pep_stats_word_add(&b->retransmitted_bytes[s][leg->cca_slot], again);
	if (wireless && strncmp(leg->cca, "pep_", 4) == 0)
		leg->belief = (struct pep_stats_belief){.bandwidth = t->delivery_rate,
							.min_rtt_us = base,
							.pacing_gain_256 = 192,
							.cwnd_gain_256 = 512,
							.congestions = (uint32_t)(w->step / 200),
							.cuts = (uint32_t)(w->step / 300),
							.mode = 2,
							.valid = 1,
							.mode_name = "probe_bw"};
	if (w->step % STEPS == f->client_port % STEPS)
		pep_stats_observe(worker_of(w, f),
				  wireless ? PEP_HISTOGRAM_WIRELESS_RTT : PEP_HISTOGRAM_WIRED_RTT,
				  (uint64_t)t->srtt_us * 1000);
}

static void path_step(struct world *w, struct pep_stats_flow *f, enum pep_direction d,
		      uint64_t bytes, enum pep_limit limit)
{
	struct pep_stats_worker *worker = worker_of(w, f);
	struct pep_stats_path *p = &f->path[d];

	pep_stats_payload(worker, pep_direction_reading(d), d, f->class_slot, bytes);
	pep_stats_payload(worker, pep_direction_sending(d), d, f->class_slot, bytes);
	p->bytes += bytes;
	p->rate = bytes * STEPS;
	p->limit = (uint8_t)limit;
	p->target_bytes = 768 << 10;
	p->held_bytes = limit == PEP_LIMIT_WIRELESS && d == PEP_DIRECTION_DOWNLINK
				? (uint64_t)(700e3 * noise(0.3))
				: 0;
	pep_stats_word_add(&worker->block->limited_ns[pep_attribution_segment(limit, d)][d][limit],
			   STEP_MS * UINT64_C(1000000));
}

static void flow_step(struct world *w, struct pep_stats_flow *f, unsigned int i)
{
	static const enum pep_limit kinds[] = {
		PEP_LIMIT_WIRELESS, PEP_LIMIT_WIRED,       PEP_LIMIT_WIRELESS, PEP_LIMIT_RECEIVER,
		PEP_LIMIT_WIRELESS, PEP_LIMIT_APPLICATION, PEP_LIMIT_WIRED,
	};
	enum pep_limit limit = kinds[i % 7];
	double full = 3.2e6 / (1 + i % 13);
	uint64_t down, up;

	if (w->fixed) {
		down = 1000000 / STEPS;
		up = 250000 / STEPS;
	} else {
		double share = limit == PEP_LIMIT_WIRELESS      ? w->radio
			       : limit == PEP_LIMIT_WIRED       ? 0.55
			       : limit == PEP_LIMIT_APPLICATION ? 0.02
								: 0.2;

		if (limit == PEP_LIMIT_WIRELESS && w->radio > 0.85 && i % 3)
			limit = PEP_LIMIT_WIRED;
		if (i % 29 == 17 && w->step / 200 % 3 == 1)
			limit = PEP_LIMIT_PROXY;
		down = (uint64_t)(full * share * noise(0.2) / STEPS);
		up = (uint64_t)(full * 0.06 * noise(0.3) / STEPS);
	}
	pep_stats_count_queues(worker_of(w, f), f, -1);
	pep_stats_flow_begin(f);
	path_step(w, f, PEP_DIRECTION_DOWNLINK, down, limit);
	path_step(w, f, PEP_DIRECTION_UPLINK, up,
		  i % 4 ? PEP_LIMIT_APPLICATION : PEP_LIMIT_WIRELESS);
	leg_step(w, f, PEP_SEGMENT_WIRELESS, down, up);
	leg_step(w, f, PEP_SEGMENT_WIRED, up, down);
	f->sample_ns = pep_clock_ns(CLOCK_REALTIME);
	pep_stats_flow_end(f);
	pep_stats_count_queues(worker_of(w, f), f, 1);
}

static void gauges(struct world *w)
{
	uint64_t held[2] = {0}, flows[2] = {0};

	for (unsigned int i = 0; i < w->n_flows; i++) {
		if (!w->flows[i])
			continue;
		held[w->flows[i]->worker & 1] +=
			w->flows[i]->path[PEP_DIRECTION_DOWNLINK].held_bytes;
		flows[w->flows[i]->worker & 1]++;
	}
	for (int i = 0; i < 2; i++) {
		pep_stats_gauge_set(w->worker[i], PEP_GAUGE_FLOWS, flows[i]);
		pep_stats_gauge_set(w->worker[i], PEP_GAUGE_HELD_DOWNLINK_BYTES, held[i]);
		pep_stats_gauge_set(w->worker[i], PEP_GAUGE_PENDING, w->fixed ? 0 : w->step % 4);
		pep_stats_observe(w->worker[i], PEP_HISTOGRAM_LOOP_LAG,
				  (uint64_t)(150000 * noise(1)));
	}
}

static void step(struct world *w)
{
	double t = (double)w->step / STEPS;

	w->step++;
	/* Slow swings, and now and then somebody walks through the beam. */
	w->radio = 0.62 + 0.25 * sin(t / 9) + 0.1 * sin(t / 2.3);
	if (fmod(t, 47) > 38 && fmod(t, 47) < 43)
		w->radio *= 0.2;
	for (unsigned int i = 0; i < w->n_flows; i++) {
		if (!w->flows[i])
			w->flows[i] = bear(w);
		if (w->flows[i])
			flow_step(w, w->flows[i], i);
	}
	if (!w->fixed && w->step % 4 == 0) {
		unsigned int i = 7 + (unsigned int)rand() % (w->n_flows > 7 ? w->n_flows - 7 : 1);

		if (i < w->n_flows && w->flows[i]) {
			pep_stats_flow_release(worker_of(w, w->flows[i]), w->flows[i],
					       rand() % 5 ? PEP_CLOSE_FINISHED
							  : PEP_CLOSE_CLIENT_RESET);
			w->flows[i] = NULL;
		}
		if (rand() % 5 == 0)
			pep_stats_bypassed(w->worker[0], PEP_BYPASS_MPTCP);
		if (rand() % 40 == 0)
			pep_stats_connect_failed(w->worker[0], PEP_CONNECT_FAILURE_REFUSED);
	}
	gauges(w);
}

int main(int argc, char **argv)
{
	static struct world w;
	const char *mode = argc > 3 ? argv[3] : "running";
	struct pep_stats_params params = {2, MAX_FLOWS / 2, (gid_t)-1, "0.1.0"};
	struct timespec next;

	if (argc < 2) {
		fprintf(stderr, "usage: stats_writer FILE [FLOWS [MODE]]\n");
		return 2;
	}
	w.n_flows = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 12;
	if (w.n_flows < 1 || w.n_flows > MAX_FLOWS ||
	    pep_stats_create(argv[1], &params, &w.stats)) {
		perror(argv[1]);
		return 1;
	}
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	w.fixed = strcmp(mode, "fixed") == 0;
	w.worker[0] = pep_stats_worker(w.stats, 0);
	w.worker[1] = pep_stats_worker(w.stats, 1);
	w.class_slots[1] = w.fixed ? 0 : pep_stats_class(w.stats, "video");
	w.class_slots[2] = w.fixed ? 0 : pep_stats_class(w.stats, "bulk \"x\"");
	w.cca_slots[0] = pep_stats_cca(w.stats, "pep_bbr_a");
	w.cca_slots[1] = pep_stats_cca(w.stats, "cubic");
	pep_stats_set_config(w.stats, 1, 65536, 256 << 20);
	pep_stats_set_state(w.stats, strcmp(mode, "draining") == 0 ? PEP_STATS_STATE_DRAINING
				     : strcmp(mode, "bypass") == 0 ? PEP_STATS_STATE_BYPASS
								   : PEP_STATS_STATE_RUNNING);
	printf("ready\n");
	fflush(stdout);

	clock_gettime(CLOCK_MONOTONIC, &next);
	while (!ended) {
		step(&w);
		if (w.step % STEPS == 0 && strcmp(mode, "hung") != 0)
			pep_stats_heartbeat(w.stats);
		next.tv_nsec += STEP_MS * 1000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	pep_stats_destroy(w.stats);
	return 0;
}
