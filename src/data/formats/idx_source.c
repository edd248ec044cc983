/* Images and labels from IDX files, unpacked into memory. */
#include "data/formats/idx.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/counted.h"
#include "data/files/lines.h"
#include "data/state.h"

#include <inttypes.h>
#include <string.h>

struct idx_options {
    char *images, *labels;
    int32_t classes, ignore;
};

static const struct tr_option idx_options[] = {
    {.key = "images",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct idx_options, images),
     .fallback = NULL,
     .help = "file of images, plain or gzip: unsigned bytes, [count][height][width] or "
             "[count][height][width][channels]"},
    {.key = "labels",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct idx_options, labels),
     .fallback = "",
     .help =
         "file of labels, plain or gzip: unsigned bytes, [count] for a class each, [count][height][width] "
         "for one of each pixel; images have no labels without it"},
    TR_OPTION_CLASSES(struct idx_options, 256),
    TR_OPTION_IGNORE(struct idx_options),
};

struct idx_source {
    tr_source base;
    struct tr_idx images, labels; /* labels.data is NULL without labels */
    int32_t ignore;               /* the label of pixels that have none, or -1 */
};

static tr_status no_images(void)
{
    return tr_fail(TR_EINVAL, "images of a set that was opened for its sizes alone were asked for");
}

static tr_status idx_read(const tr_source *base, int64_t index, void *features, int64_t *length, void *label)
{
    const struct idx_source *source = (const struct idx_source *)base;
    int64_t size = tr_source_capacity(base);
    if (features && !source->images.data) return no_images();
    if (features) memcpy(features, source->images.data + index * size, (size_t)size);
    const int64_t pixels = tr_source_pixels(&base->info);
    for (int64_t i = 0; label && i < pixels; i++) {
        int32_t class = source->labels.data[index * pixels + i];
        ((int32_t *)label)[i] = class == source->ignore ? TR_NO_LABEL : class;
    }
    if (label && source->labels.data && pixels == 0) *(int32_t *)label = source->labels.data[index];
    *length = size;
    return TR_OK;
}

static tr_status idx_digest(const tr_source *base, tr_sha256 *hash)
{
    const struct idx_source *source = (const struct idx_source *)base;
    if (!source->images.data) return no_images();
    tr_sha256_add(hash, source->images.data, (size_t)source->images.bytes);
    if (source->labels.data) tr_sha256_add(hash, source->labels.data, (size_t)source->labels.bytes);
    if (source->ignore >= 0) tr_sha256_add_number(hash, source->ignore);
    return TR_OK;
}

static tr_status idx_state(const tr_source *base, char **text)
{
    if (base->info.labels == TR_LABEL_NONE) return TR_OK;
    return tr_state_of_classes(NULL, base->info.classes, text);
}

static void idx_destroy(tr_source *base)
{
    struct idx_source *source = (struct idx_source *)base;
    tr_idx_free(&source->images);
    tr_idx_free(&source->labels);
    tr_free(source);
}

static const struct tr_source_class idx_class = {
    .name = "idx",
    .version = TR_SOURCE_VERSION,
    .read = idx_read,
    .digest = idx_digest,
    .state_name = "classes.txt",
    .state = idx_state,
    .destroy = idx_destroy,
};

static tr_status read_images(const char *path, bool outline, struct idx_source *source)
{
    struct tr_idx *images = &source->images;
    TR_TRY(outline ? tr_idx_read_sizes(path, images) : tr_idx_read(path, images));
    if (images->dimensions < 3) {
        char dimensions[TR_COUNTED_SIZE];
        return tr_fail(TR_EFORMAT,
                       "%s: %s at offset 3; images have 3 or 4; give the file of images here, not that "
                       "of labels",
                       path, tr_counted(images->dimensions, "dimension", dimensions));
    }
    for (int i = 1; i < 4; i++) {
        if (images->size[i] > UINT16_MAX) {
            return tr_fail(TR_EFORMAT,
                           "%s: size %" PRId64 " at offset %d; images have at most %d pixels a side", path,
                           images->size[i], 4 + 4 * i, UINT16_MAX);
        }
    }
    source->base.resident = images->data;
    source->base.info.count = images->size[0];
    source->base.info.height = (int32_t)images->size[1];
    source->base.info.width = (int32_t)images->size[2];
    source->base.info.channels = (int32_t)images->size[3];
    return TR_OK;
}

/* Labels of pixels are as large as the images. */
static tr_status check_size(const char *path, const char *images_path, const struct idx_source *source)
{
    const struct tr_idx *labels = &source->labels;
    const struct tr_source_info *info = &source->base.info;
    char count[2][TR_COUNTED_SIZE];
    if (labels->dimensions != 1 && labels->dimensions != 3)
        return tr_fail(
            TR_EFORMAT,
            "%s: %d dimensions at offset 3; labels have 1, and those of pixels 3; give the file of "
            "labels here",
            path, labels->dimensions);
    if (labels->size[0] != info->count)
        return tr_fail(TR_EFORMAT, "%s has %s, %s has %s; give files that belong together", path,
                       tr_counted(labels->size[0], "label", count[0]), images_path,
                       tr_counted(info->count, "image", count[1]));
    if (labels->dimensions == 3 && (labels->size[1] != info->height || labels->size[2] != info->width))
        return tr_fail(TR_EFORMAT,
                       "%s has labels of %" PRId64 " x %" PRId64 " pixels, the images of %s have %" PRId32
                       " x %" PRId32 "; give a label for each pixel",
                       path, labels->size[1], labels->size[2], images_path, info->height, info->width);
    return TR_OK;
}

static tr_status read_labels(const char *path, const char *images_path, int32_t classes,
                             struct idx_source *source)
{
    struct tr_idx *labels = &source->labels;
    TR_TRY(tr_idx_read(path, labels));
    TR_TRY(check_size(path, images_path, source));
    const bool of_pixels = labels->dimensions == 3;
    const int header = of_pixels ? 16 : 8;
    const int64_t each = labels->size[0] > 0 ? labels->bytes / labels->size[0] : 1;
    if (!of_pixels && source->ignore >= 0)
        return tr_fail(
            TR_EINVAL,
            "ignore: applies to labels of pixels, but %s has one label for each image; leave it out", path);
    int largest = -1;
    for (int64_t i = 0; i < labels->bytes; i++) {
        const int label = labels->data[i];
        if (label == source->ignore || label <= largest) continue;
        largest = label;
        if (classes > 0 && largest >= classes) {
            return tr_fail(TR_EFORMAT,
                           "%s: label %d of example %" PRId64 " at offset %" PRId64
                           " is not below classes: %" PRId32
                           "; correct the file or set classes to at least %d%s",
                           path, largest, i / each, header + i, classes, largest + 1,
                           of_pixels ? ", or set ignore, where it marks pixels without a class" : "");
        }
    }
    if (largest < 0 && classes == 0)
        return tr_fail(TR_EFORMAT, "%s: all pixels have the label %d, which is ignored; give other labels",
                       path, source->ignore);
    source->base.info.labels = of_pixels ? TR_LABEL_PIXELS : TR_LABEL_CLASS;
    source->base.info.classes = classes > 0 ? classes : largest + 1;
    return TR_OK;
}

static tr_status open_files(const struct idx_options *options, const char *directory, const char *state,
                            bool outline, tr_source **out)
{
    tr_status status = TR_ENOMEM;
    char *images = tr_source_path(directory, options->images);
    char *labels = options->labels ? tr_source_path(directory, options->labels) : NULL;
    struct idx_source *source = tr_alloc_zero(1, sizeof *source);
    if (!images || (options->labels && !labels) || !source) goto out;
    int32_t classes = 0;
    TR_TRY_GOTO(tr_state_read_classes(state, &classes), out);
    if (options->classes > 0) classes = options->classes;
    source->base.class = &idx_class;
    source->base.info.features = TR_FEATURE_IMAGE;
    source->base.info.labels = TR_LABEL_NONE;
    source->ignore = options->ignore;
    TR_TRY_GOTO(read_images(images, outline, source), out);
    if (labels) TR_TRY_GOTO(read_labels(labels, images, classes, source), out);
    *out = &source->base;
    source = NULL;
out:
    if (source) idx_destroy(&source->base);
    tr_free(labels);
    tr_free(images);
    return status;
}

static tr_status idx_open(const void *options, const char *directory, const char *state, tr_source **out)
{
    return open_files(options, directory, state, false, out);
}

static tr_status idx_outline(const void *options, const char *directory, const char *state, tr_source **out)
{
    return open_files(options, directory, state, true, out);
}

static tr_status idx_files(const void *options_, const char *directory, struct tr_source_files *files)
{
    const struct idx_options *options = options_;
    TR_TRY(tr_source_files_add(files, directory, options->images));
    return options->labels ? tr_source_files_add(files, directory, options->labels) : TR_OK;
}

const struct tr_source_format tr_source_format_idx = {
    .name = "idx",
    .help = "images in IDX files, the format of MNIST, kept in memory",
    .options = idx_options,
    .option_count = TR_OPTION_COUNT(idx_options),
    .options_size = sizeof(struct idx_options),
    .open = idx_open,
    .outline = idx_outline,
    .files = idx_files,
};
