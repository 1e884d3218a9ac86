/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one thread does to the address space is what the others see, at once: no access goes through a translation that
 * was taken away before. Each round the other thread runs in user code, so that only the kernel can make it forget.
 */
#include <pthread.h>
#include <sched.h>

#include "gt_fault.h"

#define PAGE   4096
#define ROUNDS 80

static volatile char *page;
static volatile int phase;       /* set by the main thread after the change */
static volatile int go, quit;    /* round that may begin */
static volatile int faults;      /* rounds that ended by a fault */
static volatile int fault_sig;
static volatile uint64_t progress;
static volatile int stale;       /* accesses that began after the change and went through */
static volatile bool writes;

static void *hammer(void *arg)
{
	gt_fault_stack();
	for (volatile int round = 1; !quit; round++) {
		while (go < round && !quit)
			sched_yield();
		if (quit)
			break;
		fault_sig = CATCH({
			while (!quit) {
				int before = phase;

				if (writes)
					page[8] = 1;
				else
					(void)page[8];
				if (before == round)
					stale++;
				progress++;
			}
		});
		if (!quit)
			faults = round;
	}
	return NULL;
}

/* Lets the thread run in its loop for a while. */
static void let_run(void)
{
	uint64_t start = progress;

	for (int i = 0; progress < start + 50 && i < 1000; i++)
		sched_yield();
	WAIT_FOR(progress > start);
}

static void map_again(void)
{
	CHECK(mmap((void *)page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page);
}

static void wait_fault(int round)
{
	WAIT_FOR(faults == round);
	CHECK_EQ(stale, 0);
}

static pthread_t start_hammer(bool write)
{
	pthread_t th;

	gt_fault_init();
	writes = write;
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	page[0] = 1;
	CHECK_EQ(pthread_create(&th, NULL, hammer, NULL), 0);
	return th;
}

static void end_hammer(pthread_t th)
{
	quit = 1;
	CHECK_EQ(pthread_join(th, NULL), 0);
	CHECK_EQ(stale, 0);
}

static void protect_seen(void)
{
	static const int taken[] = { PROT_READ, PROT_NONE };
	pthread_t th = start_hammer(true);

	for (int i = 1; i <= ROUNDS; i++) {
		CHECK_OK(mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE));
		go = i;
		let_run();
		CHECK_OK(mprotect((void *)page, PAGE, taken[i & 1]));
		phase = i;
		wait_fault(i);
		CHECK_EQ(fault_sig, SIGSEGV);
	}
	end_hammer(th);
}

static void unmap_seen(void)
{
	pthread_t th = start_hammer(false);

	for (int i = 1; i <= ROUNDS; i++) {
		go = i;
		let_run();
		CHECK_OK(munmap((void *)page, PAGE));
		phase = i;
		wait_fault(i);
		map_again();
		page[8] = 2;
	}
	end_hammer(th);
}

/* Moved away: the page is somewhere else then, and nobody writes to it any more. */
static void move_seen(void)
{
	pthread_t th = start_hammer(true);

	for (int i = 1; i <= ROUNDS; i++) {
		char *to;

		go = i;
		let_run();
		to = mremap((void *)page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)page + (16 << 20));
		CHECK(to == (char *)page + (16 << 20));
		phase = i;
		to[8] = 5;
		wait_fault(i);
		CHECK_EQ(to[8], 5);
		CHECK(mremap(to, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page);
	}
	end_hammer(th);
}

static void truncate_seen(void)
{
	int fd = (int)CHECK_OK(open("f", O_RDWR | O_CREAT, 0600));
	pthread_t th = start_hammer(true);

	CHECK(mmap((void *)page, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == page);
	for (int i = 1; i <= ROUNDS; i++) {
		CHECK_OK(ftruncate(fd, PAGE));
		go = i;
		let_run();
		CHECK_OK(ftruncate(fd, 0));
		phase = i;
		wait_fault(i);
		CHECK_EQ(fault_sig, SIGBUS);
	}
	end_hammer(th);
}

static void drop_seen(void)
{
	pthread_t th = start_hammer(false);

	/* MADV_DONTNEED: a page of zeroes, and never again the old one. */
	for (int i = 1; i <= ROUNDS; i++) {
		page[100] = 7;
		go = 1;
		let_run();
		CHECK_OK(madvise((void *)page, PAGE, MADV_DONTNEED));
		CHECK_EQ(page[100], 0);
	}
	end_hammer(th);
}

/* The page is replaced by another with a higher number: a reader that knows of a number never sees a lower one. */
static volatile int published;
static volatile int lower;
static volatile uint64_t reads;

static void *number_reader(void *arg)
{
	while (!quit) {
		int known = published, seen = *(volatile int *)page;

		if (seen < known)
			lower++;
		reads++;
	}
	return NULL;
}

static void replace_seen(void)
{
	pthread_t th;

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	CHECK_EQ(pthread_create(&th, NULL, number_reader, NULL), 0);
	for (int i = 1; i <= ROUNDS; i++) {
		int *fresh = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uint64_t start = reads;

		CHECK(fresh != MAP_FAILED);
		*fresh = i;
		CHECK(mremap(fresh, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page);
		published = i;
		for (int k = 0; reads < start + 50 && k < 100000; k++)
			sched_yield();
	}
	quit = 1;
	CHECK_EQ(pthread_join(th, NULL), 0);
	CHECK_EQ(lower, 0);
}

/* Memory that is given back and taken again holds nothing of what others still write through old translations. */
static void reused_memory_is_clean(void)
{
	pthread_t th = start_hammer(true);

	for (int i = 1; i <= ROUNDS; i++) {
		char *p;

		go = i;
		let_run();
		CHECK_OK(munmap((void *)page, PAGE));
		phase = i;
		p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED);
		if (p == page || (page > p && page < p + 64 * PAGE)) {
			/* The other thread's own address: nothing to see. */
			CHECK_OK(munmap(p, 64 * PAGE));
		} else {
			for (int k = 0; k < 64; k++)
				CHECK_EQ(p[k * PAGE + 8], 0);
			wait_fault(i);
			for (int k = 0; k < 64; k++)
				CHECK_EQ(p[k * PAGE + 8], 0);
			CHECK_OK(munmap(p, 64 * PAGE));
		}
		wait_fault(i);
		map_again();
	}
	end_hammer(th);
}

/* A fork while another thread writes: the child's copy stands still, the parent's goes on. */
#define FORK_PAGES 16
static volatile uint64_t *counters;

static void *count_on(void *arg)
{
	while (!quit)
		for (int i = 0; i < FORK_PAGES; i++)
			counters[i * PAGE / 8]++;
	return NULL;
}

static void fork_while_written(void)
{
	pthread_t th;

	counters = mmap(NULL, FORK_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(counters != MAP_FAILED);
	CHECK_EQ(pthread_create(&th, NULL, count_on, NULL), 0);
	for (int round = 0; round < 30; round++) {
		uint64_t before = counters[0];
		pid_t pid = CHILD({
			uint64_t seen[FORK_PAGES];

			for (int i = 0; i < FORK_PAGES; i++)
				seen[i] = counters[i * PAGE / 8];
			for (int k = 0; k < 20; k++) {
				sched_yield();
				for (int i = 0; i < FORK_PAGES; i++)
					CHECK_EQ(counters[i * PAGE / 8], seen[i]);
			}
			for (int i = 0; i < FORK_PAGES; i++)
				counters[i * PAGE / 8] = 0;
			sched_yield();
			for (int i = 0; i < FORK_PAGES; i++)
				CHECK_EQ(counters[i * PAGE / 8], 0);
		});

		CHECK_EXIT(pid, 0);
		for (int k = 0; counters[0] == before && k < 100000; k++)
			sched_yield();
		CHECK(counters[0] > before);
	}
	quit = 1;
	CHECK_EQ(pthread_join(th, NULL), 0);
}

/* Copies of copies: each process changes its own pages and finds those of its ancestors as they were at its fork. */
static void copies_in_chains(void)
{
	volatile uint8_t *p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int depth = 0, st;

	CHECK(p != MAP_FAILED);
	for (; depth < 8; depth++) {
		pid_t pid;

		/* Page k belongs to the generation that wrote it last: those from depth * 4 on to this one. */
		for (int k = depth * 4; k < 64; k++)
			p[k * PAGE + depth] = (uint8_t)(depth + 1);
		pid = fork();
		CHECK(pid >= 0);
		if (pid) {
			/* Written while the child reads. */
			for (int k = 0; k < 64; k++)
				p[k * PAGE + 100] = 0xee;
			CHECK_EQ(waitpid(pid, &st, 0), pid);
			CHECK_EQ(st, 0);
			for (int k = depth * 4; k < 64; k++)
				CHECK_EQ(p[k * PAGE + depth + 1], 0);
			if (depth)
				_exit(0);
			return;
		}
		for (int g = 0; g <= depth; g++)
			for (int k = g * 4; k < 64; k++)
				CHECK_EQ(p[k * PAGE + g], g + 1);
		for (int k = 0; k < 64; k++)
			CHECK_EQ(p[k * PAGE + 100], 0);
	}
	_exit(0);
}

/* The kernel writes into a page that two processes share until one of them writes. */
static void kernel_writes_into_copies(void)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fds[2];

	CHECK(p != MAP_FAILED);
	CHECK_OK(pipe(fds));
	for (int i = 0; i < 50; i++) {
		memset(p, 'p', 2 * PAGE);
		CHECK_EQ(write(fds[1], "HELLO", 5), 5);
		CHECK_EXIT(CHILD({
			CHECK_EQ(read(fds[0], p + PAGE - 2, 5), 5);
			CHECK(!memcmp(p + PAGE - 3, "pHELLOp", 7));
		}), 0);
		for (int k = 0; k < 2 * PAGE; k++)
			CHECK_EQ(p[k], 'p');
		/* And the parent's, while the child looks on. */
		CHECK_EQ(write(fds[1], "WORLD", 5), 5);
		pid_t pid = CHILD({
			gt_sleep_ms(i % 4);
			for (int k = 0; k < 2 * PAGE; k++)
				CHECK_EQ(p[k], 'p');
		});
		CHECK_EQ(read(fds[0], p + 10, 5), 5);
		CHECK_EXIT(pid, 0);
		CHECK(!memcmp(p + 9, "pWORLDp", 7));
	}
}

/* Address space is cheap: terabytes of it. */
static void huge_reservations(void)
{
	const size_t tb = 1ul << 40;
	char *p = mmap(NULL, 16 * tb, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *q;

	CHECK(p != MAP_FAILED);
	gt_fault_init();
	CHECK_PF(p + 5 * tb, SEGV_ACCERR, (void)*(volatile char *)(p + 5 * tb));
	for (int i = 0; i < 16; i++) {
		CHECK_OK(mprotect(p + (size_t)i * tb + (1ul << 30), PAGE, PROT_READ | PROT_WRITE));
		p[(size_t)i * tb + (1ul << 30)] = (char)i;
	}
	CHECK_EXIT(CHILD({
		for (int i = 0; i < 16; i++)
			CHECK_EQ(p[(size_t)i * tb + (1ul << 30)], i);
		CHECK_OK(munmap(p, 8 * tb));
		CHECK_EQ(p[9 * tb + (1ul << 30)], 9);
	}), 0);
	CHECK_EQ(p[3 * tb + (1ul << 30)], 3);
	q = mremap(p + tb, tb, 2 * tb, MREMAP_MAYMOVE);
	CHECK(q == MAP_FAILED || q[1ul << 30] == 1);
	CHECK_OK(munmap(p, 16 * tb));
	CHECK(mmap(NULL, 1ul << 47, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED);
	CHECK_ERR((long)mmap(NULL, 1ul << 63, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), ENOMEM);
	CHECK_ERR((long)mmap(NULL, -4096ul, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), ENOMEM);
	CHECK_ERR((long)mmap(NULL, -1ul, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), ENOMEM);
}

/* Shared pages written by processes in turn, while they come and go. */
static void shared_by_many(void)
{
	volatile uint32_t *p = gt_shared(32 * PAGE);
	pid_t pids[4];

	for (unsigned n = 0; n < 4; n++)
		pids[n] = CHILD({
			for (unsigned i = 0; i < 500; i++)
				__atomic_add_fetch(&p[i % 32 * PAGE / 4], 1, __ATOMIC_SEQ_CST);
			for (unsigned i = 0; i < 10; i++)
				CHECK_EXIT(CHILD(__atomic_add_fetch(&p[i], 1, __ATOMIC_SEQ_CST)), 0);
		});
	for (unsigned n = 0; n < 4; n++)
		CHECK_EXIT(pids[n], 0);
	for (unsigned i = 1; i < 32; i++)
		CHECK_EQ(p[i * PAGE / 4], 4 * (500 / 32 + (i < 500 % 32)));
	CHECK_EQ(p[0], 4 * (500 / 32 + 1) + 4);
	for (unsigned i = 1; i < 10; i++)
		CHECK_EQ(p[i], 4);
}

static const struct gt_case cases[] = {
	{ "protect_seen", protect_seen },
	{ "unmap_seen", unmap_seen },
	{ "move_seen", move_seen },
	{ "truncate_seen", truncate_seen },
	{ "drop_seen", drop_seen },
	{ "replace_seen", replace_seen },
	{ "reused_memory_is_clean", reused_memory_is_clean },
	{ "fork_while_written", fork_while_written },
	{ "copies_in_chains", copies_in_chains },
	{ "kernel_writes_into_copies", kernel_writes_into_copies },
	{ "huge_reservations", huge_reservations },
	{ "shared_by_many", shared_by_many },
	{ NULL, NULL },
};
GT_MAIN(cases)
