/* Checkpoints as one stream: what goes in comes out; what tar makes of it is a checkpoint, and what tar makes
 * of a checkpoint is such a stream; every flipped bit and every missing byte is found. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "checkpoint/sample.h"
#include "io/tar.h"
#include "mutate.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char packed[1 << 16];
static size_t packed_size;

static tr_status gather(void *user, const void *data, size_t size)
{
    size_t *calls = user;
    (*calls)++;
    assert_true(packed_size + size <= sizeof packed);
    memcpy(packed + packed_size, data, size);
    packed_size += size;
    return TR_OK;
}

static void pack(int64_t step)
{
    size_t calls = 0;
    packed_size = 0;
    assert_int_equal(sample_pack(&(struct tr_stored_sink){gather, &calls}, step), TR_OK);
    assert_true(calls > 5);
    assert_int_equal(packed_size % TR_TAR_BLOCK, 0);
}

/* The step of what loads, or -1. */
static int64_t load(const char *bytes, size_t size)
{
    tr_checkpoint *checkpoint;
    tr_status status = tr_checkpoint_open_packed((void *)(uintptr_t)bytes, size, false, &checkpoint);
    if (status == TR_OK) return sample_check(&checkpoint);
    assert_null(checkpoint);
    assert_true(status == TR_ECORRUPT || status == TR_EFORMAT || status == TR_ENOTFOUND ||
                status == TR_EUNSUPPORTED);
    return -1;
}

static void what_goes_in_comes_out(void **state)
{
    (void)state;
    for (int64_t step = 0; step < 3; step++) {
        pack(step);
        assert_int_equal(load(packed, packed_size), step);
    }
}

static void shell(const char *format, ...)
{
    char command[1024], line[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "cd '%s' && %s", scratch_place, command);
    if (system(line) != 0) fail_msg("%s", line);
}

static void tar_knows_it(void **state)
{
    char path[SCRATCH_PATH];
    struct tr_file_content content;
    (void)state;
    pack(7);
    assert_int_equal(
        tr_file_write_atomic(NULL, scratch_join(path, scratch_place, "7.tar"), packed, packed_size), TR_OK);
    shell("mkdir unpacked && tar -xf 7.tar -C unpacked");
    assert_int_equal(sample_load(scratch_join(path, scratch_place, "unpacked"), NULL, NULL), 7);
    /* The bytes are those of a directory. */
    assert_int_equal(sample_save(NULL, scratch_join(path, scratch_place, "saved"), 2, 7), TR_OK);
    shell("diff -r saved unpacked");
    /* And the other way round, with what tar adds. */
    static const char *const forms[] = {"ustar", "gnu", "pax"};
    for (size_t i = 0; i < 3; i++) {
        shell("tar --format=%s -cf again.tar -C saved checkpoint-00000007", forms[i]);
        assert_int_equal(tr_file_read(scratch_join(path, scratch_place, "again.tar"), 1 << 20, &content),
                         TR_OK);
        assert_int_equal(load(content.data, content.size), 7);
        tr_file_content_free(&content);
    }
    /* Each of its files is needed. */
    static const char *const files[] = {"manifest.json", "parameters.safetensors", "optimizer.safetensors",
                                        "model.yaml"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        shell("tar -cf less.tar -C saved --exclude=%s checkpoint-00000007", files[i]);
        assert_int_equal(tr_file_read(scratch_join(path, scratch_place, "less.tar"), 1 << 20, &content),
                         TR_OK);
        assert_int_equal(load(content.data, content.size), -1);
        if (!strstr(tr_error_message(), files[i])) fail_msg("%s: %s", files[i], tr_error_message());
        tr_file_content_free(&content);
    }
}

/* Bits that mean nothing, in the gaps between files, may be any: then all the rest is right, which load()
 * sees to. */
static void every_flipped_bit_is_found(void **state)
{
    size_t unseen = 0;
    (void)state;
    pack(2);
    for (size_t bit = 0; bit < 8 * packed_size; bit++) {
        packed[bit / 8] ^= (char)(1 << bit % 8);
        const int64_t step = load(packed, packed_size);
        if (step != -1 && step != 2) fail_msg("bit %zu: step %ld", bit, (long)step);
        unseen += step == 2;
        packed[bit / 8] ^= (char)(1 << bit % 8);
    }
    /* Five files in blocks of 512 bytes, and the two blocks at the end. */
    assert_true(unseen < 8 * 7 * TR_TAR_BLOCK);
}

static void every_missing_byte_is_found(void **state)
{
    (void)state;
    pack(2);
    /* Without the two blocks at the end it is whole. */
    for (size_t size = 0; size <= packed_size; size++) {
        char *copy = malloc(size + 1);
        memcpy(copy, packed, size);
        const int64_t step = load(copy, size);
        if (step != -1 && size < packed_size - 3 * TR_TAR_BLOCK)
            fail_msg("%zu of %zu bytes load", size, packed_size);
        free(copy);
    }
    assert_int_equal(load(packed, packed_size), 2);
}

static void damage_does_no_harm(void **state)
{
    static char damaged[sizeof packed + 64];
    (void)state;
    pack(1);
    for (uint32_t round = 0; round < 3000; round++) {
        const size_t size = mutate_bytes(round, packed, packed_size, damaged);
        const int64_t step = load(damaged, size);
        assert_true(step == -1 || step == 1);
    }
}

/* A size of 8 GiB and more in a header, and its way back. */
static void large_members(void **state)
{
    static const uint64_t sizes[] = {0, 511, ((uint64_t)1 << 33) - 1, (uint64_t)1 << 33, (uint64_t)1 << 41};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t header[TR_TAR_BLOCK];
        struct tr_tar_file member;
        size_t at = 0;
        bool there;
        assert_int_equal(tr_tar_header("directory", "name", sizes[i], header), TR_OK);
        const tr_status status = tr_tar_next_file("archive", header, sizeof header, &at, &member, &there);
        assert_int_equal(status, sizes[i] ? TR_EFORMAT : TR_OK); /* the data are not there */
        if (sizes[i] == 0) assert_string_equal(member.name, "name");
    }
    pack(1);
    shell("truncate -s 0 large && truncate -s 8589934593 large && tar --format=gnu -cf - large | head -c 512 "
          "> header");
    char path[SCRATCH_PATH];
    struct tr_file_content theirs;
    uint8_t ours[TR_TAR_BLOCK];
    assert_int_equal(tr_file_read(scratch_join(path, scratch_place, "header"), 512, &theirs), TR_OK);
    assert_int_equal(tr_tar_header("", "large", 8589934593u, ours), TR_OK);
    assert_memory_equal(ours + 124, theirs.data + 124, 12);
    tr_file_content_free(&theirs);
}

static tr_status refuse(void *user, const void *data, size_t size)
{
    (void)user;
    (void)data;
    (void)size;
    return tr_fail(TR_EIO, "no more room");
}

static void a_sink_that_fails(void **state)
{
    (void)state;
    assert_int_equal(sample_pack(&(struct tr_stored_sink){refuse, NULL}, 1), TR_EIO);
    assert_non_null(strstr(tr_error_message(), "no more room"));
    assert_non_null(strstr(tr_error_message(), "step 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out),     cmocka_unit_test(tar_knows_it),
        cmocka_unit_test(every_flipped_bit_is_found), cmocka_unit_test(every_missing_byte_is_found),
        cmocka_unit_test(damage_does_no_harm),        cmocka_unit_test(large_members),
        cmocka_unit_test(a_sink_that_fails),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
