/* Archives of tar: headers as POSIX lays them out, byte by byte; which blocks are headers; and the files of
 * an archive. */
#include "io/tar.h"

#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Places of fields: POSIX, "ustar Header Block". */
enum {
    NAME = 0,
    MODE = 100,
    UID = 108,
    GID = 116,
    SIZE = 124,
    TIME = 136,
    SUM = 148,
    TYPE = 156,
    MAGIC = 257,
    PREFIX = 345
};

/* Writes the sum of the bytes in six octal digits, NUL and blank. */
static void seal(uint8_t *header)
{
    unsigned sum = 0;
    char text[16];
    memset(header + SUM, ' ', 8);
    for (int i = 0; i < 512; i++) sum += header[i];
    snprintf(text, sizeof text, "%06o", sum);
    memcpy(header + SUM, text, 7);
}

static void expect_header(const char *directory, const char *name, uint64_t bytes, const void *size_field)
{
    uint8_t header[TR_TAR_BLOCK], wanted[TR_TAR_BLOCK] = {0};
    memset(header, 0xee, sizeof header);
    assert_int_equal(tr_tar_header(directory, name, bytes, header), TR_OK);
    memcpy(wanted + NAME, name, strlen(name));
    memcpy(wanted + MODE, "0000644", 8);
    memcpy(wanted + UID, "0000000", 8);
    memcpy(wanted + GID, "0000000", 8);
    memcpy(wanted + SIZE, size_field, 12);
    memcpy(wanted + TIME, "00000000000", 12);
    wanted[TYPE] = '0';
    memcpy(wanted + MAGIC, "ustar\00000", 8);
    memcpy(wanted + PREFIX, directory, strlen(directory));
    seal(wanted);
    assert_memory_equal(header, wanted, sizeof wanted);
    struct tr_tar_header parsed;
    assert_int_equal(tr_tar_parse(header, &parsed), TR_TAR_GOOD);
    assert_string_equal(parsed.name, name);
    assert_int_equal(parsed.size, bytes);
    assert_int_equal(parsed.type, '0');
}

static void headers_are_those_of_posix(void **unused)
{
    char longest[101], folder[156], text[600];
    uint8_t header[TR_TAR_BLOCK];
    (void)unused;
    expect_header("folder", "name.png", 0, "00000000000");
    expect_header("", "n", 511, "00000000777");
    expect_header("", "n", ((uint64_t)1 << 33) - 1, "77777777777");
    expect_header("", "n", (uint64_t)1 << 33, "\x80\0\0\0\0\0\0\2\0\0\0\0");
    expect_header("", "n", 0x0102030405060708, "\x80\0\0\0\1\2\3\4\5\6\7\x8");
    memset(longest, 'x', 100);
    memset(folder, 'y', 155);
    longest[100] = folder[155] = '\0';
    expect_header(folder, longest, 1, "00000000001");
    assert_int_equal(
        tr_tar_header(folder,
                      "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
                      "nnnnnnnnnnnnnnnnnnnnn",
                      1, header),
        TR_EINVAL);
    memset(text, 'z', 156);
    text[156] = '\0';
    assert_int_equal(tr_tar_header(text, "n", 1, header), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "/n\" is too long a name for a tar archive"));
    assert_int_equal(tr_tar_padding(0), 0);
    assert_int_equal(tr_tar_padding(1), 511);
    assert_int_equal(tr_tar_padding(511), 1);
    assert_int_equal(tr_tar_padding(512), 0);
    assert_int_equal(tr_tar_padding(513), 511);
}

/* Numbers have blanks and NULs around them, or are binary. */
static void sizes_are_read_in_all_forms(void **unused)
{
    static const struct {
        const char *field;
        bool good;
        uint64_t size;
    } cases[] = {
        {"00000000017", true, 15},
        {"      17 \0\0\0", true, 15},
        {"17\0\0\0\0\0\0\0\0\0", true, 15},
        {"777777777777", true, 68719476735},
        {"           0", true, 0},
        {"00000000018", false, 0},
        {"0000000001x", false, 0},
        {"            ", false, 0},
        {"\0\0\0\0\0\0\0\0\0\0\0", false, 0},
        {"1 7         ", false, 0},
        {"-0000000017", false, 0},
        {"0000000001/", false, 0},
        {"\x80\0\0\0\0\0\0\0\0\0\1\2", true, 258},
        {"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", true, 0x7fffffffffffffff},
        {"\x80\0\0\0\x80\0\0\0\0\0\0\0", false, 0},
        {"\x80\1\0\0\0\0\0\0\0\0\0\0", false, 0},
        {"\x81\0\0\0\0\0\0\0\0\0\1\2", false, 0},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        uint8_t header[TR_TAR_BLOCK];
        struct tr_tar_header parsed;
        assert_int_equal(tr_tar_header("", "n", 1, header), TR_OK);
        memcpy(header + SIZE, cases[i].field, 12);
        seal(header);
        const enum tr_tar_verdict verdict = tr_tar_parse(header, &parsed);
        if (verdict != (cases[i].good ? TR_TAR_GOOD : TR_TAR_BAD_SIZE))
            fail_msg("case %d: %d", i, (int)verdict);
        if (cases[i].good) assert_int_equal(parsed.size, cases[i].size);
    }
}

static void other_blocks_are_told(void **unused)
{
    uint8_t header[TR_TAR_BLOCK] = {0};
    struct tr_tar_header parsed;
    (void)unused;
    assert_int_equal(tr_tar_parse(header, &parsed), TR_TAR_END);
    header[511] = 1;
    assert_int_equal(tr_tar_parse(header, &parsed), TR_TAR_BAD_SUM);
    assert_int_equal(tr_tar_header("d", "n", 1, header), TR_OK);
    for (int i = 0; i < 512; i++) { /* every byte counts */
        header[i] ^= 1;
        const enum tr_tar_verdict verdict = tr_tar_parse(header, &parsed);
        if (verdict == TR_TAR_GOOD) fail_msg("byte %d", i);
        header[i] ^= 1;
    }
    memset(header + SUM, 0, 8);
    assert_int_equal(tr_tar_parse(header, &parsed), TR_TAR_BAD_SUM);
    memcpy(header + SUM, "  123\0 x", 8);
    assert_int_equal(tr_tar_parse(header, &parsed), TR_TAR_BAD_SUM);
}

/* ---- archives ---- */

static uint8_t archive[20 * 512];
static size_t used;

static void add(const char *name, char type, const char *data)
{
    assert_int_equal(tr_tar_header("", name, strlen(data), archive + used), TR_OK);
    archive[used + TYPE] = (uint8_t)type;
    seal(archive + used);
    memcpy(archive + used + 512, data, strlen(data));
    used += 512 + strlen(data) + tr_tar_padding(strlen(data));
}

static void expect_next(size_t size, size_t *at, const char *name, const char *data)
{
    struct tr_tar_file file;
    bool there;
    assert_int_equal(tr_tar_next_file("it", archive, size, at, &file, &there), TR_OK);
    assert_int_equal(there, name != NULL);
    if (!name) return;
    assert_string_equal(file.name, name);
    assert_int_equal(file.size, strlen(data));
    assert_memory_equal(file.data, data, file.size);
}

static void files_follow_each_other(void **unused)
{
    (void)unused;
    memset(archive, 0, sizeof archive);
    used = 0;
    add("d/", '5', "");
    add("d/one", '0', "1");
    add("x", 'x', "a record of names");
    add("g", 'g', "");
    add("two", 0, "");
    add("a/b/three", '0', "333");
    for (int ended = 0; ended < 4; ended++) {
        /* with zeros behind, without, with some of them, and without the zeros of the last file */
        const size_t size = ended == 0   ? used + 1024
                            : ended == 1 ? used
                            : ended == 2 ? used + 512
                                         : used - 509;
        size_t at = 0;
        expect_next(size, &at, "one", "1");
        assert_int_equal(at, 3 * 512);
        expect_next(size, &at, "two", "");
        assert_int_equal(at, 7 * 512);
        expect_next(size, &at, "three", "333");
        assert_int_equal(at, ended == 3 ? size : 9 * 512);
        expect_next(size, &at, NULL, NULL);
    }
}

static void expect_failure(size_t size, size_t at, const char *message)
{
    struct tr_tar_file file;
    bool there = true;
    assert_int_equal(tr_tar_next_file("it", archive, size, &at, &file, &there), TR_EFORMAT);
    assert_string_equal(tr_error_message(), message);
    assert_false(there);
}

static void faults_name_their_place(void **unused)
{
    (void)unused;
    memset(archive, 0, sizeof archive);
    used = 0;
    expect_failure(0, 0, "\"it\": 0 bytes at byte 0 are too few for a member of a tar archive");
    expect_failure(512, 0, "\"it\": there is no member of a tar archive at byte 0; is it one, and complete?");
    add("one", '0', "1");
    add("link", '2', "");
    expect_failure(511, 0, "\"it\": 511 bytes at byte 0 are too few for a member of a tar archive");
    expect_failure(
        512, 0, "\"it\": the member at byte 0 has more bytes than the 0 that are there; the rest is missing");
    expect_failure(1500, 1024, "\"it\": 476 bytes at byte 1024 are too few for a member of a tar archive");
    expect_failure(used, 1024, "\"it\": \"link\" is neither a file nor a directory");
    archive[1024] ^= 1;
    expect_failure(used, 1024,
                   "\"it\": there is no member of a tar archive at byte 1024; is it one, and complete?");
    memset(archive + SIZE, 'x', 11);
    seal(archive);
    expect_failure(
        used, 0,
        "\"it\": the member at byte 0 has more bytes than the 1024 that are there; the rest is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_those_of_posix), cmocka_unit_test(sizes_are_read_in_all_forms),
        cmocka_unit_test(other_blocks_are_told),      cmocka_unit_test(files_follow_each_other),
        cmocka_unit_test(faults_name_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
