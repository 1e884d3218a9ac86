/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/vfs/nameops.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/perm.h"
#include "sentry/vfs/vfs.h"

#define LINK_MAX_LINUX 65000 /* as ext4 */

/* A name in a directory, looked up: what the calls below work on. */
struct spot {
	struct path dir;       /* counted */
	struct dentry *dentry; /* counted; perhaps negative */
	enum last_kind kind;
	bool slash;
};

static void spot_put(struct spot *s)
{
	dentry_put(s->dentry);
	path_put(&s->dir);
	s->dentry = NULL;
}

/* Everything but the last lookup: some errors come between. */
static int spot_parent(struct task *t, int dirfd, const char *path, struct spot *s, char *name)
{
	s->dentry = NULL;
	return path_walk_parent(t, dirfd, path, 0, &s->dir, name, &s->kind, &s->slash);
}

static int spot_lookup(struct spot *s, const char *name)
{
	return dentry_lookup(s->dir.dentry, name, strlen(name), &s->dentry);
}

/* For calls that make a name. Linux: filename_create. */
static int spot_create(struct task *t, int dirfd, const char *path, bool is_dir, struct spot *s)
{
	char name[NAME_MAX_LINUX + 1];
	int err = spot_parent(t, dirfd, path, s, name);

	if (err)
		return err;
	if (s->kind != LAST_NORM) {
		err = -EEXIST;
		goto fail;
	}
	err = spot_lookup(s, name);
	if (err)
		goto fail;
	if (s->dentry->inode)
		err = -EEXIST;
	else if (s->slash && !is_dir)
		err = -ENOENT;
	else
		err = path_want_write(&s->dir);
	if (!err)
		err = vfs_may_create(t->cred, &s->dir);
	if (!err)
		return 0;
fail:
	spot_put(s);
	return err;
}

/* What a file system's creation gave: @in becomes the dentry's. */
static int spot_made(struct spot *s, int err, struct inode *in)
{
	if (!err)
		dentry_instantiate(s->dentry, in);
	else if (err == -EEXIST)
		dentry_drop(s->dentry); /* the negative entry was wrong: the host made it */
	return err;
}

int vfs_mkdir(struct task *t, int dirfd, const char *path, uint32_t mode)
{
	struct inode *in = NULL, *d;
	struct spot s;
	struct qname q;
	gid_t gid;
	int err = spot_create(t, dirfd, path, true, &s);

	if (err)
		return err;
	d = s.dir.dentry->inode;
	q = dentry_qname(s.dentry);
	/* mkdir(2): permission bits and the sticky bit. */
	mode = inode_new_mode(t->cred, d, S_IFDIR | (mode & 01777 & ~t->fs->umask), &gid) & 07777;
	err = d->ops->mkdir ? d->ops->mkdir(d, &q, mode, t->cred->fsuid, gid, &in) : -EPERM;
	err = spot_made(&s, err, in);
	spot_put(&s);
	return err;
}

static int mknod_type_check(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case 0:
	case S_IFREG:
	case S_IFIFO:
	case S_IFSOCK:
	case S_IFCHR:
	case S_IFBLK:
		return 0;
	case S_IFDIR:
		return -EPERM;
	default:
		return -EINVAL;
	}
}

static int do_mknod(struct inode *d, const struct qname *q, uint32_t mode, uint64_t rdev, uid_t uid, gid_t gid,
		    struct inode **in)
{
	/* Not with CAP_MKNOD either: the sandbox has the devices of /dev and no others. */
	if (S_ISCHR(mode) || S_ISBLK(mode))
		return -EPERM;
	if (S_ISREG(mode))
		return d->ops->create ? d->ops->create(d, q, mode & 07777, uid, gid, in) : -EACCES;
	return d->ops->mknod ? d->ops->mknod(d, q, mode, rdev, uid, gid, in) : -EPERM;
}

int vfs_mknod(struct task *t, int dirfd, const char *path, uint32_t mode, uint64_t rdev, struct path *out)
{
	struct inode *in = NULL, *d;
	struct spot s;
	struct qname q;
	gid_t gid;
	int err = mknod_type_check(mode);

	if (err)
		return err;
	if (!(mode & S_IFMT))
		mode |= S_IFREG;
	err = spot_create(t, dirfd, path, false, &s);
	if (err)
		return err;
	d = s.dir.dentry->inode;
	q = dentry_qname(s.dentry);
	mode = inode_new_mode(t->cred, d, mode & ~t->fs->umask, &gid);
	err = do_mknod(d, &q, mode, rdev, t->cred->fsuid, gid, &in);
	err = spot_made(&s, err, in);
	if (!err && out) {
		*out = (struct path){ s.dir.mnt, s.dentry };
		path_get(out);
	}
	spot_put(&s);
	return err;
}

int vfs_make_node(const struct path *dir, const char *name, uint32_t mode, struct path *out)
{
	struct inode *d = dir->dentry->inode, *in = NULL;
	struct spot s = { .dir = *dir };
	struct qname q;
	int err = dentry_lookup(dir->dentry, name, strlen(name), &s.dentry);

	if (err)
		return err;
	q = dentry_qname(s.dentry);
	if (s.dentry->inode) {
		err = -EEXIST;
	} else {
		if (S_ISDIR(mode))
			err = d->ops->mkdir ? d->ops->mkdir(d, &q, mode & 07777, 0, 0, &in) : -EPERM;
		else
			err = do_mknod(d, &q, mode, 0, 0, 0, &in);
		err = spot_made(&s, err, in);
	}
	if (!err) {
		*out = (struct path){ dir->mnt, s.dentry };
		path_get(out);
	}
	dentry_put(s.dentry);
	return err;
}

int vfs_symlink(struct task *t, const char *target, int dirfd, const char *path)
{
	struct inode *in = NULL, *d;
	struct spot s;
	struct qname q;
	gid_t gid;
	int err;

	if (!*target)
		return -ENOENT;
	err = spot_create(t, dirfd, path, false, &s);
	if (err)
		return err;
	d = s.dir.dentry->inode;
	q = dentry_qname(s.dentry);
	inode_new_mode(t->cred, d, S_IFLNK | 0777, &gid);
	err = d->ops->symlink ? d->ops->symlink(d, &q, target, t->cred->fsuid, gid, &in) : -EPERM;
	err = spot_made(&s, err, in);
	spot_put(&s);
	return err;
}

static int link_check(const struct path *old, const struct spot *s)
{
	struct inode *in = old->dentry->inode;

	if (old->mnt != s->dir.mnt)
		return -EXDEV;
	if (S_ISDIR(in->mode) || !s->dir.dentry->inode->ops->link)
		return -EPERM;
	if (!in->nlink && !(in->vflags & INODE_LINKABLE))
		return -ENOENT;
	return in->nlink >= LINK_MAX_LINUX ? -EMLINK : 0;
}

int vfs_link(struct task *t, const struct path *old, int dirfd, const char *path)
{
	struct inode *in = old->dentry->inode, *d;
	struct spot s;
	struct qname q;
	int err = spot_create(t, dirfd, path, false, &s);

	if (err)
		return err;
	err = link_check(old, &s);
	if (err)
		goto out;
	d = s.dir.dentry->inode;
	q = dentry_qname(s.dentry);
	err = spot_made(&s, d->ops->link(d, &q, in), in);
	if (!err) {
		inode_get(in); /* the dentry's */
		in->vflags &= ~INODE_LINKABLE;
	}
out:
	spot_put(&s);
	return err;
}

int vfs_unlink(struct task *t, int dirfd, const char *path)
{
	char name[NAME_MAX_LINUX + 1];
	struct inode *in, *d;
	struct spot s;
	struct qname q;
	int err = spot_parent(t, dirfd, path, &s, name);

	if (err)
		return err;
	err = s.kind == LAST_NORM ? path_want_write(&s.dir) : -EISDIR;
	if (!err)
		err = spot_lookup(&s, name);
	if (err)
		goto out;
	in = s.dentry->inode;
	if (!in)
		err = -ENOENT;
	else if (s.slash)
		err = S_ISDIR(in->mode) ? -EISDIR : -ENOTDIR;
	else
		err = vfs_may_delete(t->cred, &s.dir, s.dentry, false);
	if (!err && s.dentry->mounted)
		err = -EBUSY;
	if (err)
		goto out;
	d = s.dir.dentry->inode;
	q = dentry_qname(s.dentry);
	err = d->ops->unlink ? d->ops->unlink(d, &q, in) : -EPERM;
	if (!err)
		dentry_remove(s.dentry);
	else if (err == -ENOENT)
		dentry_drop(s.dentry);
out:
	spot_put(&s);
	return err;
}

static int rmdir_kind(enum last_kind kind)
{
	switch (kind) {
	case LAST_DOTDOT:
		return -ENOTEMPTY;
	case LAST_DOT:
		return -EINVAL;
	case LAST_ROOT:
		return -EBUSY;
	case LAST_NORM:
		break;
	}
	return 0;
}

int vfs_rmdir(struct task *t, int dirfd, const char *path)
{
	char name[NAME_MAX_LINUX + 1];
	struct inode *d;
	struct spot s;
	struct qname q;
	int err = spot_parent(t, dirfd, path, &s, name);

	if (err)
		return err;
	err = rmdir_kind(s.kind);
	if (!err)
		err = path_want_write(&s.dir);
	if (!err)
		err = spot_lookup(&s, name);
	if (err)
		goto out;
	err = s.dentry->inode ? vfs_may_delete(t->cred, &s.dir, s.dentry, true) : -ENOENT;
	if (!err && s.dentry->mounted)
		err = -EBUSY;
	if (err)
		goto out;
	d = s.dir.dentry->inode;
	q = dentry_qname(s.dentry);
	err = d->ops->rmdir ? d->ops->rmdir(d, &q, s.dentry->inode) : -EPERM;
	if (!err)
		dentry_remove(s.dentry);
	else if (err == -ENOENT)
		dentry_drop(s.dentry);
out:
	spot_put(&s);
	return err;
}
