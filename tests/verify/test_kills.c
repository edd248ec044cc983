/* A run that is killed at any moment leaves a receipt that covers its newest checkpoint, and goes on to the
 * receipt of one that was not disturbed. */
#include "checkpoint/checkpoint.h"
#include "receipt/receipt.h"
#include "support/training.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static void begin(struct job *job)
{
    family_job(job, &families[family_count - 2], family_place); /* everything */
    job_set(job, "train.receipt_every=1");
    job_set(job, "train.checkpoint_every=1");
    job->settings.receipt = true;
    job->settings.continues = true;
}

static void read_bytes(const char *path, const char *text, size_t size, struct tr_receipt *out)
{
    must_train(tr_receipt_read(path, text, size, out));
}

static void read_file(const char *directory, struct tr_receipt *out)
{
    char path[SCRATCH_PATH];
    struct tr_file_content content;
    must_train(tr_file_read(scratch_join(path, directory, TR_RECEIPT_FILE), TR_RECEIPT_MOST, &content));
    read_bytes(path, content.data, content.size, out);
    tr_file_content_free(&content);
}

/* What both have is the same. */
static void expect_prefix(const struct tr_receipt *whole, const struct tr_receipt *part, const char *how)
{
    for (int64_t i = 0; i < part->count; i++) {
        const struct tr_receipt_boundary *own = &part->boundary[i],
                                         *other = tr_receipt_find(whole, own->step);
        if (!other || memcmp(&own->root, &other->root, sizeof own->root) != 0 ||
            memcmp(&own->chain, &other->chain, sizeof own->chain) != 0)
            fail_msg("%s: the boundary of step %d is another one", how, (int)own->step);
    }
}

/* Trains in a process of its own, which is killed after a while unless it has ended; whether it was. */
static bool train_and_kill(const char *out, int milliseconds)
{
    pid_t process = fork();
    int how;
    assert_true(process >= 0);
    if (process == 0) {
        struct job job;
        struct outcome outcome;
        begin(&job);
        job.settings.out = out;
        job_outcome(&job, &outcome);
        _exit(outcome.status != TR_OK);
    }
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
    kill(process, SIGKILL);
    assert_int_equal(waitpid(process, &how, 0), process);
    if (WIFEXITED(how)) assert_int_equal(WEXITSTATUS(how), 0);
    return WIFSIGNALED(how);
}

/* What a kill left, unless there is no checkpoint yet. */
static void look(const char *out, const struct tr_receipt *whole)
{
    tr_checkpoint *checkpoint;
    struct tr_receipt kept, beside;
    size_t size;
    int64_t latest = -1;
    if (tr_file_exists(out)) must_train(tr_checkpoint_latest(out, &latest));
    if (latest < 0) return;
    must_train(tr_checkpoint_open(out, &checkpoint));
    const char *text = tr_checkpoint_file(checkpoint, TR_RECEIPT_FILE, &size);
    assert_non_null(text);
    read_bytes("kept", text, size, &kept);
    assert_int_equal(kept.boundary[kept.count - 1].step, tr_checkpoint_facts(checkpoint)->step);
    assert_int_equal(kept.count, tr_checkpoint_facts(checkpoint)->step + 1);
    read_file(out, &beside);
    assert_true(beside.count >= kept.count);
    expect_prefix(whole, &kept, "in the checkpoint");
    expect_prefix(whole, &beside, "beside the checkpoints");
    tr_receipt_release(&beside);
    tr_receipt_release(&kept);
    tr_checkpoint_close(&checkpoint);
}

static void kills_leave_receipts(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    struct tr_receipt whole, last;
    char out[SCRATCH_PATH], name[32];
    begin(&job);
    job.settings.out = scratch_join(out, family_place, "undisturbed");
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_OK);
    read_file(out, &whole);
    int killed = 0;
    /* From a run that never began to one that has ended, whatever the machine: the time doubles. */
    for (int round = 0; round < 4; round++) {
        snprintf(name, sizeof name, "killed-%d", round);
        scratch_join(out, family_place, name);
        for (int milliseconds = 2 + round; train_and_kill(out, milliseconds % 1000);
             milliseconds += milliseconds / 2) {
            killed++;
            look(out, &whole);
            if (milliseconds > 900) break;
        }
        job.settings.out = out;
        job_outcome(&job, &outcome);
        if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
        read_file(out, &last);
        assert_int_equal(last.count, whole.count);
        expect_prefix(&whole, &last, "in the end");
        tr_receipt_release(&last);
    }
    assert_true(killed > 0);
    tr_receipt_release(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kills_leave_receipts)};
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
