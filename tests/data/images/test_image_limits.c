/* Limits of images, the formulas by which they are scaled and become grey, to the bit, and what stays where
 * memory or a file fails.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/images/image.h"
#include "data/support.h"
#include "refuse.h"
#include "support/files/png.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <turbojpeg.h>
#include <unistd.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void names_have_endings(void **state)
{
    static const char *const good[] = {"a.png", "a.JPG", "x/y.b.Jpeg", ".png"}, *const bad[] = {
                                                                                    "png",    "a.pn",
                                                                                    "a.pngs", "a.jpg.txt",
                                                                                    "a.jp",   "",
                                                                                    "a.",     "apng."};
    (void)state;
    for (int i = 0; i < LENGTH(good); i++) assert_true(tr_image_is_name(good[i]));
    for (int i = 0; i < LENGTH(bad); i++) assert_false(tr_image_is_name(bad[i]));
}

/* The signature and the first chunk of a PNG. */
enum { HEAD = 33 };

static void write_head(uint8_t head[HEAD], uint32_t width, uint32_t height, int type, int depth)
{
    static const uint8_t magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    uint8_t size[13] = {0};
    memcpy(head, magic, sizeof magic);
    png_put32(png_put32(size, width), height);
    size[8] = (uint8_t)depth;
    size[9] = (uint8_t)type;
    png_chunk(head + sizeof magic, "IHDR", size, sizeof size);
}

static void sizes_have_limits(void **state)
{
    static const struct {
        uint32_t width, height;
        int type, depth;
        bool good;
    } cases[] = {
        {65535, 1, PNG_GREY, 8, true},
        {1, 65535, PNG_GREY, 8, true},
        {65536, 1, PNG_GREY, 8, false},
        {1, 65536, PNG_GREY, 8, false},
        {32768, 32768, PNG_GREY, 8, true}, /* 1 GiB */
        {32769, 32768, PNG_GREY, 8, false},
        {32768, 16384, PNG_GREY, 16, true},
        {32768, 16385, PNG_GREY, 16, false},
        {21845, 16384, PNG_COLOURS, 8, true}, /* 1 GiB less 16 KiB */
        {21846, 16384, PNG_COLOURS, 8, false},
        {32768, 32768, PNG_GREY_ALPHA, 8, true}, /* alpha does not count */
    };
    (void)state;
    for (int i = 0; i < LENGTH(cases); i++) {
        uint8_t head[HEAD];
        char message[160];
        struct tr_image_size is;
        write_head(head, cases[i].width, cases[i].height, cases[i].type, cases[i].depth);
        const tr_status status = tr_image_measure("x", head, HEAD, &is);
        if (status != (cases[i].good ? TR_OK : TR_EFORMAT))
            fail_msg("%u x %u: %s", cases[i].width, cases[i].height, tr_status_name(status));
        assert_true(is.width == (int32_t)cases[i].width && is.height == (int32_t)cases[i].height);
        if (cases[i].good) continue;
        snprintf(message, sizeof message,
                 "x: an image of %u x %u pixels; at most 65535 a side and 1024 MiB can be read",
                 cases[i].width, cases[i].height);
        assert_string_equal(tr_error_message(), message);
    }
}

/* Of a file only the head is looked at. */
static void files_have_limits(void **state)
{
    static const size_t small = ((size_t)16 << 20) + 10 * 8 * 4, large = (size_t)1 << 30;
    uint8_t head[HEAD];
    struct tr_image_size is;
    (void)state;
    write_head(head, 8, 4, PNG_GREY, 8);
    assert_int_equal(tr_image_measure("x", head, small, &is), TR_OK);
    assert_int_equal(tr_image_measure("x", head, small + 1, &is), TR_EFORMAT);
    assert_string_equal(tr_error_message(),
                        "x: a file of 16.0 MiB for an image of 8 x 4 pixels, for which at most 16.0 MiB are "
                        "read; save the image anew, without what else the file holds");
    write_head(head, 32768, 16384, PNG_GREY, 8);
    assert_int_equal(tr_image_measure("x", head, large, &is), TR_OK);
    assert_int_equal(tr_image_measure("x", head, large + 1, &is), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "for which at most 1.0 GiB are read"));
    for (size_t size = 0; size < HEAD; size++) {
        assert_int_equal(tr_image_measure("x", head, size, &is), TR_EFORMAT);
        assert_string_equal(tr_error_message(), size < 8
                                                    ? "x: neither PNG nor JPEG"
                                                    : "x: damaged PNG: it is cut short; replace the file");
    }
    static const uint8_t nearly[][3] = {{0xff, 0xd7, 0xff}, {0xff, 0xd8, 0xfe}, {0xfe, 0xd8, 0xff}};
    for (int i = 0; i < LENGTH(nearly); i++) {
        assert_int_equal(tr_image_measure("x", nearly[i], 3, &is), TR_EFORMAT);
        assert_string_equal(tr_error_message(), "x: neither PNG nor JPEG");
    }
    /* So large that its head is looked at first, and then read all the same. */
    const uint16_t value = 77;
    size_t size;
    uint8_t *file = png_of(PNG_GREY, 8, 1, 1, &value, &size), *pixels;
    write_file("large", file, size);
    free(file);
    assert_int_equal(truncate(test_path("large"), (16 << 20) + 1), 0);
    if (tr_image_read(test_path("large"), 0, &is, &pixels) != TR_OK) fail_msg("%s", tr_error_message());
    assert_int_equal(pixels[0], 77);
    tr_free(pixels);
    write_text("large", "no image");
    assert_int_equal(truncate(test_path("large"), (16 << 20) + 1), 0);
    assert_int_equal(tr_image_read(test_path("large"), 0, &is, &pixels), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "neither PNG nor JPEG"));
}

/* ---- formulas ---- */

/* Where pixel `index` of `outputs` lies among `inputs`, in 1/65536. */
static double place(int index, int outputs, int inputs)
{
    const double at = floor((2 * index + 1) * inputs * 32768.0 / outputs) - 32768;
    return fmin(fmax(at, 0), (inputs - 1) * 65536.0);
}

/* Between its four neighbours, rounded; all is exact in a double. */
static double between(const double *from, int height, int width, int channels, int c, double y, double x)
{
    const int top = (int)(y / 65536), left = (int)(x / 65536);
    const int bottom = top + 1 < height ? top + 1 : top, right = left + 1 < width ? left + 1 : left;
    const double down = y - top * 65536.0, over = x - left * 65536.0;
#define AT(row, column) from[((row)*width + (column)) * channels + c]
    const double above = AT(top, left) * (65536 - over) + AT(top, right) * over;
    const double below = AT(bottom, left) * (65536 - over) + AT(bottom, right) * over;
#undef AT
    return floor((above * (65536 - down) + below * down) / 4294967296.0 + 0.5);
}

static void images_are_scaled_by_a_formula(void **state)
{
    enum { MOST = 7, COUNT = MOST * MOST * 3 };
    double numbers[COUNT];
    uint8_t bytes[COUNT], to[COUNT];
    uint16_t wide[COUNT], to_wide[COUNT];
    (void)state;
    for (int h = 1; h <= MOST; h += 2)
        for (int w = 1; w <= MOST; w++)
            for (int h2 = 1; h2 <= MOST; h2++)
                for (int w2 = 1; w2 <= MOST; w2 += 2)
                    for (int channels = 1; channels <= 3; channels += 2) {
                        const struct tr_image_size is = {h, w, channels}, wanted = {h2, w2, channels};
                        const int count = h2 * w2 * channels;
                        for (int i = 0; i < COUNT; i++) bytes[i] = (uint8_t)(i * i * 41 + i * 7 + w);
                        for (int i = 0; i < COUNT; i++) wide[i] = (uint16_t)(i * i * 4099 + i * 257 + h);
                        assert_int_equal(tr_image_fit("x", TR_IMAGE_SCALE, bytes, is, to, wanted), TR_OK);
                        assert_int_equal(tr_image_fit_wide("x", TR_IMAGE_SCALE, wide, is, to_wide, wanted),
                                         TR_OK);
                        for (int kind = 0; kind < 2; kind++) {
                            for (int i = 0; i < COUNT; i++) numbers[i] = kind ? wide[i] : bytes[i];
                            for (int i = 0; i < count; i++) {
                                const double y = place(i / channels / w2, h2, h),
                                             x = place(i / channels % w2, w2, w);
                                const double judge = between(numbers, h, w, channels, i % channels, y, x);
                                assert_true((kind ? to_wide[i] : to[i]) == judge);
                            }
                        }
                        if (channels == 3) continue;
                        assert_int_equal(tr_image_fit_numbers("x", TR_IMAGE_SCALE, bytes, is, to, wanted),
                                         TR_OK);
                        for (int i = 0; i < count; i++) {
                            const int y = (int)floor(place(i / w2, h2, h) / 65536 + 0.5),
                                      x = (int)floor(place(i % w2, w2, w) / 65536 + 0.5);
                            assert_int_equal(to[i], bytes[y * w + x]);
                        }
                    }
}

static void numbers_are_fitted_like_their_images(void **state)
{
    const uint8_t from[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const struct tr_image_size is = {3, 4, 3}, middle = {1, 2, 3}, large = {4, 4, 3};
    uint8_t to[12];
    (void)state;
    assert_int_equal(tr_image_fit_numbers("x", TR_IMAGE_CROP, from, is, to, middle), TR_OK);
    assert_memory_equal(to, ((const uint8_t[]){5, 6}), 2);
    for (int fit = TR_IMAGE_EXACT; fit <= TR_IMAGE_SCALE; fit++) {
        assert_int_equal(tr_image_fit_numbers("x", (enum tr_image_fit)fit, from, is, to, is), TR_OK);
        assert_memory_equal(to, from, sizeof from);
    }
    assert_int_equal(tr_image_fit_numbers("x", TR_IMAGE_EXACT, from, is, to, middle), TR_EFORMAT);
    assert_string_equal(tr_error_message(), "x: 4 x 3 pixels, 2 x 1 are wanted; set fit: crop or fit: scale");
    for (int fit = TR_IMAGE_EXACT; fit < TR_IMAGE_SCALE; fit++) {
        assert_int_equal(tr_image_fit_numbers("x", (enum tr_image_fit)fit, from, is, to, large), TR_EFORMAT);
        assert_string_equal(tr_error_message(), "x: 4 x 3 pixels, 4 x 4 are wanted; set fit: scale");
    }
}

/* Luma by ITU-R BT.601 in 1/65536, rounded. */
static double luma(const uint16_t *rgb)
{
    return floor((19595.0 * rgb[0] + 38470.0 * rgb[1] + 7471.0 * rgb[2]) / 65536 + 0.5);
}

static void grey_follows_its_formula(void **state)
{
    enum { SIDE = 40, COUNT = SIDE * SIDE };
    static uint16_t stored[COUNT * 3], values[COUNT];
    static uint8_t bytes[COUNT];
    (void)state;
    for (int depth = 8; depth <= 16; depth += 8) {
        size_t size;
        for (int i = 0; i < COUNT * 3; i++)
            stored[i] = (uint16_t)((uint32_t)i * 40503u >> 3 & (depth == 8 ? 0xff : 0xffff));
        uint8_t *file = png_of(PNG_COLOURS, depth, SIDE, SIDE, stored, &size);
        struct tr_image_size is;
        assert_int_equal(tr_image_measure("x", file, size, &is), TR_OK);
        assert_int_equal(tr_image_decode_wide("x", file, size, is, 1, values), TR_OK);
        assert_int_equal(tr_image_decode("x", file, size, is, 1, bytes), TR_OK);
        for (int i = 0; i < COUNT; i++) {
            uint16_t wide[3], byte[3];
            for (int c = 0; c < 3; c++) {
                wide[c] = (uint16_t)(stored[3 * i + c] * (depth == 8 ? 257 : 1));
                byte[c] = (uint16_t)(stored[3 * i + c] >> (depth - 8));
            }
            assert_true(values[i] == luma(wide));
            assert_true(bytes[i] == luma(byte));
        }
        free(file);
    }
}

/* ---- failures ---- */

enum { SIDE = 8, PIXELS = SIDE * SIDE };

static struct bytes jpeg_of(int form, int sampling)
{
    uint8_t pixels[PIXELS * 4];
    unsigned char *data = NULL;
    unsigned long size = 0;
    tjhandle handle = tjInitCompress();
    for (int i = 0; i < PIXELS * 4; i++) pixels[i] = (uint8_t)(i * 7);
    assert_int_equal(tjCompress2(handle, pixels, SIDE, 0, SIDE, form, &data, &size, sampling, 90, 0), 0);
    struct bytes file = {malloc(size), size};
    memcpy(file.data, data, size);
    tjFree(data);
    tjDestroy(handle);
    return file;
}

static struct bytes png_file(int type, int depth)
{
    uint16_t values[PIXELS * 4];
    struct bytes file;
    for (int i = 0; i < PIXELS * 4; i++) values[i] = (uint16_t)(i * 7 & (depth == 8 ? 0xff : 0xffff));
    file.data = png_of(type, depth, SIDE, SIDE, values, &file.size);
    return file;
}

static void write_files(struct bytes *file)
{
    const struct bytes files[] = {png_file(PNG_GREY, 8), png_file(PNG_COLOURS, 16),
                                  jpeg_of(TJPF_GRAY, TJSAMP_GRAY), jpeg_of(TJPF_RGB, TJSAMP_444),
                                  jpeg_of(TJPF_CMYK, TJSAMP_444)};
    memcpy(file, files, sizeof files);
}

enum { FILES = 5 };

static void memory_may_fail(void **state)
{
    struct bytes file[FILES];
    (void)state;
    write_files(file);
    for (int f = 0; f < FILES; f++) {
        write_file("image", file[f].data, file[f].size);
        free(file[f].data);
        for (int channels = 1; channels <= 3; channels += 2)
            for (int64_t at = 0, done = 0; !done; at++) {
                const int64_t live = tr_alloc_live();
                struct tr_image_size is;
                uint8_t *pixels = (uint8_t *)&is, *numbers = NULL, *png = NULL;
                uint16_t *values = NULL;
                size_t bytes;
                refuse_begin(at);
                tr_status status = tr_image_read(test_path("image"), channels, &is, &pixels);
                if (status == TR_OK) status = tr_image_encode(pixels, is, &png, &bytes);
                if (status == TR_OK) status = tr_image_read_wide(test_path("image"), channels, &is, &values);
                if (status == TR_OK && f == 0)
                    status = tr_image_read_numbers(test_path("image"), &is, &numbers);
                done = refuse_end();
                assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
                tr_free(pixels);
                tr_free(values);
                tr_free(numbers);
                tr_free(png);
                assert_int_equal(tr_alloc_live(), live);
            }
    }
}

/* An image that is not of the size that was measured. */
static void changed_files_are_told(void **state)
{
    struct bytes file[FILES];
    uint16_t values[PIXELS * 6];
    (void)state;
    write_files(file);
    for (int f = 0; f < FILES; f++) {
        struct tr_image_size is;
        assert_int_equal(tr_image_measure("x", file[f].data, file[f].size, &is), TR_OK);
        for (int change = 0; change < 3; change++) {
            struct tr_image_size other = is;
            other.width += change == 0;
            other.height += change == 1;
            if (change == 2) other.channels = 4 - is.channels;
            assert_int_equal(
                tr_image_decode("x", file[f].data, file[f].size, other, other.channels, (uint8_t *)values),
                TR_EFORMAT);
            assert_string_equal(tr_error_message(), "x: the file has changed while it was read");
        }
        if (is.wide || f > 1) continue;
        is.wide = 1;
        assert_int_equal(tr_image_decode_wide("x", file[f].data, file[f].size, is, is.channels, values),
                         TR_EFORMAT);
        assert_string_equal(tr_error_message(), "x: the file has changed while it was read");
    }
    /* What was a JPEG no longer is one. */
    static const uint8_t start[] = {0xff, 0xd8, 0xff, 0, 0, 0, 0, 0};
    assert_int_equal(tr_image_decode("x", start, sizeof start, (struct tr_image_size){SIDE, SIDE, 1}, 1,
                                     (uint8_t *)values),
                     TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "x: a JPEG without an image; replace the file"));
    for (int f = 0; f < FILES; f++) free(file[f].data);
}

static void numbers_are_of_exact_files(void **state)
{
    struct bytes file[FILES];
    struct tr_image_size is;
    uint8_t *numbers = (uint8_t *)&is;
    (void)state;
    write_files(file);
    for (size_t cut = 1; cut < 12 + 4; cut++) { /* the last chunk, and the checksum of the one before */
        write_file("image", file[0].data, file[0].size - cut);
        assert_int_equal(tr_image_read_numbers(test_path("image"), &is, &numbers), TR_EFORMAT);
        assert_null(numbers);
        assert_non_null(strstr(tr_error_message(), "it is cut short"));
    }
    /* Half of the rows, and all chunks. */
    const uint16_t half[PIXELS / 2] = {0};
    struct bytes flat;
    flat.data = png_of(PNG_GREY, 8, SIDE / 2, SIDE, half, &flat.size);
    write_head(flat.data, SIDE, SIDE, PNG_GREY, 8);
    write_file("image", flat.data, flat.size);
    free(flat.data);
    assert_int_equal(tr_image_read_numbers(test_path("image"), &is, &numbers), TR_EFORMAT);
    assert_null(numbers);
    write_text("image", "no image");
    assert_int_equal(tr_image_read_numbers(test_path("image"), &is, &numbers), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "neither PNG nor JPEG"));
    static const char *const says[FILES] = {
        NULL,
        "image: no image of class numbers: it has 16 bits a pixel; save them as grey of 8 bits or less, or "
        "as "
        "indices of a palette",
        "image: class numbers are kept exactly by PNG alone; save it as one",
        "image: class numbers are kept exactly by PNG alone; save it as one",
        "image: class numbers are kept exactly by PNG alone; save it as one"};
    for (int f = 0; f < FILES; f++) {
        write_file("image", file[f].data, file[f].size);
        free(file[f].data);
        const tr_status status = tr_image_read_numbers(test_path("image"), &is, &numbers);
        assert_int_equal(status, f == 0 ? TR_OK : TR_EFORMAT);
        if (f > 0) assert_null(numbers);
        if (f > 0 && !strstr(tr_error_message(), says[f])) fail_msg("%s", tr_error_message());
        if (f > 0) continue;
        for (int i = 0; i < PIXELS; i++) assert_int_equal(numbers[i], (uint8_t)(i * 7));
        tr_free(numbers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_endings),
        cmocka_unit_test(sizes_have_limits),
        cmocka_unit_test(files_have_limits),
        cmocka_unit_test(images_are_scaled_by_a_formula),
        cmocka_unit_test(numbers_are_fitted_like_their_images),
        cmocka_unit_test(grey_follows_its_formula),
        cmocka_unit_test(memory_may_fail),
        cmocka_unit_test(changed_files_are_told),
        cmocka_unit_test(numbers_are_of_exact_files),
    };
    return cmocka_run_group_tests_name("data.image_limits", tests, NULL, NULL);
}
