/* Overrides: `path=value` put into a tree.
 *
 * The target is found and all new nodes are built first, so that the tree then changes in one step that
 * cannot fail.
 */
#include "base/options/config_target.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <string.h>

/* Gives `node` a key, a copy of `key`. */
static tr_status set_key(tr_config *node, const char *key, size_t length)
{
    assert(!node->key);
    node->key = tr_alloc(length + 1, 1);
    if (!node->key) return TR_ENOMEM;
    memcpy(node->key, key, length);
    node->key[length] = '\0';
    return TR_OK;
}

/* Puts *node (replaced by its new parent; still owned by the caller) into a mapping under the key `step`. */
static tr_status wrap(tr_config **node, const struct config_step *step)
{
    tr_config *mapping = config_new(TR_CONFIG_MAPPING, (*node)->file, 0, 0);
    if (!mapping) return TR_ENOMEM;
    tr_status status = config_reserve(mapping);
    if (status == TR_OK) status = set_key(*node, step->text, step->length);
    if (status != TR_OK) {
        config_destroy(mapping);
        return status;
    }
    mapping->sources = (*node)->sources;
    (*node)->sources = NULL;
    config_append(mapping, *node);
    *node = mapping;
    return TR_OK;
}

/* Overrides have no lines. */
static void forget_lines(tr_config *node)
{
    node->line = node->column = node->key_line = node->key_column = 0;
    for (int32_t i = 0; i < node->count; i++) forget_lines(node->child[i]);
}

static tr_status check_limits(const struct config_override *path, const tr_config *root,
                              const struct config_target *target, const tr_config *value)
{
    int32_t nodes = 0, depth = config_height(value);
    size_t bytes = target->key_length;
    config_measure(root, &nodes, &bytes);
    config_measure(value, &nodes, &bytes);
    for (const tr_config *above = target->parent; above; above = above->parent) depth++;
    bool wide = target->index == target->parent->count && target->index >= TR_CONFIG_WIDTH_MAX;
    if (nodes > TR_CONFIG_NODES_MAX || bytes > TR_CONFIG_TEXT_MAX || depth > TR_CONFIG_DEPTH_MAX || wide)
        return tr_fail(TR_EINVAL,
                       "`set` %.*s: the configuration would become too large (%d levels, %d values)",
                       PATH_ARGUMENTS(path), (int)depth, (int)nodes);
    return TR_OK;
}

/* Reads the value; an empty text (path=) is no value. */
static tr_status parse_value(const struct config_override *path, tr_config **out)
{
    const char *text = path->text + path->length + 1;
    char *where = tr_format("`set` %.*s", PATH_ARGUMENTS(path));
    if (!where) return TR_ENOMEM;
    if (text[strspn(text, " \t")] == '\0') text = "~";
    tr_status status = config_parse_line(text, "`set`", where, out);
    tr_free(where);
    if (status == TR_OK) forget_lines(*out);
    return status == TR_EFORMAT ? TR_EINVAL : status;
}

/* The present value becomes part of its replacement, whose only key is the next step of the path: under
   its own key, or as the name of the section. Does nothing where the step is that key or name. */
static tr_status keep_short(const struct config_override *path, struct config_target *target,
                            tr_config **value, char **key)
{
    const tr_config *old = target->parent->child[target->index];
    const struct config_step *step = &path->step[target->used];
    const char *name = target->form == TR_CONFIG_BY_NAME ? old->text : target->first;
    size_t length = strlen(name);
    if (step->length == length && memcmp(step->text, name, length) == 0) {
        target->form = TR_CONFIG_NO_SHORT;
        return TR_OK;
    }
    if (target->form == TR_CONFIG_BY_NAME) return wrap(value, &(struct config_step){name, length, false});
    TR_TRY(config_reserve(*value));
    *key = tr_strdup(name);
    return *key ? TR_OK : TR_ENOMEM;
}

/* Moves a node to the front of a mapping that has room; takes `key`. */
static void move_first(tr_config *node, char *key, tr_config *mapping)
{
    config_append(mapping, node);
    memmove(mapping->child + 1, mapping->child, (size_t)(mapping->count - 1) * sizeof *mapping->child);
    mapping->child[0] = node;
    tr_free(node->key);
    node->key = key;
}

tr_status tr_config_set(tr_config *root, const char *assignment)
{
    return tr_config_set_in(root, assignment, NULL, NULL);
}

tr_status tr_config_set_in(tr_config *root, const char *assignment, tr_config_forms forms_of, void *user)
{
    assert(!root->parent);
    const struct config_shorts forms = {forms_of, user};
    struct config_override path;
    struct config_target target = {0};
    tr_config *value = NULL;
    char *key = NULL;
    TR_TRY(config_split_path(assignment, &path));
    TR_TRY(config_find_target(&path, &forms, root, &target));
    TR_TRY(parse_value(&path, &value));

    tr_status status = TR_OK;
    for (int32_t i = path.count - 1; i >= target.used; i--) {
        if (path.step[i].bracket) {
            status = config_bad_path(&path, "a list that is not there has no items");
            goto fail;
        }
        TR_TRY_GOTO(wrap(&value, &path.step[i]), fail);
    }
    if (target.form != TR_CONFIG_NO_SHORT) TR_TRY_GOTO(keep_short(&path, &target, &value, &key), fail);
    TR_TRY_GOTO(check_limits(&path, root, &target, value), fail);
    if (target.key) TR_TRY_GOTO(set_key(value, target.key, target.key_length), fail);
    TR_TRY_GOTO(config_reserve(target.parent), fail);

    struct config_source **last = &root->sources;
    while (*last) last = &(*last)->next;
    *last = value->sources;
    value->sources = NULL;
    if (target.index == target.parent->count) {
        config_append(target.parent, value);
    } else {
        tr_config *old = target.parent->child[target.index];
        if (key)
            move_first(old, key, value);
        else
            config_destroy(old);
        target.parent->child[target.index] = value;
        value->parent = target.parent;
    }
    return TR_OK;
fail:
    tr_free(key);
    config_destroy(value);
    return status;
}
