/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log: one line of JSON for each decision, numbered, each with the hash of the one before
 * it, so that a change, removal or insertion in the middle shows. Several sandboxes may write one
 * file. The chain has no key: who can write the file can write a new chain; compare the head that
 * each run reports (result "audit.head") with it.
 *
 * "hash" covers the bytes of the line before ,"hash": and comes last in it.
 */
#ifndef SBX_POLICY_AUDIT_H
#define SBX_POLICY_AUDIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/macros.h"
#include "base/sha256.h"

struct audit;

/* Strings may be NULL (empty) and hold anything; long ones are cut. */
struct audit_event {
	uint32_t pid; /* of the guest; 0: none */
	const char *exe, *source, *class, *op, *object, *mode, *verdict, *rule, *reason;
	uint32_t count;
};

/*
 * Opens or makes the log. A last line that a crash left unfinished is closed and noted. Fails on a
 * file whose end is no record of an audit log.
 */
MUST_CHECK int audit_open(const char *path, struct audit **ret, struct sbx_err *err);

/* Appends one event. What cannot be written is counted, and the count is logged as soon as writing
 * works again. */
void audit_write(struct audit *a, const char *sandbox, const struct audit_event *e);

/* One event is left out: it is counted as above. */
void audit_skip(struct audit *a);

struct audit_range {
	uint64_t first, last;          /* sequence numbers of what we wrote; 0: nothing */
	uint64_t lost;                 /* events not in the log */
	char head[8 + 2 * SHA256_LEN]; /* "sha256:..." of the last one */
};
void audit_get_range(const struct audit *a, struct audit_range *r);

/* Notes losses that are still open, and frees. NULL is allowed. */
void audit_close(struct audit *a);

struct audit_check {
	uint64_t records;
	uint64_t torn; /* unfinished lines that a crash left and a later record notes */
	uint64_t lost; /* events that the log itself says are missing */
	uint64_t line; /* of the first error, from 1; 0: the chain is whole */
	char why[160]; /* of the error */
	char head[8 + 2 * SHA256_LEN];
};

/* Reads the whole file. Returns 0 also when the chain is broken (check->line); -errno with @err for
 * a file that cannot be read. */
MUST_CHECK int audit_verify(FILE *f, struct audit_check *check, struct sbx_err *err);

/* One line of a log (without the newline): its number and the hash before it. For audit.c and the
 * fuzzer. */
struct audit_line {
	uint64_t seq;
	bool recovered; /* notes a torn line */
	uint64_t lost;
	char prev[8 + 2 * SHA256_LEN], hash[8 + 2 * SHA256_LEN];
};
/* Returns 0; -EINVAL when it is no record; -EBADMSG when its hash is wrong. */
MUST_CHECK int audit_line_parse(const char *line, size_t len, struct audit_line *out);

#endif
