/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of sbx: one file each. */
#ifndef SBX_TOOLS_SBX_VERB_H
#define SBX_TOOLS_SBX_VERB_H

#include <stddef.h>

/* argv[0] is the verb. Returns the exit code; has printed its message. */
int verb_audit(int argc, char **argv);
int verb_exec(int argc, char **argv);
int verb_features(int argc, char **argv);
int verb_help(int argc, char **argv);
int verb_policy(int argc, char **argv);
int verb_version(int argc, char **argv);

struct verb {
	const char *name;
	int (*fn)(int argc, char **argv);
	const char *args; /* for help */
	const char *help;
};

extern const struct verb verbs[];
extern const size_t verb_count;

/* Prints "sbx: message" and returns the exit code of sbx's own failures. */
int verb_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
