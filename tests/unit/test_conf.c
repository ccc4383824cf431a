/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/unit.h"

#include "base/conf.h"
#include "base/log.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char every_kind[] = "wireless-interfaces = {radio0, \"radio1\"}\n"
				 "wired-interfaces = eth0.100\n"
				 "accept = early\n"
				 "source = 'gateway'\n"
				 "overload = refuse  fail = closed\n"
				 "workers = 3\n"
				 "max-flows = 777\n"
				 "max-flows-per-client = 10\n"
				 "max-pending = 5\n"
				 "connect-timeout = 1.5s\n"
				 "half-close-timeout = 2min\n"
				 "idle-timeout = 1h\n"
				 "user = \"u-1\" group = _g\n"
				 "run-dir = \"/tmp/run.1\"\n"
				 "log-level = debug\n"
				 "relay {\n"
				 "  memory = 1GiB pipe-size = 64KiB buffer-min = 8kB\n"
				 "  buffer-max = 1.5MiB buffer-gain = 200% splice = off\n"
				 "}\n"
				 "leg wireless { congestion-control = bbr mss = 1360B }\n"
				 "leg wired { congestion-control = system user-timeout = 2min\n"
				 "  notsent-lowat = 16KiB keepalive-idle = off }\n"
				 "bypass { servers = {\"192.0.2.0/24\"} ports = {22, 25} }\n"
				 "class one { clients = {10.1.0.0/16, \"fd00::/8\"}\n"
				 "  bypass = on accept = verified wireless-mss = 500B }\n"
				 "class two { ports = {\"8000-8100\"} wired-keepalive-idle = 7s }\n"
				 "steering { mark-mask = 0x0000ffff table = 100\n"
				 "  rule-priority = 99 first-queue = 0 first-port = 1 }\n"
				 "monitor { listen = \"[::1]:99\" }\n"
				 "cca pep_bbr_a { param = {\"ratio=2.0\", 'gain=0.75'} }\n"
				 "cca pep_bwe { param = {\"tau=16\"} }\n";

static struct pep_conf *conf_of(const char *text)
{
	struct pep_conf *conf = NULL;

	assert_int_equal(pep_conf_parse("t.conf", text, strlen(text), stderr, &conf), 0);
	return conf;
}

static void every_key_lands_in_its_field(void **state)
{
	struct pep_conf *conf = conf_of(every_kind);
	const struct pep_leg_conf *wired = &conf->leg[PEP_SEGMENT_WIRED];

	(void)state;
	assert_int_equal(conf->n_wireless_interfaces, 2);
	assert_string_equal(conf->wireless_interfaces[1], "radio1");
	assert_int_equal(conf->n_wired_interfaces, 1);
	assert_string_equal(conf->wired_interfaces[0], "eth0.100");
	assert_int_equal(conf->accept, PEP_ACCEPT_EARLY);
	assert_int_equal(conf->source, PEP_SOURCE_GATEWAY);
	assert_int_equal(conf->overload, PEP_OVERLOAD_REFUSE);
	assert_int_equal(conf->fail, PEP_FAIL_CLOSED);
	assert_int_equal(conf->workers, 3);
	assert_int_equal(conf->max_flows, 777);
	assert_int_equal(conf->max_flows_per_client, 10);
	assert_int_equal(conf->max_pending, 5);
	assert_int_equal(conf->connect_timeout_ms, 1500);
	assert_int_equal(conf->half_close_timeout_ms, 120000);
	assert_int_equal(conf->idle_timeout_ms, 3600000);
	assert_string_equal(conf->user, "u-1");
	assert_string_equal(conf->group, "_g");
	assert_string_equal(conf->run_dir, "/tmp/run.1");
	assert_int_equal(conf->log_level, PEP_LOG_LEVEL_DEBUG);
	assert_int_equal(conf->relay.memory_bytes, 1 << 30);
	assert_int_equal(conf->relay.pipe_bytes, 65536);
	assert_int_equal(conf->relay.buffer_min_bytes, 8000);
	assert_int_equal(conf->relay.buffer_max_bytes, 1572864);
	assert_int_equal(conf->relay.buffer_gain_percent, 200);
	assert_false(conf->relay.splice);
	assert_string_equal(conf->leg[PEP_SEGMENT_WIRELESS].congestion_control, "bbr");
	assert_int_equal(conf->leg[PEP_SEGMENT_WIRELESS].mss_bytes, 1360);
	assert_string_equal(wired->congestion_control, "");
	assert_int_equal(wired->user_timeout_ms, 120000);
	assert_int_equal(wired->notsent_lowat_bytes, 16384);
	assert_int_equal(wired->keepalive_idle_s, 0);
	assert_int_equal(conf->bypass.n_clients, 0);
	assert_int_equal(conf->bypass.n_servers, 1);
	assert_int_equal(conf->bypass.servers[0].bits, 96 + 24);
	assert_int_equal(conf->bypass.n_ports, 2);
	assert_int_equal(conf->steering.mark_mask, 0xffff);
	assert_int_equal(conf->steering.table, 100);
	assert_int_equal(conf->steering.rule_priority, 99);
	assert_int_equal(conf->steering.first_queue, 0);
	assert_int_equal(conf->steering.first_port, 1);
	assert_string_equal(conf->monitor.listen, "[::1]:99");
	assert_int_equal(conf->n_cca_params, 3);
	assert_string_equal(conf->cca_params[1].cca, "pep_bbr_a");
	assert_string_equal(conf->cca_params[1].key, "gain");
	assert_string_equal(conf->cca_params[1].value, "0.75");
	pep_conf_free(conf);
}

static void a_class_inherits_what_it_does_not_set(void **state)
{
	struct pep_conf *conf = conf_of(every_kind);
	const struct pep_class_conf *one = &conf->classes[0], *two = &conf->classes[1];

	(void)state;
	assert_int_equal(conf->n_classes, 2);
	assert_string_equal(one->name, "one");
	assert_true(one->bypass);
	assert_int_equal(one->accept, PEP_ACCEPT_VERIFIED);
	assert_int_equal(one->leg[PEP_SEGMENT_WIRELESS].mss_bytes, 500);
	assert_string_equal(one->leg[PEP_SEGMENT_WIRELESS].congestion_control, "bbr");
	assert_int_equal(one->leg[PEP_SEGMENT_WIRED].user_timeout_ms, 120000);
	assert_false(two->bypass);
	assert_int_equal(two->accept, PEP_ACCEPT_EARLY);
	assert_int_equal(two->match.ports[0].first, 8000);
	assert_int_equal(two->match.ports[0].last, 8100);
	assert_int_equal(two->leg[PEP_SEGMENT_WIRELESS].mss_bytes, 1360);
	assert_int_equal(two->leg[PEP_SEGMENT_WIRED].keepalive_idle_s, 7);
	pep_conf_free(conf);
}

static char *dump_of(const struct pep_conf *conf)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	pep_conf_dump(conf, out);
	fclose(out);
	return text;
}

static void a_dump_reads_back_to_an_equal_configuration(void **state)
{
	const char *const texts[] = {"", every_kind, "class a { servers = {\"::/0\"} }",
				     "bypass { clients = {\"::ffff:0:0/96\", \"0::1\"} }"};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		struct pep_conf *conf = conf_of(texts[i]);
		char *first = dump_of(conf);
		struct pep_conf *again = conf_of(first);
		char *second = dump_of(again);

		assert_memory_equal(conf, again, sizeof(*conf));
		assert_string_equal(first, second);
		free(first);
		free(second);
		pep_conf_free(conf);
		pep_conf_free(again);
	}
}

/* Writes every default out as a file would and expects what an empty file gives. */
static void every_default_is_what_the_table_says(void **state)
{
	struct pep_conf *empty = conf_of(""), *written;
	const struct pep_conf_key *key;
	const char *section = "";
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	for (size_t i = 0; (key = pep_conf_key_get(i)); i++) {
		if (strcmp(key->section, "class") == 0 || strcmp(key->section, "cca") == 0)
			continue;
		if (strcmp(key->section, section) != 0) {
			fprintf(out, "%s%s {\n", section[0] ? "}\n" : "", key->section);
			section = key->section;
		}
		if (key->value[0] == '{')
			fprintf(out, "%s = %s\n", key->key, key->value);
		else
			fprintf(out, "%s = '%s'\n", key->key, key->value);
	}
	fputs("}\n", out);
	fclose(out);
	written = conf_of(text);
	assert_memory_equal(empty, written, sizeof(*empty));
	assert_string_equal(empty->leg[PEP_SEGMENT_WIRELESS].congestion_control, "pep_bbr_a");
	assert_int_equal(empty->relay.memory_bytes, 256 << 20);
	free(text);
	pep_conf_free(empty);
	pep_conf_free(written);
}

static void workers_auto_is_one_per_usable_cpu(void **state)
{
	struct pep_conf *conf;
	cpu_set_t all, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	conf = conf_of("workers = auto");
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(conf->workers, 1);
	pep_conf_free(conf);
}

static void max_flows_follows_the_limit_of_descriptors(void **state)
{
	struct rlimit limit = {1024, 1024};
	struct pep_conf *conf, *large;

	(void)state;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	conf = conf_of("");
	/* 1024 less 128 and an eighth, two for each flow */
	assert_int_equal(conf->max_flows, 384);
	assert_int_equal(pep_conf_require_descriptors(conf, "t.conf", NULL), 0);

	large = conf_of("max-flows = 449");
	assert_int_equal(pep_conf_require_descriptors(large, "t.conf", NULL), -EINVAL);
	pep_conf_free(large);
	large = conf_of("max-flows = 448");
	assert_int_equal(pep_conf_require_descriptors(large, "t.conf", NULL), 0);
	pep_conf_free(large);
	pep_conf_free(conf);
}

static void both_sides_need_an_interface_when_asked(void **state)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = {
		{"", -EINVAL},
		{"wired-interfaces = a", -EINVAL},
		{"wireless-interfaces = a", -EINVAL},
		{"wireless-interfaces = a wired-interfaces = b", 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct pep_conf *conf = conf_of(cases[i].text);

		assert_int_equal(pep_conf_require_interfaces(conf, "t.conf", NULL), cases[i].err);
		pep_conf_free(conf);
	}
}

/* Puts "NAME BEFORE AFTER RESTART;" behind the text at @user. */
static void note_change(const char *name, const char *before, const char *after, bool restart,
			void *user)
{
	char *text = user;
	size_t used = strlen(text);

	snprintf(text + used, 512 - used, "%s '%s' '%s' %d;", name, before, after, restart);
}

static void a_reload_knows_what_changed_and_what_needs_a_restart(void **state)
{
	static const struct {
		const char *wanted, *changes;
	} cases[] = {
		{"workers = 1", ""},
		{"workers = 2", "workers '1' '2' 1;"},
		{"workers = 1 accept = early leg wired { mss = 1000B } steering { table = 9 }",
		 "accept 'verified' 'early' 0;leg wired mss 'auto' '1kB' 0;"
		 "steering table '7357' '9' 1;"},
		{"workers = 1 wired-interfaces = x", "wired-interfaces '{}' '{\"x\"}' 1;"},
		{"workers = 1 class x { ports = 1 }", "class '' '' 0;"},
		{"workers = 1 cca x { param = 'a=1' }", "cca '' '' 1;"},
	};
	struct pep_conf *running = conf_of("workers = 1");

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct pep_conf *wanted = conf_of(cases[i].wanted);
		char changes[512] = "";

		assert_int_equal(pep_conf_diff(running, wanted, note_change, changes), 0);
		assert_string_equal(changes, cases[i].changes);
		pep_conf_free(wanted);
	}
	pep_conf_free(running);
}

/* A folder of its own with the files of a case. */
struct files {
	char folder[64];
	char path[128];
};

static int files_make(void **state)
{
	struct files *files = calloc(1, sizeof(*files));

	if (!files)
		return -1;
	snprintf(files->folder, sizeof(files->folder), "/tmp/edgepep-test-conf-XXXXXX");
	if (!mkdtemp(files->folder))
		return -1;
	snprintf(files->path, sizeof(files->path), "%s/t.conf", files->folder);
	*state = files;
	return 0;
}

static int files_remove(void **state)
{
	struct files *files = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", files->folder);
	if (system(command) != 0)
		return -1;
	free(files);
	return 0;
}

static void file_write(const struct files *files, const char *name, const char *text)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", files->folder, name);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void dropins_are_laid_over_the_file_in_name_order(void **state)
{
	const struct files *files = *state;
	struct pep_conf *conf = NULL;
	char path[256];

	snprintf(path, sizeof(path), "%s.d", files->path);
	assert_int_equal(mkdir(path, 0700), 0);
	file_write(files, "t.conf",
		   "max-pending = 1 workers = 1 bypass { ports = {1, 2} }\n"
		   "class a { ports = {1} wired-mss = 100B }\n"
		   "cca x { param = {'a=1', 'b=2'} }\n");
	file_write(files, "t.conf.d/20-b.conf", "max-pending = 3 leg wired { mss = 200B }");
	file_write(files, "t.conf.d/10-a.conf",
		   "max-pending = 2 workers = 2 bypass { ports = {3} }\n"
		   "class b { ports = {2} } class a { wireless-mss = 300B }\n"
		   "cca x { param = 'c=3' }\n");
	file_write(files, "t.conf.d/30-c.conf~", "max-pending = 4");
	file_write(files, "t.conf.d/.40-d.conf", "max-pending = 5");

	assert_int_equal(pep_conf_load(files->path, stderr, &conf), 0);
	assert_int_equal(conf->max_pending, 3);
	assert_int_equal(conf->workers, 2);
	assert_int_equal(conf->bypass.n_ports, 1);
	assert_int_equal(conf->bypass.ports[0].first, 3);
	assert_int_equal(conf->bypass.ports[1].first, 0);
	assert_int_equal(conf->n_classes, 2);
	assert_string_equal(conf->classes[0].name, "a");
	assert_int_equal(conf->classes[0].leg[PEP_SEGMENT_WIRED].mss_bytes, 100);
	assert_int_equal(conf->classes[0].leg[PEP_SEGMENT_WIRELESS].mss_bytes, 300);
	assert_int_equal(conf->classes[1].leg[PEP_SEGMENT_WIRED].mss_bytes, 200);
	assert_int_equal(conf->n_cca_params, 1);
	assert_string_equal(conf->cca_params[0].key, "c");
	pep_conf_free(conf);
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
	const struct files *files = *state;
	struct pep_conf *conf = (void *)1;
	char *text = NULL;
	size_t length;
	FILE *errors = open_memstream(&text, &length);

	assert_int_equal(pep_conf_load(files->path, errors, &conf), -ENOENT);
	assert_int_equal(pep_conf_load(files->folder, errors, &conf), -EISDIR);
	assert_int_equal(pep_conf_load("/dev/zero", errors, &conf), -EFBIG);
	assert_ptr_equal(conf, (void *)1);
	fclose(errors);
	assert_contains(text, "t.conf: cannot be read: No such file");
	assert_contains(text, "/dev/zero: cannot be read: File too large");
	free(text);
}

static void an_error_in_a_dropin_names_the_dropin(void **state)
{
	const struct files *files = *state;
	struct pep_conf *conf = NULL;
	char path[256], *text = NULL;
	size_t length;
	FILE *errors = open_memstream(&text, &length);

	snprintf(path, sizeof(path), "%s.d", files->path);
	assert_int_equal(mkdir(path, 0700), 0);
	file_write(files, "t.conf", "relay { buffer-max = 1MiB }\n");
	file_write(files, "t.conf.d/a.conf", "\n\nrelay { buffer-min = 2MiB }\n");
	assert_int_equal(pep_conf_load(files->path, errors, &conf), -EINVAL);
	fclose(errors);
	assert_contains(text, "t.conf.d/a.conf:3: relay: buffer-min = 2MiB is above buffer-max");
	free(text);
}

static void a_file_read_apart_is_the_same_or_says_why_not(void **state)
{
	const struct files *files = *state;
	struct pep_conf *conf = NULL, *apart = NULL;
	char errors[PEP_CONF_ERRORS_SIZE];

	file_write(files, "t.conf", every_kind);
	assert_int_equal(pep_conf_load(files->path, stderr, &conf), 0);
	assert_int_equal(pep_conf_load_apart(files->path, false, errors, sizeof(errors), &apart),
			 0);
	assert_memory_equal(conf, apart, sizeof(*conf));
	pep_conf_free(conf);
	pep_conf_free(apart);

	apart = (void *)1;
	file_write(files, "t.conf", "workers = none\n");
	assert_int_equal(pep_conf_load_apart(files->path, false, errors, sizeof(errors), &apart),
			 -EINVAL);
	assert_contains(errors, "t.conf:1: workers");
	file_write(files, "t.conf", "workers = 1\n");
	assert_int_equal(pep_conf_load_apart(files->path, true, errors, sizeof(errors), &apart),
			 -EINVAL);
	assert_contains(errors, "wireless-interfaces");
	/* a pipe that nobody writes to must not hold a daemon up */
	assert_int_equal(unlink(files->path), 0);
	assert_int_equal(mkfifo(files->path, 0600), 0);
	assert_int_equal(pep_conf_load_apart(files->path, false, errors, sizeof(errors), &apart),
			 -ETIMEDOUT);
	assert_contains(errors, "t.conf: cannot be read: Connection timed out");
	assert_ptr_equal(apart, (void *)1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_lands_in_its_field),
		cmocka_unit_test(a_class_inherits_what_it_does_not_set),
		cmocka_unit_test(a_dump_reads_back_to_an_equal_configuration),
		cmocka_unit_test(every_default_is_what_the_table_says),
		cmocka_unit_test(workers_auto_is_one_per_usable_cpu),
		cmocka_unit_test(both_sides_need_an_interface_when_asked),
		cmocka_unit_test(a_reload_knows_what_changed_and_what_needs_a_restart),
		cmocka_unit_test_setup_teardown(dropins_are_laid_over_the_file_in_name_order,
						files_make, files_remove),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_be_read_is_named, files_make,
						files_remove),
		cmocka_unit_test_setup_teardown(an_error_in_a_dropin_names_the_dropin, files_make,
						files_remove),
		cmocka_unit_test_setup_teardown(a_file_read_apart_is_the_same_or_says_why_not,
						files_make, files_remove),
		/* last: it lowers the hard limit of descriptors for good */
		cmocka_unit_test(max_flows_follows_the_limit_of_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
