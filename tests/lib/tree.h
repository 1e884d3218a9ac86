/* SPDX-License-Identifier: Apache-2.0 */
/* Files below a directory that a test made. */
#ifndef SBX_TESTS_LIB_TREE_H
#define SBX_TESTS_LIB_TREE_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The path of @rel below @top, in one of four buffers that are used in turn. */
static inline const char *tree_at(const char *top, const char *rel)
{
	static char buf[4][512];
	static unsigned i;

	i = (i + 1) % 4;
	snprintf(buf[i], sizeof(buf[i]), "%s/%s", top, rel);
	return buf[i];
}

/* Writes @text to the file, which is created; @flags: O_TRUNC or O_APPEND. */
static inline void tree_put(const char *path, const char *text, int flags)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC | flags, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		perror(path);
	close(fd);
}

#endif
