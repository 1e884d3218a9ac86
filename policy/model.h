/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of one sandbox. A struct policy may be partial: what nobody set has a value that says
 * so (NULL, POLICY_UNSET, a false _set). Defaults, a policy file and the command line are merged in
 * that order; a file in the workspace may then only tighten the result.
 */
#ifndef SBX_POLICY_MODEL_H
#define SBX_POLICY_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/macros.h"
#include "policy/pool.h"

#define POLICY_UNSET UINT64_MAX
#define POLICY_VERSION 1

enum policy_mode { POLICY_RO, POLICY_COW, POLICY_RW };

struct policy_grant {
	char *path; /* absolute */
	enum policy_mode mode;
	bool exec;
};

struct grant_list {
	struct policy_grant *v;
	size_t n, cap;
};

/* Refuses a program by its resolved path or base name (glob) when each of args (globs) matches some
 * argument. */
struct exec_rule {
	char *id;
	char *program;
	struct str_list args;
	char *reason;
};

struct exec_rule_list {
	struct exec_rule *v;
	size_t n, cap;
};

/* The numeric limits, in the order of their descriptions (policy_limits). */
enum policy_limit {
	LIMIT_MEMORY, /* bytes */
	LIMIT_TASKS,
	LIMIT_DISK, /* bytes */
	LIMIT_INODES,
	LIMIT_CPU, /* ms; 0: none */
	LIMIT_OPEN_FILES,
	LIMIT_COUNT,
};

enum limit_unit { UNIT_BYTES, UNIT_COUNT, UNIT_SECONDS };

struct limit_desc {
	const char *key; /* in "limits" of a policy file */
	enum limit_unit unit;
	uint64_t min, max, def;
	bool zero_is_none; /* 0 stands for no limit at all */
};

extern const struct limit_desc policy_limits[LIMIT_COUNT];

enum audit_events { AUDIT_UNSET, AUDIT_DENY, AUDIT_ALL };

struct policy {
	struct pool pool;

	char *rootfs; /* "host" or an absolute path */
	struct grant_list grants;
	struct str_list protect, hide;

	struct str_list env; /* "K=V" */
	struct str_list pass_env;
	bool user_set;
	uint32_t uid, gid;
	uint64_t timeout_ms, idle_timeout_ms; /* 0: none */
	uint64_t limits[LIMIT_COUNT];

	struct exec_rule_list exec_deny;

	char *audit_file;
	enum audit_events audit_events;
};

#define POLICY_TIME_MAX_MS (30ull * 24 * 3600 * 1000)

void policy_init(struct policy *p); /* nothing is set */
void policy_fini(struct policy *p);

MUST_CHECK int policy_add_grant(struct policy *p, const char *path, enum policy_mode mode,
                                bool exec);
MUST_CHECK int policy_add_exec_rule(struct policy *p,
                                    const struct exec_rule *r); /* copies what it points to */

/* Puts @over on top: its scalars win, its lists are added. */
MUST_CHECK int policy_merge(struct policy *p, const struct policy *over);

/* Called for each part of a workspace file that is not taken over. */
typedef void (*policy_warn_fn)(void *ctx, const char *key, const char *why);

/* As policy_merge, but takes over from @ws (a file that the guest can write) only what gives the
 * guest less; the rest is reported through @warn. @p must be complete (policy_complete). */
MUST_CHECK int policy_tighten(struct policy *p, const struct policy *ws, policy_warn_fn warn,
                              void *ctx);

/* Gives every scalar that is still unset its default. */
MUST_CHECK int policy_complete(struct policy *p);

/* Parses a text (not NUL terminated) into a partial policy. Unknown keys, wrong types and numbers
 * out of range are refused with their position ("files.grants[0].mode"). On failure *@p is empty
 * and needs no policy_fini. */
MUST_CHECK int policy_parse(struct policy *p, const char *text, size_t len, struct sbx_err *err);

const char *policy_mode_name(enum policy_mode m);

/* "name" -> mode, or -EINVAL. */
MUST_CHECK int policy_mode_parse(const char *s);

/* "UID" or "UID:GID" (numbers). The group defaults to the user's number. */
MUST_CHECK int policy_user_parse(const char *s, uint32_t *uid, uint32_t *gid);

/* Sets limit @l from text. Returns 0, -EINVAL (no number) or -ERANGE. */
MUST_CHECK int policy_limit_parse(struct policy *p, enum policy_limit l, const char *s);
MUST_CHECK int policy_limit_set(struct policy *p, enum policy_limit l, uint64_t v);

#endif
