/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random changes of forked address spaces, done to the kvm platform's memory and to processes of Linux: what programs
 * and copies see must be the same after each. KVM_MEM_SEED and KVM_MEM_STEPS repeat or lengthen a run.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/tap.h"
#include "tests/unit/kvm_mem_fakes.h"
#include "tests/unit/kvm_mem_oracle.h"

#define RW (PROT_READ | PROT_WRITE)
#define FILES 2u /* the second changes its length */
#define FILE_PAGES 24u

enum kind { NONE, ANON, SHM, FILE_PRIVATE, FILE_SHARED };

/* What the test must know of a page to give only ops that the sentry would let through. */
struct page {
	enum kind kind;
	int prot;
	bool dontfork, wipe;
	unsigned file, at; /* FILE_*: which, and the page of it */
};

struct space {
	struct aspace *as; /* NULL: unused */
	struct page page[ORACLE_PAGES];
};

static struct space space[ORACLE_MAX];
static int file[FILES][2]; /* [0] the platform's, [1] Linux's */
static unsigned steps, forks, copies, grown, cut;
static bool trace; /* KVM_MEM_TRACE */

static unsigned rnd(unsigned n)
{
	return (unsigned)random() % n;
}

static uaddr_t addr_of(unsigned page)
{
	return ORACLE_BASE + page * PAGE_SIZE;
}

static int random_prot(void)
{
	static const int prots[] = {
		PROT_NONE, PROT_READ, RW, RW, RW, PROT_READ | PROT_EXEC, RW | PROT_EXEC, PROT_WRITE
	};

	return prots[rnd(ARRAY_SIZE(prots))];
}

static struct space *random_space(void)
{
	unsigned i;

	do
		i = rnd(ORACLE_MAX);
	while (!space[i].as);
	return &space[i];
}

static unsigned idx(const struct space *s)
{
	return (unsigned)(s - space);
}

static bool all_mapped(const struct space *s, unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++)
		if (s->page[i].kind == NONE)
			return false;
	return true;
}

/* Both sides. The op's fd is an index of file[]. */
static int both(struct space *s, struct aspace_op op)
{
	unsigned f = (unsigned)op.fd;
	bool has_file = op.op == ASPACE_MAP && op.fd >= 0;
	int want, got;

	if (trace)
		printf("# %u: space %u op %d %#llx+%llu prot %d flags %u fd %d off %llu advice %d\n", steps, idx(s),
		       op.op, (unsigned long long)op.addr, (unsigned long long)(op.len / PAGE_SIZE), op.prot, op.flags,
		       op.fd, (unsigned long long)(op.offset / PAGE_SIZE), op.advice);
	op.fd = has_file ? file[f][1] : -1;
	want = oracle_apply(idx(s), &op);
	op.fd = has_file ? file[f][0] : -1;
	got = fake_apply(s->as, &op);
	if (got != want)
		fake_broken("result", (uint64_t)(op.op * 1000000 + op.advice * 10000 - got * 100 - want));
	return want;
}

static void do_map(struct space *s, unsigned first, unsigned n)
{
	struct aspace_op op = { .op = ASPACE_MAP,
		                .addr = addr_of(first),
		                .len = n * PAGE_SIZE,
		                .prot = random_prot(),
		                .fd = -1,
		                .flags = rnd(4) ? 0 : ASPACE_LOCKED };
	enum kind kind = ANON + rnd(4);

	if (kind == SHM || kind == FILE_SHARED)
		op.flags |= ASPACE_SHARED;
	if (kind == FILE_PRIVATE || kind == FILE_SHARED) {
		op.fd = (int)rnd(FILES);
		op.offset = rnd(FILE_PAGES) * PAGE_SIZE;
	}
	if (both(s, op) < 0)
		return;
	for (unsigned i = first; i < first + n; i++)
		s->page[i] = (struct page){ .kind = kind,
			                    .prot = op.prot,
			                    .file = (unsigned)op.fd,
			                    .at = (unsigned)(op.offset >> PAGE_SHIFT) + i - first };
}

static void do_unmap(struct space *s, unsigned first, unsigned n)
{
	both(s, (struct aspace_op){ .op = ASPACE_UNMAP, .addr = addr_of(first), .len = n * PAGE_SIZE });
	memset(&s->page[first], 0, n * sizeof(s->page[0]));
}

static void do_protect(struct space *s, unsigned first, unsigned n)
{
	int prot = random_prot();

	if (!all_mapped(s, first, n))
		return;
	both(s, (struct aspace_op){ .op = ASPACE_PROTECT, .addr = addr_of(first), .len = n * PAGE_SIZE, .prot = prot });
	for (unsigned i = first; i < first + n; i++)
		s->page[i].prot = prot;
}

static bool advice_fits(const struct page *p, int advice)
{
	if (p->kind == NONE)
		return false;
	if (advice == MADV_REMOVE)
		return (p->kind == SHM || p->kind == FILE_SHARED) && (p->prot & PROT_WRITE);
	return (advice != MADV_WIPEONFORK && advice != MADV_FREE) || p->kind == ANON;
}

static void do_advise(struct space *s, unsigned first, unsigned n)
{
	static const int advices[] = { MADV_DONTNEED,   MADV_DONTNEED,   MADV_DONTFORK,      MADV_DOFORK,
		                       MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_POPULATE_READ, MADV_POPULATE_WRITE,
		                       MADV_REMOVE,     MADV_REMOVE };
	int advice = advices[rnd(ARRAY_SIZE(advices))];

	for (unsigned i = first; i < first + n; i++)
		if (!advice_fits(&s->page[i], advice))
			return;
	both(s,
	     (struct aspace_op){ .op = ASPACE_ADVISE, .addr = addr_of(first), .len = n * PAGE_SIZE, .advice = advice });
	for (unsigned i = first; i < first + n; i++) {
		struct page *p = &s->page[i];

		p->dontfork = advice == MADV_DONTFORK || (p->dontfork && advice != MADV_DOFORK);
		p->wipe = advice == MADV_WIPEONFORK || (p->wipe && advice != MADV_KEEPONFORK);
	}
}

/* Makes the mapping longer where it is, when Linux agrees. */
static void do_grow(struct space *s, unsigned first)
{
	unsigned more = 1 + rnd(4), n = 1 + rnd(3);
	struct aspace_op op = { .op = ASPACE_REMAP, .fd = -1 };
	struct page *p;

	/* There must be room behind it. */
	while (first + n < ORACLE_PAGES && s->page[first + n].kind != NONE)
		first++;
	p = &s->page[first];
	if (first + n + more > ORACLE_PAGES || !all_mapped(s, first, n) || p->kind >= FILE_PRIVATE)
		return;
	op.addr = op.new_addr = addr_of(first);
	op.len = n * PAGE_SIZE;
	op.new_len = (n + more) * PAGE_SIZE;
	if (oracle_apply(idx(s), &op) < 0)
		return;
	if (fake_apply(s->as, &op) < 0)
		fake_broken("grow", op.addr);
	for (unsigned i = n; i < n + more; i++)
		p[i] = p[n - 1];
	grown++;
}

/* Moves what Linux agrees to move: it wants one mapping, of which only it knows the borders. */
static void do_remap(struct space *s, unsigned first, unsigned n)
{
	unsigned new_n = n + (rnd(2) ? 0 : rnd(8)), to = rnd(ORACLE_PAGES - new_n + 1);
	struct page *p = &s->page[first], moved[ORACLE_PAGES];
	bool is_file = p->kind == FILE_PRIVATE || p->kind == FILE_SHARED, again = p->kind == SHM && !rnd(4);
	struct aspace_op op = { .op = ASPACE_REMAP, .fd = -1 };

	if (is_file)
		new_n = n;
	if (!all_mapped(s, first, n) || (to < first + n && first < to + new_n))
		return;
	op.addr = addr_of(first);
	op.len = again ? 0 : n * PAGE_SIZE;
	op.new_addr = addr_of(to);
	op.new_len = new_n * PAGE_SIZE;
	if (new_n == n && !again && p->kind == ANON && !rnd(3))
		op.flags = ASPACE_DONTUNMAP;
	if (trace)
		printf("# %u: space %u remap %#llx+%llu to %#llx+%llu flags %u\n", steps, idx(s),
		       (unsigned long long)op.addr, (unsigned long long)(op.len / PAGE_SIZE),
		       (unsigned long long)op.new_addr, (unsigned long long)(op.new_len / PAGE_SIZE), op.flags);
	if (oracle_apply(idx(s), &op) < 0) {
		/* The target may be gone or not: away with it. */
		do_unmap(s, to, new_n);
		return;
	}
	if (fake_apply(s->as, &op) < 0)
		fake_broken("remap", op.addr);
	memcpy(moved, p, n * sizeof(*p));
	for (unsigned i = n; i < new_n; i++)
		moved[i] = again ? moved[0] : moved[n - 1];
	if (again) /* one mapping's attributes */
		for (unsigned i = 0; i < new_n; i++)
			moved[i] = moved[0];
	if (!op.flags && !again)
		memset(p, 0, n * sizeof(*p));
	memcpy(&s->page[to], moved, new_n * sizeof(*p));
}

static void do_fork(struct space *s)
{
	for (unsigned i = 0; i < ORACLE_MAX; i++) {
		if (space[i].as)
			continue;
		if (trace)
			printf("# %u: space %u forks %u\n", steps, idx(s), i);
		oracle_fork(idx(s), i);
		space[i].as = kaspace_fork(s->as);
		memcpy(space[i].page, s->page, sizeof(s->page));
		for (unsigned k = 0; k < ORACLE_PAGES; k++)
			if (s->page[k].dontfork)
				space[i].page[k].kind = NONE;
		forks++;
		return;
	}
}

static void do_exit(struct space *s)
{
	unsigned alive = 0;

	for (unsigned i = 0; i < ORACLE_MAX; i++)
		alive += space[i].as != NULL;
	if (alive == 1)
		return;
	oracle_exit(idx(s));
	kvm_aspace_put(s->as);
	s->as = NULL;
}

static void do_write(struct space *s)
{
	uaddr_t addr = addr_of(rnd(ORACLE_PAGES)) + rnd(8);
	uint8_t byte = (uint8_t)rnd(256);
	int code, want = oracle_write(idx(s), addr, byte, &code);
	struct trap trap;

	if (rnd(2)) {
		int got = fake_access(rnd(FAKE_CPUS), s->as, addr, KFAULT_WRITE, &byte, &trap);

		if (got != want || (want && trap.fault.code != code))
			fake_broken("write", addr);
		return;
	}
	if (kvm_aspace_write(s->as, addr, &byte, 1) != (want ? -EFAULT : 1))
		fake_broken("copy to", addr);
	copies++;
}

/* An execve(2): all is gone but the address space. */
static void do_exec(struct space *s)
{
	const struct aspace_op op = { .op = ASPACE_UNMAP, .addr = addr_of(0), .len = ORACLE_PAGES * PAGE_SIZE };

	oracle_apply(idx(s), &op);
	kaspace_clear(s->as);
	memset(s->page, 0, sizeof(s->page));
}

/* As the sentry does when the file @f was cut. */
static void cut_mappings(unsigned f, unsigned pages)
{
	for (unsigned k = 0; k < ORACLE_MAX; k++)
		for (unsigned i = 0; i < ORACLE_PAGES && space[k].as; i++) {
			const struct page *p = &space[k].page[i];

			if (p->kind < FILE_PRIVATE || p->file != f || p->at < pages)
				continue;
			kvm_aspace_cut(space[k].as, addr_of(i), PAGE_SIZE);
			cut++;
		}
}

static void do_file(void)
{
	unsigned f = rnd(FILES), len = (rnd(FILE_PAGES) + 1) * 4096 + rnd(3) * 100;
	uint64_t word = (uint64_t)random();
	off_t off = (off_t)(rnd(FILE_PAGES) * PAGE_SIZE);

	for (unsigned side = 0; side < 2; side++)
		if (pwrite(file[f][side], &word, sizeof(word), off) != sizeof(word))
			fake_broken("pwrite", (uint64_t)off);
	if (f == 0 || rnd(3))
		return;
	for (unsigned side = 0; side < 2; side++)
		if (ftruncate(file[f][side], len) < 0)
			fake_broken("ftruncate", len);
	cut_mappings(f, (len + (unsigned)PAGE_SIZE - 1) >> PAGE_SHIFT);
}

static void check_page(struct space *s, unsigned i, const struct oracle_page *want)
{
	struct trap trap;
	uint64_t word = 0;
	uint8_t b = 0;
	int got;

	if (rnd(2)) {
		ssize_t n = kvm_aspace_read(s->as, addr_of(i), &word, sizeof(word));

		if (n != (want->sig ? -EFAULT : 8) || (!want->sig && word != want->word))
			fake_broken("copy from", addr_of(i));
		if (trace && fake.broken)
			printf("# space %u: %zd %#llx, not %d %#llx; kind %d\n", idx(s), n, (unsigned long long)word,
			       want->sig, (unsigned long long)want->word, s->page[i].kind);
		return;
	}
	got = fake_access(rnd(FAKE_CPUS), s->as, addr_of(i), KFAULT_READ, &b, &trap);
	if (got != want->sig || (got && trap.fault.code != want->code) || (!got && b != (uint8_t)want->word))
		fake_broken("read", addr_of(i));
}

static void check_all(bool complete)
{
	for (unsigned k = 0; k < ORACLE_MAX; k++) {
		const struct oracle_page *want;

		if (!space[k].as)
			continue;
		want = oracle_look(k);
		for (unsigned i = 0; i < ORACLE_PAGES; i++)
			if (complete || !rnd(3))
				check_page(&space[k], i, &want[i]);
	}
}

static void step(void)
{
	struct space *s = random_space();
	unsigned first = rnd(ORACLE_PAGES), n = 1 + rnd(MIN(ORACLE_PAGES - first, rnd(3) ? 12u : 48u));

	switch (rnd(18)) {
	case 0:
	case 1:
	case 2:
		do_map(s, first, n);
		break;
	case 3:
		do_unmap(s, first, n);
		break;
	case 4:
	case 5:
		do_protect(s, first, n);
		break;
	case 6:
	case 7:
		do_advise(s, first, n);
		break;
	case 8:
	case 9:
		do_remap(s, first, n);
		break;
	case 10:
		do_fork(s);
		break;
	case 11:
		do_exit(s);
		break;
	case 12:
		do_file();
		break;
	case 13:
		do_grow(s, first);
		break;
	case 14:
		if (!rnd(6))
			do_exec(s);
		break;
	default:
		for (unsigned i = 0; i < 8; i++)
			do_write(s);
	}
	fake_check();
}

static void run(bool shadow, unsigned seed, unsigned n)
{
	srandom(seed);
	fake_start(shadow, 256ull << 20);
	for (unsigned f = 0; f < FILES; f++)
		for (unsigned side = 0; side < 2; side++) {
			file[f][side] = memfd_create("f", 0);
			if (ftruncate(file[f][side], FILE_PAGES * PAGE_SIZE) < 0)
				fake_broken("ftruncate", f);
		}
	oracle_start();
	memset(space, 0, sizeof(space));
	space[0].as = kaspace_create(&fake_platform);
	steps = forks = copies = grown = cut = 0;
	trace = getenv("KVM_MEM_TRACE");
	for (; steps < n && !fake.broken; steps++) {
		step();
		if (steps % 4 == 3)
			check_all(steps % 32 == 31);
	}
	tap_ok(!fake.broken, "seed %u%s: as Linux after %u steps, %u forks, %u copies, %u grown, %u cut", seed,
	       shadow ? ", shadowed" : "", steps, forks, copies, grown, cut);
	for (unsigned k = 0; k < ORACLE_MAX; k++)
		kvm_aspace_put(space[k].as);
	oracle_end();
	for (unsigned f = 0; f < FILES; f++) {
		close(file[f][0]);
		close(file[f][1]);
	}
	tap_ok(fake.shootdowns + fake.zaps > 0, "%u shootdowns, %u zaps", fake.shootdowns, fake.zaps);
	fake_end();
}

int main(void)
{
	const char *seed = getenv("KVM_MEM_SEED"), *n = getenv("KVM_MEM_STEPS");
	unsigned first = seed ? (unsigned)atoi(seed) : 1, rounds = seed ? 1 : 2;

	for (unsigned i = first; i < first + rounds; i++) {
		run(false, i, n ? (unsigned)atoi(n) : 600);
		run(true, i, n ? (unsigned)atoi(n) : 600);
	}
	return tap_done();
}
