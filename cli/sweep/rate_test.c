/* The range test of the learning rate (Smith 2017): one run whose rate rises from step to step, and the
 * loss of each step. Too low a rate leaves the loss where it is, a good one lowers it fastest, too high a
 * rate blows it up.
 *
 *     step i of n has rate low * (high / low)^(i / (n - 1))
 *     s[i] = 0.9 s[i - 1] + 0.1 loss[i], s[-1] = 0, over 1 - 0.9^(i + 1)    the smoothed loss
 *
 * The test ends where the smoothed loss is above four times its lowest, or the loss is not finite. The rate
 * that it proposes is that of the steepest fall of the smoothed loss over the logarithm of the rate, up to
 * its lowest point. The falls of the first steps do not count: the mean of so few losses is as uneven as they
 * are.
 */
#include "cli/sweep/sweep.h"

#include "cli/program/signals.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/ops.h"
#include "base/numbers/math.h"
#include "base/text/table.h"
#include "report/draw/chart.h"
#include "report/draw/html.h"
#include "trireme/trireme.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEPS    100
#define LOW      1e-6
#define HIGH     10.0
#define KEPT     0.9 /* of the smoothed loss, from one step to the next */
#define FAR      4.0 /* times the lowest smoothed loss: the test ends */
#define FIRST    10  /* steps after which it may end, and falls count */
#define ROWS     10  /* printed lines */
#define LOW_LOG  (-6.0)
#define HIGH_LOG 1.0

extern const char tr_report_text_page[]; /* the style sheet of reports */

struct test {
    int count; /* steps that were done */
    double rate[STEPS], loss[STEPS], smooth[STEPS];
    int lowest, steepest;
};

double cli_rate_of_step(int step)
{
    return LOW * tr_pow(HIGH / LOW, (double)step / (STEPS - 1));
}

/* ---- the run ---- */

static tr_status step_on(tr_trainer *trainer, struct test *test, bool *ends)
{
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    int i = test->count;
    double rate = cli_rate_of_step(i);
    TR_TRY(tr_trainer_set_rate(trainer, rate));
    tr_status status = tr_trainer_step(trainer, &event);
    *ends = status == TR_ENONFINITE || (status == TR_OK && !isfinite(event.loss));
    if (*ends) return TR_OK;
    TR_TRY(status);
    double before = i > 0 ? test->smooth[i - 1] * (1 - tr_pow_int(KEPT, i)) : 0;
    test->rate[i] = rate;
    test->loss[i] = event.loss;
    test->smooth[i] = (KEPT * before + (1 - KEPT) * event.loss) / (1 - tr_pow_int(KEPT, i + 1));
    if (test->smooth[i] < test->smooth[test->lowest]) test->lowest = i;
    *ends = i >= FIRST && test->smooth[i] > FAR * test->smooth[test->lowest];
    test->count++;
    return TR_OK;
}

static tr_status run_test(const struct cli_sweep_orders *orders, const char *const *set, int set_count,
                          struct cli_screen *screen, struct test *test)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    tr_trainer *trainer = NULL;
    bool ends = false;
    settings.model = orders->model;
    settings.set = set;
    settings.set_count = set_count;
    settings.threads = orders->threads;
    settings.steps = STEPS;
    settings.journal = "";
    settings.has_seed = orders->seed >= 0;
    settings.seed = orders->seed >= 0 ? (uint64_t)orders->seed : 0;
    TR_TRY(tr_trainer_create(&settings, &trainer));
    tr_status status = TR_OK;
    while (status == TR_OK && !ends && test->count < STEPS) {
        char line[64];
        snprintf(line, sizeof line, "  step %d of %d", test->count + 1, STEPS);
        cli_screen_status(screen, line);
        status = step_on(trainer, test, &ends);
        if (status == TR_OK && cli_signals_received() != 0)
            status =
                tr_fail(TR_EINTERRUPTED, "stopped after step %d of %d of the range test", test->count, STEPS);
    }
    tr_trainer_destroy(&trainer);
    if (status == TR_OK && test->count < FIRST)
        return tr_fail(TR_ENONFINITE,
                       "the loss is not finite after %d steps with rates below %g; check the data and the "
                       "initial values",
                       test->count, cli_rate_of_step(test->count));
    return status;
}

/* The steepest fall from one step to the next, after the first ones. */
static void find_steepest(struct test *test)
{
    double fall = 0;
    test->steepest = -1;
    for (int i = FIRST; i <= test->lowest; i++) {
        double step = test->smooth[i - 1] - test->smooth[i];
        if (step <= fall) continue;
        fall = step;
        test->steepest = i;
    }
}

/* ---- what it comes to ---- */

static tr_status write_text(const struct cli_sweep_orders *orders, const char *name, char *text)
{
    char *path = tr_path_join(orders->out, name);
    tr_status status = TR_ENOMEM;
    if (path)
        status = cli_output_file(path, text);
    else
        tr_free(text);
    tr_free(path);
    return status;
}

static tr_status write_csv(const struct cli_sweep_orders *orders, const struct test *test)
{
    struct tr_text text = TR_TEXT_INIT;
    char rate[TR_TEXT_NUMBER_SIZE], loss[TR_TEXT_NUMBER_SIZE], smooth[TR_TEXT_NUMBER_SIZE], *csv;
    tr_text_add(&text, "step,rate,loss,smoothed\n");
    for (int i = 0; i < test->count; i++)
        tr_text_addf(&text, "%d,%s,%s,%s\n", i + 1, tr_text_from_double(test->rate[i], rate),
                     tr_text_from_double(test->loss[i], loss), tr_text_from_double(test->smooth[i], smooth));
    TR_TRY(tr_text_finish(&text, &csv));
    return write_text(orders, "rate-test.csv", csv);
}

/* Over the logarithm of the rate, while the loss is not much above its first value. */
static tr_status write_page(const struct cli_sweep_orders *orders, const struct test *test)
{
    struct tr_chart_point loss[STEPS], smooth[STEPS], proposed[1];
    struct tr_text html = TR_TEXT_INIT;
    char *page;
    for (int i = 0; i < test->count; i++) {
        double x = LOW_LOG + (HIGH_LOG - LOW_LOG) * i / (STEPS - 1);
        double most = 1.5 * test->smooth[0];
        loss[i] = (struct tr_chart_point){x, test->loss[i] <= most ? test->loss[i] : NAN};
        smooth[i] = (struct tr_chart_point){x, test->smooth[i] <= most ? test->smooth[i] : NAN};
    }
    if (test->steepest >= 0) proposed[0] = smooth[test->steepest];
    const struct tr_chart_series series[] = {
        {.name = "smoothed loss", .point = smooth, .count = test->count, .colour = 0},
        {.name = "loss of a step", .point = loss, .count = test->count, .colour = 1, .dashed = true},
        {.name = "proposed", .point = proposed, .count = 1, .colour = 2, .dots = true},
    };
    const struct tr_chart chart = {.title = "loss over the learning rate",
                                   .x_label = "learning rate, as a power of ten",
                                   .series = series,
                                   .count = test->steepest >= 0 ? 3 : 2};
    tr_text_add(
        &html,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width\"><title>Range test of the rate</title>\n"
        "<style>\n");
    tr_text_add(&html, tr_report_text_page);
    tr_text_add(&html, "</style></head><body><main>\n");
    tr_html_element(&html, "h1", NULL, "Range test of the learning rate");
    tr_html_element(&html, "p", NULL, orders->model);
    tr_chart_lines(&html, &chart);
    if (test->steepest >= 0)
        tr_html_elementf(&html, "p", NULL,
                         "The smoothed loss falls fastest at a rate of %.2g, and is lowest at %.2g.",
                         test->rate[test->steepest], test->rate[test->lowest]);
    tr_text_add(&html, "</main></body></html>\n");
    TR_TRY(tr_text_finish(&html, &page));
    return write_text(orders, "rate-test.html", page);
}

static tr_status print(const struct cli_sweep_orders *orders, const struct test *test,
                       struct cli_screen *screen)
{
    struct tr_text text = TR_TEXT_INIT;
    struct tr_table table;
    char *lines;
    tr_table_begin(&table, "rr");
    tr_table_cell(&table, "rate");
    tr_table_cell(&table, "loss");
    for (int row = 0; row < ROWS; row++) {
        int i = (int)((double)row * (test->count - 1) / (ROWS - 1) + 0.5);
        tr_table_cell(&table, "%.2g", test->rate[i]);
        tr_table_cell(&table, "%.4g", test->smooth[i]);
    }
    tr_table_finish(&table, &text);
    if (test->steepest >= 0)
        tr_text_addf(
            &text,
            "\nrate        %.2g, where the loss falls fastest; lowest at %.2g: --set optimizer.rate=%.2g\n",
            test->rate[test->steepest], test->rate[test->lowest], test->rate[test->steepest]);
    else
        tr_text_add(
            &text,
            "\nrate        none: the loss falls at no rate; check the data, the loss and the layers\n");
    tr_text_addf(&text, "picture     %s/rate-test.html\ntable       %s/rate-test.csv\n", orders->out,
                 orders->out);
    TR_TRY(tr_text_finish(&text, &lines));
    return cli_screen_text(screen, lines);
}

tr_status cli_sweep_rate_test(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan)
{
    struct test *test = tr_alloc_zero(1, sizeof *test);
    const char **set = tr_alloc((size_t)plan->fixed.count + 1, sizeof *set);
    struct cli_screen screen;
    tr_status status = test && set ? TR_OK : TR_ENOMEM;
    for (int32_t i = 0; set && i < plan->fixed.count; i++) set[i] = plan->fixed.item[i];
    cli_screen_begin(&screen, stdout);
    cli_signals_catch(NULL, "ending the test");
    if (status == TR_OK) status = tr_file_make_directories(NULL, orders->out);
    if (status == TR_OK) status = run_test(orders, set, plan->fixed.count, &screen, test);
    if (status == TR_OK) {
        find_steepest(test);
        status = write_csv(orders, test);
    }
    if (status == TR_OK) status = write_page(orders, test);
    if (status == TR_OK) status = print(orders, test, &screen);
    cli_signals_release();
    cli_screen_end(&screen);
    tr_free(set);
    tr_free(test);
    return status;
}
