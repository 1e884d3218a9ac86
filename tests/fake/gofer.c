/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for sbx-gofer in tests of the monitor: takes its configuration and waits for its end.
 */
#include <string.h>
#include <unistd.h>

#include "sentry/control/channel.h"

int main(void)
{
	Sbx__Control__Message *config, *m;
	int fds[WIRE_FDS_MAX];
	unsigned n;

	if (control_recv_config(CONTROL_FD, &config, fds, &n) != 1 ||
	    config->m_case != SBX__CONTROL__MESSAGE__M_GOFER_CONFIG)
		return 99;
	/* A grant whose path ends so asks for a gofer that dies. */
	for (size_t i = 0; i < config->gofer_config->n_protect; i++) {
		if (!strcmp(config->gofer_config->protect[i], "@die"))
			return 1;
	}
	while (control_recv(CONTROL_FD, &m, fds, &n) == 1)
		sbx__control__message__free_unpacked(m, NULL);
	sbx__control__message__free_unpacked(config, NULL);
	return 0;
}
