/* Files of predictions: whole, or as they were; masks by the names of their images; and image files as
 * inputs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/terminal/output.h"
#include "cli/use/predict.h"
#include "data/images/image.h"
#include "refuse.h"
#include "scratch.h"

#include <math.h>

/* What is printed meanwhile goes nowhere. */
static int printed;

static void be_silent(void)
{
    const int nowhere = open("/dev/null", O_WRONLY);
    cli_output_flush();
    fflush(stdout);
    printed = dup(STDOUT_FILENO);
    assert_true(dup2(nowhere, STDOUT_FILENO) >= 0);
    close(nowhere);
}

static void speak(void)
{
    cli_output_flush();
    fflush(stdout);
    assert_true(dup2(printed, STDOUT_FILENO) >= 0);
    close(printed);
}

static struct tr_file_content content_of(const char *name)
{
    struct tr_file_content content;
    assert_int_equal(tr_file_read(scratch_in(name), 1 << 20, &content), TR_OK);
    return content;
}

/* Writes `count` examples, and ends; or not. */
static tr_status write_some(const struct cli_prediction_format *format, const struct tr_predict_info *info,
                            const char *path, int64_t expected, int count, bool ends)
{
    static const float output[4][2] = {{1, 0}, {0.25F, 0.75F}, {0, 1}, {0.5F, 0.5F}};
    struct cli_predictions predictions = {
        .info = info, .top = 1, .expected = expected, .format = format, .path = path, .masks = NULL};
    char input[24];
    TR_TRY(cli_predictions_begin(&predictions, NULL));
    tr_status status = TR_OK;
    for (int i = 0; i < count && status == TR_OK; i++) {
        snprintf(input, sizeof input, "test[%d]", i);
        const struct cli_prediction one = {
            .example = i, .input = input, .rows = cli_prediction_pixels(info), .output = output[i]};
        status = cli_predictions_add(&predictions, &one);
    }
    if (status == TR_OK && ends) return cli_predictions_end(&predictions);
    cli_predictions_abandon(&predictions);
    return status;
}

static const struct tr_predict_info of_values = {.checkpoint = "runs/x", .outputs = 2},
                                    of_pixels = {.checkpoint = "runs/x",
                                                 .outputs = 2,
                                                 .classification = true,
                                                 .pixel_height = 2,
                                                 .pixel_width = 1};

/* Arrays have a header for as many rows as come, whether their number was known before or not. */
static void arrays_are_whole(void **state)
{
    static const float values[6] = {1, 0, 0.25F, 0.75F, 0, 1};
    static const int32_t classes[4] = {0, 1, 1, 1};
    (void)state;
    for (int known = 0; known < 2; known++) {
        be_silent();
        const tr_status status =
            write_some(&cli_predictions_npy, &of_values, scratch_in("a.npy"), known ? 3 : -1, 3, true);
        speak();
        assert_int_equal(status, TR_OK);
        struct tr_file_content content = content_of("a.npy");
        assert_memory_equal(content.data, "\x93NUMPY", 6);
        assert_non_null(strstr(content.data + 10, "'<f4'"));
        assert_non_null(strstr(content.data + 10, "(3, 2)"));
        assert_memory_equal(content.data + content.size - sizeof values, values, sizeof values);
        assert_int_equal(content.data[content.size - sizeof values - 1], '\n');
        tr_file_content_free(&content);
        be_silent();
        assert_int_equal(
            write_some(&cli_predictions_npy, &of_pixels, scratch_in("p.npy"), known ? 2 : -1, 2, true),
            TR_OK);
        speak();
        content = content_of("p.npy");
        assert_non_null(strstr(content.data + 10, "(2, 2, 1)"));
        assert_memory_equal(content.data + content.size - sizeof classes, classes, sizeof classes);
        tr_file_content_free(&content);
    }
}

/* A file that is not finished leaves the one before. */
static void files_are_finished_or_stay(void **state)
{
    (void)state;
    scratch_write_text("b.csv", "before");
    assert_int_equal(write_some(&cli_predictions_csv, &of_values, scratch_in("b.csv"), 2, 2, false), TR_OK);
    struct tr_file_content content = content_of("b.csv");
    assert_string_equal(content.data, "before");
    tr_file_content_free(&content);
    static const struct cli_prediction_format *const formats[] = {&cli_predictions_csv, &cli_predictions_npy,
                                                                  &cli_predictions_jsonl};
    for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++)
        for (int64_t expected = -1; expected < 3; expected += 3) {
            char path[SCRATCH_PATH];
            scratch_join(path, scratch_place, "b.csv");
            be_silent();
            assert_int_equal(write_some(formats[k], &of_values, path, expected, 2, true), TR_OK);
            speak();
            struct tr_file_content whole = content_of("b.csv");
            for (int64_t at = 0, done = 0; !done; at++) {
                scratch_write_text("b.csv", "before");
                const int64_t live = tr_alloc_live();
                be_silent();
                refuse_begin(at);
                const tr_status status = write_some(formats[k], &of_values, path, expected, 2, true);
                done = refuse_end();
                speak();
                assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
                assert_int_equal(tr_alloc_live(), live);
                content = content_of("b.csv");
                const bool stays = strcmp(content.data, "before") == 0;
                if (done) assert_false(stays);
                if (!stays) {
                    assert_int_equal(content.size, whole.size);
                    assert_memory_equal(content.data, whole.data, whole.size);
                }
                tr_file_content_free(&content);
            }
            tr_file_content_free(&whole);
        }
}

/* Where the disk takes no more, whatever part of it that is. */
static void files_that_do_not_fit_are_told(void **state)
{
    (void)state;
    static const struct cli_prediction_format *const formats[] = {&cli_predictions_csv, &cli_predictions_npy,
                                                                  &cli_predictions_jsonl};
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++)
        for (int64_t expected = -1; expected < 3; expected += 3) {
            char path[SCRATCH_PATH];
            scratch_join(path, scratch_place, "full.csv");
            scratch_write_text("full.csv", "before");
            const int64_t live = tr_alloc_live();
            limit = before;
            limit.rlim_cur = 8;
            be_silent();
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
            const tr_status status = write_some(formats[k], &of_values, path, expected, 2, true);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
            speak();
            assert_int_equal(status, TR_EIO);
            assert_non_null(strstr(tr_error_message(), "full.csv"));
            struct tr_file_content content = content_of("full.csv");
            assert_string_equal(content.data, "before");
            tr_file_content_free(&content);
            assert_int_equal(tr_alloc_live(), live);
        }
    /* Or where it gets a name that is taken by then. */
    char path[SCRATCH_PATH];
    struct cli_predictions predictions = {.info = &of_values,
                                          .format = &cli_predictions_csv,
                                          .path = scratch_join(path, scratch_place, "taken.csv")};
    assert_int_equal(cli_predictions_begin(&predictions, NULL), TR_OK);
    assert_int_equal(tr_file_make_directory(NULL, path), TR_OK);
    assert_int_equal(cli_predictions_end(&predictions), TR_EIO);
    assert_non_null(strstr(tr_error_message(), "taken.csv\": Is a directory"));
}

/* A mask for each image, by its name without folder and ending; no name twice, however many there are. */
static void masks_have_the_names_of_images(void **state)
{
    static const float output[2][2] = {{1, 0}, {0, 1}};
    char masks[SCRATCH_PATH], input[64], said[2 * SCRATCH_PATH];
    struct cli_predictions predictions = {
        .info = &of_pixels, .named = true, .masks = scratch_join(masks, scratch_place, "masks")};
    struct cli_prediction one = {.input = input, .rows = 2, .output = output[0]};
    (void)state;
    assert_int_equal(cli_masks_begin(&predictions), TR_OK);
    assert_int_equal(cli_masks_begin(&predictions), TR_OK); /* which is there */
    for (int i = 0; i < 300; i++) {
        snprintf(input, sizeof input, "a.b/%d.x.png", i);
        if (cli_masks_add(&predictions, &one) != TR_OK) fail_msg("%s: %s", input, tr_error_message());
    }
    assert_int_equal(predictions.written.count, 300);
    assert_true(predictions.written.room >= 600);
    for (int i = 0; i < 300; i++) {
        struct tr_image_size size;
        uint8_t *pixels;
        snprintf(said, sizeof said, "%s/%d.x.png", masks, i);
        assert_int_equal(tr_image_read(said, 1, &size, &pixels), TR_OK);
        assert_true(size.height == 2 && size.width == 1 && pixels[0] == 0 && pixels[1] == 1);
        tr_free(pixels);
    }
    for (int i = 0; i < 300; i += 13) {
        snprintf(input, sizeof input, "c/%d.x.jpg", i);
        assert_int_equal(cli_masks_add(&predictions, &one), TR_EINVAL);
        snprintf(said, sizeof said,
                 "--masks: \"%s\" has the name of an earlier image, whose mask is \"%s/%d.x.png\"", input,
                 masks, i);
        assert_non_null(strstr(tr_error_message(), said));
    }
    snprintf(input, sizeof input, "no_ending");
    assert_int_equal(cli_masks_add(&predictions, &one), TR_OK);
    assert_true(tr_file_exists(scratch_in("masks/no_ending.png")));
    cli_masks_release(&predictions);
    assert_int_equal(predictions.written.room, 0);
    /* Examples of data sets have numbers, which may come again. */
    predictions.named = false;
    for (int i = 0; i < 2; i++) {
        one.example = 42;
        assert_int_equal(cli_masks_add(&predictions, &one), TR_OK);
    }
    assert_true(tr_file_exists(scratch_in("masks/000042.png")));
    cli_masks_release(&predictions);
}

static void masks_are_of_pixels(void **state)
{
    struct tr_predict_info info = of_pixels;
    const struct cli_predictions predictions = {.info = &info, .masks = scratch_in("none")};
    (void)state;
    info.outputs = 257;
    assert_int_equal(cli_masks_begin(&predictions), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "has 257 classes, a mask holds 256"));
    info.pixel_height = 0;
    assert_int_equal(cli_masks_begin(&predictions), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "\"runs/x\" answers for whole examples, not for pixels"));
    assert_false(tr_file_exists(scratch_in("none")));
    info = of_pixels;
    info.outputs = 256;
    assert_int_equal(cli_masks_begin(&predictions), TR_OK);
}

/* ---- images ---- */

static void write_image(const char *name, struct tr_image_size size, const uint8_t *pixels)
{
    uint8_t *png;
    size_t bytes;
    assert_int_equal(tr_image_encode(pixels, size, &png, &bytes), TR_OK);
    scratch_write(name, png, bytes);
    tr_free(png);
}

/* Grey and colour, as they are or inverted; with the size that is wanted, or made to fit. */
static void images_are_read(void **state)
{
    static const uint8_t colours[6] = {0, 10, 20, 255, 245, 235}, greys[3] = {0, 7, 255};
    struct cli_predict_options options = {.fit = TR_IMAGE_EXACT};
    struct cli_predict work = {.options = &options,
                               .info = {.name = "net", .height = 1, .width = 2, .channels = 3}};
    uint8_t pixels[6];
    float values[3];
    (void)state;
    work.info.features = TR_FEATURE_IMAGE;
    write_image("colour.png", (struct tr_image_size){1, 2, 3}, colours);
    write_image("grey.png", (struct tr_image_size){1, 3, 1}, greys);
    assert_int_equal(cli_predict_read_image(&work, scratch_in("colour.png"), pixels), TR_OK);
    assert_memory_equal(pixels, colours, sizeof colours);
    options.invert = true;
    assert_int_equal(cli_predict_read_image(&work, scratch_in("colour.png"), pixels), TR_OK);
    for (int i = 0; i < 6; i++) assert_int_equal(pixels[i], 255 - colours[i]);
    options.invert = false;
    work.info.channels = 1;
    work.info.width = 3;
    assert_int_equal(cli_predict_read_image(&work, scratch_in("grey.png"), pixels), TR_OK);
    assert_memory_equal(pixels, greys, sizeof greys);
    /* As numbers, of 16 bits. */
    work.info.features = TR_FEATURE_FLOATS;
    for (int invert = 0; invert < 2; invert++) {
        options.invert = invert;
        assert_int_equal(cli_predict_read_numbers(&work, scratch_in("grey.png"), values), TR_OK);
        for (int i = 0; i < 3; i++)
            assert_true(values[i] == (float)(invert ? 65535 - 257 * greys[i] : 257 * greys[i]));
    }
    assert_int_equal(cli_predict_read_image(&work, scratch_in("grey.png"), pixels), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "\"net\" does not take grey or colour images"));
    for (int channels = 2; channels <= 4; channels += 2) {
        work.info.channels = channels;
        assert_int_equal(cli_predict_read_numbers(&work, scratch_in("grey.png"), values), TR_EINVAL);
    }
}

static void other_sizes_are_refused_or_fitted(void **state)
{
    static const uint8_t greys[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    static const struct {
        int32_t height, width; /* wanted, of an image of 3 x 3 */
        bool crops;            /* it is larger */
    } cases[] = {{1, 1, true}, {3, 1, true}, {1, 3, true}, {4, 3, false}, {3, 4, false}, {1, 4, false}};
    struct cli_predict_options options = {0};
    struct cli_predict work = {.options = &options, .info = {.name = "net", .channels = 1}};
    uint8_t pixels[16];
    char said[2 * SCRATCH_PATH];
    (void)state;
    work.info.features = TR_FEATURE_IMAGE;
    write_image("square.png", (struct tr_image_size){3, 3, 1}, greys);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        work.info.height = cases[i].height;
        work.info.width = cases[i].width;
        options.fit = TR_IMAGE_EXACT;
        assert_int_equal(cli_predict_read_image(&work, scratch_in("square.png"), pixels), TR_EFORMAT);
        snprintf(said, sizeof said, "%s: 3 x 3 pixels, and the network takes %d x %d; add --fit scale%s",
                 scratch_in("square.png"), (int)cases[i].width, (int)cases[i].height,
                 cases[i].crops ? ", or --fit crop for the middle" : "");
        assert_string_equal(tr_error_message(), said);
        options.fit = TR_IMAGE_SCALE;
        assert_int_equal(cli_predict_read_image(&work, scratch_in("square.png"), pixels), TR_OK);
        options.fit = TR_IMAGE_CROP;
        assert_int_equal(cli_predict_read_image(&work, scratch_in("square.png"), pixels),
                         cases[i].crops ? TR_OK : TR_EFORMAT);
        if (i == 0) assert_int_equal(pixels[0], 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_whole),
        cmocka_unit_test(files_are_finished_or_stay),
        cmocka_unit_test(files_that_do_not_fit_are_told),
        cmocka_unit_test(masks_have_the_names_of_images),
        cmocka_unit_test(masks_are_of_pixels),
        cmocka_unit_test(images_are_read),
        cmocka_unit_test(other_sizes_are_refused_or_fitted),
    };
    return cmocka_run_group_tests_name("cli.prediction_files", tests, scratch_place_make,
                                       scratch_place_remove);
}
