/* Damaged and hostile checkpoints: every flipped bit and every missing byte is found, the checkpoint before
 * is taken, and no content of a manifest does harm. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "mutate.h"
#include "scratch.h"
#include "checkpoint/manifest.h"
#include "checkpoint/sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char *const file_names[] = {"manifest.json", "parameters.safetensors", "optimizer.safetensors",
                                         "model.yaml", "empty.txt"};
#define FILES (sizeof file_names / sizeof file_names[0])

static char run[SCRATCH_PATH], newest[SCRATCH_PATH];

/* A run with good checkpoints of steps 1 and 2. */
static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_join(run, scratch_place, "run");
    scratch_join(newest, run, "checkpoint-00000002");
    return sample_save(NULL, run, 2, 1) != TR_OK || sample_save(NULL, run, 2, 2) != TR_OK;
}

static void assert_message_has(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

static struct tr_file_content read_whole(const char *path)
{
    struct tr_file_content content;
    assert_int_equal(tr_file_read(path, 100000, &content), TR_OK);
    return content;
}

static void write_whole(const char *path, const void *data, size_t size)
{
    struct tr_file_writer writer;
    assert_int_equal(tr_file_begin(NULL, path, TR_FILE_REPLACE, size, &writer), TR_OK);
    assert_int_equal(tr_file_write(&writer, data, size), TR_OK);
    assert_int_equal(tr_file_finish(&writer, false), TR_OK);
}

/* The newest must be refused when asked for, and passed over otherwise. */
static void assert_damage_is_found(const char *what, size_t place)
{
    tr_status status;
    bool skipped;
    int64_t step = sample_load(newest, &status, NULL);
    bool refused =
        status == TR_ECORRUPT || status == TR_EFORMAT || status == TR_EIO || status == TR_ENOTFOUND;
    if (step != -1 || !refused)
        fail_msg("%s, place %zu: step %ld loads, status %s", what, place, (long)step, tr_status_name(status));
    if (sample_load(run, NULL, &skipped) != 1 || !skipped)
        fail_msg("%s, place %zu: no way back", what, place);
}

/* Every bit of every file, the data among them: "100 % of single-bit flips". */
static void every_flipped_bit_is_found(void **state)
{
    (void)state;
    int64_t flips = 0;
    for (size_t f = 0; f < FILES; f++) {
        char path[SCRATCH_PATH];
        scratch_join(path, newest, file_names[f]);
        struct tr_file_content content = read_whole(path);
        int descriptor = open(path, O_WRONLY | O_CLOEXEC);
        assert_true(descriptor >= 0);
        for (size_t bit = 0; bit < 8 * content.size; bit++) {
            char flipped = (char)(content.data[bit / 8] ^ 1 << bit % 8);
            assert_int_equal(pwrite(descriptor, &flipped, 1, (off_t)(bit / 8)), 1);
            assert_damage_is_found(file_names[f], bit);
            assert_int_equal(pwrite(descriptor, &content.data[bit / 8], 1, (off_t)(bit / 8)), 1);
            flips++;
        }
        close(descriptor);
        tr_file_content_free(&content);
    }
    assert_true(flips > 10000);
    assert_int_equal(sample_load(run, NULL, NULL), 2);
}

static void flipped_data_name_their_tensor(void **state)
{
    (void)state;
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) {
        char path[SCRATCH_PATH];
        tr_safetensors *file;
        scratch_join(path, newest, tr_checkpoint_group_file[g]);
        struct tr_file_content content = read_whole(path);
        assert_int_equal(tr_safetensors_open(path, &file), TR_OK);
        assert_int_equal(tr_safetensors_count(file), 2);
        for (int64_t i = 0; i < tr_safetensors_count(file); i++) {
            const struct tr_safetensors_entry *entry = tr_safetensors_at(file, i);
            char name[64];
            tr_status status;
            snprintf(name, sizeof name, "tensor \"%s\" is damaged", entry->tensor.name);
            for (uint64_t at = entry->offset; at < entry->offset + entry->bytes; at++) {
                content.data[at] ^= 4;
                write_whole(path, content.data, content.size);
                assert_int_equal(sample_load(newest, &status, NULL), -1);
                assert_int_equal(status, TR_ECORRUPT);
                assert_message_has(name);
                assert_message_has(tr_checkpoint_group_file[g]);
                content.data[at] ^= 4;
            }
        }
        tr_safetensors_close(&file);
        write_whole(path, content.data, content.size);
        tr_file_content_free(&content);
    }
}

static void every_truncation_is_found(void **state)
{
    (void)state;
    for (size_t f = 0; f < FILES; f++) {
        char path[SCRATCH_PATH];
        scratch_join(path, newest, file_names[f]);
        struct tr_file_content content = read_whole(path);
        for (size_t size = 0; size < content.size; size++) {
            write_whole(path, content.data, size);
            assert_damage_is_found(file_names[f], size);
        }
        char *longer = tr_alloc_zero(content.size + 1, 1);
        assert_non_null(longer);
        memcpy(longer, content.data, content.size);
        write_whole(path, longer, content.size + 1);
        assert_damage_is_found(file_names[f], content.size + 1);
        assert_int_equal(unlink(path), 0);
        assert_damage_is_found(file_names[f], 0);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_damage_is_found(file_names[f], 0);
        assert_int_equal(rmdir(path), 0);
        write_whole(path, content.data, content.size);
        tr_free(longer);
        tr_file_content_free(&content);
    }
}

static void the_skipped_are_told(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    tr_checkpoint *checkpoint;
    assert_int_equal(sample_save(NULL, run, 3, 3), TR_OK);
    write_whole(scratch_join(path, run, "checkpoint-00000003/model.yaml"), "cut", 3);
    assert_int_equal(unlink(scratch_join(path, newest, "manifest.json")), 0);
    assert_int_equal(tr_checkpoint_open(run, &checkpoint), TR_OK);
    assert_int_equal(tr_checkpoint_facts(checkpoint)->step, 1);
    const char *skipped = tr_checkpoint_skipped(checkpoint), *second = strchr(skipped, '\n');
    assert_non_null(second);
    assert_non_null(strstr(skipped, "checkpoint-00000003/model.yaml"));
    assert_non_null(strstr(second, "checkpoint-00000002/manifest.json"));
    tr_checkpoint_close(&checkpoint);

    write_whole(scratch_join(path, run, "checkpoint-00000001/manifest.json"), "", 0);
    assert_int_equal(tr_checkpoint_open(run, &checkpoint), TR_ECORRUPT);
    assert_message_has("can be read (tried 3); the newest:");
    assert_message_has("checkpoint-00000003/model.yaml");
}

/* Writes a manifest for the newest checkpoint whose checksum is right, whatever it says. */
static void write_manifest(const char *text, size_t size)
{
    char path[SCRATCH_PATH], tail[64];
    char *whole = tr_alloc(size + sizeof tail, 1);
    assert_non_null(whole);
    memcpy(whole, text, size);
    int length = snprintf(tail, sizeof tail, "\"manifest_crc32c\": \"%08x\"\n}\n", tr_crc32c(0, text, size));
    memcpy(whole + size, tail, (size_t)length);
    write_whole(scratch_join(path, newest, "manifest.json"), whole, size + (size_t)length);
    tr_free(whole);
}

/* The text of the newest manifest before its checksum. */
static struct tr_file_content manifest_body(void)
{
    char path[SCRATCH_PATH];
    struct tr_file_content content = read_whole(scratch_join(path, newest, "manifest.json"));
    char *tail = strstr(content.data, "\"manifest_crc32c\"");
    assert_non_null(tail);
    *tail = '\0';
    content.size = (size_t)(tail - content.data);
    return content;
}

/* Puts `with` in the place of the first `what`. Returned, free with tr_free(). */
static char *replace(const char *text, const char *what, const char *with)
{
    const char *at = strstr(text, what);
    if (!at) fail_msg("the manifest lacks %s", what);
    return tr_format("%.*s%s%s", (int)(at - text), text, with, at + strlen(what));
}

static void hostile_manifests_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *what, *with;
        tr_status status;
        const char *message;
    } cases[] = {
        {"\"step\": 2", "\"step\":  2", TR_OK, ""},
        {"\"trireme checkpoint\"", "\"other\"", TR_EFORMAT, "the format is \"other\""},
        {"\"format_version\": 1", "\"format_version\": 2", TR_EUNSUPPORTED,
         "version 2, this program reads version 1"},
        {"\"format_version\": 1", "\"format_version\": 0", TR_EFORMAT, "format_version"},
        {"\"step\": 2", "\"step\": -1", TR_EFORMAT, "\"step\" is -1; it must be from 0"},
        {"\"step\": 2", "\"step\": \"2\"", TR_EFORMAT, "\"step\" is a text; it must be an integer"},
        {"\"step\": 2", "\"step\": 1e3", TR_EFORMAT, "\"step\" is a number with a point"},
        {"\"step\": 2", "\"steps\": 2", TR_EFORMAT, "\"step\" is missing"},
        {"\"microbatches\": 4", "\"microbatches\": 0", TR_EFORMAT, "microbatches"},
        {"\"seed\": \"18446744073709551613\"", "\"seed\": \"18446744073709551616\"", TR_EFORMAT,
         "from 0 to 2^64 - 1"},
        {"\"seed\": \"1", "\"seed\": \"-1", TR_EFORMAT, "\"seed\" is \"-1"},
        {"\"seed\": \"18446744073709551613\"", "\"seed\": \"\"", TR_EFORMAT, "\"seed\" is \"\""},
        {"\"model_digest\": \"0", "\"model_digest\": \"g", TR_EFORMAT, "64 hexadecimal digits"},
        {"\"model_digest\": \"0", "\"model_digest\": \"", TR_EFORMAT, "64 hexadecimal digits"},
        {"\"loss\": 0.2", "\"loss\": \"0.2\", \"more\": 0.2", TR_EFORMAT,
         "metric \"loss\" is a text; it must be a number"},
        {"\"metrics\": {", "\"metric\": {", TR_EFORMAT, "\"metrics\" is missing"},
        {"\"parameters.safetensors\"", "\"parameters\"", TR_EFORMAT, "\"parameters.safetensors\" is missing"},
        {"\"dense.bias\"", "\"dense.byas\"", TR_EFORMAT, "\"dense.bias\" is missing"},
        {"\"dense.bias\"", "\"surplus\": \"00000000\", \"dense.bias\"", TR_EFORMAT,
         "has 2 tensors, the manifest 3"},
        {"\"dense.bias\": \"", "\"dense.bias\": \"0", TR_EFORMAT, "8 hexadecimal digits"},
        {"\"dense.bias\": \"", "\"dense.bias\": 1, \"x\": \"", TR_EFORMAT, "has 2 tensors, the manifest 3"},
        {"\"bytes\": ", "\"bytes\": 9", TR_ECORRUPT, "the manifest says 9"},
        {"\"bytes\": ", "\"bytes\": -", TR_EFORMAT, "\"bytes\" is -"},
        {"\"header_crc32c\": \"", "\"header_crc32c\": \"00000000\", \"x\": \"", TR_ECORRUPT,
         "the header is damaged"},
        {"\"model.yaml\"", "\"../../../etc/passwd\"", TR_EFORMAT, "no file that a checkpoint may keep"},
        {"\"model.yaml\"", "\"/etc/passwd\"", TR_EFORMAT, "no file that a checkpoint may keep"},
        {"\"model.yaml\"", "\"manifest.json\"", TR_EFORMAT, "no file that a checkpoint may keep"},
        {"\"model.yaml\": {", "\"model.yaml\": 5, \"x\": {", TR_EFORMAT,
         "no file that a checkpoint may keep"},
        {"\"empty.txt\": {\n      \"bytes\": 0", "\"empty.txt\": {\n      \"bytes\": 9000000000000000000",
         TR_EFORMAT, "it must be from 0 to 67108864"},
        {"\"step\": 2", "\"step\": 2, \"step\": 2", TR_EFORMAT, "bad JSON"},
        {"{", "[", TR_EFORMAT, "bad JSON"},
    };
    struct tr_file_content body = manifest_body();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_status status;
        char *text = replace(body.data, cases[i].what, cases[i].with);
        write_manifest(text, strlen(text));
        int64_t step = sample_load(newest, &status, NULL);
        if (status != cases[i].status || (status != TR_OK && !strstr(tr_error_message(), cases[i].message)))
            fail_msg("%s -> %s: step %ld, status %s, message \"%s\"", cases[i].what, cases[i].with,
                     (long)step, tr_status_name(status), tr_error_message());
        tr_free(text);
    }
    tr_file_content_free(&body);
}

/* A checkpoint of a newer program is whole: going back to an older one unasked would lose what it holds. */
static void a_newer_format_is_not_passed_over(void **state)
{
    (void)state;
    struct tr_file_content body = manifest_body();
    char *text = replace(body.data, "\"format_version\": 1", "\"format_version\": 2");
    tr_status status;
    write_manifest(text, strlen(text));
    assert_int_equal(sample_load(run, &status, NULL), -1);
    assert_int_equal(status, TR_EUNSUPPORTED);
    assert_message_has("use a newer program");
    tr_free(text);
    tr_file_content_free(&body);
}

/* Bytes at random under a right checksum: a status and a message, no crash, no leak. */
static void damaged_manifests_do_no_harm(void **state)
{
    (void)state;
    enum { ROUNDS = 8000 };
    struct tr_file_content body = manifest_body();
    char *damaged = tr_alloc(body.size + 64, 1);
    assert_non_null(damaged);
    int64_t live = tr_alloc_live();
    int refused = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        tr_checkpoint *checkpoint;
        write_manifest(damaged, mutate_bytes(round, body.data, body.size, damaged));
        tr_status status = tr_checkpoint_open(newest, &checkpoint);
        tr_checkpoint_close(&checkpoint);
        if (status != TR_OK) {
            assert_true(status == TR_EFORMAT || status == TR_ECORRUPT || status == TR_ENOTFOUND ||
                        status == TR_EUNSUPPORTED);
            assert_true(tr_error_message()[0] != '\0');
            refused++;
        }
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_true(refused > ROUNDS / 2);
    tr_free(damaged);
    tr_file_content_free(&body);
}

/* All of the above must have closed what it opened. */
static void no_descriptor_is_left_open(void **state)
{
    (void)state;
    int64_t before = sample_count("/proc/self/fd", "");
    for (int i = 0; i < 50; i++) {
        char path[SCRATCH_PATH];
        assert_int_equal(sample_load(run, NULL, NULL), 2);
        write_whole(scratch_join(path, newest, "model.yaml"), "x", 1);
        assert_int_equal(sample_load(run, NULL, NULL), 1);
        assert_int_equal(tr_file_remove(NULL, newest), TR_OK);
        assert_int_equal(sample_save(NULL, run, 2, 2), TR_OK);
    }
    assert_int_equal(sample_count("/proc/self/fd", ""), before);
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, set_up, scratch_place_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILES(every_flipped_bit_is_found),    WITH_FILES(flipped_data_name_their_tensor),
        WITH_FILES(every_truncation_is_found),     WITH_FILES(the_skipped_are_told),
        WITH_FILES(hostile_manifests_are_refused), WITH_FILES(a_newer_format_is_not_passed_over),
        WITH_FILES(damaged_manifests_do_no_harm),  WITH_FILES(no_descriptor_is_left_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
