/* The runs of a sweep: the commands that are started, what is heard of them, how they end and what is told.
 * The program that is started is this one, which then notes its arguments and says what the test wants.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fail.h"
#include "cli/play.h"
#include "cli/program/signals.h"
#include "cli/sweep/sweep.h"
#include "refuse.h"
#include "scratch.h"

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct cli_sweep_orders orders_by(const char *by)
{
    struct cli_sweep_orders orders = {.model = "job.yaml",
                                      .seeds = 1,
                                      .seed = -1,
                                      .split_seed = -1,
                                      .workers = 1,
                                      .threads = 1,
                                      .out = scratch_place};
    snprintf(orders.by, sizeof orders.by, "%s", by);
    return orders;
}

/* The plan of new points with these values; release with cli_sweep_plan_release(). */
static struct cli_sweep_plan plan_of(struct cli_sweep_orders *orders, const char *const *set)
{
    struct tr_string_list list = {0, (char **)(uintptr_t)set};
    struct cli_sweep_plan plan;
    while (set[list.count]) list.count++;
    orders->set = &list;
    remove(scratch_in("sweep.json"));
    if (cli_sweep_plan(orders, &plan) != TR_OK || cli_sweep_recall(orders, &plan) != TR_OK)
        fail_msg("%s", tr_error_message());
    return plan;
}

/* Runs the points; what is told of them, in static storage. */
static const char *run(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan)
{
    static char told[8192];
    struct cli_screen screen;
    FILE *file = tmpfile();
    assert_non_null(file);
    cli_screen_begin(&screen, file);
    const tr_status status = cli_sweep_run(orders, plan, &screen);
    cli_screen_end(&screen);
    if (status != TR_OK) fail_msg("%s", tr_error_message());
    rewind(file);
    told[fread(told, 1, sizeof told - 1, file)] = '\0';
    fclose(file);
    return told;
}

#define STEP(loss) "{\"event\":\"step\",\"step\":1,\"steps\":40,\"loss\":" loss ",\"accuracy\":0.125}\n"
#define JUDGED(set, loss, accuracy, f1)                                                                      \
    "{\"event\":\"evaluation\",\"set\":\"" set "\",\"loss\":" loss ",\"accuracy\":" accuracy                 \
    ",\"metrics\":{\"f1\":" f1 "}}\n"
#define END "{\"event\":\"end\",\"step\":40,\"seconds\":1.5,\"hash\":\"abc\"}\n"

static void the_command_says_what_was_ordered(void **state)
{
    char expected[4096];
    struct tr_file_content content;
    struct cli_sweep_orders orders = orders_by("loss");
    (void)state;
#define HEAD                                                                                                 \
    "train\njob.yaml\n--out=%s/"                                                                             \
    "point-000%d\n--log=json\n--quiet\n--transport=none\n--threads=3\n--continue\n"
    orders.threads = 3;
    struct cli_sweep_plan plan = plan_of(&orders, SET("a.b=1,2", "c=x"));
    play_with(scratch_in("arguments"), END, "0");
    run(&orders, &plan);
    cli_sweep_plan_release(&plan);
    snprintf(expected, sizeof expected, HEAD "--set=c=x\n--set=a.b=1\n" HEAD "--set=c=x\n--set=a.b=2\n",
             scratch_place, 1, scratch_place, 2);
    assert_int_equal(tr_file_read(scratch_in("arguments"), 4095, &content), TR_OK);
    assert_string_equal(content.data, expected);
    tr_file_content_free(&content);
    orders.seed = 0;
    orders.folds = 1;
    plan = plan_of(&orders, SET(NULL));
    play_with(scratch_in("arguments"), END, "0");
    run(&orders, &plan);
    cli_sweep_plan_release(&plan);
    snprintf(expected, sizeof expected,
             HEAD "--seed=0\n--set=data.validation_split=0\n--set=data.folds=1\n--set=data.fold=1\n",
             scratch_place, 1);
    assert_int_equal(tr_file_read(scratch_in("arguments"), 4095, &content), TR_OK);
    assert_string_equal(content.data, expected);
    tr_file_content_free(&content);
}

/* The best evaluation on validation data counts, else the last one on others, else the last step. */
static void the_figures_of_the_best_evaluation_are_kept(void **state)
{
    static const struct {
        const char *by, *said, *set;
        double loss, accuracy, figure;
    } cases[] = {
        {"loss", STEP("4") STEP("5"), "train", 5, 0.125, 5},
        {"loss", STEP("1") JUDGED("test", "3", "0.5", "0") STEP("2"), "test", 3, 0.5, 3},
        {"loss", JUDGED("test", "1", "0.5", "0") JUDGED("test", "2", "0.25", "0"), "test", 2, 0.25, 2},
        {"loss", JUDGED("test", "1", "0.5", "0") JUDGED("validation", "3", "0.25", "0") STEP("0"),
         "validation", 3, 0.25, 3},
        {"loss",
         JUDGED("validation", "3", "0.5", "0") JUDGED("validation", "2", "0.25", "0")
             JUDGED("validation", "2", "0.75", "0") JUDGED("validation", "4", "1", "0")
                 JUDGED("test", "1", "1", "0"),
         "validation", 2, 0.25, 2},
        {"accuracy", JUDGED("validation", "3", "0.5", "0") JUDGED("validation", "2", "0.25", "1"),
         "validation", 3, 0.5, 0.5},
        {"f1", JUDGED("validation", "3", "0.5", "0.25") JUDGED("validation", "4", "0.25", "0.75"),
         "validation", 4, 0.25, 0.75},
        {"f1", JUDGED("validation", "3", "0.5", "null") JUDGED("validation", "4", "0.25", "0.75"),
         "validation", 4, 0.25, 0.75},
        {"f1", JUDGED("validation", "3", "0.5", "0.75") JUDGED("validation", "4", "0.25", "null"),
         "validation", 3, 0.5, 0.75},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char said[2048];
        struct cli_sweep_orders orders = orders_by(cases[i].by);
        struct cli_sweep_plan plan = plan_of(&orders, SET("a=1,2"));
        snprintf(said, sizeof said, "%sno line of JSON\n" END, cases[i].said);
        play_with(scratch_in("arguments"), said, "0");
        run(&orders, &plan);
        for (int k = 0; k < 2; k++) {
            const struct cli_sweep_point *point = &plan.points[k];
            if (point->loss != cases[i].loss || point->accuracy != cases[i].accuracy ||
                point->figure != cases[i].figure || strcmp(point->set, cases[i].set) != 0)
                fail_msg("case %zu: loss %g, accuracy %g, %g on %s", i, point->loss, point->accuracy,
                         point->figure, point->set);
            assert_int_equal(point->state, CLI_SWEEP_DONE);
            assert_int_equal(point->step, 40);
            assert_true(point->seconds == 1.5);
            assert_string_equal(point->hash, "abc");
        }
        cli_sweep_plan_release(&plan);
    }
}

static void each_end_is_told(void **state)
{
    static const struct {
        const char *said, *error, *code, *told;
        enum cli_sweep_state state;
    } cases[] = {
        {JUDGED("test", "3", "0.5", "0.25") END, NULL, "0",
         "loss 3, accuracy 0.5000, f1 0.2500 on test, 1.5 s", CLI_SWEEP_DONE},
        {"{\"event\":\"evaluation\",\"set\":\"test\",\"loss\":3}\n" END, NULL, "0",
         "loss 3, f1 nan on test, 1.5 s", CLI_SWEEP_DONE},
        {STEP("1"), NULL, "0", "FAILED: exit code 0", CLI_SWEEP_FAILED}, /* it said no hash */
        {END, NULL, "3", "FAILED: exit code 3", CLI_SWEEP_FAILED},       /* nobody asked it to stop */
        {"", "x\ntrireme train: no such file\n", "2", "FAILED: no such file", CLI_SWEEP_FAILED},
        {"", "trireme run: no\n", "2", "FAILED: trireme run: no", CLI_SWEEP_FAILED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char expected[256];
        struct cli_sweep_orders orders = orders_by("f1");
        struct cli_sweep_plan plan = plan_of(&orders, SET("a=1,2"));
        if (cases[i].error) setenv("PLAY_ERROR", cases[i].error, 1);
        play_with(scratch_in("arguments"), cases[i].said, cases[i].code);
        snprintf(expected, sizeof expected, " 1/2  a=1: %s\n 2/2  a=2: %s\n", cases[i].told, cases[i].told);
        assert_string_equal(run(&orders, &plan), expected);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(plan.points[k].state, cases[i].state);
            assert_string_equal(plan.points[k].failure,
                                cases[i].state == CLI_SWEEP_DONE ? "" : strchr(cases[i].told, ':') + 2);
        }
        unsetenv("PLAY_ERROR");
        /* What is done is not run again; what failed is, and loses what was known of it. */
        play_with(scratch_in("arguments"), END, "0");
        const char *told = run(&orders, &plan);
        assert_int_equal(*told == '\0', cases[i].state == CLI_SWEEP_DONE);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(plan.points[k].state, CLI_SWEEP_DONE);
            assert_string_equal(plan.points[k].failure, "");
            if (cases[i].state != CLI_SWEEP_DONE) assert_true(isnan(plan.points[k].loss));
        }
        cli_sweep_plan_release(&plan);
    }
}

/* Those of an earlier sweep are left out, those that are done count, and several run at a time. */
static void only_wanted_points_are_run(void **state)
{
    struct cli_sweep_orders orders = orders_by("loss");
    struct cli_sweep_plan plan = plan_of(&orders, SET("a=1,2,3,4,5"));
    (void)state;
    plan.points[0].wanted = false;
    plan.points[1].state = CLI_SWEEP_DONE;
    orders.workers = 2;
    play_with(scratch_in("arguments"), STEP("4") END, "0");
    const char *told = run(&orders, &plan);
    for (int k = 2; k < 5; k++) {
        char part[32];
        snprintf(part, sizeof part, "a=%d: loss 4, ", k + 1);
        assert_non_null(strstr(told, part));
        assert_int_equal(plan.points[k].state, CLI_SWEEP_DONE);
    }
    assert_memory_equal(told, " 2/4  a=", 8);
    assert_non_null(strstr(told, "\n 4/4  a="));
    assert_null(strstr(told, "a=1"));
    assert_null(strstr(told, "a=2"));
    assert_int_equal(plan.points[0].state, CLI_SWEEP_WAITING);
    cli_sweep_plan_release(&plan);
    /* Numbers are in line up to the greatest one. */
    for (int more = 0; more < 2; more++) {
        orders = orders_by("loss");
        orders.seeds = 99 + more;
        plan = plan_of(&orders, SET(NULL));
        for (int i = 1; i < plan.count; i++) plan.points[i].state = CLI_SWEEP_DONE;
        told = run(&orders, &plan);
        const char *line = more ? " 100/100  seed=1: loss 4, " : "99/99  seed=1: loss 4, ";
        assert_memory_equal(told, line, strlen(line));
        cli_sweep_plan_release(&plan);
    }
}

/* A point that is done is one of which all was heard. */
static void memory_is_refused(void **state)
{
    FILE *nowhere = fopen("/dev/null", "w");
    struct cli_sweep_orders orders = orders_by("loss");
    int refused = 0, failed = 0;
    (void)state;
    assert_non_null(nowhere);
    play_with(scratch_in("arguments"), STEP("4") JUDGED("test", "3", "0.5", "0") END, "0");
    for (int64_t at = 0, done = 0; !done; at++) {
        struct cli_sweep_plan plan = plan_of(&orders, SET("a=1"));
        struct cli_screen screen;
        const struct cli_sweep_point *point = &plan.points[0];
        const int64_t live = tr_alloc_live();
        cli_screen_begin(&screen, nowhere);
        refuse_begin(at);
        const tr_status status = cli_sweep_run(&orders, &plan, &screen);
        done = refuse_end();
        cli_screen_end(&screen);
        assert_true(status == TR_OK || (status == TR_ENOMEM && !done));
        refused += status == TR_ENOMEM;
        failed += point->state == CLI_SWEEP_FAILED;
        if (point->state == CLI_SWEEP_DONE && (point->loss != 3 || strcmp(point->set, "test") != 0))
            fail_msg("refusal %d leaves a loss of %g on %s", (int)at, point->loss, point->set);
        if (point->state == CLI_SWEEP_FAILED) assert_non_null(strstr(point->failure, "memory"));
        if (done) assert_int_equal(point->state, CLI_SWEEP_DONE);
        assert_int_equal(tr_alloc_live(), live);
        cli_sweep_plan_release(&plan);
    }
    assert_true(refused > 0 && failed > 0);
    fclose(nowhere);
}

/* A sweep whose record cannot be written starts nothing. */
static void without_a_record_nothing_is_run(void **state)
{
    struct cli_sweep_orders orders = orders_by("loss");
    struct cli_sweep_plan plan = plan_of(&orders, SET("a=1"));
    struct cli_screen screen;
    struct stat facts;
    (void)state;
    orders.out = "/dev/null/x";
    cli_screen_begin(&screen, stderr);
    play_with(scratch_in("arguments"), END, "0");
    assert_int_not_equal(cli_sweep_run(&orders, &plan, &screen), TR_OK);
    assert_non_null(strstr(tr_error_message(), "/dev/null/x/sweep.json"));
    cli_screen_end(&screen);
    assert_int_not_equal(stat(scratch_in("arguments"), &facts), 0);
    assert_int_equal(plan.points[0].state, CLI_SWEEP_WAITING);
    cli_sweep_plan_release(&plan);
}

static int set_up(void **state)
{
    cli_signals_catch(NULL, "ending");
    return scratch_place_make(state);
}

static int tear_down(void **state)
{
    cli_signals_release();
    return scratch_place_remove(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_command_says_what_was_ordered),
        cmocka_unit_test(the_figures_of_the_best_evaluation_are_kept),
        cmocka_unit_test(each_end_is_told),
        cmocka_unit_test(only_wanted_points_are_run),
        cmocka_unit_test(memory_is_refused),
        cmocka_unit_test(without_a_record_nothing_is_run),
    };
    if (is_played(argc)) return play(argv);
    return cmocka_run_group_tests_name("cli.sweep_run", tests, set_up, tear_down);
}
