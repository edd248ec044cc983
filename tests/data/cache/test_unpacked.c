/* Files of unpacked data hold what their source holds. What is wrong in one: test_unpacked_damage.c. */
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/file_fault.h"
#include "data/cache/entries.h"
#include "refuse.h"
#include "trireme/arrays.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void entries_hold_what_their_sources_hold(void **unused)
{
    static const char *const all[] = {
        DIGITS, MASKS, VALUES, BAD_ROWS, NAMED, TEXTS, TAGS, WINDOWS, "{corpus: {path: corpus, window: 1}}"};
    (void)unused;
    for (int i = 0; i < LENGTH(all); i++) {
        struct entry entry = make_entry(all[i]);
        tr_source *direct = must_open(all[i]), *source;
        for (int verify = 0; verify < 2; verify++) {
            *entry_warning = '\0';
            if (open_sealed(&entry, verify, &source) != TR_OK) fail_msg("%s: %s", all[i], tr_error_message());
            assert_string_equal(entry_warning,
                                direct->info.skipped ? "the data leave out 2 bad records" : "");
            expect_same_source(direct, source);
            tr_source_close(&source);
        }
        for (int section = 0; section < TR_UNPACKED_SECTIONS; section++)
            assert_int_equal(entry.tail.section[section].offset % 64, 0);
        tr_source_close(&direct);
        free(entry.file.data);
    }
}

/* Examples of a fixed size are read from the file; texts are not. */
static void examples_are_read_from_the_file(void **unused)
{
    static const char *const all[] = {DIGITS, VALUES, TEXTS};
    (void)unused;
    for (int i = 0; i < LENGTH(all); i++) {
        struct entry entry = make_entry(all[i]);
        tr_source *direct = must_open(all[i]), *source;
        float features[16], label[16];
        assert_int_equal(open_sealed(&entry, true, &source), TR_OK);
        const int descriptor = open(test_path("entry"), O_RDONLY | O_CLOEXEC);
        tr_unpacked_read_from(source, descriptor, "the file");
        assert_int_equal(source->filed, i < 2);
        assert_int_equal(fcntl(descriptor, F_GETFD) >= 0, i < 2);
        expect_same_source(direct, source);
        tr_source_close(&source);
        assert_true(fcntl(descriptor, F_GETFD) < 0);
        if (i < 2) { /* a file that ends too early */
            int64_t length;
            const int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
            assert_int_equal(open_sealed(&entry, true, &source), TR_OK);
            tr_unpacked_read_from(source, empty, "the file");
            assert_int_not_equal(tr_source_read(source, 0, features, 16, &length, label), TR_OK);
            assert_non_null(strstr(tr_error_message(), "the file"));
            assert_int_not_equal(source->class->read_run(source, 0, 2, features, label), TR_OK);
            assert_int_equal(source->class->read_run(source, 0, 2, NULL, label), TR_OK);
            tr_source_close(&source);
        }
        tr_source_close(&direct);
        free(entry.file.data);
    }
}

static void a_lack_of_memory_is_told(void **unused)
{
    static const char *const all[] = {DIGITS, NAMED, TAGS, WINDOWS};
    (void)unused;
    for (int i = 0; i < LENGTH(all); i++) {
        tr_source *direct = must_open(all[i]);
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            struct tr_file_map map = {0};
            tr_source *source = NULL;
            refuse_begin(at);
            tr_status status = write_entry(direct);
            if (status == TR_OK) status = tr_file_map(test_path("entry"), &map);
            if (status == TR_OK) status = tr_unpacked_open(&map, "it", entry_key, true, &source);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            assert_int_equal(source != NULL, done);
            tr_source_close(&source);
            assert_null(map.data);
            assert_int_equal(tr_alloc_live(), live);
        }
        tr_source_close(&direct);
    }
}

/* Whichever call of the file system fails. */
static void failures_to_write_are_told(void **unused)
{
    static const char *const all[] = {DIGITS, NAMED, TAGS, WINDOWS, TEXTS};
    (void)unused;
    for (int i = 0; i < LENGTH(all); i++) {
        tr_source *direct = must_open(all[i]);
        for (int64_t at = 1, hit = true; hit; at++) {
            const int64_t live = tr_alloc_live();
            struct fault_files fault;
            fault_files_init(&fault, FAULT_ERROR, ENOSPC, at, false);
            const tr_status status = write_entry_to(&fault.system, direct);
            hit = fault.calls >= at;
            if (status != (hit ? TR_EIO : TR_OK))
                fail_msg("%s, call %d: %s", all[i], (int)at, tr_status_name(status));
            assert_int_equal(tr_alloc_live(), live);
        }
        tr_source_close(&direct);
    }
}

static int read_one(void *user, int64_t index, void *features, int64_t *length, void *label)
{
    (void)user, (void)length;
    if (index > 0) return 3;
    if (features) memset(features, 1, 6);
    if (label) *(int32_t *)label = 0;
    return 0;
}

static void failures_to_read_are_told(void **unused)
{
    struct tr_example_reader reader = TR_EXAMPLE_READER_INIT;
    tr_source *source;
    (void)unused;
    reader.info.count = 2;
    reader.info.features = TR_FEATURE_IMAGE;
    reader.info.height = 3, reader.info.width = 2, reader.info.channels = 1;
    reader.info.labels = TR_LABEL_CLASS;
    reader.info.classes = 1;
    reader.read = read_one;
    assert_int_equal(tr_source_from_reader(&reader, &source), TR_OK);
    assert_int_equal(write_entry(source), TR_EIO);
    assert_non_null(strstr(tr_error_message(), "returned 3 for example 1"));
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_hold_what_their_sources_hold),
        cmocka_unit_test(examples_are_read_from_the_file),
        cmocka_unit_test(a_lack_of_memory_is_told),
        cmocka_unit_test(failures_to_write_are_told),
        cmocka_unit_test(failures_to_read_are_told),
    };
    return cmocka_run_group_tests(tests, write_entry_data, NULL);
}
