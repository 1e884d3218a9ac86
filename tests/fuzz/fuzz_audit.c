/* SPDX-License-Identifier: Apache-2.0 */
/* `sbx audit verify` reads files that anybody may have changed. */
#include <stdint.h>
#include <stdio.h>

#include "policy/audit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sbx_err err = { 0 };
	struct audit_check check;
	FILE *f;

	if (!size)
		return 0;
	f = fmemopen((void *)(uintptr_t)data, size, "r");
	if (!f)
		return 0;
	(void)!audit_verify(f, &check, &err);
	fclose(f);
	return 0;
}
