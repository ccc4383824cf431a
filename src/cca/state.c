/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State is read while its connection changes it: single values are whole, sums of them need not be.
 */
#include "cca/state.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cca/pin.h"

#define RECORDS_AT_ONCE 256

struct pep_cca_state {
	int map_fd;
};

static const char *const bbr_modes[PEP_BBR_MODE_COUNT_] = {
	[PEP_BBR_STARTUP] = "startup",
	[PEP_BBR_DRAIN] = "drain",
	[PEP_BBR_PROBE_BW] = "probe-bw",
	[PEP_BBR_PROBE_RTT] = "probe-rtt",
};

static uint32_t known(uint32_t rtt_us)
{
	return rtt_us == PEP_RTT_NONE ? 0 : rtt_us;
}

static void view_bbr(const struct pep_cc_flow *flow, struct pep_cca_view *view)
{
	const struct pep_bbr *b = &flow->bbr;

	view->mode = b->mode < PEP_BBR_MODE_COUNT_ ? bbr_modes[b->mode] : "?";
	view->bandwidth = pep_bw_bytes(pep_bbr_bw(b), flow->mss_bytes, PEP_GAIN_UNIT, 0);
	view->min_rtt_us = known(b->min_rtt_us);
	view->jitter_us = known(b->sparse.jitter_us);
	view->standing_rtt_us = known(pep_standing_rtt_get(&b->rtt));
	view->pacing_gain = b->applied_gain;
	view->cwnd_gain = b->cwnd_gain;
	view->policed = b->lt_use_bw;
	view->congested = b->cut_round;
	view->congestive_losses = b->congestive_losses;
	view->radio_losses = b->radio_losses;
	view->cuts = b->cuts;
	view->probe_rtts = b->probe_rtts;
}

static void view_bwe(const struct pep_cc_flow *flow, struct pep_cca_view *view)
{
	const struct pep_bwe *w = &flow->bwe;

	view->mode = w->in_start ? "start" : "avoid";
	view->bandwidth = pep_bw_bytes(flow->estimate, flow->mss_bytes, PEP_GAIN_UNIT, 0);
	view->min_rtt_us = known(w->min_rtt_us);
	view->standing_rtt_us = known(pep_standing_rtt_get(&w->rtt));
	view->congested = w->episode_cut;
	view->congestive_losses = w->congestive_losses;
	view->radio_losses = w->radio_losses;
	view->cuts = w->cuts;
}

int pep_cca_view_from(const struct pep_cc_flow *flow, struct pep_cca_view *ret)
{
	struct pep_cca_view view = {0};

	if (flow->layout != PEP_CCA_LAYOUT || flow->kind >= PEP_CCA_KIND_COUNT_)
		return -EPROTO;
	view.kind = (enum pep_cca_kind)flow->kind;
	if (view.kind == PEP_CCA_BWE)
		view_bwe(flow, &view);
	else
		view_bbr(flow, &view);
	*ret = view;
	return 0;
}

static int path_in(char path[PATH_MAX], const char *dir, const char *name)
{
	int length = snprintf(path, PATH_MAX, "%s/%s", dir ? dir : PEP_CCA_PIN_DIR, name);

	return length > 0 && length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int pep_cca_state_open(const char *dir, struct pep_cca_state **ret)
{
	DECLARE_LIBBPF_OPTS(bpf_obj_get_opts, options, .file_flags = BPF_F_RDONLY);
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	struct pep_cca_state *state;
	char path[PATH_MAX];
	int err = path_in(path, dir, PEP_CCA_STATE_MAP);

	if (err)
		return err;
	state = calloc(1, sizeof(*state));
	if (!state)
		return -ENOMEM;
	state->map_fd = bpf_obj_get_opts(path, &options);
	if (state->map_fd < 0) {
		err = -errno;
		goto fail;
	}
	err = -EPROTO;
	if (bpf_obj_get_info_by_fd(state->map_fd, &info, &size) < 0 ||
	    info.type != BPF_MAP_TYPE_SK_STORAGE || info.value_size != sizeof(struct pep_cc_flow))
		goto fail;
	*ret = state;
	return 0;

fail:
	pep_cca_state_free(state);
	return err;
}

void pep_cca_state_free(struct pep_cca_state *state)
{
	if (!state)
		return;
	if (state->map_fd >= 0)
		close(state->map_fd);
	free(state);
}

int pep_cca_state_read(const struct pep_cca_state *state, int fd, struct pep_cca_view *ret)
{
	struct pep_cc_flow flow;

	if (bpf_map_lookup_elem(state->map_fd, &fd, &flow) < 0)
		return -errno;
	return pep_cca_view_from(&flow, ret);
}

/* Reads until @records is full or the file ends; whole records are what the kernel writes. */
static ssize_t read_records(int fd, struct pep_cca_record *records, size_t size)
{
	size_t got = 0;
	ssize_t n;

	while (got < size) {
		n = read(fd, (char *)records + got, size - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)(got / sizeof(*records));
}

int pep_cca_state_list(const char *dir,
		       void (*fn)(uint64_t cookie, const struct pep_cca_view *view, void *user),
		       void *user)
{
	struct pep_cca_record *records;
	struct pep_cca_view view;
	char path[PATH_MAX];
	int fd, count = 0, err = path_in(path, dir, PEP_CCA_FLOWS_FILE);
	ssize_t n;

	if (err)
		return err;
	records = calloc(RECORDS_AT_ONCE, sizeof(*records));
	if (!records)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		goto out;
	}
	do {
		n = read_records(fd, records, RECORDS_AT_ONCE * sizeof(*records));
		if (n < 0)
			err = (int)n;
		for (ssize_t i = 0; i < n; i++) {
			if (pep_cca_view_from(&records[i].flow, &view) == 0) {
				fn(records[i].cookie, &view, user);
				count++;
			}
		}
	} while (n == RECORDS_AT_ONCE);
	close(fd);
out:
	free(records);
	return err ? err : count;
}
