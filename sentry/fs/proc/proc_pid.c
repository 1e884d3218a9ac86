/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a pid or tid directory: proc(5). */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sentry/fs/proc/proc_priv.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/fdtable.h"

#define NS_PER_TICK   10000000ull /* USER_HZ is 100 */
#define GUEST_TEXT_MAX 131072u    /* of cmdline and environ */

static char state_letter(const struct task *t)
{
	switch (t->state) {
	case TASK_RUNNING:
	case TASK_RUNNABLE:
		return 'R';
	case TASK_BLOCKED:
		return 'S';
	case TASK_STOPPED:
		return 'T';
	default:
		return 'Z';
	}
}

static pid_t ppid_of(const struct task *t)
{
	return t->tg->parent ? t->tg->parent->tgid : 0;
}

static void sig_sets(const struct task *t, uint64_t *ignored, uint64_t *caught)
{
	*ignored = *caught = 0;
	if (!t->sighand)
		return;
	for (int i = 0; i < NSIG_LINUX; i++) {
		if (t->sighand->act[i].handler == 1)
			*ignored |= 1ull << i;
		else if (t->sighand->act[i].handler)
			*caught |= 1ull << i;
	}
}

static int stat_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	const struct mm_layout none = { 0 }, *l = t->mm ? mm_layout(t->mm) : &none;
	struct mm_stats st = { 0 };
	uint64_t user, sys, ignored, caught;

	if (t->mm)
		mm_stats(t->mm, &st);
	if (pi->thread)
		task_times(t, &user, &sys);
	else
		tgroup_times(t->tg, &user, &sys);
	sig_sets(t, &ignored, &caught);
	strbuf_printf(b, "%d (%s) %c %d %d %d 0 -1 4194304 0 0 0 0 %llu %llu %llu %llu %d %d %u 0 %llu %llu %llu %llu ",
		      t->tid, t->comm, state_letter(t), ppid_of(t), t->tg->pgid, t->tg->sid,
		      (unsigned long long)(user / NS_PER_TICK), (unsigned long long)(sys / NS_PER_TICK),
		      (unsigned long long)(t->tg->child_utime_ns / NS_PER_TICK),
		      (unsigned long long)(t->tg->child_stime_ns / NS_PER_TICK), 20 + t->nice, t->nice, t->tg->n_tasks,
		      (unsigned long long)((t->start_ns - kernel.boot_ns) / NS_PER_TICK), (unsigned long long)st.total,
		      (unsigned long long)(st.rss / PAGE_SIZE), (unsigned long long)t->tg->rlim[5].cur);
	strbuf_printf(
		b,
		"%llu %llu %llu 0 0 %llu %llu %llu %llu 0 0 0 %d 0 0 0 0 0 0 %llu %llu %llu %llu %llu %llu %llu %d\n",
		(unsigned long long)l->start_code, (unsigned long long)l->end_code, (unsigned long long)l->start_stack,
		(unsigned long long)(sig_pending_set(t) & 0x7fffffff),
		(unsigned long long)(t->sig_blocked & 0x7fffffff), (unsigned long long)(ignored & 0x7fffffff),
		(unsigned long long)(caught & 0x7fffffff), t->tg->exit_signal, (unsigned long long)l->start_data,
		(unsigned long long)l->end_data, (unsigned long long)l->start_brk, (unsigned long long)l->arg_start,
		(unsigned long long)l->arg_end, (unsigned long long)l->env_start, (unsigned long long)l->env_end,
		t->exit_code);
	return 0;
}

static void status_ids(struct strbuf *b, const struct cred *c)
{
	strbuf_printf(b, "Uid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\n", c->uid, c->euid, c->suid, c->fsuid, c->gid,
	              c->egid, c->sgid, c->fsgid);
}

static void status_caps(struct strbuf *b, const struct cred *c)
{
	strbuf_puts(b, "Groups:\t");
	for (unsigned i = 0; i < c->n_groups; i++)
		strbuf_printf(b, "%u ", c->groups[i]);
	strbuf_putc(b, '\n');
}

static const char *state_name(char c)
{
	return c == 'R' ? "R (running)" : c == 'S' ? "S (sleeping)" : c == 'T' ? "T (stopped)" : "Z (zombie)";
}

static int status_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	struct mm_stats st = { 0 };
	uint64_t ignored, caught;
	const struct cred *c = t->cred;

	strbuf_printf(
		b, "Name:\t%s\nUmask:\t%04o\nState:\t%s\nTgid:\t%d\nNgid:\t0\nPid:\t%d\nPPid:\t%d\nTracerPid:\t0\n",
		t->comm, t->fs ? t->fs->umask : 022, state_name(state_letter(t)), t->tg->tgid, t->tid, ppid_of(t));
	status_ids(b, c);
	strbuf_printf(b, "FDSize:\t64\n");
	status_caps(b, c);
	if (t->mm) {
		mm_stats(t->mm, &st);
		strbuf_printf(b,
		              "VmPeak:\t%8llu kB\nVmSize:\t%8llu kB\nVmLck:\t       0 kB\nVmPin:\t       0 "
		              "kB\nVmHWM:\t%8llu kB\nVmRSS:\t%8llu kB\n",
		              (unsigned long long)st.total / 1024, (unsigned long long)st.total / 1024,
		              (unsigned long long)st.rss / 1024, (unsigned long long)st.rss / 1024);
		strbuf_printf(b, "VmData:\t%8llu kB\nVmStk:\t%8llu kB\nVmExe:\t%8llu kB\nVmSwap:\t       0 kB\n",
			      (unsigned long long)st.data / 1024, (unsigned long long)st.stack / 1024,
			      (unsigned long long)st.text / 1024);
	}
	sig_sets(t, &ignored, &caught);
	strbuf_printf(
		b,
		"Threads:\t%u\nSigQ:\t0/"
	        "%llu\nSigPnd:\t%016llx\nShdPnd:\t%016llx\nSigBlk:\t%016llx\nSigIgn:\t%016llx\nSigCgt:\t%016llx\n",
		t->tg->n_tasks, (unsigned long long)t->tg->rlim[11].cur, (unsigned long long)sig_pending_set(t), 0ull,
		(unsigned long long)t->sig_blocked, (unsigned long long)ignored, (unsigned long long)caught);
	strbuf_printf(b, "CapInh:\t%016llx\nCapPrm:\t%016llx\nCapEff:\t%016llx\nCapBnd:\t%016llx\nCapAmb:\t%016llx\n",
		      (unsigned long long)c->cap_inheritable, (unsigned long long)c->cap_permitted,
		      (unsigned long long)c->cap_effective, (unsigned long long)c->cap_bounding,
		      (unsigned long long)c->cap_ambient);
	strbuf_printf(b,
	              "NoNewPrivs:\t%d\nSeccomp:\t0\nSeccomp_filters:\t0\nCpus_allowed:\t%llx\nCpus_allowed_list:\t0-%"
	              "u\nMems_allowed_list:\t0\n",
	              c->no_new_privs, (unsigned long long)t->affinity[0], kernel.n_cpus - 1);
	strbuf_puts(b, "voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n");
	return 0;
}

static int statm_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	struct mm_stats st = { 0 };

	if (t->mm)
		mm_stats(t->mm, &st);
	strbuf_printf(b, "%llu %llu %llu %llu 0 %llu 0\n", (unsigned long long)(st.total / PAGE_SIZE),
	              (unsigned long long)(st.rss / PAGE_SIZE), (unsigned long long)(st.shared / PAGE_SIZE),
	              (unsigned long long)(st.text / PAGE_SIZE),
	              (unsigned long long)((st.data + st.stack) / PAGE_SIZE));
	return 0;
}

/* A range of the task's memory, as far as it can be read. */
static int guest_range(struct strbuf *b, struct task *t, uaddr_t from, uaddr_t to)
{
	char *buf;
	ssize_t n;

	if (!t->mm || to <= from)
		return 0;
	buf = malloc(MIN(to - from, (uaddr_t)GUEST_TEXT_MAX));
	if (!buf)
		return -ENOMEM;
	n = kernel.plat->read(mm_aspace(t->mm), from, buf, MIN(to - from, (uaddr_t)GUEST_TEXT_MAX));
	if (n > 0)
		strbuf_add(b, buf, (size_t)n);
	free(buf);
	return 0;
}

static int cmdline_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	return t->mm ? guest_range(b, t, mm_layout(t->mm)->arg_start, mm_layout(t->mm)->arg_end) : 0;
}

static int environ_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	return t->mm ? guest_range(b, t, mm_layout(t->mm)->env_start, mm_layout(t->mm)->env_end) : 0;
}

static int auxv_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	if (t->mm)
		strbuf_add(b, mm_layout(t->mm)->auxv, mm_layout(t->mm)->n_auxv * sizeof(uint64_t));
	return 0;
}

static int comm_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_printf(b, "%s\n", t->comm);
	return 0;
}

static int comm_store(struct proc_inode *pi, struct task *t, const char *s, size_t len)
{
	if (kernel.current && kernel.current->tg != t->tg)
		return -EINVAL; /* only threads of one process name each other */
	if (len && s[len - 1] == '\n')
		len--;
	len = MIN(len, (size_t)TASK_COMM_LEN - 1);
	memcpy(t->comm, s, len);
	t->comm[len] = '\0';
	return 0;
}

static int maps_any(struct strbuf *b, struct task *t, bool smaps)
{
	uint64_t cursor = 0;
	char *buf;

	if (!t->mm)
		return 0;
	buf = malloc(65536);
	if (!buf)
		return -ENOMEM;
	do {
		size_t n = mm_maps_text(t->mm, smaps, &cursor, buf, 65536);

		strbuf_add(b, buf, n);
	} while (cursor);
	free(buf);
	return 0;
}

static int maps_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	return maps_any(b, t, false);
}

static int smaps_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	return maps_any(b, t, true);
}

static int limits_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	static const struct {
		const char *name, *unit;
	} rows[RLIMIT_COUNT] = {
		{ "Max cpu time", "seconds" },       { "Max file size", "bytes" },
		{ "Max data size", "bytes" },        { "Max stack size", "bytes" },
		{ "Max core file size", "bytes" },   { "Max resident set", "bytes" },
		{ "Max processes", "processes" },    { "Max open files", "files" },
		{ "Max locked memory", "bytes" },    { "Max address space", "bytes" },
		{ "Max file locks", "locks" },       { "Max pending signals", "signals" },
		{ "Max msgqueue size", "bytes" },    { "Max nice priority", "" },
		{ "Max realtime priority", "" },     { "Max realtime timeout", "us" },
	};

	strbuf_printf(b, "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units");
	for (int i = 0; i < RLIMIT_COUNT; i++) {
		const struct rlimit_pair *r = &t->tg->rlim[i];
		char cur[24] = "unlimited", max[24] = "unlimited";

		if (r->cur != UINT64_MAX)
			snprintf(cur, sizeof(cur), "%llu", (unsigned long long)r->cur);
		if (r->max != UINT64_MAX)
			snprintf(max, sizeof(max), "%llu", (unsigned long long)r->max);
		strbuf_printf(b, "%-25s %-20s %-20s %-10s\n", rows[i].name, cur, max, rows[i].unit);
	}
	return 0;
}

static void mount_flags(struct strbuf *b, const struct mount *m)
{
	strbuf_printf(b, "%s%s%s%s,relatime", m->flags & MNT_RDONLY ? "ro" : "rw",
	              m->flags & MNT_NOSUID ? ",nosuid" : "", m->flags & MNT_NODEV ? ",nodev" : "",
	              m->flags & MNT_NOEXEC ? ",noexec" : "");
}

/* The path of a mount as @t's root sees it; false when it cannot be reached. */
static bool mount_path(const struct task *t, const struct mount *m, char *buf, size_t cap)
{
	struct path p = { m->parent ? m->parent : (struct mount *)m, m->parent ? m->mountpoint : m->root };

	return path_name(&p, t->fs ? &t->fs->root : NULL, buf, cap) > 0 && buf[0] == '/';
}

static int mounts_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	char buf[PATH_MAX_LINUX];
	struct mount *m;

	list_for_each_entry(m, &kernel.mnt_ns->mounts, node) {
		if (!mount_path(t, m, buf, sizeof(buf)))
			continue;
		strbuf_printf(b, "%s %s %s ", m->source ? m->source : "none", buf, m->sb->fstype);
		mount_flags(b, m);
		strbuf_puts(b, " 0 0\n");
	}
	return 0;
}

static int mountinfo_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	char buf[PATH_MAX_LINUX];
	struct mount *m;

	list_for_each_entry(m, &kernel.mnt_ns->mounts, node) {
		if (!mount_path(t, m, buf, sizeof(buf)))
			continue;
		strbuf_printf(b, "%u %u 0:%u / %s ", m->id, m->parent ? m->parent->id : 0, (unsigned)m->sb->dev, buf);
		mount_flags(b, m);
		strbuf_printf(b, " - %s %s %s\n", m->sb->fstype, m->source ? m->source : "none",
			      m->flags & MNT_RDONLY ? "ro" : "rw");
	}
	return 0;
}

static int personality_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_printf(b, "%08x\n", t->personality);
	return 0;
}

static int oom_score_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_printf(b, "%d\n", (int)t->tg->oom_score_adj);
	return 0;
}

static int oom_score_store(struct proc_inode *pi, struct task *t, const char *s, size_t len)
{
	char *end;
	long v = strtol(s, &end, 10);

	if (end == s || v < -1000 || v > 1000)
		return -EINVAL;
	if (v < (int)t->tg->oom_score_adj &&
	    !cred_has_cap(kernel.current ? kernel.current->cred : t->cred, CAP_SYS_RESOURCE))
		return -EACCES;
	t->tg->oom_score_adj = (uint32_t)v;
	return 0;
}

static int zero_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "0\n");
	return 0;
}

static int cgroup_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "0::/\n");
	return 0;
}

static int loginuid_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "4294967295");
	return 0;
}

static int io_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(
		b, "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n");
	return 0;
}

static int map_id_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "         0          0 4294967295\n");
	return 0;
}

static int setgroups_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "allow\n");
	return 0;
}

static int wchan_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_putc(b, '0');
	return 0;
}

static int path_link(struct strbuf *b, struct task *t, const struct path *p)
{
	char buf[PATH_MAX_LINUX];
	int n;

	if (!p->dentry)
		return -ENOENT;
	n = path_name(p, t->fs ? &t->fs->root : NULL, buf, sizeof(buf));
	if (n < 0)
		return n;
	strbuf_add(b, buf, (size_t)n);
	return 0;
}

static int path_follow(const struct path *p, struct path *out)
{
	if (!p->dentry)
		return -ENOENT;
	*out = *p;
	path_get(out);
	return 0;
}

static int cwd_link(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	return t->fs ? path_link(b, t, &t->fs->cwd) : -ENOENT;
}

static int cwd_follow(struct proc_inode *pi, struct task *t, struct path *out)
{
	return t->fs ? path_follow(&t->fs->cwd, out) : -ENOENT;
}

static int root_link(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	if (!t->fs)
		return -ENOENT;
	strbuf_putc(b, '/');
	return 0;
}

static int root_follow(struct proc_inode *pi, struct task *t, struct path *out)
{
	return t->fs ? path_follow(&t->fs->root, out) : -ENOENT;
}

static int exe_link(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	if (!t->tg->exe_path || !t->mm)
		return -ENOENT;
	strbuf_puts(b, t->tg->exe_path);
	return 0;
}

static int exe_follow(struct proc_inode *pi, struct task *t, struct path *out)
{
	/* The file itself: its name may stand for another by now. */
	struct file *f = t->mm ? mm_exe(t->mm) : NULL;

	return f ? file_place(f, &out->dentry, &out->mnt) : -ENOENT;
}

static int ns_link(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	/* One namespace of each kind: the numbers only need to be equal for all tasks. */
	strbuf_printf(b, "%s:[%u]", pi->node->name, 4026531835u + (unsigned)pi->node->name[0]);
	return 0;
}

static const struct proc_node ns_children[] = {
	{ .name = "cgroup", .mode = 0777, .look = true, .kind = PROC_LINK, .link = ns_link },
	{ .name = "ipc", .mode = 0777, .look = true, .kind = PROC_LINK, .link = ns_link },
	{ .name = "mnt", .mode = 0777, .look = true, .kind = PROC_LINK, .link = ns_link },
	{ .name = "net", .mode = 0777, .look = true, .kind = PROC_LINK, .link = ns_link },
	{ .name = "pid", .mode = 0777, .look = true, .kind = PROC_LINK, .link = ns_link },
	{ .name = "user", .mode = 0777, .look = true, .kind = PROC_LINK, .link = ns_link },
	{ .name = "uts", .mode = 0777, .look = true, .kind = PROC_LINK, .link = ns_link },
	{ 0 },
};

extern const struct proc_node proc_net_children[];

#define PID_FILES                                                                                                      \
	{ .name = "auxv", .mode = 0400, .look = true, .kind = PROC_TEXT, .text = auxv_text },                          \
		{ .name = "cgroup", .mode = 0444, .kind = PROC_TEXT, .text = cgroup_text },                            \
		{ .name = "cmdline", .mode = 0444, .kind = PROC_TEXT, .text = cmdline_text },                          \
		{ .name = "comm", .mode = 0644, .kind = PROC_TEXT, .text = comm_text, .store = comm_store },           \
		{ .name = "cwd", .mode = 0777, .look = true, .kind = PROC_LINK, .link = cwd_link, .follow = cwd_follow }, \
		{ .name = "environ", .mode = 0400, .look = true, .kind = PROC_TEXT, .text = environ_text },            \
		{ .name = "exe", .mode = 0777, .look = true, .kind = PROC_LINK, .link = exe_link, .follow = exe_follow }, \
		{ .name = "fd", .mode = 0500, .kind = PROC_FDS },                                                      \
		{ .name = "fdinfo", .mode = 0500, .kind = PROC_FDINFOS },                                              \
		{ .name = "gid_map", .mode = 0444, .kind = PROC_TEXT, .text = map_id_text },                           \
		{ .name = "io", .mode = 0400, .look = true, .kind = PROC_TEXT, .text = io_text },                      \
		{ .name = "limits", .mode = 0444, .kind = PROC_TEXT, .text = limits_text },                            \
		{ .name = "loginuid", .mode = 0444, .kind = PROC_TEXT, .text = loginuid_text },                        \
		{ .name = "maps", .mode = 0444, .look = true, .kind = PROC_TEXT, .text = maps_text },                  \
		{ .name = "mountinfo", .mode = 0444, .kind = PROC_TEXT, .text = mountinfo_text },                      \
		{ .name = "mounts", .mode = 0444, .kind = PROC_TEXT, .text = mounts_text },                            \
		{ .name = "net", .mode = 0555, .kind = PROC_DIR, .children = proc_net_children },                      \
		{ .name = "ns", .mode = 0511, .kind = PROC_DIR, .children = ns_children },                             \
		{ .name = "oom_score", .mode = 0444, .kind = PROC_TEXT, .text = zero_text },                           \
		{ .name = "oom_score_adj",                                                                             \
		  .mode = 0644,                                                                                        \
		  .kind = PROC_TEXT,                                                                                   \
		  .text = oom_score_text,                                                                              \
		  .store = oom_score_store },                                                                          \
		{ .name = "personality", .mode = 0400, .look = true, .kind = PROC_TEXT, .text = personality_text },    \
		{ .name = "root",                                                                                      \
		  .mode = 0777,                                                                                        \
		  .look = true,                                                                                        \
		  .kind = PROC_LINK,                                                                                   \
		  .link = root_link,                                                                                   \
		  .follow = root_follow },                                                                             \
		{ .name = "setgroups", .mode = 0444, .kind = PROC_TEXT, .text = setgroups_text },                      \
		{ .name = "smaps", .mode = 0444, .look = true, .kind = PROC_TEXT, .text = smaps_text },                \
		{ .name = "stat", .mode = 0444, .kind = PROC_TEXT, .text = stat_text },                                \
		{ .name = "statm", .mode = 0444, .kind = PROC_TEXT, .text = statm_text },                              \
		{ .name = "status", .mode = 0444, .kind = PROC_TEXT, .text = status_text },                            \
		{ .name = "uid_map", .mode = 0444, .kind = PROC_TEXT, .text = map_id_text },                           \
	{                                                                                                              \
		.name = "wchan", .mode = 0444, .kind = PROC_TEXT, .text = wchan_text                                   \
	}

static const struct proc_node tid_children[] = { PID_FILES, { 0 } };

static const struct proc_node pid_children[] = {
	PID_FILES,
	{ .name = "task", .mode = 0555, .kind = PROC_TASKS },
	{ 0 },
};

const struct proc_node proc_pid_node = { .mode = 0555, .kind = PROC_DIR, .children = pid_children };
const struct proc_node proc_tid_node = { .mode = 0555, .kind = PROC_DIR, .children = tid_children };
const struct proc_node proc_fd_node = {
	.mode = 0700, .look = true, .kind = PROC_LINK, .link = proc_fd_link, .follow = proc_fd_place,
};
const struct proc_node proc_fdinfo_node = { .mode = 0400, .look = true, .kind = PROC_TEXT, .text = proc_fdinfo_text };
