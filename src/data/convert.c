#include "data/convert.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "data/example.h"
#include "data/formats/idx.h"
#include "data/formats/tfrecord.h"

#include <inttypes.h>
#include <string.h>

/* ---- TFRecord ---- */

/* Room for one example in every form it passes through. */
struct example_room {
    int64_t capacity;
    void *features; /* bytes or floats */
    float *targets;
    uint8_t *encoded;
    size_t encoded_room;
};

static void room_free(struct example_room *room)
{
    tr_free(room->encoded);
    tr_free(room->targets);
    tr_free(room->features);
}

static tr_status room_alloc(const tr_source *source, struct example_room *room)
{
    const struct tr_source_info *info = &source->info;
    room->capacity = tr_source_capacity(source);
    size_t size = info->features == TR_FEATURE_IMAGE ? 1 : sizeof(float);
    room->features = tr_alloc((size_t)room->capacity, size);
    room->targets = tr_alloc((size_t)info->values, sizeof(float));
    /* The names and numbers around the contents take far less than 256 bytes. */
    room->encoded_room = (size_t)room->capacity * size + (size_t)info->values * sizeof(float) + 256;
    room->encoded = tr_alloc(room->encoded_room, 1);
    return room->features && room->targets && room->encoded ? TR_OK : TR_ENOMEM;
}

/* Features in ascending order of their names, so that equal sources give equal files. */
static tr_status write_example(const tr_source *source, int64_t index, struct example_room *room,
                               tr_record_writer *writer)
{
    const struct tr_source_info *info = &source->info;
    struct tr_example_value value[3];
    int count = 0;
    int64_t length;
    int32_t class = 0;
    void *label = info->labels == TR_LABEL_VALUES ? (void *)room->targets : (void *)&class;
    TR_TRY(tr_source_read(source, index, room->features, room->capacity, &length, label));
    int64_t wide_class = class, pixels = length;

    bool image = info->features == TR_FEATURE_IMAGE;
    value[count++] =
        image ? (struct tr_example_value){"image_raw", TR_LIST_BYTES, room->features, (size_t)length}
              : (struct tr_example_value){"floats", TR_LIST_FLOATS, room->features, (size_t)length};
    if (info->labels == TR_LABEL_CLASS) {
        value[count++] = (struct tr_example_value){"label", TR_LIST_INT64, &wide_class, 1};
    }
    if (image) value[count++] = (struct tr_example_value){"pixels", TR_LIST_INT64, &pixels, 1};
    if (info->labels == TR_LABEL_VALUES) {
        value[count++] =
            (struct tr_example_value){"targets", TR_LIST_FLOATS, room->targets, (size_t)info->values};
    }
    tr_example_encode(value, count, room->encoded);
    return tr_record_writer_add(writer, room->encoded, tr_example_encoded_size(value, count));
}

tr_status tr_convert_to_tfrecord(const tr_source *source, const char *path, enum tr_packing packing)
{
    if (source->info.labels == TR_LABEL_PIXELS)
        return tr_fail(TR_EUNSUPPORTED, "convert to tfrecord: labels of pixels have no place in the format");
    tr_status status;
    struct example_room room = {0};
    tr_record_writer *writer = NULL;
    if (source->info.features == TR_FEATURE_TOKENS) {
        return tr_fail(TR_EUNSUPPORTED,
                       "convert to tfrecord: sequences of tokens have no such form; convert images or "
                       "vectors");
    }
    TR_TRY_GOTO(room_alloc(source, &room), out);
    TR_TRY_GOTO(tr_record_writer_create(path, packing, &writer), out);
    for (int64_t i = 0; i < source->info.count; i++) {
        TR_TRY_GOTO(write_example(source, i, &room, writer), out);
    }
    status = tr_record_writer_finish(&writer);
out:
    tr_record_writer_abandon(&writer);
    room_free(&room);
    return status;
}

/* ---- IDX ---- */

/* A file in memory: head and `bytes` of contents, which the caller fills. */
static tr_status idx_begin(int dimensions, const int64_t *size, uint8_t **out, size_t *head, size_t *total)
{
    *head = 4 + 4 * (size_t)dimensions;
    *total = *head;
    size_t bytes = 1;
    for (int i = 0; i < dimensions; i++) {
        if (size[i] > UINT32_MAX || __builtin_mul_overflow(bytes, (size_t)size[i], &bytes)) {
            return tr_fail(TR_EUNSUPPORTED, "convert to idx: size %" PRId64 " is too large for the format",
                           size[i]);
        }
    }
    if (__builtin_add_overflow(*total, bytes, total))
        return tr_fail(TR_EUNSUPPORTED, "convert to idx: too large");
    uint8_t *file = tr_alloc(*total, 1);
    if (!file) return TR_ENOMEM;
    memcpy(file, (const uint8_t[]){0, 0, 8, (uint8_t)dimensions}, 4);
    for (int i = 0; i < dimensions; i++) {
        for (int byte = 0; byte < 4; byte++)
            file[4 + 4 * i + byte] = (uint8_t)((uint64_t)size[i] >> (24 - 8 * byte));
    }
    *out = file;
    return TR_OK;
}

static tr_status write_images(const tr_source *source, const char *path)
{
    const struct tr_source_info *info = &source->info;
    const int64_t size[] = {info->count, info->height, info->width, info->channels};
    int dimensions = info->channels == 1 ? 3 : 4;
    int64_t image = tr_source_capacity(source);
    uint8_t *file = NULL;
    size_t head, total;
    tr_status status;
    char *name = tr_format("%s-images-idx%d-ubyte", path, dimensions);
    if (!name) return TR_ENOMEM;
    TR_TRY_GOTO(idx_begin(dimensions, size, &file, &head, &total), out);
    for (int64_t i = 0; i < info->count; i++) {
        TR_TRY_GOTO(tr_source_read(source, i, file + head + i * image, image, NULL, NULL), out);
    }
    status = tr_file_write_atomic(NULL, name, file, total);
out:
    tr_free(file);
    tr_free(name);
    return status;
}

static tr_status write_labels(const tr_source *source, const char *path)
{
    const struct tr_source_info *info = &source->info;
    uint8_t *file = NULL;
    size_t head, total;
    tr_status status;
    char *name = tr_format("%s-labels-idx1-ubyte", path);
    if (!name) return TR_ENOMEM;
    TR_TRY_GOTO(idx_begin(1, &info->count, &file, &head, &total), out);
    for (int64_t i = 0; i < info->count; i++) {
        int32_t label = 0;
        TR_TRY_GOTO(tr_source_read(source, i, NULL, 0, NULL, &label), out);
        file[head + (size_t)i] = (uint8_t)label;
    }
    status = tr_file_write_atomic(NULL, name, file, total);
out:
    tr_free(file);
    tr_free(name);
    return status;
}

tr_status tr_convert_to_idx(const tr_source *source, const char *path)
{
    const struct tr_source_info *info = &source->info;
    if (info->features != TR_FEATURE_IMAGE || info->labels == TR_LABEL_VALUES ||
        info->labels == TR_LABEL_PIXELS || info->classes > 256) {
        return tr_fail(TR_EUNSUPPORTED,
                       "convert to idx: images of bytes with a class each are written, of at most 256 classes");
    }
    TR_TRY(write_images(source, path));
    return info->labels == TR_LABEL_CLASS ? write_labels(source, path) : TR_OK;
}
