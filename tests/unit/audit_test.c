/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: chain, tampering, recovery, losses, several writers. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/audit.h"
#include "tests/lib/tap.h"

static char dir[] = "/tmp/sbx-audit-XXXXXX", path[64];

static struct audit *must_open(void)
{
	struct sbx_err err = { 0 };
	struct audit *a = NULL;

	if (audit_open(path, &a, &err))
		printf("# %s\n", err.msg);
	return a;
}

static void write_some(struct audit *a, int n)
{
	for (int i = 0; i < n; i++) {
		struct audit_event e = {
			.pid = 7,
			.exe = "/bin/cat",
			.source = "gofer",
			.class = "file",
			.op = "open",
			.object = "/etc/\"x\"\n\x1b[31m",
			.mode = "r",
			.verdict = "deny",
			.rule = "hide",
			.reason = "hidden",
			.count = 1,
		};

		audit_write(a, "id", &e);
	}
}

static void fresh(int n)
{
	struct audit *a;

	unlink(path);
	a = must_open();
	if (a)
		write_some(a, n);
	audit_close(a);
}

static struct audit_check verify(void)
{
	struct audit_check c = { .line = 999 };
	struct sbx_err err;
	FILE *f = fopen(path, "r");

	if (!f || audit_verify(f, &c, &err))
		c.line = 998;
	if (f)
		fclose(f);
	return c;
}

static char *slurp(size_t *len)
{
	static char buf[1 << 16];
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	close(fd);
	*len = n > 0 ? (size_t)n : 0;
	buf[*len] = '\0';
	return buf;
}

static void spit(const char *buf, size_t len)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);

	if (write(fd, buf, len) != (ssize_t)len)
		abort();
	close(fd);
}

static void test_format(void)
{
	struct audit_check c;
	struct audit_range range;
	struct audit *a;
	size_t len;
	json_t *v;
	char *text;

	fresh(0);
	a = must_open();
	audit_get_range(a, &range);
	tap_ok(range.first == 0 && range.last == 0, "nothing written yet");
	write_some(a, 3);
	audit_get_range(a, &range);
	audit_close(a);
	tap_ok(range.first == 1 && range.last == 3, "numbers of what was written");
	c = verify();
	tap_ok(c.line == 0 && c.records == 3, "a new log is whole");
	tap_ok(!strcmp(c.head, range.head), "its head is what the writer says");
	text = slurp(&len);
	tap_ok(!strchr(text, '\x1b'), "no control characters");
	text[strcspn(text, "\n")] = '\0';
	v = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	tap_ok(v && json_object_size(v) == 16, "a line has all fields");
	tap_ok(!strcmp(json_string_value(json_object_get(v, "object")), "/etc/\"x\"\n\x1b[31m"),
	       "strings come back");
	json_decref(v);
	a = must_open();
	write_some(a, 1);
	audit_get_range(a, &range);
	audit_close(a);
	tap_ok(range.first == 4 && verify().records == 4, "a later writer goes on");
}

static void tampered(const char *what, uint64_t want_line)
{
	struct audit_check c = verify();

	if (!tap_ok(c.line == want_line, "%s: line %d", what, (int)want_line))
		printf("# line %d %s\n", (int)c.line, c.why);
}

static char *nth_line(char *text, int n)
{
	while (n-- > 1)
		text = strchr(text, '\n') + 1;
	return text;
}

static void test_tampering(void)
{
	char *text, *line, copy[1 << 14];
	size_t len;

	fresh(4);
	text = slurp(&len);
	strstr(nth_line(text, 2), "hidden")[0] = 'H';
	spit(text, len);
	tampered("a changed word", 2);

	fresh(4);
	text = slurp(&len);
	line = nth_line(text, 2);
	memmove(line, nth_line(text, 3), strlen(nth_line(text, 3)) + 1);
	spit(text, strlen(text));
	tampered("a removed line", 2);

	fresh(4);
	text = slurp(&len);
	line = nth_line(text, 3);
	memcpy(copy, text, (size_t)(line - text));
	strcpy(copy + (line - text), nth_line(text, 2));
	spit(copy, strlen(copy));
	tampered("a doubled line", 3);

	fresh(4);
	text = slurp(&len);
	memcpy(nth_line(text, 2), "garbage", 7);
	spit(text, len);
	tampered("garbage", 2);

	fresh(4);
	text = slurp(&len);
	spit(nth_line(text, 2), strlen(nth_line(text, 2)));
	tampered("a removed first line", 1);
}

static void test_recovery(void)
{
	struct sbx_err err = { 0 };
	struct audit_check c;
	struct audit *a;
	size_t len;
	char *text;

	fresh(3);
	text = slurp(&len);
	spit(text, len - 20);
	tampered("a torn line at the end", 3);
	a = must_open();
	write_some(a, 1);
	audit_close(a);
	c = verify();
	tap_ok(c.line == 0 && c.torn == 1 && c.records == 4,
	       "is noted and closed by the next writer");

	fresh(1);
	text = slurp(&len);
	spit(text, 30);
	audit_close(must_open());
	c = verify();
	tap_ok(c.line == 0 && c.torn == 1, "also when it was the first");

	spit("something else\n", 15);
	tap_ok(audit_open(path, &a, &err) && strstr(err.msg, "no audit log"),
	       "another file is left alone");
	err = (struct sbx_err){ 0 };
	tap_ok(audit_open("/dev/null", &a, &err), "so is a device");
}

static void test_losses(void)
{
	struct rlimit limit = { 4096, RLIM_INFINITY }, old;
	struct audit_range range;
	struct audit_check c;
	struct audit *a;

	fresh(1);
	a = must_open();
	getrlimit(RLIMIT_FSIZE, &old);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	write_some(a, 20);
	setrlimit(RLIMIT_FSIZE, &old);
	audit_get_range(a, &range);
	tap_ok(range.lost > 0, "a full disk loses events");
	write_some(a, 1);
	audit_close(a);
	c = verify();
	tap_ok(c.line == 0 && c.lost == range.lost, "their number is in the log");
}

static void test_writers(void)
{
	struct audit_check c;

	fresh(0);
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			struct audit *a = must_open();

			write_some(a, 50);
			audit_close(a);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	c = verify();
	tap_ok(c.line == 0 && c.records == 200, "four writers make one chain");
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/log", dir);
	test_format();
	test_tampering();
	test_recovery();
	test_losses();
	test_writers();
	unlink(path);
	rmdir(dir);
	return tap_done();
}
