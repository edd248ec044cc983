/* What a run hears of: checkpoints that are set aside, failures once a new checkpoint lasts, and files that
 * are larger than a checkpoint's or of types that it cannot have. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file_fault.h"
#include "base/text/log.h"
#include "checkpoint/manifest.h"
#include "checkpoint/sample.h"
#include "io/tar.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char run[SCRATCH_PATH], heard[8192];

static void hear(void *user, enum tr_log_level level, const char *message)
{
    (void)user;
    const size_t length = strlen(heard);
    if (level == TR_LOG_WARNING) snprintf(heard + length, sizeof heard - length, "%s\n", message);
}

static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_join(run, scratch_place, "run");
    heard[0] = '\0';
    tr_log_set_sink(hear, NULL, TR_LOG_DEBUG);
    return 0;
}

static int tear_down(void **state)
{
    tr_log_set_sink(NULL, NULL, TR_LOG_DEBUG);
    return scratch_place_remove(state);
}

static void assert_heard(const char *part)
{
    if (!strstr(heard, part)) fail_msg("\"%s\" lacks \"%s\"", heard, part);
}

static void assert_message_has(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

static void save(int64_t step)
{
    assert_int_equal(sample_save(NULL, run, 3, step), TR_OK);
}

/* ---- futures that are given up ---- */

/* However often they are. */
static void every_later_step_is_named(void **state)
{
    static const char *const names[] = {"checkpoint-00000002.abandoned", "checkpoint-00000002.abandoned-2",
                                        "checkpoint-00000002.abandoned-3", "checkpoint-00000002.abandoned-4"};
    (void)state;
    save(1);
    for (int i = 0; i < 4; i++) {
        char path[SCRATCH_PATH], line[SCRATCH_PATH + 200];
        save(2);
        assert_string_equal(heard, "");
        save(1);
        snprintf(line, sizeof line,
                 "\"%s/checkpoint-00000002\" is of a later step than the checkpoint just saved; it is now "
                 "\"%s\"\n",
                 run, names[i]);
        assert_string_equal(heard, line);
        assert_int_equal(sample_load(scratch_join(path, run, names[i]), NULL, NULL), 2);
        heard[0] = '\0';
    }
}

/* Where memory runs out on the way, the save fails or says what is left to do; a checkpoint can be read, and
   none is lost. */
static void without_memory_no_step_is_lost(void **state)
{
    int64_t at = 0;
    (void)state;
    for (bool done = false; !done; at++) {
        assert_int_equal(tr_file_remove(NULL, run), TR_OK);
        save(1);
        save(2);
        save(1); /* sets aside */
        save(2); /* and this one gets another name */
        heard[0] = '\0';
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = sample_save(NULL, run, 3, 1);
        done = refuse_end();
        if (status == TR_OK)
            assert_heard(done ? "of a later step" : "out of memory");
        else
            assert_int_equal(status, TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
        const int64_t step = sample_load(run, NULL, NULL);
        assert_true(step == 1 || (step == 2 && !done));
        assert_int_equal(sample_count(run, ".abandoned"), 1);
        assert_int_equal(sample_count(run, "-00000002") + sample_count(run, ".abandoned-2"), 1);
    }
    assert_true(at > 10);
}

/* A run with a mark on a later step, a step twice, and what a killed save left. */
static void begin_run(void)
{
    char leftover[SCRATCH_PATH];
    assert_int_equal(tr_file_remove(NULL, run), TR_OK);
    for (int64_t step = 1; step <= 4; step++) save(step);
    assert_int_equal(tr_checkpoint_mark_best(NULL, run, "checkpoint-00000004"), TR_OK);
    assert_int_equal(tr_file_make_directory(NULL, scratch_join(leftover, run, "checkpoint-00000009.tmp")),
                     TR_OK);
    heard[0] = '\0';
}

/* A save that succeeds although one of its calls failed says so, once for each thing that it did not do. */
static void failures_behind_the_rename_are_told(void **state)
{
    static const char *const sentences[] = {
        "an unfinished checkpoint could not be removed: ",
        "an old checkpoint could not be removed: ",
        "a later checkpoint may come back: ",
    };
    bool met[3] = {false};
    int64_t at = 1;
    (void)state;
    for (bool done = false; !done; at++) {
        struct fault_files fault;
        begin_run();
        fault_files_init(&fault, FAULT_ERROR, EIO, at, false);
        const tr_status status = sample_save(&fault.system, run, 3, 3);
        done = fault.calls < at;
        if (status != TR_OK) continue;
        int told = 0;
        for (int i = 0; i < 3; i++) {
            const char *sentence = strstr(heard, sentences[i]);
            if (!sentence) continue;
            told++;
            met[i] = true;
            assert_non_null(strstr(sentence, strerror(EIO)));
        }
        if (told > !done) fail_msg("call %d: %d are told: %s", (int)at, told, heard);
        if (told == 0) { /* then nothing is left to do: steps 2, 3 and the one set aside stay */
            assert_int_equal(sample_count(run, ""), 3);
            assert_int_equal(sample_count(run, ".abandoned"), 1);
            assert_int_equal(sample_count(run, ".tmp"), 0);
        }
        if (strstr(heard, sentences[1])) continue;
        assert_heard("checkpoint-00000004\" is of a later step");
        assert_int_equal(sample_load(run, NULL, NULL), 3);
    }
    assert_true(met[0] && met[1] && met[2]);
    assert_true(at > 30);
}

/* Where the mark of a later checkpoint stays, so does that checkpoint. */
static void a_mark_that_stays_keeps_its_checkpoint(void **state)
{
    int kept = 0;
    (void)state;
    for (int64_t at = 1;; at++) {
        struct fault_files fault;
        tr_checkpoint *best;
        begin_run();
        fault_files_init(&fault, FAULT_ERROR, EIO, at, false);
        const tr_status status = sample_save(&fault.system, run, 3, 3);
        const tr_status opened = tr_checkpoint_open_best(run, &best);
        if (opened != TR_ENOTFOUND) {
            assert_int_equal(opened, TR_OK);
            assert_int_equal(tr_checkpoint_facts(best)->step, 4);
            kept += status == TR_OK;
        }
        tr_checkpoint_close(&best);
        if (fault.calls < at) break;
    }
    assert_true(kept > 0);
}

/* ---- files that a checkpoint cannot have ---- */

#define MOST ((size_t)64 << 20)

/* A manifest of as many bytes as one may have, and of one more. */
static void manifests_have_a_limit(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    tr_checkpoint *checkpoint;
    uint8_t *stream = tr_alloc_zero(MOST + 4 * TR_TAR_BLOCK, 1);
    assert_non_null(stream);
    assert_int_equal(tr_file_make_directories(NULL, run), TR_OK);
    scratch_join(path, run, "manifest.json");
    for (size_t more = 0; more < 2; more++) {
        const size_t size = MOST + more;
        assert_int_equal(tr_tar_header("checkpoint-00000001", "manifest.json", size, stream), TR_OK);
        const tr_status status =
            tr_checkpoint_open_packed(stream, TR_TAR_BLOCK + size + tr_tar_padding(size), false, &checkpoint);
        assert_int_equal(status, more ? TR_EFORMAT : TR_ECORRUPT);
        assert_message_has(more
                               ? "(memory)/manifest.json\": has 67108865 bytes, at most 67108864 are expected"
                               : "(memory)/manifest.json\": is damaged or was edited");
        const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(file >= 0);
        assert_int_equal(ftruncate(file, (off_t)size), 0);
        close(file);
        assert_int_not_equal(tr_checkpoint_open(run, &checkpoint), TR_OK);
        assert_message_has(more ? "67108865 bytes, more than the limit of 67108864"
                                : "manifest.json\": is damaged or was edited");
        assert_null(checkpoint);
    }
    tr_free(stream);
}

/* A type that only newer programs know is damage, since the manifest is of this version. */
static void types_of_other_programs_are_damage(void **state)
{
    (void)state;
    char path[SCRATCH_PATH], newest[SCRATCH_PATH];
    struct tr_file_content content;
    tr_status status;
    bool skipped;
    save(1);
    save(2);
    scratch_join(path, run, "checkpoint-00000002/parameters.safetensors");
    assert_int_equal(tr_file_read(path, 1 << 16, &content), TR_OK);
    for (size_t i = 8; i + 3 < content.size; i++)
        if (memcmp(content.data + i, "F32", 3) == 0) memcpy(content.data + i, "X32", 3);
    assert_int_equal(tr_file_write_atomic(NULL, path, content.data, content.size), TR_OK);
    tr_file_content_free(&content);
    assert_int_equal(sample_load(scratch_join(newest, run, "checkpoint-00000002"), &status, NULL), -1);
    assert_int_equal(status, TR_ECORRUPT);
    assert_int_equal(sample_load(run, NULL, &skipped), 1);
    assert_true(skipped);
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILES(every_later_step_is_named),
        WITH_FILES(without_memory_no_step_is_lost),
        WITH_FILES(failures_behind_the_rename_are_told),
        WITH_FILES(a_mark_that_stays_keeps_its_checkpoint),
        WITH_FILES(manifests_have_a_limit),
        WITH_FILES(types_of_other_programs_are_damage),
    };
    return cmocka_run_group_tests_name("checkpoint.told", tests, NULL, NULL);
}
