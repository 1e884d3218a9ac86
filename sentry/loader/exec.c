/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execve(2). Everything that can fail without harm comes first: scripts are followed, the program
 * and its interpreter are read and parsed, a new mm with all VMAs and the stack's contents are
 * prepared (exec_prepare()). Then ctx_exec() takes the old program away, one batch of mappings and
 * a few writes make the new one, and the task runs (exec_commit()). A failure after ctx_exec()
 * kills the task.
 *
 * File capabilities are not honoured; set-user-id and set-group-id bits are where the mount is not
 * nosuid.
 */
#include "sentry/loader/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/futex.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/loader/image.h"
#include "sentry/loader/script.h"
#include "sentry/loader/stack.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/vfs.h"

#define SCRIPT_DEPTH_MAX 5
#define STACK_SIZE_MAX (64ull << 20) /* mapped at once; a larger limit lets it grow by faults */
#define STACK_SIZE_MIN (128ull << 10)
#define STACK_RND_BITS 22
#define BRK_RND_BITS 13
#define INITIAL_EFLAGS 0x202
/* Linux's PER_CLEAR_ON_SETID: what a caller may not impose on a program with other rights. */
#define PERSONALITY_CLEAR_ON_SETID (READ_IMPLIES_EXEC | ADDR_NO_RANDOMIZE | ADDR_COMPAT_LAYOUT | MMAP_PAGE_ZERO)

/* One call. Too large for the stack. */
struct exec {
	struct task *t;
	struct file *file;   /* counted: the program itself, after all scripts */
	bool write_denied;   /* ... to file */
	struct file *interp; /* counted: the ELF interpreter, or NULL */
	struct mm *mm;       /* the new one, ours until committed */
	struct cred *cred;   /* the new one, or NULL: unchanged */
	bool secure;         /* AT_SECURE */
	uint32_t personality;
	char *exe_path;      /* owned */
	const char *path;    /* as given: AT_EXECFN and comm */
	struct stack_image stack;
	struct mm_batch batch;
	struct image image, interp_image;
	char name[PATH_MAX_LINUX];
};

int exec_open(struct task *t, int dirfd, const char *path, unsigned walk_flags, struct file **ret)
{
	struct path p;
	int rc = path_walk(t, dirfd, path, walk_flags, &p);

	if (rc < 0)
		return rc;
	if (!S_ISREG(p.dentry->inode->mode) || (p.mnt->flags & MNT_NOEXEC))
		rc = S_ISLNK(p.dentry->inode->mode) ? -ELOOP : -EACCES;
	else
		rc = vfs_permission(t->cred, p.dentry->inode, MAY_EXEC);
	/* Without a task: a program that may be executed need not be readable. */
	if (rc == 0)
		rc = vfs_open_place(NULL, &p, O_RDONLY, ret);
	path_put(&p);
	return rc;
}

/* The absolute path of @f as the task sees it; for /proc/PID/exe, the audit and the exec bans. */
static int name_of(struct task *t, const struct file *f, char *buf, size_t cap)
{
	struct path p = { .mnt = f->mnt, .dentry = f->dentry };
	int n;

	if (!f->dentry) {
		/* A memfd, or a file of the caller's: an absolute name as memfd_create(2) has it. */
		n = snprintf(buf, cap, "/memfd:%s (deleted)", f->anon_name ? f->anon_name : "");
		return n < (int)cap ? 0 : -ENAMETOOLONG;
	}
	n = path_name(&p, &t->fs->root, buf, cap);
	return n < 0 ? n : 0;
}

static void set_file(struct exec *x, struct file *f)
{
	if (x->write_denied)
		inode_allow_write(x->file->inode);
	x->write_denied = false;
	file_put(x->file);
	x->file = f;
}

/* Replaces the script in x->file by its interpreter, and the first argument by "interpreter
 * [argument] script". @name: the script as it was called. */
static int follow_script(struct exec *x, struct exec_strings *strings, char *name)
{
	struct script_line line;
	const char *args[3];
	struct file *f;
	unsigned n = 0;
	int rc = script_parse(x->image.head, x->image.n_head, &line);

	if (rc < 0)
		return rc;
	if (!name[0])
		return -ENOENT;
	args[n++] = line.interp;
	if (line.has_arg)
		args[n++] = line.arg;
	args[n++] = name;
	rc = exec_strings_replace_first(strings, args, n, exec_strings_limit(x->t));
	if (rc == 0)
		rc = exec_open(x->t, AT_FDCWD, line.interp, WALK_FOLLOW, &f);
	if (rc < 0)
		return rc;
	set_file(x, f);
	strcpy(name, line.interp);
	return 0;
}

/* Follows scripts until x->image is a parsed ELF program. */
static int find_program(struct exec *x, struct exec_strings *strings)
{
	char name[PATH_MAX_LINUX] = "";
	int rc;

	if (x->path && strlen(x->path) < sizeof(name))
		strcpy(name, x->path);
	for (unsigned depth = 0;; depth++) {
		if (depth > SCRIPT_DEPTH_MAX)
			return -ELOOP;
		rc = name_of(x->t, x->file, x->name, sizeof(x->name));
		if (rc == 0)
			rc = exec_policy_check(x->t, x->name, strings);
		if (rc == 0)
			rc = inode_deny_write(x->file->inode);
		if (rc < 0)
			return rc;
		x->write_denied = true;
		rc = image_read_head(&x->image, x->file);
		if (rc < 0)
			return rc;
		if (x->image.n_head < 2 || memcmp(x->image.head, "#!", 2) != 0)
			return image_parse(&x->image);
		rc = follow_script(x, strings, name);
		if (rc < 0)
			return rc;
	}
}

static int find_interp(struct exec *x)
{
	char path[ELF_INTERP_MAX];
	int rc = image_interp(&x->image, path);

	if (rc == 0)
		rc = exec_open(x->t, AT_FDCWD, path, WALK_FOLLOW, &x->interp);
	if (rc == 0)
		rc = image_read_head(&x->interp_image, x->interp);
	if (rc == 0 && x->interp_image.n_head < ELF_HEADER_SIZE)
		rc = -EIO;
	if (rc == 0 && image_parse(&x->interp_image) < 0)
		rc = -ELIBBAD;
	return rc;
}

/* The credentials of the program that was found: set-id bits count unless its mount is nosuid. */
static int prepare_cred(struct exec *x)
{
	const struct inode *in = x->file->inode;
	bool nosuid = !x->file->mnt || x->file->mnt->flags & MNT_NOSUID;

	x->cred = cred_exec(x->t->cred, in->mode, in->uid, in->gid, nosuid, &x->secure);
	if (!x->cred)
		return -ENOMEM;
	x->personality = x->t->personality;
	if (x->cred->euid != x->t->cred->euid || x->cred->egid != x->t->cred->egid)
		x->personality &= ~(uint32_t)PERSONALITY_CLEAR_ON_SETID;
	return 0;
}

/* A random offset in pages below 2^@bits, unless the task asked for none: personality(2). */
static uint64_t exec_random(const struct exec *x, unsigned bits)
{
	return x->personality & ADDR_NO_RANDOMIZE ? 0 : mm_random_pages(bits);
}

static void note_layout(struct exec *x)
{
	struct mm_layout *l = mm_layout(x->mm);
	uint64_t bias = x->image.bias;

	l->start_code = UINT64_MAX;
	for (unsigned i = 0; i < x->image.elf.n_loads; i++) {
		const struct elf_load *s = &x->image.elf.loads[i];

		if (s->prot & PROT_EXEC) {
			l->start_code = MIN(l->start_code, s->vaddr + bias);
			l->end_code = MAX(l->end_code, s->vaddr + bias + s->filesz);
		}
		l->start_data = MAX(l->start_data, s->vaddr + bias);
		l->end_data = MAX(l->end_data, s->vaddr + bias + s->filesz);
	}
	if (l->start_code == UINT64_MAX)
		l->start_code = l->end_code = 0;
	mm_set_brk(x->mm, x->image.elf.high + bias + exec_random(x, BRK_RND_BITS));
}

/* The whole stack is mapped at once, as far as the limit goes: the host fills it when it is
 * touched. */
static int plan_stack(struct exec *x, const struct exec_strings *strings)
{
	uint64_t limit = task_rlimit(x->t, RLIMIT_STACK), size = MIN(limit, STACK_SIZE_MAX);
	struct stack_args args = {
		.top = GUEST_TASK_SIZE - exec_random(x, STACK_RND_BITS),
		.strings = strings,
		.execfn = x->path && x->path[0] ? x->path : x->name,
		.program = &x->image,
		.interp_base = x->interp ? x->interp_image.bias : 0,
		.cred = x->cred,
		.secure = x->secure,
	};
	struct mm_map_args map = {
		.prot = PROT_READ | PROT_WRITE | (x->image.elf.exec_stack ? PROT_EXEC : 0),
		.flags = MM_MAP_FIXED | MM_MAP_NOREPLACE | MM_MAP_GROWSDOWN | MM_MAP_NORESERVE,
	};
	int64_t rc = stack_build(&x->stack, &args, mm_layout(x->mm));

	if (rc < 0)
		return (int)rc;
	size = MAX(ROUND_DOWN(size, PAGE_SIZE), ROUND_UP(x->stack.len, PAGE_SIZE) + STACK_SIZE_MIN);
	map.addr = args.top - size;
	map.len = size;
	rc = mm_batch_map(&x->batch, x->t, &map);
	return rc < 0 ? (int)rc : 0;
}

static int exec_prepare(struct exec *x, struct exec_strings *strings)
{
	int rc;

	/* Since Linux 5.18 a program always has an argv[0]. */
	if (!strings->argc) {
		static const char *const empty[] = { "" };

		rc = exec_strings_replace_first(strings, empty, 1, exec_strings_limit(x->t));
		if (rc < 0)
			return rc;
	}
	rc = find_program(x, strings);
	if (rc == 0 && x->image.elf.interp_len)
		rc = find_interp(x);
	if (rc == 0)
		rc = name_of(x->t, x->file, x->name, sizeof(x->name));
	if (rc == 0)
		rc = prepare_cred(x);
	if (rc < 0)
		return rc;
	x->exe_path = strdup(x->name);
	x->mm = mm_create(NULL);
	if (!x->exe_path || !x->mm)
		return -ENOMEM;
	x->batch.mm = x->mm;
	mm_set_base(x->mm, task_rlimit(x->t, RLIMIT_STACK),
	            !(x->personality & ADDR_NO_RANDOMIZE));
	rc = image_plan(&x->image, &x->batch, x->t, false);
	if (rc == 0 && x->interp)
		rc = image_plan(&x->interp_image, &x->batch, x->t, true);
	if (rc < 0)
		return rc;
	note_layout(x);
	return plan_stack(x, strings);
}

/* Puts the task into the new, still empty address space. 0; -errno: nothing has changed. */
static int switch_mm(struct exec *x)
{
	struct task *t = x->t;
	struct mm *old = t->mm;
	struct vcpu_ctx *old_ctx = t->ctx, *ctx;
	struct aspace *as;
	int rc;

	futex_mm_release(t); /* while the old memory is there */
	rc = kernel.plat->ctx_exec(old_ctx, mm_users_add(old, 0) <= 1, &as, &ctx);
	if (rc < 0)
		return rc;
	if (ctx != old_ctx) {
		ctx->owner = t;
		t->ctx = ctx;
		kernel.plat->ctx_destroy(old_ctx);
	}
	mm_attach(x->mm, as);
	mm_set_exe(x->mm, x->file);
	x->write_denied = false; /* the mm's now */
	t->mm = mm_get(x->mm);
	mm_users_add(t->mm, 1);
	mm_users_add(old, -1);
	mm_put(old);
	return 0;
}

static int fill_memory(struct exec *x)
{
	struct aspace *as = mm_aspace(x->mm);
	int rc = mm_batch_apply(&x->batch, x->t->ctx);

	if (rc == 0)
		rc = image_zero(&x->image, as);
	if (rc == 0 && x->interp)
		rc = image_zero(&x->interp_image, as);
	if (rc == 0 && kernel.plat->write(as, x->stack.sp, x->stack.buf, x->stack.len) !=
	                       (ssize_t)x->stack.len)
		rc = -EFAULT;
	return rc;
}

static void become(struct exec *x)
{
	struct task *t = x->t;
	const char *path = x->path && x->path[0] ? x->path : x->name, *base = strrchr(path, '/');
	char comm[TASK_COMM_LEN];
	bool same_ids = x->cred->uid == x->cred->euid && x->cred->gid == x->cred->egid;

	base = base ? base + 1 : path;
	memcpy(comm, base, MIN(strlen(base) + 1, sizeof(comm)));
	comm[sizeof(comm) - 1] = '\0';
	if (!same_ids || x->secure)
		t->pdeath_signal = 0;
	t->tg->dumpable = same_ids && vfs_permission(x->cred, x->file->inode, MAY_READ) == 0;
	t->personality = x->personality & ~(uint32_t)READ_IMPLIES_EXEC;
	cred_put(t->cred);
	t->cred = x->cred;
	x->cred = NULL;
	task_exec_done(t, comm, x->exe_path);
	x->exe_path = NULL;
}

/* From here on there is no way back: failures kill. */
static int exec_commit(struct exec *x)
{
	struct task *t = x->t;
	struct gregs regs = {
		.rip = x->interp ? x->interp_image.elf.entry + x->interp_image.bias
		                 : x->image.elf.entry + x->image.bias,
		.rsp = x->stack.sp,
		.eflags = INITIAL_EFLAGS,
	};
	int rc = switch_mm(x);

	if (rc < 0)
		return rc;
	rc = fill_memory(x);
	if (rc == 0)
		rc = kernel.plat->ctx_regs_set(t->ctx, CTX_REGS_BASES, &regs);
	become(x);
	if (rc < 0) {
		tgroup_exit(t->tg, rc == -EFAULT ? SIGSEGV : SIGKILL);
		return 0;
	}
	/* -ESRCH: it was killed meanwhile, which a trap will tell. */
	(void)kernel.plat->ctx_resume(t->ctx);
	return 0;
}

static void exec_free(struct exec *x)
{
	stack_image_fini(&x->stack);
	mm_put(x->mm);
	if (x->cred)
		cred_put(x->cred);
	set_file(x, NULL);
	file_put(x->interp);
	free(x->exe_path);
	free(x);
}

int exec_load(struct task *t, struct file *file, const char *path, struct exec_strings *strings)
{
	struct exec *x = calloc(1, sizeof(*x));
	int rc;

	if (!x)
		return -ENOMEM;
	x->t = t;
	x->file = file_get(file);
	x->path = path;
	rc = exec_prepare(x, strings);
	if (rc == 0)
		rc = exec_commit(x);
	exec_free(x);
	return rc;
}
