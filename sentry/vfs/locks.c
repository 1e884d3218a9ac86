/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All locks of an inode are on inode->locks, made on first use. A lock has an owner: the fd table for POSIX locks, the
 * open file description for OFD and flock locks. Record locks of one owner never overlap: setting a range first cuts
 * it out of what the owner has.
 *
 * A blocked F_SETLKW notes whom it waits for, so that a cycle of waiting owners is refused with EDEADLK (POSIX locks
 * only, as in Linux). The note lives in task->op and goes with the call.
 */
#include "sentry/vfs/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/kernel/waitq.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

enum lock_class { LOCK_CLASS_FLOCK, LOCK_CLASS_RECORD };

struct flock_set {
	struct list locks;
	struct waitq wq;
};

struct lock {
	struct list node;
	const void *owner;
	enum lock_class cls;
	int16_t type;        /* F_RDLCK, F_WRLCK */
	bool ofd;
	pid_t pid;
	uint64_t start, end; /* inclusive */
};

struct linux_flock {
	int16_t l_type, l_whence;
	int32_t pad;
	int64_t l_start, l_len;
	int32_t l_pid, pad2;
};

/* A waiting call: who waits for whom. Holds the file, so that the wait queue stays. */
struct lock_wait {
	struct list node;
	const void *owner, *blocker;
	struct file *file;
};

static struct list all_waits = LIST_INIT(all_waits);
static unsigned n_locks;

static void lock_wait_free(void *data)
{
	struct lock_wait *w = data;

	list_del(&w->node);
	file_put(w->file);
	free(w);
}

static struct flock_set *lock_set(struct inode *in)
{
	struct flock_set *s = in->locks;

	if (s)
		return s;
	s = malloc(sizeof(*s));
	if (!s)
		return NULL;
	list_init(&s->locks);
	waitq_init(&s->wq);
	in->locks = s;
	return s;
}

static void lock_free(struct lock *l)
{
	list_del(&l->node);
	n_locks--;
	free(l);
}

static struct lock *lock_add(struct flock_set *s, const struct lock *tmpl)
{
	struct lock *l;

	if (n_locks >= LOCKS_MAX)
		return NULL;
	l = malloc(sizeof(*l));
	if (!l)
		return NULL;
	*l = *tmpl;
	n_locks++;
	list_add_tail(&s->locks, &l->node);
	return l;
}

static bool overlap(const struct lock *a, const struct lock *b)
{
	return a->start <= b->end && b->start <= a->end;
}

/* The first lock that keeps @want from being set, or NULL. */
static struct lock *lock_conflict(struct flock_set *s, const struct lock *want)
{
	struct lock *l;

	list_for_each_entry(l, &s->locks, node) {
		if (l->cls == want->cls && l->owner != want->owner && overlap(l, want) &&
		    (l->type == F_WRLCK || want->type == F_WRLCK))
			return l;
	}
	return NULL;
}

/*
 * Cuts [start, end] out of the owner's record locks. @spare is used when one lock becomes two; returns whether it was.
 * At most one lock can contain the range on both sides.
 */
static bool range_cut(struct flock_set *s, const struct lock *r, struct lock *spare)
{
	struct lock *l, *tmp;
	bool used = false;

	list_for_each_entry_safe(l, tmp, &s->locks, node) {
		if (l->cls != LOCK_CLASS_RECORD || l->owner != r->owner || !overlap(l, r))
			continue;
		if (l->start < r->start && l->end > r->end) {
			*spare = *l;
			spare->start = r->end + 1;
			list_add_tail(&s->locks, &spare->node);
			l->end = r->start - 1;
			used = true;
		} else if (l->start < r->start) {
			l->end = r->start - 1;
		} else if (l->end > r->end) {
			l->start = r->end + 1;
		} else {
			lock_free(l);
		}
	}
	return used;
}

/* Joins @l with the owner's neighbours of the same type. */
static void range_merge(struct flock_set *s, struct lock *l)
{
	struct lock *o, *tmp;

	list_for_each_entry_safe(o, tmp, &s->locks, node) {
		if (o == l || o->cls != l->cls || o->owner != l->owner || o->type != l->type)
			continue;
		if ((o->end != UINT64_MAX && o->end + 1 == l->start) ||
		    (l->end != UINT64_MAX && l->end + 1 == o->start)) {
			l->start = MIN(l->start, o->start);
			l->end = MAX(l->end, o->end);
			lock_free(o);
		}
	}
}

static void locks_changed(struct flock_set *s)
{
	waitq_wake_n(&s->wq, POLLIN, WAITQ_WAKE_ALL);
}

/* Sets (or with F_UNLCK clears) a record lock that has no conflict. */
static int record_set(struct flock_set *s, const struct lock *want)
{
	struct lock *spare = malloc(sizeof(*spare)), *l = NULL;

	if (!spare)
		return -ENOLCK;
	if (want->type != F_UNLCK) {
		l = lock_add(s, want);
		if (!l) {
			free(spare);
			return -ENOLCK;
		}
		l->owner = NULL; /* not seen by range_cut */
	}
	n_locks++;
	if (!range_cut(s, want, spare)) {
		n_locks--;
		free(spare);
	}
	if (l) {
		l->owner = want->owner;
		range_merge(s, l);
	}
	locks_changed(s);
	return 0;
}

/* fcntl(2): whence, start and a length that may be negative, as an inclusive range. */
static int range_decode(struct file *f, const struct linux_flock *fl, struct lock *l)
{
	int64_t base = 0, start, end;

	if (fl->l_whence == SEEK_CUR)
		base = (int64_t)f->pos;
	else if (fl->l_whence == SEEK_END)
		base = (int64_t)f->inode->size;
	else if (fl->l_whence != SEEK_SET)
		return -EINVAL;
	if (__builtin_add_overflow(base, fl->l_start, &start))
		return -EOVERFLOW;
	if (fl->l_len == 0) {
		end = INT64_MAX;
	} else if (fl->l_len > 0) {
		if (start >= 0 && __builtin_add_overflow(start, fl->l_len - 1, &end))
			return -EOVERFLOW;
	} else {
		end = start;
		if (__builtin_add_overflow(start, fl->l_len, &start))
			return -EINVAL;
		end--; /* above the new start: no overflow */
	}
	if (start < 0)
		return -EINVAL;
	l->start = (uint64_t)start;
	l->end = end == INT64_MAX ? UINT64_MAX : (uint64_t)end;
	return 0;
}

static bool would_deadlock(const void *owner, const void *blocker)
{
	/* Each step follows one waiting call; a chain longer than all waits is a cycle among others. */
	for (int steps = 0; steps < 1024; steps++) {
		struct lock_wait *w;
		const void *next = NULL;

		if (blocker == owner)
			return true;
		list_for_each_entry(w, &all_waits, node) {
			if (w->owner == blocker) {
				next = w->blocker;
				break;
			}
		}
		if (!next)
			return false;
		blocker = next;
	}
	return false;
}

/* Blocks until the set changes. */
static int64_t lock_block(struct task *t, struct file *f, struct flock_set *s, const struct lock *want,
			  const struct lock *blocker)
{
	struct lock_wait *w;

	if (want->cls == LOCK_CLASS_RECORD && !want->ofd && !blocker->ofd &&
	    would_deadlock(want->owner, blocker->owner))
		return -EDEADLK;
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOLCK;
	w->owner = want->owner;
	w->blocker = blocker->owner;
	w->file = file_get(f);
	list_add(&all_waits, &w->node);
	task_op_hold(t, w, lock_wait_free);
	if (task_wait_on(t, &s->wq, POLLIN))
		return -ENOLCK;
	return task_block(t, -ERESTARTSYS);
}

static int64_t record_get(struct task *t, struct flock_set *s, const struct lock *want, struct linux_flock *fl,
			  uaddr_t arg)
{
	struct lock *l = lock_conflict(s, want);

	if (!l) {
		fl->l_type = F_UNLCK;
	} else {
		fl->l_type = l->type;
		fl->l_whence = SEEK_SET;
		fl->l_start = (int64_t)l->start;
		fl->l_len = l->end == UINT64_MAX ? 0 : (int64_t)(l->end - l->start + 1);
		fl->l_pid = l->ofd ? -1 : l->pid;
	}
	return copy_out(t, arg, fl, sizeof(*fl));
}

int64_t locks_fcntl(struct task *t, struct file *f, int cmd, uint64_t arg)
{
	bool ofd = cmd == F_OFD_GETLK || cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW;
	bool wait = cmd == F_SETLKW || cmd == F_OFD_SETLKW, get = cmd == F_GETLK || cmd == F_OFD_GETLK;
	struct lock want = { .cls = LOCK_CLASS_RECORD, .ofd = ofd, .pid = ofd ? -1 : t->tg->tgid };
	struct linux_flock fl;
	struct flock_set *s;
	struct lock *blocker;
	int err;

	if (copy_in(t, arg, &fl, sizeof(fl)))
		return -EFAULT;
	if (ofd && fl.l_pid != 0)
		return -EINVAL;
	if (fl.l_type != F_RDLCK && fl.l_type != F_WRLCK && (get || fl.l_type != F_UNLCK))
		return -EINVAL;
	err = range_decode(f, &fl, &want);
	if (err)
		return err;
	if (!get && ((fl.l_type == F_RDLCK && !file_readable(f)) || (fl.l_type == F_WRLCK && !file_writable(f))))
		return -EBADF;
	s = lock_set(f->inode);
	if (!s)
		return -ENOLCK;
	want.owner = ofd ? (const void *)f : (const void *)t->fdt;
	want.type = fl.l_type;
	if (get)
		return record_get(t, s, &want, &fl, arg);
	blocker = want.type == F_UNLCK ? NULL : lock_conflict(s, &want);
	if (!blocker)
		return record_set(s, &want);
	return wait ? lock_block(t, f, s, &want, blocker) : -EAGAIN;
}

static void owner_clear(struct inode *in, const void *owner, unsigned classes)
{
	struct flock_set *s = in->locks;
	struct lock *l, *tmp;
	bool any = false;

	if (!s)
		return;
	list_for_each_entry_safe(l, tmp, &s->locks, node) {
		if (l->owner == owner && (classes & (1u << l->cls))) {
			lock_free(l);
			any = true;
		}
	}
	if (any)
		locks_changed(s);
}

int64_t locks_flock(struct task *t, struct file *f, int op)
{
	struct lock want = { .cls = LOCK_CLASS_FLOCK, .owner = f, .pid = t->tg->tgid, .end = UINT64_MAX };
	struct flock_set *s;
	struct lock *l, *blocker;

	switch (op & ~LOCK_NB) {
	case LOCK_UN:
		owner_clear(f->inode, f, 1u << LOCK_CLASS_FLOCK);
		return 0;
	case LOCK_SH:
		want.type = F_RDLCK;
		break;
	case LOCK_EX:
		want.type = F_WRLCK;
		break;
	default:
		return -EINVAL;
	}
	s = lock_set(f->inode);
	if (!s)
		return -ENOLCK;
	list_for_each_entry(l, &s->locks, node) {
		if (l->owner == f && l->cls == LOCK_CLASS_FLOCK) {
			if (l->type == want.type)
				return 0;
			/* flock(2): a conversion is not atomic, the old lock goes first. */
			lock_free(l);
			locks_changed(s);
			break;
		}
	}
	blocker = lock_conflict(s, &want);
	if (blocker)
		return (op & LOCK_NB) ? -EWOULDBLOCK : lock_block(t, f, s, &want, blocker);
	return lock_add(s, &want) ? 0 : -ENOLCK;
}

void locks_fd_closed(struct file *f, struct fdtable *owner)
{
	if (f->inode->locks)
		owner_clear(f->inode, owner, 1u << LOCK_CLASS_RECORD);
}

void locks_file_gone(struct file *f)
{
	if (f->inode->locks)
		owner_clear(f->inode, f, 1u << LOCK_CLASS_FLOCK | 1u << LOCK_CLASS_RECORD);
}

void locks_inode_gone(struct inode *in)
{
	struct flock_set *s = in->locks;

	if (!s)
		return;
	while (!list_empty(&s->locks))
		lock_free(list_first_entry(&s->locks, struct lock, node));
	waitq_fini(&s->wq);
	free(s);
	in->locks = NULL;
}
