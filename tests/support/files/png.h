/* PNG files written by the specification, with zlib alone: what libpng makes of a file is not its own word.
 */
#ifndef TESTS_SUPPORT_FILES_PNG_H
#define TESTS_SUPPORT_FILES_PNG_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { PNG_GREY = 0, PNG_COLOURS = 2, PNG_GREY_ALPHA = 4, PNG_COLOURS_ALPHA = 6 };

static inline int png_samples(int type)
{
    return type == PNG_GREY ? 1 : type == PNG_GREY_ALPHA ? 2 : type == PNG_COLOURS ? 3 : 4;
}

static inline uint8_t *png_put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (24 - 8 * i));
    return at + 4;
}

static inline uint8_t *png_chunk(uint8_t *at, const char *name, const uint8_t *data, size_t size)
{
    at = png_put32(at, (uint32_t)size);
    uint8_t *const body = at;
    memcpy(at, name, 4);
    if (size) memcpy(at + 4, data, size);
    at += 4 + size;
    return png_put32(at, (uint32_t)crc32(0, body, (uInt)(4 + size)));
}

/* A file of `values` [height][width][samples of the type], of 8 or 16 bits. Free with free(). */
static inline uint8_t *png_of(int type, int depth, int height, int width, const uint16_t *values,
                              size_t *size)
{
    static const uint8_t magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    const size_t samples = (size_t)(width * png_samples(type)), row = 1 + samples * (size_t)depth / 8;
    uint8_t head[13] = {0}, *rows = calloc((size_t)height, row);
    for (int y = 0; y < height; y++) {
        uint8_t *at = rows + (size_t)y * row + 1; /* filter 0 */
        for (size_t i = 0; i < samples; i++) {
            const uint16_t value = values[(size_t)y * samples + i];
            if (depth == 16) *at++ = (uint8_t)(value >> 8);
            *at++ = (uint8_t)value;
        }
    }
    png_put32(png_put32(head, (uint32_t)width), (uint32_t)height);
    head[8] = (uint8_t)depth;
    head[9] = (uint8_t)type;
    uLongf packed = compressBound((uLong)((size_t)height * row));
    uint8_t *data = malloc(packed), *file = malloc(packed + 100), *at = file;
    if (compress(data, &packed, rows, (uLong)((size_t)height * row)) != Z_OK) abort();
    memcpy(at, magic, sizeof magic);
    at = png_chunk(at + sizeof magic, "IHDR", head, sizeof head);
    at = png_chunk(at, "IDAT", data, packed);
    at = png_chunk(at, "IEND", NULL, 0);
    *size = (size_t)(at - file);
    free(data);
    free(rows);
    return file;
}

#endif
