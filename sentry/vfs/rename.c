/* SPDX-License-Identifier: Apache-2.0 */
/* rename(2), renameat2(2). The order of the checks is Linux's do_renameat2 and vfs_rename. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/kernel/task.h"
#include "sentry/vfs/nameops.h"
#include "sentry/vfs/perm.h"
#include "sentry/vfs/vfs.h"

struct side {
	struct path dir;       /* counted */
	struct dentry *dentry; /* counted */
	char name[NAME_MAX_LINUX + 1];
	enum last_kind kind;
	bool slash;
};

static void side_put(struct side *s)
{
	dentry_put(s->dentry);
	path_put(&s->dir);
}

static int side_parent(struct task *t, int dirfd, const char *path, struct side *s)
{
	return path_walk_parent(t, dirfd, path, 0, &s->dir, s->name, &s->kind, &s->slash);
}

static int side_lookup(struct side *s)
{
	return dentry_lookup(s->dir.dentry, s->name, strlen(s->name), &s->dentry);
}

static bool is_dir(const struct side *s)
{
	return S_ISDIR(s->dentry->inode->mode);
}

static int check_parents(const struct side *o, const struct side *n, unsigned flags)
{
	if (o->dir.mnt != n->dir.mnt)
		return -EXDEV;
	if (o->kind != LAST_NORM)
		return -EBUSY;
	if (n->kind != LAST_NORM)
		return flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
	return path_want_write(&o->dir);
}

static int check_names(const struct side *o, const struct side *n, unsigned flags)
{
	bool exchange = flags & RENAME_EXCHANGE;

	/* Finding the new name may have moved what was found at the old one (dcache.c). */
	if (!o->dentry->inode || o->dentry->parent != o->dir.dentry)
		return -ENOENT;
	if ((flags & RENAME_NOREPLACE) && n->dentry->inode)
		return -EEXIST;
	if (exchange) {
		if (!n->dentry->inode)
			return -ENOENT;
		if (!is_dir(n) && n->slash)
			return -ENOTDIR;
	}
	if (!is_dir(o) && (o->slash || (!exchange && n->slash)))
		return -ENOTDIR;
	/* Into itself; or over what contains it. */
	if (dentry_is_ancestor(o->dentry, n->dir.dentry))
		return -EINVAL;
	if (dentry_is_ancestor(n->dentry, o->dir.dentry))
		return exchange ? -EINVAL : -ENOTEMPTY;
	return 0;
}

static int check_permission(struct task *t, const struct side *o, const struct side *n, unsigned flags)
{
	bool exchange = flags & RENAME_EXCHANGE, moves = o->dir.dentry != n->dir.dentry;
	int err = vfs_may_delete(t->cred, &o->dir, o->dentry, is_dir(o));

	if (err)
		return err;
	if (!n->dentry->inode)
		err = vfs_may_create(t->cred, &n->dir);
	else
		err = vfs_may_delete(t->cred, &n->dir, n->dentry, exchange ? is_dir(n) : is_dir(o));
	if (err)
		return err;
	/* A directory that moves gets another "..": it is written to. */
	if (moves && is_dir(o))
		err = vfs_permission(t->cred, o->dentry->inode, MAY_WRITE);
	if (!err && moves && exchange && is_dir(n))
		err = vfs_permission(t->cred, n->dentry->inode, MAY_WRITE);
	if (!err && (o->dentry->mounted || n->dentry->mounted))
		err = -EBUSY;
	return err;
}

static int do_rename(struct task *t, struct side *o, struct side *n, unsigned flags)
{
	struct inode *od = o->dir.dentry->inode, *nd = n->dir.dentry->inode;
	struct qname oq, nq;
	int err = check_names(o, n, flags);

	if (err)
		return err;
	if (o->dentry->inode == n->dentry->inode)
		return 0; /* rename(2): links to one file */
	err = check_permission(t, o, n, flags);
	if (err)
		return err;
	if (!od->ops->rename)
		return -EPERM;
	oq = dentry_qname(o->dentry);
	nq = dentry_qname(n->dentry);
	err = od->ops->rename(od, &oq, o->dentry->inode, nd, &nq, n->dentry->inode, flags);
	if (err == -ENOENT || err == -EEXIST) {
		/* What was cached is not what the file system has: look again next time. */
		dentry_drop(o->dentry);
		dentry_drop(n->dentry);
	}
	if (err)
		return err;
	if (flags & RENAME_EXCHANGE)
		dentry_exchange(o->dentry, n->dentry);
	else
		dentry_rename(o->dentry, n->dentry);
	return 0;
}

int vfs_rename(struct task *t, int odirfd, const char *opath, int ndirfd, const char *npath, unsigned flags)
{
	struct side o = { .dentry = NULL }, n = { .dentry = NULL };
	int err;

	/* RENAME_WHITEOUT makes a device node, which no file system of the sandbox takes. */
	if ((flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE)) ||
	    flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	err = side_parent(t, odirfd, opath, &o);
	if (err)
		return err;
	err = side_parent(t, ndirfd, npath, &n);
	if (!err)
		err = check_parents(&o, &n, flags);
	if (!err)
		err = side_lookup(&o);
	if (!err)
		err = side_lookup(&n);
	if (!err)
		err = do_rename(t, &o, &n, flags);
	side_put(&n);
	side_put(&o);
	return err;
}
