/* The memory that ranks of a host share: whom each notice reaches, once. */
#include "comm/local/area.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { RANKS = 70 }; /* more than a word has bits */

static struct local_area area;
static uint32_t bell[RANKS];
static uint64_t changes;

static int make(void **state)
{
    (void)state;
    return tr_local_area_create(RANKS, &area) == TR_OK ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    tr_local_area_close(&area);
    return 0;
}

static void note(void)
{
    changes = atomic_load(&area.header->changes);
    for (int r = 0; r < RANKS; r++) bell[r] = atomic_load(&area.record[r].bell);
}

/* Whether the bell of `only` (-1: of everybody) rang since note(), and nobody else's. */
static void expect_rung(int only, uint64_t more_changes)
{
    for (int r = 0; r < RANKS; r++)
        if ((atomic_load(&area.record[r].bell) != bell[r]) != (only < 0 || r == only))
            fail_msg("rank %d of those that %d means", r, only);
    assert_int_equal(atomic_load(&area.header->changes), changes + more_changes);
}

static void expect_silence(void)
{
    for (int r = 0; r < RANKS; r++) assert_int_equal(atomic_load(&area.record[r].bell), bell[r]);
    assert_int_equal(atomic_load(&area.header->changes), changes);
}

static void bells_are_of_those_who_are_meant(void **state)
{
    (void)state;
    note();
    tr_local_wake(&area, 0);
    expect_rung(0, 0);
    note();
    tr_local_wake(&area, RANKS - 1);
    expect_rung(RANKS - 1, 0);
    note();
    tr_local_wake_all(&area);
    expect_rung(-1, 0);
    note();
    tr_local_change(&area);
    expect_rung(-1, 1);
}

static void knocks_name_who_knocks(void **state)
{
    (void)state;
    static const int from[] = {0, 1, 63, 64, 69};
    uint64_t mail[LOCAL_WORDS] = {0}, letters = 0;
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        note();
        tr_local_knock(&area, from[i], 2);
        expect_rung(2, 0);
        mail[from[i] / 64] |= (uint64_t)1 << from[i] % 64;
        letters |= (uint64_t)1 << from[i] / 64;
        for (int w = 0; w < LOCAL_WORDS; w++) assert_true(atomic_load(&area.record[2].mail[w]) == mail[w]);
        assert_true(atomic_load(&area.record[2].letters) == letters);
        /* Nobody looked yet: the bell does not ring again, but what the first one may have left out is there.
         */
        note();
        atomic_store(&area.record[2].letters, 0);
        tr_local_knock(&area, from[i], 2);
        expect_silence();
        assert_true(atomic_load(&area.record[2].letters) == (uint64_t)1 << from[i] / 64);
        atomic_store(&area.record[2].letters, letters);
    }
    atomic_store(&area.record[2].mail[1], 0);
    note();
    tr_local_knock(&area, 64, 2);
    expect_rung(2, 0);
}

static void ends_are_told_once(void **state)
{
    (void)state;
    note();
    tr_local_bury(&area, 66);
    expect_rung(-1, 1);
    assert_int_equal(atomic_load(&area.record[66].ended), 1);
    for (int r = 0; r < RANKS; r++) {
        assert_true(atomic_load(&area.record[r].mail[1]) == (uint64_t)1 << 2);
        assert_int_equal(atomic_load(&area.record[r].ended), r == 66);
    }
    note();
    tr_local_bury(&area, 66);
    expect_silence();
}

static void the_first_to_give_up_is_known(void **state)
{
    (void)state;
    char why[16];
    assert_int_equal(tr_local_first_to_give_up(&area), -1);
    note();
    tr_local_give_up(&area, 0, "the first");
    expect_rung(-1, 1);
    assert_int_equal(atomic_load(&area.record[0].state), LOCAL_GAVE_UP);
    assert_int_equal(tr_local_first_to_give_up(&area), 0);
    note();
    tr_local_give_up(&area, 0, "again");
    expect_silence();
    tr_local_words(&area, 0, why, sizeof why);
    assert_string_equal(why, "the first");
    note();
    tr_local_give_up(&area, RANKS - 1, "one that is longer than there is room for");
    expect_rung(-1, 1);
    assert_int_equal(tr_local_first_to_give_up(&area), 0);
    tr_local_words(&area, RANKS - 1, why, sizeof why);
    assert_string_equal(why, "one that is lon");
    /* Others wrote it: no rank that there is not. */
    atomic_store(&area.header->first, RANKS);
    assert_int_equal(tr_local_first_to_give_up(&area), RANKS - 1);
    atomic_store(&area.header->first, RANKS + 1);
    assert_int_equal(tr_local_first_to_give_up(&area), -1);
    atomic_store(&area.header->first, -1);
    assert_int_equal(tr_local_first_to_give_up(&area), -1);
}

/* Who looks at a bell that has rung since does not sleep. */
static void a_bell_that_rang_lets_nobody_sleep(void **state)
{
    (void)state;
    uint32_t moment = atomic_load(&area.record[1].bell);
    tr_local_wake(&area, 1);
    tr_local_sleep(&area, 1, moment, 1e6);
    assert_int_equal(atomic_load(&area.record[1].sleepers), 0);
}

/* Each pair has a ring: as large as fits a cache, smaller where there are many. */
static void rings_share_what_there_is(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 16, 17, 64, 100, 512, TR_LOCAL_RANKS_MOST};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct local_area some;
        const size_t pairs = (size_t)sizes[i] * (size_t)sizes[i], all = (size_t)64 << 20;
        assert_int_equal(tr_local_area_create(sizes[i], &some), TR_OK);
        const size_t ring = some.ring_bytes;
        assert_true(ring <= 256 << 10 && ring >= 4 << 10);
        assert_true(ring * pairs <= all || ring == 4 << 10);
        assert_true(ring == 256 << 10 || 2 * ring * pairs > all);
        /* They follow each other, and the records. */
        char *first = (char *)tr_local_area_ring(&some, 0, 0);
        assert_true(first >= (char *)&some.record[sizes[i]]);
        assert_ptr_equal(tr_local_area_ring(&some, 0, sizes[i] - 1), first + ring * (size_t)(sizes[i] - 1));
        char *last = (char *)tr_local_area_ring(&some, sizes[i] - 1, sizes[i] - 1);
        assert_ptr_equal(last, first + ring * (pairs - 1));
        assert_true(last + ring <= some.memory + some.bytes);
        last[ring - 1] = 1;
        assert_true(some.length >= some.bytes);
        tr_local_area_close(&some);
        assert_null(some.memory);
        assert_int_equal(some.descriptor, -1);
        tr_local_area_close(&some);
    }
}

/* The file is as long as it may be: what it has beyond rings is for windows. */
static void files_have_limits(void **state)
{
    enum { GRAIN = 1 << 16 };
    struct rlimit before, limit;
    struct local_area some, other;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    if (before.rlim_max != RLIM_INFINITY) skip();
    assert_int_equal(tr_local_area_create(3, &some), TR_OK);
    const uint64_t bytes = some.bytes;
    assert_int_equal(bytes % GRAIN, 0);
    assert_true(some.length >= (uint64_t)1 << 32);
    tr_local_area_close(&some);
    const int64_t more[] = {-1, 0, 5, GRAIN - 1, GRAIN, 7 * GRAIN + 9};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        limit = before;
        limit.rlim_cur = (rlim_t)((int64_t)bytes + more[i]);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        tr_status status = tr_local_area_create(3, &some);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(status, more[i] < 0 ? TR_EUNSUPPORTED : TR_OK);
        if (status != TR_OK) {
            assert_string_equal(tr_error_message(), "cannot make memory for 3 ranks to share: File too large "
                                                    "(raise the limit of file sizes, ulimit -f)");
            assert_int_equal(some.descriptor, -1);
            continue;
        }
        assert_int_equal(some.length, bytes + (uint64_t)(more[i] / GRAIN * GRAIN));
        /* Another process sees the same. */
        int copy = dup(some.descriptor);
        assert_int_equal(tr_local_area_open(copy, 3, &other), TR_OK);
        assert_int_equal(other.length, some.length);
        assert_int_equal(other.bytes, some.bytes);
        assert_int_equal(other.descriptor, copy);
        assert_true(fcntl(copy, F_GETFD) & FD_CLOEXEC);
        some.header->joined = 2;
        assert_int_equal(other.header->joined, 2);
        assert_int_equal(atomic_load(&other.header->top), other.bytes);
        tr_local_area_close(&other);
        assert_int_equal(fcntl(copy, F_GETFD), -1);
        tr_local_area_close(&some);
    }
}

/* A file system that ends sooner than others: the file is half as long, as often as needed, in whole grains.
 */
static off_t longest; /* 0: any length */
static int tried, error;

int __real_ftruncate(int file, off_t length);
int __wrap_ftruncate(int file, off_t length);

int __wrap_ftruncate(int file, off_t length)
{
    tried++;
    if (longest == 0 || length <= longest) return __real_ftruncate(file, length);
    errno = error;
    return -1;
}

static void file_systems_have_limits(void **state)
{
    static const int errors[] = {EFBIG, EINVAL};
    struct local_area some;
    (void)state;
    assert_int_equal(tr_local_area_create(2, &some), TR_OK);
    const off_t bytes = (off_t)some.bytes;
    tr_local_area_close(&some);
    for (int i = 0; i < 2; i++) {
        error = errors[i];
        longest = (off_t)1 << 40;
        tried = 0;
        assert_int_equal(tr_local_area_create(2, &some), TR_OK);
        assert_int_equal(some.length, (uint64_t)longest);
        assert_int_equal(tried, 11); /* from 2^50 on */
        tr_local_area_close(&some);
        longest = bytes;
        while ((longest & (longest - 1)) != 0) longest += longest & -longest;
        assert_int_equal(tr_local_area_create(2, &some), TR_OK); /* there is just room for the rings */
        assert_int_equal(some.length, (uint64_t)longest);
        tr_local_area_close(&some);
        longest = bytes - 1;
        assert_int_equal(tr_local_area_create(2, &some), TR_EUNSUPPORTED);
        assert_string_equal(tr_error_message(),
                            "cannot make memory for 2 ranks to share: File too large (raise the "
                            "limit of file sizes, ulimit -f)");
    }
    error = ENOSPC; /* which no shorter file changes */
    tried = 0;
    assert_int_equal(tr_local_area_create(2, &some), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(),
                        "cannot make memory for 2 ranks to share: No space left on device");
    assert_int_equal(tried, 1);
    longest = 0;
}

/* A text without an end is read to its end. */
static void words_end(void **state)
{
    (void)state;
    char why[LOCAL_WHY + 100];
    memset(area.record[1].why, 'x', sizeof area.record[1].why);
    tr_local_words(&area, 1, why, sizeof why);
    assert_int_equal(strlen(why), LOCAL_WHY);
    tr_local_words(&area, 1, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bells_are_of_those_who_are_meant, make, drop),
        cmocka_unit_test_setup_teardown(knocks_name_who_knocks, make, drop),
        cmocka_unit_test_setup_teardown(ends_are_told_once, make, drop),
        cmocka_unit_test_setup_teardown(the_first_to_give_up_is_known, make, drop),
        cmocka_unit_test_setup_teardown(a_bell_that_rang_lets_nobody_sleep, make, drop),
        cmocka_unit_test_setup_teardown(words_end, make, drop),
        cmocka_unit_test(rings_share_what_there_is),
        cmocka_unit_test(files_have_limits),
        cmocka_unit_test(file_systems_have_limits),
    };
    return cmocka_run_group_tests_name("comm.local_area", tests, NULL, NULL);
}
