/* Plans as JSON: every figure in its place, per rank and step, and the row that is best. */
#include "plan/plan.h"

#include "base/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>

static char alone[] = "allreduce", pipeline[] = "pipeline,stages=2", local[] = "local-sgd",
            gossip[] = "gossip", reason[] = "too few layers", failure[] = "a rank was lost";

static struct tr_plan_row rows[] = {
    {.strategy = alone,
     .workers = 1,
     .ranks = 1,
     .batch = 8,
     .figures = {.ranks = 1,
                 .seconds = 0.5,
                 .examples_per_second = 16,
                 .sum = {.compute = 0.5, .memory = 900},
                 .most = {.compute = 0.5, .memory = 900},
                 .bottleneck = TR_BOTTLENECK_COMPUTING},
     .measured = NAN},
    {.strategy = pipeline, .workers = 2, .ranks = 2, .batch = 8, .left_out = reason, .measured = NAN},
    {.strategy = local,
     .workers = 3,
     .ranks = 4,
     .batch = 24,
     .figures = {.ranks = 4,
                 .seconds = 0.25,
                 .examples_per_second = 40,
                 .sum = {0.5, 0.25, 0.125, 4096, 4000, 512, 12, 17000},
                 .most = {0.25, 0.125, 0.0625, 3000, 2900, 500, 5, 5000},
                 .mean = {.compute = 0.125},
                 .waiting = 0.375,
                 .link = 0.75,
                 .bottleneck = TR_BOTTLENECK_LINK},
     .measured = 32},
    {.strategy = gossip,
     .workers = 2,
     .ranks = 2,
     .batch = 16,
     .figures = {.ranks = 2, .seconds = 0.5, .examples_per_second = 40, .bottleneck = TR_BOTTLENECK_WAITING},
     .measured = 0,
     .failure = failure},
};

static const struct tr_plan plan = {
    .name = "job",
    .device = "cpu",
    .grows = true,
    .cluster = {.hosts = 3,
                .per_host = 2,
                .remote = {.latency = 0.5, .rate = 1024, .overhead = 0.25, .copying = 2048, .waking = 0},
                .local = {.latency = 0.125, .rate = 4096, .overhead = 0.0625, .copying = 8192, .waking = 2},
                .memory = 512},
    .row = rows,
    .rows = 4,
};

static const char expected[] =
    "{\"job\": \"job\", \"device\": \"cpu\", \"simulated\": true, \"batch_grows\": true,"
    " \"cluster\": {\"hosts\": 3, \"ranks_per_host\": 2, \"added_bytes_per_second\": 512,"
    " \"between_hosts\": {\"latency_seconds\": 0.5, \"bytes_per_second\": 1024, \"overhead_seconds\": 0.25,"
    " \"waking_seconds\": 0, \"copied_bytes_per_second\": 2048},"
    " \"within_hosts\": {\"latency_seconds\": 0.125, \"bytes_per_second\": 4096, \"overhead_seconds\": "
    "0.0625,"
    " \"waking_seconds\": 2, \"copied_bytes_per_second\": 8192}},"
    " \"rows\": ["
    "{\"strategy\": \"allreduce\", \"workers\": 1, \"processes\": 1, \"batch\": 8, \"step_seconds\": 0.5,"
    " \"examples_per_second\": 16, \"speedup\": 1, \"memory_bytes\": 900, \"bytes_sent_per_step\": 0,"
    " \"bytes_shared_per_step\": 0, \"messages_per_step\": 0, \"computing_seconds\": 0.5,"
    " \"processing_seconds\": 0, \"waiting\": 0, \"busiest_link\": 0, \"bottleneck\": \"computing\"},"
    "{\"strategy\": \"pipeline,stages=2\", \"workers\": 2, \"processes\": 2, \"batch\": 8,"
    " \"reason\": \"too few layers\"},"
    "{\"strategy\": \"local-sgd\", \"workers\": 3, \"processes\": 4, \"batch\": 24, \"step_seconds\": 0.25,"
    " \"examples_per_second\": 40, \"speedup\": 2.5, \"memory_bytes\": 5000, \"bytes_sent_per_step\": 4096,"
    " \"bytes_shared_per_step\": 512, \"messages_per_step\": 12, \"computing_seconds\": 0.125,"
    " \"processing_seconds\": 0.0625, \"waiting\": 0.375, \"busiest_link\": 0.75,"
    " \"bottleneck\": \"a host's link\", \"measured_examples_per_second\": 32, \"error\": 0.25},"
    "{\"strategy\": \"gossip\", \"workers\": 2, \"processes\": 2, \"batch\": 16, \"step_seconds\": 0.5,"
    " \"examples_per_second\": 40, \"speedup\": 2.5, \"memory_bytes\": 0, \"bytes_sent_per_step\": 0,"
    " \"bytes_shared_per_step\": 0, \"messages_per_step\": 0, \"computing_seconds\": 0,"
    " \"processing_seconds\": 0, \"waiting\": 0, \"busiest_link\": 0, \"bottleneck\": \"ranks wait for each "
    "other\","
    " \"failure\": \"a rank was lost\"}"
    "], \"best\": 2}"; /* the first of equally fast ones */

static void figures_are_told(void **state)
{
    char *text;
    json_error_t error;
    (void)state;
    assert_int_equal(tr_plan_json(&plan, &text), TR_OK);
    json_t *told = json_loads(text, 0, &error), *wanted = json_loads(expected, 0, &error);
    assert_non_null(wanted);
    assert_non_null(told);
    if (!json_equal(told, wanted)) fail_msg("%s\nis not\n%s", text, expected);
    json_decref(told);
    json_decref(wanted);
    tr_free(text);
}

/* Nothing is compared with a first row that is not known, and no row is best that is not known. */
static void what_is_not_known_is_not_compared(void **state)
{
    struct tr_plan_row row[3] = {rows[0], rows[1], rows[2]};
    struct tr_plan some = plan;
    (void)state;
    some.row = row;
    some.rows = 3;
    assert_true(tr_plan_speedup(&some, 2) == 2.5);
    assert_true(isnan(tr_plan_speedup(&some, 1)));
    assert_true(isnan(tr_plan_error(&row[0])) && tr_plan_error(&row[2]) == 0.25);
    row[0].left_out = reason;
    assert_true(isnan(tr_plan_speedup(&some, 2)));
    assert_int_equal(tr_plan_best(&some), 2);
    row[2].figures.examples_per_second = 0;
    assert_int_equal(tr_plan_best(&some), -1);
    row[2].figures.examples_per_second = 0.25; /* slow, but known */
    row[2].measured = 0.5;
    assert_int_equal(tr_plan_best(&some), 2);
    assert_true(tr_plan_error(&row[2]) == -0.5);
    row[0].left_out = NULL;
    row[0].figures.examples_per_second = 0.125;
    assert_true(tr_plan_speedup(&some, 2) == 2);
    some.rows = 0;
    assert_true(isnan(tr_plan_speedup(&some, 0)));
    assert_int_equal(tr_plan_best(&some), -1);
}

/* Three or four digits, and seconds from one second on. */
static void times_of_steps_are_short(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {
        {0, "0.000 ms"},      {1.25e-6, "0.001 ms"}, {0.5e-3, "0.500 ms"},  {1e-3, "1.00 ms"},
        {1.5e-3, "1.50 ms"},  {9.75e-3, "9.75 ms"},  {10e-3, "10.0 ms"},    {31.25e-3, "31.2 ms"},
        {99.5e-3, "99.5 ms"}, {0.1, "100 ms"},       {0.1015625, "102 ms"}, {0.96875, "969 ms"},
    };
    char text[TR_TEXT_NUMBER_SIZE], seconds[TR_TEXT_NUMBER_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(tr_plan_step_text(cases[i].seconds, text), cases[i].text);
    assert_string_equal(tr_plan_step_text(1, text), tr_text_from_seconds(1, seconds));
    assert_string_equal(tr_plan_step_text(90, text), tr_text_from_seconds(90, seconds));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_told),
        cmocka_unit_test(what_is_not_known_is_not_compared),
        cmocka_unit_test(times_of_steps_are_short),
    };
    return cmocka_run_group_tests_name("plan.plan", tests, NULL, NULL);
}
