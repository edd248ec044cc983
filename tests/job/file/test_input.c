/* What a model file says of its input: which is refused, with what words, and what follows from it for the
 * network. Nothing here needs data.
 */
#include "job/file/input.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* A job with this input section. */
static tr_status open_input(const char *input, const char *layers, struct tr_job **job)
{
    char text[1024];
    const struct tr_job_settings settings = {.set_count = 0};
    const int length = snprintf(text, sizeof text,
                                "name: n\ninput: {%s}\nlayers: [%s]\noptimizer: {rule: sgd, rate: 1}\n"
                                "train: {batch: 2, steps: 1}\n",
                                input, layers);
    const struct tr_job_text model = {text, (size_t)length, "m.yaml", "/nowhere"};
    assert_in_range(length, 1, sizeof text - 1);
    *job = NULL;
    return tr_job_open_text(&model, &settings, job);
}

static struct tr_job *good(const char *input, const char *layers)
{
    struct tr_job *job;
    if (open_input(input, layers, &job) != TR_OK) fail_msg("%s: %s", input, tr_error_message());
    return job;
}

/* The message is the place in the file and this. */
static void refuse_of(const char *input, const char *layers, const char *said)
{
    const int64_t live = tr_alloc_live();
    struct tr_job *job;
    if (open_input(input, layers, &job) != TR_EINVAL) fail_msg("%s is taken", input);
    assert_null(job);
    const char *message = tr_error_message();
    if (strncmp(message, "m.yaml:2:", 9) != 0 || !strstr(message, said) ||
        strcmp(strstr(message, said), said) != 0)
        fail_msg("%s: \"%s\", not \"%s\"", input, message, said);
    assert_int_equal(tr_alloc_live(), live);
}

static void refuse(const char *input, const char *said)
{
    refuse_of(input, "dense: 2", said);
}

static void accept(const char *input, const char *layers)
{
    struct tr_job *job = good(input, layers);
    tr_job_destroy(&job);
}

static void shapes_have_one_to_three_sizes(void **state)
{
    (void)state;
    refuse("shape: [6], vocabulary: 9", "give either a shape (images, numbers) or a vocabulary (text)");
    refuse("shape: [2, 2, 2, 2]",
           "the shape of the input has 4 sizes; images have [height, width, channels], numbers "
           "one size");
    refuse("shape: [4, 4], steps: 2",
           "steps are of numbers, and examples are images; leave it out, or take the layer tokens");
    refuse("shape: [7], steps: 2",
           "7 numbers an example are no 2 vectors of one size; give steps that divide them");
    refuse_of("shape: [4], sources: [a 2, b 2], steps: 2", "dense: {units: 2, from: a}",
              "steps are of one source, and examples have several; leave it out");
    accept("shape: [8], steps: 2", "last, dense: 2");
}

static void ranges_are_of_images_of_numbers(void **state)
{
    static const char *const bad[] = {"[1]", "[1, 1]", "[2, 1]", "[0, 1, 2]"};
    char input[96];
    (void)state;
    refuse("shape: [4], range: [0, 1]",
           "range is of images of numbers, and examples are numbers; leave it out");
    refuse("shape: [4, 4, 1], range: [0, 1]",
           "range is of images of numbers, and examples are images of bytes; leave it out");
    for (int i = 0; i < 4; i++) {
        snprintf(input, sizeof input, "shape: [4], image: [2, 2, 1], range: %s", bad[i]);
        refuse(input,
               "range takes the least and the most of the stored values of images, two numbers in ascending "
               "order, as [0, 4095]");
    }
    accept("shape: [4], image: [2, 2, 1], range: [0, 1]", "dense: 2");
}

static void images_have_all_the_numbers(void **state)
{
    static const char *const bad[] = {"[2, 6]", "[5, 2, 1]", "[2, 5, 1]", "[2, 3, 3]", "[2, 3, 1]", "[12]"};
    char input[96];
    (void)state;
    refuse("shape: [4, 4, 1], image: [2, 2, 1]",
           "image makes one of the numbers of one source, and examples are images; leave it out");
    refuse("shape: [4], image: [2, 2, 1], steps: 2",
           "image makes one of the numbers of one source, and examples are sequences; leave it out");
    refuse_of("shape: [4], image: [2, 2, 1], sources: [a 2, b 2]", "dense: {units: 2, from: a}",
              "image makes one of the numbers of one source, and examples are of several; leave it out");
    for (int i = 0; i < 6; i++) {
        snprintf(input, sizeof input, "shape: [12], image: %s", bad[i]);
        refuse(input,
               "image takes height, width and channels, whose product is the 12 numbers of an example");
    }
    accept("shape: [12], image: [2, 3, 2]", "dense: 2");
}

static void scales_and_crops_fit_images(void **state)
{
    (void)state;
    refuse("shape: [2, 2, 5]", "images have 5 channels; at most 4 are supported");
    accept("shape: [2, 2, 4], scale: [1, 2, 3, 4], shift: [1, 2, 3, 4]", "dense: 2");
    static const char *const wide[] = {"scale: [1, 2]", "shift: [1, 2]", "shift: [1, 2, 3, 4, 5]"};
    for (int i = 0; i < 3; i++) {
        char input[96];
        snprintf(input, sizeof input, "shape: [20], image: [2, 2, 5], %s", wide[i]);
        refuse(input, "scale and shift are one number for images of more than 4 channels, these have 5");
    }
    accept("shape: [20], image: [2, 2, 5], scale: 2, shift: 1", "dense: 2");
    refuse("shape: [2, 2, 3], scale: [1, 2]",
           "scale and shift take one number, or one for each of 3 channels");
    refuse("shape: [2, 2, 3], shift: [1, 2, 3, 4]",
           "scale and shift take one number, or one for each of 3 channels");
    refuse("shape: [4, 5, 1], crop: [5, 5]", "crop [5, 5] is larger than the padded image 4x5");
    refuse("shape: [4, 5, 1], crop: [4, 6]", "crop [4, 6] is larger than the padded image 4x5");
    refuse("shape: [4, 5, 1], crop: [7, 7], pad: 1", "crop [7, 7] is larger than the padded image 6x7");
    accept("shape: [4, 5, 1], crop: [6, 7], pad: 1", "dense: 2");
    accept("shape: [4, 5, 1], crop: [4, 5]", "dense: 2");
    refuse_of("shape: [19], sources: [photo 4x4x1, facts 3], crop: [4, 5]", "dense: {units: 2, from: facts}",
              "crop [4, 5] is larger than the padded image 4x4");
}

/* Names with shapes: images first; or texts in front of numbers. */
static void sources_have_names_and_shapes(void **state)
{
    static const char *const bad[] = {"a",        "a ",   " 4",    "a 4x4",  "a 4x4x",
                                      "a 4x4x1x", "a 4y", "a.b 4", "a/b 4",  "a 0",
                                      "a 4 4",    "a x",  "a -3",  "a\tb 4", "a tokens 4"};
    char input[512], said[512];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(input, sizeof input, "shape: [4], sources: [\"%s\"]", bad[i]);
        snprintf(
            said, sizeof said,
            "sources: \"%s\" is no name with a shape, images first, as \"photo 28x28x3\"; leave `sources` "
            "out: they follow from the data",
            bad[i]);
        refuse(input, said);
    }
    refuse("shape: [8], sources: [facts 4, photo 2x2x1]",
           "sources: \"photo 2x2x1\" is no name with a shape, images first, as \"photo 28x28x3\"; leave "
           "`sources` "
           "out: they follow from the data");
    refuse("vocabulary: 9, sources: [review tokens, photo 2x2x1]",
           "sources: \"photo 2x2x1\" is no name with a shape, images first, as \"photo 28x28x3\"; leave "
           "`sources` "
           "out: they follow from the data");
    refuse_of("shape: [8], sources: [photo 2x2x1, facts 3]", "dense: {units: 2, from: facts}",
              "the sources have 7 numbers together, which the shape of the input is not; leave it out");
    refuse_of("shape: [7, 1], sources: [photo 2x2x1, facts 3]", "dense: {units: 2, from: facts}",
              "the sources have 7 numbers together, which the shape of the input is not; leave it out");
    accept("shape: [7], sources: [photo 2x2x1, facts 3]",
           "concat: {from: [facts, facts]}, dense: 2, "
           "flatten: {from: photo}, concat: {from: [dense1, flatten1]}, dense: 2");
    static const char *const alone[][2] = {{"facts 4", "dense: {units: 2, from: facts}"},
                                           {"review tokens", "embedding: {width: 2, from: review}, last"}};
    for (int i = 0; i < 2; i++) {
        snprintf(input, sizeof input, "vocabulary: 9, sources: [%s]", alone[i][0]);
        refuse_of(
            input, alone[i][1],
            "there is a vocabulary, and of the sources none is a text with numbers or another text beside "
            "it, as [review tokens, facts 4]; leave `sources` out: they follow from the data");
    }
    refuse_of(
        "shape: [4], sources: [review tokens, facts 4]", "dense: {units: 2, from: facts}",
        "\"review\" is a text, and there is no vocabulary; leave `sources` out: they follow from the data");
    /* One more than there can be. */
    refuse_of("shape: [5], sources: [a 1, b 1, c 1, d 1, e 1]", "dense: {units: 2, from: a}",
              "there are 5 sources, at most 4 can be");
}

/* Changes of images are named by the first of them. */
static void changes_are_of_images(void **state)
{
    static const char *const changes[][2] = {{"rotate: 5, cutmix: 1", "rotate"},
                                             {"zoom: [0.5, 1], erase: 1", "zoom"},
                                             {"brightness: 0.1, zoom: []", "brightness"},
                                             {"contrast: 0.1, saturation: 0.1", "contrast"},
                                             {"saturation: 0.1, erase: 1", "saturation"},
                                             {"erase: 1, randaugment: 1", "erase"},
                                             {"randaugment: 1, mixup: 1", "randaugment"},
                                             {"mixup: 1", "mixup"},
                                             {"cutmix: 1", "cutmix"}};
    char input[256], said[128];
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        snprintf(input, sizeof input, "shape: [4], %s", changes[i][0]);
        snprintf(said, sizeof said, "%s changes images, and examples are numbers; leave it out",
                 changes[i][1]);
        refuse(input, said);
    }
    static const char *const ranges[] = {"[0.5]", "[1, 0.5]", "[0.5, 1, 2]"};
    for (int i = 0; i < 3; i++) {
        snprintf(input, sizeof input, "shape: [4, 4, 1], zoom: %s", ranges[i]);
        snprintf(said, sizeof said,
                 "zoom takes the least and the most, two numbers in ascending order, as [%s]",
                 i == 0 ? "0.8, 1.25" : "0.1, 0.3");
        refuse(input, said);
        snprintf(input, sizeof input, "shape: [4, 4, 1], erase: 1, erase_area: %s",
                 i == 0   ? "[0.5]"
                 : i == 1 ? "[0.5, 0.25]"
                          : "[0.25, 0.5, 0.75]");
        snprintf(said, sizeof said,
                 "erase_area takes the least and the most, two numbers in ascending order, as [%s]",
                 i == 0 ? "0.8, 1.25" : "0.1, 0.3");
        refuse(input, said);
    }
    accept("shape: [4, 4, 1], zoom: [1, 1], erase: 1, erase_area: [0.25, 0.25]", "dense: 2");
    refuse("shape: [4, 4, 1], erase_area: [0.1, 0.2]",
           "erase_area has no effect without erase; set erase, the share of the images that lose a part");
    refuse("shape: [4, 4, 1], saturation: 0.1",
           "saturation is of images of 3 channels, these have 1; leave it out");
    refuse("shape: [4], image: [2, 2, 1], contrast: 0.1",
           "contrast needs the range of the values, and these are floats or wide integers; set range to "
           "their least "
           "and most, as range: [0, 1]");
    accept("shape: [4, 4, 3], saturation: 0.1", "dense: 2");
    accept("shape: [4], image: [2, 2, 1], range: [0, 1], contrast: 0.1", "dense: 2");
}

static void expect_shape(const struct tr_job *job, const char *expected)
{
    const struct tr_shape shape = tr_job_input_shape(job);
    char text[TR_SHAPE_TEXT];
    assert_string_equal(tr_shape_text(&shape, text), expected);
}

/* What reaches the first layer. */
static void shapes_follow_from_the_file(void **state)
{
    static const struct {
        const char *input, *layers, *shape;
        bool image, fits; /* an image of numbers; that is cropped or scaled on its way */
    } cases[] = {
        {"shape: [6]", "dense: 2", "6", false, false},
        {"shape: [4, 5]", "dense: 2", "4x5x1", false, false},
        {"shape: [4, 5, 3], crop: [2, 3]", "dense: 2", "2x3x3", false, false},
        {"shape: [4, 5, 3], crop: [8, 9], pad: 2", "dense: 2", "8x9x3", false, false},
        {"vocabulary: 9", "embedding: 3, last", "tokens x scalar", false, false},
        {"shape: [60], image: [4, 5, 3]", "dense: 2", "60", true, false},
        {"shape: [60], image: [4, 5, 3], crop: [2, 3]", "dense: 2", "18", true, true},
        {"shape: [60], image: [4, 5, 3], crop: [4, 5]", "dense: 2", "60", true, false},
        {"shape: [60], image: [4, 5, 3], scale: 1", "dense: 2", "60", true, false},
        {"shape: [60], image: [4, 5, 3], scale: 2", "dense: 2", "60", true, true},
        {"shape: [60], image: [4, 5, 3], scale: [2, 1, 1]", "dense: 2", "60", true, true},
        {"shape: [60], image: [4, 5, 3], scale: [1, 1, 2]", "dense: 2", "60", true, true},
        {"shape: [60], image: [4, 5, 3], shift: [0, 0, 1]", "dense: 2", "60", true, true},
        {"shape: [60], image: [4, 5, 3], shift: 0.5", "dense: 2", "60", true, true},
        {"shape: [80], image: [4, 5, 4], scale: [1, 1, 1, 2]", "dense: 2", "80", true, true},
        {"shape: [80], image: [4, 5, 4], shift: [1, 0, 0, 0]", "dense: 2", "80", true, true},
        {"shape: [35], sources: [a 4x4x2, b 3], crop: [2, 3]",
         "flatten: {from: a}, concat: {with: b}, dense: 2", "15", false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_job *job = good(cases[i].input, cases[i].layers);
        expect_shape(job, cases[i].shape);
        assert_int_equal(tr_job_is_number_image(job), cases[i].image);
        if (tr_job_fits_numbers(job) != cases[i].fits) fail_msg("%s", cases[i].input);
        tr_job_destroy(&job);
    }
}

/* Bytes of images are 0 to 1 unless the file says otherwise; numbers are as they are. */
static void scales_have_a_default(void **state)
{
    (void)state;
    struct tr_job *job = good("shape: [4, 4, 3], shift: [1, 2, 3]", "dense: 2");
    for (int i = 0; i < 3; i++) {
        assert_true(tr_job_scale(job, i) == (float)(1 / 255.0));
        assert_true(tr_job_shift(job, i) == (float)(i + 1));
    }
    tr_job_destroy(&job);
    job = good("shape: [4, 4, 3], scale: [3, 5, 7], shift: 2", "dense: 2");
    for (int i = 0; i < 3; i++) {
        assert_true(tr_job_scale(job, i) == (float)(3 + 2 * i));
        assert_true(tr_job_shift(job, i) == 2);
    }
    tr_job_destroy(&job);
    job = good("shape: [48], image: [4, 4, 3]", "dense: 2");
    for (int i = 0; i < 3; i++) assert_true(tr_job_scale(job, i) == 1 && tr_job_shift(job, i) == 0);
    tr_job_destroy(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_have_one_to_three_sizes), cmocka_unit_test(ranges_are_of_images_of_numbers),
        cmocka_unit_test(images_have_all_the_numbers),    cmocka_unit_test(scales_and_crops_fit_images),
        cmocka_unit_test(sources_have_names_and_shapes),  cmocka_unit_test(changes_are_of_images),
        cmocka_unit_test(shapes_follow_from_the_file),    cmocka_unit_test(scales_have_a_default),
    };
    return cmocka_run_group_tests_name("job.input", tests, NULL, NULL);
}
