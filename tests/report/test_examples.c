/* What a report says of examples that a run can be asked about: how many are right, true against predicted
 * classes, and predicted against true values. The networks learn what their tables say, so that the answers
 * are known.
 */
#include "trireme/report.h"

#include "support/training.h"

#include "base/files/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void write_file(const char *name, const char *text)
{
    char path[SCRATCH_PATH];
    must_train(tr_file_write_atomic(NULL, scratch_join(path, scratch_place, name), text, strlen(text)));
}

/* The page of a run of a model that is trained for it. */
static char *page_of(const char *model)
{
    static int runs_made;
    char path[SCRATCH_PATH], out[SCRATCH_PATH], name[16], *html;
    const char *runs[] = {out};
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    struct outcome outcome;
    struct job job;
    write_file("model.yaml", model);
    job_begin(&job, scratch_join(path, scratch_place, "model.yaml"));
    snprintf(name, sizeof name, "run%d", runs_made++);
    job.settings.out = scratch_join(out, scratch_place, name);
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
    must_train(tr_report(runs, 1, &settings, &html));
    return html;
}

static void expect(const char *html, const char *part)
{
    if (!strstr(html, part)) fail_msg("no %s in\n%s", part, html);
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
    write_file("train.csv", "-2,0\n-1,0\n1,1\n2,1\n");
    write_file("test.csv", "-3,0\n-1,0\n2,0\n1,1\n3,1\n");
    char *html = page_of(
        "name: classes\ndata: {train: {csv: {path: train.csv}}, test: {csv: {path: test.csv}}}\n" CLASSES);
    expect(html, "<h2>Test data</h2>");
    expect(html, "<p>Step 200: 4 of 5 test examples are right, 80.00 %.</p>");
    expect(html, "rows: true class, columns: predicted");
    expect(html, rows);
    tr_text_free(html);
    html = page_of("name: classes\ndata: {train: {csv: {path: train.csv}}, validation: {csv: {path: "
                   "test.csv}}}\n" CLASSES);
    expect(html, "<h2>Validation data</h2>");
    expect(html, "4 of 5 validation examples are right");
    tr_text_free(html);
}

/* Of 1,501 examples every second one is shown. */
static void values_are_compared(void **state)
{
    static char table[1 << 16];
    size_t length = 0;
    (void)state;
    for (int i = 0; i < 1501; i++)
        length += (size_t)snprintf(table + length, sizeof table - length, "%g,%g\n", (double)(i % 7) / 8,
                                   (double)(i % 7) / 4);
    write_file("values.csv", table);
    write_file("few.csv", "0.5,1\n0.25,0.5\n0.75,1.5\n");
    static const int points[] = {751, 3};
    static const char *const tests[][2] = {
        {"values.csv", "Step 100: predicted against true values of 751 test examples."},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_counted),
        cmocka_unit_test(values_are_compared),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
