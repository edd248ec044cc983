/* Gradients of dense layers, convolutions, pools and activations. */
#include "device/cases/cases.h"
#include "device/differences.h"
#include "device/gradients/gradients.h"
#include "device/ref/ref.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define ROWS GRADIENTS_ROWS

/* ---- dense ---- */

struct dense {
    struct tr_op_dense_forward forward;
    float *dy;
};

static double dense_scalar(void *user)
{
    struct dense *d = user;
    assert_int_equal(ref_dense_forward(NULL, &d->forward), TR_OK);
    return differences_weigh(d->forward.rows * d->forward.out, d->forward.y, d->dy);
}

void gradients_dense(void)
{
    enum { IN = 7, OUT = 4 };
    float *x = differences_numbers(ROWS * IN, 1), *w = differences_numbers(IN * OUT, 2);
    float *b = differences_numbers(OUT, 3), *dy = differences_numbers(ROWS * OUT, 4);
    float *y = differences_zeros(ROWS * OUT), *dx = differences_zeros(ROWS * IN);
    float *dw = differences_zeros(IN * OUT), *db = differences_zeros(OUT);
    struct dense d = {{.rows = ROWS, .in = IN, .out = OUT, .x = x, .w = w, .b = b, .y = y}, dy};
    struct tr_op_dense_backward_data data = {.rows = ROWS, .in = IN, .out = OUT, .dy = dy, .w = w, .dx = dx};
    struct tr_op_dense_backward_weights weights = {
        .in = IN, .out = OUT, .x = x, .dy = dy, .dw = dw, .db = db, .cut = gradients_cut};
    assert_int_equal(ref_dense_backward_data(NULL, &data), TR_OK);
    assert_int_equal(ref_dense_backward_weights(NULL, &weights), TR_OK);
    differences_check("dense, x", dense_scalar, &d, DIFFERENCES_LINEAR, x, dx, 0, ROWS * IN);
    differences_check("dense, w", dense_scalar, &d, DIFFERENCES_LINEAR, w, dw, 0, IN * OUT);
    differences_check("dense, b", dense_scalar, &d, DIFFERENCES_LINEAR, b, db, 0, OUT);
    differences_release(8, (float *[]){x, w, b, dy, y, dx, dw, db});
}

/* ---- convolution ---- */

struct conv {
    struct tr_op_conv_forward forward;
    bool winograd;
    float *dy;
    int64_t outputs;
};

static double conv_scalar(void *user)
{
    struct conv *c = user;
    const struct tr_op_winograd_forward winograd = {c->forward};
    assert_int_equal(
        c->winograd ? ref_winograd_forward(NULL, &winograd) : ref_conv_forward(NULL, &c->forward), TR_OK);
    return differences_weigh(c->outputs, c->forward.y, c->dy);
}

static void conv_backward(bool winograd, const struct tr_op_conv_backward_data *data,
                          const struct tr_op_conv_backward_weights *weights)
{
    const struct tr_op_winograd_backward_data winograd_data = {*data};
    const struct tr_op_winograd_backward_weights winograd_weights = {*weights};
    assert_int_equal(winograd ? ref_winograd_backward_data(NULL, &winograd_data)
                              : ref_conv_backward_data(NULL, data),
                     TR_OK);
    assert_int_equal(winograd ? ref_winograd_backward_weights(NULL, &winograd_weights)
                              : ref_conv_backward_weights(NULL, weights),
                     TR_OK);
}

static void check_conv_window(const struct named_window *named, bool winograd)
{
    enum { IN = 2, OUT = 3 };
    const char *name = winograd ? "winograd" : "convolution";
    const struct tr_sliding_window *window = &named->window;
    int64_t inputs = (int64_t)ROWS * window->in_h * window->in_w * IN;
    int64_t outputs = (int64_t)ROWS * window->out_h * window->out_w * OUT;
    int64_t weights = (int64_t)window->kernel_h * window->kernel_w * IN * OUT;
    float *x = differences_numbers(inputs, 1), *w = differences_numbers(weights, 2);
    float *b = differences_numbers(OUT, 3), *dy = differences_numbers(outputs, 4);
    float *y = differences_zeros(outputs), *dx = differences_zeros(inputs);
    float *dw = differences_zeros(weights), *db = differences_zeros(OUT);
    struct conv c = {
        {.rows = ROWS, .in_c = IN, .out_c = OUT, .window = *window, .x = x, .w = w, .b = b, .y = y},
        winograd,
        dy,
        outputs};
    struct tr_op_conv_backward_data data = {
        .rows = ROWS, .in_c = IN, .out_c = OUT, .window = *window, .dy = dy, .w = w, .dx = dx};
    struct tr_op_conv_backward_weights gradient = {.in_c = IN,
                                                   .out_c = OUT,
                                                   .window = *window,
                                                   .x = x,
                                                   .dy = dy,
                                                   .dw = dw,
                                                   .db = db,
                                                   .cut = gradients_cut};
    conv_backward(winograd, &data, &gradient);
    char what[100];
    snprintf(what, sizeof what, "%s %s, x", name, named->name);
    differences_check(what, conv_scalar, &c, DIFFERENCES_LINEAR, x, dx, 0, inputs);
    snprintf(what, sizeof what, "%s %s, w", name, named->name);
    differences_check(what, conv_scalar, &c, DIFFERENCES_LINEAR, w, dw, 0, weights);
    snprintf(what, sizeof what, "%s %s, b", name, named->name);
    differences_check(what, conv_scalar, &c, DIFFERENCES_LINEAR, b, db, 0, OUT);
    differences_release(8, (float *[]){x, w, b, dy, y, dx, dw, db});
}

void gradients_conv(void)
{
    for (int i = 0; i < case_window_count; i++) check_conv_window(&case_windows[i], false);
}

void gradients_winograd(void)
{
    for (int i = 0; i < case_winograd_window_count; i++) check_conv_window(&case_winograd_windows[i], true);
}

/* ---- convolution by groups ---- */

struct grouped {
    struct tr_op_grouped_conv_forward forward;
    float *dy;
    int64_t outputs;
};

static double grouped_scalar(void *user)
{
    struct grouped *g = user;
    assert_int_equal(ref_grouped_conv_forward(NULL, &g->forward), TR_OK);
    return differences_weigh(g->outputs, g->forward.conv.y, g->dy);
}

static void check_grouped_window(const struct named_window *named, int groups, int in, int out)
{
    const struct tr_sliding_window *w = &named->window;
    const int in_c = groups * in, out_c = groups * out;
    const int64_t inputs = (int64_t)ROWS * w->in_h * w->in_w * in_c;
    const int64_t outputs = (int64_t)ROWS * w->out_h * w->out_w * out_c;
    const int64_t weights = (int64_t)w->kernel_h * w->kernel_w * in * out_c;
    float *x = differences_numbers(inputs, 1), *weight = differences_numbers(weights, 2);
    float *b = differences_numbers(out_c, 3), *dy = differences_numbers(outputs, 4);
    float *y = differences_zeros(outputs), *dx = differences_zeros(inputs);
    float *dw = differences_zeros(weights), *db = differences_zeros(out_c);
    struct grouped g = {
        {{.rows = ROWS, .in_c = in_c, .out_c = out_c, .window = *w, .x = x, .w = weight, .b = b, .y = y},
         groups},
        dy,
        outputs};
    const struct tr_op_grouped_conv_backward_data data = {
        {.rows = ROWS, .in_c = in_c, .out_c = out_c, .window = *w, .dy = dy, .w = weight, .dx = dx}, groups};
    const struct tr_op_grouped_conv_backward_weights gradient = {{.in_c = in_c,
                                                                  .out_c = out_c,
                                                                  .window = *w,
                                                                  .x = x,
                                                                  .dy = dy,
                                                                  .dw = dw,
                                                                  .db = db,
                                                                  .cut = gradients_cut},
                                                                 groups};
    assert_int_equal(ref_grouped_conv_backward_data(NULL, &data), TR_OK);
    assert_int_equal(ref_grouped_conv_backward_weights(NULL, &gradient), TR_OK);
    char what[100];
    snprintf(what, sizeof what, "%d groups, %s, x", groups, named->name);
    differences_check(what, grouped_scalar, &g, DIFFERENCES_LINEAR, x, dx, 0, inputs);
    snprintf(what, sizeof what, "%d groups, %s, w", groups, named->name);
    differences_check(what, grouped_scalar, &g, DIFFERENCES_LINEAR, weight, dw, 0, weights);
    snprintf(what, sizeof what, "%d groups, %s, b", groups, named->name);
    differences_check(what, grouped_scalar, &g, DIFFERENCES_LINEAR, b, db, 0, out_c);
    differences_release(8, (float *[]){x, weight, b, dy, y, dx, dw, db});
}

void gradients_grouped_conv(void)
{
    for (int i = 0; i < case_window_count; i++) {
        check_grouped_window(&case_windows[i], 3, 1, 1);
        if (i % 4 == 3) check_grouped_window(&case_windows[i], 2, 2, 3);
    }
}

/* ---- elements ---- */

#define ELEMENTS 40

struct activation {
    struct tr_op_activation_forward forward;
    float *dy;
};

static double activation_scalar(void *user)
{
    struct activation *a = user;
    assert_int_equal(ref_activation_forward(NULL, &a->forward), TR_OK);
    return differences_weigh(ELEMENTS, a->forward.y, a->dy);
}

void gradients_activation(void)
{
    /* differences_numbers() keeps away from 0, where relu has no derivative */
    float *x = differences_numbers(ELEMENTS, 1), *dy = differences_numbers(ELEMENTS, 2);
    float *y = differences_zeros(ELEMENTS), *dx = differences_zeros(ELEMENTS);
    for (int kind = TR_ACT_NONE; kind < TR_ACTIVATIONS; kind++) {
        struct activation a = {
            {.count = ELEMENTS, .x = x, .y = y, .activation = (enum tr_activation)kind, .slope = 0.3f}, dy};
        activation_scalar(&a);
        struct tr_op_activation_backward backward = {.count = ELEMENTS,
                                                     .x = x,
                                                     .y = y,
                                                     .dy = dy,
                                                     .dx = dx,
                                                     .activation = (enum tr_activation)kind,
                                                     .slope = 0.3f};
        assert_int_equal(ref_activation_backward(NULL, &backward), TR_OK);
        char what[40];
        snprintf(what, sizeof what, "activation %d", kind);
        differences_check(what, activation_scalar, &a, DIFFERENCES_SMOOTH, x, dx, 0, ELEMENTS);
    }
    differences_release(4, (float *[]){x, dy, y, dx});
}

#define PIXELS 5
#define PLANES 4

struct multiply {
    struct tr_op_multiply forward;
    float *dy;
};

static double multiply_scalar(void *user)
{
    struct multiply *m = user;
    assert_int_equal(ref_multiply(NULL, &m->forward), TR_OK);
    return differences_weigh(2 * PIXELS * PLANES, m->forward.y, m->dy);
}

/* Carried back to a by multiply itself, to b by multiply_sum. */
void gradients_multiply(void)
{
    float *a = differences_numbers(ELEMENTS, 1), *b = differences_numbers(2 * PLANES, 2);
    float *dy = differences_numbers(ELEMENTS, 3), *y = differences_zeros(ELEMENTS);
    float *da = differences_zeros(ELEMENTS), *db = differences_zeros(2 * PLANES);
    struct multiply m = {{2, PIXELS, PLANES, a, b, y}, dy};
    const struct tr_op_multiply to_a = {2, PIXELS, PLANES, dy, b, da};
    const struct tr_op_multiply_sum to_b = {2, PIXELS, PLANES, dy, a, db};
    assert_int_equal(ref_multiply(NULL, &to_a), TR_OK);
    assert_int_equal(ref_multiply_sum(NULL, &to_b), TR_OK);
    differences_check("multiply, a", multiply_scalar, &m, DIFFERENCES_LINEAR, a, da, 0, ELEMENTS);
    differences_check("multiply, b", multiply_scalar, &m, DIFFERENCES_LINEAR, b, db, 0, 2 * PLANES);
    differences_release(6, (float *[]){a, b, dy, y, da, db});
}

struct dropout {
    struct tr_op_dropout forward;
    float *dy;
};

static double dropout_scalar(void *user)
{
    struct dropout *d = user;
    assert_int_equal(ref_dropout(NULL, &d->forward), TR_OK);
    return differences_weigh(ELEMENTS, d->forward.y, d->dy);
}

void gradients_dropout(void)
{
    struct tr_step_scalars scalars = {.step = 3};
    float *x = differences_numbers(ELEMENTS, 1), *dy = differences_numbers(ELEMENTS, 2);
    float *y = differences_zeros(ELEMENTS), *dx = differences_zeros(ELEMENTS);
    struct dropout d = {
        {.examples = 4, .width = ELEMENTS / 4, .x = x, .y = y, .rate = 0.4f, .scalars = &scalars}, dy};
    struct tr_op_dropout backward = d.forward;
    backward.x = dy;
    backward.y = dx;
    assert_int_equal(ref_dropout(NULL, &backward), TR_OK);
    differences_check("dropout", dropout_scalar, &d, DIFFERENCES_LINEAR, x, dx, 0, ELEMENTS);
    differences_release(4, (float *[]){x, dy, y, dx});
}

struct drop_examples {
    struct tr_op_drop_examples forward;
    float *dy;
};

static double drop_examples_scalar(void *user)
{
    struct drop_examples *d = user;
    assert_int_equal(ref_drop_examples(NULL, &d->forward), TR_OK);
    return differences_weigh(ELEMENTS, d->forward.y, d->dy);
}

void gradients_drop_examples(void)
{
    struct tr_step_scalars scalars = {.step = 3};
    float *x = differences_numbers(ELEMENTS, 1), *dy = differences_numbers(ELEMENTS, 2);
    float *y = differences_zeros(ELEMENTS), *dx = differences_zeros(ELEMENTS);
    struct drop_examples d = {
        {.examples = 8, .width = ELEMENTS / 8, .x = x, .y = y, .rate = 0.4f, .scalars = &scalars}, dy};
    struct tr_op_drop_examples backward = d.forward;
    backward.x = dy;
    backward.y = dx;
    assert_int_equal(ref_drop_examples(NULL, &backward), TR_OK);
    int64_t kept = 0;
    for (int64_t i = 0; i < ELEMENTS; i++) kept += dx[i] != 0;
    assert_true(kept > 0 && kept < ELEMENTS && kept % (ELEMENTS / 8) == 0);
    differences_check("drop_examples", drop_examples_scalar, &d, DIFFERENCES_LINEAR, x, dx, 0, ELEMENTS);
    differences_release(4, (float *[]){x, dy, y, dx});
}

/* ---- pools ---- */

struct pool {
    struct tr_op_activation_forward relu; /* in front of the pool when its count is not 0 */
    struct tr_op_pool_forward forward;
    float *dy;
    int64_t outputs;
};

static double pool_scalar(void *user)
{
    struct pool *p = user;
    if (p->relu.count > 0) assert_int_equal(ref_activation_forward(NULL, &p->relu), TR_OK);
    assert_int_equal(ref_pool_forward(NULL, &p->forward), TR_OK);
    return differences_weigh(p->outputs, p->forward.y, p->dy);
}

static void check_pool_window(const struct named_window *named, enum tr_pool kind, bool relu,
                              bool count_border)
{
    enum { POOL_ROWS = 2, CHANNELS = 3 };
    const struct tr_sliding_window *window = &named->window;
    int64_t inputs = (int64_t)POOL_ROWS * window->in_h * window->in_w * CHANNELS;
    int64_t outputs = (int64_t)POOL_ROWS * window->out_h * window->out_w * CHANNELS;
    float *x = differences_numbers(inputs, 1), *activated = differences_zeros(inputs);
    float *dy = differences_numbers(outputs, 4), *y = differences_zeros(outputs);
    float *dx = differences_zeros(inputs);
    uint8_t *taken = tr_alloc((size_t)outputs, 1);
    /* For a maximum all different, 0.25 apart and as far from 0: no step changes which one is greatest. 7919
       is prime and divides no count here, so this is a permutation. */
    for (int64_t i = 0; i < inputs && kind == TR_POOL_MAX; i++)
        x[i] = 0.25f * (float)(i * 7919 % inputs - inputs / 2) + (relu ? 0.125f : 0);
    struct pool p = {.forward = {.rows = POOL_ROWS,
                                 .channels = CHANNELS,
                                 .window = *window,
                                 .kind = kind,
                                 .x = relu ? activated : x,
                                 .y = y,
                                 .taken = kind == TR_POOL_MAX ? taken : NULL,
                                 .count_border = count_border},
                     .dy = dy,
                     .outputs = outputs};
    if (relu)
        p.relu = (struct tr_op_activation_forward){
            .count = inputs, .x = x, .y = activated, .activation = TR_ACT_RELU};
    pool_scalar(&p);
    struct tr_op_pool_backward backward = {.rows = POOL_ROWS,
                                           .channels = CHANNELS,
                                           .window = *window,
                                           .kind = kind,
                                           .dy = dy,
                                           .taken = p.forward.taken,
                                           .relu_output = relu ? y : NULL,
                                           .dx = dx,
                                           .count_border = count_border};
    assert_int_equal(ref_pool_backward(NULL, &backward), TR_OK);
    char what[100];
    snprintf(what, sizeof what, "%s pool %s%s%s", kind == TR_POOL_MAX ? "max" : "average", named->name,
             relu ? " after relu" : "", count_border ? " with its border" : "");
    differences_check(what, pool_scalar, &p, DIFFERENCES_SMOOTH, x, dx, 0, inputs);
    tr_free(taken);
    differences_release(5, (float *[]){x, activated, dy, y, dx});
}

void gradients_pool(void)
{
    for (int i = 0; i < case_pool_window_count; i++) {
        check_pool_window(&case_windows[i], TR_POOL_AVERAGE, false, false);
        check_pool_window(&case_windows[i], TR_POOL_AVERAGE, false, true);
        check_pool_window(&case_windows[i], TR_POOL_MAX, false, false);
        check_pool_window(&case_windows[i], TR_POOL_MAX, true, false);
    }
}

/* ---- group normalization ---- */

#define GROUPS   2
#define GROUPED  6
#define SPATIAL  3
#define NUMBERS  (GRADIENTS_ROWS * SPATIAL * GROUPED)
#define OF_GROUP (GRADIENTS_ROWS * GROUPS)

struct group_norm {
    struct tr_op_group_norm_forward forward;
    float *dy;
};

static double group_norm_scalar(void *user)
{
    struct group_norm *n = user;
    assert_int_equal(ref_group_norm_forward(NULL, &n->forward), TR_OK);
    return differences_weigh(NUMBERS, n->forward.y, n->dy);
}

void gradients_group_norm(void)
{
    float *x = differences_numbers(NUMBERS, 1), *dy = differences_numbers(NUMBERS, 2);
    float *gamma = differences_numbers(GROUPED, 3), *beta = differences_numbers(GROUPED, 4);
    float *mean = differences_zeros(OF_GROUP), *inv = differences_zeros(OF_GROUP);
    float *y = differences_zeros(NUMBERS), *dx = differences_zeros(NUMBERS);
    float *dgamma = differences_zeros(GROUPED), *dbeta = differences_zeros(GROUPED);
    struct group_norm n = {{.rows = GRADIENTS_ROWS,
                            .spatial = SPATIAL,
                            .channels = GROUPED,
                            .groups = GROUPS,
                            .epsilon = 1e-2f,
                            .x = x,
                            .gamma = gamma,
                            .beta = beta,
                            .y = y,
                            .mean = mean,
                            .inv = inv},
                           dy};
    group_norm_scalar(&n);
    const struct tr_op_group_norm_backward backward = {.spatial = SPATIAL,
                                                       .channels = GROUPED,
                                                       .groups = GROUPS,
                                                       .x = x,
                                                       .gamma = gamma,
                                                       .mean = mean,
                                                       .inv = inv,
                                                       .dy = dy,
                                                       .dx = dx,
                                                       .dgamma = dgamma,
                                                       .dbeta = dbeta,
                                                       .cut = gradients_cut};
    assert_int_equal(ref_group_norm_backward(NULL, &backward), TR_OK);
    differences_check("group norm, x", group_norm_scalar, &n, DIFFERENCES_SMOOTH, x, dx, 0, NUMBERS);
    differences_check("group norm, gamma", group_norm_scalar, &n, DIFFERENCES_SMOOTH, gamma, dgamma, 0,
                      GROUPED);
    differences_check("group norm, beta", group_norm_scalar, &n, DIFFERENCES_SMOOTH, beta, dbeta, 0, GROUPED);
    differences_release(10, (float *[]){x, dy, gamma, beta, mean, inv, y, dx, dgamma, dbeta});
}
