/* SPDX-License-Identifier: Apache-2.0 */
#include "gofer/follow.h"

#include "base/host/sched.h"

#define NEED_MIN 4
#define NEED_MAX 1024
#define LONG     16 /* a turn of so many times what it took to begin it was worth it */

void follow_start(struct follow *f)
{
	*f = (struct follow){ .need = NEED_MIN, .on = host_cpu_count() > 1 && host_cpu_remember() == 0 };
}

int follow_decide(struct follow *f, uint32_t cpu)
{
	bool let_go = f->bound && cpu != f->cpu;

	if (cpu && cpu == f->cpu) {
		if (f->count < UINT32_MAX)
			f->count++;
		if (f->bound || f->count < f->need)
			return 0;
		f->bound = true;
		return 1;
	}
	if (let_go && f->count / LONG >= f->need)
		f->need = NEED_MIN;
	else if (let_go && f->need < NEED_MAX)
		f->need *= 2;
	f->bound = false;
	f->cpu = cpu;
	f->count = cpu != 0;
	return let_go ? -1 : 0;
}

void follow_request(struct follow *f, uint32_t cpu)
{
	int r = f->on ? follow_decide(f, cpu) : 0;

	if (r > 0)
		f->on = host_cpu_bind(0, cpu - 1) == 0; /* none that we may use: it will not be better next time */
	else if (r < 0)
		f->on = host_cpu_unbind(0) == 0;
}
