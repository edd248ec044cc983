/* Activations, softmax, cross-entropy and normalizations against oneDNN. */
#include "device/cases/cases.h"
#include "device/differences.h"
#include "device/onednn/judge.h"
#include "device/onednn/onednn.h"
#include "device/ref/ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define COUNT 1000

static void check_activation(enum tr_activation kind, dnnl_alg_kind_t algorithm, float slope, float beta)
{
    float *x = differences_numbers(COUNT, 1), *dy = differences_numbers(COUNT, 2);
    float *y = differences_zeros(COUNT), *dx = differences_zeros(COUNT);
    for (int i = 0; i < COUNT; i++) x[i] *= 6;
    struct tr_op_activation_forward forward = {
        .count = COUNT, .x = x, .y = y, .activation = kind, .slope = slope};
    struct tr_op_activation_backward backward = {
        .count = COUNT, .x = x, .y = y, .dy = dy, .dx = dx, .activation = kind, .slope = slope};
    assert_int_equal(ref_activation_forward(NULL, &forward), TR_OK);
    assert_int_equal(ref_activation_backward(NULL, &backward), TR_OK);

    float *their_y = differences_zeros(COUNT), *their_dx = differences_zeros(COUNT);
    onednn_shape shape = judge_shape(1, (dnnl_dim_t[]){COUNT}, dnnl_a);
    dnnl_primitive_desc_t hint;
    JUDGE_FORWARD(&hint, eltwise_forward, dnnl_forward_training, algorithm, shape, shape, slope, beta);
    judge_run(hint, 2, (struct judge_argument[]){{DNNL_ARG_SRC, shape, x}, {DNNL_ARG_DST, shape, their_y}},
              NULL);
    dnnl_primitive_desc_t back;
    JUDGE_BACKWARD(&back, hint, eltwise_backward, algorithm, shape, shape, shape, slope, beta);
    judge_run(back, 3,
              (struct judge_argument[]){{DNNL_ARG_SRC, shape, x},
                                        {DNNL_ARG_DIFF_DST, shape, dy},
                                        {DNNL_ARG_DIFF_SRC, shape, their_dx}},
              NULL);
    char what[40];
    snprintf(what, sizeof what, "activation %d", kind);
    judge_compare(what, COUNT, y, their_y, ONEDNN_TOLERANCE);
    judge_compare(what, COUNT, dx, their_dx, ONEDNN_TOLERANCE);
    JUDGE(dnnl_primitive_desc_destroy(back));
    JUDGE(dnnl_primitive_desc_destroy(hint));
    differences_release(6, (float *[]){x, dy, y, dx, their_y, their_dx});
}

void onednn_activation(void **state)
{
    (void)state;
    check_activation(TR_ACT_RELU, dnnl_eltwise_relu, 0, 0);
    check_activation(TR_ACT_LEAKY_RELU, dnnl_eltwise_relu, 0.2f, 0);
    check_activation(TR_ACT_TANH, dnnl_eltwise_tanh, 0, 0);
    check_activation(TR_ACT_SIGMOID, dnnl_eltwise_logistic, 0, 0);
    check_activation(TR_ACT_GELU, dnnl_eltwise_gelu_erf, 0, 0);
    check_activation(TR_ACT_GELU_TANH, dnnl_eltwise_gelu_tanh, 0, 0);
    check_activation(TR_ACT_SILU, dnnl_eltwise_swish, 1, 0);
    check_activation(TR_ACT_RELU6, dnnl_eltwise_clip, 0, 6);
    check_activation(TR_ACT_HARD_SWISH, dnnl_eltwise_hardswish, 0x1.555556p-3f, 0.5f);
}

/* Rows with logits of some size, and of an odd width. */
#define ROWS  9
#define WIDTH 37
#define CELLS (ROWS * WIDTH)

static float *logits(void)
{
    float *x = differences_numbers(CELLS, 1);
    for (int i = 0; i < CELLS; i++) x[i] *= 8;
    return x;
}

void onednn_softmax(void **state)
{
    (void)state;
    float *x = logits(), *dy = differences_numbers(CELLS, 2);
    float *y = differences_zeros(CELLS), *dx = differences_zeros(CELLS);
    struct tr_op_softmax_forward forward = {.rows = ROWS, .width = WIDTH, .x = x, .y = y};
    struct tr_op_softmax_backward backward = {.rows = ROWS, .width = WIDTH, .y = y, .dy = dy, .dx = dx};
    assert_int_equal(ref_softmax_forward(NULL, &forward), TR_OK);
    assert_int_equal(ref_softmax_backward(NULL, &backward), TR_OK);

    float *their_y = differences_zeros(CELLS), *their_dx = differences_zeros(CELLS);
    onednn_shape shape = judge_shape(2, (dnnl_dim_t[]){ROWS, WIDTH}, dnnl_ab);
    dnnl_primitive_desc_t hint;
    JUDGE_FORWARD(&hint, softmax_forward, dnnl_forward_training, dnnl_softmax_accurate, shape, shape, 1);
    judge_run(hint, 2, (struct judge_argument[]){{DNNL_ARG_SRC, shape, x}, {DNNL_ARG_DST, shape, their_y}},
              NULL);
    dnnl_primitive_desc_t back;
    JUDGE_BACKWARD(&back, hint, softmax_backward, dnnl_softmax_accurate, shape, shape, shape, 1);
    judge_run(back, 3,
              (struct judge_argument[]){{DNNL_ARG_DST, shape, their_y},
                                        {DNNL_ARG_DIFF_DST, shape, dy},
                                        {DNNL_ARG_DIFF_SRC, shape, their_dx}},
              NULL);
    judge_compare("softmax y", CELLS, y, their_y, ONEDNN_TOLERANCE);
    judge_compare("softmax dx", CELLS, dx, their_dx, ONEDNN_TOLERANCE);
    JUDGE(dnnl_primitive_desc_destroy(back));
    JUDGE(dnnl_primitive_desc_destroy(hint));
    differences_release(6, (float *[]){x, dy, y, dx, their_y, their_dx});
}

/* oneDNN has the logarithm of softmax; the loss of a row with targets t is the sum of -t * log softmax. */
static void check_cross_entropy(float smoothing)
{
    float *x = logits(), *loss = differences_zeros(ROWS), *correct = differences_zeros(ROWS);
    float *dx = differences_zeros(CELLS), *dy = differences_zeros(CELLS),
          *their_loss = differences_zeros(ROWS);
    float *logarithm = differences_zeros(CELLS), *their_dx = differences_zeros(CELLS);
    int32_t label[ROWS];
    for (int r = 0; r < ROWS; r++) label[r] = r * 11 % WIDTH;
    struct tr_op_softmax_cross_entropy op = {.rows = ROWS,
                                             .classes = WIDTH,
                                             .smoothing = smoothing,
                                             .scale = 0.25f,
                                             .x = x,
                                             .label = label,
                                             .loss = loss,
                                             .correct = correct,
                                             .dx = dx};
    assert_int_equal(ref_softmax_cross_entropy(NULL, &op), TR_OK);

    onednn_shape shape = judge_shape(2, (dnnl_dim_t[]){ROWS, WIDTH}, dnnl_ab);
    dnnl_primitive_desc_t hint;
    JUDGE_FORWARD(&hint, softmax_forward, dnnl_forward_training, dnnl_softmax_log, shape, shape, 1);
    judge_run(hint, 2, (struct judge_argument[]){{DNNL_ARG_SRC, shape, x}, {DNNL_ARG_DST, shape, logarithm}},
              NULL);
    for (int i = 0; i < CELLS; i++) {
        int r = i / WIDTH;
        float target = smoothing / WIDTH + (i % WIDTH == label[r] ? 1 - smoothing : 0);
        their_loss[r] -= target * logarithm[i];
        dy[i] = -target * op.scale;
    }
    dnnl_primitive_desc_t back;
    JUDGE_BACKWARD(&back, hint, softmax_backward, dnnl_softmax_log, shape, shape, shape, 1);
    judge_run(back, 3,
              (struct judge_argument[]){{DNNL_ARG_DST, shape, logarithm},
                                        {DNNL_ARG_DIFF_DST, shape, dy},
                                        {DNNL_ARG_DIFF_SRC, shape, their_dx}},
              NULL);
    judge_compare("loss", ROWS, loss, their_loss, ONEDNN_TOLERANCE);
    judge_compare("cross-entropy dx", CELLS, dx, their_dx, ONEDNN_TOLERANCE);
    JUDGE(dnnl_primitive_desc_destroy(back));
    JUDGE(dnnl_primitive_desc_destroy(hint));
    differences_release(8, (float *[]){x, loss, correct, dx, dy, their_loss, logarithm, their_dx});
}

void onednn_cross_entropy(void **state)
{
    (void)state;
    check_cross_entropy(0);
    check_cross_entropy(0.1f);
}

/* oneDNN keeps the variance where we keep 1 / sqrt(variance + epsilon). */
static void invert(int64_t count, float *variance, float epsilon)
{
    for (int64_t i = 0; i < count; i++) variance[i] = 1 / sqrtf(variance[i] + epsilon);
}

static const int32_t whole[] = {0, 1};

void onednn_layer_norm(void **state)
{
    (void)state;
    const float epsilon = 1e-4f;
    float *x = logits(), *dy = differences_numbers(CELLS, 2), *gamma = differences_numbers(WIDTH, 3);
    float *beta = differences_numbers(WIDTH, 4), *y = differences_zeros(CELLS),
          *dx = differences_zeros(CELLS);
    float *mean = differences_zeros(ROWS), *inv = differences_zeros(ROWS);
    float *dgamma = differences_zeros(WIDTH), *dbeta = differences_zeros(WIDTH);
    struct tr_op_layer_norm_forward forward = {.rows = ROWS,
                                               .width = WIDTH,
                                               .epsilon = epsilon,
                                               .x = x,
                                               .gamma = gamma,
                                               .beta = beta,
                                               .y = y,
                                               .mean = mean,
                                               .inv = inv};
    struct tr_op_layer_norm_backward backward = {
        .width = WIDTH,
        .x = x,
        .gamma = gamma,
        .mean = mean,
        .inv = inv,
        .dy = dy,
        .dx = dx,
        .dgamma = dgamma,
        .dbeta = dbeta,
        .cut = {.count = 1, .row = (const int64_t[]){0, ROWS}, .nodes = 1, .bound = whole}};
    assert_int_equal(ref_layer_norm_forward(NULL, &forward), TR_OK);
    assert_int_equal(ref_layer_norm_backward(NULL, &backward), TR_OK);

    float *their_dgamma = differences_zeros(WIDTH), *their_dbeta = differences_zeros(WIDTH);
    float *their_y = differences_zeros(CELLS), *their_dx = differences_zeros(CELLS);
    float *their_mean = differences_zeros(ROWS), *their_var = differences_zeros(ROWS);
    onednn_shape shape = judge_shape(2, (dnnl_dim_t[]){ROWS, WIDTH}, dnnl_ab);
    onednn_shape row = judge_shape(1, (dnnl_dim_t[]){ROWS}, dnnl_a);
    onednn_shape column = judge_shape(1, (dnnl_dim_t[]){WIDTH}, dnnl_a);
    dnnl_primitive_desc_t hint;
    JUDGE_FORWARD(&hint, layer_normalization_forward, dnnl_forward_training, shape, shape, row, epsilon,
                  dnnl_use_scale | dnnl_use_shift);
    judge_run(hint, 6,
              (struct judge_argument[]){{DNNL_ARG_SRC, shape, x},
                                        {DNNL_ARG_SCALE, column, gamma},
                                        {DNNL_ARG_SHIFT, column, beta},
                                        {DNNL_ARG_MEAN, row, their_mean},
                                        {DNNL_ARG_VARIANCE, row, their_var},
                                        {DNNL_ARG_DST, shape, their_y}},
              NULL);
    dnnl_primitive_desc_t back;
    JUDGE_BACKWARD(&back, hint, layer_normalization_backward, dnnl_backward, shape, shape, shape, row,
                   epsilon, dnnl_use_scale | dnnl_use_shift);
    judge_run(back, 9,
              (struct judge_argument[]){{DNNL_ARG_SRC, shape, x},
                                        {DNNL_ARG_SCALE, column, gamma},
                                        {DNNL_ARG_SHIFT, column, beta},
                                        {DNNL_ARG_MEAN, row, their_mean},
                                        {DNNL_ARG_VARIANCE, row, their_var},
                                        {DNNL_ARG_DIFF_DST, shape, dy},
                                        {DNNL_ARG_DIFF_SRC, shape, their_dx},
                                        {DNNL_ARG_DIFF_SCALE, column, their_dgamma},
                                        {DNNL_ARG_DIFF_SHIFT, column, their_dbeta}},
              NULL);
    invert(ROWS, their_var, epsilon);
    judge_compare("layer norm y", CELLS, y, their_y, ONEDNN_TOLERANCE);
    judge_compare("layer norm mean", ROWS, mean, their_mean, ONEDNN_TOLERANCE);
    judge_compare("layer norm inv", ROWS, inv, their_var, ONEDNN_TOLERANCE);
    judge_compare("layer norm dx", CELLS, dx, their_dx, ONEDNN_TOLERANCE);
    judge_compare("layer norm dgamma", WIDTH, dgamma, their_dgamma, ONEDNN_TOLERANCE);
    judge_compare("layer norm dbeta", WIDTH, dbeta, their_dbeta, ONEDNN_TOLERANCE);
    JUDGE(dnnl_primitive_desc_destroy(back));
    JUDGE(dnnl_primitive_desc_destroy(hint));
    differences_release(10, (float *[]){x, dy, gamma, beta, y, dx, mean, inv, dgamma, dbeta});
    differences_release(6, (float *[]){their_dgamma, their_dbeta, their_y, their_dx, their_mean, their_var});
}

#define BATCH    6
#define SPATIAL  25
#define CHANNELS 19
#define VALUES   (BATCH * SPATIAL * CHANNELS)

void onednn_batch_norm(void **state)
{
    (void)state;
    const float epsilon = 1e-3f, n = BATCH * SPATIAL;
    float *x = differences_numbers(VALUES, 1), *dy = differences_numbers(VALUES, 2);
    float *gamma = differences_numbers(CHANNELS, 3), *beta = differences_numbers(CHANNELS, 4);
    float *y = differences_zeros(VALUES), *dx = differences_zeros(VALUES);
    float *mean = differences_zeros(CHANNELS), *inv = differences_zeros(CHANNELS);
    float *batch_mean = differences_zeros(CHANNELS), *batch_var = differences_zeros(CHANNELS);
    float *dgamma = differences_zeros(CHANNELS), *dbeta = differences_zeros(CHANNELS);
    struct tr_cut cut = {.count = 1, .row = (const int64_t[]){0, BATCH}, .nodes = 1, .bound = whole};
    for (int i = 0; i < VALUES; i++) x[i] += 0.125f * (float)(i % CHANNELS); /* a mean per channel */
    struct tr_op_batch_norm_forward forward = {.spatial = SPATIAL,
                                               .channels = CHANNELS,
                                               .global_rows = BATCH,
                                               .epsilon = epsilon,
                                               .x = x,
                                               .gamma = gamma,
                                               .beta = beta,
                                               .y = y,
                                               .mean = mean,
                                               .inv = inv,
                                               .batch_mean = batch_mean,
                                               .batch_var = batch_var,
                                               .cut = cut};
    struct tr_op_batch_norm_backward backward = {.spatial = SPATIAL,
                                                 .channels = CHANNELS,
                                                 .x = x,
                                                 .gamma = gamma,
                                                 .mean = mean,
                                                 .inv = inv,
                                                 .dy = dy,
                                                 .dx = dx,
                                                 .dgamma = dgamma,
                                                 .dbeta = dbeta,
                                                 .cut = cut};
    assert_int_equal(ref_batch_norm_forward(NULL, &forward), TR_OK);
    assert_int_equal(ref_batch_norm_backward(NULL, &backward), TR_OK);

    float *their_dgamma = differences_zeros(CHANNELS), *their_dbeta = differences_zeros(CHANNELS);
    float *their_y = differences_zeros(VALUES), *their_dx = differences_zeros(VALUES);
    float *their_mean = differences_zeros(CHANNELS), *their_var = differences_zeros(CHANNELS);
    onednn_shape shape = judge_shape(4, (dnnl_dim_t[]){BATCH, CHANNELS, SPATIAL, 1}, dnnl_nhwc);
    onednn_shape channel = judge_shape(1, (dnnl_dim_t[]){CHANNELS}, dnnl_a);
    dnnl_primitive_desc_t hint;
    JUDGE_FORWARD(&hint, batch_normalization_forward, dnnl_forward_training, shape, shape, epsilon,
                  dnnl_use_scale | dnnl_use_shift);
    judge_run(hint, 6,
              (struct judge_argument[]){{DNNL_ARG_SRC, shape, x},
                                        {DNNL_ARG_SCALE, channel, gamma},
                                        {DNNL_ARG_SHIFT, channel, beta},
                                        {DNNL_ARG_MEAN, channel, their_mean},
                                        {DNNL_ARG_VARIANCE, channel, their_var},
                                        {DNNL_ARG_DST, shape, their_y}},
              NULL);
    dnnl_primitive_desc_t back;
    JUDGE_BACKWARD(&back, hint, batch_normalization_backward, dnnl_backward, shape, shape, shape, epsilon,
                   dnnl_use_scale | dnnl_use_shift);
    judge_run(back, DNNL_VERSION_MAJOR < 3 ? 9 : 8, /* 2 wants the shift, 3 refuses it */

              (struct judge_argument[]){{DNNL_ARG_SRC, shape, x},
                                        {DNNL_ARG_SCALE, channel, gamma},
                                        {DNNL_ARG_MEAN, channel, their_mean},
                                        {DNNL_ARG_VARIANCE, channel, their_var},
                                        {DNNL_ARG_DIFF_DST, shape, dy},
                                        {DNNL_ARG_DIFF_SRC, shape, their_dx},
                                        {DNNL_ARG_DIFF_SCALE, channel, their_dgamma},
                                        {DNNL_ARG_DIFF_SHIFT, channel, their_dbeta},
                                        {DNNL_ARG_SHIFT, channel, beta}},
              NULL);
    judge_compare("batch norm y", VALUES, y, their_y, ONEDNN_TOLERANCE);
    judge_compare("batch norm dx", VALUES, dx, their_dx, ONEDNN_TOLERANCE);
    judge_compare("batch norm dgamma", CHANNELS, dgamma, their_dgamma, ONEDNN_TOLERANCE);
    judge_compare("batch norm dbeta", CHANNELS, dbeta, their_dbeta, ONEDNN_TOLERANCE);
    judge_compare("batch mean", CHANNELS, batch_mean, their_mean, ONEDNN_TOLERANCE);

    /* Evaluation with these statistics as the running ones gives the same outputs. */
    struct tr_op_batch_norm_infer infer = {.rows = BATCH * SPATIAL,
                                           .channels = CHANNELS,
                                           .epsilon = epsilon,
                                           .x = x,
                                           .gamma = gamma,
                                           .beta = beta,
                                           .mean = their_mean,
                                           .var = their_var,
                                           .y = y};
    assert_int_equal(ref_batch_norm_infer(NULL, &infer), TR_OK);
    judge_compare("batch norm y, evaluation", VALUES, y, their_y, ONEDNN_TOLERANCE);

    for (int c = 0; c < CHANNELS; c++) batch_var[c] *= (n - 1) / n; /* oneDNN's is not the unbiased one */
    judge_compare("batch variance", CHANNELS, batch_var, their_var, ONEDNN_TOLERANCE);
    invert(CHANNELS, their_var, epsilon);
    judge_compare("batch norm inv", CHANNELS, inv, their_var, ONEDNN_TOLERANCE);
    JUDGE(dnnl_primitive_desc_destroy(back));
    JUDGE(dnnl_primitive_desc_destroy(hint));
    differences_release(
        12, (float *[]){x, dy, gamma, beta, y, dx, mean, inv, batch_mean, batch_var, dgamma, dbeta});
    differences_release(6, (float *[]){their_dgamma, their_dbeta, their_y, their_dx, their_mean, their_var});
}
