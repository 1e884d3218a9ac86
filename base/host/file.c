/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RETRY(expr) \
	({ \
		long retry_r_; \
		do \
			retry_r_ = (long)(expr); \
		while (retry_r_ < 0 && errno == EINTR); \
		retry_r_ < 0 ? -(long)errno : retry_r_; \
	})

int host_open(const char *path, int flags, mode_t mode)
{
	return (int)RETRY(open(path, flags | O_CLOEXEC, mode));
}

int host_openat2(int dir, const char *path, const struct open_how *how)
{
	return (int)RETRY(syscall(SYS_openat2, dir, path, how, sizeof(*how)));
}

void host_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

ssize_t host_read(int fd, void *buf, size_t n)
{
	return RETRY(read(fd, buf, n));
}

ssize_t host_write(int fd, const void *buf, size_t n)
{
	return RETRY(write(fd, buf, n));
}

ssize_t host_pread(int fd, void *buf, size_t n, off_t off)
{
	return RETRY(pread(fd, buf, n, off));
}

ssize_t host_pwrite(int fd, const void *buf, size_t n, off_t off)
{
	return RETRY(pwrite(fd, buf, n, off));
}

int host_fstat(int fd, struct stat *st)
{
	return fstat(fd, st) < 0 ? -errno : 0;
}

int host_ftruncate(int fd, off_t len)
{
	return (int)RETRY(ftruncate(fd, len));
}

int host_fallocate(int fd, int mode, off_t off, off_t len)
{
	return (int)RETRY(fallocate(fd, mode, off, len));
}

int host_memfd(const char *name, unsigned flags)
{
	int fd = memfd_create(name, flags | MFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int host_set_cloexec(int fd, int on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}
