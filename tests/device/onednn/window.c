/* Dense layers, convolutions and pools against oneDNN. */
#include "device/cases/cases.h"
#include "device/differences.h"
#include "device/onednn/judge.h"
#include "device/onednn/onednn.h"
#include "device/ref/ref.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

/* One microbatch, one node. */
static const int32_t whole[] = {0, 1};
#define WHOLE(rows)                                                                                          \
    {                                                                                                        \
        .count = 1, .row = (const int64_t[]){0, rows}, .nodes = 1, .bound = whole                            \
    }

static void check_dense(int64_t rows, int64_t in, int64_t out)
{
    float *x = differences_numbers(rows * in, 1), *w = differences_numbers(in * out, 2);
    float *b = differences_numbers(out, 3), *dy = differences_numbers(rows * out, 4);
    float *y = differences_zeros(rows * out), *dx = differences_zeros(rows * in);
    float *dw = differences_zeros(in * out), *db = differences_zeros(out);
    struct tr_op_dense_forward forward = {.rows = rows, .in = in, .out = out, .x = x, .w = w, .b = b, .y = y};
    struct tr_op_dense_backward_data data = {.rows = rows, .in = in, .out = out, .dy = dy, .w = w, .dx = dx};
    struct tr_op_dense_backward_weights weights = {
        .in = in, .out = out, .x = x, .dy = dy, .dw = dw, .db = db, .cut = WHOLE(rows)};
    assert_int_equal(ref_dense_forward(NULL, &forward), TR_OK);
    assert_int_equal(ref_dense_backward_data(NULL, &data), TR_OK);
    assert_int_equal(ref_dense_backward_weights(NULL, &weights), TR_OK);

    float *their_y = differences_zeros(rows * out), *their_dx = differences_zeros(rows * in);
    float *their_dw = differences_zeros(in * out), *their_db = differences_zeros(out);
    onednn_shape xs = judge_shape(2, (dnnl_dim_t[]){rows, in}, dnnl_ab);
    onednn_shape ws = judge_shape(2, (dnnl_dim_t[]){out, in}, dnnl_ba);
    onednn_shape bs = judge_shape(1, (dnnl_dim_t[]){out}, dnnl_a);
    onednn_shape ys = judge_shape(2, (dnnl_dim_t[]){rows, out}, dnnl_ab);
    dnnl_primitive_desc_t hint;
    JUDGE_FORWARD(&hint, inner_product_forward, dnnl_forward_training, xs, ws, bs, ys);
    judge_run(hint, 4,
              (struct judge_argument[]){{DNNL_ARG_SRC, xs, x},
                                        {DNNL_ARG_WEIGHTS, ws, w},
                                        {DNNL_ARG_BIAS, bs, b},
                                        {DNNL_ARG_DST, ys, their_y}},
              NULL);
    dnnl_primitive_desc_t backward_data;
    JUDGE_BACKWARD(&backward_data, hint, inner_product_backward_data, xs, ws, ys);
    judge_run(backward_data, 3,
              (struct judge_argument[]){
                  {DNNL_ARG_DIFF_DST, ys, dy}, {DNNL_ARG_WEIGHTS, ws, w}, {DNNL_ARG_DIFF_SRC, xs, their_dx}},
              NULL);
    dnnl_primitive_desc_t backward_weights;
    JUDGE_BACKWARD(&backward_weights, hint, inner_product_backward_weights, xs, ws, bs, ys);
    judge_run(backward_weights, 4,
              (struct judge_argument[]){{DNNL_ARG_SRC, xs, x},
                                        {DNNL_ARG_DIFF_DST, ys, dy},
                                        {DNNL_ARG_DIFF_WEIGHTS, ws, their_dw},
                                        {DNNL_ARG_DIFF_BIAS, bs, their_db}},
              NULL);
    judge_compare("dense y", rows * out, y, their_y, ONEDNN_TOLERANCE);
    judge_compare("dense dx", rows * in, dx, their_dx, ONEDNN_TOLERANCE);
    judge_compare("dense dw", in * out, dw, their_dw, ONEDNN_TOLERANCE);
    judge_compare("dense db", out, db, their_db, ONEDNN_TOLERANCE);
    JUDGE(dnnl_primitive_desc_destroy(backward_weights));
    JUDGE(dnnl_primitive_desc_destroy(backward_data));
    JUDGE(dnnl_primitive_desc_destroy(hint));
    differences_release(12, (float *[]){x, w, b, dy, y, dx, dw, db, their_y, their_dx, their_dw, their_db});
}

void onednn_dense(void **state)
{
    (void)state;
    check_dense(1, 1, 1);
    check_dense(7, 13, 5);
    check_dense(50, 200, 33);
    check_dense(3, 1000, 17);
}

/* Geometry in oneDNN's terms: it counts dilation from 0, and padding on both sides. */
struct geometry {
    dnnl_dims_t strides, kernel, dilates, before, after;
};

static dnnl_dim_t padding_after(int in, int out, int kernel, int stride, int dilation, int before)
{
    int missing = (out - 1) * stride + (kernel - 1) * dilation + 1 - in - before;
    return missing > 0 ? missing : 0; /* negative where the last pixels are not read */
}

static struct geometry geometry_of(const struct tr_sliding_window *w)
{
    return (struct geometry){
        .strides = {w->stride_h, w->stride_w},
        .kernel = {w->kernel_h, w->kernel_w},
        .dilates = {w->dilation_h - 1, w->dilation_w - 1},
        .before = {w->pad_top, w->pad_left},
        .after = {padding_after(w->in_h, w->out_h, w->kernel_h, w->stride_h, w->dilation_h, w->pad_top),
                  padding_after(w->in_w, w->out_w, w->kernel_w, w->stride_w, w->dilation_w, w->pad_left)}};
}

/* w [kernel_h][kernel_w][in_c][out_c] as [out_c][in_c][kernel_h][kernel_w]: oneDNN 3.7 takes the weights of
   some gradients for that, whatever it was told. */
static float *outputs_first(int64_t taps, int32_t in_c, int32_t out_c, const float *w)
{
    float *out = differences_zeros(taps * in_c * out_c);
    for (int64_t t = 0; t < taps; t++)
        for (int32_t i = 0; i < in_c; i++)
            for (int32_t o = 0; o < out_c; o++)
                out[((int64_t)o * in_c + i) * taps + t] = w[(t * in_c + i) * out_c + o];
    return out;
}

static void check_conv(const struct named_window *named, int64_t rows, int32_t in_c, int32_t out_c)
{
    const struct tr_sliding_window *window = &named->window;
    int64_t xn = rows * window->in_h * window->in_w * in_c, yn = rows * window->out_h * window->out_w * out_c;
    int64_t wn = (int64_t)window->kernel_h * window->kernel_w * in_c * out_c;
    float *x = differences_numbers(xn, 1), *w = differences_numbers(wn, 2);
    float *b = differences_numbers(out_c, 3), *dy = differences_numbers(yn, 4);
    float *y = differences_zeros(yn), *dx = differences_zeros(xn);
    float *dw = differences_zeros(wn), *db = differences_zeros(out_c);
    struct tr_op_conv_forward forward = {
        .rows = rows, .in_c = in_c, .out_c = out_c, .window = *window, .x = x, .w = w, .b = b, .y = y};
    struct tr_op_conv_backward_data data = {
        .rows = rows, .in_c = in_c, .out_c = out_c, .window = *window, .dy = dy, .w = w, .dx = dx};
    struct tr_op_conv_backward_weights weights = {.in_c = in_c,
                                                  .out_c = out_c,
                                                  .window = *window,
                                                  .x = x,
                                                  .dy = dy,
                                                  .dw = dw,
                                                  .db = db,
                                                  .cut = WHOLE(rows)};
    assert_int_equal(ref_conv_forward(NULL, &forward), TR_OK);
    assert_int_equal(ref_conv_backward_data(NULL, &data), TR_OK);
    assert_int_equal(ref_conv_backward_weights(NULL, &weights), TR_OK);

    float *their_y = differences_zeros(yn), *their_dx = differences_zeros(xn);
    float *their_dw = differences_zeros(wn), *their_db = differences_zeros(out_c);
    float *w_turned = outputs_first((int64_t)window->kernel_h * window->kernel_w, in_c, out_c, w);
    struct geometry g = geometry_of(window);
    onednn_shape xs = judge_shape(4, (dnnl_dim_t[]){rows, in_c, window->in_h, window->in_w}, dnnl_nhwc);
    onednn_shape ws =
        judge_shape(4, (dnnl_dim_t[]){out_c, in_c, window->kernel_h, window->kernel_w}, dnnl_hwio);
    onednn_shape ws_turned =
        judge_shape(4, (dnnl_dim_t[]){out_c, in_c, window->kernel_h, window->kernel_w}, dnnl_oihw);
    onednn_shape bs = judge_shape(1, (dnnl_dim_t[]){out_c}, dnnl_a);
    onednn_shape ys = judge_shape(4, (dnnl_dim_t[]){rows, out_c, window->out_h, window->out_w}, dnnl_nhwc);
    dnnl_primitive_desc_t hint;
    JUDGE_FORWARD(&hint, convolution_forward, dnnl_forward_training, dnnl_convolution_direct, xs, ws, bs, ys,
                  g.strides, g.dilates, g.before, g.after);
    judge_run(hint, 4,
              (struct judge_argument[]){{DNNL_ARG_SRC, xs, x},
                                        {DNNL_ARG_WEIGHTS, ws, w},
                                        {DNNL_ARG_BIAS, bs, b},
                                        {DNNL_ARG_DST, ys, their_y}},
              NULL);
    dnnl_primitive_desc_t backward_data;
    JUDGE_BACKWARD(&backward_data, hint, convolution_backward_data, dnnl_convolution_direct, xs, ws_turned,
                   ys, g.strides, g.dilates, g.before, g.after);
    judge_run(backward_data, 3,
              (struct judge_argument[]){{DNNL_ARG_DIFF_DST, ys, dy},
                                        {DNNL_ARG_WEIGHTS, ws_turned, w_turned},
                                        {DNNL_ARG_DIFF_SRC, xs, their_dx}},
              NULL);
    dnnl_primitive_desc_t backward_weights;
    JUDGE_BACKWARD(&backward_weights, hint, convolution_backward_weights, dnnl_convolution_direct, xs, ws, bs,
                   ys, g.strides, g.dilates, g.before, g.after);
    judge_run(backward_weights, 4,
              (struct judge_argument[]){{DNNL_ARG_SRC, xs, x},
                                        {DNNL_ARG_DIFF_DST, ys, dy},
                                        {DNNL_ARG_DIFF_WEIGHTS, ws, their_dw},
                                        {DNNL_ARG_DIFF_BIAS, bs, their_db}},
              NULL);
    char what[100];
    snprintf(what, sizeof what, "%s, channels %d to %d, y", named->name, in_c, out_c);
    judge_compare(what, yn, y, their_y, ONEDNN_TOLERANCE);
    snprintf(what, sizeof what, "%s, channels %d to %d, dx", named->name, in_c, out_c);
    judge_compare(what, xn, dx, their_dx, ONEDNN_TOLERANCE);
    snprintf(what, sizeof what, "%s, channels %d to %d, dw", named->name, in_c, out_c);
    judge_compare(what, wn, dw, their_dw, ONEDNN_TOLERANCE);
    snprintf(what, sizeof what, "%s, channels %d to %d, db", named->name, in_c, out_c);
    judge_compare(what, out_c, db, their_db, ONEDNN_TOLERANCE);
    JUDGE(dnnl_primitive_desc_destroy(backward_weights));
    JUDGE(dnnl_primitive_desc_destroy(backward_data));
    JUDGE(dnnl_primitive_desc_destroy(hint));
    differences_release(
        13, (float *[]){x, w, b, dy, y, dx, dw, db, their_y, their_dx, their_dw, their_db, w_turned});
}

void onednn_conv(void **state)
{
    (void)state;
    for (int i = 0; i < case_window_count; i++) {
        check_conv(&case_windows[i], 2, 3, 5);
        check_conv(&case_windows[i], 3, 16, 17);
        check_conv(&case_windows[i], 1, 1, 32);
    }
}

static void check_pool(const struct named_window *named, enum tr_pool kind, bool count_border)
{
    enum { ROWS = 3, CHANNELS = 5 };
    const struct tr_sliding_window *window = &named->window;
    int64_t xn = (int64_t)ROWS * window->in_h * window->in_w * CHANNELS;
    int64_t yn = (int64_t)ROWS * window->out_h * window->out_w * CHANNELS;
    float *x = differences_numbers(xn, 1), *dy = differences_numbers(yn, 2);
    float *y = differences_zeros(yn), *dx = differences_zeros(xn);
    uint8_t *taken = tr_alloc((size_t)yn, 1);
    struct tr_op_pool_forward forward = {.rows = ROWS,
                                         .channels = CHANNELS,
                                         .window = *window,
                                         .kind = kind,
                                         .x = x,
                                         .y = y,
                                         .taken = kind == TR_POOL_MAX ? taken : NULL,
                                         .count_border = count_border};
    struct tr_op_pool_backward backward = {.rows = ROWS,
                                           .channels = CHANNELS,
                                           .window = *window,
                                           .kind = kind,
                                           .dy = dy,
                                           .taken = forward.taken,
                                           .dx = dx,
                                           .count_border = count_border};
    assert_int_equal(ref_pool_forward(NULL, &forward), TR_OK);
    assert_int_equal(ref_pool_backward(NULL, &backward), TR_OK);

    float *their_y = differences_zeros(yn), *their_dx = differences_zeros(xn);
    dnnl_alg_kind_t algorithm = kind == TR_POOL_MAX ? dnnl_pooling_max
                                : count_border      ? dnnl_pooling_avg_include_padding
                                                    : dnnl_pooling_avg_exclude_padding;
    struct geometry g = geometry_of(window);
    onednn_shape xs = judge_shape(4, (dnnl_dim_t[]){ROWS, CHANNELS, window->in_h, window->in_w}, dnnl_nhwc);
    onednn_shape ys = judge_shape(4, (dnnl_dim_t[]){ROWS, CHANNELS, window->out_h, window->out_w}, dnnl_nhwc);
    dnnl_primitive_desc_t hint;
    JUDGE_FORWARD(&hint, pooling_forward, dnnl_forward_training, algorithm, xs, ys, g.strides, g.kernel,
                  g.dilates, g.before, g.after);
    void *workspace = judge_workspace(hint);
    judge_run(hint, 2, (struct judge_argument[]){{DNNL_ARG_SRC, xs, x}, {DNNL_ARG_DST, ys, their_y}},
              workspace);
    dnnl_primitive_desc_t back;
    JUDGE_BACKWARD(&back, hint, pooling_backward, algorithm, xs, ys, g.strides, g.kernel, g.dilates, g.before,
                   g.after);
    judge_run(back, 2,
              (struct judge_argument[]){{DNNL_ARG_DIFF_DST, ys, dy}, {DNNL_ARG_DIFF_SRC, xs, their_dx}},
              workspace);
    judge_compare(named->name, yn, y, their_y, ONEDNN_TOLERANCE);
    judge_compare(named->name, xn, dx, their_dx, ONEDNN_TOLERANCE);
    tr_free(workspace);
    tr_free(taken);
    JUDGE(dnnl_primitive_desc_destroy(back));
    JUDGE(dnnl_primitive_desc_destroy(hint));
    differences_release(6, (float *[]){x, dy, y, dx, their_y, their_dx});
}

void onednn_max_pool(void **state)
{
    (void)state;
    for (int i = 0; i < case_pool_window_count; i++) check_pool(&case_windows[i], TR_POOL_MAX, false);
}

void onednn_average_pool(void **state)
{
    (void)state;
    for (int i = 0; i < case_pool_window_count; i++)
        for (int border = 0; border < 2; border++) check_pool(&case_windows[i], TR_POOL_AVERAGE, border == 1);
}
