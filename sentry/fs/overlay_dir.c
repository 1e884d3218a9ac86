/* SPDX-License-Identifier: Apache-2.0 */
/* Making and removing names in the overlay. The directory is copied up first; then the upper does the work. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/overlay.h"

/* Makes @dir ready for a change: gives its upper. */
static int begin(struct inode *dir, struct inode **upper)
{
	int err = ovl_copy_up(ovl_i(dir), 0);

	*upper = ovl_i(dir)->upper;
	return err;
}

int ovl_create(struct inode *dir, const struct qname *name, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	struct inode *up;
	int err = begin(dir, &up);

	if (err == 0)
		err = tmpfs_create_file(up, name, mode, uid, gid, ret);
	ovl_dir_changed(ovl_i(dir));
	return err;
}

int ovl_mknod(struct inode *dir, const struct qname *name, uint32_t mode, uint64_t rdev, uid_t uid, gid_t gid,
	      struct inode **ret)
{
	struct inode *up;
	int err = begin(dir, &up);

	if (err == 0)
		err = tmpfs_mknod(up, name, mode, rdev, uid, gid, ret);
	ovl_dir_changed(ovl_i(dir));
	return err;
}

int ovl_symlink(struct inode *dir, const struct qname *name, const char *target, uid_t uid, gid_t gid,
		struct inode **ret)
{
	struct inode *up;
	int err = begin(dir, &up);

	if (err == 0)
		err = tmpfs_symlink(up, name, target, uid, gid, ret);
	ovl_dir_changed(ovl_i(dir));
	return err;
}

int ovl_mkdir(struct inode *dir, const struct qname *name, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	struct inode *up, *in;
	int err = begin(dir, &up);

	if (err == 0)
		err = tmpfs_mkdir(up, name, mode, uid, gid, &in);
	if (err == 0) {
		err = ovl_wrap_upper(ovl_i(dir), tmpfs_i(in), ret);
		if (err < 0)
			(void)tmpfs_rmdir(up, name, in); /* just made and empty: cannot fail */
		inode_put(in);
	}
	ovl_dir_changed(ovl_i(dir));
	return err;
}

int ovl_link(struct inode *dir, const struct qname *name, struct inode *in)
{
	struct inode *up = NULL;
	int err = ovl_is(in) ? ovl_copy_up(ovl_i(in), OVL_ALL_DATA) : 0;

	if (err == 0)
		err = begin(dir, &up);
	if (err == 0)
		err = tmpfs_link(up, name, &ovl_upper_of(in)->vfs);
	if (ovl_is(in))
		ovl_sync(ovl_i(in));
	ovl_dir_changed(ovl_i(dir));
	return err;
}

int ovl_tmpfile(struct inode *dir, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	return tmpfs_tmpfile(ovl_s(dir->sb)->upper->root, mode, uid, gid, ret);
}

/* ---- removing ---- */

int ovl_lower_name_prepare(struct inode *in)
{
	struct ovl_index *x;

	if (!ovl_is(in) || ovl_i(in)->upper || S_ISDIR(in->mode) || ovl_i(in)->lower->nlink < 2)
		return 0;
	return ovl_index_make(ovl_s(in->sb), ovl_i(in)->lower, &x);
}

void ovl_lower_name_gone(struct inode *in, struct ovl_inode *dir, const struct qname *name)
{
	struct tmpfs_inode *ti = ovl_upper_of(in);
	struct ovl_inode *oi;
	struct ovl_index *x;

	if (ti) {
		/* Copied up under another of its names. */
		tmpfs_drop_link(ti);
		ovl_index_forget(ovl_s(dir->vfs.sb), ti);
		if (ovl_is(in))
			ovl_sync(ovl_i(in));
		return;
	}
	oi = ovl_i(in);
	oi->removed++;
	if (!S_ISDIR(in->mode) && oi->lower->nlink > 1) {
		x = ovl_index_find(ovl_s(in->sb), oi->lower);
		if (x)
			x->removed = oi->removed;
	}
	if (oi->name && oi->parent == dir && oi->name_len == name->len && !memcmp(oi->name, name->s, name->len))
		ovl_clear_place(oi);
	ovl_sync(oi);
}

/* Hides the name @name, which is in the lower alone. */
static int hide_lower(struct ovl_inode *od, const struct qname *name, struct inode *in)
{
	struct tmpfs_inode *up = tmpfs_i(od->upper);
	int err = ovl_lower_name_prepare(in);

	if (err == 0)
		err = tmpfs_dir_insert(up, name->s, name->len, NULL, 0);
	if (err < 0)
		return err;
	tmpfs_touch(up, true);
	ovl_lower_name_gone(in, od, name);
	return 0;
}

int ovl_unlink(struct inode *dir, const struct qname *name, struct inode *in)
{
	struct ovl_inode *od = ovl_i(dir);
	struct tmpfs_inode *ti;
	struct inode *up;
	int err = begin(dir, &up);

	if (err < 0)
		return err;
	if (tmpfs_dir_find(tmpfs_i(up), name->s, name->len)) {
		ti = ovl_upper_of(in);
		err = ti ? tmpfs_unlink(up, name, &ti->vfs) : -ENOENT;
		if (err == 0)
			ovl_index_forget(ovl_s(dir->sb), ti);
		if (ovl_is(in))
			ovl_sync(ovl_i(in));
	} else {
		err = hide_lower(od, name, in);
	}
	ovl_dir_changed(od);
	return err;
}

int ovl_rmdir(struct inode *dir, const struct qname *name, struct inode *in)
{
	struct ovl_inode *od = ovl_i(dir), *oi = ovl_i(in);
	struct inode *up = NULL;
	int err = ovl_dir_empty(oi);

	if (err == 0)
		err = begin(dir, &up);
	if (err < 0)
		return err;
	if (oi->upper)
		err = tmpfs_rmdir(up, name, oi->upper);
	else
		err = hide_lower(od, name, in);
	if (err == 0)
		ovl_clear_place(oi);
	ovl_dir_changed(oi);
	ovl_dir_changed(od);
	return err;
}
