/* Canonical bytes of a state: the head to the letter, in whatever order things are given, and leaves that
 * cover every byte once. */
#include "receipt/canonical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

static struct tr_stored_tensor parameters[] = {
    {.name = "dense.weights", .dtype = TR_DTYPE_F32, .rank = 2, .shape = {300, 200}},
    {.name = "conv.weights", .dtype = TR_DTYPE_F32, .rank = 4, .shape = {3, 3, 1, 8}},
    {.name = "scale", .dtype = TR_DTYPE_F32, .rank = 0},
};
static struct tr_stored_tensor optimizer[] = {
    {.name = "m.dense.weights", .dtype = TR_DTYPE_F32, .rank = 2, .shape = {300, 200}},
    {.name = "ema.conv.weights", .dtype = TR_DTYPE_F32, .rank = 4, .shape = {3, 3, 1, 8}},
};
static struct tr_checkpoint_metric metrics[] = {
    {"worse_evaluations", 2}, {"best_loss", 0.25}, {"last_accuracy", NAN}, {"best_step_loss", INFINITY}};
static struct tr_checkpoint_file files[] = {{"model.yaml", "a: b\n", 5}, {"scaling.json", "{}", 2}};

static struct tr_checkpoint_content content = {
    .facts = {.step = 17, .metrics = metrics, .metric_count = 4},
    .group = {{parameters, 3, NULL}, {optimizer, 2, NULL}},
    .files = files,
    .file_count = 2,
};

static const char head[] = "trireme state 1\n"
                           "step 17\n"
                           "best_loss 3fd0000000000000\n"
                           "best_step_loss 7ff8000000000000\n"
                           "last_accuracy 7ff8000000000000\n"
                           "worse_evaluations 4000000000000000\n"
                           "scaling.json 44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\n"
                           "optimizer/ema.conv.weights F32 3x3x1x8\n"
                           "optimizer/m.dense.weights F32 300x200\n"
                           "parameters/conv.weights F32 3x3x1x8\n"
                           "parameters/dense.weights F32 300x200\n"
                           "parameters/scale F32\n";

static void the_head_is_as_it_is_written_down(void **state)
{
    (void)state;
    struct tr_canonical canonical;
    assert_int_equal(tr_canonical_make(&content, "scaling.json", &canonical), TR_OK);
    assert_string_equal(canonical.head, head);
    assert_int_equal(canonical.head_bytes, sizeof head - 1);
    tr_canonical_release(&canonical);
}

static void the_order_of_what_is_given_does_not_matter(void **state)
{
    (void)state;
    struct tr_canonical canonical;
    struct tr_stored_tensor first = parameters[0];
    struct tr_checkpoint_metric metric = metrics[3];
    memmove(&parameters[0], &parameters[1], 2 * sizeof first);
    parameters[2] = first;
    memmove(&metrics[1], &metrics[0], 3 * sizeof metric);
    metrics[0] = metric;
    assert_int_equal(tr_canonical_make(&content, "scaling.json", &canonical), TR_OK);
    assert_string_equal(canonical.head, head);
    for (int64_t i = 0; i < canonical.count; i++)
        assert_string_equal(content.group[canonical.tensor[i].group].tensors[canonical.tensor[i].index].name,
                            canonical.tensor[i].name);
    tr_canonical_release(&canonical);
}

static void leaves_cover_every_byte_once(void **state)
{
    (void)state;
    struct tr_canonical canonical;
    assert_int_equal(tr_canonical_make(&content, NULL, &canonical), TR_OK);
    uint64_t covered[8] = {0}, head_covered = 0;
    assert_true(canonical.count <= 8);
    /* A head; twice 240,000 bytes in 4 leaves; and three small tensors. */
    assert_int_equal(canonical.leaves, 1 + 2 * 4 + 3);
    for (int64_t i = 0; i < canonical.leaves; i++) {
        struct tr_canonical_leaf leaf = tr_canonical_leaf_at(&canonical, i);
        uint64_t *count = leaf.tensor ? &covered[leaf.tensor - canonical.tensor] : &head_covered;
        assert_true(leaf.bytes > 0 && leaf.bytes <= TR_LEAF_BYTES);
        assert_int_equal(leaf.at, *count);
        *count += leaf.bytes;
    }
    assert_int_equal(head_covered, canonical.head_bytes);
    for (int64_t i = 0; i < canonical.count; i++) assert_int_equal(covered[i], canonical.tensor[i].bytes);
    tr_canonical_release(&canonical);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_head_is_as_it_is_written_down),
        cmocka_unit_test(the_order_of_what_is_given_does_not_matter),
        cmocka_unit_test(leaves_cover_every_byte_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
