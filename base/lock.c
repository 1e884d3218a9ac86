/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"

#define SPIN_ROUNDS 200

static uint32_t word_cas(uint32_t *w, uint32_t old, uint32_t new)
{
	__atomic_compare_exchange_n(w, &old, new, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	return old;
}

void sbx_mutex_lock_slow(struct sbx_mutex *m)
{
	for (int i = 0; i < SPIN_ROUNDS; i++) {
		__builtin_ia32_pause();
		if (word_cas(&m->word, 0, 1) == 0)
			return;
	}
	while (__atomic_exchange_n(&m->word, 2, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_futex, &m->word, FUTEX_WAIT_PRIVATE, 2, NULL);
}

void sbx_mutex_unlock_slow(struct sbx_mutex *m)
{
	syscall(SYS_futex, &m->word, FUTEX_WAKE_PRIVATE, 1);
}
