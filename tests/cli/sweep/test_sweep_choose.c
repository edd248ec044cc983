/* What a sweep takes from the model file: the figure that judges, and the seed of the rows that it is
 * computed on; and values of fields that have commas themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/sweep/sweep.h"
#include "refuse.h"
#include "scratch.h"

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct tr_string_list list_of(const char *const *item)
{
    struct tr_string_list list = {0, (char **)(uintptr_t)item};
    while (item[list.count]) list.count++;
    return list;
}

/* The orders for a model file of this text. */
static struct cli_sweep_orders chosen(const char *model, const char *const *set, const char *by,
                                      int64_t seeds, int64_t seed)
{
    static struct tr_string_list list;
    list = list_of(set);
    scratch_write_text("m.yaml", model);
    struct cli_sweep_orders orders = {
        .model = scratch_in("m.yaml"), .set = &list, .seeds = seeds, .seed = seed, .split_seed = 77};
    const int64_t live = tr_alloc_live();
    if (cli_sweep_choose(by, &orders) != TR_OK) fail_msg("%s", tr_error_message());
    assert_int_equal(tr_alloc_live(), live);
    return orders;
}

static void the_figure_is_the_monitor(void **state)
{
    static const struct {
        const char *model, *set, *by, *figure;
    } cases[] = {
        {"name: a\n", NULL, NULL, "loss"},
        {"name: a\n", NULL, "accuracy", "accuracy"},
        {"train: {monitor: macro_f1}\n", NULL, NULL, "f1"},
        {"train: {monitor: macro_f1}\n", NULL, "loss", "loss"},
        {"train: {monitor: f1}\n", "train.monitor=recall", NULL, "recall"},
        {"train: {monitor: f1}\n", "train.monitors=recall", NULL, "f1"},
        {"train: {monitor: f1}\n", "train-monitor=recall", NULL, "f1"},
        {"train: {monitor: f1}\n", "data.monitor=recall", NULL, "f1"},
        {"train: {monitor: [f1]}\n", NULL, NULL, "loss"}, /* which is refused later */
        {"train: [f1]\n", "train.monitor=rmse", NULL, "rmse"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_sweep_orders orders = chosen(cases[i].model, SET(cases[i].set), cases[i].by, 1, -1);
        if (strcmp(orders.by, cases[i].figure) != 0) fail_msg("case %zu: %s", i, orders.by);
        assert_int_equal(orders.split_seed, -1);
    }
    struct tr_string_list none = {0};
    struct cli_sweep_orders orders = {.model = scratch_in("m.yaml"), .set = &none, .seeds = 1, .seed = -1};
    assert_int_equal(cli_sweep_choose("f2", &orders), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "--by"));
    orders.model = scratch_in("absent.yaml");
    assert_int_equal(cli_sweep_choose("f1", &orders), TR_ENOTFOUND);
}

/* Of several seeds all rows are split by one: that of the file, unless the sweep counts its own. */
static void rows_are_split_by_one_seed(void **state)
{
    static const struct {
        const char *model, *set[2];
        int64_t seeds, seed, split;
    } cases[] = {
        {"data: {validation_split: 0.25}\n", {NULL}, 1, -1, -1},
        {"data: {validation_split: 0.25}\n", {"seed=3,4"}, 1, -1, 1},
        {"seed: 5\ndata: {validation_split: 0.25}\n", {"seed=3,4"}, 1, -1, 5},
        {"seed: 5\ndata: {validation_split: 0.25}\n", {"seed=3,4"}, 1, 0, 0},
        {"seed: 5\ndata: {validation_split: 0.25}\n", {NULL}, 2, -1, 1},
        {"seed: 5\ndata: {validation_split: 0.25}\n", {NULL}, 2, 9, 9},
        {"seed: 5\ndata: {validation_split: 0.25}\n", {"seeds=3"}, 1, -1, -1},
        {"seed: x\ndata: {validation_split: 0.25}\n", {"seed=3,4"}, 1, -1, 1},
        {"seed: [5]\ndata: {validation_split: 0.25}\n", {"seed=3,4"}, 1, -1, 1},
        {"seed: 5\ndata: {validation_split: 0}\n", {"seed=3,4"}, 1, -1, -1},
        {"seed: 5\ndata: {folds: 2}\n", {"seed=3,4"}, 1, -1, 5},
        {"seed: 5\ndata: {folds: 2, split_seed: 8}\n", {"seed=3,4"}, 1, -1, -1},
        {"seed: 5\ndata: {folds: 2}\n", {"seed=3,4", "data.split_seed=8"}, 1, -1, -1},
        {"seed: 5\ndata: {folds: 2}\n", {"seed=3,4", "data.folds=0"}, 1, -1, -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_sweep_orders orders = chosen(cases[i].model, SET(cases[i].set[0], cases[i].set[1]), NULL,
                                                cases[i].seeds, cases[i].seed);
        if (orders.split_seed != cases[i].split) fail_msg("case %zu: %d", i, (int)orders.split_seed);
    }
}

static void without_memory_nothing_is_chosen(void **state)
{
    (void)state;
    struct tr_string_list none = {0};
    scratch_write_text("m.yaml", "train: {monitor: f1}\n");
    for (int64_t at = 0, done = 0; !done; at++) {
        struct cli_sweep_orders orders = {
            .model = scratch_in("m.yaml"), .set = &none, .seeds = 1, .seed = -1};
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = cli_sweep_choose(NULL, &orders);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* The settings, those of all points and the values of the axes: "fixed; path=value|value". */
static void expect_axes(const char *const *set, const char *expected)
{
    struct tr_string_list list = list_of(set);
    struct cli_sweep_plan plan = {0};
    char said[1000] = "";
    if (cli_sweep_axes(&list, true, &plan) != TR_OK) fail_msg("%s", tr_error_message());
    for (int32_t i = 0; i < plan.fixed.count; i++)
        snprintf(said + strlen(said), sizeof said - strlen(said), "%s; ", plan.fixed.item[i]);
    for (int a = 0; a < plan.axes; a++) {
        const struct cli_sweep_axis *axis = &plan.axis[a];
        snprintf(said + strlen(said), sizeof said - strlen(said), "%s=", axis->path);
        for (int i = 0; i < axis->count; i++)
            snprintf(said + strlen(said), sizeof said - strlen(said), "%s%s", i ? "|" : "", axis->value[i]);
        if (axis->count == 0)
            snprintf(said + strlen(said), sizeof said - strlen(said), "%g to %g%s", axis->least, axis->most,
                     axis->whole ? ", whole" : "");
        strcat(said, "; ");
    }
    cli_sweep_plan_release(&plan);
    if (strcmp(said, expected) != 0) fail_msg("%s, not %s", said, expected);
}

static void commas_part_values(void **state)
{
    (void)state;
    expect_axes(SET("a=1,2", "b=3", "c=x"), "b=3; c=x; a=1|2; ");
    expect_axes(SET("a=[1, 2]", "b={x: [1, 2], y: 3}"), "a=[1, 2]; b={x: [1, 2], y: 3}; ");
    expect_axes(SET("a=[[1, 2], 3],4"), "a=[[1, 2], 3]|4; ");
    expect_axes(SET("a=f(1, 2),3"), "a=f(1, 2)|3; ");
    expect_axes(SET("a=\"1,'2\",'3,\"4'"), "a=\"1,'2\"|'3,\"4'; ");
    expect_axes(SET("a=],1"), "a=]|1; ");
    expect_axes(SET("a=\"\",1"), "a=\"\"|1; ");
    expect_axes(SET("=1,2", "1,2", "a="), "=1,2; 1,2; a=; ");
    /* Ranges. */
    expect_axes(SET("a=1..3"), "a=1 to 3, whole; ");
    expect_axes(SET("a=1..3.5", "b=1e-3..2"), "a=1 to 3.5; b=0.001 to 2; ");
    expect_axes(SET("a=-2..-1"), "a=-2 to -1, whole; ");
    expect_axes(SET("a=..3", "b=1..", "c=x..y", "d=../run"), "a=..3; b=1..; c=x..y; d=../run; ");
    expect_axes(SET("a=000000000000000000000000000000000000000000000000000000000000001..2"),
                "a=1 to 2, whole; "); /* of 63 bytes */
    expect_axes(SET("a=0000000000000000000000000000000000000000000000000000000000000001..2"),
                "a=0000000000000000000000000000000000000000000000000000000000000001..2; ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_figure_is_the_monitor),
        cmocka_unit_test(rows_are_split_by_one_seed),
        cmocka_unit_test(without_memory_nothing_is_chosen),
        cmocka_unit_test(commas_part_values),
    };
    return cmocka_run_group_tests_name("cli.sweep_choose", tests, scratch_place_make, scratch_place_remove);
}
