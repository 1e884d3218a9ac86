/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches of directories (inotify), so that the sentry may keep what it learned of live grants until somebody else
 * changes it. Nobody waits for events here: the sentry polls watch_poll_fd(), and asks when there are some.
 */
#ifndef SBX_GOFER_WATCH_H
#define SBX_GOFER_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/inotify.h>

#include "base/list.h"
#include "base/macros.h"
#include "gofer/gofer.h"

#define WATCH_MAX       8192       /* directories */
#define WATCH_CHANGES   256        /* that one reply can tell */
#define WATCH_NAMES     (16u * 1024) /* bytes of their names together */
#define WATCH_EXPECTED  8

/* A watched directory; several nodes may lead to it. */
struct watch {
	struct watch_table *table;
	struct list hash_node; /* by wd */
	struct list nodes;     /* of node.watch_node */
	int wd;
	uint32_t id;           /* what the sentry knows it by; never 0 */
};

/* Before confinement. NULL when inotify cannot be had. */
struct watch_table *watch_create(void);
void watch_destroy(struct watch_table *w); /* NULL is allowed; nodes that are left lose their watches */
/* An fd that polls readable while events wait, and cannot be read; -1: none. Borrowed. */
int watch_poll_fd(const struct watch_table *w);

/* Watches the directory @n, pinned as @fd, unless it is. Its id, 0: it cannot be watched. */
uint32_t watch_dir(struct watch_table *w, struct node *n, int fd);
/* Takes @n off its watch. */
void watch_node_gone(struct node *n);

/*
 * The gofer's own changes do not have to be told: before a change, the events that it will cause are named; after it,
 * and before the attributes are read that the reply carries, watch_settle() takes them out of the queue.
 * @mask: IN_*; @name NULL: an event of the directory itself. With @all any number of them, else one.
 */
void watch_expect(struct watch_table *w, const struct node *dir, uint32_t mask, const char *name, bool all);
/* A change of attributes of @n. */
void watch_expect_attr(struct gofer *g, const struct node *n);
void watch_settle(struct gofer *g);
/* Tells that @name in @dir is not what it was. */
void watch_note(struct watch_table *w, const struct node *dir, const char *name);
void watch_expect_nothing(struct watch_table *w);

/* Gathers what happened into the table; watch_tell() puts it into the reply. */
void watch_gather(struct gofer *g);
void watch_tell(struct gofer *g, struct reply *r);

#endif
