/* SPDX-License-Identifier: Apache-2.0 */
/* The vDSO of kvm's guests, loaded into this process: its image, its clocks beside the host's; and the line through
 * the host's clock, with a counter and a clock that the test makes up. */
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"
#include "platform/kvm/vdso.h"
#include "tests/lib/tap.h"

static struct kvdso_data *page; /* as we see it: writable */
static uint8_t *image;          /* as a guest sees it */

static int (*v_gettime)(int, struct timespec *);
static int (*v_getres)(int, struct timespec *);
static int (*v_timeofday)(struct timeval *, struct timezone *);
static time_t (*v_time)(time_t *);
static long (*v_getcpu)(unsigned *, unsigned *, void *);

static void load(void)
{
	size_t len = (size_t)(kvdso_image_end - kvdso_image);
	int fd = memfd_create("vdso", 0);

	tap_ok(len <= KVDSO_IMAGE_PAGES * PAGE_SIZE, "the image has %zu bytes", len);
	if (ftruncate(fd, (1 + KVDSO_IMAGE_PAGES) * PAGE_SIZE) ||
	    pwrite(fd, kvdso_image, len, PAGE_SIZE) != (ssize_t)len)
		exit(1);
	page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	image = mmap(NULL, (1 + KVDSO_IMAGE_PAGES) * PAGE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED || image == MAP_FAILED)
		exit(1);
	image += PAGE_SIZE;
	if (mprotect(image, KVDSO_IMAGE_PAGES * PAGE_SIZE, PROT_READ | PROT_EXEC))
		exit(1);
	close(fd);
}

struct dyn {
	const uint32_t *hash, *gnu_hash;
	const Elf64_Sym *sym;
	const char *str;
	const Elf64_Half *versym;
	const Elf64_Verdef *verdef;
	bool relocations;
};

static struct dyn parse(void)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)image;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(image + eh->e_phoff);
	unsigned loads = 0, bad = 0;
	struct dyn r = { 0 };

	tap_ok(!memcmp(eh->e_ident, ELFMAG, SELFMAG) && eh->e_type == ET_DYN, "it is a shared object");
	for (int i = 0; i < eh->e_phnum; i++) {
		loads += ph[i].p_type == PT_LOAD;
		bad += ph[i].p_flags & PF_W || (ph[i].p_type == PT_LOAD && (ph[i].p_vaddr || ph[i].p_offset));
		for (const Elf64_Dyn *d = (const Elf64_Dyn *)(image + ph[i].p_vaddr);
		     ph[i].p_type == PT_DYNAMIC && d->d_tag != DT_NULL; d++) {
			const uint8_t *at = image + d->d_un.d_ptr;

			switch (d->d_tag) {
			case DT_HASH: r.hash = (const uint32_t *)at; break;
			case DT_GNU_HASH: r.gnu_hash = (const uint32_t *)at; break;
			case DT_SYMTAB: r.sym = (const Elf64_Sym *)at; break;
			case DT_STRTAB: r.str = (const char *)at; break;
			case DT_VERSYM: r.versym = (const Elf64_Half *)at; break;
			case DT_VERDEF: r.verdef = (const Elf64_Verdef *)at; break;
			case DT_REL: case DT_RELA: case DT_JMPREL: case DT_TEXTREL: r.relocations = true; break;
			default: break;
			}
		}
	}
	tap_ok(loads == 1 && !bad, "one segment from 0 on, none writable");
	tap_ok(!r.relocations, "no relocations");
	tap_ok(r.hash && r.gnu_hash && r.sym && r.str && r.versym && r.verdef, "both hash tables, versions");
	return r;
}

static bool has_version(const struct dyn *d, unsigned sym)
{
	for (const Elf64_Verdef *v = d->verdef;; v = (const Elf64_Verdef *)((const char *)v + v->vd_next)) {
		const Elf64_Verdaux *a = (const Elf64_Verdaux *)((const char *)v + v->vd_aux);

		if (v->vd_ndx == (d->versym[sym] & 0x7fff) && !(v->vd_flags & VER_FLG_BASE))
			return !strcmp(d->str + a->vda_name, "LINUX_2.6");
		if (!v->vd_next)
			return false;
	}
}

static unsigned sysv_hash(const char *name)
{
	unsigned h = 0;

	for (; *name; name++) {
		h = (h << 4) + (unsigned char)*name;
		h = (h ^ (h & 0xf0000000) >> 24) & 0x0fffffff;
	}
	return h;
}

static void *lookup_sysv(const struct dyn *d, const char *name)
{
	for (uint32_t i = d->hash[2 + sysv_hash(name) % d->hash[0]]; i; i = d->hash[2 + d->hash[0] + i])
		if (!strcmp(d->str + d->sym[i].st_name, name) && d->sym[i].st_shndx && has_version(d, i))
			return image + d->sym[i].st_value;
	return NULL;
}

static void *lookup_gnu(const struct dyn *d, const char *name)
{
	uint32_t h = 5381, nbuckets = d->gnu_hash[0], symoffset = d->gnu_hash[1], bloom = d->gnu_hash[2];
	const uint32_t *buckets = d->gnu_hash + 4 + bloom * 2, *chain = buckets + nbuckets;
	const uint64_t *filter = (const uint64_t *)(d->gnu_hash + 4);

	for (const char *p = name; *p; p++)
		h = h * 33 + (unsigned char)*p;
	if (!(filter[h / 64 % bloom] & 1ull << h % 64))
		return NULL;
	for (uint32_t i = buckets[h % nbuckets]; i; i++) {
		if ((chain[i - symoffset] | 1) == (h | 1) && !strcmp(d->str + d->sym[i].st_name, name))
			return image + d->sym[i].st_value;
		if (chain[i - symoffset] & 1)
			break;
	}
	return NULL;
}

static void test_image(void)
{
	static const struct {
		const char *name, *alias;
		void *at;
	} symbols[] = {
		{ "__vdso_clock_gettime", "clock_gettime", &v_gettime },
		{ "__vdso_clock_getres", "clock_getres", &v_getres },
		{ "__vdso_gettimeofday", "gettimeofday", &v_timeofday },
		{ "__vdso_time", "time", &v_time },
		{ "__vdso_getcpu", "getcpu", &v_getcpu },
	};
	struct dyn d = parse();

	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		void *f = lookup_sysv(&d, symbols[i].name);

		tap_ok(f && lookup_gnu(&d, symbols[i].name) == f && lookup_sysv(&d, symbols[i].alias) == f, "%s",
		       symbols[i].name);
		memcpy(symbols[i].at, &f, sizeof(f));
	}
	tap_ok(!lookup_sysv(&d, "kvdso_data") && !lookup_gnu(&d, "kvdso_data"), "the page has no symbol");
}

static int64_t ns_of(const struct timespec *ts)
{
	return ts->tv_sec * (int64_t)NSEC_PER_SEC + ts->tv_nsec;
}

static int64_t host_ns(int clock)
{
	struct timespec ts = { 0 };

	clock_gettime(clock, &ts);
	return ns_of(&ts);
}

static int64_t vdso_ns(int clock)
{
	struct timespec ts = { -1, -1 };

	if (v_gettime(clock, &ts) || (uint64_t)ts.tv_nsec >= NSEC_PER_SEC)
		return -1;
	return ns_of(&ts);
}

static const int served[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI };

/* Without a line: system calls. */
static void test_fallback(void)
{
	static const int clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID,
				      CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
				      CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI };
	unsigned cpu = 99999, node = 99999;
	struct timespec ts, host;
	struct timezone tz = { 77, 77 };
	struct timeval tv;
	time_t t;

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		int64_t before = host_ns(clocks[i]), now = vdso_ns(clocks[i]), after = host_ns(clocks[i]);

		tap_ok(before <= now && now <= after, "clock %d by system call", clocks[i]);
		tap_ok(!v_getres(clocks[i], &ts) && !clock_getres(clocks[i], &host) && ns_of(&ts) == ns_of(&host),
		       "its resolution");
	}
	tap_eq(v_gettime(55, &ts), -EINVAL, "an unknown clock");
	tap_eq(v_gettime(-100000, &ts), v_gettime(-100000, &ts), "a negative clock");
	tap_eq(v_gettime(12345678, &ts), -EINVAL, "a large clock");
	tap_eq(v_getres(55, &ts), -EINVAL, "the resolution of an unknown clock");
	tap_eq(v_getres(CLOCK_MONOTONIC, NULL), 0, "a resolution that is not wanted");
	tap_ok(!v_timeofday(&tv, &tz) && tz.tz_minuteswest != 77 && llabs(tv.tv_sec - time(NULL)) < 5, "gettimeofday");
	tap_ok(!v_timeofday(NULL, NULL), "gettimeofday without anything");
	tap_ok(llabs(v_time(&t) - time(NULL)) < 5 && llabs(t - time(NULL)) < 5, "time");
	tap_eq(v_getcpu(&cpu, &node, NULL), 0, "getcpu by system call");
	tap_ok(cpu < 4096 && node < 1024, "its values");
	tap_eq(v_getcpu(NULL, NULL, NULL), 0, "getcpu without anything");
}

/* What the scheduler may do to us between two readings. */
#define SLACK_NS 100000

static void spin_ms(struct kvdso *v, int ms, bool update)
{
	int64_t end = host_ns(CLOCK_MONOTONIC) + ms * 1000000ll;

	while (host_ns(CLOCK_MONOTONIC) < end)
		if (update && kvdso_due(v))
			kvdso_update(v);
}

/* The clocks follow the host's, and none runs back. */
static void test_clocks(struct kvdso *v)
{
	int64_t worst[KVDSO_CLOCKS] = { 0 }, last[KVDSO_CLOCKS] = { 0 }, end = host_ns(CLOCK_MONOTONIC) + 300000000;
	unsigned back = 0, outside = 0, rounds = 0, by_line = 0;

	for (; host_ns(CLOCK_MONOTONIC) < end; rounds++) {
		int clock = served[rounds % ARRAY_SIZE(served)];
		int64_t before, now, after, off;

		if (kvdso_due(v))
			kvdso_update(v);
		by_line += __rdtsc() - page->base_tsc < page->valid;
		before = host_ns(clock);
		now = vdso_ns(clock);
		after = host_ns(clock);
		off = now < before ? before - now : now > after ? now - after : 0;
		worst[clock] = MAX(worst[clock], off);
		outside += off > SLACK_NS;
		back += now < last[clock];
		last[clock] = now;
	}
	tap_ok(by_line > rounds / 2, "%u of %u times without a system call", by_line, rounds);
	tap_eq(back, 0, "no clock ran back");
	tap_eq(outside, 0, "all are near the host's (off by %lld, %lld, %lld, %lld ns at most)", (long long)worst[0],
	       (long long)worst[1], (long long)worst[7], (long long)worst[11]);
}

static void test_values(struct kvdso *v)
{
	struct timeval tv = { 0 };
	struct timespec ts;
	time_t t = 0, r;

	kvdso_update(v);
	tap_ok(!v_timeofday(&tv, NULL) && llabs(tv.tv_sec * 1000000ll + tv.tv_usec - host_ns(0) / 1000) < 1000000,
	       "gettimeofday follows");
	r = v_time(&t);
	clock_gettime(CLOCK_REALTIME_COARSE, &ts);
	tap_ok(r == t && r <= ts.tv_sec && ts.tv_sec - r <= 1, "time follows");
	tap_ok(!v_getres(CLOCK_TAI, &ts) && ts.tv_sec == 0 && ts.tv_nsec == page->res_ns, "clock_getres follows");
}

static void test_stuck_writer(struct kvdso *v)
{
	int64_t before, now, after;

	kvdso_update(v);
	page->seq++; /* as if it had been stopped while it writes */
	before = host_ns(CLOCK_MONOTONIC);
	now = vdso_ns(CLOCK_MONOTONIC);
	after = host_ns(CLOCK_MONOTONIC);
	page->seq++;
	tap_ok(before <= now && now <= after, "a writer that is stopped half way does not stop the guest");
}

static void test_getcpu(void)
{
	unsigned cpu = 9999, node = 9999, want_cpu = 0, want_node = 0;
	unsigned flags = page->flags, aux = 0;
	cpu_set_t old, one;
	long r;

	page->flags |= KVDSO_CPU;
	sched_getaffinity(0, sizeof(old), &old);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	syscall(SYS_getcpu, &want_cpu, &want_node, NULL);
	(void)__rdtscp(&aux);
	r = v_getcpu(&cpu, &node, NULL);
	sched_setaffinity(0, sizeof(old), &old);
	tap_ok(r == 0 && cpu == (aux & 0xfff) && node == aux >> 12, "getcpu by rdtscp (%u %u)", cpu, node);
	/* Some virtual machines leave the physical processor's number there. */
	if (aux == (want_cpu | want_node << 12))
		tap_ok(cpu == want_cpu && node == want_node, "it is the kernel's");
	else
		tap_skip("rdtscp tells another machine's number here", "it is the kernel's");
	tap_eq(v_getcpu(NULL, NULL, NULL), 0, "getcpu by rdtscp without anything");
	page->flags = flags;
}

static volatile bool stop;

static void *reader(void *arg)
{
	unsigned *back = arg;
	int64_t last = 0;

	while (!stop) {
		int64_t now = vdso_ns(CLOCK_MONOTONIC);

		*back += now < last;
		last = now;
	}
	return NULL;
}

/* Updates without pause while others read. */
static void test_storm(struct kvdso *v)
{
	unsigned back[2] = { 0 }, updates = 0;
	pthread_t th[2];
	int64_t end = host_ns(CLOCK_MONOTONIC) + 200000000;

	stop = false;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&th[i], NULL, reader, &back[i]))
			exit(1);
	for (; host_ns(CLOCK_MONOTONIC) < end; updates++)
		kvdso_update(v);
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(th[i], NULL);
	tap_ok(updates > 100 && !back[0] && !back[1], "two threads never saw it run back in %u updates", updates);
}

static void test_host(void)
{
	static struct kvdso v;

	kvdso_init(&v, page, false);
	test_fallback();
	if (v.off) {
		tap_skip("the host's kernel does not trust the counter", "clocks without a system call");
		return;
	}
	tap_ok(kvdso_due(&v), "a new one wants an update");
	spin_ms(&v, 30, true);
	tap_ok(page->valid > 0 && !v.off, "a line after 30 ms");
	test_clocks(&v);
	test_values(&v);
	test_stuck_writer(&v);
	test_getcpu();
	test_storm(&v);
	spin_ms(&v, 100, false);
	tap_ok(__rdtsc() - page->base_tsc >= page->valid && kvdso_due(&v), "a line ends");
	test_fallback();
}

/* A made-up machine: the counter goes on by itself a little with each reading. */
static struct {
	double now; /* seconds */
	double tsc_hz, tsc_zero;
	double ns, rate;  /* CLOCK_MONOTONIC and how fast it goes */
	int64_t real, boot, tai;
	unsigned noise;
} sim;

static void sim_pass(double s)
{
	sim.now += s;
	sim.ns += s * 1e9 * sim.rate;
}

static uint64_t sim_tsc(void *arg)
{
	sim_pass(10e-9 + (sim.noise && rand() % 50 == 0 ? sim.noise * 1e-9 : 0));
	return (uint64_t)((sim.now - sim.tsc_zero) * sim.tsc_hz) + 1;
}

static uint64_t sim_clock(void *arg, int id)
{
	int64_t off = id == CLOCK_REALTIME ? sim.real : id == CLOCK_BOOTTIME ? sim.boot :
		      id == CLOCK_TAI ? sim.real + sim.tai : 0;

	sim_pass(15e-9);
	return (uint64_t)((int64_t)sim.ns + off);
}

static void sim_init(struct kvdso *v, struct kvdso_data *d, double hz)
{
	memset(&sim, 0, sizeof(sim));
	memset(d, 0, sizeof(*d));
	sim.tsc_hz = hz;
	sim.rate = 1;
	sim.now = 1000;
	sim.ns = 5e12;
	sim.real = 1700000000ll * 1000000000;
	sim.tai = 37000000000;
	srand(1);
	*v = (struct kvdso){ .page = d, .tsc = sim_tsc, .clock = sim_clock };
}

/* What a guest would see; -1: it would ask the kernel. */
static int64_t sim_read(const struct kvdso_data *d, int clock)
{
	uint64_t delta = sim_tsc(NULL) - d->base_tsc;

	if ((int64_t)delta < 0)
		delta = 0;
	if (delta >= d->valid)
		return -1;
	return (int64_t)(d->base_ns + (delta * d->mult >> d->shift)) + d->offset[clock];
}

struct drift {
	double worst;
	unsigned back, calls;
};

/* @rounds of 10 ms each with some readings; an update when one is due. */
static struct drift sim_run(struct kvdso *v, unsigned rounds, double slew)
{
	struct drift r = { 0 };
	int64_t last = 0;

	for (unsigned i = 0; i < rounds; i++) {
		if (slew != 0 && i % 40 == 0)
			sim.rate = i / 40 % 2 ? 1 + slew : 1 - slew;
		if (sim_tsc(NULL) - v->last.tsc >= v->renew_ticks)
			kvdso_update(v);
		for (int j = 0; j < 10; j++) {
			int64_t t = sim_read(v->page, CLOCK_MONOTONIC), e;

			sim_pass(1e-3);
			if (t < 0) {
				r.calls++;
				continue;
			}
			e = llabs(t - (int64_t)(sim.ns - 1e6 * sim.rate));
			r.worst = MAX(r.worst, (double)e);
			r.back += t < last;
			last = t;
		}
	}
	return r;
}

static void test_rates(void)
{
	static const double hz[] = { 300e6, 999e6, 1e9, 2.1e9, 4.9e9, 9e9 };

	for (size_t i = 0; i < ARRAY_SIZE(hz); i++) {
		struct kvdso_data d;
		struct kvdso v;
		struct drift r;

		sim_init(&v, &d, hz[i]);
		r = sim_run(&v, 5, 0);
		r = sim_run(&v, 500, 0);
		tap_ok(!r.back && !r.calls && r.worst < 200, "%.0f MHz: off by %.0f ns, %u calls", hz[i] / 1e6, r.worst,
		       r.calls);
		sim.noise = 1500;
		r = sim_run(&v, 500, 0);
		tap_ok(!r.back && !r.calls && r.worst < 2500, "with noise: off by %.0f ns", r.worst);
		sim.noise = 0;
		r = sim_run(&v, 1000, 500e-6);
		tap_ok(!r.back && !r.calls && r.worst < 60000, "slewed by 500 ppm: off by %.0f ns", r.worst);
	}
}

static void test_events(void)
{
	struct kvdso_data d;
	struct kvdso v;
	int64_t t, t2;

	sim_init(&v, &d, 2.1e9);
	tap_eq(sim_read(&d, CLOCK_MONOTONIC), -1, "no line at first");
	sim_run(&v, 100, 0);
	t = sim_read(&d, CLOCK_REALTIME) - sim_read(&d, CLOCK_MONOTONIC);
	tap_ok(llabs(t - sim.real) < 1000, "CLOCK_REALTIME is told");
	t = sim_read(&d, CLOCK_TAI) - sim_read(&d, CLOCK_REALTIME);
	tap_ok(llabs(t - sim.tai) < 1000, "CLOCK_TAI is told");
	tap_eq(d.offset[CLOCK_BOOTTIME], 0, "CLOCK_BOOTTIME is CLOCK_MONOTONIC on a machine that never slept");
	sim.real -= 5000000;
	sim_run(&v, 10, 0);
	tap_ok(llabs(d.offset[CLOCK_REALTIME] - sim.real) < 1000, "a step of CLOCK_REALTIME by -5 ms");
	t = d.offset[CLOCK_REALTIME];
	sim_run(&v, 200, 0);
	tap_eq(d.offset[CLOCK_REALTIME], t, "and no other");
	/* Nobody asks for an hour. */
	t = sim_read(&d, CLOCK_MONOTONIC);
	sim_pass(3600);
	tap_eq(sim_read(&d, CLOCK_MONOTONIC), -1, "a line does not last for an hour");
	kvdso_update(&v);
	t2 = sim_read(&d, CLOCK_MONOTONIC);
	tap_ok(t2 > t && llabs(t2 - (int64_t)sim.ns) < 1000, "the next one is right at once");
	/* Asleep: the counter begins at 0, CLOCK_MONOTONIC goes on, CLOCK_BOOTTIME has seen the night. */
	t = sim_read(&d, CLOCK_MONOTONIC);
	sim.tsc_zero = sim.now - 0.1;
	sim.boot = 3600 * 1000000000ll;
	kvdso_update(&v);
	tap_eq(sim_read(&d, CLOCK_MONOTONIC), -1, "a counter that began anew is measured anew");
	sim_run(&v, 100, 0);
	t2 = sim_read(&d, CLOCK_MONOTONIC);
	tap_ok(t2 > t && llabs(t2 - (int64_t)sim.ns) < 1000, "and used again");
	tap_ok(llabs(d.offset[CLOCK_BOOTTIME] - sim.boot) < 1000, "CLOCK_BOOTTIME has the night");
	/* A counter that changes its speed all the time is of no use. */
	for (int i = 0; i < 20 && !v.off; i++) {
		sim_run(&v, 20, 0);
		sim.tsc_zero = sim.now - (sim.now - sim.tsc_zero) * sim.tsc_hz / (i % 2 ? 2.1e9 : 1.5e9);
		sim.tsc_hz = i % 2 ? 2.1e9 : 1.5e9;
	}
	tap_ok(v.off && d.valid == 0, "a counter without a constant rate is given up");
	tap_ok(!kvdso_due(&v), "and nothing is due any more");
	/* A clock far behind what was shown. */
	sim_init(&v, &d, 2.1e9);
	sim_run(&v, 100, 0);
	t = sim_read(&d, CLOCK_MONOTONIC);
	sim.ns -= 3600e9;
	sim_run(&v, 3, 0);
	t2 = sim_read(&d, CLOCK_MONOTONIC);
	tap_ok(t2 == -1 || t2 >= t, "a clock that was set back does not take the guest's with it");
}

int main(void)
{
	load();
	test_image();
	if (tap_failed)
		return tap_done();
	test_host();
	test_rates();
	test_events();
	return tap_done();
}
