/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/memfs.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bug.h"
#include "base/macros.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/uio.h"

static const struct inode_ops mem_ops, mem_stable_ops, mem_magic_ops;
static const struct file_ops mem_file_ops, mem_dir_ops;

static struct mem_super *mem_s(const struct inode *in)
{
	return (struct mem_super *)in->sb;
}

static struct mem_inode *mem_new(struct mem_super *ms, uint32_t mode, uid_t uid, gid_t gid)
{
	struct mem_inode *mi = calloc(1, sizeof(*mi));

	BUG_ON(!mi);
	inode_init(&mi->vfs, &ms->sb, ms->sb.stable ? &mem_stable_ops : &mem_ops, ++ms->next_ino, mode);
	mi->vfs.uid = uid;
	mi->vfs.gid = gid;
	if (S_ISREG(mode))
		mi->vfs.fops = &mem_file_ops;
	if (S_ISDIR(mode)) {
		mi->vfs.fops = &mem_dir_ops;
		mi->vfs.nlink = 2;
	}
	ms->inodes++;
	return mi;
}

static struct mem_entry *mem_find(struct mem_inode *dir, const char *s, size_t len)
{
	for (int i = 0; i < MEMFS_NAMES; i++) {
		struct mem_entry *e = &dir->names[i];

		if (e->in && strlen(e->name) == len && !memcmp(e->name, s, len))
			return e;
	}
	return NULL;
}

/* Takes a reference on @in. */
static int mem_add(struct mem_inode *dir, const char *s, size_t len, struct mem_inode *in)
{
	if (mem_find(dir, s, len))
		return -EEXIST;
	for (int i = 0; i < MEMFS_NAMES; i++) {
		struct mem_entry *e = &dir->names[i];

		if (e->in)
			continue;
		memcpy(e->name, s, len);
		e->name[len] = '\0';
		e->in = in;
		inode_get(&in->vfs);
		return 0;
	}
	return -ENOSPC;
}

static void mem_del(struct mem_entry *e)
{
	struct inode *in = &e->in->vfs;

	e->in = NULL;
	in->nlink = S_ISDIR(in->mode) ? 0 : in->nlink - 1;
	inode_put(in);
}

static int mem_lookup(struct inode *dir, const struct qname *q, struct inode **ret)
{
	struct mem_entry *e = mem_find(mem_i(dir), q->s, q->len);

	mem_s(dir)->lookups++;
	if (!e && q->len == 6 && !memcmp(q->s, "hidden", 6))
		return -ENOENT_UNCACHED;
	if (!e)
		return -ENOENT;
	*ret = inode_get(&e->in->vfs);
	return 0;
}

static int mem_revalidate(struct inode *dir, const struct qname *q, struct inode *in)
{
	struct mem_entry *e = mem_find(mem_i(dir), q->s, q->len);

	mem_s(dir)->revalidates++;
	return in == (e ? &e->in->vfs : NULL);
}

static int mem_make(struct inode *dir, const struct qname *q, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	struct mem_inode *mi = mem_new(mem_s(dir), mode, uid, gid);
	int err = mem_add(mem_i(dir), q->s, q->len, mi);

	if (err)
		inode_put(&mi->vfs);
	else
		*ret = &mi->vfs;
	return err;
}

static int mem_create(struct inode *dir, const struct qname *q, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	return mem_make(dir, q, S_IFREG | mode, uid, gid, ret);
}

static int mem_mkdir(struct inode *dir, const struct qname *q, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	return mem_make(dir, q, S_IFDIR | mode, uid, gid, ret);
}

static int mem_mknod(struct inode *dir, const struct qname *q, uint32_t mode, uint64_t rdev, uid_t uid, gid_t gid,
		     struct inode **ret)
{
	return mem_make(dir, q, mode, uid, gid, ret);
}

static int mem_symlink(struct inode *dir, const struct qname *q, const char *target, uid_t uid, gid_t gid,
		       struct inode **ret)
{
	int err = mem_make(dir, q, S_IFLNK | 0777, uid, gid, ret);

	if (!err) {
		strncpy(mem_i(*ret)->data, target, MEMFS_BYTES - 1);
		(*ret)->size = strlen(target);
	}
	return err;
}

static int mem_link(struct inode *dir, const struct qname *q, struct inode *in)
{
	int err = mem_add(mem_i(dir), q->s, q->len, mem_i(in));

	if (!err)
		in->nlink++;
	return err;
}

static int mem_unlink(struct inode *dir, const struct qname *q, struct inode *in)
{
	struct mem_entry *e = mem_find(mem_i(dir), q->s, q->len);

	if (!e)
		return -ENOENT;
	mem_del(e);
	return 0;
}

static int mem_rmdir(struct inode *dir, const struct qname *q, struct inode *in)
{
	for (int i = 0; i < MEMFS_NAMES; i++)
		if (mem_i(in)->names[i].in)
			return -ENOTEMPTY;
	return mem_unlink(dir, q, in);
}

static int mem_rename(struct inode *odir, const struct qname *oq, struct inode *in, struct inode *ndir,
		      const struct qname *nq, struct inode *target, unsigned flags)
{
	struct mem_entry *o = mem_find(mem_i(odir), oq->s, oq->len), *n;

	if (!o)
		return -ENOENT;
	if (flags & RENAME_EXCHANGE) {
		n = mem_find(mem_i(ndir), nq->s, nq->len);
		if (!n)
			return -ENOENT;
		o->in = mem_i(target);
		n->in = mem_i(in);
		return 0;
	}
	if (target) {
		int err = S_ISDIR(target->mode) ? mem_rmdir(ndir, nq, target) : mem_unlink(ndir, nq, target);

		if (err)
			return err;
	}
	if (mem_add(mem_i(ndir), nq->s, nq->len, mem_i(in)))
		return -ENOSPC;
	o->in = NULL;
	inode_put(in);
	return 0;
}

static int mem_tmpfile(struct inode *dir, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret)
{
	*ret = &mem_new(mem_s(dir), S_IFREG | mode, uid, gid)->vfs;
	(*ret)->nlink = 0;
	return 0;
}

static int mem_readlink(struct inode *in, char *buf, size_t n)
{
	size_t len = MIN(strlen(mem_i(in)->data), n);

	memcpy(buf, mem_i(in)->data, len);
	return (int)len;
}

static int mem_follow(struct inode *in, struct task *t, struct dentry **dentry, struct mount **mnt)
{
	return file_place(mem_i(in)->magic, dentry, mnt);
}

static int mem_setattr(struct inode *in, const struct iattr *a)
{
	if (a->valid & ATTR_MODE)
		in->mode = (in->mode & S_IFMT) | a->mode;
	if (a->valid & ATTR_UID)
		in->uid = a->uid;
	if (a->valid & ATTR_GID)
		in->gid = a->gid;
	if (a->valid & ATTR_SIZE)
		in->size = a->size;
	if (a->valid & ATTR_ATIME)
		in->atime = a->atime;
	if (a->valid & ATTR_MTIME)
		in->mtime = a->mtime;
	return 0;
}

static void mem_destroy(struct inode *in)
{
	mem_s(in)->inodes--;
	for (int i = 0; i < MEMFS_NAMES; i++)
		if (mem_i(in)->names[i].in)
			mem_del(&mem_i(in)->names[i]);
	free(in);
}

#define MEM_COMMON_OPS \
	.lookup = mem_lookup, .create = mem_create, .mkdir = mem_mkdir, .mknod = mem_mknod, .symlink = mem_symlink, \
	.link = mem_link, .unlink = mem_unlink, .rmdir = mem_rmdir, .rename = mem_rename, .tmpfile = mem_tmpfile, \
	.readlink = mem_readlink, .setattr = mem_setattr, .destroy = mem_destroy

static const struct inode_ops mem_ops = { MEM_COMMON_OPS, .revalidate = mem_revalidate };
static const struct inode_ops mem_stable_ops = { MEM_COMMON_OPS };
static const struct inode_ops mem_magic_ops = { MEM_COMMON_OPS, .follow = mem_follow };

static ssize_t mem_read(struct file *f, struct uio *u, uint64_t *pos)
{
	ssize_t n;

	if (*pos >= f->inode->size)
		return 0;
	n = uio_copy_to(u, mem_i(f->inode)->data + *pos, (size_t)(f->inode->size - *pos));
	if (n > 0)
		*pos += (uint64_t)n;
	return n;
}

static ssize_t mem_write(struct file *f, struct uio *u, uint64_t *pos)
{
	ssize_t n;

	if (f->flags & 02000 /* O_APPEND */)
		*pos = f->inode->size;
	if (*pos >= MEMFS_BYTES)
		return -ENOSPC;
	n = uio_copy_from(u, mem_i(f->inode)->data + *pos, (size_t)(MEMFS_BYTES - *pos));
	if (n > 0)
		*pos += (uint64_t)n;
	f->inode->size = MAX(f->inode->size, *pos);
	return n;
}

static int mem_iterate(struct file *f, struct dir_emit *e)
{
	struct mem_inode *dir = mem_i(f->inode);

	for (; f->pos < MEMFS_NAMES; f->pos++) {
		struct mem_entry *en = &dir->names[f->pos];

		if (en->in &&
		    !e->emit(e, en->name, strlen(en->name), en->in->vfs.ino, en->in->vfs.mode >> 12, f->pos + 1))
			return 0;
	}
	return 0;
}

static const struct file_ops mem_file_ops = { .read = mem_read, .write = mem_write };
static const struct file_ops mem_dir_ops = { .iterate = mem_iterate };

static void mem_super_destroy(struct super *sb)
{
	BUG_ON(((struct mem_super *)sb)->inodes);
	free(sb);
}

static const struct super_ops mem_super_ops = { .destroy = mem_super_destroy };

struct mem_super *memfs_create(bool stable)
{
	struct mem_super *ms = calloc(1, sizeof(*ms));

	BUG_ON(!ms);
	super_init(&ms->sb, &mem_super_ops, "memfs", 0x6d656d66);
	ms->sb.stable = stable;
	ms->sb.root = &mem_new(ms, S_IFDIR | 0755, 0, 0)->vfs;
	return ms;
}

void memfs_host_remove(struct mem_inode *dir, const char *name)
{
	struct mem_entry *e = mem_find(dir, name, strlen(name));

	if (e)
		mem_del(e);
}

struct mem_inode *memfs_host_create(struct mem_inode *dir, const char *name, uint32_t mode)
{
	struct mem_inode *mi = mem_new(mem_s(&dir->vfs), mode, 0, 0);

	BUG_ON(mem_add(dir, name, strlen(name), mi));
	inode_put(&mi->vfs);
	return mi;
}

void memfs_host_rename(struct mem_inode *from, const char *name, struct mem_inode *to, const char *new_name)
{
	struct mem_entry *e = mem_find(from, name, strlen(name));

	BUG_ON(mem_add(to, new_name, strlen(new_name), e->in));
	inode_put(&e->in->vfs);
	e->in = NULL;
}

struct mem_inode *memfs_magic(struct mem_inode *dir, const char *name, struct file *to)
{
	struct mem_inode *mi = memfs_host_create(dir, name, S_IFLNK | 0777);

	mi->vfs.ops = &mem_magic_ops;
	mi->magic = to;
	return mi;
}
