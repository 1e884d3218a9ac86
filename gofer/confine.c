/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolated
 *   Gives up: the terminal, core dumps, outliving its monitor, and (where it may) the view of the host's mount table.
 *   Still has: the host's files, because the grants are opened by path next.
 * steady
 *   Gives up: every path (the root is an empty directory where a mount namespace could be had), all capabilities but
 *   those named in keep_caps(), ptrace of it by its user, every system call that is not in the list below.
 *   Still has: the granted trees by their O_PATH fds, /proc/self/fd for reopening them, its two sockets.
 */
#include "gofer/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"
#include "gofer/reopen.h"

static int enter_mount_ns(struct confine *c)
{
	if (!c->userns && geteuid() != 0)
		return -EPERM;
	if (unshare(CLONE_NEWNS) < 0)
		return -errno;
	/* A slave, so that nothing done here shows on the host while what the host mounts in a grant shows here. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return -errno;
	c->mount_ns = true;
	return 0;
}

int confine_isolate(struct confine *c, struct sbx_err *err)
{
	struct rlimit rl;

	(void)setsid(); /* fails for a group leader: then the monitor has made the session */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return sbx_fail(err, -errno, "parent death signal");
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl); /* less fds only means more reopening */
	}
	rl = (struct rlimit){ 0, 0 };
	if (setrlimit(RLIMIT_CORE, &rl) < 0)
		return sbx_fail(err, -errno, "core limit");
	umask(0);
	(void)enter_mount_ns(c); /* where it may not, the walk checks are the only line; Started tells */
	return 0;
}

/* An empty, read-only tmpfs becomes the root; the old one goes away. */
static int empty_root(void)
{
	if (mount("none", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=2,mode=555") < 0)
		return -errno;
	if (mount(NULL, "/proc", NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return -errno;
	if (chdir("/proc") < 0)
		return -errno;
	if (syscall(SYS_pivot_root, ".", ".") == 0)
		return umount2(".", MNT_DETACH) < 0 ? -errno : 0;
	/* The root of an initramfs cannot be pivoted. */
	return chroot(".") < 0 ? -errno : 0;
}

/*
 * Capabilities that are kept. Only a gofer that runs as the host's root keeps any: the files of a root user's grant may belong
 * to others and have modes that root on the host passes by, and the guest's root expects the same.
 *  - DAC_READ_SEARCH to read them, when all grants are read-only;
 *  - DAC_OVERRIDE to read and write them, FOWNER to chmod and set times, when some grant is rw.
 * CHOWN is not kept: owners do not change on grants. In a user namespace none is: the files there are the user's own.
 */
static int keep_caps(const struct confine *c)
{
	static const cap_value_t rw[] = { CAP_DAC_OVERRIDE, CAP_FOWNER }, ro[] = { CAP_DAC_READ_SEARCH };
	cap_t have = cap_get_proc(), want = cap_init();
	int r = 0;

	if (!have || !want) {
		r = -ENOMEM;
		goto out;
	}
	if (geteuid() == 0 && !c->userns) {
		const cap_value_t *list = c->all_read_only ? ro : rw;
		int n = c->all_read_only ? ARRAY_SIZE(ro) : ARRAY_SIZE(rw);

		for (int i = 0; i < n; i++) {
			cap_flag_value_t v;

			if (cap_get_flag(have, list[i], CAP_PERMITTED, &v) < 0 || v != CAP_SET)
				continue;
			cap_set_flag(want, CAP_PERMITTED, 1, &list[i], CAP_SET);
			cap_set_flag(want, CAP_EFFECTIVE, 1, &list[i], CAP_SET);
		}
	}
	for (int i = 0; prctl(PR_CAPBSET_READ, i) >= 0; i++)
		(void)prctl(PR_CAPBSET_DROP, i); /* without SETPCAP there is none to drop; nothing can be executed either */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (cap_set_proc(want) < 0)
		r = -errno;
out:
	cap_free(have);
	cap_free(want);
	return r;
}

struct rule {
	int nr;
	const char *why;
	unsigned n;
	struct scmp_arg_cmp cmp[2];
};

#define ANY(name, why)          { SCMP_SYS(name), why, 0, { { 0 } } }
#define ARG(i, op, ...)         { i, SCMP_CMP_##op, __VA_ARGS__ }
#define ONLY(name, why, n, ...) { SCMP_SYS(name), why, n, { __VA_ARGS__ } }

/* No open (openat2 alone opens), no socket, no connect, no exec, no clone, no memory that is executable. */
static const struct rule rules[] = {
	ANY(poll, "conn.c: gofer_serve"),
	ANY(restart_syscall, "conn.c: poll that was stopped and continued"),
	ANY(openat2, "node.c: walk; reopen.c; ops_open.c: create"),
	ANY(close, "base/host/file.c: host_close"),
	ANY(statx, "base/host/at.c: attributes"),
	ANY(newfstatat, "base/host/file.c: host_fstat"),
	ANY(fstatfs, "ops_walk.c: statfs; grant.c: is_pseudo"),
	ANY(readlinkat, "ops_walk.c: readlink"),
	ANY(getdents64, "ops_dir.c: readdir"),
	ANY(lseek, "ops_dir.c: cookies"),
	ANY(symlinkat, "ops_change.c"),
	ANY(linkat, "ops_change.c"),
	ANY(unlinkat, "ops_change.c"),
	ANY(renameat2, "ops_change.c"),
	ANY(utimensat, "ops_change.c: setattr"),
	ANY(truncate, "ops_change.c: setattr"),
	ANY(fsync, "ops_open.c: fsync of directories"),
	ANY(getxattr, "ops_xattr.c"),
	ANY(setxattr, "ops_xattr.c"),
	ANY(listxattr, "ops_xattr.c"),
	ANY(removexattr, "ops_xattr.c"),
	ANY(brk, "malloc"),
	ANY(munmap, "malloc"),
	ANY(mremap, "malloc: realloc of large blocks"),
	ANY(madvise, "malloc: giving memory back"),
	ANY(getrandom, "malloc: start-up of its caches"),
	ANY(clock_gettime, "audit.c, where there is no vDSO"),
	ANY(inotify_add_watch, "watch.c"),
	ANY(inotify_rm_watch, "watch.c"),
	ANY(read, "watch.c: events; the only readable fds are its own"),
	ANY(getpid, "abort"),
	ANY(gettid, "abort"),
	ANY(rt_sigprocmask, "abort"),
	ANY(rt_sigreturn, "a signal handler of a sanitizer"),
	ANY(exit_group, "the end"),
	ONLY(mmap, "malloc", 1, ARG(2, MASKED_EQ, PROT_EXEC, 0)),
	ONLY(mkdirat, "ops_change.c; no set-id bits", 1, ARG(2, MASKED_EQ, 06000, 0)),
	ONLY(fchmodat, "ops_change.c; no set-id bits", 1, ARG(2, MASKED_EQ, 06000, 0)),
	ONLY(mknodat, "ops_change.c: FIFO", 1, ARG(2, MASKED_EQ, S_IFMT | 06000, S_IFIFO)),
	ONLY(mknodat, "ops_change.c: socket name", 1, ARG(2, MASKED_EQ, S_IFMT | 06000, S_IFSOCK)),
	ONLY(write, "log.c", 1, ARG(0, EQ, 2)),
#ifdef SBX_SANITIZED
	/* A build for tests, not for use. */
	ANY(write, "sanitizer reports"),
	ANY(mmap, "sanitizer"),
	ANY(mprotect, "sanitizer"),
	ANY(openat, "sanitizer: /proc/self/maps"),
	ANY(futex, "sanitizer"),
	ANY(sigaltstack, "sanitizer"),
	ANY(sched_yield, "sanitizer"),
	ANY(readlink, "sanitizer"),
	ANY(getrlimit, "sanitizer"),
	ANY(prlimit64, "sanitizer"),
	ANY(clone, "leak check"),
	ANY(prctl, "leak check"),
	ANY(ptrace, "leak check"),
	ANY(wait4, "leak check"),
#endif
};

static int add_rule(scmp_filter_ctx ctx, const struct rule *r)
{
	return seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, r->nr, r->n, r->cmp);
}

static int load_filter(const struct confine *c)
{
	const struct rule socks[] = {
		ONLY(recvmsg, "wire.c: requests", 1, ARG(0, EQ, (scmp_datum_t)c->sock)),
		ONLY(sendmsg, "wire.c: replies", 1, ARG(0, EQ, (scmp_datum_t)c->sock)),
		ONLY(sendmsg, "main.c: Started", 1, ARG(0, EQ, (scmp_datum_t)c->control)),
		ONLY(sendto, "audit.c; no address can be given over a connected socket", 2,
		     ARG(0, EQ, (scmp_datum_t)c->control), ARG(4, EQ, 0)),
	};
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int r = ctx ? 0 : -ENOMEM;

	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rules); i++)
		r = add_rule(ctx, &rules[i]);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(socks); i++)
		r = add_rule(ctx, &socks[i]);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r;
}

int confine_steady(struct confine *c, struct sbx_err *err)
{
	int r;

	if (c->mount_ns)
		c->empty_root = empty_root() == 0;
	r = reopen_enter();
	if (r < 0)
		return sbx_fail(err, r, "enter /proc/self/fd");
	r = keep_caps(c);
	if (r < 0)
		return sbx_fail(err, r, "drop capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sbx_fail(err, -errno, "no_new_privs");
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return sbx_fail(err, -errno, "dumpable");
	r = load_filter(c);
	if (r < 0)
		return sbx_fail(err, r, "system call filter");
	return 0;
}
