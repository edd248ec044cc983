/* Unpacking piece by piece: where streams end, are cut or damaged, and what is said of them. */
#include "data/files/packed.h"

#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const char text[] = "The quick brown fox jumps over the lazy dog";
enum { TEXT = sizeof text - 1 };

static tr_inflate *begin(const void *data, size_t size, enum tr_packing packing)
{
    tr_inflate *inflate;
    assert_int_equal(tr_inflate_create("it", data, size, packing, &inflate), TR_OK);
    assert_true(tr_inflate_offset(inflate) == 0);
    return inflate;
}

static void packings_are_known_by_their_first_bytes(void **state)
{
    (void)state;
    static const struct {
        uint8_t first, second;
        enum tr_packing packing;
    } cases[] = {
        {0x1f, 0x8b, TR_PACKING_GZIP}, {0x1f, 0x8c, TR_PACKING_NONE}, {0x1e, 0x8b, TR_PACKING_NONE},
        {0x78, 0x01, TR_PACKING_ZLIB}, {0x78, 0x9c, TR_PACKING_ZLIB}, {0x78, 0xda, TR_PACKING_ZLIB},
        {0x78, 0x02, TR_PACKING_NONE}, {0x08, 0x1d, TR_PACKING_ZLIB}, {0x77, 0x09, TR_PACKING_NONE},
        {0x88, 0x1c, TR_PACKING_NONE}, {0x68, 0x05, TR_PACKING_ZLIB}, {0, 0, TR_PACKING_NONE},
    };
    for (int i = 0; i < LENGTH(cases); i++) {
        const uint8_t bytes[] = {cases[i].first, cases[i].second};
        if (tr_packing_of(bytes, 2) != cases[i].packing) fail_msg("case %d", i);
        assert_int_equal(tr_packing_of(bytes, 1), TR_PACKING_NONE);
    }
    assert_int_equal(tr_packing_of(NULL, 0), TR_PACKING_NONE);
}

static size_t put(enum tr_packing packing, const void *data, size_t size, uint8_t *to)
{
    if (packing != TR_PACKING_NONE) return put_member(packing, data, size, to);
    memcpy(to, data, size);
    return size;
}

static void pieces_of_any_size_give_all_bytes(void **state)
{
    (void)state;
    for (int packing = TR_PACKING_NONE; packing <= TR_PACKING_ZLIB; packing++) {
        uint8_t packed[128], out[TEXT + 8];
        const size_t size = put((enum tr_packing)packing, text, TEXT, packed);
        for (size_t piece = 1; piece <= TEXT + 1; piece++) {
            tr_inflate *inflate = begin(packed, size, (enum tr_packing)packing);
            size_t done = 0, got;
            do {
                assert_int_equal(tr_inflate_read(inflate, out + done, piece, &got), TR_OK);
                assert_int_equal(got, piece < TEXT - done ? piece : TEXT - done);
                done += got;
                assert_true(tr_inflate_offset(inflate) == done);
            } while (got == piece);
            assert_int_equal(done, TEXT);
            assert_memory_equal(out, text, TEXT);
            assert_int_equal(tr_inflate_read(inflate, out, 4, &got), TR_OK);
            assert_int_equal(got, 0);
            assert_int_equal(tr_inflate_end(inflate), TR_OK);
            tr_inflate_destroy(&inflate);
            assert_null(inflate);
        }
    }
}

static void members_of_gzip_follow_each_other(void **state)
{
    (void)state;
    uint8_t packed[256], out[64];
    size_t size = put_member(TR_PACKING_GZIP, text, 9, packed), got;
    size += put_member(TR_PACKING_GZIP, text, 0, packed + size);
    size += put_member(TR_PACKING_GZIP, text + 9, TEXT - 9, packed + size);
    tr_inflate *inflate = begin(packed, size, TR_PACKING_GZIP);
    assert_int_equal(tr_inflate_read(inflate, out, sizeof out, &got), TR_OK);
    assert_int_equal(got, TEXT);
    assert_memory_equal(out, text, TEXT);
    tr_inflate_destroy(&inflate);
}

static void what_follows_the_packed_data_is_refused(void **state)
{
    (void)state;
    uint8_t packed[256], out[64];
    size_t got;
    char message[160];
    const size_t size = put_member(TR_PACKING_GZIP, text, TEXT, packed);
    packed[size] = 0x1f; /* the first byte of a member, alone */
    packed[size + 1] = 0;
    for (size_t more = 1; more <= 2; more++) {
        tr_inflate *inflate = begin(packed, size + more, TR_PACKING_GZIP);
        assert_int_equal(tr_inflate_read(inflate, out, sizeof out, &got), TR_EFORMAT);
        snprintf(message, sizeof message,
                 "it: %zu trailing byte%s at offset %zu after the packed data; get the "
                 "file again",
                 more, more == 1 ? "" : "s", size);
        assert_string_equal(tr_error_message(), message);
        tr_inflate_destroy(&inflate);
    }
    size_t twice = put_member(TR_PACKING_ZLIB, text, TEXT, packed);
    twice += put_member(TR_PACKING_ZLIB, text, TEXT, packed + twice);
    tr_inflate *inflate = begin(packed, twice, TR_PACKING_ZLIB);
    assert_int_equal(tr_inflate_read(inflate, out, sizeof out, &got), TR_EFORMAT);
    snprintf(message, sizeof message, "it: %zu trailing bytes at offset %zu after the packed data", twice / 2,
             twice / 2);
    assert_non_null(strstr(tr_error_message(), message));
    tr_inflate_destroy(&inflate);
}

/* A stream that ends anywhere within it. */
static void cut_streams_are_refused(void **state)
{
    (void)state;
    uint8_t packed[128], out[64];
    char message[160];
    for (int packing = TR_PACKING_GZIP; packing <= TR_PACKING_ZLIB; packing++) {
        const size_t size = put((enum tr_packing)packing, text, TEXT, packed);
        const size_t tail = packing == TR_PACKING_GZIP ? GZIP_TAIL : ZLIB_TAIL;
        for (size_t cut = 0; cut < size; cut++) {
            tr_inflate *inflate = begin(packed, cut, (enum tr_packing)packing);
            size_t got;
            assert_int_equal(tr_inflate_read(inflate, out, sizeof out, &got), TR_EFORMAT);
            snprintf(message, sizeof message,
                     "it: truncated at offset %zu, in the midst of packed data (unpacked ", cut);
            if (!strstr(tr_error_message(), message)) fail_msg("%zu bytes: %s", cut, tr_error_message());
            assert_non_null(strstr(tr_error_message(), " bytes); get the file again"));
            if (cut >= size - tail) assert_non_null(strstr(tr_error_message(), "(unpacked 43 bytes)"));
            tr_inflate_destroy(&inflate);
        }
    }
}

static void damaged_streams_are_refused(void **state)
{
    (void)state;
    uint8_t packed[128], out[64];
    char message[200];
    size_t got;
    static const char *const name[] = {"none", "gzip", "zlib"};
    for (int packing = TR_PACKING_GZIP; packing <= TR_PACKING_ZLIB; packing++) {
        const size_t size = put((enum tr_packing)packing, text, TEXT, packed);
        const size_t head = packing == TR_PACKING_GZIP ? GZIP_HEAD : ZLIB_HEAD;
        for (size_t at = head + STORED_HEAD; at < size; at++) { /* its contents, and the sums */
            packed[at] ^= 4;
            tr_inflate *inflate = begin(packed, size, (enum tr_packing)packing);
            assert_int_equal(tr_inflate_read(inflate, out, sizeof out, &got), TR_ECORRUPT);
            snprintf(message, sizeof message,
                     "it: the %s checksum before offset %zu does not match the unpacked "
                     "bytes; get the file again",
                     name[packing], size);
            assert_string_equal(tr_error_message(), message);
            tr_inflate_destroy(&inflate);
            packed[at] ^= 4;
        }
        packed[head] = 7; /* the last block, of a kind that there is not */
        tr_inflate *inflate = begin(packed, size, (enum tr_packing)packing);
        assert_int_equal(tr_inflate_read(inflate, out, sizeof out, &got), TR_EFORMAT);
        snprintf(message, sizeof message, "it: invalid %s data near offset ", name[packing]);
        assert_non_null(strstr(tr_error_message(), message));
        assert_non_null(strstr(tr_error_message(), " (unpacked 0 bytes); get the file again"));
        tr_inflate_destroy(&inflate);
    }
}

static void exact_sizes_and_ends_are_told_apart(void **state)
{
    (void)state;
    uint8_t packed[128], out[64];
    char message[200];
    for (int packing = TR_PACKING_NONE; packing <= TR_PACKING_ZLIB; packing++) {
        const char *unpacked = packing == TR_PACKING_NONE ? "" : " (unpacked)";
        const size_t size = put((enum tr_packing)packing, text, TEXT, packed);
        tr_inflate *inflate = begin(packed, size, (enum tr_packing)packing);
        assert_int_equal(tr_inflate_exact(inflate, out, 40, "a head"), TR_OK);
        assert_memory_equal(out, text, 40);
        assert_int_equal(tr_inflate_end(inflate), TR_EFORMAT);
        snprintf(message, sizeof message,
                 "it: trailing bytes at offset 40%s, where the contents should end; get "
                 "the file again",
                 unpacked);
        assert_string_equal(tr_error_message(), message);
        assert_int_equal(tr_inflate_exact(inflate, out, 3, "a label"), TR_EFORMAT);
        snprintf(message, sizeof message,
                 "it: truncated at offset 43%s: a label should take 3 bytes, 2 are there; "
                 "get the file again",
                 unpacked);
        assert_string_equal(tr_error_message(), message);
        assert_int_equal(tr_inflate_exact(inflate, out, 0, "nothing"), TR_OK);
        assert_int_equal(tr_inflate_end(inflate), TR_OK);
        tr_inflate_destroy(&inflate);
    }
    tr_inflate_destroy(&(tr_inflate *){NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packings_are_known_by_their_first_bytes),
        cmocka_unit_test(pieces_of_any_size_give_all_bytes),
        cmocka_unit_test(members_of_gzip_follow_each_other),
        cmocka_unit_test(what_follows_the_packed_data_is_refused),
        cmocka_unit_test(cut_streams_are_refused),
        cmocka_unit_test(damaged_streams_are_refused),
        cmocka_unit_test(exact_sizes_and_ends_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
