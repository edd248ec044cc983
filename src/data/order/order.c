#include "data/order/order.h"

#include "base/fail.h"

#include <inttypes.h>

tr_status tr_order_make(struct tr_order *order, int64_t count, int64_t batch, enum tr_last_batch last,
                        bool shuffle, uint64_t seed)
{
    if (count < 1)
        return tr_fail(TR_EINVAL, "the data set has %" PRId64 " examples; at least 1 is needed", count);
    if (batch < 1) return tr_fail(TR_EINVAL, "batch is %" PRId64 "; at least 1 is needed", batch);
    if (batch > count && last == TR_LAST_BATCH_DROP) {
        return tr_fail(TR_EINVAL,
                       "no batch would be left: batch is %" PRId64 ", the data set has %" PRId64
                       " examples and last_batch is drop; make the batch smaller or set last_batch: keep",
                       batch, count);
    }
    if (batch > count) batch = count;
    *order = (struct tr_order){
        .count = count,
        .batch = batch,
        .steps_per_epoch = count / batch + (last == TR_LAST_BATCH_KEEP && count % batch != 0),
        .shuffle = shuffle,
        .key = tr_rng_key_make(seed, TR_RNG_ORDER),
    };
    return TR_OK;
}

void tr_order_sample(struct tr_order *order, const tr_sampler *sampler, uint64_t seed)
{
    order->sampler = sampler;
    order->sample_key = tr_rng_key_make(seed, TR_RNG_SAMPLE);
}

struct tr_order_step tr_order_at(const struct tr_order *order, int64_t step)
{
    struct tr_order_step at = {.epoch = step / order->steps_per_epoch};
    at.first = step % order->steps_per_epoch * order->batch;
    int64_t left = order->count - at.first;
    at.rows = left < order->batch ? left : order->batch;
    return at;
}

int64_t tr_order_example(const struct tr_order *order, int64_t epoch, int64_t position)
{
    if (order->sampler)
        return tr_sampler_draw(order->sampler, order->sample_key, (uint32_t)epoch, (uint64_t)position);
    if (!order->shuffle) return position;
    return (int64_t)tr_rng_permute(order->key, (uint32_t)epoch, (uint64_t)order->count, (uint64_t)position);
}

/* ---- many examples of an epoch ---- */

/* Whether examples come from a permutation. */
static bool permutes(const struct tr_order *order)
{
    return !order->sampler && order->shuffle;
}

static tr_status set_epoch(struct tr_order_reader *reader, int64_t epoch)
{
    const struct tr_order *order = &reader->order;
    return tr_permutation_set(&reader->permutation, order->key, (uint32_t)epoch, (uint64_t)order->count);
}

tr_status tr_order_reader_make(const struct tr_order *order, struct tr_order_reader *out)
{
    *out = (struct tr_order_reader){.order = *order};
    return permutes(order) ? set_epoch(out, 0) : TR_OK;
}

void tr_order_reader_release(struct tr_order_reader *reader)
{
    tr_permutation_release(&reader->permutation);
}

void tr_order_read(struct tr_order_reader *reader, int64_t epoch, int64_t first, int64_t count,
                   int64_t *index)
{
    if (!permutes(&reader->order)) {
        for (int64_t i = 0; i < count; i++) index[i] = tr_order_example(&reader->order, epoch, first + i);
        return;
    }
    (void)set_epoch(reader, epoch); /* cannot fail: the sizes are those that tr_order_reader_make()
                                       allocated for */
    tr_permutation_run(&reader->permutation, (uint64_t)first, count, index);
}
