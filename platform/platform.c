/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/platform.h"

const struct platform_ops *const platform_table[] = {
	&unotify_platform_ops,
	&ptrace_platform_ops,
	&kvm_platform_ops,
	NULL,
};
