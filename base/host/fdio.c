/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/fdio.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/host/hostio.h"

ssize_t host_file_append(int fd, const void *buf, size_t n, uint64_t *end)
{
	struct iovec iov = { (void *)(uintptr_t)buf, n };
	int64_t pos;
	ssize_t r;

	/*
	 * overlayfs before Linux 6.6 loses RWF_APPEND and writes at the fd's position: that is the end, as near as it
	 * can be.
	 */
	pos = host_lseek(fd, 0, SEEK_END);
	if (pos < 0)
		return (ssize_t)pos;
	do
		r = pwritev2(fd, &iov, 1, -1, RWF_APPEND); /* -1: at and with the fd's position */
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	pos = host_lseek(fd, 0, SEEK_CUR);
	if (pos < 0)
		return (ssize_t)pos;
	*end = (uint64_t)pos;
	return r;
}
