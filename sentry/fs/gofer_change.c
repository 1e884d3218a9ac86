/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of names and attributes. What the gofer's reply tells goes to the caches at once; it is the truth of that
 * moment. */
#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/gofer_priv.h"
#include "sentry/vfs/dentry.h"

#define OP(x) SBX__GOFER__REQUEST__OP_##x

/* qname is not NUL terminated. */
static char *name_str(const struct qname *q, char buf[NAME_MAX_LINUX + 1])
{
	memcpy(buf, q->s, MIN(q->len, (uint32_t)NAME_MAX_LINUX));
	buf[MIN(q->len, (uint32_t)NAME_MAX_LINUX)] = '\0';
	return buf;
}

/* The attributes of a changed directory are the reply's @i-th. */
static void dir_changed(struct gofer_inode *dir, const struct gofer_call *c, unsigned i)
{
	gofer_touched(dir); /* in its parent's listing */
	if (i < c->n_attrs)
		gofer_attr_set(dir, c->attrs[i], gofer_attr_until(dir));
}

/* The reply's first attributes are of the new @name in @dir, with the id that was given out. */
static int take_new(struct gofer_call *c, struct gofer_inode *dir, const char *name, struct gofer_inode **ret)
{
	struct gofer_fs *fs = dir->fs;
	struct gofer_inode *gi;
	int r;

	if (!c->n_attrs)
		return -EIO;
	r = gofer_iget(fs, name ? dir : NULL, name, c->attrs[0], gofer_until(fs), &gi);
	if (r < 0)
		return r;
	gofer_fid_clear(gi); /* an inode number that was used again */
	gi->fid = c->alloc[0];
	c->n_alloc = 0;
	if (name) {
		gofer_listing_add(dir, name, strlen(name), gi);
		gofer_neg_forget(dir, name, strlen(name));
		dir_changed(dir, c, 1);
	}
	*ret = gi;
	return 0;
}

/* The fd of a new file waits for the open that follows. */
static int take_new_fd(struct gofer_call *c, struct gofer_inode *gi)
{
	struct gofer_conn *conn = c->conn;

	if (c->fd < 0)
		return 0;
	if (!gofer_hfd_install(gi, c->fd, true, true)) {
		c->fd = -1;
		return -ENOMEM;
	}
	c->fd = -1;
	conn->unopened = gi;
	return 0;
}

/* Runs the call for a new name in @dir. */
static int make(struct gofer_call *c, struct gofer_inode *dir, uint32_t *dir_fid, uint32_t *new_fid, const char *name,
		struct inode **ret)
{
	struct gofer_inode *gi;
	int r = dir->gone ? -ENOENT : gofer_call_new_fid(c, new_fid);

	if (r == 0)
		r = gofer_call_fid(c, dir, dir_fid);
	if (r == 0)
		r = gofer_call_run(c);
	if (r == -EEXIST) { /* the host was faster: look again */
		gofer_listing_drop(dir);
		gofer_neg_forget(dir, name, strlen(name));
	}
	if (r == 0)
		r = take_new(c, dir, name, &gi);
	if (r == 0)
		r = take_new_fd(c, gi);
	if (r == 0)
		*ret = &gi->inode;
	gofer_call_end(c);
	return r;
}

int gofer_create(struct inode *in, const struct qname *q, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	Sbx__Gofer__Create m = SBX__GOFER__CREATE__INIT;
	struct gofer_inode *dir = gofer_inode(in);
	char name[NAME_MAX_LINUX + 1];
	struct gofer_call c;

	(void)uid; /* the host user owns it, who is the guest's user */
	(void)gid;
	gofer_call_init(&c, dir->fs->conn);
	c.req.op_case = OP(CREATE);
	c.req.create = &m;
	m.name = name_str(q, name);
	m.mode = mode & 07777;
	return make(&c, dir, &m.fid, &m.new_fid, name, ret);
}

int gofer_mkdir(struct inode *in, const struct qname *q, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	Sbx__Gofer__Mkdir m = SBX__GOFER__MKDIR__INIT;
	struct gofer_inode *dir = gofer_inode(in);
	char name[NAME_MAX_LINUX + 1];
	struct gofer_listing *l;
	struct gofer_call c;
	int r;

	(void)uid;
	(void)gid;
	gofer_call_init(&c, dir->fs->conn);
	c.req.op_case = OP(MKDIR);
	c.req.mkdir = &m;
	m.name = name_str(q, name);
	m.mode = mode & 07777;
	r = make(&c, dir, &m.fid, &m.new_fid, name, ret);
	/* A new directory is empty: nothing needs to be asked about names in it. */
	if (r == 0 && !c.hides && gofer_listing_reset(gofer_inode(*ret), 0, &l) == 0) {
		l->eof = true;
		l->ordered = false;
	}
	return r;
}

int gofer_mknod(struct inode *in, const struct qname *q, uint32_t mode, uint64_t rdev, uid_t uid, gid_t gid,
		struct inode **ret)
{
	Sbx__Gofer__Mknod m = SBX__GOFER__MKNOD__INIT;
	struct gofer_inode *dir = gofer_inode(in);
	char name[NAME_MAX_LINUX + 1];
	struct gofer_call c;

	(void)rdev;
	if (!S_ISFIFO(mode) && !S_ISSOCK(mode))
		return -EPERM;
	(void)uid;
	(void)gid;
	gofer_call_init(&c, dir->fs->conn);
	c.req.op_case = OP(MKNOD);
	c.req.mknod = &m;
	m.name = name_str(q, name);
	m.mode = mode;
	return make(&c, dir, &m.fid, &m.new_fid, name, ret);
}

int gofer_symlink(struct inode *in, const struct qname *q, const char *target, uid_t uid, gid_t gid, struct inode **ret)
{
	Sbx__Gofer__Symlink m = SBX__GOFER__SYMLINK__INIT;
	struct gofer_inode *dir = gofer_inode(in);
	char name[NAME_MAX_LINUX + 1];
	struct gofer_call c;

	(void)uid;
	(void)gid;
	gofer_call_init(&c, dir->fs->conn);
	c.req.op_case = OP(SYMLINK);
	c.req.symlink = &m;
	m.name = name_str(q, name);
	m.target = (char *)(uintptr_t)target;
	return make(&c, dir, &m.fid, &m.new_fid, name, ret);
}

int gofer_tmpfile(struct inode *in, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	Sbx__Gofer__Tmpfile m = SBX__GOFER__TMPFILE__INIT;
	struct gofer_inode *dir = gofer_inode(in);
	struct gofer_call c;

	(void)uid;
	(void)gid;
	gofer_call_init(&c, dir->fs->conn);
	c.req.op_case = OP(TMPFILE);
	c.req.tmpfile = &m;
	m.mode = mode & 07777;
	return make(&c, dir, &m.fid, &m.new_fid, NULL, ret);
}

int gofer_link(struct inode *dir_in, const struct qname *q, struct inode *in)
{
	Sbx__Gofer__Link m = SBX__GOFER__LINK__INIT;
	struct gofer_inode *dir = gofer_inode(dir_in), *gi = gofer_inode(in);
	char name[NAME_MAX_LINUX + 1];
	struct gofer_call c;
	int r;

	if (dir->gone)
		return -ENOENT;
	r = gofer_bind(gi);
	if (r < 0)
		return r;
	gofer_call_init(&c, dir->fs->conn);
	c.req.op_case = OP(LINK);
	c.req.link = &m;
	m.name = name_str(q, name);
	m.target_fid = gi->fid;
	r = gofer_call_fid(&c, dir, &m.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	if (r == 0) {
		gofer_touched(gi);
		gi->gone = false;
		if (c.n_attrs)
			gofer_attr_set(gi, c.attrs[0], gofer_until(dir->fs));
		if (!gi->parent && gofer_place_set(gi, dir, name) == 0)
			gi->name_until = gofer_name_until(dir);
		gofer_listing_add(dir, q->s, q->len, gi);
		gofer_neg_forget(dir, q->s, q->len);
		dir_changed(dir, &c, 1);
	} else if (r == -EEXIST) {
		gofer_listing_drop(dir);
	}
	gofer_call_end(&c);
	return r;
}

/* A name of @gi at (@dir, @q) has gone. */
static void name_gone(struct gofer_inode *gi, struct gofer_inode *dir, const struct qname *q)
{
	struct inode *in = &gi->inode;

	gofer_touched(gi);
	if (S_ISDIR(in->mode) || in->nlink <= 1) {
		in->nlink = 0;
		gi->gone = true;
		gofer_listing_drop(gi);
		gofer_hfd_drop_idle(gi);
	} else {
		in->nlink--;
	}
	if (gofer_place_is(gi, dir, q->s, q->len))
		gofer_place_clear(gi);
}

static int remove_name(struct inode *dir_in, const struct qname *q, struct inode *in, bool is_dir)
{
	Sbx__Gofer__Unlink m = SBX__GOFER__UNLINK__INIT;
	struct gofer_inode *dir = gofer_inode(dir_in);
	char name[NAME_MAX_LINUX + 1];
	struct gofer_call c;
	int r;

	gofer_call_init(&c, dir->fs->conn);
	c.req.op_case = OP(UNLINK);
	c.req.unlink = &m;
	m.name = name_str(q, name);
	m.dir = is_dir;
	r = gofer_call_fid(&c, dir, &m.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	if (r == 0) {
		gofer_listing_remove(dir, q->s, q->len);
		name_gone(gofer_inode(in), dir, q);
		dir_changed(dir, &c, 0);
	} else if (r == -ENOENT) {
		gofer_listing_drop(dir);
	}
	gofer_call_end(&c);
	return r;
}

int gofer_unlink(struct inode *dir, const struct qname *name, struct inode *in)
{
	return remove_name(dir, name, in, false);
}

int gofer_rmdir(struct inode *dir, const struct qname *name, struct inode *in)
{
	return remove_name(dir, name, in, true);
}

/* @gi is at another place now. Its id has followed; its change time is new. */
static void moved(struct gofer_inode *gi, struct gofer_inode *dir, const struct qname *q)
{
	char name[NAME_MAX_LINUX + 1];

	gofer_touched(gi);
	if (gofer_place_set(gi, dir, name_str(q, name)) < 0)
		gofer_place_clear(gi);
	else
		gi->name_until = gofer_name_until(dir);
	gofer_listing_add(dir, q->s, q->len, gi);
	gofer_neg_forget(dir, q->s, q->len);
}

int gofer_rename(struct inode *odir_in, const struct qname *oq, struct inode *in, struct inode *ndir_in,
		 const struct qname *nq, struct inode *target, unsigned flags)
{
	Sbx__Gofer__Rename m = SBX__GOFER__RENAME__INIT;
	struct gofer_inode *odir = gofer_inode(odir_in), *ndir = gofer_inode(ndir_in);
	char oname[NAME_MAX_LINUX + 1], nname[NAME_MAX_LINUX + 1];
	struct gofer_call c;
	int r;

	if (ndir->gone)
		return -ENOENT;
	r = gofer_bind(ndir);
	if (r < 0)
		return r;
	gofer_call_init(&c, odir->fs->conn);
	c.req.op_case = OP(RENAME);
	c.req.rename = &m;
	m.name = name_str(oq, oname);
	m.new_name = name_str(nq, nname);
	m.new_dir_fid = ndir->fid;
	m.flags = flags;
	r = gofer_call_fid(&c, odir, &m.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	if (r == 0) {
		gofer_listing_remove(odir, oq->s, oq->len);
		if (target && (flags & RENAME_EXCHANGE))
			moved(gofer_inode(target), odir, oq);
		else if (target)
			name_gone(gofer_inode(target), ndir, nq);
		moved(gofer_inode(in), ndir, nq);
		dir_changed(odir, &c, 0);
		dir_changed(ndir, &c, 1);
	} else if (r == -ENOENT || r == -EEXIST) {
		gofer_listing_drop(odir);
		gofer_listing_drop(ndir);
	}
	gofer_call_end(&c);
	return r;
}

/* Owners cannot be changed on a grant; asking for what is already so is no error. */
static int check_owner(const struct inode *in, const struct iattr *attr)
{
	if ((attr->valid & ATTR_UID) && attr->uid != in->uid)
		return -EPERM;
	if ((attr->valid & ATTR_GID) && attr->gid != in->gid)
		return -EPERM;
	return 0;
}

int gofer_setattr(struct inode *in, const struct iattr *attr)
{
	Sbx__Gofer__SetAttr m = SBX__GOFER__SET_ATTR__INIT;
	struct gofer_inode *gi = gofer_inode(in);
	uint32_t valid = attr->valid & (ATTR_MODE | ATTR_SIZE | ATTR_ATIME | ATTR_MTIME);
	struct gofer_call c;
	int r = check_owner(in, attr);

	if (r < 0)
		return r;
	if ((valid & ATTR_SIZE) && gofer_truncate_fd(gi, attr->size) == 0)
		valid &= ~ATTR_SIZE;
	if (!valid || gofer_defer(gi, attr, valid))
		return 0;
	gofer_call_init(&c, gi->fs->conn);
	c.req.op_case = OP(SETATTR);
	c.req.setattr = &m;
	gofer_setattr_fill(&m, attr, valid);
	r = gofer_call_fid(&c, gi, &m.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	gofer_touched(gi);
	if (r == 0 && c.n_attrs)
		gofer_attr_set(gi, c.attrs[0], gofer_attr_until(gi));
	gofer_call_end(&c);
	return r;
}
