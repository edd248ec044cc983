/* Settings that contradict each other or the job: each is refused with its reason, and nothing is left. */
#include "support/ranks.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define HEAD "name: tiny\ndata: {train: {csv: {path: tiny.csv, label: value}}}\n"
#define TAIL "optimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 2, steps: 7}\n"

static const char *model;

static int make(void **state)
{
    static char path[SCRATCH_PATH];
    scratch_place_make(state);
    scratch_write_text("tiny.csv", "a,b,y\n1,2,3\n2,-1,1\n-1,3,2\n0.5,0.25,0.75\n");
    scratch_write_text("classes.csv", "a,b,y\n1,2,0\n2,-1,1\n-1,3,100\n0.5,0.25,2\n");
    scratch_write_text("tiny.yaml", HEAD "layers: [{dense: 1}]\nloss: mean_squared_error\n" TAIL);
    scratch_write_text("classes.yaml",
                       "name: classes\ndata: {train: {csv: {path: classes.csv, label: class, classes: 101}}, "
                       "test: {csv: {path: classes.csv, label: class, classes: 101}}}\n"
                       "layers: [{dense: 101}]\n" TAIL);
    model = scratch_join(path, scratch_place, "tiny.yaml");
    return 0;
}

static struct tr_train_settings tiny(void)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    settings.model = model;
    settings.threads = 1;
    return settings;
}

static void expect_refusal(const struct tr_train_settings *settings, tr_status status, const char *part)
{
    tr_trainer *trainer = (tr_trainer *)scratch_place;
    const int64_t live = tr_alloc_live();
    const tr_status got = tr_trainer_create(settings, &trainer);
    if (got != status || !strstr(tr_error_message(), part))
        fail_msg("%s: \"%s\", expected are %s and \"%s\"", tr_status_name(got),
                 got == TR_OK ? "" : tr_error_message(), tr_status_name(status), part);
    assert_null(trainer);
    assert_int_equal(tr_alloc_live(), live);
}

/* A state in memory that is whole, for cases in which it is not read. */
static const struct tr_run_state some_state = {.bytes = "x", .size = 1};

static void what_to_train_is_given_once(void **state)
{
    (void)state;
    struct tr_train_settings settings = tiny();
    settings.model_text = "name: x\n";
    expect_refusal(&settings, TR_EINVAL, "both `model` and `model_text` are given");
    settings = tiny();
    settings.model = NULL;
    expect_refusal(&settings, TR_EINVAL, "nothing to train; give a model file, or a checkpoint to resume");
    settings.out = scratch_in("nothing-here");
    settings.continues = true;
    expect_refusal(&settings, TR_ENOTFOUND, "there is no checkpoint to go on from yet; give a model file");
    assert_false(tr_file_exists(scratch_in("nothing-here")));
    settings = tiny();
    settings.steps = settings.epochs = 1;
    expect_refusal(&settings, TR_EINVAL, "epochs");
}

static void a_beginning_is_given_once(void **state)
{
    (void)state;
    struct tr_train_settings settings = tiny();
    settings.resume = "run";
    settings.state = some_state;
    expect_refusal(&settings, TR_EINVAL,
                   "both `resume` and `state` are given; give the path or the state in memory");
    settings = tiny();
    settings.from = "run";
    settings.from_state = some_state;
    expect_refusal(&settings, TR_EINVAL,
                   "both `from` and `from_state` are given; give the path or the state in memory");
    for (int i = 0; i < 4; i++) {
        settings = tiny();
        if (i % 2)
            settings.from = "other";
        else
            settings.from_state = some_state;
        if (i / 2)
            settings.resume = "run";
        else
            settings.state = some_state;
        expect_refusal(&settings, TR_EINVAL, "parameters of another (`from`); give one of them");
    }
}

static void data_are_given_with_their_number(void **state)
{
    (void)state;
    const struct tr_named_source data[1] = {{0}};
    struct tr_train_settings settings = tiny();
    settings.data_count = -1;
    expect_refusal(&settings, TR_EINVAL, "data_count is -1, data NULL");
    settings.data = data;
    expect_refusal(&settings, TR_EINVAL, "data_count is -1, data given");
    settings.data = NULL;
    settings.data_count = 1;
    expect_refusal(&settings, TR_EINVAL, "data_count is 1, data NULL");
}

/* Orders of updates. */
static void an_order_is_given_once_and_from_the_beginning(void **state)
{
    (void)state;
    static const char alone[] =
        "a given order of updates begins before the first step, and resumes nothing; leave that or";
    for (int i = 0; i < 9; i++) {
        struct tr_train_settings settings = tiny();
        if (i % 3 == 0) settings.replay = "log";
        if (i % 3 == 1) settings.schedule = "log";
        if (i % 3 == 2) settings.simulate_delays = 1;
        if (i / 3 == 0) settings.resume = "run";
        if (i / 3 == 1) settings.state = some_state;
        if (i / 3 == 2) settings.continues = true;
        expect_refusal(&settings, TR_EINVAL, alone);
    }
    for (int i = 0; i < 3; i++) {
        struct tr_train_settings settings = tiny();
        if (i != 0) settings.replay = "log";
        if (i != 1) settings.schedule = "log";
        if (i != 2) settings.simulate_delays = 1;
        expect_refusal(&settings, TR_EINVAL,
                       "the order of updates is given more than once; give one of `replay`, `schedule` and "
                       "`simulate_delays`");
    }
    struct tr_train_settings settings = tiny();
    settings.replay = scratch_in("no-such-log");
    expect_refusal(&settings, TR_ENOTFOUND, "no-such-log\": only asynchronous runs keep one");
    settings = tiny();
    settings.replay = scratch_in("");
    expect_refusal(&settings, TR_ENOTFOUND, "there is no log of updates \"");
    settings = tiny();
    settings.strategy = "parameter-server,mode=async";
    settings.simulate_delays = 1;
    settings.simulate_workers = 1 << 20;
    expect_refusal(&settings, TR_EINVAL, "1048576 simulated workers; at most ");
    settings.simulate_workers = 3;
    settings.slow = "3:2";
    expect_refusal(&settings, TR_EINVAL, "slow: there is no rank 3; the job has ranks 0 to 2");
}

static void records_need_a_place_and_a_range(void **state)
{
    (void)state;
    struct tr_train_settings settings = tiny();
    settings.record_digests = -1;
    settings.out = scratch_in("digests");
    expect_refusal(&settings, TR_EINVAL, "digests are recorded every 1 or more steps");
    assert_false(tr_file_exists(scratch_in("digests")));
    settings.record_digests = 1;
    settings.out = NULL;
    expect_refusal(&settings, TR_EINVAL, "digests are recorded in the output directory; give one");
    settings = tiny();
    settings.trace = scratch_in("trace.json");
    settings.trace_steps = 0;
    expect_refusal(&settings, TR_EINVAL, "a trace of 0 steps after step 0; give 1 or more after 0 or more");
    settings.trace_steps = 1;
    settings.trace_first = -1;
    expect_refusal(&settings, TR_EINVAL, "a trace of 1 steps after step -1; give 1 or more after 0 or more");
    settings.trace = scratch_in("no/such/trace.json");
    settings.trace_first = 0;
    expect_refusal(&settings, TR_ENOTFOUND, "no/such\"; create it, or choose another path");
    assert_false(tr_file_exists(scratch_in("no")));
}

static void observations_are_of_all_ranks(void **state)
{
    (void)state;
    static const char *const set[] = {"train.microbatches=2"};
    struct tr_train_settings settings = tiny(), other;
    struct rank ranks[RANKS];
    char board[SCRATCH_PATH];
    settings.histograms = -1;
    expect_refusal(&settings, TR_EINVAL, "histograms every -1 steps; give 1 or more, or 0 for none");
    settings.histograms = 1;
    expect_refusal(&settings, TR_EINVAL,
                   "histograms are written for TensorBoard; say where to (`tensorboard`)");
    settings = tiny();
    settings.set = set;
    settings.set_count = 1;
    settings.tensorboard = scratch_join(board, scratch_place, "board");
    const struct tr_train_settings *const each[] = {&settings, &other};
    for (int variant = 0; variant < 3; variant++) {
        other = settings;
        if (variant == 1) other.tensorboard = NULL;
        if (variant == 2) other.histograms = 3;
        run_ranks_each(each, 2, 0, ranks);
        for (int r = 0; r < 2; r++) assert_int_equal(ranks[r].outcome.status, variant ? TR_EMISMATCH : TR_OK);
        if (variant) assert_non_null(strstr(ranks[0].outcome.message, "TensorBoard, histograms every 0"));
    }
}

/* What follows evaluations needs some, and all processes must know them. */
static void figures_need_evaluations(void **state)
{
    (void)state;
    static const char *const f1[] = {"train.monitor=rmse", "train.keep_best=always",
                                     "train.evaluate_every=1"};
    static const char *const area[] = {"train.monitor=roc_auc", "train.keep_best=always",
                                       "train.evaluate_every=1"};
    static const char *const plateau[] = {"optimizer.schedule={kind: plateau, patience: 1}",
                                          "train.evaluate_every=1"};
    char classes[SCRATCH_PATH];
    tr_trainer *trainer;
    struct tr_train_settings settings = tiny();
    settings.set = f1;
    settings.set_count = 3;
    expect_refusal(&settings, TR_EINVAL,
                   "train.monitor: rmse is a figure of evaluations; name data to "
                   "evaluate, for instance data.validation_split: 0.1");
    settings.set = plateau;
    settings.set_count = 2;
    expect_refusal(&settings, TR_EINVAL, "a plateau schedule follows evaluations; name data to evaluate");
    struct rank ranks[RANKS];
    settings.strategy = "parameter-server,mode=async";
    run_ranks(&settings, 3, 0, ranks);
    assert_int_equal(ranks[0].outcome.status, TR_EUNSUPPORTED);
    assert_non_null(strstr(ranks[0].outcome.message,
                           "a plateau schedule follows evaluations, which in an asynchronous run of the "
                           "strategy parameter-server only one process knows"));
    settings = tiny();
    settings.model = scratch_join(classes, scratch_place, "classes.yaml");
    settings.set = area;
    settings.set_count = 3;
    expect_refusal(&settings, TR_EINVAL,
                   "train.monitor: roc_auc needs all outputs of an evaluation, and those of 4 examples are "
                   "too many to keep; evaluate fewer, or monitor the loss");
    static const char *const others[] = {"loss", "accuracy", "f1"};
    for (size_t i = 0; i < 3; i++) {
        char set[64];
        snprintf(set, sizeof set, "train.monitor=%s", others[i]);
        const char *const list[] = {set, area[1], area[2]};
        settings.set = list;
        must_train(tr_trainer_create(&settings, &trainer));
        tr_trainer_destroy(&trainer);
    }
}

static void devices_and_ranks_that_are_none(void **state)
{
    (void)state;
    struct tr_train_settings settings = tiny();
    settings.slow = "0:0.5";
    expect_refusal(&settings, TR_EINVAL, "slow: rank 0 cannot be 0.5 times slower; give 1 to 1e+06");
    settings.slow = "0:2,1:3";
    expect_refusal(&settings, TR_EINVAL, "slow: there is no rank 1; the job has ranks 0 to 0");
    settings.slow = "0:1000001";
    expect_refusal(&settings, TR_EINVAL, "give 1 to 1e+06");
    settings.slow = "0";
    expect_refusal(&settings, TR_EINVAL, "slow: \"0\" is not a rank and a factor as in 1:5");
    settings.slow = ":2";
    expect_refusal(&settings, TR_EINVAL, "slow: \":2\" is not a rank and a factor");
    settings.slow = "0:2,";
    expect_refusal(&settings, TR_EINVAL, "slow: \"\" is not a rank and a factor");
    settings.slow = "000000000000000000000000:2";
    expect_refusal(&settings, TR_EINVAL, "is not a rank and a factor");
    settings = tiny();
    settings.transport = "pigeons:7";
    expect_refusal(&settings, TR_ENOTFOUND, "transport \"pigeons\" is none of ");
    settings = tiny();
    settings.device = "abacus";
    expect_refusal(&settings, TR_ENOTFOUND, "abacus");
    settings = tiny();
    settings.parameters_on = "abacus";
    expect_refusal(&settings, TR_ENOTFOUND, "abacus");
}

static void steps_end(void **state)
{
    (void)state;
    struct tr_train_settings settings = tiny();
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    tr_trainer *trainer;
    settings.steps = 2;
    must_train(tr_trainer_create(&settings, &trainer));
    must_train(tr_trainer_step(trainer, &event));
    event.size = 0;
    assert_int_equal(tr_trainer_step(trainer, &event), TR_EINVAL); /* before it is done */
    event = (struct tr_train_event)TR_TRAIN_EVENT_INIT;
    must_train(tr_trainer_step(trainer, &event));
    assert_int_equal(event.step, 2);
    assert_int_equal(tr_trainer_step(trainer, NULL), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "all 2 steps are done; set train.steps higher to go on"));
    char *receipt = (char *)scratch_place;
    assert_int_equal(tr_trainer_receipt(trainer, &receipt), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "this run keeps no receipt; set train.receipt: true"));
    assert_null(receipt);
    tr_trainer_destroy(&trainer);
    assert_null(trainer);
    settings.receipt = true;
    must_train(tr_trainer_create(&settings, &trainer));
    assert_int_equal(tr_trainer_receipt(trainer, &receipt), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "the receipt begins with the first step"));
    tr_trainer_destroy(&trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_to_train_is_given_once),
        cmocka_unit_test(a_beginning_is_given_once),
        cmocka_unit_test(data_are_given_with_their_number),
        cmocka_unit_test(an_order_is_given_once_and_from_the_beginning),
        cmocka_unit_test(records_need_a_place_and_a_range),
        cmocka_unit_test(observations_are_of_all_ranks),
        cmocka_unit_test(figures_need_evaluations),
        cmocka_unit_test(devices_and_ranks_that_are_none),
        cmocka_unit_test(steps_end),
    };
    return cmocka_run_group_tests(tests, make, scratch_place_remove);
}
