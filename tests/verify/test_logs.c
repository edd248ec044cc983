/* Receipts of asynchronous runs: what replays a log keeps one, which names the log; it holds when it is
 * verified with that log, and with no other. A run whose log is not there yet keeps none. */
#include "base/alloc.h"
#include "base/files/file.h"
#include "receipt/receipt.h"
#include "strategy/updates/file.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void begin(struct job *job, const char *mode)
{
    family_job(job, &families[0], family_place);
    job_set(job, "layers=[{flatten: null}, {dense: {units: 8, activation: relu}}, {dense: 10}]");
    job_set(job, "train.batch=20");
    job_set(job, "train.microbatches=4");
    job_set(job, "train.receipt_every=4");
    job_set(job, "train.checkpoint_every=5");
    job->settings.steps = 12;
    job->settings.strategy = mode;
    job->settings.receipt = true;
}

static void simulate(const char *mode, uint64_t seed, const char *out)
{
    struct job job;
    struct outcome outcome;
    begin(&job, mode);
    job.settings.simulate_delays = seed;
    job.settings.simulate_workers = 3;
    job.settings.out = out;
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s: %s", mode, outcome.message);
}

static enum tr_verify_outcome verify(const char *path, const char *words)
{
    struct tr_verify_settings settings = TR_VERIFY_SETTINGS_INIT;
    struct tr_verify_result result = TR_VERIFY_RESULT_INIT;
    char *text;
    settings.path = path;
    settings.threads = 1;
    must_train(tr_verify(&settings, NULL, NULL, &result, &text));
    if (!strstr(text, words)) fail_msg("\"%s\" is not in \"%s\"", words, text);
    tr_text_free(text);
    return result.outcome;
}

static void read_receipt(const char *directory, struct tr_receipt *out)
{
    char path[SCRATCH_PATH];
    struct tr_file_content content;
    must_train(tr_file_read(scratch_join(path, directory, TR_RECEIPT_FILE), TR_RECEIPT_MOST, &content));
    must_train(tr_receipt_read(path, content.data, content.size, out));
    tr_file_content_free(&content);
}

static const char *const modes[] = {"parameter-server,mode=async",
                                    "parameter-server,mode=bounded,staleness=2",
                                    "parameter-server,mode=backup,backup=1"};

/* The run itself and its replay keep receipts of one root and one log; both hold. */
static void a_replay_keeps_a_receipt_that_holds(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        char run[SCRATCH_PATH], again[SCRATCH_PATH], name[32];
        struct tr_receipt a, b;
        struct job job;
        struct outcome outcome;
        snprintf(name, sizeof name, "run-%d", i);
        simulate(modes[i], 7, scratch_join(run, family_place, name));
        snprintf(name, sizeof name, "again-%d", i);
        begin(&job, modes[i]);
        job.settings.steps = 0;
        job_set(&job, "train.steps=12");
        job.settings.replay = run;
        job.settings.out = scratch_join(again, family_place, name);
        job_outcome(&job, &outcome);
        if (outcome.status != TR_OK) fail_msg("%s: %s", modes[i], outcome.message);
        read_receipt(run, &a);
        read_receipt(again, &b);
        assert_int_equal(strlen(a.log), TR_SHA256_TEXT - 1);
        assert_string_equal(a.log, b.log);
        assert_true(a.count >= 4 && b.count == a.count);
        for (int64_t k = 0; k < a.count; k++) {
            assert_int_equal(a.boundary[k].step, b.boundary[k].step);
            assert_memory_equal(&a.boundary[k].root, &b.boundary[k].root, sizeof a.boundary[k].root);
        }
        tr_receipt_release(&a);
        tr_receipt_release(&b);
        assert_int_equal(verify(run, "came out as the receipt says"), TR_VERIFIED);
        assert_int_equal(verify(again, "came out as the receipt says"), TR_VERIFIED);
    }
}

static void another_log_or_none_is_named(void **state)
{
    (void)state;
    char run[SCRATCH_PATH], other[SCRATCH_PATH], from[SCRATCH_PATH], to[SCRATCH_PATH];
    struct tr_file_content content;
    simulate(modes[0], 3, scratch_join(run, family_place, "mine"));
    simulate(modes[0], 4, scratch_join(other, family_place, "other"));
    must_train(tr_file_read(scratch_join(from, other, TR_UPDATE_FILE), 1 << 20, &content));
    must_train(tr_file_write_atomic(NULL, scratch_join(to, run, TR_UPDATE_FILE), content.data, content.size));
    tr_file_content_free(&content);
    assert_int_equal(verify(run, "log of updates"), TR_UNVERIFIABLE);
    assert_int_equal(unlink(to), 0);
    assert_int_equal(verify(run, "there is no log"), TR_UNVERIFIABLE);
}

/* The same receipt with the other log's digest is of other settings. */
static void a_log_that_is_claimed_is_held_against_the_chain(void **state)
{
    (void)state;
    char run[SCRATCH_PATH], other[SCRATCH_PATH], path[SCRATCH_PATH], log[SCRATCH_PATH], *text;
    struct tr_receipt a, b;
    struct tr_file_content content;
    simulate(modes[0], 5, scratch_join(run, family_place, "claims"));
    simulate(modes[0], 6, scratch_join(other, family_place, "lends"));
    read_receipt(run, &a);
    read_receipt(other, &b);
    memcpy(a.log, b.log, sizeof a.log);
    must_train(tr_receipt_write(&a, &text));
    must_train(tr_file_write_atomic(NULL, scratch_join(path, run, TR_RECEIPT_FILE), text, strlen(text)));
    must_train(tr_file_read(scratch_join(log, other, TR_UPDATE_FILE), 1 << 20, &content));
    must_train(
        tr_file_write_atomic(NULL, scratch_join(log, run, TR_UPDATE_FILE), content.data, content.size));
    tr_file_content_free(&content);
    tr_free(text);
    tr_receipt_release(&a);
    tr_receipt_release(&b);
    assert_int_equal(verify(run, "model file"), TR_UNVERIFIABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replay_keeps_a_receipt_that_holds),
        cmocka_unit_test(another_log_or_none_is_named),
        cmocka_unit_test(a_log_that_is_claimed_is_held_against_the_chain),
    };
    return cmocka_run_group_tests_name("receipts of logs", tests, family_place_make, family_place_remove);
}
