/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that several mappings show (kobj.c): a piece of a file, or shared anonymous memory. Counted; a region holds
 * one reference. Its pages live as long as it does: page-table entries that point at them hold no reference of their
 * own, so they must be gone, and forgotten by all vCPUs, before the region's reference is.
 */
#ifndef SBX_PLATFORM_KVM_KOBJ_H
#define SBX_PLATFORM_KVM_KOBJ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/rbtree.h"
#include "base/ref.h"
#include "platform/kvm/kvm_priv.h"

struct kmem;

struct kobj {
	struct ref ref;
	struct kmem *m;
	bool file;
	bool writable; /* file: the host lets us write */
	bool noexec;   /* file: the host forbids to execute what is there */
	uint64_t n_pages;
	struct rb_root chunks; /* of struct kchunk, by index */
	/* A private piece of a file that can be told by these: on kmem.pieces[], for others to use. */
	struct list node;
	uint64_t dev, ino, offset;
	uint8_t *master; /* file: all of it mapped outside the window, or NULL when it is in the window whole */
};

/* A piece of the file @fd (borrowed). @shared: writes shall reach the file, which @prot (PROT_*) may need. 0 or
 * -errno, as mmap(2). */
int kobj_file_create(struct kmem *m, int fd, uint64_t offset, uint64_t n_pages, bool shared, int prot,
                     struct kobj **ret);
/* Anonymous; NULL: no memory. */
struct kobj *kobj_shared_create(struct kmem *m, uint64_t n_pages);
struct kobj *kobj_get(struct kobj *o);
void kobj_put(struct kobj *o); /* NULL is allowed */

/* The page's place, found or made. 0, -EFAULT: behind the end (of a file: not looked at), -ENOMEM. */
int kobj_page(struct kobj *o, uint64_t page, gpa_t *ret);
/* As it is now: 0 when there is none yet. */
gpa_t kobj_peek(const struct kobj *o, uint64_t page);
/* Of an anonymous one: @gpa becomes its page, with the caller's reference. 0 or -ENOMEM. */
int kobj_install(struct kobj *o, uint64_t page, gpa_t gpa);
/* Empties it there: reads give zeros, the memory or the file's blocks are free. 0 or -errno. */
int kobj_punch(struct kobj *o, uint64_t page, uint64_t n_pages);

#endif
