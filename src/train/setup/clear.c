#include "train/setup/clear.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"
#include "io/events.h"

/* Removes TensorBoard's files. */
static tr_status remove_events(const char *directory)
{
    /* Evaluations are separate runs in subdirectories. */
    static const char *const below[] = {"test", "validation"};
    TR_TRY(tr_events_remove(NULL, directory));
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
        char *path = tr_path_join(directory, below[i]);
        tr_status status = path ? tr_events_remove(NULL, path) : TR_ENOMEM;
        tr_free(path);
        if (status != TR_OK) return status;
    }
    return TR_OK;
}

tr_status tr_run_clear(const char *directory)
{
    if (!tr_file_is_directory(directory)) return TR_OK;
    struct tr_checkpoint_scan scan;
    TR_TRY(tr_checkpoint_scan(NULL, directory, &scan));
    tr_status status = TR_OK;
    for (int64_t i = 0; i < scan.count && status == TR_OK; i++) {
        char *path = tr_checkpoint_make_path(directory, scan.found[i], "");
        status = path ? tr_file_remove(NULL, path) : TR_ENOMEM;
        tr_free(path);
    }
    tr_checkpoint_scan_free(&scan);
    bool there;
    if (status == TR_OK) status = tr_checkpoint_settle_best(NULL, directory, -1, &there);
    return status == TR_OK ? remove_events(directory) : status;
}
