/* The files of an archive of tar, read one after the other: what is skipped, where they end, and what is said
 * of an archive that is damaged or cut.
 */
#include "data/files/tar.h"

#include "base/fail.h"
#include "io/tar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { BLOCK = 512, ROOM = 64 * BLOCK, SIZE = 124, SUM = 148, TYPE = 156 };

static uint8_t archive[ROOM];
static size_t used;

static void seal(uint8_t *header)
{
    unsigned sum = 0;
    char digits[16];
    memset(header + SUM, ' ', 8);
    for (int i = 0; i < BLOCK; i++) sum += header[i];
    snprintf(digits, sizeof digits, "%06o", sum);
    memcpy(header + SUM, digits, 7);
}

/* Adds a member that is full of its first character. */
static uint8_t *put(const char *name, char type, size_t bytes)
{
    uint8_t *header = archive + used;
    assert_int_equal(tr_tar_header("", name, bytes, header), TR_OK);
    header[TYPE] = (uint8_t)type;
    seal(header);
    memset(header + BLOCK, name[0], bytes);
    used += BLOCK + (bytes + BLOCK - 1) / BLOCK * BLOCK;
    assert_true(used + 2 * BLOCK <= ROOM);
    return header;
}

static void start(void)
{
    memset(archive, 0, sizeof archive);
    used = 0;
}

static tr_inflate *begin(size_t size)
{
    tr_inflate *inflate;
    assert_int_equal(tr_inflate_create("it", archive, size, TR_PACKING_NONE, &inflate), TR_OK);
    return inflate;
}

static void files_follow_each_other(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 511, 512, 513, 1024, 10000};
    enum { FILES = sizeof sizes / sizeof *sizes };
    char name[8];
    start();
    put("directory/", '5', 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%c.bin", 'a' + i);
        if (i == 3) put("long name of the next", 'L', 700);
        if (i == 4) put("", '0', 600); /* a file without a name is none */
        put(name, i % 2 ? '0' : '\0', sizes[i]);
        if (i == 5) put("link", '2', 0);
    }
    tr_inflate *inflate = begin(used + BLOCK); /* one block of zeros is an end */
    struct tr_tar_member member;
    for (int i = 0; i < FILES; i++) {
        uint8_t part[300];
        snprintf(name, sizeof name, "%c.bin", 'a' + i);
        assert_int_equal(tr_tar_next(inflate, "it.tar", &member), TR_OK);
        assert_string_equal(member.name, name);
        assert_true(member.size == sizes[i]);
        /* some of it is read before the rest is skipped: nothing, a part, or all of a small one */
        const size_t size = i == 0 || i == 6 ? 0 : sizes[i] < sizeof part ? sizes[i] : sizeof part;
        assert_int_equal(tr_inflate_exact(inflate, part, size, "a part"), TR_OK);
        for (size_t k = 0; k < size; k++) assert_int_equal(part[k], 'a' + i);
        assert_int_equal(tr_tar_skip(inflate, &member, size), TR_OK);
        assert_true(tr_inflate_offset(inflate) % BLOCK == 0);
    }
    assert_int_equal(tr_tar_next(inflate, "it.tar", &member), TR_OK);
    assert_string_equal(member.name, "");
    assert_int_equal(tr_inflate_end(inflate), TR_OK);
    tr_inflate_destroy(&inflate);
}

static void expect_refusal(size_t size, tr_status expected, const char *message)
{
    tr_inflate *inflate = begin(size);
    struct tr_tar_member member;
    tr_status status;
    do {
        status = tr_tar_next(inflate, "it.tar", &member);
        if (status == TR_OK && member.name[0]) status = tr_tar_skip(inflate, &member, 0);
    } while (status == TR_OK && member.name[0]);
    assert_int_equal(status, expected);
    assert_string_equal(tr_error_message(), message);
    tr_inflate_destroy(&inflate);
}

static void damaged_and_cut_archives_are_refused(void **state)
{
    (void)state;
    start();
    put("first", '0', 3);
    uint8_t *second = put("second", '0', 20000);
    expect_refusal(used, TR_EFORMAT,
                   "it: truncated at offset 22016: the header of a member should take 512 "
                   "bytes, 0 are there; get the file again");
    expect_refusal(BLOCK + 10, TR_EFORMAT,
                   "it: truncated at offset 522: a member should take 512 bytes, 10 are "
                   "there; get the file again");
    expect_refusal(2 * BLOCK + 511, TR_EFORMAT,
                   "it: truncated at offset 1535: the header of a member should take "
                   "512 bytes, 511 are there; get the file again");
    expect_refusal(used - 1, TR_EFORMAT,
                   "it: truncated at offset 22015: a member should take 4096 bytes, 4095 are "
                   "there; get the file again");
    second[SIZE + 2] = '8';
    expect_refusal(used, TR_ECORRUPT,
                   "it.tar: the header at offset 1024 (unpacked) does not match its checksum, "
                   "or this is no tar archive; get the file again");
    seal(second);
    expect_refusal(used, TR_EFORMAT, "it.tar: the size of the member at offset 1024 (unpacked) is no number");
    start();
    put("what is passed over", 'L', 700);
    put("first", '0', 3);
    expect_refusal(BLOCK + 10, TR_EFORMAT,
                   "it: truncated at offset 522: a member should take 1024 bytes, 10 are there; get the file "
                   "again");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_follow_each_other),
        cmocka_unit_test(damaged_and_cut_archives_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
