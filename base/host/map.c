/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/map.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

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

int host_reserve(size_t len, size_t align, uint8_t **ret)
{
	size_t all, head;
	uint8_t *p;

	if (__builtin_add_overflow(len, align, &all))
		return -ENOMEM;
	p = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	head = ROUND_UP((uintptr_t)p, align) - (uintptr_t)p;
	if (head)
		munmap(p, head);
	if (align - head)
		munmap(p + head + len, align - head);
	*ret = p + head;
	return 0;
}

static int map_at(void *at, size_t len, int prot, int flags, int fd, uint64_t off)
{
	return mmap(at, len, prot, flags | MAP_FIXED, fd, (off_t)off) == MAP_FAILED ? -errno : 0;
}

int host_map_memory_at(void *at, size_t len)
{
	return map_at(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int host_map_none_at(void *at, size_t len)
{
	return map_at(at, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int host_map_file_at(void *at, size_t len, int fd, uint64_t off, int prot, int flags)
{
	return map_at(at, len, prot, flags, fd, off);
}

int host_map_twin_at(void *at, size_t len, void *twin)
{
	return mremap(twin, 0, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED ? -errno : 0;
}

int host_map_file(size_t len, int fd, uint64_t off, int prot, int flags, uint8_t **ret)
{
	void *p = mmap(NULL, len, prot, flags | MAP_NORESERVE, fd, (off_t)off);

	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

int host_madvise(void *p, size_t len, int advice)
{
	return madvise(p, len, advice) < 0 ? -errno : 0;
}

ssize_t host_mem_read(void *to, const void *from, size_t n)
{
	struct iovec local = { to, n }, remote = { (void *)from, n };
	ssize_t r = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	return r < 0 ? -errno : r;
}

ssize_t host_mem_write(void *to, const void *from, size_t n)
{
	struct iovec local = { (void *)from, n }, remote = { to, n };
	ssize_t r = process_vm_writev(getpid(), &local, 1, &remote, 1, 0);

	return r < 0 ? -errno : r;
}

ssize_t host_mem_probe(const uint8_t *page, ssize_t step, unsigned n)
{
	uint8_t sink[HOST_PROBE_MAX];
	struct iovec local = { sink, n }, remote[HOST_PROBE_MAX];
	ssize_t r;

	if (n > HOST_PROBE_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < n; i++)
		remote[i] = (struct iovec){ (void *)(page + (ssize_t)i * step), 1 };
	r = process_vm_readv(getpid(), &local, 1, remote, n, 0);
	return r < 0 ? (errno == EFAULT ? 0 : -errno) : r;
}
