#include "plan/variant.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/source.h"
#include "job/file/override.h"
#include "strategy/strategy.h"

#include <string.h>

/* Blank examples in an epoch, as steps of the largest batch. */
#define EPOCH 1024
/* Most sequences whose length is read. */
#define LOOKED 4096

/* ---- blank examples ---- */

struct blank {
    struct tr_source head;
    int64_t lengths;
    int64_t length[]; /* [lengths] elements of an example; further examples repeat these */
};

static int64_t blank_length(const tr_source *source, int64_t index)
{
    const struct blank *blank = (const struct blank *)source;
    return blank->length[index % blank->lengths];
}

static tr_status blank_read(const tr_source *source, int64_t index, void *features, int64_t *length,
                            void *label)
{
    const struct tr_source_info *info = &source->info;
    (void)features;
    *length = blank_length(source, index);
    if (!label) return TR_OK;
    int64_t labels = info->labels == TR_LABEL_TOKENS   ? *length
                     : info->labels == TR_LABEL_VALUES ? info->values
                     : info->labels == TR_LABEL_PIXELS ? tr_source_pixels(info)
                                                       : info->labels == TR_LABEL_CLASS;
    memset(label, 0, (size_t)labels * sizeof(int32_t));
    return TR_OK;
}

/* Numbers beside a text, and joined images: zeros. */
static tr_status blank_read_parts(const tr_source *source, int64_t index,
                                  uint8_t *const image[TR_SOURCE_PARTS], float *floats, void *label)
{
    const struct tr_source_parts *parts = source->parts;
    int64_t length;
    for (int32_t i = 0; i < parts->images; i++)
        memset(image[i], 0, (size_t)tr_shape_count(&parts->part[i].shape));
    memset(floats, 0, (size_t)tr_source_parts_floats(parts) * sizeof *floats);
    return label ? blank_read(source, index, NULL, &length, label) : TR_OK;
}

/* A second text: as long as it may be. */
static tr_status blank_read_second(const tr_source *source, int64_t index, int32_t *tokens, int64_t *length)
{
    (void)index;
    *length = source->parts->second_tokens;
    if (tokens) memset(tokens, 0, (size_t)*length * sizeof *tokens);
    return TR_OK;
}

static void blank_destroy(tr_source *source)
{
    tr_free(source);
}

static const struct tr_source_class blank_class = {.name = "blank",
                                                   .version = TR_SOURCE_VERSION,
                                                   .read = blank_read,
                                                   .read_parts = blank_read_parts,
                                                   .read_second = blank_read_second,
                                                   .labelled = blank_length,
                                                   .destroy = blank_destroy};

/* Lengths of some evenly spaced sequences. */
static tr_status look_at_lengths(const tr_source *source, struct blank *blank)
{
    const int64_t capacity = tr_source_capacity(source), apart = source->info.count / blank->lengths;
    int32_t *tokens = tr_alloc((size_t)capacity + 1, 2 * sizeof *tokens);
    if (!tokens) return TR_ENOMEM;
    tr_status status = TR_OK;
    for (int64_t i = 0; i < blank->lengths && status == TR_OK; i++) {
        int64_t length = 0;
        status = source->class->read(source, i * apart, tokens, &length,
                                     source->info.labels == TR_LABEL_TOKENS ? tokens + capacity : NULL);
        blank->length[i] = length;
    }
    tr_free(tokens);
    return status;
}

static tr_status make_blank(const tr_source *source, int64_t batch, tr_source **out)
{
    const bool sequences = source->info.features == TR_FEATURE_TOKENS;
    const int64_t lengths = !sequences ? 1 : source->info.count < LOOKED ? source->info.count : LOOKED;
    struct blank *blank = tr_alloc_zero(1, sizeof *blank + (size_t)lengths * sizeof blank->length[0]);
    if (!blank) return TR_ENOMEM;
    *out = &blank->head;
    blank->head.class = &blank_class;
    blank->head.info = source->info;
    blank->head.parts = source->parts;
    blank->head.info.class_names = NULL;
    blank->head.info.slow = false;
    blank->head.info.count = batch * EPOCH;
    blank->lengths = lengths;
    if (sequences) return look_at_lengths(source, blank);
    blank->length[0] = tr_source_capacity(source);
    return TR_OK;
}

/* ---- the job ---- */

static tr_status choose_strategy(struct tr_job_variant *variant, const char *strategy)
{
    static const char nothing[] = "{}";
    const struct tr_job_settings settings = {.strategy = strategy,
                                             .first_of_strategy = tr_strategy_first_option};
    TR_TRY(tr_config_parse(nothing, sizeof nothing - 1, "strategy", &variant->root));
    TR_TRY(tr_job_override(variant->root, &settings));
    variant->job.file.strategy = tr_config_get(variant->root, "strategy");
    const char *name;
    bool asynchronous;
    return tr_strategy_peek(variant->job.file.strategy, &name, &asynchronous);
}

tr_status tr_job_variant_make(const struct tr_job *job, const struct tr_job_variant_settings *settings,
                              struct tr_job_variant *out)
{
    *out = (struct tr_job_variant){.job = *job};
    struct tr_train_options *train = &out->job.train;
    if (settings->batch > 0) train->batch = settings->batch;
    if (settings->microbatches > 0) train->microbatches = settings->microbatches;
    if (settings->steps > 0) train->steps = settings->steps;
    if (settings->strategy) TR_TRY(choose_strategy(out, settings->strategy));
    if (!settings->blank) return TR_OK;
    TR_TRY(make_blank(job->source[TR_SET_TRAIN], train->batch, &out->blank));
    out->job.source[TR_SET_TRAIN] = out->blank;
    out->job.sampler = NULL;
    train->prefetch = 0;
    return TR_OK;
}

void tr_job_variant_release(struct tr_job_variant *variant)
{
    tr_config_destroy(&variant->root);
    tr_free(variant->blank);
    variant->blank = NULL;
}
