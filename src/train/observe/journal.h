/* The journal of a run: its events, beginning and end, one JSON object a line in the run's directory.
 * `trireme report` and `trireme diff` read it (report/run.h).
 *
 * A line is written at once. If the journal cannot be written, it is abandoned, and the run continues.
 */
#ifndef TR_TRAIN_JOURNAL_H
#define TR_TRAIN_JOURNAL_H

#include "base/files/file.h"
#include "base/text/json.h"

#include "trireme/train.h"

/* The file in the directory of a run. */
#define TR_JOURNAL_FILE "journal.jsonl"

struct tr_journal {
    char *path;
    struct tr_file_writer file; /* not open: nothing is written */
    char *problem;              /* why it was abandoned, until it is reported; or NULL */
};

/* Opens the journal in `directory`, which is made if needed: new, or after its present contents. */
void tr_journal_open(struct tr_journal *journal, const char *directory, bool goes_on);
/* Writes the object that was begun, and releases it. */
void tr_journal_write(struct tr_journal *journal, struct tr_json_writer *json);
/* Stops writing; the thread's message says why. */
void tr_journal_give_up(struct tr_journal *journal);
/* Closes an open journal. A failure to write then is reported, too. */
void tr_journal_close(struct tr_journal *journal);
/* Closes it and frees all; accepts zeros. */
void tr_journal_release(struct tr_journal *journal);

/* ---- its objects; they are those of `trireme train --log json`, too ---- */

/* The beginning of a run. `out` and `command` may be NULL. */
void tr_journal_add_start(struct tr_json_writer *json, const struct tr_train_info *info, const char *out,
                          const char *command);
/* Begins an object for an event; false, and nothing begun, for events that are left out: progress, which
   is for people, and the end, which has its own entry. */
bool tr_journal_add_event(struct tr_json_writer *json, bool classification,
                          const struct tr_train_event *event);

struct tr_journal_end {
    tr_status status;
    int exit;            /* code of the program that ran it; -1: left out */
    const char *message; /* of a failure */
    int64_t step;        /* steps done */
    double seconds, examples_per_second;
    double tokens_per_second;                     /* NaN: left out */
    const char *hash, *checkpoint;                /* "" where there is none */
    const struct tr_train_info *best;             /* of the best evaluation; NULL: there is none */
    const struct tr_train_statistics *statistics; /* or NULL */
};
void tr_journal_add_end(struct tr_json_writer *json, const struct tr_journal_end *end);
/* Adds the member "statistics". */
void tr_journal_add_statistics(struct tr_json_writer *json, const struct tr_train_statistics *statistics);

#endif
