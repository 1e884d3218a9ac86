/* SPDX-License-Identifier: Apache-2.0 */
/* execve(2), execveat(2): programs, scripts, limits, hostile files. The program runs itself with the argument "--show".
 */
#include <elf.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "gt.h"

#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

static char self[4096];

static int exec_at(int dir, const char *path, char **argv, char **envp, int flags)
{
	return (int)syscall(SYS_execveat, dir, path, argv, envp, flags);
}

static void make_file(const char *name, const void *data, size_t n, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0700);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, data, n), (long)n);
	CHECK_OK(fchmod(fd, mode));
	close(fd);
}

static pid_t start(int out, int dir, const char *path, char **argv, char **envp, int flags)
{
	pid_t pid = vfork();

	if (pid == 0) {
		dup2(out, 1);
		exec_at(dir, path, argv, envp, flags);
		dprintf(1, "errno %d", errno);
		_exit(1);
	}
	return pid;
}

/* Runs it in a child and gives what it wrote, or "errno N" when exec failed. */
static const char *run(int dir, const char *path, char **argv, char **envp, int flags)
{
	static char out[8192];
	int p[2], st;
	size_t n = 0;
	ssize_t r;
	pid_t pid;

	CHECK_OK(pipe(p));
	pid = start(p[1], dir, path, argv, envp, flags);
	close(p[1]);
	while ((r = read(p[0], out + n, sizeof(out) - 1 - n)) > 0)
		n += (size_t)r;
	out[n] = '\0';
	close(p[0]);
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	if (WIFSIGNALED(st))
		snprintf(out, sizeof(out), "signal %d", WTERMSIG(st));
	return out;
}

static const char *run_file(const char *path)
{
	char *argv[] = { (char *)"zero", (char *)"one", NULL }, *envp[] = { (char *)"A=1", NULL };

	return run(AT_FDCWD, path, argv, envp, 0);
}

static void show(int argc, char **argv, char **envp)
{
	printf("%d", argc);
	for (int i = 0; i < argc; i++)
		printf("|%s", argv[i]);
	while (*envp)
		printf("|%s", *envp++);
	printf("\n");
}

#define SAY(got, want) \
	do { \
		const char *s_ = (got); \
		if (strcmp(s_, want)) \
			gt_fail(__FILE__, __LINE__, "\"%s\" is not \"%s\"", s_, want); \
	} while (0)

static void arguments(void)
{
	char *argv[] = { (char *)"x", (char *)"--show", (char *)"", (char *)"a b", NULL };
	char *envp[] = { (char *)"A=1", (char *)"B=", NULL }, *none[] = { NULL };

	SAY(run(AT_FDCWD, self, argv, envp, 0), "4|x|--show||a b|A=1|B=\n");
	SAY(run(AT_FDCWD, self, argv, none, 0), "4|x|--show||a b\n");
	SAY(run(AT_FDCWD, self, argv, NULL, 0), "4|x|--show||a b\n");
}

static void errors(void)
{
	char *argv[] = { (char *)"x", NULL }, *bad[] = { BAD_PTR, NULL };
	char longname[5000];

	make_file("plain", "echo", 4, 0600);
	make_file("text", "echo hello\n", 11, 0700);
	make_file("empty", "", 0, 0700);
	CHECK_OK(symlink("loop", "loop"));
	CHECK_OK(mkdir("dir", 0777));
	memset(longname, 'a', sizeof(longname) - 1);
	longname[sizeof(longname) - 1] = '\0';
	SAY(run_file("nowhere"), "errno 2");
	SAY(run_file(""), "errno 2");
	SAY(run_file("plain"), "errno 13");
	SAY(run_file("plain/x"), "errno 20");
	SAY(run_file("dir"), "errno 13");
	SAY(run_file("loop"), "errno 40");
	SAY(run_file(longname), "errno 36");
	SAY(run_file("text"), "errno 8");
	SAY(run_file("empty"), "errno 8");
	CHECK_ERR(execve(BAD_PTR, argv, argv), EFAULT);
	CHECK_ERR(execve("text", bad, argv), EFAULT);
	CHECK_ERR(execve("text", BAD_PTR, argv), EFAULT);
	CHECK_ERR(execve("text", argv, BAD_PTR), EFAULT);
	CHECK_ERR(exec_at(AT_FDCWD, "text", argv, argv, 1), EINVAL);
	CHECK_ERR(exec_at(99, "text", argv, argv, 0), EBADF);
	CHECK_ERR(exec_at(99, "", argv, argv, AT_EMPTY_PATH), EBADF);
}

static void busy(void)
{
	int fd;

	make_file("prog", "#!/bin/sh\necho hi\n", 18, 0700);
	SAY(run_file("./prog"), "hi\n");
	fd = open("prog", O_WRONLY);
	CHECK(fd >= 0);
	SAY(run_file("./prog"), "errno 26");
	close(fd);
	SAY(run_file("./prog"), "hi\n");
	CHECK_ERR(open("/proc/self/exe", O_WRONLY), ETXTBSY);
}

static void too_much(void)
{
	static char big[32 * 4096 + 1];
	char *argv[400] = { (char *)"x", big, NULL }, *envp[] = { NULL };
	struct rlimit rl = { 8 << 20, RLIM_INFINITY };

	CHECK_OK(setrlimit(RLIMIT_STACK, &rl));
	memset(big, 'b', sizeof(big) - 1);
	CHECK_ERR(execve(self, argv, envp), E2BIG);
	big[sizeof(big) - 2] = '\0';
	argv[1] = (char *)"--count";
	argv[2] = big;
	SAY(run(AT_FDCWD, self, argv, envp, 0), "131082\n");
	for (int i = 1; i < 399; i++)
		argv[i] = big;
	CHECK_ERR(execve(self, argv, envp), E2BIG);
}

static void no_argument(void)
{
	char *none[] = { NULL };
	const char *got = run(AT_FDCWD, self, none, none, 0);

	/* Linux 5.18 and later put one in; argv[0] "" then makes this program list itself as below. */
	SAY(got, "argv0 is empty\n");
}

static void scripts(void)
{
	char line[5000], name[8];

	snprintf(line, sizeof(line), "#!%s --show  x y \n", self);
	make_file("s", line, strlen(line), 0700);
	snprintf(line, sizeof(line), "4|%s|--show  x y|./s|one|A=1\n", self);
	/* The one optional argument keeps its blanks, so that it is not the "--show" alone. */
	CHECK(!strcmp(run_file("./s"), line));
	snprintf(line, sizeof(line), "#! \t%s\t--show", self);
	make_file("s", line, strlen(line), 0700);
	snprintf(line, sizeof(line), "4|%s|--show|./s|one|A=1\n", self);
	SAY(run_file("./s"), line);
	make_file("lost", "#!/nowhere/x\n", 13, 0700);
	SAY(run_file("./lost"), "errno 2");
	make_file("none", "#!\n", 3, 0700);
	SAY(run_file("./none"), "errno 8");
	memset(line, 'a', 300);
	memcpy(line, "#!/", 3);
	make_file("long", line, 300, 0700);
	SAY(run_file("./long"), "errno 8");
	make_file("noexec", "#!./s\n", 6, 0600);
	SAY(run_file("./noexec"), "errno 13");
	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		if (i)
			snprintf(line, sizeof(line), "#!./n%d\n", i - 1);
		else
			snprintf(line, sizeof(line), "#!%s --show\n", self);
		make_file(name, line, strlen(line), 0700);
	}
	CHECK(!strncmp(run_file("./n4"), "8|", 2));
	SAY(run_file("./n5"), "errno 40");
}

static void by_descriptor(void)
{
	char *argv[] = { (char *)"x", (char *)"--show", NULL }, *none[] = { NULL }, want[4200];
	int fd = open(self, O_RDONLY | O_CLOEXEC), path = open(self, O_PATH), dir, s, link;

	CHECK(fd >= 0 && path >= 0);
	SAY(run(fd, "", argv, none, AT_EMPTY_PATH), "2|x|--show\n");
	SAY(run(path, "", argv, none, AT_EMPTY_PATH), "2|x|--show\n");
	SAY(run(fd, "", argv, none, 0), "errno 2");
	snprintf(want, sizeof(want), "#!%s --show\n", self);
	make_file("s", want, strlen(want), 0700);
	CHECK_OK(symlink("s", "l"));
	dir = open(".", O_RDONLY | O_DIRECTORY);
	s = open("s", O_RDONLY);
	snprintf(want, sizeof(want), "4|%s|--show|/dev/fd/%d/s|--show\n", self, dir);
	SAY(run(dir, "s", argv, none, 0), want);
	snprintf(want, sizeof(want), "4|%s|--show|/dev/fd/%d|--show\n", self, s);
	SAY(run(s, "", argv, none, AT_EMPTY_PATH), want);
	SAY(run(dir, "l", argv, none, AT_SYMLINK_NOFOLLOW), "errno 40");
	CHECK_OK(fcntl(s, F_SETFD, FD_CLOEXEC));
	SAY(run(s, "", argv, none, AT_EMPTY_PATH), "errno 2");
	link = open("l", O_PATH | O_NOFOLLOW);
	SAY(run(link, "", argv, none, AT_EMPTY_PATH), "errno 40");
}

static void hostile_elf(void)
{
	unsigned char elf[4096];
	Elf64_Ehdr *e = (Elf64_Ehdr *)elf;
	int fd = open(self, O_RDONLY);
	ssize_t n = read(fd, elf, sizeof(elf));

	CHECK_EQ(n, sizeof(elf));
	make_file("cut", elf, 100, 0700);
	SAY(run_file("./cut"), "errno 8");
	e->e_machine = EM_ARM;
	make_file("arm", elf, sizeof(elf), 0700);
	SAY(run_file("./arm"), "errno 8");
	e->e_machine = EM_X86_64;
	e->e_phnum = 0;
	make_file("none", elf, sizeof(elf), 0700);
	SAY(run_file("./none"), "errno 8");
	e->e_phnum = 1000;
	e->e_phentsize = 1;
	make_file("size", elf, sizeof(elf), 0700);
	SAY(run_file("./size"), "errno 8");
}

/* Code that ends with status 42; the segment has a bss that must be zero. */
static void tiny_elf(void)
{
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr p[2];
		unsigned char code[32];
	} t = {
		.e = { .e_ident = { 0x7f, 'E', 'L', 'F', 2, 1, 1 },
		       .e_type = ET_EXEC,
		       .e_machine = EM_X86_64,
		       .e_version = 1,
		       .e_entry = 0x10000 + 64 + 112,
		       .e_phoff = 64,
		       .e_phentsize = 56,
		       .e_phnum = 2 },
		.p = { { .p_type = PT_LOAD,
		         .p_flags = PF_R | PF_X,
		         .p_vaddr = 0x10000,
		         .p_filesz = 208,
		         .p_memsz = 208 },
		       { .p_type = PT_LOAD,
		         .p_flags = PF_R | PF_W,
		         .p_vaddr = 0x12000,
		         .p_filesz = 100,
		         .p_memsz = 0x3000 } },
		/* mov edi, [0x12064]; add edi, [0x14000]; add edi, 42; mov eax, 60; syscall */
		.code = { 0x8b, 0x3c, 0x25, 0x64, 0x20, 0x01, 0x00, 0x03, 0x3c, 0x25, 0x00, 0x40,
		          0x01, 0x00, 0x83, 0xc7, 42,   0xb8, 60,   0,    0,    0,    0x0f, 0x05 },
	};
	int st;
	pid_t pid;

	make_file("tiny", &t, sizeof(t), 0700);
	pid = vfork();
	if (pid == 0) {
		char *none[] = { NULL };

		execve("./tiny", none, none);
		_exit(1);
	}
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 42);
}

static void auxiliary_vector(void)
{
	CHECK_EQ(getauxval(AT_PAGESZ), 4096);
	CHECK_EQ(getauxval(AT_UID), getuid());
	CHECK_EQ(getauxval(AT_EGID), getegid());
	CHECK_EQ(getauxval(AT_SECURE), 0);
	CHECK_EQ(getauxval(AT_CLKTCK), 100);
	CHECK_EQ(getauxval(AT_PHENT), sizeof(Elf64_Phdr));
	CHECK(getauxval(AT_ENTRY) && getauxval(AT_PHNUM) && getauxval(AT_PHDR) && getauxval(AT_RANDOM));
	CHECK(!strcmp((char *)getauxval(AT_PLATFORM), "x86_64"));
	CHECK(*(uint64_t *)getauxval(AT_RANDOM) != 0);
	CHECK(((Elf64_Phdr *)getauxval(AT_PHDR))->p_type != 0xffffffff);
}

static void on_signal(int sig)
{
}

static void state_after_exec(void)
{
	char *argv[] = { (char *)"x", (char *)"--state", NULL }, *none[] = { NULL };
	int keep = open("/dev/null", O_RDONLY), drop = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t set;

	CHECK(keep >= 0 && drop >= 0);
	CHECK_EQ(dup2(keep, 50), 50);
	CHECK_EQ(dup3(keep, 51, O_CLOEXEC), 51);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, on_signal);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
	SAY(run(AT_FDCWD, self, argv, none, 0), "fd50 yes fd51 no usr1 1 usr2 0 term 1\n");
}

static int show_state(void)
{
	struct sigaction a, b;
	sigset_t set;

	sigaction(SIGUSR1, NULL, &a);
	sigaction(SIGUSR2, NULL, &b);
	sigprocmask(SIG_BLOCK, NULL, &set);
	printf("fd50 %s fd51 %s usr1 %d usr2 %d term %d\n", fcntl(50, F_GETFD) >= 0 ? "yes" : "no",
	       fcntl(51, F_GETFD) >= 0 ? "yes" : "no", (int)(long)a.sa_handler, (int)(long)b.sa_handler,
	       sigismember(&set, SIGTERM));
	return 0;
}

static const struct gt_case cases[] = {
	{ "arguments", arguments },
	{ "errors", errors },
	{ "busy", busy },
	{ "too_much", too_much },
	{ "no_argument", no_argument },
	{ "scripts", scripts },
	{ "by_descriptor", by_descriptor },
	{ "hostile_elf", hostile_elf },
	{ "tiny_elf", tiny_elf },
	{ "auxiliary_vector", auxiliary_vector },
	{ "state_after_exec", state_after_exec },
	{ NULL, NULL },
};

int main(int argc, char **argv, char **envp)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return 1;
	self[n] = '\0';
	if (argc > 0 && !argv[0][0]) {
		printf("argv0 is empty\n");
		return 0;
	}
	if (argc > 1 && !strncmp(argv[1], "--show", 6)) {
		show(argc, argv, envp);
		return 0;
	}
	if (argc > 2 && !strcmp(argv[1], "--count")) {
		printf("%zu\n", strlen(argv[0]) + strlen(argv[1]) + strlen(argv[2]) + 3);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "--state"))
		return show_state();
	return gt_main(argc, argv, cases);
}
