/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF and script parsers: a table of hostile headers, each one change of a good program. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "platform/platform.h"
#include "sentry/loader/elf.h"
#include "sentry/loader/script.h"
#include "tests/lib/tap.h"

#define N_PH 4

struct prog {
	Elf64_Ehdr e;
	Elf64_Phdr ph[N_PH];
};

static struct prog good(void)
{
	struct prog p = {
		.e = {
			.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
			.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = 1, .e_entry = 0x1040,
			.e_phoff = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = N_PH,
			.e_ehsize = sizeof(Elf64_Ehdr),
		},
		.ph = {
			{ .p_type = PT_INTERP, .p_offset = 0x300, .p_filesz = 28, .p_memsz = 28 },
			{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 0x1800, .p_memsz = 0x1800,
			  .p_align = 0x1000 },
			{ .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_offset = 0x1e00, .p_vaddr = 0x3e00,
			  .p_filesz = 0x300, .p_memsz = 0x1300, .p_align = 0x4000 },
			{ .p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W },
		},
	};

	return p;
}

static int parse(const struct prog *p, size_t n, struct elf_image *img)
{
	struct elf_header h;
	int rc = elf_parse_header((const uint8_t *)p, n, &h);

	if (rc < 0)
		return rc;
	if (h.phoff != sizeof(Elf64_Ehdr))
		return h.phoff > n ? -ENOEXEC : 1;
	return elf_parse_phdrs(&h, (const uint8_t *)p->ph, n - sizeof(Elf64_Ehdr), img);
}

static void bad_magic(struct prog *p) { p->e.e_ident[0] = 0; }
static void bad_class(struct prog *p) { p->e.e_ident[EI_CLASS] = ELFCLASS32; }
static void bad_order(struct prog *p) { p->e.e_ident[EI_DATA] = ELFDATA2MSB; }
static void bad_type(struct prog *p) { p->e.e_type = ET_REL; }
static void bad_machine(struct prog *p) { p->e.e_machine = EM_386; }
static void bad_phentsize(struct prog *p) { p->e.e_phentsize = 32; }
static void no_phdrs(struct prog *p) { p->e.e_phnum = 0; }
static void many_phdrs(struct prog *p) { p->e.e_phnum = 0xffff; }
static void far_phdrs(struct prog *p) { p->e.e_phoff = UINT64_MAX; }
static void cut_phdrs(struct prog *p) { p->e.e_phnum = N_PH + 1; }
static void file_more_than_mem(struct prog *p) { p->ph[2].p_filesz = 0x1400; }
static void mem_wraps(struct prog *p) { p->ph[2].p_memsz = UINT64_MAX; }
static void mem_too_high(struct prog *p) { p->ph[2].p_memsz = GUEST_TASK_SIZE; }
static void vaddr_too_high(struct prog *p) { p->ph[2].p_vaddr = 0xffffffff80000e00; }
static void misaligned(struct prog *p) { p->ph[2].p_offset++; }
static void offset_wraps(struct prog *p) { p->ph[2].p_offset = 0xfffffffffffffe00; }
static void no_loads(struct prog *p) { p->ph[1].p_type = p->ph[2].p_type = PT_NOTE; }
static void empty_loads(struct prog *p)
{
	p->ph[1].p_filesz = p->ph[1].p_memsz = p->ph[2].p_filesz = p->ph[2].p_memsz = 0;
}
static void short_interp(struct prog *p) { p->ph[0].p_filesz = 1; }
static void long_interp(struct prog *p) { p->ph[0].p_filesz = ELF_INTERP_MAX + 1; }
static void far_interp(struct prog *p) { p->ph[0].p_offset = UINT64_MAX - 4; }
static void entry_in_kernel(struct prog *p) { p->e.e_entry = 0xffffffff81000000; }
static void on_reserved(struct prog *p)
{
	p->e.e_type = ET_EXEC;
	p->ph[2].p_vaddr = PLATFORM_RESERVED_END - 0x200;
}
static void nothing(struct prog *p) { }
static void odd_align(struct prog *p) { p->ph[2].p_align = 12345; }
static void huge_align(struct prog *p) { p->ph[2].p_align = 1ull << 63; }
static void overlapping(struct prog *p) { p->ph[2].p_vaddr = 0xe00; }
static void bss_only(struct prog *p) { p->ph[2].p_filesz = 0; p->ph[2].p_offset = 77; }

static const struct {
	const char *name;
	void (*change)(struct prog *p);
	int want;
} table[] = {
	{ "a good program", nothing, 0 },
	{ "an alignment that is no power of two", odd_align, 0 },
	{ "an alignment beyond all bounds", huge_align, 0 },
	{ "overlapping loads", overlapping, 0 },
	{ "a load without file bytes", bss_only, 0 },
	{ "bad magic", bad_magic, -ENOEXEC },
	{ "32 bit", bad_class, -ENOEXEC },
	{ "big endian", bad_order, -ENOEXEC },
	{ "an object file", bad_type, -ENOEXEC },
	{ "another machine", bad_machine, -ENOEXEC },
	{ "program headers of another size", bad_phentsize, -ENOEXEC },
	{ "no program headers", no_phdrs, -ENOEXEC },
	{ "too many program headers", many_phdrs, -ENOEXEC },
	{ "program headers at the end of all", far_phdrs, -ENOEXEC },
	{ "program headers cut off", cut_phdrs, -ENOEXEC },
	{ "more in the file than in memory", file_more_than_mem, -EINVAL },
	{ "a memory size that wraps", mem_wraps, -ENOMEM },
	{ "a memory size that is too large", mem_too_high, -ENOMEM },
	{ "a kernel address", vaddr_too_high, -ENOMEM },
	{ "address and offset that do not fit", misaligned, -EINVAL },
	{ "an offset that wraps", offset_wraps, -EINVAL },
	{ "nothing to load", no_loads, -ENOEXEC },
	{ "only empty loads", empty_loads, -ENOEXEC },
	{ "an interpreter name of one byte", short_interp, -ENOEXEC },
	{ "an interpreter name that is too long", long_interp, -ENOEXEC },
	{ "an interpreter name behind the end", far_interp, -ENOEXEC },
	{ "an entry in the kernel", entry_in_kernel, -EINVAL },
	{ "a fixed image on the platform's range", on_reserved, -ENOMEM },
};

static void test_scripts(void)
{
	static const struct {
		const char *text, *interp, *arg; /* interp NULL: -ENOEXEC; arg NULL: none */
	} scripts[] = {
		{ "#!/bin/sh\n", "/bin/sh", NULL },
		{ "#!/bin/sh", "/bin/sh", NULL },
		{ "#! \t/bin/sh  -e\t\nx", "/bin/sh", "-e" },
		{ "#!/usr/bin/env python3 -u \n", "/usr/bin/env", "python3 -u" },
		{ "#!\n/bin/sh", NULL, NULL },
		{ "#!   ", NULL, NULL },
		{ "#!", NULL, NULL },
		{ "#", NULL, NULL },
		{ "", NULL, NULL },
		{ "echo", NULL, NULL },
	};
	struct script_line l;
	char buf[600];

	for (unsigned i = 0; i < ARRAY_SIZE(scripts); i++) {
		int rc = script_parse((const uint8_t *)scripts[i].text, strlen(scripts[i].text), &l);
		bool ok = scripts[i].interp ? rc == 0 && !strcmp(l.interp, scripts[i].interp) &&
						      l.has_arg == !!scripts[i].arg &&
						      (!l.has_arg || !strcmp(l.arg, scripts[i].arg)) :
					      rc == -ENOEXEC;

		tap_ok(ok, "script %u", i);
	}
	memset(buf, 'a', sizeof(buf));
	memcpy(buf, "#!/", 3);
	tap_eq(script_parse((const uint8_t *)buf, sizeof(buf), &l), -ENOEXEC, "an interpreter's name that is cut off");
	buf[250] = ' ';
	tap_ok(script_parse((const uint8_t *)buf, sizeof(buf), &l) == 0 && strlen(l.interp) == 248 &&
	               strlen(l.arg) == 4,
	       "an argument is cut off behind 255 bytes");
}

int main(void)
{
	struct elf_image img;
	struct prog p = good();

	for (unsigned i = 0; i < ARRAY_SIZE(table); i++) {
		p = good();
		table[i].change(&p);
		tap_eq(parse(&p, sizeof(p), &img), table[i].want, "%s", table[i].name);
	}
	p = good();
	for (size_t n = 0; n < sizeof(p); n += 7) {
		if (parse(&p, n, &img) != -ENOEXEC)
			tap_ok(false, "cut to %zu bytes", n);
	}
	tap_ok(parse(&p, sizeof(p), &img) == 0 && img.n_loads == 2 && img.low == 0 && img.high == 0x6000 &&
	       img.align == 0x4000 && img.phdr_vaddr == sizeof(Elf64_Ehdr) && !img.exec_stack && img.interp_len == 28,
	       "what is said of the good program");
	p.ph[3].p_flags |= PF_X;
	tap_ok(parse(&p, sizeof(p), &img) == 0 && img.exec_stack, "an executable stack");
	tap_eq(elf_check_interp((const uint8_t *)"/lib/ld", 8), 0, "an interpreter's name");
	tap_eq(elf_check_interp((const uint8_t *)"/lib/ld", 7), -ENOEXEC, "without its end");
	tap_eq(elf_check_interp((const uint8_t *)"/l\0b/ld", 8), -ENOEXEC, "two of them");
	tap_eq(elf_check_interp((const uint8_t *)"\0", 2), -ENOEXEC, "an empty one");
	test_scripts();
	return tap_done();
}
