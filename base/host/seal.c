/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/seal.h"

#include <errno.h>
#include <fcntl.h>

int host_add_seals(int fd, int seals)
{
	return fcntl(fd, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}
