/* Where the examples of a split and of draws by class come from, place by place: the permutation of the seed
 * cut in two, and the formula of a draw. And what stays where a source, or memory, fails.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/order/batch.h"
#include "data/order/order.h"
#include "data/order/split.h"
#include "data/source.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <inttypes.h>

/* Example i has the number i as its feature, and class i % classes. */
struct made {
    tr_source base;
    int64_t fail_at; /* -1: none */
};

static int closed;

static tr_status made_read(const tr_source *base, int64_t index, void *features, int64_t *length, void *label)
{
    const struct made *made = (const struct made *)base;
    if (index == made->fail_at) return tr_fail(TR_EFORMAT, "example %" PRId64 " is bad", index);
    *length = 1;
    if (features) *(float *)features = (float)index;
    if (label) *(int32_t *)label = (int32_t)(index % base->info.classes);
    return TR_OK;
}

static void made_destroy(tr_source *base)
{
    closed++;
    tr_free(base);
}

static const struct tr_source_class made_class = {
    .name = "made", .version = TR_SOURCE_VERSION, .read = made_read, .destroy = made_destroy};

static tr_source *make(int64_t count, int32_t classes, int64_t fail_at)
{
    struct made *made = tr_alloc_zero(1, sizeof *made);
    assert_non_null(made);
    made->fail_at = fail_at;
    made->base.class = &made_class;
    made->base.info = (struct tr_source_info){.count = count,
                                              .features = TR_FEATURE_FLOATS,
                                              .floats = 1,
                                              .labels = TR_LABEL_CLASS,
                                              .classes = classes};
    return &made->base;
}

static int64_t at(const tr_source *source, int64_t index)
{
    float number;
    assert_int_equal(tr_source_read(source, index, &number, 1, NULL, NULL), TR_OK);
    return (int64_t)number;
}

/* What the permutation of all examples has at a position. */
static int64_t permuted(uint64_t seed, int64_t count, int64_t position)
{
    return (int64_t)tr_rng_permute(tr_rng_key_make(seed, TR_RNG_SPLIT), 0, (uint64_t)count,
                                   (uint64_t)position);
}

/* The second part has the positions [begin, end). */
static void expect_places(int64_t count, const struct tr_split *split, int64_t begin, int64_t end)
{
    tr_source *first, *second;
    assert_int_equal(tr_split_first(make(count, 2, -1), split, &first), TR_OK);
    assert_int_equal(tr_split_second(first, &second), TR_OK);
    assert_int_equal(tr_source_info(first)->count, count - (end - begin));
    assert_int_equal(tr_source_info(second)->count, end - begin);
    for (int64_t p = 0, a = 0, b = 0; p < count; p++) {
        const bool is_second = p >= begin && p < end;
        const int64_t got = is_second ? at(second, b++) : at(first, a++);
        if (got != permuted(split->seed, count, p))
            fail_msg("%" PRId64 " examples, position %" PRId64 ": %" PRId64, count, p, got);
    }
    tr_source_close(&second);
    tr_source_close(&first);
}

/* Neighbours in the whole, read at once. */
static tr_status made_read_run(const tr_source *base, int64_t index, int64_t count, void *features,
                               void *label)
{
    int64_t length;
    for (int64_t i = 0; i < count; i++)
        TR_TRY(made_read(base, index + i, features ? (float *)features + i : NULL, &length,
                         label ? (int32_t *)label + i : NULL));
    return TR_OK;
}

static const struct tr_source_class run_class = {.name = "made",
                                                 .version = TR_SOURCE_VERSION,
                                                 .read = made_read,
                                                 .read_run = made_read_run,
                                                 .destroy = made_destroy};

/* Neighbours in a part are none in the whole: a batch of a source that reads runs has the same examples. */
static void batches_of_parts_have_their_examples(void **state)
{
    enum { COUNT = 20, BATCH = 5 };
    const struct tr_loader_options options = {.microbatches = 1, .end_microbatch = 1, .end_step = INT64_MAX};
    (void)state;
    tr_source *whole = make(COUNT, 2, -1), *part[2];
    whole->class = &run_class;
    assert_int_equal(tr_split_first(whole, &(struct tr_split){.seed = 5, .share = 0.5}, &part[0]), TR_OK);
    assert_int_equal(tr_split_second(part[0], &part[1]), TR_OK);
    for (int k = 0; k < 2; k++) {
        struct tr_order order;
        tr_loader *loader = NULL;
        assert_int_equal(tr_order_make(&order, COUNT / 2, BATCH, TR_LAST_BATCH_KEEP, false, 5), TR_OK);
        assert_int_equal(tr_loader_create(part[k], &order, &options, &loader), TR_OK);
        for (int64_t step = 0; step < COUNT / 2 / BATCH; step++) {
            const struct tr_batch *batch;
            assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
            assert_int_equal(batch->rows, BATCH);
            for (int64_t row = 0; row < BATCH; row++) {
                const int64_t expected = permuted(5, COUNT, k * COUNT / 2 + step * BATCH + row);
                assert_true(batch->floats[row] == (float)expected);
                assert_int_equal(batch->labels[row], expected % 2);
            }
        }
        tr_loader_destroy(&loader);
    }
    tr_source_close(&part[1]);
    tr_source_close(&part[0]);
}

/* Also of more examples than are listed. */
static void parts_are_cut_from_a_permutation(void **state)
{
    (void)state;
    expect_places(10, &(struct tr_split){.seed = 5, .share = 0.3}, 7, 10);
    expect_places(10, &(struct tr_split){.seed = 5, .share = 0.25}, 7, 10); /* 2.5 */
    expect_places(10, &(struct tr_split){.seed = 5, .share = 0.24}, 8, 10);
    expect_places(11, &(struct tr_split){.seed = 6, .folds = 3, .fold = 1}, 0, 3);
    expect_places(11, &(struct tr_split){.seed = 6, .folds = 3, .fold = 2}, 3, 7);
    expect_places(11, &(struct tr_split){.seed = 6, .folds = 3, .fold = 3}, 7, 11);
    expect_places(3, &(struct tr_split){.seed = 6, .folds = 3, .fold = 2}, 1, 2);
    for (int64_t count = 65535; count <= 65537; count++)
        expect_places(count, &(struct tr_split){.seed = 7, .folds = 4, .fold = 2}, count / 4, count / 2);
}

/* Every example has a number within its class, in the order of the permutation, those of the classes one
   after the other. */
static void strata_are_cut_by_numbers(void **state)
{
    enum { COUNT = 23, CLASSES = 3 };
    (void)state;
    for (int fold = 0; fold <= 4; fold++) {
        const struct tr_split split = {
            .seed = 9, .share = 0.2, .folds = fold ? 4 : 0, .fold = fold, .stratified = true};
        tr_source *first, *second;
        int64_t lower[CLASSES] = {0, 8, 16}; /* of 23: 8, 8, 7 */
        assert_int_equal(tr_split_first(make(COUNT, CLASSES, -1), &split, &first), TR_OK);
        assert_int_equal(tr_split_second(first, &second), TR_OK);
        int64_t a = 0, b = 0;
        for (int64_t p = 0; p < COUNT; p++) {
            const int64_t example = permuted(split.seed, COUNT, p), number = lower[example % CLASSES]++;
            /* of 23 a fifth is 5 */
            const bool is_second =
                fold ? number % 4 == fold - 1 : (number + 1) * 5 / COUNT > number * 5 / COUNT;
            assert_int_equal(is_second ? at(second, b++) : at(first, a++), example);
        }
        assert_int_equal(tr_source_info(first)->count, a);
        assert_int_equal(tr_source_info(second)->count, b);
        tr_source_close(&first);
        tr_source_close(&second);
    }
}

/* A word draws the class, two more the example. */
static void draws_follow_their_formula(void **state)
{
    static const float shares[] = {1, 0, 2, 5, 0};
    static const double bound[] = {0.125, 0.125, 0.375, 1, 1};
    enum { COUNT = 52, CLASSES = 5 };
    (void)state;
    tr_source *source = make(COUNT, CLASSES, -1);
    tr_sampler *sampler;
    const tr_rng_key key = tr_rng_key_make(77, TR_RNG_SAMPLE);
    assert_int_equal(tr_sampler_create(source, shares, CLASSES, &sampler), TR_OK);
    struct tr_order order;
    assert_int_equal(tr_order_make(&order, COUNT, 10, TR_LAST_BATCH_KEEP, true, 3), TR_OK);
    tr_order_sample(&order, sampler, 77);
    for (int64_t i = 0; i < 500; i++) {
        const int64_t position = i < 400 ? i : ((int64_t)1 << 33) + i;
        uint32_t w[4];
        int class = 0;
        tr_rng_philox(key, 3, (uint32_t)position, (uint32_t)(position >> 32), 0, w);
        while ((double)w[0] >= bound[class] * 0x1p32) class ++;
        const int64_t n = class < 2 ? 11 : 10; /* of 52 */
        const uint64_t word = (uint64_t)w[1] << 32 | w[2];
        const int64_t place = (int64_t)((double)word / 0x1p64 * (double)n);
        assert_int_equal(tr_sampler_draw(sampler, key, 3, (uint64_t)position), place * CLASSES + class);
        assert_int_equal(tr_order_example(&order, 3, position), place * CLASSES + class);
    }
    tr_sampler_destroy(&sampler);
    assert_null(sampler);
    tr_sampler_destroy(&sampler);
    tr_source_close(&source);
}

/* ---- failures ---- */

static void expect_refusal(tr_status status, const char *message)
{
    assert_int_equal(status, TR_EINVAL);
    assert_string_equal(tr_error_message(), message);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    tr_source *first, *source = make(10, 2, -1);
    tr_sampler *sampler;
    source->overlaps = true;
    expect_refusal(tr_split_first(source, &(struct tr_split){.share = 0.5}, &first),
                   "windows share rows, so a random part of them would share rows with the rest; leave "
                   "validation_split and folds out, and name data.validation by time, with part: [0.8, 1] "
                   "there and part: [0, 0.8] in data.train");
    source = make(10, 2, -1);
    expect_refusal(tr_sampler_create(source, (const float[]){0, 0}, 2, &sampler),
                   "all shares of classes are 0; give one that is above");
    source->info.classes = 3;
    expect_refusal(tr_sampler_create(source, (const float[]){1, 1}, 2, &sampler),
                   "2 shares of classes, but 3 classes; give one for each");
    source->info.labels = TR_LABEL_VALUES;
    expect_refusal(tr_sampler_create(source, NULL, 0, &sampler),
                   "examples are drawn by class, but the training data have no classes; set train.sampling: "
                   "once");
    tr_source_close(&source);
    source = make(2, 5, -1); /* none of class 2, 3 and 4 */
    expect_refusal(tr_sampler_create(source, (const float[]){1, 1, 0, 0.5f, 1}, 5, &sampler),
                   "class 3 has no training examples to draw, but a share of 0.5; set it to 0");
    tr_source_close(&source);
}

/* The source goes with its split, whatever becomes of that. */
static void an_example_that_is_bad_is_told(void **state)
{
    (void)state;
    tr_source *first;
    tr_sampler *sampler;
    const int64_t live = tr_alloc_live();
    closed = 0;
    assert_int_equal(
        tr_split_first(make(20, 2, 13), &(struct tr_split){.share = 0.5, .stratified = true}, &first),
        TR_EFORMAT);
    assert_string_equal(tr_error_message(), "example 13 is bad");
    assert_int_equal(closed, 1);
    assert_int_equal(tr_alloc_live(), live);
    tr_source *source = make(20, 2, 13);
    assert_int_equal(tr_sampler_create(source, NULL, 0, &sampler), TR_EFORMAT);
    assert_string_equal(tr_error_message(), "example 13 is bad");
    tr_source_close(&source);
    assert_int_equal(tr_alloc_live(), live);
}

static void memory_may_fail(void **state)
{
    (void)state;
    for (int stratified = 0; stratified < 2; stratified++)
        for (int64_t k = 0, done = 0; !done; k++) {
            const int64_t live = tr_alloc_live();
            tr_source *source = make(20, 2, -1), *first = NULL, *second = NULL;
            const struct tr_split split = {.share = 0.5, .stratified = stratified};
            closed = 0;
            refuse_begin(k);
            tr_status status = tr_split_first(source, &split, &first);
            const bool made = status == TR_OK;
            if (made) status = tr_split_second(first, &second);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            assert_int_equal(closed, !made);
            tr_source_close(&first);
            tr_source_close(&second);
            assert_int_equal(closed, 1);
            assert_int_equal(tr_alloc_live(), live);
        }
    tr_source *source = make(20, 2, -1);
    for (int64_t k = 0, done = 0; !done; k++) {
        const int64_t live = tr_alloc_live();
        tr_sampler *sampler = NULL;
        refuse_begin(k);
        const tr_status status = tr_sampler_create(source, NULL, 0, &sampler);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_sampler_destroy(&sampler);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_of_parts_have_their_examples),
        cmocka_unit_test(parts_are_cut_from_a_permutation),
        cmocka_unit_test(strata_are_cut_by_numbers),
        cmocka_unit_test(draws_follow_their_formula),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(an_example_that_is_bad_is_told),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests_name("data.split_places", tests, NULL, NULL);
}
