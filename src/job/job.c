#include "job/job.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "job/override.h"
#include "job/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const tr_data_set_names[TR_SETS] = {"train", "validation", "test"};

tr_status tr_data_set_find(const char *name, enum tr_data_set *set)
{
    for (int i = 0; i < TR_SETS; i++) {
        if (strcmp(name, tr_data_set_names[i]) != 0) continue;
        *set = (enum tr_data_set)i;
        return TR_OK;
    }
    return tr_fail(TR_ENOTFOUND, "there is no data set \"%s\"; choose train, validation or test", name);
}

/* ---- reading ---- */

static tr_status read_sections(struct tr_job *job)
{
    const tr_config *root = job->root;
    TR_TRY(tr_options_read(tr_file_option_table, tr_file_option_count, root, "model file", &job->file));
    if (job->file.data)
        TR_TRY(
            tr_options_read(tr_data_option_table, tr_data_option_count, job->file.data, "data", &job->data));
    TR_TRY(
        tr_options_read(tr_input_option_table, tr_input_option_count, job->file.input, "input", &job->input));
    return tr_options_read(tr_train_option_table, tr_train_option_count, job->file.train, "train",
                           &job->train);
}

/* ---- what the data say ---- */

static struct tr_shape shape_of_source(const struct tr_source_info *info)
{
    switch (info->features) {
    case TR_FEATURE_IMAGE:
        return (struct tr_shape){3, {info->height, info->width, info->channels}, false};
    case TR_FEATURE_FLOATS:
        return (struct tr_shape){1, {info->floats}, false};
    default:
        return (struct tr_shape){0, {0}, true};
    }
}

static tr_status set_classes(struct tr_job *job, const struct tr_source_info *info)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "input.classes=[");
    for (int32_t i = 0; i < info->classes; i++) {
        if (i) tr_text_add(&text, ", ");
        tr_text_add_quoted(&text, info->class_names[i]);
    }
    tr_text_add(&text, "]");
    char *assignment;
    TR_TRY(tr_text_finish(&text, &assignment));
    tr_status status = tr_config_set(job->root, assignment);
    tr_free(assignment);
    return status;
}

/* Writes what the training data say into the tree, where the file leaves it open. */
static tr_status resolve_input(struct tr_job *job)
{
    const struct tr_source_info *info = tr_source_info(job->source[TR_SET_TRAIN]);
    struct tr_shape shape = shape_of_source(info);
    if (info->features == TR_FEATURE_TOKENS) {
        if (job->input.vocabulary == 0)
            TR_TRY(tr_job_set(job->root, "input.vocabulary=%d", info->vocabulary));
    } else if (job->input.shape.count == 0) {
        if (shape.rank == 3)
            TR_TRY(tr_job_set(job->root, "input.shape=[%" PRId64 ", %" PRId64 ", %" PRId64 "]", shape.size[0],
                              shape.size[1], shape.size[2]));
        else
            TR_TRY(tr_job_set(job->root, "input.shape=[%" PRId64 "]", shape.size[0]));
    }
    if (info->class_names && info->classes > 0 && job->input.classes.count == 0)
        TR_TRY(set_classes(job, info));
    return TR_OK;
}

/* Sets features and stored shape from the (resolved) input section. */
static tr_status read_input(struct tr_job *job)
{
    const struct tr_input_options *input = &job->input;
    const tr_config *node = job->file.input ? job->file.input : job->root;
    if (input->vocabulary > 0) {
        if (input->shape.count)
            return tr_config_fail(TR_EINVAL, node,
                                  "give either a shape (images, numbers) or a vocabulary (text)");
        job->features = TR_FEATURE_TOKENS;
        job->stored = (struct tr_shape){0, {0}, true};
        return TR_OK;
    }
    int32_t rank = input->shape.count;
    if (rank < 1 || rank > 3)
        return tr_config_fail(
            TR_EINVAL, node,
            "the shape of the input has %d sizes; images have [height, width, channels], numbers one size",
            (int)rank);
    job->features = rank == 1 ? TR_FEATURE_FLOATS : TR_FEATURE_IMAGE;
    job->stored = (struct tr_shape){rank, {0}, false};
    for (int32_t i = 0; i < rank; i++) job->stored.size[i] = input->shape.item[i];
    if (rank == 2) job->stored.size[job->stored.rank++] = 1;
    TR_TRY(tr_shape_check(&job->stored, "input"));
    if (job->features == TR_FEATURE_FLOATS) return TR_OK;
    int64_t channels = job->stored.size[2];
    if (channels > 4)
        return tr_config_fail(TR_EINVAL, node, "images have %" PRId64 " channels; at most 4 are supported",
                              channels);
    if ((input->scale.count > 1 && input->scale.count != channels) ||
        (input->shift.count > 1 && input->shift.count != channels))
        return tr_config_fail(TR_EINVAL, node,
                              "scale and shift take one number, or one for each of %" PRId64 " channels",
                              channels);
    for (int i = 0; i < 2; i++)
        if (input->crop[i] > job->stored.size[i] + 2 * input->pad)
            return tr_config_fail(TR_EINVAL, node,
                                  "crop [%d, %d] is larger than the padded image %" PRId64 "x%" PRId64,
                                  input->crop[0], input->crop[1], job->stored.size[0] + 2 * input->pad,
                                  job->stored.size[1] + 2 * input->pad);
    return TR_OK;
}

/* The shape that reaches the first layer. */
static struct tr_shape network_input(const struct tr_job *job)
{
    struct tr_shape shape = job->stored;
    for (int i = 0; i < 2 && job->features == TR_FEATURE_IMAGE; i++)
        if (job->input.crop[i]) shape.size[i] = job->input.crop[i];
    return shape;
}

/* ---- the run ---- */

static tr_status resolve_run(struct tr_job *job)
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
    if ((train->steps > 0) == (train->epochs > 0))
        return tr_config_fail(TR_EINVAL, node,
                              train->steps > 0 ? "give steps or epochs, not both" : "give steps or epochs");
    if (train->epochs == 0) return TR_OK;
    if (!job->source[TR_SET_TRAIN]) {
        /* The text of a checkpoint always has steps, since they were resolved when it was written. */
        return tr_config_fail(TR_EINVAL, node, "epochs need the data; give steps");
    }
    int64_t count = tr_source_info(job->source[TR_SET_TRAIN])->count, batch = train->batch;
    int64_t per_epoch = train->last_batch == 0 ? (count + batch - 1) / batch : count / batch;
    if (__builtin_mul_overflow(per_epoch, train->epochs, &train->steps) || train->steps < 1)
        return tr_config_fail(TR_EINVAL, node,
                              "%" PRId64 " epochs of %" PRId64 " steps are no number of steps to train",
                              train->epochs, per_epoch);
    TR_TRY(tr_job_set(job->root, "train.steps=%" PRId64, train->steps));
    return tr_config_set(job->root, "train.epochs=0");
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
    char *absolute = realpath(*directory ? directory : "/", NULL);
    struct tr_text text = TR_TEXT_INIT;
    char *assignment = NULL;
    tr_text_add(&text, "directory=");
    tr_text_add_quoted(&text, absolute ? absolute : directory);
    free(absolute);
    tr_free(directory);
    tr_status status = tr_text_finish(&text, &assignment);
    if (status == TR_OK) status = tr_config_set(job->root, assignment);
    tr_free(assignment);
    return status;
}

/* Reads the input section again after the tree has changed. */
static tr_status reread_input(struct tr_job *job)
{
    tr_options_release(tr_input_option_table, tr_input_option_count, &job->input);
    TR_TRY(tr_options_defaults(tr_input_option_table, tr_input_option_count, &job->input));
    job->file.input = tr_config_get(job->root, "input");
    return tr_options_read(tr_input_option_table, tr_input_option_count, job->file.input, "input",
                           &job->input);
}

static const tr_config *set_node(const struct tr_job *job, enum tr_data_set set)
{
    const tr_config *const nodes[TR_SETS] = {job->data.train, job->data.validation, job->data.test};
    return nodes[set] && tr_config_kind(nodes[set]) != TR_CONFIG_NULL ? nodes[set] : NULL;
}

bool tr_job_has_set(const struct tr_job *job, enum tr_data_set set)
{
    return set_node(job, set) != NULL;
}

tr_status tr_job_open_source(const struct tr_job *job, enum tr_data_set set, tr_source **out)
{
    const tr_config *node = set_node(job, set);
    if (!node)
        return tr_fail(TR_ENOTFOUND, "the model file names no %s data; add data.%s", tr_data_set_names[set],
                       tr_data_set_names[set]);
    return tr_source_open_config(node, job->file.directory, job->state, out);
}

/* Writes into the tree what the training data add to the file: what other sets must share, and names of
 * classes. */
static tr_status note_source(struct tr_job *job)
{
    const tr_source *source = job->source[TR_SET_TRAIN];
    if (!job->state) {
        const char *name;
        TR_TRY(tr_source_state(source, &name, &job->state));
        if (job->state) TR_TRY(tr_job_set(job->root, "input.state=%s", name));
    }
    TR_TRY(resolve_input(job));
    return reread_input(job);
}

tr_status tr_job_take_source(struct tr_job *job, enum tr_data_set set, tr_source *source)
{
    job->source[set] = source;
    if (set == TR_SET_TRAIN) TR_TRY(note_source(job));
    /* While the network is not built yet, the file is not read to its end: the check comes later. */
    return job->model ? tr_job_check_source(job, source, tr_data_set_names[set], true) : TR_OK;
}

tr_status tr_job_open_set(struct tr_job *job, enum tr_data_set set)
{
    if (job->source[set]) return TR_OK;
    tr_source *source;
    TR_TRY(tr_job_open_source(job, set, &source));
    return tr_job_take_source(job, set, source);
}

tr_status tr_job_check_source(const struct tr_job *job, const tr_source *source, const char *name,
                              bool labelled)
{
    const struct tr_source_info *info = tr_source_info(source);
    struct tr_shape shape = shape_of_source(info);
    int64_t outputs = tr_shape_count(&job->model->output);
    char have[TR_SHAPE_TEXT], want[TR_SHAPE_TEXT];
    if (info->features != job->features || !tr_shape_equal(&shape, &job->stored))
        return tr_fail(
            TR_EMISMATCH,
            "the %s data have inputs of shape %s, the network takes %s; check data and input.shape", name,
            tr_shape_text(&shape, have), tr_shape_text(&job->stored, want));
    if (info->features == TR_FEATURE_TOKENS && info->vocabulary > job->model->vocabulary)
        return tr_fail(TR_EMISMATCH,
                       "the %s data have %d words, the network %" PRId64 "; use the training vocabulary",
                       name, info->vocabulary, job->model->vocabulary);
    if (info->labels == TR_LABEL_NONE && !labelled) return TR_OK;
    if (tr_job_is_classification(job)) {
        if (info->labels != TR_LABEL_CLASS)
            return tr_fail(TR_EMISMATCH, "the %s data have no classes, which softmax_cross_entropy needs",
                           name);
        if (info->classes > outputs)
            return tr_fail(TR_EMISMATCH,
                           "the %s data have %d classes, the network %" PRId64
                           " outputs; give its last layer as many units as classes",
                           name, info->classes, outputs);
    } else if (info->labels != TR_LABEL_VALUES) {
        return tr_fail(
            TR_EMISMATCH,
            "the %s data have no values to predict, which mean_squared_error needs; give values, or "
            "set loss: softmax_cross_entropy for classes",
            name);
    } else if (info->values != outputs) {
        return tr_fail(TR_EMISMATCH,
                       "the %s data have %d target values, the network %" PRId64
                       " outputs; give its last layer as many units as values",
                       name, info->values, outputs);
    }
    return TR_OK;
}

static tr_status build_network(struct tr_job *job)
{
    TR_TRY(read_input(job));
    struct tr_model_input input = {network_input(job), job->input.vocabulary};
    TR_TRY(tr_model_build(job->root, &input, &job->model));
    TR_TRY(resolve_run(job));
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

static void release_sections(struct tr_job *job)
{
    tr_options_release(tr_file_option_table, tr_file_option_count, &job->file);
    tr_options_release(tr_data_option_table, tr_data_option_count, &job->data);
    tr_options_release(tr_input_option_table, tr_input_option_count, &job->input);
    tr_options_release(tr_train_option_table, tr_train_option_count, &job->train);
}

/* Reads the sections again after the tree has changed. */
static tr_status reread(struct tr_job *job)
{
    release_sections(job);
    TR_TRY(default_sections(job));
    return read_sections(job);
}

/* Takes `root` over, also on failure. `path` is NULL for the text of a checkpoint, which says everything. */
static tr_status make_job(tr_config *root, const char *path, const char *state,
                          const struct tr_job_settings *settings, struct tr_job **out)
{
    struct tr_job *job = tr_alloc_zero(1, sizeof *job);
    if (!job) {
        tr_config_destroy(&root);
        return TR_ENOMEM;
    }
    job->root = root;
    tr_status status = default_sections(job);
    if (state && !(job->state = tr_strdup(state))) status = TR_ENOMEM;
    if (status == TR_OK) status = tr_job_override(job->root, settings);
    if (status == TR_OK) status = read_sections(job);
    if (status == TR_OK) status = default_directory(job, path);
    if (status == TR_OK) status = reread(job);
    bool described = job->input.shape.count > 0 || job->input.vocabulary > 0;
    if (status == TR_OK && path && (!described || job->train.epochs > 0)) {
        status = tr_job_open_set(job, TR_SET_TRAIN);
        if (status == TR_OK) status = reread(job);
    }
    if (status == TR_OK) status = build_network(job);
    if (status == TR_OK && job->source[TR_SET_TRAIN])
        status = tr_job_check_source(job, job->source[TR_SET_TRAIN], tr_data_set_names[TR_SET_TRAIN], true);
    if (status != TR_OK) {
        tr_job_destroy(&job);
        return status;
    }
    *out = job;
    return TR_OK;
}

tr_status tr_job_open(const char *path, const struct tr_job_settings *settings, struct tr_job **out)
{
    tr_config *root;
    TR_TRY(tr_config_read(path, &root));
    return make_job(root, path, NULL, settings, out);
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

tr_status tr_job_order(const struct tr_job *job, struct tr_order *order)
{
    const struct tr_train_options *train = &job->train;
    return tr_order_make(order, tr_source_info(job->source[TR_SET_TRAIN])->count, train->batch,
                         (enum tr_last_batch)train->last_batch, train->shuffle, (uint64_t)job->file.seed);
}

void tr_job_destroy(struct tr_job **handle)
{
    struct tr_job *job = *handle;
    if (!job) return;
    for (int i = 0; i < TR_SETS; i++) tr_source_close(&job->source[i]);
    tr_model_destroy(&job->model);
    release_sections(job);
    tr_config_destroy(&job->root);
    tr_free(job->state);
    tr_free(job);
    *handle = NULL;
}

tr_status tr_job_text(const struct tr_job *job, char **text)
{
    return tr_config_dump(job->root, text);
}
