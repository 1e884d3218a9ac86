/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the top down, as Linux lays it out: eight zero bytes, the program's name, the environment
 * strings, the argument strings, the platform's name, 16 random bytes, a random gap, then upwards
 * from the stack pointer: argc, argv[], NULL, envp[], NULL, the auxiliary vector. It is built here
 * in one buffer and written to the guest in one piece.
 */
#include "sentry/loader/stack.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/bug.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/loader/exec.h"
#include "sentry/loader/image.h"
#include "sentry/mm/mm.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#define STACK_JITTER 8192u /* arch_align_stack() */
#define USER_HZ 100

static const char platform_name[] = "x86_64";

/* Guest addresses of what the auxiliary vector points to. */
struct places {
	uaddr_t execfn, strings, platform, random;
};

static void aux(struct mm_layout *l, uint64_t type, uint64_t value)
{
	BUG_ON(l->n_auxv + 2 > ARRAY_SIZE(l->auxv));
	l->auxv[l->n_auxv++] = type;
	l->auxv[l->n_auxv++] = value;
}

/* The processor's own facts come from the host: the guest runs on it unmodified. */
static void fill_auxv(struct mm_layout *l, const struct stack_args *a, const struct places *at)
{
	const struct elf_image *elf = &a->program->elf;
	const struct cred *c = a->cred;
	uaddr_t vdso = kernel.plat->vdso ? kernel.plat->vdso(kernel.platform) : 0;

	l->n_auxv = 0;
	if (vdso)
		aux(l, AT_SYSINFO_EHDR, vdso);
	aux(l, AT_MINSIGSTKSZ, MAX(getauxval(AT_MINSIGSTKSZ), 2048ul));
	aux(l, AT_HWCAP, getauxval(AT_HWCAP));
	aux(l, AT_PAGESZ, PAGE_SIZE);
	aux(l, AT_CLKTCK, USER_HZ);
	aux(l, AT_PHDR, elf->phdr_vaddr ? elf->phdr_vaddr + a->program->bias : 0);
	aux(l, AT_PHENT, ELF_PHDR_SIZE);
	aux(l, AT_PHNUM, elf->phnum);
	aux(l, AT_BASE, a->interp_base);
	aux(l, AT_FLAGS, 0);
	aux(l, AT_ENTRY, elf->entry + a->program->bias);
	aux(l, AT_UID, c->uid);
	aux(l, AT_EUID, c->euid);
	aux(l, AT_GID, c->gid);
	aux(l, AT_EGID, c->egid);
	aux(l, AT_SECURE, a->secure);
	aux(l, AT_RANDOM, at->random);
	aux(l, AT_HWCAP2, getauxval(AT_HWCAP2));
	aux(l, AT_EXECFN, at->execfn);
	aux(l, AT_PLATFORM, at->platform);
	aux(l, AT_NULL, 0);
}

/* Writes the addresses of @n strings that begin at @block (guest address @at): the offset behind
 * the last one. */
static size_t put_pointers(uint64_t *v, const struct exec_strings *s, size_t off, unsigned n,
                           uaddr_t at)
{
	for (unsigned i = 0; i < n; i++) {
		v[i] = at + off;
		off += strlen(s->block + off) + 1;
	}
	v[n] = 0;
	return off;
}

static void fill_vectors(uint64_t *v, const struct exec_strings *s, const struct places *at,
                         struct mm_layout *l)
{
	size_t env;

	*v++ = s->argc;
	env = put_pointers(v, s, 0, s->argc, at->strings);
	v += s->argc + 1;
	(void)put_pointers(v, s, env, s->envc, at->strings); /* the end is that of the block */
	v += s->envc + 1;
	memcpy(v, l->auxv, l->n_auxv * sizeof(uint64_t));
	l->arg_start = at->strings;
	l->arg_end = l->env_start = at->strings + env;
	l->env_end = at->strings + s->len;
}

/* Where the guest address @a lies in the buffer. */
static uint8_t *host_of(const struct stack_image *st, uaddr_t a)
{
	return st->buf + (a - st->sp);
}

int stack_build(struct stack_image *st, const struct stack_args *a, struct mm_layout *l)
{
	const struct exec_strings *s = a->strings;
	size_t n_fn = strlen(a->execfn) + 1;
	uint32_t jitter;
	struct places at;
	uaddr_t p;

	kernel_random(&jitter, sizeof(jitter));
	at.execfn = a->top - 8 - n_fn;
	at.strings = at.execfn - s->len;
	at.platform = at.strings - sizeof(platform_name);
	at.random = (at.platform - 16) & ~15ull;
	p = at.random - jitter % STACK_JITTER;
	fill_auxv(l, a, &at);
	p -= (3 + (size_t)s->argc + s->envc + l->n_auxv) * sizeof(uint64_t);
	st->sp = p & ~15ull;
	st->len = a->top - st->sp;
	st->buf = calloc(1, st->len);
	if (!st->buf)
		return -ENOMEM;
	memcpy(host_of(st, at.execfn), a->execfn, n_fn);
	if (s->len)
		memcpy(host_of(st, at.strings), s->block, s->len);
	memcpy(host_of(st, at.platform), platform_name, sizeof(platform_name));
	kernel_random(host_of(st, at.random), 16);
	fill_vectors((uint64_t *)st->buf, s, &at, l);
	l->start_stack = st->sp;
	return 0;
}

void stack_image_fini(struct stack_image *st)
{
	free(st->buf);
	st->buf = NULL;
}
