/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/monitor/grants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host/file.h"
#include "policy/hide.h"

static const struct {
	const char *path;
	bool below; /* and everything below it */
	bool only_write;
	const char *why;
} refused[] = {
	{ "/", false, false, "the whole file system is never granted" },
	{ "/proc", true, false, "the guest has its own /proc" },
	{ "/sys", true, false, "the guest has its own /sys" },
	{ "/dev", true, false, "the guest has its own /dev" },
	{ "/run", false, false, "it holds the sockets of the host's services" },
	{ "/home", false, false, "it holds the homes of all users" },
	{ "/boot", true, true, "the host starts from it" },
	{ "/etc", true, true, "it configures the host" },
	{ "/usr", false, true, "it holds the host's programs" },
	{ "/usr/bin", true, true, "it holds the host's programs" },
	{ "/usr/sbin", true, true, "it holds the host's programs" },
	{ "/usr/lib", true, true, "it holds the host's programs" },
	{ "/var", false, true, "it holds the state of the host's services" },
};

static bool path_within(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (len == 1)
		return true; /* "/" */
	return !strncmp(path, dir, len) && (path[len] == '\0' || path[len] == '/');
}

const char *grant_refusal(const char *path, enum policy_mode mode, const char *home)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (refused[i].only_write && mode != POLICY_RW)
			continue;
		if (!strcmp(path, refused[i].path) ||
		    (refused[i].below && path_within(path, refused[i].path)))
			return refused[i].why;
	}
	if (home && home[0] == '/' && home[1] && path_within(home, path))
		return "it holds your whole home; name a directory below it";
	return NULL;
}

/* The innermost grant decides, as in the guest. */
bool grants_writable(const struct grant_set *set, const char *path)
{
	const struct grant *best = NULL;

	for (size_t i = 0; i < set->n; i++) {
		const struct grant *g = &set->v[i];

		if (!g->root && path_within(path, g->path) &&
		    (!best || strlen(g->path) > strlen(best->path)))
			best = g;
	}
	return best && best->mode == POLICY_RW;
}

static int read_small(int dir, const char *name, char *buf, size_t cap)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	n = host_read(fd, buf, cap - 1);
	close(fd);
	if (n < 0)
		return (int)n;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

/* @path relative to @dir, made real. */
static int real_from(const char *dir, const char *path, char *out)
{
	char joined[PATH_MAX];

	if (path[0] == '/') {
		if (strlen(path) >= sizeof(joined))
			return -ENAMETOOLONG;
		strcpy(joined, path);
	} else {
		size_t n = strlen(dir);

		if (n + 1 + strlen(path) >= sizeof(joined))
			return -ENAMETOOLONG;
		memcpy(joined, dir, n);
		joined[n] = '/';
		strcpy(joined + n + 1, path);
	}
	return realpath(joined, out) ? 0 : -errno;
}

/* True when the repository's own record of the worktree (gitdir/gitdir) names @dir/.git. */
static bool worktree_known(const char *dir, const char *gitdir, int gitdir_fd)
{
	char text[PATH_MAX + 16], back[PATH_MAX], want[PATH_MAX];

	if (read_small(gitdir_fd, "gitdir", text, sizeof(text)) || real_from(gitdir, text, back))
		return false;
	if (real_from(dir, ".git", want))
		return false;
	return !strcmp(back, want);
}

int git_common_dir(const char *dir, char *out)
{
	char text[PATH_MAX + 16], gitdir[PATH_MAX];
	struct stat st;
	int fd, r, dfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dfd < 0)
		return -errno;
	if (fstatat(dfd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode)) {
		close(dfd);
		return 0;
	}
	r = read_small(dfd, ".git", text, sizeof(text));
	close(dfd);
	if (r)
		return r;
	if (strncmp(text, "gitdir: ", 8))
		return 0;
	r = real_from(dir, text + 8, gitdir);
	if (r)
		return r;
	fd = open(gitdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = -EPERM;
	if (worktree_known(dir, gitdir, fd)) {
		r = read_small(fd, "commondir", text, sizeof(text));
		if (!r)
			r = real_from(gitdir, text, out);
	}
	close(fd);
	return r ? r : 1;
}

static int set_add(struct grant_set *set, const char *path, enum policy_mode mode, bool exec,
                   struct sbx_err *err)
{
	struct grant *g;

	for (size_t i = 0; i < set->n; i++) {
		g = &set->v[i];
		if (g->root || strcmp(g->path, path))
			continue;
		/* Named twice: the later one wins, as the command line comes after the policy file.
		 */
		g->mode = mode;
		g->exec = exec;
		return 0;
	}
	if (set->n == GRANTS_MAX)
		return sbx_fail(err, -E2BIG, "more than %d grants", GRANTS_MAX);
	g = &set->v[set->n];
	*g = (struct grant){ .id = (uint32_t)set->n + 1, .mode = mode, .exec = exec };
	g->path = pool_strdup(set->pool, path);
	g->guest_path = g->path;
	if (!g->path)
		return sbx_fail(err, -ENOMEM, "grant '%s'", path);
	set->n++;
	return 0;
}

/* Hides what is in the directory of @row and not on its list. */
static int hide_unlisted(struct grant_set *set, const struct show_row *row)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d = opendir(row->dir);
	int r = 0;

	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while (!r && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    policy_shows(row, e->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", row->dir, e->d_name);
		r = str_list_add(set->pool, &set->hide, path);
	}
	closedir(d);
	return r;
}

/* The names on the list of @row are the only ones that the gofer shows below a grant's root. */
static void show_only(struct grant *g, const struct show_row *row)
{
	g->only = row->names;
	for (g->n_only = 0; row->names[g->n_only];)
		g->n_only++;
}

static int add_root(struct grant_set *set, const struct policy *p, struct sbx_err *err)
{
	bool host = !strcmp(p->rootfs, "host");
	char real[PATH_MAX];
	struct stat st;
	struct grant *g = &set->v[0];

	if (!realpath(host ? "/" : p->rootfs, real))
		return sbx_fail(err, -errno, "root file system '%s'", p->rootfs);
	if (stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
		return sbx_fail(err, -ENOTDIR, "root file system '%s'", p->rootfs);
	*g = (struct grant){ .id = 1, .mode = POLICY_COW, .exec = true, .root = true };
	g->path = pool_strdup(set->pool, real);
	g->guest_path = pool_strdup(set->pool, "/");
	if (!g->path || !g->guest_path)
		return sbx_fail(err, -ENOMEM, "root file system");
	set->n = 1;
	if (!host)
		return 0;
	for (size_t i = 0; i < policy_hide_count; i++) {
		if (str_list_add(set->pool, &set->hide, policy_hide_rows[i].path))
			return sbx_fail(err, -ENOMEM, "hide list");
	}
	for (size_t i = 0; i < policy_show_count; i++) {
		const struct show_row *row = &policy_show_rows[i];
		int r = 0;

		if (!strcmp(row->dir, "/"))
			show_only(g, row);
		else
			r = hide_unlisted(set, row);
		if (r)
			return sbx_fail(err, r, "read '%s'", row->dir);
	}
	return 0;
}

/*
 * The common directory of a worktree that is the workspace: what runs on the host later, when
 * somebody uses the repository, is not the guest's to write. (A repository inside the workspace is
 * the guest's: files.protect tightens it.)
 */
static int protect_git_dir(struct grant_set *set, const char *dir)
{
	static const char *const below[] = { "/hooks", "/config", "/config.worktree",
		                             "/info/attributes" };
	char pattern[PATH_MAX + 32];
	size_t n = 0;

	for (; dir[n]; n++)
		pattern[n] = strchr("*?[]\\", dir[n]) ? '?' : dir[n];
	for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
		strcpy(pattern + n, below[i]);
		if (str_list_add(set->pool, &set->protect, pattern))
			return -ENOMEM;
	}
	return 0;
}

static int add_grant(struct grant_set *set, const struct policy_grant *pg, const char *home,
                     struct sbx_err *err)
{
	char real[PATH_MAX], common[PATH_MAX];
	const char *why;
	struct stat st;
	int r;

	if (!realpath(pg->path, real))
		return sbx_fail(err, -errno, "grant '%s'", pg->path);
	if (stat(real, &st) < 0)
		return sbx_fail(err, -errno, "grant '%s'", pg->path);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return sbx_fail(err, 0, "grant '%s': only files and directories can be granted",
		                pg->path);
	why = grant_refusal(real, pg->mode, home);
	if (why)
		return sbx_fail(err, 0, "grant '%s' (%s): %s", real, policy_mode_name(pg->mode),
		                why);
	r = set_add(set, real, pg->mode, pg->exec, err);
	if (r || !S_ISDIR(st.st_mode))
		return r;
	r = git_common_dir(real, common);
	if (r == -EPERM)
		return sbx_fail(err, 0,
		                "grant '%s': its .git names a repository that does not know it",
		                real);
	if (r < 0)
		return sbx_fail(err, r, "grant '%s': git worktree", real);
	if (r == 0 || path_within(common, real))
		return 0;
	why = grant_refusal(common, pg->mode, home);
	if (why)
		return sbx_fail(err, 0, "git directory '%s' of '%s': %s", common, real, why);
	if (protect_git_dir(set, common))
		return sbx_fail(err, -ENOMEM, "protect list");
	return set_add(set, common, pg->mode, false, err);
}

int grants_build(struct grant_set *set, struct pool *pool, const struct policy *p, const char *home,
                 struct sbx_err *err)
{
	int r;

	set->pool = pool;
	set->n = 0;
	set->hide = set->protect = (struct str_list){ 0 };
	r = add_root(set, p, err);
	for (size_t i = 0; !r && i < p->grants.n; i++)
		r = add_grant(set, &p->grants.v[i], home, err);
	if (r)
		return r;
	for (size_t i = 0; i < p->hide.n; i++) {
		if (str_list_add(pool, &set->hide, p->hide.v[i]))
			return sbx_fail(err, -ENOMEM, "hide list");
	}
	for (size_t i = 0; i < p->protect.n; i++) {
		if (str_list_add(pool, &set->protect, p->protect.v[i]))
			return sbx_fail(err, -ENOMEM, "protect list");
	}
	return 0;
}
