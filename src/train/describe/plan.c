/* Describes a training before anything is built. */
#include "train/describe/plan.h"

#include "base/alloc.h"
#include "base/options/config.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/sized.h"
#include "checkpoint/names.h"
#include "job/file/override.h"
#include "strategy/strategy.h"
#include "train/setup/join.h"
#include "trireme/train.h"

#include <string.h>

struct tr_job_settings tr_train_changes(const struct tr_train_settings *settings)
{
    return (struct tr_job_settings){
        .set = settings->set,
        .set_count = settings->set_count,
        .has_seed = settings->has_seed,
        .seed = settings->seed,
        .steps = settings->steps,
        .epochs = settings->epochs,
        .given = settings->data,
        .given_count = settings->data_count,
        .strategy = settings->strategy,
        .base = settings->from,
        .teacher = settings->teacher,
        .first_of_strategy = tr_strategy_first_option,
    };
}

const char *tr_train_model_name(const struct tr_train_settings *settings)
{
    if (!settings->model_text) return settings->model;
    return settings->model_name ? settings->model_name : "model";
}

struct tr_job_text tr_train_model_text(const struct tr_train_settings *settings)
{
    return (struct tr_job_text){
        .text = settings->model_text,
        .length = settings->model_length > 0 ? settings->model_length : strlen(settings->model_text),
        .name = tr_train_model_name(settings),
        .directory = settings->directory,
    };
}

tr_status tr_train_kept_file(const char *path, char **out)
{
    char *own = tr_path_join(path, TR_JOB_FILE);
    if (!own) return TR_ENOMEM;
    if (tr_file_exists(own)) {
        *out = own;
        return TR_OK;
    }
    tr_free(own);
    struct tr_checkpoint_scan scan;
    TR_TRY(tr_checkpoint_scan(NULL, path, &scan));
    tr_status status = TR_OK;
    if (scan.count == 0) {
        status = tr_fail(TR_ENOTFOUND, "there is no checkpoint in %s", path);
    } else {
        *out = tr_checkpoint_make_path(path, scan.found[scan.count - 1], "/" TR_JOB_FILE);
        if (!*out) status = TR_ENOMEM;
    }
    tr_checkpoint_scan_free(&scan);
    return status;
}

char *tr_train_replayed_run(const char *replay)
{
    return tr_file_is_directory(replay) ? tr_strdup(replay) : tr_path_parent(replay);
}

/* The model file that a checkpoint in memory keeps. */
static tr_status read_state(const struct tr_run_state *state, tr_config **root)
{
    tr_checkpoint *checkpoint;
    if (!state->bytes)
        return tr_fail(TR_EINVAL,
                       "a function gives its state once, which the training needs; give bytes to plan with");
    TR_TRY(tr_checkpoint_open_state(state, &checkpoint));
    const char *text = tr_checkpoint_file(checkpoint, TR_JOB_FILE, NULL);
    tr_status status =
        text ? tr_config_parse(text, strlen(text), TR_JOB_FILE, root)
             : tr_fail(TR_EFORMAT, "the state keeps no %s; it was not written by training", TR_JOB_FILE);
    tr_checkpoint_close(&checkpoint);
    return status;
}

static tr_status read_model(const struct tr_train_settings *settings, tr_config **root)
{
    if (settings->model_text) {
        const struct tr_job_text model = tr_train_model_text(settings);
        return tr_job_parse(&model, root);
    }
    if (settings->model) return tr_config_read(settings->model, root);
    if (tr_checkpoint_state_is_given(&settings->state)) return read_state(&settings->state, root);
    if (!settings->resume && !settings->replay)
        return tr_fail(TR_EINVAL, "nothing to train; give a model file, or a checkpoint to resume");
    char *path = NULL, *run = settings->replay ? tr_train_replayed_run(settings->replay) : NULL;
    if (settings->replay && !run) return TR_ENOMEM;
    tr_status status = tr_train_kept_file(run ? run : settings->resume, &path);
    if (status == TR_OK) status = tr_config_read(path, root);
    tr_free(path);
    tr_free(run);
    return status;
}

tr_status tr_train_plan(const struct tr_train_settings *given, struct tr_train_plan *out)
{
    struct tr_train_settings full, *settings = &full;
    struct tr_train_plan plan = TR_TRAIN_PLAN_INIT;
    TR_TRY(tr_train_settings_take(given, settings));
    struct tr_job_settings changes = tr_train_changes(settings);
    tr_config *root = NULL;
    TR_TRY(read_model(settings, &root));
    tr_status status = tr_job_override(root, &changes);
    if (status == TR_OK)
        status = tr_strategy_peek(tr_config_get(root, "strategy"), &plan.strategy, &plan.asynchronous);
    if (settings->replay || settings->schedule || settings->simulate_delays) plan.asynchronous = false;
    tr_config_destroy(&root);
    /* The check needs the unchanged file: the replaced settings determine how it is read. */
    if (status == TR_OK) status = read_model(settings, &root);
    if (status == TR_OK) status = tr_job_check(root, tr_train_model_name(settings), &changes);
    return status == TR_OK ? tr_sized_give(&plan, sizeof plan, "TR_TRAIN_PLAN_INIT", out) : status;
}
