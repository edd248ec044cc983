#include "layers.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

float *numbers(int64_t count)
{
    float *x = tr_alloc_aligned((size_t)count, sizeof *x);
    if (!x) {
        fprintf(stderr, "bench: %s\n", tr_error_message());
        exit(1);
    }
    for (int64_t i = 0; i < count; i++) x[i] = (float)(i * 7919 % 1021 - 510) / 512.0f;
    return x;
}

struct tr_cut layer_cut(int rows, int microbatches, int64_t *row, int32_t bound[2])
{
    for (int i = 0; i <= microbatches; i++) row[i] = (int64_t)rows * i / microbatches;
    bound[0] = 0;
    bound[1] = microbatches;
    return (struct tr_cut){.count = microbatches, .row = row, .nodes = 1, .bound = bound};
}

void layer_open_dense(struct layer *layer, tr_device *device, const struct dense_shape *s)
{
    const int64_t rows = s->rows, in = s->in, out = s->out;
    float *x = numbers(rows * in), *y = numbers(rows * out), *w = numbers(in * out), *b = numbers(out);
    float *dx = numbers(rows * in), *dw = numbers(in * out), *db = numbers(out);
    *layer = (struct layer){.device = device,
                            .flops = 2.0 * s->rows * s->in * s->out,
                            .dense_forward = {rows, in, out, x, w, b, y, TR_ACT_RELU, 0.0f},
                            .dense_data = {rows, in, out, y, w, dx},
                            .memory = {x, y, w, b, dx, dw, db}};
    layer->dense_weights = (struct tr_op_dense_backward_weights){
        in, out, x, y, dw, db, layer_cut(s->rows, s->microbatches, layer->row, layer->bound)};
    snprintf(layer->name, sizeof layer->name, "dense %dx%dx%d, %d microbatches", s->rows, s->in, s->out,
             s->microbatches);
}

void layer_open_conv(struct layer *layer, tr_device *device, const struct conv_shape *s, bool winograd)
{
    const int stride = s->stride;
    const struct tr_sliding_window window = {s->in,  s->in,  s->out, s->out, s->kernel, s->kernel,
                                             stride, stride, 1,      1,      s->pad,    s->pad};
    const int64_t inputs = (int64_t)s->rows * s->in * s->in * s->in_c;
    const int64_t outputs = (int64_t)s->rows * s->out * s->out * s->out_c;
    const int64_t weights = (int64_t)s->kernel * s->kernel * s->in_c * s->out_c;
    float *x = numbers(inputs), *y = numbers(outputs), *w = numbers(weights), *b = numbers(s->out_c);
    float *dx = numbers(inputs), *dw = numbers(weights), *db = numbers(s->out_c);
    double taps = 0.0; /* along one axis */
    for (int o = 0; o < s->out; o++)
        for (int k = 0; k < s->kernel; k++)
            taps += o * stride + k - s->pad >= 0 && o * stride + k - s->pad < s->in;
    *layer =
        (struct layer){.device = device,
                       .flops = 2.0 * s->rows * taps * taps * s->in_c * s->out_c,
                       .convolution = true,
                       .winograd = winograd,
                       .conv_forward = {s->rows, s->in_c, s->out_c, window, x, w, b, y, TR_ACT_RELU, 0.0f},
                       .conv_data = {s->rows, s->in_c, s->out_c, window, y, w, dx},
                       .memory = {x, y, w, b, dx, dw, db}};
    layer->conv_weights = (struct tr_op_conv_backward_weights){
        s->in_c, s->out_c, window, x,
        y,       dw,       db,     layer_cut(s->rows, s->microbatches, layer->row, layer->bound)};
    char by[16] = "";
    if (stride > 1) snprintf(by, sizeof by, " by %d", stride);
    snprintf(layer->name, sizeof layer->name, "%s %dx%d%s %d->%d on %d, batch %d",
             winograd ? "winograd" : "conv", s->kernel, s->kernel, by, s->in_c, s->out_c, s->in, s->rows);
}

void layer_close(struct layer *layer)
{
    for (size_t i = 0; i < sizeof layer->memory / sizeof layer->memory[0]; i++) tr_free(layer->memory[i]);
}

static tr_status run_conv(const struct layer *c, bool by_winograd)
{
    const struct tr_op_winograd_forward forward = {c->conv_forward};
    const struct tr_op_winograd_backward_data data = {c->conv_data};
    const struct tr_op_winograd_backward_weights weights = {c->conv_weights};
    switch (c->pass) {
    case PASS_FORWARD:
        return by_winograd ? tr_device_winograd_forward(c->device, &forward)
                           : tr_device_conv_forward(c->device, &forward.conv);
    case PASS_DATA:
        return by_winograd ? tr_device_winograd_backward_data(c->device, &data)
                           : tr_device_conv_backward_data(c->device, &data.conv);
    default:
        return by_winograd ? tr_device_winograd_backward_weights(c->device, &weights)
                           : tr_device_conv_backward_weights(c->device, &weights.conv);
    }
}

static tr_status run_dense(const struct layer *c)
{
    switch (c->pass) {
    case PASS_FORWARD:
        return tr_device_dense_forward(c->device, &c->dense_forward);
    case PASS_DATA:
        return tr_device_dense_backward_data(c->device, &c->dense_data);
    default:
        return tr_device_dense_backward_weights(c->device, &c->dense_weights);
    }
}

static void demand(tr_status status)
{
    if (status == TR_OK) return;
    fprintf(stderr, "bench: %s\n", tr_error_message());
    exit(1);
}

static void run_chosen(void *arguments)
{
    const struct layer *layer = arguments;
    demand(layer->convolution ? run_conv(layer, layer->winograd) : run_dense(layer));
}

static void run_direct(void *arguments)
{
    demand(run_conv(arguments, false));
}

void layer_run(struct layer *layer, enum pass pass)
{
    layer->pass = pass;
    run_chosen(layer);
}

double layer_time(struct layer *layer, enum pass pass)
{
    layer->pass = pass;
    return fastest(run_chosen, layer);
}

double layer_direct_time(struct layer *layer, enum pass pass)
{
    layer->pass = pass;
    return fastest(run_direct, layer);
}
