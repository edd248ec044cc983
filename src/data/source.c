#include "data/source.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/mapped.h"

#include <inttypes.h>
#include <string.h>

void tr_source_close(tr_source **handle)
{
    tr_source *source = *handle;
    *handle = NULL;
    if (!source) return;
    if (source->finish) source->finish(source);
    tr_source_files_release(&source->files);
    source->class->destroy(source);
}

const struct tr_source_info *tr_source_info(const tr_source *source)
{
    return &source->info;
}

int64_t tr_source_capacity(const tr_source *source)
{
    const struct tr_source_info *info = &source->info;
    switch (info->features) {
    case TR_FEATURE_IMAGE:
        return (int64_t)info->height * info->width * info->channels;
    case TR_FEATURE_FLOATS:
        return info->floats;
    case TR_FEATURE_TOKENS:
        return info->max_tokens;
    }
    return 0;
}

int32_t tr_source_parts_floats(const struct tr_source_parts *parts)
{
    int64_t floats = 0;
    for (int32_t i = parts->images; i < parts->count; i++) floats += tr_shape_count(&parts->part[i].shape);
    return (int32_t)floats;
}

int32_t tr_source_part(const int64_t *first, int32_t parts, int64_t index)
{
    int32_t low = 0, high = parts;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (first[middle] <= index)
            low = middle;
        else
            high = middle;
    }
    return low;
}

tr_status tr_source_read_window(const tr_source *source, int64_t index, void *features, int64_t *length,
                                void *label)
{
    const int32_t *at = source->stream + index * source->stride;
    size_t bytes = (size_t)source->window * sizeof *at;
    *length = source->window;
    if (features) memcpy(features, at, bytes);
    if (label) memcpy(label, at + 1, bytes);
    return TR_OK;
}

int64_t tr_source_window_labels(const tr_source *source, int64_t index)
{
    (void)index;
    return source->window;
}

int64_t tr_labels_count(const int32_t *labels, int64_t count)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) found += labels[i] >= 0;
    return found;
}

tr_status tr_source_read(const tr_source *source, int64_t index, void *features, int64_t capacity,
                         int64_t *length, void *label)
{
    if (index < 0 || index >= source->info.count) {
        return tr_fail(TR_EINVAL, "example %" PRId64 " was asked for; the data set has 0 to %" PRId64, index,
                       source->info.count - 1);
    }
    if (features && capacity < tr_source_capacity(source)) {
        return tr_fail(TR_EINVAL, "room for %" PRId64 " elements was given; an example has up to %" PRId64,
                       capacity, tr_source_capacity(source));
    }
    int64_t ignored;
    return source->class->read(source, index, features, length ? length : &ignored, label);
}

tr_status tr_source_state(const tr_source *source, const char **name, char **text)
{
    *name = NULL;
    *text = NULL;
    if (!source->class->state) return TR_OK;
    TR_TRY(source->class->state(source, text));
    if (*text) *name = source->state_name ? source->state_name : source->class->state_name;
    return TR_OK;
}

tr_status tr_source_digest(const tr_source *source, char hex[65])
{
    const struct tr_source_info *info = &source->info;
    const int64_t figures[] = {info->count,      info->features, info->labels, info->height,
                               info->width,      info->channels, info->floats, info->max_tokens,
                               info->vocabulary, info->classes,  info->values};
    tr_sha256 *hash;
    if (source->digest[0]) {
        memcpy(hex, source->digest, sizeof source->digest);
        return TR_OK;
    }
    TR_TRY(tr_sha256_begin(&hash));
    tr_sha256_add(hash, source->class->name, strlen(source->class->name) + 1);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) tr_sha256_add_number(hash, figures[i]);
    tr_status status = source->class->digest(source, hash);
    if (status != TR_OK) {
        tr_sha256_destroy(&hash);
        return status;
    }
    return tr_sha256_end(&hash, hex);
}

const char *tr_data_file_at(const void *address)
{
    return tr_mapped_at(address);
}

void tr_text_free(char *text)
{
    tr_free(text);
}
