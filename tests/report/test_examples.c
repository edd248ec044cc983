/* What a report says of examples that a run can be asked about: how many are right, true against predicted
 * classes, and predicted against true values. The networks learn what their tables say, so that the answers
 * are known.
 */
#include "trireme/report.h"

#include "support/files/html.h"
#include "support/training.h"

#include "report/pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* The page of a run of a model that is trained for it. */
static char *page_of(const char *model)
{
    static int runs_made;
    char path[SCRATCH_PATH], out[SCRATCH_PATH], name[16], *html;
    const char *runs[] = {out};
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    struct outcome outcome;
    struct job job;
    scratch_write_text("model.yaml", model);
    job_begin(&job, scratch_join(path, scratch_place, "model.yaml"));
    snprintf(name, sizeof name, "run%d", runs_made++);
    job.settings.out = scratch_join(out, scratch_place, name);
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
    must_train(tr_report(runs, 1, &settings, &html));
    expect_well_formed(html);
    return html;
}

#define CLASSES                                                                                              \
    "layers: [{dense: 2}]\noptimizer: {rule: sgd, rate: 1}\ntrain: {batch: 4, steps: 200, log_every: 100}\n"

/* Of three negative numbers one is positive after all; positive ones are what they are called. */
static void classes_are_counted(void **state)
{
    static const char rows[] = "<tr><th>0</th><td class=\"right\" style=\"--h:0.67\">2</td><td "
                               "class=\"wrong\" style=\"--h:1.00\">1</td></tr>"
                               "<tr><th>1</th><td class=\"wrong\" style=\"--h:0.00\"></td><td "
                               "class=\"right\" style=\"--h:1.00\">2</td></tr>";
    (void)state;
    scratch_write_text("train.csv", "-2,0\n-1,0\n1,1\n2,1\n");
    scratch_write_text("test.csv", "-3,0\n-1,0\n2,0\n1,1\n3,1\n");
    char *html = page_of(
        "name: classes\ndata: {train: {csv: {path: train.csv}}, test: {csv: {path: test.csv}}}\n" CLASSES);
    expect(html, "<h2>Test data</h2>");
    expect(html, "<p>Step 200: 4 of 5 test examples are right, 80.00 %.</p>");
    expect(html, "rows: true class, columns: "
                 "predicted</caption><thead><tr><td></td><th>0</th><th>1</th></tr></thead>");
    expect(html, rows);
    tr_text_free(html);
    html = page_of("name: classes\ndata: {train: {csv: {path: train.csv}}, validation: {csv: {path: "
                   "test.csv}}}\n" CLASSES);
    expect(html, "<h2>Validation data</h2>");
    expect(html, "4 of 5 validation examples are right");
    tr_text_free(html);
}

/* Of 1,001 examples every second one is shown. */
static void values_are_compared(void **state)
{
    static char table[1 << 16];
    size_t length = 0;
    (void)state;
    for (int i = 0; i < 1001; i++)
        length += (size_t)snprintf(table + length, sizeof table - length, "%g,%g\n", (double)(i % 7) / 8,
                                   (double)(i % 7) / 4);
    scratch_write_text("values.csv", table);
    scratch_write_text("few.csv", "0.5,1\n0.25,0.5\n0.75,1.5\n");
    static const int points[] = {501, 3};
    static const char *const tests[][2] = {
        {"values.csv", "Step 100: predicted against true values of 501 test examples."},
        {"few.csv", "Step 100: predicted against true values of 3 test examples."}};
    for (int i = 0; i < 2; i++) {
        char model[512];
        snprintf(model, sizeof model,
                 "name: values\ndata: {train: {csv: {path: few.csv, label: value}}, "
                 "test: {csv: {path: %s, label: value}}}\nlayers: [{dense: 1}]\nloss: mean_squared_error\n"
                 "optimizer: {rule: sgd, rate: 0.3}\ntrain: {batch: 3, steps: 100, log_every: 100}\n",
                 tests[i][0]);
        char *html = page_of(model);
        expect(html, tests[i][1]);
        expect(html, "Predicted value");
        expect(html, i ? " at 0.5</title>" : " at 0.25</title>");
        int dots = 0;
        for (const char *at = html; (at = strstr(at, "<circle class=\"dot\"")) != NULL; at++) dots++;
        assert_in_range(dots, points[i], points[i] + 20); /* curves have some, too */
        tr_text_free(html);
    }
}

/* Matrices of up to 40 classes, more are not readable. */
static void large_matrices_are_left_out(void **state)
{
    (void)state;
    scratch_write_text("two.csv", "0,0\n1,1\n");
    for (int classes = 40; classes <= 41; classes++) {
        char model[512];
        snprintf(model, sizeof model,
                 "name: many\ndata: {train: {csv: {path: two.csv}}, test: {csv: {path: two.csv}}}\n"
                 "layers: [{dense: %d}]\noptimizer: {rule: sgd, rate: 1}\n"
                 "train: {batch: 2, steps: 1}\n",
                 classes);
        char *html = page_of(model);
        expect(html, "2 test examples are right");
        assert_int_equal(count_of(html, "<table class=\"confusion\">"), classes == 40);
        assert_int_equal(count_of(html, "<td class=\"right\" "), classes == 40 ? 40 : 0);
        const int empty = count_of(html, "<td class=\"right\" style=\"--h:0.00\"></td>");
        assert_in_range(empty, classes == 40 ? 38 : 0, classes == 40 ? 40 : 0); /* two have an example */
        tr_text_free(html);
    }
}

/* Images that are black (class 0) or white (1), where the first `wrong` have the other label. */
static void write_images(const char *images, const char *labels, int count, int wrong)
{
    uint8_t pixels[16 + 4 * 64] = {0, 0, 8, 3, 0, 0, 0, (uint8_t)count, 0, 0, 0, 2, 0, 0, 0, 2},
                            answers[8 + 64] = {0, 0, 8, 1, 0, 0, 0, (uint8_t)count};
    for (int i = 0; i < count; i++) {
        memset(pixels + 16 + 4 * i, i % 2 ? 255 : 0, 4);
        answers[8 + i] = (uint8_t)(i < wrong ? 1 - i % 2 : i % 2);
    }
    scratch_write(images, pixels, 16 + 4 * (size_t)count);
    scratch_write(labels, answers, 8 + (size_t)count);
}

/* The first 40 that were misread, as pictures. */
static void misread_images_are_shown(void **state)
{
    static const struct {
        int wrong, shown;
        const char *head;
    } cases[] = {{0, 0, NULL},
                 {1, 1, "<h3>Misread: 1 of 45</h3><div class=\"misread\">"},
                 {40, 40, "<h3>Misread: 40 of 45</h3>"},
                 {42, 40, "<h3>Misread: 42 of 45, the first of them</h3>"}};
    (void)state;
    write_images("train.idx", "train-labels.idx", 8, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char part[128];
        write_images("test.idx", "test-labels.idx", 45, cases[i].wrong);
        char *html =
            page_of("name: images\ndata: {train: {idx: {images: train.idx, labels: train-labels.idx}}, "
                    "test: {idx: {images: test.idx, labels: test-labels.idx}}}\n" CLASSES);
        snprintf(part, sizeof part, "%d of 45 test examples are right", 45 - cases[i].wrong);
        expect(html, part);
        if (cases[i].head)
            expect(html, cases[i].head);
        else
            expect_none(html, "Misread");
        assert_int_equal(count_of(html, "<figure><img width=\"56\" alt=\"test example "), cases[i].shown);
        assert_int_equal(count_of(html, " src=\"data:image/png;base64,iVBORw0KGgo"), cases[i].shown);
        for (int k = 0; k < cases[i].shown; k++) {
            snprintf(part, sizeof part, "<b>%d</b> read as <b>%d</b>", 1 - k % 2, k % 2);
            expect(html, part);
            snprintf(part, sizeof part, " %%, no. %d</small></figcaption></figure>", k);
            expect(html, part);
            const double certainty =
                strtod(strstr(strstr(html, "<div class=\"misread\">"), "<small>") + 7, NULL);
            assert_in_range((int)certainty, 50, 100);
        }
        tr_text_free(html);
    }
}

/* Of several outputs each has a chart, with its name or number; of nine eight have. */
static void each_output_is_compared(void **state)
{
#define VALUES(columns, units)                                                                               \
    "name: values\ndata: {train: {csv: {path: t.csv, label: value, label_columns: [" columns                 \
    "]}}, test: {csv: {path: t.csv, label: value, label_columns: [" columns "]}}}\nlayers: [{dense: " units  \
    "}]\nloss: mean_squared_error\n"                                                                         \
    "optimizer: {rule: sgd, rate: 0.3}\ntrain: {batch: 3, steps: 300, log_every: 300}\n"
    (void)state;
    scratch_write_text("t.csv", "x,low,high\n0,0,10\n0.5,-2,20\n1,-4,30\n");
    char *html = page_of("input: {classes: [low, high]}\n" VALUES("low, high", "2"));
    expect(html, "predicted against true values of 3 test examples.");
    const char *low = strstr(html, "<figcaption>Predicted low</figcaption>"),
               *high = strstr(html, "<figcaption>Predicted high</figcaption>");
    assert_true(low && high && low < high);
    const char *last = strstr(low, " at -4</title>");
    assert_true(last && last < high);
    assert_non_null(strstr(high, " at 30</title>"));
    tr_text_free(html);
    html = page_of(VALUES("low, high", "2"));
    expect(html, "<figcaption>Predicted value 0</figcaption>");
    expect(html, "<figcaption>Predicted value 1</figcaption>");
    tr_text_free(html);
    scratch_write_text("t.csv", "0,1,2,3,4,5,6,7,8,9\n1,2,3,4,5,6,7,8,9,10\n1,2,3,4,5,6,7,8,9,10\n");
    html = page_of(VALUES("1, 2, 3, 4, 5, 6, 7, 8, 9", "9"));
    expect(html, "<figcaption>Predicted value 0</figcaption>");
    expect(html, "<figcaption>Predicted value 7</figcaption>");
    expect_none(html, "Predicted value 8");
    tr_text_free(html);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_counted),         cmocka_unit_test(values_are_compared),
        cmocka_unit_test(large_matrices_are_left_out), cmocka_unit_test(misread_images_are_shown),
        cmocka_unit_test(each_output_is_compared),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
