/* Checkpoints in good times: what is saved loads, old ones go, and what does not belong together is told
 * apart. */
#include "checkpoint/checkpoint.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/log.h"
#include "scratch.h"
#include "checkpoint/names.h"
#include "checkpoint/manifest.h"
#include "checkpoint/sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

static char run[SCRATCH_PATH];
static int warnings;

static void count_warnings(void *user, enum tr_log_level level, const char *message)
{
    (void)user;
    (void)message;
    warnings += level == TR_LOG_WARNING;
}

static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_join(run, scratch_place, "runs/first");
    warnings = 0;
    tr_log_set_sink(count_warnings, NULL, TR_LOG_DEBUG);
    return 0;
}

static int tear_down(void **state)
{
    tr_log_set_sink(NULL, NULL, TR_LOG_DEBUG);
    return scratch_place_remove(state);
}

static void assert_message_has(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

static bool run_has(const char *name)
{
    char path[SCRATCH_PATH];
    return tr_file_is_directory(scratch_join(path, run, name));
}

static void names_are_read_one_way_only(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t step, edition;
    } good[] = {{"checkpoint-00000000", 0, 1},
                {"checkpoint-00000100", 100, 1},
                {"checkpoint-00000100-2", 100, 2},
                {"checkpoint-123456789", 123456789, 1},
                {"checkpoint-9223372036854775807-9223372036854775807", INT64_MAX, INT64_MAX}};
    static const char *const bad[] = {"checkpoint-",          "checkpoint-100",
                                      "checkpoint-000000100", "checkpoint-00000100-1",
                                      "checkpoint-00000100-", "checkpoint-00000100-02",
                                      "checkpoint--0000001",  "checkpoint-00000100.tmp",
                                      "checkpoint-0x000064",  "checkpoint-9223372036854775808",
                                      "Checkpoint-00000100",  "checkpoint-00000100-2-3",
                                      "checkpoint-+0000100",  ""};
    struct tr_checkpoint_name name;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(tr_checkpoint_parse_name(good[i].text, &name));
        assert_true(name.step == good[i].step && name.edition == good[i].edition);
        char *path = tr_checkpoint_make_path("r", name, ".tmp");
        assert_int_equal(strncmp(path + 2, good[i].text, strlen(good[i].text)), 0);
        tr_free(path);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (tr_checkpoint_parse_name(bad[i], &name)) fail_msg("\"%s\" was taken for a checkpoint", bad[i]);
    /* However long a name is. */
    char longest[4000] = "checkpoint-";
    memset(longest + 11, '1', sizeof longest - 12);
    for (size_t length = 31; length < sizeof longest; length++) {
        longest[length] = '\0';
        assert_false(tr_checkpoint_parse_name(longest, &name));
        longest[length] = '1';
    }
}

static void kept_files_stay_in_their_directory(void **state)
{
    (void)state;
    assert_true(tr_manifest_may_name("vocabulary.txt"));
    static const char *const bad[] = {"",
                                      ".",
                                      "..",
                                      ".hidden",
                                      "a/b",
                                      "../x",
                                      "/x",
                                      "a b",
                                      "manifest.json",
                                      "parameters.safetensors",
                                      "optimizer.safetensors",
                                      "a\nb",
                                      "\xc3\xa9"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(tr_manifest_may_name(bad[i]));
}

static void the_newest_loads_and_old_ones_go(void **state)
{
    (void)state;
    int64_t latest;
    assert_int_equal(tr_checkpoint_latest(run, &latest), TR_OK);
    assert_int_equal(latest, -1);
    for (int64_t step = 0; step <= 500; step += 100) {
        bool skipped;
        assert_int_equal(sample_save(NULL, run, 3, step), TR_OK);
        assert_int_equal(sample_load(run, NULL, &skipped), step);
        assert_false(skipped);
        assert_int_equal(sample_count(run, ""), step >= 200 ? 3 : step / 100 + 1);
        assert_int_equal(tr_checkpoint_latest(run, &latest), TR_OK);
        assert_int_equal(latest, step);
    }
    char path[SCRATCH_PATH];
    assert_int_equal(sample_load(scratch_join(path, run, "checkpoint-00000300"), NULL, NULL), 300);
    assert_false(run_has("checkpoint-00000200"));
    assert_int_equal(warnings, 0);
}

static void equal_content_gives_equal_files(void **state)
{
    (void)state;
    char other[SCRATCH_PATH];
    scratch_join(other, scratch_place, "second");
    assert_int_equal(sample_save(NULL, run, 2, 7), TR_OK);
    assert_int_equal(sample_save(NULL, other, 2, 7), TR_OK);
    static const char *const names[] = {"manifest.json", "parameters.safetensors", "optimizer.safetensors",
                                        "model.yaml"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[SCRATCH_PATH], path[SCRATCH_PATH];
        struct tr_file_content first, second;
        scratch_join(name, "checkpoint-00000007", names[i]);
        assert_int_equal(tr_file_read(scratch_join(path, run, name), 10000, &first), TR_OK);
        assert_int_equal(tr_file_read(scratch_join(path, other, name), 10000, &second), TR_OK);
        assert_int_equal(first.size, second.size);
        assert_memory_equal(first.data, second.data, first.size);
        tr_file_content_free(&first);
        tr_file_content_free(&second);
    }
}

static void the_same_step_can_be_saved_again(void **state)
{
    (void)state;
    assert_int_equal(sample_save(NULL, run, 2, 1), TR_OK);
    for (int i = 2; i < 5; i++) {
        assert_int_equal(sample_save(NULL, run, 2, 2), TR_OK);
        assert_int_equal(sample_load(run, NULL, NULL), 2);
        assert_int_equal(sample_count(run, ""), 2);
    }
    assert_true(run_has("checkpoint-00000002-3"));
    assert_true(run_has("checkpoint-00000001"));
}

/* A run resumed from step 100 leaves the future that it had before. */
static void later_steps_are_set_aside(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(sample_save(NULL, run, 4, 100), TR_OK);
        assert_int_equal(sample_save(NULL, run, 4, 200), TR_OK);
        assert_int_equal(sample_save(NULL, run, 4, 300), TR_OK);
        assert_int_equal(sample_save(NULL, run, 4, 150), TR_OK);
        assert_int_equal(sample_load(run, NULL, NULL), 150);
    }
    assert_int_equal(sample_count(run, ".abandoned"), 3); /* 150 too, when 100 was saved again */
    assert_int_equal(sample_count(run, ".abandoned-2"), 2);
    assert_true(warnings >= 4);
    char path[SCRATCH_PATH];
    assert_int_equal(sample_load(scratch_join(path, run, "checkpoint-00000300.abandoned-2"), NULL, NULL),
                     300);
}

#define LONG_NAME "checkpoint-00000001-checkpoint-00000001-checkpoint-"

static void leftovers_are_removed_and_strangers_stay(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    static const char *const made[] = {"checkpoint-00000001.tmp",
                                       "checkpoint-00000009-2.tmp",
                                       "notes.tmp",
                                       "checkpoint-x.tmp",
                                       "events",
                                       "x",
                                       LONG_NAME LONG_NAME LONG_NAME LONG_NAME ".tmp"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        assert_int_equal(tr_file_make_directories(NULL, scratch_join(path, run, made[i])), TR_OK);
    scratch_join(path, run, "checkpoint-00000001.tmp/parameters.safetensors");
    assert_int_equal(tr_file_write_atomic(NULL, path, "half", 4), TR_OK);
    assert_int_equal(sample_save(NULL, run, 2, 1), TR_OK);
    assert_int_equal(sample_load(run, NULL, NULL), 1);
    assert_false(run_has(made[0]) || run_has(made[1]));
    for (int i = 2; i < 7; i++) assert_true(run_has(made[i]));
}

static void an_open_checkpoint_outlives_its_directory(void **state)
{
    (void)state;
    float weight[15], bias[5];
    const struct tr_stored_tensor tensors[] = {{"dense.bias", TR_DTYPE_F32, 1, {5}, bias},
                                               {"dense.weight", TR_DTYPE_F32, 2, {3, 5}, weight}};
    assert_int_equal(sample_save(NULL, run, 2, 3), TR_OK);
    tr_checkpoint *checkpoint;
    assert_int_equal(tr_checkpoint_open(run, &checkpoint), TR_OK);
    assert_int_equal(tr_file_remove(NULL, run), TR_OK);
    assert_int_equal(tr_checkpoint_load(checkpoint, TR_CHECKPOINT_PARAMETERS, tensors, 2), TR_OK);
    assert_true(bias[1] == 301);
    assert_non_null(strstr(tr_checkpoint_path(checkpoint), "checkpoint-00000003"));
    assert_int_equal(tr_safetensors_count(tr_checkpoint_tensors(checkpoint, TR_CHECKPOINT_OPTIMIZER)), 2);
    tr_checkpoint_close(&checkpoint);
}

static void another_model_is_told_apart(void **state)
{
    (void)state;
    float data[64];
    memset(data, 0x55, sizeof data);
    const struct tr_stored_tensor bias = {"dense.bias", TR_DTYPE_F32, 1, {5}, data};
    const struct tr_stored_tensor weight = {"dense.weight", TR_DTYPE_F32, 2, {3, 5}, data};
    struct tr_stored_tensor wider = weight, turned = weight, typed = weight, renamed = weight;
    wider.shape[1] = 6;
    turned.rank = 1;
    turned.shape[0] = 15;
    typed.dtype = TR_DTYPE_I32;
    renamed.name = "dense.kernel";
    const struct {
        struct tr_stored_tensor tensors[3];
        int64_t count;
        const char *message;
    } cases[] = {
        {{bias, wider}, 2, "tensor \"dense.weight\" is F32[3,5], where F32[3,6] is expected"},
        {{bias, turned}, 2, "is F32[3,5], where F32[15] is expected"},
        {{bias, typed}, 2, "is F32[3,5], where I32[3,5] is expected"},
        {{bias, renamed},
         2,
         "has no tensor \"dense.kernel\" in parameters.safetensors, where F32[3,5] is expected"},
        {{bias},
         1,
         "has a tensor \"dense.weight\", F32[3,5], in parameters.safetensors, which is not expected"},
        {{bias, weight, renamed}, 3, "has no tensor \"dense.kernel\""},
        {{weight},
         1,
         "has a tensor \"dense.bias\", F32[5], in parameters.safetensors, which is not expected"},
        {{{0}}, 0, "which is not expected"},
    };
    assert_int_equal(sample_save(NULL, run, 2, 3), TR_OK);
    tr_checkpoint *checkpoint;
    assert_int_equal(tr_checkpoint_open(run, &checkpoint), TR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(
            tr_checkpoint_load(checkpoint, TR_CHECKPOINT_PARAMETERS, cases[i].tensors, cases[i].count),
            TR_EMISMATCH);
        assert_message_has(cases[i].message);
        assert_message_has("checkpoint-00000003");
        for (size_t j = 0; j < sizeof data; j++) assert_int_equal(((const char *)data)[j], 0x55);
    }
    tr_checkpoint_close(&checkpoint);
}

/* Data that come in pieces, and may fail to. */
struct flow {
    float *values;
    int64_t floats, sent;
    int64_t fails_at; /* float from which on nothing comes; -1: none */
    int pieces;
};

static tr_status give_piece(void *user, int64_t index, uint64_t at, const void **piece, size_t *bytes)
{
    struct flow *flow = user;
    int64_t begin = (int64_t)(at / sizeof(float)), size = 1 + flow->pieces++ % 100;
    assert_int_equal(index, 0);
    assert_int_equal(begin, flow->sent);
    if (flow->fails_at >= 0 && begin >= flow->fails_at) return tr_fail(TR_EPEER, "rank 3 is gone");
    if (size > flow->floats - begin) size = flow->floats - begin;
    flow->sent += size;
    *piece = flow->values + begin;
    *bytes = (size_t)size * sizeof(float);
    return TR_OK;
}

/* Where the path of what is saved goes, or NULL. */
static char **saved_path;

/* `flow`: what gives the data, or NULL. */
static tr_status save_given(float *values, int64_t count, const char *file_name, int64_t keep,
                            struct flow *flow)
{
    const struct tr_stored_giver giver = {give_piece, flow};
    const struct tr_stored_tensor tensor = {"conv1.weight", TR_DTYPE_F32, 1, {count}, values};
    const struct tr_checkpoint_file file = {file_name, "x", 1};
    const struct tr_checkpoint_metric metrics[] = {{"loss", NAN}, {"perplexity", INFINITY}};
    const struct tr_checkpoint_content content = {.facts = {.microbatches = 1,
                                                            .model_digest = "",
                                                            .data_digest = "",
                                                            .parameter_hash = "",
                                                            .metrics = metrics,
                                                            .metric_count = 2},
                                                  .group = {{&tensor, 1, flow ? &giver : NULL}},
                                                  .files = &file,
                                                  .file_count = 1};
    return tr_checkpoint_save(NULL, run, keep, &content, saved_path);
}

static tr_status save_values(float *values, int64_t count, const char *file_name, int64_t keep)
{
    return save_given(values, count, file_name, keep, NULL);
}

static int64_t entries_of_run(void)
{
    struct tr_file_names names;
    assert_int_equal(tr_file_list(NULL, run, &names), TR_OK);
    int64_t count = names.count;
    tr_file_names_free(&names);
    return count;
}

static struct tr_file_content content_of(const char *name)
{
    char path[SCRATCH_PATH];
    struct tr_file_content content;
    assert_int_equal(tr_file_read(scratch_join(path, run, name), 1 << 20, &content), TR_OK);
    return content;
}

static void data_may_come_in_pieces(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static const char *const files[] = {"parameters.safetensors", "manifest.json"};
    static float values[COUNT];
    struct tr_file_content whole[2];
    char name[64];
    for (int i = 0; i < COUNT; i++) values[i] = (float)i / 3;
    assert_int_equal(save_values(values, COUNT, "a", 5), TR_OK);
    for (int f = 0; f < 2; f++) {
        snprintf(name, sizeof name, "checkpoint-00000000/%s", files[f]);
        whole[f] = content_of(name);
    }
    struct flow flow = {values, COUNT, 0, -1, 0};
    assert_int_equal(save_given(NULL, COUNT, "a", 5, &flow), TR_OK);
    assert_true(flow.pieces > 50);
    for (int f = 0; f < 2; f++) {
        snprintf(name, sizeof name, "checkpoint-00000000-2/%s", files[f]);
        struct tr_file_content pieces = content_of(name);
        assert_int_equal(pieces.size, whole[f].size);
        assert_memory_equal(pieces.data, whole[f].data, pieces.size);
        tr_file_content_free(&pieces);
        tr_file_content_free(&whole[f]);
    }
    /* Where they stop, or must not be saved, nothing is left. */
    flow = (struct flow){values, COUNT, 0, 4000, 0};
    assert_int_equal(save_given(NULL, COUNT, "a", 5, &flow), TR_EPEER);
    assert_message_has("rank 3 is gone");
    assert_int_equal(entries_of_run(), 1);
    values[3999] = NAN;
    flow = (struct flow){values, COUNT, 0, -1, 0};
    assert_int_equal(save_given(NULL, COUNT, "a", 5, &flow), TR_ENONFINITE);
    assert_message_has("at element 3999;");
    assert_int_equal(entries_of_run(), 1);
}

static void poisoned_state_is_not_saved(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static float values[COUNT];
    static const float poison[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (int i = 0; i < COUNT; i++) values[i] = i % 2 ? 3.4e38f : -1e-45f;
    static const int places[] = {0, 1, 1023, 1024, 2500, COUNT - 1};
    for (int i = 0; i < 24; i++) {
        char place[32];
        float kept = values[places[i % 6]];
        values[places[i % 6]] = poison[i / 6];
        char *path = place;
        saved_path = &path;
        assert_int_equal(save_values(values, COUNT, "a", 2), TR_ENONFINITE);
        saved_path = NULL;
        assert_null(path);
        snprintf(place, sizeof place, "at element %d;", places[i % 6]);
        assert_message_has("conv1.weight");
        assert_message_has(place);
        values[places[i % 6]] = kept;
        assert_int_equal(entries_of_run(), 0);
    }
    assert_int_equal(save_values(values, COUNT, "a", 2), TR_OK);
    /* Figures, unlike state, may be what they are. */
    tr_checkpoint *checkpoint;
    assert_int_equal(tr_checkpoint_open(run, &checkpoint), TR_OK);
    assert_true(isnan(tr_checkpoint_facts(checkpoint)->metrics[0].value));
    assert_true(isnan(tr_checkpoint_facts(checkpoint)->metrics[1].value));
    tr_checkpoint_close(&checkpoint);
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    static float value[1];
    char path[SCRATCH_PATH];
    tr_checkpoint *checkpoint;
    assert_int_equal(save_values(value, 1, "../escape", 2), TR_EINVAL);
    assert_message_has("../escape");
    assert_int_equal(save_values(value, 1, "a", 1), TR_EINVAL);
    assert_message_has("at least 2");
    assert_false(tr_file_exists(run));
    assert_int_equal(tr_checkpoint_open(run, &checkpoint), TR_ENOTFOUND);
    assert_message_has("does not exist");
    assert_int_equal(tr_file_make_directories(NULL, run), TR_OK);
    assert_int_equal(tr_checkpoint_open(run, &checkpoint), TR_ENOTFOUND);
    assert_message_has("holds no checkpoint");
    /* A file where the run directory should be. */
    scratch_join(path, scratch_place, "file");
    assert_int_equal(tr_file_write_atomic(NULL, path, "x", 1), TR_OK);
    assert_int_equal(sample_save(NULL, path, 2, 1), TR_EIO);
    assert_message_has("checkpoint of step 1 not saved");
    assert_message_has("Not a directory");
    assert_int_equal(tr_checkpoint_open(path, &checkpoint), TR_EINVAL);
    assert_message_has("is not a directory");
    assert_null(checkpoint);
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_one_way_only),
        cmocka_unit_test(kept_files_stay_in_their_directory),
        WITH_FILES(the_newest_loads_and_old_ones_go),
        WITH_FILES(equal_content_gives_equal_files),
        WITH_FILES(the_same_step_can_be_saved_again),
        WITH_FILES(later_steps_are_set_aside),
        WITH_FILES(leftovers_are_removed_and_strangers_stay),
        WITH_FILES(an_open_checkpoint_outlives_its_directory),
        WITH_FILES(another_model_is_told_apart),
        WITH_FILES(data_may_come_in_pieces),
        WITH_FILES(poisoned_state_is_not_saved),
        WITH_FILES(bad_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
