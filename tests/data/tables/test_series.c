/* Windows over time series: what each has, where series and parts end, what is missing, and what is refused.
 */
#include "base/alloc.h"
#include "base/text/log.h"
#include "data/order/split.h"
#include "data/source.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static tr_source *open_with(const char *description, const char *state)
{
    tr_source *source;
    if (tr_source_open(description, test_directory(), state, &source) != TR_OK)
        fail_msg("%s", tr_error_message());
    return source;
}

/* Two series: rows of "a" are 0 to 9, of "b" 100 to 105; the second column is the tenfold of the first. */
static void write_series(void)
{
    char text[1024], *at = text + sprintf(text, "day,who,x,y,note\n");
    for (int i = 0; i < 16; i++) {
        int x = i < 10 ? i : 90 + i;
        at += sprintf(at, "2024-01-%02d,%s,%d,%d,word\n", i < 10 ? i + 1 : i - 9, i < 10 ? "a" : "b", x,
                      10 * x);
    }
    write_file("series", text, (size_t)(at - text));
}

#define HEAD "{series: {path: series, series: who, time: day, skip_columns: note, "

/* Windows of `window` rows from first[k] on, and `horizon` rows ahead of their ends the targets. */
static void expect_windows(const char *description, int window, int horizon, const int *first, int count)
{
    tr_source *source = open_with(description, NULL);
    const struct tr_source_info *info = tr_source_info(source);
    float row[64], label[8];
    int64_t length;
    assert_int_equal(info->count, count);
    assert_int_equal(info->floats, 2 * window);
    assert_int_equal(info->steps, window);
    assert_int_equal(info->labels, TR_LABEL_VALUES);
    for (int k = 0; k < count; k++) {
        assert_int_equal(tr_source_read(source, k, row, 64, &length, label), TR_OK);
        assert_int_equal(length, 2 * window);
        for (int t = 0; t < window; t++)
            if (row[2 * t] != (float)(first[k] + t) || row[2 * t + 1] != (float)(10 * (first[k] + t)))
                fail_msg("window %d, row %d: %g and %g", k, t, (double)row[2 * t], (double)row[2 * t + 1]);
        assert_true(label[0] == (float)(first[k] + window - 1 + horizon));
    }
    tr_source_close(&source);
}

static void test_windows(void **unused)
{
    (void)unused;
    write_series();
    expect_windows(HEAD "window: 3}}", 3, 1, (const int[]){0, 1, 2, 3, 4, 5, 6, 100, 101, 102}, 10);
    expect_windows(HEAD "window: 3, horizon: 3, stride: 2}}", 3, 3, (const int[]){0, 2, 4, 100}, 4);
    expect_windows(HEAD "window: 5, horizon: 1}}", 5, 1, (const int[]){0, 1, 2, 3, 4, 100}, 6);
    /* Of 10 rows the first 6, of 6 the first 4, and what is behind. */
    expect_windows(HEAD "window: 2, part: [0, 0.6]}}", 2, 1, (const int[]){0, 1, 2, 3, 100, 101}, 6);
    expect_windows(HEAD "window: 2, part: [0.6, 1]}}", 2, 1, (const int[]){6, 7}, 2);
    expect_windows(HEAD "window: 1, part: [0.8, 1]}}", 1, 1, (const int[]){8}, 1);
}

/* No row of one part is in a window or a label of the other. */
static void test_parts_share_nothing(void **unused)
{
    (void)unused;
    write_series();
    bool seen[2][200] = {{false}};
    for (int part = 0; part < 2; part++) {
        tr_source *source = open_with(part ? HEAD "window: 2, horizon: 2, part: [0.5, 1]}}"
                                           : HEAD "window: 2, horizon: 2, part: [0, 0.5]}}",
                                      NULL);
        for (int64_t k = 0; k < tr_source_info(source)->count; k++) {
            float row[4], label[2];
            assert_int_equal(tr_source_read(source, k, row, 4, NULL, label), TR_OK);
            seen[part][(int)row[0]] = seen[part][(int)row[2]] = seen[part][(int)label[0]] = true;
        }
        tr_source_close(&source);
    }
    for (int i = 0; i < 200; i++) assert_false(seen[0][i] && seen[1][i]);
}

static void test_targets(void **unused)
{
    (void)unused;
    write_series();
    float row[8], label[8];
    tr_source *source =
        open_with(HEAD "window: 2, horizon: 3, inputs: [y], targets: [x, y], every_step: true}}", NULL);
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->floats, 2);
    assert_int_equal(info->values, 6);
    assert_int_equal(tr_source_read(source, 1, row, 8, NULL, label), TR_OK);
    assert_true(row[0] == 10 && row[1] == 20);
    for (int t = 0; t < 3; t++)
        assert_true(label[2 * t] == (float)(3 + t) && label[2 * t + 1] == (float)(30 + 10 * t));
    tr_source_close(&source);
    source = open_with(HEAD "window: 2, inputs: [y], targets: [3]}}", NULL);
    assert_int_equal(tr_source_read(source, 0, row, 8, NULL, label), TR_OK);
    assert_true(row[1] == 10 && label[0] == 20);
    tr_source_close(&source);
}

/* Scaled by the rows of the part alone; another part has the same scaling. Targets stay. */
static void test_scaling(void **unused)
{
    (void)unused;
    float row[2], label[1];
    const char *name;
    char *state;
    write_text("line", "1\n3\n5\n7\n100\n200\n");
    tr_source *source =
        open_with("{series: {path: line, window: 2, standardize: true, part: [0, 0.7]}}", NULL);
    assert_int_equal(tr_source_info(source)->count, 2);
    assert_int_equal(tr_source_read(source, 1, row, 2, NULL, label), TR_OK);
    const double mean = 4, deviation = sqrt(5);
    assert_true(row[0] == (float)((3 - mean) / deviation) && row[1] == (float)((5 - mean) / deviation));
    assert_true(label[0] == 7);
    assert_int_equal(tr_source_state(source, &name, &state), TR_OK);
    assert_string_equal(name, "scaling.txt");
    tr_source_close(&source);
    source = open_with("{series: {path: line, window: 2}}", state);
    assert_int_equal(tr_source_read(source, 3, row, 2, NULL, label), TR_OK);
    assert_true(row[1] == (float)((100 - mean) / deviation) && label[0] == 200);
    tr_source_close(&source);
    assert_int_equal(tr_source_open("{series: {path: line, window: 3}}", test_directory(), state, &source),
                     TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "windows of 3 numbers, the model was trained with 2"));
    tr_free(state);
}

static char last_line[256];

static void keep_line(void *user, enum tr_log_level level, const char *message)
{
    (void)user;
    snprintf(last_line, sizeof last_line, "%s%s",
             level == TR_LOG_INFO ? "" : "not for information: ", message);
}

static void test_gaps(void **unused)
{
    (void)unused;
    float row[2], label[1];
    write_text("gaps", "x,y\n1,1\nNA,2\n3,3\n5,NA\n7,5\n");
    expect_refusal("{series: {path: gaps, window: 2, inputs: x, targets: y}}", TR_EFORMAT,
                   "gaps:3:1: column \"x\": \"NA\"");
    tr_log_set_sink(keep_line, NULL, TR_LOG_INFO);
    tr_source *source =
        open_with("{series: {path: gaps, window: 2, inputs: x, targets: y, missing: mean}}", NULL);
    tr_log_set_sink(NULL, NULL, TR_LOG_WARNING);
    assert_non_null(strstr(last_line, "gaps: left out 1 of 3 windows, which miss numbers"));
    assert_int_equal(tr_source_info(source)->count, 2); /* one has no target */
    assert_int_equal(tr_source_info(source)->skipped, 1);
    assert_int_equal(tr_source_read(source, 0, row, 2, NULL, label), TR_OK);
    assert_true(row[0] == 1 && row[1] == 4 && label[0] == 3);
    assert_int_equal(tr_source_read(source, 1, row, 2, NULL, label), TR_OK);
    assert_true(row[0] == 3 && row[1] == 5 && label[0] == 5);
    tr_source_close(&source);
    source = open_with("{series: {path: gaps, window: 1, inputs: x, targets: y, missing: skip}}", NULL);
    assert_int_equal(tr_source_info(source)->count, 2); /* from 1 to 2, and from 5 to 5 */
    tr_source_close(&source);
    source = open_with(
        "{series: {path: gaps, window: 1, inputs: x, missing: constant, missing_value: -1, targets: x}}",
        NULL);
    assert_int_equal(tr_source_info(source)->count, 3);
    assert_int_equal(tr_source_read(source, 0, row, 2, NULL, label), TR_OK);
    assert_true(row[0] == -1 && label[0] == 3);
    tr_source_close(&source);
}

/* Of two inputs, the first and the last number of the file. */
static void test_gaps_of_two_inputs(void **unused)
{
    (void)unused;
    float row[4], label[1];
    write_text("gaps", "NA,1,7\n2,2,8\n4,NA,9\n0,0,10\n");
    tr_source *source = open_with(
        "{series: {path: gaps, window: 3, inputs: [0, 1], targets: 2, missing: constant, missing_value: 5, "
        "part: [0, 1], header: no, stride: 2}}",
        NULL);
    float rows[6];
    assert_int_equal(tr_source_read(source, 0, rows, 6, NULL, label), TR_OK);
    assert_true(rows[0] == 5 && rows[1] == 1 && rows[4] == 4 && rows[5] == 5 && label[0] == 10);
    tr_source_close(&source);
    source = open_with(
        "{series: {path: gaps, window: 2, inputs: [0, 1], targets: 2, missing: mean, header: no}}", NULL);
    assert_int_equal(tr_source_read(source, 1, row, 4, NULL, label), TR_OK);
    assert_true(row[0] == 2 && row[2] == 4 && row[3] == 1); /* the mean of 1, 2 and 0 */
    assert_int_equal(tr_source_read(source, 0, row, 4, NULL, label), TR_OK);
    assert_true(row[0] == 2 && row[1] == 1); /* that of 2, 4 and 0 */
    tr_source_close(&source);
    write_text("gaps", "1,NA\n2,NA\n3,NA\n");
    expect_refusal("{series: {path: gaps, window: 1, inputs: 0, targets: 1, missing: skip, header: no}}",
                   TR_EFORMAT, "gaps: every window misses a number; set missing: mean or constant");
    /* The last number of several targets. */
    write_text("gaps", "1,1\n2,2\n3,NA\n4,4\n5,5\n");
    source = open_with("{series: {path: gaps, window: 1, horizon: 2, every_step: true, inputs: 0, targets: "
                       "[0, 1], missing: skip, header: no}}",
                       NULL);
    assert_int_equal(tr_source_info(source)->count, 1);
    assert_int_equal(tr_source_info(source)->skipped, 2);
    assert_int_equal(tr_source_read(source, 0, row, 1, NULL, NULL), TR_OK);
    assert_true(row[0] == 3);
    tr_source_close(&source);
    write_text("gaps", "1,NA\n2,NA\n3,NA\n");
    tr_source *other;
    assert_int_equal(tr_source_open("{series: {path: gaps, window: 1, inputs: 0, missing: mean, header: no}}",
                                    test_directory(), "trireme scaling 1, 0 classes, 1 lines\n0 1\n", &other),
                     TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "gaps: missing: mean takes the means of the training data"));
}

/* Times that are texts ascend by their bytes; a text comes before what begins with it. */
static void test_times(void **unused)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"a,0\nab,1\nb,2\n", NULL},
        {"a,0\na,1\nb,2\n", "time:2:1: time \"a\" does not come after \"a\" of the row before"},
        {"a,0\nab,1\na,2\n", "time:3:1: time \"a\" does not come after \"ab\" of the row before"},
        {"9,0\n10,1\n11,2\n", NULL},
        {"9,0\n10,1\n10,2\n", "time:3:1: time \"10\" does not come after \"10\" of the row before"},
        {"b,0\na234567890123456789012345678901234567890x,1\nc,2\n",
         "time:2:1: time \"a234567890123456789012345678901234567890\" does not come after \"b\""},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char description[] = "{series: {path: time, time: 0, window: 1, header: no}}";
        write_text("time", cases[i].text);
        if (cases[i].says)
            expect_refusal(description, TR_EFORMAT, cases[i].says);
        else
            tr_source_close(&(tr_source *){open_with(description, NULL)});
    }
}

/* More rows, and more series, than there is room for at first. */
static void test_many_rows(void **unused)
{
    enum { ROWS = 5000 };
    static char text[ROWS * 16];
    char *at = text;
    float row[2], label[1];
    (void)unused;
    for (int i = 0; i < ROWS; i++) at += sprintf(at, "s%d,%d\n", i / 50, i);
    write_file("many", text, (size_t)(at - text));
    tr_source *source = open_with("{series: {path: many, series: 0, window: 2, header: no}}", NULL);
    assert_int_equal(tr_source_info(source)->count, ROWS / 50 * 48);
    for (int64_t k = 0; k < ROWS / 50 * 48; k++) {
        const float first = (float)(k / 48 * 50 + k % 48);
        assert_int_equal(tr_source_read(source, k, row, 2, NULL, label), TR_OK);
        assert_true(row[0] == first && row[1] == first + 1 && label[0] == first + 2);
    }
    tr_source_close(&source);
}

static void test_what_is_refused(void **unused)
{
    (void)unused;
    write_series();
    expect_refusal(HEAD "window: 10}}", TR_EFORMAT,
                   "a window of 10 rows and a horizon of 1 fit into no series; the longest has 10 rows");
    expect_refusal(HEAD "window: 10, part: [0.25, 0.75]}}", TR_EFORMAT,
                   "fit into no series; the longest has 5 rows in the part [0.25, 0.75]");
    expect_refusal(HEAD "window: 2, targets: [z]}}", TR_EINVAL, "target column \"z\"");
    expect_refusal(HEAD "window: 2, inputs: [x, x]}}", TR_EINVAL,
                   "column \"x\" is named twice among the inputs");
    expect_refusal(HEAD "window: 2, inputs: [who]}}", TR_EINVAL, "column \"who\" is among the inputs");
    expect_refusal(HEAD "window: 2, part: [0.5, 0.5]}}", TR_EINVAL, "part: two numbers are wanted");
    expect_refusal(HEAD "window: 2, part: [1]}}", TR_EINVAL, "part: two numbers are wanted");
    expect_refusal("{series: {path: series, series: who, window: 2, skip_columns: day}}", TR_EFORMAT,
                   "column \"note\": \"word\" is not a number");
    write_text("back", "1,a,0\n3,a,1\n2,b,2\n10,b,3\n9,b,4\n");
    expect_refusal("{series: {path: back, series: 1, time: 0, window: 1}}", TR_EFORMAT,
                   "back:5:1: time \"9\" does not come after \"10\" of the row before");
    write_text("back", "10,a,0\n9x,a,1\n11,a,2\n"); /* not all are numbers: texts then */
    expect_refusal("{series: {path: back, series: 1, time: 0, window: 1}}", TR_EFORMAT,
                   "back:3:1: time \"11\" does not come after \"9x\" of the row before");
    write_text("nobody", "1,,0\n3,a,1\n");
    expect_refusal("{series: {path: nobody, series: 1, window: 1}}", TR_EFORMAT,
                   "the name of the series is missing");
    /* A random part of overlapping windows is not apart from the rest; of windows apart from each other it
     * is. */
    tr_source *first = NULL;
    const struct tr_split split = {.seed = 1, .share = 0.5};
    assert_int_equal(tr_split_first(open_with(HEAD "window: 3}}", NULL), &split, &first), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "with part: [0.8, 1] there"));
    assert_int_equal(tr_split_first(open_with(HEAD "window: 1, stride: 2}}", NULL), &split, &first), TR_OK);
    tr_source_close(&first);
}

static void test_allocation_failures(void **unused)
{
    (void)unused;
    write_series();
    expect_out_of_memory(HEAD "window: 2, missing: mean, standardize: true}}");
}

static void test_a_head_alone(void **unused)
{
    (void)unused;
    write_text("head", "x,y\n");
    expect_refusal("{series: {path: head, window: 1, header: yes}}", TR_EFORMAT,
                   "head: no row after the first line, which has the names of the columns");
    write_text("head", "");
    expect_refusal("{series: {path: head, window: 1}}", TR_EFORMAT, "head: the file is empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_a_head_alone),
        cmocka_unit_test(test_parts_share_nothing),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_scaling),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_gaps_of_two_inputs),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
