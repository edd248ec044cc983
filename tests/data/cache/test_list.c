/* What people are told of the data cache: the examples of each entry, its size and its last use; and what is
 * removed.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "data/cache/entries.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define USED          1234567

struct listed {
    int count;
    bool good;
    int64_t bytes, used;
    char path[512], examples[128];
};

static void note(void *user, const struct tr_data_cache_entry *entry)
{
    struct listed *listed = user;
    listed->count++;
    listed->good = entry->good;
    listed->bytes = entry->bytes;
    listed->used = entry->used;
    snprintf(listed->path, sizeof listed->path, "%s", entry->path);
    snprintf(listed->examples, sizeof listed->examples, "%s", entry->examples);
}

/* "<directory>/list/<key of entries>.data". */
static const char *entry_path(void)
{
    char name[100];
    snprintf(name, sizeof name, "list/%s.data", entry_key);
    return test_path(name);
}

/* Puts the entry into the cache, whole, for the user alone. */
static void put(struct entry *entry)
{
    tr_source *source;
    const struct timespec times[2] = {{USED, 5}, {USED, 5}};
    if (open_sealed(entry, true, &source) != TR_OK) fail_msg("%s", tr_error_message());
    tr_source_close(&source);
    assert_int_equal(rename(test_path("entry"), entry_path()), 0);
    assert_int_equal(chmod(entry_path(), 0600), 0);
    assert_int_equal(utimensat(AT_FDCWD, entry_path(), times, 0), 0);
}

static struct listed list(void)
{
    struct listed listed = {0};
    assert_int_equal(tr_data_cache_list(test_path("list"), note, &listed), TR_OK);
    assert_int_equal(listed.count, 1);
    return listed;
}

static void examples_are_described(void **unused)
{
    static const struct {
        const char *description, *examples;
    } cases[] = {{DIGITS, "3 images 2x2x1, 3 classes"},
                 {MASKS, "3 images 2x2x1, 3 classes"},
                 {VALUES, "3 examples of 2 numbers"},
                 {NAMED, "3 examples of 2 numbers, 2 classes"},
                 {TEXTS, "3 texts, 2 classes"},
                 {TAGS, "2 texts"},
                 {WINDOWS, "15 texts"}};
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        struct entry entry = make_entry(cases[i].description);
        put(&entry);
        const struct listed listed = list();
        assert_true(listed.good);
        if (strcmp(listed.examples, cases[i].examples) != 0)
            fail_msg("%s: %s", cases[i].description, listed.examples);
        assert_string_equal(listed.path, entry_path());
        assert_int_equal(listed.bytes, entry.file.size);
        assert_int_equal(listed.used, USED);
        free(entry.file.data);
    }
    struct entry entry = make_entry(NAMED);
    entry.tail.height = 1, entry.tail.width = 2, entry.tail.channels = 1; /* an image of numbers */
    put(&entry);
    assert_string_equal(list().examples, "3 examples of 1x2x1 numbers, 2 classes");
    free(entry.file.data);
}

/* What a run would not use is said to be of no use: under another name, damaged, or writable by others. */
static void entries_without_use_are_told(void **unused)
{
    struct entry entry = make_entry(DIGITS);
    (void)unused;
    put(&entry);
    assert_true(list().good);
    assert_int_equal(chmod(entry_path(), 0602), 0);
    assert_false(list().good);
    assert_string_equal(list().examples, "");
    put(&entry);
    entry.file.data[entry.tail.section[TR_UNPACKED_FEATURES].offset] ^= 1;
    FILE *file = fopen(entry_path(), "wb");
    assert_true(file && fwrite(entry.file.data, 1, entry.file.size, file) == entry.file.size);
    assert_int_equal(fclose(file), 0);
    assert_false(list().good);
    assert_int_equal(list().bytes, entry.file.size);
    free(entry.file.data);
}

static void count_only(void *user, const struct tr_data_cache_entry *entry)
{
    (void)entry;
    ++*(int *)user;
}

static void directories_are_checked(void **unused)
{
    int entries = 7, count = 0;
    int64_t bytes = 7;
    (void)unused;
    assert_int_equal(mkdir(test_path("open"), 0700), 0);
    assert_int_equal(chmod(test_path("open"), 0777), 0);
    assert_int_equal(tr_data_cache_list(test_path("open"), count_only, &count), TR_EINVAL);
    assert_int_equal(tr_data_cache_clear(test_path("open"), &entries, &bytes), TR_EINVAL);
    assert_true(entries == 0 && bytes == 0 && count == 0);
    entries = 7, bytes = 7;
    assert_int_equal(tr_data_cache_clear(test_path("none"), &entries, &bytes), TR_OK);
    assert_true(entries == 0 && bytes == 0);
    assert_false(tr_file_exists(test_path("none")));
}

/* Notes and unfinished files go, too, and their bytes count; but entries are only what has data. */
static void clearing_counts(void **unused)
{
    char name[120];
    int entries = 7;
    int64_t bytes = 7;
    struct entry entry = make_entry(DIGITS);
    (void)unused;
    put(&entry);
    snprintf(name, sizeof name, "list/%s.note", entry_key);
    write_text(name, "12345");
    snprintf(name, sizeof name, "list/%s.data.1-1.tmp", entry_key);
    write_text(name, "123");
    write_text("list/letter.data", "mine");
    int count = 0;
    assert_int_equal(tr_data_cache_list(test_path("list"), count_only, &count), TR_OK);
    assert_int_equal(count, 1);
    assert_int_equal(tr_data_cache_clear(test_path("list"), &entries, &bytes), TR_OK);
    assert_int_equal(entries, 1);
    assert_int_equal(bytes, entry.file.size + 5 + 3);
    assert_true(tr_file_exists(test_path("list/letter.data")));
    assert_false(tr_file_exists(entry_path()) || tr_file_exists(test_path(name)));
    assert_int_equal(tr_data_cache_clear(test_path("list"), NULL, NULL), TR_OK);
    free(entry.file.data);
}

static void a_lack_of_memory_is_told(void **unused)
{
    struct entry entry = make_entry(NAMED);
    (void)unused;
    put(&entry);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct listed listed = {0};
        refuse_begin(at);
        const tr_status status = tr_data_cache_list(test_path("list"), note, &listed);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(listed.count, done);
        assert_int_equal(tr_alloc_live(), live);
    }
    free(entry.file.data);
}

static int set_up(void **state)
{
    assert_int_equal(mkdir(test_path("list"), 0700), 0);
    return write_entry_data(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_are_described),   cmocka_unit_test(entries_without_use_are_told),
        cmocka_unit_test(directories_are_checked),  cmocka_unit_test(clearing_counts),
        cmocka_unit_test(a_lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
