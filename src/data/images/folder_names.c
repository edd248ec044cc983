/* The images of a folder or a table, and their classes. Names come from outside and are checked. */
#include "data/images/folder_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "data/tables/csv_column.h"
#include "data/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CLASSES_MAX (1 << 16)

/* ---- classes ---- */

static tr_status allocate_classes(struct folder_source *source, int64_t classes)
{
    if (classes < 1 || classes > CLASSES_MAX) {
        return tr_fail(TR_EFORMAT,
                       "%s: %" PRId64 " folders; there must be one folder of images per class, at most %d",
                       source->path, classes, CLASSES_MAX);
    }
    source->class_names = tr_alloc_zero((size_t)classes, sizeof *source->class_names);
    source->files = tr_alloc_zero((size_t)classes, sizeof *source->files);
    source->first = tr_alloc_zero((size_t)classes + 1, sizeof *source->first);
    if (!source->class_names || !source->files || !source->first) return TR_ENOMEM;
    source->folders = (int32_t)classes;
    if (source->table || source->masks) return TR_OK;
    source->base.info.labels = TR_LABEL_CLASS;
    source->base.info.classes = (int32_t)classes;
    source->base.info.class_names = (const char *const *)source->class_names;
    return TR_OK;
}

tr_status folder_filter(struct tr_file_names *names, const char *path, bool folders)
{
    int64_t kept = 0;
    tr_status status = TR_OK;
    for (int64_t i = 0; i < names->count; i++) {
        char *entry = status == TR_OK ? tr_path_join(path, names->name[i]) : NULL;
        if (status == TR_OK && !entry) status = TR_ENOMEM;
        bool keep = entry && names->name[i][0] != '.' &&
                    (folders ? tr_file_is_directory(entry) : tr_image_is_name(names->name[i]));
        tr_free(entry);
        if (keep) {
            names->name[kept++] = names->name[i];
        } else {
            tr_free(names->name[i]);
        }
    }
    names->count = kept;
    return status;
}

tr_status folder_list(struct tr_file_names *names, const char *path, bool folders)
{
    const tr_status status = tr_file_list(NULL, path, names);
    if (status == TR_OK) return folder_filter(names, path, folders);
    return status == TR_ENOMEM ? status : TR_OK;
}

tr_status folder_classes(struct folder_source *source)
{
    struct tr_file_names names = {0};
    TR_TRY(tr_file_list(NULL, source->path, &names));
    tr_status status = folder_filter(&names, source->path, true);
    if (status == TR_OK) status = allocate_classes(source, names.count);
    for (int64_t i = 0; status == TR_OK && i < names.count; i++) {
        if (strchr(names.name[i], '\n')) {
            status = tr_fail(TR_EFORMAT, "%s: the name of a class has a line feed in it; rename the folder",
                             source->path);
        }
        source->class_names[i] = names.name[i];
        names.name[i] = NULL;
    }
    tr_file_names_free(&names);
    return status;
}

tr_status folder_classes_of_state(struct folder_source *source, const char *state)
{
    int32_t classes;
    struct tr_state_reader reader;
    TR_TRY(tr_state_read_classes(state, &classes));
    TR_TRY(allocate_classes(source, classes));
    TR_TRY(tr_state_begin(state, "classes", &reader));
    for (int32_t i = 0; i < classes; i++) {
        char number[16];
        const char *line = number;
        size_t length =
            (size_t)snprintf(number, sizeof number, "%" PRId32, i); /* of a class without a name */
        if (reader.lines > 0) TR_TRY(tr_state_next(&reader, &line, &length));
        source->class_names[i] = tr_format("%.*s", (int)length, line);
        if (!source->class_names[i]) return TR_ENOMEM;
        if (length == 0 || line[0] == '.' || memchr(line, '/', length)) {
            return tr_fail(TR_EFORMAT,
                           "classes.txt:%" PRId32
                           ": \"%s\" is no name of a folder; take the file that was saved "
                           "with the model",
                           i + 2, source->class_names[i]);
        }
    }
    struct tr_file_names names = {0};
    TR_TRY(tr_file_list(NULL, source->path, &names));
    tr_status status = folder_filter(&names, source->path, true);
    for (int64_t i = 0; status == TR_OK && i < names.count; i++) {
        bool known = false;
        for (int32_t class = 0; class < classes; class ++)
            known |= strcmp(names.name[i], source->class_names[class]) == 0;
        if (!known) {
            status = tr_fail(TR_EMISMATCH,
                             "%s: folder \"%s\" is none of the %" PRId32 " classes of the training data",
                             source->path, names.name[i], classes);
        }
    }
    tr_file_names_free(&names);
    return status;
}

/* ---- files ---- */

/* Names come from a table, which may be hostile: they must stay in the folder. */
static bool stays_inside(const char *name)
{
    if (*name == '/') return false;
    for (const char *at = name;; at++) {
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == 0)) return false;
        at = strchr(at, '/');
        if (!at) return true;
    }
}

tr_status folder_files_of_table(struct folder_source *source, const char *column)
{
    TR_TRY(allocate_classes(source, 1));
    source->class_names[0] = tr_strdup(".");
    if (!source->class_names[0]) return TR_ENOMEM;
    struct tr_file_names *files = &source->files[0];
    TR_TRY(tr_csv_column(source->table, column, files));
    for (int64_t i = 0; i < files->count; i++)
        if (!stays_inside(files->name[i]))
            return tr_fail(TR_EFORMAT,
                           "%s: example %" PRId64
                           " (counted from 0) is \"%s\", which is not in the folder; write names that "
                           "begin in the folder, without ..",
                           source->table, i, files->name[i]);
    source->first[1] = files->count;
    return TR_OK;
}

tr_status folder_files_of_masks(struct folder_source *source)
{
    TR_TRY(allocate_classes(source, 1));
    source->class_names[0] = tr_strdup(".");
    return source->class_names[0] ? folder_list_class(source, 0) : TR_ENOMEM;
}

tr_status folder_list_class(struct folder_source *source, int32_t class)
{
    struct tr_file_names *files = &source->files[class];
    char *path = tr_path_join(source->path, source->class_names[class]);
    if (!path) return TR_ENOMEM;
    tr_status status = TR_OK;
    if (tr_file_is_directory(path)) {
        status = tr_file_list(NULL, path, files);
        if (status == TR_OK) status = folder_filter(files, path, false);
    }
    source->first[class + 1] = source->first[class] + files->count;
    tr_free(path);
    return status;
}
