/* One job has one receipt: the same roots and chains on any number of threads, ranks, under every synchronous
 * strategy, on every device, after going on from a checkpoint, and with ranks that come and go. */
#include "receipt/receipt.h"
#include "support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Boundaries after each second step, and after the last. */
#define EVERY "train.receipt_every=2"

static void begin(struct job *job, int family)
{
    family_job(job, &families[family], family_place);
    job_set(job, EVERY);
    job->settings.receipt = true;
    job->settings.set = job->set;
}

static void read_file(const char *directory, struct tr_receipt *out)
{
    char path[SCRATCH_PATH];
    struct tr_file_content content;
    must_train(tr_file_read(scratch_join(path, directory, TR_RECEIPT_FILE), TR_RECEIPT_MOST, &content));
    must_train(tr_receipt_read(path, content.data, content.size, out));
    tr_file_content_free(&content);
}

/* The receipt of a run in memory. */
static void receipt_of(struct job *job, struct tr_receipt *out)
{
    struct outcome outcome;
    char *text;
    tr_trainer *trainer = job_trainer(job);
    trainer_outcome(trainer, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
    must_train(tr_trainer_receipt(trainer, &text));
    must_train(tr_receipt_read("memory", text, strlen(text), out));
    tr_text_free(text);
    tr_trainer_destroy(&trainer);
}

static void expect_equal(const struct tr_receipt *a, const struct tr_receipt *b, const char *how)
{
    if (a->count != b->count) fail_msg("%s: %d boundaries instead of %d", how, (int)b->count, (int)a->count);
    for (int64_t i = 0; i < a->count; i++) {
        const struct tr_receipt_boundary *x = &a->boundary[i], *y = &b->boundary[i];
        if (x->step != y->step) fail_msg("%s: a boundary after step %d", how, (int)y->step);
        if (memcmp(&x->root, &y->root, sizeof x->root) != 0)
            fail_msg("%s: the root after step %d differs", how, (int)x->step);
        if (memcmp(&x->chain, &y->chain, sizeof x->chain) != 0)
            fail_msg("%s: the chain after step %d differs", how, (int)x->step);
    }
    if (memcmp(&a->settings, &b->settings, sizeof a->settings) != 0) fail_msg("%s: other settings", how);
    if (memcmp(&a->data, &b->data, sizeof a->data) != 0) fail_msg("%s: other data", how);
}

/* Runs on ranks, in a directory of its own, and compares. */
static void expect_on_ranks(const struct job *job, const struct tr_receipt *alone, const char *strategy,
                            int size, int apart)
{
    static int number;
    struct tr_train_settings settings = job->settings;
    struct rank ranks[RANKS];
    struct tr_receipt receipt;
    char out[SCRATCH_PATH + 32], how[200];
    snprintf(out, sizeof out, "%s/ranks-%d", family_place, number++);
    snprintf(how, sizeof how, "%s on %d ranks%s", strategy, size, apart ? " apart" : "");
    settings.out = out;
    settings.strategy = strategy;
    run_ranks(&settings, size, apart, ranks);
    expect_well(ranks, size, how);
    read_file(out, &receipt);
    expect_equal(alone, &receipt, how);
    assert_string_equal(receipt.parameters, ranks[0].outcome.hash);
    tr_receipt_release(&receipt);
}

static void every_family_has_one_receipt(void **state)
{
    (void)state;
    for (int family = 0; family < family_count; family++) {
        struct job job;
        struct tr_receipt alone, other;
        begin(&job, family);
        receipt_of(&job, &alone);
        assert_true(alone.count >= 3);
        job.settings.threads = 3;
        receipt_of(&job, &other);
        expect_equal(&alone, &other, families[family].name);
        tr_receipt_release(&other);
        job.settings.threads = 1;
        expect_on_ranks(&job, &alone, "allreduce", 2, 0);
        tr_receipt_release(&alone);
    }
}

static void every_synchronous_strategy_has_it(void **state)
{
    static const struct {
        const char *strategy;
        int ranks, apart;
    } runs[] = {
        {"allreduce", 3, 0},
        {"allreduce", 4, 1},
        {"parameter-server,servers=1", 3, 0},
        {"parameter-server,servers=2", 4, 1},
        {"pipeline,stages=2", 2, 0},
        {"pipeline,stages=2", 4, 0},
        {"pipeline,stages=3", 3, 1},
    };
    (void)state;
    struct job job;
    struct tr_receipt alone;
    begin(&job, family_count - 2); /* everything: statistics, averages, momentum */
    receipt_of(&job, &alone);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
        expect_on_ranks(&job, &alone, runs[i].strategy, runs[i].ranks, runs[i].apart);
    tr_receipt_release(&alone);
}

/* Those with an arithmetic of their own, on any number of ranks that share their replicas. */
static void strategies_of_their_own_have_one_each(void **state)
{
    static const char *const strategies[] = {"local-sgd,replicas=3,every=2",
                                             "local-sgd,replicas=3,every=2,momentum=0.5",
                                             "easgd,replicas=3,every=2", "gossip,replicas=3,every=2"};
    (void)state;
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        struct job job;
        struct tr_receipt alone;
        begin(&job, family_count - 2);
        job.settings.strategy = strategies[i];
        receipt_of(&job, &alone);
        for (int size = 2; size <= 3; size++) expect_on_ranks(&job, &alone, strategies[i], size, size == 3);
        tr_receipt_release(&alone);
    }
}

static void every_device_has_it(void **state)
{
    (void)state;
    struct job job;
    struct tr_receipt alone, other;
    begin(&job, family_count - 2);
    receipt_of(&job, &alone);
    for (const char *const *isa = training_isas(); *isa; isa++) {
        job.settings.isa = *isa;
        receipt_of(&job, &other);
        expect_equal(&alone, &other, *isa);
        tr_receipt_release(&other);
    }
    job.settings.isa = NULL;
    job.settings.device = "ref";
    receipt_of(&job, &other);
    expect_equal(&alone, &other, "ref");
    tr_receipt_release(&other);
    tr_receipt_release(&alone);
}

/* Runs the first steps, and the rest from their checkpoint. */
static void a_run_that_goes_on_has_it(void **state)
{
    (void)state;
    struct job job;
    struct tr_receipt alone, other;
    char out[SCRATCH_PATH], path[SCRATCH_PATH];
    begin(&job, family_count - 2);
    receipt_of(&job, &alone);
    job.settings.out = scratch_join(out, family_place, "goes-on");
    job.settings.steps = 4;
    receipt_of(&job, &other);
    assert_int_equal(other.boundary[other.count - 1].step, 4);
    tr_receipt_release(&other);
    /* What lies beside the checkpoints is not what it goes on from. */
    must_train(tr_file_write_atomic(NULL, scratch_join(path, out, TR_RECEIPT_FILE), "{}", 2));
    job.settings.resume = out;
    job.settings.receipt = false; /* the checkpoint has one */
    job.settings.steps = alone.steps;
    receipt_of(&job, &other);
    expect_equal(&alone, &other, "a run that goes on");
    tr_receipt_release(&other);
    read_file(out, &other);
    expect_equal(&alone, &other, "the file of a run that goes on");
    tr_receipt_release(&other);
    tr_receipt_release(&alone);
}

/* What a program does between steps follows from no model file. */
static void a_changed_state_begins_a_new_receipt(void **state)
{
    (void)state;
    struct job job;
    struct tr_parameter_info info = TR_PARAMETER_INFO_INIT;
    struct tr_receipt receipt;
    static float values[1 << 16];
    char *text;
    begin(&job, 0);
    tr_trainer *trainer = job_trainer(&job);
    for (int i = 0; i < 3; i++) must_train(tr_trainer_step(trainer, NULL));
    must_train(tr_trainer_parameter_at(trainer, 0, &info));
    assert_true(info.count <= (int64_t)(sizeof values / sizeof values[0]));
    must_train(tr_trainer_set_parameter(trainer, info.name, values, info.count));
    assert_int_equal(tr_trainer_receipt(trainer, &text), TR_ENOTFOUND);
    must_train(tr_trainer_step(trainer, NULL));
    must_train(tr_trainer_receipt(trainer, &text));
    must_train(tr_receipt_read("memory", text, strlen(text), &receipt));
    tr_text_free(text);
    assert_int_equal(receipt.boundary[0].step, 3);
    assert_int_equal(receipt.boundary[receipt.count - 1].step, 4);
    tr_receipt_release(&receipt);
    tr_trainer_destroy(&trainer);
}

static void an_asynchronous_run_has_none(void **state)
{
    (void)state;
    struct job job;
    struct tr_train_settings settings;
    struct rank ranks[RANKS];
    begin(&job, 0);
    settings = job.settings;
    settings.strategy = "parameter-server,mode=async";
    run_ranks(&settings, 2, 0, ranks);
    assert_int_equal(ranks[0].outcome.status, TR_EINVAL);
    assert_non_null(strstr(ranks[0].outcome.message, "asynchronous"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_one_receipt),
        cmocka_unit_test(every_synchronous_strategy_has_it),
        cmocka_unit_test(strategies_of_their_own_have_one_each),
        cmocka_unit_test(every_device_has_it),
        cmocka_unit_test(a_run_that_goes_on_has_it),
        cmocka_unit_test(a_changed_state_begins_a_new_receipt),
        cmocka_unit_test(an_asynchronous_run_has_none),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
