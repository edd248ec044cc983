/* Windows in the memory that ranks of a host share: by a key, to the last user; and keys, sizes and counts
 * that others may have damaged. Both ranks are this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/local/extents.h"
#include "refuse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HEAD ((uint64_t)1 << 16) /* of each; then whole pieces of this size */

static struct local_area area;
static struct local_extents mine, other;
static int64_t live;

static int begin(void **state)
{
    (void)state;
    live = tr_alloc_live();
    mine = other = (struct local_extents){.area = &area};
    return tr_local_area_create(2, &area) == TR_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    tr_local_extents_release(&mine);
    tr_local_extents_release(&other);
    tr_local_area_close(&area);
    return tr_alloc_live() == live ? 0 : -1;
}

/* Bytes of the file that take memory. */
static int64_t taken(void)
{
    struct stat facts;
    assert_int_equal(fstat(area.descriptor, &facts), 0);
    return (int64_t)facts.st_blocks * 512;
}

static uint64_t place_of(const char *key)
{
    uint64_t at;
    assert_int_equal(sscanf(key, "%" SCNu64, &at), 1);
    return at;
}

static void windows_are_shared_to_the_last_user(void **state)
{
    enum { BYTES = 3 << 16 };
    char key[TR_SHARE_KEY];
    void *a, *b, *c;
    (void)state;
    const int64_t before = taken();
    assert_int_equal(tr_local_extent_share(&mine, BYTES, 0, BYTES, &a, key), TR_OK);
    assert_int_equal(place_of(key), area.bytes);
    assert_true(taken() >= before + BYTES);
    for (int i = 0; i < BYTES; i++) assert_int_equal(((char *)a)[i], 0);
    assert_int_equal(tr_local_extent_map(&other, BYTES, key, &b), TR_OK);
    assert_int_equal(tr_local_extent_map(&other, BYTES, key, &c), TR_OK);
    memset(a, 7, BYTES);
    for (int i = 0; i < BYTES; i++) assert_true(((char *)b)[i] == 7 && ((char *)c)[i] == 7);
    tr_local_extent_unmap(&other, b);
    tr_local_extent_unmap(&mine, a);
    assert_int_equal(((char *)c)[BYTES - 1], 7);
    assert_true(taken() >= before + BYTES);
    tr_local_extent_unmap(&other, c);
    assert_int_equal(taken(), before); /* its head, too */
    assert_null(mine.first);
    assert_null(other.first);
    /* Nobody comes after the last one. */
    assert_int_equal(tr_local_extent_map(&other, BYTES, key, &b), TR_EMISMATCH);
    assert_null(other.first);
}

static void places_follow_each_other(void **state)
{
    static const struct {
        size_t bytes, pieces;
    } cases[] = {{1, 2}, {HEAD, 2}, {HEAD + 1, 3}, {0, 1}, {5 * HEAD - 1, 6}, {5 * HEAD, 6}};
    enum { CASES = sizeof cases / sizeof cases[0] };
    void *memory[CASES];
    uint64_t expected = area.bytes;
    (void)state;
    for (int i = 0; i < CASES; i++) {
        char key[TR_SHARE_KEY];
        assert_int_equal(tr_local_extent_share(&mine, cases[i].bytes, 0, cases[i].bytes, &memory[i], key),
                         TR_OK);
        assert_int_equal(place_of(key), expected);
        memset(memory[i], 1 + i, cases[i].bytes);
        expected += cases[i].pieces * HEAD;
    }
    for (int i = 0; i < CASES; i++)
        for (size_t k = 0; k < cases[i].bytes; k++) assert_int_equal(((char *)memory[i])[k], 1 + i);
    /* Released in another order than they were made, some not at all. */
    tr_local_extent_unmap(&mine, memory[2]);
    tr_local_extent_unmap(&mine, memory[5]);
    tr_local_extent_unmap(&mine, memory[0]);
    assert_int_equal(((char *)memory[1])[0], 2);
    assert_int_equal(((char *)memory[4])[0], 5);
}

/* Of a window of which a part is used, that part is there. */
static void parts_are_reserved(void **state)
{
    enum { BYTES = 64 << 16 };
    char key[TR_SHARE_KEY];
    void *a, *b;
    (void)state;
    const int64_t before = taken();
    assert_int_equal(tr_local_extent_share(&mine, BYTES, 3 << 16, 7 << 16, &a, key), TR_OK);
    const int64_t part = taken() - before;
    assert_true(part >= 4 << 16 && part < 8 << 16);
    assert_int_equal(tr_local_extent_share(&mine, BYTES, 5, 5, &b, key), TR_OK);
    assert_true(taken() - before - part < 2 << 16); /* its head */
}

static void expect_malformed(const char *text)
{
    char key[TR_SHARE_KEY] = "";
    void *memory = NULL;
    memcpy(key, text, strlen(text) < sizeof key ? strlen(text) : sizeof key);
    if (tr_local_extent_map(&other, 100, key, &memory) != TR_EMISMATCH) fail_msg("\"%s\" is taken", text);
    assert_string_equal(tr_error_message(),
                        "a key to shared memory is malformed; all ranks must run the same program");
    assert_null(memory);
    assert_null(other.first);
}

static void expect_malformed_place(uint64_t at)
{
    char text[TR_SHARE_KEY];
    snprintf(text, sizeof text, "%" PRIu64, at);
    expect_malformed(text);
}

static void keys_are_checked(void **state)
{
    char key[TR_SHARE_KEY], blank[2 * TR_SHARE_KEY];
    void *memory;
    (void)state;
    expect_malformed_place(area.bytes); /* nothing is there yet */
    assert_int_equal(tr_local_extent_share(&mine, 100, 0, 100, &memory, key), TR_OK);
    const uint64_t at = place_of(key), top = atomic_load(&area.header->top);
    expect_malformed("");
    expect_malformed("x");
    memset(blank, ' ', sizeof blank);
    snprintf(blank + TR_SHARE_KEY, TR_SHARE_KEY, "%" PRIu64, at); /* beyond the end of the key */
    expect_malformed(blank);
    expect_malformed_place(at + 1);
    expect_malformed_place(at - 1);
    expect_malformed_place(at + 64);
    expect_malformed_place(at - HEAD);
    expect_malformed_place(0);
    expect_malformed_place(top);
    expect_malformed_place(top + HEAD);
    expect_malformed_place(top - HEAD); /* too little follows for a head and 100 bytes */
    expect_malformed_place(UINT64_MAX / HEAD * HEAD);
    atomic_store(&area.header->top, area.length + HEAD); /* others wrote that */
    expect_malformed(key);
    atomic_store(&area.header->top, top);
    /* The size must be that of the window. */
    static const size_t sizes[] = {99, 101, 0, HEAD};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char text[100];
        assert_int_equal(tr_local_extent_map(&other, sizes[i], key, &memory), TR_EMISMATCH);
        snprintf(text, sizeof text, "shared memory of %zu bytes is not there, or of another size", sizes[i]);
        assert_string_equal(tr_error_message(), text);
        assert_null(other.first);
    }
    assert_int_equal(tr_local_extent_map(&other, HEAD + 1, key, &memory), TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "malformed"));
    assert_int_equal(tr_local_extent_map(&other, SIZE_MAX, key, &memory), TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "malformed"));
    assert_int_equal(tr_local_extent_map(&other, 100, key, &memory), TR_OK);
}

/* As many users as there may be ranks. */
static void users_are_counted(void **state)
{
    char key[TR_SHARE_KEY];
    void *memory, *last = NULL;
    (void)state;
    assert_int_equal(tr_local_extent_share(&mine, 100, 0, 100, &memory, key), TR_OK);
    for (int i = 1; i < TR_LOCAL_RANKS_MOST; i++)
        assert_int_equal(tr_local_extent_map(&other, 100, key, &last), TR_OK);
    assert_int_equal(tr_local_extent_map(&other, 100, key, &memory), TR_EMISMATCH);
    tr_local_extent_unmap(&other, last);
    assert_int_equal(tr_local_extent_map(&other, 100, key, &memory), TR_OK);
}

static void what_has_no_place_is_refused(void **state)
{
    char key[TR_SHARE_KEY] = "unchanged", text[100];
    void *memory = NULL;
    const uint64_t top = atomic_load(&area.header->top);
    (void)state;
    const int64_t before = taken();
    const size_t sizes[] = {SIZE_MAX, SIZE_MAX - HEAD, area.length, area.length - top - HEAD + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(tr_local_extent_share(&mine, sizes[i], 0, 1, &memory, key), TR_ENOMEM);
        snprintf(text, sizeof text, "there is no place for %zu bytes of shared memory", sizes[i]);
        assert_string_equal(tr_error_message(), text);
        assert_int_equal(atomic_load(&area.header->top), top);
    }
    /* Others wrote where the next one begins. */
    const uint64_t wrong[] = {0, area.bytes - 1, area.length + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        atomic_store(&area.header->top, wrong[i]);
        assert_int_equal(tr_local_extent_share(&mine, 100, 0, 100, &memory, key), TR_ENOMEM);
        assert_int_equal(atomic_load(&area.header->top), wrong[i]);
    }
    atomic_store(&area.header->top, area.length); /* all is used */
    assert_int_equal(tr_local_extent_share(&mine, 100, 0, 100, &memory, key), TR_ENOMEM);
    atomic_store(&area.header->top, top);
    assert_null(memory);
    assert_string_equal(key, "unchanged");
    assert_int_equal(taken(), before);
}

static void memory_that_fails_is_given_back(void **state)
{
    char key[TR_SHARE_KEY];
    void *memory;
    (void)state;
    const int64_t before = taken();
    refuse_begin(0);
    assert_int_equal(tr_local_extent_share(&mine, 1 << 20, 0, 1 << 20, &memory, key), TR_ENOMEM);
    assert_false(refuse_end());
    assert_int_equal(taken(), before);
    assert_null(mine.first);
    assert_int_equal(tr_local_extent_share(&mine, 100, 0, 100, &memory, key), TR_OK);
    refuse_begin(0);
    assert_int_equal(tr_local_extent_map(&other, 100, key, &memory), TR_ENOMEM);
    assert_false(refuse_end());
    assert_null(other.first);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(windows_are_shared_to_the_last_user),
        TEST(places_follow_each_other),
        TEST(parts_are_reserved),
        TEST(keys_are_checked),
        TEST(users_are_counted),
        TEST(what_has_no_place_is_refused),
        TEST(memory_that_fails_is_given_back),
    };
    return cmocka_run_group_tests_name("comm.local_extents", tests, NULL, NULL);
}
