/* SPDX-License-Identifier: Apache-2.0 */
/* The report of what a run changed: a walk of the upper, without recursion, parents before children. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/overlay.h"

#define PATH_START   256u
#define LEVELS_START 32u

struct level {
	struct tmpfs_inode *dir;
	uint64_t cookie;
	size_t path_len; /* of the directory's path; 0 for the root */
};

struct walk {
	struct level *levels;
	size_t n, cap;
	char *path;
	size_t path_cap;
	overlay_change_fn fn;
	void *arg;
};

static int push(struct walk *w, struct tmpfs_inode *dir, size_t path_len)
{
	size_t cap;
	void *p;

	if (w->n == w->cap) {
		cap = w->cap ? w->cap * 2 : LEVELS_START;
		p = realloc(w->levels, cap * sizeof(*w->levels));
		if (!p)
			return -ENOMEM;
		w->levels = p;
		w->cap = cap;
	}
	w->levels[w->n++] = (struct level){ .dir = dir, .path_len = path_len };
	return 0;
}

/* Appends "/name" to the first @len bytes of the path. */
static int path_set(struct walk *w, size_t len, const struct tmpfs_dirent *de)
{
	size_t need = len + 1 + de->len + 1, cap;
	char *p;

	if (need > w->path_cap) {
		cap = MAX(need * 2, (size_t)PATH_START);
		p = realloc(w->path, cap);
		if (!p)
			return -ENOMEM;
		w->path = p;
		w->path_cap = cap;
	}
	w->path[len] = '/';
	memcpy(w->path + len + 1, de->name, de->len);
	w->path[len + 1 + de->len] = '\0';
	return 0;
}

/* What happened to an entry; 0: nothing by itself (a directory that is only there for what is below). */
static char change_of(const struct tmpfs_dirent *de)
{
	if (!de->in)
		return 'D';
	if (!(de->flags & TMPFS_DE_COVERS))
		return 'A';
	if (S_ISDIR(de->in->vfs.mode) && de->in->origin && !(de->in->flags & TMPFS_CHANGED))
		return 0;
	return 'M';
}

static bool report(struct walk *w, char op, const char *path, const struct tmpfs_inode *ti)
{
	struct overlay_change c = { .op = op, .path = path };

	if (ti) {
		c.mode = ti->vfs.mode;
		c.bytes = S_ISDIR(c.mode) ? 0 : ti->vfs.size;
	}
	return w->fn(&c, w->arg);
}

/* One entry of the innermost directory: 0 to go on, 1 to stop, or -errno. */
static int step(struct walk *w)
{
	struct level *l = &w->levels[w->n - 1];
	struct tmpfs_dirent *de = tmpfs_dir_next(l->dir, &l->cookie);
	char op;
	int err;

	if (!de) {
		w->n--;
		return 0;
	}
	err = path_set(w, l->path_len, de);
	if (err < 0)
		return err;
	op = change_of(de);
	if (op && !report(w, op, w->path, de->in))
		return 1;
	if (de->in && S_ISDIR(de->in->vfs.mode))
		return push(w, de->in, l->path_len + 1 + de->len);
	return 0;
}

int overlay_changes(struct super *sb, overlay_change_fn fn, void *arg)
{
	struct walk w = { .fn = fn, .arg = arg };
	struct tmpfs_inode *root = ovl_upper_of(sb->root);
	int r = 0;

	if (!root)
		return 0; /* a single file that was not changed */
	if (root->flags & TMPFS_CHANGED || !S_ISDIR(root->vfs.mode))
		r = report(&w, 'M', "/", root) ? 0 : 1;
	if (r == 0 && S_ISDIR(root->vfs.mode))
		r = push(&w, root, 0);
	while (r == 0 && w.n)
		r = step(&w);
	free(w.levels);
	free(w.path);
	return r < 0 ? r : 0;
}
