/* SPDX-License-Identifier: Apache-2.0 */
/* Host system calls of the platforms that use stubs, raw: the result is the value or -errno. */
#ifndef SBX_PLATFORM_STUB_HOSTCALL_H
#define SBX_PLATFORM_STUB_HOSTCALL_H

#include <stdint.h>
#include <sys/syscall.h>

static inline long hostcall6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#define HOSTCALL_(nr, a, b, c, d, e, f, ...) \
	hostcall6((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define HOSTCALL(nr, ...) HOSTCALL_(nr, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)

#endif
