/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/at.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static int result(int r)
{
	return r < 0 ? -errno : r;
}

static ssize_t result_len(ssize_t r)
{
	return r < 0 ? -errno : r;
}

int host_statx(int dir, const char *name, int flags, unsigned mask, struct statx *stx)
{
	return result(statx(dir, name, flags, mask, stx));
}

int host_fstatfs(int fd, struct statfs *st)
{
	return result(fstatfs(fd, st));
}

ssize_t host_readlinkat(int dir, const char *name, char *buf, size_t n)
{
	return result_len(readlinkat(dir, name, buf, n));
}

ssize_t host_getdents(int fd, void *buf, size_t n)
{
	return result_len(syscall(SYS_getdents64, fd, buf, n));
}

int host_mkdirat(int dir, const char *name, mode_t mode)
{
	return result(mkdirat(dir, name, mode));
}

int host_mknodat(int dir, const char *name, mode_t mode, dev_t dev)
{
	return result(mknodat(dir, name, mode, dev));
}

int host_symlinkat(const char *target, int dir, const char *name)
{
	return result(symlinkat(target, dir, name));
}

int host_linkat(int odir, const char *oname, int ndir, const char *nname, int flags)
{
	return result(linkat(odir, oname, ndir, nname, flags));
}

int host_unlinkat(int dir, const char *name, int flags)
{
	return result(unlinkat(dir, name, flags));
}

int host_renameat2(int odir, const char *oname, int ndir, const char *nname, unsigned flags)
{
	return result((int)syscall(SYS_renameat2, odir, oname, ndir, nname, flags));
}

int host_fchmodat(int dir, const char *name, mode_t mode)
{
	return result((int)syscall(SYS_fchmodat, dir, name, mode));
}

int host_utimensat(int dir, const char *name, const struct timespec ts[2], int flags)
{
	return result(utimensat(dir, name, ts, flags));
}

int host_truncate(const char *path, off_t len)
{
	int r;

	do
		r = result(truncate(path, len));
	while (r == -EINTR);
	return r;
}

ssize_t host_getxattr(const char *path, const char *name, void *buf, size_t n)
{
	return result_len(getxattr(path, name, buf, n));
}

int host_setxattr(const char *path, const char *name, const void *buf, size_t n, int flags)
{
	return result(setxattr(path, name, buf, n, flags));
}

ssize_t host_listxattr(const char *path, char *buf, size_t n)
{
	return result_len(listxattr(path, buf, n));
}

int host_removexattr(const char *path, const char *name)
{
	return result(removexattr(path, name));
}
