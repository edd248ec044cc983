/* Reading PNG.
 *
 * Stored values are taken as they stand: gamma and colour profiles are not applied, alpha and transparent
 * colours are dropped, palettes and fewer than 8 bits are expanded. Of 16 bits the high byte counts where
 * bytes are wanted.
 *
 * The file is pushed into libpng, which ends with the last row; its pull interface would also unpack all
 * that follows.
 */
#include "data/images/image_formats.h"

#include "base/fail.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

/* The signature and the first chunk, which holds the size. */
#define HEAD 33

struct reading {
    png_structp png;
    png_infop info;
    struct tr_image_size stored;
    uint8_t *pixels;
    bool wide;    /* values of 16 bits are wanted, in the byte order of the machine */
    bool numbers; /* values are numbers of classes: taken unscaled, palettes by their indices */
    bool changed, has_rows, complete;
    char message[160];
};

static void on_error(png_structp png, png_const_charp message)
{
    struct reading *reading = png_get_error_ptr(png);
    snprintf(reading->message, sizeof reading->message, "%s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* ---- parts of the file, as they come ---- */

static size_t row_bytes(const struct reading *reading)
{
    return (size_t)reading->stored.width * (size_t)reading->stored.channels * (reading->wide ? 2 : 1);
}

/* PNG stores the high byte first. */
static void take_wide(png_structp png, png_infop info, struct reading *reading)
{
    static const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    reading->changed |= png_get_bit_depth(png, info) != 16;
    if (first == 1) png_set_swap(png);
}

static void on_info(png_structp png, png_infop info)
{
    struct reading *reading = png_get_progressive_ptr(png);
    const struct tr_image_size *stored = &reading->stored;
    reading->changed = png_get_image_width(png, info) != (png_uint_32)stored->width ||
                       png_get_image_height(png, info) != (png_uint_32)stored->height;
    if (reading->numbers && png_get_bit_depth(png, info) == 16) png_error(png, "it has 16 bits a pixel");
    if (reading->numbers && png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR &&
        png_get_color_type(png, info) != PNG_COLOR_TYPE_PALETTE)
        png_error(png, "it has colours");
    if (reading->wide)
        take_wide(png, info, reading);
    else if (png_get_bit_depth(png, info) == 16)
        png_set_strip_16(png);
    if (reading->numbers)
        png_set_packing(png);
    else if (png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    else if (png_get_bit_depth(png, info) < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    reading->changed |= png_get_rowbytes(png, info) != row_bytes(reading);
    if (reading->changed) png_error(png, "other size");
}

static void on_row(png_structp png, png_bytep row, png_uint_32 y, int pass)
{
    struct reading *reading = png_get_progressive_ptr(png);
    const struct tr_image_size *stored = &reading->stored;
    const int last = png_get_interlace_type(png, reading->info) == PNG_INTERLACE_NONE ? 0 : 6;
    if (row) png_progressive_combine_row(png, reading->pixels + (size_t)y * row_bytes(reading), row);
    reading->has_rows |= pass == last && y + 1 == (png_uint_32)stored->height;
}

static void on_end(png_structp png, png_infop info)
{
    struct reading *reading = png_get_progressive_ptr(png);
    (void)info;
    reading->complete = true;
}

/* ---- the file ---- */

/* Gives bytes to libpng; false where it found a fault. */
static bool push(struct reading *reading, const uint8_t *data, size_t size)
{
    png_structp png = reading->png;
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* data/images/image.c has its own */
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_progressive_read_fn(png, reading, on_info, on_row, on_end);
    png_process_data(png, reading->info, (png_bytep)(uintptr_t)data, size); /* which does not write there */
    return true;
}

static tr_status begin(const char *name, struct reading *reading)
{
    reading->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, reading, on_error, on_warning);
    if (reading->png) reading->info = png_create_info_struct(reading->png);
    if (reading->info) return TR_OK;
    png_destroy_read_struct(&reading->png, NULL, NULL);
    return tr_fail(TR_ENOMEM, "%s: no memory for reading a PNG", name);
}

static void end(struct reading *reading)
{
    png_destroy_read_struct(&reading->png, &reading->info, NULL);
}

static tr_status refuse(const char *name, const char *why)
{
    return tr_fail(TR_EFORMAT, "%s: damaged PNG: %s; replace the file", name, why);
}

tr_status tr_png_measure(const char *name, const uint8_t *data, size_t size, struct tr_image_size *out)
{
    struct reading reading = {0};
    TR_TRY(begin(name, &reading));
    bool good = push(&reading, data, size < HEAD ? size : HEAD);
    *out =
        (struct tr_image_size){(int32_t)png_get_image_height(reading.png, reading.info),
                               (int32_t)png_get_image_width(reading.png, reading.info),
                               png_get_color_type(reading.png, reading.info) & PNG_COLOR_MASK_COLOR ? 3 : 1,
                               png_get_bit_depth(reading.png, reading.info) == 16};
    end(&reading);
    if (!good) return refuse(name, reading.message);
    return out->width > 0 ? TR_OK : refuse(name, "it is cut short");
}

static tr_status decode(const char *name, const uint8_t *data, size_t size, struct reading *reading)
{
    TR_TRY(begin(name, reading));
    bool good = push(reading, data, size);
    end(reading);
    if (reading->changed) return tr_image_changed(name);
    if (!good) return refuse(name, reading->message);
    return reading->has_rows && reading->complete ? TR_OK : refuse(name, "it is cut short");
}

tr_status tr_png_decode(const char *name, const uint8_t *data, size_t size, struct tr_image_size stored,
                        uint8_t *pixels)
{
    struct reading reading = {.stored = stored, .pixels = pixels};
    return decode(name, data, size, &reading);
}

tr_status tr_png_decode_wide(const char *name, const uint8_t *data, size_t size, struct tr_image_size stored,
                             uint16_t *values)
{
    struct reading reading = {.stored = stored, .pixels = (uint8_t *)values, .wide = true};
    return decode(name, data, size, &reading);
}

tr_status tr_png_decode_numbers(const char *name, const uint8_t *data, size_t size,
                                struct tr_image_size stored, uint8_t *numbers)
{
    struct reading reading = {.stored = stored, .pixels = numbers, .numbers = true};
    TR_TRY(begin(name, &reading));
    bool good = push(&reading, data, size);
    end(&reading);
    if (reading.changed) return tr_image_changed(name);
    if (!good)
        return tr_fail(
            TR_EFORMAT,
            "%s: no image of class numbers: %s; save them as grey of 8 bits or less, or as indices "
            "of a palette",
            name, reading.message);
    return reading.has_rows && reading.complete ? TR_OK : refuse(name, "it is cut short");
}
