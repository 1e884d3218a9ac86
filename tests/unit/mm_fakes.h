/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of sentry/mm and sentry/loader: a platform that keeps a page table in memory, files that are numbers,
 * one task. The tests link the sources they test, not libsentry.a: what lies below is all here.
 */
#ifndef SBX_TESTS_UNIT_MM_FAKES_H
#define SBX_TESTS_UNIT_MM_FAKES_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/platform.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/vfs.h"

/* A page of the fake host. */
struct host_page {
	struct host_page *next; /* in its hash chain */
	uint64_t page;          /* number */
	int prot, fd;
	uint64_t offset;        /* 0 for anonymous */
	bool shared;
	uint8_t *data;          /* NULL: zero, or what the file has */
};

struct host_page *host_page(uaddr_t addr); /* NULL: not mapped */
unsigned host_pages(void);
void host_clear(void);

/* File n: host fd 100 + n, mapped at an offset of FAKE_MAP_OFFSET in it; fake_fd[n] >= 0: real contents. */
#define FAKE_FILES      8
#define FAKE_MAP_OFFSET 0x7000000ull
extern struct file fake_files[FAKE_FILES];
extern struct inode fake_inodes[FAKE_FILES];
extern int fake_fd[FAKE_FILES];
void fake_file_init(unsigned n, uint32_t flags);

extern struct task fake_task;
extern struct aspace *const fake_aspace;
extern bool fake_all_caps;
extern int fake_fail_in;        /* > 0: that many platform ops later one fails with -ENOMEM */
extern unsigned fake_applies;   /* round trips */
extern unsigned fake_ops;
extern unsigned fake_writes;
extern int fake_deny_write_rc;
extern int fake_sealed;         /* this file may not be mapped shared and writable */

/* What the platform was told by aspace_cut(): the last address, the sum of all lengths. */
extern uaddr_t fake_cut_at;
extern uint64_t fake_cut_len;

/* Sets all up: kernel, task with an empty mm, limits infinite. */
void fakes_init(void);

#endif
