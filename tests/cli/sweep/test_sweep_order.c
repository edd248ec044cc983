/* The order of a sweep's points: the best first, those that did not run to their end last, and of equals the
 * first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "cli/sweep/sweep.h"
#include "refuse.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* `figure` is what the sweep is judged by; the test sets it. */
static struct cli_sweep_point points[] = {
    {.wanted = true, .state = CLI_SWEEP_DONE, .loss = 2, .accuracy = 0.7},
    {.wanted = true, .state = CLI_SWEEP_FAILED, .loss = 0.5, .accuracy = 1},
    {.wanted = false, .state = CLI_SWEEP_DONE, .loss = 0.1, .accuracy = 1},
    {.wanted = true, .state = CLI_SWEEP_DONE, .loss = 1, .accuracy = 0.6},
    {.wanted = true, .state = CLI_SWEEP_DONE, .loss = NAN, .accuracy = NAN},
    {.wanted = true, .state = CLI_SWEEP_DONE, .loss = 1, .accuracy = 0.7},
};
static const struct cli_sweep_plan plan = {.points = points, .count = sizeof points / sizeof points[0]};

static void the_best_comes_first(void **state)
{
    static const int expected[2][5] = {{3, 5, 0, 4, 1}, {0, 5, 3, 4, 1}};
    (void)state;
    for (int by_accuracy = 0; by_accuracy < 2; by_accuracy++) {
        struct cli_sweep_orders orders = {0};
        snprintf(orders.by, sizeof orders.by, "%s", by_accuracy ? "accuracy" : "loss");
        for (int i = 0; i < plan.count; i++)
            points[i].figure = by_accuracy ? points[i].accuracy : points[i].loss;
        int *order, count;
        assert_int_equal(cli_sweep_rank(&orders, &plan, &order, &count), TR_OK);
        assert_int_equal(count, 5);
        assert_memory_equal(order, expected[by_accuracy], sizeof expected[by_accuracy]);
        tr_free(order);
    }
}

static void without_memory_nothing_stays(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const struct cli_sweep_orders orders = {.by = "loss"};
        int64_t live = tr_alloc_live();
        int *order, count;
        refuse_begin(at);
        tr_status status = cli_sweep_rank(&orders, &plan, &order, &count);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) tr_free(order);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* The words of a text, one blank between them. */
static void collapse(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        const bool blank = *at == ' ';
        if (blank && (to == text || to[-1] == ' ' || to[-1] == '\n')) continue;
        if (*at == '\n' && to > text && to[-1] == ' ') to--;
        *to++ = *at;
    }
    *to = '\0';
}

/* Of 1, 2 and 6 the mean is 3, and the deviation of a sample the root of 14 / 2. What failed has no part in
   it, and the better mean comes first. */
static void seeds_have_means(void **state)
{
    static char one[] = "1", two[] = "2,3", path[] = "a.b";
    static struct cli_sweep_point seeds[] = {
        {.wanted = true, .value = {one}, .seed = 1, .state = CLI_SWEEP_DONE, .loss = 1, .accuracy = 0.5},
        {.wanted = true, .value = {one}, .seed = 2, .state = CLI_SWEEP_DONE, .loss = 2, .accuracy = 0.75},
        {.wanted = true, .value = {one}, .seed = 3, .state = CLI_SWEEP_DONE, .loss = 6, .accuracy = 1},
        {.wanted = true, .value = {two}, .seed = 1, .state = CLI_SWEEP_DONE, .loss = 2, .accuracy = 0.5},
        {.wanted = true, .value = {two}, .seed = 2, .state = CLI_SWEEP_FAILED, .loss = 100, .accuracy = 1},
        {.wanted = true, .value = {two}, .seed = 3, .state = CLI_SWEEP_DONE, .loss = 3, .accuracy = 0.5},
        {.wanted = false, .value = {two}, .seed = 4, .state = CLI_SWEEP_DONE, .loss = 50, .accuracy = 1},
    };
    const struct cli_sweep_plan several = {
        .axis = {{.path = path}}, .axes = 1, .points = seeds, .count = 7, .seeds = 3};
    const struct cli_sweep_orders orders = {.by = "loss"};
    int *order, count;
    char *text;
    (void)state;
    for (int i = 0; i < several.count; i++) seeds[i].figure = seeds[i].loss;
    assert_int_equal(cli_sweep_rank(&orders, &several, &order, &count), TR_OK);
    assert_int_equal(cli_sweep_table(&orders, &several, order, count, &text), TR_OK);
    collapse(text);
    const char *means = strstr(text, "means over seeds, with the deviation:\n");
    assert_non_null(means);
    assert_string_equal(means, "means over seeds, with the deviation:\n"
                               "a.b seeds loss accuracy\n"
                               "2,3 2 2.5 +- 0.71 0.5000 +- 0.0000\n"
                               "1 3 3 +- 2.6 0.7500 +- 0.2500\n");
    tr_free(text);
    tr_free(order);
}

/* A line for each point, in their order, with quotes where a value has a comma. */
static void points_have_lines(void **state)
{
    static char two[] = "2,3", path[] = "a.b";
    static struct cli_sweep_point some[] = {{.wanted = true,
                                             .value = {two},
                                             .seed = 4,
                                             .fold = 2,
                                             .state = CLI_SWEEP_DONE,
                                             .directory = "point-0001",
                                             .loss = 0.5,
                                             .accuracy = 0.75,
                                             .figure = 0.625,
                                             .seconds = 1.5,
                                             .step = 30,
                                             .set = "test",
                                             .hash = "abc"},
                                            {.wanted = true,
                                             .value = {two},
                                             .seed = -1,
                                             .fold = 1,
                                             .state = CLI_SWEEP_FAILED,
                                             .directory = "point-0002",
                                             .loss = NAN,
                                             .accuracy = NAN,
                                             .figure = NAN,
                                             .seconds = NAN,
                                             .failure = "it is \"so\""}};
    const struct cli_sweep_plan few = {
        .axis = {{.path = path}}, .axes = 1, .points = some, .count = 2, .seeds = 1, .folds = 2};
    const struct cli_sweep_orders orders = {.by = "macro_f1"};
    const int order[] = {0, 1};
    char *text;
    (void)state;
    assert_int_equal(cli_sweep_csv(&orders, &few, order, 2, &text), TR_OK);
    assert_string_equal(text,
                        "point,a.b,seed,fold,loss,accuracy,macro_f1,set,seconds,step,hash,state,failure\n"
                        "point-0001,\"2,3\",4,2,0.5,0.75,0.625,test,1.5,30,abc,done,\n"
                        "point-0002,\"2,3\",,1,,,,,,0,,failed,\"it is \"\"so\"\"\"\n");
    tr_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_comes_first),
        cmocka_unit_test(seeds_have_means),
        cmocka_unit_test(points_have_lines),
        cmocka_unit_test(without_memory_nothing_stays),
    };
    return cmocka_run_group_tests_name("cli.sweep_order", tests, NULL, NULL);
}
