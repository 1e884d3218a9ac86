/* SPDX-License-Identifier: Apache-2.0 */
#include "gofer/watch.h"

#include <errno.h>
#include <stddef.h>

struct watch_table *watch_create(void)
{
	return NULL;
}

void watch_destroy(struct watch_table *w)
{
	(void)w;
}

int watch_page_fd(const struct watch_table *w)
{
	(void)w;
	return -1;
}

int watch_fd(const struct watch_table *w)
{
	(void)w;
	return -1;
}

void watch_run(struct watch_table *w)
{
	(void)w;
}

int op_watch(struct gofer *g, const Sbx__Gofer__Request *q, struct reply *r)
{
	(void)g;
	(void)q;
	(void)r;
	return -ENOSPC;
}
