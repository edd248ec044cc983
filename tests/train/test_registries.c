/* Everything that is chosen by name: a name with one wrong letter is refused with the right one, wherever it
 * comes from. */
#include "base/alloc.h"
#include "comm/transport.h"
#include "data/source.h"
#include "device/device.h"
#include "export/formats.h"
#include "job/file/options.h"
#include "nn/adapters.h"
#include "nn/model.h"
#include "optim/initializer.h"
#include "optim/optimizer.h"
#include "strategy/class.h"
#include "train/setup/join.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Builds a model of vectors of 4 from a text in which `name` takes the place of %s; it must fail. */
static tr_status build(const char *format, const char *name)
{
    char text[256];
    tr_config *root;
    struct tr_model *model;
    struct tr_model_input input = {{1, {4}, false}, 0};
    snprintf(text, sizeof text, format, name);
    assert_int_equal(tr_config_parse(text, strlen(text), "m.yaml", &root), TR_OK);
    tr_status status = tr_model_build(root, &input, &model);
    if (status == TR_OK) tr_model_destroy(&model);
    tr_config_destroy(&root);
    return status;
}

static tr_status layer(const char *name)
{
    return build("layers: [dense: 2, %s]", name);
}

static tr_status loss(const char *name)
{
    return build("{layers: [dense: 2], loss: {kind: %s}}", name);
}

static tr_status initializer(const char *name)
{
    return build("layers: [dense: {units: 2, weights: %s}]", name);
}

static tr_status rule(const char *name)
{
    char text[64];
    tr_config *root;
    struct tr_optimizer optimizer;
    snprintf(text, sizeof text, "{rule: %s, rate: 1}", name);
    assert_int_equal(tr_config_parse(text, strlen(text), "o.yaml", &root), TR_OK);
    tr_status status = tr_optimizer_read(root, 10, &optimizer);
    tr_config_destroy(&root);
    return status;
}

static tr_status strategy(const char *name)
{
    tr_config *root;
    const char *found;
    bool asynchronous;
    assert_int_equal(tr_config_parse(name, strlen(name), "s.yaml", &root), TR_OK);
    tr_status status = tr_strategy_peek(root, &found, &asynchronous);
    tr_config_destroy(&root);
    return status;
}

static tr_status source(const char *name)
{
    char text[64];
    tr_source *opened;
    snprintf(text, sizeof text, "{%s: {}}", name);
    return tr_source_open(text, NULL, NULL, &opened);
}

static tr_status device(const char *name)
{
    tr_device *made;
    return tr_device_create(name, 1, NULL, &made);
}

static tr_status transport(const char *name)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    tr_comm *comm;
    settings.transport = name;
    return tr_train_join(&settings, &comm);
}

/* An exporter asks the registry first; tests/export shows that. */
static tr_status format(const char *name)
{
    const struct tr_entry *entry;
    return tr_registry_get(&tr_export_formats, name, &entry);
}

static const struct {
    const struct tr_registry *registry;
    tr_status (*choose)(const char *name);
} registries[] = {
    {&tr_layer_classes, layer}, {&tr_loss_classes, loss},    {&tr_initializers, initializer},
    {&tr_rules, rule},          {&tr_strategies, strategy},  {&tr_source_formats, source},
    {&tr_device_kinds, device}, {&tr_transports, transport}, {&tr_export_formats, format},
};
#define REGISTRIES (sizeof registries / sizeof registries[0])

static void a_wrong_letter_is_told_with_the_right_name(void **state)
{
    (void)state;
    for (size_t r = 0; r < REGISTRIES; r++)
        for (const struct tr_entry *const *entry = registries[r].registry->entries; *entry; entry++) {
            char name[64], question[96];
            size_t length = strlen((*entry)->name);
            snprintf(name, sizeof name, "%s", (*entry)->name);
            if (length < 3)
                strcat(name, "q");
            else
                name[length / 2] = 'q';
            snprintf(question, sizeof question, "did you mean \"%s\"?", (*entry)->name);
            tr_status status = registries[r].choose(name);
            if (status != TR_EINVAL && status != TR_ENOTFOUND)
                fail_msg("%s \"%s\": %s", registries[r].registry->kind, name, tr_status_name(status));
            if (!strstr(tr_error_message(), question))
                fail_msg("%s \"%s\": %s", registries[r].registry->kind, name, tr_error_message());
            /* All choices are listed. */
            for (const struct tr_entry *const *other = registries[r].registry->entries; *other; other++)
                assert_non_null(strstr(tr_error_message(), (*other)->name));
        }
}

static void entries_can_be_told_apart_and_described(void **state)
{
    (void)state;
    for (size_t r = 0; r < REGISTRIES; r++) {
        const struct tr_registry *registry = registries[r].registry;
        assert_true(tr_registry_count(registry) > 0 && tr_registry_count(registry) <= TR_REGISTRY_MAX);
        if (registry->fallback) assert_non_null(tr_registry_find(registry, registry->fallback));
        for (const struct tr_entry *const *entry = registry->entries; *entry; entry++) {
            if (tr_registry_find(registry, (*entry)->name) != *entry)
                fail_msg("two entries of kind %s are called \"%s\"; rename one", registry->kind,
                         (*entry)->name);
            if (!(*entry)->help || !*(*entry)->help)
                fail_msg("%s \"%s\" has no help; give it a sentence where it is defined", registry->kind,
                         (*entry)->name);
        }
    }
}

/* Lists for people are in the order of the alphabet. */
static void long_lists_are_sorted(void **state)
{
    (void)state;
    static const struct tr_registry *const sorted[] = {&tr_layer_classes, &tr_source_formats, &tr_strategies};
    for (size_t r = 0; r < sizeof sorted / sizeof sorted[0]; r++)
        for (int i = 1; sorted[r]->entries[i]; i++)
            if (strcmp(sorted[r]->entries[i - 1]->name, sorted[r]->entries[i]->name) >= 0)
                fail_msg("%s \"%s\" stands behind \"%s\"; sort the table", sorted[r]->kind,
                         sorted[r]->entries[i]->name, sorted[r]->entries[i - 1]->name);
}

/* ---- numbers that are nearly 0 ---- */

/* Larger than what any table fills. */
static _Alignas(16) char object[1 << 16];

static int refuse_tiny(const char *where, const struct tr_option *table, int32_t count)
{
    static const char *const tiny[] = {"1e-320", "1e-40", "1/1e39"};
    int found = 0;
    for (int32_t i = 0; i < count; i++) {
        const struct tr_option *option = &table[i];
        bool real = option->type == TR_OPTION_FLOAT || option->type == TR_OPTION_DOUBLE ||
                    option->type == TR_OPTION_FLOAT_LIST;
        if (!real || option->least < 0 || (option->least == 0 && option->most == 0)) continue;
        for (size_t k = 0; k < sizeof tiny / sizeof tiny[0]; k++)
            if (tr_option_set(option, tiny[k], option->key, object) != TR_EINVAL)
                fail_msg("%s: \"%s\" takes %s, which is 0 to a 32-bit float, or nearly so", where,
                         option->key, tiny[k]);
        found++;
    }
    return found;
}

/* A rate of 1e-320 is 0 where it is applied, and a network that learns nothing looks like one that cannot. */
static void numbers_above_0_are_not_0_as_floats(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const struct tr_option *table;
        const int32_t *count;
    } tables[] = {
        {"every layer", tr_layer_common_options, &tr_layer_common_option_count},
        {"data", tr_data_option_table, &tr_data_option_count},
        {"input", tr_input_option_table, &tr_input_option_count},
        {"loss", tr_loss_options, &tr_loss_option_count},
        {"adapters", tr_adapters_options, &tr_adapters_option_count},
        {"distill", tr_distill_option_table, &tr_distill_option_count},
        {"optimizer", tr_optimizer_options, &tr_optimizer_option_count},
        {"schedule", tr_schedule_options, &tr_schedule_option_count},
        {"train", tr_train_option_table, &tr_train_option_count},
    };
    int found = 0;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        found += refuse_tiny(tables[i].name, tables[i].table, *tables[i].count);
    for (size_t r = 0; r < REGISTRIES; r++)
        for (const struct tr_entry *const *entry = registries[r].registry->entries; *entry; entry++)
            found += refuse_tiny((*entry)->name, (*entry)->options, (*entry)->option_count);
    assert_true(found > 30);
    assert_int_equal(tr_option_set(&tr_optimizer_options[1], "1e-320", "rate", object), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "rate: 1e-320 is too small"));
    assert_int_equal(tr_option_set(&tr_optimizer_options[1], "1.2e-38", "rate", object), TR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_letter_is_told_with_the_right_name),
        cmocka_unit_test(entries_can_be_told_apart_and_described),
        cmocka_unit_test(long_lists_are_sorted),
        cmocka_unit_test(numbers_above_0_are_not_0_as_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
