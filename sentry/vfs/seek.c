/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of lseek(2), which the file systems share. */
#include <errno.h>
#include <unistd.h>

#include "sentry/vfs/file.h"

int64_t file_seek(struct file *f, int64_t off, int whence, uint64_t size)
{
	int64_t base = 0, end = (int64_t)size;

	switch (whence) {
	case SEEK_SET:
		break;
	case SEEK_CUR:
		base = (int64_t)f->pos;
		break;
	case SEEK_END:
		base = end;
		break;
	case SEEK_DATA:
	case SEEK_HOLE:
		if (off < 0 || off >= end)
			return -ENXIO;
		off = whence == SEEK_DATA ? off : end;
		break;
	default:
		return -EINVAL;
	}
	if (__builtin_add_overflow(base, off, &off) || off < 0)
		return -EINVAL;
	f->pos = (uint64_t)off;
	return off;
}
