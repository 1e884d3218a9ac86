/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host/file.h"
#include "sentry/boot.h"
#include "sentry/control/control.h"
#include "sentry/kernel/cputime.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/loader/exec.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/vfs.h"

#define EXIT_SBX       125
#define EXIT_REFUSED   126
#define EXIT_NOT_FOUND 127
#define STRINGS_MAX    (2u << 20) /* of argv and environment: as ARG_MAX with Linux's default stack */

static struct fs_ctx *make_fs_ctx(const char *cwd, struct sbx_err *err)
{
	struct path root = { kernel.mnt_ns->root, kernel.mnt_ns->root->root }, at;
	struct fs_ctx *fs;
	int r;

	path_get(&root);
	r = path_walk_at(NULL, &root, cwd, WALK_FOLLOW | WALK_DIRECTORY, &at);
	if (r) {
		path_put(&root);
		sbx_fail(err, r, "directory '%s'", cwd);
		return NULL;
	}
	fs = calloc(1, sizeof(*fs));
	if (!fs) {
		path_put(&root);
		path_put(&at);
		sbx_fail(err, -ENOMEM, "start the program");
		return NULL;
	}
	ref_init(&fs->ref);
	fs->root = root;
	fs->cwd = at;
	fs->umask = 022;
	return fs;
}

static int install_stdio(struct task *t, int stdio[3], bool stdin_none, struct sbx_err *err)
{
	static const uint32_t flags[3] = { O_RDONLY, O_WRONLY, O_WRONLY };

	for (int i = 0; i < 3; i++) {
		struct file *f;
		int r;

		if (i == 0 && stdin_none) {
			host_close(stdio[0]);
			r = vfs_open(t, AT_FDCWD, "/dev/null", O_RDONLY, 0, WALK_FOLLOW, &f);
		} else {
			r = hostfile_create(stdio[i], flags[i], &f);
		}
		stdio[i] = -1;
		if (!r)
			r = fd_install_at(t, f, i, false);
		if (r < 0)
			return sbx_fail(err, r, "standard file %d", i);
	}
	return 0;
}

static const char *env_path(const Sbx__Control__SentryConfig *cfg)
{
	for (size_t i = 0; i < cfg->n_envp; i++) {
		if (!strncmp(cfg->envp[i], "PATH=", 5))
			return cfg->envp[i] + 5;
	}
	return "/usr/local/bin:/usr/bin:/bin";
}

/* As execvp(3): tries each directory of PATH; the first that can be opened and run. */
static int find_program(struct task *t, const Sbx__Control__SentryConfig *cfg, char *path, size_t cap,
                        struct file **ret)
{
	const char *name = cfg->argv[0], *dir = env_path(cfg);
	int r, seen = -ENOENT;

	if (strchr(name, '/')) {
		if ((size_t)snprintf(path, cap, "%s", name) >= cap)
			return -ENAMETOOLONG;
		return exec_open(t, AT_FDCWD, path, WALK_FOLLOW, ret);
	}
	for (;;) {
		size_t len = strcspn(dir, ":");

		if ((size_t)snprintf(path, cap, "%.*s/%s", (int)len, len ? dir : ".", name) < cap) {
			r = exec_open(t, AT_FDCWD, path, WALK_FOLLOW, ret);
			if (!r)
				return 0;
			if (r != -ENOENT && r != -ENOTDIR)
				seen = r;
		}
		if (!dir[len])
			return seen;
		dir += len + 1;
	}
}

static int fill_strings(const Sbx__Control__SentryConfig *cfg, struct exec_strings *s)
{
	int r = 0;

	for (size_t i = 0; i < cfg->n_argv && !r; i++)
		r = exec_strings_add(s, cfg->argv[i], strlen(cfg->argv[i]), STRINGS_MAX);
	s->argc = (unsigned)cfg->n_argv;
	for (size_t i = 0; i < cfg->n_envp && !r; i++)
		r = exec_strings_add(s, cfg->envp[i], strlen(cfg->envp[i]), STRINGS_MAX);
	s->envc = (unsigned)cfg->n_envp;
	return r;
}

static int load_program(struct task *t, const Sbx__Control__SentryConfig *cfg, int *code, struct sbx_err *err)
{
	struct exec_strings strings = { 0 };
	char path[PATH_MAX_LINUX];
	struct file *file;
	int r = find_program(t, cfg, path, sizeof(path), &file);

	if (r) {
		*code = r == -ENOENT || r == -ENOTDIR ? EXIT_NOT_FOUND : EXIT_REFUSED;
		return sbx_fail(err, r, "run '%s'", cfg->argv[0]);
	}
	r = fill_strings(cfg, &strings);
	if (!r)
		r = exec_load(t, file, path, &strings);
	if (r) {
		*code = EXIT_REFUSED;
		if (exec_policy_hit())
			sbx_fail(err, 0, "Execution Denied: Command contains blacklisted host operations.");
		else
			sbx_fail(err, r, "run '%s'", cfg->argv[0]);
	}
	exec_strings_fini(&strings);
	file_put(file);
	return r;
}

int boot_program(const Sbx__Control__SentryConfig *cfg, int stdio[3], int *code, struct sbx_err *err)
{
	struct cred *cred = NULL;
	struct fdtable *fdt = NULL;
	struct fs_ctx *fs;
	struct task *t;
	int r;

	*code = EXIT_SBX;
	cputime_calibrate();
	fs = make_fs_ctx(cfg->cwd, err);
	if (!fs)
		return err->code;
	r = -ENOMEM;
	cred = cred_create(cfg->uid, cfg->gid, cfg->groups, (unsigned)MIN(cfg->n_groups, (size_t)NGROUPS_LIMIT));
	fdt = fdtable_create();
	if (!cred || !fdt) {
		sbx_fail(err, r, "start the program");
		goto out;
	}
	t = task_create_first(cred, fs, fdt, &r);
	if (!t) {
		sbx_fail(err, r, "make the first process");
		goto out;
	}
	r = install_stdio(t, stdio, cfg->stdin_none, err);
	if (!r)
		r = load_program(t, cfg, code, err);
	task_put(t);
out:
	cred_put(cred);
	fdtable_put(fdt);
	fs_ctx_put(fs);
	for (int i = 0; i < 3; i++)
		host_close(stdio[i]);
	return r;
}
