/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of /proc that are about the whole sandbox. Nothing here tells of the host but what a program needs to size
 * itself: the processors it may use and its memory limit.
 */
#include <cpuid.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sentry/fs/proc/proc_priv.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timer.h"
#include "sentry/vfs/pipe.h"
#include "sentry/vfs/vfs.h"

#define MEM_DEFAULT (2ull << 30) /* shown when there is no limit */
#define TEXT(name_, fn) { .name = name_, .mode = 0444, .kind = PROC_TEXT, .text = fn }
#define DIRECTORY(name_, list) { .name = name_, .mode = 0555, .kind = PROC_DIR, .children = list }

static int self_link(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	struct task *c = kernel.current;

	if (!c)
		return -ENOENT;
	strbuf_printf(b, "%d", c->tg->tgid);
	return 0;
}

static int thread_self_link(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	struct task *c = kernel.current;

	if (!c)
		return -ENOENT;
	strbuf_printf(b, "%d/task/%d", c->tg->tgid, c->tid);
	return 0;
}

static int mounts_link(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "self/mounts");
	return 0;
}

static int net_link(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "self/net");
	return 0;
}

static int meminfo_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	unsigned long long total = (kernel.limits.memory ? kernel.limits.memory : MEM_DEFAULT) / 1024;
	unsigned long long used = MIN(kernel.counters.store_bytes / 1024, (uint64_t)total), left = total - used;

	strbuf_printf(b, "MemTotal:       %8llu kB\nMemFree:        %8llu kB\nMemAvailable:   %8llu kB\n", total, left,
	              left);
	strbuf_printf(b, "Buffers:               0 kB\nCached:         %8llu kB\nSwapCached:            0 kB\n", used);
	strbuf_puts(b, "Active:                0 kB\nInactive:              0 kB\nSwapTotal:             0 kB\n"
		       "SwapFree:              0 kB\nDirty:                 0 kB\nWriteback:             0 kB\n"
		       "AnonPages:             0 kB\nMapped:                0 kB\n");
	strbuf_printf(b, "Shmem:          %8llu kB\nSlab:                  0 kB\nSReclaimable:          0 kB\n", used);
	strbuf_printf(b, "CommitLimit:    %8llu kB\nCommitted_AS:          0 kB\nVmallocTotal:          0 kB\n"
			 "HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n", total);
	return 0;
}

/* The counters that vmstat(8), top and monitoring read; there is neither swap nor a page cache of the guest's own. */
static int vmstat_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	unsigned long long total = (kernel.limits.memory ? kernel.limits.memory : MEM_DEFAULT) / 4096;
	unsigned long long used = MIN(kernel.counters.store_bytes / 4096, (uint64_t)total);

	strbuf_printf(b, "nr_free_pages %llu\nnr_shmem %llu\nnr_dirty 0\nnr_writeback 0\n", total - used, used);
	strbuf_puts(b, "pgpgin 0\npgpgout 0\npswpin 0\npswpout 0\npgalloc_normal 0\npgfree 0\npgfault 0\npgmajfault 0\n"
		       "oom_kill 0\n");
	return 0;
}

struct flag_bit {
	const char *name;
	uint8_t reg; /* 0: 1.edx 1: 1.ecx 2: 7.ebx 3: 7.ecx 4: 80000001.edx 5: 80000001.ecx */
	uint8_t bit;
};

static const struct flag_bit flag_bits[] = {
	{ "fpu", 0, 0 },      { "tsc", 0, 4 },       { "cx8", 0, 8 },      { "cmov", 0, 15 },     { "clflush", 0, 19 },
	{ "mmx", 0, 23 },     { "fxsr", 0, 24 },     { "sse", 0, 25 },     { "sse2", 0, 26 },     { "ht", 0, 28 },
	{ "syscall", 4, 11 }, { "nx", 4, 20 },       { "rdtscp", 4, 27 },  { "lm", 4, 29 },       { "pni", 1, 0 },
	{ "pclmulqdq", 1, 1 },{ "ssse3", 1, 9 },     { "fma", 1, 12 },     { "cx16", 1, 13 },     { "sse4_1", 1, 19 },
	{ "sse4_2", 1, 20 },  { "movbe", 1, 22 },    { "popcnt", 1, 23 },  { "aes", 1, 25 },      { "xsave", 1, 26 },
	{ "avx", 1, 28 },     { "f16c", 1, 29 },     { "rdrand", 1, 30 },  { "hypervisor", 1, 31 }, { "lahf_lm", 5, 0 },
	{ "abm", 5, 5 },      { "bmi1", 2, 3 },      { "avx2", 2, 5 },     { "bmi2", 2, 8 },      { "erms", 2, 9 },
	{ "avx512f", 2, 16 }, { "avx512dq", 2, 17 }, { "rdseed", 2, 18 },  { "adx", 2, 19 },      { "avx512cd", 2, 28 },
	{ "sha_ni", 2, 29 },  { "avx512bw", 2, 30 }, { "avx512vl", 2, 31 }, { "vaes", 3, 9 },
};

static int cpuinfo_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	unsigned a, bx, c, d, r[6] = { 0 }, sig = 0, maxl;
	char vendor[13] = "", brand[49] = "";

	maxl = __get_cpuid_max(0, NULL);
	if (__get_cpuid(0, &a, &bx, &c, &d)) {
		memcpy(vendor, &bx, 4);
		memcpy(vendor + 4, &d, 4);
		memcpy(vendor + 8, &c, 4);
	}
	if (__get_cpuid(1, &sig, &bx, &r[1], &r[0]) && maxl >= 7)
		__get_cpuid_count(7, 0, &a, &r[2], &r[3], &d);
	__get_cpuid(0x80000001, &a, &bx, &r[5], &r[4]);
	for (unsigned i = 0; i < 3; i++) {
		unsigned w[4] = { 0 };

		__get_cpuid(0x80000002 + i, &w[0], &w[1], &w[2], &w[3]);
		memcpy(brand + 16 * i, w, 16);
	}
	for (unsigned cpu = 0; cpu < kernel.n_cpus; cpu++) {
		unsigned family = (sig >> 8 & 15) + ((sig >> 8 & 15) == 15 ? sig >> 20 & 255 : 0);

		strbuf_printf(b,
		              "processor\t: %u\nvendor_id\t: %s\ncpu family\t: %u\nmodel\t\t: %u\nmodel name\t: %s\n"
		              "stepping\t: %u\ncpu MHz\t\t: 2000.000\ncache size\t: 1024 KB\nphysical id\t: "
		              "0\nsiblings\t: %u\n"
		              "core id\t\t: %u\ncpu cores\t: %u\nfpu\t\t: yes\nflags\t\t:",
		              cpu, vendor, family, (sig >> 4 & 15) | (sig >> 12 & 0xf0), brand, sig & 15, kernel.n_cpus,
		              cpu, kernel.n_cpus);
		for (size_t i = 0; i < ARRAY_SIZE(flag_bits); i++) {
			if (r[flag_bits[i].reg] >> flag_bits[i].bit & 1)
				strbuf_printf(b, " %s", flag_bits[i].name);
		}
		strbuf_puts(b, "\nbogomips\t: 4000.00\nclflush size\t: 64\ncache_alignment\t: 64\n"
			       "address sizes\t: 46 bits physical, 48 bits virtual\n\n");
	}
	return 0;
}

static uint64_t uptime_ns(void)
{
	return clock_mono_ns() - kernel.boot_ns;
}

static int uptime_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	uint64_t cs = uptime_ns() / 10000000;

	strbuf_printf(b, "%llu.%02llu %llu.%02llu\n", (unsigned long long)(cs / 100), (unsigned long long)(cs % 100),
	              0ull, 0ull);
	return 0;
}

static int loadavg_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_printf(b, "0.00 0.00 0.00 %u/%u %d\n", kernel.counters.tasks, kernel.counters.tasks,
	              kernel.current ? kernel.current->tid : 1);
	return 0;
}

static int stat_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	uint64_t user, sys, idle = uptime_ns() / 10000000;

	kernel_cpu_times(&user, &sys);
	user /= 10000000;
	sys /= 10000000;
	strbuf_printf(b, "cpu  %llu 0 %llu %llu 0 0 0 0 0 0\n", (unsigned long long)user, (unsigned long long)sys,
		      (unsigned long long)idle);
	for (unsigned i = 0; i < kernel.n_cpus; i++)
		strbuf_printf(b, "cpu%u %llu 0 %llu %llu 0 0 0 0 0 0\n", i, (unsigned long long)(user / kernel.n_cpus),
			      (unsigned long long)(sys / kernel.n_cpus), (unsigned long long)idle);
	strbuf_printf(b, "intr 0\nctxt 0\nbtime %llu\nprocesses %u\nprocs_running %u\nprocs_blocked 0\n",
		      (unsigned long long)((clock_real_ns() - uptime_ns()) / NSEC_PER_SEC), kernel.counters.tasks_peak,
		      kernel.counters.tasks);
	return 0;
}

static int version_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_printf(b, "Linux version %s (sbx) %s\n", KERNEL_RELEASE, KERNEL_VERSION);
	return 0;
}

static int filesystems_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "nodev\tproc\nnodev\tsysfs\nnodev\ttmpfs\nnodev\tdevtmpfs\nnodev\toverlay\nnodev\tpipefs\nnodev"
	               "\tsockfs\n");
	return 0;
}

static int cmdline_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_putc(b, '\n');
	return 0;
}

static int devices_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "Character devices:\n  1 mem\n  5 /dev/tty\n136 pts\n\nBlock devices:\n");
	return 0;
}

static int swaps_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
	return 0;
}

static int empty_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	return 0;
}

/* Files below sys/ that hold one constant; the node's name finds the value. */
static const struct {
	const char *name, *value;
} constants[] = {
	{ "ostype", "Linux" },
	{ "osrelease", KERNEL_RELEASE },
	{ "version", KERNEL_VERSION },
	{ "pid_max", "4194304" },
	{ "threads-max", "65536" },
	{ "cap_last_cap", "40" },
	{ "ngroups_max", "64" },
	{ "randomize_va_space", "2" },
	{ "core_pattern", "core" },
	{ "core_uses_pid", "0" },
	{ "shmmax", "18446744073692774399" },
	{ "shmall", "18446744073692774399" },
	{ "shmmni", "4096" },
	{ "sem", "32000\t1024000000\t500\t32000" },
	{ "msgmax", "8192" },
	{ "msgmni", "32000" },
	{ "overflowuid", "65534" },
	{ "overflowgid", "65534" },
	{ "overcommit_memory", "1" },
	{ "overcommit_ratio", "50" },
	{ "max_map_count", "65530" },
	{ "mmap_min_addr", "65536" },
	{ "swappiness", "60" },
	{ "file-max", "1048576" },
	{ "file-nr", "0\t0\t1048576" },
	{ "nr_open", "1048576" },
	{ "pipe-max-size", "1048576" },
	{ "max_user_watches", "65536" },
	{ "max_user_instances", "128" },
	{ "max_queued_events", "16384" },
	{ "somaxconn", "4096" },
};

static int constant_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(constants); i++) {
		if (!strcmp(constants[i].name, pi->node->name))
			strbuf_printf(b, "%s\n", constants[i].value);
	}
	return 0;
}

static int hostname_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_printf(b, "%s\n", kernel.hostname);
	return 0;
}

static int domainname_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_printf(b, "%s\n", kernel.domainname[0] ? kernel.domainname : "(none)");
	return 0;
}

static void uuid_print(struct strbuf *b, uint8_t u[16])
{
	u[6] = (uint8_t)((u[6] & 0x0f) | 0x40);
	u[8] = (uint8_t)((u[8] & 0x3f) | 0x80);
	for (int i = 0; i < 16; i++)
		strbuf_printf(b, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
	strbuf_putc(b, '\n');
}

static int uuid_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	uint8_t u[16];

	kernel_random(u, sizeof(u));
	uuid_print(b, u);
	return 0;
}

static int boot_id_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	static uint8_t id[16];
	uint8_t u[16];

	if (!id[0] && !id[15])
		kernel_random(id, sizeof(id));
	memcpy(u, id, sizeof(u));
	uuid_print(b, u);
	return 0;
}

static int entropy_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "256\n");
	return 0;
}

static const struct proc_node random_children[] = {
	TEXT("boot_id", boot_id_text), TEXT("entropy_avail", entropy_text), TEXT("poolsize", entropy_text),
	TEXT("uuid", uuid_text), { 0 },
};

static const struct proc_node sys_kernel_children[] = {
	TEXT("cap_last_cap", constant_text), TEXT("core_pattern", constant_text), TEXT("core_uses_pid", constant_text),
	TEXT("domainname", domainname_text), TEXT("hostname", hostname_text), TEXT("msgmax", constant_text),
	TEXT("msgmni", constant_text), TEXT("ngroups_max", constant_text), TEXT("osrelease", constant_text),
	TEXT("ostype", constant_text), TEXT("overflowgid", constant_text), TEXT("overflowuid", constant_text),
	TEXT("pid_max", constant_text), DIRECTORY("random", random_children), TEXT("randomize_va_space", constant_text),
	TEXT("sem", constant_text), TEXT("shmall", constant_text), TEXT("shmmax", constant_text),
	TEXT("shmmni", constant_text), TEXT("threads-max", constant_text), TEXT("version", constant_text), { 0 },
};

static const struct proc_node sys_vm_children[] = {
	TEXT("max_map_count", constant_text),     TEXT("mmap_min_addr", constant_text),
	TEXT("overcommit_memory", constant_text), TEXT("overcommit_ratio", constant_text),
	TEXT("swappiness", constant_text),        { 0 },
};

static const struct proc_node sys_epoll_children[] = { TEXT("max_user_watches", constant_text), { 0 } };
static const struct proc_node sys_inotify_children[] = {
	TEXT("max_queued_events", constant_text), TEXT("max_user_instances", constant_text),
	TEXT("max_user_watches", constant_text), { 0 },
};

static const struct proc_node sys_fs_children[] = {
	DIRECTORY("epoll", sys_epoll_children), TEXT("file-max", constant_text), TEXT("file-nr", constant_text),
	DIRECTORY("inotify", sys_inotify_children), TEXT("nr_open", constant_text), TEXT("overflowgid", constant_text),
	TEXT("overflowuid", constant_text), TEXT("pipe-max-size", constant_text), { 0 },
};

static const struct proc_node sys_net_core_children[] = { TEXT("somaxconn", constant_text), { 0 } };
static const struct proc_node sys_net_children[] = { DIRECTORY("core", sys_net_core_children), { 0 } };

static const struct proc_node sys_children[] = {
	DIRECTORY("fs", sys_fs_children), DIRECTORY("kernel", sys_kernel_children), DIRECTORY("net", sys_net_children),
	DIRECTORY("vm", sys_vm_children), { 0 },
};

static int net_dev_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "Inter-|   Receive                                                |  Transmit\n"
	               " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
	               "fifo colls carrier compressed\n"
	               "    lo:       0       0    0    0    0     0          0         0        0       0    0    0   "
	               " 0     0       0          0\n");
	return 0;
}

extern const struct proc_node proc_net_children[];
const struct proc_node proc_net_children[] = {
	TEXT("dev", net_dev_text), TEXT("if_inet6", empty_text), TEXT("route", empty_text), TEXT("tcp", empty_text),
	TEXT("tcp6", empty_text), TEXT("udp", empty_text), TEXT("udp6", empty_text), TEXT("unix", empty_text), { 0 },
};

const struct proc_node proc_root_children[] = {
	TEXT("cmdline", cmdline_text),
	TEXT("cpuinfo", cpuinfo_text),
	TEXT("devices", devices_text),
	TEXT("filesystems", filesystems_text),
	TEXT("loadavg", loadavg_text),
	TEXT("meminfo", meminfo_text),
	{ .name = "mounts", .mode = 0777, .kind = PROC_LINK, .link = mounts_link },
	{ .name = "net", .mode = 0777, .kind = PROC_LINK, .link = net_link },
	{ .name = "self", .mode = 0777, .kind = PROC_LINK, .link = self_link },
	TEXT("stat", stat_text),
	TEXT("swaps", swaps_text),
	DIRECTORY("sys", sys_children),
	{ .name = "thread-self", .mode = 0777, .kind = PROC_LINK, .link = thread_self_link },
	TEXT("uptime", uptime_text),
	TEXT("version", version_text),
	TEXT("vmstat", vmstat_text),
	{ 0 },
};
