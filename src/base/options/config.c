/* The tree itself: nodes, access, locations. */
#include "base/options/config_tree.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- nodes ---- */

tr_config *config_new(enum tr_config_kind kind, const char *file, int32_t line, int32_t column)
{
    tr_config *node = tr_alloc_zero(1, sizeof *node);
    if (!node) return NULL;
    node->kind = kind;
    node->file = file;
    node->line = line;
    node->column = column;
    return node;
}

void config_destroy(tr_config *node)
{
    if (!node) return;
    /* Recursion is bounded by TR_CONFIG_DEPTH_MAX. */
    for (int32_t i = 0; i < node->count; i++) config_destroy(node->child[i]);
    while (node->sources) {
        struct config_source *next = node->sources->next;
        tr_free(node->sources);
        node->sources = next;
    }
    tr_free(node->child);
    tr_free(node->text);
    tr_free(node->key);
    tr_free(node);
}

void tr_config_destroy(tr_config **root)
{
    if (!root || !*root) return;
    assert(!(*root)->parent);
    config_destroy(*root);
    *root = NULL;
}

tr_status config_reserve(tr_config *parent)
{
    if (parent->count < parent->capacity) return TR_OK;
    int32_t capacity = parent->capacity * 2 + 4;
    tr_config **grown = tr_realloc(parent->child, (size_t)capacity, sizeof *grown);
    if (!grown) return TR_ENOMEM;
    parent->child = grown;
    parent->capacity = capacity;
    return TR_OK;
}

void config_append(tr_config *parent, tr_config *child)
{
    assert(parent->count < parent->capacity);
    child->parent = parent;
    parent->child[parent->count++] = child;
}

tr_config *config_find(const tr_config *mapping, const char *key, size_t length)
{
    for (int32_t i = 0; i < mapping->count; i++) {
        const char *own = mapping->child[i]->key;
        if (strncmp(own, key, length) == 0 && own[length] == '\0') return mapping->child[i];
    }
    return NULL;
}

int32_t config_height(const tr_config *node)
{
    int32_t below = 0;
    for (int32_t i = 0; i < node->count; i++) {
        int32_t height = config_height(node->child[i]);
        if (height > below) below = height;
    }
    return below + 1;
}

void config_measure(const tr_config *node, int32_t *nodes, size_t *bytes)
{
    *nodes += 1;
    *bytes += (node->key ? strlen(node->key) : 0) + (node->text ? strlen(node->text) : 0);
    for (int32_t i = 0; i < node->count; i++) config_measure(node->child[i], nodes, bytes);
}

tr_config *config_single(const tr_config *node)
{
    return node->kind == TR_CONFIG_MAPPING && node->count == 1 ? node->child[0] : NULL;
}

bool config_is_null_word(const char *text, size_t length)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0) return true;
    }
    return false;
}

/* ---- access ---- */

enum tr_config_kind tr_config_kind(const tr_config *node)
{
    return node->kind;
}

const char *tr_config_kind_name(const tr_config *node)
{
    static const char *const names[] = {[TR_CONFIG_NULL] = "nothing",
                                        [TR_CONFIG_SCALAR] = "a text",
                                        [TR_CONFIG_SEQUENCE] = "a list",
                                        [TR_CONFIG_MAPPING] = "a mapping"};
    return names[node->kind];
}

int32_t tr_config_count(const tr_config *node)
{
    return node->count;
}

const tr_config *tr_config_at(const tr_config *node, int32_t index)
{
    assert(index >= 0 && index < node->count);
    return node->child[index];
}

const char *tr_config_key(const tr_config *mapping, int32_t index)
{
    assert(mapping->kind == TR_CONFIG_MAPPING && index >= 0 && index < mapping->count);
    return mapping->child[index]->key;
}

const tr_config *tr_config_get(const tr_config *node, const char *key)
{
    return node && node->kind == TR_CONFIG_MAPPING ? config_find(node, key, strlen(key)) : NULL;
}

const char *tr_config_text(const tr_config *node)
{
    return node->kind == TR_CONFIG_SCALAR ? node->text : NULL;
}

/* ---- locations ---- */

/* snprintf at `used`, returning the new end; stays at the last byte when the buffer is full. */
static size_t put(char *buffer, size_t size, size_t used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static size_t put(char *buffer, size_t size, size_t used, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer + used, size - used, format, arguments);
    va_end(arguments);
    if (length < 0) return used;
    return (size_t)length < size - used ? used + (size_t)length : size - 1;
}

static size_t put_path(const tr_config *node, char *buffer, size_t size, size_t used)
{
    const tr_config *parent = node->parent;
    if (!parent) return used;
    size_t start = used;
    used = put_path(parent, buffer, size, used);
    if (parent->kind == TR_CONFIG_MAPPING)
        return put(buffer, size, used, "%s%s", used > start ? "." : "", node->key);
    int32_t index = 0;
    while (parent->child[index] != node) index++;
    return put(buffer, size, used, "[%d]", (int)index);
}

const char *tr_config_path(const tr_config *node, char *buffer, size_t size)
{
    assert(size > 0);
    buffer[0] = '\0';
    put_path(node, buffer, size, 0);
    return buffer;
}

static const char *put_location(const tr_config *node, int32_t line, int32_t column, char *buffer,
                                size_t size)
{
    assert(size > 0);
    size_t used = put(buffer, size, 0, "%s", node->file);
    if (line == 0 && !node->file[0]) {
        put(buffer, size, 0, "`%s`", node->key ? node->key : "");
        return buffer;
    }
    if (line > 0) used = put(buffer, size, used, ":%d:%d", (int)line, (int)column);
    if (node->parent) {
        used = put(buffer, size, used, node->file[0] == '`' ? " " : ": ");
        put_path(node, buffer, size, used);
    }
    return buffer;
}

const char *tr_config_location(const tr_config *node, char *buffer, size_t size)
{
    return put_location(node, node->line, node->column, buffer, size);
}

#define LOCATION_SIZE (2 * TR_CONFIG_PATH_SIZE)
#define MESSAGE_SIZE  1024

tr_status tr_config_fail(tr_status status, const tr_config *node, const char *format, ...)
{
    char location[LOCATION_SIZE], message[MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return tr_fail(status, "%s: %s", tr_config_location(node, location, sizeof location), message);
}

tr_status tr_config_fail_key(tr_status status, const tr_config *node, const char *format, ...)
{
    char location[LOCATION_SIZE], message[MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    put_location(node, node->key_line, node->key_column, location, sizeof location);
    return tr_fail(status, "%s: %s", location, message);
}
