/* Assembly of batches and reading ahead.
 *
 * With reading ahead there are prefetch + 1 slots; step s lives in slot s % slots. The reader thread fills
 * `next`, which moves up while next <= current + prefetch. The caller owns the slot of `current`, the reader
 * the slot of `next` while `busy`, and the slots of steps in between are ready. Asking for a step outside
 * [current, next] waits until the reader is idle and starts again there. All of this is guarded by `lock`;
 * slots are filled outside it.
 */
#include "data/batch.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/thread.h"
#include "base/timeline.h"
#include "base/tree.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

struct slot {
    struct tr_batch batch;
    struct tr_failure outcome; /* kept, since messages belong to threads */
};

struct tr_loader {
    const tr_source *source;
    struct tr_order order;
    struct tr_loader_options options;
    int64_t capacity; /* rows of the largest batch */
    int64_t tokens;   /* tokens of the largest batch */
    int slots;
    struct slot *slot;

    bool reading; /* the thread exists */
    pthread_t thread;
    tr_timeline *timeline; /* that the thread records in, or NULL */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t current; /* step that the caller has, -1 before the first */
    int64_t next;    /* step that the reader fills or will fill */
    bool busy, quit;
};

/* Whether examples are read part by part, so that images stay bytes. */
static bool by_parts(const tr_source *source)
{
    return source->parts && source->parts->images > 0;
}

/* The floats that an example has in a batch. */
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

static tr_status slot_alloc(const tr_loader *loader, struct tr_batch *batch)
{
    const struct tr_source_info *info = &loader->source->info;
    size_t rows = (size_t)loader->capacity;
    bool wanted = true;
    wanted = wanted && (batch->index = tr_alloc_aligned(rows, sizeof *batch->index));
    switch (info->features) {
    case TR_FEATURE_IMAGE:
        if (loader->source->resident && (!loader->source->filed || loader->options.in_place)) break;
        wanted =
            wanted && (batch->images = tr_alloc_aligned(rows, (size_t)tr_source_capacity(loader->source)));
        break;
    case TR_FEATURE_FLOATS:
        wanted = wanted && alloc_parts(loader->source, rows, batch);
        wanted = wanted &&
                 (batch->floats = tr_alloc_aligned(rows, (size_t)floats_of(loader->source) * sizeof(float)));
        break;
    case TR_FEATURE_TOKENS:
        wanted = wanted && (batch->tokens = tr_alloc_aligned((size_t)loader->tokens, sizeof(int32_t)));
        wanted = wanted && (batch->offset = tr_alloc_aligned(rows + 1, sizeof(int32_t)));
        break;
    }
    if (info->labels == TR_LABEL_CLASS) {
        wanted = wanted && (batch->labels = tr_alloc_aligned(rows, sizeof(int32_t)));
    } else if (info->labels == TR_LABEL_TOKENS) {
        wanted = wanted && (batch->labels = tr_alloc_aligned((size_t)loader->tokens, sizeof(int32_t)));
    } else if (info->labels == TR_LABEL_VALUES) {
        wanted = wanted && (batch->targets = tr_alloc_aligned(rows, (size_t)info->values * sizeof(float)));
    }
    return wanted ? TR_OK : TR_ENOMEM;
}

static void slot_free(struct tr_batch *batch)
{
    tr_free(batch->index);
    tr_free(batch->images);
    for (int32_t i = 0; i < TR_SOURCE_PARTS; i++) tr_free(batch->part[i]);
    tr_free(batch->floats);
    tr_free(batch->tokens);
    tr_free(batch->offset);
    tr_free(batch->labels);
    tr_free(batch->targets);
}

/* Examples lie anywhere in memory, and reading one takes less than fetching it. */
#define FETCH_AHEAD 3

/* The labels of tokens in a whole global batch, whoever reads it. */
static int64_t count_labels(const tr_loader *loader, const struct tr_order_step *at)
{
    const tr_source *source = loader->source;
    int64_t labels = 0;
    if (source->info.labels != TR_LABEL_TOKENS) return at->rows;
    if (source->stream) return at->rows * source->window;
    for (int64_t row = 0; row < at->rows; row++)
        labels +=
            source->class->labelled(source, tr_order_example(&loader->order, at->epoch, at->first + row));
    return labels;
}

/* Row `row` of the batch, example `index`, of a source with image parts. */
static tr_status read_parts(const tr_source *source, const struct tr_batch *batch, int64_t row, int64_t index,
                            void *label)
{
    uint8_t *image[TR_SOURCE_PARTS] = {NULL};
    for (int32_t i = 0; i < source->parts->images; i++)
        image[i] = batch->part[i] + row * tr_shape_count(&source->parts->part[i].shape);
    return source->class->read_parts(source, index, image, batch->floats + row * floats_of(source), label);
}

/* Reads the examples of `step` into `batch`. Any thread. */
static tr_status assemble(const tr_loader *loader, int64_t step, struct tr_batch *batch)
{
    const tr_source *source = loader->source;
    const struct tr_source_info *info = &source->info;
    const struct tr_loader_options *options = &loader->options;
    struct tr_order_step at = tr_order_at(&loader->order, step);
    int64_t image = info->features == TR_FEATURE_IMAGE ? tr_source_capacity(source) : 0;

    batch->step = step;
    batch->epoch = at.epoch;
    batch->global_rows = at.rows;
    batch->global_labels = count_labels(loader, &at);
    batch->first = tr_cut(at.rows, options->microbatches, options->first_microbatch);
    batch->rows = tr_cut(at.rows, options->microbatches, options->end_microbatch) - batch->first;
    if (batch->offset) batch->offset[0] = 0;
    for (int64_t row = 0; row < batch->rows; row++)
        batch->index[row] = tr_order_example(&loader->order, at.epoch, at.first + batch->first + row);
    for (int64_t row = 0; row < batch->rows; row++) {
        int64_t index = batch->index[row];
        if (source->class->fetch && row + FETCH_AHEAD < batch->rows)
            source->class->fetch(source, batch->index[row + FETCH_AHEAD]);
        void *features = batch->images   ? (void *)(batch->images + row * image)
                         : batch->floats ? (void *)(batch->floats + row * info->floats)
                         : batch->tokens ? (void *)(batch->tokens + batch->offset[row])
                                         : NULL;
        int64_t place = info->labels == TR_LABEL_TOKENS ? batch->offset[row] : row;
        void *label = batch->labels    ? (void *)(batch->labels + place)
                      : batch->targets ? (void *)(batch->targets + row * info->values)
                                       : NULL;
        int64_t length;
        if (by_parts(source)) {
            TR_TRY(read_parts(source, batch, row, index, label));
            continue;
        }
        TR_TRY(source->class->read(source, index, features, &length, label));
        if (batch->offset) batch->offset[row + 1] = batch->offset[row] + (int32_t)length;
    }
    return TR_OK;
}

static void fill(const tr_loader *loader, int64_t step, struct slot *slot)
{
    tr_failure_keep(&slot->outcome, assemble(loader, step, &slot->batch));
}

static bool may_read(const tr_loader *loader)
{
    return loader->current >= 0 && loader->next - loader->current <= loader->options.prefetch &&
           (loader->next < loader->options.end_step || loader->next == loader->current);
}

static void *read_ahead(void *user)
{
    tr_loader *loader = user;
    tr_timeline_enter(loader->timeline, "reader");
    /* A batch is taken by somebody who is about to compute: he must not lose his processor to the thread that
       he wakes by it. It matters where all processors compute; refused, it is as before. */
    sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    pthread_mutex_lock(&loader->lock);
    while (!loader->quit) {
        if (!may_read(loader)) {
            pthread_cond_wait(&loader->changed, &loader->lock);
            continue;
        }
        int64_t step = loader->next;
        loader->busy = true;
        pthread_mutex_unlock(&loader->lock);
        tr_timeline_step(step);
        tr_span_begin(TR_ACTIVITY_INPUT, "read ahead");
        fill(loader, step, &loader->slot[step % loader->slots]);
        tr_span_end();
        pthread_mutex_lock(&loader->lock);
        loader->busy = false;
        loader->next = step + 1;
        pthread_cond_broadcast(&loader->changed);
    }
    pthread_mutex_unlock(&loader->lock);
    tr_timeline_leave();
    return NULL;
}

static tr_status start_reading(tr_loader *loader)
{
    if (pthread_mutex_init(&loader->lock, NULL) != 0) goto no_lock;
    if (pthread_cond_init(&loader->changed, NULL) != 0) goto no_condition;
    loader->timeline = tr_timeline_current();
    if (tr_thread_start(&loader->thread, read_ahead, loader) != 0) goto no_thread;
    loader->reading = true;
    return TR_OK;
no_thread:
    pthread_cond_destroy(&loader->changed);
no_condition:
    pthread_mutex_destroy(&loader->lock);
no_lock:
    return tr_fail(TR_ENOMEM,
                   "start a thread that reads data ahead: the system refused; set prefetch: 0 or free "
                   "processes");
}

static tr_status check_options(const tr_loader *loader)
{
    const struct tr_loader_options *options = &loader->options;
    if (options->microbatches < 1 || options->first_microbatch < 0 ||
        options->end_microbatch <= options->first_microbatch ||
        options->end_microbatch > options->microbatches) {
        return tr_fail(TR_EINVAL,
                       "microbatches [%" PRId64 ", %" PRId64 ") of %" PRId64 ": not a range of them",
                       options->first_microbatch, options->end_microbatch, options->microbatches);
    }
    if (options->prefetch < 0 || options->prefetch > TR_PREFETCH_MAX) {
        return tr_fail(TR_EINVAL, "prefetch is %d; give 0 to %d", options->prefetch, TR_PREFETCH_MAX);
    }
    if (loader->order.count > loader->source->info.count) {
        return tr_fail(TR_EINVAL, "the order is over %" PRId64 " examples, the source has %" PRId64,
                       loader->order.count, loader->source->info.count);
    }
    return TR_OK;
}

tr_status tr_loader_create(const tr_source *source, const struct tr_order *order,
                           const struct tr_loader_options *options, tr_loader **out)
{
    tr_status status;
    tr_loader *loader = tr_alloc_zero(1, sizeof *loader);
    if (!loader) return TR_ENOMEM;
    loader->source = source;
    loader->order = *order;
    loader->options = *options;
    loader->current = -1;
    if (options->prefetch == TR_PREFETCH_AUTO) loader->options.prefetch = source->info.slow ? 2 : 0;
    TR_TRY_GOTO(check_options(loader), fail);
    /* Of images in memory only numbers and labels are read, which takes less than waking a thread. */
    if (source->resident) loader->options.prefetch = 0;

    /* What tr_cut() gives to a range of microbatches of a batch of this size or less. */
    int64_t parts = options->end_microbatch - options->first_microbatch;
    __extension__ __int128 rows =
        ((__int128)order->batch * parts + options->microbatches - 1) / options->microbatches;
    loader->capacity = (int64_t)rows;
    if (source->info.features == TR_FEATURE_TOKENS &&
        (__builtin_mul_overflow(loader->capacity, (int64_t)source->info.max_tokens, &loader->tokens) ||
         loader->tokens > INT32_MAX)) {
        status = tr_fail(TR_EINVAL,
                         "a batch of %" PRId64 " rows of up to %" PRId32
                         " tokens is more than %d tokens; make the "
                         "batch or max_tokens smaller",
                         loader->capacity, source->info.max_tokens, INT32_MAX);
        goto fail;
    }
    loader->slots = loader->options.prefetch + 1;
    loader->slot = tr_alloc_zero((size_t)loader->slots, sizeof *loader->slot);
    if (!loader->slot) {
        status = TR_ENOMEM;
        goto fail;
    }
    for (int i = 0; i < loader->slots; i++) TR_TRY_GOTO(slot_alloc(loader, &loader->slot[i].batch), fail);
    if (loader->options.prefetch > 0) TR_TRY_GOTO(start_reading(loader), fail);
    *out = loader;
    return TR_OK;
fail:
    tr_loader_destroy(&loader);
    return status;
}

void tr_loader_destroy(tr_loader **handle)
{
    tr_loader *loader = *handle;
    if (!loader) return;
    if (loader->reading) {
        pthread_mutex_lock(&loader->lock);
        loader->quit = true;
        pthread_cond_broadcast(&loader->changed);
        pthread_mutex_unlock(&loader->lock);
        pthread_join(loader->thread, NULL);
        pthread_cond_destroy(&loader->changed);
        pthread_mutex_destroy(&loader->lock);
    }
    for (int i = 0; loader->slot && i < loader->slots; i++) slot_free(&loader->slot[i].batch);
    tr_free(loader->slot);
    tr_free(loader);
    *handle = NULL;
}

/* Waits until the reader has filled the slot of `step`. */
static void wait_for(tr_loader *loader, int64_t step)
{
    pthread_mutex_lock(&loader->lock);
    if (loader->current < 0 || step < loader->current || step > loader->next) {
        /* A jump: what was read ahead is of no use. */
        loader->current = -1;
        while (loader->busy) pthread_cond_wait(&loader->changed, &loader->lock);
        loader->next = step;
    }
    loader->current = step;
    pthread_cond_broadcast(&loader->changed);
    while (loader->next <= step) pthread_cond_wait(&loader->changed, &loader->lock);
    pthread_mutex_unlock(&loader->lock);
}

tr_status tr_loader_get(tr_loader *loader, int64_t step, const struct tr_batch **out)
{
    if (step < 0) return tr_fail(TR_EINVAL, "step %" PRId64 " of a data set: steps count from 0", step);
    struct slot *slot = &loader->slot[step % loader->slots];
    tr_span_begin(TR_ACTIVITY_INPUT, "read");
    if (loader->reading) {
        wait_for(loader, step);
    } else {
        fill(loader, step, slot);
    }
    tr_span_end();
    if (slot->outcome.status != TR_OK) return tr_failure_restore(&slot->outcome);
    *out = &slot->batch;
    return TR_OK;
}

int64_t tr_loader_rows(const tr_loader *loader)
{
    return loader->capacity;
}

int64_t tr_loader_tokens(const tr_loader *loader)
{
    return loader->tokens;
}
