/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bug.h"
#include "sentry/fs/overlay.h"
#include "sentry/kernel/kernel.h"
#include "tests/lib/tap.h"
#include "tests/unit/fs_util.h"

static struct store *store;
static struct super *lower, *sb;
static char *lower_before;

static void lower_start(void)
{
	BUG_ON(store_create(64ull << 20, 20000, &store) < 0 || tmpfs_create(store, 0755, &lower) < 0);
}

static void overlay_start(void)
{
	struct super *upper;

	lower_before = fsu_dump(lower);
	BUG_ON(tmpfs_create(store, 0755, &upper) < 0 || overlay_create(lower, upper, &sb) < 0);
	super_put(upper);
}

/* The lower is as it was, and nothing is left. */
static void finish(const char *what)
{
	char *after = fsu_dump(lower);

	tap_ok(!strcmp(lower_before, after), "%s: the lower is unchanged", what);
	free(after);
	free(lower_before);
	super_put(sb);
	super_put(lower);
	tap_ok(store->used_bytes == 0 && store->used_inodes == 0 && store->used_meta == 0 &&
		       kernel.counters.inodes == 0 && kernel.counters.files == 0,
	       "%s: nothing is left", what);
	store_destroy(store);
}

static bool text_is(const char *path, const char *want)
{
	const char *got = fsu_text(sb, path);

	return got && !strcmp(got, want);
}

static bool list_is(const char *path, const char *want)
{
	const char *got = fsu_list(sb, path);

	if (got && !strcmp(got, want))
		return true;
	printf("# /%s lists \"%s\"\n", path, got ? got : "(none)");
	return false;
}

static uint64_t ino_of(const char *path)
{
	struct inode st;

	return fsu_stat(sb, path, &st) < 0 ? 0 : st.ino;
}

static unsigned nlink_of(const char *path)
{
	struct inode st;

	return fsu_stat(sb, path, &st) < 0 ? 0 : st.nlink;
}

static void test_basic(void)
{
	uint64_t ino;
	struct inode st;

	lower_start();
	(void)!fsu_mkdir(lower, "d");
	(void)!fsu_put(lower, "d/low", "lower text");
	(void)!fsu_put(lower, "d/gone", "x");
	(void)!fsu_symlink(lower, "low", "d/sym");
	overlay_start();
	tap_ok(text_is("d/low", "lower text"), "a lower file is read");
	ino = ino_of("d/low");
	tap_eq(fsu_put(sb, "d/low", "UPPER"), 0, "and written");
	tap_ok(text_is("d/low", "UPPER text"), "its copy is");
	tap_eq(ino_of("d/low"), ino, "under the same number");
	fsu_stat(sb, "d/low", &st);
	tap_ok(st.sb == sb, "on the same superblock");
	tap_eq(fsu_put(sb, "d/new", "new"), 0, "a new file");
	tap_ok(list_is("d", "gone low new sym"), "the merged listing");
	tap_eq(fsu_unlink(sb, "d/gone"), 0, "unlink a lower file");
	tap_ok(list_is("d", "low new sym") && fsu_text(sb, "d/gone") == NULL, "is gone");
	tap_eq(fsu_put(sb, "d/gone", "again"), 0, "made again");
	tap_ok(text_is("d/gone", "again"), "is the new one");
	tap_eq(fsu_unlink(sb, "d/gone"), 0, "unlinked again");
	tap_eq(fsu_stat(sb, "d/gone", &st), -ENOENT, "stays gone");
	tap_eq(fsu_mkdir(sb, "d/gone"), 0, "a directory in its place");
	tap_eq(fsu_chmod(sb, "d", 0700), 0, "chmod of a lower directory");
	fsu_stat(sb, "d", &st);
	tap_eq(st.mode, S_IFDIR | 0700, "is seen");
	tap_eq(fsu_truncate(sb, "d/low", 2), 0, "truncate");
	tap_ok(text_is("d/low", "UP"), "cuts");
	tap_eq(fsu_rename(sb, "d/sym", "sym2", 0), 0, "rename a lower symlink");
	fsu_stat(sb, "sym2", &st);
	tap_ok(S_ISLNK(st.mode) && list_is("", "d sym2") && list_is("d", "gone low new"), "moves it");
	finish("basic");
}

static void test_opaque(void)
{
	lower_start();
	(void)!fsu_mkdir(lower, "d");
	(void)!fsu_mkdir(lower, "d/e");
	(void)!fsu_put(lower, "d/a", "a");
	overlay_start();
	tap_eq(fsu_rmdir(sb, "d"), -ENOTEMPTY, "rmdir of a full lower directory");
	tap_eq(fsu_unlink(sb, "d/a"), 0, "empty it");
	tap_eq(fsu_rmdir(sb, "d/e"), 0, "of its directory too");
	tap_ok(list_is("d", ""), "nothing shown");
	tap_eq(fsu_rmdir(sb, "d"), 0, "rmdir");
	tap_ok(list_is("", ""), "gone");
	tap_eq(fsu_mkdir(sb, "d"), 0, "made again");
	tap_ok(list_is("d", ""), "empty: nothing of the lower shows through");
	tap_eq(fsu_put(sb, "d/b", "b"), 0, "filled");
	tap_ok(list_is("d", "b"), "with its own only");
	finish("opaque");
}

static void test_rename_dir(void)
{
	lower_start();
	(void)!fsu_mkdir(lower, "d");
	(void)!fsu_mkdir(lower, "d/sub");
	(void)!fsu_put(lower, "d/sub/f", "f");
	(void)!fsu_put(lower, "d/g", "g");
	(void)!fsu_mkdir(lower, "empty");
	overlay_start();
	tap_eq(fsu_rename(sb, "d", "moved", 0), 0, "rename a lower directory");
	tap_ok(list_is("", "empty moved") && list_is("moved", "g sub") && text_is("moved/sub/f", "f"),
	       "all comes along");
	tap_eq(fsu_put(sb, "moved/sub/f", "F"), 0, "write below it");
	tap_ok(text_is("moved/sub/f", "F"), "is seen");
	tap_eq(fsu_mkdir(sb, "d"), 0, "the old name is free");
	tap_ok(list_is("d", ""), "and empty");
	tap_eq(fsu_rename(sb, "moved", "d", 0), 0, "back over it");
	tap_ok(list_is("", "d empty") && list_is("d", "g sub"), "as before");
	tap_eq(fsu_rename(sb, "d", "empty", 0), 0, "over a lower empty directory");
	tap_ok(list_is("", "empty") && list_is("empty", "g sub"), "replaces it");
	tap_eq(fsu_rename(sb, "empty/sub", "s2", 0), 0, "a directory out of it");
	tap_eq(fsu_rename(sb, "empty", "s2", RENAME_EXCHANGE), 0, "exchange two");
	tap_ok(list_is("empty", "f") && list_is("s2", "g"), "changes places");
	finish("rename of directories");
}

static void test_hard_links(void)
{
	uint64_t ino;
	struct inode *held;

	lower_start();
	(void)!fsu_put(lower, "a", "text");
	(void)!fsu_link(lower, "a", "b");
	(void)!fsu_mkdir(lower, "d");
	(void)!fsu_link(lower, "a", "d/c");
	(void)!fsu_put(lower, "x", "x");
	(void)!fsu_link(lower, "x", "y");
	overlay_start();
	ino = ino_of("a");
	tap_ok(ino_of("b") == ino && ino_of("d/c") == ino && nlink_of("b") == 3, "three names of one file");
	tap_eq(fsu_unlink(sb, "b"), 0, "one goes");
	tap_eq(nlink_of("a"), 2, "two are left");
	tap_eq(fsu_put(sb, "a", "TEXT"), 0, "write by one");
	tap_ok(text_is("d/c", "TEXT") && ino_of("d/c") == ino, "is seen by the other");
	tap_eq(nlink_of("d/c"), 2, "with its links");
	tap_eq(fsu_unlink(sb, "a"), 0, "the copied name goes");
	tap_ok(text_is("d/c", "TEXT") && nlink_of("d/c") == 1, "the other stays");
	tap_eq(fsu_link(sb, "d/c", "b"), 0, "a new link");
	tap_ok(text_is("b", "TEXT") && nlink_of("b") == 2, "to the copy");
	tap_eq(fsu_rename(sb, "d/c", "d/e", 0), 0, "a name of the lower renamed");
	tap_ok(list_is("d", "e") && text_is("d/e", "TEXT"), "moves");
	tap_eq(fsu_unlink(sb, "d/e"), 0, "unlinked");
	tap_eq(fsu_unlink(sb, "b"), 0, "and the last one");
	tap_eq(fsu_find(sb, "x", &held), 0, "hold a file by one name");
	tap_eq(fsu_unlink(sb, "x"), 0, "unlink that");
	tap_eq(held->ops->setattr(held, &(struct iattr){ .valid = ATTR_MODE, .mode = 0600 }), 0, "change it");
	tap_ok(held->nlink == 1 && fsu_unlink(sb, "y") == 0, "it has one name more");
	tap_ok(held->nlink == 0 && list_is("", "d"), "and then none");
	inode_put(held);
	finish("hard links");
}

static void test_open_files(void)
{
	struct file *r, *w, *m;
	struct file_map map;
	struct inode *in;
	char buf[16];

	lower_start();
	(void)!fsu_put(lower, "f", "lower");
	(void)!fsu_put(lower, "u", "unlinked");
	overlay_start();
	(void)!fsu_open(sb, "f", O_RDONLY, &r);
	tap_eq(fsu_read_at(r, buf, 16, 0), 5, "read a lower file");
	(void)!fsu_open(sb, "f", O_RDONLY, &m);
	tap_eq(m->ops->mmap(m, PROT_READ, false, &map), 0, "map it");
	(void)!fsu_open(sb, "f", O_RDWR, &w);
	fsu_find(sb, "f", &in);
	tap_ok(!ovl_upper_of(in) && in == r->inode, "opening for writing copies nothing");
	tap_eq(fsu_write_at(w, "UPPER!", 6, 0), 6, "a write does");
	tap_ok(ovl_upper_of(in) && in->size == 6, "the inode shows it");
	tap_ok(fsu_read_at(r, buf, 16, 0) == 6 && !memcmp(buf, "UPPER!", 6), "an older descriptor sees it");
	tap_ok(pread(map.fd, buf, 16, 0) == 5 && !memcmp(buf, "lower", 5), "an older mapping stays");
	inode_put(in);
	file_put(w);
	file_put(m);
	file_put(r);
	tap_ok(text_is("f", "UPPER!"), "and all is there afterwards");
	(void)!fsu_open(sb, "u", O_RDWR, &w);
	tap_eq(fsu_unlink(sb, "u"), 0, "unlink an open lower file");
	tap_eq(w->inode->nlink, 0, "it has no link");
	tap_eq(fsu_write_at(w, "X", 1, 0), 1, "write to it");
	tap_ok(fsu_read_at(w, buf, 16, 0) == 8 && !memcmp(buf, "Xnlinked", 8), "read it back");
	tap_ok(list_is("", "f"), "it has no name");
	file_put(w);
	finish("open files");
}

static void test_single_file(void)
{
	struct super *upper, *file_sb = calloc(1, sizeof(struct super));
	static const struct super_ops no_ops = { 0 };
	struct inode *root;

	lower_start();
	(void)!fsu_put(lower, "f", "granted");
	fsu_find(lower, "f", &root);
	super_init(file_sb, &no_ops, "single", 0);
	file_sb->root = root;
	lower_before = fsu_dump(lower);
	BUG_ON(tmpfs_create(store, 0755, &upper) < 0 || overlay_create(file_sb, upper, &sb) < 0);
	super_put(upper);
	tap_ok(text_is("", "granted"), "a file as root");
	tap_eq(fsu_truncate(sb, "", 5), 0, "truncate");
	tap_ok(text_is("", "grant"), "its copy");
	super_put(file_sb);
	finish("a single file");
	free(file_sb);
}

struct log {
	char text[1024];
};

static bool log_change(const struct overlay_change *c, void *arg)
{
	struct log *l = arg;

	snprintf(l->text + strlen(l->text), sizeof(l->text) - strlen(l->text), "%c%s ", c->op, c->path);
	return true;
}

static void test_changes(void)
{
	struct log log = { 0 };

	lower_start();
	(void)!fsu_mkdir(lower, "d");
	(void)!fsu_put(lower, "d/mod", "1");
	(void)!fsu_put(lower, "d/del", "1");
	(void)!fsu_mkdir(lower, "e");
	(void)!fsu_put(lower, "e/same", "1");
	overlay_start();
	tap_eq(overlay_changes(sb, log_change, &log), 0, "no change");
	tap_ok(!*log.text, "is reported");
	(void)!fsu_put(sb, "d/mod", "22");
	(void)!fsu_unlink(sb, "d/del");
	(void)!fsu_mkdir(sb, "n");
	(void)!fsu_put(sb, "n/new", "333");
	(void)!fsu_chmod(sb, "e", 0700);
	(void)!fsu_put(sb, "tmp", "1");
	(void)!fsu_unlink(sb, "tmp");
	tap_eq(overlay_changes(sb, log_change, &log), 0, "changes");
	tap_ok(!strcmp(log.text, "M/d/mod D/d/del A/n A/n/new M/e "), "are reported: %s", log.text);
	finish("changes");
}

/* ---- random operations on an overlay and on a plain tmpfs must give the same ---- */

static const char *const dirs[] = { "", "a", "a", "b", "a/x", "a/y", "b/z", "a/x/p", "b/a" };
static const char *const names[] = { "a", "b", "x", "y", "z", "p" };

static const char *random_path(char *buf, size_t cap)
{
	const char *dir = dirs[(size_t)rand() % ARRAY_SIZE(dirs)];

	snprintf(buf, cap, "%s%s%s", dir, *dir ? "/" : "", names[(size_t)rand() % ARRAY_SIZE(names)]);
	return buf;
}

/* One operation by the numbers given, so that it can be done twice. */
static int random_op(struct super *s, int op, const char *p, const char *q, int n)
{
	static const unsigned rename_flags[] = { 0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE };
	char text[32];

	switch (op) {
	case 0:
	case 1:
		snprintf(text, sizeof(text), "text %d", n);
		return fsu_put(s, p, text);
	case 2:
		return fsu_mkdir(s, p);
	case 3:
		return fsu_unlink(s, p);
	case 4:
		return fsu_rmdir(s, p);
	case 5:
	case 6:
		return fsu_rename(s, p, q, rename_flags[(size_t)n % ARRAY_SIZE(rename_flags)]);
	case 7:
		return fsu_link(s, p, q);
	case 8:
		return fsu_symlink(s, q, p);
	case 9:
		return fsu_chmod(s, p, 0700 | ((unsigned)n & 077));
	default:
		return fsu_truncate(s, p, (unsigned)n % 9000);
	}
}

#define HELD 4

struct held {
	struct file *a, *b;
};

/* Keeps some files open over the changes, and writes to them. */
static bool random_held(struct held *h, struct super *plain, const char *p, int n)
{
	char ba[64], bb[64];
	ssize_t ra, rb;

	if (!h->a) {
		ra = fsu_open(sb, p, O_RDWR, &h->a);
		rb = fsu_open(plain, p, O_RDWR, &h->b);
		if (ra < 0)
			h->a = NULL;
		if (rb < 0)
			h->b = NULL;
		return ra == rb;
	}
	if (n % 4 == 0) {
		file_put(h->a);
		file_put(h->b);
		h->a = h->b = NULL;
		return true;
	}
	if (n % 4 == 1)
		return fsu_write_at(h->a, p, strlen(p), (unsigned)n % 100) ==
		       fsu_write_at(h->b, p, strlen(p), (unsigned)n % 100);
	memset(ba, 0, sizeof(ba));
	memset(bb, 0, sizeof(bb));
	ra = fsu_read_at(h->a, ba, sizeof(ba), (unsigned)n % 100);
	rb = fsu_read_at(h->b, bb, sizeof(bb), (unsigned)n % 100);
	return ra == rb && !memcmp(ba, bb, sizeof(ba)) && h->a->inode->nlink == h->b->inode->nlink;
}

static bool trees_equal(struct super *plain)
{
	char *a = fsu_dump(sb), *b = fsu_dump(plain);
	bool same = !strcmp(a, b);

	if (!same)
		printf("# overlay:\n%s# plain:\n%s", a, b);
	free(a);
	free(b);
	return same;
}

static bool random_round(unsigned seed)
{
	char p[64], q[64];
	struct held held[HELD] = { 0 };
	struct super *plain;
	bool ok = true;

	srand(seed);
	lower_start();
	BUG_ON(tmpfs_create(store, 0755, &plain) < 0);
	for (int i = 0; i < 250; i++) {
		int op = rand() % 12, n = rand();

		random_path(p, sizeof(p));
		random_path(q, sizeof(q));
		(void)!random_op(lower, op, p, q, n);
		(void)!random_op(plain, op, p, q, n);
	}
	overlay_start();
	for (int i = 0; i < 500 && ok; i++) {
		int op = rand() % 14, n = rand(), ra = 0, rb = 0;

		random_path(p, sizeof(p));
		random_path(q, sizeof(q));
		if (op < 12) {
			ra = random_op(sb, op, p, q, n);
			rb = random_op(plain, op, p, q, n);
			ok = ra == rb;
		} else {
			ok = random_held(&held[n % HELD], plain, p, n / HELD);
		}
		if (ok && i % 10 == 0)
			ok = trees_equal(plain);
		if (!ok)
			printf("# seed %u step %d op %d %s %s: %d, plain %d\n", seed, i, op, p, q, ra, rb);
	}
	ok = ok && trees_equal(plain);
	for (int i = 0; i < HELD; i++) {
		file_put(held[i].a);
		file_put(held[i].b);
	}
	super_put(plain);
	{
		char *after = fsu_dump(lower);

		ok = ok && !strcmp(after, lower_before);
		free(after);
		free(lower_before);
	}
	super_put(sb);
	super_put(lower);
	ok = ok && store->used_bytes == 0 && store->used_inodes == 0 && store->used_meta == 0 &&
	     kernel.counters.inodes == 0 && kernel.counters.files == 0;
	store_destroy(store);
	return ok;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 60, bad = 0;

	test_basic();
	test_opaque();
	test_rename_dir();
	test_hard_links();
	test_open_files();
	test_single_file();
	test_changes();
	for (unsigned seed = 0; seed < rounds && !bad; seed++)
		bad = random_round(seed) ? 0 : seed + 1;
	tap_eq(bad, 0, "random operations give the same on an overlay and on a tmpfs");
	return tap_done();
}
