/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/vfs/fdtable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/locks.h"

#define FDT_START 64u
#define FDT_MAX   1048576u /* /proc/sys/fs/nr_open */
#define WORD_BITS 64u

struct fdtable {
	struct ref ref;
	unsigned cap;       /* multiple of WORD_BITS */
	unsigned hint;      /* no free number below */
	struct file **files;
	uint64_t *used;     /* bitmaps of cap bits, in one allocation */
	uint64_t *cloexec;
};

static bool bit_test(const uint64_t *map, unsigned n)
{
	return map[n / WORD_BITS] >> (n % WORD_BITS) & 1;
}

static void bit_set(uint64_t *map, unsigned n, bool on)
{
	uint64_t bit = 1ull << (n % WORD_BITS);

	map[n / WORD_BITS] = on ? map[n / WORD_BITS] | bit : map[n / WORD_BITS] & ~bit;
}

/* Room for @fd. */
static int fdtable_grow(struct fdtable *t, unsigned fd)
{
	unsigned cap = t->cap ? t->cap : FDT_START;
	struct file **files;
	uint64_t *maps;

	while (cap <= fd)
		cap *= 2;
	if (cap == t->cap)
		return 0;
	files = calloc(cap, sizeof(*files));
	maps = calloc(2 * (cap / WORD_BITS), sizeof(*maps));
	if (!files || !maps) {
		free(files);
		free(maps);
		return -ENOMEM;
	}
	if (t->cap) {
		memcpy(files, t->files, t->cap * sizeof(*files));
		memcpy(maps, t->used, t->cap / 8);
		memcpy(maps + cap / WORD_BITS, t->cloexec, t->cap / 8);
	}
	free(t->files);
	free(t->used);
	t->files = files;
	t->used = maps;
	t->cloexec = maps + cap / WORD_BITS;
	t->cap = cap;
	return 0;
}

struct fdtable *fdtable_create(void)
{
	struct fdtable *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	ref_init(&t->ref);
	if (fdtable_grow(t, 0)) {
		free(t);
		return NULL;
	}
	return t;
}

struct fdtable *fdtable_get(struct fdtable *t)
{
	ref_get(&t->ref);
	return t;
}

/* Takes @fd out; the reference on its file is the caller's. */
static struct file *fd_take(struct fdtable *t, unsigned fd)
{
	struct file *f = t->files[fd];

	t->files[fd] = NULL;
	bit_set(t->used, fd, false);
	bit_set(t->cloexec, fd, false);
	if (fd < t->hint)
		t->hint = fd;
	return f;
}

/* What close(2) does with a file that has left the table. Consumes @f. */
static void close_file(struct fdtable *t, struct file *f)
{
	if (f->inode->locks)
		locks_fd_closed(f, t);
	if (f->ops && f->ops->flush && !(f->flags & FILE_OPATH))
		f->ops->flush(f);
	file_put(f);
}

int fd_next(struct fdtable *t, int fd)
{
	unsigned w, n = fd < 0 ? 0 : (unsigned)fd;
	uint64_t bits;

	if (n >= t->cap)
		return -1;
	w = n / WORD_BITS;
	bits = t->used[w] & (~0ull << (n % WORD_BITS));
	while (!bits) {
		if (++w == t->cap / WORD_BITS)
			return -1;
		bits = t->used[w];
	}
	return (int)(w * WORD_BITS) + __builtin_ctzll(bits);
}

void fdtable_put(struct fdtable *t)
{
	if (!t || !ref_put(&t->ref))
		return;
	for (int fd = fd_next(t, 0); fd >= 0; fd = fd_next(t, fd + 1))
		close_file(t, fd_take(t, (unsigned)fd));
	free(t->files);
	free(t->used);
	free(t);
}

struct fdtable *fdtable_copy(struct fdtable *t)
{
	struct fdtable *n = fdtable_create();

	if (!n)
		return NULL;
	if (fdtable_grow(n, t->cap - 1)) {
		fdtable_put(n);
		return NULL;
	}
	memcpy(n->used, t->used, t->cap / 8);
	memcpy(n->cloexec, t->cloexec, t->cap / 8);
	n->hint = t->hint;
	for (int fd = fd_next(t, 0); fd >= 0; fd = fd_next(t, fd + 1))
		n->files[fd] = file_get(t->files[fd]);
	return n;
}

void fdtable_close_on_exec(struct fdtable *t)
{
	for (unsigned w = 0; w < t->cap / WORD_BITS; w++) {
		uint64_t bits;

		while ((bits = t->cloexec[w]) != 0)
			close_file(t, fd_take(t, w * WORD_BITS + (unsigned)__builtin_ctzll(bits)));
	}
}

struct file *fd_lookup(struct fdtable *t, int fd)
{
	if (fd < 0 || (unsigned)fd >= t->cap || !t->files[fd])
		return NULL;
	return file_get(t->files[fd]);
}

int fd_get_opath(struct task *t, int fd, struct file **ret)
{
	struct file *f = fd_lookup(t->fdt, fd);

	if (!f)
		return -EBADF;
	*ret = f;
	return 0;
}

int fd_get(struct task *t, int fd, struct file **ret)
{
	struct fdtable *tab = t->fdt;
	struct file *f;

	if (fd < 0 || (unsigned)fd >= tab->cap)
		return -EBADF;
	f = tab->files[fd];
	if (!f || (f->flags & FILE_OPATH))
		return -EBADF;
	*ret = file_get(f);
	return 0;
}

/* The lowest free number from @min on, which may be the present end of the table. */
static unsigned lowest_free(const struct fdtable *t, unsigned min)
{
	unsigned n = MAX(min, t->hint), w = n / WORD_BITS;
	uint64_t bits;

	if (n >= t->cap)
		return n;
	bits = ~t->used[w] & (~0ull << (n % WORD_BITS));
	while (!bits) {
		if (++w == t->cap / WORD_BITS)
			return t->cap;
		bits = ~t->used[w];
	}
	return w * WORD_BITS + (unsigned)__builtin_ctzll(bits);
}

static unsigned fd_limit(const struct task *task)
{
	return (unsigned)MIN(task_rlimit(task, RLIMIT_NOFILE), (uint64_t)FDT_MAX);
}

int fd_reserve(struct task *task, int min)
{
	struct fdtable *t = task->fdt;
	unsigned limit = fd_limit(task), fd;
	int err;

	if (min < 0 || (unsigned)min >= limit)
		return -EMFILE;
	fd = lowest_free(t, (unsigned)min);
	if (fd >= limit)
		return -EMFILE;
	err = fdtable_grow(t, fd);
	return err ? err : (int)fd;
}

int fd_install(struct task *task, struct file *f, int min, bool cloexec)
{
	struct fdtable *t = task->fdt;
	int fd = fd_reserve(task, min);

	if (fd < 0) {
		file_put(f);
		return fd;
	}
	t->files[fd] = f;
	bit_set(t->used, (unsigned)fd, true);
	bit_set(t->cloexec, (unsigned)fd, cloexec);
	if ((unsigned)fd == t->hint)
		t->hint++;
	return fd;
}

int fd_install_at(struct task *task, struct file *f, int fd, bool cloexec)
{
	struct fdtable *t = task->fdt;
	struct file *old;
	int err = -EBADF;

	if (fd >= 0 && (unsigned)fd < fd_limit(task))
		err = fdtable_grow(t, (unsigned)fd);
	if (err) {
		file_put(f);
		return err;
	}
	old = t->files[fd];
	t->files[fd] = f;
	bit_set(t->used, (unsigned)fd, true);
	bit_set(t->cloexec, (unsigned)fd, cloexec);
	if (old)
		close_file(t, old);
	return fd;
}

int fd_close(struct task *task, int fd)
{
	struct fdtable *t = task->fdt;

	if (fd < 0 || (unsigned)fd >= t->cap || !t->files[fd])
		return -EBADF;
	close_file(t, fd_take(t, (unsigned)fd));
	return 0;
}

int fd_close_range(struct task *task, unsigned first, unsigned last, bool cloexec_only)
{
	struct fdtable *t = task->fdt;

	if (first > last)
		return -EINVAL;
	if (first >= t->cap)
		return 0;
	for (int fd = fd_next(t, (int)first); fd >= 0 && (unsigned)fd <= last; fd = fd_next(t, fd + 1)) {
		if (cloexec_only)
			bit_set(t->cloexec, (unsigned)fd, true);
		else
			close_file(t, fd_take(t, (unsigned)fd));
	}
	return 0;
}

int fd_unshare(struct task *task)
{
	struct fdtable *n;

	if (ref_count(&task->fdt->ref) == 1)
		return 0;
	n = fdtable_copy(task->fdt);
	if (!n)
		return -ENOMEM;
	fdtable_put(task->fdt);
	task->fdt = n;
	return 0;
}

int fd_get_flags(struct fdtable *t, int fd)
{
	if (fd < 0 || (unsigned)fd >= t->cap || !t->files[fd])
		return -EBADF;
	return bit_test(t->cloexec, (unsigned)fd) ? FD_CLOEXEC : 0;
}

int fd_set_flags(struct fdtable *t, int fd, int flags)
{
	if (fd < 0 || (unsigned)fd >= t->cap || !t->files[fd])
		return -EBADF;
	bit_set(t->cloexec, (unsigned)fd, flags & FD_CLOEXEC);
	return 0;
}
