/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/input_wait.h"

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timer.h"

bool input_wait_reported;

static struct ktimer timer;
static uint64_t runs_at_start;

void kernel_note_input_wait(struct task *t, bool waiting)
{
	if (t->op.input_wait == waiting)
		return;
	t->op.input_wait = waiting;
	if (waiting)
		kernel.input_waiters++;
	else
		kernel.input_waiters--;
}

static void report(bool waiting)
{
	input_wait_reported = waiting;
	if (kernel.report && kernel.report->waiting_for_input)
		kernel.report->waiting_for_input(waiting);
}

void input_wait_over(void)
{
	report(false);
}

static bool any_can_run(void)
{
	struct tgroup *tg;
	struct task *t;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		list_for_each_entry(t, &tg->tasks, tg_node) {
			/* A vfork parent waits for its child, which is looked at itself. */
			if (t->state == TASK_RUNNING || t->state == TASK_RUNNABLE)
				return true;
		}
	}
	return false;
}

static void timer_start(void)
{
	runs_at_start = kernel.n_runs;
	(void)ktimer_arm(&timer, clock_mono_ns() + INPUT_WAIT_NS); /* no memory: no report */
}

static void timer_fire(struct ktimer *kt)
{
	(void)kt;
	if (!kernel.input_waiters || kernel.shutting_down)
		return;
	if (kernel.n_runs == runs_at_start && !any_can_run())
		report(true);
	else
		timer_start();
}

void input_wait_idle(void)
{
	if (!kernel.input_waiters || input_wait_reported || timer.index)
		return;
	timer.fire = timer_fire;
	timer_start();
}
