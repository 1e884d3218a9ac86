/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/control/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/overlay.h"
#include "sentry/kernel/kernel.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/vfs.h"

#define CHANGE_OVERHEAD 32u /* tags, lengths, numbers of one packed Change */

struct collect {
	struct change_list *list;
	char at[PATH_MAX_LINUX]; /* the mount's path, without a slash at the end */
	size_t at_len;
	char **mounts; /* where something is mounted: owned */
	size_t n_mounts;
	Sbx__Control__EmptyDir *const *made;
	size_t n_made;
	int err;
};

static bool made_for_guest(const struct collect *k, const char *path)
{
	for (size_t i = 0; i < k->n_made; i++) {
		if (!strcmp(k->made[i]->path, path))
			return true;
	}
	return false;
}

/* Is @path the place of a mount, or on the way to one? Such directories were made for it, not by the guest. */
static bool leads_to_mount(const struct collect *k, const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < k->n_mounts; i++) {
		const char *at = k->mounts[i];

		if (!strncmp(at, path, len) && (!at[len] || at[len] == '/'))
			return true;
	}
	return false;
}

static int find_mounts(struct collect *k)
{
	char buf[PATH_MAX_LINUX];
	struct mount *m;
	size_t n = 0;

	list_for_each_entry(m, &kernel.mnt_ns->mounts, node)
		n++;
	k->mounts = calloc(n + 1, sizeof(*k->mounts));
	if (!k->mounts)
		return -ENOMEM;
	list_for_each_entry(m, &kernel.mnt_ns->mounts, node) {
		const struct path p = { m->parent, m->mountpoint };

		if (!m->parent || path_name(&p, NULL, buf, sizeof(buf)) < 0)
			continue;
		k->mounts[k->n_mounts] = strdup(buf);
		if (!k->mounts[k->n_mounts])
			return -ENOMEM;
		k->n_mounts++;
	}
	return 0;
}

static int append(struct change_list *l, Sbx__Control__Change *c)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		void *v = realloc(l->v, cap * sizeof(*l->v));

		if (!v)
			return -ENOMEM;
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n++] = c;
	return 0;
}

/* One allocation holds the change, its path and its letter. */
static Sbx__Control__Change *change_create(const struct collect *k, const struct overlay_change *oc)
{
	bool top = !strcmp(oc->path, "/") && k->at_len;
	size_t len = top ? 0 : strlen(oc->path);
	Sbx__Control__Change *c = calloc(1, sizeof(*c) + k->at_len + len + 3);
	char *text;

	if (!c)
		return NULL;
	sbx__control__change__init(c);
	text = (char *)(c + 1);
	text[0] = oc->op;
	c->op = text;
	c->path = text + 2;
	memcpy(c->path, k->at, k->at_len);
	memcpy(c->path + k->at_len, oc->path, len);
	c->bytes = oc->bytes;
	c->mode = oc->mode & 07777;
	return c;
}

static bool collect_one(const struct overlay_change *oc, void *arg)
{
	struct collect *k = arg;
	size_t cost = k->at_len + strlen(oc->path) + CHANGE_OVERHEAD;
	Sbx__Control__Change *c;

	if (cost > k->list->budget) {
		k->list->dropped++;
		return true;
	}
	c = change_create(k, oc);
	if (!c) {
		k->err = -ENOMEM;
		return false;
	}
	if (S_ISDIR(oc->mode) && oc->op != 'D' && (leads_to_mount(k, c->path) || made_for_guest(k, c->path))) {
		free(c);
		return true;
	}
	k->err = append(k->list, c);
	if (k->err) {
		free(c);
		return false;
	}
	k->list->budget -= cost;
	return true;
}

/* The mounts of granted directories come before the root: what a user asked for is not cut off by what lies around. */
static int collect_mounts(struct collect *k, bool root)
{
	struct mount *m;
	int r = 0;

	list_for_each_entry(m, &kernel.mnt_ns->mounts, node) {
		const struct path p = { m->parent, m->mountpoint };

		if (!overlay_is(m->sb) || root == !!m->parent)
			continue;
		k->at[0] = '\0';
		if (m->parent && path_name(&p, NULL, k->at, sizeof(k->at)) < 0)
			continue; /* its place is gone */
		k->at_len = strlen(k->at);
		r = overlay_changes(m->sb, collect_one, k);
		if (r || k->err)
			break;
	}
	return r ? r : k->err;
}

size_t change_list_chunk(const struct change_list *l, size_t first, size_t budget)
{
	size_t n = 0, cost;

	for (; first + n < l->n; n++) {
		cost = strlen(l->v[first + n]->path) + CHANGE_OVERHEAD;
		if (n && cost > budget)
			break;
		budget -= MIN(cost, budget);
	}
	return n;
}

int change_list_fill(struct change_list *l, size_t budget, Sbx__Control__EmptyDir *const *made, size_t n_made)
{
	struct collect k = { .list = l, .made = made, .n_made = n_made };
	int r;

	*l = (struct change_list){ .budget = budget };
	r = find_mounts(&k);
	if (!r)
		r = collect_mounts(&k, false);
	if (!r)
		r = collect_mounts(&k, true);
	for (size_t i = 0; i < k.n_mounts; i++)
		free(k.mounts[i]);
	free(k.mounts);
	return r;
}

void change_list_fini(struct change_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct change_list){ 0 };
}
