/* .npy and .npz: the bytes that NumPy itself writes, every way to write the header, archives down to the
 * 64-bit records; faults, failing allocations and damage. */
#include "io/npy.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/file_fault.h"
#include "base/numbers/hash.h"
#include "io/zip.h"
#include "mutate.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char path[SCRATCH_PATH];

static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_join(path, scratch_place, "arrays.npz");
    return 0;
}

/* ---- headers ---- */

static void expect_header(struct tr_stored_tensor tensor, const char *dictionary, size_t whole)
{
    uint8_t *header, expected[256];
    size_t size, length = strlen(dictionary);
    assert_int_equal(tr_npy_header(&tensor, &header, &size), TR_OK);
    assert_int_equal(size, whole);
    memcpy(expected, "\x93NUMPY\x01\0", 8);
    expected[8] = (uint8_t)(whole - 10);
    expected[9] = 0;
    memcpy(expected + 10, dictionary, length);
    memset(expected + 10 + length, ' ', whole - 10 - length);
    expected[whole - 1] = '\n';
    assert_memory_equal(header, expected, whole);
    tr_free(header);
}

static void headers_are_numpys(void **state)
{
    (void)state;
    expect_header((struct tr_stored_tensor){.dtype = TR_DTYPE_F32, .rank = 4, .shape = {5, 5, 1, 32}},
                  "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 5, 1, 32), }", 128);
    expect_header((struct tr_stored_tensor){.dtype = TR_DTYPE_U8, .rank = 1, .shape = {7}},
                  "{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }", 128);
    /* 10 + 53 + 1: it just fits a grain. */
    expect_header((struct tr_stored_tensor){.dtype = TR_DTYPE_I64, .rank = 0},
                  "{'descr': '<i8', 'fortran_order': False, 'shape': (), }", 128);
    static const struct {
        enum tr_dtype dtype;
        const char *name;
    } types[] = {{TR_DTYPE_F64, "<f8"}, {TR_DTYPE_F16, "<f2"}, {TR_DTYPE_I32, "<i4"},
                 {TR_DTYPE_I16, "<i2"}, {TR_DTYPE_I8, "|i1"},  {TR_DTYPE_U64, "<u8"},
                 {TR_DTYPE_U32, "<u4"}, {TR_DTYPE_U16, "<u2"}, {TR_DTYPE_BOOL, "|b1"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char dictionary[80];
        snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': (2, 3), }",
                 types[i].name);
        expect_header((struct tr_stored_tensor){.dtype = types[i].dtype, .rank = 2, .shape = {2, 3}},
                      dictionary, 128);
    }
    uint8_t *header = (uint8_t *)"";
    size_t size;
    struct tr_stored_tensor unknown = {.dtype = TR_DTYPE_BF16, .rank = 0};
    assert_int_equal(tr_npy_header(&unknown, &header, &size), TR_EINVAL);
    assert_null(header);
    struct tr_stored_tensor huge = {.dtype = TR_DTYPE_F32, .rank = 2, .shape = {INT64_MAX, INT64_MAX}};
    assert_int_equal(tr_npy_header(&huge, &header, &size), TR_EINVAL);
}

/* Puts a file of this dictionary and `bytes` bytes of data together; version 1 or 2. */
static size_t make_file(const char *dictionary, int version, size_t bytes, uint8_t *file)
{
    size_t length = strlen(dictionary), head = version == 1 ? 10 : 12;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (uint8_t)version;
    file[7] = 0;
    for (size_t i = 8; i < head; i++) file[i] = (uint8_t)(length >> 8 * (i - 8));
    memcpy(file + head, dictionary, length);
    memset(file + head + length, 0, bytes);
    return head + length + bytes;
}

/* Parses what make_file() makes, from memory of exactly that size. */
static tr_status parse(const char *dictionary, int version, size_t bytes, struct tr_npy *npy)
{
    uint8_t file[1024];
    size_t size = make_file(dictionary, version, bytes, file);
    uint8_t *exact = malloc(size);
    memcpy(exact, file, size);
    tr_status status = tr_npy_parse("x.npy", exact, size, npy);
    free(exact);
    return status;
}

static void headers_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *dictionary;
        size_t bytes;
        enum tr_dtype dtype;
        bool big_endian;
        int rank;
        int64_t shape[3];
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
         24,
         TR_DTYPE_F32,
         false,
         2,
         {2, 3}},
        {"{'descr': '>i8', 'fortran_order': False, 'shape': (3,), }", 24, TR_DTYPE_I64, true, 1, {3}},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (), }", 1, TR_DTYPE_U8, false, 0, {0}},
        {"{\"shape\":(1,2,3),\"fortran_order\":False,\"descr\":\"<f8\"}",
         48,
         TR_DTYPE_F64,
         false,
         3,
         {1, 2, 3}},
        {" { 'shape' : ( 2L , 2L ) , 'descr' : '=i4' , 'fortran_order' : False , } ",
         16,
         TR_DTYPE_I32,
         false,
         2,
         {2, 2}},
        {"{'descr': 'u1', 'fortran_order': True, 'shape': (4,), }", 4, TR_DTYPE_U8, false, 1, {4}},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (0, 9), }", 0, TR_DTYPE_I16, false, 2, {0, 9}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int version = 1; version <= 3; version++) {
            struct tr_npy npy;
            if (parse(cases[i].dictionary, version, cases[i].bytes, &npy) != TR_OK)
                fail_msg("%s: %s", cases[i].dictionary, tr_error_message());
            assert_int_equal(npy.dtype, cases[i].dtype);
            assert_int_equal(npy.big_endian, cases[i].big_endian);
            assert_int_equal(npy.rank, cases[i].rank);
            assert_memory_equal(npy.shape, cases[i].shape, (size_t)npy.rank * sizeof npy.shape[0]);
            assert_int_equal(npy.bytes, cases[i].bytes);
            assert_int_equal(npy.offset, (version == 1 ? 10 : 12) + strlen(cases[i].dictionary));
        }
    }
}

static void what_cannot_be_read_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *dictionary;
        size_t bytes;
        tr_status status;
        const char *words;
    } cases[] = {
        {"", 4, TR_EFORMAT, "there is no dictionary at character 1"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), ", 24, TR_EFORMAT, "no text in quotes"},
        {"{'descr': '<f4', 'fortran_order': False}", 24, TR_EFORMAT, "is missing"},
        {"{'descr': '<f4', 'shape': (2, 3)}", 24, TR_EFORMAT, "is missing"},
        {"{'fortran_order': False, 'shape': (2, 3)}", 24, TR_EFORMAT, "is missing"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), 'shape': ()}", 4, TR_EFORMAT,
         "unknown or second key"},
        {"{'descr': '<f4', 'fortran_order': False, 'fortran_order': False, 'shape': ()}", 4, TR_EFORMAT,
         "unknown or second key"},
        {"{'descr': '', 'fortran_order': False, 'shape': ()}", 4, TR_EUNSUPPORTED, "not known (descr '')"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, TR_EFORMAT,
         "unknown or second key"},
        {"{'descr': '<f4', 'order': 'C', 'fortran_order': False, 'shape': ()}", 4, TR_EFORMAT,
         "unknown or second key"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", 4, TR_EFORMAT, "neither True nor False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4)}", 16, TR_EFORMAT, "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [4]}", 16, TR_EFORMAT, "no shape in parentheses"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-4,)}", 16, TR_EFORMAT, "there is no size"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 4, TR_EFORMAT,
         "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", 4, TR_EFORMAT,
         "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", 4, TR_EFORMAT,
         "does not fit"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", 0, TR_EFORMAT,
         "does not fit"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 8)}", 0, TR_EFORMAT,
         "does not fit"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 23, TR_EFORMAT, "23 bytes follow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 25, TR_EFORMAT, "F32[2,3]"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 4, TR_EFORMAT, "something follows"},
        {"{'descr': '<f4\\n', 'fortran_order': False, 'shape': ()}", 4, TR_EFORMAT, "a text does not end"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", 24, TR_EUNSUPPORTED,
         "ascontiguousarray"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8, TR_EUNSUPPORTED, "records"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", 8, TR_EUNSUPPORTED, "Python objects"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", 16, TR_EUNSUPPORTED, "complex"},
        {"{'descr': '<U3', 'fortran_order': False, 'shape': (2,)}", 24, TR_EUNSUPPORTED, "texts"},
        {"{'descr': '|S3', 'fortran_order': False, 'shape': (2,)}", 6, TR_EUNSUPPORTED, "texts"},
        {"{'descr': '|a3', 'fortran_order': False, 'shape': (2,)}", 6, TR_EUNSUPPORTED, "texts"},
        {"{'descr': '<m8[s]', 'fortran_order': False, 'shape': (2,)}", 16, TR_EUNSUPPORTED, "times"},
        {"{'descr': '<M8[s]', 'fortran_order': False, 'shape': (2,)}", 16, TR_EUNSUPPORTED, "times"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (2,)}", 32, TR_EUNSUPPORTED,
         "not known (descr '<f16')"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4, TR_EUNSUPPORTED,
         "dimensions"},
    };
    struct tr_npy npy;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(cases[i].dictionary, 1, cases[i].bytes, &npy), cases[i].status);
        if (!strstr(tr_error_message(), cases[i].words))
            fail_msg("%s: %s", cases[i].dictionary, tr_error_message());
    }
    assert_int_equal(tr_npy_parse("x", (const uint8_t *)"PK\3\4 not one", 12, &npy), TR_EFORMAT);
    assert_int_equal(tr_npy_parse("x", (const uint8_t *)"", 0, &npy), TR_EFORMAT);
    assert_int_equal(tr_npy_parse("x", (const uint8_t *)"\x93NUMPY\x04\0\x01\0{", 11, &npy), TR_EUNSUPPORTED);
    assert_int_equal(tr_npy_parse("x", (const uint8_t *)"\x93NUMPY\x02\0\xff\xff", 10, &npy), TR_EFORMAT);
    assert_int_equal(tr_npy_parse("x", (const uint8_t *)"\x93NUMPY\x02\0\xff\xff\xff\xff", 12, &npy),
                     TR_EFORMAT);
}

/* Whatever the bytes: an answer, nothing read beyond the end, and what is accepted fits the file. */
static void damaged_headers_are_survived(void **state)
{
    (void)state;
    uint8_t file[256], damaged[256 + 64];
    size_t size = make_file("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }  \n", 1, 24, file);
    int accepted = 0;
    for (uint32_t round = 0; round < 30000; round++) {
        struct tr_npy npy;
        size_t now = mutate_bytes(round, (const char *)file, size, (char *)damaged);
        uint8_t *exact = malloc(now ? now : 1);
        memcpy(exact, damaged, now);
        if (tr_npy_parse("x", exact, now, &npy) == TR_OK) {
            uint64_t bytes = tr_dtype_size(npy.dtype);
            for (int i = 0; i < npy.rank; i++) bytes *= (uint64_t)npy.shape[i];
            assert_int_equal(bytes, npy.bytes);
            assert_int_equal(npy.offset + npy.bytes, now);
            accepted++;
        } else {
            assert_true(tr_error_message()[0] != 0);
        }
        free(exact);
    }
    assert_true(accepted > 100);
}

/* ---- archives ---- */

static float weights[6] = {1.5f, -2, 0, 3.25f, -0.0f, 1e-40f};
static int64_t steps[1] = {-2};

static const struct tr_stored_tensor samples[] = {
    {.name = "dense1.weight", .dtype = TR_DTYPE_F32, .rank = 2, .shape = {2, 3}, .data = weights},
    {.name = "empty", .dtype = TR_DTYPE_F32, .rank = 2, .shape = {0, 7}},
    {.name = "steps", .dtype = TR_DTYPE_I64, .rank = 0, .data = steps},
};
#define SAMPLES ((int64_t)(sizeof samples / sizeof samples[0]))

static uint64_t number(const uint8_t *at, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* A reader of archives: checks all that is redundant, and gives the members to `check`. */
struct archive {
    const uint8_t *data;
    size_t size;
    bool wide; /* has 64-bit records */
};

/* The 64-bit value number *index of an extra field, or `small` where that says it all. */
static uint64_t wide_value(uint64_t small, const uint8_t *extra, size_t *at)
{
    if (small != UINT32_MAX) return small;
    uint64_t value = number(extra + 4 + *at, 8);
    *at += 8;
    return value;
}

static int64_t read_archive(struct archive *archive,
                            void (*check)(int64_t index, const char *name, size_t length, const uint8_t *data,
                                          uint64_t bytes))
{
    const uint8_t *end = archive->data + archive->size - 22;
    assert_int_equal(number(end, 4), 0x06054b50);
    uint64_t count = number(end + 10, 2), bytes = number(end + 12, 4), begin = number(end + 16, 4);
    uint64_t behind = (uint64_t)(end - archive->data);
    archive->wide = archive->size >= 22 + 20 && number(end - 20, 4) == 0x07064b50;
    if (archive->wide) {
        const uint8_t *record = archive->data + number(end - 20 + 8, 8);
        assert_ptr_equal(record, end - 20 - 56);
        assert_int_equal(number(record, 4), 0x06064b50);
        assert_int_equal(number(record + 4, 8), 44);
        count = number(record + 32, 8);
        bytes = number(record + 40, 8);
        begin = number(record + 48, 8);
        behind -= 76;
    }
    assert_int_equal(begin + bytes, behind);
    const uint8_t *at = archive->data + begin;
    uint64_t next = 0;
    for (uint64_t i = 0; i < count; i++) {
        size_t taken = 0, length = number(at + 28, 2), extra = number(at + 30, 2);
        const char *name = (const char *)at + 46;
        const uint8_t *field = at + 46 + length;
        assert_int_equal(number(at, 4), 0x02014b50);
        assert_int_equal(number(at + 10, 2), 0); /* stored */
        uint64_t packed = wide_value(number(at + 20, 4), field, &taken);
        uint64_t plain = wide_value(number(at + 24, 4), field, &taken);
        uint64_t offset = wide_value(number(at + 42, 4), field, &taken);
        assert_int_equal(extra, taken ? 4 + taken : 0);
        assert_int_equal(packed, plain);
        assert_int_equal(offset, next);
        const uint8_t *local = archive->data + offset;
        assert_int_equal(number(local, 4), 0x04034b50);
        assert_memory_equal(local + 14, at + 16, 4); /* checksum */
        assert_int_equal(number(local + 26, 2), length);
        assert_memory_equal(local + 30, name, length);
        size_t local_taken = 0, local_extra = number(local + 28, 2);
        assert_int_equal(wide_value(number(local + 18, 4), local + 30 + length, &local_taken), plain);
        assert_int_equal(wide_value(number(local + 22, 4), local + 30 + length, &local_taken), plain);
        const uint8_t *data = local + 30 + length + local_extra;
        assert_int_equal(tr_crc32(0, data, plain), number(at + 16, 4));
        check((int64_t)i, name, length, data, plain);
        next = (uint64_t)(data - archive->data) + plain;
        at += 46 + length + extra;
    }
    assert_int_equal(next, begin);
    assert_int_equal(at - archive->data, behind);
    return (int64_t)count;
}

static void check_sample(int64_t index, const char *name, size_t length, const uint8_t *data, uint64_t bytes)
{
    const struct tr_stored_tensor *sample = &samples[index];
    struct tr_npy npy;
    assert_int_equal(length, strlen(sample->name) + 4);
    assert_memory_equal(name, sample->name, length - 4);
    assert_memory_equal(name + length - 4, ".npy", 4);
    assert_int_equal(tr_npy_parse("sample", data, bytes, &npy), TR_OK);
    assert_int_equal(npy.dtype, sample->dtype);
    assert_int_equal(npy.rank, sample->rank);
    assert_memory_equal(npy.shape, sample->shape, (size_t)npy.rank * sizeof npy.shape[0]);
    if (npy.bytes) assert_memory_equal(data + npy.offset, sample->data, npy.bytes);
}

static void archives_hold_the_arrays(void **state)
{
    (void)state;
    struct tr_file_content content;
    char hash[TR_SHA256_TEXT];
    assert_int_equal(tr_npz_replace(NULL, path, samples, SAMPLES), TR_OK);
    assert_int_equal(tr_file_read(path, 1 << 20, &content), TR_OK);
    struct archive archive = {(const uint8_t *)content.data, content.size, false};
    assert_int_equal(read_archive(&archive, check_sample), SAMPLES);
    assert_false(archive.wide);
    /* On record: these bytes were read by NumPy and by unzip. */
    assert_int_equal(content.size, 736);
    assert_int_equal(tr_sha256_of(content.data, content.size, hash), TR_OK);
    assert_string_equal(hash, "ebaebe17c7c86ec76683d45e6fc9ea948578119d044ceef8cb7265e9943814ee");
    tr_file_content_free(&content);
    assert_int_equal(tr_npz_replace(NULL, path, samples, 0), TR_OK);
    assert_int_equal(tr_file_read(path, 1 << 20, &content), TR_OK);
    assert_int_equal(content.size, 22);
    tr_file_content_free(&content);
}

static int64_t seen;

static void check_member(int64_t index, const char *name, size_t length, const uint8_t *data, uint64_t bytes)
{
    assert_int_equal(length, 1);
    assert_int_equal(*name, 'a' + index);
    assert_int_equal(bytes, 40 * (uint64_t)(index + 1) + 1);
    for (uint64_t i = 0; i < bytes; i++) assert_int_equal(data[i], '0' + index);
    seen++;
}

/* Where 32 bits end is moved to so many bytes. The reader takes 2^32 - 1 for "elsewhere", as in a large file.
 */
static bool has_wide_records(uint64_t wide)
{
    struct tr_file_writer writer;
    struct tr_file_content content;
    char data[200];
    assert_int_equal(tr_file_begin(NULL, path, TR_FILE_REPLACE, 0, &writer), TR_OK);
    struct tr_zip zip = TR_ZIP_INIT(&writer);
    zip.wide = wide;
    for (int i = 0; i < 4; i++) {
        memset(data, '0' + i, sizeof data);
        /* In two pieces, the first of one byte. */
        const struct tr_zip_piece pieces[] = {{data, 1}, {data, 40 * (size_t)(i + 1)}};
        assert_int_equal(tr_zip_add(&zip, (char[]){(char)('a' + i), 0}, pieces, 2), TR_OK);
    }
    assert_int_equal(tr_zip_finish(&zip), TR_OK);
    tr_zip_release(&zip);
    assert_int_equal(tr_file_finish(&writer, false), TR_OK);
    assert_int_equal(tr_file_read(path, 1 << 20, &content), TR_OK);
    struct archive archive = {(const uint8_t *)content.data, content.size, false};
    seen = 0;
    assert_int_equal(read_archive(&archive, check_member), 4);
    assert_int_equal(seen, 4);
    tr_file_content_free(&content);
    return archive.wide;
}

/* Members below it, at it and beyond it, themselves or with their offsets; and the directory after all of
   them, at 404 + 4 * 31 bytes. */
static void large_members_have_records_of_64_bits(void **state)
{
    (void)state;
    for (uint64_t wide = 1; wide < 900; wide++)
        assert_int_equal(has_wide_records(wide), wide <= 404 + 4 * 31);
}

static void many_members_are_counted(void **state)
{
    (void)state;
    struct tr_file_writer writer;
    assert_int_equal(tr_file_begin(NULL, "/dev/null", TR_FILE_EXISTING, 0, &writer), TR_OK);
    struct tr_zip zip = TR_ZIP_INIT(&writer);
    uint64_t expected = 22;
    for (int i = 0; i < 65535; i++) {
        assert_int_equal(tr_zip_add(&zip, "x", NULL, 0), TR_OK);
        expected += 31 + 47;
    }
    assert_int_equal(tr_zip_finish(&zip), TR_OK);
    /* As many as 16 bits can count take the 64-bit end record and its locator. */
    assert_int_equal(writer.written, expected + 56 + 20);
    tr_zip_release(&zip);
    assert_int_equal(tr_file_finish(&writer, false), TR_OK);
    char *name = malloc(UINT16_MAX + 1);
    memset(name, 'n', UINT16_MAX);
    name[UINT16_MAX] = '\0';
    assert_int_equal(tr_zip_add(&zip, name, NULL, 0), TR_EINVAL);
    free(name);
}

/* ---- failures ---- */

static void a_failed_write_leaves_the_old_file(void **state)
{
    (void)state;
    static const char old[] = "the old file";
    struct fault_files fault;
    for (int64_t at = 1, done = 0; !done; at++) {
        struct tr_file_content content;
        assert_int_equal(tr_file_write_atomic(NULL, path, old, sizeof old), TR_OK);
        fault_files_init(&fault, at % 2 ? FAULT_ERROR : FAULT_SHORT_WRITE, ENOSPC, at, false);
        tr_status status = tr_npz_replace(&fault.system, path, samples, SAMPLES);
        done = fault.calls < at;
        assert_int_equal(status == TR_OK, done);
        assert_int_equal(tr_file_read(path, 1 << 20, &content), TR_OK);
        /* The last call makes the new name durable: then the new file is there, complete. */
        if (status != TR_OK && content.size != 736) assert_string_equal(content.data, old);
        tr_file_content_free(&content);
    }
    struct tr_file_names names;
    assert_int_equal(tr_file_list(NULL, scratch_place, &names), TR_OK);
    assert_int_equal(names.count, 1); /* nothing is left aside */
    tr_file_names_free(&names);
    struct tr_stored_tensor unknown = {.name = "half", .dtype = TR_DTYPE_F8_E4M3, .rank = 0, .data = weights};
    assert_int_equal(tr_npz_replace(NULL, path, &unknown, 1), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "tensor \"half\""));
}

static void failing_allocations_are_survived(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = tr_npz_replace(NULL, path, samples, SAMPLES);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_numpys),
        cmocka_unit_test(headers_are_read),
        cmocka_unit_test(what_cannot_be_read_is_told),
        cmocka_unit_test(damaged_headers_are_survived),
        cmocka_unit_test(archives_hold_the_arrays),
        cmocka_unit_test(large_members_have_records_of_64_bits),
        cmocka_unit_test(many_members_are_counted),
        cmocka_unit_test(a_failed_write_leaves_the_old_file),
        cmocka_unit_test(failing_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, set_up, scratch_place_remove);
}
