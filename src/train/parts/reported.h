/* What was reported of the newest step of which anything was, where ranks go on without those who die: what
 * they repeat is not reported twice.
 *
 * Listener, journal and events hear what they have not heard yet. The root remembers what it reported; one
 * that becomes the root reads it in the journal, where each line was written at once: what is not there was
 * not reported. A listener is called after the journal is written, so of the event in which the previous root
 * died, it may not hear.
 */
#ifndef TR_TRAIN_REPORTED_H
#define TR_TRAIN_REPORTED_H

#include "base/text/text.h"
#include "trireme/train.h"

struct trainer_reported {
    int64_t step;        /* -1: nothing was reported */
    int64_t saved;       /* newest step whose checkpoint was reported, or -1 */
    struct tr_text keys; /* a line for each event */
};

/* Nothing was reported. */
void trainer_reported_begin(struct trainer_reported *reported);
void trainer_reported_release(struct trainer_reported *reported);
/* Whether an event was not reported yet; marks it so. Without memory for that, it may be reported twice. */
bool trainer_reported_is_news(struct trainer_reported *reported, const struct tr_train_event *event);
/* Learns what another process reported, as the journal in `directory` (may be NULL) has it; *checkpoint
   becomes the path of the newest one that was reported, free with tr_free(). What cannot be read was not
   reported. */
void trainer_reported_learn(struct trainer_reported *reported, const char *directory, char **checkpoint);

#endif
