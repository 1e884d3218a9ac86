/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message with file descriptors over an AF_UNIX SOCK_SEQPACKET socket. Used by every connection between our
 * own processes; the payload is a protobuf. Neither side trusts the other.
 */
#ifndef SBX_BASE_WIRE_WIRE_H
#define SBX_BASE_WIRE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

#define WIRE_MSG_MAX (128u * 1024) /* bytes of one message */
#define WIRE_FDS_MAX 16

struct wire_msg {
	uint8_t *buf;  /* the caller's buffer */
	size_t cap;    /* its size */
	size_t len;    /* filled by wire_recv; what wire_send sends */
	int fds[WIRE_FDS_MAX];
	unsigned n_fds;
};

/* Sends buf[0..len) and the fds (borrowed). Blocks. Returns 0 or -errno. */
MUST_CHECK int wire_send(int sock, const struct wire_msg *m);

/* Receives one message; fds are CLOEXEC and the caller's. Returns 1, 0 at end of file, or -errno:
 * -EPROTO when the message was truncated, -EMFILE when it is whole and the process has no numbers left for its fds, or
 * they were more than WIRE_FDS_MAX (every received fd is then closed), -EAGAIN with a nonblocking socket. */
MUST_CHECK int wire_recv(int sock, struct wire_msg *m);

/* Closes the fds that are left (>= 0) and forgets them. */
void wire_close_fds(struct wire_msg *m);

/* A bump arena as a ProtobufCAllocator, so that a message costs no malloc: memory is given out from a fixed
 * buffer and all of it is taken back by wire_arena_reset. An allocation that does not fit fails (unpack returns NULL).
 */
struct wire_arena {
	uint8_t *base;
	size_t cap, used;
};

void *wire_arena_alloc(void *arena, size_t size);
void wire_arena_free(void *arena, void *p);

static inline void wire_arena_reset(struct wire_arena *a)
{
	a->used = 0;
}

#endif
