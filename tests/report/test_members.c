/* What the events of a journal say: each member by its name, and what is so where one is missing. */
#include "report/journal.h"

#include "scratch.h"

#include "base/files/file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Each member by its name. */
static void all_members_are_read(void **state)
{
    (void)state;
    struct tr_run *run;
    static const char text[] =
        "{\"event\":\"start\",\"name\":\"n\",\"model\":\"m\",\"device\":\"d\",\"strategy\":\"s\",\"version\":"
        "\"v\","
        "\"host\":\"h\",\"command\":\"c\",\"settings\":\"e\",\"settings_text\":\"t\",\"strategy_options\":"
        "\"o\","
        "\"time\":\"now\",\"step\":2,\"label_smoothing\":0.25,\"seed\":3,\"parameters\":4,\"batch\":5,"
        "\"microbatches\":6,\"steps\":7,\"ranks\":8}\n"
        "{\"event\":\"step\",\"step\":9,\"loss\":1.5,\"accuracy\":2.5,\"rate\":3.5,\"gradient_norm\":4.5,"
        "\"seconds\":5.5,\"examples_per_second\":6.5}\n"
        "{\"event\":\"evaluation\",\"step\":10,\"loss\":1.5,\"accuracy\":2.5,\"perplexity\":3.5,\"set\":"
        "\"test\","
        "\"metrics\":{\"a\":1},\"outputs\":{\"b\":2}}\n"
        "{\"event\":\"warning\",\"message\":\"w\"}\n{\"event\":\"checkpoint\",\"path\":\"p\"}\n"
        "{\"event\":\"shares\",\"message\":\"unequal\"}\n{\"event\":\"other\",\"name\":\"x\"}\n"
        "{\"event\":\"end\",\"step\":11,\"status\":\"ok\",\"message\":\"m2\",\"hash\":\"h2\",\"seconds\":1."
        "25,"
        "\"examples_per_second\":2.25,\"tokens_per_second\":3.25,\"best\":{\"step\":12,\"loss\":0.5,"
        "\"accuracy\":0.75,"
        "\"set\":\"validation\"},\"statistics\":{\"ranks\":[{\"bytes_sent\":1,\"bytes_received\":2,\"bytes_"
        "shared\":3,"
        "\"wait_seconds\":4.5,\"compute_seconds\":5.5},{\"bytes_sent\":6}]}}\n";
    assert_int_equal(read_text(text, &run), TR_OK);
    const char *const texts[][2] = {{run->name, "n"},
                                    {run->model, "m"},
                                    {run->device, "d"},
                                    {run->strategy, "s"},
                                    {run->version, "v"},
                                    {run->host, "h"},
                                    {run->command, "c"},
                                    {run->settings, "e"},
                                    {run->settings_text, "t"},
                                    {run->strategy_options, "o"},
                                    {run->started, "now"},
                                    {run->evaluation[0].set, "test"},
                                    {run->warning[0], "w"},
                                    {run->checkpoint, "p"},
                                    {run->shares, "unequal"},
                                    {run->status, "ok"},
                                    {run->message, "m2"},
                                    {run->hash, "h2"},
                                    {run->best.set, "validation"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) assert_string_equal(texts[i][0], texts[i][1]);
    assert_true(run->label_smoothing == 0.25 && run->seed == 3 && run->parameters == 4 && run->batch == 5);
    assert_true(run->microbatches == 6 && run->steps == 7 && run->ranks == 8 && run->step == 11);
    const struct tr_run_point *point = &run->point[0];
    assert_true(run->points == 1 && point->step == 9 && point->loss == 1.5 && point->accuracy == 2.5);
    assert_true(point->rate == 3.5 && point->norm == 4.5 && point->seconds == 5.5 && point->speed == 6.5);
    const struct tr_run_evaluation *evaluation = &run->evaluation[0];
    assert_true(run->evaluations == 1 && evaluation->step == 10 && evaluation->loss == 1.5);
    assert_true(evaluation->accuracy == 2.5 && evaluation->perplexity == 3.5);
    assert_true(tr_json_find(evaluation->metrics, "a") && tr_json_find(evaluation->outputs, "b"));
    assert_true(run->seconds == 1.25 && run->speed == 2.25 && run->tokens == 3.25);
    assert_true(run->best.step == 12 && run->best.loss == 0.5 && run->best.accuracy == 0.75);
    assert_true(run->rank_count == 2 && run->rank[0].sent == 1 && run->rank[0].received == 2);
    assert_true(run->rank[0].shared == 3 && run->rank[0].wait == 4.5 && run->rank[0].compute == 5.5);
    assert_true(run->rank[1].sent == 6 && run->rank[1].received == 0 && isnan(run->rank[1].wait));
    assert_false(run->asynchronous);
    assert_int_equal(run->resumed, 0);
    tr_run_destroy(&run);
}

/* What is not said is 0, "" or no number. */
static void members_may_be_missing(void **state)
{
    (void)state;
    struct tr_run *run;
    static const char text[] = "{\"event\":\"start\"}\n{\"event\":\"evaluation\"}\n{\"event\":\"step\"}\n";
    static const char end[] =
        "{\"event\":\"step\",\"step\":5}\n{\"event\":\"end\",\"best\":{},\"statistics\":{"
        "\"ranks\":[{}],\"staleness\":[true,2";
    char both[sizeof text + sizeof end + 4 * TR_RUN_BINS];
    assert_int_equal(read_text(text, &run), TR_OK);
    const char *const texts[] = {
        run->name,    run->model,         run->device,           run->strategy,
        run->version, run->host,          run->command,          run->settings,
        run->started, run->settings_text, run->strategy_options, run->status,
        run->message, run->hash,          run->checkpoint,       run->evaluation[0].set};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) assert_string_equal(texts[i], "");
    assert_true(run->label_smoothing == 0 && run->seed == 0 && run->parameters == 0 && run->batch == 0);
    assert_true(run->microbatches == 0 && run->steps == 0 && run->ranks == 1 && run->step == 0);
    assert_true(run->points == 1 && run->point[0].step == 0 && isnan(run->point[0].loss));
    assert_true(run->evaluations == 1 && run->evaluation[0].step == 0 && isnan(run->evaluation[0].loss));
    assert_true(!run->evaluation[0].metrics && !run->evaluation[0].outputs && !run->shares);
    assert_true(isnan(run->seconds) && isnan(run->speed) && isnan(run->tokens));
    assert_true(!run->ended && !run->classification && !run->asynchronous && run->best.step == 0);
    tr_run_destroy(&run);
    int length = snprintf(both, sizeof both, "%s%s", text, end);
    for (int i = 0; i < TR_RUN_BINS; i++) /* more than there are */
        length += snprintf(both + length, sizeof both - (size_t)length, ",%d", i % 10);
    snprintf(both + length, sizeof both - (size_t)length, "]}}\n");
    assert_int_equal(read_text(both, &run), TR_OK);
    assert_true(run->ended && run->step == 5 && run->asynchronous && run->dropped == 0 &&
                run->best.step == 0);
    assert_true(run->rank_count == 1 && run->rank[0].sent == 0 && run->rank[0].received == 0);
    assert_true(run->rank[0].shared == 0 && isnan(run->rank[0].wait) && isnan(run->rank[0].compute));
    assert_int_equal(run->staleness_count, TR_RUN_BINS);
    assert_true(run->staleness[0] == 0 && run->staleness[1] == 2 && run->staleness[TR_RUN_BINS - 1] == 1);
    tr_run_destroy(&run);
}

/* Each time that a run goes on what an earlier end said is void. */
static void a_run_that_goes_on_has_not_ended(void **state)
{
    (void)state;
    struct tr_run *run;
    static const char again[] = START("10") STEP(
        "10", "1") "{\"event\":\"end\",\"status\":\"full\",\"message\":\"m\",\"hash\":\"h\",\"seconds\":1,"
                   "\"examples_per_second\":2,\"tokens_per_second\":3,\"best\":{\"step\":10}}\n"
                   "{\"event\":\"start\",\"name\":\"job\"}\n" START("0");
    assert_int_equal(read_text(again, &run), TR_OK);
    assert_int_equal(run->resumed, 2);
    assert_int_equal(run->points, 0); /* it began anew, at step 0 */
    assert_true(!run->ended && !*run->status && !*run->message && !*run->hash);
    assert_true(isnan(run->seconds) && isnan(run->speed) && isnan(run->tokens));
    tr_run_destroy(&run);
}

/* From the first damaged line on nothing is read. */
static void what_follows_damage_is_left_out(void **state)
{
    (void)state;
    struct tr_run *run;
    assert_int_equal(read_text(START("0") "{\"event\":\"step\",}\n" STEP("1", "1"), &run), TR_OK);
    assert_int_equal(run->points, 0);
    tr_run_destroy(&run);
    assert_int_equal(read_text(START("0") STEP("1", "1") "x\n" STEP("2", "1"), &run), TR_OK);
    assert_int_equal(run->points, 1);
    tr_run_destroy(&run);
    assert_int_equal(read_text("x\n" START("0"), &run), TR_EFORMAT);
    assert_null(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_members_are_read),
        cmocka_unit_test(members_may_be_missing),
        cmocka_unit_test(a_run_that_goes_on_has_not_ended),
        cmocka_unit_test(what_follows_damage_is_left_out),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
