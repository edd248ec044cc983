/* Values that a program sets in a tree: no text is parsed. */
#include "base/options/config_tree.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char put_name[] = "";

/* A new scalar node with a copy of the text, in which bytes that are not UTF-8 become U+FFFD, as in all
   written text. NULL when memory fails. */
static tr_config *new_scalar(const char *text)
{
    struct tr_text valid = TR_TEXT_INIT;
    tr_text_add(&valid, "");
    for (size_t length; *text; text += length ? length : 1) {
        uint32_t character;
        length = tr_text_utf8(text, &character);
        tr_text_add_bytes(&valid, length ? text : "\xEF\xBF\xBD", length ? length : 3);
    }
    tr_config *node = config_new(TR_CONFIG_SCALAR, put_name, 0, 0);
    if (node && tr_text_finish(&valid, &node->text) == TR_OK) return node;
    tr_text_release(&valid);
    config_destroy(node);
    return NULL;
}

/* Sets `key` of a mapping to `value`, which is taken, also on failure; replaces the present value. */
static tr_status put(tr_config *mapping, const char *key, tr_config *value)
{
    if (!value) return TR_ENOMEM;
    value->key = tr_strdup(key);
    tr_status status = value->key ? config_reserve(mapping) : TR_ENOMEM;
    if (status != TR_OK) {
        config_destroy(value);
        return status;
    }
    for (int32_t i = 0; i < mapping->count; i++) {
        if (strcmp(mapping->child[i]->key, key) != 0) continue;
        config_destroy(mapping->child[i]);
        mapping->child[i] = value;
        value->parent = mapping;
        return TR_OK;
    }
    config_append(mapping, value);
    return TR_OK;
}

/* The mapping `section` of the root, created if missing; NULL is the root itself. */
static tr_status find_section(tr_config *root, const char *section, tr_config **out)
{
    assert(!root->parent);
    *out = section ? config_find(root, section, strlen(section)) : root;
    if (!*out || (*out)->kind == TR_CONFIG_NULL) {
        TR_TRY(put(root, section, config_new(TR_CONFIG_MAPPING, put_name, 0, 0)));
        *out = config_find(root, section, strlen(section));
    }
    return (*out)->kind == TR_CONFIG_MAPPING
               ? TR_OK
               : tr_config_fail(TR_EINVAL, *out, "is %s; write a mapping, so that more can be added",
                                tr_config_kind_name(*out));
}

tr_status tr_config_put_text(tr_config *root, const char *section, const char *key, const char *text)
{
    tr_config *mapping;
    TR_TRY(find_section(root, section, &mapping));
    return put(mapping, key, new_scalar(text));
}

tr_status tr_config_put_integer(tr_config *root, const char *section, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return tr_config_put_text(root, section, key, text);
}

tr_status tr_config_put_nothing(tr_config *root, const char *section, const char *key)
{
    tr_config *mapping;
    TR_TRY(find_section(root, section, &mapping));
    return put(mapping, key, config_new(TR_CONFIG_NULL, put_name, 0, 0));
}

tr_status tr_config_put_texts(tr_config *root, const char *section, const char *key, int32_t count,
                              const char *const *texts)
{
    tr_config *mapping, *list;
    int32_t nodes = 0;
    size_t bytes = strlen(key);
    TR_TRY(find_section(root, section, &mapping));
    config_measure(root, &nodes, &bytes);
    for (int32_t i = 0; i < count; i++) bytes += strlen(texts[i]);
    if (count >= TR_CONFIG_NODES_MAX - nodes || /* the list is a node, too */
        bytes > TR_CONFIG_TEXT_MAX)
        return tr_config_fail(TR_EINVAL, mapping, "%d %s are too many for a configuration", (int)count, key);
    if (!(list = config_new(TR_CONFIG_SEQUENCE, put_name, 0, 0))) return TR_ENOMEM;
    for (int32_t i = 0; i < count; i++) {
        tr_config *item = config_reserve(list) == TR_OK ? new_scalar(texts[i]) : NULL;
        if (!item) {
            config_destroy(list);
            return TR_ENOMEM;
        }
        config_append(list, item);
    }
    return put(mapping, key, list);
}
