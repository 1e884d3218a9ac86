/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/vfs/xattr.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/xattr.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/perm.h"
#include "sentry/vfs/vfs.h"

static bool has_prefix(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* user.*: only files and directories, by their permission bits. */
static int user_permission(const struct cred *c, struct inode *in, int mask)
{
	if (!S_ISREG(in->mode) && !S_ISDIR(in->mode))
		return mask & MAY_WRITE ? -EPERM : -ENODATA;
	if (S_ISDIR(in->mode) && (in->mode & S_ISVTX) && (mask & MAY_WRITE) && !inode_owner_or_cap(c, in))
		return -EPERM;
	return vfs_permission(c, in, mask);
}

static int security_permission(const struct cred *c, const char *name, int mask)
{
	int cap = strcmp(name, XATTR_NAME_CAPS) ? CAP_SYS_ADMIN : CAP_SETFCAP;

	return !(mask & MAY_WRITE) || cred_has_cap(c, cap) ? 0 : -EPERM;
}

/* A name space without a name. */
static bool is_bare_prefix(const char *name)
{
	return !strcmp(name, XATTR_USER_PREFIX) || !strcmp(name, XATTR_SECURITY_PREFIX) ||
	       !strcmp(name, XATTR_TRUSTED_PREFIX);
}

static int xattr_permission(struct task *t, const struct path *p, const char *name, int mask)
{
	int err = mask & MAY_WRITE ? path_want_write(p) : 0;

	if (err)
		return err;
	if (is_bare_prefix(name))
		return -EINVAL;
	if (has_prefix(name, XATTR_USER_PREFIX))
		return user_permission(t->cred, p->dentry->inode, mask);
	if (has_prefix(name, XATTR_SECURITY_PREFIX))
		return security_permission(t->cred, name, mask);
	if (has_prefix(name, XATTR_TRUSTED_PREFIX)) {
		if (cred_has_cap(t->cred, CAP_SYS_ADMIN))
			return 0;
		return mask & MAY_WRITE ? -EPERM : -ENODATA;
	}
	return -EOPNOTSUPP; /* system.* (ACLs) among them */
}

ssize_t vfs_getxattr(struct task *t, const struct path *p, const char *name, void *buf, size_t size)
{
	struct inode *in = p->dentry->inode;
	int err = xattr_permission(t, p, name, MAY_READ);

	if (err)
		return err;
	return in->ops->getxattr ? in->ops->getxattr(in, name, buf, size) : -EOPNOTSUPP;
}

int vfs_setxattr(struct task *t, const struct path *p, const char *name, const void *buf, size_t size, int flags)
{
	struct inode *in = p->dentry->inode;
	int err = xattr_permission(t, p, name, MAY_WRITE);

	if (err)
		return err;
	return in->ops->setxattr ? in->ops->setxattr(in, name, buf, size, flags) : -EOPNOTSUPP;
}

ssize_t vfs_listxattr(struct task *t, const struct path *p, char *buf, size_t size)
{
	struct inode *in = p->dentry->inode;

	return in->ops->listxattr ? in->ops->listxattr(in, buf, size) : 0;
}

int vfs_removexattr(struct task *t, const struct path *p, const char *name)
{
	struct inode *in = p->dentry->inode;
	int err = xattr_permission(t, p, name, MAY_WRITE);

	if (err)
		return err;
	return in->ops->removexattr ? in->ops->removexattr(in, name) : -EOPNOTSUPP;
}
