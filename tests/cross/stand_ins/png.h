/* Stands in for libpng's simplified interface, which reads and writes no image here. */
#ifndef STAND_IN_PNG_H
#define STAND_IN_PNG_H

#include <stddef.h>
#include <stdint.h>

enum { PNG_IMAGE_VERSION = 1, PNG_FORMAT_FLAG_COLOR = 2, PNG_FORMAT_GRAY = 0, PNG_FORMAT_RGB = 2 };

typedef struct {
    uint32_t version, width, height, format;
    char message[64];
} png_image;
typedef struct {
    uint8_t red, green, blue;
} png_color;
typedef uint32_t png_uint_32;
typedef size_t png_alloc_size_t;
#define PNG_IMAGE_PNG_SIZE_MAX(image) ((void)(image), (size_t)1)

static inline int png_image_begin_read_from_memory(png_image *image, const void *data, size_t size)
{
    (void)data, (void)size;
    *image = (png_image){.message = "no PNG in this build"};
    return 0;
}

static inline int png_image_finish_read(png_image *image, const png_color *background, void *pixels,
                                        int stride, void *colours)
{
    (void)image, (void)background, (void)pixels, (void)stride, (void)colours;
    return 0;
}

static inline int png_image_write_to_memory(png_image *image, void *memory, png_alloc_size_t *size, int wide,
                                            const void *pixels, int stride, const void *colours)
{
    (void)memory, (void)size, (void)wide, (void)pixels, (void)stride, (void)colours;
    *image = (png_image){.message = "no PNG in this build"};
    return 0;
}

static inline void png_image_free(png_image *image)
{
    (void)image;
}

#endif
