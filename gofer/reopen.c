/* SPDX-License-Identifier: Apache-2.0 */
#include "gofer/reopen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/host/file.h"

static int proc_fd = -1;

int reopen_init(void)
{
	if (proc_fd >= 0)
		return 0;
	proc_fd = host_open("/proc/self/fd", O_PATH | O_DIRECTORY, 0);
	if (proc_fd < 0)
		return proc_fd;
	return reopen_enter();
}

int reopen_enter(void)
{
	return fchdir(proc_fd) < 0 ? -errno : 0;
}

int reopen_dirfd(void)
{
	return proc_fd;
}

const char *reopen_path(int fd, char buf[REOPEN_PATH_MAX])
{
	snprintf(buf, REOPEN_PATH_MAX, "%d", fd);
	return buf;
}

int reopen_fd(int fd, int flags)
{
	const struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC) };
	char path[REOPEN_PATH_MAX];

	return host_openat2(proc_fd, reopen_path(fd, path), &how);
}
