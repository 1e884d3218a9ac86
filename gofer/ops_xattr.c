/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes: only user.* of regular files and directories. Others are about the host's security, or about
 * overlays. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/host/at.h"
#include "gofer/gofer.h"
#include "gofer/reopen.h"
#include "gofer/watch.h"

static int check_name(const char *name)
{
	if (strncmp(name, "user.", 5))
		return -EOPNOTSUPP;
	return !name[5] ? -EINVAL : strlen(name) > 255 ? -ERANGE : 0;
}

/* The node of @fid, pinned, with its path for the xattr calls. */
static int xattr_pin(struct gofer *g, uint32_t fid, bool write, struct node **n, char path[REOPEN_PATH_MAX])
{
	int r = gofer_fid(g, fid, n);

	if (r < 0)
		return r;
	if ((*n)->fmt != S_IFREG && (*n)->fmt != S_IFDIR)
		return -EPERM;
	r = write ? gofer_may_write(g, *n, "setxattr") : 0;
	if (r == 0 && ((*n)->flags & NODE_BARRED))
		r = -EACCES;
	if (r < 0)
		return r;
	r = node_pin(g->nodes, *n);
	if (r < 0)
		return r;
	reopen_path(r, path);
	return 0;
}

GOFER_OP(op_getxattr)
{
	const Sbx__Gofer__GetXattr *x = q->getxattr;
	char path[REOPEN_PATH_MAX];
	struct node *n;
	ssize_t len;
	int ret = check_name(x->name);

	if (ret == 0)
		ret = xattr_pin(g, x->fid, false, &n, path);
	if (ret < 0)
		return ret == -EPERM ? -ENODATA : ret;
	len = host_getxattr(path, x->name, x->size ? r->data : NULL, MIN(x->size, GOFER_DATA_MAX));
	node_unpin(g->nodes, n);
	if (len < 0)
		return (int)len;
	r->msg.size = (uint32_t)len;
	r->msg.data.len = x->size ? (size_t)len : 0;
	return 0;
}

GOFER_OP(op_setxattr)
{
	const Sbx__Gofer__SetXattr *x = q->setxattr;
	char path[REOPEN_PATH_MAX];
	struct node *n;
	int ret = check_name(x->name);

	if (ret == 0 && (x->value.len > GOFER_DATA_MAX || (x->flags & ~(uint32_t)(XATTR_CREATE | XATTR_REPLACE))))
		ret = x->value.len > GOFER_DATA_MAX ? -E2BIG : -EINVAL;
	if (ret == 0)
		ret = xattr_pin(g, x->fid, true, &n, path);
	if (ret < 0)
		return ret;
	watch_expect_attr(g, n);
	ret = host_setxattr(path, x->name, x->value.data, x->value.len, (int)x->flags);
	watch_settle(g);
	node_unpin(g->nodes, n);
	return ret;
}

GOFER_OP(op_removexattr)
{
	const Sbx__Gofer__RemoveXattr *x = q->removexattr;
	char path[REOPEN_PATH_MAX];
	struct node *n;
	int ret = check_name(x->name);

	if (ret == 0)
		ret = xattr_pin(g, x->fid, true, &n, path);
	if (ret < 0)
		return ret;
	watch_expect_attr(g, n);
	ret = host_removexattr(path, x->name);
	watch_settle(g);
	node_unpin(g->nodes, n);
	return ret;
}

/* Keeps the user.* names of a list of @len bytes; the new length. */
static size_t keep_user(char *list, size_t len)
{
	size_t out = 0;

	for (size_t i = 0; i < len;) {
		size_t n = strnlen(list + i, len - i) + 1;

		if (i + n > len)
			break;
		if (!strncmp(list + i, "user.", 5)) {
			memmove(list + out, list + i, n);
			out += n;
		}
		i += n;
	}
	return out;
}

GOFER_OP(op_listxattr)
{
	const Sbx__Gofer__ListXattr *x = q->listxattr;
	char path[REOPEN_PATH_MAX];
	struct node *n;
	ssize_t len;
	int ret = xattr_pin(g, x->fid, false, &n, path);

	if (ret < 0)
		return ret == -EPERM ? 0 : ret;
	len = host_listxattr(path, (char *)r->data, GOFER_DATA_MAX);
	node_unpin(g->nodes, n);
	if (len < 0)
		return len == -EOPNOTSUPP ? 0 : (int)len;
	len = (ssize_t)keep_user((char *)r->data, (size_t)len);
	r->msg.size = (uint32_t)len;
	if (x->size && (size_t)len > x->size)
		return -ERANGE;
	r->msg.data.len = x->size ? (size_t)len : 0;
	return 0;
}
