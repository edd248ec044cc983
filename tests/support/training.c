#include "support/training.h"

#include "base/alloc.h"
#include "base/numbers/hash.h"
#include "device/device.h"
#include "device/isas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

void must_train(tr_status status)
{
    if (status != TR_OK) fail_msg("%s: %s", tr_status_name(status), tr_error_message());
}

/* ---- jobs ---- */

void job_begin(struct job *job, const char *model)
{
    *job = (struct job){.settings = TR_TRAIN_SETTINGS_INIT};
    job->settings.model = model;
    job->settings.threads = 1;
}

void job_set(struct job *job, const char *assignment)
{
    assert_true(job->settings.set_count < JOB_SETS);
    job->set[job->settings.set_count++] = assignment;
}

void job_set_all(struct job *job, const char *const *set)
{
    for (; set && *set; set++) job_set(job, *set);
}

tr_trainer *job_trainer(struct job *job)
{
    tr_trainer *trainer;
    job->settings.set = job->set;
    must_train(tr_trainer_create(&job->settings, &trainer));
    return trainer;
}

/* ---- runs ---- */

struct follow {
    struct outcome *outcome;
    tr_sha256 *losses;
};

static int listen(void *user, const struct tr_train_event *event)
{
    struct follow *follow = user;
    struct outcome *outcome = follow->outcome;
    switch (event->kind) {
    case TR_EVENT_STEP:
        outcome->steps_seen++;
        outcome->loss = event->loss;
        outcome->accuracy = event->accuracy;
        tr_sha256_add(follow->losses, &event->loss, sizeof event->loss);
        tr_sha256_add(follow->losses, &event->accuracy, sizeof event->accuracy);
        break;
    case TR_EVENT_EVALUATION:
        outcome->evaluations++;
        outcome->evaluated_loss = event->loss;
        outcome->evaluated_accuracy = event->accuracy;
        break;
    case TR_EVENT_WARNING:
        outcome->warnings++;
        snprintf(outcome->warning, sizeof outcome->warning, "%s", event->name);
        break;
    case TR_EVENT_SHARES:
        outcome->shared++;
        snprintf(outcome->shares, sizeof outcome->shares, "%s", event->name);
        break;
    case TR_EVENT_CHECKPOINT:
        outcome->checkpoints++;
        snprintf(outcome->checkpoint, sizeof outcome->checkpoint, "%s", event->name);
        break;
    case TR_EVENT_END:
        snprintf(outcome->hash, sizeof outcome->hash, "%s", event->hash);
        break;
    case TR_EVENT_PROGRESS:
        break;
    }
    return 0;
}

static void note_failure(struct outcome *outcome, tr_status status)
{
    outcome->status = status;
    if (status != TR_OK) snprintf(outcome->message, sizeof outcome->message, "%s", tr_error_message());
}

void trainer_outcome(tr_trainer *trainer, struct outcome *outcome)
{
    *outcome = (struct outcome){0};
    struct follow follow = {outcome, NULL};
    must_train(tr_sha256_begin(&follow.losses));
    note_failure(outcome, tr_trainer_run(trainer, listen, &follow));
    must_train(tr_sha256_end(&follow.losses, outcome->losses));
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    must_train(tr_trainer_info(trainer, &info));
    outcome->step = info.step;
    outcome->statistics.size = sizeof outcome->statistics;
    if (tr_trainer_statistics(trainer, &outcome->statistics) != TR_OK) return;
    for (int r = 0; r < outcome->statistics.ranks && r < OUTCOME_RANKS; r++)
        outcome->rank[r] = outcome->statistics.rank[r];
}

void job_outcome(struct job *job, struct outcome *outcome)
{
    tr_trainer *trainer;
    job->settings.set = job->set;
    tr_status status = tr_trainer_create(&job->settings, &trainer);
    if (status == TR_OK) {
        trainer_outcome(trainer, outcome);
    } else {
        *outcome = (struct outcome){0};
        note_failure(outcome, status);
    }
    tr_trainer_destroy(&trainer);
}

struct outcome begun_outcome(job_beginner *begin, const char *const *set)
{
    struct job job;
    struct outcome outcome;
    begin(&job, set);
    job_outcome(&job, &outcome);
    return outcome;
}

void expect_resumed(const struct outcome *alone, job_beginner *begin, const char *const *set,
                    const char *directory, int64_t stop, int64_t steps, const char *what)
{
    struct job job;
    struct outcome outcome;
    begin(&job, set);
    job.settings.steps = stop;
    job.settings.out = directory;
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    job_begin(&job, NULL);
    job.settings.resume = job.settings.out = directory;
    job.settings.journal = "";
    job.settings.steps = steps;
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s, resumed: %s", what, outcome.message);
    if (strcmp(outcome.hash, alone->hash) != 0) fail_msg("%s: another hash after a stop", what);
}

void expect_same(const struct outcome *expected, const struct outcome *got, const char *how)
{
    if (expected->status != TR_OK) fail_msg("the run to compare with failed: %s", expected->message);
    if (got->status != TR_OK) fail_msg("%s: %s", how, got->message);
    if (strcmp(expected->losses, got->losses) != 0)
        fail_msg("%s: losses on the way differ; after the last step %.17g instead of %.17g", how, got->loss,
                 expected->loss);
    if (strcmp(expected->hash, got->hash) != 0)
        fail_msg("%s: hash %s instead of %s", how, got->hash, expected->hash);
    if (expected->evaluations != got->evaluations || expected->evaluated_loss != got->evaluated_loss ||
        expected->evaluated_accuracy != got->evaluated_accuracy)
        fail_msg(
            "%s: the last of %d evaluations gave loss %.17g and accuracy %.17g instead of %.17g and %.17g",
            how, (int)got->evaluations, got->evaluated_loss, got->evaluated_accuracy,
            expected->evaluated_loss, expected->evaluated_accuracy);
}

const char *const *training_isas(void)
{
    static const char *const all[] = {TR_ISAS(TR_ISA_NAME)};
    enum { ISAS = sizeof all / sizeof *all };
    static const char *have[ISAS + 1];
    if (have[0]) return have;
    int count = 0;
    for (int i = 0; i < ISAS; i++) {
        tr_device *device;
        if (tr_device_create("cpu", 1, all[i], &device) == TR_OK)
            have[count++] = all[i];
        else
            fprintf(stderr, "skipped: %s (%s)\n", all[i], tr_error_message());
        tr_device_destroy(&device);
    }
    return have;
}

void must_write(const char *path, struct tr_text *text)
{
    char *bytes;
    must_train(tr_text_finish(text, &bytes));
    must_train(tr_file_write_atomic(NULL, path, bytes, strlen(bytes)));
    tr_free(bytes);
}
