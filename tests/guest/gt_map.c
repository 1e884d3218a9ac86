/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files on each file system: coherence, private copies, truncation, lifetime; memfd and its seals. */
#include "tests/guest/gt_dirs.h"

#include <linux/memfd.h>
#include <setjmp.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define PAGE 4096

static sigjmp_buf jump;
static volatile int bus_signal;

static void on_fault(int sig)
{
	bus_signal = sig;
	siglongjmp(jump, 1);
}

static void catch_faults(void)
{
	signal(SIGBUS, on_fault);
	signal(SIGSEGV, on_fault);
}

/* The signal a read (or a write) of one byte raises, or 0. */
static int touch(volatile char *p, int write_it)
{
	bus_signal = 0;
	if (!sigsetjmp(jump, 1)) {
		if (write_it)
			*p = 'T';
		else
			(void)*p;
	}
	return bus_signal;
}

static int new_file(const char *name, size_t size)
{
	int fd = (int)CHECK_OK(open(name, O_CREAT | O_RDWR | O_TRUNC, 0644));

	CHECK_OK(ftruncate(fd, (off_t)size));
	return fd;
}

static char *map(int fd, size_t len, int prot, int flags, off_t off)
{
	char *p = mmap(NULL, len, prot, flags, fd, off);

	if (p == MAP_FAILED)
		gt_fail(__FILE__, __LINE__, "mmap failed with errno %d", errno);
	return p;
}

static void refused(void)
{
	int fd = new_file("f", PAGE), ro, wo, p[2];

#define NO_MAP(d, prot, flags, off, err) \
	CHECK_ERR((long)mmap(NULL, PAGE, prot, flags, d, off), err)
	ro = (int)CHECK_OK(open("f", O_RDONLY));
	wo = (int)CHECK_OK(open("f", O_WRONLY));
	CHECK_OK(pipe(p));
	NO_MAP(-1, PROT_READ, MAP_PRIVATE, 0, EBADF);
	NO_MAP(wo, PROT_READ, MAP_PRIVATE, 0, EACCES);
	NO_MAP(wo, PROT_WRITE, MAP_SHARED, 0, EACCES);
	NO_MAP(ro, PROT_READ | PROT_WRITE, MAP_SHARED, 0, EACCES);
	NO_MAP(fd, PROT_READ, MAP_PRIVATE, 100, EINVAL);
	NO_MAP(fd, PROT_READ, 0, 0, EINVAL);
	NO_MAP(p[0], PROT_READ, MAP_PRIVATE, 0, ENODEV);
	NO_MAP((int)CHECK_OK(open(".", O_RDONLY)), PROT_READ, MAP_PRIVATE, 0, ENODEV);
	NO_MAP(fd, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, 0, EOPNOTSUPP);
	CHECK_ERR((long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0), EINVAL);
	CHECK_OK(mprotect(map(ro, PAGE, PROT_READ, MAP_PRIVATE, 0), PAGE, PROT_READ | PROT_WRITE));
	CHECK_ERR(mprotect(map(ro, PAGE, PROT_READ, MAP_SHARED, 0), PAGE, PROT_READ | PROT_WRITE), EACCES);
	CHECK_OK(mprotect(map(fd, PAGE, PROT_READ, MAP_SHARED, 0), PAGE, PROT_READ | PROT_WRITE));
#undef NO_MAP
}

/* read, write and all shared mappings are views of the same bytes. */
static void coherence(void)
{
	char buf[16];
	int fd = new_file("f", 3 * PAGE), fd2;
	char *a, *b, *c;

	CHECK_EQ(pwrite(fd, "before", 6, PAGE), 6);
	a = map(fd, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	CHECK(!memcmp(a + PAGE, "before", 6));
	CHECK_EQ(pwrite(fd, "after!", 6, PAGE), 6);
	CHECK(!memcmp(a + PAGE, "after!", 6));
	memcpy(a + 100, "mapped", 6);
	CHECK_EQ(pread(fd, buf, 6, 100), 6);
	CHECK(!memcmp(buf, "mapped", 6));
	fd2 = (int)CHECK_OK(open("f", O_RDWR));
	b = map(fd2, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	CHECK(!memcmp(b + 100, "mapped", 6));
	b[101] = 'A';
	CHECK_EQ(a[101], 'A');
	c = map(fd2, PAGE, PROT_READ, MAP_SHARED, PAGE);
	CHECK(!memcmp(c, "after!", 6));
	CHECK_OK(close(fd));
	CHECK_OK(close(fd2));
	a[PAGE] = 'X';
	CHECK_EQ(c[0], 'X');
	CHECK_OK(msync(a, 3 * PAGE, MS_SYNC));
	CHECK_OK(munmap(a, 3 * PAGE));
	fd = (int)CHECK_OK(open("f", O_RDONLY));
	CHECK_EQ(pread(fd, buf, 6, PAGE), 6);
	CHECK(!memcmp(buf, "Xfter!", 6));
}

static void between_processes(void)
{
	int fd = new_file("f", PAGE), st;
	volatile char *a = map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	char buf[8];

	if (fork() == 0) {
		a[0] = 'c';
		_exit(pwrite(fd, "w", 1, 1) != 1);
	}
	CHECK_OK(wait(&st));
	CHECK_EQ(st, 0);
	CHECK(a[0] == 'c' && a[1] == 'w');
	if (fork() == 0) {
		int own = open("f", O_RDWR);
		char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);

		p[2] = 'o';
		_exit(!(p[0] == 'c' && p[1] == 'w'));
	}
	CHECK_OK(wait(&st));
	CHECK_EQ(st, 0);
	CHECK_EQ(a[2], 'o');
	CHECK_EQ(pread(fd, buf, 3, 0), 3);
	CHECK(!memcmp(buf, "cwo", 3));
}

static void private_copies(void)
{
	int fd = new_file("f", 2 * PAGE), ro;
	char *p, buf[8];

	CHECK_EQ(pwrite(fd, "file", 4, 0), 4);
	ro = (int)CHECK_OK(open("f", O_RDONLY));
	p = map(ro, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0);
	CHECK(!memcmp(p, "file", 4));
	memcpy(p, "mine", 4);
	CHECK_EQ(pread(fd, buf, 4, 0), 4);
	CHECK(!memcmp(buf, "file", 4));
	CHECK_EQ(pwrite(fd, "late", 4, 0), 4);
	CHECK(!memcmp(p, "mine", 4));
	if (fork() == 0) {
		p[0] = 'X';
		_exit(0);
	}
	CHECK_OK(wait(NULL));
	CHECK_EQ(p[0], 'm');
	CHECK_OK(madvise(p, PAGE, MADV_DONTNEED));
	CHECK(!memcmp(p, "late", 4));
}

/* Behind the end: the rest of the last page is zeroes, whole pages are SIGBUS. */
static void ends(void)
{
	int fd = new_file("f", 0);
	char *p, buf[8];

	catch_faults();
	CHECK_EQ(write(fd, "abc", 3), 3);
	p = map(fd, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	CHECK_EQ(p[3], 0);
	CHECK_EQ(touch(p + 10, 1), 0); /* beyond the end, in the page: allowed, and not the file's */
	CHECK_EQ(gt_stat("f").st_size, 3);
	CHECK_EQ(touch(p + PAGE, 0), SIGBUS);
	CHECK_EQ(touch(p + PAGE, 1), SIGBUS);
	CHECK_OK(ftruncate(fd, 2 * PAGE));
	CHECK_EQ(touch(p + PAGE, 1), 0);
	CHECK_EQ(pread(fd, buf, 1, PAGE), 1);
	CHECK_EQ(buf[0], 'T');
	CHECK_OK(ftruncate(fd, 1));
	CHECK_EQ(touch(p + PAGE, 0), SIGBUS);
	CHECK_EQ(p[0], 'a');
	CHECK_EQ(p[1], 0);
	CHECK_OK(ftruncate(fd, PAGE));
	CHECK_EQ(pread(fd, buf, 3, 0), 3);
	CHECK(!memcmp(buf, "a\0\0", 3));
	CHECK_OK(ftruncate(fd, 0));
	CHECK_EQ(touch(p, 0), SIGBUS);
}

static void lifetime(void)
{
	int fd = new_file("f", PAGE);
	char *p = map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);

	strcpy(p, "kept");
	CHECK_OK(close(fd));
	CHECK_OK(unlink("f"));
	CHECK_EQ(strcmp(p, "kept"), 0);
	fd = new_file("f", PAGE); /* another file */
	CHECK_EQ(pwrite(fd, "other", 6, 0), 6);
	CHECK_EQ(strcmp(p, "kept"), 0);
	CHECK_OK(rename("f", "g"));
	p[0] = 'K';
	CHECK(gt_stat("g").st_size == PAGE);
}

/* A program mapped before its file is written, as linkers and databases do. */
static void written_later(void)
{
	char buf[PAGE];
	int fd = (int)CHECK_OK(open("f", O_CREAT | O_RDWR, 0600));
	char *p;

	for (int i = 0; i < 20; i++) {
		memset(buf, 'a' + i, sizeof(buf));
		CHECK_EQ(write(fd, buf, sizeof(buf)), sizeof(buf));
	}
	p = map(fd, 20 * PAGE, PROT_READ, MAP_PRIVATE, 0);
	for (int i = 0; i < 20; i++)
		CHECK(p[i * PAGE] == 'a' + i && p[i * PAGE + 4095] == 'a' + i);
	for (int i = 0; i < 20; i += 2) {
		memset(buf, 'A' + i, sizeof(buf));
		CHECK_EQ(pwrite(fd, buf, sizeof(buf), i * PAGE), sizeof(buf));
	}
	for (int i = 0; i < 20; i++)
		CHECK_EQ(p[i * PAGE], (i % 2 ? 'a' : 'A') + i);
	CHECK_OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE));
	CHECK_EQ(p[PAGE], 0);
	/* Data moves from one mapping to another file through write(2) from mapped memory. */
	CHECK_EQ(pwrite(fd, p + 2 * PAGE, PAGE, 0), PAGE);
	CHECK_EQ(p[0], 'C');
}

static int memfd(unsigned flags)
{
	return (int)CHECK_OK(syscall(SYS_memfd_create, "name", flags));
}

static void memfds(void)
{
	char big[260], link[64], path[64], *p;
	struct stat st;
	int fd, again;

	CHECK_ERR(syscall(SYS_memfd_create, BAD_PTR, 0), EFAULT);
	CHECK_ERR(syscall(SYS_memfd_create, "x", 0x4000), EINVAL);
	memset(big, 'x', sizeof(big));
	big[250] = 0;
	CHECK_ERR(syscall(SYS_memfd_create, big, 0), EINVAL);
	big[249] = 0;
	CHECK_OK(close((int)CHECK_OK(syscall(SYS_memfd_create, big, 0))));
	fd = memfd(MFD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | 0100000);
	CHECK_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_SEAL);
	CHECK_ERR(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), EPERM);
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_mode, S_IFREG | 0777);
	CHECK_EQ(st.st_nlink, 0);
	CHECK_EQ(write(fd, "data", 4), 4);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	memset(link, 0, sizeof(link));
	CHECK(readlink(path, link, sizeof(link)) > 0);
	CHECK_EQ(strcmp(link, "/memfd:name (deleted)"), 0);
	again = (int)CHECK_OK(open(path, O_RDONLY));
	CHECK_EQ(read(again, link, sizeof(link)), 4);
	p = map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	p[0] = 'D';
	CHECK_EQ(pread(again, link, 1, 0), 1);
	CHECK_EQ(link[0], 'D');
	if (!strcmp(gt_kind, "grant")) /* a tmpfs says EPERM: its files are sealed against seals */
		CHECK_ERR(fcntl(new_file("f", 0), F_ADD_SEALS, F_SEAL_GROW), EINVAL);
}

static void seals(void)
{
	int fd = memfd(MFD_ALLOW_SEALING), ro;
	char path[64], *p, *r;

	CHECK_EQ(fcntl(fd, F_GET_SEALS), 0);
	CHECK_ERR(fcntl(fd, F_ADD_SEALS, 0x8000), EINVAL);
	CHECK_OK(ftruncate(fd, 2 * PAGE));
	CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
	CHECK_ERR(ftruncate(fd, 3 * PAGE), EPERM);
	CHECK_ERR(pwrite(fd, "x", 1, 2 * PAGE), EPERM);
	CHECK_ERR(fallocate(fd, 0, 0, 3 * PAGE), EPERM);
	CHECK_OK(ftruncate(fd, PAGE));
	CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	CHECK_ERR(ftruncate(fd, 0), EPERM);
	CHECK_OK(ftruncate(fd, PAGE));
	p = map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	CHECK_ERR(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EBUSY);
	p[0] = 'p';
	CHECK_OK(munmap(p, PAGE));
	CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	CHECK_ERR(write(fd, "x", 1), EPERM);
	CHECK_ERR(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE), EPERM);
	CHECK_ERR((long)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), EPERM);
	r = map(fd, PAGE, PROT_READ, MAP_SHARED, 0);
	CHECK_EQ(r[0], 'p');
	CHECK_ERR(mprotect(r, PAGE, PROT_READ | PROT_WRITE), EACCES);
	p = map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0);
	p[0] = 'q';
	CHECK_EQ(r[0], 'p');
	CHECK_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE);
	CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL));
	CHECK_ERR(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), EPERM);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = (int)CHECK_OK(open(path, O_RDONLY));
	CHECK_ERR(fcntl(ro, F_ADD_SEALS, F_SEAL_GROW), EPERM);
	fd = memfd(MFD_ALLOW_SEALING);
	CHECK_OK(ftruncate(fd, PAGE));
	p = map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	p[0] = 'f';
	CHECK_ERR(write(fd, "x", 1), EPERM);
	CHECK_ERR((long)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), EPERM);
}

static const struct gt_case cases[] = {
	{ "refused", refused },
	{ "coherence", coherence },
	{ "between_processes", between_processes },
	{ "private_copies", private_copies },
	{ "ends", ends },
	{ "lifetime", lifetime },
	{ "written_later", written_later },
	{ "memfds", memfds },
	{ "seals", seals },
	{ NULL, NULL },
};

GT_MAIN_DIRS(cases)
