/* SPDX-License-Identifier: Apache-2.0 */
/* Placement, limits, brk, stacks, fork and /proc texts of sentry/mm. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/restart.h"
#include "sentry/mm/mm_priv.h"
#include "tests/lib/tap.h"
#include "tests/unit/mm_fakes.h"

#define RW (PROT_READ | PROT_WRITE)
#define MIB (1ull << 20)

static struct task *const t = &fake_task;

static int64_t map(uaddr_t addr, uint64_t len, int prot, unsigned flags)
{
	struct mm_map_args args = { .addr = addr, .len = len, .prot = prot, .flags = flags };

	return mm_map(t, &args, false);
}

/* The gap searches against a search page by page. */
static void test_gaps(void)
{
	enum { N = 200 };
	bool ok = true;

	for (unsigned round = 0; ok && round < 400; round++) {
		struct vma_tree tree;
		struct vma_spares s = { .n = 0 };
		bool used[N] = { false };

		if (vma_tree_init(&tree) < 0)
			break;
		for (unsigned i = 0; i < 30; i++) {
			unsigned a = (unsigned)random() % N, n = 1 + (unsigned)random() % 5;
			struct vma *v, like = { .start = (a + 1) * PAGE_SIZE, .end = (a + 1 + n) * PAGE_SIZE };

			if (a + n > N || vma_first_in(&tree, like.start, like.end) || vma_spares_fill(&s, 1) < 0)
				continue;
			v = vma_dup(&s, &like);
			vma_insert(&tree, v);
			memset(&used[a], 1, n);
		}
		for (unsigned q = 0; ok && q < 50; q++) {
			unsigned lo = (unsigned)random() % N, hi = lo + (unsigned)random() % (N - lo + 1);
			unsigned n = 1 + (unsigned)random() % 12, first = N, last = N;
			uaddr_t got = 0;
			bool found;

			for (unsigned a = lo; a + n <= hi; a++) {
				if (memchr(&used[a], 1, n))
					continue;
				first = first == N ? a : first;
				last = a;
			}
			found = vma_gap_topdown(&tree, n * PAGE_SIZE, (lo + 1) * PAGE_SIZE, (hi + 1) * PAGE_SIZE, &got);
			ok = found == (last != N) && (!found || got == (last + 1) * PAGE_SIZE);
			found = vma_gap_bottomup(&tree, n * PAGE_SIZE, (lo + 1) * PAGE_SIZE, (hi + 1) * PAGE_SIZE,
			                         &got);
			ok = ok && found == (first != N) && (!found || got == (first + 1) * PAGE_SIZE);
		}
		vma_spares_fini(&s);
		vma_tree_fini(&tree);
	}
	tap_ok(ok, "gap searches find what a search page by page finds");
}

static void test_placement(void)
{
	int64_t a, b;

	fakes_init();
	a = map(0, 3 * PAGE_SIZE, RW, 0);
	b = map(0, PAGE_SIZE, PROT_READ, 0);
	tap_ok(a > 0 && b == a - (int64_t)PAGE_SIZE && a + 3 * PAGE_SIZE <= t->mm->mmap_base, "placement goes down");
	tap_eq(map(0x1234567, PAGE_SIZE, RW, 0), 0x1234000, "a free hint is taken");
	tap_ok(map(0x1234000, PAGE_SIZE, RW, 0) != 0x1234000, "a used one is not");
	tap_eq(map(0x2000, PAGE_SIZE, RW, 0), MM_MIN_ADDR, "a hint below the minimum is raised");
	tap_eq(map((uaddr_t)a, PAGE_SIZE, RW, MM_MAP_FIXED | MM_MAP_NOREPLACE), -EEXIST, "FIXED_NOREPLACE");
	tap_eq(map(0x1000, PAGE_SIZE, RW, MM_MAP_FIXED), -EPERM, "mmap_min_addr");
	fake_all_caps = true;
	tap_eq(map(0x1000, PAGE_SIZE, RW, MM_MAP_FIXED), 0x1000, "CAP_SYS_RAWIO goes below it");
	fake_all_caps = false;
	tap_eq(map(0x1001, PAGE_SIZE, RW, MM_MAP_FIXED), -EINVAL, "FIXED must be aligned");
	tap_eq(map(GUEST_TASK_SIZE, PAGE_SIZE, RW, MM_MAP_FIXED), -ENOMEM, "FIXED above the end");
	tap_eq(map(0, GUEST_TASK_SIZE + 1, RW, 0), -ENOMEM, "too long");
	tap_eq(map(0, UINT64_MAX, RW, 0), -ENOMEM, "a length that wraps when rounded");
	tap_eq(map(0, 0, RW, 0), -EINVAL, "an empty mapping");
	a = map(0, PAGE_SIZE, RW, MM_MAP_32BIT);
	tap_ok(a >= 0x40000000 && a < 0x80000000, "MAP_32BIT");
	/* The largest gap is below the reserved range; something that fits nowhere else must not go over it. */
	a = map(0, 0x7f0000000000, PROT_NONE, MM_MAP_NORESERVE);
	tap_ok(a > 0 && !mm_meets_reserved((uaddr_t)a, (uaddr_t)a + 0x7f0000000000),
	       "127 TiB do not meet the platform's range");
}

static void test_reserved(void)
{
	uaddr_t r = PLATFORM_RESERVED_START, end = PLATFORM_RESERVED_END;

	fakes_init();
	tap_eq(map(r, PAGE_SIZE, RW, MM_MAP_FIXED), -ENOMEM, "mmap into the reserved range");
	tap_eq(map(r - PAGE_SIZE, 2 * PAGE_SIZE, RW, MM_MAP_FIXED), -ENOMEM, "mmap over its start");
	tap_eq(map(r - PAGE_SIZE, end - r + 2 * PAGE_SIZE, RW, MM_MAP_FIXED), -ENOMEM, "mmap over all of it");
	tap_eq(map(r, PAGE_SIZE, RW, MM_MAP_FIXED | MM_MAP_NOREPLACE), -EEXIST, "FIXED_NOREPLACE");
	tap_ok(map(r, PAGE_SIZE, RW, 0) != (int64_t)r, "a hint there");
	tap_eq(mm_unmap(t, r, PAGE_SIZE, false), -EINVAL, "munmap in it");
	tap_eq(mm_unmap(t, 0, GUEST_TASK_SIZE, false), -EINVAL, "munmap over it");
	tap_eq(map(r - PAGE_SIZE, PAGE_SIZE, RW, MM_MAP_FIXED), (int64_t)(r - PAGE_SIZE), "mmap just below");
	tap_eq(map(end, PAGE_SIZE, RW, MM_MAP_FIXED), (int64_t)end, "mmap just above");
	tap_eq(mm_protect(t, r - PAGE_SIZE, end - r + 2 * PAGE_SIZE, PROT_READ, false), -ENOMEM, "mprotect over it");
	tap_eq(mm_prot_at(t->mm, end), RW, "... stopped before it");
	tap_eq(mm_prot_at(t->mm, r), -1, "it is not mapped for the guest");
	tap_eq(mm_advise(t, r - PAGE_SIZE, end - r + 2 * PAGE_SIZE, MADV_DONTNEED, false), -ENOMEM, "madvise over it");
	tap_eq(mm_advise(t, r, PAGE_SIZE, MADV_DONTNEED, false), -ENOMEM, "madvise in it");
	tap_eq(mm_remap(t, r, PAGE_SIZE, 2 * PAGE_SIZE, MREMAP_MAYMOVE, 0), -EFAULT, "mremap of it");
	tap_eq(mm_remap(t, end, PAGE_SIZE, PAGE_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, r), -ENOMEM, "mremap into it");
	tap_eq(mm_lock(t, r, PAGE_SIZE), -ENOMEM, "mlock in it");
	tap_eq(mm_lock_all(t, MCL_CURRENT), 0, "mlockall passes over it");
	tap_eq(mm_sync(t, r, PAGE_SIZE, MS_SYNC), -ENOMEM, "msync in it");
	tap_eq(mm_remap(t, r - PAGE_SIZE, PAGE_SIZE, 2 * PAGE_SIZE, 0, 0), -ENOMEM, "growing into it");
}

static void test_limits(void)
{
	struct rlimit_pair *rl;
	int64_t a;

	fakes_init();
	rl = t->tg->rlim;
	rl[RLIMIT_AS].cur = 4 * PAGE_SIZE;
	a = map(0, 4 * PAGE_SIZE, PROT_READ, 0);
	tap_ok(a > 0, "up to RLIMIT_AS");
	tap_eq(map(0, PAGE_SIZE, PROT_READ, 0), -ENOMEM, "beyond");
	tap_eq(map((uaddr_t)a, 4 * PAGE_SIZE, PROT_READ, MM_MAP_FIXED), a, "replacing does not count twice");
	rl[RLIMIT_AS].cur = UINT64_MAX;
	rl[RLIMIT_DATA].cur = 2 * PAGE_SIZE;
	tap_eq(map(0, 3 * PAGE_SIZE, RW, 0), -ENOMEM, "RLIMIT_DATA");
	tap_eq(mm_protect(t, (uaddr_t)a, 3 * PAGE_SIZE, RW, false), -ENOMEM, "mprotect meets it too");
	tap_eq(mm_protect(t, (uaddr_t)a, 2 * PAGE_SIZE, RW, false), 0, "... and may go up to it");
	rl[RLIMIT_DATA].cur = UINT64_MAX;
	rl[RLIMIT_MEMLOCK].cur = 2 * PAGE_SIZE;
	tap_eq(mm_lock(t, (uaddr_t)a + 1, PAGE_SIZE), 0, "mlock of two pages");
	tap_eq(mm_lock(t, (uaddr_t)a, 2 * PAGE_SIZE), 0, "... again");
	tap_eq(mm_lock(t, (uaddr_t)a, 3 * PAGE_SIZE), -ENOMEM, "RLIMIT_MEMLOCK");
	tap_eq(mm_advise(t, (uaddr_t)a, PAGE_SIZE, MADV_DONTNEED, false), -EINVAL, "DONTNEED of locked memory");
	tap_eq(map(0, PAGE_SIZE, RW, MM_MAP_LOCKED), -EAGAIN, "MAP_LOCKED");
	tap_eq(mm_unlock(t, (uaddr_t)a, 2 * PAGE_SIZE), 0, "munlock");
	tap_eq(t->mm->locked, 0, "nothing is locked");
	rl[RLIMIT_MEMLOCK].cur = 0;
	tap_eq(mm_lock(t, (uaddr_t)a, PAGE_SIZE), -EPERM, "mlock without any allowance");
	kernel.limits.memory = MIB;
	tap_ok(map(0, 1 << 30, RW, MM_MAP_NORESERVE) > 0 && map(0, 1 << 30, PROT_NONE, 0) > 0, "reservations are free");
	tap_eq(map(0, MM_COMMIT_SPARE + 2 * MIB, RW, 0), -ENOMEM, "an absurd commitment is refused");
	tap_ok(kernel.counters.hit_memory_limit, "... and noted");
	kernel.limits.memory = 0;
}

static void test_brk(void)
{
	uaddr_t start = 0x5555000000 + 123;
	unsigned before;

	fakes_init();
	mm_set_brk(t->mm, start);
	tap_eq(mm_brk(t, 0), (int64_t)start, "brk(0)");
	before = fake_applies;
	for (unsigned i = 1; i <= 200; i++)
		mm_brk(t, start + i * PAGE_SIZE);
	tap_eq(mm_brk(t, 0), (int64_t)(start + 200 * PAGE_SIZE), "200 pages of heap");
	tap_eq(fake_applies - before, 1, "... by one round trip");
	tap_ok(mm_prot_at(t->mm, start + 200 * PAGE_SIZE) == RW && mm_prot_at(t->mm, start + 202 * PAGE_SIZE) < 0,
	       "the heap's VMA is exact");
	tap_eq(t->mm->vmas.count, 1, "... and one");
	mm_brk(t, start + 10 * PAGE_SIZE);
	tap_ok(!host_page(start + 20 * PAGE_SIZE) && !host_page(start + 210 * PAGE_SIZE),
	       "shrinking unmaps, arena too");
	mm_brk(t, start + 11 * PAGE_SIZE);
	tap_ok(map(ROUND_UP(start, PAGE_SIZE) + 20 * PAGE_SIZE, PAGE_SIZE, PROT_READ, MM_MAP_FIXED) > 0,
	       "mmap in the arena");
	tap_ok(!host_page(start + 22 * PAGE_SIZE) && !host_page(start + 15 * PAGE_SIZE),
	       "... takes the rest of it away");
	tap_eq(mm_brk(t, start + 21 * PAGE_SIZE), (int64_t)(start + 11 * PAGE_SIZE),
	       "the heap cannot grow over a mapping");
	tap_eq(mm_brk(t, start + 18 * PAGE_SIZE), (int64_t)(start + 18 * PAGE_SIZE), "but up to it");
	tap_eq(mm_brk(t, start - 1), (int64_t)(start + 18 * PAGE_SIZE), "not below its start");
	t->tg->rlim[RLIMIT_DATA].cur = 20 * PAGE_SIZE;
	mm_unmap(t, ROUND_UP(start, PAGE_SIZE) + 20 * PAGE_SIZE, PAGE_SIZE, false);
	tap_eq(mm_brk(t, start + 30 * PAGE_SIZE), (int64_t)(start + 18 * PAGE_SIZE), "RLIMIT_DATA");
	fake_fail_in = 1;
	t->tg->rlim[RLIMIT_DATA].cur = UINT64_MAX;
	tap_eq(mm_brk(t, start + 30 * MIB), (int64_t)(start + 18 * PAGE_SIZE), "the host has no memory");
	mm_brk(t, start + 22 * PAGE_SIZE); /* and a new arena */
	fake_fail_in = 2;
	tap_eq(map(ROUND_UP(start, PAGE_SIZE) + 40 * PAGE_SIZE, PAGE_SIZE, PROT_READ, MM_MAP_FIXED), -ENOMEM,
	       "a mapping in the arena fails after the arena was given back");
	mm_brk(t, start + 25 * PAGE_SIZE);
	tap_ok(host_page(start + 24 * PAGE_SIZE), "the heap that grows then has memory");
}

static void test_files(void)
{
	struct mm_map_args args = { .len = PAGE_SIZE, .prot = RW, .flags = MM_MAP_SHARED, .file = &fake_files[0] };
	const void *object;
	uint64_t off;
	int64_t a;

	fakes_init();
	fake_file_init(0, O_RDONLY);
	tap_eq(mm_map(t, &args, false), -EACCES, "a shared writable mapping of a file open for reading");
	args.prot = PROT_READ;
	args.offset = 5 * PAGE_SIZE;
	a = mm_map(t, &args, false);
	tap_ok(a > 0, "a readable one");
	tap_eq(mm_protect(t, (uaddr_t)a, PAGE_SIZE, RW, false), -EACCES, "... cannot become writable");
	tap_ok(mm_shared_object(t->mm, (uaddr_t)a + 8, &object, &off) && object == &fake_inodes[0] &&
	               off == 5 * PAGE_SIZE + 8,
	       "its bytes have a shared name");
	args.flags = 0;
	args.prot = RW;
	a = mm_map(t, &args, false);
	tap_ok(a > 0 && !mm_shared_object(t->mm, (uaddr_t)a, &object, &off),
	       "a private one may be written and has none");
	fake_file_init(1, O_WRONLY);
	args.file = &fake_files[1];
	tap_eq(mm_map(t, &args, false), -EACCES, "a file open for writing only");
	args.offset = 1;
	tap_eq(mm_map(t, &args, false), -EINVAL, "an offset that is not aligned");
	args.offset = UINT64_MAX & ~(PAGE_SIZE - 1);
	args.len = 2 * PAGE_SIZE;
	tap_eq(mm_map(t, &args, false), -EOVERFLOW, "an offset that wraps");
	fake_file_init(2, O_RDWR);
	fake_sealed = 2;
	args = (struct mm_map_args){ .len = PAGE_SIZE, .prot = RW, .flags = MM_MAP_SHARED, .file = &fake_files[2] };
	tap_eq(mm_map(t, &args, false), -EPERM, "a sealed memfd");
	args.prot = PROT_READ;
	a = mm_map(t, &args, false);
	tap_ok(a > 0 && mm_protect(t, (uaddr_t)a, PAGE_SIZE, RW, false) == -EACCES, "... can be read for ever");
	fake_sealed = -1;
	mm_put(t->mm);
	t->mm = NULL;
	tap_eq(ref_count(&fake_files[0].ref), 1, "references are dropped");
}

static void test_stack(void)
{
	uaddr_t top = 0x7fe000000000;

	fakes_init();
	t->tg->rlim[RLIMIT_STACK].cur = MIB;
	map(top - 4 * PAGE_SIZE, 4 * PAGE_SIZE, RW, MM_MAP_FIXED | MM_MAP_GROWSDOWN);
	tap_ok(!mm_fault(t, top - PAGE_SIZE, 6), "a fault in a mapping is genuine");
	tap_ok(!mm_fault(t, 0, 6) && !mm_fault(t, UINT64_MAX, 6), "so is one far away");
	tap_ok(mm_fault(t, top - 5 * PAGE_SIZE + 8, 6), "below a stack it grows");
	tap_ok(mm_prot_at(t->mm, top - 5 * PAGE_SIZE) == RW && host_page(top - 5 * PAGE_SIZE), "... and is there");
	tap_ok(!mm_fault(t, top - MIB - 1, 6), "not beyond RLIMIT_STACK");
	tap_ok(mm_fault(t, top - MIB, 6), "but up to it");
	t->tg->rlim[RLIMIT_STACK].cur = UINT64_MAX;
	map(top - 3 * MIB, PAGE_SIZE, RW, MM_MAP_FIXED);
	tap_ok(!mm_fault(t, top - 2 * MIB + PAGE_SIZE / 2 - MIB + PAGE_SIZE, 6), "the guard gap stays free");
	tap_ok(mm_fault(t, top - 3 * MIB + PAGE_SIZE + STACK_GUARD_GAP, 6), "growth up to the guard gap");
	tap_ok(map(top - 3 * MIB + PAGE_SIZE, PAGE_SIZE, RW, 0) != (int64_t)(top - 3 * MIB + PAGE_SIZE),
	       "placement keeps out of it too");
}

static void test_fork(void)
{
	int64_t a, b, shm;
	struct mm *child;
	const void *o1, *o2;
	uint64_t off1, off2;

	fakes_init();
	fake_file_init(0, O_RDWR);
	a = map(0, 2 * PAGE_SIZE, RW, 0);
	b = map(0, 2 * PAGE_SIZE, PROT_READ, 0);
	shm = map(0, PAGE_SIZE, RW, MM_MAP_SHARED);
	mm_advise(t, (uaddr_t)b, PAGE_SIZE, MADV_DONTFORK, false);
	child = mm_fork(t->mm, fake_aspace);
	tap_ok(mm_prot_at(child, (uaddr_t)a) == RW && mm_prot_at(child, (uaddr_t)b) < 0 &&
	       mm_prot_at(child, (uaddr_t)b + PAGE_SIZE) == PROT_READ, "the child has all but DONTFORK");
	tap_ok(mm_shared_object(t->mm, (uaddr_t)shm, &o1, &off1) && mm_shared_object(child, (uaddr_t)shm, &o2, &off2) &&
	       o1 == o2 && off1 == off2, "shared memory has one name in both");
	mm_put(t->mm);
	t->mm = NULL;
	mm_put(child);
	tap_eq(kernel.counters.vmas, 0, "no VMA is left");
	tap_eq(kernel.counters.mms, 0, "no address space is left");
}

static void test_file_cut(void)
{
	struct mm_map_args args = { .len = 4 * PAGE_SIZE, .prot = PROT_READ, .file = &fake_files[0] };
	int64_t a;

	fakes_init();
	fake_file_init(0, O_RDONLY);
	fake_file_init(1, O_RDONLY);
	args.offset = 2 * PAGE_SIZE;
	a = mm_map(t, &args, false);
	fake_cut_len = 0;
	mm_file_cut(&fake_inodes[1], 0);
	mm_file_cut(&fake_inodes[0], 6 * PAGE_SIZE);
	mm_file_cut(&fake_inodes[0], 5 * PAGE_SIZE + 1);
	mm_file_cut(&fake_inodes[0], UINT64_MAX);
	tap_eq(fake_cut_len, 0, "nothing of a mapping lies behind the end of its file");
	mm_file_cut(&fake_inodes[0], 4 * PAGE_SIZE + 1);
	tap_ok(fake_cut_at == (uaddr_t)a + 3 * PAGE_SIZE && fake_cut_len == PAGE_SIZE, "a page does");
	mm_file_cut(&fake_inodes[0], 1);
	tap_ok(fake_cut_at == (uaddr_t)a && fake_cut_len == 5 * PAGE_SIZE, "all of it does");
}

/* The platform is given the file for what grows. */
static void test_remap_file(void)
{
	struct mm_map_args args = { .len = 2 * PAGE_SIZE, .prot = PROT_READ, .file = &fake_files[0] };
	struct host_page *p;
	int64_t a, b;

	fakes_init();
	fake_file_init(0, O_RDONLY);
	args.offset = 3 * PAGE_SIZE;
	a = mm_map(t, &args, false);
	map((uaddr_t)a + 2 * PAGE_SIZE, PAGE_SIZE, PROT_READ, MM_MAP_FIXED);
	mm_advise(t, (uaddr_t)a, 2 * PAGE_SIZE, MADV_DONTFORK, false);
	b = mm_remap(t, (uaddr_t)a, 2 * PAGE_SIZE, 4 * PAGE_SIZE, MREMAP_MAYMOVE, 0);
	p = b > 0 ? host_page((uaddr_t)b + 3 * PAGE_SIZE) : NULL;
	tap_ok(b != a && p && p->fd == 100 && p->offset == FAKE_MAP_OFFSET + 6 * PAGE_SIZE,
	       "a file's mapping moves and grows");
	p = b > 0 ? host_page((uaddr_t)b) : NULL;
	tap_ok(p && p->fd == 100 && p->offset == FAKE_MAP_OFFSET + 3 * PAGE_SIZE && !host_page((uaddr_t)a),
	       "... with what it had");
	tap_eq(t->mm->vmas.count, 2, "... as one mapping");
	tap_eq(mm_remap(t, (uaddr_t)b, 4 * PAGE_SIZE, 5 * PAGE_SIZE, 0, 0) < 0,
	       host_page((uaddr_t)b + 4 * PAGE_SIZE) == NULL, "or grows where it is");
	fake_fail_in = 2;
	tap_eq(mm_remap(t, (uaddr_t)b, PAGE_SIZE, 9 * PAGE_SIZE, MREMAP_MAYMOVE, 0), -ENOMEM, "fails half-way");
	tap_ok(host_page((uaddr_t)b), "... and leaves what was there");
}

static void test_remap_shared(void)
{
	int64_t a, b;
	const void *o1, *o2;
	uint64_t off1, off2;

	fakes_init();
	a = map(0, 2 * PAGE_SIZE, RW, MM_MAP_SHARED);
	b = mm_remap(t, (uaddr_t)a, 0, 2 * PAGE_SIZE, MREMAP_MAYMOVE, 0);
	tap_ok(b > 0 && b != a && mm_prot_at(t->mm, (uaddr_t)a) == RW, "mremap with length 0 duplicates shared memory");
	tap_ok(mm_shared_object(t->mm, (uaddr_t)a, &o1, &off1) && mm_shared_object(t->mm, (uaddr_t)b, &o2, &off2) &&
	       o1 == o2 && off1 == off2, "... the same object");
	a = map(0, PAGE_SIZE, RW, 0);
	tap_eq(mm_remap(t, (uaddr_t)a, 0, PAGE_SIZE, MREMAP_MAYMOVE, 0), -EINVAL, "but not private memory");
	tap_eq(mm_remap(t, (uaddr_t)a, PAGE_SIZE, PAGE_SIZE, MREMAP_FIXED, 0x5000000), -EINVAL,
	       "FIXED without MAYMOVE");
	tap_eq(mm_remap(t, (uaddr_t)a, PAGE_SIZE, 0, MREMAP_MAYMOVE, 0), -EINVAL, "to length 0");
	tap_eq(mm_remap(t, (uaddr_t)a + 1, PAGE_SIZE, PAGE_SIZE, MREMAP_MAYMOVE, 0), -EINVAL, "not aligned");
	tap_eq(mm_remap(t, (uaddr_t)a, PAGE_SIZE, UINT64_MAX - PAGE_SIZE, MREMAP_MAYMOVE, 0), -ENOMEM, "too long");
	tap_eq(mm_remap(t, (uaddr_t)a, UINT64_MAX - PAGE_SIZE, PAGE_SIZE, MREMAP_MAYMOVE, 0), -EFAULT,
	       "an old length that wraps");
}

static void test_maps_text(void)
{
	static char buf[MM_MAPS_LINE_MAX + 4096], all[1 << 16];
	uint64_t cursor = 0;
	unsigned calls = 0, lines = 0;
	int64_t a;

	fakes_init();
	for (unsigned i = 0; i < 300; i++)
		map(0x10000000 + 2 * i * PAGE_SIZE, PAGE_SIZE, RW, MM_MAP_FIXED);
	all[0] = '\0';
	do {
		size_t n = mm_maps_text(t->mm, false, &cursor, buf, sizeof(buf));

		buf[n] = '\0';
		strcat(all, buf);
		calls++;
	} while (cursor && calls < 1000);
	for (char *p = all; (p = strchr(p, '\n')); p++)
		lines++;
	tap_ok(calls > 1 && lines == 302, "300 mappings, vdso and vsyscall in %u pieces", calls);
	tap_ok(strncmp(all, "10000000-10001000 rw-p 00000000 00:00 0 \n", 41) == 0, "the first line");
	tap_ok(strstr(all, "[vdso]") != NULL, "the vDSO is shown");
	a = map(0, PAGE_SIZE, PROT_READ | PROT_EXEC, MM_MAP_SHARED);
	cursor = (uint64_t)a;
	buf[mm_maps_text(t->mm, true, &cursor, buf, sizeof(buf))] = '\0';
	tap_ok(strstr(buf, "r-xs") && strstr(buf, "\nSize:                  4 kB\n") &&
	               strstr(buf, "VmFlags: rd ex sh"),
	       "smaps");
}

int main(void)
{
	srandom(3);
	test_gaps();
	test_placement();
	test_reserved();
	test_limits();
	test_brk();
	test_files();
	test_stack();
	test_fork();
	test_file_cut();
	test_remap_file();
	test_remap_shared();
	test_maps_text();
	return tap_done();
}
