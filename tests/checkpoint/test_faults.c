/* Checkpoints in bad times: whatever fails at whatever moment, the previous checkpoint or the new one loads,
 * never neither and never a mix (train/evaluate/sample.c compares every byte that loads). Faults are counted
 * up until nothing fails any more. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/file_fault.h"
#include "base/files/file_power.h"
#include "base/text/log.h"
#include "mutate.h"
#include "scratch.h"
#include "checkpoint/sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* More calls than a save makes. */
#define CALLS_MAX 200

static char run[SCRATCH_PATH];

static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_join(run, scratch_place, "run");
    return 0;
}

/* A run with checkpoints of steps 1 and 2, and what a killed save left. */
static void begin_run(const char *left)
{
    char leftover[SCRATCH_PATH];
    assert_int_equal(tr_file_remove(NULL, run), TR_OK);
    assert_int_equal(sample_save(NULL, run, 2, 1), TR_OK);
    assert_int_equal(sample_save(NULL, run, 2, 2), TR_OK);
    assert_int_equal(tr_file_make_directory(NULL, scratch_join(leftover, run, left)), TR_OK);
}

/* After the fault the run goes on, and leaves nothing behind. */
static void assert_run_goes_on(void)
{
    assert_int_equal(sample_save(NULL, run, 2, 4), TR_OK);
    assert_int_equal(sample_load(run, NULL, NULL), 4);
    assert_int_equal(sample_count(run, ""), 2);
}

/* Lets the save of step 3 fail at its call `at`. Returns false when it makes fewer calls. */
static bool fail_at(enum fault_kind kind, int error, int64_t at, bool persistent)
{
    struct fault_files fault;
    bool skipped;
    begin_run("checkpoint-00000009.tmp");
    fault_files_init(&fault, kind, error, at, persistent);
    tr_status status = sample_save(&fault.system, run, 2, 3);
    assert_int_equal(sample_load(run, NULL, &skipped) >= (status == TR_OK ? 3 : 2), 1);
    assert_false(skipped);
    if (fault.calls < at) {
        assert_int_equal(status, TR_OK);
        assert_int_equal(sample_count(run, ""), 2);
        return false;
    }
    if (status != TR_OK) {
        assert_int_equal(status, TR_EIO);
        assert_non_null(strstr(tr_error_message(), "checkpoint of step 3 not saved"));
        assert_non_null(strstr(tr_error_message(), strerror(error)));
        /* One fault does not keep the unfinished one from being removed, unless it hit that very call. */
        if (!persistent) assert_int_equal(sample_count(run, "3.tmp"), 0);
        char path[SCRATCH_PATH];
        assert_int_equal(sample_load(scratch_join(path, run, "checkpoint-00000001"), NULL, NULL), 1);
        assert_int_equal(sample_load(scratch_join(path, run, "checkpoint-00000002"), NULL, NULL), 2);
    }
    assert_run_goes_on();
    return true;
}

static void every_call_fails_in_every_way(void **state)
{
    (void)state;
    static const int errors[] = {ENOSPC, EIO, EFBIG, EDQUOT, EROFS};
    for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
        for (int variant = 0; variant < 4; variant++) {
            int64_t at = 1;
            while (fail_at(variant & 2 ? FAULT_SHORT_WRITE : FAULT_ERROR, errors[e], at, variant & 1)) at++;
            assert_in_range(at, 30, CALLS_MAX);
        }
    }
}

/* The last failure is about removing old checkpoints: the new one lasts, so that is a warning. */
static void keep_last(void *user, enum tr_log_level level, const char *message)
{
    (void)level;
    snprintf(user, 1024, "%s", message);
}

static void a_full_disk_after_the_rename_is_a_warning(void **state)
{
    (void)state;
    char warning[1024] = "";
    struct fault_files fault;
    tr_log_set_sink(keep_last, warning, TR_LOG_WARNING);
    fault_files_init(&fault, FAULT_ERROR, EIO, 0, false);
    begin_run("checkpoint-00000009.tmp");
    assert_int_equal(sample_save(&fault.system, run, 2, 3), TR_OK);
    assert_string_equal(warning, "");
    int64_t calls = fault.calls;
    fault_files_init(&fault, FAULT_ERROR, EIO, calls, false);
    begin_run("checkpoint-00000009.tmp");
    assert_int_equal(sample_save(&fault.system, run, 2, 3), TR_OK);
    assert_non_null(strstr(warning, "an old checkpoint could not be removed"));
    assert_non_null(strstr(warning, "checkpoint-00000001.tmp"));
    tr_log_set_sink(NULL, NULL, TR_LOG_DEBUG);
    assert_int_equal(sample_load(run, NULL, NULL), 3);
    assert_run_goes_on();
}

static void a_kill_at_every_call(void **state)
{
    (void)state;
    bool finished = false;
    for (int64_t at = 1; !finished; at++) {
        begin_run("checkpoint-00000003.tmp");
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct fault_files fault;
            fault_files_init(&fault, FAULT_KILL, 0, at, false);
            _exit(sample_save(&fault.system, run, 2, 3) == TR_OK ? 0 : 1);
        }
        int result;
        bool skipped;
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result));
        assert_true(WEXITSTATUS(result) == 0 || WEXITSTATUS(result) == FAULT_EXIT_CODE);
        finished = WEXITSTATUS(result) == 0;
        int64_t step = sample_load(run, NULL, &skipped);
        assert_true(step == 3 || (step == 2 && !finished));
        assert_false(skipped);
        assert_run_goes_on();
        assert_true(at < CALLS_MAX);
    }
}

/* A limit on the size of files, met in the middle of a tensor. */
static void a_file_size_limit_stops_the_save_only(void **state)
{
    (void)state;
    begin_run("checkpoint-00000009.tmp");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = {300, 300};
        signal(SIGXFSZ, SIG_DFL);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
        if (sample_save(NULL, run, 2, 3) != TR_EIO) _exit(2);
        _exit(strstr(tr_error_message(), "File too large after 300 of") ? 0 : 3);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
    assert_int_equal(sample_load(run, NULL, NULL), 2);
    assert_int_equal(sample_count(run, ".tmp"), 0);
    assert_run_goes_on();
}

/* ---- power cuts ---- */

#define SAVES  8
#define IMAGES 2000

/* A history with everything that a run does: old checkpoints that go, a step saved twice, a future that is
 * given up. */
static const int64_t history[SAVES] = {1, 2, 3, 4, 4, 6, 5, 7};

static void power_cuts_leave_the_previous_or_the_new(void **state)
{
    (void)state;
    struct power_files *power = power_create();
    const tr_file_system files = power_system(power);
    int64_t done_at[SAVES];
    for (int i = 0; i < SAVES; i++) {
        assert_int_equal(sample_save(&files, "/home/run", 2, history[i]), TR_OK);
        done_at[i] = power_operations(power);
    }
    int64_t operations = power_operations(power), loaded_new = 0, loaded_none = 0;
    assert_true(operations > 200);
    for (uint32_t image = 0; image < IMAGES; image++) {
        char disk[SCRATCH_PATH], image_run[SCRATCH_PATH];
        /* Each moment comes in turn. */
        int64_t cut = image % (operations + 1);
        scratch_join(disk, scratch_place, "disk");
        assert_int_equal(tr_file_make_directory(NULL, disk), TR_OK);
        power_write_image(power, cut, image, disk);
        scratch_join(image_run, disk, "home/run");
        int saved = 0;
        while (saved < SAVES && done_at[saved] <= cut) saved++;
        int64_t step = sample_load(image_run, NULL, NULL);
        /* The last that was done, or the one under way; nothing before the first. */
        bool previous = saved > 0 && step == history[saved - 1], new = saved < SAVES &&step == history[saved];
        bool nothing = saved == 0 && step == -1;
        if (!previous && !new && !nothing)
            fail_msg("cut after %ld of %ld operations, image %u, %d saves done: step %ld loads", (long)cut,
                     (long)operations, image, saved, (long)step);
        loaded_new += new && !previous;
        loaded_none += nothing;
        scratch_remove(disk);
    }
    /* Both outcomes are met; otherwise the images would be of no use. */
    assert_true(loaded_new > IMAGES / 100);
    assert_true(loaded_none > IMAGES / 100);
    power_destroy(power);
}

/* Without the syncs the same images must lose checkpoints, or the simulated disk is too kind. */
static int no_sync(void *context, int descriptor)
{
    (void)context;
    (void)descriptor;
    return 0;
}

static int no_sync_directory(void *context, const char *path)
{
    (void)context;
    (void)path;
    return 0;
}

static void the_power_cuts_find_missing_syncs(void **state)
{
    (void)state;
    for (int variant = 0; variant < 2; variant++) {
        struct power_files *power = power_create();
        tr_file_system files = power_system(power);
        struct tr_file_ops ops = *files.ops;
        if (variant == 0) ops.sync = no_sync;
        if (variant == 1) ops.sync_directory = no_sync_directory;
        files.ops = &ops;
        for (int i = 0; i < 4; i++) assert_int_equal(sample_save(&files, "/run", 2, i), TR_OK);
        int lost = 0;
        for (uint32_t image = 0; image < 300; image++) {
            char disk[SCRATCH_PATH], image_run[SCRATCH_PATH];
            scratch_join(disk, scratch_place, "disk");
            assert_int_equal(tr_file_make_directory(NULL, disk), TR_OK);
            power_write_image(power, power_operations(power), image, disk);
            lost += sample_load(scratch_join(image_run, disk, "run"), NULL, NULL) < 3;
            scratch_remove(disk);
        }
        assert_true(lost > 30);
        power_destroy(power);
    }
}

/* ---- memory ---- */

static int refuse(size_t size, void *user)
{
    (void)size;
    int64_t *left = user;
    return (*left)-- == 0;
}

static void every_allocation_of_a_save_fails(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    for (int64_t at = 0, done = 0; !done; at++) {
        assert_true(at < 1000);
        begin_run("checkpoint-00000009.tmp");
        int64_t left = at;
        tr_alloc_set_hook(refuse, &left);
        tr_status status = sample_save(NULL, run, 2, 3);
        tr_alloc_set_hook(NULL, NULL);
        done = left >= 0;
        if (status != TR_OK && (status != TR_ENOMEM || done))
            fail_msg("allocation %ld: status %s, message \"%s\"", (long)at, tr_status_name(status),
                     tr_error_message());
        if (status != TR_OK) assert_non_null(strstr(tr_error_message(), "out of memory"));
        assert_int_equal(sample_load(run, NULL, NULL), status == TR_OK ? 3 : 2);
        assert_run_goes_on();
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* Running out of memory is no damage: an older checkpoint must not be taken. */
static void every_allocation_of_a_load_fails(void **state)
{
    (void)state;
    begin_run("checkpoint-00000009.tmp");
    int64_t live = tr_alloc_live();
    for (int64_t at = 0, done = 0; !done; at++) {
        assert_true(at < 1000);
        tr_status status;
        int64_t left = at;
        tr_alloc_set_hook(refuse, &left);
        int64_t step = sample_load(run, &status, NULL);
        tr_alloc_set_hook(NULL, NULL);
        done = left >= 0;
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %ld: status %s, message \"%s\"", (long)at, tr_status_name(status),
                     tr_error_message());
        assert_int_equal(step, done ? 2 : -1);
        assert_int_equal(tr_alloc_live(), live);
    }
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, set_up, scratch_place_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILES(every_call_fails_in_every_way),
        WITH_FILES(a_full_disk_after_the_rename_is_a_warning),
        WITH_FILES(a_kill_at_every_call),
        WITH_FILES(a_file_size_limit_stops_the_save_only),
        WITH_FILES(power_cuts_leave_the_previous_or_the_new),
        WITH_FILES(the_power_cuts_find_missing_syncs),
        WITH_FILES(every_allocation_of_a_save_fails),
        WITH_FILES(every_allocation_of_a_load_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
