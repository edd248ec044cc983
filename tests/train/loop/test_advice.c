/* Warnings when a run begins: of settings that train, though hardly as they were meant, and of no others. */
#include "support/training.h"

#include "base/files/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Five examples. */
#define CLASSES "numbers.csv}"
#define VALUES  "numbers.csv, label: value}"

static const struct {
    const char *data, *layers, *loss;
    int batch;
    const char *warning; /* what it says; NULL: there is none */
} cases[] = {
    {CLASSES, "{dense: 2}", "softmax_cross_entropy", 5, NULL},
    {CLASSES, "{dense: 2}, {softmax: {name: last}}", "softmax_cross_entropy", 5,
     "ends with softmax (layer \"last\"), which softmax_cross_entropy applies, too: applied twice it learns "
     "slowly; leave the layer out"},
    {CLASSES, "{dense: 2}, sigmoid", "softmax_cross_entropy", 5, NULL},
    {CLASSES, "{dense: 3}, softmax, {dense: 2}", "softmax_cross_entropy", 5, NULL},
    {VALUES, "{dense: 1}, {sigmoid: {name: last}}", "binary_cross_entropy", 5,
     "ends with sigmoid (layer \"last\"), which binary_cross_entropy applies, too: applied twice"},
    {VALUES, "{dense: 1}, softmax", "binary_cross_entropy", 5, NULL},
    {VALUES, "{dense: 1}, sigmoid", "mean_squared_error", 5, NULL},
    {CLASSES, "{dense: 2}", "softmax_cross_entropy", 6,
     "train.batch is 6, the training data have 5 examples: every step takes them all; a smaller batch learns "
     "in more "
     "steps"},
};

static void warnings_name_what_is_hardly_meant(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct outcome outcome;
        char model[SCRATCH_PATH], text[1024];
        snprintf(text, sizeof text,
                 "name: advice\n"
                 "data: {train: {csv: {path: %s}}\n"
                 "layers: [%s]\n"
                 "loss: %s\n"
                 "optimizer: {rule: sgd, rate: 0.01}\n"
                 "train: {batch: %d, steps: 1}\n",
                 cases[i].data, cases[i].layers, cases[i].loss, cases[i].batch);
        must_train(
            tr_file_write_atomic(NULL, scratch_join(model, scratch_place, "model.yaml"), text, strlen(text)));
        job_begin(&job, model);
        job_outcome(&job, &outcome);
        if (outcome.status != TR_OK) fail_msg("case %zu: %s", i, outcome.message);
        if (outcome.warnings != (cases[i].warning != NULL))
            fail_msg("case %zu has %d warnings, the last one: %s", i, outcome.warnings, outcome.warning);
        if (cases[i].warning && !strstr(outcome.warning, cases[i].warning))
            fail_msg("case %zu: \"%s\" does not say \"%s\"", i, outcome.warning, cases[i].warning);
    }
}

static int make(void **state)
{
    static const char numbers[] = "1,0,0\n0,2,1\n3,1,1\n2,2,0\n0.5,1,1\n";
    char path[SCRATCH_PATH];
    scratch_place_make(state);
    must_train(tr_file_write_atomic(NULL, scratch_join(path, scratch_place, "numbers.csv"), numbers,
                                    sizeof numbers - 1));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings_name_what_is_hardly_meant),
    };
    return cmocka_run_group_tests_name("train.advice", tests, make, scratch_place_remove);
}
