/* Memory that processes of a host share: made, mapped by a key, and gone; keys and sizes that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/mpi/memory.h"
#include "support/files/descriptors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* How often this process has such memory mapped. */
static int mapped(void)
{
    char line[512];
    int count = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) count += strstr(line, "memfd:trireme") != NULL;
    fclose(file);
    return count;
}

static int descriptor_of(const char *key)
{
    int process, number;
    assert_int_equal(sscanf(key, "%d %d", &process, &number), 2);
    assert_int_equal(process, getpid());
    return number;
}

static void memory_is_one(void **state)
{
    enum { BYTES = 3 << 16 };
    char key[TR_SHARE_KEY], *mine = NULL, *other = NULL;
    void *memory = NULL;
    (void)state;
    const int open = descriptors_open(), before = mapped();
    assert_int_equal(tr_memory_share(NULL, BYTES, 1 << 16, 2 << 16, &memory, key), TR_OK);
    mine = memory;
    for (int i = 0; i < BYTES; i++) assert_int_equal(mine[i], 0);
    assert_int_equal(tr_memory_map(NULL, BYTES, key, &memory), TR_OK);
    other = memory;
    assert_ptr_not_equal(mine, other);
    assert_int_equal(descriptors_open(), open + 1); /* the one of the key */
    assert_int_equal(mapped(), before + 2);
    mine[0] = 1;
    other[BYTES - 1] = 2;
    assert_int_equal(other[0], 1);
    assert_int_equal(mine[BYTES - 1], 2);
    /* The key ends, what is mapped stays. */
    tr_memory_mapped(NULL, key);
    assert_int_equal(descriptors_open(), open);
    assert_int_equal(tr_memory_map(NULL, BYTES, key, &memory), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "cannot open shared memory /proc/"));
    assert_ptr_equal(memory, other);
    other[5] = 3;
    assert_int_equal(mine[5], 3);
    tr_memory_unmap(NULL, BYTES, mine);
    assert_int_equal(mapped(), before + 1);
    tr_memory_unmap(NULL, BYTES, other);
    assert_int_equal(mapped(), before);
}

/* Of what is reserved every page is there; where nothing is, none. */
static void pages_are_reserved(void **state)
{
    enum { PAGES = 16 };
    static const int ranges[][2] = {{0, 0}, {0, PAGES}, {3, 5}, {PAGES - 1, PAGES}, {7, 7}, {5, 3}};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        struct stat facts;
        char key[TR_SHARE_KEY];
        void *memory;
        const int *range = ranges[i], pages = range[1] > range[0] ? range[1] - range[0] : 0;
        assert_int_equal(tr_memory_share(NULL, PAGES * page, (size_t)range[0] * page, (size_t)range[1] * page,
                                         &memory, key),
                         TR_OK);
        assert_int_equal(fstat(descriptor_of(key), &facts), 0);
        assert_int_equal(facts.st_size, PAGES * page);
        assert_true((size_t)facts.st_blocks * 512 >= (size_t)pages * page);
        if (pages == 0) assert_int_equal(facts.st_blocks, 0);
        tr_memory_mapped(NULL, key);
        tr_memory_unmap(NULL, PAGES * page, memory);
    }
}

static void keys_that_are_none_are_refused(void **state)
{
    static const char *const bad[] = {"", " ", "x", "12", "12 ", "12 x", "x 12", "-"};
    char key[TR_SHARE_KEY];
    void *memory = NULL;
    (void)state;
    const int open = descriptors_open();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memset(key, 0, sizeof key);
        memcpy(key, bad[i], strlen(bad[i]));
        if (tr_memory_map(NULL, 1, key, &memory) != TR_EMISMATCH) fail_msg("\"%s\" is taken", bad[i]);
        assert_string_equal(tr_error_message(), "a key to shared memory is no such key");
        tr_memory_mapped(NULL, key); /* closes nothing */
    }
    memset(key, ' ', sizeof key); /* without an end: what follows it is not read */
    assert_int_equal(tr_memory_map(NULL, 1, key, &memory), TR_EMISMATCH);
    static const char *const absent[] = {"1 1000000", "-1 3", "999999999 0"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        snprintf(key, sizeof key, "%s", absent[i]);
        assert_int_equal(tr_memory_map(NULL, 1, key, &memory), TR_EUNSUPPORTED);
    }
    assert_null(memory);
    assert_int_equal(descriptors_open(), open);
}

/* Whoever reads beyond the end of a file ends by a signal. */
static void smaller_memory_is_refused(void **state)
{
    char key[TR_SHARE_KEY], text[100];
    void *memory, *other = NULL;
    (void)state;
    const int open = descriptors_open();
    assert_int_equal(tr_memory_share(NULL, 10000, 0, 0, &memory, key), TR_OK);
    assert_int_equal(tr_memory_map(NULL, 10001, key, &other), TR_EMISMATCH);
    snprintf(text, sizeof text, "shared memory /proc/%d/fd/%d is smaller than 10001 bytes", (int)getpid(),
             descriptor_of(key));
    assert_string_equal(tr_error_message(), text);
    assert_null(other);
    assert_int_equal(descriptors_open(), open + 1);
    assert_int_equal(tr_memory_map(NULL, 10000, key, &other), TR_OK);
    tr_memory_unmap(NULL, 10000, other);
    assert_int_equal(tr_memory_map(NULL, 9999, key, &other), TR_OK);
    tr_memory_unmap(NULL, 9999, other);
    tr_memory_mapped(NULL, key);
    tr_memory_unmap(NULL, 10000, memory);
    assert_int_equal(descriptors_open(), open);
}

static void what_cannot_be_had_is_refused(void **state)
{
    char key[TR_SHARE_KEY] = "unchanged";
    void *memory = NULL;
    (void)state;
    const int open = descriptors_open();
    static const size_t sizes[] = {SIZE_MAX, (size_t)INT64_MAX + 1};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tr_memory_share(NULL, sizes[i], 0, 7, &memory, key), TR_ENOMEM);
        assert_string_equal(tr_error_message(), "cannot have 7 bytes of shared memory: File too large");
    }
    /* The file may be so long, but no process has room for it. */
    assert_int_equal(tr_memory_share(NULL, (size_t)1 << 60, 0, 0, &memory, key), TR_ENOMEM);
    assert_string_equal(tr_error_message(),
                        "cannot map 1152921504606846976 bytes of shared memory: Cannot allocate memory");
    assert_int_equal(tr_memory_share(NULL, 0, 0, 0, &memory, key), TR_ENOMEM);
    assert_string_equal(tr_error_message(), "cannot map 0 bytes of shared memory: Invalid argument");
    assert_null(memory);
    assert_string_equal(key, "unchanged");
    assert_int_equal(descriptors_open(), open);
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = descriptors_limit(0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    tr_status status = tr_memory_share(NULL, 100, 0, 100, &memory, key);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(status, TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(), "cannot make shared memory: Too many open files");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_one),
        cmocka_unit_test(pages_are_reserved),
        cmocka_unit_test(keys_that_are_none_are_refused),
        cmocka_unit_test(smaller_memory_is_refused),
        cmocka_unit_test(what_cannot_be_had_is_refused),
    };
    return cmocka_run_group_tests_name("comm.mpi_memory", tests, NULL, NULL);
}
