/* SPDX-License-Identifier: Apache-2.0 */
/* Permission of the guest's own credentials on what its file systems show. path_resolution(7), capabilities(7). */
#include "sentry/vfs/perm.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/stat.h>

#include "sentry/kernel/cred.h"
#include "sentry/vfs/vfs.h"

static int mode_check(const struct cred *c, const struct inode *in, int mask)
{
	uint32_t mode = in->mode;

	if (c->fsuid == in->uid)
		mode >>= 6;
	else if ((mode & 0070) >> 3 != (mode & 0007) && cred_in_group(c, in->gid))
		mode >>= 3;
	return (uint32_t)mask & ~mode & 7 ? -EACCES : 0;
}

int vfs_permission(const struct cred *c, struct inode *in, int mask)
{
	int err;

	if (in->ops->refresh) {
		err = in->ops->refresh(in);
		if (err)
			return err;
	}
	if (!mode_check(c, in, mask))
		return 0;
	if (S_ISDIR(in->mode)) {
		if (!(mask & MAY_WRITE) && cred_has_cap(c, CAP_DAC_READ_SEARCH))
			return 0;
		return cred_has_cap(c, CAP_DAC_OVERRIDE) ? 0 : -EACCES;
	}
	if (mask == MAY_READ && cred_has_cap(c, CAP_DAC_READ_SEARCH))
		return 0;
	/* Execution asks for one x bit at least, also of root. */
	if (!(mask & MAY_EXEC) || (in->mode & 0111))
		return cred_has_cap(c, CAP_DAC_OVERRIDE) ? 0 : -EACCES;
	return -EACCES;
}

bool inode_owner_or_cap(const struct cred *c, const struct inode *in)
{
	return c->fsuid == in->uid || cred_has_cap(c, CAP_FOWNER);
}

int path_want_write(const struct path *p)
{
	return p->mnt->flags & MNT_RDONLY ? -EROFS : 0;
}

int vfs_may_create(const struct cred *c, const struct path *dir)
{
	if (dir->dentry->dead)
		return -ENOENT;
	return vfs_permission(c, dir->dentry->inode, MAY_WRITE | MAY_EXEC);
}

int vfs_may_delete(const struct cred *c, const struct path *dir, const struct dentry *victim, bool want_dir)
{
	struct inode *d = dir->dentry->inode, *in = victim->inode;
	int err = vfs_permission(c, d, MAY_WRITE | MAY_EXEC);

	if (err)
		return err;
	/* The sticky bit: the owner of the file or of the directory. */
	if ((d->mode & S_ISVTX) && c->fsuid != in->uid && c->fsuid != d->uid && !cred_has_cap(c, CAP_FOWNER))
		return -EPERM;
	if (want_dir && !S_ISDIR(in->mode))
		return -ENOTDIR;
	if (!want_dir && S_ISDIR(in->mode))
		return -EISDIR;
	return dir->dentry->dead ? -ENOENT : 0;
}

uint32_t inode_new_mode(const struct cred *c, const struct inode *dir, uint32_t mode, gid_t *gid)
{
	*gid = c->fsgid;
	if (!(dir->mode & S_ISGID))
		return mode;
	*gid = dir->gid;
	if (S_ISDIR(mode))
		return mode | S_ISGID;
	if ((mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && !cred_in_group(c, dir->gid) &&
	    !cred_has_cap(c, CAP_FSETID))
		mode &= ~(uint32_t)S_ISGID;
	return mode;
}

uint32_t inode_mode_without_suid(const struct inode *in)
{
	uint32_t mode = in->mode & 07777;

	if (!S_ISREG(in->mode))
		return mode;
	/* S_ISGID without group execution once meant mandatory locking, and stays. */
	if ((mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		mode &= ~(uint32_t)S_ISGID;
	return mode & ~(uint32_t)S_ISUID;
}
