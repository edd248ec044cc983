/* The data sets of a job: opening, checking, counting. */
#include "job/sets.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/math.h"
#include "data/order/split.h"
#include "job/file/augmentation.h"
#include "job/file/input.h"

#include <math.h>
#include <string.h>

const char *const tr_data_set_names[TR_SETS] = {"train", "validation", "test"};

tr_status tr_data_set_find(const char *name, enum tr_data_set *set)
{
    for (int i = 0; i < TR_SETS; i++) {
        if (strcmp(name, tr_data_set_names[i]) != 0) continue;
        *set = (enum tr_data_set)i;
        return TR_OK;
    }
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "data ");
    tr_text_add_unknown(&text, name, tr_data_set_names, TR_SETS);
    tr_status status = text.failed ? TR_ENOMEM : tr_fail(TR_ENOTFOUND, "%s", text.bytes);
    tr_text_release(&text);
    return status;
}

/* Whether the set is a part of the training data. */
static bool is_split_off(const struct tr_job *job, enum tr_data_set set)
{
    return set == TR_SET_VALIDATION && tr_data_is_split(&job->data);
}

const tr_config *tr_job_set_node(const struct tr_job *job, enum tr_data_set set)
{
    if (is_split_off(job, set)) set = TR_SET_TRAIN;
    const tr_config *const nodes[TR_SETS] = {job->data.train, job->data.validation, job->data.test};
    return nodes[set] && tr_config_kind(nodes[set]) != TR_CONFIG_NULL ? nodes[set] : NULL;
}

bool tr_job_has_set(const struct tr_job *job, enum tr_data_set set)
{
    return tr_job_set_node(job, set) != NULL;
}

tr_status tr_job_open_source(const struct tr_job *job, enum tr_data_set set, const char *state,
                             tr_source **out)
{
    const tr_config *node = tr_job_set_node(job, set);
    const struct tr_data_options *data = &job->data;
    if (!node)
        return tr_fail(TR_ENOTFOUND, "the model file names no %s data; add data.%s", tr_data_set_names[set],
                       tr_data_set_names[set]);
    if (!state) state = job->state;
    TR_TRY(job->outline ? tr_source_outline_config(node, job->file.directory, state, job->store, out)
                        : tr_source_open_config(node, job->file.directory, state, job->store, (int)set, out));
    if (!tr_data_is_split(data) || set == TR_SET_TEST) return TR_OK;
    tr_source *whole = *out, *first;
    *out = NULL;
    const struct tr_split split = {
        .seed = (uint64_t)(data->split_seed >= 0 ? data->split_seed : job->file.seed),
        .share = data->validation_split,
        .folds = data->folds,
        .fold = data->fold,
        .stratified = data->split == TR_SPLIT_STRATIFIED,
    };
    TR_TRY(tr_split_first(whole, &split, &first));
    *out = first;
    if (set == TR_SET_TRAIN) return TR_OK;
    tr_status status = tr_split_second(first, out);
    tr_source_close(&first);
    return status;
}

/* Adds to the tree what the training data contribute: the state that other sets must share, and names of
 * classes.
 */
static tr_status record_source(struct tr_job *job)
{
    const tr_source *source = job->source[TR_SET_TRAIN];
    if (!job->state) {
        const char *name;
        TR_TRY(tr_source_state(source, &name, &job->state));
        if (job->state) TR_TRY(tr_job_resolve_text(job, &job->input.state, "input", "state", name));
    }
    TR_TRY(tr_job_input_resolve(job));
    if (!job->model) TR_TRY(tr_augmentation_resolve(job));
    job->file.input = tr_config_get(job->root, "input");
    return TR_OK;
}

static tr_status make_sampler(struct tr_job *job)
{
    const struct tr_float_list *shares = &job->train.sampling_shares;
    bool given = job->train.sampling == TR_SAMPLING_SHARES;
    if (job->train.sampling == TR_SAMPLING_ONCE || job->sampler) return TR_OK;
    return tr_sampler_create(job->source[TR_SET_TRAIN], given ? shares->item : NULL, shares->count,
                             &job->sampler);
}

tr_status tr_job_take_source(struct tr_job *job, enum tr_data_set set, tr_source *source)
{
    job->source[set] = source;
    if (set == TR_SET_TRAIN) TR_TRY(record_source(job));
    if (set == TR_SET_TRAIN) TR_TRY(make_sampler(job));
    /* Until the network is built, the file is not read completely: the check comes later. */
    return job->model ? tr_job_check_source(job, source, tr_data_set_names[set], true) : TR_OK;
}

tr_status tr_job_open_set(struct tr_job *job, enum tr_data_set set)
{
    if (job->source[set]) return TR_OK;
    tr_source *source;
    if (is_split_off(job, set) && job->source[TR_SET_TRAIN])
        TR_TRY(tr_split_second(job->source[TR_SET_TRAIN], &source));
    else
        TR_TRY(tr_job_open_source(job, set, NULL, &source));
    return tr_job_take_source(job, set, source);
}

int64_t tr_job_steps_per_epoch(const struct tr_job *job)
{
    int64_t count = tr_source_info(job->source[TR_SET_TRAIN])->count, batch = job->train.batch;
    return job->train.last_batch == 0 ? (count + batch - 1) / batch : count / batch;
}

tr_status tr_job_order(const struct tr_job *job, struct tr_order *order)
{
    const struct tr_train_options *train = &job->train;
    TR_TRY(tr_order_make(order, tr_source_info(job->source[TR_SET_TRAIN])->count, train->batch,
                         (enum tr_last_batch)train->last_batch, train->shuffle, (uint64_t)job->file.seed));
    if (job->sampler) tr_order_sample(order, job->sampler, (uint64_t)job->file.seed);
    return TR_OK;
}

double tr_job_perplexity(const struct tr_job *job, double loss)
{
    return tr_job_is_of_tokens(job) ? tr_exp(loss) : NAN;
}

double tr_job_tokens_per_example(const struct tr_job *job)
{
    const tr_source *source = job->source[TR_SET_TRAIN];
    if (!tr_job_is_of_tokens(job)) return NAN;
    if (source->stream) return (double)source->window;
    double labels = 0;
    for (int64_t i = 0; i < source->info.count; i++) labels += (double)source->class->labelled(source, i);
    return labels / (double)source->info.count;
}
