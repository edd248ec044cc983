/* What was told of the newest step of which anything was, where ranks go on without those who die: what they
 * repeat is not told twice.
 *
 * Listener, journal and events hear what they have not heard yet. The root remembers what it told; one that
 * becomes the root reads it in the journal, where each line was written at once: what is not there was not
 * told. A listener is told after the journal, so of the event that the root before died in, it may not hear.
 */
#ifndef TR_TRAIN_TOLD_H
#define TR_TRAIN_TOLD_H

#include "base/text/text.h"
#include "trireme/train.h"

struct trainer_told {
    int64_t step;        /* -1: nothing was told */
    int64_t saved;       /* newest step whose checkpoint was told, or -1 */
    struct tr_text keys; /* a line for each event */
};

/* Nothing was told. */
void trainer_told_begin(struct trainer_told *told);
void trainer_told_release(struct trainer_told *told);
/* Whether an event was not told yet; notes it as told. Without memory for a note, it may be told twice. */
bool trainer_told_is_news(struct trainer_told *told, const struct tr_train_event *event);
/* Learns what another process told, as the journal in `directory` (may be NULL) has it; *checkpoint becomes
   the path of the newest one that was told, free with tr_free(). What cannot be read was not told. */
void trainer_told_learn(struct trainer_told *told, const char *directory, char **checkpoint);

#endif
