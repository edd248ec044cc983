#include "data/images/pictures.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <string.h>

#define NUMBERS_MOST (1 << 24) /* of an image of numbers, as in arrays */

tr_status tr_pictures_check_options(const char *format, int32_t depth, int32_t channels)
{
    if (channels == 2)
        return tr_fail(TR_EINVAL, "%s: channels is 2; give 1, 3, or 0 for those of the first", format);
    if (depth == 0 || depth == 8 || depth == 16) return TR_OK;
    return tr_fail(TR_EINVAL, "%s: depth is %" PRId32 "; give 8, 16, or 0 for that of the files", format,
                   depth);
}

tr_status tr_pictures_begin(struct tr_pictures *pictures, const char *name, struct tr_image_size first,
                            int32_t height, int32_t width, int32_t channels, tr_source *source)
{
    struct tr_image_size *size = &pictures->size;
    *size = first;
    if (height > 0) size->height = height;
    if (width > 0) size->width = width;
    if (channels > 0) size->channels = channels;
    size->wide = pictures->depth == 16 || (pictures->depth == 0 && first.wide);
    source->info.height = size->height;
    source->info.width = size->width;
    source->info.channels = size->channels;
    source->info.features = size->wide ? TR_FEATURE_FLOATS : TR_FEATURE_IMAGE;
    if (!size->wide) return TR_OK;
    if (tr_pictures_count(pictures) > NUMBERS_MOST)
        return tr_fail(TR_EFORMAT,
                       "%s: %" PRId64
                       " values of 16 bits an image; at most %d are read: give height and width, with "
                       "fit, or depth: 8",
                       name, tr_pictures_count(pictures), NUMBERS_MOST);
    source->info.floats = (int32_t)tr_pictures_count(pictures);
    source->range = TR_RANGE_PICTURE;
    return TR_OK;
}

tr_status tr_pictures_check(const struct tr_pictures *pictures, const char *name, struct tr_image_size is,
                            const char *first)
{
    const struct tr_image_size *wanted = &pictures->size;
    const bool same = is.height == wanted->height && is.width == wanted->width,
               large = is.height >= wanted->height && is.width >= wanted->width;
    if (pictures->depth == 0 && is.wide != wanted->wide)
        return tr_fail(
            TR_EFORMAT,
            "%s has %d bits a value, and %s has %d; set depth: 16 to widen those of 8, depth: 8 to "
            "take the high byte of those of 16, or give files of one kind",
            name, is.wide ? 16 : 8, first, wanted->wide ? 16 : 8);
    if (same || pictures->fit == TR_IMAGE_SCALE || (pictures->fit == TR_IMAGE_CROP && large)) return TR_OK;
    return tr_image_fit(name, pictures->fit, NULL, is, NULL, *wanted); /* the message */
}

/* Brings a decoded image to the size of the set, and frees it. */
static tr_status fit(const struct tr_pictures *pictures, const char *name, void *stored,
                     struct tr_image_size is, tr_status status, void *values)
{
    const struct tr_image_size wanted = pictures->size;
    if (status == TR_OK)
        status = wanted.wide ? tr_image_fit_wide(name, pictures->fit, stored, is, values, wanted)
                             : tr_image_fit(name, pictures->fit, stored, is, values, wanted);
    tr_free(stored);
    return status;
}

tr_status tr_pictures_decode(const struct tr_pictures *pictures, const char *name, const uint8_t *data,
                             size_t size, void *values)
{
    const struct tr_image_size wanted = pictures->size;
    struct tr_image_size is;
    TR_TRY(tr_image_measure(name, data, size, &is));
    void *stored =
        tr_alloc((size_t)is.height * (size_t)is.width * (size_t)wanted.channels, wanted.wide ? 2 : 1);
    if (!stored) return TR_ENOMEM;
    tr_status status = wanted.wide ? tr_image_decode_wide(name, data, size, is, wanted.channels, stored)
                                   : tr_image_decode(name, data, size, is, wanted.channels, stored);
    is.channels = wanted.channels;
    return fit(pictures, name, stored, is, status, values);
}

tr_status tr_pictures_read(const struct tr_pictures *pictures, const char *path, void *values)
{
    const int32_t channels = pictures->size.channels;
    struct tr_image_size is;
    uint8_t *bytes = NULL;
    uint16_t *words = NULL;
    tr_status status = pictures->size.wide ? tr_image_read_wide(path, channels, &is, &words)
                                           : tr_image_read(path, channels, &is, &bytes);
    return fit(pictures, path, words ? (void *)words : bytes, is, status, values);
}

void tr_pictures_give(const struct tr_pictures *pictures, const void *values, void *features)
{
    const int64_t count = tr_pictures_count(pictures);
    const uint16_t *wide = values;
    float *numbers = features;
    if (pictures->size.wide)
        for (int64_t i = 0; i < count; i++) numbers[i] = wide[i];
    else
        memcpy(features, values, (size_t)count);
}

/* Room for the values of an image of 16 bits; bytes go to the features themselves. */
static tr_status make_room(const struct tr_pictures *pictures, void *features, void **values)
{
    *values =
        pictures->size.wide ? tr_alloc((size_t)tr_pictures_count(pictures), sizeof(uint16_t)) : features;
    return *values ? TR_OK : TR_ENOMEM;
}

static void give_and_free(const struct tr_pictures *pictures, tr_status status, void *values, void *features)
{
    if (values == features) return;
    if (status == TR_OK) tr_pictures_give(pictures, values, features);
    tr_free(values);
}

tr_status tr_pictures_decode_features(const struct tr_pictures *pictures, const char *name,
                                      const uint8_t *data, size_t size, void *features)
{
    void *values;
    TR_TRY(make_room(pictures, features, &values));
    tr_status status = tr_pictures_decode(pictures, name, data, size, values);
    give_and_free(pictures, status, values, features);
    return status;
}

tr_status tr_pictures_read_features(const struct tr_pictures *pictures, const char *path, void *features)
{
    void *values;
    TR_TRY(make_room(pictures, features, &values));
    tr_status status = tr_pictures_read(pictures, path, values);
    give_and_free(pictures, status, values, features);
    return status;
}
