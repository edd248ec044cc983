/* Starting afresh in the directory of an earlier run: its checkpoints and what TensorBoard reads go, all else
 * stays. */
#include "train/setup/clear.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/sample.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define EVENTS "events.out.tfevents.1700000000.host"

static char run[SCRATCH_PATH];

static const char *const gone[] = {EVENTS, "test/" EVENTS, "validation/" EVENTS};
static const char *const kept[] = {"log.jsonl", "checkpoint-3.txt", "test/notes", ("other/" EVENTS)};

static bool is_there(const char *name)
{
    char path[SCRATCH_PATH];
    return tr_file_exists(scratch_join(path, run, name));
}

static void put(const char *name)
{
    char path[SCRATCH_PATH];
    char *folder = tr_path_parent(scratch_join(path, run, name));
    assert_int_equal(tr_file_make_directories(NULL, folder), TR_OK);
    assert_int_equal(tr_file_write_atomic(NULL, path, "text", 4), TR_OK);
    tr_free(folder);
}

/* Three checkpoints, the second of which is the best, and files of all kinds. */
static void fill(void)
{
    bool marked;
    for (int64_t step = 1; step <= 3; step++) assert_int_equal(sample_save(NULL, run, 5, step), TR_OK);
    assert_int_equal(tr_checkpoint_settle_best(NULL, run, 2, &marked), TR_OK);
    assert_true(marked && is_there(TR_CHECKPOINT_BEST));
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) put(gone[i]);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) put(kept[i]);
}

static void expect_cleared(void)
{
    int64_t step;
    assert_int_equal(tr_checkpoint_latest(run, &step), TR_OK);
    assert_int_equal(step, -1);
    assert_false(is_there(TR_CHECKPOINT_BEST));
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) assert_false(is_there(gone[i]));
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) assert_true(is_there(kept[i]));
}

static void a_directory_is_cleared(void **state)
{
    (void)state;
    fill();
    assert_int_equal(tr_run_clear(run), TR_OK);
    expect_cleared();
    assert_int_equal(tr_run_clear(run), TR_OK);
    expect_cleared();
}

static void where_nothing_is_nothing_goes(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    put("file");
    assert_int_equal(tr_run_clear(scratch_join(path, run, "nowhere")), TR_OK);
    assert_int_equal(tr_run_clear(scratch_join(path, run, "file")), TR_OK);
    assert_true(is_there("file"));
}

static void every_allocation_fails(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        fill();
        int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = tr_run_clear(run);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
        if (done) expect_cleared();
        assert_int_equal(tr_file_remove(NULL, run), TR_OK); /* all that is left */
    }
    assert_int_equal(tr_file_make_directories(NULL, run), TR_OK);
}

static int make(void **state)
{
    (void)state;
    scratch_make(run);
    return 0;
}

static int clean(void **state)
{
    (void)state;
    scratch_remove(run);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_directory_is_cleared, make, clean),
        cmocka_unit_test_setup_teardown(where_nothing_is_nothing_goes, make, clean),
        cmocka_unit_test_setup_teardown(every_allocation_fails, make, clean),
    };
    return cmocka_run_group_tests_name("train.clear", tests, NULL, NULL);
}
