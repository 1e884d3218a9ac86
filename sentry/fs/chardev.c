/* SPDX-License-Identifier: Apache-2.0 */
/* null, zero, full, random, urandom: see null(4), zero(4), full(4), random(4). */
#include "sentry/fs/chardev.h"

#include <errno.h>
#include <linux/random.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/uio.h"

#define READ_PIECE   UIO_BOUNCE_SIZE
#define READ_MAX     (32u << 20) /* of one read of random bytes: as Linux's 2^25 - 1 */
#define ENTROPY_BITS 256

/* ---- reading ---- */

static ssize_t null_read(struct file *f, struct uio *u, uint64_t *pos)
{
	(void)f;
	(void)u;
	(void)pos;
	return 0;
}

static ssize_t zero_read(struct file *f, struct uio *u, uint64_t *pos)
{
	(void)f;
	(void)pos;
	return u->resid ? uio_zero(u, u->resid) : 0;
}

static ssize_t random_read(struct file *f, struct uio *u, uint64_t *pos)
{
	uint64_t n = MIN(u->resid, (uint64_t)READ_MAX - 1), done = 0, piece;
	uint8_t *buf = uio_bounce();
	ssize_t got;

	(void)f;
	(void)pos;
	while (done < n) {
		piece = MIN(n - done, READ_PIECE);
		kernel_random(buf, piece);
		got = uio_copy_to(u, buf, piece);
		if (got < 0)
			return done ? (ssize_t)done : got;
		done += (uint64_t)got;
		if ((uint64_t)got < piece)
			break;
	}
	return (ssize_t)done;
}

/* ---- writing ---- */

static ssize_t null_write(struct file *f, struct uio *u, uint64_t *pos)
{
	uint64_t n = u->resid;

	(void)f;
	(void)pos;
	/* Linux does not look at the buffer either. */
	u->resid = 0;
	return (ssize_t)n;
}

static ssize_t full_write(struct file *f, struct uio *u, uint64_t *pos)
{
	(void)f;
	(void)u;
	(void)pos;
	return -ENOSPC;
}

/* The guest may give entropy; we need none. */
static ssize_t random_write(struct file *f, struct uio *u, uint64_t *pos)
{
	uint8_t *buf = uio_bounce();
	uint64_t done = 0;
	ssize_t got;

	(void)f;
	(void)pos;
	while (u->resid) {
		got = uio_copy_from(u, buf, READ_PIECE);
		if (got <= 0)
			return done ? (ssize_t)done : got;
		done += (uint64_t)got;
	}
	return (ssize_t)done;
}

/* ---- the rest ---- */

/* Any seek goes to 0, and none fails: Linux's null_lseek(). */
static int64_t null_llseek(struct file *f, int64_t off, int whence)
{
	(void)off;
	(void)whence;
	f->pos = 0;
	return 0;
}

/* Linux's noop_llseek(). */
static int64_t random_llseek(struct file *f, int64_t off, int whence)
{
	(void)off;
	(void)whence;
	return (int64_t)f->pos;
}

static int zero_mmap(struct file *f, int prot, bool shared, struct file_map *map)
{
	(void)f;
	(void)prot;
	(void)shared;
	*map = (struct file_map){ .fd = -1 };
	return 0;
}

static int64_t random_ioctl(struct file *f, struct task *t, uint32_t cmd, uint64_t arg)
{
	int bits = ENTROPY_BITS;

	(void)f;
	switch (cmd) {
	case RNDGETENTCNT:
		return copy_out(t, arg, &bits, sizeof(bits));
	case RNDADDTOENTCNT:
	case RNDADDENTROPY:
	case RNDZAPENTCNT:
	case RNDCLEARPOOL:
	case RNDRESEEDCRNG:
		return -EPERM;
	}
	return -EINVAL;
}

static const struct file_ops null_file_ops = {
	.read = null_read,
	.write = null_write,
	.llseek = null_llseek,
};

static const struct file_ops zero_file_ops = {
	.read = zero_read,
	.write = null_write,
	.llseek = null_llseek,
	.mmap = zero_mmap,
};

static const struct file_ops full_file_ops = {
	.read = zero_read,
	.write = full_write,
	.llseek = null_llseek,
};

static const struct file_ops random_file_ops = {
	.read = random_read,
	.write = random_write,
	.llseek = random_llseek,
	.ioctl = random_ioctl,
};

const struct file_ops *chardev_ops(uint64_t rdev)
{
	static const struct {
		unsigned major, minor;
		const struct file_ops *ops;
	} table[] = {
		{ 1, 3, &null_file_ops },
		{ 1, 5, &zero_file_ops },
		{ 1, 7, &full_file_ops },
		{ 1, 8, &random_file_ops },
		{ 1, 9, &random_file_ops },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (rdev == makedev(table[i].major, table[i].minor))
			return table[i].ops;
	return NULL;
}
