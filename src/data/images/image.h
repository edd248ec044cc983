/* PNG and JPEG images as bytes, or values of 16 bits, [height][width][channels].
 *
 * The same picture gives the same numbers from any kind of file. Colours are taken as they are stored: no
 * gamma, no colour profile, alpha dropped, no rotation by EXIF data. Grey is the luma of the stored colours.
 * As bytes, 16 bits give the high byte; as values of 16 bits, 8 bits are times 257. docs/reference/images.md
 * has the table.
 */
#ifndef TR_DATA_IMAGE_H
#define TR_DATA_IMAGE_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TR_IMAGE_SIDE_MAX  65535
#define TR_IMAGE_BYTES_MAX ((int64_t)1 << 30)
/* A file may have this many bytes, plus so many for each pixel: four channels of 16 bits take 8. */
#define TR_IMAGE_SURPLUS    ((int64_t)16 << 20)
#define TR_IMAGE_PIXEL_MOST 10
/* Raise this when the same files give other pixels: a run that resumes from an older checkpoint would
   otherwise mix both, and old unpacked data would be taken as current (data/cache/store.h). */
#define TR_IMAGE_RULES 2

struct tr_image_size {
    int32_t height, width, channels; /* channels: 1 for grey, 3 for colour */
    int32_t wide;                    /* 1: values have 16 bits; else 0 */
};

/* Whether the name of a file ends in .png, .jpg or .jpeg, in any case. */
bool tr_image_is_name(const char *name);

/* Reads the size of an image from its header. `name` is for messages; all is borrowed for the call.
   TR_EFORMAT for data that are neither PNG nor JPEG, damaged, or larger than the limits above (image or
   file). Any thread. */
tr_status tr_image_measure(const char *name, const uint8_t *data, size_t size, struct tr_image_size *out);

/* Decodes an image whose tr_image_measure() is `stored`, as grey or colour by `channels` (1 or 3), into
   `pixels` [stored height][stored width][channels]. Any thread. */
tr_status tr_image_decode(const char *name, const uint8_t *data, size_t size, struct tr_image_size stored,
                          int32_t channels, uint8_t *pixels);

/* The same as values of 16 bits, whatever the file has. */
tr_status tr_image_decode_wide(const char *name, const uint8_t *data, size_t size,
                               struct tr_image_size stored, int32_t channels, uint16_t *values);

/* Reads an image file. channels: 1, 3, or 0: as stored. *pixels is returned, free with tr_free(). Any
   thread. */
tr_status tr_image_read(const char *path, int32_t channels, struct tr_image_size *out, uint8_t **pixels);
/* The same as values of 16 bits; out->wide says whether the file has them. */
tr_status tr_image_read_wide(const char *path, int32_t channels, struct tr_image_size *out,
                             uint16_t **values);

/* Reads a PNG whose pixels are numbers of classes: the indices of a palette, or grey as it is stored.
   *numbers [height][width] is returned, free with tr_free(). TR_EFORMAT for colours, 16 bits and other files.
   Any thread. */
tr_status tr_image_read_numbers(const char *path, struct tr_image_size *out, uint8_t **numbers);

/* How an image is brought to a size. */
enum tr_image_fit {
    TR_IMAGE_EXACT, /* it must have that size already */
    TR_IMAGE_CROP,  /* the middle is cut out; the image must be large enough */
    TR_IMAGE_SCALE  /* bilinear, in integers */
};

/* Brings `from` of size `is` to `to` of size `wanted` (equal channels). TR_EFORMAT, naming both sizes, where
   the fit does not allow it. Any thread. */
tr_status tr_image_fit(const char *name, enum tr_image_fit fit, const uint8_t *from, struct tr_image_size is,
                       uint8_t *to, struct tr_image_size wanted);

/* The same for values of 16 bits. */
tr_status tr_image_fit_wide(const char *name, enum tr_image_fit fit, const uint16_t *from,
                            struct tr_image_size is, uint16_t *to, struct tr_image_size wanted);

/* The same for numbers of classes [height][width]. Scaling takes the pixel whose centre is nearest to the
   point that tr_image_fit() samples; of two equally near, the later one. */
tr_status tr_image_fit_numbers(const char *name, enum tr_image_fit fit, const uint8_t *from,
                               struct tr_image_size is, uint8_t *to, struct tr_image_size wanted);

/* Packs `pixels` [height][width][1 or 3] as PNG. *png is returned, free with tr_free(). TR_ENOMEM. Any
 * thread. */
tr_status tr_image_encode(const uint8_t *pixels, struct tr_image_size size, uint8_t **png, size_t *bytes);

/* An image as characters for a terminal of `columns` (1 or more) columns. *text is returned, free with
   tr_free(). Any thread. */
tr_status tr_image_show(const uint8_t *pixels, struct tr_image_size size, int columns, char **text);

#endif
