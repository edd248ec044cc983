#include "data/formats/cifar.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "data/files/data_set.h"
#include "data/state.h"
#include "data/files/tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SIDE     32
#define PLANE    (SIDE * SIDE)
#define IMAGE    (3 * PLANE)
#define RECORD   (1 + IMAGE)
#define CLASSES  10
#define FILES    5     /* files of the training part */
#define PER_FILE 10000 /* records */

static const char *const class_names[CLASSES] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                 "dog",      "frog",       "horse", "ship", "truck"};

enum part { PART_TRAIN, PART_TEST };

struct cifar_options {
    char *path;
    int part;
};

static const struct tr_choice parts[] = {
    {.name = "train", .value = PART_TRAIN, .help = "50,000 images"},
    {.name = "test", .value = PART_TEST, .help = "10,000 images"},
    {.name = NULL},
};

#define FIELD(name) .offset = offsetof(struct cifar_options, name)
static const struct tr_option cifar_options[] = {
    {.key = "path",
     .type = TR_OPTION_STRING,
     FIELD(path),
     .fallback = NULL,
     .help = "the archive cifar-10-binary.tar.gz, or a folder with its files data_batch_1.bin to 5 and "
             "test_batch.bin"},
    {.key = "part",
     .type = TR_OPTION_CHOICE,
     FIELD(part),
     .fallback = "train",
     .choices = parts,
     .help = "which of the two sets"},
};

struct cifar_source {
    tr_source base;
    uint8_t *pixels; /* [count][32][32][3] */
    uint8_t *label;  /* [count] */
};

static tr_status cifar_read(const tr_source *base, int64_t index, void *features, int64_t *length,
                            void *label)
{
    const struct cifar_source *source = (const struct cifar_source *)base;
    *length = IMAGE;
    if (features) memcpy(features, source->pixels + index * IMAGE, IMAGE);
    if (label) *(int32_t *)label = source->label[index];
    return TR_OK;
}

static tr_status cifar_digest(const tr_source *base, tr_sha256 *hash)
{
    const struct cifar_source *source = (const struct cifar_source *)base;
    tr_sha256_add(hash, source->pixels, (size_t)base->info.count * IMAGE);
    tr_sha256_add(hash, source->label, (size_t)base->info.count);
    return TR_OK;
}

static tr_status cifar_state(const tr_source *base, char **text)
{
    return tr_state_of_classes(base->info.class_names, base->info.classes, text);
}

static void cifar_destroy(tr_source *base)
{
    struct cifar_source *source = (struct cifar_source *)base;
    tr_free(source->pixels);
    tr_free(source->label);
    tr_free(source);
}

static const struct tr_source_class cifar_class = {
    .name = "cifar",
    .version = TR_SOURCE_VERSION,
    .read = cifar_read,
    .digest = cifar_digest,
    .state_name = "classes.txt",
    .state = cifar_state,
    .destroy = cifar_destroy,
};

/* ---- opening ---- */

static void file_name(enum part part, int file, char name[32])
{
    if (part == PART_TEST) {
        strcpy(name, "test_batch.bin");
    } else {
        snprintf(name, 32, "data_batch_%d.bin", file + 1);
    }
}

/* Reads the records of file number `file` of the part from the present position of `inflate`. */
static tr_status read_records(struct cifar_source *source, tr_inflate *inflate, const char *path, int file)
{
    uint8_t record[RECORD];
    for (int64_t i = 0; i < PER_FILE; i++) {
        int64_t index = (int64_t)file * PER_FILE + i;
        uint64_t offset = tr_inflate_offset(inflate);
        TR_TRY(tr_inflate_exact(inflate, record, RECORD, "a record"));
        if (record[0] >= CLASSES) {
            return tr_fail(TR_EFORMAT,
                           "%s: label %d at offset %" PRIu64 " is not below %d; get the file again", path,
                           record[0], offset, CLASSES);
        }
        uint8_t *to = source->pixels + index * IMAGE;
        source->label[index] = record[0];
        for (int pixel = 0; pixel < PLANE; pixel++) {
            for (int plane = 0; plane < 3; plane++) *to++ = record[1 + plane * PLANE + pixel];
        }
    }
    return TR_OK;
}

static tr_status read_file(struct cifar_source *source, const char *directory, enum part part, int file)
{
    char name[32];
    struct tr_file_map map = {0};
    tr_inflate *inflate = NULL;
    tr_status status;
    file_name(part, file, name);
    char *path = tr_path_join(directory, name);
    if (!path) return TR_ENOMEM;
    TR_TRY_GOTO(tr_data_map(path, &map), out);
    TR_TRY_GOTO(tr_inflate_create(path, map.data, map.size, TR_PACKING_NONE, &inflate), out);
    TR_TRY_GOTO(read_records(source, inflate, path, file), out);
    status = tr_inflate_end(inflate);
out:
    tr_inflate_destroy(&inflate);
    tr_file_unmap(&map);
    tr_free(path);
    return status;
}

/* The number of a member among the part's files, -1 if it is none of them. */
static int file_of(const char *member, enum part part, int files)
{
    for (int file = 0; file < files; file++) {
        char name[32];
        file_name(part, file, name);
        if (strcmp(tr_path_name(member), name) == 0) return file;
    }
    return -1;
}

/* Reads the part's files from the archive, in any order, until all are found. */
static tr_status read_members(struct cifar_source *source, tr_inflate *inflate, const char *path,
                              enum part part, int files)
{
    unsigned found = 0, all = (1u << files) - 1;
    while (found != all) {
        struct tr_tar_member member;
        TR_TRY(tr_tar_next(inflate, path, &member));
        if (member.name[0] == 0) {
            char name[32];
            file_name(part, __builtin_ctz(~found), name);
            return tr_fail(TR_EFORMAT, "%s: the archive has no %s; get the file again", path, name);
        }
        int file = file_of(member.name, part, files);
        uint64_t done = 0;
        if (file >= 0) {
            if (found >> file & 1 || member.size != (uint64_t)PER_FILE * RECORD) {
                return tr_fail(TR_EFORMAT,
                               "%s: member %s has %" PRIu64
                               " bytes, not %d, or is there twice; get the file again",
                               path, member.name, member.size, PER_FILE * RECORD);
            }
            TR_TRY(read_records(source, inflate, path, file));
            done = member.size;
            found |= 1u << file;
        }
        TR_TRY(tr_tar_skip(inflate, &member, done));
    }
    return TR_OK;
}

static tr_status read_archive(struct cifar_source *source, const char *path, enum part part, int files)
{
    struct tr_file_map map;
    TR_TRY(tr_data_map(path, &map));
    tr_status status;
    tr_inflate *inflate = NULL;
    enum tr_packing packing =
        tr_packing_of(map.data, map.size) == TR_PACKING_GZIP ? TR_PACKING_GZIP : TR_PACKING_NONE;
    TR_TRY_GOTO(tr_inflate_create(path, map.data, map.size, packing, &inflate), out);
    status = read_members(source, inflate, path, part, files);
out:
    tr_inflate_destroy(&inflate);
    tr_file_unmap(&map);
    return status;
}

static tr_status fill(struct cifar_source *source, const char *path, enum part part)
{
    struct tr_source_info *info = &source->base.info;
    int files = part == PART_TRAIN ? FILES : 1;
    *info = (struct tr_source_info){
        .count = (int64_t)files * PER_FILE,
        .features = TR_FEATURE_IMAGE,
        .labels = TR_LABEL_CLASS,
        .height = SIDE,
        .width = SIDE,
        .channels = 3,
        .classes = CLASSES,
        .class_names = class_names,
    };
    source->pixels = tr_alloc_aligned((size_t)info->count, IMAGE);
    source->label = tr_alloc((size_t)info->count, 1);
    if (!source->pixels || !source->label) return TR_ENOMEM;
    source->base.resident = source->pixels;
    if (!tr_file_is_directory(path)) return read_archive(source, path, part, files);
    for (int file = 0; file < files; file++) TR_TRY(read_file(source, path, part, file));
    return TR_OK;
}

static tr_status cifar_open(const void *options_, const char *directory, const char *state, tr_source **out)
{
    (void)state; /* nothing is derived from the data */
    const struct cifar_options *options = options_;
    tr_status status = TR_ENOMEM;
    char *path = tr_source_path(directory, options->path);
    struct cifar_source *source = tr_alloc_zero(1, sizeof *source);
    if (!path || !source) goto out;
    source->base.class = &cifar_class;
    TR_TRY_GOTO(fill(source, path, (enum part)options->part), out);
    *out = &source->base;
    source = NULL;
out:
    if (source) cifar_destroy(&source->base);
    tr_free(path);
    return status;
}

static tr_status cifar_files(const void *options_, const char *directory, struct tr_source_files *files)
{
    const struct cifar_options *options = options_;
    tr_status status = TR_OK;
    char name[32], *path = tr_source_path(directory, options->path);
    if (!path) return TR_ENOMEM;
    bool folder = tr_file_is_directory(path);
    if (!folder) status = tr_source_files_add(files, NULL, path);
    int count = folder ? (options->part == PART_TRAIN ? FILES : 1) : 0;
    for (int file = 0; status == TR_OK && file < count; file++) {
        file_name((enum part)options->part, file, name);
        status = tr_source_files_add(files, path, name);
    }
    tr_free(path);
    return status;
}

const struct tr_source_format tr_source_format_cifar = {
    .name = "cifar",
    .help = "CIFAR-10 in its binary form, kept in memory",
    .options = cifar_options,
    .option_count = TR_OPTION_COUNT(cifar_options),
    .options_size = sizeof(struct cifar_options),
    .open = cifar_open,
    .files = cifar_files,
};
