/* SPDX-License-Identifier: Apache-2.0 */
/* All file systems of the sentry and how each is made. Each fills *ret with one reference on success. */
#ifndef SBX_SENTRY_FS_FS_H
#define SBX_SENTRY_FS_FS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

struct gofer_conn;
struct store;
struct super;

/* The data of all files that the guest makes: one per sandbox. Limits of kernel_limits. */
MUST_CHECK int store_create(uint64_t max_bytes, uint64_t max_inodes, struct store **ret);
void store_destroy(struct store *s);
/* Before anything is in it: bytes over @memory go to the empty disk file @fd (consumed). */
MUST_CHECK int store_use_disk(struct store *s, int fd, uint64_t memory);
/* Files in memfds of their own take at most @bytes of host memory. */
void store_limit_private(struct store *s, uint64_t bytes);

/* tmpfs(5) on the store. */
MUST_CHECK int tmpfs_create(struct store *s, uint32_t root_mode, struct super **ret);
/* A copy-on-write view of @lower with its changes in @upper (a tmpfs); references are taken. */
MUST_CHECK int overlay_create(struct super *lower, struct super *upper, struct super **ret);
/* /dev: null zero full random urandom tty (ENXIO), fd -> /proc/self/fd, stdin.., shm and pts directories. */
MUST_CHECK int devfs_create(struct store *s, struct super **ret);
MUST_CHECK int procfs_create(struct super **ret);
MUST_CHECK int sysfs_create(struct super **ret);

/* A connection to the gofer on @sock (consumed); says Hello. */
MUST_CHECK int gofer_conn_create(int sock, struct gofer_conn **ret);
/* A grant as a file system. @live: the host may change it (ro, rw); else cached for good (the lower of cow).
 * Host ids host_uid/gid appear as uid/gid. A single file gives a super whose root is that file. */
struct gofer_fs_args {
	uint32_t grant;
	bool live, read_only;
	uint32_t host_uid, uid, host_gid, gid;
};
MUST_CHECK int gofer_fs_create(struct gofer_conn *c, const struct gofer_fs_args *args, struct super **ret);

#endif
