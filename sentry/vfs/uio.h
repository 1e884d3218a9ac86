/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the bytes of a read or write go to or come from: a guest iovec (already copied in and checked) or a kernel
 * buffer. A cursor: each transfer advances it.
 */
#ifndef SBX_SENTRY_VFS_UIO_H
#define SBX_SENTRY_VFS_UIO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"
#include "platform/platform.h"

struct task;

#define UIO_MAX_IOV   1024           /* IOV_MAX */
#define UIO_MAX_BYTES 0x7ffff000ull  /* MAX_RW_COUNT: a longer transfer is cut */

struct uio_seg {
	uint64_t base; /* guest address, or host pointer when task is NULL */
	uint64_t len;
};

struct uio {
	struct task *task;   /* NULL: kernel buffers */
	const struct uio_seg *segs;
	unsigned n_segs;
	uint64_t seg_off;    /* in segs[0] */
	uint64_t resid;      /* bytes left */
};

void uio_init_kernel(struct uio *u, struct uio_seg *seg, void *buf, size_t n);
void uio_init_user(struct uio *u, struct task *t, struct uio_seg *seg, uaddr_t buf, uint64_t n);
/* Copies in @n iovecs into segs (cap UIO_MAX_IOV, or fewer: -EINVAL as readv(2)). */
MUST_CHECK int uio_init_iov(struct uio *u, struct task *t, struct uio_seg *segs, unsigned cap, uaddr_t iov, uint64_t n);

/* Moves up to @n bytes (and resid) between @buf and the uio: bytes moved (> 0 unless n or resid is 0) or -EFAULT when
 * not one was. to: buf -> uio (a read); from: uio -> buf (a write). */
MUST_CHECK ssize_t uio_copy_to(struct uio *u, const void *buf, size_t n);
MUST_CHECK ssize_t uio_copy_from(struct uio *u, void *buf, size_t n);
MUST_CHECK ssize_t uio_zero(struct uio *u, size_t n);
/* Steps forward over @n bytes, or all that are left, without moving any. A call that runs again does so over what it
 * has done: the guest may have made its iovec shorter than that meanwhile. */
void uio_skip(struct uio *u, uint64_t n);
/* Steps back over the last @n bytes that were moved (a short host write). Only within what this uio has consumed. */
void uio_revert(struct uio *u, size_t n);

/* A bounce buffer of the leader's, valid until the next call that may use one. */
#define UIO_BOUNCE_SIZE (256u * 1024)
void *uio_bounce(void);

#endif
