/* SPDX-License-Identifier: Apache-2.0 */
/* /dev nodes, /proc files of the process, magic links, chroot. */
#include "tests/guest/gt_child.h"

#include <dirent.h>
#include <poll.h>

static ssize_t slurp(const char *path, char *buf, size_t cap)
{
	int fd = (int)CHECK_OK(open(path, O_RDONLY));
	size_t n = 0;
	ssize_t r;

	while (n < cap - 1 && (r = CHECK_OK(read(fd, buf + n, cap - 1 - n))) > 0)
		n += (size_t)r;
	buf[n] = 0;
	CHECK_OK(close(fd));
	return (ssize_t)n;
}

static void devices(void)
{
	char buf[300] = { 1 }, other[300];
	struct stat st;
	int fd;

	fd = (int)CHECK_OK(open("/dev/null", O_RDWR | O_TRUNC));
	CHECK_EQ(write(fd, buf, sizeof(buf)), sizeof(buf));
	CHECK_EQ(read(fd, buf, sizeof(buf)), 0);
	CHECK_EQ(lseek(fd, 100, SEEK_SET) >= 0, 1);
	CHECK_OK(fstat(fd, &st));
	CHECK(S_ISCHR(st.st_mode) && st.st_rdev == 0x103);
	fd = (int)CHECK_OK(open("/dev/zero", O_RDWR));
	CHECK_EQ(read(fd, buf, sizeof(buf)), sizeof(buf));
	CHECK(buf[0] == 0 && buf[299] == 0);
	CHECK_ERR(read(fd, BAD_PTR, 10), EFAULT);
	CHECK_EQ(write(fd, buf, 10), 10);
	CHECK(((char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0))[5] == 0);
	fd = (int)CHECK_OK(open("/dev/full", O_RDWR));
	CHECK_ERR(write(fd, buf, 1), ENOSPC);
	CHECK_EQ(read(fd, buf, 10), 10);
	for (int i = 0; i < 2; i++) {
		fd = (int)CHECK_OK(open(i ? "/dev/random" : "/dev/urandom", O_RDONLY));
		CHECK_EQ(read(fd, buf, sizeof(buf)), sizeof(buf));
		CHECK_EQ(read(fd, other, sizeof(buf)), sizeof(buf));
		CHECK(memcmp(buf, other, sizeof(buf)));
	}
	CHECK_OK(stat("/dev/tty", &st));
	CHECK(S_ISCHR(st.st_mode));
}

static void dev_links(void)
{
	char buf[16], path[32];
	int p[2], fd;

	CHECK_OK(pipe(p));
	CHECK_EQ(write(p[1], "via", 3), 3);
	CHECK_OK(dup2(p[0], 0));
	fd = (int)CHECK_OK(open("/dev/stdin", O_RDONLY));
	CHECK_EQ(read(fd, buf, 16), 3);
	snprintf(path, sizeof(path), "/dev/fd/%d", p[1]);
	fd = (int)CHECK_OK(open(path, O_WRONLY));
	CHECK_EQ(write(fd, "x", 1), 1);
	CHECK_EQ(read(0, buf, 16), 1);
	CHECK_ERR(open("/dev/fd/999", O_RDONLY), ENOENT);
	CHECK_ERR(open("/proc/self/fd/-1", O_RDONLY), ENOENT);
	CHECK_ERR(open("/proc/self/fd/0x0", O_RDONLY), ENOENT);
	CHECK_ERR(open("/proc/self/fd/00", O_RDONLY), ENOENT);
}

static void self_links(void)
{
	char buf[300], cwd[300], num[32], text[8];
	struct stat a, b;
	int fd;

	CHECK(readlink("/proc/self", buf, sizeof(buf)) > 0);
	CHECK_EQ(atoi(buf), getpid());
	CHECK(getcwd(cwd, sizeof(cwd)));
	memset(buf, 0, sizeof(buf));
	CHECK_EQ(readlink("/proc/self/cwd", buf, sizeof(buf)), strlen(cwd));
	CHECK_EQ(strcmp(buf, cwd), 0);
	CHECK_OK(stat("/proc/self/cwd", &a));
	CHECK_OK(stat(".", &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_OK(lstat("/proc/self/cwd", &a));
	CHECK(S_ISLNK(a.st_mode));
	CHECK_EQ(readlink("/proc/self/root", buf, sizeof(buf)), 1);
	CHECK_OK(stat("/proc/self/root", &a));
	CHECK_OK(stat("/", &b));
	CHECK(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	CHECK_OK(stat("/proc/self/root/../../..", &a));
	CHECK_EQ(a.st_ino, b.st_ino);
	memset(buf, 0, sizeof(buf));
	CHECK(readlink("/proc/self/exe", buf, sizeof(buf)) > 0);
	CHECK(strstr(buf, "gt_proc"));
	CHECK_OK(stat("/proc/self/exe", &a));
	CHECK_OK(stat(buf, &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	fd = (int)CHECK_OK(open("/proc/self/exe", O_RDONLY));
	CHECK_EQ(read(fd, text, 4), 4);
	CHECK(!memcmp(text, "\177ELF", 4));
	CHECK_ERR(open("/proc/self/exe", O_WRONLY), ETXTBSY);
	fd = (int)CHECK_OK(open("file", O_CREAT | O_RDWR | O_APPEND, 0600));
	snprintf(num, sizeof(num), "/proc/self/fd/%d", fd);
	memset(buf, 0, sizeof(buf));
	CHECK(readlink(num, buf, sizeof(buf)) > 0);
	CHECK_EQ(strcmp(buf + strlen(buf) - 5, "/file"), 0);
	CHECK_OK(unlink("file"));
	memset(buf, 0, sizeof(buf));
	CHECK(readlink(num, buf, sizeof(buf)) > 0);
	CHECK(strstr(buf, "/file (deleted)"));
	snprintf(num, sizeof(num), "/proc/self/fdinfo/%d", fd);
	CHECK_EQ(write(fd, "12345", 5), 5);
	slurp(num, buf, sizeof(buf));
	CHECK(strstr(buf, "pos:\t5\n") && strstr(buf, "flags:\t0102002\n"));
	CHECK_ERR(readlink("/proc/self/status", buf, 10), EINVAL);
	CHECK_ERR(unlink("/proc/self/fd/0"), EPERM);
	CHECK_ERR(stat("/proc/999999999", &a), ENOENT);
	CHECK_ERR(stat("/proc/01", &a), ENOENT);
}

static void open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int n = 0, want = 0;

	CHECK(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	for (int i = 0; i < 4096; i++)
		want += fcntl(i, F_GETFD) >= 0;
	CHECK_EQ(n, want);
	closedir(d);
}

static void maps(void)
{
	static char buf[100000];
	char *p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *line, *save;
	unsigned long prev = 0;
	bool stack = false, exe = false, mine = false;

	CHECK(p != MAP_FAILED);
	CHECK_OK(mprotect(p + 4096, 4096, PROT_NONE));
	slurp("/proc/self/maps", buf, sizeof(buf));
	for (line = strtok_r(buf, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned long a, b, off, ino;
		unsigned maj, min;
		char perm[5], name[300] = "";

		CHECK(sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %299s", &a, &b, perm, &off, &maj, &min, &ino, name) >= 7);
		CHECK(a < b && a >= prev);
		prev = b;
		stack |= !strcmp(name, "[stack]") && (unsigned long)&a >= a && (unsigned long)&a < b;
		exe |= strstr(name, "gt_proc") && perm[2] == 'x';
		mine |= a == (unsigned long)p + 4096 && b == a + 4096 && !strcmp(perm, "---p");
	}
	CHECK(stack && exe && mine);
}

static const char *field(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	CHECK(p && (p == text || p[-1] == '\n'));
	return p + strlen(name);
}

static void status(void)
{
	char buf[8192], *p;
	int fd;

	umask(027);
	slurp("/proc/self/status", buf, sizeof(buf));
	CHECK(!strncmp(buf, "Name:\tgt_proc\n", 14));
	CHECK_EQ(atoi(field(buf, "Pid:\t")), getpid());
	CHECK_EQ(atoi(field(buf, "Tgid:\t")), getpid());
	CHECK_EQ(atoi(field(buf, "PPid:\t")), getppid());
	CHECK_EQ(strtol(field(buf, "Umask:\t"), NULL, 8), 027);
	CHECK_EQ(atoi(field(buf, "Uid:\t")), getuid());
	CHECK_EQ(atoi(field(buf, "Threads:\t")), 1);
	CHECK(atoi(field(buf, "VmRSS:\t")) > 0);
	CHECK(strtoull(field(buf, "CapEff:\t"), NULL, 16) != 0 || getuid());
	slurp("/proc/self/stat", buf, sizeof(buf));
	CHECK_EQ(atoi(buf), getpid());
	p = strrchr(buf, ')');
	CHECK(p && strstr(buf, "(gt_proc)"));
	CHECK_EQ(p[2], 'R');
	CHECK_EQ(atoi(p + 4), getppid());
	CHECK_EQ(slurp("/proc/self/cmdline", buf, sizeof(buf)),
	         strlen(buf) + 1 + (buf[strlen(buf) + 1] ? strlen(buf + strlen(buf) + 1) + 1 : 0));
	slurp("/proc/self/comm", buf, sizeof(buf));
	CHECK_EQ(strcmp(buf, "gt_proc\n"), 0);
	fd = (int)CHECK_OK(open("/proc/self/comm", O_WRONLY));
	CHECK_EQ(write(fd, "renamed", 7), 7);
	slurp("/proc/self/comm", buf, sizeof(buf));
	CHECK_EQ(strcmp(buf, "renamed\n"), 0);
	slurp("/proc/self/mounts", buf, sizeof(buf));
	CHECK(strstr(buf, " /proc proc "));
	slurp("/proc/self/limits", buf, sizeof(buf));
	CHECK(strstr(buf, "Max open files"));
	slurp("/proc/meminfo", buf, sizeof(buf));
	CHECK(!strncmp(buf, "MemTotal:", 9));
}

/* A reader in small pieces sees a whole text. */
static void piecewise(void)
{
	char all[8192], part[8192];
	int fd;
	size_t n = 0;
	ssize_t r, len = slurp("/proc/self/limits", all, sizeof(all));

	fd = (int)CHECK_OK(open("/proc/self/limits", O_RDONLY));
	while ((r = CHECK_OK(read(fd, part + n, 7))) > 0)
		n += (size_t)r;
	CHECK_EQ(n, len);
	CHECK(!memcmp(all, part, n));
	CHECK_EQ(pread(fd, part, 10, 5), 10);
	CHECK(!memcmp(part, all + 5, 10));
	CHECK_EQ(lseek(fd, 3, SEEK_SET), 3);
	CHECK_EQ(read(fd, part, 4), 4);
	CHECK(!memcmp(part, all + 3, 4));
}

static void of_others(void)
{
	char path[64], buf[300];
	struct stat a, b;
	int up[2], down[2];
	pid_t pid;

	CHECK_OK(pipe(up));
	CHECK_OK(pipe(down));
	CHECK_OK(mkdir("there", 0755));
	pid = (pid_t)CHECK_OK(fork());
	if (!pid) {
		close(down[1]);
		if (chdir("there") || write(up[1], "x", 1) != 1)
			_exit(1);
		_exit(read(down[0], buf, 1) != 0);
	}
	CHECK_EQ(read(up[0], buf, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
	CHECK_OK(stat(path, &a));
	CHECK_OK(stat("there", &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	snprintf(path, sizeof(path), "/proc/%d/root/../..", pid);
	CHECK_OK(stat(path, &a));
	CHECK_OK(stat("/", &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, up[0]);
	CHECK_EQ(write(up[1], "y", 1), 1);
	CHECK_EQ(read((int)CHECK_OK(open(path, O_RDONLY)), buf, 2), 1);
	close(down[1]);
	snprintf(path, sizeof(path), "/proc/%d", pid);
	while (waitpid(pid, NULL, 0) < 0)
		;
	CHECK_ERR(stat(path, &a), ENOENT);
}

static void roots(void)
{
	char buf[300];
	struct stat a, b;
	int fd, root;

	if (geteuid())
		_exit(GT_SKIP);
	CHECK_OK(mkdir("jail", 0755));
	CHECK_OK(mkdir("jail/sub", 0755));
	CHECK_ERR(chroot("none"), ENOENT);
	CHECK_ERR(chroot("/proc/self/status"), ENOTDIR);
	CHECK_ERR(chroot(BAD_PTR), EFAULT);
	CHECK_OK(symlink("/sub", "jail/abs"));
	root = (int)CHECK_OK(open("/", O_RDONLY));
	fd = (int)CHECK_OK(open(".", O_RDONLY));
	CHECK_OK(stat("jail", &a));
	CHECK_OK(chroot("jail"));
	/* The working directory stays outside, as Linux has it. */
	CHECK_OK(stat("jail", &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK(syscall(SYS_getcwd, buf, sizeof(buf)) > 0);
	CHECK(!strncmp(buf, "(unreachable)", 13));
	CHECK_OK(chdir("/"));
	CHECK_OK(stat("..", &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_OK(stat("/../../sub", &b));
	CHECK_OK(stat("abs/.", &a));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_EQ(syscall(SYS_getcwd, buf, sizeof(buf)), 2);
	CHECK_ERR(open("/proc/self/status", O_RDONLY), ENOENT);
	/* A descriptor from before is a way out. */
	CHECK_OK(fchdir(fd));
	CHECK_OK(stat("jail/sub", &b));
	CHECK_OK(fchdir(root));
	CHECK_OK(chroot("."));
	CHECK_OK(access("/proc/self/status", F_OK));
}

/* The program that runs, whatever has been put at its name. */
static void exe_replaced(void)
{
	char name[64], buf[65536];
	struct stat prog, other, now;
	int from, to, p[2];
	ssize_t n;
	pid_t pid;

	from = (int)CHECK_OK(open("/bin/sleep", O_RDONLY));
	to = (int)CHECK_OK(open("prog", O_CREAT | O_WRONLY | O_CLOEXEC, 0755));
	while ((n = CHECK_OK(read(from, buf, sizeof(buf)))) > 0)
		CHECK_EQ(write(to, buf, (size_t)n), n);
	close(to);
	CHECK_OK(pipe2(p, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		execl("./prog", "prog", "10", (char *)NULL);
		_exit(1);
	}
	close(p[1]);
	CHECK_EQ(read(p[0], buf, 1), 0); /* it runs */
	CHECK_OK(stat("prog", &prog));
	to = (int)CHECK_OK(open("secret", O_CREAT | O_WRONLY, 0644));
	CHECK_OK(fstat(to, &other));
	CHECK_OK(unlink("prog"));
	CHECK_OK(symlink("secret", "prog"));
	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	CHECK_OK(stat(name, &now));
	CHECK(now.st_ino == prog.st_ino && now.st_ino != other.st_ino);
	from = (int)CHECK_OK(open(name, O_RDONLY));
	CHECK_EQ(read(from, buf, 4), 4);
	CHECK(!memcmp(buf, "\177ELF", 4));
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(stat(name, &now), -1);
}

/* What one user's process shows to another user: not where it works, runs, and what is in its memory. */
static void strangers(void)
{
	static const char *const closed[] = { "environ", "maps", "auxv", "exe", "root/etc", "cwd", "fd/0" };
	static const char *const links[] = { "exe", "root", "cwd", "ns/mnt" };
	static const char *const open_to_all[] = { "stat", "status", "cmdline", "comm" };
	char name[64], buf[64];

	if (geteuid())
		_exit(GT_SKIP);
	CHECK_EXIT(CHILD({
		int parent = getppid(), fd;

		snprintf(name, sizeof(name), "/proc/%d/comm", parent);
		fd = (int)CHECK_OK(open(name, O_WRONLY));
		CHECK_ERR(write(fd, "other", 5), EINVAL);
		close(fd);
		CHECK_OK(setresgid(1234, 1234, 1234));
		CHECK_OK(setresuid(1234, 1234, 1234));
		for (size_t i = 0; i < sizeof(closed) / sizeof(*closed); i++) {
			snprintf(name, sizeof(name), "/proc/%d/%s", parent, closed[i]);
			CHECK_ERR(open(name, O_RDONLY), EACCES);
		}
		for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
			snprintf(name, sizeof(name), "/proc/%d/%s", parent, links[i]);
			CHECK_ERR(readlink(name, buf, sizeof(buf)), EACCES);
		}
		for (size_t i = 0; i < sizeof(open_to_all) / sizeof(*open_to_all); i++) {
			snprintf(name, sizeof(name), "/proc/%d/%s", parent, open_to_all[i]);
			fd = (int)CHECK_OK(open(name, O_RDONLY));
			CHECK(read(fd, buf, sizeof(buf)) > 0);
			close(fd);
		}
		CHECK(readlink("/proc/self/exe", buf, sizeof(buf)) > 0);
		CHECK_OK(access("/proc/self/root/tmp", X_OK));
	}), 0);
}

static const struct gt_case cases[] = {
	{ "devices", devices },
	{ "dev_links", dev_links },
	{ "self_links", self_links },
	{ "open_fds", open_fds },
	{ "maps", maps },
	{ "status", status },
	{ "piecewise", piecewise },
	{ "of_others", of_others },
	{ "roots", roots },
	{ "exe_replaced", exe_replaced },
	{ "strangers", strangers },
	{ NULL, NULL },
};

GT_MAIN(cases)
