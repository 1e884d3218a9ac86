/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events are asked for: names that come, go or are replaced; attributes; contents, both while they are written
 * and when a writer closes (writes through a mapping tell nothing before). What no event tells of, the sentry must not
 * keep for long: files that are changed through another name, mappings, times of access.
 *
 * An event is only told with its directory and name. Names that the guest must not see are left out. Only file systems
 * are watched whose changes all pass through this host's kernel.
 *
 * A watch ends with the last node of its directory, or by the host (the directory is gone, its file system unmounted);
 * the sentry is told of the latter only, as the former follows from what it did.
 */
#include "gofer/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host/at.h"
#include "base/host/epoll.h"
#include "base/host/file.h"
#include "base/host/inotify.h"
#include "gofer/reopen.h"

#define BUCKETS      1024
#define READ_BYTES   (32u * 1024)
#define READS_MAX    128 /* then the rest waits: somebody makes events faster than they can be read */
#define DEVS         16
#define ATTRS_MAX    32  /* of one reply */
#define NAME_EVENTS  (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)
#define ATTR_EVENTS  (IN_ATTRIB | IN_MODIFY | IN_CLOSE_WRITE)
#define WATCH_MASK   (NAME_EVENTS | ATTR_EVENTS | IN_ONLYDIR | IN_EXCL_UNLINK)

struct expected {
	const struct watch *watch;
	uint32_t mask;
	bool all;
	char name[NODE_NAME_MAX + 1];
};

struct change {
	uint32_t watch, what;
	const char *name;
};

struct watch_table {
	int fd, poll_fd;
	struct list buckets[BUCKETS];
	struct watch *by_id[WATCH_MAX + 1];
	uint32_t n_ids; /* ids that were ever in use: 1..n_ids */
	uint32_t max;   /* of them */
	uint32_t n_free, free_ids[WATCH_MAX];
	/* File systems, and whether their events can be relied on. */
	struct {
		uint64_t dev;
		bool ok;
	} devs[DEVS];
	unsigned n_devs;
	unsigned n_expected;
	struct expected expected[WATCH_EXPECTED];
	/* Gathered and not told yet. */
	bool lost;
	unsigned n_changes;
	size_t name_bytes;
	struct change changes[WATCH_CHANGES];
	char names[WATCH_NAMES];
	Sbx__Gofer__Change msgs[WATCH_CHANGES];
	Sbx__Gofer__Change *msg_ptrs[WATCH_CHANGES];
	Sbx__Gofer__Attr attrs[ATTRS_MAX];
};

/* Their files are changed by this kernel only. */
static const uint32_t local_fs[] = {
	EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, F2FS_SUPER_MAGIC,
	OVERLAYFS_SUPER_MAGIC, REISERFS_SUPER_MAGIC, MSDOS_SUPER_MAGIC, EXFAT_SUPER_MAGIC, NILFS_SUPER_MAGIC,
	SQUASHFS_MAGIC, EROFS_SUPER_MAGIC_V1, ISOFS_SUPER_MAGIC,
	0x2fc12fc1, /* zfs */
	0xca451a4e, /* bcachefs */
	0x3153464a, /* jfs */
};

/* The user's other programs need watches as well. */
static uint32_t share_of_watches(void)
{
	char buf[24] = "";
	int fd = host_open("/proc/sys/fs/inotify/max_user_watches", O_RDONLY, 0);
	unsigned long n;

	if (fd < 0 || host_read(fd, buf, sizeof(buf) - 1) <= 0)
		strcpy(buf, "4096");
	host_close(fd);
	n = strtoul(buf, NULL, 10) / 4;
	return (uint32_t)MIN(n, (unsigned long)WATCH_MAX);
}

struct watch_table *watch_create(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct watch_table *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	for (unsigned i = 0; i < BUCKETS; i++)
		list_init(&w->buckets[i]);
	w->max = share_of_watches();
	w->fd = host_inotify_create();
	/* The sentry gets this one: it tells that there are events, and nothing about them. */
	w->poll_fd = host_epoll_create();
	if (w->fd < 0 || w->poll_fd < 0 || host_epoll_ctl(w->poll_fd, EPOLL_CTL_ADD, w->fd, &e) < 0) {
		watch_destroy(w);
		return NULL;
	}
	return w;
}

static void watch_free(struct watch *x)
{
	struct watch_table *w = x->table;

	while (!list_empty(&x->nodes)) {
		struct node *n = list_first_entry(&x->nodes, struct node, watch_node);

		list_del(&n->watch_node);
		n->watch = NULL;
	}
	list_del(&x->hash_node);
	w->by_id[x->id] = NULL;
	w->free_ids[w->n_free++] = x->id;
	for (unsigned i = 0; i < w->n_expected; i++) {
		if (w->expected[i].watch == x)
			w->expected[i].watch = NULL;
	}
	free(x);
}

void watch_destroy(struct watch_table *w)
{
	if (!w)
		return;
	for (uint32_t i = 1; i <= w->n_ids; i++) {
		if (w->by_id[i])
			watch_free(w->by_id[i]);
	}
	host_close(w->poll_fd);
	host_close(w->fd);
	free(w);
}

int watch_poll_fd(const struct watch_table *w)
{
	return w ? w->poll_fd : -1;
}

static bool fs_is_local(struct watch_table *w, const struct node *n, int fd)
{
	struct statfs sf;
	bool ok = false;

	for (unsigned i = 0; i < w->n_devs; i++) {
		if (w->devs[i].dev == n->id.dev)
			return w->devs[i].ok;
	}
	if (w->n_devs == DEVS || host_fstatfs(fd, &sf) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(local_fs); i++)
		ok |= (uint32_t)sf.f_type == local_fs[i];
	w->devs[w->n_devs].dev = n->id.dev;
	w->devs[w->n_devs++].ok = ok;
	return ok;
}

static struct watch *find_wd(struct watch_table *w, int wd)
{
	struct watch *x;

	list_for_each_entry(x, &w->buckets[(unsigned)wd % BUCKETS], hash_node) {
		if (x->wd == wd)
			return x;
	}
	return NULL;
}

static struct watch *watch_make(struct watch_table *w, int wd)
{
	struct watch *x = w->n_free || w->n_ids < w->max ? calloc(1, sizeof(*x)) : NULL;

	if (!x)
		return NULL;
	x->table = w;
	x->wd = wd;
	x->id = w->n_free ? w->free_ids[--w->n_free] : ++w->n_ids;
	list_init(&x->nodes);
	list_add(&w->buckets[(unsigned)wd % BUCKETS], &x->hash_node);
	w->by_id[x->id] = x;
	return x;
}

uint32_t watch_dir(struct watch_table *w, struct node *n, int fd)
{
	char path[REOPEN_PATH_MAX];
	struct watch *x;
	int wd;

	if (!w || n->fmt != S_IFDIR || (n->flags & NODE_BARRED))
		return 0;
	if (n->watch)
		return n->watch->id;
	if (!fs_is_local(w, n, fd))
		return 0;
	wd = host_inotify_add(w->fd, reopen_path(fd, path), WATCH_MASK);
	if (wd < 0)
		return 0;
	x = find_wd(w, wd);
	if (!x)
		x = watch_make(w, wd);
	if (!x) {
		host_inotify_remove(w->fd, wd);
		return 0;
	}
	n->watch = x;
	list_add(&x->nodes, &n->watch_node);
	return x->id;
}

void watch_node_gone(struct node *n)
{
	struct watch *x = n->watch;

	if (!x)
		return;
	list_del(&n->watch_node);
	n->watch = NULL;
	if (!list_empty(&x->nodes))
		return;
	host_inotify_remove(x->table->fd, x->wd);
	watch_free(x);
}

void watch_expect(struct watch_table *w, const struct node *dir, uint32_t mask, const char *name, bool all)
{
	struct expected *e;

	if (!w || !dir || !dir->watch || w->n_expected == WATCH_EXPECTED)
		return;
	e = &w->expected[w->n_expected++];
	e->watch = dir->watch;
	e->mask = mask;
	e->all = all;
	snprintf(e->name, sizeof(e->name), "%s", name ? name : "");
}

void watch_expect_attr(struct gofer *g, const struct node *n)
{
	watch_expect(g->watches, n, ATTR_EVENTS, NULL, true);
	if (n->parent)
		watch_expect(g->watches, n->parent, ATTR_EVENTS, n->name, true);
}

void watch_expect_nothing(struct watch_table *w)
{
	if (w)
		w->n_expected = 0;
}

static bool is_expected(struct watch_table *w, const struct watch *x, uint32_t mask, const char *name)
{
	for (unsigned i = 0; i < w->n_expected; i++) {
		struct expected *e = &w->expected[i];

		if (e->watch != x || !(e->mask & mask) || strcmp(e->name, name))
			continue;
		if (!e->all)
			e->watch = NULL;
		return true;
	}
	return false;
}

static void add_change(struct watch_table *w, uint32_t id, uint32_t what, const char *name)
{
	size_t len = strlen(name) + 1;

	/* A file that is written to causes many alike. */
	for (unsigned i = w->n_changes; i > 0 && i + 8 > w->n_changes; i--) {
		struct change *c = &w->changes[i - 1];

		if (c->watch == id && !strcmp(c->name, name)) {
			c->what |= what;
			return;
		}
	}
	if (w->lost || w->n_changes == WATCH_CHANGES || w->name_bytes + len > sizeof(w->names)) {
		w->lost = true;
		return;
	}
	w->changes[w->n_changes++] = (struct change){
		.watch = id, .what = what, .name = memcpy(w->names + w->name_bytes, name, len),
	};
	w->name_bytes += len;
}

void watch_note(struct watch_table *w, const struct node *dir, const char *name)
{
	if (w && dir->watch)
		add_change(w, dir->watch->id, SBX__GOFER__CHANGE_KIND__CHANGE_NAME, name);
}

/* May the guest know of @name in this directory? By each of the places that lead to it. */
static bool is_visible(struct gofer *g, const struct watch *x, const char *name)
{
	struct node *n;
	struct file_id id;
	struct statx stx;
	int fd;

	list_for_each_entry(n, &x->nodes, watch_node) {
		if (mark_hides(n->mark, name))
			continue;
		if (!g->grants.n_hidden)
			return true;
		fd = node_pin(g->nodes, n);
		if (fd < 0)
			return true;
		if (host_statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_INO, &stx) < 0) {
			node_unpin(g->nodes, n);
			return true; /* it is not there any more */
		}
		node_unpin(g->nodes, n);
		file_id_from_statx(&id, &stx);
		if (!grant_hides_id(&g->grants, &id))
			return true;
	}
	return false;
}

static void take_event(struct gofer *g, const struct inotify_event *e)
{
	struct watch_table *w = g->watches;
	const char *name = e->len ? e->name : "";
	struct watch *x;

	if (e->mask & IN_Q_OVERFLOW) {
		w->lost = true;
		return;
	}
	x = find_wd(w, e->wd);
	if (!x)
		return; /* of one that was taken off */
	if (e->mask & (IN_IGNORED | IN_UNMOUNT)) {
		add_change(w, x->id, SBX__GOFER__CHANGE_KIND__CHANGE_ENDED, "");
		if (e->mask & IN_IGNORED)
			watch_free(x);
		return;
	}
	if (is_expected(w, x, e->mask, name) || (*name && !is_visible(g, x, name)))
		return;
	if (e->mask & NAME_EVENTS)
		add_change(w, x->id, SBX__GOFER__CHANGE_KIND__CHANGE_NAME, name);
	else if (e->mask & ATTR_EVENTS)
		add_change(w, x->id, SBX__GOFER__CHANGE_KIND__CHANGE_ATTR, name);
}

void watch_gather(struct gofer *g)
{
	static uint64_t buf[READ_BYTES / sizeof(uint64_t)];
	struct watch_table *w = g->watches;

	if (!w)
		return;
	for (unsigned i = 0; i < READS_MAX; i++) {
		ssize_t n = host_inotify_read(w->fd, buf, sizeof(buf));
		const uint8_t *p = (const uint8_t *)buf, *end = p + n;

		if (n <= 0)
			return;
		while (p < end) {
			const struct inotify_event *e = (const struct inotify_event *)p;

			take_event(g, e);
			p += sizeof(*e) + e->len;
		}
		if ((size_t)n + sizeof(struct inotify_event) + NODE_NAME_MAX + 1 < sizeof(buf))
			return; /* there was room for one more: that was all */
	}
}

void watch_settle(struct gofer *g)
{
	if (!g->watches || !g->watches->n_expected)
		return;
	watch_gather(g);
	g->watches->n_expected = 0;
}

/* Saves a question: that the sentry writes to a file is seen here as well, and it will look at it again. */
static bool tell_attr(struct gofer *g, const struct change *c, Sbx__Gofer__Attr *a)
{
	const struct watch *x = g->watches->by_id[c->watch];
	struct statx stx;
	struct node *n;
	int fd, r;

	if (c->what != SBX__GOFER__CHANGE_KIND__CHANGE_ATTR || !*c->name || !x || list_empty(&x->nodes))
		return false;
	n = list_first_entry(&x->nodes, struct node, watch_node);
	if (mark_hides(n->mark, c->name))
		return false;
	fd = node_pin(g->nodes, n);
	if (fd < 0)
		return false;
	r = host_statx(fd, c->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, NODE_STX_MASK, &stx);
	node_unpin(g->nodes, n);
	if (r < 0)
		return false;
	attr_from_statx(a, &stx);
	return true;
}

void watch_tell(struct gofer *g, struct reply *r)
{
	struct watch_table *w = g->watches;
	unsigned n_attrs = 0;

	if (!w)
		return;
	r->msg.lost = w->lost;
	for (unsigned i = 0; i < w->n_changes && !w->lost; i++) {
		Sbx__Gofer__Change *m = w->msg_ptrs[i] = &w->msgs[i];

		sbx__gofer__change__init(m);
		m->watch = w->changes[i].watch;
		m->what = w->changes[i].what;
		m->name = (char *)(uintptr_t)w->changes[i].name;
		if (n_attrs < ATTRS_MAX && tell_attr(g, &w->changes[i], &w->attrs[n_attrs]))
			m->attr = &w->attrs[n_attrs++];
		r->msg.changes = w->msg_ptrs;
		r->msg.n_changes = i + 1;
	}
	w->lost = false;
	w->n_changes = 0;
	w->name_bytes = 0;
}
