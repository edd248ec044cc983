/* Objects: setting defaults, and reading from texts with several values and from trees. */
#include "base/options/table.h"

#include "base/fail.h"
#include "base/text/foreign.h"

#include <assert.h>
#include <string.h>

/* ---- texts with several values ---- */

tr_status option_add(const struct tr_option *option, const char *text, const char *source, void *object)
{
    struct option_origin origin = {NULL, source};
    bool splits = option->type == TR_OPTION_PAIR || option->type == TR_OPTION_INT_LIST ||
                  option->type == TR_OPTION_FLOAT_LIST;
    if (!splits) return option_put(option, text, origin, object);
    const char *at = text;
    for (int32_t i = 0;; i++) {
        char item[64];
        size_t length;
        at += strspn(at, " ");
        length = strcspn(at, ",");
        if (length >= sizeof item)
            return option_fail(origin, "\"%s\" has an item that is no number (%s)", text, option->help);
        memcpy(item, at, length);
        while (length > 0 && item[length - 1] == ' ') length--;
        item[length] = '\0';
        if (option->type != TR_OPTION_PAIR || i == 0) {
            TR_TRY(option_put(option, item, origin, object));
        } else if (i == 1) {
            TR_TRY(option_put_second(option, item, origin, object));
        } else {
            return option_fail(origin, "\"%s\" has more than two numbers (%s)", text, option->help);
        }
        at += strcspn(at, ",");
        if (*at == '\0') return TR_OK;
        at++;
    }
}

tr_status tr_option_set(const struct tr_option *option, const char *text, const char *source, void *object)
{
    if (option->type == TR_OPTION_INT_LIST || option->type == TR_OPTION_FLOAT_LIST)
        option_clear(option, object);
    return option_add(option, text, source, object);
}

tr_status tr_options_defaults(const struct tr_option *table, int32_t count, void *object)
{
    assert(count <= TR_OPTIONS_MAX);
    tr_status status = TR_OK;
    for (int32_t i = 0; i < count; i++) {
        void *field = option_field(&table[i], object);
        /* The present value is not owned: overwrite it, do not free it. */
        if (table[i].type == TR_OPTION_STRING) *(char **)field = NULL;
        if (table[i].type == TR_OPTION_STRING_LIST)
            *(struct tr_string_list *)field = (struct tr_string_list){0};
        option_clear(&table[i], object);
    }
    for (int32_t i = 0; i < count && status == TR_OK; i++) {
        const char *fallback = table[i].fallback;
        bool empty =
            fallback && *fallback == '\0' && (table[i].type == TR_OPTION_STRING || option_is_list(&table[i]));
        if (!fallback || empty || table[i].type == TR_OPTION_NODE) continue;
        status = option_add(&table[i], fallback, table[i].key, object);
        assert(status == TR_OK || status == TR_ENOMEM);
    }
    return status;
}

void tr_options_release(const struct tr_option *table, int32_t count, void *object)
{
    for (int32_t i = 0; i < count; i++) option_clear(&table[i], object);
}

/* ---- trees ---- */

static tr_status fail_type(const struct tr_option *option, const tr_config *node)
{
    struct tr_text type = TR_TEXT_INIT;
    option_add_type(option, &type);
    tr_status status = type.failed ? TR_ENOMEM
                                   : tr_config_fail(TR_EINVAL, node, "expected %s, found %s (%s)", type.bytes,
                                                    tr_config_kind_name(node), option->help);
    tr_text_release(&type);
    return status;
}

static tr_status read_list(const struct tr_option *option, const tr_config *node, void *object)
{
    int32_t count = tr_config_count(node);
    if (option->type == TR_OPTION_PAIR && count != 2)
        return tr_config_fail(TR_EINVAL, node,
                              "expected an integer or a list of two, found a list of %d (%s)", (int)count,
                              option->help);
    for (int32_t i = 0; i < count; i++) {
        const tr_config *item = tr_config_at(node, i);
        if (tr_config_kind(item) != TR_CONFIG_SCALAR) return fail_type(option, item);
        struct option_origin origin = {item, NULL};
        bool second = option->type == TR_OPTION_PAIR && i == 1;
        TR_TRY((second ? option_put_second : option_put)(option, tr_config_text(item), origin, object));
    }
    return TR_OK;
}

static tr_status read_value(const struct tr_option *option, const tr_config *node, void *object)
{
    if (option->type == TR_OPTION_NODE) {
        *(const tr_config **)option_field(option, object) = node;
        return TR_OK;
    }
    if (option_is_list(option)) option_clear(option, object);
    if (tr_config_kind(node) == TR_CONFIG_SCALAR)
        return option_put(option, tr_config_text(node), (struct option_origin){node, NULL}, object);
    bool takes_list = option_is_list(option) || option->type == TR_OPTION_PAIR;
    if (tr_config_kind(node) == TR_CONFIG_SEQUENCE && takes_list) return read_list(option, node, object);
    return fail_type(option, node);
}

/* What an unknown key may have meant: another program's word for an option of this or another section,
 * else the nearest key.
 */
static const char *meant_key(const struct tr_option *table, int32_t count, const char *key)
{
    const char *keys[TR_OPTIONS_MAX];
    assert(count <= TR_OPTIONS_MAX);
    for (int32_t i = 0; i < count; i++) keys[i] = table[i].key;
    const char *meant = tr_foreign_word(key, keys, count);
    if (!meant) meant = tr_foreign_path(key);
    return meant ? meant : tr_text_nearest(key, keys, count);
}

static tr_status fail_unknown(const struct tr_option *table, int32_t count, const tr_config *node,
                              const char *key)
{
    const char *meant = meant_key(table, count, key);
    if (meant)
        return tr_config_fail_key(TR_EINVAL, node, "unknown key \"%s\"; did you mean \"%s\"?", key, meant);
    struct tr_text known = TR_TEXT_INIT;
    for (int32_t i = 0; i < count; i++) tr_text_addf(&known, "%s%s", i ? ", " : "", table[i].key);
    tr_status status =
        known.failed ? TR_ENOMEM
        : count ? tr_config_fail_key(TR_EINVAL, node, "unknown key \"%s\"; known are %s", key, known.bytes)
                : tr_config_fail_key(TR_EINVAL, node, "unknown key \"%s\"; there are no options here", key);
    tr_text_release(&known);
    return status;
}

static tr_status read_mapping(const struct tr_option *table, int32_t count, const tr_config *node,
                              void *object)
{
    for (int32_t k = 0; k < tr_config_count(node); k++) {
        const char *key = tr_config_key(node, k);
        const tr_config *value = tr_config_at(node, k);
        int32_t i = 0;
        while (i < count && strcmp(table[i].key, key) != 0) i++;
        if (i == count) return fail_unknown(table, count, value, key);
        TR_TRY(read_value(&table[i], value, object));
    }
    return TR_OK;
}

/* Refuses options that have no meaning for the value of the table's first option. */
static tr_status check_applies(const struct tr_option *table, int32_t count, const tr_config *node,
                               const void *object)
{
    for (int32_t i = 1; i < count; i++) {
        const tr_config *value = tr_config_get(node, table[i].key);
        if (!value || option_applies(table, &table[i], object)) continue;
        struct tr_text only = TR_TEXT_INIT;
        option_add_only(table, &table[i], "", "", &only);
        tr_status status = only.failed ? TR_ENOMEM
                                       : tr_config_fail_key(TR_EINVAL, value, "\"%s\" belongs to %s: %s only",
                                                            table[i].key, table[0].key, only.bytes);
        tr_text_release(&only);
        return status;
    }
    return TR_OK;
}

tr_status tr_options_read(const struct tr_option *table, int32_t count, const tr_config *node,
                          const char *where, void *object)
{
    enum tr_config_kind kind = node ? tr_config_kind(node) : TR_CONFIG_NULL;
    bool shorthand = kind == TR_CONFIG_SCALAR || kind == TR_CONFIG_SEQUENCE;
    if (kind == TR_CONFIG_MAPPING) TR_TRY(read_mapping(table, count, node, object));
    if (shorthand && count == 0) return tr_config_fail(TR_EINVAL, node, "takes no options");
    if (shorthand) TR_TRY(read_value(&table[0], node, object));
    TR_TRY(check_applies(table, count, node, object));
    for (int32_t i = 0; i < count; i++) {
        bool given = (shorthand && i == 0) || tr_config_get(node, table[i].key);
        if (table[i].fallback || given || !option_applies(table, &table[i], object)) continue;
        return option_fail((struct option_origin){node, where}, "\"%s\" is missing (%s)", table[i].key,
                           table[i].help);
    }
    return TR_OK;
}
