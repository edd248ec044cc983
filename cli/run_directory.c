#include "run_directory.h"

#include "base/alloc.h"
#include "base/config.h"
#include "base/fail.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"
#include "io/events.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define RUNS "runs"

/* A name of a directory: whatever the job is called, it stays below RUNS. */
static void make_harmless(char *name)
{
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("_-+=.,@", *at)) *at = '-';
    if (*name == '.') *name = '-';
}

static tr_status directory_of_job(const char *model, const struct tr_string_list *set, char **out)
{
    tr_config *root = NULL;
    TR_TRY(tr_config_read(model, &root));
    tr_status status = TR_OK;
    char *name = NULL;
    for (int32_t i = 0; i < set->count; i++) TR_TRY_GOTO(tr_config_set(root, set->item[i]), done);
    const tr_config *node = tr_config_get(root, "name");
    const char *text = node ? tr_config_text(node) : NULL;
    if (!text || !*text) {
        status = tr_config_fail(TR_EINVAL, node ? node : root,
                                "the job has no name; write `name: ...` into the file");
        goto done;
    }
    name = tr_strdup(text);
    if (!name) {
        status = TR_ENOMEM;
        goto done;
    }
    make_harmless(name);
    *out = tr_path_join(RUNS, name);
    if (!*out) status = TR_ENOMEM;
done:
    tr_free(name);
    tr_config_destroy(&root);
    return status;
}

/* A checkpoint lies in the directory of its run. */
static tr_status directory_of_resume(const char *resume, char **out)
{
    char *manifest = tr_path_join(resume, "manifest.json");
    if (!manifest) return TR_ENOMEM;
    *out = tr_file_exists(manifest) ? tr_path_parent(resume) : tr_strdup(resume);
    tr_free(manifest);
    return *out ? TR_OK : TR_ENOMEM;
}

tr_status cli_run_directory(const char *model, const struct tr_string_list *set, const char *resume,
                            char **out)
{
    return resume ? directory_of_resume(resume, out) : directory_of_job(model, set, out);
}

tr_status cli_run_check_unused(const char *directory)
{
    int64_t step;
    TR_TRY(tr_checkpoint_latest(directory, &step));
    if (step < 0) return TR_OK;
    return tr_fail(
        TR_EINVAL,
        "%s has checkpoints of an earlier run, up to step %" PRId64
        "; --resume %s goes on from there, --out DIR writes elsewhere, --overwrite removes them and "
        "begins anew",
        directory, step, directory);
}

/* What was written for TensorBoard. */
static tr_status remove_events(const char *directory)
{
    /* Evaluations are runs of their own below that of the training. */
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

tr_status cli_run_remove_checkpoints(const char *directory)
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
    return status == TR_OK ? remove_events(directory) : status;
}
