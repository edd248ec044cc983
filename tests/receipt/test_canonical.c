/* Canonical bytes of a state: the head to the letter, in whatever order things are given, and leaves that
 * cover every byte once. */
#include "base/text/text.h"
#include "receipt/canonical.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
    const struct tr_checkpoint_file file = files[0];
    files[0] = files[1];
    files[1] = file;
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

/* A file that is not there, or that nobody named, is no part of the state. */
static void a_state_that_is_not_kept_has_no_line(void **state)
{
    static const char *const names[] = {NULL, "input.json", "scaling"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct tr_canonical canonical;
        assert_int_equal(tr_canonical_make(&content, names[i], &canonical), TR_OK);
        assert_null(strstr(canonical.head, ".json"));
        assert_non_null(strstr(canonical.head, "4000000000000000\noptimizer/ema"));
        tr_canonical_release(&canonical);
        assert_null(canonical.head);
        assert_null(canonical.tensor);
        assert_int_equal(canonical.leaves, 0);
    }
}

/* A tensor of so many floats, in a state whose head has so many bytes: its leaves, and those of the head. */
static void expect_leaves(int64_t floats, size_t head_bytes, int64_t leaves, int64_t of_head, size_t last)
{
    static const char before[] = "trireme state 1\nstep 0\n", behind[] = " 3ff0000000000000\n";
    struct tr_stored_tensor tensor = {.name = "w", .dtype = TR_DTYPE_F32, .rank = 1, .shape = {floats}};
    struct tr_checkpoint_metric metric = {.value = 1};
    struct tr_checkpoint_content given = {.group = {{&tensor, 1, NULL}}};
    struct tr_canonical canonical;
    char line[64];
    snprintf(line, sizeof line, "parameters/w F32 %d\n", (int)floats);
    const size_t fixed = sizeof before - 1 + strlen(line);
    if (head_bytes > 0) { /* a figure with a name of the right length */
        const size_t name = head_bytes - fixed - (sizeof behind - 1);
        char *text = malloc(name + 1);
        assert_non_null(text);
        memset(text, 'a', name);
        text[name] = '\0';
        metric.name = text;
        given.facts.metrics = &metric;
        given.facts.metric_count = 1;
    }
    assert_int_equal(tr_canonical_make(&given, NULL, &canonical), TR_OK);
    assert_int_equal(canonical.head_bytes, head_bytes > 0 ? head_bytes : fixed);
    assert_int_equal(canonical.head_leaves, of_head);
    assert_int_equal(canonical.leaves, of_head + leaves);
    assert_int_equal(canonical.tensor[0].first_leaf, of_head);
    assert_int_equal(canonical.tensor[0].end_leaf, of_head + leaves);
    const struct tr_canonical_leaf end_of_head = tr_canonical_leaf_at(&canonical, of_head - 1);
    assert_null(end_of_head.tensor);
    assert_int_equal(end_of_head.at + end_of_head.bytes, canonical.head_bytes);
    const struct tr_canonical_leaf leaf = tr_canonical_leaf_at(&canonical, canonical.leaves - 1);
    assert_ptr_equal(leaf.tensor, &canonical.tensor[0]);
    assert_int_equal(leaf.at, (leaves - 1) * TR_LEAF_BYTES);
    assert_int_equal(leaf.bytes, last);
    tr_canonical_release(&canonical);
    free((char *)metric.name);
}

static void a_leaf_is_full_before_the_next_begins(void **state)
{
    (void)state;
    const int64_t full = TR_LEAF_BYTES / 4;
    expect_leaves(1, 0, 1, 1, 4);
    expect_leaves(full - 1, 0, 1, 1, TR_LEAF_BYTES - 4);
    expect_leaves(full, 0, 1, 1, TR_LEAF_BYTES);
    expect_leaves(full + 1, 0, 2, 1, 4);
    expect_leaves(2 * full, 0, 2, 1, TR_LEAF_BYTES);
    expect_leaves(5, TR_LEAF_BYTES - 1, 1, 1, 20);
    expect_leaves(5, TR_LEAF_BYTES, 1, 1, 20);
    expect_leaves(5, TR_LEAF_BYTES + 1, 1, 2, 20);
    expect_leaves(5, 2 * TR_LEAF_BYTES + 1, 1, 3, 20);
}

static void lack_of_memory_is_told(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_canonical canonical;
        refuse_begin(at);
        tr_status status = tr_canonical_make(&content, "scaling.json", &canonical);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_canonical_release(&canonical);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_head_is_as_it_is_written_down),
        cmocka_unit_test(the_order_of_what_is_given_does_not_matter),
        cmocka_unit_test(leaves_cover_every_byte_once),
        cmocka_unit_test(a_state_that_is_not_kept_has_no_line),
        cmocka_unit_test(a_leaf_is_full_before_the_next_begins),
        cmocka_unit_test(lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
