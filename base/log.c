/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

uint32_t log_debug_mask;

static const char *log_program = "sbx";
static int log_fd = 2;

static const char *const channel_names[] = {
	[CH_CORE] = "core",
	[CH_PLATFORM] = "platform",
	[CH_TASK] = "task",
	[CH_SIGNAL] = "signal",
	[CH_MM] = "mm",
	[CH_VFS] = "vfs",
	[CH_FS] = "fs",
	[CH_GOFER] = "gofer",
	[CH_LOADER] = "loader",
	[CH_SOCKET] = "socket",
	[CH_POLICY] = "policy",
	[CH_MONITOR] = "monitor",
	[CH_STRACE] = "strace",
};
static_assert(ARRAY_SIZE(channel_names) == CH_COUNT, "a name for each channel");

void log_init(const char *program, int fd)
{
	log_program = program;
	log_fd = fd;
}

static int channel_lookup(const char *name, size_t len)
{
	for (int i = 0; i < CH_COUNT; i++) {
		if (strlen(channel_names[i]) == len && !memcmp(channel_names[i], name, len))
			return i;
	}
	return -EINVAL;
}

int log_enable(const char *channels)
{
	while (*channels) {
		size_t len = strcspn(channels, ",");
		int ch;

		if (len == 3 && !memcmp(channels, "all", 3)) {
			log_debug_mask |= (1u << CH_COUNT) - 1;
		} else {
			ch = channel_lookup(channels, len);
			if (ch < 0)
				return ch;
			log_debug_mask |= 1u << ch;
		}
		channels += len;
		if (*channels == ',')
			channels++;
	}
	return 0;
}

void log_write(enum log_level level, enum log_channel ch, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n, m;

	n = snprintf(line, sizeof(line), "%s: %s%s", log_program, level <= LOG_WARN ? "" : channel_names[ch],
		     level <= LOG_WARN ? "" : ": ");
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	if (m < 0)
		return;
	n = MIN(n + m, (int)sizeof(line) - 2);
	line[n++] = '\n';
	while (write(log_fd, line, (size_t)n) < 0 && errno == EINTR)
		;
}

const char *log_quote(char *dst, size_t cap, const char *src, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	size_t o = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)src[i];

		if (o + 8 > cap) {
			if (o + 4 <= cap)
				memcpy(dst + o, "...", 3), o += 3;
			break;
		}
		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
			dst[o++] = (char)c;
		} else {
			dst[o++] = '\\';
			dst[o++] = 'x';
			dst[o++] = hex[c >> 4];
			dst[o++] = hex[c & 15];
		}
	}
	if (cap)
		dst[MIN(o, cap - 1)] = '\0';
	return dst;
}
