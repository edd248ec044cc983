/* Single examples by the columns of a job's table: names become numbers, and what is missing is replaced as
 * in training.
 */
#include "job/feed/columns.h"

#include "base/alloc.h"
#include "refuse.h"
#include "scratch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* A job on the table with these options, whose training data are open. */
static struct tr_job *open_job(const char *options)
{
    char text[512];
    const struct tr_job_settings settings = {.set_count = 0};
    const int length = snprintf(text, sizeof text,
                                "name: houses\ndata: {train: {csv: {path: t.csv, label: value, %s}}}\n"
                                "layers: [dense: %d]\nloss: mean_squared_error\n"
                                "optimizer: {rule: sgd, rate: 1}\ntrain: {batch: 2, steps: 1}\n",
                                options, strstr(options, "[price, ") ? 2 : 1);
    const struct tr_job_text model = {text, (size_t)length, "m.yaml", scratch_place};
    struct tr_job *job;
    if (tr_job_open_text(&model, &settings, &job) != TR_OK) fail_msg("%s", tr_error_message());
    return job;
}

static struct tr_job_columns read(const struct tr_job *job)
{
    struct tr_job_columns columns;
    if (tr_job_columns_read(job, &columns) != TR_OK) fail_msg("%s", tr_error_message());
    return columns;
}

/* A column of numbers, one of names, one of numbers again. */
static void names_become_numbers(void **state)
{
    (void)state;
    for (int stops = 0; stops < 2; stops++) {
        struct tr_job *job = open_job(stops ? "categories: [kind], label_columns: [price], unknown: stop"
                                            : "categories: [kind], label_columns: [price]");
        struct tr_job_columns columns = read(job);
        float value = 7;
        assert_int_equal(columns.count, 3);
        assert_null(columns.fill);
        assert_int_equal(columns.labels.count, 1);
        assert_string_equal(columns.labels.item[0], "price");
        assert_int_equal(columns.categories.columns, 3);
        assert_int_equal(tr_job_columns_find(&columns, 1, "house", &value), TR_OK);
        assert_true(value == 1);
        assert_int_equal(tr_job_columns_find(&columns, 1, "flat", &value), TR_OK);
        assert_true(value == 0);
        assert_int_equal(tr_job_columns_find(&columns, 1, "huose", &value), stops ? TR_EINVAL : TR_OK);
        assert_true(value == -1);
        if (stops) {
            assert_string_equal(tr_error_message(),
                                "value 2: \"huose\" is none of the 2 names of the training "
                                "data; did you mean \"house\"?");
            assert_int_equal(tr_job_columns_find(&columns, 1, "x", &value), TR_EINVAL);
            assert_string_equal(tr_error_message(),
                                "value 2: \"x\" is none of the 2 names of the training data");
        }
        tr_job_columns_release(&columns);
        assert_true(columns.count == 0 && !columns.fill && columns.labels.count == 0);
        tr_job_destroy(&job);
    }
}

/* Columns may be named by numbers, which are no names for people. */
static void labels_have_names(void **state)
{
    static const struct {
        const char *options;
        int count;
        const char *name[2];
    } cases[] = {
        {"categories: [kind], label_columns: [price, rooms]", 2, {"price", "rooms"}},
        {"categories: [kind], label_columns: ['3']", 0, {NULL}},
        {"categories: [kind], label_columns: [price, '2']", 0, {NULL}},
        {"categories: [kind]", 0, {NULL}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_job *job = open_job(cases[i].options);
        struct tr_job_columns columns = read(job);
        assert_int_equal(columns.labels.count, cases[i].count);
        for (int k = 0; k < cases[i].count; k++)
            assert_string_equal(columns.labels.item[k], cases[i].name[k]);
        tr_job_columns_release(&columns);
        tr_job_destroy(&job);
    }
}

/* By the mean of the training data, or a constant; names have none. */
static void missing_numbers_are_replaced(void **state)
{
    static const struct {
        const char *missing;
        float size, rooms;
    } cases[] = {
        {"missing: mean", 20, 2}, {"missing: constant, missing_value: 5", 5, 5}, {"missing: constant", 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char options[128];
        snprintf(options, sizeof options, "categories: [kind], label_columns: [price], %s", cases[i].missing);
        struct tr_job *job = open_job(options);
        struct tr_job_columns columns = read(job);
        float rows[] = {NAN, 1, NAN, 3, NAN, 4};
        assert_non_null(columns.fill);
        assert_true(columns.fill[0] == cases[i].size && isnan(columns.fill[1]) &&
                    columns.fill[2] == cases[i].rooms);
        assert_int_equal(tr_job_columns_fill(job, &columns, 2, rows), TR_OK);
        assert_true(rows[0] == cases[i].size && rows[1] == 1 && rows[2] == cases[i].rooms);
        assert_true(rows[3] == 3 && isnan(rows[4]) && rows[5] == 4);
        tr_job_columns_release(&columns);
        tr_job_destroy(&job);
    }
    /* Where none were missing in training there is nothing to take. */
    struct tr_job *job = open_job("categories: [kind], label_columns: [price]");
    struct tr_job_columns columns = read(job);
    float rows[] = {1, 1, 1, 2, 2, NAN};
    assert_int_equal(tr_job_columns_fill(job, &columns, 1, rows), TR_OK);
    assert_int_equal(tr_job_columns_fill(job, &columns, 2, rows), TR_EINVAL);
    assert_string_equal(
        tr_error_message(),
        "example 2: value 3 of 3 is missing, and has no replacement: the network of \"houses\" was "
        "not trained on a table with missing: mean or constant; give a number");
    tr_job_columns_release(&columns);
    tr_job_destroy(&job);
}

static void missing_memory_is_told(void **state)
{
    struct tr_job *job =
        open_job("categories: [kind], label_columns: [price, rooms], missing: mean, unknown: stop");
    bool done = false;
    (void)state;
    for (int64_t at = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_job_columns columns;
        refuse_begin(at);
        const tr_status status = tr_job_columns_read(job, &columns);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_job_columns_release(&columns);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_job_destroy(&job);
}

static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_write_text("t.csv", "size,kind,rooms,price\n10,house,1,100\n30,flat,3,200\n20,flat,2,150\n");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_become_numbers),
        cmocka_unit_test(labels_have_names),
        cmocka_unit_test(missing_numbers_are_replaced),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("job.columns", tests, set_up, scratch_place_remove);
}
