/* SPDX-License-Identifier: Apache-2.0 */
/* open(2): flags by kind of file, modes, names. */
#include "tests/guest/gt_dirs.h"

#include <linux/openat2.h>
#include <sys/ioctl.h>

/* Opens a name with these flags and gives 0 or the errno. */
static int try(const char *name, int flags)
{
	int fd = open(name, flags, 0644);

	if (fd < 0)
		return errno;
	CHECK_OK(close(fd));
	return 0;
}

static void hostile(void)
{
	struct open_how how = { .flags = O_RDONLY };
	struct {
		struct open_how how;
		uint64_t more;
	} big = { .how = { .flags = O_RDONLY } };
	char *edge = gt_edge_page();

	gt_put("f", "x");
	CHECK_ERR(syscall(SYS_open, NULL, O_RDONLY), EFAULT);
	CHECK_ERR(open(BAD_PTR, O_CREAT | O_WRONLY, 0600), EFAULT);
	CHECK_ERR(openat(-1, "f", O_RDONLY), EBADF);
	CHECK_ERR(openat(12345, "f", O_RDONLY), EBADF);
	CHECK_OK(close((int)CHECK_OK(openat(-1, "/dev/null", O_RDONLY))));
	CHECK_ERR(syscall(SYS_openat2, AT_FDCWD, "f", BAD_PTR, sizeof(how)), EFAULT);
	CHECK_ERR(syscall(SYS_openat2, AT_FDCWD, "f", &how, 0), EINVAL);
	CHECK_ERR(syscall(SYS_openat2, AT_FDCWD, "f", &how, 5000), E2BIG);
	CHECK_OK(close((int)CHECK_OK(syscall(SYS_openat2, AT_FDCWD, "f", &big, sizeof(big)))));
	big.more = 1;
	CHECK_ERR(syscall(SYS_openat2, AT_FDCWD, "f", &big, sizeof(big)), E2BIG);
	memcpy(edge + 4096 - sizeof(how), &how, sizeof(how));
	CHECK_OK(close((int)CHECK_OK(syscall(SYS_openat2, AT_FDCWD, "f", edge + 4096 - sizeof(how), sizeof(how)))));
	how.flags = 1ull << 40;
	CHECK_ERR(syscall(SYS_openat2, AT_FDCWD, "f", &how, sizeof(how)), EINVAL);
	how.flags = O_RDONLY;
	how.resolve = 1 << 20;
	CHECK_ERR(syscall(SYS_openat2, AT_FDCWD, "f", &how, sizeof(how)), EINVAL);
	how.resolve = RESOLVE_BENEATH | RESOLVE_IN_ROOT;
	CHECK_ERR(syscall(SYS_openat2, AT_FDCWD, "f", &how, sizeof(how)), EINVAL);
	how = (struct open_how){ .flags = O_CREAT | O_WRONLY, .mode = 0100000 };
	CHECK_ERR(syscall(SYS_openat2, AT_FDCWD, "new", &how, sizeof(how)), EINVAL);
	how = (struct open_how){ .flags = O_PATH | O_RDWR };
	CHECK_ERR(syscall(SYS_openat2, AT_FDCWD, "f", &how, sizeof(how)), EINVAL);
	CHECK_OK(close((int)CHECK_OK(open("f", O_PATH | O_RDWR | O_APPEND))));
	CHECK_ERR(open("f", O_CREAT | O_DIRECTORY, 0600), EINVAL);
}

static void by_kind(void)
{
	static const char *const names[] = { "file", "dir", "none", "lfile", "ldir", "lnone" };
	static const struct {
		int flags;
		int want[6];
	} t[] = {
		{ O_RDONLY, { 0, 0, ENOENT, 0, 0, ENOENT } },
		{ O_WRONLY, { 0, EISDIR, ENOENT, 0, EISDIR, ENOENT } },
		{ O_RDWR, { 0, EISDIR, ENOENT, 0, EISDIR, ENOENT } },
		{ O_RDONLY | O_TRUNC, { 0, EISDIR, ENOENT, 0, EISDIR, ENOENT } },
		{ O_RDONLY | O_DIRECTORY, { ENOTDIR, 0, ENOENT, ENOTDIR, 0, ENOENT } },
		{ O_RDWR | O_DIRECTORY, { ENOTDIR, EISDIR, ENOENT, ENOTDIR, EISDIR, ENOENT } },
		{ O_RDONLY | O_NOFOLLOW, { 0, 0, ENOENT, ELOOP, ELOOP, ELOOP } },
		{ O_WRONLY | O_NOFOLLOW, { 0, EISDIR, ENOENT, ELOOP, ELOOP, ELOOP } },
		{ O_RDONLY | O_NOFOLLOW | O_DIRECTORY, { ENOTDIR, 0, ENOENT, ENOTDIR, ENOTDIR, ENOTDIR } },
		{ O_PATH, { 0, 0, ENOENT, 0, 0, ENOENT } },
		{ O_PATH | O_NOFOLLOW, { 0, 0, ENOENT, 0, 0, 0 } },
		{ O_PATH | O_DIRECTORY, { ENOTDIR, 0, ENOENT, ENOTDIR, 0, ENOENT } },
		{ O_PATH | O_NOFOLLOW | O_DIRECTORY, { ENOTDIR, 0, ENOENT, ENOTDIR, ENOTDIR, ENOTDIR } },
		{ O_RDWR | O_CREAT | O_EXCL, { EEXIST, EEXIST, 0, EEXIST, EEXIST, EEXIST } },
		{ O_RDWR | O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW, { EEXIST, EEXIST, 0, EEXIST, EEXIST, EEXIST } },
		{ O_RDONLY | O_CREAT, { 0, EISDIR, 0, 0, EISDIR, 0 } },
		{ O_RDWR | O_CREAT, { 0, EISDIR, 0, 0, EISDIR, 0 } },
		{ O_RDWR | O_CREAT | O_NOFOLLOW, { 0, EISDIR, 0, ELOOP, ELOOP, ELOOP } },
	};

	CHECK_OK(mkdir("dir", 0755));
	gt_put("file", "x");
	CHECK_OK(symlink("file", "lfile"));
	CHECK_OK(symlink("dir", "ldir"));
	CHECK_OK(symlink("target", "lnone"));
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		for (int k = 0; k < 6; k++) {
			int got = try(names[k], t[i].flags);

			if (got != t[i].want[k])
				gt_fail(__FILE__, __LINE__, "open(%s, %#o) gave errno %d, not %d", names[k],
					t[i].flags, got, t[i].want[k]);
			if (t[i].flags & O_CREAT) {
				unlink("none");
				unlink("target");
			}
		}
	}
}

static void slashes(void)
{
	CHECK_OK(mkdir("d", 0755));
	gt_put("f", "x");
	CHECK_OK(symlink("d/", "ld"));
	CHECK_OK(symlink("f/", "lf"));
	CHECK_OK(symlink("none/", "ln"));
	CHECK_EQ(try("d/", O_RDONLY), 0);
	CHECK_EQ(try("d///", O_RDONLY), 0);
	CHECK_EQ(try("d/.", O_RDONLY), 0);
	CHECK_EQ(try("f/", O_RDONLY), ENOTDIR);
	CHECK_EQ(try("f/.", O_RDONLY), ENOTDIR);
	CHECK_EQ(try("ld", O_RDONLY), 0);
	CHECK_EQ(try("lf", O_RDONLY), ENOTDIR);
	CHECK_EQ(try("ld", O_RDONLY | O_NOFOLLOW), ELOOP);
	CHECK_EQ(try("ld/", O_RDONLY | O_NOFOLLOW), 0);
	CHECK_EQ(try("none/", O_RDONLY | O_CREAT), EISDIR);
	CHECK_EQ(try("none/", O_RDONLY | O_CREAT | O_EXCL), EISDIR);
	CHECK_EQ(try("d/", O_RDONLY | O_CREAT), EISDIR);
	CHECK_EQ(try("f/", O_RDWR | O_CREAT), EISDIR);
	CHECK_EQ(try("none/x", O_RDWR | O_CREAT), ENOENT);
	CHECK_EQ(try("f/x", O_RDWR | O_CREAT), ENOTDIR);
	CHECK_EQ(try("d/..", O_RDWR | O_CREAT), EISDIR);
	CHECK_EQ(try("d/.", O_RDWR | O_CREAT | O_EXCL), EEXIST);
	CHECK_EQ(try("d/..", O_WRONLY), EISDIR);
	CHECK_EQ(try("", O_RDWR | O_CREAT), ENOENT);
	CHECK_ERR(mknod("x/", S_IFREG | 0600, 0), ENOENT);
	CHECK_ERR(mkdir("f/", 0755), EEXIST);
	CHECK_ERR(link("f", "y/"), ENOENT);
	CHECK_ERR(link("f/", "y"), ENOTDIR);
	CHECK_ERR(symlink("a", "y/"), ENOENT);
	CHECK_ERR(access("f/", F_OK), ENOTDIR);
	CHECK_ERR(truncate("f/", 0), ENOTDIR);
}

static void long_names(void)
{
	char name[600], path[4200];
	int depth = 0;

	memset(name, 'x', sizeof(name));
	name[256] = 0;
	CHECK_EQ(try(name, O_RDONLY), ENAMETOOLONG);
	CHECK_EQ(try(name, O_RDWR | O_CREAT), ENAMETOOLONG);
	CHECK_ERR(mkdir(name, 0755), ENAMETOOLONG);
	CHECK_ERR(symlink("x", name), ENAMETOOLONG);
	CHECK_ERR(rename(name, "y"), ENAMETOOLONG);
	CHECK_ERR(unlink(name), ENAMETOOLONG);
	strcpy(name + 256, "/..");
	CHECK_EQ(try(name, O_RDONLY), ENAMETOOLONG);
	name[255] = 0;
	/* A directory deeper than PATH_MAX can be reached only step by step. */
	for (; depth < 17; depth++) {
		CHECK_OK(mkdir(name, 0755));
		CHECK_OK(chdir(name));
	}
	gt_put("deep", "x");
	CHECK_ERR(syscall(SYS_getcwd, path, 4096), ENAMETOOLONG);
	CHECK_OK(unlink("deep"));
	while (depth--) {
		CHECK_OK(chdir(".."));
		CHECK_OK(rmdir(name));
	}
	memset(path, 'y', sizeof(path));
	path[4096] = 0;
	CHECK_ERR(symlink(path, "l"), ENAMETOOLONG);
}

static uint32_t made(const char *name, uint32_t mode)
{
	struct stat st;
	int fd = (int)CHECK_OK(open(name, O_CREAT | O_EXCL | O_RDWR, mode));

	CHECK_OK(fstat(fd, &st));
	CHECK_OK(close(fd));
	CHECK_OK(unlink(name));
	return st.st_mode;
}

static void modes(void)
{
	/* In a grant no file gets set-ID bits: the host's files do not run as their owner because a guest says so. */
	uint32_t set_id = strcmp(gt_kind, "grant") ? 0 : S_ISUID | S_ISGID;
	int fd;

	umask(0);
	CHECK_EQ(made("a", 0), S_IFREG);
	CHECK_EQ(made("a", 07777) | set_id, S_IFREG | 07777);
	CHECK_EQ(made("a", 0177777) | set_id, S_IFREG | 07777);
	umask(0777);
	CHECK_EQ(made("a", 0777), S_IFREG);
	umask(022);
	CHECK_EQ(made("a", 0666), S_IFREG | 0644);
	CHECK_EQ(umask(07777), 022);
	CHECK_EQ(umask(022), 0777); /* only the permission bits are kept */
	/* A new file's mode does not bind the descriptor that makes it. */
	fd = (int)CHECK_OK(open("w", O_CREAT | O_RDWR, 0000));
	CHECK_EQ(write(fd, "x", 1), 1);
	CHECK_OK(mkdir("d", 0));
	CHECK_EQ(gt_stat("d").st_mode, S_IFDIR);
	CHECK_OK(chmod("d", 0700));
	CHECK_OK(mkfifo("p", 0666));
	CHECK_EQ(gt_stat("p").st_mode, S_IFIFO | 0644);
	CHECK_OK(mknod("s", S_IFSOCK | 0666, 0));
	CHECK_EQ(gt_stat("s").st_mode, S_IFSOCK | 0644);
	CHECK_ERR(open("s", O_RDWR), ENXIO);
	CHECK_OK(close((int)CHECK_OK(open("s", O_PATH))));
}

static void path_only(void)
{
	char buf[64], proc[64];
	struct stat st;
	int fd, d;

	gt_put("f", "text");
	CHECK_OK(symlink("f", "l"));
	CHECK_OK(mkdir("d", 0755));
	fd = (int)CHECK_OK(open("f", O_PATH | O_CLOEXEC));
	CHECK_ERR(read(fd, buf, 1), EBADF);
	CHECK_ERR(write(fd, buf, 1), EBADF);
	CHECK_ERR(lseek(fd, 0, SEEK_SET), EBADF);
	CHECK_ERR(ftruncate(fd, 0), EBADF);
	CHECK_ERR(fchown(fd, 0, 0), EBADF);
	CHECK_ERR(fsync(fd), EBADF);
	CHECK_ERR(ioctl(fd, 1), EBADF);
	CHECK_ERR(fcntl(fd, F_SETFL, 0), EBADF);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EBADF);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_OK(close((int)CHECK_OK(dup(fd))));
	CHECK_OK(fstatat(fd, "", &st, AT_EMPTY_PATH));
	CHECK_EQ(st.st_size, 4);
	CHECK_OK(unlink("f"));
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	d = (int)CHECK_OK(open(proc, O_RDONLY)); /* the file lives on behind the descriptor */
	CHECK_EQ(read(d, buf, sizeof(buf)), 4);
	fd = (int)CHECK_OK(open("l", O_PATH | O_NOFOLLOW));
	CHECK_OK(fstat(fd, &st));
	CHECK(S_ISLNK(st.st_mode));
	CHECK_EQ(readlinkat(fd, "", buf, sizeof(buf)), 1);
	d = (int)CHECK_OK(open("d", O_PATH));
	CHECK_OK(mkdirat(d, "sub", 0755));
	CHECK_OK(fchdir(d));
	CHECK_OK(access("sub", F_OK));
	CHECK_ERR(syscall(SYS_getdents64, d, buf, sizeof(buf)), EBADF);
}

static void unnamed(void)
{
	char buf[16], proc[64];
	struct stat st;
	int fd;

	CHECK_ERR(open(".", O_TMPFILE | O_RDONLY, 0600), EINVAL);
	CHECK_ERR(open("none", O_TMPFILE | O_RDWR, 0600), ENOENT);
	gt_put("f", "x");
	CHECK_ERR(open("f", O_TMPFILE | O_RDWR, 0600), ENOTDIR);
	CHECK_ERR(open(".", O_TMPFILE | O_RDWR | O_CREAT, 0600), EINVAL);
	fd = (int)CHECK_OK(open(".", O_TMPFILE | O_RDWR, 0666));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_mode, S_IFREG | 0644);
	CHECK_EQ(st.st_nlink, 0);
	CHECK_EQ(write(fd, "hello", 5), 5);
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	CHECK_ERR(linkat(AT_FDCWD, proc, AT_FDCWD, "f", AT_SYMLINK_FOLLOW), EEXIST);
	CHECK_OK(linkat(AT_FDCWD, proc, AT_FDCWD, "g", AT_SYMLINK_FOLLOW));
	CHECK(gt_is("g", "hello"));
	CHECK_EQ(gt_stat("g").st_nlink, 1);
	CHECK_OK(unlink("g"));
	/* Once unlinked a file cannot come back, nor can one made with O_EXCL. */
	CHECK_ERR(linkat(AT_FDCWD, proc, AT_FDCWD, "h", AT_SYMLINK_FOLLOW), ENOENT);
	CHECK_EQ(pread(fd, buf, sizeof(buf), 0), 5);
	fd = (int)CHECK_OK(open(".", O_TMPFILE | O_RDWR | O_EXCL, 0600));
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	CHECK_ERR(linkat(AT_FDCWD, proc, AT_FDCWD, "h", AT_SYMLINK_FOLLOW), ENOENT);
}

static void truncating(void)
{
	struct stat st;
	int fd, rd;

	gt_put("f", "12345");
	rd = (int)CHECK_OK(open("f", O_RDONLY));
	fd = (int)CHECK_OK(open("f", O_WRONLY | O_TRUNC | O_APPEND));
	CHECK_OK(fstat(rd, &st));
	CHECK_EQ(st.st_size, 0);
	CHECK_EQ(write(fd, "ab", 2), 2);
	CHECK_OK(ftruncate(fd, 1));
	CHECK_EQ(write(fd, "c", 1), 1);
	CHECK(gt_is("f", "ac"));
	CHECK_OK(chmod("f", 0444));
	CHECK_EQ(try("f", O_RDONLY | O_TRUNC), 0); /* no one's business: needs write permission, root has it */
	CHECK_EQ(gt_stat("f").st_size, 0);
}

static void resolve(void)
{
	struct open_how how = { .flags = O_RDONLY };
	int d;

	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(mkdir("d/e", 0755));
	gt_put("d/f", "inner");
	gt_put("f", "outer");
	CHECK_OK(symlink("../f", "d/up"));
	CHECK_OK(symlink("/f", "d/abs"));
	CHECK_OK(symlink("e/../f", "d/in"));
	d = (int)CHECK_OK(open("d", O_PATH));
#define OPEN2(path, res) \
	(how.resolve = (res), syscall(SYS_openat2, d, path, &how, sizeof(how)))
	CHECK_ERR(OPEN2("up", RESOLVE_BENEATH), EXDEV);
	CHECK_ERR(OPEN2("abs", RESOLVE_BENEATH), EXDEV);
	CHECK_ERR(OPEN2("e/../../f", RESOLVE_BENEATH), EXDEV);
	CHECK_OK(OPEN2("e/../f", RESOLVE_BENEATH));
	CHECK_OK(OPEN2("in", RESOLVE_BENEATH));
	CHECK_OK(OPEN2("abs", RESOLVE_IN_ROOT));
	CHECK_OK(OPEN2("up", RESOLVE_IN_ROOT));
	CHECK_OK(OPEN2("/../../f", RESOLVE_IN_ROOT));
	CHECK_ERR(OPEN2("/proc/self/root", RESOLVE_IN_ROOT), ENOENT);
	CHECK_ERR(OPEN2("in", RESOLVE_NO_SYMLINKS), ELOOP);
	CHECK_ERR(OPEN2("/proc/self/fd/0", RESOLVE_NO_MAGICLINKS), ELOOP);
	CHECK_ERR(OPEN2("/proc/self", RESOLVE_NO_XDEV), EXDEV);
	CHECK_OK(OPEN2("f", RESOLVE_NO_XDEV | RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS));
#undef OPEN2
}

static const struct gt_case cases[] = {
	{ "hostile", hostile },
	{ "by_kind", by_kind },
	{ "slashes", slashes },
	{ "long_names", long_names },
	{ "modes", modes },
	{ "path_only", path_only },
	{ "unnamed", unnamed },
	{ "truncating", truncating },
	{ "resolve", resolve },
	{ NULL, NULL },
};

GT_MAIN_DIRS(cases)
