/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of a hostile gofer, as the sentry parses them and takes over the changes that they tell. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/gofer_priv.h"
#include "sentry/vfs/inode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gofer_conn *conn;
static struct gofer_fs fs;
static struct gofer_inode *root, *dir, *file;

static struct gofer_inode *make(struct gofer_inode *parent, const char *name, uint32_t mode, uint64_t ino)
{
	Sbx__Gofer__Attr a = SBX__GOFER__ATTR__INIT;
	struct gofer_inode *gi;

	a.mode = mode;
	a.ino = ino;
	if (gofer_iget(&fs, parent, name, &a, GOFER_FOREVER, &gi) < 0)
		abort();
	return gi;
}

/* A live grant with two watched directories and a file. */
static void set_up(void)
{
	static const struct super_ops no_ops;

	conn = calloc(1, sizeof(*conn));
	fs.n_buckets = 64;
	fs.buckets = malloc(fs.n_buckets * sizeof(*fs.buckets));
	if (!conn || !fs.buckets)
		abort();
	for (uint32_t i = 0; i < fs.n_buckets; i++)
		list_init(&fs.buckets[i]);
	ref_init(&conn->ref);
	list_init(&conn->idle);
	list_init(&conn->listings);
	conn->sock = conn->events = -1;
	fs.conn = conn;
	super_init(&fs.sb, &no_ops, "gofer", 0);
	root = make(NULL, NULL, S_IFDIR | 0755, 1);
	fs.sb.root = &root->inode;
	dir = make(root, "d", S_IFDIR | 0755, 2);
	file = make(dir, "f", S_IFREG | 0644, 3);
}

static void changes(const Sbx__Gofer__Reply *r)
{
	struct gofer_listing *l;

	conn->events = 0; /* else nothing can be watched */
	conn->tag++;
	gofer_watch_set(root, 1);
	gofer_watch_set(dir, 2);
	conn->events = -1;
	if (gofer_listing_reset(dir, 0, &l) == 0)
		gofer_listing_add(dir, "f", 1, file);
	gofer_changes(conn, r);
	if (conn->n_live != (root->watch ? 1u : 0u) + (dir->watch ? 1u : 0u))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t mem[GOFER_ARENA_SIZE];
	struct wire_arena arena = { .base = mem, .cap = sizeof(mem) };
	const Sbx__Gofer__Reply *r;

	if (!conn)
		set_up();
	if (size > WIRE_MSG_MAX || gofer_reply_parse(data, size, &arena, &r) < 0)
		return 0;
	/* What was let through has the promised form. */
	for (size_t i = 0; i < r->n_attrs; i++) {
		if (!gofer_attr_sane(r->attrs[i]))
			abort();
	}
	for (size_t i = 0; i < r->n_entries; i++) {
		if (!r->entries[i]->name[0] || strlen(r->entries[i]->name) > 255)
			abort();
	}
	for (size_t i = 0; i < r->n_changes; i++) {
		if (r->changes[i]->attr && !gofer_attr_sane(r->changes[i]->attr))
			abort();
	}
	for (size_t i = 0; i < r->n_done; i++) {
		if (r->done[i]->error >= 4096 || (r->done[i]->attr && !gofer_attr_sane(r->done[i]->attr)))
			abort();
	}
	changes(r);
	return 0;
}
