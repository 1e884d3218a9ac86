/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of a platform that runs guests in stubs; the program "bench" as argument measures. */
#ifndef SBX_TESTS_UNIT_STUB_SUITE_H
#define SBX_TESTS_UNIT_STUB_SUITE_H

#include "platform/platform.h"

int stub_suite(const struct platform_ops *platform, int argc, char **argv);

#endif
