/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait, while other threads change what they were given: descriptors, iovecs, names, futex words. */
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "gt_child.h"

#define BIG (1u << 20)

static long fut(void *addr, int op, unsigned val, const void *timeout, void *addr2, unsigned val3)
{
	return syscall(SYS_futex, addr, op, val, timeout, addr2, val3);
}

/* What one thread does, and how it went. */
struct job {
	pthread_t thread;
	int fd, flags, err;
	struct msghdr mh;
	struct iovec iov;
	struct sockaddr_un addr;
	socklen_t addr_len;
	uint32_t *word;
	unsigned val;
	char buf[64];
	ssize_t ret;
	volatile int tid;
	volatile bool started, done, go;
};

static void job_start(struct job *j, void *(*fn)(void *arg))
{
	j->started = j->done = false;
	CHECK_EQ(pthread_create(&j->thread, NULL, fn, j), 0);
	WAIT_FOR(j->started);
	gt_sleep_ms(30); /* into the call */
}

static void job_join(struct job *j)
{
	WAIT_FOR(j->done);
	CHECK_EQ(pthread_join(j->thread, NULL), 0);
}

static void *job_end(struct job *j, ssize_t ret)
{
	j->err = errno;
	j->ret = ret;
	j->done = true;
	return NULL;
}

static void *do_sendmsg(void *arg)
{
	struct job *j = arg;

	j->started = true;
	return job_end(j, sendmsg(j->fd, &j->mh, j->flags));
}

static void *do_recvmsg(void *arg)
{
	struct job *j = arg;

	j->started = true;
	return job_end(j, recvmsg(j->fd, &j->mh, j->flags));
}

static void *do_recv(void *arg)
{
	struct job *j = arg;

	j->started = true;
	return job_end(j, recv(j->fd, j->buf, sizeof(j->buf), j->flags));
}

static void *do_send(void *arg)
{
	struct job *j = arg;

	j->started = true;
	return job_end(j, send(j->fd, j->iov.iov_base, j->iov.iov_len, j->flags));
}

static void *do_connect(void *arg)
{
	struct job *j = arg;

	j->started = true;
	return job_end(j, connect(j->fd, (void *)&j->addr, j->addr_len));
}

static void pair(int type, int sv[2])
{
	CHECK_OK(socketpair(AF_UNIX, type, 0, sv));
}

/* The iovec of a message that was sent in part gets shorter than that part. */
static void send_shrinks(void)
{
	static struct job j;
	static char in[65536];
	ssize_t total = 0;
	int sv[2];

	pair(SOCK_STREAM, sv);
	j = (struct job){ .fd = sv[0], .iov = { calloc(1, BIG), BIG } };
	j.mh.msg_iov = &j.iov;
	j.mh.msg_iovlen = 1;
	job_start(&j, do_sendmsg);
	CHECK(!j.done);
	((volatile struct iovec *)&j.iov)->iov_len = 1;
	for (;;) {
		ssize_t n = recv(sv[1], in, sizeof(in), MSG_DONTWAIT);

		if (n > 0)
			total += n;
		else if (j.done)
			break;
		else
			sched_yield();
	}
	job_join(&j);
	CHECK(j.ret > 4096 && j.ret <= BIG);
	CHECK_EQ(total, j.ret);
}

/* As above, of one that waits for all its bytes; and then the vector itself. */
static void recv_shrinks(void)
{
	static struct job j;
	char more[64] = { 0 };
	int sv[2];

	for (int round = 0; round < 2; round++) {
		pair(SOCK_STREAM, sv);
		j = (struct job){ .fd = sv[0], .flags = MSG_WAITALL, .iov = { j.buf, 64 } };
		j.mh.msg_iov = &j.iov;
		j.mh.msg_iovlen = 1;
		job_start(&j, do_recvmsg);
		CHECK_EQ(send(sv[1], more, 10, 0), 10);
		gt_sleep_ms(30);
		CHECK(!j.done);
		if (round)
			((volatile struct msghdr *)&j.mh)->msg_iovlen = 0;
		else
			((volatile struct iovec *)&j.iov)->iov_len = 4;
		CHECK_EQ(send(sv[1], more, 54, 0), 54);
		job_join(&j);
		CHECK(j.ret >= 10 && j.ret <= 64);
		close(sv[0]);
		close(sv[1]);
	}
}

/* A descriptor that means another socket when the call goes on: the call is still about the first. */
static void recv_replaced(void)
{
	static struct job j;
	int a[2], b[2];

	pair(SOCK_STREAM, a);
	pair(SOCK_STREAM, b);
	j = (struct job){ .fd = a[0], .flags = MSG_WAITALL };
	job_start(&j, do_recv);
	CHECK_EQ(send(a[1], "1", 1, 0), 1);
	gt_sleep_ms(30);
	CHECK_EQ(dup2(b[0], a[0]), a[0]);
	CHECK_EQ(send(b[1], "b", 1, 0), 1);
	CHECK_EQ(send(a[1], "2", 1, 0), 1);
	gt_sleep_ms(30);
	CHECK(!j.done);
	close(a[1]);
	job_join(&j);
	CHECK_EQ(j.ret, 2);
	CHECK(!memcmp(j.buf, "12", 2));
	CHECK_EQ(recv(a[0], j.buf, 4, 0), 1);
	CHECK_EQ(j.buf[0], 'b');
}

/* The second socket is closed under the call, too. */
static void recv_replaced_closed(void)
{
	static struct job j;
	int a[2], b[2];

	pair(SOCK_DGRAM, a);
	pair(SOCK_DGRAM, b);
	j = (struct job){ .fd = a[0] };
	job_start(&j, do_recv);
	CHECK_EQ(dup2(b[0], a[0]), a[0]);
	close(b[0]);
	CHECK_EQ(shutdown(a[1], SHUT_WR), 0); /* wakes, without a message */
	gt_sleep_ms(30);
	close(a[0]);
	close(b[1]);
	CHECK_EQ(j.done, false);
	CHECK_EQ(send(a[1], "x", 1, MSG_NOSIGNAL), -1);
	close(a[1]);
	gt_sleep_ms(30);
	_exit(0); /* the thread waits for ever, here and on Linux */
}

static int listener(struct sockaddr_un *a, socklen_t *len, const char *tag)
{
	int s = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(a->sun_path + 1, 60, "gt-rerun-%s-%d", tag, (int)getpid()));
	CHECK_OK(bind(s, (void *)a, *len));
	CHECK_OK(listen(s, 0));
	return s;
}

/* Fills the backlog of a listener; the descriptors stay open. */
static void fill(const struct sockaddr_un *a, socklen_t len)
{
	for (int i = 0; i < 16; i++) {
		int s = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));

		if (connect(s, (const void *)a, len) < 0) {
			CHECK_EQ(errno, EAGAIN);
			close(s);
			return;
		}
	}
	CHECK(!"the backlog has no end");
}

/* A connect waits for room in a backlog: the listener goes. */
static void connect_gone(void)
{
	static struct job j;
	int l;

	j.fd = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));
	l = listener(&j.addr, &j.addr_len, "gone");
	fill(&j.addr, j.addr_len);
	job_start(&j, do_connect);
	CHECK(!j.done);
	close(l);
	job_join(&j);
	CHECK_EQ(j.ret, -1);
	CHECK_EQ(j.err, ECONNREFUSED);
}

/* Meanwhile the same socket is connected elsewhere. */
static void connect_elsewhere(void)
{
	struct sockaddr_un other;
	static struct job j;
	socklen_t len;
	int l, l2;

	j.fd = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));
	l = listener(&j.addr, &j.addr_len, "one");
	l2 = listener(&other, &len, "two");
	fill(&j.addr, j.addr_len);
	job_start(&j, do_connect);
	CHECK(!j.done);
	CHECK_OK(connect(j.fd, (void *)&other, len));
	close(l);
	job_join(&j);
	CHECK_EQ(j.ret, -1);
	CHECK_EQ(j.err, ECONNREFUSED);
	CHECK_OK(accept(l2, NULL, NULL));
	CHECK_EQ(send(j.fd, "x", 1, 0), 1);
}

/* The descriptor is closed, so that only the call holds its socket. */
static void connect_closed(void)
{
	static struct job j;
	int l;

	j.fd = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));
	l = listener(&j.addr, &j.addr_len, "closed");
	fill(&j.addr, j.addr_len);
	job_start(&j, do_connect);
	CHECK(!j.done);
	close(j.fd);
	close(l);
	job_join(&j);
	CHECK_EQ(j.ret, -1);
}

/* The queue of a datagram socket is full: whoever writes to it waits until it is read, connected to it or not. */
static void dgram_full(void)
{
	static char big[32768];
	static struct job j;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int rx = (int)CHECK_OK(socket(AF_UNIX, SOCK_DGRAM, 0)), n = 0;

	strcpy(a.sun_path, "rx");
	CHECK_OK(bind(rx, (void *)&a, sizeof(a)));
	j.fd = (int)CHECK_OK(socket(AF_UNIX, SOCK_DGRAM, 0));
	CHECK_OK(connect(j.fd, (void *)&a, sizeof(a)));
	while (send(j.fd, big, sizeof(big), MSG_DONTWAIT) > 0)
		n++;
	CHECK_EQ(errno, EAGAIN);
	CHECK(n > 0);
	j.iov = (struct iovec){ big, sizeof(big) };
	job_start(&j, do_send);
	CHECK(!j.done);
	for (int i = 0; i < n; i++)
		CHECK_EQ(recv(rx, big, sizeof(big), 0), sizeof(big));
	job_join(&j);
	CHECK_EQ(j.ret, sizeof(big));
}

static void *do_lock_pi(void *arg)
{
	struct job *j = arg;
	ssize_t r;

	j->tid = (int)syscall(SYS_gettid);
	j->started = true;
	r = fut(j->word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
	j->done = true;
	WAIT_FOR(j->go);
	fut(j->word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
	return job_end(j, r);
}

static void *do_wait(void *arg)
{
	struct job *j = arg;

	j->started = true;
	return job_end(j, fut(j->word, FUTEX_WAIT_PRIVATE, j->val, NULL, NULL, 0));
}

/* Waiters of both kinds on one word: those before the first that waits for a lock are moved, then it is an error. */
static void requeue_mixed(void)
{
	static uint32_t word, to;
	static struct job lock1, wait1, lock2;

	lock1.word = lock2.word = wait1.word = &word;
	word = (uint32_t)syscall(SYS_gettid);
	job_start(&lock1, do_lock_pi);
	CHECK_EQ(word, (uint32_t)syscall(SYS_gettid) | FUTEX_WAITERS);
	wait1.val = word;
	job_start(&wait1, do_wait);
	job_start(&lock2, do_lock_pi);
	CHECK(!lock1.done && !wait1.done && !lock2.done);
	CHECK_OK(fut(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	WAIT_FOR(lock1.done);
	CHECK_ERR(fut(&word, FUTEX_REQUEUE_PRIVATE, 0, (void *)10l, &to, 0), EINVAL);
	/* Many calls, so that what was left where it should not be is written over. */
	for (int i = 0; i < 100; i++)
		CHECK_EQ(fut(&to, FUTEX_REQUEUE_PRIVATE, 0, (void *)10l, &to, 0), 1);
	CHECK_EQ(fut(&to, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0), 1);
	job_join(&wait1);
	CHECK_EQ(wait1.ret, 0);
	lock1.go = lock2.go = true;
	WAIT_FOR(lock2.done);
	pthread_join(lock1.thread, NULL);
	pthread_join(lock2.thread, NULL);
	CHECK_EQ(lock1.ret, 0);
	CHECK_EQ(lock2.ret, 0);
}

/* A lock is refused where somebody waits for something else. */
static void lock_mixed(void)
{
	static uint32_t word;
	static struct job w;

	w.word = &word;
	w.val = word = (uint32_t)syscall(SYS_gettid);
	job_start(&w, do_wait);
	CHECK(!w.done);
	word = 1; /* another owner */
	CHECK_ERR(fut(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0), EINVAL);
	CHECK_EQ(fut(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0), 1);
	job_join(&w);
}

/* A vfork by clone3 whose child takes the arguments away. */
static long raw3(long nr, long a, long b)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "0"(nr), "D"(a), "S"(b) : "rcx", "r11", "memory");
	return r;
}

static void vfork_args(void)
{
	struct clone_args *args = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const struct timespec nap = { 0, 50 * MS };
	static volatile int order;
	long pid;

	CHECK(args != MAP_FAILED);
	args->flags = CLONE_VM | CLONE_VFORK;
	args->exit_signal = SIGCHLD;
	pid = raw3(SYS_clone3, (long)args, sizeof(*args));
	if (pid == 0) {
		raw3(SYS_munmap, (long)args, 4096);
		raw3(SYS_nanosleep, (long)&nap, 0);
		order = 1;
		raw3(SYS_exit_group, 7, 0);
	}
	CHECK(pid > 0);
	CHECK_EQ(order, 1);
	CHECK_EXIT((pid_t)pid, 7);
}

static const struct gt_case cases[] = {
	{ "send_shrinks", send_shrinks },
	{ "recv_shrinks", recv_shrinks },
	{ "recv_replaced", recv_replaced },
	{ "recv_replaced_closed", recv_replaced_closed },
	{ "connect_gone", connect_gone },
	{ "connect_elsewhere", connect_elsewhere },
	{ "connect_closed", connect_closed },
	{ "dgram_full", dgram_full },
	{ "requeue_mixed", requeue_mixed },
	{ "lock_mixed", lock_mixed },
	{ "vfork_args", vfork_args },
	{ NULL, NULL },
};
GT_MAIN(cases)
