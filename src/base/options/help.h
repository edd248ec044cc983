/* --help in groups and at any width, and its parts for other forms of output. */
#ifndef TR_BASE_OPTIONS_HELP_H
#define TR_BASE_OPTIONS_HELP_H

#include "base/options/option.h"
#include "base/text/text.h"

/* A heading of --help and the options below it, in their order: keys with blanks between them; NULL: all
   options that are in no other group. Arrays end with a NULL heading; an option of the table is in at most
   one group. */
struct tr_option_group {
    const char *heading; /* "Several processes" */
    const char *keys;
};

/* As tr_options_help(), with options by group (NULL: all of them as "Options"), wrapped at `width` columns.
 */
tr_status tr_options_help_in(const char *command, const char *about, const struct tr_option *table,
                             int32_t count, const struct tr_option_group *groups, int width, char **out);
/* The parts of that text, for other forms of output: "trireme train [options] MODEL"; an option's names
   and the placeholder of its value, " -o, --out DIR" (four blanks where there is no letter); and its help,
   with choices, range and default. */
void tr_options_add_usage(struct tr_text *text, const char *command, const struct tr_option *table,
                          int32_t count);
void tr_option_add_names(struct tr_text *text, const struct tr_option *option);
void tr_option_add_about(struct tr_text *text, const struct tr_option *option);
/* Option `index`, from 0, of those below heading `group`; NULL after the last one. */
const struct tr_option *tr_options_grouped(const struct tr_option *table, int32_t count,
                                           const struct tr_option_group *groups, int32_t group,
                                           int32_t index);

#endif
