/* The functions that data/images/image.c needs for each image format.
 *
 * `data` [size] is a whole file, borrowed for the call; `name` is for messages. decode() writes the
 * channels that measure() gave, [height][width][1 or 3], the same on every machine, and nothing where it
 * fails: bytes, of 16 bits the high ones.
 */
#ifndef TR_DATA_IMAGE_FORMATS_H
#define TR_DATA_IMAGE_FORMATS_H

#include "data/images/image.h"

tr_status tr_png_measure(const char *name, const uint8_t *data, size_t size, struct tr_image_size *out);
tr_status tr_png_decode(const char *name, const uint8_t *data, size_t size, struct tr_image_size stored,
                        uint8_t *pixels);

/* As decode(), of a file of 16 bits: all of them. */
tr_status tr_png_decode_wide(const char *name, const uint8_t *data, size_t size, struct tr_image_size stored,
                             uint16_t *values);

/* As decode(), for the stored numbers of one channel: indices of palettes, or grey of fewer bits unscaled. */
tr_status tr_png_decode_numbers(const char *name, const uint8_t *data, size_t size,
                                struct tr_image_size stored, uint8_t *numbers);

tr_status tr_jpeg_measure(const char *name, const uint8_t *data, size_t size, struct tr_image_size *out);
tr_status tr_jpeg_decode(const char *name, const uint8_t *data, size_t size, struct tr_image_size stored,
                         uint8_t *pixels);

/* TR_EFORMAT: the header gives another size than when it was measured. */
tr_status tr_image_changed(const char *name);

#endif
