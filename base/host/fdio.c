/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/fdio.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

int64_t host_file_seek(int fd, int64_t off, int whence)
{
	int64_t r = lseek(fd, off, whence);

	return r < 0 ? -errno : r;
}

int host_file_sync(int fd, bool data_only)
{
	int r;

	do
		r = data_only ? fdatasync(fd) : fsync(fd);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

ssize_t host_file_append(int fd, const void *buf, size_t n, uint64_t *end)
{
	struct iovec iov = { (void *)(uintptr_t)buf, n };
	int64_t pos;
	ssize_t r;

	do
		r = pwritev2(fd, &iov, 1, -1, RWF_APPEND); /* -1: at and with the fd's position */
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	pos = host_file_seek(fd, 0, SEEK_CUR);
	if (pos < 0)
		return (ssize_t)pos;
	*end = (uint64_t)pos;
	return r;
}
