/* Writing trees: canonical YAML and JSON.
 *
 * The YAML writer is not a library's, because the hash of its output identifies a model, and must not
 * change with the version of a library.
 */
#include "base/options/config_tree.h"

#include <string.h>

/* Whether a scalar needs no quotes anywhere in YAML and is not read as no value: words, numbers, paths. */
static bool plain(const char *text)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
    size_t length = strlen(text);
    if (config_is_null_word(text, length) || strspn(text, first) != length) return false;
    /* "-" alone, "- x", "---" and "..." have special meanings. */
    return text[0] != '-' ? strcmp(text, "...") != 0 : text[1] != '\0' && text[1] != '-';
}

static void write_word(struct tr_text *out, const char *text)
{
    if (plain(text)) {
        tr_text_add(out, text);
    } else {
        tr_text_add_quoted(out, text);
    }
}

/* Whether a node is written on the line of its key: scalars, empty collections, lists of scalars. */
static bool inline_node(const tr_config *node)
{
    if (node->kind == TR_CONFIG_MAPPING) return node->count == 0;
    for (int32_t i = 0; i < node->count; i++) {
        if (node->child[i]->kind == TR_CONFIG_SEQUENCE || node->child[i]->kind == TR_CONFIG_MAPPING)
            return false;
    }
    return true;
}

static void write_inline(const tr_config *node, struct tr_text *out)
{
    switch (node->kind) {
    case TR_CONFIG_NULL:
        tr_text_add(out, "~");
        break;
    case TR_CONFIG_SCALAR:
        write_word(out, node->text);
        break;
    case TR_CONFIG_MAPPING:
        tr_text_add(out, "{}");
        break;
    case TR_CONFIG_SEQUENCE:
        for (int32_t i = 0; i < node->count; i++) {
            tr_text_add(out, i ? ", " : "[");
            write_inline(node->child[i], out);
        }
        tr_text_add(out, node->count ? "]" : "[]");
        break;
    }
}

/* Writes a node whose first line continues the present one, which has `indent` columns already. */
static void write_block(const tr_config *node, size_t indent, struct tr_text *out)
{
    if (inline_node(node)) {
        write_inline(node, out);
        tr_text_add(out, "\n");
        return;
    }
    for (int32_t i = 0; i < node->count; i++) {
        const tr_config *child = node->child[i];
        if (i) tr_text_pad(out, ' ', indent);
        if (node->kind == TR_CONFIG_SEQUENCE) {
            tr_text_add(out, "- ");
            write_block(child, indent + 2, out);
        } else if (inline_node(child)) {
            write_word(out, child->key);
            tr_text_add(out, ": ");
            write_block(child, indent, out);
        } else {
            write_word(out, child->key);
            tr_text_add(out, ":\n");
            tr_text_pad(out, ' ', indent + 2);
            write_block(child, indent + 2, out);
        }
    }
}

tr_status tr_config_dump(const tr_config *node, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    write_block(node, 0, &text);
    return tr_text_finish(&text, out);
}

/* Whether a text is a JSON number, or true or false. */
static bool json_literal(const char *text)
{
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) return true;
    static const char digits[] = "0123456789";
    const char *at = text + (*text == '-');
    size_t count = strspn(at, digits);
    if (count == 0 || (count > 1 && *at == '0')) return false;
    at += count;
    if (*at == '.') {
        count = strspn(++at, digits);
        if (count == 0) return false;
        at += count;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '+' || *at == '-') at++;
        count = strspn(at, digits);
        if (count == 0) return false;
        at += count;
    }
    return *at == '\0';
}

void tr_config_json(const tr_config *node, struct tr_text *text)
{
    bool mapping = node->kind == TR_CONFIG_MAPPING;
    switch (node->kind) {
    case TR_CONFIG_NULL:
        tr_text_add(text, "null");
        break;
    case TR_CONFIG_SCALAR:
        if (json_literal(node->text)) {
            tr_text_add(text, node->text);
        } else {
            tr_text_add_quoted(text, node->text);
        }
        break;
    case TR_CONFIG_SEQUENCE:
    case TR_CONFIG_MAPPING:
        tr_text_add(text, mapping ? "{" : "[");
        for (int32_t i = 0; i < node->count; i++) {
            if (i) tr_text_add(text, ", ");
            if (mapping) {
                tr_text_add_quoted(text, node->child[i]->key);
                tr_text_add(text, ": ");
            }
            tr_config_json(node->child[i], text);
        }
        tr_text_add(text, mapping ? "}" : "]");
        break;
    }
}
