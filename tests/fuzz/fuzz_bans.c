/* SPDX-License-Identifier: Apache-2.0 */
/* Shell strings and argument vectors come from the guest: the bans look at both. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "policy/match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input cut at its line ends is an argument vector; as a whole it is a shell string, and its
 * first line a pattern. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *argv[16],
	     *shell[] = { (char *)"sh", (char *)"-c", text, NULL };
	struct exec_verdict v;
	size_t n = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	ban_denied(shell[0], shell, &v);
	for (char *p = text; n < 15; p++) {
		argv[n++] = p;
		p = strchr(p, '\n');
		if (!p)
			break;
		*p = '\0';
	}
	argv[n] = NULL;
	ban_denied(argv[0], argv, &v);
	if (n > 1) {
		glob_match(argv[0], argv[1], 0);
		glob_match(argv[0], argv[1], GLOB_PATH);
	}
	free(text);
	return 0;
}
