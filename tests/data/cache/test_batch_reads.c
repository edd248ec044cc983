/* Examples in a row come out of the data cache by one read, not one each. */
#include "data/order/batch.h"
#include "data/order/split.h"
#include "data/cache/store.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT 100
#define SIDE  6
#define BATCH 32

/* In the place of the C library's: counts. */
static int reads;

ssize_t pread(int descriptor, void *to, size_t size, off_t offset)
{
    reads++;
    return syscall(SYS_pread64, descriptor, to, size, offset);
}

static void write_sets(void)
{
    uint8_t images[16 + COUNT * SIDE * SIDE] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    uint8_t labels[8 + COUNT] = {0, 0, 8, 1, 0, 0, 0, COUNT};
    char table[COUNT * 32] = "a,b,label\n";
    for (size_t i = 16; i < sizeof images; i++) images[i] = (uint8_t)(i * 37 + i / 251);
    for (int i = 0; i < COUNT; i++) {
        labels[8 + i] = (uint8_t)(i * i % 10);
        size_t length = strlen(table);
        snprintf(table + length, sizeof table - length, "%d,%d.5,%d\n", i, i * 7 % 90, i % 3);
    }
    write_file("images", images, sizeof images);
    write_file("labels", labels, sizeof labels);
    write_file("table", table, strlen(table));
}

static tr_source *open_cached(const char *description)
{
    tr_store *store;
    tr_source *source = NULL;
    for (int time = 0; time < 2; time++) { /* the first one makes the entry */
        tr_source_close(&source);
        assert_int_equal(tr_store_create(NULL, test_path("cache"), 0, &store), TR_OK);
        assert_int_equal(tr_source_open_through(store, description, test_directory(), NULL, &source), TR_OK);
        tr_store_destroy(&store);
    }
    assert_string_equal(source->class->name, "unpacked");
    assert_true(source->filed);
    return source;
}

/* Every row of every batch is the example that the files have. */
static void check_rows(const tr_source *direct, const struct tr_batch *batch, size_t element)
{
    size_t bytes = (size_t)tr_source_capacity(direct) * element;
    for (int64_t row = 0; row < batch->rows; row++) {
        uint8_t features[1024];
        int32_t label;
        assert_int_equal(tr_source_read(direct, batch->index[row], features, 256, NULL, &label), TR_OK);
        const uint8_t *is = element == 1 ? batch->images : (const uint8_t *)batch->floats;
        assert_memory_equal(is + (size_t)row * bytes, features, bytes);
        assert_int_equal(batch->labels[row], label);
    }
}

/* The reads that all batches of a source (taken) take; `direct` (taken) has the same examples. */
static int reads_of(tr_source *source, tr_source *direct, bool shuffle, size_t element)
{
    const int64_t count = source->info.count;
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    struct tr_order order;
    tr_loader *loader;
    const struct tr_batch *batch;
    int taken = 0;
    options.prefetch = 0;
    assert_int_equal(tr_order_make(&order, count, BATCH, TR_LAST_BATCH_KEEP, shuffle, 5), TR_OK);
    assert_int_equal(tr_loader_create(source, &order, &options, &loader), TR_OK);
    for (int64_t step = 0; step < order.steps_per_epoch; step++) {
        reads = 0;
        assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
        taken += reads;
        check_rows(direct, batch, element);
    }
    tr_loader_destroy(&loader);
    tr_source_close(&source);
    tr_source_close(&direct);
    return taken;
}

static const char digits[] = "{idx: {images: images, labels: labels}}";
static const char numbers[] = "{csv: {path: table, standardize: true}}";

static void one_read_a_batch(void **state)
{
    (void)state;
    const int batches = (COUNT + BATCH - 1) / BATCH;
    assert_int_equal(reads_of(open_cached(digits), must_open(digits), false, 1), batches);
    assert_int_equal(reads_of(open_cached(numbers), must_open(numbers), false, 4), batches);
}

/* Where examples do not follow each other, rows are themselves, too. */
static void other_orders(void **state)
{
    (void)state;
    tr_source *part, *direct;
    int shuffled = reads_of(open_cached(digits), must_open(digits), true, 1);
    assert_true(shuffled > COUNT / 2 && shuffled <= COUNT);
    assert_int_equal(tr_split_first(open_cached(digits), &(struct tr_split){.seed = 3, .share = 0.4}, &part),
                     TR_OK);
    assert_int_equal(tr_split_first(must_open(digits), &(struct tr_split){.seed = 3, .share = 0.4}, &direct),
                     TR_OK);
    reads_of(part, direct, false, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_read_a_batch), cmocka_unit_test(other_orders)};
    write_sets();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
