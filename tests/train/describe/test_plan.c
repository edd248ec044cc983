/* What is told of a training before anything of it is made: its strategy, from wherever its model file comes;
 * and how long a rank waited, of what it measured.
 */
#include "support/training.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"
#include "train/describe/waited.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define MODEL                                                                                                \
    "name: job\ndata: {train: {csv: {path: numbers.csv, label: value}}}\nlayers: [{dense: 1}]\n"             \
    "loss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.01}\n"

static void *bytes; /* the state of a run under the second strategy */
static size_t size;

static int make(void **state)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    tr_trainer *trainer;
    scratch_place_make(state);
    scratch_write_text("numbers.csv", "a,b,y\n1,2,3\n2,-1,1\n-1,3,2\n");
    scratch_write_text("plain.yaml", MODEL "train: {batch: 2, steps: 3}\n");
    scratch_write_text("async.yaml",
                       MODEL "train: {batch: 2, steps: 3}\nstrategy: {parameter-server: {mode: async}}\n");
    settings.model = scratch_in("async.yaml");
    settings.out = scratch_in("run");
    settings.threads = 1;
    must_train(tr_trainer_create(&settings, &trainer));
    must_train(tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_trainer_save_state(trainer, &bytes, &size));
    tr_trainer_destroy(&trainer);
    return 0;
}

static int clean(void **state)
{
    tr_state_free(bytes);
    return scratch_place_remove(state);
}

static void expect_plan(const struct tr_train_settings *settings, const char *strategy, bool asynchronous)
{
    struct tr_train_plan plan = TR_TRAIN_PLAN_INIT;
    must_train(tr_train_plan(settings, &plan));
    assert_string_equal(plan.strategy, strategy);
    assert_int_equal(plan.asynchronous, asynchronous);
}

static void strategies_are_known_beforehand(void **state)
{
    (void)state;
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    settings.model = scratch_in("plain.yaml");
    expect_plan(&settings, "allreduce", false);
    settings.strategy = "parameter-server";
    expect_plan(&settings, "parameter-server", false);
    settings.strategy = "parameter-server,mode=bounded";
    expect_plan(&settings, "parameter-server", true);
    settings.strategy = NULL;
    settings.model = scratch_in("async.yaml");
    expect_plan(&settings, "parameter-server", true);
    settings.strategy = "gossip,replicas=2";
    expect_plan(&settings, "gossip", false);
    /* A text, with its length or up to its end. */
    static const char text[] = MODEL "train: {batch: 2, steps: 3}\nstrategy: {easgd: {replicas: 3}}\n}}}";
    settings = (struct tr_train_settings)TR_TRAIN_SETTINGS_INIT;
    settings.directory = scratch_place;
    settings.model_text = text;
    settings.model_length = sizeof text - 1 - 3;
    expect_plan(&settings, "easgd", false);
    settings.model_length = 0;
    struct tr_train_plan plan = TR_TRAIN_PLAN_INIT;
    assert_int_not_equal(tr_train_plan(&settings, &plan), TR_OK);
    settings.model_text = MODEL "train: {batch: 2, steps: 3}\n";
    expect_plan(&settings, "allreduce", false);
}

static void a_run_keeps_its_strategy(void **state)
{
    (void)state;
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    settings.resume = scratch_in("run");
    expect_plan(&settings, "parameter-server", true);
    settings.resume = scratch_in("run/checkpoint-00000003");
    expect_plan(&settings, "parameter-server", true);
    settings.strategy = "allreduce";
    expect_plan(&settings, "allreduce", false);
    settings = (struct tr_train_settings)TR_TRAIN_SETTINGS_INIT;
    settings.state.bytes = bytes;
    settings.state.size = size;
    expect_plan(&settings, "parameter-server", true);
    /* An order of updates that is given is followed by one process after another. */
    settings = (struct tr_train_settings)TR_TRAIN_SETTINGS_INIT;
    settings.replay = scratch_in("run");
    expect_plan(&settings, "parameter-server", false);
    settings.replay = scratch_in("run/updates.log");
    expect_plan(&settings, "parameter-server", false);
    settings.replay = NULL;
    settings.model = scratch_in("async.yaml");
    settings.schedule = "any";
    expect_plan(&settings, "parameter-server", false);
    settings.schedule = NULL;
    settings.simulate_delays = 1;
    expect_plan(&settings, "parameter-server", false);
}

static int64_t read_nothing(void *user, void *data, size_t room)
{
    (void)user, (void)data, (void)room;
    return 0;
}

static void expect_refusal(const struct tr_train_settings *settings, tr_status status, const char *part)
{
    struct tr_train_plan plan = TR_TRAIN_PLAN_INIT;
    assert_int_equal(tr_train_plan(settings, &plan), status);
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

static void what_cannot_be_planned_is_refused(void **state)
{
    (void)state;
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    expect_refusal(&settings, TR_EINVAL, "nothing to train; give a model file, or a checkpoint to resume");
    settings.state.read = read_nothing;
    expect_refusal(&settings, TR_EINVAL,
                   "a function gives its state once, which the training needs; give bytes to plan with");
    settings.state = (struct tr_run_state){.bytes = bytes, .size = size / 2};
    expect_refusal(&settings, TR_EFORMAT, "");
    settings = (struct tr_train_settings)TR_TRAIN_SETTINGS_INIT;
    settings.resume = scratch_place;
    expect_refusal(&settings, TR_ENOTFOUND, "there is no checkpoint in ");
    settings.resume = NULL;
    settings.model = scratch_in("missing.yaml");
    expect_refusal(&settings, TR_ENOTFOUND, "missing.yaml");
    settings.model = scratch_in("plain.yaml");
    settings.strategy = "carrier-pigeons";
    expect_refusal(&settings, TR_EINVAL, "carrier-pigeons");
    settings.strategy = NULL;
    scratch_write_text("wrong.yaml", "name: job\nlayers: [{dens: 1}]\n");
    settings.model = scratch_in("wrong.yaml");
    expect_refusal(&settings, TR_EINVAL, "wrong.yaml:1:1: \"optimizer\" is missing");
    settings.model = scratch_in("plain.yaml");
    static const char *const set[] = {"train.batches=3"};
    settings.strategy = NULL;
    settings.set = set;
    settings.set_count = 1;
    expect_refusal(&settings, TR_EINVAL, "batches");
}

static void expect_allocations_to_fail(const struct tr_train_settings *settings)
{
    for (int64_t at = 0, done = 0; !done; at++) {
        struct tr_train_plan plan = TR_TRAIN_PLAN_INIT;
        int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = tr_train_plan(settings, &plan);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(plan.strategy != NULL, done);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void every_allocation_fails(void **state)
{
    (void)state;
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    settings.replay = scratch_in("run/updates.log");
    expect_allocations_to_fail(&settings);
    settings.replay = NULL;
    settings.resume = scratch_in("run");
    expect_allocations_to_fail(&settings);
    settings.resume = NULL;
    settings.state = (struct tr_run_state){.bytes = bytes, .size = size};
    expect_allocations_to_fail(&settings);
    settings.model_text = MODEL "train: {batch: 2, steps: 3}\n";
    settings.directory = scratch_place;
    expect_allocations_to_fail(&settings);
}

/* ---- waiting ---- */

/* What a rank computed and waited cannot be longer than the training: the rest was for the root's other work.
 */
static void waiting_is_of_the_training(void **state)
{
    (void)state;
    static const struct {
        double waited, computed, seconds, expected;
    } cases[] = {
        {2, 3, 10, 2}, /* there was something else, too */
        {2, 3, 5, 2},         {2, 3, 4.5, 1.5}, {2, 3, 4, 1}, {2, 3, 3, 0},
        {2, 3, 2, 0},         {0, 3, 2, 0},     {2, 3, 0, 2}, {2, 3, -1, 2}, /* not known */
        {0.5, 0, 0.25, 0.25},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (tr_train_waited(cases[i].waited, cases[i].computed, cases[i].seconds) != cases[i].expected)
            fail_msg("%g waited and %g computed in %g: %g", cases[i].waited, cases[i].computed,
                     cases[i].seconds, tr_train_waited(cases[i].waited, cases[i].computed, cases[i].seconds));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategies_are_known_beforehand),   cmocka_unit_test(a_run_keeps_its_strategy),
        cmocka_unit_test(what_cannot_be_planned_is_refused), cmocka_unit_test(every_allocation_fails),
        cmocka_unit_test(waiting_is_of_the_training),
    };
    return cmocka_run_group_tests_name("train.plan", tests, make, clean);
}
