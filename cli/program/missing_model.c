#include "cli/program/missing_model.h"

#include "cli/program/shipped.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/ops.h"
#include "base/text/text.h"

#include <string.h>

static const char *const suffixes[] = {".yaml", ".yml"};
#define SUFFIXES (sizeof suffixes / sizeof suffixes[0])

static bool has_file(const char *directory, const char *name)
{
    char *path = tr_path_join(directory, name);
    bool there = path && tr_file_exists(path);
    tr_free(path);
    return there;
}

bool cli_is_run(const char *path)
{
    return has_file(path, "journal.jsonl") || has_file(path, "manifest.json");
}

/* The bytes of `name` before its suffix of a model file; all if it has none. */
static size_t stem_length(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < SUFFIXES; i++) {
        size_t suffix = strlen(suffixes[i]);
        if (length > suffix && strcmp(name + length - suffix, suffixes[i]) == 0) return length - suffix;
    }
    return length;
}

/* The model that ships under the name in the path's last part, without a suffix; else NULL. Returned, free
   with tr_free(). */
static char *shipped_name(const char *path)
{
    char *directory, *found = NULL;
    struct tr_file_names names;
    const char *name = tr_path_name(path);
    size_t length = stem_length(name);
    if (cli_shipped_models(&directory, &names) != TR_OK) return NULL;
    for (int64_t i = 0; i < names.count && !found; i++)
        if (strlen(names.name[i]) == length && memcmp(names.name[i], name, length) == 0)
            found = tr_strdup(names.name[i]);
    tr_file_names_free(&names);
    tr_free(directory);
    return found;
}

/* The same path with a suffix of model files under which a file exists; NULL: none. Returned, free with
   tr_free(). */
static char *other_suffix(const char *path)
{
    const char *name = tr_path_name(path);
    size_t length = (size_t)(name - path) + stem_length(name);
    for (size_t i = 0; i < SUFFIXES; i++) {
        char *other = tr_format("%.*s%s", (int)length, path, suffixes[i]);
        if (other && tr_file_exists(other)) return other;
        tr_free(other);
    }
    return NULL;
}

bool cli_model_lacks_suffix(const char *path)
{
    char *other = other_suffix(path);
    bool lacks = other != NULL;
    tr_free(other);
    return lacks;
}

/* A model file of the same directory with a similar name, whatever the suffix; NULL: none. Returned, free
   with tr_free(). */
static char *near_file(const char *path)
{
    char *directory = tr_path_parent(path), *found = NULL, *stem = NULL;
    const char *name = tr_path_name(path);
    struct tr_file_names names = {0};
    if (directory && tr_file_list(NULL, directory, &names) == TR_OK) {
        stem = tr_format("%.*s", (int)stem_length(name), name);
        for (int64_t i = 0; i < names.count && stem && !found; i++) {
            size_t length = stem_length(names.name[i]);
            char *one = names.name[i][length] ? tr_format("%.*s", (int)length, names.name[i]) : NULL;
            if (one && tr_text_nearest(stem, (const char *const *)&one, 1))
                found = tr_format("%.*s%s", (int)(name - path), path, names.name[i]);
            tr_free(one);
        }
        tr_file_names_free(&names);
    }
    tr_free(stem);
    tr_free(directory);
    return found;
}

static tr_status fail_missing(const char *path)
{
    char *shipped = shipped_name(path), *other = shipped ? NULL : other_suffix(path);
    if (!shipped && !other) other = near_file(path);
    tr_status status =
        shipped ? tr_fail(TR_ENOTFOUND,
                          "there is no file \"%s\" here; a model of that name ships: write %s alone", path,
                          shipped)
        : other
            ? tr_fail(TR_ENOTFOUND, "there is no file \"%s\"; did you mean \"%s\"?", path, other)
            : tr_fail(
                  TR_ENOTFOUND,
                  "there is no file \"%s\"; check the path, or take a model that ships (`trireme models`)",
                  path);
    tr_free(shipped);
    tr_free(other);
    return status;
}

/* Whether a part of `path` before its end is a file: then the system's message is the best. */
static bool leads_through_file(const char *path)
{
    char *parent = tr_path_parent(path);
    bool through = parent && tr_file_exists(parent) && !tr_file_is_directory(parent);
    tr_free(parent);
    return through;
}

tr_status cli_model_check(const char *path)
{
    if (!tr_file_exists(path)) return leads_through_file(path) ? TR_OK : fail_missing(path);
    if (!tr_file_is_directory(path)) return TR_OK;
    if (cli_is_run(path))
        return tr_fail(TR_EINVAL,
                       "\"%s\" is a directory of checkpoints, not a model file: `trireme train --resume %s` "
                       "goes on with "
                       "that run",
                       path, path);
    return tr_fail(TR_EINVAL, "\"%s\" is a directory; a model file is wanted, or the name of one that ships",
                   path);
}
