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
#include "support/files/html.h"

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

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) count++;
    return count;
}

static void expect_parts(const char *text, const char *const *parts)
{
    for (int i = 0; parts[i]; i++)
        if (!strstr(text, parts[i])) fail_msg("there is no %s in %s", parts[i], text);
}

/* A process alone, two strategies on two workers, of which one needs a third rank, the same on four, and some
   that are not possible. */
static char alone[] = "one", average[] = "allreduce", local[] = "local-sgd,replicas=2,every=8",
            local_4[] = "local-sgd,replicas=4,every=8", rows_3[] = "pipeline,stages=3",
            rows_5[] = "pipeline,stages=5", few[] = "too few layers", many[] = "too many stages",
            failed[] = "a rank was lost";
static struct tr_plan_row several[] = {
    {.strategy = alone,
     .workers = 1,
     .ranks = 1,
     .measured = NAN,
     .figures = {.seconds = 0.05, .examples_per_second = 160, .most = {.memory = 5e6}}},
    {.strategy = average,
     .workers = 2,
     .ranks = 2,
     .measured = 250,
     .figures = {.seconds = 0.03125,
                 .examples_per_second = 256,
                 .waiting = 0.25,
                 .bottleneck = TR_BOTTLENECK_LINK,
                 .sum = {.bytes_sent = 3000, .bytes_shared = 2000}}},
    {.strategy = local,
     .workers = 2,
     .ranks = 3,
     .measured = NAN,
     .failure = failed,
     .figures = {.seconds = 0.025, .examples_per_second = 320}},
    {.strategy = rows_3, .workers = 2, .ranks = 3, .left_out = few, .measured = NAN},
    {.strategy = rows_5, .workers = 2, .ranks = 5, .left_out = few, .measured = NAN},
    {.strategy = average,
     .workers = 4,
     .ranks = 4,
     .measured = NAN,
     .figures = {.seconds = 2, .examples_per_second = 480}},
    {.strategy = local_4,
     .workers = 4,
     .ranks = 4,
     .measured = NAN,
     .figures = {.seconds = 0.0125, .examples_per_second = 640}},
    {.strategy = rows_3, .workers = 4, .ranks = 5, .left_out = many, .measured = NAN},
    {.strategy = rows_5,
     .workers = 1,
     .ranks = 1,
     .measured = NAN,
     .figures = {.seconds = 0.0125, .examples_per_second = 100}},
};
static const struct tr_plan of_several = {
    .name = "mnist",
    .device = "cpu, 2 threads",
    .cluster = {.per_host = 2, .remote = {.rate = 1.25e9, .latency = 25e-6}},
    .row = several,
    .rows = sizeof several / sizeof several[0]};

static void a_page_shows_all(void **state)
{
    static const char *const parts[] = {
        "<title>mnist: plan</title>",
        "<h1>mnist: plan</h1>",
        "a network of 10 Gb/s for each host with 25 microseconds between two, 2 processes a host; computing "
        "as "
        "measured on this machine (cpu, 2 threads). Error: the prediction against a real run",
        "<td>one process</td>",
        ">2 workers</td>",
        ">4 workers</td>",
        ">1 worker</td>",
        "data-head=\"processes\" class=\"number\">3<",
        ">31.2 ms<",
        ">4.8 MiB<",
        ">4.9 KiB<",
        ">computing<",
        ">a host&#39;s link<",
        ": 256 at 2<",
        ": 80.00 % at 2<",
        ": 75.00 % at 4<",
        ">256<",
        ">1.60<",
        ">25 %<",
        ">+2 %<",
        ">a rank was lost<",
        "<td>too few layers</td>",
        ">pipeline,stages=3; pipeline,stages=5<",
        "<td>too many stages</td>",
        "Examples per second, simulated",
        "Share of as many single processes, simulated",
        NULL};
    (void)state;
    char *text;
    assert_int_equal(tr_plan_page(&of_several, &text), TR_OK);
    expect_well_formed(text);
    expect_whole_rows(text);
    expect_parts(text, parts);
    assert_int_equal(count_of(text, "<tr class=\"best\">"), 1);
    assert_int_equal(count_of(text, "<h2>Left out</h2>"), 1);
    assert_int_equal(count_of(text, "too few layers"), 1);
    tr_free(text);
    /* Without a run there is no column of errors; a plan may have no name. */
    struct tr_plan first = of_several;
    first.rows = 1;
    first.name = NULL;
    first.cluster.per_host = 1;
    assert_int_equal(tr_plan_page(&first, &text), TR_OK);
    assert_non_null(strstr(text, "<h1>plan: plan</h1>"));
    assert_non_null(strstr(text, ", 1 process a host; "));
    assert_null(strstr(text, "rror"));
    assert_null(strstr(text, "Left out"));
    tr_free(text);
}

/* A curve for each strategy, with all numbers of workers, of rows that there are. */
static void a_picture_shows_curves(void **state)
{
    static const char *const parts[] = {
        "font-weight:600\">a job, 10 Gb/s, simulated: examples per second</text>", "<style>text{font:12px ",
        ">allreduce</text>", ">local-sgd,every=8</text>", NULL};
    (void)state;
    char *text;
    assert_int_equal(tr_plan_picture(&of_several, "a job", &text), TR_OK);
    expect_parts(text, parts);
    assert_non_null(strstr(text, " width=\"720\" "));
    assert_true(number_behind(text, " height=\"") == 1.5 * number_behind(text, "viewBox=\"0 0 480 "));
    assert_non_null(strstr(text, " aria-label=\"a job\">"));
    assert_null(strstr(text, "class=\"band\"")); /* what a pointer would show */
    assert_null(strstr(text, "pipeline"));
    assert_null(strstr(text, ">one<"));
    assert_int_equal(count_of(text, "<circle class=\"dot"), 4);
    assert_int_equal(count_of(text, "<svg"), 1);
    assert_non_null(strstr(text, "</style>\n<text"));
    tr_free(text);
    struct tr_plan grows = of_several;
    grows.grows = true;
    assert_int_equal(tr_plan_picture(&grows, "a job", &text), TR_OK);
    assert_non_null(strstr(text, "simulated: share of as many single processes</text>"));
    tr_free(text);
}

/* A curve is of the rows that differ in the number of workers alone, also where an option repeats that. */
static void curves_have_the_names_of_strategies(void **state)
{
    static const struct {
        const char *strategy;
        int workers;
        const char *name;
    } cases[] = {
        {"local-sgd,replicas=2", 2, "local-sgd"},
        {"local-sgd,replicas=2,every=8", 2, "local-sgd,every=8"},
        {"local-sgd,every=8,replicas=12", 12, "local-sgd,every=8"},
        {"local-sgd,replicas=12", 2, "local-sgd,replicas=12"},
        {"local-sgd,replicas=2", 12, "local-sgd,replicas=2"},
        {"local-sgd,replicas=12,every=8", 1, "local-sgd,replicas=12,every=8"},
        {"local-sgd,replicas=1", 1, "local-sgd,replicas=1"},
        {"allreduce,buckets=2", 2, "allreduce,buckets=2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_plan_row row[MOST + 1];
        char name[MOST + 1][24], strategy[64], label[80], *svg;
        struct tr_plan plan;
        make_plan(row, name, 1, &plan);
        strcpy(strategy, cases[i].strategy);
        row[1].strategy = strategy;
        row[1].workers = cases[i].workers;
        assert_int_equal(tr_plan_picture(&plan, "a job", &svg), TR_OK);
        snprintf(label, sizeof label, ">%s</text>", cases[i].name);
        if (!strstr(svg, label)) fail_msg("there is no %s in %s", label, svg);
        tr_free(svg);
    }
}

/* After eight colours they come again, dashed; more than 32 are left out. */
static void many_curves_have_colours(void **state)
{
    enum { MANY = 33 };
    static struct tr_plan_row row[MANY + 1];
    static char name[MANY + 1][24];
    struct tr_plan plan;
    char *svg;
    (void)state;
    for (int i = 0; i <= MANY; i++) {
        snprintf(name[i], sizeof name[i], "strategy-%d", i);
        row[i] = (struct tr_plan_row){.strategy = name[i],
                                      .workers = 2,
                                      .ranks = i > 0 ? 2 : 1,
                                      .figures = {.seconds = 0.5, .examples_per_second = 10 + i},
                                      .measured = NAN};
    }
    plan = (struct tr_plan){.device = "cpu", .cluster = {.per_host = 1}, .row = row, .rows = MANY + 1};
    assert_int_equal(tr_plan_picture(&plan, "a job", &svg), TR_OK);
    for (int i = 1; i <= MANY; i++) {
        char label[32], style[32];
        snprintf(label, sizeof label, ">%s</text>", name[i]);
        const char *at = strstr(svg, label);
        if ((at != NULL) != (i <= 32)) fail_msg("%s: %s", label, svg);
        if (!at) continue;
        while (strncmp(at, "<path ", 6) != 0) at--;
        snprintf(style, sizeof style, "<path class=\"line s%d%s\"", (i - 1) % 8 + 1, i > 8 ? " dashed" : "");
        if (strncmp(at, style, strlen(style)) != 0) fail_msg("%s: %.60s", name[i], at);
    }
    assert_int_equal(count_of(svg, "<circle class=\"dot"), 32);
    assert_int_equal(count_of(svg, " dashed\""), 2 * 24);
    tr_free(svg);
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
        cmocka_unit_test(a_page_shows_all),
        cmocka_unit_test(a_picture_shows_curves),
        cmocka_unit_test(curves_have_the_names_of_strategies),
        cmocka_unit_test(many_curves_have_colours),
        cmocka_unit_test(without_memory_there_is_no_text),
    };
    return cmocka_run_group_tests_name("plan.page", tests, NULL, NULL);
}
