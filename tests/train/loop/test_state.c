/* The state of a trainer in memory: saved between steps, gone on from alone and on many ranks, and checked.
 */
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

static void test_state(void **state)
{
    struct job job;
    char undisturbed[65], hash[65];
    void *bytes = NULL;
    size_t size = 0;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    (void)state;
    short_job_hash(undisturbed);
    short_job_begin(&job);
    tr_trainer *trainer = job_trainer(&job), *another = NULL;
    short_job_steps(trainer, 5);
    must_train(tr_trainer_save_state(trainer, &bytes, &size));
    /* The same piece by piece. */
    struct reading pieces = {bytes, size, 0, 0};
    must_train(tr_trainer_save_stream(trainer, compare_piece, &pieces));
    assert_int_equal(pieces.at, size);
    assert_int_equal(tr_trainer_save_stream(trainer, refuse_piece, NULL), TR_EIO);
    assert_said("42");
    /* Saving changes nothing. */
    short_job_finish(&trainer, hash);
    assert_string_equal(hash, undisturbed);
    /* With the model file, and with nothing else. */
    for (int alone = 0; alone < 2; alone++) {
        short_job_begin(&job);
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
        short_job_finish(&another, hash);
        assert_string_equal(hash, undisturbed);
    }
    /* From a function, in pieces of any size. */
    static const size_t sizes[] = {1, 1000, 1 << 20};
    for (size_t i = 0; i < 3; i++) {
        struct reading reading = {bytes, size, 0, sizes[i]};
        short_job_begin(&job);
        job.settings.state = (struct tr_run_state){.read = read_piece, .user = &reading};
        another = job_trainer(&job);
        short_job_finish(&another, hash);
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
    short_job_begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    short_job_steps(trainer, 2);
    must_train(tr_trainer_save_state(trainer, &bytes, &size));
    tr_trainer_destroy(&trainer);

    short_job_begin(&job);
    job.settings.state = (struct tr_run_state){.bytes = bytes, .size = size / 2};
    assert_int_equal(tr_trainer_create(&job.settings, &another), TR_EFORMAT);
    assert_said("the rest is missing");
    struct reading half = {bytes, size / 2, 0, 1000};
    job.settings.state = (struct tr_run_state){.read = read_piece, .user = &half};
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
    short_job_begin(&job);
    job_outcome(&job, &undisturbed);
    short_job_begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    short_job_steps(trainer, 5);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_state_is_checked),
        cmocka_unit_test(test_state_goes_to_all),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
