/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open(2): finding or making the file, permission, and the new description. An open of a FIFO may block; the
 * description is then held in task->op.data (pipe.h) and vfs_open() must not be run from the start again: open_resume()
 * goes on.
 */
#include "sentry/vfs/open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/perm.h"
#include "sentry/vfs/pipe.h"
#include "sentry/vfs/vfs.h"
#include "sentry/vfs/walk.h"

#define O_TMPFILE_BIT (O_TMPFILE & ~O_DIRECTORY)
#define O_LARGE       0100000u /* O_LARGEFILE is 0 in 64-bit headers, but F_GETFL shows it */
#define O_PATH_KEEP   (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define O_NOT_KEPT    (O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC)

int vfs_open_flags(uint32_t *flags, uint32_t *mode)
{
	uint32_t f = *flags;

	if (f & (O_CREAT | O_TMPFILE_BIT)) {
		if ((f & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY))
			return -EINVAL;
		*mode &= 07777;
	} else {
		*mode = 0;
	}
	if (f & O_PATH) {
		*flags = f & O_PATH_KEEP;
		return 0;
	}
	if (f & O_TMPFILE_BIT) {
		if (!(f & O_DIRECTORY) || (f & O_ACCMODE) == O_RDONLY)
			return -EINVAL;
	}
	/* O_SYNC implies O_DSYNC */
	if ((f & O_SYNC) == (O_SYNC & ~O_DSYNC))
		f |= O_DSYNC;
	*flags = f | O_LARGE;
	return 0;
}

static int access_mask(uint32_t flags)
{
	static const uint8_t by_mode[4] = {
		[O_RDONLY] = MAY_READ,
		[O_WRONLY] = MAY_WRITE,
		[O_RDWR] = MAY_READ | MAY_WRITE,
		[3] = MAY_READ | MAY_WRITE,
	};
	int mask = by_mode[flags & O_ACCMODE];

	return flags & O_TRUNC ? mask | MAY_WRITE : mask;
}

/* May @p be opened as @flags say? Linux: may_open. */
static int may_open(struct task *t, const struct path *p, uint32_t flags, bool created)
{
	struct inode *in = p->dentry->inode;
	int mask = created ? 0 : access_mask(flags), err;

	if (S_ISLNK(in->mode))
		return -ELOOP;
	if (S_ISDIR(in->mode) && (access_mask(flags) & MAY_WRITE))
		return -EISDIR;
	if ((S_ISCHR(in->mode) || S_ISBLK(in->mode)) && (p->mnt->flags & MNT_NODEV))
		return -EACCES;
	if ((access_mask(flags) & MAY_WRITE) && (S_ISREG(in->mode) || S_ISDIR(in->mode))) {
		err = path_want_write(p);
		if (err)
			return err;
	}
	/* Of an anonymous file: who may look into /proc/PID/fd has it already. */
	if (mask && t && !inode_is_anon(in)) {
		err = vfs_permission(t->cred, in, mask);
		if (err)
			return err;
	}
	if ((flags & O_NOATIME) && t && !inode_owner_or_cap(t->cred, in))
		return -EPERM;
	return 0;
}

/* Puts a description whose open failed: nothing was made that release would undo. */
static void file_discard(struct file *f)
{
	f->ops = NULL;
	file_put(f);
}

static struct file *new_file(const struct file_ops *ops, const struct path *p, uint32_t flags)
{
	struct file *f = file_create(ops, p->dentry->inode, flags & ~(uint32_t)(O_NOT_KEPT | O_TMPFILE_BIT));

	if (!f)
		return NULL;
	if (dentry_is_loose(p)) {
		f->anon_name = p->dentry->name;
		return f;
	}
	f->dentry = dentry_get(p->dentry);
	f->mnt = mount_get(p->mnt);
	return f;
}

static int open_fifo(struct task *t, const struct path *p, uint32_t flags, struct file **ret)
{
	struct file *f;
	int r;

	if (!t)
		return -ENXIO;
	f = new_file(&fifo_file_ops, p, flags);
	if (!f)
		return -ENFILE;
	r = (int)fifo_open(t, f->inode, f);
	if (!r) {
		*ret = f;
		return 0;
	}
	if (r == -ENXIO)
		file_discard(f); /* it has not joined the pipe */
	else
		file_put(f);
	return r;
}

int open_resume(struct task *t, struct file **ret)
{
	struct file *f = file_get(t->op.data);
	int r = (int)fifo_open(t, f->inode, f);

	if (r)
		file_put(f);
	else
		*ret = f;
	return r;
}

/* The O_TRUNC part, on the open file. */
static int open_truncate(struct task *t, struct file *f)
{
	if (!S_ISREG(f->inode->mode))
		return 0;
	/* O_RDONLY | O_TRUNC truncates, but not through the descriptor. */
	return vfs_truncate(t, f->inode, file_writable(f) ? f : NULL, 0);
}

static int open_inode(struct task *t, const struct path *p, uint32_t flags, bool created, struct file **ret)
{
	struct inode *in = p->dentry->inode;
	struct file *f;
	int err = 0;

	if (S_ISSOCK(in->mode))
		return -ENXIO;
	if (S_ISFIFO(in->mode) && !inode_is_anon(in))
		return open_fifo(t, p, flags, ret);
	f = new_file(in->fops, p, flags);
	if (!f)
		return -ENFILE;
	if (S_ISREG(in->mode) && file_writable(f)) {
		if (in->writers < 0)
			err = -ETXTBSY;
		else
			in->writers++;
		f->write_counted = !err;
	}
	if (!err && in->ops->open)
		err = in->ops->open(in, f);
	if (!err && !f->ops)
		err = -ENXIO;
	if (err) {
		file_discard(f);
		return err;
	}
	if ((flags & O_TRUNC) && !created && t)
		err = open_truncate(t, f);
	if (err)
		file_put(f);
	else
		*ret = f;
	return err;
}

static int open_place(struct task *t, const struct path *p, uint32_t flags, bool created, struct file **ret)
{
	struct inode *in = p->dentry->inode;
	int err;

	if ((flags & O_DIRECTORY) && !S_ISDIR(in->mode))
		return -ENOTDIR;
	if (flags & O_PATH) {
		*ret = new_file(NULL, p, flags);
		return *ret ? 0 : -ENFILE;
	}
	err = may_open(t, p, flags, created);
	return err ? err : open_inode(t, p, flags, created, ret);
}

int vfs_open_place(struct task *t, struct path *p, uint32_t flags, struct file **ret)
{
	return open_place(t, p, flags & ~(uint32_t)(O_CREAT | O_EXCL), false, ret);
}

/* Makes the file of which *p is the negative dentry. */
static int open_create(struct task *t, const struct path *p, uint32_t mode)
{
	struct path dir = { p->mnt, p->dentry->parent };
	struct inode *d = dir.dentry->inode, *in;
	struct qname q = dentry_qname(p->dentry);
	uid_t uid = t ? t->cred->fsuid : 0;
	gid_t gid = 0;
	int err = path_want_write(p);

	if (!err && t)
		err = vfs_may_create(t->cred, &dir);
	if (err)
		return err;
	if (!d->ops->create)
		return -EACCES; /* as Linux's vfs_create */
	if (t)
		mode = inode_new_mode(t->cred, d, S_IFREG | (mode & ~t->fs->umask), &gid) & 07777;
	err = d->ops->create(d, &q, mode, uid, gid, &in);
	if (!err)
		dentry_instantiate(p->dentry, in);
	return err;
}

/* The last component of an open with O_CREAT: w->cur is its directory. 1: a symlink to go on with. */
static int creat_last(struct walk *w, uint32_t flags, uint32_t mode, bool *created)
{
	int r;

	if (w->kind != LAST_NORM)
		return flags & O_EXCL ? -EEXIST : -EISDIR;
	if (w->slash)
		return -EISDIR;
	r = walk_step(w);
	if (r)
		return r;
	if (!w->cur.dentry->inode) {
		r = open_create(w->task, &w->cur, mode);
		if (r == -EEXIST)
			dentry_drop(w->cur.dentry); /* the host made it meanwhile */
		*created = !r;
		return r;
	}
	if (flags & O_EXCL)
		return -EEXIST;
	return S_ISDIR(w->cur.dentry->inode->mode) ? -EISDIR : 0;
}

static int open_creat_once(struct task *t, int dirfd, const char *path, uint32_t flags, uint32_t mode, unsigned wf,
			   struct file **ret)
{
	bool created = false;
	struct walk w;
	int r;

	if (!(flags & (O_NOFOLLOW | O_EXCL)))
		wf |= WALK_FOLLOW;
	else
		wf &= ~WALK_FOLLOW;
	r = walk_begin(&w, t, dirfd, NULL, path, wf | WALK_CREATE);
	if (r)
		return r;
	do {
		r = walk_parent(&w);
		if (!r)
			r = creat_last(&w, flags, mode, &created);
	} while (r > 0);
	if (!r)
		r = open_place(t, &w.cur, flags, created, ret);
	walk_end(&w);
	return r;
}

static int open_creat(struct task *t, int dirfd, const char *path, uint32_t flags, uint32_t mode, unsigned wf,
		      struct file **ret)
{
	int r = open_creat_once(t, dirfd, path, flags, mode, wf, ret);

	/* Lost a race with the host on a live grant: what it made is opened then. */
	if (r == -EEXIST && !(flags & O_EXCL))
		r = open_creat_once(t, dirfd, path, flags, mode, wf, ret);
	return r;
}

static int open_tmpfile(struct task *t, const struct path *dir, uint32_t flags, uint32_t mode, struct file **ret)
{
	struct inode *d = dir->dentry->inode, *in;
	struct path p = { dir->mnt };
	gid_t gid;
	int err = path_want_write(dir);

	if (!err)
		err = vfs_may_create(t->cred, dir);
	if (err)
		return err;
	if (!d->ops->tmpfile)
		return -EOPNOTSUPP;
	mode = inode_new_mode(t->cred, d, S_IFREG | (mode & ~t->fs->umask), &gid) & 07777;
	err = d->ops->tmpfile(d, mode, t->cred->fsuid, gid, &in);
	if (err)
		return err;
	if (!(flags & O_EXCL))
		in->vflags |= INODE_LINKABLE;
	p.dentry = dentry_create_tmpfile(dir->dentry, in);
	inode_put(in);
	if (!p.dentry)
		return -ENOMEM;
	err = open_inode(t, &p, flags & ~(uint32_t)O_DIRECTORY, true, ret);
	dentry_put(p.dentry);
	return err;
}

int vfs_open(struct task *t, int dirfd, const char *path, uint32_t flags, uint32_t mode, unsigned walk_flags,
	     struct file **ret)
{
	struct path p;
	int err;

	if ((flags & (O_CREAT | O_PATH)) == O_CREAT)
		return open_creat(t, dirfd, path, flags, mode, walk_flags, ret);
	if (flags & O_NOFOLLOW)
		walk_flags &= ~WALK_FOLLOW;
	else
		walk_flags |= WALK_FOLLOW;
	if (flags & O_DIRECTORY)
		walk_flags |= WALK_DIRECTORY;
	err = path_walk(t, dirfd, path, walk_flags, &p);
	if (err)
		return err;
	if ((flags & O_TMPFILE_BIT) && !(flags & O_PATH) && t)
		err = open_tmpfile(t, &p, flags, mode, ret);
	else
		err = open_place(t, &p, flags, false, ret);
	path_put(&p);
	return err;
}
