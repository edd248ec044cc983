/* Examples of TensorFlow as bytes (protocol buffers): features by their names, one value or many, and what is
 * wrong. */
#include "base/fail.h"
#include "data/example.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Fields with a length, of fewer than 128 bytes: the tag is number * 8 + 2. */
struct bytes {
    uint8_t data[256];
    size_t size;
};

static void add(struct bytes *to, int number, const void *data, size_t size)
{
    assert_true(size < 128);
    to->data[to->size++] = (uint8_t)(number * 8 + 2);
    to->data[to->size++] = (uint8_t)size;
    memcpy(to->data + to->size, data, size);
    to->size += size;
}

/* An entry of the map of features: its name, and a list of this kind and content. */
static void add_feature(struct bytes *features, const char *name, int kind, const void *list, size_t size)
{
    struct bytes feature = {.size = 0}, entry = {.size = 0};
    if (kind) add(&feature, kind, list, size);
    if (name) add(&entry, 1, name, strlen(name));
    add(&entry, 2, feature.data, feature.size);
    add(features, 1, entry.data, entry.size);
}

static struct bytes example_of(const struct bytes *features)
{
    struct bytes example = {.size = 0};
    add(&example, 1, features->data, features->size);
    return example;
}

static struct tr_example_feature find(const struct bytes *example, const char *name)
{
    struct tr_example_feature feature = {.name = name, .name_length = strlen(name)};
    if (tr_example_find(example->data, example->size, &feature, 1) != TR_OK)
        fail_msg("%s", tr_error_message());
    return feature;
}

static void expect_message(tr_status status, const char *message)
{
    assert_int_equal(status, TR_EFORMAT);
    if (strcmp(tr_error_message(), message) != 0) fail_msg("\"%s\", not \"%s\"", tr_error_message(), message);
}

/* ---- what is there ---- */

static void features_are_found_by_name(void **unused)
{
    struct bytes features = {.size = 0};
    const uint8_t *data = NULL;
    size_t size = 9;
    int64_t number = 0;
    (void)unused;
    add_feature(&features, "other", 1, "\x0a\1x", 3);
    add_feature(&features, "image", 1, "\x0a\3abc", 5);
    add_feature(&features, "label", 3, "\x08\x05", 2); /* one by one */
    add_feature(&features, "packed", 3, "\x0a\2\xac\2", 4);
    add_feature(&features, "minus", 3, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11);
    add_feature(&features, "nothing", 0, NULL, 0);
    add_feature(&features, NULL, 1, "\x0a\1y", 3);
    const struct bytes example = example_of(&features);
    struct tr_example_feature feature = find(&example, "image");
    assert_int_equal(tr_example_bytes(&feature, &data, &size), TR_OK);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "abc", 3);
    feature = find(&example, "label");
    assert_int_equal(tr_example_int64(&feature, &number), TR_OK);
    assert_int_equal(number, 5);
    feature = find(&example, "packed");
    assert_int_equal(tr_example_int64(&feature, &number), TR_OK);
    assert_int_equal(number, 300);
    feature = find(&example, "minus");
    assert_int_equal(tr_example_int64(&feature, &number), TR_OK);
    assert_int_equal(number, -1);
    static const char *const absent[] = {"imagf", "imag", "images", "nothing", "", "lab"};
    for (int i = 0; i < LENGTH(absent); i++) {
        feature = find(&example, absent[i]);
        assert_int_equal(feature.kind, TR_LIST_NONE);
    }
    struct tr_example_feature both[] = {{.name = "label", .name_length = 5},
                                        {.name = "image", .name_length = 5}};
    assert_int_equal(tr_example_find(example.data, example.size, both, 2), TR_OK);
    assert_int_equal(both[0].kind, TR_LIST_INT64);
    assert_int_equal(both[1].kind, TR_LIST_BYTES);
}

/* Of a name that is there twice the last one counts, as in all protocol buffers. */
static void the_last_of_equal_names_counts(void **unused)
{
    struct bytes features = {.size = 0};
    int64_t number = 0;
    (void)unused;
    add_feature(&features, "a", 1, "\x0a\1x", 3);
    add_feature(&features, "a", 3, "\x08\x07", 2);
    const struct bytes example = example_of(&features);
    const struct tr_example_feature feature = find(&example, "a");
    assert_int_equal(tr_example_int64(&feature, &number), TR_OK);
    assert_int_equal(number, 7);
}

/* What was found in another example is forgotten. */
static void each_example_is_looked_at_anew(void **unused)
{
    static const char *const names[] = {"a", "b"};
    struct tr_example_feature found[2];
    struct bytes features = {.size = 0};
    (void)unused;
    add_feature(&features, "a", 3, "\x08\x07", 2);
    add_feature(&features, "b", 3, "\x08\x08", 2);
    const struct bytes both = example_of(&features);
    for (int i = 0; i < 2; i++) found[i] = (struct tr_example_feature){.name = names[i], .name_length = 1};
    assert_int_equal(tr_example_find(both.data, both.size, found, 2), TR_OK);
    assert_true(found[0].kind == TR_LIST_INT64 && found[1].kind == TR_LIST_INT64);
    assert_int_equal(tr_example_find(both.data, 0, found, 2), TR_OK);
    assert_true(found[0].kind == TR_LIST_NONE && found[1].kind == TR_LIST_NONE);
}

static void lists_of_floats_are_read(void **unused)
{
    struct bytes features = {.size = 0}, list = {.size = 0};
    static const float wanted[] = {1.5f, -3.14159274f, 1e-9f, 7.7e20f}; /* all bytes count */
    float got[5];
    size_t count = 0;
    (void)unused;
    list.data[list.size++] = 1 * 8 + 5; /* one by one: wire type 5 */
    memcpy(list.data + list.size, &wanted[0], 4);
    list.size += 4;
    add(&list, 1, &wanted[1], 12);
    add_feature(&features, "f", 2, list.data, list.size);
    const struct bytes example = example_of(&features);
    const struct tr_example_feature feature = find(&example, "f");
    for (size_t room = 0; room <= 5; room++) {
        memset(got, 0xee, sizeof got);
        assert_int_equal(tr_example_floats(&feature, got, room, &count), TR_OK);
        assert_int_equal(count, 4);
        assert_memory_equal(got, wanted, (room < 4 ? room : 4) * sizeof *got);
        for (size_t i = room; i < 5; i++) assert_int_equal(((const uint8_t *)&got[i])[0], 0xee);
    }
}

/* ---- what is wrong ---- */

static void faults_of_features_are_told(void **unused)
{
    struct bytes features = {.size = 0};
    const uint8_t *data;
    size_t size;
    int64_t number;
    (void)unused;
    add_feature(&features, "two", 1, "\x0a\1x\x0a\1y", 6);
    add_feature(&features, "none", 1, "", 0);
    add_feature(&features, "many", 3, "\x0a\3\1\2\3", 5);
    add_feature(&features, "zero", 3, "", 0);
    add_feature(&features, "odd", 2, "\x0a\3xyz", 5);
    const struct bytes example = example_of(&features);
    struct tr_example_feature feature = find(&example, "two");
    expect_message(tr_example_bytes(&feature, &data, &size), "feature \"two\" has 2 values; 1 is needed");
    expect_message(tr_example_int64(&feature, &number), "feature \"two\" holds bytes, not integers");
    expect_message(tr_example_floats(&feature, NULL, 0, &size), "feature \"two\" holds bytes, not floats");
    feature = find(&example, "none");
    expect_message(tr_example_bytes(&feature, &data, &size), "feature \"none\" has 0 values; 1 is needed");
    feature = find(&example, "many");
    expect_message(tr_example_int64(&feature, &number), "feature \"many\" has 3 values; 1 is needed");
    expect_message(tr_example_bytes(&feature, &data, &size), "feature \"many\" holds integers, not bytes");
    feature = find(&example, "zero");
    expect_message(tr_example_int64(&feature, &number), "feature \"zero\" has 0 values; 1 is needed");
    feature = find(&example, "absent");
    expect_message(tr_example_int64(&feature, &number),
                   "no feature \"absent\"; name the feature that holds it");
    feature = find(&example, "odd");
    float value;
    assert_int_equal(tr_example_floats(&feature, &value, 1, &size), TR_EFORMAT);
}

static void damaged_examples_are_refused(void **unused)
{
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
        {"\x0a", 1},     {"\x0a\5abc", 5}, {"\x00\1", 2},
        {"\x0b", 1},     {"\x0f", 1},      {"\x09\1\2\3", 4},
        {"\x0d\1\2", 3}, {"\x08", 1},      {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 12},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(bad); i++) {
        struct tr_example_feature feature = {.name = "a", .name_length = 1};
        const tr_status status = tr_example_find((const uint8_t *)bad[i].bytes, bad[i].size, &feature, 1);
        if (status != TR_EFORMAT) fail_msg("case %d: %s", i, tr_status_name(status));
    }
    struct tr_example_feature feature = {.name = "a", .name_length = 1};
    assert_int_equal(
        tr_example_find((const uint8_t *)"\x12\3abc\x18\5\x21\1\2\3\4\5\6\7\x8\x2d\1\2\3\4", 21, &feature, 1),
        TR_OK); /* fields that are not looked at */
    assert_int_equal(feature.kind, TR_LIST_NONE);
}

/* ---- writing ---- */

static void what_is_written_is_read(void **unused)
{
    static const float floats[] = {1, 2, 3};
    static const int64_t numbers[] = {-5}, large[] = {INT64_MAX};
    static char text[300];
    uint8_t bytes[1024];
    memset(text, 't', sizeof text);
    const struct tr_example_value values[] = {{"text", TR_LIST_BYTES, text, sizeof text},
                                              {"floats", TR_LIST_FLOATS, floats, 3},
                                              {"number", TR_LIST_INT64, numbers, 1},
                                              {"large", TR_LIST_INT64, large, 1},
                                              {"empty", TR_LIST_BYTES, "", 0}};
    (void)unused;
    const size_t size = tr_example_encoded_size(values, LENGTH(values));
    assert_true(size < sizeof bytes);
    memset(bytes, 0xee, sizeof bytes);
    tr_example_encode(values, LENGTH(values), bytes);
    assert_int_equal(bytes[size], 0xee);
    struct tr_example_feature found[] = {{.name = "text", .name_length = 4},
                                         {.name = "floats", .name_length = 6},
                                         {.name = "number", .name_length = 6},
                                         {.name = "large", .name_length = 5},
                                         {.name = "empty", .name_length = 5}};
    assert_int_equal(tr_example_find(bytes, size, found, LENGTH(found)), TR_OK);
    const uint8_t *data;
    size_t length, count;
    int64_t number;
    float got[3];
    assert_int_equal(tr_example_bytes(&found[0], &data, &length), TR_OK);
    assert_int_equal(length, sizeof text);
    assert_memory_equal(data, text, length);
    assert_int_equal(tr_example_floats(&found[1], got, 3, &count), TR_OK);
    assert_int_equal(count, 3);
    assert_memory_equal(got, floats, sizeof got);
    assert_int_equal(tr_example_int64(&found[2], &number), TR_OK);
    assert_int_equal(number, -5);
    assert_int_equal(tr_example_int64(&found[3], &number), TR_OK);
    assert_true(number == INT64_MAX);
    assert_int_equal(tr_example_bytes(&found[4], &data, &length), TR_OK);
    assert_int_equal(length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_are_found_by_name),     cmocka_unit_test(the_last_of_equal_names_counts),
        cmocka_unit_test(each_example_is_looked_at_anew), cmocka_unit_test(lists_of_floats_are_read),
        cmocka_unit_test(faults_of_features_are_told),    cmocka_unit_test(damaged_examples_are_refused),
        cmocka_unit_test(what_is_written_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
