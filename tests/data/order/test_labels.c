/* The number of labels of a step, of which each process has a part: of all rows of the step, in large steps,
 * too. */
#include "data/order/batch.h"
#include "data/source.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#define COUNT 1000

/* Text i has i % 3 + 1 words, of which the first has a label and every second text's others. */
static int64_t labels_of(int i)
{
    return i % 2 ? i % 3 + 1 : 1;
}

static void write_texts(void)
{
    static char text[COUNT * 20];
    for (int i = 0; i < COUNT; i++) {
        const int words = i % 3 + 1;
        for (int k = 0; k < words; k++) strcat(text, k ? " w" : "w");
        strcat(text, "\t");
        for (int k = 0; k < words; k++) strcat(text, k == 0 ? "1" : i % 2 ? " 0" : " -");
        strcat(text, "\n");
    }
    write_text("texts", text);
}

static void steps_know_their_labels(void **unused)
{
    static const int64_t sizes[] = {1, 255, 256, 257, 600, COUNT};
    (void)unused;
    write_texts();
    tr_source *source = must_open("{text: {path: texts, tags: true}}");
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
        struct tr_order order;
        tr_loader *loader;
        const struct tr_batch *batch;
        assert_int_equal(tr_order_make(&order, COUNT, sizes[s], TR_LAST_BATCH_KEEP, false, 0), TR_OK);
        assert_int_equal(tr_loader_create(source, &order, &options, &loader), TR_OK);
        for (int64_t step = 0, i = 0; i < COUNT && step < 5; step++) {
            int64_t wanted = 0, rows = 0;
            for (; rows < sizes[s] && i < COUNT; rows++) wanted += labels_of((int)i++);
            assert_int_equal(tr_loader_get(loader, step, &batch), TR_OK);
            assert_int_equal(batch->global_rows, rows);
            assert_int_equal(batch->global_labels, wanted);
        }
        tr_loader_destroy(&loader);
    }
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_know_their_labels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
