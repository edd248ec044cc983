#include "data/images/image_formats.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const uint8_t png_magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool tr_image_is_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot &&
           (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

static bool is_png(const uint8_t *data, size_t size)
{
    return size >= sizeof png_magic && memcmp(data, png_magic, sizeof png_magic) == 0;
}

static bool is_jpeg(const uint8_t *data, size_t size)
{
    return size >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff;
}

static tr_status check_size(const char *name, struct tr_image_size size)
{
    if (size.height >= 1 && size.width >= 1 && size.height <= TR_IMAGE_SIDE_MAX &&
        size.width <= TR_IMAGE_SIDE_MAX &&
        (int64_t)size.height * size.width * size.channels * (size.wide ? 2 : 1) <= TR_IMAGE_BYTES_MAX) {
        return TR_OK;
    }
    return tr_fail(TR_EFORMAT,
                   "%s: an image of %" PRId32 " x %" PRId32
                   " pixels; at most %d a side and %d MiB can be read",
                   name, size.width, size.height, TR_IMAGE_SIDE_MAX, (int)(TR_IMAGE_BYTES_MAX >> 20));
}

/* Metadata may make a file larger than its unpacked pixels, but only by a bounded amount. */
static tr_status check_file(const char *name, struct tr_image_size is, size_t size)
{
    int64_t most = TR_IMAGE_SURPLUS + (int64_t)is.height * is.width * TR_IMAGE_PIXEL_MOST;
    char has[TR_TEXT_NUMBER_SIZE], may[TR_TEXT_NUMBER_SIZE];
    if (size <= (uint64_t)most && size <= (uint64_t)TR_IMAGE_BYTES_MAX) return TR_OK;
    if (most > TR_IMAGE_BYTES_MAX) most = TR_IMAGE_BYTES_MAX;
    return tr_fail(TR_EFORMAT,
                   "%s: a file of %s for an image of %" PRId32 " x %" PRId32
                   " pixels, for which at most %s are read; save the image anew, without what else the "
                   "file holds",
                   name, tr_text_from_bytes((int64_t)size, has), is.width, is.height,
                   tr_text_from_bytes(most, may));
}

tr_status tr_image_changed(const char *name)
{
    return tr_fail(TR_EFORMAT, "%s: the file has changed while it was read", name);
}

tr_status tr_image_measure(const char *name, const uint8_t *data, size_t size, struct tr_image_size *out)
{
    if (is_png(data, size)) {
        TR_TRY(tr_png_measure(name, data, size, out));
    } else if (is_jpeg(data, size)) {
        TR_TRY(tr_jpeg_measure(name, data, size, out));
    } else {
        return tr_fail(TR_EFORMAT, "%s: neither PNG nor JPEG", name);
    }
    TR_TRY(check_size(name, *out));
    return check_file(name, *out, size);
}

/* ---- decoding ---- */

/* Luma by ITU-R BT.601, in 1/65536 and rounded. */
static uint8_t luma(const uint8_t *rgb)
{
    return (uint8_t)((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

static tr_status decode_stored(const char *name, const uint8_t *data, size_t size,
                               struct tr_image_size stored, uint8_t *pixels)
{
    return is_png(data, size) ? tr_png_decode(name, data, size, stored, pixels)
                              : tr_jpeg_decode(name, data, size, stored, pixels);
}

tr_status tr_image_decode(const char *name, const uint8_t *data, size_t size, struct tr_image_size stored,
                          int32_t channels, uint8_t *pixels)
{
    if (channels == stored.channels) return decode_stored(name, data, size, stored, pixels);
    size_t count = (size_t)stored.height * (size_t)stored.width;
    uint8_t *from = tr_alloc(count, (size_t)stored.channels);
    if (!from) return TR_ENOMEM;
    tr_status status = decode_stored(name, data, size, stored, from);
    for (size_t i = 0; status == TR_OK && i < count; i++) {
        if (channels == 1)
            pixels[i] = luma(from + 3 * i);
        else
            memset(pixels + 3 * i, from[i], 3);
    }
    tr_free(from);
    return status;
}

static uint16_t luma_wide(const uint16_t *rgb)
{
    const uint64_t sum = (uint64_t)rgb[0] * 19595 + (uint64_t)rgb[1] * 38470 + (uint64_t)rgb[2] * 7471;
    return (uint16_t)((sum + (1 << 15)) >> 16);
}

/* Values of 16 bits of the stored channels; 255 becomes 65535. */
static tr_status decode_stored_wide(const char *name, const uint8_t *data, size_t size,
                                    struct tr_image_size stored, uint16_t *values)
{
    if (stored.wide) return tr_png_decode_wide(name, data, size, stored, values);
    const size_t count = (size_t)stored.height * (size_t)stored.width * (size_t)stored.channels;
    uint8_t *bytes = tr_alloc(count, 1);
    if (!bytes) return TR_ENOMEM;
    tr_status status = decode_stored(name, data, size, stored, bytes);
    for (size_t i = 0; status == TR_OK && i < count; i++) values[i] = (uint16_t)(bytes[i] * 257);
    tr_free(bytes);
    return status;
}

tr_status tr_image_decode_wide(const char *name, const uint8_t *data, size_t size,
                               struct tr_image_size stored, int32_t channels, uint16_t *values)
{
    if (channels == stored.channels) return decode_stored_wide(name, data, size, stored, values);
    const size_t count = (size_t)stored.height * (size_t)stored.width;
    uint16_t *from = tr_alloc(count * (size_t)stored.channels, sizeof *from);
    if (!from) return TR_ENOMEM;
    tr_status status = decode_stored_wide(name, data, size, stored, from);
    for (size_t i = 0; status == TR_OK && i < count; i++) {
        if (channels == 1)
            values[i] = luma_wide(from + 3 * i);
        else
            values[3 * i] = values[3 * i + 1] = values[3 * i + 2] = from[i];
    }
    tr_free(from);
    return status;
}

/* ---- files ---- */

/* Reads a file whose image may be refused: of a large one only as much as deciding takes. */
static tr_status read_file(const char *path, uint8_t **data, size_t *size)
{
    int descriptor = -1;
    uint64_t bytes = 0;
    struct tr_file_map map;
    struct tr_image_size is;
    TR_TRY(tr_file_open(path, &descriptor, &bytes));
    tr_status status = TR_OK;
    if (bytes > (uint64_t)TR_IMAGE_SURPLUS) {
        TR_TRY_GOTO(tr_file_map_open(descriptor, path, bytes, &map), out);
        status = tr_image_measure(path, map.data, map.size, &is);
        tr_file_unmap(&map);
        if (status != TR_OK) goto out;
    }
    *size = (size_t)bytes;
    *data = tr_alloc(*size + 1, 1);
    status = *data ? tr_file_read_at(descriptor, path, 0, *data, *size) : TR_ENOMEM;
out:
    close(descriptor);
    return status;
}

/* Reads a file into values, bytes or, where `wide`, of 16 bits. */
static tr_status read_any(const char *path, int32_t channels, bool wide, struct tr_image_size *out,
                          void **values)
{
    uint8_t *data = NULL;
    size_t size = 0;
    tr_status status;
    *values = NULL;
    TR_TRY_GOTO(read_file(path, &data, &size), out);
    TR_TRY_GOTO(tr_image_measure(path, data, size, out), out);
    if (channels == 0) channels = out->channels;
    *values = tr_alloc((size_t)out->height * (size_t)out->width * (size_t)channels, wide ? 2 : 1);
    if (!*values) {
        status = TR_ENOMEM;
        goto out;
    }
    TR_TRY_GOTO(wide ? tr_image_decode_wide(path, data, size, *out, channels, *values)
                     : tr_image_decode(path, data, size, *out, channels, *values),
                out);
    out->channels = channels;
out:
    tr_free(data);
    if (status != TR_OK) {
        tr_free(*values);
        *values = NULL;
    }
    return status;
}

tr_status tr_image_read(const char *path, int32_t channels, struct tr_image_size *out, uint8_t **pixels)
{
    void *values;
    tr_status status = read_any(path, channels, false, out, &values);
    *pixels = values;
    return status;
}

tr_status tr_image_read_wide(const char *path, int32_t channels, struct tr_image_size *out, uint16_t **values)
{
    void *read;
    tr_status status = read_any(path, channels, true, out, &read);
    *values = read;
    return status;
}

tr_status tr_image_read_numbers(const char *path, struct tr_image_size *out, uint8_t **numbers)
{
    uint8_t *data = NULL;
    size_t size = 0;
    tr_status status;
    *numbers = NULL;
    TR_TRY_GOTO(read_file(path, &data, &size), out);
    TR_TRY_GOTO(tr_image_measure(path, data, size, out), out);
    out->channels = 1;
    *numbers = tr_alloc((size_t)out->height, (size_t)out->width);
    if (!*numbers)
        status = TR_ENOMEM;
    else if (!is_png(data, size))
        status = tr_fail(TR_EFORMAT, "%s: class numbers are kept exactly by PNG alone; save it as one", path);
    else
        status = tr_png_decode_numbers(path, data, size, *out, *numbers);
out:
    tr_free(data);
    if (status != TR_OK) {
        tr_free(*numbers);
        *numbers = NULL;
    }
    return status;
}

/* ---- fitting ---- */

/* `bytes` is the size of a value. */
static void crop(const uint8_t *from, struct tr_image_size is, uint8_t *to, struct tr_image_size wanted,
                 size_t bytes)
{
    int32_t top = (is.height - wanted.height) / 2, left = (is.width - wanted.width) / 2;
    size_t row = (size_t)wanted.width * (size_t)wanted.channels * bytes;
    for (int32_t y = 0; y < wanted.height; y++) {
        size_t start = ((size_t)(top + y) * (size_t)is.width + (size_t)left) * (size_t)is.channels * bytes;
        memcpy(to + (size_t)y * row, from + start, row);
    }
}

/* The place of output `index` of `outputs` among `inputs`: the pixel at or before it and the distance
   towards the next one in 1/65536. Centres of pixels map to centres. */
static int32_t place(int32_t index, int32_t outputs, int32_t inputs, int32_t *fraction)
{
    int64_t at = (((int64_t)(2 * index + 1) * inputs) << 15) / outputs - (1 << 15);
    int64_t last = (int64_t)(inputs - 1) << 16;
    if (at < 0) at = 0;
    if (at > last) at = last;
    *fraction = (int32_t)(at & 0xffff);
    return (int32_t)(at >> 16);
}

/* Between the four values around a place, in 1/65536 of the distances, rounded. `wide` is a constant. */
static inline __attribute__((always_inline)) void scale(const void *from, struct tr_image_size is, void *to,
                                                        struct tr_image_size wanted, const bool wide)
{
    const uint8_t *bytes = from;
    const uint16_t *words = from;
    size_t channels = (size_t)is.channels, row = (size_t)is.width * channels, at = 0;
    for (int32_t y = 0; y < wanted.height; y++) {
        int32_t down, right;
        size_t top = (size_t)place(y, wanted.height, is.height, &down) * row;
        size_t bottom = down > 0 ? top + row : top;
        for (int32_t x = 0; x < wanted.width; x++) {
            size_t left = (size_t)place(x, wanted.width, is.width, &right) * channels;
            size_t next = right > 0 ? left + channels : left;
            for (size_t c = 0; c < channels; c++, at++) {
                const size_t corner[] = {top + left + c, top + next + c, bottom + left + c,
                                         bottom + next + c};
                int64_t value[4];
                for (int i = 0; i < 4; i++) value[i] = wide ? words[corner[i]] : bytes[corner[i]];
                int64_t above = value[0] * (65536 - right) + value[1] * right;
                int64_t below = value[2] * (65536 - right) + value[3] * right;
                int64_t between = (above * (65536 - down) + below * down + (1ll << 31)) >> 32;
                if (wide)
                    ((uint16_t *)to)[at] = (uint16_t)between;
                else
                    ((uint8_t *)to)[at] = (uint8_t)between;
            }
        }
    }
}

/* The nearest of `inputs` pixels. */
static int32_t nearest(int32_t index, int32_t outputs, int32_t inputs)
{
    int32_t fraction, before = place(index, outputs, inputs, &fraction);
    return before + (fraction >= 1 << 15);
}

tr_status tr_image_fit_numbers(const char *name, enum tr_image_fit fit, const uint8_t *from,
                               struct tr_image_size is, uint8_t *to, struct tr_image_size wanted)
{
    is.channels = wanted.channels = 1;
    if (fit != TR_IMAGE_SCALE || (is.height == wanted.height && is.width == wanted.width))
        return tr_image_fit(name, fit, from, is, to, wanted);
    for (int32_t y = 0; y < wanted.height; y++) {
        const uint8_t *row = from + (size_t)nearest(y, wanted.height, is.height) * (size_t)is.width;
        for (int32_t x = 0; x < wanted.width; x++) *to++ = row[nearest(x, wanted.width, is.width)];
    }
    return TR_OK;
}

/* Of bytes, or of 16 bits where `wide`. */
static tr_status fit_any(const char *name, enum tr_image_fit fit, const void *from, struct tr_image_size is,
                         void *to, struct tr_image_size wanted, bool wide)
{
    bool same = is.height == wanted.height && is.width == wanted.width;
    bool large = is.height >= wanted.height && is.width >= wanted.width;
    if (same || (fit == TR_IMAGE_CROP && large)) {
        crop(from, is, to, wanted, wide ? 2 : 1);
    } else if (fit == TR_IMAGE_SCALE) {
        if (wide)
            scale(from, is, to, wanted, true);
        else
            scale(from, is, to, wanted, false);
    } else {
        return tr_fail(TR_EFORMAT,
                       "%s: %" PRId32 " x %" PRId32 " pixels, %" PRId32 " x %" PRId32
                       " are wanted; set fit: %s",
                       name, is.width, is.height, wanted.width, wanted.height,
                       fit == TR_IMAGE_EXACT && large ? "crop or fit: scale" : "scale");
    }
    return TR_OK;
}

tr_status tr_image_fit(const char *name, enum tr_image_fit fit, const uint8_t *from, struct tr_image_size is,
                       uint8_t *to, struct tr_image_size wanted)
{
    return fit_any(name, fit, from, is, to, wanted, false);
}

tr_status tr_image_fit_wide(const char *name, enum tr_image_fit fit, const uint16_t *from,
                            struct tr_image_size is, uint16_t *to, struct tr_image_size wanted)
{
    return fit_any(name, fit, from, is, to, wanted, true);
}
