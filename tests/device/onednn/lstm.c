/* The LSTM layer against oneDNN: several sequences of different lengths, each of which is one run there. */
#include "device/differences.h"
#include "device/onednn/judge.h"
#include "device/onednn/onednn.h"
#include "device/ref/ref.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define WIDTH    5
#define HIDDEN   7
#define GATES    (4 * HIDDEN)
#define EXAMPLES 4
#define ROWS     20
static const int32_t offset[EXAMPLES + 1] = {0, 3, 4, 15, ROWS};
static const int32_t whole[] = {0, 1};

/* Everything that a layer reads and writes, both ways. */
struct lstm {
    float *x, *w_input, *w, *b, *dy; /* given */
    float *gates, *c, *h, *dgates;   /* intermediate */
    float *dx, *dw_input, *dw, *db;  /* gradients */
};

static struct lstm lstm_make(void)
{
    return (struct lstm){.x = differences_numbers(ROWS * WIDTH, 1),
                         .w_input = differences_numbers(WIDTH * GATES, 2),
                         .w = differences_numbers(HIDDEN * GATES, 3),
                         .b = differences_numbers(GATES, 4),
                         .dy = differences_numbers(ROWS * HIDDEN, 5),
                         .gates = differences_zeros(ROWS * GATES),
                         .c = differences_zeros(ROWS * HIDDEN),
                         .h = differences_zeros(ROWS * HIDDEN),
                         .dgates = differences_zeros(ROWS * GATES),
                         .dx = differences_zeros(ROWS * WIDTH),
                         .dw_input = differences_zeros(WIDTH * GATES),
                         .dw = differences_zeros(HIDDEN * GATES),
                         .db = differences_zeros(GATES)};
}

static void lstm_release(struct lstm *l)
{
    differences_release(13, (float *[]){l->x, l->w_input, l->w, l->b, l->dy, l->gates, l->c, l->h, l->dgates,
                                        l->dx, l->dw_input, l->dw, l->db});
}

/* The layer as nn/ composes it from operations. */
static void run_ours(struct lstm *l)
{
    struct tr_op_dense_forward input = {
        .rows = ROWS, .in = WIDTH, .out = GATES, .x = l->x, .w = l->w_input, .y = l->gates};
    struct tr_op_lstm_forward forward = {.examples = EXAMPLES,
                                         .hidden = HIDDEN,
                                         .offset = offset,
                                         .w = l->w,
                                         .b = l->b,
                                         .gates = l->gates,
                                         .c = l->c,
                                         .h = l->h};
    struct tr_op_lstm_backward backward = {.examples = EXAMPLES,
                                           .hidden = HIDDEN,
                                           .offset = offset,
                                           .w = l->w,
                                           .gates = l->gates,
                                           .c = l->c,
                                           .dy = l->dy,
                                           .dgates = l->dgates};
    struct tr_op_lstm_backward_weights weights = {
        .examples = EXAMPLES,
        .hidden = HIDDEN,
        .offset = offset,
        .h = l->h,
        .dgates = l->dgates,
        .dw = l->dw,
        .cut = {.count = 1, .row = (const int64_t[]){0, EXAMPLES}, .nodes = 1, .bound = whole}};
    struct tr_op_dense_backward_data data = {
        .rows = ROWS, .in = WIDTH, .out = GATES, .dy = l->dgates, .w = l->w_input, .dx = l->dx};
    struct tr_op_dense_backward_weights input_weights = {
        .in = WIDTH,
        .out = GATES,
        .x = l->x,
        .dy = l->dgates,
        .dw = l->dw_input,
        .db = l->db,
        .cut = {.count = 1, .row = (const int64_t[]){0, ROWS}, .nodes = 1, .bound = whole}};
    assert_int_equal(ref_dense_forward(NULL, &input), TR_OK);
    assert_int_equal(ref_lstm_forward(NULL, &forward), TR_OK);
    assert_int_equal(ref_lstm_backward(NULL, &backward), TR_OK);
    assert_int_equal(ref_lstm_backward_weights(NULL, &weights), TR_OK);
    assert_int_equal(ref_dense_backward_data(NULL, &data), TR_OK);
    assert_int_equal(ref_dense_backward_weights(NULL, &input_weights), TR_OK);
}

/* w [in][GATES] as [GATES][in], which is what oneDNN's backward pass reads. */
static float *turned(int in, const float *w)
{
    float *out = differences_zeros((int64_t)in * GATES);
    for (int i = 0; i < in; i++)
        for (int j = 0; j < GATES; j++) out[j * in + i] = w[i * GATES + j];
    return out;
}

/* One sequence of `times` rows from `row` on: outputs and gradients of `theirs`; those of weights add up. */
static void run_theirs(struct lstm *theirs, int row, int times)
{
    onednn_shape xs = judge_shape(3, (dnnl_dim_t[]){times, 1, WIDTH}, dnnl_tnc);
    onednn_shape hs = judge_shape(3, (dnnl_dim_t[]){times, 1, HIDDEN}, dnnl_tnc);
    onednn_shape state = judge_shape(4, (dnnl_dim_t[]){1, 1, 1, HIDDEN}, dnnl_ldnc);
    const dnnl_dim_t input_dims[] = {1, 1, WIDTH, 4, HIDDEN}, hidden_dims[] = {1, 1, HIDDEN, 4, HIDDEN};
    onednn_shape input = judge_shape(5, input_dims, dnnl_ldigo);
    onednn_shape hidden = judge_shape(5, hidden_dims, dnnl_ldigo);
    onednn_shape input_turned = judge_shape(5, input_dims, dnnl_ldgoi);
    onednn_shape hidden_turned = judge_shape(5, hidden_dims, dnnl_ldgoi);
    onednn_shape bs = judge_shape(4, (dnnl_dim_t[]){1, 1, 4, HIDDEN}, dnnl_ldgo);
    float *zero = differences_zeros(HIDDEN), *last_h = differences_zeros(HIDDEN);
    float *last_c = differences_zeros(HIDDEN), *dzero = differences_zeros(2 * HIDDEN);
    float *w_input = turned(WIDTH, theirs->w_input), *w = turned(HIDDEN, theirs->w);
    float *x = theirs->x + row * WIDTH, *h = theirs->h + row * HIDDEN;

    dnnl_primitive_desc_t hint;
    JUDGE_FORWARD(&hint, lstm_forward, dnnl_forward_training, dnnl_unidirectional_left2right, xs, state,
                  state, input, hidden, NULL, NULL, bs, hs, state, state, 0);
    void *workspace = judge_workspace(hint);
    judge_run(hint, 9,
              (struct judge_argument[]){{DNNL_ARG_SRC_LAYER, xs, x},
                                        {DNNL_ARG_SRC_ITER, state, zero},
                                        {DNNL_ARG_SRC_ITER_C, state, zero},
                                        {DNNL_ARG_WEIGHTS_LAYER, input, theirs->w_input},
                                        {DNNL_ARG_WEIGHTS_ITER, hidden, theirs->w},
                                        {DNNL_ARG_BIAS, bs, theirs->b},
                                        {DNNL_ARG_DST_LAYER, hs, h},
                                        {DNNL_ARG_DST_ITER, state, last_h},
                                        {DNNL_ARG_DST_ITER_C, state, last_c}},
              workspace);
    dnnl_primitive_desc_t back;
    JUDGE_BACKWARD(&back, hint, lstm_backward, dnnl_backward, dnnl_unidirectional_left2right, xs, state,
                   state, input_turned, hidden_turned, NULL, NULL, bs, hs, state, state, xs, state, state,
                   input, hidden, NULL, NULL, bs, hs, state, state, 0);
    judge_run(back, 18,
              (struct judge_argument[]){{DNNL_ARG_SRC_LAYER, xs, x},
                                        {DNNL_ARG_SRC_ITER, state, zero},
                                        {DNNL_ARG_SRC_ITER_C, state, zero},
                                        {DNNL_ARG_WEIGHTS_LAYER, input_turned, w_input},
                                        {DNNL_ARG_WEIGHTS_ITER, hidden_turned, w},
                                        {DNNL_ARG_BIAS, bs, theirs->b},
                                        {DNNL_ARG_DST_LAYER, hs, h},
                                        {DNNL_ARG_DST_ITER, state, last_h},
                                        {DNNL_ARG_DST_ITER_C, state, last_c},
                                        {DNNL_ARG_DIFF_DST_LAYER, hs, theirs->dy + row * HIDDEN},
                                        {DNNL_ARG_DIFF_DST_ITER, state, zero},
                                        {DNNL_ARG_DIFF_DST_ITER_C, state, zero},
                                        {DNNL_ARG_DIFF_SRC_LAYER, xs, theirs->dx + row * WIDTH},
                                        {DNNL_ARG_DIFF_SRC_ITER, state, dzero},
                                        {DNNL_ARG_DIFF_SRC_ITER_C, state, dzero + HIDDEN},
                                        {DNNL_ARG_DIFF_WEIGHTS_LAYER, input, theirs->dw_input},
                                        {DNNL_ARG_DIFF_WEIGHTS_ITER, hidden, theirs->dw},
                                        {DNNL_ARG_DIFF_BIAS, bs, theirs->db}},
              workspace);
    tr_free(workspace);
    JUDGE(dnnl_primitive_desc_destroy(back));
    JUDGE(dnnl_primitive_desc_destroy(hint));
    differences_release(6, (float *[]){zero, last_h, last_c, dzero, w_input, w});
}

void onednn_lstm(void **state)
{
    (void)state;
    struct lstm ours = lstm_make(), theirs = lstm_make();
    run_ours(&ours);
    for (int e = 0; e < EXAMPLES; e++) run_theirs(&theirs, offset[e], offset[e + 1] - offset[e]);
    judge_compare("lstm h", ROWS * HIDDEN, ours.h, theirs.h, ONEDNN_TOLERANCE);
    judge_compare("lstm dx", ROWS * WIDTH, ours.dx, theirs.dx, ONEDNN_TOLERANCE);
    judge_compare("lstm dw of the input", WIDTH * GATES, ours.dw_input, theirs.dw_input, ONEDNN_TOLERANCE);
    judge_compare("lstm dw", HIDDEN * GATES, ours.dw, theirs.dw, ONEDNN_TOLERANCE);
    judge_compare("lstm db", GATES, ours.db, theirs.db, ONEDNN_TOLERANCE);
    lstm_release(&theirs);
    lstm_release(&ours);
}
