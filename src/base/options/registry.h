/* Registries: everything of one kind that is chosen by name (layers, losses, strategies, formats, devices,
 * ...).
 *
 *     struct tr_cat_class {
 *         TR_ENTRY;
 *         void (*purr)(void);
 *     };
 *     const struct tr_cat_class cat_tabby = {.name = "tabby", .help = "a striped cat", .purr = ...};
 *
 *     static const struct tr_entry *const cats[] = {&cat_tabby.entry, NULL};
 *     const struct tr_registry tr_cats = {.kind = "cat", .entries = cats};
 *
 * To add an entry: a file that fills the kind's structure, and a line in the kind's table. Parsing,
 * checks, the manual and "did you mean" follow from it.
 *
 * Registries are constant: any thread.
 */
#ifndef TR_BASE_REGISTRY_H
#define TR_BASE_REGISTRY_H

#include "base/options/option.h"

#define TR_ENTRY_MEMBERS                                                                                     \
    const char *name;                /* the name that chooses it */                                          \
    const char *help;                /* a sentence without capital and point */                              \
    const struct tr_option *options; /* NULL: none */                                                        \
    int32_t option_count;                                                                                    \
    size_t options_size /* of the struct that the table fills */

struct tr_entry {
    TR_ENTRY_MEMBERS;
};

/* The first member of a kind's structure: the members of all kinds, as `entry` and by their own names. An
   entry's address is that of its structure. */
#define TR_ENTRY                                                                                             \
    union {                                                                                                  \
        struct tr_entry entry;                                                                               \
        struct {                                                                                             \
            TR_ENTRY_MEMBERS;                                                                                \
        };                                                                                                   \
    }

/* The members that describe the options of an entry: an array, and the type of the struct that it fills. */
#define TR_ENTRY_OPTIONS(table, type)                                                                        \
    .options = (table), .option_count = TR_OPTION_COUNT(table), .options_size = sizeof(type)

#define TR_REGISTRY_MAX 128 /* entries */

struct tr_registry {
    const char *kind;                      /* in messages: "layer" */
    const char *form;                      /* its form in a model file; NULL: it is not in model files */
    const char *fallback;                  /* the default; NULL: required */
    const struct tr_entry *const *entries; /* ends with NULL */
};

int32_t tr_registry_count(const struct tr_registry *registry);
/* The entry called `name`, NULL if there is none. */
const struct tr_entry *tr_registry_find(const struct tr_registry *registry, const char *name);
/* The same, or TR_ENOTFOUND with all choices and the nearest one. */
tr_status tr_registry_get(const struct tr_registry *registry, const char *name, const struct tr_entry **out);
/* The entry that `node` chooses (NULL: no choice was written): `name` or `{name: options}`; *options is
   borrowed from the tree, NULL where there are none. TR_EINVAL with the place, all choices and the nearest
   one. */
tr_status tr_registry_choose(const struct tr_registry *registry, const tr_config *node,
                             const struct tr_entry **out, const tr_config **options);
/* The same, and reads the options into a fresh struct: *options is returned, free with
   tr_entry_release(). TR_EINVAL, TR_ENOMEM. */
tr_status tr_registry_read(const struct tr_registry *registry, const tr_config *node,
                           const struct tr_entry **out, void **options);
/* Frees options and all that they own. Accepts NULL. */
void tr_entry_release(const struct tr_entry *entry, void *options);

#endif
