/* How far convolutions by Winograd's algorithm are from exact results, forward and in both gradients: on the
 * shapes of the models that ship at most 2.5 times as far as direct ones in the root mean square, and 3 times
 * in the largest error. Where sums are shorter, direct ones have fewer roundings, and those of the transforms
 * weigh more: 3 and 4 times.
 */
#include "device/device.h"

#include "base/numbers/rng.h"
#include "device/differences.h"
#include "device/winograd.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include <string.h>

static const struct shape {
    const char *name;
    double rms, max; /* at most */
    int32_t rows, in_c, out_c, in_h, in_w, taps, pad;
} shapes[] = {
    {"mnist-cnn-wide, conv2", 2.5, 3.0, 2, 64, 256, 12, 12, 3, 0},
    {"mnist-cnn-wide, conv3", 2.5, 3.0, 2, 256, 512, 10, 10, 3, 0},
    {"mnist-quick, conv2", 2.5, 3.0, 8, 32, 32, 12, 12, 3, 0},
    {"residual network, 32x32", 3.0, 4.0, 2, 16, 16, 32, 32, 3, 1},
    {"residual network, 16x16", 3.0, 4.0, 4, 32, 32, 16, 16, 3, 1},
    {"residual network, 8x8", 3.0, 4.0, 4, 64, 64, 8, 8, 3, 1},
    {"tiles of two and three outputs", 3.0, 4.0, 8, 24, 40, 5, 9, 3, 1},
    {"mnist-cnn, conv2", 5.0, 7.0, 8, 32, 64, 14, 14, 5, 2},
    {"5x5, tiles of one output", 5.0, 7.0, 8, 24, 40, 7, 9, 5, 2},
};

static tr_device *device;

static int make_device(void **state)
{
    (void)state;
    return tr_device_create("cpu", 1, NULL, &device) == TR_OK ? 0 : -1;
}

static int destroy_device(void **state)
{
    (void)state;
    tr_device_destroy(&device);
    return 0;
}

/* Normal numbers; the negative ones are zero where they come out of a relu. */
static float *normal(int64_t count, double deviation, bool relu, uint32_t stream)
{
    float *numbers = differences_zeros(count);
    for (int64_t i = 0; i < count; i++) {
        uint32_t words[4];
        tr_rng_philox((tr_rng_key){stream, 7}, (uint32_t)i, 0, 0, 0, words);
        const double u = ((double)words[0] + 1.0) * 0x1p-32, turn = (double)words[1] * 0x1p-32;
        const double x = deviation * sqrt(-2.0 * log(u)) * cos(6.283185307179586 * turn);
        numbers[i] = relu && x < 0 ? 0.0f : (float)x;
    }
    return numbers;
}

static double *zeros(int64_t count)
{
    return (double *)differences_zeros(2 * count);
}

/* All three results in double precision. */
static void exact(const struct shape *s, const struct tr_sliding_window *w, const float *x, const float *k,
                  const float *dy, double *y, double *dx, double *dw)
{
    for (int32_t n = 0; n < s->rows; n++)
        for (int32_t oh = 0; oh < w->out_h; oh++)
            for (int32_t ow = 0; ow < w->out_w; ow++)
                for (int32_t tap = 0; tap < s->taps * s->taps; tap++) {
                    const int32_t ih = oh + tap / s->taps - s->pad, iw = ow + tap % s->taps - s->pad;
                    if (ih < 0 || ih >= s->in_h || iw < 0 || iw >= s->in_w) continue;
                    const int64_t out = (((int64_t)n * w->out_h + oh) * w->out_w + ow) * s->out_c;
                    const int64_t in = (((int64_t)n * s->in_h + ih) * s->in_w + iw) * s->in_c;
                    for (int32_t c = 0; c < s->in_c; c++) {
                        const int64_t pair = ((int64_t)tap * s->in_c + c) * s->out_c;
                        double sum = 0.0;
                        for (int32_t o = 0; o < s->out_c; o++) {
                            y[out + o] += (double)x[in + c] * (double)k[pair + o];
                            sum += (double)dy[out + o] * (double)k[pair + o];
                            dw[pair + o] += (double)x[in + c] * (double)dy[out + o];
                        }
                        dx[in + c] += sum;
                    }
                }
}

struct error {
    double rms, max;
};

static struct error error_of(int64_t count, const float *got, const double *expected)
{
    struct error error = {0};
    for (int64_t i = 0; i < count; i++) {
        const double e = fabs((double)got[i] - expected[i]);
        error.rms += e * e;
        error.max = e > error.max ? e : error.max;
    }
    error.rms = sqrt(error.rms / (double)count);
    return error;
}

static void compare(const struct shape *shape, const char *what, int64_t count, const float *direct,
                    const float *winograd, const double *expected)
{
    const struct error a = error_of(count, direct, expected), b = error_of(count, winograd, expected);
    printf("[  NOTE    ] %s, %s: %.2f times in the root mean square, %.2f times at most\n", shape->name, what,
           b.rms / a.rms, b.max / a.max);
    assert_true(a.rms > 0.0);
    assert_memory_not_equal(direct, winograd, (size_t)count * sizeof *direct);
    if (!(b.rms <= shape->rms * a.rms && b.max <= shape->max * a.max))
        fail_msg("%s, %s: errors of %.3g in the root mean square and %.3g at most, direct %.3g and %.3g",
                 shape->name, what, b.rms, b.max, a.rms, a.max);
}

static void check_shape(const struct shape *s)
{
    const int32_t less = s->taps - 1 - 2 * s->pad, kernel = s->taps * s->taps;
    const struct tr_sliding_window window = {.in_h = s->in_h,
                                             .in_w = s->in_w,
                                             .out_h = s->in_h - less,
                                             .out_w = s->in_w - less,
                                             .kernel_h = s->taps,
                                             .kernel_w = s->taps,
                                             .stride_h = 1,
                                             .stride_w = 1,
                                             .dilation_h = 1,
                                             .dilation_w = 1,
                                             .pad_top = s->pad,
                                             .pad_left = s->pad};
    const int64_t xn = (int64_t)s->rows * s->in_h * s->in_w * s->in_c;
    const int64_t yn = (int64_t)s->rows * window.out_h * window.out_w * s->out_c;
    const int64_t wn = (int64_t)kernel * s->in_c * s->out_c;
    float *x = normal(xn, 1.0, true, 1), *w = normal(wn, sqrt(2.0 / (kernel * s->in_c)), false, 2);
    float *dy = normal(yn, 1.0, false, 3);
    float *y[2], *dx[2], *dw[2];
    const int64_t row[] = {0, s->rows};
    const int32_t bound[] = {0, 1};
    assert_true(tr_winograd_suits(&window));
    for (int i = 0; i < 2; i++) {
        y[i] = differences_zeros(yn);
        dx[i] = differences_zeros(xn);
        dw[i] = differences_zeros(wn);
        const struct tr_op_winograd_forward forward = {{.rows = s->rows,
                                                        .in_c = s->in_c,
                                                        .out_c = s->out_c,
                                                        .window = window,
                                                        .x = x,
                                                        .w = w,
                                                        .y = y[i]}};
        const struct tr_op_winograd_backward_data data = {{.rows = s->rows,
                                                           .in_c = s->in_c,
                                                           .out_c = s->out_c,
                                                           .window = window,
                                                           .dy = dy,
                                                           .w = w,
                                                           .dx = dx[i]}};
        const struct tr_op_winograd_backward_weights weights = {
            {.in_c = s->in_c,
             .out_c = s->out_c,
             .window = window,
             .x = x,
             .dy = dy,
             .dw = dw[i],
             .cut = {.count = 1, .row = row, .nodes = 1, .bound = bound}}};
        assert_int_equal(i ? tr_device_winograd_forward(device, &forward)
                           : tr_device_conv_forward(device, &forward.conv),
                         TR_OK);
        assert_int_equal(i ? tr_device_winograd_backward_data(device, &data)
                           : tr_device_conv_backward_data(device, &data.conv),
                         TR_OK);
        assert_int_equal(i ? tr_device_winograd_backward_weights(device, &weights)
                           : tr_device_conv_backward_weights(device, &weights.conv),
                         TR_OK);
    }
    double *exact_y = zeros(yn), *exact_dx = zeros(xn), *exact_dw = zeros(wn);
    exact(s, &window, x, w, dy, exact_y, exact_dx, exact_dw);
    compare(s, "outputs", yn, y[0], y[1], exact_y);
    compare(s, "gradient of the inputs", xn, dx[0], dx[1], exact_dx);
    compare(s, "gradient of the weights", wn, dw[0], dw[1], exact_dw);
    differences_release(12, (float *[]){x, w, dy, y[0], y[1], dx[0], dx[1], dw[0], dw[1], (float *)exact_y,
                                        (float *)exact_dx, (float *)exact_dw});
}

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check_shape(&shapes[i]);
}

/* The tiles of an axis lie behind each other, and each has as many points as the inputs that it reads. */
static void test_tiles(void **state)
{
    (void)state;
    for (int32_t n = 2 * TR_WINOGRAD_LEAST; n < 120; n++) {
        const int32_t taps = n % 2 ? 3 : 5, outputs = n / 2;
        int32_t next = 0;
        for (int32_t i = 0; i < tr_winograd_tiles(taps, outputs); i++) {
            const struct tr_winograd_tile tile = tr_winograd_tile(taps, outputs, i);
            int points = 0;
            for (int k = 0; k < TR_WINOGRAD_POINTS; k++) points += tr_winograd_has(tile.points, k);
            assert_int_equal(tile.first, next);
            assert_in_range(tile.outputs, taps == 3 ? 2 : 1, taps == 3 ? 4 : 2);
            assert_int_equal(tile.points, tile.outputs + taps - 1);
            assert_int_equal(points, tile.points);
            next += tile.outputs;
        }
        assert_int_equal(next, outputs);
    }
}

static void test_what_suits(void **state)
{
    (void)state;
    static const struct {
        struct tr_sliding_window window;
        bool suits;
    } cases[] = {
        {{8, 8, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1}, true},  {{8, 8, 6, 6, 3, 3, 1, 1, 1, 1, 0, 0}, true},
        {{4, 5, 2, 3, 3, 3, 1, 1, 1, 1, 0, 0}, true},  {{2, 2, 4, 4, 3, 3, 1, 1, 1, 1, 2, 2}, true},
        {{8, 8, 8, 8, 3, 1, 1, 1, 1, 1, 1, 0}, false}, {{8, 8, 8, 8, 5, 5, 1, 1, 1, 1, 2, 2}, true},
        {{8, 8, 4, 4, 3, 3, 2, 2, 1, 1, 1, 1}, false}, {{8, 8, 8, 8, 3, 3, 1, 1, 2, 2, 2, 2}, false},
        {{3, 8, 1, 6, 3, 3, 1, 1, 1, 1, 0, 0}, false}, {{8, 8, 11, 8, 3, 3, 1, 1, 1, 1, 3, 1}, false},
        {{8, 8, 4, 4, 5, 5, 2, 2, 1, 1, 2, 2}, false}, {{8, 8, 8, 8, 5, 3, 1, 1, 1, 1, 2, 1}, false},
        {{2, 2, 6, 6, 5, 5, 1, 1, 1, 1, 4, 4}, true},  {{8, 8, 13, 8, 5, 5, 1, 1, 1, 1, 5, 2}, false},
        {{8, 8, 8, 8, 7, 7, 1, 1, 1, 1, 3, 3}, false}, {{5, 8, 1, 8, 5, 5, 1, 1, 1, 1, 0, 2}, false},
        {{8, 9, 5, 8, 3, 3, 1, 1, 1, 1, 0, 1}, false}, {{8, 8, 11, 8, 3, 3, 1, 1, 1, 1, 0, 1}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(tr_winograd_suits(&cases[i].window), cases[i].suits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_what_suits),
    };
    return cmocka_run_group_tests(tests, make_device, destroy_device);
}
