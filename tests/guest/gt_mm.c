/* SPDX-License-Identifier: Apache-2.0 */
/* Address spaces: brk, mmap and its kin, what faults, what is shared. */
#include <setjmp.h>
#include <sys/resource.h>

#include "gt_child.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#define PG 4096ul

static sigjmp_buf back;
static volatile siginfo_t fault;

static void on_fault(int sig, siginfo_t *si, void *uc)
{
	*(siginfo_t *)&fault = *si;
	siglongjmp(back, sig);
}

static void catch_faults(void)
{
	gt_handle_info(SIGSEGV, on_fault, 0);
	gt_handle_info(SIGBUS, on_fault, 0);
}

/* The signal that the access raises, 0: none. */
static int touch(volatile char *p, bool write)
{
	int s = sigsetjmp(back, 1);

	if (s)
		return s;
	if (write)
		*p = *p;
	else
		(void)*p;
	return 0;
}

static char *anon(size_t pages)
{
	char *p = mmap(NULL, pages * PG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static int temp_file(size_t size)
{
	int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0);
	CHECK_OK(ftruncate(fd, size));
	return fd;
}

#define MMAP(a, l, p, f, fd, o) ((long)syscall(SYS_mmap, a, l, p, f, fd, o))

static void mmap_hostile(void)
{
	int fd = temp_file(8192), ro = open("f", O_RDONLY), wo = open("f", O_WRONLY), p[2], dir = open(".", O_RDONLY);
	const int ap = MAP_PRIVATE | MAP_ANONYMOUS, rw = PROT_READ | PROT_WRITE;

	CHECK_OK(pipe(p));
	CHECK_ERR(MMAP(0, 0, rw, ap, -1, 0), EINVAL);
	CHECK_ERR(MMAP(0, PG, rw, MAP_ANONYMOUS, -1, 0), EINVAL);
	CHECK_ERR(MMAP(0, PG, rw, ap, -1, 100), EINVAL);
	CHECK_ERR(MMAP(0, -1l, rw, ap, -1, 0), ENOMEM);
	CHECK_ERR(MMAP(0, -PG, rw, ap, -1, 0), ENOMEM);
	CHECK_ERR(MMAP(0, 1ul << 47, rw, ap, -1, 0), ENOMEM);
	CHECK_ERR(MMAP(0, 1ul << 62, rw, ap, -1, 0), ENOMEM);
	CHECK_ERR(MMAP(100, PG, rw, ap | MAP_FIXED, -1, 0), EINVAL);
	CHECK_ERR(MMAP(0xffff800000000000ul, PG, rw, ap | MAP_FIXED, -1, 0), ENOMEM);
	CHECK_ERR(MMAP(0x7ffffffff000ul, PG, rw, ap | MAP_FIXED, -1, 0), ENOMEM);
	CHECK_ERR(MMAP(-PG, PG, rw, ap | MAP_FIXED, -1, 0), ENOMEM);
	CHECK_ERR(MMAP(0, PG, rw, MAP_SHARED, 999, 0), EBADF);
	CHECK_ERR(MMAP(0, PG, rw, MAP_SHARED, -1, 0), EBADF);
	CHECK_ERR(MMAP(0, PG, rw, MAP_SHARED, ro, 0), EACCES);
	CHECK_ERR(MMAP(0, PG, PROT_READ, MAP_SHARED, wo, 0), EACCES);
	CHECK_ERR(MMAP(0, PG, PROT_WRITE, MAP_PRIVATE, wo, 0), EACCES);
	CHECK_ERR(MMAP(0, PG, rw, MAP_SHARED, p[0], 0), EACCES);
	CHECK_ERR(MMAP(0, PG, PROT_READ, MAP_SHARED, p[0], 0), ENODEV);
	CHECK_ERR(MMAP(0, PG, PROT_READ, MAP_PRIVATE, dir, 0), ENODEV);
	CHECK_ERR(MMAP(0, PG, PROT_READ, MAP_SHARED, fd, -PG), EOVERFLOW);
	CHECK_ERR(MMAP(0, PG, PROT_READ, 0x1f & MAP_TYPE, fd, 0), EINVAL);
	CHECK_ERR(MMAP(0, PG, PROT_READ, MAP_SHARED_VALIDATE | 0x1000000, fd, 0), EOPNOTSUPP);
	CHECK(MMAP(0, PG, PROT_READ, MAP_PRIVATE | 0x1000000, fd, 0) > 0); /* unknown flags are ignored */
	CHECK(MMAP(0, PG, rw, MAP_PRIVATE, ro, 0) > 0);
	CHECK(MMAP(100, PG, rw, ap, -1, 0) > 0); /* only a hint */
	CHECK(MMAP(0xffff800000000000ul, PG, rw, ap, -1, 0) > 0);
}

static void unmap_hostile(void)
{
	char *p = anon(4);

	CHECK_ERR(munmap(p + 1, PG), EINVAL);
	CHECK_ERR(munmap(p, 0), EINVAL);
	CHECK_ERR(munmap(p, -1ul), EINVAL);
	CHECK_ERR(munmap((void *)0xffff800000000000ul, PG), EINVAL);
	CHECK_ERR(munmap((void *)0x7ffffffff000ul, 2 * PG), EINVAL);
	CHECK_OK(munmap(p, 1)); /* whole pages */
	CHECK_OK(munmap(p, PG)); /* nothing there */
	CHECK_ERR(mprotect(p, PG, PROT_READ), ENOMEM);
	CHECK_ERR(mprotect(p + PG + 1, PG, PROT_READ), EINVAL);
	CHECK_OK(mprotect(p + PG, 0, PROT_READ));
	CHECK_ERR(mprotect(p + PG, PG, 0x40), EINVAL);
	CHECK_ERR(mprotect(p + PG, -PG, PROT_READ), ENOMEM);
	CHECK_ERR(madvise(p + PG + 1, PG, MADV_DONTNEED), EINVAL);
	CHECK_ERR(madvise(p + PG, PG, 12345), EINVAL);
	CHECK_ERR(madvise(p, PG, MADV_DONTNEED), ENOMEM);
	CHECK_ERR(madvise(p + PG, -PG, MADV_DONTNEED), EINVAL);
	CHECK_OK(madvise(p + PG, 0, MADV_DONTNEED));
	CHECK_ERR(msync(p + PG, PG, MS_SYNC | MS_ASYNC), EINVAL);
	CHECK_ERR(msync(p + PG, PG, 0x80), EINVAL);
	CHECK_ERR(msync(p + PG + 1, PG, MS_SYNC), EINVAL);
	CHECK_ERR(msync(p, PG, MS_SYNC), ENOMEM);
	CHECK_OK(msync(p + PG, PG, MS_SYNC));
	CHECK_ERR(mincore(p + PG + 1, PG, (unsigned char *)p), EINVAL);
	CHECK_ERR(mincore(p, PG, (unsigned char *)p + PG), ENOMEM);
	CHECK_ERR(mincore(p + PG, PG, BAD_PTR), EFAULT);
	CHECK_ERR(mlock(p, PG), ENOMEM);
	CHECK_ERR(syscall(SYS_mlock2, p + PG, PG, 4), EINVAL);
	CHECK_ERR(mlockall(0), EINVAL);
	CHECK_ERR(mlockall(8), EINVAL);
}

static void place_fixed(void)
{
	char *p = anon(6), *q;

	memset(p, 'a', 6 * PG);
	q = mmap(p + 2 * PG, 2 * PG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(q == p + 2 * PG);
	CHECK(p[2 * PG - 1] == 'a' && q[0] == 0 && q[2 * PG - 1] == 0 && p[4 * PG] == 'a');
	CHECK_ERR(MMAP(p, PG, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
	CHECK_ERR(MMAP(p - PG, 8 * PG, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
	CHECK_EQ(p[0], 'a');
	CHECK_OK(munmap(p, 6 * PG));
	q = mmap(p, PG, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(q == p);
	/* A free hint is taken, a used one is not. */
	q = mmap(p + PG, PG, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(q == p + PG);
	q = mmap(p, PG, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(q != p);
	q = mmap(NULL, PG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	CHECK(q != MAP_FAILED && (uintptr_t)q < 1ul << 31);
}

static void holes(void)
{
	char *p = anon(16);

	catch_faults();
	for (int i = 1; i < 16; i += 2)
		CHECK_OK(munmap(p + i * PG, PG));
	for (int i = 0; i < 16; i++)
		CHECK_EQ(touch(p + i * PG, true), i & 1 ? SIGSEGV : 0);
	CHECK_EQ(fault.si_code, SEGV_MAPERR);
	CHECK_ERR(mprotect(p, 4 * PG, PROT_READ), ENOMEM); /* up to the hole */
	CHECK_EQ(touch(p, true), SIGSEGV);
	CHECK_EQ(fault.si_code, SEGV_ACCERR);
	CHECK_EQ(touch(p + 2 * PG, true), 0);
	CHECK_OK(munmap(p, 16 * PG));
}

static void protections(void)
{
	char *p = anon(3);

	catch_faults();
	CHECK_OK(mprotect(p + PG, PG, PROT_NONE));
	CHECK_EQ(touch(p, true), 0);
	CHECK_EQ(touch(p + PG, false), SIGSEGV);
	CHECK(fault.si_addr == p + PG);
	CHECK_EQ(touch(p + 2 * PG, true), 0);
	CHECK_OK(mprotect(p, 3 * PG, PROT_READ));
	CHECK_EQ(touch(p + PG, false), 0);
	CHECK_EQ(touch(p + PG, true), SIGSEGV);
	CHECK_OK(mprotect(p, 3 * PG, PROT_WRITE));
	CHECK_EQ(touch(p + PG, true), 0);
	/* Calls see the same. */
	CHECK_OK(mprotect(p, PG, PROT_NONE));
	CHECK_ERR(write(open("f", O_RDWR | O_CREAT, 0600), p, 1), EFAULT);
	CHECK_OK(mprotect(p, PG, PROT_READ));
	CHECK_ERR(read(open("f", O_RDWR), p, 1) ? -1 : (errno = EFAULT, -1), EFAULT);
	/* A page of code. */
	memcpy(p + PG, "\xb8\x2a\0\0\0\xc3", 6);
	CHECK_OK(mprotect(p + PG, PG, PROT_READ | PROT_EXEC));
	CHECK_EQ(((int (*)(void))(p + PG))(), 42);
}

static void protect_file(void)
{
	int fd = temp_file(PG), ro = open("f", O_RDONLY);
	char *p = mmap(NULL, PG, PROT_READ, MAP_SHARED, ro, 0);

	CHECK(p != MAP_FAILED);
	CHECK_ERR(mprotect(p, PG, PROT_READ | PROT_WRITE), EACCES);
	p = mmap(NULL, PG, PROT_READ, MAP_PRIVATE, ro, 0);
	CHECK_OK(mprotect(p, PG, PROT_READ | PROT_WRITE));
	*p = 'x';
	p = mmap(NULL, PG, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	CHECK_OK(mprotect(p, PG, PROT_READ | PROT_WRITE));
	*p = 'y';
	CHECK_EQ(pread(ro, p + 1, 1, 0), 1);
	CHECK_EQ(p[1], 'y');
}

static void brk_moves(void)
{
	char *b = (char *)syscall(SYS_brk, 0), *e;

	CHECK((char *)syscall(SYS_brk, 100) == b); /* refused: says where it is */
	CHECK((char *)syscall(SYS_brk, 0x7fffffffffff) == b);
	CHECK((char *)syscall(SYS_brk, -1l) == b);
	e = (char *)syscall(SYS_brk, b + 10 * PG);
	CHECK(e == b + 10 * PG);
	memset(b, 'b', 10 * PG);
	CHECK((char *)syscall(SYS_brk, b + 100) == b + 100);
	CHECK((char *)syscall(SYS_brk, b + 10 * PG) == b + 10 * PG);
	CHECK_EQ(b[99], 'b');
	CHECK_EQ(b[5 * PG], 0); /* what was given back is gone */
	CHECK_EXIT(CHILD({
		CHECK((char *)syscall(SYS_brk, 0) == b + 10 * PG);
		b[9 * PG] = 1;
		CHECK((char *)syscall(SYS_brk, b + 300 * PG) == b + 300 * PG);
		memset(b, 1, 300 * PG);
	}), 0);
	CHECK_EQ(b[9 * PG], 0);
	CHECK((char *)syscall(SYS_brk, b) == b);
	catch_faults();
	CHECK_EQ(touch((char *)(((uintptr_t)b + PG - 1) & -PG), false), SIGSEGV);
	CHECK_EXIT(CHILD({
		struct rlimit rl = { 0, 0 };
		CHECK_OK(setrlimit(RLIMIT_DATA, &rl));
		CHECK((char *)syscall(SYS_brk, b + 10 * PG) == b);
	}), 0);
}

#define MREMAP(a, ol, nl, f, na) ((long)syscall(SYS_mremap, a, ol, nl, f, na))

static void mremap_hostile(void)
{
	char *p = anon(8);

	CHECK_OK(munmap(p + 4 * PG, PG));
	CHECK_ERR(MREMAP(p + 1, PG, PG, 0, 0), EINVAL);
	CHECK_ERR(MREMAP(p, PG, 0, 0, 0), EINVAL);
	CHECK_ERR(MREMAP(p, PG, PG, 8, 0), EINVAL);
	CHECK_ERR(MREMAP(p, PG, PG, MREMAP_FIXED, p + 6 * PG), EINVAL);
	CHECK_ERR(MREMAP(p, PG, PG, MREMAP_FIXED | MREMAP_MAYMOVE, p + 1), EINVAL);
	CHECK_ERR(MREMAP(p, 2 * PG, 2 * PG, MREMAP_FIXED | MREMAP_MAYMOVE, p + PG), EINVAL);
	CHECK_ERR(MREMAP(p, PG, 2 * PG, MREMAP_DONTUNMAP | MREMAP_MAYMOVE, 0), EINVAL);
	CHECK_ERR(MREMAP(p, PG, PG, MREMAP_DONTUNMAP, 0), EINVAL);
	CHECK_ERR(MREMAP(p + 4 * PG, PG, 2 * PG, MREMAP_MAYMOVE, 0), EFAULT);
	CHECK_ERR(MREMAP(p + 3 * PG, 2 * PG, 4 * PG, MREMAP_MAYMOVE, 0), EFAULT);
	CHECK_ERR(MREMAP(p, PG, 1ul << 46, MREMAP_MAYMOVE, 0), ENOMEM);
	CHECK_ERR(MREMAP(p, PG, -1ul, MREMAP_MAYMOVE, 0), EINVAL);
	CHECK_ERR(MREMAP(p, 0, PG, MREMAP_MAYMOVE, 0), EINVAL); /* private */
	CHECK_ERR(MREMAP(p, 4 * PG, 8 * PG, 0, 0), ENOMEM); /* no room */
	CHECK_ERR(MREMAP(p, PG, PG, MREMAP_FIXED | MREMAP_MAYMOVE, 0x7ffffffff000ul), EINVAL);
}

static void mremap_right(void)
{
	char *p = anon(8), *q, *r;

	catch_faults();
	memset(p, 'm', 8 * PG);
	/* Shrink, grow in place, move. */
	CHECK((char *)MREMAP(p, 8 * PG, 4 * PG, 0, 0) == p);
	CHECK_EQ(touch(p + 4 * PG, false), SIGSEGV);
	CHECK((char *)MREMAP(p, 4 * PG, 8 * PG, 0, 0) == p);
	CHECK(p[4 * PG - 1] == 'm' && p[4 * PG] == 0);
	(void)mmap(p + 8 * PG, PG, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* in the way, if nothing is yet */
	q = (char *)MREMAP(p, 8 * PG, 16 * PG, MREMAP_MAYMOVE, 0);
	CHECK(q != MAP_FAILED && q != p);
	CHECK(q[0] == 'm' && q[8 * PG] == 0);
	CHECK_EQ(touch(p, false), SIGSEGV);
	/* To a place. */
	r = anon(16);
	CHECK((char *)MREMAP(q, 16 * PG, 16 * PG, MREMAP_MAYMOVE | MREMAP_FIXED, r) == r);
	CHECK_EQ(r[PG], 'm');
	CHECK_EQ(touch(q, false), SIGSEGV);
	/* A part out of the middle. */
	q = (char *)MREMAP(r + PG, PG, 2 * PG, MREMAP_MAYMOVE, 0);
	CHECK(q != MAP_FAILED && *q == 'm');
	CHECK_EQ(touch(r + PG, false), SIGSEGV);
	CHECK_EQ(touch(r + 2 * PG, false), 0);
	/* Without unmapping: the old place reads as zero. */
	*q = 'd';
	p = (char *)MREMAP(q, 2 * PG, 2 * PG, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
	CHECK(p != MAP_FAILED && p != q);
	CHECK(*p == 'd' && *q == 0);
	/* Of a shared mapping a second one. */
	p = gt_shared(2 * PG);
	*p = 's';
	q = (char *)MREMAP(p, 0, 2 * PG, MREMAP_MAYMOVE, 0);
	CHECK(q != MAP_FAILED && *q == 's');
	*q = 't';
	CHECK_EQ(*p, 't');
}

static void mremap_file(void)
{
	int fd = temp_file(4 * PG);
	char *p = mmap(NULL, PG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PG), *q;

	CHECK_EQ(pwrite(fd, "two", 3, 2 * PG), 3);
	*p = 'x';
	q = (char *)MREMAP(p, PG, 2 * PG, MREMAP_MAYMOVE, 0);
	CHECK(q != MAP_FAILED);
	CHECK(*q == 'x' && !memcmp(q + PG, "two", 3));
	q[PG] = 'T';
	CHECK_EQ(pread(fd, q, 1, 2 * PG), 1);
	CHECK_EQ(*q, 'T');
}

static void advise(void)
{
	int fd = temp_file(2 * PG);
	char *p = anon(3), *s = gt_shared(PG), *f = mmap(NULL, PG, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	CHECK_EQ(pwrite(fd, "disk", 4, 0), 4);
	memset(p, 'a', 3 * PG);
	*s = 's';
	memcpy(f, "mine", 4);
	CHECK_OK(madvise(p + PG, PG, MADV_DONTNEED));
	CHECK(p[PG - 1] == 'a' && p[PG] == 0 && p[2 * PG] == 'a');
	CHECK_OK(madvise(s, PG, MADV_DONTNEED));
	CHECK_EQ(*s, 's');
	CHECK_OK(madvise(f, PG, MADV_DONTNEED));
	CHECK(!memcmp(f, "disk", 4));
	CHECK_OK(madvise(s, PG, MADV_REMOVE));
	CHECK_EQ(*s, 0);
	CHECK_OK(madvise(p, PG, MADV_FREE));
	CHECK_ERR(madvise(f, PG, MADV_FREE), EINVAL);
	CHECK_OK(madvise(p, PG, MADV_WILLNEED));
	CHECK_OK(madvise(p, 3 * PG, MADV_RANDOM));
	/* Not in a child, and zeroed there. */
	memset(p, 'a', 3 * PG);
	CHECK_OK(madvise(p, PG, MADV_DONTFORK));
	CHECK_OK(madvise(p + PG, PG, MADV_WIPEONFORK));
	CHECK_EXIT(CHILD({
		catch_faults();
		CHECK_EQ(touch(p, false), SIGSEGV);
		CHECK_EQ(p[PG], 0);
		CHECK_EQ(p[2 * PG], 'a');
	}), 0);
	CHECK_EQ(p[0], 'a');
	CHECK_OK(madvise(p, PG, MADV_DOFORK));
	CHECK_EXIT(CHILD(CHECK_EQ(p[0], 'a')), 0);
}

static void fork_memory(void)
{
	char *priv = anon(2), *shared = gt_shared(PG);

	*priv = 'p';
	CHECK_EXIT(CHILD({
		CHECK_EQ(*priv, 'p');
		*priv = 'c';
		*shared = 'c';
		CHECK_EXIT(CHILD({
			CHECK_EQ(*priv, 'c');
			*shared = 'g';
			CHECK_OK(munmap(priv, PG));
		}), 0);
		CHECK_EQ(*priv, 'c');
	}), 0);
	CHECK_EQ(*priv, 'p');
	CHECK_EQ(*shared, 'g');
}

static void file_coherence(void)
{
	int fd = temp_file(3 * PG);
	char *p = mmap(NULL, 3 * PG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *q = mmap(NULL, PG, PROT_READ, MAP_SHARED, fd, PG);
	char *priv = mmap(NULL, PG, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0), buf[16];

	CHECK_EQ(pwrite(fd, "hello", 5, 100), 5);
	CHECK(!memcmp(p + 100, "hello", 5));
	memcpy(p + PG, "world", 5);
	CHECK(!memcmp(q, "world", 5));
	CHECK_EQ(pread(fd, buf, 5, PG), 5);
	CHECK(!memcmp(buf, "world", 5));
	CHECK(!memcmp(priv + 100, "hello", 5));
	memcpy(priv + 100, "HELLO", 5);
	CHECK(!memcmp(p + 100, "hello", 5));
	CHECK_EXIT(CHILD(memcpy(p, "child", 5); CHECK_EQ(pwrite(fd, "x", 1, 2 * PG), 1)), 0);
	CHECK(!memcmp(p, "child", 5));
	CHECK_EQ(p[2 * PG], 'x');
	/* Over the mapping into itself. */
	CHECK_EQ(pwrite(fd, p, 5, 200), 5);
	CHECK(!memcmp(p + 200, "child", 5));
	CHECK_EQ(pread(fd, p + 300, 5, 0), 5);
	CHECK(!memcmp(p + 300, "child", 5));
	/* Without a name and without an fd it lives on. */
	CHECK_OK(unlink("f"));
	close(fd);
	CHECK(!memcmp(p, "child", 5));
	p[7] = 1;
}

static void beyond_end(void)
{
	int fd = temp_file(PG + 100);
	char *p = mmap(NULL, 4 * PG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	catch_faults();
	CHECK_EQ(touch(p + PG + 4000, true), 0); /* the rest of the last page */
	CHECK_EQ(p[PG + 100], 0);
	CHECK_EQ(touch(p + 2 * PG, false), SIGBUS);
	CHECK(fault.si_addr == p + 2 * PG);
	CHECK_ERR(write(fd, p + 2 * PG, 1), EFAULT);
	CHECK_ERR(syscall(SYS_getcwd, p + 2 * PG, 100), EFAULT);
	CHECK_OK(ftruncate(fd, 4 * PG));
	CHECK_EQ(touch(p + 3 * PG, true), 0);
	p[PG + 50] = 'k';
	p[PG + 200] = 'z';
	CHECK_OK(ftruncate(fd, PG + 100));
	CHECK_EQ(touch(p + 3 * PG, true), SIGBUS);
	CHECK_EQ(p[PG + 50], 'k');
	CHECK_EQ(p[PG + 200], 0); /* zeroed by the truncation */
	CHECK_OK(ftruncate(fd, 0));
	CHECK_EQ(touch(p, false), SIGBUS);
	/* Private copies go too. */
	CHECK_OK(ftruncate(fd, PG));
	p = mmap(NULL, PG, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	*p = 1;
	CHECK_OK(ftruncate(fd, 0));
	CHECK_EQ(touch(p, false), SIGBUS);
}

static volatile int depth_sink;

__attribute__((noinline)) static int recurse(int n)
{
	volatile char frame[1024];

	frame[n % 1024] = (char)n;
	if (n)
		recurse(n - 1);
	depth_sink += frame[n % 1024];
	return depth_sink;
}

static void stack_grows(void)
{
	struct rlimit rl;

	CHECK_OK(getrlimit(RLIMIT_STACK, &rl));
	if (rl.rlim_cur >= 8 << 20)
		recurse(6000); /* 6 MiB */
	CHECK_KILLED(CHILD({
		struct rlimit small = { 1 << 20, 1 << 20 };
		if (rl.rlim_cur > 512 << 20)
			raise(SIGSEGV);
		(void)small;
		recurse(1 << 20);
	}), SIGSEGV);
	/* Far below the stack pointer it grows as well; beyond the limit it does not. */
	CHECK_EXIT(CHILD({
		uintptr_t here = (uintptr_t)__builtin_frame_address(0);
		catch_faults();
		CHECK_EQ(touch((char *)(here - 500000), true), 0);
	}), 0);
}

static void limit_as(void)
{
	CHECK_EXIT(CHILD({
		struct rlimit rl = { 64 << 20, 64 << 20 };
		CHECK_OK(setrlimit(RLIMIT_AS, &rl));
		CHECK_ERR(MMAP(0, 128 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
		char *p = mmap(NULL, 16 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED);
		CHECK_ERR(MREMAP(p, 16 << 20, 128 << 20, MREMAP_MAYMOVE, 0), ENOMEM);
		CHECK_OK(munmap(p, 16 << 20));
		CHECK(mmap(NULL, 16 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	}), 0);
}

static void resident(void)
{
	unsigned char vec[4] = { 9, 9, 9, 9 };
	char *p = anon(4);

	p[PG] = 1;
	CHECK_OK(mincore(p, 4 * PG, vec));
	CHECK(vec[1] & 1);
	CHECK(vec[0] <= 1 && vec[3] <= 1);
}

static void many_mappings(void)
{
	/* Alternate protections: none merge. Then all merge again. */
	char *p = anon(1000);

	for (int i = 0; i < 1000; i += 2)
		CHECK_OK(mprotect(p + i * PG, PG, PROT_READ));
	catch_faults();
	CHECK_EQ(touch(p + 500 * PG, true), SIGSEGV);
	CHECK_EQ(touch(p + 501 * PG, true), 0);
	CHECK_OK(mprotect(p, 1000 * PG, PROT_READ | PROT_WRITE));
	memset(p, 1, 1000 * PG);
	CHECK_OK(munmap(p, 1000 * PG));
}

static void dev_zero(void)
{
	int fd = open("/dev/zero", O_RDWR);
	char *p = mmap(NULL, PG, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	char *s = mmap(NULL, PG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(p != MAP_FAILED && s != MAP_FAILED);
	CHECK_EQ(*p, 0);
	*p = 1;
	CHECK_EXIT(CHILD(*s = 's'), 0);
	CHECK_EQ(*s, 's');
}

static void copies_over_edges(void)
{
	char *edge = gt_edge_page();
	int p[2], fd = temp_file(0);

	/* A call that meets the edge does what comes before it. */
	CHECK_OK(pipe(p));
	memset(edge, 'e', PG);
	CHECK_EQ(write(fd, edge + PG - 100, 200), 100);
	CHECK_EQ(write(p[1], edge, 50), 50);
	CHECK_ERR(write(fd, edge + PG, 10), EFAULT);
	CHECK_EQ(pread(fd, edge + PG - 10, 100, 0), 10);
	CHECK_ERR(read(p[0], edge + PG, 10), EFAULT);
	CHECK_ERR(syscall(SYS_pread64, fd, edge, -1ul, 0), EFAULT);
	CHECK_ERR(pread(fd, BAD_PTR, 10, 0), EFAULT);
	CHECK_ERR(pread(fd, (void *)0xffffffff81000000ul, 10, 0), EFAULT);
	CHECK_ERR(pread(fd, edge, 10, -1), EINVAL);
}

static const struct gt_case cases[] = {
	{ "mmap_hostile", mmap_hostile },
	{ "unmap_hostile", unmap_hostile },
	{ "place_fixed", place_fixed },
	{ "holes", holes },
	{ "protections", protections },
	{ "protect_file", protect_file },
	{ "brk_moves", brk_moves },
	{ "mremap_hostile", mremap_hostile },
	{ "mremap_right", mremap_right },
	{ "mremap_file", mremap_file },
	{ "advise", advise },
	{ "fork_memory", fork_memory },
	{ "file_coherence", file_coherence },
	{ "beyond_end", beyond_end },
	{ "stack_grows", stack_grows },
	{ "limit_as", limit_as },
	{ "resident", resident },
	{ "many_mappings", many_mappings },
	{ "dev_zero", dev_zero },
	{ "copies_over_edges", copies_over_edges },
	{ NULL, NULL },
};
GT_MAIN(cases)
