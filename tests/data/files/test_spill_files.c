/* Files without a name: room as large as wanted, nothing left of them, and what is told where there is none.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/files/spill.h"
#include "data/support.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
            const tr_status status = tr_spill_lines(test_path(names[i]), test_directory(), &spilled);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spilled_room_is_memory),
        cmocka_unit_test(a_lack_of_room_is_told),
        cmocka_unit_test(texts_are_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
