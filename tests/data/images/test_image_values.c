/* Which numbers an image gives: the same for a picture whatever its file, by the formulas of
 * docs/reference/images.md. What Pillow makes of the same files is compared in tests/interop/test_images.py.
 */
#include "base/alloc.h"
#include "base/options/config.h"
#include "base/numbers/hash.h"
#include "data/cache/cache.h"
#include "data/images/image.h"
#include "data/cache/store.h"
#include "data/support.h"
#include "data/cache/unpacked.h"
#include "support/files/png.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <turbojpeg.h>
#include <unistd.h>
#include <zlib.h>

#define SIDE  8
#define COUNT (SIDE * SIDE)

/* Rows of SIDE pixels as they are to be stored, with a gamma of 1 that must change nothing. */
static void write_colours(const char *name, int type, int depth, const uint8_t *rows, size_t row,
                          const png_color *colours)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    FILE *file = fopen(test_path(name), "wb");
    assert_non_null(file);
    png_init_io(png, file);
    png_set_IHDR(png, info, SIDE, SIDE, depth, type, PNG_INTERLACE_ADAM7, 0, 0);
    png_set_gAMA(png, info, 1.0);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, colours, depth < 4 ? 1 << depth : 16);
    png_write_info(png, info);
    int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (size_t y = 0; y < SIDE; y++) png_write_row(png, rows + y * row);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    assert_int_equal(fclose(file), 0);
}

static void write_png(const char *name, int type, int depth, const uint8_t *rows, size_t row)
{
    write_colours(name, type, depth, rows, row, NULL);
}

static struct bytes packed_jpeg(const uint8_t *pixels, int form, int sampling)
{
    struct bytes file = {0};
    unsigned char *data = NULL;
    unsigned long size = 0;
    tjhandle handle = tjInitCompress();
    assert_int_equal(tjCompress2(handle, pixels, SIDE, 0, SIDE, form, &data, &size, sampling, 100, 0), 0);
    file = (struct bytes){malloc(size), size};
    memcpy(file.data, data, size);
    tjFree(data);
    tjDestroy(handle);
    return file;
}

static void read_image(const char *name, int32_t channels, int32_t stored, uint8_t *pixels)
{
    struct tr_image_size size, measured;
    uint8_t *read;
    struct bytes file = read_file(test_path(name));
    assert_int_equal(tr_image_measure(name, file.data, file.size, &measured), TR_OK);
    free(file.data);
    assert_int_equal(measured.channels, stored);
    if (tr_image_read(test_path(name), channels, &size, &read) != TR_OK) fail_msg("%s", tr_error_message());
    assert_int_equal(size.height, SIDE);
    assert_int_equal(size.width, SIDE);
    memcpy(pixels, read, (size_t)COUNT * (size_t)channels);
    tr_free(read);
}

/* By the formula in decimals, as ITU-R BT.601 has it: within the rounding of 1/65536 of it. */
static void expect_luma(const uint8_t *grey, const uint8_t *rgb)
{
    for (int i = 0; i < COUNT; i++) {
        double luma = 0.299 * rgb[3 * i] + 0.587 * rgb[3 * i + 1] + 0.114 * rgb[3 * i + 2];
        assert_true(grey[i] > luma - 0.51 && grey[i] < luma + 0.51);
    }
}

static void png_gives_what_is_stored(void **state)
{
    (void)state;
    uint8_t stored[COUNT * 8], pixels[COUNT * 3], grey[COUNT];
    static const struct {
        int type;
        int32_t channels, samples;
    } kinds[] = {{PNG_COLOR_TYPE_GRAY, 1, 1},
                 {PNG_COLOR_TYPE_GRAY_ALPHA, 1, 2},
                 {PNG_COLOR_TYPE_RGB, 3, 3},
                 {PNG_COLOR_TYPE_RGB_ALPHA, 3, 4}};
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (int bytes = 1; bytes <= 2; bytes++) {
            int32_t samples = kinds[kind].samples, channels = kinds[kind].channels;
            for (int i = 0; i < COUNT * samples * bytes; i++) stored[i] = (uint8_t)(i * 37 + i / 11);
            write_png("a.png", kinds[kind].type, 8 * bytes, stored, (size_t)(SIDE * samples * bytes));
            read_image("a.png", channels, channels, pixels);
            for (int i = 0; i < COUNT; i++)
                for (int c = 0; c < channels; c++)
                    assert_int_equal(pixels[i * channels + c], stored[(i * samples + c) * bytes]);
            if (channels == 1) continue;
            read_image("a.png", 1, 3, grey);
            expect_luma(grey, pixels);
        }
}

/* Grey of fewer bits is spread over all of a byte, an index of a palette is its colour. */
static void few_bits_are_spread(void **state)
{
    uint8_t stored[COUNT], pixels[COUNT * 3], values[COUNT];
    png_color colours[16];
    (void)state;
    for (int i = 0; i < 16; i++)
        colours[i] = (png_color){(uint8_t)(i * 3), (uint8_t)(255 - i), (uint8_t)(i * i)};
    for (int depth = 1; depth <= 8; depth *= 2)
        for (int palette = 0; palette < 2; palette++) {
            memset(stored, 0, sizeof stored);
            for (int i = 0; i < COUNT; i++) {
                values[i] = (uint8_t)((i * 5 + i / 7) & ((1 << depth) - 1) & 15);
                stored[i * depth / 8] |= (uint8_t)(values[i] << (8 - depth - i * depth % 8));
            }
            write_colours("a.png", palette ? PNG_COLOR_TYPE_PALETTE : PNG_COLOR_TYPE_GRAY, depth, stored,
                          (size_t)(SIDE * depth / 8), colours);
            const int channels = palette ? 3 : 1;
            read_image("a.png", channels, channels, pixels);
            for (int i = 0; i < COUNT; i++) {
                const png_color colour = colours[values[i]];
                if (palette)
                    assert_memory_equal(pixels + 3 * i, &colour, 3);
                else
                    assert_int_equal(pixels[i], values[i] * 255 / ((1 << depth) - 1));
            }
        }
}

/* Files that libpng did not write, of 16 bits: all of them count, alpha does not; 8 bits are widened. */
static void sixteen_bits_are_kept(void **state)
{
    (void)state;
    static const int kinds[] = {PNG_GREY, PNG_GREY_ALPHA, PNG_COLOURS, PNG_COLOURS_ALPHA};
    uint16_t stored[COUNT * 4];
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (int depth = 8; depth <= 16; depth += 8) {
            const int samples = png_samples(kinds[kind]), channels = samples < 3 ? 1 : 3;
            struct tr_image_size is;
            uint16_t *values;
            uint8_t *bytes;
            size_t size;
            for (int i = 0; i < COUNT * samples; i++)
                stored[i] = (uint16_t)((i * 40503 + 77) & (depth == 8 ? 0xff : 0xffff));
            uint8_t *file = png_of(kinds[kind], depth, SIDE, SIDE, stored, &size);
            write_file("wide.png", file, size);
            assert_int_equal(tr_image_measure("wide.png", file, size, &is), TR_OK);
            assert_int_equal(is.wide, depth == 16);
            free(file);
            assert_int_equal(tr_image_read_wide(test_path("wide.png"), 0, &is, &values), TR_OK);
            assert_int_equal(tr_image_read(test_path("wide.png"), 0, &is, &bytes), TR_OK);
            assert_true(is.channels == channels && is.height == SIDE && is.width == SIDE);
            for (int i = 0; i < COUNT; i++)
                for (int c = 0; c < channels; c++) {
                    const uint16_t wanted = stored[i * samples + c];
                    assert_int_equal(values[i * channels + c], depth == 16 ? wanted : wanted * 257);
                    assert_int_equal(bytes[i * channels + c], depth == 16 ? wanted >> 8 : wanted);
                }
            tr_free(values);
            tr_free(bytes);
            assert_int_equal(tr_image_read_wide(test_path("wide.png"), 4 - channels, &is, &values), TR_OK);
            for (int i = 0; i < COUNT; i++) {
                const uint16_t *from = stored + i * samples;
                const double widen = depth == 16 ? 1 : 257,
                             luma = channels == 1
                                        ? from[0] * widen
                                        : widen * (0.299 * from[0] + 0.587 * from[1] + 0.114 * from[2]);
                for (int c = 0; c < 4 - channels; c++)
                    assert_true(fabs(values[i * (4 - channels) + c] - luma) < (channels == 1 ? 0.01 : 1.51));
            }
            tr_free(values);
        }
}

/* Scaled and cropped by the formula that bytes have: an image of bytes times 256 gives theirs times 256,
   within half a unit of a byte; the middle is cut out exactly. */
static void sixteen_bits_are_fitted(void **state)
{
    (void)state;
    const struct tr_image_size is = {SIDE, SIDE, 3, 1}, wanted = {5, 11, 3, 1}, middle = {3, 5, 3, 1};
    uint8_t bytes[COUNT * 3], small[5 * 11 * 3];
    uint16_t wide[COUNT * 3], fitted[5 * 11 * 3];
    for (int i = 0; i < COUNT * 3; i++) bytes[i] = (uint8_t)(i * i * 7 + i);
    for (int i = 0; i < COUNT * 3; i++) wide[i] = (uint16_t)(bytes[i] * 256);
    assert_int_equal(tr_image_fit("a", TR_IMAGE_SCALE, bytes, is, small, wanted), TR_OK);
    assert_int_equal(tr_image_fit_wide("a", TR_IMAGE_SCALE, wide, is, fitted, wanted), TR_OK);
    for (int i = 0; i < 5 * 11 * 3; i++) assert_true(abs(fitted[i] - small[i] * 256) <= 128);
    assert_int_equal(tr_image_fit_wide("a", TR_IMAGE_CROP, wide, is, fitted, middle), TR_OK);
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 15; x++) assert_int_equal(fitted[y * 15 + x], wide[((y + 2) * SIDE + 1) * 3 + x]);
    assert_int_equal(tr_image_fit_wide("a", TR_IMAGE_EXACT, wide, is, fitted, middle), TR_EFORMAT);
}

/* The grey of a picture does not depend on the file that its colours came in. */
static void grey_is_that_of_the_colours(void **state)
{
    (void)state;
    uint8_t painted[COUNT * 3], colours[COUNT * 3], grey[2][COUNT];
    for (int i = 0; i < COUNT * 3; i++) painted[i] = (uint8_t)(i * i * 5 + i % 3 * 90);
    for (int sampling = TJSAMP_444; sampling <= TJSAMP_420; sampling++) {
        struct bytes file = packed_jpeg(painted, TJPF_RGB, sampling);
        write_file("a.jpg", file.data, file.size);
        free(file.data);
        read_image("a.jpg", 3, 3, colours);
        write_png("a.png", PNG_COLOR_TYPE_RGB, 8, colours, 3 * SIDE);
        read_image("a.jpg", 1, 3, grey[0]);
        read_image("a.png", 1, 3, grey[1]);
        assert_memory_equal(grey[0], grey[1], COUNT);
        expect_luma(grey[0], colours);
    }
}

/* (19595 R + 38470 G + 7471 B + 32768) / 65536, rounded down (docs/reference/images.md): these sums are just
   below the next integer. */
static void luma_is_exact(void **state)
{
    (void)state;
    static const uint8_t cases[][4] = {
        {65, 56, 28, 55}, {0, 73, 32, 46}, {0, 0, 250, 28}, {0, 62, 229, 62}, {255, 255, 255, 255}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t *png, grey = 0;
        size_t size;
        const struct tr_image_size one = {1, 1, 3, false};
        assert_int_equal(tr_image_encode(cases[i], one, &png, &size), TR_OK);
        assert_int_equal(tr_image_decode("a.png", png, size, one, 1, &grey), TR_OK);
        tr_free(png);
        assert_int_equal(grey, cases[i][3]);
    }
}

/* Four inks, stored inverted: white paper where all are 255. */
static void inks_become_light(void **state)
{
    (void)state;
    static const uint8_t inks[][4] = {{255, 255, 255, 255},
                                      {0, 255, 255, 255},
                                      {255, 255, 255, 0},
                                      {200, 100, 50, 255},
                                      {200, 100, 50, 128}};
    uint8_t pixels[COUNT * 4], rgb[COUNT * 3], grey[COUNT];
    for (size_t ink = 0; ink < sizeof inks / sizeof inks[0]; ink++) {
        for (int i = 0; i < COUNT; i++) memcpy(pixels + 4 * i, inks[ink], 4);
        struct bytes file = packed_jpeg(pixels, TJPF_CMYK, TJSAMP_444);
        write_file("a.jpg", file.data, file.size);
        free(file.data);
        read_image("a.jpg", 3, 3, rgb);
        read_image("a.jpg", 1, 3, grey);
        expect_luma(grey, rgb);
        for (int i = 0; i < COUNT * 3; i++)
            assert_true(abs(rgb[i] - (int)inks[ink][i % 3] * inks[ink][3] / 255) <= 2);
    }
    /* one that is cut in its middle */
    struct tr_image_size size;
    uint8_t *read;
    for (int i = 0; i < COUNT * 4; i++) pixels[i] = (uint8_t)(i * i * 37 + i / 11);
    struct bytes file = packed_jpeg(pixels, TJPF_CMYK, TJSAMP_444);
    write_file("a.jpg", file.data, file.size - 50);
    free(file.data);
    assert_int_equal(tr_image_read(test_path("a.jpg"), 3, &size, &read), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "a.jpg: damaged or unusual JPEG: "));
    assert_null(read);
}

/* A file that is large by what no image needs is refused before it is read. */
static void surplus_is_refused(void **state)
{
    (void)state;
    uint8_t pixels[COUNT] = {0}, *read;
    struct tr_image_size size;
    const char *path = test_path("large/all/a.png");
    mkdir(test_path("large"), 0700);
    mkdir(test_path("large/all"), 0700);
    write_png("large/all/a.png", PNG_COLOR_TYPE_GRAY, 8, pixels, SIDE);
    assert_int_equal(truncate(path, TR_IMAGE_SURPLUS), 0);
    assert_int_equal(tr_image_read(path, 0, &size, &read), TR_OK);
    tr_free(read);
    assert_int_equal(truncate(path, (off_t)600 << 20), 0);
    assert_int_equal(tr_image_read(path, 0, &size, &read), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(),
                           "a file of 600.0 MiB for an image of 8 x 8 pixels, for which at "
                           "most 16.0 MiB are read"));
    expect_refusal("{folder: {path: large}}", TR_EFORMAT, "a file of 600.0 MiB for an image");
}

/* In the place of zlib's, for libpng: counts what it unpacks. */
static uint64_t unpacked;

__attribute__((visibility("default"))) int inflate(z_streamp stream, int flush)
{
    int (*real)(z_streamp, int);
    uLong before = stream->total_out;
    *(void **)&real = dlsym(RTLD_NEXT, "inflate");
    int result = real(stream, flush);
    unpacked += stream->total_out - before;
    return result;
}

/* What follows the last row is not unpacked. */
static void surplus_of_rows_is_left(void **state)
{
    (void)state;
    enum { ROWS = SIDE * (SIDE + 1), MORE = 1 << 24 };
    uint8_t *rows = calloc(1, ROWS + MORE), pixels[COUNT] = {0}, *read;
    struct tr_image_size size;
    struct bytes packed = pack(rows, ROWS + MORE, 15);
    write_png("a.png", PNG_COLOR_TYPE_GRAY, 8, pixels, SIDE);
    struct bytes file = read_file(test_path("a.png"));
    uint8_t *out = malloc(64 + packed.size), *data = out + 33;
    memcpy(out, file.data, 33);
    out[28] = PNG_INTERLACE_NONE;
    png_save_uint_32(out + 29, (png_uint_32)crc32(0, out + 12, 17));
    png_save_uint_32(data, (png_uint_32)packed.size);
    memcpy(data + 4, "IDAT", 4);
    memcpy(data + 8, packed.data, packed.size);
    png_save_uint_32(data + 8 + packed.size, (png_uint_32)crc32(0, data + 4, (uInt)packed.size + 4));
    memcpy(data + 12 + packed.size, file.data + file.size - 12, 12);
    write_file("a.png", out, 57 + packed.size);
    unpacked = 0;
    if (tr_image_read(test_path("a.png"), 0, &size, &read) != TR_OK) fail_msg("%s", tr_error_message());
    assert_memory_equal(read, pixels, COUNT);
    assert_true(unpacked >= ROWS && unpacked < ROWS + MORE / 2);
    tr_free(read);
    free(rows);
    free(out);
    free(packed.data);
    free(file.data);
}

/* ---- what was read by other rules ---- */

/* The key of an entry as it was before the rules for images were in it (data/cache/store.c). */
static void key_without_rules(const char *text, struct tr_source_files *files, char key[TR_SHA256_TEXT])
{
    static const uint32_t versions[] = {TR_UNPACKED_VERSION, TR_SOURCE_VERSION};
    const char *const texts[] = {"entry", TRIREME_VERSION, text, ""};
    tr_sha256 *hash;
    assert_int_equal(tr_sha256_begin(&hash), TR_OK);
    tr_sha256_add(hash, versions, sizeof versions);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        tr_sha256_add(hash, texts[i], strlen(texts[i]) + 1);
    assert_int_equal(tr_source_files_add_contents(files, hash), TR_OK);
    assert_int_equal(tr_sha256_end(&hash, key), TR_OK);
}

static void old_pixels_are_not_served(void **state)
{
    (void)state;
    static const char description[] = "{folder: {path: kept, memory: true}}";
    uint8_t dark[COUNT], light[COUNT], pixels[COUNT];
    char key[TR_SHA256_TEXT], *text;
    tr_config *config;
    tr_cache *cache;
    tr_store *store;
    memset(dark, 10, sizeof dark);
    memset(light, 200, sizeof light);
    mkdir(test_path("kept"), 0700);
    mkdir(test_path("kept/all"), 0700);
    /* An entry with other pixels, under the key that the file had. */
    write_png("kept/all/a.png", PNG_COLOR_TYPE_GRAY, 8, dark, SIDE);
    tr_source *source = must_open(description);
    write_png("kept/all/a.png", PNG_COLOR_TYPE_GRAY, 8, light, SIDE);
    assert_int_equal(tr_config_parse(description, strlen(description), "description", &config), TR_OK);
    assert_int_equal(tr_config_dump(config, &text), TR_OK);
    key_without_rules(text, &source->files, key);
    tr_free(text);
    tr_config_destroy(&config);
    assert_int_equal(tr_cache_open(NULL, test_path("cache"), 0, &cache), TR_OK);
    assert_int_equal(tr_cache_put(cache, key, source), TR_OK);
    tr_cache_close(&cache);
    tr_source_close(&source);
    assert_int_equal(tr_store_create(NULL, test_path("cache"), 0, &store), TR_OK);
    assert_int_equal(tr_source_open_through(store, description, test_directory(), NULL, &source), TR_OK);
    assert_int_equal(tr_source_read(source, 0, pixels, COUNT, NULL, NULL), TR_OK);
    assert_memory_equal(pixels, light, COUNT);
    tr_source_close(&source);
    tr_store_destroy(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png_gives_what_is_stored),    cmocka_unit_test(few_bits_are_spread),
        cmocka_unit_test(sixteen_bits_are_kept),       cmocka_unit_test(sixteen_bits_are_fitted),
        cmocka_unit_test(grey_is_that_of_the_colours), cmocka_unit_test(luma_is_exact),
        cmocka_unit_test(inks_become_light),           cmocka_unit_test(surplus_is_refused),
        cmocka_unit_test(surplus_of_rows_is_left),     cmocka_unit_test(old_pixels_are_not_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
