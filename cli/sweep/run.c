/* The runs of a sweep, several at a time: each is another run of this program, which writes JSON. */
#include "cli/program/child.h"
#include "cli/program/signals.h"
#include "cli/sweep/sweep.h"

#include "cli/program/exit_codes.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "job/file/monitor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A run under way. */
struct slot {
    struct cli_child child;
    struct cli_sweep_point *point; /* NULL: nothing runs here */
    const char *by;                /* the figure that judges */
    bool judged;                   /* there was an evaluation on validation data */
    int64_t step, steps;
};

struct sweep {
    const struct cli_sweep_orders *orders;
    struct cli_sweep_plan *plan;
    struct cli_screen *screen;
    struct slot *slots;
    int wanted, ended; /* points */
    tr_status status;  /* of writing the record, which ends the sweep */
    struct tr_failure failure;
};

/* ---- a run ---- */

static void make_training(const struct sweep *sweep, const struct cli_sweep_point *point, const char *out,
                          struct cli_arguments *arguments)
{
    const struct cli_sweep_plan *plan = sweep->plan;
    cli_arguments_add_self(arguments);
    cli_arguments_add(arguments, "train");
    cli_arguments_add(arguments, "%s", sweep->orders->model);
    cli_arguments_add(arguments, "--out=%s", out);
    cli_arguments_add(arguments, "--log=json");
    cli_arguments_add(arguments, "--quiet");
    cli_arguments_add(arguments, "--transport=none");
    cli_arguments_add(arguments, "--threads=%d", sweep->orders->threads);
    cli_arguments_add(arguments, "--continue"); /* from where it was stopped */
    if (point->seed >= 0) cli_arguments_add(arguments, "--seed=%" PRId64, point->seed);
    for (int32_t i = 0; i < plan->fixed.count; i++)
        cli_arguments_add(arguments, "--set=%s", plan->fixed.item[i]);
    for (int a = 0; a < plan->axes; a++)
        cli_arguments_add(arguments, "--set=%s=%s", plan->axis[a].path, point->value[a]);
    if (point->fold > 0) cli_arguments_add(arguments, "--set=data.fold=%" PRId32, point->fold);
}

/* The figure that judges, from an event: next to loss and accuracy, or among the metrics of an evaluation. */
static double figure_of(const char *by, const struct tr_json_value *object)
{
    const struct tr_json_value *metrics = tr_json_find(object, "metrics");
    double own = tr_json_number_or_nan(object, by);
    return isnan(own) && metrics ? tr_json_number_or_nan(metrics, by) : own;
}

/* Takes figures, unless the known ones rank higher: validation, then other data, then steps. */
static void take_figures(struct slot *slot, const struct tr_json_value *object, const char *set)
{
    struct cli_sweep_point *point = slot->point;
    double loss = tr_json_number_or_nan(object, "loss"), figure = figure_of(slot->by, object);
    bool judges = strcmp(set, "validation") == 0;
    bool better = isnan(point->figure)
                      ? !isnan(figure)
                      : tr_monitor_cost(slot->by, figure) < tr_monitor_cost(slot->by, point->figure);
    if (slot->judged && !(judges && better)) return;
    if (!judges && strcmp(set, "train") == 0 && strcmp(point->set, "test") == 0) return;
    slot->judged |= judges;
    point->figure = figure;
    point->loss = loss;
    point->accuracy = tr_json_number_or_nan(object, "accuracy");
    snprintf(point->set, sizeof point->set, "%s", set);
}

/* A line of `trireme train --log json`. */
static void hear(void *user, const struct tr_json_value *object)
{
    struct slot *slot = user;
    struct cli_sweep_point *point = slot->point;
    const char *event = tr_json_text_or_empty(object, "event");
    slot->step = tr_json_integer_or(object, "step", slot->step);
    slot->steps = tr_json_integer_or(object, "steps", slot->steps);
    if (strcmp(event, "step") == 0) take_figures(slot, object, "train");
    if (strcmp(event, "evaluation") == 0) take_figures(slot, object, tr_json_text_or_empty(object, "set"));
    if (strcmp(event, "end") != 0) return;
    point->step = tr_json_integer_or(object, "step", 0);
    point->seconds = tr_json_number_or_nan(object, "seconds");
    snprintf(point->hash, sizeof point->hash, "%s", tr_json_text_or_empty(object, "hash"));
}

static void forget(struct cli_sweep_point *point)
{
    point->state = CLI_SWEEP_WAITING;
    point->loss = point->accuracy = point->figure = point->seconds = NAN;
    point->set[0] = point->hash[0] = point->failure[0] = '\0';
    point->step = 0;
}

static void tell(struct sweep *sweep, const struct cli_sweep_point *point)
{
    struct tr_text text = TR_TEXT_INIT;
    char seconds[TR_TEXT_NUMBER_SIZE];
    tr_text_addf(&text, "%*d/%d  ", sweep->wanted > 99 ? 4 : 2, sweep->ended, sweep->wanted);
    cli_sweep_name(sweep->plan, point, &text);
    if (point->state == CLI_SWEEP_DONE) {
        tr_text_addf(&text, ": loss %.4g", point->loss);
        if (!isnan(point->accuracy)) tr_text_addf(&text, ", accuracy %.4f", point->accuracy);
        if (cli_sweep_has_figure(sweep->orders))
            tr_text_addf(&text, ", %s %.4f", sweep->orders->by, point->figure);
        tr_text_addf(&text, " on %s, %s", point->set, tr_text_from_seconds(point->seconds, seconds));
    } else {
        tr_text_addf(&text, ": FAILED: %s", point->failure);
    }
    if (!text.failed) cli_screen_line(sweep->screen, text.bytes);
    tr_text_release(&text);
}

static void record(struct sweep *sweep)
{
    tr_status status = cli_sweep_write_record(sweep->orders, sweep->plan);
    if (sweep->status != TR_OK || status == TR_OK) return;
    sweep->status = status;
    tr_failure_keep(&sweep->failure, status);
}

static void conclude(struct sweep *sweep, struct slot *slot)
{
    struct cli_sweep_point *point = slot->point;
    const struct cli_child *child = &slot->child;
    slot->point = NULL;
    if (child->code == CLI_EXIT_DONE && point->hash[0] && !child->starved) {
        point->state = CLI_SWEEP_DONE;
    } else if (child->stopped && (child->code == CLI_EXIT_INTERRUPTED || child->code < 0)) {
        forget(point);
        return;
    } else {
        point->state = CLI_SWEEP_FAILED;
        static const char prefix[] = "trireme train: ";
        char words[sizeof point->failure];
        cli_child_explain(child, words, sizeof words);
        bool has = strncmp(words, prefix, sizeof prefix - 1) == 0;
        snprintf(point->failure, sizeof point->failure, "%s", words + (has ? sizeof prefix - 1 : 0));
    }
    sweep->ended++;
    tell(sweep, point);
    record(sweep);
}

/* Starts a point; one that cannot be started has failed. */
static void start(struct sweep *sweep, struct slot *slot, struct cli_sweep_point *point)
{
    struct cli_arguments arguments = {0};
    char *out = tr_path_join(sweep->orders->out, point->directory);
    forget(point);
    *slot = (struct slot){.child = {.hear = hear, .user = slot}, .point = point, .by = sweep->orders->by};
    tr_status status = out ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) {
        make_training(sweep, point, out, &arguments);
        status = cli_child_start(&slot->child, &arguments);
    }
    cli_arguments_release(&arguments);
    tr_free(out);
    if (status == TR_OK) return;
    slot->point = NULL;
    point->state = CLI_SWEEP_FAILED;
    snprintf(point->failure, sizeof point->failure, "%s", tr_error_message());
    sweep->ended++;
    tell(sweep, point);
    record(sweep);
}

/* ---- side by side ---- */

static struct cli_sweep_point *next_point(const struct sweep *sweep, int *at)
{
    for (; *at < sweep->plan->count; ++*at) {
        struct cli_sweep_point *point = &sweep->plan->points[*at];
        if (point->wanted && point->state != CLI_SWEEP_DONE) return &sweep->plan->points[(*at)++];
    }
    return NULL;
}

static void show_progress(const struct sweep *sweep, int running)
{
    char line[200];
    int length =
        snprintf(line, sizeof line, "  %d of %d ended, %d running:", sweep->ended, sweep->wanted, running);
    for (int i = 0; i < sweep->orders->workers && length < (int)sizeof line; i++) {
        const struct slot *slot = &sweep->slots[i];
        if (slot->point && slot->steps > 0)
            length += snprintf(line + length, sizeof line - (size_t)length, " %s %.0f %%",
                               slot->point->directory, 100.0 * (double)slot->step / (double)slot->steps);
    }
    cli_screen_status(sweep->screen, line);
}

static void run_all(struct sweep *sweep)
{
    int at = 0;
    for (;;) {
        struct cli_child *children[CLI_CHILDREN_MOST];
        int running = 0;
        for (int i = 0; i < sweep->orders->workers; i++) {
            struct slot *slot = &sweep->slots[i];
            struct cli_sweep_point *point = NULL;
            bool goes_on = cli_signals_received() == 0 && sweep->status == TR_OK;
            if (!slot->point && goes_on && (point = next_point(sweep, &at))) start(sweep, slot, point);
            if (slot->point) children[running++] = &slot->child;
        }
        if (running == 0 &&
            (at >= sweep->plan->count || cli_signals_received() != 0 || sweep->status != TR_OK))
            return;
        if (running == 0) continue; /* one could not be started: the next */
        show_progress(sweep, running);
        cli_child_wait(children, running);
        for (int i = 0; i < sweep->orders->workers; i++)
            if (sweep->slots[i].point && cli_child_attend(&sweep->slots[i].child))
                conclude(sweep, &sweep->slots[i]);
    }
}

tr_status cli_sweep_run(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan,
                        struct cli_screen *screen)
{
    struct sweep sweep = {.orders = orders, .plan = plan, .screen = screen};
    for (int i = 0; i < plan->count; i++) {
        sweep.wanted += plan->points[i].wanted;
        sweep.ended += plan->points[i].wanted && plan->points[i].state == CLI_SWEEP_DONE;
    }
    sweep.slots = tr_alloc_zero((size_t)orders->workers, sizeof *sweep.slots);
    if (!sweep.slots) return TR_ENOMEM;
    record(&sweep); /* the list of points, before the first run */
    run_all(&sweep);
    tr_free(sweep.slots);
    return sweep.status == TR_OK ? TR_OK : tr_failure_restore(&sweep.failure);
}
