/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/hostio.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t host_read_nowait(int fd, void *buf, size_t n)
{
	struct iovec iov = { buf, n };
	ssize_t r = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);

	return r < 0 ? -errno : r;
}

ssize_t host_write_nowait(int fd, const void *buf, size_t n)
{
	struct iovec iov = { (void *)buf, n };
	ssize_t r = pwritev2(fd, &iov, 1, -1, RWF_NOWAIT);

	return r < 0 ? -errno : r;
}

uint32_t host_poll_now(int fd, uint32_t events)
{
	struct pollfd p = { .fd = fd, .events = (short)events };
	int r;

	do
		r = poll(&p, 1, 0);
	while (r < 0 && errno == EINTR);
	return r < 0 ? POLLERR : (uint32_t)(unsigned short)p.revents;
}

int host_fionread(int fd)
{
	int n;

	return ioctl(fd, FIONREAD, &n) < 0 ? -errno : n;
}

int64_t host_lseek(int fd, int64_t off, int whence)
{
	off_t r = lseek(fd, off, whence);

	return r < 0 ? -errno : r;
}

int host_fsync(int fd, bool data_only)
{
	int r;

	do
		r = data_only ? fdatasync(fd) : fsync(fd);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}
