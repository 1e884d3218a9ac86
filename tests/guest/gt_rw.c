/* SPDX-License-Identifier: Apache-2.0 */
/* The read and write family, positions, holes, sizes. */
#include "tests/guest/gt_dirs.h"

#include <limits.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static int new_file(const char *name, const char *text)
{
	int fd = (int)CHECK_OK(open(name, O_CREAT | O_TRUNC | O_RDWR, 0644));

	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void hostile(void)
{
	char *edge = gt_edge_page(), buf[16];
	struct iovec iov[3] = { { buf, 4 }, { BAD_PTR, 4 }, { buf, (size_t)-1 } };
	struct iovec *many = calloc(IOV_MAX + 1, sizeof(*many));
	int fd = new_file("f", "0123456789"), ro, wo;

	ro = (int)CHECK_OK(open("f", O_RDONLY));
	wo = (int)CHECK_OK(open("f", O_WRONLY));
	CHECK_ERR(read(-1, buf, 1), EBADF);
	CHECK_ERR(read(1 << 30, buf, 1), EBADF);
	CHECK_ERR(write(ro, buf, 1), EBADF);
	CHECK_ERR(read(wo, buf, 1), EBADF);
	CHECK_ERR(write(ro, BAD_PTR, 0), EBADF);
	CHECK_EQ(write(wo, BAD_PTR, 0), 0);
	CHECK_ERR(pread(fd, BAD_PTR, 4, 0), EFAULT);
	CHECK_ERR(pwrite(fd, BAD_PTR, 4, 0), EFAULT);
	CHECK_ERR(read(ro, (void *)-4096, 4), EFAULT);
	CHECK_ERR(pread(fd, (void *)0x7ffffffff000, SIZE_MAX, 0), EFAULT);
	CHECK_ERR(pread(fd, buf, SIZE_MAX, 0), EFAULT); /* wraps: access_ok fails */
	CHECK_ERR(pread(fd, buf, 1, INT64_MIN), EINVAL);
	CHECK_ERR(pread(fd, buf, 2, INT64_MAX), EINVAL);
	CHECK_ERR(pwrite(fd, buf, 2, INT64_MAX), EINVAL);
	/* A fault in the middle leaves what was moved. */
	CHECK_EQ(pread(fd, edge + 4096 - 3, 10, 0), 3);
	CHECK(!memcmp(edge + 4093, "012", 3));
	CHECK_EQ(pwrite(fd, edge + 4093, 10, 0), 3);
	CHECK_EQ(preadv(fd, iov, 2, 0), 4);
	CHECK_EQ(pwritev(fd, iov, 2, 0), 4);
	CHECK_ERR(preadv(fd, iov, 3, 0), EINVAL);
	iov[2].iov_len = SSIZE_MAX;
	CHECK_ERR(preadv(fd, iov, 3, 0), EFAULT);
	iov[2] = (struct iovec){ BAD_PTR, 1ull << 40 };
	CHECK_EQ(preadv(fd, iov, 3, 0), 4); /* the sum is cut to MAX_RW_COUNT */
	CHECK_ERR(preadv(fd, iov, -1, 0), EINVAL);
	CHECK_ERR(preadv(fd, many, IOV_MAX + 1, 0), EINVAL);
	CHECK_EQ(preadv(fd, many, IOV_MAX, 0), 0);
	CHECK_ERR(preadv(fd, (void *)(edge + 4096 - 16), 2, 0), EFAULT);
	for (int i = 0; i < IOV_MAX; i++)
		many[i] = (struct iovec){ buf + i % 8, 1 };
	CHECK_EQ(pwritev(fd, many, IOV_MAX, 0), IOV_MAX);
	CHECK_EQ(lseek(fd, 0, SEEK_END), IOV_MAX);
	CHECK_ERR(lseek(fd, 0, -1), EINVAL);
	CHECK_ERR(lseek(fd, -5000, SEEK_CUR), EINVAL);
	CHECK_ERR(lseek(fd, INT64_MAX, SEEK_END), EINVAL);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), IOV_MAX);
}

static void vectors(void)
{
	char a[4], b[8];
	struct iovec in[3] = { { a, 3 }, { NULL, 0 }, { b, 7 } };
	int fd = new_file("f", "0123456789");

	CHECK_EQ(lseek(fd, 1, SEEK_SET), 1);
	CHECK_EQ(readv(fd, in, 3), 9);
	CHECK(!memcmp(a, "123", 3) && !memcmp(b, "456789", 6));
	CHECK_EQ(readv(fd, in, 3), 0);
	CHECK_EQ(preadv(fd, in, 3, 5), 5);
	CHECK(!memcmp(a, "567", 3) && !memcmp(b, "89", 2));
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 10);
	CHECK_EQ(preadv2(fd, in, 1, 2, 0), 3);
	CHECK_EQ(lseek(fd, 2, SEEK_SET), 2);
	CHECK_EQ(preadv2(fd, in, 1, -1, 0), 3);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 5);
	CHECK_ERR(preadv2(fd, in, 1, -2, 0), EINVAL);
	CHECK_ERR(preadv2(fd, in, 1, 0, 1 << 20), EOPNOTSUPP);
	CHECK_EQ(pwritev2(fd, in, 1, 0, RWF_DSYNC), 3);
	CHECK_EQ(pwritev2(fd, in, 1, 0, RWF_SYNC | RWF_HIPRI), 3);
	CHECK_EQ(pwritev2(fd, in, 1, 0, RWF_APPEND), 3);
	CHECK_EQ(gt_stat("f").st_size, 13);
}

static void appending(void)
{
	char line[32], buf[64];
	int fd = new_file("f", ""), st;

	close(fd);
	for (int k = 0; k < 3; k++) {
		if (fork() == 0) {
			fd = open("f", O_WRONLY | O_APPEND);
			for (int i = 0; i < 100; i++) {
				memset(line, 'a' + k, 20);
				line[19] = '\n';
				if (write(fd, line, 20) != 20)
					_exit(1);
			}
			_exit(0);
		}
	}
	for (int k = 0; k < 3; k++) {
		CHECK_OK(wait(&st));
		CHECK_EQ(st, 0);
	}
	CHECK_EQ(gt_stat("f").st_size, 6000);
	fd = (int)CHECK_OK(open("f", O_RDWR | O_APPEND));
	for (int i = 0; i < 300; i++) {
		CHECK_EQ(read(fd, buf, 20), 20);
		for (int j = 1; j < 19; j++)
			CHECK_EQ(buf[j], buf[0]);
	}
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_EQ(write(fd, "x", 1), 1);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 6001);
	/* Off, and on again, by fcntl. */
	CHECK_OK(fcntl(fd, F_SETFL, 0));
	CHECK_EQ(pwrite(fd, "y", 1, 0), 1);
	CHECK_OK(fcntl(fd, F_SETFL, O_APPEND));
	CHECK_EQ(pwrite(fd, "z", 1, 0), 1);
	CHECK_EQ(gt_stat("f").st_size, 6002);
	CHECK_EQ(pread(fd, buf, 1, 0), 1);
	CHECK_EQ(buf[0], 'y');
}

static void holes(void)
{
	char buf[8192];
	const off_t far = 1ll << 33;
	int fd = new_file("f", "");

	CHECK_ERR(lseek(fd, 0, SEEK_DATA), ENXIO);
	CHECK_ERR(lseek(fd, 0, SEEK_HOLE), ENXIO);
	CHECK_EQ(pwrite(fd, "end", 3, far), 3);
	CHECK_EQ(gt_stat("f").st_size, far + 3);
	CHECK(gt_stat("f").st_blocks < 1000);
	CHECK_EQ(pread(fd, buf, sizeof(buf), 12345), sizeof(buf));
	for (size_t i = 0; i < sizeof(buf); i++)
		CHECK_EQ(buf[i], 0);
	CHECK_EQ(pread(fd, buf, 100, far), 3);
	CHECK_EQ(lseek(fd, 0, SEEK_HOLE), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_DATA) & ~0xfffffll, far & ~0xfffffll);
	CHECK_EQ(lseek(fd, far, SEEK_DATA), far);
	CHECK_EQ(lseek(fd, far, SEEK_HOLE), far + 3);
	CHECK_ERR(lseek(fd, far + 3, SEEK_DATA), ENXIO);
	CHECK_ERR(lseek(fd, -1, SEEK_DATA), ENXIO);
	CHECK_OK(ftruncate(fd, 5));
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), far + 3);
	CHECK_EQ(read(fd, buf, 1), 0);
	/* What was cut off does not come back. */
	fd = new_file("g", "0123456789");
	CHECK_OK(ftruncate(fd, 3));
	CHECK_OK(ftruncate(fd, 10));
	CHECK_EQ(pread(fd, buf, 20, 0), 10);
	CHECK(!memcmp(buf, "012\0\0\0\0\0\0\0", 10));
}

static volatile int xfsz;

static void on_xfsz(int sig)
{
	xfsz++;
}

static void size_limit(void)
{
	struct rlimit rl = { 100, RLIM_INFINITY };
	struct iovec iov[2] = { { (char[60]){ 0 }, 60 }, { (char[60]){ 0 }, 60 } };
	int fd = new_file("f", "");

	signal(SIGXFSZ, on_xfsz);
	CHECK_OK(setrlimit(RLIMIT_FSIZE, &rl));
	CHECK_EQ(writev(fd, iov, 2), 100);
	CHECK_EQ(xfsz, 0);
	CHECK_ERR(writev(fd, iov, 2), EFBIG);
	CHECK_EQ(xfsz, 1);
	CHECK_ERR(pwrite(fd, "x", 1, 100), EFBIG);
	CHECK_ERR(pwrite(fd, "x", 1, 5000), EFBIG);
	CHECK_EQ(xfsz, 3);
	CHECK_EQ(pwrite(fd, "xyz", 3, 99), 1);
	CHECK_ERR(ftruncate(fd, 101), EFBIG);
	CHECK_ERR(truncate("f", 101), EFBIG);
	CHECK_EQ(xfsz, 5);
	CHECK_OK(ftruncate(fd, 100));
	CHECK_ERR(fallocate(fd, 0, 0, 101), EFBIG);
	signal(SIGXFSZ, SIG_IGN);
	CHECK_ERR(pwrite(fd, "x", 1, 100), EFBIG);
	CHECK_EQ(gt_stat("f").st_size, 100);
	rl.rlim_cur = RLIM_INFINITY;
	CHECK_OK(setrlimit(RLIMIT_FSIZE, &rl));
	CHECK_EQ(pwrite(fd, "x", 1, 100), 1);
}

static void dies_of_xfsz(void)
{
	struct rlimit rl = { 1, 1 }, core = { 0, 0 };
	int fd = new_file("f", "x");

	setrlimit(RLIMIT_CORE, &core);
	CHECK_OK(setrlimit(RLIMIT_FSIZE, &rl));
	_exit(write(fd, "x", 1) == -1 ? 1 : 2);
}

static void size_limit_kills(void)
{
	CHECK_EQ(gt_child(dies_of_xfsz), 256 + SIGXFSZ);
}

/* Data larger than any buffer on the way, read back in other pieces, also by other processes. */
static void big_data(void)
{
	const size_t size = 3 << 20;
	unsigned char *a = malloc(size), *b = malloc(size);
	uint32_t x = 1;
	int fd = new_file("f", ""), fd2;

	for (size_t i = 0; i < size; i++)
		a[i] = (unsigned char)(x = x * 1103515245 + 12345, x >> 16);
	CHECK_EQ(write(fd, a, size), size);
	CHECK_EQ(gt_stat("f").st_size, size);
	CHECK_EQ(pread(fd, b, size, 0), size);
	CHECK(!memcmp(a, b, size));
	memset(b, 0, size);
	fd2 = (int)CHECK_OK(open("f", O_RDONLY));
	for (size_t pos = 0; pos < size;) {
		ssize_t n = CHECK_OK(read(fd2, b + pos, 77777));

		CHECK(n > 0);
		pos += (size_t)n;
	}
	CHECK(!memcmp(a, b, size));
	for (int i = 0; i < 200; i++) {
		size_t pos = (x = x * 1103515245 + 12345, (x >> 4) % (size - 9000)), n = x >> 20;

		memset(a + pos, i, n);
		CHECK_EQ(pwrite(fd, a + pos, n, (off_t)pos), n);
	}
	CHECK_EQ(pread(fd2, b, size, 0), size);
	CHECK(!memcmp(a, b, size));
	CHECK_EQ(lseek(fd, 0, SEEK_END), size);
}

static void shared_position(void)
{
	char buf[100];
	int fd = new_file("f", "abc"), fd2 = (int)CHECK_OK(dup(fd)), st;

	/* One position for duplicates and for children. */
	CHECK_EQ(lseek(fd2, 1, SEEK_SET), 1);
	CHECK_EQ(read(fd, buf, 1), 1);
	if (fork() == 0)
		_exit(read(fd2, buf, 1) != 1 || buf[0] != 'c');
	CHECK_OK(wait(&st));
	CHECK_EQ(st, 0);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 3);
	CHECK_EQ(write(fd2, "d", 1), 1);
	CHECK(gt_is("f", "abcd"));
	CHECK_EQ(lseek(fd, 1000, SEEK_CUR), 1004);
	CHECK_EQ(read(fd, buf, 1), 0);
	CHECK_EQ(gt_stat("f").st_size, 4);
}

static void allocation(void)
{
	struct stat st;
	char buf[16];
	int fd = new_file("f", "0123456789"), ro = (int)CHECK_OK(open("f", O_RDONLY)), p[2];

	CHECK_ERR(fallocate(-1, 0, 0, 1), EBADF);
	CHECK_ERR(fallocate(ro, 0, 0, 1), EBADF);
	CHECK_ERR(fallocate(fd, 0, 0, 0), EINVAL);
	CHECK_ERR(fallocate(fd, 0, -1, 10), EINVAL);
	CHECK_ERR(fallocate(fd, 0, 0, -10), EINVAL);
	CHECK_ERR(fallocate(fd, 0, INT64_MAX, INT64_MAX), EFBIG);
	CHECK_ERR(fallocate(fd, 1 << 20, 0, 10), EOPNOTSUPP);
	CHECK_ERR(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10), EOPNOTSUPP);
	CHECK_ERR(fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_COLLAPSE_RANGE, 0, 4096), EOPNOTSUPP);
	CHECK_ERR(fallocate((int)CHECK_OK(open(".", O_RDONLY)), 0, 0, 1), EBADF);
	CHECK_OK(pipe(p));
	CHECK_ERR(fallocate(p[1], 0, 0, 1), ESPIPE);
	CHECK_ERR(fallocate((int)CHECK_OK(open("/dev/null", O_RDWR)), 0, 0, 1), ENODEV);
	CHECK_OK(fallocate(fd, 0, 0, 5));
	CHECK(gt_is("f", "0123456789"));
	CHECK_OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 100000));
	CHECK_EQ(gt_stat("f").st_size, 10);
	CHECK_OK(fallocate(fd, 0, 20, 80));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_size, 100);
	CHECK_OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3));
	CHECK_EQ(pread(fd, buf, 10, 0), 10);
	CHECK(!memcmp(buf, "01\0\0\0" "56789", 10));
	CHECK_OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20));
	CHECK_EQ(gt_stat("f").st_size, 100);
	CHECK_ERR(ftruncate(ro, 0), EINVAL);
	CHECK_ERR(ftruncate(fd, -1), EINVAL);
	CHECK_ERR(ftruncate(p[1], 0), EINVAL);
	CHECK_ERR(truncate("none", 0), ENOENT);
	CHECK_ERR(truncate(BAD_PTR, 0), EFAULT);
	CHECK_ERR(truncate(".", 0), EISDIR);
	CHECK_ERR(truncate("f", -1), EINVAL);
	CHECK_OK(truncate("f", 1));
	CHECK_OK(ftruncate(fd, 1 << 20));
	CHECK(gt_stat("f").st_blocks < 100);
}

static void copying(void)
{
	off_t a = 2, b = 0;
	loff_t la = 0, lb = 0;
	int in = new_file("in", "0123456789"), out = new_file("out", ""), p[2], dir, app;

	dir = (int)CHECK_OK(open(".", O_RDONLY));
	app = (int)CHECK_OK(open("out", O_WRONLY | O_APPEND));
	CHECK_OK(pipe(p));
	CHECK_ERR(sendfile(out, -1, NULL, 1), EBADF);
	CHECK_ERR(sendfile(-1, in, NULL, 1), EBADF);
	CHECK_ERR(syscall(SYS_sendfile, out, in, BAD_PTR, 1), EFAULT);
	a = -1;
	CHECK_ERR(sendfile(out, in, &a, 1), EINVAL);
	a = 2;
	CHECK_ERR(sendfile(out, dir, &a, 1), EINVAL);
	CHECK_ERR(sendfile(dir, in, &a, 1), EBADF);
	CHECK_ERR(sendfile(app, in, &a, 1), EINVAL);
	CHECK_ERR(sendfile(out, p[0], &a, 1), ESPIPE);
	CHECK_EQ(sendfile(out, in, &a, 0), 0);
	CHECK_EQ(sendfile(out, in, &a, 3), 3);
	CHECK_EQ(a, 5);
	CHECK_EQ(lseek(in, 0, SEEK_CUR), 10);
	CHECK(gt_is("out", "234"));
	CHECK_EQ(sendfile(p[1], in, &b, 100), 10);
	CHECK_ERR(copy_file_range(in, &la, -1, &lb, 1, 0), EBADF);
	CHECK_ERR(copy_file_range(in, &la, out, &lb, 1, 99), EINVAL);
	CHECK_ERR(copy_file_range(in, &la, app, NULL, 1, 0), EBADF);
	CHECK_ERR(copy_file_range(dir, &la, out, &lb, 1, 0), EISDIR);
	CHECK_ERR(copy_file_range(in, NULL, p[1], NULL, 1, 0), EINVAL);
	CHECK_ERR(syscall(SYS_copy_file_range, in, BAD_PTR, out, NULL, 1, 0), EFAULT);
	la = 4;
	CHECK_ERR(copy_file_range(in, &la, in, &lb, 5, 0), EINVAL); /* overlaps */
	lb = 20;
	la = 0;
	CHECK_EQ(copy_file_range(in, &la, in, &lb, 5, 0), 5);
	CHECK_EQ(lb, 25);
	CHECK_EQ(gt_stat("in").st_size, 25);
	la = 100;
	CHECK_EQ(copy_file_range(in, &la, out, NULL, 5, 0), 0);
	la = 8, lb = 3;
	CHECK_EQ(copy_file_range(in, &la, out, &lb, 2, 0), 2);
	CHECK(gt_is("out", "23489"));
}

static const struct gt_case cases[] = {
	{ "hostile", hostile },
	{ "vectors", vectors },
	{ "appending", appending },
	{ "holes", holes },
	{ "size_limit", size_limit },
	{ "size_limit_kills", size_limit_kills },
	{ "big_data", big_data },
	{ "shared_position", shared_position },
	{ "allocation", allocation },
	{ "copying", copying },
	{ NULL, NULL },
};

GT_MAIN_DIRS(cases)
