/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gofer gives up. Stages: initial (as started), isolated (own mount namespace, before the grants are opened), steady
 * (grants open: empty root, no privileges, system call filter).
 */
#ifndef SBX_GOFER_CONFINE_H
#define SBX_GOFER_CONFINE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/macros.h"

struct confine {
	bool userns;    /* the process has a user namespace of its own */
	bool mount_ns;  /* out: has its own mount namespace */
	bool all_read_only; /* no grant is rw */
	bool empty_root; /* out */
	int sock, control; /* the only sockets that messages may go over */
};

/* Session, signal on the monitor's death, limits, mount namespace where it can be had. */
MUST_CHECK int confine_isolate(struct confine *c, struct sbx_err *err);
/* After the grants: everything else. Fails closed. */
MUST_CHECK int confine_steady(struct confine *c, struct sbx_err *err);

#endif
