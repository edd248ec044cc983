/* The record of a sweep: what was written is taken up again, whatever is not of this sweep is refused; and
 * the limits of its points.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "cli/session.h"
#include "cli/sweep/sweep.h"
#include "refuse.h"

/* A plan of these settings, which end with NULL. */
static void make_plan(struct cli_sweep_orders *orders, struct cli_sweep_plan *plan, const char *const *set)
{
    struct tr_string_list list = {0, (char **)(uintptr_t)set};
    while (set[list.count]) list.count++;
    orders->set = &list;
    if (cli_sweep_plan(orders, plan) != TR_OK) fail_msg("%s", tr_error_message());
}

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct cli_sweep_orders orders_of(const char *by)
{
    struct cli_sweep_orders orders = {
        .model = "tiny.yaml", .seeds = 1, .seed = -1, .split_seed = -1, .out = "."};
    snprintf(orders.by, sizeof orders.by, "%s", by);
    memset(orders.digest, 'a', sizeof orders.digest - 1);
    return orders;
}

/* Writes the record of a sweep of two rates, one done and one failed. */
static void write_record(const char *by)
{
    struct cli_sweep_orders orders = orders_of(by);
    struct cli_sweep_plan plan;
    remove("sweep.json");
    make_plan(&orders, &plan, SET("optimizer.rate=0.1,0.2,0.3", "train.batch=4"));
    assert_int_equal(plan.count, 3);
    assert_int_equal(cli_sweep_recall(&orders, &plan), TR_OK); /* names only */
    struct cli_sweep_point *done = &plan.points[0], *failed = &plan.points[1];
    done->state = CLI_SWEEP_DONE;
    done->loss = 0.5;
    done->accuracy = 0.75;
    done->figure = 0.25;
    done->seconds = 1.5;
    done->step = 40;
    strcpy(done->set, "test");
    strcpy(done->hash, "abcdef");
    failed->state = CLI_SWEEP_FAILED;
    strcpy(failed->failure, "it is \"so\"");
    assert_int_equal(cli_sweep_write_record(&orders, &plan), TR_OK);
    cli_sweep_plan_release(&plan);
}

static void what_was_written_is_taken_up(void **state)
{
    (void)state;
    struct cli_sweep_orders orders = orders_of("f1");
    struct cli_sweep_plan plan;
    const int64_t live = tr_alloc_live();
    write_record("f1");
    make_plan(&orders, &plan, SET("optimizer.rate=0.4,0.1,0.2", "train.batch=4"));
    assert_int_equal(cli_sweep_recall(&orders, &plan), TR_OK);
    /* The third rate is no longer wanted, and stays; new ones get new directories. */
    assert_int_equal(plan.count, 4);
    static const char *const directories[] = {"point-0004", "point-0001", "point-0002", "point-0003"};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(plan.points[i].directory, directories[i]);
        assert_int_equal(plan.points[i].wanted, i < 3);
    }
    const struct cli_sweep_point *done = &plan.points[1], *failed = &plan.points[2];
    assert_int_equal(plan.points[0].state, CLI_SWEEP_WAITING);
    assert_int_equal(done->state, CLI_SWEEP_DONE);
    assert_true(done->loss == 0.5 && done->accuracy == 0.75 && done->figure == 0.25 && done->seconds == 1.5);
    assert_int_equal(done->step, 40);
    assert_string_equal(done->set, "test");
    assert_string_equal(done->hash, "abcdef");
    assert_string_equal(done->failure, "");
    assert_int_equal(failed->state, CLI_SWEEP_FAILED);
    assert_string_equal(failed->failure, "it is \"so\"");
    assert_true(isnan(failed->loss) && isnan(failed->accuracy) && isnan(failed->figure));
    assert_int_equal(plan.points[3].state, CLI_SWEEP_WAITING);
    assert_string_equal(plan.points[3].value[0], "0.3");
    cli_sweep_plan_release(&plan);
    assert_int_equal(tr_alloc_live(), live);
    /* For programs: a whole object, whose figure has its name. */
    json_t *record = json_load_file("sweep.json", 0, NULL), *points = json_object_get(record, "points");
    assert_int_equal(json_integer_value(json_object_get(record, "sweep")), 1);
    assert_string_equal(json_string_value(json_object_get(record, "model")), "tiny.yaml");
    assert_string_equal(json_string_value(json_array_get(json_object_get(record, "settings"), 0)),
                        "train.batch=4");
    assert_string_equal(json_string_value(json_array_get(json_object_get(record, "fields"), 0)),
                        "optimizer.rate");
    assert_int_equal(json_array_size(points), 3);
    assert_true(json_number_value(json_object_get(json_array_get(points, 0), "f1")) == 0.25);
    assert_string_equal(json_string_value(json_object_get(json_array_get(points, 2), "state")), "waiting");
    json_decref(record);
    write_record("loss");
    record = json_load_file("sweep.json", 0, NULL);
    assert_null(json_object_get(json_array_get(json_object_get(record, "points"), 0), "f1"));
    json_decref(record);
}

/* A point is one of its values, its seed and its fold. */
static void folds_and_seeds_tell_points_apart(void **state)
{
    (void)state;
    struct cli_sweep_orders orders = orders_of("loss");
    struct cli_sweep_plan plan;
    remove("sweep.json");
    orders.folds = 2;
    orders.seeds = 2;
    make_plan(&orders, &plan, SET("a=1,2"));
    assert_int_equal(plan.count, 8);
    assert_int_equal(cli_sweep_recall(&orders, &plan), TR_OK);
    for (int i = 0; i < 8; i++) {
        plan.points[i].state = CLI_SWEEP_DONE;
        plan.points[i].loss = i;
    }
    assert_int_equal(cli_sweep_write_record(&orders, &plan), TR_OK);
    cli_sweep_plan_release(&plan);
    make_plan(&orders, &plan, SET("a=2,1"));
    assert_int_equal(cli_sweep_recall(&orders, &plan), TR_OK);
    assert_int_equal(plan.count, 8);
    for (int i = 0; i < 8; i++) {
        char name[32];
        const int before = (i + 4) % 8;
        snprintf(name, sizeof name, "point-%04d", before + 1);
        assert_string_equal(plan.points[i].directory, name);
        assert_true(plan.points[i].loss == before);
    }
    cli_sweep_plan_release(&plan);
}

static void expect_refused(tr_status status, const char *part, struct cli_sweep_orders orders,
                           const char *const *set)
{
    struct cli_sweep_plan plan;
    const int64_t live = tr_alloc_live();
    make_plan(&orders, &plan, set);
    const tr_status got = cli_sweep_recall(&orders, &plan);
    if (got != status || !strstr(tr_error_message(), part)) fail_msg("%d: %s", (int)got, tr_error_message());
    cli_sweep_plan_release(&plan);
    assert_int_equal(tr_alloc_live(), live);
}

static void other_sweeps_are_refused(void **state)
{
    (void)state;
    struct cli_sweep_orders orders = orders_of("loss");
    const char *const *same = SET("optimizer.rate=0.1,0.2", "train.batch=4");
    write_record("loss");
    expect_refused(TR_EMISMATCH, "\".\" has a sweep of other fields that points differ in; choose another",
                   orders, SET("optimizer.momentum=0.1,0.2", "train.batch=4"));
    expect_refused(TR_EMISMATCH, "other fields that points differ in", orders,
                   SET("optimizer.rate=0.1,0.2", "a=1,2", "train.batch=4"));
    expect_refused(TR_EMISMATCH, "other settings for all points", orders,
                   SET("optimizer.rate=0.1,0.2", "train.batch=5"));
    expect_refused(TR_EMISMATCH, "other settings for all points", orders, SET("optimizer.rate=0.1,0.2"));
    orders.digest[0] = 'b';
    expect_refused(TR_EMISMATCH, "another model file, or before it was changed", orders, same);
    orders.digest[0] = 'a';
    /* Damaged ones: a directory that this program does not write, a point without values. */
    static const struct {
        const char *points, *part;
    } damages[] = {
        {"{\"directory\": \"../x\", \"values\": [\"0.1\"], \"seed\": -1}",
         "\"../x\" is no directory of a point"},
        {"{\"directory\": \"point-001\", \"values\": [\"0.1\"], \"seed\": -1}",
         "\"point-001\" is no directory"},
        {"{\"directory\": \"point-0001x\", \"values\": [\"0.1\"], \"seed\": -1}", "\"point-0001x\" is no"},
        {"{\"directory\": \"point-1234567890\", \"values\": [\"0.1\"], \"seed\": -1}",
         "is no directory of a point"},
        {"{\"directory\": \"point-0001\", \"values\": [], \"seed\": -1}", "not one value for each field"},
        {"{\"directory\": \"point-0001\", \"values\": [\"1\", \"2\"], \"seed\": -1}",
         "not one value for each field"},
        {"{\"directory\": \"point-0001\", \"values\": [1], \"seed\": -1}", "not one value for each field"},
        {"{\"directory\": \"point-0001\", \"values\": [\"0.1\", 2], \"seed\": -1}",
         "not one value for each field"},
        {"{\"directory\": \"point-0001\", \"values\": "
         "[1,\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\","
         "\"11\",\"12\",\"13\",\"14\",\"15\",\"16\",\"17\",\"18\"], \"seed\": -1}",
         "not one value for each field"},
        {"{\"directory\": \"point-0001\", \"values\": [\"0.1\"], \"seed\": -2}", "seed"},
        {"{\"directory\": \"point-0001\", \"values\": [\"0.1\"]}", "seed"},
        {"{\"directory\": \"point-0001\", \"values\": [\"0.1\"], \"seed\": 1, \"fold\": -1}",
         "no number of a fold"},
        {"{\"values\": [\"0.1\"], \"seed\": -1}", "directory"},
        {"1", "values"},
    };
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        char text[1000];
        snprintf(
            text, sizeof text,
            "{\"model_digest\": \"%s\", \"settings\": [\"train.batch=4\"], \"fields\": [\"optimizer.rate\"], "
            "\"points\": [%s]}",
            orders.digest, damages[i].points);
        write_text("sweep.json", text);
        expect_refused(TR_EFORMAT, damages[i].part, orders, same);
    }
    /* And heads without a part, or with parts that are no texts. */
    static const struct {
        const char *digest, *others, *part;
        tr_status status;
    } heads[] = {
        {"other", "\"settings\": [\"train.batch=4\"], \"fields\": [\"optimizer.rate\"]", "model_digest",
         TR_EFORMAT},
        {"model_digest", "\"fields\": [\"optimizer.rate\"]", "settings", TR_EFORMAT},
        {"model_digest", "\"settings\": [\"train.batch=4\"]", "fields", TR_EFORMAT},
        {"model_digest", "\"settings\": [4], \"fields\": [\"optimizer.rate\"]", "other settings",
         TR_EMISMATCH},
        {"model_digest", "\"settings\": [\"train.batch=4\"], \"fields\": [4]", "other fields", TR_EMISMATCH},
        {"model_digest", "\"settings\": [\"train.batch=4\"], \"fields\": [\"optimizer.rate\"]", "points",
         TR_EFORMAT},
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char text[1000];
        snprintf(text, sizeof text, "{\"%s\": \"%s\", %s}", heads[i].digest, orders.digest, heads[i].others);
        write_text("sweep.json", text);
        expect_refused(heads[i].status, heads[i].part, orders, same);
    }
    /* The greatest number of a directory is taken, and the next one follows. */
    char text[1000];
    snprintf(text, sizeof text,
             "{\"model_digest\": \"%s\", \"settings\": [], \"fields\": [\"a\"], \"points\": [{\"directory\": "
             "\"point-999999998\", \"values\": [\"3\"], \"seed\": -1, \"state\": \"strange\", \"loss\": 1}]}",
             orders.digest);
    write_text("sweep.json", text);
    struct cli_sweep_plan plan;
    make_plan(&orders, &plan, SET("a=1,2"));
    assert_int_equal(cli_sweep_recall(&orders, &plan), TR_OK);
    assert_string_equal(plan.points[0].directory, "point-999999999");
    assert_int_equal(plan.points[2].state, CLI_SWEEP_WAITING);
    assert_true(isnan(plan.points[2].loss));
    cli_sweep_plan_release(&plan);
}

/* As many points as a sweep may have are taken up beside those of this one, and not one more. */
static void earlier_points_have_a_limit(void **state)
{
    (void)state;
    struct cli_sweep_orders orders = orders_of("loss");
    orders.seeds = CLI_SWEEP_POINTS;
    for (int more = 0; more < 2; more++) {
        struct tr_text text = TR_TEXT_INIT;
        struct cli_sweep_plan plan;
        tr_text_addf(&text, "{\"model_digest\": \"%s\", \"settings\": [], \"fields\": [], \"points\": [",
                     orders.digest);
        for (int i = 0; i < CLI_SWEEP_POINTS + more; i++)
            tr_text_addf(&text, "%s{\"directory\": \"point-%05d\", \"values\": [], \"seed\": %d}",
                         i > 0 ? ",\n" : "", i, 20000 + i);
        tr_text_add(&text, "]}");
        assert_false(text.failed);
        write_text("sweep.json", text.bytes);
        tr_text_release(&text);
        make_plan(&orders, &plan, SET(NULL));
        assert_int_equal(plan.count, CLI_SWEEP_POINTS);
        tr_status status = cli_sweep_recall(&orders, &plan);
        if (status != (more ? TR_EFORMAT : TR_OK)) fail_msg("%d: %s", (int)status, tr_error_message());
        if (more) assert_non_null(strstr(tr_error_message(), "has more than 10000 points; choose another"));
        assert_int_equal(plan.count, 2 * CLI_SWEEP_POINTS);
        cli_sweep_plan_release(&plan);
    }
    remove("sweep.json");
}

static void points_have_limits(void **state)
{
    (void)state;
    struct cli_sweep_orders orders = orders_of("loss");
    struct cli_sweep_plan plan;
    orders.seeds = 1000;
    make_plan(&orders, &plan, SET("a=1,2,3,4,5,6,7,8,9,10"));
    assert_int_equal(plan.count, CLI_SWEEP_POINTS);
    cli_sweep_plan_release(&plan);
    orders.seeds = 5001;
    const char *const two[] = {"a=1,2", NULL};
    struct tr_string_list list = {1, (char **)(uintptr_t)two};
    orders.set = &list;
    assert_int_equal(cli_sweep_plan(&orders, &plan), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "the sweep has 10002 points, at most 10000 are run"));
    cli_sweep_plan_release(&plan);
    orders.folds = 4; /* each point with each of them */
    orders.seeds = 1251;
    assert_int_equal(cli_sweep_plan(&orders, &plan), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "the sweep has 10008 points"));
    cli_sweep_plan_release(&plan);
    /* Seeds count from the first one, which may be 0. */
    orders = orders_of("loss");
    orders.seeds = 2;
    orders.seed = 0;
    make_plan(&orders, &plan, SET("a=1,2"));
    assert_true(plan.points[0].seed == 0 && plan.points[1].seed == 1 && plan.points[3].seed == 1);
    cli_sweep_plan_release(&plan);
    /* Sixteen fields at most. */
    static const char *const fields[] = {"a=1,2", "b=1,2", "c=1,2", "d=1,2", "e=1,2", "f=1,2",
                                         "g=1,2", "h=1,2", "i=1,2", "j=1,2", "k=1,2", "l=1,2",
                                         "m=1,2", "n=1,2", "o=1,2", "p=1,2", "q=1,2"};
    orders = orders_of("loss");
    orders.random = 3;
    list = (struct tr_string_list){16, (char **)(uintptr_t)fields};
    orders.set = &list;
    assert_int_equal(cli_sweep_plan(&orders, &plan), TR_OK);
    assert_int_equal(plan.count, 3);
    cli_sweep_plan_release(&plan);
    list.count = 17;
    assert_int_equal(cli_sweep_plan(&orders, &plan), TR_EINVAL);
    assert_string_equal(tr_error_message(), "a sweep varies at most 16 fields, \"q=1,2\" is one more");
    cli_sweep_plan_release(&plan);
    static const char *const fold[] = {"data.fold=1,2"};
    orders = orders_of("loss");
    orders.folds = 2;
    list = (struct tr_string_list){1, (char **)(uintptr_t)fold};
    orders.set = &list;
    assert_int_equal(cli_sweep_plan(&orders, &plan), TR_EINVAL);
    assert_string_equal(tr_error_message(), "--folds runs every fold; leave --set data.fold out");
    cli_sweep_plan_release(&plan);
}

static void without_memory_nothing_stays(void **state)
{
    (void)state;
    write_record("f1");
    for (int64_t at = 0, done = 0; !done; at++) {
        struct cli_sweep_orders orders = orders_of("f1");
        struct cli_sweep_plan plan;
        const int64_t live = tr_alloc_live();
        const char *const set[] = {"optimizer.rate=0.4,0.1", "train.batch=4"};
        struct tr_string_list list = {2, (char **)(uintptr_t)set};
        orders.set = &list;
        refuse_begin(at);
        tr_status status = cli_sweep_plan(&orders, &plan);
        if (status == TR_OK) status = cli_sweep_recall(&orders, &plan);
        if (status == TR_OK) status = cli_sweep_write_record(&orders, &plan);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        cli_sweep_plan_release(&plan);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_taken_up), cmocka_unit_test(folds_and_seeds_tell_points_apart),
        cmocka_unit_test(other_sweeps_are_refused),     cmocka_unit_test(points_have_limits),
        cmocka_unit_test(earlier_points_have_a_limit),  cmocka_unit_test(without_memory_nothing_stays),
    };
    return cmocka_run_group_tests_name("cli.sweep_record", tests, place_make, place_remove);
}
