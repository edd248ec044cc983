/* Measures the matrix kernels: per shape and pass GFLOP/s, percent of the FMA peak, and the ratio to OpenBLAS
 * (dense) or oneDNN (convolution) in the same run. Figures of different runs or machines do not compare.
 *
 *   bench_kernels [isa [threads]]
 *
 * Flops are the useful ones: taps outside the image are not counted.
 */
#include "kernels.h"

#include "base/alloc.h"
#include "base/team.h"
#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const pass_names[PASSES] = {"forward", "backward data", "backward weights"};

static const struct dense_shape dense_shapes[] = {
    {8192, 2304, 512, 1}, {8192, 2304, 512, 8}, {50, 3136, 1024, 2},
    {100, 784, 500, 4},   {128, 8192, 2048, 4}, {128, 2048, 1024, 4},
};

static const struct conv_shape conv_shapes[] = {
    {128, 256, 512, 10, 8, 3, 0, 4}, {128, 64, 256, 12, 10, 3, 0, 4}, {128, 1, 64, 28, 24, 5, 0, 4},
    {50, 32, 64, 14, 14, 5, 2, 2},   {50, 1, 32, 28, 28, 5, 2, 2},
};

double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double fastest(void (*function)(void *arguments), void *arguments)
{
    double best = 1e30;
    const double end = seconds() + 0.5;
    for (int i = 0; i < 3 || seconds() < end; i++) {
        const double begin = seconds();
        function(arguments);
        const double time = seconds() - begin;
        if (time < best) best = time;
    }
    return best;
}

/* Small numbers of both signs; the values do not matter as long as none is subnormal. */
static float *numbers(int64_t count)
{
    float *x = tr_alloc_aligned((size_t)count, sizeof *x);
    if (!x) {
        fprintf(stderr, "bench_kernels: %s\n", tr_error_message());
        exit(1);
    }
    for (int64_t i = 0; i < count; i++) x[i] = (float)(i * 7919 % 1021 - 510) / 512.0f;
    return x;
}

/* In 1e9 operations per second. */
static double peak_of(const char *isa, int threads)
{
    tr_device *device;
    if (tr_device_create("cpu", threads, isa, &device) != TR_OK) {
        fprintf(stderr, "bench_kernels: %s\n", tr_error_message());
        exit(1);
    }
    double peak = tr_device_peak(device, 0.3) * 1e-9;
    tr_device_destroy(&device);
    return peak;
}

/* One call of an operation. */
struct call {
    tr_device *device;
    enum pass pass;
    bool convolution;
    struct tr_op_dense_forward dense_forward;
    struct tr_op_dense_backward_data dense_data;
    struct tr_op_dense_backward_weights dense_weights;
    struct tr_op_conv_forward conv_forward;
    struct tr_op_conv_backward_data conv_data;
    struct tr_op_conv_backward_weights conv_weights;
};

static void call(void *arguments)
{
    struct call *c = arguments;
    tr_status status = TR_OK;
    switch (c->pass) {
    case PASS_FORWARD:
        status = c->convolution ? tr_device_conv_forward(c->device, &c->conv_forward)
                                : tr_device_dense_forward(c->device, &c->dense_forward);
        break;
    case PASS_DATA:
        status = c->convolution ? tr_device_conv_backward_data(c->device, &c->conv_data)
                                : tr_device_dense_backward_data(c->device, &c->dense_data);
        break;
    default:
        status = c->convolution ? tr_device_conv_backward_weights(c->device, &c->conv_weights)
                                : tr_device_dense_backward_weights(c->device, &c->dense_weights);
    }
    if (status != TR_OK) {
        fprintf(stderr, "bench_kernels: %s\n", tr_error_message());
        exit(1);
    }
}

static void report(const char *shape, enum pass pass, double flops, double time, double peak, bool compared,
                   double other)
{
    const double rate = flops / time * 1e-9;
    printf("  %-34s %-17s %8.3f ms %8.1f GFLOP/s %5.1f %%", shape, pass_names[pass], time * 1e3, rate,
           100.0 * rate / peak);
    if (compared)
        printf("   peer %8.1f   ratio %5.2f\n", flops / other * 1e-9, other / time);
    else
        printf("   peer        -   ratio     -\n");
    fflush(stdout);
}

/* Even microbatches, one node. */
static struct tr_cut cut_of(int rows, int microbatches, int64_t *row, int32_t bound[2])
{
    for (int i = 0; i <= microbatches; i++) row[i] = (int64_t)rows * i / microbatches;
    bound[0] = 0;
    bound[1] = microbatches;
    return (struct tr_cut){.count = microbatches, .row = row, .nodes = 1, .bound = bound};
}

static void measure_dense(tr_device *device, const struct dense_shape *s, double peak)
{
    int64_t row[65];
    int32_t bound[2];
    const int64_t rows = s->rows, in = s->in, out = s->out;
    float *x = numbers(rows * in), *y = numbers(rows * out), *w = numbers(in * out), *b = numbers(out);
    float *dx = numbers(rows * in), *dw = numbers(in * out), *db = numbers(out);
    struct call c = {.device = device,
                     .dense_forward = {rows, in, out, x, w, b, y, TR_ACT_RELU, 0.0f},
                     .dense_data = {rows, in, out, y, w, dx},
                     .dense_weights = {in, out, x, y, dw, db, cut_of(s->rows, s->microbatches, row, bound)}};
    char shape[64];
    snprintf(shape, sizeof shape, "dense %dx%dx%d, %d microbatches", s->rows, s->in, s->out, s->microbatches);
    for (c.pass = 0; c.pass < PASSES; c.pass++) {
        double other = 0.0;
        const double time = fastest(call, &c);
        const bool compared = openblas_dense(s, c.pass, device->threads, &other);
        report(shape, c.pass, 2.0 * s->rows * s->in * s->out, time, peak, compared, other);
    }
    float *all[] = {x, y, w, b, dx, dw, db};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) tr_free(all[i]);
}

static void measure_conv(tr_device *device, const struct conv_shape *s, double peak)
{
    int64_t row[65];
    int32_t bound[2];
    const struct tr_window window = {s->in, s->in, s->out, s->out, s->kernel, s->kernel,
                                     1,     1,     1,      1,      s->pad,    s->pad};
    const int64_t inputs = (int64_t)s->rows * s->in * s->in * s->in_c;
    const int64_t outputs = (int64_t)s->rows * s->out * s->out * s->out_c;
    const int64_t weights = (int64_t)s->kernel * s->kernel * s->in_c * s->out_c;
    float *x = numbers(inputs), *y = numbers(outputs), *w = numbers(weights), *b = numbers(s->out_c);
    float *dx = numbers(inputs), *dw = numbers(weights), *db = numbers(s->out_c);
    struct call c = {.device = device,
                     .convolution = true,
                     .conv_forward = {s->rows, s->in_c, s->out_c, window, x, w, b, y, TR_ACT_RELU, 0.0f},
                     .conv_data = {s->rows, s->in_c, s->out_c, window, y, w, dx},
                     .conv_weights = {s->in_c, s->out_c, window, x, y, dw, db,
                                      cut_of(s->rows, s->microbatches, row, bound)}};
    double taps = 0.0; /* along one axis */
    for (int o = 0; o < s->out; o++)
        for (int k = 0; k < s->kernel; k++) taps += o + k - s->pad >= 0 && o + k - s->pad < s->in;
    char shape[64];
    snprintf(shape, sizeof shape, "conv %dx%d %d->%d on %d, batch %d", s->kernel, s->kernel, s->in_c,
             s->out_c, s->in, s->rows);
    for (c.pass = 0; c.pass < PASSES; c.pass++) {
        double other = 0.0;
        const double time = fastest(call, &c);
        const bool compared = onednn_conv(s, c.pass, device->threads, &other);
        report(shape, c.pass, 2.0 * s->rows * taps * taps * s->in_c * s->out_c, time, peak, compared, other);
    }
    float *all[] = {x, y, w, b, dx, dw, db};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) tr_free(all[i]);
}

/* 128 sequences of 50 tokens, 128 units: the recurrent part. */
static void measure_lstm(tr_device *device, double peak)
{
    enum { EXAMPLES = 128, TOKENS = 50, HIDDEN = 128 };
    const int64_t rows = EXAMPLES * TOKENS;
    static int32_t offset[EXAMPLES + 1];
    for (int i = 0; i <= EXAMPLES; i++) offset[i] = i * TOKENS;
    float *w = numbers(4 * HIDDEN * HIDDEN), *b = numbers(4 * HIDDEN), *gates = numbers(rows * 4 * HIDDEN);
    float *c = numbers(rows * HIDDEN), *h = numbers(rows * HIDDEN), *dgates = numbers(rows * 4 * HIDDEN);
    float *dw = numbers(4 * HIDDEN * HIDDEN);
    for (int i = 0; i < 4 * HIDDEN * HIDDEN; i++) w[i] *= 0.1f;
    int64_t row[5];
    int32_t bound[2];
    const struct tr_op_lstm_forward forward = {EXAMPLES, HIDDEN, offset, w, b, gates, c, h};
    const struct tr_op_lstm_backward backward = {EXAMPLES, HIDDEN, 0, offset, w, gates, c, h, dgates};
    const struct tr_op_lstm_backward_weights weights = {
        EXAMPLES, HIDDEN, offset, h, dgates, dw, cut_of(EXAMPLES, 4, row, bound)};
    const double flops = 2.0 * EXAMPLES * (TOKENS - 1) * HIDDEN * 4 * HIDDEN;
    double time[PASSES] = {1e30, 1e30, 1e30};
    for (int i = 0; i < 50; i++) {
        double t0 = seconds();
        tr_device_lstm_forward(device, &forward);
        double t1 = seconds();
        tr_device_lstm_backward(device, &backward);
        double t2 = seconds();
        tr_device_lstm_backward_weights(device, &weights);
        double t3 = seconds();
        if (t1 - t0 < time[0]) time[0] = t1 - t0;
        if (t2 - t1 < time[1]) time[1] = t2 - t1;
        if (t3 - t2 < time[2]) time[2] = t3 - t2;
    }
    for (int pass = 0; pass < PASSES; pass++)
        report("lstm 128, 50 tokens, batch 128", pass, flops, time[pass], peak, false, 0.0);
    float *all[] = {w, b, gates, c, h, dgates, dw};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) tr_free(all[i]);
}

int main(int count, char **arguments)
{
    const char *isa = count > 1 ? arguments[1] : "";
    const int most = count > 2 ? atoi(arguments[2]) : 2;
    printf("peers: OpenBLAS %s%s, oneDNN %s\n",
           have_openblas ? "sgemm with kernels for " : "skipped (libopenblas-dev not found)", openblas_core(),
           have_onednn ? "convolution, its own layouts" : "skipped (libdnnl-dev not found)");
    for (int threads = 1; threads <= most; threads++) {
        tr_device *device;
        if (tr_device_create("cpu", threads, isa, &device) != TR_OK) {
            fprintf(stderr, "bench_kernels: %s\n", tr_error_message());
            return 1;
        }
        char name[16] = "";
        sscanf(device->description, "cpu (%15[^,]", name);
        const double peak = peak_of(name, threads);
        printf("%s: FMA peak %.1f GFLOP/s\n", device->description, peak);
        for (size_t i = 0; i < sizeof dense_shapes / sizeof dense_shapes[0]; i++)
            measure_dense(device, &dense_shapes[i], peak);
        for (size_t i = 0; i < sizeof conv_shapes / sizeof conv_shapes[0]; i++)
            measure_conv(device, &conv_shapes[i], peak);
        measure_lstm(device, peak);
        tr_device_destroy(&device);
    }
    return 0;
}
