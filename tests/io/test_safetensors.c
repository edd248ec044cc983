/* safetensors: what is written is the published format and reads back; what is hostile is refused. */
#include "io/safetensors.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "mutate.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static char path[SCRATCH_PATH];

static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_join(path, scratch_place, "file.safetensors");
    return 0;
}

static float weights[6] = {1.5f, -2, 0, 3.25f, -0.0f, 1e-40f};
static int64_t steps[1] = {INT64_MAX};
static uint8_t bytes3[3] = {1, 2, 255};

static const struct tr_stored_tensor samples[] = {
    {.name = "bytes", .dtype = TR_DTYPE_U8, .rank = 1, .shape = {3}, .data = bytes3},
    {.name = "conv1.weight", .dtype = TR_DTYPE_F32, .rank = 2, .shape = {2, 3}, .data = weights},
    {.name = "empty", .dtype = TR_DTYPE_F32, .rank = 2, .shape = {0, 7}},
    {.name = "step", .dtype = TR_DTYPE_I64, .rank = 0, .data = steps},
};
#define SAMPLES ((int64_t)(sizeof samples / sizeof samples[0]))
static const struct tr_stored_metadata notes[] = {{"format", "trireme"}, {"\xc3\xa9t\xc3\xa9", "\"quoted\""}};

static void write_samples(struct tr_safetensors_summary *summary, uint32_t crcs[SAMPLES])
{
    assert_int_equal(tr_file_remove(NULL, path), TR_OK);
    assert_int_equal(tr_safetensors_write(NULL, path, samples, SAMPLES, NULL, notes, 2, crcs, summary),
                     TR_OK);
}

static void write_bytes(const void *data, size_t size)
{
    struct tr_file_writer writer;
    assert_int_equal(tr_file_begin(NULL, path, TR_FILE_REPLACE, size, &writer), TR_OK);
    assert_int_equal(tr_file_write(&writer, data, size), TR_OK);
    assert_int_equal(tr_file_finish(&writer, false), TR_OK);
}

/* Writes a file of `header` (length put before it) and `data_bytes` zeros. */
static void write_header(const char *header, size_t data_bytes)
{
    char file[4096] = {0};
    uint64_t length = strlen(header);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    write_bytes(file, 8 + length + data_bytes);
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    struct tr_safetensors_summary written, read;
    uint32_t crcs[SAMPLES];
    write_samples(&written, crcs);
    tr_safetensors *file;
    assert_int_equal(tr_safetensors_open(path, &file), TR_OK);
    read = tr_safetensors_summarize(file);
    assert_int_equal(read.bytes, written.bytes);
    assert_int_equal(read.header_crc, written.header_crc);
    assert_int_equal(tr_safetensors_count(file), SAMPLES);
    assert_string_equal(tr_safetensors_metadata(file, "format"), "trireme");
    assert_string_equal(tr_safetensors_metadata(file, notes[1].key), notes[1].value);
    assert_null(tr_safetensors_metadata(file, "other"));
    for (int64_t i = 0; i < SAMPLES; i++) {
        const struct tr_safetensors_entry *entry = tr_safetensors_find(file, samples[i].name);
        char data[64] = {0};
        uint32_t crc, again;
        uint64_t size;
        assert_non_null(entry);
        assert_true(tr_stored_alike(&entry->tensor, &samples[i]));
        assert_int_equal(tr_stored_bytes(&samples[i], &size), TR_OK);
        assert_int_equal(entry->bytes, size);
        assert_int_equal(tr_safetensors_read(file, entry, data, &crc), TR_OK);
        assert_memory_equal(data, samples[i].data ? samples[i].data : "", size);
        assert_int_equal(crc, crcs[i]);
        assert_int_equal(crc, tr_crc32c(0, data, size));
        assert_int_equal(tr_safetensors_read(file, entry, NULL, &again), TR_OK);
        assert_int_equal(again, crc);
        /* Aligned to their elements, for programs that map the file. */
        assert_int_equal(entry->offset % tr_dtype_size(samples[i].dtype), 0);
    }
    assert_null(tr_safetensors_find(file, "conv"));
    assert_null(tr_safetensors_find(file, "__metadata__"));
    tr_safetensors_close(&file);
    assert_null(file);
    tr_safetensors_close(&file);
}

/* To the byte, as other programs expect it. */
static void the_bytes_are_the_format(void **state)
{
    (void)state;
    static float values[2] = {1, -2};
    const struct tr_stored_tensor one = {
        .name = "a", .dtype = TR_DTYPE_F32, .rank = 1, .shape = {2}, .data = values};
    struct tr_safetensors_summary summary;
    assert_int_equal(tr_safetensors_write(NULL, path, &one, 1, NULL, NULL, 0, NULL, &summary), TR_OK);
    static const char expected[] =
        "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}  "
        "\0\0\x80\x3f\0\0\0\xc0";
    struct tr_file_content content;
    assert_int_equal(tr_file_read(path, 1000, &content), TR_OK);
    assert_int_equal(content.size, sizeof expected - 1);
    assert_memory_equal(content.data, expected, sizeof expected - 1);
    assert_int_equal(summary.bytes, content.size);
    assert_int_equal(summary.header_crc, tr_crc32c(0, content.data, content.size - 8));
    tr_file_content_free(&content);
}

static void an_empty_list_is_a_file(void **state)
{
    (void)state;
    struct tr_safetensors_summary summary;
    tr_safetensors *file;
    assert_int_equal(tr_safetensors_write(NULL, path, NULL, 0, NULL, NULL, 0, NULL, &summary), TR_OK);
    assert_int_equal(summary.bytes, 16);
    assert_int_equal(tr_safetensors_open(path, &file), TR_OK);
    assert_int_equal(tr_safetensors_count(file), 0);
    tr_safetensors_close(&file);
    /* Not even that: no room for the size of a header, and a header of nothing. */
    static const char zeros[8];
    for (size_t size = 0; size <= 8; size++) {
        char text[100];
        snprintf(text, sizeof text, "%zu bytes are too few for a safetensors file", size);
        assert_int_equal(tr_file_write_atomic(NULL, path, zeros, size), TR_OK);
        assert_int_equal(tr_safetensors_open(path, &file), TR_EFORMAT);
        assert_non_null(strstr(tr_error_message(), size < 8 ? text : "the header does not begin with '{'"));
        assert_null(file);
    }
    assert_int_equal(tr_file_remove(NULL, path), TR_OK);
}

/* Larger than the pieces in which data move. */
static void large_tensors_pass_in_pieces(void **state)
{
    (void)state;
    enum { COUNT = 3000001 };
    uint8_t *data = tr_alloc(COUNT, 1), *back = tr_alloc(COUNT, 1);
    assert_non_null(data);
    assert_non_null(back);
    for (int i = 0; i < COUNT; i++) data[i] = (uint8_t)(i * 7 + (i >> 9));
    const struct tr_stored_tensor one = {
        .name = "a", .dtype = TR_DTYPE_U8, .rank = 1, .shape = {COUNT}, .data = data};
    struct tr_safetensors_summary summary;
    uint32_t crc, read_crc;
    tr_safetensors *file;
    assert_int_equal(tr_safetensors_write(NULL, path, &one, 1, NULL, NULL, 0, &crc, &summary), TR_OK);
    assert_int_equal(crc, tr_crc32c(0, data, COUNT));
    assert_int_equal(tr_safetensors_open(path, &file), TR_OK);
    assert_int_equal(tr_safetensors_read(file, tr_safetensors_at(file, 0), back, &read_crc), TR_OK);
    assert_memory_equal(data, back, COUNT);
    assert_int_equal(read_crc, crc);
    assert_int_equal(tr_safetensors_read(file, tr_safetensors_at(file, 0), NULL, &read_crc), TR_OK);
    assert_int_equal(read_crc, crc);
    tr_safetensors_close(&file);
    tr_free(back);
    tr_free(data);
}

static void names_that_no_reader_takes_are_not_written(void **state)
{
    (void)state;
    struct tr_safetensors_summary summary;
    struct tr_stored_tensor pair[2] = {samples[1], samples[1]};
    assert_int_equal(tr_safetensors_write(NULL, path, pair, 2, NULL, NULL, 0, NULL, &summary), TR_EINVAL);
    assert_string_equal(tr_error_message(), "two tensors have the name \"conv1.weight\"");
    pair[0].name = "__metadata__";
    assert_int_equal(tr_safetensors_write(NULL, path, pair, 2, NULL, NULL, 0, NULL, &summary), TR_EINVAL);
    pair[0].name = "";
    assert_int_equal(tr_safetensors_write(NULL, path, pair, 2, NULL, NULL, 0, NULL, &summary), TR_EINVAL);
    pair[0] =
        (struct tr_stored_tensor){.name = "huge", .dtype = TR_DTYPE_F32, .rank = 2, .shape = {INT64_MAX, 2}};
    assert_int_equal(tr_safetensors_write(NULL, path, pair, 2, NULL, NULL, 0, NULL, &summary), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "tensor \"huge\": F32[9223372036854775807,2] has more bytes"));
    assert_false(tr_file_exists(path));
}

static void shapes_are_measured(void **state)
{
    (void)state;
    uint64_t bytes;
    struct tr_stored_tensor tensor = {.dtype = TR_DTYPE_F32, .rank = 3, .shape = {INT64_MAX, INT64_MAX, 0}};
    /* Too much to count is refused even where a dimension of 0 would make it nothing, as other readers do. */
    assert_int_equal(tr_stored_bytes(&tensor, &bytes), TR_EINVAL);
    tensor.shape[0] = tensor.shape[1] = 3;
    assert_int_equal(tr_stored_bytes(&tensor, &bytes), TR_OK);
    assert_int_equal(bytes, 0);
    tensor.shape[2] = -1;
    assert_int_equal(tr_stored_bytes(&tensor, &bytes), TR_EINVAL);
    tensor.rank = 0;
    assert_int_equal(tr_stored_bytes(&tensor, &bytes), TR_OK);
    assert_int_equal(bytes, 4);
    /* As many bytes as there may be, and one more. */
    tensor = (struct tr_stored_tensor){.dtype = TR_DTYPE_U8, .rank = 1, .shape = {INT64_MAX}};
    assert_int_equal(tr_stored_bytes(&tensor, &bytes), TR_OK);
    assert_true(bytes == INT64_MAX);
    tensor = (struct tr_stored_tensor){.dtype = TR_DTYPE_U8, .rank = 2, .shape = {INT64_C(1) << 62, 2}};
    assert_int_equal(tr_stored_bytes(&tensor, &bytes), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "U8[4611686018427387904,2] has more bytes than 64 bits can count");
    tensor.shape[1] = 1;
    assert_int_equal(tr_stored_bytes(&tensor, &bytes), TR_OK);
    assert_true(bytes == (uint64_t)1 << 62);
    /* Alike are type, rank and all sizes, whatever the names. */
    struct tr_stored_tensor other = tensor;
    other.name = "another";
    assert_true(tr_stored_alike(&tensor, &other));
    other.shape[1] = 2;
    assert_false(tr_stored_alike(&tensor, &other));
    other.shape[1] = 1;
    other.dtype = TR_DTYPE_I8;
    assert_false(tr_stored_alike(&tensor, &other));
    other.dtype = TR_DTYPE_U8;
    other.rank = 1;
    assert_false(tr_stored_alike(&tensor, &other));
    tensor.rank = 1;
    assert_true(tr_stored_alike(&tensor, &other));
    char text[TR_STORED_TEXT];
    struct tr_stored_tensor longest = {.dtype = TR_DTYPE_F8_E4M3, .rank = TR_STORED_RANK};
    for (int i = 0; i < TR_STORED_RANK; i++) longest.shape[i] = INT64_MIN;
    assert_int_equal(strlen(tr_stored_describe(&longest, text)), 7 + 2 + 7 + 8 * 20);
}

static void hostile_headers_are_refused(void **state)
{
    (void)state;
#define TENSOR(type, shape, offsets)                                                                         \
    "{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
    static const struct {
        const char *header;
        size_t data_bytes;
        tr_status status;
        const char *message;
    } cases[] = {
        {"{}", 0, TR_OK, ""},
        {"{}   ", 0, TR_OK, ""},
        {"{}", 1, TR_EFORMAT, "has 11 bytes, but its tensors end at 10"},
        {" {}", 0, TR_EFORMAT, "does not begin with '{'"},
        {"", 0, TR_EFORMAT, "does not begin with '{'"},
        {"{", 0, TR_EFORMAT, "bad JSON"},
        {"{}{}", 0, TR_EFORMAT, "bad JSON"},
        {"{\"a\":5}", 0, TR_EFORMAT, "tensor \"a\": must be an object"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, TR_EFORMAT, "tensor \"a\": must be an object"},
        {"{\"a\":" TENSOR("F32", "[1]", "[0,4]") "}", 4, TR_OK, ""},
        {"{\"a\":" TENSOR("F32", "[1]", "[0,4]") "}", 3, TR_EFORMAT,
         "[0, 4] do not lie in the 3 bytes of data"},
        {"{\"a\":" TENSOR("F32", "[1]", "[0,4]") "}", 5, TR_EFORMAT, "but its tensors end at"},
        {"{\"a\":" TENSOR("F32", "[2]", "[0,4]") "}", 4, TR_EFORMAT,
         "F32[2] needs 8 bytes, but data_offsets [0, 4] give 4"},
        {"{\"a\":" TENSOR("F32", "[1]", "[4,0]") "}", 4, TR_EFORMAT, "do not lie"},
        {"{\"a\":" TENSOR("F32", "[1]", "[-4,0]") "}", 4, TR_EFORMAT, "integers >= 0"},
        {"{\"a\":" TENSOR("F32", "[-1]", "[0,4]") "}", 4, TR_EFORMAT, "integers >= 0"},
        {"{\"a\":" TENSOR("F32", "[1.0]", "[0,4]") "}", 4, TR_EFORMAT, "integers >= 0"},
        {"{\"a\":" TENSOR("F32", "\"1\"", "[0,4]") "}", 4, TR_EFORMAT, "\"shape\" is a text"},
        {"{\"a\":" TENSOR("F32", "[1]", "[0]") "}", 4, TR_EFORMAT, "[begin, end]"},
        {"{\"a\":" TENSOR("F32", "[1]", "[0,4,8]") "}", 4, TR_EFORMAT, "[begin, end]"},
        {"{\"a\":" TENSOR("F31", "[1]", "[0,4]") "}", 4, TR_EUNSUPPORTED, "the type \"F31\" is not known"},
        {"{\"a\":" TENSOR("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, TR_EUNSUPPORTED, "9 dimensions"},
        {"{\"a\":" TENSOR("F32", "[4294967296,4294967296]", "[0,0]") "}", 0, TR_EFORMAT,
         "more bytes than 64 bits"},
        {"{\"a\":" TENSOR("F32", "[4611686018427387904,4]", "[0,0]") "}", 0, TR_EFORMAT,
         "more bytes than 64 bits"},
        {"{\"a\":" TENSOR("U8", "[9223372036854775808]", "[0,0]") "}", 0, TR_EFORMAT, "bad JSON"},
        {"{\"\":" TENSOR("F32", "[1]", "[0,4]") "}", 4, TR_EFORMAT, "has no name"},
        {"{\"a\":" TENSOR("U8", "[1]", "[0,1]") ",\"a\":" TENSOR("U8", "[1]", "[0,1]") "}", 1, TR_EFORMAT,
         "bad JSON"},
        {"{\"a\":" TENSOR("U8", "[2]", "[0,2]") ",\"b\":" TENSOR("U8", "[2]", "[1,3]") "}", 3, TR_EFORMAT,
         "before it end"},
        {"{\"a\":" TENSOR("U8", "[1]", "[0,1]") ",\"b\":" TENSOR("U8", "[1]", "[2,3]") "}", 3, TR_EFORMAT,
         "before it end"},
        {"{\"a\":" TENSOR("U8", "[1]", "[1,2]") ",\"b\":" TENSOR("U8", "[1]", "[0,1]") "}", 2, TR_OK, ""},
        {"{\"a\":" TENSOR("U8", "[0]", "[1,1]") ",\"b\":" TENSOR("U8", "[2]", "[0,2]") "}", 2, TR_EFORMAT,
         "before it end"},
        {"{\"a\":" TENSOR("U8", "[0]", "[2,2]") ",\"b\":" TENSOR("U8", "[2]", "[0,2]") "}", 2, TR_OK, ""},
        {"{\"__metadata__\":{\"k\":\"v\"}}", 0, TR_OK, ""},
        {"{\"__metadata__\":{\"k\":1}}", 0, TR_EFORMAT, "must be a text"},
        {"{\"__metadata__\":[]}", 0, TR_EFORMAT, "object of texts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_safetensors *file;
        write_header(cases[i].header, cases[i].data_bytes);
        tr_status status = tr_safetensors_open(path, &file);
        if (status != cases[i].status || (status != TR_OK && !strstr(tr_error_message(), cases[i].message)))
            fail_msg("%s: status %s, message \"%s\"", cases[i].header, tr_status_name(status),
                     tr_error_message());
        if (status != TR_OK) assert_non_null(strstr(tr_error_message(), path));
        tr_safetensors_close(&file);
    }
}

/* A length field may promise anything; nothing of that size is allocated. */
static int watch_size(size_t size, void *user)
{
    size_t *largest = user;
    if (size > *largest) *largest = size;
    return 0;
}

static void lengths_are_not_believed(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {3,          1000,           100000000,        100000001,
                                       UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char file_bytes[10] = {0};
        memcpy(file_bytes, &lengths[i], 8);
        write_bytes(file_bytes, sizeof file_bytes);
        size_t largest = 0;
        tr_safetensors *file;
        tr_alloc_set_hook(watch_size, &largest);
        tr_status status = tr_safetensors_open(path, &file);
        tr_alloc_set_hook(NULL, NULL);
        assert_int_equal(status, TR_EFORMAT);
        assert_non_null(strstr(tr_error_message(), "says that its header has"));
        assert_true(largest < 10000);
    }
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    struct tr_safetensors_summary summary;
    uint32_t crcs[SAMPLES];
    struct tr_file_content content;
    write_samples(&summary, crcs);
    assert_int_equal(tr_file_read(path, 10000, &content), TR_OK);
    for (size_t size = 0; size < content.size; size++) {
        tr_safetensors *file;
        write_bytes(content.data, size);
        assert_int_equal(tr_safetensors_open(path, &file), TR_EFORMAT);
        assert_null(file);
    }
    tr_file_content_free(&content);
}

/* Whatever the bytes: a status and a message, no crash, no leak; and what passes keeps the invariant. */
static void damaged_files_do_no_harm(void **state)
{
    (void)state;
    enum { ROUNDS = 20000 };
    struct tr_safetensors_summary summary;
    uint32_t crcs[SAMPLES];
    struct tr_file_content content;
    write_samples(&summary, crcs);
    assert_int_equal(tr_file_read(path, 10000, &content), TR_OK);
    char *damaged = tr_alloc(content.size + 64, 1);
    assert_non_null(damaged);
    int64_t live = tr_alloc_live();
    int passed = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        tr_safetensors *file;
        write_bytes(damaged, mutate_bytes(round, content.data, content.size, damaged));
        tr_status status = tr_safetensors_open(path, &file);
        if (status == TR_OK) {
            uint64_t end = 0;
            for (int64_t i = 0; i < tr_safetensors_count(file); i++) {
                const struct tr_safetensors_entry *entry = tr_safetensors_at(file, i);
                assert_true(i == 0 || entry->offset == end);
                end = entry->offset + entry->bytes;
                assert_int_equal(tr_safetensors_read(file, entry, NULL, NULL), TR_OK);
                assert_ptr_equal(tr_safetensors_find(file, entry->tensor.name), entry);
            }
            assert_true(tr_safetensors_count(file) == 0 || end == tr_safetensors_summarize(file).bytes);
            passed++;
        } else {
            assert_true(status == TR_EFORMAT || status == TR_EUNSUPPORTED);
            assert_non_null(strstr(tr_error_message(), path));
        }
        tr_safetensors_close(&file);
        assert_int_equal(tr_alloc_live(), live);
    }
    /* Damage to data alone passes here, since only a checkpoint's manifest has their checksums. */
    assert_true(passed > 0 && passed < ROUNDS / 2);
    tr_free(damaged);
    tr_file_content_free(&content);
}

static int refuse(size_t size, void *user)
{
    (void)size;
    int64_t *left = user;
    return (*left)-- == 0;
}

/* Every allocation fails once. */
static void failing_allocations_are_survived(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    for (int64_t at = 0, done = 0; !done; at++) {
        assert_true(at < 1000);
        assert_int_equal(tr_file_remove(NULL, path), TR_OK);
        struct tr_safetensors_summary summary;
        tr_safetensors *file = NULL;
        int64_t left = at;
        tr_alloc_set_hook(refuse, &left);
        tr_status status = tr_safetensors_write(NULL, path, samples, SAMPLES, NULL, notes, 2, NULL, &summary);
        if (status == TR_OK) status = tr_safetensors_open(path, &file);
        if (status == TR_OK) status = tr_safetensors_read(file, tr_safetensors_at(file, 0), NULL, NULL);
        tr_alloc_set_hook(NULL, NULL);
        done = left >= 0;
        tr_safetensors_close(&file);
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %ld: status %s, message \"%s\"", (long)at, tr_status_name(status),
                     tr_error_message());
        assert_int_equal(tr_alloc_live(), live);
    }
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, set_up, scratch_place_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILES(what_is_written_reads_back),
        WITH_FILES(the_bytes_are_the_format),
        WITH_FILES(an_empty_list_is_a_file),
        WITH_FILES(large_tensors_pass_in_pieces),
        WITH_FILES(names_that_no_reader_takes_are_not_written),
        cmocka_unit_test(shapes_are_measured),
        WITH_FILES(hostile_headers_are_refused),
        WITH_FILES(lengths_are_not_believed),
        WITH_FILES(every_truncation_is_refused),
        WITH_FILES(damaged_files_do_no_harm),
        WITH_FILES(failing_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
