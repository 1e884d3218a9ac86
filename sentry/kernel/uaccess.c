/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/uaccess.h"

#include <errno.h>
#include <string.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"

/* The first piece that copy_in_str() reads: most paths fit. */
#define STR_CHUNK 256u

static bool range_ok(uaddr_t a, size_t n)
{
	uint64_t end;

	return !__builtin_add_overflow(a, n, &end) && end <= GUEST_TASK_SIZE;
}

ssize_t copy_in_part(struct task *t, uaddr_t src, void *dst, size_t n)
{
	ssize_t r;

	if (n == 0)
		return 0;
	if (!range_ok(src, n) || !t->mm)
		return -EFAULT;
	r = kernel.plat->read(mm_aspace(t->mm), src, dst, n);
	return r > 0 ? r : -EFAULT;
}

ssize_t copy_out_part(struct task *t, uaddr_t dst, const void *src, size_t n)
{
	ssize_t r;

	if (n == 0)
		return 0;
	if (!range_ok(dst, n) || !t->mm)
		return -EFAULT;
	r = kernel.plat->write(mm_aspace(t->mm), dst, src, n);
	return r > 0 ? r : -EFAULT;
}

int copy_in(struct task *t, uaddr_t src, void *dst, size_t n)
{
	ssize_t r = copy_in_part(t, src, dst, n);

	return r == (ssize_t)n ? 0 : -EFAULT;
}

int copy_out(struct task *t, uaddr_t dst, const void *src, size_t n)
{
	ssize_t r = copy_out_part(t, dst, src, n);

	return r == (ssize_t)n ? 0 : -EFAULT;
}

bool user_memory_gone(struct task *t)
{
	char c;

	return t->mm && kernel.plat->read(mm_aspace(t->mm), 0, &c, sizeof(c)) == -ESRCH;
}

ssize_t copy_in_str(struct task *t, uaddr_t src, char *dst, size_t cap)
{
	size_t done = 0, want = STR_CHUNK;

	while (done < cap) {
		size_t n = MIN(cap - done, want);
		size_t page_left = PAGE_SIZE - ((src + done) & (PAGE_SIZE - 1));
		const char *nul;
		ssize_t r;

		/* Pieces end at page ends, so that a string before an unmapped page is read whole. */
		n = MIN(n, page_left);
		r = copy_in_part(t, src + done, dst + done, n);
		if (r < 0)
			return r;
		nul = memchr(dst + done, '\0', (size_t)r);
		if (nul)
			return nul - dst;
		if ((size_t)r < n)
			return -EFAULT;
		done += (size_t)r;
		want = PAGE_SIZE;
	}
	return -ENAMETOOLONG;
}

int clear_user(struct task *t, uaddr_t dst, size_t n)
{
	static const char zeros[PAGE_SIZE];

	while (n) {
		size_t k = MIN(n, sizeof(zeros));
		int r = copy_out(t, dst, zeros, k);

		if (r < 0)
			return r;
		dst += k;
		n -= k;
	}
	return 0;
}
