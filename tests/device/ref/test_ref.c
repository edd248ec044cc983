/* What ref promises beyond numbers: parts make the whole, randomness belongs to examples, NaN and ties are
 * decided, images land where they should, and a failing allocation is an error without a leak.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/numbers/rng.h"
#include "base/numbers/tree.h"
#include "device/differences.h"
#include "device/ref/ref.h"

#include <math.h>
#include <string.h>

/* ---- parts and the whole ---- */

#define LEAVES 7
#define IN     5
#define OUT    3
static const int64_t first_row[LEAVES + 1] = {0, 3, 4, 4, 9, 11, 12, 17};

/* The nodes of the gradient over microbatches [begin, end), as a worker that has only their rows computes
   them. */
static int part(const float *x, const float *dy, int64_t begin, int64_t end, int64_t *bounds,
                float (*dw)[IN * OUT])
{
    int64_t row[LEAVES + 1];
    int32_t bound[LEAVES + 1];
    int nodes = tr_tree_cover(LEAVES, begin, end, bounds);
    for (int64_t i = begin; i <= end; i++) row[i - begin] = first_row[i] - first_row[begin];
    for (int j = 0; j <= nodes; j++) bound[j] = (int32_t)(bounds[j] - begin);
    struct tr_op_dense_backward_weights op = {
        .in = IN,
        .out = OUT,
        .x = x + first_row[begin] * IN,
        .dy = dy + first_row[begin] * OUT,
        .dw = dw[0],
        .cut = {
            .count = (int32_t)(end - begin), .row = row, .nodes = nodes, .bound = bound, .stride = IN * OUT}};
    assert_int_equal(ref_dense_backward_weights(NULL, &op), TR_OK);
    return nodes;
}

/* The value of the node over [first, last), from nodes that parts have computed. */
static float node(int nodes, const int64_t *bounds, float (*dw)[IN * OUT], int at, int64_t first,
                  int64_t last)
{
    for (int j = 0; j < nodes; j++)
        if (bounds[j] == first && bounds[j + 1] == last) return dw[j][at];
    int64_t left = 1;
    while (left * 2 < last - first) left *= 2;
    return node(nodes, bounds, dw, at, first, first + left) + node(nodes, bounds, dw, at, first + left, last);
}

static void test_any_workers_give_one_gradient(void **state)
{
    (void)state;
    float *x = differences_numbers(first_row[LEAVES] * IN, 1),
          *dy = differences_numbers(first_row[LEAVES] * OUT, 2);
    float whole[1][IN * OUT];
    int64_t root[2];
    assert_int_equal(part(x, dy, 0, LEAVES, root, whole), 1);
    for (int64_t workers = 1; workers <= LEAVES; workers++) {
        float dw[2 * LEAVES][IN * OUT];
        int64_t bounds[2 * LEAVES + 1];
        int nodes = 0;
        for (int64_t w = 0; w < workers; w++)
            nodes += part(x, dy, tr_cut(LEAVES, workers, w), tr_cut(LEAVES, workers, w + 1), bounds + nodes,
                          dw + nodes);
        for (int at = 0; at < IN * OUT; at++) {
            float joined = node(nodes, bounds, dw, at, 0, LEAVES);
            assert_memory_equal(&joined, &whole[0][at], sizeof joined);
        }
    }
    differences_release(2, (float *[]){x, dy});
}

/* ---- dropout ---- */

#define EXAMPLES 64
#define WIDTH    250

static void run_dropout(int64_t examples, uint32_t first_example, uint32_t step, float rate, const float *x,
                        float *y)
{
    struct tr_step_scalars scalars = {.step = step};
    struct tr_op_dropout op = {.examples = examples,
                               .width = WIDTH,
                               .x = x,
                               .y = y,
                               .rate = rate,
                               .key = {11, 12},
                               .layer = 4,
                               .first_example = first_example,
                               .scalars = &scalars};
    assert_int_equal(ref_dropout(NULL, &op), TR_OK);
}

static void test_dropout(void **state)
{
    (void)state;
    int64_t count = EXAMPLES * WIDTH;
    float *x = differences_numbers(count, 1), *y = differences_zeros(count),
          *other = differences_zeros(count);
    const float rates[] = {0, 0.25f, 0.5f, 0.75f};
    for (int r = 0; r < 4; r++) {
        run_dropout(EXAMPLES, 100, 9, rates[r], x, y);
        int kept = 0;
        for (int64_t i = 0; i < count; i++) {
            kept += y[i] != 0;
            assert_true(y[i] == 0 || y[i] == x[i] * (1 / (1 - rates[r])));
        }
        /* Within five standard deviations. */
        double expected = (double)count * (1 - (double)rates[r]);
        assert_true(fabs(kept - expected) <= 5 * sqrt(expected * (double)rates[r]));
        /* Masks belong to examples, not to calls. */
        run_dropout(20, 100, 9, rates[r], x, other);
        run_dropout(EXAMPLES - 20, 120, 9, rates[r], x + 20 * WIDTH, other + 20 * WIDTH);
        assert_memory_equal(y, other, (size_t)count * sizeof *y);
    }
    run_dropout(EXAMPLES, 100, 10, 0.75f, x, other);
    assert_memory_not_equal(y, other, (size_t)count * sizeof *y); /* another step, another mask */
    differences_release(3, (float *[]){x, y, other});
}

/* ---- NaN and ties ---- */

static void run_pool(const float *x, float *y, uint8_t *taken)
{
    struct tr_op_pool_forward op = {.rows = 1,
                                    .channels = 1,
                                    .window = {.in_h = 2,
                                               .in_w = 2,
                                               .out_h = 1,
                                               .out_w = 1,
                                               .kernel_h = 2,
                                               .kernel_w = 2,
                                               .stride_h = 2,
                                               .stride_w = 2,
                                               .dilation_h = 1,
                                               .dilation_w = 1},
                                    .kind = TR_POOL_MAX,
                                    .x = x,
                                    .y = y,
                                    .taken = taken};
    assert_int_equal(ref_pool_forward(NULL, &op), TR_OK);
}

static void test_which_is_greatest(void **state)
{
    (void)state;
    static const struct {
        float x[4];
        int taken;
    } rows[] = {
        {{1, 2, 3, 4}, 3},
        {{4, 3, 2, 1}, 0},
        {{1, 5, 5, 2}, 1},
        {{-0.0f, 0.0f, 0.0f, -0.0f}, 0},
        {{1, NAN, 9, NAN}, 1},
        {{NAN, 1, 2, 3}, 0},
        {{-INFINITY, -INFINITY, -1, -2}, 2},
        {{1, 2, INFINITY, NAN}, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float y, loss, correct;
        uint8_t taken;
        run_pool(rows[i].x, &y, &taken);
        assert_int_equal(taken, rows[i].taken);
        assert_memory_equal(&y, &rows[i].x[taken], sizeof y);
        for (int32_t label = 0; label < 4; label++) {
            struct tr_op_softmax_cross_entropy op = {.rows = 1,
                                                     .classes = 4,
                                                     .scale = 1,
                                                     .x = rows[i].x,
                                                     .label = &label,
                                                     .loss = &loss,
                                                     .correct = &correct};
            assert_int_equal(ref_softmax_cross_entropy(NULL, &op), TR_OK);
            assert_true(correct == (label == rows[i].taken));
        }
    }
}

/* ---- slopes ---- */

/* Classes whose probability vanishes have no slope, rather than a subnormal one. */
static void test_vanishing_slopes_are_zero(void **state)
{
    (void)state;
    const float x[] = {0, -60, -70, -95};
    float loss, correct, dx[4];
    int32_t label = 0;
    struct tr_op_softmax_cross_entropy softmax = {.rows = 1,
                                                  .classes = 4,
                                                  .scale = 1,
                                                  .x = x,
                                                  .label = &label,
                                                  .loss = &loss,
                                                  .correct = &correct,
                                                  .dx = dx};
    assert_int_equal(ref_softmax_cross_entropy(NULL, &softmax), TR_OK);
    assert_true(dx[0] == 0 && fabs((double)dx[1] / exp(-60) - 1) < 1e-5 && dx[2] == 0 && dx[3] == 0);
    const float target[] = {0, 0, 0, 1};
    struct tr_op_binary_cross_entropy binary = {.rows = 1,
                                                .width = 4,
                                                .scale = 4,
                                                .x = x,
                                                .target = target,
                                                .loss = &loss,
                                                .correct = &correct,
                                                .dx = dx};
    assert_int_equal(ref_binary_cross_entropy(NULL, &binary), TR_OK);
    assert_true(dx[0] == 0.5f && fabs((double)dx[1] / exp(-60) - 1) < 1e-5 && dx[2] == 0 && dx[3] == -1);
}

/* ---- images ---- */

/* Pixel (i, j) of the only image is 10 i + j + 1, so that 0 is outside. */
#define SIDE 4

static void load(struct tr_op_load_images op, int64_t rows, float *y)
{
    static const int64_t index[200];
    uint8_t source[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) source[i] = (uint8_t)(i / SIDE * 10 + i % SIDE + 1);
    op.rows = rows;
    op.in_h = op.in_w = SIDE;
    op.channels = 1;
    op.scale[0] = 2;
    op.shift[0] = -1;
    op.source = source;
    op.index = index;
    op.y = y;
    assert_true(rows <= 200);
    assert_int_equal(ref_load_images(NULL, &op), TR_OK);
}

static float shown(int i, int j)
{
    bool inside = i >= 0 && i < SIDE && j >= 0 && j < SIDE;
    return 2 * (inside ? (float)(10 * i + j + 1) : 0) - 1;
}

static void expect_view(const float *y, int height, int width, int top, int left, bool flip)
{
    for (int i = 0; i < height; i++)
        for (int j = 0; j < width; j++)
            assert_true(y[i * width + j] == shown(i + top, left + (flip ? width - 1 - j : j)));
}

static void test_images_without_augmentation(void **state)
{
    (void)state;
    float y[64];
    load((struct tr_op_load_images){.out_h = SIDE, .out_w = SIDE}, 1, y);
    expect_view(y, SIDE, SIDE, 0, 0, false);
    load((struct tr_op_load_images){.out_h = 2, .out_w = 2, .flip = true}, 1, y); /* flip needs random */
    expect_view(y, 2, 2, 1, 1, false);
    load((struct tr_op_load_images){.out_h = 8, .out_w = 6}, 1, y);
    expect_view(y, 8, 6, -2, -1, false);
}

/* Which view a row shows; each must be one that the options allow. */
static void find_view(const float *y, int height, int width, int pad, int counts[9][9][2])
{
    for (int top = -pad; top <= SIDE + pad - height; top++) {
        for (int left = -pad; left <= SIDE + pad - width; left++) {
            for (int flip = 0; flip < 2; flip++) {
                bool same = true;
                for (int i = 0; i < height * width && same; i++)
                    same = y[i] == shown(i / width + top, left + (flip ? width - 1 - i % width : i % width));
                if (same) {
                    counts[top + pad][left + pad][flip]++;
                    return;
                }
            }
        }
    }
    fail_msg("a row shows no part of its image");
}

static void test_augmentation(void **state)
{
    (void)state;
    enum { IMAGES = 200, SHOWN = 3, PAD = 1 };
    float y[IMAGES * SHOWN * SHOWN], again[IMAGES * SHOWN * SHOWN];
    struct tr_step_scalars scalars = {.step = 5};
    struct tr_op_load_images op = {.out_h = SHOWN,
                                   .out_w = SHOWN,
                                   .pad = PAD,
                                   .random = true,
                                   .flip = true,
                                   .key = {1, 2},
                                   .first_example = 30,
                                   .scalars = &scalars};
    int counts[9][9][2] = {{{0}}};
    load(op, IMAGES, y);
    for (int r = 0; r < IMAGES; r++) find_view(y + r * SHOWN * SHOWN, SHOWN, SHOWN, PAD, counts);
    /* 4 x 4 positions, each flipped or not: all occur among 200 rows, about 6 times each. */
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) assert_in_range(counts[i][j][0] + counts[i][j][1], 1, 40);
    /* A view belongs to the example, not to the call. */
    load(op, 50, again);
    op.first_example = 80;
    load(op, IMAGES - 50, again + 50 * SHOWN * SHOWN);
    assert_memory_equal(y, again, sizeof y);
    scalars.step++;
    load(op, IMAGES - 50, again + 50 * SHOWN * SHOWN);
    assert_memory_not_equal(y, again, sizeof y);
}

/* ---- failing allocations ---- */

static int countdown(size_t size, void *user)
{
    (void)size;
    return --*(int *)user == 0;
}

/* Runs `call` with the first, second, ... allocation failing, until none is left to fail. */
static void check_allocations(tr_status (*call)(void), int expected)
{
    int64_t live = tr_alloc_live();
    for (int turn = 1;; turn++) {
        int left = turn;
        tr_alloc_set_hook(countdown, &left);
        tr_status status = call();
        tr_alloc_set_hook(NULL, NULL);
        assert_int_equal(tr_alloc_live(), live);
        if (left > 0) {
            assert_int_equal(status, TR_OK);
            assert_int_equal(turn, expected + 1);
            return;
        }
        assert_int_equal(status, TR_ENOMEM);
    }
}

static const int64_t two_rows[] = {0, 1, 2};
static const int32_t one_node[] = {0, 2}, two_examples[] = {0, 2, 4};
static const struct tr_cut pair = {.count = 2, .row = two_rows, .nodes = 1, .bound = one_node, .stride = 64};
static const struct tr_sliding_window pixel = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0};
static const float given[64];
static float made[64], more[64];

static tr_status call_conv_forward(void)
{
    struct tr_op_conv_forward op = {
        .rows = 2, .in_c = 1, .out_c = 1, .window = pixel, .x = given, .w = given, .y = made};
    return ref_conv_forward(NULL, &op);
}

static tr_status call_conv_backward_data(void)
{
    struct tr_op_conv_backward_data op = {
        .rows = 2, .in_c = 1, .out_c = 1, .window = pixel, .dy = given, .w = given, .dx = made};
    return ref_conv_backward_data(NULL, &op);
}

static tr_status call_conv_backward_weights(void)
{
    struct tr_op_conv_backward_weights op = {
        .in_c = 1, .out_c = 1, .window = pixel, .x = given, .dy = given, .dw = made, .db = more, .cut = pair};
    return ref_conv_backward_weights(NULL, &op);
}

static tr_status call_lstm_backward(void)
{
    struct tr_op_lstm_backward op = {.examples = 2,
                                     .hidden = 2,
                                     .offset = two_examples,
                                     .w = given,
                                     .gates = given,
                                     .c = given,
                                     .dy = given,
                                     .dgates = made};
    return ref_lstm_backward(NULL, &op);
}

static tr_status call_batch_norm_forward(void)
{
    struct tr_op_batch_norm_forward op = {.spatial = 1,
                                          .channels = 2,
                                          .global_rows = 2,
                                          .epsilon = 1,
                                          .x = given,
                                          .gamma = given,
                                          .beta = given,
                                          .y = made,
                                          .mean = made + 8,
                                          .inv = made + 16,
                                          .batch_mean = more,
                                          .batch_var = more + 8,
                                          .cut = pair};
    return ref_batch_norm_forward(NULL, &op);
}

static tr_status call_batch_norm_backward(void)
{
    struct tr_op_batch_norm_backward op = {.spatial = 1,
                                           .channels = 2,
                                           .x = given,
                                           .gamma = given,
                                           .mean = given,
                                           .inv = given,
                                           .dy = given,
                                           .dx = made,
                                           .dgamma = more,
                                           .dbeta = more + 8,
                                           .cut = pair};
    return ref_batch_norm_backward(NULL, &op);
}

static tr_status call_batch_norm_activation_backward(void)
{
    struct tr_op_batch_norm_activation_backward op = {.norm = {.spatial = 1,
                                                               .channels = 2,
                                                               .x = given,
                                                               .gamma = given,
                                                               .mean = given,
                                                               .inv = given,
                                                               .dy = given,
                                                               .dx = made,
                                                               .dgamma = more,
                                                               .dbeta = more + 8,
                                                               .cut = pair},
                                                      .y = given,
                                                      .activation = TR_ACT_RELU};
    return ref_batch_norm_activation_backward(NULL, &op);
}

static const struct tr_attention looking = {.examples = 2,
                                            .heads = 1,
                                            .size = 2,
                                            .kv_heads = 1,
                                            .scale = 1,
                                            .offset = two_examples,
                                            .key_offset = two_examples,
                                            .q = given,
                                            .k = given,
                                            .v = given,
                                            .q_step = 2,
                                            .kv_step = 2,
                                            .shift = more,
                                            .inv = more + 8};

static tr_status call_attention_forward(void)
{
    struct tr_op_attention_forward op = {.at = looking, .y = made};
    return ref_attention_forward(NULL, &op);
}

static tr_status call_attention_backward(void)
{
    struct tr_op_attention_backward op = {.at = looking,
                                          .y = given,
                                          .dy = given,
                                          .dq = made,
                                          .dk = made + 16,
                                          .dv = made + 32,
                                          .gradient_step = 2};
    return ref_attention_backward(NULL, &op);
}

static tr_status call_gru_forward(void)
{
    struct tr_op_gru_forward op = {.examples = 2,
                                   .hidden = 2,
                                   .offset = two_examples,
                                   .w = given,
                                   .b = given,
                                   .b_hidden = given,
                                   .gates = made,
                                   .inner = more,
                                   .h = more + 16};
    return ref_gru_forward(NULL, &op);
}

static tr_status call_gru_backward(void)
{
    struct tr_op_gru_backward op = {.examples = 2,
                                    .hidden = 2,
                                    .offset = two_examples,
                                    .w = given,
                                    .gates = given,
                                    .inner = given,
                                    .h = given,
                                    .dy = given,
                                    .dgates = made,
                                    .dhidden = more};
    return ref_gru_backward(NULL, &op);
}

static tr_status call_create(void)
{
    tr_device *device;
    tr_status status = tr_device_create("ref", 0, NULL, &device);
    if (status == TR_OK) assert_string_equal(device->description, "ref (plain loops, 1 thread)");
    if (status == TR_OK) assert_int_equal(device->threads, 1);
    tr_device_destroy(&device);
    return status;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    check_allocations(call_create, 1);
    check_allocations(call_conv_forward, 2);          /* the list of taps */
    check_allocations(call_conv_backward_data, 3);    /* and transposed weights */
    check_allocations(call_conv_backward_weights, 4); /* and the stacks of two trees */
    check_allocations(call_lstm_backward, 2);
    check_allocations(call_attention_forward, 1);
    check_allocations(call_attention_backward, 1);
    check_allocations(call_gru_forward, 1);
    check_allocations(call_gru_backward, 2);
    check_allocations(call_batch_norm_forward, 3);
    check_allocations(call_batch_norm_backward, 3);
    check_allocations(call_batch_norm_activation_backward, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_workers_give_one_gradient),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_which_is_greatest),
        cmocka_unit_test(test_vanishing_slopes_are_zero),
        cmocka_unit_test(test_images_without_augmentation),
        cmocka_unit_test(test_augmentation),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests_name("ref", tests, NULL, NULL);
}
