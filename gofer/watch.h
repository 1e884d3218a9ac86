/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches of directories (inotify) for the sentry's cache of names. The sentry reads a page of counters, one a watch: a
 * counter is raised when somebody other than the sentry changes names or attributes in the directory.
 */
#ifndef SBX_GOFER_WATCH_H
#define SBX_GOFER_WATCH_H

#include "base/macros.h"
#include "gofer/gofer.h"

/* Before confinement. NULL when inotify or the page cannot be had. */
struct watch_table *watch_create(void);
void watch_destroy(struct watch_table *w);
int watch_page_fd(const struct watch_table *w); /* read-only; -1: none */
int watch_fd(const struct watch_table *w);      /* to poll; -1: none */
void watch_run(struct watch_table *w);
GOFER_OP(op_watch);

#endif
