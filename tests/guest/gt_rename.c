/* SPDX-License-Identifier: Apache-2.0 */
/* rename(2), link(2), unlink(2), rmdir(2), symlink(2): what may replace what, and what lives on. */
#include "tests/guest/gt_dirs.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE  2
#endif

static int rename2(const char *from, const char *to, unsigned int flags)
{
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

enum { FILE_, DIR_, FULL_, LINK_, NONE_ };

static void make_kind(const char *name, int kind)
{
	char sub[64];

	switch (kind) {
	case FILE_:
		gt_put(name, name);
		break;
	case FULL_:
		CHECK_OK(mkdir(name, 0755));
		snprintf(sub, sizeof(sub), "%s/x", name);
		gt_put(sub, "");
		break;
	case DIR_:
		CHECK_OK(mkdir(name, 0755));
		break;
	case LINK_:
		CHECK_OK(symlink("dangling", name));
		break;
	}
}

static void drop(const char *name)
{
	char sub[64];

	snprintf(sub, sizeof(sub), "%s/x", name);
	unlink(sub);
	if (unlink(name) && rmdir(name))
		CHECK_EQ(errno, ENOENT);
}

static void matrix(void)
{
	static const int want[5][5] = { /* [from][to] */
		[FILE_] = { 0, EISDIR, EISDIR, 0, 0 },
		[DIR_] = { ENOTDIR, 0, ENOTEMPTY, ENOTDIR, 0 },
		[FULL_] = { ENOTDIR, 0, ENOTEMPTY, ENOTDIR, 0 },
		[LINK_] = { 0, EISDIR, EISDIR, 0, 0 },
		[NONE_] = { ENOENT, ENOENT, ENOENT, ENOENT, ENOENT },
	};
	struct stat st;

	for (int flags = 0; flags < 4; flags++) {
		for (int i = 0; i < 25; i++) {
			int from = i / 5, to = i % 5, got, w = want[from][to];
			ino_t a = 0, b = 0;

			if (flags == 3)
				w = EINVAL;
			else if (flags == RENAME_NOREPLACE && from != NONE_)
				w = to == NONE_ ? 0 : EEXIST;
			else if (flags == RENAME_EXCHANGE)
				w = from == NONE_ || to == NONE_ ? ENOENT : 0;
			make_kind("from", from);
			make_kind("to", to);
			if (from != NONE_)
				a = gt_stat("from").st_ino;
			if (to != NONE_)
				b = gt_stat("to").st_ino;
			got = rename2("from", "to", (unsigned int)flags) ? errno : 0;
			if (got != w)
				gt_fail(__FILE__, __LINE__, "flags %d from %d to %d: %d, not %d", flags, from, to, got,
				        w);
			if (got == 0) {
				CHECK_EQ(gt_stat("to").st_ino, a);
				if (flags == RENAME_EXCHANGE)
					CHECK_EQ(gt_stat("from").st_ino, b);
				else
					CHECK_ERR(lstat("from", &st), ENOENT);
			}
			drop("from");
			drop("to");
		}
	}
}

static void hostile(void)
{
	gt_put("f", "");
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(mkdir("d/s", 0755));
	CHECK_ERR(rename(BAD_PTR, "x"), EFAULT);
	CHECK_ERR(rename("f", BAD_PTR), EFAULT);
	CHECK_ERR(rename("", "x"), ENOENT);
	CHECK_ERR(rename("f", ""), ENOENT);
	CHECK_ERR(rename2("f", "x", 0x80), EINVAL);
	CHECK_ERR(syscall(SYS_renameat2, -1, "f", AT_FDCWD, "x", 0), EBADF);
	CHECK_ERR(rename("d", "d/s/t"), EINVAL);
	CHECK_ERR(rename("d", "d/t"), EINVAL);
	CHECK_ERR(rename2("d", "d/s", RENAME_EXCHANGE), EINVAL);
	CHECK_ERR(rename2("d/s", "d", RENAME_EXCHANGE), EINVAL);
	CHECK_ERR(rename("d/s", "d"), ENOTEMPTY);
	CHECK_ERR(rename(".", "x"), EBUSY);
	CHECK_ERR(rename("d/..", "x"), EBUSY);
	CHECK_ERR(rename("f", "."), EBUSY);
	CHECK_ERR(rename2("f", ".", RENAME_NOREPLACE), EEXIST);
	CHECK_ERR(rename("f", "d/"), ENOTDIR);
	CHECK_ERR(rename("f/", "x"), ENOTDIR);
	CHECK_ERR(rename("f", "none/x"), ENOENT);
	CHECK_ERR(rename("f", "f/x"), ENOTDIR);
	CHECK_ERR(rename("f", "/proc/x"), EXDEV);
	CHECK_OK(rename("f", "f"));
	CHECK_OK(rename("d", "d"));
	CHECK_ERR(unlink(BAD_PTR), EFAULT);
	CHECK_ERR(unlink(""), ENOENT);
	CHECK_ERR(unlink("d"), EISDIR);
	CHECK_ERR(unlink("."), EISDIR);
	CHECK_ERR(unlink("d/.."), EISDIR);
	CHECK_ERR(rmdir(BAD_PTR), EFAULT);
	CHECK_ERR(rmdir("f"), ENOTDIR);
	CHECK_ERR(rmdir("."), EINVAL);
	CHECK_ERR(rmdir("d/.."), ENOTEMPTY);
	CHECK_ERR(rmdir("d"), ENOTEMPTY);
	CHECK_ERR(rmdir("/"), EBUSY);
	CHECK_ERR(link("none", "x"), ENOENT);
	CHECK_ERR(link("d", "x"), EPERM);
	CHECK_ERR(link("f", BAD_PTR), EFAULT);
	CHECK_ERR(link("f", "d"), EEXIST);
	CHECK_ERR(symlink(BAD_PTR, "x"), EFAULT);
	CHECK_ERR(symlink("x", "f"), EEXIST);
	CHECK_ERR(symlink("x", "none/y"), ENOENT);
}

static void open_files_live(void)
{
	char buf[32];
	struct stat st;
	int a, b, w;

	gt_put("a", "file a");
	gt_put("b", "file b");
	a = (int)CHECK_OK(open("a", O_RDWR));
	b = (int)CHECK_OK(open("b", O_RDONLY));
	CHECK_OK(rename("a", "b"));
	CHECK_EQ(read(b, buf, sizeof(buf)), 6);
	CHECK(!memcmp(buf, "file b", 6));
	CHECK_OK(fstat(b, &st));
	CHECK_EQ(st.st_nlink, 0);
	CHECK_EQ(pwrite(a, "F", 1, 0), 1);
	CHECK(gt_is("b", "File a"));
	CHECK_OK(unlink("b"));
	CHECK_EQ(pwrite(a, "still", 5, 0), 5);
	CHECK_EQ(pread(a, buf, sizeof(buf), 0), 6);
	CHECK(!memcmp(buf, "stilla", 6));
	CHECK_OK(ftruncate(a, 10000));
	CHECK_OK(fchmod(a, 0611));
	CHECK_OK(fstat(a, &st));
	CHECK_EQ(st.st_size, 10000);
	CHECK_EQ(st.st_nlink, 0);
	CHECK_EQ(st.st_mode, S_IFREG | 0611);
	/* A new file of the same name is another file. */
	gt_put("b", "new");
	w = (int)CHECK_OK(open("b", O_RDONLY));
	CHECK_EQ(read(w, buf, sizeof(buf)), 3);
}

static void directories_move(void)
{
	char cwd[300], before[300];
	struct stat st, up;

	CHECK_OK(mkdir("a", 0755));
	CHECK_OK(mkdir("b", 0755));
	CHECK_OK(mkdir("a/s", 0755));
	gt_put("a/s/f", "x");
	CHECK_EQ(gt_stat("a").st_nlink > 1 ? 3 : 1, gt_stat("a").st_nlink);
	CHECK(getcwd(before, sizeof(before)));
	CHECK_OK(chdir("a/s"));
	CHECK_OK(rename("../../a/s", "../../b/t"));
	CHECK(getcwd(cwd, sizeof(cwd)));
	strcat(before, "/b/t");
	CHECK_EQ(strcmp(cwd, before), 0);
	CHECK_OK(stat("..", &st));
	CHECK_OK(stat("../../b", &up));
	CHECK_EQ(st.st_ino, up.st_ino);
	CHECK_OK(access("f", F_OK));
	CHECK_OK(chdir("../.."));
	CHECK_ERR(access("a/s", F_OK), ENOENT);
	CHECK_OK(rmdir("a"));
	CHECK_OK(rename("b", "a"));
	CHECK_OK(access("a/t/f", F_OK));
	/* A directory over an empty one. */
	CHECK_OK(mkdir("b", 0755));
	CHECK_OK(rename("a/t", "b"));
	CHECK(gt_is("b/f", "x"));
	CHECK_OK(rename2("a", "b", RENAME_EXCHANGE));
	CHECK(gt_is("a/f", "x"));
	CHECK_OK(rmdir("b"));
}

static void hard_links(void)
{
	int fd;

	gt_put("a", "1");
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(link("a", "d/b"));
	CHECK_EQ(gt_stat("a").st_nlink, 2);
	CHECK_EQ(gt_stat("a").st_ino, gt_stat("d/b").st_ino);
	fd = (int)CHECK_OK(open("d/b", O_WRONLY | O_APPEND));
	CHECK_EQ(write(fd, "2", 1), 1);
	CHECK(gt_is("a", "12"));
	CHECK_OK(chmod("a", 0600));
	CHECK_EQ(gt_stat("d/b").st_mode, S_IFREG | 0600);
	CHECK_OK(rename("a", "d/b")); /* two names of one file: nothing happens */
	CHECK_EQ(gt_stat("a").st_nlink, 2);
	CHECK_ERR(rename2("a", "d/b", RENAME_NOREPLACE), EEXIST);
	CHECK_OK(unlink("a"));
	CHECK_EQ(gt_stat("d/b").st_nlink, 1);
	CHECK(gt_is("d/b", "12"));
	CHECK_OK(symlink("d/b", "l"));
	CHECK_OK(link("l", "l2")); /* of the symlink itself */
	CHECK(S_ISLNK(gt_stat("l2").st_mode));
	CHECK_EQ(gt_stat("l2").st_nlink, 2);
	CHECK_OK(linkat(AT_FDCWD, "l", AT_FDCWD, "c", AT_SYMLINK_FOLLOW));
	CHECK_EQ(gt_stat("c").st_ino, gt_stat("d/b").st_ino);
	CHECK_EQ(gt_stat("c").st_nlink, 2);
	CHECK_OK(mkfifo("p", 0600));
	CHECK_OK(link("p", "p2"));
	CHECK_EQ(gt_stat("p2").st_nlink, 2);
	CHECK_OK(linkat(fd, "", AT_FDCWD, "e", AT_EMPTY_PATH)); /* root has CAP_DAC_READ_SEARCH */
	CHECK_EQ(gt_stat("e").st_nlink, 3);
}

static void deleted_cwd(void)
{
	char buf[300];
	struct stat st;
	int fd;

	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(chdir("d"));
	fd = (int)CHECK_OK(open(".", O_RDONLY | O_DIRECTORY));
	CHECK_OK(rmdir("../d"));
	CHECK_ERR(syscall(SYS_getcwd, buf, sizeof(buf)), ENOENT);
	CHECK_ERR(mkdir("x", 0755), ENOENT);
	CHECK_ERR(symlink("a", "x"), ENOENT);
	CHECK_ERR(mknod("x", S_IFREG | 0600, 0), ENOENT);
	CHECK_ERR(rename("../d", "x"), ENOENT);
	CHECK_ERR(open("x", O_RDWR | O_CREAT, 0600), ENOENT);
	CHECK_ERR(open("x", O_RDONLY), ENOENT);
	CHECK_OK(stat(".", &st));
	CHECK_OK(close((int)CHECK_OK(open(".", O_RDONLY))));
	CHECK_ERR(syscall(SYS_getdents64, fd, buf, sizeof(buf)), ENOENT);
	CHECK(readlink("/proc/self/cwd", buf, sizeof(buf)) > 10);
	CHECK(memmem(buf, sizeof(buf), "/d (deleted)", 12));
	/* A new one of the same name is not it. */
	CHECK_OK(mkdir("../d", 0755));
	CHECK(gt_stat("../d").st_ino != st.st_ino || gt_stat("../d").st_nlink != st.st_nlink);
	CHECK_ERR(open("x", O_RDWR | O_CREAT, 0600), ENOENT);
	CHECK_OK(chdir("../d"));
	gt_put("x", "");
}

static void symlinks(void)
{
	char buf[5000], cwd[300];
	struct stat st;

	CHECK(getcwd(cwd, sizeof(cwd)));
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(mkdir("d/e", 0755));
	gt_put("f", "top");
	gt_put("d/f", "in d");
	CHECK_OK(symlink("d/e", "le"));
	CHECK(gt_is("le/../f", "in d")); /* .. is of the target */
	CHECK_OK(symlink("../../f", "d/e/up"));
	CHECK(gt_is("le/up", "top"));
	snprintf(buf, sizeof(buf), "%s/d/f", cwd);
	CHECK_OK(symlink(buf, "abs"));
	CHECK(gt_is("abs", "in d"));
	CHECK_EQ(gt_stat("abs").st_size, strlen(buf));
	CHECK_EQ(gt_stat("abs").st_mode, S_IFLNK | 0777);
	CHECK_OK(symlink("self", "self"));
	CHECK_ERR(stat("self", &st), ELOOP);
	CHECK_ERR(open("self", O_CREAT | O_WRONLY, 0600), ELOOP);
	CHECK_ERR(stat("self/x", &st), ELOOP);
	CHECK_OK(unlink("self"));
	CHECK_OK(symlink("nowhere", "dangling"));
	CHECK_ERR(stat("dangling", &st), ENOENT);
	CHECK_ERR(mkdir("dangling", 0755), EEXIST);
	CHECK_ERR(mkdir("dangling/x", 0755), ENOENT);
	CHECK_ERR(mknod("dangling", S_IFREG | 0600, 0), EEXIST);
	CHECK_ERR(link("f", "dangling"), EEXIST);
	CHECK_ERR(truncate("dangling", 0), ENOENT);
	CHECK_ERR(chmod("dangling", 0600), ENOENT);
	CHECK_ERR(chdir("dangling"), ENOENT);
	CHECK_OK(lchown("dangling", getuid(), getgid()));
	gt_put("dangling", "made");
	CHECK(gt_is("nowhere", "made"));
	CHECK_OK(rename("dangling", "moved"));
	CHECK(gt_is("moved", "made"));
	CHECK_OK(unlink("moved"));
	CHECK(gt_is("nowhere", "made"));
	CHECK_ERR(rmdir("le"), ENOTDIR);
	CHECK_ERR(unlink("le/"), ENOTDIR);
	CHECK_ERR(readlink("f", buf, 10), EINVAL);
	CHECK_ERR(syscall(SYS_readlink, "le", buf, 0), EINVAL);
	CHECK_ERR(syscall(SYS_readlink, "le", buf, -1), EINVAL);
	CHECK_ERR(syscall(SYS_readlink, "le", BAD_PTR, 10), EFAULT);
	memset(buf, '#', 8);
	CHECK_EQ(readlink("le", buf, 8), 3);
	CHECK_EQ(buf[3], '#');
	memset(buf, 'p', sizeof(buf));
	for (int i = 200; i < 1000; i += 201)
		buf[i] = '/';
	buf[1000] = 0;
	CHECK_OK(symlink(buf, "long"));
	CHECK_EQ(readlink("long", buf + 2000, 3000), 1000);
	CHECK(!memcmp(buf, buf + 2000, 1000));
	CHECK_EQ(gt_stat("long").st_size, 1000);
}

static const struct gt_case cases[] = {
	{ "hostile", hostile },
	{ "matrix", matrix },
	{ "open_files_live", open_files_live },
	{ "directories_move", directories_move },
	{ "hard_links", hard_links },
	{ "deleted_cwd", deleted_cwd },
	{ "symlinks", symlinks },
	{ NULL, NULL },
};

GT_MAIN_DIRS(cases)
