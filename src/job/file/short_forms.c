#include "job/file/short_forms.h"

#include "base/text/text.h"
#include "optim/schedule.h"

#include <string.h>

/* Most steps of a path, "layers[2].conv.weights". */
#define STEPS_MOST 5
struct steps {
    char text[TR_CONFIG_PATH_SIZE];
    const char *step[STEPS_MOST]; /* "layers", "2", "conv", "weights" */
    int count;                    /* STEPS_MOST: so many or more */
};

static void split(const tr_config *node, struct steps *out)
{
    char *rest = out->text, *step;
    out->count = 0;
    tr_config_path(node, out->text, sizeof out->text);
    while (out->count < STEPS_MOST && (step = strsep(&rest, ".[]")))
        if (*step) out->step[out->count++] = step;
}

static bool is(const struct steps *steps, int count, const char *first)
{
    return steps->count == count && strcmp(steps->step[0], first) == 0;
}

/* Whether a form whose first key is *key. */
static enum tr_config_short by_first(const char *first, const char **key)
{
    *key = first;
    return first ? TR_CONFIG_FIRST_KEY : TR_CONFIG_NO_SHORT;
}

/* The first key of sections that are neither lists nor choices between classes. */
static const char *first_of_section(const char *name)
{
    const struct {
        const char *name, *key;
    } sections[] = {
        {"adapters", tr_adapters_options[0].key},   {"distill", tr_distill_option_table[0].key},
        {"input", tr_input_option_table[0].key},    {"loss", tr_loss_options[0].key},
        {"optimizer", tr_optimizer_options[0].key}, {"train", tr_train_option_table[0].key},
    };
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (strcmp(name, sections[i].name) == 0) return sections[i].key;
    return NULL;
}

static const char *first_of_format(const char *name)
{
    const struct tr_entry *entry = tr_registry_find(&tr_source_formats, name);
    return entry && entry->option_count > 0 ? entry->options[0].key : NULL;
}

/* A layer without options still has a name. */
static const char *first_of_layer(const char *name)
{
    const struct tr_entry *entry = tr_registry_find(&tr_layer_classes, name);
    if (!entry) return NULL;
    return entry->option_count > 0 ? entry->options[0].key : "name";
}

/* Sections in a layer's options are initializers; a number is one, too, and has no name. */
static enum tr_config_short of_initializer(const struct steps *steps, const tr_config *node)
{
    const struct tr_entry *class = tr_registry_find(&tr_layer_classes, steps->step[2]);
    double number;
    const char *text = tr_config_text(node);
    if (text && !tr_text_double(text, &number)) return TR_CONFIG_NO_SHORT;
    for (int32_t i = 0; class && i < class->option_count; i++)
        if (class->options[i].type == TR_OPTION_NODE && strcmp(class->options[i].key, steps->step[3]) == 0)
            return TR_CONFIG_BY_NAME;
    return TR_CONFIG_NO_SHORT;
}

enum tr_config_short tr_job_short_form(void *user, const tr_config *node, const char **key)
{
    const struct tr_job_settings *settings = user;
    struct steps steps;
    split(node, &steps);
    if (is(&steps, 1, "strategy") || is(&steps, 2, "data") || is(&steps, 2, "layers"))
        return TR_CONFIG_BY_NAME;
    if (is(&steps, 4, "layers")) return of_initializer(&steps, node);
    if (is(&steps, 3, "layers")) return by_first(first_of_layer(steps.step[2]), key);
    if (is(&steps, 3, "data")) return by_first(first_of_format(steps.step[2]), key);
    if (is(&steps, 2, "strategy") && settings->first_of_strategy)
        return by_first(settings->first_of_strategy(steps.step[1]), key);
    if (is(&steps, 2, "optimizer") && strcmp(steps.step[1], "schedule") == 0)
        return by_first(tr_schedule_options[0].key, key);
    if (is(&steps, 1, "loss") && tr_config_kind(node) == TR_CONFIG_SEQUENCE) return TR_CONFIG_NO_SHORT;
    return steps.count == 1 ? by_first(first_of_section(steps.step[0]), key) : TR_CONFIG_NO_SHORT;
}
