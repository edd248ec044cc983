/* Checksums against published values, and in pieces against whole. */
#include "base/numbers/hash.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static void crc_has_published_values(void **state)
{
    (void)state;
    uint8_t bytes[32];
    assert_int_equal(tr_crc32c(0, "", 0), 0);
    assert_int_equal(tr_crc32c(0, "123456789", 9), 0xe3069283);
    /* RFC 3720, appendix B.4 */
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(tr_crc32c(0, bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(tr_crc32c(0, bytes, sizeof bytes), 0x62a8ab43);
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)i;
    assert_int_equal(tr_crc32c(0, bytes, sizeof bytes), 0x46dd794e);
}

/* The header of the first record of an event file: a length of 24. */
static void crc_of_zip_files_has_published_values(void **state)
{
    (void)state;
    assert_int_equal(tr_crc32(0, "", 0), 0);
    assert_int_equal(tr_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(tr_crc32(tr_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
    assert_int_equal(tr_crc32(0, (const uint8_t[32]){0}, 32), 0x190a55ad);
}

static void masked_crc_is_that_of_record_files(void **state)
{
    (void)state;
    const uint8_t length[8] = {0x18};
    assert_int_equal(tr_crc32c_mask(tr_crc32c(0, length, sizeof length)), 0x224b7fa3);
}

static void crc_of_pieces_is_crc_of_whole(void **state)
{
    (void)state;
    uint8_t bytes[1031];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37 + (i >> 3));
    uint32_t whole = tr_crc32c(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut++)
        assert_int_equal(tr_crc32c(tr_crc32c(0, bytes, cut), bytes + cut, sizeof bytes - cut), whole);
}

static void sha256_has_published_values(void **state)
{
    (void)state;
    char text[TR_SHA256_TEXT];
    assert_int_equal(tr_sha256_of("", 0, text), TR_OK);
    assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_int_equal(tr_sha256_of("abc", 3, text), TR_OK);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* FIPS 180-2: one million times "a", here in uneven pieces. */
static void sha256_of_pieces(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    char piece[997], text[TR_SHA256_TEXT];
    memset(piece, 'a', sizeof piece);
    tr_sha256 *hash;
    assert_int_equal(tr_sha256_begin(&hash), TR_OK);
    for (size_t rest = 1000000; rest > 0;) {
        size_t size = rest < sizeof piece ? rest : sizeof piece;
        tr_sha256_add(hash, piece, size);
        rest -= size;
    }
    assert_int_equal(tr_sha256_end(&hash, text), TR_OK);
    assert_null(hash);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    assert_int_equal(tr_alloc_live(), live);
}

/* A number is 8 bytes, the lowest first, on every machine. */
static void test_numbers_in_a_sha256(void **state)
{
    (void)state;
    tr_sha256 *hash;
    char expected[65], got[65];
    assert_int_equal(
        tr_sha256_of("\xfe\xff\xff\xff\xff\xff\xff\xff\x08\x07\x06\x05\x04\x03\x02\x01", 16, expected),
        TR_OK);
    assert_int_equal(tr_sha256_begin(&hash), TR_OK);
    tr_sha256_add_number(hash, -2);
    tr_sha256_add_number(hash, 0x0102030405060708);
    assert_int_equal(tr_sha256_end(&hash, got), TR_OK);
    assert_string_equal(got, expected);
}

static void sha256_is_64_digits(void **state)
{
    (void)state;
    char text[66] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    struct tr_sha256_sum sum;
    assert_true(tr_sha256_parse(text, &sum));
    assert_true(sum.byte[0] == 0x01 && sum.byte[7] == 0xef && sum.byte[31] == 0xef);
    static const char others[] = {'g', 'F', '/', ':', '`', ' '};
    for (size_t i = 0; i < sizeof others; i++)
        for (int at = 0; at < 64; at += 63) {
            const char kept = text[at];
            text[at] = others[i];
            assert_false(tr_sha256_parse(text, &sum));
            text[at] = kept;
        }
    text[64] = '0';
    assert_false(tr_sha256_parse(text, &sum));
    text[63] = '\0';
    assert_false(tr_sha256_parse(text, &sum));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_in_a_sha256),
        cmocka_unit_test(crc_has_published_values),
        cmocka_unit_test(crc_of_zip_files_has_published_values),
        cmocka_unit_test(masked_crc_is_that_of_record_files),
        cmocka_unit_test(crc_of_pieces_is_crc_of_whole),
        cmocka_unit_test(sha256_has_published_values),
        cmocka_unit_test(sha256_of_pieces),
        cmocka_unit_test(sha256_is_64_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
