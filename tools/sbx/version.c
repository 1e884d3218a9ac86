/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "tools/sbx/verb.h"

int verb_version(int argc, char **argv)
{
	printf("sbx %s\n", PACKAGE_VERSION);
	return 0;
}
