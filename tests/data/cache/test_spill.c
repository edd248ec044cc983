/* Tables that may be larger than memory: through files in the directory of the cache they are the same data,
 * and take little memory on the way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "data/cache/store.h"
#include "data/files/spill.h"
#include "data/support.h"
#include "sanitized.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char cache_path[512];

/* `spill` bytes and more go through files; 0: no cache and no files. */
static tr_status open_table(const char *description, const char *state, int64_t spill, tr_source **out)
{
    tr_config *node;
    tr_store *store;
    *out = NULL;
    TR_TRY(tr_config_parse(description, strlen(description), "table", &node));
    tr_status status = tr_store_create(NULL, spill > 0 ? cache_path : NULL, 0, &store);
    tr_store_spill_from(store, spill);
    tr_store_defer(store); /* which those do not do that are not in memory */
    if (status == TR_OK) status = tr_source_open_config(node, test_directory(), state, store, -1, out);
    tr_store_destroy(&store);
    tr_config_destroy(&node);
    return status;
}

static void expect_same(const tr_source *one, const tr_source *other)
{
    char digest[2][TR_SHA256_TEXT];
    assert_int_equal(one->info.count, other->info.count);
    assert_int_equal(one->info.floats, other->info.floats);
    assert_int_equal(one->info.classes, other->info.classes);
    assert_int_equal(tr_source_digest(one, digest[0]), TR_OK);
    assert_int_equal(tr_source_digest(other, digest[1]), TR_OK);
    assert_string_equal(digest[0], digest[1]);
    for (int64_t i = 0; i < one->info.count; i++) {
        float row[2][32];
        int32_t label[2][4] = {{0}};
        int64_t length[2];
        assert_int_equal(one->class->read(one, i, row[0], &length[0], label[0]), TR_OK);
        assert_int_equal(other->class->read(other, i, row[1], &length[1], label[1]), TR_OK);
        assert_int_equal(length[0], length[1]);
        assert_memory_equal(row[0], row[1], (size_t)length[0] * sizeof(float));
        assert_memory_equal(label[0], label[1], sizeof label[0]);
    }
}

static int entries_of(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));)
        count += strncmp(entry->d_name, "spill-", 6) == 0;
    closedir(directory);
    return count;
}

static void spilled_tables_are_the_same(void **state)
{
    (void)state;
    static const char *const tables[] = {
        "{csv: {path: %s, label: name, label_columns: [kind], skip_columns: [when], categories: [town], "
        "missing: mean, "
        "standardize: true}}",
        "{csv: {path: %s, label: value, label_columns: [b, when], skip_columns: [kind, town], missing: "
        "skip}}",
        "{csv: {path: %s, label: none, skip_columns: [kind, town, when], missing: constant, missing_value: "
        "7}}",
        "{json: {path: lines.json, label: class, label_columns: [k]}}",
    };
    static const char *const paths[] = {"table.csv", "table.csv.gz"};
    for (size_t i = 0; i < 2 * sizeof tables / sizeof tables[0]; i++) {
        char description[512], *learned[2];
        tr_source *spilled, *plain;
        const int64_t live = tr_alloc_live();
        tr_file_remove(NULL, cache_path);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(description, sizeof description, tables[i / 2], paths[i % 2]);
#pragma GCC diagnostic pop
        if (open_table(description, NULL, 1, &spilled) != TR_OK) fail_msg("%s", tr_error_message());
        if (open_table(description, NULL, 0, &plain) != TR_OK) fail_msg("%s", tr_error_message());
        assert_int_equal(entries_of(cache_path), 0); /* they have no names */
        assert_true(spilled->filed);                 /* read from the entry of the cache */
        assert_int_equal(spilled->unpacked, 0);
        expect_same(spilled, plain);
        assert_int_equal(spilled->class->state(spilled, &learned[0]), TR_OK);
        assert_int_equal(plain->class->state(plain, &learned[1]), TR_OK);
        assert_string_equal(learned[0], learned[1]);
        tr_source_close(&spilled);
        tr_source_close(&plain);
        /* As test data do, with what the training data had. */
        if (open_table(description, learned[0], 1, &spilled) != TR_OK) fail_msg("%s", tr_error_message());
        if (open_table(description, learned[0], 0, &plain) != TR_OK) fail_msg("%s", tr_error_message());
        expect_same(spilled, plain);
        tr_source_close(&spilled);
        tr_source_close(&plain);
        tr_free(learned[0]);
        tr_free(learned[1]);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* Messages are those of tables in memory, and nothing stays. */
static void bad_tables_are_refused(void **state)
{
    (void)state;
    static const char wrong[] = "a,b\n1,2\n3\n", two_bytes[] = "\xff\xfe"
                                                               "a\0,\0b\0\n";
    struct bytes packed = pack("a,b\n1,2\n3,4\n", 12, 31);
    write_file("wrong.csv", wrong, sizeof wrong - 1);
    write_file("utf16.csv", two_bytes, sizeof two_bytes - 1);
    write_file("cut.csv.gz", packed.data, packed.size - 6);
    write_file("empty.csv", "", 0);
    free(packed.data);
    static const char *const paths[] = {"wrong.csv", "utf16.csv", "cut.csv.gz", "empty.csv"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const int64_t live = tr_alloc_live();
        char description[64], message[512];
        tr_source *source;
        snprintf(description, sizeof description, "{csv: %s}", paths[i]);
        tr_status status = open_table(description, NULL, 0, &source);
        snprintf(message, sizeof message, "%s", tr_error_message());
        assert_int_not_equal(status, TR_OK);
        assert_int_equal(open_table(description, NULL, 1, &source), status);
        assert_string_equal(tr_error_message(), message);
        assert_null(source);
        assert_int_equal(entries_of(cache_path), 0);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void no_room_is_told(void **state)
{
    (void)state;
    struct tr_spill spill;
    assert_int_equal(tr_spill_make("/nonexistent/place", 4096, &spill), TR_EIO);
    assert_non_null(strstr(tr_error_message(), "/nonexistent/place"));
    assert_null(spill.data);
    assert_int_equal(tr_spill_make(test_directory(), (size_t)1 << 60, &spill), TR_EIO);
    assert_non_null(strstr(tr_error_message(), "make room there"));
    assert_null(spill.data);
}

/* ---- memory ---- */

/* Bytes that this process had in memory at the most. */
static int64_t most_memory(void)
{
    char line[256];
    long long kilobytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) sscanf(line, "VmHWM: %lld", &kilobytes);
    fclose(file);
    return (int64_t)kilobytes * 1024;
}

/* In a process of its own: bytes that opening the table and reading some of it adds to that; -1: it failed.
 */
static int64_t memory_of(const char *description, int64_t spill)
{
    int ends[2];
    int64_t added = -1;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        tr_source *source;
        const int64_t before = most_memory();
        float row[32], label[1];
        int64_t length, index = 0;
        if (open_table(description, NULL, spill, &source) != TR_OK) _exit(1);
        for (int i = 0; i < 1000; i++, index = (index * 7919 + 13) % source->info.count)
            if (source->class->read(source, index, row, &length, label) != TR_OK) _exit(1);
        added = most_memory() - before;
        _exit(write(ends[1], &added, sizeof added) == (ssize_t)sizeof added ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], &added, sizeof added) != (ssize_t)sizeof added) added = -1;
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return added;
}

static void little_memory_is_taken(void **state)
{
    (void)state;
    enum { ROWS = 600000, COLUMNS = 25 }; /* 60 MB of numbers in a text of 30 MB */
    static const char description[] = "{csv: {path: large.csv, label: none, standardize: true}}";
    if (SANITIZED) skip(); /* whose memory is not the program's */
    char *text = malloc((size_t)ROWS * COLUMNS * 2);
    assert_non_null(text);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        text[2 * i] = (char)('0' + (i * 7 + i / COLUMNS) % 10);
        text[2 * i + 1] = i % COLUMNS == COLUMNS - 1 ? '\n' : ',';
    }
    write_file("large.csv", text, (size_t)ROWS * COLUMNS * 2);
    free(text);
    tr_file_remove(NULL, cache_path);
    const int64_t all = (int64_t)ROWS * COLUMNS * (int64_t)sizeof(float);
    int64_t plain = memory_of(description, 0), made = memory_of(description, 1),
            found = memory_of(description, 1);
    if (plain < all) fail_msg("in memory the table adds %lld bytes, less than it has", (long long)plain);
    if (made < 0 || made > all / 2)
        fail_msg("through a file it adds %lld bytes of %lld", (long long)made, (long long)all);
    if (found < 0 || found > all / 2) fail_msg("from the cache it adds %lld bytes", (long long)found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spilled_tables_are_the_same),
        cmocka_unit_test(bad_tables_are_refused),
        cmocka_unit_test(no_room_is_told),
        cmocka_unit_test(little_memory_is_taken),
    };
    struct tr_text table = TR_TEXT_INIT, lines = TR_TEXT_INIT;
    static const char *const towns[] = {"Bonn", "Kiel", "", "Ulm"};
    tr_text_add(&table, "a,b,town,kind,when\n");
    for (int i = 0; i < 500; i++) {
        char gap[16] = "NA";
        if (i % 11) snprintf(gap, sizeof gap, "%d.25", i % 7);
        tr_text_addf(&table, "%d,%s,%s,%s,%d\n", i % 13 - 5, gap, towns[i % 4], i % 3 ? "wet" : "dry", i);
        tr_text_addf(&lines, "{\"x\": %d.5, \"y\": %d, \"k\": %d}\n", i % 9, i % 4, i % 3);
    }
    struct bytes packed = pack(table.bytes, table.length, 31);
    write_file("table.csv", table.bytes, table.length);
    write_file("table.csv.gz", packed.data, packed.size);
    write_file("lines.json", lines.bytes, lines.length);
    free(packed.data);
    tr_text_release(&table);
    tr_text_release(&lines);
    snprintf(cache_path, sizeof cache_path, "%s", test_path("cache"));
    return cmocka_run_group_tests_name("data.spill", tests, NULL, NULL);
}
