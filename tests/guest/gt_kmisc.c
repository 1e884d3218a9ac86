/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel tells and keeps: names, limits, usage, scheduling, credentials. */
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/utsname.h>

#include "gt_child.h"

static void need_root(void)
{
	if (geteuid())
		_exit(GT_SKIP);
}

static void names(void)
{
	struct utsname u;
	char host[65], *edge = gt_edge_page();

	CHECK_ERR(syscall(SYS_uname, edge + 4096 - 100), EFAULT);
	CHECK_OK(syscall(SYS_uname, edge + 4096 - sizeof(u)));
	CHECK_OK(gethostname(host, sizeof(host)));
	CHECK_OK(uname(&u));
	CHECK(!strcmp(host, u.nodename));
	CHECK_ERR(syscall(SYS_sethostname, "x", -1), EINVAL);
	CHECK_ERR(syscall(SYS_sethostname, "x", 65), EINVAL);
}

static void system_info(void)
{
	struct sysinfo si;

	CHECK_ERR(syscall(SYS_sysinfo, BAD_PTR), EFAULT);
	CHECK_OK(sysinfo(&si));
	CHECK(si.totalram > 0 && si.procs > 0 && si.mem_unit > 0);
	CHECK(si.freeram <= si.totalram);
}

static void randomness(void)
{
	char *edge = gt_edge_page(), a[32], b[32];

	CHECK_ERR(getrandom(a, 10, 0x10), EINVAL);
	CHECK_ERR(getrandom(a, 10, GRND_RANDOM | 4), EINVAL);
	CHECK_ERR(getrandom(BAD_PTR, 10, 0), EFAULT);
	CHECK_EQ(getrandom(BAD_PTR, 0, 0), 0);
	CHECK_EQ(getrandom(a, 32, 0), 32);
	CHECK_EQ(getrandom(b, 32, GRND_NONBLOCK), 32);
	CHECK(memcmp(a, b, 32));
	CHECK(getrandom(edge + 4096 - 16, 32, 0) <= 16);
	CHECK_EQ(getrandom(edge, 4096, 0), 4096);
}

static void prctls(void)
{
	char name[16] = "", *edge = gt_edge_page();
	int v;

	CHECK_ERR(prctl(9999), EINVAL);
	CHECK_ERR(prctl(PR_SET_NAME, BAD_PTR), EFAULT);
	CHECK_ERR(prctl(PR_GET_NAME, BAD_PTR), EFAULT);
	CHECK_OK(prctl(PR_SET_NAME, "a-name-that-is-too-long"));
	CHECK_OK(prctl(PR_GET_NAME, name));
	CHECK(!strcmp(name, "a-name-that-is-"));
	strcpy(edge + 4096 - 3, "ab");
	CHECK_OK(prctl(PR_SET_NAME, edge + 4096 - 3));
	CHECK_OK(prctl(PR_GET_NAME, name));
	CHECK(!strcmp(name, "ab"));
	CHECK_ERR(prctl(PR_SET_DUMPABLE, 7), EINVAL);
	CHECK_OK(prctl(PR_SET_DUMPABLE, 0));
	CHECK_EQ(prctl(PR_GET_DUMPABLE), 0);
	CHECK_ERR(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL);
	CHECK_ERR(prctl(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0), EINVAL);
	CHECK_ERR(prctl(PR_SET_KEEPCAPS, 2, 0, 0, 0), EINVAL);
	CHECK_OK(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	CHECK_EQ(prctl(PR_GET_KEEPCAPS), 1);
	CHECK_ERR(prctl(PR_CAPBSET_READ, 99), EINVAL);
	CHECK_EQ(prctl(PR_CAPBSET_READ, CAP_CHOWN) & ~1, 0);
	CHECK_OK(prctl(PR_SET_TIMERSLACK, 1234));
	CHECK_EQ(prctl(PR_GET_TIMERSLACK), 1234);
	CHECK_OK(prctl(PR_GET_PDEATHSIG, &v));
}

static void limits(void)
{
	struct rlimit rl, old;
	struct rlimit *edge = (struct rlimit *)(gt_edge_page() + 4096 - 8);

	CHECK_ERR(getrlimit(16, &rl), EINVAL);
	CHECK_ERR(getrlimit(-1, &rl), EINVAL);
	CHECK_ERR(syscall(SYS_getrlimit, RLIMIT_NOFILE, BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_setrlimit, RLIMIT_NOFILE, edge), EFAULT);
	CHECK_ERR(syscall(SYS_prlimit64, 99999999, RLIMIT_NOFILE, NULL, &rl), ESRCH);
	CHECK_ERR(syscall(SYS_prlimit64, -1, RLIMIT_NOFILE, NULL, &rl), ESRCH);
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &old));
	rl = (struct rlimit){ 50, 20 };
	CHECK_ERR(setrlimit(RLIMIT_NOFILE, &rl), EINVAL);
	rl = (struct rlimit){ 20, 50 };
	CHECK_EXIT(CHILD({
		int fd;
		CHECK_OK(setrlimit(RLIMIT_NOFILE, &rl));
		while ((fd = dup(0)) >= 0)
			CHECK(fd < 20);
		CHECK_EQ(errno, EMFILE);
		CHECK_ERR(dup2(0, 20), EBADF);
		CHECK_ERR(fcntl(0, F_DUPFD, 20), EINVAL);
		CHECK_EXIT(CHILD({
			struct rlimit r2;
			CHECK_OK(getrlimit(RLIMIT_NOFILE, &r2));
			CHECK_EQ(r2.rlim_cur, 20);
			if (!geteuid())
				CHECK_OK(setresuid(65534, 65534, 65534));
			r2.rlim_max = 51;
			CHECK_ERR(setrlimit(RLIMIT_NOFILE, &r2), EPERM);
		}), 0);
	}), 0);
	/* A file size limit: a signal and EFBIG. */
	CHECK_KILLED(CHILD({
		struct rlimit fs = { 1000, 1000 };
		int fd = open("f", O_RDWR | O_CREAT, 0600);
		char buf[2000] = { 0 };
		CHECK_OK(setrlimit(RLIMIT_FSIZE, &fs));
		CHECK_EQ(write(fd, buf, 2000), 1000);
		(void)!write(fd, buf, 1);
	}), SIGXFSZ);
	CHECK_EXIT(CHILD({
		struct rlimit fs = { 1000, 1000 };
		int fd = open("f", O_RDWR | O_CREAT, 0600);
		signal(SIGXFSZ, SIG_IGN);
		CHECK_OK(setrlimit(RLIMIT_FSIZE, &fs));
		CHECK_ERR(pwrite(fd, "x", 1, 1000), EFBIG);
		CHECK_ERR(ftruncate(fd, 1001), EFBIG);
	}), 0);
	CHECK_EXIT(CHILD({
		struct rlimit cpu = { 1, 5 };
		CHECK_OK(setrlimit(RLIMIT_CPU, &cpu));
		CHECK_OK(getrlimit(RLIMIT_CPU, &cpu));
		CHECK_EQ(cpu.rlim_max, 5);
	}), 0);
}

static void nproc_limit(void)
{
	need_root();
	CHECK_EXIT(CHILD({
		struct rlimit rl = { 3, 3 };
		pid_t pid;
		/* A user of our own: nobody else counts. */
		CHECK_OK(setresuid(54321, 54321, 54321));
		CHECK_OK(setrlimit(RLIMIT_NPROC, &rl));
		for (int i = 0; i < 2; i++) {
			pid = fork();
			if (!pid)
				pause();
			CHECK(pid > 0);
		}
		pid = fork();
		if (!pid)
			_exit(0);
		CHECK_EQ(pid, -1);
		CHECK_EQ(errno, EAGAIN);
		signal(SIGTERM, SIG_IGN);
		kill(-1, SIGTERM);
	}), 0);
}

static void usage(void)
{
	struct rusage ru;
	struct tms tms;

	CHECK_ERR(syscall(SYS_getrusage, 5, &ru), EINVAL);
	CHECK_ERR(syscall(SYS_getrusage, RUSAGE_SELF, BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_times, BAD_PTR), EFAULT);
	CHECK_EXIT(CHILD({
		int64_t end = gt_now_ms() + 4000;
		do
			for (volatile int i = 0; i < 1000000; i++)
				;
		while (clock() < CLOCKS_PER_SEC / 20 && gt_now_ms() < end);
	}), 0);
	CHECK_OK(getrusage(RUSAGE_CHILDREN, &ru));
	CHECK(ru.ru_utime.tv_sec * 1000 + ru.ru_utime.tv_usec / 1000 + ru.ru_stime.tv_usec / 1000 >= 20);
	CHECK(ru.ru_maxrss > 0);
	CHECK_OK(getrusage(RUSAGE_SELF, &ru));
	CHECK_OK(getrusage(RUSAGE_THREAD, &ru));
	CHECK(times(&tms) > 0);
	CHECK(tms.tms_cutime + tms.tms_cstime >= 2);
}

static void affinity(void)
{
	cpu_set_t set, none;
	int n;

	CPU_ZERO(&none);
	CHECK_ERR(syscall(SYS_sched_getaffinity, 0, 1, &set), EINVAL);
	CHECK_ERR(syscall(SYS_sched_getaffinity, 99999999, sizeof(set), &set), ESRCH);
	CHECK_ERR(syscall(SYS_sched_getaffinity, 0, sizeof(set), BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_sched_setaffinity, 0, sizeof(set), BAD_PTR), EFAULT);
	CHECK_ERR(sched_setaffinity(0, sizeof(none), &none), EINVAL);
	CHECK_OK(sched_getaffinity(0, sizeof(set), &set));
	n = CPU_COUNT(&set);
	CHECK(n >= 1 && n <= get_nprocs_conf());
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &set))
			continue;
		CPU_ZERO(&none);
		CPU_SET(i, &none);
		CHECK_OK(sched_setaffinity(0, sizeof(none), &none));
		CHECK_OK(sched_getaffinity(0, sizeof(set), &set));
		CHECK_EQ(CPU_COUNT(&set), 1);
		CHECK_EXIT(CHILD(CHECK_OK(sched_getaffinity(0, sizeof(set), &set)); CHECK_EQ(CPU_COUNT(&set), 1)), 0);
		break;
	}
}

static void scheduling(void)
{
	struct sched_param sp = { 0 };

	CHECK_ERR(sched_getscheduler(-1), EINVAL);
	CHECK_ERR(sched_getscheduler(99999999), ESRCH);
	CHECK_ERR(sched_setscheduler(0, 99, &sp), EINVAL);
	CHECK_ERR(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_sched_getparam, 0, BAD_PTR), EFAULT);
	CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
	sp.sched_priority = 5;
	CHECK_ERR(sched_setscheduler(0, SCHED_OTHER, &sp), EINVAL);
	sp.sched_priority = 0;
	CHECK_OK(sched_setscheduler(0, SCHED_BATCH, &sp));
	CHECK_EQ(sched_getscheduler(0), SCHED_BATCH);
	CHECK_ERR(sched_get_priority_max(99), EINVAL);
	CHECK_EQ(sched_get_priority_max(SCHED_FIFO), 99);
	CHECK_ERR(getpriority(5, 0), EINVAL);
	CHECK_OK(setpriority(PRIO_PROCESS, 0, 5));
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), 5);
	CHECK_ERR(getpriority(PRIO_PROCESS, 99999999), ESRCH);
	CHECK_OK(setpriority(PRIO_PROCESS, 0, 100));
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), 19);
	CHECK_OK(sched_yield());
}

static void user_ids(void)
{
	uid_t r, e, s;

	need_root();
	CHECK_ERR(syscall(SYS_getresuid, BAD_PTR, &e, &s), EFAULT);
	CHECK_ERR(setuid(-1), EINVAL);
	CHECK_OK(setresuid(-1, -1, -1));
	CHECK_OK(setresuid(0, 65534, 0));
	CHECK_OK(getresuid(&r, &e, &s));
	CHECK(r == 0 && e == 65534 && s == 0);
	CHECK_ERR(chown(".", 1, 1), EPERM);
	CHECK_OK(seteuid(0));
	CHECK_OK(chown(".", 0, 0));
	CHECK_OK(close(open("secret", O_CREAT | O_RDWR, 0600)));
	CHECK_EXIT(CHILD({
		CHECK_OK(setgroups(0, NULL));
		CHECK_OK(setresgid(65534, 65534, 65534));
		CHECK_OK(setuid(65534));
		CHECK_OK(getresuid(&r, &e, &s));
		CHECK(r == 65534 && e == 65534 && s == 65534);
		CHECK_ERR(setuid(0), EPERM);
		CHECK_ERR(setresuid(0, -1, -1), EPERM);
		CHECK_ERR(setreuid(-1, 0), EPERM);
		CHECK_ERR(setgid(0), EPERM);
		CHECK_ERR(setgroups(0, NULL), EPERM);
		CHECK_OK(setuid(65534));
		CHECK_ERR(open("secret", O_RDONLY), EACCES);
		CHECK_ERR(sethostname("x", 1), EPERM);
		CHECK_ERR(chroot("/"), EPERM);
		CHECK_ERR(setpriority(PRIO_PROCESS, 0, -5), EACCES);
	}), 0);
	/* setreuid moves the saved one. */
	CHECK_EXIT(CHILD({
		CHECK_OK(setreuid(1000, 2000));
		CHECK_OK(getresuid(&r, &e, &s));
		CHECK(r == 1000 && e == 2000 && s == 2000);
		CHECK_OK(setreuid(2000, 1000));
		CHECK_OK(setuid(2000));
		CHECK_EQ(setfsuid(-1), 2000);
	}), 0);
}

static void group_ids(void)
{
	gid_t list[4] = { 5, 3, 9, 3 }, got[70000 / 4];

	need_root();
	CHECK_ERR(setgroups(65537, list), EINVAL);
	CHECK_ERR(syscall(SYS_setgroups, 4, BAD_PTR), EFAULT);
	CHECK_OK(setgroups(4, list));
	CHECK_ERR(getgroups(3, got), EINVAL);
	CHECK_ERR(syscall(SYS_getgroups, -1, got), EINVAL);
	CHECK_ERR(syscall(SYS_getgroups, 4, BAD_PTR), EFAULT);
	CHECK_EQ(getgroups(0, NULL), 4);
	CHECK_EQ(getgroups(10, got), 4);
	/* Access through a supplementary group. */
	int fd = open("g", O_CREAT | O_RDWR, 0640);
	CHECK_OK(fchown(fd, 0, 9));
	CHECK_OK(chmod(".", 0755));
	CHECK_EXIT(CHILD({
		CHECK_OK(setresuid(65534, 65534, 65534));
		CHECK_OK(open("g", O_RDONLY));
		CHECK_ERR(open("g", O_WRONLY), EACCES);
	}), 0);
}

static void capabilities(void)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2], none[2] = { { 0 } };

	CHECK_ERR(syscall(SYS_capget, BAD_PTR, d), EFAULT);
	CHECK_ERR(syscall(SYS_capget, &h, BAD_PTR), EFAULT);
	h.version = 0x1234;
	CHECK_ERR(syscall(SYS_capget, &h, d), EINVAL);
	CHECK_EQ(h.version, _LINUX_CAPABILITY_VERSION_3);
	CHECK_ERR((h.version = 0, syscall(SYS_capset, &h, d)), EINVAL);
	h = (struct __user_cap_header_struct){ _LINUX_CAPABILITY_VERSION_3, 99999999 };
	CHECK_ERR(syscall(SYS_capget, &h, d), ESRCH);
	h.pid = -1;
	CHECK_ERR(syscall(SYS_capget, &h, d), EINVAL);
	h.pid = 1;
	CHECK_ERR(syscall(SYS_capset, &h, d), EPERM);
	h.pid = 0;
	CHECK_OK(syscall(SYS_capget, &h, d));
	need_root();
	CHECK(d[0].effective & (1 << CAP_CHOWN));
	CHECK_EXIT(CHILD({
		CHECK_OK(syscall(SYS_capset, &h, none));
		CHECK_ERR(chown(".", 1, 1), EPERM);
		CHECK_ERR(syscall(SYS_capset, &h, d), EPERM);
		CHECK_ERR(setuid(5), EPERM);
		CHECK_EXIT(CHILD(execl("/bin/sh", "sh", "-c", "chown 1:1 . && chown 0:0 .", (char *)NULL)),
		           0); /* root gets them back */
	}), 0);
	/* Kept over setuid by request, as permitted only. */
	CHECK_EXIT(CHILD({
		CHECK_OK(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
		CHECK_OK(setresuid(65534, 65534, 65534));
		CHECK_OK(syscall(SYS_capget, &h, d));
		CHECK_EQ(d[0].effective, 0);
		CHECK(d[0].permitted & (1 << CAP_CHOWN));
		d[0].effective = 1 << CAP_CHOWN;
		CHECK_OK(syscall(SYS_capset, &h, d));
		CHECK_OK(chown(".", 1, 1));
	}), 0);
	CHECK_EXIT(CHILD({
		CHECK_OK(prctl(PR_CAPBSET_DROP, CAP_CHOWN, 0, 0, 0));
		CHECK_EQ(prctl(PR_CAPBSET_READ, CAP_CHOWN), 0);
		CHECK_EXIT(CHILD(execl("/bin/sh", "sh", "-c", "! chown 1:1 . 2>/dev/null", (char *)NULL)), 0);
	}), 0);
}

static void *other_uid(void *arg)
{
	/* Credentials are a thread's for the raw call. */
	CHECK_EQ(syscall(SYS_setresuid, 65534, 65534, 65534), 0);
	return (void *)(long)syscall(SYS_geteuid);
}

static void thread_credentials(void)
{
	pthread_t t;
	void *r;

	need_root();
	CHECK_EQ(pthread_create(&t, NULL, other_uid, NULL), 0);
	CHECK_EQ(pthread_join(t, &r), 0);
	CHECK_EQ((long)r, 65534);
	CHECK_EQ(geteuid(), 0);
}

static void file_mask(void)
{
	struct stat st;

	CHECK_EQ(umask(0777) & ~0777, 0);
	CHECK_EQ(umask(07027), 0777);
	CHECK_EQ(umask(027), 027);
	CHECK_OK(close(open("u", O_CREAT | O_WRONLY, 0666)));
	CHECK_OK(stat("u", &st));
	CHECK_EQ(st.st_mode & 07777, 0640);
	CHECK_EXIT(CHILD(CHECK_EQ(umask(0), 027)), 0);
	CHECK_EQ(umask(0), 027);
}

static void personalities(void)
{
	int old = personality(0xffffffff);

	CHECK(old >= 0);
	CHECK_EQ(personality(ADDR_NO_RANDOMIZE), old);
	CHECK_EQ(personality(0xffffffff), ADDR_NO_RANDOMIZE);
	CHECK_EXIT(CHILD(CHECK_EQ(personality(0xffffffff), ADDR_NO_RANDOMIZE)), 0);
	CHECK_EQ(personality(0), ADDR_NO_RANDOMIZE);
}

static void tid_addresses(void)
{
	int w = 5;

	CHECK_EQ(syscall(SYS_set_tid_address, &w), gettid());
	CHECK_EQ(syscall(SYS_set_tid_address, BAD_PTR), gettid());
	CHECK_ERR(syscall(SYS_arch_prctl, 0x9999, 0), EINVAL);
	CHECK_ERR(syscall(SYS_arch_prctl, 0x1003, BAD_PTR), EFAULT); /* ARCH_GET_FS */
	CHECK_ERR(syscall(SYS_arch_prctl, 0x1001, 0xffff800000000000ul), EPERM); /* ARCH_SET_GS */
	{
		unsigned long fs = 0, gs = 1;

		CHECK_OK(syscall(SYS_arch_prctl, 0x1003, &fs));
		CHECK(fs);
		CHECK_OK(syscall(SYS_arch_prctl, 0x1001, 0x12345000));
		CHECK_OK(syscall(SYS_arch_prctl, 0x1004, &gs));
		CHECK_EQ(gs, 0x12345000);
		gt_sleep_ms(5);
		CHECK_OK(syscall(SYS_arch_prctl, 0x1004, &gs));
		CHECK_EQ(gs, 0x12345000);
	}
}

static const struct gt_case cases[] = {
	{ "names", names },
	{ "system_info", system_info },
	{ "randomness", randomness },
	{ "prctls", prctls },
	{ "limits", limits },
	{ "nproc_limit", nproc_limit },
	{ "usage", usage },
	{ "affinity", affinity },
	{ "scheduling", scheduling },
	{ "user_ids", user_ids },
	{ "group_ids", group_ids },
	{ "capabilities", capabilities },
	{ "thread_credentials", thread_credentials },
	{ "file_mask", file_mask },
	{ "personalities", personalities },
	{ "tid_addresses", tid_addresses },
	{ NULL, NULL },
};
GT_MAIN(cases)
