/* The mark of the best checkpoint: a symbolic link beside the checkpoints, whose text is the name of one. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"

#include <string.h>

/* Longer than any name of a checkpoint. */
#define TEXT_SIZE 128

tr_status tr_checkpoint_find_best(const tr_file_system *files, const char *run,
                                  struct tr_checkpoint_name *out, bool *there)
{
    char text[TEXT_SIZE];
    char *path = tr_path_join(run, TR_CHECKPOINT_BEST);
    *there = false;
    if (!path) return TR_ENOMEM;
    tr_status status = tr_file_read_link(files, path, text, sizeof text);
    tr_free(path);
    if (status == TR_OK) *there = tr_checkpoint_parse_name(text, out);
    return status;
}

tr_status tr_checkpoint_mark_best(const tr_file_system *files, const char *run, const char *name)
{
    char *path = tr_path_join(run, TR_CHECKPOINT_BEST);
    tr_status status = path ? tr_file_point(files, path, name) : TR_ENOMEM;
    tr_free(path);
    return status == TR_OK ? TR_OK
                           : tr_fail_in(status, "%s is saved, but could not be marked as the best", name);
}

static tr_status unmark(const tr_file_system *files, const char *run)
{
    char *path = tr_path_join(run, TR_CHECKPOINT_BEST);
    tr_status status = path ? tr_file_remove(files, path) : TR_ENOMEM;
    tr_free(path);
    return status;
}

/* Marks the newest of the found checkpoints of this step. */
static tr_status mark_step(const tr_file_system *files, const char *run,
                           const struct tr_checkpoint_scan *scan, int64_t step, bool *there)
{
    struct tr_checkpoint_name marked = {0};
    bool is_marked;
    int64_t i = scan->count - 1;
    while (i >= 0 && scan->found[i].step != step) i--;
    *there = i >= 0;
    if (i < 0) return unmark(files, run);
    TR_TRY(tr_checkpoint_find_best(files, run, &marked, &is_marked));
    if (is_marked && marked.step == step && marked.edition == scan->found[i].edition) return TR_OK;
    char *path = tr_checkpoint_make_path(run, scan->found[i], "");
    tr_status status = path ? tr_checkpoint_mark_best(files, run, tr_path_name(path)) : TR_ENOMEM;
    tr_free(path);
    return status;
}

tr_status tr_checkpoint_settle_best(const tr_file_system *files, const char *run, int64_t step, bool *there)
{
    struct tr_checkpoint_scan scan;
    *there = false;
    TR_TRY(tr_checkpoint_scan(files, run, &scan));
    tr_status status = mark_step(files, run, &scan, step, there);
    tr_checkpoint_scan_free(&scan);
    return status;
}

tr_status tr_checkpoint_open_best(const char *run, tr_checkpoint **out)
{
    *out = NULL;
    if (!tr_file_exists(run)) return tr_fail(TR_ENOTFOUND, "run \"%s\" does not exist; check the path", run);
    char *path = tr_path_join(run, TR_CHECKPOINT_BEST);
    if (!path) return TR_ENOMEM;
    tr_status status =
        tr_file_exists(path)
            ? tr_checkpoint_open(path, out)
            : tr_fail(TR_ENOTFOUND,
                      "\"%s\" has no " TR_CHECKPOINT_BEST
                      ": a run keeps it if it evaluates during training (train.evaluate_every) with "
                      "train.patience, train.until_accuracy or train.keep_best",
                      run);
    tr_free(path);
    return status;
}
