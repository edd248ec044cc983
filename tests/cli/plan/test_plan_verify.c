/* The runs that check a plan: which rows are run, how, and what is noted of their ends. In the place of a run
 * stands a function that writes down what it is asked for.
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

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/ops.h"
#include "cli/compare/compare.h"
#include "cli/plan/plan.h"
#include "job/job.h"
#include "refuse.h"
#include "scratch.h"

static char noted[4096], place[SCRATCH_PATH];
static enum cli_compare_end ends = CLI_COMPARE_DONE;
static tr_status starts = TR_OK;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    va_list values;
    size_t length = strlen(noted);
    va_start(values, format);
    vsnprintf(noted + length, sizeof noted - length, format, values);
    va_end(values);
}

tr_status __wrap_cli_compare_run(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                                 const struct cli_compare_case *one, struct cli_screen *screen,
                                 struct cli_compare_result *result);
tr_status __wrap_cli_compare_run(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                                 const struct cli_compare_case *one, struct cli_screen *screen,
                                 struct cli_compare_result *result)
{
    char left[SCRATCH_PATH];
    (void)plan, (void)screen;
    note("%s: %s on %d of %d, %d threads, %d steps, %gs, at %s\n", orders->model, one->strategy, one->workers,
         one->ranks, one->threads, (int)orders->steps, orders->budget, orders->hosts ? orders->hosts : "-");
    for (int i = 0; i < orders->set->count; i++) note(" %s\n", orders->set->item[i]);
    assert_true(orders->seed == -1 && orders->until == 0);
    snprintf(place, sizeof place, "%s", orders->directory);
    FILE *file = fopen(scratch_join(left, place, "left"), "w");
    assert_non_null(file);
    fclose(file);
    *result = (struct cli_compare_result){
        .end = ends, .examples_per_second = 30, .steady_examples_per_second = 40 + one->workers};
    snprintf(result->failure, sizeof result->failure, "no luck");
    return starts == TR_OK ? TR_OK : tr_fail(starts, "no process");
}

/* Four rows, of which the second is left out; the best are those of 3 and 2 workers. */
static struct tr_plan_row row[4];
static struct tr_plan plan;
static void begin(void)
{
    static char name[4][8] = {"one", "left", "two", "three"}, reason[] = "none";
    static const double speeds[] = {10, 99, 20, 30};
    static const double seconds[] = {0.5, 1, 10, 1e-6}; /* of a step */
    for (int i = 0; i < 4; i++) {
        row[i] = (struct tr_plan_row){.strategy = name[i],
                                      .workers = i > 1 ? i : i + 1,
                                      .ranks = i + 1,
                                      .batch = 8 * i,
                                      .microbatches = 4 * i,
                                      .measured = NAN};
        row[i].figures.examples_per_second = speeds[i];
        row[i].figures.seconds = seconds[i];
    }
    row[1].left_out = reason;
    plan = (struct tr_plan){.cluster = {.hosts = 2, .per_host = 2}, .row = row, .rows = 4};
    noted[0] = place[0] = '\0';
    ends = CLI_COMPARE_DONE;
    starts = TR_OK;
}

static char *settings[] = {(char[]){"a=1"}};
static struct tr_string_list set = {.count = 1, .item = settings};
static tr_status verify(int count, const struct tr_schedule *schedule, double run_seconds, const char *hosts)
{
    struct tr_job job = {0};
    struct cli_screen screen;
    const struct cli_plan_orders orders = {
        .model = "m.yaml", .set = &set, .processors = 6, .run_seconds = run_seconds, .hosts = hosts};
    if (schedule) job.optimizer.schedule = *schedule;
    job.train.evaluate_every = 5;
    cli_screen_begin(&screen, stderr);
    const tr_status status = cli_plan_verify(&orders, &job, &screen, count, &plan);
    cli_screen_end(&screen);
    return status;
}

static void the_most_promising_are_run(void **state)
{
    /* The steps are those of so many seconds, by the prediction, but at least 8 and not millions. */
    static const char three[] = "m.yaml: three on 3 of 4, 3 threads, 100000 steps, 50s, at -\n a=1\n"
                                " train.batch=24\n train.microbatches=12\n train.evaluate_every=0\n",
                      two[] = "m.yaml: two on 2 of 3, 3 threads, 8 steps, 50s, at -\n a=1\n"
                              " train.batch=16\n train.microbatches=8\n train.evaluate_every=0\n",
                      one[] = "m.yaml: one on 1 of 1, 6 threads, 10 steps, 50s, at -\n a=1\n"
                              " train.batch=0\n train.microbatches=0\n train.evaluate_every=0\n";
    char expected[1024];
    (void)state;
    for (int count = 0; count <= 5; count++) {
        begin();
        assert_int_equal(verify(count, NULL, 5, NULL), TR_OK);
        if (count > 0) assert_false(tr_file_exists(place)); /* with all that was left there */
        snprintf(expected, sizeof expected, "%s%s%s", count > 0 ? three : "", count > 1 ? two : "",
                 count > 2 ? one : "");
        assert_string_equal(noted, expected);
        for (int i = 0; i < 4; i++) {
            assert_null(row[i].failure);
            const bool was_run = i != 1 && count > (i == 0 ? 2 : 3 - i);
            /* The speed after the first step counts. */
            if (was_run ? row[i].measured != 40 + row[i].workers : !isnan(row[i].measured))
                fail_msg("%d runs, row %d: %g", count, i, row[i].measured);
        }
    }
    begin();
    assert_int_equal(verify(1, NULL, 3.5, "a:2,b:2"), TR_OK);
    assert_non_null(strstr(noted, " steps, 40s, at a:2,b:2\n")); /* as a run has to start, too */
}

/* A run is the beginning of the training: schedules are as long as that, and plateaus need evaluations. */
static void schedules_stay(void **state)
{
    static const struct {
        struct tr_schedule schedule;
        const char *end;
    } cases[] = {
        {{.kind = TR_SCHEDULE_CONSTANT, .steps = 70}, "evaluate_every=0\n"},
        {{.kind = TR_SCHEDULE_COSINE, .steps = 70}, "evaluate_every=0\n optimizer.schedule.steps=70\n"},
        {{.kind = TR_SCHEDULE_ONE_CYCLE, .steps = 71}, "evaluate_every=0\n optimizer.schedule.steps=71\n"},
        {{.kind = TR_SCHEDULE_PLATEAU, .steps = 70}, "evaluate_every=500000\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin();
        assert_int_equal(verify(1, &cases[i].schedule, 4, NULL), TR_OK);
        const char *end = strstr(noted, "evaluate_every=");
        assert_non_null(end);
        assert_string_equal(end, cases[i].end);
    }
}

static void ends_are_noted(void **state)
{
    (void)state;
    begin();
    ends = CLI_COMPARE_OUT_OF_TIME;
    assert_int_equal(verify(1, NULL, 4, NULL), TR_OK);
    assert_true(row[3].measured == 43 && !row[3].failure);
    begin();
    ends = CLI_COMPARE_FAILED; /* which the others can still do better */
    assert_int_equal(verify(2, NULL, 4, NULL), TR_OK);
    for (int i = 2; i < 4; i++) {
        assert_string_equal(row[i].failure, "no luck");
        assert_true(isnan(row[i].measured));
        tr_free(row[i].failure);
    }
    begin();
    ends = CLI_COMPARE_STOPPED;
    assert_int_equal(verify(3, NULL, 4, NULL), TR_EINTERRUPTED);
    assert_non_null(strstr(noted, ": three"));
    assert_null(strstr(noted, ": two"));
    assert_true(isnan(row[3].measured) && !row[3].failure);
    begin();
    starts = TR_EIO;
    assert_int_equal(verify(3, NULL, 4, NULL), TR_EIO);
    assert_string_equal(tr_error_message(), "no process");
    assert_false(tr_file_exists(place));
    assert_null(strstr(noted, ": two"));
    assert_true(isnan(row[3].measured));
}

static void runs_have_a_place(void **state)
{
    const char *before = getenv("TMPDIR");
    char kept[SCRATCH_PATH];
    (void)state;
    snprintf(kept, sizeof kept, "%s", before ? before : "");
    for (int way = 0; way < 3; way++) {
        char expected[SCRATCH_PATH + 32];
        begin();
        setenv("TMPDIR", way == 0 ? scratch_place : "", 1);
        if (way == 2) unsetenv("TMPDIR");
        assert_int_equal(verify(1, NULL, 4, NULL), TR_OK);
        snprintf(expected, sizeof expected, "%s/trireme-plan-", way == 0 ? scratch_place : "/tmp");
        assert_memory_equal(place, expected, strlen(expected));
    }
    begin();
    setenv("TMPDIR", "nowhere", 1);
    assert_int_equal(verify(1, NULL, 4, NULL), TR_EIO);
    assert_non_null(strstr(tr_error_message(), "no directory can be made at \"nowhere/trireme-plan-"));
    assert_string_equal(noted, "");
    if (before) setenv("TMPDIR", kept, 1);
    if (!before) unsetenv("TMPDIR");
}

static void memory_is_refused(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        begin();
        ends = CLI_COMPARE_FAILED;
        refuse_begin(at);
        const tr_status status = verify(2, NULL, 4, NULL);
        done = refuse_end();
        tr_file_discard(NULL, place);
        if (status != TR_OK) assert_int_equal(status, TR_ENOMEM);
        if (status == TR_OK) assert_true(row[2].failure && row[3].failure);
        for (int i = 0; i < 4; i++) tr_free(row[i].failure);
        if (done) assert_int_equal(status, TR_OK);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_promising_are_run),
        cmocka_unit_test(schedules_stay),
        cmocka_unit_test(ends_are_noted),
        cmocka_unit_test(runs_have_a_place),
        cmocka_unit_test(memory_is_refused),
    };
    return cmocka_run_group_tests_name("cli.plan_verify", tests, scratch_place_make, scratch_place_remove);
}
