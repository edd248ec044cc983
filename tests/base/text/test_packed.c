/* Texts that the build compresses into the program: they are the files, byte for byte, and damage is refused.
 */
#include "base/text/packed.h"

#include "base/fail.h"
#include "base/files/file.h"

#include "refuse.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* printf 'one\ntwo, two' | gzip -n */
static const unsigned char gzip[32] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03,
                                       0xcb, 0xcf, 0x4b, 0xe5, 0x2a, 0x29, 0xcf, 0xd7, 0x51, 0x00,
                                       0x12, 0x00, 0x8d, 0x3f, 0xae, 0x33, 0x0c, 0x00, 0x00, 0x00};
#define GZIP_SIZE 30

static const struct tr_packed_text texts[] = {{"first", 4}, {"empty", 0}, {"second", 8}, {0}};

static void texts_are_found_by_name(void **state)
{
    (void)state;
    const struct tr_packed packed = {gzip, GZIP_SIZE, texts};
    char *all;
    assert_int_equal(tr_unpack(&packed, &all), TR_OK);
    assert_string_equal(tr_unpacked(&packed, all, "first"), "one\n");
    assert_string_equal(tr_unpacked(&packed, all, "empty"), "");
    assert_string_equal(tr_unpacked(&packed, all, "second"), "two, two");
    assert_null(tr_unpacked(&packed, all, "third"));
    assert_null(tr_unpacked(&packed, all, "firs"));
    tr_free(all);
}

static void expect_corrupt(const unsigned char *bytes, size_t size, const struct tr_packed_text *text)
{
    const int64_t live = tr_alloc_live();
    char *all = (char *)1;
    assert_int_equal(tr_unpack(&(struct tr_packed){bytes, size, text}, &all), TR_ECORRUPT);
    assert_null(all);
    assert_non_null(strstr(tr_error_message(), "damaged"));
    assert_int_equal(tr_alloc_live(), live);
}

static void damage_is_refused(void **state)
{
    static const struct tr_packed_text shorter[] = {{"first", 4}, {"second", 7}, {0}};
    static const struct tr_packed_text longer[] = {{"first", 4}, {"second", 9}, {0}};
    (void)state;
    for (size_t size = 0; size < GZIP_SIZE; size++) expect_corrupt(gzip, size, texts);
    for (size_t at = 0; at < GZIP_SIZE; at++) {
        unsigned char changed[GZIP_SIZE];
        if (at >= 4 && at < 10) continue; /* when and where it was made, which decides nothing */
        memcpy(changed, gzip, GZIP_SIZE);
        changed[at] ^= 0x10;
        expect_corrupt(changed, GZIP_SIZE, texts);
    }
    expect_corrupt(gzip, GZIP_SIZE, shorter);
    expect_corrupt(gzip, GZIP_SIZE, longer);
}

static void memory_may_fail(void **state)
{
    const struct tr_packed packed = {gzip, GZIP_SIZE, texts};
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        char *all;
        refuse_begin(at);
        const tr_status status = tr_unpack(&packed, &all);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_free(all);
        assert_int_equal(tr_alloc_live(), live);
        assert_true(done || at < 10);
    }
}

/* ---- those in the program ---- */

extern const struct tr_packed tr_gpu_packed, tr_c_text_packed;

/* Each file that matches is a text; returns how many. */
static size_t compare(const struct tr_packed *packed, const char *pattern)
{
    glob_t found;
    char *all;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(tr_unpack(packed, &all), TR_OK);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i], *file = strrchr(path, '/') + 1;
        struct tr_file_content content;
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(file, "."), file);
        const char *text = tr_unpacked(packed, all, name);
        assert_int_equal(tr_file_read(path, 1 << 20, &content), TR_OK);
        if (!text || strlen(text) != content.size || memcmp(text, content.data, content.size) != 0)
            fail_msg("%s is another text in the program", path);
        tr_file_content_free(&content);
    }
    const size_t count = found.gl_pathc;
    globfree(&found);
    tr_free(all);
    return count;
}

static size_t texts_of(const struct tr_packed *packed)
{
    size_t count = 0;
    while (packed->text[count].name) count++;
    return count;
}

#define SOURCE TRIREME_SOURCE_DIR "/src/"

static void they_are_the_files(void **state)
{
    (void)state;
    size_t count = compare(&tr_gpu_packed, SOURCE "device/gpu/kernels/*.[kh]") +
                   compare(&tr_gpu_packed, SOURCE "base/numbers/mathf.inc") +
                   compare(&tr_gpu_packed, SOURCE "device/winograd.inc");
    assert_int_equal(count, texts_of(&tr_gpu_packed));
    count = compare(&tr_c_text_packed, SOURCE "export/c/*/*.c.in") +
            compare(&tr_c_text_packed, SOURCE "export/c/*/*/*.c.in");
    assert_int_equal(count, texts_of(&tr_c_text_packed));
}

/* The time at which the build packed them is left out, so that equal sources give equal programs. */
static void no_time_is_in_them(void **state)
{
    static const unsigned char none[4];
    (void)state;
    assert_memory_equal(tr_gpu_packed.bytes + 4, none, sizeof none);
    assert_memory_equal(tr_c_text_packed.bytes + 4, none, sizeof none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_found_by_name), cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(memory_may_fail),         cmocka_unit_test(they_are_the_files),
        cmocka_unit_test(no_time_is_in_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
