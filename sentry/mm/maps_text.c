/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/maps and smaps, proc(5). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "sentry/kernel/kernel.h"
#include "sentry/mm/mm_priv.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/vfs.h"

#define NAME_COLUMN 73
#define VDSO_SIZE (2 * PAGE_SIZE)
#define VSYSCALL 0xffffffffff600000ull

/* A text in a buffer that is large enough for one VMA's lines (MM_MAPS_LINE_MAX). */
struct text {
	char *buf;
	size_t len, cap;
};

static void put(struct text *o, const char *fmt, ...) PRINTF(2, 3);
static void put(struct text *o, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(o->buf + o->len, o->cap - o->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		o->len = MIN(o->len + (size_t)n, o->cap - 1);
}

/* Linux writes a newline in a name as \012 and nothing else specially. */
static void put_name(struct text *o, const char *name)
{
	for (;;) {
		size_t n = strcspn(name, "\n");

		put(o, "%.*s", (int)n, name);
		if (!name[n])
			return;
		put(o, "\\012");
		name += n + 1;
	}
}

static void head(struct text *o, uaddr_t start, uaddr_t end, const char *perms, uint64_t offset,
                 uint64_t dev, uint64_t ino, const char *name)
{
	size_t at = o->len;

	put(o, "%08lx-%08lx %s %08lx %02x:%02x %lu ", start, end, perms, offset, major(dev),
	    minor(dev), ino);
	if (name[0]) {
		size_t used = o->len - at;

		put(o, "%*s", used < NAME_COLUMN ? (int)(NAME_COLUMN - used) : 0, "");
		put_name(o, name);
	}
	put(o, "\n");
}

static void name_of_file(const struct file *f, char *buf, size_t cap)
{
	struct path p = { .mnt = f->mnt, .dentry = f->dentry };
	struct path root = { .mnt = kernel.mnt_ns->root, .dentry = kernel.mnt_ns->root->root };

	if (!f->dentry)
		snprintf(buf, cap, "%s", f->anon_name ? f->anon_name : "");
	else if (path_name(&p, &root, buf, cap) < 0)
		buf[0] = '\0';
}

static void name_of(const struct mm *mm, const struct vma *v, char *buf, size_t cap)
{
	const struct mm_layout *l = &mm->layout;

	buf[0] = '\0';
	if (v->file)
		name_of_file(v->file, buf, cap);
	else if (v->shm)
		snprintf(buf, cap, "/dev/zero (deleted)");
	else if (v->start < mm->brk && v->end > l->start_brk)
		snprintf(buf, cap, "[heap]");
	else if (v->start <= l->start_stack && v->end > l->start_stack)
		snprintf(buf, cap, "[stack]");
}

/* What is there is not known: the values are bounds, as in mm_stats(). */
static void put_smaps(struct text *o, const struct vma *v)
{
	unsigned long kib = vma_len(v) / 1024, rss, dirty;
	bool shared = v->flags & VMA_SHARED, write = v->prot & PROT_WRITE;

	rss = !v->prot || (v->flags & VMA_NORESERVE) ? 0 : kib;
	dirty = write && !shared ? rss : 0;
	put(o, "Size:           %8lu kB\nKernelPageSize: %8u kB\nMMUPageSize:    %8u kB\n", kib, 4,
	    4);
	put(o, "Rss:            %8lu kB\nPss:            %8lu kB\nPss_Dirty:      %8lu kB\n", rss,
	    rss, dirty);
	put(o, "Shared_Clean:   %8lu kB\nShared_Dirty:   %8u kB\n", shared ? rss : 0, 0);
	put(o, "Private_Clean:  %8lu kB\nPrivate_Dirty:  %8lu kB\n", shared ? 0 : rss - dirty,
	    dirty);
	put(o, "Referenced:     %8lu kB\nAnonymous:      %8lu kB\n", rss,
	    v->file || shared ? 0 : rss);
	put(o, "LazyFree:       %8u kB\nAnonHugePages:  %8u kB\nShmemPmdMapped: %8u kB\n", 0, 0, 0);
	put(o, "FilePmdMapped:  %8u kB\nShared_Hugetlb: %8u kB\nPrivate_Hugetlb: %7u kB\n", 0, 0,
	    0);
	put(o, "Swap:           %8u kB\nSwapPss:        %8u kB\n", 0, 0);
	put(o, "Locked:         %8lu kB\nTHPeligible:           0\n",
	    v->flags & VMA_LOCKED ? rss : 0);
	put(o, "VmFlags: %s%s%s%s%s%s%s%s%s\n", v->prot & PROT_READ ? "rd " : "",
	    write ? "wr " : "", v->prot & PROT_EXEC ? "ex " : "", shared ? "sh " : "", "mr mw me ",
	    v->flags & VMA_GROWSDOWN ? "gd " : "", v->flags & VMA_LOCKED ? "lo " : "",
	    v->flags & VMA_NORESERVE ? "nr " : "", v->flags & VMA_DONTFORK ? "dc " : "");
}

static void put_special(struct text *o, bool smaps, uaddr_t start, uaddr_t end, const char *perms,
                        const char *name)
{
	struct vma v = {
		.start = start, .end = end, .prot = PROT_READ | PROT_EXEC, .flags = VMA_NORESERVE
	};

	head(o, start, end, perms, 0, 0, 0, name);
	if (smaps)
		put_smaps(o, &v);
}

static void put_vma(struct text *o, const struct mm *mm, const struct vma *v, bool smaps)
{
	char name[PATH_MAX_LINUX + 32];
	uaddr_t vdso;
	uint64_t offset = v->file ? v->offset : 0;
	char perms[5] = {
		v->prot & PROT_READ ? 'r' : '-',
		v->prot & PROT_WRITE ? 'w' : '-',
		v->prot & PROT_EXEC ? 'x' : '-',
		v->flags & VMA_SHARED ? 's' : 'p',
		'\0',
	};

	if (v->flags & VMA_RESERVED) {
		vdso = kernel.plat->vdso ? kernel.plat->vdso(kernel.platform) : 0;
		if (vdso)
			put_special(o, smaps, vdso, vdso + VDSO_SIZE, "r-xp", "[vdso]");
		return;
	}
	name_of(mm, v, name, sizeof(name));
	head(o, v->start, v->end, perms, offset,
	     v->file && v->file->inode->sb ? v->file->inode->sb->dev : 0,
	     v->file ? v->file->inode->ino : 0, name);
	if (smaps)
		put_smaps(o, v);
}

size_t mm_maps_text(struct mm *mm, bool smaps, uint64_t *cursor, char *buf, size_t cap)
{
	struct text o = { .buf = buf, .cap = cap };
	struct vma *v = vma_find(&mm->vmas, *cursor);

	for (; v && o.cap - o.len >= MM_MAPS_LINE_MAX; v = vma_next(v)) {
		put_vma(&o, mm, v, smaps);
		*cursor = v->end;
	}
	if (v)
		return o.len;
	if (o.cap - o.len < MM_MAPS_LINE_MAX) {
		*cursor = GUEST_TASK_SIZE; /* only the last line is left */
		return o.len;
	}
	put_special(&o, smaps, VSYSCALL, VSYSCALL + PAGE_SIZE, "--xp", "[vsyscall]");
	*cursor = 0;
	return o.len;
}
