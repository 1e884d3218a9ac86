/* SPDX-License-Identifier: Apache-2.0 */
/* execve with a fake platform: a real dynamic program of this host, a static one made here, scripts, and failures. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/futex.h"
#include "sentry/kernel/kernel.h"
#include "sentry/loader/exec.h"
#include "sentry/mm/mm_priv.h"
#include "tests/lib/tap.h"
#include "tests/unit/mm_fakes.h"

enum { DYNAMIC, LD, STATIC, SCRIPT, NESTED, LOOP, LOST };

static const char *const names[] = {
	[DYNAMIC] = "/bin/true",
	[LD] = "/lib64/ld-linux-x86-64.so.2",
	[STATIC] = "/static",
	[SCRIPT] = "/script",
	[NESTED] = "/nested",
	[LOOP] = "/loop",
	[LOST] = "/lost",
};

static struct dentry dentries[ARRAY_SIZE(names)];
static struct mount mount;
static struct task *const t = &fake_task;
static int exit_status, exec_done, policy_rc;
static char policy_program[64], seen_comm[TASK_COMM_LEN], *seen_exe;

/* What the loader calls. */

int path_walk(struct task *task, int dirfd, const char *path, unsigned flags, struct path *out)
{
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(names[i], path)) {
			*out = (struct path){ .mnt = &mount, .dentry = &dentries[i] };
			return 0;
		}
	}
	return -ENOENT;
}

void path_put(struct path *p)
{
}

int vfs_permission(const struct cred *c, struct inode *in, int mask)
{
	return mask != MAY_EXEC || (in->mode & 0111) ? 0 : -EACCES;
}

int vfs_open_place(struct task *task, struct path *p, uint32_t flags, struct file **ret)
{
	*ret = file_get(&fake_files[p->dentry - dentries]);
	return 0;
}

ssize_t vfs_read_kernel(struct file *f, void *buf, size_t n, uint64_t pos)
{
	return pread(fake_fd[f - fake_files], buf, n, (off_t)pos);
}

static struct cred *copy_cred(const struct cred *c)
{
	struct cred *copy = malloc(sizeof(*copy));

	*copy = *c;
	ref_init(&copy->ref);
	return copy;
}

/* kernel_test has the rules. */
struct cred *cred_exec(const struct cred *old, uint32_t mode, uid_t uid, gid_t gid, bool nosuid, bool *secure)
{
	struct cred *c = copy_cred(old);

	*secure = (mode & S_ISUID) && !nosuid;
	if (*secure)
		c->euid = uid;
	return c;
}

void cred_put(struct cred *c)
{
	if (ref_count(&c->ref) == 1 && c->groups[0] == 4711) /* a copy; see start() */
		free(c);
}

void tgroup_exit(struct tgroup *tg, int status)
{
	exit_status = status;
}

void task_exec_done(struct task *task, const char *comm, char *exe_path)
{
	exec_done++;
	strcpy(seen_comm, comm);
	free(seen_exe);
	seen_exe = exe_path;
}

void futex_mm_release(struct task *task)
{
}

int exec_policy_check(struct task *task, const char *program, const struct exec_strings *strings)
{
	strcpy(policy_program, program);
	return policy_rc;
}

/* The tests. */

static uint8_t guest_byte(uaddr_t a)
{
	struct host_page *p = host_page(a);

	return p && p->data ? p->data[a % PAGE_SIZE] : 0;
}

static uint64_t guest_word(uaddr_t a)
{
	uint64_t w = 0;

	for (unsigned i = 0; i < 8; i++)
		w |= (uint64_t)guest_byte(a + i) << (8 * i);
	return w;
}

static bool guest_is(uaddr_t a, const char *s)
{
	do {
		if (guest_byte(a++) != (uint8_t)*s)
			return false;
	} while (*s++);
	return true;
}

static void file_of_text(unsigned n, const void *text, size_t len)
{
	fake_fd[n] = memfd_create("test", 0);
	if (write(fake_fd[n], text, len) != (ssize_t)len)
		abort();
}

/* One page of code at 0x400000 and a writable load with a bss, far away. */
static void make_static(void)
{
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr ph[2];
		char data[64];
	} p = {
		.e = {
			.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
			.e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = 1, .e_entry = 0x400100,
			.e_phoff = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2,
		},
		.ph = {
			{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x400000,
			  .p_filesz = 0x100, .p_memsz = 0x100 },
			{ .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = 0x600000,
			  .p_filesz = 0xb0, .p_memsz = 0x2800 },
		},
		.data = "text that must be cut off",
	};

	file_of_text(STATIC, &p, sizeof(p));
}

static bool start(void)
{
	fakes_init();
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		fake_file_init(i, O_RDONLY);
		dentries[i].inode = &fake_inodes[i];
		fake_files[i].dentry = &dentries[i];
		fake_files[i].mnt = &mount;
	}
	t->cred->groups[0] = 4711;
	t->cred = copy_cred(t->cred);
	t->tg->rlim[RLIMIT_STACK].cur = 8 << 20;
	fake_fd[DYNAMIC] = open(names[DYNAMIC], O_RDONLY);
	fake_fd[LD] = open(names[LD], O_RDONLY);
	make_static();
	file_of_text(SCRIPT, "#!/static -x y\necho", 19);
	file_of_text(NESTED, "#! /script\n", 11);
	file_of_text(LOOP, "#!/loop\n", 8);
	file_of_text(LOST, "#!/nowhere\n", 11);
	return fake_fd[DYNAMIC] >= 0 && fake_fd[LD] >= 0;
}

static int exec_args(unsigned n, const char *path, const char *const *argv, const char *const *envp)
{
	struct exec_strings s = { .block = NULL };
	int rc = 0;

	for (; rc == 0 && *argv; argv++)
		rc = exec_strings_add_arg(&s, *argv, exec_strings_limit(t));
	for (; rc == 0 && *envp; envp++)
		rc = exec_strings_add_env(&s, *envp, exec_strings_limit(t));
	exit_status = exec_done = 0;
	fake_applies = fake_writes = 0;
	if (rc == 0)
		rc = exec_load(t, &fake_files[n], path, &s);
	exec_strings_fini(&s);
	return rc;
}

static int run(unsigned n, const char *path)
{
	static const char *const argv[] = { "one", "two words", NULL }, *const envp[] = { "A=1", "B=", "C", NULL };

	return exec_args(n, path, argv, envp);
}

static const struct gregs *regs(void)
{
	return t->op.data;
}

static uint64_t aux_of(uint64_t type)
{
	const struct mm_layout *l = mm_layout(t->mm);

	for (unsigned i = 0; i < l->n_auxv; i += 2) {
		if (l->auxv[i] == type)
			return l->auxv[i + 1];
	}
	return UINT64_MAX;
}

static void check_stack(void)
{
	const struct mm_layout *l = mm_layout(t->mm);
	uaddr_t sp = regs()->rsp, v = sp + 8;
	bool same = true;

	tap_ok(sp % 16 == 0 && guest_word(sp) == 2, "the stack is aligned and begins with argc");
	tap_ok(guest_is(guest_word(v), "one") && guest_is(guest_word(v + 8), "two words") && !guest_word(v + 16),
	       "argv");
	tap_eq(guest_word(v), l->arg_start, "arg_start");
	v += 24;
	tap_ok(guest_is(guest_word(v), "A=1") && guest_is(guest_word(v + 8), "B=") &&
	               guest_is(guest_word(v + 16), "C") && !guest_word(v + 24),
	       "envp");
	tap_ok(guest_word(v) == l->env_start && l->env_end - l->env_start == 9, "env_start, env_end");
	v += 32;
	for (unsigned i = 0; i < l->n_auxv; i++)
		same = same && guest_word(v + 8 * i) == l->auxv[i];
	tap_ok(same && !l->auxv[l->n_auxv - 2], "the auxiliary vector");
	tap_ok(guest_is(aux_of(AT_EXECFN), "/bin/true") && guest_is(aux_of(AT_PLATFORM), "x86_64") &&
	       (guest_word(aux_of(AT_RANDOM)) | guest_word(aux_of(AT_RANDOM) + 8)), "what it points to");
	tap_ok(aux_of(AT_PAGESZ) == 4096 && aux_of(AT_CLKTCK) == 100 && aux_of(AT_SECURE) == 0 &&
	               aux_of(AT_SYSINFO_EHDR) == PLATFORM_RESERVED_START + 0x200000 &&
	               aux_of(AT_HWCAP2) == getauxval(AT_HWCAP2),
	       "what it says");
	tap_ok(mm_prot_at(t->mm, sp) == (PROT_READ | PROT_WRITE) && mm_prot_at(t->mm, sp - (7 << 20)) > 0,
	       "the stack is mapped as far as its limit");
}

static void test_dynamic(void)
{
	struct host_page *p;

	tap_eq(run(DYNAMIC, "/bin/true"), 0, "a dynamic program");
	tap_ok(exec_done == 1 && !strcmp(seen_comm, "true") && !strcmp(seen_exe, "/fake"), "comm and exe");
	tap_ok(fake_applies == 1 && fake_writes <= 3, "one batch of mappings, %u writes", fake_writes);
	check_stack();
	p = host_page(regs()->rip);
	tap_ok(p && p->fd == 100 + LD && p->prot == (PROT_READ | PROT_EXEC), "it begins in the interpreter");
	p = host_page(aux_of(AT_BASE));
	tap_ok(p && p->fd == 100 + LD && p->offset == FAKE_MAP_OFFSET, "AT_BASE");
	p = host_page(aux_of(AT_PHDR));
	tap_ok(p && p->fd == 100 + DYNAMIC && p->offset == FAKE_MAP_OFFSET && aux_of(AT_PHDR) % PAGE_SIZE == 64,
	       "AT_PHDR");
	p = host_page(aux_of(AT_ENTRY));
	tap_ok(p && p->fd == 100 + DYNAMIC && (p->prot & PROT_EXEC), "AT_ENTRY");
	tap_eq(fake_inodes[DYNAMIC].writers, -1, "the program cannot be written to");
	tap_eq(fake_inodes[LD].writers, 0, "its interpreter can");
	tap_ok(mm_brk(t, 0) >= (int64_t)mm_layout(t->mm)->end_data, "there is a heap");
}

static void test_static(void)
{
	tap_eq(run(STATIC, "/static"), 0, "a static program");
	tap_ok(regs()->rip == 0x400100 && aux_of(AT_BASE) == 0 && aux_of(AT_PHDR) == 0x400040, "entry and headers");
	tap_ok(guest_byte(0x600001) == 'E', "its data is the file's");
	tap_ok(guest_byte(0x6000b0) == 0 && guest_byte(0x6000b4) == 0, "the rest of the page is zero");
	tap_ok(host_page(0x602000) && host_page(0x602000)->fd == -1 && !host_page(0x603000), "the bss follows");
	tap_eq(fake_inodes[DYNAMIC].writers, 0, "the program before may be written to again");
}

static void test_set_id(void)
{
	fake_inodes[STATIC].mode = S_IFREG | 04755;
	fake_inodes[STATIC].uid = t->cred->uid + 7;
	mount.flags = MNT_NOSUID;
	tap_eq(run(STATIC, "/static"), 0, "a set-user-ID program on a nosuid mount");
	tap_ok(!aux_of(AT_SECURE) && aux_of(AT_EUID) == aux_of(AT_UID) && t->tg->dumpable, "is like any other");
	mount.flags = 0;
	t->personality = ADDR_NO_RANDOMIZE;
	t->pdeath_signal = SIGTERM;
	tap_eq(run(STATIC, "/static"), 0, "a set-user-ID program");
	tap_ok(aux_of(AT_SECURE) == 1 && aux_of(AT_EUID) == t->cred->uid + 7, "has its owner's rights, and knows it");
	tap_ok(!t->tg->dumpable && !t->pdeath_signal && !t->personality, "and keeps out of its caller's reach");
	t->cred->euid = t->cred->uid;
	fake_inodes[STATIC].mode = S_IFREG | 0755;
}

static void test_scripts(void)
{
	uaddr_t v;

	tap_eq(run(SCRIPT, "./script"), 0, "a script");
	v = regs()->rsp;
	tap_ok(guest_word(v) == 4 && guest_is(guest_word(v + 8), "/static") && guest_is(guest_word(v + 16), "-x y") &&
	       guest_is(guest_word(v + 24), "./script") && guest_is(guest_word(v + 32), "two words"), "its arguments");
	tap_ok(guest_is(aux_of(AT_EXECFN), "./script") && !strcmp(seen_comm, "script"), "its name");
	tap_eq(run(NESTED, "n"), 0, "a script run by a script");
	v = regs()->rsp;
	tap_ok(guest_word(v) == 5 && guest_is(guest_word(v + 24), "/script") && guest_is(guest_word(v + 32), "n"),
	       "its arguments");
	tap_eq(run(LOOP, "/loop"), -ELOOP, "a script that is its own interpreter");
	tap_eq(run(LOST, "/lost"), -ENOENT, "a script without interpreter");
	tap_eq(run(SCRIPT, ""), -ENOENT, "a script that cannot be opened by name");
	tap_eq(fake_inodes[SCRIPT].writers, 0, "scripts may be written to");
}

static void test_failures(void)
{
	static const char *const none[] = { NULL };
	static char huge[EXEC_STRLEN_MAX + 1];
	const char *argv[65] = { huge, NULL };
	struct file *f;
	struct mm *mm = t->mm;

	tap_eq(exec_open(t, AT_FDCWD, "/nowhere", WALK_FOLLOW, &f), -ENOENT, "open what is not there");
	fake_inodes[STATIC].mode = S_IFREG | 0644;
	tap_eq(exec_open(t, AT_FDCWD, "/static", WALK_FOLLOW, &f), -EACCES, "open what may not be executed");
	fake_inodes[STATIC].mode = S_IFDIR | 0755;
	tap_eq(exec_open(t, AT_FDCWD, "/static", WALK_FOLLOW, &f), -EACCES, "open a directory");
	fake_inodes[STATIC].mode = S_IFLNK | 0777;
	tap_eq(exec_open(t, AT_FDCWD, "/static", 0, &f), -ELOOP, "open a symlink");
	fake_inodes[STATIC].mode = S_IFREG | 0755;
	mount.flags = MNT_NOEXEC;
	tap_eq(exec_open(t, AT_FDCWD, "/static", WALK_FOLLOW, &f), -EACCES, "open on a noexec mount");
	mount.flags = 0;

	policy_rc = -EACCES;
	tap_eq(run(STATIC, "/static"), -EACCES, "a banned program");
	tap_ok(!strcmp(policy_program, "/fake"), "the ban sees its absolute path");
	policy_rc = 0;
	fake_deny_write_rc = -ETXTBSY;
	tap_eq(run(STATIC, "/static"), -ETXTBSY, "a program that is being written");
	fake_deny_write_rc = 0;
	if (ftruncate(fake_fd[STATIC], 100) < 0)
		abort();
	tap_eq(run(STATIC, "/static"), -ENOEXEC, "a truncated program");
	memset(huge, 'x', sizeof(huge) - 1);
	tap_eq(exec_args(DYNAMIC, "/bin/true", argv, none), -E2BIG, "a string that is too long");
	huge[EXEC_STRLEN_MAX - 1] = '\0';
	for (unsigned i = 0; i < 64; i++)
		argv[i] = huge;
	tap_eq(exec_args(DYNAMIC, "/bin/true", argv, none), -E2BIG, "strings beyond a quarter of the stack");
	argv[10] = NULL;
	t->tg->rlim[RLIMIT_AS].cur = 1 << 20;
	tap_eq(exec_args(DYNAMIC, "/bin/true", argv, none), -ENOMEM, "RLIMIT_AS");
	t->tg->rlim[RLIMIT_AS].cur = UINT64_MAX;
	tap_ok(t->mm == mm && !exec_done, "after all these the old program is whole");
	tap_eq(exec_args(DYNAMIC, "/bin/true", argv, none), 0, "1.2 MiB of arguments");
	tap_eq(exec_args(DYNAMIC, "/bin/true", none, none), 0, "no argument at all");
	tap_ok(guest_word(regs()->rsp) == 1 && guest_is(guest_word(regs()->rsp + 8), ""), "... becomes an empty one");
	fake_fail_in = 3;
	tap_eq(run(DYNAMIC, "/bin/true"), 0, "the host fails past the point of no return");
	tap_eq(exit_status, SIGKILL, "... which kills");
}

int main(void)
{
	srandom(5);
	if (!start()) {
		tap_skip("no dynamic /bin/true here", "exec");
		return tap_done();
	}
	test_dynamic();
	test_static();
	test_set_id();
	test_scripts();
	test_failures();
	mm_put(t->mm);
	t->mm = NULL;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		if (ref_count(&fake_files[i].ref) != 1 || fake_inodes[i].writers)
			tap_ok(false, "%s: references or write denials are left", names[i]);
	}
	tap_eq(kernel.counters.mms, 0, "nothing is left");
	free(seen_exe);
	host_clear();
	return tap_done();
}
