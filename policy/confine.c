/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces, ids, capabilities and the empty root of a confined process.
 *
 * A sentry that the host's root started becomes the user nobody first, so that its user namespace
 * belongs to nobody and no file of root's is in its reach even where it has a path. A user's sentry
 * stays that user, in a user namespace where it is root over nothing but itself. Where user
 * namespaces are forbidden, root's sentry takes the others with root's capabilities and keeps its
 * number, because stubs that were made without a user namespace can only be served by a process of
 * their own number.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/types.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/roles_priv.h"

#define NOBODY 65534u

/* What the sentry never needs, with the flag that tells whether it was left behind. */
static const struct {
	int flag;
	size_t obtained; /* offset of a bool */
} namespaces[] = {
	{ CLONE_NEWNS, offsetof(struct policy_obtained, mountns) },
	{ CLONE_NEWNET, offsetof(struct policy_obtained, netns) },
	{ CLONE_NEWIPC, offsetof(struct policy_obtained, ipcns) },
	{ CLONE_NEWUTS, offsetof(struct policy_obtained, utsns) },
};

static void note(size_t offset)
{
	*(bool *)((char *)&policy_state.obtained + offset) = true;
}

/* All at once where that is allowed, else each for itself. */
static void leave_namespaces(void)
{
	int all = 0;

	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		all |= namespaces[i].flag;
	if (unshare(all) == 0) {
		for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
			note(namespaces[i].obtained);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
		if (unshare(namespaces[i].flag) == 0)
			note(namespaces[i].obtained);
	}
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		r = -errno;
	close(fd);
	return r;
}

/* Root inside is who we were outside, and nobody else exists. */
static int write_maps(uid_t uid, gid_t gid)
{
	char text[32];
	int r;

	snprintf(text, sizeof(text), "0 %u 1\n", uid);
	r = write_file("/proc/self/uid_map", text);
	if (r)
		return r;
	r = write_file("/proc/self/setgroups", "deny");
	if (r && r != -ENOENT)
		return r;
	snprintf(text, sizeof(text), "0 %u 1\n", gid);
	return write_file("/proc/self/gid_map", text);
}

static bool single_threaded(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

/* Becomes nobody, able to come back. Only root can. */
static bool become_nobody(void)
{
	if (geteuid() != 0 || setgroups(0, NULL) < 0)
		return false;
	if (setresgid(NOBODY, NOBODY, 0) < 0)
		return false;
	if (setresuid(NOBODY, NOBODY, 0) < 0) {
		(void)!setresgid(0, 0, 0);
		return false;
	}
	/* The change made us undumpable, and /proc/self root's: the maps could not be written. */
	prctl(PR_SET_DUMPABLE, 1);
	return true;
}

static int become_root_again(struct sbx_err *err)
{
	if (setresuid(0, 0, 0) < 0 || setresgid(0, 0, 0) < 0)
		return sbx_fail(err, -errno, "user ids");
	prctl(PR_SET_DUMPABLE, 1);
	return 0;
}

/* A user namespace of our own; the ids in it are 0. */
static int enter_userns(bool nobody, struct sbx_err *err)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r;

	if (unshare(CLONE_NEWUSER) < 0)
		return -EPERM;
	r = write_maps(uid, gid);
	if (r)
		return sbx_fail(err, r, "user id map");
	/* The saved ids may be root's still; in here they have no name, and this replaces them. */
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return sbx_fail(err, -errno, "user ids");
	prctl(PR_SET_DUMPABLE, 1);
	policy_state.obtained.userns = true;
	policy_state.obtained.uid_dropped = nobody;
	return 0;
}

int policy_step_namespaces(struct sbx_err *err)
{
	bool nobody = false;
	int r = -EPERM;

	if (!single_threaded())
		return 0;
	err->code = 0;
	if (!policy_state.options.no_userns) {
		nobody = become_nobody();
		r = enter_userns(nobody, err);
		if (r && err->code)
			return r;
	}
	if (r && nobody) {
		r = become_root_again(err);
		if (r)
			return r;
	}
	leave_namespaces();
	return 0;
}

/* linux/landlock.h of older systems lacks the last field. */
struct landlock_attr {
	__u64 handled_access_fs, handled_access_net, scoped;
};
#define LANDLOCK_SCOPE_ABSTRACT 1ull
#define LANDLOCK_SCOPE_SIG 2ull

/*
 * A Landlock domain keeps us and our later children from signalling, tracing and reading the memory
 * of anything outside. It handles no file access, because a domain that does may not mount, and the
 * empty root comes later.
 */
int policy_step_landlock(struct sbx_err *err)
{
	const struct landlock_attr attr = { .scoped =
		                                    LANDLOCK_SCOPE_ABSTRACT | LANDLOCK_SCOPE_SIG };
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (fd < 0)
		return 0; /* before Linux 6.12, or switched off */
	policy_state.obtained.landlock = syscall(SYS_landlock_restrict_self, fd, 0) == 0;
	close(fd);
	return 0;
}

int policy_empty_root(void)
{
	static const char *const places[] = { "/proc", "/sys", "/tmp", "/dev", "/run" };
	int r = -ENOENT;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (mount("none", places[i], "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY,
		          "size=4k,mode=555") < 0) {
			r = -errno;
			continue;
		}
		if (chdir(places[i]) < 0)
			return -errno;
		if (syscall(SYS_pivot_root, ".", ".") == 0)
			return umount2(".", MNT_DETACH) < 0 || chdir("/") < 0 ? -errno : 0;
		/* The root of an initramfs cannot be pivoted. */
		return chroot(".") < 0 ? -errno : 0;
	}
	return r;
}

int policy_step_empty_root(struct sbx_err *err)
{
	if (policy_state.obtained.mountns)
		policy_state.obtained.empty_root = policy_empty_root() == 0;
	return 0; /* without one the filter still opens no path */
}

int policy_step_no_caps(struct sbx_err *err)
{
	cap_t none = cap_init();
	int r = 0;

	if (!none)
		return sbx_fail(err, -ENOMEM, "capabilities");
	/* The bounding set says what execve could give, and nothing is executed any more. */
	if (cap_set_proc(none) < 0)
		r = sbx_fail(err, -errno, "drop capabilities");
	cap_free(none);
	return r;
}
