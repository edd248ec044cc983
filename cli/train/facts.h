/* The facts about a run that its output needs: as it began, and its last figures. */
#ifndef CLI_FACTS_H
#define CLI_FACTS_H

#include "trireme/train.h"

struct cli_facts {
    const char *out;             /* directory of checkpoints, borrowed */
    char *out_word;              /* `out` for a command line to be copied */
    struct tr_train_info info;   /* as the run began */
    struct tr_train_event first; /* as `last`, of the first event with figures; steps 0 before */
    struct tr_train_event last;  /* figures of the last step; its strings are not valid */
    struct tr_train_event test;  /* of the last evaluation, with the same restriction; examples 0 before */
    char test_name[32];
    char *checkpoint; /* path of the last one, or NULL */
};

/* Of a run that begins; `facts` is zero but for `out`. TR_ENOMEM and what tr_trainer_info() says; then
   nothing has to be released. */
tr_status cli_facts_begin(struct cli_facts *facts, const tr_trainer *trainer);
void cli_facts_release(struct cli_facts *facts);
/* Remembers what the summary needs. */
void cli_facts_take(struct cli_facts *facts, const struct tr_train_event *event);

/* Whether the run is judged by another figure than loss and accuracy, which are always reported. */
bool cli_facts_monitors(const struct tr_train_info *info);

/* Examples a second over the whole run so far. */
double cli_facts_speed(const struct cli_facts *facts);
/* Of a run that is at `event`; negative while nothing can be said. */
double cli_facts_seconds_left(const struct cli_facts *facts, const struct tr_train_event *event);

#endif
