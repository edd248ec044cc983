/* The events of the newest step that were reported, for jobs that continue after deaths: so repeated
 * events are not reported twice.
 *
 * Listener, journal and event files get each event once. The root remembers its reports; a new root reads
 * them from the journal, where each line is written at once: events that are not there were not reported.
 * The listener is called after the journal is written, so it may miss the event during which the previous
 * root died.
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
/* Whether an event was not reported yet; marks it as reported. Without memory for that, it may be reported
   twice. */
bool trainer_reported_is_news(struct trainer_reported *reported, const struct tr_train_event *event);
/* Reads another process's reports from the journal in `directory` (may be NULL); *checkpoint becomes the
   path of the newest one that was reported, free with tr_free(). Events that cannot be read count as not
   reported. */
void trainer_reported_learn(struct trainer_reported *reported, const char *directory, char **checkpoint);

#endif
