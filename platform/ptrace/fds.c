/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files for the stubs: sent to the zygote over the socket that they share with us, taken out of it by an ordered
 * recvmsg(2). The message's header lies in the zygote's slot, memory that no guest has. See ptrace_priv.h for who else
 * could use what is in the table.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "platform/ptrace/ptrace_priv.h"
#include "platform/stub/hostcall.h"

#define CTL_SPACE CMSG_SPACE(INJECT_MAX * sizeof(int))

/* In the zygote at SLOT_BASE. */
struct inbox {
	struct msghdr m;
	struct iovec v;
	uint64_t byte;
	union {
		struct cmsghdr align;
		char bytes[CTL_SPACE];
	} ctl;
};

static int send_fds(struct platform *p, const int *fds, unsigned n)
{
	char byte = 0;
	struct iovec v = { &byte, 1 };
	union {
		struct cmsghdr align;
		char bytes[CTL_SPACE];
	} ctl;
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &ctl,
			    .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *cm;
	long r;

	memset(&ctl, 0, sizeof(ctl));
	cm = CMSG_FIRSTHDR(&m);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(cm), fds, n * sizeof(int));
	r = HOSTCALL(SYS_sendmsg, p->sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	return r < 0 ? (int)r : 0;
}

static void inbox_init(struct inbox *in)
{
	memset(in, 0, sizeof(*in));
	in->v.iov_base = (void *)(SLOT_BASE + offsetof(struct inbox, byte));
	in->v.iov_len = 1;
	in->m.msg_iov = (void *)(SLOT_BASE + offsetof(struct inbox, v));
	in->m.msg_iovlen = 1;
	in->m.msg_control = (void *)(SLOT_BASE + offsetof(struct inbox, ctl));
	in->m.msg_controllen = CTL_SPACE;
}

static int read_numbers(const struct inbox *in, unsigned n, int *numbers)
{
	const struct cmsghdr *cm = &in->ctl.align;

	if ((in->m.msg_flags & MSG_CTRUNC) || cm->cmsg_type != SCM_RIGHTS || cm->cmsg_len != CMSG_LEN(n * sizeof(int)))
		return -EMFILE;
	memcpy(numbers, CMSG_DATA(cm), n * sizeof(int));
	for (unsigned i = 0; i < n; i++)
		if (numbers[i] < 0 || numbers[i] >= STUB_SOCK)
			return -EMFILE;
	return 0;
}

int pt_fds_inject(struct platform *p, const int *fds, unsigned n, int *numbers)
{
	const struct order take = { SYS_recvmsg, { STUB_SOCK, SLOT_BASE, MSG_DONTWAIT | MSG_CMSG_CLOEXEC } };
	struct pctx *z = p->zygote;
	struct inbox in;
	int64_t got;
	int r;

	if (p->broken || z->state != PCTX_STOP)
		return -EIO;
	inbox_init(&in);
	r = mem_poke(z->tid, SLOT_BASE, &in, sizeof(in));
	if (r == 0)
		r = send_fds(p, fds, n);
	if (r < 0)
		return r;
	got = pt_order(z, &take);
	if (got != 1) {
		/* A message that stays would be taken for the next one. */
		p->broken = -EIO;
		return -EIO;
	}
	r = mem_peek(z->tid, SLOT_BASE, &in, sizeof(in));
	if (r == 0)
		r = read_numbers(&in, n, numbers);
	if (r < 0)
		(void)pt_fds_drop(p);
	return r == -EMFILE ? -ENOMEM : r;
}

int pt_fds_drop(struct platform *p)
{
	const struct order close = { SYS_close_range, { 0, STUB_SOCK - 1 } };
	int64_t r = pt_order(p->zygote, &close);

	if (r < 0)
		p->broken = -EIO; /* a file that stays in the table is nothing to go on with */
	return (int)r;
}
