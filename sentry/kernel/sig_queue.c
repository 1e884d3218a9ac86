/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/sig_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "sentry/abi/signal.h"

static unsigned n_heap_entries;

void sigqueue_init(struct sigqueue *q)
{
	q->set = 0;
	list_init(&q->entries);
}

unsigned sigqueue_count(void)
{
	return n_heap_entries;
}

/* Takes the entry off its queue; a heap entry is freed, a timer's is told when its signal is to be
 * delivered. */
static void entry_drop(struct sig_entry *e, struct linux_siginfo *deliver)
{
	list_del(&e->node);
	if (e->taken) {
		if (deliver)
			e->taken(e, deliver);
		return;
	}
	BUG_ON(n_heap_entries == 0);
	n_heap_entries--;
	free(e);
}

void sigqueue_flush(struct sigqueue *q, uint64_t set)
{
	struct sig_entry *e, *tmp;

	if (!(q->set & set))
		return;
	q->set &= ~set;
	list_for_each_entry_safe(e, tmp, &q->entries, node)
		if (SIG_BIT(e->info.si_signo) & set)
			entry_drop(e, NULL);
}

void sigqueue_add_entry(struct sigqueue *q, int sig, struct sig_entry *e)
{
	list_add_tail(&q->entries, &e->node);
	e->q = q;
	q->set |= SIG_BIT(sig);
}

int sigqueue_add(struct sigqueue *q, int sig, const struct linux_siginfo *info, uint64_t limit)
{
	struct sig_entry *e = NULL;

	if (sig < SIG_RTMIN && (q->set & SIG_BIT(sig)))
		return 0;
	/* Standard signals of the kernel and of kill(2) coalesce, so they may pass the limit: at
	 * most 31 a queue. */
	if (n_heap_entries < limit || (sig < SIG_RTMIN && info->si_code >= 0))
		e = malloc(sizeof(*e));
	if (!e) {
		if (sig >= SIG_RTMIN && info->si_code != LINUX_SI_USER)
			return -EAGAIN;
		q->set |= SIG_BIT(sig);
		return 0;
	}
	n_heap_entries++;
	e->info = *info;
	e->info.si_signo = sig;
	e->taken = NULL;
	sigqueue_add_entry(q, sig, e);
	return 0;
}

/* The number to deliver first out of @pending (not 0). */
static int next_signal(uint64_t pending)
{
	if (pending & SIG_SYNC_SET)
		pending &= SIG_SYNC_SET;
	return __builtin_ctzll(pending) + 1;
}

/* An entry of @sig was taken: is there another? */
static void update_set(struct sigqueue *q, int sig)
{
	struct sig_entry *e;

	q->set &= ~SIG_BIT(sig);
	list_for_each_entry(e, &q->entries, node)
		if (e->info.si_signo == sig) {
			q->set |= SIG_BIT(sig);
			break;
		}
}

void sigqueue_remove_entry(struct sig_entry *e)
{
	if (list_empty(&e->node))
		return;
	list_del(&e->node);
	update_set(e->q, e->info.si_signo);
}

static void take_entry(struct sigqueue *q, struct sig_entry *e, struct linux_siginfo *info)
{
	int sig = e->info.si_signo;

	*info = e->info;
	entry_drop(e, info);
	update_set(q, sig);
}

int sigqueue_take(struct sigqueue *q, uint64_t set, struct linux_siginfo *info)
{
	struct sig_entry *e;
	int sig;

	if (!(q->set & set))
		return 0;
	sig = next_signal(q->set & set);
	list_for_each_entry(e, &q->entries, node)
		if (e->info.si_signo == sig) {
			take_entry(q, e, info);
			return sig;
		}
	q->set &= ~SIG_BIT(sig);
	memset(info, 0, sizeof(*info));
	info->si_signo = sig;
	info->si_code = LINUX_SI_USER;
	return sig;
}

int sigqueue_take_fault(struct sigqueue *q, uint64_t set, struct linux_siginfo *info)
{
	struct sig_entry *e;

	if (!(q->set & set & SIG_SYNC_SET))
		return 0;
	list_for_each_entry(e, &q->entries, node)
		if ((SIG_BIT(e->info.si_signo) & set & SIG_SYNC_SET) &&
		    e->info.si_code > LINUX_SI_USER) {
			int sig = e->info.si_signo;

			take_entry(q, e, info);
			return sig;
		}
	return 0;
}
