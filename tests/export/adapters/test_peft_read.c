/* Reading directories of PEFT: what becomes of their numbers and tensors, and which are refused, by name. */
#include "checkpoint/checkpoint.h"
#include "export/adapters/peft.h"
#include "io/safetensors.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define A(module) "base_model.model." module ".lora_A.weight"
#define B(module) "base_model.model." module ".lora_B.weight"

/* ---- directories ---- */

/* A checkpoint with this model file (NULL: without one), in which an import looks for nothing else. */
static const char *put_base(const char *name, const char *model)
{
    struct tr_checkpoint_file file = {"model.yaml", model, model ? strlen(model) : 0};
    struct tr_checkpoint_content content = {.facts = {.step = 1,
                                                      .microbatches = 1,
                                                      .program = "",
                                                      .model_digest = "",
                                                      .data_digest = "",
                                                      .parameter_hash = ""},
                                            .files = &file,
                                            .file_count = model ? 1 : 0};
    assert_int_equal(tr_checkpoint_save_at(scratch_in(name), &content), TR_OK);
    return scratch_in(name);
}

static void put_config(const char *config)
{
    assert_int_equal(tr_file_make_directories(NULL, scratch_in("given")), TR_OK);
    scratch_write_text("given/adapter_config.json", config);
}

static void put_tensors(const struct tr_stored_tensor *tensors, int64_t count)
{
    assert_int_equal(
        tr_safetensors_replace(NULL, scratch_in("given/adapter_model.safetensors"), tensors, count, NULL, 0),
        TR_OK);
}

/* Numbers for tensors of up to so many. */
static float numbers[64];

/* An adapter of rank 2 beside a dense layer from 3 to 4 numbers. */
static void put_dense(void)
{
    const struct tr_stored_tensor tensors[] = {
        {A("model.layers.5.mlp.down_proj"), TR_DTYPE_F32, 2, {2, 3}, numbers},
        {B("model.layers.5.mlp.down_proj"), TR_DTYPE_F32, 2, {4, 2}, numbers + 6},
    };
    put_tensors(tensors, 2);
}

static char base[SCRATCH_PATH];

static int set_up(void **state)
{
    scratch_place_make(state);
    for (int i = 0; i < 64; i++) numbers[i] = (float)i;
    snprintf(base, sizeof base, "%s",
             put_base("base", "name: there\ninput: {state: x.json, scale: auto}\nseed: 4\n"));
    return 0;
}

/* ---- what is read ---- */

static void expect_tensor(tr_safetensors *file, const char *name, int64_t rows, int64_t columns,
                          const float *values)
{
    float found[64];
    const struct tr_safetensors_entry *entry = tr_safetensors_find(file, name);
    if (!entry) fail_msg("there is no tensor %s", name);
    assert_int_equal(entry->tensor.rank, 2);
    assert_int_equal(entry->tensor.shape[0], rows);
    assert_int_equal(entry->tensor.shape[1], columns);
    assert_int_equal(tr_safetensors_read(file, entry, found, NULL), TR_OK);
    assert_memory_equal(found, values, (size_t)(rows * columns) * sizeof *values);
}

static void expect_line(const char *text, const char *line)
{
    if (!strstr(text, line)) fail_msg("\"%s\" is not in: %s", line, text);
}

static void tensors_and_numbers_become_ours(void **state)
{
    (void)state;
    static const float down_a[] = {0, 3, 1, 4, 2, 5}, down_b[] = {6, 8, 10, 12, 7, 9, 11, 13},
                       query_a[] = {20, 21}, query_b[] = {22, 24, 23, 25};
    const struct tr_stored_tensor tensors[] = {
        {A("model.layers.5.mlp.down_proj"), TR_DTYPE_F32, 2, {2, 3}, numbers},
        {B("model.layers.5.mlp.down_proj"), TR_DTYPE_F32, 2, {4, 2}, numbers + 6},
        {A("model.layers.0.self_attn.q_proj"), TR_DTYPE_F32, 2, {2, 1}, numbers + 20},
        {B("model.layers.0.self_attn.q_proj"), TR_DTYPE_F32, 2, {2, 2}, numbers + 22},
    };
    char *model, directory[SCRATCH_PATH], line[SCRATCH_PATH + 32];
    void *bytes;
    size_t size;
    tr_safetensors *file;
    put_config("{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 3, \"lora_dropout\": 0.25}");
    put_tensors(tensors, 4);
    snprintf(directory, sizeof directory, "%s//", scratch_in("given"));
    assert_int_equal(tr_peft_read(directory, base, &model, &bytes, &size), TR_OK);
    assert_int_equal(tr_safetensors_open_memory("(memory)", bytes, size, &file), TR_OK);
    assert_int_equal(tr_safetensors_count(file), 4);
    expect_tensor(file, "down5.lora_a", 3, 2, down_a);
    expect_tensor(file, "down5.lora_b", 2, 4, down_b);
    expect_tensor(file, "attention0.query_lora_a", 1, 2, query_a);
    expect_tensor(file, "attention0.query_lora_b", 2, 2, query_b);
    tr_safetensors_close(&file);
    expect_line(model, "name: given\n");
    expect_line(model, "  rank: 2\n");
    expect_line(model, "  alpha: 3\n");
    expect_line(model, "  dropout: 0.25\n");
    snprintf(line, sizeof line, "  base: %s\n", base);
    expect_line(model, line);
    expect_line(model, "seed: 4\n");
    expect_line(model, "state: \"\"\n");
    expect_line(model, "down5");
    expect_line(model, "attention0.query");
    /* Each place once, though it has two tensors. */
    assert_null(strstr(strstr(model, "down5") + 1, "down5"));
    tr_free(model);
    tr_free(bytes);
}

/* ---- adapter_config.json ---- */

static tr_status read_given(void)
{
    char *model;
    void *bytes;
    size_t size;
    tr_status status = tr_peft_read(scratch_in("given"), base, &model, &bytes, &size);
    assert_true(status == TR_OK ? model && bytes && size > 0 : !model && !bytes && size == 0);
    tr_free(model);
    tr_free(bytes);
    return status;
}

/* With these members beside the usual ones. */
static void expect(const char *members, tr_status status, const char *message)
{
    char config[1024];
    snprintf(config, sizeof config, "{\"peft_type\": \"LORA\"%s%s}", *members ? ", " : "", members);
    put_config(config);
    if (read_given() != status) fail_msg("%s: %s", config, tr_error_message());
    if (status != TR_OK && !strstr(tr_error_message(), message))
        fail_msg("%s: \"%s\" is not in \"%s\"", config, message, tr_error_message());
    if (status != TR_OK) assert_non_null(strstr(tr_error_message(), "given/adapter_"));
}

static void numbers_have_their_bounds(void **state)
{
    static const char alpha[] = "lora_alpha is no number above 0",
                      dropout[] = "lora_dropout is no number from 0 to below 1";
    (void)state;
    put_dense();
    expect("\"r\": 2, \"lora_alpha\": 3", TR_OK, "");
    expect("\"r\": 2, \"lora_alpha\": 1e6", TR_OK, "");
    expect("\"r\": 2, \"lora_alpha\": 1e-3, \"lora_dropout\": 0", TR_OK, "");
    expect("\"r\": 2, \"lora_alpha\": 3, \"lora_dropout\": 0.999", TR_OK, "");
    expect("\"lora_alpha\": 3", TR_EFORMAT, "\"r\"");
    expect("\"r\": 0, \"lora_alpha\": 3", TR_EFORMAT, "\"r\"");
    expect("\"r\": 65537, \"lora_alpha\": 3", TR_EFORMAT, "\"r\"");
    expect("\"r\": 65536, \"lora_alpha\": 3", TR_EMISMATCH, "an adapter of rank 65536 has F32[rank,in]");
    expect("\"r\": 1, \"lora_alpha\": 3", TR_EMISMATCH, "an adapter of rank 1 has F32[rank,in]");
    expect("\"r\": 2", TR_EFORMAT, alpha);
    expect("\"r\": 2, \"lora_alpha\": 0", TR_EFORMAT, alpha);
    expect("\"r\": 2, \"lora_alpha\": -1", TR_EFORMAT, alpha);
    expect("\"r\": 2, \"lora_alpha\": 1000001", TR_EFORMAT, alpha);
    expect("\"r\": 2, \"lora_alpha\": \"3\"", TR_EFORMAT, alpha);
    expect("\"r\": 2, \"lora_alpha\": 3, \"lora_dropout\": 1", TR_EFORMAT, dropout);
    expect("\"r\": 2, \"lora_alpha\": 3, \"lora_dropout\": -0.1", TR_EFORMAT, dropout);
    expect("\"r\": 2, \"lora_alpha\": 3, \"lora_dropout\": null", TR_EFORMAT, dropout);
}

static void other_kinds_of_adapters_are_refused(void **state)
{
    static const char *const others[] = {"bias",
                                         "rank_pattern",
                                         "alpha_pattern",
                                         "modules_to_save",
                                         "lora_bias",
                                         "layer_replication",
                                         "trainable_token_indices",
                                         "target_parameters",
                                         "alora_invocation_tokens",
                                         "arrow_config",
                                         "kasa_config",
                                         "velora_config",
                                         "monteclora_config",
                                         "use_dora",
                                         "use_what_nobody_knows"},
                             *const nothing[] = {"null", "false", "\"\"", "[]", "{}"},
                             *const something[] = {"true", "\"all\"", "[1]", "{\"a\": 1}", "1", "0.5"};
    (void)state;
    char members[256], named[64];
    put_dense();
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        for (size_t k = 0; k < sizeof nothing / sizeof *nothing; k++) {
            snprintf(members, sizeof members, "\"r\": 2, \"lora_alpha\": 3, \"%s\": %s", others[i],
                     nothing[k]);
            expect(members, TR_OK, "");
        }
        for (size_t k = 0; k < sizeof something / sizeof *something; k++) {
            snprintf(members, sizeof members, "\"r\": 2, \"lora_alpha\": 3, \"%s\": %s", others[i],
                     something[k]);
            snprintf(named, sizeof named, "\"%s\" is set", others[i]);
            expect(members, TR_EUNSUPPORTED, named);
        }
    }
    expect("\"r\": 2, \"lora_alpha\": 3, \"bias\": \"none\"", TR_OK, "");
    expect("\"r\": 2, \"lora_alpha\": 3, \"lora_bias\": \"none\"", TR_EUNSUPPORTED, "\"lora_bias\" is set");
    expect("\"r\": 2, \"lora_alpha\": 3, \"user\": true, \"revision\": 7", TR_OK, "");
    put_config("{\"peft_type\": \"IA3\", \"r\": 2, \"lora_alpha\": 3}");
    assert_int_equal(read_given(), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "peft_type is \"IA3\"; LORA is known"));
    put_config("{\"r\": 2, \"lora_alpha\": 3}");
    assert_int_equal(read_given(), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "peft_type"));
    put_config("{\"r\": 2,");
    assert_int_equal(read_given(), TR_EFORMAT);
}

/* ---- adapter_model.safetensors ---- */

static void expect_tensor_refused(struct tr_stored_tensor tensor, tr_status status, const char *message)
{
    put_config("{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 3}");
    put_tensors(&tensor, 1);
    if (read_given() != status || !strstr(tr_error_message(), message) ||
        !strstr(tr_error_message(), tensor.name))
        fail_msg("%s: %s", tensor.name, tr_error_message());
}

static void tensors_of_other_names_are_refused(void **state)
{
    static const char *const names[] = {
        "model.lm_head.lora_A.weight",
        "base-model.model.lm_head.lora_A.weight",
        "base_model.model.lm_head.lora_C.weight",
        "base_model.model.lm_head.lora_A.weights",
        "base_model.model.lora_A.weight",
        "base_model.model..lora_A.weight",
        "base_model.model.",
        "x",
        "base_model.model.model.norm.lora_A.weight",
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_tensor_refused((struct tr_stored_tensor){names[i], TR_DTYPE_F32, 2, {2, 3}, numbers},
                              TR_EUNSUPPORTED,
                              "is none of an adapter beside an attention or dense layer of GPT-2");
    char longer[400];
    snprintf(longer, sizeof longer, "base_model.model.lm_head%0300d.lora_A.weight", 0);
    const struct tr_stored_tensor tensor = {longer, TR_DTYPE_F32, 2, {2, 3}, numbers};
    put_tensors(&tensor, 1);
    assert_int_equal(read_given(), TR_EUNSUPPORTED);
}

static void tensors_of_other_shapes_are_refused(void **state)
{
    (void)state;
    expect_tensor_refused((struct tr_stored_tensor){A("lm_head"), TR_DTYPE_F32, 2, {3, 2}, numbers},
                          TR_EMISMATCH, "is F32[3,2]; an adapter of rank 2 has F32[rank,in]");
    expect_tensor_refused((struct tr_stored_tensor){B("lm_head"), TR_DTYPE_F32, 2, {2, 3}, numbers},
                          TR_EMISMATCH, "is F32[2,3]; an adapter of rank 2 has F32[out,rank]");
    expect_tensor_refused((struct tr_stored_tensor){A("lm_head"), TR_DTYPE_F32, 1, {2}, numbers},
                          TR_EMISMATCH, "is F32[2]; an adapter of rank 2 has");
    expect_tensor_refused((struct tr_stored_tensor){A("lm_head"), TR_DTYPE_I64, 2, {2, 3}, numbers},
                          TR_EMISMATCH, "is I64[2,3]; an adapter of rank 2 has");
    put_tensors(NULL, 0);
    assert_int_equal(read_given(), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "adapter_model.safetensors\" has no tensor"));
}

/* ---- what is missing ---- */

static void what_is_missing_is_named(void **state)
{
    (void)state;
    char *model, path[SCRATCH_PATH];
    void *bytes;
    size_t size;
    put_config("{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 3}");
    put_dense();
    assert_true(tr_peft_is_directory(scratch_in("given")));
    assert_int_equal(tr_peft_read(scratch_in("given"), scratch_in("nowhere"), &model, &bytes, &size),
                     TR_ENOTFOUND);
    assert_null(model);
    snprintf(path, sizeof path, "%s", put_base("bare", NULL));
    assert_int_equal(tr_peft_read(scratch_in("given"), path, &model, &bytes, &size), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "bare\" keeps no model.yaml; it was not written by training"));
    snprintf(path, sizeof path, "%s", put_base("adapted", "name: a\nadapters: {rank: 1}\n"));
    assert_int_equal(tr_peft_read(scratch_in("given"), path, &model, &bytes, &size), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "adapted\" has adapters itself"));
    assert_null(model);
    assert_null(bytes);
    assert_int_equal(tr_file_remove(NULL, scratch_in("given/adapter_model.safetensors")), TR_OK);
    assert_int_equal(read_given(), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "adapter_model.safetensors"));
    assert_int_equal(tr_file_remove(NULL, scratch_in("given/adapter_config.json")), TR_OK);
    assert_int_equal(read_given(), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "adapter_config.json"));
    assert_false(tr_peft_is_directory(scratch_in("given")));
    assert_false(tr_peft_is_directory(scratch_in("nowhere")));
}

static void lack_of_memory_is_told(void **state)
{
    (void)state;
    char directory[SCRATCH_PATH];
    put_config("{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 3}");
    put_dense();
    snprintf(directory, sizeof directory, "%s", scratch_in("given"));
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        char *model;
        void *bytes;
        size_t size;
        refuse_begin(at);
        tr_status status = tr_peft_read(directory, base, &model, &bytes, &size);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_free(model);
        tr_free(bytes);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_and_numbers_become_ours),
        cmocka_unit_test(numbers_have_their_bounds),
        cmocka_unit_test(other_kinds_of_adapters_are_refused),
        cmocka_unit_test(tensors_of_other_names_are_refused),
        cmocka_unit_test(tensors_of_other_shapes_are_refused),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, scratch_place_remove);
}
