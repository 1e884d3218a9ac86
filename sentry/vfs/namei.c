/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path walk: path_resolution(7), openat2(2). One component at a time, over the dentry cache. A symlink's body
 * becomes the string being walked, and what was left of the outer one is kept in walk.rest; so there is no recursion.
 * Bodies live in a pool that is used like a stack, because a file system may walk while it is being walked.
 *
 * A typical sequence is: walk_begin(), walk_parent(), walk_step(); while the latter returns 1, the two again;
 * walk_end().
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/vfs.h"
#include "sentry/vfs/walk.h"

#define WALK_SCOPED (WALK_BENEATH | WALK_IN_ROOT)
#define POOL_LINKS  (2 * MAX_SYMLINKS)

static char link_pool[POOL_LINKS][PATH_MAX_LINUX];
static unsigned pool_used;

static bool is_dir(const struct dentry *d)
{
	return d->inode && S_ISDIR(d->inode->mode);
}

static bool same_place(const struct path *a, const struct path *b)
{
	return a->dentry == b->dentry && a->mnt == b->mnt;
}

/* Replaces w->cur; consumes the references of @p. */
static void go(struct walk *w, struct path p)
{
	struct path old = w->cur;

	w->cur = p;
	path_put(&old);
}

/* Consumes the references of @p and gives those of what is mounted there. */
static struct path cross_mounts(struct path p)
{
	struct mount *m;

	while (p.dentry->mounted && (m = mount_peek(p.mnt, p.dentry))) {
		struct path up = { mount_get(m), dentry_get(m->root) };

		path_put(&p);
		p = up;
	}
	return p;
}

/* Where a relative path begins: counted. */
static int start_place(struct task *t, int dirfd, const struct path *from, const char *path, struct path *out)
{
	struct file *f;
	int err;

	if (from || dirfd == AT_FDCWD) {
		*out = from ? *from : t->fs->cwd;
		path_get(out);
		return 0;
	}
	err = fd_get_opath(t, dirfd, &f);
	if (err)
		return err;
	if (*path && !S_ISDIR(f->inode->mode))
		err = -ENOTDIR;
	else
		err = file_place(f, &out->dentry, &out->mnt);
	file_put(f);
	return err;
}

int walk_begin(struct walk *w, struct task *t, int dirfd, const struct path *from, const char *path, unsigned flags)
{
	struct path start = { 0 };
	int err;

	w->task = t;
	w->cred = t ? t->cred : NULL;
	w->flags = flags;
	w->root = t ? t->fs->root : (struct path){ kernel.mnt_ns->root, kernel.mnt_ns->root->root };
	w->scope = (struct path){ 0 };
	w->p = path;
	w->depth = w->links = 0;
	w->name = path;
	w->len = 0;
	w->kind = LAST_ROOT;
	w->last = true;
	w->slash = false;
	if (!*path && !(flags & WALK_EMPTY))
		return -ENOENT;
	if (*path == '/' && (flags & WALK_BENEATH))
		return -EXDEV;
	if (*path == '/' && !(flags & WALK_SCOPED)) {
		start = w->root;
		path_get(&start);
	} else {
		err = start_place(t, dirfd, from, path, &start);
		if (err)
			return err;
	}
	if (flags & WALK_SCOPED) {
		w->scope = start;
		path_get(&w->scope);
		w->root = start;
	}
	w->cur = start;
	w->pool_mark = pool_used;
	return 0;
}

void walk_end(struct walk *w)
{
	pool_used = w->pool_mark;
	if (w->cur.dentry)
		path_put(&w->cur);
	if (w->scope.dentry)
		path_put(&w->scope);
}

static const char *skip_slashes(const char *p)
{
	while (*p == '/')
		p++;
	return p;
}

/* Looks past the component: does another one follow, or slashes? */
static void look_ahead(struct walk *w)
{
	const char *p = skip_slashes(w->p);

	w->slash = p != w->p;
	w->p = p;
	w->last = !*p;
	for (unsigned i = w->depth; i > 0 && w->last; i--) {
		p = skip_slashes(w->rest[i - 1]);
		w->slash |= p != w->rest[i - 1];
		w->last = !*p;
	}
}

/* Cuts the next component off. 1; 0 at the end. */
static int next_component(struct walk *w)
{
	const char *end;

	w->p = skip_slashes(w->p);
	while (!*w->p) {
		if (!w->depth)
			return 0;
		w->p = skip_slashes(w->rest[--w->depth]);
	}
	end = strchrnul(w->p, '/');
	w->name = w->p;
	if (end - w->p > NAME_MAX_LINUX)
		return -ENAMETOOLONG;
	w->len = (uint32_t)(end - w->p);
	w->p = end;
	w->kind = LAST_NORM;
	if (w->name[0] == '.' && w->len == 1)
		w->kind = LAST_DOT;
	else if (w->name[0] == '.' && w->len == 2 && w->name[1] == '.')
		w->kind = LAST_DOTDOT;
	look_ahead(w);
	return 1;
}

static int may_search(const struct walk *w)
{
	struct inode *in = w->cur.dentry->inode;

	if (!S_ISDIR(in->mode))
		return -ENOTDIR;
	if (!w->cred || (!in->ops->refresh && (in->mode & 0111) == 0111))
		return 0;
	return vfs_permission(w->cred, in, MAY_EXEC);
}

int walk_parent(struct walk *w)
{
	int r;

	for (;;) {
		r = next_component(w);
		if (r < 0)
			return r;
		if (!r) {
			/* Only slashes, or "": the place itself. */
			w->kind = LAST_ROOT;
			w->last = true;
			return 0;
		}
		r = may_search(w);
		if (r || w->last)
			return r;
		r = walk_step(w);
		if (r < 0)
			return r;
	}
}

static int step_dotdot(struct walk *w)
{
	struct path p = w->cur;

	if (same_place(&p, &w->root))
		return w->flags & WALK_BENEATH ? -EXDEV : 0;
	while (p.dentry == p.mnt->root) {
		if (!p.mnt->parent)
			return 0; /* the root of all */
		if (w->flags & WALK_NO_XDEV)
			return -EXDEV;
		p = (struct path){ p.mnt->parent, p.mnt->mountpoint };
		if (same_place(&p, &w->root))
			break;
	}
	if (!same_place(&p, &w->root))
		p.dentry = p.dentry->parent;
	path_get(&p);
	p = cross_mounts(p);
	if ((w->flags & WALK_NO_XDEV) && p.mnt != w->cur.mnt) {
		path_put(&p);
		return -EXDEV;
	}
	go(w, p);
	return 0;
}

/* A magic link: straight to its place. */
static int step_magic(struct walk *w, struct inode *in)
{
	struct path p = { 0 };
	int err;

	if (w->flags & WALK_NO_MAGIC)
		return -ELOOP;
	err = in->ops->follow(in, w->task, &p.dentry, &p.mnt);
	if (err)
		return err;
	if ((w->flags & WALK_SCOPED) || ((w->flags & WALK_NO_XDEV) && p.mnt != w->cur.mnt)) {
		path_put(&p);
		return -EXDEV;
	}
	go(w, p);
	return 0;
}

/* 1 when the body is to be walked from w->cur; 0 when a magic link has moved it. */
static int step_link(struct walk *w, struct inode *in)
{
	char *body;
	int n;

	if (++w->links > MAX_SYMLINKS || (w->flags & WALK_NO_SYMLINK))
		return -ELOOP;
	if (in->ops->follow)
		return step_magic(w, in);
	if (!in->ops->readlink)
		return -EINVAL;
	if (pool_used == POOL_LINKS)
		return -ELOOP;
	body = link_pool[pool_used++];
	n = in->ops->readlink(in, body, PATH_MAX_LINUX - 1);
	if (n <= 0)
		return n ? n : -ENOENT;
	body[n] = '\0';
	if (body[0] == '/') {
		struct path p = w->root;

		if ((w->flags & WALK_BENEATH) || ((w->flags & WALK_NO_XDEV) && p.mnt != w->cur.mnt))
			return -EXDEV;
		path_get(&p);
		go(w, p);
	}
	/* look_ahead() ate the slashes: where a component follows, one is put back by stepping before it. */
	if (*w->p)
		w->rest[w->depth++] = w->p - 1;
	else if (w->slash)
		w->rest[w->depth++] = "/";
	w->p = body;
	return 1;
}

static int step_name(struct walk *w)
{
	struct path p = { w->cur.mnt };
	struct inode *in;
	int r;

	r = dentry_lookup_walk(w->cur.dentry, w, &p.dentry);
	if (r)
		return r;
	mount_get(p.mnt);
	if (p.dentry->mounted) {
		p = cross_mounts(p);
		r = (w->flags & WALK_NO_XDEV) && p.mnt != w->cur.mnt ? -EXDEV : 0;
		if (r)
			goto out;
	}
	in = p.dentry->inode;
	if (!in) {
		if (w->last && (w->flags & WALK_CREATE)) {
			go(w, p);
			return 0;
		}
		r = -ENOENT;
	} else if (S_ISLNK(in->mode) && (!w->last || w->slash || (w->flags & WALK_FOLLOW))) {
		r = step_link(w, in);
	} else {
		go(w, p);
		return 0;
	}
out:
	path_put(&p);
	return r;
}

int walk_step(struct walk *w)
{
	int r = 0;

	if (w->kind == LAST_NORM)
		r = step_name(w);
	else if (w->kind == LAST_DOTDOT)
		r = step_dotdot(w);
	if (r == 0 && !w->last && !is_dir(w->cur.dentry))
		r = -ENOTDIR;
	return r;
}

static int walk_all(struct walk *w)
{
	int r;

	do {
		r = walk_parent(w);
		if (!r && w->kind != LAST_ROOT)
			r = walk_step(w);
	} while (r > 0);
	if (r)
		return r;
	if (!w->cur.dentry->inode)
		return w->slash ? -ENOENT : 0;
	if ((w->slash || (w->flags & WALK_DIRECTORY)) && !is_dir(w->cur.dentry))
		return -ENOTDIR;
	return 0;
}

static int walk_whole(struct task *t, int dirfd, const struct path *from, const char *path, unsigned flags,
		      struct path *out)
{
	struct walk w;
	int err = walk_begin(&w, t, dirfd, from, path, flags);

	if (err)
		return err;
	err = walk_all(&w);
	if (!err) {
		*out = w.cur;
		w.cur = (struct path){ 0 };
	}
	walk_end(&w);
	return err;
}

int path_walk(struct task *t, int dirfd, const char *path, unsigned flags, struct path *out)
{
	return walk_whole(t, dirfd, NULL, path, flags, out);
}

int path_walk_at(struct task *t, const struct path *from, const char *path, unsigned flags, struct path *out)
{
	return walk_whole(t, AT_FDCWD, from, path, flags, out);
}

int path_walk_parent(struct task *t, int dirfd, const char *path, unsigned flags, struct path *dir, char *name,
		     enum last_kind *kind, bool *trailing_slash)
{
	struct walk w;
	int err = walk_begin(&w, t, dirfd, NULL, path, flags);

	if (err)
		return err;
	err = walk_parent(&w);
	if (!err) {
		*kind = w.kind;
		*trailing_slash = w.slash;
		memcpy(name, w.name, w.len);
		name[w.len] = '\0';
		*dir = w.cur;
		w.cur = (struct path){ 0 };
	}
	walk_end(&w);
	return err;
}
