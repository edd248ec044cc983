/* The facts about a run that its output needs: its beginning, and its last figures. */
#ifndef CLI_FACTS_H
#define CLI_FACTS_H

#include "trireme/train.h"

struct cli_facts {
    const char *out;             /* directory of checkpoints, borrowed */
    char *out_word;              /* `out` for a command line to be copied */
    struct tr_train_info info;   /* at the beginning of the run */
    struct tr_train_event first; /* as `last`, of the first event with figures; steps 0 before it */
    struct tr_train_event last;  /* figures of the last step; its strings are not valid */
    struct tr_train_event test;  /* of the last evaluation, with the same restriction; examples 0 before */
    char test_name[32];
    char *checkpoint; /* path of the last one, or NULL */
};

/* For a run that begins; `facts` is zero except `out`. TR_ENOMEM and errors of tr_trainer_info(); then
   nothing has to be released. */
tr_status cli_facts_begin(struct cli_facts *facts, const tr_trainer *trainer);
void cli_facts_release(struct cli_facts *facts);
/* Keeps the figures for the summary. */
void cli_facts_take(struct cli_facts *facts, const struct tr_train_event *event);

/* Whether a figure other than loss and accuracy, which are always reported, judges the run. */
bool cli_facts_monitors(const struct tr_train_info *info);

/* Examples per second over the whole run up to here. */
double cli_facts_speed(const struct cli_facts *facts);
/* The remaining seconds of a run at `event`; negative if unknown. */
double cli_facts_seconds_left(const struct cli_facts *facts, const struct tr_train_event *event);

#endif
