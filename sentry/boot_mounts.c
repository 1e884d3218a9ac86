/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root is the root grant below a copy-on-write overlay, or an empty tmpfs when there is none. Above it come /dev,
 * /proc, /sys, /tmp and the grants, shortest path first, so that a nested grant lies on its parent. A grant's parents
 * are made in the overlay where they do not exist: the guest sees directories that hold only what was granted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/boot.h"
#include "sentry/fs/fs.h"
#include "sentry/fs/memfd.h"
#include "sentry/kernel/kernel.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/vfs.h"

static struct store *the_store;

typedef const Sbx__Control__Grant *grant_ptr;

static int by_path_length(const void *a, const void *b)
{
	size_t la = strlen((*(const grant_ptr *)a)->guest_path), lb = strlen((*(const grant_ptr *)b)->guest_path);

	return la < lb ? -1 : la > lb;
}

/* The root place of the namespace so far. */
static struct path ns_root(void)
{
	struct path p = { kernel.mnt_ns->root, kernel.mnt_ns->root->root };

	path_get(&p);
	return p;
}

/* Finds @path, making what is missing: directories, and at the end a directory or an empty file. */
static int ensure_place(const char *path, bool dir, struct path *out)
{
	struct path root = ns_root();
	char part[PATH_MAX_LINUX];
	size_t len = strlen(path);
	int err = -ENAMETOOLONG;

	if (len >= sizeof(part))
		goto out;
	for (size_t i = 1; i <= len; i++) {
		struct path parent = { NULL, NULL };
		const char *name;
		bool last = i == len;

		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		err = path_walk_at(NULL, &root, part, WALK_FOLLOW, out);
		if (err == -ENOENT) {
			name = strrchr(part, '/') + 1;
			*strrchr(part, '/') = '\0';
			err = path_walk_at(NULL, &root, *part ? part : "/", WALK_FOLLOW, &parent);
			if (!err)
				err = vfs_make_node(&parent, name, last && !dir ? S_IFREG | 0644 : S_IFDIR | 0755, out);
			path_put(&parent);
		}
		if (err)
			goto out;
		if (!last)
			path_put(out);
	}
out:
	path_put(&root);
	return err;
}

static int mount_on(const char *path, bool dir, struct super *sb, uint32_t flags, const char *source)
{
	struct path at = { NULL, NULL };
	int err = ensure_place(path, dir, &at);

	if (!err)
		err = mount_add(kernel.mnt_ns, sb, at.mnt, at.dentry, flags, source);
	path_put(&at);
	return err;
}

/* Makes a directory in @dir without asking what the host has by that name: an overlay's upper does not look. */
static int make_unseen(struct inode *dir, const char *name, uint32_t mode)
{
	const struct qname q = { .s = name, .len = (uint32_t)strlen(name) };
	struct inode *in;
	int r;

	if (!S_ISDIR(dir->mode) || !dir->ops->mkdir)
		return -ENOTDIR;
	r = dir->ops->mkdir(dir, &q, mode, 0, 0, &in);
	if (!r)
		inode_put(in);
	return r;
}

/* Directories that stand for hidden ones, and the home: the guest expects them. What is there already stays as it is.
 */
static int make_dir(const Sbx__Control__SentryConfig *cfg, const Sbx__Control__EmptyDir *d)
{
	struct path parent = { NULL, NULL }, made = { NULL, NULL };
	const char *slash = strrchr(d->path, '/');
	char dir[PATH_MAX_LINUX];
	int err;

	if (!slash || !slash[1] || (size_t)(slash - d->path) >= sizeof(dir))
		return -EINVAL;
	memcpy(dir, d->path, (size_t)(slash - d->path));
	dir[slash - d->path] = '\0';
	err = ensure_place(*dir ? dir : "/", true, &parent);
	if (!err && d->hidden)
		err = make_unseen(parent.dentry->inode, slash + 1, d->mode & 01777);
	else if (!err)
		err = vfs_make_node(&parent, slash + 1, S_IFDIR | (d->mode & 01777), &made);
	if (!err && d->owned) {
		const struct iattr attr = { .valid = ATTR_UID | ATTR_GID, .uid = cfg->uid, .gid = cfg->gid };
		struct inode *in = made.dentry->inode;

		err = in->ops->setattr ? in->ops->setattr(in, &attr) : 0;
	}
	path_put(&made);
	path_put(&parent);
	return err == -EEXIST || err == -ENOTDIR ? 0 : err;
}

static int make_dirs(const Sbx__Control__SentryConfig *cfg, struct sbx_err *err)
{
	for (size_t i = 0; i < cfg->n_make_dirs; i++) {
		int r = make_dir(cfg, cfg->make_dirs[i]);

		if (r)
			return sbx_fail(err, r, "make %s", cfg->make_dirs[i]->path);
	}
	return 0;
}

static int overlay_on(struct super *lower, struct super **ret)
{
	struct super *upper;
	int err = tmpfs_create(the_store, lower->root->mode & 07777, &upper);

	if (err)
		return err;
	err = overlay_create(lower, upper, ret);
	super_put(upper);
	return err;
}

/* The file system of one grant. */
static int grant_super(const Sbx__Control__SentryConfig *cfg, grant_ptr g, struct gofer_conn *gofer, struct super **ret)
{
	bool cow = g->mode == SBX__CONTROL__GRANT_MODE__GRANT_COW;
	const struct gofer_fs_args args = {
		.grant = g->id,
		.live = !cow,
		.read_only = g->mode != SBX__CONTROL__GRANT_MODE__GRANT_RW,
		.host_uid = cfg->host_uid,
		.uid = cfg->uid,
		.host_gid = cfg->host_gid,
		.gid = cfg->gid,
	};
	struct super *lower;
	int err = gofer_fs_create(gofer, &args, &lower);

	if (err || !cow) {
		if (!err)
			*ret = lower;
		return err;
	}
	err = overlay_on(lower, ret);
	super_put(lower);
	return err;
}

static uint32_t grant_flags(grant_ptr g)
{
	return MNT_NOSUID | MNT_NODEV | (g->exec ? 0 : MNT_NOEXEC) |
	       (g->mode == SBX__CONTROL__GRANT_MODE__GRANT_RO ? MNT_RDONLY : 0);
}

/*
 * What the host has below these names is hidden in any case: the directories are made without looking. (An overlay's
 * upper does not ask what it covers.)
 */
static int make_places(struct inode *root)
{
	static const char *const names[] = { "dev", "proc", "sys" };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && !r; i++)
		r = make_unseen(root, names[i], 0755);
	return r == -ENOTDIR ? 0 : r; /* mounting says what is wrong */
}

static int mount_root(const Sbx__Control__SentryConfig *cfg, struct gofer_conn *gofer, struct sbx_err *err)
{
	struct super *sb = NULL;
	grant_ptr root = NULL;
	int r;

	for (size_t i = 0; i < cfg->n_grants; i++) {
		if (cfg->grants[i]->root)
			root = cfg->grants[i];
	}
	r = root ? grant_super(cfg, root, gofer, &sb) : tmpfs_create(the_store, 0755, &sb);
	if (!r && (!root || root->mode == SBX__CONTROL__GRANT_MODE__GRANT_COW))
		r = make_places(sb->root);
	if (!r) {
		r = mount_add(kernel.mnt_ns, sb, NULL, NULL, root ? grant_flags(root) : MNT_NOSUID | MNT_NODEV,
		              "rootfs");
		super_put(sb);
	}
	return r ? sbx_fail(err, r, "mount the root file system") : 0;
}

static int make_dev(struct super **ret)
{
	return devfs_create(the_store, ret);
}

static int make_tmp(struct super **ret)
{
	return tmpfs_create(the_store, 01777, ret);
}

static const struct {
	const char *path;
	int (*make)(struct super **ret);
	uint32_t flags;
} kernel_mounts[] = {
	{ "/dev", make_dev, MNT_NOSUID },
	{ "/dev/shm", make_tmp, MNT_NOSUID | MNT_NODEV },
	{ "/proc", procfs_create, MNT_NOSUID | MNT_NODEV | MNT_NOEXEC },
	{ "/sys", sysfs_create, MNT_NOSUID | MNT_NODEV | MNT_NOEXEC | MNT_RDONLY },
	{ "/tmp", make_tmp, MNT_NOSUID | MNT_NODEV },
};

static int mount_kernel_fs(struct sbx_err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(kernel_mounts); i++) {
		struct super *sb;
		int r = kernel_mounts[i].make(&sb);

		if (!r) {
			r = mount_on(kernel_mounts[i].path, true, sb, kernel_mounts[i].flags, sb->fstype);
			super_put(sb);
		}
		if (r)
			return sbx_fail(err, r, "mount %s", kernel_mounts[i].path);
	}
	return 0;
}

static int mount_grants(const Sbx__Control__SentryConfig *cfg, struct gofer_conn *gofer, struct sbx_err *err)
{
	grant_ptr *sorted = calloc(cfg->n_grants + 1, sizeof(*sorted));
	size_t n = 0;
	int r = 0;

	if (!sorted)
		return sbx_fail(err, -ENOMEM, "mount grants");
	for (size_t i = 0; i < cfg->n_grants; i++) {
		if (!cfg->grants[i]->root)
			sorted[n++] = cfg->grants[i];
	}
	qsort(sorted, n, sizeof(*sorted), by_path_length);
	for (size_t i = 0; i < n && !r; i++) {
		struct super *sb;

		r = grant_super(cfg, sorted[i], gofer, &sb);
		if (!r) {
			r = mount_on(sorted[i]->guest_path, S_ISDIR(sb->root->mode), sb, grant_flags(sorted[i]),
			             "grant");
			super_put(sb);
		}
		if (r)
			sbx_fail(err, r, "grant %s", sorted[i]->guest_path);
	}
	free(sorted);
	return r;
}

int boot_mounts(const Sbx__Control__SentryConfig *cfg, int disk_fd, struct gofer_conn *gofer, struct sbx_err *err)
{
	int r = store_create(cfg->limits->disk, cfg->limits->inodes, &the_store);

	if (!r && disk_fd >= 0)
		r = store_use_disk(the_store, disk_fd, cfg->store_memory);
	if (r)
		return sbx_fail(err, r, "create the store");
	store_limit_private(the_store, cfg->limits->memory ? cfg->limits->memory : UINT64_MAX);
	r = memfd_init(the_store);
	if (r)
		return sbx_fail(err, r, "make the place of memfds");
	r = mount_root(cfg, gofer, err);
	if (!r)
		r = make_dirs(cfg, err);
	if (!r)
		r = mount_kernel_fs(err);
	if (!r)
		r = mount_grants(cfg, gofer, err);
	return r;
}
