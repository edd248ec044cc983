/* Reads examples from TFRecord files. A record is verified each time it is read, since the files are
 * mapped and may change meanwhile.
 */
#include "data/formats/tfrecord_source.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/counted.h"
#include "data/state.h"

#include <inttypes.h>
#include <string.h>

static tr_status decode_image(const tr_source *base, const struct tr_example_feature *feature, void *features)
{
    const uint8_t *bytes = NULL;
    size_t size = 0, wanted = (size_t)tr_source_capacity(base);
    TR_TRY(tr_example_bytes(&feature[TR_TFRECORD_FEATURE], &bytes, &size));
    if (size != wanted) {
        char bytes_here[TR_COUNTED_SIZE];
        return tr_fail(TR_EFORMAT, "feature \"%s\" has %s; height x width x channels is %zu",
                       feature[TR_TFRECORD_FEATURE].name, tr_counted((int64_t)size, "byte", bytes_here),
                       wanted);
    }
    if (feature[TR_TFRECORD_PIXELS].kind != TR_LIST_NONE) {
        int64_t pixels = 0;
        TR_TRY(tr_example_int64(&feature[TR_TFRECORD_PIXELS], &pixels));
        if (pixels != (int64_t)wanted) {
            return tr_fail(TR_EFORMAT, "feature \"%s\" is %" PRId64 "; height x width x channels is %zu",
                           feature[TR_TFRECORD_PIXELS].name, pixels, wanted);
        }
    }
    if (features) memcpy(features, bytes, size);
    return TR_OK;
}

/* A list of exactly `wanted` floats. */
static tr_status decode_floats(const struct tr_example_feature *feature, int32_t wanted, float *values)
{
    size_t count;
    TR_TRY(tr_example_floats(feature, values, values ? (size_t)wanted : 0, &count));
    if (count == (size_t)wanted) return TR_OK;
    return tr_fail(TR_EFORMAT, "feature \"%s\" has %zu floats; the first example has %" PRId32, feature->name,
                   count, wanted);
}

static tr_status decode_class(const tr_source *base, const struct tr_example_feature *feature, int32_t *label)
{
    int64_t value = 0;
    TR_TRY(tr_example_int64(feature, &value));
    if (value < 0 || value >= base->info.classes) {
        return tr_fail(TR_EFORMAT,
                       "label %" PRId64 " is not in 0 to %" PRId32 "; correct the file or set classes", value,
                       base->info.classes - 1);
    }
    if (label) *label = (int32_t)value;
    return TR_OK;
}

tr_status tr_tfrecord_decode(const struct tr_tfrecord_source *source, const uint8_t *data, size_t size,
                             void *features, void *label)
{
    const tr_source *base = &source->base;
    struct tr_example_feature feature[TR_TFRECORD_FEATURES];
    memcpy(feature, source->feature, sizeof feature);
    TR_TRY(tr_example_find(data, size, feature, TR_TFRECORD_FEATURES));
    if (base->info.features == TR_FEATURE_IMAGE) {
        TR_TRY(decode_image(base, feature, features));
    } else {
        TR_TRY(decode_floats(&feature[TR_TFRECORD_FEATURE], base->info.floats, features));
    }
    switch (base->info.labels) {
    case TR_LABEL_CLASS:
        return decode_class(base, &feature[TR_TFRECORD_LABEL], label);
    case TR_LABEL_VALUES:
        return decode_floats(&feature[TR_TFRECORD_LABEL], base->info.values, label);
    case TR_LABEL_TOKENS:
    case TR_LABEL_PIXELS:
    case TR_LABEL_NONE:
        break;
    }
    return TR_OK;
}

static int32_t file_of(const struct tr_tfrecord_source *source, int64_t index)
{
    return tr_source_part(source->first, source->files, index);
}

/* Bytes of a record to prefetch; the hardware prefetches the rest. */
#define FETCHED 1024

static tr_status tfrecord_read(const tr_source *base, int64_t index, void *features, int64_t *length,
                               void *label)
{
    const struct tr_tfrecord_source *source = (const struct tr_tfrecord_source *)base;
    const struct tr_record_file *file = &source->file[file_of(source, index)];
    const uint8_t *data = NULL;
    size_t size = 0;
    enum tr_record_fault fault;
    TR_TRY(tr_record_at(file, source->offset[index], true, &data, &size, &fault));
    *length = tr_source_capacity(base);
    tr_status status = tr_tfrecord_decode(source, data, size, features, label);
    if (status == TR_OK) return TR_OK;
    return tr_fail_in(status, "%s: record at offset %" PRIu64, file->path, source->offset[index]);
}

/* Prefetches about where the record lies; a wrong guess does no harm. */
static void tfrecord_fetch(const tr_source *base, int64_t index)
{
    const struct tr_tfrecord_source *source = (const struct tr_tfrecord_source *)base;
    const struct tr_record_file *file = &source->file[file_of(source, index)];
    uint64_t begin = source->offset[index], end = begin + (uint64_t)tr_source_capacity(base);
    if (end > begin + FETCHED) end = begin + FETCHED;
    if (end > file->size) end = file->size;
    for (uint64_t at = begin; at < end; at += 64) __builtin_prefetch(file->data + at);
}

/* The lengths and checksums of all records stand for their contents, so that a set of many gigabytes need not
   be read for it. */
static tr_status tfrecord_digest(const tr_source *base, tr_sha256 *hash)
{
    const struct tr_tfrecord_source *source = (const struct tr_tfrecord_source *)base;
    for (int32_t i = 0; i < source->files; i++) {
        for (int64_t index = source->first[i]; index < source->first[i + 1]; index++) {
            const uint8_t *data = NULL;
            size_t size = 0;
            enum tr_record_fault fault;
            TR_TRY(tr_record_at(&source->file[i], source->offset[index], false, &data, &size, &fault));
            tr_sha256_add(hash, data - TR_RECORD_HEAD, TR_RECORD_HEAD);
            tr_sha256_add(hash, data + size, 4);
        }
    }
    return TR_OK;
}

static tr_status tfrecord_state(const tr_source *base, char **text)
{
    if (base->info.labels != TR_LABEL_CLASS) return TR_OK;
    return tr_state_of_classes(NULL, base->info.classes, text);
}

static void tfrecord_destroy(tr_source *base)
{
    struct tr_tfrecord_source *source = (struct tr_tfrecord_source *)base;
    for (int32_t i = 0; i < source->files; i++) tr_record_file_close(&source->file[i]);
    tr_free(source->file);
    tr_free(source->first);
    tr_free(source->offset);
    tr_free(source->names);
    tr_free(source);
}

const struct tr_source_class tr_tfrecord_class = {
    .name = "tfrecord",
    .version = TR_SOURCE_VERSION,
    .read = tfrecord_read,
    .fetch = tfrecord_fetch,
    .digest = tfrecord_digest,
    .state_name = "classes.txt",
    .state = tfrecord_state,
    .destroy = tfrecord_destroy,
};
