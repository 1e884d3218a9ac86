/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the stubs.
 *
 *   sentry  memfd with the stub's ELF file, sealed, opened again read-only; a clone of ourselves executes it
 *   init    parent of all stubs, pid 1 of their pid namespace where there is one; dies with us
 *   zygote  reports its pid and where the vDSO is; then the platform takes it over
 *
 * The process that clones must go on: PDEATHSIG follows the thread. So stubs_start() belongs to the main thread.
 */
#include "platform/stub/spawn.h"

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

#include "base/macros.h"
#include "platform/stub/hostcall.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif

#define STUB_SIZE_MAX  (1u << 20)
#define HIGH_FD        20 /* clear of BOOT_SOCK and BOOT_PROC */
#define BOOT_TIMEOUT_MS 10000
#define CHILD_STACK    (32u << 10)

extern const uint8_t stub_elf[], stub_elf_end[];

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
/* What init shares with a caller that is isolated. */
#define NS_SHARED (CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

static int open_proc(int proc_fd, const char *name, int flags)
{
	char path[64];

	if (proc_fd >= 0)
		return openat(proc_fd, name, flags);
	snprintf(path, sizeof(path), "/proc/%s", name);
	return open(path, flags);
}

static int stub_copy(const uint8_t *data, size_t len, int proc_fd)
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
	snprintf(path, sizeof(path), "self/fd/%d", fd);
	ro = open_proc(proc_fd, path, O_RDONLY | O_CLOEXEC);
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

static int open_stub(struct stubs *s, const struct platform_config *cfg, struct sbx_err *err)
{
	const uint8_t *elf = stub_elf;
	size_t len = (size_t)(stub_elf_end - stub_elf);
	uint8_t *own = NULL;
	int r;

	if (cfg->stub_fd >= 0) {
		own = malloc(STUB_SIZE_MAX);
		if (!own)
			return sbx_fail(err, -ENOMEM, "stub");
		ssize_t n = pread(cfg->stub_fd, own, STUB_SIZE_MAX, 0);

		elf = own;
		len = n < 0 ? 0 : (size_t)n;
	}
	r = stub_sites(elf, len, &s->sites);
	if (r == 0)
		r = s->stub_fd = stub_copy(elf, len, cfg->proc_fd);
	free(own);
	return r < 0 ? sbx_fail(err, r, "stub") : 0;
}

/* In the child, with all capabilities in its new namespaces: an empty read-only root. Failure costs depth only. */
NO_ASAN static void empty_root(void)
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

/*
 * Runs in our memory while we wait, as after vfork(2): a copy would make us fault in anew each page that we write. The
 * address sanitizer does not know the stack.
 */
NO_ASAN static int exec_stub(void *arg)
{
	char *const argv[] = { (char *)"stub", NULL }, *const envp[] = { NULL };
	const struct stubs *s = arg;
	int sock, proc;

	/* Else the stub's own mappings might land in the reserved range. */
	personality(ADDR_NO_RANDOMIZE);
	sock = fcntl(s->sock[1], F_DUPFD_CLOEXEC, HIGH_FD);
	proc = open_proc(s->proc_fd, "self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc >= 0)
		proc = fcntl(proc, F_DUPFD_CLOEXEC, HIGH_FD);
	if (s->ns & CLONE_NEWNS)
		empty_root();
	dup2(sock, BOOT_SOCK);
	if (proc < 0 || dup2(proc, BOOT_PROC) < 0)
		close(BOOT_PROC);
	syscall(SYS_close_range, 0, BOOT_SOCK - 1, 0);
	syscall(SYS_close_range, BOOT_PROC + 1, ~0u, CLOSE_RANGE_CLOEXEC);
	syscall(SYS_execveat, s->stub_fd, "", argv, envp, AT_EMPTY_PATH);
	_exit(BOOT_E_HANDSHAKE);
}

/* A signal handler of ours must not run in the child. */
static int clone_init(struct stubs *s, const struct platform_config *cfg, struct sbx_err *err)
{
	static uint8_t stack[CHILD_STACK] __attribute__((aligned(16)));
	sigset_t all, old;
	int pid = -EPERM;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (unsigned i = 0; i < ARRAY_SIZE(ns_choices) && pid < 0; i++) {
		s->ns = ns_choices[i];
		if (cfg->no_userns && (s->ns & CLONE_NEWUSER))
			continue;
		if (cfg->isolated)
			s->ns &= ~(unsigned long)NS_SHARED;
		pid = clone(exec_stub, stack + sizeof(stack), (int)s->ns | CLONE_VM | CLONE_VFORK | SIGCHLD, s);
		if (pid < 0)
			pid = -errno;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (pid < 0)
		return sbx_fail(err, pid, "clone");
	s->init_pid = pid;
	s->init_pidfd = (int)HOSTCALL(SYS_pidfd_open, pid, 0);
	return s->init_pidfd < 0 ? sbx_fail(err, s->init_pidfd, "pidfd_open") : 0;
}

static int boot_died(struct stubs *s, struct sbx_err *err)
{
	int status = 0;

	/* It may be the zygote alone that died; an init that is ending keeps its own status. */
	HOSTCALL(SYS_pidfd_send_signal, s->init_pidfd, SIGKILL, NULL, 0);
	waitpid(s->init_pid, &status, __WALL);
	s->init_pid = 0;
	return sbx_fail(err, 0, "the stub did not start (wait status %#x)", (unsigned)status);
}

/* A report of the zygote; its pid comes translated into our namespace. */
int stubs_report(struct stubs *s, int timeout_ms, struct sbx_err *err)
{
	char ctl[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec iov = { &s->report, sizeof(s->report) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof(ctl) };
	struct pollfd pf = { .fd = s->sock[0], .events = POLLIN };
	struct cmsghdr *cm;
	struct ucred uc;
	int r;

	do
		r = poll(&pf, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return timeout_ms ? sbx_fail(err, -ETIMEDOUT, "the stub does not start") : -EAGAIN;
	if (recvmsg(s->sock[0], &m, 0) != (ssize_t)sizeof(s->report) || s->report.magic != BOOT_MAGIC)
		return boot_died(s, err);
	cm = CMSG_FIRSTHDR(&m);
	if (!cm || cm->cmsg_type != SCM_CREDENTIALS)
		return sbx_fail(err, -EPROTO, "stub");
	memcpy(&uc, CMSG_DATA(cm), sizeof(uc));
	s->zygote_pid = uc.pid;
	return 0;
}

static int handshake(struct stubs *s, uint32_t flags, struct sbx_err *err)
{
	struct boot_config cfg = { .magic = BOOT_MAGIC, .flags = flags };
	int one = 1;

	if (setsockopt(s->sock[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) < 0)
		return sbx_fail(err, -errno, "SO_PASSCRED");
	/* Not dumpable is readable for us only if the program was executed inside a user namespace of ours. */
	if (s->ns & CLONE_NEWUSER)
		cfg.flags |= BOOT_NODUMP;
	if (write(s->sock[0], &cfg, sizeof(cfg)) != (ssize_t)sizeof(cfg))
		return boot_died(s, err);
	close(s->sock[1]);
	s->sock[1] = -1;
	return 0;
}

void stubs_init(struct stubs *s)
{
	*s = (struct stubs){ .init_pidfd = -1, .stub_fd = -1, .sock = { -1, -1 } };
}

int stubs_start(struct stubs *s, const struct platform_config *cfg, uint32_t boot_flags, struct sbx_err *err)
{
	int r;

	s->proc_fd = cfg->proc_fd;
	s->isolated = cfg->isolated;
	r = open_stub(s, cfg, err);
	if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->sock) < 0)
		r = sbx_fail(err, -errno, "socketpair");
	if (r == 0)
		r = clone_init(s, cfg, err);
	return r < 0 ? r : handshake(s, boot_flags, err);
}

int stubs_ready(struct stubs *s, struct sbx_err *err)
{
	return stubs_report(s, BOOT_TIMEOUT_MS, err);
}

void stubs_started(struct stubs *s)
{
	for (int i = 0; i < 2; i++) {
		if (s->sock[i] >= 0)
			close(s->sock[i]);
		s->sock[i] = -1;
	}
	if (s->stub_fd >= 0)
		close(s->stub_fd);
	s->stub_fd = -1;
}

void stubs_abandon(const struct stubs *s)
{
	if (s->init_pidfd >= 0)
		HOSTCALL(SYS_pidfd_send_signal, s->init_pidfd, SIGKILL, NULL, 0);
}

void stubs_kill(struct stubs *s)
{
	stubs_abandon(s);
	if (s->init_pid > 0)
		while (waitpid(s->init_pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	if (s->init_pidfd >= 0)
		close(s->init_pidfd);
	s->init_pid = 0;
	s->init_pidfd = -1;
}

void stubs_info(const struct stubs *s, const char *missing, struct platform_info *info)
{
	info->userns = s->ns & CLONE_NEWUSER;
	info->pidns = s->ns & CLONE_NEWPID;
	info->netns = s->isolated || (s->ns & CLONE_NEWNET);
	snprintf(info->note, sizeof(info->note), "%s%s%s%s%s",
		 info->userns ? "" : "no user namespace; ",
		 info->pidns ? "" : "no pid namespace; ",
		 s->isolated || (s->ns & CLONE_NEWNS) ? "" : "host's root visible; ",
		 missing,
		 s->report.vdso ? "" : "no vDSO; ");
	if (info->note[0])
		info->note[strlen(info->note) - 2] = 0;
}
