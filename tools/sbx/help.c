/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "tools/sbx/exec_opts.h"
#include "tools/sbx/verb.h"

static void help_exec(void)
{
	printf("usage: sbx exec [options] [--] COMMAND [ARG...]\n"
	       "       sbx exec [options] --shell STRING\n\n"
	       "Runs a command in a new sandbox. It sees the host's system directories (changes to "
	       "them stay in the\n"
	       "sandbox) and the workspace, no network, and none of the caller's "
	       "environment.\n\noptions:\n");
	opt_print_help(exec_opt_table, exec_opt_count);
	printf("\nexit codes: the command's own; 124 timeout; 125 sbx failed; 126 refused; 127 not "
	       "found;\n"
	       "128+N ended by signal N\n");
}

int verb_help(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "exec")) {
		help_exec();
		return 0;
	}
	for (size_t i = 0; argc > 1 && i < verb_count; i++) {
		if (!strcmp(verbs[i].name, argv[1])) {
			printf("usage: sbx %s %s\n\n%s\n", verbs[i].name, verbs[i].args,
			       verbs[i].help);
			return 0;
		}
	}
	if (argc > 1)
		return verb_fail("no such command '%s'", argv[1]);
	printf("usage: sbx COMMAND ...\n\n");
	for (size_t i = 0; i < verb_count; i++)
		printf("  %-10s %s\n", verbs[i].name, verbs[i].help);
	printf("\nsbx help COMMAND tells more.\n");
	return 0;
}
