/* SPDX-License-Identifier: Apache-2.0 */
/* Reading directories: cookies, changes while reading, many entries. */
#include "tests/guest/gt_dirs.h"

#include <dirent.h>

struct dent { /* linux_dirent64 */
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

static void name_of(char *buf, int i)
{
	snprintf(buf, 64, "a-rather-long-name-of-a-file-%05d", i);
}

static void fill(const char *dir, int n)
{
	char name[64];
	int d;

	CHECK_OK(mkdir(dir, 0755));
	d = (int)CHECK_OK(open(dir, O_RDONLY | O_DIRECTORY));
	for (int i = 0; i < n; i++) {
		name_of(name, i);
		CHECK_OK(mknodat(d, name, S_IFREG | 0644, 0));
	}
	CHECK_OK(close(d));
}

static void hostile(void)
{
	char buf[4096], *edge = gt_edge_page();
	int p[2], fd, n;

	fill("d", 3);
	fd = (int)CHECK_OK(open("d", O_RDONLY));
	CHECK_ERR(syscall(SYS_getdents64, -1, buf, 100), EBADF);
	CHECK_ERR(syscall(SYS_getdents64, fd, BAD_PTR, 4096), EFAULT);
	CHECK_ERR(syscall(SYS_getdents64, fd, buf, 0), EINVAL);
	CHECK_ERR(syscall(SYS_getdents64, fd, buf, 23), EINVAL);
	CHECK_OK(pipe(p));
	CHECK_ERR(syscall(SYS_getdents64, p[0], buf, 100), ENOTDIR);
	CHECK_ERR(lseek(fd, -1, SEEK_SET), EINVAL);
	CHECK_ERR(read(fd, buf, 10), EISDIR);
	CHECK_ERR(pread(fd, buf, 10, 0), EISDIR);
	CHECK_ERR(ftruncate(fd, 0), EINVAL);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED);
	CHECK_EQ(errno, ENODEV);
	/* What does not fit stays for the next call; a fault loses nothing of what was seen. */
	n = (int)CHECK_OK(syscall(SYS_getdents64, fd, edge + 4096 - 100, 100));
	CHECK(n > 0 && n <= 100);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	n = (int)CHECK_OK(syscall(SYS_getdents64, fd, buf, sizeof(buf)));
	CHECK_EQ(syscall(SYS_getdents64, fd, buf, sizeof(buf)), 0);
}

/* Each name exactly once, through a buffer of this size; gives the number of names. */
static int count(int fd, size_t size, bool *seen, int max)
{
	char *buf = malloc(size);
	int n, total = 0;

	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	while ((n = (int)CHECK_OK(syscall(SYS_getdents64, fd, buf, size))) > 0) {
		for (int pos = 0; pos < n;) {
			struct dent *e = (struct dent *)(buf + pos);
			int i;

			CHECK(e->reclen >= 24 && e->reclen % 8 == 0 && pos + e->reclen <= n);
			CHECK(strlen(e->name) + 20 <= e->reclen);
			pos += e->reclen;
			if (!strcmp(e->name, ".") || !strcmp(e->name, "..")) {
				CHECK_EQ(e->type, DT_DIR);
				continue;
			}
			CHECK_EQ(e->type, DT_REG);
			i = atoi(e->name + strlen(e->name) - 5);
			CHECK(i >= 0 && i < max && !seen[i]);
			seen[i] = true;
			total++;
		}
	}
	free(buf);
	return total;
}

static void many(void)
{
	static bool seen[5000];
	char name[64];
	int fd;

	fill("d", 5000);
	fd = (int)CHECK_OK(open("d", O_RDONLY));
	CHECK_EQ(count(fd, 32768, seen, 5000), 5000);
	memset(seen, 0, sizeof(seen));
	CHECK_EQ(count(fd, 1000, seen, 5000), 5000);
	for (int i = 0; i < 5000; i += 2) {
		name_of(name, i);
		CHECK_OK(unlinkat(fd, name, 0));
	}
	memset(seen, 0, sizeof(seen));
	CHECK_EQ(count(fd, 32768, seen, 5000), 2500);
	CHECK(!seen[0] && seen[1] && !seen[4998] && seen[4999]);
	for (int i = 1; i < 5000; i += 2) {
		name_of(name, i);
		CHECK_OK(unlinkat(fd, name, 0));
	}
	CHECK_OK(rmdir("d"));
	CHECK_ERR(openat(fd, "x", O_CREAT | O_RDWR, 0600), ENOENT);
}

/* rm -rf: names are deleted between and while the directory is read. */
static void deleting(void)
{
	char buf[600];
	int fd, n, total = 0;

	fill("d", 400);
	fd = (int)CHECK_OK(open("d", O_RDONLY));
	while ((n = (int)CHECK_OK(syscall(SYS_getdents64, fd, buf, sizeof(buf)))) > 0) {
		for (int pos = 0; pos < n;) {
			struct dent *e = (struct dent *)(buf + pos);

			pos += e->reclen;
			if (e->name[0] == '.')
				continue;
			CHECK_OK(unlinkat(fd, e->name, 0));
			total++;
		}
	}
	CHECK_EQ(total, 400);
	CHECK_OK(rmdir("d"));
	CHECK_ERR(syscall(SYS_getdents64, fd, buf, sizeof(buf)), ENOENT);
}

/* Names made while reading may or may not be seen, but the old ones are, once. */
static void creating(void)
{
	static bool seen[300];
	char name[64];
	struct dirent *e;
	int i = 200, old = 0, late = 0;
	DIR *d;

	fill("d", 200);
	d = opendir("d");
	CHECK(d);
	while ((e = readdir(d))) {
		int k;

		if (e->d_name[0] == '.')
			continue;
		k = atoi(e->d_name + strlen(e->d_name) - 5);
		CHECK(k >= 0 && k < 300 && !seen[k]);
		seen[k] = true;
		if (k < 200)
			old++;
		if (i < 300) {
			name_of(name, i++);
			CHECK_OK(mknodat(dirfd(d), name, S_IFREG | 0600, 0));
		}
	}
	CHECK_EQ(old, 200);
	rewinddir(d);
	while ((e = readdir(d)))
		late++;
	CHECK_EQ(late, 302);
}

static void cookies(void)
{
	struct dirent *e;
	long at[64];
	char names[64][64];
	int n = 0;
	DIR *d;

	fill("d", 20);
	d = opendir("d");
	CHECK(d);
	for (;;) {
		at[n] = telldir(d);
		e = readdir(d);
		if (!e)
			break;
		CHECK(n < 60);
		snprintf(names[n++], 64, "%.60s", e->d_name);
	}
	CHECK_EQ(n, 22);
	for (int i = n - 1; i >= 0; i--) {
		seekdir(d, at[i]);
		e = readdir(d);
		CHECK(e && !strcmp(e->d_name, names[i]));
	}
	/* A cookie stays good while other names go. */
	for (int i = 0; i < n; i += 3) {
		if (names[i][0] != '.')
			CHECK_OK(unlinkat(dirfd(d), names[i], 0));
	}
	seekdir(d, at[13]);
	e = readdir(d);
	CHECK(e && !strcmp(e->d_name, names[13]));
}

static void types_and_inodes(void)
{
	struct dirent *e;
	int seen = 0;
	DIR *d;

	CHECK_OK(mkdir("t", 0755));
	CHECK_OK(mkdir("t/dir", 0755));
	gt_put("t/reg", "");
	CHECK_OK(symlink("x", "t/lnk"));
	CHECK_OK(mkfifo("t/fifo", 0600));
	CHECK_OK(mknod("t/sock", S_IFSOCK | 0600, 0));
	d = opendir("t");
	CHECK(d);
	while ((e = readdir(d))) {
		struct stat st;

		CHECK_OK(fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW));
		CHECK_EQ(e->d_ino, st.st_ino);
		CHECK_EQ(DTTOIF(e->d_type), st.st_mode & S_IFMT);
		seen++;
	}
	CHECK_EQ(seen, 7);
}

/* Two descriptions have their own positions; a duplicate shares. */
static void positions(void)
{
	char a[200], b[200];
	int f1, f2, f3;

	fill("d", 10);
	f1 = (int)CHECK_OK(open("d", O_RDONLY));
	f2 = (int)CHECK_OK(open("d", O_RDONLY));
	f3 = (int)CHECK_OK(dup(f1));
	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	CHECK(syscall(SYS_getdents64, f1, a, sizeof(a)) > 0);
	CHECK(syscall(SYS_getdents64, f2, b, sizeof(b)) > 0);
	CHECK(!strcmp(((struct dent *)a)->name, ((struct dent *)b)->name));
	CHECK(syscall(SYS_getdents64, f3, b, sizeof(b)) > 0);
	CHECK(strcmp(((struct dent *)a)->name, ((struct dent *)b)->name));
}

static const struct gt_case cases[] = {
	{ "hostile", hostile },
	{ "many", many },
	{ "deleting", deleting },
	{ "creating", creating },
	{ "cookies", cookies },
	{ "types_and_inodes", types_and_inodes },
	{ "positions", positions },
	{ NULL, NULL },
};

GT_MAIN_DIRS(cases)
