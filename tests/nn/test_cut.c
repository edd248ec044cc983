/* Networks in pieces: the places where they may be cut, and the same bytes from passes over the pieces. */
#include "support/networks.h"

#include "base/alloc.h"
#include "nn/cut.h"
#include "nn/pass/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define PIECES 32

/* A network as passes over ranges of its layers. */
struct pieces {
    struct trial *trial;
    int count;
    int bound[PIECES + 1];
    tr_pass *pass[PIECES];
    float *gradient[PIECES]; /* the arena of the range */
};

/* The parameter that two layers share. */
static const struct tr_parameter *shared_parameter(const struct trial *trial, const struct tr_pass_tie *tie)
{
    return &trial->model->parameters[trial->model->layers[tie->lender].parameter[0]];
}

static void make_pieces(struct pieces *pieces, struct trial *trial, const int *cut, int cuts)
{
    *pieces = (struct pieces){.trial = trial, .count = cuts + 1};
    assert_true(pieces->count <= PIECES);
    for (int i = 0; i < cuts; i++) pieces->bound[i + 1] = cut[i];
    pieces->bound[cuts + 1] = trial->model->layer_count;
    for (int i = 0; i <= cuts; i++) {
        struct tr_pass_limits limits = trial_limits(trial, true);
        size_t bytes;
        limits.first_layer = pieces->bound[i];
        limits.end_layer = pieces->bound[i + 1];
        must(tr_pass_create(trial->device, trial->model, &limits, &pieces->pass[i]));
        must(tr_pass_memory(NULL, trial->model, &limits, &bytes));
        memset(pieces->pass[i]->memory, 0xff, bytes); /* what is read before it is written shows */
        pieces->gradient[i] = trial_arenas(trial, 1);
        struct tr_pass_tie tie;
        for (int k = 0; tr_pass_tie(pieces->pass[i], k, &tie); k++)
            if (!tie.lends)
                tr_pass_lend(pieces->pass[i], tie.borrower,
                             trial->parameters + shared_parameter(trial, &tie)->offset);
    }
}

static void release_pieces(struct pieces *pieces)
{
    for (int i = 0; i < pieces->count; i++) {
        tr_pass_destroy(&pieces->pass[i]);
        tr_device_free(pieces->trial->device, pieces->gradient[i]);
    }
}

static int64_t port_floats(const struct tr_pass_port *port, const struct tr_pass_batch *batch)
{
    return port->width * (port->sequence ? batch->tokens : batch->examples);
}

static void copy(const struct trial *trial, const float *from, float *to, int64_t floats)
{
    struct tr_op_scale op = {floats, 1, from, to};
    must(tr_device_scale(trial->device, &op));
}

/* Brings what borrowers in piece `from` add to gradients to the pieces of the lenders. */
static void hand_back(const struct pieces *pieces, int from)
{
    const struct trial *trial = pieces->trial;
    struct tr_pass_tie tie, other;
    for (int k = 0; tr_pass_tie(pieces->pass[from], k, &tie); k++)
        for (int i = 0; i < from && !tie.lends; i++)
            for (int n = 0; tr_pass_tie(pieces->pass[i], n, &other); n++)
                if (other.lends && other.borrower == tie.borrower)
                    copy(trial, tie.leaves, other.leaves, trial->microbatches * tie.floats);
}

/* Forward through all pieces, then back. The gradient at an entry must last until the next backward: it is
   taken after the pass has gone forward once more. */
static void run_pieces(struct pieces *pieces, int32_t first, int32_t end)
{
    struct trial *trial = pieces->trial;
    const struct tr_pass_batch *batch = NULL;
    for (int i = 0; i < pieces->count; i++) {
        batch = trial_feed(trial, pieces->pass[i], first, end);
        must(tr_pass_forward(pieces->pass[i], batch, trial->parameters, pieces->gradient[i], trial->stride));
        if (i + 1 == pieces->count) break;
        struct tr_pass_port exit = tr_pass_exit(pieces->pass[i]), entry = tr_pass_entry(pieces->pass[i + 1]);
        assert_int_equal(exit.width, entry.width);
        assert_int_equal(exit.sequence, entry.sequence);
        assert_true(!exit.gradient == !entry.gradient);
        copy(trial, exit.values, entry.values, port_floats(&exit, batch));
    }
    must(tr_pass_loss(pieces->pass[pieces->count - 1], batch));
    for (int i = pieces->count - 1; i >= 0; i--) {
        must(tr_pass_backward(pieces->pass[i], batch, trial->parameters, pieces->gradient[i], trial->stride));
        hand_back(pieces, i);
        struct tr_pass_port entry = tr_pass_entry(pieces->pass[i]);
        if (!entry.gradient) continue;
        struct tr_pass_port exit = tr_pass_exit(pieces->pass[i - 1]);
        float *scratch = trial_arenas(trial, 1);
        must(tr_pass_forward(pieces->pass[i], batch, trial->parameters, scratch, trial->stride));
        tr_device_free(trial->device, scratch);
        copy(trial, entry.gradient, exit.gradient, port_floats(&entry, batch));
    }
    must(tr_device_wait(trial->device));
}

/* Joins the arenas of the ranges; the last one has the sums. */
static void compare(const struct pieces *pieces, const float *expected, const char *network)
{
    const struct trial *trial = pieces->trial;
    float *whole = tr_alloc((size_t)trial->stride, sizeof *whole);
    float *joined = tr_alloc_zero((size_t)trial->stride, sizeof *joined);
    assert_true(whole && joined);
    must(tr_device_to_host(trial->device, whole, expected, (size_t)trial->stride * sizeof *whole));
    int64_t reached = 0;
    for (int i = 0; i < pieces->count; i++) {
        int64_t begin, end;
        tr_pass_arena(trial->model, pieces->bound[i], pieces->bound[i + 1], &begin, &end);
        assert_int_equal(begin, reached);
        reached = end;
        int64_t floats = end - begin + (i + 1 == pieces->count ? TR_PASS_SUMS : 0);
        must(tr_device_to_host(trial->device, joined + begin, pieces->gradient[i],
                               (size_t)floats * sizeof *joined));
    }
    must(tr_device_wait(trial->device));
    assert_int_equal(reached, trial->model->arena_floats);
    for (int64_t i = 0; i < reached + TR_PASS_SUMS; i++)
        if (memcmp(&whole[i], &joined[i], sizeof *whole) != 0)
            fail_msg(
                "%s in %d pieces, the second from layer %d: float %lld of the gradient is %a instead of %a",
                network, pieces->count, pieces->bound[1], (long long)i, (double)joined[i], (double)whole[i]);
    tr_free(whole);
    tr_free(joined);
}

static void try_cuts(struct trial *trial, const float *expected, const int *cut, int cuts, const char *name)
{
    struct pieces pieces;
    make_pieces(&pieces, trial, cut, cuts);
    run_pieces(&pieces, 0, trial->microbatches);
    compare(&pieces, expected, name);
    release_pieces(&pieces);
}

/* Each place by itself, including those in front of a flatten, and all of them together. */
static void divide(const struct network *network, const char *device, int64_t examples, int32_t microbatches)
{
    struct trial trial;
    trial_make(&trial, network, device, examples, microbatches);
    struct tr_pass_limits limits = trial_limits(&trial, true);
    tr_pass *pass;
    must(tr_pass_create(trial.device, trial.model, &limits, &pass));
    assert_null(tr_pass_entry(pass).values);
    assert_null(tr_pass_exit(pass).values);
    float *expected = trial_arenas(&trial, 1);
    trial_run(&trial, pass, trial_feed(&trial, pass, 0, microbatches), trial.parameters, expected);
    int cut[PIECES];
    assert_true(trial.model->layer_count <= PIECES);
    for (cut[0] = 1; cut[0] < trial.model->layer_count; cut[0]++)
        if (tr_model_check_cut(trial.model, cut[0]) == TR_OK)
            try_cuts(&trial, expected, cut, 1, network->name);
    int cuts = tr_model_cuts(trial.model, cut);
    if (cuts > 1) try_cuts(&trial, expected, cut, cuts, network->name);
    tr_device_free(trial.device, expected);
    tr_pass_destroy(&pass);
    trial_release(&trial);
}

static void pieces_give_the_same_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < network_count; i++) {
        divide(&networks[i], "ref", 11, 7);
        divide(&networks[i], "cpu", 11, 7);
        divide(&networks[i], "cpu", 3, 5); /* some microbatches have no example */
    }
}

struct expectation {
    const char *network;
    int cut[PIECES]; /* ends with 0 */
    int refused;     /* a place that is not allowed, and why */
    const char *reason;
};

static void places_are_those_where_one_tensor_crosses(void **state)
{
    (void)state;
    static const struct expectation expectations[] = {
        {"images", {2, 3, 5, 6}, 1, "layer \"max_pool1\" applies the gradient of the relu of \"conv1\""},
        {"relu before a pool that has it alone", {1, 2, 4}, 3, "the relu of \"relu1\""},
        {"relu before a pool and another",
         {1, 3, 4},
         2,
         "layer \"add1\" also takes the output of \"a\" before layer \"add1\""},
        {"residual", {1, 8}, 3, "also takes the output of \"a\""},
        {"layers that share parameters",
         {11, 12},
         6,
         "layer \"attention2\" shares the parameters of \"a\", which stay on one process"},
        {"a layer with itself alone", {1, 2, 3}, 0, NULL},
        {"last output of an LSTM", {1, 2, 3, 4}, 0, NULL},
        {"softmax against values", {1}, 2, "nothing is computed from layer \"flatten1\" on"},
    };
    for (size_t i = 0; i < sizeof expectations / sizeof expectations[0]; i++) {
        const struct network *network = networks;
        while (strcmp(network->name, expectations[i].network) != 0) network++;
        struct tr_model *model;
        int cut[PIECES] = {0};
        must(network_build(network->text, network->input, network->vocabulary, &model));
        int cuts = tr_model_cuts(model, cut);
        for (int k = 0; k < PIECES; k++)
            if (cut[k] != expectations[i].cut[k])
                fail_msg("%s: place %d is %d instead of %d", network->name, k, cut[k],
                         expectations[i].cut[k]);
        for (int k = 0; k < cuts; k++) must(tr_model_check_cut(model, cut[k]));
        if (expectations[i].reason) {
            assert_int_equal(tr_model_check_cut(model, expectations[i].refused), TR_EINVAL);
            if (!strstr(tr_error_message(), expectations[i].reason)) fail_msg("%s", tr_error_message());
        }
        tr_model_destroy(&model);
    }
}

/* Memory of a piece is for its own layers. */
static void pieces_take_less_memory(void **state)
{
    (void)state;
    struct tr_model *model;
    must(network_build("layers: [dense: 2048, tanh, dense: 2048, tanh, dense: 2048, tanh, dense: 2048, tanh]",
                       "16", 0, &model));
    struct tr_pass_limits limits = {.training = true, .examples = 100, .microbatches = 1};
    size_t whole, half;
    must(tr_pass_memory(NULL, model, &limits, &whole));
    limits.end_layer = 4;
    must(tr_pass_memory(NULL, model, &limits, &half));
    assert_in_range(half, whole / 3, whole * 3 / 4);
    tr_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_give_the_same_bytes),
        cmocka_unit_test(places_are_those_where_one_tensor_crosses),
        cmocka_unit_test(pieces_take_less_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
