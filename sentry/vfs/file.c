/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/vfs/file.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/kernel/kernel.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/epoll.h"
#include "sentry/vfs/locks.h"
#include "sentry/vfs/vfs.h"

#define FILES_MAX 262144u /* /proc/sys/fs/file-max */

struct file *file_create(const struct file_ops *ops, struct inode *in, uint32_t flags)
{
	size_t size = ops && ops->file_size ? ops->file_size : sizeof(struct file);
	struct file *f;

	if (kernel.counters.files >= FILES_MAX)
		return NULL;
	f = calloc(1, size);
	if (!f)
		return NULL;
	ref_init(&f->ref);
	f->ops = ops;
	f->inode = inode_get(in);
	f->flags = flags;
	list_init(&f->epoll_links);
	kernel.counters.files++;
	return f;
}

struct file *file_get(struct file *f)
{
	ref_get(&f->ref);
	return f;
}

void file_put(struct file *f)
{
	if (!f || !ref_put(&f->ref))
		return;
	if (!list_empty(&f->epoll_links))
		epoll_file_gone(f);
	if (f->inode->locks)
		locks_file_gone(f);
	if (f->ops && f->ops->release)
		f->ops->release(f);
	if (f->write_counted)
		f->inode->writers--;
	dentry_put(f->dentry);
	mount_put(f->mnt);
	inode_put(f->inode);
	kernel.counters.files--;
	free(f);
}

/* Anonymous files have no mount of the tree: this one holds their places for /proc/PID/fd. Never freed. */
static struct mount *anon_mount(void)
{
	static struct mount m;

	if (!m.sb) {
		ref_init(&m.ref);
		m.sb = super_get(anon_super());
		m.source = "anon_inodefs";
		m.flags = MNT_NOSUID; /* memfds may be executed */
	}
	return &m;
}

int file_place(struct file *f, struct dentry **dentry, struct mount **mnt)
{
	if (f->dentry) {
		*dentry = dentry_get(f->dentry);
		*mnt = mount_get(f->mnt);
		return 0;
	}
	*dentry = dentry_create_loose(f->inode, f->anon_name ? f->anon_name : "anon_inode");
	if (!*dentry)
		return -ENOMEM;
	*mnt = mount_get(anon_mount());
	return 0;
}

bool file_seekable(const struct file *f)
{
	uint32_t mode = f->inode->mode;

	if ((f->flags & FILE_OPATH) || S_ISFIFO(mode) || S_ISSOCK(mode))
		return false;
	return S_ISREG(mode) || S_ISDIR(mode) || (f->ops && f->ops->llseek);
}

uint32_t vfs_poll(struct file *f, struct waitq **q)
{
	*q = NULL;
	if (!f->ops || !f->ops->poll)
		return POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;
	return f->ops->poll(f, q);
}

int vfs_mmap(struct file *f, int prot, bool shared, struct file_map *map)
{
	if (!f->ops || !f->ops->mmap)
		return -ENODEV;
	return f->ops->mmap(f, prot, shared, map);
}
