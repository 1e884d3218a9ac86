/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the kvm platform, case by case. kvm_mem_model_test.c compares random changes with Linux. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/tap.h"
#include "tests/unit/kvm_mem_fakes.h"

#define A 0x10000000ull
#define PG PAGE_SIZE
#define RW (PROT_READ | PROT_WRITE)
#define RX (PROT_READ | PROT_EXEC)
#define MIB (1ull << 20)

static int map(struct aspace *as, uaddr_t at, uint64_t len, int prot, unsigned flags, int fd, uint64_t off)
{
	const struct aspace_op op = {
		.op = ASPACE_MAP, .addr = at, .len = len, .prot = prot, .flags = flags, .fd = fd, .offset = off
	};

	return fake_apply(as, &op);
}

static int anon(struct aspace *as, uaddr_t at, uint64_t len, int prot)
{
	return map(as, at, len, prot, 0, -1, 0);
}

static int unmap(struct aspace *as, uaddr_t at, uint64_t len)
{
	return fake_apply(as, &(struct aspace_op){ .op = ASPACE_UNMAP, .addr = at, .len = len });
}

static int protect(struct aspace *as, uaddr_t at, uint64_t len, int prot)
{
	return fake_apply(as, &(struct aspace_op){ .op = ASPACE_PROTECT, .addr = at, .len = len, .prot = prot });
}

static int advise(struct aspace *as, uaddr_t at, uint64_t len, int advice)
{
	return fake_apply(as, &(struct aspace_op){ .op = ASPACE_ADVISE, .addr = at, .len = len, .advice = advice });
}

static int remap(struct aspace *as, uaddr_t at, uint64_t len, uaddr_t to, uint64_t new_len, unsigned flags)
{
	return fake_apply(as, &(struct aspace_op){ .op = ASPACE_REMAP,
	                                           .addr = at,
	                                           .len = len,
	                                           .new_addr = to,
	                                           .new_len = new_len,
	                                           .flags = flags });
}

/* What a read gives: the byte, or minus the signal. */
static int rd(struct aspace *as, uaddr_t at)
{
	struct trap trap;
	uint8_t b = 0;
	int sig = fake_access(0, as, at, KFAULT_READ, &b, &trap);

	return sig ? -sig : b;
}

static int wr(struct aspace *as, uaddr_t at, uint8_t b)
{
	struct trap trap;

	return -fake_access(1, as, at, KFAULT_WRITE, &b, &trap);
}

static int ex(struct aspace *as, uaddr_t at)
{
	struct trap trap;
	uint8_t b;

	return -fake_access(0, as, at, KFAULT_EXEC, &b, &trap);
}

/* The si_code of a read or write that fails. */
static int code(struct aspace *as, uaddr_t at, unsigned access)
{
	struct trap trap = { .kind = TRAP_EXITED };
	uint8_t b = 0;

	return fake_access(0, as, at, access, &b, &trap) && trap.kind == TRAP_FAULT && trap.fault.addr == at
	               ? trap.fault.code
	               : -1;
}

static int file_of(unsigned pages, uint8_t fill)
{
	uint8_t buf[PAGE_SIZE];
	int fd = memfd_create("t", MFD_ALLOW_SEALING);

	for (unsigned i = 0; i < pages; i++) {
		memset(buf, fill + i, sizeof(buf));
		tap_ok(pwrite(fd, buf, sizeof(buf), i * PG) == (ssize_t)PG, "a page of a file");
	}
	return fd;
}

static void test_anonymous(void)
{
	struct aspace *as = kaspace_create(&fake_platform);
	uint8_t buf[3 * PAGE_SIZE];
	uint64_t used;

	tap_eq(code(as, A, KFAULT_READ), SEGV_MAPERR, "nothing is mapped");
	tap_eq(anon(as, A, 64 * PG, RW), 0, "map");
	used = fake_platform.mem->used;
	tap_eq(rd(as, A + 5), 0, "zero at first");
	tap_eq(fake_platform.mem->used, used + 3, "a page that was only read costs no memory beside its tables");
	tap_eq(wr(as, A + 5, 7), 0, "write");
	tap_eq(rd(as, A + 5), 7, "and read");
	tap_eq(rd(as, A + 17 * PG), 0, "the neighbours are zero");
	tap_eq(code(as, A - 1, KFAULT_READ), SEGV_MAPERR, "below");
	tap_eq(code(as, A + 64 * PG, KFAULT_WRITE), SEGV_MAPERR, "above");
	tap_eq(ex(as, A), -SIGSEGV, "not executable");
	tap_eq(code(as, A, KFAULT_EXEC), SEGV_ACCERR, "... by right");
	memset(buf, 0x5a, sizeof(buf));
	tap_eq(kvm_aspace_write(as, A + 30 * PG + 100, buf, sizeof(buf)), sizeof(buf), "a copy over page borders");
	tap_eq(rd(as, A + 33 * PG + 99), 0x5a, "arrives whole");
	tap_eq(rd(as, A + 33 * PG + 100), 0, "and not more");
	tap_eq(kvm_aspace_read(as, A + 62 * PG, buf, sizeof(buf)), 2 * PG, "a copy is short at the end");
	tap_eq(kvm_aspace_read(as, A + 64 * PG, buf, 1), -EFAULT, "EFAULT for none");
	tap_eq(kvm_aspace_read(as, GUEST_TASK_SIZE, buf, 1), -EFAULT, "the kernel's half");
	tap_eq(kvm_aspace_read(as, UINT64_MAX - 1, buf, 8), -EFAULT, "the end of the world");
	tap_eq(kvm_aspace_read(as, GUEST_TASK_SIZE, buf, 0), 0, "nothing asked");
	kvm_aspace_put(as);
}

static void test_protect(void)
{
	struct aspace *as = kaspace_create(&fake_platform);

	anon(as, A, 8 * PG, RW);
	tap_eq(wr(as, A, 1), 0, "write");
	tap_eq(protect(as, A, 4 * PG, PROT_READ), 0, "read-only");
	tap_eq(code(as, A, KFAULT_WRITE), SEGV_ACCERR, "no write");
	tap_eq(kvm_aspace_write(as, A, "x", 1), -EFAULT, "nor a copy");
	tap_eq(protect(as, A, 4 * PG, PROT_NONE), 0, "no access");
	tap_eq(code(as, A, KFAULT_READ), SEGV_ACCERR, "no read");
	tap_eq(kvm_aspace_read(as, A, &(uint8_t){ 0 }, 1), -EFAULT, "nor a copy");
	tap_eq(protect(as, A, 4 * PG, RW), 0, "all back");
	tap_eq(rd(as, A), 1, "the page was kept");
	tap_eq(wr(as, A, 2), 0, "and can be written");
	tap_eq(protect(as, A, PG, PROT_EXEC), 0, "execute only");
	tap_eq(ex(as, A), 0, "can be executed");
	tap_eq(rd(as, A), 2, "and read, as on x86");
	tap_eq(protect(as, A, PG, PROT_WRITE), 0, "write only");
	tap_eq(rd(as, A), 2, "can be read too");
	tap_eq(ex(as, A), -SIGSEGV, "and no more executed");
	tap_eq(protect(as, A, 9 * PG, PROT_READ), -ENOMEM, "a hole");
	tap_eq(wr(as, A, 3), 0, "nothing was changed by it");
	kvm_aspace_put(as);
}

static void test_fork(void)
{
	struct aspace *as = kaspace_create(&fake_platform), *child, *third;

	anon(as, A, 4 * PG, RW);
	anon(as, A + 8 * PG, 4 * PG, RW);
	anon(as, A + 16 * PG, 4 * PG, RW);
	advise(as, A + 8 * PG, 4 * PG, MADV_DONTFORK);
	advise(as, A + 16 * PG, 4 * PG, MADV_WIPEONFORK);
	for (unsigned i = 0; i < 3; i++)
		wr(as, A + i * 8 * PG, 10);
	child = kaspace_fork(as);
	tap_eq(rd(child, A), 10, "the child sees the parent's page");
	tap_eq(wr(as, A, 11), 0, "the parent writes");
	tap_eq(rd(child, A), 10, "the child does not see it");
	tap_eq(wr(child, A, 12), 0, "the child writes");
	tap_eq(rd(as, A), 11, "the parent does not see it");
	tap_eq(code(child, A + 8 * PG, KFAULT_READ), SEGV_MAPERR, "DONTFORK");
	tap_eq(rd(child, A + 16 * PG), 0, "WIPEONFORK");
	third = kaspace_fork(child);
	kvm_aspace_put(child);
	tap_eq(kvm_aspace_write(third, A, "\x0d", 1), 1, "a copy to the last owner's page");
	tap_eq(rd(third, A), 13, "arrives");
	tap_eq(protect(as, A, PG, PROT_READ), 0, "protect");
	child = kaspace_fork(as);
	tap_eq(protect(as, A, PG, RW), 0, "and back after a fork");
	tap_eq(wr(as, A, 14), 0, "breaks the sharing");
	tap_eq(rd(child, A), 11, "as it must");
	kaspace_clear(third);
	tap_eq(code(third, A, KFAULT_READ), SEGV_MAPERR, "cleared");
	tap_eq(third->regions.n, 0, "of everything");
	kvm_aspace_put(third);
	kvm_aspace_put(child);
	kvm_aspace_put(as);
}

static void test_shared(void)
{
	struct aspace *as = kaspace_create(&fake_platform), *child;

	map(as, A, 4 * PG, RW, ASPACE_SHARED, -1, 0);
	child = kaspace_fork(as);
	tap_eq(wr(child, A + PG, 3), 0, "the child writes first");
	tap_eq(rd(as, A + PG), 3, "the parent sees it");
	tap_eq(advise(as, A, 4 * PG, MADV_DONTNEED), 0, "DONTNEED");
	tap_eq(rd(as, A + PG), 3, "loses nothing that is shared");
	tap_eq(remap(as, A, 0, A + 64 * PG, 2 * PG, 0), 0, "a second time by a remap of nothing");
	tap_eq(rd(as, A + 65 * PG), 3, "is the same memory");
	tap_eq(remap(as, A, 4 * PG, A + 128 * PG, 6 * PG, 0), 0, "moved and longer");
	tap_eq(rd(as, A + 129 * PG), 3, "is still it");
	tap_eq(code(as, A + 132 * PG, KFAULT_READ), BUS_ADRERR, "behind the end of the object: SIGBUS");
	tap_eq(advise(as, A + 129 * PG, PG, MADV_REMOVE), 0, "REMOVE");
	tap_eq(rd(child, A + PG), 0, "empties it for all");
	tap_eq(anon(as, A, PG, RW), 0, "private memory");
	tap_eq(remap(as, A, 0, A + 64 * PG, PG, 0), -EINVAL, "cannot be had twice");
	tap_eq(advise(as, A, PG, MADV_REMOVE), -EINVAL, "nor be removed");
	kvm_aspace_put(child);
	kvm_aspace_put(as);
}

static void test_file(void)
{
	struct aspace *as = kaspace_create(&fake_platform), *child;
	int fd = file_of(4, 0x41);
	uint8_t b = 0;

	tap_eq(map(as, A, 4 * PG, RW, 0, fd, 0), 0, "private");
	tap_eq(map(as, A + 16 * PG, 3 * PG, RW, ASPACE_SHARED, fd, PG), 0, "shared, from the second page on");
	tap_eq(rd(as, A + PG), 0x42, "private sees the file");
	tap_eq(rd(as, A + 16 * PG), 0x42, "shared too");
	tap_eq(wr(as, A + 16 * PG, 0x61), 0, "a shared write");
	tap_ok(pread(fd, &b, 1, (off_t)PG) == 1 && b == 0x61, "reaches the file");
	tap_eq(rd(as, A + PG), 0x61, "and the private mapping that was never written");
	tap_eq(wr(as, A + PG, 0x62), 0, "a private write");
	tap_ok(pread(fd, &b, 1, (off_t)PG) == 1 && b == 0x61, "does not reach the file");
	tap_eq(rd(as, A + PG + 1), 0x42, "the rest of the page was copied");
	tap_eq(pwrite(fd, "z", 1, (off_t)(2 * PG)), 1, "write(2)");
	tap_eq(rd(as, A + 17 * PG), 'z', "is seen");
	child = kaspace_fork(as);
	tap_eq(rd(child, A + PG), 0x62, "the child has the private copy");
	tap_eq(wr(child, A + 16 * PG, 0x63), 0, "and the shared page");
	tap_eq(rd(as, A + 16 * PG), 0x63, "... together with the parent");
	tap_eq(advise(as, A, 4 * PG, MADV_DONTNEED), 0, "DONTNEED");
	tap_eq(rd(as, A + PG), 0x63, "forgets the private copy");
	tap_eq(rd(child, A + PG), 0x62, "of this one only");
	tap_eq(kvm_aspace_write(as, A + 2 * PG, "w", 1), 1, "a copy to a private page");
	tap_eq(rd(as, A + 17 * PG), 'z', "stays private");
	tap_eq(kvm_aspace_write(as, A + 17 * PG, "v", 1), 1, "a copy to a shared page");
	tap_ok(pread(fd, &b, 1, (off_t)(2 * PG)) == 1 && b == 'v', "reaches the file");
	tap_eq(remap(as, A, 4 * PG, A + 32 * PG, 4 * PG, 0), 0, "moved");
	tap_eq(rd(as, A + 34 * PG), 'w', "with its private pages");
	tap_eq(remap(as, A + 32 * PG, 4 * PG, A + 48 * PG, 5 * PG, 0), -ENOMEM, "a piece of a file does not grow");
	close(fd);
	tap_eq(rd(as, A + 35 * PG), 0x44, "the fd is not needed");
	kvm_aspace_put(child);
	kvm_aspace_put(as);
}

static void test_file_end(void)
{
	struct aspace *as = kaspace_create(&fake_platform);
	int fd = file_of(3, 1);
	uint8_t buf[8];

	tap_eq(ftruncate(fd, (off_t)(2 * PG + 10)), 0, "two pages and ten bytes");
	map(as, A, 8 * PG, RW, ASPACE_SHARED, fd, 0);
	map(as, A + 16 * PG, 8 * PG, RW, 0, fd, 0);
	for (unsigned i = 0; i < 2; i++) {
		uaddr_t at = A + i * 16 * PG;

		tap_eq(rd(as, at + 2 * PG + 9), 3, "the last byte");
		tap_eq(rd(as, at + 2 * PG + 10), 0, "zeros behind it");
		tap_eq(code(as, at + 3 * PG, KFAULT_READ), BUS_ADRERR, "SIGBUS behind the page");
		tap_eq(code(as, at + 7 * PG, KFAULT_WRITE), BUS_ADRERR, "for writes too");
		tap_eq(kvm_aspace_read(as, at + 3 * PG - 4, buf, 8), 4, "a copy is short there");
		tap_eq(kvm_aspace_write(as, at + 3 * PG, buf, 8), -EFAULT, "or fails");
	}
	tap_eq(ftruncate(fd, (off_t)PG), 0, "cut");
	for (unsigned i = 0; i < 2; i++) {
		uaddr_t at = A + i * 16 * PG;

		tap_eq(kvm_aspace_read(as, at + PG, buf, 8), -EFAULT, "a copy from where the file was");
		tap_eq(code(as, at + PG, KFAULT_READ), BUS_ADRERR, "and an access");
		tap_eq(rd(as, at), 1, "the rest is there");
	}
	tap_eq(wr(as, A + 16 * PG, 5), 0, "a private copy");
	tap_eq(ftruncate(fd, 0), 0, "of what is cut then");
	tap_eq(rd(as, A + 16 * PG), 5, "stays until we are told");
	kvm_aspace_cut(as, A + 16 * PG, 8 * PG);
	tap_eq(code(as, A + 16 * PG, KFAULT_READ), BUS_ADRERR, "and is gone");
	tap_eq(ftruncate(fd, (off_t)(4 * PG)), 0, "longer again");
	tap_eq(rd(as, A + 3 * PG), 0, "shared sees it");
	tap_eq(rd(as, A + 19 * PG), 0, "private too");
	close(fd);
	kvm_aspace_put(as);
}

static void test_rights_of_files(void)
{
	struct aspace *as = kaspace_create(&fake_platform);
	int fd = file_of(2, 1), ro, sealed = file_of(2, 1);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	tap_ok(ro >= 0, "a read-only fd");
	tap_eq(map(as, A, PG, RW, ASPACE_SHARED, ro, 0), -EACCES, "no shared writing by it");
	tap_eq(map(as, A, 2 * PG, PROT_READ, ASPACE_SHARED, ro, 0), 0, "shared reading");
	tap_eq(protect(as, A, 2 * PG, RW), -EACCES, "stays reading");
	tap_eq(rd(as, A), 1, "and works");
	tap_eq(advise(as, A, PG, MADV_REMOVE), -EACCES, "no holes either");
	tap_eq(map(as, A + 4 * PG, 2 * PG, RW, 0, ro, 0), 0, "private writing");
	tap_eq(wr(as, A + 4 * PG, 9), 0, "works");
	tap_eq(map(as, A + 8 * PG, 2 * PG, RX, 0, ro, 0), 0, "code");
	tap_eq(ex(as, A + 8 * PG), 0, "runs");
	tap_eq(map(as, A + 16 * PG, 2 * PG, RW, 0, sealed, 0), 0, "a private mapping");
	tap_eq(fcntl(sealed, F_ADD_SEALS, F_SEAL_WRITE), 0, "does not hinder sealing");
	tap_eq(map(as, A + 20 * PG, 2 * PG, RW, ASPACE_SHARED, sealed, 0), -EPERM, "sealed against shared writing");
	tap_eq(map(as, A + 20 * PG, 2 * PG, PROT_READ, ASPACE_SHARED, sealed, 0), 0, "not against reading");
	tap_eq(map(as, A, PG, PROT_READ, 0, 1 << 20, 0), -EBADF, "no fd");
	tap_eq(rd(as, A), 1, "what was there stays");
	tap_eq(map(as, A, PG, PROT_READ, 0, fd, 1ull << 63), -EOVERFLOW, "an offset that is none");
	close(ro);
	close(fd);
	close(sealed);
	kvm_aspace_put(as);
}

/* A file that the host has mounted noexec. */
static void test_noexec(void)
{
	struct aspace *as = kaspace_create(&fake_platform);
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC),
	    shm = open("/dev/shm", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	void *native = shm < 0 ? MAP_FAILED : mmap(NULL, PG, RX, MAP_PRIVATE, shm, 0);
	bool may = native != MAP_FAILED;

	tap_ok(map(as, A, PG, RX, 0, fd, 0) < 0, "/proc is");
	if (shm >= 0 && ftruncate(shm, (off_t)PG) == 0) {
		tap_eq(map(as, A, PG, RX, 0, shm, 0), may ? 0 : -EPERM, "as the host has it");
		tap_eq(map(as, A, PG, PROT_READ, 0, shm, 0), 0, "reading is allowed");
		tap_eq(protect(as, A, PG, RX), may ? 0 : -EACCES, "and stays reading");
	}
	if (may)
		munmap(native, PG);
	close(shm);
	close(fd);
	kvm_aspace_put(as);
}

/* Two programs of one file. */
static void test_same_file(void)
{
	struct aspace *as = kaspace_create(&fake_platform), *other = kaspace_create(&fake_platform);
	int fd = open(".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600),
	    twin = open(".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	struct statfs fs = { .f_type = 0 };
	uint64_t files, once;

	if (fd < 0 || twin < 0 || ftruncate(fd, (off_t)(4 * PG)) || ftruncate(twin, (off_t)(4 * PG)))
		goto out;
	tap_eq(pwrite(fd, "f", 1, (off_t)PG), 1, "a file");
	tap_eq(pwrite(twin, "t", 1, (off_t)PG), 1, "and another");
	files = fake_platform.mem->n_files;
	map(as, A, 3 * PG, RW, 0, fd, PG);
	once = fake_platform.mem->n_files - files;
	map(other, A, 3 * PG, RW, 0, fd, PG);
	fstatfs(fd, &fs);
	tap_eq(fake_platform.mem->n_files, files + (fs.f_type == EXT4_SUPER_MAGIC ? 1 : 2) * once,
	       "mapped twice, it is in the window once where inode numbers can be trusted");
	tap_eq(rd(other, A), 'f', "by the other");
	tap_eq(wr(as, A, 'x'), 0, "what one writes");
	tap_eq(rd(other, A), 'f', "the other does not see");
	map(other, A, 3 * PG, RW, 0, twin, PG);
	tap_eq(rd(other, A), 't', "another file is another");
	map(other, A, 3 * PG, RW, 0, fd, 0);
	tap_eq(rd(other, A + PG), 'f', "another piece too");
	map(as, A, PG, RW, 0, -1, 0);
	tap_eq(rd(other, A + PG), 'f', "each outlives the other");
out:
	close(fd);
	close(twin);
	kvm_aspace_put(as);
	kvm_aspace_put(other);
}

/* A file of terabytes costs what is touched of it. */
static void test_large_file(void)
{
	struct aspace *as = kaspace_create(&fake_platform), *child;
	int fd = memfd_create("large", 0);
	uint64_t len = 1ull << 40;

	tap_eq(ftruncate(fd, (off_t)len), 0, "a sparse file");
	tap_eq(pwrite(fd, "e", 1, (off_t)(len - 1)), 1, "with a byte at its end");
	tap_eq(map(as, A, len, RW, ASPACE_SHARED, fd, 0), 0, "mapped whole");
	tap_eq(fake_platform.mem->n_files, 1, "a mapping of ours, but no room in the window");
	tap_eq(rd(as, A + len - 1), 'e', "the end");
	tap_eq(wr(as, A + len / 2, 'm'), 0, "the middle");
	child = kaspace_fork(as);
	tap_eq(unmap(as, A, len / 2), 0, "half of it goes");
	tap_eq(rd(child, A + len / 2), 'm', "the child has it");
	tap_eq(fake_platform.mem->n_files, 3, "two pieces of it are in the window");
	tap_eq(map(as, A, len, PROT_READ, 0, fd, 0), 0, "private");
	tap_eq(rd(as, A + len / 2), 'm', "sees the same");
	tap_eq(map(as, A, 63ull << 40, PROT_READ, 0, fd, 0), -ENOMEM, "but not without end");
	fake_platform.mem->n_files += KMEM_FILES_MAX;
	tap_eq(map(as, A, len, PROT_READ, 0, fd, 0), -ENOMEM, "nor in any number: the host counts them too");
	fake_platform.mem->n_files -= KMEM_FILES_MAX;
	close(fd);
	kvm_aspace_put(child);
	kvm_aspace_put(as);
}

static void test_remap(void)
{
	struct aspace *as = kaspace_create(&fake_platform);
	uint64_t used;

	anon(as, A, 600 * PG, RW);
	for (unsigned i = 0; i < 600; i += 50)
		wr(as, A + i * PG, (uint8_t)(i / 50 + 1));
	anon(as, A + 0x40000000, PG, RW);
	tap_eq(remap(as, A, 600 * PG, A + 0x40000000 - 5 * PG, 700 * PG, 0), 0, "move, longer, over another mapping");
	for (unsigned i = 0; i < 600; i += 50)
		tap_eq(rd(as, A + 0x40000000 - 5 * PG + i * PG), i / 50 + 1, "its pages came along");
	tap_eq(code(as, A, KFAULT_READ), SEGV_MAPERR, "the old place is empty");
	tap_eq(rd(as, A + 0x40000000 + 690 * PG), 0, "the new end is zero");
	tap_eq(remap(as, A + 0x40000000 - 5 * PG, 700 * PG, A, 700 * PG, ASPACE_DONTUNMAP), 0, "and back, DONTUNMAP");
	tap_eq(rd(as, A + 50 * PG), 2, "moved");
	tap_eq(rd(as, A + 0x40000000 + 45 * PG), 0, "the old place is mapped, and zero");
	tap_eq(remap(as, A, 700 * PG, A, 800 * PG, 0), 0, "longer in place");
	tap_eq(wr(as, A + 799 * PG, 1), 0, "to the end");
	tap_eq(remap(as, A + 0x40000000 - 5 * PG, PG, A + 0x40000000 - 5 * PG, 701 * PG, 0), -ENOMEM,
	       "not from the middle");
	tap_eq(remap(as, A, 2 * PG, A + PG, 2 * PG, 0), -EINVAL, "overlapping");
	tap_eq(remap(as, A - PG, 2 * PG, A + (1ull << 40), 2 * PG, 0), -EFAULT, "a hole");
	protect(as, A + 100 * PG, 10 * PG, PROT_READ);
	tap_eq(remap(as, A + 90 * PG, 30 * PG, A + (1ull << 41), 30 * PG, 0), 0, "several pieces at once");
	tap_eq(rd(as, A + (1ull << 41) + 10 * PG), 3, "moved");
	tap_eq(wr(as, A + (1ull << 41) + 10 * PG, 3), -SIGSEGV, "with their rights");
	used = fake_platform.mem->used;
	unmap(as, A + (1ull << 41), 30 * PG);
	tap_ok(fake_platform.mem->used <= used - 3, "the tables go with the last mapping");
	kvm_aspace_put(as);
}

static void test_refused(void)
{
	static const struct {
		uaddr_t addr;
		uint64_t len;
	} bad[] = {
		{ PLATFORM_RESERVED_START, PG },
		{ PLATFORM_RESERVED_START - PG, 2 * PG },
		{ PLATFORM_RESERVED_END - PG, 2 * PG },
		{ 0, GUEST_TASK_SIZE },
		{ GUEST_TASK_SIZE, PG },
		{ GUEST_TASK_SIZE - PG, 2 * PG },
		{ UINT64_MAX - PG + 1, 2 * PG },
		{ A + 1, PG },
		{ A, PG + 1 },
		{ A, 0 },
	};
	struct aspace *as = kaspace_create(&fake_platform);
	struct fake_ctx ctx = { .as = as };
	const struct aspace_op ops[] = {
		{ .op = ASPACE_MAP, .addr = A, .len = PG, .prot = RW, .fd = -1 },
		{ .op = ASPACE_PROTECT, .addr = A, .len = 2 * PG, .prot = RW },
		{ .op = ASPACE_UNMAP, .addr = A, .len = PG },
	};
	unsigned done;

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		tap_eq(anon(as, bad[i].addr, bad[i].len, RW), -EINVAL, "map of a bad range %u", i);
		tap_eq(unmap(as, bad[i].addr, bad[i].len), -EINVAL, "unmap");
		tap_eq(protect(as, bad[i].addr, bad[i].len, RW), -EINVAL, "protect");
		tap_eq(advise(as, bad[i].addr, bad[i].len, MADV_DONTNEED), -EINVAL, "advise");
		tap_eq(remap(as, A, PG, bad[i].addr, bad[i].len, 0), -EINVAL, "remap to it");
		if (bad[i].len)
			tap_eq(remap(as, bad[i].addr, bad[i].len, A, PG, 0), -EINVAL, "remap from it");
	}
	tap_eq(anon(as, A, PG, 8), -EINVAL, "a bad protection");
	tap_eq(anon(as, GUEST_TASK_SIZE - PG, PG, RW), 0, "the last page");
	tap_eq(wr(as, GUEST_TASK_SIZE - 1, 1), 0, "to its last byte");
	tap_eq(code(as, GUEST_TASK_SIZE, KFAULT_READ), SEGV_MAPERR, "the page behind");
	tap_eq(anon(as, 0, PG, RW), 0, "the first page, should the sentry allow it");
	tap_eq(rd(as, 0), 0, "works");
	tap_eq(kvm_aspace_apply(&ctx.base, ops, 3, false, &done), -ENOMEM, "the second of three fails");
	tap_eq(done, 1, "one was done");
	tap_eq(rd(as, A), 0, "and stays");
	kvm_aspace_put(as);
}

static void test_sparse(void)
{
	struct aspace *as = kaspace_create(&fake_platform);
	uint64_t used;

	tap_eq(anon(as, A, 64ull << 40, PROT_NONE), 0, "64 TiB of nothing");
	tap_eq(anon(as, A + (10ull << 40), 16ull << 40, RW), 0, "16 TiB of memory in it");
	tap_eq(map(as, A + (30ull << 40), 16ull << 40, RW, ASPACE_SHARED, -1, 0), 0, "16 TiB of shared memory");
	used = fake_platform.mem->used;
	for (unsigned i = 0; i < 15; i++) {
		tap_eq(wr(as, A + ((10ull + i) << 40), 1), 0, "a byte here");
		tap_eq(wr(as, A + ((30ull + i) << 40), 1), 0, "and there");
	}
	tap_eq(fake_platform.mem->used, used + 15 * (16 + 3) * 2, "costs groups of pages and their tables");
	tap_eq(unmap(as, A, 64ull << 40), 0, "all goes");
	tap_eq(fake_platform.mem->used, used, "and costs nothing more");
	kvm_aspace_put(as);
}

static void test_populate(void)
{
	struct aspace *as = kaspace_create(&fake_platform);
	uint64_t used = fake_platform.mem->used;
	int fd = file_of(2, 1);

	map(as, A, 100 * PG, RW, ASPACE_LOCKED, -1, 0);
	tap_ok(fake_platform.mem->used >= used + 100, "MAP_POPULATE");
	anon(as, A, 100 * PG, PROT_READ);
	tap_eq(advise(as, A, 100 * PG, MADV_POPULATE_WRITE), -EINVAL, "no right to write");
	tap_eq(advise(as, A, 100 * PG, MADV_POPULATE_READ), 0, "to read");
	tap_eq(advise(as, A, 101 * PG, MADV_POPULATE_READ), -ENOMEM, "a hole");
	map(as, A, 3 * PG, RW, ASPACE_SHARED, fd, 0);
	tap_eq(advise(as, A, 2 * PG, MADV_POPULATE_WRITE), 0, "a file");
	tap_eq(advise(as, A, 3 * PG, MADV_POPULATE_READ), -EFAULT, "behind its end");
	tap_eq(advise(as, A, PG, MADV_HUGEPAGE), 0, "hints are taken");
	close(fd);
	kvm_aspace_put(as);
}

static void test_vdso(void)
{
	const uaddr_t at = PLATFORM_RESERVED_START + 16 * PG;
	gpa_t pages[3];
	struct aspace *as, *child;

	for (unsigned i = 0; i < 3; i++) {
		pages[i] = kpage_alloc(&fake_platform, KPAGE_ZERO);
		*(uint8_t *)kpage_ptr(&fake_platform, pages[i]) = (uint8_t)(i + 1);
	}
	tap_eq(kaspace_set_vdso(&fake_platform, at, pages, 1, 3), 0, "a vDSO");
	as = kaspace_create(&fake_platform);
	tap_eq(rd(as, at), 1, "its data");
	tap_eq(ex(as, at), -SIGSEGV, "are not code");
	tap_eq(ex(as, at + PG), 0, "its code is");
	tap_eq(rd(as, at + 2 * PG), 3, "to its end");
	tap_eq(wr(as, at, 1), -SIGSEGV, "not to be written");
	tap_eq(kvm_aspace_write(as, at, "x", 1), -EFAULT, "by nobody");
	tap_eq(unmap(as, at, PG), -EINVAL, "nor unmapped");
	*(uint8_t *)kpage_ptr(&fake_platform, pages[0]) = 77;
	tap_eq(rd(as, at), 77, "we can change it");
	child = kaspace_fork(as);
	kaspace_clear(child);
	tap_eq(rd(child, at + 2 * PG), 3, "it stays over fork and exec");
	kvm_aspace_put(child);
	kvm_aspace_put(as);
	kobj_put(fake_platform.mem->vdso);
	fake_platform.mem->vdso = NULL;
}

/* With little memory everything fails in order, and nothing is lost. */
static void test_exhaustion(void)
{
	struct kmem *m = fake_platform.mem;
	struct aspace *as = kaspace_create(&fake_platform), *child;
	uint64_t limit = m->limit;
	struct trap trap;
	unsigned n = 0;
	uint8_t b = 1;

	anon(as, A, 4096 * PG, RW);
	wr(as, A, 9);
	m->limit = m->used + 100;
	while (n < 4096 && !fake_access(0, as, A + n * PG, KFAULT_WRITE, &b, &trap))
		n++;
	tap_ok(n >= 64 && n < 4096, "memory runs out");
	tap_eq(trap.fault.signo, SIGKILL, "... which is told as a SIGKILL");
	tap_eq(kvm_aspace_write(as, A + 4000 * PG, &b, 1), -EFAULT, "copies fail");
	tap_eq(rd(as, A + 511 * PG), 0, "reads of zeros go on where there is a table");
	child = kaspace_fork(as);
	tap_ok(!child, "no fork");
	tap_eq(wr(as, A, 5), 0, "the parent can still write its own");
	tap_eq(anon(as, A + (1ull << 40), PG, RW), 0, "mapping costs nothing");
	tap_eq(wr(as, A + (1ull << 40), 1), -SIGKILL, "touching does");
	tap_eq(remap(as, A, 4096 * PG, A + (2ull << 40), 4096 * PG, 0), -ENOMEM, "no tables for a move");
	tap_eq(rd(as, A), 5, "which leaves all where it was");
	m->limit = limit;
	tap_eq(wr(as, A + 4000 * PG, 1), 0, "more memory: it goes on");
	kvm_aspace_put(as);
}

static void test_giving_back(void)
{
	struct kmem *m = fake_platform.mem;
	struct aspace *as = kaspace_create(&fake_platform);
	uint32_t blocks;

	anon(as, A, 64 * MIB, RW);
	for (uint64_t o = 0; o < 64 * MIB; o += PG)
		wr(as, A + o, 1);
	blocks = m->used_blocks;
	unmap(as, A, 64 * MIB);
	tap_ok(m->dirty_free <= KMEM_TRIM_MIN + m->used / 16, "free memory goes back to the host (%llu pages kept)",
	       (unsigned long long)m->dirty_free);
	anon(as, A, 64 * MIB, RW);
	for (uint64_t o = 0; o < 64 * MIB; o += 64 * PG)
		tap_n += rd(as, A + o) != 0;
	for (uint64_t o = 0; o < 64 * MIB; o += PG) {
		uint8_t b = 0xff;
		struct trap trap;

		wr(as, A + o + 8, 2);
		if (fake_access(0, as, A + o, KFAULT_READ, &b, &trap) || b)
			fake_broken("a page was not zeroed", o);
	}
	tap_ok(m->used_blocks <= blocks + 1, "and is used again");
	tap_ok(!fake_platform.shadow || fake.slots > 1, "memslots were added in steps (%u)", fake.slots);
	kvm_aspace_put(as);
}

static void test_memslots_refused(void)
{
	struct aspace *as = kaspace_create(&fake_platform);
	uint64_t n = 0;
	int r = 0;

	fake.refuse_slots = fake.slots;
	anon(as, A, 4ull << 30, RW);
	if (fake_platform.shadow) {
		for (; n < 1ull << 20 && r == 0; n++)
			r = wr(as, A + n * PG, 1);
		tap_eq(r, -SIGKILL, "no more memslots: as no more memory");
	}
	fake.refuse_slots = 0;
	tap_eq(wr(as, A + n * PG, 1), 0, "goes on when there are");
	kvm_aspace_put(as);
}

/* The loop of a processor whose stale copy makes it fault again and again is broken. */
static void test_stale(void)
{
	struct aspace *as = kaspace_create(&fake_platform);
	unsigned before;
	struct trap trap;

	anon(as, A, PG, RW);
	wr(as, A, 1);
	before = fake.zaps + fake.shootdowns;
	for (unsigned i = 0; i < 3; i++)
		tap_eq(kaspace_fault(as, A, 7, &trap), 0, "a fault without a reason");
	tap_eq(fake.zaps + fake.shootdowns, before + 1, "the third time the host is made to forget");
	kvm_aspace_put(as);
}

static void test_system_pages(void)
{
	struct platform *p = &fake_platform;
	gpa_t text = kpage_alloc(p, KPAGE_SYSTEM | KPAGE_ZERO);
	struct aspace *as = kaspace_create(p);
	const uint64_t *kernel = kpage_ptr(p, kpt_kernel_root(p)), *root = kpage_ptr(p, kaspace_root(as));
	bool same = true, user = false;

	tap_eq(kpt_map_system(p, KVM_MON_TEXT, text, 0), 0, "a page of the monitor");
	for (unsigned i = 256; i < 512; i++) {
		same &= kernel[i] == root[i];
		user |= kernel[i] & PTE_U;
	}
	tap_ok(same, "is in every address space");
	tap_ok(!user, "and not the guest's");
	tap_eq(!kernel[256], !p->shadow, "the direct map exists where page tables are shadowed");
	tap_eq(code(as, KVM_MON_TEXT, KFAULT_READ), SEGV_MAPERR, "a fault there is the guest's");
	kvm_aspace_put(as);
	kpage_put(p, text);
}

struct taker {
	uint32_t *word;
	unsigned taken;
	bool stop;
};

/* A guest thread that takes a lock whenever it is free. */
static void *take_main(void *arg)
{
	struct taker *t = arg;

	while (!__atomic_load_n(&t->stop, __ATOMIC_SEQ_CST)) {
		uint32_t is_free = 0;

		if (__atomic_compare_exchange_n(t->word, &is_free, 9, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			t->taken++;
	}
	return NULL;
}

/* A word is stored once: what the guest makes of it then stays. */
static void test_word(void)
{
	struct aspace *as = kaspace_create(&fake_platform);
	const uint32_t busy = 7, is_free = 0;
	struct taker t = { .stop = false };
	time_t end = time(NULL) + 2;
	unsigned freed = 0;
	gpa_t table;
	pthread_t th;
	int fd = file_of(1, 1);

	anon(as, A, PG, RW);
	tap_eq(kvm_aspace_write(as, A, &busy, sizeof(busy)), sizeof(busy), "a lock is held");
	t.word = kpage_ptr(&fake_platform, pte_page(pte_load(kpt_find(as, A, &table))));
	pthread_create(&th, NULL, take_main, &t);
	for (; time(NULL) <= end; freed++) {
		if (kvm_aspace_write(as, A, &busy, 4) != 4 || kvm_aspace_write(as, A, &is_free, 4) != 4)
			break;
		for (unsigned i = 0; __atomic_load_n(t.word, __ATOMIC_SEQ_CST) != 9; i++)
			if (i > 1000)
				sched_yield();
	}
	__atomic_store_n(&t.stop, true, __ATOMIC_SEQ_CST);
	pthread_join(th, NULL);
	tap_eq(t.taken, freed, "taken as often as it was free");
	map(as, A + PG, PG, RW, ASPACE_SHARED, fd, 0);
	tap_ok(kvm_aspace_write(as, A + PG + 8, &busy, 4) == 4 && fake.holds == 1, "in a file nobody looks meanwhile");
	tap_ok(kvm_aspace_write(as, A + PG + 9, &busy, 4) == 4 && fake.holds == 1, "at what is no word anybody may");
	close(fd);
	kvm_aspace_put(as);
}

/* A move for which there are no tables leaves none behind. */
static void test_failed_move(void)
{
	struct kmem *m = fake_platform.mem;
	struct aspace *as = kaspace_create(&fake_platform);
	uint64_t limit = m->limit;
	uaddr_t far = 0x5ull << 39;

	anon(as, A, 512 * MIB, RW);
	for (uaddr_t at = A; at < A + 512 * MIB; at += 16 * MIB)
		tap_eq(wr(as, at, 1), 0, "pages in many tables");
	anon(as, far + (1ull << 30), PG, RW);
	tap_eq(wr(as, far + (1ull << 30), 1), 0, "a neighbour of the target");
	m->limit = m->used + 4;
	tap_eq(remap(as, A, 512 * MIB, far, 512 * MIB, 0), -ENOMEM, "no memory for the tables at the target");
	m->limit = limit;
	tap_eq(rd(as, A + 496 * MIB), 1, "what was to move is still there");
	tap_eq(code(as, far, KFAULT_READ), SEGV_MAPERR, "and not there");
	unmap(as, far + (1ull << 30), PG);
	unmap(as, A, 512 * MIB);
	kvm_aspace_put(as);
}

struct starving {
	struct aspace *as[3];
	unsigned failed, seed;
};

static unsigned pick(struct starving *s, unsigned n)
{
	return (unsigned)rand_r(&s->seed) % n;
}

/* One op, whatever it gives: in an address space of three small areas far apart. */
static void starving_op(struct starving *s, struct aspace *as, int fd)
{
	uaddr_t at = (pick(s, 3) * 0x3ffull << 30) + A + pick(s, 4) * 2 * MIB - pick(s, 12) * PG;
	uaddr_t to = (pick(s, 3) * 0x3ffull << 30) + A + 64 * MIB + pick(s, 1100) * PG;
	uint64_t len = (1 + pick(s, 700)) * PG;
	unsigned what = pick(s, 12);
	uint8_t buf[2 * PAGE_SIZE] = { 1 };
	int r = 0;

	if (what < 2)
		r = map(as, at, len, RW, pick(s, 2) ? ASPACE_LOCKED : 0, -1, 0);
	else if (what == 2)
		r = map(as, at, len, RW, ASPACE_SHARED, pick(s, 2) ? fd : -1, 0);
	else if (what == 3)
		r = map(as, at, len, RW, 0, fd, 0);
	else if (what == 4)
		r = protect(as, at, len, pick(s, 2) ? PROT_READ : RW);
	else if (what == 5)
		r = unmap(as, at, len);
	else if (what == 6)
		r = remap(as, at, len, to, len, 0);
	else if (what == 7)
		r = advise(as, at, len, pick(s, 2) ? MADV_DONTNEED : MADV_POPULATE_WRITE);
	else
		for (unsigned i = 0; i < 16; i++, at += 37 * PG)
			r |= (pick(s, 2) ? wr(as, at, 7) : (int)kvm_aspace_write(as, at, buf, sizeof(buf))) == -SIGKILL
			             ? -ENOMEM
			             : 0;
	s->failed += r == -ENOMEM;
}

/* Each of the tables that have a bound is about to be full. */
static void test_starving(void)
{
	struct starving s = { .seed = 5 };
	struct kmem *m = fake_platform.mem;
	uint64_t limit = m->limit;
	int fd = file_of(4, 1);

	for (unsigned step = 0; step < 6000; step++) {
		unsigned i = pick(&s, ARRAY_SIZE(s.as)), from = pick(&s, ARRAY_SIZE(s.as));
		uint64_t regions = 0, chunks = 0;

		if (pick(&s, 4))
			m->limit = m->used + pick(&s, 12);
		if (!pick(&s, 8) && m->n_regions < KMEM_REGIONS_MAX - 4)
			regions = KMEM_REGIONS_MAX - m->n_regions - pick(&s, 4);
		if (!pick(&s, 8))
			chunks = (4u << 20) - m->n_chunks - pick(&s, 3);
		m->n_regions += regions;
		m->n_chunks += chunks;
		if (!s.as[i]) {
			s.as[i] = s.as[from] ? kaspace_fork(s.as[from]) : kaspace_create(&fake_platform);
			s.failed += !s.as[i];
		} else if (pick(&s, 20)) {
			starving_op(&s, s.as[i], fd);
		} else if (pick(&s, 2)) {
			kaspace_clear(s.as[i]);
		} else {
			kvm_aspace_put(s.as[i]);
			s.as[i] = NULL;
		}
		m->n_regions -= regions;
		m->n_chunks -= chunks;
		m->limit = limit;
		fake_check();
	}
	tap_ok(s.failed > 300, "%u ops had no memory", s.failed);
	for (unsigned i = 0; i < ARRAY_SIZE(s.as); i++)
		kvm_aspace_put(s.as[i]);
	close(fd);
}

static const struct {
	const char *name;
	void (*fn)(void);
	uint64_t stays; /* pages that are meant to stay in use: tables of the upper half */
} tests[] = {
	{ "anonymous", test_anonymous, 0 },
	{ "protect", test_protect, 0 },
	{ "fork", test_fork, 0 },
	{ "shared", test_shared, 0 },
	{ "file", test_file, 0 },
	{ "file_end", test_file_end, 0 },
	{ "rights", test_rights_of_files, 0 },
	{ "noexec", test_noexec, 0 },
	{ "same_file", test_same_file, 0 },
	{ "large_file", test_large_file, 0 },
	{ "remap", test_remap, 0 },
	{ "refused", test_refused, 0 },
	{ "sparse", test_sparse, 0 },
	{ "populate", test_populate, 0 },
	{ "vdso", test_vdso, 0 },
	{ "exhaustion", test_exhaustion, 0 },
	{ "giving_back", test_giving_back, 0 },
	{ "memslots", test_memslots_refused, 0 },
	{ "stale", test_stale, 0 },
	{ "word", test_word, 0 },
	{ "failed_move", test_failed_move, 0 },
	{ "starving", test_starving, 0 },
	{ "system", test_system_pages, 2 },
};

int main(int argc, char **argv)
{
	for (unsigned shadow = 0; shadow < 2; shadow++)
		for (unsigned i = 0; i < ARRAY_SIZE(tests); i++) {
			if (argc > 1 && strcmp(argv[1], tests[i].name))
				continue;
			printf("# %s%s\n", tests[i].name, shadow ? ", shadowed" : "");
			fake_start(shadow, 1ull << 30);
			tests[i].fn();
			fake_check();
			fake_platform.mem->used -= tests[i].stays;
			fake_end();
		}
	return tap_done();
}
