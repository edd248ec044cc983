/* Output directories that are moved, replaced or removed while a run writes to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/training.h"

#include "checkpoint/checkpoint.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define EVERY 5
#define STEPS 20

static char out[SCRATCH_PATH], moved[SCRATCH_PATH];

static void begin(struct job *job)
{
    family_job(job, &families[0], family_place);
    job_set(job, "train.checkpoint_every=5");
    job_set(job, "train.keep=2");
    job->settings.steps = STEPS;
    job->settings.out = out;
}

/* What the listener of the first run does at its first checkpoint. */
enum { LET, MOVE, MOVE_AND_TAKE, REMOVE } deed;
static int checkpoints;

static void take_place(void)
{
    struct job job;
    struct outcome second;
    begin(&job);
    job_outcome(&job, &second);
    must_train(second.status);
    assert_int_equal(second.checkpoints, STEPS / EVERY);
}

static int listen(void *user, const struct tr_train_event *event)
{
    (void)user;
    if (event->kind != TR_EVENT_CHECKPOINT || checkpoints++ > 0) return 0;
    if (deed == MOVE || deed == MOVE_AND_TAKE) assert_int_equal(rename(out, moved), 0);
    if (deed == MOVE_AND_TAKE) take_place();
    if (deed == REMOVE) must_train(tr_file_remove(NULL, out));
    return 0;
}

static tr_status run_first(void)
{
    struct job job;
    char name[32];
    static int number;
    snprintf(name, sizeof name, "run-%d", number);
    scratch_join(out, family_place, name);
    snprintf(name, sizeof name, "moved-%d", number++);
    scratch_join(moved, family_place, name);
    checkpoints = 0;
    begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    tr_status status = tr_trainer_run(trainer, listen, NULL);
    tr_trainer_destroy(&trainer);
    return status;
}

/* The directory holds good checkpoints of these steps, and nothing else of that kind. */
static void expect_checkpoints(const char *directory, int64_t first, int64_t second)
{
    struct tr_file_names names;
    int64_t found = 0;
    must_train(tr_file_list(NULL, directory, &names));
    for (int64_t i = 0; i < names.count; i++) {
        tr_checkpoint *checkpoint;
        char path[2 * SCRATCH_PATH];
        if (strncmp(names.name[i], "checkpoint", 10) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", directory, names.name[i]);
        must_train(tr_checkpoint_open(path, &checkpoint));
        assert_int_equal(tr_checkpoint_facts(checkpoint)->step, found++ == 0 ? first : second);
        tr_checkpoint_close(&checkpoint);
    }
    assert_int_equal(found, second ? 2 : 1);
    tr_file_names_free(&names);
}

static void left_alone_all_is_well(void **state)
{
    (void)state;
    deed = LET;
    must_train(run_first());
    expect_checkpoints(out, STEPS - EVERY, STEPS);
}

static void expect_named(void)
{
    if (!strstr(tr_error_message(), moved)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), moved);
}

static void a_moved_directory_ends_the_run(void **state)
{
    (void)state;
    deed = MOVE;
    assert_int_equal(run_first(), TR_EIO);
    expect_named();
    expect_checkpoints(moved, EVERY, 2 * EVERY);
    assert_false(tr_file_exists(out));
}

static void a_second_run_in_its_place_loses_nothing(void **state)
{
    (void)state;
    deed = MOVE_AND_TAKE;
    assert_int_equal(run_first(), TR_EIO);
    expect_named();
    expect_checkpoints(moved, EVERY, 2 * EVERY);
    expect_checkpoints(out, STEPS - EVERY, STEPS);
}

/* -1 where the system does not tell. */
static int open_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    if (!directory) return -1;
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

/* The lock on the one that was removed goes with it. */
static void a_removed_directory_is_made_anew(void **state)
{
    (void)state;
    int before = open_files();
    deed = REMOVE;
    must_train(run_first());
    expect_checkpoints(out, STEPS - EVERY, STEPS);
    assert_int_equal(open_files(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_alone_all_is_well),
        cmocka_unit_test(a_moved_directory_ends_the_run),
        cmocka_unit_test(a_second_run_in_its_place_loses_nothing),
        cmocka_unit_test(a_removed_directory_is_made_anew),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
