/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a hostile sentry, on a grant in a temporary directory. The input is a series of requests, each with its
 * length (two bytes, little endian) in front. */
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/wire/wire.h"
#include "gofer/gofer.h"
#include "gofer/reopen.h"
#include "gofer/watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char top[] = "/tmp/sbx-fuzz-gofer-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	if (ftw->level)
		remove(path); /* what cannot go stays for the next input: no harm */
	return 0;
}

/* What is below the grant goes, so that each input starts alike. */
static void clean(void)
{
	nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void clean_up(void)
{
	clean();
	rmdir(top);
}

static void make_tree(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/d", top);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/f", top);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	snprintf(path, sizeof(path), "%s/l", top);
	if (symlink("/etc", path) < 0)
		return;
}

static struct gofer *make_gofer(void)
{
	Sbx__Control__GoferConfig cfg = SBX__CONTROL__GOFER_CONFIG__INIT;
	Sbx__Control__Grant grant = SBX__CONTROL__GRANT__INIT, *grants[] = { &grant };
	char *protect[] = { (char *)(uintptr_t)"**/.git/**" };
	struct sbx_err err;
	struct gofer *g;

	grant.id = 1;
	grant.path = top;
	grant.mode = SBX__CONTROL__GRANT_MODE__GRANT_RW;
	cfg.grants = grants;
	cfg.n_grants = 1;
	cfg.protect = protect;
	cfg.n_protect = 1;
	if (gofer_server_create(16, &g) < 0 || gofer_configure(g, &cfg, false, &err) < 0)
		abort();
	g->watches = watch_create(); /* the host may have none to give: then without */
	return g;
}

static void feed(struct gofer *g, const uint8_t *data, size_t size)
{
	static uint8_t out[WIRE_MSG_MAX];

	while (size >= 2) {
		size_t n = MIN((size_t)data[0] | (size_t)data[1] << 8, size - 2);
		bool close_fd = false;
		int fd;

		if (gofer_handle(g, data + 2, n, out, &fd, &close_fd) < 0)
			return;
		if (fd >= 0 && close_fd)
			close(fd);
		data += 2 + n;
		size -= 2 + n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int cwd = -1; /* the fuzzing library's own paths are relative to it */
	static uint8_t hello[] = { 4, 0, 0x22, 2, 8, SBX__GOFER__VERSION__VERSION_CURRENT };
	static uint8_t attach[] = { 6, 0, 0x2a, 4, 8, 1, 16, 1 };
	struct gofer *g;

	if (cwd < 0) {
		cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (cwd < 0 || !mkdtemp(top) || reopen_init() < 0)
			abort();
		atexit(clean_up);
	}
	if (reopen_enter() < 0)
		abort();
	make_tree();
	g = make_gofer();
	feed(g, hello, sizeof(hello));
	feed(g, attach, sizeof(attach));
	feed(g, data, size);
	gofer_server_destroy(g);
	clean();
	return fchdir(cwd);
}
