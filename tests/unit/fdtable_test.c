/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors, transfers and attributes of open files. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "sentry/abi/stat.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/restart.h"
#include "sentry/syscalls/fs_attr.h"
#include "sentry/syscalls/fs_copy.h"
#include "sentry/syscalls/fs_fd.h"
#include "sentry/syscalls/fs_open.h"
#include "sentry/syscalls/fs_path.h"
#include "sentry/syscalls/fs_rw.h"
#include "sentry/syscalls/fs_stat.h"
#include "sentry/syscalls/fs_sync.h"
#include "sentry/syscalls/fs_xattr.h"
#include "sentry/vfs/uio.h"
#include "sentry/vfs/vfs.h"
#include "tests/lib/fake_task.h"
#include "tests/lib/memfs.h"
#include "tests/lib/tap.h"

static struct fake_task ft;

static int64_t open_(const char *p, uint32_t flags)
{
	return SYS(&ft, sys_open, P(p), flags, 0644);
}

static int64_t close_(int64_t fd)
{
	return SYS(&ft, sys_close, (uint64_t)fd);
}

static int64_t fcntl_(int64_t fd, int cmd, uint64_t arg)
{
	return SYS(&ft, sys_fcntl, (uint64_t)fd, (uint64_t)cmd, arg);
}

static int64_t write_(int64_t fd, const void *p, size_t n)
{
	return SYS(&ft, sys_write, (uint64_t)fd, P(p), n);
}

static int64_t read_(int64_t fd, void *p, size_t n)
{
	return SYS(&ft, sys_read, (uint64_t)fd, P(p), n);
}

static void set_up(void)
{
	struct mem_super *ms;

	BUG_ON(vfs_init());
	ms = memfs_create(true);
	BUG_ON(mount_add(kernel.mnt_ns, &ms->sb, NULL, NULL, 0, "root"));
	super_put(&ms->sb);
	fake_task_init(&ft, 0);
}

static void test_numbers(void)
{
	int64_t fd;

	for (int i = 0; i < 4; i++)
		tap_eq(open_("/f", O_CREAT | O_RDWR), i, "the lowest number");
	tap_eq(close_(1), 0, "close");
	tap_eq(close_(1), -EBADF, "close again");
	tap_eq(SYS(&ft, sys_dup, 3), 1, "dup takes the gap");
	tap_eq(SYS(&ft, sys_dup, 99), -EBADF, "dup of nothing");
	tap_eq(SYS(&ft, sys_dup2, 3, 3), 3, "dup2 to itself");
	tap_eq(SYS(&ft, sys_dup2, 99, 99), -EBADF, "dup2 of nothing to itself");
	tap_eq(SYS(&ft, sys_dup3, 3, 3, 0), -EINVAL, "dup3 to itself");
	tap_eq(SYS(&ft, sys_dup3, 3, 9, 1), -EINVAL, "dup3 with unknown flags");
	tap_eq(SYS(&ft, sys_dup2, 3, 1024), -EBADF, "dup2 over the limit");
	tap_eq(SYS(&ft, sys_dup2, 3, (uint64_t)-1), -EBADF, "dup2 below 0");
	tap_eq(SYS(&ft, sys_dup3, 3, 1000, O_CLOEXEC), 1000, "dup3 far up grows the table");
	tap_eq(fcntl_(1000, F_GETFD, 0), FD_CLOEXEC, "with FD_CLOEXEC");
	tap_eq(fcntl_(1000, F_SETFD, 0), 0, "which can be cleared");
	tap_eq(fcntl_(1000, F_GETFD, 0), 0, "is clear");
	tap_eq(fcntl_(3, F_DUPFD, 1000), 1001, "F_DUPFD");
	tap_eq(fcntl_(3, F_DUPFD, 1024), -EINVAL, "F_DUPFD at the limit");
	tap_eq(fcntl_(3, F_DUPFD_CLOEXEC, 0), 4, "F_DUPFD_CLOEXEC");
	tap_eq(fcntl_(4, F_GETFD, 0), FD_CLOEXEC, "has it");
	fdtable_close_on_exec(ft.t.fdt);
	tap_eq(fcntl_(4, F_GETFD, 0), -EBADF, "execve closes it");
	ft.tg.rlim[RLIMIT_NOFILE].cur = 5;
	tap_eq(SYS(&ft, sys_dup, 0), 4, "the last number");
	tap_eq(SYS(&ft, sys_dup, 0), -EMFILE, "EMFILE");
	tap_eq(open_("/new", O_CREAT | O_RDWR), -EMFILE, "open, too");
	ft.tg.rlim[RLIMIT_NOFILE].cur = 1024;
	tap_eq(open_("/new", O_RDWR), -ENOENT, "and has created nothing");
	for (fd = 0; fd >= 0;)
		fd = SYS(&ft, sys_dup, 0);
	tap_ok(fd == -EMFILE && fd_next(ft.t.fdt, 1023) == 1023, "the table can be filled");
	tap_eq(SYS(&ft, sys_close_range, 10, 5, 0), -EINVAL, "close_range backwards");
	tap_eq(SYS(&ft, sys_close_range, 900, UINT32_MAX, CLOSE_RANGE_CLOEXEC), 0, "close_range CLOEXEC");
	tap_eq(fcntl_(900, F_GETFD, 0), FD_CLOEXEC, "marks");
	tap_eq(SYS(&ft, sys_close_range, 1, UINT32_MAX, 0), 0, "close_range");
	tap_eq(fd_next(ft.t.fdt, 1), -1, "closes all");
	tap_eq(fd_next(ft.t.fdt, 0), 0, "above");
}

static void test_copy(void)
{
	struct fdtable *c = fdtable_copy(ft.t.fdt), *mine = ft.t.fdt;

	tap_ok(c && fd_get_flags(c, 0) == 0, "fork copies");
	ft.t.fdt = c;
	close_(0);
	ft.t.fdt = mine;
	tap_eq(fcntl_(0, F_GETFD, 0), 0, "a close in the child leaves the parent's");
	fdtable_put(c);
	fdtable_get(mine);
	tap_eq(SYS(&ft, sys_close_range, 0, 0, CLOSE_RANGE_UNSHARE), 0, "close_range UNSHARE");
	tap_ok(ft.t.fdt != mine && fd_get_flags(mine, 0) == 0, "leaves the shared one alone");
	fdtable_put(ft.t.fdt);
	ft.t.fdt = mine;
	close_(0);
}

static void test_uio(void)
{
	uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov[4] = { { page, 3 }, { page + 100, 0 }, { page + 200, 5 }, { page + 4090, 100 } };
	struct uio_seg segs[4], one;
	char buf[32] = "abcdefghijklmnopqrstuvwxyz";
	struct uio u;

	fake_fault_page = P(page + 4096);
	tap_eq(uio_init_iov(&u, &ft.t, segs, 4, P(iov), 4), 0, "an iovec");
	tap_eq(u.resid, 108, "its length");
	tap_eq(uio_copy_to(&u, buf, 26), 14, "a transfer ends at the fault");
	tap_ok(!memcmp(page, "abc", 3) && !memcmp(page + 200, "defgh", 5) && !memcmp(page + 4090, "ijklmn", 6),
	       "in order");
	tap_eq(uio_copy_to(&u, buf, 1), -EFAULT, "the next one faults");
	uio_revert(&u, 10);
	tap_eq(u.resid, 104, "revert goes back");
	memset(buf, 0, sizeof(buf));
	tap_eq(uio_copy_from(&u, buf, 10), 10, "over segments");
	tap_ok(!memcmp(buf, "efghijklmn", 10), "to the same bytes");
	tap_eq(uio_init_iov(&u, &ft.t, segs, 4, P(iov), 1025), -EINVAL, "more than IOV_MAX");
	iov[1].iov_len = (size_t)-1;
	tap_eq(uio_init_iov(&u, &ft.t, segs, 4, P(iov), 4), -EINVAL, "a negative length");
	iov[1].iov_len = 1ull << 47;
	tap_eq(uio_init_iov(&u, &ft.t, segs, 4, P(iov), 4), -EFAULT, "out of user space");
	iov[1] = (struct iovec){ (void *)8, 1ull << 40 };
	tap_eq(uio_init_iov(&u, &ft.t, segs, 4, P(iov), 4), 0, "a huge length");
	tap_eq(u.resid, UIO_MAX_BYTES, "is cut");
	tap_eq(uio_init_iov(&u, &ft.t, segs, 4, 8, 1), -EFAULT, "a bad iovec");
	tap_eq(uio_init_iov(&u, &ft.t, segs, 4, 0, 0), 0, "an empty one");
	tap_eq(uio_copy_to(&u, buf, 5), 0, "takes nothing");
	uio_init_kernel(&u, &one, buf, 8);
	tap_eq(uio_zero(&u, 100), 8, "zeroes up to the end");
	fake_fault_page = UINT64_MAX;
	munmap(page, 8192);
}

static void test_rw(void)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)"12", 2 }, { (void *)(uintptr_t)"345", 3 } };
	char buf[16] = "";
	int64_t fd = open_("/rw", O_CREAT | O_RDWR), ro;

	tap_eq(write_(fd, "hello", 5), 5, "write");
	tap_eq(read_(fd, buf, 16), 0, "read at the end");
	tap_eq(SYS(&ft, sys_lseek, (uint64_t)fd, 1, SEEK_SET), 1, "lseek");
	tap_eq(read_(fd, buf, 16), 4, "a short read");
	tap_ok(!memcmp(buf, "ello", 4), "of the right bytes");
	tap_eq(read_(fd, NULL, 0), 0, "a read of nothing");
	tap_eq(SYS(&ft, sys_lseek, (uint64_t)fd, (uint64_t)-6, SEEK_END), -EINVAL, "before the beginning");
	tap_eq(SYS(&ft, sys_lseek, (uint64_t)fd, 0, 9), -EINVAL, "an unknown whence");
	tap_eq(SYS(&ft, sys_lseek, (uint64_t)fd, 5, SEEK_DATA), -ENXIO, "no data behind the end");
	tap_eq(SYS(&ft, sys_lseek, (uint64_t)fd, 2, SEEK_HOLE), 5, "a hole at the end");
	tap_eq(SYS(&ft, sys_pread64, (uint64_t)fd, P(buf), 2, 1), 2, "pread");
	tap_eq(SYS(&ft, sys_pread64, (uint64_t)fd, P(buf), 2, (uint64_t)-1), -EINVAL, "at a negative offset");
	tap_eq(SYS(&ft, sys_pwrite64, (uint64_t)fd, P("J"), 1, 0), 1, "pwrite");
	tap_eq(SYS(&ft, sys_lseek, (uint64_t)fd, 0, SEEK_CUR), 5, "neither moves the position");
	tap_eq(SYS(&ft, sys_writev, (uint64_t)fd, P(iov), 2), 5, "writev");
	tap_eq(SYS(&ft, sys_pwritev2, (uint64_t)fd, P(iov), 1, 0, 0, RWF_APPEND), 2, "RWF_APPEND");
	tap_eq(SYS(&ft, sys_pwritev2, (uint64_t)fd, P(iov), 1, 0, 0, 1u << 30), -EOPNOTSUPP, "an unknown RWF_");
	tap_eq(SYS(&ft, sys_lseek, (uint64_t)fd, 0, SEEK_END), 12, "all is there");
	tap_eq(read_(fd, (void *)8, 4), 0, "at the end a bad buffer does not matter");
	SYS(&ft, sys_lseek, (uint64_t)fd, 0, SEEK_SET);
	tap_eq(read_(fd, (void *)8, 4), -EFAULT, "before it does");
	tap_eq(read_(fd, buf, SIZE_MAX), -EFAULT, "a buffer beyond the address space");
	ro = open_("/rw", O_RDONLY);
	tap_eq(write_(ro, "x", 1), -EBADF, "write to a read-only descriptor");
	close_(ro);
	ro = open_("/", O_RDONLY);
	tap_eq(read_(ro, buf, 1), -EISDIR, "read of a directory");
	close_(ro);
	tap_eq(read_(77, buf, 1), -EBADF, "read of nothing");
	close_(fd);
}

static void test_limits(void)
{
	struct linux_stat st;
	int64_t fd = open_("/lim", O_CREAT | O_RDWR);

	ft.tg.rlim[RLIMIT_FSIZE].cur = 10;
	tap_eq(write_(fd, "0123456789abcdef", 16), 10, "a write is cut at RLIMIT_FSIZE");
	fake_signal = 0;
	tap_eq(write_(fd, "x", 1), -EFBIG, "then EFBIG");
	tap_eq(fake_signal, SIGXFSZ, "and SIGXFSZ");
	tap_eq(SYS(&ft, sys_ftruncate, (uint64_t)fd, 11), -EFBIG, "ftruncate, too");
	tap_eq(SYS(&ft, sys_ftruncate, (uint64_t)fd, 4), 0, "it may shrink");
	tap_eq(SYS(&ft, sys_ftruncate, (uint64_t)fd, (uint64_t)-1), -EINVAL, "not below 0");
	ft.tg.rlim[RLIMIT_FSIZE].cur = UINT64_MAX;
	SYS(&ft, sys_chmod, P("/lim"), 06777);
	write_(fd, "x", 1);
	SYS(&ft, sys_stat, P("/lim"), P(&st));
	tap_eq(st.st_mode & 07777, 06777, "a write with CAP_FSETID keeps set-id bits");
	ft.cred.cap_effective &= ~(1ull << CAP_FSETID);
	write_(fd, "x", 1);
	SYS(&ft, sys_stat, P("/lim"), P(&st));
	tap_eq(st.st_mode & 07777, 0777, "and takes them without");
	ft.cred.cap_effective = ~0ull;
	tap_eq(SYS(&ft, sys_fallocate, (uint64_t)fd, 0, 0, 0), -EINVAL, "fallocate of nothing");
	tap_eq(SYS(&ft, sys_fallocate, (uint64_t)fd, 0, 0, 1), -EOPNOTSUPP, "fallocate where there is none");
	tap_eq(SYS(&ft, sys_fsync, (uint64_t)fd), 0, "fsync");
	close_(fd);
}

static void test_flags(void)
{
	int on = 1, n = 0;
	int64_t fd = open_("/fl", O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC);

	tap_eq(fcntl_(fd, F_GETFL, 0), O_RDWR | 0100000, "F_GETFL");
	tap_eq(fcntl_(fd, F_SETFL, O_APPEND | O_NONBLOCK | O_WRONLY), 0, "F_SETFL");
	tap_eq(fcntl_(fd, F_GETFL, 0), O_RDWR | O_APPEND | O_NONBLOCK | 0100000, "not the access mode");
	tap_eq(fcntl_(fd, 9999, 0), -EINVAL, "an unknown command");
	tap_eq(fcntl_(fd, F_SETOWN, (uint64_t)-7), 0, "F_SETOWN");
	tap_eq(fcntl_(fd, F_GETOWN, 0), -7, "F_GETOWN");
	tap_eq(fcntl_(fd, F_SETSIG, 65), -EINVAL, "F_SETSIG");
	tap_eq(fcntl_(fd, F_GET_SEALS, 0), -EINVAL, "no seals");
	tap_eq(SYS(&ft, sys_ioctl, (uint64_t)fd, FIONCLEX), 0, "FIONCLEX");
	tap_eq(fcntl_(fd, F_GETFD, 0), 0, "clears");
	on = 0;
	tap_eq(SYS(&ft, sys_ioctl, (uint64_t)fd, FIONBIO, P(&on)), 0, "FIONBIO");
	tap_eq(fcntl_(fd, F_GETFL, 0) & O_NONBLOCK, 0, "clears, too");
	write_(fd, "12345", 5);
	SYS(&ft, sys_lseek, (uint64_t)fd, 2, SEEK_SET);
	tap_ok(SYS(&ft, sys_ioctl, (uint64_t)fd, FIONREAD, P(&n)) == 0 && n == 3, "FIONREAD");
	tap_eq(SYS(&ft, sys_ioctl, (uint64_t)fd, TIOCGWINSZ, P(&n)), -ENOTTY, "no terminal");
	close_(fd);
	fd = open_("/fl", O_PATH);
	tap_eq(fcntl_(fd, F_SETFL, 0), -EBADF, "F_SETFL on O_PATH");
	tap_eq(fcntl_(fd, F_GETFL, 0), O_PATH, "F_GETFL on O_PATH");
	tap_eq(SYS(&ft, sys_ioctl, (uint64_t)fd, FIONREAD, P(&n)), -EBADF, "ioctl on O_PATH");
	close_(fd);
}

static void test_times(void)
{
	struct timespec ts[2] = { { 5, 6 }, { 7, UTIME_OMIT } };
	struct linux_stat st;
	struct fake_task other;

	close_(open_("/t", O_CREAT | O_RDWR));
	tap_eq(SYS(&ft, sys_utimensat, (uint64_t)AT_FDCWD, P("/t"), P(ts), 0), 0, "utimensat");
	SYS(&ft, sys_stat, P("/t"), P(&st));
	tap_ok(st.atime_sec == 5 && st.atime_nsec == 6 && st.mtime_sec != 7, "sets one and omits the other");
	ts[0].tv_nsec = 1000000000;
	tap_eq(SYS(&ft, sys_utimensat, (uint64_t)AT_FDCWD, P("/t"), P(ts), 0), -EINVAL, "too many nanoseconds");
	ts[0].tv_nsec = UTIME_OMIT;
	tap_eq(SYS(&ft, sys_utimensat, (uint64_t)AT_FDCWD, P("/nothing"), P(ts), 0), 0,
	       "two omissions look at nothing");
	fake_task_init(&other, 1000);
	SYS(&ft, sys_chmod, P("/t"), 0666);
	tap_eq(SYS(&other, sys_utimensat, (uint64_t)AT_FDCWD, P("/t"), 0, 0), 0, "now: who may write may touch");
	ts[0].tv_nsec = 1;
	tap_eq(SYS(&other, sys_utimensat, (uint64_t)AT_FDCWD, P("/t"), P(ts), 0), -EPERM, "other times: the owner");
	SYS(&ft, sys_chmod, P("/t"), 0644);
	tap_eq(SYS(&other, sys_utimensat, (uint64_t)AT_FDCWD, P("/t"), 0, 0), -EACCES, "now, without write permission");
	fake_task_fini(&other);
}

/* A file that would block until told otherwise. */
static struct waitq *const fake_queue = (struct waitq *)&ft;
static bool slow_ready;
static size_t slow_room;

static ssize_t slow_read(struct file *f, struct uio *u, uint64_t *pos)
{
	return slow_ready ? uio_copy_to(u, "data", 4) : -EAGAIN;
}

static ssize_t slow_write(struct file *f, struct uio *u, uint64_t *pos)
{
	static char sink[64];
	ssize_t n;

	if (!slow_ready)
		return -EPIPE;
	if (!slow_room)
		return -EAGAIN;
	n = uio_copy_from(u, sink, slow_room);
	slow_room -= n > 0 ? (size_t)n : 0;
	return n;
}

static uint32_t slow_poll(struct file *f, struct waitq **q)
{
	*q = fake_queue;
	return slow_ready ? POLLIN : 0;
}

static const struct file_ops slow_ops = { .read = slow_read, .write = slow_write, .poll = slow_poll };

static void test_blocking(void)
{
	struct inode *in = anon_inode_create(S_IFIFO | 0600);
	struct file *f = file_create(&slow_ops, in, O_RDWR);
	char buf[8];
	struct sysargs a = { { 0, P(buf), 8 } }, w = { { 0, P("0123456789"), 10 } };
	unsigned before = kernel.counters.files;

	inode_put(in);
	a.a[0] = w.a[0] = (uint64_t)fd_install(&ft.t, f, 0, false);
	tap_eq(sys_read(&ft.t, &a), SYS_BLOCKED, "a read blocks");
	tap_eq(fd_close(&ft.t, (int)a.a[0]), 0, "the descriptor is closed meanwhile");
	tap_eq(kernel.counters.files, before, "the call holds the file");
	ft.t.op.restarted = true;
	slow_ready = true;
	tap_eq(sys_read(&ft.t, &a), 4, "run again, it reads from it");
	fake_op_end(&ft.t);
	tap_eq(kernel.counters.files, before - 1, "then the file goes");

	in = anon_inode_create(S_IFIFO | 0600);
	f = file_create(&slow_ops, in, O_RDWR);
	inode_put(in);
	w.a[0] = (uint64_t)fd_install(&ft.t, f, 0, false);
	slow_room = 4;
	tap_eq(sys_write(&ft.t, &w), SYS_BLOCKED, "a write blocks in its middle");
	tap_eq(ft.t.op.progress, 4, "and knows how far it is");
	ft.t.op.restarted = true;
	slow_room = 3;
	tap_eq(sys_write(&ft.t, &w), SYS_BLOCKED, "again");
	fake_signal_pending = true;
	tap_eq(sys_write(&ft.t, &w), 7, "a signal ends it with what was written");
	fake_op_end(&ft.t);
	tap_eq(sys_write(&ft.t, &w), -ERESTARTSYS, "with nothing written it is restarted");
	fake_op_end(&ft.t);
	fake_signal_pending = false;
	slow_ready = false;
	fake_signal = 0;
	tap_eq(sys_write(&ft.t, &w), -EPIPE, "EPIPE");
	tap_eq(fake_signal, SIGPIPE, "comes with SIGPIPE");
	fcntl_((int64_t)w.a[0], F_SETFL, O_NONBLOCK);
	tap_eq(read_((int64_t)w.a[0], buf, 8), -EAGAIN, "O_NONBLOCK does not block");
	tap_eq(SYS(&ft, sys_pread64, w.a[0], P(buf), 1, 0), -ESPIPE, "pread has no place");
	tap_eq(SYS(&ft, sys_lseek, w.a[0], 0, SEEK_CUR), -ESPIPE, "nor lseek");
	close_((int64_t)w.a[0]);
}

static void test_copies(void)
{
	int64_t in = open_("/src", O_CREAT | O_RDWR), out = open_("/dst", O_CREAT | O_RDWR);
	uint64_t off = 2, zero = 0;
	char buf[16];

	write_(in, "abcdefghij", 10);
	tap_eq(SYS(&ft, sys_sendfile, (uint64_t)out, (uint64_t)in, P(&off), 100), 8, "sendfile");
	tap_eq(off, 10, "moves the offset");
	tap_eq(SYS(&ft, sys_sendfile, (uint64_t)out, (uint64_t)in, 0, 100), 0, "at the end");
	tap_eq(SYS(&ft, sys_copy_file_range, (uint64_t)in, P(&zero), (uint64_t)out, 0, 3, 0), 3, "copy_file_range");
	tap_eq(SYS(&ft, sys_pread64, (uint64_t)out, P(buf), 16, 0), 11, "both wrote");
	tap_ok(!memcmp(buf, "cdefghijabc", 11), "what they should");
	zero = 0;
	off = 1;
	tap_eq(SYS(&ft, sys_copy_file_range, (uint64_t)in, P(&zero), (uint64_t)in, P(&off), 5, 0), -EINVAL,
	       "overlapping");
	tap_eq(SYS(&ft, sys_copy_file_range, (uint64_t)in, P(&zero), (uint64_t)out, 0, 5, 1), -EINVAL, "with flags");
	tap_eq(SYS(&ft, sys_getxattr, P("/src"), P("user.x"), P(buf), 4), -EOPNOTSUPP,
	       "no attributes in this file system");
	tap_eq(SYS(&ft, sys_getxattr, P("/src"), P(""), P(buf), 4), -ERANGE, "an empty name");
	tap_eq(SYS(&ft, sys_setxattr, P("/src"), P("user.x"), P(buf), 65537, 0), -E2BIG, "a large value");
	tap_eq(SYS(&ft, sys_setxattr, P("/src"), P("user.x"), P(buf), 4, 4), -EINVAL, "unknown flags");
	tap_eq(SYS(&ft, sys_listxattr, P("/src"), P(buf), 4), 0, "an empty list");
	close_(in);
	close_(out);
}

int main(void)
{
	set_up();
	test_numbers();
	test_copy();
	test_uio();
	test_rw();
	test_limits();
	test_flags();
	test_times();
	test_blocking();
	test_copies();
	fake_task_fini(&ft);
	tap_eq(kernel.counters.files, 0, "no file is left");
	return tap_done();
}
