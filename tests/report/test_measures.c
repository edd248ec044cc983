/* Tables of metrics: their heads, how many digits numbers have, and what is left out. */
#include "report/sections/measures.h"

#include "base/alloc.h"
#include "report/pages.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define START "{\"event\":\"start\",\"name\":\"n\"}\n"
#define EVALUATION(step, set, more)                                                                          \
    "{\"event\":\"evaluation\",\"step\":" step ",\"set\":\"" set "\",\"loss\":1," more "}\n"

static struct tr_run *read(const char *name, const char *lines)
{
    char journal[8192];
    struct tr_run *run;
    assert_in_range(snprintf(journal, sizeof journal, START "%s", lines), 1, sizeof journal - 1);
    put_file(scratch_place, name, "journal.jsonl", journal);
    assert_int_equal(tr_run_read(scratch_in(name), &run), TR_OK);
    return run;
}

/* The tables of one or two runs with these lines after their start; "": none. */
static char *tables_of(const char *one, const char *two, const char *job, bool begun)
{
    static char name[2][8] = {"<one>", "two"};
    char *const label[] = {name[0], name[1]};
    struct tr_text html = TR_TEXT_INIT;
    struct tr_run *run[2] = {read("one", one), two ? read("two", two) : NULL};
    char *text;
    tr_report_measures(&html, run, label, two ? 2 : 1, job, &begun);
    tr_text_add(&html, "");
    assert_int_equal(tr_text_finish(&html, &text), TR_OK);
    assert_int_equal(begun, *text != 0);
    tr_run_destroy(&run[0]);
    tr_run_destroy(&run[1]);
    return text;
}

static void metrics_have_names_for_people(void **state)
{
    static const char *const names[][2] = {
        {"f1", "F1"},
        {"mae", "mean absolute error"},
        {"mse", "mean squared error"},
        {"rmse", "root mean squared error"},
        {"r2", "R\302\262"},
        {"roc_auc", "ROC AUC"},
        {"pr_auc", "PR AUC"},
        {"average_precision", "average precision"},
        {"support", "examples"},
        {"top_5", "among the 5 likeliest"},
        {"exact_match", "exact match"},
        {"<b>", "&lt;b&gt;"},
    };
    char metrics[128], head[128];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(metrics, sizeof metrics, EVALUATION("3", "test", "\"metrics\":{\"%s\":0.5}"), names[i][0]);
        snprintf(head, sizeof head, "<th>data</th><th class=\"number\">%s</th></tr>", names[i][1]);
        char *html = tables_of(metrics, NULL, NULL, false);
        expect(html, head);
        tr_free(html);
    }
}

/* The numbers of a column have one format, by the greatest of them. */
static void columns_have_even_digits(void **state)
{
    static const struct {
        const char *first, *second, *cell[2];
    } cases[] = {
        {"0.5", "0.25", {"0.5000", "0.2500"}},
        {"1", "0", {"1.0000", "0.0000"}}, /* shares, not counts */
        {"0", "0", {"0.0000", "0.0000"}},
        {"2", "1", {"2", "1"}},
        {"1234567", "-3", {"1,234,567", "-3"}},
        {"9.99", "3", {"9.9900", "3.0000"}},
        {"10", "0.125", {"10.00", "0.12"}},
        {"999.5", "1", {"999.50", "1.00"}},
        {"1000.25", "-0.5", {"1000.2", "-0.5"}},
        {"999999.5", "1", {"999999.5", "1.0"}},
        {"1000000.5", "1", {"1.000e+06", "1.000e+00"}},
        {"0.01", "0.001", {"0.0100", "0.0010"}},
        {"0.009", "0.001", {"9.000e-03", "1.000e-03"}},
        {"1e15", "1", {"1.000e+15", "1.000e+00"}},
        {"-2e9", "0.5", {"-2.000e+09", "5.000e-01"}},
        {"3", "null", {"3", "-"}},
        {"\"x\"", "0.5", {"-", "0.5000"}},
    };
    char one[128], two[128], row[256];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(one, sizeof one, EVALUATION("3", "test", "\"metrics\":{\"m\":%s}"), cases[i].first);
        snprintf(two, sizeof two, EVALUATION("4", "dev", "\"metrics\":{\"m\":%s}"), cases[i].second);
        char *html = tables_of(one, two, NULL, true);
        snprintf(row, sizeof row,
                 "<tbody><tr><td>&lt;one&gt;</td><td>test, step 3</td><td class=\"number\">%s</td></tr>"
                 "<tr><td>two</td><td>dev, step 4</td><td class=\"number\">%s</td></tr></tbody>",
                 cases[i].cell[0], cases[i].cell[1]);
        expect(html, row);
        tr_free(html);
    }
}

/* The metrics are those of the first run's last evaluation; runs without any have no row. */
static void the_last_evaluations_count(void **state)
{
    (void)state;
    char *html = tables_of(EVALUATION("1", "test", "\"metrics\":{\"old\":9}")
                               EVALUATION("2", "test", "\"metrics\":{\"a\":0.5,\"b\":0.25}"),
                           EVALUATION("7", "test", "\"metrics\":{\"b\":0.75,\"c\":1}"), "<job>", false);
    assert_ptr_equal(strstr(html, "<h2>Metrics</h2>\n<h3>&lt;job&gt;</h3><div"), html);
    expect(html, "<th>data</th><th class=\"number\">a</th><th class=\"number\">b</th></tr>");
    expect(html, "<td>two</td><td>test, step 7</td><td class=\"number\">-</td><td "
                 "class=\"number\">0.7500</td></tr>");
    tr_free(html);
    html = tables_of(EVALUATION("2", "test", "\"metrics\":{\"a\":0.5}"), "", NULL, true);
    assert_ptr_equal(strstr(html, "<div class=\"scroll\">"), html); /* no second heading, and no job's */
    expect_none(html, "two");
    tr_free(html);
    html = tables_of(EVALUATION("2", "test", "\"metrics\":{\"a\":0.5}"), EVALUATION("3", "test", "\"x\":1"),
                     NULL, true);
    expect_none(html, "two");
    tr_free(html);
    static const char *const nothing[] = {"", EVALUATION("2", "test", "\"x\":1"),
                                          EVALUATION("2", "test", "\"metrics\":{}"),
                                          EVALUATION("2", "test", "\"metrics\":[1]")};
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++) {
        html = tables_of(nothing[i], EVALUATION("7", "test", "\"metrics\":{\"b\":0.75}"), "job", false);
        assert_string_equal(html, "");
        tr_free(html);
    }
}

#define OUTPUTS(lists) EVALUATION("2", "test", "\"metrics\":{\"a\":0.5},\"outputs\":{" lists "}")

/* A row for each output, with its name or its number; as many as the shortest list has. */
static void outputs_have_rows(void **state)
{
    (void)state;
    char *html = tables_of(OUTPUTS("\"f1\":[0.5,0.125,1],\"name\":[\"<x>\",3],\"support\":[1234,5]"), NULL,
                           NULL, true);
    expect(html, "<h3>By output</h3><div class=\"scroll\"><table class=\"facts\"><thead><tr><th>output</th>"
                 "<th class=\"number\">F1</th><th class=\"number\">examples</th></tr></thead><tbody>"
                 "<tr><td class=\"number\">0.5000</td><td>&lt;x&gt;</td><td class=\"number\">1,234</td></tr>"
                 "<tr><td class=\"number\">0.1250</td><td></td><td class=\"number\">5</td></tr>"
                 "</tbody></table></div>\n");
    tr_free(html);
    html = tables_of(OUTPUTS("\"mae\":[0.5,null]"), NULL, NULL, true);
    expect(html, "<tbody><tr><td>0</td><td class=\"number\">0.5000</td></tr><tr><td>1</td><td "
                 "class=\"number\">-</td></tr></tbody>");
    tr_free(html);
    /* Each list has a format, by the greatest of its numbers. */
    html =
        tables_of(OUTPUTS("\"a\":[12.5,1],\"b\":[1,12.5],\"c\":[0.009,0.001],\"d\":[2,3]"), NULL, NULL, true);
    expect(html, "<tbody><tr><td>0</td><td class=\"number\">12.50</td><td class=\"number\">1.00</td>"
                 "<td class=\"number\">9.000e-03</td><td class=\"number\">2</td></tr>"
                 "<tr><td>1</td><td class=\"number\">1.00</td><td class=\"number\">12.50</td>"
                 "<td class=\"number\">1.000e-03</td><td class=\"number\">3</td></tr></tbody>");
    tr_free(html);
    static const char *const none[] = {OUTPUTS("\"f1\":[]"), OUTPUTS("\"f1\":[1],\"mae\":3"), OUTPUTS("")};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        html = tables_of(none[i], NULL, NULL, true);
        expect_none(html, "By output");
        tr_free(html);
    }
}

/* Tables of 40 columns or of 40 rows, at most. */
static void tables_have_limits(void **state)
{
    (void)state;
    for (int count = 40; count <= 41; count++) {
        char metrics[1024] = "", outputs[512] = "", lines[2048];
        for (int i = 0; i < count; i++) {
            snprintf(metrics + strlen(metrics), sizeof metrics - strlen(metrics), "%s\"m%d\":0.5",
                     i ? "," : "", i);
            snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s0.5", i ? "," : "");
        }
        snprintf(lines, sizeof lines, EVALUATION("2", "test", "\"metrics\":{%s},\"outputs\":{\"f1\":[%s]}"),
                 metrics, outputs);
        char *html = tables_of(lines, NULL, NULL, true);
        assert_int_equal(count_of(html, "<th class=\"number\">m"), 40);
        assert_int_equal(count_of(html, "<td class=\"number\">0.5000</td>"), count == 40 ? 80 : 40);
        assert_int_equal(count_of(html, "By output"), count == 40);
        tr_free(html);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_have_names_for_people),
        cmocka_unit_test(columns_have_even_digits),
        cmocka_unit_test(the_last_evaluations_count),
        cmocka_unit_test(outputs_have_rows),
        cmocka_unit_test(tables_have_limits),
    };
    return cmocka_run_group_tests_name("report.measures", tests, scratch_place_make, scratch_place_remove);
}
