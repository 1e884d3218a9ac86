/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/vfs/inode.h"

#include <errno.h>
#include <stdlib.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/timer.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/locks.h"
#include "sentry/vfs/vfs.h"

struct ktime ktime_now(void)
{
	uint64_t ns = clock_real_ns();

	return (struct ktime){ .sec = (int64_t)(ns / NSEC_PER_SEC), .nsec = (uint32_t)(ns % NSEC_PER_SEC) };
}

struct inode *inode_get(struct inode *in)
{
	ref_get(&in->ref);
	return in;
}

void inode_put(struct inode *in)
{
	if (!in || !ref_put(&in->ref))
		return;
	BUG_ON(in->alias);
	if (in->locks)
		locks_inode_gone(in);
	kernel.counters.inodes--;
	in->ops->destroy(in);
}

void inode_init(struct inode *in, struct super *sb, const struct inode_ops *ops, uint64_t ino, uint32_t mode)
{
	*in = (struct inode){ .ops = ops, .sb = sb, .ino = ino, .mode = mode, .nlink = 1 };
	ref_init(&in->ref);
	in->atime = in->mtime = in->ctime = in->btime = ktime_now();
	kernel.counters.inodes++;
}

void super_init(struct super *sb, const struct super_ops *ops, const char *fstype, uint64_t magic)
{
	static uint64_t next_dev = 0x20; /* minor numbers of anonymous devices, major 0 */

	*sb = (struct super){ .ops = ops, .fstype = fstype, .magic = magic };
	sb->dev = next_dev++;
	/* st_dev's encoding puts bits 8..11 of a minor elsewhere: stay clear of the major's bits. */
	sb->dev = (sb->dev & 0xff) | ((sb->dev & ~0xffull) << 12);
	ref_init(&sb->ref);
}

struct super *super_get(struct super *sb)
{
	ref_get(&sb->ref);
	return sb;
}

void super_put(struct super *sb)
{
	struct inode *root;

	if (!sb || !ref_put(&sb->ref))
		return;
	dcache_drop_super(sb);
	root = sb->root;
	sb->root = NULL;
	inode_put(root);
	if (sb->ops && sb->ops->destroy)
		sb->ops->destroy(sb);
}

/* Pipes, sockets, eventfd and the like: inodes without a name, of one superblock that never goes. */

#define ANON_INODE_FS_MAGIC 0x09041934ull

static struct super anon_sb;

static void anon_destroy(struct inode *in)
{
	free(in);
}

static const struct inode_ops anon_inode_ops = {
	.destroy = anon_destroy,
};

struct super *anon_super(void)
{
	if (!anon_sb.dev)
		super_init(&anon_sb, NULL, "anon_inodefs", ANON_INODE_FS_MAGIC);
	return &anon_sb;
}

void anon_inode_init(struct inode *in, uint32_t mode)
{
	static uint64_t next_ino = 1;

	inode_init(in, anon_super(), &anon_inode_ops, next_ino++, mode);
}

struct inode *anon_inode_create(uint32_t mode)
{
	struct inode *in = malloc(sizeof(*in));

	if (in)
		anon_inode_init(in, mode);
	return in;
}

bool inode_is_anon(const struct inode *in)
{
	return in->sb == &anon_sb;
}

int inode_deny_write(struct inode *in)
{
	if (in->writers > 0)
		return -ETXTBSY;
	in->writers--;
	return 0;
}

void inode_allow_write(struct inode *in)
{
	in->writers++;
}
