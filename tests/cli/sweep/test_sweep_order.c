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
    static char name[] = "a.b", value[] = "1";
    static struct cli_sweep_point some[2];
    struct cli_sweep_plan several = {
        .axis = {{.path = name}}, .axes = 1, .points = some, .count = 2, .seeds = 2};
    (void)state;
    for (int i = 0; i < 2; i++)
        some[i] = (struct cli_sweep_point){
            .wanted = true, .value = {value}, .seed = i + 1, .state = CLI_SWEEP_DONE, .loss = 1, .figure = 1};
    for (int64_t at = 0, done = 0; !done; at++) {
        const struct cli_sweep_orders orders = {.by = "loss"};
        int64_t live = tr_alloc_live();
        char *table = NULL, *csv = NULL;
        int *order = NULL, count;
        refuse_begin(at);
        tr_status status = cli_sweep_rank(&orders, &several, &order, &count);
        const bool ranked = status == TR_OK;
        if (status == TR_OK) status = cli_sweep_table(&orders, &several, order, count, &table);
        const bool told = status == TR_OK;
        if (status == TR_OK) status = cli_sweep_csv(&orders, &several, order, count, &csv);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) tr_free(csv);
        if (told) tr_free(table);
        if (ranked) tr_free(order);
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

/* Without folds and another figure there are no columns for them; the first seed may be 0, and without one
   the place is empty. Of more than 40 points a table shows the first ones. */
static void columns_are_those_that_are_needed(void **state)
{
    enum { POINTS = 41 };
    static char value[] = "a\"b", path[] = "x,y";
    static struct cli_sweep_point many[POINTS];
    int order[POINTS];
    struct cli_sweep_plan one = {
        .axis = {{.path = path}}, .axes = 1, .points = many, .count = POINTS, .seeds = 1};
    struct cli_sweep_orders orders = {.by = "loss"};
    char *text;
    (void)state;
    for (int i = 0; i < POINTS; i++) {
        many[i] = (struct cli_sweep_point){.wanted = true,
                                           .value = {value},
                                           .seed = i - 1,
                                           .state = i == 2 ? CLI_SWEEP_WAITING : CLI_SWEEP_DONE,
                                           .loss = 0.5,
                                           .accuracy = NAN,
                                           .figure = 0.5,
                                           .seconds = 2,
                                           .step = 3,
                                           .hash = "0123456789"};
        snprintf(many[i].directory, sizeof many[i].directory, "point-%04d", i + 1);
        strcpy(many[i].set, "train");
        order[i] = i;
    }
    assert_int_equal(cli_sweep_csv(&orders, &one, order, 3, &text), TR_OK);
    assert_string_equal(text, "point,\"x,y\",seed,loss,accuracy,set,seconds,step,hash,state,failure\n"
                              "point-0001,\"a\"\"b\",,0.5,,train,2,3,0123456789,done,\n"
                              "point-0002,\"a\"\"b\",0,0.5,,train,2,3,0123456789,done,\n"
                              "point-0003,\"a\"\"b\",1,0.5,,train,2,3,0123456789,waiting,\n");
    tr_free(text);
    assert_int_equal(cli_sweep_table(&orders, &one, order, 40, &text), TR_OK);
    collapse(text);
    static const char rows[] = "\npoint x,y seed loss accuracy on time hash\n"
                               "point-0001 a\"b 0.5 - train 2.0 s 01234567\n"
                               "point-0002 a\"b 0 0.5 - train 2.0 s 01234567\n"
                               "point-0003 a\"b 1 0.5 - train stopped\n";
    assert_memory_equal(text, rows, strlen(rows));
    assert_non_null(strstr(text, "point-0040 "));
    assert_null(strstr(text, " more in sweep.csv"));
    assert_null(strstr(text, "means over"));
    tr_free(text);
    assert_int_equal(cli_sweep_table(&orders, &one, order, 41, &text), TR_OK);
    assert_null(strstr(text, "point-0041 "));
    assert_non_null(strstr(text, "and 1 more in sweep.csv\n"));
    tr_free(text);
    /* Folds and seeds together have means over both. */
    for (int i = 0; i < 4; i++) many[i].seed = i / 2 + 1, many[i].fold = i % 2 + 1;
    one.count = 4;
    one.folds = 2;
    one.seeds = 2;
    assert_int_equal(cli_sweep_table(&orders, &one, order, 4, &text), TR_OK);
    collapse(text);
    assert_non_null(
        strstr(text, "\npoint x,y seed fold loss accuracy on time hash\npoint-0001 a\"b 1 1 0.5 "));
    assert_non_null(
        strstr(text, "\nmeans over folds and seeds, with the deviation:\nx,y runs loss accuracy\n"));
    tr_free(text);
    one.seeds = 1;
    assert_int_equal(cli_sweep_table(&orders, &one, order, 4, &text), TR_OK);
    assert_non_null(strstr(text, "\nmeans over folds, with the deviation:\n"));
    tr_free(text);
    /* As many means are shown as points. */
    static char values[POINTS][16];
    for (int i = 0; i < POINTS; i++) {
        snprintf(values[i], sizeof values[i], "v%02d", i);
        many[i].value[0] = values[i];
        many[i].state = CLI_SWEEP_DONE;
        many[i].figure = i;
    }
    one.count = POINTS;
    one.folds = 0;
    one.seeds = 2;
    assert_int_equal(cli_sweep_table(&orders, &one, order, POINTS, &text), TR_OK);
    const char *means = strstr(text, "\nmeans over seeds");
    assert_non_null(means);
    assert_non_null(strstr(means, "\nv39 "));
    assert_null(strstr(means, "\nv40 "));
    tr_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_comes_first),
        cmocka_unit_test(seeds_have_means),
        cmocka_unit_test(points_have_lines),
        cmocka_unit_test(columns_are_those_that_are_needed),
        cmocka_unit_test(without_memory_nothing_stays),
    };
    return cmocka_run_group_tests_name("cli.sweep_order", tests, NULL, NULL);
}
