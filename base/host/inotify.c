/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/inotify.h"

#include <errno.h>
#include <unistd.h>

int host_inotify_create(void)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int host_inotify_add(int fd, const char *path, uint32_t mask)
{
	int wd = inotify_add_watch(fd, path, mask);

	return wd < 0 ? -errno : wd;
}

void host_inotify_remove(int fd, int wd)
{
	(void)inotify_rm_watch(fd, wd);
}

ssize_t host_inotify_read(int fd, void *buf, size_t n)
{
	ssize_t r;

	do
		r = read(fd, buf, n);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}
