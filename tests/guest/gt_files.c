/* SPDX-License-Identifier: Apache-2.0 */
/* Names and attributes of files. */
#include <dirent.h>
#include <linux/openat2.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <utime.h>

#include "tests/guest/gt.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE  2
#endif

static void make(const char *name, const char *text)
{
	int fd = (int)CHECK_OK(open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644));

	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	CHECK_OK(close(fd));
}

static ino_t ino(const char *name)
{
	struct stat st;

	CHECK_OK(stat(name, &st));
	return st.st_ino;
}

static void bad_args(void)
{
	char *edge = gt_edge_page();
	char longname[300];
	struct stat st;

	CHECK_ERR(open(BAD_PTR, O_RDONLY), EFAULT);
	CHECK_ERR(stat(BAD_PTR, &st), EFAULT);
	CHECK_ERR(syscall(SYS_newfstatat, AT_FDCWD, "/", BAD_PTR, 0), EFAULT);
	CHECK_ERR(syscall(SYS_newfstatat, AT_FDCWD, "/", edge + 4096 - 8, 0), EFAULT);
	CHECK_ERR(syscall(SYS_newfstatat, AT_FDCWD, "/", &st, 0x40000000), EINVAL);
	memset(edge + 4090, 'a', 6);
	CHECK_ERR(open(edge + 4090, O_RDONLY), EFAULT);
	strcpy(edge + 4094, "/");
	CHECK_OK(access(edge + 4094, F_OK));
	CHECK_ERR(open("", O_RDONLY), ENOENT);
	CHECK_ERR(access("/", 8), EINVAL);
	CHECK_ERR(syscall(SYS_getcwd, edge, 1), ERANGE);
	CHECK_ERR(syscall(SYS_getcwd, BAD_PTR, 4096), EFAULT);
	memset(longname, 'n', sizeof(longname));
	longname[256] = 0;
	CHECK_ERR(open(longname, O_CREAT | O_WRONLY, 0600), ENAMETOOLONG);
	longname[255] = 0;
	CHECK_OK(close(open(longname, O_CREAT | O_WRONLY, 0600)));
	CHECK_OK(unlink(longname));
	CHECK_ERR(readlink(".", longname, 1), EINVAL);
	CHECK_ERR(mkdir(BAD_PTR, 0755), EFAULT);
	CHECK_ERR(syscall(SYS_unlinkat, AT_FDCWD, "x", 4), EINVAL);
	CHECK_ERR(syscall(SYS_linkat, AT_FDCWD, "x", AT_FDCWD, "y", 1), EINVAL);
	CHECK_ERR(syscall(SYS_renameat2, AT_FDCWD, "x", AT_FDCWD, "y", 64), EINVAL);
	CHECK_ERR(openat(99, "x", O_RDONLY), EBADF);
}

static void walk(void)
{
	char big[5000];

	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(mkdir("d/e/", 0755));
	make("d/f", "x");
	CHECK_ERR(open("d/f/", O_RDONLY), ENOTDIR);
	CHECK_ERR(open("d/g/", O_RDONLY | O_CREAT, 0644), EISDIR);
	CHECK_ERR(open("d/f/.", O_RDONLY), ENOTDIR);
	CHECK_ERR(open("d/f/..", O_RDONLY), ENOTDIR);
	CHECK_ERR(open("d/none/../f", O_RDONLY), ENOENT);
	CHECK_ERR(mkdir("d/f/x", 0755), ENOTDIR);
	CHECK_ERR(mkdir("d", 0755), EEXIST);
	CHECK_ERR(mkdir("d/.", 0755), EEXIST);
	CHECK_ERR(mkdir("/", 0755), EEXIST);
	CHECK_EQ(ino("d/e/.././/e/"), ino("d/e"));
	CHECK_EQ(ino("/../../.."), ino("/"));
	CHECK_ERR(rmdir("d"), ENOTEMPTY);
	CHECK_ERR(rmdir("d/e/."), EINVAL);
	CHECK_ERR(rmdir("d/e/.."), ENOTEMPTY);
	CHECK_ERR(rmdir("d/f"), ENOTDIR);
	CHECK_ERR(unlink("d/e"), EISDIR);
	CHECK_ERR(unlink("d/f/"), ENOTDIR);
	CHECK_ERR(unlink("d/none"), ENOENT);
	CHECK_OK(rmdir("d/e/"));
	memset(big, '/', sizeof(big));
	big[4095] = 0;
	CHECK_OK(access(big, F_OK));
	big[4095] = '/';
	big[4096] = 0;
	CHECK_ERR(access(big, F_OK), ENAMETOOLONG);
}

static void symlinks(void)
{
	char buf[64], name[16], to[16];
	struct stat st;

	make("f", "text");
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(symlink("f", "l"));
	CHECK_OK(symlink("../f", "d/up"));
	CHECK_OK(symlink("d", "ld"));
	CHECK_OK(symlink("b", "a"));
	CHECK_OK(symlink("a", "b"));
	CHECK_ERR(symlink("", "empty"), ENOENT);
	CHECK_ERR(symlink("x", "l"), EEXIST);
	CHECK_EQ(ino("ld/up"), ino("f"));
	CHECK_EQ(ino("ld/../l"), ino("f"));
	CHECK_ERR(stat("a", &st), ELOOP);
	CHECK_OK(lstat("a", &st));
	CHECK_EQ(st.st_mode & S_IFMT, S_IFLNK);
	CHECK_EQ(st.st_size, 1);
	CHECK_OK(lstat("ld/", &st));
	CHECK_EQ(st.st_mode & S_IFMT, S_IFDIR);
	CHECK_ERR(stat("l/", &st), ENOTDIR);
	CHECK_EQ(readlink("d/up", buf, sizeof(buf)), 4);
	CHECK_EQ(readlink("d/up", buf, 2), 2);
	CHECK_OK(symlink("made", "dangling"));
	CHECK_ERR(open("dangling", O_CREAT | O_EXCL | O_WRONLY, 0644), EEXIST);
	CHECK_ERR(open("dangling", O_CREAT | O_NOFOLLOW | O_WRONLY, 0644), ELOOP);
	CHECK_ERR(mkdir("dangling", 0755), EEXIST);
	CHECK_OK(close(open("dangling", O_CREAT | O_WRONLY, 0644)));
	CHECK_OK(access("made", F_OK));
	CHECK_ERR(open("l", O_RDONLY | O_NOFOLLOW), ELOOP);
	CHECK_ERR(open("ld", O_RDONLY | O_NOFOLLOW | O_DIRECTORY), ENOTDIR);
	CHECK_ERR(rmdir("ld"), ENOTDIR);
	CHECK_ERR(rmdir("ld/"), ENOTDIR);
	for (int i = 0; i < 41; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		snprintf(to, sizeof(to), i ? "c%d" : "f", i - 1);
		CHECK_OK(symlink(to, name));
	}
	CHECK_EQ(ino("c39"), ino("f"));
	CHECK_ERR(stat("c40", &st), ELOOP);
}

static void rename_rules(void)
{
	struct stat st;
	ino_t f;

	make("f", "1");
	make("g", "2");
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(mkdir("d/sub", 0755));
	CHECK_OK(mkdir("e", 0755));
	f = ino("f");
	CHECK_ERR(syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "g", RENAME_NOREPLACE), EEXIST);
	CHECK_ERR(syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "g", RENAME_NOREPLACE | RENAME_EXCHANGE), EINVAL);
	CHECK_ERR(syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "none", RENAME_EXCHANGE), ENOENT);
	CHECK_OK(syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "g", RENAME_EXCHANGE));
	CHECK_EQ(ino("g"), f);
	CHECK_OK(rename("g", "f"));
	CHECK_EQ(ino("f"), f);
	CHECK_ERR(stat("g", &st), ENOENT);
	CHECK_ERR(rename("f", "d"), EISDIR);
	CHECK_ERR(rename("d", "f"), ENOTDIR);
	CHECK_ERR(rename("d", "d/sub/x"), EINVAL);
	CHECK_ERR(rename("d/sub", "d"), ENOTEMPTY);
	CHECK_ERR(rename("e", "d"), ENOTEMPTY);
	CHECK_ERR(rename("none", "x"), ENOENT);
	CHECK_ERR(rename("d/.", "x"), EBUSY);
	CHECK_ERR(rename("f", "x/"), ENOTDIR);
	CHECK_OK(rename("d", "e/"));
	CHECK_OK(access("e/sub", F_OK));
	CHECK_OK(link("f", "h"));
	CHECK_OK(rename("f", "h"));
	CHECK_EQ(ino("f"), ino("h"));
	CHECK_OK(stat("f", &st));
	CHECK_EQ(st.st_nlink, 2);
	CHECK_ERR(link("e", "dirlink"), EPERM);
	CHECK_ERR(link("f", "h"), EEXIST);
}

static void removed_cwd(void)
{
	char buf[256];
	struct stat st;
	int fd;

	CHECK_OK(mkdir("gone", 0755));
	CHECK_OK(chdir("gone"));
	make("f", "still here");
	fd = (int)CHECK_OK(open("f", O_RDONLY));
	CHECK_OK(unlink("f"));
	CHECK_OK(rmdir("../gone"));
	CHECK_ERR(syscall(SYS_getcwd, buf, sizeof(buf)), ENOENT);
	CHECK_ERR(open("x", O_CREAT | O_WRONLY, 0644), ENOENT);
	CHECK_ERR(mkdir("x", 0755), ENOENT);
	CHECK_OK(stat(".", &st));
	CHECK_EQ(st.st_nlink, 0);
	CHECK_OK(stat("..", &st));
	CHECK_EQ(read(fd, buf, sizeof(buf)), 10);
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_nlink, 0);
	CHECK_OK(chdir(".."));
}

static int count_names(const char *dir, int *dots)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	CHECK(d);
	*dots = 0;
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			++*dots;
		else
			n++;
	}
	closedir(d);
	return n;
}

static void directories(void)
{
	char name[32], buf[24];
	int dots, fd;

	CHECK_OK(mkdir("d", 0755));
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "d/name-%d", i);
		make(name, "");
	}
	CHECK_EQ(count_names("d", &dots), 300);
	CHECK_EQ(dots, 2);
	for (int i = 0; i < 300; i += 2) {
		snprintf(name, sizeof(name), "d/name-%d", i);
		CHECK_OK(unlink(name));
	}
	CHECK_EQ(count_names("d", &dots), 150);
	fd = (int)CHECK_OK(open("d", O_RDONLY));
	CHECK_ERR(syscall(SYS_getdents64, fd, buf, 10), EINVAL);
	CHECK_ERR(syscall(SYS_getdents64, fd, BAD_PTR, 1000), EFAULT);
	CHECK(syscall(SYS_getdents64, fd, buf, 24) > 0);
	CHECK_ERR(read(fd, buf, 1), EISDIR);
	CHECK_ERR(write(fd, buf, 1), EBADF);
	CHECK_OK(fchdir(fd));
	CHECK_OK(close(fd));
	fd = (int)CHECK_OK(open("name-1", O_RDONLY));
	CHECK_ERR(syscall(SYS_getdents64, fd, buf, 24), ENOTDIR);
	CHECK_ERR(fchdir(fd), ENOTDIR);
}

static void open_rules(void)
{
	struct open_how how = { .flags = O_RDONLY, .resolve = RESOLVE_BENEATH };
	char path[64];
	struct stat st;
	int fd, d;

	make("f", "12345");
	CHECK_ERR(open(".", O_WRONLY), EISDIR);
	CHECK_ERR(open(".", O_RDONLY | O_CREAT, 0644), EISDIR);
	CHECK_ERR(open("f", O_RDONLY | O_DIRECTORY), ENOTDIR);
	CHECK_ERR(open("f", O_RDONLY | O_CREAT | O_EXCL, 0644), EEXIST);
	fd = (int)CHECK_OK(open("f", O_RDWR | O_TRUNC | O_CLOEXEC));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_size, 0);
	CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | 0100000);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_OK(close(fd));
	fd = (int)CHECK_OK(open("new", O_CREAT | O_RDWR, 0));
	CHECK_EQ(write(fd, "x", 1), 1);
	CHECK_OK(close(fd));
	fd = (int)CHECK_OK(open("f", O_PATH));
	CHECK_ERR(read(fd, path, 1), EBADF);
	CHECK_ERR(fchmod(fd, 0600), EBADF);
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(fcntl(fd, F_GETFL), O_PATH);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK_OK(close(open(path, O_RDWR)));
	CHECK_OK(close(fd));
	fd = (int)CHECK_OK(open(".", O_TMPFILE | O_RDWR, 0600));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_nlink, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK_OK(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	CHECK_EQ(ino("named"), st.st_ino);
	CHECK_ERR(open(".", O_TMPFILE | O_RDONLY, 0600), EINVAL);
	d = (int)CHECK_OK(open(".", O_RDONLY | O_DIRECTORY));
	CHECK_OK(close((int)CHECK_OK(syscall(SYS_openat2, d, "f", &how, sizeof(how)))));
	CHECK_ERR(syscall(SYS_openat2, d, "../x", &how, sizeof(how)), EXDEV);
	CHECK_ERR(syscall(SYS_openat2, d, "/etc", &how, sizeof(how)), EXDEV);
	CHECK_ERR(syscall(SYS_openat2, d, "f", &how, 8), EINVAL);
	how.mode = 0600;
	CHECK_ERR(syscall(SYS_openat2, d, "f", &how, sizeof(how)), EINVAL);
}

static uint32_t mode_of(const char *name)
{
	struct stat st;

	CHECK_OK(stat(name, &st));
	return st.st_mode & 07777;
}

static void modes(void)
{
	struct stat st;
	int fd;

	umask(027);
	CHECK_OK(close(open("f", O_CREAT | O_WRONLY, 0666)));
	CHECK_EQ(mode_of("f"), 0640);
	CHECK_OK(mkdir("d", 07777));
	CHECK_EQ(mode_of("d"), 01750);
	CHECK_EQ(umask(022), 027);
	CHECK_OK(chmod("f", 06755));
	CHECK_EQ(mode_of("f"), 06755);
	CHECK_OK(chown("f", (uid_t)-1, getegid()));
	CHECK_EQ(mode_of("f"), 0755);
	CHECK_OK(chmod("f", 04711));
	fd = (int)CHECK_OK(open("f", O_WRONLY));
	CHECK_EQ(write(fd, "x", 1), 1);
	CHECK_EQ(mode_of("f"), geteuid() ? 0711 : 04711);
	CHECK_OK(fchmod(fd, 0600));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_mode, S_IFREG | 0600);
	CHECK_ERR(chmod("none", 0600), ENOENT);
	CHECK_OK(mkfifo("p", 0644));
	CHECK_OK(stat("p", &st));
	CHECK_EQ(st.st_mode, S_IFIFO | 0644);
	CHECK_OK(mknod("r", S_IFREG | 0600, 0));
	CHECK_ERR(mknod("x", S_IFDIR | 0600, 0), EPERM);
	CHECK_ERR(mknod("x", 0170000, 0), EINVAL);
}

/* What another user may not do. */
static void permissions(void)
{
	if (geteuid())
		_exit(GT_SKIP);
	CHECK_OK(chmod(".", 0755));
	make("f", "secret");
	CHECK_OK(chmod("f", 0600));
	CHECK_OK(mkdir("shut", 0700));
	make("shut/x", "");
	CHECK_OK(mkdir("sticky", 0755));
	CHECK_OK(chmod("sticky", 01777));
	make("sticky/rootfile", "");
	CHECK_OK(mkdir("sg", 0777));
	CHECK_OK(chown("sg", 0, 55));
	CHECK_OK(chmod("sg", 02777));
	CHECK_OK(setgid(1234));
	CHECK_OK(setuid(1234));
	CHECK_ERR(open("f", O_RDONLY), EACCES);
	CHECK_ERR(open("new", O_CREAT | O_WRONLY, 0644), EACCES);
	CHECK_ERR(access("f", R_OK), EACCES);
	CHECK_ERR(access("shut/x", F_OK), EACCES);
	CHECK_ERR(chdir("shut"), EACCES);
	CHECK_ERR(chmod("f", 0666), EPERM);
	CHECK_ERR(chown("f", 1234, 1234), EPERM);
	CHECK_ERR(unlink("f"), EACCES);
	CHECK_ERR(unlink("sticky/rootfile"), EPERM);
	CHECK_ERR(rename("sticky/rootfile", "sticky/x"), EPERM);
	CHECK_ERR(utime("f", NULL), EACCES);
	make("sticky/mine", "");
	CHECK_OK(rename("sticky/mine", "sticky/mine2"));
	CHECK_OK(unlink("sticky/mine2"));
	CHECK_OK(mkdir("sg/d", 0755));
	CHECK_EQ(mode_of("sg/d"), 02755);
	CHECK_ERR(chroot("."), EPERM);
}

static void times(void)
{
	struct timespec ts[2] = { { 1000, 5 }, { 2000, UTIME_OMIT } };
	struct stat st;
	struct statx stx;
	time_t now = time(NULL);

	make("f", "x");
	CHECK_OK(utimensat(AT_FDCWD, "f", ts, 0));
	CHECK_OK(stat("f", &st));
	CHECK_EQ(st.st_atim.tv_sec, 1000);
	CHECK_EQ(st.st_atim.tv_nsec, 5);
	CHECK(st.st_mtim.tv_sec >= now - 2);
	ts[1].tv_nsec = 1000000000;
	CHECK_ERR(utimensat(AT_FDCWD, "f", ts, 0), EINVAL);
	CHECK_ERR(syscall(SYS_utimensat, AT_FDCWD, "f", BAD_PTR, 0), EFAULT);
	CHECK_OK(symlink("f", "l"));
	ts[1].tv_nsec = 7;
	CHECK_OK(utimensat(AT_FDCWD, "l", ts, AT_SYMLINK_NOFOLLOW));
	CHECK_OK(lstat("l", &st));
	CHECK_EQ(st.st_mtim.tv_sec, 2000);
	CHECK_OK(utimensat(AT_FDCWD, "f", NULL, 0));
	CHECK_OK(stat("f", &st));
	CHECK(st.st_atim.tv_sec >= now - 2);
	CHECK_OK(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS, &stx));
	CHECK_EQ(stx.stx_ino, st.st_ino);
	CHECK_EQ(stx.stx_size, 1);
	CHECK((stx.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS);
	CHECK_EQ(stx.stx_dev_minor | 0u, st.st_dev & 0xff);
	CHECK_ERR(statx(AT_FDCWD, "f", AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC, 0, &stx), EINVAL);
}

static void xattrs(void)
{
	char buf[64];

	make("f", "");
	if (setxattr("f", "user.a", "value", 5, 0) && errno == EOPNOTSUPP)
		_exit(GT_SKIP);
	CHECK_EQ(getxattr("f", "user.a", NULL, 0), 5);
	CHECK_EQ(getxattr("f", "user.a", buf, sizeof(buf)), 5);
	CHECK_ERR(getxattr("f", "user.a", buf, 2), ERANGE);
	CHECK_ERR(getxattr("f", "user.none", buf, sizeof(buf)), ENODATA);
	CHECK_ERR(setxattr("f", "user.a", "w", 1, XATTR_CREATE), EEXIST);
	CHECK_ERR(setxattr("f", "user.b", "w", 1, XATTR_REPLACE), ENODATA);
	CHECK_ERR(setxattr("f", "nonsense", "w", 1, 0), EOPNOTSUPP);
	CHECK_ERR(setxattr("f", "", "w", 1, 0), ERANGE);
	CHECK_ERR(setxattr("f", "user.a", "w", 1, 8), EINVAL);
	CHECK_EQ(listxattr("f", buf, sizeof(buf)), 7);
	CHECK_OK(removexattr("f", "user.a"));
	CHECK_ERR(removexattr("f", "user.a"), ENODATA);
	CHECK_OK(symlink("f", "l"));
	CHECK_ERR(lsetxattr("l", "user.a", "w", 1, 0), EPERM);
}

static void statfs_answers(void)
{
	struct statfs a, b;
	int fd = (int)CHECK_OK(open(".", O_RDONLY));

	CHECK_OK(statfs(".", &a));
	CHECK_OK(fstatfs(fd, &b));
	CHECK_EQ(a.f_type, b.f_type);
	CHECK(a.f_bsize > 0 && a.f_namelen == 255);
	CHECK_ERR(statfs("none", &a), ENOENT);
	CHECK_ERR(syscall(SYS_statfs, ".", BAD_PTR), EFAULT);
}

static const struct gt_case cases[] = {
	{ "bad_args", bad_args },
	{ "walk", walk },
	{ "symlinks", symlinks },
	{ "rename_rules", rename_rules },
	{ "removed_cwd", removed_cwd },
	{ "directories", directories },
	{ "open_rules", open_rules },
	{ "modes", modes },
	{ "permissions", permissions },
	{ "times", times },
	{ "xattrs", xattrs },
	{ "statfs_answers", statfs_answers },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return gt_main(argc, argv, cases);
}
