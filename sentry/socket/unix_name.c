/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of AF_UNIX sockets: names in the file system and abstract ones, unix(7). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/socket/unix_priv.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/nameops.h"
#include "sentry/vfs/vfs.h"

#define ABSTRACT_BUCKETS 64

static struct list abstract[ABSTRACT_BUCKETS];

/* The length of the path part, 0 for an abstract or empty name. NUL-terminates into @path. */
static int addr_path(const struct sock_addr *a, char *path, size_t cap)
{
	size_t n;

	if (a->len <= SUN_PATH_OFF || a->un.sun_path[0] == '\0')
		return 0;
	n = strnlen(a->un.sun_path, a->len - SUN_PATH_OFF);
	if (n >= cap)
		return -EINVAL;
	memcpy(path, a->un.sun_path, n);
	path[n] = '\0';
	return (int)n;
}

static struct list *abstract_bucket(const struct sock_addr *a)
{
	uint32_t h = 5381;

	if (!abstract[0].next) {
		for (int i = 0; i < ABSTRACT_BUCKETS; i++)
			list_init(&abstract[i]);
	}
	for (uint32_t i = SUN_PATH_OFF; i < a->len; i++)
		h = h * 33 + a->raw[i];
	return &abstract[h % ABSTRACT_BUCKETS];
}

static struct unix_sock *abstract_find(const struct sock_addr *a, int type)
{
	struct unix_sock *u;

	list_for_each_entry(u, abstract_bucket(a), abstract_node) {
		if ((type < 0 || u->sock.type == type) && u->addr.len == a->len && !memcmp(u->addr.raw, a->raw, a->len))
			return u;
	}
	return NULL;
}

/* unix(7) "Autobind feature": an abstract name of five hexadecimal digits. */
static int autobind(struct unix_sock *u)
{
	static uint32_t next;

	for (uint32_t tries = 0; tries < 0x100000; tries++) {
		struct sock_addr a = { 0 };
		char digits[6];

		a.un.sun_family = AF_UNIX;
		snprintf(digits, sizeof(digits), "%05x", next++ & 0xfffff);
		memcpy(a.un.sun_path + 1, digits, 5);
		a.len = SUN_PATH_OFF + 6;
		if (abstract_find(&a, u->sock.type))
			continue;
		u->addr = a;
		list_add_tail(abstract_bucket(&a), &u->abstract_node);
		return 0;
	}
	return -ENOSPC;
}

int unix_bind(struct sock *s, struct task *t, const struct sock_addr *a)
{
	struct unix_sock *u = unix_of(s);
	char path[sizeof(a->un.sun_path) + 1];
	struct path at;
	int n, err;

	if (a->len < SUN_PATH_OFF || a->sa.sa_family != AF_UNIX || a->len > sizeof(a->un))
		return -EINVAL;
	if (a->len == SUN_PATH_OFF)
		return u->addr.len ? 0 : autobind(u);
	n = addr_path(a, path, sizeof(path));
	if (n < 0)
		return n;
	if (u->addr.len) {
		/* Linux makes the name before it looks: a taken one is told first. */
		if (n == 0 || path_walk(t, AT_FDCWD, path, 0, &at))
			return -EINVAL;
		path_put(&at);
		return -EADDRINUSE;
	}
	if (n == 0) {
		if (abstract_find(a, s->type))
			return -EADDRINUSE;
		u->addr = *a;
		list_add_tail(abstract_bucket(a), &u->abstract_node);
		return 0;
	}
	err = vfs_mknod(t, AT_FDCWD, path, S_IFSOCK | 0777, 0, &at);
	if (err)
		return err == -EEXIST ? -EADDRINUSE : err;
	u->inode = inode_get(at.dentry->inode);
	path_put(&at);
	u->inode->ipc = u;
	u->addr = *a;
	u->addr.len = (uint32_t)(SUN_PATH_OFF + (size_t)n + 1);
	u->addr.un.sun_path[n] = '\0';
	return 0;
}

int unix_resolve(struct task *t, const struct sock_addr *a, int type, struct unix_sock **ret)
{
	char path[sizeof(a->un.sun_path) + 1];
	struct unix_sock *u = NULL;
	struct path at;
	int n, err;

	if (a->len <= SUN_PATH_OFF || a->len > sizeof(a->un) || a->sa.sa_family != AF_UNIX)
		return -EINVAL;
	n = addr_path(a, path, sizeof(path));
	if (n < 0)
		return n;
	if (n == 0) {
		u = abstract_find(a, type);
		if (!u && abstract_find(a, -1))
			return -EPROTOTYPE;
	} else {
		err = path_walk(t, AT_FDCWD, path, WALK_FOLLOW, &at);
		if (err)
			return err;
		err = vfs_permission(t->cred, at.dentry->inode, MAY_WRITE);
		if (!err && S_ISSOCK(at.dentry->inode->mode))
			u = at.dentry->inode->ipc;
		path_put(&at);
		if (err)
			return err;
	}
	if (!u)
		return -ECONNREFUSED;
	if (u->sock.type != type)
		return -EPROTOTYPE;
	sock_get(&u->sock);
	*ret = u;
	return 0;
}

void unix_unbind(struct unix_sock *u)
{
	list_del(&u->abstract_node);
	if (u->inode) {
		u->inode->ipc = NULL;
		inode_put(u->inode);
		u->inode = NULL;
	}
}
