/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sbx-sentry: the guest's kernel. Started by the monitor with two sockets and nothing else (control.h). Order matters:
 * what needs host privileges (the platform's processes, the event thread) comes before policy_enter(); what reads
 * anything the guest controls comes after it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/host/file.h"
#include "base/host/sched.h"
#include "base/host/thread.h"
#include "base/log.h"
#include "platform/platform.h"
#include "policy/roles.h"
#include "sentry/boot.h"
#include "sentry/control/control.h"
#include "sentry/fs/fs.h"
#include "sentry/kernel/event.h"
#include "sentry/kernel/kernel.h"
#include "sentry/vfs/vfs.h"

#define EXIT_SBX 125

static const Sbx__Control__SentryConfig *cfg;
static Sbx__Control__SentryConfig *cfg_mutable;
static struct gofer_conn *gofer;
static int stdio_fds[3] = { -1, -1, -1 };
static int disk_fd = -1;
static int exit_code = EXIT_SBX;
static int proc_fd = -1; /* while the platform starts */

static int step_config(struct sbx_err *err)
{
	int r = control_config(&cfg_mutable, stdio_fds, &disk_fd, err);

	if (r)
		return r;
	cfg = cfg_mutable;
	if (!cfg->limits || !cfg->n_argv)
		return sbx_fail(err, -EPROTO, "incomplete configuration");
	if (cfg->log_channels && log_enable(cfg->log_channels))
		return sbx_fail(err, 0, "unknown log channel in '%s'", cfg->log_channels);
	if (cfg->strace)
		log_debug_mask |= 1u << CH_STRACE;
	r = exec_policy_init(cfg);
	return r ? sbx_fail(err, r, "exec rules") : 0;
}

static bool automatic(void)
{
	return !cfg->platform || !*cfg->platform || !strcmp(cfg->platform, "auto");
}

static bool may_use(const struct platform_ops *ops)
{
	return automatic() ? !ops->by_name : !strcmp(cfg->platform, ops->name);
}

/* Devices that the identity after this has no way to. */
static int step_devices(struct sbx_err *err)
{
	for (size_t i = 0; platform_table[i]; i++)
		if (may_use(platform_table[i]) && platform_table[i]->prepare && platform_table[i]->prepare(err))
			return err->code;
	return 0;
}

static void set_policy_options(void)
{
	const struct policy_options o = {
		.no_userns = cfg->no_userns,
		.log_filter = cfg->debug_filter,
		.platform = kernel.plat ? kernel.plat->name : NULL,
	};

	policy_set_options(&o);
}

/* Its own user namespace and the rest that a process of one thread can still do. */
static int step_identity(struct sbx_err *err)
{
	set_policy_options();
	return policy_enter(ROLE_SENTRY, STAGE_IDENTITY, err);
}

/* Before the stubs start, which then have the empty root from us. They still need /proc to do so. */
static int step_root(struct sbx_err *err)
{
	proc_fd = host_open("/proc", O_PATH | O_DIRECTORY, 0);
	return policy_enter(ROLE_SENTRY, STAGE_CONFINED, err);
}

static bool isolated(void)
{
	const struct policy_obtained *o = policy_obtained();

	return proc_fd >= 0 && o->empty_root && o->netns && o->ipcns && o->utsns;
}

/* Donated files and gofer files are host fds: take what the system allows. */
static int step_rlimits(struct sbx_err *err)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &rl) < 0)
			return sbx_fail(err, -errno, "raise the file limit");
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return 0;
}

static int kernel_start(struct sbx_err *err)
{
	const struct kernel_limits limits = {
		.memory = cfg->limits->memory,
		.disk = cfg->limits->disk,
		.inodes = cfg->limits->inodes,
		.cpu_ns = cfg->limits->cpu_ns,
		.tasks = cfg->limits->tasks,
		.open_files = cfg->limits->open_files,
	};
	int r = kernel_init(&limits, &control_report_ops);

	if (r)
		return sbx_fail(err, r, "set up the kernel");
	strncpy(kernel.hostname, cfg->hostname && *cfg->hostname ? cfg->hostname : "sbx", sizeof(kernel.hostname) - 1);
	return event_init(err);
}

/* What came of kernel_start(), which needs no platform, but which a platform may run while it waits itself. */
static bool kernel_tried;
static struct sbx_err kernel_err;

static void meanwhile(void)
{
	if (!kernel_tried)
		kernel_start(&kernel_err);
	kernel_tried = true;
}

static int step_kernel(struct sbx_err *err)
{
	meanwhile();
	if (kernel_err.code)
		*err = kernel_err;
	return kernel_err.code;
}

static const struct platform_up platform_up = {
	.trap = kernel_trap,
	.idle = kernel_idle,
};

static int step_platform(struct sbx_err *err)
{
	const struct platform_config pc = {
		.automatic = automatic(),
		.stub_fd = -1,
		.max_contexts = cfg->limits->tasks + 16,
		.no_userns = cfg->no_userns,
		.memory_limit = cfg->limits->memory,
		.isolated = isolated(),
		.proc_fd = proc_fd,
		.meanwhile = meanwhile,
	};
	struct sbx_err first = { 0 };

	for (size_t i = 0; platform_table[i]; i++) {
		const struct platform_ops *ops = platform_table[i];

		if (!may_use(ops))
			continue;
		kernel.plat = ops;
		if (!ops->start(&pc, &platform_up, NULL, &kernel.platform, err)) {
			if (first.code)
				log_warn(CH_PLATFORM, "%s; using %s, which is slower", first.msg, ops->name);
			return 0;
		}
		if (err->code != PLATFORM_UNAVAILABLE)
			break;
		if (!first.code)
			first = *err;
	}
	return err->code ? err->code : sbx_fail(err, 0, "platform '%s' is not built", cfg->platform);
}

static int step_confine(struct sbx_err *err)
{
	set_policy_options(); /* the filter is the platform's */
	host_close(proc_fd);
	proc_fd = -1;
	if (!kernel.plat->in_process) /* guests take turns as anybody; stubs were made before */
		host_sched_short_turns();
	host_threads_settle(); /* they give up what the filter would not let them give up */
	return policy_enter(ROLE_SENTRY, STAGE_STEADY, err);
}

static int step_gofer(struct sbx_err *err)
{
	int r = gofer_conn_create(GOFER_FD, &gofer);

	return r ? sbx_fail(err, r, "talk to the gofer") : 0;
}

static int step_vfs(struct sbx_err *err)
{
	int r = vfs_init();

	return r ? sbx_fail(err, r, "set up the file system") : boot_mounts(cfg, disk_fd, gofer, err);
}

static int step_program(struct sbx_err *err)
{
	return boot_program(cfg, stdio_fds, &exit_code, err);
}

static const struct {
	const char *name;
	int (*run)(struct sbx_err *err);
} steps[] = {
	{ "config", step_config },
	{ "devices", step_devices },
	{ "identity", step_identity },
	{ "root", step_root },
	{ "rlimits", step_rlimits },
	{ "platform", step_platform },
	{ "kernel", step_kernel },
	{ "confine", step_confine },
	{ "gofer", step_gofer },
	{ "vfs", step_vfs },
	{ "listen", control_listen },
	{ "program", step_program },
};

/*
 * The guest has ended and the monitor knows. The gofer is told first, for it ends beside us. Guest processes that are
 * left die with us and the monitor waits for them, as it does for those of a sentry that was killed; so nothing is
 * gained by waiting for them here. A sanitized build frees all, to see what was forgotten.
 */
static void end(void)
{
	host_close(GOFER_FD);
	if (kernel.plat->abandon)
		kernel.plat->abandon(kernel.platform);
#ifdef SBX_SANITIZED
	kernel.plat->destroy(kernel.platform);
#endif
}

int main(int argc, char **argv)
{
	struct platform_info info;
	struct sbx_err err = { 0 };
	int r;

	log_init("sbx-sentry", STDERR_FILENO);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		if (steps[i].run(&err)) {
			control_started("", "", err.msg, exit_code);
			return EXIT_SBX;
		}
		log_dbg(CH_CORE, "start: %s done", steps[i].name);
	}
	kernel.plat->info(kernel.platform, &info);
	control_started(info.name, info.note, "", 0);
	r = kernel.plat->run(kernel.platform);
	if (r)
		log_err(CH_CORE, "platform %s broke: %s", kernel.plat->name, strerror(-r));
	end();
	return r ? EXIT_SBX : 0;
}
