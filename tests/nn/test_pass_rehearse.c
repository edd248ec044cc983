/* A device that lacks an operation refuses a network that needs it when the pass is made, with the names of
 * the layer and the operation, and never later.
 */
#include "support/networks.h"

#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define NAME(op) #op,
static const char *const names[] = {TR_DEVICE_OPS(NAME)};
#undef NAME
#define OPERATIONS ((int)(sizeof names / sizeof names[0]))

static void remove_operation(struct tr_device_class *class, int number)
{
    int i = 0;
#define REMOVE(op)                                                                                           \
    if (i++ == number) class->op = NULL;
    TR_DEVICE_OPS(REMOVE)
#undef REMOVE
}

/* Returns whether the pass was refused; where it was not, it runs. */
static bool is_refused(struct trial *trial, int operation)
{
    struct tr_pass_limits limits = trial_limits(trial, true);
    const struct tr_device_class *whole = trial->device->class;
    struct tr_device_class part = *whole;
    tr_pass *pass;
    remove_operation(&part, operation);
    trial->device->class = &part;
    tr_status status = tr_pass_create(trial->device, trial->model, &limits, &pass);
    if (status == TR_OK) {
        float *gradients = trial_arenas(trial, trial->microbatches);
        trial_run(trial, pass, trial_feed(trial, pass, 0, trial->microbatches), trial->parameters, gradients);
        tr_pass_destroy(&pass);
        trial->device->class = whole;
        tr_device_free(trial->device, gradients);
        return false;
    }
    trial->device->class = whole;
    assert_int_equal(status, TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), names[operation]));
    return true;
}

static void what_is_missing_is_said_when_the_pass_is_made(void **state)
{
    int refusals[OPERATIONS] = {0};
    (void)state;
    for (int n = 0; n < network_count; n++) {
        for (int operation = 0; operation < OPERATIONS; operation++) {
            struct trial trial;
            if (strcmp(names[operation], "fill") == 0) continue; /* the trial's own, too */
            trial_make(&trial, &networks[n], "cpu", 6, 3);
            refusals[operation] += is_refused(&trial, operation);
            trial_release(&trial);
        }
    }
    for (int operation = 0; operation < OPERATIONS; operation++) {
        bool in_passes =
            strncmp(names[operation], "conv_", 5) == 0 || strncmp(names[operation], "lstm_", 5) == 0 ||
            strncmp(names[operation], "dense_", 6) == 0 || strcmp(names[operation], "sum_rows") == 0;
        /* Without a fusion its parts are run. */
        bool fused = strncmp(names[operation], "conv_pool_", 10) == 0 ||
                     strcmp(names[operation], "winograd_backward") == 0 ||
                     strncmp(names[operation], "dense_gelu_", 11) == 0 ||
                     strcmp(names[operation], "dense_backward_update") == 0 ||
                     strncmp(names[operation], "batch_norm_activation_", 22) == 0;
        if (fused && refusals[operation] > 0) fail_msg("a network was refused for %s", names[operation]);
        if (in_passes && !fused && refusals[operation] == 0)
            fail_msg("no network was refused for %s", names[operation]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_missing_is_said_when_the_pass_is_made)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
