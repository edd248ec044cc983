/* Gradients of softmax, normalizations and losses. */
#include "device/differences.h"
#include "device/gradients.h"
#include "device/ref/ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define ROWS GRADIENTS_ROWS

/* Wider than the 16 lanes, and no multiple of them. */
#define WIDTH 21

struct softmax {
    struct tr_op_softmax_forward forward;
    float *dy;
};

static double softmax_scalar(void *user)
{
    struct softmax *s = user;
    assert_int_equal(ref_softmax_forward(NULL, &s->forward), TR_OK);
    return differences_weigh(ROWS * WIDTH, s->forward.y, s->dy);
}

void gradients_softmax(void)
{
    float *x = differences_numbers(ROWS * WIDTH, 1), *dy = differences_numbers(ROWS * WIDTH, 2);
    float *y = differences_zeros(ROWS * WIDTH), *dx = differences_zeros(ROWS * WIDTH);
    struct softmax s = {{.rows = ROWS, .width = WIDTH, .x = x, .y = y}, dy};
    softmax_scalar(&s);
    struct tr_op_softmax_backward backward = {.rows = ROWS, .width = WIDTH, .y = y, .dy = dy, .dx = dx};
    assert_int_equal(ref_softmax_backward(NULL, &backward), TR_OK);
    differences_check("softmax", softmax_scalar, &s, DIFFERENCES_SMOOTH, x, dx, 0, ROWS * WIDTH);
    differences_release(4, (float *[]){x, dy, y, dx});
}

struct layer_norm {
    struct tr_op_layer_norm_forward forward;
    float *dy;
};

static double layer_norm_scalar(void *user)
{
    struct layer_norm *n = user;
    assert_int_equal(ref_layer_norm_forward(NULL, &n->forward), TR_OK);
    return differences_weigh(ROWS * WIDTH, n->forward.y, n->dy);
}

void gradients_layer_norm(void)
{
    float *x = differences_numbers(ROWS * WIDTH, 1), *dy = differences_numbers(ROWS * WIDTH, 2);
    float *gamma = differences_numbers(WIDTH, 3), *beta = differences_numbers(WIDTH, 4);
    float *y = differences_zeros(ROWS * WIDTH), *dx = differences_zeros(ROWS * WIDTH);
    float *mean = differences_zeros(ROWS), *inv = differences_zeros(ROWS);
    float *dgamma = differences_zeros(WIDTH), *dbeta = differences_zeros(WIDTH);
    struct layer_norm n = {{.rows = ROWS,
                            .width = WIDTH,
                            .epsilon = 1e-3f,
                            .x = x,
                            .gamma = gamma,
                            .beta = beta,
                            .y = y,
                            .mean = mean,
                            .inv = inv},
                           dy};
    layer_norm_scalar(&n);
    struct tr_op_layer_norm_backward backward = {.width = WIDTH,
                                                 .x = x,
                                                 .gamma = gamma,
                                                 .mean = mean,
                                                 .inv = inv,
                                                 .dy = dy,
                                                 .dx = dx,
                                                 .dgamma = dgamma,
                                                 .dbeta = dbeta,
                                                 .cut = gradients_cut};
    assert_int_equal(ref_layer_norm_backward(NULL, &backward), TR_OK);
    differences_check("layer norm, x", layer_norm_scalar, &n, DIFFERENCES_SMOOTH, x, dx, 0, ROWS * WIDTH);
    differences_check("layer norm, gamma", layer_norm_scalar, &n, DIFFERENCES_SMOOTH, gamma, dgamma, 0,
                      WIDTH);
    differences_check("layer norm, beta", layer_norm_scalar, &n, DIFFERENCES_SMOOTH, beta, dbeta, 0, WIDTH);
    differences_release(10, (float *[]){x, dy, gamma, beta, y, dx, mean, inv, dgamma, dbeta});
}

#define SPATIAL  4
#define CHANNELS 3
#define VALUES   (ROWS * SPATIAL * CHANNELS)

struct batch_norm {
    struct tr_op_batch_norm_forward forward;
    float *dy;
};

static double batch_norm_scalar(void *user)
{
    struct batch_norm *n = user;
    assert_int_equal(ref_batch_norm_forward(NULL, &n->forward), TR_OK);
    return differences_weigh(VALUES, n->forward.y, n->dy);
}

void gradients_batch_norm(void)
{
    int microbatches = gradients_cut.count;
    float *x = differences_numbers(VALUES, 1), *dy = differences_numbers(VALUES, 2);
    float *gamma = differences_numbers(CHANNELS, 3), *beta = differences_numbers(CHANNELS, 4);
    float *y = differences_zeros(VALUES), *dx = differences_zeros(VALUES);
    float *mean = differences_zeros(microbatches * CHANNELS),
          *inv = differences_zeros(microbatches * CHANNELS);
    float *batch_mean = differences_zeros(CHANNELS), *batch_var = differences_zeros(CHANNELS);
    float *dgamma = differences_zeros(CHANNELS), *dbeta = differences_zeros(CHANNELS);
    struct batch_norm n = {{.spatial = SPATIAL,
                            .channels = CHANNELS,
                            .global_rows = ROWS,
                            .epsilon = 1e-2f,
                            .x = x,
                            .gamma = gamma,
                            .beta = beta,
                            .y = y,
                            .mean = mean,
                            .inv = inv,
                            .batch_mean = batch_mean,
                            .batch_var = batch_var,
                            .cut = gradients_cut},
                           dy};
    batch_norm_scalar(&n);
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
                                                 .cut = gradients_cut};
    assert_int_equal(ref_batch_norm_backward(NULL, &backward), TR_OK);
    differences_check("batch norm, x", batch_norm_scalar, &n, DIFFERENCES_SMOOTH, x, dx, 0, VALUES);
    differences_check("batch norm, gamma", batch_norm_scalar, &n, DIFFERENCES_SMOOTH, gamma, dgamma, 0,
                      CHANNELS);
    differences_check("batch norm, beta", batch_norm_scalar, &n, DIFFERENCES_SMOOTH, beta, dbeta, 0,
                      CHANNELS);
    differences_release(
        12, (float *[]){x, dy, gamma, beta, y, dx, mean, inv, batch_mean, batch_var, dgamma, dbeta});
}

/* Losses weigh their rows by `scale`. */
#define SCALE 0.75f

static double sum_of_losses(const float *loss)
{
    double sum = 0;
    for (int r = 0; r < ROWS; r++) sum += (double)loss[r];
    return sum * (double)SCALE;
}

static double cross_entropy_scalar(void *user)
{
    struct tr_op_softmax_cross_entropy forward = *(const struct tr_op_softmax_cross_entropy *)user;
    forward.dx = NULL;
    assert_int_equal(ref_softmax_cross_entropy(NULL, &forward), TR_OK);
    return sum_of_losses(forward.loss);
}

void gradients_softmax_cross_entropy(void)
{
    static const int32_t label[ROWS] = {0, WIDTH - 1, 5, 16, 15};
    float *x = differences_numbers(ROWS * WIDTH, 1), *dx = differences_zeros(ROWS * WIDTH);
    float *loss = differences_zeros(ROWS), *correct = differences_zeros(ROWS);
    for (int smooth = 0; smooth < 2; smooth++) {
        struct tr_op_softmax_cross_entropy op = {.rows = ROWS,
                                                 .classes = WIDTH,
                                                 .smoothing = smooth ? 0.2f : 0,
                                                 .scale = SCALE,
                                                 .x = x,
                                                 .label = label,
                                                 .loss = loss,
                                                 .correct = correct,
                                                 .dx = dx};
        assert_int_equal(ref_softmax_cross_entropy(NULL, &op), TR_OK);
        differences_check(smooth ? "cross-entropy, smoothing" : "cross-entropy", cross_entropy_scalar, &op,
                          DIFFERENCES_SMOOTH, x, dx, 0, ROWS * WIDTH);
    }
    differences_release(4, (float *[]){x, dx, loss, correct});
}

static double squared_error_scalar(void *user)
{
    struct tr_op_mean_squared_error forward = *(const struct tr_op_mean_squared_error *)user;
    forward.dx = NULL;
    assert_int_equal(ref_mean_squared_error(NULL, &forward), TR_OK);
    return sum_of_losses(forward.loss);
}

void gradients_mean_squared_error(void)
{
    float *x = differences_numbers(ROWS * WIDTH, 1), *target = differences_numbers(ROWS * WIDTH, 2);
    float *dx = differences_zeros(ROWS * WIDTH), *loss = differences_zeros(ROWS);
    struct tr_op_mean_squared_error op = {
        .rows = ROWS, .width = WIDTH, .scale = SCALE, .x = x, .target = target, .loss = loss, .dx = dx};
    assert_int_equal(ref_mean_squared_error(NULL, &op), TR_OK);
    differences_check("squared error", squared_error_scalar, &op, DIFFERENCES_SMOOTH, x, dx, 0, ROWS * WIDTH);
    differences_release(4, (float *[]){x, target, dx, loss});
}
