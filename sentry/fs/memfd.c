/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memfd is a tmpfs inode without a name. Its seals are enforced by tmpfs; once it is mapped, and so has a host
 * memfd of its own, they are set on that too, so that the host refuses what the guest could do with a mapping, and
 * says EBUSY while one that can write is in the way of F_SEAL_WRITE.
 */
#include "sentry/fs/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/host/seal.h"
#include "sentry/fs/tmpfs.h"
#include "sentry/kernel/cred.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u
#endif
#define MFD_SUPPORTED (MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_NOEXEC_SEAL | MFD_EXEC)
#define SEALS_ALL     (F_SEAL_SEAL | F_SEAL_EXEC | SEALS_HOST)
#define O_LARGE       0100000u /* shown by F_GETFL, 0 in 64-bit headers */

struct memfd_inode {
	struct tmpfs_inode ti;
	char name[MEMFD_NAME_MAX + 1]; /* files hold the inode and so the name */
};

static struct tmpfs_super *memfd_ts;

int memfd_init(struct store *s)
{
	struct super *sb;
	int err = tmpfs_create(s, 01777, &sb);

	if (err == 0)
		memfd_ts = tmpfs_s(sb);
	return err;
}

int memfd_check_flags(unsigned flags)
{
	if (flags & MFD_HUGETLB)
		return -ENOSYS; /* as a kernel without huge pages */
	if (flags & ~MFD_SUPPORTED)
		return -EINVAL;
	if (flags & MFD_EXEC && flags & MFD_NOEXEC_SEAL)
		return -EINVAL;
	return 0;
}

int memfd_create_file(const struct cred *c, const char *name, unsigned flags, struct file **ret)
{
	bool noexec = flags & MFD_NOEXEC_SEAL;
	struct tmpfs_inode *ti;
	struct memfd_inode *mi;
	struct file *f;
	int err = memfd_check_flags(flags);

	if (err < 0)
		return err;
	if (!memfd_ts)
		return -ENOSYS;
	if (strlen(name) > MEMFD_NAME_MAX)
		return -EINVAL;
	err = tmpfs_inode_create_sized(memfd_ts, sizeof(*mi), S_IFREG | (noexec ? 0666 : 0777), 0, c->fsuid,
				       c->fsgid, &ti);
	if (err < 0)
		return err;
	mi = container_of(ti, struct memfd_inode, ti);
	snprintf(mi->name, sizeof(mi->name), "%s", name);
	ti->vfs.nlink = 0;
	ti->flags = TMPFS_MEMFD;
	if (noexec)
		ti->seals = F_SEAL_EXEC;
	else if (!(flags & MFD_ALLOW_SEALING))
		ti->seals = F_SEAL_SEAL;
	f = file_create(ti->vfs.fops, &ti->vfs, O_RDWR | O_LARGE);
	inode_put(&ti->vfs);
	if (!f)
		return -ENFILE;
	f->anon_name = mi->name;
	*ret = f;
	return 0;
}

static int add_seals(struct file *f, struct tmpfs_inode *ti, unsigned seals)
{
	int err;

	if (!file_writable(f))
		return -EPERM;
	if (seals & ~(unsigned)SEALS_ALL)
		return -EINVAL;
	if (!(ti->flags & TMPFS_MEMFD) || ti->seals & F_SEAL_SEAL)
		return -EPERM;
	/* An executable that will stay so must not change: Linux seals it whole. */
	if (seals & F_SEAL_EXEC && ti->vfs.mode & 0111)
		seals |= SEALS_HOST;
	if (ti->data.kind == STORE_PRIVATE && seals & SEALS_HOST) {
		err = host_add_seals(ti->data.priv->fd, (int)(seals & SEALS_HOST));
		if (err < 0)
			return err;
	}
	ti->seals |= (uint8_t)seals;
	if (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
		ti->vfs.vflags |= INODE_WRITE_SEALED;
	return 0;
}

int64_t memfd_fcntl(struct task *t, struct file *f, int cmd, uint64_t arg)
{
	struct tmpfs_inode *ti;

	(void)t;
	if (!tmpfs_is(f->inode) || !S_ISREG(f->inode->mode))
		return -EINVAL;
	ti = tmpfs_i(f->inode);
	switch (cmd) {
	case F_GET_SEALS:
		return ti->flags & TMPFS_MEMFD ? ti->seals : F_SEAL_SEAL;
	case F_ADD_SEALS:
		return arg > UINT32_MAX ? -EINVAL : add_seals(f, ti, (unsigned)arg);
	}
	return -EINVAL;
}
