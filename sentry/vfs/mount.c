/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts, the mount namespace, and the places of a task (fs_ctx). A mount holds its superblock and its root dentry; a
 * file or a working directory holds its mount, so that a file system stays until its last user is gone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/kernel/kernel.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/vfs.h"

#define MOUNTS_MAX 4096

struct mount *mount_get(struct mount *m)
{
	ref_get(&m->ref);
	return m;
}

void mount_put(struct mount *m)
{
	while (m && ref_put(&m->ref)) {
		struct mount *parent = m->parent;

		dentry_put(m->mountpoint);
		dentry_put(m->root);
		super_put(m->sb);
		free((char *)(uintptr_t)m->source);
		free(m);
		m = parent;
	}
}

struct mount *mount_peek(const struct mount *parent, const struct dentry *d)
{
	struct mount *m, *found = NULL;

	list_for_each_entry(m, &kernel.mnt_ns->mounts, node)
		if (m->mountpoint == d && m->parent == parent)
			found = m;
	return found;
}

static struct dentry *super_root_dentry(struct super *sb)
{
	if (sb->root_dentry)
		return dentry_get(sb->root_dentry);
	return dentry_create_root(sb->root);
}

int mount_add(struct mount_ns *ns, struct super *sb, struct mount *parent, struct dentry *mountpoint, uint32_t flags,
	      const char *source)
{
	static uint32_t next_id = 20;
	struct mount *m;

	if (ns->n_mounts >= MOUNTS_MAX)
		return -ENOSPC;
	if (parent && (!mountpoint->inode || S_ISDIR(mountpoint->inode->mode) != S_ISDIR(sb->root->mode)))
		return -ENOTDIR;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->root = super_root_dentry(sb);
	m->source = strdup(source ? source : "none");
	if (!m->root || !m->source) {
		dentry_put(m->root);
		free((char *)(uintptr_t)m->source);
		free(m);
		return -ENOMEM;
	}
	ref_init(&m->ref);
	m->sb = super_get(sb);
	m->flags = flags;
	m->id = next_id++;
	if (parent) {
		m->parent = mount_get(parent);
		m->mountpoint = dentry_get(mountpoint);
		mountpoint->mounted = true;
	} else {
		ns->root = m;
	}
	list_add_tail(&ns->mounts, &m->node);
	ns->n_mounts++;
	return 0;
}

int mount_remove(struct mount_ns *ns, struct mount *m)
{
	struct mount *o;
	bool still = false;

	if (m == ns->root)
		return -EBUSY;
	list_for_each_entry(o, &ns->mounts, node) {
		if (o->parent == m)
			return -EBUSY;
		still |= o != m && o->mountpoint == m->mountpoint;
	}
	list_del(&m->node);
	ns->n_mounts--;
	m->mountpoint->mounted = still;
	mount_put(m);
	return 0;
}

int vfs_init(void)
{
	struct mount_ns *ns = calloc(1, sizeof(*ns));

	if (!ns)
		return -ENOMEM;
	ref_init(&ns->ref);
	list_init(&ns->mounts);
	kernel.mnt_ns = ns;
	return 0;
}

void path_get(struct path *p)
{
	mount_get(p->mnt);
	dentry_get(p->dentry);
}

void path_put(struct path *p)
{
	dentry_put(p->dentry);
	mount_put(p->mnt);
	*p = (struct path){ 0 };
}

struct fs_ctx *fs_ctx_create(void)
{
	struct fs_ctx *fs = calloc(1, sizeof(*fs));
	struct mount *m = kernel.mnt_ns->root;

	if (!fs)
		return NULL;
	ref_init(&fs->ref);
	/* What is mounted over the root itself is the root that everyone sees. */
	fs->root = (struct path){ m, m->root };
	while (fs->root.dentry->mounted && (m = mount_peek(fs->root.mnt, fs->root.dentry)))
		fs->root = (struct path){ m, m->root };
	path_get(&fs->root);
	fs->cwd = fs->root;
	path_get(&fs->cwd);
	fs->umask = 022;
	return fs;
}

struct fs_ctx *fs_ctx_get(struct fs_ctx *fs)
{
	ref_get(&fs->ref);
	return fs;
}

void fs_ctx_put(struct fs_ctx *fs)
{
	if (!fs || !ref_put(&fs->ref))
		return;
	path_put(&fs->root);
	path_put(&fs->cwd);
	free(fs);
}

struct fs_ctx *fs_ctx_copy(const struct fs_ctx *fs)
{
	struct fs_ctx *n = malloc(sizeof(*n));

	if (!n)
		return NULL;
	*n = *fs;
	ref_init(&n->ref);
	path_get(&n->root);
	path_get(&n->cwd);
	return n;
}

/* Puts @n bytes before *at; false when there is no room. */
static bool put_before(char *buf, size_t *at, const char *s, size_t n)
{
	if (*at < n)
		return false;
	*at -= n;
	memcpy(buf + *at, s, n);
	return true;
}

#define MEMFD_PREFIX "/memfd:"
#define DELETED     " (deleted)"
#define UNREACHABLE "(unreachable)"

int path_name(const struct path *p, const struct path *root, char *buf, size_t cap)
{
	const struct dentry *d = p->dentry;
	const struct mount *m = p->mnt;
	struct path ns = { kernel.mnt_ns->root, kernel.mnt_ns->root->root };
	size_t at = cap, end;

	if (!root)
		root = &ns;
	if (!put_before(buf, &at, "", 1))
		return -ENAMETOOLONG;
	if (dentry_is_loose(p)) {
		bool memfd = S_ISREG(d->inode->mode); /* memfd_create(2) says how it is shown */

		if ((memfd && !put_before(buf, &at, DELETED, sizeof(DELETED) - 1)) ||
		    !put_before(buf, &at, d->name, d->name_len) ||
		    (memfd && !put_before(buf, &at, MEMFD_PREFIX, sizeof(MEMFD_PREFIX) - 1)))
			return -ENAMETOOLONG;
		goto done;
	}
	if (!dentry_is_root(d) && !d->hashed && !put_before(buf, &at, DELETED, sizeof(DELETED) - 1))
		return -ENAMETOOLONG;
	end = at;
	while (d != root->dentry || m != root->mnt) {
		if (d == m->root || dentry_is_root(d)) {
			if (!m->parent || d != m->root)
				break;
			d = m->mountpoint;
			m = m->parent;
			continue;
		}
		if (!put_before(buf, &at, d->name, d->name_len) || !put_before(buf, &at, "/", 1))
			return -ENAMETOOLONG;
		d = d->parent;
	}
	if (at == end && !put_before(buf, &at, "/", 1))
		return -ENAMETOOLONG;
	if ((d != root->dentry || m != root->mnt) && !put_before(buf, &at, UNREACHABLE, sizeof(UNREACHABLE) - 1))
		return -ENAMETOOLONG;
done:
	memmove(buf, buf + at, cap - at);
	return (int)(cap - at - 1);
}
