/* Characters of tokenizers against Python's unicodedata: tests/data/bpe/unicode_digests.py prints the
 * digests.
 */
#include "base/fail.h"
#include "base/numbers/hash.h"
#include "data/bpe/unicode.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define CHARACTERS    0x110000u

/* As in the script. */
static const uint32_t first_ranges[][2] = {
    {0x20, 0x3400}, {0xac00, 0xac80}, {0xd780, 0xd7b0}, {0x11000, 0x11a00}};
static const uint32_t second_ranges[][2] = {{0x300, 0x315}, {0x31b, 0x31c}, {0x323, 0x333}};
static const uint32_t second_others[] = {
    0x334,  0x338,  0x342,  0x345,  0x5b0,   0x653,   0x654,   0x655,   0x93c,   0x94d,   0x9be,
    0xb3e,  0xc56,  0xdca,  0x102e, 0x1160,  0x1161,  0x1175,  0x1176,  0x11a7,  0x11a8,  0x11c2,
    0x11c3, 0x1b35, 0x3099, 0x309a, 0x110ba, 0x11127, 0x1133e, 0x11357, 0x114ba, 0x115af, 0x11930};

static uint32_t first[0x4000], second[256];
static int firsts, seconds;

static int make_lists(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(first_ranges); i++)
        for (uint32_t c = first_ranges[i][0]; c < first_ranges[i][1]; c++) first[firsts++] = c;
    for (int i = 0; i < LENGTH(second_ranges); i++)
        for (uint32_t c = second_ranges[i][0]; c < second_ranges[i][1]; c++) second[seconds++] = c;
    for (int i = 0; i < LENGTH(second_others); i++) second[seconds++] = second_others[i];
    return 0;
}

static bool is_surrogate(uint32_t c)
{
    return c >= 0xd800 && c < 0xe000;
}

/* ---- characters ---- */

static void classes_are_those_of_unicode(void **unused)
{
    char digest[TR_SHA256_TEXT];
    uint8_t *class = malloc(CHARACTERS);
    int count;
    const uint32_t *ranges = tr_character_ranges(&count);
    (void)unused;
    assert_string_equal(tr_unicode_version, "14.0.0");
    assert_non_null(class);
    for (uint32_t c = 0; c < CHARACTERS; c++) class[c] = (uint8_t)tr_character_class_of(c);
    assert_int_equal(tr_sha256_of(class, CHARACTERS, digest), TR_OK);
    assert_string_equal(digest, "eda63177bfb598ba781408a70b856dd3561db2ae85fb1066f509edb14adf1b63");
    assert_int_equal(ranges[0] >> 2, 0);
    uint32_t at = 0;
    for (int i = 0; i < count; i++) {
        const uint32_t end = i + 1 < count ? ranges[i + 1] >> 2 : CHARACTERS;
        assert_true(ranges[i] >> 2 == at && end > at);
        for (; at < end; at++) assert_int_equal(class[at], ranges[i] & 3);
    }
    free(class);
    assert_int_equal(tr_character_class_of(CHARACTERS), TR_CHARACTER_OTHER);
    assert_int_equal(tr_character_class_of(CHARACTERS + 'a'), TR_CHARACTER_OTHER);
}

/* Plain UTF-8; the number of bytes. */
static size_t encode(uint32_t c, char *to)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((0xf00 >> size & 0xff) | c);
    return size;
}

/* Every character is read and written, whatever is behind it; one that is cut off is single bytes. */
static void characters_are_read_and_written(void **unused)
{
    (void)unused;
    for (uint32_t c = 0; c < CHARACTERS; c++) {
        char bytes[5] = {0};
        uint32_t got = 1;
        struct tr_text text = TR_TEXT_INIT;
        if (is_surrogate(c)) continue;
        const size_t size = encode(c, bytes);
        bytes[size] = '\xbf';
        assert_int_equal(tr_character_at(bytes, bytes + size, &got), size);
        assert_int_equal(got, c);
        assert_int_equal(tr_character_at(bytes, bytes + 5, &got), size);
        assert_int_equal(got, c);
        for (size_t cut = 1; cut < size; cut++) {
            assert_int_equal(tr_character_at(bytes, bytes + cut, &got), 1);
            assert_int_equal(got, CHARACTERS + (uint8_t)bytes[0]);
        }
        if (c % 61 != 0 && c > 0x900 && c < 0x10ff00) continue;
        tr_character_add(&text, c);
        assert_int_equal(text.length, size);
        assert_memory_equal(text.bytes, bytes, size);
        tr_text_release(&text);
    }
    for (uint32_t byte = 0x80; byte < 0x100; byte++) {
        struct tr_text text = TR_TEXT_INIT;
        tr_character_add(&text, CHARACTERS + byte);
        assert_int_equal(text.length, 1);
        assert_int_equal((uint8_t)text.bytes[0], byte);
        tr_text_release(&text);
    }
}

/* ---- the composed form ---- */

struct digest {
    tr_sha256 *hash;
    struct tr_text text, composed;
};

static void begin(struct digest *digest)
{
    *digest = (struct digest){.text = TR_TEXT_INIT, .composed = TR_TEXT_INIT};
    assert_int_equal(tr_sha256_begin(&digest->hash), TR_OK);
}

/* Adds the composed form of the text of these characters, and a line feed. */
static void add(struct digest *digest, const uint32_t *characters, int count)
{
    char bytes[64];
    size_t size = 0;
    for (int i = 0; i < count; i++) size += encode(characters[i], bytes + size);
    digest->composed.length = 0;
    tr_unicode_compose(bytes, size, &digest->composed);
    assert_false(digest->composed.failed);
    tr_sha256_add(digest->hash, digest->composed.bytes, digest->composed.length);
    tr_sha256_add(digest->hash, "\n", 1);
}

static void expect(struct digest *digest, const char *wanted)
{
    char text[TR_SHA256_TEXT];
    tr_text_release(&digest->composed);
    assert_int_equal(tr_sha256_end(&digest->hash, text), TR_OK);
    assert_string_equal(text, wanted);
}

static void single_characters_compose(void **unused)
{
    struct digest digest;
    (void)unused;
    begin(&digest);
    for (uint32_t c = 0; c < CHARACTERS; c++)
        if (!is_surrogate(c)) add(&digest, &c, 1);
    expect(&digest, "9cc65524a9d8082bf10840c616cd199bd2ac12ee49a3381bd6fb7957711f342b");
}

static void pairs_compose(void **unused)
{
    struct digest digest;
    (void)unused;
    begin(&digest);
    for (int i = 0; i < firsts; i++)
        for (int k = 0; k < seconds; k++) add(&digest, (const uint32_t[]){first[i], second[k]}, 2);
    expect(&digest, "72259e810b42585651a1c28b57f031b9a17c71768cb6b8b20c7a214543d56270");
}

static void marks_are_ordered(void **unused)
{
    static const uint32_t marks[] = {0x334, 0x301, 0x345};
    struct digest digest;
    (void)unused;
    begin(&digest);
    for (uint32_t c = 0; c < 0x1f000; c++)
        for (int i = 0; i < LENGTH(marks) && !is_surrogate(c); i++)
            add(&digest, (const uint32_t[]){'q', c, marks[i], c}, 4);
    expect(&digest, "6948e17c7c14e87d014ee59b57a4c8720c168e908c60ad649d7c37777948cee9");
}

static void longer_texts_compose(void **unused)
{
    struct digest digest;
    uint32_t random = 1;
    (void)unused;
    begin(&digest);
    for (int i = 0; i < 40000; i++) {
        uint32_t text[8];
        for (int k = 0; k < LENGTH(text); k++) {
            random = random * 1664525 + 1013904223;
            const uint32_t which = random >> 8 & 0x3fffff;
            text[k] = random >> 30 == 0 ? first[which % (uint32_t)firsts] : second[which % (uint32_t)seconds];
        }
        add(&digest, text, LENGTH(text));
    }
    expect(&digest, "69ecff70a9d5268aed0dfa8a3f48ec0d09ba86754eef6ea5fa570ec9a12f0734");
}

/* Bytes that are no character stay, and divide what would compose. */
static void other_bytes_stay(void **unused)
{
    struct tr_text text = TR_TEXT_INIT;
    (void)unused;
    static const char given[] = "a\xcc\x81\x80"
                                "a\xcc\xff\xcc\x81"
                                "e\xe1\x84",
                      wanted[] = "\xc3\xa1\x80"
                                 "a\xcc\xff\xcc\x81"
                                 "e\xe1\x84";
    tr_text_add(&text, ">");
    tr_unicode_compose(given, sizeof given - 1, &text);
    tr_unicode_compose("x", 0, &text);
    assert_false(text.failed);
    assert_int_equal(text.length, 1 + sizeof wanted - 1);
    assert_memory_equal(text.bytes + 1, wanted, sizeof wanted - 1);
    tr_text_release(&text);
}

/* Without memory the text is marked as incomplete. */
static void a_lack_of_memory_is_told(void **unused)
{
    static const char given[] = "x\xcc\x87\xcc\xa3\xcc\x87\xcc\xa3\xe1\x84\x92\xe1\x85\xa1";
    (void)unused;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_text text = TR_TEXT_INIT;
        refuse_begin(at);
        tr_unicode_compose(given, sizeof given - 1, &text);
        done = refuse_end();
        assert_int_equal(text.failed, !done);
        if (done) assert_string_equal(text.bytes, "\xe1\xba\x8b\xcc\xa3\xcc\xa3\xcc\x87\xed\x95\x98");
        if (done) assert_true(at > 3);
        tr_text_release(&text);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_those_of_unicode),
        cmocka_unit_test(characters_are_read_and_written),
        cmocka_unit_test(single_characters_compose),
        cmocka_unit_test(pairs_compose),
        cmocka_unit_test(marks_are_ordered),
        cmocka_unit_test(longer_texts_compose),
        cmocka_unit_test(other_bytes_stay),
        cmocka_unit_test(a_lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, make_lists, NULL);
}
