/* Files without a name: room as large as wanted, nothing left of them, and what is told where there is none.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/files/lines.h"
#include "data/files/spill.h"
#include "data/support.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int entries_of(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

static void spilled_room_is_memory(void **unused)
{
    static const size_t sizes[] = {0, 1, 4096, 5 << 20};
    (void)unused;
    const int files = entries_of(test_directory()), descriptors = entries_of("/proc/self/fd");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct tr_spill spill;
        assert_int_equal(tr_spill_make(test_directory(), sizes[i], &spill), TR_OK);
        assert_int_equal(spill.size, sizes[i] ? sizes[i] : 1);
        uint8_t *bytes = spill.data;
        for (size_t at = 0; at < spill.size; at += 4000) assert_int_equal(bytes[at], 0);
        for (size_t at = 0; at < spill.size; at += 4000) bytes[at] = (uint8_t)(at / 4000 + 1);
        tr_spill_leave(&spill); /* comes back on access */
        for (size_t at = 0; at < spill.size; at += 4000)
            assert_int_equal(bytes[at], (uint8_t)(at / 4000 + 1));
        assert_int_equal(entries_of(test_directory()), files);
        assert_int_equal(entries_of("/proc/self/fd"), descriptors);
        tr_spill_release(&spill);
        assert_null(spill.data);
        tr_spill_release(&spill);
        tr_spill_leave(&spill);
    }
}

static void a_lack_of_room_is_told(void **unused)
{
    struct tr_spill spill;
    const int descriptors = entries_of("/proc/self/fd");
    (void)unused;
    assert_int_equal(tr_spill_make(test_path("nowhere"), 10, &spill), TR_EIO);
    assert_non_null(strstr(tr_error_message(), "nowhere: a file of "));
    assert_non_null(strstr(tr_error_message(),
                           "for data on their way cannot be made: No such file or directory; make room "
                           "there, or name another directory for the data cache"));
    assert_null(spill.data);
    assert_int_equal(tr_spill_make(test_directory(), (size_t)1 << 62, &spill), TR_EIO);
    assert_non_null(strstr(tr_error_message(), "cannot be made"));
    assert_null(spill.data);
    assert_int_equal(entries_of("/proc/self/fd"), descriptors);
}

/* The system may write less than it is given: here of a text that is unpacked. */
static size_t at_most; /* bytes; 0: as the system does */

ssize_t write(int descriptor, const void *bytes, size_t size)
{
    return syscall(SYS_write, descriptor, bytes, at_most > 0 && size > at_most ? at_most : size);
}

static void texts_are_as_they_were(void **unused)
{
    static const char text[] = "a,b\n1,2\n";
    (void)unused;
    struct bytes packed = pack(text, sizeof text - 1, 31), nothing = pack("", 0, 31);
    write_file("packed", packed.data, packed.size);
    write_file("nothing", nothing.data, nothing.size);
    write_text("plain", text);
    write_text("empty", "");
    free(packed.data);
    free(nothing.data);
    static const char *const names[] = {"packed", "plain", "nothing", "empty"};
    for (int i = 0; i < 4; i++)
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            const int descriptors = entries_of("/proc/self/fd");
            struct tr_spilled_text spilled;
            refuse_begin(at);
            at_most = 3;
            const tr_status status = tr_spill_lines(test_path(names[i]), test_directory(), &spilled);
            at_most = 0;
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            if (done) {
                assert_int_equal(spilled.size, i < 2 ? sizeof text - 1 : 0);
                tr_spilled_text_leave(&spilled);
                if (i < 2) assert_memory_equal(spilled.data, text, sizeof text - 1);
            }
            tr_spilled_text_release(&spilled);
            assert_int_equal(tr_alloc_live(), live);
            assert_int_equal(entries_of("/proc/self/fd"), descriptors);
        }
}

/* Lines are looked at through the whole text, whose pieces come one after the other. */
static void endless_lines_are_refused(void **unused)
{
    static const struct {
        size_t feed, size; /* bytes before the only line feed, and in all */
        int line;          /* that is refused, 0: none */
    } cases[] = {
        {40 << 20, 80 << 20, 0},
        {TR_LINE_MAX, 2 * TR_LINE_MAX + 1, 0},
        {TR_LINE_MAX + 1, TR_LINE_MAX + 2, 1},
        {30 << 20, TR_LINE_MAX + (30 << 20) + 2, 2},
    };
    char message[64];
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_spilled_text spilled;
        write_file("long", "1", 1);
        const int descriptor = open(test_path("long"), O_WRONLY | O_CLOEXEC);
        assert_true(descriptor >= 0);
        assert_int_equal(pwrite(descriptor, "\n", 1, (off_t)cases[i].feed), 1);
        assert_int_equal(ftruncate(descriptor, (off_t)cases[i].size), 0);
        close(descriptor);
        const tr_status status = tr_spill_lines(test_path("long"), test_directory(), &spilled);
        assert_int_equal(status, cases[i].line ? TR_EFORMAT : TR_OK);
        snprintf(message, sizeof message, "long:%d: a line of more than 64 MiB", cases[i].line);
        if (cases[i].line) assert_non_null(strstr(tr_error_message(), message));
        if (!cases[i].line) assert_int_equal(spilled.size, cases[i].size);
        tr_spilled_text_release(&spilled);
    }
}

/* The same of what is packed; and where it is no text. */
static void packed_lines_are_looked_at(void **unused)
{
    const size_t size = TR_LINE_MAX + 2;
    char *line = calloc(1, size);
    struct tr_spilled_text spilled;
    (void)unused;
    assert_non_null(line);
    struct bytes packed = pack(line, size, 31), wide = pack("\xff\xfe"
                                                            "a\0\n\0",
                                                            6, 31);
    write_file("long.gz", packed.data, packed.size);
    write_file("wide.gz", wide.data, wide.size);
    free(packed.data);
    free(wide.data);
    free(line);
    assert_int_equal(tr_spill_lines(test_path("long.gz"), test_directory(), &spilled), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "long.gz:1: a line of more than 64 MiB"));
    tr_spilled_text_release(&spilled);
    assert_int_equal(tr_spill_lines(test_path("wide.gz"), test_directory(), &spilled), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "wide.gz"));
    tr_spilled_text_release(&spilled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spilled_room_is_memory),     cmocka_unit_test(a_lack_of_room_is_told),
        cmocka_unit_test(texts_are_as_they_were),     cmocka_unit_test(endless_lines_are_refused),
        cmocka_unit_test(packed_lines_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
