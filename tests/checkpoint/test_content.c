/* What a checkpoint may hold, and checkpoints that are saved under a path of their own. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/sample.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void assert_message_has(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

static struct tr_checkpoint_content content_of(const struct tr_stored_tensor *parameters, int64_t count,
                                               const struct tr_checkpoint_file *files, int64_t file_count)
{
    return (struct tr_checkpoint_content){.facts = {.step = 4,
                                                    .seed = 0,
                                                    .microbatches = 1,
                                                    .model_digest = "",
                                                    .data_digest = "",
                                                    .parameter_hash = ""},
                                          .group = {[TR_CHECKPOINT_PARAMETERS] = {parameters, count, NULL}},
                                          .files = files,
                                          .file_count = file_count};
}

/* ---- a path of its own ---- */

static tr_status save_to(const char *path, float *values)
{
    const struct tr_stored_tensor tensor = {"weight", TR_DTYPE_F32, 1, {3}, values};
    const struct tr_checkpoint_file file = {"model.yaml", "layers: []\n", 11};
    const struct tr_checkpoint_content content = content_of(&tensor, 1, &file, 1);
    return tr_checkpoint_save_at(path, &content);
}

static void paths_are_made_and_never_replaced(void **state)
{
    (void)state;
    static float values[] = {1, 2, 3}, others[] = {4, 5, 6}, found[3];
    const struct tr_stored_tensor tensor = {"weight", TR_DTYPE_F32, 1, {3}, found};
    char path[SCRATCH_PATH];
    tr_checkpoint *checkpoint;
    scratch_join(path, scratch_place, "deep/er/fifth");
    assert_int_equal(save_to(path, values), TR_OK);
    assert_int_equal(save_to(path, others), TR_EIO);
    assert_message_has("deep/er/fifth\" is there already; give another path");
    assert_message_has("checkpoint of step 4 not saved");
    assert_int_equal(sample_count(scratch_in("deep/er"), ""), 1);
    assert_int_equal(tr_checkpoint_open(path, &checkpoint), TR_OK);
    assert_string_equal(tr_checkpoint_path(checkpoint), path);
    assert_int_equal(tr_checkpoint_facts(checkpoint)->step, 4);
    assert_true(tr_checkpoint_facts(checkpoint)->seed == 0);
    assert_int_equal(tr_checkpoint_facts(checkpoint)->microbatches, 1);
    assert_int_equal(tr_checkpoint_facts(checkpoint)->metric_count, 0);
    assert_string_equal(tr_checkpoint_file(checkpoint, "model.yaml", NULL), "layers: []\n");
    assert_int_equal(tr_checkpoint_load(checkpoint, TR_CHECKPOINT_PARAMETERS, &tensor, 1), TR_OK);
    assert_memory_equal(found, values, sizeof values);
    assert_int_equal(tr_safetensors_count(tr_checkpoint_tensors(checkpoint, TR_CHECKPOINT_OPTIMIZER)), 0);
    size_t size = 1;
    assert_null(tr_checkpoint_packed(checkpoint, &size));
    tr_checkpoint_close(&checkpoint);
}

static void failures_leave_nothing_at_a_path(void **state)
{
    (void)state;
    static float values[] = {1, 2, NAN};
    assert_int_equal(tr_file_make_directory(NULL, scratch_in("apart")), TR_OK);
    assert_int_equal(save_to(scratch_in("apart/bad"), values), TR_ENONFINITE);
    assert_message_has("tensor \"weight\" holds");
    assert_message_has("at element 2; the state is not saved");
    assert_message_has("checkpoint of step 4 not saved");
    assert_int_equal(sample_count(scratch_in("apart"), ""), 0);
    values[2] = 3;
    const struct tr_checkpoint_file hidden = {".model", "", 0};
    const struct tr_checkpoint_content content = content_of(NULL, 0, &hidden, 1);
    assert_int_equal(tr_checkpoint_save_at(scratch_in("apart/bad"), &content), TR_EINVAL);
    assert_message_has(".model");
    assert_message_has("checkpoint of step 4 not saved");
    assert_int_equal(sample_count(scratch_in("apart"), ""), 0);
    scratch_write_text("file", "x");
    assert_int_equal(save_to(scratch_in("file/below"), values), TR_EIO);
    assert_message_has("Not a directory");
    assert_message_has("checkpoint of step 4 not saved");
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = save_to(scratch_in("apart/good"), values);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (!done) assert_message_has("checkpoint of step 4 not saved");
        assert_int_equal(tr_alloc_live(), live);
        if (!done) assert_int_equal(sample_count(scratch_in("apart"), "good"), 0);
    }
    assert_int_equal(sample_count(scratch_in("apart"), ""), 1);
}

/* ---- kept files ---- */

struct tally {
    uint64_t bytes;
    uint8_t *to; /* NULL: nowhere */
};

static tr_status count_bytes(void *user, const void *data, size_t size)
{
    struct tally *tally = user;
    if (tally->to && data) memcpy(tally->to + tally->bytes, data, size);
    tally->bytes += size;
    return TR_OK;
}

static void names_of_kept_files_have_a_limit(void **state)
{
    (void)state;
    char name[102];
    memset(name, 'n', sizeof name);
    name[100] = '\0';
    assert_true(tr_manifest_may_name(name));
    name[100] = 'n';
    name[101] = '\0';
    assert_false(tr_manifest_may_name(name));
    assert_true(tr_manifest_may_name("Z"));
    assert_true(tr_manifest_may_name("-"));
    assert_true(tr_manifest_may_name("a.."));
    assert_false(tr_manifest_may_name("."));
    assert_false(tr_manifest_may_name("a b"));
}

static void kept_files_have_a_limit(void **state)
{
    (void)state;
    const size_t most = (size_t)64 << 20;
    struct tally tally = {0};
    const struct tr_stored_sink sink = {count_bytes, &tally};
    char *large = tr_alloc_zero(most + 1, 1);
    assert_non_null(large);
    large[most - 1] = 'x';
    struct tr_checkpoint_file files[] = {{"small", "x", 1}, {"large", large, most + 1}};
    struct tr_checkpoint_content content = content_of(NULL, 0, files, 2);
    assert_int_equal(tr_checkpoint_pack(&sink, &content), TR_EINVAL);
    assert_message_has("a checkpoint cannot keep the file \"large\" of 67108865 bytes");
    assert_int_equal(tally.bytes, 0);
    files[1].size = most;
    assert_int_equal(tr_checkpoint_pack(&sink, &content), TR_OK);
    assert_true(tally.bytes > most);
    tally = (struct tally){.to = tr_alloc((size_t)tally.bytes, 1)};
    assert_non_null(tally.to);
    assert_int_equal(tr_checkpoint_pack(&sink, &content), TR_OK);
    tr_checkpoint *checkpoint;
    size_t size;
    assert_int_equal(tr_checkpoint_open_packed(tally.to, (size_t)tally.bytes, true, &checkpoint), TR_OK);
    const char *found = tr_checkpoint_file(checkpoint, "large", &size);
    assert_int_equal(size, most);
    assert_int_equal(memcmp(found, large, most), 0);
    assert_string_equal(tr_checkpoint_file(checkpoint, "small", &size), "x");
    assert_int_equal(size, 1);
    tr_checkpoint_close(&checkpoint);
    tr_free(large);
}

/* ---- tensors ---- */

/* Only floats can be no numbers: the same bits in other types are what they are. */
static void integers_may_have_any_bits(void **state)
{
    (void)state;
    static int32_t whole[] = {0x7f800000, 0x7fc00000, -1};
    static int64_t wide[] = {0x7f8000007f800000, -1};
    static uint8_t small[] = {0, 0, 128, 127, 255};
    int32_t found[3];
    int64_t found_wide[2];
    uint8_t found_small[5];
    const struct tr_stored_tensor tensors[] = {{"whole", TR_DTYPE_I32, 1, {3}, whole},
                                               {"wide", TR_DTYPE_I64, 1, {2}, wide},
                                               {"small", TR_DTYPE_U8, 1, {5}, small}},
                                  places[] = {{"whole", TR_DTYPE_I32, 1, {3}, found},
                                              {"wide", TR_DTYPE_I64, 1, {2}, found_wide},
                                              {"small", TR_DTYPE_U8, 1, {5}, found_small}};
    const struct tr_checkpoint_content content = content_of(tensors, 3, NULL, 0);
    char path[SCRATCH_PATH];
    tr_checkpoint *checkpoint;
    scratch_join(path, scratch_place, "integers");
    assert_int_equal(tr_checkpoint_save_at(path, &content), TR_OK);
    assert_int_equal(tr_checkpoint_open(path, &checkpoint), TR_OK);
    assert_int_equal(tr_checkpoint_load(checkpoint, TR_CHECKPOINT_PARAMETERS, places, 3), TR_OK);
    assert_memory_equal(found, whole, sizeof whole);
    assert_memory_equal(found_wide, wide, sizeof wide);
    assert_memory_equal(found_small, small, sizeof small);
    tr_checkpoint_close(&checkpoint);
}

/* The second tensor of a group, and the second group, are looked at as the first ones are. */
static void every_tensor_is_looked_at(void **state)
{
    (void)state;
    static float good[2], bad[] = {0, -INFINITY};
    const struct tr_stored_tensor first = {"first", TR_DTYPE_F32, 1, {2}, good};
    const struct tr_stored_tensor second[] = {first, {"second", TR_DTYPE_F32, 1, {2}, bad}};
    struct tally tally = {0};
    for (int group = 0; group < TR_CHECKPOINT_GROUPS; group++) {
        struct tr_checkpoint_content content = content_of(&first, 1, NULL, 0);
        content.group[group].tensors = second;
        content.group[group].count = 2;
        assert_int_equal(tr_checkpoint_pack(&(struct tr_stored_sink){count_bytes, &tally}, &content),
                         TR_ENONFINITE);
        assert_message_has("tensor \"second\" holds -inf at element 1; the state is not saved");
        assert_int_equal(tr_checkpoint_save_at(scratch_in("never"), &content), TR_ENONFINITE);
        assert_message_has("tensor \"second\" holds -inf at element 1");
        assert_false(tr_file_exists(scratch_in("never")));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_made_and_never_replaced),
        cmocka_unit_test(failures_leave_nothing_at_a_path),
        cmocka_unit_test(names_of_kept_files_have_a_limit),
        cmocka_unit_test(kept_files_have_a_limit),
        cmocka_unit_test(integers_may_have_any_bits),
        cmocka_unit_test(every_tensor_is_looked_at),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
