/* SPDX-License-Identifier: Apache-2.0 */
/* execve(2): arguments, scripts, what may not be run, and hostile program files. */
#include <elf.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "gt_child.h"

static char *const no_env[] = { NULL };
static char self[PATH_MAX];

static int execve_errno(const char *path, char *const argv[], char *const envp[])
{
	long r;

	/* A child does it, so that a success shows as one. */
	CHECK(self[0]);
	errno = 0;
	r = execve(path, argv, envp);
	return r == -1 ? errno : 0;
}

#define EXEC_ERR(path, argv, envp, want) \
	CHECK_EXIT(CHILD({ \
		int e_ = execve_errno(path, argv, envp); \
		if (e_ != (want)) \
			gt_fail(__FILE__, __LINE__, "exec of %s gave errno %d, not %d", #path, e_, want); \
		_exit(42); \
	}), 42)

static void put_file(const char *name, const void *data, size_t n, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0700);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, data, n), n);
	CHECK_OK(fchmod(fd, mode));
	CHECK_OK(close(fd));
}

static void put_text(const char *name, const char *text)
{
	put_file(name, text, strlen(text), 0755);
}

static char *sh(const char *cmd)
{
	static char out[8192];
	FILE *f = popen(cmd, "r");
	size_t n;

	CHECK(f);
	n = fread(out, 1, sizeof(out) - 1, f);
	out[n] = 0;
	pclose(f);
	return out;
}

static void exec_hostile_args(void)
{
	char *argv[] = { "true", NULL };
	char *bad[] = { "true", BAD_PTR, NULL };
	char *edge = gt_edge_page();
	char **eargv = (char **)(edge + 4096 - 8);
	char long_path[5000];

	EXEC_ERR(BAD_PTR, argv, no_env, EFAULT);
	EXEC_ERR("/bin/true", BAD_PTR, no_env, EFAULT);
	EXEC_ERR("/bin/true", argv, BAD_PTR, EFAULT);
	EXEC_ERR("/bin/true", bad, no_env, EFAULT);
	EXEC_ERR("/bin/true", argv, bad, EFAULT);
	eargv[0] = "true";
	EXEC_ERR("/bin/true", eargv, no_env, EFAULT);
	memset(edge, 'a', 4096);
	eargv = (char *[]){ edge + 4000, NULL };
	EXEC_ERR("/bin/true", eargv, no_env, EFAULT);
	EXEC_ERR(edge + 4000, argv, no_env, EFAULT);
	memset(long_path, 'a', sizeof(long_path));
	long_path[4999] = 0;
	EXEC_ERR(long_path, argv, no_env, ENAMETOOLONG);
	EXEC_ERR("", argv, no_env, ENOENT);
	EXEC_ERR("/nonexistent/x", argv, no_env, ENOENT);
	EXEC_ERR("/bin/true/x", argv, no_env, ENOTDIR);
	EXEC_ERR("/", argv, no_env, EACCES);
	EXEC_ERR("/dev/null", argv, no_env, EACCES);
	put_file("noexec", "#!/bin/sh\n", 10, 0644);
	EXEC_ERR("noexec", argv, no_env, EACCES);
}

static void exec_argv_null(void)
{
	/* No argv at all: Linux gives the program an empty argv[0]. */
	CHECK_EXIT(CHILD({
		char *none[] = { NULL };
		setenv("GT_ARGC", "1", 1);
		execve(self, none, environ);
	}), 55);
	CHECK_EXIT(CHILD(setenv("GT_ARGC", "1", 1); syscall(SYS_execve, self, NULL, environ)), 55);
	CHECK_EXIT(CHILD(char *a[] = { "x", NULL }; execve("/bin/true", a, NULL)), 0);
}

static void exec_limits(void)
{
	static char big[132 * 1024];
	char *argv[] = { "true", big, NULL };
	static char *many[200000];
	struct rlimit rl = { 8 << 20, RLIM_INFINITY };

	memset(big, 'a', sizeof(big));
	big[131071] = 0; /* MAX_ARG_STRLEN with its end */
	CHECK_EXIT(CHILD(execve("/bin/true", argv, no_env)), 0);
	big[131071] = 'a';
	big[131072] = 0;
	EXEC_ERR("/bin/true", argv, no_env, E2BIG);
	EXEC_ERR("/bin/true", no_env, argv, E2BIG);
	/* All together: a quarter of the stack limit, pointers counted. */
	big[131071] = 0;
	CHECK_OK(setrlimit(RLIMIT_STACK, &rl));
	for (int i = 0; i < 15; i++)
		many[i] = big;
	CHECK_EXIT(CHILD(execve("/bin/true", many, no_env)), 0);
	many[15] = many[16] = big;
	EXEC_ERR("/bin/true", many, no_env, E2BIG);
	for (int i = 0; i < 199999; i++)
		many[i] = "abc";
	CHECK_EXIT(CHILD(many[150000] = NULL; execve("/bin/true", many, no_env)), 0);
	EXEC_ERR("/bin/true", many, no_env, E2BIG); /* 199999 * 12 bytes */
	/* Never less than 128 KiB. */
	rl.rlim_cur = 256 << 10;
	CHECK_OK(setrlimit(RLIMIT_STACK, &rl));
	for (int i = 0; i < 199999; i++)
		many[i] = NULL;
	for (int i = 0; i < 8500; i++)
		many[i] = "abc";
	CHECK_EXIT(CHILD(execve("/bin/true", many, no_env)), 0);
}

static void scripts(void)
{
	put_text("s1", "#!/bin/sh\necho \"$0|$1|$2\"\n");
	CHECK(!strcmp(sh("./s1 a 'b c'"), "./s1|a|b c\n"));
	put_text("s2", "#! \t/bin/echo one two  three \t\n");
	CHECK(!strcmp(sh("./s2 x"), "one two  three ./s2 x\n"));
	put_text("s3", "#!/bin/echo");
	CHECK(!strcmp(sh("./s3 x"), "./s3 x\n"));
	put_text("s4", "#!./s1 arg\n"); /* nested */
	CHECK(!strcmp(sh("./s4 x"), "./s1|arg|./s4\n"));
	put_text("s5", "#!/nonexistent/i\n");
	EXEC_ERR("s5", no_env, no_env, ENOENT);
	put_text("s6", "#!\n");
	EXEC_ERR("s6", no_env, no_env, ENOEXEC);
	put_text("s8", "#!./s8\n");
	EXEC_ERR("s8", no_env, no_env, ELOOP);
	put_text("s9", "echo no magic\n");
	EXEC_ERR("s9", no_env, no_env, ENOEXEC);
	put_text("s10", "");
	EXEC_ERR("s10", no_env, no_env, ENOEXEC);
	put_text("s11", "#!/etc/passwd\n");
	EXEC_ERR("s11", no_env, no_env, EACCES);
	put_text("s12", "#!/\n");
	EXEC_ERR("s12", no_env, no_env, EACCES);
}

static void script_long_line(void)
{
	char line[600];
	char *argv[] = { "s", NULL };

	/* An interpreter path that does not fit in the 256 bytes that are looked at. */
	memset(line, 'a', sizeof(line));
	memcpy(line, "#!/", 3);
	line[599] = '\n';
	put_file("s", line, sizeof(line), 0755);
	EXEC_ERR("s", argv, no_env, ENOEXEC);
	/* The argument is cut when the interpreter fits. */
	memcpy(line, "#!/bin/echo ", 12);
	put_file("s", line, sizeof(line), 0755);
	CHECK_EQ(strlen(sh("./s")), 255 - 12 + strlen(" ./s\n"));
}

static void script_depth(void)
{
	char name[16], text[64];
	char *argv[] = { "x", NULL };

	put_text("d0", "#!/bin/true\n");
	for (int i = 1; i <= 6; i++) {
		sprintf(name, "d%d", i);
		sprintf(text, "#!./d%d\n", i - 1);
		put_text(name, text);
	}
	CHECK_EXIT(CHILD(execve("d3", argv, no_env)), 0);
	CHECK_EXIT(CHILD(execve("d4", argv, no_env)), 0);
	EXEC_ERR("d5", argv, no_env, ELOOP);
}

static void cloexec(void)
{
	int a = open("/dev/null", O_RDONLY | O_CLOEXEC), b = open("/dev/null", O_RDONLY);
	char cmd[200];

	CHECK(a >= 0 && b >= 0);
	CHECK_EQ(dup2(b, 60), 60);
	CHECK_EQ(fcntl(a, F_DUPFD_CLOEXEC, 70), 70);
	sprintf(cmd, "[ ! -e /proc/self/fd/%d ] && [ -e /proc/self/fd/60 ] && [ ! -e /proc/self/fd/70 ]", a);
	CHECK_EXIT(CHILD(execl("/bin/sh", "sh", "-c", cmd, (char *)NULL)), 0);
}

static void copy_self(const char *to)
{
	char cmd[PATH_MAX + 100];

	snprintf(cmd, sizeof(cmd), "cp %s %s && chmod 755 %s", self, to, to);
	CHECK_EQ(system(cmd), 0);
}

static void text_busy(void)
{
	char *argv[] = { "x", "--exit", "3", NULL };
	int fd, p[2];
	pid_t pid;

	copy_self("prog");
	fd = open("prog", O_RDWR);
	CHECK(fd >= 0);
	EXEC_ERR("./prog", argv, no_env, ETXTBSY);
	close(fd);
	CHECK_EXIT(CHILD(execve("./prog", argv, no_env)), 3);
	CHECK_OK(pipe2(p, O_CLOEXEC));
	argv[1] = "--pause";
	pid = CHILD(execve("./prog", argv, no_env));
	close(p[1]);
	CHECK_EQ(read(p[0], &fd, 1), 0);
	CHECK_ERR(open("prog", O_WRONLY), ETXTBSY);
	CHECK_ERR(open("prog", O_RDONLY | O_TRUNC), ETXTBSY);
	CHECK_ERR(truncate("prog", 0), ETXTBSY);
	fd = open("prog", O_RDONLY);
	CHECK(fd >= 0);
	CHECK_OK(unlink("prog"));
	CHECK_OK(kill(pid, SIGKILL));
	CHECK_KILLED(pid, SIGKILL);
}

static void *exec_in_thread(void *arg)
{
	char pid[20];
	char *argv[] = { "x", "--pid", pid, NULL };

	sprintf(pid, "%d", getpid());
	execve(self, argv, environ);
	_exit(1);
}

static void *sleep_in_thread(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

static void *spin_in_thread(void *arg)
{
	for (;;)
		__asm__ volatile("pause");
	return NULL;
}

static void exec_from_thread(void)
{
	/* Sleeping and running siblings die, and the program has the process's number. */
	CHECK_EXIT(CHILD({
		pthread_t t;
		for (int i = 0; i < 3; i++)
			CHECK_EQ(pthread_create(&t, NULL, sleep_in_thread, NULL), 0);
		CHECK_EQ(pthread_create(&t, NULL, spin_in_thread, NULL), 0);
		CHECK_EQ(pthread_create(&t, NULL, exec_in_thread, NULL), 0);
		pause();
	}), 66);
	/* The first thread execs beside others. */
	CHECK_EXIT(CHILD({
		pthread_t t;
		CHECK_EQ(pthread_create(&t, NULL, spin_in_thread, NULL), 0);
		CHECK_EQ(pthread_create(&t, NULL, sleep_in_thread, NULL), 0);
		exec_in_thread(NULL);
	}), 66);
	/* The first thread has ended. */
	CHECK_EXIT(CHILD({
		pthread_t t;
		CHECK_EQ(pthread_create(&t, NULL, exec_in_thread, NULL), 0);
		syscall(SYS_exit, 0);
	}), 66);
	/* A failed exec leaves all threads. */
	CHECK_EXIT(CHILD({
		pthread_t t;
		volatile int *w = gt_shared(4096);
		CHECK_EQ(pthread_create(&t, NULL, sleep_in_thread, NULL), 0);
		CHECK_ERR(execve("/nonexistent", no_env, no_env), ENOENT);
		CHECK_EQ(pthread_tryjoin_np(t, NULL), EBUSY);
		*w = 1;
	}), 0);
}

static void execveat_forms(void)
{
	char *argv[] = { "x", "--exit", "9", NULL };
	int fd = open(self, O_RDONLY | O_CLOEXEC), dir = open("/bin", O_RDONLY | O_DIRECTORY);
	int path_fd = open(self, O_PATH);

	CHECK(fd >= 0 && dir >= 0 && path_fd >= 0);
	CHECK_ERR(syscall(SYS_execveat, fd, "", argv, no_env, 0), ENOENT);
	CHECK_ERR(syscall(SYS_execveat, fd, "", argv, no_env, AT_EMPTY_PATH | 0x4000000), EINVAL);
	CHECK_ERR(syscall(SYS_execveat, 99, "", argv, no_env, AT_EMPTY_PATH), EBADF);
	CHECK_ERR(syscall(SYS_execveat, 99, "x", argv, no_env, 0), EBADF);
	CHECK_ERR(syscall(SYS_execveat, fd, "x", argv, no_env, 0), ENOTDIR);
	CHECK_ERR(syscall(SYS_execveat, dir, "", argv, no_env, AT_EMPTY_PATH), EACCES);
	CHECK_EXIT(CHILD(syscall(SYS_execveat, fd, "", argv, no_env, AT_EMPTY_PATH)), 9);
	CHECK_EXIT(CHILD(syscall(SYS_execveat, path_fd, "", argv, no_env, AT_EMPTY_PATH)), 9);
	CHECK_EXIT(CHILD(syscall(SYS_execveat, dir, "true", argv, no_env, 0)), 0);
	CHECK_EXIT(CHILD(syscall(SYS_execveat, 99, self, argv, no_env, 0)), 9);
	CHECK_OK(symlink(self, "link"));
	CHECK_ERR(syscall(SYS_execveat, AT_FDCWD, "link", argv, no_env, AT_SYMLINK_NOFOLLOW), ELOOP);
	CHECK_EXIT(CHILD(syscall(SYS_execveat, AT_FDCWD, "link", argv, no_env, 0)), 9);
	/* A script through a close-on-exec fd cannot be opened by its interpreter. */
	put_text("s", "#!/bin/sh\nexit 4\n");
	fd = open("s", O_RDONLY | O_CLOEXEC);
	CHECK_ERR(syscall(SYS_execveat, fd, "", argv, no_env, AT_EMPTY_PATH), ENOENT);
	fd = open("s", O_RDONLY);
	CHECK_EXIT(CHILD(syscall(SYS_execveat, fd, "", argv, no_env, AT_EMPTY_PATH)), 4);
}

static void memfd_exec(void)
{
	char *argv[] = { "x", "--exit", "9", NULL };
	int in = open(self, O_RDONLY), fd = memfd_create("prog", MFD_CLOEXEC);
	char buf[65536];
	ssize_t n;

	while ((n = read(in, buf, sizeof(buf))) > 0)
		CHECK_EQ(write(fd, buf, n), n);
	CHECK_EXIT(CHILD(syscall(SYS_execveat, fd, "", argv, no_env, AT_EMPTY_PATH)), 9);
	sprintf(buf, "/proc/self/fd/%d", fd);
	in = open(buf, O_RDONLY | O_CLOEXEC);
	CHECK(in >= 0);
	close(fd);
	CHECK_EXIT(CHILD(fexecve(in, argv, no_env)), 9);
}

/* A minimal program: exit(12). */
static const unsigned char code[] = { 0xb8, 60, 0, 0, 0, 0xbf, 12, 0, 0, 0, 0x0f, 0x05 };

struct tiny {
	Elf64_Ehdr e;
	Elf64_Phdr p[4];
	unsigned char code[sizeof(code)];
};

#define TINY_VA 0x10000000ul

static struct tiny tiny(void)
{
	struct tiny t = {
		.e = {
			.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = 1,
			.e_entry = TINY_VA + offsetof(struct tiny, code), .e_phoff = sizeof(Elf64_Ehdr),
			.e_ehsize = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
		},
		.p[0] = {
			.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = TINY_VA, .p_filesz = sizeof(struct tiny),
			.p_memsz = sizeof(struct tiny), .p_align = 4096,
		},
	};

	memcpy(t.code, code, sizeof(code));
	return t;
}

/* Wait status of running this file; -errno when exec fails. */
static int run_bytes(const void *data, size_t n)
{
	static int serial;
	char name[20];
	volatile int *w = gt_shared(4096);
	int st;

	sprintf(name, "e%d", serial++);
	put_file(name, data, n, 0755);
	st = gt_status(CHILD({
		char *argv[] = { name, NULL };
		execve(name, argv, no_env);
		*w = -errno;
	}));
	return *w ? *w : st;
}

static int run_tiny(const struct tiny *t)
{
	return run_bytes(t, sizeof(*t));
}

static void elf_headers(void)
{
	struct tiny t = tiny();

	CHECK_EQ(run_tiny(&t), 12 << 8);
	for (size_t n = 1; n < sizeof(t.e); n += 9)
		CHECK_EQ(run_bytes(&t, n), -ENOEXEC);
	t.e.e_type = ET_REL;
	CHECK_EQ(run_tiny(&t), -ENOEXEC);
	t = tiny();
	t.e.e_machine = EM_AARCH64;
	CHECK_EQ(run_tiny(&t), -ENOEXEC);
	t = tiny();
	t.e.e_phentsize = 55;
	CHECK_EQ(run_tiny(&t), -ENOEXEC);
	t = tiny();
	t.e.e_phnum = 0;
	CHECK_EQ(run_tiny(&t), -ENOEXEC);
	t = tiny();
	t.e.e_phnum = 65535;
	CHECK_EQ(run_tiny(&t), -ENOEXEC);
	t = tiny();
	t.e.e_phoff = 1ull << 40; /* past the end: the read is short */
	CHECK_EQ(run_tiny(&t), -ENOEXEC);
	t = tiny();
	t.e.e_phoff = -8ull;
	CHECK(run_tiny(&t) < 0);
	t = tiny();
	CHECK_EQ(run_bytes(&t, sizeof(t.e) + 20), -ENOEXEC);
}

static void elf_interp(void)
{
	struct {
		struct tiny t;
		char interp[5000];
	} f = { tiny(), "" };
	Elf64_Phdr *ip = &f.t.p[1];

	f.t.e.e_phnum = 2;
	*ip = (Elf64_Phdr){ .p_type = PT_INTERP, .p_offset = sizeof(f.t), .p_filesz = 13, .p_memsz = 13 };
	strcpy(f.interp, "/nonexistent");
	CHECK_EQ(run_bytes(&f, sizeof(f)), -ENOENT);
	ip->p_filesz = 12; /* not terminated */
	CHECK_EQ(run_bytes(&f, sizeof(f)), -ENOEXEC);
	ip->p_filesz = 1;
	CHECK_EQ(run_bytes(&f, sizeof(f)), -ENOEXEC);
	ip->p_filesz = 0;
	CHECK_EQ(run_bytes(&f, sizeof(f)), -ENOEXEC);
	ip->p_filesz = 4097;
	CHECK_EQ(run_bytes(&f, sizeof(f)), -ENOEXEC);
	ip->p_filesz = ~0ull;
	CHECK_EQ(run_bytes(&f, sizeof(f)), -ENOEXEC);
	ip->p_filesz = 13;
	ip->p_offset = 1ull << 40;
	CHECK_EQ(run_bytes(&f, sizeof(f)), -EIO);
	ip->p_offset = sizeof(f.t);
	strcpy(f.interp, "/etc/passwd");
	ip->p_filesz = 12;
	CHECK_EQ(run_bytes(&f, sizeof(f)), -EACCES);
	strcpy(f.interp, "/");
	ip->p_filesz = 2;
	CHECK_EQ(run_bytes(&f, sizeof(f)), -EACCES);
	put_text("interp", "#!/bin/sh\n");
	strcpy(f.interp, "./interp");
	ip->p_filesz = 9;
	CHECK_EQ(run_bytes(&f, sizeof(f)), -EIO); /* shorter than a header */
}

static void elf_segments(void)
{
	struct tiny t = tiny();

	/* More in the file than in memory. */
	t.p[0].p_filesz = 8192;
	CHECK(run_tiny(&t) != 12 << 8);
	/* Outside user space: too late to fail, the new program dies. */
	t = tiny();
	t.p[0].p_vaddr = 0xffff800000000000ul;
	CHECK(run_tiny(&t) != 0);
	t = tiny();
	t.p[0].p_memsz = 1ull << 62;
	CHECK(run_tiny(&t) != 0);
	t = tiny();
	t.p[0].p_vaddr = 0; /* below mmap_min_addr */
	t.e.e_entry = offsetof(struct tiny, code);
	CHECK(run_tiny(&t) != 0);
	/* Not aligned like its offset. */
	t = tiny();
	t.p[0].p_offset = 8;
	CHECK(run_tiny(&t) != 0);
	/* Overlapping segments: the later wins. */
	t = tiny();
	t.e.e_phnum = 2;
	t.p[1] = t.p[0];
	CHECK_EQ(run_tiny(&t), 12 << 8);
	/* A segment behind the end of the file: SIGBUS when touched. */
	t = tiny();
	t.e.e_phnum = 2;
	t.p[1] = t.p[0];
	t.p[1].p_vaddr += 0x100000;
	t.p[1].p_offset = 1 << 20;
	t.e.e_entry += 0x100000;
	CHECK_EQ(WTERMSIG(run_tiny(&t)), SIGBUS);
	/* An entry point nowhere. */
	t = tiny();
	t.e.e_entry = 0x1000;
	CHECK_EQ(WTERMSIG(run_tiny(&t)), SIGSEGV);
	t.e.e_entry = 0xffff800000000000ul;
	CHECK(run_tiny(&t) != 0);
	/* Not executable. */
	t = tiny();
	t.p[0].p_flags = PF_R;
	CHECK_EQ(WTERMSIG(run_tiny(&t)), SIGSEGV);
}

static void elf_bss(void)
{
	/* The bytes behind the file's part are zero, and the rest of the last page too; far bss is there. */
	static const unsigned char probe[] = {
		0x8b, 0x3c, 0x25, 0, 0, 0x01, 0x20, /* mov edi, [0x20010000] */
		0xb8, 60, 0, 0, 0, 0x0f, 0x05,
	};
	struct {
		struct tiny t;
		unsigned char junk[4096];
	} f = { .t = tiny() };

	memset(f.junk, 0xee, sizeof(f.junk));
	f.t.e.e_phnum = 2;
	f.t.e.e_entry = TINY_VA + sizeof(f.t);
	f.t.p[0].p_filesz = f.t.p[0].p_memsz = sizeof(f);
	f.t.p[1] = f.t.p[0];
	f.t.p[1].p_flags = PF_R | PF_W;
	f.t.p[1].p_vaddr = 0x20000000;
	f.t.p[1].p_filesz = 600;
	f.t.p[1].p_memsz = 0x11000;
	memcpy(f.junk, probe, sizeof(probe));
	CHECK_EQ(run_bytes(&f, sizeof(f)), 0);
	f.junk[3] = 599 & 0xff;
	f.junk[4] = 599 >> 8;
	f.junk[5] = 0; /* [0x20000257]: one byte of the file, three of bss */
	CHECK_EQ(run_bytes(&f, sizeof(f)), 0xee << 8);
	f.junk[3] = 600 & 0xff;
	f.junk[4] = 600 >> 8;
	CHECK_EQ(run_bytes(&f, sizeof(f)), 0);
}

static void proc_names(void)
{
	char buf[PATH_MAX];
	ssize_t n;

	n = readlink("/proc/self/exe", buf, sizeof(buf) - 1);
	CHECK(n > 0);
	buf[n] = 0;
	CHECK(!strcmp(buf, self));
	CHECK(getauxval(AT_EXECFN));
	CHECK_EQ(getauxval(AT_PAGESZ), 4096);
	CHECK_EQ(getauxval(AT_UID), getuid());
	CHECK(getauxval(AT_RANDOM));
	CHECK(!getauxval(AT_SECURE));
	CHECK(strcmp((char *)getauxval(AT_PLATFORM), "x86_64") == 0);
}

static void state_over_exec(void)
{
	/* Ignored signals, the mask, the pending set and the alarm go on; handlers and the alternate stack do not. */
	CHECK_EXIT(CHILD({
		sigset_t set;
		char *argv[] = { "x", "--state", NULL };
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		sigprocmask(SIG_SETMASK, &set, NULL);
		raise(SIGUSR1);
		signal(SIGUSR2, SIG_IGN);
		gt_handle(SIGHUP, (void (*)(int))(uintptr_t)0x1234, 0);
		alarm(100);
		CHECK_OK(sigaltstack(&(stack_t){ .ss_sp = malloc(65536), .ss_size = 65536 }, NULL));
		execve(self, argv, no_env);
	}), 67);
}

static int check_state(void)
{
	struct sigaction sa;
	sigset_t set, pend;
	stack_t ss;

	sigprocmask(0, NULL, &set);
	sigpending(&pend);
	if (!sigismember(&set, SIGUSR1) || sigismember(&set, SIGUSR2) || !sigismember(&pend, SIGUSR1))
		return 1;
	sigaction(SIGUSR2, NULL, &sa);
	if (sa.sa_handler != SIG_IGN)
		return 2;
	sigaction(SIGHUP, NULL, &sa);
	if (sa.sa_handler != SIG_DFL)
		return 3;
	if (alarm(0) < 90)
		return 4;
	sigaltstack(NULL, &ss);
	return ss.ss_flags & SS_DISABLE ? 67 : 5;
}

static const struct gt_case cases[] = {
	{ "exec_hostile_args", exec_hostile_args },
	{ "exec_argv_null", exec_argv_null },
	{ "exec_limits", exec_limits },
	{ "scripts", scripts },
	{ "script_long_line", script_long_line },
	{ "script_depth", script_depth },
	{ "cloexec", cloexec },
	{ "text_busy", text_busy },
	{ "exec_from_thread", exec_from_thread },
	{ "execveat_forms", execveat_forms },
	{ "memfd_exec", memfd_exec },
	{ "elf_headers", elf_headers },
	{ "elf_interp", elf_interp },
	{ "elf_segments", elf_segments },
	{ "elf_bss", elf_bss },
	{ "proc_names", proc_names },
	{ "state_over_exec", state_over_exec },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	if (getenv("GT_ARGC"))
		return argc == 1 && !argv[0][0] && !argv[1] ? 55 : 1;
	if (argc > 2 && !strcmp(argv[1], "--exit"))
		return atoi(argv[2]);
	if (argc > 2 && !strcmp(argv[1], "--pid"))
		return atoi(argv[2]) == getpid() && getpid() == gettid() ? 66 : 1;
	if (argc > 1 && !strcmp(argv[1], "--state"))
		return check_state();
	if (argc > 1 && !strcmp(argv[1], "--pause"))
		for (;;)
			pause();
	if (!realpath(argv[0], self))
		return 1;
	return gt_main(argc, argv, cases);
}
