/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/macros.h"
#include "tools/monitor/monitor.h"
#include "tools/sbx/verb.h"

const struct verb verbs[] = {
	{ "exec", verb_exec, "[options] [--] COMMAND [ARG...]", "run a command in a new sandbox" },
	{ "policy", verb_policy, "check FILE | explain [exec options]",
	  "check a policy file, or say what would hold" },
	{ "audit", verb_audit, "verify FILE | show FILE",
	  "check the hash chain of an audit log, or read it" },
	{ "features", verb_features, "[--json]", "what this host and this build offer" },
	{ "version", verb_version, "", "print the version" },
	{ "help", verb_help, "[VERB]", "print help" },
};
const size_t verb_count = ARRAY_SIZE(verbs);

int verb_fail(const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "sbx: %s\n", line);
	return EXIT_SBX;
}

/* A file that we open must not become a standard stream by accident. */
static void fill_standard_fds(void)
{
	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			_exit(EXIT_SBX);
	}
}

int main(int argc, char **argv)
{
	const char *name;

	fill_standard_fds();
	log_init("sbx", STDERR_FILENO);
	if (argc < 2) {
		char *help[] = { (char *)"help", NULL };

		verb_help(1, help);
		return EXIT_SBX;
	}
	name = argv[1];
	if (!strcmp(name, "--version"))
		name = "version";
	else if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	for (size_t i = 0; i < verb_count; i++) {
		if (strcmp(verbs[i].name, name) != 0)
			continue;
		if (argc == 3 && !strcmp(argv[2], "--help")) {
			char *help[] = { (char *)"help", argv[1], NULL };

			return verb_help(2, help);
		}
		return verbs[i].fn(argc - 1, argv + 1);
	}
	return verb_fail("unknown command '%s' (see sbx help)", name);
}
