/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the guests' vDSO the time: a straight line through the host's CLOCK_MONOTONIC, renewed often enough.
 *
 * Each update takes a sample of counter and clock, measures the counter's rate from a sample of about a second ago,
 * and writes a new line (vdso/page.h). A line is valid for a limited time only: a guest that is not interrupted, or a
 * host whose clock is being slewed, then falls back to the system call, which brings the next update about.
 *
 * The guest's clock never runs back. A new line begins at the instant of its writing with what the old one shows
 * there, or with the true time when that is later; when it is ahead of the truth the line is flatter, until they meet.
 * The page's sequence is odd before that instant is read, so that no reader of the old line is later than it.
 *
 * The offsets of the other clocks are constants between steps of the host's clock. What is measured scatters by some
 * tens of nanoseconds, so that a new value is taken only when it differs by more.
 *
 * When the counter is not invariant, when the kernel does not trust it itself, or when it disagrees with the clock,
 * the page tells the guest to do the system call, for good.
 */
#include <cpuid.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/host/clock.h"
#include "base/host/file.h"
#include "base/macros.h"
#include "platform/kvm/vdso.h"

#define SAMPLE_TRIES   6
#define SAMPLE_MAX_NS  2000       /* a less exact sample does not replace an offset */
#define WARM_UP_NS     2000000ull /* until the rate is measured for the first time */
#define ANCHOR_NS      500000000ull
#define VALID_NS       80000000ull /* a clock that is suddenly slewed by 500 ppm is then 40 us ahead */
#define RENEWALS       4           /* in the time that a line is valid */
#define OFFSET_NOISE   2000        /* ns */
#define RATE_TOLERANCE 0.01        /* slewing changes the rate by 0.0005 at most */
#define DISAGREE_MAX   3
#define AHEAD_MAX_NS   10000000 /* ahead of the clock by that much: one of the two is broken */
#define CLOCKSOURCE    "/sys/devices/system/clocksource/clocksource0/current_clocksource"

static uint64_t real_tsc(void *arg)
{
	unsigned aux;

	(void)arg;
	_mm_lfence();
	return __rdtscp(&aux);
}

static uint64_t real_clock(void *arg, int id)
{
	uint64_t ns;

	(void)arg;
	return host_clock_ns(id, &ns) < 0 ? 0 : ns;
}

/* The counter at the instant of the clock @id, from the tightest of some tries. Returns the uncertainty in ticks. */
static uint64_t sample(const struct kvdso *v, int id, struct kvdso_sample *s)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < SAMPLE_TRIES; i++) {
		uint64_t before = v->tsc(v->arg), ns = v->clock(v->arg, id), after = v->tsc(v->arg);

		if (after - before >= best)
			continue;
		best = after - before;
		s->tsc = before + best / 2;
		s->ns = ns;
	}
	return best;
}

/* The line of @d at @tsc, without its end of validity being passed. */
static uint64_t line_at(const struct kvdso_data *d, uint64_t tsc)
{
	uint64_t delta = (int64_t)(tsc - d->base_tsc) < 0 ? 0 : tsc - d->base_tsc;

	return d->base_ns + (MIN(delta, d->valid) * d->mult >> d->shift);
}

/* The instant from which no reader uses the old line any more. */
static uint64_t write_begin(struct kvdso *v)
{
	__atomic_store_n(&v->page->seq, v->page->seq + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return v->tsc(v->arg);
}

static void write_end(struct kvdso *v)
{
	__atomic_store_n(&v->page->seq, v->page->seq + 1, __ATOMIC_RELEASE);
}

static void invalidate(struct kvdso *v)
{
	uint64_t tsc;

	if (!v->page->valid)
		return;
	tsc = write_begin(v);
	v->floor = line_at(v->page, tsc);
	v->page->valid = 0;
	write_end(v);
}

/* Measures anew, from @s on. */
static void restart(struct kvdso *v, const struct kvdso_sample *s)
{
	invalidate(v);
	v->anchor[0] = v->anchor[1] = *s;
	v->rate = 0;
	v->renew_ticks = 0;
}

/* Updates the rate by @s. False: the counter and the clock disagree. */
static bool measure(struct kvdso *v, const struct kvdso_sample *s)
{
	double rate = (double)(s->ns - v->anchor[0].ns) / (double)(s->tsc - v->anchor[0].tsc);

	if (v->rate != 0 && (rate > v->rate * (1 + RATE_TOLERANCE) || rate < v->rate * (1 - RATE_TOLERANCE)))
		return false;
	v->rate = rate;
	if (s->ns - v->anchor[1].ns >= ANCHOR_NS) {
		v->anchor[0] = v->anchor[1];
		v->anchor[1] = *s;
		v->disagreed = 0;
	}
	return true;
}

/* What the clock @id shows more than CLOCK_MONOTONIC, of which @mono is a sample. */
static int64_t offset_now(struct kvdso *v, int id, const struct kvdso_sample *mono, int64_t old)
{
	struct kvdso_sample s;
	uint64_t ticks = sample(v, id, &s);
	int64_t now, between = (int64_t)((double)(int64_t)(s.tsc - mono->tsc) * v->rate);

	now = (int64_t)(s.ns - mono->ns) - between;
	if (!(v->known & 1u << id)) {
		v->known |= 1u << id;
		return now;
	}
	if ((double)ticks * v->rate > SAMPLE_MAX_NS || (now - old <= OFFSET_NOISE && old - now <= OFFSET_NOISE))
		return old;
	return now;
}

static void measure_offsets(struct kvdso *v, const struct kvdso_sample *mono, int64_t *offset)
{
	const int64_t second = (int64_t)NSEC_PER_SEC;
	int64_t tai;

	offset[CLOCK_REALTIME] = offset_now(v, CLOCK_REALTIME, mono, offset[CLOCK_REALTIME]);
	/* Not behind CLOCK_MONOTONIC by the noise on a machine that never slept. */
	offset[CLOCK_BOOTTIME] = offset_now(v, CLOCK_BOOTTIME, mono, offset[CLOCK_BOOTTIME]);
	if (offset[CLOCK_BOOTTIME] < OFFSET_NOISE)
		offset[CLOCK_BOOTTIME] = 0;
	/* Whole seconds from CLOCK_REALTIME. */
	tai = (int64_t)v->clock(v->arg, CLOCK_TAI) - (int64_t)v->clock(v->arg, CLOCK_REALTIME);
	offset[CLOCK_TAI] = offset[CLOCK_REALTIME] + (tai + (tai < 0 ? -second : second) / 2) / second * second;
}

/* A line from @start (ns at @tsc) on that meets the truth, which is @ahead ns behind it, at the time of the next
 * update. */
static void write_line(struct kvdso *v, uint64_t tsc, uint64_t start, uint64_t ahead, uint64_t valid)
{
	struct kvdso_data *d = v->page;
	double rate = v->rate * (1 - MIN((double)ahead * RENEWALS / (double)valid, 0.5));
	unsigned shift = 32;

	while (shift > 1 && rate * (double)(1ull << shift) >= 4294967295.0)
		shift--;
	d->mult = (uint32_t)(rate * (double)(1ull << shift));
	d->shift = shift;
	d->base_tsc = tsc;
	d->base_ns = start;
	d->valid = (uint64_t)((double)valid / v->rate);
	v->renew_ticks = d->valid / RENEWALS;
}

static void publish(struct kvdso *v, const struct kvdso_sample *s)
{
	struct kvdso_data *d = v->page;
	/* An error of some tens of ns in the two samples must stay one. */
	uint64_t tsc, truth, shown, valid = MIN((s->ns - v->anchor[0].ns) * RENEWALS, VALID_NS);
	int64_t offset[KVDSO_CLOCKS];

	memcpy(offset, d->offset, sizeof(offset));
	measure_offsets(v, s, offset);
	tsc = write_begin(v);
	truth = s->ns + (uint64_t)((double)(tsc - s->tsc) * v->rate);
	shown = d->valid ? line_at(d, tsc) : v->floor;
	if (shown > truth + AHEAD_MAX_NS) {
		d->valid = 0;
		v->off = true;
	} else {
		write_line(v, tsc, MAX(truth, shown), shown > truth ? shown - truth : 0, valid);
		memcpy(d->offset, offset, sizeof(offset));
	}
	write_end(v);
}

void kvdso_update(struct kvdso *v)
{
	struct kvdso_sample s, last = v->last;

	if (v->off)
		return;
	(void)sample(v, CLOCK_MONOTONIC, &s);
	v->last = s;
	/* The first one; or the machine was asleep and its counter began anew. */
	if (!last.tsc || s.tsc <= last.tsc || s.ns < last.ns) {
		restart(v, &s);
	} else if (s.ns - v->anchor[0].ns < WARM_UP_NS) {
		return;
	} else if (measure(v, &s)) {
		publish(v, &s);
	} else {
		/* A sleep that the counter did not see, or the clock. Else one of them cannot be trusted. */
		restart(v, &s);
		v->off = ++v->disagreed > DISAGREE_MAX;
	}
}

/* Does the host's kernel keep time by the counter? It has checked what we cannot: that all processors have the
 * same. */
static bool tsc_trusted(void)
{
	static const char *const good[] = { "tsc", "kvm-clock", "hyperv_clocksource_tsc_page" };
	unsigned a, b, c, d;
	char name[64] = "";
	ssize_t n = 0;
	int fd = host_open(CLOCKSOURCE, O_RDONLY | O_CLOEXEC, 0);

	if (fd >= 0) {
		n = host_read(fd, name, sizeof(name) - 1);
		close(fd);
	}
	name[n > 0 ? n : 0] = 0;
	name[strcspn(name, "\n")] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (!strcmp(name, good[i]))
			return true;
	/* No /sys: what the processor says of itself, that its counter's rate is constant. */
	return !name[0] && __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

static int trusted = -1; /* not asked yet */

void kvdso_prepare(void)
{
	trusted = tsc_trusted();
}

void kvdso_init(struct kvdso *v, struct kvdso_data *page, bool cpu_ok)
{
	struct timespec res;

	*v = (struct kvdso){ .page = page, .tsc = real_tsc, .clock = real_clock };
	v->off = !(trusted < 0 ? tsc_trusted() : trusted);
	*page = (struct kvdso_data){ .flags = cpu_ok ? KVDSO_CPU : 0, .clocks = KVDSO_CLOCK_MASK };
	if (clock_getres(CLOCK_MONOTONIC, &res) == 0)
		page->res_ns = (uint32_t)res.tv_nsec;
	if (clock_getres(CLOCK_REALTIME_COARSE, &res) == 0)
		page->tick_ns = (uint32_t)res.tv_nsec;
	if (!real_clock(NULL, CLOCK_TAI) || !real_clock(NULL, CLOCK_BOOTTIME))
		v->off = true;
}
