/* Archives stay in their files, which are mapped; images are decoded when they are read. An example is an
 * image file and a class file of the same name. They stand together in an archive, in any order, possibly
 * with other files of that name.
 */
#include "data/images/shards.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "data/files/data_set.h"
#include "data/files/lines.h"
#include "data/images/folder.h"
#include "data/images/image.h"
#include "data/images/pictures.h"
#include "data/state.h"
#include "io/tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CLASSES_MAX (1 << 24)

struct shards_options {
    struct tr_string_list path;
    char *label;
    int32_t height, width, channels, depth, classes;
    int fit;
};

#define FIELD(name) .offset = offsetof(struct shards_options, name)
static const struct tr_option shards_options[] = {
    {.key = "path",
     .type = TR_OPTION_STRING_LIST,
     FIELD(path),
     .fallback = NULL,
     .help = "uncompressed tar archives of PNG or JPEG files, each with its class in a file of the same "
             "name: 0001.jpg and 0001.cls; read in this order"},
    {.key = "label",
     .type = TR_OPTION_STRING,
     FIELD(label),
     .fallback = "cls",
     .help = "ending of the files with classes, numbers from 0 as text; empty: examples have no labels"},
    TR_OPTIONS_IMAGE(struct shards_options),
    TR_OPTION_DEPTH(struct shards_options),
    TR_OPTION_CLASSES(struct shards_options, CLASSES_MAX),
};

struct example {
    const char *archive;  /* borrowed from the source */
    char name[101];       /* of the image */
    const uint8_t *image; /* in the mapped archive */
    size_t size;
    int32_t label;
};

struct shards_source {
    tr_source base;
    struct tr_pictures pictures;
    int32_t archives;
    char **path;             /* [archives] */
    struct tr_file_map *map; /* likewise */
    struct example *example; /* [count] */
    int64_t room;
};

static tr_status shards_read(const tr_source *base, int64_t index, void *features, int64_t *length,
                             void *label)
{
    const struct shards_source *source = (const struct shards_source *)base;
    const struct example *example = &source->example[index];
    *length = tr_source_capacity(base);
    if (label && base->info.labels == TR_LABEL_CLASS) *(int32_t *)label = example->label;
    if (!features) return TR_OK;
    tr_status status = tr_pictures_decode_features(&source->pictures, example->name, example->image,
                                                   example->size, features);
    return status == TR_OK ? TR_OK : tr_fail_in(status, "%s", example->archive);
}

/* Names and sizes of the images stand for their contents, as those of a folder do. */
static tr_status shards_digest(const tr_source *base, tr_sha256 *hash)
{
    static const uint32_t rules = TR_IMAGE_RULES;
    const struct shards_source *source = (const struct shards_source *)base;
    tr_sha256_add(hash, &rules, sizeof rules);
    for (int64_t i = 0; i < base->info.count; i++) {
        const struct example *example = &source->example[i];
        tr_sha256_add(hash, example->name, strlen(example->name) + 1);
        tr_sha256_add_number(hash, (int64_t)example->size);
        tr_sha256_add_number(hash, example->label);
    }
    return TR_OK;
}

static tr_status shards_state(const tr_source *base, char **text)
{
    if (base->info.labels != TR_LABEL_CLASS) return TR_OK;
    return tr_state_of_classes(NULL, base->info.classes, text);
}

static void shards_destroy(tr_source *base)
{
    struct shards_source *source = (struct shards_source *)base;
    for (int32_t i = 0; i < source->archives; i++) {
        tr_file_unmap(&source->map[i]);
        tr_free(source->path[i]);
    }
    tr_free(source->map);
    tr_free(source->path);
    tr_free(source->example);
    tr_free(source);
}

static const struct tr_source_class shards_class = {
    .name = "shards",
    .version = TR_SOURCE_VERSION,
    .read = shards_read,
    .digest = shards_digest,
    .state_name = "classes.txt",
    .state = shards_state,
    .destroy = shards_destroy,
};

/* ---- the members of an archive ---- */

/* The ending of files that hold classes; NULL: there are none. */
static const char *ending_of(const struct shards_options *options)
{
    return options->label && *options->label ? options->label : NULL;
}

/* An example whose files are being read. */
struct group {
    char key[101]; /* the name up to its first point; "" before the first */
    struct example example;
    bool has_image, has_label;
};

/* "7\n" is 7. */
static bool read_class(const struct tr_tar_file *file, int64_t *label)
{
    char text[16];
    size_t length = file->size;
    while (length > 0 && (file->data[length - 1] == '\n' || file->data[length - 1] == '\r' ||
                          file->data[length - 1] == ' '))
        length--;
    if (length == 0 || length >= sizeof text) return false;
    memcpy(text, file->data, length);
    text[length] = '\0';
    return strlen(text) == length && !tr_text_int64(text, label) && *label >= 0;
}

static tr_status add_example(struct shards_source *source, const struct group *group, bool labelled,
                             const char *archive)
{
    struct tr_source_info *info = &source->base.info;
    if (!group->has_image || (labelled && !group->has_label))
        return tr_fail(TR_EFORMAT, "%s: \"%s\" has no %s; give each image a file of its name with its class",
                       archive, group->key, group->has_image ? "class" : "image");
    if (info->count == source->room) {
        int64_t room = 2 * source->room + 256;
        struct example *grown = tr_realloc(source->example, (size_t)room, sizeof *grown);
        if (!grown) return TR_ENOMEM;
        source->example = grown;
        source->room = room;
    }
    source->example[info->count] = group->example;
    source->example[info->count++].archive = archive;
    return TR_OK;
}

static tr_status take_label(struct group *group, const struct tr_tar_file *file, const char *archive,
                            int32_t limit)
{
    int64_t label;
    if (group->has_label) return tr_fail(TR_EFORMAT, "%s: \"%s\" has two classes", archive, group->key);
    if (!read_class(file, &label))
        return tr_fail(TR_EFORMAT, "%s: \"%s\" is not a whole number from 0 as text", archive, file->name);
    if (label >= limit)
        return tr_fail(TR_EFORMAT,
                       "%s: class %" PRId64 " of \"%s\" is not from 0 to %" PRId32
                       "; correct it, or set classes",
                       archive, label, file->name, limit - 1);
    group->example.label = (int32_t)label;
    group->has_label = true;
    return TR_OK;
}

static tr_status take_member(struct group *group, const struct tr_tar_file *file, const char *archive,
                             const char *ending, int32_t limit)
{
    const char *point = strchr(file->name, '.');
    if (point && ending && strcmp(point + 1, ending) == 0) return take_label(group, file, archive, limit);
    if (!tr_image_is_name(file->name)) return TR_OK;
    if (group->has_image)
        return tr_fail(TR_EFORMAT, "%s: \"%s\" has two images, \"%s\" and \"%s\"; give each example one",
                       archive, group->key, group->example.name, file->name);
    snprintf(group->example.name, sizeof group->example.name, "%s", file->name);
    group->example.image = file->data;
    group->example.size = file->size;
    group->has_image = true;
    return TR_OK;
}

static tr_status read_archive(struct shards_source *source, int32_t number,
                              const struct shards_options *options, int32_t limit)
{
    const char *archive = source->path[number], *ending = ending_of(options);
    const struct tr_file_map *map = &source->map[number];
    struct group group = {.key = ""};
    size_t at = 0;
    for (;;) {
        struct tr_tar_file file;
        bool there;
        TR_TRY(tr_tar_next_file(archive, map->data, map->size, &at, &file, &there));
        size_t length = there ? strcspn(file.name, ".") : 0;
        if (there && length == 0) continue; /* a hidden file, which parts no example */
        bool same = there && strlen(group.key) == length && strncmp(group.key, file.name, length) == 0;
        if (!same && (group.has_image || group.has_label))
            TR_TRY(add_example(source, &group, ending != NULL, archive));
        if (!there) return TR_OK;
        if (!same) {
            group = (struct group){.key = ""};
            memcpy(group.key, file.name, length);
        }
        TR_TRY(take_member(&group, &file, archive, ending, limit));
    }
}

/* ---- opening ---- */

/* The first image determines sizes that the options leave open; the others must fit. */
static tr_status survey(struct shards_source *source, const struct shards_options *options)
{
    struct tr_source_info *info = &source->base.info;
    for (int64_t i = 0; i < info->count; i++) {
        const struct example *example = &source->example[i];
        struct tr_image_size is;
        tr_status status = tr_image_measure(example->name, example->image, example->size, &is);
        if (status == TR_OK && i == 0)
            status = tr_pictures_begin(&source->pictures, example->name, is, options->height, options->width,
                                       options->channels, &source->base);
        if (status == TR_OK)
            status = tr_pictures_check(&source->pictures, example->name, is, source->example[0].name);
        if (status != TR_OK) return tr_fail_in(status, "%s", example->archive);
    }
    return TR_OK;
}

static tr_status fill(struct shards_source *source, const struct shards_options *options,
                      const char *directory, const char *state)
{
    struct tr_source_info *info = &source->base.info;
    int32_t classes = 0, largest = 0;
    TR_TRY(tr_pictures_check_options("shards", options->depth, options->channels));
    TR_TRY(tr_state_read_classes(state, &classes));
    if (options->classes > 0) classes = options->classes;
    source->path = tr_alloc_zero((size_t)options->path.count + 1, sizeof *source->path);
    source->map = tr_alloc_zero((size_t)options->path.count + 1, sizeof *source->map);
    if (!source->path || !source->map) return TR_ENOMEM;
    for (int32_t i = 0; i < options->path.count; i++) {
        source->archives++;
        if (!(source->path[i] = tr_source_path(directory, options->path.item[i]))) return TR_ENOMEM;
        TR_TRY(tr_data_map(source->path[i], &source->map[i]));
        TR_TRY(read_archive(source, i, options, classes > 0 ? classes : CLASSES_MAX));
    }
    if (info->count == 0)
        return tr_fail(TR_EFORMAT, "%s: no PNG or JPEG files in the archive%s",
                       source->archives > 0 ? source->path[0] : "shards", source->archives > 1 ? "s" : "");
    for (int64_t i = 0; i < info->count; i++)
        if (source->example[i].label > largest) largest = source->example[i].label;
    info->labels = ending_of(options) ? TR_LABEL_CLASS : TR_LABEL_NONE;
    info->classes = !ending_of(options) ? 0 : classes > 0 ? classes : largest + 1;
    info->slow = true;
    return survey(source, options);
}

static tr_status shards_open(const void *options_, const char *directory, const char *state, tr_source **out)
{
    const struct shards_options *options = options_;
    struct shards_source *source = tr_alloc_zero(1, sizeof *source);
    if (!source) return TR_ENOMEM;
    source->base.class = &shards_class;
    source->pictures = (struct tr_pictures){.fit = (enum tr_image_fit)options->fit, .depth = options->depth};
    tr_status status = fill(source, options, directory, state);
    if (status != TR_OK) {
        shards_destroy(&source->base);
        return status;
    }
    *out = &source->base;
    return TR_OK;
}

static tr_status shards_files(const void *options_, const char *directory, struct tr_source_files *files)
{
    const struct shards_options *options = options_;
    for (int32_t i = 0; i < options->path.count; i++)
        TR_TRY(tr_source_files_add(files, directory, options->path.item[i]));
    return TR_OK;
}

static bool shards_unpacks(const void *options, const struct tr_source_files *files)
{
    (void)options;
    (void)files;
    return false;
}

const struct tr_source_format tr_source_format_shards = {
    .name = "shards",
    .help = "PNG and JPEG files with their classes in tar archives, in the form of WebDataset",
    .options = shards_options,
    .option_count = TR_OPTION_COUNT(shards_options),
    .options_size = sizeof(struct shards_options),
    .open = shards_open,
    .files = shards_files,
    .unpacks = shards_unpacks,
};
