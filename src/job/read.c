/* Reading a job: from a model file, a text, or a checkpoint. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/path.h"
#include "base/numbers/hash.h"
#include "data/tables/join.h"
#include "job/base.h"
#include "job/file/augmentation.h"
#include "job/file/input.h"
#include "job/file/monitor.h"
#include "job/file/override.h"
#include "job/file/settings.h"
#include "job/file/warmup.h"
#include "job/job.h"
#include "job/sets.h"
#include "job/teacher.h"

#include <inttypes.h>
#include <string.h>

/* ---- reading ---- */

static tr_status read_sections(struct tr_job *job)
{
    const tr_config *root = job->root;
    TR_TRY(tr_options_read(tr_file_option_table, tr_file_option_count, root, "model file", &job->file));
    bool has_adapters;
    TR_TRY(tr_adapters_read(root, &job->adapters, &has_adapters));
    TR_TRY(tr_job_read_distill(job));
    if (job->file.data)
        TR_TRY(
            tr_options_read(tr_data_option_table, tr_data_option_count, job->file.data, "data", &job->data));
    TR_TRY(
        tr_options_read(tr_input_option_table, tr_input_option_count, job->file.input, "input", &job->input));
    return tr_options_read(tr_train_option_table, tr_train_option_count, job->file.train, "train",
                           &job->train);
}

/* ---- the run ---- */

/* Validation data are named, or given as a fraction or a fold. */
static tr_status check_split(const struct tr_job *job)
{
    const struct tr_data_options *data = &job->data;
    const tr_config *node = job->file.data;
    bool named = data->validation && tr_config_kind(data->validation) != TR_CONFIG_NULL;
    if (named && tr_data_is_split(data))
        return tr_config_fail(TR_EINVAL, data->validation,
                              "there are validation data and a %s; give one of them",
                              data->folds > 0 ? "number of folds" : "validation_split");
    if (data->folds > 0 && data->validation_split > 0)
        return tr_config_fail(TR_EINVAL, node, "there are folds and a validation_split; give one of them");
    if (data->folds == 1)
        return tr_config_fail(TR_EINVAL, node, "folds: 1 leaves nothing to train on; give 2 or more");
    if (data->folds == 0 && data->fold > 1)
        return tr_config_fail(TR_EINVAL, node,
                              "fold: %" PRId32 " is one of folds, and there are none; set folds", data->fold);
    if (data->folds > 0 && data->fold > data->folds)
        return tr_config_fail(TR_EINVAL, node, "fold %" PRId32 " of %" PRId32 "; give 1 to %" PRId32,
                              data->fold, data->folds, data->folds);
    if (!tr_data_is_split(data) && (data->split != TR_SPLIT_RANDOM || data->split_seed >= 0))
        return tr_config_fail(TR_EINVAL, node,
                              "%s is of a split, and there is none; set validation_split or folds",
                              data->split_seed >= 0 ? "split_seed" : "split: stratified");
    return TR_OK;
}

/* Checks the settings of the run that do not depend on the data. */
static tr_status check_run(struct tr_job *job)
{
    struct tr_train_options *train = &job->train;
    const tr_config *node = job->file.train;
    if (train->microbatches == 0) train->microbatches = tr_microbatch_rule(train->batch);
    if (train->microbatches > train->batch)
        return tr_config_fail(TR_EINVAL, node,
                              "%" PRId64 " microbatches for a batch of %" PRId64
                              " examples; give at most as many as examples",
                              train->microbatches, train->batch);
    if (train->pass & (train->pass - 1))
        return tr_config_fail(TR_EINVAL, node, "pass is %" PRId64 ", but must be a power of two",
                              train->pass);
    if ((train->sampling == TR_SAMPLING_SHARES) != (train->sampling_shares.count > 0))
        return tr_config_fail(TR_EINVAL, node,
                              train->sampling_shares.count > 0
                                  ? "sampling_shares are given, but sampling is not shares; set it"
                                  : "sampling: shares needs sampling_shares, one number for each class");
    TR_TRY(check_split(job));
    if (train->monitor && train->evaluate_every == 0)
        return tr_config_fail(
            TR_EINVAL, node,
            "monitor: %s is a figure of evaluations during the run; set train.evaluate_every",
            train->monitor);
    if ((train->steps > 0) == (train->epochs > 0))
        return tr_config_fail(
            TR_EINVAL, node,
            train->steps > 0
                ? "give steps or epochs, not both; `steps` or `epochs` of the settings replaces both"
                : "give steps or epochs");
    return TR_OK;
}

/* Computes the steps of epochs; the data must be open. */
static tr_status resolve_run(struct tr_job *job)
{
    struct tr_train_options *train = &job->train;
    const tr_config *node = job->file.train;
    if (train->epochs == 0) return TR_OK;
    if (!job->source[TR_SET_TRAIN])
        return tr_config_fail(TR_EINVAL, node, "epochs need the data; give steps");
    int64_t per_epoch = tr_job_steps_per_epoch(job);
    if (__builtin_mul_overflow(per_epoch, train->epochs, &train->steps) || train->steps < 1)
        return tr_config_fail(TR_EINVAL, node,
                              "%" PRId64 " epochs of %" PRId64 " steps are no number of steps to train",
                              train->epochs, per_epoch);
    TR_TRY(tr_config_put_integer(job->root, "train", "steps", train->steps));
    return tr_config_put_integer(job->root, "train", "epochs", 0);
}

static tr_status make_digest(struct tr_job *job)
{
    char *text;
    TR_TRY(tr_settings_text(job, &text));
    tr_status status = tr_sha256_of(text, strlen(text), job->digest);
    tr_free(text);
    return status;
}

/* ---- opening ---- */

static tr_status default_directory(struct tr_job *job, const char *path)
{
    if (job->file.directory) return TR_OK;
    const char *slash = path ? strrchr(path, '/') : NULL;
    char *directory = slash ? tr_format("%.*s", (int)(slash - path), path) : tr_strdup(".");
    if (!directory) return TR_ENOMEM;
    char *absolute = tr_path_absolute(*directory ? directory : "/");
    tr_status status =
        absolute ? tr_job_resolve_text(job, &job->file.directory, NULL, "directory", absolute) : TR_ENOMEM;
    tr_free(absolute);
    tr_free(directory);
    return status;
}

static tr_status build_network(struct tr_job *job)
{
    TR_TRY(tr_job_input_read(job));
    struct tr_source_parts parts;
    struct tr_model_input input = {
        .shape = tr_job_input_shape(job), .vocabulary = job->input.vocabulary, .steps = job->input.steps};
    if (tr_job_is_number_image(job)) {
        struct tr_shape stored, wanted;
        tr_job_image(job, &stored, &wanted);
        for (int i = 0; i < 3; i++) input.image[i] = wanted.size[i];
    }
    tr_job_input_parts(job, &parts);
    input.part_count = parts.count;
    input.part = parts.part;
    input.text_part = parts.text;
    input.second_text = parts.second;
    input.second_vocabulary = parts.second_vocabulary;
    input.whole = job->whole;
    TR_TRY(tr_model_build(job->root, &input, &job->model));
    TR_TRY(tr_augmentation_settle(job));
    TR_TRY(tr_model_recompute(job->model, &job->train.recompute));
    TR_TRY(tr_job_settle_distill(job));
    return job->whole ? TR_OK : tr_job_open_base(job);
}

static tr_status complete(struct tr_job *job)
{
    TR_TRY(check_run(job));
    TR_TRY(resolve_run(job));
    TR_TRY(tr_monitor_check(job));
    TR_TRY(tr_warmup_shrink(job));
    TR_TRY(tr_optimizer_read(job->file.optimizer, job->train.steps, &job->optimizer));
    return make_digest(job);
}

static tr_status default_sections(struct tr_job *job)
{
    TR_TRY(tr_options_defaults(tr_file_option_table, tr_file_option_count, &job->file));
    TR_TRY(tr_options_defaults(tr_data_option_table, tr_data_option_count, &job->data));
    TR_TRY(tr_options_defaults(tr_input_option_table, tr_input_option_count, &job->input));
    return tr_options_defaults(tr_train_option_table, tr_train_option_count, &job->train);
}

/* Length to check a schedule with, if it has none and epochs are not counted yet, or if the warm-up may be
   shortened. */
#define STEPS_MOST ((int64_t)1 << 53)

/* Checks the file, so that its faults are reported before those of the data. */
static tr_status check_file(struct tr_job *job)
{
    struct tr_optimizer optimizer;
    struct tr_source_parts parts;
    TR_TRY(check_run(job));
    TR_TRY(tr_job_input_names(job, tr_job_set_node(job, TR_SET_TRAIN), &parts));
    TR_TRY(tr_model_check(job->root, &(struct tr_model_input){.part_count = parts.count,
                                                              .part = parts.part,
                                                              .text_part = parts.text,
                                                              .second_text = parts.second}));
    bool counted = job->train.steps > 0 && !tr_warmup_is_long(job);
    TR_TRY(tr_optimizer_read(job->file.optimizer, counted ? job->train.steps : STEPS_MOST, &optimizer));
    if (optimizer.schedule.kind == TR_SCHEDULE_PLATEAU && job->train.evaluate_every == 0)
        return tr_config_fail(
            TR_EINVAL, tr_config_get(job->file.optimizer, "schedule"),
            "a plateau schedule follows evaluations during the run; set train.evaluate_every");
    for (int set = 0; set < TR_SETS; set++)
        if (tr_job_has_set(job, (enum tr_data_set)set))
            TR_TRY(tr_source_check_config(tr_job_set_node(job, (enum tr_data_set)set)));
    return TR_OK;
}

/* Whether the file itself describes the input. */
static bool is_described(const struct tr_job *job)
{
    struct tr_source_parts parts;
    bool joined = tr_join_names(tr_job_set_node(job, TR_SET_TRAIN), &parts) == TR_OK && parts.count > 0;
    if (joined && job->input.sources.count == 0) return false;
    return job->input.shape.count > 0 || job->input.vocabulary > 0;
}

/* Reads all that needs no data. */
static tr_status read_file(struct tr_job *job, const char *path, const char *state,
                           const struct tr_job_settings *settings)
{
    TR_TRY(default_sections(job));
    if (state && !(job->state = tr_strdup(state))) return TR_ENOMEM;
    if (path) tr_warmup_record(job, settings);
    TR_TRY(tr_job_override(job->root, settings));
    TR_TRY(tr_job_choose_base(job, settings));
    TR_TRY(tr_job_choose_teacher(job, settings));
    TR_TRY(read_sections(job));
    TR_TRY(default_directory(job, path));
    TR_TRY(check_file(job));
    return is_described(job) ? build_network(job) : TR_OK;
}

static tr_status make(struct tr_job *job, const char *path, const char *state,
                      const struct tr_job_settings *settings)
{
    TR_TRY(read_file(job, path, state, settings));
    /* A checkpoint's text is complete, unless settings change its number of steps. */
    bool opens =
        path ? !job->model || job->train.epochs > 0 || tr_warmup_needs_data(job) : settings->epochs > 0;
    if (opens) TR_TRY(tr_job_open_set(job, TR_SET_TRAIN));
    if (!job->model) TR_TRY(build_network(job));
    if (path) TR_TRY(tr_job_note_teacher(job));
    TR_TRY(complete(job));
    if (!job->source[TR_SET_TRAIN]) return TR_OK;
    return tr_job_check_source(job, job->source[TR_SET_TRAIN], tr_data_set_names[TR_SET_TRAIN], true);
}

/* Takes `root`, also on failure. `path` is NULL for the text of a checkpoint. */
static tr_status make_job(tr_config *root, const char *path, const char *state,
                          const struct tr_job_settings *settings, struct tr_job **out)
{
    struct tr_job *job = tr_alloc_zero(1, sizeof *job);
    if (!job) {
        tr_config_destroy(&root);
        return TR_ENOMEM;
    }
    job->root = root;
    job->store = settings->store;
    job->outline = settings->outline;
    job->whole = settings->whole;
    tr_status status = make(job, path, state, settings);
    if (status != TR_OK) {
        tr_job_destroy(&job);
        return status;
    }
    *out = job;
    return TR_OK;
}

tr_status tr_job_check(tr_config *root, const char *path, const struct tr_job_settings *settings)
{
    struct tr_job *job = tr_alloc_zero(1, sizeof *job);
    if (!job) {
        tr_config_destroy(&root);
        return TR_ENOMEM;
    }
    job->root = root;
    tr_status status = read_file(job, path, NULL, settings);
    tr_job_destroy(&job);
    return status;
}

tr_status tr_job_open(const char *path, const struct tr_job_settings *settings, struct tr_job **out)
{
    tr_config *root;
    TR_TRY(tr_config_read(path, &root));
    return make_job(root, path, NULL, settings, out);
}

tr_status tr_job_parse(const struct tr_job_text *model, tr_config **root)
{
    tr_status status = TR_OK;
    TR_TRY(tr_config_parse(model->text, model->length, model->name, root));
    const bool mapping = tr_config_kind(*root) == TR_CONFIG_MAPPING;
    if (mapping && !tr_config_get(*root, "name"))
        status = tr_config_put_text(*root, NULL, "name", model->name);
    if (mapping && status == TR_OK && !tr_config_get(*root, "directory")) {
        char *absolute = tr_path_absolute(model->directory ? model->directory : ".");
        status = absolute ? tr_config_put_text(*root, NULL, "directory", absolute) : TR_ENOMEM;
        tr_free(absolute);
    }
    if (status != TR_OK) tr_config_destroy(root);
    return status;
}

tr_status tr_job_open_text(const struct tr_job_text *model, const struct tr_job_settings *settings,
                           struct tr_job **out)
{
    tr_config *root;
    TR_TRY(tr_job_parse(model, &root));
    return make_job(root, model->name, NULL, settings, out);
}

tr_status tr_job_restore(const tr_checkpoint *checkpoint, const struct tr_job_settings *settings,
                         struct tr_job **out)
{
    const char *path = tr_checkpoint_path(checkpoint),
               *text = tr_checkpoint_file(checkpoint, TR_JOB_FILE, NULL);
    if (!text)
        return tr_fail(TR_EFORMAT, "checkpoint \"%s\" keeps no %s; it was not written by training", path,
                       TR_JOB_FILE);
    char *name = tr_format("%s/%s", path, TR_JOB_FILE);
    if (!name) return TR_ENOMEM;
    tr_config *root;
    tr_status status = tr_config_parse(text, strlen(text), name, &root);
    tr_free(name);
    if (status != TR_OK) return status;
    const tr_config *state_node = tr_config_get(tr_config_get(root, "input"), "state");
    const char *state_name = state_node ? tr_config_text(state_node) : NULL, *state = NULL;
    if (state_name && !(state = tr_checkpoint_file(checkpoint, state_name, NULL))) {
        status = tr_fail(TR_EFORMAT, "checkpoint \"%s\" keeps no %s, which its %s names", path, state_name,
                         TR_JOB_FILE);
        tr_config_destroy(&root);
        return status;
    }
    return make_job(root, NULL, state, settings, out);
}

tr_status tr_job_again(const struct tr_job *job, const struct tr_job_settings *settings, struct tr_job **out)
{
    char *text;
    tr_config *root;
    TR_TRY(tr_job_text(job, &text));
    tr_status status = tr_config_parse(text, strlen(text), TR_JOB_FILE, &root);
    tr_free(text);
    return status == TR_OK ? make_job(root, NULL, job->state, settings, out) : status;
}
