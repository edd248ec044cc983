/* What programs keep of a trainer between steps: its state at a path, predictors and exports of it. */
#include "train/loop/short_job.h"

#include "support/ranks.h"

#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- at a path ---- */

static int64_t entries(const char *directory)
{
    char command[SCRATCH_PATH + 32], text[32] = "";
    snprintf(command, sizeof command, "ls '%s' | grep -c '^checkpoint-0'", directory);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    if (!fgets(text, sizeof text, pipe)) fail_msg("%s", command);
    pclose(pipe);
    return atol(text);
}

static int stop_at(void *user, const struct tr_train_event *event)
{
    return event->kind == TR_EVENT_STEP && event->step == *(int64_t *)user;
}

static void test_save_at(void **state)
{
    struct job job;
    char undisturbed[65], hash[65], out[SCRATCH_PATH], kept[SCRATCH_PATH];
    char *path = NULL, *again = NULL;
    int64_t last = 4;
    (void)state;
    short_job_hash(undisturbed);
    short_job_begin(&job);
    job.settings.out = scratch_join(out, family_place, "run-kept");
    tr_trainer *trainer = job_trainer(&job);
    assert_int_equal(tr_trainer_run(trainer, stop_at, &last), TR_EINTERRUPTED);
    assert_int_equal(entries(out), 1);
    /* The stop has saved already. */
    must_train(tr_trainer_save(trainer, &path));
    must_train(tr_trainer_save(trainer, &again));
    assert_string_equal(path, again);
    assert_non_null(strstr(path, "checkpoint-00000004"));
    assert_int_equal(entries(out), 1);
    tr_text_free(again);
    short_job_steps(trainer, 1);
    must_train(tr_trainer_save(trainer, &again));
    assert_string_not_equal(path, again);
    assert_int_equal(entries(out), 2);
    /* Elsewhere, with parents, and once only. */
    must_train(tr_trainer_save_at(trainer, scratch_join(kept, family_place, "kept/here/fifth")));
    assert_int_equal(tr_trainer_save_at(trainer, kept), TR_EIO);
    assert_said("is there already");
    assert_int_equal(entries(out), 2);
    char command[2 * SCRATCH_PATH + 32];
    snprintf(command, sizeof command, "diff -r '%s' '%s'", kept, again);
    assert_int_equal(system(command), 0);
    tr_trainer_destroy(&trainer);
    short_job_begin(&job);
    job.settings.resume = kept;
    trainer = job_trainer(&job);
    short_job_finish(&trainer, hash);
    assert_string_equal(hash, undisturbed);
    /* What was saved of this state and is gone is saved anew. */
    short_job_begin(&job);
    job.settings.out = scratch_join(out, family_place, "run-gone");
    trainer = job_trainer(&job);
    tr_text_free(path);
    must_train(tr_trainer_save(trainer, &path));
    snprintf(command, sizeof command, "rm -r '%s'", path);
    assert_int_equal(system(command), 0);
    must_train(tr_trainer_save(trainer, NULL));
    assert_int_equal(entries(out), 1);
    tr_trainer_destroy(&trainer);
    tr_text_free(path);
    tr_text_free(again);
}

/* ---- predictors ---- */

#define SHOWN 20
static float answers[4][SHOWN * 10];

static void predict(tr_predictor *predictor, const tr_source *source, float *to)
{
    must_train(tr_predictor_source(predictor, source, 0, SHOWN, to));
}

static void test_predictor(void **state)
{
    struct job job;
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    char path[SCRATCH_PATH], hash[65];
    void *bytes = NULL;
    size_t size = 0;
    (void)state;
    short_job_begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    short_job_steps(trainer, 6);
    must_train(tr_trainer_save_at(trainer, scratch_join(path, family_place, "for-predictor")));
    must_train(tr_trainer_save_state(trainer, &bytes, &size));
    must_train(tr_trainer_hash(trainer, hash));
    for (int averages = 0; averages < 2; averages++) {
        tr_predictor *from[3] = {NULL};
        tr_source *source = NULL;
        settings.use_average = averages;
        settings.checkpoint = path;
        must_train(tr_predictor_create(&settings, &from[0]));
        settings.state = (struct tr_run_state){.bytes = bytes, .size = size};
        assert_int_equal(tr_predictor_create(&settings, &from[1]), TR_EINVAL);
        settings.checkpoint = NULL;
        must_train(tr_predictor_create(&settings, &from[1]));
        memset(&settings.state, 0, sizeof settings.state);
        must_train(tr_trainer_predictor(trainer, &settings, &from[2]));
        must_train(tr_predictor_open_data(from[0], "test", &source));
        for (int i = 0; i < 3; i++) {
            predict(from[i], source, answers[i]);
            assert_memory_equal(answers[i], answers[0], sizeof answers[0]);
            must_train(tr_predictor_info(from[i], &info));
            assert_string_equal(info.hash, hash);
            assert_int_equal(info.step, 6);
        }
        assert_string_equal(info.checkpoint, "(trainer)");
        if (averages) assert_memory_not_equal(answers[0], answers[3], sizeof answers[0]);
        memcpy(answers[3], answers[0], sizeof answers[0]);
        for (int i = 0; i < 3; i++) tr_predictor_destroy(&from[i]);
        tr_source_close(&source);
    }
    /* It stays as it was, and outlives the trainer. */
    tr_predictor *predictor = NULL;
    tr_source *source = NULL;
    must_train(tr_trainer_predictor(trainer, &settings, &predictor));
    short_job_steps(trainer, 1);
    tr_trainer_destroy(&trainer);
    must_train(tr_predictor_open_data(predictor, "test", &source));
    predict(predictor, source, answers[0]);
    assert_memory_equal(answers[0], answers[3], sizeof answers[0]);
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
    tr_state_free(bytes);
}

/* An exporter takes the state as it takes a path. */
static void test_export(void **state)
{
    struct job job;
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    char path[SCRATCH_PATH], file[2][SCRATCH_PATH], command[3 * SCRATCH_PATH];
    void *bytes = NULL;
    size_t size = 0;
    (void)state;
    short_job_begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    short_job_steps(trainer, 2);
    must_train(tr_trainer_save_at(trainer, scratch_join(path, family_place, "for-export")));
    must_train(tr_trainer_save_state(trainer, &bytes, &size));
    tr_trainer_destroy(&trainer);
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        tr_exporter *exporter = NULL;
        settings.checkpoint = in_memory ? NULL : path;
        settings.state = (struct tr_run_state){.bytes = in_memory ? bytes : NULL, .size = size};
        must_train(tr_exporter_create(&settings, &exporter));
        scratch_join(file[in_memory], family_place, in_memory ? "memory.safetensors" : "path.safetensors");
        must_train(tr_exporter_write(exporter, "safetensors", file[in_memory]));
        tr_exporter_destroy(&exporter);
    }
    snprintf(command, sizeof command, "cmp '%s' '%s'", file[0], file[1]);
    assert_int_equal(system(command), 0);
    settings.checkpoint = path;
    tr_exporter *none = NULL;
    assert_int_equal(tr_exporter_create(&settings, &none), TR_EINVAL);
    tr_state_free(bytes);
}

static float by_ranks[SHOWN * 10];

static void *predict_as_rank(void *user)
{
    struct rank *rank = user;
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    tr_trainer *trainer = NULL;
    tr_predictor *predictor = NULL;
    tr_source *source = NULL;
    rank->outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    for (int i = 0; i < 6 && rank->outcome.status == TR_OK; i++)
        rank->outcome.status = tr_trainer_step(trainer, NULL);
    if (rank->outcome.status == TR_OK)
        rank->outcome.status = tr_trainer_predictor(trainer, &settings, &predictor);
    assert_true(rank->outcome.status != TR_OK || !predictor == (tr_comm_rank(rank->comm) > 0));
    if (predictor) {
        must_train(tr_predictor_open_data(predictor, "test", &source));
        predict(predictor, source, by_ranks);
    }
    if (rank->outcome.status != TR_OK)
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* Also where no process has all parameters. */
static void test_predictor_of_ranks(void **state)
{
    static const char *const strategies[] = {"allreduce", "pipeline", "parameter-server"};
    struct job job;
    struct rank ranks[2];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        short_job_begin(&job);
        job.settings.strategy = strategies[i];
        memset(by_ranks, 0, sizeof by_ranks);
        run_ranks_by(predict_as_rank, &job.settings, 2, 0, ranks);
        expect_well(ranks, 2, strategies[i]);
        assert_memory_equal(by_ranks, answers[3], sizeof by_ranks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_save_at),
        cmocka_unit_test(test_predictor),
        cmocka_unit_test(test_predictor_of_ranks),
        cmocka_unit_test(test_export),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
