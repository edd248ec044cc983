/* Mistakes in jobs, and runs that go wrong: what is said, and that nothing good is lost.
 *
 * Parsers of data are tested with the data (tests/data); layers with models (tests/nn/test_model.c). Here is
 * what joins them.
 */
#include "support/training.h"

#include "base/alloc.h"
#include "base/text/text.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

static void expect_says(const char *about, const char *message, const char *const *says)
{
    for (int i = 0; i < 5 && says[i]; i++)
        if (!strstr(message, says[i])) fail_msg("%s: \"%s\" does not say \"%s\"", about, message, says[i]);
}

/* ---- model files ---- */

/* A good model file; a mistake replaces one of its lines. */
static const char *const lines[] = {
    /* 1 */ "name: job",
    /* 2 */ "seed: 1",
    /* 3 */ "data:",
    /* 4 */ "  train: {csv: {path: numbers.csv}}",
    /* 5 */ "layers:",
    /* 6 */ "  - dense: {units: 5, activation: tanh}",
    /* 7 */ "  - dense: 3",
    /* 8 */ "loss: softmax_cross_entropy",
    /* 9 */ "optimizer: {rule: sgd, rate: 0.1}",
    /* 10 */ "train: {batch: 4, steps: 6, log_every: 1}",
};
#define LINES (int)(sizeof lines / sizeof lines[0])

static void write_model(const char *name, int changed, const char *replacement)
{
    struct tr_text text = TR_TEXT_INIT;
    char *bytes;
    for (int i = 0; i < LINES; i++) tr_text_addf(&text, "%s\n", i + 1 == changed ? replacement : lines[i]);
    must_train(tr_text_finish(&text, &bytes));
    scratch_write_text(name, bytes);
    tr_free(bytes);
}

struct mistake {
    int line;
    const char *text;
    tr_status status;
    const char *says[5];
};

static const struct mistake mistakes[] = {
    /* the top level */
    {1, "", TR_EINVAL, {"job.yaml", "\"name\" is missing"}},
    {1, "nmae: job", TR_EINVAL, {"job.yaml:1", "\"nmae\"", "\"name\""}},
    {1, "name: [a, b]", TR_EINVAL, {"job.yaml:1", "name", "list"}},
    {2, "seed: many", TR_EINVAL, {"job.yaml:2", "seed", "\"many\""}},
    {2, "seed: -1", TR_EINVAL, {"job.yaml:2", "seed", "-1", "0"}},
    {2, "seed: 1\nseed: 2", TR_EFORMAT, {"job.yaml:3", "seed"}},
    {2, "epochs: 3", TR_EINVAL, {"job.yaml:2", "\"epochs\""}},
    {5, "layer:", TR_EINVAL, {"job.yaml:5", "\"layer\"", "\"layers\""}},
    {9, "", TR_EINVAL, {"job.yaml", "\"optimizer\" is missing"}},
    {10, "", TR_EINVAL, {"job.yaml", "\"train\" is missing"}},
    /* YAML */
    {4, "  train: {csv: {path: numbers.csv}", TR_EFORMAT, {"job.yaml:"}},
    {4, "\ttrain: {csv: {path: numbers.csv}}", TR_EFORMAT, {"job.yaml:4"}},
    {8, "loss: *nowhere", TR_EFORMAT, {"job.yaml:8", "nowhere"}},
    {8, "loss: !tag softmax_cross_entropy", TR_EFORMAT, {"job.yaml:8", "tag"}},
    {10, "train: {batch: 4, steps: 6}\n---\nname: second", TR_EFORMAT, {"job.yaml:1"}},
    /* data */
    {4, "  train:", TR_ENOTFOUND, {"no train data", "data.train"}},
    {4, "  trian: {csv: {path: numbers.csv}}", TR_EINVAL, {"job.yaml:4", "\"trian\"", "\"train\""}},
    {4, "  train: {cvs: {path: numbers.csv}}", TR_EINVAL, {"job.yaml:4", "\"cvs\"", "csv"}},
    {4, "  train: {csv: {path: nothing.csv}}", TR_ENOTFOUND, {"nothing.csv"}},
    {4, "  train: {csv: {path: .}}", TR_EFORMAT, {"regular file"}},
    {4, "  train: {csv: {paht: numbers.csv}}", TR_EINVAL, {"job.yaml:4", "\"paht\"", "\"path\""}},
    {4, "  train: numbers.csv", TR_EINVAL, {"job.yaml:4", "a mapping", "format"}},
    {4, "  train: {csv: {path: letters.csv}}", TR_EFORMAT, {"letters.csv:2", "\"x\""}},
    {4, "  train: {csv: {path: empty.csv}}", TR_EFORMAT, {"empty.csv"}},
    {4, "  train: {idx: {images: numbers.csv, labels: numbers.csv}}", TR_EFORMAT, {"numbers.csv"}},
    {4,
     "  train: {tfrecord: {path: numbers.csv, height: 2, width: 1, classes: 3}}",
     TR_ECORRUPT,
     {"numbers.csv"}},
    /* data and network */
    {7, "  - dense: 2", TR_EMISMATCH, {"train data", "3 classes", "2 outputs", "units"}},
    {8, "loss: mean_squared_error", TR_EMISMATCH, {"train data", "no values to predict"}},
    {8, "input: {shape: [7]}", TR_EMISMATCH, {"train data", "shape 2", "7"}},
    {8, "input: {shape: [2, 2]}", TR_EMISMATCH, {"train data", "shape 2", "2x2x1"}},
    {8, "input: {shape: [2, 2, 2, 2]}", TR_EINVAL, {"job.yaml:8", "4 sizes"}},
    {8, "input: {shape: [2], vocabulary: 9}", TR_EINVAL, {"job.yaml:8", "shape", "vocabulary"}},
    {6, "  - lstm: 4", TR_EINVAL, {"job.yaml:6", "lstm1", "sequence", "2"}},
    {6, "  - conv: {filters: 2, kernel: 1}", TR_EINVAL, {"job.yaml:6", "conv1", "needs images", "2"}},
    {8, "loss: {kind: hinge}", TR_EINVAL, {"job.yaml:8", "hinge", "softmax_cross_entropy"}},
    /* the optimizer */
    {9, "optimizer: {rule: adma, rate: 0.1}", TR_EINVAL, {"job.yaml:9", "\"adma\"", "adam"}},
    {9, "optimizer: {rule: sgd}", TR_EINVAL, {"job.yaml:9", "rate"}},
    {9, "optimizer: {rule: sgd, rate: -0.1}", TR_EINVAL, {"job.yaml:9", "rate", "-0.1"}},
    {9, "optimizer: {rule: sgd, rate: fast}", TR_EINVAL, {"job.yaml:9", "rate", "\"fast\""}},
    {9, "optimizer: {rule: sgd, rate: 1e39}", TR_EINVAL, {"job.yaml:9", "rate"}},
    {9,
     "optimizer: {rule: sgd, rate: 1, beta1: 0.5}",
     TR_EINVAL,
     {"job.yaml:9", "beta1", "rule: adam, adamw, lion, lamb, muon only"}},
    {9, "optimizer: {rule: sgd, rate: 1, ema: 1}", TR_EINVAL, {"job.yaml:9", "ema"}},
    {9, "optimizer: {rule: sgd, rate: 1, schedule: cosin}", TR_EINVAL, {"job.yaml:9", "\"cosin\"", "cosine"}},
    {9,
     "optimizer: {rule: sgd, rate: 1, schedule: {kind: step, decay: 0.1}}",
     TR_EINVAL,
     {"job.yaml:9", "decay"}},
    /* the run */
    {10, "train: {batch: 0, steps: 6}", TR_EINVAL, {"job.yaml:10", "batch", "0"}},
    {10, "train: {steps: 6}", TR_EINVAL, {"job.yaml:10", "batch"}},
    {10, "train: {bacth: 4, steps: 6}", TR_EINVAL, {"job.yaml:10", "\"bacth\"", "\"batch\""}},
    {10, "train: {batch: 4}", TR_EINVAL, {"job.yaml:10", "steps or epochs"}},
    {10, "train: {batch: 4, steps: 6, epochs: 2}", TR_EINVAL, {"job.yaml:10", "not both"}},
    {10, "train: {batch: 4, steps: 1.5}", TR_EINVAL, {"job.yaml:10", "steps", "1.5"}},
    {10, "train: {batch: 4, epochs: 9007199254740992}", TR_OK, {NULL}},
    {10, "train: {batch: 1, epochs: 9007199254740992}", TR_OK, {NULL}},
    {10,
     "train: {batch: 4, steps: 6, microbatches: 5}",
     TR_EINVAL,
     {"job.yaml:10", "5 microbatches", "4 examples"}},
    {10, "train: {batch: 4, steps: 6, pass: 3}", TR_EINVAL, {"job.yaml:10", "pass is 3", "power of two"}},
    {10, "train: {batch: 40, steps: 6, last_batch: drop}", TR_EINVAL, {"40", "7"}},
    {10, "train: {batch: 4, steps: 6, last_batch: maybe}", TR_EINVAL, {"job.yaml:10", "maybe", "keep"}},
    {10, "train: {batch: 4, steps: 6, keep: 1}", TR_EINVAL, {"job.yaml:10", "keep", "1"}},
    {10, "train: {batch: 4, steps: 6, until_accuracy: 2}", TR_EINVAL, {"job.yaml:10", "until_accuracy", "2"}},
};

static void expect_refused(const char *about, struct job *job, tr_status status, const char *const *says)
{
    int64_t live = tr_alloc_live();
    tr_trainer *trainer = NULL;
    job->settings.set = job->set;
    tr_status got = tr_trainer_create(&job->settings, &trainer);
    if (got != status)
        fail_msg("%s: %s (%s), should be %s", about, tr_status_name(got),
                 got == TR_OK ? "" : tr_error_message(), tr_status_name(status));
    if (got != TR_OK) {
        assert_null(trainer);
        expect_says(about, tr_error_message(), says);
    }
    tr_trainer_destroy(&trainer);
    if (tr_alloc_live() != live)
        fail_msg("%s: %lld blocks are left", about, (long long)(tr_alloc_live() - live));
}

static void test_model_files(void **state)
{
    (void)state;
    write_model("job.yaml", 0, NULL);
    struct job job;
    job_begin(&job, scratch_in("job.yaml"));
    expect_refused("the good file", &job, TR_OK, NULL);
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        write_model("job.yaml", mistakes[i].line, mistakes[i].text);
        job_begin(&job, scratch_in("job.yaml"));
        expect_refused(mistakes[i].text, &job, mistakes[i].status, mistakes[i].says);
    }
}

static void test_files_that_are_no_model(void **state)
{
    (void)state;
    static const struct {
        const char *name, *content;
        tr_status status;
        const char *says[5];
    } files[] = {
        {"nothing.yaml", NULL, TR_ENOTFOUND, {"nothing.yaml"}},
        {"empty.yaml", "", TR_EFORMAT, {"empty.yaml"}},
        {"text.yaml", "just words", TR_EINVAL, {"text.yaml:1", "\"layers\" is missing"}},
        {"list.yaml", "- a\n- b\n", TR_EINVAL, {"list.yaml:1", "a list"}},
        {"binary.yaml", "\x01\x02\xff\xfe", TR_EFORMAT, {"binary.yaml"}},
    };
    struct job job;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (files[i].content) scratch_write_text(files[i].name, files[i].content);
        job_begin(&job, scratch_in(files[i].name));
        expect_refused(files[i].name, &job, files[i].status, files[i].says);
    }
    job_begin(&job, scratch_place);
    expect_refused("a directory", &job, TR_EFORMAT, (const char *const[5]){scratch_place});
}

static void test_overrides(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        const char *says[5];
    } overrides[] = {
        {"train.bacth=3", {"`set` train.bacth: unknown", "\"batch\""}},
        {"trian.batch=3", {"trian", "\"train\""}},
        {"train.batch", {"train.batch", "="}},
        {"train.batch=[3", {"train.batch"}},
        {"train.batch=three", {"train.batch", "\"three\""}},
        {"layers[7].units=3", {"layers", "7"}},
        {"layers.nobody.units=3", {"nobody"}},
        {"optimizer.rate=", {"rate"}},
    };
    write_model("job.yaml", 0, NULL);
    for (size_t i = 0; i < sizeof overrides / sizeof overrides[0]; i++) {
        struct job job;
        job_begin(&job, scratch_in("job.yaml"));
        job_set(&job, overrides[i].set);
        expect_refused(overrides[i].set, &job, TR_EINVAL, overrides[i].says);
    }
}

static void test_settings(void **state)
{
    (void)state;
    write_model("job.yaml", 0, NULL);
    struct job job;
    job_begin(&job, scratch_in("job.yaml"));
    job.settings.device = "tpu";
    expect_refused("device", &job, TR_ENOTFOUND, (const char *const[5]){"\"tpu\"", "cpu", "ref"});
    job_begin(&job, scratch_in("job.yaml"));
    job.settings.isa = "mmx";
    expect_refused("isa", &job, TR_EUNSUPPORTED, (const char *const[5]){"\"mmx\"", "plain"});
    job_begin(&job, scratch_in("job.yaml"));
    job.settings.threads = 100000;
    expect_refused("threads", &job, TR_EINVAL, (const char *const[5]){"100000", "256"});
    job_begin(&job, scratch_in("job.yaml"));
    job.settings.size = 8;
    expect_refused("size", &job, TR_EINVAL, (const char *const[5]){"8 bytes", "TR_TRAIN_SETTINGS_INIT"});
    job_begin(&job, scratch_in("job.yaml"));
    job.settings.size = sizeof job.settings + 1;
    expect_refused("size", &job, TR_EINVAL, (const char *const[5]){"bytes", "TR_TRAIN_SETTINGS_INIT"});
}

static void test_misuse_of_a_trainer(void **state)
{
    (void)state;
    write_model("job.yaml", 0, NULL);
    struct job job;
    job_begin(&job, scratch_in("job.yaml"));
    tr_trainer *trainer = job_trainer(&job);
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    float values[10];
    assert_int_equal(tr_trainer_evaluate(trainer, "test", &event), TR_ENOTFOUND);
    expect_says("test data", tr_error_message(), (const char *const[5]){"test", "data.test"});
    assert_int_equal(tr_trainer_evaluate(trainer, "tset", &event), TR_ENOTFOUND);
    expect_says("set", tr_error_message(), (const char *const[5]){"\"tset\"", "validation"});
    assert_int_equal(tr_trainer_save(trainer, NULL), TR_EINVAL);
    expect_says("save", tr_error_message(), (const char *const[5]){"output directory", "`out`"});
    assert_int_equal(tr_trainer_parameter(trainer, "dense9.weights", values, 10), TR_ENOTFOUND);
    expect_says("parameter", tr_error_message(), (const char *const[5]){"\"dense9.weights\""});
    assert_int_equal(tr_trainer_parameter(trainer, "dense1.weights", values, 9), TR_EMISMATCH);
    expect_says("parameter", tr_error_message(), (const char *const[5]){"\"dense1.weights\"", "10", "9"});
    must_train(tr_trainer_parameter(trainer, "dense1.weights", values, 10));
    for (int i = 0; i < 6; i++) must_train(tr_trainer_step(trainer, NULL));
    assert_int_equal(tr_trainer_step(trainer, NULL), TR_EINVAL);
    expect_says("steps", tr_error_message(), (const char *const[5]){"all 6 steps", "train.steps"});
    tr_trainer_destroy(&trainer);
    assert_null(trainer);
    tr_trainer_destroy(&trainer);
}

/* Evaluation data that cannot be read are found before the training, not after. */
static void test_bad_evaluation_data(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        tr_status status;
        const char *says[5];
    } cases[] = {
        {"data.test.csv.path=nothing.csv", TR_ENOTFOUND, {"nothing.csv"}},
        {"data.validation.csv.path=letters.csv", TR_EFORMAT, {"letters.csv:2"}},
        {"data.test.csv.path=wide.csv", TR_EMISMATCH, {"wide.csv", "3 features", "2"}},
        {"data.test.csv={path: more.csv, classes: 4}", TR_EMISMATCH, {"test data", "4 classes", "3 outputs"}},
    };
    write_model("job.yaml", 0, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct outcome outcome;
        job_begin(&job, scratch_in("job.yaml"));
        job_set(&job, cases[i].set);
        job_outcome(&job, &outcome);
        if (outcome.status != cases[i].status)
            fail_msg("%s: %s (%s), should be %s", cases[i].set, tr_status_name(outcome.status),
                     outcome.message, tr_status_name(cases[i].status));
        expect_says(cases[i].set, outcome.message, cases[i].says);
        assert_int_equal(outcome.steps_seen, 0);
    }
}

/* ---- numbers that are not finite ---- */

/* The poisoned row of this file is step 4 of every epoch when the batch is 1 and the order that of the file.
 */
#define POISONED_STEP 4

static void poison_job(struct job *job, const char *policy)
{
    write_model("job.yaml", 4, "  train: {csv: {path: poison.csv}}");
    job_begin(job, scratch_in("job.yaml"));
    job_set(job, "train={batch: 1, steps: 16, shuffle: false, log_every: 1, checkpoint_every: 1, keep: 3}");
    job_set(job, "layers[0].activation=none");
    job_set(job, policy);
}

static void test_stop_at_a_loss_that_is_not_finite(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    struct job job;
    struct outcome outcome;
    poison_job(&job, "train.on_nonfinite=stop");
    job.settings.out = scratch_join(out, scratch_place, "stopped");
    job_outcome(&job, &outcome);
    if (outcome.status != TR_ENONFINITE) fail_msg("%s: %s", tr_status_name(outcome.status), outcome.message);
    expect_says("loss", outcome.message,
                (const char *const[5]){"step 4:", "loss is not finite", "output of layer \"dense2\"",
                                       "optimizer.rate"});
    assert_int_equal(outcome.step, POISONED_STEP - 1);
    assert_int_equal(outcome.checkpoints, POISONED_STEP - 1);
    /* What was saved before is good and can be taken up, past the bad row with another policy. */
    job_set(&job, "train.on_nonfinite=skip");
    job.settings.resume = out;
    struct outcome rest, whole;
    job_outcome(&job, &rest);
    assert_int_equal(rest.status, TR_OK);
    poison_job(&job, "train.on_nonfinite=skip");
    job_outcome(&job, &whole);
    assert_int_equal(whole.status, TR_OK);
    assert_string_equal(rest.hash, whole.hash);
}

static void test_skip_what_is_not_finite(void **state)
{
    (void)state;
    struct outcome outcome[4];
    for (int i = 0; i < 4; i++) {
        struct job job;
        poison_job(&job, "train.on_nonfinite=skip");
        job.settings.threads = 1 + i;
        if (i == 3) job.settings.device = "ref";
        job_outcome(&job, &outcome[i]);
        assert_int_equal(outcome[i].status, TR_OK);
        /* 7 rows: steps 4 and 11 of 16. */
        assert_int_equal(outcome[i].warnings, 2);
        assert_int_equal(outcome[i].steps_seen, 14);
        expect_says("skip", outcome[i].warning, (const char *const[5]){"step 11 was skipped"});
        assert_true(outcome[i].loss < 100);
        expect_same(&outcome[0], &outcome[i], "skipping on other threads");
    }
}

/* A rate that throws the parameters out of the numbers. The loss before was fine, the poisoned state is not
 * saved. */
static void test_stop_at_an_update_that_is_not_finite(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    write_model("job.yaml", 9,
                "optimizer: {rule: sgd, rate: 0.1, schedule: {kind: step, milestones: [3], factor: 1e45}}");
    struct job job;
    job_begin(&job, scratch_in("job.yaml"));
    job.settings.out = scratch_join(out, scratch_place, "poisoned");
    job_set(&job, "train.checkpoint_every=1");
    tr_trainer *trainer = job_trainer(&job);
    struct outcome outcome;
    trainer_outcome(trainer, &outcome);
    if (outcome.status != TR_ENONFINITE) fail_msg("%s: %s", tr_status_name(outcome.status), outcome.message);
    expect_says(
        "update", outcome.message,
        (const char *const[5]){"step 4:", "updated network is not finite", "parameter \"dense1.weights\""});
    assert_int_equal(outcome.checkpoints, 3);
    assert_int_equal(tr_trainer_save(trainer, NULL), TR_ENONFINITE);
    expect_says("save", tr_error_message(), (const char *const[5]){"dense1.weights"});
    tr_trainer_destroy(&trainer);
    job_begin(&job, NULL);
    job.settings.resume = out;
    trainer = job_trainer(&job);
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    must_train(tr_trainer_info(trainer, &info));
    assert_int_equal(info.step, 3);
    assert_string_equal(info.resume_warnings, "");
    tr_trainer_destroy(&trainer);
}

/* ---- saving that fails ---- */

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The disk is full from step `from` to step `end`. */
struct full_disk {
    int64_t from, end;
    struct outcome *outcome;
};

static int fill_disk(void *user, const struct tr_train_event *event)
{
    const struct full_disk *disk = user;
    if (event->kind == TR_EVENT_WARNING) {
        disk->outcome->warnings++;
        snprintf(disk->outcome->warning, sizeof disk->outcome->warning, "%s", event->name);
    }
    if (event->kind == TR_EVENT_CHECKPOINT) disk->outcome->checkpoints++;
    if (event->kind == TR_EVENT_END) snprintf(disk->outcome->hash, 65, "%s", event->hash);
    if (event->kind != TR_EVENT_STEP) return 0;
    if (event->step == disk->from) limit_file_size(64);
    if (event->step == disk->end) limit_file_size(RLIM_INFINITY);
    return 0;
}

static tr_status run_with_full_disk(const char *out, int64_t from, int64_t end, struct outcome *outcome)
{
    struct job job;
    struct full_disk disk = {from, end, outcome};
    *outcome = (struct outcome){0};
    write_model("job.yaml", 0, NULL);
    job_begin(&job, scratch_in("job.yaml"));
    job.settings.out = out;
    job_set(&job, "train.checkpoint_every=1");
    tr_trainer *trainer = job_trainer(&job);
    signal(SIGXFSZ, SIG_IGN); /* the write fails with EFBIG instead */
    tr_status status = tr_trainer_run(trainer, fill_disk, &disk);
    if (status != TR_OK) snprintf(outcome->message, sizeof outcome->message, "%s", tr_error_message());
    limit_file_size(RLIM_INFINITY);
    signal(SIGXFSZ, SIG_DFL);
    tr_trainer_destroy(&trainer);
    return status;
}

static int64_t saved_step(const char *out)
{
    struct job job;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    job_begin(&job, NULL);
    job.settings.resume = out;
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_info(trainer, &info));
    tr_trainer_destroy(&trainer);
    return info.step;
}

static void test_disk_that_is_full_for_a_while(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    struct outcome outcome, undisturbed;
    tr_status status = run_with_full_disk(scratch_join(out, scratch_place, "full"), 3, 5, &outcome);
    if (status != TR_OK) fail_msg("the run does not get over two saves that fail: %s", outcome.message);
    assert_int_equal(outcome.warnings, 3); /* and one of the journal */
    expect_says("warning", outcome.warning, (const char *const[5]){out, strerror(EFBIG)});
    assert_int_equal(outcome.checkpoints, 4);
    assert_int_equal(saved_step(out), 6);
    struct job job;
    job_begin(&job, scratch_in("job.yaml"));
    job_outcome(&job, &undisturbed);
    assert_string_equal(outcome.hash, undisturbed.hash);
}

static void test_disk_that_is_full_at_the_end(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    struct outcome outcome;
    tr_status status =
        run_with_full_disk(scratch_join(out, scratch_place, "full at the end"), 4, -1, &outcome);
    assert_int_equal(status, TR_EIO);
    expect_says("last save", outcome.message, (const char *const[5]){out, strerror(EFBIG)});
    /* The journal, steps 4 and 5; the failure of step 6 is the run's. */
    assert_int_equal(outcome.warnings, 3);
    assert_int_equal(outcome.checkpoints, 3);
    assert_int_equal(saved_step(out), 3); /* older checkpoints are as they were */
}

static void test_output_that_cannot_be(void **state)
{
    (void)state;
    write_model("job.yaml", 0, NULL);
    struct job job;
    job_begin(&job, scratch_in("job.yaml"));
    job.settings.out = scratch_in("numbers.csv/out");
    expect_refused("a file in the way", &job, TR_EIO,
                   (const char *const[5]){"numbers.csv", strerror(ENOTDIR)});
    job.settings.out = scratch_in("numbers.csv");
    expect_refused("a file", &job, TR_EIO, (const char *const[5]){"numbers.csv"});
    job.settings.out = "/proc/trireme";
    expect_refused("no such place", &job, TR_EIO, (const char *const[5]){"/proc/trireme"});
}

static int make_place(void **state)
{
    scratch_place_make(state);
    scratch_write_text("numbers.csv", "0,0,0\n1,0,1\n0,1,2\n1,1,0\n0.5,2,1\n3,1,2\n1,7,2\n");
    scratch_write_text("more.csv", "0,0,0\n1,0,1\n0,1,3\n");
    scratch_write_text("wide.csv", "0,0,0,0\n1,0,0,1\n0,1,0,2\n");
    scratch_write_text("letters.csv", "0,0,0\n1,x,1\n");
    scratch_write_text("empty.csv", "");
    scratch_write_text("poison.csv", "0,0,0\n1,0,1\n0,1,2\n3.4e38,-3.4e38,0\n0.5,2,1\n3,1,2\n1,7,2\n");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_files),
        cmocka_unit_test(test_files_that_are_no_model),
        cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_misuse_of_a_trainer),
        cmocka_unit_test(test_bad_evaluation_data),
        cmocka_unit_test(test_stop_at_a_loss_that_is_not_finite),
        cmocka_unit_test(test_skip_what_is_not_finite),
        cmocka_unit_test(test_stop_at_an_update_that_is_not_finite),
        cmocka_unit_test(test_disk_that_is_full_for_a_while),
        cmocka_unit_test(test_disk_that_is_full_at_the_end),
        cmocka_unit_test(test_output_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, make_place, scratch_place_remove);
}
