/* What a trainer cannot do, it says with the reason, on every process; and goes on as if nobody had asked. */
#include "support/ranks.h"
#include "train/loop/short_job.h"
#include "train/loop/told_job.h"

#include "base/fail.h"
#include "train/loop/trainer.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static int make(void **state)
{
    if (family_place_make(state) != 0) return -1;
    told_job_make(family_place);
    char path[SCRATCH_PATH];
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "name: two\ndata: {train: {csv: {path: tiny.csv, label: value}}}\n"
                       "layers: [{dense: {units: 3, name: one}}, {dense: {units: 1, name: two}}]\n"
                       "loss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.01}\n"
                       "train: {batch: 4, microbatches: 2, steps: 4}\n");
    must_write(scratch_join(path, family_place, "two.yaml"), &text);
    return 0;
}

static int end_stream(void *user, const void *data, size_t size)
{
    (void)user, (void)data, (void)size;
    return 7;
}

/* ---- one process ---- */

static void a_process_says_what_it_cannot_do(void **state)
{
    (void)state;
    struct job job;
    const struct tr_train_profile *profile;
    char undisturbed[65], hash[65], *path = (char *)undisturbed;
    double rate;
    short_job_hash(undisturbed);
    short_job_begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    short_job_steps(trainer, 2);
    assert_int_equal(tr_trainer_save(trainer, &path), TR_EINVAL);
    assert_said("there is no output directory to save to; set `out`");
    assert_null(path);
    assert_int_equal(tr_trainer_save_stream(trainer, end_stream, NULL), TR_EIO);
    assert_said("the function that takes the state ended it with 7");
    assert_int_equal(tr_trainer_profile(trainer, &profile), TR_EINVAL);
    assert_said("there is no profile; set `profile`, and ask the first process after the run");
    static const double wrong[] = {-1, -1e-30, INFINITY, -INFINITY, 2.0 * (double)FLT_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[160];
        snprintf(text, sizeof text,
                 "a learning rate of %g cannot be set; give one from 0 to %g, or NaN for the schedule's",
                 wrong[i], (double)FLT_MAX);
        assert_int_equal(tr_trainer_set_rate(trainer, wrong[i]), TR_EINVAL);
        assert_said(text);
    }
    short_job_finish(&trainer, hash);
    assert_string_equal(hash, undisturbed);
    /* The ends of the range are in it. */
    short_job_begin(&job);
    trainer = job_trainer(&job);
    static const double right[] = {0, (double)FLT_MAX, 0.25};
    for (size_t i = 0; i < 3; i++) {
        must_train(tr_trainer_set_rate(trainer, right[i]));
        must_train(tr_trainer_rate(trainer, &rate));
        assert_true(rate == right[i]);
    }
    tr_trainer_destroy(&trainer);
}

static void parameters_of_another_device_stay(void **state)
{
    (void)state;
    struct job job;
    float values[2], after[2], other[2] = {5, 6};
    told_job_begin(&job, "tiny.yaml");
    job.settings.parameters_on = "ref";
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_parameter(trainer, "dense1.weights", values, 2));
    assert_int_equal(tr_trainer_set_parameter(trainer, "dense1.weights", other, 2), TR_EUNSUPPORTED);
    assert_said(
        "parameter \"dense1.weights\" cannot be set while another device holds it; leave `parameters_on` "
        "out");
    must_train(tr_trainer_parameter(trainer, "dense1.weights", after, 2));
    assert_memory_equal(values, after, sizeof values);
    tr_trainer_destroy(&trainer);
}

static void a_stop_that_is_set_ends_the_making(void **state)
{
    (void)state;
    struct job job;
    tr_stop *stop;
    tr_trainer *trainer;
    told_job_begin(&job, "tiny.yaml");
    must_train(tr_stop_create(&stop));
    tr_stop_set(stop, 1);
    job.settings.stop = stop;
    assert_int_equal(tr_trainer_create(&job.settings, &trainer), TR_EINTERRUPTED);
    assert_said("creating the trainer was ended by the stop of the settings");
    tr_stop_set(stop, 0);
    must_train(tr_trainer_create(&job.settings, &trainer));
    tr_trainer_destroy(&trainer);
    tr_stop_destroy(&stop);
}

/* A child has the trainer's memory and none of its threads: number of the call that does what it may not. */
static int calls_in_a_child(tr_trainer *trainer, pid_t parent)
{
    char hash[65], part[160];
    float value = 1;
    void *bytes;
    size_t size;
    tr_predictor *predictor;
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    snprintf(part, sizeof part,
             "the trainer was made in process %ld, and this is process %ld, forked from it", (long)parent,
             (long)getpid());
    const tr_status got[] = {tr_trainer_run(trainer, NULL, NULL),
                             tr_trainer_step(trainer, NULL),
                             tr_trainer_hash(trainer, hash),
                             tr_trainer_parameter(trainer, "dense1.bias", &value, 1),
                             tr_trainer_set_parameter(trainer, "dense1.bias", &value, 1),
                             tr_trainer_set_rate(trainer, 1),
                             tr_trainer_save(trainer, NULL),
                             tr_trainer_save_state(trainer, &bytes, &size),
                             tr_trainer_predictor(trainer, &settings, &predictor)};
    for (size_t i = 0; i < sizeof got / sizeof got[0]; i++)
        if (got[i] != TR_EUNSUPPORTED) return (int)i + 1;
    if (!strstr(tr_error_message(), part) || !strstr(tr_error_message(), "create a trainer in the child"))
        return 100;
    tr_trainer_destroy(&trainer);
    return trainer ? 101 : 0;
}

static void children_leave_it_alone(void **state)
{
    (void)state;
    struct job job;
    int status;
    told_job_begin(&job, "tiny.yaml");
    tr_trainer *trainer = job_trainer(&job);
    const pid_t parent = getpid(), child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(calls_in_a_child(trainer, parent));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    must_train(tr_trainer_step(trainer, NULL));
    tr_trainer_destroy(&trainer);
}

/* ---- warnings ---- */

/* Of a round nobody knows which steps were left out. */
static void skipped_steps_of_a_round_are_told_together(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    told_job_begin(&job, "tiny.yaml");
    job_set(&job, "optimizer.rate=1e30");
    job_set(&job, "train.on_nonfinite=skip");
    job.settings.steps = 4;
    job.settings.strategy = "local-sgd,every=4,replicas=1";
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    assert_int_equal(outcome.warnings, 1);
    assert_string_equal(outcome.warning,
                        "of steps 1 to 4 some were skipped: their loss or gradient is not finite");
}

/* Changes the data after some step, and counts warnings of that. */
struct change {
    const char *path;
    int64_t step;
    int warnings;
    int64_t warned;
};

static int change_data(void *user, const struct tr_train_event *event)
{
    struct change *change = user;
    char text[2 * SCRATCH_PATH];
    if (event->kind == TR_EVENT_STEP && event->step == change->step)
        must_train(tr_file_write_atomic(NULL, change->path, "a,b,y\n7,8,9\n", 12));
    if (event->kind != TR_EVENT_WARNING) return 0;
    snprintf(
        text, sizeof text,
        "\"%s\" (train data) has changed since the run began; a run with the new contents would end with "
        "another hash",
        change->path);
    assert_string_equal(event->name, text);
    change->warnings++;
    change->warned = event->step;
    return 0;
}

/* Looked for at the end of each epoch, of three steps here, and at that of the run; told once. */
static void changed_data_are_told_once(void **state)
{
    (void)state;
    static const struct {
        int64_t step, warned;
    } cases[] = {{1, 3}, {4, 6}, {7, 8}, {100, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        char path[SCRATCH_PATH];
        struct change change = {scratch_join(path, family_place, "tiny.csv"), cases[i].step, 0, 0};
        told_job_make(family_place);
        told_job_begin(&job, "tiny.yaml");
        job_set(&job, "train.log_every=1");
        tr_trainer *trainer = job_trainer(&job);
        must_train(tr_trainer_run(trainer, change_data, &change));
        tr_trainer_destroy(&trainer);
        assert_int_equal(change.warnings, cases[i].warned > 0);
        assert_int_equal(change.warned, cases[i].warned);
    }
    told_job_make(family_place);
}

/* ---- several processes ---- */

/* What every rank does between its second step and the third: `wrong` gets what is not as it should be. */
typedef void rank_function(tr_trainer *trainer, int rank, char wrong[1024]);

static void *run_asking(void *user)
{
    struct rank *rank = user;
    rank_function *ask = *(rank_function **)rank->user;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    short_job_steps(trainer, 2);
    ask(trainer, tr_comm_rank(rank->comm), rank->outcome.message);
    rank->outcome.status = rank->outcome.message[0] ? TR_EINVAL : TR_OK;
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void ask_ranks(const char *strategy, int size, rank_function *ask)
{
    struct job job;
    struct rank ranks[RANKS] = {0};
    told_job_begin(&job, "two.yaml");
    job.settings.set = job.set;
    job.settings.strategy = strategy;
    for (int r = 0; r < size; r++) ranks[r].user = &ask;
    run_ranks_by(run_asking, &job.settings, size, 0, ranks);
    expect_well(ranks, size, strategy);
}

static bool says(tr_status got, tr_status wanted, const char *part, char wrong[1024])
{
    const char *said = got == TR_OK ? "" : tr_error_message();
    if (got == wanted && strstr(said, part)) return true;
    snprintf(wrong, 1024, "%s: \"%.300s\" instead of %s: \"%.300s\"", tr_status_name(got), said,
             tr_status_name(wanted), part);
    return false;
}

/* A file is where a directory is to be made: the root sees it, and the others hear of it. */
static void save_below_a_file(tr_trainer *trainer, int rank, char wrong[1024])
{
    char path[SCRATCH_PATH], hash[65], again[65];
    tr_status status = tr_trainer_hash(trainer, hash);
    scratch_join(path, family_place, "tiny.csv/below");
    if (status != TR_OK || !says(tr_trainer_save_at(trainer, path), TR_EIO,
                                 rank ? "rank 0 could not save the checkpoint of step 2" : "tiny.csv", wrong))
        return;
    status = tr_trainer_step(trainer, NULL); /* all go on */
    if (status == TR_OK) status = tr_trainer_hash(trainer, again);
    if (status != TR_OK) snprintf(wrong, 1024, "%s", tr_error_message());
    if (status == TR_OK && strcmp(hash, again) == 0) snprintf(wrong, 1024, "a step without effect");
}

/* Each stage has its own layer. */
static void look_at_other_stages(tr_trainer *trainer, int rank, char wrong[1024])
{
    float values[6];
    char hash[65];
    bool well = says(
        tr_trainer_hash(trainer, hash), TR_EINVAL,
        "under the strategy pipeline each process has a part of the parameters, whose hash is known after a "
        "run and after saving only, but step 2 came since",
        wrong);
    tr_status own = tr_trainer_parameter(trainer, rank ? "two.weights" : "one.weights", values, rank ? 3 : 6);
    if (own != TR_OK) snprintf(wrong, 1024, "%s", tr_error_message());
    if (well && own == TR_OK)
        says(tr_trainer_parameter(trainer, rank ? "one.weights" : "two.weights", values, rank ? 6 : 3),
             TR_ENOTFOUND, "is on another process, that of its layer; load it from a checkpoint", wrong);
}

static void ranks_say_what_they_cannot_do(void **state)
{
    (void)state;
    ask_ranks("allreduce", 2, save_below_a_file);
    ask_ranks("pipeline,cut=[two]", 2, look_at_other_stages);
}

/* Workers and servers have no step in common. */
static void *ask_before_the_run(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer;
    float values[6] = {0};
    char *wrong = rank->outcome.message;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    if (says(tr_trainer_set_parameter(trainer, "one.weights", values, 6), TR_EUNSUPPORTED,
             "parameter \"one.weights\" cannot be set in an asynchronous run of the strategy "
             "parameter-server, "
             "whose processes have no step in common; set it in a job of one process, save that, and begin "
             "with "
             "its checkpoint (`from`)",
             wrong))
        says(tr_trainer_set_rate(trainer, 1), TR_EUNSUPPORTED,
             "in an asynchronous run of the strategy parameter-server there is no step from which on all "
             "processes could have another learning rate; give the job a schedule, or choose a synchronous "
             "strategy",
             wrong);
    rank->outcome.status = *wrong ? TR_EINVAL : tr_trainer_run(trainer, NULL, NULL);
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void asynchronous_ranks_say_what_they_cannot_do(void **state)
{
    (void)state;
    struct job job;
    struct rank ranks[RANKS] = {0};
    char out[SCRATCH_PATH];
    told_job_begin(&job, "two.yaml");
    job.settings.set = job.set;
    job.settings.strategy = "parameter-server,mode=async";
    run_ranks_by(ask_before_the_run, &job.settings, 2, 0, ranks);
    expect_well(ranks, 2, "asynchronous");
    job.settings.record_digests = 1;
    job.settings.out = scratch_join(out, family_place, "digests");
    run_ranks(&job.settings, 2, 0, ranks);
    assert_int_equal(ranks[0].outcome.status, TR_EINVAL);
    assert_non_null(strstr(ranks[0].outcome.message,
                           "digests of an asynchronous run, which no other run is equal "
                           "to; choose a synchronous strategy"));
}

static void what_needs_all_ranks_does_not_go_on_without_some(void **state)
{
    (void)state;
    char path[SCRATCH_PATH], out[SCRATCH_PATH];
    for (int i = 0; i < 4; i++) {
        struct job job;
        struct rank ranks[RANKS] = {0};
        told_job_begin(&job, "two.yaml");
        job.settings.set = job.set;
        job.settings.outlives = true;
        if (i == 0) job.settings.trace = scratch_join(path, family_place, "trace.json");
        if (i == 0) job.settings.trace_steps = 1;
        if (i == 1) job.settings.profile = true;
        if (i == 2) job.settings.record_digests = 1;
        if (i == 2) job.settings.out = scratch_join(out, family_place, "outlives");
        run_ranks(&job.settings, 2, 0, ranks);
        if (i == 3) {
            expect_well(ranks, 2, "nothing of that");
            break;
        }
        for (int r = 0; r < 2; r++) {
            assert_int_equal(ranks[r].outcome.status, TR_EINVAL);
            assert_non_null(
                strstr(ranks[r].outcome.message,
                       "traces, profiles and digests need all ranks, but this job goes on without ranks "
                       "that die; leave one of the two out"));
        }
        run_ranks(&job.settings, 1, 0, ranks); /* one that dies leaves nobody behind */
        expect_well(ranks, 1, "alone");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_says_what_it_cannot_do),
        cmocka_unit_test(parameters_of_another_device_stay),
        cmocka_unit_test(a_stop_that_is_set_ends_the_making),
        cmocka_unit_test(children_leave_it_alone),
        cmocka_unit_test(skipped_steps_of_a_round_are_told_together),
        cmocka_unit_test(changed_data_are_told_once),
        cmocka_unit_test(ranks_say_what_they_cannot_do),
        cmocka_unit_test(asynchronous_ranks_say_what_they_cannot_do),
        cmocka_unit_test(what_needs_all_ranks_does_not_go_on_without_some),
    };
    return cmocka_run_group_tests_name("train.reasons", tests, make, family_place_remove);
}
