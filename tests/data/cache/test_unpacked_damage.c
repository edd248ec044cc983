/* Files of unpacked data: whatever is wrong in one is found and named, also where all checksums are right. */
#include "base/fail.h"
#include "base/files/file.h"
#include "data/cache/entries.h"
#include "data/text/vocabulary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_damage(struct entry *entry, const char *what)
{
    char wanted[256];
    tr_source *source;
    const tr_status status = open_sealed(entry, true, &source);
    snprintf(wanted, sizeof wanted, "unpacked data \"it\": %s", what);
    if (status != TR_ECORRUPT || strcmp(tr_error_message(), wanted) != 0)
        fail_msg("%s, \"%s\", not \"%s\"", tr_status_name(status), status ? tr_error_message() : "", wanted);
    tr_source_close(&source);
}

static void expect_whole(struct entry *entry)
{
    tr_source *source;
    if (open_sealed(entry, true, &source) != TR_OK) fail_msg("%s", tr_error_message());
    tr_source_close(&source);
}

/* With another value in one place of an entry that is whole. */
#define DAMAGE(entry, place, value, what)                                                                    \
    do {                                                                                                     \
        const struct tr_unpacked_tail tail_ = (entry)->tail;                                                 \
        (place) = (value);                                                                                   \
        expect_damage(entry, what);                                                                          \
        (entry)->tail = tail_;                                                                               \
    } while (0)

static void ends_are_checked(void **unused)
{
    static const char other[TR_SHA256_TEXT] =
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdee";
    struct tr_file_map map;
    tr_source *source = NULL;
    struct entry entry = make_entry(DIGITS);
    (void)unused;
    DAMAGE(&entry, entry.tail.magic[7], 'b', "the end of the file is missing");
    DAMAGE(&entry, entry.tail.version, TR_UNPACKED_VERSION + 1,
           "written by another version of the program or another kind of machine");
    DAMAGE(&entry, entry.tail.order, 0x04030201,
           "written by another version of the program or another kind of machine");
    DAMAGE(&entry, entry.tail.key[63], 'e', "the contents belong to another name");
    expect_whole(&entry);
    assert_int_equal(tr_file_map(test_path("entry"), &map), TR_OK);
    assert_int_equal(tr_unpacked_open(&map, "it", other, true, &source), TR_ECORRUPT);
    entry.file.data[entry.file.size - 1] ^= 1;
    write_file("entry", entry.file.data, entry.file.size);
    assert_int_equal(tr_file_map(test_path("entry"), &map), TR_OK);
    assert_int_equal(tr_unpacked_open(&map, "it", entry_key, true, &source), TR_ECORRUPT);
    assert_string_equal(tr_error_message(),
                        "unpacked data \"it\": the checksum of its header does not match");
    static const size_t sizes[] = {TR_UNPACKED_PAGE + sizeof entry.tail - 1,
                                   TR_UNPACKED_PAGE + sizeof entry.tail};
    for (int i = 0; i < 2; i++) {
        write_file("entry", entry.file.data, sizes[i]);
        assert_int_equal(tr_file_map(test_path("entry"), &map), TR_OK);
        assert_int_equal(tr_unpacked_open(&map, "it", entry_key, true, &source), TR_ECORRUPT);
        assert_string_equal(tr_error_message(), i ? "unpacked data \"it\": the end of the file is missing"
                                                  : "unpacked data \"it\": the file is too short");
    }
    free(entry.file.data);
}

#define FIGURE "a figure in its header is out of range"

static void figures_are_checked(void **unused)
{
    struct entry entry = make_entry(DIGITS);
    (void)unused;
    DAMAGE(&entry, entry.tail.count, 0, FIGURE);
    DAMAGE(&entry, entry.tail.count, INT64_MAX / 16, FIGURE);
    DAMAGE(&entry, entry.tail.values, 1, FIGURE);
    DAMAGE(&entry, entry.tail.labels, TR_LABEL_TOKENS, FIGURE);
    DAMAGE(&entry, entry.tail.stride, 1, FIGURE);
    DAMAGE(&entry, entry.tail.window, 1, FIGURE);
    DAMAGE(&entry, entry.tail.range, TR_RANGE_U16, FIGURE);
    DAMAGE(&entry, entry.tail.digest[0], 'A', FIGURE);
    DAMAGE(&entry, entry.tail.digest[63], 'g', FIGURE);
    DAMAGE(&entry, entry.tail.digest[5], '\0', FIGURE);
    DAMAGE(&entry, entry.tail.height, 0, "its examples are empty");
    struct tr_unpacked_tail good = entry.tail;
    memset(entry.tail.state_name, 'x', sizeof entry.tail.state_name);
    expect_damage(&entry, FIGURE);
    entry.tail = good;
    expect_whole(&entry);
    free(entry.file.data);
    entry = make_entry(NAMED);
    DAMAGE(&entry, entry.tail.labels, TR_LABEL_PIXELS, FIGURE);
    DAMAGE(&entry, entry.tail.range, TR_RANGE_PICTURE, FIGURE);
    entry.tail.height = 1, entry.tail.width = 2, entry.tail.channels = 1; /* an image of numbers */
    expect_whole(&entry);
    DAMAGE(&entry, entry.tail.range, TR_RANGE_PICTURE + 1, FIGURE);
    entry.tail.range = TR_RANGE_PICTURE;
    expect_whole(&entry);
    DAMAGE(&entry, entry.tail.width, 3, FIGURE);
    free(entry.file.data);
}

static void windows_are_checked(void **unused)
{
    struct entry entry = make_entry(WINDOWS);
    (void)unused;
    assert_int_equal(entry.tail.window, 3);
    assert_int_equal(entry.tail.stride, 2);
    DAMAGE(&entry, entry.tail.window, -1, FIGURE);
    DAMAGE(&entry, entry.tail.window, 4, FIGURE); /* max_tokens is 3 */
    DAMAGE(&entry, entry.tail.window, 0, FIGURE);
    DAMAGE(&entry, entry.tail.stride, 0, FIGURE);
    DAMAGE(&entry, entry.tail.stride, (int64_t)TR_TOKENS_MAX + 1, FIGURE);
    DAMAGE(&entry, entry.tail.count, (int64_t)1 << 32, FIGURE);
    DAMAGE(&entry, entry.tail.classes, entry.tail.vocabulary - 1, FIGURE);
    DAMAGE(&entry, entry.tail.labels, TR_LABEL_CLASS, FIGURE);
    DAMAGE(&entry, entry.tail.features, TR_FEATURE_FLOATS, FIGURE);
    DAMAGE(&entry, entry.tail.count, entry.tail.count + 1, "its length is not what its header says");
    struct tr_unpacked_tail good = entry.tail;
    entry.tail.window = entry.tail.max_tokens = (int64_t)TR_TOKENS_MAX + 1;
    expect_damage(&entry, FIGURE);
    entry.tail = good;
    int32_t *tokens = (int32_t *)(void *)(entry.file.data + entry.tail.section[TR_UNPACKED_FEATURES].offset);
    tokens[0] = (int32_t)entry.tail.vocabulary;
    expect_damage(&entry, "a word is out of range");
    free(entry.file.data);
}

#define SIZES "its length is not what its header says"

static void places_are_checked(void **unused)
{
    struct entry entry = make_entry(NAMED);
    tr_source *source;
    (void)unused;
    for (int i = 0; i < TR_UNPACKED_SECTIONS; i++) {
        struct tr_unpacked_extent *place = &entry.tail.section[i];
        DAMAGE(&entry, place->offset, place->offset + 8, SIZES);
        DAMAGE(&entry, place->offset, place->offset - 64, SIZES);
        DAMAGE(&entry, place->offset, (int64_t)entry.file.size & ~63, SIZES);
        DAMAGE(&entry, place->bytes, -1, SIZES);
        DAMAGE(&entry, place->bytes, (int64_t)entry.file.size, SIZES);
        if (place->bytes > 0)
            DAMAGE(&entry, place->bytes, place->bytes - 1,
                   i == TR_UNPACKED_NAMES ? "names of classes are missing" : SIZES);
    }
    expect_whole(&entry);
    /* What lies between two sections, and what only the checksum of a section knows. */
    const int64_t gap =
        entry.tail.section[TR_UNPACKED_LABELS].offset + entry.tail.section[TR_UNPACKED_LABELS].bytes;
    entry.file.data[gap] = 1;
    expect_damage(&entry, "the checksum of its contents does not match");
    assert_int_equal(open_sealed(&entry, false, &source), TR_ECORRUPT);
    entry.file.data[gap] = 0;
    expect_whole(&entry);
    /* More between two sections than brings the second one to its place, though all of it is zero. */
    struct entry wider = entry;
    const int64_t place = entry.tail.section[TR_UNPACKED_LABELS].offset;
    wider.file.size += TR_UNPACKED_ALIGN;
    wider.file.data = calloc(1, wider.file.size);
    assert_non_null(wider.file.data);
    memcpy(wider.file.data, entry.file.data, (size_t)place);
    memcpy(wider.file.data + place + TR_UNPACKED_ALIGN, entry.file.data + place,
           entry.file.size - (size_t)place);
    for (int i = TR_UNPACKED_LABELS; i < TR_UNPACKED_SECTIONS; i++)
        wider.tail.section[i].offset += TR_UNPACKED_ALIGN;
    expect_damage(&wider, "the checksum of its contents does not match");
    free(wider.file.data);
    struct tr_file_map map;
    entry.file.data[entry.tail.section[TR_UNPACKED_FEATURES].offset] ^= 1;
    write_file("entry", entry.file.data, entry.file.size);
    for (int verify = 0; verify < 2; verify++) {
        assert_int_equal(tr_file_map(test_path("entry"), &map), TR_OK);
        assert_int_equal(tr_unpacked_open(&map, "it", entry_key, verify, &source),
                         verify ? TR_ECORRUPT : TR_OK);
        if (!verify) tr_source_close(&source);
    }
    assert_string_equal(tr_error_message(),
                        "unpacked data \"it\": the checksum of its contents does not match");
    free(entry.file.data);
}

/* A number of a section, [index] of 4 bytes. */
static int32_t *number_of(struct entry *entry, enum tr_unpacked_section section, int index)
{
    return (int32_t *)(void *)(entry->file.data + entry->tail.section[section].offset) + index;
}

static void expect_number_damage(struct entry *entry, enum tr_unpacked_section section, int index,
                                 int64_t number, const char *what)
{
    int32_t *at = number_of(entry, section, index), before = *at;
    tr_source *source;
    *at = (int32_t)number;
    expect_damage(entry, what);
    assert_int_equal(open_sealed(entry, false, &source), TR_OK); /* these are looked at only then */
    tr_source_close(&source);
    *at = before;
    expect_whole(entry);
}

static void labels_are_checked(void **unused)
{
    struct entry entry = make_entry(DIGITS);
    (void)unused;
    expect_number_damage(&entry, TR_UNPACKED_LABELS, 0, -1, "a label is out of range");
    expect_number_damage(&entry, TR_UNPACKED_LABELS, 2, entry.tail.classes, "a label is out of range");
    free(entry.file.data);
    entry = make_entry(MASKS);
    expect_number_damage(&entry, TR_UNPACKED_LABELS, 0, TR_NO_LABEL - 1,
                         "the label of a pixel is out of range");
    expect_number_damage(&entry, TR_UNPACKED_LABELS, 11, entry.tail.classes,
                         "the label of a pixel is out of range");
    *number_of(&entry, TR_UNPACKED_LABELS, 3) = TR_NO_LABEL;
    expect_whole(&entry);
    free(entry.file.data);
    entry = make_entry(TAGS);
    expect_number_damage(&entry, TR_UNPACKED_LABELS, 0, TR_NO_LABEL - 1,
                         "the label of a word is out of range");
    expect_number_damage(&entry, TR_UNPACKED_LABELS, 3, entry.tail.classes,
                         "the label of a word is out of range");
    free(entry.file.data);
}

static void texts_are_checked(void **unused)
{
    struct entry entry = make_entry(TEXTS); /* of 3, 1 and 4 words */
    (void)unused;
    expect_number_damage(&entry, TR_UNPACKED_FEATURES, 0, -1, "a word is out of range");
    expect_number_damage(&entry, TR_UNPACKED_FEATURES, 7, entry.tail.vocabulary, "a word is out of range");
    *number_of(&entry, TR_UNPACKED_FEATURES, 7) = 0;
    expect_whole(&entry);
    /* every second number is the low half of a place */
    expect_number_damage(&entry, TR_UNPACKED_START, 0, 1, "its texts do not fill it");
    expect_number_damage(&entry, TR_UNPACKED_START, 6, 7, "its texts do not fill it");
    expect_number_damage(&entry, TR_UNPACKED_START, 2, 4, "the length of a text is out of range");
    expect_number_damage(&entry, TR_UNPACKED_START, 2, 9, "the length of a text is out of range");
    expect_number_damage(&entry, TR_UNPACKED_START, 2, 0, "the length of a text is out of range");
    expect_number_damage(&entry, TR_UNPACKED_START, 4, 3, "the length of a text is out of range");
    *number_of(&entry, TR_UNPACKED_START, 2) = 4;
    *number_of(&entry, TR_UNPACKED_START, 4) = 5;
    expect_whole(&entry);
    *number_of(&entry, TR_UNPACKED_START, 2) = 2;
    expect_damage(&entry, "no text is as long as they are said to be");
    free(entry.file.data);
}

static void names_and_states_are_checked(void **unused)
{
    struct entry entry = make_entry(NAMED); /* "cat" and "ox" */
    (void)unused;
    char *names = (char *)entry.file.data + entry.tail.section[TR_UNPACKED_NAMES].offset;
    assert_memory_equal(names, "cat\0ox", 7);
    names[3] = 'x';
    expect_damage(&entry, "names of classes are missing");
    names[3] = '\0';
    tr_source *source;
    entry.tail.classes = 1;
    assert_int_equal(open_sealed(&entry, false, &source), TR_OK);
    assert_string_equal(source->info.class_names[0], "cat");
    tr_source_close(&source);
    entry.tail.classes = 0;
    assert_int_equal(open_sealed(&entry, false, &source), TR_ECORRUPT);
    assert_non_null(strstr(tr_error_message(), "names of classes are missing"));
    entry.tail.classes = 8; /* more than bytes */
    expect_damage(&entry, "names of classes are missing");
    entry.tail.classes = 2;
    DAMAGE(&entry, entry.tail.state_name[0], 'x', "its state has no name");
    const struct tr_unpacked_extent *state = &entry.tail.section[TR_UNPACKED_STATE];
    entry.file.data[state->offset + state->bytes - 1] = 'x';
    expect_damage(&entry, "its state has no end");
    free(entry.file.data);
    entry = make_entry(TEXTS);
    char *shown;
    entry.tail.vocabulary++;
    assert_int_equal(open_sealed(&entry, true, &source), TR_OK);
    assert_int_equal(tr_source_show(source, 0, 1, 80, &shown), TR_EFORMAT);
    assert_string_equal(tr_error_message(), "unpacked data: the vocabulary lacks words that the texts have");
    tr_source_close(&source);
    free(entry.file.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_are_checked),
        cmocka_unit_test(figures_are_checked),
        cmocka_unit_test(windows_are_checked),
        cmocka_unit_test(places_are_checked),
        cmocka_unit_test(labels_are_checked),
        cmocka_unit_test(texts_are_checked),
        cmocka_unit_test(names_and_states_are_checked),
    };
    return cmocka_run_group_tests(tests, write_entry_data, NULL);
}
