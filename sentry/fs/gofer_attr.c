/* SPDX-License-Identifier: Apache-2.0 */
/* Symlink targets and extended attributes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sentry/fs/gofer_priv.h"
#include "sentry/vfs/dentry.h"

int gofer_link_set(struct gofer_inode *gi, const ProtobufCBinaryData *d)
{
	if (!d->len || d->len >= PATH_MAX_LINUX || memchr(d->data, 0, d->len))
		return -EIO;
	if (!gi->link)
		gi->link = strndup((const char *)d->data, d->len);
	return gi->link ? 0 : -ENOMEM;
}

static int read_link(struct gofer_inode *gi)
{
	Sbx__Gofer__Readlink rl = SBX__GOFER__READLINK__INIT;
	struct gofer_call c;
	int r;

	gofer_call_init(&c, gi->fs->conn);
	c.req.op_case = SBX__GOFER__REQUEST__OP_READLINK;
	c.req.readlink = &rl;
	r = gofer_call_fid(&c, gi, &rl.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	if (r == 0)
		r = gofer_link_set(gi, &c.rep->data);
	gofer_call_end(&c);
	return r;
}

int gofer_readlink(struct inode *in, char *buf, size_t n)
{
	struct gofer_inode *gi = gofer_inode(in);
	int r = gi->link ? 0 : read_link(gi);

	if (r < 0)
		return r;
	n = MIN(n, strlen(gi->link));
	memcpy(buf, gi->link, n);
	return (int)n;
}

/* Attributes of other name spaces are about the host. */
static bool is_user(const char *name)
{
	return !strncmp(name, "user.", 5);
}

ssize_t gofer_getxattr(struct inode *in, const char *name, void *buf, size_t size)
{
	Sbx__Gofer__GetXattr x = SBX__GOFER__GET_XATTR__INIT;
	struct gofer_inode *gi = gofer_inode(in);
	struct gofer_call c;
	ssize_t r;

	if (!is_user(name))
		return -EOPNOTSUPP;
	gofer_call_init(&c, gi->fs->conn);
	c.req.op_case = SBX__GOFER__REQUEST__OP_GETXATTR;
	c.req.getxattr = &x;
	x.name = (char *)(uintptr_t)name;
	x.size = (uint32_t)MIN(size, (size_t)UINT32_MAX);
	r = gofer_call_fid(&c, gi, &x.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	if (r == 0 && !size)
		r = c.rep->size;
	else if (r == 0 && c.rep->data.len > size)
		r = -EIO;
	else if (r == 0) {
		r = (ssize_t)c.rep->data.len;
		if (r)
			memcpy(buf, c.rep->data.data, (size_t)r);
	}
	gofer_call_end(&c);
	return r;
}

int gofer_setxattr(struct inode *in, const char *name, const void *buf, size_t size, int flags)
{
	Sbx__Gofer__SetXattr x = SBX__GOFER__SET_XATTR__INIT;
	struct gofer_inode *gi = gofer_inode(in);
	struct gofer_call c;
	int r;

	if (!is_user(name))
		return -EOPNOTSUPP;
	gofer_call_init(&c, gi->fs->conn);
	c.req.op_case = SBX__GOFER__REQUEST__OP_SETXATTR;
	c.req.setxattr = &x;
	x.name = (char *)(uintptr_t)name;
	x.value.data = (uint8_t *)(uintptr_t)buf;
	x.value.len = size;
	x.flags = (uint32_t)flags;
	r = gofer_call_fid(&c, gi, &x.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	gofer_touched(gi); /* in any case: the gofer tells nothing of what happens to it meanwhile */
	gofer_call_end(&c);
	return r;
}

ssize_t gofer_listxattr(struct inode *in, char *buf, size_t size)
{
	Sbx__Gofer__ListXattr x = SBX__GOFER__LIST_XATTR__INIT;
	struct gofer_inode *gi = gofer_inode(in);
	struct gofer_call c;
	ssize_t r;

	gofer_call_init(&c, gi->fs->conn);
	c.req.op_case = SBX__GOFER__REQUEST__OP_LISTXATTR;
	c.req.listxattr = &x;
	x.size = (uint32_t)MIN(size, (size_t)UINT32_MAX);
	r = gofer_call_fid(&c, gi, &x.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	if (r == 0 && !size)
		r = c.rep->size;
	else if (r == 0 && c.rep->data.len > size)
		r = -EIO;
	else if (r == 0) {
		r = (ssize_t)c.rep->data.len;
		if (r)
			memcpy(buf, c.rep->data.data, (size_t)r);
	}
	gofer_call_end(&c);
	return r;
}

int gofer_removexattr(struct inode *in, const char *name)
{
	Sbx__Gofer__RemoveXattr x = SBX__GOFER__REMOVE_XATTR__INIT;
	struct gofer_inode *gi = gofer_inode(in);
	struct gofer_call c;
	int r;

	if (!is_user(name))
		return -EOPNOTSUPP;
	gofer_call_init(&c, gi->fs->conn);
	c.req.op_case = SBX__GOFER__REQUEST__OP_REMOVEXATTR;
	c.req.removexattr = &x;
	x.name = (char *)(uintptr_t)name;
	r = gofer_call_fid(&c, gi, &x.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	gofer_touched(gi); /* in any case: the gofer tells nothing of what happens to it meanwhile */
	gofer_call_end(&c);
	return r;
}
