/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors, and bytes in and out of files. */
#include <limits.h>
#include <linux/close_range.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "tests/guest/gt.h"

static int new_file(const char *name)
{
	return (int)CHECK_OK(open(name, O_CREAT | O_RDWR | O_TRUNC, 0644));
}

static void bad_args(void)
{
	char *edge = gt_edge_page(), c;
	struct iovec iov = { edge, (size_t)-1 };
	int fd = new_file("f");

	CHECK_ERR(read(99, &c, 1), EBADF);
	CHECK_ERR(read(-1, &c, 1), EBADF);
	CHECK_ERR(write(fd, BAD_PTR, 1), EFAULT);
	CHECK_EQ(write(fd, edge + 4090, 100), 6);
	CHECK_OK(lseek(fd, 0, SEEK_SET));
	CHECK_ERR(read(fd, BAD_PTR, 1), EFAULT);
	CHECK_EQ(read(fd, edge + 4093, 100), 3);
	CHECK_ERR(pread(fd, &c, 1, -1), EINVAL);
	CHECK_ERR(pwrite(fd, &c, 1, -1), EINVAL);
	CHECK_ERR(readv(fd, &iov, 1), EINVAL);
	CHECK_ERR(readv(fd, BAD_PTR, 1), EFAULT);
	CHECK_ERR(syscall(SYS_writev, fd, &iov, IOV_MAX + 1), EINVAL);
	CHECK_EQ(readv(fd, NULL, 0), 0);
	CHECK_ERR(lseek(fd, -1, SEEK_SET), EINVAL);
	CHECK_ERR(lseek(fd, 0, 77), EINVAL);
	CHECK_ERR(ftruncate(fd, -1), EINVAL);
	CHECK_ERR(fcntl(fd, 12345), EINVAL);
	CHECK_ERR(ioctl(fd, TIOCGWINSZ, edge), ENOTTY);
	CHECK_ERR(dup2(fd, -1), EBADF);
	CHECK_ERR(dup3(fd, fd, 0), EINVAL);
	CHECK_ERR(dup3(fd, 50, 1), EINVAL);
	CHECK_ERR(syscall(SYS_close_range, 9, 5, 0), EINVAL);
	CHECK_ERR(syscall(SYS_close_range, 5, 9, 64), EINVAL);
}

static void positions(void)
{
	struct iovec iov[3] = { { (char[]){ "ab" }, 2 }, { NULL, 0 }, { (char[]){ "cde" }, 3 } };
	char buf[32];
	int fd = new_file("f"), ap;

	CHECK_EQ(writev(fd, iov, 3), 5);
	CHECK_EQ(pwrite(fd, "Z", 1, 8), 1);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 5);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 9);
	CHECK_EQ(pread(fd, buf, sizeof(buf), 0), 9);
	CHECK(!memcmp(buf, "abcde\0\0\0Z", 9));
	CHECK_EQ(pread(fd, buf, 1, 100), 0);
	CHECK_EQ(lseek(fd, 100, SEEK_SET), 100);
	CHECK_EQ(read(fd, buf, 1), 0);
	ap = (int)CHECK_OK(open("f", O_WRONLY | O_APPEND));
	CHECK_EQ(write(ap, "1", 1), 1);
	CHECK_EQ(lseek(ap, 0, SEEK_CUR), 10);
	CHECK_EQ(pwrite(ap, "2", 1, 0), 1); /* pwrite(2), BUGS: O_APPEND wins */
	CHECK_EQ(lseek(fd, 0, SEEK_END), 11);
	CHECK_ERR(read(ap, buf, 1), EBADF);
	CHECK_EQ(pwritev2(fd, iov, 1, -1, RWF_APPEND), 2);
	CHECK_ERR(pwritev2(fd, iov, 1, 0, 1 << 30), EOPNOTSUPP);
	CHECK_OK(ftruncate(fd, 3));
	CHECK_EQ(pread(fd, buf, sizeof(buf), 0), 3);
	CHECK_OK(ftruncate(fd, 6));
	CHECK_EQ(pread(fd, buf, sizeof(buf), 0), 6);
	CHECK(!memcmp(buf, "abc\0\0\0", 6));
	CHECK_ERR(ftruncate((int)CHECK_OK(open("f", O_RDONLY)), 1), EINVAL);
	CHECK_ERR(truncate(".", 0), EISDIR);
}

static void descriptors(void)
{
	struct rlimit rl = { 20, 20 };
	int fd = new_file("f"), d, last = -1;

	d = (int)CHECK_OK(dup(fd));
	CHECK_EQ(write(fd, "12", 2), 2);
	CHECK_EQ(lseek(d, 0, SEEK_CUR), 2);
	CHECK_EQ(dup2(fd, fd), fd);
	CHECK_ERR(dup2(99, 99), EBADF);
	CHECK_EQ(fcntl(fd, F_DUPFD, 15), 15);
	CHECK_EQ(fcntl(fd, F_DUPFD_CLOEXEC, 15), 16);
	CHECK_EQ(fcntl(16, F_GETFD), FD_CLOEXEC);
	CHECK_OK(fcntl(16, F_SETFD, 0));
	CHECK_EQ(fcntl(16, F_GETFD), 0);
	CHECK_OK(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK | O_CREAT));
	CHECK_EQ(fcntl(d, F_GETFL), O_RDWR | O_APPEND | O_NONBLOCK | 0100000);
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &rl));
	while ((d = dup(fd)) >= 0)
		last = d;
	CHECK_EQ(errno, EMFILE);
	CHECK_EQ(last, 19);
	CHECK_ERR(open("new", O_CREAT | O_RDWR, 0600), EMFILE);
	CHECK_ERR(access("new", F_OK), ENOENT);
	CHECK_ERR(dup2(fd, 20), EBADF);
	CHECK_ERR(fcntl(fd, F_DUPFD, 20), EINVAL);
	CHECK_OK(syscall(SYS_close_range, 17, 30, CLOSE_RANGE_CLOEXEC));
	CHECK_EQ(fcntl(18, F_GETFD), FD_CLOEXEC);
	CHECK_OK(syscall(SYS_close_range, 17, ~0u, 0));
	CHECK_ERR(close(18), EBADF);
	CHECK_EQ(open("f", O_RDONLY), 17);
}

static volatile int got_signal;

static void on_signal(int sig)
{
	got_signal = sig;
}

static void size_limit(void)
{
	struct rlimit rl = { 10, 10 };
	int fd = new_file("f"), p[2];

	signal(SIGXFSZ, on_signal);
	signal(SIGPIPE, on_signal);
	CHECK_OK(setrlimit(RLIMIT_FSIZE, &rl));
	CHECK_EQ(write(fd, "0123456789abc", 13), 10);
	CHECK_ERR(write(fd, "x", 1), EFBIG);
	CHECK_EQ(got_signal, SIGXFSZ);
	got_signal = 0;
	CHECK_ERR(ftruncate(fd, 11), EFBIG);
	CHECK_EQ(got_signal, SIGXFSZ);
	CHECK_OK(pipe(p));
	CHECK_OK(close(p[0]));
	CHECK_ERR(write(p[1], "x", 1), EPIPE);
	CHECK_EQ(got_signal, SIGPIPE);
	CHECK_ERR(lseek(p[1], 0, SEEK_CUR), ESPIPE);
	CHECK_ERR(pwrite(p[1], "x", 1, 0), ESPIPE);
}

static void copies(void)
{
	char buf[64];
	off_t off = 3;
	loff_t a = 0, b = 4;
	int in = new_file("in"), out = new_file("out"), p[2];

	CHECK_EQ(write(in, "0123456789", 10), 10);
	CHECK_EQ(sendfile(out, in, &off, 100), 7);
	CHECK_EQ(off, 10);
	CHECK_EQ(sendfile(out, in, NULL, 10), 0);
	CHECK_OK(pipe(p));
	off = 0;
	CHECK_EQ(sendfile(p[1], in, &off, 4), 4);
	CHECK_EQ(read(p[0], buf, sizeof(buf)), 4);
	CHECK_ERR(sendfile(in, p[1], NULL, 4), EBADF);
	CHECK_EQ(copy_file_range(in, &a, out, &b, 5, 0), 5);
	CHECK_EQ(pread(out, buf, sizeof(buf), 0), 9);
	CHECK(!memcmp(buf, "345601234", 9));
	a = 0, b = 2;
	CHECK_ERR(copy_file_range(in, &a, in, &b, 5, 0), EINVAL);
	CHECK_ERR(copy_file_range(in, &a, out, &b, 5, 1), EINVAL);
	CHECK_ERR(copy_file_range(in, NULL, (int)CHECK_OK(open("in", O_RDONLY)), NULL, 5, 0), EBADF);
}

static void space(void)
{
	struct stat st;
	char c;
	int fd = new_file("f"), p[2];

	CHECK_OK(fallocate(fd, 0, 0, 10000));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_size, 10000);
	CHECK_OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 20000));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_size, 10000);
	CHECK_EQ(pwrite(fd, "x", 1, 5000), 1);
	CHECK_OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096));
	CHECK_EQ(pread(fd, &c, 1, 5000), 1);
	CHECK_EQ(c, 0);
	CHECK_ERR(fallocate(fd, 0, 0, 0), EINVAL);
	CHECK_ERR(fallocate(fd, 0, -1, 1), EINVAL);
	CHECK_ERR(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 1), EOPNOTSUPP);
	CHECK_OK(pipe(p));
	CHECK_ERR(fallocate(p[1], 0, 0, 1), ESPIPE);
	CHECK_OK(fsync(fd));
	CHECK_OK(fdatasync(fd));
	CHECK_ERR(fsync(p[1]), EINVAL);
	CHECK_OK(syncfs(fd));
	CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	CHECK_EQ(posix_fadvise(fd, 0, 0, 99), EINVAL);
	CHECK_EQ(posix_fadvise(p[0], 0, 0, POSIX_FADV_NORMAL), ESPIPE);
	CHECK_OK(readahead(fd, 0, 4096));
}

static void ioctls(void)
{
	int fd = new_file("f"), on = 1, n = -1;

	CHECK_EQ(write(fd, "12345", 5), 5);
	CHECK_OK(lseek(fd, 2, SEEK_SET));
	CHECK_OK(ioctl(fd, FIONREAD, &n));
	CHECK_EQ(n, 3);
	CHECK_OK(ioctl(fd, FIOCLEX));
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_OK(ioctl(fd, FIONCLEX));
	CHECK_EQ(fcntl(fd, F_GETFD), 0);
	CHECK_OK(ioctl(fd, FIONBIO, &on));
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK_ERR(ioctl(fd, FIONBIO, BAD_PTR), EFAULT);
}

/* A FIFO, and files opened once more through /proc. */
static void reopened(void)
{
	char buf[64], path[64];
	int fd = new_file("f"), p[2], again;
	pid_t pid;

	CHECK_EQ(write(fd, "12345", 5), 5);
	CHECK_OK(unlink("f"));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = (int)CHECK_OK(open(path, O_RDONLY));
	CHECK_EQ(read(again, buf, sizeof(buf)), 5);
	CHECK_OK(pipe(p));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p[1]);
	again = (int)CHECK_OK(open(path, O_WRONLY));
	CHECK_EQ(write(again, "abc", 3), 3);
	CHECK_EQ(read(p[0], buf, sizeof(buf)), 3);
	CHECK(readlink(path, buf, sizeof(buf)) > 6 && !memcmp(buf, "pipe:[", 6));
	CHECK_OK(mkfifo("fifo", 0600));
	CHECK_ERR(open("fifo", O_WRONLY | O_NONBLOCK), ENXIO);
	pid = (pid_t)CHECK_OK(fork());
	if (!pid) {
		fd = open("fifo", O_WRONLY);
		_exit(write(fd, "through", 7) != 7);
	}
	fd = (int)CHECK_OK(open("fifo", O_RDONLY));
	CHECK_EQ(read(fd, buf, sizeof(buf)), 7);
	CHECK_EQ(read(fd, buf, sizeof(buf)), 0);
	CHECK_OK(waitpid(pid, NULL, 0));
}

/* A write longer than the pipe, while the reader takes it in small pieces. */
static void long_write(void)
{
	static char big[300000], buf[1000];
	size_t total = 0;
	ssize_t n;
	int p[2];

	CHECK_OK(pipe(p));
	if (!CHECK_OK(fork())) {
		close(p[0]);
		_exit(write(p[1], big, sizeof(big)) != sizeof(big));
	}
	close(p[1]);
	while ((n = read(p[0], buf, sizeof(buf))) > 0)
		total += (size_t)n;
	CHECK_EQ(total, sizeof(big));
	CHECK_OK(wait(NULL));
}

static const struct gt_case cases[] = {
	{ "bad_args", bad_args },
	{ "positions", positions },
	{ "descriptors", descriptors },
	{ "size_limit", size_limit },
	{ "copies", copies },
	{ "space", space },
	{ "ioctls", ioctls },
	{ "reopened", reopened },
	{ "long_write", long_write },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return gt_main(argc, argv, cases);
}
