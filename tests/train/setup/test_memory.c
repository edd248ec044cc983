/* What a run says that it takes, and that it is refused where there is less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/ranks.h"
#include "support/operations/shadow.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "train/loop/trainer.h"

#define PLENTY ((int64_t)1 << 40)

static char root[SCRATCH_PATH];

static void put(const char *name, const char *text)
{
    char path[SCRATCH_PATH];
    char *folder = tr_path_parent(scratch_join(path, root, name));
    must_train(tr_file_make_directories(NULL, folder));
    tr_free(folder);
    must_train(tr_file_write_atomic(NULL, path, text, strlen(text)));
}

/* A machine with a control group that has so much. */
static void allow(int64_t bytes)
{
    char text[64];
    snprintf(text, sizeof text, "MemAvailable: %lld kB\n", (long long)PLENTY / 1024);
    put("proc/meminfo", text);
    put("proc/self/cgroup", "0::/job\n");
    snprintf(text, sizeof text, "%lld\n", (long long)bytes);
    put("sys/fs/cgroup/job/memory.max", text);
}

static void begin(struct job *job, const struct family *family)
{
    family_job(job, family, family_place);
    job_set(job, "train.steps=2");
    job->settings.system_root = root;
    job->settings.set = job->set;
}

static struct tr_train_info facts_of(struct job *job)
{
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    tr_trainer *trainer = job_trainer(job);
    must_train(tr_trainer_info(trainer, &info));
    tr_trainer_destroy(&trainer);
    return info;
}

static void a_run_is_refused_by_the_byte(void **state)
{
    (void)state;
    for (int i = 0; i < family_count; i++) {
        struct job job;
        tr_trainer *trainer = NULL;
        begin(&job, &families[i]);
        allow(PLENTY);
        struct tr_train_info info = facts_of(&job);
        int64_t whole = info.host_memory + info.data_memory;
        assert_true(info.free_memory == PLENTY);
        assert_int_equal(info.host_processes, 1);
        assert_true(info.host_memory >= info.memory);
        assert_true(info.host_memory > 4 * info.parameters);
        allow(whole);
        facts_of(&job);
        allow(whole - 1);
        assert_int_equal(tr_trainer_create(&job.settings, &trainer), TR_ENOMEM);
        assert_non_null(strstr(tr_error_message(), "the control group /job has "));
        assert_non_null(strstr(tr_error_message(), "no_memory_check"));
        job.settings.no_memory_check = true;
        facts_of(&job);
    }
}

/* Before anything large is made, less is known; but no run that fits may be refused then. */
static void what_is_expected_is_no_more_than_what_is_taken(void **state)
{
    (void)state;
    allow(PLENTY);
    for (int i = 0; i < family_count; i++) {
        struct job job;
        struct tr_train_expected expected;
        begin(&job, &families[i]);
        tr_trainer *trainer = job_trainer(&job);
        must_train(tr_train_expect_memory(trainer_job(trainer), 1, &expected));
        int64_t all = expected.gradient + expected.states + expected.parameters;
        if (all > trainer_memory(trainer)->ranks)
            fail_msg("%s: %lld bytes are expected, %lld are taken", families[i].name, (long long)all,
                     (long long)trainer_memory(trainer)->ranks);
        /* It is what counts for a network of any size: parameters and moments. */
        assert_true(all >= (int64_t)sizeof(float) * trainer_job(trainer)->model->arena_floats);
        tr_trainer_destroy(&trainer);
    }
}

/* A network that no machine holds is refused before its memory is touched. */
static void a_giant_is_refused_at_once(void **state)
{
    (void)state;
    struct job job;
    tr_trainer *trainer = NULL;
    begin(&job, &families[0]);
    job_set(&job, "layers=[{dense: 1000000}, {dense: 1000000}, {dense: 10}]");
    allow(PLENTY);
    assert_int_equal(tr_trainer_create(&job.settings, &trainer), TR_ENOMEM);
    if (!strstr(tr_error_message(), "this run takes") && !strstr(tr_error_message(), "the run takes"))
        fail_msg("%s", tr_error_message());
}

static int64_t taken_of_device(struct job *job)
{
    tr_trainer *trainer = job_trainer(job);
    int64_t bytes = trainer_memory(trainer)->device;
    assert_int_equal(trainer_memory(trainer)->ranks, 0);
    tr_trainer_destroy(&trainer);
    return bytes;
}

/* What lies on a device with memory of its own is no matter of the host's, and the other way round. */
static void memory_of_a_device_counts_apart(void **state)
{
    (void)state;
    for (int i = 0; i < family_count; i++) {
        struct job job;
        tr_trainer *trainer = NULL;
        begin(&job, &families[i]);
        allow(PLENTY);
        struct tr_train_info cpu = facts_of(&job);
        job.settings.device = "shadow";
        shadow_memory = PLENTY;
        int64_t bytes = taken_of_device(&job);
        assert_true(bytes >= cpu.host_memory / 2);
        allow(cpu.data_memory); /* just the data's */
        shadow_memory = bytes;
        assert_int_equal(taken_of_device(&job), bytes);
        shadow_memory = bytes - 1;
        assert_int_equal(tr_trainer_create(&job.settings, &trainer), TR_ENOMEM);
        assert_non_null(strstr(tr_error_message(), "the memory of shadow (parameters"));
        assert_non_null(strstr(tr_error_message(), "no_memory_check"));
        job.settings.no_memory_check = true;
        assert_int_equal(taken_of_device(&job), bytes);
        /* with the variables on the host both are looked at */
        job.settings.no_memory_check = false;
        job.settings.parameters_on = "cpu";
        shadow_memory = PLENTY;
        assert_int_equal(tr_trainer_create(&job.settings, &trainer), TR_ENOMEM);
        assert_non_null(strstr(tr_error_message(), "the control group /job has "));
        shadow_memory = 0;
    }
}

static void ranks_that_share_a_device_count_together(void **state)
{
    (void)state;
    enum { SIZE = 2 };
    struct rank ranks[RANKS];
    struct job job;
    begin(&job, &families[0]);
    job_set(&job, "train.microbatches=4");
    job.settings.device = "shadow";
    allow(PLENTY);
    shadow_memory = PLENTY;
    int64_t bytes = taken_of_device(&job);
    shadow_memory = bytes; /* enough for either */
    run_ranks(&job.settings, SIZE, true, ranks);
    expect_well(ranks, SIZE, "each with a device of its own");
    run_ranks(&job.settings, SIZE, false, ranks);
    for (int r = 0; r < SIZE; r++) {
        assert_int_not_equal(ranks[r].outcome.status, TR_OK);
        if (!strstr(ranks[r].outcome.message, "of 2 processes")) fail_msg("%s", ranks[r].outcome.message);
    }
    shadow_memory = 0;
}

/* Whether two stages of a pipeline fit in so much of the host's memory, and in `shadow_memory` of their
 * device. */
static bool stages_fit(struct job *job, int64_t host)
{
    enum { SIZE = 2 };
    struct rank ranks[RANKS];
    allow(host);
    run_ranks(&job->settings, SIZE, false, ranks);
    bool fit = ranks[0].outcome.status == TR_OK;
    for (int r = 0; r < SIZE; r++) {
        assert_int_equal(ranks[r].outcome.status == TR_OK, fit);
        if (!fit) assert_int_equal(ranks[r].outcome.status, TR_ENOMEM);
    }
    return fit;
}

/* Passes, slots and gradients of stages lie on the device: the host has what is on its way between them, and
 * what the root collects by. */
static void stages_of_a_pipeline_count_for_their_device(void **state)
{
    struct job job;
    (void)state;
    begin(&job, &families[0]);
    job_set(&job, "train.microbatches=4");
    job_set(&job, "layers=[{dense: 1000}, {dense: 1000}, {dense: 10}]");
    job.settings.strategy = "pipeline";
    allow(PLENTY);
    struct tr_train_info alone = facts_of(&job);
    shadow_memory = PLENTY;
    job.settings.device = "shadow";
    assert_true(stages_fit(&job, alone.data_memory + alone.host_memory / 4));
    for (shadow_memory = 1; !stages_fit(&job, PLENTY); shadow_memory *= 2)
        assert_true(shadow_memory < PLENTY);
    assert_true(shadow_memory > alone.host_memory / 2);
    shadow_memory = 0;
}

static void ranks_of_a_host_count_together(void **state)
{
    (void)state;
    enum { SIZE = 4 };
    struct rank ranks[RANKS];
    struct job job;
    begin(&job, &families[0]);
    job_set(&job, "train.microbatches=4");
    allow(PLENTY);
    struct tr_train_info alone = facts_of(&job);
    /* Enough for each of them, and not for all. */
    allow(alone.host_memory + alone.data_memory);
    run_ranks(&job.settings, SIZE, true, ranks);
    expect_well(ranks, SIZE, "each on a host of its own");
    int64_t moments = alone.host_memory / 2;
    allow(alone.data_memory + moments);
    run_ranks(&job.settings, SIZE, false, ranks);
    for (int r = 0; r < SIZE; r++) {
        assert_int_not_equal(ranks[r].outcome.status, TR_OK);
        if (!strstr(ranks[r].outcome.message, "4 processes")) fail_msg("%s", ranks[r].outcome.message);
    }
    job.settings.no_memory_check = true;
    run_ranks(&job.settings, SIZE, false, ranks);
    expect_well(ranks, SIZE, "without a check");
}

/* Files that are unpacked take at least what they have. */
static void data_are_refused_before_they_are_read(void **state)
{
    (void)state;
    struct job job;
    tr_trainer *trainer = NULL;
    begin(&job, &families[0]);
    allow(100);
    assert_int_equal(tr_trainer_create(&job.settings, &trainer), TR_ENOMEM);
    job.settings.no_memory_check = true;
    facts_of(&job);
}

static int make(void **state)
{
    scratch_make(root);
    return family_place_make(state);
}

static int clean(void **state)
{
    scratch_remove(root);
    return family_place_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_refused_by_the_byte),
        cmocka_unit_test(what_is_expected_is_no_more_than_what_is_taken),
        cmocka_unit_test(a_giant_is_refused_at_once),
        cmocka_unit_test(memory_of_a_device_counts_apart),
        cmocka_unit_test(ranks_that_share_a_device_count_together),
        cmocka_unit_test(stages_of_a_pipeline_count_for_their_device),
        cmocka_unit_test(ranks_of_a_host_count_together),
        cmocka_unit_test(data_are_refused_before_they_are_read),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
