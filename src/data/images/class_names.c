#include "data/images/class_names.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/state.h"

#include <string.h>

/* The bytes of `name` against `length` bytes, like strcmp(). */
static int compare(const char *name, const char *at, size_t length)
{
    size_t own = strlen(name);
    int order = memcmp(name, at, own < length ? own : length);
    return order != 0 ? order : own < length ? -1 : own > length;
}

/* The place where a name is, or where it belongs. */
static int32_t place_of(const struct tr_class_names *names, const char *at, size_t length)
{
    int32_t low = 0, high = names->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (compare(names->name[middle], at, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t tr_class_names_find(const struct tr_class_names *names, const char *at, size_t length)
{
    int32_t place = place_of(names, at, length);
    bool found = place < names->count && compare(names->name[place], at, length) == 0;
    return found ? place : -1;
}

tr_status tr_class_names_add(struct tr_class_names *names, const char *at, size_t length)
{
    int32_t place = place_of(names, at, length);
    if (place < names->count && compare(names->name[place], at, length) == 0) return TR_OK;
    if (memchr(at, 0, length)) return tr_fail(TR_EFORMAT, "a byte 0 in a label; give a text file");
    if (names->count == TR_CLASS_NAMES_MAX)
        return tr_fail(TR_EFORMAT,
                       "there are more than %d different labels, too many for classes; is the label another "
                       "column, or a number to predict (label: value)?",
                       TR_CLASS_NAMES_MAX);
    if (names->count == names->room) {
        int32_t room = 2 * names->room + 16;
        char **grown = tr_realloc(names->name, (size_t)room, sizeof *grown);
        if (!grown) return TR_ENOMEM;
        names->name = grown;
        names->room = room;
    }
    char *name = tr_format("%.*s", (int)length, at);
    if (!name) return TR_ENOMEM;
    memmove(names->name + place + 1, names->name + place,
            (size_t)(names->count - place) * sizeof *names->name);
    names->name[place] = name;
    names->count++;
    return TR_OK;
}

void tr_class_names_add_unknown(const struct tr_class_names *names, const char *at, size_t length,
                                struct tr_text *text)
{
    char label[64];
    size_t shown = length < sizeof label ? length : sizeof label - 1;
    memcpy(label, at, shown);
    label[shown] = '\0';
    tr_text_add(text, "label ");
    if (names->count <= 20) {
        tr_text_add_unknown(text, label, (const char *const *)names->name, names->count);
        return;
    }
    const char *nearest = tr_text_nearest(label, (const char *const *)names->name, names->count);
    tr_text_addf(text, "\"%s\" is none of the %d classes of the training data", label, (int)names->count);
    if (nearest) tr_text_addf(text, "; did you mean \"%s\"?", nearest);
}

void tr_class_names_release(struct tr_class_names *names)
{
    for (int32_t i = 0; i < names->count; i++) tr_free(names->name[i]);
    tr_free(names->name);
    *names = (struct tr_class_names){0};
}

void tr_class_names_write(const struct tr_class_names *names, struct tr_text *state)
{
    if (names->count == 0) return;
    tr_state_add_head(state, TR_STATE_CLASSES, names->count, names->count);
    for (int32_t i = 0; i < names->count; i++) tr_text_addf(state, "%s\n", names->name[i]);
}

tr_status tr_class_names_read(const char *state, struct tr_class_names *names)
{
    struct tr_state_reader reader;
    const char *part = state ? tr_state_part(state, TR_STATE_CLASSES) : NULL;
    *names = (struct tr_class_names){0};
    TR_TRY(tr_state_begin(part, TR_STATE_CLASSES, &reader));
    for (int64_t i = 0; i < reader.lines; i++) {
        const char *line;
        size_t length;
        TR_TRY(tr_state_next(&reader, &line, &length));
        if (place_of(names, line, length) != names->count || tr_class_names_find(names, line, length) >= 0)
            return tr_fail(TR_EFORMAT,
                           "the names of classes do not ascend; take the file that was saved with "
                           "the model");
        TR_TRY(tr_class_names_add(names, line, length));
    }
    return tr_state_end(&reader);
}
