#include "data/order/assembly.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/tree.h"

#include <string.h>

/* Whether examples are read part by part, so that images stay bytes. */
static bool by_parts(const tr_source *source)
{
    return source->parts && source->parts->images > 0;
}

/* Whether an example is a text with numbers beside it. */
static bool beside_text(const tr_source *source)
{
    return source->parts && source->parts->text[0] && source->parts->count > 0;
}

/* The number of floats of an example in a batch. */
static int32_t floats_of(const tr_source *source)
{
    return by_parts(source) ? tr_source_parts_floats(source->parts) : source->info.floats;
}

static bool alloc_parts(const tr_source *source, size_t rows, struct tr_batch *batch)
{
    for (int32_t i = 0; by_parts(source) && i < source->parts->images; i++) {
        size_t image = (size_t)tr_shape_count(&source->parts->part[i].shape);
        if (!(batch->part[i] = tr_alloc_aligned(rows, image))) return false;
    }
    return true;
}

bool tr_assembly_in_place(const struct tr_assembly *assembly)
{
    const tr_source *source = assembly->source;
    return source->resident && (!source->filed || assembly->options.in_place);
}

tr_status tr_assembly_alloc(const struct tr_assembly *assembly, struct tr_batch *batch)
{
    const struct tr_source_info *info = &assembly->source->info;
    size_t rows = (size_t)assembly->capacity * (assembly->options.mixes ? 2 : 1);
    bool wanted = true;
    batch->others = assembly->options.mixes ? assembly->capacity : 0;
    wanted = wanted && (batch->index = tr_alloc_aligned(rows, sizeof *batch->index));
    switch (info->features) {
    case TR_FEATURE_IMAGE:
        if (tr_assembly_in_place(assembly)) break;
        wanted =
            wanted && (batch->images = tr_alloc_aligned(rows, (size_t)tr_source_capacity(assembly->source)));
        break;
    case TR_FEATURE_FLOATS:
        wanted = wanted && alloc_parts(assembly->source, rows, batch);
        wanted = wanted && (batch->floats =
                                tr_alloc_aligned(rows, (size_t)floats_of(assembly->source) * sizeof(float)));
        break;
    case TR_FEATURE_TOKENS:
        wanted = wanted && (batch->tokens = tr_alloc_aligned((size_t)assembly->tokens, sizeof(int32_t)));
        wanted = wanted && (batch->offset = tr_alloc_aligned(rows + 1, sizeof(int32_t)));
        if (assembly->second_tokens > 0) {
            wanted = wanted &&
                     (batch->second = tr_alloc_aligned((size_t)assembly->second_tokens, sizeof(int32_t)));
            wanted = wanted && (batch->second_offset = tr_alloc_aligned(rows + 1, sizeof(int32_t)));
        }
        if (beside_text(assembly->source))
            wanted = wanted && (batch->floats = tr_alloc_aligned(rows, (size_t)info->floats * sizeof(float)));
        break;
    }
    if (info->labels == TR_LABEL_CLASS) {
        wanted = wanted && (batch->labels = tr_alloc_aligned(rows, sizeof(int32_t)));
    } else if (info->labels == TR_LABEL_PIXELS) {
        wanted = wanted &&
                 (batch->labels = tr_alloc_aligned(rows, (size_t)tr_source_pixels(info) * sizeof(int32_t)));
    } else if (info->labels == TR_LABEL_TOKENS) {
        wanted = wanted && (batch->labels = tr_alloc_aligned((size_t)assembly->tokens, sizeof(int32_t)));
    } else if (info->labels == TR_LABEL_VALUES) {
        wanted = wanted && (batch->targets = tr_alloc_aligned(rows, (size_t)info->values * sizeof(float)));
    }
    return wanted ? TR_OK : TR_ENOMEM;
}

void tr_assembly_free(struct tr_batch *batch)
{
    tr_free(batch->index);
    tr_free(batch->images);
    for (int32_t i = 0; i < TR_SOURCE_PARTS; i++) tr_free(batch->part[i]);
    tr_free(batch->floats);
    tr_free(batch->tokens);
    tr_free(batch->offset);
    tr_free(batch->second);
    tr_free(batch->second_offset);
    tr_free(batch->labels);
    tr_free(batch->targets);
}

/* How many examples ahead to prefetch: they lie anywhere in memory, and reading one takes less time than
   fetching it. */
#define FETCH_AHEAD 3

/* The labels of tokens in the whole global batch, of which this rank may read a part. */
static int64_t count_labels(struct tr_assembly *assembly, const struct tr_order_step *at)
{
    enum { BLOCK = 256 };
    const tr_source *source = assembly->source;
    int64_t labels = 0, index[BLOCK];
    if (source->info.labels != TR_LABEL_TOKENS) return at->rows;
    if (source->stream) return at->rows * source->window;
    for (int64_t row = 0, count; row < at->rows; row += count) {
        count = at->rows - row < BLOCK ? at->rows - row : BLOCK;
        tr_order_read(&assembly->order, at->epoch, at->first + row, count, index);
        for (int64_t i = 0; i < count; i++) labels += source->class->labelled(source, index[i]);
    }
    return labels;
}

/* Row `row` of the batch, example `index`: the images and numbers of its parts, and its label; NULL: not the
   label. */
static tr_status read_parts(const tr_source *source, const struct tr_batch *batch, int64_t row, int64_t index,
                            void *label)
{
    uint8_t *image[TR_SOURCE_PARTS] = {NULL};
    for (int32_t i = 0; i < source->parts->images; i++)
        image[i] = batch->part[i] + row * tr_shape_count(&source->parts->part[i].shape);
    return source->class->read_parts(source, index, image, batch->floats + row * floats_of(source), label);
}

void tr_assembly_begin(struct tr_assembly *assembly, int64_t step, struct tr_batch *batch)
{
    const struct tr_loader_options *options = &assembly->options;
    const struct tr_order_step at = tr_order_at(&assembly->order.order, step);
    batch->step = step;
    batch->epoch = at.epoch;
    batch->global_rows = at.rows;
    batch->global_labels = count_labels(assembly, &at);
    batch->first = tr_cut(at.rows, options->microbatches, options->first_microbatch);
    batch->rows = tr_cut(at.rows, options->microbatches, options->end_microbatch) - batch->first;
    tr_order_read(&assembly->order, at.epoch, at.first + batch->first, batch->rows, batch->index);
    if (batch->offset) batch->offset[0] = 0;
    if (batch->second_offset) batch->second_offset[0] = 0;
}

/* Reads rows from `row` on, whose examples are known: one, or `count` consecutive examples. */
static tr_status read_rows(const struct tr_assembly *assembly, int64_t row, int64_t count,
                           struct tr_batch *batch)
{
    const tr_source *source = assembly->source;
    const struct tr_source_info *info = &source->info;
    const int64_t index = batch->index[row];
    void *features = batch->images   ? (void *)(batch->images + row * tr_source_capacity(source))
                     : batch->tokens ? (void *)(batch->tokens + batch->offset[row])
                     : batch->floats ? (void *)(batch->floats + row * info->floats)
                                     : NULL;
    const int64_t place = info->labels == TR_LABEL_TOKENS   ? batch->offset[row]
                          : info->labels == TR_LABEL_PIXELS ? row * tr_source_pixels(info)
                                                            : row;
    void *label = batch->labels    ? (void *)(batch->labels + place)
                  : batch->targets ? (void *)(batch->targets + row * info->values)
                                   : NULL;
    int64_t length;
    if (by_parts(source)) return read_parts(source, batch, row, index, label);
    if (count > 1) return source->class->read_run(source, index, count, features, label);
    TR_TRY(source->class->read(source, index, features, &length, label));
    if (batch->offset) batch->offset[row + 1] = batch->offset[row] + (int32_t)length;
    if (batch->second) {
        const int32_t first = batch->second_offset[row];
        TR_TRY(source->class->read_second(source, index, batch->second + first, &length));
        batch->second_offset[row + 1] = first + (int32_t)length;
    }
    return beside_text(source) ? read_parts(source, batch, row, index, NULL) : TR_OK;
}

/* How many examples from `row` on are consecutive in the source, where reading them together helps. */
static int64_t run_of(const tr_source *source, const int64_t *index, int64_t row, int64_t end)
{
    int64_t next = row + 1;
    while (source->class->read_run && next < end && index[next] == index[next - 1] + 1) next++;
    return next - row;
}

/* The example that a row is mixed with. */
static int64_t other_of(const struct tr_assembly *assembly, const struct tr_batch *batch, int64_t row)
{
    uint32_t words[4];
    tr_rng_philox(assembly->options.mix_key, (uint32_t)(batch->first + row), (uint32_t)batch->step, 6, 0,
                  words);
    const uint64_t bits = (uint64_t)words[0] << 32 | words[1];
    __extension__ const unsigned __int128 product =
        (unsigned __int128)bits * (uint64_t)assembly->source->info.count;
    return (int64_t)(product >> 64);
}

static tr_status read_others(const struct tr_assembly *assembly, int64_t begin, int64_t end,
                             struct tr_batch *batch)
{
    for (int64_t row = begin; row < end; row++) {
        batch->index[batch->others + row] = other_of(assembly, batch, row);
        TR_TRY(read_rows(assembly, batch->others + row, 1, batch));
    }
    return TR_OK;
}

tr_status tr_assembly_read(const struct tr_assembly *assembly, int64_t begin, int64_t end,
                           struct tr_batch *batch)
{
    const tr_source *source = assembly->source;
    int64_t fetched = begin;
    for (int64_t row = begin, run; row < end; row += run) {
        run = run_of(source, batch->index, row, end);
        for (; source->class->fetch && fetched < end && fetched <= row + FETCH_AHEAD; fetched++)
            source->class->fetch(source, batch->index[fetched]);
        TR_TRY(read_rows(assembly, row, run, batch));
    }
    return assembly->options.mixes ? read_others(assembly, begin, end, batch) : TR_OK;
}

bool tr_assembly_is_divisible(const struct tr_assembly *assembly)
{
    const tr_source *source = assembly->source;
    return (source->class->fetch || source->filed) && source->info.features != TR_FEATURE_TOKENS;
}
