/* Gradients of parameters that layers share, in words of their own: what each use adds to the gradient of a
 * microbatch is that of a twin network whose layers have parameters of their own with the same numbers. Of
 * these the last layer's comes first, then those before it; the sums go along the tree.
 */
#include "support/networks.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define EXAMPLES     11
#define MICROBATCHES 5
#define USES_MOST    3

/* Layers that share parameters, and twins where "share" stands for nothing. */
static const struct {
    const char *input, *layers;
} cases[] = {
    {"4", "- dense: {units: 4, activation: tanh, name: a}\n"
          "- dense: {units: 4, activation: sigmoid, share: a, name: b}\n"
          "- dense: {units: 4, share: b, name: c}\n"
          "- tanh\n"
          "- dense: {units: 3, name: d}\n"},
    {"tokens", "- embedding: {width: 4, name: e}\n"
               "- lstm: {units: 4, name: a}\n- lstm: {units: 4, share: a}\n- last\n- dense: 3\n"},
    {"tokens", "- embedding: {width: 4, name: e}\n"
               "- gru: {units: 4, name: a}\n- gru: {units: 4, share: a}\n- last\n- dense: 3\n"},
    {"tokens", "- embedding: {width: 4, name: e}\n"
               "- position: {length: 30, name: p}\n"
               "- conv1d: {filters: 4, kernel: 3, name: c}\n"
               "- position: {length: 30, share: p}\n"
               "- conv1d: {filters: 4, kernel: 3, share: c}\n"
               "- last\n- dense: 3\n"},
    {"9x1x4", "- tokens\n"
              "- conv1d: {filters: 4, kernel: 3, stride: 2, name: c}\n"
              "- conv1d: {filters: 4, kernel: 3, stride: 2, share: c}\n"
              "- last\n- dense: 3\n"},
    {"tokens", "- embedding: {width: 4, name: e}\n"
               "- dense: {units: 4, name: m}\n"
               "- cross_attention: {from: [e, m], heads: 2, name: x}\n"
               "- cross_attention: {from: [x, m], heads: 2, share: x}\n"
               "- layer_norm: {name: n}\n"
               "- attention: {heads: 2, name: o}\n"
               "- layer_norm: {share: n}\n"
               "- attention: {heads: 2, share: o}\n"
               "- global_average_pool\n- dense: 3\n"},
};

static float tree(const float *leaf, int leaves)
{
    int left = 1;
    if (leaves == 1) return leaf[0];
    while (2 * left < leaves) left *= 2;
    return tree(leaf, left) + tree(leaf + left, leaves - left);
}

/* The parameter of a layer that it calls its number k. */
static const struct tr_parameter *parameter_of(const struct trial *trial, int layer, int k)
{
    return &trial->model->parameters[trial->model->layers[layer].slot[k]];
}

/* Gives the twin's layers the numbers of those that are shared. */
static void copy_parameters(const struct trial *from, struct trial *to)
{
    for (int i = 0; i < to->model->layer_count; i++)
        for (int k = 0; k < to->model->layers[i].slot_count; k++) {
            const struct tr_parameter *theirs = parameter_of(to, i, k), *ours = parameter_of(from, i, k);
            assert_int_equal(theirs->count, ours->count);
            memcpy(to->parameters + theirs->offset, from->parameters + ours->offset,
                   (size_t)ours->count * sizeof(float));
        }
}

/* What microbatch m adds to float i of the parameter of a layer: that of the last layer which uses it comes
   first. In the other order with `turned`. */
static float leaf_of(const struct trial *shared, const struct trial *apart, const float *leaves, int owner,
                     int k, int64_t i, int m, bool turned)
{
    const int number = shared->model->layers[owner].slot[k];
    float use[USES_MOST] = {0}, sum;
    int uses = 0;
    for (int layer = shared->model->layer_count - 1; layer >= 0; layer--)
        if (k < shared->model->layers[layer].slot_count && shared->model->layers[layer].slot[k] == number) {
            assert_true(uses < USES_MOST);
            use[uses++] = leaves[m * apart->stride + parameter_of(apart, layer, k)->offset + i];
        }
    sum = use[turned ? uses - 1 : 0];
    for (int u = 1; u < uses; u++) sum += use[turned ? uses - 1 - u : u];
    return sum;
}

/* Compares all nodes of a pass over microbatches [first, end). Returns how many numbers another order would
   have made differ. */
static int compare_range(struct trial *shared, const struct trial *apart, const float *leaves, int first,
                         int end)
{
    struct tr_pass_limits limits = trial_limits(shared, true);
    tr_pass *pass;
    int different = 0;
    must(tr_pass_create(shared->device, shared->model, &limits, &pass));
    const struct tr_pass_batch *batch = trial_feed(shared, pass, first, end);
    float *got = trial_arenas(shared, batch->nodes);
    trial_run(shared, pass, batch, shared->parameters, got);
    for (int owner = 0; owner < shared->model->layer_count; owner++)
        for (int p = 0; p < shared->model->layers[owner].slot_count; p++) {
            const struct tr_parameter *parameter = parameter_of(shared, owner, p);
            for (int64_t k = 0; k < parameter->count; k++)
                for (int j = 0; j < batch->nodes; j++) {
                    float leaf[MICROBATCHES], other[MICROBATCHES];
                    const int from = batch->node_bound[j], count = batch->node_bound[j + 1] - from;
                    for (int m = 0; m < count; m++) {
                        leaf[m] = leaf_of(shared, apart, leaves, owner, p, k, first + from + m, false);
                        other[m] = leaf_of(shared, apart, leaves, owner, p, k, first + from + m, true);
                    }
                    const float wanted = tree(leaf, count),
                                is = got[j * shared->stride + parameter->offset + k];
                    if (memcmp(&wanted, &is, sizeof wanted) != 0)
                        fail_msg("%d to %d, node %d: %s[%d] is %a, not %a", first, end, j, parameter->name,
                                 (int)k, (double)is, (double)wanted);
                    different += tree(other, count) != wanted;
                }
        }
    tr_pass_destroy(&pass);
    tr_device_free(shared->device, got);
    return different;
}

/* Memory of `ref` is the host's. */
static void gradients_add_up(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        char text[2][1024];
        for (int t = 0; t < 2; t++) snprintf(text[t], sizeof text[t], "layers:\n%s", cases[c].layers);
        for (char *at = text[0]; (at = strstr(at, ", share: ")) != NULL;) {
            const size_t length = 9 + strspn(at + 9, "abcdefghijklmnopqrstuvwxyz");
            memmove(at, at + length, strlen(at + length) + 1);
        }
        for (char *at = text[0]; (at = strstr(at, "{share: n}")) != NULL;) memcpy(at, "{        }", 10);
        const struct network twin = {"apart", cases[c].input, *cases[c].input == 't' ? 9 : 0, text[0]},
                             together = {"together", cases[c].input, *cases[c].input == 't' ? 9 : 0, text[1]};
        struct trial shared, apart;
        tr_pass *pass;
        trial_make(&shared, &together, "ref", EXAMPLES, MICROBATCHES);
        trial_make(&apart, &twin, "ref", EXAMPLES, MICROBATCHES);
        copy_parameters(&shared, &apart);
        assert_true(shared.model->parameter_count < apart.model->parameter_count);
        float *leaves = trial_arenas(&apart, MICROBATCHES);
        const struct tr_pass_limits limits = trial_limits(&apart, true);
        must(tr_pass_create(apart.device, apart.model, &limits, &pass));
        for (int32_t m = 0; m < MICROBATCHES; m++)
            trial_run(&apart, pass, trial_feed(&apart, pass, m, m + 1), apart.parameters,
                      leaves + m * apart.stride);
        tr_pass_destroy(&pass);
        int different = 0;
        for (int first = 0; first < MICROBATCHES; first++)
            for (int end = first + 1; end <= MICROBATCHES; end++)
                different += compare_range(&shared, &apart, leaves, first, end);
        /* Of three uses another order would have been noticed. */
        if (c == 0) assert_true(different > 0);
        tr_device_free(apart.device, leaves);
        trial_release(&shared);
        trial_release(&apart);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_add_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
