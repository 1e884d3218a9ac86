/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default bans: commands that make sense only against a host. Each looks at the words of a
 * command, so a file named "rm -rf /", or a commit message about dd, offends nobody. Shell strings
 * are cut into their simple commands (shell_words.c) and each is looked at, before anything of the
 * string runs.
 */
#include <stdint.h>
#include <string.h>

#include "base/glob.h"
#include "policy/match.h"
#include "policy/shell_words.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool in_list(const char *s, const char *const *list)
{
	for (; *list; list++) {
		if (!strcmp(s, *list))
			return true;
	}
	return false;
}

/* Device nodes that hold nothing. Everything else below /dev is hardware or memory. */
static bool is_device(const char *path)
{
	static const char *const harmless[] = {
		"null",  "zero",   "full",   "random", "urandom", "tty",
		"stdin", "stdout", "stderr", "ptmx",   "console", NULL,
	};

	if (strncmp(path, "/dev/", 5) || !path[5])
		return false;
	path += 5;
	return !in_list(path, harmless) && strncmp(path, "fd/", 3) && strncmp(path, "shm/", 4) &&
	       strncmp(path, "pts/", 4) && strncmp(path, "tcp/", 4) && strncmp(path, "udp/", 4);
}

/* Removes empty, "." and ".." components without asking any file system. @out holds PATH_LIMIT
 * bytes. */
#define PATH_LIMIT 256
static bool normalise(const char *path, char *out)
{
	size_t n = 0;

	if (path[0] != '/')
		return false;
	while (*path) {
		size_t len;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len == 2 && path[0] == '.' && path[1] == '.') {
			while (n && out[--n] != '/')
				;
		} else if (len && !(len == 1 && path[0] == '.')) {
			if (n + len + 2 > PATH_LIMIT)
				return false;
			out[n++] = '/';
			memcpy(out + n, path, len);
			n += len;
		}
		path += len;
	}
	if (!n)
		out[n++] = '/';
	out[n] = '\0';
	return true;
}

/* The root, everything in it, or a directory without which no system runs. */
static bool is_system_dir(const char *arg)
{
	static const char *const dirs[] = {
		"/",    "/*",     "/.*",      "/bin",     "/boot", "/dev",  "/etc", "/home",
		"/lib", "/lib32", "/lib64",   "/libx32",  "/proc", "/root", "/run", "/sbin",
		"/sys", "/usr",   "/usr/bin", "/usr/lib", "/var",  NULL,
	};
	char path[PATH_LIMIT];
	size_t n;

	if (!normalise(arg, path))
		return false;
	n = strlen(path);
	if (n > 3 && !strcmp(path + n - 2, "/*"))
		path[n - 2] = '\0'; /* "/etc/<star>" is as good as "/etc" */
	return in_list(path, dirs);
}

/* Short options may be bundled: "-rf". Stops at "--". */
static bool has_option(char *const *argv, const char *letters, const char *const *longs)
{
	for (size_t i = 1; argv[i] && strcmp(argv[i], "--"); i++) {
		const char *a = argv[i];

		if (a[0] != '-' || !a[1])
			continue;
		if (a[1] == '-' ? in_list(a, longs) : strpbrk(a + 1, letters) != NULL)
			return true;
	}
	return false;
}

static bool some_operand(char *const *argv, bool (*test)(const char *))
{
	bool options = true;

	for (size_t i = 1; argv[i]; i++) {
		if (options && !strcmp(argv[i], "--"))
			options = false;
		else if ((!options || argv[i][0] != '-') && test(argv[i]))
			return true;
	}
	return false;
}

static bool recursive_on_system(char *const *argv)
{
	static const char *const longs[] = { "--recursive", NULL };

	return has_option(argv, "rR", longs) && some_operand(argv, is_system_dir);
}

static bool recursive_upper_on_system(char *const *argv)
{
	static const char *const longs[] = { "--recursive", NULL };

	return has_option(argv, "R", longs) && some_operand(argv, is_system_dir);
}

static bool find_delete_root(char *const *argv)
{
	bool deletes = false;

	for (size_t i = 1; argv[i]; i++) {
		if (!strcmp(argv[i], "-delete"))
			deletes = true;
	}
	return deletes && argv[1] && is_system_dir(argv[1]);
}

static bool dd_device(char *const *argv)
{
	for (size_t i = 1; argv[i]; i++) {
		if ((!strncmp(argv[i], "of=", 3) || !strncmp(argv[i], "if=", 3)) &&
		    is_device(argv[i] + 3))
			return true;
	}
	return false;
}

static bool names_device(char *const *argv)
{
	return some_operand(argv, is_device);
}

/* "-e", also bundled ("-le"); for ncat also -c. "-ne" of another netcat is the same option. */
static bool nc_exec(char *const *argv)
{
	static const char *const longs[] = { "--exec", "--sh-exec", "--lua-exec", NULL };

	for (size_t i = 1; argv[i]; i++) {
		if (!strncmp(argv[i], "--exec=", 7) || !strncmp(argv[i], "--sh-exec=", 10))
			return true;
	}
	return has_option(argv, "ec", longs);
}

static bool always(char *const *argv)
{
	return true;
}

static bool is_ssh_key(const char *path)
{
	const char *name = base_name(path);

	if (glob_match("**/ssh_host_*_key", path, GLOB_PATH))
		return true;
	return glob_match("**/.ssh/*", path, GLOB_PATH) &&
	       (!strncmp(name, "id_", 3) || !strcmp(name, "authorized_keys")) &&
	       (strlen(name) < 4 || strcmp(name + strlen(name) - 4, ".pub"));
}

static bool names_ssh_key(char *const *argv)
{
	return some_operand(argv, is_ssh_key);
}

/* Changes of the packet filter; listing it is harmless. */
static bool iptables_change(char *const *argv)
{
	static const char *const longs[] = {
		"--append",  "--delete", "--flush",        "--insert",
		"--replace", "--policy", "--delete-chain", NULL,
	};

	return has_option(argv, "ADFIRPX", longs);
}

static bool nft_change(char *const *argv)
{
	static const char *const verbs[] = { "add",    "create",  "delete", "flush",
		                             "insert", "replace", "-f",     NULL };

	for (size_t i = 1; argv[i]; i++) {
		if (in_list(argv[i], verbs))
			return true;
	}
	return false;
}

/* ip [options] OBJECT VERB */
static bool ip_change(char *const *argv)
{
	static const char *const verbs[] = { "add",   "del",     "delete", "set",
		                             "flush", "replace", "change", NULL };
	size_t i = 1;

	while (argv[i] && argv[i][0] == '-')
		i++;
	return argv[i] && argv[i + 1] && in_list(argv[i + 1], verbs);
}

static const struct ban {
	const char *id;
	const char *program; /* glob on the base name */
	bool (*test)(char *const *argv);
	const char *reason;
} bans[] = {
	{ "ban.rm-root", "rm", recursive_on_system, "removes the system" },
	{ "ban.rm-root", "find", find_delete_root, "removes the system" },
	{ "ban.chmod-root", "chmod", recursive_upper_on_system, "changes the modes of the system" },
	{ "ban.chmod-root", "chown", recursive_upper_on_system,
	  "changes the owners of the system" },
	{ "ban.chmod-root", "chgrp", recursive_upper_on_system,
	  "changes the owners of the system" },
	{ "ban.disk", "dd", dd_device, "reads or writes a device" },
	{ "ban.disk", "mkfs", names_device, "formats a device" },
	{ "ban.disk", "mkfs.*", names_device, "formats a device" },
	{ "ban.disk", "mke2fs", names_device, "formats a device" },
	{ "ban.disk", "mkswap", names_device, "formats a device" },
	{ "ban.disk", "wipefs", names_device, "wipes a device" },
	{ "ban.disk", "blkdiscard", names_device, "wipes a device" },
	{ "ban.disk", "shred", names_device, "wipes a device" },
	{ "ban.disk", "fdisk", names_device, "partitions a device" },
	{ "ban.disk", "sfdisk", names_device, "partitions a device" },
	{ "ban.disk", "cfdisk", names_device, "partitions a device" },
	{ "ban.disk", "gdisk", names_device, "partitions a device" },
	{ "ban.disk", "sgdisk", names_device, "partitions a device" },
	{ "ban.disk", "parted", names_device, "partitions a device" },
	{ "ban.disk", "hdparm", names_device, "changes a device" },
	{ "ban.disk", "cryptsetup", names_device, "changes a device" },
	{ "ban.disk", "cp", names_device, "reads or writes a device" },
	{ "ban.disk", "mv", names_device, "moves a device" },
	{ "ban.disk", "tee", names_device, "writes a device" },
	{ "ban.netcat-exec", "nc", nc_exec, "gives a shell to the network" },
	{ "ban.netcat-exec", "nc.*", nc_exec, "gives a shell to the network" },
	{ "ban.netcat-exec", "ncat", nc_exec, "gives a shell to the network" },
	{ "ban.netcat-exec", "netcat", nc_exec, "gives a shell to the network" },
	{ "ban.host-network", "iptables", iptables_change, "changes the packet filter" },
	{ "ban.host-network", "ip6tables", iptables_change, "changes the packet filter" },
	{ "ban.host-network", "iptables-restore", always, "changes the packet filter" },
	{ "ban.host-network", "nft", nft_change, "changes the packet filter" },
	{ "ban.host-network", "ip", ip_change, "changes the network" },
	{ "ban.ssh-keys", "rm", names_ssh_key, "touches ssh keys" },
	{ "ban.ssh-keys", "cp", names_ssh_key, "touches ssh keys" },
	{ "ban.ssh-keys", "mv", names_ssh_key, "touches ssh keys" },
	{ "ban.ssh-keys", "tee", names_ssh_key, "touches ssh keys" },
	{ "ban.ssh-keys", "cat", names_ssh_key, "touches ssh keys" },
	{ "ban.ssh-keys", "shred", names_ssh_key, "touches ssh keys" },
};

/* Programs that run the command in their arguments: the words after their own options. */
static char *const *skip_wrapper(char *const *argv)
{
	static const char *const wrappers[] = {
		"sudo", "doas",    "env",  "nohup",   "nice",    "ionice", "setsid",   "stdbuf",
		"time", "command", "exec", "builtin", "busybox", "toybox", "unbuffer", NULL,
	};
	size_t i;

	for (int depth = 0; depth < 8; depth++) {
		if (!argv[0] || !in_list(base_name(argv[0]), wrappers))
			return argv;
		for (i = 1; argv[i] && (argv[i][0] == '-' || strchr(argv[i], '=')); i++)
			;
		if (!argv[i])
			return argv;
		argv += i;
	}
	return argv;
}

static bool words_denied(const char *program, char *const *argv, struct exec_verdict *v)
{
	const char *name = base_name(program);

	for (size_t i = 0; i < ARRAY_SIZE(bans); i++) {
		if (!glob_match(bans[i].program, name, 0) || !bans[i].test(argv))
			continue;
		*v = (struct exec_verdict){ bans[i].id, bans[i].reason };
		return true;
	}
	return false;
}

/* The string of "sh -c STRING", or NULL. Options may be bundled: "-lc", "-euo pipefail -c". */
static const char *shell_string(const char *program, char *const *argv)
{
	static const char *const shells[] = { "sh",  "bash", "dash", "zsh",
		                              "ksh", "ash",  "fish", NULL };
	bool c = false;

	if (!in_list(base_name(program), shells))
		return NULL;
	for (size_t i = 1; argv[i]; i++) {
		const char *a = argv[i];

		if ((a[0] == '-' || a[0] == '+') && a[1]) {
			if (a[0] == '-' && a[1] != '-' && strchr(a, 'c'))
				c = true;
			if (a[1] != '-' && a[strlen(a) - 1] == 'o' && argv[i + 1])
				i++;
			continue;
		}
		return c ? a : NULL;
	}
	return NULL;
}

static bool denied_at(const char *program, char *const *argv, struct exec_verdict *v, int depth);

struct shell_ctx {
	struct exec_verdict *v;
	int depth;
	bool denied;
};

static bool on_command(void *ctx, const struct shell_command *c)
{
	struct shell_ctx *s = ctx;

	for (size_t i = 0; i < c->n_redirects && !s->denied; i++) {
		if (is_device(c->redirects[i]) || is_ssh_key(c->redirects[i])) {
			*s->v = (struct exec_verdict){ "ban.disk", "redirects to a device or key" };
			s->denied = true;
		}
	}
	if (!s->denied && c->words[0])
		s->denied = denied_at(c->words[0], c->words, s->v, s->depth + 1);
	return !s->denied;
}

static bool string_denied(const char *text, struct exec_verdict *v, int depth)
{
	struct shell_ctx s = { .v = v, .depth = depth };

	if (shell_is_fork_bomb(text)) {
		*v = (struct exec_verdict){ "ban.fork-bomb", "starts itself without end" };
		return true;
	}
	shell_for_each(text, on_command, &s);
	return s.denied;
}

static bool denied_at(const char *program, char *const *argv, struct exec_verdict *v, int depth)
{
	char *const *inner = skip_wrapper(argv);
	const char *text;

	if (inner != argv) {
		argv = inner;
		program = argv[0];
	}
	if (words_denied(program, argv, v))
		return true;
	text = depth < 4 ? shell_string(program, argv) : NULL;
	return text && string_denied(text, v, depth);
}

bool ban_denied(const char *program, char *const *argv, struct exec_verdict *v)
{
	return argv[0] && denied_at(program, argv, v, 0);
}
