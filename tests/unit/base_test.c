/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/host/notif.h"
#include "base/list.h"
#include "base/log.h"
#include "base/ref.h"
#include "base/wire/wire.h"
#include "tests/lib/tap.h"

struct item {
	int v;
	struct list node;
};

static void test_notif_race(void)
{
	static const struct { const char *release; bool race; } cases[] = {
		{ "6.12.52", true }, { "6.12.53", false }, { "6.12.40-cloud", true }, { "6.6.111", true },
		{ "6.6.112", false }, { "6.1.155", true }, { "6.17.2", true }, { "6.18.44", false },
		{ "7.0.1", false }, { "6.8.0-86-generic", false }, { "6.1.0-40-amd64", false }, { "", false },
		{ "5.15.100", false }, { "nonsense", false },
	};
	char why[128];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		tap_eq(host_notif_race_in(cases[i].release, why, sizeof(why)), cases[i].race, "race of '%s'",
		       cases[i].release);
}

static void test_list(void)
{
	struct list head = LIST_INIT(head), other = LIST_INIT(other);
	struct item a = { .v = 1 }, b = { .v = 2 }, *it, *tmp;
	int sum = 0;

	tap_ok(list_empty(&head), "a new list is empty");
	list_add_tail(&head, &a.node);
	list_add(&head, &b.node);
	tap_eq(list_first_entry(&head, struct item, node)->v, 2, "list_add puts in front");
	list_splice_tail(&other, &head);
	tap_ok(list_empty(&head), "splice empties its source");
	list_for_each_entry_safe(it, tmp, &other, node) {
		sum += it->v;
		list_del(&it->node);
	}
	tap_eq(sum, 3, "walk sees all");
	list_del(&a.node);
	tap_ok(list_empty(&other), "a second list_del is harmless");
}

static void test_hash(void)
{
	struct hash_key k = { 0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull };
	uint8_t in[15];

	for (int i = 0; i < 15; i++)
		in[i] = (uint8_t)i;
	tap_ok(hash_bytes(&k, in, 15) != hash_bytes(&k, in, 14), "length is hashed");
	tap_ok(hash_bytes(&k, "", 0) == hash_bytes(&k, in, 0), "the empty string has one hash");
}

static void test_err(void)
{
	struct sbx_err e = { 0 };

	tap_eq(sbx_fail(&e, -ENOENT, "open '%s'", "/x"), -ENOENT, "sbx_fail returns its code");
	tap_ok(!strcmp(e.msg, "open '/x': No such file or directory"), "message has the errno text");
	sbx_fail_in(&e, "gofer");
	tap_ok(!strcmp(e.msg, "gofer: open '/x': No such file or directory"), "sbx_fail_in puts in front");
	tap_eq(sbx_fail(&e, 0, "bad"), -EINVAL, "a failure without errno is EINVAL");
}

static void test_quote(void)
{
	char buf[16];

	tap_ok(!strcmp(log_quote(buf, sizeof(buf), "a\nb", 3), "a\\x0ab"), "control bytes are escaped");
	log_quote(buf, sizeof(buf), "aaaaaaaaaaaaaaaaaaaaaaaa", 24);
	tap_ok(strlen(buf) < sizeof(buf), "a long string is cut");
}

static void test_wire(void)
{
	uint8_t out[8] = "hello", in[8];
	struct wire_msg s = { .buf = out, .len = 5, .fds = { 0 }, .n_fds = 1 };
	struct wire_msg r = { .buf = in, .cap = sizeof(in) };
	struct rlimit rl, none;
	int sv[2];

	tap_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0, "socketpair");
	tap_eq(wire_send(sv[0], &s), 0, "send");
	tap_eq(wire_recv(sv[1], &r), 1, "receive");
	tap_ok(r.len == 5 && !memcmp(in, "hello", 5) && r.n_fds == 1, "bytes and fds arrive");
	wire_close_fds(&r);
	r.cap = 2;
	tap_eq(wire_send(sv[0], &s), 0, "send again");
	tap_eq(wire_recv(sv[1], &r), -EPROTO, "a truncated message is refused");
	tap_eq(r.n_fds, 0, "and its fds are closed");
	r.cap = sizeof(in);
	memset(in, 0, sizeof(in));
	getrlimit(RLIMIT_NOFILE, &rl);
	none = (struct rlimit){ 0, rl.rlim_max };
	tap_eq(wire_send(sv[0], &s), 0, "send again");
	setrlimit(RLIMIT_NOFILE, &none);
	tap_eq(wire_recv(sv[1], &r), -EMFILE, "a message whose fds found no numbers says so");
	setrlimit(RLIMIT_NOFILE, &rl);
	tap_ok(r.n_fds == 0 && r.len == 5 && !memcmp(in, "hello", 5), "and is whole");
	close(sv[0]);
	tap_eq(wire_recv(sv[1], &r), 0, "end of file");
	close(sv[1]);
}

int main(void)
{
	test_list();
	test_notif_race();
	test_hash();
	test_err();
	test_quote();
	test_wire();
	return tap_done();
}
