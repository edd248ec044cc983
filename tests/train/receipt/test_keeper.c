/* Receipts of runs: where their boundaries lie, that runs which go on carry them on, and what happens to
 * receipts that do not belong to their checkpoint. */
#include "support/ranks.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/log.h"
#include "checkpoint/checkpoint.h"
#include "receipt/receipt.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char logged[1024];

static void keep_log(void *user, enum tr_log_level level, const char *message)
{
    (void)user;
    if (level == TR_LOG_WARNING) snprintf(logged, sizeof logged, "%s", message);
}

static int make(void **state)
{
    scratch_place_make(state);
    scratch_write_text("tiny.csv", "a,b,y\n1,2,3\n2,-1,1\n-1,3,2\n0.5,0.25,0.75\n1,1,2\n");
    scratch_write_text("tiny.yaml", "name: tiny\n"
                                    "data: {train: {csv: {path: tiny.csv, label: value}}}\n"
                                    "layers: [{dense: {units: 1, name: one}}]\nloss: mean_squared_error\n"
                                    "optimizer: {rule: adam, rate: 0.01}\n"
                                    "train: {batch: 2, microbatches: 2, steps: 8, receipt: true, "
                                    "receipt_every: 3}\n");
    tr_log_set_sink(keep_log, NULL, TR_LOG_DEBUG);
    return 0;
}

static int clean(void **state)
{
    tr_log_set_sink(NULL, NULL, TR_LOG_DEBUG);
    return scratch_place_remove(state);
}

static void begin(struct job *job)
{
    static char path[SCRATCH_PATH];
    job_begin(job, scratch_join(path, scratch_place, "tiny.yaml"));
    job->settings.set = job->set;
}

static struct tr_receipt receipt_of(tr_trainer *trainer)
{
    struct tr_receipt receipt;
    char *text;
    must_train(tr_trainer_receipt(trainer, &text));
    must_train(tr_receipt_read("receipt", text, strlen(text), &receipt));
    tr_text_free(text);
    return receipt;
}

static void expect_boundaries(tr_trainer *trainer, const int64_t *steps, int64_t count)
{
    struct tr_receipt receipt = receipt_of(trainer);
    assert_int_equal(receipt.count, count);
    for (int64_t i = 0; i < count; i++) assert_int_equal(receipt.boundary[i].step, steps[i]);
    tr_receipt_release(&receipt);
}

#define BOUNDARIES(trainer, ...)                                                                             \
    expect_boundaries(trainer, (const int64_t[]){__VA_ARGS__},                                               \
                      sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* ---- boundaries ---- */

static void boundaries_come_every_so_many_steps(void **state)
{
    (void)state;
    struct job job;
    begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_step(trainer, NULL));
    BOUNDARIES(trainer, 0);
    must_train(tr_trainer_step(trainer, NULL));
    must_train(tr_trainer_step(trainer, NULL));
    BOUNDARIES(trainer, 0, 3);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    BOUNDARIES(trainer, 0, 3, 6, 8);
    struct tr_receipt whole = receipt_of(trainer);
    assert_int_equal(whole.steps, 8);
    assert_string_equal(whole.program, "trireme " TRIREME_VERSION);
    assert_non_null(strstr(whole.model, "name: tiny"));
    tr_trainer_destroy(&trainer);

    begin(&job);
    job_set(&job, "train.receipt_every=0");
    trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    BOUNDARIES(trainer, 0, 8);
    struct tr_receipt ends = receipt_of(trainer);
    assert_memory_equal(&ends.boundary[1], &whole.boundary[3], sizeof ends.boundary[1]);
    tr_receipt_release(&ends);
    tr_trainer_destroy(&trainer);

    begin(&job);
    job_set(&job, "train.receipt=false");
    job.settings.receipt = true; /* as the settings of the training ask */
    trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    BOUNDARIES(trainer, 0, 3, 6, 8);
    tr_trainer_destroy(&trainer);
    tr_receipt_release(&whole);
}

static void parameters_that_are_set_begin_anew(void **state)
{
    (void)state;
    static const float bias[] = {0.5f};
    struct job job;
    begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    for (int i = 0; i < 4; i++) must_train(tr_trainer_step(trainer, NULL));
    BOUNDARIES(trainer, 0, 3);
    must_train(tr_trainer_set_parameter(trainer, "one.bias", bias, 1));
    must_train(tr_trainer_step(trainer, NULL));
    BOUNDARIES(trainer, 4);
    must_train(tr_trainer_step(trainer, NULL));
    BOUNDARIES(trainer, 4, 6);
    tr_trainer_destroy(&trainer);
}

static void several_ranks_keep_the_same(void **state)
{
    (void)state;
    struct job job;
    struct rank ranks[RANKS];
    struct outcome alone;
    begin(&job);
    job_outcome(&job, &alone);
    run_ranks(&job.settings, 2, 0, ranks);
    expect_ranks(&alone, ranks, 2, "with a receipt");
    job.settings.strategy = "parameter-server,mode=async";
    run_ranks(&job.settings, 3, 0, ranks);
    assert_int_equal(ranks[0].outcome.status, TR_EINVAL);
    assert_non_null(
        strstr(ranks[0].outcome.message,
               "a receipt of an asynchronous run (strategy parameter-server), whose state does not "
               "follow from its model file; its replay keeps one"));
}

/* ---- going on ---- */

/* A checkpoint in memory. */
struct saved {
    void *bytes;
    size_t size;
};

static struct saved save_after(int steps, const float *bias, const char *set)
{
    struct job job;
    struct saved saved;
    begin(&job);
    if (set) job_set(&job, set);
    tr_trainer *trainer = job_trainer(&job);
    for (int i = 0; i < steps; i++) must_train(tr_trainer_step(trainer, NULL));
    if (bias) must_train(tr_trainer_set_parameter(trainer, "one.bias", bias, 1));
    must_train(tr_trainer_save_state(trainer, &saved.bytes, &saved.size));
    tr_trainer_destroy(&trainer);
    return saved;
}

static tr_status gather(void *user, const void *data, size_t size)
{
    struct saved *saved = user;
    char *larger = tr_realloc(saved->bytes, saved->size + size, 1);
    assert_non_null(larger);
    memcpy(larger + saved->size, data, size);
    *saved = (struct saved){larger, saved->size + size};
    return TR_OK;
}

/* A checkpoint with all of one, and another receipt. */
static struct saved with_receipt(const struct saved *from, const char *receipt)
{
    static const char *const names[] = {"model.yaml", TR_RECEIPT_FILE};
    struct tr_stored_tensor tensor[TR_CHECKPOINT_GROUPS][8];
    struct tr_checkpoint_file files[2];
    struct saved made = {NULL, 0};
    tr_checkpoint *checkpoint;
    int64_t count = 0;
    must_train(tr_checkpoint_open_packed(from->bytes, from->size, false, &checkpoint));
    struct tr_checkpoint_content content = {.facts = *tr_checkpoint_facts(checkpoint)};
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) {
        const enum tr_checkpoint_group group = (enum tr_checkpoint_group)g;
        const tr_safetensors *file = tr_checkpoint_tensors(checkpoint, group);
        content.group[g].count = tr_safetensors_count(file);
        content.group[g].tensors = tensor[g];
        assert_true(content.group[g].count <= 8);
        for (int64_t i = 0; i < content.group[g].count; i++) {
            const struct tr_safetensors_entry *entry = tr_safetensors_at(file, i);
            tensor[g][i] = entry->tensor;
            tensor[g][i].data = tr_alloc((size_t)entry->bytes, 1);
            assert_non_null(tensor[g][i].data);
            must_train(tr_checkpoint_read(checkpoint, group, entry, tensor[g][i].data));
        }
    }
    for (int i = 0; i < 2; i++) {
        size_t size;
        const char *text = tr_checkpoint_file(checkpoint, names[i], &size);
        assert_non_null(text);
        files[count++] = (struct tr_checkpoint_file){names[i], text, size};
    }
    files[1].data = receipt;
    files[1].size = strlen(receipt);
    content.files = files;
    content.file_count = count;
    must_train(tr_checkpoint_pack(&(struct tr_stored_sink){gather, &made}, &content));
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++)
        for (int64_t i = 0; i < content.group[g].count; i++) tr_free(tensor[g][i].data);
    tr_checkpoint_close(&checkpoint);
    return made;
}

static char *receipt_in(const struct saved *saved)
{
    tr_checkpoint *checkpoint;
    must_train(tr_checkpoint_open_packed(saved->bytes, saved->size, false, &checkpoint));
    const char *text = tr_checkpoint_file(checkpoint, TR_RECEIPT_FILE, NULL);
    assert_non_null(text);
    char *copy = tr_strdup(text);
    assert_non_null(copy);
    tr_checkpoint_close(&checkpoint);
    return copy;
}

static tr_trainer *resumed(const struct saved *saved)
{
    struct job job;
    begin(&job);
    job.settings.state = (struct tr_run_state){.bytes = saved->bytes, .size = saved->size};
    *logged = '\0';
    return job_trainer(&job);
}

static void a_run_that_goes_on_carries_it_on(void **state)
{
    (void)state;
    struct job job;
    begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    struct tr_receipt whole = receipt_of(trainer);
    tr_trainer_destroy(&trainer);
    struct saved saved = save_after(4, NULL, NULL);
    trainer = resumed(&saved);
    BOUNDARIES(trainer, 0, 3, 4);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    assert_string_equal(logged, "");
    struct tr_receipt both = receipt_of(trainer);
    static const int64_t steps[] = {0, 3, 4, 6, 8};
    assert_int_equal(both.count, 5);
    for (int i = 0, w = 0; i < 5; i++) {
        assert_int_equal(both.boundary[i].step, steps[i]);
        if (steps[i] != 4)
            assert_memory_equal(&both.boundary[i], &whole.boundary[w++], sizeof both.boundary[i]);
    }
    tr_trainer_destroy(&trainer);
    tr_receipt_release(&both);
    tr_receipt_release(&whole);
    tr_state_free(saved.bytes);
}

static void receipts_of_others_begin_anew(void **state)
{
    (void)state;
    static const float bias[] = {0.5f};
    struct saved saved = save_after(4, NULL, NULL), other = save_after(4, bias, NULL),
                 later = save_after(5, NULL, NULL), seed = save_after(4, NULL, "seed=77");
    char *own = receipt_in(&saved), *late = receipt_in(&later), *strange = receipt_in(&seed);
    /* A state that is another one. */
    struct saved mixed = with_receipt(&other, own);
    tr_trainer *trainer = resumed(&mixed);
    BOUNDARIES(trainer, 0, 3, 4);
    must_train(tr_trainer_step(trainer, NULL));
    assert_string_equal(logged,
                        "the state after step 4 is not the one that the receipt of its checkpoint has; a "
                        "new receipt begins here");
    BOUNDARIES(trainer, 4);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    BOUNDARIES(trainer, 4, 6, 8);
    tr_trainer_destroy(&trainer);
    tr_state_free(mixed.bytes);
    /* Another step, another seed, no receipt at all: it begins at the checkpoint. */
    const char *const texts[] = {late, strange, "{}"};
    for (int i = 0; i < 3; i++) {
        mixed = with_receipt(&saved, texts[i]);
        trainer = resumed(&mixed);
        char *text = (char *)logged;
        assert_int_equal(tr_trainer_receipt(trainer, &text), TR_ENOTFOUND);
        if (i < 2)
            assert_string_equal(logged, "");
        else
            assert_non_null(strstr(logged, "; a new receipt begins"));
        must_train(tr_trainer_run(trainer, NULL, NULL));
        BOUNDARIES(trainer, 4, 6, 8);
        tr_trainer_destroy(&trainer);
        tr_state_free(mixed.bytes);
    }
    /* The right one in this way is the right one. */
    mixed = with_receipt(&saved, own);
    trainer = resumed(&mixed);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    BOUNDARIES(trainer, 0, 3, 4, 6, 8);
    assert_string_equal(logged, "");
    tr_trainer_destroy(&trainer);
    tr_state_free(mixed.bytes);
    tr_free(own);
    tr_free(late);
    tr_free(strange);
    tr_state_free(saved.bytes);
    tr_state_free(other.bytes);
    tr_state_free(later.bytes);
    tr_state_free(seed.bytes);
}

static void every_allocation_fails(void **state)
{
    (void)state;
    struct saved saved = save_after(4, NULL, NULL);
    for (int64_t at = 0, done = 0; !done; at++) {
        struct job job;
        tr_trainer *trainer = NULL;
        char *text = NULL;
        const int64_t live = tr_alloc_live();
        begin(&job);
        job.settings.journal = "";
        job.settings.state = (struct tr_run_state){.bytes = saved.bytes, .size = saved.size};
        refuse_begin(at);
        tr_status status = tr_trainer_create(&job.settings, &trainer);
        for (int i = 0; status == TR_OK && i < 4; i++) status = tr_trainer_step(trainer, NULL);
        if (status == TR_OK) status = tr_trainer_receipt(trainer, &text);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %lld: %s: %s", (long long)at, tr_status_name(status),
                     status == TR_OK ? "" : tr_error_message());
        tr_text_free(text);
        tr_trainer_destroy(&trainer);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_state_free(saved.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boundaries_come_every_so_many_steps),
        cmocka_unit_test(parameters_that_are_set_begin_anew),
        cmocka_unit_test(several_ranks_keep_the_same),
        cmocka_unit_test(a_run_that_goes_on_carries_it_on),
        cmocka_unit_test(receipts_of_others_begin_anew),
        cmocka_unit_test(every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
