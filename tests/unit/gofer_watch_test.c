/* SPDX-License-Identifier: Apache-2.0 */
/* What the gofer's handler tells of changes that others make, and of its own none. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/host/hostio.h"
#include "base/wire/wire.h"
#include "gofer/gofer.h"
#include "gofer/reopen.h"
#include "gofer/watch.h"
#include "tests/lib/tap.h"
#include "tests/lib/tree.h"

#define OP(x)     SBX__GOFER__REQUEST__OP_##x
#define NAME      SBX__GOFER__CHANGE_KIND__CHANGE_NAME
#define ATTR      SBX__GOFER__CHANGE_KIND__CHANGE_ATTR
#define ROOT      1u
#define RO_ROOT   2u
#define MANY      300 /* more changes than a reply can tell */
#define SETATTR_M 1u

static char top[] = "/tmp/sbx-gofer-watch-XXXXXX";
static struct gofer *g;
static Sbx__Gofer__Reply *rep;

static const char *at(const char *rel)
{
	return tree_at(top, rel);
}

static void put(const char *rel, const char *text)
{
	tree_put(at(rel), text, O_APPEND);
}

/* The error of the reply, which is in rep; -1: the connection would have ended. */
static int call(Sbx__Gofer__Request *q)
{
	static uint8_t in[WIRE_MSG_MAX], out[WIRE_MSG_MAX];
	bool close_fd = false;
	int fd;
	ssize_t n;

	if (rep)
		sbx__gofer__reply__free_unpacked(rep, NULL);
	rep = NULL;
	n = gofer_handle(g, in, sbx__gofer__request__pack(q, in), out, &fd, &close_fd);
	if (n < 0)
		return -1;
	if (close_fd)
		close(fd);
	rep = sbx__gofer__reply__unpack(NULL, (size_t)n, out);
	return rep ? (int)rep->error : -1;
}

/* Walks to @name below @fid; @new_fid may be 0. */
static int walk(uint32_t fid, const char *name, uint32_t new_fid)
{
	Sbx__Gofer__Request q = SBX__GOFER__REQUEST__INIT;
	Sbx__Gofer__Walk w = SBX__GOFER__WALK__INIT;
	char *names[1] = { (char *)(uintptr_t)name };

	q.walk = &w;
	w.fid = fid;
	w.names = names;
	w.new_fids = &new_fid;
	w.n_names = w.n_new_fids = 1;
	w.watch = true;
	return call(&q);
}

static int list(uint32_t fid)
{
	Sbx__Gofer__Request q = SBX__GOFER__REQUEST__INIT;
	Sbx__Gofer__ReadDir d = SBX__GOFER__READ_DIR__INIT;

	q.op_case = OP(READDIR);
	q.readdir = &d;
	d.fid = fid;
	d.with_attr = d.watch = true;
	return call(&q);
}

static bool waiting(void)
{
	return host_poll_now(watch_poll_fd(g->watches), POLLIN) & POLLIN;
}

/* Asks for changes: their number, -1: they were lost. */
static int sync_changes(void)
{
	Sbx__Gofer__Request q = SBX__GOFER__REQUEST__INIT;

	q.sync = true;
	if (call(&q))
		return -2;
	return rep->lost ? -1 : (int)rep->n_changes;
}

/* What the last reply tells of @name; 0: nothing. */
static uint32_t told(const char *name)
{
	for (size_t i = 0; rep && i < rep->n_changes; i++) {
		if (!strcmp(rep->changes[i]->name, name))
			return rep->changes[i]->what;
	}
	return 0;
}

static int make(int op, uint32_t dir, const char *name, uint32_t new_fid)
{
	Sbx__Gofer__Request q = SBX__GOFER__REQUEST__INIT;
	Sbx__Gofer__Create c = SBX__GOFER__CREATE__INIT;
	Sbx__Gofer__Mkdir m = SBX__GOFER__MKDIR__INIT;
	Sbx__Gofer__Symlink s = SBX__GOFER__SYMLINK__INIT;
	Sbx__Gofer__Unlink u = SBX__GOFER__UNLINK__INIT;

	c.name = m.name = s.name = u.name = (char *)(uintptr_t)name;
	c.fid = m.fid = s.fid = u.fid = dir;
	c.new_fid = m.new_fid = s.new_fid = new_fid;
	c.mode = m.mode = 0755;
	s.target = (char *)(uintptr_t)"x";
	q.op_case = (Sbx__Gofer__Request__OpCase)op;
	if (op == OP(CREATE))
		q.create = &c;
	else if (op == OP(MKDIR))
		q.mkdir = &m;
	else if (op == OP(SYMLINK))
		q.symlink = &s;
	else
		q.unlink = &u;
	return call(&q);
}

static int rename_to(const char *name, const char *new_name, uint32_t flags)
{
	Sbx__Gofer__Request q = SBX__GOFER__REQUEST__INIT;
	Sbx__Gofer__Rename r = SBX__GOFER__RENAME__INIT;

	q.op_case = OP(RENAME);
	q.rename = &r;
	r.fid = r.new_dir_fid = ROOT;
	r.name = (char *)(uintptr_t)name;
	r.new_name = (char *)(uintptr_t)new_name;
	r.flags = flags;
	return call(&q);
}

/* Several at once, in front of nothing. */
static int before(const uint32_t *fids, size_t n)
{
	Sbx__Gofer__Request q = SBX__GOFER__REQUEST__INIT;
	Sbx__Gofer__SetAttr s[GOFER_BEFORE_MAX + 1], *ptrs[GOFER_BEFORE_MAX + 1];

	for (size_t i = 0; i < n; i++) {
		sbx__gofer__set_attr__init(&s[i]);
		s[i].fid = fids[i];
		s[i].valid = SETATTR_M;
		s[i].mode = 0640;
		ptrs[i] = &s[i];
	}
	q.before = ptrs;
	q.n_before = n;
	return call(&q);
}

static void clunk(uint32_t fid)
{
	Sbx__Gofer__Request q = SBX__GOFER__REQUEST__INIT;

	q.clunk = &fid;
	q.n_clunk = 1;
	if (call(&q))
		tap_ok(false, "clunk");
}

static void start(void)
{
	Sbx__Control__GoferConfig cfg = SBX__CONTROL__GOFER_CONFIG__INIT;
	Sbx__Control__Grant rw = SBX__CONTROL__GRANT__INIT, ro = SBX__CONTROL__GRANT__INIT, *grants[] = { &rw, &ro };
	Sbx__Gofer__Request q = SBX__GOFER__REQUEST__INIT;
	Sbx__Gofer__Hello h = SBX__GOFER__HELLO__INIT;
	Sbx__Gofer__Attach a = SBX__GOFER__ATTACH__INIT;
	char *hide[] = { strdup(at("rw/hidden")), strdup(at("rw/kids/*")), strdup(at("rw/id")) };
	struct sbx_err err;

	rw.id = 1;
	ro.id = 2;
	rw.path = strdup(at("rw"));
	ro.path = strdup(at("ro"));
	rw.mode = SBX__CONTROL__GRANT_MODE__GRANT_RW;
	ro.mode = SBX__CONTROL__GRANT_MODE__GRANT_RO;
	cfg.grants = grants;
	cfg.n_grants = 2;
	cfg.hide = hide;
	cfg.n_hide = ARRAY_SIZE(hide);
	tap_eq(gofer_server_create(64, &g), 0, "create");
	tap_eq(gofer_configure(g, &cfg, false, &err), 0, "configure");
	g->watches = watch_create();
	tap_ok(g->watches != NULL, "watches can be had");
	q.op_case = OP(HELLO);
	q.hello = &h;
	h.version = SBX__GOFER__VERSION__VERSION_CURRENT;
	tap_eq(call(&q), 0, "hello");
	q.op_case = OP(ATTACH);
	q.attach = &a;
	a.grant = 1;
	a.new_fid = ROOT;
	tap_eq(call(&q), 0, "attach");
	a.grant = 2;
	a.new_fid = RO_ROOT;
	tap_eq(call(&q), 0, "attach");
	free(rw.path);
	free(ro.path);
	for (size_t i = 0; i < ARRAY_SIZE(hide); i++)
		free(hide[i]);
}

static void test_others(void)
{
	uint32_t id;

	tap_eq(walk(ROOT, "f", 10), 0, "walk");
	tap_ok(rep->n_watches == 1 && rep->watches[0], "its directory is watched");
	id = rep->watches[0];
	tap_eq(walk(ROOT, "nothing", 0), ENOENT, "a missing name");
	tap_ok(rep->n_watches == 1 && rep->watches[0] == id, "is told with the watch as well");
	tap_ok(!waiting(), "nothing has happened");
	put("rw/new", "");
	tap_ok(waiting(), "it has");
	tap_eq(sync_changes(), 1, "a new file");
	tap_ok(told("new") & NAME && rep->changes[0]->watch == id, "by its name");
	tap_ok(!waiting() && sync_changes() == 0, "once");
	put("rw/f", "more");
	tap_eq(sync_changes(), 1, "a write");
	tap_ok(told("f") == ATTR && rep->changes[0]->attr && rep->changes[0]->attr->size == 5, "with the new size");
	chmod(at("rw/f"), 0600);
	tap_ok(sync_changes() == 1 && told("f") == ATTR && (rep->changes[0]->attr->mode & 0777) == 0600, "a chmod");
	rename(at("rw/new"), at("rw/newer"));
	tap_ok(sync_changes() == 2 && told("new") == NAME && told("newer") == NAME, "a rename");
	unlink(at("rw/newer"));
	tap_ok(sync_changes() == 1 && told("newer") == NAME, "an unlink");
	chmod(at("rw"), 0750);
	tap_ok(sync_changes() == 1 && rep->changes[0]->what == ATTR && !*rep->changes[0]->name, "the directory itself");
	put("rw/d/x", "");
	tap_eq(sync_changes(), 0, "a directory that nobody looked into");
	tap_eq(list(RO_ROOT), 0, "list another grant");
	tap_ok(rep->n_watches == 1 && rep->watches[0] && rep->watches[0] != id, "it is watched");
	put("ro/x", "");
	tap_ok(sync_changes() == 1 && told("x") & NAME, "and tells");
}

/* The gofer's own changes; with one by somebody else in between, that one is told. */
static void test_own(void)
{
	uint32_t fids[GOFER_BEFORE_MAX + 1] = { 10, RO_ROOT, 999 };

	tap_eq(make(OP(CREATE), ROOT, "own", 11), 0, "create");
	tap_eq(rep->n_changes, 0, "is not told");
	tap_eq(make(OP(MKDIR), ROOT, "owndir", 12), 0, "mkdir");
	tap_eq(make(OP(SYMLINK), ROOT, "ownlink", 13), 0, "symlink");
	tap_eq(rename_to("own", "own2", 0), 0, "rename");
	tap_eq(rename_to("own2", "ownlink", RENAME_EXCHANGE), 0, "exchange");
	tap_eq(before(fids, 3), 0, "attributes in front");
	tap_ok(rep->n_done == 3 && !rep->done[0]->error && rep->done[0]->attr->mode == (S_IFREG | 0640), "are set");
	tap_ok(rep->done[1]->error == EROFS && rep->done[2]->error == EBADF, "or say why not");
	tap_eq(make(OP(UNLINK), ROOT, "own2", 0), 0, "unlink");
	tap_eq(make(OP(CREATE), ROOT, "f", 14), EEXIST, "a create that fails");
	tap_eq(sync_changes(), 0, "of all that nothing is told");
	put("rw/other", "");
	tap_eq(make(OP(CREATE), ROOT, "own3", 15), 0, "create");
	tap_ok(rep->n_changes == 1 && told("other") & NAME, "tells of another file");
	tap_eq(make(OP(CREATE), ROOT, "own4", 16), 0, "create");
	unlink(at("rw/own4"));
	tap_ok(sync_changes() == 1 && told("own4") & NAME, "and that somebody removed its file");
	tap_eq(before(fids, GOFER_BEFORE_MAX + 1), -1, "too many in front end the connection");
}

static void test_hidden(void)
{
	static const struct hash_key no_key;
	uint32_t want = (uint32_t)hash_bytes(&no_key, "hidden", 6);
	bool found = false;

	put("rw/hidden", "x");
	chmod(at("rw/id"), 0600);
	chmod(at("rw/id2"), 0640);
	tap_eq(sync_changes(), 0, "hidden files change in silence, by any name");
	tap_eq(list(ROOT), 0, "list");
	for (size_t i = 0; i < rep->n_hidden; i++)
		found |= rep->hidden[i] == want;
	tap_ok(found && !rep->hides_all, "tells what to ask for");
	tap_eq(walk(ROOT, "hidden", 0), ENOENT, "look it up");
	tap_ok(rep->hidden_name, "is to be asked for each time");
	tap_eq(walk(ROOT, "nothing", 0), ENOENT, "an ordinary name");
	tap_ok(!rep->hidden_name, "is not");
	tap_eq(walk(ROOT, "kids", 20), 0, "a directory with hidden contents");
	tap_eq(list(20), 0, "list it");
	tap_ok(rep->hides_all, "all names are to be asked for");
	put("rw/kids/k", "");
	tap_eq(sync_changes(), 0, "what happens there is not told");
}

static void test_ends(void)
{
	char name[32];
	uint32_t id;

	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "rw/many%d", i);
		put(name, "");
	}
	tap_eq(sync_changes(), -1, "too many changes are told as lost");
	tap_eq(sync_changes(), 0, "once");
	tap_eq(walk(ROOT, "d", 30), 0, "a directory");
	tap_eq(walk(30, "x", 0), 0, "look into it");
	id = rep->watches[0];
	rename(at("rw/d"), at("rw/moved"));
	put("rw/moved/y", "");
	tap_ok(sync_changes() == 3 && told("d") && told("moved") && told("y"), "a watch goes with its directory");
	clunk(30);
	put("rw/moved/z", "");
	tap_eq(sync_changes(), 0, "it ends with the last id");
	tap_eq(walk(ROOT, "moved", 30), 0, "again");
	tap_eq(walk(30, "z", 0), 0, "look into it");
	tap_eq(rep->watches[0], id, "its number is used again");
}

int main(void)
{
	char cmd[256];
	int cwd = open(".", O_PATH | O_CLOEXEC);

	umask(0);
	if (!mkdtemp(top) || mkdir(at("rw"), 0755) < 0 || mkdir(at("ro"), 0755) < 0 || mkdir(at("rw/d"), 0755) < 0 ||
	    mkdir(at("rw/kids"), 0755) < 0)
		return 1;
	put("rw/f", "1");
	put("rw/hidden", "secret");
	put("rw/id", "secret");
	if (link(at("rw/id"), at("rw/id2")) < 0 || reopen_init() < 0)
		return 1;
	start();
	test_others();
	test_own();
	test_hidden();
	test_ends();
	if (rep)
		sbx__gofer__reply__free_unpacked(rep, NULL);
	gofer_server_destroy(g);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", top);
	if (fchdir(cwd) < 0 || system(cmd))
		return 1;
	return tap_done();
}
