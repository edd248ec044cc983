/* Digests do not depend on who computed what, and tell runs apart where they part. */
#include "support/ranks.h"

#include "base/files/file.h"
#include "train/observe/digests.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct tr_file_content digests_in(const char *directory)
{
    struct tr_file_content content;
    char path[SCRATCH_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", directory, TR_DIGESTS_FILE);
    must_train(tr_file_read(path, 1 << 28, &content));
    return content;
}

static void expect_digests(const struct tr_file_content *expected, const char *directory, const char *how)
{
    struct tr_file_content got = digests_in(directory);
    if (got.size != expected->size || memcmp(got.data, expected->data, got.size) != 0)
        fail_msg("%s: other digests than those of one process", how);
    tr_file_content_free(&got);
}

static void ranks_and_strategies_do_not_show(void **state)
{
    (void)state;
    static const char *const strategies[] = {"allreduce", "pipeline", "parameter-server"};
    char out[SCRATCH_PATH + 32];
    for (int f = 0; f < family_count; f++) {
        struct job job;
        struct outcome alone, plain;
        family_job(&job, &families[f], family_place);
        job_set(&job, "train.microbatches=4");
        job.settings.steps = 4;
        job_outcome(&job, &plain);
        snprintf(out, sizeof out, "%s/alone%d", family_place, f);
        job.settings.out = out;
        job.settings.record_digests = 2;
        job_outcome(&job, &alone);
        assert_int_equal(alone.status, TR_OK);
        assert_string_equal(alone.hash, plain.hash);
        struct tr_file_content expected = digests_in(out);
        for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++) {
            struct rank ranks[RANKS];
            char how[160];
            /* Weights that two layers share keep them on one stage. */
            if (strcmp(families[f].name, "language") == 0 && strcmp(strategies[s], "pipeline") == 0) continue;
            snprintf(how, sizeof how, "%s by %s", families[f].name, strategies[s]);
            snprintf(out, sizeof out, "%s/run%d-%zu", family_place, f, s);
            job.settings.strategy = strategies[s];
            run_ranks(&job.settings, 2, false, ranks);
            expect_well(ranks, 2, how);
            assert_string_equal(ranks[0].outcome.hash, alone.hash);
            expect_digests(&expected, out, how);
        }
        tr_file_content_free(&expected);
    }
}

static void every_bit_and_place_counts(void **state)
{
    (void)state;
    float values[] = {1, 2, 0, 4}, other[] = {2, 1, 0, 4}, negative[] = {1, 2, -0.0f, 4};
    uint64_t whole = tr_digest_of(values, 0, 4);
    assert_true(whole == tr_digest_of(values, 0, 2) + tr_digest_of(values + 2, 2, 2));
    assert_true(whole != tr_digest_of(other, 0, 4));
    assert_true(whole != tr_digest_of(negative, 0, 4));
    assert_true(whole != tr_digest_of(values, 1, 4));
}

/* The digests of the last step are those of the parameters that the run ends with, and nothing is left out.
 */
/* The digest of a loss is its bits: of the sum over the batch, where `sums`. */
static void expect_loss(const tr_trainer *trainer, const char *line, double loss, bool sums)
{
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    uint32_t bits;
    float sum;
    assert_int_equal(sscanf(line, "{\"step\":3,\"loss\":\"%16" SCNx32 "\"", &bits), 1);
    memcpy(&sum, &bits, sizeof sum);
    must_train(tr_trainer_info(trainer, &info));
    assert_true(sum > 0);
    if (sums) assert_true(fabs((double)sum / (double)info.batch - loss) < 1e-6);
}

static int keep_loss(void *user, const struct tr_train_event *event)
{
    if (event->kind == TR_EVENT_STEP && event->step == 3) *(double *)user = event->loss;
    return 0;
}

static void digests_are_of_the_values(void **state)
{
    (void)state;
    struct job job;
    char out[SCRATCH_PATH];
    for (int f = 0; f < family_count; f++) {
        char name[32];
        double loss = NAN;
        snprintf(name, sizeof name, "values%d", f);
        family_job(&job, &families[f], family_place);
        job.settings.steps = 3;
        job.settings.out = scratch_join(out, family_place, name);
        job.settings.record_digests = 1;
        job_set(&job, "train.log_every=1");
        tr_trainer *trainer = job_trainer(&job);
        must_train(tr_trainer_run(trainer, keep_loss, &loss));
        struct tr_file_content digests = digests_in(out);
        const char *last = strstr(digests.data, "{\"step\":3,\"loss\":\"");
        assert_non_null(last);
        expect_loss(trainer, last, loss, f == 0);
        assert_null(strstr(last, "\"0000000000000000\""));
        const char *gradient = strstr(last, "\"gradient\":{"), *parameters = strstr(last, "\"parameters\":{");
        assert_true(gradient && parameters && parameters > gradient);
        for (int32_t i = 0; i < tr_trainer_parameter_count(trainer); i++) {
            struct tr_parameter_info info = TR_PARAMETER_INFO_INIT;
            char entry[160];
            int64_t count = 1;
            must_train(tr_trainer_parameter_at(trainer, i, &info));
            for (int32_t k = 0; k < info.dimensions; k++) count *= info.shape[k];
            float *values = malloc((size_t)count * sizeof *values);
            assert_non_null(values);
            must_train(tr_trainer_parameter(trainer, info.name, values, count));
            snprintf(entry, sizeof entry, "\"%s\":\"%016" PRIx64 "\"", info.name,
                     tr_digest_of(values, 0, count));
            if (!strstr(parameters, entry)) fail_msg("no %s in %s", entry, parameters);
            snprintf(entry, sizeof entry, "\"%s\":\"", info.name);
            assert_non_null(strstr(gradient, entry));
            free(values);
        }
        tr_file_content_free(&digests);
        tr_trainer_destroy(&trainer);
    }
}

static void what_cannot_be_recorded_is_refused(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    family_job(&job, &families[0], family_place);
    job.settings.record_digests = 1;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_EINVAL);
    assert_non_null(strstr(outcome.message, "output directory"));
    job.settings.record_digests = -1;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_EINVAL);
}

/* A pipe that nobody reads would hold the run up for ever, and a link would lead it to a file of others. */
static void what_is_in_its_place_is_left_alone(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    char out[SCRATCH_PATH], path[SCRATCH_PATH];
    must_train(tr_file_make_directory(NULL, scratch_join(out, family_place, "pipe")));
    assert_int_equal(mkfifo(scratch_join(path, family_place, "pipe/" TR_DIGESTS_FILE), 0600), 0);
    family_job(&job, &families[0], family_place);
    job.settings.steps = 2;
    job.settings.out = out;
    job.settings.record_digests = 1;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_EIO);
    assert_non_null(strstr(outcome.message, "a regular file is needed"));
}

static const char *parameters_in(const char *text)
{
    return strstr(text, "\"parameters\":{");
}

static const char *last_parameters(const char *text)
{
    const char *last = NULL;
    for (const char *next; (next = parameters_in(text)); text = next + 1) last = next;
    return last;
}

/* Even after its first step a run adds to what it has recorded. */
static void a_run_that_goes_on_adds_to_them(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    char out[SCRATCH_PATH];
    scratch_join(out, family_place, "goes-on");
    for (int64_t begun = 0; begun < 3; begun++) {
        struct tr_file_content before = {0}, after;
        if (begun > 0) before = digests_in(out);
        family_job(&job, &families[0], family_place);
        job.settings.steps = begun + 1;
        job.settings.out = out;
        job.settings.record_digests = 1;
        if (begun > 0) job.settings.resume = out;
        job.settings.resume_changed = true;
        job_outcome(&job, &outcome);
        if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
        after = digests_in(out);
        assert_true(after.size > before.size);
        if (begun > 0) {
            assert_memory_equal(after.data, before.data, before.size);
            /* It begins with the parameters that it ended with. */
            const char *ended = last_parameters(before.data),
                       *begins = parameters_in(after.data + before.size);
            assert_non_null(ended);
            assert_non_null(begins);
            assert_memory_equal(begins, ended, strcspn(ended, "}") + 1);
            tr_file_content_free(&before);
        }
        tr_file_content_free(&after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_and_strategies_do_not_show),
        cmocka_unit_test(every_bit_and_place_counts),
        cmocka_unit_test(digests_are_of_the_values),
        cmocka_unit_test(what_cannot_be_recorded_is_refused),
        cmocka_unit_test(what_is_in_its_place_is_left_alone),
        cmocka_unit_test(a_run_that_goes_on_adds_to_them),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
