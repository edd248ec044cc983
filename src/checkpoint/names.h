/* Names in a run directory. */
#ifndef TR_CHECKPOINT_NAMES_H
#define TR_CHECKPOINT_NAMES_H

#include "base/files/ops.h"

/* A checkpoint by its name: "checkpoint-<step>" or "checkpoint-<step>-<edition>". */
struct tr_checkpoint_name {
    int64_t step;
    int64_t edition; /* 1, or 2 and more for further checkpoints of the same step */
};

/* Whether `name` is the name of a checkpoint, in its only form. */
bool tr_checkpoint_parse_name(const char *name, struct tr_checkpoint_name *out);

/* "<run>/checkpoint-<step>[-<edition>]<suffix>". Returned, free with tr_free(); NULL when memory fails. */
char *tr_checkpoint_make_path(const char *run, struct tr_checkpoint_name name, const char *suffix);

#define TR_CHECKPOINT_ASIDE     ".tmp"
#define TR_CHECKPOINT_ABANDONED ".abandoned"

/* The contents of a run directory. */
struct tr_checkpoint_scan {
    struct tr_checkpoint_name *found; /* ascending by step, then edition */
    int64_t count;
    struct tr_file_names names; /* all entries */
};

/* Reads a run directory. Returned, free with tr_checkpoint_scan_free(). TR_EIO, TR_ENOMEM. */
tr_status tr_checkpoint_scan(const tr_file_system *files, const char *run, struct tr_checkpoint_scan *out);
/* The marked checkpoint; false where there is none. TR_EIO, TR_ENOMEM. */
tr_status tr_checkpoint_find_best(const tr_file_system *files, const char *run,
                                  struct tr_checkpoint_name *out, bool *there);
/* Accepts an empty scan; empties it. */
void tr_checkpoint_scan_free(struct tr_checkpoint_scan *scan);

#endif
