/* SPDX-License-Identifier: Apache-2.0 */
/* A workspace's policy file is written by the guest: parsed, then taken over as far as it tightens.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/bug.h"
#include "policy/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *ctx, const char *key, const char *why)
{
	(void)ctx;
	(void)key;
	(void)why;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sbx_err err = { 0 };
	struct policy ws, p;
	uint64_t before[LIMIT_COUNT];

	if (policy_parse(&ws, (const char *)data, size, &err)) {
		BUG_ON(!err.code || !err.msg[0]);
		return 0;
	}
	policy_init(&p);
	if (policy_complete(&p))
		abort();
	for (int i = 0; i < LIMIT_COUNT; i++)
		before[i] = p.limits[i];
	if (policy_tighten(&p, &ws, ignore, NULL))
		abort();
	/* Whatever the file says, the guest never gets more. */
	for (int i = 0; i < LIMIT_COUNT; i++)
		BUG_ON(p.limits[i] > before[i] &&
		       !(policy_limits[i].zero_is_none && before[i] == 0));
	BUG_ON(p.grants.n || p.user_set || p.pass_env.n || p.audit_file);
	BUG_ON(p.timeout_ms == 0 || p.timeout_ms > 60000);
	policy_fini(&p);
	policy_fini(&ws);
	return 0;
}
