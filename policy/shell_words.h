/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader of shell command strings that is good enough for the bans: it cuts a string into simple
 * commands and their words, knows quotes, comments and operators, and expands nothing. Strings it
 * does not understand give fewer commands, never an error.
 */
#ifndef SBX_POLICY_SHELL_WORDS_H
#define SBX_POLICY_SHELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define SHELL_WORDS_MAX 256        /* of one command; more are left out */
#define SHELL_TEXT_MAX (64 * 1024) /* longer strings are not looked at */

struct shell_command {
	char *const *words; /* NULL terminated; without assignments in front and without reserved
	                       words */
	size_t n_words;
	char *const *redirects; /* targets of > >> <> */
	size_t n_redirects;
};

/* Calls @fn for each simple command until it returns false. The words are only valid during the
 * call. */
void shell_for_each(const char *text, bool (*fn)(void *ctx, const struct shell_command *c),
                    void *ctx);

/* A function that calls itself in a pipeline in the background, and a call of it: ":(){ :|:& };:"
 * in any spelling. */
bool shell_is_fork_bomb(const char *text);

#endif
