/* SPDX-License-Identifier: Apache-2.0 */
/* Memory mappings as a program sees them: mmap(2), mremap(2), mprotect(2), madvise(2), brk(2), and stacks. */
#include <pthread.h>
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "gt.h"

#define PAGE 4096ul
#define RW   (PROT_READ | PROT_WRITE)

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static sigjmp_buf fault_jmp;
static volatile int fault_sig, fault_code;
static void *volatile fault_addr;

static void on_fault(int sig, siginfo_t *si, void *uc)
{
	fault_sig = sig;
	fault_code = si->si_code;
	fault_addr = si->si_addr;
	siglongjmp(fault_jmp, 1);
}

static void catch_faults(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	CHECK_OK(sigaction(SIGSEGV, &sa, NULL));
	CHECK_OK(sigaction(SIGBUS, &sa, NULL));
}

/* The signal that reading (or writing) the byte raises; 0: none. */
static int touch(volatile char *p, bool write)
{
	fault_sig = 0;
	if (sigsetjmp(fault_jmp, 1) == 0) {
		if (write)
			*p = *p;
		else
			(void)*p;
	}
	return fault_sig;
}

static char *anon(size_t n, int prot)
{
	char *p = mmap(NULL, n, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static int file_of(size_t n)
{
	int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0);
	for (size_t i = 0; i < n; i += PAGE) {
		char page[PAGE];

		memset(page, 'a' + (int)(i / PAGE), sizeof(page));
		CHECK_EQ(write(fd, page, sizeof(page)), PAGE);
	}
	return fd;
}

static void mmap_errors(void)
{
	int rd, wr, dir, fd = file_of(PAGE), p[2];

	rd = open("f", O_RDONLY);
	wr = open("f", O_WRONLY);
	dir = open(".", O_RDONLY | O_DIRECTORY);
	CHECK(rd >= 0 && wr >= 0 && dir >= 0 && pipe(p) == 0);
#define ERR(want, ...) do { errno = 0; CHECK(mmap(__VA_ARGS__) == MAP_FAILED); CHECK_EQ(errno, want); } while (0)
	ERR(EINVAL, NULL, 0, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ERR(EINVAL, NULL, PAGE, RW, MAP_ANONYMOUS, -1, 0);
	ERR(EINVAL, NULL, PAGE, RW, MAP_PRIVATE, fd, 1);
	ERR(EBADF, NULL, PAGE, RW, MAP_PRIVATE, 999, 0);
	ERR(EACCES, NULL, PAGE, RW, MAP_SHARED, rd, 0);
	ERR(EACCES, NULL, PAGE, PROT_READ, MAP_PRIVATE, wr, 0);
	ERR(EACCES, NULL, PAGE, RW, MAP_SHARED, wr, 0);
	ERR(ENODEV, NULL, PAGE, PROT_READ, MAP_PRIVATE, dir, 0);
	ERR(ENODEV, NULL, PAGE, PROT_READ, MAP_PRIVATE, p[0], 0);
	ERR(ENOMEM, NULL, 1ul << 60, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ERR(EINVAL, (void *)0x10001, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ERR(ENOMEM, (void *)0x7ffffffff000, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ERR(EOPNOTSUPP, NULL, PAGE, RW, MAP_SHARED_VALIDATE | (1 << 25), fd, 0);
#undef ERR
	CHECK_ERR(munmap((void *)1, PAGE), EINVAL);
	CHECK_ERR(munmap((void *)PAGE, 0), EINVAL);
	CHECK_OK(munmap((void *)(1ul << 40), PAGE)); /* nothing there: no error */
}

static void private_and_shared_files(void)
{
	int fd = file_of(2 * PAGE), rd = open("f", O_RDONLY);
	char *priv = mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE, rd, 0), *sh = mmap(NULL, PAGE, RW, MAP_SHARED, fd, PAGE);
	char *ro = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, rd, 0), b;

	CHECK(priv != MAP_FAILED && sh != MAP_FAILED && ro != MAP_FAILED);
	CHECK(priv[0] == 'a' && priv[PAGE] == 'b' && sh[0] == 'b' && ro[0] == 'a');
	priv[0] = 'X';
	CHECK(pread(fd, &b, 1, 0) == 1 && b == 'a');
	sh[0] = 'Y';
	CHECK(pread(fd, &b, 1, PAGE) == 1 && b == 'Y' && priv[PAGE] == 'Y');
	CHECK_EQ(pwrite(fd, "Z", 1, 0), 1);
	CHECK(ro[0] == 'Z' && priv[0] == 'X');
	CHECK_ERR(mprotect(ro, PAGE, RW), EACCES);
	CHECK_OK(mprotect(priv, PAGE, PROT_READ));
	CHECK_OK(msync(sh, PAGE, MS_SYNC));
	CHECK_ERR(msync(sh, PAGE, MS_SYNC | MS_ASYNC), EINVAL);
	CHECK_ERR(msync(sh + 1, PAGE, MS_SYNC), EINVAL);
	close(fd);
	close(rd);
	CHECK(sh[1] == 'b'); /* a mapping outlives its descriptor */
}

static void sigbus_beyond_the_end(void)
{
	int fd = file_of(2 * PAGE);
	char *p = mmap(NULL, 3 * PAGE, RW, MAP_SHARED, fd, 0);

	CHECK(p != MAP_FAILED);
	catch_faults();
	CHECK_EQ(touch(p + PAGE, true), 0);
	CHECK_EQ(touch(p + 2 * PAGE, false), SIGBUS);
	CHECK(fault_addr == p + 2 * PAGE);
	CHECK_OK(ftruncate(fd, PAGE / 2));
	CHECK_EQ(touch(p + PAGE, false), SIGBUS);
	CHECK(p[PAGE / 2 + 1] == 0);
	CHECK_OK(ftruncate(fd, 3 * PAGE));
	CHECK_EQ(touch(p + 2 * PAGE, true), 0);
	CHECK(p[0] == 'a' && p[PAGE] == 0);
}

static void protection(void)
{
	char *p = anon(4 * PAGE, RW);

	catch_faults();
	memset(p, 1, 4 * PAGE);
	CHECK_OK(mprotect(p + PAGE, PAGE, PROT_READ));
	CHECK(touch(p, true) == 0 && touch(p + PAGE, false) == 0 && touch(p + 2 * PAGE, true) == 0);
	CHECK_EQ(touch(p + PAGE, true), SIGSEGV);
	CHECK(fault_code == SEGV_ACCERR && fault_addr == p + PAGE);
	CHECK_OK(mprotect(p, 4 * PAGE, PROT_NONE));
	CHECK_EQ(touch(p + 3 * PAGE, false), SIGSEGV);
	CHECK_OK(mprotect(p, 4 * PAGE, RW));
	CHECK(p[PAGE] == 1);
	CHECK_OK(munmap(p + PAGE, PAGE));
	CHECK_EQ(touch(p + PAGE, false), SIGSEGV);
	CHECK_EQ(fault_code, SEGV_MAPERR);
	CHECK_ERR(mprotect(p, 4 * PAGE, PROT_READ), ENOMEM);
	CHECK_EQ(touch(p, true), SIGSEGV); /* what was before the hole has changed */
	CHECK_EQ(touch(p + 2 * PAGE, true), 0);
	CHECK_ERR(mprotect(p + 1, PAGE, RW), EINVAL);
	CHECK_ERR(mprotect(p, PAGE, 0x1000), EINVAL);
	CHECK_ERR(mprotect(p, PAGE, RW | PROT_GROWSDOWN), EINVAL);
	CHECK_OK(mprotect(p, 0, RW));
}

static void fixed_and_hints(void)
{
	char *p = anon(3 * PAGE, RW), *q;

	p[0] = p[2 * PAGE] = 7;
	q = mmap(p + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(q == p + PAGE && p[0] == 7 && q[0] == 0 && p[2 * PAGE] == 7);
	q = mmap(p, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(q != MAP_FAILED && q != p);
	errno = 0;
	q = mmap(p, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(q == MAP_FAILED && errno == EEXIST);
	CHECK_OK(munmap(p, 3 * PAGE));
	q = mmap(p + PAGE, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(q == p + PAGE);
	q = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	CHECK((unsigned long)q < 1ul << 31);
}

static void remap_moves(void)
{
	char *p = anon(4 * PAGE, RW), *q, *to = anon(16 * PAGE, PROT_NONE);

	for (int i = 0; i < 4; i++)
		p[i * PAGE] = 'a' + i;
	q = mremap(p, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to + PAGE);
	CHECK(q == to + PAGE && q[0] == 'a' && q[3 * PAGE] == 'd' && q[7 * PAGE] == 0);
	catch_faults();
	CHECK_EQ(touch(p, false), SIGSEGV);
	CHECK_EQ(touch(to, false), SIGSEGV);
	CHECK(mremap(q, 8 * PAGE, 2 * PAGE, 0, 0) == q);
	CHECK_EQ(touch(q + 2 * PAGE, false), SIGSEGV);
	CHECK(mremap(q, 2 * PAGE, 6 * PAGE, 0, 0) == q);
	CHECK(q[PAGE] == 'b' && q[5 * PAGE] == 0);
	CHECK(touch(q + 5 * PAGE, true) == 0);
	p = mremap(q + PAGE, PAGE, 20 * PAGE, MREMAP_MAYMOVE, 0);
	CHECK(p != MAP_FAILED && p[0] == 'b' && p[19 * PAGE] == 0 && q[0] == 'a');
	CHECK_EQ(touch(q + PAGE, false), SIGSEGV);
#define ERR(want, ...) do { errno = 0; CHECK(mremap(__VA_ARGS__) == MAP_FAILED); CHECK_EQ(errno, want); } while (0)
	ERR(EINVAL, p + 1, PAGE, PAGE, MREMAP_MAYMOVE);
	ERR(EINVAL, p, PAGE, 0, MREMAP_MAYMOVE);
	ERR(EINVAL, p, PAGE, PAGE, 64);
	ERR(EINVAL, p, PAGE, PAGE, MREMAP_FIXED, to);
	ERR(EINVAL, p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + PAGE);
	ERR(EFAULT, q + PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	ERR(EFAULT, p, 21 * PAGE, 22 * PAGE, MREMAP_MAYMOVE);
	ERR(EINVAL, p, 0, PAGE, MREMAP_MAYMOVE);
#undef ERR
}

static void remap_shared(void)
{
	char *p = mmap(NULL, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0), *q, *r;
	int fd = file_of(3 * PAGE);

	CHECK(p != MAP_FAILED);
	p[0] = 'x';
	q = mremap(p, 0, 2 * PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED && q != p && q[0] == 'x');
	q[PAGE] = 'y';
	CHECK(p[PAGE] == 'y');
	r = mmap(NULL, PAGE, RW, MAP_SHARED, fd, PAGE);
	CHECK(r != MAP_FAILED && r[0] == 'b');
	r = mremap(r, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	CHECK(r != MAP_FAILED && r[0] == 'b' && r[PAGE] == 'c');
	q = mremap(r, 0, 2 * PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED && q != r && q[PAGE] == 'c');
}

static void remap_dontunmap(void)
{
	char *p = anon(2 * PAGE, RW), *q;

	p[0] = 5;
	q = mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	if (q == MAP_FAILED)
		_exit(GT_SKIP);
	CHECK(q != p && q[0] == 5 && p[0] == 0);
	p[PAGE] = 1;
	errno = 0;
	CHECK(mremap(p, 2 * PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP) == MAP_FAILED);
	CHECK_EQ(errno, EINVAL);
}

static void advice(void)
{
	char *p = anon(4 * PAGE, RW);
	int st;

	memset(p, 1, 4 * PAGE);
	CHECK_OK(madvise(p + PAGE, PAGE, MADV_DONTNEED));
	CHECK(p[0] == 1 && p[PAGE] == 0 && p[2 * PAGE] == 1);
	CHECK_OK(madvise(p, 4 * PAGE, MADV_WILLNEED));
	CHECK_OK(madvise(p, 0, MADV_NORMAL));
	CHECK_ERR(madvise(p, PAGE, 12345), EINVAL);
	CHECK_ERR(madvise(p + 1, PAGE, MADV_NORMAL), EINVAL);
	CHECK_OK(madvise(p, PAGE, MADV_DONTFORK));
	CHECK_OK(madvise(p + 2 * PAGE, PAGE, MADV_WIPEONFORK));
	if (fork() == 0) {
		catch_faults();
		_exit(touch(p, false) != SIGSEGV || p[2 * PAGE] != 0 || p[3 * PAGE] != 1);
	}
	CHECK(wait(&st) > 0 && st == 0);
	CHECK_OK(munmap(p + PAGE, PAGE));
	CHECK_ERR(madvise(p, 4 * PAGE, MADV_DONTNEED), ENOMEM);
	CHECK(p[0] == 0 && p[3 * PAGE] == 0); /* what is mapped is done */
}

static void heap(void)
{
	char *start = sbrk(0), *p;

	for (int i = 1; i <= 2000; i++)
		CHECK(brk(start + i * 1000) == 0);
	memset(start, 1, 2000000);
	CHECK(brk(start + 1000) == 0);
	CHECK(brk(start + 2000000) == 0);
	for (p = start + 2 * PAGE; p < start + 2000000; p += 512)
		CHECK(*p == 0);
	CHECK(start[999] == 1);
	CHECK(syscall(SYS_brk, 0) == (long)(start + 2000000));
	CHECK(syscall(SYS_brk, 1ul << 62) == (long)(start + 2000000));
	CHECK(brk(start) == 0);
}

static int depth(int n)
{
	volatile char frame[1000];

	frame[0] = frame[999] = (char)n;
	return n ? depth(n - 1) + frame[0] - frame[999] : 0;
}

static void deep_stack(void)
{
	struct rlimit rl;

	CHECK_OK(getrlimit(RLIMIT_STACK, &rl));
	CHECK_EQ(depth(6000), 0); /* about 6 of 8 MiB */
	if (fork() == 0) {
		depth(1 << 30);
		_exit(0);
	}
	int st;
	CHECK(wait(&st) > 0 && WIFSIGNALED(st) && WTERMSIG(st) == SIGSEGV);
}

static void growing_mapping(void)
{
	char *p, *top = anon(1 << 20, PROT_NONE) + (1 << 20);

	CHECK_OK(munmap(top - (1 << 20), 1 << 20));
	p = mmap(top - PAGE, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
	CHECK(p == top - PAGE);
	catch_faults();
	CHECK_EQ(touch(p - 8, true), 0);
	CHECK_EQ(touch(p - 20 * PAGE, true), 0);
}

static void *thread_map(void *arg)
{
	for (int i = 0; i < 200; i++) {
		char *p = anon(3 * PAGE, RW);

		memset(p, i, 3 * PAGE);
		CHECK_OK(mprotect(p + PAGE, PAGE, PROT_READ));
		CHECK(p[PAGE] == (char)i);
		CHECK_OK(munmap(p, 3 * PAGE));
	}
	return NULL;
}

static void threads_map(void)
{
	pthread_t th[4];

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&th[i], NULL, thread_map, NULL) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(th[i], NULL) == 0);
}

static void shared_with_child(void)
{
	int *p = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0), st;
	int *q = (int *)anon(PAGE, RW);

	CHECK(p != MAP_FAILED);
	*p = *q = 1;
	if (fork() == 0) {
		*p = *q = 2;
		_exit(0);
	}
	CHECK(wait(&st) > 0 && st == 0 && *p == 2 && *q == 1);
}

static void locking_and_residence(void)
{
	char *p = anon(4 * PAGE, RW);
	unsigned char vec[4];
	struct rlimit rl = { PAGE * 2, PAGE * 2 };

	memset(p, 1, 4 * PAGE);
	CHECK_OK(mincore(p, 4 * PAGE, vec));
	CHECK(vec[0] & 1);
	CHECK_ERR(mincore(p + 1, PAGE, vec), EINVAL);
	CHECK_ERR(mincore(p, PAGE, BAD_PTR), EFAULT);
	CHECK_OK(munmap(p + PAGE, PAGE));
	CHECK_ERR(mincore(p, 4 * PAGE, vec), ENOMEM);
	CHECK_OK(mlock(p, PAGE));
	CHECK_OK(munlock(p, PAGE));
	CHECK_ERR(mlock(p, 2 * PAGE), ENOMEM);
	CHECK_ERR(mlockall(0), EINVAL);
	CHECK_OK(setrlimit(RLIMIT_MEMLOCK, &rl));
	CHECK_OK(munlockall());
}

static void limits(void)
{
	struct rlimit rl = { 64 << 20, RLIM_INFINITY };

	CHECK_OK(setrlimit(RLIMIT_AS, &rl));
	errno = 0;
	CHECK(mmap(NULL, 65 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	CHECK_EQ(errno, ENOMEM);
	CHECK(mmap(NULL, 16 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
}

static void maps_file(void)
{
	char *p = mmap(NULL, 3 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), want[64], line[512];
	FILE *f;
	int found = 0, stack = 0;

	CHECK_OK(mprotect(p + PAGE, PAGE, PROT_READ | PROT_EXEC));
	f = fopen("/proc/self/maps", "r");
	CHECK(f != NULL);
	snprintf(want, sizeof(want), "%08lx-%08lx r-xp 00000000 00:00 0", (long)p + PAGE, (long)p + 2 * PAGE);
	while (fgets(line, sizeof(line), f)) {
		unsigned long a, b;

		found += !strncmp(line, want, strlen(want));
		if (strstr(line, "[stack]") && sscanf(line, "%lx-%lx", &a, &b) == 2)
			stack += a <= (unsigned long)want && (unsigned long)want < b;
	}
	CHECK(found == 1 && stack == 1);
}

static void reservations(void)
{
	/* As node, go and java do it: a great reservation, then pieces of it. */
	size_t n = 1ul << 38;
	char *p = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	for (size_t i = 0; i < 64; i++) {
		char *at = p + i * (n / 64);

		CHECK_OK(mprotect(at, 16 * PAGE, RW));
		at[15 * PAGE] = 1;
	}
	CHECK_OK(munmap(p, n));
}

static void many_mappings(void)
{
	char *p = anon(4000 * PAGE, RW);

	for (int i = 0; i < 4000; i += 2)
		CHECK_OK(mprotect(p + i * PAGE, PAGE, PROT_READ));
	for (int i = 1; i < 4000; i += 2)
		p[i * PAGE] = 1;
	CHECK_OK(mprotect(p, 4000 * PAGE, RW));
	for (int i = 0; i < 4000; i++)
		CHECK(p[i * PAGE] == (i & 1));
	CHECK_OK(munmap(p, 4000 * PAGE));
}

static const struct gt_case cases[] = {
	{ "mmap_errors", mmap_errors },
	{ "private_and_shared_files", private_and_shared_files },
	{ "sigbus_beyond_the_end", sigbus_beyond_the_end },
	{ "protection", protection },
	{ "fixed_and_hints", fixed_and_hints },
	{ "remap_moves", remap_moves },
	{ "remap_shared", remap_shared },
	{ "remap_dontunmap", remap_dontunmap },
	{ "advice", advice },
	{ "heap", heap },
	{ "deep_stack", deep_stack },
	{ "growing_mapping", growing_mapping },
	{ "threads_map", threads_map },
	{ "shared_with_child", shared_with_child },
	{ "locking_and_residence", locking_and_residence },
	{ "limits", limits },
	{ "maps_file", maps_file },
	{ "reservations", reservations },
	{ "many_mappings", many_mappings },
	{ NULL, NULL },
};
GT_MAIN(cases)
