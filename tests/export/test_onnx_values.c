/* Graphs of ONNX compute what the networks compute: run in plain loops (onnx_run.h), they give the outputs of
 * the ref device up to rounding. That ONNX Runtime agrees is shown in tests/interop/test_onnx.py. */
#include "base/alloc.h"
#include "export/onnx_file.h"
#include "export/onnx_run.h"
#include "scratch.h"
#include "support/networks.h"

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

static void graphs_compute_what_networks_compute(void **state)
{
    (void)state;
    int known = 0;
    for (int i = 0; i < network_count; i++) known += expect_values(&networks[i]);
    assert_true(known > network_count * 3 / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_compute_what_networks_compute),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
