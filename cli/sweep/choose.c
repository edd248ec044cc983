/* Orders of a sweep that the model file decides if the command line does not: the figure that judges, and
 * the rows that it is computed on.
 */
#include "cli/sweep/sweep.h"

#include "base/fail.h"
#include "base/options/config.h"
#include "job/file/monitor.h"

#include <stdio.h>
#include <string.h>

/* The value of a field of the model file, or of the settings of all points, which override it; "" if
   neither has it. `model` is borrowed. */
static const char *field_of(const tr_config *model, const struct tr_string_list *set, const char *section,
                            const char *key)
{
    const tr_config *node = tr_config_get(tr_config_get(model, section), key);
    const char *value = node && tr_config_kind(node) == TR_CONFIG_SCALAR ? tr_config_text(node) : "";
    size_t length = strlen(section);
    for (int32_t i = 0; i < set->count; i++) {
        const char *at = set->item[i];
        if (strncmp(at, section, length) != 0 || at[length] != '.') continue;
        at += length + 1;
        if (strncmp(at, key, strlen(key)) == 0 && at[strlen(key)] == '=') value = at + strlen(key) + 1;
    }
    return value;
}

static bool has_axis(const struct tr_string_list *set, const char *path)
{
    for (int32_t i = 0; i < set->count; i++)
        if (strncmp(set->item[i], path, strlen(path)) == 0 && set->item[i][strlen(path)] == '=') return true;
    return false;
}

/* The seed of the split if points have several seeds: all are judged on the same rows. */
static void choose_split(const tr_config *model, struct cli_sweep_orders *orders)
{
    double share = 0;
    int64_t folds = orders->folds, seed;
    tr_text_double(field_of(model, orders->set, "data", "validation_split"), &share);
    if (folds == 0) tr_text_int64(field_of(model, orders->set, "data", "folds"), &folds);
    const tr_config *own = tr_config_get(model, "seed");
    bool several = orders->seeds > 1 || has_axis(orders->set, "seed"),
         given = *field_of(model, orders->set, "data", "split_seed") != '\0';
    if (tr_text_int64(own && tr_config_kind(own) == TR_CONFIG_SCALAR ? tr_config_text(own) : "1", &seed) ||
        orders->seeds > 1)
        seed = 1;
    if (orders->seed >= 0) seed = orders->seed;
    orders->split_seed = several && !given && (share > 0 || folds > 0) ? seed : -1;
}

static void choose_figure(const char *given, const tr_config *model, struct cli_sweep_orders *orders)
{
    const char *monitor = field_of(model, orders->set, "train", "monitor");
    const char *by = given ? given : *monitor ? monitor : NULL;
    snprintf(orders->by, sizeof orders->by, "%s", tr_monitor_figure(by));
}

tr_status cli_sweep_choose(const char *by, struct cli_sweep_orders *orders)
{
    tr_config *model = NULL;
    TR_TRY(tr_config_read(orders->model, &model));
    choose_split(model, orders);
    choose_figure(by, model, orders);
    tr_config_destroy(&model);
    return tr_monitor_check_name("--by", by ? by : orders->by);
}
