/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vDSO: runs in the guest, in any thread, on any stack, perhaps in a signal handler. It reads the page in front of
 * its image (page.h) and nothing else; what it cannot answer from there it asks the kernel.
 */
#include <stddef.h>
#include <stdint.h>

#include "platform/kvm/vdso/page.h"

#define NR_CLOCK_GETTIME 228
#define NR_CLOCK_GETRES  229
#define NR_GETTIMEOFDAY  96
#define NR_TIME          201
#define NR_GETCPU        309

#define NSEC_PER_SEC 1000000000ull
/* The page is not updated for ever when its writer was stopped half way: then the system call helps. */
#define SEQ_TRIES 1000
/* The coarse clock is behind by a tick at most, or a few where ticks are late. */
#define LATE_TICKS 8
#define CLOCK_REALTIME 0

#define EXPORT       __attribute__((visibility("default")))
#define EXPORT_AS(f) __attribute__((visibility("default"), weak, alias(#f)))

struct timespec {
	int64_t sec, nsec;
};
struct timeval {
	int64_t sec, usec;
};
struct timezone {
	int minuteswest, dsttime;
};

/* Where the linker script puts it. */
extern const volatile struct kvdso_data kvdso_data __attribute__((visibility("hidden")));

int __vdso_clock_gettime(int clock, struct timespec *ts);
int __vdso_clock_getres(int clock, struct timespec *ts);
int __vdso_gettimeofday(struct timeval *tv, struct timezone *tz);
int64_t __vdso_time(int64_t *t);
int64_t __vdso_getcpu(unsigned *cpu, unsigned *node, void *unused);

static inline long syscall3(long nr, long a, long b, long c)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}

/* Not before what stands in front of it. */
static inline uint64_t tsc_ordered(void)
{
	uint32_t lo, hi;

	__asm__ volatile("lfence; rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return (uint64_t)hi << 32 | lo;
}

/* A clock's time in ns; 0 (which no clock shows: the page has begun later): ask the kernel. */
static inline uint64_t clock_ns(unsigned clock)
{
	const volatile struct kvdso_data *d = &kvdso_data;

	if (clock >= KVDSO_CLOCKS || !(d->clocks & 1u << clock))
		return 0;
	for (int tries = 0; tries < SEQ_TRIES; tries++) {
		uint32_t seq = __atomic_load_n(&d->seq, __ATOMIC_ACQUIRE);
		uint64_t delta, ns;

		if (seq & 1)
			continue;
		delta = tsc_ordered() - d->base_tsc;
		/* Another processor's counter may be a little behind that of the writer. */
		if ((int64_t)delta < 0)
			delta = 0;
		ns = delta < d->valid ? d->base_ns + (delta * d->mult >> d->shift) + (uint64_t)d->offset[clock] : 0;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&d->seq, __ATOMIC_RELAXED) == seq)
			return ns;
	}
	return 0;
}

EXPORT int __vdso_clock_gettime(int clock, struct timespec *ts)
{
	uint64_t ns = clock_ns((unsigned)clock);

	if (!ns)
		return (int)syscall3(NR_CLOCK_GETTIME, clock, (long)ts, 0);
	ts->sec = (int64_t)(ns / NSEC_PER_SEC);
	ts->nsec = (int64_t)(ns % NSEC_PER_SEC);
	return 0;
}

EXPORT int __vdso_clock_getres(int clock, struct timespec *ts)
{
	if ((unsigned)clock >= KVDSO_CLOCKS || !(kvdso_data.clocks & 1u << clock))
		return (int)syscall3(NR_CLOCK_GETRES, clock, (long)ts, 0);
	if (ts) {
		ts->sec = 0;
		ts->nsec = kvdso_data.res_ns;
	}
	return 0;
}

EXPORT int __vdso_gettimeofday(struct timeval *tv, struct timezone *tz)
{
	uint64_t ns = clock_ns(CLOCK_REALTIME);

	/* The time zone is the kernel's to tell. */
	if (tz || !ns)
		return (int)syscall3(NR_GETTIMEOFDAY, (long)tv, (long)tz, 0);
	if (tv) {
		tv->sec = (int64_t)(ns / NSEC_PER_SEC);
		tv->usec = (int64_t)(ns % NSEC_PER_SEC / 1000);
	}
	return 0;
}

/*
 * time(2) is the coarse clock's second: it must not be ahead of the times of files, nor behind them. A tick or so
 * after the second's begin the two agree; before, the kernel has to say.
 */
EXPORT int64_t __vdso_time(int64_t *t)
{
	uint64_t ns = clock_ns(CLOCK_REALTIME);
	int64_t sec;

	if (!ns || ns % NSEC_PER_SEC < (uint64_t)kvdso_data.tick_ns * LATE_TICKS)
		return syscall3(NR_TIME, (long)t, 0, 0);
	sec = (int64_t)(ns / NSEC_PER_SEC);
	if (t)
		*t = sec;
	return sec;
}

EXPORT int64_t __vdso_getcpu(unsigned *cpu, unsigned *node, void *unused)
{
	uint32_t lo, hi, aux;

	(void)unused;
	if (!(kvdso_data.flags & KVDSO_CPU))
		return syscall3(NR_GETCPU, (long)cpu, (long)node, 0);
	__asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux));
	if (cpu)
		*cpu = aux & 0xfff;
	if (node)
		*node = aux >> 12;
	return 0;
}

/* The names that Linux gives them too. */
int clock_gettime(int clock, struct timespec *ts) EXPORT_AS(__vdso_clock_gettime);
int clock_getres(int clock, struct timespec *ts) EXPORT_AS(__vdso_clock_getres);
int gettimeofday(struct timeval *tv, struct timezone *tz) EXPORT_AS(__vdso_gettimeofday);
int64_t time(int64_t *t) EXPORT_AS(__vdso_time);
int64_t getcpu(unsigned *cpu, unsigned *node, void *unused) EXPORT_AS(__vdso_getcpu);
