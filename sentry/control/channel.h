/* SPDX-License-Identifier: Apache-2.0 */
/* Control messages between the monitor and its helpers: a Message of control.proto over base/wire.
 */
#ifndef SBX_SENTRY_CONTROL_CHANNEL_H
#define SBX_SENTRY_CONTROL_CHANNEL_H

#include "base/wire/wire.h"
#include "sentry/control/control.pb-c.h"

#define CONTROL_FD 3       /* of a helper: the monitor */
#define CONTROL_GOFER_FD 4 /* of sentry and gofer: each other */

/* The largest config: argv and environment are bounded by Linux at 2 MiB, the rest by the policy.
 */
#define CONTROL_CONFIG_MAX (8u << 20)

/* Packs and sends @m with @n_fds borrowed fds. A message over WIRE_MSG_MAX goes in a sealed memfd
 * as ConfigInFd. Returns 0 or -errno: -E2BIG over CONTROL_CONFIG_MAX. Blocks unless the socket is
 * nonblocking (-EAGAIN). */
MUST_CHECK int control_send(int sock, const Sbx__Control__Message *m, const int *fds,
                            unsigned n_fds);

/*
 * Receives and unpacks one message. Returns 1 with *@m (free with
 * sbx__control__message__free_unpacked(m, NULL)) and
 * *@n_fds fds in @fds (at most WIRE_FDS_MAX, the caller's); 0 at end of file; or -errno (-EPROTO:
 * bad message; no fd is left open).
 */
MUST_CHECK int control_recv(int sock, Sbx__Control__Message **m, int *fds, unsigned *n_fds);

/* The same for the first message of a helper, which may be a ConfigInFd. Only for messages of the
 * monitor: it reads from a received fd. */
MUST_CHECK int control_recv_config(int sock, Sbx__Control__Message **m, int *fds, unsigned *n_fds);

#endif
