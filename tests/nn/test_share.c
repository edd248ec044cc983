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
#define USES         3

static const struct network twin = {"apart", "4", 0,
                                    "layers:\n"
                                    "- dense: {units: 4, activation: tanh, name: a}\n"
                                    "- dense: {units: 4, activation: sigmoid, name: b}\n"
                                    "- dense: {units: 4, name: c}\n"
                                    "- tanh\n"
                                    "- dense: {units: 3, name: d}\n"},
                            together = {"together", "4", 0,
                                        "layers:\n"
                                        "- dense: {units: 4, activation: tanh, name: a}\n"
                                        "- dense: {units: 4, activation: sigmoid, share: a, name: b}\n"
                                        "- dense: {units: 4, share: b, name: c}\n"
                                        "- tanh\n"
                                        "- dense: {units: 3, name: d}\n"};

static const struct tr_parameter *find(const struct trial *trial, const char *name)
{
    for (int i = 0; i < trial->model->parameter_count; i++)
        if (strcmp(trial->model->parameters[i].name, name) == 0) return &trial->model->parameters[i];
    fail_msg("there is no parameter %s", name);
    return NULL;
}

static float tree(const float *leaf, int leaves)
{
    int left = 1;
    if (leaves == 1) return leaf[0];
    while (2 * left < leaves) left *= 2;
    return tree(leaf, left) + tree(leaf + left, leaves - left);
}

/* Gives the twin's layers the numbers of those that are shared. */
static void copy_parameters(const struct trial *from, struct trial *to)
{
    static const char *const names[][2] = {
        {"a.weights", "a.weights"}, {"a.bias", "a.bias"}, {"b.weights", "a.weights"}, {"b.bias", "a.bias"},
        {"c.weights", "a.weights"}, {"c.bias", "a.bias"}, {"d.weights", "d.weights"}, {"d.bias", "d.bias"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct tr_parameter *theirs = find(to, names[i][0]), *ours = find(from, names[i][1]);
        memcpy(to->parameters + theirs->offset, from->parameters + ours->offset,
               (size_t)ours->count * sizeof(float));
    }
}

/* Memory of `ref` is the host's. */
static void gradients_add_up(void **state)
{
    (void)state;
    static const char *const uses[USES] = {"c.", "b.", "a."}, *const parts[] = {"weights", "bias"};
    struct trial shared, apart;
    tr_pass *pass;
    trial_make(&shared, &together, "ref", EXAMPLES, MICROBATCHES);
    trial_make(&apart, &twin, "ref", EXAMPLES, MICROBATCHES);
    copy_parameters(&shared, &apart);
    assert_int_equal(shared.model->parameter_count, 4);
    assert_memory_equal(shared.input, apart.input, EXAMPLES * 4 * sizeof(float));

    float *got = trial_arenas(&shared, 1), *leaves = trial_arenas(&apart, MICROBATCHES);
    struct tr_pass_limits limits = trial_limits(&shared, true);
    must(tr_pass_create(shared.device, shared.model, &limits, &pass));
    trial_run(&shared, pass, trial_feed(&shared, pass, 0, MICROBATCHES), shared.parameters, got);
    tr_pass_destroy(&pass);
    limits = trial_limits(&apart, true);
    must(tr_pass_create(apart.device, apart.model, &limits, &pass));
    for (int32_t m = 0; m < MICROBATCHES; m++)
        trial_run(&apart, pass, trial_feed(&apart, pass, m, m + 1), apart.parameters,
                  leaves + m * apart.stride);
    tr_pass_destroy(&pass);

    int different = 0;
    for (int p = 0; p < 2; p++) {
        char name[16];
        snprintf(name, sizeof name, "a.%s", parts[p]);
        const struct tr_parameter *parameter = find(&shared, name);
        for (int64_t k = 0; k < parameter->count; k++) {
            float leaf[MICROBATCHES], other[MICROBATCHES];
            for (int m = 0; m < MICROBATCHES; m++) {
                float use[USES];
                for (int u = 0; u < USES; u++) {
                    snprintf(name, sizeof name, "%s%s", uses[u], parts[p]);
                    use[u] = leaves[m * apart.stride + find(&apart, name)->offset + k];
                }
                leaf[m] = use[0] + use[1] + use[2];
                other[m] = use[2] + use[1] + use[0];
            }
            const float wanted = tree(leaf, MICROBATCHES);
            if (memcmp(&wanted, &got[parameter->offset + k], sizeof wanted) != 0)
                fail_msg("%s[%d] is %a, not %a", parts[p], (int)k, (double)got[parameter->offset + k],
                         (double)wanted);
            different += tree(other, MICROBATCHES) != wanted;
        }
    }
    assert_true(different > 0); /* another order would have been noticed */
    tr_device_free(shared.device, got);
    tr_device_free(apart.device, leaves);
    trial_release(&shared);
    trial_release(&apart);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_add_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
