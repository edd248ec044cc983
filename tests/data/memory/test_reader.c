/* Sources over a function of a program: which descriptions are refused, and that the same examples are the
 * same source as from arrays.
 */
#include "trireme/arrays.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/source.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define NUMBERS_MOST  (1 << 24)

static int released;

static void note_release(void *user)
{
    (void)user;
    released++;
}

static int read_nothing(void *user, int64_t index, void *features, int64_t *length, void *label)
{
    (void)user, (void)index, (void)features, (void)length, (void)label;
    return 0;
}

/* ---- descriptions ---- */

#define IMAGE(examples, h, w, c)                                                                             \
    .count = examples, .features = TR_FEATURE_IMAGE, .height = h, .width = w, .channels = c
#define FLOATS(numbers) .count = 3, .features = TR_FEATURE_FLOATS, .floats = numbers
#define TOKENS(longest, of_all)                                                                              \
    .count = 3, .features = TR_FEATURE_TOKENS, .max_tokens = longest, .vocabulary = of_all

static const struct {
    struct tr_source_info info;
    const char *message; /* NULL: it is accepted */
} described[] = {
    {{IMAGE(3, 4, 5, 2)}, NULL},
    {{IMAGE(0, 4, 5, 2)}, "info.count is 0; give 1 to 576460752303423487"},
    {{IMAGE(INT64_MAX / 16 + 1, 4, 5, 2)}, "info.count is 576460752303423488; give 1 to"},
    {{IMAGE(INT64_MAX / 16, 4, 5, 2)}, NULL},
    {{IMAGE(3, 0, 5, 2)}, "info.height is 0; give 1 to 65535"},
    {{IMAGE(3, 65536, 5, 2)}, "info.height is 65536; give 1 to 65535"},
    {{IMAGE(3, 65535, 5, 2)}, NULL},
    {{IMAGE(3, 4, -1, 2)}, "info.width is -1; give 1 to 65535"},
    {{IMAGE(3, 4, 65536, 2)}, "info.width is 65536; give 1 to 65535"},
    {{IMAGE(3, 4, 65535, 2)}, NULL},
    {{IMAGE(3, 4, 5, 0)}, "info.channels is 0; give 1 to 32767"},
    {{IMAGE(3, 4, 5, 32768)}, "info.channels is 32768; give 1 to 32767"},
    {{IMAGE(3, 4, 5, 32767)}, NULL},
    {{FLOATS(6)}, NULL},
    {{FLOATS(0)}, "info.floats is 0; give 1 to 16777216"},
    {{FLOATS(NUMBERS_MOST + 1)}, "info.floats is 16777217; give 1 to 16777216"},
    {{FLOATS(NUMBERS_MOST)}, NULL},
    {{FLOATS(6), .steps = -1}, "info.steps is -1, and 6 floats are no vectors of one size"},
    {{FLOATS(6), .steps = 4}, "info.steps is 4, and 6 floats are no vectors of one size"},
    {{FLOATS(6), .steps = 3}, NULL},
    {{TOKENS(7, 9)}, NULL},
    {{TOKENS(0, 9)}, "info.max_tokens is 0; give 1 to 16777216"},
    {{TOKENS(NUMBERS_MOST + 1, 9)}, "info.max_tokens is 16777217; give 1 to 16777216"},
    {{TOKENS(NUMBERS_MOST, 9)}, NULL},
    {{TOKENS(7, 0)}, "info.vocabulary is 0; give 1 to 2147483647"},
    {{.count = 1, .features = (enum tr_feature_kind)3}, "info.features is 3, none of enum tr_feature_kind"},
    {{FLOATS(6), .labels = TR_LABEL_VALUES}, "info.values is 0; give 1 to 16777216"},
    {{FLOATS(6), .labels = TR_LABEL_VALUES, .values = NUMBERS_MOST + 1}, "info.values is 16777217"},
    {{FLOATS(6), .labels = TR_LABEL_VALUES, .values = NUMBERS_MOST}, NULL},
    {{FLOATS(6), .labels = TR_LABEL_CLASS}, "info.classes is 0; give 1 to 16777216"},
    {{FLOATS(6), .labels = TR_LABEL_CLASS, .classes = NUMBERS_MOST + 1}, "info.classes is 16777217"},
    {{FLOATS(6), .labels = TR_LABEL_CLASS, .classes = 1}, NULL},
    {{FLOATS(6), .labels = TR_LABEL_TOKENS, .classes = 2},
     "info.labels are of tokens, but features are not tokens"},
    {{TOKENS(7, 9), .labels = TR_LABEL_TOKENS}, "info.classes is 0; give 1 to 16777216"},
    {{TOKENS(7, 9), .labels = TR_LABEL_TOKENS, .classes = 2}, NULL},
    {{FLOATS(6), .labels = TR_LABEL_PIXELS, .classes = 2},
     "info.labels are of pixels, but features are not images"},
    {{TOKENS(7, 9), .labels = TR_LABEL_PIXELS, .classes = 2},
     "info.labels are of pixels, but features are not images"},
    {{IMAGE(3, 4, 5, 2), .labels = TR_LABEL_PIXELS}, "info.classes is 0; give 1 to 16777216"},
    {{IMAGE(3, 4, 5, 2), .labels = TR_LABEL_PIXELS, .classes = 2}, NULL},
    {{FLOATS(6), .height = 2, .width = 3, .channels = 1, .labels = TR_LABEL_PIXELS, .classes = 2}, NULL},
    {{FLOATS(6), .height = 2, .width = 2, .channels = 1, .labels = TR_LABEL_PIXELS, .classes = 2},
     "info.labels are of pixels, but features are not images"},
    {{FLOATS(6), .labels = (enum tr_label_kind)5}, "info.labels is 5, none of enum tr_label_kind"},
};

static void descriptions_are_checked(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(described); i++) {
        const int64_t live = tr_alloc_live();
        struct tr_example_reader reader = {
            .size = sizeof reader, .info = described[i].info, .release = note_release};
        tr_source *source = NULL;
        reader.read = read_nothing;
        released = 0;
        const tr_status status = tr_source_from_reader(&reader, &source);
        if (status != (described[i].message ? TR_EINVAL : TR_OK) ||
            (status != TR_OK && !strstr(tr_error_message(), described[i].message)))
            fail_msg("case %d: %s, %s", i, tr_status_name(status), status ? tr_error_message() : "");
        assert_int_equal(released, status != TR_OK);
        tr_source_close(&source);
        assert_int_equal(released, 1);
        assert_int_equal(tr_alloc_live(), live);
    }
    struct tr_example_reader reader = {.size = sizeof reader, .info = described[0].info};
    tr_source *source = NULL;
    assert_int_equal(tr_source_from_reader(&reader, &source), TR_EINVAL);
    assert_string_equal(tr_error_message(), "read is NULL; give the function that reads examples");
}

/* Figures that the kinds do not use are 0, whatever was given. */
static void figures_of_other_kinds_are_left_out(void **unused)
{
    static const char *const names[] = {"a", "b", "c"};
    static const struct {
        enum tr_feature_kind features;
        enum tr_label_kind labels;
        int64_t
            wanted[9]; /* height, width, channels, floats, steps, max_tokens, vocabulary, classes, values */
    } cases[] = {
        {TR_FEATURE_IMAGE, TR_LABEL_CLASS, {2, 3, 1, 0, 0, 0, 0, 3, 0}},
        {TR_FEATURE_IMAGE, TR_LABEL_PIXELS, {2, 3, 1, 0, 0, 0, 0, 3, 0}},
        {TR_FEATURE_IMAGE, TR_LABEL_NONE, {2, 3, 1, 0, 0, 0, 0, 0, 0}},
        {TR_FEATURE_FLOATS, TR_LABEL_VALUES, {2, 3, 1, 6, 2, 0, 0, 0, 8}}, /* an image of numbers */
        {TR_FEATURE_TOKENS, TR_LABEL_TOKENS, {0, 0, 0, 0, 0, 4, 5, 3, 0}},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        struct tr_example_reader reader = {.size = sizeof reader};
        reader.read = read_nothing;
        reader.info = (struct tr_source_info){.count = 10,
                                              .features = cases[i].features,
                                              .labels = cases[i].labels,
                                              .height = 2,
                                              .width = 3,
                                              .channels = 1,
                                              .floats = 6,
                                              .steps = 2,
                                              .max_tokens = 4,
                                              .vocabulary = 5,
                                              .classes = 3,
                                              .values = 8,
                                              .skipped = 9,
                                              .class_names = names};
        tr_source *source = NULL;
        assert_int_equal(tr_source_from_reader(&reader, &source), TR_OK);
        const struct tr_source_info *info = tr_source_info(source);
        const int64_t got[] = {info->height,     info->width,      info->channels, info->floats, info->steps,
                               info->max_tokens, info->vocabulary, info->classes,  info->values};
        for (int k = 0; k < LENGTH(got); k++)
            if (got[k] != cases[i].wanted[k]) fail_msg("case %d: figure %d is %d", i, k, (int)got[k]);
        assert_int_equal(info->count, 10);
        assert_int_equal(info->skipped, 0);
        assert_true(info->slow);
        assert_int_equal(info->class_names != NULL, info->classes > 0);
        if (info->classes > 0) assert_string_equal(info->class_names[2], "c");
        tr_source_close(&source);
    }
}

/* ---- the same as arrays ---- */

static const uint8_t pixels[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, classes[] = {1, 0};
static const float numbers[] = {1, -2, 3, 4, 0.5f, 6, 7, 8, 9, 10, 11, -12};
static const int32_t words[] = {3, 1, 2, 0, 4, 4}, tags[] = {0, 1, -1, 1, 1, 0};
static const int32_t masks[] = {0, 1, -1, 1, 1, 0, 1, 1, 0, 0, -1, 1};
static const int32_t lengths[] = {2, 3};

static const struct tr_arrays as_arrays[] = {
    {.features = {pixels, TR_ARRAY_UINT8, 4, {2, 1, 3, 2}, {0}},
     .labels = {classes, TR_ARRAY_UINT8, 1, {2}, {0}}},
    {.features = {pixels, TR_ARRAY_UINT8, 3, {2, 2, 3}, {0}},
     .labels = {masks, TR_ARRAY_INT32, 3, {2, 2, 3}, {0}}},
    {.features = {pixels, TR_ARRAY_UINT8, 3, {2, 2, 3}, {0}}},
    {.features = {numbers, TR_ARRAY_FLOAT32, 2, {2, 4}, {0}},
     .labels = {numbers, TR_ARRAY_FLOAT32, 2, {2, 3}, {0}}},
    {.features = {numbers, TR_ARRAY_FLOAT32, 4, {2, 2, 3, 1}, {0}},
     .labels = {masks, TR_ARRAY_INT32, 3, {2, 2, 3}, {0}}},
    {.features = {words, TR_ARRAY_INT32, 2, {2, 3}, {0}},
     .labels = {tags, TR_ARRAY_INT32, 2, {2, 3}, {0}},
     .lengths = {lengths, TR_ARRAY_INT32, 1, {2}, {0}},
     .tokens = 1},
    {.features = {words, TR_ARRAY_INT32, 2, {2, 3}, {0}},
     .labels = {classes, TR_ARRAY_UINT8, 1, {2}, {0}},
     .tokens = 1},
};

/* Reads from another source, and names another length where that says nothing. */
static int read_other(void *user, int64_t index, void *features, int64_t *length, void *label)
{
    const tr_source *other = user;
    const int64_t room = *length;
    if (tr_source_read(other, index, features, room, length, label) != TR_OK) return 1;
    if (tr_source_info(other)->features != TR_FEATURE_TOKENS) *length = 999;
    return 0;
}

static void functions_are_as_good_as_arrays(void **unused)
{
    char digest[LENGTH(as_arrays)][65], again[65];
    (void)unused;
    for (int i = 0; i < LENGTH(as_arrays); i++)
        for (int any_thread = 0; any_thread < 2; any_thread++) {
            struct tr_arrays arrays = as_arrays[i];
            tr_source *first = NULL, *second = NULL;
            arrays.size = sizeof arrays;
            assert_int_equal(tr_source_from_arrays(&arrays, &first), TR_OK);
            struct tr_example_reader reader = {.size = sizeof reader,
                                               .info = *tr_source_info(first),
                                               .any_thread = any_thread,
                                               .user = first};
            reader.read = read_other;
            assert_int_equal(tr_source_from_reader(&reader, &second), TR_OK);
            for (int64_t k = 0; k < 2; k++) {
                float features[2][12] = {{0}}, label[2][12] = {{0}};
                int64_t length[2];
                assert_int_equal(tr_source_read(first, k, features[0], 12, &length[0], label[0]), TR_OK);
                assert_int_equal(tr_source_read(second, k, features[1], 12, &length[1], label[1]), TR_OK);
                assert_int_equal(length[0], length[1]);
                assert_memory_equal(features[0], features[1], sizeof features[0]);
                assert_memory_equal(label[0], label[1], sizeof label[0]);
                if (tr_source_info(first)->labels != TR_LABEL_TOKENS) continue;
                assert_int_equal(first->class->labelled(first, k), k ? 3 : 2);
                assert_int_equal(second->class->labelled(second, k), k ? 3 : 2);
            }
            assert_int_equal(tr_source_digest(first, digest[i]), TR_OK);
            assert_int_equal(tr_source_digest(second, again), TR_OK);
            assert_string_equal(digest[i], again);
            tr_source_close(&second);
            tr_source_close(&first);
        }
    for (int i = 0; i < LENGTH(as_arrays); i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(digest[i], digest[k]);
}

/* The last label of the last example tells two sources apart, and its last feature. */
static void digests_have_every_example(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(as_arrays); i++) {
        char before[65], after[65], changed[sizeof masks];
        for (int of_label = 0; of_label < 2; of_label++) {
            struct tr_arrays arrays = as_arrays[i];
            struct tr_array *array = of_label ? &arrays.labels : &arrays.features;
            tr_source *source = NULL;
            arrays.size = sizeof arrays;
            arrays.classes = arrays.labels.dimensions ? 4 : 0;
            arrays.vocabulary = 9;
            if (array->dimensions == 0) continue;
            assert_int_equal(tr_source_from_arrays(&arrays, &source), TR_OK);
            assert_int_equal(tr_source_digest(source, before), TR_OK);
            tr_source_close(&source);
            const int size = array->type == TR_ARRAY_UINT8 ? 1 : 4;
            int64_t elements = 1;
            for (int d = 0; d < array->dimensions; d++) elements *= array->shape[d];
            memcpy(changed, array->data, (size_t)elements * (size_t)size);
            changed[(elements - 1) * size] ^= 2; /* its least byte */
            array->data = changed;
            assert_int_equal(tr_source_from_arrays(&arrays, &source), TR_OK);
            assert_int_equal(tr_source_digest(source, after), TR_OK);
            tr_source_close(&source);
            if (strcmp(before, after) == 0) fail_msg("case %d, of_label %d", i, of_label);
        }
    }
}

/* Examples that are long in one direction only. */
static void long_examples_are_read(void **unused)
{
    enum { MANY = 30000 };
    static uint8_t channels[MANY];
    static int32_t tokens[MANY];
    const struct tr_arrays long_ones[] = {
        {.features = {channels, TR_ARRAY_UINT8, 4, {1, 1, 1, MANY}, {0}}},
        {.features = {channels, TR_ARRAY_UINT8, 3, {1, MANY, 1}, {0}},
         .labels = {tokens, TR_ARRAY_INT32, 3, {1, MANY, 1}, {0}}},
        {.features = {tokens, TR_ARRAY_INT32, 2, {1, MANY}, {0}},
         .labels = {tokens, TR_ARRAY_INT32, 2, {1, MANY}, {0}},
         .tokens = 1},
        {.features = {tokens, TR_ARRAY_FLOAT32, 2, {1, MANY}, {0}},
         .labels = {tokens, TR_ARRAY_FLOAT32, 2, {1, MANY}, {0}}},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(long_ones); i++) {
        char digest[2][65];
        struct tr_arrays arrays = long_ones[i];
        tr_source *first = NULL, *second = NULL;
        arrays.size = sizeof arrays;
        assert_int_equal(tr_source_from_arrays(&arrays, &first), TR_OK);
        struct tr_example_reader reader = {
            .size = sizeof reader, .info = *tr_source_info(first), .user = first};
        reader.read = read_other;
        assert_int_equal(tr_source_from_reader(&reader, &second), TR_OK);
        assert_int_equal(tr_source_digest(first, digest[0]), TR_OK);
        assert_int_equal(tr_source_digest(second, digest[1]), TR_OK);
        assert_string_equal(digest[0], digest[1]);
        if (tr_source_info(first)->labels == TR_LABEL_TOKENS)
            assert_int_equal(second->class->labelled(second, 0), MANY);
        tr_source_close(&second);
        tr_source_close(&first);
    }
}

static void a_lack_of_memory_is_told(void **unused)
{
    static const char *const names[] = {"a", "b"};
    (void)unused;
    struct tr_arrays arrays = as_arrays[5];
    tr_source *first = NULL;
    arrays.size = sizeof arrays;
    assert_int_equal(tr_source_from_arrays(&arrays, &first), TR_OK);
    struct tr_example_reader reader = {
        .size = sizeof reader, .info = *tr_source_info(first), .user = first, .release = note_release};
    reader.info.class_names = names;
    reader.read = read_other;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        tr_source *second = NULL;
        char digest[65];
        released = 0;
        refuse_begin(at);
        tr_status status = tr_source_from_reader(&reader, &second);
        if (status == TR_OK) status = tr_source_digest(second, digest);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(released, second == NULL);
        tr_source_close(&second);
        assert_int_equal(released, 1);
        assert_int_equal(tr_alloc_live(), live);
    }
    /* The number of labels is asked for where no error can be told: none then. */
    tr_source *second = NULL;
    assert_int_equal(tr_source_from_reader(&reader, &second), TR_OK);
    for (int64_t at = 0; at < 2; at++) {
        refuse_begin(at);
        assert_int_equal(second->class->labelled(second, 1), 0);
        assert_false(refuse_end());
    }
    tr_source_close(&second);
    tr_source_close(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptions_are_checked),
        cmocka_unit_test(figures_of_other_kinds_are_left_out),
        cmocka_unit_test(functions_are_as_good_as_arrays),
        cmocka_unit_test(digests_have_every_example),
        cmocka_unit_test(long_examples_are_read),
        cmocka_unit_test(a_lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
