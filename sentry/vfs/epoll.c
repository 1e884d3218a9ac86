/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An epoll set has items, one for each (file, fd). An item is a waiter on the watched file's queue: a wake puts it on
 * the ready list and wakes the set's own queue. Ready is a hint: epoll_collect() asks the file again, drops items that
 * are not ready after all, and keeps level-triggered ones on the list.
 *
 * An item holds no reference on its file (closing a file ends the watch, epoll(7)); file_put() calls epoll_file_gone().
 */
#include "sentry/vfs/epoll.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "sentry/kernel/waitq.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/vfs.h"

#define EP_PRIVATE_BITS (EPOLLET | EPOLLONESHOT | EPOLLWAKEUP | EPOLLEXCLUSIVE)
#define EP_HASH 64

struct epoll_item {
	struct waiter w;
	struct list hash_node;  /* in the set, by fd */
	struct list file_node;  /* on file->epoll_links */
	struct list ready_node;
	struct epoll *ep;
	struct file *file;      /* not counted */
	int fd;
	struct linux_epoll_event ev;
};

struct epoll {
	struct file file;
	struct waitq wq;
	struct list items[EP_HASH];
	struct list ready;
};

static const struct file_ops epoll_file_ops;
static unsigned n_items_total;

static struct epoll *epoll_of(struct file *f)
{
	return container_of(f, struct epoll, file);
}

static void item_ready(struct epoll_item *it)
{
	if (!list_empty(&it->ready_node))
		return;
	list_add_tail(&it->ep->ready, &it->ready_node);
	waitq_wake(&it->ep->wq, POLLIN);
}

static void item_wake(struct waiter *w, uint32_t events)
{
	struct epoll_item *it = container_of(w, struct epoll_item, w);

	if (it->ev.events & ~EP_PRIVATE_BITS)
		item_ready(it);
}

static void item_free(struct epoll_item *it)
{
	waitq_remove(&it->w);
	list_del(&it->hash_node);
	list_del(&it->file_node);
	list_del(&it->ready_node);
	n_items_total--;
	free(it);
}

static struct epoll_item *item_find(struct epoll *ep, const struct file *f, int fd)
{
	struct epoll_item *it;

	list_for_each_entry(it, &ep->items[(unsigned)fd % EP_HASH], hash_node) {
		if (it->fd == fd && it->file == f)
			return it;
	}
	return NULL;
}

static uint32_t item_poll(struct epoll_item *it, struct waitq **q)
{
	return vfs_poll(it->file, q) & it->ev.events & ~EP_PRIVATE_BITS;
}

/* The events changed, or it is new: waits on the file and looks whether it is ready now. */
static void item_arm(struct epoll_item *it)
{
	struct waitq *q = NULL;
	uint32_t got;

	it->ev.events |= EPOLLERR | EPOLLHUP;
	waitq_remove(&it->w);
	it->w.events = it->ev.events & ~EP_PRIVATE_BITS;
	got = item_poll(it, &q);
	if (q)
		waitq_add(q, &it->w);
	if (got)
		item_ready(it);
}

/* Does @f reach @target through epoll sets? The nesting depth below, or -1 for "yes" or too deep. */
static int nest_depth(struct file *f, const struct file *target, int depth)
{
	int deepest = 0;

	if (f == target || depth > EPOLL_NEST_MAX)
		return -1;
	if (f->ops != &epoll_file_ops)
		return 0;
	for (int i = 0; i < EP_HASH; i++) {
		struct epoll_item *it;

		list_for_each_entry(it, &epoll_of(f)->items[i], hash_node) {
			int d = nest_depth(it->file, target, depth + 1);

			if (d < 0)
				return -1;
			deepest = MAX(deepest, d + 1);
		}
	}
	return deepest;
}

/* How many sets stand above this one. */
static int nest_height(struct file *f, int depth)
{
	struct epoll_item *it;
	int highest = 0;

	if (depth > EPOLL_NEST_MAX)
		return depth;
	list_for_each_entry(it, &f->epoll_links, file_node)
		highest = MAX(highest, 1 + nest_height(&it->ep->file, depth + 1));
	return highest;
}

static int item_add(struct epoll *ep, struct file *f, int fd, const struct linux_epoll_event *ev)
{
	struct epoll_item *it;

	if (f->ops == &epoll_file_ops) {
		int depth = nest_depth(f, &ep->file, 0);

		if (depth < 0 || depth + nest_height(&ep->file, 0) + 1 > EPOLL_NEST_MAX)
			return -ELOOP;
	}
	if (n_items_total >= EPOLL_ITEMS_MAX)
		return -ENOSPC;
	it = calloc(1, sizeof(*it));
	if (!it)
		return -ENOMEM;
	n_items_total++;
	list_init(&it->w.node);
	list_init(&it->ready_node);
	it->w.wake = item_wake;
	it->w.exclusive = ev->events & EPOLLEXCLUSIVE;
	it->ep = ep;
	it->file = f;
	it->fd = fd;
	it->ev = *ev;
	list_add_tail(&ep->items[(unsigned)fd % EP_HASH], &it->hash_node);
	list_add_tail(&f->epoll_links, &it->file_node);
	item_arm(it);
	return 0;
}

int epoll_ctl_file(struct file *epf, int op, int fd, struct file *target, const struct linux_epoll_event *ev)
{
	struct epoll *ep = epoll_of(epf);
	struct epoll_item *it;

	if (target == epf || epf->ops != &epoll_file_ops)
		return -EINVAL;
	if (!target->ops->poll)
		return -EPERM; /* regular files and directories */
	if (op != EPOLL_CTL_DEL && (ev->events & EPOLLEXCLUSIVE) &&
	    (op == EPOLL_CTL_MOD || target->ops == &epoll_file_ops ||
	     (ev->events & ~(EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE))))
		return -EINVAL;
	it = item_find(ep, target, fd);
	switch (op) {
	case EPOLL_CTL_ADD:
		return it ? -EEXIST : item_add(ep, target, fd, ev);
	case EPOLL_CTL_DEL:
		if (!it)
			return -ENOENT;
		item_free(it);
		return 0;
	case EPOLL_CTL_MOD:
		if (!it)
			return -ENOENT;
		if (it->ev.events & EPOLLEXCLUSIVE)
			return -EINVAL;
		it->ev = *ev;
		item_arm(it);
		return 0;
	default:
		return -EINVAL;
	}
}

/* Takes a ready item's event; false when it is not ready after all. */
static bool item_take(struct epoll_item *it, struct linux_epoll_event *out)
{
	struct waitq *q = NULL;
	uint32_t got = item_poll(it, &q);

	if (!got)
		return false;
	out->events = got;
	out->data = it->ev.data;
	if (it->ev.events & EPOLLONESHOT)
		it->ev.events &= EP_PRIVATE_BITS;
	return true;
}

int epoll_collect(struct file *epf, struct linux_epoll_event *out, unsigned max)
{
	struct epoll *ep = epoll_of(epf);
	struct list todo = LIST_INIT(todo);
	unsigned n = 0;

	if (epf->ops != &epoll_file_ops)
		return -EINVAL;
	list_splice_tail(&todo, &ep->ready);
	while (n < max && !list_empty(&todo)) {
		struct epoll_item *it = list_first_entry(&todo, struct epoll_item, ready_node);

		list_del(&it->ready_node);
		if (!item_take(it, &out[n]))
			continue;
		n++;
		if (!(it->ev.events & (EPOLLET | EPOLLONESHOT)))
			list_add_tail(&ep->ready, &it->ready_node);
	}
	/* What was not looked at goes first next time. */
	list_splice_tail(&todo, &ep->ready);
	list_splice_tail(&ep->ready, &todo);
	return (int)n;
}

static uint32_t epoll_poll(struct file *f, struct waitq **q)
{
	struct epoll *ep = epoll_of(f);
	struct epoll_item *it, *tmp;

	*q = &ep->wq;
	list_for_each_entry_safe(it, tmp, &ep->ready, ready_node) {
		struct waitq *iq = NULL;

		if (item_poll(it, &iq))
			return POLLIN | POLLRDNORM;
		list_del(&it->ready_node);
	}
	return 0;
}

static void epoll_release(struct file *f)
{
	struct epoll *ep = epoll_of(f);

	for (int i = 0; i < EP_HASH; i++) {
		while (!list_empty(&ep->items[i]))
			item_free(list_first_entry(&ep->items[i], struct epoll_item, hash_node));
	}
	waitq_fini(&ep->wq);
}

void epoll_file_gone(struct file *f)
{
	while (!list_empty(&f->epoll_links))
		item_free(list_first_entry(&f->epoll_links, struct epoll_item, file_node));
}

static const struct file_ops epoll_file_ops = {
	.file_size = sizeof(struct epoll),
	.poll = epoll_poll,
	.release = epoll_release,
};

int epoll_create_file(struct file **ret)
{
	struct inode *in = anon_inode_create(0600);
	struct file *f;
	struct epoll *ep;

	if (!in)
		return -ENOMEM;
	f = file_create(&epoll_file_ops, in, O_RDWR);
	inode_put(in);
	if (!f)
		return -ENFILE;
	ep = epoll_of(f);
	waitq_init(&ep->wq);
	list_init(&ep->ready);
	for (int i = 0; i < EP_HASH; i++)
		list_init(&ep->items[i]);
	f->anon_name = "anon_inode:[eventpoll]";
	*ret = f;
	return 0;
}
