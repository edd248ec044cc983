#include "base/options/registry.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/foreign.h"

#include <assert.h>
#include <string.h>

struct tr_choice tr_option_choice(const struct tr_option *option, int32_t index)
{
    if (!option->registry) return option->choices[index];
    const struct tr_entry *entry = option->registry->entries[index];
    return entry ? (struct tr_choice){entry->name, index, entry->help} : (struct tr_choice){0};
}

int32_t tr_registry_count(const struct tr_registry *registry)
{
    int32_t count = 0;
    while (registry->entries[count]) count++;
    return count;
}

const struct tr_entry *tr_registry_find(const struct tr_registry *registry, const char *name)
{
    for (const struct tr_entry *const *entry = registry->entries; *entry; entry++)
        if (strcmp((*entry)->name, name) == 0) return *entry;
    return NULL;
}

/* Fails because `name` is not an entry; the place is that of `node`, which may be NULL. Returns `status`,
   or TR_ENOMEM. */
static tr_status refuse(const struct tr_registry *registry, tr_status status, const tr_config *node,
                        const char *name)
{
    const char *names[TR_REGISTRY_MAX];
    int32_t count = tr_registry_count(registry);
    assert(count <= TR_REGISTRY_MAX);
    for (int32_t i = 0; i < count; i++) names[i] = registry->entries[i]->name;
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text, "%s ", registry->kind);
    tr_text_add_unknown(&text, name, names, count);
    if (node && registry->form && !tr_foreign_meant(name, names, count))
        tr_text_addf(&text, "; write %s", registry->form);
    if (text.failed)
        status = TR_ENOMEM;
    else if (node)
        tr_config_fail(status, node, "%s", text.bytes);
    else
        tr_fail(status, "%s", text.bytes);
    tr_text_release(&text);
    return status;
}

tr_status tr_registry_get(const struct tr_registry *registry, const char *name, const struct tr_entry **out)
{
    *out = tr_registry_find(registry, name);
    return *out ? TR_OK : refuse(registry, TR_ENOTFOUND, NULL, name);
}

tr_status tr_registry_choose(const struct tr_registry *registry, const tr_config *node,
                             const struct tr_entry **out, const tr_config **options)
{
    const char *name = node ? tr_config_text(node) : NULL;
    *options = NULL;
    if (!node || tr_config_kind(node) == TR_CONFIG_NULL) {
        name = registry->fallback;
    } else if (tr_config_kind(node) == TR_CONFIG_MAPPING && tr_config_count(node) == 1) {
        name = tr_config_key(node, 0);
        *options = tr_config_at(node, 0);
    }
    if (!name)
        return node ? tr_config_fail(TR_EINVAL, node, "%s stands where a choice of %s is expected; write %s",
                                     tr_config_kind_name(node), registry->kind, registry->form)
                    : tr_fail(TR_EINVAL, "no %s is given; write %s", registry->kind, registry->form);
    *out = tr_registry_find(registry, name);
    return *out ? TR_OK : refuse(registry, TR_EINVAL, node, name);
}

tr_status tr_registry_read(const struct tr_registry *registry, const tr_config *node,
                           const struct tr_entry **out, void **options)
{
    const tr_config *given;
    *options = NULL;
    TR_TRY(tr_registry_choose(registry, node, out, &given));
    const struct tr_entry *entry = *out;
    void *made = tr_alloc_zero(1, entry->options_size + 1);
    if (!made) return TR_ENOMEM;
    tr_status status = tr_options_defaults(entry->options, entry->option_count, made);
    if (status == TR_OK)
        status = tr_options_read(entry->options, entry->option_count, given, entry->name, made);
    if (status != TR_OK) {
        tr_entry_release(entry, made);
        return status;
    }
    *options = made;
    return TR_OK;
}

void tr_entry_release(const struct tr_entry *entry, void *options)
{
    if (options) tr_options_release(entry->options, entry->option_count, options);
    tr_free(options);
}
