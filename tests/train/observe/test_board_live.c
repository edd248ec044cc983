/* TensorBoard shows a run that is under way: what was told of is in the files, not only after the end. */
#include "support/files/event_files.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static char place[SCRATCH_PATH], test_place[SCRATCH_PATH];
static int64_t steps, evaluations;

static int look(void *user, const struct tr_train_event *event)
{
    (void)user;
    struct event_file file;
    if (event->kind != TR_EVENT_STEP && event->kind != TR_EVENT_EVALUATION) return 0;
    event_file_of(event->kind == TR_EVENT_STEP ? place : test_place, 0, 1, &file);
    assert_true(file.whole);
    assert_non_null(event_file_find(&file, "loss", event->step));
    event_file_release(&file);
    *(event->kind == TR_EVENT_STEP ? &steps : &evaluations) += 1;
    return 0;
}

static void a_run_is_seen_while_it_goes_on(void **state)
{
    (void)state;
    struct job job;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.log_every=1");
    job_set(&job, "train.evaluate_every=2");
    job.settings.steps = 4;
    job.settings.tensorboard = scratch_join(place, family_place, "board");
    scratch_join(test_place, place, "test");
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, look, NULL));
    tr_trainer_destroy(&trainer);
    assert_int_equal(steps, 4);
    assert_true(evaluations > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_seen_while_it_goes_on),
    };
    return cmocka_run_group_tests_name("train.board_live", tests, family_place_make, family_place_remove);
}
