/* SPDX-License-Identifier: Apache-2.0 */
#include "gofer/confine.h"

#include <errno.h>
#include <sched.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gofer/reopen.h"
#include "policy/roles.h"

static int enter_mount_ns(struct confine *c)
{
	/*
	 * With the capability or not at all: a user namespace made for it would show every owner but the user as
	 * nobody, and programs that check who owns their configuration would refuse to run.
	 */
	if (unshare(CLONE_NEWNS) < 0)
		return -errno;
	/* A slave, so that nothing done here shows on the host while what the host mounts in a grant shows here. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return -errno;
	c->mount_ns = true;
	return 0;
}

int confine_isolate(struct confine *c, struct sbx_err *err)
{
	struct rlimit rl;
	int r = policy_enter(ROLE_GOFER, STAGE_INITIAL, err);

	if (r < 0)
		return r;
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl); /* less fds only means more reopening */
	}
	(void)enter_mount_ns(c); /* where it may not, the walk checks are the only line; Started tells */
	return 0;
}

/*
 * Capabilities that are kept. Only a gofer that runs as root keeps any: the files of a root user's grant may belong to
 * others and have modes that root passes by, and the guest's root expects the same.
 *  - DAC_READ_SEARCH to read them, when all grants are read-only;
 *  - DAC_OVERRIDE to read and write them, FOWNER to chmod and set times, when some grant is rw.
 * CHOWN is not kept: owners do not change on grants.
 */
static int keep_caps(const struct confine *c)
{
	static const cap_value_t rw[] = { CAP_DAC_OVERRIDE, CAP_FOWNER }, ro[] = { CAP_DAC_READ_SEARCH };
	cap_t have = cap_get_proc(), want = cap_init();
	int r = 0;

	if (!have || !want) {
		r = -ENOMEM;
		goto out;
	}
	if (geteuid() == 0) {
		const cap_value_t *list = c->all_read_only ? ro : rw;
		int n = c->all_read_only ? ARRAY_SIZE(ro) : ARRAY_SIZE(rw);

		for (int i = 0; i < n; i++) {
			cap_flag_value_t v;

			if (cap_get_flag(have, list[i], CAP_PERMITTED, &v) < 0 || v != CAP_SET)
				continue;
			cap_set_flag(want, CAP_PERMITTED, 1, &list[i], CAP_SET);
			cap_set_flag(want, CAP_EFFECTIVE, 1, &list[i], CAP_SET);
		}
	}
	/* Without SETPCAP there is none to drop; nothing can be executed either. */
	for (int i = 0; prctl(PR_CAPBSET_DROP, i) == 0; i++)
		;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (cap_set_proc(want) < 0)
		r = -errno;
out:
	cap_free(have);
	cap_free(want);
	return r;
}

int confine_steady(struct confine *c, struct sbx_err *err)
{
	int r;

	if (c->mount_ns)
		c->empty_root = policy_empty_root() == 0;
	r = reopen_enter();
	if (r < 0)
		return sbx_fail(err, r, "enter /proc/self/fd");
	r = keep_caps(c);
	if (r < 0)
		return sbx_fail(err, r, "drop capabilities");
	return policy_enter(ROLE_GOFER, STAGE_STEADY, err);
}
