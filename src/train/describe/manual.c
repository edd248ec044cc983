/* The reference of the model file, from the tables that read it. */
#include "trireme/inspect.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/table.h"
#include "data/source.h"
#include "nn/adapters.h"
#include "nn/model.h"
#include "job/file/options.h"
#include "strategy/class.h"

#include <stdio.h>

/* ---- Markdown ---- */

static tr_status add_options(struct tr_text *text, const char *title, const char *about,
                             const struct tr_option *table, int32_t count)
{
    char *section;
    TR_TRY(tr_options_markdown(title, table, count, &section));
    /* The paragraph goes between the heading and the table. */
    char *body = section;
    while (*body && *body != '\n') body++;
    tr_text_add_bytes(text, section, (size_t)(body - section));
    if (about) tr_text_addf(text, "\n\n%s", about);
    tr_text_addf(text, "%s\n", body);
    tr_free(section);
    return TR_OK;
}

/* The sentence "the definition of ..." with a capital and a point. */
static const char *sentence(const char *help, char buffer[512])
{
    snprintf(buffer, 512, "%s.", help);
    if (buffer[0] >= 'a' && buffer[0] <= 'z') buffer[0] = (char)(buffer[0] - 'a' + 'A');
    return buffer;
}

/* A section for each. */
static tr_status add_entries(struct tr_text *text, const struct tr_registry *registry)
{
    char buffer[512];
    for (const struct tr_entry *const *entry = registry->entries; *entry; entry++)
        TR_TRY(add_options(text, (*entry)->name, sentence((*entry)->help, buffer), (*entry)->options,
                           (*entry)->option_count));
    return TR_OK;
}

static tr_status add_layers(struct tr_text *text)
{
    tr_text_add(text, "## Layers\n\n"
                      "An item of `layers:` is the name of a kind, alone (`- flatten`) or with options "
                      "(`- dense: {units: 10}`); a single value stands for the first option (`- dense: 10`). "
                      "Every layer takes these options in addition to its own:\n\n");
    TR_TRY(add_options(text, "every layer", NULL, tr_layer_common_options, tr_layer_common_option_count));
    return add_entries(text, &tr_layer_classes);
}

static tr_status add_formats(struct tr_text *text)
{
    tr_text_add(text,
                "## Data formats\n\n"
                "An entry of `data:` is a mapping with the name of a format as its only key. Relative paths "
                "start at the directory of the model file.\n\n");
    return add_entries(text, &tr_source_formats);
}

static tr_status add_strategies(struct tr_text *text)
{
    tr_text_add(
        text,
        "## Strategies\n\n"
        "The entry `strategy:` is the name of a strategy, alone (`strategy: pipeline`) or with options "
        "(`strategy: {pipeline: {stages: 2}}`). It says how several processes share the run; `trireme train` "
        "takes another as `pipeline,stages=2`. `docs/explanation/strategies.md` explains them.\n\n");
    return add_entries(text, &tr_strategies);
}

static tr_status add_all(struct tr_text *text)
{
    char *initializers;
    tr_text_add(text, "## Sections\n\n");
    TR_TRY(add_options(text, "The file", NULL, tr_file_option_table, tr_file_option_count));
    TR_TRY(add_options(text, "data", NULL, tr_data_option_table, tr_data_option_count));
    TR_TRY(add_options(text, "input", NULL, tr_input_option_table, tr_input_option_count));
    TR_TRY(add_options(text, "loss", NULL, tr_loss_options, tr_loss_option_count));
    TR_TRY(add_options(text, "adapters", NULL, tr_adapters_options, tr_adapters_option_count));
    TR_TRY(add_options(text, "distill", NULL, tr_distill_option_table, tr_distill_option_count));
    TR_TRY(add_options(text, "optimizer", NULL, tr_optimizer_options, tr_optimizer_option_count));
    TR_TRY(add_options(text, "optimizer.schedule", NULL, tr_schedule_options, tr_schedule_option_count));
    TR_TRY(add_options(text, "train", NULL, tr_train_option_table, tr_train_option_count));
    TR_TRY(add_strategies(text));
    TR_TRY(add_formats(text));
    TR_TRY(add_layers(text));
    TR_TRY(tr_initializer_markdown(&initializers));
    tr_text_add(text, initializers);
    tr_free(initializers);
    return TR_OK;
}

tr_status tr_manual(char **markdown)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_status status = add_all(&text);
    if (status == TR_OK) status = tr_text_finish(&text, markdown);
    tr_text_release(&text);
    return status;
}

/* ---- the list of layers ---- */

static void list_option(struct tr_table *table, const struct tr_option *option)
{
    struct tr_text choices = TR_TEXT_INIT;
    struct tr_choice choice;
    for (int32_t i = 0; option->type == TR_OPTION_CHOICE && (choice = tr_option_choice(option, i)).name; i++)
        tr_text_addf(&choices, "%s%s", i ? ", " : ": ", choice.name);
    tr_table_cell(table, "  %s", option->key);
    tr_table_cell(table, "%s%s", option->help, choices.bytes ? choices.bytes : "");
    if (!option->fallback)
        tr_table_cell(table, "required");
    else
        tr_table_cell(table, "%s", option->fallback);
    if (choices.failed) table->cells.failed = true;
    tr_text_release(&choices);
}

tr_status tr_layers(char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    for (int i = 0; tr_layer_classes.entries[i]; i++) {
        const struct tr_entry *entry = tr_layer_classes.entries[i];
        tr_text_addf(&text, "%s%s: %s\n", i ? "\n" : "", entry->name, entry->help);
        struct tr_table table;
        tr_table_begin(&table, "lll");
        for (int32_t k = 0; k < entry->option_count; k++) list_option(&table, &entry->options[k]);
        tr_table_finish(&table, &text);
    }
    return tr_text_finish(&text, out);
}
