/* SPDX-License-Identifier: Apache-2.0 */
/* Working on a file system by its operations, by path, as the tests of store, tmpfs and overlay need it. All
 * return what the operation says. Paths have no leading slash; "" is the root. */
#ifndef SBX_TESTS_UNIT_FS_UTIL_H
#define SBX_TESTS_UNIT_FS_UTIL_H

#include <stdint.h>

#include "sentry/fs/fs.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

int fsu_find(struct super *sb, const char *path, struct inode **ret); /* counted */
int fsu_create(struct super *sb, const char *path, uint32_t mode);
int fsu_mkdir(struct super *sb, const char *path);
int fsu_symlink(struct super *sb, const char *target, const char *path);
int fsu_mkfifo(struct super *sb, const char *path);
int fsu_link(struct super *sb, const char *from, const char *to);
int fsu_unlink(struct super *sb, const char *path);
int fsu_rmdir(struct super *sb, const char *path);
int fsu_rename(struct super *sb, const char *from, const char *to, unsigned flags);
int fsu_chmod(struct super *sb, const char *path, uint32_t mode);
int fsu_truncate(struct super *sb, const char *path, uint64_t size);
int fsu_open(struct super *sb, const char *path, uint32_t flags, struct file **ret);
ssize_t fsu_write_at(struct file *f, const void *buf, size_t n, uint64_t off);
ssize_t fsu_read_at(struct file *f, void *buf, size_t n, uint64_t off);
/* A whole file: created or overwritten from its start (not truncated). */
int fsu_put(struct super *sb, const char *path, const char *text);
/* Contents as a string in a static buffer; NULL when it cannot be read. */
const char *fsu_text(struct super *sb, const char *path);
/* "a b c": the names of a directory in order of the alphabet, in a static buffer. */
const char *fsu_list(struct super *sb, const char *path);
/* A text that describes the whole tree; malloc'ed. */
char *fsu_dump(struct super *sb);
int fsu_stat(struct super *sb, const char *path, struct inode *copy);

#endif
