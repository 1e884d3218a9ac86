/* SPDX-License-Identifier: Apache-2.0 */
/* What a process without root's capabilities may do with files. */
#include "tests/guest/gt_dirs.h"

#include <grp.h>
#include <sys/fsuid.h>

#define UID 65534u
#define GID 65533u

static void need_root(void)
{
	/* The owners of a grant's files are the host's: they cannot be given away. */
	if (geteuid() || !strcmp(gt_kind, "grant"))
		_exit(GT_SKIP);
	CHECK_OK(chmod(".", 0755));
}

static void become(uid_t uid, gid_t gid)
{
	CHECK_OK(setgroups(0, NULL));
	CHECK_OK(setresgid(gid, gid, gid));
	CHECK_OK(setresuid(uid, uid, uid));
}

static void put_owned(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
	gt_put(name, "text");
	CHECK_OK(chown(name, uid, gid));
	CHECK_OK(chmod(name, mode));
}

static void mode_bits(void)
{
	static const struct {
		uid_t uid;
		gid_t gid;
		mode_t mode;
		int r, w;
	} t[] = {
		{ UID, GID, 0600, 0, 0 },	{ UID, GID, 0400, 0, EACCES },	   { UID, GID, 0077, EACCES, EACCES },
		{ UID, 0, 0200, EACCES, 0 },	{ 0, GID, 0060, 0, 0 },		   { 0, GID, 0040, 0, EACCES },
		{ 0, GID, 0707, EACCES, EACCES }, { 0, 0, 0004, 0, EACCES },	   { 0, 0, 0660, EACCES, EACCES },
		{ 0, 0, 0666, 0, 0 },
	};
	char name[8];

	need_root();
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		snprintf(name, sizeof(name), "f%zu", i);
		put_owned(name, t[i].uid, t[i].gid, t[i].mode);
	}
	become(UID, GID);
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		int fd, got;

		snprintf(name, sizeof(name), "f%zu", i);
		fd = open(name, O_RDONLY);
		got = fd < 0 ? errno : 0;
		if (got != t[i].r || (access(name, R_OK) ? errno : 0) != got)
			gt_fail(__FILE__, __LINE__, "case %zu: read gave %d", i, got);
		fd = open(name, O_WRONLY);
		got = fd < 0 ? errno : 0;
		if (got != t[i].w || (access(name, W_OK) ? errno : 0) != got)
			gt_fail(__FILE__, __LINE__, "case %zu: write gave %d", i, got);
		if (t[i].r)
			CHECK_ERR(open(name, O_RDWR), EACCES);
	}
	CHECK_ERR(access("f0", X_OK), EACCES);
	CHECK_ERR(truncate("f1", 0), EACCES);
	CHECK_ERR(open("f1", O_RDONLY | O_TRUNC), EACCES);
}

static void directories(void)
{
	struct stat st;
	char buf[64];

	need_root();
	CHECK_OK(mkdir("ronly", 0755));
	put_owned("ronly/f", UID, GID, 0644);
	CHECK_OK(mkdir("noexec", 0755));
	gt_put("noexec/f", "x");
	CHECK_OK(chmod("noexec", 0744));
	CHECK_OK(mkdir("noread", 0755));
	gt_put("noread/f", "x");
	CHECK_OK(chmod("noread", 0711));
	become(UID, GID);
	CHECK_ERR(open("ronly/new", O_CREAT | O_WRONLY, 0600), EACCES);
	CHECK_OK(close((int)CHECK_OK(open("ronly/f", O_CREAT | O_RDONLY, 0600))));
	CHECK_ERR(open("ronly/f", O_CREAT | O_EXCL | O_RDONLY, 0600), EEXIST);
	CHECK_ERR(mkdir("ronly/d", 0700), EACCES);
	CHECK_ERR(mkdir("ronly/f", 0700), EEXIST);
	CHECK_ERR(unlink("ronly/f"), EACCES);
	CHECK_ERR(unlink("ronly/none"), ENOENT);
	CHECK_ERR(rename("ronly/f", "ronly/g"), EACCES);
	CHECK_ERR(symlink("x", "ronly/l"), EACCES);
	CHECK_ERR(link("ronly/f", "ronly/g"), EACCES);
	CHECK_ERR(mknod("ronly/p", S_IFIFO | 0600, 0), EACCES);
	CHECK_ERR(rmdir("ronly"), EACCES);
	CHECK_ERR(stat("noexec/f", &st), EACCES);
	CHECK_ERR(chdir("noexec"), EACCES);
	CHECK_ERR(open("noexec/none", O_RDONLY), EACCES);
	CHECK_ERR(open("noexec/./f", O_RDONLY), EACCES);
	CHECK(syscall(SYS_getdents64, CHECK_OK(open("noexec", O_RDONLY)), buf, sizeof(buf)) > 0);
	CHECK_OK(stat("noread/f", &st));
	CHECK_ERR(open("noread", O_RDONLY), EACCES);
	CHECK_OK(chdir("noread"));
	CHECK_OK(stat("f", &st));
	CHECK_OK(open("..", O_PATH));
}

static void sticky(void)
{
	need_root();
	CHECK_OK(mkdir("s", 0777));
	CHECK_OK(chmod("s", 01777));
	put_owned("s/root", 0, 0, 0666);
	put_owned("s/other", 12, 12, 0666);
	CHECK_OK(mkdir("s/dir", 0777));
	CHECK_OK(mkdir("mine", 0777));
	CHECK_OK(chmod("mine", 01777));
	put_owned("mine/root", 0, 0, 0600);
	CHECK_OK(chown("mine", UID, GID));
	CHECK_OK(chmod(".", 0777));
	become(UID, GID);
	CHECK_ERR(unlink("s/root"), EPERM);
	CHECK_ERR(unlink("s/other"), EPERM);
	CHECK_ERR(rmdir("s/dir"), EPERM);
	CHECK_ERR(rename("s/root", "s/x"), EPERM);
	CHECK_ERR(rename("s/other", "y"), EPERM);
	gt_put("s/own", "");
	CHECK_ERR(rename("s/own", "s/root"), EPERM);
	CHECK_OK(rename("s/own", "s/own2"));
	CHECK_OK(unlink("s/own2"));
	CHECK_OK(unlink("mine/root")); /* the directory's owner may */
}

static void new_files(void)
{
	need_root();
	CHECK_OK(mkdir("sg", 0777));
	CHECK_OK(chown("sg", 0, 55));
	CHECK_OK(chmod("sg", 02777));
	CHECK_OK(chmod(".", 0777));
	become(UID, GID);
	gt_put("f", "");
	CHECK_EQ(gt_stat("f").st_uid, UID);
	CHECK_EQ(gt_stat("f").st_gid, GID);
	gt_put("sg/f", "");
	CHECK_EQ(gt_stat("sg/f").st_gid, 55);
	CHECK_OK(mkdir("sg/d", 0755));
	CHECK_EQ(gt_stat("sg/d").st_mode, S_IFDIR | 02755);
	CHECK_EQ(gt_stat("sg/d").st_gid, 55);
	CHECK_OK(symlink("x", "sg/l"));
	CHECK_EQ(gt_stat("sg/l").st_gid, 55);
	/* Not of that group: no set-group-ID file comes out of it. */
	CHECK_OK(close((int)CHECK_OK(open("sg/g", O_CREAT | O_WRONLY, 02775))));
	CHECK_EQ(gt_stat("sg/g").st_mode, S_IFREG | 0755);
	CHECK_OK(chmod("sg/f", 02755));
	CHECK_EQ(gt_stat("sg/f").st_mode, S_IFREG | 0755);
	CHECK_OK(chmod("f", 06755));
	CHECK_EQ(gt_stat("f").st_mode, S_IFREG | 06755);
	CHECK_OK(setresuid(-1, -1, -1));
	CHECK_EQ(setfsuid(UID), UID);
}

static void owners(void)
{
	struct stat st;
	int fd;

	need_root();
	put_owned("a", 0, 0, 04755);
	CHECK_OK(chown("a", UID, -1));
	CHECK_EQ(gt_stat("a").st_mode, S_IFREG | 0755);
	CHECK_OK(chmod("a", 06755));
	CHECK_OK(chown("a", -1, GID));
	CHECK_EQ(gt_stat("a").st_mode, S_IFREG | 0755);
	CHECK_OK(chmod("a", 02644));
	CHECK_OK(chown("a", UID, GID)); /* without group execution the bit means something else, and stays */
	CHECK_EQ(gt_stat("a").st_mode, S_IFREG | 02644);
	CHECK_OK(chmod("a", 06755));
	CHECK_OK(chown("a", -1, -1));
	CHECK_EQ(gt_stat("a").st_mode & 0777, 0755);
	CHECK_OK(symlink("a", "l"));
	CHECK_OK(lchown("l", 7, 8));
	CHECK_EQ(gt_stat("l").st_uid, 7);
	CHECK_EQ(gt_stat("a").st_uid, UID);
	CHECK_OK(chown("l", UID, GID));
	CHECK_EQ(gt_stat("l").st_uid, 7);
	CHECK_OK(chmod("a", 04755));
	put_owned("b", 0, GID, 0666);
	CHECK_OK(chmod("b", 06777));
	become(UID, GID);
	CHECK_ERR(chown("a", 0, -1), EPERM);
	CHECK_ERR(chown("a", -1, 0), EPERM);
	CHECK_OK(chown("a", UID, GID));
	CHECK_EQ(gt_stat("a").st_mode, S_IFREG | 0755);
	CHECK_ERR(chmod("b", 0777), EPERM);
	CHECK_ERR(chown("b", UID, GID), EPERM);
	CHECK_ERR(fchownat(AT_FDCWD, "l", UID, GID, AT_SYMLINK_NOFOLLOW), EPERM);
	CHECK_ERR(chown("none", 0, 0), ENOENT);
	CHECK_ERR(syscall(SYS_fchownat, AT_FDCWD, "a", 0, 0, 0x40000), EINVAL);
	/* A write by someone else's hand takes the bits. */
	fd = (int)CHECK_OK(open("b", O_WRONLY));
	CHECK_EQ(write(fd, "x", 1), 1);
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_mode, S_IFREG | 0777);
}

static void times(void)
{
	struct timespec ts[2] = { { 1, 0 }, { 2, 0 } }, now[2] = { { 0, UTIME_NOW }, { 0, UTIME_NOW } };
	struct timespec half[2] = { { 0, UTIME_NOW }, { 0, UTIME_OMIT } };

	need_root();
	put_owned("writable", 0, 0, 0666);
	put_owned("readable", 0, 0, 0644);
	put_owned("own", UID, GID, 0400);
	become(UID, GID);
	CHECK_ERR(utimensat(AT_FDCWD, "writable", ts, 0), EPERM);
	CHECK_OK(utimensat(AT_FDCWD, "writable", NULL, 0));
	CHECK_OK(utimensat(AT_FDCWD, "writable", now, 0));
	CHECK_ERR(utimensat(AT_FDCWD, "writable", half, 0), EPERM);
	CHECK_ERR(utimensat(AT_FDCWD, "readable", NULL, 0), EACCES);
	CHECK_ERR(utimensat(AT_FDCWD, "readable", ts, 0), EPERM);
	CHECK_OK(utimensat(AT_FDCWD, "own", ts, 0));
	CHECK_OK(utimensat(AT_FDCWD, "own", NULL, 0));
}

/* access(2) asks for the real ids, faccessat2(AT_EACCESS) and all else for the effective ones. */
static void access_ids(void)
{
	need_root();
	put_owned("root", 0, 0, 0600);
	put_owned("user", UID, GID, 0600);
	put_owned("prog", 0, 0, 0644);
	CHECK_OK(access("root", R_OK | W_OK));
	CHECK_ERR(access("prog", X_OK), EACCES); /* not for root either */
	CHECK_OK(chmod("prog", 0001));
	CHECK_OK(access("prog", X_OK));
	CHECK_OK(setgroups(0, NULL));
	CHECK_OK(setresuid(UID, 0, 0));
	CHECK_ERR(access("root", R_OK), EACCES);
	CHECK_OK(syscall(SYS_faccessat2, AT_FDCWD, "root", R_OK, AT_EACCESS));
	CHECK_OK(access("user", R_OK));
	CHECK_OK(close((int)CHECK_OK(open("root", O_RDONLY))));
	CHECK_ERR(syscall(SYS_faccessat2, AT_FDCWD, "root", 8, 0), EINVAL);
	CHECK_ERR(syscall(SYS_faccessat2, AT_FDCWD, "root", R_OK, 0x4000), EINVAL);
	CHECK_OK(setresuid(0, UID, 0));
	CHECK_OK(access("root", R_OK));
	CHECK_ERR(syscall(SYS_faccessat2, AT_FDCWD, "root", R_OK, AT_EACCESS), EACCES);
	CHECK_ERR(open("root", O_RDONLY), EACCES);
	CHECK_OK(open("user", O_RDONLY));
}

/* Supplementary groups count; an open descriptor keeps what it was opened with. */
static void groups_and_descriptors(void)
{
	const gid_t groups[2] = { 77, 78 };
	char buf[8], proc[64];
	int fd;

	need_root();
	put_owned("g77", 0, 77, 0060);
	put_owned("g79", 0, 79, 0060);
	put_owned("shut", 0, 0, 0600);
	fd = (int)CHECK_OK(open("shut", O_RDWR));
	CHECK_OK(setgroups(2, groups));
	CHECK_OK(setresgid(GID, GID, GID));
	CHECK_OK(setresuid(UID, UID, UID));
	CHECK_OK(close((int)CHECK_OK(open("g77", O_RDWR))));
	CHECK_ERR(open("g79", O_RDONLY), EACCES);
	CHECK_EQ(read(fd, buf, 4), 4);
	CHECK_EQ(pwrite(fd, "T", 1, 0), 1);
	CHECK_ERR(fchmod(fd, 0666), EPERM);
	CHECK_ERR(fchown(fd, UID, GID), EPERM);
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	CHECK_ERR(open(proc, O_RDONLY), EACCES);
	CHECK_ERR(setgroups(0, NULL), EPERM);
	CHECK_ERR(chroot("."), EPERM);
	CHECK_ERR(mknod("dev", S_IFCHR | 0600, 0x103), EACCES);
	CHECK_ERR(mknod("/tmp/gt_dev", S_IFCHR | 0600, 0x103), EPERM);
}

static const struct gt_case cases[] = {
	{ "mode_bits", mode_bits },
	{ "directories", directories },
	{ "sticky", sticky },
	{ "new_files", new_files },
	{ "owners", owners },
	{ "times", times },
	{ "access_ids", access_ids },
	{ "groups_and_descriptors", groups_and_descriptors },
	{ NULL, NULL },
};

GT_MAIN_DIRS(cases)
