/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of tmpfs that change names: create, link, unlink, rename. None makes a host call. */
#include <errno.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include "sentry/fs/tmpfs.h"

/* A removed directory takes no new names. */
static int dir_alive(const struct inode *dir)
{
	return dir->nlink ? 0 : -ENOENT;
}

int tmpfs_lookup(struct inode *dir, const struct qname *name, struct inode **ret)
{
	struct tmpfs_dirent *de = tmpfs_dir_find(tmpfs_i(dir), name->s, name->len);

	if (!de || !de->in)
		return -ENOENT;
	*ret = inode_get(&de->in->vfs);
	return 0;
}

/* Gives @ti its first name. Consumes the reference on failure; on success *ret gets it. */
static int add_new(struct inode *dir, const struct qname *name, struct tmpfs_inode *ti, struct inode **ret)
{
	struct tmpfs_inode *td = tmpfs_i(dir);
	struct tmpfs_dirent *de = tmpfs_dir_find(td, name->s, name->len);
	int err = dir_alive(dir);

	if (err == 0 && de && de->in)
		err = -EEXIST;
	if (err == 0)
		err = tmpfs_dir_insert(td, name->s, name->len, ti, 0);
	if (err < 0) {
		inode_put(&ti->vfs);
		return err;
	}
	if (S_ISDIR(ti->vfs.mode)) {
		ti->parent = td;
		dir->nlink++;
	}
	tmpfs_touch(td, true);
	*ret = &ti->vfs;
	return 0;
}

int tmpfs_mknod(struct inode *dir, const struct qname *name, uint32_t mode, uint64_t rdev, uid_t uid, gid_t gid,
		struct inode **ret)
{
	struct tmpfs_inode *ti;
	int err = tmpfs_inode_create(tmpfs_i(dir)->ts, mode, rdev, uid, gid, &ti);

	return err < 0 ? err : add_new(dir, name, ti, ret);
}

int tmpfs_create_file(struct inode *dir, const struct qname *name, uint32_t mode, uid_t uid, gid_t gid,
		      struct inode **ret)
{
	return tmpfs_mknod(dir, name, S_IFREG | (mode & 07777), 0, uid, gid, ret);
}

int tmpfs_mkdir(struct inode *dir, const struct qname *name, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	return tmpfs_mknod(dir, name, S_IFDIR | (mode & 07777), 0, uid, gid, ret);
}

int tmpfs_symlink(struct inode *dir, const struct qname *name, const char *target, uid_t uid, gid_t gid,
		  struct inode **ret)
{
	struct tmpfs_inode *ti;
	int err = tmpfs_symlink_create(tmpfs_i(dir)->ts, target, uid, gid, &ti);

	return err < 0 ? err : add_new(dir, name, ti, ret);
}

int tmpfs_tmpfile(struct inode *dir, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	struct tmpfs_inode *ti;
	int err = tmpfs_inode_create(tmpfs_i(dir)->ts, S_IFREG | (mode & 07777), 0, uid, gid, &ti);

	if (err < 0)
		return err;
	ti->vfs.nlink = 0;
	*ret = &ti->vfs;
	return 0;
}

int tmpfs_link(struct inode *dir, const struct qname *name, struct inode *in)
{
	struct tmpfs_inode *td = tmpfs_i(dir), *ti = tmpfs_i(in);
	struct tmpfs_dirent *de = tmpfs_dir_find(td, name->s, name->len);
	int err = dir_alive(dir);

	if (err < 0)
		return err;
	if (de && de->in)
		return -EEXIST;
	if (in->nlink) {
		err = store_inode_charge(ti->ts->store);
		if (err < 0)
			return err;
	}
	err = tmpfs_dir_insert(td, name->s, name->len, ti, 0);
	if (err < 0) {
		if (in->nlink)
			store_inode_uncharge(ti->ts->store);
		return err;
	}
	in->nlink++;
	tmpfs_touch(ti, false);
	tmpfs_touch(td, true);
	return 0;
}

void tmpfs_drop_link(struct tmpfs_inode *ti)
{
	if (ti->vfs.nlink > 1)
		store_inode_uncharge(ti->ts->store);
	if (ti->vfs.nlink)
		ti->vfs.nlink--;
	tmpfs_touch(ti, false);
}

/* A directory lost its last name. */
static void dir_dead(struct tmpfs_inode *ti)
{
	ti->vfs.nlink = 0;
	ti->parent = NULL;
	tmpfs_touch(ti, false);
}

int tmpfs_unlink(struct inode *dir, const struct qname *name, struct inode *in)
{
	struct tmpfs_inode *td = tmpfs_i(dir);
	struct tmpfs_dirent *de = tmpfs_dir_find(td, name->s, name->len);

	if (!de || !de->in || &de->in->vfs != in)
		return -ENOENT;
	tmpfs_dir_remove(td, de, de->flags & TMPFS_DE_COVERS);
	tmpfs_drop_link(tmpfs_i(in));
	tmpfs_touch(td, true);
	inode_put(in);
	return 0;
}

int tmpfs_rmdir(struct inode *dir, const struct qname *name, struct inode *in)
{
	struct tmpfs_inode *td = tmpfs_i(dir);
	struct tmpfs_dirent *de = tmpfs_dir_find(td, name->s, name->len);

	if (!de || !de->in || &de->in->vfs != in)
		return -ENOENT;
	if (tmpfs_dir_live(tmpfs_i(in)))
		return -ENOTEMPTY;
	tmpfs_dir_remove(td, de, de->flags & TMPFS_DE_COVERS);
	dir_dead(tmpfs_i(in));
	dir->nlink--;
	tmpfs_touch(td, true);
	inode_put(in);
	return 0;
}

/* A directory moved between directories: the link counts of both follow. */
static void moved(struct tmpfs_inode *in, struct tmpfs_inode *from, struct tmpfs_inode *to)
{
	if (!S_ISDIR(in->vfs.mode))
		return;
	in->parent = to;
	from->vfs.nlink--;
	to->vfs.nlink++;
}

static int exchange(struct tmpfs_inode *odir, struct tmpfs_dirent *ode, struct tmpfs_inode *ndir,
		    struct tmpfs_dirent *nde)
{
	struct tmpfs_inode *a = ode->in, *b;

	b = tmpfs_dir_replace(ndir, nde, a);
	(void)tmpfs_dir_replace(odir, ode, b);
	/* Each entry got a reference by replace and gave its old one up. */
	inode_put(&a->vfs);
	inode_put(&b->vfs);
	moved(a, odir, ndir);
	moved(b, ndir, odir);
	tmpfs_touch(a, false);
	tmpfs_touch(b, false);
	return 0;
}

/* What the new name stood for loses it. */
static void drop_target(struct tmpfs_inode *ndir, struct tmpfs_inode *old)
{
	if (!old)
		return;
	if (S_ISDIR(old->vfs.mode)) {
		dir_dead(old);
		ndir->vfs.nlink--;
	} else {
		tmpfs_drop_link(old);
	}
	inode_put(&old->vfs);
}

static int rename_one(struct tmpfs_inode *odir, struct tmpfs_dirent *ode, struct tmpfs_inode *ndir,
		      const struct qname *nname, unsigned flags)
{
	struct tmpfs_dirent *nde = tmpfs_dir_find(ndir, nname->s, nname->len);
	uint8_t covers = flags & TMPFS_RENAME_COVERS ? TMPFS_DE_COVERS : 0;
	struct tmpfs_inode *in = ode->in, *old = NULL;
	bool whiteout = flags & TMPFS_RENAME_WHITEOUT || ode->flags & TMPFS_DE_COVERS;
	int err;

	if (nde && nde->in && S_ISDIR(nde->in->vfs.mode) && tmpfs_dir_live(nde->in))
		return -ENOTEMPTY;
	if (nde && nde->in) {
		nde->flags |= covers;
		old = tmpfs_dir_replace(ndir, nde, in);
	} else {
		err = tmpfs_dir_insert(ndir, nname->s, nname->len, in, covers);
		if (err < 0)
			return err;
		if (odir == ndir && !nde && !whiteout)
			tmpfs_dir_keep_place(odir, ode, tmpfs_dir_find(ndir, nname->s, nname->len));
	}
	moved(in, odir, ndir);
	drop_target(ndir, old);
	tmpfs_dir_remove(odir, ode, whiteout);
	tmpfs_touch(in, false);
	inode_put(&in->vfs);
	return 0;
}

int tmpfs_rename_flags(struct inode *odir, const struct qname *oname, struct inode *in, struct inode *ndir,
		       const struct qname *nname, unsigned flags)
{
	struct tmpfs_inode *od = tmpfs_i(odir), *nd = tmpfs_i(ndir);
	struct tmpfs_dirent *ode = tmpfs_dir_find(od, oname->s, oname->len), *nde;
	int err = dir_alive(ndir);

	if (err < 0)
		return err;
	if (!ode || !ode->in || &ode->in->vfs != in)
		return -ENOENT;
	nde = tmpfs_dir_find(nd, nname->s, nname->len);
	if (flags & RENAME_NOREPLACE && nde && nde->in)
		return -EEXIST;
	if (flags & RENAME_EXCHANGE && (!nde || !nde->in))
		return -ENOENT;
	/* Two names of one file: rename(2) does nothing. */
	if (nde && nde->in == ode->in)
		return 0;
	if (flags & RENAME_EXCHANGE)
		err = exchange(od, ode, nd, nde);
	else
		err = rename_one(od, ode, nd, nname, flags);
	if (err < 0)
		return err;
	tmpfs_touch(od, true);
	if (nd != od)
		tmpfs_touch(nd, true);
	return 0;
}

int tmpfs_rename(struct inode *odir, const struct qname *oname, struct inode *in, struct inode *ndir,
		 const struct qname *nname, struct inode *target, unsigned flags)
{
	(void)target; /* the directory tells */
	return tmpfs_rename_flags(odir, oname, in, ndir, nname, flags);
}
