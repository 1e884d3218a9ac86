/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/seccomp/load.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/seccomp/filters.h"

#define FILTER(name)                                                                               \
	{                                                                                          \
		{ ARRAY_SIZE(filter_##name##_kill), (struct sock_filter *)filter_##name##_kill },  \
		{                                                                                  \
			ARRAY_SIZE(filter_##name##_log), (struct sock_filter *)filter_##name##_log \
		}                                                                                  \
	}

/* [0] kills, [1] logs. The kernel only reads the instructions. */
static const struct sock_fprog filters[][2] = {
	[FILTER_SBX] = FILTER(sbx),
	[FILTER_SENTRY] = FILTER(sentry),
	[FILTER_SENTRY_PTRACE] = FILTER(sentry_ptrace),
	[FILTER_SENTRY_KVM] = FILTER(sentry_kvm),
	[FILTER_GOFER] = FILTER(gofer),
};
static_assert(ARRAY_SIZE(filters) == FILTER_COUNT, "a filter for each id");

#ifdef SBX_SANITIZED
/* The leak check at exit traces its own process, which no filter of ours allows. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

int seccomp_filter_load(enum seccomp_filter_id id, bool log)
{
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
	                 &filters[id][log]);

	if (r < 0)
		return -errno;
	return r > 0 ? -EBUSY : 0; /* the thread that could not be put under it */
}

size_t seccomp_filter_size(enum seccomp_filter_id id)
{
	return filters[id][0].len;
}
