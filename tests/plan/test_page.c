/* Plans to look at: the picture has room for all of its legend, and no more, however many curves there are.
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
#include "plan/plan.h"
#include "refuse.h"
#include "support/html.h"

#include <math.h>

#define MOST 9

/* Lines of the legend are this far apart. */
#define LINE 16

/* One process, and so many strategies on two. */
static void make_plan(struct tr_plan_row row[MOST + 1], char name[MOST + 1][24], int strategies,
                      struct tr_plan *plan)
{
    *plan = (struct tr_plan){.name = "job",
                             .device = "cpu",
                             .cluster = {.per_host = 1, .remote = {.rate = 1.25e9, .latency = 1e-5}},
                             .row = row,
                             .rows = strategies + 1};
    for (int i = 0; i <= strategies; i++) {
        snprintf(name[i], sizeof name[i], "strategy-%d", i);
        row[i] = (struct tr_plan_row){.strategy = name[i],
                                      .workers = i > 0 ? 2 : 1,
                                      .ranks = i > 0 ? 2 : 1,
                                      .batch = 8,
                                      .figures = {.seconds = 0.5, .examples_per_second = 10 + i},
                                      .measured = NAN};
    }
}

/* The number behind `mark`, which is there. */
static double number_behind(const char *text, const char *mark)
{
    const char *at = strstr(text, mark);
    if (!at) fail_msg("there is no %s in %s", mark, text);
    return strtod(at + strlen(mark), NULL);
}

static void a_legend_fits_into_its_picture(void **state)
{
    (void)state;
    for (int curves = 1; curves <= MOST; curves++) {
        struct tr_plan_row row[MOST + 1];
        char name[MOST + 1][24];
        struct tr_plan plan;
        char *svg;
        double last = 0;
        make_plan(row, name, curves, &plan);
        assert_int_equal(tr_plan_picture(&plan, "a job", &svg), TR_OK);
        double height = number_behind(svg, "viewBox=\"0 0 480 ");
        for (int i = 1; i <= curves; i++) {
            char label[32];
            snprintf(label, sizeof label, ">%s</text>", name[i]);
            const char *end = strstr(svg, label);
            assert_non_null(end);
            while (*end != 'y') end--; /* of y="..." */
            double y = number_behind(end, "y=\"");
            assert_true(y >= last); /* two to a line */
            assert_true(i % 2 == 1 ? y >= last + (i > 1) * LINE : y == last);
            last = y;
        }
        if (last + LINE / 4 > height || last + LINE < height) /* room below the letters */
            fail_msg("%d curves: the picture is %g high, its last line stands at %g", curves, height, last);
        tr_free(svg);
    }
}

static void a_page_is_well_formed(void **state)
{
    (void)state;
    struct tr_plan_row row[MOST + 1];
    char name[MOST + 1][24], hostile[] = "<b>&\"'";
    struct tr_plan plan;
    char *text;
    make_plan(row, name, 3, &plan);
    plan.name = hostile;
    row[1].strategy = hostile;
    assert_int_equal(tr_plan_page(&plan, &text), TR_OK);
    expect_well_formed(text);
    expect_whole_rows(text);
    expect_styled(text);
    assert_null(strstr(text, hostile));
    assert_non_null(strstr(text, "&lt;b&gt;&amp;"));
    assert_non_null(strstr(text, "<title>&lt;b&gt;"));
    for (int i = 2; i <= 3; i++) assert_non_null(strstr(text, name[i]));
    tr_free(text);
}

/* Whichever allocation fails, there is no text, and nothing stays behind. */
static void without_memory_there_is_no_text(void **state)
{
    (void)state;
    struct tr_plan_row row[MOST + 1];
    char name[MOST + 1][24];
    struct tr_plan plan;
    make_plan(row, name, 3, &plan);
    for (int kind = 0; kind < 3; kind++)
        for (int64_t at = 0, done = 0; !done; at++) {
            int64_t live = tr_alloc_live();
            char *text = NULL;
            refuse_begin(at);
            tr_status status = kind == 0   ? tr_plan_page(&plan, &text)
                               : kind == 1 ? tr_plan_picture(&plan, "a job", &text)
                                           : tr_plan_json(&plan, &text);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("text %d, allocation %lld: %s", kind, (long long)at, tr_status_name(status));
            if (done) tr_free(text);
            assert_int_equal(tr_alloc_live(), live);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_legend_fits_into_its_picture),
        cmocka_unit_test(a_page_is_well_formed),
        cmocka_unit_test(without_memory_there_is_no_text),
    };
    return cmocka_run_group_tests_name("plan.page", tests, NULL, NULL);
}
