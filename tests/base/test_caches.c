/* Caches of processors, by what a system of files says, which may be anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sched.h>

#include "base/alloc.h"
#include "base/caches.h"
#include "base/files/file.h"
#include "scratch.h"

#define KIB ((int64_t)1 << 10)

/* Writes a file of a description, with its folders. */
static void put(int processor, int index, const char *name, const char *text)
{
    char path[SCRATCH_PATH], inside[128];
    snprintf(inside, sizeof inside, "sys/devices/system/cpu/cpu%d/cache/index%d/%s", processor, index, name);
    char *folder = tr_path_parent(scratch_join(path, scratch_place, inside));
    assert_int_equal(tr_file_make_directories(NULL, folder), TR_OK);
    tr_free(folder);
    assert_int_equal(tr_file_write_atomic(NULL, path, text, strlen(text)), TR_OK);
}

static void describe(int processor, int index, const char *level, const char *type, const char *size,
                     const char *list)
{
    put(processor, index, "level", level);
    put(processor, index, "type", type);
    put(processor, index, "size", size);
    put(processor, index, "shared_cpu_list", list);
}

static void expect(int processor, int level, int64_t bytes, int processors)
{
    struct tr_caches caches;
    tr_caches_look(scratch_place, processor, &caches);
    assert_int_equal(caches.level[level - 1].bytes, bytes);
    assert_int_equal(caches.level[level - 1].processors, processors);
}

static void of_data_and_of_both(void **state)
{
    (void)state;
    describe(0, 0, "1\n", "Data\n", "48K\n", "0,64\n");
    describe(0, 1, "1\n", "Instruction\n", "32K\n", "0,64\n");
    describe(0, 2, "2\n", "Unified\n", "2048K\n", "0,64\n");
    describe(0, 3, "3\n", "Unified\n", "60M\n", "0-31,64-95\n");
    describe(0, 4, "4\n", "Unified\n", "128M\n", "0-127\n");
    expect(0, 1, 48 * KIB, 2);
    expect(0, 2, 2048 * KIB, 2);
    expect(0, 3, 60 * 1024 * KIB, 64);
}

static void one_without_files_has_none(void **state)
{
    (void)state;
    for (int level = 1; level <= TR_CACHE_LEVELS; level++) expect(7, level, 0, 0);
    put(7, 0, "level", "1\n");
    put(7, 0, "type", "Data\n");
    put(7, 0, "shared_cpu_list", "7\n");
    expect(7, 1, 0, 0);
    put(7, 0, "size", "32K\n");
    expect(7, 1, 32 * KIB, 1);
}

/* Each would be the second level of processor 1, were it not for one file. */
static void what_cannot_be_is_not_believed(void **state)
{
    static const char *const sizes[] = {
        "",        "\n",          "K\n",      "0K\n", "-512K\n", "0x80000\n", "512G\n",
        "512KK\n", "512 K\n",     "plenty\n", "1K\n", "5000M\n", "512k\n",    "18446744073709551616K\n",
        "1e6\n",   "99999999K\n", " 512K\n",
    };
    static const char *const lists[] = {
        "",        "\n",   "-1\n", "1-\n",  "3-1\n",   "1,1\n",
        "0-3,2\n", "1,\n", "a\n",  "1;2\n", "70000\n", "0-99999999999999999999\n",
    };
    static const char *const levels[] = {"", "0\n", "4\n", "22\n", "-2\n", "two\n", "2K\n"};
    static const char *const types[] = {"", "data\n", "Instruction\n", "Unified Data\n"};
    char huge[70000];
    (void)state;
    describe(1, 2, "2\n", "Unified\n", "512K\n", "1\n");
    expect(1, 2, 512 * KIB, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        put(1, 2, "size", sizes[i]);
        expect(1, 2, 0, 0);
    }
    memset(huge, '1', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    put(1, 2, "size", huge);
    expect(1, 2, 0, 0);
    put(1, 2, "size", "512K\n");
    put(1, 2, "shared_cpu_list", huge);
    expect(1, 2, 0, 0);
    /* A list that is cut where a reader's memory ends would read as a shorter one. */
    for (int i = 0, at = 0; i < 2000; i++)
        at += snprintf(huge + at, sizeof huge - (size_t)at, "%s%d", i ? "," : "", 2 * i);
    put(1, 2, "shared_cpu_list", huge);
    expect(1, 2, 0, 0);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        put(1, 2, "shared_cpu_list", lists[i]);
        expect(1, 2, 0, 0);
    }
    put(1, 2, "shared_cpu_list", "0-1\n");
    expect(1, 2, 512 * KIB, 2);
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        put(1, 2, "level", levels[i]);
        expect(1, 2, 0, 0);
    }
    put(1, 2, "level", "2\n");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        put(1, 2, "type", types[i]);
        expect(1, 2, 0, 0);
    }
    put(1, 2, "type", "Unified\n");
    put(1, 2, "size", "262144");
    expect(1, 2, 256 * KIB, 2);
}

/* The smallest and the largest that there may be, and the last description that is looked at. */
static void limits_are_met(void **state)
{
    (void)state;
    static const struct {
        const char *size, *list;
        int64_t bytes;
        int processors;
    } cases[] = {{"4K\n", "0\n", 4 * KIB, 1},
                 {"4096\n", "65535\n", 4 * KIB, 1},
                 {"4095\n", "0\n", 0, 0},
                 {"3K\n", "0\n", 0, 0},
                 {"4096M\n", "0,1,3-4\n", 4096 * 1024 * KIB, 4},
                 {"4194304K\n", "0-65535\n", 4096 * 1024 * KIB, 65536},
                 {"4097M\n", "0\n", 0, 0},
                 {"4294967296\n", "1-1\n", 4096 * 1024 * KIB, 1},
                 {"4294967297\n", "0\n", 0, 0},
                 {"64K\n", "65536\n", 0, 0},
                 {"64K\n", "0-1,1-2\n", 0, 0},
                 {"64K\n", "0-1,2\n", 64 * KIB, 3}};
    char list[1100];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        describe(5, 11, "3\n", "Unified\n", cases[i].size, cases[i].list);
        expect(5, 3, cases[i].bytes, cases[i].processors);
    }
    describe(5, 12, "2\n", "Unified\n", "64K\n", "0\n");
    expect(5, 2, 0, 0);
    /* A line of 1022 bytes is whole, a longer one may have been cut. */
    for (int length = 1021; length <= 1024; length++) {
        memset(list, '0', sizeof list);
        list[length - 1] = '7';
        list[length] = '\0';
        put(5, 11, "shared_cpu_list", list);
        expect(5, 3, length <= 1022 ? 64 * KIB : 0, length <= 1022);
    }
    struct tr_caches caches;
    static char root[600];
    memset(root, 'r', sizeof root - 1);
    memset(&caches, 1, sizeof caches);
    tr_caches_look(root, 5, &caches);
    for (int level = 0; level < TR_CACHE_LEVELS; level++) assert_int_equal(caches.level[level].bytes, 0);
}

static void processors_of_two_kinds_have_the_least(void **state)
{
    (void)state;
    const struct tr_caches large = {{{48 * KIB, 1}, {2048 * KIB, 1}, {32768 * KIB, 16}}};
    const struct tr_caches small = {{{32 * KIB, 1}, {4096 * KIB, 4}, {32768 * KIB, 16}}};
    for (int i = 0; i < 2; i++) {
        const struct tr_caches least = i ? tr_caches_least(&large, &small) : tr_caches_least(&small, &large);
        assert_int_equal(least.level[0].bytes, 32 * KIB);
        assert_int_equal(least.level[1].bytes, 4096 * KIB);
        assert_int_equal(least.level[1].processors, 4);
        assert_int_equal(least.level[2].processors, 16);
    }
    /* What counts is the share of a processor; of equal ones the first stays. */
    const struct tr_caches alone = {{{8 * KIB, 1}, {64 * KIB, 1}, {64 * KIB, 2}}};
    const struct tr_caches shared = {{{16 * KIB, 4}, {128 * KIB, 2}, {96 * KIB, 2}}};
    const struct tr_caches share = tr_caches_least(&alone, &shared);
    assert_true(share.level[0].processors == 4 && share.level[1].processors == 1);
    assert_int_equal(share.level[2].bytes, 64 * KIB);
    const struct tr_caches none = {0};
    assert_int_equal(tr_caches_least(&large, &none).level[2].bytes, 0);
    assert_int_equal(tr_caches_least(&none, &large).level[2].bytes, 0);
}

static bool are_equal(const struct tr_caches *a, const struct tr_caches *b)
{
    for (int i = 0; i < TR_CACHE_LEVELS; i++)
        if (a->level[i].bytes != b->level[i].bytes || a->level[i].processors != b->level[i].processors)
            return false;
    return true;
}

/* Whatever machine this is. */
static void these_processors_can_be(void **state)
{
    (void)state;
    struct tr_caches caches;
    tr_caches_find(&caches);
    for (int i = 0; i < TR_CACHE_LEVELS; i++) {
        assert_true(caches.level[i].bytes >= 0);
        assert_true((caches.level[i].bytes > 0) == (caches.level[i].processors > 0));
    }
    /* Those of the first and of the last processor that this thread may use, and of each alone. */
    cpu_set_t all, one;
    struct tr_caches first, last;
    int low = 0, high = CPU_SETSIZE - 1;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(low, &all)) low++;
    while (!CPU_ISSET(high, &all)) high--;
    tr_caches_look("", low, &first);
    tr_caches_look("", high, &last);
    const struct tr_caches least = tr_caches_least(&first, &last);
    assert_true(are_equal(&caches, &least));
    for (int i = 0; i < 2; i++) {
        CPU_ZERO(&one);
        CPU_SET(i ? high : low, &one);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        tr_caches_find(&caches);
        assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
        assert_true(are_equal(&caches, i ? &last : &first));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_data_and_of_both),
        cmocka_unit_test(one_without_files_has_none),
        cmocka_unit_test(what_cannot_be_is_not_believed),
        cmocka_unit_test(limits_are_met),
        cmocka_unit_test(processors_of_two_kinds_have_the_least),
        cmocka_unit_test(these_processors_can_be),
    };
    return cmocka_run_group_tests_name("base.caches", tests, scratch_place_make, scratch_place_remove);
}
