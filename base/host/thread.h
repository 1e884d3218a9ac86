/* SPDX-License-Identifier: Apache-2.0 */
/* Host threads of our own processes: few, started before confinement, all signals blocked, without
 * capabilities. */
#ifndef SBX_BASE_HOST_THREAD_H
#define SBX_BASE_HOST_THREAD_H

#include <pthread.h>
#include <stddef.h>

#include "base/macros.h"

struct host_thread {
	pthread_t id;
	void (*fn)(void *arg);
	void *arg;
	size_t stack_size; /* 0: enough for one that waits and notes */
};

/* @th must live until host_thread_join(). 0 or -errno. */
MUST_CHECK int host_thread_start(struct host_thread *th, const char *name, void (*fn)(void *arg), void *arg);
void host_thread_join(struct host_thread *th);
/* Waits until all threads that were started have given up their capabilities: before a filter that would not let
 * them. */
void host_threads_settle(void);

#endif
