/* CIFAR-10, from files and from an archive as it is published. */
#include "base/alloc.h"
#include "data/source.h"
#include "data/support.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RECORD    3073
#define FILE_SIZE ((size_t)10000 * RECORD)

/* Record i of file k has label (i + k) % 10, and pixels that are different in each plane. */
static uint8_t *make_file(int k)
{
    uint8_t *file = calloc(1, FILE_SIZE);
    for (size_t i = 0; i < 10000; i++) {
        uint8_t *record = file + i * RECORD;
        record[0] = (uint8_t)((i + (size_t)k) % 10);
        record[1] = (uint8_t)i;
        record[1 + 1024] = (uint8_t)(i >> 8);
        record[1 + 2048] = (uint8_t)k;
        record[RECORD - 1] = (uint8_t)(k + 100);
    }
    return file;
}

static void file_name(int k, char name[32])
{
    if (k == 5) {
        strcpy(name, "test_batch.bin");
    } else {
        sprintf(name, "data_batch_%d.bin", k + 1);
    }
}

/* Appends a member to an archive in memory. */
static size_t add_member(uint8_t *archive, size_t at, const char *name, char type, const uint8_t *data,
                         size_t size)
{
    uint8_t *header = archive + at;
    memset(header, 0, 512);
    strcpy((char *)header, name);
    sprintf((char *)header + 100, "%07o", 0644);
    sprintf((char *)header + 124, "%011o", (unsigned)size);
    header[156] = (uint8_t)type;
    memcpy(header + 257, "ustar", 5);
    memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++) sum += header[i];
    sprintf((char *)header + 148, "%06o", sum);
    if (size > 0) memcpy(header + 512, data, size);
    return at + 512 + (size + 511) / 512 * 512;
}

static void check_training_set(tr_source *source)
{
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->count, 50000);
    assert_int_equal(info->classes, 10);
    assert_string_equal(info->class_names[3], "cat");
    assert_int_equal(tr_source_capacity(source), 3072);
    for (int64_t i = 0; i < 50000; i += 1111) {
        uint8_t pixels[3072];
        int32_t label;
        assert_int_equal(tr_source_read(source, i, pixels, 3072, NULL, &label), TR_OK);
        assert_int_equal(label, (i % 10000 + i / 10000) % 10);
        assert_int_equal(pixels[0], (uint8_t)(i % 10000));
        assert_int_equal(pixels[1], i % 10000 >> 8);
        assert_int_equal(pixels[2], i / 10000);
        assert_int_equal(pixels[3071], 100 + i / 10000);
    }
    uint8_t pixels[3072];
    int32_t label = -1; /* each alone */
    assert_int_equal(tr_source_read(source, 3, NULL, 0, NULL, &label), TR_OK);
    assert_int_equal(label, 3);
    assert_int_equal(tr_source_read(source, 3, pixels, 3072, NULL, NULL), TR_OK);
    assert_int_equal(pixels[0], 3);
}

static void test_files_and_archive(void **unused)
{
    (void)unused;
    uint8_t *archive = calloc(1, 6 * (FILE_SIZE + 1024) + 4096);
    mkdir(test_path("cifar"), 0700);
    size_t at = add_member(archive, 0, "cifar-10-batches-bin/", '5', NULL, 0);
    at = add_member(archive, at, "cifar-10-batches-bin/batches.meta.txt", '0', (const uint8_t *)"airplane\n",
                    9);
    static const int order[] = {2, 0, 5, 4, 3, 1};
    for (int i = 0; i < 6; i++) {
        char name[32], path[64];
        uint8_t *file = make_file(order[i]);
        file_name(order[i], name);
        if (i == 1) /* none of the set's files */
            at = add_member(archive, at, "cifar-10-batches-bin/data_batch_6.bin", '0', (const uint8_t *)"x",
                            1);
        sprintf(path, "cifar-10-batches-bin/%s", name);
        at = add_member(archive, at, path, '0', file, FILE_SIZE);
        sprintf(path, "cifar/%s", name);
        write_file(path, file, FILE_SIZE);
        free(file);
    }
    at += 1024;

    char digest[2][65];
    tr_source *source = must_open("{cifar: {path: cifar}}");
    check_training_set(source);
    assert_int_equal(tr_source_digest(source, digest[0]), TR_OK);
    assert_int_equal(source->files.count, 5);
    tr_source_close(&source);
    source = must_open("{cifar: {path: cifar, part: test}}");
    assert_int_equal(tr_source_info(source)->count, 10000);
    assert_int_equal(source->files.count, 1);
    assert_int_equal(tr_source_digest(source, digest[0]), TR_OK);
    tr_source_close(&source);
    uint8_t *other = make_file(5);
    other[7 * RECORD] ^= 1; /* a label */
    write_file("cifar/test_batch.bin", other, FILE_SIZE);
    free(other);
    source = must_open("{cifar: {path: cifar, part: test}}");
    assert_int_equal(tr_source_digest(source, digest[1]), TR_OK);
    assert_string_not_equal(digest[0], digest[1]);
    tr_source_close(&source);
    source = must_open("{cifar: {path: cifar}}");
    assert_int_equal(tr_source_digest(source, digest[0]), TR_OK);
    tr_source_close(&source);

    struct bytes packed = pack(archive, at, 31);
    write_file("cifar.tar.gz", packed.data, packed.size);
    source = must_open("{cifar: {path: cifar.tar.gz}}");
    check_training_set(source);
    assert_int_equal(tr_source_digest(source, digest[1]), TR_OK);
    assert_int_equal(source->files.count, 1);
    assert_string_equal(digest[0], digest[1]);
    tr_source_close(&source);

    write_file("cifar.tar.gz", packed.data, packed.size / 2);
    expect_refusal("{cifar: {path: cifar.tar.gz}}", TR_EFORMAT, "cifar.tar.gz");
    free(packed.data);
    archive[512 + 3] ^= 1;                     /* in the name of the second member */
    write_file("cifar.tar", archive, 1 << 20); /* plain, and these faults come before its end */
    expect_refusal("{cifar: {path: cifar.tar}}", TR_ECORRUPT, "offset 512");
    archive[512 + 3] ^= 1;
    archive[1536 + 512] = 10;                  /* the first label of data_batch_3.bin */
    write_file("cifar.tar", archive, 1 << 20); /* plain, and these faults come before its end */
    expect_refusal("{cifar: {path: cifar.tar}}", TR_EFORMAT, "label 10 at offset 2048");
    write_file("cifar.tar", archive, 1536);
    expect_refusal("{cifar: {path: cifar.tar}}", TR_EFORMAT, "truncated");
    memset(archive + 1536, 0, 512);
    write_file("cifar.tar", archive, 2048);
    expect_refusal("{cifar: {path: cifar.tar}}", TR_EFORMAT, "the archive has no data_batch_1.bin");
    at = add_member(archive, 0, "data_batch_1.bin", '0', (const uint8_t *)"short", 5);
    write_file("cifar.tar", archive, at + 512);
    expect_refusal("{cifar: {path: cifar.tar}}", TR_EFORMAT, "has 5 bytes");
    free(archive);
}

static void test_bad_files(void **unused)
{
    (void)unused;
    mkdir(test_path("bad"), 0700);
    expect_refusal("{cifar: {path: bad, part: test}}", TR_ENOTFOUND, "test_batch.bin");
    uint8_t *file = make_file(5);
    write_file("bad/test_batch.bin", file, FILE_SIZE - 1);
    expect_refusal("{cifar: {path: bad, part: test}}", TR_EFORMAT, "truncated at offset 30729999");
    file = realloc(file, FILE_SIZE + 1);
    file[FILE_SIZE] = 0;
    write_file("bad/test_batch.bin", file, FILE_SIZE + 1);
    expect_refusal("{cifar: {path: bad, part: test}}", TR_EFORMAT, "trailing bytes at offset 30730000");
    file[5 * RECORD] = 77;
    write_file("bad/test_batch.bin", file, FILE_SIZE);
    expect_refusal("{cifar: {path: bad, part: test}}", TR_EFORMAT, "label 77 at offset 15365");
    expect_refusal("{cifar: {path: bad, part: both}}", TR_EINVAL, "both");
    free(file);
    assert_int_equal(remove(test_path("bad/test_batch.bin")), 0);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = try_open("{cifar: {path: bad, part: test}}");
        done = refuse_end();
        assert_int_equal(status, done ? TR_ENOTFOUND : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_and_archive),
        cmocka_unit_test(test_bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
