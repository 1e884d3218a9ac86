/* SPDX-License-Identifier: Apache-2.0 */
#include "gofer/grant.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/host/at.h"
#include "base/host/file.h"
#include "gofer/reopen.h"

/* File systems through which a process reaches more than files: other processes, the kernel, devices. */
static const uint32_t pseudo_fs[] = {
	PROC_SUPER_MAGIC, SYSFS_MAGIC, DEVPTS_SUPER_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,
	TRACEFS_MAGIC, SECURITYFS_MAGIC, SELINUX_MAGIC, SMACK_MAGIC, BPF_FS_MAGIC, NSFS_MAGIC, BINFMTFS_MAGIC,
	EFIVARFS_MAGIC, PSTOREFS_MAGIC, ANON_INODE_FS_MAGIC, PIPEFS_MAGIC, SOCKFS_MAGIC,
	0x19800202, /* mqueue */
	0x62656570, /* configfs */
	0x65735543, /* fusectl */
	0x67596969, /* rpc_pipefs */
	0x0187,     /* autofs: a lookup in it makes the host mount things */
};

static bool is_pseudo(int fd)
{
	struct statfs sf;

	if (host_fstatfs(fd, &sf) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(pseudo_fs); i++) {
		if ((uint32_t)sf.f_type == pseudo_fs[i])
			return true;
	}
	return false;
}

static int canonical_path(int fd, char **ret)
{
	char link[REOPEN_PATH_MAX], buf[PATH_MAX];
	ssize_t n = host_readlinkat(reopen_dirfd(), reopen_path(fd, link), buf, sizeof(buf));

	if (n < 0)
		return (int)n;
	if (n == 0 || n == sizeof(buf) || buf[0] != '/')
		return -ENAMETOOLONG;
	buf[n] = '\0';
	*ret = strdup(buf);
	return *ret ? 0 : -ENOMEM;
}

/* A private copy of the mounts at @fd. What the process holds is then the granted tree and nothing above it. */
static int clone_tree(int fd, bool writable)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	int tree;

	if (!writable)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	tree = (int)syscall(SYS_open_tree, fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	if (tree < 0)
		return -errno;
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0) {
		int r = -errno;

		close(tree);
		return r;
	}
	return tree;
}

int grant_open_root(const char *path, bool clone, bool writable, char **canonical, struct sbx_err *err)
{
	struct stat st;
	char *canon;
	int fd, r;

	if (path[0] != '/')
		return sbx_fail(err, -EINVAL, "grant '%s' is not an absolute path", path);
	fd = host_open(path, O_PATH | O_NOFOLLOW, 0);
	if (fd < 0)
		return sbx_fail(err, fd, "open grant '%s'", path);
	r = host_fstat(fd, &st);
	if (r < 0)
		goto fail;
	if (S_ISLNK(st.st_mode)) {
		r = -ELOOP; /* what was shown to the user is not what would be served */
		goto fail;
	}
	if ((!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) || is_pseudo(fd)) {
		r = -EPERM;
		goto fail;
	}
	r = canonical_path(fd, &canon);
	if (r < 0)
		goto fail;
	if (clone) {
		int tree = clone_tree(fd, writable);

		/* Without the copy the checks of each walk still hold; only the second line of defence is missing. */
		if (tree >= 0) {
			host_close(fd);
			fd = tree;
		}
	}
	*canonical = canon;
	return fd;
fail:
	host_close(fd);
	return sbx_fail(err, r, "grant '%s'", path);
}

int grant_add(struct grant_table *gt, struct node_table *nt, uint32_t id, const char *path, bool writable, int fd,
	      struct sbx_err *err)
{
	struct statx stx;
	struct grant *g;
	int r;

	if (!gt->grants) {
		gt->grants = calloc(GRANTS_MAX, sizeof(*gt->grants)); /* nodes point into it: it does not move */
		gt->hidden = calloc(HIDE_FDS_MAX, sizeof(*gt->hidden));
	}
	r = !gt->grants || !gt->hidden  ? -ENOMEM
	    : gt->n == GRANTS_MAX       ? -E2BIG
	    : !id || grant_peek(gt, id) ? -EINVAL
	                                : 0;
	if (r == 0)
		r = host_statx(fd, "", AT_EMPTY_PATH, NODE_STX_MASK, &stx);
	if (r < 0) {
		host_close(fd);
		return sbx_fail(err, r, "grant '%s'", path);
	}
	g = &gt->grants[gt->n];
	g->id = id;
	g->writable = writable;
	g->path = strdup(path);
	g->marks = calloc(1, sizeof(*g->marks) + 1);
	g->root = NULL;
	if (g->path && g->marks)
		g->root = node_create_root(nt, g, fd, &stx);
	else
		host_close(fd);
	if (!g->root) {
		free(g->path);
		free(g->marks);
		*g = (struct grant){ 0 };
		return sbx_fail(err, -ENOMEM, "grant '%s'", path);
	}
	gt->n++;
	return 0;
}

static void mark_destroy(struct mark *m)
{
	while (m) {
		struct mark *next = (struct mark *)(uintptr_t)m->next;

		mark_destroy((struct mark *)(uintptr_t)m->child);
		free(m);
		m = next;
	}
}

void grant_table_fini(struct grant_table *gt, struct node_table *nt)
{
	for (unsigned i = 0; i < gt->n; i++) {
		node_put(nt, gt->grants[i].root);
		mark_destroy(gt->grants[i].marks);
		free(gt->grants[i].path);
	}
	for (unsigned i = 0; i < gt->n_hidden; i++)
		host_close(gt->hidden[i].fd);
	free(gt->grants);
	free(gt->hidden);
	*gt = (struct grant_table){ 0 };
}

struct grant *grant_peek(struct grant_table *gt, uint32_t id)
{
	for (unsigned i = 0; i < gt->n; i++) {
		if (gt->grants[i].id == id)
			return &gt->grants[i];
	}
	return NULL;
}

static const struct mark *find_child(const struct mark *m, const char *name, size_t len)
{
	for (const struct mark *c = m->child; c; c = c->next) {
		if (!strncmp(c->name, name, len) && !c->name[len])
			return c;
	}
	return NULL;
}

const struct mark *mark_child(const struct mark *m, const char *name)
{
	return m ? find_child(m, name, strlen(name)) : NULL;
}

bool mark_hides(const struct mark *m, const char *name)
{
	const struct mark *c;

	if (!m)
		return false;
	if (m->flags & MARK_HIDE_CHILDREN)
		return true;
	c = mark_child(m, name);
	return mark_unlisted(m, name) || (c && (c->flags & MARK_HIDE));
}

bool mark_unlisted(const struct mark *m, const char *name)
{
	const struct mark *c;

	if (!m || !(m->flags & MARK_ONLY))
		return false;
	c = mark_child(m, name);
	return !c || !(c->flags & MARK_SHOWN);
}

bool mark_pins(const struct mark *m)
{
	return m && (m->child || (m->flags & ~MARK_SHOWN));
}

bool grant_hides_id(const struct grant_table *gt, const struct file_id *id)
{
	for (unsigned i = 0; i < gt->n_hidden; i++) {
		if (file_id_equal(&gt->hidden[i].id, id))
			return true;
	}
	return false;
}

bool grant_bars(const struct node *dir, const struct node *n)
{
	if (n->mark && (n->mark->flags & MARK_COVERED))
		return true;
	return n->id.dev != dir->id.dev && is_pseudo(n->fd);
}

/* What is left of @path below @dir: "" for the same, NULL when it is not at or below. */
static const char *path_below(const char *dir, const char *path)
{
	size_t len = strlen(dir);

	while (len && dir[len - 1] == '/')
		len--;
	if (strncmp(dir, path, len) || (path[len] && path[len] != '/'))
		return NULL;
	path += len;
	while (*path == '/')
		path++;
	return path;
}

static int mark_place(struct mark *m, const char *rel, unsigned flags)
{
	while (*rel) {
		size_t len = strcspn(rel, "/");
		struct mark *c = (struct mark *)(uintptr_t)find_child(m, rel, len);

		if (!c) {
			c = calloc(1, sizeof(*c) + len + 1);
			if (!c)
				return -ENOMEM;
			memcpy(c->name, rel, len);
			c->next = m->child;
			m->child = c;
		}
		m = c;
		rel += len;
		while (*rel == '/')
			rel++;
	}
	m->flags |= flags;
	return 0;
}

int grant_show_only(struct grant *g, char *const *names, size_t n, struct sbx_err *err)
{
	for (size_t i = 0; i < n; i++) {
		int r = -EINVAL;

		if (names[i][0] && !strchr(names[i], '/'))
			r = mark_place(g->marks, names[i], MARK_SHOWN);
		if (r < 0)
			return sbx_fail(err, r, "grant '%s': show only '%s'", g->path, names[i]);
	}
	if (n)
		g->marks->flags |= MARK_ONLY;
	return 0;
}

int grant_cover(struct grant_table *gt)
{
	for (unsigned i = 0; i < gt->n; i++) {
		for (unsigned k = 0; k < gt->n; k++) {
			const char *rel = path_below(gt->grants[i].path, gt->grants[k].path);
			int r;

			if (!rel || !*rel)
				continue;
			r = mark_place(gt->grants[i].marks, rel, MARK_COVERED);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int hide_in_grants(struct grant_table *gt, const char *path, bool children)
{
	for (unsigned i = 0; i < gt->n; i++) {
		const char *rel = path_below(gt->grants[i].path, path);
		int r;

		/* A grant of exactly this path is the more explicit word. */
		if (!rel || (!*rel && !children))
			continue;
		r = mark_place(gt->grants[i].marks, rel, children ? MARK_HIDE_CHILDREN : MARK_HIDE);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Where the path really is: links on the way are followed as far as it exists. */
static int hide_canonical(struct grant_table *gt, const char *path, bool children)
{
	struct hidden_id *h = &gt->hidden[gt->n_hidden];
	char *canon;
	struct statx stx;
	int fd, r;

	fd = host_open(path, O_PATH, 0);
	if (fd < 0)
		return 0;
	r = canonical_path(fd, &canon);
	if (r == 0) {
		if (strcmp(canon, path))
			r = hide_in_grants(gt, canon, children);
		free(canon);
	}
	if (r == 0 && !children && gt->n_hidden < HIDE_FDS_MAX &&
	    host_statx(fd, "", AT_EMPTY_PATH, NODE_STX_MASK, &stx) == 0) {
		file_id_from_statx(&h->id, &stx);
		h->fd = fd;
		gt->n_hidden++;
		return 0;
	}
	host_close(fd);
	return r;
}

int grant_hide(struct grant_table *gt, const char *path, struct sbx_err *err)
{
	char buf[PATH_MAX];
	bool children = false;
	size_t len = strlen(path);
	int r;

	if (path[0] != '/' || len >= sizeof(buf))
		return sbx_fail(err, -EINVAL, "hide '%s'", path);
	memcpy(buf, path, len + 1);
	if (len >= 2 && !strcmp(buf + len - 2, "/*")) {
		children = true;
		len -= 2;
	}
	while (len > 1 && buf[len - 1] == '/')
		len--;
	buf[len] = '\0';
	if (!len)
		strcpy(buf, "/");
	r = hide_in_grants(gt, buf, children);
	if (r == 0)
		r = hide_canonical(gt, buf, children);
	return r < 0 ? sbx_fail(err, r, "hide '%s'", path) : 0;
}

const char *grant_path(const struct node *n, const char *name, char *buf, size_t cap)
{
	size_t at = cap - 1, len;

	buf[at] = '\0';
	for (;;) {
		if (!name && n->parent)
			name = n->name;
		if (!name)
			break;
		len = strlen(name);
		if (at < len + 1)
			return buf + at; /* the end of a path tells more than its start */
		at -= len;
		memcpy(buf + at, name, len);
		buf[--at] = '/';
		if (name == n->name)
			n = n->parent;
		name = NULL;
	}
	if (n->flags & NODE_NAMELESS)
		return buf + at;
	len = strlen(n->grant->path);
	while (len && n->grant->path[len - 1] == '/')
		len--;
	if (at >= len) {
		at -= len;
		memcpy(buf + at, n->grant->path, len);
	}
	if (!buf[at] && at)
		buf[--at] = '/';
	return buf + at;
}
