/* Choosing a strategy by the model file: what its name and options say before there are ranks, for how many
 * ranks it is, which class then does the work; and the table of classes, which programs may add to. */
#include "strategy/choice.h"

#include "base/alloc.h"
#include "refuse.h"
#include "scratch.h"
#include "strategy/parameter_server/parameter_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

/* A job of eight microbatches; NULL: the file names no strategy. */
static struct tr_job *open_job(const char *strategy, const char *optimizer)
{
    char text[512];
    const struct tr_job_settings settings = {.strategy = strategy};
    int size = snprintf(text, sizeof text,
                        "name: n\ndata: {train: {csv: two.csv}}\nlayers: [{dense: 300}, {dense: 300}, "
                        "{dense: 300}, {dense: 2}]\n"
                        "optimizer: %s\ntrain: {batch: 8, microbatches: 8, steps: 100}\n",
                        optimizer);
    const struct tr_job_text model = {text, (size_t)size, "m.yaml", scratch_place};
    struct tr_job *job;
    scratch_write_text("two.csv", "1,2,0\n3,4,1\n");
    if (tr_job_open_text(&model, &settings, &job) != TR_OK) fail_msg("%s: %s", strategy, tr_error_message());
    return job;
}

#define SGD "{rule: sgd, rate: 1}"

/* ---- before there are ranks ---- */

static void choices_have_properties(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *name;
        bool asynchronous, own_hash;
        int servers;
        enum tr_strategy_keeping keeping;
    } cases[] = {
        {NULL, "allreduce", false, false, 0, TR_KEEP_ALL},
        {"allreduce", "allreduce", false, false, 0, TR_KEEP_ALL},
        {"pipeline", "pipeline", false, false, 0, TR_KEEP_PARTS},
        {"local-sgd,replicas=2", "local-sgd", false, true, 0, TR_KEEP_OWN},
        {"parameter-server", "parameter-server", false, false, 1, TR_KEEP_PARTS},
        {"parameter-server,mode=async,servers=3", "parameter-server", true, false, 3, TR_KEEP_PARTS},
        {"parameter-server,mode=bounded,servers=2", "parameter-server", true, false, 2, TR_KEEP_PARTS},
        {"parameter-server,mode=backup", "parameter-server", true, false, 1, TR_KEEP_PARTS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_job *job = open_job(cases[i].strategy, SGD);
        struct tr_strategy_outline outline;
        enum tr_strategy_keeping keeping = TR_KEEP_ALL;
        const char *name;
        bool asynchronous = !cases[i].asynchronous;
        must(tr_strategy_peek(job->file.strategy, &name, &asynchronous));
        assert_string_equal(name, cases[i].name);
        assert_int_equal(asynchronous, cases[i].asynchronous);
        must(tr_strategy_outline(job, 2, &outline));
        assert_string_equal(outline.name, cases[i].name);
        assert_int_equal(outline.ranks, 2 + cases[i].servers);
        assert_int_equal(outline.asynchronous, cases[i].asynchronous);
        assert_int_equal(outline.own_hash, cases[i].own_hash);
        must(tr_strategy_keeping(job, &keeping));
        assert_int_equal(keeping, cases[i].keeping);
        tr_job_destroy(&job);
    }
    assert_string_equal(tr_strategy_first_option("parameter-server"), "mode");
    assert_null(tr_strategy_first_option("parameter"));
}

/* What a process alone need not keep of a gradient. */
static void some_spare_memory(void **state)
{
    (void)state;
    static const char *const strategies[] = {"allreduce,factors=always", "pipeline", "parameter-server"};
    for (int i = 0; i < 3; i++) {
        struct tr_job *job = open_job(strategies[i], SGD);
        int64_t bytes = -1;
        must(tr_strategy_spares(job, &bytes));
        if (i == 0)
            assert_true(bytes > 0);
        else
            assert_int_equal(bytes, 0);
        tr_job_destroy(&job);
    }
}

/* ---- for how many ranks ---- */

static void expect_ranks(const char *strategy, int ranks, const char *message)
{
    struct tr_job *job = open_job(strategy, SGD);
    tr_status status = tr_strategy_check(job, ranks);
    if (!message && status != TR_OK) fail_msg("%s: %s", strategy, tr_error_message());
    if (message && status != TR_EINVAL) fail_msg("%s: %d ranks are accepted", strategy, ranks);
    if (message) assert_string_equal(tr_error_message(), message);
    tr_job_destroy(&job);
}

static void ranks_have_bounds(void **state)
{
    (void)state;
    expect_ranks("local-sgd,replicas=8", 1, NULL);
    expect_ranks("parameter-server,mode=async", 4096, NULL);
    expect_ranks("parameter-server,mode=async", 4097, "4097 ranks; at most 4096 can share a job");
    expect_ranks("allreduce", 8, NULL);
    expect_ranks(
        "allreduce", 9,
        "9 ranks share 8 microbatches; choose fewer, or set train.microbatches=9, which changes the hash");
    expect_ranks("parameter-server,servers=3", 11, NULL);
    expect_ranks(
        "parameter-server,servers=3", 12,
        "9 workers share 8 microbatches; choose fewer, or set train.microbatches=9, which changes the "
        "hash");
    expect_ranks("parameter-server,servers=3", 1, NULL); /* needs none */
    expect_ranks("parameter-server,servers=3", 3,
                 "3 ranks, of which 3 would be parameter servers: none is left to compute; start more, as in "
                 "`trireme launch -n 4`");
    expect_ranks("parameter-server,servers=3,mode=async", 4, NULL);
    expect_ranks("parameter-server,mode=async", 30, NULL);
    expect_ranks("parameter-server,mode=backup,backup=2", 4, NULL);
    expect_ranks("parameter-server,mode=backup,backup=2", 3,
                 "of 2 workers 2 would be backup: no gradient would make a step; choose fewer backup");
    expect_ranks("parameter-server,mode=backup,backup=1", 2,
                 "of 1 worker 1 would be backup: no gradient would make a step; choose fewer backup");
    expect_ranks("parameter-server,mode=backup,backup=2", 11, NULL);
    expect_ranks("parameter-server,mode=backup,backup=2", 12,
                 "9 gradients make a step, which is cut into 8 microbatches; set train.microbatches higher");
    struct tr_job *job = open_job("parameter-server,mode=async", "{rule: sgd, rate: 1, sam: 0.05}");
    struct tr_strategy_outline outline;
    assert_int_equal(tr_strategy_check(job, 3), TR_EINVAL);
    assert_string_equal(
        tr_error_message(),
        "optimizer.sam takes two gradients of the same parameters, which asynchronous workers do "
        "not have; choose a synchronous strategy, or leave it out");
    assert_int_equal(tr_strategy_outline(job, 2, &outline), TR_EINVAL);
    tr_job_destroy(&job);
    job = open_job("parameter-server", "{rule: sgd, rate: 1, sam: 0.05}");
    must(tr_strategy_check(job, 3));
    tr_job_destroy(&job);
}

static void options_have_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        bool accepted;
    } cases[] = {
        {"servers=1", true},
        {"servers=0", false},
        {"servers=4095", true},
        {"servers=4096", false},
        {"mode=bounded,staleness=-1", true},
        {"mode=bounded,staleness=-2", false},
        {"mode=bounded,staleness=1000000000", true},
        {"mode=bounded,staleness=1000000001", false},
        {"mode=async,staleness=1", false},
        {"mode=backup,backup=0", true},
        {"mode=backup,backup=-1", false},
        {"mode=backup,backup=4095", true},
        {"mode=backup,backup=4096", false},
        {"mode=bounded,backup=1", false},
        {"mode=async,buffers=1", true},
        {"mode=bounded,buffers=4095", true},
        {"mode=backup,buffers=9", true},
        {"mode=async,buffers=0", false},
        {"mode=async,buffers=4096", false},
        {"mode=sync,buffers=4", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char strategy[80];
        const char *name;
        bool asynchronous;
        snprintf(strategy, sizeof strategy, "parameter-server,%s", cases[i].options);
        struct tr_job *job = open_job(strategy, SGD);
        tr_status status = tr_strategy_peek(job->file.strategy, &name, &asynchronous);
        if (status != (cases[i].accepted ? TR_OK : TR_EINVAL)) fail_msg("%s: %d", strategy, (int)status);
        tr_job_destroy(&job);
    }
}

/* ---- the class that does the work ---- */

static void classes_are_settled(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int ranks;
        const struct tr_strategy_class *class;
        bool asynchronous;
        int servers;
    } cases[] = {
        {"allreduce", 3, &tr_strategy_all_reduce, false, 0},
        {"parameter-server,servers=2", 4, &ps_synchronous, false, 2},
        {"parameter-server,servers=2,mode=async", 4, &tr_strategy_parameter_server, true, 2},
        {"parameter-server,servers=2,mode=async", 1, &ps_synchronous, false, 2},
    };
    struct tr_strategy_choice choice;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_job *job = open_job(cases[i].strategy, SGD);
        must(tr_strategy_choose_for(job, false, cases[i].ranks, &choice));
        assert_ptr_equal(choice.class, cases[i].class);
        assert_int_equal(choice.traits.asynchronous, cases[i].asynchronous);
        assert_int_equal(choice.traits.servers, cases[i].servers);
        tr_strategy_choice_release(&choice);
        assert_null(choice.options);
        must(tr_strategy_choose_for(job, true, 7, &choice));
        assert_ptr_equal(choice.class, &tr_strategy_replay);
        assert_true(choice.traits.asynchronous);
        assert_null(choice.options);
        tr_strategy_choice_release(&choice);
        tr_job_destroy(&job);
    }
    struct tr_job *job = open_job("allreduce", SGD);
    int64_t live = tr_alloc_live();
    assert_int_equal(tr_strategy_choose_for(job, false, 9, &choice), TR_EINVAL);
    assert_null(choice.options);
    assert_int_equal(tr_alloc_live(), live);
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        refuse_begin(at);
        tr_status status = tr_strategy_choose_for(job, false, 2, &choice);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_strategy_choice_release(&choice);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_job_destroy(&job);
}

/* ---- the table ---- */

static void as_many_are_added_as_there_is_room_for(void **state)
{
    (void)state;
    enum { ROOM = 16 };
    static struct tr_strategy_class added[ROOM];
    static char names[ROOM][16];
    int count = 0;
    while (tr_strategy_class_at(count)) count++;
    assert_int_equal(count, 6);
    struct tr_strategy_class old = tr_strategy_gossip;
    old.name = "old";
    old.version = TR_STRATEGY_CLASS_VERSION + 1;
    assert_int_equal(tr_strategy_register(&old), TR_EMISMATCH);
    char message[160];
    snprintf(
        message, sizeof message,
        "the strategy \"old\" was made for version %d of what strategies provide, this library takes version "
        "%d; build it anew",
        TR_STRATEGY_CLASS_VERSION + 1, TR_STRATEGY_CLASS_VERSION);
    assert_string_equal(tr_error_message(), message);
    for (; count < ROOM; count++) {
        struct tr_strategy_class *class = &added[count];
        *class = tr_strategy_gossip;
        assert_int_equal(tr_strategy_register(class), TR_EINVAL);
        assert_string_equal(tr_error_message(),
                            "there is a strategy \"gossip\" already; choose another name");
        snprintf(names[count], sizeof names[count], "own%d", count);
        class->name = names[count];
        must(tr_strategy_register(class));
        assert_ptr_equal(tr_strategy_class_at(count), class);
        assert_null(tr_strategy_class_at(count + 1));
        assert_ptr_equal(tr_registry_find(&tr_strategies, names[count]), &class->entry);
    }
    old.version = TR_STRATEGY_CLASS_VERSION;
    assert_int_equal(tr_strategy_register(&old), TR_EINVAL);
    assert_string_equal(tr_error_message(), "no room for the strategy \"old\" beside 16 others");
    assert_null(tr_registry_find(&tr_strategies, "old"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_have_properties), cmocka_unit_test(some_spare_memory),
        cmocka_unit_test(ranks_have_bounds),       cmocka_unit_test(options_have_bounds),
        cmocka_unit_test(classes_are_settled),     cmocka_unit_test(as_many_are_added_as_there_is_room_for),
    };
    return cmocka_run_group_tests_name("strategy.choice", tests, scratch_place_make, scratch_place_remove);
}
