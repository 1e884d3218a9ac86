/* SPDX-License-Identifier: Apache-2.0 */
/* splice(2), tee(2), vmsplice(2). */
#include "tests/guest/gt_dirs.h"

#include <sys/socket.h>
#include <sys/uio.h>

static int new_file(const char *name, const char *text)
{
	int fd = (int)CHECK_OK(open(name, O_CREAT | O_TRUNC | O_RDWR, 0644));

	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void nap(int ms)
{
	struct timespec ts = { 0, ms * 1000000l };

	nanosleep(&ts, NULL);
}

static void hostile(void)
{
	struct iovec iov = { (char[1]){ 0 }, 1 };
	loff_t off = 0, neg = -1;
	int p[2], q[2], f = new_file("f", "0123456789"), g = new_file("g", ""), app;

	CHECK_OK(pipe(p));
	CHECK_OK(pipe(q));
	app = (int)CHECK_OK(open("g", O_WRONLY | O_APPEND));
	CHECK_EQ(splice(-1, NULL, -1, NULL, 0, 0), 0);
	CHECK_ERR(splice(-1, NULL, p[1], NULL, 1, 0), EBADF);
	CHECK_ERR(splice(f, NULL, -1, NULL, 1, 0), EBADF);
	CHECK_ERR(splice(f, NULL, p[1], NULL, 1, 0x100), EINVAL);
	CHECK_ERR(splice(f, NULL, p[0], NULL, 1, 0), EBADF);
	CHECK_ERR(splice(p[1], NULL, g, NULL, 1, 0), EBADF);
	CHECK_ERR(splice(f, NULL, g, NULL, 1, 0), EINVAL);
	CHECK_ERR(splice(p[0], NULL, p[1], NULL, 1, 0), EINVAL);
	CHECK_ERR(splice(p[0], &off, g, NULL, 1, 0), ESPIPE);
	CHECK_ERR(splice(f, NULL, p[1], &off, 1, 0), ESPIPE);
	CHECK_ERR(syscall(SYS_splice, f, BAD_PTR, p[1], NULL, 1, 0), EFAULT);
	CHECK_ERR(splice(f, &neg, p[1], NULL, 1, 0), EINVAL);
	CHECK_ERR(splice(p[0], NULL, g, NULL, 1, SPLICE_F_NONBLOCK), EAGAIN);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_ERR(splice(p[0], NULL, app, NULL, 1, 0), EINVAL);
	CHECK_ERR(tee(f, p[1], 1, 0), EINVAL);
	CHECK_ERR(tee(p[0], p[1], 1, 0), EINVAL);
	CHECK_ERR(tee(-1, p[1], 1, 0), EBADF);
	CHECK_EQ(tee(p[0], q[1], 0, 0), 0);
	CHECK_EQ(vmsplice(f, NULL, 0, 0), 0);
	CHECK_ERR(vmsplice(f, &iov, 1, 0), EBADF);
	CHECK_ERR(vmsplice(-1, NULL, 0, 0), EBADF);
	CHECK_ERR(syscall(SYS_vmsplice, p[1], BAD_PTR, 1, 0), EFAULT);
	CHECK_EQ(vmsplice(p[1], NULL, 0, 0), 0);
}

static void files(void)
{
	static char big[200000], back[200000];
	loff_t in = 2, out = 5;
	int p[2], f = new_file("f", "0123456789"), g = new_file("g", "");
	size_t moved = 0, got = 0;

	CHECK_OK(pipe(p));
	CHECK_EQ(splice(f, &in, p[1], NULL, 3, 0), 3);
	CHECK_EQ(in, 5);
	CHECK_EQ(lseek(f, 0, SEEK_CUR), 0);
	CHECK_EQ(splice(f, NULL, p[1], NULL, 100, 0), 10);
	CHECK_EQ(lseek(f, 0, SEEK_CUR), 10);
	CHECK_EQ(splice(f, NULL, p[1], NULL, 100, 0), 0);
	CHECK_EQ(splice(p[0], NULL, g, &out, 3, 0), 3);
	CHECK_EQ(out, 8);
	CHECK_EQ(splice(p[0], NULL, g, NULL, 4, 0), 4);
	CHECK(gt_is("g", "0123" "\0" "234") || gt_stat("g").st_size == 8);
	CHECK_EQ(splice(p[0], NULL, g, NULL, 100, 0), 6);
	CHECK_EQ(gt_stat("g").st_size, 10);
	CHECK_OK(close(p[1]));
	CHECK_EQ(splice(p[0], NULL, g, NULL, 100, 0), 0);
	/* A whole file through a pipe, with a child at the other end. */
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 13 + i / 999);
	CHECK_EQ(pwrite(f, big, sizeof(big), 0), sizeof(big));
	CHECK_OK(pipe(p));
	if (fork() == 0) {
		close(p[0]);
		in = 0;
		while (moved < sizeof(big)) {
			ssize_t n = splice(f, &in, p[1], NULL, sizeof(big), SPLICE_F_MOVE | SPLICE_F_MORE);

			if (n <= 0)
				_exit(1);
			moved += (size_t)n;
		}
		_exit(0);
	}
	close(p[1]);
	out = 0;
	for (;;) {
		ssize_t n = CHECK_OK(splice(p[0], NULL, g, &out, 1 << 20, 0));

		if (!n)
			break;
		got += (size_t)n;
	}
	CHECK_EQ(got, sizeof(big));
	CHECK_EQ(pread(g, back, sizeof(back), 0), sizeof(back));
	CHECK(!memcmp(big, back, sizeof(big)));
}

static void between_pipes(void)
{
	char buf[16];
	int p[2], q[2], sv[2];

	signal(SIGPIPE, SIG_IGN);
	CHECK_OK(pipe(p));
	CHECK_OK(pipe(q));
	CHECK_EQ(write(p[1], "abcdef", 6), 6);
	CHECK_EQ(tee(p[0], q[1], 4, 0), 4);
	CHECK_EQ(splice(p[0], NULL, q[1], NULL, 2, 0), 2);
	CHECK_EQ(read(q[0], buf, 16), 6);
	CHECK(!memcmp(buf, "abcdab", 6));
	CHECK_EQ(read(p[0], buf, 16), 4);
	CHECK(!memcmp(buf, "cdef", 4));
	CHECK_ERR(tee(p[0], q[1], 4, SPLICE_F_NONBLOCK), EAGAIN);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK_EQ(write(sv[0], "net", 3), 3);
	CHECK_EQ(splice(sv[1], NULL, p[1], NULL, 100, 0), 3);
	CHECK_EQ(splice(p[0], NULL, sv[1], NULL, 100, 0), 3);
	CHECK_EQ(read(sv[0], buf, 16), 3);
	CHECK(!memcmp(buf, "net", 3));
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_OK(close(q[0]));
	CHECK_ERR(splice(p[0], NULL, q[1], NULL, 1, 0), EPIPE);
	CHECK_EQ(read(p[0], buf, 16), 1);
	CHECK_OK(close(p[1]));
	CHECK_EQ(splice(p[0], NULL, sv[1], NULL, 100, 0), 0);
}

static void waiting(void)
{
	char buf[16];
	int p[2], g = new_file("g", ""), st;

	CHECK_OK(pipe(p));
	if (fork() == 0) {
		nap(40);
		_exit(write(p[1], "late", 4) != 4);
	}
	CHECK_EQ(splice(p[0], NULL, g, NULL, 100, 0), 4);
	CHECK_OK(wait(&st));
	CHECK(gt_is("g", "late"));
	CHECK_OK(fcntl(p[1], F_SETPIPE_SZ, 4096));
	CHECK_OK(fcntl(p[1], F_SETFL, O_NONBLOCK));
	while (write(p[1], "0123456789abcdef", 16) > 0)
		;
	CHECK_EQ(lseek(g, 0, SEEK_SET), 0);
	CHECK_ERR(splice(g, NULL, p[1], NULL, 4, 0), EAGAIN);
	CHECK_OK(fcntl(p[1], F_SETFL, 0));
	if (fork() == 0) {
		nap(40);
		for (int i = 0; i < 256; i++) {
			if (read(p[0], buf, 16) != 16)
				_exit(1);
		}
		_exit(0);
	}
	CHECK_EQ(splice(g, NULL, p[1], NULL, 4, 0), 4);
	CHECK_OK(wait(&st));
	CHECK_EQ(st, 0);
	CHECK_EQ(read(p[0], buf, 16), 4);
	CHECK(!memcmp(buf, "late", 4));
}

static void from_memory(void)
{
	char a[] = "memory", buf[16] = { 0 };
	struct iovec iov[2] = { { a, 3 }, { a + 3, 3 } }, in = { buf, 16 };
	int p[2];

	CHECK_OK(pipe(p));
	CHECK_EQ(vmsplice(p[1], iov, 2, 0), 6);
	CHECK_EQ(vmsplice(p[0], &in, 1, 0), 6);
	CHECK(!memcmp(buf, "memory", 6));
	CHECK_ERR(vmsplice(p[0], &in, 1, SPLICE_F_NONBLOCK), EAGAIN);
	iov[1].iov_base = BAD_PTR;
	CHECK_EQ(vmsplice(p[1], iov, 2, 0), 3);
	CHECK_ERR(vmsplice(p[1], iov + 1, 1, 0), EFAULT);
}

static const struct gt_case cases[] = {
	{ "hostile", hostile },
	{ "files", files },
	{ "between_pipes", between_pipes },
	{ "waiting", waiting },
	{ "from_memory", from_memory },
	{ NULL, NULL },
};

GT_MAIN_DIRS(cases)
