#include "base/options/config_target.h"

#include "base/fail.h"
#include "base/text/ascii.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tr_status config_bad_path(const struct config_override *path, const char *why)
{
    return tr_fail(TR_EINVAL, "`set` %.*s: %s; write a path such as optimizer.rate or layers[2].units",
                   PATH_ARGUMENTS(path), why);
}

/* Keys are written and read again as YAML, which is UTF-8. */
static bool is_utf8(const char *text, size_t length)
{
    uint32_t character;
    for (size_t at = 0, size; at < length; at += size)
        if ((size = tr_text_utf8(text + at, &character)) == 0) return false;
    return true;
}

tr_status config_split_path(const char *assignment, struct config_override *path)
{
    const char *equals = strchr(assignment, '=');
    if (!equals)
        return tr_fail(TR_EINVAL, "`set` %s: expected path=value, as in optimizer.rate=1e-3", assignment);
    *path = (struct config_override){.text = assignment, .length = (size_t)(equals - assignment)};
    const char *at = assignment;
    while (at < equals) {
        struct config_step step = {at, 0, *at == '['};
        if (step.bracket) {
            step.text = ++at;
            step.length = strcspn(at, "]=");
            if (step.length == 0 || at[step.length] != ']')
                return config_bad_path(path, "'[' without a number and ']'");
            if (strspn(at, "0123456789") != step.length)
                return config_bad_path(path, "the text between '[' and ']' is no number");
            at += step.length + 1;
        } else {
            step.length = strcspn(at, ".[]=");
            if (step.length == 0) return config_bad_path(path, "empty key");
            if (step.length > TR_CONFIG_KEY_MAX) return config_bad_path(path, "key too long");
            if (!is_utf8(step.text, step.length)) return config_bad_path(path, "key that is no UTF-8");
            at += step.length;
        }
        if (path->count == TR_CONFIG_DEPTH_MAX) return config_bad_path(path, "too many steps");
        path->step[path->count++] = step;
        if (*at == '.') {
            at++;
            if (at == equals) return config_bad_path(path, "ends in a point");
        } else if (at < equals && *at != '[') {
            return config_bad_path(path, "']' must be followed by a point or the end");
        }
    }
    return path->count ? TR_OK
                       : tr_fail(TR_EINVAL,
                                 "`set` %s: no path stands before the =; write a path such as optimizer.rate",
                                 assignment);
}

static tr_status fail_kind(const struct config_override *path, const tr_config *node,
                           const struct config_step *step)
{
    char where[TR_CONFIG_PATH_SIZE];
    tr_config_path(node, where, sizeof where);
    if (node->text && where[0])
        return tr_fail(TR_EINVAL,
                       "`set` %.*s: %s is a text (\"%s\") and has no \"%.*s\"; replace it as a whole: "
                       "%s={...}",
                       PATH_ARGUMENTS(path), where, node->text, STEP_ARGUMENTS(step), where);
    return tr_fail(TR_EINVAL, "`set` %.*s: %s is %s and has no \"%.*s\"", PATH_ARGUMENTS(path),
                   where[0] ? where : "the document", tr_config_kind_name(node), STEP_ARGUMENTS(step));
}

/* The value of `name:`, or NULL. */
static const tr_config *name_of(const tr_config *node)
{
    return node->kind == TR_CONFIG_MAPPING ? config_find(node, "name", 4) : NULL;
}

static bool has_name(const tr_config *node, const struct config_step *step)
{
    const tr_config *name = name_of(node);
    return name && name->text && strlen(name->text) == step->length &&
           memcmp(name->text, step->text, step->length) == 0;
}

/* Finds the item with this `name:`, in itself or in the value of its single key; *holder then points to
   that mapping. */
static bool find_named(const tr_config *list, const struct config_step *step, int32_t *index,
                       tr_config **holder)
{
    for (int32_t i = 0; i < list->count; i++) {
        tr_config *item = list->child[i], *single = config_single(item);
        if (has_name(item, step)) *holder = item;
        if (!*holder && single && has_name(single, step)) *holder = single;
        *index = i;
        if (*holder) return true;
    }
    return false;
}

/* Whether an item is a text or has a single key equal to the `length` bytes at `kind`. */
static bool has_kind(const tr_config *item, const char *kind, size_t length)
{
    const tr_config *single = config_single(item);
    const char *own = single ? single->key : item->text;
    return own && strncmp(own, kind, length) == 0 && own[length] == '\0';
}

/* Finds the item called "dense2" because it is the second of its kind. *holder stays NULL where the item
   is only a text. */
static bool find_numbered(const tr_config *list, const struct config_step *step, int32_t *index,
                          tr_config **holder)
{
    size_t length = step->length;
    while (length > 0 && tr_is_digit(step->text[length - 1])) length--;
    size_t digits = step->length - length;
    if (length == 0 || digits == 0 || digits > 5) return false;
    long number = strtol(step->text + length, NULL, 10);
    if (number == 0) return false;
    for (int32_t i = 0; i < list->count; i++) {
        if (!has_kind(list->child[i], step->text, length) || --number > 0) continue;
        tr_config *single = config_single(list->child[i]);
        if (single && name_of(single)) return false; /* it has its own name */
        if (single && single->kind == TR_CONFIG_MAPPING) *holder = single;
        *index = i;
        return true;
    }
    return false;
}

/* Writes what an item is called by the number of its kind, "dense2", to `buffer`, or its own name if it
   has one. NULL where it has neither. */
static const char *call_of(const tr_config *list, int32_t index, char *buffer, size_t size)
{
    const tr_config *item = list->child[index], *single = config_single((tr_config *)(uintptr_t)item);
    const tr_config *name = name_of(item) ? name_of(item) : single ? name_of(single) : NULL;
    const char *kind = single ? single->key : item->text;
    int number = 1;
    if (name && name->text) return strlen(name->text) <= TR_CONFIG_KEY_MAX ? name->text : NULL;
    if (!kind || strlen(kind) > TR_CONFIG_KEY_MAX) return NULL;
    for (int32_t i = 0; i < index; i++) number += has_kind(list->child[i], kind, strlen(kind));
    snprintf(buffer, size, "%s%d", kind, number);
    return buffer;
}

/* The name in a list nearest to a step, into `nearest`; "" where none is near. */
static void find_nearest(const tr_config *list, const struct config_step *step, char *nearest, size_t size)
{
    char meant[TR_CONFIG_KEY_MAX + 1], one[TR_CONFIG_KEY_MAX + 16];
    const char *pair[2] = {nearest, NULL};
    snprintf(meant, sizeof meant, "%.*s", STEP_ARGUMENTS(step));
    *nearest = '\0';
    for (int32_t i = 0; i < list->count; i++) {
        pair[1] = call_of(list, i, one, sizeof one);
        if (!pair[1]) continue;
        const char *best = tr_text_nearest(meant, *nearest ? pair : pair + 1, *nearest ? 2 : 1);
        if (best && best == pair[1]) snprintf(nearest, size, "%s", pair[1]);
    }
}

static tr_status fail_item(const struct config_override *path, const tr_config *list,
                           const struct config_step *step)
{
    char where[TR_CONFIG_PATH_SIZE], nearest[TR_CONFIG_KEY_MAX + 16];
    find_nearest(list, step, nearest, sizeof nearest);
    tr_config_path(list, where, sizeof where);
    return tr_fail(
        TR_EINVAL,
        "`set` %.*s: %s has no item with name: %.*s (%s:%d)%s%s%s (items can be called by number too)",
        PATH_ARGUMENTS(path), where, STEP_ARGUMENTS(step), list->file ? list->file : "", (int)list->line,
        *nearest ? "; did you mean \"" : "", nearest, *nearest ? "\"?" : "");
}

/* Finds the item of a list that a step means: its index, and the mapping where the path continues if the
   item was called by name (else NULL). */
static tr_status find_item(const struct config_override *path, const tr_config *list,
                           const struct config_step *step, int32_t *index, tr_config **holder)
{
    char where[TR_CONFIG_PATH_SIZE];
    *holder = NULL;
    if (step->bracket || strspn(step->text, "0123456789") >= step->length) {
        long long number = step->length < 10 ? strtoll(step->text, NULL, 10) : INT64_MAX;
        if (number >= list->count)
            return tr_fail(TR_EINVAL, "`set` %.*s: %s has %d items, numbered from 0; there is no item %.*s",
                           PATH_ARGUMENTS(path), tr_config_path(list, where, sizeof where), (int)list->count,
                           STEP_ARGUMENTS(step));
        *index = (int32_t)number;
        return TR_OK;
    }
    if (find_named(list, step, index, holder) || find_numbered(list, step, index, holder)) return TR_OK;
    return fail_item(path, list, step);
}

static struct config_target target_of(tr_config *node, int32_t used)
{
    struct config_target target = {.parent = node->parent, .used = used};
    while (target.parent->child[target.index] != node) target.index++;
    if (node->key) {
        target.key = node->key;
        target.key_length = strlen(node->key);
    }
    return target;
}

static enum tr_config_short form_of(const struct config_shorts *forms, const tr_config *node,
                                    const char **key)
{
    *key = NULL;
    return forms->of ? forms->of(forms->user, node, key) : TR_CONFIG_NO_SHORT;
}

/* Whether `node`, where the path continues, is abbreviated; *target becomes the place of its full form. */
static bool find_short(const struct config_shorts *forms, tr_config *node, int32_t used,
                       struct config_target *target)
{
    const char *first;
    if (!node->parent || node->kind == TR_CONFIG_MAPPING) return false;
    enum tr_config_short form = form_of(forms, node, &first);
    if (form == TR_CONFIG_NO_SHORT || (form == TR_CONFIG_BY_NAME && node->kind != TR_CONFIG_SCALAR))
        return false;
    *target = target_of(node, used);
    target->form = form;
    target->first = first;
    return true;
}

/* The value inside a section whose name the path leaves out, else the node itself. */
static tr_config *skip_name(const struct config_shorts *forms, tr_config *node,
                            const struct config_step *step)
{
    const char *first;
    tr_config *single = step->bracket ? NULL : config_single(node);
    if (!single || config_find(node, step->text, step->length)) return node;
    return form_of(forms, node, &first) == TR_CONFIG_BY_NAME ? single : node;
}

tr_status config_find_target(const struct config_override *path, const struct config_shorts *forms,
                             tr_config *root, struct config_target *out)
{
    tr_config *node = root;
    for (int32_t i = 0; i < path->count; i++) {
        const struct config_step *step = &path->step[i];
        tr_config *child;
        node = skip_name(forms, node, step);
        if (node->kind == TR_CONFIG_NULL) {
            *out = target_of(node, i);
            return TR_OK;
        }
        if (find_short(forms, node, i, out)) return TR_OK;
        bool list_item = node->kind == TR_CONFIG_SEQUENCE, by_name = false;
        if (list_item) {
            int32_t index = 0;
            tr_config *holder = NULL;
            TR_TRY(find_item(path, node, step, &index, &holder));
            child = node->child[index];
            by_name = holder && i + 1 < path->count;
            if (by_name) child = holder;
        } else if (node->kind == TR_CONFIG_MAPPING && !step->bracket) {
            child = config_find(node, step->text, step->length);
        } else {
            return fail_kind(path, node, step);
        }
        if (!child) {
            *out = (struct config_target){node, node->count, i + 1, step->text, step->length};
            return TR_OK;
        }
        if (i + 1 < path->count && list_item && !by_name) {
            /* The single key of an item may be left out. */
            const struct config_step *next = &path->step[i + 1];
            tr_config *single = config_single(child);
            if (single && !next->bracket && !config_find(child, next->text, next->length)) child = single;
        }
        if (i + 1 == path->count || child->kind == TR_CONFIG_NULL) {
            *out = target_of(child, i + 1);
            return TR_OK;
        }
        node = child;
    }
    assert(0 && "the loop returns in its last round");
    return TR_EINVAL;
}
