/* Unpacking everything at once: up to a limit, shown to a check piece by piece, and as memory allows. */
#include "data/files/packed.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { COPIES = 17000, ZEROS = 1 + 258 * COPIES };

static uint8_t zeros[ZEROS], packed_zeros[2 * COPIES];

struct seen {
    size_t bytes, largest, fails_after;
};

static tr_status look(void *user, const uint8_t *piece, size_t size)
{
    struct seen *seen = user;
    assert_true(size > 0);
    assert_memory_equal(piece, zeros, size);
    seen->bytes += size;
    if (size > seen->largest) seen->largest = size;
    return seen->fails_after && seen->bytes >= seen->fails_after ? TR_EPEER : TR_OK;
}

static tr_status all_of(enum tr_packing packing, size_t size, size_t limit, struct seen *seen, size_t *length)
{
    tr_inflate *inflate;
    assert_int_equal(tr_inflate_create("it", packed_zeros, size, packing, &inflate), TR_OK);
    uint8_t *out = NULL;
    const tr_status status = tr_inflate_all(inflate, limit, seen ? look : NULL, seen, &out, length);
    if (status == TR_OK) assert_memory_equal(out, zeros, *length);
    tr_free(out);
    tr_inflate_destroy(&inflate);
    assert_int_equal(tr_alloc_live(), 0);
    return status;
}

static void all_bytes_are_unpacked_up_to_a_limit(void **state)
{
    (void)state;
    char message[128];
    for (int packing = TR_PACKING_GZIP; packing <= TR_PACKING_ZLIB; packing++) {
        memset(packed_zeros, 0, sizeof packed_zeros);
        const size_t size = put_zeros((enum tr_packing)packing, zeros, COPIES, packed_zeros);
        struct seen seen = {0};
        size_t length = 0;
        assert_int_equal(all_of((enum tr_packing)packing, size, TR_UNPACKED_MAX, &seen, &length), TR_OK);
        assert_int_equal(length, ZEROS);
        assert_int_equal(seen.bytes, ZEROS);
        assert_true(seen.largest <= (size_t)4 << 20);
        assert_int_equal(all_of((enum tr_packing)packing, size, ZEROS, NULL, &length), TR_OK);
        assert_int_equal(length, ZEROS);
        assert_int_equal(all_of((enum tr_packing)packing, size, ZEROS - 1, NULL, &length), TR_EFORMAT);
        snprintf(message, sizeof message, "it: unpacks to more than %d bytes; unpack the file first",
                 ZEROS - 1);
        assert_string_equal(tr_error_message(), message);
        seen = (struct seen){.fails_after = 1};
        assert_int_equal(all_of((enum tr_packing)packing, size, ZEROS, &seen, &length), TR_EPEER);
        seen = (struct seen){.fails_after = ZEROS};
        assert_int_equal(all_of((enum tr_packing)packing, size, ZEROS, &seen, &length), TR_EPEER);
        assert_int_equal(seen.bytes, ZEROS);
        assert_int_equal(all_of((enum tr_packing)packing, size - 1, ZEROS, NULL, &length), TR_EFORMAT);
        packed_zeros[size - 1] ^= 1;
        assert_int_equal(all_of((enum tr_packing)packing, size, ZEROS, NULL, &length), TR_ECORRUPT);
    }
}

/* Memory grows as bytes arrive, so that several allocations may fail. */
static void memory_that_fails_is_said(void **state)
{
    (void)state;
    memset(packed_zeros, 0, sizeof packed_zeros);
    const size_t size = put_zeros(TR_PACKING_ZLIB, zeros, COPIES, packed_zeros);
    int64_t at = 0;
    for (bool done = false; !done; at++) {
        uint8_t *out = NULL;
        size_t length = 0;
        tr_inflate *inflate = NULL;
        refuse_begin(at);
        tr_status status = tr_inflate_create("it", packed_zeros, size, TR_PACKING_ZLIB, &inflate);
        if (status == TR_OK) status = tr_inflate_all(inflate, ZEROS, NULL, NULL, &out, &length);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) assert_int_equal(length, ZEROS);
        tr_free(out);
        tr_inflate_destroy(&inflate);
        assert_int_equal(tr_alloc_live(), 0);
    }
    assert_true(at > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bytes_are_unpacked_up_to_a_limit),
        cmocka_unit_test(memory_that_fails_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
