#include "export/rename.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"

#include <string.h>

/* A part of a text. */
struct piece {
    const char *at;
    size_t length;
};

struct rename {
    struct piece theirs, ours;
    bool transposed;
};

static struct piece all_of(const char *text)
{
    return (struct piece){text, strlen(text)};
}

static size_t stars_of(struct piece piece)
{
    size_t stars = 0;
    for (size_t i = 0; i < piece.length; i++) stars += piece.at[i] == '*';
    return stars;
}

static bool read_rename(const char *text, struct rename *out)
{
    const char *sign = strrchr(text, '=');
    if (!sign || sign == text) return false;
    *out = (struct rename){{text, (size_t)(sign - text)}, all_of(sign + 1), false};
    struct piece *theirs = &out->theirs;
    if (theirs->length > 2 && memcmp(sign - 2, "^T", 2) == 0) {
        out->transposed = true;
        theirs->length -= 2;
    }
    size_t stars = stars_of(*theirs);
    return stars <= 1 && (out->ours.length == 0 || stars_of(out->ours) == stars);
}

/* Whether a name matches a pattern; `number` becomes the text that its star stands for, empty if it has
   none. */
static bool fits(struct piece pattern, struct piece name, struct piece *number)
{
    const char *star = memchr(pattern.at, '*', pattern.length);
    *number = (struct piece){name.at, 0};
    if (!star) return pattern.length == name.length && memcmp(pattern.at, name.at, name.length) == 0;
    size_t before = (size_t)(star - pattern.at), behind = pattern.length - before - 1;
    if (name.length <= before + behind || memcmp(pattern.at, name.at, before) != 0 ||
        memcmp(star + 1, name.at + name.length - behind, behind) != 0)
        return false;
    *number = (struct piece){name.at + before, name.length - before - behind};
    for (size_t i = 0; i < number->length; i++)
        if (number->at[i] < '0' || number->at[i] > '9') return false;
    return true;
}

/* Whether a rename concerns one of our tensors; `rest` is the rest of the name. */
static bool is_about(const struct rename *rename, const char *name, struct piece *number, struct piece *rest)
{
    const char *point = strchr(name, '.');
    *rest = all_of(name + strlen(name));
    if (rename->ours.length == 0) return false;
    if (memchr(rename->ours.at, '.', rename->ours.length)) return fits(rename->ours, all_of(name), number);
    *rest = all_of(point);
    return fits(rename->ours, (struct piece){name, (size_t)(point - name)}, number);
}

tr_status tr_rename_check(const char *const *rename, int renames, const char *const *name, int count)
{
    for (int i = 0; i < renames; i++) {
        struct rename parts;
        struct piece number, rest;
        int k = 0;
        if (!read_rename(rename[i], &parts))
            return tr_fail(TR_EINVAL,
                           "\"%s\" renames nothing; write the name in the file, =, and the layer: "
                           "features.0=conv1; a * in both stands for a number",
                           rename[i]);
        if (parts.ours.length == 0) continue;
        while (k < count && !is_about(&parts, name[k], &number, &rest)) k++;
        if (k < count) continue;
        bool tensor = memchr(parts.ours.at, '.', parts.ours.length) != NULL;
        return tr_fail(TR_EINVAL, "there is no %s \"%.*s\" for \"%s\"; `trireme inspect` lists the layers",
                       tensor ? "tensor" : "layer", (int)parts.ours.length, parts.ours.at, rename[i]);
    }
    return TR_OK;
}

char *tr_rename_find(const char *const *rename, int renames, const char *name, bool *transposed)
{
    *transposed = false;
    for (int i = 0; i < renames; i++) {
        struct rename parts;
        struct piece number, rest, theirs;
        if (!read_rename(rename[i], &parts) || !is_about(&parts, name, &number, &rest)) continue;
        *transposed = parts.transposed;
        theirs = parts.theirs;
        const char *star = memchr(theirs.at, '*', theirs.length);
        if (!star) return tr_format("%.*s%s", (int)theirs.length, theirs.at, rest.at);
        int before = (int)(star - theirs.at), behind = (int)theirs.length - before - 1;
        return tr_format("%.*s%.*s%.*s%s", before, theirs.at, (int)number.length, number.at, behind, star + 1,
                         rest.at);
    }
    return tr_format("%s", name);
}

bool tr_rename_passes(const char *const *rename, int renames, const char *name)
{
    for (int i = 0; i < renames; i++) {
        struct rename parts;
        struct piece number;
        if (read_rename(rename[i], &parts) && parts.ours.length == 0 &&
            fits(parts.theirs, all_of(name), &number))
            return true;
    }
    return false;
}
