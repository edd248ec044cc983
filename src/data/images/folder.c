#include "data/images/folder_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/files/lines.h"
#include "data/tables/csv_column.h"
#include "data/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct folder_options {
    char *path, *table, *column, *masks;
    int32_t height, width, channels, depth, classes, ignore;
    int fit;
    bool memory;
};

const struct tr_choice tr_image_fits[] = {
    {.name = "exact", .value = TR_IMAGE_EXACT, .help = "all must have it"},
    {.name = "crop", .value = TR_IMAGE_CROP, .help = "the middle of larger ones"},
    {.name = "scale", .value = TR_IMAGE_SCALE, .help = "bilinear"},
    {.name = NULL},
};

#define FIELD(name) .offset = offsetof(struct folder_options, name)
static const struct tr_option folder_options[] = {
    {.key = "path",
     .type = TR_OPTION_STRING,
     FIELD(path),
     .fallback = NULL,
     .help =
         "folder with one folder of PNG or JPEG files per class; with `table` or `masks`, the folder of the "
         "files"},
    {.key = "table",
     .type = TR_OPTION_STRING,
     FIELD(table),
     .fallback = "",
     .help = "table, plain or gzip, whose rows name files in the folder: images without labels, to be joined "
             "with the table's other columns by `join`"},
    {.key = "column",
     .type = TR_OPTION_STRING,
     FIELD(column),
     .fallback = "0",
     .help = "of `table`: the column of the files' names, by its name in the first line, or by number from 0 "
             "where the first line is a row"},
    {.key = "masks",
     .type = TR_OPTION_STRING,
     FIELD(masks),
     .fallback = "",
     .flags = TR_OPTION_QUIET,
     .help =
         "folder with a PNG for each image of `path`, of the same name but for the ending, whose pixels are "
         "numbers of classes: the labels of pixels"},
    {.key = "classes",
     .type = TR_OPTION_INT32,
     FIELD(classes),
     .fallback = "0",
     .most = 256,
     .flags = TR_OPTION_QUIET,
     .help = "with `masks`: number of classes, above every number in them"},
    TR_OPTION_IGNORE(struct folder_options),
    TR_OPTIONS_IMAGE(struct folder_options),
    TR_OPTION_DEPTH(struct folder_options),
    {.key = "memory",
     .type = TR_OPTION_BOOL,
     FIELD(memory),
     .fallback = "false",
     .help = "decode all images once and keep them in memory, instead of decoding at each use"},
};

/* ---- reading ---- */

static int32_t class_of(const struct folder_source *source, int64_t index)
{
    return tr_source_part(source->first, source->folders, index);
}

/* The path of an example's file; free with tr_free(), NULL when memory fails. */
static char *path_of(const struct folder_source *source, int64_t index, int32_t class)
{
    if (source->table || source->masks) return tr_path_join(source->path, source->files[class].name[index]);
    return tr_format("%s/%s/%s", source->path, source->class_names[class],
                     source->files[class].name[index - source->first[class]]);
}

static tr_status folder_read(const tr_source *base, int64_t index, void *features, int64_t *length,
                             void *label)
{
    const struct folder_source *source = (const struct folder_source *)base;
    int32_t class = class_of(source, index);
    *length = tr_source_capacity(base);
    if (label && source->masks) TR_TRY(folder_label_pixels(source, index, label));
    if (label && !source->table && !source->masks) *(int32_t *)label = class;
    if (!features) return TR_OK;
    if (source->pixels) {
        tr_pictures_give(&source->pictures, source->pixels + index * tr_pictures_bytes(&source->pictures),
                         features);
        return TR_OK;
    }
    char *path = path_of(source, index, class);
    if (!path) return TR_ENOMEM;
    tr_status status = tr_pictures_read_features(&source->pictures, path, features);
    tr_free(path);
    return status;
}

/* Names and sizes of the files stand for their contents: reading all of them could take as long as an epoch.
 */
static tr_status folder_digest(const tr_source *base, tr_sha256 *hash)
{
    static const uint32_t rules = TR_IMAGE_RULES;
    const struct folder_source *source = (const struct folder_source *)base;
    tr_sha256_add(hash, &rules, sizeof rules);
    for (int32_t class = 0; class < source->folders; class ++) {
        const struct tr_file_names *files = &source->files[class];
        tr_sha256_add(hash, source->class_names[class], strlen(source->class_names[class]) + 1);
        for (int64_t i = 0; i < files->count; i++) {
            tr_sha256_add(hash, files->name[i], strlen(files->name[i]) + 1);
            tr_sha256_add(hash, &source->size[source->first[class] + i], sizeof(uint64_t));
        }
    }
    if (source->masks) {
        tr_sha256_add(hash, source->mask_size, (size_t)base->info.count * sizeof *source->mask_size);
        tr_sha256_add_number(hash, source->ignore);
    }
    return TR_OK;
}

static tr_status folder_state(const tr_source *base, char **text)
{
    if (base->info.labels == TR_LABEL_NONE) return TR_OK;
    return tr_state_of_classes(base->info.class_names, base->info.classes, text);
}

static void folder_destroy(tr_source *base)
{
    struct folder_source *source = (struct folder_source *)base;
    for (int32_t class = 0; class < source->folders; class ++) {
        if (source->files) tr_file_names_free(&source->files[class]);
        if (source->class_names) tr_free(source->class_names[class]);
    }
    tr_free(source->files);
    tr_free(source->first);
    tr_free(source->size);
    tr_free(source->class_names);
    tr_free(source->pixels);
    tr_free(source->first_path);
    tr_free(source->masks);
    tr_free(source->mask_size);
    tr_free(source->numbers);
    tr_free(source->path);
    tr_free(source->table);
    tr_free(source);
}

static const struct tr_source_class folder_class = {
    .name = "folder",
    .version = TR_SOURCE_VERSION,
    .read = folder_read,
    .digest = folder_digest,
    .state_name = "classes.txt",
    .state = folder_state,
    .destroy = folder_destroy,
};

/* ---- files ---- */

/* Notes a file's size; the first image determines sizes that the options leave open. */
static tr_status survey_file(struct folder_source *source, int64_t index, const char *path,
                             const struct folder_options *options)
{
    struct tr_file_map map;
    TR_TRY(tr_file_map(path, &map));
    struct tr_image_size is;
    tr_status status = tr_image_measure(path, map.data, map.size, &is);
    source->size[index] = map.size;
    tr_file_unmap(&map);
    if (status != TR_OK) return status;
    if (index == 0) {
        TR_TRY(tr_pictures_begin(&source->pictures, path, is, options->height, options->width,
                                 options->channels, &source->base));
        if (!(source->first_path = tr_strdup(path))) return TR_ENOMEM;
    }
    if (source->masks) TR_TRY(folder_survey_mask(source, index, is));
    return tr_pictures_check(&source->pictures, path, is, source->first_path);
}

static tr_status for_each_file(struct folder_source *source, const struct folder_options *options,
                               tr_status (*visit)(struct folder_source *source, int64_t index,
                                                  const char *path, const struct folder_options *options))
{
    for (int64_t index = 0; index < source->base.info.count; index++) {
        char *path = path_of(source, index, class_of(source, index));
        if (!path) return TR_ENOMEM;
        tr_status status = visit(source, index, path, options);
        tr_free(path);
        if (status != TR_OK)
            return source->table
                       ? tr_fail_in(status, "%s: example %" PRId64 " (counted from 0)", source->table, index)
                       : status;
    }
    return TR_OK;
}

static tr_status keep_file(struct folder_source *source, int64_t index, const char *path,
                           const struct folder_options *options)
{
    (void)options;
    const int64_t pixels = tr_source_pixels(&source->base.info);
    if (source->masks) TR_TRY(folder_read_mask(source, index, source->numbers + index * pixels));
    return tr_pictures_read(&source->pictures, path,
                            source->pixels + index * tr_pictures_bytes(&source->pictures));
}

/* Refuses options that contradict each other. */
static tr_status check(const struct folder_options *options)
{
    TR_TRY(tr_pictures_check_options("folder", options->depth, options->channels));
    if (options->masks && options->table)
        return tr_fail(TR_EUNSUPPORTED, "folder: masks and table are both given; leave one of them out");
    if (!options->masks && options->classes > 0)
        return tr_fail(TR_EINVAL, "folder: classes is of masks, and without them each class has a folder; "
                                  "leave it out");
    if (!options->masks && options->ignore >= 0)
        return tr_fail(TR_EINVAL, "folder: ignore is of masks, which are not given; leave it out");
    return TR_OK;
}

static tr_status find_files(struct folder_source *source, const struct folder_options *options,
                            const char *state)
{
    struct tr_source_info *info = &source->base.info;
    if (source->table) return folder_files_of_table(source, options->column);
    if (source->masks) {
        TR_TRY(folder_files_of_masks(source));
        return folder_classes_of_masks(source, options->classes, state);
    }
    TR_TRY(state ? folder_classes_of_state(source, state) : folder_classes(source));
    for (int32_t class = 0; class < info->classes; class ++) TR_TRY(folder_list_class(source, class));
    return TR_OK;
}

static tr_status fill(struct folder_source *source, const struct folder_options *options, const char *state)
{
    struct tr_source_info *info = &source->base.info;
    TR_TRY(check(options));
    TR_TRY(find_files(source, options, state));
    info->count = source->first[source->folders];
    if (info->count == 0) {
        return tr_fail(TR_EFORMAT, "%s: the set is empty: no PNG or JPEG files in %s", source->path,
                       source->masks ? "the folder" : "a folder for each class, as in photos/cat/1.jpg");
    }
    source->size = tr_alloc((size_t)info->count, sizeof *source->size);
    if (source->masks) source->mask_size = tr_alloc((size_t)info->count, sizeof *source->mask_size);
    if (!source->size || (source->masks && !source->mask_size)) return TR_ENOMEM;
    info->slow = !options->memory;
    TR_TRY(for_each_file(source, options, survey_file));
    if (!options->memory) return TR_OK;
    source->pixels = tr_alloc_aligned((size_t)info->count, (size_t)tr_pictures_bytes(&source->pictures));
    if (source->masks) source->numbers = tr_alloc((size_t)info->count, (size_t)tr_source_pixels(info));
    if (!source->pixels || (source->masks && !source->numbers)) return TR_ENOMEM;
    if (!source->pictures.size.wide) source->base.resident = source->pixels;
    return for_each_file(source, options, keep_file);
}

static tr_status folder_open(const void *options_, const char *directory, const char *state, tr_source **out)
{
    const struct folder_options *options = options_;
    struct folder_source *source = tr_alloc_zero(1, sizeof *source);
    if (!source) return TR_ENOMEM;
    source->base.class = &folder_class;
    source->pictures = (struct tr_pictures){.fit = (enum tr_image_fit)options->fit, .depth = options->depth};
    source->path = tr_source_path(directory, options->path);
    source->ignore = options->ignore;
    if (options->table) source->table = tr_source_path(directory, options->table);
    if (options->masks) source->masks = tr_source_path(directory, options->masks);
    bool has_paths = source->path && (!options->table || source->table) && (!options->masks || source->masks);
    tr_status status = has_paths ? fill(source, options, state) : TR_ENOMEM;
    if (status != TR_OK) {
        folder_destroy(&source->base);
        return status;
    }
    *out = &source->base;
    return TR_OK;
}

static tr_status add_class_files(struct tr_source_files *files, const char *path, const char *class,
                                 bool images)
{
    struct tr_file_names names = {0};
    TR_TRY(tr_source_files_add(files, path, class));
    if (!images) return TR_OK;
    char *folder = tr_path_join(path, class);
    if (!folder) return TR_ENOMEM;
    tr_status status = folder_list(&names, folder, false);
    for (int64_t i = 0; status == TR_OK && i < names.count; i++)
        status = tr_source_files_add(files, folder, names.name[i]);
    tr_file_names_free(&names);
    tr_free(folder);
    return status;
}

/* The table and, where the images are unpacked, the images that it names. */
static tr_status table_files(const struct folder_options *options, const char *directory, const char *path,
                             struct tr_source_files *files)
{
    struct tr_file_names names = {0};
    TR_TRY(tr_source_files_add(files, directory, options->table));
    if (!options->memory) return TR_OK;
    char *table = tr_source_path(directory, options->table);
    if (!table) return TR_ENOMEM;
    tr_status status = tr_csv_column(table, options->column, &names);
    if (status != TR_OK && status != TR_ENOMEM) { /* opening reports faults of the table */
        tr_file_names_free(&names);
        status = TR_OK;
    }
    for (int64_t i = 0; status == TR_OK && i < names.count; i++)
        status = tr_source_files_add(files, path, names.name[i]);
    tr_file_names_free(&names);
    tr_free(table);
    return status;
}

/* The folders of the classes, whose times show when files are added or removed; where the images are
   unpacked, also the images. */
static tr_status folder_files(const void *options_, const char *directory, struct tr_source_files *files)
{
    const struct folder_options *options = options_;
    struct tr_file_names classes = {0};
    char *path = tr_source_path(directory, options->path);
    if (!path) return TR_ENOMEM;
    tr_status status;
    TR_TRY_GOTO(tr_source_files_add(files, NULL, path), out);
    if (options->masks) {
        char *masks = tr_source_path(directory, options->masks);
        status = masks ? folder_files_with_masks(files, path, masks, options->memory) : TR_ENOMEM;
        tr_free(masks);
        goto out;
    }
    if (options->table) {
        status = table_files(options, directory, path, files);
        goto out;
    }
    TR_TRY_GOTO(folder_list(&classes, path, true), out);
    for (int64_t i = 0; i < classes.count; i++)
        TR_TRY_GOTO(add_class_files(files, path, classes.name[i], options->memory), out);
out:
    tr_file_names_free(&classes);
    tr_free(path);
    return status;
}

static bool folder_unpacks(const void *options, const struct tr_source_files *files)
{
    (void)files;
    return ((const struct folder_options *)options)->memory;
}

const struct tr_source_format tr_source_format_folder = {
    .name = "folder",
    .help =
        "PNG and JPEG files in one folder per class, or with a mask each; docs/reference/images.md defines "
        "the numbers that they give",
    .options = folder_options,
    .option_count = TR_OPTION_COUNT(folder_options),
    .options_size = sizeof(struct folder_options),
    .open = folder_open,
    .files = folder_files,
    .unpacks = folder_unpacks,
};
