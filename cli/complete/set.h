/* Values with a separate grammar: settings of a model file, and strategies with options. */
#ifndef CLI_COMPLETE_SET_H
#define CLI_COMPLETE_SET_H

#include "cli/complete/complete.h"

#include "base/options/option.h"

/* In all of these the word is `head` and the typed part of the value. */

/* The names that a choice, or a flag, allows. */
void cli_complete_choices(struct cli_candidates *out, const char *head, const struct tr_option *option);
/* "optimizer.rate=1e-3": keys of a model file, and after '=' their values. */
void cli_complete_setting(struct cli_candidates *out, const char *head);
/* "local-sgd,every=4"; in a list names may follow, too. */
void cli_complete_strategy(struct cli_candidates *out, const char *head, bool list);

#endif
