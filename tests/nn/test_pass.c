/* Passes: the same bytes however a batch is divided among them, and buffers that never meet in memory. */
#include "support/networks.h"

#include "base/alloc.h"
#include "base/numbers/tree.h"
#include "nn/pass/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* ---- dividing ---- */

static void add_arenas(struct trial *trial, float *left, const float *right)
{
    struct tr_op_add add = {trial->stride, left, right, left};
    must(tr_device_add(trial->device, &add));
}

/* Gradients of microbatches [first, end) into `out`, in passes of `most` at a time; `most` is a power of two
   and the range a node of the tree. The recursion is the definition of the tree, written down once more. */
static void in_passes(struct trial *trial, tr_pass *pass, int32_t first, int32_t end, int32_t most,
                      float *out)
{
    if (end - first <= most) {
        const struct tr_pass_batch *batch = trial_feed(trial, pass, first, end);
        assert_int_equal(batch->nodes, 1);
        trial_run(trial, pass, batch, trial->parameters, out);
        return;
    }
    int32_t left = 1;
    while (2 * left < end - first) left *= 2;
    float *right = trial_arenas(trial, 1);
    in_passes(trial, pass, first, first + left, most, out);
    in_passes(trial, pass, first + left, end, most, right);
    add_arenas(trial, out, right);
    tr_device_free(trial->device, right);
}

/* What two workers do: [0, cut) and [cut, n) as the nodes that each range consists of, joined afterwards. */
struct nodes {
    int count;
    int64_t bound[2 * (2 * TR_TREE_DEPTH + 1)];
    float *arena;
};

static void join(struct trial *trial, const struct nodes *nodes, int64_t first, int64_t end, float *out)
{
    for (int i = 0; i < nodes->count; i++)
        if (nodes->bound[i] == first && nodes->bound[i + 1] == end) {
            struct tr_op_scale copy = {trial->stride, 1, nodes->arena + i * trial->stride, out};
            must(tr_device_scale(trial->device, &copy));
            return;
        }
    int64_t left = 1;
    while (2 * left < end - first) left *= 2;
    float *right = trial_arenas(trial, 1);
    join(trial, nodes, first, first + left, out);
    join(trial, nodes, first + left, end, right);
    add_arenas(trial, out, right);
    tr_device_free(trial->device, right);
}

static void by_two_workers(struct trial *trial, tr_pass *pass, int32_t cut, float *out)
{
    struct nodes nodes = {0, {0}, trial_arenas(trial, 2 * trial->microbatches)};
    const int32_t range[] = {0, cut, trial->microbatches};
    for (int worker = 0; worker < 2; worker++) {
        if (range[worker] == range[worker + 1]) continue;
        const struct tr_pass_batch *batch = trial_feed(trial, pass, range[worker], range[worker + 1]);
        trial_run(trial, pass, batch, trial->parameters, nodes.arena + nodes.count * trial->stride);
        for (int i = 0; i < batch->nodes; i++)
            nodes.bound[nodes.count + i + 1] = range[worker] + batch->node_bound[i + 1];
        nodes.count += batch->nodes;
    }
    join(trial, &nodes, 0, trial->microbatches, out);
    tr_device_free(trial->device, nodes.arena);
}

static void compare(const struct trial *trial, const char *network, const char *how, int number,
                    const float *expected, const float *got)
{
    size_t bytes = (size_t)trial->stride * sizeof(float);
    float *a = tr_alloc(bytes, 1), *b = tr_alloc(bytes, 1);
    assert_true(a && b);
    must(tr_device_to_host(trial->device, a, expected, bytes));
    must(tr_device_to_host(trial->device, b, got, bytes));
    must(tr_device_wait(trial->device));
    for (int64_t i = 0; i < trial->stride; i++)
        if (memcmp(&a[i], &b[i], sizeof a[i]) != 0)
            fail_msg(
                "%s, %lld examples in %d microbatches: %s %d: float %lld of the gradient is %a instead of %a",
                network, (long long)trial->examples, trial->microbatches, how, number, (long long)i,
                (double)b[i], (double)a[i]);
    tr_free(a);
    tr_free(b);
}

static void divide(const struct network *network, const char *device, int64_t examples, int32_t microbatches)
{
    struct trial trial;
    trial_make(&trial, network, device, examples, microbatches);
    struct tr_pass_limits limits = trial_limits(&trial, true);
    tr_pass *pass;
    must(tr_pass_create(trial.device, trial.model, &limits, &pass));
    float *expected = trial_arenas(&trial, 1), *got = trial_arenas(&trial, 1);
    trial_run(&trial, pass, trial_feed(&trial, pass, 0, microbatches), trial.parameters, expected);
    for (int32_t most = 1; most < microbatches; most *= 2) {
        in_passes(&trial, pass, 0, microbatches, most, got);
        compare(&trial, network->name, "passes of", most, expected, got);
    }
    for (int32_t cut = 0; cut <= microbatches; cut++) {
        by_two_workers(&trial, pass, cut, got);
        compare(&trial, network->name, "two workers, cut at", cut, expected, got);
    }
    tr_device_free(trial.device, expected);
    tr_device_free(trial.device, got);
    tr_pass_destroy(&pass);
    trial_release(&trial);
}

static void test_division_changes_no_bit(void **state)
{
    (void)state;
    for (int i = 0; i < network_count; i++) {
        divide(&networks[i], "ref", 11, 7);
        divide(&networks[i], "cpu", 11, 7);
        divide(&networks[i], "cpu", 3, 5); /* some microbatches have no example */
        divide(&networks[i], "cpu", 13, 1);
    }
}

/* The whole batch on a device, its gradients to `out` on the host. */
static void whole(const struct network *network, const char *device, float **out, struct trial *trial)
{
    trial_make(trial, network, device, 11, 4);
    struct tr_pass_limits limits = trial_limits(trial, true);
    tr_pass *pass;
    must(tr_pass_create(trial->device, trial->model, &limits, &pass));
    *out = trial_arenas(trial, 1);
    trial_run(trial, pass, trial_feed(trial, pass, 0, trial->microbatches), trial->parameters, *out);
    tr_pass_destroy(&pass);
}

/* Both devices keep their memory on the host, so that one of them can copy for both. */
static void expect_bytes_of_ref(const struct network *network)
{
    struct trial ref, cpu;
    float *expected, *got;
    whole(network, "ref", &expected, &ref);
    whole(network, "cpu", &got, &cpu);
    compare(&ref, network->name, "cpu device", 0, expected, got);
    tr_device_free(ref.device, expected);
    tr_device_free(cpu.device, got);
    trial_release(&ref);
    trial_release(&cpu);
}

static void test_cpu_gives_the_bytes_of_ref(void **state)
{
    (void)state;
    for (int i = 0; i < network_count; i++) expect_bytes_of_ref(&networks[i]);
}

/* Nobody wants the gradient of the network's input: the first layer passes none back. */
static void test_first_layers_pass_nothing_back(void **state)
{
    (void)state;
    static const struct {
        const char *input, *layers;
    } firsts[] = {
        {"12", "relu"},
        {"12", "gelu"},
        {"12", "softmax"},
        {"12", "batch_norm"},
        {"4x4x2", "max_pool: 2"},
        {"4x4x2", "average_pool: 2"},
        {"4x4x2", "upsample: 2"},
        {"4x4x2", "group_norm: 2"},
        {"4x4x2", "conv: {filters: 2, kernel: 3, groups: 2}"},
        {"4x4x2", "multiply: input"},
        {"4x4x2", "silu"},
        {"4x4x2", "conv_transpose: {filters: 3, kernel: 2}"},
    };
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        char text[160];
        snprintf(text, sizeof text, "layers: [%s, dense: 3]\n", firsts[i].layers);
        expect_bytes_of_ref(&(struct network){firsts[i].layers, firsts[i].input, 0, text});
    }
}

/* ---- memory ---- */

#define POISON 0xff /* as a float NaN, as an index far outside */

static void *separate(struct tr_pass *pass, size_t bytes, size_t *total)
{
    void *memory;
    must(tr_device_alloc(pass->device, bytes + 1, &memory));
    memset(memory, POISON, bytes + 1);
    *total += bytes;
    return memory;
}

/* Calls back for every buffer of a pass that is there. */
static void each_buffer(struct tr_pass *pass, void (*visit)(void *user, void **place, size_t bytes),
                        void *user)
{
    const struct tr_model *model = pass->model;
    const struct tr_pass_limits *limits = &pass->limits;
    size_t examples = (size_t)limits->examples, images = examples * (size_t)model->image_tokens,
           rows = (size_t)(limits->tokens + limits->examples) + images;
    void **const ends[] = {&pass->input,  &pass->token,     &pass->offset,      &pass->label,
                           &pass->target, &pass->loss_rows, &pass->correct_rows};
    size_t widest = (size_t)(tr_shape_count(&model->input) + tr_shape_count(&model->output));
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (*ends[i]) visit(user, ends[i], (rows + 1) * widest * sizeof(float));
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        size_t out = rows * (size_t)tr_shape_count(&layer->out) * sizeof(float);
        if (pass->layer[i].output) visit(user, &pass->layer[i].output, out);
        if (pass->layer[i].gradient) visit(user, &pass->layer[i].gradient, out);
        for (int k = 0; k < layer->input_count; k++)
            if (pass->layer[i].addend[k])
                visit(user, &pass->layer[i].addend[k],
                      rows * (size_t)tr_shape_count(&layer->in[k]) * sizeof(float));
        for (int k = 0; k < layer->buffer_count; k++) {
            const struct tr_buffer *buffer = &layer->buffer[k];
            size_t units = rows + examples + (size_t)limits->microbatches;
            if (pass->layer[i].buffer[k])
                visit(user, &pass->layer[i].buffer[k], units * (size_t)buffer->bytes + (size_t)buffer->fixed);
        }
    }
}

struct separation {
    struct tr_pass *pass;
    size_t total;
};

static void move_out(void *user, void **place, size_t bytes)
{
    struct separation *separation = user;
    *place = separate(separation->pass, bytes, &separation->total);
}

static void free_moved(void *user, void **place, size_t bytes)
{
    (void)bytes;
    tr_device_free(((struct tr_pass *)user)->device, *place);
    *place = NULL;
}

/* After a backward pass the output is gone. */
static void compare_outputs(const struct trial *trial, const char *network, tr_pass *expected, tr_pass *got)
{
    size_t bytes = (size_t)(trial->examples * tr_shape_count(&trial->model->output)) * sizeof(float);
    if (!expected->limits.training && memcmp(tr_pass_output(expected), tr_pass_output(got), bytes) != 0)
        fail_msg("%s: the output changes when buffers share memory; see last_use() in pass.c", network);
    if (memcmp(tr_pass_loss_rows(expected), tr_pass_loss_rows(got),
               (size_t)trial->examples * sizeof(float)) != 0)
        fail_msg("%s: the loss changes when buffers share memory", network);
}

/* Runs a network in its planned, poisoned memory and in memory where no two buffers meet. Device memory of
   `ref` is the host's, so that it can be poisoned and compared here. */
static void plan(const struct network *network, bool training)
{
    struct trial trial;
    trial_make(&trial, network, "ref", 11, 4);
    struct tr_pass_limits limits = trial_limits(&trial, training);
    tr_pass *shared, *apart;
    size_t planned;
    must(tr_pass_create(trial.device, trial.model, &limits, &shared));
    must(tr_pass_create(trial.device, trial.model, &limits, &apart));
    must(tr_pass_memory(trial.device, trial.model, &limits, &planned));
    memset(shared->memory, POISON, planned);
    struct separation separation = {apart, 0};
    each_buffer(apart, move_out, &separation);
    assert_true(planned < separation.total);
    float *arena[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        tr_pass *pass = i ? apart : shared;
        if (training) arena[i] = trial_arenas(&trial, 1);
        struct tr_pass_batch batch = *trial_feed(&trial, pass, 0, trial.microbatches);
        if (!training) batch.microbatches = batch.nodes = 0;
        trial_run(&trial, pass, &batch, trial.parameters, arena[i]);
    }
    compare_outputs(&trial, network->name, apart, shared);
    if (training) compare(&trial, network->name, "planned memory", 0, arena[1], arena[0]);
    for (int i = 0; i < 2; i++) tr_device_free(trial.device, arena[i]);
    each_buffer(apart, free_moved, apart);
    tr_pass_destroy(&shared);
    tr_pass_destroy(&apart);
    trial_release(&trial);
}

static void test_live_buffers_never_overlap(void **state)
{
    (void)state;
    for (int i = 0; i < network_count; i++) {
        plan(&networks[i], true);
        plan(&networks[i], false);
    }
}

/* A chain of equal layers needs two of their outputs at a time when nothing is kept for a backward pass. */
static void test_inference_reuses_memory(void **state)
{
    (void)state;
    struct tr_model *model;
    must(network_build("layers: [dense: 4096, tanh, dense: 4096, tanh, dense: 4096, tanh, dense: 4096, tanh]",
                       "16", 0, &model));
    struct tr_pass_limits limits = {.training = false, .examples = 100, .microbatches = 1};
    size_t inference, training;
    must(tr_pass_memory(NULL, model, &limits, &inference));
    limits.training = true;
    must(tr_pass_memory(NULL, model, &limits, &training));
    size_t output = 100 * 4096 * sizeof(float);
    assert_in_range(inference, 2 * output, 2 * output + 65536);
    assert_in_range(training, 4 * output, 7 * output); /* a tanh keeps its output, dense takes it */
    tr_model_destroy(&model);
}

/* Whether the gradient of layer `before`, in training on the layers up to `limit` (0: all), lies where that
   of layer `end` was. */
static bool replaced(const char *layers, int before, int end, int limit)
{
    char text[256];
    snprintf(text, sizeof text, "layers: %s", layers);
    const struct network network = {layers, "4x4x2", 0, text};
    struct trial trial;
    trial_make(&trial, &network, "ref", 4, 2);
    struct tr_pass_limits limits = trial_limits(&trial, true);
    limits.end_layer = limit;
    tr_pass *pass;
    must(tr_pass_create(trial.device, trial.model, &limits, &pass));
    assert_non_null(pass->layer[before].gradient);
    assert_non_null(pass->layer[end].gradient);
    const bool same = pass->layer[before].gradient == pass->layer[end].gradient;
    tr_pass_destroy(&pass);
    trial_release(&trial);
    return same;
}

/* A batch norm with what is behind it writes the gradient of its input over that of its output, unless others
   add to its input's, or another range reads its output's. */
static void test_gradients_replace_each_other(void **state)
{
    (void)state;
    const char *const plain = "[dense: 3, batch_norm, relu, dense: 2]";
    assert_true(replaced(plain, 0, 2, 0));
    assert_false(replaced(plain, 0, 2, 3));
    assert_true(replaced("[dense: 3, batch_norm, relu, dense: 3, add: relu1, dense: 2]", 0, 2, 0));
    assert_true(replaced("[dense: 3, relu, dense: 3, batch_norm, add: relu1, relu, dense: 2]", 2, 5, 0));
    assert_false(replaced("[dense: 3, batch_norm, relu, add: dense1, dense: 2]", 0, 2, 0));
    assert_false(replaced("[dense: 3, batch_norm, dense: 2]", 0, 1, 0));
    assert_false(replaced("[dense: 3, relu, batch_norm, relu, batch_norm, relu, dense: 2]", 3, 5, 0));
}

/* An observer sees every layer that computes, in order, and its failure ends the pass. */
struct seen {
    const struct tr_model *model;
    int calls, fail_at;
};

static tr_status note(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    struct seen *seen = user;
    assert_ptr_equal(layer, &seen->model->layers[seen->calls]);
    assert_non_null(output);
    assert_int_equal(count, 9 * tr_shape_count(&layer->out));
    return seen->calls++ == seen->fail_at ? TR_EUNSUPPORTED : TR_OK;
}

static void test_watcher(void **state)
{
    (void)state;
    static const struct network network = {"watched", "4", 0, "layers: [dense: 3, tanh, dense: 2]"};
    struct trial trial;
    trial_make(&trial, &network, "ref", 9, 2);
    struct tr_pass_limits limits = trial_limits(&trial, false);
    tr_pass *pass;
    must(tr_pass_create(trial.device, trial.model, &limits, &pass));
    const struct tr_pass_batch *batch = trial_feed(&trial, pass, 0, 2);
    struct seen seen = {trial.model, 0, -1};
    tr_pass_observe(pass, note, &seen);
    must(tr_pass_forward(pass, batch, trial.parameters, NULL, 0));
    assert_int_equal(seen.calls, 3);
    seen = (struct seen){trial.model, 0, 1};
    assert_int_equal(tr_pass_forward(pass, batch, trial.parameters, NULL, 0), TR_EUNSUPPORTED);
    assert_int_equal(seen.calls, 2);
    tr_pass_observe(pass, NULL, NULL);
    must(tr_pass_forward(pass, batch, trial.parameters, NULL, 0));
    assert_int_equal(seen.calls, 2);
    tr_pass_destroy(&pass);
    trial_release(&trial);
}

static tr_status note_rows(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    int64_t **next = user;
    assert_non_null(output);
    *(*next)++ = count / tr_shape_count(&layer->out);
    return TR_OK;
}

/* Of sequences it sees every token: of 12, after a stride of 2, 6. */
static void test_watched_sequences(void **state)
{
    (void)state;
    static const struct network network = {
        "watched tokens", "12x1x3", 0,
        "layers: [tokens, conv1d: {filters: 4, kernel: 3, stride: 2}, global_average_pool, dense: 2]"};
    int64_t rows[3] = {0}, *next = rows;
    struct trial trial;
    trial_make(&trial, &network, "ref", 9, 2);
    struct tr_pass_limits limits = trial_limits(&trial, false);
    tr_pass *pass;
    must(tr_pass_create(trial.device, trial.model, &limits, &pass));
    const struct tr_pass_batch *batch = trial_feed(&trial, pass, 0, 2);
    tr_pass_observe(pass, note_rows, &next);
    must(tr_pass_forward(pass, batch, trial.parameters, NULL, 0));
    assert_int_equal(next - rows, 3); /* the image is the tokens as it is */
    assert_int_equal(rows[0], 9 * 6);
    assert_int_equal(rows[1], 9);
    assert_int_equal(rows[2], 9);
    tr_pass_destroy(&pass);
    trial_release(&trial);
}

struct company {
    int calls, fail_at;
};

static tr_status accompany(void *user)
{
    struct company *company = user;
    return company->calls++ == company->fail_at ? TR_EUNSUPPORTED : TR_OK;
}

/* It is called after each layer, but once for those that are fused, forward and backward, and can end both.
 */
static void test_companion(void **state)
{
    (void)state;
    static const struct network network = {
        "accompanied", "6x6x1", 0,
        "layers: [conv: {filters: 3, kernel: 3}, max_pool: 2, dense: 4, dense: 2]"};
    struct trial trial;
    trial_make(&trial, &network, "ref", 9, 2);
    struct tr_pass_limits limits = trial_limits(&trial, true);
    tr_pass *pass;
    must(tr_pass_create(trial.device, trial.model, &limits, &pass));
    const struct tr_pass_batch *batch = trial_feed(&trial, pass, 0, 2);
    float *slots = trial_arenas(&trial, 1);
    struct company company = {0, -1};
    tr_pass_accompany(pass, accompany, &company);
    must(tr_pass_forward(pass, batch, trial.parameters, slots, trial.stride));
    assert_int_equal(company.calls, 3);
    must(tr_pass_loss(pass, batch));
    must(tr_pass_backward(pass, batch, trial.parameters, slots, trial.stride));
    assert_int_equal(company.calls, 6);
    company = (struct company){0, 1};
    assert_int_equal(tr_pass_backward(pass, batch, trial.parameters, slots, trial.stride), TR_EUNSUPPORTED);
    assert_int_equal(company.calls, 2);
    company = (struct company){0, 2};
    assert_int_equal(tr_pass_forward(pass, batch, trial.parameters, slots, trial.stride), TR_EUNSUPPORTED);
    assert_int_equal(company.calls, 3);
    tr_pass_accompany(pass, NULL, NULL);
    must(tr_pass_forward(pass, batch, trial.parameters, slots, trial.stride));
    assert_int_equal(company.calls, 3);
    tr_device_free(trial.device, slots);
    tr_pass_destroy(&pass);
    trial_release(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_division_changes_no_bit),
        cmocka_unit_test(test_cpu_gives_the_bytes_of_ref),
        cmocka_unit_test(test_first_layers_pass_nothing_back),
        cmocka_unit_test(test_live_buffers_never_overlap),
        cmocka_unit_test(test_gradients_replace_each_other),
        cmocka_unit_test(test_inference_reuses_memory),
        cmocka_unit_test(test_watcher),
        cmocka_unit_test(test_watched_sequences),
        cmocka_unit_test(test_companion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
