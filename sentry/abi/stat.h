/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest sees of files: stat(2), statx(2), statfs(2), getdents64(2). */
#ifndef SBX_SENTRY_ABI_STAT_H
#define SBX_SENTRY_ABI_STAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

struct linux_stat {
	uint64_t st_dev, st_ino, st_nlink;
	uint32_t st_mode, st_uid, st_gid, pad0;
	uint64_t st_rdev;
	int64_t st_size, st_blksize, st_blocks;
	uint64_t atime_sec, atime_nsec, mtime_sec, mtime_nsec, ctime_sec, ctime_nsec;
	int64_t unused[3];
};
static_assert(sizeof(struct linux_stat) == 144, "struct stat of x86_64");

struct linux_statx_time {
	int64_t sec;
	uint32_t nsec;
	int32_t pad;
};

struct linux_statx {
	uint32_t stx_mask, stx_blksize;
	uint64_t stx_attributes;
	uint32_t stx_nlink, stx_uid, stx_gid;
	uint16_t stx_mode, pad0;
	uint64_t stx_ino, stx_size, stx_blocks, stx_attributes_mask;
	struct linux_statx_time stx_atime, stx_btime, stx_ctime, stx_mtime;
	uint32_t stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor;
	uint64_t stx_mnt_id;
	uint64_t spare[13];
};
static_assert(sizeof(struct linux_statx) == 256, "struct statx");

struct linux_statfs {
	int64_t f_type, f_bsize;
	uint64_t f_blocks, f_bfree, f_bavail, f_files, f_ffree;
	int32_t f_fsid[2];
	int64_t f_namelen, f_frsize, f_flags, f_spare[4];
};
static_assert(sizeof(struct linux_statfs) == 120, "struct statfs");

/* The name and its NUL follow; then padding to 8 bytes. */
struct linux_dirent64 {
	uint64_t d_ino;
	int64_t d_off;
	uint16_t d_reclen;
	uint8_t d_type;
	char d_name[];
};
static_assert(offsetof(struct linux_dirent64, d_name) == 19, "struct linux_dirent64");

/* Of getdents(2): the last byte of the record is the type. */
struct linux_dirent {
	uint64_t d_ino;
	int64_t d_off;
	uint16_t d_reclen;
	char d_name[];
};
static_assert(offsetof(struct linux_dirent, d_name) == 18, "struct linux_dirent");

#endif
