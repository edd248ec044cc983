/* The points of a sweep: all combinations of the values of its axes, or some that are drawn, each with
 * every seed.
 */
#include "cli/sweep/sweep.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/math.h"
#include "base/numbers/rng.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* How often a draw is repeated if it gives an earlier point. */
#define TRIES 1000

void cli_sweep_plan_release(struct cli_sweep_plan *plan)
{
    for (int a = 0; a < plan->axes; a++) {
        tr_free(plan->axis[a].path);
        for (int i = 0; i < plan->axis[a].count; i++) tr_free(plan->axis[a].value[i]);
        tr_free(plan->axis[a].value);
    }
    for (int32_t i = 0; i < plan->fixed.count; i++) tr_free(plan->fixed.item[i]);
    tr_free(plan->fixed.item);
    for (int i = 0; i < plan->count; i++)
        for (int a = 0; a < CLI_SWEEP_AXES; a++) tr_free(plan->points[i].value[a]);
    tr_free(plan->points);
    *plan = (struct cli_sweep_plan){0};
}

/* ---- axes ---- */

/* The end of a value that begins here: a comma outside of brackets and quotes, or the end of the text. */
static const char *value_end(const char *at)
{
    int depth = 0;
    char quote = 0;
    for (; *at; at++) {
        if (quote) {
            if (*at == quote) quote = 0;
        } else if (*at == '"' || *at == '\'') {
            quote = *at;
        } else if (strchr("[{(", *at)) {
            depth++;
        } else if (strchr("]})", *at)) {
            depth--;
        } else if (*at == ',' && depth <= 0) {
            return at;
        }
    }
    return at;
}

static tr_status add_value(struct cli_sweep_axis *axis, const char *begin, size_t length)
{
    char **grown = tr_realloc(axis->value, (size_t)axis->count + 1, sizeof *grown);
    if (!grown) return TR_ENOMEM;
    axis->value = grown;
    if (length == 0)
        return tr_fail(TR_EINVAL, "--set %s: a value between two commas is empty; write a value, or \"\"",
                       axis->path);
    grown[axis->count] = tr_format("%.*s", (int)length, begin);
    if (!grown[axis->count]) return TR_ENOMEM;
    axis->count++;
    return TR_OK;
}

/* "1e-4..1e-2" as a range; false for other texts. */
static bool read_range(const char *text, struct cli_sweep_axis *axis)
{
    const char *points = strstr(text, "..");
    char low[64];
    if (!points || points == text || (size_t)(points - text) >= sizeof low) return false;
    memcpy(low, text, (size_t)(points - text));
    low[points - text] = '\0';
    if (tr_text_double(low, &axis->least) || tr_text_double(points + 2, &axis->most)) return false;
    int64_t whole;
    axis->whole = !tr_text_int64(low, &whole) && !tr_text_int64(points + 2, &whole);
    return true;
}

static tr_status add_fixed(struct cli_sweep_plan *plan, const char *setting)
{
    char **grown = tr_realloc(plan->fixed.item, (size_t)plan->fixed.count + 1, sizeof *grown);
    if (!grown) return TR_ENOMEM;
    plan->fixed.item = grown;
    if (!(grown[plan->fixed.count] = tr_strdup(setting))) return TR_ENOMEM;
    plan->fixed.count++;
    return TR_OK;
}

static tr_status add_axis(struct cli_sweep_plan *plan, const char *setting, const char *sign, bool ranges)
{
    if (plan->axes == CLI_SWEEP_AXES)
        return tr_fail(TR_EINVAL, "a sweep varies at most %d fields, \"%s\" is one more", CLI_SWEEP_AXES,
                       setting);
    struct cli_sweep_axis *axis = &plan->axis[plan->axes];
    *axis = (struct cli_sweep_axis){.path = tr_format("%.*s", (int)(sign - setting), setting)};
    if (!axis->path) return TR_ENOMEM;
    plan->axes++;
    if (read_range(sign + 1, axis)) {
        if (!ranges)
            return tr_fail(TR_EINVAL, "--set %s: a range has no end of values; draw some with --random",
                           setting);
        if (axis->least < axis->most) return TR_OK;
        return tr_fail(TR_EINVAL, "--set %s: a range goes from the lower end to the higher one", setting);
    }
    for (const char *at = sign + 1, *end;; at = end + 1) {
        end = value_end(at);
        TR_TRY(add_value(axis, at, (size_t)(end - at)));
        if (!*end) return TR_OK;
    }
}

tr_status cli_sweep_axes(const struct tr_string_list *set, bool ranges, struct cli_sweep_plan *plan)
{
    for (int32_t i = 0; i < set->count; i++) {
        const char *setting = set->item[i], *sign = strchr(setting, '=');
        struct cli_sweep_axis range;
        bool varies = sign && sign > setting && (*value_end(sign + 1) || read_range(sign + 1, &range));
        TR_TRY(varies ? add_axis(plan, setting, sign, ranges) : add_fixed(plan, setting));
    }
    return TR_OK;
}

/* ---- points ---- */

tr_status cli_sweep_add(struct cli_sweep_plan *plan, char *const *value, int64_t seed, int32_t fold,
                        struct cli_sweep_point **out)
{
    if (plan->count == plan->room) {
        int room = 2 * plan->room + 16;
        struct cli_sweep_point *grown = tr_realloc(plan->points, (size_t)room, sizeof *grown);
        if (!grown) return TR_ENOMEM;
        plan->points = grown;
        plan->room = room;
    }
    struct cli_sweep_point *point = &plan->points[plan->count];
    *point = (struct cli_sweep_point){
        .seed = seed, .fold = fold, .loss = NAN, .accuracy = NAN, .figure = NAN, .seconds = NAN};
    plan->count++;
    for (int a = 0; a < plan->axes; a++)
        if (!(point->value[a] = tr_strdup(value[a]))) return TR_ENOMEM;
    *out = point;
    return TR_OK;
}

void cli_sweep_name(const struct cli_sweep_plan *plan, const struct cli_sweep_point *point,
                    struct tr_text *text)
{
    for (int a = 0; a < plan->axes; a++)
        tr_text_addf(text, "%s%s=%s", a ? " " : "", plan->axis[a].path, point->value[a]);
    if (point->seed >= 0) tr_text_addf(text, "%sseed=%" PRId64, plan->axes ? " " : "", point->seed);
    bool empty = plan->axes == 0 && point->seed < 0;
    if (point->fold > 0) tr_text_addf(text, "%sfold=%" PRId32, empty ? "" : " ", point->fold);
    if (empty && point->fold == 0) tr_text_add(text, "as the file says");
}

/* The same values with every seed, of every fold. */
static tr_status add_seeds(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan,
                           char *const *value)
{
    int64_t first = orders->seed >= 0 ? orders->seed : orders->seeds > 1 ? 1 : -1;
    for (int64_t i = 0; i < orders->seeds; i++) {
        int32_t fold = orders->folds > 0 ? 1 : 0;
        do {
            struct cli_sweep_point *point;
            TR_TRY(cli_sweep_add(plan, value, first < 0 ? -1 : first + i, fold, &point));
            point->wanted = true;
        } while (++fold <= orders->folds);
    }
    return TR_OK;
}

static bool is_there(const struct cli_sweep_plan *plan, char *const *value)
{
    for (int i = 0; i < plan->count; i++) {
        int a = 0;
        while (a < plan->axes && strcmp(plan->points[i].value[a], value[a]) == 0) a++;
        if (a == plan->axes) return true;
    }
    return false;
}

static tr_status add_grid(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan)
{
    int at[CLI_SWEEP_AXES] = {0};
    for (;;) {
        char *value[CLI_SWEEP_AXES] = {NULL};
        for (int a = 0; a < plan->axes; a++) value[a] = plan->axis[a].value[at[a]];
        if (!is_there(plan, value)) TR_TRY(add_seeds(orders, plan, value));
        int a = plan->axes - 1;
        while (a >= 0 && ++at[a] == plan->axis[a].count) at[a--] = 0;
        if (a < 0) return TR_OK;
    }
}

/* A value of an axis by a random word. Ranges above 0 are drawn evenly on a logarithmic scale. */
static char *draw(const struct cli_sweep_axis *axis, uint32_t word)
{
    double unit = (double)word * 0x1p-32;
    if (axis->count > 0) return tr_strdup(axis->value[(uint64_t)word * (uint64_t)axis->count >> 32]);
    double low = axis->least, high = axis->most, number;
    if (axis->whole) high += 1;
    if (low > 0)
        number = low * tr_pow(high / low, unit);
    else
        number = low + unit * (high - low);
    return axis->whole ? tr_format("%.0f", floor(number)) : tr_format("%.4g", number);
}

/* Point `number` of the drawn ones; a repeated point is drawn again. */
static tr_status add_drawn(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan,
                           uint32_t number)
{
    tr_rng_key key = tr_rng_key_make(orders->seed >= 0 ? (uint64_t)orders->seed : 1, TR_RNG_SWEEP);
    tr_status status = TR_OK;
    for (uint32_t attempt = 0; attempt < TRIES; attempt++) {
        char *value[CLI_SWEEP_AXES] = {NULL};
        for (int a = 0; a < plan->axes; a++) {
            uint32_t words[4];
            tr_rng_philox(key, number, (uint32_t)a, attempt, 0, words);
            if (!(value[a] = draw(&plan->axis[a], words[0]))) status = TR_ENOMEM;
        }
        bool there = status == TR_OK && is_there(plan, value);
        if (status == TR_OK && !there) status = add_seeds(orders, plan, value);
        for (int a = 0; a < plan->axes; a++) tr_free(value[a]);
        if (status != TR_OK || !there) return status;
    }
    return TR_OK; /* there are no more */
}

/* The settings of the split, which are the same for all points except the fold. */
static tr_status add_split(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan)
{
    char text[64];
    if (orders->split_seed >= 0) {
        snprintf(text, sizeof text, "data.split_seed=%" PRId64, orders->split_seed);
        TR_TRY(add_fixed(plan, text));
    }
    if (orders->folds == 0) return TR_OK;
    for (int a = 0; a < plan->axes; a++)
        if (strcmp(plan->axis[a].path, "data.fold") == 0)
            return tr_fail(TR_EINVAL, "--folds runs every fold; leave --set data.fold out");
    snprintf(text, sizeof text, "data.folds=%" PRId32, orders->folds);
    TR_TRY(add_fixed(plan, "data.validation_split=0"));
    return add_fixed(plan, text);
}

tr_status cli_sweep_plan(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan)
{
    *plan = (struct cli_sweep_plan){.seeds = orders->seeds, .folds = orders->folds};
    TR_TRY(cli_sweep_axes(orders->set, orders->random > 0, plan));
    TR_TRY(add_split(orders, plan));
    double points = (double)orders->seeds * (orders->folds > 0 ? orders->folds : 1);
    for (int a = 0; a < plan->axes && orders->random == 0; a++) points *= plan->axis[a].count;
    if (orders->random > 0) points *= (double)orders->random;
    if (points > CLI_SWEEP_POINTS)
        return tr_fail(TR_EINVAL, "the sweep has %.0f points, at most %d are run; draw some with --random",
                       points, CLI_SWEEP_POINTS);
    if (orders->random == 0) return add_grid(orders, plan);
    if (plan->axes == 0)
        return tr_fail(TR_EINVAL,
                       "--random draws from values; give some, as in --set optimizer.rate=1e-4..1e-2");
    for (int64_t i = 0; i < orders->random; i++) TR_TRY(add_drawn(orders, plan, (uint32_t)i));
    return TR_OK;
}
