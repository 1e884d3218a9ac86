/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines of all processes. They go to one fd, opened before confinement (default: stderr), in text form
 * "sbx: CHANNEL: message". Channels switch at run time; the default shows warnings and errors of all channels.
 * Whatever the guest can trigger is logged at debug level or through log_limited_*. Strings that the guest or a
 * peer controls go through log_quote().
 */
#ifndef SBX_BASE_LOG_H
#define SBX_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

enum log_channel {
	CH_CORE,
	CH_PLATFORM,
	CH_TASK,
	CH_SIGNAL,
	CH_MM,
	CH_VFS,
	CH_FS,
	CH_GOFER,
	CH_LOADER,
	CH_SOCKET,
	CH_POLICY,
	CH_MONITOR,
	CH_STRACE, /* one line a guest system call */
	CH_COUNT,
};

enum log_level { LOG_ERR, LOG_WARN, LOG_INFO, LOG_DBG };

extern uint32_t log_debug_mask; /* bit per channel: show LOG_INFO and LOG_DBG */

/* The program's name in each line ("sbx-sentry"); borrowed for ever. */
void log_init(const char *program, int fd);

/* Parses "mm,signal" or "all". Returns 0, or -EINVAL for an unknown channel. */
MUST_CHECK int log_enable(const char *channels);

void log_write(enum log_level level, enum log_channel ch, const char *fmt, ...) PRINTF(3, 4);

/* Writes @src (not NUL terminated) into @dst with control bytes, quotes and non-ASCII escaped; truncates with "...".
 * Returns @dst. */
const char *log_quote(char *dst, size_t cap, const char *src, size_t len);

static inline bool log_on(enum log_channel ch)
{
	return unlikely(log_debug_mask & (1u << ch));
}

#define log_err(ch, ...)  log_write(LOG_ERR, ch, __VA_ARGS__)
#define log_warn(ch, ...) log_write(LOG_WARN, ch, __VA_ARGS__)
#define log_info(ch, ...) do { if (log_on(ch)) log_write(LOG_INFO, ch, __VA_ARGS__); } while (0)
#define log_dbg(ch, ...)  do { if (log_on(ch)) log_write(LOG_DBG, ch, __VA_ARGS__); } while (0)

#endif
