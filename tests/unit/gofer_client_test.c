/* SPDX-License-Identifier: Apache-2.0 */
/* The gofer client against the real gofer: the handler in a child, and the program sbx-gofer itself. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bug.h"
#include "gofer/gofer.h"
#include "gofer/reopen.h"
#include "sentry/fs/gofer_priv.h"
#include "sentry/kernel/kernel.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/uio.h"
#include "sentry/vfs/walk.h"
#include "tests/lib/tap.h"
#include "tests/lib/tree.h"

/* What the client uses of the rest of the sentry. */

static int live_inodes, invalidated;

void inode_init(struct inode *in, struct super *sb, const struct inode_ops *ops, uint64_t ino, uint32_t mode)
{
	*in = (struct inode){ .ops = ops, .sb = sb, .ino = ino, .mode = mode, .nlink = 1 };
	ref_init(&in->ref);
	live_inodes++;
}

struct inode *inode_get(struct inode *in)
{
	ref_get(&in->ref);
	return in;
}

void inode_put(struct inode *in)
{
	if (!in || !ref_put(&in->ref))
		return;
	live_inodes--;
	in->ops->destroy(in);
}

void super_init(struct super *sb, const struct super_ops *ops, const char *fstype, uint64_t magic)
{
	*sb = (struct super){ .ops = ops, .fstype = fstype, .magic = magic };
	ref_init(&sb->ref);
}

void super_put(struct super *sb)
{
	if (!sb || !ref_put(&sb->ref))
		return;
	inode_put(sb->root);
	sb->ops->destroy(sb);
}

void dcache_invalidate(struct inode *dir, const char *name, size_t len)
{
	(void)dir;
	(void)name;
	(void)len;
	invalidated++;
}

static struct super *sb;

/* The dentry cache knows what the client has at a place. */
struct inode *dcache_peek(const struct inode *dir, const char *name, size_t len)
{
	struct gofer_fs *fs = container_of(sb, struct gofer_fs, sb);

	for (uint32_t i = 0; i < fs->n_buckets; i++) {
		struct gofer_inode *gi;

		list_for_each_entry(gi, &fs->buckets[i], hash_node) {
			if (gi->parent && &gi->parent->inode == dir && gofer_place_is(gi, gi->parent, name, len))
				return &gi->inode;
		}
	}
	return NULL;
}

uint64_t vfs_host_reads;
void (*vfs_settle)(void);
void (*vfs_drop_ahead)(void);

/* No timers here: what is put off waits until it is asked for, or the test lets one fire. */
static uint64_t mono = NSEC_PER_SEC;

void ktimer_init(struct ktimer *kt, void (*fire)(struct ktimer *kt))
{
	*kt = (struct ktimer){ .fire = fire };
}

int ktimer_arm(struct ktimer *kt, uint64_t when)
{
	kt->when = when;
	return 0;
}

void ktimer_cancel(struct ktimer *kt)
{
	(void)kt;
}

uint64_t clock_mono_ns(void)
{
	return mono;
}

void kernel_random(void *buf, size_t n)
{
	if (getrandom(buf, n, 0) != (ssize_t)n)
		abort();
}

void *uio_bounce(void)
{
	static char buf[UIO_BOUNCE_SIZE];

	return buf;
}

static ssize_t uio_move(struct uio *u, void *buf, size_t n, bool to)
{
	char *p = (char *)(uintptr_t)u->segs[0].base + u->seg_off;

	n = MIN(n, u->resid);
	memcpy(to ? p : buf, to ? buf : p, n);
	u->seg_off += n;
	u->resid -= n;
	return (ssize_t)n;
}

ssize_t uio_copy_to(struct uio *u, const void *buf, size_t n)
{
	return uio_move(u, (void *)(uintptr_t)buf, n, true);
}

ssize_t uio_copy_from(struct uio *u, void *buf, size_t n)
{
	return uio_move(u, buf, n, false);
}

void uio_revert(struct uio *u, size_t n)
{
	u->seg_off -= n;
	u->resid += n;
}

/* A file system to test with, and short forms of its operations. */

static char top[] = "/tmp/sbx-gofer-client-XXXXXX";
static struct gofer_conn *conn;

static const char *at(const char *rel)
{
	return tree_at(top, rel);
}

static void put(const char *rel, const char *text)
{
	tree_put(at(rel), text, O_TRUNC);
}

#define TICK_US 20000 /* longer than a tick of the coarse clock: the client looks for changes once in it */

/* Does this gofer watch? */
static bool watched(void)
{
	return conn->events >= 0;
}

static struct qname qn(const char *s)
{
	return (struct qname){ .s = s, .len = (uint32_t)strlen(s) };
}

static int lookup(struct inode *dir, const char *name, struct inode **ret)
{
	struct qname q = qn(name);

	return dir->ops->lookup(dir, &q, ret);
}

static int valid(struct inode *dir, const char *name, struct inode *in)
{
	struct qname q = qn(name);

	return dir->ops->revalidate(dir, &q, in);
}

static struct file *file_open(struct inode *in, uint32_t flags, int *err)
{
	struct file *f = calloc(1, in->fops->file_size);

	f->ops = in->fops;
	f->inode = inode_get(in);
	f->flags = flags;
	*err = in->ops->open ? in->ops->open(in, f) : 0;
	if (!*err)
		return f;
	inode_put(in);
	free(f);
	return NULL;
}

static void file_close(struct file *f)
{
	if (f->ops->release)
		f->ops->release(f);
	inode_put(f->inode);
	free(f);
}

static ssize_t do_rw(struct file *f, void *buf, size_t n, uint64_t *pos, bool write)
{
	struct uio_seg seg = { (uintptr_t)buf, n };
	struct uio u = { .segs = &seg, .n_segs = 1, .resid = n };

	return write ? f->ops->write(f, &u, pos) : f->ops->read(f, &u, pos);
}

static bool reads(struct inode *in, const char *want)
{
	char buf[64] = "";
	uint64_t pos = 0;
	int err;
	struct file *f = file_open(in, O_RDONLY, &err);
	ssize_t n;

	if (!f)
		return false;
	n = do_rw(f, buf, sizeof(buf), &pos, false);
	file_close(f);
	return n == (ssize_t)strlen(want) && !memcmp(buf, want, (size_t)n);
}

struct count_emit {
	struct dir_emit e;
	unsigned n, max;
	char last[256];
};

static bool count_one(struct dir_emit *e, const char *name, size_t len, uint64_t ino, unsigned dtype, uint64_t next)
{
	struct count_emit *c = container_of(e, struct count_emit, e);

	(void)ino;
	(void)dtype;
	(void)next;
	if (c->n == c->max)
		return false;
	c->n++;
	memcpy(c->last, name, len);
	c->last[len] = '\0';
	return true;
}

/* Entries of @dir, read @step at a time. */
static int count(struct inode *dir, unsigned step)
{
	int err, total = 0;
	struct file *f = file_open(dir, O_RDONLY, &err);

	for (;;) {
		struct count_emit c = { .e = { .emit = count_one }, .max = step };

		err = f->ops->iterate(f, &c.e);
		if (err || !c.n)
			break;
		total += (int)c.n;
	}
	file_close(f);
	return err ? err : total;
}

static Sbx__Control__GoferConfig *config(void)
{
	static Sbx__Control__GoferConfig cfg = SBX__CONTROL__GOFER_CONFIG__INIT;
	static Sbx__Control__Grant rw = SBX__CONTROL__GRANT__INIT, ro = SBX__CONTROL__GRANT__INIT;
	static Sbx__Control__Grant *grants[] = { &rw, &ro };
	static char rw_path[512], ro_path[512];

	strcpy(rw_path, at("rw"));
	strcpy(ro_path, at("ro"));
	rw.id = 1;
	rw.path = rw_path;
	rw.mode = SBX__CONTROL__GRANT_MODE__GRANT_RW;
	ro.id = 2;
	ro.path = ro_path;
	ro.mode = SBX__CONTROL__GRANT_MODE__GRANT_COW;
	cfg.grants = grants;
	cfg.n_grants = 2;
	return &cfg;
}

/* The handler in a child: the client's end of the connection. */
static int start_handler(pid_t *pid)
{
	struct sbx_err err = { 0 };
	struct gofer *g;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return -1;
	*pid = fork();
	if (*pid) {
		close(sv[1]);
		return sv[0];
	}
	close(sv[0]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (reopen_init() < 0 || gofer_server_create(64, &g) < 0)
		_exit(1);
	if (gofer_configure(g, config(), false, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		_exit(1);
	}
	_exit(gofer_serve(g, sv[1], -1) < 0);
}

/* The program sbx-gofer, configured over its control socket. */
static int start_program(const char *path, pid_t *pid, int *control, char *note, size_t cap)
{
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT, *got;
	static uint8_t buf[WIRE_MSG_MAX];
	struct wire_msg w = { .buf = buf, .cap = sizeof(buf) };
	int sv[2], cv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, cv) < 0)
		return -1;
	*pid = fork();
	if (!*pid) {
		int s = fcntl(sv[1], F_DUPFD, 20), c = fcntl(cv[1], F_DUPFD, 20);

		dup2(c, 3);
		dup2(s, 4);
		close(s);
		close(c);
		execl(path, "sbx-gofer", (char *)NULL);
		_exit(127);
	}
	close(sv[1]);
	close(cv[1]);
	*control = cv[0];
	m.m_case = SBX__CONTROL__MESSAGE__M_GOFER_CONFIG;
	m.gofer_config = config();
	m.gofer_config->audit_allows = true;
	w.len = sbx__control__message__pack(&m, buf);
	if (wire_send(cv[0], &w) < 0 || wire_recv(cv[0], &w) <= 0)
		return -1;
	got = sbx__control__message__unpack(NULL, w.len, buf);
	if (!got || got->m_case != SBX__CONTROL__MESSAGE__M_STARTED)
		return -1;
	snprintf(note, cap, "%s%s", got->started->note, got->started->error);
	sbx__control__message__free_unpacked(got, NULL);
	return sv[0];
}

static void make_tree(void)
{
	char name[64];

	if (!mkdtemp(top))
		abort();
	mkdir(at("rw"), 0755);
	mkdir(at("ro"), 0755);
	mkdir(at("rw/d"), 0755);
	mkdir(at("rw/d/e"), 0755);
	mkdir(at("ro/big"), 0755);
	put("rw/f", "hello");
	put("rw/d/e/deep", "deep");
	put("ro/f", "stable");
	symlink("d/e", at("rw/link"));
	for (int i = 0; i < 900; i++) {
		snprintf(name, sizeof(name), "ro/big/file-%d", i);
		put(name, "x");
	}
}

static void test_lookup(void)
{
	struct inode *d, *e, *deep, *f, *again, *none;
	uint32_t before;
	char buf[64];

	tap_eq(lookup(sb->root, "f", &f), 0, "lookup");
	tap_ok(S_ISREG(f->mode) && f->size == 5, "with attributes");
	tap_eq(f->uid, 4242, "the host's user appears as the guest's");
	tap_eq(lookup(sb->root, "f", &again), 0, "again");
	tap_ok(again == f, "is the same inode");
	inode_put(again);
	tap_eq(lookup(sb->root, "nothing", &none), -ENOENT, "a missing name");
	before = conn->tag;
	tap_eq(valid(sb->root, "nothing", NULL), 1, "stays missing for a while");
	tap_eq(valid(sb->root, "f", f), 1, "as a name stays true");
	tap_eq(f->ops->refresh(f), 0, "and attributes");
	tap_eq(conn->tag, before, "without a question");
	tap_ok(reads(f, "hello"), "read");
	before = conn->tag;
	tap_ok(reads(f, "hello"), "read again");
	tap_eq(conn->tag, before, "without a question");
	inode_put(f);
	tap_eq(lookup(sb->root, "d", &d), 0, "a directory");
	tap_eq(lookup(d, "e", &e), 0, "in it");
	tap_eq(lookup(e, "deep", &deep), 0, "deeper");
	before = conn->tag;
	tap_ok(reads(deep, "deep"), "read it");
	tap_eq(conn->tag, before + 1, "walk and open are one question");
	inode_put(d);
	inode_put(e);
	inode_put(deep);
	tap_eq(lookup(sb->root, "link", &f), 0, "a symlink");
	tap_eq(f->ops->readlink(f, buf, sizeof(buf)), 3, "readlink");
	before = conn->tag;
	tap_ok(f->ops->readlink(f, buf, 2) == 2 && !memcmp(buf, "d/", 2), "cut");
	tap_eq(conn->tag, before, "without a question");
	inode_put(f);
}

/* A lookup on the way of a path brings the components that follow; what is not there too. */
static void test_ahead(void)
{
	struct walk w = { .p = "/e//deep", .depth = 0 }, n = { .p = "e", .depth = 1, .rest = { "/nothing/at/all" } };
	struct walk l = { .p = "/x", .depth = 0 }, up = { .p = "/../d", .depth = 0 };
	struct qname q = { .s = "d", .len = 1, .walk = &w };
	struct inode *d, *e, *deep, *none;
	struct name_ref v[4];
	uint32_t before;
	char buf[16];

	tap_eq(walk_ahead(&n, v, 4), 4, "ahead are the names of all strings");
	tap_ok(v[1].len == 7 && !memcmp(v[1].s, "nothing", 7), "in order");
	tap_eq(walk_ahead(&n, v, 2), 2, "no more than wanted");
	tap_eq(walk_ahead(&up, v, 4), 0, "and none behind a dot-dot");
	tap_eq(sb->root->ops->lookup(sb->root, &q, &d), 0, "lookup with a look ahead");
	before = conn->tag;
	tap_eq(lookup(d, "e", &e), 0, "the next");
	tap_eq(lookup(e, "deep", &deep), 0, "and the last");
	tap_ok(S_ISDIR(e->mode) && S_ISREG(deep->mode), "are what they are");
	tap_eq(conn->tag, before, "without a question");
	tap_ok(gofer_inode(d)->fid && gofer_inode(e)->fid && !gofer_inode(deep)->fid,
	       "directories have ids, the last name none");
	inode_put(deep);
	inode_put(e);
	inode_put(d);
	q.walk = &n;
	tap_eq(sb->root->ops->lookup(sb->root, &q, &d), 0, "a path that ends on the way");
	before = conn->tag;
	tap_eq(lookup(d, "e", &e), 0, "what there is");
	tap_eq(lookup(e, "nothing", &none), -ENOENT, "and what there is not");
	tap_eq(conn->tag, before, "are known");
	tap_eq(gofer_bind(gofer_inode(e)), 0, "it has an id");
	tap_eq(conn->tag, before, "without a question");
	inode_put(e);
	inode_put(d);
	q = (struct qname){ .s = "link", .len = 4, .walk = &l };
	tap_eq(sb->root->ops->lookup(sb->root, &q, &d), 0, "a symlink on the way");
	before = conn->tag;
	tap_ok(d->ops->readlink(d, buf, sizeof(buf)) == 3 && conn->tag == before, "brings its target");
	inode_put(d);
}

static struct inode *create(struct inode *dir, const char *name, int want)
{
	struct qname q = qn(name);
	struct inode *in = NULL;

	tap_eq(dir->ops->create(dir, &q, 0644, 4242, 4242, &in), want, "create %s", name);
	return in;
}

static void test_write(void)
{
	struct inode *in = create(sb->root, "new", 0);
	char buf[64];
	uint64_t pos = 0;
	uint32_t before = conn->tag;
	struct stat st;
	struct file *f, *a;
	int err;

	f = file_open(in, O_RDWR, &err);
	tap_ok(f && conn->tag == before, "create and open are one question");
	strcpy(buf, "0123456789");
	tap_eq(do_rw(f, buf, 10, &pos, true), 10, "write");
	tap_ok(pos == 10 && in->size == 10, "moves the position and the size");
	a = file_open(in, O_WRONLY | O_APPEND, &err);
	pos = 0;
	tap_eq(do_rw(a, buf, 2, &pos, true), 2, "append");
	tap_eq(pos, 12, "ends at the end");
	tap_eq(in->ops->refresh(in), 0, "refresh");
	tap_ok(stat(at("rw/new"), &st) == 0 && st.st_mtim.tv_nsec == in->mtime.nsec && in->size == 12,
	       "is the host's truth");
	tap_eq(f->ops->truncate(f, 4), 0, "truncate");
	tap_eq(in->size, 4, "size");
	tap_eq(f->ops->llseek(f, 0, SEEK_END), 4, "seek to the end");
	tap_eq(f->ops->llseek(f, 0, SEEK_HOLE), 4, "find the hole");
	tap_eq(f->ops->llseek(f, 4, SEEK_DATA), -ENXIO, "no data there");
	tap_eq(f->ops->fallocate(f, 0, 0, 100), 0, "fallocate");
	tap_eq(in->ops->refresh(in), 0, "refresh");
	tap_eq(in->size, 100, "grows");
	tap_eq(f->ops->fsync(f, true), 0, "fsync");
	tap_eq(conn->tag, before, "all without a question");
	file_close(a);
	file_close(f);
	tap_ok(!gofer_inode(in)->wr, "no writable fd is kept");
	tap_eq(in->ops->refresh(in), 0, "refresh");
	tap_ok(conn->tag <= before + watched(), "the attributes are known after the close, or told with the own change");
	inode_put(in);
}

static int set_size(struct inode *in, uint64_t size)
{
	struct iattr a = { .valid = ATTR_SIZE, .size = size };

	return in->ops->setattr(in, &a);
}

static void test_setattr(void)
{
	struct iattr a = { .valid = ATTR_MODE, .mode = 0600 };
	struct inode *in;
	char buf[16];
	struct stat st;

	tap_eq(lookup(sb->root, "new", &in), 0, "lookup");
	tap_eq(in->ops->setattr(in, &a), 0, "chmod");
	tap_eq(in->mode & 07777, 0600, "is seen at once");
	tap_eq(set_size(in, 3), 0, "truncate by path");
	tap_ok(stat(at("rw/new"), &st) == 0 && st.st_size == 3 && in->size == 3, "is done");
	a = (struct iattr){ .valid = ATTR_ATIME | ATTR_MTIME, .atime = { 1, 2 }, .mtime = { -3, 4 } };
	tap_eq(in->ops->setattr(in, &a), 0, "utimes");
	tap_ok(in->mtime.sec == -3 && in->mtime.nsec == 4 && in->atime.sec == 1, "are seen");
	a = (struct iattr){ .valid = ATTR_UID, .uid = 0 };
	tap_eq(in->ops->setattr(in, &a), -EPERM, "chown");
	a.uid = 4242;
	tap_eq(in->ops->setattr(in, &a), 0, "chown to what it is");
	tap_eq(in->ops->setxattr(in, "user.a", "v", 1, 0), 0, "setxattr");
	tap_eq(in->ops->getxattr(in, "user.a", NULL, 0), 1, "its size");
	tap_ok(in->ops->getxattr(in, "user.a", buf, sizeof(buf)) == 1 && buf[0] == 'v', "getxattr");
	tap_eq(in->ops->listxattr(in, buf, sizeof(buf)), 7, "listxattr");
	tap_eq(in->ops->listxattr(in, buf, 3), -ERANGE, "too small");
	tap_eq(in->ops->removexattr(in, "user.a"), 0, "removexattr");
	tap_eq(in->ops->getxattr(in, "user.a", buf, sizeof(buf)), -ENODATA, "is gone");
	tap_eq(in->ops->getxattr(in, "security.selinux", buf, sizeof(buf)), -EOPNOTSUPP, "no security xattr");
	inode_put(in);
}

static void test_names(void)
{
	struct qname a = qn("a"), b = qn("b"), s = qn("sub"), l = qn("l");
	struct inode *dir, *in, *other, *none, *sub;
	uint32_t before;

	tap_eq(sb->root->ops->mkdir(sb->root, &s, 0755, 0, 0, &dir), 0, "mkdir");
	before = conn->tag;
	tap_eq(lookup(dir, "a", &none), -ENOENT, "a new directory is empty");
	tap_eq(conn->tag, before, "without a question");
	in = create(dir, "a", 0);
	create(dir, "a", -EEXIST);
	tap_eq(valid(dir, "a", in), 1, "the name is valid");
	other = create(dir, "b", 0);
	tap_eq(count(dir, 100), 4, "listed");
	tap_eq(dir->ops->rename(dir, &a, in, dir, &b, other, 0), 0, "rename over");
	tap_ok(other->nlink == 0 && access(at("rw/sub/b"), F_OK) == 0, "replaces");
	inode_put(other);
	tap_eq(lookup(dir, "b", &other), 0, "lookup");
	tap_ok(other == in, "the same inode at the new name");
	inode_put(other);
	tap_eq(dir->ops->link(dir, &l, in), 0, "link");
	tap_eq(in->nlink, 2, "counts");
	tap_eq(dir->ops->unlink(dir, &b, in), 0, "unlink");
	tap_eq(in->nlink, 1, "counts");
	tap_eq(in->ops->refresh(in), 0, "refresh");
	tap_eq(lookup(dir, "b", &none), -ENOENT, "is gone");
	tap_eq(count(dir, 1), 3, "listed one at a time");
	tap_eq(sb->root->ops->rename(sb->root, &s, dir, sb->root, &b, NULL, 0), 0, "rename the directory");
	tap_eq(lookup(dir, "l", &other), 0, "lookup in it");
	tap_ok(reads(other, ""), "and read");
	inode_put(other);
	tap_eq(dir->ops->unlink(dir, &l, in), 0, "unlink the last");
	tap_eq(in->nlink, 0, "no link is left");
	tap_eq(in->ops->refresh(in), 0, "refresh of the dead");
	inode_put(in);
	tap_eq(dir->ops->symlink(dir, &l, "x/y", 0, 0, &in), 0, "symlink");
	inode_put(in);
	tap_eq(dir->ops->mknod(dir, &a, S_IFIFO | 0644, 0, 0, 0, &in), 0, "mknod");
	tap_ok(S_ISFIFO(in->mode), "a FIFO");
	inode_put(in);
	tap_eq(dir->ops->mkdir(dir, &s, 0700, 0, 0, &sub), 0, "mkdir");
	tap_eq(sb->root->ops->rmdir(sb->root, &b, dir), -ENOTEMPTY, "not empty");
	tap_eq(dir->ops->rmdir(dir, &s, sub), 0, "rmdir");
	inode_put(sub);
	tap_eq(dir->ops->tmpfile(dir, 0600, 0, 0, &in), 0, "tmpfile");
	tap_ok(reads(in, ""), "can be opened");
	tap_eq(dir->ops->link(dir, &b, in), 0, "and named");
	inode_put(in);
	tap_eq(count(dir, 2), 5, "listed");
	inode_put(dir);
}

/* Changes that the host makes. */
static void test_host(void)
{
	struct inode *f, *d, *in;

	tap_eq(lookup(sb->root, "f", &f), 0, "lookup");
	tap_ok(reads(f, "hello"), "read");
	put("rw/tmp", "replaced");
	rename(at("rw/tmp"), at("rw/f"));
	if (!watched()) {
		tap_eq(valid(sb->root, "f", f), 1, "trusted for a while");
		usleep(1050000);
	}
	usleep(TICK_US);
	tap_eq(valid(sb->root, "f", f), 0, "then seen to be another");
	tap_eq(lookup(sb->root, "f", &in), 0, "lookup");
	tap_ok(in != f && reads(in, "replaced"), "the new file");
	tap_eq(valid(sb->root, "nothing", NULL), watched(), "a missing name is asked for again, or watched");
	put("rw/nothing", "");
	usleep(TICK_US);
	tap_eq(valid(sb->root, "nothing", NULL), 0, "it is there now");
	unlink(at("rw/nothing"));
	inode_put(in);
	inode_put(f);
	tap_eq(lookup(sb->root, "d", &d), 0, "a directory");
	tap_eq(lookup(d, "e", &in), 0, "in it");
	rename(at("rw/d/e"), at("rw/e2"));
	mkdir(at("rw/d/e"), 0755);
	invalidated = 0;
	tap_eq(lookup(in, "deep", &f), -ESTALE, "a file that is elsewhere is stale");
	tap_ok(invalidated > 0, "and its name forgotten");
	rmdir(at("rw/d/e"));
	rename(at("rw/e2"), at("rw/d/e"));
	inode_put(in);
	inode_put(d);
}

/* Asks after a change by the host: the client looks for such once in a tick. */
static int valid_now(struct inode *dir, const char *name, struct inode *in)
{
	usleep(TICK_US);
	return valid(dir, name, in);
}

static void test_watched(void)
{
	struct inode *dir, *in, *other;
	char name[32];
	uint32_t before;

	if (!watched())
		return;
	mkdir(at("rw/w"), 0755);
	put("rw/w/f", "1");
	usleep(TICK_US);
	tap_eq(lookup(sb->root, "w", &dir), 0, "a directory");
	tap_eq(lookup(dir, "f", &in), 0, "a file in it");
	tap_eq(lookup(dir, "none", &other), -ENOENT, "and none");
	tap_eq(dir->ops->refresh(dir), 0, "look at the directory");
	usleep(1100000);
	tap_eq(dir->ops->refresh(dir), 0, "again");
	before = conn->tag;
	tap_eq(valid(dir, "f", in), 1, "names are known for longer than a second");
	tap_eq(valid(dir, "none", NULL), 1, "also those that are not there");
	tap_eq(dir->ops->refresh(dir), 0, "and attributes of directories");
	tap_eq(conn->tag, before, "without a question");
	put("rw/w/none", "");
	tap_eq(valid_now(dir, "none", NULL), 0, "a file appears");
	vfs_host_reads++;
	put("rw/w/f", "12");
	tap_eq(in->ops->refresh(in), 0, "a file grows");
	tap_eq(in->size, 2, "seen at once by who heard of it");
	put("rw/w/tmp", "123");
	rename(at("rw/w/tmp"), at("rw/w/f"));
	tap_eq(valid_now(dir, "f", in), 0, "a file is replaced");
	inode_put(in);
	tap_eq(count(dir, 100), 4, "list it");
	unlink(at("rw/w/none"));
	usleep(TICK_US);
	tap_eq(count(dir, 100), 3, "a file is gone from the list");
	tap_eq(lookup(dir, "f", &in), 0, "lookup");
	for (int i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "rw/w/many%d", i);
		put(name, "");
	}
	unlink(at("rw/w/f"));
	tap_eq(valid_now(dir, "f", in), 0, "also when there was too much to tell");
	tap_eq(lookup(dir, "many1", &other), 0, "a new file");
	tap_eq(valid(dir, "many1", other), 1, "is watched again");
	rename(at("rw/w"), at("rw/w2"));
	tap_eq(valid_now(sb->root, "w", dir), 0, "the directory has moved");
	inode_put(other);
	inode_put(in);
	inode_put(dir);
}

/* @in is open for writing. The timer was armed for what has gone with a request since. */
static void test_put_off_timer(struct inode *in)
{
	struct iattr mode = { .valid = ATTR_MODE, .mode = 0644 };
	struct ktimer *t = &conn->defer_timer;
	uint32_t before;

	mono += NSEC_PER_SEC;
	tap_ok(in->ops->refresh(in) == 0 && in->ops->setattr(in, &mode) == 0 && vfs_settle, "put off again");
	before = conn->tag;
	t->when = 0;
	t->fire(t);
	tap_ok(conn->tag == before && vfs_settle, "a timer that was armed for something older leaves it");
	tap_ok(t->when > mono && t->when <= mono + NSEC_PER_SEC / 500, "and comes again when it is due");
	mono = t->when;
	t->fire(t);
	tap_ok(conn->tag == before + 1 && !vfs_settle, "then it is done");
	t->fire(t);
	tap_eq(conn->tag, before + 1, "and nothing is left");
}

static void test_put_off(void)
{
	struct iattr times = { .valid = ATTR_ATIME | ATTR_MTIME, .atime = { 1, 0 }, .mtime = { 2, 0 } };
	struct iattr mode = { .valid = ATTR_MODE, .mode = 04600 };
	struct inode *in = create(sb->root, "later", 0), *again;
	struct stat st;
	uint32_t before;
	uint64_t pos = 0;
	char c = 'x';
	int err;
	struct file *f = file_open(in, O_RDWR, &err);

	before = conn->tag;
	tap_ok(in->ops->setattr(in, &times) == 0 && in->ops->refresh(in) == 0 && in->ops->setattr(in, &mode) == 0,
	       "times and mode of an open file");
	tap_ok(conn->tag == before && vfs_settle, "are put off");
	tap_eq(in->mode & 07777, 0600, "and known here");
	vfs_settle();
	tap_ok(conn->tag == before + 1 && !vfs_settle, "together");
	tap_ok(stat(at("rw/later"), &st) == 0 && st.st_mtime == 2 && (st.st_mode & 07777) == 0600, "they are set");
	tap_ok(in->ops->setattr(in, &times) == 0 && vfs_settle, "put off again");
	tap_eq(do_rw(f, &c, 1, &pos, true), 1, "a write");
	tap_ok(!vfs_settle && stat(at("rw/later"), &st) == 0 && st.st_mtime > 2 && st.st_atime == 1, "comes after it");
	mode.mode = 0640;
	tap_eq(in->ops->refresh(in), 0, "refresh, as vfs does before");
	tap_ok(in->ops->setattr(in, &mode) == 0 && vfs_settle, "put off again");
	in->ops->settle(in);
	tap_ok(!vfs_settle && in->ops->refresh(in) == 0 && in->ctime.nsec == (stat(at("rw/later"), &st),
	       (uint32_t)st.st_ctim.tv_nsec), "who looks at it sees what is");
	mode.mode = 0600;
	tap_ok(in->ops->setattr(in, &mode) == 0 && vfs_settle, "put off again");
	before = conn->tag;
	again = create(sb->root, "later2", 0);
	tap_eq(conn->tag, before + 1, "goes along with the next request");
	tap_ok(!vfs_settle && stat(at("rw/later"), &st) == 0 && (st.st_mode & 0777) == 0600, "and is done");
	inode_put(again);
	test_put_off_timer(in);
	file_close(f);
	tap_ok(in->ops->setattr(in, &times) == 0 && !vfs_settle, "a closed file is changed at once");
	inode_put(in);
}

static void test_stable(void)
{
	struct gofer_fs_args args = { .grant = 2, .read_only = true };
	struct super *ro;
	struct inode *big, *in;
	struct qname q = qn("n");
	uint32_t before;
	char name[64];
	int err, bad = 0;

	tap_eq(gofer_fs_create(conn, &args, &ro), 0, "the lower of a copy-on-write tree");
	tap_ok(ro->stable, "is stable");
	tap_eq(lookup(ro->root, "big", &big), 0, "lookup");
	tap_eq(count(big, 50), 902, "read a large directory");
	before = conn->tag;
	tap_eq(count(big, 7), 902, "again");
	for (int i = 0; i < 900; i++) {
		snprintf(name, sizeof(name), "file-%d", i);
		err = lookup(big, name, &in);
		if (err || in->ops->refresh(in) || in->size != 1)
			bad++;
		else
			inode_put(in);
	}
	tap_eq(bad, 0, "look at each file");
	tap_eq(lookup(big, "none", &in), -ENOENT, "and one that is not");
	tap_eq(conn->tag, before, "all without a question");
	tap_eq(ro->root->ops->create(ro->root, &q, 0644, 0, 0, &in), -EROFS, "it is read-only");
	tap_eq(lookup(ro->root, "f", &in), 0, "lookup");
	tap_ok(!file_open(in, O_RDWR, &err) && err == -EROFS, "also for open");
	tap_ok(reads(in, "stable"), "read");
	inode_put(in);
	inode_put(big);
	super_put(ro);
}

static void test_prefetch(void)
{
	char name[64];
	struct inode *d, *in;
	uint32_t before = conn->tag;
	int bad = 0;

	mkdir(at("rw/pre"), 0755);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "rw/pre/%d", i);
		put(name, "x");
	}
	bad += lookup(sb->root, "pre", &d) != 0;
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%d", i);
		if (lookup(d, name, &in))
			bad++;
		else
			inode_put(in);
	}
	tap_eq(bad, 0, "look up 100 names");
	tap_ok(conn->tag - before < 10, "with %u questions", conn->tag - before);
	inode_put(d);
}

static void run_all(const char *what)
{
	struct gofer_fs_args args = { .grant = 1, .live = true, .host_uid = getuid(), .uid = 4242, .host_gid = getgid(),
				      .gid = 4242 };
	struct kstatfs st;
	char cmd[1024];
	uint32_t last;

	printf("# %s\n", what);
	tap_eq(gofer_fs_create(conn, &args, &sb), 0, "attach");
	tap_eq(sb->ops->statfs(sb, &st), 0, "statfs");
	test_ahead();
	test_lookup();
	test_write();
	test_setattr();
	test_names();
	test_host();
	test_prefetch();
	test_watched();
	test_put_off();
	test_stable();
	args.grant = 9;
	tap_eq(gofer_fs_create(conn, &args, &(struct super *){ NULL }), -ENOENT, "no such grant");
	super_put(sb);
	tap_eq(live_inodes, 0, "all inodes are gone");
	tap_ok(list_empty(&conn->idle) && list_empty(&conn->listings) && !conn->listing_bytes, "and what they held");
	last = conn->n_clunks + conn->n_free + 1;
	tap_eq(last, conn->next_fid, "every id has come back");
	snprintf(cmd, sizeof(cmd), "rm -rf %s/rw %s/ro", top, top);
	if (system(cmd))
		perror("rm");
}

int main(int argc, char **argv)
{
	char program[512], note[256] = "";
	int sock, control = -1, status = -1;
	pid_t pid = -1;

	(void)argc;
	umask(0);
	make_tree();
	sock = start_handler(&pid);
	tap_eq(gofer_conn_create(sock, &conn), 0, "connect to the handler");
	run_all("handler");
	gofer_conn_put(conn);
	tap_ok(waitpid(pid, &status, 0) == pid && status == 0, "the handler ends with the connection");
	rmdir(top);
	strcpy(strrchr(top, '-'), "-XXXXXX");
	make_tree();
	snprintf(program, sizeof(program), "%.*s/../../sbx-gofer",
	         (int)(strrchr(argv[0], '/') ? strrchr(argv[0], '/') - argv[0] : 1),
	         strrchr(argv[0], '/') ? argv[0] : ".");
	if (access(program, X_OK) < 0) {
		tap_skip("sbx-gofer is not built", "the program");
		rmdir(top);
		return tap_done();
	}
	sock = start_program(program, &pid, &control, note, sizeof(note));
	tap_ok(sock >= 0, "start sbx-gofer: %s", note);
	if (sock < 0 || !tap_ok(gofer_conn_create(sock, &conn) == 0, "connect"))
		return tap_done();
	run_all("program");
	gofer_conn_put(conn);
	tap_ok(waitpid(pid, &status, 0) == pid && status == 0, "it ends with the connection (status %x)", status);
	close(control);
	rmdir(top);
	return tap_done();
}
