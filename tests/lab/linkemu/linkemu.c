/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkemu: emulates links on NFQUEUE. One process serves any number of queues, each of them one
 * direction of one link. Lengths are those of IP packets (no Ethernet header).
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "link.h"
#include "nfq.h"
#include "report.h"
#include "spec.h"

#define MAX_LINKS    16
#define COMMAND_SIZE 256
#define SHORTEST_NS  50000 /* packets due closer together leave together */
#define READ_ROUNDS  8     /* batches of one queue before the others and the clock get a turn */

struct emulator {
	struct pep_link_conf confs[MAX_LINKS];
	struct pep_link *links[MAX_LINKS];
	struct pep_nfq *queues[MAX_LINKS];
	unsigned int count;
	const char *stats_path;
	int epoll_fd, signal_fd;
	bool commands, stop;
	char line[COMMAND_SIZE];
	size_t line_length;
	int stamp_fd;     /* while open, the kernel stamps packets with their arrival */
	uint64_t turn_ns; /* when this turn of the loop began to read */
	int err;          /* of the callback below pep_nfq_read() */
};

/* -- statistics -------------------------------------------------------------------------------- */

static char *report(const struct emulator *emu)
{
	return pep_report_json(emu->links, emu->queues, emu->count, pep_clock_mono_ns());
}

/* Written beside and renamed, so that a reader sees a whole file or none. */
static int write_stats(const struct emulator *emu)
{
	char path[4096];
	char *text;
	FILE *out;
	int err = 0;

	if (!emu->stats_path)
		return 0;
	if (snprintf(path, sizeof(path), "%s.new", emu->stats_path) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	text = report(emu);
	out = text ? fopen(path, "we") : NULL;
	if (!out || fprintf(out, "%s\n", text) < 0 || fflush(out))
		err = -errno;
	if (out && fclose(out) && !err)
		err = -errno;
	if (!err && rename(path, emu->stats_path))
		err = -errno;
	free(text);
	if (err)
		fprintf(stderr, "linkemu: %s: cannot write: %s\n", emu->stats_path, strerror(-err));
	return err;
}

/* -- commands on standard input ---------------------------------------------------------------- */

static bool change_links(struct emulator *emu, const char *name,
			 const struct pep_link_change *change)
{
	bool found = false;
	unsigned int i;

	for (i = 0; i < emu->count; i++) {
		if (strcmp(name, "all") != 0 && strcmp(name, emu->confs[i].name) != 0)
			continue;
		pep_link_change(emu->links[i], change, pep_clock_mono_ns());
		found = true;
	}
	return found;
}

static void command(struct emulator *emu, char *line)
{
	struct pep_link_change change;
	char *rest = line;
	const char *word = strsep(&rest, " ");
	uint64_t now;
	unsigned int i;
	char *text;

	if (!strcmp(line, "stats")) {
		text = report(emu);
		printf("%s\n", text ? text : "error out of memory");
		free(text);
	} else if (!strcmp(line, "restart")) {
		now = pep_clock_mono_ns();
		for (i = 0; i < emu->count; i++)
			pep_link_restart(emu->links[i], now);
		printf("ok %.6f\n", (double)now / 1e9);
	} else if (!rest || pep_spec_change(rest, &change)) {
		printf("error expected stats, restart, or NAME CHANGE\n");
	} else if (!change_links(emu, word, &change)) {
		printf("error no link \"%s\"\n", word);
	} else {
		printf("ok\n");
	}
	fflush(stdout);
}

/* The end of the input means that who started us is gone. */
static void read_commands(struct emulator *emu)
{
	ssize_t n = read(STDIN_FILENO, emu->line + emu->line_length,
			 sizeof(emu->line) - 1 - emu->line_length);
	char *newline;

	if (n <= 0) {
		emu->stop = n == 0 || (errno != EAGAIN && errno != EINTR);
		return;
	}
	emu->line_length += (size_t)n;
	while ((newline = memchr(emu->line, '\n', emu->line_length))) {
		size_t used = (size_t)(newline + 1 - emu->line);

		*newline = '\0';
		command(emu, emu->line);
		emu->line_length -= used;
		memmove(emu->line, emu->line + used, emu->line_length);
	}
	if (emu->line_length == sizeof(emu->line) - 1) {
		fprintf(stderr, "linkemu: a command is longer than %zu bytes\n",
			sizeof(emu->line) - 1);
		emu->stop = true;
	}
}

static void read_signal(struct emulator *emu)
{
	struct signalfd_siginfo info;

	if (read(emu->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR1)
		(void)write_stats(emu);
	else
		emu->stop = true;
}

/* -- packets ----------------------------------------------------------------------------------- */

struct arrival {
	struct emulator *emu;
	struct pep_link *link;
};

/*
 * A packet came when the kernel says, not when we got to it: on a busy machine we may be late by
 * many milliseconds, and what came one by one in that time must not meet the buffer all at once.
 */
static void on_packet(void *arg, uint32_t id, uint32_t bytes, uint64_t arrival_ns)
{
	struct arrival *a = arg;
	int err = pep_link_input(a->link, id, bytes, arrival_ns);

	if (err)
		a->emu->err = err;
}

static int read_queue(struct emulator *emu, unsigned int i)
{
	struct arrival a = {emu, emu->links[i]};
	int round, n = 0;

	for (round = 0; round < READ_ROUNDS; round++) {
		n = pep_nfq_read(emu->queues[i], on_packet, &a);
		if (n <= 0)
			break;
	}
	return n < 0 ? n : emu->err;
}

static int release(struct emulator *emu)
{
	unsigned int i;
	uint32_t id;
	bool drop;
	int err = 0;

	for (i = 0; i < emu->count && !err; i++) {
		uint64_t now = pep_clock_mono_ns();

		while (!err && pep_link_output(emu->links[i], emu->turn_ns, now, &id, &drop))
			err = pep_nfq_verdict(emu->queues[i], id, drop);
		if (!err)
			err = pep_nfq_flush(emu->queues[i]);
	}
	return err;
}

static int wait_events(struct emulator *emu, struct epoll_event *events)
{
	uint64_t next = PEP_LINK_NEVER, now, sleep_ns;
	struct timespec timeout;
	unsigned int i;

	for (i = 0; i < emu->count; i++) {
		uint64_t at = pep_link_next(emu->links[i]);

		if (at < next)
			next = at;
	}
	if (next == PEP_LINK_NEVER)
		return epoll_pwait2(emu->epoll_fd, events, MAX_LINKS + 2, NULL, NULL);
	now = pep_clock_mono_ns();
	sleep_ns = next > now ? next - now : 0;
	if (sleep_ns && sleep_ns < SHORTEST_NS)
		sleep_ns = SHORTEST_NS;
	timeout.tv_sec = (time_t)(sleep_ns / 1000000000u);
	timeout.tv_nsec = (long)(sleep_ns % 1000000000u);
	return epoll_pwait2(emu->epoll_fd, events, MAX_LINKS + 2, &timeout, NULL);
}

static int run(struct emulator *emu)
{
	struct epoll_event events[MAX_LINKS + 2];
	int n, i, err = 0;

	while (!emu->stop && !err) {
		n = wait_events(emu, events);
		if (n < 0 && errno != EINTR)
			return -errno;
		emu->turn_ns = pep_clock_mono_ns();
		for (i = 0; i < n && !err; i++) {
			uint32_t source = events[i].data.u32;

			if (source < emu->count)
				err = read_queue(emu, source);
			else if (source == MAX_LINKS)
				read_signal(emu);
			else
				read_commands(emu);
		}
		if (!err)
			err = release(emu);
	}
	return err;
}

/* -- set-up ------------------------------------------------------------------------------------ */

static int watch(struct emulator *emu, int fd, uint32_t source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};

	return epoll_ctl(emu->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_signals(struct emulator *emu)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	emu->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return emu->signal_fd < 0 ? -errno : watch(emu, emu->signal_fd, MAX_LINKS);
}

/* The kernel stamps packets as long as any socket asks for it; without, their age is not known. */
static void open_stamps(struct emulator *emu)
{
	int on = 1;

	emu->stamp_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (emu->stamp_fd >= 0)
		(void)setsockopt(emu->stamp_fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
}

static int set_up(struct emulator *emu)
{
	const struct sched_param priority = {.sched_priority = 1};
	unsigned int i;
	int err;

	/*
	 * Timers as exact as they get, and ahead of the programs whose packets we hold: a late
	 * emulator is a different link. Without the right to it we run as we are; it shows in the
	 * lateness.
	 */
	(void)prctl(PR_SET_TIMERSLACK, 1);
	if (sched_setscheduler(0, SCHED_RR, &priority))
		(void)setpriority(PRIO_PROCESS, 0, -20);
	signal(SIGPIPE, SIG_IGN);

	emu->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = emu->epoll_fd < 0 ? -errno : open_signals(emu);
	open_stamps(emu);
	for (i = 0; i < emu->count && !err; i++) {
		err = pep_link_new(&emu->confs[i], pep_clock_mono_ns(), &emu->links[i]);
		if (err)
			break;
		err = pep_nfq_open(emu->confs[i].queue, &emu->queues[i]);
		if (err)
			fprintf(stderr, "linkemu: NFQUEUE %u: %s%s\n", emu->confs[i].queue,
				strerror(-err),
				err == -EPERM ? " (needs CAP_NET_ADMIN, or the queue is taken)"
					      : "");
		else
			err = watch(emu, pep_nfq_fd(emu->queues[i]), i);
	}
	if (!err && emu->commands)
		err = watch(emu, STDIN_FILENO, MAX_LINKS + 1);
	return err;
}

static void tear_down(struct emulator *emu)
{
	unsigned int i;

	for (i = 0; i < emu->count; i++) {
		pep_nfq_close(emu->queues[i]);
		if (emu->links[i])
			pep_link_free(emu->links[i]);
		else
			pep_trace_fini(&emu->confs[i].trace);
	}
}

static void usage(FILE *out)
{
	fprintf(out,
		"Usage: linkemu [OPTION]... --link KEY=VALUE[,KEY=VALUE]... [--link ...]...\n"
		"Emulates links on NFQUEUE; each --link is one queue, one direction of a link.\n\n"
		"  -l, --link SPEC    see below\n"
		"  -s, --stats FILE   write statistics as JSON at the end and on SIGUSR1\n"
		"  -c, --commands     take commands on standard input, one a line, and end with "
		"it:\n"
		"                     stats | restart | NAME|all CHANGE\n"
		"  -h, --help         this text\n\n"
		"Prints \"ready\" once all queues are bound. Lengths are those of IP packets.\n\n"
		"Keys of --link:\n");
	pep_spec_help(out);
}

static int parse_options(struct emulator *emu, int argc, char **argv)
{
	static const struct option options[] = {
		{"link", required_argument, NULL, 'l'},
		{"stats", required_argument, NULL, 's'},
		{"commands", no_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "l:s:ch", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			if (emu->count == MAX_LINKS) {
				fprintf(stderr, "linkemu: --link: expected at most %d\n",
					MAX_LINKS);
				return -EINVAL;
			}
			if (pep_spec_link(optarg, stderr, &emu->confs[emu->count]))
				return -EINVAL;
			emu->count++;
			break;
		case 's':
			emu->stats_path = optarg;
			break;
		case 'c':
			emu->commands = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			return -EINVAL;
		}
	}
	if (optind < argc || !emu->count) {
		fprintf(stderr,
			"linkemu: expected one --link or more and nothing else; see --help\n");
		return -EINVAL;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct emulator emu = {.epoll_fd = -1, .signal_fd = -1, .stamp_fd = -1};
	int err;

	if (parse_options(&emu, argc, argv)) {
		tear_down(&emu);
		return 2;
	}
	err = set_up(&emu);
	if (!err) {
		printf("ready\n");
		fflush(stdout);
		err = run(&emu);
		if (err)
			fprintf(stderr, "linkemu: %s\n", strerror(-err));
		if (write_stats(&emu) && !err)
			err = -EIO;
	}
	tear_down(&emu);
	return err ? 1 : 0;
}
