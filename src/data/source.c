#include "data/source.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <string.h>

void tr_source_close(tr_source **handle)
{
    if (*handle) (*handle)->class->destroy(*handle);
    *handle = NULL;
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
    if (*text) *name = source->class->state_name;
    return TR_OK;
}

/* Adds a number in a form that does not depend on the machine. */
static void add_number(tr_sha256 *hash, int64_t number)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)number >> (8 * i));
    tr_sha256_add(hash, bytes, sizeof bytes);
}

tr_status tr_source_digest(const tr_source *source, char hex[65])
{
    const struct tr_source_info *info = &source->info;
    const int64_t figures[] = {info->count,      info->features, info->labels, info->height,
                               info->width,      info->channels, info->floats, info->max_tokens,
                               info->vocabulary, info->classes,  info->values};
    tr_sha256 *hash;
    TR_TRY(tr_sha256_begin(&hash));
    tr_sha256_add(hash, source->class->name, strlen(source->class->name) + 1);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) add_number(hash, figures[i]);
    tr_status status = source->class->digest(source, hash);
    if (status != TR_OK) {
        tr_sha256_destroy(&hash);
        return status;
    }
    return tr_sha256_end(&hash, hex);
}

void tr_text_free(char *text)
{
    tr_free(text);
}
