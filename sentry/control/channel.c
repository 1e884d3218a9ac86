/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/control/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/host/file.h"

static int send_bytes(int sock, uint8_t *buf, size_t len, const int *fds, unsigned n_fds)
{
	struct wire_msg w = { .buf = buf, .len = len, .n_fds = n_fds };

	if (n_fds > WIRE_FDS_MAX)
		return -EINVAL;
	if (n_fds)
		memcpy(w.fds, fds, n_fds * sizeof(*fds));
	return wire_send(sock, &w);
}

static int write_all(int fd, const uint8_t *buf, size_t len)
{
	while (len) {
		ssize_t n = host_write(fd, buf, len);

		if (n < 0)
			return (int)n;
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

static int send_in_memfd(int sock, const uint8_t *buf, size_t len, const int *fds, unsigned n_fds)
{
	Sbx__Control__ConfigInFd in_fd = SBX__CONTROL__CONFIG_IN_FD__INIT;
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;
	int all[WIRE_FDS_MAX], r;
	uint8_t small[64];

	if (n_fds >= WIRE_FDS_MAX)
		return -EINVAL;
	if (n_fds)
		memcpy(all, fds, n_fds * sizeof(*fds));
	r = host_memfd("sbx-config", MFD_ALLOW_SEALING);
	if (r < 0)
		return r;
	all[n_fds] = r;
	r = write_all(all[n_fds], buf, len);
	if (!r && fcntl(all[n_fds], F_ADD_SEALS,
	                F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		r = -EINVAL;
	if (!r) {
		in_fd.size = (uint32_t)len;
		m.m_case = SBX__CONTROL__MESSAGE__M_CONFIG_IN_FD;
		m.config_in_fd = &in_fd;
		r = send_bytes(sock, small, sbx__control__message__pack(&m, small), all, n_fds + 1);
	}
	host_close(all[n_fds]);
	return r;
}

int control_send(int sock, const Sbx__Control__Message *m, const int *fds, unsigned n_fds)
{
	size_t len = sbx__control__message__get_packed_size(m);
	uint8_t *buf;
	int r;

	if (len > CONTROL_CONFIG_MAX)
		return -E2BIG;
	buf = malloc(len ? len : 1);
	if (!buf)
		return -ENOMEM;
	sbx__control__message__pack(m, buf);
	r = len <= WIRE_MSG_MAX ? send_bytes(sock, buf, len, fds, n_fds)
	                        : send_in_memfd(sock, buf, len, fds, n_fds);
	free(buf);
	return r;
}

/* Replaces a ConfigInFd by the message in its memfd, the last fd of @w, which is closed. */
static int recv_from_memfd(struct wire_msg *w, Sbx__Control__Message **m)
{
	uint32_t size = (*m)->config_in_fd->size;
	uint8_t *buf;
	ssize_t n;
	int fd;

	sbx__control__message__free_unpacked(*m, NULL);
	*m = NULL;
	if (!w->n_fds || size > CONTROL_CONFIG_MAX)
		return -EPROTO;
	fd = w->fds[--w->n_fds];
	buf = malloc(size ? size : 1);
	n = buf ? host_pread(fd, buf, size, 0) : -ENOMEM;
	host_close(fd);
	if (n == (ssize_t)size)
		*m = sbx__control__message__unpack(NULL, size, buf);
	free(buf);
	if (n < 0)
		return (int)n;
	if (!*m)
		return -EPROTO;
	return (*m)->m_case == SBX__CONTROL__MESSAGE__M_CONFIG_IN_FD ? -EPROTO : 1;
}

static int recv_message(int sock, Sbx__Control__Message **ret_m, int *fds, unsigned *n_fds,
                        bool in_fd)
{
	static uint8_t buf[WIRE_MSG_MAX]; /* one thread receives */
	struct wire_msg w = { .buf = buf, .cap = sizeof(buf) };
	Sbx__Control__Message *m;
	int r = wire_recv(sock, &w);

	if (r <= 0)
		return r;
	m = sbx__control__message__unpack(NULL, w.len, buf);
	r = m ? 1 : -EPROTO;
	if (m && m->m_case == SBX__CONTROL__MESSAGE__M_CONFIG_IN_FD)
		r = in_fd ? recv_from_memfd(&w, &m) : -EPROTO;
	if (r < 0) {
		if (m)
			sbx__control__message__free_unpacked(m, NULL);
		wire_close_fds(&w);
		return r;
	}
	if (w.n_fds)
		memcpy(fds, w.fds, w.n_fds * sizeof(*fds));
	*n_fds = w.n_fds;
	*ret_m = m;
	return 1;
}

int control_recv(int sock, Sbx__Control__Message **m, int *fds, unsigned *n_fds)
{
	return recv_message(sock, m, fds, n_fds, false);
}

int control_recv_config(int sock, Sbx__Control__Message **m, int *fds, unsigned *n_fds)
{
	return recv_message(sock, m, fds, n_fds, true);
}
