/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/abi/stat.h"
#include "sentry/kernel/kernel.h"
#include "sentry/syscalls/fs_attr.h"
#include "sentry/syscalls/fs_dir.h"
#include "sentry/syscalls/fs_open.h"
#include "sentry/syscalls/fs_path.h"
#include "sentry/syscalls/fs_rw.h"
#include "sentry/syscalls/fs_stat.h"
#include "sentry/vfs/vfs.h"
#include "tests/lib/fake_task.h"
#include "tests/lib/memfs.h"
#include "tests/lib/tap.h"

static struct mem_super *root_fs, *sub_fs;
static struct fake_task root, user;

#define AT ((uint64_t)(int64_t)AT_FDCWD)

static int64_t mkdir_(struct fake_task *ft, const char *p, uint32_t mode)
{
	return SYS(ft, sys_mkdir, P(p), mode);
}

static int64_t open_(struct fake_task *ft, const char *p, uint32_t flags, uint32_t mode)
{
	return SYS(ft, sys_open, P(p), flags, mode);
}

/* Opens and closes again. */
static int64_t touch_(struct fake_task *ft, const char *p, uint32_t flags, uint32_t mode)
{
	int64_t fd = open_(ft, p, flags, mode);

	return fd < 0 ? fd : SYS(ft, sys_close, (uint64_t)fd);
}

static int64_t stat_ino(struct fake_task *ft, const char *p)
{
	struct linux_stat st;
	int64_t r = SYS(ft, sys_stat, P(p), P(&st));

	return r < 0 ? r : (int64_t)st.st_ino;
}

static uint32_t stat_mode(struct fake_task *ft, const char *p)
{
	struct linux_stat st;

	return SYS(ft, sys_lstat, P(p), P(&st)) < 0 ? 0 : st.st_mode;
}

static int64_t symlink_(struct fake_task *ft, const char *to, const char *p)
{
	return SYS(ft, sys_symlink, P(to), P(p));
}

static int64_t rename_(struct fake_task *ft, const char *o, const char *n, uint32_t flags)
{
	return SYS(ft, sys_renameat2, AT, P(o), AT, P(n), flags);
}

static const char *cwd_of(struct fake_task *ft)
{
	static char buf[4096];

	return SYS(ft, sys_getcwd, P(buf), sizeof(buf)) < 0 ? "?" : buf;
}

static void set_up(void)
{
	struct path p;

	BUG_ON(vfs_init());
	root_fs = memfs_create(false);
	BUG_ON(mount_add(kernel.mnt_ns, &root_fs->sb, NULL, NULL, 0, "root"));
	super_put(&root_fs->sb);
	fake_task_init(&root, 0);
	fake_task_init(&user, 1000);
	BUG_ON(mkdir_(&root, "/mnt", 0755));
	BUG_ON(path_walk(&root.t, AT_FDCWD, "/mnt", 0, &p));
	sub_fs = memfs_create(true);
	BUG_ON(mount_add(kernel.mnt_ns, &sub_fs->sb, p.mnt, p.dentry, 0, "sub"));
	super_put(&sub_fs->sb);
	path_put(&p);
	BUG_ON(mkdir_(&root, "/tmp", 0777) || SYS(&root, sys_chmod, P("/tmp"), 01777));
}

static void test_walk(void)
{
	char longname[300], longpath[5000];

	tap_eq(mkdir_(&root, "/a", 0755), 0, "mkdir");
	tap_eq(mkdir_(&root, "/a/b/", 0755), 0, "mkdir with a trailing slash");
	tap_eq(mkdir_(&root, "/a", 0755), -EEXIST, "mkdir again");
	tap_eq(mkdir_(&root, "/", 0755), -EEXIST, "mkdir of the root");
	tap_eq(mkdir_(&root, "/a/.", 0755), -EEXIST, "mkdir of .");
	tap_eq(mkdir_(&root, "/x/y", 0755), -ENOENT, "mkdir below nothing");
	tap_eq(touch_(&root, "/a/f", O_CREAT | O_WRONLY, 0644), 0, "create");
	tap_eq(touch_(&root, "/a/f/", O_RDONLY, 0), -ENOTDIR, "a file with a trailing slash");
	tap_eq(touch_(&root, "/a/g/", O_CREAT | O_WRONLY, 0644), -EISDIR, "creation with a trailing slash");
	tap_eq(stat_ino(&root, "/a/f/x"), -ENOTDIR, "below a file");
	tap_eq(stat_ino(&root, "/a/f/."), -ENOTDIR, ". of a file");
	tap_eq(stat_ino(&root, "/a/f/.."), -ENOTDIR, ".. of a file");
	tap_eq(stat_ino(&root, ""), -ENOENT, "the empty path");
	tap_eq(stat_ino(&root, "/nothing"), -ENOENT, "a missing name");
	tap_eq(stat_ino(&root, "//a///b/.//"), stat_ino(&root, "/a/b"), "slashes and dots");
	tap_eq(stat_ino(&root, "/../../a/../a/b/.."), stat_ino(&root, "/a"), ".. stops at the root");
	memset(longname, 'n', sizeof(longname));
	longname[0] = '/';
	longname[256] = '\0';
	tap_eq(stat_ino(&root, longname), -ENOENT, "255 bytes are a name");
	longname[256] = 'n';
	longname[257] = '\0';
	tap_eq(stat_ino(&root, longname), -ENAMETOOLONG, "256 bytes are not");
	memset(longpath, '/', sizeof(longpath));
	longpath[4095] = '\0';
	tap_ok(stat_ino(&root, longpath) > 0, "4095 bytes are a path");
	longpath[4095] = '/';
	longpath[4999] = '\0';
	tap_eq(stat_ino(&root, longpath), -ENAMETOOLONG, "more are not");
	tap_eq(stat_ino(&root, (const char *)8), -EFAULT, "a bad pointer");
}

static void test_symlinks(void)
{
	char name[32], to[32];

	symlink_(&root, "/a", "/abs");
	symlink_(&root, "f", "/a/rel");
	symlink_(&root, "loop2", "/loop1");
	symlink_(&root, "loop1", "/loop2");
	symlink_(&root, "missing", "/dangling");
	symlink_(&root, "b/../f", "/a/dots");
	tap_eq(symlink_(&root, "", "/empty"), -ENOENT, "an empty target");
	tap_eq(symlink_(&root, "x", "/abs"), -EEXIST, "a name that is there");
	tap_eq(stat_ino(&root, "/abs/rel"), stat_ino(&root, "/a/f"), "absolute, then relative");
	tap_eq(stat_ino(&root, "/abs/dots"), stat_ino(&root, "/a/f"), "dots in a body");
	tap_eq(stat_ino(&root, "/abs/b/../rel"), stat_ino(&root, "/a/f"), ".. after a symlink");
	tap_eq(stat_ino(&root, "/loop1"), -ELOOP, "a loop");
	tap_ok(S_ISLNK(stat_mode(&root, "/loop1")), "lstat sees the link");
	tap_ok(S_ISDIR(stat_mode(&root, "/abs/")), "lstat follows with a trailing slash");
	tap_ok(S_ISLNK(stat_mode(&root, "/abs")), "and does not without");
	tap_eq(stat_ino(&root, "/a/rel/"), -ENOTDIR, "a link to a file with a trailing slash");
	tap_eq(stat_ino(&root, "/dangling"), -ENOENT, "a dangling link");
	tap_eq(touch_(&root, "/dangling", O_CREAT | O_EXCL | O_WRONLY, 0644), -EEXIST, "O_EXCL does not follow");
	tap_eq(touch_(&root, "/dangling", O_CREAT | O_NOFOLLOW | O_WRONLY, 0644), -ELOOP, "nor does O_NOFOLLOW");
	tap_eq(touch_(&root, "/dangling", O_CREAT | O_WRONLY, 0644), 0, "O_CREAT creates the target");
	tap_ok(stat_ino(&root, "/missing") > 0, "which is there");
	tap_eq(touch_(&root, "/abs", O_RDONLY | O_NOFOLLOW, 0), -ELOOP, "O_NOFOLLOW");
	tap_eq(touch_(&root, "/abs", O_RDONLY | O_NOFOLLOW | O_DIRECTORY, 0), -ENOTDIR, "with O_DIRECTORY");
	tap_eq(touch_(&root, "/abs", O_PATH | O_NOFOLLOW, 0), 0, "O_PATH opens the link");
	/* A chain of 40 is followed, one of 41 is not. */
	for (int i = 0; i < 41; i++) {
		snprintf(name, sizeof(name), "/mnt/c%d", i);
		snprintf(to, sizeof(to), i ? "c%d" : "/a", i - 1);
		if (i < 30)
			symlink_(&root, to, name);
	}
	symlink_(&root, "/mnt/c29", "/k1");
	symlink_(&root, "/mnt/c7", "/k2");
	symlink_(&root, "/mnt/c8", "/k3");
	tap_eq(stat_ino(&root, "/k1"), stat_ino(&root, "/a"), "31 links");
	tap_eq(stat_ino(&root, "/k1/../k2"), stat_ino(&root, "/a"), "40 links");
	tap_eq(stat_ino(&root, "/k1/../k3"), -ELOOP, "41 links");
	tap_eq(SYS(&root, sys_readlink, P("/a/rel"), P(to), 31), 1, "readlink");
	tap_eq(SYS(&root, sys_readlink, P("/abs"), P(to), 1), 1, "readlink cuts");
	tap_eq(SYS(&root, sys_readlink, P("/a"), P(to), 31), -EINVAL, "readlink of a directory");
	tap_eq(SYS(&root, sys_readlink, P("/abs"), P(to), 0), -EINVAL, "readlink into nothing");
}

static void test_mounts(void)
{
	struct path p;
	int64_t fd;

	tap_ok(stat_ino(&root, "/mnt") > 0 && stat_ino(&root, "/mnt/../a") == stat_ino(&root, "/a"), "out of a mount");
	tap_eq(mkdir_(&root, "/mnt/d", 0755), 0, "a directory in it");
	tap_eq(SYS(&root, sys_chdir, P("/mnt/d")), 0, "chdir");
	tap_ok(!strcmp(cwd_of(&root), "/mnt/d"), "getcwd crosses the mount");
	tap_eq(stat_ino(&root, "../../a"), stat_ino(&root, "/a"), ".. crosses it");
	tap_eq(SYS(&root, sys_chdir, P("/")), 0, "chdir back");
	tap_eq(SYS(&root, sys_rmdir, P("/mnt")), -EBUSY, "a mount point cannot be removed");
	tap_eq(rename_(&root, "/mnt", "/other", 0), -EBUSY, "nor renamed");
	tap_eq(rename_(&root, "/a/f", "/mnt/f", 0), -EXDEV, "rename across mounts");
	tap_eq(SYS(&root, sys_link, P("/a/f"), P("/mnt/f")), -EXDEV, "link across mounts");
	BUG_ON(path_walk(&root.t, AT_FDCWD, "/mnt", 0, &p));
	p.mnt->flags = MNT_RDONLY;
	tap_eq(mkdir_(&root, "/mnt/ro", 0755), -EROFS, "mkdir on a read-only mount");
	tap_eq(mkdir_(&root, "/mnt/d", 0755), -EEXIST, "EEXIST comes first");
	tap_eq(touch_(&root, "/mnt/new", O_CREAT | O_WRONLY, 0644), -EROFS, "create there");
	tap_eq(SYS(&root, sys_unlink, P("/mnt/c0")), -EROFS, "unlink there");
	tap_eq(SYS(&root, sys_chmod, P("/mnt/d"), 0700), -EROFS, "chmod there");
	tap_eq(SYS(&root, sys_access, P("/mnt/d"), 2), -EROFS, "access W_OK there");
	p.mnt->flags = 0;
	path_put(&p);
	/* chroot */
	tap_eq(SYS(&user, sys_chroot, P("/a")), -EPERM, "chroot needs a capability");
	fd = open_(&root, "/", O_RDONLY | O_DIRECTORY, 0);
	tap_eq(SYS(&root, sys_chroot, P("/a")), 0, "chroot");
	tap_eq(stat_ino(&root, "/../../f"), stat_ino(&root, "/f"), ".. stops at the new root");
	tap_eq(stat_ino(&root, "/a"), -ENOENT, "the old names are gone");
	tap_eq(SYS(&root, sys_fchdir, (uint64_t)fd), 0, "an open directory leads out");
	tap_ok(!strncmp(cwd_of(&root), "(unreachable)", 13), "getcwd says so");
	tap_eq(SYS(&root, sys_chroot, P(".")), 0, "and chroot back");
	SYS(&root, sys_close, (uint64_t)fd);
}

static int64_t openat2_(int64_t dirfd, const char *path, uint64_t resolve)
{
	struct open_how how = { .flags = O_RDONLY, .resolve = resolve };
	int64_t fd = SYS(&root, sys_openat2, (uint64_t)dirfd, P(path), P(&how), sizeof(how));

	return fd < 0 ? fd : SYS(&root, sys_close, (uint64_t)fd);
}

static void test_openat2(void)
{
	struct open_how bad = { .flags = O_RDONLY, .mode = 0644 };
	uint8_t big[40] = { 0 };
	int64_t d = open_(&root, "/a", O_PATH | O_DIRECTORY, 0);

	tap_eq(openat2_(d, "b/../f", RESOLVE_BENEATH), 0, "beneath");
	tap_eq(openat2_(d, "b/../../a/f", RESOLVE_BENEATH), -EXDEV, ".. out of it");
	tap_eq(openat2_(d, "/a/f", RESOLVE_BENEATH), -EXDEV, "absolute");
	symlink_(&root, "/a/f", "/a/absf");
	tap_eq(openat2_(d, "absf", RESOLVE_BENEATH), -EXDEV, "an absolute link");
	tap_eq(openat2_(d, "absf", RESOLVE_IN_ROOT), -ENOENT, "in root: a link is taken from it");
	tap_eq(openat2_(d, "/../f", RESOLVE_IN_ROOT), 0, "in root: absolute and ..");
	tap_eq(openat2_(d, "rel", RESOLVE_NO_SYMLINKS), -ELOOP, "no symlinks");
	tap_eq(openat2_((int64_t)AT, "/mnt/d", RESOLVE_NO_XDEV), -EXDEV, "no mount crossing");
	tap_eq(openat2_((int64_t)AT, "/a/f", RESOLVE_NO_XDEV), 0, "none there");
	tap_eq(openat2_((int64_t)AT, "/a/f", RESOLVE_BENEATH | RESOLVE_IN_ROOT), -EINVAL, "both");
	tap_eq(openat2_((int64_t)AT, "/a/f", 1u << 20), -EINVAL, "an unknown bit");
	tap_eq(SYS(&root, sys_openat2, AT, P("/a/f"), P(&bad), sizeof(bad)), -EINVAL, "mode without O_CREAT");
	tap_eq(SYS(&root, sys_openat2, AT, P("/a/f"), P(&bad), 8), -EINVAL, "a short struct");
	big[39] = 1;
	tap_eq(SYS(&root, sys_openat2, AT, P("/a/f"), P(big), sizeof(big)), -E2BIG, "a longer one that is not zero");
	SYS(&root, sys_close, (uint64_t)d);
}

static void test_unlinked_cwd(void)
{
	mkdir_(&root, "/gone", 0755);
	stat_ino(&root, "/gone/negative"); /* cached below it */
	tap_eq(SYS(&root, sys_chdir, P("/gone")), 0, "chdir");
	tap_eq(SYS(&root, sys_rmdir, P("/gone")), 0, "rmdir of the working directory");
	tap_eq(SYS(&root, sys_getcwd, P(cwd_of(&root)), 4096), -ENOENT, "getcwd");
	tap_eq(stat_ino(&root, "x"), -ENOENT, "nothing is found in it");
	tap_eq(touch_(&root, "x", O_CREAT | O_WRONLY, 0644), -ENOENT, "nothing is made in it");
	tap_eq(mkdir_(&root, "x", 0755), -ENOENT, "no directory either");
	tap_ok(stat_ino(&root, ".") > 0, ". is still there");
	tap_eq(stat_ino(&root, ".."), stat_ino(&root, "/"), ".. too");
	tap_eq(mkdir_(&root, "/gone", 0755), 0, "the name can be taken again");
	tap_eq(stat_ino(&root, "x"), -ENOENT, "the old one stays dead");
	SYS(&root, sys_chdir, P("/"));
	tap_eq(SYS(&root, sys_rmdir, P("/gone/.")), -EINVAL, "rmdir .");
	tap_eq(SYS(&root, sys_rmdir, P("/gone/..")), -ENOTEMPTY, "rmdir ..");
	tap_eq(SYS(&root, sys_rmdir, P("/")), -EBUSY, "rmdir of the root");
	tap_eq(SYS(&root, sys_rmdir, P("/a/f")), -ENOTDIR, "rmdir of a file");
	tap_eq(SYS(&root, sys_rmdir, P("/a")), -ENOTEMPTY, "rmdir of a full one");
	tap_eq(SYS(&root, sys_unlink, P("/a")), -EISDIR, "unlink of a directory");
	tap_eq(SYS(&root, sys_unlink, P("/a/f/")), -ENOTDIR, "unlink with a trailing slash");
	tap_eq(SYS(&root, sys_unlink, P("/a/.")), -EISDIR, "unlink of .");
	tap_eq(SYS(&root, sys_unlink, P("/none")), -ENOENT, "unlink of nothing");
}

static void test_rename(void)
{
	int64_t f, g;

	touch_(&root, "/r1", O_CREAT | O_WRONLY, 0644);
	touch_(&root, "/r2-with-a-name-that-is-longer-than-an-inline-one", O_CREAT | O_WRONLY, 0644);
	f = stat_ino(&root, "/r1");
	g = stat_ino(&root, "/r2-with-a-name-that-is-longer-than-an-inline-one");
	tap_eq(rename_(&root, "/r1", "/r2-with-a-name-that-is-longer-than-an-inline-one", RENAME_NOREPLACE), -EEXIST,
	       "NOREPLACE");
	tap_eq(rename_(&root, "/r1", "/r2-with-a-name-that-is-longer-than-an-inline-one", RENAME_EXCHANGE), 0,
	       "EXCHANGE");
	tap_ok(stat_ino(&root, "/r1") == g &&
	       stat_ino(&root, "/r2-with-a-name-that-is-longer-than-an-inline-one") == f, "has exchanged");
	tap_eq(rename_(&root, "/r1", "/none", RENAME_EXCHANGE), -ENOENT, "EXCHANGE with nothing");
	tap_eq(rename_(&root, "/r2-with-a-name-that-is-longer-than-an-inline-one", "/r1", 0), 0, "replace");
	tap_ok(stat_ino(&root, "/r1") == f &&
	       stat_ino(&root, "/r2-with-a-name-that-is-longer-than-an-inline-one") == -ENOENT, "has replaced");
	tap_eq(rename_(&root, "/r1", "/a/r", 0), 0, "to another directory");
	tap_eq(stat_ino(&root, "/a/r"), f, "it is there");
	tap_eq(stat_ino(&root, "/r1"), -ENOENT, "and not here");
	tap_eq(rename_(&root, "/a", "/a/b/c", 0), -EINVAL, "into itself");
	tap_eq(rename_(&root, "/a/b", "/a", 0), -ENOTEMPTY, "over its parent");
	tap_eq(rename_(&root, "/a/r", "/a/b", 0), -EISDIR, "a file over a directory");
	tap_eq(rename_(&root, "/a/b", "/a/r", 0), -ENOTDIR, "a directory over a file");
	tap_eq(rename_(&root, "/a/r", "/a/q/", 0), -ENOTDIR, "a file to a name with a slash");
	tap_eq(rename_(&root, "/a/b", "/a/q/", 0), 0, "a directory to a name with a slash");
	tap_eq(rename_(&root, "/a/q", "/a/b", 0), 0, "and back");
	tap_eq(rename_(&root, "/none", "/a/q", 0), -ENOENT, "of nothing");
	tap_eq(rename_(&root, "/a/.", "/x", 0), -EBUSY, "of .");
	tap_eq(rename_(&root, "/a", "/x", 99), -EINVAL, "unknown flags");
	SYS(&root, sys_link, P("/a/r"), P("/a/r2"));
	tap_eq(rename_(&root, "/a/r", "/a/r2", 0), 0, "links to one file");
	tap_eq(stat_ino(&root, "/a/r"), f, "both stay");
	SYS(&root, sys_chdir, P("/a/b"));
	rename_(&root, "/a", "/z", 0);
	tap_ok(!strcmp(cwd_of(&root), "/z/b"), "the working directory moves along");
	rename_(&root, "/z", "/a", 0);
	SYS(&root, sys_chdir, P("/"));
}

static void test_permission(void)
{
	struct linux_stat st;

	touch_(&root, "/tmp/rootfile", O_CREAT | O_WRONLY, 0600);
	tap_eq(touch_(&user, "/tmp/rootfile", O_RDONLY, 0), -EACCES, "0600 of another");
	tap_eq(touch_(&user, "/tmp/mine", O_CREAT | O_WRONLY, 0666), 0, "create in /tmp");
	tap_eq(stat_mode(&user, "/tmp/mine") & 0777, 0644, "by the umask");
	tap_eq(touch_(&user, "/tmp/none", O_CREAT | O_RDWR, 0), 0, "mode 0 does not matter to the creator");
	tap_eq(touch_(&user, "/tmp/none", O_RDWR, 0), -EACCES, "but later");
	tap_eq(SYS(&user, sys_unlink, P("/tmp/rootfile")), -EPERM, "sticky: not the owner");
	tap_eq(rename_(&user, "/tmp/rootfile", "/tmp/x", 0), -EPERM, "sticky: rename");
	tap_eq(rename_(&user, "/tmp/mine", "/tmp/rootfile", 0), -EPERM, "sticky: rename over");
	tap_eq(mkdir_(&user, "/new", 0755), -EACCES, "no write permission");
	mkdir_(&root, "/closed", 0700);
	touch_(&root, "/closed/f", O_CREAT | O_WRONLY, 0644);
	tap_eq(stat_ino(&user, "/closed/f"), -EACCES, "no search permission");
	tap_ok(stat_ino(&user, "/closed") > 0, "the directory itself can be seen");
	tap_eq(SYS(&user, sys_chdir, P("/closed")), -EACCES, "chdir");
	tap_eq(SYS(&user, sys_chmod, P("/closed"), 0777), -EPERM, "chmod");
	tap_eq(SYS(&user, sys_chown, P("/tmp/mine"), 0, (uint64_t)-1), -EPERM, "giving away");
	tap_eq(SYS(&user, sys_chown, P("/tmp/mine"), 1000, 1000), 0, "to oneself");
	tap_eq(SYS(&root, sys_access, P("/tmp/rootfile"), 1), -EACCES, "root needs an x bit");
	tap_eq(SYS(&root, sys_access, P("/tmp/mine"), 6), 0, "and nothing else");
	SYS(&user, sys_chmod, P("/tmp/mine"), 06755);
	tap_eq(stat_mode(&user, "/tmp/mine") & 07777, 06755, "set-id bits");
	SYS(&root, sys_chown, P("/tmp/mine"), 1000, 1000);
	tap_eq(stat_mode(&user, "/tmp/mine") & 07777, 0755, "chown takes them");
	mkdir_(&root, "/sgid", 0777);
	SYS(&root, sys_chown, P("/sgid"), 0, 50);
	SYS(&root, sys_chmod, P("/sgid"), 02777);
	mkdir_(&user, "/sgid/d", 0755);
	SYS(&user, sys_stat, P("/sgid/d"), P(&st));
	tap_ok(st.st_gid == 50 && (st.st_mode & S_ISGID), "a directory inherits group and bit");
	touch_(&user, "/sgid/f", O_CREAT | O_WRONLY, 02755);
	SYS(&user, sys_stat, P("/sgid/f"), P(&st));
	tap_ok(st.st_gid == 50 && !(st.st_mode & S_ISGID), "a program of a foreign group loses it");
	user.cred.cap_effective = 1ull << CAP_DAC_READ_SEARCH;
	tap_ok(stat_ino(&user, "/closed/f") > 0, "CAP_DAC_READ_SEARCH searches");
	tap_eq(touch_(&user, "/tmp/rootfile", O_RDONLY, 0), 0, "and reads");
	tap_eq(touch_(&user, "/tmp/rootfile", O_RDWR, 0), -EACCES, "and does not write");
	user.cred.cap_effective = 0;
}

/* Changes of a live grant on the host. */
static void test_revalidate(void)
{
	struct mem_inode *r = mem_i(root_fs->sb.root), *d, *e;
	unsigned before;
	struct path p;

	stat_ino(&root, "/host");
	memfs_host_create(r, "host", S_IFREG | 0644);
	tap_ok(stat_ino(&root, "/host") > 0, "a negative entry is revalidated");
	memfs_host_remove(r, "host");
	tap_eq(stat_ino(&root, "/host"), -ENOENT, "a positive one, too");
	before = sub_fs->lookups;
	stat_ino(&root, "/mnt/no-such");
	stat_ino(&root, "/mnt/no-such");
	tap_eq(sub_fs->lookups, before + 1, "a stable file system is asked once");
	tap_eq(sub_fs->revalidates, 0, "and never to revalidate");
	before = sub_fs->lookups;
	tap_eq(stat_ino(&root, "/mnt/hidden"), -ENOENT, "a hidden name");
	tap_eq(stat_ino(&root, "/mnt/hidden"), -ENOENT, "stays so");
	tap_eq(sub_fs->lookups, before + 2, "and is asked for each time");
	tap_ok(SYS(&root, sys_mkdir, P("/mnt/hidden"), 0755) == 0 && stat_ino(&root, "/mnt/hidden") > 0,
	       "the guest may have its own there");
	before = sub_fs->lookups;
	tap_ok(stat_ino(&root, "/mnt/hidden") > 0 && sub_fs->lookups == before, "which is cached as others are");
	tap_eq(SYS(&root, sys_rmdir, P("/mnt/hidden")), 0, "and remove it");
	memfs_host_create(mem_i(sub_fs->sb.root), "no-such", S_IFREG | 0644);
	dcache_invalidate(sub_fs->sb.root, "no-such", 7);
	tap_ok(stat_ino(&root, "/mnt/no-such") > 0, "after invalidation it is asked again");
	d = memfs_host_create(r, "hd", S_IFDIR | 0755);
	e = memfs_host_create(r, "he", S_IFDIR | 0755);
	memfs_host_create(d, "sub", S_IFDIR | 0755);
	BUG_ON(SYS(&root, sys_chdir, P("/hd/sub")));
	stat_ino(&root, "/he");
	memfs_host_rename(r, "hd", e, "moved");
	BUG_ON(path_walk(&root.t, AT_FDCWD, "/he/moved", 0, &p));
	tap_ok(!strcmp(cwd_of(&root), "/he/moved/sub"), "a directory that the host moved takes its dentries along");
	path_put(&p);
	SYS(&root, sys_chdir, P("/"));
}

static void test_open_flags(void)
{
	struct linux_stat st;
	struct path p;
	char proc[32];
	int64_t fd;

	tap_eq(touch_(&root, "/a", O_WRONLY, 0), -EISDIR, "a directory for writing");
	tap_eq(touch_(&root, "/a", O_CREAT | O_RDONLY, 0644), -EISDIR, "O_CREAT of a directory");
	tap_eq(touch_(&root, "/a/f", O_DIRECTORY | O_RDONLY, 0), -ENOTDIR, "O_DIRECTORY of a file");
	tap_eq(touch_(&root, "/a/f", O_CREAT | O_DIRECTORY, 0644), -EINVAL, "O_CREAT with O_DIRECTORY");
	tap_eq(touch_(&root, "/tmp", O_TMPFILE | O_RDONLY, 0644), -EINVAL, "O_TMPFILE for reading");
	fd = open_(&root, "/tmp", O_TMPFILE | O_RDWR, 0644);
	tap_ok(fd >= 0, "O_TMPFILE");
	SYS(&root, sys_fstat, (uint64_t)fd, P(&st));
	tap_eq(st.st_nlink, 0, "has no name");
	tap_eq(SYS(&root, sys_linkat, (uint64_t)fd, P(""), AT, P("/tmp/named"), AT_EMPTY_PATH), 0,
	       "linkat gives it one");
	tap_eq(stat_ino(&root, "/tmp/named"), (int64_t)st.st_ino, "which leads to it");
	SYS(&root, sys_close, (uint64_t)fd);
	fd = open_(&root, "/tmp/named", O_RDWR, 0);
	{
		struct file *f = fd_lookup(root.t.fdt, (int)fd);

		memfs_magic(mem_i(root_fs->sb.root), "magic", f);
		tap_eq(stat_ino(&root, "/magic"), (int64_t)st.st_ino, "a magic link leads to its file");
		tap_eq(openat2_((int64_t)AT, "/magic", RESOLVE_NO_MAGICLINKS), -ELOOP, "no magic links");
		SYS(&root, sys_unlink, P("/tmp/named"));
		tap_ok(stat_ino(&root, "/magic") == (int64_t)st.st_ino, "also once the name is gone");
		tap_eq(SYS(&root, sys_linkat, AT, P("/magic"), AT, P("/tmp/again"), AT_SYMLINK_FOLLOW), -ENOENT,
		       "but it gets no new name");
		file_put(f);
	}
	BUG_ON(SYS(&root, sys_unlink, P("/magic")));
	SYS(&root, sys_close, (uint64_t)fd);
	fd = open_(&root, "/a/f", O_PATH, 0);
	tap_eq(SYS(&root, sys_read, (uint64_t)fd, P(proc), 1), -EBADF, "O_PATH cannot be read");
	tap_eq(SYS(&root, sys_fstat, (uint64_t)fd, P(&st)), 0, "but looked at");
	tap_eq(SYS(&root, sys_newfstatat, (uint64_t)fd, P(""), P(&st), AT_EMPTY_PATH), 0, "also so");
	tap_eq(SYS(&root, sys_newfstatat, (uint64_t)fd, P("x"), P(&st), 0), -ENOTDIR, "a file is no dirfd");
	tap_eq(SYS(&root, sys_newfstatat, 999, P("x"), P(&st), 0), -EBADF, "nor is nothing");
	tap_eq(SYS(&root, sys_newfstatat, 999, P("/a"), P(&st), 0), 0, "unless the path is absolute");
	SYS(&root, sys_close, (uint64_t)fd);
	BUG_ON(path_walk(&root.t, AT_FDCWD, "/a/f", 0, &p));
	BUG_ON(inode_deny_write(p.dentry->inode));
	tap_eq(touch_(&root, "/a/f", O_WRONLY, 0), -ETXTBSY, "a running program");
	tap_eq(SYS(&root, sys_truncate, P("/a/f"), 0), -ETXTBSY, "also truncate");
	inode_allow_write(p.dentry->inode);
	fd = open_(&root, "/a/f", O_WRONLY, 0);
	tap_eq(inode_deny_write(p.dentry->inode), -ETXTBSY, "what is open for writing cannot be run");
	SYS(&root, sys_close, (uint64_t)fd);
	path_put(&p);
}

static void test_getdents(void)
{
	uint8_t buf[256];
	int64_t fd, n, names = 0;

	mkdir_(&root, "/list", 0755);
	for (int i = 0; i < 20; i++) {
		char name[32];

		snprintf(name, sizeof(name), "/list/entry-%d", i);
		touch_(&root, name, O_CREAT | O_WRONLY, 0644);
	}
	fd = open_(&root, "/list", O_RDONLY | O_DIRECTORY, 0);
	tap_eq(SYS(&root, sys_getdents64, (uint64_t)fd, P(buf), 8), -EINVAL, "a buffer that holds no entry");
	while ((n = SYS(&root, sys_getdents64, (uint64_t)fd, P(buf), sizeof(buf))) > 0)
		for (int64_t at = 0; at < n; names++)
			at += ((struct linux_dirent64 *)(void *)(buf + at))->d_reclen;
	tap_ok(n == 0 && names == 20, "all entries, once");
	SYS(&root, sys_lseek, (uint64_t)fd, 0, SEEK_SET);
	tap_eq(SYS(&root, sys_getdents64, (uint64_t)fd, 8, 256), -EFAULT, "a bad buffer");
	n = SYS(&root, sys_getdents, (uint64_t)fd, P(buf), sizeof(buf));
	tap_ok(n > 0 && buf[((struct linux_dirent *)(void *)buf)->d_reclen - 1] == 8,
	       "nothing was lost; old records have a type");
	SYS(&root, sys_close, (uint64_t)fd);
	fd = open_(&root, "/a/f", O_RDONLY, 0);
	tap_eq(SYS(&root, sys_getdents64, (uint64_t)fd, P(buf), sizeof(buf)), -ENOTDIR, "of a file");
	SYS(&root, sys_close, (uint64_t)fd);
}

/* Everything goes again: no reference was lost. */
static void test_teardown(void)
{
	struct mount *m = list_last_entry(&kernel.mnt_ns->mounts, struct mount, node);

	tap_eq(mount_remove(kernel.mnt_ns, kernel.mnt_ns->root), -EBUSY, "the root mount stays");
	fake_task_fini(&user);
	tap_eq(mount_remove(kernel.mnt_ns, m), 0, "the other one can go");
	fake_task_fini(&root);
	dcache_shrink(0);
	tap_eq(kernel.counters.dentries, 1, "only the root's dentry is left");
	tap_eq(kernel.counters.files, 0, "no file");
	mount_put(kernel.mnt_ns->root);
	tap_eq(kernel.counters.dentries, 0, "now none");
	tap_eq(kernel.counters.inodes, 0, "and no inode");
}

int main(void)
{
	set_up();
	test_walk();
	test_symlinks();
	test_mounts();
	test_openat2();
	test_unlinked_cwd();
	test_rename();
	test_permission();
	test_revalidate();
	test_open_flags();
	test_getdents();
	test_teardown();
	return tap_done();
}
