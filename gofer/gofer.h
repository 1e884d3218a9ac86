/* SPDX-License-Identifier: Apache-2.0 */
/* The file server: what its parts share. One thread, one sentry. */
#ifndef SBX_GOFER_GOFER_H
#define SBX_GOFER_GOFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/macros.h"
#include "gofer/audit.h"
#include "gofer/follow.h"
#include "gofer/grant.h"
#include "gofer/node.h"
#include "gofer/proto/gofer.pb-c.h"
#include "gofer/protect.h"
#include "sentry/control/control.pb-c.h"

#define GOFER_WALK_MAX   64
#define GOFER_ATTRS_MAX  (GOFER_WALK_MAX + 4)
#define GOFER_DIR_BATCH  400            /* entries of a reply: with attributes at most 200 bytes each and the name */
#define GOFER_NAME_BYTES (32u * 1024)   /* of their names together */
#define GOFER_DATA_MAX   (64u * 1024)   /* XATTR_SIZE_MAX; a link is shorter */
#define GOFER_ARENA      (64u * 1024)   /* of a parsed request without its large data */
#define GOFER_BEFORE_MAX 16             /* attributes that are set with one request */
#define GOFER_HIDDEN_MAX 1024           /* hidden names of one directory; more: all are asked for */
#define GOFER_STREAMS    16             /* directories that are open for reading */

/* A reply under construction. Everything lives in it: nothing is allocated for a message. */
struct reply {
	Sbx__Gofer__Reply msg;
	int fd; /* goes with the reply and is closed then; -1 */
	bool close_fd;
	unsigned n_attrs, n_entries;
	size_t name_bytes;
	Sbx__Gofer__Attr attrs[GOFER_ATTRS_MAX];
	Sbx__Gofer__Attr *attr_ptrs[GOFER_ATTRS_MAX];
	Sbx__Gofer__Dirent entries[GOFER_DIR_BATCH];
	Sbx__Gofer__Dirent *entry_ptrs[GOFER_DIR_BATCH];
	Sbx__Gofer__Attr entry_attrs[GOFER_DIR_BATCH];
	char names[GOFER_NAME_BYTES];
	Sbx__Gofer__StatFsReply statfs;
	uint32_t watches[GOFER_WALK_MAX + 1];
	uint32_t hidden[GOFER_HIDDEN_MAX];
	Sbx__Gofer__Done done[GOFER_BEFORE_MAX];
	Sbx__Gofer__Done *done_ptrs[GOFER_BEFORE_MAX];
	Sbx__Gofer__Attr done_attrs[GOFER_BEFORE_MAX];
	uint8_t data[GOFER_DATA_MAX];
};

/* A directory that is being read. */
struct stream {
	struct node *node; /* borrowed: gofer_forget_node drops it */
	struct file_id id;
	int fd;
	uint64_t pos, used;
};

struct watch_table;

struct gofer {
	struct node_table *nodes;
	struct fid_table fids;
	struct grant_table grants;
	struct protect *protect;
	struct audit audit;
	struct watch_table *watches; /* NULL: none can be had */
	struct stream streams[GOFER_STREAMS];
	uint64_t stream_clock;
	bool greeted;
	struct follow follow;
	uint32_t peer_cpu; /* of the request that is being answered, as it says */
	bool timed; /* receiving from the sentry gives up after a while: gofer_socket_time() */
	struct reply reply;
	uint8_t arena[GOFER_ARENA + GOFER_DATA_MAX];
};

/* @fd_budget: O_PATH fds that may be open at once. */
MUST_CHECK int gofer_server_create(unsigned fd_budget, struct gofer **ret);
void gofer_server_destroy(struct gofer *g);
/* Opens the grants, and what is hidden and protected. @clone: see grant_open_root. */
MUST_CHECK int gofer_configure(struct gofer *g, const Sbx__Control__GoferConfig *cfg, bool clone, struct sbx_err *err);

/* Answers one request: packs the reply into out[WIRE_MSG_MAX], *fd is the fd to send with it (-1: none; the caller
 * closes it when *close_fd). Returns the reply's length, or -EPROTO: the peer is hostile or broken, end the connection.
 */
MUST_CHECK ssize_t gofer_handle(struct gofer *g, const uint8_t *req, size_t len, uint8_t *out, int *fd, bool *close_fd);
/* Before confinement: gofer_serve() may then wait for requests without looking at the control socket each time. */
void gofer_socket_time(struct gofer *g, int sock);
/* Serves @sock until it or @control (-1: none) ends. 0, or -errno. */
MUST_CHECK int gofer_serve(struct gofer *g, int sock, int control);

/* For the operations. */
#define GOFER_OP(name) int name(struct gofer *g, const Sbx__Gofer__Request *q, struct reply *r)
GOFER_OP(op_attach);
GOFER_OP(op_getattr);
GOFER_OP(op_setattr);
GOFER_OP(op_open);
GOFER_OP(op_create);
GOFER_OP(op_mkdir);
GOFER_OP(op_symlink);
GOFER_OP(op_link);
GOFER_OP(op_unlink);
GOFER_OP(op_rename);
GOFER_OP(op_tmpfile);
GOFER_OP(op_mknod);
GOFER_OP(op_readlink);
GOFER_OP(op_readdir);
GOFER_OP(op_statfs);
GOFER_OP(op_getxattr);
GOFER_OP(op_setxattr);
GOFER_OP(op_listxattr);
GOFER_OP(op_removexattr);
GOFER_OP(op_fsync);
/* The attributes that are set before the rest of the request. -EPROTO: too many. */
MUST_CHECK int op_before(struct gofer *g, const Sbx__Gofer__Request *q, struct reply *r);
MUST_CHECK int op_walk(struct gofer *g, const Sbx__Gofer__Walk *w, struct reply *r);

/* The node of a fid whose grant is in force: -EBADF, -EACCES (revoked). Borrowed. */
MUST_CHECK int gofer_fid(struct gofer *g, uint32_t fid, struct node **ret);
/* As gofer_fid, for a directory that may be looked into: also -ENOTDIR, -EACCES (barred). */
MUST_CHECK int gofer_fid_dir(struct gofer *g, uint32_t fid, struct node **ret);
/* -EINVAL, -ENAMETOOLONG */
MUST_CHECK int gofer_check_name(const char *name);
void attr_from_statx(Sbx__Gofer__Attr *a, const struct statx *stx);
void reply_attr(struct reply *r, const struct statx *stx);
/* Adds the attributes that the pinned fd of a directory has now. */
void reply_dir_attr(struct reply *r, int dirfd);

/* Which names in @n are to be asked for although they are not listed. */
void reply_hidden(struct reply *r, const struct node *n);

void gofer_deny(struct gofer *g, const struct node *n, const char *name, const char *op, const char *rule,
		const char *reason);
void gofer_allow(struct gofer *g, const struct node *n, const char *op, const char *mode);

/* May the name be made, replaced or removed (by @op, for audit)? Checks the grant's mode, what is hidden or belongs to
 * another grant, and the protected patterns. -EROFS, -EACCES, -EBUSY. @link: what appears there is a symlink. */
MUST_CHECK int gofer_may_change(struct gofer *g, struct node *dir, const char *name, const char *op, bool link);
/* May the file of this node be written to or its attributes changed? */
MUST_CHECK int gofer_may_write(struct gofer *g, struct node *n, const char *op);
/* May a directory move: would what is protected below it stay protected? */
MUST_CHECK int gofer_may_move_dir(struct gofer *g, struct node *odir, const char *oname, struct node *ndir,
                                  const char *nname);

#endif
