/* Opening and reading: paths that hold no checkpoint, files that change after they were opened, and numbers
 * of a manifest at their limits. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "checkpoint/manifest.h"
#include "checkpoint/sample.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void assert_message_has(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

/* ---- paths ---- */

static void paths_without_a_checkpoint(void **state)
{
    (void)state;
    tr_checkpoint *checkpoint = (tr_checkpoint *)scratch_place;
    int64_t step = 5;
    char file[SCRATCH_PATH], empty[SCRATCH_PATH], none[SCRATCH_PATH];
    scratch_join(none, scratch_place, "none");
    scratch_join(empty, scratch_place, "empty");
    scratch_join(file, scratch_place, "a-file");
    scratch_write_text("a-file", "x");
    assert_int_equal(tr_file_make_directory(NULL, empty), TR_OK);

    assert_int_equal(tr_checkpoint_open(none, &checkpoint), TR_ENOTFOUND);
    assert_message_has("/none\" does not exist; check the path");
    assert_null(checkpoint);
    assert_int_equal(tr_checkpoint_latest(none, &step), TR_OK);
    assert_int_equal(step, -1);
    checkpoint = (tr_checkpoint *)scratch_place;
    assert_int_equal(tr_checkpoint_open_best(none, &checkpoint), TR_ENOTFOUND);
    assert_message_has("/none\" does not exist; check the path");
    assert_null(checkpoint);

    assert_int_equal(tr_checkpoint_open(empty, &checkpoint), TR_ENOTFOUND);
    assert_message_has("/empty\" holds no checkpoint; check the path");
    assert_int_equal(tr_checkpoint_open_best(empty, &checkpoint), TR_ENOTFOUND);
    assert_message_has("/empty\" has no checkpoint-best: a run keeps it if");
    assert_message_has("train.evaluate_every");
    step = 5;
    assert_int_equal(tr_checkpoint_latest(empty, &step), TR_OK);
    assert_int_equal(step, -1);

    assert_int_equal(tr_checkpoint_open(file, &checkpoint), TR_EINVAL);
    assert_message_has(
        "/a-file\" is not a directory; a run and a checkpoint are directories; check the path");
    step = 5;
    assert_int_equal(tr_checkpoint_latest(file, &step), TR_EINVAL);
    assert_message_has("is not a directory");
    assert_int_equal(step, -1);
    tr_checkpoint_close(&checkpoint);
}

/* A directory with the name of a checkpoint is one, and nothing else is looked for in it. */
static void a_name_makes_a_checkpoint(void **state)
{
    (void)state;
    char run[SCRATCH_PATH], path[SCRATCH_PATH];
    tr_checkpoint *checkpoint;
    scratch_join(run, scratch_place, "named");
    assert_int_equal(sample_save(NULL, run, 2, 1), TR_OK);
    scratch_join(path, run, "checkpoint-00000009");
    assert_int_equal(tr_file_make_directory(NULL, path), TR_OK);
    assert_int_equal(sample_save(NULL, path, 2, 3), TR_OK);
    assert_int_equal(tr_checkpoint_open(path, &checkpoint), TR_ENOTFOUND);
    assert_message_has("manifest.json");
    assert_int_equal(sample_load(scratch_join(path, run, "checkpoint-00000001"), NULL, NULL), 1);
    /* Under another name the manifest tells. */
    char other[SCRATCH_PATH];
    assert_int_equal(rename(path, scratch_join(other, run, "kept")), 0);
    assert_int_equal(sample_load(other, NULL, NULL), 1);
}

static void every_allocation_of_the_best_fails(void **state)
{
    (void)state;
    char run[SCRATCH_PATH];
    scratch_join(run, scratch_place, "best");
    assert_int_equal(sample_save(NULL, run, 3, 1), TR_OK);
    assert_int_equal(sample_save(NULL, run, 3, 2), TR_OK);
    for (int64_t at = 0, done = 0; !done; at++) {
        bool there = true;
        tr_checkpoint *checkpoint = NULL;
        const int64_t live = tr_alloc_live();
        tr_status unmarked = tr_checkpoint_settle_best(NULL, run, -1, &there);
        assert_int_equal(unmarked, TR_OK);
        assert_false(there);
        refuse_begin(at);
        tr_status status = tr_checkpoint_settle_best(NULL, run, 1, &there);
        if (status == TR_OK) status = tr_checkpoint_settle_best(NULL, run, 2, &there);
        if (status == TR_OK) status = tr_checkpoint_open_best(run, &checkpoint);
        if (status == TR_OK) status = tr_checkpoint_settle_best(NULL, run, -1, &there);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done)
            assert_int_equal(sample_check(&checkpoint), 2);
        else
            tr_checkpoint_close(&checkpoint);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* Of a run whose newest checkpoint is damaged: also what is said of that needs memory. */
static void every_allocation_of_an_earlier_one_fails(void **state)
{
    (void)state;
    char run[SCRATCH_PATH];
    int64_t step;
    scratch_join(run, scratch_place, "earlier");
    assert_int_equal(sample_save(NULL, run, 3, 1), TR_OK);
    assert_int_equal(sample_save(NULL, run, 3, 2), TR_OK);
    scratch_write_text("earlier/checkpoint-00000002/manifest.json", "x");
    for (int64_t at = 0, done = 0; !done; at++) {
        tr_checkpoint *checkpoint;
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_checkpoint_open(run, &checkpoint);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) {
            assert_non_null(strstr(tr_checkpoint_skipped(checkpoint), "checkpoint-00000002"));
            assert_int_equal(sample_check(&checkpoint), 1);
        } else {
            assert_null(checkpoint);
        }
        assert_int_equal(tr_alloc_live(), live);
    }
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_checkpoint_latest(run, &step);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(step, done ? 2 : -1);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void a_mark_that_cannot_be_made(void **state)
{
    (void)state;
    scratch_write_text("no-run", "x");
    assert_int_equal(tr_checkpoint_mark_best(NULL, scratch_in("no-run"), "checkpoint-00000001"), TR_EIO);
    assert_message_has("checkpoint-00000001 is saved, but could not be marked as the best");
    assert_message_has("Not a directory");
}

/* ---- files that change ---- */

static void spoil(const char *path, uint64_t at)
{
    char byte;
    const int descriptor = open(path, O_RDWR | O_CLOEXEC);
    assert_true(descriptor >= 0);
    assert_int_equal(pread(descriptor, &byte, 1, (off_t)at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(descriptor, &byte, 1, (off_t)at), 1);
    close(descriptor);
}

static tr_status add_bytes(void *user, const void *piece, size_t bytes)
{
    (void)piece;
    *(uint64_t *)user += bytes;
    return TR_OK;
}

static tr_status take_none(void *user, const void *piece, size_t bytes)
{
    (void)user, (void)piece, (void)bytes;
    return tr_fail(TR_EPEER, "no more is taken");
}

static void changes_are_noticed(void **state)
{
    (void)state;
    char run[SCRATCH_PATH], path[SCRATCH_PATH + 64];
    scratch_join(run, scratch_place, "changing");
    assert_int_equal(sample_save(NULL, run, 2, 1), TR_OK);
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) {
        const enum tr_checkpoint_group group = (enum tr_checkpoint_group)g;
        tr_checkpoint *checkpoint;
        uint64_t taken = 0;
        char to[64], name[64];
        assert_int_equal(tr_checkpoint_open(run, &checkpoint), TR_OK);
        const struct tr_safetensors_entry *entry =
            tr_safetensors_at(tr_checkpoint_tensors(checkpoint, group), 1);
        snprintf(name, sizeof name, "tensor \"%s\" has changed since the checkpoint was opened",
                 entry->tensor.name);
        snprintf(path, sizeof path, "%s/checkpoint-00000001/%s", run, tr_checkpoint_group_file[g]);
        assert_int_equal(tr_checkpoint_read(checkpoint, group, entry, to), TR_OK);
        assert_int_equal(tr_checkpoint_stream(checkpoint, group, entry, add_bytes, &taken), TR_OK);
        assert_int_equal(taken, entry->bytes);
        assert_int_equal(tr_checkpoint_stream(checkpoint, group, entry, take_none, NULL), TR_EPEER);
        assert_message_has("no more is taken");
        spoil(path, entry->offset + entry->bytes - 1);
        assert_int_equal(tr_checkpoint_read(checkpoint, group, entry, to), TR_ECORRUPT);
        assert_message_has(name);
        assert_message_has(tr_checkpoint_group_file[g]);
        assert_message_has(", the manifest says ");
        assert_int_equal(tr_checkpoint_stream(checkpoint, group, entry, add_bytes, &taken), TR_ECORRUPT);
        assert_message_has(name);
        /* The tensor beside it is as it was. */
        entry = tr_safetensors_at(tr_checkpoint_tensors(checkpoint, group), 0);
        assert_int_equal(tr_checkpoint_read(checkpoint, group, entry, to), TR_OK);
        entry = tr_safetensors_at(tr_checkpoint_tensors(checkpoint, group), 1);
        spoil(path, entry->offset + entry->bytes - 1);
        assert_int_equal(tr_checkpoint_read(checkpoint, group, entry, to), TR_OK);
        tr_checkpoint_close(&checkpoint);
    }
}

/* ---- manifests ---- */

#define BODY                                                                                                 \
    "{\"format\": \"trireme checkpoint\", \"format_version\": 1, \"program\": \"other 9\", \"step\": %s, "   \
    "\"seed\": \"%s\", \"microbatches\": 1, \"model_digest\": \"%s\", \"data_digest\": \"\", "               \
    "\"parameter_hash\": \"\", \"metrics\": {%s}, \"tensor_files\": {\"parameters.safetensors\": "           \
    "{\"bytes\": 0, \"header_crc32c\": \"%s\", \"tensors\": {\"w\": \"89abcdef\"}}, "                        \
    "\"optimizer.safetensors\": {\"bytes\": 8, \"header_crc32c\": \"00000000\", \"tensors\": {}}}, "         \
    "\"files\": {\"a\": {\"bytes\": 67108864, \"crc32c\": \"00000010\"}}, "

static tr_status read_manifest(const char *step, const char *seed, const char *digest, const char *metrics,
                               const char *crc, struct tr_manifest *out)
{
    char text[2048];
    int length = snprintf(text, sizeof text, BODY, step, seed, digest, metrics, crc);
    const uint32_t sum = tr_crc32c(0, text, (size_t)length);
    length += snprintf(text + length, sizeof text - (size_t)length, "\"manifest_crc32c\": \"%08x\"\n}\n",
                       (unsigned)sum);
    assert_true(length < (int)sizeof text);
    return tr_manifest_read("m.json", text, (size_t)length, out);
}

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void numbers_at_their_limits(void **state)
{
    (void)state;
    struct tr_manifest manifest;
    uint32_t crc = 0;
    assert_int_equal(read_manifest("9223372036854775807", "18446744073709551615", DIGEST,
                                   "\"a\": 3, \"b\": null, \"c\": -0.5", "fedcba90", &manifest),
                     TR_OK);
    const struct tr_checkpoint_facts *facts = &manifest.facts;
    assert_true(facts->step == INT64_MAX && facts->seed == UINT64_MAX && facts->microbatches == 1);
    assert_string_equal(facts->program, "other 9");
    assert_string_equal(facts->model_digest, DIGEST);
    assert_int_equal(facts->metric_count, 3);
    assert_string_equal(facts->metrics[0].name, "a");
    assert_true(facts->metrics[0].value == 3 && isnan(facts->metrics[1].value));
    assert_true(facts->metrics[2].value == -0.5);
    assert_true(manifest.summary[0].bytes == 0 && manifest.summary[1].bytes == 8);
    assert_true(manifest.summary[0].header_crc == 0xfedcba90u && manifest.summary[1].header_crc == 0);
    assert_int_equal(manifest.file_count, 1);
    assert_string_equal(manifest.files[0].name, "a");
    assert_true(manifest.files[0].bytes == 67108864 && manifest.files[0].crc == 16);
    assert_int_equal(tr_manifest_tensor_crc(&manifest, "m.json", TR_CHECKPOINT_PARAMETERS, "w", &crc), TR_OK);
    assert_true(crc == 0x89abcdefu);
    assert_int_equal(tr_manifest_tensor_crc(&manifest, "m.json", TR_CHECKPOINT_OPTIMIZER, "w", &crc),
                     TR_EFORMAT);
    assert_message_has("m.json");
    tr_manifest_free(&manifest);
    assert_null(manifest.files);
    tr_manifest_free(&manifest);
    assert_int_equal(read_manifest("0", "0", "", "", "00000000", &manifest), TR_OK);
    assert_true(manifest.facts.step == 0 && manifest.facts.seed == 0 && manifest.facts.metric_count == 0);
    tr_manifest_free(&manifest);

    static const struct {
        const char *step, *seed, *digest, *metrics, *crc, *message;
    } bad[] = {
        {"9223372036854775808", "0", "", "", "00000000", "a number does not fit 64 bits"},
        {"0", "18446744073709551616", "", "", "00000000",
         "\"seed\" is \"18446744073709551616\"; it must be an integer from 0 to 2^64 - 1"},
        {"0", "1x", "", "", "00000000", "\"seed\" is \"1x\""},
        {"0", "99999999999999999999", "", "", "00000000", "\"seed\" is \"99999999999999999999\""},
        {"0", "0", DIGEST "0", "", "00000000", "; it must be 64 hexadecimal digits"},
        {"0", "0", "A", "", "00000000", "\"model_digest\" is \"A\"; it must be 64 hexadecimal digits"},
        {"0", "0", "", "\"a\": true", "00000000",
         "metric \"a\" is true or false; it must be a number or null"},
        {"0", "0", "", "", "0000000", "\"header_crc32c\" is \"0000000\"; it must be 8 hexadecimal digits"},
        {"0", "0", "", "", "0000000G", "\"header_crc32c\" is \"0000000G\""},
        {"0", "0", "", "", "0000000F", "\"header_crc32c\" is \"0000000F\""},
    };
    const int64_t live = tr_alloc_live();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(
            read_manifest(bad[i].step, bad[i].seed, bad[i].digest, bad[i].metrics, bad[i].crc, &manifest),
            TR_EFORMAT);
        assert_message_has(bad[i].message);
        assert_message_has("m.json:");
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void ends_of_manifests(void **state)
{
    (void)state;
    static const char tail[] = "\"manifest_crc32c\": \"00000000\"\n}\n";
    struct tr_manifest manifest;
    assert_int_equal(tr_manifest_read("m.json", tail, sizeof tail - 2, &manifest), TR_ECORRUPT);
    assert_message_has("\"m.json\": 31 bytes are too few for a manifest; was it cut?");
    /* Right as far as it goes: nothing is not JSON. */
    assert_int_equal(tr_manifest_read("m.json", tail, sizeof tail - 1, &manifest), TR_EFORMAT);
    assert_int_equal(
        tr_manifest_read("m.json", "\"manifest_crc32c\": \"00000001\"\n}\n", sizeof tail - 1, &manifest),
        TR_ECORRUPT);
    assert_message_has("its bytes have the CRC-32C 00000000, which is not what its end says");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_without_a_checkpoint),
        cmocka_unit_test(a_name_makes_a_checkpoint),
        cmocka_unit_test(every_allocation_of_the_best_fails),
        cmocka_unit_test(every_allocation_of_an_earlier_one_fails),
        cmocka_unit_test(a_mark_that_cannot_be_made),
        cmocka_unit_test(changes_are_noticed),
        cmocka_unit_test(numbers_at_their_limits),
        cmocka_unit_test(ends_of_manifests),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
