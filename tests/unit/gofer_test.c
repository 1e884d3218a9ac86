/* SPDX-License-Identifier: Apache-2.0 */
/* The gofer's request handler on temporary directories, spoken to as a hostile sentry could. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/wire/wire.h"
#include "gofer/follow.h"
#include "gofer/gofer.h"
#include "gofer/reopen.h"
#include "tests/lib/tap.h"
#include "tests/lib/tree.h"

#define OP(x) SBX__GOFER__REQUEST__OP_##x

static char top[] = "/tmp/sbx-gofer-test-XXXXXX";
static struct gofer *g;
static int got_fd = -1;

static const char *at(const char *rel)
{
	return tree_at(top, rel);
}

static void put(const char *rel, const char *text)
{
	tree_put(at(rel), text, O_TRUNC);
}

/* Sends one request; the reply is valid until the next. NULL: the connection would have ended. */
static Sbx__Gofer__Reply *call(Sbx__Gofer__Request *q)
{
	static Sbx__Gofer__Reply *last;
	static uint8_t in[WIRE_MSG_MAX], out[WIRE_MSG_MAX];
	bool close_fd = false;
	int fd;
	ssize_t n;

	if (last)
		sbx__gofer__reply__free_unpacked(last, NULL);
	last = NULL;
	if (got_fd >= 0)
		close(got_fd);
	got_fd = -1;
	n = gofer_handle(g, in, sbx__gofer__request__pack(q, in), out, &fd, &close_fd);
	if (n < 0)
		return NULL;
	if (close_fd)
		got_fd = fd;
	last = sbx__gofer__reply__unpack(NULL, (size_t)n, out);
	return last;
}

static int err_of(Sbx__Gofer__Request *q)
{
	Sbx__Gofer__Reply *r = call(q);

	return r ? (int)r->error : -1;
}

#define REQUEST(q, field, CASE, type, ...) \
	type field##_ = __VA_ARGS__; \
	Sbx__Gofer__Request q = SBX__GOFER__REQUEST__INIT; \
	q.op_case = OP(CASE); \
	q.field = &field##_

#define MSG(TYPE, ...) { PROTOBUF_C_MESSAGE_INIT(&sbx__gofer__##TYPE##__descriptor), __VA_ARGS__ }

static int do_attach(uint32_t grant, uint32_t fid)
{
	REQUEST(q, attach, ATTACH, Sbx__Gofer__Attach, MSG(attach, .grant = grant, .new_fid = fid));
	return err_of(&q);
}

static int do_walk(uint32_t fid, const char *name, uint32_t new_fid)
{
	Sbx__Gofer__Walk w = SBX__GOFER__WALK__INIT;
	Sbx__Gofer__Request q = SBX__GOFER__REQUEST__INIT;
	char *names[1] = { (char *)(uintptr_t)name };

	w.fid = fid;
	w.names = names;
	w.new_fids = &new_fid;
	w.n_names = w.n_new_fids = 1;
	q.walk = &w;
	return err_of(&q);
}

static int do_open(uint32_t fid, uint32_t flags)
{
	REQUEST(q, open, OPEN, Sbx__Gofer__Open, MSG(open, .fid = fid, .flags = flags));
	return err_of(&q);
}

static int do_create(uint32_t fid, const char *name, uint32_t mode, uint32_t new_fid)
{
	REQUEST(q, create, CREATE, Sbx__Gofer__Create,
		MSG(create, .fid = fid, .name = (char *)(uintptr_t)name, .mode = mode, .new_fid = new_fid));
	return err_of(&q);
}

static int do_mkdir(uint32_t fid, const char *name, uint32_t mode, uint32_t new_fid)
{
	REQUEST(q, mkdir, MKDIR, Sbx__Gofer__Mkdir,
		MSG(mkdir, .fid = fid, .name = (char *)(uintptr_t)name, .mode = mode, .new_fid = new_fid));
	return err_of(&q);
}

static int do_symlink(uint32_t fid, const char *name, const char *target)
{
	REQUEST(q, symlink, SYMLINK, Sbx__Gofer__Symlink,
		MSG(symlink, .fid = fid, .name = (char *)(uintptr_t)name, .target = (char *)(uintptr_t)target));
	return err_of(&q);
}

static int do_link(uint32_t fid, const char *name, uint32_t target)
{
	REQUEST(q, link, LINK, Sbx__Gofer__Link,
		MSG(link, .fid = fid, .name = (char *)(uintptr_t)name, .target_fid = target));
	return err_of(&q);
}

static int do_unlink(uint32_t fid, const char *name, bool dir)
{
	REQUEST(q, unlink, UNLINK, Sbx__Gofer__Unlink,
		MSG(unlink, .fid = fid, .name = (char *)(uintptr_t)name, .dir = dir));
	return err_of(&q);
}

static int do_rename(uint32_t fid, const char *name, uint32_t nfid, const char *nname, uint32_t flags)
{
	REQUEST(q, rename, RENAME, Sbx__Gofer__Rename,
		MSG(rename, .fid = fid, .name = (char *)(uintptr_t)name, .new_dir_fid = nfid,
		    .new_name = (char *)(uintptr_t)nname, .flags = flags));
	return err_of(&q);
}

static int do_mknod(uint32_t fid, const char *name, uint32_t mode)
{
	REQUEST(q, mknod, MKNOD, Sbx__Gofer__Mknod,
		MSG(mknod, .fid = fid, .name = (char *)(uintptr_t)name, .mode = mode));
	return err_of(&q);
}

static int do_getattr(uint32_t fid)
{
	REQUEST(q, getattr, GETATTR, Sbx__Gofer__GetAttr, MSG(get_attr, .fid = fid));
	return err_of(&q);
}

static int do_setattr(uint32_t fid, uint32_t valid, uint32_t mode, uint64_t size)
{
	REQUEST(q, setattr, SETATTR, Sbx__Gofer__SetAttr,
		MSG(set_attr, .fid = fid, .valid = valid, .mode = mode, .size = size));
	return err_of(&q);
}

static int do_setxattr(uint32_t fid, const char *name)
{
	REQUEST(q, setxattr, SETXATTR, Sbx__Gofer__SetXattr,
		MSG(set_xattr, .fid = fid, .name = (char *)(uintptr_t)name, .value = { 1, (uint8_t *)(uintptr_t)"x" }));
	return err_of(&q);
}

static int do_removexattr(uint32_t fid, const char *name)
{
	REQUEST(q, removexattr, REMOVEXATTR, Sbx__Gofer__RemoveXattr,
		MSG(remove_xattr, .fid = fid, .name = (char *)(uintptr_t)name));
	return err_of(&q);
}

static int do_tmpfile(uint32_t fid, uint32_t new_fid)
{
	REQUEST(q, tmpfile, TMPFILE, Sbx__Gofer__Tmpfile, MSG(tmpfile, .fid = fid, .mode = 0600, .new_fid = new_fid));
	return err_of(&q);
}

static void clunk(uint32_t fid)
{
	Sbx__Gofer__Request q = SBX__GOFER__REQUEST__INIT;

	q.clunk = &fid;
	q.n_clunk = 1;
	call(&q);
}

/* Is @name in the listing of @fid? -1: it failed. */
static int listed(uint32_t fid, const char *name)
{
	REQUEST(q, readdir, READDIR, Sbx__Gofer__ReadDir, MSG(read_dir, .fid = fid, .with_attr = true));
	bool found = false;

	for (;;) {
		Sbx__Gofer__Reply *r = call(&q);

		if (!r || r->error)
			return -1;
		for (size_t i = 0; i < r->n_entries; i++) {
			found |= !strcmp(r->entries[i]->name, name);
			readdir_.cookie = r->entries[i]->cookie;
		}
		if (r->eof)
			return found;
	}
}

/* What can be read through the fd of the last reply. */
static const char *contents(void)
{
	static char buf[64];
	ssize_t n = got_fd < 0 ? -1 : pread(got_fd, buf, sizeof(buf) - 1, 0);

	buf[n < 0 ? 0 : n] = '\0';
	return buf;
}

/* Grants of the fixture. */
enum { RW = 1, RO, FILE_RO, NESTED, COW, PART };

static void make_tree(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	static const char *const dirs[] = { "out",           "rw",          "rw/d",         "rw/d/e",    "rw/.git",
		                            "rw/.git/hooks", "rw/secret",   "rw/many",      "rw/nested", "ro",
		                            "ro/d",          "cow",         "part",         "part/usr",  "part/usr/bin",
		                            "part/work",     "rw/hidekids", "rw/hidekids/a" };
	int s;

	if (!mkdtemp(top))
		perror("mkdtemp");
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		mkdir(at(dirs[i]), 0755);
	put("out/secret", "outside");
	put("rw/f", "inside");
	put("rw/d/e/deep", "deep");
	put("rw/.git/config", "[core]");
	put("rw/.git/hooks/pre-commit", "#!");
	put("rw/secret/key", "key");
	put("rw/nested/n", "nested");
	put("ro/f", "ro");
	put("cow/f", "cow");
	put("single", "single");
	put("part/stray", "stray");
	put("part/etc", "hidden all the same");
	symlink("usr/bin", at("part/bin"));
	link(at("part/stray"), at("part/usr/alias"));
	link(at("rw/secret/key"), at("rw/alias"));
	symlink(at("out"), at("rw/ldir"));
	symlink(at("out/secret"), at("rw/lfile"));
	symlink("../out/secret", at("rw/lrel"));
	mkfifo(at("rw/fifo"), 0644);
	mknod(at("rw/null"), S_IFCHR | 0666, 0x103);
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", at("rw/sock"));
	bind(s, (struct sockaddr *)&sa, sizeof(sa));
	close(s);
}

static void start(unsigned budget)
{
	Sbx__Control__GoferConfig cfg = SBX__CONTROL__GOFER_CONFIG__INIT;
	static const struct { uint32_t id; const char *path; int mode;
	} gr[] = {
		{ RW, "rw", SBX__CONTROL__GRANT_MODE__GRANT_RW },
		{ RO, "ro", SBX__CONTROL__GRANT_MODE__GRANT_RO },
		{ FILE_RO, "single", SBX__CONTROL__GRANT_MODE__GRANT_RO },
		{ NESTED, "rw/nested", SBX__CONTROL__GRANT_MODE__GRANT_RO },
		{ COW, "cow", SBX__CONTROL__GRANT_MODE__GRANT_COW },
		{ PART, "part", SBX__CONTROL__GRANT_MODE__GRANT_RW },
	};
	Sbx__Control__Grant grants[ARRAY_SIZE(gr)], *ptrs[ARRAY_SIZE(gr)];
	char usr[] = "usr", bin[] = "bin", etc[] = "etc", *only[] = { usr, bin, etc };
	char *hide[] = { strdup(at("rw/secret/key")), strdup(at("rw/hidekids/*")), strdup("/nonexistent/x"),
		         strdup(at("part/etc")) };
	char *protect[] = { strdup("**/.git/hooks/**"), strdup("**/.git/config") };
	REQUEST(q, hello, HELLO, Sbx__Gofer__Hello, MSG(hello, .version = 1));
	struct sbx_err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(gr); i++) {
		sbx__control__grant__init(&grants[i]);
		grants[i].id = gr[i].id;
		grants[i].path = strdup(at(gr[i].path));
		grants[i].mode = (Sbx__Control__GrantMode)gr[i].mode;
		if (gr[i].id == PART) {
			grants[i].only = only;
			grants[i].n_only = ARRAY_SIZE(only);
		}
		ptrs[i] = &grants[i];
	}
	cfg.grants = ptrs;
	cfg.n_grants = ARRAY_SIZE(gr);
	cfg.hide = hide;
	cfg.n_hide = ARRAY_SIZE(hide);
	cfg.protect = protect;
	cfg.n_protect = ARRAY_SIZE(protect);
	tap_eq(gofer_server_create(budget, &g), 0, "create");
	if (!tap_ok(gofer_configure(g, &cfg, false, &err) == 0, "configure"))
		printf("# %s\n", err.msg);
	for (size_t i = 0; i < ARRAY_SIZE(gr); i++)
		free(grants[i].path);
	for (size_t i = 0; i < ARRAY_SIZE(hide); i++)
		free(hide[i]);
	for (size_t i = 0; i < ARRAY_SIZE(protect); i++)
		free(protect[i]);
	tap_eq(do_attach(RW, 1), -1, "nothing is served before hello");
	hello_.version = 99;
	tap_eq(err_of(&q), -1, "another version ends the connection");
	hello_.version = SBX__GOFER__VERSION__VERSION_CURRENT;
	tap_eq(err_of(&q), 0, "hello");
	tap_eq(do_attach(RW, 1), 0, "attach rw");
	tap_eq(do_attach(RO, 2), 0, "attach ro");
}

static void test_walk(void)
{
	static const char *const bad[] = { "", ".", "..", "a/b", "/", "../out", "d/../../out" };
	char longname[300];
	Sbx__Gofer__Walk w = SBX__GOFER__WALK__INIT;
	Sbx__Gofer__Request q = SBX__GOFER__REQUEST__INIT;
	char d[] = "d", e[] = "e", deep[] = "deep", x[] = "x", *names[] = { d, e, deep, x };
	uint32_t fids[] = { 10, 11, 12, 13 };
	Sbx__Gofer__Reply *r;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		tap_eq(do_walk(1, bad[i], 20), EINVAL, "bad name '%s'", bad[i]);
	memset(longname, 'a', sizeof(longname));
	longname[256] = '\0';
	tap_eq(do_walk(1, longname, 20), ENAMETOOLONG, "long name");
	w.fid = 1;
	w.names = names;
	w.n_names = 4;
	w.new_fids = fids;
	w.n_new_fids = 4;
	q.walk = &w;
	r = call(&q);
	tap_ok(r && r->walked == 3 && r->error == ENOTDIR && r->n_attrs == 3, "a walk stops at a file");
	tap_ok(r && S_ISREG(r->attrs[2]->mode) && r->attrs[2]->size == 4, "with attributes");
	tap_eq(do_open(12, O_RDONLY), 0, "what was reached can be opened");
	tap_ok(!strcmp(contents(), "deep"), "and read");
	tap_eq(do_walk(12, "x", 20), ENOTDIR, "nothing is below a file");
	w.n_new_fids = 2;
	tap_eq(err_of(&q), EINVAL, "ids must match names");
	tap_eq(do_walk(1, "missing", 20), ENOENT, "a missing name");
	for (uint32_t i = 10; i < 13; i++)
		clunk(i);
}

/* A grant of which only some names are shown. */
static void test_only(void)
{
	tap_eq(do_attach(PART, 30), 0, "attach a grant with a list of names");
	tap_eq(do_walk(30, "usr", 31), 0, "a directory on the list");
	tap_eq(do_walk(30, "bin", 32), 0, "a symlink on the list");
	tap_eq(do_walk(31, "bin", 33), 0, "the list is not about what is below");
	tap_eq(do_walk(31, "alias", 34), 0, "nor about other names there");
	tap_eq(do_walk(30, "work", 35), ENOENT, "a directory that is not on the list");
	tap_eq(do_walk(30, "stray", 35), ENOENT, "a file that is not on the list");
	tap_eq(do_walk(30, "missing", 35), ENOENT, "a name that does not exist");
	tap_eq(do_walk(30, "etc", 35), ENOENT, "a name that is on the list and hidden");
	tap_eq(listed(30, "usr"), 1, "usr is listed");
	tap_eq(listed(30, "bin"), 1, "bin is listed");
	tap_eq(listed(30, "work"), 0, "work is not");
	tap_eq(listed(30, "stray"), 0, "stray is not");
	tap_eq(listed(30, "etc"), 0, "nor what is hidden");
	tap_eq(do_create(30, "stray", 0644, 35), EACCES, "what is not on the list cannot be made");
	tap_eq(do_unlink(30, "stray", false), EACCES, "nor removed");
	tap_eq(do_rename(30, "stray", 31, "x", 0), EACCES, "nor moved to where it would show");
	tap_eq(do_rename(31, "alias", 30, "new", 0), EACCES, "nor can something be moved there");
	tap_eq(do_unlink(30, "bin", false), 0, "a name on the list can be removed");
	tap_eq(do_symlink(30, "bin", "usr/bin"), 0, "and made");
	for (uint32_t i = 30; i < 36; i++)
		clunk(i);
}

static void test_links(void)
{
	Sbx__Gofer__Reply *r;

	tap_eq(do_walk(1, "ldir", 20), 0, "a symlink itself can be walked to");
	tap_eq(do_walk(20, "secret", 21), ENOTDIR, "but not through");
	tap_eq(do_open(20, O_RDONLY), ELOOP, "nor opened");
	tap_eq(do_walk(1, "lfile", 22), 0, "a symlink to a file");
	tap_eq(do_open(22, O_RDONLY), ELOOP, "is not followed");
	tap_eq(do_open(22, O_RDWR), ELOOP, "nor for writing");
	tap_eq(do_setattr(22, 8, 0, 0), EINVAL, "nor truncated through");
	tap_eq(do_setattr(22, 1, 0777, 0), EOPNOTSUPP, "nor chmodded through");
	REQUEST(q, readlink, READLINK, Sbx__Gofer__Readlink, MSG(readlink, .fid = 22));
	r = call(&q);
	tap_ok(r && r->data.len == strlen(at("out/secret")) && !memcmp(r->data.data, at("out/secret"), r->data.len),
	       "readlink");
	tap_eq(do_create(1, "lrel", 0644, 23), EEXIST, "a dangling or other link is not created through");
	clunk(20);
	clunk(22);
}

static void test_special(void)
{
	struct stat st;

	tap_eq(do_walk(1, "fifo", 20), 0, "walk to a FIFO");
	tap_eq(do_open(20, O_RDONLY), ENXIO, "a FIFO is not opened");
	tap_eq(do_walk(1, "sock", 21), 0, "walk to a socket");
	tap_eq(do_open(21, O_RDWR), ENXIO, "a socket is not opened");
	if (lstat(at("rw/null"), &st) == 0) {
		tap_eq(do_walk(1, "null", 22), 0, "walk to a device");
		tap_eq(do_open(22, O_RDWR), ENXIO, "a device is not opened");
		tap_eq(do_link(1, "null2", 22), EPERM, "nor linked");
	}
	tap_eq(do_link(1, "sock2", 21), EPERM, "a socket is not linked");
	tap_eq(do_link(1, "fifo2", 20), 0, "a FIFO gets a second name");
	tap_eq(do_unlink(1, "fifo2", false), 0, "and loses it");
	tap_eq(do_mknod(1, "dev", S_IFCHR | 0666), EPERM, "no device is made");
	tap_eq(do_mknod(1, "dev", S_IFBLK | 0666), EPERM, "of no kind");
	tap_eq(do_mknod(1, "reg", S_IFREG | 0666), EPERM, "nor a file");
	tap_eq(do_mknod(1, "fifo3", S_IFIFO | 0644), 0, "a FIFO is made");
	tap_eq(do_unlink(1, "fifo3", false), 0, "and removed");
	tap_eq(do_open(1, O_RDONLY), EISDIR, "a directory is not opened");
	for (uint32_t i = 20; i < 23; i++)
		clunk(i);
}

static void test_ro(uint32_t root, uint32_t file, const char *what)
{
	struct stat a, b;

	fstatat(AT_FDCWD, at("ro/f"), &a, 0);
	tap_eq(do_open(file, O_RDONLY), 0, "%s: read", what);
	tap_ok(got_fd >= 0 && (fcntl(got_fd, F_GETFL) & O_ACCMODE) == O_RDONLY, "%s: the fd is read-only", what);
	tap_ok(got_fd >= 0 && ftruncate(got_fd, 0) < 0, "%s: and does not truncate", what);
	tap_eq(do_open(file, O_RDWR), EROFS, "%s: open rw", what);
	tap_eq(do_open(file, O_WRONLY), EROFS, "%s: open w", what);
	tap_eq(do_open(file, O_RDONLY | O_TRUNC), EROFS, "%s: open truncating", what);
	tap_eq(do_open(file, O_RDONLY | O_CREAT), EINVAL, "%s: other flags", what);
	tap_eq(do_open(file, O_ACCMODE), EINVAL, "%s: access mode 3", what);
	tap_eq(do_setattr(file, 1, 0777, 0), EROFS, "%s: chmod", what);
	tap_eq(do_setattr(file, 8, 0, 0), EROFS, "%s: truncate", what);
	tap_eq(do_setattr(file, 16, 0, 0), EROFS, "%s: atime", what);
	tap_eq(do_setattr(file, 32, 0, 0), EROFS, "%s: mtime", what);
	tap_eq(do_setattr(file, 2, 0, 0), EINVAL, "%s: chown does not exist", what);
	tap_eq(do_setxattr(file, "user.x"), EROFS, "%s: setxattr", what);
	tap_eq(do_removexattr(file, "user.x"), EROFS, "%s: removexattr", what);
	if (root) {
		tap_eq(do_create(root, "n", 0644, 90), EROFS, "%s: create", what);
		tap_eq(do_mkdir(root, "n", 0755, 90), EROFS, "%s: mkdir", what);
		tap_eq(do_symlink(root, "n", "x"), EROFS, "%s: symlink", what);
		tap_eq(do_mknod(root, "n", S_IFIFO | 0644), EROFS, "%s: mknod", what);
		tap_eq(do_link(root, "n", file), EROFS, "%s: link", what);
		tap_eq(do_unlink(root, "f", false), EROFS, "%s: unlink", what);
		tap_eq(do_unlink(root, "d", true), EROFS, "%s: rmdir", what);
		tap_eq(do_rename(root, "f", root, "g", 0), EROFS, "%s: rename", what);
		tap_eq(do_rename(root, "f", 1, "g", 0), EXDEV, "%s: rename out", what);
		tap_eq(do_rename(1, "f", root, "g", 0), EXDEV, "%s: rename in", what);
		tap_eq(do_link(1, "g", file), EXDEV, "%s: link out", what);
		tap_eq(do_tmpfile(root, 90), EROFS, "%s: tmpfile", what);
	}
	fstatat(AT_FDCWD, at("ro/f"), &b, 0);
	tap_ok(a.st_mode == b.st_mode && a.st_size == b.st_size && a.st_nlink == b.st_nlink &&
	       a.st_mtim.tv_nsec == b.st_mtim.tv_nsec, "%s: nothing changed", what);
}

static void test_read_only(void)
{
	tap_eq(do_walk(2, "f", 20), 0, "walk ro");
	test_ro(2, 20, "ro");
	clunk(20);
	tap_eq(do_attach(COW, 21), 0, "attach cow");
	tap_eq(do_walk(21, "f", 22), 0, "walk cow");
	test_ro(21, 22, "cow");
	clunk(21);
	clunk(22);
	tap_eq(do_attach(FILE_RO, 23), 0, "attach a single file");
	tap_eq(do_getattr(23), 0, "its attributes");
	tap_eq(do_walk(23, "x", 24), ENOTDIR, "no names in it");
	tap_eq(listed(23, "x"), -1, "no listing");
	test_ro(0, 23, "single");
	clunk(23);
}

static void test_change(void)
{
	struct stat st;

	tap_eq(do_create(1, "new", 06755, 30), 0, "create");
	tap_ok(got_fd >= 0 && write(got_fd, "hello", 5) == 5, "the fd is writable");
	tap_ok(stat(at("rw/new"), &st) == 0 && (st.st_mode & 07777) == 0755, "set-id bits are stripped");
	tap_eq(do_setattr(30, 1, 06711, 0), 0, "chmod");
	tap_ok(stat(at("rw/new"), &st) == 0 && (st.st_mode & 07777) == 0711, "strips them as well");
	tap_eq(do_setattr(30, 8, 0, 2), 0, "truncate");
	tap_eq(do_setattr(30, 32, 0, 0), 0, "mtime");
	tap_ok(stat(at("rw/new"), &st) == 0 && st.st_size == 2 && st.st_mtime == 0, "both are done");
	tap_eq(do_create(1, "new", 0644, 31), EEXIST, "create again");
	tap_eq(do_mkdir(1, "newdir", 02755, 31), 0, "mkdir");
	tap_eq(do_rename(1, "new", 31, "moved", 0), 0, "rename");
	tap_eq(do_open(30, O_RDONLY), 0, "the id follows");
	tap_ok(!strcmp(contents(), "he"), "to the file");
	tap_eq(do_rename(31, "moved", 1, "f", RENAME_NOREPLACE), EEXIST, "noreplace");
	tap_eq(do_rename(31, "moved", 1, "f", RENAME_EXCHANGE), 0, "exchange");
	tap_eq(do_open(30, O_RDONLY), 0, "the id follows an exchange");
	tap_ok(!strcmp(contents(), "he"), "to the file");
	tap_eq(do_rename(31, "moved", 1, "f", RENAME_EXCHANGE), 0, "and back");
	tap_eq(do_rename(31, "moved", 1, "f", RENAME_WHITEOUT), EINVAL, "no whiteouts");
	tap_eq(do_link(1, "hard", 30), 0, "link");
	tap_eq(do_unlink(31, "moved", false), 0, "unlink");
	tap_eq(do_getattr(30), 0, "an unlinked file still has attributes");
	tap_eq(do_unlink(1, "newdir", false), EISDIR, "unlink a directory");
	tap_eq(do_unlink(1, "newdir", true), 0, "rmdir");
	tap_eq(do_create(31, "x", 0644, 32), ENOENT, "nothing is made in a removed directory");
	tap_eq(do_unlink(1, "hard", false), 0, "unlink the link");
	tap_eq(do_tmpfile(1, 33), 0, "tmpfile");
	tap_ok(got_fd >= 0 && write(got_fd, "tmp", 3) == 3, "is writable");
	tap_eq(do_link(1, "named", 33), 0, "and can be given a name");
	tap_eq(do_open(33, O_RDONLY), 0, "its id is of use");
	tap_eq(do_unlink(1, "named", false), 0, "remove it");
	tap_eq(do_setxattr(1, "trusted.overlay.opaque"), EOPNOTSUPP, "no trusted xattr");
	tap_eq(do_setxattr(1, "security.capability"), EOPNOTSUPP, "no security xattr");
	tap_eq(do_setxattr(1, "user."), EINVAL, "an xattr without a name");
	for (uint32_t i = 30; i < 34; i++)
		clunk(i);
}

static void test_hide(void)
{
	tap_eq(do_walk(1, "secret", 20), 0, "the parent of a hidden file");
	tap_eq(do_walk(20, "key", 21), ENOENT, "a hidden file");
	tap_eq(listed(20, "key"), 0, "is not listed");
	tap_eq(do_create(20, "key", 0644, 21), EACCES, "nor created");
	tap_eq(do_unlink(20, "key", false), EACCES, "nor removed");
	tap_eq(do_walk(1, "alias", 21), ENOENT, "another name of it");
	tap_eq(listed(1, "alias"), 0, "is not listed");
	tap_eq(do_rename(1, "secret", 1, "public", 0), EBUSY, "the way to it cannot be moved");
	tap_eq(do_rename(1, "d", 1, "secret", RENAME_EXCHANGE), EBUSY, "nor exchanged");
	tap_eq(do_walk(1, "hidekids", 22), 0, "a directory with hidden contents");
	tap_eq(do_walk(22, "a", 23), ENOENT, "hides them");
	tap_eq(listed(22, "a"), 0, "and does not list them");
	clunk(20);
	clunk(22);
}

static void test_nested(void)
{
	tap_eq(do_walk(1, "nested", 20), 0, "the place of a nested grant");
	tap_eq(do_walk(20, "n", 21), ENOENT, "shows nothing through the outer grant");
	tap_eq(do_create(20, "n", 0644, 21), EACCES, "and takes nothing");
	tap_eq(do_rename(1, "nested", 1, "x", 0), EBUSY, "it cannot be moved");
	tap_eq(do_attach(NESTED, 22), 0, "attach the nested grant");
	tap_eq(do_walk(22, "n", 23), 0, "which serves it");
	tap_eq(do_open(23, O_RDWR), EROFS, "with its own mode");
	clunk(20);
	clunk(22);
	clunk(23);
}

static void test_protect(void)
{
	tap_eq(do_walk(1, ".git", 20), 0, "walk .git");
	tap_eq(do_walk(20, "config", 21), 0, "a protected file is there");
	tap_eq(do_open(21, O_RDONLY), 0, "and readable");
	tap_eq(do_open(21, O_RDWR), EACCES, "not writable");
	tap_eq(do_setattr(21, 8, 0, 0), EACCES, "not truncated");
	tap_eq(do_link(1, "cfg", 21), EACCES, "not linked elsewhere");
	tap_eq(do_unlink(20, "config", false), EACCES, "not removed");
	tap_eq(do_create(20, "tmp", 0644, 22), 0, "another file beside it");
	tap_eq(do_rename(20, "tmp", 20, "config", 0), EACCES, "does not replace it");
	tap_eq(do_rename(20, "config", 20, "c2", 0), EACCES, "nor is it moved");
	tap_eq(do_rename(20, "tmp", 20, "CONFIG", 0), EACCES, "in no spelling");
	tap_eq(do_unlink(20, "tmp", false), 0, "remove the other");
	tap_eq(do_walk(20, "hooks", 23), 0, "walk hooks");
	tap_eq(do_create(23, "post-commit", 0755, 24), EACCES, "no new hook");
	tap_eq(do_symlink(23, "post-commit", "/x"), EACCES, "as no link");
	tap_eq(do_rename(20, "hooks", 20, "h", 0), EACCES, "the directory stays");
	tap_eq(do_rename(1, ".git", 1, "g", 0), EACCES, "and the one above");
	tap_eq(do_mkdir(1, "fake", 0755, 25), 0, "a directory");
	tap_eq(do_mkdir(25, "hooks", 0755, 26), 0, "with hooks");
	tap_eq(do_rename(1, "fake", 1, ".git2", 0), 0, "may have another name");
	tap_eq(do_mkdir(25, "sub", 0755, 27), 0, "a deeper directory");
	tap_eq(do_rename(1, ".git2", 27, ".git", 0), EACCES, "nor become .git elsewhere");
	tap_eq(do_rename(25, "sub", 25, ".git", 0), EACCES, "no directory becomes .git by rename");
	tap_eq(do_symlink(25, ".git", "fake"), EACCES, "and no link is .git");
	for (uint32_t i = 20; i < 28; i++)
		clunk(i);
}

static void test_fids(void)
{
	tap_eq(do_getattr(99), EBADF, "an unknown id");
	tap_eq(do_getattr(0), EBADF, "id 0");
	tap_eq(do_getattr(UINT32_MAX), EBADF, "a huge id");
	tap_eq(do_walk(1, "f", 1), EBADF, "an id in use");
	tap_eq(do_walk(1, "f", NODE_FIDS_MAX), EBADF, "an id out of range");
	tap_eq(do_walk(1, "f", 20), 0, "a good one");
	clunk(20);
	clunk(20);
	tap_eq(do_getattr(20), EBADF, "after clunk");
	tap_eq(do_walk(1, "f", 20), 0, "the number can be used again");
	tap_eq(do_attach(77, 21), ENOENT, "no such grant");
	g->grants.grants[0].revoked = true;
	tap_eq(do_getattr(20), EACCES, "a revoked grant");
	tap_eq(do_attach(RW, 21), EACCES, "is not attached");
	g->grants.grants[0].revoked = false;
	clunk(20);
}

static void test_eviction(void)
{
	char name[32];
	int bad = 0;

	for (uint32_t i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "rw/many/%u", i);
		put(name, name);
	}
	tap_eq(do_walk(1, "many", 100), 0, "walk");
	for (uint32_t i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "%u", i);
		bad += do_walk(100, name, 101 + i) != 0;
	}
	tap_eq(bad, 0, "200 ids");
	tap_ok(node_table_open_fds(g->nodes) <= 16 + 5, "with %u fds", node_table_open_fds(g->nodes));
	for (uint32_t i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "rw/many/%u", i);
		bad += do_open(101 + i, O_RDONLY) != 0 || strcmp(contents(), name);
	}
	tap_eq(bad, 0, "are all of use");
	rename(at("rw/many/0"), at("rw/many/y"));
	tap_eq(do_getattr(101), ESTALE, "what the host moved is stale");
	rename(at("rw/many/y"), at("rw/many/0"));
	tap_eq(do_getattr(101), 0, "and of use again when it is back");
	put("rw/many/x", "x");
	rename(at("rw/many/x"), at("rw/many/0"));
	for (uint32_t i = 1; i < 100; i++)
		(void)do_getattr(101 + i);
	tap_eq(do_getattr(101), ESTALE, "a replaced file is stale");
	tap_eq(do_unlink(100, "1", false), 0, "unlink an evicted file");
	for (uint32_t i = 2; i < 100; i++)
		(void)do_getattr(101 + i);
	tap_eq(do_open(102, O_RDONLY), 0, "its id stays of use");
	for (uint32_t i = 100; i < 301; i++)
		clunk(i);
}

static void test_deep(void)
{
	uint32_t fid = 1;
	int bad = 0;

	for (uint32_t i = 0; i < 150; i++) {
		bad += do_mkdir(fid, "deep", 0755, 400 + i) != 0;
		fid = 400 + i;
	}
	tap_eq(bad, 0, "150 levels");
	tap_eq(do_walk(1, "d", 399), 0, "use others");
	for (uint32_t i = 0; i < 150; i++)
		bad += do_getattr(400 + (i * 7) % 150) != 0;
	tap_eq(bad, 0, "each level is of use with 16 fds");
	tap_eq(do_rename(1, "deep", 399, "deep", 0), 0, "move the top");
	tap_eq(do_getattr(549), 0, "the bottom is found");
	for (uint32_t i = 150; i--;) {
		bad += do_unlink(i ? 399 + i : 399, "deep", true) != 0;
		clunk(400 + i);
	}
	tap_eq(bad, 0, "remove all");
	clunk(399);
}

static volatile bool stop;

/* Exchanges a file or directory of the grant with a symlink to the outside, as fast as it goes. */
static void *flip(void *arg)
{
	(void)arg;
	while (!stop) {
		syscall(SYS_renameat2, AT_FDCWD, at("rw/flip"), AT_FDCWD, at("rw/flop"), RENAME_EXCHANGE);
		syscall(SYS_renameat2, AT_FDCWD, at("rw/dflip"), AT_FDCWD, at("rw/dflop"), RENAME_EXCHANGE);
	}
	return NULL;
}

static void test_race(void)
{
	int leaks = 0, reads = 0;
	pthread_t th;

	put("rw/flip", "inside");
	symlink(at("out/secret"), at("rw/flop"));
	mkdir(at("rw/dflip"), 0755);
	put("rw/dflip/secret", "inside");
	symlink(at("out"), at("rw/dflop"));
	if (pthread_create(&th, NULL, flip, NULL))
		return;
	for (int i = 0; i < 4000; i++) {
		if (do_walk(1, "flip", 20) == 0 && do_open(20, O_RDWR) == 0) {
			reads++;
			leaks += strcmp(contents(), "inside") != 0;
		}
		clunk(20);
		if (do_walk(1, "dflip", 21) == 0 && do_walk(21, "secret", 22) == 0 && do_open(22, O_RDONLY) == 0) {
			reads++;
			leaks += strcmp(contents(), "inside") != 0;
		}
		if (do_create(21, "made", 0644, 23) == 0)
			do_unlink(21, "made", false);
		clunk(21);
		clunk(22);
		clunk(23);
	}
	stop = true;
	pthread_join(th, NULL);
	tap_ok(leaks == 0 && reads > 0, "a swapped symlink never leaks (%d reads)", reads);
	tap_ok(access(at("out/made"), F_OK) < 0, "nor is anything made outside");
}

static void test_garbage(void)
{
	uint8_t out[WIRE_MSG_MAX], bad[] = { 0xff, 0xff, 0xff, 0xff };
	bool close_fd;
	int fd;
	struct sbx_err err;
	char *path;

	tap_eq(gofer_handle(g, bad, sizeof(bad), out, &fd, &close_fd), -EPROTO, "garbage ends the connection");
	tap_eq(gofer_handle(g, bad, 0, out, &fd, &close_fd) >= 0, 1, "an empty request is complete");
	tap_eq(grant_open_root("/proc", false, false, &path, &err), -EPERM, "no grant of /proc");
	tap_eq(grant_open_root(at("rw/ldir"), false, false, &path, &err), -ELOOP, "no grant of a symlink");
	tap_eq(grant_open_root("rw", false, false, &path, &err), -EINVAL, "no relative grant");
	tap_eq(grant_open_root("/dev/null", false, false, &path, &err), -EPERM, "no grant of a device");
}

static void test_globs(void)
{
	static const struct { const char *pat, *s; bool match; } t[] = {
		{ "*", "abc", true }, { "a*c", "abc", true }, { "a*c", "abd", false }, { "?b?", "abc", true },
		{ "[a-c]x", "bx", true }, { "[!a-c]x", "bx", false }, { "[", "[", true }, { "a**b", "ab", true },
		{ "HOOKS", "hooks", true }, { "", "", true }, { "*.yml", ".yml", true }, { "", "a", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		tap_eq(protect_glob(t[i].pat, strlen(t[i].pat), t[i].s, strlen(t[i].s)), t[i].match, "glob '%s' '%s'",
		       t[i].pat, t[i].s);
}

/* @n requests from one processor; how often the gofer binds itself, less how often it is let go. */
static int follow_many(struct follow *f, uint32_t cpu, unsigned n)
{
	int sum = 0;

	while (n--)
		sum += follow_decide(f, cpu);
	return sum;
}

static void test_follow(void)
{
	struct follow f;
	int sum = 0;

	follow_start(&f);
	tap_eq(follow_many(&f, 1, 3), 0, "follow: not at once");
	tap_eq(follow_decide(&f, 1), 1, "bound to where requests come from");
	tap_eq(follow_many(&f, 1, 500), 0, "once");
	tap_eq(follow_decide(&f, 2), -1, "let go when one comes from elsewhere");
	tap_eq(follow_many(&f, 2, 3), 1, "after a long turn as soon as before");
	tap_eq(follow_decide(&f, 0), -1, "let go when it is not told");
	tap_eq(follow_many(&f, 0, 5000), 0, "and not bound to nowhere");
	for (int i = 0; i < 100000; i++) {
		int r = follow_decide(&f, 1 + (uint32_t)(i / 6 % 2));

		sum += r > 0;
	}
	tap_ok(sum <= 2, "not bound again and again for short turns");
	tap_eq(follow_many(&f, 1, 4000), 1, "later it is");
	/* What a hostile sentry says is refused by the host, and then left. */
	f.on = true;
	f.bound = false;
	for (unsigned i = 0; i < 5000; i++)
		follow_request(&f, UINT32_MAX);
	tap_ok(!f.on, "a processor that there is not");
}

int main(void)
{
	char cmd[256];
	int cwd = open(".", O_PATH | O_CLOEXEC);

	umask(0);
	make_tree();
	if (reopen_init() < 0)
		return 1;
	start(16);
	test_garbage();
	test_walk();
	test_only();
	test_links();
	test_special();
	test_read_only();
	test_change();
	test_hide();
	test_nested();
	test_protect();
	test_fids();
	test_eviction();
	test_deep();
	test_race();
	test_globs();
	test_follow();
	clunk(1);
	clunk(2);
	gofer_server_destroy(g);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", top);
	if (fchdir(cwd) < 0 || system(cmd))
		return 1;
	return tap_done();
}
