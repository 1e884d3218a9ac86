/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "sentry/abi/time.h"
#include "sentry/kernel/clock.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/socket/msg.h"
#include "sentry/socket/sock.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"

#define OPT_MAX 256u
#define MMSG_MAX 1024u

struct linux_mmsghdr {
	struct linux_msghdr hdr;
	uint32_t len, pad;
};

static int type_decode(int arg, int *type, uint32_t *fflags, bool *cloexec)
{
	if (arg & ~(0xf | SOCK_CLOEXEC | SOCK_NONBLOCK))
		return -EINVAL;
	*type = arg & 0xf;
	*fflags = (arg & SOCK_NONBLOCK) ? O_NONBLOCK : 0;
	*cloexec = arg & SOCK_CLOEXEC;
	return *type < SOCK_STREAM || *type > SOCK_PACKET ? -EINVAL : 0;
}

int64_t sys_socket(struct task *t, const struct sysargs *a)
{
	const struct sock_family *fam;
	struct sock *s;
	struct file *f;
	uint32_t fflags;
	bool cloexec;
	int type, err = type_decode(ARG_INT(a, 1), &type, &fflags, &cloexec);

	if (err)
		return err;
	fam = sock_family_lookup(ARG_INT(a, 0));
	if (!fam)
		return -EAFNOSUPPORT;
	err = fam->create(t, type, ARG_INT(a, 2), &s);
	if (!err)
		err = sock_file_create(s, fflags, &f);
	return err ? err : fd_install(t, f, 0, cloexec);
}

int64_t sys_socketpair(struct task *t, const struct sysargs *a)
{
	const struct sock_family *fam;
	struct sock *s[2];
	struct file *f[2];
	uint32_t fflags;
	bool cloexec;
	int fds[2], type, err = type_decode(ARG_INT(a, 1), &type, &fflags, &cloexec);

	if (err)
		return err;
	fam = sock_family_lookup(ARG_INT(a, 0));
	if (!fam)
		return -EAFNOSUPPORT;
	if (!fam->pair)
		return -EOPNOTSUPP;
	err = fam->pair(t, type, ARG_INT(a, 2), s);
	if (err)
		return err;
	err = sock_file_create(s[0], fflags, &f[0]);
	if (err) {
		s[1]->ops->close(s[1]);
		sock_put(s[1]);
		return err;
	}
	err = sock_file_create(s[1], fflags, &f[1]);
	if (err) {
		file_put(f[0]);
		return err;
	}
	fds[0] = fd_install(t, f[0], 0, cloexec);
	if (fds[0] < 0) {
		file_put(f[1]);
		return fds[0];
	}
	fds[1] = fd_install(t, f[1], 0, cloexec);
	err = fds[1] < 0 ? fds[1] : copy_out(t, ARG_PTR(a, 3), fds, sizeof(fds));
	if (!err)
		return 0;
	if (fds[1] >= 0)
		DISCARD(fd_close(t, fds[1])); /* just installed */
	DISCARD(fd_close(t, fds[0]));
	return err;
}

int64_t sys_bind(struct task *t, const struct sysargs *a)
{
	struct sock_addr addr;
	struct sock *s;
	struct file *f;
	int err = sock_call_file(t, ARG_INT(a, 0), &f, &s);

	if (err)
		return err;
	err = sock_addr_in(t, ARG_PTR(a, 1), ARG_U32(a, 2), &addr);
	if (!err)
		err = s->ops->bind ? s->ops->bind(s, t, &addr) : -EOPNOTSUPP;
	file_put(f);
	return err;
}

int64_t sys_connect(struct task *t, const struct sysargs *a)
{
	return sock_connect(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_U32(a, 2));
}

int64_t sys_listen(struct task *t, const struct sysargs *a)
{
	struct sock *s;
	struct file *f;
	int err = sock_call_file(t, ARG_INT(a, 0), &f, &s);

	if (err)
		return err;
	err = s->ops->listen ? s->ops->listen(s, t, ARG_INT(a, 1)) : -EOPNOTSUPP;
	file_put(f);
	return err;
}

static int64_t accept_one(struct task *t, struct file *f, struct sock *s, uaddr_t addr, uaddr_t lenp, int flags)
{
	struct sock_addr name;
	struct sock *ns;
	struct file *nf;
	int err;

	err = s->ops->accept ? s->ops->accept(s, &ns) : -EOPNOTSUPP;
	if (err == -EAGAIN && !(f->flags & O_NONBLOCK))
		return sock_block(t, f, POLLIN, s->rcvtimeo);
	if (err)
		return err;
	memset(&name, 0, sizeof(name));
	if (addr && ns->ops->getname(ns, true, &name))
		name.len = 0;
	err = sock_file_create(ns, (flags & SOCK_NONBLOCK) ? O_NONBLOCK : 0, &nf);
	if (err)
		return err;
	err = sock_addr_out(t, addr, lenp, &name);
	if (err) {
		file_put(nf);
		return err;
	}
	return fd_install(t, nf, 0, flags & SOCK_CLOEXEC);
}

static int64_t do_accept(struct task *t, const struct sysargs *a, int flags)
{
	struct sock *s;
	struct file *f;
	int64_t r;

	if (flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK))
		return -EINVAL;
	r = sock_call_file(t, ARG_INT(a, 0), &f, &s);
	if (r)
		return r;
	r = accept_one(t, f, s, ARG_PTR(a, 1), ARG_PTR(a, 2), flags);
	file_put(f);
	return r;
}

int64_t sys_accept(struct task *t, const struct sysargs *a)
{
	return do_accept(t, a, 0);
}

int64_t sys_accept4(struct task *t, const struct sysargs *a)
{
	return do_accept(t, a, ARG_INT(a, 3));
}

static int64_t do_getname(struct task *t, const struct sysargs *a, bool peer)
{
	struct sock_addr name;
	struct sock *s;
	struct file *f;
	int err = sock_call_file(t, ARG_INT(a, 0), &f, &s);

	if (err)
		return err;
	memset(&name, 0, sizeof(name));
	err = s->ops->getname(s, peer, &name);
	if (!err)
		err = ARG_PTR(a, 1) ? sock_addr_out(t, ARG_PTR(a, 1), ARG_PTR(a, 2), &name) : -EFAULT;
	file_put(f);
	return err;
}

int64_t sys_getsockname(struct task *t, const struct sysargs *a)
{
	return do_getname(t, a, false);
}

int64_t sys_getpeername(struct task *t, const struct sysargs *a)
{
	return do_getname(t, a, true);
}

int64_t sys_shutdown(struct task *t, const struct sysargs *a)
{
	struct sock *s;
	struct file *f;
	int how = ARG_INT(a, 1), err = sock_call_file(t, ARG_INT(a, 0), &f, &s);

	if (err)
		return err;
	err = how < SHUT_RD || how > SHUT_RDWR ? -EINVAL : s->ops->shutdown ? s->ops->shutdown(s, how) : -EOPNOTSUPP;
	file_put(f);
	return err;
}

int64_t sys_setsockopt(struct task *t, const struct sysargs *a)
{
	uint8_t val[OPT_MAX] = { 0 };
	int len = ARG_INT(a, 4), err;
	struct sock *s;
	struct file *f;

	err = sock_call_file(t, ARG_INT(a, 0), &f, &s);
	if (err)
		return err;
	if (len < 0)
		err = -EINVAL;
	else
		err = copy_in(t, ARG_PTR(a, 3), val, MIN((unsigned)len, OPT_MAX));
	if (!err)
		err = sock_setsockopt(s, ARG_INT(a, 1), ARG_INT(a, 2), val, MIN((unsigned)len, OPT_MAX));
	file_put(f);
	return err;
}

int64_t sys_getsockopt(struct task *t, const struct sysargs *a)
{
	uint8_t val[OPT_MAX] = { 0 };
	uint32_t len;
	struct sock *s;
	struct file *f;
	int err = sock_call_file(t, ARG_INT(a, 0), &f, &s);

	if (err)
		return err;
	err = copy_in(t, ARG_PTR(a, 4), &len, sizeof(len));
	if (!err && (int32_t)len < 0)
		err = -EINVAL;
	len = err ? 0 : MIN(len, OPT_MAX);
	if (!err)
		err = sock_getsockopt(s, ARG_INT(a, 1), ARG_INT(a, 2), val, &len);
	if (!err && (copy_out(t, ARG_PTR(a, 3), val, len) || copy_out(t, ARG_PTR(a, 4), &len, sizeof(len))))
		err = -EFAULT;
	file_put(f);
	return err;
}

int64_t sys_sendto(struct task *t, const struct sysargs *a)
{
	struct sock_addr to;
	struct sock *s;
	struct file *f;
	int64_t r = sock_call_file(t, ARG_INT(a, 0), &f, &s);

	if (r)
		return r;
	if (ARG_PTR(a, 4))
		r = sock_addr_in(t, ARG_PTR(a, 4), ARG_U32(a, 5), &to);
	if (!r)
		r = sock_sendto(t, f, ARG_PTR(a, 1), ARG_U64(a, 2), ARG_INT(a, 3), ARG_PTR(a, 4) ? &to : NULL);
	file_put(f);
	return r;
}

int64_t sys_recvfrom(struct task *t, const struct sysargs *a)
{
	struct sock_addr from = { 0 };
	struct sock *s;
	struct file *f;
	int64_t r = sock_call_file(t, ARG_INT(a, 0), &f, &s);
	int err;

	if (r)
		return r;
	r = sock_recvfrom(t, f, ARG_PTR(a, 1), ARG_U64(a, 2), ARG_INT(a, 3), &from);
	if (r >= 0) {
		err = sock_addr_out(t, ARG_PTR(a, 4), ARG_PTR(a, 5), &from);
		if (err)
			r = err;
	}
	file_put(f);
	return r;
}

static int64_t do_sendmsg(struct task *t, struct file *f, uaddr_t p, int flags)
{
	struct linux_msghdr hdr;

	if (copy_in(t, p, &hdr, sizeof(hdr)))
		return -EFAULT;
	return sock_sendmsg(t, f, &hdr, flags);
}

static int64_t do_recvmsg(struct task *t, struct file *f, uaddr_t p, int flags)
{
	struct linux_msghdr hdr;
	int64_t r;

	if (copy_in(t, p, &hdr, sizeof(hdr)))
		return -EFAULT;
	r = sock_recvmsg(t, f, &hdr, flags);
	if (r >= 0 &&
	    (copy_out(t, p + offsetof(struct linux_msghdr, namelen), &hdr.namelen, sizeof(hdr.namelen)) ||
	     copy_out(t, p + offsetof(struct linux_msghdr, controllen), &hdr.controllen, sizeof(hdr.controllen)) ||
	     copy_out(t, p + offsetof(struct linux_msghdr, flags), &hdr.flags, sizeof(hdr.flags))))
		r = -EFAULT;
	return r;
}

int64_t sys_sendmsg(struct task *t, const struct sysargs *a)
{
	struct sock *s;
	struct file *f;
	int64_t r = sock_call_file(t, ARG_INT(a, 0), &f, &s);

	if (r)
		return r;
	r = do_sendmsg(t, f, ARG_PTR(a, 1), ARG_INT(a, 2));
	file_put(f);
	return r;
}

int64_t sys_recvmsg(struct task *t, const struct sysargs *a)
{
	struct sock *s;
	struct file *f;
	int64_t r = sock_call_file(t, ARG_INT(a, 0), &f, &s);

	if (r)
		return r;
	r = do_recvmsg(t, f, ARG_PTR(a, 1), ARG_INT(a, 2));
	file_put(f);
	return r;
}

/* sendmmsg and recvmmsg: op.scratch[0] counts the messages that are done, op.progress is the present one's. */
static int64_t do_mmsg(struct task *t, const struct sysargs *a, int flags,
		       int64_t (*one)(struct task *t, struct file *f, uaddr_t p, int flags))
{
	unsigned n = MIN(ARG_U32(a, 2), MMSG_MAX);
	struct sock *s;
	struct file *f;
	int64_t r = sock_call_file(t, ARG_INT(a, 0), &f, &s);

	if (r)
		return r;
	while (t->op.scratch[0] < n) {
		uaddr_t p = ARG_PTR(a, 1) + t->op.scratch[0] * sizeof(struct linux_mmsghdr);
		bool later = t->op.scratch[0] && ((flags & MSG_WAITFORONE) || task_timed_out(t));
		uint32_t len;

		r = one(t, f, p, (flags & ~MSG_WAITFORONE) | (later ? MSG_DONTWAIT : 0));
		if (r < 0)
			break;
		len = (uint32_t)r;
		t->op.progress = 0;
		if (copy_out(t, p + offsetof(struct linux_mmsghdr, len), &len, sizeof(len))) {
			r = -EFAULT;
			break;
		}
		t->op.scratch[0]++;
	}
	file_put(f);
	if (r == SYS_BLOCKED || !t->op.scratch[0])
		return r;
	return (int64_t)t->op.scratch[0];
}

int64_t sys_sendmmsg(struct task *t, const struct sysargs *a)
{
	return do_mmsg(t, a, ARG_INT(a, 3), do_sendmsg);
}

int64_t sys_recvmmsg(struct task *t, const struct sysargs *a)
{
	struct linux_timespec ts;
	uint64_t ns;

	if (ARG_PTR(a, 4) && !t->op.restarted) {
		if (copy_in(t, ARG_PTR(a, 4), &ts, sizeof(ts)))
			return -EFAULT;
		if (timespec_to_ns(&ts, &ns))
			return -EINVAL;
		task_deadline(t, ns_add_sat(clock_mono_ns(), ns));
	}
	return do_mmsg(t, a, ARG_INT(a, 3), do_recvmsg);
}
