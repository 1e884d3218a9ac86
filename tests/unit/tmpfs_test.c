/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/host/seal.h"
#include "sentry/fs/memfd.h"
#include "sentry/fs/tmpfs.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/vfs/uio.h"
#include "tests/lib/tap.h"
#include "tests/unit/fs_util.h"

#define MIB (1ull << 20)

static struct store *store;
static struct super *sb;

static void start(uint64_t bytes, uint64_t inodes)
{
	BUG_ON(store_create(bytes, inodes, &store) < 0 || tmpfs_create(store, 01777, &sb) < 0);
}

/* Ends the file system: everything must come back to the store. */
static void finish(const char *what)
{
	super_put(sb);
	tap_ok(store->used_bytes == 0 && store->used_inodes == 0 && store->used_meta == 0 && store->n_private == 0 &&
		       kernel.counters.inodes == 0 && kernel.counters.files == 0,
	       "%s: nothing is left", what);
	store_destroy(store);
}

static void test_names(void)
{
	struct inode st;

	start(MIB, 100);
	tap_eq(fsu_mkdir(sb, "d"), 0, "mkdir");
	tap_eq(fsu_mkdir(sb, "d"), -EEXIST, "again");
	tap_eq(fsu_put(sb, "d/f", "text"), 0, "create and write");
	tap_ok(fsu_text(sb, "d/f") && !strcmp(fsu_text(sb, "d/f"), "text"), "read");
	tap_eq(fsu_stat(sb, "", &st), 0, "stat");
	tap_eq(st.nlink, 3, "a subdirectory is a link");
	tap_eq(st.mode, S_IFDIR | 01777, "the root's mode");
	tap_eq(fsu_stat(sb, "d/f", &st), 0, "stat the file");
	tap_ok(st.uid == 1 && st.gid == 2 && st.mode == (S_IFREG | 0644) && st.size == 4 && st.blocks == 8,
	       "its attributes");
	tap_eq(fsu_link(sb, "d/f", "g"), 0, "link");
	tap_eq(fsu_stat(sb, "g", &st), 0, "stat");
	tap_eq(st.nlink, 2, "two links");
	tap_eq(fsu_rmdir(sb, "d"), -ENOTEMPTY, "rmdir of a full directory");
	tap_eq(fsu_unlink(sb, "d/f"), 0, "unlink");
	tap_eq(fsu_unlink(sb, "d/f"), -ENOENT, "again");
	tap_eq(fsu_rmdir(sb, "d"), 0, "rmdir");
	tap_eq(fsu_stat(sb, "", &st), 0, "stat");
	tap_eq(st.nlink, 2, "and one link less");
	tap_eq(fsu_symlink(sb, "/some/where", "l"), 0, "symlink");
	tap_eq(fsu_stat(sb, "l", &st), 0, "stat");
	tap_ok(S_ISLNK(st.mode) && st.size == 11, "its size is the target's");
	tap_eq(fsu_mkfifo(sb, "p"), 0, "mkfifo");
	tap_ok(!strcmp(fsu_list(sb, ""), "g l p"), "the listing");
	finish("names");
}

static void test_rename(void)
{
	struct inode st;

	start(MIB, 100);
	(void)!fsu_mkdir(sb, "a");
	(void)!fsu_mkdir(sb, "b");
	(void)!fsu_mkdir(sb, "a/sub");
	(void)!fsu_put(sb, "x", "x");
	(void)!fsu_put(sb, "y", "y");
	tap_eq(fsu_rename(sb, "x", "y", RENAME_NOREPLACE), -EEXIST, "NOREPLACE");
	tap_eq(fsu_rename(sb, "x", "y", 0), 0, "over a file");
	tap_ok(!strcmp(fsu_text(sb, "y"), "x") && !strcmp(fsu_list(sb, ""), "a b y"), "replaces it");
	tap_eq(fsu_rename(sb, "a/sub", "b/sub", 0), 0, "a directory to another parent");
	fsu_stat(sb, "a", &st);
	tap_eq(st.nlink, 2, "the old parent's links");
	fsu_stat(sb, "b", &st);
	tap_eq(st.nlink, 3, "the new parent's links");
	tap_eq(fsu_rename(sb, "a", "b", 0), -ENOTEMPTY, "over a full directory");
	tap_eq(fsu_rename(sb, "b/sub", "a", 0), 0, "over an empty directory");
	tap_ok(!strcmp(fsu_list(sb, ""), "a b y") && !strcmp(fsu_list(sb, "b"), ""), "replaces it");
	tap_eq(fsu_rename(sb, "y", "a", RENAME_EXCHANGE), 0, "exchange a file and a directory");
	fsu_stat(sb, "y", &st);
	tap_ok(S_ISDIR(st.mode) && !strcmp(fsu_text(sb, "a"), "x"), "changes places");
	(void)!fsu_link(sb, "a", "h");
	tap_eq(fsu_rename(sb, "a", "h", 0), 0, "over a link to itself");
	tap_ok(!strcmp(fsu_list(sb, ""), "a b h y"), "does nothing");
	finish("rename");
}

struct reader {
	struct dir_emit e;
	char name[256];
	unsigned n;
};

static bool one_entry(struct dir_emit *e, const char *name, size_t len, uint64_t ino, unsigned dtype, uint64_t next)
{
	struct reader *r = container_of(e, struct reader, e);

	(void)ino;
	(void)dtype;
	(void)next;
	if (r->n == 1)
		return false;
	r->n = 1;
	memcpy(r->name, name, len);
	r->name[len] = '\0';
	return true;
}

static bool next_name(struct file *f, char *name)
{
	struct reader r = { .e.emit = one_entry };

	do {
		r.n = 0;
		if (f->ops->iterate(f, &r.e) < 0 || r.n == 0)
			return false;
	} while (!strcmp(r.name, ".") || !strcmp(r.name, ".."));
	strcpy(name, r.name);
	return true;
}

static void test_readdir(void)
{
	enum { N = 1000 };
	static bool seen[N];
	char name[256], path[300];
	unsigned n = 0, twice = 0;
	struct file *f;

	start(16 * MIB, 10000);
	(void)!fsu_mkdir(sb, "d");
	for (int i = 0; i < N; i++) {
		snprintf(path, sizeof(path), "d/f%d", i);
		(void)!fsu_create(sb, path, 0644);
	}
	tap_eq(fsu_open(sb, "d", O_RDONLY | O_DIRECTORY, &f), 0, "open a directory of 1000");
	while (next_name(f, name)) {
		int i = atoi(name + 1);

		twice += seen[i];
		seen[i] = true;
		n++;
		snprintf(path, sizeof(path), "d/%s", name);
		if (i % 3) {
			(void)!fsu_unlink(sb, path);
		} else {
			/* A rename in the same directory is not seen again. */
			char to[300];

			snprintf(to, sizeof(to), "d/r%d", i);
			(void)!fsu_rename(sb, path, to, 0);
		}
	}
	tap_ok(n == N && twice == 0, "each entry is seen once while they are removed and renamed");
	f->pos = 0;
	for (n = 0; next_name(f, name); n++) {
		snprintf(path, sizeof(path), "d/%s", name);
		(void)!fsu_unlink(sb, path);
		snprintf(path, sizeof(path), "d/new%d", n);
		(void)!fsu_create(sb, path, 0644);
	}
	tap_eq(n, (N + 2) / 3, "what is made while reading does not make it endless");
	file_put(f);
	finish("readdir");
}

static void test_files(void)
{
	static char buf[10000];
	struct inode st;
	struct file *f;

	start(MIB, 100);
	(void)!fsu_put(sb, "f", "0123456789");
	tap_eq(fsu_open(sb, "f", O_RDWR | O_APPEND, &f), 0, "open for append");
	tap_eq(fsu_write_at(f, "ab", 2, 0), 2, "append");
	tap_ok(!strcmp(fsu_text(sb, "f"), "0123456789ab"), "goes to the end");
	tap_eq(fsu_truncate(sb, "f", 3), 0, "cut");
	tap_eq(fsu_truncate(sb, "f", 6), 0, "grow");
	tap_eq(fsu_read_at(f, buf, 100, 0), 6, "six bytes");
	tap_ok(!memcmp(buf, "012\0\0\0", 6), "zeros where it was cut");
	tap_eq(f->ops->fallocate(f, 0, 0, 9000), 0, "fallocate");
	fsu_stat(sb, "f", &st);
	tap_ok(st.size == 9000 && st.blocks == 24, "size and blocks grow");
	tap_eq(f->ops->fallocate(f, FALLOC_FL_KEEP_SIZE, 9000, 9000), 0, "KEEP_SIZE");
	fsu_stat(sb, "f", &st);
	tap_eq(st.size, 9000, "keeps the size");
	tap_eq(f->ops->fallocate(f, FALLOC_FL_PUNCH_HOLE, 0, 1), -EOPNOTSUPP, "PUNCH_HOLE wants KEEP_SIZE");
	tap_eq(f->ops->fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, 1), 0, "punch");
	tap_eq(f->ops->fallocate(f, FALLOC_FL_COLLAPSE_RANGE, 0, 4096), -EOPNOTSUPP, "no COLLAPSE_RANGE");
	tap_eq(f->ops->fallocate(f, 0, 0, 0), -EINVAL, "no length");
	tap_eq(f->ops->fallocate(f, 0, 1, INT64_MAX), -EFBIG, "too far");
	tap_eq(f->ops->fallocate(f, 0, 0, 2 * MIB), -ENOSPC, "too much");
	tap_eq(f->ops->fallocate(f, FALLOC_FL_ZERO_RANGE, 0, 3), 0, "ZERO_RANGE");
	tap_eq(fsu_read_at(f, buf, 3, 0), 3, "read");
	tap_ok(buf[0] == 0 && buf[2] == 0, "zeroed");
	tap_eq(f->ops->llseek(f, -1, SEEK_SET), -EINVAL, "seek before the start");
	tap_eq(f->ops->llseek(f, 5, SEEK_END), 9005, "seek behind the end");
	tap_eq(fsu_unlink(sb, "f"), 0, "unlink while open");
	tap_eq(fsu_write_at(f, "z", 1, 0), 1, "still writable");
	file_put(f);
	tap_eq(store->used_bytes, 0, "and gone with the last close");
	finish("files");
}

static void test_mmap(void)
{
	struct file_map map;
	struct file *f, *g;
	char *p;

	start(MIB, 100);
	(void)!fsu_put(sb, "f", "mapped");
	tap_eq(fsu_open(sb, "f", O_RDWR, &f), 0, "open");
	tap_eq(f->ops->mmap(f, PROT_READ | PROT_WRITE, true, &map), 0, "mmap");
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, map.fd, (off_t)map.offset);
	tap_ok(p != MAP_FAILED && !memcmp(p, "mapped", 6), "shows the bytes");
	memcpy(p, "MAP", 3);
	tap_ok(!strcmp(fsu_text(sb, "f"), "MAPped"), "a store is seen by read");
	(void)!fsu_write_at(f, "ped!", 4, 3);
	tap_ok(!memcmp(p, "MAPped!", 7), "a write is seen in the mapping");
	tap_eq(fsu_open(sb, "f", O_RDONLY, &g), 0, "a second open");
	tap_eq(g->ops->mmap(g, PROT_READ, false, &map), 0, "and mapping");
	file_put(f);
	file_put(g);
	munmap(p, 4096);
	tap_eq(fsu_truncate(sb, "f", 2 * MIB), -ENOSPC, "growth of a mapped file is charged");
	finish("mmap");
}

static void test_xattr(void)
{
	char buf[64], big[1] = { 0 };
	struct inode *in;

	start(MIB, 100);
	(void)!fsu_create(sb, "f", 0644);
	fsu_find(sb, "f", &in);
	tap_eq(in->ops->setxattr(in, "user.a", "value", 5, 0), 0, "set");
	tap_eq(in->ops->setxattr(in, "user.a", "v", 1, XATTR_CREATE), -EEXIST, "CREATE");
	tap_eq(in->ops->setxattr(in, "user.b", "v", 1, XATTR_REPLACE), -ENODATA, "REPLACE");
	tap_eq(in->ops->setxattr(in, "system.x", "v", 1, 0), -EOPNOTSUPP, "an unknown name space");
	tap_eq(in->ops->setxattr(in, "user.", "v", 1, 0), -EINVAL, "no name");
	tap_eq(in->ops->setxattr(in, "user.big", big, 65537, 0), -E2BIG, "too big");
	tap_eq(in->ops->getxattr(in, "user.a", buf, 0), 5, "ask for the length");
	tap_eq(in->ops->getxattr(in, "user.a", buf, 4), -ERANGE, "too small");
	tap_ok(in->ops->getxattr(in, "user.a", buf, 64) == 5 && !memcmp(buf, "value", 5), "get");
	tap_eq(in->ops->setxattr(in, "trusted.overlay.opaque", "y", 1, 0), 0, "an overlay's name is an ordinary one");
	tap_eq(in->ops->listxattr(in, buf, sizeof(buf)), 30, "list");
	tap_eq(in->ops->removexattr(in, "user.a"), 0, "remove");
	tap_eq(in->ops->removexattr(in, "user.a"), -ENODATA, "again");
	inode_put(in);
	finish("xattr");
}

static void test_quota(void)
{
	static char buf[8192];
	struct kstatfs st;
	struct file *f;
	unsigned n = 0;
	char name[16];

	start(64 * 4096, 12);
	while (snprintf(name, sizeof(name), "f%u", n), fsu_create(sb, name, 0644) == 0)
		n++;
	tap_eq(n, 11, "the root and eleven files");
	tap_eq(fsu_link(sb, "f0", "link"), -ENOSPC, "a link counts as an inode");
	tap_eq(fsu_unlink(sb, "f1"), 0, "one goes");
	tap_eq(fsu_link(sb, "f0", "link"), 0, "now it fits");
	tap_eq(fsu_unlink(sb, "link"), 0, "and goes");
	(void)!fsu_open(sb, "f0", O_RDWR, &f);
	for (n = 0; fsu_write_at(f, buf, sizeof(buf), n * sizeof(buf)) == sizeof(buf);)
		n++;
	tap_ok(n >= 30 && n < 32, "bytes end at the quota");
	tap_eq(sb->ops->statfs(sb, &st), 0, "statfs");
	tap_ok(st.blocks == 64 && st.bfree <= 1 && st.files == 12, "shows it");
	file_put(f);
	tap_eq(fsu_truncate(sb, "f0", 0), 0, "truncate");
	(void)!sb->ops->statfs(sb, &st);
	tap_eq(st.bfree, 64, "all free again");
	finish("quota");
}

static void test_deep(void)
{
	struct inode *dir, *in;
	struct qname q = { .s = "d", .len = 1 };
	unsigned n = 0;

	start(MIB, 200000);
	for (dir = inode_get(sb->root); n < 100000; n++) {
		if (dir->ops->mkdir(dir, &q, 0755, 0, 0, &in) < 0)
			break;
		inode_put(dir);
		dir = in;
	}
	inode_put(dir);
	tap_eq(n, 100000, "100000 directories in each other");
	finish("a deep tree");
}

static void test_devfs(void)
{
	struct super *tmp;
	char buf[600];
	struct file *f;
	struct inode st;

	start(MIB, 100);
	tap_eq(devfs_create(store, &tmp), 0, "devfs");
	super_put(sb);
	sb = tmp;
	tap_ok(!strcmp(fsu_list(sb, ""), "fd full null pts random shm stderr stdin stdout tty urandom zero"),
	       "its entries");
	fsu_stat(sb, "null", &st);
	tap_ok(st.mode == (S_IFCHR | 0666) && st.rdev == makedev(1, 3), "null is 1:3");
	(void)!fsu_open(sb, "null", O_RDWR, &f);
	tap_ok(fsu_read_at(f, buf, 10, 0) == 0 && fsu_write_at(f, buf, 10, 0) == 10, "null");
	file_put(f);
	(void)!fsu_open(sb, "zero", O_RDWR, &f);
	memset(buf, 1, sizeof(buf));
	tap_ok(fsu_read_at(f, buf, 600, 0) == 600 && buf[0] == 0 && buf[599] == 0, "zero");
	file_put(f);
	(void)!fsu_open(sb, "full", O_RDWR, &f);
	tap_eq(fsu_write_at(f, buf, 10, 0), -ENOSPC, "full");
	file_put(f);
	(void)!fsu_open(sb, "urandom", O_RDWR, &f);
	tap_ok(fsu_read_at(f, buf, 600, 0) == 600 && memcmp(buf, buf + 300, 300), "urandom");
	file_put(f);
	tap_eq(fsu_open(sb, "tty", O_RDWR, &f), -ENXIO, "no terminal");
	tap_eq(fsu_mkdir(sb, "mine"), 0, "the guest may make its own");
	finish("devfs");
}

static void test_memfd(void)
{
	static struct cred cred;
	struct file_map map;
	struct file *f;
	char *p;

	start(MIB, 100);
	tap_eq(memfd_create_file(&cred, "x", 0, &f), -ENOSYS, "not before memfd_init()");
	tap_eq(memfd_init(store), 0, "memfd_init");
	tap_eq(memfd_create_file(&cred, "x", MFD_HUGETLB, &f), -ENOSYS, "no huge pages");
	tap_eq(memfd_create_file(&cred, "x", 0x80, &f), -EINVAL, "an unknown flag");
	tap_eq(memfd_create_file(&cred, "plain", 0, &f), 0, "a plain one");
	tap_eq(memfd_fcntl(NULL, f, F_GET_SEALS, 0), F_SEAL_SEAL, "cannot be sealed");
	tap_eq(memfd_fcntl(NULL, f, F_ADD_SEALS, F_SEAL_GROW), -EPERM, "really not");
	tap_ok(!strcmp(f->anon_name, "plain"), "its name");
	file_put(f);
	tap_eq(memfd_create_file(&cred, "s", MFD_ALLOW_SEALING, &f), 0, "a sealable one");
	tap_eq(fsu_write_at(f, "data", 4, 0), 4, "write");
	tap_eq(memfd_fcntl(NULL, f, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0, "seal its size");
	tap_eq(fsu_write_at(f, "data", 4, 2), -EPERM, "no growth");
	tap_eq(fsu_write_at(f, "DA", 2, 0), 2, "but writing");
	tap_eq(f->ops->mmap(f, PROT_READ | PROT_WRITE, true, &map), 0, "mmap");
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, map.fd, 0);
	tap_ok(p != MAP_FAILED && !memcmp(p, "DAta", 4), "shows the bytes");
	tap_eq(memfd_fcntl(NULL, f, F_ADD_SEALS, F_SEAL_WRITE), -EBUSY, "F_SEAL_WRITE while it is mapped");
	munmap(p, 4096);
	tap_eq(memfd_fcntl(NULL, f, F_ADD_SEALS, F_SEAL_WRITE), 0, "and after");
	tap_eq(fsu_write_at(f, "x", 1, 0), -EPERM, "no write");
	tap_eq(f->ops->mmap(f, PROT_READ | PROT_WRITE, true, &map), -EPERM, "no writable mapping");
	tap_eq(f->ops->mmap(f, PROT_READ | PROT_WRITE, false, &map), 0, "a private one");
	tap_ok(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, map.fd, 0) == MAP_FAILED,
	       "the host refuses it too");
	tap_eq(memfd_fcntl(NULL, f, F_GET_SEALS, 0), F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE, "its seals");
	file_put(f);
	tap_eq(memfd_create_file(&cred, "n", 8, &f), 0, "MFD_NOEXEC_SEAL");
	tap_eq(f->inode->ops->setattr(f->inode, &(struct iattr){ .valid = ATTR_MODE, .mode = 0755 }), -EPERM,
	       "no execute bit can be set");
	file_put(f);
	tap_eq(store->used_inodes, 2, "memfds are gone");
}

int main(void)
{
	test_names();
	test_rename();
	test_readdir();
	test_files();
	test_mmap();
	test_xattr();
	test_quota();
	test_deep();
	test_devfs();
	test_memfd();
	return tap_done();
}
