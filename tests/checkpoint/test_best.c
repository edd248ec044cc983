/* The mark of the best checkpoint: it stays while others go, moves in one step, and never points elsewhere.
 */
#include "base/files/file_fault.h"
#include "base/files/file_power.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/sample.h"
#include "scratch.h"

#include "base/fail.h"
#include "base/text/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char run[SCRATCH_PATH];

static void no_log(void *user, enum tr_log_level level, const char *message)
{
    (void)user, (void)level, (void)message;
}

static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_join(run, scratch_place, "run");
    tr_log_set_sink(no_log, NULL, TR_LOG_DEBUG);
    return 0;
}

static int tear_down(void **state)
{
    tr_log_set_sink(NULL, NULL, TR_LOG_DEBUG);
    return scratch_place_remove(state);
}

static const char *name_of(int64_t step)
{
    static char name[64];
    snprintf(name, sizeof name, "checkpoint-%08lld", (long long)step);
    return name;
}

static void save(int64_t step)
{
    assert_int_equal(sample_save(NULL, run, 2, step), TR_OK);
}

static void mark(int64_t step)
{
    assert_int_equal(tr_checkpoint_mark_best(NULL, run, name_of(step)), TR_OK);
}

/* The step of the marked checkpoint in a directory, whole; -1 where there is none. */
static int64_t best_in(const char *directory)
{
    char path[SCRATCH_PATH];
    tr_checkpoint *checkpoint;
    tr_status status = tr_checkpoint_open_best(directory, &checkpoint);
    if (status == TR_ENOTFOUND) return -1;
    assert_int_equal(status, TR_OK);
    int64_t step = tr_checkpoint_facts(checkpoint)->step;
    tr_checkpoint_close(&checkpoint);
    assert_int_equal(sample_load(scratch_join(path, directory, TR_CHECKPOINT_BEST), NULL, NULL), step);
    return step;
}

static bool has_entry(const char *name)
{
    char path[SCRATCH_PATH];
    return tr_file_exists(scratch_join(path, run, name));
}

static bool has(int64_t step)
{
    return has_entry(name_of(step));
}

static void the_marked_one_stays(void **state)
{
    (void)state;
    int64_t latest;
    save(1);
    save(2);
    assert_int_equal(best_in(run), -1);
    assert_non_null(strstr(tr_error_message(), "train.keep_best"));
    mark(2);
    for (int64_t step = 3; step <= 6; step++) {
        save(step);
        assert_int_equal(best_in(run), 2);
    }
    assert_true(has(2) && !has(3) && !has(4) && has(5) && has(6));
    assert_int_equal(tr_checkpoint_latest(run, &latest), TR_OK);
    assert_int_equal(latest, 6);
    assert_int_equal(sample_load(run, NULL, NULL), 6);
    /* The one that was the best before goes like any other. */
    mark(5);
    save(7);
    save(8);
    assert_true(!has(2) && has(5) && !has(6) && has(7) && has(8));
    assert_int_equal(best_in(run), 5);
    /* Saved once more, the step has two; the marked one is left alone. */
    mark(8);
    save(8);
    assert_true(has(8));
    assert_int_equal(best_in(run), 8);
    /* So it stays when the step is saved again; the one between goes. */
    save(8);
    assert_true(has(8) && has_entry("checkpoint-00000008-3") && !has_entry("checkpoint-00000008-2"));
    assert_int_equal(best_in(run), 8);
}

static void a_future_that_is_given_up_takes_its_mark_along(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    for (int64_t step = 1; step <= 3; step++) save(step);
    mark(3);
    save(2);
    assert_int_equal(best_in(run), -1);
    assert_true(tr_file_exists(scratch_join(path, run, "checkpoint-00000003.abandoned")));
}

static void marks_are_settled_by_step(void **state)
{
    (void)state;
    bool there;
    for (int64_t step = 1; step <= 3; step++) save(step);
    assert_int_equal(tr_checkpoint_settle_best(NULL, run, 2, &there), TR_OK);
    assert_true(there);
    assert_int_equal(best_in(run), 2);
    assert_int_equal(tr_checkpoint_settle_best(NULL, run, 1, &there), TR_OK); /* has gone */
    assert_false(there);
    assert_int_equal(best_in(run), -1);
    mark(3);
    /* Of a step that was saved twice the mark goes to what was saved last. */
    char path[SCRATCH_PATH], before[SCRATCH_PATH] = "", after[SCRATCH_PATH] = "";
    scratch_join(path, run, TR_CHECKPOINT_BEST);
    save(3);
    assert_true(readlink(path, before, sizeof before - 1) > 0);
    assert_int_equal(tr_checkpoint_settle_best(NULL, run, 3, &there), TR_OK);
    assert_true(there);
    assert_true(readlink(path, after, sizeof after - 1) > 0);
    assert_string_equal(before, name_of(3));
    assert_string_not_equal(after, before);
    assert_int_equal(best_in(run), 3);
    assert_int_equal(tr_checkpoint_settle_best(NULL, run, -1, &there), TR_OK);
    assert_false(there);
    assert_int_equal(best_in(run), -1);
}

/* A text that is no name of a checkpoint is no mark, whatever it points at. */
static void other_links_are_no_marks(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    save(1);
    save(2);
    scratch_join(path, run, TR_CHECKPOINT_BEST);
    assert_int_equal(symlink("../run/checkpoint-00000001", path), 0);
    save(3);
    save(4);
    assert_false(has(1));
    mark(4); /* takes its place */
    assert_int_equal(best_in(run), 4);
}

/* Killed at every call, a move of the mark leaves the old one or the new one. */
static void kills_leave_the_old_or_the_new(void **state)
{
    (void)state;
    bool finished = false, moved = false, stayed = false;
    for (int64_t at = 1; !finished; at++) {
        assert_int_equal(tr_file_remove(NULL, run), TR_OK);
        save(1);
        save(2);
        mark(1);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct fault_files fault;
            fault_files_init(&fault, FAULT_KILL, 0, at, false);
            _exit(tr_checkpoint_mark_best(&fault.system, run, name_of(2)) == TR_OK ? 0 : 1);
        }
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result));
        finished = WEXITSTATUS(result) == 0;
        assert_true(finished || WEXITSTATUS(result) == FAULT_EXIT_CODE);
        int64_t best = best_in(run);
        assert_true(best == 2 || (best == 1 && !finished));
        moved |= best == 2 && !finished;
        stayed |= best == 1;
        mark(2); /* whatever was left behind */
        assert_int_equal(best_in(run), 2);
        assert_int_equal(sample_count(run, ".tmp"), 0);
        assert_true(at < 20);
    }
    assert_true(moved && stayed);
}

#define MOMENTS 6
#define IMAGES  1500

/* A history of saves and of marks: a checkpoint is marked after it was saved, and others follow. */
static const struct {
    int64_t save, mark; /* 0: none */
} moments[MOMENTS] = {{1, 1}, {2, 0}, {3, 3}, {4, 0}, {5, 5}, {6, 0}};

static void power_cuts_leave_a_whole_one(void **state)
{
    (void)state;
    struct power_files *power = power_create();
    const tr_file_system files = power_system(power);
    int64_t marked_at[MOMENTS], begun_at[MOMENTS];
    for (int i = 0; i < MOMENTS; i++) {
        assert_int_equal(sample_save(&files, "/run", 2, moments[i].save), TR_OK);
        begun_at[i] = power_operations(power);
        if (moments[i].mark)
            assert_int_equal(tr_checkpoint_mark_best(&files, "/run", name_of(moments[i].mark)), TR_OK);
        marked_at[i] = power_operations(power);
    }
    int64_t operations = power_operations(power);
    for (uint32_t image = 0; image < IMAGES; image++) {
        char disk[SCRATCH_PATH], image_run[SCRATCH_PATH];
        int64_t cut = image % (operations + 1), before = -1, after = -1;
        scratch_join(disk, scratch_place, "disk");
        assert_int_equal(tr_file_make_directory(NULL, disk), TR_OK);
        power_write_image(power, cut, image, disk);
        for (int i = 0; i < MOMENTS; i++) {
            if (moments[i].mark && marked_at[i] <= cut) before = after = moments[i].mark;
            if (moments[i].mark && begun_at[i] < cut && marked_at[i] > cut) after = moments[i].mark;
        }
        scratch_join(image_run, disk, "run");
        int64_t best = tr_file_exists(image_run) ? best_in(image_run) : -1;
        if (best != before && best != after)
            fail_msg("cut after %ld of %ld operations, image %u: step %ld is marked, not %ld or %ld",
                     (long)cut, (long)operations, image, (long)best, (long)before, (long)after);
        scratch_remove(disk);
    }
    power_destroy(power);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_marked_one_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_future_that_is_given_up_takes_its_mark_along, set_up, tear_down),
        cmocka_unit_test_setup_teardown(marks_are_settled_by_step, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_links_are_no_marks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kills_leave_the_old_or_the_new, set_up, tear_down),
        cmocka_unit_test_setup_teardown(power_cuts_leave_a_whole_one, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
