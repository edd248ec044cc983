/* How columns were scaled, as a text that goes with a model: what was written is read again to the bit, and
 * what is not whole is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stdio.h>
#include <math.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "data/tables/scaling.h"

enum { COLUMNS = 3, CLASSES = 7 };

static const double mean[COLUMNS] = {0, -1.0 / 3, 1e300}, deviation[COLUMNS] = {1, 0.1, 1e-300},
                    fill[COLUMNS] = {0, 2.0 / 7, -5};

/* The text of it, with what stands for gaps or without; free with tr_free(). */
static char *written(bool fills)
{
    struct tr_scaling scaling;
    char *text;
    assert_int_equal(tr_scaling_create(COLUMNS, &scaling), TR_OK);
    memcpy(scaling.mean, mean, sizeof mean);
    memcpy(scaling.deviation, deviation, sizeof deviation);
    if (fills) {
        assert_int_equal(tr_scaling_add_fill(&scaling), TR_OK);
        memcpy(scaling.fill, fill, sizeof fill);
    }
    assert_int_equal(tr_scaling_write(&scaling, CLASSES, &text), TR_OK);
    tr_scaling_release(&scaling);
    return text;
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    for (int fills = 0; fills < 2; fills++) {
        struct tr_scaling scaling;
        int32_t classes;
        char *text = written(fills);
        if (tr_scaling_read(text, &scaling, &classes) != TR_OK) fail_msg("%s", tr_error_message());
        assert_int_equal(classes, CLASSES);
        assert_int_equal(scaling.count, COLUMNS);
        assert_memory_equal(scaling.mean, mean, sizeof mean);
        assert_memory_equal(scaling.deviation, deviation, sizeof deviation);
        assert_int_equal(scaling.fill != NULL, fills);
        if (fills) assert_memory_equal(scaling.fill, fill, sizeof fill);
        tr_scaling_release(&scaling);
        tr_free(text);
    }
}

static void expect_refusal(char *text)
{
    struct tr_scaling scaling;
    int32_t classes;
    assert_non_null(text);
    tr_status status = tr_scaling_read(text, &scaling, &classes);
    if (status != TR_EFORMAT) fail_msg("%s: \"%s\"", tr_status_name(status), text);
    tr_free(text);
}

/* The first line of numbers is line 2. */
static void lines_are_named(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"trireme scaling 1, 0 classes, 2 lines\n0 1 3\n0 1\n",
         "scaling.txt:3: has no number to fill in, or more than one; take the file that was saved with the "
         "model"},
        {"trireme scaling 1, 0 classes, 2 lines\n0 1\n0 0\n",
         "scaling.txt:3: is not a mean and a deviation above 0; take the file that was saved with the model"},
    };
    static const char *const lines[] = {"x 1", "1 x", "1", "", "1 -1", "1 0", "1 inf", "nan 1"};
    struct tr_scaling scaling;
    int32_t classes;
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "trireme scaling 1, 0 classes, 2 lines\n0 1\n%s\n", lines[i]);
        assert_int_equal(tr_scaling_read(text, &scaling, &classes), TR_EFORMAT);
        assert_string_equal(tr_error_message(), cases[1].says);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tr_scaling_read(cases[i].text, &scaling, &classes), TR_EFORMAT);
        assert_string_equal(tr_error_message(), cases[i].says);
    }
}

/* A line too few, one too many, and a deviation that nothing can be divided by. */
static void what_is_not_whole_is_refused(void **state)
{
    (void)state;
    for (int fills = 0; fills < 2; fills++) {
        char *text = written(fills), *last = text + strlen(text) - 1;
        while (last[-1] != '\n') last--;
        expect_refusal(tr_format("%.*s", (int)(last - text), text));
        expect_refusal(tr_format("%s%s", text, last));
        expect_refusal(tr_format("%s\n", text));
        expect_refusal(tr_format("%.*s1 0%s\n", (int)(last - text), text, fills ? " 1" : ""));
        tr_free(text);
    }
}

/* ---- measuring and applying ---- */

enum { ROWS = 4 };

static const float rows[ROWS][COLUMNS] = {{1, 5, -2}, {3, 5, NAN}, {5, 5, 4}, {7, 5, NAN}};

static tr_status row_of(void *user, int64_t index, float *to)
{
    if (index == *(const int64_t *)user) return tr_fail(TR_EPEER, "row %d", (int)index);
    memcpy(to, rows[index], sizeof rows[index]);
    return TR_OK;
}

static void what_is_there_gives_the_mean(void **state)
{
    (void)state;
    int64_t fails = -1;
    struct tr_scaling scaling;
    assert_int_equal(tr_scaling_create(COLUMNS, &scaling), TR_OK);
    assert_int_equal(tr_scaling_measure_present(&scaling, ROWS, row_of, &fails, "it"), TR_OK);
    assert_true(scaling.fill[0] == 4 && scaling.fill[1] == 5 && scaling.fill[2] == 1);
    assert_true(tr_scaling_is_plain(&scaling));
    tr_scaling_release(&scaling);
    fails = ROWS - 1;
    assert_int_equal(tr_scaling_create(COLUMNS, &scaling), TR_OK);
    assert_int_equal(tr_scaling_measure_present(&scaling, ROWS, row_of, &fails, "it"), TR_EPEER);
    tr_scaling_release(&scaling);
    fails = -1;
    assert_int_equal(tr_scaling_create(COLUMNS, &scaling), TR_OK);
    assert_int_equal(tr_scaling_measure_present(&scaling, 0, row_of, &fails, "it"), TR_EFORMAT);
    assert_string_equal(tr_error_message(),
                        "it: feature 0 (counted from 0, without labels) has no value in any "
                        "row, so no mean; leave its column out");
    tr_scaling_release(&scaling);
}

static void columns_are_measured_and_scaled(void **state)
{
    (void)state;
    int64_t fails = -1;
    struct tr_scaling scaling;
    assert_int_equal(tr_scaling_create(2, &scaling), TR_OK);
    float from[ROWS][2], to[ROWS][2];
    for (int i = 0; i < ROWS; i++) memcpy(from[i], rows[i], sizeof from[i]);
    tr_scaling_apply(&scaling, ROWS, from[0], to[0]);
    assert_memory_equal(to, from, sizeof to);
    tr_scaling_release(&scaling);
    assert_int_equal(tr_scaling_create(COLUMNS, &scaling), TR_OK);
    assert_int_equal(tr_scaling_measure(&scaling, 1, row_of, &fails), TR_OK);
    assert_true(scaling.mean[0] == 1 && scaling.mean[2] == -2 && scaling.deviation[0] == 1);
    assert_int_equal(tr_scaling_measure(&scaling, ROWS, row_of, &fails), TR_OK);
    assert_true(scaling.mean[0] == 4 && scaling.mean[1] == 5);
    assert_true(scaling.deviation[0] * scaling.deviation[0] > 5 - 1e-12 &&
                scaling.deviation[0] * scaling.deviation[0] < 5 + 1e-12); /* 9, 1, 1 and 9 */
    assert_true(scaling.deviation[1] == 1);                               /* of a constant */
    assert_false(tr_scaling_is_plain(&scaling));
    scaling.mean[2] = 10;
    scaling.deviation[0] = 2;
    scaling.deviation[2] = 4;
    const float wide[2][COLUMNS] = {{1, 2, 3}, {-4, 5, 18}};
    const float expected[2][COLUMNS] = {{-1.5F, -3, -1.75F}, {-4, 0, 2}};
    float scaled[2][COLUMNS];
    tr_scaling_apply(&scaling, 2, wide[0], scaled[0]);
    assert_memory_equal(scaled, expected, sizeof scaled);
    fails = 0;
    assert_int_equal(tr_scaling_measure(&scaling, ROWS, row_of, &fails), TR_EPEER);
    tr_scaling_release(&scaling);
}

static void plain_is_what_changes_nothing(void **state)
{
    (void)state;
    struct tr_scaling scaling;
    assert_int_equal(tr_scaling_create(COLUMNS, &scaling), TR_OK);
    assert_true(tr_scaling_is_plain(&scaling));
    for (int i = 0; i < COLUMNS; i++) {
        scaling.mean[i] = 1;
        assert_false(tr_scaling_is_plain(&scaling));
        scaling.mean[i] = 0;
        scaling.deviation[i] = 2;
        assert_false(tr_scaling_is_plain(&scaling));
        scaling.deviation[i] = 1;
    }
    assert_true(tr_scaling_is_plain(&scaling));
    tr_scaling_release(&scaling);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(what_is_not_whole_is_refused),
        cmocka_unit_test(lines_are_named),
        cmocka_unit_test(what_is_there_gives_the_mean),
        cmocka_unit_test(columns_are_measured_and_scaled),
        cmocka_unit_test(plain_is_what_changes_nothing),
    };
    return cmocka_run_group_tests_name("data.scaling", tests, NULL, NULL);
}
