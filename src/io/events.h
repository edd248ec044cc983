/* TensorBoard's event files: what happened in a run, as records (io/record.h) that hold an Event each
 * (io/proto/event.proto). The first one identifies the format, "brain.Event:2".
 *
 * A file grows by whole records, with one write for all that were added since the last one; a killed
 * process leaves it readable up to the last whole record. The files of a directory are one run and are
 * read in the order of their names, which begin with a time: each new file gets a later one than the
 * existing files.
 */
#ifndef TR_IO_EVENTS_H
#define TR_IO_EVENTS_H

#include "base/files/ops.h"
#include "io/histogram.h"

/* A file being written. Used by one thread at a time. */
typedef struct tr_events tr_events;

/* Begins `directory`/events.out.tfevents.<seconds>.<host>.<process>; the directory exists. `wall` is the
   time, as of tr_clock_wall(). `files` is borrowed until closing, `directory` for the call. Returned, end
   with tr_events_close(). TR_EIO, TR_ENOMEM. */
tr_status tr_events_create(const tr_file_system *files, const char *directory, double wall, tr_events **out);
/* Writes pending records and closes; nulls the handle, also on failure. Accepts NULL. TR_EIO. */
tr_status tr_events_close(tr_events **events);
/* Removes the event files of a directory, which may be missing, and no others. TR_EIO, TR_ENOMEM. */
tr_status tr_events_remove(const tr_file_system *files, const char *directory);
/* The path of the file, borrowed until closing. */
const char *tr_events_path(const tr_events *events);

/* Values added from here on belong to this step and time. */
void tr_events_stamp(tr_events *events, int64_t step, double wall);
/* Writes pending records. Adding does it too, once many are pending. After a failure of this or of adding
   (TR_EIO is possible), only closing is allowed, since the file then ends within a record. */
tr_status tr_events_flush(tr_events *events);

/* Discards values of earlier files of the run for steps from the present one on. */
tr_status tr_events_restart(tr_events *events);

/* Tags name the values; parts before a slash are groups. All arguments are borrowed for the call. */
tr_status tr_events_scalar(tr_events *events, const char *tag, double value);
tr_status tr_events_histogram(tr_events *events, const char *tag, const struct tr_histogram *histogram);
/* A text in Markdown. */
tr_status tr_events_text(tr_events *events, const char *tag, const char *text);

struct tr_events_image {
    int32_t height, width, channels;
    const uint8_t *png;
    size_t size;
};
tr_status tr_events_image(tr_events *events, const char *tag, const struct tr_events_image *image);

/* The graph of the run: a serialized GraphDef, as of tr_graph_pack(). */
tr_status tr_events_graph(tr_events *events, const void *graph, size_t size);

/* A hyperparameter: a text, or else a number or truth value. */
struct tr_hparam {
    const char *name;
    enum { TR_HPARAM_NUMBER, TR_HPARAM_BOOL, TR_HPARAM_TEXT } kind;
    double number; /* a number, or 0 and 1 for a truth value */
    const char *text;
};
/* The beginning of a session with its hyperparameters. */
tr_status tr_events_session_begin(tr_events *events, const struct tr_hparam *hparams, int count);
/* The end of a session, and whether it succeeded. */
tr_status tr_events_session_end(tr_events *events, bool success);

#endif
