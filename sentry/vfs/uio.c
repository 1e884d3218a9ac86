/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/vfs/uio.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "sentry/kernel/uaccess.h"

struct guest_iovec {
	uint64_t base, len;
};

void uio_init_kernel(struct uio *u, struct uio_seg *seg, void *buf, size_t n)
{
	seg->base = (uint64_t)(uintptr_t)buf;
	seg->len = n;
	*u = (struct uio){ .segs = seg, .n_segs = 1, .resid = n };
}

void uio_init_user(struct uio *u, struct task *t, struct uio_seg *seg, uaddr_t buf, uint64_t n)
{
	n = MIN(n, (uint64_t)UIO_MAX_BYTES);
	seg->base = buf;
	seg->len = n;
	*u = (struct uio){ .task = t, .segs = seg, .n_segs = 1, .resid = n };
}

int uio_init_iov(struct uio *u, struct task *t, struct uio_seg *segs, unsigned cap, uaddr_t iov, uint64_t n)
{
	uint64_t total = 0, end;
	unsigned i;
	int err;

	static_assert(sizeof(struct guest_iovec) == sizeof(struct uio_seg), "copied in as one");
	if (n > UIO_MAX_IOV || n > cap)
		return -EINVAL;
	err = copy_in(t, iov, segs, (size_t)n * sizeof(*segs));
	if (err)
		return err;
	for (i = 0; i < n; i++) {
		/* readv(2): the length of one, and so of all, must fit an ssize_t. */
		if ((int64_t)segs[i].len < 0)
			return -EINVAL;
		/* Linux: import_iovec refuses what lies outside of user space before it cuts the length. */
		if (__builtin_add_overflow(segs[i].base, segs[i].len, &end) || end > GUEST_TASK_SIZE)
			return -EFAULT;
		segs[i].len = MIN(segs[i].len, UIO_MAX_BYTES - total);
		total += segs[i].len;
	}
	*u = (struct uio){ .task = t, .segs = segs, .n_segs = (unsigned)n, .resid = total };
	return 0;
}

/* Steps over used-up segments: afterwards segs[0] has bytes left, or resid is 0. */
static void uio_settle(struct uio *u)
{
	while (u->n_segs && u->seg_off == u->segs[0].len) {
		u->segs++;
		u->n_segs--;
		u->seg_off = 0;
	}
}

static ssize_t move_user(struct uio *u, uaddr_t at, void *buf, size_t n, bool to)
{
	return to ? copy_out_part(u->task, at, buf, n) : copy_in_part(u->task, at, buf, n);
}

/* One loop for both directions. resid may be less than the segments hold, when a caller has cut it. */
static ssize_t uio_move(struct uio *u, void *buf, size_t n, bool to)
{
	size_t done = 0;

	n = (size_t)MIN((uint64_t)n, u->resid);
	while (done < n) {
		size_t run;
		ssize_t got;
		uint64_t at;

		uio_settle(u);
		run = (size_t)MIN((uint64_t)(n - done), u->segs[0].len - u->seg_off);
		at = u->segs[0].base + u->seg_off;
		if (u->task) {
			got = move_user(u, at, (uint8_t *)buf + done, run, to);
		} else {
			void *k = (void *)(uintptr_t)at;

			memcpy(to ? k : (uint8_t *)buf + done, to ? (uint8_t *)buf + done : k, run);
			got = (ssize_t)run;
		}
		if (got <= 0)
			return done ? (ssize_t)done : -EFAULT;
		u->seg_off += (uint64_t)got;
		u->resid -= (uint64_t)got;
		done += (size_t)got;
		if ((size_t)got < run)
			break; /* the next byte faults */
	}
	return (ssize_t)done;
}

ssize_t uio_copy_to(struct uio *u, const void *buf, size_t n)
{
	return uio_move(u, (void *)(uintptr_t)buf, n, true);
}

ssize_t uio_copy_from(struct uio *u, void *buf, size_t n)
{
	return uio_move(u, buf, n, false);
}

ssize_t uio_zero(struct uio *u, size_t n)
{
	static const uint8_t zeroes[16384];
	size_t done = 0;

	n = (size_t)MIN((uint64_t)n, u->resid);
	while (done < n) {
		size_t run = MIN(n - done, sizeof(zeroes));
		ssize_t got = uio_copy_to(u, zeroes, run);

		if (got <= 0)
			return done ? (ssize_t)done : -EFAULT;
		done += (size_t)got;
		if ((size_t)got < run)
			break;
	}
	return (ssize_t)done;
}

void uio_skip(struct uio *u, uint64_t n)
{
	n = MIN(n, u->resid);
	u->resid -= n;
	while (n) {
		uint64_t run;

		uio_settle(u);
		run = MIN(n, u->segs[0].len - u->seg_off);
		u->seg_off += run;
		n -= run;
	}
}

void uio_revert(struct uio *u, size_t n)
{
	u->resid += n;
	while (n) {
		uint64_t run;

		while (!u->seg_off) {
			u->segs--;
			u->n_segs++;
			u->seg_off = u->segs[0].len;
		}
		run = MIN((uint64_t)n, u->seg_off);
		u->seg_off -= run;
		n -= (size_t)run;
	}
}

void *uio_bounce(void)
{
	static _Alignas(4096) uint8_t bounce[UIO_BOUNCE_SIZE];

	return bounce;
}
