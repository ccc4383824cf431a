/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control socket, both ends: the server runs in a thread, as it does in the daemon. */
#include "base/control_client.h"
#include "proxy/control.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <poll.h>
#include <signal.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit/unit.h"

#define PATIENCE_MS 3000

/* What the tests share. */
static struct {
	struct event_base *base;
	struct pep_control *control;
	pthread_t thread;
	char dir[64], path[96];
	struct pep_control_request *waiting; /* owned by the server's thread */
	_Atomic int late_answers;
} world;

/* ---- commands ------------------------------------------------------------------------------- */

static void run_echo(struct pep_control_request *request, int argc, char **argv, void *context)
{
	json_t *words = json_array();

	assert_ptr_equal(context, &world);
	for (int i = 0; i < argc; i++)
		json_array_append_new(words, json_string(argv[i]));
	pep_control_ok(request, json_pack("{s:o}", "words", words));
}

static void run_plain(struct pep_control_request *request, int argc, char **argv, void *context)
{
	(void)argc;
	(void)argv;
	(void)context;
	pep_control_ok(request, NULL);
}

static void run_refuse(struct pep_control_request *request, int argc, char **argv, void *context)
{
	(void)argc;
	(void)argv;
	(void)context;
	pep_control_fail(request, "no: \xff\xfe '%s'", "\"quoted\"");
}

static void answer_late(evutil_socket_t fd, short what, void *request)
{
	(void)fd;
	(void)what;
	pep_control_ok(request, json_pack("{s:b}", "late", 1));
	world.late_answers++;
}

static void run_later(struct pep_control_request *request, int argc, char **argv, void *context)
{
	const struct timeval soon = {.tv_usec = 100000};

	(void)argc;
	(void)argv;
	(void)context;
	assert_int_equal(event_base_once(world.base, -1, EV_TIMEOUT, answer_late, request, &soon),
			 0);
}

static void run_never(struct pep_control_request *request, int argc, char **argv, void *context)
{
	(void)argc;
	(void)argv;
	(void)context;
	world.waiting = request;
}

static const struct pep_control_command commands[] = {
	{"echo", "[WORD...]", 0, 3, run_echo},
	{"echo twice", "WORD", 1, 1, run_echo},
	{"plain", "", 0, 0, run_plain},
	{"refuse", "", 0, 0, run_refuse},
	{"later", "", 0, 0, run_later},
	{"never", "", 0, 0, run_never},
	{.name = NULL},
};

/* ---- set-up ---------------------------------------------------------------------------------- */

static void *loop(void *data)
{
	(void)data;
	event_base_loop(world.base, EVLOOP_NO_EXIT_ON_EMPTY);
	return NULL;
}

static void break_loop(evutil_socket_t fd, short what, void *data)
{
	(void)fd;
	(void)what;
	(void)data;
	event_base_loopbreak(world.base);
}

/* By an event: a bare loopbreak is forgotten by a loop that is only about to begin. */
static void stop_loop(void)
{
	assert_int_equal(event_base_once(world.base, -1, EV_TIMEOUT, break_loop, NULL, NULL), 0);
	pthread_join(world.thread, NULL);
}

static int open_server(struct pep_control **ret)
{
	const struct pep_control_params params = {world.path, (gid_t)-1, commands, &world};

	return pep_control_new(world.base, &params, ret);
}

static int set_up(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	snprintf(world.dir, sizeof(world.dir), "/tmp/pep-test-control-XXXXXX");
	assert_non_null(mkdtemp(world.dir));
	assert_int_equal(pep_control_path(world.dir, world.path, sizeof(world.path)), 0);
	signal(SIGPIPE, SIG_IGN); /* as the daemon does */
	evthread_use_pthreads();
	world.base = event_base_new();
	assert_int_equal(open_server(&world.control), 0);
	assert_int_equal(pthread_create(&world.thread, NULL, loop, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	stop_loop();
	pep_control_free(world.control);
	if (world.waiting) /* an answer after the end goes nowhere and frees the request */
		pep_control_ok(world.waiting, NULL);
	event_base_free(world.base);
	assert_int_equal(rmdir(world.dir), 0); /* the socket file is gone */
	return 0;
}

static int connect_raw(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, world.path, strlen(world.path) + 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Reads to the end of the stream or the @lines-th newline. */
static void read_raw(int fd, int lines, char *text, size_t size)
{
	size_t used = 0;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&p, 1, PATIENCE_MS) != 1)
			fail_msg("nothing within %d ms after \"%.*s\"", PATIENCE_MS, (int)used,
				 text);
		n = read(fd, text + used, size - used - 1);
		if (n <= 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			lines -= text[used + (size_t)i] == '\n';
		used += (size_t)n;
		if (lines <= 0)
			break;
	}
	text[used] = '\0';
}

static void send_raw(int fd, const void *data, size_t size)
{
	assert_int_equal(send(fd, data, size, MSG_NOSIGNAL), size);
}

static json_t *ask(const char *request)
{
	json_t *reply = NULL;

	assert_int_equal(pep_control_call(world.path, request, PATIENCE_MS, &reply), 0);
	return reply;
}

static void assert_error(const char *request, const char *part)
{
	json_t *reply = ask(request);

	assert_true(json_is_false(json_object_get(reply, "ok")));
	assert_contains(json_string_value(json_object_get(reply, "error")), part);
	json_decref(reply);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_answers(void **state)
{
	json_t *reply = ask("echo  a\tb ");
	struct stat st;

	(void)state;
	assert_true(json_is_true(json_object_get(reply, "ok")));
	assert_int_equal(json_array_size(json_object_get(reply, "words")), 2);
	json_decref(reply);
	reply = ask("plain");
	assert_int_equal(json_object_size(reply), 1);
	json_decref(reply);
	/* the longer name wins: "twice" is no argument here */
	reply = ask("echo twice x");
	assert_int_equal(json_array_size(json_object_get(reply, "words")), 1);
	json_decref(reply);
	assert_int_equal(stat(world.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
}

static void test_refuses(void **state)
{
	(void)state;
	assert_error("nonsense", "unknown request 'nonsense'");
	assert_error("echo twice", "usage: echo twice WORD");
	assert_error("echo 1 2 3 4", "usage: echo [WORD...]");
	assert_error("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", "too many words");
	assert_error("echo \x01", "not printable ASCII");
	assert_error("echo \xff", "not printable ASCII");
	assert_error("refuse", "no: ?? '\"quoted\"'");
}

static void test_answers_later(void **state)
{
	char text[256];
	json_t *reply = ask("later");
	int fd;

	(void)state;
	assert_true(json_is_true(json_object_get(reply, "late")));
	json_decref(reply);

	/* what follows waits for its turn, and half a close does not lose the answer */
	fd = connect_raw();
	send_raw(fd, "later\necho x\n", 13);
	shutdown(fd, SHUT_WR);
	read_raw(fd, 3, text, sizeof(text));
	assert_string_equal(text, "{\"ok\":true,\"late\":true}\n{\"ok\":true,\"words\":[\"x\"]}\n");
	close(fd);
}

static void test_client_leaves(void **state)
{
	int fd = connect_raw();

	(void)state;
	world.late_answers = 0;
	send_raw(fd, "later\n", 6);
	close(fd);
	for (int i = 0; i < 100 && world.late_answers == 0; i++)
		usleep(20000);
	assert_int_equal(world.late_answers, 1);
	json_decref(ask("plain"));
}

static void test_left_open(void **state)
{
	json_t *reply = NULL;

	(void)state;
	assert_int_equal(pep_control_call(world.path, "never", 100, &reply), -ETIMEDOUT);
	assert_null(reply);
}

static void test_garbage(void **state)
{
	static const struct {
		const char *data;
		size_t size;
	} cases[] = {
		{"a\0b\n", 4},
		{"\x7f\n", 2},
		{"GET / HTTP/1.1\r\nHost: \x80\r\n\r\n", 27},
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		int fd = connect_raw();

		send_raw(fd, cases[i].data, cases[i].size);
		read_raw(fd, 1000, text, sizeof(text)); /* to the end: it is closed */
		assert_contains(text, "not printable ASCII");
		close(fd);
	}
}

static void test_too_long(void **state)
{
	char line[8192], text[256];
	int fd = connect_raw();

	(void)state;
	memset(line, 'x', sizeof(line));
	send_raw(fd, line, 4095);
	send_raw(fd, "\n", 1);
	read_raw(fd, 1, text, sizeof(text));
	assert_contains(text, "unknown request");
	close(fd);

	fd = connect_raw();
	send_raw(fd, line, sizeof(line));
	read_raw(fd, 1, text, sizeof(text));
	assert_contains(text, "request too long");
	close(fd);
}

static void test_trickle(void **state)
{
	struct timeval begin, end;
	char text[256];
	int fd = connect_raw();

	(void)state;
	gettimeofday(&begin, NULL);
	for (int i = 0; i < 200; i++) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, 100) == 1)
			break;
		send_raw(fd, "x", 1);
	}
	read_raw(fd, 1000, text, sizeof(text));
	gettimeofday(&end, NULL);
	assert_contains(text, "no whole request in time");
	assert_in_range(end.tv_sec - begin.tv_sec, PEP_CONTROL_IDLE_SECONDS - 1,
			PEP_CONTROL_IDLE_SECONDS + 2);
	close(fd);
}

static void test_too_many_clients(void **state)
{
	int fds[PEP_CONTROL_MAX_CLIENTS];
	char text[256];
	int fd;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(fds); i++) {
		fds[i] = connect_raw();
		send_raw(fds[i], "plain\n", 6);
		read_raw(fds[i], 1, text, sizeof(text));
		assert_string_equal(text, "{\"ok\":true}\n");
	}
	fd = connect_raw();
	read_raw(fd, 1000, text, sizeof(text));
	assert_contains(text, "too many control clients");
	close(fd);
	close(fds[0]);
	for (int i = 0; i < 100; i++) { /* the place becomes free */
		json_t *reply = ask("plain");
		bool good = json_is_true(json_object_get(reply, "ok"));

		json_decref(reply);
		if (good)
			break;
		usleep(10000);
		assert_int_not_equal(i, 99);
	}
	for (size_t i = 1; i < COUNT_OF(fds); i++)
		close(fds[i]);
}

static void test_stale_socket(void **state)
{
	struct pep_control *second = NULL;

	(void)state;
	assert_int_equal(open_server(&second), -EADDRINUSE); /* it lives */
	assert_null(second);
	stop_loop();
	pep_control_free(world.control);
	/* a socket file that a killed daemon has left */
	{
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		memcpy(address.sun_path, world.path, strlen(world.path) + 1);
		assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
		close(fd);
	}
	assert_int_equal(open_server(&world.control), 0);
	assert_int_equal(pthread_create(&world.thread, NULL, loop, NULL), 0);
	json_decref(ask("plain"));
}

static void test_no_daemon(void **state)
{
	char request[PEP_CONTROL_REQUEST_MAX + 1];
	json_t *reply = NULL;

	(void)state;
	assert_int_equal(pep_control_call("/nonexistent/control.sock", "x", 100, &reply), -ENOENT);
	assert_int_equal(pep_control_call(world.path, "a\nb", 100, &reply), -EINVAL);
	memset(request, 'x', sizeof(request) - 1);
	request[sizeof(request) - 1] = '\0';
	assert_int_equal(pep_control_call(world.path, request, 100, &reply), -EINVAL);
	memset(request, '/', sizeof(request) - 1);
	assert_int_equal(pep_control_call(request, "x", 100, &reply), -ENAMETOOLONG);
	assert_null(reply);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_answers),       TEST(test_refuses),   TEST(test_answers_later),
		TEST(test_client_leaves), TEST(test_left_open), TEST(test_garbage),
		TEST(test_too_long),      TEST(test_trickle),   TEST(test_too_many_clients),
		TEST(test_stale_socket),  TEST(test_no_daemon),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
