/* SPDX-License-Identifier: Apache-2.0 */
/* A file system for unit tests of vfs: names in arrays, bytes in a fixed buffer, no limits worth the name. */
#ifndef SBX_TESTS_LIB_MEMFS_H
#define SBX_TESTS_LIB_MEMFS_H

#include <stdbool.h>

#include "sentry/vfs/inode.h"

#define MEMFS_NAMES 32
#define MEMFS_BYTES 4096

struct mem_entry {
	char name[256];
	struct mem_inode *in; /* counted */
};

struct mem_inode {
	struct inode vfs;
	struct mem_entry names[MEMFS_NAMES]; /* of a directory; in NULL: free */
	char data[MEMFS_BYTES];              /* of a file or symlink */
	struct file *magic;                  /* of a magic link: where it leads; borrowed */
};

struct mem_super {
	struct super sb;
	uint64_t next_ino;
	unsigned lookups, revalidates; /* calls so far */
	unsigned inodes;               /* alive */
	bool stale;                    /* revalidate says no */
};

struct mem_super *memfs_create(bool stable);
/* What the host would do behind our back: @name of @dir goes, or appears as a file or directory. */
void memfs_host_remove(struct mem_inode *dir, const char *name);
struct mem_inode *memfs_host_create(struct mem_inode *dir, const char *name, uint32_t mode);
/* Moves @name of @from to @to under @new_name, as the host does. */
void memfs_host_rename(struct mem_inode *from, const char *name, struct mem_inode *to, const char *new_name);
struct mem_inode *memfs_magic(struct mem_inode *dir, const char *name, struct file *to);

static inline struct mem_inode *mem_i(struct inode *in)
{
	return (struct mem_inode *)in;
}

#endif
