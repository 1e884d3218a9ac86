/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides of the attacks on grants. `flip A B` runs on the host and exchanges two names until it is killed. The
 * others run inside sbx: `race DIR N` uses DIR/f by all kinds of calls while it is exchanged; `ro DIR FILE` tries every
 * way to change a read-only grant, as TAP.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int flip(const char *a, const char *b)
{
	for (unsigned i = 0;; i++) {
		if (i % 64 == 0)
			usleep(i / 64 % 8 * 1000); /* long enough for whole sequences of the guest, and far too short */
		if (syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) < 0 && errno != ENOENT)
			return 1;
	}
}

static unsigned seen_inside, seen_outside;

static void look(int fd)
{
	char buf[32] = "";

	if (fd < 0)
		return;
	if (read(fd, buf, sizeof(buf) - 1) > 0) {
		seen_inside += !strncmp(buf, "inside", 6);
		seen_outside += strncmp(buf, "inside", 6) != 0;
	}
	close(fd);
}

static int race(const char *dir, int n)
{
	time_t start = time(NULL);
	char f[4096], made[4096], link_name[4096], other[4096];

	snprintf(f, sizeof(f), "%s/f", dir);
	snprintf(made, sizeof(made), "%s/made", dir);
	snprintf(link_name, sizeof(link_name), "%s/linked", dir);
	snprintf(other, sizeof(other), "%s/moved", dir);
	/* Cached attributes live for a second: long enough to meet both sides. */
	for (int i = 0; i < n || (!seen_inside && time(NULL) - start < 20) || time(NULL) - start < 4; i++) {
		int d, fd;

		look(open(f, O_RDONLY));
		d = open(dir, O_RDONLY | O_DIRECTORY);
		if (d >= 0) {
			look(openat(d, "f", O_RDONLY));
			look(openat(d, "../outside/f", O_RDONLY));
			close(d);
		}
		fd = open(f, O_WRONLY | O_APPEND);
		if (fd >= 0 && i % 16 == 0)
			(void)!write(fd, "x", 1);
		close(fd);
		fd = open(made, O_WRONLY | O_CREAT, 0644);
		close(fd);
		if (i % 4 == 0) {
			(void)!link(f, link_name);
			(void)!rename(link_name, other);
			(void)!chmod(f, 0600);
			(void)!truncate(made, 3);
			unlink(other);
			unlink(made);
		}
	}
	printf("inside %u outside %u\n", seen_inside, seen_outside);
	return seen_outside != 0;
}

static unsigned n_tap, n_failed;

static void must_fail(long r, const char *what)
{
	bool ok = r < 0;

	if (!ok)
		n_failed++;
	printf("%sok %u - ro: %s (errno %d)\n", ok ? "" : "not ", ++n_tap, what, r < 0 ? errno : 0);
}

/* Whatever an fd that was opened for reading lets through. */
static void try_fd(int fd, const char *dir)
{
	char name[4096];
	long flags = 0;
	void *p;

	must_fail(write(fd, "x", 1), "write to an fd for reading");
	must_fail(ftruncate(fd, 0), "ftruncate");
	must_fail(fchmod(fd, 0777), "fchmod");
	must_fail(fchown(fd, 1, 1), "fchown");
	must_fail(futimens(fd, NULL), "futimens");
	must_fail(fsetxattr(fd, "user.x", "y", 1, 0), "fsetxattr");
	must_fail(fallocate(fd, 0, 0, 4096), "fallocate");
	must_fail(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), "punch a hole");
	must_fail(ioctl(fd, FS_IOC_SETFLAGS, &flags), "FS_IOC_SETFLAGS");
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must_fail(p == MAP_FAILED ? -1 : 0, "shared writable mapping");
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	must_fail(p == MAP_FAILED ? -1 : mprotect(p, 4096, PROT_READ | PROT_WRITE), "mprotect of a shared mapping");
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	must_fail(open(name, O_RDWR), "open again through /proc/self/fd");
	must_fail(open(name, O_WRONLY | O_TRUNC), "truncate through /proc/self/fd");
	must_fail(truncate(name, 0), "truncate(2) through /proc/self/fd");
	must_fail(chmod(name, 0777), "chmod through /proc/self/fd");
	must_fail(linkat(AT_FDCWD, name, AT_FDCWD, "stolen", AT_SYMLINK_FOLLOW), "link it into a writable grant");
	must_fail(copy_file_range(fd, NULL, fd, NULL, 1, 0), "copy_file_range");
}

static int try_ro(const char *dir, const char *file)
{
	char f[4096], n[4096];
	int fd;

	snprintf(f, sizeof(f), "%s/%s", dir, file);
	snprintf(n, sizeof(n), "%s/new", dir);
	must_fail(open(f, O_WRONLY), "open O_WRONLY");
	must_fail(open(f, O_RDWR), "open O_RDWR");
	must_fail(open(f, O_WRONLY | O_APPEND), "open O_APPEND");
	must_fail(open(f, O_RDONLY | O_TRUNC), "open O_RDONLY | O_TRUNC");
	must_fail(open(f, O_ACCMODE | O_TRUNC), "open with access mode 3");
	must_fail(open(n, O_CREAT | O_RDONLY, 0644), "create");
	must_fail(open(dir, O_TMPFILE | O_RDWR, 0644), "O_TMPFILE");
	must_fail(truncate(f, 0), "truncate");
	must_fail(chmod(f, 04755), "chmod");
	must_fail(chown(f, 1, 1), "chown");
	must_fail(utimensat(AT_FDCWD, f, NULL, 0), "utimensat");
	must_fail(rename(f, n), "rename");
	must_fail(rename(f, "moved-out"), "rename out of it");
	close(open("own", O_CREAT | O_WRONLY, 0644));
	must_fail(rename("own", f), "rename over a file");
	must_fail(syscall(SYS_renameat2, AT_FDCWD, "own", AT_FDCWD, f, RENAME_EXCHANGE), "exchange");
	must_fail(link(f, n), "link");
	must_fail(link(f, "stolen"), "link out of it");
	must_fail(link("own", n), "link into it");
	must_fail(symlink("x", n), "symlink");
	must_fail(unlink(f), "unlink");
	must_fail(mkdir(n, 0755), "mkdir");
	must_fail(rmdir(dir), "rmdir of its root");
	must_fail(mknod(n, S_IFIFO | 0644, 0), "mknod of a FIFO");
	must_fail(mknod(n, S_IFCHR | 0644, 0x103), "mknod of a device");
	must_fail(setxattr(f, "user.x", "y", 1, 0), "setxattr");
	must_fail(removexattr(f, "user.x"), "removexattr");
	must_fail(syscall(SYS_mount, "none", dir, "", 32ul /* REMOUNT */, NULL), "remount");
	must_fail(syscall(SYS_umount2, dir, 2), "umount");
	fd = open(f, O_RDONLY);
	must_fail(fd < 0 ? 0 : -1, "reading works");
	if (fd >= 0)
		try_fd(fd, dir);
	printf("1..%u\n", n_tap);
	return n_failed != 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 4 && !strcmp(argv[1], "flip"))
		return flip(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "race"))
		return race(argv[2], atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "ro"))
		return try_ro(argv[2], argv[3]);
	return 2;
}
