/* The names of other programs: each of ours that they are translated to is there, and none stands for itself.
 * A table that names a key nobody has, or a path that leads nowhere, would send people on to the next
 * refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/program/commands.h"

#include "base/text/foreign.h"
#include "data/source.h"
#include "device/device.h"
#include "job/file/options.h"
#include "nn/adapters.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "optim/initializer.h"
#include "optim/optimizer.h"
#include "strategy/class.h"

static bool is_among(const struct tr_option *table, int32_t count, const char *word)
{
    for (int32_t i = 0; i < count; i++) {
        struct tr_choice choice;
        if (strcmp(table[i].key, word) == 0) return true;
        for (int32_t k = 0;
             table[i].type == TR_OPTION_CHOICE && (choice = tr_option_choice(&table[i], k)).name; k++)
            if (strcmp(choice.name, word) == 0) return true;
    }
    return false;
}

static bool is_entry(const struct tr_registry *registry, const char *word)
{
    for (const struct tr_entry *const *entry = registry->entries; *entry; entry++)
        if (strcmp((*entry)->name, word) == 0 || is_among((*entry)->options, (*entry)->option_count, word))
            return true;
    return false;
}

/* The sections of a model file. */
static const struct section {
    const char *path;
    const struct tr_option *table;
    const int32_t *count;
} sections[] = {
    {"", tr_file_option_table, &tr_file_option_count},
    {"data", tr_data_option_table, &tr_data_option_count},
    {"input", tr_input_option_table, &tr_input_option_count},
    {"loss", tr_loss_options, &tr_loss_option_count},
    {"adapters", tr_adapters_options, &tr_adapters_option_count},
    {"distill", tr_distill_option_table, &tr_distill_option_count},
    {"optimizer", tr_optimizer_options, &tr_optimizer_option_count},
    {"optimizer.schedule", tr_schedule_options, &tr_schedule_option_count},
    {"train", tr_train_option_table, &tr_train_option_count},
    {NULL, tr_layer_common_options, &tr_layer_common_option_count},
};
#define SECTIONS (sizeof sections / sizeof sections[0])

static bool is_command_option(const char *word)
{
    for (int i = 0; cli_commands[i]; i++)
        if (is_among(cli_commands[i]->options, cli_commands[i]->option_count, word)) return true;
    return false;
}

static bool is_word(const char *word)
{
    static const struct tr_registry *const registries[] = {&tr_layer_classes, &tr_loss_classes,
                                                           &tr_strategies,    &tr_source_formats,
                                                           &tr_device_kinds,  &tr_initializers};
    for (size_t i = 0; i < SECTIONS; i++)
        if (is_among(sections[i].table, *sections[i].count, word)) return true;
    for (size_t i = 0; i < sizeof registries / sizeof registries[0]; i++)
        if (is_entry(registries[i], word)) return true;
    return is_command_option(word);
}

static bool is_path(const char *path)
{
    const char *point = strrchr(path, '.');
    size_t length = (size_t)(point - path);
    for (size_t i = 0; i < SECTIONS; i++)
        if (sections[i].path && strlen(sections[i].path) == length &&
            memcmp(sections[i].path, path, length) == 0 &&
            is_among(sections[i].table, *sections[i].count, point + 1))
            return true;
    return false;
}

static void test_every_name_leads_somewhere(void **state)
{
    (void)state;
    int count = 0;
    for (const struct tr_foreign *name = tr_foreign_names; name->theirs; name++, count++) {
        bool there = strchr(name->ours, '.') ? is_path(name->ours) : is_word(name->ours);
        if (!there) fail_msg("\"%s\" leads to \"%s\", which there is not", name->theirs, name->ours);
        if (strcmp(name->theirs, name->ours) == 0) fail_msg("\"%s\" stands for itself", name->theirs);
        for (const struct tr_foreign *other = tr_foreign_names; other < name; other++)
            if (strcmp(other->theirs, name->theirs) == 0 && strcmp(other->ours, name->ours) == 0)
                fail_msg("\"%s\" leads to \"%s\" twice", name->theirs, name->ours);
    }
    assert_true(count > 200);
}

/* What is meant follows from the words that are allowed. */
static void test_the_allowed_words_decide(void **state)
{
    (void)state;
    static const char *const conv[] = {"filters", "kernel", "stride"}, *const pool[] = {"size", "stride"},
                             *const dense[] = {"units", "activation"};
    assert_string_equal(tr_foreign_meant("kernel_size", conv, 3), "kernel");
    assert_string_equal(tr_foreign_meant("kernel_size", pool, 2), "size");
    assert_null(tr_foreign_word("kernel_size", dense, 2));
    assert_string_equal(tr_foreign_meant("Out-Channels", conv, 3),
                        "filters");                                    /* case and joints do not matter */
    assert_string_equal(tr_foreign_meant("unist", dense, 2), "units"); /* a slip of the fingers */
    assert_null(tr_foreign_meant("zebra", dense, 2));
    assert_string_equal(tr_foreign_path("LearningRate"), "optimizer.rate");
    assert_null(tr_foreign_path("zebra"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_name_leads_somewhere),
        cmocka_unit_test(test_the_allowed_words_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
