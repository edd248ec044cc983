/* Batches: the same with and without reading ahead, from any step on, for any part of the global batch. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/tree.h"
#include "base/threads/timeline.h"
#include "data/order/batch.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A source made up in memory: example i has features and labels that are functions of i. */
struct made_source {
    tr_source base;
    int64_t fail_at;       /* reading this example fails; -1: none */
    bool fails_from_there; /* and those behind it */
    atomic_uint sleep_us;  /* reading takes this long */
    atomic_int reads;
    int64_t hold_at; /* reading this example waits until `opened`; -1: none */
    atomic_bool opened;
};

static int32_t tokens_of(int64_t index)
{
    return (int32_t)(index * 7 % 5) + 1;
}

static tr_status made_read(const tr_source *base, int64_t index, void *features, int64_t *length, void *label)
{
    struct made_source *source = (struct made_source *)(uintptr_t)base;
    atomic_fetch_add(&source->reads, 1);
    unsigned pause = atomic_load(&source->sleep_us);
    if (pause > 0) usleep(pause);
    while (index == source->hold_at && !atomic_load(&source->opened)) usleep(100);
    if (index == source->fail_at || (source->fails_from_there && index > source->fail_at))
        return tr_fail(TR_EFORMAT, "example %" PRId64 " is bad", index);
    *length = tr_source_capacity(base);
    switch (base->info.features) {
    case TR_FEATURE_IMAGE:
        for (int64_t i = 0; features && i < *length; i++)
            ((uint8_t *)features)[i] = (uint8_t)(index * 31 + i);
        break;
    case TR_FEATURE_FLOATS:
        for (int64_t i = 0; features && i < *length; i++) ((float *)features)[i] = (float)(index + i) / 3;
        break;
    case TR_FEATURE_TOKENS:
        *length = tokens_of(index);
        for (int64_t i = 0; features && i < *length; i++)
            ((int32_t *)features)[i] = (int32_t)(index * 10 + i);
        break;
    }
    if (label && base->info.labels == TR_LABEL_CLASS) *(int32_t *)label = (int32_t)(index % 10);
    for (int32_t i = 0; label && i < base->info.values; i++) ((float *)label)[i] = (float)(index * 2 + i);
    return TR_OK;
}

static const struct tr_source_class made_class = {
    .name = "made", .version = TR_SOURCE_VERSION, .read = made_read};

/* Whose examples are so near that others may help to read them. */
static void made_fetch(const tr_source *base, int64_t index)
{
    (void)base;
    (void)index;
}

static const struct tr_source_class near_class = {
    .name = "near", .version = TR_SOURCE_VERSION, .read = made_read, .fetch = made_fetch};

static struct made_source make(enum tr_feature_kind kind, int64_t count)
{
    struct made_source source = {.base = {.class = &made_class}, .fail_at = -1, .hold_at = -1};
    source.base.info =
        (struct tr_source_info){.count = count, .features = kind, .labels = TR_LABEL_CLASS, .classes = 10};
    switch (kind) {
    case TR_FEATURE_IMAGE:
        source.base.info.height = 3;
        source.base.info.width = 5;
        source.base.info.channels = 2;
        break;
    case TR_FEATURE_FLOATS:
        source.base.info.floats = 7;
        source.base.info.labels = TR_LABEL_VALUES;
        source.base.info.values = 3;
        break;
    case TR_FEATURE_TOKENS:
        source.base.info.max_tokens = 5;
        source.base.info.vocabulary = 1 << 20;
        break;
    }
    return source;
}

static struct made_source make_near(enum tr_feature_kind kind, int64_t count)
{
    struct made_source source = make(kind, count);
    source.base.class = &near_class;
    return source;
}

/* A loader of all examples in their order, `batch` at a time; `order` is filled. */
static tr_loader *open_loader(const struct made_source *source, struct tr_order *order, int64_t batch,
                              const struct tr_loader_options *options)
{
    tr_loader *loader = NULL;
    assert_int_equal(tr_order_make(order, source->base.info.count, batch, TR_LAST_BATCH_KEEP, false, 5),
                     TR_OK);
    assert_int_equal(tr_loader_create(&source->base, order, options, &loader), TR_OK);
    return loader;
}

/* Everything in a batch is what the source has for the examples that the order names. */
static void check_batch(const struct made_source *source, const struct tr_order *order, int64_t step,
                        const struct tr_loader_options *options, const struct tr_batch *batch)
{
    const struct tr_source_info *info = &source->base.info;
    struct tr_order_step at = tr_order_at(order, step);
    int64_t begin = tr_cut(at.rows, options->microbatches, options->first_microbatch);
    int64_t end = tr_cut(at.rows, options->microbatches, options->end_microbatch);
    assert_int_equal(batch->step, step);
    assert_int_equal(batch->epoch, at.epoch);
    assert_int_equal(batch->global_rows, at.rows);
    assert_int_equal(batch->first, begin);
    assert_int_equal(batch->rows, end - begin);
    int64_t token = 0;
    for (int64_t row = 0; row < batch->rows; row++) {
        int64_t index = tr_order_example(order, at.epoch, at.first + begin + row);
        assert_int_equal(batch->index[row], index);
        for (int64_t i = 0; batch->images && i < 30; i++) {
            assert_int_equal(batch->images[row * 30 + i], (uint8_t)(index * 31 + i));
        }
        for (int64_t i = 0; batch->floats && i < 7; i++) {
            float wanted = (float)(index + i) / 3;
            assert_memory_equal(&batch->floats[row * 7 + i], &wanted, sizeof wanted);
        }
        if (batch->offset) assert_int_equal(batch->offset[row], token);
        for (int64_t i = 0; batch->tokens && i < tokens_of(index); i++) {
            assert_int_equal(batch->tokens[token + i], index * 10 + i);
        }
        if (batch->tokens) token += tokens_of(index);
        if (batch->labels) assert_int_equal(batch->labels[row], index % 10);
        for (int32_t i = 0; batch->targets && i < 3; i++) {
            assert_int_equal((int64_t)batch->targets[row * 3 + i], index * 2 + i);
        }
    }
    if (batch->offset) assert_int_equal(batch->offset[batch->rows], token);
    assert_true((batch->images != NULL) == (info->features == TR_FEATURE_IMAGE));
    assert_true((batch->floats != NULL) == (info->features == TR_FEATURE_FLOATS));
    assert_true((batch->tokens != NULL) == (info->features == TR_FEATURE_TOKENS));
    assert_true((batch->labels != NULL) == (info->labels == TR_LABEL_CLASS));
    assert_true((batch->targets != NULL) == (info->labels == TR_LABEL_VALUES));
}

static void run_through(struct made_source *source, const struct tr_order *order,
                        const struct tr_loader_options *options, int64_t first, int64_t end)
{
    tr_loader *loader = NULL;
    assert_int_equal(tr_loader_create(&source->base, order, options, &loader), TR_OK);
    for (int64_t step = first; step < end; step++) {
        const struct tr_batch *batch;
        assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
        assert_true(batch->rows <= tr_loader_rows(loader));
        check_batch(source, order, step, options, batch);
    }
    tr_loader_destroy(&loader);
    assert_null(loader);
}

static void test_contents(void **state)
{
    (void)state;
    for (int kind = TR_FEATURE_IMAGE; kind <= TR_FEATURE_TOKENS; kind++) {
        struct made_source source = make((enum tr_feature_kind)kind, 53);
        for (int last = TR_LAST_BATCH_KEEP; last <= TR_LAST_BATCH_DROP; last++) {
            struct tr_order order;
            assert_int_equal(tr_order_make(&order, 53, 8, (enum tr_last_batch)last, true, 5), TR_OK);
            for (int prefetch = 0; prefetch <= 5; prefetch++) {
                struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
                options.prefetch = prefetch;
                run_through(&source, &order, &options, 0, 3 * order.steps_per_epoch);
                run_through(&source, &order, &options, 4, 9); /* a run that goes on in mid-epoch */
            }
        }
    }
}

static void test_options_are_checked(void **state)
{
    static const struct {
        struct tr_loader_options options;
        int64_t examples; /* of the order */
        const char *says; /* NULL: they are taken */
    } cases[] = {
        {{.microbatches = 4, .end_microbatch = 4}, 20, NULL},
        {{.microbatches = 4, .first_microbatch = 3, .end_microbatch = 4}, 20, NULL},
        {{.microbatches = 0, .end_microbatch = 0}, 20, "microbatches [0, 0) of 0: not a range of them"},
        {{.microbatches = 4, .first_microbatch = -1, .end_microbatch = 4}, 20, "microbatches [-1, 4) of 4"},
        {{.microbatches = 4, .first_microbatch = 2, .end_microbatch = 2}, 20, "microbatches [2, 2) of 4"},
        {{.microbatches = 4, .end_microbatch = 5}, 20, "microbatches [0, 5) of 4"},
        {{.microbatches = 1, .end_microbatch = 1, .prefetch = TR_PREFETCH_MAX}, 20, NULL},
        {{.microbatches = 1, .end_microbatch = 1, .prefetch = TR_PREFETCH_MAX + 1}, 20, "; give 0 to "},
        {{.microbatches = 1, .end_microbatch = 1, .prefetch = -2}, 20, "prefetch is -2; give 0 to "},
        {{.microbatches = 1, .end_microbatch = 1}, 21, "the order is over 21 examples, the source has 20"},
        {{.microbatches = 1, .end_microbatch = 1}, 19, NULL},
    };
    (void)state;
    struct made_source source = make(TR_FEATURE_FLOATS, 20);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tr_order order;
        tr_loader *loader = NULL;
        assert_int_equal(tr_order_make(&order, cases[i].examples, 8, TR_LAST_BATCH_KEEP, true, 5), TR_OK);
        const tr_status status = tr_loader_create(&source.base, &order, &cases[i].options, &loader);
        if (status != (cases[i].says ? TR_EINVAL : TR_OK))
            fail_msg("case %zu: %s", i, tr_status_name(status));
        if (cases[i].says && !strstr(tr_error_message(), cases[i].says))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, tr_error_message(), cases[i].says);
        tr_loader_destroy(&loader);
    }
}

/* Workers' parts join to the global batch: every cut, ragged last batches with fewer rows than microbatches
 * too. */
static void test_parts(void **state)
{
    (void)state;
    struct made_source source = make(TR_FEATURE_TOKENS, 23);
    for (int64_t batch = 1; batch <= 12; batch++) {
        struct tr_order order;
        assert_int_equal(tr_order_make(&order, 23, batch, TR_LAST_BATCH_KEEP, true, 5), TR_OK);
        for (int64_t microbatches = 1; microbatches <= 6; microbatches++) {
            for (int64_t first = 0; first < microbatches; first++) {
                for (int64_t end = first + 1; end <= microbatches; end++) {
                    struct tr_loader_options options = {.microbatches = microbatches,
                                                        .first_microbatch = first,
                                                        .end_microbatch = end,
                                                        .end_step = INT64_MAX};
                    run_through(&source, &order, &options, 0, order.steps_per_epoch + 1);
                }
            }
        }
    }
}

static void test_jumps(void **state)
{
    (void)state;
    struct made_source source = make(TR_FEATURE_IMAGE, 40);
    source.sleep_us = 20;
    struct tr_order order;
    assert_int_equal(tr_order_make(&order, 40, 4, TR_LAST_BATCH_KEEP, true, 5), TR_OK);
    for (int prefetch = 0; prefetch <= 3; prefetch++) {
        struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
        options.prefetch = prefetch;
        tr_loader *loader = NULL;
        assert_int_equal(tr_loader_create(&source.base, &order, &options, &loader), TR_OK);
        uint32_t random = 1;
        int64_t step = 0;
        for (int i = 0; i < 300; i++) {
            const struct tr_batch *batch;
            assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
            check_batch(&source, &order, step, &options, batch);
            random = random * 1664525 + 1013904223;
            step = random >> 30 ? step + (random >> 28) % 4 : random >> 26;
        }
        tr_loader_destroy(&loader);
    }
}

/* A bad example is reported at its step, not before, not after, and every time. */
static void test_failure_surfaces_at_its_step(void **state)
{
    (void)state;
    for (int prefetch = 0; prefetch <= 4; prefetch++) {
        struct made_source source = make(TR_FEATURE_FLOATS, 40);
        source.fail_at = 21; /* unshuffled: step 5 */
        struct tr_order order;
        struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
        options.prefetch = prefetch;
        tr_loader *loader = open_loader(&source, &order, 4, &options);
        const struct tr_batch *batch;
        for (int64_t step = 0; step < 5; step++) assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
        for (int i = 0; i < 2; i++) {
            tr_fail(TR_EINVAL, "another message");
            assert_int_equal(tr_loader_get(loader, 5, &batch), TR_EFORMAT);
            assert_string_equal(tr_error_message(), "example 21 is bad");
        }
        assert_int_equal(tr_loader_get(loader, 6, &batch), TR_OK);
        check_batch(&source, &order, 6, &options, batch);
        tr_loader_destroy(&loader);
    }
}

/* So does that of an example with which another one is mixed. */
static void test_failure_of_others_surfaces(void **state)
{
    (void)state;
    struct made_source source = make(TR_FEATURE_FLOATS, 40);
    source.fail_at = 1; /* all but the first */
    source.fails_from_there = true;
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    options.prefetch = 0;
    options.mixes = true;
    int failed = 0;
    for (uint32_t key = 0; key < 8; key++) {
        struct tr_order order;
        const struct tr_batch *batch;
        options.mix_key = (tr_rng_key){key, 1};
        tr_loader *loader = open_loader(&source, &order, 1, &options);
        const tr_status status = tr_loader_get(loader, 0, &batch);
        if (status == TR_OK) assert_int_equal(batch->index[1], 0); /* with itself */
        failed += status == TR_EFORMAT;
        tr_loader_destroy(&loader);
    }
    assert_true(failed > 0);
}

/* At most `prefetch` batches are read ahead, none from end_step on, and none before the first is asked for.
 */
static void test_reading_ahead_is_bounded(void **state)
{
    (void)state;
    struct made_source source = make(TR_FEATURE_IMAGE, 100);
    struct tr_order order;
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    options.prefetch = 3;
    options.end_step = 6;
    tr_loader *loader = open_loader(&source, &order, 1, &options);
    static const int reads[] = {4, 5, 6, 6, 6, 6, 7, 8}; /* when things have settled after get(step) */
    usleep(20000);
    assert_int_equal(atomic_load(&source.reads), 0);
    for (int64_t step = 0; step < 8; step++) {
        const struct tr_batch *batch;
        assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
        for (int i = 0; i < 200 && atomic_load(&source.reads) < reads[step]; i++) usleep(1000);
        usleep(2000);
        assert_int_equal(atomic_load(&source.reads), reads[step]);
    }
    tr_loader_destroy(&loader);
}

/* The reader records beside the thread that made the loader, and nowhere where that records nothing. */
static void test_readers_record(void **state)
{
    (void)state;
    for (int records = 0; records < 2; records++) {
        static const struct tr_timeline_settings all = {1000, 0, INT64_MAX, true};
        struct tr_order order;
        struct made_source source = make(TR_FEATURE_IMAGE, 100);
        struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
        const struct tr_batch *batch;
        tr_timeline *timeline;
        options.prefetch = 2;
        assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
        tr_timeline_enter(records ? timeline : NULL, "main");
        tr_loader *loader = open_loader(&source, &order, 1, &options);
        assert_int_equal(tr_loader_get(loader, 0, &batch), TR_OK);
        while (atomic_load(&source.reads) < 3) usleep(1000);
        tr_loader_destroy(&loader);
        tr_timeline_leave();
        assert_int_equal(tr_timeline_lanes(timeline), records ? 2 : 0);
        if (records) assert_string_equal(tr_lane_name(tr_timeline_lane(timeline, 1)), "reader");
        tr_timeline_destroy(&timeline);
    }
}

/* Waits until so many examples have been read, and a little for those that should not be. */
static void settle(struct made_source *source, int reads)
{
    for (int i = 0; i < 20000 && atomic_load(&source->reads) < reads; i++) usleep(1000);
    usleep(5000);
    assert_int_equal(atomic_load(&source->reads), reads);
}

/* Where reading takes long, two batches are read ahead; else none. */
static void test_slow_sources_are_read_ahead(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        struct made_source source = make(TR_FEATURE_FLOATS, 100);
        struct tr_order order;
        const struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
        const struct tr_batch *batch;
        source.base.info.slow = slow;
        tr_loader *loader = open_loader(&source, &order, 10, &options);
        assert_int_equal(tr_loader_get(loader, 0, &batch), TR_OK);
        settle(&source, slow ? 30 : 10);
        tr_loader_destroy(&loader);
    }
}

/* With help the loader's thread reads the next batch only, and helpers those behind it, as far as it is to be
   read ahead. */
static void test_help_is_bounded(void **state)
{
    (void)state;
    struct made_source source = make_near(TR_FEATURE_FLOATS, 100);
    struct tr_order order;
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    options.prefetch = 3;
    options.end_step = 6;
    tr_loader *loader = open_loader(&source, &order, 10, &options);
    assert_true(tr_loader_may_be_helped(loader));
    tr_loader_expect_help(loader);
    assert_false(tr_loader_help(loader));
    static const int batches[] = {4, 5, 6, 6, 6, 6, 7}; /* that have been read in the end */
    for (int64_t step = 0; step < 7; step++) {
        const struct tr_batch *batch;
        assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
        check_batch(&source, &order, step, &options, batch);
        if (step == 0) settle(&source, 20);
        while (tr_loader_help(loader)) continue;
        settle(&source, 10 * batches[step]);
    }
    tr_loader_destroy(&loader);
}

/* Helpers whose reading takes long would be waited for: the loader's thread reads again. */
static void test_slow_help_is_paused(void **state)
{
    (void)state;
    struct made_source source = make_near(TR_FEATURE_FLOATS, 100);
    struct tr_order order;
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    options.prefetch = 3;
    const struct tr_batch *batch;
    tr_loader *loader = open_loader(&source, &order, 10, &options);
    tr_loader_expect_help(loader);
    assert_int_equal(tr_loader_get(loader, 0, &batch), TR_OK);
    settle(&source, 20);
    source.sleep_us = 200;
    assert_true(tr_loader_help(loader));
    assert_false(tr_loader_help(loader));
    settle(&source, 40);
    assert_int_equal(tr_loader_get(loader, 1, &batch), TR_OK);
    check_batch(&source, &order, 1, &options, batch);
    settle(&source, 50);
    tr_loader_destroy(&loader);
}

static void test_who_may_help(void **state)
{
    (void)state;
    for (int kind = TR_FEATURE_IMAGE; kind <= TR_FEATURE_TOKENS; kind++)
        for (int near = 0; near < 2; near++)
            for (int prefetch = 0; prefetch < 2; prefetch++) {
                struct made_source source = make((enum tr_feature_kind)kind, 20);
                if (near) source.base.class = &near_class;
                struct tr_order order;
                struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
                options.prefetch = prefetch;
                tr_loader *loader = open_loader(&source, &order, 10, &options);
                assert_true(tr_loader_may_be_helped(loader) ==
                            (near && prefetch > 0 && kind != TR_FEATURE_TOKENS));
                tr_loader_destroy(&loader);
            }
}

/* Whose examples lie in a file of the cache. */
static struct made_source make_filed(enum tr_feature_kind kind, int64_t count)
{
    struct made_source source = make(kind, count);
    source.base.filed = true;
    return source;
}

/* Files of the cache are worth idle threads, but no thread of their own: what nobody has read ahead the
   caller reads. Images that are used where they lie are not read. */
static void test_files_of_the_cache(void **state)
{
    (void)state;
    static const uint8_t images[1];
    for (int kind = TR_FEATURE_IMAGE; kind <= TR_FEATURE_TOKENS; kind++)
        for (int in_place = 0; in_place < 2; in_place++) {
            struct made_source source = make_filed((enum tr_feature_kind)kind, 20);
            if (kind == TR_FEATURE_IMAGE) source.base.resident = images;
            struct tr_order order;
            struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
            options.prefetch = TR_PREFETCH_AUTO;
            options.in_place = in_place;
            tr_loader *loader = open_loader(&source, &order, 10, &options);
            assert_true(tr_loader_may_be_helped(loader) ==
                        (kind == TR_FEATURE_FLOATS || (kind == TR_FEATURE_IMAGE && !in_place)));
            tr_loader_destroy(&loader);
            options.prefetch = 0;
            loader = open_loader(&source, &order, 10, &options);
            assert_false(tr_loader_may_be_helped(loader));
            tr_loader_destroy(&loader);
        }
    for (int helped = 0; helped < 2; helped++) {
        struct made_source source = make_filed(TR_FEATURE_FLOATS, 100);
        struct tr_order order;
        struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
        options.prefetch = TR_PREFETCH_AUTO;
        tr_loader *loader = open_loader(&source, &order, 10, &options);
        if (helped) tr_loader_expect_help(loader);
        for (int64_t step = 0; step < 4; step++) {
            const struct tr_batch *batch;
            assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
            check_batch(&source, &order, step, &options, batch);
            int rows = 0;
            while (rows < (step == 1 ? 3 : 100) && tr_loader_help(loader)) rows++; /* one at a time */
            assert_int_equal(rows, !helped ? 0 : step == 1 ? 3 : 10);
            settle(&source, 10 * ((int)step + 1) + rows);
        }
        tr_loader_destroy(&loader);
    }
}

struct helpers {
    tr_loader *loader;
    atomic_bool stop;
    pthread_t thread[3];
};

static void *help(void *arguments)
{
    struct helpers *helpers = arguments;
    while (!atomic_load(&helpers->stop))
        if (!tr_loader_help(helpers->loader)) usleep(20);
    return NULL;
}

static void start_helpers(struct helpers *helpers)
{
    tr_loader_expect_help(helpers->loader);
    atomic_init(&helpers->stop, false);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&helpers->thread[i], NULL, help, helpers), 0);
}

static void end_helpers(struct helpers *helpers)
{
    atomic_store(&helpers->stop, true);
    for (int i = 0; i < 3; i++) pthread_join(helpers->thread[i], NULL);
    tr_loader_destroy(&helpers->loader);
}

/* Whoever reads which rows, the batches are the same, also ragged ones and those of a part that has no rows;
   and a step that is asked for out of turn. */
static void test_contents_with_help(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        const enum tr_feature_kind kind = which % 2 ? TR_FEATURE_FLOATS : TR_FEATURE_IMAGE;
        struct made_source source = which < 2 ? make_near(kind, 51) : make_filed(kind, 51);
        struct tr_order order;
        assert_int_equal(tr_order_make(&order, 51, 10, TR_LAST_BATCH_KEEP, true, 5), TR_OK);
        for (int prefetch = which < 2 ? 1 : TR_PREFETCH_AUTO; prefetch <= 3; prefetch += prefetch < 0 ? 2 : 1)
            for (int64_t first = 0; first < 2; first++) {
                struct tr_loader_options options = {.microbatches = 2,
                                                    .first_microbatch = first,
                                                    .end_microbatch = 2,
                                                    .prefetch = prefetch,
                                                    .end_step = INT64_MAX};
                struct helpers helpers;
                assert_int_equal(tr_loader_create(&source.base, &order, &options, &helpers.loader), TR_OK);
                start_helpers(&helpers);
                for (int i = 0; i < 150; i++) {
                    const int64_t step = i % 29 == 28 ? i / 2 : i;
                    const struct tr_batch *batch;
                    assert_int_equal(tr_loader_get(helpers.loader, step, &batch), TR_OK);
                    check_batch(&source, &order, step, &options, batch);
                    if (i % 3 == 0) usleep(100);
                }
                end_helpers(&helpers);
            }
    }
}

static void *help_once(void *loader)
{
    tr_loader_help(loader);
    return NULL;
}

static void *open_later(void *source)
{
    usleep(30000);
    atomic_store(&((struct made_source *)source)->opened, true);
    return NULL;
}

/* A batch is ready when the last helper is through, and so is the place of one that is no longer wanted. */
static void test_helpers_are_waited_for(void **state)
{
    (void)state;
    for (int64_t step = 1; step <= 3; step += 2) {
        struct made_source source = make_filed(TR_FEATURE_FLOATS, 40);
        source.hold_at = 10; /* the first of step 1 */
        struct tr_order order;
        const struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
        const struct tr_batch *batch;
        pthread_t helper, opener;
        tr_loader *loader = open_loader(&source, &order, 10, &options);
        tr_loader_expect_help(loader);
        assert_int_equal(tr_loader_get(loader, 0, &batch), TR_OK);
        assert_int_equal(pthread_create(&helper, NULL, help_once, loader), 0);
        while (atomic_load(&source.reads) < 11) usleep(100);
        assert_int_equal(pthread_create(&opener, NULL, open_later, &source), 0);
        assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
        if (step == 1) check_batch(&source, &order, step, &options, batch);
        pthread_join(opener, NULL);
        pthread_join(helper, NULL);
        check_batch(&source, &order, step, &options, batch);
        tr_loader_destroy(&loader);
    }
}

/* Of several bad examples the first is reported. */
static void test_failure_with_help(void **state)
{
    (void)state;
    struct made_source source = make_near(TR_FEATURE_FLOATS, 100);
    source.fail_at = 31;
    source.fails_from_there = true;
    struct tr_order order;
    assert_int_equal(tr_order_make(&order, 100, 20, TR_LAST_BATCH_KEEP, false, 5), TR_OK);
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    options.prefetch = 2;
    for (int i = 0; i < 20; i++) {
        struct helpers helpers;
        const struct tr_batch *batch;
        assert_int_equal(tr_loader_create(&source.base, &order, &options, &helpers.loader), TR_OK);
        start_helpers(&helpers);
        assert_int_equal(tr_loader_get(helpers.loader, 0, &batch), TR_OK);
        if (i % 2) usleep(500);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(tr_loader_get(helpers.loader, 1, &batch), TR_EFORMAT);
            assert_string_equal(tr_error_message(), "example 31 is bad");
        }
        end_helpers(&helpers);
    }
}

static void test_allocation(void **state)
{
    (void)state;
    struct made_source source = make(TR_FEATURE_TOKENS, 100);
    struct tr_order order;
    assert_int_equal(tr_order_make(&order, 100, 10, TR_LAST_BATCH_KEEP, true, 5), TR_OK);
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    options.prefetch = 2;
    int64_t live = tr_alloc_live();
    tr_loader *loader = NULL;
    for (int64_t at = 0, done = 0; !done; at++) {
        refuse_begin(at);
        const tr_status status = tr_loader_create(&source.base, &order, &options, &loader);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_true(!done || at >= 10);
        if (done) break;
        assert_null(loader);
        assert_int_equal(tr_alloc_live(), live);
    }
    int64_t total = tr_alloc_total();
    const struct tr_batch *batch;
    for (int64_t step = 0; step < 50; step++) assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
    assert_int_equal(tr_alloc_total(), total); /* a step allocates nothing */
    tr_loader_destroy(&loader);
    assert_int_equal(tr_alloc_live(), live);
    tr_loader_destroy(&loader);
}

static void test_refusals(void **state)
{
    (void)state;
    struct made_source source = make(TR_FEATURE_TOKENS, 100);
    struct tr_order order;
    tr_loader *loader = NULL;
    assert_int_equal(tr_order_make(&order, 100, 10, TR_LAST_BATCH_KEEP, true, 5), TR_OK);
    const struct tr_loader_options bad[] = {
        {.microbatches = 0, .end_microbatch = 1},
        {.microbatches = 2, .first_microbatch = 1, .end_microbatch = 1},
        {.microbatches = 2, .first_microbatch = 0, .end_microbatch = 3},
        {.microbatches = 2, .first_microbatch = -1, .end_microbatch = 1},
        {.microbatches = 1, .end_microbatch = 1, .prefetch = TR_PREFETCH_MAX + 1},
        {.microbatches = 1, .end_microbatch = 1, .prefetch = -2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tr_loader_create(&source.base, &order, &bad[i], &loader), TR_EINVAL);
        assert_null(loader);
    }
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    source.base.info.count = 99; /* the order is over more */
    assert_int_equal(tr_loader_create(&source.base, &order, &options, &loader), TR_EINVAL);
    source.base.info.count = 100;
    source.base.info.max_tokens = 1 << 30; /* offsets would overflow */
    assert_int_equal(tr_loader_create(&source.base, &order, &options, &loader), TR_EINVAL);
    source.base.info.max_tokens = 5;
    assert_int_equal(tr_loader_create(&source.base, &order, &options, &loader), TR_OK);
    const struct tr_batch *batch;
    assert_int_equal(tr_loader_get(loader, -1, &batch), TR_EINVAL);
    tr_loader_destroy(&loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_options_are_checked),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_readers_record),
        cmocka_unit_test(test_failure_surfaces_at_its_step),
        cmocka_unit_test(test_failure_of_others_surfaces),
        cmocka_unit_test(test_reading_ahead_is_bounded),
        cmocka_unit_test(test_slow_sources_are_read_ahead),
        cmocka_unit_test(test_help_is_bounded),
        cmocka_unit_test(test_slow_help_is_paused),
        cmocka_unit_test(test_who_may_help),
        cmocka_unit_test(test_files_of_the_cache),
        cmocka_unit_test(test_contents_with_help),
        cmocka_unit_test(test_helpers_are_waited_for),
        cmocka_unit_test(test_failure_with_help),
        cmocka_unit_test(test_allocation),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
