/* SPDX-License-Identifier: Apache-2.0 */
/* The result object of --json. */
#ifndef SBX_TOOLS_MONITOR_RESULT_H
#define SBX_TOOLS_MONITOR_RESULT_H

#include "base/jsonw.h"
#include "tools/monitor/monitor.h"

/* A ULID: sortable by time, 80 random bits. */
void result_new_id(char id[27]);

const char *result_status_name(enum run_status s);

void result_put_denial(struct jsonw *w, const char *key, const struct run_denial *d);

/* Writes the object and a newline. @merged: there is one stream, "output". @audit may be NULL. Once
 * for a result. */
void result_put(struct strbuf *sb, struct run_result *res, bool merged, const struct audit *audit);

#endif
