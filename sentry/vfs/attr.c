/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: what stat shows, and the checks before they are changed. */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/perm.h"
#include "sentry/vfs/vfs.h"

int vfs_getattr_inode(struct inode *in, struct kstat *st)
{
	if (in->ops->settle)
		in->ops->settle(in);
	if (in->ops->refresh) {
		int err = in->ops->refresh(in);

		if (err)
			return err;
	}
	*st = (struct kstat){
		.ino = in->ino,
		.dev = in->sb->dev,
		.mode = in->mode,
		.nlink = in->nlink,
		.uid = in->uid,
		.gid = in->gid,
		.rdev = in->rdev,
		.size = in->size,
		.blocks = in->blocks,
		.blksize = PAGE_SIZE,
		.atime = in->atime,
		.mtime = in->mtime,
		.ctime = in->ctime,
		.btime = in->btime,
	};
	return 0;
}

int vfs_getattr(const struct path *p, struct kstat *st)
{
	return vfs_getattr_inode(p->dentry->inode, st);
}

static int may_chown(const struct cred *c, const struct inode *in, const struct iattr *attr)
{
	bool owner = c->fsuid == in->uid;

	if (cred_has_cap(c, CAP_CHOWN))
		return 0;
	if ((attr->valid & ATTR_UID) && !(owner && attr->uid == in->uid))
		return -EPERM;
	if ((attr->valid & ATTR_GID) && !(owner && (attr->gid == in->gid || cred_in_group(c, attr->gid))))
		return -EPERM;
	return 0;
}

static int may_set_times(const struct cred *c, struct inode *in, bool touch)
{
	if (inode_owner_or_cap(c, in))
		return 0;
	return touch ? vfs_permission(c, in, MAY_WRITE) : -EPERM;
}

static int may_setattr(const struct cred *c, struct inode *in, struct iattr *attr)
{
	int err = 0;

	if (attr->valid & (ATTR_UID | ATTR_GID))
		err = may_chown(c, in, attr);
	if (!err && (attr->valid & ATTR_MODE)) {
		gid_t gid = attr->valid & ATTR_GID ? attr->gid : in->gid;

		if (!inode_owner_or_cap(c, in))
			return -EPERM;
		if (!cred_in_group(c, gid) && !cred_has_cap(c, CAP_FSETID))
			attr->mode &= ~(uint32_t)S_ISGID;
	}
	if (!err && (attr->valid & (ATTR_ATIME | ATTR_MTIME)))
		err = may_set_times(c, in, attr->valid & ATTR_TOUCH);
	return err;
}

int vfs_setattr(struct task *t, const struct path *p, struct iattr *attr)
{
	struct inode *in = p->dentry->inode;
	int err = path_want_write(p);

	if (!err && in->ops->refresh)
		err = in->ops->refresh(in);
	if (!err)
		err = may_setattr(t->cred, in, attr);
	if (err)
		return err;
	/* chown(2): a change of owner takes the set-id bits of a program, also for root. */
	if ((attr->valid & (ATTR_UID | ATTR_GID)) && S_ISREG(in->mode) && !(attr->valid & ATTR_MODE) &&
	    inode_mode_without_suid(in) != (in->mode & 07777)) {
		attr->valid |= ATTR_MODE;
		attr->mode = inode_mode_without_suid(in);
	}
	if (!in->ops->setattr)
		return -EPERM;
	attr->valid &= ~ATTR_TOUCH;
	return in->ops->setattr(in, attr);
}

int vfs_truncate(struct task *t, struct inode *in, struct file *f, int64_t size)
{
	struct iattr attr = { .valid = ATTR_SIZE, .size = (uint64_t)size };
	int err = 0;

	if (size < 0)
		return -EINVAL;
	if (S_ISDIR(in->mode))
		return -EISDIR;
	if (!S_ISREG(in->mode))
		return -EINVAL;
	if (in->writers < 0)
		return -ETXTBSY;
	if ((uint64_t)size > in->size && (uint64_t)size > task_rlimit(t, RLIMIT_FSIZE)) {
		sig_send_self(t, SIGXFSZ);
		return -EFBIG;
	}
	if (f && f->ops && f->ops->truncate) {
		err = f->ops->truncate(f, attr.size);
		attr.valid = 0;
	}
	if ((in->mode & (S_ISUID | S_ISGID)) && !cred_has_cap(t->cred, CAP_FSETID)) {
		attr.mode = inode_mode_without_suid(in);
		if (attr.mode != (in->mode & 07777))
			attr.valid |= ATTR_MODE;
	}
	if (err || !attr.valid)
		return err;
	return in->ops->setattr ? in->ops->setattr(in, &attr) : -EPERM;
}

int vfs_statfs(struct super *sb, struct kstatfs *st)
{
	*st = (struct kstatfs){ .type = sb->magic, .bsize = PAGE_SIZE, .namelen = NAME_MAX_LINUX };
	return sb->ops && sb->ops->statfs ? sb->ops->statfs(sb, st) : 0;
}
