/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes to files that were there before: tests/guest/run makes the tree below $GT_LOWER anew for each run, and in sbx
 * it is the lower layer of the copy-on-write root. Each case has a directory of its own there: files f (text "lower\n",
 * mode 0640) and g, hard link g2 of g, symlink l to f, directories d (with x and sub/y) and e.
 */
#include "tests/guest/gt_dirs.h"

#include <dirent.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif


static void enter(const char *name)
{
	const char *lower = getenv("GT_LOWER");

	if (!lower || !*lower)
		_exit(GT_SKIP);
	CHECK_OK(chdir(lower));
	CHECK_OK(chdir(name));
}

static int names(const char *dir, const char *want)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;
	bool found = false;

	CHECK(d);
	while ((e = readdir(d))) {
		n += e->d_name[0] != '.';
		found |= want && !strcmp(e->d_name, want);
	}
	closedir(d);
	CHECK(!want || found);
	return n;
}

static void writing(void)
{
	char buf[16];
	int rd, wr;

	enter("writing");
	rd = (int)CHECK_OK(open("f", O_RDONLY));
	wr = (int)CHECK_OK(open("f", O_RDWR));
	CHECK_EQ(write(wr, "UP", 2), 2);
	CHECK(gt_is("f", "UPwer\n"));
	CHECK_EQ(pread(wr, buf, 16, 0), 6);
	CHECK(!memcmp(buf, "UPwer\n", 6));
	(void)rd; /* opened before the copy: overlayfs too shows the old file there */
	CHECK_EQ(gt_stat("f").st_mode, S_IFREG | 0640);
	CHECK_EQ(gt_stat("f").st_size, 6);
	wr = (int)CHECK_OK(open("l", O_WRONLY | O_APPEND));
	CHECK_EQ(write(wr, "more", 4), 4);
	CHECK(gt_is("f", "UPwer\nmore"));
	CHECK_OK(close((int)CHECK_OK(open("f", O_WRONLY | O_TRUNC))));
	CHECK_EQ(gt_stat("f").st_size, 0);
	CHECK_OK(truncate("g", 2));
	CHECK(gt_is("g", "lo"));
	CHECK_OK(close((int)CHECK_OK(open("d/x", O_RDONLY | O_TRUNC))));
	CHECK_EQ(gt_stat("d/x").st_size, 0);
}

static void attributes(void)
{
	struct timespec ts[2] = { { 11, 12 }, { 13, 14 } };
	struct stat before, after;

	enter("attributes");
	before = gt_stat("f");
	CHECK_OK(chmod("f", 0600));
	after = gt_stat("f");
	CHECK_EQ(after.st_mode, S_IFREG | 0600);
	CHECK_EQ(after.st_ino, before.st_ino); /* the number outlives the copy */
	CHECK_EQ(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
	CHECK_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	CHECK(gt_is("f", "lower\n"));
	CHECK_OK(utimensat(AT_FDCWD, "d", ts, 0));
	CHECK_EQ(gt_stat("d").st_mtim.tv_sec, 13);
	CHECK_EQ(names("d", "x"), 2);
	if (geteuid() == 0) {
		CHECK_OK(chown("g", 5, 6));
		CHECK_EQ(gt_stat("g").st_uid, 5);
		CHECK_OK(lchown("l", 7, 8));
		CHECK_EQ(gt_stat("l").st_uid, 7);
		CHECK_EQ(gt_stat("f").st_uid, before.st_uid);
	}
}

static void removing(void)
{
	struct stat st;

	enter("removing");
	CHECK_EQ(names(".", "f"), 6);
	CHECK_OK(unlink("f"));
	CHECK_ERR(lstat("f", &st), ENOENT);
	CHECK_ERR(open("f", O_RDONLY), ENOENT);
	CHECK_ERR(open("l", O_RDONLY), ENOENT);
	CHECK_EQ(names(".", NULL), 5);
	gt_put("f", "new");
	CHECK(gt_is("l", "new"));
	CHECK_EQ(names(".", "f"), 6);
	CHECK_ERR(rmdir("d"), ENOTEMPTY);
	CHECK_OK(unlink("d/x"));
	CHECK_OK(unlink("d/sub/y"));
	CHECK_OK(rmdir("d/sub"));
	CHECK_EQ(names("d", NULL), 0);
	CHECK_OK(rmdir("d"));
	CHECK_ERR(lstat("d", &st), ENOENT);
	/* A new directory of that name is empty: nothing shines through. */
	CHECK_OK(mkdir("d", 0755));
	CHECK_EQ(names("d", NULL), 0);
	CHECK_ERR(lstat("d/x", &st), ENOENT);
	gt_put("d/y", "");
	CHECK_EQ(names("d", "y"), 1);
	CHECK_OK(unlink("d/y"));
	CHECK_OK(rmdir("d"));
	gt_put("d", "a file now");
	CHECK(gt_is("d", "a file now"));
	CHECK_OK(unlink("d"));
	CHECK_OK(unlink("l"));
	CHECK_OK(symlink("g", "l"));
	CHECK(gt_is("l", "lower\n"));
}

static void renaming(void)
{
	struct stat st;
	ino_t ino;

	enter("renaming");
	ino = gt_stat("f").st_ino;
	CHECK_OK(rename("f", "f2"));
	CHECK_EQ(gt_stat("f2").st_ino, ino);
	CHECK_ERR(lstat("f", &st), ENOENT);
	CHECK(gt_is("f2", "lower\n"));
	CHECK_OK(rename("f2", "e/f"));
	CHECK(gt_is("e/f", "lower\n"));
	CHECK_OK(rename("l", "l2"));
	CHECK(S_ISLNK(gt_stat("l2").st_mode));
	CHECK_OK(rename("g", "f"));
	CHECK(gt_is("f", "lower\n"));
	CHECK_OK(rename("e/f", "f"));
	CHECK_EQ(names("e", NULL), 0);
	CHECK_EQ(gt_stat("f").st_ino, ino);
	gt_put("upper", "u");
	CHECK_OK(rename("upper", "f"));
	CHECK(gt_is("f", "u"));
}

/* What mv does when the kernel cannot (EXDEV, as overlayfs without redirect_dir) is not wanted: directories move. */
static void moving_directories(void)
{
	struct stat st;
	int fd;

	enter("moving_directories");
	fd = (int)CHECK_OK(open("d/x", O_RDONLY));
	CHECK_OK(rename("d", "d2"));
	CHECK_ERR(lstat("d", &st), ENOENT);
	CHECK_EQ(names("d2", "x"), 2);
	CHECK(gt_is("d2/x", "lower\n"));
	CHECK(gt_is("d2/sub/y", "lower\n"));
	gt_put("d2/sub/y", "changed");
	CHECK(gt_is("d2/sub/y", "changed"));
	CHECK_OK(mkdir("d", 0755));
	CHECK_EQ(names("d", NULL), 0);
	CHECK_OK(rename("d2", "e")); /* onto an empty one */
	CHECK_EQ(names("e", "sub"), 2);
	CHECK_OK(syscall(SYS_renameat2, AT_FDCWD, "e", AT_FDCWD, "d", RENAME_EXCHANGE));
	CHECK_EQ(names("d", "sub"), 2);
	CHECK_EQ(names("e", NULL), 0);
	CHECK_OK(rename("d/sub", "e/sub"));
	CHECK(gt_is("e/sub/y", "changed"));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_size, 6);
}

static void links(void)
{
	enter("links");
	CHECK_EQ(gt_stat("g").st_nlink, 2);
	CHECK_EQ(gt_stat("g").st_ino, gt_stat("g2").st_ino);
	CHECK_OK(link("f", "f2"));
	CHECK_EQ(gt_stat("f").st_nlink, 2);
	CHECK_EQ(gt_stat("f").st_ino, gt_stat("f2").st_ino);
	gt_put("f", "both");
	CHECK(gt_is("f2", "both"));
	CHECK_OK(unlink("f"));
	CHECK_EQ(gt_stat("f2").st_nlink, 1);
	CHECK(gt_is("f2", "both"));
}

static void mapping(void)
{
	int fd, ro;
	char *p, *q, buf[8];

	enter("mapping");
	ro = (int)CHECK_OK(open("f", O_RDONLY));
	q = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, ro, 0);
	CHECK(q != MAP_FAILED && !memcmp(q, "lower\n", 6));
	fd = (int)CHECK_OK(open("g", O_RDWR));
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED && !memcmp(p, "lower\n", 6));
	p[0] = 'L';
	CHECK_EQ(pread(fd, buf, 6, 0), 6);
	CHECK(!memcmp(buf, "Lower\n", 6));
	CHECK(gt_is("g", "Lower\n"));
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, ro, 0);
	CHECK(p != MAP_FAILED);
	p[0] = 'x';
	CHECK(gt_is("f", "lower\n"));
}

static void listing(void)
{
	enter("listing");
	gt_put("d/new", "");
	gt_put("d/x", "replaced");
	CHECK_EQ(names("d", "new"), 3);
	CHECK_OK(rename("d/new", "d/x"));
	CHECK_EQ(names("d", "x"), 2);
	CHECK_EQ(gt_stat("d/x").st_size, 0);
	CHECK_OK(mkdir("e/up", 0755));
	CHECK_OK(rename("d/sub", "e/up"));
	CHECK_EQ(names("e/up", "y"), 1);
	CHECK_OK(unlink("e/up/y"));
	CHECK_EQ(names("e/up", NULL), 0);
	CHECK_OK(rmdir("e/up"));
}

static const struct gt_case cases[] = {
	{ "writing", writing },
	{ "attributes", attributes },
	{ "removing", removing },
	{ "renaming", renaming },
	{ "moving_directories", moving_directories },
	{ "links", links },
	{ "mapping", mapping },
	{ "listing", listing },
	{ NULL, NULL },
};

GT_MAIN(cases)
