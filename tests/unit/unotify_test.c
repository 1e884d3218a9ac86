/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/stub_suite.h"

int main(int argc, char **argv)
{
	return stub_suite(&unotify_platform_ops, argc, argv);
}
