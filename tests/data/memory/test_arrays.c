/* Sources over arrays of a program: every type, layout and kind of example is read as it was given, and what
 * forms no examples is refused, with its place.
 */
#include "trireme/arrays.h"

#include "base/fail.h"
#include "data/source.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static tr_source *must_make(const struct tr_arrays *given)
{
    struct tr_arrays arrays = *given;
    tr_source *source = NULL;
    arrays.size = sizeof arrays;
    if (tr_source_from_arrays(&arrays, &source) != TR_OK) fail_msg("%s", tr_error_message());
    return source;
}

/* ---- numbers ---- */

/* 0 to 5 in each type. */
static const float singles[] = {0, 1, 2, 3, 4, 5};
static const double doubles[] = {0, 1, 2, 3, 4, 5};
static const uint8_t bytes[] = {0, 1, 2, 3, 4, 5};
static const int32_t integers[] = {0, 1, 2, 3, 4, 5};
static const int64_t longs[] = {0, 1, 2, 3, 4, 5};
static const uint16_t unsigned_halves[] = {0, 1, 2, 3, 4, 5};
static const int16_t halves[] = {0, 1, 2, 3, 4, 5};
static const struct {
    const void *data;
    enum tr_array_type type;
    int size;
} types[] = {
    {singles, TR_ARRAY_FLOAT32, 4}, {doubles, TR_ARRAY_FLOAT64, 8}, {bytes, TR_ARRAY_UINT8, 1},
    {integers, TR_ARRAY_INT32, 4},  {longs, TR_ARRAY_INT64, 8},     {unsigned_halves, TR_ARRAY_UINT16, 2},
    {halves, TR_ARRAY_INT16, 2},
};

/* Strides in elements from element `first` on; all 0: packed. */
static const struct {
    int first;
    int64_t shape[2], stride[2];
    float wanted[6];
} layouts[] = {
    {0, {3, 2}, {0, 0}, {0, 1, 2, 3, 4, 5}},
    {0, {3, 2}, {2, 1}, {0, 1, 2, 3, 4, 5}},
    {0, {3, 2}, {1, 3}, {0, 3, 1, 4, 2, 5}},
    {5, {3, 2}, {-2, -1}, {5, 4, 3, 2, 1, 0}},
    {1, {3, 2}, {0, 1}, {1, 2, 1, 2, 1, 2}},
    {1, {2, 3}, {2, 0}, {1, 1, 1, 3, 3, 3}},
    {0, {1, 6}, {INT64_MAX / 16, 1}, {0, 1, 2, 3, 4, 5}}, /* a stride that leads nowhere */
    {0, {6, 1}, {1, -7}, {0, 1, 2, 3, 4, 5}},
};

static void numbers_are_read_in_any_layout(void **unused)
{
    (void)unused;
    for (int t = 0; t < LENGTH(types); t++)
        for (int n = 0; n < LENGTH(layouts); n++) {
            struct tr_arrays arrays = {0};
            arrays.features = (struct tr_array){
                (const char *)types[t].data + layouts[n].first * types[t].size,
                types[t].type,
                2,
                {layouts[n].shape[0], layouts[n].shape[1]},
                {layouts[n].stride[0] * types[t].size, layouts[n].stride[1] * types[t].size},
            };
            if (layouts[n].stride[0] > 1000) arrays.features.stride[0] = layouts[n].stride[0];
            tr_source *source = must_make(&arrays);
            const struct tr_source_info *info = tr_source_info(source);
            assert_int_equal(info->features, TR_FEATURE_FLOATS);
            assert_int_equal(info->labels, TR_LABEL_NONE);
            assert_int_equal(info->count, layouts[n].shape[0]);
            assert_int_equal(info->floats, layouts[n].shape[1]);
            for (int64_t i = 0; i < info->count; i++) {
                float got[6];
                int64_t length;
                assert_int_equal(tr_source_read(source, i, got, 6, &length, NULL), TR_OK);
                assert_int_equal(length, info->floats);
                assert_memory_equal(got, layouts[n].wanted + i * info->floats,
                                    (size_t)info->floats * sizeof *got);
            }
            tr_source_close(&source);
        }
}

/* What types hold beyond small numbers. */
static void types_have_their_range(void **unused)
{
    static const uint8_t most_byte = 255;
    static const uint16_t most_half = 65535;
    static const int16_t least_half = -32768;
    static const int32_t least = INT32_MIN;
    static const int64_t large = (int64_t)1 << 40;
    static const double small = 1e-3;
    static const struct {
        const void *data;
        enum tr_array_type type;
        float wanted;
    } cases[] = {
        {&most_byte, TR_ARRAY_UINT8, 255},          {&most_half, TR_ARRAY_UINT16, 65535},
        {&least_half, TR_ARRAY_INT16, -32768},      {&least, TR_ARRAY_INT32, -2147483648.0f},
        {&large, TR_ARRAY_INT64, 1099511627776.0f}, {&small, TR_ARRAY_FLOAT64, 1e-3f},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        float got;
        tr_source *source =
            must_make(&(struct tr_arrays){.features = {cases[i].data, cases[i].type, 1, {1}, {0}}});
        assert_int_equal(tr_source_info(source)->floats, 1);
        assert_int_equal(tr_source_read(source, 0, &got, 1, NULL, NULL), TR_OK);
        assert_true(got == cases[i].wanted);
        tr_source_close(&source);
    }
}

/* An array whose elements do not lie at multiples of their size. */
static void unaligned_numbers_are_read(void **unused)
{
    char memory[4 * sizeof(float) + 1];
    float got[2];
    (void)unused;
    memcpy(memory + 1, singles + 1, 4 * sizeof(float));
    tr_source *source =
        must_make(&(struct tr_arrays){.features = {memory + 1, TR_ARRAY_FLOAT32, 2, {2, 2}, {0}}});
    assert_int_equal(tr_source_read(source, 1, got, 2, NULL, NULL), TR_OK);
    assert_memory_equal(got, singles + 3, sizeof got);
    tr_source_close(&source);
}

/* The number of dimensions and the type tell vectors, sequences, images and images of numbers. */
static void dimensions_tell_the_kind(void **unused)
{
    static const struct {
        struct tr_array array;
        enum tr_feature_kind kind;
        int32_t height, width, channels, floats, steps;
        enum tr_number_range range;
    } cases[] = {
        {{bytes, TR_ARRAY_UINT8, 1, {6}, {0}}, TR_FEATURE_FLOATS, 0, 0, 0, 1, 0, TR_RANGE_OPEN},
        {{bytes, TR_ARRAY_UINT8, 2, {2, 3}, {0}}, TR_FEATURE_FLOATS, 0, 0, 0, 3, 0, TR_RANGE_OPEN},
        {{bytes, TR_ARRAY_UINT8, 3, {1, 2, 3}, {0}}, TR_FEATURE_IMAGE, 2, 3, 1, 0, 0, TR_RANGE_OPEN},
        {{bytes, TR_ARRAY_UINT8, 4, {1, 1, 2, 3}, {0}}, TR_FEATURE_IMAGE, 1, 2, 3, 0, 0, TR_RANGE_OPEN},
        {{singles, TR_ARRAY_FLOAT32, 3, {1, 2, 3}, {0}}, TR_FEATURE_FLOATS, 0, 0, 0, 6, 2, TR_RANGE_OPEN},
        {{singles, TR_ARRAY_FLOAT32, 4, {1, 2, 3, 1}, {0}}, TR_FEATURE_FLOATS, 2, 3, 1, 6, 0, TR_RANGE_OPEN},
        {{unsigned_halves, TR_ARRAY_UINT16, 4, {1, 1, 2, 3}, {0}},
         TR_FEATURE_FLOATS,
         1,
         2,
         3,
         6,
         0,
         TR_RANGE_U16},
        {{halves, TR_ARRAY_INT16, 4, {1, 3, 2, 1}, {0}}, TR_FEATURE_FLOATS, 3, 2, 1, 6, 0, TR_RANGE_I16},
        {{halves, TR_ARRAY_INT16, 3, {2, 3, 1}, {0}}, TR_FEATURE_FLOATS, 0, 0, 0, 3, 3, TR_RANGE_OPEN},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        tr_source *source = must_make(&(struct tr_arrays){.features = cases[i].array});
        const struct tr_source_info *info = tr_source_info(source);
        assert_int_equal(info->features, cases[i].kind);
        assert_int_equal(info->height, cases[i].height);
        assert_int_equal(info->width, cases[i].width);
        assert_int_equal(info->channels, cases[i].channels);
        assert_int_equal(info->floats, cases[i].floats);
        assert_int_equal(info->steps, cases[i].steps);
        assert_int_equal(source->range, cases[i].range);
        assert_int_equal(source->resident != NULL, cases[i].kind == TR_FEATURE_IMAGE);
        tr_source_close(&source);
    }
}

static void images_are_read_in_any_layout(void **unused)
{
    static const uint8_t turned[] = {5, 4, 3, 2, 1, 0};
    uint8_t got[6];
    (void)unused;
    tr_source *source =
        must_make(&(struct tr_arrays){.features = {bytes, TR_ARRAY_UINT8, 3, {1, 2, 3}, {0}}});
    assert_ptr_equal(source->resident, bytes); /* in place */
    assert_int_equal(tr_source_read(source, 0, got, 6, NULL, NULL), TR_OK);
    assert_memory_equal(got, bytes, 6);
    tr_source_close(&source);
    source =
        must_make(&(struct tr_arrays){.features = {bytes + 5, TR_ARRAY_UINT8, 3, {1, 2, 3}, {-6, -3, -1}}});
    assert_int_equal(tr_source_read(source, 0, got, 6, NULL, NULL), TR_OK);
    assert_memory_equal(got, turned, 6);
    assert_memory_equal(source->resident, turned, 6);
    tr_source_close(&source);
}

/* ---- labels ---- */

static void classes_are_read_from_any_integers(void **unused)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    (void)unused;
    for (int t = 0; t < LENGTH(types); t++)
        for (int given = 0; given < 2; given++) {
            struct tr_arrays arrays = {.features = {singles, TR_ARRAY_FLOAT32, 1, {6}, {0}}};
            arrays.labels = (struct tr_array){types[t].data, types[t].type, 1, {6}, {0}};
            arrays.classes = given ? 9 : 0;
            tr_source *source = must_make(&arrays);
            const struct tr_source_info *info = tr_source_info(source);
            const bool values = types[t].type == TR_ARRAY_FLOAT32 || types[t].type == TR_ARRAY_FLOAT64;
            assert_int_equal(info->labels, values ? TR_LABEL_VALUES : TR_LABEL_CLASS);
            assert_int_equal(info->classes, values ? 0 : given ? 9 : 6);
            assert_int_equal(info->values, values);
            assert_null(info->class_names);
            for (int i = 0; i < 6; i++) {
                int32_t class = -1;
                assert_int_equal(tr_source_read(source, i, NULL, 0, NULL, &class), TR_OK);
                if (values) assert_memory_equal(&class, &singles[i], sizeof class);
                if (!values) assert_int_equal(class, i);
            }
            tr_source_close(&source);
        }
    struct tr_arrays named = {.features = {singles, TR_ARRAY_FLOAT32, 1, {6}, {0}},
                              .labels = {bytes, TR_ARRAY_UINT8, 1, {6}, {0}},
                              .class_names = names};
    tr_source *source = must_make(&named);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(tr_source_info(source)->class_names[i], names[i]);
        assert_ptr_not_equal(tr_source_info(source)->class_names[i], names[i]); /* a copy */
    }
    tr_source_close(&source);
}

static void values_are_read_in_rows(void **unused)
{
    float got[3];
    (void)unused;
    tr_source *source = must_make(&(struct tr_arrays){.features = {singles, TR_ARRAY_FLOAT32, 1, {2}, {0}},
                                                      .labels = {doubles, TR_ARRAY_FLOAT64, 2, {2, 3}, {0}}});
    assert_int_equal(tr_source_info(source)->values, 3);
    assert_int_equal(tr_source_read(source, 1, NULL, 0, NULL, got), TR_OK);
    assert_memory_equal(got, singles + 3, sizeof got);
    tr_source_close(&source);
}

/* Labels of pixels, of images of bytes and of numbers; negative ones do not count. */
static void pixels_have_labels(void **unused)
{
    static const int16_t labels[] = {0, -5, 2, 1, 1, -1};
    static const int32_t wanted[] = {0, TR_NO_LABEL, 2, 1, 1, TR_NO_LABEL};
    int32_t got[6];
    (void)unused;
    for (int numbers = 0; numbers < 2; numbers++) {
        struct tr_arrays arrays = {.labels = {labels, TR_ARRAY_INT16, 3, {1, 2, 3}, {0}}};
        arrays.features = numbers ? (struct tr_array){singles, TR_ARRAY_FLOAT32, 4, {1, 2, 3, 1}, {0}}
                                  : (struct tr_array){bytes, TR_ARRAY_UINT8, 3, {1, 2, 3}, {0}};
        tr_source *source = must_make(&arrays);
        assert_int_equal(tr_source_info(source)->labels, TR_LABEL_PIXELS);
        assert_int_equal(tr_source_info(source)->classes, 3);
        assert_int_equal(tr_source_read(source, 0, NULL, 0, NULL, got), TR_OK);
        assert_memory_equal(got, wanted, sizeof got);
        tr_source_close(&source);
    }
}

/* ---- tokens ---- */

static const int64_t words[] = {7, 1, 2, 3, 4, 5};

static void expect_tokens(const tr_source *source, int64_t index, const int64_t *wanted, int64_t count)
{
    int32_t got[6];
    int64_t length;
    assert_int_equal(tr_source_read(source, index, got, 6, &length, NULL), TR_OK);
    assert_int_equal(length, count);
    for (int64_t i = 0; i < count; i++) assert_int_equal(got[i], wanted[i]);
}

static void tokens_have_lengths_or_offsets(void **unused)
{
    static const uint8_t lengths[] = {1, 2};
    static const int16_t offsets[] = {0, 1, 6};
    static const int32_t tags[] = {1, -1, 0, -9, 1, 1};
    (void)unused;
    struct tr_arrays arrays = {.features = {words, TR_ARRAY_INT64, 2, {2, 3}, {0}}, .tokens = 1};
    tr_source *source = must_make(&arrays);
    assert_int_equal(tr_source_info(source)->features, TR_FEATURE_TOKENS);
    assert_int_equal(tr_source_info(source)->max_tokens, 3);
    assert_int_equal(tr_source_info(source)->vocabulary, 8);
    expect_tokens(source, 1, words + 3, 3);
    tr_source_close(&source);
    arrays.lengths = (struct tr_array){lengths, TR_ARRAY_UINT8, 1, {2}, {0}};
    arrays.vocabulary = 100;
    arrays.labels = (struct tr_array){tags, TR_ARRAY_INT32, 2, {2, 3}, {0}};
    source = must_make(&arrays);
    assert_int_equal(tr_source_info(source)->max_tokens, 2);
    assert_int_equal(tr_source_info(source)->vocabulary, 100);
    assert_int_equal(tr_source_info(source)->labels, TR_LABEL_TOKENS);
    assert_int_equal(tr_source_info(source)->classes, 2);
    expect_tokens(source, 0, words, 1);
    expect_tokens(source, 1, words + 3, 2);
    assert_int_equal(source->class->labelled(source, 0), 1);
    assert_int_equal(source->class->labelled(source, 1), 1); /* -9 and 1 */
    tr_source_close(&source);
    arrays = (struct tr_arrays){.features = {words, TR_ARRAY_INT64, 1, {6}, {0}},
                                .labels = {tags, TR_ARRAY_INT32, 1, {6}, {0}},
                                .offsets = {offsets, TR_ARRAY_INT16, 1, {3}, {0}},
                                .tokens = 1};
    source = must_make(&arrays);
    int32_t got[5];
    static const int32_t wanted[] = {TR_NO_LABEL, 0, TR_NO_LABEL, 1, 1};
    assert_int_equal(tr_source_info(source)->count, 2);
    assert_int_equal(tr_source_info(source)->max_tokens, 5);
    expect_tokens(source, 0, words, 1);
    expect_tokens(source, 1, words + 1, 5);
    assert_int_equal(tr_source_read(source, 1, NULL, 0, NULL, got), TR_OK);
    assert_memory_equal(got, wanted, sizeof got);
    assert_int_equal(source->class->labelled(source, 1), 3);
    tr_source_close(&source);
    arrays.labels = (struct tr_array){tags, TR_ARRAY_INT32, 1, {1}, {0}};
    arrays.features.shape[0] = 1;
    arrays.offsets.shape[0] = 2; /* one text of one word: its label is a class */
    source = must_make(&arrays);
    assert_int_equal(tr_source_info(source)->labels, TR_LABEL_CLASS);
    tr_source_close(&source);
}

/* ---- memory ---- */

static int released;

static void note_release(void *user)
{
    assert_ptr_equal(user, &released);
    released++;
}

/* Of each kind, in a layout that needs a copy. */
static void arrays_are_released_once(void **unused)
{
    static const uint8_t lengths[] = {1, 2}, classes[] = {1, 0}, begin[] = {0, 2, 6};
    static const int32_t marked[] = {0, -100, 1, 1, -1, 0};
    static const char *const names[] = {"a", "b"};
    static const struct tr_arrays cases[] = {
        {.features = {words, TR_ARRAY_INT64, 2, {2, 3}, {0}},
         .labels = {classes, TR_ARRAY_UINT8, 1, {2}, {0}},
         .lengths = {lengths, TR_ARRAY_UINT8, 1, {2}, {0}},
         .class_names = names,
         .tokens = 1},
        {.features = {integers, TR_ARRAY_INT32, 1, {6}, {0}},
         .labels = {marked, TR_ARRAY_INT32, 1, {6}, {0}},
         .offsets = {begin, TR_ARRAY_UINT8, 1, {3}, {0}},
         .tokens = 1},
        {.features = {doubles, TR_ARRAY_FLOAT64, 2, {2, 3}, {0}},
         .labels = {doubles, TR_ARRAY_FLOAT64, 2, {2, 2}, {0}}},
        {.features = {bytes, TR_ARRAY_UINT8, 3, {2, 1, 3}, {1, 1, 1}},
         .labels = {halves, TR_ARRAY_INT16, 3, {2, 1, 3}, {0}}},
        {.features = {singles, TR_ARRAY_FLOAT32, 2, {2, 3}, {0}},
         .labels = {longs, TR_ARRAY_INT64, 1, {2}, {0}}},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        struct tr_arrays arrays = cases[i];
        arrays.size = sizeof arrays;
        arrays.release = note_release;
        arrays.user = &released;
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            tr_source *source = NULL;
            released = 0;
            refuse_begin(at);
            const tr_status status = tr_source_from_arrays(&arrays, &source);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("case %d, allocation %d: %s", i, (int)at, tr_status_name(status));
            assert_int_equal(released, !done);
            assert_int_equal(source != NULL, done);
            tr_source_close(&source);
            assert_int_equal(released, 1);
            assert_int_equal(tr_alloc_live(), live);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_in_any_layout),
        cmocka_unit_test(types_have_their_range),
        cmocka_unit_test(unaligned_numbers_are_read),
        cmocka_unit_test(dimensions_tell_the_kind),
        cmocka_unit_test(images_are_read_in_any_layout),
        cmocka_unit_test(classes_are_read_from_any_integers),
        cmocka_unit_test(values_are_read_in_rows),
        cmocka_unit_test(pixels_have_labels),
        cmocka_unit_test(tokens_have_lengths_or_offsets),
        cmocka_unit_test(arrays_are_released_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
