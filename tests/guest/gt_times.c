/* SPDX-License-Identifier: Apache-2.0 */
/* stat(2), statx(2), which call changes which time, extended attributes, statfs(2). */
#include "tests/guest/gt_dirs.h"

#include <linux/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define A 1
#define M 2
#define C 4

static const struct timespec long_ago = { 1000000, 123456789 };

static int newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static struct stat before;

static void age(const char *name)
{
	struct timespec ts[2] = { long_ago, long_ago }, nap = { 0, 12000000 };

	CHECK_OK(utimensat(AT_FDCWD, name, ts, AT_SYMLINK_NOFOLLOW));
	before = gt_stat(name);
	CHECK_EQ(before.st_mtim.tv_nsec, long_ago.tv_nsec);
	nanosleep(&nap, NULL); /* longer than the tick of the native clock of files */
}

static int changed(const char *name)
{
	struct stat st = gt_stat(name);

	return (newer(&st.st_atim, &before.st_atim) ? A : 0) | (newer(&st.st_mtim, &before.st_mtim) ? M : 0) |
	       (newer(&st.st_ctim, &before.st_ctim) ? C : 0);
}

/* What must change, and must not: the access time is left alone (relatime, noatime). */
#define CHANGES(name, call, want) \
	do { \
		age(name); \
		CHECK_OK(call); \
		CHECK_EQ(changed(name) & ~A, want); \
	} while (0)

static void of_files(void)
{
	char c;
	int fd;

	gt_put("f", "text");
	fd = (int)CHECK_OK(open("f", O_RDWR));
	CHANGES("f", read(fd, &c, 1), 0);
	CHANGES("f", write(fd, "x", 1), M | C);
	CHANGES("f", write(fd, "x", 0), 0);
	CHANGES("f", ftruncate(fd, 2), M | C);
	CHANGES("f", ftruncate(fd, 2), M | C);
	CHANGES("f", truncate("f", 2), M | C); /* since the size may be the same: POSIX says for truncate too */
	CHANGES("f", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1), M | C);
	CHANGES("f", chmod("f", 0640), C);
	CHANGES("f", chmod("f", 0640), C);
	if (strcmp(gt_kind, "grant")) /* owners of a grant's files are the host's: chown to what is so does nothing */
		CHANGES("f", chown("f", geteuid(), getegid()), C);
	CHANGES("f", link("f", "g"), C);
	CHANGES("f", unlink("g"), C);
}

static void of_renamed(void)
{
	gt_put("f", "text");
	age("f");
	CHECK_OK(rename("f", "h"));
	CHECK_EQ(changed("h") & ~A, C);
	gt_put("f", "");
	age("f");
	CHECK_OK(close((int)CHECK_OK(open("f", O_WRONLY | O_TRUNC))));
	CHECK_EQ(changed("f") & ~A, M | C);
	age("f");
	CHECK_OK(close((int)CHECK_OK(open("f", O_WRONLY | O_CREAT, 0600))));
	CHECK_EQ(changed("f") & ~A, 0);
	age("f");
	CHECK_OK(access("f", R_OK));
	CHECK_EQ(changed("f"), 0);
}

static void of_directories(void)
{
	CHECK_OK(mkdir("d", 0755));
	CHANGES("d", mknod("d/f", S_IFREG | 0644, 0), M | C);
	CHANGES("d", chmod("d/f", 0600), 0);
	CHANGES("d", truncate("d/f", 10), 0);
	CHANGES("d", link("d/f", "d/g"), M | C);
	CHANGES("d", rename("d/f", "d/h"), M | C);
	CHANGES("d", rename("d/g", "g"), M | C);
	CHANGES("d", rename("g", "d/g"), M | C);
	CHANGES("d", unlink("d/g"), M | C);
	CHANGES("d", mkdir("d/e", 0755), M | C);
	CHANGES("d", mknod("d/e/x", S_IFREG | 0644, 0), 0);
	CHANGES("d", unlink("d/e/x"), 0);
	CHANGES("d", rmdir("d/e"), M | C);
	CHANGES("d", symlink("x", "d/l"), M | C);
	CHANGES("d", access("d/l", F_OK) + 1, 0);
}

static void setting(void)
{
	struct timespec ts[2] = { { 5, 6 }, { 7, 8 } }, now;
	struct stat st;
	int fd;

	gt_put("f", "");
	fd = (int)CHECK_OK(open("f", O_RDONLY));
	CHECK_OK(futimens(fd, ts));
	st = gt_stat("f");
	CHECK(st.st_atim.tv_sec == 5 && st.st_atim.tv_nsec == 6 && st.st_mtim.tv_sec == 7 && st.st_mtim.tv_nsec == 8);
	ts[0].tv_nsec = UTIME_OMIT;
	ts[1].tv_nsec = UTIME_NOW;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	CHECK_OK(utimensat(AT_FDCWD, "f", ts, 0));
	st = gt_stat("f");
	CHECK(st.st_atim.tv_sec == 5 && st.st_atim.tv_nsec == 6);
	CHECK(st.st_mtim.tv_sec >= now.tv_sec - 1);
	ts[0].tv_nsec = UTIME_NOW;
	ts[1].tv_nsec = UTIME_OMIT;
	CHECK_OK(utimensat(AT_FDCWD, "f", ts, 0));
	CHECK(gt_stat("f").st_atim.tv_sec >= now.tv_sec - 1);
	ts[0].tv_nsec = UTIME_OMIT;
	CHECK_OK(utimensat(AT_FDCWD, "f", ts, 0));
	CHECK_OK(utimensat(AT_FDCWD, "none", ts, 0)); /* both omitted: nothing is looked at */
	ts[0].tv_nsec = -1;
	CHECK_ERR(utimensat(AT_FDCWD, "f", ts, 0), EINVAL);
	ts[0].tv_nsec = 1000000000;
	CHECK_ERR(utimensat(AT_FDCWD, "f", ts, 0), EINVAL);
	ts[0] = ts[1] = (struct timespec){ -5, 3 };
	CHECK_OK(utimensat(AT_FDCWD, "f", ts, 0));
	CHECK_EQ(gt_stat("f").st_mtim.tv_sec, -5);
	CHECK_ERR(utimensat(AT_FDCWD, "none", NULL, 0), ENOENT);
	CHECK_ERR(utimensat(AT_FDCWD, "f", NULL, 0x4000), EINVAL);
	CHECK_ERR(syscall(SYS_utimensat, AT_FDCWD, NULL, NULL, 0), EFAULT);
	CHECK_ERR(syscall(SYS_utimensat, fd, NULL, BAD_PTR, 0), EFAULT);
	CHECK_ERR(syscall(SYS_utimensat, fd, NULL, NULL, AT_SYMLINK_NOFOLLOW), EINVAL);
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(utimensat(AT_FDCWD, "d", ts, 0));
	CHECK_EQ(gt_stat("d").st_mtim.tv_sec, -5);
}

static void stats(void)
{
	struct statx sx;
	struct stat st;
	int fd;

	gt_put("f", "12345");
	fd = (int)CHECK_OK(open("f", O_RDONLY));
	CHECK_ERR(statx(AT_FDCWD, "f", 0, STATX_ALL, BAD_PTR), EFAULT);
	CHECK_ERR(statx(AT_FDCWD, "f", 0, STATX__RESERVED, &sx), EINVAL);
	CHECK_ERR(statx(AT_FDCWD, "f", 0x40000, STATX_ALL, &sx), EINVAL);
	CHECK_ERR(statx(AT_FDCWD, "", 0, STATX_ALL, &sx), ENOENT);
	CHECK_ERR(statx(-1, "", AT_EMPTY_PATH, STATX_ALL, &sx), EBADF);
	CHECK_ERR(fstat(-1, &st), EBADF);
	CHECK_ERR(syscall(SYS_fstat, fd, BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_lstat, "f", BAD_PTR), EFAULT);
	CHECK_OK(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &sx));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(sx.stx_mask & STATX_BASIC_STATS, STATX_BASIC_STATS);
	CHECK_EQ(sx.stx_ino, st.st_ino);
	CHECK_EQ(sx.stx_mode, st.st_mode);
	CHECK_EQ(sx.stx_size, 5);
	CHECK_EQ(sx.stx_nlink, 1);
	CHECK_EQ(sx.stx_uid, geteuid());
	CHECK_EQ(sx.stx_blocks, st.st_blocks);
	CHECK_EQ(sx.stx_mtime.tv_sec, st.st_mtim.tv_sec);
	CHECK_EQ(sx.stx_mtime.tv_nsec, st.st_mtim.tv_nsec);
	CHECK_EQ(makedev(sx.stx_dev_major, sx.stx_dev_minor), st.st_dev);
	CHECK_EQ(st.st_blksize, 4096);
	CHECK_OK(fstatat(AT_FDCWD, "", &st, AT_EMPTY_PATH));
	CHECK(S_ISDIR(st.st_mode));
	CHECK_EQ(st.st_dev, gt_stat("f").st_dev);
	CHECK_OK(symlink("f", "l"));
	CHECK_OK(fstatat(AT_FDCWD, "l", &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT));
	CHECK(S_ISLNK(st.st_mode));
	CHECK_EQ(st.st_size, 1);
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(mkdir("d/e", 0755));
	gt_put("d/f", "");
	CHECK(gt_stat("d").st_nlink == 3 || gt_stat("d").st_nlink == 1);
	CHECK_OK(rmdir("d/e"));
	CHECK(gt_stat("d").st_nlink == 2 || gt_stat("d").st_nlink == 1);
}

/* Inode numbers name files: distinct ones for distinct files, the same ones for as long as a file lives. */
static void inodes(void)
{
	ino_t ino[50];
	char name[16];

	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		gt_put(name, "");
		ino[i] = gt_stat(name).st_ino;
		for (int j = 0; j < i; j++)
			CHECK(ino[j] != ino[i]);
	}
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		gt_put(name, "changed");
		CHECK_OK(chmod(name, 0700));
		CHECK_EQ(gt_stat(name).st_ino, ino[i]);
	}
	CHECK_OK(rename("f1", "f2"));
	CHECK_EQ(gt_stat("f2").st_ino, ino[1]);
}

static void xattrs(void)
{
	char buf[300], big[70000] = { 0 }, name[300];
	int fd;

	gt_put("f", "x");
	fd = (int)CHECK_OK(open("f", O_RDONLY));
	if (setxattr("f", "user.one", "1", 1, 0) && errno == EOPNOTSUPP)
		_exit(GT_SKIP);
	CHECK_ERR(setxattr("f", BAD_PTR, "1", 1, 0), EFAULT);
	CHECK_ERR(setxattr("f", "user.x", BAD_PTR, 1, 0), EFAULT);
	CHECK_ERR(setxattr("f", "", "1", 1, 0), ERANGE);
	CHECK_ERR(setxattr("f", "user.x", "1", 1, 7), EINVAL);
	CHECK_ERR(setxattr("f", "user.x", big, 65537, 0), E2BIG);
	CHECK_ERR(setxattr("f", "user.", "1", 1, 0), EINVAL);
	CHECK_ERR(setxattr("f", "bogus.x", "1", 1, 0), EOPNOTSUPP);
	memset(name, 'n', sizeof(name));
	memcpy(name, "user.", 5);
	name[256] = 0;
	CHECK_ERR(setxattr("f", name, "1", 1, 0), ERANGE);
	name[255] = 0;
	CHECK_OK(setxattr("f", name, "1", 1, 0));
	CHECK_OK(removexattr("f", name));
	CHECK_ERR(setxattr("f", "user.one", "2", 1, XATTR_CREATE), EEXIST);
	CHECK_OK(setxattr("f", "user.one", "22", 2, XATTR_REPLACE));
	CHECK_ERR(setxattr("f", "user.two", "2", 1, XATTR_REPLACE), ENODATA);
	CHECK_OK(fsetxattr(fd, "user.two", NULL, 0, 0));
	CHECK_EQ(getxattr("f", "user.two", buf, sizeof(buf)), 0);
	CHECK_EQ(getxattr("f", "user.one", NULL, 0), 2);
	CHECK_ERR(getxattr("f", "user.one", buf, 1), ERANGE);
	CHECK_EQ(fgetxattr(fd, "user.one", buf, sizeof(buf)), 2);
	CHECK(!memcmp(buf, "22", 2));
	CHECK_EQ(listxattr("f", NULL, 0), 18);
	CHECK_ERR(listxattr("f", buf, 5), ERANGE);
	CHECK_EQ(listxattr("f", buf, sizeof(buf)), 18);
	CHECK_ERR(removexattr("f", "user.none"), ENODATA);
	CHECK_OK(symlink("f", "l"));
	CHECK_EQ(getxattr("l", "user.one", buf, sizeof(buf)), 2);
	CHECK_ERR(lgetxattr("l", "user.one", buf, sizeof(buf)), ENODATA);
	CHECK_ERR(lsetxattr("l", "user.one", "x", 1, 0), EPERM);
	CHECK_OK(rename("f", "g"));
	CHECK_EQ(getxattr("g", "user.one", buf, sizeof(buf)), 2);
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(setxattr("d", "user.dir", "v", 1, 0));
	CHECK_EQ(getxattr("d", "user.dir", buf, sizeof(buf)), 1);
	CHECK_OK(mkfifo("p", 0600));
	CHECK_ERR(setxattr("p", "user.x", "v", 1, 0), EPERM);
}

static void statfs_fields(void)
{
	struct statfs a, b;

	gt_put("f", "");
	CHECK_ERR(syscall(SYS_statfs, "f", BAD_PTR), EFAULT);
	CHECK_ERR(statfs("none", &a), ENOENT);
	CHECK_ERR(fstatfs(-1, &a), EBADF);
	CHECK_OK(statfs("f", &a));
	CHECK_OK(fstatfs((int)CHECK_OK(open("f", O_PATH)), &b));
	CHECK_EQ(a.f_type, b.f_type);
	CHECK(a.f_bsize >= 512);
	CHECK(a.f_blocks > 0 && a.f_bfree <= a.f_blocks && a.f_bavail <= a.f_bfree);
	CHECK(a.f_namelen >= 255);
	CHECK_OK(statfs("/proc", &a));
	CHECK_EQ(a.f_type, 0x9fa0);
	CHECK_OK(statfs("/dev/null", &a));
	CHECK_EQ(a.f_type, 0x01021994);
}

static const struct gt_case cases[] = {
	{ "of_files", of_files },
	{ "of_renamed", of_renamed },
	{ "of_directories", of_directories },
	{ "setting", setting },
	{ "stats", stats },
	{ "inodes", inodes },
	{ "xattrs", xattrs },
	{ "statfs_fields", statfs_fields },
	{ NULL, NULL },
};

GT_MAIN_DIRS(cases)
