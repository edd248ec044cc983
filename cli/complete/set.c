#include "cli/complete/set.h"

#include "base/alloc.h"
#include "job/file/options.h"
#include "nn/adapters.h"
#include "nn/loss.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "strategy/class.h"

#include <string.h>

void cli_complete_choices(struct cli_candidates *out, const char *head, const struct tr_option *option)
{
    struct tr_choice choice;
    if (option->type == TR_OPTION_BOOL) {
        cli_candidates_join(out, head, "true", "", NULL);
        cli_candidates_join(out, head, "false", "", NULL);
    }
    for (int32_t i = 0; option->type == TR_OPTION_CHOICE && (choice = tr_option_choice(option, i)).name; i++)
        cli_candidates_join(out, head, choice.name, "", choice.help);
}

/* A key: alone with '=' after it, or once the word has that, its values. */
static void add_key(struct cli_candidates *out, const char *head, const struct tr_option *option)
{
    char *key = cli_candidates_need(out, tr_format("%s%s=", head, option->key));
    if (!key || option->type == TR_OPTION_NODE) {
        tr_free(key);
        return;
    }
    size_t length = strlen(key);
    if (strncmp(out->word, key, length) != 0) {
        cli_candidates_add(out, key, option->help);
    } else {
        cli_complete_choices(out, key, option);
        /* Without names to choose from: the default value. */
        bool named = option->type == TR_OPTION_CHOICE || option->type == TR_OPTION_BOOL;
        if (!named && option->fallback && *option->fallback && !strchr(option->fallback, ' '))
            cli_candidates_join(out, key, option->fallback, "", "default");
    }
    tr_free(key);
}

static void add_keys(struct cli_candidates *out, const char *head, const char *section,
                     const struct tr_option *table, int32_t count)
{
    char *path = cli_candidates_need(out, tr_format("%s%s", head, section));
    for (int32_t i = 0; path && i < count; i++) add_key(out, path, &table[i]);
    tr_free(path);
}

void cli_complete_setting(struct cli_candidates *out, const char *head)
{
    add_keys(out, head, "", tr_file_option_table, tr_file_option_count);
    add_keys(out, head, "data.", tr_data_option_table, tr_data_option_count);
    add_keys(out, head, "input.", tr_input_option_table, tr_input_option_count);
    add_keys(out, head, "loss.", tr_loss_options, tr_loss_option_count);
    add_keys(out, head, "adapters.", tr_adapters_options, tr_adapters_option_count);
    add_keys(out, head, "distill.", tr_distill_option_table, tr_distill_option_count);
    add_keys(out, head, "optimizer.", tr_optimizer_options, tr_optimizer_option_count);
    add_keys(out, head, "optimizer.schedule.", tr_schedule_options, tr_schedule_option_count);
    add_keys(out, head, "train.", tr_train_option_table, tr_train_option_count);
    char *own = cli_candidates_need(out, tr_format("%sstrategy=", head));
    if (own && strncmp(out->word, own, strlen(own)) != 0)
        cli_candidates_add(out, own, "how processes share the run");
    for (const struct tr_entry *const *entry = tr_strategies.entries; own && *entry; entry++) {
        char *section = cli_candidates_need(out, tr_format("strategy.%s.", (*entry)->name));
        if (strncmp(out->word, own, strlen(own)) == 0)
            cli_candidates_join(out, own, (*entry)->name, "", (*entry)->help);
        if (section) add_keys(out, head, section, (*entry)->options, (*entry)->option_count);
        tr_free(section);
    }
    tr_free(own);
}

/* Where the last part of a list begins: after its last comma. */
static size_t last_part(const char *text)
{
    const char *comma = strrchr(text, ',');
    return comma ? (size_t)(comma + 1 - text) : 0;
}

/* The strategy of the options at the end of `text`: the last part without '='. */
static const struct tr_entry *named_last(const char *text)
{
    const struct tr_entry *found = NULL;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        for (const struct tr_entry *const *entry = tr_strategies.entries; *entry; entry++)
            if (strlen((*entry)->name) == length && memcmp((*entry)->name, at, length) == 0) found = *entry;
        at += length + (at[length] == ',');
    }
    return found;
}

void cli_complete_strategy(struct cli_candidates *out, const char *head, bool list)
{
    size_t skip = strlen(head), last = last_part(out->word + skip);
    char *before = cli_candidates_need(out, tr_format("%.*s", (int)(skip + last), out->word));
    if (!before) return;
    const struct tr_entry *entry = named_last(before + skip);
    if (last > 0 && entry) add_keys(out, before, "", entry->options, entry->option_count);
    if (last == 0 || list)
        for (const struct tr_entry *const *one = tr_strategies.entries; *one; one++)
            cli_candidates_join(out, before, (*one)->name, "", (*one)->help);
    if (last == 0 && list) cli_candidates_join(out, before, "all", "", "all strategies");
    tr_free(before);
}
