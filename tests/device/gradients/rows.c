/* Gradients of softmax, normalizations and losses. */
#include "device/differences.h"
#include "device/gradients/gradients.h"
#include "device/ref/ref.h"

#include <math.h>
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

struct rms_norm {
    struct tr_op_rms_norm_forward forward;
    float *dy;
};

static double rms_norm_scalar(void *user)
{
    struct rms_norm *n = user;
    assert_int_equal(ref_rms_norm_forward(NULL, &n->forward), TR_OK);
    return differences_weigh(ROWS * WIDTH, n->forward.y, n->dy);
}

void gradients_rms_norm(void)
{
    float *x = differences_numbers(ROWS * WIDTH, 1), *dy = differences_numbers(ROWS * WIDTH, 2);
    float *gamma = differences_numbers(WIDTH, 3), *inv = differences_zeros(ROWS);
    float *y = differences_zeros(ROWS * WIDTH), *dx = differences_zeros(ROWS * WIDTH);
    float *dgamma = differences_zeros(WIDTH);
    struct rms_norm n = {
        {.rows = ROWS, .width = WIDTH, .epsilon = 1e-3f, .x = x, .gamma = gamma, .y = y, .inv = inv}, dy};
    rms_norm_scalar(&n);
    struct tr_op_rms_norm_backward backward = {.width = WIDTH,
                                               .x = x,
                                               .gamma = gamma,
                                               .inv = inv,
                                               .dy = dy,
                                               .dx = dx,
                                               .dgamma = dgamma,
                                               .cut = gradients_cut};
    assert_int_equal(ref_rms_norm_backward(NULL, &backward), TR_OK);
    differences_check("rms norm, x", rms_norm_scalar, &n, DIFFERENCES_SMOOTH, x, dx, 0, ROWS * WIDTH);
    differences_check("rms norm, gamma", rms_norm_scalar, &n, DIFFERENCES_SMOOTH, gamma, dgamma, 0, WIDTH);
    differences_release(7, (float *[]){x, dy, gamma, inv, y, dx, dgamma});
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

struct batch_norm_activation {
    struct tr_op_batch_norm_activation_forward forward;
    float *dy;
};

static double batch_norm_activation_scalar(void *user)
{
    struct batch_norm_activation *n = user;
    assert_int_equal(ref_batch_norm_activation_forward(NULL, &n->forward), TR_OK);
    return differences_weigh(VALUES, n->forward.norm.y, n->dy);
}

/* With addends so large that no value comes near the bend of the activation, on either side of it. dy comes
   in two parts. */
void gradients_batch_norm_activation(void)
{
    int microbatches = gradients_cut.count;
    float *x = differences_numbers(VALUES, 1), *dy = differences_numbers(VALUES, 2);
    float *gamma = differences_numbers(CHANNELS, 3), *beta = differences_numbers(CHANNELS, 4);
    float *addend = differences_numbers(VALUES, 5), *more = differences_numbers(VALUES, 6);
    float *part = differences_zeros(VALUES), *daddend = differences_zeros(VALUES);
    float *y = differences_zeros(VALUES), *dx = differences_zeros(VALUES);
    float *statistics = differences_zeros((2 * microbatches + 4) * CHANNELS);
    float *mean = statistics, *inv = mean + microbatches * CHANNELS, *rest = inv + microbatches * CHANNELS;
    for (int i = 0; i < VALUES; i++) {
        addend[i] *= 16;
        part[i] = dy[i] - more[i];
    }
    struct batch_norm_activation n = {{.norm = {.spatial = SPATIAL,
                                                .channels = CHANNELS,
                                                .global_rows = ROWS,
                                                .epsilon = 1e-2f,
                                                .x = x,
                                                .gamma = gamma,
                                                .beta = beta,
                                                .y = y,
                                                .mean = mean,
                                                .inv = inv,
                                                .batch_mean = rest,
                                                .batch_var = rest + CHANNELS,
                                                .cut = gradients_cut},
                                       .addend = addend,
                                       .activation = TR_ACT_LEAKY_RELU,
                                       .slope = 0.25f},
                                      dy};
    batch_norm_activation_scalar(&n);
    struct tr_op_batch_norm_activation_backward backward = {.norm = {.spatial = SPATIAL,
                                                                     .channels = CHANNELS,
                                                                     .x = x,
                                                                     .gamma = gamma,
                                                                     .mean = mean,
                                                                     .inv = inv,
                                                                     .dy = part,
                                                                     .dx = dx,
                                                                     .dgamma = rest + 2 * CHANNELS,
                                                                     .dbeta = rest + 3 * CHANNELS,
                                                                     .cut = gradients_cut},
                                                            .more = more,
                                                            .y = y,
                                                            .daddend = daddend,
                                                            .activation = TR_ACT_LEAKY_RELU,
                                                            .slope = 0.25f};
    assert_int_equal(ref_batch_norm_activation_backward(NULL, &backward), TR_OK);
    differences_check("batch norm and activation, x", batch_norm_activation_scalar, &n, DIFFERENCES_SMOOTH, x,
                      dx, 0, VALUES);
    differences_check("batch norm and activation, addend", batch_norm_activation_scalar, &n,
                      DIFFERENCES_LINEAR, addend, daddend, 0, VALUES);
    differences_check("batch norm and activation, gamma", batch_norm_activation_scalar, &n,
                      DIFFERENCES_SMOOTH, gamma, backward.norm.dgamma, 0, CHANNELS);
    differences_check("batch norm and activation, beta", batch_norm_activation_scalar, &n, DIFFERENCES_SMOOTH,
                      beta, backward.norm.dbeta, 0, CHANNELS);
    differences_release(11, (float *[]){x, dy, gamma, beta, addend, more, part, daddend, y, dx, statistics});
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

static double soft_cross_entropy_scalar(void *user)
{
    struct tr_op_soft_cross_entropy forward = *(const struct tr_op_soft_cross_entropy *)user;
    forward.dx = NULL;
    assert_int_equal(ref_soft_cross_entropy(NULL, &forward), TR_OK);
    return sum_of_losses(forward.loss);
}

void gradients_soft_cross_entropy(void)
{
    /* Targets need not add up to 1: the slope has their sum. */
    float *x = differences_numbers(ROWS * WIDTH, 1), *target = differences_numbers(ROWS * WIDTH, 2);
    float *dx = differences_zeros(ROWS * WIDTH), *loss = differences_zeros(ROWS),
          *correct = differences_zeros(ROWS);
    for (int smooth = 0; smooth < 2; smooth++) {
        struct tr_op_soft_cross_entropy op = {.rows = ROWS,
                                              .classes = WIDTH,
                                              .smoothing = smooth ? 0.2f : 0,
                                              .scale = SCALE,
                                              .x = x,
                                              .target = target,
                                              .loss = loss,
                                              .correct = correct,
                                              .dx = dx};
        assert_int_equal(ref_soft_cross_entropy(NULL, &op), TR_OK);
        differences_check(smooth ? "soft cross-entropy, smoothing" : "soft cross-entropy",
                          soft_cross_entropy_scalar, &op, DIFFERENCES_SMOOTH, x, dx, 0, ROWS * WIDTH);
    }
    differences_release(5, (float *[]){x, target, dx, loss, correct});
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

static double binary_cross_entropy_scalar(void *user)
{
    struct tr_op_binary_cross_entropy forward = *(const struct tr_op_binary_cross_entropy *)user;
    forward.dx = NULL;
    assert_int_equal(ref_binary_cross_entropy(NULL, &forward), TR_OK);
    return sum_of_losses(forward.loss);
}

void gradients_binary_cross_entropy(void)
{
    float *x = differences_numbers(ROWS * WIDTH, 1), *target = differences_numbers(ROWS * WIDTH, 2);
    float *weight = differences_numbers(WIDTH, 3), *dx = differences_zeros(ROWS * WIDTH);
    float *loss = differences_zeros(ROWS), *correct = differences_zeros(ROWS);
    for (int i = 0; i < ROWS * WIDTH; i++) target[i] = target[i] > 0 ? 1 : 0;
    target[3] = 0.25f; /* in between, too */
    for (int k = 0; k < WIDTH; k++) weight[k] = 2 + weight[k];
    for (int weighed = 0; weighed < 2; weighed++) {
        struct tr_op_binary_cross_entropy op = {.rows = ROWS,
                                                .width = WIDTH,
                                                .scale = SCALE,
                                                .x = x,
                                                .target = target,
                                                .weight = weighed ? weight : NULL,
                                                .loss = loss,
                                                .correct = correct,
                                                .dx = dx};
        assert_int_equal(ref_binary_cross_entropy(NULL, &op), TR_OK);
        differences_check(weighed ? "binary cross-entropy, weights" : "binary cross-entropy",
                          binary_cross_entropy_scalar, &op, DIFFERENCES_SMOOTH, x, dx, 0, ROWS * WIDTH);
    }
    differences_release(6, (float *[]){x, target, weight, dx, loss, correct});
}

static double focal_cross_entropy_scalar(void *user)
{
    struct tr_op_focal_cross_entropy forward = *(const struct tr_op_focal_cross_entropy *)user;
    forward.dx = NULL;
    assert_int_equal(ref_focal_cross_entropy(NULL, &forward), TR_OK);
    return sum_of_losses(forward.loss);
}

void gradients_focal_cross_entropy(void)
{
    static const int32_t label[ROWS] = {0, WIDTH - 1, 5, 16, 15};
    static const float gamma[] = {2, 0.5f, 0};
    float *x = differences_numbers(ROWS * WIDTH, 1), *dx = differences_zeros(ROWS * WIDTH);
    float *loss = differences_zeros(ROWS), *correct = differences_zeros(ROWS);
    for (int i = 0; i < 3; i++) {
        struct tr_op_focal_cross_entropy op = {.rows = ROWS,
                                               .classes = WIDTH,
                                               .gamma = gamma[i],
                                               .scale = SCALE,
                                               .x = x,
                                               .label = label,
                                               .loss = loss,
                                               .correct = correct,
                                               .dx = dx};
        assert_int_equal(ref_focal_cross_entropy(NULL, &op), TR_OK);
        differences_check("focal cross-entropy", focal_cross_entropy_scalar, &op, DIFFERENCES_SMOOTH, x, dx,
                          0, ROWS * WIDTH);
    }
    differences_release(4, (float *[]){x, dx, loss, correct});
}

static double quantile_error_scalar(void *user)
{
    struct tr_op_quantile_error forward = *(const struct tr_op_quantile_error *)user;
    forward.dx = NULL;
    assert_int_equal(ref_quantile_error(NULL, &forward), TR_OK);
    return sum_of_losses(forward.loss);
}

void gradients_quantile_error(void)
{
    static const float distances[] = {0.25f, -0.25f, 0.5f, -0.5f, 2, -2, 3.5f};
    float quantile[3 * WIDTH];
    float *x = differences_numbers(ROWS * 3 * WIDTH, 1), *target = differences_numbers(ROWS * WIDTH, 2);
    float *dx = differences_zeros(ROWS * 3 * WIDTH), *loss = differences_zeros(ROWS);
    for (int k = 0; k < 3 * WIDTH; k++) quantile[k] = 0.1f + 0.4f * (float)(k % 3);
    for (int i = 0; i < ROWS * 3 * WIDTH; i++)
        x[i] = target[i / 3] - distances[i % (int)(sizeof distances / sizeof distances[0])];
    struct tr_op_quantile_error op = {.rows = ROWS,
                                      .width = 3 * WIDTH,
                                      .each = 3,
                                      .scale = SCALE,
                                      .x = x,
                                      .target = target,
                                      .quantile = quantile,
                                      .loss = loss,
                                      .dx = dx};
    assert_int_equal(ref_quantile_error(NULL, &op), TR_OK);
    differences_check("quantiles", quantile_error_scalar, &op, DIFFERENCES_SMOOTH, x, dx, 0,
                      ROWS * 3 * WIDTH);
    differences_release(4, (float *[]){x, target, dx, loss});
}

static double poisson_error_scalar(void *user)
{
    struct tr_op_poisson_error forward = *(const struct tr_op_poisson_error *)user;
    forward.dx = NULL;
    assert_int_equal(ref_poisson_error(NULL, &forward), TR_OK);
    return sum_of_losses(forward.loss);
}

void gradients_poisson_error(void)
{
    float *x = differences_numbers(ROWS * WIDTH, 1), *target = differences_numbers(ROWS * WIDTH, 2);
    float *dx = differences_zeros(ROWS * WIDTH), *loss = differences_zeros(ROWS);
    for (int logs = 1; logs >= 0; logs--) {
        struct tr_op_poisson_error op = {.rows = ROWS,
                                         .width = WIDTH,
                                         .logs = logs,
                                         .epsilon = 1e-3f,
                                         .scale = SCALE,
                                         .x = x,
                                         .target = target,
                                         .loss = loss,
                                         .dx = dx};
        for (int i = 0; !logs && i < ROWS * WIDTH; i++) x[i] = 0.5f + fabsf(x[i]); /* rates */
        assert_int_equal(ref_poisson_error(NULL, &op), TR_OK);
        differences_check(logs ? "Poisson's error, logarithms" : "Poisson's error", poisson_error_scalar, &op,
                          DIFFERENCES_SMOOTH, x, dx, 0, ROWS * WIDTH);
    }
    differences_release(4, (float *[]){x, target, dx, loss});
}

static double contrastive_error_scalar(void *user)
{
    struct tr_op_contrastive_error forward = *(const struct tr_op_contrastive_error *)user;
    forward.dx = NULL;
    assert_int_equal(ref_contrastive_error(NULL, &forward), TR_OK);
    return sum_of_losses(forward.loss);
}

static double triplet_error_scalar(void *user)
{
    struct tr_op_triplet_error forward = *(const struct tr_op_triplet_error *)user;
    forward.dx = NULL;
    assert_int_equal(ref_triplet_error(NULL, &forward), TR_OK);
    return sum_of_losses(forward.loss);
}

/* Embeddings of random numbers are about sqrt(2 * WIDTH) apart: a margin of 3 is met by most, one of 6 by
   none. */
void gradients_contrastive_error(void)
{
    static const int32_t label[ROWS] = {0, 1, 0, 1, 0};
    float *x = differences_numbers(ROWS * 2 * WIDTH, 1), *dx = differences_zeros(ROWS * 2 * WIDTH);
    float *loss = differences_zeros(ROWS), *correct = differences_zeros(ROWS);
    for (int wide = 0; wide < 2; wide++) {
        struct tr_op_contrastive_error op = {.rows = ROWS,
                                             .width = WIDTH,
                                             .margin = wide ? 6 : 3,
                                             .scale = SCALE,
                                             .x = x,
                                             .label = label,
                                             .loss = loss,
                                             .correct = correct,
                                             .dx = dx};
        assert_int_equal(ref_contrastive_error(NULL, &op), TR_OK);
        differences_check(wide ? "pairs within the margin" : "pairs", contrastive_error_scalar, &op,
                          DIFFERENCES_SMOOTH, x, dx, 0, ROWS * 2 * WIDTH);
    }
    differences_release(4, (float *[]){x, dx, loss, correct});
}

void gradients_triplet_error(void)
{
    float *x = differences_numbers(ROWS * 3 * WIDTH, 1), *dx = differences_zeros(ROWS * 3 * WIDTH);
    float *loss = differences_zeros(ROWS), *correct = differences_zeros(ROWS);
    for (int i = 0; i < 4; i++) {
        struct tr_op_triplet_error op = {.rows = ROWS,
                                         .width = WIDTH,
                                         .squared = i & 1,
                                         .margin = i & 2 ? 8 : 0.01f,
                                         .scale = SCALE,
                                         .x = x,
                                         .loss = loss,
                                         .correct = correct,
                                         .dx = dx};
        assert_int_equal(ref_triplet_error(NULL, &op), TR_OK);
        differences_check(op.squared ? "triples, squared" : "triples", triplet_error_scalar, &op,
                          DIFFERENCES_SMOOTH, x, dx, 0, ROWS * 3 * WIDTH);
    }
    differences_release(4, (float *[]){x, dx, loss, correct});
}

static double huber_error_scalar(void *user)
{
    struct tr_op_huber_error forward = *(const struct tr_op_huber_error *)user;
    forward.dx = NULL;
    assert_int_equal(ref_huber_error(NULL, &forward), TR_OK);
    return sum_of_losses(forward.loss);
}

/* Distances at which nothing bends within the reach of a difference quotient: below and above delta, and
   never near 0. */
void gradients_huber_error(void)
{
    static const float distances[] = {0.25f, -0.25f, 0.5f, -0.5f, 2, -2, 3.5f};
    float *x = differences_numbers(ROWS * WIDTH, 1), *target = differences_zeros(ROWS * WIDTH);
    float *dx = differences_zeros(ROWS * WIDTH), *loss = differences_zeros(ROWS);
    for (int i = 0; i < ROWS * WIDTH; i++)
        target[i] = x[i] - distances[i % (int)(sizeof distances / sizeof distances[0])];
    for (int absolute = 0; absolute < 2; absolute++) {
        struct tr_op_huber_error op = {.rows = ROWS,
                                       .width = WIDTH,
                                       .delta = absolute ? 0 : 1,
                                       .scale = SCALE,
                                       .x = x,
                                       .target = target,
                                       .loss = loss,
                                       .dx = dx};
        assert_int_equal(ref_huber_error(NULL, &op), TR_OK);
        differences_check(absolute ? "absolute error" : "Huber's error", huber_error_scalar, &op,
                          DIFFERENCES_SMOOTH, x, dx, 0, ROWS * WIDTH);
    }
    differences_release(4, (float *[]){x, target, dx, loss});
}

struct weighed {
    struct tr_op_softmax_cross_entropy loss;
    struct tr_op_weigh_rows weigh;
};

static double weighed_scalar(void *user)
{
    struct weighed forward = *(const struct weighed *)user;
    forward.loss.dx = forward.weigh.dx = NULL;
    assert_int_equal(ref_softmax_cross_entropy(NULL, &forward.loss), TR_OK);
    assert_int_equal(ref_weigh_rows(NULL, &forward.weigh), TR_OK);
    return sum_of_losses(forward.loss.loss);
}

void gradients_weigh_rows(void)
{
    static const int32_t label[ROWS] = {0, WIDTH - 1, 5, 16, 15};
    float *x = differences_numbers(ROWS * WIDTH, 1), *dx = differences_zeros(ROWS * WIDTH);
    float *loss = differences_zeros(ROWS), *correct = differences_zeros(ROWS);
    float *weight = differences_numbers(WIDTH, 2);
    struct weighed both = {{.rows = ROWS,
                            .classes = WIDTH,
                            .scale = SCALE,
                            .x = x,
                            .label = label,
                            .loss = loss,
                            .correct = correct,
                            .dx = dx},
                           {ROWS, WIDTH, weight, label, loss, dx}};
    assert_int_equal(ref_softmax_cross_entropy(NULL, &both.loss), TR_OK);
    assert_int_equal(ref_weigh_rows(NULL, &both.weigh), TR_OK);
    differences_check("weighed cross-entropy", weighed_scalar, &both, DIFFERENCES_SMOOTH, x, dx, 0,
                      ROWS * WIDTH);
    differences_release(5, (float *[]){x, dx, loss, correct, weight});
}

struct averaged {
    struct tr_op_softmax_cross_entropy loss;
    struct tr_op_mean_labelled mean;
};

static double averaged_scalar(void *user)
{
    struct averaged forward = *(const struct averaged *)user;
    forward.loss.dx = forward.mean.dx = NULL;
    assert_int_equal(ref_softmax_cross_entropy(NULL, &forward.loss), TR_OK);
    assert_int_equal(ref_mean_labelled(NULL, &forward.mean), TR_OK);
    return SCALE * (double)forward.mean.loss[0];
}

/* The rows are the places of one example. */
void gradients_mean_labelled(void)
{
    static const int32_t label[ROWS] = {0, WIDTH - 1, -1, 16, 15};
    float *x = differences_numbers(ROWS * WIDTH, 1), *dx = differences_zeros(ROWS * WIDTH);
    float *each = differences_zeros(ROWS), *correct = differences_zeros(ROWS);
    float *weight = differences_numbers(WIDTH, 2), *mean = differences_zeros(2);
    struct averaged both = {{.rows = ROWS,
                             .classes = WIDTH,
                             .scale = SCALE,
                             .x = x,
                             .label = label,
                             .loss = each,
                             .correct = correct,
                             .dx = dx},
                            {.rows = 1,
                             .places = ROWS,
                             .classes = WIDTH,
                             .label = label,
                             .each_loss = each,
                             .each_correct = correct,
                             .weight = weight,
                             .loss = mean,
                             .correct = mean + 1,
                             .dx = dx}};
    assert_int_equal(ref_softmax_cross_entropy(NULL, &both.loss), TR_OK);
    assert_int_equal(ref_mean_labelled(NULL, &both.mean), TR_OK);
    differences_check("mean of labelled places", averaged_scalar, &both, DIFFERENCES_SMOOTH, x, dx, 0,
                      ROWS * WIDTH);
    differences_release(6, (float *[]){x, dx, each, correct, weight, mean});
}
