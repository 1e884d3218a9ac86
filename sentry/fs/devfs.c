/* SPDX-License-Identifier: Apache-2.0 */
/* /dev: a tmpfs with the devices, links and directories that programs expect; what else the guest makes in it is
 * ordinary. */
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sentry/fs/fs.h"
#include "sentry/fs/tmpfs.h"

static const struct {
	const char *name;
	unsigned major, minor;
} devices[] = {
	{ "null", 1, 3 }, { "zero", 1, 5 }, { "full", 1, 7 }, { "random", 1, 8 }, { "urandom", 1, 9 },
	{ "tty", 5, 0 }, /* has no operations here: ENXIO until there is a controlling terminal */
};

static const struct {
	const char *name, *target;
} links[] = {
	{ "fd", "/proc/self/fd" },
	{ "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" },
	{ "stderr", "/proc/self/fd/2" },
};

static const struct {
	const char *name;
	uint32_t mode;
} dirs[] = {
	{ "shm", 01777 },
	{ "pts", 0755 },
};

static struct qname name_of(const char *s)
{
	return (struct qname){ .s = s, .len = (uint32_t)strlen(s) };
}

static int populate(struct inode *root)
{
	struct inode *in;
	struct qname q;
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		q = name_of(devices[i].name);
		err = tmpfs_mknod(root, &q, S_IFCHR | 0666, makedev(devices[i].major, devices[i].minor), 0, 0, &in);
		if (err < 0)
			return err;
		inode_put(in);
	}
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		q = name_of(links[i].name);
		err = tmpfs_symlink(root, &q, links[i].target, 0, 0, &in);
		if (err < 0)
			return err;
		inode_put(in);
	}
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		q = name_of(dirs[i].name);
		err = tmpfs_mkdir(root, &q, dirs[i].mode, 0, 0, &in);
		if (err < 0)
			return err;
		inode_put(in);
	}
	return 0;
}

int devfs_create(struct store *s, struct super **ret)
{
	struct super *sb;
	int err = tmpfs_create(s, 0755, &sb);

	if (err < 0)
		return err;
	sb->fstype = "devtmpfs";
	err = populate(sb->root);
	if (err < 0) {
		super_put(sb);
		return err;
	}
	*ret = sb;
	return 0;
}
