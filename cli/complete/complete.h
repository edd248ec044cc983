/* Completions of the word under the cursor, from the option tables. Only directories are opened. */
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

#include "base/text/text.h"

/* Paths that the shell completes itself. */
enum cli_complete_paths { CLI_COMPLETE_NONE, CLI_COMPLETE_FILES, CLI_COMPLETE_DIRECTORIES };

struct cli_candidates {
    const char *word;     /* their beginning; borrowed */
    struct tr_text lines; /* "candidate\tdescription\n" */
    enum cli_complete_paths paths;
};

/* Fills `out` for the last of `words` [count], which follow the name of the program; release its lines.
   TR_ENOMEM. */
tr_status cli_complete(const char *const *words, int count, struct cli_candidates *out);

/* Adds a candidate if it begins with the word. `about` (or NULL) becomes its description: the first clause.
 */
void cli_candidates_add(struct cli_candidates *out, const char *candidate, const char *about);
/* The same, of `head` and `tail`. */
void cli_candidates_join(struct cli_candidates *out, const char *head, const char *tail, const char *end,
                         const char *about);
/* `text`, which the candidates need: where it is NULL, for lack of memory, they are incomplete. */
char *cli_candidates_need(struct cli_candidates *out, char *text);

/* The values of one option of a command. The word is `head`, with which every candidate begins, and the
   typed part of the value. */
struct cli_command;
struct tr_option;
void cli_complete_value(struct cli_candidates *out, const struct cli_command *command,
                        const struct tr_option *option, const char *head);
/* Whether the values of the option are known: choices, names, paths; not a number or any text. */
bool cli_complete_knows(const struct cli_command *command, const struct tr_option *option);

#endif
