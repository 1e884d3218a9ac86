/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and CPU time of a sandbox's processes, read from /proc: for hosts where no cgroup does it.
 */
#ifndef SBX_TOOLS_MONITOR_USAGE_H
#define SBX_TOOLS_MONITOR_USAGE_H

#include <stdint.h>
#include <sys/types.h>

struct usage {
	int proc;        /* fd of /proc; -1 when there is none */
	uint64_t memory; /* bytes of the stubs at the last sample */
	uint64_t cpu_ms; /* of sentry and stubs, those that ended included where the host tells;
	                    never falls */
	uint64_t memory_peak;
};

void usage_init(struct usage *u);
void usage_fini(struct usage *u);

/*
 * Reads the descendants of @sentry. Pages shared by fork are counted once for each process while
 * the sum stays below
 * @limit, exactly (proportional set size) above it, which costs more.
 */
void usage_sample(struct usage *u, pid_t sentry, uint64_t limit);

#endif
