/* trireme sweep: the points that it runs, what it says of them, and that stops, failures and other sweeps
 * cost nothing that is done.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/session.h"
#include "cli/sweep/sweep.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/ops.h"
#include "checkpoint/checkpoint.h"

/* ---- points ---- */

static struct tr_string_list list_of(const char *const *item)
{
    struct tr_string_list list = {0, (char **)(uintptr_t)item};
    while (item[list.count]) list.count++;
    return list;
}

/* The names of all points, one a line. */
static char *names_of(struct cli_sweep_orders orders, const char *const *set)
{
    struct tr_string_list list = list_of(set);
    struct cli_sweep_plan plan;
    struct tr_text text = TR_TEXT_INIT;
    char *names;
    orders.set = &list;
    if (cli_sweep_plan(&orders, &plan) != TR_OK) fail_msg("%s", tr_error_message());
    for (int i = 0; i < plan.count; i++) {
        cli_sweep_name(&plan, &plan.points[i], &text);
        tr_text_add(&text, "\n");
    }
    assert_int_equal(tr_text_finish(&text, &names), TR_OK);
    cli_sweep_plan_release(&plan);
    return names;
}

static void expect_names(struct cli_sweep_orders orders, const char *const *set, const char *expected)
{
    char *names = names_of(orders, set);
    assert_string_equal(names, expected);
    tr_free(names);
}

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})
static const struct cli_sweep_orders one = {.seeds = 1, .seed = -1};

static void test_grids(void **state)
{
    (void)state;
    expect_names(one, SET("a=1,2", "b=x", "c=3,4"), "a=1 c=3\na=1 c=4\na=2 c=3\na=2 c=4\n");
    expect_names(one, SET("a=[1, 2],[3]", "b={x: 1, y: 2}"), "a=[1, 2]\na=[3]\n");
    expect_names(one, SET("a='1,2',\"3,4\""), "a='1,2'\na=\"3,4\"\n");
    expect_names(one, SET("a=1,1,2"), "a=1\na=2\n"); /* the same point once */
    expect_names(one, SET("a=1"), "as the file says\n");
    expect_names((struct cli_sweep_orders){.seeds = 2, .seed = -1}, SET("a=1,2"),
                 "a=1 seed=1\na=1 seed=2\na=2 seed=1\na=2 seed=2\n");
    expect_names((struct cli_sweep_orders){.seeds = 2, .seed = 7}, SET("a=1"), "seed=7\nseed=8\n");
    expect_names((struct cli_sweep_orders){.seeds = 1, .seed = 7}, SET("a=1"), "seed=7\n");
}

/* Draws are repeatable, in their ranges, and all different. */
static void test_draws(void **state)
{
    (void)state;
    struct cli_sweep_orders orders = {.seeds = 1, .seed = -1, .random = 200};
    static const char *const set[] = {"rate=1e-4..1e-2", "units=8..16", "shift=-1..1.0", "kind=a,b", NULL};
    char *names = names_of(orders, set), *again = names_of(orders, set);
    assert_string_equal(names, again);
    int points = 0, low = 0, b = 0, seen[17] = {0};
    for (char *line = strtok(names, "\n"); line; line = strtok(NULL, "\n")) {
        double rate, shift;
        int units;
        char kind;
        assert_int_equal(sscanf(line, "rate=%lg units=%d shift=%lg kind=%c", &rate, &units, &shift, &kind),
                         4);
        assert_true(rate >= 1e-4 && rate <= 1e-2 && shift >= -1 && shift <= 1);
        assert_in_range(units, 8, 16);
        seen[units]++;
        low += rate < 1e-3;
        b += kind == 'b';
        points++;
    }
    assert_int_equal(points, 200);
    for (int i = 8; i <= 16; i++) assert_true(seen[i] > 0); /* both ends, too */
    assert_in_range(low, 65, 135); /* half of the logarithms, within five deviations */
    assert_in_range(b, 65, 135);
    tr_free(names);
    orders.seed = 5;
    names = names_of(orders, set);
    assert_string_not_equal(names, again);
    tr_free(names);
    orders.seed = 1; /* is that of draws without a seed, whose points have none */
    names = names_of(orders, set);
    assert_memory_equal(names, again, strcspn(again, "\n"));
    tr_free(names);
    tr_free(again);
    orders.random = 20; /* both ends are whole, of one digit, too */
    names = names_of(orders, SET("n=2..9"));
    assert_null(strchr(names, '.'));
    tr_free(names);
    orders.random = 50; /* more than there are */
    names = names_of(orders, SET("kind=a,b,c"));
    assert_int_equal(strlen(names), 3 * strlen("kind=a seed=5\n"));
    tr_free(names);
}

/* Points with several seeds are judged on the same rows, whoever gives the seeds; others split by their own.
 */
static void test_points_share_a_split(void **state)
{
    (void)state;
    static const struct {
        const char *set[3];
        int64_t seeds, seed;
        int32_t folds;
        int64_t split;
    } cases[] = {
        {{"a=1,2"}, 2, -1, 0, -1},
        {{"data.validation_split=0.2"}, 1, -1, 0, -1},
        {{"data.validation_split=0.2"}, 2, -1, 0, 1},
        {{"data.validation_split=0.2"}, 2, 7, 0, 7},
        {{"data.validation_split=0.2", "seed=3,4"}, 1, -1, 0, 1},
        {{"data.validation_split=0.2", "seed=3,4", "data.split_seed=9"}, 1, -1, 0, -1},
        {{"a=1,2"}, 2, -1, 3, 1},
        {{"data.folds=3"}, 2, -1, 0, 1},
        {{"data.fold=3"}, 2, -1, 0, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *set[4] = {cases[i].set[0], cases[i].set[1], cases[i].set[2]};
        struct tr_string_list list = list_of(set);
        struct cli_sweep_orders orders = {.model = "tiny.yaml",
                                          .set = &list,
                                          .seeds = cases[i].seeds,
                                          .seed = cases[i].seed,
                                          .folds = cases[i].folds};
        if (cli_sweep_choose("loss", &orders) != TR_OK) fail_msg("%s", tr_error_message());
        if (orders.split_seed != cases[i].split) fail_msg("case %d: %d", (int)i, (int)orders.split_seed);
    }
}

static void expect_refusal(struct cli_sweep_orders orders, const char *const *set, const char *part)
{
    struct tr_string_list list = list_of(set);
    struct cli_sweep_plan plan;
    orders.set = &list;
    assert_int_equal(cli_sweep_plan(&orders, &plan), TR_EINVAL);
    if (!strstr(tr_error_message(), part)) fail_msg("%s", tr_error_message());
    cli_sweep_plan_release(&plan);
}

static void test_bad_orders(void **state)
{
    (void)state;
    struct cli_sweep_orders random = {.seeds = 1, .seed = -1, .random = 3};
    expect_refusal(one, SET("a=1,,2"), "between two commas is empty");
    expect_refusal(one, SET("a=1..2"), "draw some with --random");
    expect_refusal(random, SET("a=2..1"), "from the lower end");
    expect_refusal(random, SET("a=1"), "--random draws from values");
    expect_refusal((struct cli_sweep_orders){.seeds = 6000, .seed = -1}, SET("a=1,2"),
                   "12000 points, at most 10000");
}

/* ---- sweeps ---- */

static char *file_of(const char *path)
{
    struct tr_file_content content;
    if (tr_file_read(path, 1 << 20, &content) != TR_OK) fail_msg("%s", tr_error_message());
    char *text = strdup(content.data);
    tr_file_content_free(&content);
    return text;
}

static void expect_in(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in: %s", part, text);
}

static int lines_of(const char *text)
{
    int lines = 0;
    for (; (text = strchr(text, '\n')); text++) lines++;
    return lines;
}

/* Two rates, one of which no network survives, with two seeds: the others are not disturbed, and each run is
   that of `trireme train`. */
static void test_a_sweep(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "sweep", "tiny.yaml", "--set", "optimizer.rate=0.1,1e38", "--seeds", "2",
                   "--workers", "2", "--out", "sweep", "--set", "train.steps=20", NULL);
    assert_int_equal(code, 1);
    expect_in(session.text[0], "\n 4/4  ");
    expect_in(session.text[0], "means over seeds");
    expect_in(session.text[0], "best        point-000");
    expect_in(session.text[1], "2 of 4 points failed; the first, point-0003: step ");
    session_release(&session);
    char *table = file_of("sweep/sweep.csv"), *page = file_of("sweep/report.html");
    assert_int_equal(lines_of(table), 5);
    static const char head[] =
        "point,optimizer.rate,seed,loss,accuracy,set,seconds,step,hash,state,failure\n";
    assert_memory_equal(table, head, sizeof head - 1);
    expect_in(page, "<html");
    free(page);
    assert_int_equal(run(&session, "train", "tiny.yaml", "--set", "optimizer.rate=0.1", "--set",
                         "train.steps=20", "--seed", "2", "--out", "alone", NULL),
                     0);
    expect_in(table, hash_in(session.text[0]));
    session_release(&session);
    free(table);

    /* Once more: what is done stays, what failed is tried again; more values are added. */
    code = run(&session, "sweep", "tiny.yaml", "--set", "optimizer.rate=0.1,0.2", "--seeds", "2", "--out",
               "sweep", "--set", "train.steps=20", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    assert_null(strstr(session.text[0], "1/4  "));
    expect_in(session.text[0], "3/4  optimizer.rate=0.2 seed=1: loss");
    expect_in(session.text[0], "point-0006");
    session_release(&session);
    char *record = file_of("sweep/sweep.json");
    expect_in(record, "1e38"); /* is still known */
    free(record);
    code = run(&session, "sweep", "tiny.yaml", "--set", "optimizer.rate=0.1,0.2", "--out", "sweep", NULL);
    assert_int_equal(code, 2);
    expect_in(session.text[1], "a sweep of other settings for all points; choose another directory by --out");
    session_release(&session);
}

/* Every point is run with each fold, all with the same rows, and ranked by a metric. */
static void test_folds(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "sweep", "tiny.yaml", "--set", "optimizer.rate=0.1,0.01", "--folds", "3", "--by",
                   "macro_f1", "--out", "folds", "--set", "train.steps=20", "--seeds", "2", "--set",
                   "data.split=stratified", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    expect_in(session.text[0], "\n12/12  ");
    expect_in(session.text[0], " seed=2 fold=3: loss ");
    expect_in(session.text[0], "means over folds and seeds, with the deviation:");
    session_release(&session);
    char *table = file_of("folds/sweep.csv"), *record = file_of("folds/sweep.json");
    static const char head[] =
        "point,optimizer.rate,seed,fold,loss,accuracy,f1,set,seconds,step,hash,state,failure\n";
    assert_memory_equal(table, head, sizeof head - 1);
    assert_int_equal(lines_of(table), 13);
    expect_in(table, ",validation,");
    expect_in(record, "\"data.split_seed=1\"");
    expect_in(record, "\"data.folds=3\"");
    free(record);
    /* A point is what the same settings train. */
    code = run(&session, "train", "tiny.yaml", "--set", "optimizer.rate=0.01", "--set", "train.steps=20",
               "--set", "data.split=stratified", "--set", "data.split_seed=1", "--set", "data.folds=3",
               "--set", "data.fold=2", "--seed", "2", "--out", "one", NULL);
    assert_int_equal(code, 0);
    expect_in(table, hash_in(session.text[0]));
    session_release(&session);
    free(table);
    /* Nothing is left to do. */
    code = run(&session, "sweep", "tiny.yaml", "--set", "optimizer.rate=0.1,0.01", "--folds", "3", "--by",
               "f1", "--out", "folds", "--set", "train.steps=20", "--seeds", "2", "--set",
               "data.split=stratified", NULL);
    assert_int_equal(code, 0);
    assert_null(strstr(session.text[0], "12/12  "));
    session_release(&session);
    code = run(&session, "sweep", "tiny.yaml", "--folds", "1", "--out", "never", NULL);
    assert_int_equal(code, 2);
    expect_in(session.text[1], "--folds 1 leaves nothing to train on");
    session_release(&session);
    code = run(&session, "sweep", "tiny.yaml", "--set", "train.steps=10", "--by", "f2", "--out", "unknown",
               NULL);
    assert_int_equal(code, 2);
    expect_in(session.text[1], "did you mean \"f1\"?");
    session_release(&session);
}

/* A test of the rate ends with a rate to take, a table whose rates rise by one factor, and a picture. */
static void test_rate_test(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "sweep", "tiny.yaml", "--rate-test", "--out", "rates", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    expect_in(session.text[0], ", where the loss falls fastest; lowest at ");
    expect_in(session.text[0], "picture     rates/rate-test.html");
    char told[128];
    snprintf(told, sizeof told, "%.127s", strstr(session.text[0], "\nrate        "));
    /* Ten rows, from the first step to the last. */
    double shown[2] = {0};
    int rows = 0;
    for (const char *line = strstr(session.text[0], "rate"); (line = strchr(line, '\n')) && line[1] != '\n';
         line++, rows++)
        assert_int_equal(sscanf(line + 1, "%lg", &shown[rows > 0]), 1);
    assert_int_equal(rows, 10);
    session_release(&session);
    char *table = file_of("rates/rate-test.csv"), *page = file_of("rates/rate-test.html");
    expect_in(page, "<svg");
    expect_in(page, "proposed");
    /* The smoothed loss is drawn at each rate, while it is not far above the first one. */
    int drawn = 0, low_steps = 0;
    double first = 0;
    const char *at = strstr(page, "<path class=\"line s1\" d=\"M52.0 ");
    assert_non_null(at);
    for (at = strstr(at, "d=\"") + 3; *at != '"'; at++) drawn += *at == 'M' || *at == 'L';
    free(page);
    assert_memory_equal(table, "step,rate,loss,smoothed\n", 24);
    double before = 0, smooth = 0, last = 0, low = INFINITY, low_rate = 0, fall = 0, rate_of_fall = 0,
           steepest = 0;
    int steps = 0;
    for (char *line = strtok(strchr(table, '\n'), "\n"); line; line = strtok(NULL, "\n")) {
        double rate, loss, smoothed;
        int step;
        assert_int_equal(sscanf(line, "%d,%lg,%lg,%lg", &step, &rate, &loss, &smoothed), 4);
        assert_int_equal(step, ++steps);
        if (before > 0) assert_true(fabs(rate / before / pow(10, 7.0 / 99) - 1) < 1e-9);
        smooth = 0.9 * smooth + 0.1 * loss;
        assert_true(fabs(smoothed - smooth / (1 - pow(0.9, steps))) < 1e-9 * smoothed);
        if (steps == 1) first = smoothed;
        low_steps += smoothed <= 1.5 * first;
        before = rate;
        assert_true(steps <= 11 || last <= 4 * low); /* else it had ended before */
        if (steps > 10 && last - smoothed > fall) {  /* of fewer losses the mean is noise */
            fall = last - smoothed;
            rate_of_fall = rate;
        }
        if (smoothed < low) {
            low = smoothed;
            low_rate = rate;
            steepest = rate_of_fall;
        }
        last = smoothed;
    }
    assert_true(fabs(shown[0] / 1e-6 - 1) < 1e-9 && fabs(shown[1] / before - 1) < 0.05);
    assert_true(steps > 50 && steps <= 100 && (steps == 100 || last > 4 * low));
    assert_int_equal(drawn, low_steps);
    assert_true(steepest > 1e-4); /* smaller rates hardly change the weights of this job */
    /* The steepest fall up to the lowest loss. */
    char proposed[128];
    snprintf(proposed, sizeof proposed,
             "\nrate        %.2g, where the loss falls fastest; lowest at %.2g:", steepest, low_rate);
    assert_memory_equal(told, proposed, strlen(proposed));
    free(table);
    code = run(&session, "sweep", "tiny.yaml", "--rate-test", "--seeds", "2", "--out", "rates", NULL);
    assert_int_equal(code, 2);
    expect_in(session.text[1], "--rate-test is one run");
    session_release(&session);
}

static void test_bad_records(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "{",
                                      "{\"model_digest\":\"\",\"settings\":[],\"fields\":[],\"points\":[]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct session session;
        assert_int_equal(tr_file_make_directories(NULL, "damaged"), TR_OK);
        write_text("damaged/sweep.json", bad[i]);
        int code =
            run(&session, "sweep", "tiny.yaml", "--set", "optimizer.rate=0.1,0.2", "--out", "damaged", NULL);
        assert_true(code == 1 || code == 2);
        expect_in(session.text[1], "damaged");
        session_release(&session);
    }
    struct session session;
    assert_int_equal(
        run(&session, "sweep", "tiny.yaml", "--set", "optimizer.rat=0.1,0.2", "--out", "never", NULL), 2);
    expect_in(session.text[1], "did you mean \"rate\"?");
    assert_false(tr_file_exists("never"));
    session_release(&session);
}

/* Waits until a file holds a text. */
static void wait_for_text(const char *path, const char *part)
{
    for (int i = 0; i < 6000; i++) {
        struct tr_file_content content;
        if (tr_file_exists(path) && tr_file_read(path, 64 << 20, &content) == TR_OK) {
            bool there = strstr(content.data, part) != NULL;
            tr_file_content_free(&content);
            if (there) return;
        }
        usleep(20000);
    }
    fail_msg("%s does not come to hold %s", path, part);
}

/* Starts a sweep of two runs without end, stops it once both have come so far, and returns what it said. */
static void stop_once(const char *part, struct session *session)
{
    const char *const arguments[] = {
        "sweep",     "tiny.yaml", "--set", "optimizer.rate=0.05,0.1", "--out", "stopped",
        "--workers", "2",         "--set", "train.steps=1000000000",  "--set", "train.log_every=100000000",
        NULL};
    session_start(session, &(struct setup){.arguments = arguments});
    wait_for_text("stopped/point-0001/journal.jsonl", part);
    wait_for_text("stopped/point-0002/journal.jsonl", part);
    session_signal(session, SIGINT);
    assert_int_equal(session_end(session), 3);
    expect_in(session->text[1], "stopped with 2 of 2 points to do; the same command goes on with them");
}

/* Ctrl-C saves what runs, and the same command takes it up there. */
static void test_a_stop(void **state)
{
    (void)state;
    struct session session;
    int64_t first, second;
    stop_once("\"event\":\"step\"", &session);
    session_release(&session);
    char *record = file_of("stopped/sweep.json");
    expect_in(record, "\"waiting\"");
    assert_null(strstr(record, "\"done\""));
    free(record);
    char *table = file_of("stopped/sweep.csv"); /* what was done of a point does not count */
    expect_in(table, "\npoint-0001,0.05,,,,,,0,,waiting,\n");
    free(table);
    assert_int_equal(tr_checkpoint_latest("stopped/point-0001", &first), TR_OK);
    assert_true(first > 0);
    stop_once("\"resumed\":\"stopped/point-000", &session);
    session_release(&session);
    assert_int_equal(tr_checkpoint_latest("stopped/point-0001", &second), TR_OK);
    assert_true(second >= first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grids),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_points_share_a_split),
        cmocka_unit_test(test_bad_orders),
        cmocka_unit_test(test_a_sweep),
        cmocka_unit_test(test_folds),
        cmocka_unit_test(test_rate_test),
        cmocka_unit_test(test_bad_records),
        cmocka_unit_test(test_a_stop),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
