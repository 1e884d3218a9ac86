/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fs_util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/bug.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timer.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/vfs/epoll.h"
#include "sentry/vfs/locks.h"
#include "sentry/vfs/uio.h"

/* The kernel object where the whole sentry is not linked. */
__attribute__((weak)) struct kernel kernel;

__attribute__((weak)) void kernel_random(void *buf, size_t n)
{
	BUG_ON(getrandom(buf, n, 0) != (ssize_t)n);
}

__attribute__((weak)) uint64_t clock_real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* No test has guest memory, tasks, locks or epoll. */
#define ABSENT(type, name, ...) \
	__attribute__((weak)) type name(__VA_ARGS__) \
	{ \
		bug_die(__FILE__, __LINE__, #name); \
	}

ABSENT(int, copy_in, struct task *t UNUSED, uaddr_t src UNUSED, void *dst UNUSED, size_t n UNUSED)
ABSENT(int, copy_out, struct task *t UNUSED, uaddr_t dst UNUSED, const void *src UNUSED, size_t n UNUSED)
ABSENT(ssize_t, copy_in_part, struct task *t UNUSED, uaddr_t src UNUSED, void *dst UNUSED, size_t n UNUSED)
ABSENT(ssize_t, copy_out_part, struct task *t UNUSED, uaddr_t dst UNUSED, const void *src UNUSED, size_t n UNUSED)
ABSENT(void, epoll_file_gone, struct file *f UNUSED)
ABSENT(void, locks_file_gone, struct file *f UNUSED)
ABSENT(void, locks_fd_closed, struct file *f UNUSED, struct fdtable *owner UNUSED)
ABSENT(bool, cred_has_cap, const struct cred *c UNUSED, int cap UNUSED)
ABSENT(bool, cred_in_group, const struct cred *c UNUSED, gid_t gid UNUSED)
ABSENT(void, sig_send_self, struct task *t UNUSED, int sig UNUSED)
ABSENT(uint64_t, task_rlimit, const struct task *t UNUSED, unsigned resource UNUSED)
ABSENT(void, task_op_hold, struct task *t UNUSED, void *data UNUSED, void (*data_free)(void *data) UNUSED)
ABSENT(int, task_wait_on, struct task *t UNUSED, struct waitq *q UNUSED, uint32_t events UNUSED)
ABSENT(int64_t, task_block, struct task *t UNUSED, int64_t intr UNUSED)
ABSENT(void, locks_inode_gone, struct inode *in UNUSED)

static struct qname qn(const char *s, size_t len)
{
	return (struct qname){ .s = s, .len = (uint32_t)len };
}

int fsu_find(struct super *sb, const char *path, struct inode **ret)
{
	struct inode *in = inode_get(sb->root), *next;
	int err;

	while (*path) {
		size_t len = strcspn(path, "/");
		struct qname q = qn(path, len);

		err = in->ops->lookup ? in->ops->lookup(in, &q, &next) : -ENOTDIR;
		inode_put(in);
		if (err < 0)
			return err;
		in = next;
		path += len + (path[len] == '/');
	}
	*ret = in;
	return 0;
}

/* The directory of @path, and its last name. */
static int find_parent(struct super *sb, const char *path, struct inode **dir, struct qname *q)
{
	const char *slash = strrchr(path, '/');
	char buf[4096];
	int err;

	snprintf(buf, sizeof(buf), "%.*s", slash ? (int)(slash - path) : 0, path);
	*q = qn(slash ? slash + 1 : path, strlen(slash ? slash + 1 : path));
	err = fsu_find(sb, buf, dir);
	if (err == 0 && !S_ISDIR((*dir)->mode)) {
		inode_put(*dir);
		err = -ENOTDIR;
	}
	return err;
}

/* As vfs does before a creation. */
static int check_free(struct inode *dir, const struct qname *q)
{
	struct inode *in;
	int err = dir->ops->lookup(dir, q, &in);

	if (err == 0) {
		inode_put(in);
		return -EEXIST;
	}
	return err == -ENOENT ? 0 : err;
}

enum make { MAKE_FILE, MAKE_DIR, MAKE_LINK, MAKE_FIFO };

static int make(struct super *sb, const char *path, enum make what, uint32_t mode, const char *target)
{
	struct inode *dir, *in = NULL;
	struct qname q;
	int err = find_parent(sb, path, &dir, &q);

	if (err < 0)
		return err;
	err = check_free(dir, &q);
	if (err == 0 && what == MAKE_FILE)
		err = dir->ops->create(dir, &q, mode, 1, 2, &in);
	else if (err == 0 && what == MAKE_DIR)
		err = dir->ops->mkdir(dir, &q, mode, 1, 2, &in);
	else if (err == 0 && what == MAKE_LINK)
		err = dir->ops->symlink(dir, &q, target, 1, 2, &in);
	else if (err == 0)
		err = dir->ops->mknod(dir, &q, S_IFIFO | mode, 0, 1, 2, &in);
	if (err == 0)
		inode_put(in);
	inode_put(dir);
	return err;
}

int fsu_create(struct super *sb, const char *path, uint32_t mode)
{
	return make(sb, path, MAKE_FILE, mode, NULL);
}

int fsu_mkdir(struct super *sb, const char *path)
{
	return make(sb, path, MAKE_DIR, 0755, NULL);
}

int fsu_symlink(struct super *sb, const char *target, const char *path)
{
	return make(sb, path, MAKE_LINK, 0777, target);
}

int fsu_mkfifo(struct super *sb, const char *path)
{
	return make(sb, path, MAKE_FIFO, 0600, NULL);
}

int fsu_link(struct super *sb, const char *from, const char *to)
{
	struct inode *dir, *in;
	struct qname q;
	int err = fsu_find(sb, from, &in);

	if (err < 0)
		return err;
	err = S_ISDIR(in->mode) ? -EPERM : find_parent(sb, to, &dir, &q);
	if (err == 0) {
		err = check_free(dir, &q);
		if (err == 0)
			err = dir->ops->link(dir, &q, in);
		inode_put(dir);
	}
	inode_put(in);
	return err;
}

static int remove_name(struct super *sb, const char *path, bool is_dir)
{
	struct inode *dir, *in;
	struct qname q;
	int err = find_parent(sb, path, &dir, &q);

	if (err < 0)
		return err;
	err = dir->ops->lookup(dir, &q, &in);
	if (err == 0) {
		if (S_ISDIR(in->mode) != is_dir)
			err = is_dir ? -ENOTDIR : -EISDIR;
		else
			err = is_dir ? dir->ops->rmdir(dir, &q, in) : dir->ops->unlink(dir, &q, in);
		inode_put(in);
	}
	inode_put(dir);
	return err;
}

int fsu_unlink(struct super *sb, const char *path)
{
	return remove_name(sb, path, false);
}

int fsu_rmdir(struct super *sb, const char *path)
{
	return remove_name(sb, path, true);
}

/* Is @b below @a, or the same? By path: there are no symlinks in the middle. */
static bool below(const char *a, const char *b)
{
	size_t n = strlen(a);

	return !strncmp(a, b, n) && (b[n] == '/' || b[n] == '\0');
}

/* The checks that vfs makes before it calls the operation. */
static int rename_check(const char *from, struct inode *in, const char *to, struct inode *target, unsigned flags)
{
	if (flags & RENAME_NOREPLACE && target)
		return -EEXIST;
	if (flags & RENAME_EXCHANGE && !target)
		return -ENOENT;
	if (below(from, to) && strcmp(from, to))
		return -EINVAL;
	if (below(to, from) && strcmp(from, to))
		return flags & RENAME_EXCHANGE ? -EINVAL : -ENOTEMPTY;
	if (!target || flags & RENAME_EXCHANGE)
		return 0;
	if (S_ISDIR(in->mode) && !S_ISDIR(target->mode))
		return -ENOTDIR;
	return !S_ISDIR(in->mode) && S_ISDIR(target->mode) ? -EISDIR : 0;
}

int fsu_rename(struct super *sb, const char *from, const char *to, unsigned flags)
{
	struct inode *od, *nd, *in = NULL, *target = NULL;
	struct qname oq, nq;
	int err = find_parent(sb, from, &od, &oq);

	if (err < 0)
		return err;
	err = find_parent(sb, to, &nd, &nq);
	if (err < 0) {
		inode_put(od);
		return err;
	}
	err = od->ops->lookup(od, &oq, &in);
	if (err == 0) {
		if (nd->ops->lookup(nd, &nq, &target) < 0)
			target = NULL;
		err = rename_check(from, in, to, target, flags);
	}
	if (err == 0 && in != target)
		err = od->ops->rename(od, &oq, in, nd, &nq, target, flags);
	inode_put(in);
	inode_put(target);
	inode_put(od);
	inode_put(nd);
	return err;
}

static int setattr(struct super *sb, const char *path, const struct iattr *attr)
{
	struct inode *in;
	int err = fsu_find(sb, path, &in);

	if (err < 0)
		return err;
	if (S_ISLNK(in->mode))
		err = -EINVAL;
	else if (attr->valid & ATTR_SIZE && !S_ISREG(in->mode))
		err = S_ISDIR(in->mode) ? -EISDIR : -EINVAL;
	else
		err = in->ops->setattr(in, attr);
	inode_put(in);
	return err;
}

int fsu_chmod(struct super *sb, const char *path, uint32_t mode)
{
	return setattr(sb, path, &(struct iattr){ .valid = ATTR_MODE, .mode = mode });
}

int fsu_truncate(struct super *sb, const char *path, uint64_t size)
{
	return setattr(sb, path, &(struct iattr){ .valid = ATTR_SIZE, .size = size });
}

static int open_inode(struct inode *in, uint32_t flags, struct file **ret)
{
	struct file *f;
	int err = 0;

	if (!in->fops)
		return -ENXIO;
	f = file_create(in->fops, in, flags);
	if (!f)
		return -ENFILE;
	if (in->ops->open)
		err = in->ops->open(in, f);
	if (err < 0) {
		f->ops = NULL;
		file_put(f);
		return err;
	}
	*ret = f;
	return 0;
}

int fsu_open(struct super *sb, const char *path, uint32_t flags, struct file **ret)
{
	struct inode *in;
	int err = fsu_find(sb, path, &in);

	if (err < 0)
		return err;
	if (S_ISDIR(in->mode) && (flags & O_ACCMODE) != O_RDONLY)
		err = -EISDIR;
	else
		err = open_inode(in, flags, ret);
	inode_put(in);
	return err;
}

ssize_t fsu_write_at(struct file *f, const void *buf, size_t n, uint64_t off)
{
	struct uio_seg seg;
	struct uio u;

	uio_init_kernel(&u, &seg, (void *)(uintptr_t)buf, n);
	return f->ops->write ? f->ops->write(f, &u, &off) : -EINVAL;
}

ssize_t fsu_read_at(struct file *f, void *buf, size_t n, uint64_t off)
{
	struct uio_seg seg;
	struct uio u;

	uio_init_kernel(&u, &seg, buf, n);
	return f->ops->read ? f->ops->read(f, &u, &off) : -EISDIR;
}

int fsu_put(struct super *sb, const char *path, const char *text)
{
	struct file *f;
	ssize_t n;
	int err = fsu_create(sb, path, 0644);

	if (err < 0 && err != -EEXIST)
		return err;
	err = fsu_open(sb, path, O_RDWR, &f);
	if (err < 0)
		return err;
	n = fsu_write_at(f, text, strlen(text), 0);
	file_put(f);
	return n < 0 ? (int)n : 0;
}

const char *fsu_text(struct super *sb, const char *path)
{
	static char buf[65536];
	struct file *f;
	ssize_t n;

	if (fsu_open(sb, path, O_RDONLY, &f) < 0)
		return NULL;
	n = fsu_read_at(f, buf, sizeof(buf) - 1, 0);
	file_put(f);
	if (n < 0)
		return NULL;
	buf[n] = '\0';
	return buf;
}

/* ---- directories ---- */

#define NAMES_MAX 4096

struct collect {
	struct dir_emit e;
	char *names[NAMES_MAX];
	unsigned n, room; /* room: entries until the buffer is "full" */
};

static bool collect_entry(struct dir_emit *e, const char *name, size_t len, uint64_t ino, unsigned dtype,
			  uint64_t next_pos)
{
	struct collect *c = container_of(e, struct collect, e);

	(void)ino;
	(void)dtype;
	(void)next_pos;
	if (c->room == 0)
		return false;
	c->room--;
	if ((len == 1 && name[0] == '.') || (len == 2 && !memcmp(name, "..", 2)))
		return true;
	BUG_ON(c->n == NAMES_MAX);
	c->names[c->n++] = strndup(name, len);
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All names of a directory, read a few at a time. */
static int collect(struct inode *in, struct collect *c)
{
	struct file *f;
	uint64_t pos;
	int err = open_inode(in, O_RDONLY | O_DIRECTORY, &f);

	memset(c, 0, sizeof(*c));
	c->e.emit = collect_entry;
	if (err < 0)
		return err;
	do {
		pos = f->pos;
		c->room = 7;
		err = f->ops->iterate(f, &c->e);
	} while (err == 0 && f->pos != pos);
	file_put(f);
	if (c->n)
		qsort(c->names, c->n, sizeof(c->names[0]), by_name);
	return err;
}

static void collect_fini(struct collect *c)
{
	for (unsigned i = 0; i < c->n; i++)
		free(c->names[i]);
}

const char *fsu_list(struct super *sb, const char *path)
{
	static char buf[65536];
	static struct collect c;
	struct inode *in;

	buf[0] = '\0';
	if (fsu_find(sb, path, &in) < 0)
		return NULL;
	if (collect(in, &c) < 0)
		snprintf(buf, sizeof(buf), "(error)");
	for (unsigned i = 0; i < c.n; i++)
		snprintf(buf + strlen(buf), sizeof(buf) - strlen(buf), "%s%s", i ? " " : "", c.names[i]);
	collect_fini(&c);
	inode_put(in);
	return buf;
}

static uint64_t content_hash(struct super *sb, const char *path)
{
	static uint8_t buf[65536];
	uint64_t h = 1469598103934665603ull, off = 0;
	struct file *f;
	ssize_t n;

	if (fsu_open(sb, path, O_RDONLY, &f) < 0)
		return 0;
	while ((n = fsu_read_at(f, buf, sizeof(buf), off)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			h = (h ^ buf[i]) * 1099511628211ull;
		off += (uint64_t)n;
	}
	file_put(f);
	return h;
}

static void dump(struct super *sb, const char *path, FILE *out)
{
	struct collect *c;
	struct inode *in;
	char child[4096];

	if (fsu_find(sb, path, &in) < 0) {
		fprintf(out, "/%s: vanished\n", path);
		return;
	}
	if (in->ops->refresh)
		BUG_ON(in->ops->refresh(in) < 0);
	fprintf(out, "/%s %o %u:%u", path, in->mode, in->uid, in->gid);
	if (S_ISREG(in->mode))
		fprintf(out, " n%u s%llu %llx", in->nlink, (unsigned long long)in->size,
			(unsigned long long)content_hash(sb, path));
	if (S_ISLNK(in->mode)) {
		int n = in->ops->readlink(in, child, sizeof(child));

		fprintf(out, " -> %.*s", n, child);
	}
	fprintf(out, "\n");
	if (S_ISDIR(in->mode)) {
		c = malloc(sizeof(*c));
		BUG_ON(!c || collect(in, c) < 0);
		for (unsigned i = 0; i < c->n; i++) {
			snprintf(child, sizeof(child), "%s%s%s", path, *path ? "/" : "", c->names[i]);
			dump(sb, child, out);
		}
		collect_fini(c);
		free(c);
	}
	inode_put(in);
}

char *fsu_dump(struct super *sb)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	dump(sb, "", out);
	fclose(out);
	return text;
}

int fsu_stat(struct super *sb, const char *path, struct inode *copy)
{
	struct inode *in;
	int err = fsu_find(sb, path, &in);

	if (err == 0 && in->ops->refresh)
		err = in->ops->refresh(in);
	if (err == 0) {
		*copy = *in;
		inode_put(in);
	}
	return err;
}
