/* Graphs of ONNX compute what the networks compute: run in plain loops (run.h), they give the outputs of
 * the ref device up to rounding. That ONNX Runtime agrees is shown in tests/interop/test_onnx.py. */
#include "base/alloc.h"
#include "base/fail.h"
#include "export/onnx/file.h"
#include "export/onnx/run.h"
#include "scratch.h"
#include "support/networks.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define EXAMPLES 5

static struct onnx_run run;

/* Texts, padded to the longest with a word that nothing may look at. */
static void give_tokens(const struct trial *trial)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < EXAMPLES; i++) {
        const int64_t length = trial->offset[i + 1] - trial->offset[i];
        if (length > longest) longest = length;
    }
    longest += 2;
    double *tokens = onnx_give(&run, "tokens", 2, (const int64_t[]){EXAMPLES, longest}),
           *lengths = onnx_give(&run, "lengths", 1, (const int64_t[]){EXAMPLES});
    for (int64_t i = 0; i < EXAMPLES; i++) {
        const int32_t first = trial->offset[i], length = trial->offset[i + 1] - first;
        lengths[i] = length;
        for (int64_t t = 0; t < longest; t++)
            tokens[i * longest + t] = t < length ? trial->token[first + t] : 1;
    }
}

/* Images with channels last become such with channels first. */
static void give_numbers(const struct trial *trial)
{
    const struct tr_shape *shape = &trial->model->input;
    const int64_t *size = shape->size, width = tr_shape_count(shape);
    double *x = shape->rank == 3
                    ? onnx_give(&run, "input", 4, (const int64_t[]){EXAMPLES, size[2], size[0], size[1]})
                    : onnx_give(&run, "input", 2, (const int64_t[]){EXAMPLES, width});
    for (int64_t i = 0; i < EXAMPLES * width; i++) {
        const int64_t k = i % width, channels = shape->rank == 3 ? size[2] : 1, pixels = width / channels;
        x[i - k + (shape->rank == 3 ? k % channels * pixels + k / channels : k)] = (double)trial->input[i];
    }
}

/* The place of output `k` of a row of the network's output: of an example, or of a token. */
static int64_t place_of(const struct trial *trial, const struct onnx_value *y, int64_t row, int64_t k)
{
    const struct tr_shape *out = &trial->model->output;
    const int64_t width = tr_shape_count(out);
    if (out->sequence) { /* [batch, time, width] */
        int64_t example = 0;
        while (trial->offset[example + 1] <= row) example++;
        return (example * y->size[1] + row - trial->offset[example]) * width + k;
    }
    if (y->rank != 4) return row * width + k;
    const int64_t channels = out->size[2], pixels = width / channels;
    return row * width + k % channels * pixels + k / channels;
}

static void expect_near(const char *network, const char *what, double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-4 * fmax(1, fabs(expected))))
        fail_msg("%s: %s: %.9g instead of %.9g", network, what, got, expected);
}

/* What people get: the softmax of the scores of an example, a token or a pixel, or each one's sigmoid. */
static void expect_probabilities(const char *network, const struct trial *trial, const float *scores)
{
    const struct onnx_value *y = onnx_find(&run, "probabilities");
    const struct tr_loss *loss = &trial->model->loss;
    struct tr_answer_part part[TR_LOSS_HEADS];
    const int64_t outputs = tr_shape_count(&trial->model->output), width = tr_loss_width(loss, outputs);
    if (tr_loss_parts(loss, width, part) != 1) return;
    for (int64_t i = 0; i < trial->labels * outputs; i++) {
        const int64_t row = i / outputs, k = i % outputs, first = i - i % width;
        double sum = 0;
        for (int64_t c = 0; c < width; c++) sum += exp((double)scores[first + c] - (double)scores[i]);
        expect_near(network, "probabilities", y->v[place_of(trial, y, row, k)],
                    part[0].kind == TR_ANSWER_CLASSES ? 1 / sum : 1 / (1 + exp(-(double)scores[i])));
    }
}

/* Whether the format knows the network, whose graph then computes the same. */
static bool expect_values(const struct network *network)
{
    static const struct tr_onnx_settings settings = {"network", "a network of the tests"};
    struct trial trial;
    struct tr_trace *trace;
    const char *path = scratch_in("network.onnx");
    trial_make(&trial, network, "ref", EXAMPLES, 1);
    tr_status status = tr_trace_create(trial.model, trial.parameters, NULL, &trace);
    if (status == TR_OK) status = onnx_write_trace(trace, &settings, path);
    tr_trace_destroy(&trace);
    if (status == TR_OK) {
        Onnx__ModelProto *model = onnx_read(path);
        const Onnx__GraphProto *graph = model->graph;
        const int64_t outputs = tr_shape_count(&trial.model->output);
        float *expected = trial_output(&trial);
        if (trial.model->input.sequence)
            give_tokens(&trial);
        else
            give_numbers(&trial);
        onnx_run(graph, &run);
        const struct onnx_value *y = onnx_find(&run, graph->output[0]->name);
        assert_int_equal(y->rank, graph->output[0]->type->tensor_type->shape->n_dim);
        for (int64_t i = 0; i < trial.labels * outputs; i++)
            expect_near(network->name, graph->output[0]->name,
                        y->v[place_of(&trial, y, i / outputs, i % outputs)], (double)expected[i]);
        if (graph->n_output > 1) expect_probabilities(network->name, &trial, expected);
        onnx_release(&run);
        tr_free(expected);
        onnx__model_proto__free_unpacked(model, NULL);
    } else {
        assert_int_equal(status, TR_EUNSUPPORTED);
    }
    trial_release(&trial);
    return status == TR_OK;
}

/* What those networks lack. */
static const struct network more[] = {
    {"each token alone", "tokens", 9,
     "layers: [{embedding: 4}, {conv1d: {filters: 3, kernel: 1, activation: tanh}}, {conv1d: {filters: 2, "
     "kernel: 1, "
     "use_bias: false}}, last, {dense: 2}]"},
    {"attention to fewer and fewer tokens", "23x1x4", 0,
     "layers: [tokens, {attention: {heads: 2, causal: true}}, {position: 30}, {conv1d: {filters: 4, kernel: "
     "3, stride: "
     "2}}, {attention: {heads: 2, causal: true}}, {position: 30}, {conv1d: {filters: 4, kernel: 2, stride: "
     "3}}, "
     "{attention: {heads: 2, window: 2, rotary: 50}}, last, {dense: 2}]"},
    {"factors of the channels of rows", "1x3x2", 0,
     "layers: [{relu: {name: a}}, {conv: {filters: 2, kernel: [1, 3], activation: sigmoid}}, {multiply: "
     "{with: a, name: "
     "b}}, {dense: 2}]"},
    {"factors of columns", "3x1x2", 0,
     "layers: [{relu: {name: a}}, global_average_pool, {dense: {units: 2, activation: sigmoid, name: f}}, "
     "{relu: {from: "
     "a, name: c}}, {multiply: {with: f}}, {dense: 2}]"},
    {"dilated columns", "4x5x2", 0,
     "layers: [{conv: {filters: 2, kernel: 2, dilation: [1, 3]}}, {conv: {filters: 2, kernel: [2, 1], "
     "dilation: [2, 1]}}, {dense: 2}]"},
    {"a row before an image", "2x3x2", 0,
     "layers: [{conv: {filters: 2, kernel: 1}}, {flatten: {name: f}}, {dense: {units: 3, name: g}}, {concat: "
     "{from: [g, f]}}, {dense: 2}]"},
    {"classes of a pixel", "2x2x1", 0, "layers: [{conv: {filters: 3, kernel: 2}}]"},
    {"a copy of the input", "4", 0, "layers: [{dropout: 0.5}]"},
};

static void graphs_compute_what_networks_compute(void **state)
{
    (void)state;
    int known = 0;
    for (int i = 0; i < network_count; i++) known += expect_values(&networks[i]);
    assert_true(known > network_count * 3 / 4);
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        if (!expect_values(&more[i])) fail_msg("%s: %s", more[i].name, tr_error_message());
}

/* ---- what enters ---- */

/* Pixel (h, w) of channel c of an image, 0 outside. */
static double pixel(const struct tr_op_load_images *images, int h, int w, int c)
{
    if (h < 0 || w < 0 || h >= images->in_h || w >= images->in_w) return 0;
    return 3 + (h * 13 + w * 5 + c * 7) % 50;
}

/* The middle of an image, or black around it; scaled and shifted. Pixels of numbers come as rows. */
static void expect_entry(const struct tr_op_load_images *images, bool numbers)
{
    static const struct tr_onnx_settings settings = {"network", ""};
    const int out_h = images->out_h, out_w = images->out_w, channels = images->channels, in_h = images->in_h,
              in_w = images->in_w, top = (in_h - out_h) / 2, left = (in_w - out_w) / 2;
    struct tr_intake intake = {.count = 1, .part = {{.name = "", .images = *images, .numbers = numbers}}};
    char input[32], what[64];
    struct trial trial;
    struct tr_trace *trace;
    snprintf(input, sizeof input, "%dx%dx%d", out_h, out_w, channels);
    snprintf(what, sizeof what, "%dx%d from %dx%d", out_h, out_w, in_h, in_w);
    const struct network plain = {what, input, 0, "layers: [{leaky_relu: 0.5}, {dense: 3}]"};
    intake.part[0].stored = numbers ? (struct tr_shape){1, {in_h * in_w * channels}, false}
                                    : (struct tr_shape){3, {in_h, in_w, channels}, false};
    trial_make(&trial, &plain, "ref", 2, 1);
    must(tr_trace_create(trial.model, trial.parameters, &intake, &trace));
    must(onnx_write_trace(trace, &settings, scratch_in("images.onnx")));
    tr_trace_destroy(&trace);
    Onnx__ModelProto *model = onnx_read(scratch_in("images.onnx"));
    double *x = numbers ? onnx_give(&run, "input", 2, (const int64_t[]){1, (int64_t)in_h * in_w * channels})
                        : onnx_give(&run, "input", 4, (const int64_t[]){1, channels, in_h, in_w});
    for (int c = 0; c < channels; c++)
        for (int h = 0; h < in_h; h++)
            for (int w = 0; w < in_w; w++)
                x[numbers ? (h * in_w + w) * channels + c : (c * in_h + h) * in_w + w] =
                    pixel(images, h, w, c);
    onnx_run(model->graph, &run);
    const struct onnx_value *y = onnx_find(&run, "leaky_relu1/LeakyRelu");
    assert_int_equal(y->count, channels * out_h * out_w);
    for (int c = 0; c < channels; c++)
        for (int h = 0; h < out_h; h++)
            for (int w = 0; w < out_w; w++) {
                const double value =
                    pixel(images, h + top, w + left, c) * (double)images->scale[c] + (double)images->shift[c];
                expect_near(what, "a pixel", y->v[(c * out_h + h) * out_w + w],
                            value > 0 ? value : value / 2);
            }
    onnx_release(&run);
    onnx__model_proto__free_unpacked(model, NULL);
    trial_release(&trial);
}

static void images_enter_as_they_are_cut_and_scaled(void **state)
{
    static const struct {
        int in_h, in_w, out_h, out_w, channels;
    } cuts[] = {
        {6, 7, 6, 7, 3}, {6, 7, 4, 3, 2}, {6, 7, 6, 4, 1}, {6, 7, 3, 7, 4}, {4, 3, 6, 7, 2},
        {4, 3, 4, 6, 3}, {4, 3, 7, 3, 2}, {8, 4, 5, 6, 2}, {3, 9, 8, 2, 3}, {5, 5, 4, 5, 1},
    };
    static const float scales[][4] = {{1, 1, 1, 1},
                                      {0.5f, 0.5f, 0.5f, 0.5f},
                                      {1, 0.25f, 0.5f, 2},
                                      {0.5f, 0.5f, 0.5f, 1}},
                       shifts[][4] = {{0, 0, 0, 0}, {-9, -9, -9, -9}, {-20, 1, 2, -5}, {0, 0, 0, -30}};
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++)
        for (int s = 0; s < 4; s++)
            for (int numbers = 0; numbers < 2; numbers++) {
                struct tr_op_load_images images = {.in_h = cuts[i].in_h,
                                                   .in_w = cuts[i].in_w,
                                                   .out_h = cuts[i].out_h,
                                                   .out_w = cuts[i].out_w,
                                                   .channels = cuts[i].channels};
                memcpy(images.scale, scales[s], sizeof images.scale);
                memcpy(images.shift, shifts[s], sizeof images.shift);
                expect_entry(&images, numbers == 1);
            }
}

/* Runtimes compute in floats: a column whose deviation is none that they have is refused. */
static void deviations_are_floats(void **state)
{
    static const struct tr_onnx_settings settings = {"network", ""};
    static const struct network plain = {"columns", "2", 0, "layers: [{dense: 3}]"};
    static const struct {
        double deviation;
        const char *says; /* NULL: it is taken */
    } cases[] = {{1, NULL},
                 {(double)FLT_MIN, NULL},
                 {(double)FLT_MAX, NULL},
                 {0x1p-127, "the deviation 5.87747e-39 of column 1 is no float of ONNX"},
                 {1e39, "the deviation 1e+39 of column 1 is no float of ONNX"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double mean[] = {0.5, 1}, deviation[] = {2, cases[i].deviation};
        const struct tr_intake intake = {
            .count = 1,
            .part = {{.name = "",
                      .stored = {1, {2}, false},
                      .scaling = {.count = 2, .mean = mean, .deviation = deviation}}}};
        struct trial trial;
        struct tr_trace *trace;
        trial_make(&trial, &plain, "ref", 2, 1);
        must(tr_trace_create(trial.model, trial.parameters, &intake, &trace));
        const tr_status status = onnx_write_trace(trace, &settings, scratch_in("columns.onnx"));
        assert_int_equal(status, cases[i].says ? TR_EUNSUPPORTED : TR_OK);
        if (cases[i].says && !strstr(tr_error_message(), cases[i].says)) fail_msg("%s", tr_error_message());
        tr_trace_destroy(&trace);
        trial_release(&trial);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_compute_what_networks_compute),
        cmocka_unit_test(images_enter_as_they_are_cut_and_scaled),
        cmocka_unit_test(deviations_are_floats),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
