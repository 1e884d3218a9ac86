/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/map.h"

#include <errno.h>
#include <sys/mman.h>

int host_map_window(int fd, size_t len, uint8_t **ret)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

void host_unmap(void *p, size_t len)
{
	if (p)
		munmap(p, len);
}
