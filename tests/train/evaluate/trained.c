#include "train/evaluate/trained.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

void trained_run(const char *place, const char *name, const char *model)
{
    char file[64], path[SCRATCH_PATH], out[SCRATCH_PATH];
    struct job job;
    struct outcome outcome;
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text,
                 "name: %s\n%soptimizer: {rule: sgd, rate: 0.01}\n"
                 "train: {batch: 2, steps: 1, evaluate_batch: 4}\n",
                 name, model);
    snprintf(file, sizeof file, "%s.yaml", name);
    must_write(scratch_join(path, place, file), &text);
    job_begin(&job, path);
    job.settings.out = scratch_join(out, place, name);
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s: %s", name, outcome.message);
}

tr_predictor *trained_load(const char *place, const char *name)
{
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor;
    char path[SCRATCH_PATH];
    settings.checkpoint = scratch_join(path, place, name);
    settings.threads = 1;
    must_train(tr_predictor_create(&settings, &predictor));
    return predictor;
}
