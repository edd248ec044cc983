#include "cli/train/profile.h"

#include "cli/terminal/output.h"

#include "base/text/json.h"
#include "base/text/table.h"

#include <inttypes.h>

static const char *const cause_names[TR_CAUSES] = {
    "forward", "backward", "update", "communication", "waiting", "input", "evaluation", "checkpoint", "other",
};

static double rate_of(double operations, double seconds)
{
    return seconds > 0 ? operations / seconds : 0;
}

/* "12.3", or "-" for nothing. */
static void figure_cell(struct tr_table *table, double value, const char *format)
{
    if (value > 0)
        tr_table_cell(table, format, value);
    else
        tr_table_cell(table, "-");
}

static void layer_row(struct tr_table *table, const struct tr_train_profile *profile,
                      const struct tr_profile_layer *layer, double all)
{
    char size[TR_TEXT_NUMBER_SIZE];
    double seconds = layer->forward_seconds + layer->backward_seconds;
    double rate = rate_of(layer->forward_operations + layer->backward_operations, seconds);
    tr_table_cell(table, "%s", layer->name);
    tr_table_cell(table, "%" PRId64, layer->calls);
    tr_table_cell(table, "%.3f", layer->forward_seconds);
    tr_table_cell(table, "%.3f", layer->backward_seconds);
    figure_cell(table, all > 0 ? 100 * seconds / all : 0, "%.1f");
    figure_cell(table, rate * 1e-9, "%.1f");
    figure_cell(table, 100 * rate_of(rate, profile->peak), "%.0f");
    tr_table_cell(table, "%s", tr_text_from_bytes(layer->parameters * (int64_t)sizeof(float), size));
    tr_table_cell(table, "%s", tr_text_from_bytes(layer->bytes, size));
}

static void add_layers(const struct tr_train_profile *profile, struct tr_text *text)
{
    struct tr_table table;
    double all = 0;
    for (int i = 0; i < profile->layer_count; i++)
        all += profile->layers[i].forward_seconds + profile->layers[i].backward_seconds;
    tr_table_begin(&table, "lrrrrrrrr");
    static const char *const heads[] = {"layer",   "calls",     "forward s",  "backward s", "% of layers",
                                        "GFLOP/s", "% of peak", "parameters", "output"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) tr_table_cell(&table, "%s", heads[i]);
    for (int i = 0; i < profile->layer_count; i++) layer_row(&table, profile, &profile->layers[i], all);
    tr_table_finish(&table, text);
    if (profile->peak > 0)
        tr_text_addf(text, "peak %.1f GFLOP/s for each process, as measured at the end\n",
                     profile->peak * 1e-9);
}

static double sum_of(const struct tr_profile_rank *rank)
{
    double sum = 0;
    for (int i = 0; i < TR_CAUSES; i++) sum += rank->seconds[i];
    return sum;
}

static void add_causes(const struct tr_train_profile *profile, struct tr_text *text)
{
    struct tr_table table;
    char columns[TR_CAUSES + 3] = "l";
    for (int i = 0; i <= TR_CAUSES; i++) columns[i + 1] = 'r';
    columns[TR_CAUSES + 2] = 0;
    tr_table_begin(&table, columns);
    tr_table_cell(&table, "seconds");
    for (int i = 0; i < TR_CAUSES; i++) tr_table_cell(&table, "%s", cause_names[i]);
    tr_table_cell(&table, "in all");
    for (int r = 0; r < profile->ranks; r++) {
        const struct tr_profile_rank *rank = &profile->rank[r];
        tr_table_cell(&table, "rank %d", r);
        for (int i = 0; i < TR_CAUSES; i++) figure_cell(&table, rank->seconds[i], "%.3f");
        tr_table_cell(&table, "%.3f", sum_of(rank));
    }
    tr_table_finish(&table, text);
}

/* Names the process that the others waited for most, if the time is notable. */
static void add_straggler(const struct tr_train_profile *profile, struct tr_text *text)
{
    int slowest = 0;
    double all = 0, waited = 0;
    for (int r = 0; r < profile->ranks; r++) {
        const struct tr_profile_rank *rank = &profile->rank[r];
        if (rank->awaited > profile->rank[slowest].awaited) slowest = r;
        all += sum_of(rank);
        waited += rank->seconds[TR_CAUSE_WAITING];
    }
    if (profile->ranks < 2 || all <= 0) return;
    tr_text_addf(text, "waiting took %.1f %%", 100 * waited / all);
    if (profile->rank[slowest].awaited > 0)
        tr_text_addf(text, ", most of it for rank %d (%.3f s)", slowest, profile->rank[slowest].awaited);
    tr_text_add(text, "\n");
}

void cli_profile_text(const struct tr_train_profile *profile, struct tr_text *text)
{
    add_layers(profile, text);
    tr_text_add(text, "\n");
    add_causes(profile, text);
    add_straggler(profile, text);
}

static void json_layers(struct tr_json_writer *json, const struct tr_train_profile *profile)
{
    tr_json_open_array(json, "layers");
    for (int i = 0; i < profile->layer_count; i++) {
        const struct tr_profile_layer *layer = &profile->layers[i];
        tr_json_open_object(json, NULL);
        tr_json_text(json, "name", layer->name);
        tr_json_integer(json, "calls", layer->calls);
        tr_json_double(json, "forward_seconds", layer->forward_seconds);
        tr_json_double(json, "backward_seconds", layer->backward_seconds);
        tr_json_double(json, "forward_operations", layer->forward_operations);
        tr_json_double(json, "backward_operations", layer->backward_operations);
        tr_json_integer(json, "parameters", layer->parameters);
        tr_json_integer(json, "output_bytes", layer->bytes);
        tr_json_close_object(json);
    }
    tr_json_close_array(json);
}

static void json_ranks(struct tr_json_writer *json, const struct tr_train_profile *profile)
{
    tr_json_open_array(json, "ranks");
    for (int r = 0; r < profile->ranks; r++) {
        tr_json_open_object(json, NULL);
        for (int i = 0; i < TR_CAUSES; i++) tr_json_double(json, cause_names[i], profile->rank[r].seconds[i]);
        tr_json_double(json, "awaited", profile->rank[r].awaited);
        tr_json_close_object(json);
    }
    tr_json_close_array(json);
}

void cli_profile_json(const struct tr_train_profile *profile)
{
    struct tr_json_writer json;
    tr_json_begin(&json, false);
    tr_json_text(&json, "event", "profile");
    tr_json_double(&json, "peak", profile->peak);
    json_layers(&json, profile);
    json_ranks(&json, profile);
    cli_print_json(&json);
}
