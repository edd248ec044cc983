/* Reading YAML into a tree, from libyaml's events.
 *
 * Events rather than libyaml's document, so that limits apply while the input is read, before it takes all
 * memory. State: `open` is the innermost collection not yet ended (NULL outside the root), `key` the key
 * whose value comes next when `open` is a mapping. Every node is linked into the tree as soon as it
 * exists, so that destroying the root (and `key`) releases everything at any time.
 */
#include "base/options/config_fault.h"
#include "base/options/config_tree.h"

#include "base/alloc.h"
#include "base/encoding.h"
#include "base/fail.h"
#include "base/files/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

struct anchor {
    char *name;
    const tr_config *node;
};

struct reader {
    yaml_parser_t yaml;
    struct config_source *source;
    const char *where; /* prefix of messages; NULL: file, line and column */
    const char *text;
    size_t length;
    tr_config *root, *open;
    char *key;
    int32_t key_line, key_column;
    int32_t depth, nodes; /* depth of `open` */
    size_t bytes;
    struct anchor *anchors;
    int32_t anchor_count;
    char *
        pending_anchors[TR_CONFIG_DEPTH_MAX + 1]; /* of the open collections, by depth; known once they end */
};

static tr_status fail_at(const struct reader *reader, const yaml_mark_t *mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static tr_status fail_at(const struct reader *reader, const yaml_mark_t *mark, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (reader->where) return tr_fail(TR_EFORMAT, "%s: %s", reader->where, message);
    return tr_fail(TR_EFORMAT, "%s:%zu:%zu: %s", reader->source->name, mark->line + 1, mark->column + 1,
                   message);
}

static struct config_mark mark_of(const yaml_mark_t *mark)
{
    return (struct config_mark){mark->line, mark->column};
}

static tr_status fail_yaml(const struct reader *reader)
{
    const yaml_parser_t *yaml = &reader->yaml;
    if (yaml->error == YAML_MEMORY_ERROR)
        return tr_fail(TR_ENOMEM, "%s: out of memory in the YAML reader", reader->source->name);
    if (yaml->error == YAML_READER_ERROR)
        return tr_fail(TR_EFORMAT, "%s: byte %zu: %s; the file must be UTF-8 text", reader->source->name,
                       yaml->problem_offset, yaml->problem ? yaml->problem : "cannot be read");
    const struct config_notice notice = {yaml->problem, yaml->context, mark_of(&yaml->problem_mark),
                                         mark_of(&yaml->context_mark)};
    struct config_fault fault;
    config_fault_find(&notice, reader->text, reader->length, &fault);
    yaml_mark_t mark = {.line = fault.mark.line, .column = fault.mark.column};
    return fail_at(reader, &mark, "%s%s%s", fault.message,
                   reader->where ? ": " : "; the line is: ", fault.line);
}

/* Accounts for a node at `depth` with `bytes` of text. */
static tr_status admit(struct reader *reader, const yaml_mark_t *mark, int32_t depth, int32_t nodes,
                       size_t bytes)
{
    if (depth > TR_CONFIG_DEPTH_MAX)
        return fail_at(reader, mark, "nested deeper than %d levels", TR_CONFIG_DEPTH_MAX);
    if (nodes > TR_CONFIG_NODES_MAX - reader->nodes)
        return fail_at(reader, mark, "more than %d values", TR_CONFIG_NODES_MAX);
    if (bytes > TR_CONFIG_TEXT_MAX - reader->bytes)
        return fail_at(reader, mark, "more than %d bytes of text", TR_CONFIG_TEXT_MAX);
    reader->nodes += nodes;
    reader->bytes += bytes;
    return TR_OK;
}

/* Links `node` (taken, destroyed on failure) into the open collection or makes it the root. */
static tr_status attach(struct reader *reader, tr_config *node)
{
    tr_config *parent = reader->open;
    if (!parent) {
        reader->root = node;
        return TR_OK;
    }
    tr_status status = config_reserve(parent);
    if (status != TR_OK) {
        config_destroy(node);
        return status;
    }
    if (parent->kind == TR_CONFIG_MAPPING) {
        node->key = reader->key;
        node->key_line = reader->key_line;
        node->key_column = reader->key_column;
        reader->key = NULL;
    }
    config_append(parent, node);
    return TR_OK;
}

static char *copy_bytes(const void *bytes, size_t length)
{
    char *copy = tr_alloc(length + 1, 1);
    if (!copy) return NULL;
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

/* ---- anchors ---- */

/* Records that the finished `node` is called `name`, which is taken. */
static tr_status define_anchor(struct reader *reader, char *name, const tr_config *node)
{
    if (!tr_grow(&reader->anchors, reader->anchor_count, sizeof *reader->anchors)) {
        tr_free(name);
        return TR_ENOMEM;
    }
    reader->anchors[reader->anchor_count++] = (struct anchor){name, node};
    return TR_OK;
}

/* A copy of `node`, whose nodes keep the place of the original. */
static tr_config *copy_node(const tr_config *node)
{
    tr_config *copy = config_new(node->kind, node->file, node->line, node->column);
    if (!copy) return NULL;
    if (node->text && !(copy->text = tr_strdup(node->text))) goto fail;
    for (int32_t i = 0; i < node->count; i++) {
        if (config_reserve(copy) != TR_OK) goto fail;
        tr_config *child = copy_node(node->child[i]);
        if (!child) goto fail;
        config_append(copy, child);
        if (node->child[i]->key && !(child->key = tr_strdup(node->child[i]->key))) goto fail;
        child->key_line = node->child[i]->key_line;
        child->key_column = node->child[i]->key_column;
    }
    return copy;
fail:
    config_destroy(copy);
    return NULL;
}

static tr_status read_alias(struct reader *reader, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    const tr_config *original = NULL;
    /* The last definition counts. An open collection is not defined yet, so nothing can contain itself. */
    for (int32_t i = reader->anchor_count - 1; i >= 0 && !original; i--) {
        if (strcmp(reader->anchors[i].name, name) == 0) original = reader->anchors[i].node;
    }
    if (!original)
        return fail_at(reader, &event->start_mark, "alias *%s: no finished value is called &%s before it",
                       name, name);
    int32_t nodes = 0;
    size_t bytes = 0;
    config_measure(original, &nodes, &bytes);
    TR_TRY(admit(reader, &event->start_mark, reader->depth + config_height(original), nodes, bytes));
    tr_config *copy = copy_node(original);
    return copy ? attach(reader, copy) : TR_ENOMEM;
}

/* ---- events ---- */

static tr_status read_key(struct reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    const yaml_mark_t *mark = &event->start_mark;
    if (length == 0) return fail_at(reader, mark, "empty key");
    if (length > TR_CONFIG_KEY_MAX)
        return fail_at(reader, mark, "key of %zu bytes; at most %d are allowed", length, TR_CONFIG_KEY_MAX);
    if (strcmp(text, "<<") == 0)
        return fail_at(reader, mark, "merge keys (<<) are not supported; write the keys out");
    const tr_config *first = config_find(reader->open, text, length);
    if (first)
        return fail_at(reader, mark, "key \"%s\" stands here twice; the first is in line %d", text,
                       (int)first->key_line);
    if (reader->open->count >= TR_CONFIG_WIDTH_MAX)
        return fail_at(reader, mark, "mapping with more than %d keys", TR_CONFIG_WIDTH_MAX);
    TR_TRY(admit(reader, mark, 0, 0, length));
    reader->key_line = (int32_t)mark->line + 1;
    reader->key_column = (int32_t)mark->column + 1;
    reader->key = copy_bytes(text, length);
    return reader->key ? TR_OK : TR_ENOMEM;
}

static tr_status read_scalar(struct reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    const yaml_mark_t *mark = &event->start_mark;
    if (memchr(text, '\0', length)) return fail_at(reader, mark, "text contains a NUL character");
    if (reader->open && reader->open->kind == TR_CONFIG_MAPPING && !reader->key) {
        if (event->data.scalar.anchor) return fail_at(reader, mark, "a key cannot have an anchor");
        return read_key(reader, event);
    }
    TR_TRY(admit(reader, mark, reader->depth + 1, 1, length));
    bool is_null = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && config_is_null_word(text, length);
    tr_config *node = config_new(is_null ? TR_CONFIG_NULL : TR_CONFIG_SCALAR, reader->source->name,
                                 (int32_t)mark->line + 1, (int32_t)mark->column + 1);
    if (!node) return TR_ENOMEM;
    if (!is_null && !(node->text = copy_bytes(text, length))) {
        config_destroy(node);
        return TR_ENOMEM;
    }
    TR_TRY(attach(reader, node));
    if (!event->data.scalar.anchor) return TR_OK;
    char *anchor = tr_strdup((const char *)event->data.scalar.anchor);
    return anchor ? define_anchor(reader, anchor, node) : TR_ENOMEM;
}

static tr_status begin_collection(struct reader *reader, const yaml_event_t *event, enum tr_config_kind kind,
                                  const yaml_char_t *anchor)
{
    const yaml_mark_t *mark = &event->start_mark;
    TR_TRY(admit(reader, mark, reader->depth + 1, 1, 0));
    tr_config *node =
        config_new(kind, reader->source->name, (int32_t)mark->line + 1, (int32_t)mark->column + 1);
    if (!node) return TR_ENOMEM;
    TR_TRY(attach(reader, node));
    reader->open = node;
    reader->depth++;
    if (!anchor) return TR_OK;
    reader->pending_anchors[reader->depth] = tr_strdup((const char *)anchor);
    return reader->pending_anchors[reader->depth] ? TR_OK : TR_ENOMEM;
}

static tr_status end_collection(struct reader *reader)
{
    tr_config *node = reader->open;
    char *anchor = reader->pending_anchors[reader->depth];
    reader->pending_anchors[reader->depth] = NULL;
    reader->open = node->parent;
    reader->depth--;
    return anchor ? define_anchor(reader, anchor, node) : TR_OK;
}

static const yaml_char_t *event_tag(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.tag;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.tag;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.tag;
    default:
        return NULL;
    }
}

static tr_status read_event(struct reader *reader, const yaml_event_t *event)
{
    const yaml_mark_t *mark = &event->start_mark;
    const yaml_char_t *tag = event_tag(event);
    if (tag) return fail_at(reader, mark, "tag %s: tags are not supported", (const char *)tag);
    bool key_expected = reader->open && reader->open->kind == TR_CONFIG_MAPPING && !reader->key;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (reader->root) return fail_at(reader, mark, "a second document begins; one file is one document");
        return TR_OK;
    case YAML_SCALAR_EVENT:
        return read_scalar(reader, event);
    case YAML_ALIAS_EVENT:
        if (key_expected) return fail_at(reader, mark, "a key must be a text, not an alias");
        return read_alias(reader, event);
    case YAML_SEQUENCE_START_EVENT:
        if (key_expected) return fail_at(reader, mark, "a key must be a text, not a list");
        return begin_collection(reader, event, TR_CONFIG_SEQUENCE, event->data.sequence_start.anchor);
    case YAML_MAPPING_START_EVENT:
        if (key_expected) return fail_at(reader, mark, "a key must be a text, not a mapping");
        return begin_collection(reader, event, TR_CONFIG_MAPPING, event->data.mapping_start.anchor);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return end_collection(reader);
    default:
        return TR_OK;
    }
}

static tr_status read_events(struct reader *reader)
{
    bool done = false;
    while (!done) {
        yaml_event_t event;
        if (!yaml_parser_parse(&reader->yaml, &event)) return fail_yaml(reader);
        done = event.type == YAML_STREAM_END_EVENT;
        tr_status status = read_event(reader, &event);
        yaml_event_delete(&event);
        if (status != TR_OK) return status;
    }
    if (!reader->root)
        return tr_fail(TR_EFORMAT, "%s: is empty; expected a YAML document", reader->source->name);
    return TR_OK;
}

static void release_reader(struct reader *reader)
{
    for (int32_t i = 0; i < reader->anchor_count; i++) tr_free(reader->anchors[i].name);
    for (int32_t i = 0; i <= TR_CONFIG_DEPTH_MAX; i++) tr_free(reader->pending_anchors[i]);
    tr_free(reader->anchors);
    tr_free(reader->key);
}

static tr_status parse(const char *text, size_t length, const char *name, const char *where, tr_config **out)
{
    *out = NULL;
    if (length > TR_CONFIG_BYTES_MAX)
        return tr_fail(TR_EFORMAT, "%s: %zu bytes; a model file has at most %d", name, length,
                       TR_CONFIG_BYTES_MAX);
    TR_TRY(tr_encoding_check(name, text, length));
    const size_t mark = tr_encoding_mark(text, length);
    struct reader reader = {.where = where, .text = text + mark, .length = length - mark};
    size_t name_size = strlen(name) + 1;
    reader.source = tr_alloc_zero(1, sizeof *reader.source + name_size);
    if (!reader.source) return TR_ENOMEM;
    memcpy(reader.source->name, name, name_size);

    tr_status status = TR_ENOMEM;
    if (!yaml_parser_initialize(&reader.yaml)) {
        tr_fail(TR_ENOMEM, "%s: out of memory in the YAML reader", name);
    } else {
        yaml_parser_set_encoding(&reader.yaml, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&reader.yaml, (const unsigned char *)text + mark, length - mark);
        status = read_events(&reader);
        yaml_parser_delete(&reader.yaml);
    }
    release_reader(&reader);
    if (status == TR_OK) {
        reader.root->sources = reader.source;
        *out = reader.root;
    } else {
        config_destroy(reader.root);
        tr_free(reader.source);
    }
    return status;
}

tr_status tr_config_parse(const char *text, size_t length, const char *name, tr_config **out)
{
    return parse(text, length, name, NULL, out);
}

tr_status config_parse_line(const char *text, const char *name, const char *where, tr_config **out)
{
    return parse(text, strlen(text), name, where, out);
}

tr_status tr_config_read(const char *path, tr_config **out)
{
    *out = NULL;
    struct tr_file_content content;
    TR_TRY(tr_file_read(path, TR_CONFIG_BYTES_MAX, &content));
    tr_status status = tr_config_parse(content.data, content.size, path, out);
    tr_file_content_free(&content);
    return status;
}
