/* SPDX-License-Identifier: Apache-2.0 */
/* Character devices by number, whatever file system their node is on. */
#ifndef SBX_SENTRY_FS_CHARDEV_H
#define SBX_SENTRY_FS_CHARDEV_H

#include <stdint.h>

struct file_ops;

/* The operations of files opened on device @rdev; NULL: no such device (-ENXIO on open). */
const struct file_ops *chardev_ops(uint64_t rdev);

#endif
