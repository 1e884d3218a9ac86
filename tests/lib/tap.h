/* SPDX-License-Identifier: Apache-2.0 */
/* A few lines of TAP for unit and guest tests: each test program calls tap_ok and friends and ends with tap_done(). */
#ifndef SBX_TESTS_LIB_TAP_H
#define SBX_TESTS_LIB_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

/* One for a program of several files (weak), and shared with forked children, so that what they check counts. */
struct tap_counts {
	int n, failed;
};

__attribute__((weak)) struct tap_counts *tap_counts_;

__attribute__((constructor, unused)) static void tap_start(void)
{
	if (tap_counts_)
		return;
	tap_counts_ = (struct tap_counts *)mmap(NULL, sizeof(*tap_counts_), PROT_READ | PROT_WRITE,
						MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* In a child whose lines are thrown away: what it checks does not count. */
__attribute__((unused)) static void tap_mute(void)
{
	static struct tap_counts muted;

	tap_counts_ = &muted;
}

#define tap_n      (tap_counts_->n)
#define tap_failed (tap_counts_->failed)

__attribute__((unused, format(printf, 4, 5)))
static bool tap_ok_at(bool ok, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", ok ? "" : "not ", ++tap_n);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	if (!ok) {
		printf("# failed at %s:%d\n", file, line);
		tap_failed++;
	}
	fflush(stdout);
	return ok;
}

#define tap_ok(cond, ...) tap_ok_at(!!(cond), __FILE__, __LINE__, __VA_ARGS__)
#define tap_eq(got, want, ...) \
	do { \
		long long tap_g_ = (long long)(got), tap_w_ = (long long)(want); \
		if (!tap_ok(tap_g_ == tap_w_, __VA_ARGS__)) \
			printf("# got %lld, want %lld\n", tap_g_, tap_w_); \
	} while (0)
#define tap_skip(why, ...) \
	do { \
		printf("ok %d - ", ++tap_n); \
		printf(__VA_ARGS__); \
		printf(" # SKIP %s\n", why); \
	} while (0)

__attribute__((unused)) static int tap_done(void)
{
	printf("1..%d\n", tap_n);
	return tap_failed != 0;
}

#endif
