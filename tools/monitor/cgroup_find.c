/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/monitor/cgroup_find.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

bool cgroup_has_word(const char *list, const char *sep, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; *p; p += strspn(p, sep)) {
		size_t n = strcspn(p, sep);

		if (n == len && !memcmp(p, word, len))
			return true;
		p += n;
	}
	return false;
}

static const char *next_line(const char *p)
{
	p = strchr(p, '\n');
	return p ? p + 1 : "";
}

/* "4:memory:/a/b" or "0::/a/b": copies what comes after the second colon. */
static int own_path(const char *groups, const char *controller, char *path, size_t cap)
{
	char names[256];

	for (const char *p = groups; *p; p = next_line(p)) {
		const char *name = strchr(p, ':'), *at = name ? strchr(name + 1, ':') : NULL;
		size_t len, n = at ? (size_t)(at - name) - 1 : 0;

		if (!at || at > next_line(p) || n >= sizeof(names))
			continue;
		memcpy(names, name + 1, n);
		names[n] = '\0';
		if (controller ? !cgroup_has_word(names, ",", controller) : n != 0)
			continue;
		len = strcspn(++at, "\n");
		if (len >= cap || at[0] != '/')
			return -ENOENT;
		memcpy(path, at, len);
		path[len] = '\0';
		return 0;
	}
	return -ENOENT;
}

/* mountinfo writes blanks and backslashes as three octal digits. In place. */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' &&
		    s[3] <= '7') {
			*out++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

struct mount_line {
	char root[PATH_MAX], at[PATH_MAX], type[32], options[512];
};

/* "36 35 98:0 /root /at opts tags... - type source super-options" */
static bool parse_line(const char *from, struct mount_line *m)
{
	static char line[3 * PATH_MAX]; /* used by one thread */
	size_t len = strcspn(from, "\n");
	const char *dash;
	char format[80];

	if (len >= sizeof(line))
		return false;
	memcpy(line, from, len);
	line[len] = '\0';
	dash = strstr(line, " - ");
	if (!dash)
		return false;
	snprintf(format, sizeof(format), "%%*s %%*s %%*s %%%ds %%%ds", PATH_MAX - 1, PATH_MAX - 1);
	if (sscanf(line, format, m->root, m->at) != 2)
		return false;
	if (sscanf(dash + 3, "%31s %*s %511s", m->type, m->options) != 2)
		return false;
	unescape(m->root);
	unescape(m->at);
	return true;
}

/* What of @path lies below @root: "" or "/..."; NULL when it does not. */
static const char *below(const char *path, const char *root)
{
	size_t n = strlen(root);

	if (!strcmp(root, "/"))
		return strcmp(path, "/") ? path : "";
	if (strncmp(path, root, n) || (path[n] && path[n] != '/'))
		return NULL;
	return path + n;
}

int cgroup_find(const char *groups, const char *mounts, const char *controller, struct cgroup_place *p)
{
	static struct mount_line m; /* too large for a stack; used by one thread */
	char path[PATH_MAX];
	const char *rest;
	int r = own_path(groups, controller, path, sizeof(path));

	if (r)
		return r;
	for (; *mounts; mounts = next_line(mounts)) {
		if (!parse_line(mounts, &m) || strcmp(m.type, controller ? "cgroup" : "cgroup2"))
			continue;
		if (controller && !cgroup_has_word(m.options, ",", controller))
			continue;
		rest = below(path, m.root);
		if (!rest || strstr(rest, "/..") || strlen(m.at) + strlen(rest) >= sizeof(p->path))
			continue; /* a group outside of what is mounted */
		p->top_len = strlen(m.at);
		snprintf(p->path, sizeof(p->path), "%s%s", m.at, rest);
		return 0;
	}
	return -ENOENT;
}
