/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that changes: written by itself, by another mapping of the same page, by another process, by write(2), by
 * another thread while it runs. What is executed is what was written last.
 */
#include <pthread.h>
#include <sched.h>

#include "gt_fault.h"

typedef int (*code_fn)(void);

/* mov $n, %eax; ret */
static void code_put(uint8_t *at, int n)
{
	at[0] = 0xb8;
	memcpy(at + 1, &n, 4);
	at[5] = 0xc3;
}

static int code_run(const uint8_t *at)
{
	return ((code_fn)(uintptr_t)at)();
}

static uint8_t *code_map(int prot, int flags, int fd, size_t len)
{
	void *p = mmap(NULL, len, prot, flags, fd, 0);

	if (p == MAP_FAILED && fd >= 0 && errno == EPERM)
		_exit(GT_SKIP); /* the file system is not for executing */
	CHECK(p != MAP_FAILED);
	return p;
}

static void rewritten(void)
{
	uint8_t *p = code_map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 8192);

	for (int i = 0; i < 2000; i++) {
		uint8_t *at = p + i % 4000;

		code_put(at, i);
		CHECK_EQ(code_run(at), i);
	}
	/* Over the edge of two pages. */
	for (int i = 0; i < 200; i++) {
		code_put(p + 4093, i);
		CHECK_EQ(code_run(p + 4093), i);
	}
}

/* The instruction that follows is changed by the one before it. */
static void rewrites_itself(void)
{
	static const uint8_t code[] = { 0xc7, 0x05, 1, 0, 0, 0, 0x44, 0x33, 0x22, 0x11, /* movl $0x11223344, 1(%rip) */
					0xb8, 0,    0, 0, 0,    /* mov $0, %eax, whose operand it was */
					0xc3 };
	uint8_t *p = code_map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 4096);

	for (int i = 0; i < 200; i++) {
		memcpy(p + i * 16, code, sizeof(code));
		CHECK_EQ(code_run(p + i * 16), 0x11223344);
	}
}

/* Never writable and executable at once, as a compiler at run time does it. */
static void protected_in_turn(void)
{
	uint8_t *p = code_map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 4096);

	gt_fault_init();
	for (volatile int i = 0; i < 100; i++) {
		code_put(p, i);
		CHECK_PF(p, SEGV_ACCERR, code_run(p));
		CHECK_OK(mprotect(p, 4096, PROT_READ | PROT_EXEC));
		CHECK_EQ(code_run(p), i);
		CHECK_PF(p + 1, SEGV_ACCERR, code_put(p + 1, 0));
		CHECK_OK(mprotect(p, 4096, PROT_NONE));
		CHECK_PF(p, SEGV_ACCERR, code_run(p));
		CHECK_OK(mprotect(p, 4096, PROT_READ | PROT_WRITE));
	}
	CHECK_OK(munmap(p, 4096));
	CHECK_PF(p, SEGV_MAPERR, code_run(p));
}

/* Two mappings of one page: written by one, executed by the other. */
static void by_another_mapping(void)
{
	int fd = (int)CHECK_OK(memfd_create("code", 0));
	uint8_t *w, *x;

	CHECK_OK(ftruncate(fd, 8192));
	w = code_map(PROT_READ | PROT_WRITE, MAP_SHARED, fd, 8192);
	x = code_map(PROT_READ | PROT_EXEC, MAP_SHARED, fd, 8192);
	for (int i = 0; i < 1000; i++) {
		code_put(w + i % 4090, i);
		CHECK_EQ(code_run(x + i % 4090), i);
	}
	/* By write(2). */
	for (int i = 0; i < 200; i++) {
		uint8_t code[6];

		code_put(code, -i);
		CHECK_EQ(pwrite(fd, code, 6, 4096 + i * 8), 6);
		CHECK_EQ(code_run(x + 4096 + i * 8), -i);
	}
}

/* A page of a file, executed from a shared and from a private mapping. */
static void of_a_file(void)
{
	int fd = (int)CHECK_OK(open("code", O_RDWR | O_CREAT, 0700));
	uint8_t *shared, *private, *w, code[6];

	CHECK_OK(ftruncate(fd, 4096));
	shared = code_map(PROT_READ | PROT_EXEC, MAP_SHARED, fd, 4096);
	private = code_map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, fd, 4096);
	w = code_map(PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	for (int i = 0; i < 100; i++) {
		code_put(code, i);
		CHECK_EQ(pwrite(fd, code, 6, 0), 6);
		CHECK_EQ(code_run(shared), i);
		CHECK_EQ(code_run(private), i); /* not yet written: it is the file's page */
		code_put(w, i + 1000);
		CHECK_EQ(code_run(shared), i + 1000);
		CHECK_EQ(code_run(private), i + 1000);
	}
	code_put(private + 100, 5); /* from now on a page of its own */
	code_put(w, 7);
	CHECK_EQ(code_run(shared), 7);
	CHECK_EQ(code_run(private), 1099);
	CHECK_EQ(code_run(private + 100), 5);
	/* The file's end. */
	gt_fault_init();
	CHECK_OK(ftruncate(fd, 0));
	CHECK_EQ(CATCH(code_run(shared)), SIGBUS);
	CHECK_EQ(gt_fault.code, BUS_ADRERR);
	CHECK_EQ(gt_fault.addr, (uintptr_t)shared);
	CHECK_EQ(gt_fault.rip, (uintptr_t)shared);
}

/* Executed by one process, changed by another. */
static void by_another_process(void)
{
	uint8_t *p = code_map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 4096);
	volatile int *seq = gt_shared(4096);
	pid_t pid;

	code_put(p, 0);
	pid = CHILD({
		for (int i = 0; i < 200; i++) {
			while (seq[0] != i)
				sched_yield();
			CHECK_EQ(code_run(p), i);
			seq[1] = i + 1;
		}
	});
	for (int i = 0; i < 200; i++) {
		code_put(p, i);
		seq[0] = i;
		while (seq[1] != i + 1 && waitpid(pid, NULL, WNOHANG) == 0)
			sched_yield();
		CHECK_EQ(seq[1], i + 1);
	}
	waitpid(pid, NULL, 0);
	/* A private page after a fork: each has its own. */
	p = code_map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 4096);
	for (int i = 0; i < 20; i++) {
		code_put(p, i);
		CHECK_EQ(code_run(p), i);
		CHECK_EXIT(CHILD({
			CHECK_EQ(code_run(p), i);
			code_put(p, 99);
			CHECK_EQ(code_run(p), 99);
		}), 0);
		CHECK_EQ(code_run(p), i);
	}
}

static uint8_t *shared_code;
static volatile int ended;

static void *runner(void *arg)
{
	int last = 0, n;

	while ((n = code_run(shared_code)) != 0x7fffffff) {
		CHECK(n >= last);
		last = n;
	}
	ended = 1;
	return NULL;
}

/* Executed by one thread while another changes its operand, which lies in one cache line and is written at once. */
static void by_another_thread(void)
{
	pthread_t th;

	shared_code = code_map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 4096);
	shared_code += 3; /* the operand is aligned */
	code_put(shared_code, 0);
	CHECK_EQ(pthread_create(&th, NULL, runner, NULL), 0);
	for (int i = 1; i < 3000; i++)
		__atomic_store_n((int *)(void *)(shared_code + 1), i, __ATOMIC_SEQ_CST);
	__atomic_store_n((int *)(void *)(shared_code + 1), 0x7fffffff, __ATOMIC_SEQ_CST);
	CHECK_EQ(pthread_join(th, NULL), 0);
	CHECK_EQ(ended, 1);
}

/* A system call instruction that appears and disappears. */
static void calls_in_changing_code(void)
{
	static const uint8_t call[] = { 0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3 };
	static const uint8_t nop[] = { 0xb8, 39, 0, 0, 0, 0x66, 0x90, 0xc3 };
	int fd = (int)CHECK_OK(memfd_create("code", 0));
	uint8_t *x;

	CHECK_OK(ftruncate(fd, 4096));
	x = code_map(PROT_READ | PROT_EXEC, MAP_SHARED, fd, 4096);
	for (int i = 0; i < 100; i++) {
		int r;

		CHECK_EQ(pwrite(fd, i & 1 ? nop : call, 8, 0), 8);
		__asm__ volatile("call *%1" : "=a"(r) : "r"(x) : "rcx", "r11", "memory");
		CHECK_EQ(r, i & 1 ? 39 : getpid());
	}
}

static const struct gt_case cases[] = {
	{ "rewritten", rewritten },
	{ "rewrites_itself", rewrites_itself },
	{ "protected_in_turn", protected_in_turn },
	{ "by_another_mapping", by_another_mapping },
	{ "of_a_file", of_a_file },
	{ "by_another_process", by_another_process },
	{ "by_another_thread", by_another_thread },
	{ "calls_in_changing_code", calls_in_changing_code },
	{ NULL, NULL },
};
GT_MAIN(cases)
