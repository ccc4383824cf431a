/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A library to preload (LD_PRELOAD) that makes chosen calls of a program fail, for tests only.
 *
 * $EDGEPEP_FAULTS names a file of struct fault_file, which the test maps as well: it writes rules
 * while the program runs and reads how often each of them has struck. A rule is complete when
 * its `call` is not empty; the test fills that in last.
 *
 * An EAGAIN that is made up on a socket is followed by a new event for it, as the kernel would
 * give one when the socket is ready again; without it an edge-triggered program would wait for
 * ever.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAGIC     0x50454631u
#define MAX_RULES 32
#define MAX_FDS   65536
#define ANY       (-1)

enum action {
	ACTION_ERRNO = 1, /* fails with errno `value` */
	ACTION_VALUE = 2, /* the length, or fcntl's argument, becomes `value` */
};

struct fault_rule {
	char call[16];
	int32_t arg; /* which calls: see the functions below; -1: all */
	uint32_t action;
	int32_t value;
	uint32_t share; /* of 65536 calls */
	uint64_t limit; /* strikes so often at most; 0: no bound */
	uint64_t after; /* lets so many calls pass first */
	_Atomic uint64_t calls, strikes;
};

struct fault_file {
	uint32_t magic, size; /* of this structure */
	struct fault_rule rules[MAX_RULES];
};

struct registration {
	_Atomic int epoll; /* 0: none (descriptor 0 is no epoll) */
	struct epoll_event event;
};

static struct fault_file *faults;
static struct registration registrations[MAX_FDS];

__attribute__((constructor)) static void load(void)
{
	const char *path = getenv("EDGEPEP_FAULTS");
	struct fault_file *file;
	int fd;

	if (!path)
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		abort();
	file = (struct fault_file *)syscall(SYS_mmap, NULL, sizeof(*file), PROT_READ | PROT_WRITE,
					    MAP_SHARED, fd, 0);
	close(fd);
	if (file == MAP_FAILED || file->magic != MAGIC || file->size != sizeof(*file))
		abort();
	faults = file;
}

/* The same sequence in every run: which calls are struck depends on their number alone. */
static bool is_drawn(uint64_t number, uint32_t share)
{
	uint64_t x = number * 0x9e3779b97f4a7c15u;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return (x & 0xffff) < share;
}

/* The rule that strikes this call, or NULL. */
static const struct fault_rule *strike(const char *call, int arg)
{
	struct fault_file *file = faults;

	for (int i = 0; file && i < MAX_RULES; i++) {
		struct fault_rule *rule = &file->rules[i];
		uint64_t number;

		if (rule->call[0] != call[0] || strcmp(rule->call, call) != 0 ||
		    (rule->arg != ANY && rule->arg != arg))
			continue;
		number = atomic_fetch_add(&rule->calls, 1);
		if (number < rule->after || !is_drawn(number, rule->share) ||
		    (rule->limit && rule->strikes >= rule->limit))
			continue;
		atomic_fetch_add(&rule->strikes, 1);
		return rule;
	}
	return NULL;
}

/* True when the call shall fail; errno is set then. */
static bool fails(const char *call, int arg)
{
	const struct fault_rule *rule = strike(call, arg);

	if (!rule || rule->action != ACTION_ERRNO)
		return false;
	errno = rule->value;
	return true;
}

static void make_ready_again(int fd)
{
	int saved = errno;

	if (fd >= 0 && fd < MAX_FDS && registrations[fd].epoll) {
		struct epoll_event event = registrations[fd].event;

		(void)syscall(SYS_epoll_ctl, registrations[fd].epoll, EPOLL_CTL_MOD, fd, &event);
	}
	errno = saved;
}

/* For calls that move bytes: -1 when they shall fail, else the length to use. */
static ssize_t moved(const char *call, int arg, size_t length, int fd, int other_fd)
{
	const struct fault_rule *rule = strike(call, arg);

	if (!rule)
		return (ssize_t)length;
	if (rule->action == ACTION_VALUE)
		return length < (size_t)rule->value ? (ssize_t)length : rule->value;
	errno = rule->value;
	if (errno == EAGAIN) {
		make_ready_again(fd);
		make_ready_again(other_fd);
	}
	return -1;
}

static int domain_of(int fd)
{
	int domain = -1, saved = errno;
	socklen_t size = sizeof(domain);

	(void)syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
	errno = saved;
	return domain;
}

static bool is_socket(int fd)
{
	return domain_of(fd) >= 0;
}

/* -- descriptors. Rules name the domain (AF_INET...), or nothing ------------------------------- */

int socket(int domain, int type, int protocol)
{
	return fails("socket", domain) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int accept4(int fd, struct sockaddr *addr, socklen_t *size, int flags)
{
	return fails("accept4", domain_of(fd)) ? -1
					       : (int)syscall(SYS_accept4, fd, addr, size, flags);
}

int bind(int fd, const struct sockaddr *addr, socklen_t size)
{
	return fails("bind", addr->sa_family) ? -1 : (int)syscall(SYS_bind, fd, addr, size);
}

int connect(int fd, const struct sockaddr *addr, socklen_t size)
{
	return fails("connect", addr->sa_family) ? -1 : (int)syscall(SYS_connect, fd, addr, size);
}

int shutdown(int fd, int how)
{
	return fails("shutdown", domain_of(fd)) ? -1 : (int)syscall(SYS_shutdown, fd, how);
}

int pipe2(int fds[2], int flags)
{
	return fails("pipe2", ANY) ? -1 : (int)syscall(SYS_pipe2, fds, flags);
}

/* -- settings. Rules name level << 16 | option, fcntl's command, or epoll's operation -----------
 */

int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	if (fails("setsockopt", level << 16 | option))
		return -1;
	return (int)syscall(SYS_setsockopt, fd, level, option, value, size);
}

int getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
	if (fails("getsockopt", level << 16 | option))
		return -1;
	return (int)syscall(SYS_getsockopt, fd, level, option, value, size);
}

int fcntl(int fd, int command, ...)
{
	const struct fault_rule *rule = strike("fcntl", command);
	va_list args;
	long value;

	va_start(args, command);
	value = va_arg(args, long);
	va_end(args);
	if (rule && rule->action == ACTION_ERRNO) {
		errno = rule->value;
		return -1;
	}
	if (rule)
		value = rule->value;
	return (int)syscall(SYS_fcntl, fd, command, value);
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	int result;

	if (fails("epoll_ctl", operation))
		return -1;
	result = (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
	if (result == 0 && fd >= 0 && fd < MAX_FDS) {
		if (operation != EPOLL_CTL_DEL)
			registrations[fd].event = *event;
		registrations[fd].epoll = operation == EPOLL_CTL_DEL ? 0 : epoll;
	}
	return result;
}

/* -- bytes. Rules name the domain; for splice 0 reads from a socket and 1 writes to one ---------
 */

ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t length, unsigned int flags)
{
	ssize_t n = moved("splice", is_socket(out), length, in, out);

	return n < 0 ? -1 : syscall(SYS_splice, in, in_at, out, out_at, n, flags);
}

ssize_t send(int fd, const void *data, size_t length, int flags)
{
	ssize_t n = moved("send", domain_of(fd), length, fd, -1);

	return n < 0 ? -1 : syscall(SYS_sendto, fd, data, n, flags, NULL, 0);
}

ssize_t recv(int fd, void *data, size_t length, int flags)
{
	ssize_t n = moved("recv", domain_of(fd), length, fd, -1);

	return n < 0 ? -1 : syscall(SYS_recvfrom, fd, data, n, flags, NULL, NULL);
}

ssize_t sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *addr,
	       socklen_t size)
{
	if (fails("sendto", domain_of(fd)))
		return -1;
	return syscall(SYS_sendto, fd, data, length, flags, addr, size);
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags,
	     struct timespec *timeout)
{
	if (fails("recvmmsg", domain_of(fd)))
		return -1;
	return (int)syscall(SYS_recvmmsg, fd, messages, count, flags, timeout);
}

/* -- memory. The C library's own names for its functions spare us a look-up that allocates -------
 */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
	return fails("malloc", ANY) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails("malloc", ANY) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return fails("malloc", ANY) ? NULL : __libc_realloc(old, size);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	if (fails("mmap", fd))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}
