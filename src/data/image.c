#include "data/image.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/file.h"

#include <inttypes.h>
#include <png.h>
#include <string.h>
#include <strings.h>
#include <turbojpeg.h>

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
        (int64_t)size.height * size.width * size.channels <= TR_IMAGE_BYTES_MAX) {
        return TR_OK;
    }
    return tr_fail(TR_EFORMAT,
                   "%s: an image of %" PRId32 " x %" PRId32
                   " pixels; at most %d a side and %d MiB can be read",
                   name, size.width, size.height, TR_IMAGE_SIDE_MAX, (int)(TR_IMAGE_BYTES_MAX >> 20));
}

/* ---- PNG ---- */

static tr_status png_refuse(const char *name, png_image *image)
{
    tr_fail(TR_EFORMAT, "%s: damaged PNG: %s; replace the file", name, image->message);
    png_image_free(image);
    return TR_EFORMAT;
}

static tr_status png_open(const char *name, const uint8_t *data, size_t size, png_image *image)
{
    *image = (png_image){.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(image, data, size)) return png_refuse(name, image);
    return TR_OK;
}

static tr_status png_measure(const char *name, const uint8_t *data, size_t size, struct tr_image_size *out)
{
    png_image image;
    TR_TRY(png_open(name, data, size, &image));
    /* A width beyond 2^31 is refused by check_size(), which sees it as negative. */
    *out = (struct tr_image_size){(int32_t)image.height, (int32_t)image.width,
                                  image.format & PNG_FORMAT_FLAG_COLOR ? 3 : 1};
    png_image_free(&image);
    return TR_OK;
}

static tr_status png_decode(const char *name, const uint8_t *data, size_t size, struct tr_image_size stored,
                            int32_t channels, uint8_t *pixels)
{
    png_image image;
    const png_color black = {0, 0, 0};
    TR_TRY(png_open(name, data, size, &image));
    image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    if ((int32_t)image.height != stored.height || (int32_t)image.width != stored.width) {
        png_image_free(&image);
        return tr_fail(TR_EFORMAT, "%s: the file has changed while it was read", name);
    }
    if (!png_image_finish_read(&image, &black, pixels, 0, NULL)) return png_refuse(name, &image);
    return TR_OK;
}

/* ---- JPEG ---- */

static tr_status jpeg_refuse(const char *name, tjhandle handle)
{
    tr_fail(TR_EFORMAT, "%s: damaged JPEG: %s; replace the file", name, tjGetErrorStr2(handle));
    tjDestroy(handle);
    return TR_EFORMAT;
}

/* Opens a decoder and reads the header. */
static tr_status jpeg_open(const char *name, const uint8_t *data, size_t size, tjhandle *out,
                           struct tr_image_size *stored)
{
    int width, height, sampling, colours;
    tjhandle handle = tjInitDecompress();
    if (!handle) return tr_fail(TR_ENOMEM, "%s: no memory for reading a JPEG", name);
    if (tjDecompressHeader3(handle, data, size, &width, &height, &sampling, &colours) != 0) {
        return jpeg_refuse(name, handle);
    }
    *stored = (struct tr_image_size){height, width, colours == TJCS_GRAY ? 1 : 3};
    *out = handle;
    return TR_OK;
}

static tr_status jpeg_measure(const char *name, const uint8_t *data, size_t size, struct tr_image_size *out)
{
    tjhandle handle = NULL;
    TR_TRY(jpeg_open(name, data, size, &handle, out));
    tjDestroy(handle);
    return TR_OK;
}

static tr_status jpeg_decode(const char *name, const uint8_t *data, size_t size, struct tr_image_size stored,
                             int32_t channels, uint8_t *pixels)
{
    tjhandle handle = NULL;
    struct tr_image_size now = {0};
    TR_TRY(jpeg_open(name, data, size, &handle, &now));
    if (now.height != stored.height || now.width != stored.width) {
        tjDestroy(handle);
        return tr_fail(TR_EFORMAT, "%s: the file has changed while it was read", name);
    }
    if (tjDecompress2(handle, data, size, pixels, now.width, 0, now.height,
                      channels == 1 ? TJPF_GRAY : TJPF_RGB, TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING) != 0) {
        return jpeg_refuse(name, handle);
    }
    tjDestroy(handle);
    return TR_OK;
}

/* ---- both ---- */

tr_status tr_image_measure(const char *name, const uint8_t *data, size_t size, struct tr_image_size *out)
{
    if (is_png(data, size)) {
        TR_TRY(png_measure(name, data, size, out));
    } else if (is_jpeg(data, size)) {
        TR_TRY(jpeg_measure(name, data, size, out));
    } else {
        return tr_fail(TR_EFORMAT, "%s: neither PNG nor JPEG", name);
    }
    return check_size(name, *out);
}

tr_status tr_image_decode(const char *name, const uint8_t *data, size_t size, struct tr_image_size stored,
                          int32_t channels, uint8_t *pixels)
{
    return is_png(data, size) ? png_decode(name, data, size, stored, channels, pixels)
                              : jpeg_decode(name, data, size, stored, channels, pixels);
}

tr_status tr_image_read(const char *path, int32_t channels, struct tr_image_size *out, uint8_t **pixels)
{
    struct tr_file_content file;
    TR_TRY(tr_file_read(path, TR_IMAGE_BYTES_MAX, &file));
    const uint8_t *data = (const uint8_t *)file.data;
    tr_status status;
    *pixels = NULL;
    TR_TRY_GOTO(tr_image_measure(path, data, file.size, out), out);
    if (channels == 0) channels = out->channels;
    *pixels = tr_alloc((size_t)out->height * (size_t)out->width, (size_t)channels);
    if (!*pixels) {
        status = TR_ENOMEM;
        goto out;
    }
    TR_TRY_GOTO(tr_image_decode(path, data, file.size, *out, channels, *pixels), out);
    out->channels = channels;
out:
    tr_file_content_free(&file);
    if (status != TR_OK) {
        tr_free(*pixels);
        *pixels = NULL;
    }
    return status;
}

/* ---- fitting ---- */

static void crop(const uint8_t *from, struct tr_image_size is, uint8_t *to, struct tr_image_size wanted)
{
    int32_t top = (is.height - wanted.height) / 2, left = (is.width - wanted.width) / 2;
    size_t row = (size_t)wanted.width * (size_t)wanted.channels;
    for (int32_t y = 0; y < wanted.height; y++) {
        size_t start = ((size_t)(top + y) * (size_t)is.width + (size_t)left) * (size_t)is.channels;
        memcpy(to + (size_t)y * row, from + start, row);
    }
}

/* Where output `index` of `outputs` lies among `inputs`: the pixel before it and, in 1/65536, how far towards
   the next one. Centres of pixels map to centres. */
static int32_t place(int32_t index, int32_t outputs, int32_t inputs, int32_t *fraction)
{
    int64_t at = (((int64_t)(2 * index + 1) * inputs) << 15) / outputs - (1 << 15);
    int64_t last = (int64_t)(inputs - 1) << 16;
    if (at < 0) at = 0;
    if (at > last) at = last;
    *fraction = (int32_t)(at & 0xffff);
    return (int32_t)(at >> 16);
}

static void scale(const uint8_t *from, struct tr_image_size is, uint8_t *to, struct tr_image_size wanted)
{
    size_t channels = (size_t)is.channels, row = (size_t)is.width * channels;
    for (int32_t y = 0; y < wanted.height; y++) {
        int32_t down, right;
        size_t top = (size_t)place(y, wanted.height, is.height, &down) * row;
        size_t bottom = down > 0 ? top + row : top;
        for (int32_t x = 0; x < wanted.width; x++) {
            size_t left = (size_t)place(x, wanted.width, is.width, &right) * channels;
            size_t next = right > 0 ? left + channels : left;
            for (size_t c = 0; c < channels; c++) {
                int64_t above =
                    (int64_t)from[top + left + c] * (65536 - right) + (int64_t)from[top + next + c] * right;
                int64_t below = (int64_t)from[bottom + left + c] * (65536 - right) +
                                (int64_t)from[bottom + next + c] * right;
                *to++ = (uint8_t)((above * (65536 - down) + below * down + (1ll << 31)) >> 32);
            }
        }
    }
}

tr_status tr_image_fit(const char *name, enum tr_image_fit fit, const uint8_t *from, struct tr_image_size is,
                       uint8_t *to, struct tr_image_size wanted)
{
    bool same = is.height == wanted.height && is.width == wanted.width;
    bool large = is.height >= wanted.height && is.width >= wanted.width;
    if (same || (fit == TR_IMAGE_CROP && large)) {
        crop(from, is, to, wanted);
    } else if (fit == TR_IMAGE_SCALE) {
        scale(from, is, to, wanted);
    } else {
        return tr_fail(TR_EFORMAT,
                       "%s: %" PRId32 " x %" PRId32 " pixels, %" PRId32 " x %" PRId32
                       " are wanted; set fit: %s",
                       name, is.width, is.height, wanted.width, wanted.height,
                       fit == TR_IMAGE_EXACT && large ? "crop or fit: scale" : "scale");
    }
    return TR_OK;
}
