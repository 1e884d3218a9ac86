/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/monitor/store_disk.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/host/file.h"
#include "base/log.h"

#define MEMORY_SHARE 8 /* of the memory limit, for files */

static bool is_memory(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st) < 0 || st.f_type == TMPFS_MAGIC || st.f_type == RAMFS_MAGIC;
}

static int open_in(const char *dir)
{
	int fd;

	if (!dir || dir[0] != '/')
		return -1;
	/* O_EXCL: it can never be given a name. */
	fd = host_open(dir, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	if (!is_memory(fd))
		return fd;
	host_close(fd);
	return -1;
}

int store_disk_open(const struct policy *p, uint64_t *memory)
{
	const char *const dirs[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };

	*memory = p->limits[LIMIT_MEMORY] / MEMORY_SHARE;
	if (p->limits[LIMIT_DISK] <= *memory)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		int fd = open_in(dirs[i]);

		if (fd >= 0)
			return fd;
	}
	log_dbg(CH_MONITOR, "no disk for the sandbox's files: they are kept in memory");
	return -1;
}
