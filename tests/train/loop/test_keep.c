/* What programs keep of a trainer between steps: its state in memory and at a path, and predictors of it. */
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

/* A family with dropout, moments and a moving average, of 15 steps. */
static void begin(struct job *job)
{
    for (int i = 0; i < family_count; i++)
        if (strcmp(families[i].name, "mnist-mlp") == 0) family_job(job, &families[i], family_place);
    job->settings.steps = 12;
    job_set(job, "train.log_every=1");
    job->settings.set = job->set;
}

static void steps(tr_trainer *trainer, int64_t count)
{
    for (int64_t i = 0; i < count; i++) must_train(tr_trainer_step(trainer, NULL));
}

static void finish(tr_trainer **trainer, char hash[65])
{
    must_train(tr_trainer_run(*trainer, NULL, NULL));
    must_train(tr_trainer_hash(*trainer, hash));
    tr_trainer_destroy(trainer);
}

static void hash_undisturbed(char hash[65])
{
    struct job job;
    begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    finish(&trainer, hash);
}

/* ---- state in memory ---- */

struct reading {
    const char *bytes;
    size_t size, at, piece;
};

static int64_t read_piece(void *user, void *to, size_t room)
{
    struct reading *reading = user;
    size_t left = reading->size - reading->at, size = left < reading->piece ? left : reading->piece;
    if (size > room) size = room;
    memcpy(to, reading->bytes + reading->at, size);
    reading->at += size;
    return (int64_t)size;
}

static int compare_piece(void *user, const void *bytes, size_t size)
{
    struct reading *reading = user;
    assert_true(size <= reading->size - reading->at);
    assert_memory_equal(bytes, reading->bytes + reading->at, size);
    reading->at += size;
    return 0;
}

static int refuse_piece(void *user, const void *bytes, size_t size)
{
    (void)user;
    (void)bytes;
    (void)size;
    return 42;
}

static int64_t refuse_reading(void *user, void *to, size_t room)
{
    (void)user;
    (void)to;
    (void)room;
    return -7;
}

static void assert_said(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

static void test_state(void **state)
{
    struct job job;
    char undisturbed[65], hash[65];
    void *bytes = NULL;
    size_t size = 0;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    (void)state;
    hash_undisturbed(undisturbed);
    begin(&job);
    tr_trainer *trainer = job_trainer(&job), *another = NULL;
    steps(trainer, 5);
    must_train(tr_trainer_save_state(trainer, &bytes, &size));
    /* The same piece by piece. */
    struct reading pieces = {bytes, size, 0, 0};
    must_train(tr_trainer_save_stream(trainer, compare_piece, &pieces));
    assert_int_equal(pieces.at, size);
    assert_int_equal(tr_trainer_save_stream(trainer, refuse_piece, NULL), TR_EIO);
    assert_said("42");
    /* Saving changes nothing. */
    finish(&trainer, hash);
    assert_string_equal(hash, undisturbed);
    /* With the model file, and with nothing else. */
    for (int alone = 0; alone < 2; alone++) {
        begin(&job);
        if (alone) {
            struct tr_train_settings only = TR_TRAIN_SETTINGS_INIT;
            only.threads = 1;
            job.settings = only;
        }
        job.settings.state.bytes = bytes;
        job.settings.state.size = size;
        another = job_trainer(&job);
        must_train(tr_trainer_info(another, &info));
        assert_int_equal(info.step, 5);
        assert_string_equal(info.resumed, "(memory)");
        finish(&another, hash);
        assert_string_equal(hash, undisturbed);
    }
    /* From a function, in pieces of any size. */
    static const size_t sizes[] = {1, 1000, 1 << 20};
    for (size_t i = 0; i < 3; i++) {
        struct reading reading = {bytes, size, 0, sizes[i]};
        begin(&job);
        job.settings.state = (struct tr_run_state){.read = read_piece, .user = &reading};
        another = job_trainer(&job);
        finish(&another, hash);
        assert_string_equal(hash, undisturbed);
    }
    tr_state_free(bytes);
}

static void test_state_is_checked(void **state)
{
    struct job job;
    void *bytes = NULL;
    size_t size = 0;
    tr_trainer *another = NULL;
    (void)state;
    begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    steps(trainer, 2);
    must_train(tr_trainer_save_state(trainer, &bytes, &size));
    tr_trainer_destroy(&trainer);

    begin(&job);
    job.settings.state = (struct tr_run_state){.bytes = bytes, .size = size / 2};
    assert_int_equal(tr_trainer_create(&job.settings, &another), TR_EFORMAT);
    assert_said("the rest is missing");
    job.settings.state = (struct tr_run_state){.bytes = bytes, .size = 0};
    assert_int_equal(tr_trainer_create(&job.settings, &another), TR_EFORMAT);
    ((char *)bytes)[size / 3] ^= 1; /* among the parameters */
    job.settings.state = (struct tr_run_state){.bytes = bytes, .size = size};
    assert_int_equal(tr_trainer_create(&job.settings, &another), TR_ECORRUPT);
    assert_said("(memory)");
    ((char *)bytes)[size / 3] ^= 1;
    job.settings.state = (struct tr_run_state){.read = refuse_reading};
    assert_int_equal(tr_trainer_create(&job.settings, &another), TR_EIO);
    assert_said("-7");
    job.settings.state = (struct tr_run_state){.bytes = bytes, .size = size, .read = refuse_reading};
    assert_int_equal(tr_trainer_create(&job.settings, &another), TR_EINVAL);
    /* Another job does not go on from it, as from a file. */
    job.settings.state = (struct tr_run_state){.bytes = bytes, .size = size};
    job_set(&job, "optimizer.rate=0.5");
    assert_int_equal(tr_trainer_create(&job.settings, &another), TR_EMISMATCH);
    assert_said("other settings");
    job.settings.resume_changed = true;
    must_train(tr_trainer_create(&job.settings, &another));
    tr_trainer_destroy(&another);
    job.settings.resume = "elsewhere";
    assert_int_equal(tr_trainer_create(&job.settings, &another), TR_EINVAL);
    assert_said("`state`");
    tr_state_free(bytes);
}

/* Only the first process has the state. */
static void test_state_goes_to_all(void **state)
{
    struct job job;
    struct rank ranks[3];
    struct outcome undisturbed;
    void *bytes = NULL;
    size_t size = 0;
    (void)state;
    begin(&job);
    job_outcome(&job, &undisturbed);
    begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    steps(trainer, 5);
    must_train(tr_trainer_save_state(trainer, &bytes, &size));
    tr_trainer_destroy(&trainer);
    struct tr_train_settings first = job.settings;
    first.state = (struct tr_run_state){.bytes = bytes, .size = size};
    const struct tr_train_settings *each[] = {&first, &job.settings, &job.settings};
    for (int apart = 0; apart < 2; apart++) {
        run_ranks_each(each, 3, apart, ranks);
        expect_ranks(&undisturbed, ranks, 3, "from the first one's memory");
        assert_int_equal(ranks[0].outcome.steps_seen, 7);
    }
    tr_state_free(bytes);
}

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
    hash_undisturbed(undisturbed);
    begin(&job);
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
    steps(trainer, 1);
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
    begin(&job);
    job.settings.resume = kept;
    trainer = job_trainer(&job);
    finish(&trainer, hash);
    assert_string_equal(hash, undisturbed);
    /* What was saved of this state and is gone is saved anew. */
    begin(&job);
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
    begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    steps(trainer, 6);
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
    steps(trainer, 1);
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
    begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    steps(trainer, 2);
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
        begin(&job);
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
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_state_is_checked),
        cmocka_unit_test(test_state_goes_to_all),
        cmocka_unit_test(test_save_at),
        cmocka_unit_test(test_predictor),
        cmocka_unit_test(test_predictor_of_ranks),
        cmocka_unit_test(test_export),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
