/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/fs.h"
#include "sentry/fs/proc/proc_priv.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/uio.h"
#include "sentry/vfs/vfs.h"

#define PROC_SUPER_MAGIC 0x9fa0
#define PROC_WRITE_MAX   4096u
#define PROC_NUMBER_BASE 1000 /* readdir positions: numbered entries come after the static ones */

struct proc_file {
	struct file file;
	struct strbuf text;
	bool filled;
};

static const struct inode_ops proc_dir_ops, proc_link_ops, proc_magic_ops, proc_text_ops;
static const struct file_ops proc_dir_fops, proc_text_fops;
static uint64_t next_ino = 2;

static struct proc_inode *proc_of(struct inode *in)
{
	return container_of(in, struct proc_inode, in);
}

static bool is_dir(const struct proc_node *n)
{
	return n->kind != PROC_TEXT && n->kind != PROC_LINK;
}

struct task *proc_task(const struct proc_inode *pi)
{
	struct task *t = pi->pid ? task_lookup(pi->pid) : NULL;

	return t;
}

/* May the task whose call this is see what the node shows of @t (NULL: no task's)? */
static int may_look(const struct proc_inode *pi, const struct task *t)
{
	const struct task *who = kernel.current;

	if (!pi->node->look || !t || !who || who->tg == t->tg)
		return 0;
	return t->cred && cred_may_ptrace(who->cred, t->cred, t->tg->dumpable) ? 0 : -EACCES;
}

static const struct inode_ops *ops_of(const struct proc_node *n)
{
	if (is_dir(n))
		return &proc_dir_ops;
	if (n->kind == PROC_LINK)
		return n->follow ? &proc_magic_ops : &proc_link_ops;
	return &proc_text_ops;
}

int proc_inode_create(struct super *sb, const struct proc_node *node, pid_t pid, int fd, bool thread,
                      struct inode **ret)
{
	struct proc_inode *pi = calloc(1, sizeof(*pi));
	uint32_t type = is_dir(node) ? S_IFDIR : node->kind == PROC_LINK ? S_IFLNK : S_IFREG;
	struct task *t;

	if (!pi)
		return -ENOMEM;
	inode_init(&pi->in, sb, ops_of(node), next_ino++, type | node->mode);
	pi->in.fops = is_dir(node) ? &proc_dir_fops : node->kind == PROC_TEXT ? &proc_text_fops : NULL;
	pi->in.nlink = is_dir(node) ? 2 : 1;
	pi->in.mtime = pi->in.ctime = pi->in.atime = ktime_now();
	pi->node = node;
	pi->pid = pid;
	pi->fd = fd;
	pi->thread = thread;
	t = proc_task(pi);
	if (t && t->cred) {
		pi->in.uid = t->cred->euid;
		pi->in.gid = t->cred->egid;
	}
	task_put(t);
	*ret = &pi->in;
	return 0;
}

/* A name that is a plain decimal number without leading zeros, or -1. */
static int number_of(const struct qname *name)
{
	int v = 0;

	if (!name->len || name->len > 9 || (name->s[0] == '0' && name->len > 1))
		return -1;
	for (uint32_t i = 0; i < name->len; i++) {
		if (!isdigit((unsigned char)name->s[i]))
			return -1;
		v = v * 10 + (name->s[i] - '0');
	}
	return v;
}

static const struct proc_node *child_of(const struct proc_node *list, const struct qname *name)
{
	for (; list && list->name; list++) {
		if (strlen(list->name) == name->len && !memcmp(list->name, name->s, name->len))
			return list;
	}
	return NULL;
}

static bool fd_exists(const struct proc_inode *pi, int fd)
{
	struct task *t = proc_task(pi);
	struct file *f = t && t->fdt ? fd_lookup(t->fdt, fd) : NULL;

	file_put(f);
	task_put(t);
	return f != NULL;
}

/* The node that a number names in a directory, or NULL. */
static const struct proc_node *number_node(const struct proc_inode *dir, int n)
{
	const struct proc_node *node = NULL;
	struct task *t;

	switch (dir->node->kind) {
	case PROC_FDS:
		return fd_exists(dir, n) ? &proc_fd_node : NULL;
	case PROC_FDINFOS:
		return fd_exists(dir, n) ? &proc_fdinfo_node : NULL;
	case PROC_ROOT:
		t = n > 0 ? task_lookup(n) : NULL;
		if (t)
			node = &proc_pid_node;
		task_put(t);
		return node;
	case PROC_TASKS:
		t = n > 0 ? task_lookup(n) : NULL;
		if (t && t->tg->tgid == dir->pid)
			node = &proc_tid_node;
		task_put(t);
		return node;
	default:
		return NULL;
	}
}

static int proc_lookup(struct inode *in, const struct qname *name, struct inode **ret)
{
	struct proc_inode *dir = proc_of(in);
	const struct proc_node *node = child_of(dir->node->children, name);
	bool fds = dir->node->kind == PROC_FDS || dir->node->kind == PROC_FDINFOS;
	struct task *t;
	int n;

	if (dir->pid) {
		t = proc_task(dir);
		if (!t)
			return -ENOENT;
		task_put(t);
	}
	if (node)
		return proc_inode_create(in->sb, node, dir->pid, dir->fd, dir->thread, ret);
	n = number_of(name);
	node = n < 0 ? NULL : number_node(dir, n);
	if (!node)
		return -ENOENT;
	return proc_inode_create(in->sb, node, fds ? dir->pid : n, fds ? n : -1, dir->node->kind == PROC_TASKS, ret);
}

/* Numbers come and go; everything else stays as long as its task. */
static int proc_revalidate(struct inode *in, const struct qname *name, struct inode *child)
{
	struct proc_inode *dir = proc_of(in), *c;
	struct task *t;

	if (!child)
		return 0;
	c = proc_of(child);
	if (!c->pid)
		return 1;
	if (dir->node->kind == PROC_FDS || dir->node->kind == PROC_FDINFOS)
		return fd_exists(dir, c->fd);
	t = proc_task(c);
	if (!t)
		return 0;
	if (t->cred) {
		child->uid = t->cred->euid;
		child->gid = t->cred->egid;
	}
	task_put(t);
	return 1;
}

static int emit_static(struct file *f, struct dir_emit *e, const struct proc_node *list)
{
	uint64_t i = 2;

	for (; list && list->name; list++, i++) {
		unsigned type = is_dir(list) ? DT_DIR : list->kind == PROC_LINK ? DT_LNK : DT_REG;

		if (f->pos > i)
			continue;
		if (!e->emit(e, list->name, strlen(list->name), i, type, i + 1))
			return 1;
		f->pos = i + 1;
	}
	return 0;
}

/* The smallest number >= @n that the directory shows, or -1. */
static int next_number(const struct proc_inode *dir, int n)
{
	struct tgroup *tg;
	struct task *t, *it;
	int best = -1;

	switch (dir->node->kind) {
	case PROC_ROOT:
		list_for_each_entry(tg, &kernel.tgroups, all_node) {
			if (tg->tgid >= n && (best < 0 || tg->tgid < best))
				best = tg->tgid;
		}
		return best;
	case PROC_TASKS:
		t = proc_task(dir);
		if (!t)
			return -1;
		list_for_each_entry(it, &t->tg->tasks, tg_node) {
			if (it->tid >= n && (best < 0 || it->tid < best))
				best = it->tid;
		}
		task_put(t);
		return best;
	case PROC_FDS:
	case PROC_FDINFOS:
		t = proc_task(dir);
		best = t && t->fdt ? fd_next(t->fdt, n) : -1;
		task_put(t);
		return best;
	default:
		return -1;
	}
}

static unsigned number_dtype(const struct proc_inode *dir)
{
	return dir->node->kind == PROC_FDS ? DT_LNK : dir->node->kind == PROC_FDINFOS ? DT_REG : DT_DIR;
}

static int proc_iterate(struct file *f, struct dir_emit *e)
{
	struct proc_inode *dir = proc_of(f->inode);
	char name[16];
	int n;

	if (f->pos == 0) {
		if (!e->emit(e, ".", 1, f->inode->ino, DT_DIR, 1))
			return 0;
		f->pos = 1;
	}
	if (f->pos == 1) {
		if (!e->emit(e, "..", 2, 1, DT_DIR, 2))
			return 0;
		f->pos = 2;
	}
	if (f->pos < PROC_NUMBER_BASE && emit_static(f, e, dir->node->children))
		return 0;
	if (f->pos < PROC_NUMBER_BASE)
		f->pos = PROC_NUMBER_BASE;
	while (f->pos - PROC_NUMBER_BASE <= INT32_MAX &&
	       (n = next_number(dir, (int)(f->pos - PROC_NUMBER_BASE))) >= 0) {
		int len = snprintf(name, sizeof(name), "%d", n);
		uint64_t next = PROC_NUMBER_BASE + (uint64_t)n + 1;

		if (!e->emit(e, name, (size_t)len, (uint64_t)n + 100000, number_dtype(dir), next))
			return 0;
		f->pos = next;
	}
	return 0;
}

static ssize_t proc_readlink(struct inode *in, char *buf, size_t n)
{
	struct proc_inode *pi = proc_of(in);
	struct task *t = proc_task(pi);
	struct strbuf b = { 0 };
	int err = pi->pid && !t ? -ENOENT : may_look(pi, t);
	ssize_t len = -ENOMEM;

	if (!err)
		err = pi->node->link(&b, pi, t);
	if (err) {
		len = err;
	} else if (strbuf_ok(&b)) {
		len = (ssize_t)MIN(b.len, n);
		memcpy(buf, b.p ? b.p : "", (size_t)len);
	}
	strbuf_fini(&b);
	task_put(t);
	return len;
}

static int proc_readlink_op(struct inode *in, char *buf, size_t n)
{
	return (int)proc_readlink(in, buf, n);
}

static int proc_follow(struct inode *in, struct task *caller, struct dentry **dentry, struct mount **mnt)
{
	struct proc_inode *pi = proc_of(in);
	struct task *t = proc_task(pi);
	struct path p = { NULL, NULL };
	int err = t ? may_look(pi, t) : -ENOENT;

	if (!err)
		err = pi->node->follow(pi, t, &p);
	task_put(t);
	if (err)
		return err;
	*dentry = p.dentry;
	*mnt = p.mnt;
	return 0;
}

static int proc_setattr(struct inode *in, const struct iattr *attr)
{
	/* O_TRUNC of a writable file is harmless; owners and modes are fixed. */
	return (attr->valid & (ATTR_MODE | ATTR_UID | ATTR_GID)) ? -EPERM : 0;
}

static void proc_destroy(struct inode *in)
{
	free(proc_of(in));
}

static int text_fill(struct proc_file *pf)
{
	struct proc_inode *pi = proc_of(pf->file.inode);
	struct task *t = proc_task(pi);
	int err;

	strbuf_reset(&pf->text);
	err = pi->pid && !t ? -ESRCH : pi->node->text(&pf->text, pi, t);
	task_put(t);
	if (err)
		return err;
	if (!strbuf_ok(&pf->text))
		return -ENOMEM;
	pf->filled = true;
	return 0;
}

static ssize_t text_read(struct file *f, struct uio *u, uint64_t *pos)
{
	struct proc_file *pf = container_of(f, struct proc_file, file);
	ssize_t n;

	if (!pf->filled || *pos == 0) {
		int err = text_fill(pf);

		if (err)
			return err;
	}
	if (*pos >= pf->text.len)
		return 0;
	n = uio_copy_to(u, pf->text.p + *pos, pf->text.len - *pos);
	if (n > 0)
		*pos += (uint64_t)n;
	return n;
}

static ssize_t text_write(struct file *f, struct uio *u, uint64_t *pos)
{
	struct proc_inode *pi = proc_of(f->inode);
	char buf[PROC_WRITE_MAX];
	struct task *t;
	ssize_t n;
	int err;

	if (!pi->node->store)
		return -EIO;
	if (u->resid >= sizeof(buf))
		return -EINVAL;
	n = uio_copy_from(u, buf, sizeof(buf) - 1);
	if (n < 0)
		return n;
	buf[n] = '\0';
	t = proc_task(pi);
	err = pi->pid && !t ? -ESRCH : pi->node->store(pi, t, buf, (size_t)n);
	task_put(t);
	if (err)
		return err;
	*pos += (uint64_t)n;
	return n;
}

static int proc_text_open(struct inode *in, struct file *f)
{
	struct proc_inode *pi = proc_of(in);
	struct task *t = proc_task(pi);
	int err = may_look(pi, t);

	task_put(t);
	return err;
}

static void text_release(struct file *f)
{
	strbuf_fini(&container_of(f, struct proc_file, file)->text);
}

static const struct file_ops proc_text_fops = {
	.file_size = sizeof(struct proc_file),
	.read = text_read,
	.write = text_write,
	.release = text_release,
};

static const struct file_ops proc_dir_fops = {
	.iterate = proc_iterate,
};

static const struct inode_ops proc_dir_ops = {
	.lookup = proc_lookup,
	.revalidate = proc_revalidate,
	.setattr = proc_setattr,
	.destroy = proc_destroy,
};

static const struct inode_ops proc_text_ops = {
	.open = proc_text_open,
	.setattr = proc_setattr,
	.destroy = proc_destroy,
};

static const struct inode_ops proc_link_ops = {
	.readlink = proc_readlink_op,
	.setattr = proc_setattr,
	.destroy = proc_destroy,
};

static const struct inode_ops proc_magic_ops = {
	.readlink = proc_readlink_op,
	.follow = proc_follow,
	.setattr = proc_setattr,
	.destroy = proc_destroy,
};

static int proc_statfs(struct super *sb, struct kstatfs *st)
{
	*st = (struct kstatfs){ .type = sb->magic, .bsize = 4096, .namelen = NAME_MAX_LINUX };
	return 0;
}

static void proc_super_destroy(struct super *sb)
{
	free(sb);
}

static const struct super_ops proc_super_ops = {
	.statfs = proc_statfs,
	.destroy = proc_super_destroy,
};

int proc_super_create(const struct proc_node *root, const char *fstype, uint64_t magic, struct super **ret)
{
	struct super *sb = calloc(1, sizeof(*sb));
	int err;

	if (!sb)
		return -ENOMEM;
	super_init(sb, &proc_super_ops, fstype, magic);
	err = proc_inode_create(sb, root, 0, -1, false, &sb->root);
	if (err) {
		super_put(sb);
		return err;
	}
	*ret = sb;
	return 0;
}

static const struct proc_node root_node = {
	.name = "proc", .mode = 0555, .kind = PROC_ROOT, .children = proc_root_children,
};

int procfs_create(struct super **ret)
{
	return proc_super_create(&root_node, "proc", PROC_SUPER_MAGIC, ret);
}
