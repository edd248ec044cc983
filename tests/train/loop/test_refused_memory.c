/* Memory that is refused to runs which are watched in every way, or train by other strategies, and to what
 * programs ask of a trainer: each refusal is told, and nothing stays behind.
 */
#include "refuse.h"
#include "support/training.h"
#include "train/loop/told_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int make(void **state)
{
    scratch_place_make(state);
    told_job_make(scratch_place);
    return 0;
}

/* ---- whole runs ---- */

struct life {
    const char *strategy;
    bool watched, simulated;
    const char *teacher; /* a run of "classes.yaml", which this then is, too */
};

static int count_warnings(void *user, const struct tr_train_event *event)
{
    int *warnings = user;
    *warnings += event->kind == TR_EVENT_WARNING;
    return 0;
}

/* Trains, and takes up what was saved. *warnings: what the run got over. */
static tr_status live(const struct life *life, int *warnings)
{
    struct job job;
    tr_trainer *trainer = NULL;
    char out[SCRATCH_PATH], trace[SCRATCH_PATH];
    told_job_begin(&job, life->teacher ? "classes.yaml" : "tiny.yaml");
    job.settings.teacher = life->teacher;
    job_set(&job, "train.microbatches=2");
    job_set(&job, "train.log_every=1");
    job_set(&job, "optimizer={rule: adam, rate: 0.01, ema: 0.5}");
    job_set(&job, "train.prefetch=0"); /* a reader would still allocate when the hook is gone */
    job.settings.set = job.set;
    job.settings.steps = 4;
    job.settings.strategy = life->strategy;
    job.settings.out = scratch_join(out, scratch_place, "out");
    if (life->watched) {
        job.settings.trace = scratch_join(trace, scratch_place, "trace.json");
        job.settings.trace_steps = 3;
        job.settings.record_digests = 1;
        job.settings.receipt = true;
    }
    if (life->simulated) job.settings.simulate_delays = 3;
    tr_status status = tr_trainer_create(&job.settings, &trainer);
    if (status == TR_OK) status = tr_trainer_set_command(trainer, "trireme train");
    if (status == TR_OK) status = tr_trainer_run(trainer, count_warnings, warnings);
    tr_trainer_destroy(&trainer);
    if (status != TR_OK || *warnings > 0 || life->simulated) return status;
    job.settings.resume = out;
    status = tr_trainer_create(&job.settings, &trainer);
    tr_trainer_destroy(&trainer);
    return status;
}

/* Every `stride`th allocation from `first` on. */
static void check_life(const struct life *life, int64_t first, int64_t stride)
{
    int64_t at = first;
    for (bool done = false; !done; at += stride) {
        const int64_t before = tr_alloc_live();
        int warnings = 0;
        refuse_begin(at);
        tr_status status = live(life, &warnings);
        done = refuse_end();
        /* A journal, or a trace that is not written yet, is no reason to end; what has no memory to be
           recorded is not in the trace. */
        bool told = status == TR_ENOMEM || (status == TR_OK && (warnings > 0 || life->watched));
        if (done ? status != TR_OK || warnings > 0 : !told)
            fail_msg("%s%s: allocation %lld: %s, %d warnings: %s",
                     life->strategy ? life->strategy : "watched", life->simulated ? ", simulated" : "",
                     (long long)at, tr_status_name(status), warnings,
                     status == TR_OK ? "" : tr_error_message());
        if (tr_alloc_live() != before)
            fail_msg("%s: allocation %lld leaves %lld blocks", life->strategy ? life->strategy : "watched",
                     (long long)at, (long long)(tr_alloc_live() - before));
        char out[SCRATCH_PATH];
        if (tr_file_is_directory(scratch_join(out, scratch_place, "out"))) scratch_remove(out);
    }
    assert_true(at > 100);
}

static void watched_runs(void **state)
{
    (void)state;
    check_life(&(struct life){.watched = true}, 0, 1);
}

static void replicas_apart(void **state)
{
    (void)state;
    static const char *const strategies[] = {"local-sgd,replicas=2,every=2,momentum=0.5",
                                             "easgd,replicas=2,every=2", "gossip,replicas=2,consensus=2"};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++)
        check_life(&(struct life){.strategy = strategies[i]}, (int64_t)i, 5);
}

static void stages(void **state)
{
    (void)state;
    check_life(&(struct life){.strategy = "pipeline,stages=1"}, 0, 1);
}

static void orders_of_updates(void **state)
{
    (void)state;
    check_life(&(struct life){.strategy = "parameter-server,mode=async,servers=2", .simulated = true}, 0, 2);
    check_life(&(struct life){.strategy = "parameter-server,mode=async"}, 0, 5);
}

/* Of classes, since a teacher has scores of them. */
static void taught_runs(void **state)
{
    (void)state;
    struct job job;
    tr_trainer *trainer;
    char path[SCRATCH_PATH], teacher[SCRATCH_PATH];
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "name: classes\ndata: {train: {csv: {path: classes.csv}}}\nlayers: [{dense: 3}]\n"
                       "optimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 2, steps: 2}\n");
    must_write(scratch_join(path, scratch_place, "classes.yaml"), &text);
    tr_text_add(&text, "a,b,y\n1,2,0\n2,-1,1\n-1,3,2\n0.5,0.25,0\n");
    must_write(scratch_join(path, scratch_place, "classes.csv"), &text);
    told_job_begin(&job, "classes.yaml");
    job.settings.out = scratch_join(teacher, scratch_place, "teacher");
    must_train(tr_trainer_create(&job.settings, &trainer));
    must_train(tr_trainer_run(trainer, NULL, NULL));
    tr_trainer_destroy(&trainer);
    check_life(&(struct life){.teacher = teacher}, 0, 1);
}

/* ---- what programs ask ---- */

static int64_t take_nothing;

static int take(void *user, const void *data, size_t size)
{
    (void)user, (void)data;
    take_nothing += (int64_t)size;
    return 0;
}

/* All of it, with a trainer between two steps. */
static tr_status ask(tr_trainer *trainer, int what)
{
    static const float bias[] = {0.25F};
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    char hash[65], *text;
    tr_predictor *predictor = NULL;
    float values[2];
    void *bytes;
    size_t size;
    tr_status status = TR_EINVAL;
    switch (what) {
    case 0:
        return tr_trainer_evaluate(trainer, "train", &event);
    case 1:
        status = tr_trainer_save_state(trainer, &bytes, &size);
        if (status == TR_OK)
            tr_state_free(bytes);
        else
            assert_true(bytes == NULL && size == 0);
        return status;
    case 2:
        return tr_trainer_save_stream(trainer, take, NULL);
    case 3:
        return tr_trainer_save_at(trainer, scratch_in("elsewhere"));
    case 4:
        settings.use_average = 1;
        status = tr_trainer_predictor(trainer, &settings, &predictor);
        assert_int_equal(predictor != NULL, status == TR_OK);
        tr_predictor_destroy(&predictor);
        return status;
    case 5:
        return tr_trainer_set_parameter(trainer, "dense1.bias", bias, 1);
    case 6:
        return tr_trainer_parameter(trainer, "dense1.weights", values, 2);
    case 7:
        return tr_trainer_hash(trainer, hash);
    case 8:
        return tr_trainer_info(trainer, &info);
    case 9:
    case 10:
        status = what == 9 ? tr_trainer_receipt(trainer, &text) : tr_trainer_save(trainer, &text);
        if (status == TR_OK)
            tr_text_free(text);
        else
            assert_null(text);
        return status;
    default:
        return tr_trainer_set_command(trainer, "trireme train model.yaml");
    }
}

static void requests_between_steps(void **state)
{
    (void)state;
    for (int what = 0; what < 12; what++) {
        struct job job;
        char out[SCRATCH_PATH];
        told_job_begin(&job, "tiny.yaml");
        job_set(&job, "optimizer={rule: adam, rate: 0.01, ema: 0.5}");
        job.settings.out = scratch_join(out, scratch_place, "asked");
        job.settings.receipt = what != 5; /* parameters that are set begin another one */
        tr_trainer *trainer = job_trainer(&job);
        for (int i = 0; i < 2; i++) must_train(tr_trainer_step(trainer, NULL));
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t before = tr_alloc_live();
            refuse_begin(at);
            tr_status status = ask(trainer, what);
            done = refuse_end();
            if (tr_file_is_directory(scratch_in("elsewhere"))) scratch_remove(scratch_in("elsewhere"));
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("request %d, allocation %lld: %s: %s", what, (long long)at, tr_status_name(status),
                         status == TR_OK ? "" : tr_error_message());
            /* What a trainer makes when it is asked first, it may keep. */
            if (!done && tr_alloc_live() < before) fail_msg("request %d frees what is not its own", what);
        }
        must_train(tr_trainer_step(trainer, NULL));
        tr_trainer_destroy(&trainer);
        if (tr_file_is_directory(out)) scratch_remove(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watched_runs),      cmocka_unit_test(replicas_apart),
        cmocka_unit_test(orders_of_updates), cmocka_unit_test(stages),
        cmocka_unit_test(taught_runs),       cmocka_unit_test(requests_between_steps),
    };
    return cmocka_run_group_tests_name("train.refused_memory", tests, make, scratch_place_remove);
}
