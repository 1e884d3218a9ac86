/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path walk and the dentry cache: the input is a list of calls on paths of a small alphabet, over a file system
 * that also changes behind our back. Afterwards every inode, dentry and file must be gone.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/kernel/kernel.h"
#include "sentry/syscalls/fs_dir.h"
#include "sentry/syscalls/fs_open.h"
#include "sentry/syscalls/fs_path.h"
#include "sentry/syscalls/fs_stat.h"
#include "sentry/vfs/vfs.h"
#include "tests/lib/fake_task.h"
#include "tests/lib/memfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define AT ((uint64_t)(int64_t)AT_FDCWD)

struct input {
	const uint8_t *p, *end;
};

static uint8_t next(struct input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static void next_path(struct input *in, char *path)
{
	static const char *const token[16] = {
		"a", "b", "c", "/a", "/b", "/", "../", ".", "..", "/a/",
		"long-name-that-is-not-kept-inline", "m", "m/", "/c/b", "//", "",
	};
	unsigned n = next(in) % 8;

	*path = '\0';
	while (n--)
		strcat(path, token[next(in) % 16]);
}

static void one_call(struct fake_task *ft, struct mem_super *fs, struct input *in)
{
	struct open_how how = { .flags = O_RDONLY };
	char p[512], q[512], buf[512];
	uint8_t op = next(in);

	next_path(in, p);
	switch (op % 16) {
	case 0:
		SYS(ft, sys_mkdir, P(p), 0755);
		break;
	case 1:
		SYS(ft, sys_open, P(p), O_CREAT | O_RDWR, 0644);
		break;
	case 2:
		next_path(in, q);
		SYS(ft, sys_symlink, P(q), P(p));
		break;
	case 3:
	case 4:
		next_path(in, q);
		SYS(ft, sys_renameat2, AT, P(p), AT, P(q), op / 16 % 3);
		break;
	case 5:
		SYS(ft, sys_unlink, P(p));
		break;
	case 6:
		SYS(ft, sys_rmdir, P(p));
		break;
	case 7:
		SYS(ft, sys_chdir, P(p));
		break;
	case 8:
		next_path(in, q);
		SYS(ft, sys_linkat, AT, P(p), AT, P(q), op & 16 ? AT_SYMLINK_FOLLOW : 0);
		break;
	case 9:
		how.resolve = op & 16 ? RESOLVE_BENEATH : RESOLVE_IN_ROOT;
		SYS(ft, sys_openat2, AT, P(p), P(&how), sizeof(how));
		break;
	case 10:
		memfs_host_remove(mem_i(fs->sb.root), p);
		break;
	case 11:
		dcache_shrink(op / 16);
		break;
	case 12:
		SYS(ft, sys_close, op / 16);
		break;
	case 13:
		SYS(ft, sys_open, P(p), O_TMPFILE | O_RDWR, 0600);
		break;
	case 14:
		dcache_invalidate(fs->sb.root, NULL, 0);
		break;
	default:
		SYS(ft, sys_readlink, P(p), P(buf), sizeof(buf));
		SYS(ft, sys_getcwd, P(buf), sizeof(buf));
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, data + size };
	struct mem_super *root, *sub;
	struct mount_ns *ns;
	struct fake_task ft;
	struct path p;

	if (size > 4096)
		return 0;
	BUG_ON(vfs_init());
	ns = kernel.mnt_ns;
	root = memfs_create(false);
	sub = memfs_create(true);
	BUG_ON(mount_add(ns, &root->sb, NULL, NULL, 0, "root"));
	fake_task_init(&ft, 0);
	ft.tg.rlim[7].cur = 32;
	BUG_ON(SYS(&ft, sys_mkdir, P("/m"), 0755));
	BUG_ON(path_walk(&ft.t, AT_FDCWD, "/m", 0, &p));
	BUG_ON(mount_add(ns, &sub->sb, p.mnt, p.dentry, 0, "sub"));
	path_put(&p);
	while (in.p < in.end)
		one_call(&ft, root, &in);
	fake_task_fini(&ft);
	BUG_ON(mount_remove(ns, list_last_entry(&ns->mounts, struct mount, node)));
	mount_put(ns->root);
	super_put(&root->sb);
	super_put(&sub->sb);
	dcache_shrink(0);
	BUG_ON(kernel.counters.dentries || kernel.counters.inodes || kernel.counters.files);
	free(ns);
	return 0;
}
