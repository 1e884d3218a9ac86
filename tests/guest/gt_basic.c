/* SPDX-License-Identifier: Apache-2.0 */
/* The first things a program does. */
#include <sys/utsname.h>

#include "gt.h"

static void uname_works(void)
{
	struct utsname u;

	CHECK_ERR(syscall(SYS_uname, BAD_PTR), EFAULT);
	CHECK_OK(uname(&u));
	CHECK(!strcmp(u.sysname, "Linux"));
	CHECK(!strcmp(u.machine, "x86_64"));
}

static void unknown_call(void)
{
	CHECK_ERR(syscall(999), ENOSYS);
	CHECK_ERR(syscall(-1), ENOSYS);
	CHECK_ERR(syscall(0x40000000 + SYS_getpid), ENOSYS);
}

static void write_read_file(void)
{
	char buf[16] = "";
	int fd = open("f", O_RDWR | O_CREAT | O_EXCL, 0600);

	CHECK(fd >= 0);
	CHECK_ERR(write(fd, BAD_PTR, 5), EFAULT);
	CHECK_EQ(write(fd, "hello", 5), 5);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_EQ(read(fd, buf, sizeof(buf)), 5);
	CHECK(!memcmp(buf, "hello", 5));
	CHECK_OK(close(fd));
	CHECK_ERR(close(fd), EBADF);
	CHECK_OK(unlink("f"));
}

static void fork_and_wait(void)
{
	for (int i = 0; i < 20; i++) {
		int st;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid)
			_exit(i);
		CHECK_EQ(waitpid(pid, &st, 0), pid);
		CHECK(WIFEXITED(st) && WEXITSTATUS(st) == i);
	}
}

static const struct gt_case cases[] = {
	{ "uname_works", uname_works },
	{ "unknown_call", unknown_call },
	{ "write_read_file", write_read_file },
	{ "fork_and_wait", fork_and_wait },
	{ NULL, NULL },
};
GT_MAIN(cases)
