/* safetensors in memory, in a file that is replaced, and in pieces: the same bytes each time, and after a
 * failure nothing but what was there before.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/file_fault.h"
#include "io/safetensors.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

static char path[SCRATCH_PATH];

static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_join(path, scratch_place, "file.safetensors");
    return 0;
}

static float weights[6] = {1.5f, -2, 0, 3.25f, -0.0f, 1e-40f};
static uint8_t large[(3 << 20) + 5] = {7, [1 << 20] = 8, [(3 << 20) + 4] = 9};

static const struct tr_stored_tensor samples[] = {
    {.name = "a.weight", .dtype = TR_DTYPE_F32, .rank = 2, .shape = {2, 3}, .data = weights},
    {.name = "large", .dtype = TR_DTYPE_U8, .rank = 1, .shape = {sizeof large}, .data = large},
    {.name = "nothing", .dtype = TR_DTYPE_F32, .rank = 1, .shape = {0}},
};
#define SAMPLES ((int64_t)(sizeof samples / sizeof samples[0]))
static const struct tr_stored_metadata note = {"format", "trireme"};

static char *content(size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(sizeof large + 4096);
    assert_non_null(bytes);
    *size = fread(bytes, 1, sizeof large + 4096, file);
    fclose(file);
    return bytes;
}

static void memory_and_files_have_the_same_bytes(void **state)
{
    (void)state;
    void *bytes = NULL;
    size_t size = 0, on_disk;
    uint64_t said = 0;
    assert_int_equal(tr_safetensors_size(samples, SAMPLES, &note, 1, &said), TR_OK);
    assert_int_equal(tr_safetensors_to_memory(samples, SAMPLES, &note, 1, &bytes, &size), TR_OK);
    assert_int_equal(size, said);
    assert_int_equal(tr_safetensors_replace(NULL, path, samples, SAMPLES, &note, 1), TR_OK);
    char *read = content(&on_disk);
    assert_int_equal(on_disk, size);
    assert_memory_equal(read, bytes, size);
    free(read);
    tr_safetensors *file = NULL;
    assert_int_equal(tr_safetensors_open_memory("it", bytes, size, &file), TR_OK);
    tr_safetensors_close(&file);
    tr_free(bytes);
}

/* The length of the text is a multiple of 8, with less than 8 blanks; the data follow at once. */
static void headers_are_padded_as_little_as_possible(void **state)
{
    (void)state;
    bool exact = false;
    for (int longer = 0; longer < 8; longer++) {
        char name[16] = "n";
        memset(name + 1, 'x', (size_t)longer);
        const struct tr_stored_tensor one = {
            .name = name, .dtype = TR_DTYPE_U8, .rank = 1, .shape = {3}, .data = "abc"};
        void *bytes;
        size_t size;
        uint64_t length;
        assert_int_equal(tr_safetensors_to_memory(&one, 1, NULL, 0, &bytes, &size), TR_OK);
        memcpy(&length, bytes, 8);
        const char *text = (const char *)bytes + 8;
        assert_int_equal(length % 8, 0);
        assert_int_equal(size, 8 + length + 3);
        assert_memory_equal(text + length, "abc", 3);
        size_t blanks = 0;
        while (text[length - 1 - blanks] == ' ') blanks++;
        assert_int_equal(text[length - 1 - blanks], '}');
        assert_true(blanks < 8);
        exact |= blanks == 0;
        tr_free(bytes);
    }
    assert_true(exact);
}

/* ---- in pieces ---- */

struct taken {
    uint8_t *bytes;
    size_t used, most;
    int pieces;
    tr_status status; /* of piece 2 */
};

static tr_status take(void *user, const void *piece, size_t bytes)
{
    struct taken *taken = user;
    if (++taken->pieces == 2 && taken->status != TR_OK) return tr_fail(taken->status, "the second piece");
    memcpy(taken->bytes + taken->used, piece, bytes);
    taken->used += bytes;
    if (bytes > taken->most) taken->most = bytes;
    return TR_OK;
}

static void data_are_given_in_pieces(void **state)
{
    (void)state;
    tr_safetensors *file = NULL;
    assert_int_equal(tr_safetensors_replace(NULL, path, samples, SAMPLES, NULL, 0), TR_OK);
    assert_int_equal(tr_safetensors_open(path, &file), TR_OK);
    struct taken taken = {.bytes = malloc(sizeof large)};
    assert_non_null(taken.bytes);
    const struct tr_safetensors_entry *entry = tr_safetensors_find(file, "large");
    assert_non_null(entry);
    assert_int_equal(tr_safetensors_stream(file, entry, take, &taken), TR_OK);
    assert_int_equal(taken.used, sizeof large);
    assert_memory_equal(taken.bytes, large, sizeof large);
    assert_true(taken.pieces > 1);
    taken.used = 0;
    taken.pieces = 0;
    taken.status = TR_EMISMATCH;
    assert_int_equal(tr_safetensors_stream(file, entry, take, &taken), TR_EMISMATCH);
    assert_int_equal(taken.pieces, 2);
    taken.used = 0;
    taken.pieces = 0;
    assert_int_equal(tr_safetensors_stream(file, tr_safetensors_find(file, "nothing"), take, &taken), TR_OK);
    assert_int_equal(taken.used, 0);
    free(taken.bytes);
    tr_safetensors_close(&file);
}

static tr_status take_bytes(void *user, const void *piece, size_t bytes)
{
    struct taken *taken = user;
    assert_true(taken->used + bytes <= taken->most);
    memcpy(taken->bytes + taken->used, piece, bytes);
    taken->used += bytes;
    return TR_OK;
}

/* Whoever takes the bytes of a file as they come is told what a file of them would say of itself. */
static void a_sink_is_told_the_summary(void **state)
{
    (void)state;
    void *bytes = NULL;
    size_t size = 0;
    tr_safetensors *file = NULL;
    struct tr_safetensors_summary summary = {.bytes = 1}, wanted;
    assert_int_equal(tr_safetensors_to_memory(samples, SAMPLES, &note, 1, &bytes, &size), TR_OK);
    assert_int_equal(tr_safetensors_open_memory("it", bytes, size, &file), TR_OK);
    wanted = tr_safetensors_summarize(file);
    struct taken taken = {.bytes = malloc(size), .most = size};
    assert_non_null(taken.bytes);
    const struct tr_stored_sink sink = {take_bytes, &taken};
    assert_int_equal(tr_safetensors_give(&sink, samples, SAMPLES, NULL, &note, 1, NULL, &summary), TR_OK);
    assert_int_equal(taken.used, size);
    assert_memory_equal(taken.bytes, bytes, size);
    assert_int_equal(summary.bytes, wanted.bytes);
    assert_int_equal(summary.header_crc, wanted.header_crc);
    tr_safetensors_close(&file);
    free(taken.bytes);
    tr_free(bytes);
}

/* ---- failures ---- */

/* What cannot be written leaves no memory, and says so by an empty result. */
static void nothing_is_given_after_a_failure(void **state)
{
    (void)state;
    const struct tr_stored_tensor nameless = {.name = "", .dtype = TR_DTYPE_U8, .rank = 1, .shape = {0}};
    void *bytes = path;
    size_t size = 5;
    assert_int_equal(tr_safetensors_to_memory(&nameless, 1, NULL, 0, &bytes, &size), TR_EINVAL);
    assert_null(bytes);
    assert_int_equal(size, 0);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        uint64_t said = 3;
        bytes = path;
        size = 5;
        refuse_begin(at);
        tr_status status = tr_safetensors_to_memory(samples, 1, &note, 1, &bytes, &size);
        if (status == TR_OK) status = tr_safetensors_size(samples, 1, &note, 1, &said);
        if (status == TR_OK) status = tr_safetensors_replace(NULL, path, samples, 1, &note, 1);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(bytes != NULL, size > 0);
        tr_free(bytes);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static int64_t files_in_place(void)
{
    struct tr_file_names names;
    assert_int_equal(tr_file_list(NULL, scratch_place, &names), TR_OK);
    const int64_t count = names.count;
    tr_file_names_free(&names);
    return count;
}

/* Whichever call to the system fails while a file is replaced: the old one stays, and nothing beside it. */
static void the_old_file_stays_after_a_failure(void **state)
{
    (void)state;
    size_t before, after;
    assert_int_equal(tr_safetensors_replace(NULL, path, samples, 1, NULL, 0), TR_OK);
    assert_int_equal(files_in_place(), 1);
    char *old = content(&before);
    bool hit = true;
    int64_t at = 1;
    for (; hit; at++) {
        const int64_t live = tr_alloc_live();
        struct fault_files fault;
        fault_files_init(&fault, FAULT_ERROR, ENOSPC, at, false);
        const tr_status status = tr_safetensors_replace(&fault.system, path, samples, SAMPLES, &note, 1);
        hit = fault.calls >= at;
        assert_int_equal(tr_alloc_live(), live);
        assert_int_equal(files_in_place(), 1);
        char *now = content(&after);
        if (status != TR_OK) {
            assert_true(hit);
            assert_int_equal(status, TR_EIO);
        }
        const bool same = after == before && memcmp(now, old, before) == 0;
        if (status == TR_OK) assert_true(after > sizeof large);
        if (status != TR_OK && !same) /* it was renamed before the last call failed */
            assert_true(after > sizeof large);
        free(now);
        if (!same) assert_int_equal(tr_safetensors_replace(NULL, path, samples, 1, NULL, 0), TR_OK);
    }
    assert_true(at > 4);
    free(old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_and_files_have_the_same_bytes),
        cmocka_unit_test(headers_are_padded_as_little_as_possible),
        cmocka_unit_test(data_are_given_in_pieces),
        cmocka_unit_test(a_sink_is_told_the_summary),
        cmocka_unit_test(nothing_is_given_after_a_failure),
        cmocka_unit_test(the_old_file_stays_after_a_failure),
    };
    return cmocka_run_group_tests(tests, set_up, scratch_place_remove);
}
