/* The files that data are read from: their stamps, whether they changed, and their contents by name. */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/files/stamps.h"
#include "data/support.h"
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
#include <unistd.h>

static void contents_of(const char *directory, const char *name, char digest[TR_SHA256_TEXT])
{
    struct tr_source_files files = {0};
    tr_sha256 *hash;
    assert_int_equal(tr_source_files_add(&files, directory, name), TR_OK);
    assert_int_equal(tr_source_files_stamp(&files), TR_OK);
    assert_int_equal(tr_sha256_begin(&hash), TR_OK);
    assert_int_equal(tr_source_files_add_contents(&files, hash), TR_OK);
    assert_int_equal(tr_sha256_end(&hash, digest), TR_OK);
    tr_source_files_release(&files);
    assert_int_equal(files.count, 0);
}

/* The name with that of its directory, a NUL, the size, and the bytes. */
static void contents_are_hashed_by_name(void **unused)
{
    static const char wanted[] = "cats/1.png\0\5\0\0\0\0\0\0\0hello";
    char digest[TR_SHA256_TEXT], other[TR_SHA256_TEXT];
    (void)unused;
    mkdir(test_path("cats"), 0700);
    mkdir(test_path("deeper"), 0700);
    mkdir(test_path("deeper/cats"), 0700);
    write_text("cats/1.png", "hello");
    write_text("cats/2.png", "hello");
    write_text("deeper/cats/1.png", "hello");
    assert_int_equal(tr_sha256_of(wanted, sizeof wanted - 1, other), TR_OK);
    contents_of(test_path("cats"), "1.png", digest);
    assert_string_equal(digest, other);
    contents_of(test_directory(), "deeper/cats/1.png", digest); /* wherever it lies */
    assert_string_equal(digest, other);
    contents_of(test_path("cats"), "2.png", digest); /* of another name */
    assert_string_not_equal(digest, other);
    contents_of(NULL, test_path("cats"), digest); /* of a folder only the name */
    char name[300];
    snprintf(name, sizeof name, "%s/cats", strrchr(test_directory(), '/') + 1);
    assert_int_equal(tr_sha256_of(name, strlen(name) + 1, other), TR_OK);
    assert_string_equal(digest, other);
    /* of a relative path without a folder, and of one in the root, there is only the name */
    const int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chdir(test_path("cats")), 0);
    contents_of(NULL, "1.png", digest);
    assert_int_equal(fchdir(here), 0);
    close(here);
    assert_int_equal(tr_sha256_of("1.png\0\5\0\0\0\0\0\0\0hello", 19, other), TR_OK);
    assert_string_equal(digest, other);
    contents_of(NULL, "/dev", digest);
    assert_int_equal(tr_sha256_of("dev", 4, other), TR_OK);
    assert_string_equal(digest, other);
}

/* Files of more than a piece, and of exactly one. */
static void large_contents_are_hashed_whole(void **unused)
{
    static const size_t sizes[] = {1 << 18, (1 << 18) + 1, (1 << 20) - 1};
    (void)unused;
    for (int i = 0; i < 3; i++) {
        const size_t head = strlen("cats/large") + 1;
        uint8_t *text = malloc(head + 8 + sizes[i]);
        char digest[TR_SHA256_TEXT], other[TR_SHA256_TEXT];
        assert_non_null(text);
        memcpy(text, "cats/large", head);
        memcpy(text + head, &(uint64_t){sizes[i]}, 8);
        for (size_t k = 0; k < sizes[i]; k++) text[head + 8 + k] = (uint8_t)(k * 7 + k / 1000);
        write_file("cats/large", text + head + 8, sizes[i]);
        contents_of(test_path("cats"), "large", digest);
        assert_int_equal(tr_sha256_of(text, head + 8 + sizes[i], other), TR_OK);
        assert_string_equal(digest, other);
        free(text);
    }
}

static void changes_are_seen(void **unused)
{
    static const struct timespec past[2] = {{1000, 5}, {1000, 5}}, later[2] = {{1000, 5}, {1000, 6}};
    struct tr_source_files files = {0};
    (void)unused;
    write_text("first", "one");
    write_text("second", "three");
    mkdir(test_path("folder"), 0700);
    assert_int_equal(utimensat(AT_FDCWD, test_path("second"), past, 0), 0);
    assert_int_equal(tr_source_files_add(&files, test_directory(), "first"), TR_OK);
    assert_int_equal(tr_source_files_add(&files, NULL, test_path("second")), TR_OK);
    assert_int_equal(tr_source_files_add(&files, test_directory(), "folder"), TR_OK);
    assert_string_equal(files.file[0].path, test_path("first"));
    assert_int_equal(tr_source_files_stamp(&files), TR_OK);
    assert_int_equal(tr_source_files_bytes(&files), 8);
    assert_null(tr_source_files_changed(&files));
    assert_int_equal(utimensat(AT_FDCWD, test_path("second"), later, 0), 0); /* by a nanosecond */
    assert_string_equal(tr_source_files_changed(&files), test_path("second"));
    assert_int_equal(utimensat(AT_FDCWD, test_path("second"), past, 0), 0);
    assert_null(tr_source_files_changed(&files));
    write_text("second", "four"); /* another size at the same time */
    assert_int_equal(utimensat(AT_FDCWD, test_path("second"), past, 0), 0);
    assert_string_equal(tr_source_files_changed(&files), test_path("second"));
    write_text("other", "three"); /* another file of the same size and time */
    assert_int_equal(utimensat(AT_FDCWD, test_path("other"), past, 0), 0);
    assert_int_equal(rename(test_path("other"), test_path("second")), 0);
    assert_string_equal(tr_source_files_changed(&files), test_path("second"));
    assert_int_equal(unlink(test_path("second")), 0);
    assert_string_equal(tr_source_files_changed(&files), test_path("second"));
    assert_int_equal(tr_source_files_stamp(&files), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "second"));
    tr_source_files_release(&files);
    assert_int_equal(symlink("loop", test_path("loop")), 0); /* which is there, and cannot be opened */
    assert_int_equal(tr_source_files_add(&files, test_directory(), "loop"), TR_OK);
    assert_int_equal(tr_source_files_stamp(&files), TR_EIO);
    tr_source_files_release(&files);
    tr_sha256 *hash;
    write_text("second", "gone before its contents are read");
    assert_int_equal(tr_source_files_add(&files, test_directory(), "second"), TR_OK);
    assert_int_equal(tr_source_files_stamp(&files), TR_OK);
    assert_int_equal(unlink(test_path("second")), 0);
    assert_int_equal(tr_sha256_begin(&hash), TR_OK);
    assert_int_equal(tr_source_files_add_contents(&files, hash), TR_ENOTFOUND);
    tr_sha256_destroy(&hash);
    tr_source_files_release(&files);
    assert_int_equal(tr_source_files_add(&files, test_directory(), "first/no folder"), TR_OK);
    assert_int_equal(tr_source_files_stamp(&files), TR_ENOTFOUND);
    tr_source_files_release(&files);
}

/* Young stamps, and those of the future, are not relied on. */
static void stamps_settle(void **unused)
{
    struct tr_source_files files = {0};
    (void)unused;
    write_text("first", "one");
    assert_int_equal(tr_source_files_add(&files, test_directory(), "first"), TR_OK);
    assert_int_equal(tr_source_files_stamp(&files), TR_OK);
    const int64_t changed = files.file[0].stamp.changed[0];
    assert_false(tr_source_files_settled(&files, changed));
    assert_false(tr_source_files_settled(&files, changed + 2)); /* as long as a step of FAT's clock */
    assert_true(tr_source_files_settled(&files, changed + 3));
    files.file[0].stamp.modified[0] = changed + 10;
    assert_false(tr_source_files_settled(&files, changed + 12));
    assert_true(tr_source_files_settled(&files, changed + 13));
    assert_true(tr_source_files_settled(&files, changed + 60));
    files.file[0].stamp.modified[0] = changed + 100; /* a clock was set */
    assert_false(tr_source_files_settled(&files, changed + 60));
    assert_true(tr_source_files_settled(&files, changed + 160));
    tr_source_files_release(&files);
    /* a system of files that the kernel makes up has no times to rely on */
    assert_int_equal(tr_source_files_add(&files, NULL, "/proc/self/status"), TR_OK);
    assert_int_equal(tr_source_files_stamp(&files), TR_OK);
    assert_false(tr_source_files_settled(&files, INT64_MAX / 2));
    tr_source_files_release(&files);
    assert_true(tr_source_files_settled(&files, 0)); /* no file, no change */
}

static void stamps_are_hashed(void **unused)
{
    char digest[2][TR_SHA256_TEXT];
    struct tr_source_files files = {0};
    (void)unused;
    write_text("first", "one");
    assert_int_equal(tr_source_files_add(&files, test_directory(), "first"), TR_OK);
    assert_int_equal(tr_source_files_stamp(&files), TR_OK);
    struct tr_file_stamp *stamp = &files.file[0].stamp;
    uint64_t *const numbers[] = {NULL,
                                 &stamp->device,
                                 &stamp->inode,
                                 &stamp->size,
                                 (uint64_t *)&stamp->modified[0],
                                 (uint64_t *)&stamp->modified[1],
                                 (uint64_t *)&stamp->changed[0],
                                 (uint64_t *)&stamp->changed[1]};
    for (int i = 0; i < 8; i++) {
        tr_sha256 *hash;
        if (numbers[i]) ++*numbers[i];
        assert_int_equal(tr_sha256_begin(&hash), TR_OK);
        tr_source_files_add_stamps(&files, hash);
        assert_int_equal(tr_sha256_end(&hash, digest[i > 0]), TR_OK);
        if (numbers[i]) --*numbers[i];
        if (i > 0) assert_string_not_equal(digest[0], digest[1]);
    }
    tr_source_files_release(&files);
}

static void a_lack_of_memory_is_told(void **unused)
{
    (void)unused;
    write_text("first", "one");
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_source_files files = {0};
        tr_sha256 *hash = NULL;
        refuse_begin(at);
        tr_status status = tr_source_files_add(&files, test_directory(), "first");
        if (status == TR_OK) status = tr_source_files_stamp(&files);
        if (status == TR_OK) status = tr_sha256_begin(&hash);
        if (status == TR_OK) status = tr_source_files_add_contents(&files, hash);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_sha256_destroy(&hash);
        tr_source_files_release(&files);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_are_hashed_by_name),
        cmocka_unit_test(large_contents_are_hashed_whole),
        cmocka_unit_test(changes_are_seen),
        cmocka_unit_test(stamps_settle),
        cmocka_unit_test(stamps_are_hashed),
        cmocka_unit_test(a_lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
