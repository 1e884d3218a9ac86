/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/thread.h"

#include <linux/capability.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (64u * 1024)

static uint32_t n_started, n_settled; /* atomic */

static void *thread_main(void *p)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
	struct host_thread *th = p;

	/* Each thread has its own, and what the process gives up later is given up by one thread. */
	if (syscall(SYS_capset, &hdr, none) < 0)
		__builtin_trap(); /* to have none is always allowed */
	__atomic_add_fetch(&n_settled, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &n_settled, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	th->fn(th->arg);
	return NULL;
}

int host_thread_start(struct host_thread *th, const char *name, void (*fn)(void *arg), void *arg)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int r;

	th->fn = fn;
	th->arg = arg;
	r = pthread_attr_init(&attr);
	if (r)
		return -r;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
#if !defined(SBX_SANITIZED)
	/* Too small for this host: the default serves. */
	(void)pthread_attr_setstacksize(&attr, th->stack_size ? th->stack_size : STACK_BYTES);
#endif
	r = pthread_create(&th->id, &attr, thread_main, th);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (r)
		return -r;
	__atomic_add_fetch(&n_started, 1, __ATOMIC_SEQ_CST);
	(void)pthread_setname_np(th->id, name);
	return 0;
}

void host_threads_settle(void)
{
	uint32_t n;

	while ((n = __atomic_load_n(&n_settled, __ATOMIC_SEQ_CST)) != __atomic_load_n(&n_started, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &n_settled, FUTEX_WAIT_PRIVATE, n, NULL, NULL, 0);
}

void host_thread_join(struct host_thread *th)
{
	pthread_join(th->id, NULL);
}
