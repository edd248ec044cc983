/* Schedules. */
#include "optim/schedule.h"

#include "base/fail.h"
#include "base/numbers/math.h"

#include <assert.h>
#include <math.h>

#define PI 0x1.921fb54442d18p+1

static const struct tr_choice kinds[] = {
    {"constant", TR_SCHEDULE_CONSTANT, "keeps the rate"},
    {"exponential", TR_SCHEDULE_EXPONENTIAL, "multiplies by `decay` every `every` steps"},
    {"step", TR_SCHEDULE_STEP, "multiplies by `factor` at each milestone"},
    {"cosine", TR_SCHEDULE_COSINE, "falls to `final` along half a cosine"},
    {"one_cycle", TR_SCHEDULE_ONE_CYCLE, "rises from `start` to the full rate, then falls to `final`"},
    {"linear", TR_SCHEDULE_LINEAR, "falls to `final` along a straight line"},
    {"cosine_restarts", TR_SCHEDULE_RESTARTS,
     "falls to `final` along half a cosine in `every` steps, and again from the full rate, each time in "
     "`growth` times as many"},
    {"plateau", TR_SCHEDULE_PLATEAU,
     "multiplies by `factor` after more than `patience` evaluations without a better loss"},
    {0}};

static const struct tr_choice forms[] = {
    {"smooth", TR_ONE_CYCLE_SMOOTH, "the peak is at step rise * steps, the end after the last step"},
    {"pytorch", TR_ONE_CYCLE_PYTORCH,
     "as PyTorch's OneCycleLR: one step earlier each, so the last step has the final rate; default of "
     "`final`: 1e-4 of `start`"},
    {0}};

#define FIELD(name) offsetof(struct tr_schedule, name)
#define BIT(kind)   (1u << TR_SCHEDULE_##kind)

const struct tr_option tr_schedule_options[] = {
    {.key = "kind",
     .type = TR_OPTION_CHOICE,
     .offset = FIELD(kind),
     .fallback = "constant",
     .choices = kinds,
     .help = "the factor on the learning rate"},
    {.key = "decay",
     .type = TR_OPTION_DOUBLE,
     .offset = FIELD(decay),
     .least = 0,
     .most = 1,
     .flags = TR_OPTION_ABOVE_LEAST,
     .only = BIT(EXPONENTIAL),
     .help = "factor per `every` steps"},
    {.key = "every",
     .type = TR_OPTION_INT64,
     .offset = FIELD(every),
     .least = 1,
     .most = INFINITY,
     .only = BIT(EXPONENTIAL) | BIT(RESTARTS),
     .help =
         "steps in which the rate is multiplied by `decay` once; for `cosine_restarts` those of the first "
         "period"},
    {.key = "growth",
     .type = TR_OPTION_INT64,
     .offset = FIELD(growth),
     .fallback = "1",
     .least = 1,
     .most = 1000,
     .only = BIT(RESTARTS),
     .help = "length of a period, divided by the length of the previous one"},
    {.key = "staircase",
     .type = TR_OPTION_BOOL,
     .offset = FIELD(staircase),
     .fallback = "false",
     .only = BIT(EXPONENTIAL),
     .help = "decay every `every` steps at once, not smoothly"},
    {.key = "milestones",
     .type = TR_OPTION_INT_LIST,
     .offset = FIELD(milestones),
     .least = 1,
     .most = INFINITY,
     .only = BIT(STEP),
     .help = "ascending steps; at each the rate is multiplied by `factor`"},
    {.key = "factor",
     .type = TR_OPTION_DOUBLE,
     .offset = FIELD(factor),
     .fallback = "0.1",
     .least = 0,
     .most = INFINITY,
     .flags = TR_OPTION_ABOVE_LEAST,
     .only = BIT(STEP) | BIT(PLATEAU),
     .help = "factor per milestone or plateau"},
    {.key = "steps",
     .type = TR_OPTION_INT64,
     .offset = FIELD(steps),
     .fallback = "0",
     .least = 0,
     .most = INFINITY,
     .only = BIT(COSINE) | BIT(LINEAR) | BIT(ONE_CYCLE),
     .help = "step at which `final` is reached; 0: the length of the training"},
    {.key = "final",
     .type = TR_OPTION_DOUBLE,
     .offset = FIELD(final),
     .fallback = "0",
     .least = 0,
     .most = INFINITY,
     .only = BIT(COSINE) | BIT(LINEAR) | BIT(RESTARTS) | BIT(ONE_CYCLE) | BIT(PLATEAU),
     .help = "factor at the end, of each period with `cosine_restarts`; for `plateau` the minimum"},
    {.key = "start",
     .type = TR_OPTION_DOUBLE,
     .offset = FIELD(start),
     .fallback = "0.04",
     .least = 0,
     .most = INFINITY,
     .only = BIT(ONE_CYCLE),
     .help = "factor at the first step"},
    {.key = "rise",
     .type = TR_OPTION_DOUBLE,
     .offset = FIELD(rise),
     .fallback = "0.3",
     .least = 0,
     .most = 1,
     .flags = TR_OPTION_ABOVE_LEAST | TR_OPTION_BELOW_MOST,
     .only = BIT(ONE_CYCLE),
     .help = "fraction of `steps` in which the rate rises"},
    {.key = "form",
     .type = TR_OPTION_CHOICE,
     .offset = FIELD(form),
     .fallback = "smooth",
     .choices = forms,
     .only = BIT(ONE_CYCLE),
     .flags = TR_OPTION_QUIET,
     .help = "position of the peak and the end"},
    {.key = "patience",
     .type = TR_OPTION_INT64,
     .offset = FIELD(patience),
     .fallback = "10",
     .least = 0,
     .most = TR_OPTION_WHOLE,
     .only = BIT(PLATEAU),
     .flags = TR_OPTION_QUIET,
     .help = "evaluations without a better loss before the rate falls"},
    {.key = "threshold",
     .type = TR_OPTION_DOUBLE,
     .offset = FIELD(threshold),
     .fallback = "1e-4",
     .least = 0,
     .most = 1,
     .only = BIT(PLATEAU),
     .flags = TR_OPTION_QUIET | TR_OPTION_BELOW_MOST,
     .help = "a loss is better if it is below the best by this fraction"},
    {.key = "warmup",
     .type = TR_OPTION_INT64,
     .offset = FIELD(warmup),
     .fallback = "0",
     .least = 0,
     .most = INFINITY,
     .only = BIT(CONSTANT) | BIT(EXPONENTIAL) | BIT(STEP) | BIT(COSINE) | BIT(LINEAR) | BIT(RESTARTS) |
             BIT(PLATEAU),
     .help = "steps of a linear rise, multiplied with the rest; the last of them has the full rate"},
};
const int32_t tr_schedule_option_count = TR_OPTION_COUNT(tr_schedule_options);

/* ---- reading ---- */

static tr_status check(const tr_config *node, const struct tr_schedule *schedule)
{
    const struct tr_int_list *milestones = &schedule->milestones;
    if (schedule->kind == TR_SCHEDULE_STEP && milestones->count == 0)
        return tr_config_fail(TR_EINVAL, node, "\"milestones\" is empty; name at least one step");
    for (int32_t i = 1; i < milestones->count; i++) {
        if (milestones->item[i] <= milestones->item[i - 1])
            return tr_config_fail(TR_EINVAL, node, "milestones must ascend: %lld follows %lld",
                                  (long long)milestones->item[i], (long long)milestones->item[i - 1]);
    }
    if (schedule->kind == TR_SCHEDULE_PLATEAU && schedule->factor >= 1)
        return tr_config_fail(TR_EINVAL, node, "a factor of %g does not lower the rate; give one below 1",
                              schedule->factor);
    bool ends = schedule->kind == TR_SCHEDULE_COSINE || schedule->kind == TR_SCHEDULE_LINEAR;
    if (ends && schedule->warmup >= schedule->steps)
        return tr_config_fail(TR_EINVAL, node,
                              "a warm-up of %lld steps leaves nothing of %lld steps; set "
                              "optimizer.schedule.warmup to %lld or less, or train more than %lld steps",
                              (long long)schedule->warmup, (long long)schedule->steps,
                              (long long)schedule->steps - 1, (long long)schedule->warmup);
    return TR_OK;
}

tr_status tr_schedule_read(const tr_config *node, int64_t training_steps, struct tr_schedule *out)
{
    assert(training_steps > 0);
    TR_TRY(tr_options_defaults(tr_schedule_options, tr_schedule_option_count, out));
    TR_TRY(tr_options_read(tr_schedule_options, tr_schedule_option_count, node, "schedule", out));
    /* The other schedules have no end: a longer run begins like a shorter one and has the same settings. */
    bool ends = out->kind == TR_SCHEDULE_COSINE || out->kind == TR_SCHEDULE_LINEAR ||
                out->kind == TR_SCHEDULE_ONE_CYCLE;
    if (ends && out->steps == 0) out->steps = training_steps;
    out->plateau = (struct tr_plateau){.factor = 1, .best = INFINITY};
    if (out->form == TR_ONE_CYCLE_PYTORCH && !tr_config_get(node, "final")) out->final = out->start * 1e-4;
    return check(node, out);
}

/* ---- factors ---- */

/* From 0 to 1 along half a cosine while x goes from 0 to 1; clamped. */
static double ease(double x)
{
    return x <= 0 ? 0 : x >= 1 ? 1 : (1 - tr_cos(PI * x)) / 2;
}

/* The part of its period that has passed at `step` steps after the warm-up. */
static double part_of_period(const struct tr_schedule *schedule, int64_t step)
{
    int64_t period = schedule->every, at = step;
    if (schedule->growth == 1) at %= period;
    while (at >= period) {
        at -= period;
        if (__builtin_mul_overflow(period, schedule->growth, &period)) break;
    }
    return (double)at / (double)period;
}

static double base_factor(const struct tr_schedule *schedule, int64_t step)
{
    double length = (double)schedule->steps;
    switch (schedule->kind) {
    case TR_SCHEDULE_CONSTANT:
        return 1;
    case TR_SCHEDULE_EXPONENTIAL:
        if (schedule->staircase) return tr_pow_int(schedule->decay, step / schedule->every);
        return tr_pow(schedule->decay, (double)step / (double)schedule->every);
    case TR_SCHEDULE_STEP: {
        int32_t passed = 0;
        while (passed < schedule->milestones.count && schedule->milestones.item[passed] <= step) passed++;
        return tr_pow_int(schedule->factor, passed);
    }
    case TR_SCHEDULE_COSINE: {
        double warmup = (double)schedule->warmup;
        return 1 + (schedule->final - 1) * ease(((double)step - warmup) / (length - warmup));
    }
    case TR_SCHEDULE_LINEAR: {
        double warmup = (double)schedule->warmup, x = ((double)step - warmup) / (length - warmup);
        return 1 + (schedule->final - 1) * (x <= 0 ? 0 : x >= 1 ? 1 : x);
    }
    case TR_SCHEDULE_RESTARTS: {
        if (step < schedule->warmup) return 1;
        return 1 + (schedule->final - 1) * ease(part_of_period(schedule, step - schedule->warmup));
    }
    case TR_SCHEDULE_ONE_CYCLE: {
        double top = schedule->rise * length, now = (double)step;
        if (schedule->form == TR_ONE_CYCLE_PYTORCH) {
            top -= 1;
            length -= 1;
        }
        if (now < top) return schedule->start + (1 - schedule->start) * ease(now / top);
        return 1 + (schedule->final - 1) * ease((now - top) / (length - top));
    }
    case TR_SCHEDULE_PLATEAU:
        return schedule->plateau.factor;
    }
    assert(0 && "every kind returns above");
    return 1;
}

double tr_schedule_factor(const struct tr_schedule *schedule, int64_t step)
{
    assert(step >= 0);
    double factor = base_factor(schedule, step);
    if (step < schedule->warmup) factor *= (double)(step + 1) / (double)schedule->warmup;
    return factor;
}

double tr_schedule_rate(const struct tr_schedule *schedule, double base, int64_t step)
{
    return schedule->is_given ? schedule->given : base * tr_schedule_factor(schedule, step);
}

bool tr_schedule_evaluated(struct tr_schedule *schedule, double cost)
{
    struct tr_plateau *plateau = &schedule->plateau;
    if (schedule->kind != TR_SCHEDULE_PLATEAU) return false;
    double part = plateau->best < 0 ? 1 + schedule->threshold : 1 - schedule->threshold;
    if (cost < plateau->best * part) {
        plateau->best = cost;
        plateau->worse = 0;
        return false;
    }
    if (++plateau->worse <= schedule->patience) return false;
    double before = plateau->factor, next = before * schedule->factor;
    plateau->factor = next > schedule->final ? next : schedule->final;
    plateau->worse = 0;
    return plateau->factor < before;
}
