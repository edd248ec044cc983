/* Examples in .npy files: features in one file, labels in another.
 *
 *     features   unsigned bytes [count][height][width] or [count][height][width][channels]: images
 *                other types and shapes of one or two dimensions: vectors of numbers; of three,
 *                [count][steps][n]: sequences of vectors; of four: images of numbers
 *     labels     integers [count]: classes; integers [count][height][width]: classes of the pixels of images,
 *                of bytes or of numbers;
 *                floats [count] or [count][n]: values
 *
 * Features stay in the file, which is mapped, and are converted when they are read; labels are converted at
 * once.
 */
#include "data/formats/npy_source.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/counted.h"
#include "data/files/data_set.h"
#include "data/files/lines.h"
#include "data/state.h"
#include "io/npy.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define SIZE_MOST (1 << 24) /* numbers of an example */

struct npy_options {
    char *features, *labels;
    int32_t classes, ignore;
};

static const struct tr_option npy_options[] = {
    {.key = "features",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct npy_options, features),
     .fallback = NULL,
     .help = "file of an array of u1, u2, i2, i4, i8, f4 or f8. [count, n]: numbers; u1 [count, height, "
             "width] or "
             "[count, height, width, channels]: images; other types [count, steps, n]: sequences of vectors, "
             "[count, height, width, channels]: images of numbers, used as they are"},
    {.key = "labels",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct npy_options, labels),
     .fallback = "",
     .help =
         "file of an array. Integers [count]: classes from 0; integers [count, height, width]: classes of "
         "pixels; floats [count] or [count, n]: values to predict. Without it examples have no labels"},
    TR_OPTION_CLASSES(struct npy_options, 1 << 24),
    TR_OPTION_IGNORE(struct npy_options),
};

/* An array in a mapped file. */
struct array {
    struct tr_file_map map;
    struct tr_npy head;
    int64_t width; /* elements of an example */
};

struct npy_source {
    tr_source base;
    struct array features;
    int32_t *label; /* [count], or of pixels [count][height][width], or NULL */
    int32_t ignore; /* the label of pixels that have none, or -1 */
    float *value;   /* [count][values], or NULL */
};

/* ---- arrays ---- */

/* The bits of an element in the byte order of this machine. */
static uint16_t bits_16(const uint8_t *at, bool big_endian)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return big_endian ? __builtin_bswap16(bits) : bits;
}

static uint32_t bits_32(const uint8_t *at, bool big_endian)
{
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    return big_endian ? __builtin_bswap32(bits) : bits;
}

static uint64_t bits_64(const uint8_t *at, bool big_endian)
{
    uint64_t bits;
    memcpy(&bits, at, sizeof bits);
    return big_endian ? __builtin_bswap64(bits) : bits;
}

static const uint8_t *element(const struct array *array, int64_t index)
{
    return array->map.data + array->head.offset + (size_t)index * tr_dtype_size(array->head.dtype);
}

/* An element of an integer type that read_array() accepts. */
static int64_t integer_at(const struct array *array, int64_t index)
{
    const uint8_t *at = element(array, index);
    if (array->head.dtype == TR_DTYPE_U8) return *at;
    if (array->head.dtype == TR_DTYPE_U16) return bits_16(at, array->head.big_endian);
    if (array->head.dtype == TR_DTYPE_I16) return (int16_t)bits_16(at, array->head.big_endian);
    if (array->head.dtype == TR_DTYPE_I32) return (int32_t)bits_32(at, array->head.big_endian);
    return (int64_t)bits_64(at, array->head.big_endian);
}

static float float_of_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

/* Elements [first, first + count) as float32. */
static void floats_at(const struct array *array, int64_t first, int64_t count, float *to)
{
    const uint8_t *from = element(array, first);
    bool big_endian = array->head.big_endian;
    if (array->head.dtype == TR_DTYPE_F32 && !big_endian) {
        memcpy(to, from, (size_t)count * sizeof *to);
    } else if (array->head.dtype == TR_DTYPE_F32) {
        for (int64_t i = 0; i < count; i++) {
            uint32_t bits = bits_32(from + 4 * i, big_endian);
            memcpy(&to[i], &bits, sizeof bits);
        }
    } else if (array->head.dtype == TR_DTYPE_F64) {
        for (int64_t i = 0; i < count; i++) to[i] = float_of_double(bits_64(from + 8 * i, big_endian));
    } else {
        for (int64_t i = 0; i < count; i++) to[i] = (float)integer_at(array, first + i);
    }
}

static bool is_float(const struct array *array)
{
    return array->head.dtype == TR_DTYPE_F32 || array->head.dtype == TR_DTYPE_F64;
}

static tr_status read_array(const char *path, struct array *array)
{
    struct tr_npy *head = &array->head;
    TR_TRY(tr_data_map(path, &array->map));
    TR_TRY(tr_npy_parse(path, array->map.data, array->map.size, head));
    if (!is_float(array) && head->dtype != TR_DTYPE_U8 && head->dtype != TR_DTYPE_U16 &&
        head->dtype != TR_DTYPE_I16 && head->dtype != TR_DTYPE_I32 && head->dtype != TR_DTYPE_I64)
        return tr_fail(TR_EUNSUPPORTED,
                       "\"%s\" holds %s; u1, u2, i2, i4, i8, f4 and f8 can be read: save for instance "
                       "x.astype('float32')",
                       path, tr_dtype_name(head->dtype));
    if (head->rank < 1 || head->shape[0] < 1)
        return tr_fail(TR_EFORMAT, "\"%s\" holds no examples: its first dimension must count them", path);
    /* The parser has checked that the product fits the file, but not that it is above 0. */
    array->width = 1;
    for (int i = 1; i < head->rank; i++) array->width *= head->shape[i];
    if (array->width < 1 || array->width > SIZE_MOST)
        return tr_fail(TR_EFORMAT, "\"%s\" has %" PRId64 " numbers an example; 1 to %d can be read", path,
                       array->width, SIZE_MOST);
    return TR_OK;
}

/* A NaN or an infinity would spread to all weights. */
static tr_status check_finite(const char *path, const struct array *array)
{
    enum { BLOCK = 1024 };
    int64_t count = is_float(array) ? array->head.shape[0] * array->width : 0;
    float block[BLOCK];
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t size = count - first < BLOCK ? count - first : BLOCK;
        floats_at(array, first, size, block);
        for (int64_t i = 0; i < size; i++)
            if (!isfinite(block[i]))
                return tr_fail(TR_EFORMAT,
                               "\"%s\": number %" PRId64 " of example %" PRId64 " is %s; correct the file",
                               path, (first + i) % array->width, (first + i) / array->width,
                               isnan(block[i]) ? "NaN" : "infinite, or too large for float32");
    }
    return TR_OK;
}

/* ---- the class ---- */

static tr_status npy_read(const tr_source *base, int64_t index, void *features, int64_t *length, void *label)
{
    const struct npy_source *source = (const struct npy_source *)base;
    const struct array *array = &source->features;
    int64_t width = array->width, first = index * width;
    if (features && base->info.features == TR_FEATURE_IMAGE)
        memcpy(features, base->resident + first, (size_t)width);
    else if (features)
        floats_at(array, first, width, features);
    const int64_t labels = base->info.labels == TR_LABEL_PIXELS ? tr_source_pixels(&base->info) : 1;
    if (label && source->label)
        memcpy(label, source->label + index * labels, (size_t)labels * sizeof *source->label);
    if (label && source->value) {
        size_t values = (size_t)base->info.values;
        memcpy(label, source->value + (size_t)index * values, values * sizeof(float));
    }
    *length = width;
    return TR_OK;
}

static tr_status npy_digest(const tr_source *base, tr_sha256 *hash)
{
    const struct npy_source *source = (const struct npy_source *)base;
    int64_t count = base->info.count, width = source->features.width;
    if (base->info.features == TR_FEATURE_IMAGE) {
        tr_sha256_add(hash, base->resident, (size_t)(count * width));
    } else {
        float *row = tr_alloc((size_t)width, sizeof *row);
        int64_t length;
        if (!row) return TR_ENOMEM;
        for (int64_t i = 0; i < count; i++) {
            npy_read(base, i, row, &length, NULL);
            tr_sha256_add(hash, row, (size_t)width * sizeof *row);
        }
        tr_free(row);
    }
    const int64_t labels = base->info.labels == TR_LABEL_PIXELS ? tr_source_pixels(&base->info) : 1;
    if (source->label) tr_sha256_add(hash, source->label, (size_t)(count * labels) * sizeof *source->label);
    if (source->value)
        tr_sha256_add(hash, source->value, (size_t)count * (size_t)base->info.values * sizeof *source->value);
    return TR_OK;
}

static tr_status npy_state(const tr_source *base, char **text)
{
    if (!((const struct npy_source *)base)->label) return TR_OK;
    return tr_state_of_classes(NULL, base->info.classes, text);
}

static void npy_destroy(tr_source *base)
{
    struct npy_source *source = (struct npy_source *)base;
    tr_file_unmap(&source->features.map);
    tr_free(source->label);
    tr_free(source->value);
    tr_free(source);
}

static const struct tr_source_class npy_class = {
    .name = "npy",
    .version = TR_SOURCE_VERSION,
    .read = npy_read,
    .digest = npy_digest,
    .state_name = "classes.txt",
    .state = npy_state,
    .destroy = npy_destroy,
};

/* ---- opening ---- */

/* Determines the sizes of images, of bytes or of other numbers. */
static tr_status open_images(const char *path, struct npy_source *source)
{
    const struct tr_npy *head = &source->features.head;
    struct tr_source_info *info = &source->base.info;
    if (head->rank > 4)
        return tr_fail(TR_EUNSUPPORTED,
                       "\"%s\" has %d dimensions; images have the channels last, [count, height, width, "
                       "channels], numbers are [count, n], and sequences [count, steps, n]",
                       path, head->rank);
    int64_t channels = head->rank == 4 ? head->shape[3] : 1;
    if (head->shape[1] > UINT16_MAX || head->shape[2] > UINT16_MAX)
        return tr_fail(TR_EFORMAT,
                       "\"%s\": images of %" PRId64 " x %" PRId64 "; at most %d pixels a side can be read",
                       path, head->shape[1], head->shape[2], UINT16_MAX);
    info->height = (int32_t)head->shape[1];
    info->width = (int32_t)head->shape[2];
    info->channels = (int32_t)channels;
    if (head->dtype == TR_DTYPE_U16) source->base.range = TR_RANGE_U16;
    if (head->dtype == TR_DTYPE_I16) source->base.range = TR_RANGE_I16;
    if (head->dtype != TR_DTYPE_U8) return TR_OK;
    info->features = TR_FEATURE_IMAGE;
    source->base.resident = source->features.map.data + head->offset;
    return TR_OK;
}

static tr_status open_features(const char *path, struct npy_source *source)
{
    TR_TRY(read_array(path, &source->features));
    source->base.info.count = source->features.head.shape[0];
    const struct tr_npy *head = &source->features.head;
    source->base.info.features = TR_FEATURE_FLOATS;
    if (head->rank > 3 || (head->rank == 3 && head->dtype == TR_DTYPE_U8))
        TR_TRY(open_images(path, source));
    else if (head->rank == 3)
        source->base.info.steps = (int32_t)head->shape[1];
    if (source->base.info.features == TR_FEATURE_IMAGE) return TR_OK;
    source->base.info.floats = (int32_t)source->features.width;
    return check_finite(path, &source->features);
}

/* Checks integers as labels: of examples or of pixels, by their dimensions. */
static tr_status check_classes(const char *path, const struct array *array, const struct npy_source *source)
{
    const struct tr_npy *head = &array->head;
    const struct tr_source_info *info = &source->base.info;
    if (head->rank == 1 && source->ignore >= 0)
        return tr_fail(
            TR_EINVAL,
            "ignore: applies to labels of pixels, but \"%s\" has one label for each example; leave it out",
            path);
    if (head->rank == 1) return TR_OK;
    if (head->rank == 3 && info->height > 0) {
        if (head->shape[1] == info->height && head->shape[2] == info->width) return TR_OK;
        return tr_fail(TR_EFORMAT,
                       "\"%s\" has labels of %" PRId64 " x %" PRId64 " pixels, the images have %" PRId32
                       " x %" PRId32 "; give a label for each pixel",
                       path, head->shape[1], head->shape[2], info->height, info->width);
    }
    if (head->rank == 2 && array->width == 1)
        return tr_fail(TR_EFORMAT,
                       "\"%s\" has the shape [%" PRId64
                       ", 1]; classes have one dimension: save y.reshape(-1)",
                       path, head->shape[0]);
    if (head->rank == 2)
        return tr_fail(TR_EFORMAT,
                       "\"%s\" has the shape [%" PRId64 ", %" PRId64
                       "]; classes have one dimension, or three for the pixels of images: of one-hot rows "
                       "save y.argmax(1), of values y.astype('float32')",
                       path, head->shape[0], array->width);
    if (head->rank == 4 && info->height > 0)
        return tr_fail(
            TR_EFORMAT,
            "\"%s\" has four dimensions; labels of pixels are [count, height, width]: of a channel "
            "for each class save y.argmax(3), of a single channel y.squeeze(3)",
            path);
    return tr_fail(TR_EFORMAT,
                   "\"%s\" has %d dimensions; classes have one, and three where features are images, whose "
                   "pixels have one each",
                   path, head->rank);
}

/* Whether a label is the one that means "none". Only labels of pixels may be negative. */
static bool is_ignored(const struct npy_source *source, const struct array *array, int64_t label)
{
    return array->head.rank == 3 && (label == source->ignore || label == TR_NO_LABEL);
}

static tr_status convert_classes(const char *path, const struct array *array, int32_t classes,
                                 struct npy_source *source)
{
    int64_t count, limit = classes > 0 ? classes : 1 << 24, largest = -1;
    TR_TRY(check_classes(path, array, source));
    const bool of_pixels = array->head.rank == 3;
    count = source->base.info.count * array->width;
    source->label = tr_alloc((size_t)count, sizeof *source->label);
    if (!source->label) return TR_ENOMEM;
    for (int64_t i = 0; i < count; i++) {
        int64_t label = integer_at(array, i);
        const bool ignored = is_ignored(source, array, label);
        if (!ignored && (label < 0 || label >= limit))
            return tr_fail(TR_EFORMAT,
                           "\"%s\": label %" PRId64 " of example %" PRId64 " is not from 0 to %" PRId64
                           "; correct the file%s%s",
                           path, label, i / array->width, limit - 1, classes > 0 ? " or set classes" : "",
                           of_pixels ? ", or set ignore, where it marks pixels without a class" : "");
        if (!ignored && label > largest) largest = label;
        source->label[i] = ignored ? TR_NO_LABEL : (int32_t)label;
    }
    if (largest < 0 && classes <= 0)
        return tr_fail(TR_EFORMAT, "\"%s\": no pixel has a class; correct the file, or give classes", path);
    source->base.info.labels = of_pixels ? TR_LABEL_PIXELS : TR_LABEL_CLASS;
    source->base.info.classes = classes > 0 ? classes : (int32_t)largest + 1;
    return TR_OK;
}

static tr_status convert_values(const char *path, const struct array *array, struct npy_source *source)
{
    int64_t count = source->base.info.count * array->width;
    if (array->head.rank > 2)
        return tr_fail(TR_EFORMAT, "\"%s\" has %d dimensions; values have one or two", path,
                       array->head.rank);
    TR_TRY(check_finite(path, array));
    source->value = tr_alloc((size_t)count, sizeof *source->value);
    if (!source->value) return TR_ENOMEM;
    floats_at(array, 0, count, source->value);
    source->base.info.labels = TR_LABEL_VALUES;
    source->base.info.values = (int32_t)array->width;
    return TR_OK;
}

static tr_status open_labels(const char *path, const char *features, int32_t classes,
                             struct npy_source *source)
{
    struct array array = {0};
    char count[TR_COUNTED_SIZE];
    tr_status status = read_array(path, &array);
    if (status == TR_OK && array.head.shape[0] != source->base.info.count)
        status = tr_fail(
            TR_EFORMAT, "\"%s\" has labels for %s, \"%s\" has %" PRId64 "; give files that belong together",
            path, tr_counted(array.head.shape[0], "example", count), features, source->base.info.count);
    if (status == TR_OK)
        status = is_float(&array) ? convert_values(path, &array, source)
                                  : convert_classes(path, &array, classes, source);
    tr_file_unmap(&array.map);
    return status;
}

static tr_status npy_open(const void *options_, const char *directory, const char *state, tr_source **out)
{
    const struct npy_options *options = options_;
    tr_status status = TR_ENOMEM;
    char *features = tr_source_path(directory, options->features);
    char *labels = options->labels ? tr_source_path(directory, options->labels) : NULL;
    struct npy_source *source = tr_alloc_zero(1, sizeof *source);
    int32_t classes = 0;
    if (!features || (options->labels && !labels) || !source) goto out;
    TR_TRY_GOTO(tr_state_read_classes(state, &classes), out);
    if (options->classes > 0) classes = options->classes;
    source->base.class = &npy_class;
    source->base.info.labels = TR_LABEL_NONE;
    source->ignore = options->ignore;
    TR_TRY_GOTO(open_features(features, source), out);
    if (labels) TR_TRY_GOTO(open_labels(labels, features, classes, source), out);
    *out = &source->base;
    source = NULL;
out:
    if (source) npy_destroy(&source->base);
    tr_free(labels);
    tr_free(features);
    return status;
}

static tr_status npy_files(const void *options_, const char *directory, struct tr_source_files *files)
{
    const struct npy_options *options = options_;
    TR_TRY(tr_source_files_add(files, directory, options->features));
    return options->labels ? tr_source_files_add(files, directory, options->labels) : TR_OK;
}

static bool npy_unpacks(const void *options, const struct tr_source_files *files)
{
    (void)options, (void)files;
    return false;
}

const struct tr_source_format tr_source_format_npy = {
    .name = "npy",
    .help = "arrays of NumPy in .npy files, read from disk as needed",
    .options = npy_options,
    .option_count = TR_OPTION_COUNT(npy_options),
    .options_size = sizeof(struct npy_options),
    .open = npy_open,
    .files = npy_files,
    .unpacks = npy_unpacks,
};
