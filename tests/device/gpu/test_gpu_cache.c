/* What is kept for later runs is had back, unless it was damaged, or others could have written it. */
#include "device/gpu/cache.h"

#include "base/alloc.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char contents[] = "the contents", key[] = "0123456789abcdef";
enum { HEAD = 28 + 64 + 1 }; /* a line, a digest, a line feed */

static const char *place(void)
{
    return scratch_in("cache");
}

static bool is_had(const char *directory, const char *name)
{
    struct tr_file_content file;
    size_t skip;
    const int64_t live = tr_alloc_live();
    const bool had = gpu_cache_read(directory, name, &file, &skip);
    if (had) {
        assert_int_equal(file.size - skip, sizeof contents);
        assert_memory_equal(file.data + skip, contents, sizeof contents);
    } else {
        assert_null(file.data);
    }
    tr_file_content_free(&file);
    assert_int_equal(tr_alloc_live(), live);
    return had;
}

static int keep(void **state)
{
    scratch_place_make(state);
    gpu_cache_write(place(), key, contents, sizeof contents);
    return 0;
}

static void what_was_kept_is_had(void **state)
{
    (void)state;
    struct stat facts;
    char path[SCRATCH_PATH];
    assert_true(is_had(place(), key));
    assert_false(is_had(place(), "0123456789abcdee"));
    assert_false(is_had(NULL, key));
    assert_false(is_had(scratch_in("elsewhere"), key));
    assert_int_equal(stat(place(), &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    assert_int_equal(stat(scratch_join(path, place(), "0123456789abcdef.kept"), &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    /* Another one takes its place; folders above are made. */
    gpu_cache_write(place(), key, "other", 5);
    struct tr_file_content file;
    size_t skip;
    assert_true(gpu_cache_read(place(), key, &file, &skip));
    assert_int_equal(file.size - skip, 5);
    tr_file_content_free(&file);
    gpu_cache_write(scratch_in("a/b/c"), key, contents, sizeof contents);
    assert_true(is_had(scratch_in("a/b/c"), key));
    gpu_cache_write(NULL, key, contents, sizeof contents);
    gpu_cache_write(scratch_in("empty"), key, "", 0);
    assert_true(gpu_cache_read(scratch_in("empty"), key, &file, &skip));
    assert_int_equal(file.size, skip);
    tr_file_content_free(&file);
}

/* Every byte but the line feed behind the digest counts, and none may be missing. */
static void damage_is_noticed(void **state)
{
    (void)state;
    struct tr_file_content file;
    char path[SCRATCH_PATH], other[SCRATCH_PATH];
    scratch_join(path, place(), "0123456789abcdef.kept");
    assert_int_equal(tr_file_read(path, 1000, &file), TR_OK);
    assert_int_equal(file.size, HEAD + sizeof contents);
    for (size_t at = 0; at < file.size; at++) {
        if (at == HEAD - 1) continue;
        file.data[at] ^= 1;
        assert_int_equal(tr_file_write_atomic(NULL, path, file.data, file.size), TR_OK);
        chmod(path, 0600);
        assert_false(is_had(place(), key));
        file.data[at] ^= 1;
    }
    for (size_t size = 0; size < file.size; size++) {
        assert_int_equal(tr_file_write_atomic(NULL, path, file.data, size), TR_OK);
        chmod(path, 0600);
        assert_false(is_had(place(), key));
    }
    assert_int_equal(tr_file_write_atomic(NULL, path, file.data, file.size), TR_OK);
    chmod(path, 0600);
    assert_true(is_had(place(), key));
    /* What was kept under another key. */
    scratch_join(other, place(), "0123456789abcdee.kept");
    assert_int_equal(tr_file_write_atomic(NULL, other, file.data, file.size), TR_OK);
    chmod(other, 0600);
    assert_false(is_had(place(), "0123456789abcdee"));
    tr_file_content_free(&file);
}

static void what_others_could_write_is_not_had(void **state)
{
    (void)state;
    static const mode_t wrong[] = {0620, 0602, 0666};
    char path[SCRATCH_PATH], moved[SCRATCH_PATH];
    scratch_join(path, place(), "0123456789abcdef.kept");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(chmod(path, wrong[i]), 0);
        assert_false(is_had(place(), key));
        assert_int_equal(chmod(path, 0644), 0);
        assert_int_equal(chmod(place(), wrong[i] | 0100), 0);
        assert_false(is_had(place(), key));
        gpu_cache_write(place(), "fedcba9876543210", contents, sizeof contents);
        assert_int_equal(chmod(place(), 0755), 0);
        assert_true(is_had(place(), key));
        assert_false(is_had(place(), "fedcba9876543210"));
    }
    /* Links are not followed, neither to files nor to folders. */
    scratch_join(moved, place(), "moved");
    assert_int_equal(rename(path, moved) + symlink(moved, path), 0);
    assert_false(is_had(place(), key));
    assert_int_equal(unlink(path) + rename(moved, path), 0);
    assert_int_equal(symlink(place(), scratch_in("link")), 0);
    assert_false(is_had(scratch_in("link"), key));
    scratch_write_text("file", "x");
    gpu_cache_write(scratch_in("file"), key, contents, sizeof contents);
    assert_false(is_had(scratch_in("file"), key));
    if (geteuid() != 0) return;
    assert_int_equal(chown(path, 12345, 0), 0);
    assert_false(is_had(place(), key));
    assert_int_equal(chown(path, 0, 0) + chown(place(), 12345, 0), 0);
    assert_false(is_had(place(), key));
    assert_int_equal(chown(place(), 0, 0), 0);
    assert_true(is_had(place(), key));
}

static void memory_may_fail(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_file_content file;
        size_t skip;
        char digest[TR_SHA256_TEXT];
        struct gpu_key under_way;
        refuse_begin(at);
        gpu_key_begin(&under_way);
        gpu_key_add(&under_way, "text");
        const bool made = gpu_key_end(&under_way, digest);
        gpu_cache_write(scratch_in("more"), key, contents, sizeof contents);
        const bool had = gpu_cache_read(scratch_in("more"), key, &file, &skip);
        done = refuse_end();
        if (done) assert_true(made && had);
        if (!had) assert_null(file.data);
        tr_file_content_free(&file);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* Texts that together are the same are other keys, since each counts with its length. */
static void keys_depend_on_every_text(void **state)
{
    (void)state;
    static const char *const texts[][2] = {{"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"", "abc"}, {"ab", "d"}};
    char keys[5][TR_SHA256_TEXT];
    for (int i = 0; i < 5; i++) {
        struct gpu_key under_way;
        gpu_key_begin(&under_way);
        for (int k = 0; k < 2; k++) gpu_key_add(&under_way, texts[i][k]);
        assert_true(gpu_key_end(&under_way, keys[i]));
        assert_int_equal(strlen(keys[i]), 64);
        for (int k = 0; k < i; k++) assert_string_not_equal(keys[i], keys[k]);
    }
}

#define WITH_PLACE(test) cmocka_unit_test_setup_teardown(test, keep, scratch_place_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PLACE(what_was_kept_is_had),
        WITH_PLACE(damage_is_noticed),
        WITH_PLACE(what_others_could_write_is_not_had),
        WITH_PLACE(memory_may_fail),
        cmocka_unit_test(keys_depend_on_every_text),
    };
    return cmocka_run_group_tests_name("device.gpu_cache", tests, NULL, NULL);
}
