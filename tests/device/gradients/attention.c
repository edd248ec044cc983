/* Gradients of attention and of positions. */
#include "device/differences.h"
#include "device/gradients/gradients.h"
#include "device/ref/ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Five sequences, one of them empty. */
#define EXAMPLES GRADIENTS_ROWS
static const int32_t offset[EXAMPLES + 1] = {0, 2, 2, 3, 8, 9};
#define ROWS 9

#define HEADS 2
#define SIZE  3
#define WIDTH (HEADS * SIZE)

struct attention {
    struct tr_op_attention_forward forward;
    float *dy;
};

static double attention_scalar(void *user)
{
    struct attention *a = user;
    assert_int_equal(ref_attention_forward(NULL, &a->forward), TR_OK);
    return differences_weigh(ROWS * WIDTH, a->forward.y, a->dy);
}

static void check_attention(bool causal, float rate, int64_t kv_heads, int64_t window)
{
    const int64_t kv_width = kv_heads * SIZE, step = WIDTH + 2 * kv_width;
    static const struct tr_step_scalars scalars = {.step = 5};
    float *qkv = differences_numbers(ROWS * 3 * WIDTH, 1), *dy = differences_numbers(ROWS * WIDTH, 2);
    float *y = differences_zeros(ROWS * WIDTH), *shift = differences_zeros(ROWS * HEADS);
    float *inv = differences_zeros(ROWS * HEADS), *gradient = differences_zeros(ROWS * 3 * WIDTH);
    const struct tr_attention at = {.examples = EXAMPLES,
                                    .heads = HEADS,
                                    .size = SIZE,
                                    .kv_heads = kv_heads,
                                    .window = window,
                                    .causal = causal,
                                    .scale = 0.7f,
                                    .offset = offset,
                                    .key_offset = offset,
                                    .q = qkv,
                                    .k = qkv + WIDTH,
                                    .v = qkv + WIDTH + kv_width,
                                    .q_step = step,
                                    .kv_step = step,
                                    .shift = shift,
                                    .inv = inv,
                                    .rate = rate,
                                    .key = {1, 2},
                                    .scalars = &scalars};
    struct attention a = {{at, y}, dy};
    attention_scalar(&a);
    const struct tr_op_attention_backward backward = {.at = at,
                                                      .y = y,
                                                      .dy = dy,
                                                      .dq = gradient,
                                                      .dk = gradient + WIDTH,
                                                      .dv = gradient + WIDTH + kv_width,
                                                      .gradient_step = step};
    assert_int_equal(ref_attention_backward(NULL, &backward), TR_OK);
    char what[100];
    snprintf(what, sizeof what, "attention%s, dropout %g, %d heads of keys, window %d",
             causal ? ", causal" : "", (double)rate, (int)kv_heads, (int)window);
    differences_check(what, attention_scalar, &a, DIFFERENCES_SMOOTH, qkv, gradient, 0, ROWS * step);
    differences_release(6, (float *[]){qkv, dy, y, shift, inv, gradient});
}

/* The keys are of another sequence, with more tokens in one example and fewer in another. */
static void check_others(float rate, int64_t kv_heads)
{
    enum { KEYS = 9 };
    static const int32_t key_offset[EXAMPLES + 1] = {0, 3, 3, 5, 7, 9};
    const int64_t kv_width = kv_heads * SIZE, step = WIDTH + 2 * kv_width;
    static const struct tr_step_scalars scalars = {.step = 5};
    float *q = differences_numbers(ROWS * WIDTH, 1), *dy = differences_numbers(ROWS * WIDTH, 2);
    float *kv = differences_numbers(KEYS * 2 * WIDTH, 3), *y = differences_zeros(ROWS * WIDTH);
    float *shift = differences_zeros(ROWS * HEADS), *inv = differences_zeros(ROWS * HEADS);
    float *dq = differences_zeros(ROWS * 3 * WIDTH), *dkv = differences_zeros(KEYS * 3 * WIDTH);
    const struct tr_attention at = {.examples = EXAMPLES,
                                    .heads = HEADS,
                                    .size = SIZE,
                                    .kv_heads = kv_heads,
                                    .scale = 0.7f,
                                    .offset = offset,
                                    .key_offset = key_offset,
                                    .q = q,
                                    .k = kv,
                                    .v = kv + kv_width,
                                    .q_step = WIDTH,
                                    .kv_step = 2 * kv_width,
                                    .shift = shift,
                                    .inv = inv,
                                    .rate = rate,
                                    .key = {1, 2},
                                    .scalars = &scalars};
    struct attention a = {{at, y}, dy};
    attention_scalar(&a);
    const struct tr_op_attention_backward backward = {
        .at = at, .y = y, .dy = dy, .dq = dq, .dk = dkv, .dv = dkv + kv_width, .gradient_step = step};
    assert_int_equal(ref_attention_backward(NULL, &backward), TR_OK);
    /* The checks below take gradients that lie as their numbers do. */
    for (int64_t r = 1; r < ROWS; r++)
        for (int64_t k = 0; k < WIDTH; k++) dq[r * WIDTH + k] = dq[r * step + k];
    for (int64_t r = 1; r < KEYS; r++)
        for (int64_t k = 0; k < 2 * kv_width; k++) dkv[r * 2 * kv_width + k] = dkv[r * step + k];
    char what[100];
    snprintf(what, sizeof what, "attention to another sequence, dropout %g, %d heads of keys", (double)rate,
             (int)kv_heads);
    differences_check(what, attention_scalar, &a, DIFFERENCES_SMOOTH, q, dq, 0, ROWS * WIDTH);
    differences_check(what, attention_scalar, &a, DIFFERENCES_SMOOTH, kv, dkv, 0, KEYS * 2 * kv_width);
    differences_release(8, (float *[]){q, dy, kv, y, shift, inv, dq, dkv});
}

void gradients_attention(void)
{
    check_others(0, HEADS);
    check_others(0.4f, 1);
    check_attention(false, 0, HEADS, 0);
    check_attention(true, 0, HEADS, 0);
    check_attention(true, 0.4f, HEADS, 0);
    check_attention(true, 0, 1, 0);
    check_attention(true, 0.4f, 1, 2);
    check_attention(false, 0, HEADS, 3);
}

struct position {
    struct tr_op_position_forward forward;
    float *dy;
};

static double position_scalar(void *user)
{
    struct position *p = user;
    assert_int_equal(ref_position_forward(NULL, &p->forward), TR_OK);
    return differences_weigh(ROWS * WIDTH, p->forward.y, p->dy);
}

void gradients_position(void)
{
    /* Shorter than the longest example, and longer than all. */
    for (int64_t length = 3; length <= 6; length += 3) {
        float *x = differences_numbers(ROWS * WIDTH, 1), *dy = differences_numbers(ROWS * WIDTH, 2);
        float *table = differences_numbers(length * WIDTH, 3), *y = differences_zeros(ROWS * WIDTH);
        float *dtable = differences_zeros(length * WIDTH);
        struct position p = {{.examples = EXAMPLES,
                              .width = WIDTH,
                              .length = length,
                              .offset = offset,
                              .table = table,
                              .x = x,
                              .y = y},
                             dy};
        const struct tr_op_position_backward backward = {.width = WIDTH,
                                                         .length = length,
                                                         .offset = offset,
                                                         .dy = dy,
                                                         .dtable = dtable,
                                                         .cut = gradients_cut};
        assert_int_equal(ref_position_backward(NULL, &backward), TR_OK);
        differences_check("position", position_scalar, &p, DIFFERENCES_LINEAR, table, dtable, 0,
                          length * WIDTH);
        differences_release(5, (float *[]){x, dy, table, y, dtable});
    }
}

struct rotary {
    struct tr_op_rotary op;
    const float *x; /* what op turns in place */
    float *dy;
};

static double rotary_scalar(void *user)
{
    struct rotary *r = user;
    memcpy(r->op.x, r->x, ROWS * 2 * WIDTH * sizeof *r->x);
    assert_int_equal(ref_rotary(NULL, &r->op), TR_OK);
    return differences_weigh(ROWS * 2 * WIDTH, r->op.x, r->dy);
}

static void check_rotary(bool pairs, double factor, double original)
{
    float *x = differences_numbers(ROWS * 2 * WIDTH, 1), *dy = differences_numbers(ROWS * 2 * WIDTH, 2);
    float *y = differences_zeros(ROWS * 2 * WIDTH), *dx = differences_zeros(ROWS * 2 * WIDTH);
    struct rotary r = {{.examples = EXAMPLES,
                        .heads = HEADS,
                        .size = 4,
                        .step = 2 * WIDTH,
                        .base = 50,
                        .pairs = pairs,
                        .factor = factor,
                        .original = original,
                        .low = 1,
                        .high = 4,
                        .offset = offset,
                        .x = y},
                       x,
                       dy};
    struct tr_op_rotary backward = r.op;
    memcpy(dx, dy, ROWS * 2 * WIDTH * sizeof *dx);
    backward.inverse = true;
    backward.x = dx;
    assert_int_equal(ref_rotary(NULL, &backward), TR_OK);
    differences_check("rotary", rotary_scalar, &r, DIFFERENCES_LINEAR, x, dx, 0, ROWS * 2 * WIDTH);
    differences_release(4, (float *[]){x, dy, y, dx});
}

void gradients_rotary(void)
{
    check_rotary(false, 1, 0);
    check_rotary(true, 1, 0);
    check_rotary(true, 2, 0);
    check_rotary(false, 3, 20);
}
