/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/kvm_mem_oracle.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum what { APPLY, WRITE, FORK, LOOK, EXIT };

struct request {
	enum what what;
	struct aspace_op op;
	uaddr_t addr;
	uint8_t byte;
	unsigned child;
};

struct reply {
	int r, code;
};

static int sock[ORACLE_MAX][2]; /* [0] ours, [1] theirs */
static struct oracle_page *pages;
static sigjmp_buf trapped;
static volatile int trap_code;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)uc;
	trap_code = si->si_code;
	siglongjmp(trapped, sig);
}

static int do_apply(const struct aspace_op *op)
{
	int flags = MAP_FIXED | (op->flags & ASPACE_SHARED ? MAP_SHARED : MAP_PRIVATE) |
	            (op->fd < 0 ? MAP_ANONYMOUS : 0) | (op->flags & ASPACE_LOCKED ? MAP_POPULATE : 0);
	void *at = (void *)op->addr, *p = at;
	int r = 0;

	switch (op->op) {
	case ASPACE_MAP:
		p = mmap(at, op->len, op->prot, flags, op->fd, (off_t)op->offset);
		break;
	case ASPACE_UNMAP:
		r = munmap(at, op->len);
		break;
	case ASPACE_PROTECT:
		r = mprotect(at, op->len, op->prot);
		break;
	case ASPACE_REMAP:
		if (op->new_addr == op->addr)
			p = mremap(at, op->len, op->new_len, 0);
		else
			p = mremap(at, op->len, op->new_len,
			           MREMAP_MAYMOVE | MREMAP_FIXED |
			                   (op->flags & ASPACE_DONTUNMAP ? MREMAP_DONTUNMAP : 0),
			           (void *)op->new_addr);
		break;
	case ASPACE_ADVISE:
		r = madvise(at, op->len, op->advice);
		break;
	}
	return r < 0 || p == MAP_FAILED ? -errno : 0;
}

static void look(void)
{
	for (volatile unsigned i = 0; i < ORACLE_PAGES; i++) {
		int sig = sigsetjmp(trapped, 0);

		pages[i].sig = sig;
		pages[i].code = sig ? trap_code : 0;
		if (!sig)
			pages[i].word = *(volatile uint64_t *)(ORACLE_BASE + i * PAGE_SIZE);
	}
}

static int do_write(uaddr_t addr, uint8_t byte)
{
	int sig = sigsetjmp(trapped, 0);

	if (!sig)
		*(volatile uint8_t *)addr = byte;
	return sig;
}

static NORETURN void serve(unsigned self)
{
	struct request q;
	struct reply a;

	while (recv(sock[self][1], &q, sizeof(q), 0) == sizeof(q)) {
		a = (struct reply){ .r = 0 };
		switch (q.what) {
		case APPLY:
			a.r = do_apply(&q.op);
			break;
		case WRITE:
			a.r = do_write(q.addr, q.byte);
			a.code = a.r ? trap_code : 0;
			break;
		case LOOK:
			look();
			break;
		case FORK:
			a.r = fork();
			if (a.r == 0) {
				self = q.child;
				continue;
			}
			break;
		case EXIT:
			break;
		}
		if (send(sock[self][1], &a, sizeof(a), 0) != sizeof(a) || q.what == EXIT)
			break;
	}
	_exit(0);
}

static struct reply ask(unsigned i, const struct request *q)
{
	struct reply a = { .r = -1 };

	if (send(sock[i][0], q, sizeof(*q), 0) != sizeof(*q))
		exit(2);
	if (recv(sock[i][0], &a, sizeof(a), 0) != sizeof(a))
		exit(2);
	return a;
}

void oracle_start(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER };

	pages = mmap(NULL, ORACLE_PAGES * sizeof(*pages), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < ORACLE_MAX; i++)
		if (pages == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock[i]) < 0)
			exit(2);
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	signal(SIGCHLD, SIG_IGN);
	for (unsigned i = 0; i < ORACLE_MAX; i++)
		close(sock[i][0]); /* so that all of them see our end */
	serve(0);
}

void oracle_end(void)
{
	for (unsigned i = 0; i < ORACLE_MAX; i++) {
		close(sock[i][0]);
		close(sock[i][1]);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	munmap(pages, ORACLE_PAGES * sizeof(*pages));
}

int oracle_apply(unsigned i, const struct aspace_op *op)
{
	return ask(i, &(struct request){ .what = APPLY, .op = *op }).r;
}

int oracle_write(unsigned i, uaddr_t addr, uint8_t byte, int *code)
{
	struct reply a = ask(i, &(struct request){ .what = WRITE, .addr = addr, .byte = byte });

	*code = a.code;
	return a.r;
}

void oracle_fork(unsigned i, unsigned child)
{
	if (ask(i, &(struct request){ .what = FORK, .child = child }).r < 0)
		exit(2);
}

void oracle_exit(unsigned i)
{
	ask(i, &(struct request){ .what = EXIT });
}

const struct oracle_page *oracle_look(unsigned i)
{
	ask(i, &(struct request){ .what = LOOK });
	return pages;
}
