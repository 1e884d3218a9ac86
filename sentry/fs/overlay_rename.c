/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rename(2) in the overlay. What moves is copied up (a directory alone, without what is below: its lower goes with
 * it), and so are both directories; then the upper renames, and leaves a whiteout where the lower has the old name.
 */
#include <errno.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include "sentry/fs/overlay.h"

/* Makes the upper have @in under this name: copied up, and entered also when it was copied up by another of its
 * names. */
static int materialise(struct ovl_inode *dir, const struct qname *name, struct inode *in)
{
	struct tmpfs_dirent *de;
	int err = ovl_is(in) ? ovl_copy_up(ovl_i(in), OVL_ALL_DATA) : 0;

	if (err == 0)
		err = ovl_copy_up(dir, 0);
	if (err < 0)
		return err;
	de = tmpfs_dir_find(tmpfs_i(dir->upper), name->s, name->len);
	if (de)
		return de->in == ovl_upper_of(in) ? 0 : -ENOENT;
	return tmpfs_dir_insert(tmpfs_i(dir->upper), name->s, name->len, ovl_upper_of(in), TMPFS_DE_COVERS);
}

/* After a move, the parent of a directory is another one. */
static void moved(struct inode *in, struct ovl_inode *dir)
{
	struct ovl_inode *oi;

	if (!ovl_is(in))
		return;
	oi = ovl_i(in);
	if (S_ISDIR(in->mode) && oi->parent != dir) {
		inode_get(&dir->vfs);
		ovl_clear_place(oi);
		oi->parent = dir;
	}
	ovl_sync(oi);
}

static int exchange(struct ovl_inode *od, const struct qname *oname, struct inode *in, struct ovl_inode *nd,
		    const struct qname *nname, struct inode *target)
{
	int err = materialise(nd, nname, target);

	if (err == 0)
		err = tmpfs_rename_flags(od->upper, oname, &ovl_upper_of(in)->vfs, nd->upper, nname, RENAME_EXCHANGE);
	if (err < 0)
		return err;
	moved(in, nd);
	moved(target, od);
	return 0;
}

static int move(struct ovl_inode *od, const struct qname *oname, struct inode *in, struct ovl_inode *nd,
		const struct qname *nname, struct inode *target)
{
	bool lower_target = target && !tmpfs_dir_find(tmpfs_i(nd->upper), nname->s, nname->len);
	struct tmpfs_inode *old = target && !lower_target ? ovl_upper_of(target) : NULL;
	int err = 0;

	if (lower_target)
		err = ovl_lower_name_prepare(target);
	if (err == 0)
		err = tmpfs_rename_flags(od->upper, oname, &ovl_upper_of(in)->vfs, nd->upper, nname,
					 lower_target ? TMPFS_RENAME_COVERS : 0);
	if (err < 0)
		return err;
	moved(in, nd);
	if (lower_target)
		ovl_lower_name_gone(target, nd, nname);
	if (old)
		ovl_index_forget(ovl_s(nd->vfs.sb), old);
	if (target && ovl_is(target)) {
		if (S_ISDIR(target->mode))
			ovl_clear_place(ovl_i(target));
		ovl_sync(ovl_i(target));
	}
	return 0;
}

int ovl_rename(struct inode *odir, const struct qname *oname, struct inode *in, struct inode *ndir,
	       const struct qname *nname, struct inode *target, unsigned flags)
{
	struct ovl_inode *od = ovl_i(odir), *nd = ovl_i(ndir);
	int err = 0;

	if (target && flags & RENAME_NOREPLACE)
		return -EEXIST;
	if (target && !(flags & RENAME_EXCHANGE) && S_ISDIR(target->mode))
		err = ovl_dir_empty(ovl_i(target));
	if (err == 0)
		err = materialise(od, oname, in);
	if (err == 0)
		err = ovl_copy_up(nd, 0);
	if (err < 0)
		return err;
	if (flags & RENAME_EXCHANGE)
		err = target ? exchange(od, oname, in, nd, nname, target) : -ENOENT;
	else
		err = move(od, oname, in, nd, nname, target);
	ovl_dir_changed(od);
	ovl_dir_changed(nd);
	return err;
}
