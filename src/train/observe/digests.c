#include "train/observe/digests.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Most ranges of the arena that a rank updates in a step, for any strategy. */
#define RANGES_MOST 4096

struct range {
    int64_t begin, end;
};

struct tr_digests {
    struct tr_job *job;
    tr_device *device, *holder; /* that computes, and of gradients and parameters */
    tr_comm *comm;
    tr_strategy *strategy;
    int64_t every;
    int rank, size;
    char *path; /* the root's file, else NULL */
    struct tr_file_writer file;
    int64_t step;       /* being recorded, or -1 */
    int64_t first;      /* microbatch of this rank */
    int first_layer;    /* of this rank that is not an alias */
    int64_t microbatch; /* current microbatch, -1 before the first */
    uint64_t *block;    /* [size][words]: this rank's in its place; then the sum in the first */
    int64_t words; /* of a block: outputs [microbatches][layers], gradients and parameters [parameters] */
    float *copy;   /* host [copy_floats]: copies of device memory */
    int64_t copy_floats;
    struct range *range; /* [ranges] that this rank updates in the step */
    int ranges;
};

/* ---- digests ---- */

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014). */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t tr_digest_of(const float *values, int64_t first, int64_t count)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        sum += mix((uint64_t)(first + i + 1) * 0x9e3779b97f4a7c15u ^ bits);
    }
    return sum;
}

static uint64_t *outputs_of(const tr_digests *digests, int64_t microbatch)
{
    return digests->block + digests->rank * digests->words + microbatch * digests->job->model->layer_count;
}

static uint64_t *gradients_of(const tr_digests *digests)
{
    return outputs_of(digests, digests->job->train.microbatches);
}

static uint64_t *parameters_of(const tr_digests *digests)
{
    return gradients_of(digests) + digests->job->model->parameter_count;
}

/* Memory of a device as the host sees it, when all that was enqueued is done. */
static tr_status see(tr_digests *digests, tr_device *device, const float *values, int64_t count,
                     const float **out)
{
    *out = tr_device_host_view(device, values);
    if (*out) return tr_device_wait(device);
    if (count > digests->copy_floats) {
        tr_free(digests->copy);
        digests->copy_floats = 0;
        digests->copy = tr_alloc((size_t)count, sizeof *digests->copy);
        if (!digests->copy) return TR_ENOMEM;
        digests->copy_floats = count;
    }
    *out = digests->copy;
    TR_TRY(tr_device_to_host(device, digests->copy, values, (size_t)count * sizeof *values));
    return tr_device_wait(device);
}

/* Adds the contributions of `elements`, [begin, end) of an arena, to the digests of their tensors. */
static tr_status add_elements(tr_digests *digests, const float *elements, int64_t begin, int64_t end,
                              uint64_t *sums)
{
    const struct tr_model *model = digests->job->model;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        int64_t from = begin > parameter->offset ? begin - parameter->offset : 0;
        int64_t to = end - parameter->offset < parameter->count ? end - parameter->offset : parameter->count;
        const float *values;
        if (from >= to) continue;
        TR_TRY(
            see(digests, digests->holder, elements + (parameter->offset + from - begin), to - from, &values));
        sums[i] += tr_digest_of(values, from, to - from);
    }
    return TR_OK;
}

/* ---- observers ---- */

static tr_status see_layer(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    tr_digests *digests = user;
    const struct tr_model *model = digests->job->model;
    int index = (int)(layer - model->layers);
    if (index == digests->first_layer) digests->microbatch++;
    int64_t microbatch = digests->first + digests->microbatch;
    if (digests->microbatch < 0 || microbatch >= digests->job->train.microbatches) return TR_OK;
    const float *values;
    TR_TRY(see(digests, digests->device, output, count, &values));
    outputs_of(digests, microbatch)[index] = tr_digest_of(values, 0, count);
    return TR_OK;
}

static tr_status see_update(void *user, const float *gradient, int64_t begin, int64_t end)
{
    tr_digests *digests = user;
    if (digests->ranges == RANGES_MOST)
        return tr_fail(TR_EUNSUPPORTED, "digests of a step with more than %d updates", RANGES_MOST);
    digests->range[digests->ranges++] = (struct range){begin, end};
    return add_elements(digests, gradient, begin, end, gradients_of(digests));
}

/* ---- writing ---- */

static void add_digest(struct tr_json_writer *json, const char *name, uint64_t digest)
{
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, digest);
    tr_json_text(json, name, text);
}

static void add_tensors(struct tr_json_writer *json, const char *key, const tr_digests *digests,
                        const uint64_t *sums)
{
    const struct tr_model *model = digests->job->model;
    tr_json_open_object(json, key);
    for (int i = 0; i < model->parameter_count; i++) add_digest(json, model->parameters[i].name, sums[i]);
    tr_json_close_object(json);
}

static void add_outputs(struct tr_json_writer *json, const tr_digests *digests)
{
    const struct tr_model *model = digests->job->model;
    tr_json_open_array(json, "outputs");
    for (int64_t m = 0; m < digests->job->train.microbatches; m++) {
        tr_json_open_object(json, NULL);
        for (int i = 0; i < model->layer_count; i++)
            if (!model->layers[i].alias) add_digest(json, model->layers[i].name, outputs_of(digests, m)[i]);
        tr_json_close_object(json);
    }
    tr_json_close_array(json);
}

static tr_status write_line(tr_digests *digests, struct tr_json_writer *json)
{
    char *line;
    TR_TRY(tr_json_finish(json, &line));
    tr_status status = tr_file_lines_add(&digests->file, line);
    tr_free(line);
    return status;
}

/* ---- life ---- */

/* Where this rank's part begins. */
static void find_part(tr_digests *digests)
{
    const struct tr_model *model = digests->job->model;
    struct tr_placement placement;
    tr_strategy_placement(digests->strategy, digests->rank, &placement);
    digests->first = placement.first_microbatch;
    digests->first_layer = placement.first_layer;
    while (digests->first_layer < model->layer_count && model->layers[digests->first_layer].alias)
        digests->first_layer++;
}

tr_status tr_digests_create(struct tr_job *job, tr_device *device, tr_comm *comm, tr_strategy *strategy,
                            const char *directory, int64_t every, tr_digests **out)
{
    *out = NULL;
    if (tr_strategy_is_asynchronous(strategy))
        return tr_fail(TR_EINVAL, "digests of an asynchronous run, which no other run is equal to; choose a "
                                  "synchronous strategy");
    tr_digests *digests = tr_alloc_zero(1, sizeof *digests);
    if (!digests) return TR_ENOMEM;
    const struct tr_model *model = job->model;
    *digests = (tr_digests){.job = job,
                            .device = device,
                            .holder = tr_strategy_holder(strategy),
                            .comm = comm,
                            .strategy = strategy,
                            .every = every,
                            .rank = comm ? tr_comm_rank(comm) : 0,
                            .size = comm ? tr_comm_size(comm) : 1,
                            .file.descriptor = -1,
                            .step = -1};
    digests->words = job->train.microbatches * model->layer_count + 2 * (int64_t)model->parameter_count;
    digests->block = tr_alloc_zero((size_t)digests->size * (size_t)digests->words, sizeof *digests->block);
    digests->range = tr_alloc(RANGES_MOST, sizeof *digests->range);
    tr_status status = digests->block && digests->range ? TR_OK : TR_ENOMEM;
    if (status == TR_OK && digests->rank == 0) {
        digests->path = tr_path_join(directory, TR_DIGESTS_FILE);
        if (!digests->path) status = TR_ENOMEM;
    }
    if (status != TR_OK) {
        tr_digests_destroy(&digests);
        return status;
    }
    *out = digests;
    return TR_OK;
}

void tr_digests_destroy(tr_digests **handle)
{
    tr_digests *digests = *handle;
    if (!digests) return;
    tr_file_abandon(&digests->file);
    tr_free(digests->path);
    tr_free(digests->block);
    tr_free(digests->range);
    tr_free(digests->copy);
    tr_free(digests);
    *handle = NULL;
}

/* ---- steps ---- */

static const float *arena_of(const tr_digests *digests)
{
    return tr_variables_arena(tr_strategy_variables(digests->strategy), TR_ARENA_PARAMETERS);
}

tr_status tr_digests_start(tr_digests *digests, int64_t step)
{
    struct tr_json_writer json;
    if (!digests->path) return TR_OK;
    TR_TRY(tr_file_lines_begin(digests->path, step > 0, &digests->file));
    memset(digests->block, 0, (size_t)digests->words * sizeof *digests->block);
    TR_TRY(add_elements(digests, arena_of(digests), 0, digests->job->model->arena_floats,
                        parameters_of(digests)));
    tr_json_begin(&json, false);
    tr_json_integer(&json, "step", step);
    add_tensors(&json, "parameters", digests, parameters_of(digests));
    return write_line(digests, &json);
}

void tr_digests_begin(tr_digests *digests, int64_t step)
{
    if (step % digests->every) return;
    find_part(digests);
    digests->step = step;
    digests->microbatch = -1;
    digests->ranges = 0;
    memset(digests->block, 0, (size_t)digests->size * (size_t)digests->words * sizeof *digests->block);
    tr_strategy_observe(digests->strategy, TR_OBSERVER_DIGESTS,
                        (struct tr_strategy_observer){see_layer, see_update, digests});
}

/* Adds the blocks of all ranks into the first; other ranks have zeros where one computed. */
static tr_status gather(tr_digests *digests)
{
    if (!digests->comm) return TR_OK;
    TR_TRY(tr_comm_exchange(digests->comm, digests->block, (size_t)digests->words * sizeof *digests->block,
                            "digests"));
    for (int64_t i = digests->words; i < digests->size * digests->words; i++)
        digests->block[i % digests->words] += digests->block[i];
    return TR_OK;
}

tr_status tr_digests_end(tr_digests *digests, const struct tr_step_figures *figures)
{
    struct tr_json_writer json;
    if (digests->step < 0) return TR_OK;
    tr_strategy_observe(digests->strategy, TR_OBSERVER_DIGESTS, (struct tr_strategy_observer){0});
    for (int i = 0; i < digests->ranges; i++)
        TR_TRY(add_elements(digests, arena_of(digests) + digests->range[i].begin, digests->range[i].begin,
                            digests->range[i].end, parameters_of(digests)));
    TR_TRY(gather(digests));
    int64_t step = digests->step + 1;
    digests->step = -1;
    if (!digests->path) return TR_OK;
    uint32_t loss;
    memcpy(&loss, &figures->loss, sizeof loss);
    tr_json_begin(&json, false);
    tr_json_integer(&json, "step", step);
    add_digest(&json, "loss", loss);
    add_outputs(&json, digests);
    add_tensors(&json, "gradient", digests, gradients_of(digests));
    add_tensors(&json, "parameters", digests, parameters_of(digests));
    return write_line(digests, &json);
}
