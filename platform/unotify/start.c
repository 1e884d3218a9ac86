/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the machine, and its end.
 *
 *   sentry  memfd with the stub's ELF file, sealed, opened again read-only; a clone of ourselves executes it
 *   init    parent of all stubs, pid 1 of their pid namespace where there is one; dies with us
 *   zygote  installs the filter and tells us its pid; we take its listener by pidfd_getfd(2), receive its first
 *           notification and order it to drop what is left of boot code, stack and fds
 *
 * The process that clones must go on: PDEATHSIG follows the thread. So start() belongs to the main thread.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/unotify/hostcall.h"
#include "platform/unotify/unotify_priv.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#define NOTIF_SYNC_WAKE_UP 1ul
#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif

#define PARK_LIMIT     32
#define CONTEXTS_MAX   16384u /* a slot each, and a bit in the death watch */
#define STUB_SIZE_MAX  (1u << 20)
#define HIGH_FD        20 /* clear of BOOT_SOCK and BOOT_PROC */
#define BOOT_TIMEOUT_MS 10000

extern const uint8_t stub_elf[], stub_elf_end[];

struct boot {
	struct platform *p;
	struct sbx_err *err;
	int stub_fd;  /* read-only, >= HIGH_FD */
	int sock[2];  /* ours, init's */
	unsigned long ns;
	pid_t zygote;
	struct boot_report report;
};

/* The namespaces to try, best first. */
#define NS_ALL (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
static const unsigned long ns_choices[] = {
	CLONE_NEWUSER | NS_ALL,
	CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS,
	CLONE_NEWUSER | CLONE_NEWPID,
	NS_ALL,
	CLONE_NEWPID,
	0,
};

static int stub_copy(const uint8_t *data, size_t len)
{
	char path[32];
	int fd = memfd_create("stub", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC), ro;

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create("stub", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (write(fd, data, len) != (ssize_t)len || fchmod(fd, 0555) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		ro = -errno;
		close(fd);
		return ro;
	}
	/* Executing a file that is open for writing is ETXTBSY. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	ro = ro < 0 ? -errno : ro;
	close(fd);
	if (ro < 0)
		return ro;
	fd = fcntl(ro, F_DUPFD_CLOEXEC, HIGH_FD);
	fd = fd < 0 ? -errno : fd;
	close(ro);
	return fd;
}

static int stub_sites(const uint8_t *elf, size_t len, struct shim_sites *sites)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (len < sizeof(eh))
		return -ENOEXEC;
	memcpy(&eh, elf, sizeof(eh));
	if (eh.e_phnum == 0 || eh.e_phoff > len || len - eh.e_phoff < sizeof(ph))
		return -ENOEXEC;
	memcpy(&ph, elf + eh.e_phoff, sizeof(ph));
	if (ph.p_vaddr != SHIM_BASE || ph.p_filesz != SHIM_SIZE || ph.p_offset > len || len - ph.p_offset < SHIM_SIZE)
		return -ENOEXEC;
	memcpy(sites, elf + ph.p_offset + SHIM_TABLE, sizeof(*sites));
	return 0;
}

static int open_stub(struct boot *b)
{
	const uint8_t *elf = stub_elf;
	size_t len = (size_t)(stub_elf_end - stub_elf);
	uint8_t *own = NULL;
	int r;

	if (b->p->cfg.stub_fd >= 0) {
		own = malloc(STUB_SIZE_MAX);
		if (!own)
			return sbx_fail(b->err, -ENOMEM, "stub");
		ssize_t n = pread(b->p->cfg.stub_fd, own, STUB_SIZE_MAX, 0);

		elf = own;
		len = n < 0 ? 0 : (size_t)n;
	}
	r = stub_sites(elf, len, &b->p->sites);
	if (r == 0)
		r = b->stub_fd = stub_copy(elf, len);
	free(own);
	return r < 0 ? sbx_fail(b->err, r, "stub") : 0;
}

/* In the child, with all capabilities in its new namespaces: an empty read-only root. Failure costs depth only. */
static void empty_root(void)
{
	static const char *const places[] = { "/proc", "/sys", "/tmp", "/dev", "/run" };

	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return;
	for (unsigned i = 0; i < ARRAY_SIZE(places); i++) {
		if (mount("none", places[i], "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "size=4k") < 0)
			continue;
		if (chdir(places[i]) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0)
			(void)!chdir("/");
		return;
	}
}

static NORETURN void exec_stub(const struct boot *b)
{
	char *const argv[] = { (char *)"stub", NULL }, *const envp[] = { NULL };
	int sock, proc;

	/* Else the stub's own mappings might land in the reserved range. */
	personality(ADDR_NO_RANDOMIZE);
	sock = fcntl(b->sock[1], F_DUPFD_CLOEXEC, HIGH_FD);
	proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc >= 0)
		proc = fcntl(proc, F_DUPFD_CLOEXEC, HIGH_FD);
	if (b->ns & CLONE_NEWNS)
		empty_root();
	dup2(sock, BOOT_SOCK);
	if (proc < 0 || dup2(proc, BOOT_PROC) < 0)
		close(BOOT_PROC);
	syscall(SYS_close_range, 0, BOOT_SOCK - 1, 0);
	syscall(SYS_close_range, BOOT_PROC + 1, ~0u, CLOSE_RANGE_CLOEXEC);
	syscall(SYS_execveat, b->stub_fd, "", argv, envp, AT_EMPTY_PATH);
	_exit(BOOT_E_HANDSHAKE);
}

/* A signal handler of ours must not run in the child. */
static int clone_init(struct boot *b)
{
	struct platform *p = b->p;
	sigset_t all, old;
	long pid = -EPERM;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (unsigned i = 0; i < ARRAY_SIZE(ns_choices) && pid < 0; i++) {
		b->ns = ns_choices[i];
		if (p->cfg.no_userns && (b->ns & CLONE_NEWUSER))
			continue;
		pid = HOSTCALL(SYS_clone, b->ns | SIGCHLD, 0, 0, 0, 0);
		if (pid == 0)
			exec_stub(b);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (pid < 0)
		return sbx_fail(b->err, (int)pid, "clone");
	p->init_pid = (pid_t)pid;
	p->init_pidfd = (int)HOSTCALL(SYS_pidfd_open, pid, 0);
	return p->init_pidfd < 0 ? sbx_fail(b->err, p->init_pidfd, "pidfd_open") : 0;
}

static int boot_died(struct boot *b)
{
	int status = 0;

	waitpid(b->p->init_pid, &status, __WALL);
	b->p->init_pid = 0;
	return sbx_fail(b->err, 0, "the stub did not start (wait status %#x)", (unsigned)status);
}

/* A report of the zygote; its pid comes translated into our namespace. */
static int recv_report(struct boot *b, int timeout_ms)
{
	char ctl[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec iov = { &b->report, sizeof(b->report) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof(ctl) };
	struct pollfd pf = { .fd = b->sock[0], .events = POLLIN };
	struct cmsghdr *cm;
	struct ucred uc;
	int r;

	do
		r = poll(&pf, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return timeout_ms ? sbx_fail(b->err, -ETIMEDOUT, "the stub does not start") : -EAGAIN;
	if (recvmsg(b->sock[0], &m, 0) != (ssize_t)sizeof(b->report) || b->report.magic != BOOT_MAGIC)
		return boot_died(b);
	cm = CMSG_FIRSTHDR(&m);
	if (!cm || cm->cmsg_type != SCM_CREDENTIALS)
		return sbx_fail(b->err, -EPROTO, "stub");
	memcpy(&uc, CMSG_DATA(cm), sizeof(uc));
	b->zygote = uc.pid;
	return 0;
}

static int handshake(struct boot *b)
{
	struct boot_config cfg = { .magic = BOOT_MAGIC };
	int r, one = 1;

	if (setsockopt(b->sock[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) < 0)
		return sbx_fail(b->err, -errno, "SO_PASSCRED");
	/* Not dumpable is readable for us only if the program was executed inside a user namespace of ours. */
	if (b->ns & CLONE_NEWUSER)
		cfg.flags |= BOOT_NODUMP;
	if (write(b->sock[0], &cfg, sizeof(cfg)) != (ssize_t)sizeof(cfg))
		return boot_died(b);
	close(b->sock[1]);
	b->sock[1] = -1;
	r = recv_report(b, BOOT_TIMEOUT_MS);
	if (r < 0)
		return r;
	b->p->vdso = b->report.vdso;
	b->p->keep_lo = b->report.keep_lo;
	b->p->keep_hi = b->report.keep_hi;
	return 0;
}

static int take_listener(struct boot *b)
{
	struct platform *p = b->p;
	struct hostproc *proc = p->zygote->proc;
	long fd = -EBADF;
	int r = proc_born(proc, b->zygote);

	if (r < 0)
		return sbx_fail(b->err, r, "zygote");
	/* The zygote wrote its report just before seccomp(2); it gets number BOOT_LISTENER. */
	for (int i = 0; i < BOOT_TIMEOUT_MS * 10; i++) {
		fd = HOSTCALL(SYS_pidfd_getfd, proc->pidfd, BOOT_LISTENER, 0);
		if (fd != -EBADF)
			break;
		if (recv_report(b, 0) == 0 && b->report.listener_err)
			return sbx_fail(b->err, b->report.listener_err, "%s",
					b->report.listener_err == -EBUSY
						? "another supervisor already has a seccomp listener here"
						: "seccomp listener");
		if (i < 100)
			sched_yield();
		else
			usleep(100);
	}
	if (fd < 0)
		return sbx_fail(b->err, (int)fd, "pidfd_getfd");
	p->listener = (int)fd;
	fcntl(p->listener, F_SETFD, FD_CLOEXEC);
	p->info.sync_wakeup =
		HOSTCALL(SYS_ioctl, p->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, NOTIF_SYNC_WAKE_UP) == 0;
	return 0;
}

/* The zygote's first notification, and the last of what the guest is not to find. */
static int prepare_zygote(struct boot *b)
{
	struct platform *p = b->p;
	struct uctx *z = p->zygote;
	struct order_batch batch = { .n = 0 };
	int64_t result = 0;
	int r;

	/* It comes as a birth, with token 0 that no other can have: it is the only thread so far. */
	z->state = UCTX_ORDERED;
	z->i_order = 1;
	z->order_cmd = SHIM_ORDER;
	z->tid = b->zygote;
	p->tids[(unsigned)z->tid % TID_BUCKETS] = z;
	r = event_wait_shim(z);
	if (r < 0)
		return sbx_fail(b->err, r, "zygote");
	aspace_add_clear_orders(p, &batch);
	order_add(&batch, SYS_munmap, BOOT_BASE, VDSO_BASE - BOOT_BASE, 0, 0, 0, 0);
	order_add(&batch, SYS_close_range, 0, ~0u, 0, 0, 0, 0);
	r = order_run(z, &batch, &result);
	if (r != (int)batch.n)
		return sbx_fail(b->err, r < 0 ? r : (int)result, "zygote order %d", r);
	return 0;
}

static int make_zygote(struct platform *p)
{
	struct aspace *as = aspace_alloc(p);
	struct hostproc *proc = as ? proc_alloc(p) : NULL;

	p->zygote = proc ? uctx_alloc(p, as, proc) : NULL;
	unotify_aspace_put(as);
	if (!p->zygote)
		return -ENOMEM;
	p->zygote->frame = slot_base(0) + SLOT_FRAME;
	return 0;
}

static void fill_info(struct platform *p, unsigned long ns)
{
	struct platform_info *i = &p->info;

	i->name = "unotify";
	i->userns = ns & CLONE_NEWUSER;
	i->pidns = ns & CLONE_NEWPID;
	i->netns = ns & CLONE_NEWNET;
	snprintf(i->note, sizeof(i->note), "%s%s%s%s%s",
		 i->userns ? "" : "no user namespace; ",
		 i->pidns ? "" : "no pid namespace; ",
		 ns & CLONE_NEWNS ? "" : "host's root visible; ",
		 i->sync_wakeup ? "" : "no synchronous wake-up (Linux 6.6); ",
		 p->vdso ? "" : "no vDSO; ");
	if (i->note[0])
		i->note[strlen(i->note) - 2] = 0;
}

static int platform_alloc(const struct platform_config *cfg, struct platform **ret)
{
	struct platform *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->cfg = *cfg;
	p->cfg.max_contexts = MIN(MAX(cfg->max_contexts, 16u), CONTEXTS_MAX);
	p->max_procs = p->cfg.max_contexts + 2;
	p->park_limit = PARK_LIMIT;
	p->listener = p->epfd = p->timerfd = p->init_pidfd = -1;
	list_init(&p->births);
	list_init(&p->traps);
	list_init(&p->ghosts);
	list_init(&p->parked);
	p->procs = calloc(p->max_procs, sizeof(struct hostproc *));
	p->dead_bits = calloc((p->max_procs + 63) / 64, sizeof(uint64_t));
	*ret = p;
	return p->procs && p->dead_bits ? 0 : -ENOMEM;
}

int unotify_start(const struct platform_config *cfg, const struct platform_up *up, void *arg,
		  struct platform **ret, struct sbx_err *err)
{
	struct boot b = { .err = err, .stub_fd = -1, .sock = { -1, -1 } };
	int r = platform_alloc(cfg, &b.p);

	if (r < 0) {
		unotify_destroy(b.p);
		return sbx_fail(err, r, "platform");
	}
	b.p->up = up;
	b.p->up_arg = arg;
	r = listener_init_leader(b.p, &b.p->fpu);
	if (r < 0)
		sbx_fail(err, r, "leader");
	if (r == 0)
		r = open_stub(&b);
	if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, b.sock) < 0)
		r = sbx_fail(err, -errno, "socketpair");
	if (r == 0)
		r = clone_init(&b);
	if (r == 0)
		r = handshake(&b);
	if (r == 0) {
		r = deathwatch_start(b.p);
		if (r == 0)
			r = make_zygote(b.p);
		if (r < 0)
			sbx_fail(err, r, "platform");
	}
	if (r == 0)
		r = take_listener(&b);
	if (r == 0)
		r = prepare_zygote(&b);
	for (int i = 0; i < 2; i++)
		if (b.sock[i] >= 0)
			close(b.sock[i]);
	if (b.stub_fd >= 0)
		close(b.stub_fd);
	if (r < 0) {
		unotify_destroy(b.p);
		return sbx_fail_in(err, "unotify");
	}
	fill_info(b.p, b.ns);
	*ret = b.p;
	return 0;
}

static void kill_all(struct platform *p)
{
	for (unsigned i = 0; p->procs && i < p->max_procs; i++)
		if (p->procs[i] && p->procs[i]->pidfd >= 0)
			HOSTCALL(SYS_pidfd_send_signal, p->procs[i]->pidfd, SIGKILL, NULL, 0);
	if (p->init_pidfd >= 0)
		HOSTCALL(SYS_pidfd_send_signal, p->init_pidfd, SIGKILL, NULL, 0);
	if (p->init_pid > 0)
		while (waitpid(p->init_pid, NULL, __WALL) < 0 && errno == EINTR)
			;
}

void unotify_destroy(struct platform *p)
{
	struct uctx *c, *tmp;

	if (!p)
		return;
	kill_all(p);
	deathwatch_stop(p);
	for (unsigned i = 0; p->procs && i < p->max_procs; i++)
		if (p->procs[i])
			proc_died(p->procs[i], SIGKILL);
	/* Contexts of which the kernel still waited to hear that they died; those it holds in its hand are its own. */
	list_for_each_entry_safe(c, tmp, &p->traps, trap_node)
		uctx_free(c);
	if (p->listener >= 0)
		close(p->listener);
	if (p->init_pidfd >= 0)
		close(p->init_pidfd);
	free(p->dead_bits);
	free(p->procs);
	free(p);
}
