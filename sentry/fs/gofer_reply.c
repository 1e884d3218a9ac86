/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/gofer_priv.h"

bool gofer_attr_sane(const Sbx__Gofer__Attr *a)
{
	switch (a->mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		break;
	default:
		return false;
	}
	return !(a->mode & ~(uint32_t)(S_IFMT | 07777)) && a->size <= INT64_MAX && a->atime_nsec < NSEC_PER_SEC &&
	       a->mtime_nsec < NSEC_PER_SEC && a->ctime_nsec < NSEC_PER_SEC && a->btime_nsec < NSEC_PER_SEC;
}

static bool entry_sane(const Sbx__Gofer__Dirent *e)
{
	size_t len = strlen(e->name);
	bool dot = !strcmp(e->name, ".") || !strcmp(e->name, "..");

	if (!len || len > 255 || strchr(e->name, '/') || e->cookie > INT64_MAX)
		return false;
	return dot ? !e->attr : e->attr && gofer_attr_sane(e->attr);
}

int gofer_reply_parse(const uint8_t *buf, size_t len, struct wire_arena *arena, const Sbx__Gofer__Reply **ret)
{
	ProtobufCAllocator alloc = { wire_arena_alloc, wire_arena_free, arena };
	Sbx__Gofer__Reply *r;

	wire_arena_reset(arena);
	r = sbx__gofer__reply__unpack(&alloc, len, buf);
	if (!r || r->error >= 4096)
		return -EPROTO;
	for (size_t i = 0; i < r->n_attrs; i++) {
		if (!gofer_attr_sane(r->attrs[i]))
			return -EPROTO;
	}
	for (size_t i = 0; i < r->n_entries; i++) {
		if (!entry_sane(r->entries[i]))
			return -EPROTO;
	}
	for (size_t i = 0; i < r->n_changes; i++) {
		if (r->changes[i]->attr && !gofer_attr_sane(r->changes[i]->attr))
			return -EPROTO;
	}
	for (size_t i = 0; i < r->n_done; i++) {
		if (r->done[i]->error >= 4096 || (r->done[i]->attr && !gofer_attr_sane(r->done[i]->attr)))
			return -EPROTO;
	}
	*ret = r;
	return 0;
}
