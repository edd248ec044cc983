/* Measures the matrix kernels: per shape and pass GFLOP/s, percent of the FMA peak, and the ratio to OpenBLAS
 * (dense), oneDNN (convolution) or the direct algorithm (convolution by Winograd's) in the same run. Figures
 * of different runs or machines do not compare.
 *
 *   bench_kernels [isa [threads [kind]]]       kind: dense, conv, winograd, lstm, attention; else all
 *
 * Flops are the useful ones: taps outside the image are not counted. Those of Winograd's algorithm are the
 * direct one's, so that it may pass the peak.
 */
#include "kernels.h"
#include "layers.h"

#include "base/alloc.h"
#include "base/threads/team.h"
#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const pass_names[PASSES + 1] = {"forward", "backward data", "backward weights", "all"};

static const struct dense_shape dense_shapes[] = {
    {8192, 2304, 512, 1}, {8192, 2304, 512, 8}, {50, 3136, 1024, 2}, {100, 784, 500, 4},
    {128, 8192, 2048, 4}, {128, 2048, 1024, 4}, {768, 128, 128, 1},  {768, 128, 384, 1},
    {768, 128, 512, 1},   {768, 512, 128, 1},   {768, 128, 66, 1},   {4096, 384, 1536, 1},
    {4096, 1536, 384, 1},
};

static const struct conv_shape conv_shapes[] = {
    {128, 256, 512, 10, 8, 3, 0, 4, 1},
    {128, 64, 256, 12, 10, 3, 0, 4, 1},
    {128, 1, 64, 28, 24, 5, 0, 4, 1},
    {50, 32, 64, 14, 14, 5, 2, 2, 1},
    {50, 1, 32, 28, 28, 5, 2, 2, 1},
    {8, 64, 256, 24, 24, 1, 0, 2, 1},
    {8, 256, 64, 24, 24, 1, 0, 2, 1},
    {8, 512, 128, 12, 12, 1, 0, 2, 1},
    {8, 1024, 256, 6, 6, 1, 0, 2, 1},
    {8, 512, 2048, 3, 3, 1, 0, 2, 1},
    /* of residual networks: halving the image */
    {8, 256, 512, 24, 12, 1, 0, 2, 2},
    {8, 1024, 2048, 6, 3, 1, 0, 2, 2},
    {128, 16, 32, 32, 16, 1, 0, 4, 2},
    {8, 128, 128, 24, 12, 3, 1, 2, 2},
    {8, 512, 512, 6, 3, 3, 1, 2, 2},
    {128, 16, 32, 32, 16, 3, 1, 4, 2},
    {8, 3, 64, 96, 48, 7, 3, 2, 2},
};

/* Also by Winograd's algorithm: such layers of the shipped models, and residual networks. */
static const struct conv_shape winograd_shapes[] = {
    {128, 256, 512, 10, 8, 3, 0, 4, 1}, {128, 64, 256, 12, 10, 3, 0, 4, 1}, {64, 32, 32, 12, 10, 3, 0, 4, 1},
    {128, 16, 16, 32, 32, 3, 1, 4, 1},  {128, 32, 32, 16, 16, 3, 1, 4, 1},  {128, 64, 64, 8, 8, 3, 1, 4, 1},
    {50, 32, 64, 14, 14, 5, 2, 2, 1},   {128, 16, 16, 32, 32, 5, 2, 4, 1},
};

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

static void measure(tr_device *device, struct layer *layer, double peak, const struct dense_shape *dense,
                    const struct conv_shape *conv)
{
    for (enum pass pass = 0; pass < PASSES; pass++) {
        double other = 0.0;
        const double time = layer_time(layer, pass);
        bool compared = layer->winograd;
        if (dense)
            compared = openblas_dense(dense, pass, device->threads, &other);
        else if (layer->winograd)
            other = layer_direct_time(layer, pass);
        else
            compared = onednn_conv(conv, pass, device->threads, &other);
        report(layer->name, pass, layer->flops, time, peak, compared, other);
    }
    layer_close(layer);
}

static void measure_dense(tr_device *device, const struct dense_shape *s, double peak)
{
    struct layer layer;
    layer_open_dense(&layer, device, s);
    measure(device, &layer, peak, s, NULL);
}

static void measure_conv(tr_device *device, const struct conv_shape *s, bool winograd, double peak)
{
    struct layer layer;
    layer_open_conv(&layer, device, s, winograd);
    measure(device, &layer, peak, NULL, s);
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
        EXAMPLES, HIDDEN, offset, h, dgates, dw, layer_cut(EXAMPLES, 4, row, bound)};
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

/* 1,024 tokens in all, four heads. Flops are those of the products: two for each score and number of a head
   forward, five backward, which computes the scores again; a causal attention has only the scores that it
   uses. */
static void measure_attention(tr_device *device, double peak, int tokens, int size, bool causal)
{
    enum { HEADS = 4, ROWS = 1024 };
    const int64_t width = HEADS * size, examples = ROWS / tokens;
    static int32_t offset[ROWS + 1];
    for (int i = 0; i <= examples; i++) offset[i] = i * tokens;
    float *qkv = numbers(ROWS * 3 * width), *y = numbers(ROWS * width), *dy = numbers(ROWS * width);
    float *gradient = numbers(ROWS * 3 * width), *statistics = numbers(ROWS * 2 * HEADS);
    const struct tr_attention at = {.examples = examples,
                                    .kv_heads = HEADS,
                                    .heads = HEADS,
                                    .size = size,
                                    .causal = causal,
                                    .scale = 0.1f,
                                    .offset = offset,
                                    .key_offset = offset,
                                    .q = qkv,
                                    .k = qkv + width,
                                    .v = qkv + 2 * width,
                                    .q_step = 3 * width,
                                    .kv_step = 3 * width,
                                    .shift = statistics,
                                    .inv = statistics + ROWS * HEADS};
    const struct tr_op_attention_forward forward = {at, y};
    const struct tr_op_attention_backward backward = {
        at, y, dy, gradient, gradient + width, gradient + 2 * width, 3 * width};
    const double scores = (causal ? 0.5 * (tokens + 1) : tokens) * ROWS * HEADS;
    double time[2] = {1e30, 1e30}, end = seconds() + 0.5;
    for (int i = 0; i < 5 || seconds() < end; i++) {
        double t0 = seconds();
        tr_device_attention_forward(device, &forward);
        double t1 = seconds();
        tr_device_attention_backward(device, &backward);
        double t2 = seconds();
        if (t1 - t0 < time[0]) time[0] = t1 - t0;
        if (t2 - t1 < time[1]) time[1] = t2 - t1;
    }
    char shape[64];
    snprintf(shape, sizeof shape, "attention %d tokens, head %d%s", tokens, size, causal ? ", causal" : "");
    report(shape, PASS_FORWARD, 2 * 2.0 * scores * size, time[0], peak, false, 0.0);
    report(shape, PASS_DATA, 5 * 2.0 * scores * size, time[1], peak, false, 0.0);
    report(shape, PASSES, 7 * 2.0 * scores * size, time[0] + time[1], peak, false, 0.0);
    float *all[] = {qkv, y, dy, gradient, statistics};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) tr_free(all[i]);
}

static bool is_wanted(const char *kind, const char *this)
{
    return !*kind || !strcmp(kind, this);
}

int main(int count, char **arguments)
{
    const char *isa = count > 1 ? arguments[1] : "";
    const int most = count > 2 ? atoi(arguments[2]) : 2;
    const char *kind = count > 3 ? arguments[3] : "";
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
        for (size_t i = 0; is_wanted(kind, "dense") && i < sizeof dense_shapes / sizeof dense_shapes[0]; i++)
            measure_dense(device, &dense_shapes[i], peak);
        for (size_t i = 0; is_wanted(kind, "conv") && i < sizeof conv_shapes / sizeof conv_shapes[0]; i++)
            measure_conv(device, &conv_shapes[i], false, peak);
        for (size_t i = 0;
             is_wanted(kind, "winograd") && i < sizeof winograd_shapes / sizeof winograd_shapes[0]; i++)
            measure_conv(device, &winograd_shapes[i], true, peak);
        if (is_wanted(kind, "lstm")) measure_lstm(device, peak);
        for (int tokens = 64; is_wanted(kind, "attention") && tokens <= 1024; tokens *= 4)
            for (int size = 32; size <= 64; size *= 2)
                for (int causal = 0; causal < 2; causal++)
                    measure_attention(device, peak, tokens, size, causal);
        tr_device_destroy(&device);
    }
    return 0;
}
