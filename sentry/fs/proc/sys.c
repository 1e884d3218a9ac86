/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs as far as programs read it: the processors, the page sizes, and empty directories to look into. sysfs(5). */
#include <errno.h>

#include "sentry/fs/fs.h"
#include "sentry/fs/proc/proc_priv.h"
#include "sentry/kernel/kernel.h"

#define SYSFS_MAGIC 0x62656572
#define TEXT(name_, fn) { .name = name_, .mode = 0444, .kind = PROC_TEXT, .text = fn }
#define DIRECTORY(name_, list) { .name = name_, .mode = 0555, .kind = PROC_DIR, .children = list }

static int cpus_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	if (kernel.n_cpus > 1)
		strbuf_printf(b, "0-%u\n", kernel.n_cpus - 1);
	else
		strbuf_puts(b, "0\n");
	return 0;
}

static int node_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "0\n");
	return 0;
}

static int thp_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "always [madvise] never\n");
	return 0;
}

static int pmd_text(struct strbuf *b, struct proc_inode *pi, struct task *t)
{
	strbuf_puts(b, "2097152\n");
	return 0;
}

static const struct proc_node no_children[] = { { 0 } };

static const struct proc_node cpu_children[] = {
	TEXT("offline", node_text),
	TEXT("online", cpus_text),
	TEXT("possible", cpus_text),
	TEXT("present", cpus_text),
	{ 0 },
};

static const struct proc_node node_children[] = { TEXT("online", node_text), TEXT("possible", node_text), { 0 } };

static const struct proc_node system_children[] = {
	DIRECTORY("cpu", cpu_children), DIRECTORY("node", node_children), { 0 },
};

static const struct proc_node devices_children[] = { DIRECTORY("system", system_children), { 0 } };
static const struct proc_node fs_children[] = { DIRECTORY("cgroup", no_children), { 0 } };
static const struct proc_node thp_children[] = { TEXT("enabled", thp_text), TEXT("hpage_pmd_size", pmd_text), { 0 } };
static const struct proc_node mm_children[] = { DIRECTORY("transparent_hugepage", thp_children), { 0 } };
static const struct proc_node kernel_children[] = { DIRECTORY("mm", mm_children), { 0 } };

static const struct proc_node root_children[] = {
	DIRECTORY("block", no_children), DIRECTORY("bus", no_children), DIRECTORY("class", no_children),
	DIRECTORY("dev", no_children), DIRECTORY("devices", devices_children), DIRECTORY("fs", fs_children),
	DIRECTORY("kernel", kernel_children), DIRECTORY("module", no_children), { 0 },
};

static const struct proc_node root_node = {
	.name = "sys", .mode = 0555, .kind = PROC_DIR, .children = root_children,
};

int sysfs_create(struct super **ret)
{
	return proc_super_create(&root_node, "sysfs", SYSFS_MAGIC, ret);
}
