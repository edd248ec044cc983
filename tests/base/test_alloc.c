/* Allocation: sizes, alignment, overflow, the hook, the counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "sanitized.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void test_blocks_are_counted(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live(), total = tr_alloc_total();
    void *blocks[] = {tr_alloc(3, 5), tr_alloc_zero(7, 9), tr_alloc_aligned(100, 4),
                      tr_strdup("x"), tr_format("%d", 42), tr_realloc(NULL, 2, 2)};
    int count = sizeof blocks / sizeof blocks[0];
    for (int i = 0; i < count; i++) assert_non_null(blocks[i]);
    assert_int_equal(tr_alloc_live(), live + count);
    assert_int_equal(tr_alloc_total(), total + count);
    blocks[0] = tr_realloc(blocks[0], 300, 5); /* the same block, a new allocation */
    assert_int_equal(tr_alloc_live(), live + count);
    assert_int_equal(tr_alloc_total(), total + count + 1);
    for (int i = 0; i < count; i++) tr_free(blocks[i]);
    tr_free(NULL);
    assert_int_equal(tr_alloc_live(), live);
}

static void test_contents(void **state)
{
    (void)state;
    unsigned char *zero = tr_alloc_zero(1000, 1);
    for (int i = 0; i < 1000; i++) assert_int_equal(zero[i], 0);
    memset(zero, 7, 1000);
    zero = tr_realloc(zero, 5000, 1);
    for (int i = 0; i < 1000; i++) assert_int_equal(zero[i], 7);
    tr_free(zero);
    char *text = tr_strdup("trireme");
    assert_string_equal(text, "trireme");
    tr_free(text);
    text = tr_format("%s has %d oars", "trireme", 170);
    assert_string_equal(text, "trireme has 170 oars");
    tr_free(text);
}

static int refuse(size_t size, void *user)
{
    (void)size;
    (void)user;
    return 1;
}

static void test_growth(void **state)
{
    (void)state;
    int64_t *array = NULL, total = tr_alloc_total();
    for (int64_t count = 0; count < 1000; count++) {
        assert_true(tr_grow(&array, count, sizeof *array));
        array[count] = count;
    }
    assert_int_equal(tr_alloc_total(), total + 11); /* at 0, 1, 2, 4, ... 512 */
    for (int64_t i = 0; i < 1000; i++) assert_int_equal(array[i], i);
    int64_t *kept = array;
    tr_alloc_set_hook(refuse, NULL);
    assert_true(tr_grow(&array, 1023, sizeof *array));
    assert_false(tr_grow(&array, 1024, sizeof *array));
    tr_alloc_set_hook(NULL, NULL);
    assert_ptr_equal(array, kept);
    tr_free(array);
}

static void test_nothing_is_a_valid_block(void **state)
{
    (void)state;
    void *blocks[] = {tr_alloc(0, 8), tr_alloc_zero(8, 0), tr_alloc_aligned(0, 0)};
    for (int i = 0; i < 3; i++) {
        assert_non_null(blocks[i]);
        for (int j = 0; j < i; j++) assert_ptr_not_equal(blocks[i], blocks[j]);
    }
    for (int i = 0; i < 3; i++) tr_free(blocks[i]);
}

static void test_alignment(void **state)
{
    (void)state;
    const size_t huge = (size_t)2 << 20;
    for (size_t bytes = 1; bytes <= 5000; bytes += 77) {
        void *block = tr_alloc_aligned(bytes, 1);
        assert_int_equal((uintptr_t)block % TR_CACHE_LINE, 0);
        memset(block, 1, bytes);
        tr_free(block);
    }
    for (size_t bytes = 2 * huge; bytes <= 2 * huge + 1; bytes++) {
        char *large = tr_alloc_aligned(bytes, 1);
        assert_int_equal((uintptr_t)large % huge, 0);
        large[0] = large[bytes - 1] = 1;
        tr_free(large);
    }
}

static void test_sizes_that_overflow(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    assert_null(tr_alloc(SIZE_MAX / 2, 3));
    assert_string_equal(tr_error_message(), "out of memory: 9223372036854775807 x 3 bytes wanted");
    assert_null(tr_alloc_zero(SIZE_MAX, SIZE_MAX));
    assert_null(tr_alloc_aligned((size_t)1 << 63, 2));
    assert_null(tr_alloc(1, (size_t)PTRDIFF_MAX + 1));
    assert_string_equal(tr_error_message(), "out of memory: 1 x 9223372036854775808 bytes wanted");
    char *block = tr_strdup("kept");
    assert_null(tr_realloc(block, SIZE_MAX, 2));
    /* Admitted, but more than any machine has: where AddressSanitizer ends the program. */
    if (!SANITIZED) {
        assert_null(tr_alloc(1, (size_t)PTRDIFF_MAX));
        assert_string_equal(tr_error_message(), "out of memory: 9223372036854775807 bytes wanted");
        assert_null(tr_realloc(block, (size_t)PTRDIFF_MAX, 1));
        assert_string_equal(tr_error_message(), "out of memory: 9223372036854775807 bytes wanted");
    }
    assert_string_equal(block, "kept");
    tr_free(block);
    assert_int_equal(tr_alloc_live(), live);
}

/* The allocator of zlib, whose blocks are counted as all others. */
static void test_for_zlib(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    unsigned char *block = tr_zlib_alloc(NULL, 300, 7);
    assert_non_null(block);
    memset(block, 1, 2100);
    assert_int_equal(tr_alloc_live(), live + 1);
    tr_zlib_free(NULL, block);
    assert_int_equal(tr_alloc_live(), live);
    tr_alloc_set_hook(refuse, NULL);
    assert_null(tr_zlib_alloc(NULL, 300, 7));
    tr_alloc_set_hook(NULL, NULL);
    assert_string_equal(tr_error_message(), "out of memory: 2100 bytes wanted");
}

/* Fails the allocation whose turn it is. */
static int countdown(size_t size, void *user)
{
    int *left = user;
    assert_true(size > 0);
    return --*left == 0;
}

static void test_hook_fails_one(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    for (int turn = 1; turn <= 6; turn++) {
        int left = turn;
        void *before = tr_strdup("kept");
        tr_alloc_set_hook(countdown, &left);
        void *blocks[] = {tr_alloc(1, 1),   tr_alloc_zero(1, 1),    tr_alloc_aligned(1, 1),
                          tr_strdup("abc"), tr_format("%s", "def"), tr_realloc(before, 100, 1)};
        tr_alloc_set_hook(NULL, NULL);
        for (int i = 0; i < 6; i++) assert_true((blocks[i] == NULL) == (i + 1 == turn));
        assert_non_null(strstr(tr_error_message(), "bytes wanted"));
        if (turn == 6) assert_string_equal(before, "kept");
        tr_free(turn == 6 ? before : NULL);
        for (int i = 0; i < 6; i++) tr_free(blocks[i]);
    }
    assert_int_equal(tr_alloc_live(), live);
}

/* Whole pages inside of what is given up go back to the system; what is beside it stays. */
static void test_discarding(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20, FROM = 70001, COUNT = 500003 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *block = tr_alloc_aligned(SIZE, 1), there = 1;
    assert_non_null(block);
    memset(block, 7, SIZE);
    uintptr_t inside = ((uintptr_t)block + FROM + page - 1) / page * page;
    void *first = block + (inside - (uintptr_t)block);
    assert_int_equal(mincore(first, page, &there), 0);
    assert_true(there & 1);
    tr_discard(block + FROM, COUNT);
    assert_int_equal(mincore(first, page, &there), 0);
    assert_false(there & 1);
    for (size_t i = 0; i < FROM; i++) assert_int_equal(block[i], 7);
    for (size_t i = FROM + COUNT; i < SIZE; i++) assert_int_equal(block[i], 7);
    memset(block, 8, SIZE); /* and may be used again */
    assert_int_equal(block[FROM + COUNT / 2], 8);
    tr_discard(block + 1, 10); /* no whole page */
    assert_int_equal(block[5], 8);
    tr_free(block);
}

/* Of shared memory the pages go for all that map it, those beside them for nobody. */
static void test_discarding_shared_memory(void **state)
{
    (void)state;
    enum { PAGES = 12, FROM = 3, COUNT = 4 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *block =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(block != MAP_FAILED);
    memset(block, 7, PAGES * page);
    tr_discard(block + FROM * page - 1, COUNT * page + 2); /* a byte of the page before, and of that behind */
    for (size_t i = 0; i < PAGES * page; i++)
        assert_int_equal(block[i], i / page >= FROM && i / page < FROM + COUNT ? 0 : 7);
    /* All of two pages but their first, or their last byte, of which one page each is whole. */
    memset(block, 7, PAGES * page);
    tr_discard(block + 1, 2 * page - 1);
    tr_discard(block + 4 * page, 2 * page - 1);
    for (size_t i = 0; i < PAGES * page; i++)
        assert_int_equal(block[i], i / page == 1 || i / page == 4 ? 0 : 7);
    tr_discard(block + 7 * page, page); /* a page that is just that */
    assert_int_equal(block[7 * page], 0);
    assert_int_equal(block[8 * page - 1], 0);
    tr_discard(block + 9 * page + 1, page - 1);
    assert_int_equal(block[9 * page + 1], 7);
    munmap(block, PAGES * page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_counted),
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_nothing_is_a_valid_block),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_sizes_that_overflow),
        cmocka_unit_test(test_for_zlib),
        cmocka_unit_test(test_hook_fails_one),
        cmocka_unit_test(test_discarding),
        cmocka_unit_test(test_discarding_shared_memory),
    };
    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
