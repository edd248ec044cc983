/* Batches whose rows are mixed with another example each, and batches with labels of pixels or of a stream.
 */
#include "data/order/batch.h"
#include "data/source.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

enum { COUNT = 23, FLOATS = 2, PIXELS = 6 };

/* Example i has the numbers i and -i and class i % 5; as an image its pixels are i + 7k, their labels i + k.
 */
static tr_status made_read(const tr_source *base, int64_t index, void *features, int64_t *length, void *label)
{
    *length = tr_source_capacity(base);
    if (base->info.features == TR_FEATURE_IMAGE) {
        for (int k = 0; k < PIXELS; k++) {
            ((uint8_t *)features)[k] = (uint8_t)(index + 7 * k);
            ((int32_t *)label)[k] = (int32_t)index + k;
        }
        return TR_OK;
    }
    ((float *)features)[0] = (float)index;
    ((float *)features)[1] = (float)-index;
    *(int32_t *)label = (int32_t)(index % 5);
    return TR_OK;
}

static const struct tr_source_class made_class = {
    .name = "made", .version = TR_SOURCE_VERSION, .read = made_read};

/* The example that a row of a step is mixed with, as batch.h has it. */
static int64_t other_of(tr_rng_key key, int64_t row, int64_t step)
{
    uint32_t w[4];
    tr_rng_philox(key, (uint32_t)row, (uint32_t)step, 6, 0, w);
    const uint64_t word = (uint64_t)w[0] << 32 | w[1];
    return (int64_t)((double)word / 0x1p64 * COUNT);
}

/* On any rank, with and without reading ahead, and with few rows at the end of an epoch. */
static void rows_are_mixed_with_others(void **state)
{
    (void)state;
    const tr_source source = {.class = &made_class,
                              .info = {.count = COUNT,
                                       .features = TR_FEATURE_FLOATS,
                                       .floats = FLOATS,
                                       .labels = TR_LABEL_CLASS,
                                       .classes = 5}};
    struct tr_order order;
    assert_int_equal(tr_order_make(&order, COUNT, 10, TR_LAST_BATCH_KEEP, true, 5), TR_OK);
    for (int rank = 0; rank < 3; rank++)
        for (int prefetch = 0; prefetch < 3; prefetch += 2) {
            const struct tr_loader_options options = {.microbatches = 3,
                                                      .first_microbatch = rank,
                                                      .end_microbatch = rank + 1,
                                                      .prefetch = prefetch,
                                                      .end_step = INT64_MAX,
                                                      .mixes = true,
                                                      .mix_key = tr_rng_key_make(77, TR_RNG_ORDER)};
            tr_loader *loader;
            assert_int_equal(tr_loader_create(&source, &order, &options, &loader), TR_OK);
            for (int64_t step = 0; step < 2 * order.steps_per_epoch; step++) {
                const struct tr_batch *batch;
                assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
                assert_int_equal(batch->others, tr_loader_rows(loader));
                for (int64_t r = 0; r < batch->rows; r++) {
                    const int64_t at = batch->others + r,
                                  wanted = other_of(options.mix_key, batch->first + r, step);
                    assert_int_equal(batch->index[at], wanted);
                    assert_true(batch->floats[FLOATS * at] == (float)wanted &&
                                batch->floats[FLOATS * at + 1] == (float)-wanted);
                    assert_int_equal(batch->labels[at], wanted % 5);
                    assert_true(batch->floats[FLOATS * r] ==
                                (float)batch->index[r]); /* and stay themselves */
                    assert_int_equal(batch->labels[r], batch->index[r] % 5);
                }
            }
            tr_loader_destroy(&loader);
        }
}

static void pixels_have_labels(void **state)
{
    (void)state;
    const tr_source source = {.class = &made_class,
                              .info = {.count = COUNT,
                                       .features = TR_FEATURE_IMAGE,
                                       .height = 2,
                                       .width = 3,
                                       .channels = 1,
                                       .labels = TR_LABEL_PIXELS,
                                       .classes = COUNT + PIXELS}};
    const struct tr_loader_options options = {.microbatches = 1, .end_microbatch = 1, .end_step = INT64_MAX};
    struct tr_order order;
    tr_loader *loader;
    const struct tr_batch *batch;
    assert_int_equal(tr_order_make(&order, COUNT, 10, TR_LAST_BATCH_KEEP, true, 5), TR_OK);
    assert_int_equal(tr_loader_create(&source, &order, &options, &loader), TR_OK);
    for (int64_t step = 0; step < order.steps_per_epoch; step++) {
        assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
        assert_int_equal(batch->global_labels, batch->rows);
        for (int64_t r = 0; r < batch->rows; r++)
            for (int k = 0; k < PIXELS; k++) {
                assert_int_equal(batch->images[r * PIXELS + k], (uint8_t)(batch->index[r] + 7 * k));
                assert_int_equal(batch->labels[r * PIXELS + k], batch->index[r] + k);
            }
    }
    tr_loader_destroy(&loader);
}

/* Every token of a running text has a label: the next one. A worker knows how many the whole batch has. */
static void streams_have_labels(void **state)
{
    (void)state;
    write_text("stream", "abcdefghijklmnopqrstuvwxyz");
    tr_source *source = must_open("{corpus: {path: stream, unit: bytes, window: 3}}"); /* 8 windows */
    const struct tr_loader_options options = {
        .microbatches = 2, .first_microbatch = 1, .end_microbatch = 2, .end_step = INT64_MAX};
    struct tr_order order;
    tr_loader *loader;
    const struct tr_batch *batch;
    assert_int_equal(source->info.count, 8);
    assert_int_equal(tr_order_make(&order, 8, 5, TR_LAST_BATCH_KEEP, false, 5), TR_OK);
    assert_int_equal(tr_loader_create(source, &order, &options, &loader), TR_OK);
    for (int64_t step = 0; step < 2; step++) {
        assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
        assert_int_equal(batch->global_rows, step ? 3 : 5);
        assert_int_equal(batch->global_labels, 3 * batch->global_rows);
        for (int64_t r = 0; r < batch->rows; r++) {
            assert_int_equal(batch->offset[r], 3 * r);
            for (int k = 0; k < 3; k++) {
                assert_int_equal(batch->tokens[3 * r + k], 'a' + 3 * batch->index[r] + k);
                assert_int_equal(batch->labels[3 * r + k], 'a' + 3 * batch->index[r] + k + 1);
            }
        }
        assert_int_equal(batch->offset[batch->rows], 3 * batch->rows);
    }
    tr_loader_destroy(&loader);
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_mixed_with_others),
        cmocka_unit_test(pixels_have_labels),
        cmocka_unit_test(streams_have_labels),
    };
    return cmocka_run_group_tests_name("data.mixed", tests, NULL, NULL);
}
