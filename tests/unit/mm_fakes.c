/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/mm_fakes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/mm/mm.h"

#define CHAINS 65536

struct kernel kernel;
struct file fake_files[FAKE_FILES];
struct inode fake_inodes[FAKE_FILES];
int fake_fd[FAKE_FILES];
struct task fake_task;
bool fake_all_caps;
int fake_fail_in;
unsigned fake_applies, fake_ops, fake_writes;
int fake_deny_write_rc;
int fake_sealed = -1;

static struct tgroup fake_tgroup;
static struct cred fake_cred;
static struct fs_ctx fake_fs;
static struct vcpu_ctx fake_ctx;
static char fake_aspace_mem;
struct aspace *const fake_aspace = (struct aspace *)&fake_aspace_mem;
static struct host_page *chains[CHAINS];
static unsigned n_pages;

static struct host_page **find(uint64_t page)
{
	struct host_page **p = &chains[(page ^ page >> 16) % CHAINS];

	while (*p && (*p)->page != page)
		p = &(*p)->next;
	return p;
}

struct host_page *host_page(uaddr_t addr)
{
	return *find(addr / PAGE_SIZE);
}

unsigned host_pages(void)
{
	return n_pages;
}

static void page_drop(uint64_t page)
{
	struct host_page **p = find(page), *dead = *p;

	if (!dead)
		return;
	*p = dead->next;
	free(dead->data);
	free(dead);
	n_pages--;
}

static struct host_page *page_make(uint64_t page)
{
	struct host_page **p, *new = calloc(1, sizeof(*new));

	page_drop(page);
	p = find(page);
	new->page = page;
	*p = new;
	n_pages++;
	return new;
}

void host_clear(void)
{
	for (unsigned i = 0; i < CHAINS; i++) {
		while (chains[i])
			page_drop(chains[i]->page);
	}
}

/* Reservations larger than this are not kept by page. */
#define HOST_MAX (64ull << 20)

static void host_map(const struct aspace_op *op)
{
	if (op->len > HOST_MAX)
		return;
	for (uint64_t o = 0; o < op->len; o += PAGE_SIZE) {
		struct host_page *p = page_make((op->addr + o) / PAGE_SIZE);

		p->prot = op->prot;
		p->fd = op->fd;
		p->offset = op->fd >= 0 ? op->offset + o : 0;
		p->shared = op->flags & ASPACE_SHARED;
	}
}

static int host_protect(const struct aspace_op *op)
{
	for (uint64_t o = 0; o < op->len; o += PAGE_SIZE) {
		struct host_page *p = host_page(op->addr + o);

		if (!p)
			return -ENOMEM;
		p->prot = op->prot;
	}
	return 0;
}

static int host_remap(const struct aspace_op *op)
{
	struct host_page *last = NULL;

	for (uint64_t o = 0; o < op->len; o += PAGE_SIZE) {
		if (!host_page(op->addr + o))
			return -EFAULT;
	}
	for (uint64_t o = 0; o < op->new_len; o += PAGE_SIZE) {
		uint64_t to = (op->new_addr + o) / PAGE_SIZE;
		struct host_page *from = o < op->len || !op->len ? host_page(op->addr + o) : NULL;

		if (op->new_addr == op->addr && from) {
			last = from;
			continue;
		}
		struct host_page *p = page_make(to);
		if (from) {
			p->prot = from->prot;
			p->fd = from->fd;
			p->offset = from->offset;
			p->shared = from->shared;
			p->data = from->data;
			from->data = NULL;
			if (op->len && !(op->flags & ASPACE_DONTUNMAP))
				page_drop(from->page);
		} else if (last) {
			p->prot = last->prot;
			p->fd = last->fd;
			p->offset = last->fd >= 0 ? last->offset + PAGE_SIZE : 0;
			p->shared = last->shared;
		}
		last = p;
	}
	return 0;
}

static int host_op(const struct aspace_op *op)
{
	if (op->addr % PAGE_SIZE || op->len % PAGE_SIZE ||
	    (op->addr < PLATFORM_RESERVED_END && op->addr + op->len > PLATFORM_RESERVED_START))
		return -EINVAL;
	switch (op->op) {
	case ASPACE_MAP:
		host_map(op);
		return 0;
	case ASPACE_UNMAP:
		for (uint64_t o = 0; o < op->len && op->len <= HOST_MAX; o += PAGE_SIZE)
			page_drop((op->addr + o) / PAGE_SIZE);
		return 0;
	case ASPACE_PROTECT:
		return host_protect(op);
	case ASPACE_REMAP:
		return host_remap(op);
	case ASPACE_ADVISE:
		return 0;
	}
	return -EINVAL;
}

static int64_t fake_apply(struct vcpu_ctx *ctx, const struct aspace_op *ops, unsigned n, bool may_resume,
                          unsigned *done)
{
	fake_applies++;
	for (unsigned i = 0; i < n; i++) {
		int rc;

		fake_ops++;
		if (fake_fail_in > 0 && --fake_fail_in == 0)
			return -ENOMEM;
		rc = host_op(&ops[i]);
		if (rc < 0)
			return rc;
		*done = i + 1;
	}
	return may_resume && n == 1 ? ASPACE_RESUMED : 0;
}

static ssize_t fake_write(struct aspace *as, uaddr_t addr, const void *buf, size_t n)
{
	size_t done = 0;

	fake_writes++;
	while (done < n) {
		struct host_page *p = host_page(addr + done);
		size_t off = (addr + done) % PAGE_SIZE, part = MIN(n - done, PAGE_SIZE - off);

		if (!p || !(p->prot & PROT_WRITE))
			return done ? (ssize_t)done : -EFAULT;
		if (!p->data) {
			p->data = calloc(1, PAGE_SIZE);
			if (p->fd >= 100 && fake_fd[p->fd - 100] >= 0 &&
			    pread(fake_fd[p->fd - 100], p->data, PAGE_SIZE, (off_t)(p->offset - FAKE_MAP_OFFSET)) < 0)
				return -EFAULT;
		}
		memcpy(p->data + off, (const char *)buf + done, part);
		done += part;
	}
	return (ssize_t)done;
}

static void fake_aspace_put(struct aspace *as)
{
}

static uaddr_t fake_vdso(const struct platform *p)
{
	return PLATFORM_RESERVED_START + 0x200000;
}

static int fake_ctx_exec(struct vcpu_ctx *ctx, bool alone, struct aspace **as, struct vcpu_ctx **new_ctx)
{
	host_clear();
	*as = fake_aspace;
	*new_ctx = ctx;
	return 0;
}

static int fake_regs_set(struct vcpu_ctx *ctx, unsigned flags, const struct gregs *regs)
{
	static struct gregs seen;

	seen = *regs;
	fake_task.op.data = &seen; /* where the tests look */
	return 0;
}

static int fake_resume(struct vcpu_ctx *ctx)
{
	return 0;
}

uaddr_t fake_cut_at;
uint64_t fake_cut_len;

static void fake_cut(struct aspace *as, uaddr_t addr, uint64_t len)
{
	fake_cut_at = addr;
	fake_cut_len += len;
}

static const struct platform_ops fake_platform_ops = {
	.name = "fake",
	.aspace_cut = fake_cut,
	.aspace_apply = fake_apply,
	.aspace_put = fake_aspace_put,
	.write = fake_write,
	.vdso = fake_vdso,
	.ctx_exec = fake_ctx_exec,
	.ctx_regs_set = fake_regs_set,
	.ctx_resume = fake_resume,
};

void fake_file_init(unsigned n, uint32_t flags)
{
	fake_inodes[n] = (struct inode){ .mode = S_IFREG | 0755, .ino = n + 1 };
	fake_files[n] = (struct file){ .inode = &fake_inodes[n], .flags = flags };
	ref_init(&fake_files[n].ref);
	ref_init(&fake_inodes[n].ref);
}

void fakes_init(void)
{
	kernel.plat = &fake_platform_ops;
	for (unsigned i = 0; i < FAKE_FILES; i++)
		fake_fd[i] = -1;
	for (unsigned i = 0; i < RLIMIT_COUNT; i++)
		fake_tgroup.rlim[i] = (struct rlimit_pair){ UINT64_MAX, UINT64_MAX };
	ref_init(&fake_cred.ref);
	host_clear();
	fake_task.tg = &fake_tgroup;
	fake_task.cred = &fake_cred;
	fake_task.fs = &fake_fs;
	fake_task.ctx = &fake_ctx;
	mm_put(fake_task.mm);
	fake_task.mm = mm_create(fake_aspace);
	mm_users_add(fake_task.mm, 1);
}

/* What the sources under test call. */

uint64_t task_rlimit(const struct task *t, unsigned resource)
{
	return t->tg->rlim[resource].cur;
}

bool cred_has_cap(const struct cred *c, int cap)
{
	return fake_all_caps;
}

void kernel_random(void *buf, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)buf)[i] = (uint8_t)(random() >> 8);
}

struct file *file_get(struct file *f)
{
	ref_get(&f->ref);
	return f;
}

void file_put(struct file *f)
{
	if (f)
		BUG_ON(ref_put(&f->ref)); /* the fakes keep one themselves */
}

int vfs_mmap(struct file *f, int prot, bool shared, struct file_map *map)
{
	if (f - fake_files == fake_sealed && shared && (prot & PROT_WRITE))
		return -EPERM;
	map->fd = 100 + (int)(f - fake_files);
	map->offset = FAKE_MAP_OFFSET;
	return 0;
}

int inode_deny_write(struct inode *in)
{
	if (fake_deny_write_rc == 0)
		in->writers--;
	return fake_deny_write_rc;
}

void inode_allow_write(struct inode *in)
{
	in->writers++;
}

int path_name(const struct path *p, const struct path *root, char *buf, size_t cap)
{
	strcpy(buf, "/fake");
	return 5;
}
