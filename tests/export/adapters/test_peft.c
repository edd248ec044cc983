/* Adapters as PEFT keeps them, and merged: names, tensors and what is refused. Scores and training are judged
 * by PEFT itself in tests/interop/test_peft.py.
 */
#include "export/adapters/peft.h"
#include "support/training.h"

#include "base/alloc.h"
#include "io/safetensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* A Llama's block with the names of imported networks, on eight tokens. */
static const char llama[] =
    "name: small\nseed: 3\n"
    "data: {train: {corpus: {path: text, unit: characters, window: 6}}}\n"
    "layers:\n"
    "- embedding: {width: 8, name: tokens}\n"
    "- attention: {heads: 4, kv_heads: 2, causal: true, rotary: 100, use_bias: false, name: attention0}\n"
    "- dense: {units: 12, use_bias: false, name: gate0}\n"
    "- dense: {units: 8, use_bias: false, name: down0}\n"
    "- dense: {units: 9, use_bias: false, name: scores}\n"
    "optimizer: {rule: adam, rate: 0.05}\n"
    "train: {batch: 4, microbatches: 1, steps: 3}\n";
static const char text[] = "abacabadabacabaefgabacabadabacabahhgfedcbaabacabadabacaba";

static char base[SCRATCH_PATH], run[SCRATCH_PATH], model[SCRATCH_PATH];

static void train(const char *set, const char *from, const char *out)
{
    struct job job;
    struct outcome outcome;
    job_begin(&job, model);
    if (set) job_set(&job, set);
    job.settings.from = from;
    job.settings.out = out;
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
}

static int set_up(void **state)
{
    char file[SCRATCH_PATH];
    scratch_place_make(state);
    must_train(tr_file_write_atomic(NULL, scratch_join(file, scratch_place, "text"), text, strlen(text)));
    must_train(
        tr_file_write_atomic(NULL, scratch_join(model, scratch_place, "small.yaml"), llama, strlen(llama)));
    train(NULL, NULL, scratch_join(base, scratch_place, "base"));
    train("adapters={rank: 2, alpha: 3, on: [attention, down0]}", base,
          scratch_join(run, scratch_place, "run"));
    return 0;
}

/* ---- files ---- */

static float *read_tensor(tr_safetensors *file, const char *name, int64_t rows, int64_t columns)
{
    const struct tr_safetensors_entry *entry = tr_safetensors_find(file, name);
    if (!entry) fail_msg("there is no tensor %s", name);
    assert_int_equal(entry->tensor.rank, 2);
    assert_int_equal(entry->tensor.shape[0], rows);
    assert_int_equal(entry->tensor.shape[1], columns);
    float *values = tr_alloc((size_t)(rows * columns), sizeof *values);
    assert_non_null(values);
    must_train(tr_safetensors_read(file, entry, values, NULL));
    return values;
}

static tr_status export_as(const char *checkpoint, bool merge, const char *format, const char *path)
{
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    settings.checkpoint = checkpoint;
    settings.merge = merge;
    tr_status status = tr_exporter_create(&settings, &exporter);
    if (status == TR_OK) status = tr_exporter_write(exporter, format, path);
    tr_exporter_destroy(&exporter);
    return status;
}

static tr_safetensors *open_in(const char *directory, const char *name)
{
    char path[SCRATCH_PATH];
    tr_safetensors *file;
    must_train(tr_safetensors_open(scratch_join(path, directory, name), &file));
    return file;
}

/* Columns [column, column + width) of ours [rows][full] are the rows of theirs. */
static void expect_across(const float *theirs, const float *ours, int64_t rows, int64_t full, int64_t column,
                          int64_t width)
{
    for (int64_t i = 0; i < width; i++)
        for (int64_t k = 0; k < rows; k++) {
            const float value = ours[k * full + column + i];
            assert_memory_equal(&theirs[i * rows + k], &value, sizeof value);
        }
}

/* ---- out and in ---- */

/* Queries are 8 wide, keys and values 4 each. */
static void test_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *module;
        int64_t column, width;
    } parts[] = {{"q_proj", 0, 8}, {"k_proj", 8, 4}, {"v_proj", 12, 4}};
    char out[SCRATCH_PATH], apart[SCRATCH_PATH], name[128];
    scratch_join(out, scratch_place, "peft");
    must_train(export_as(run, false, "peft", out));
    must_train(export_as(run, false, "safetensors", scratch_join(apart, scratch_place, "apart.safetensors")));
    tr_safetensors *theirs = open_in(out, "adapter_model.safetensors"),
                   *ours = open_in(scratch_place, "apart.safetensors");
    assert_int_equal(tr_safetensors_count(theirs), 2 * (3 + 1 + 1));
    float *a = read_tensor(ours, "attention0.input_lora_a", 8, 2),
          *b = read_tensor(ours, "attention0.input_lora_b", 2, 16);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "base_model.model.model.layers.0.self_attn.%s.lora_A.weight",
                 parts[i].module);
        float *down = read_tensor(theirs, name, 2, 8);
        snprintf(name, sizeof name, "base_model.model.model.layers.0.self_attn.%s.lora_B.weight",
                 parts[i].module);
        float *up = read_tensor(theirs, name, parts[i].width, 2);
        expect_across(down, a, 8, 2, 0, 2);
        expect_across(up, b, 2, 16, parts[i].column, parts[i].width);
        tr_free(down);
        tr_free(up);
    }
    tr_free(a);
    tr_free(b);
    tr_safetensors_close(&theirs);
    tr_safetensors_close(&ours);
}

/* Beside the adapters stand the weights of the base. */
static void test_base(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    must_train(export_as(run, false, "safetensors", scratch_join(path, scratch_place, "apart.safetensors")));
    must_train(export_as(base, false, "safetensors", scratch_join(path, scratch_place, "plain.safetensors")));
    tr_safetensors *apart = open_in(scratch_place, "apart.safetensors"),
                   *plain = open_in(scratch_place, "plain.safetensors");
    float *own = read_tensor(apart, "attention0.weights", 8, 16),
          *there = read_tensor(plain, "attention0.weights", 8, 16);
    assert_memory_equal(own, there, 8 * 16 * sizeof *own);
    tr_free(own);
    tr_free(there);
    tr_safetensors_close(&apart);
    tr_safetensors_close(&plain);
}

static void test_config(void **state)
{
    (void)state;
    char out[SCRATCH_PATH], path[SCRATCH_PATH], head[SCRATCH_PATH + 64];
    struct tr_file_content content;
    must_train(export_as(run, false, "peft", scratch_join(out, scratch_place, "described")));
    must_train(tr_file_read(scratch_join(path, out, "adapter_config.json"), 1 << 16, &content));
    snprintf(head, sizeof head, "{\n  \"base_model_name_or_path\": \"%s", base);
    assert_int_equal(strncmp(content.data, head, strlen(head)), 0);
    assert_string_equal(
        strchr(content.data + strlen(head), ',') + 1,
        "\n  \"bias\": \"none\",\n  \"fan_in_fan_out\": false,\n  \"inference_mode\": true,\n"
        "  \"lora_alpha\": 3,\n  \"lora_dropout\": 0,\n  \"peft_type\": \"LORA\",\n  \"r\": 2,\n"
        "  \"target_modules\": [\"model.layers.0.self_attn.q_proj\", "
        "\"model.layers.0.self_attn.k_proj\", \"model.layers.0.self_attn.v_proj\", "
        "\"model.layers.0.self_attn.o_proj\", \"model.layers.0.mlp.down_proj\"],\n"
        "  \"task_type\": \"CAUSAL_LM\"\n}\n");
    tr_file_content_free(&content);
}

/* Merged weights are those of the base and the product of the adapter, in double; an import of what was
 * written gives the same. */
static void test_merged_and_back(void **state)
{
    (void)state;
    char out[SCRATCH_PATH], back[SCRATCH_PATH], path[SCRATCH_PATH];
    must_train(export_as(run, false, "safetensors", scratch_join(path, scratch_place, "apart.safetensors")));
    must_train(export_as(run, true, "safetensors", scratch_join(path, scratch_place, "merged.safetensors")));
    must_train(export_as(run, false, "peft", scratch_join(out, scratch_place, "peft")));
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    settings.file = out;
    settings.base = base;
    settings.out = scratch_join(back, scratch_place, "back");
    must_train(tr_import(&settings, NULL));
    must_train(export_as(back, true, "safetensors", scratch_join(path, scratch_place, "back.safetensors")));
    tr_safetensors *apart = open_in(scratch_place, "apart.safetensors"),
                   *merged = open_in(scratch_place, "merged.safetensors"),
                   *again = open_in(scratch_place, "back.safetensors");
    float *w = read_tensor(apart, "attention0.weights", 8, 16),
          *a = read_tensor(apart, "attention0.input_lora_a", 8, 2),
          *b = read_tensor(apart, "attention0.input_lora_b", 2, 16),
          *sum = read_tensor(merged, "attention0.weights", 8, 16),
          *other = read_tensor(again, "attention0.weights", 8, 16);
    double moved = 0;
    for (int i = 0; i < 8; i++)
        for (int o = 0; o < 16; o++) {
            double product = 0;
            for (int r = 0; r < 2; r++) product += (double)a[2 * i + r] * 1.5 * (double)b[16 * r + o];
            moved = fmax(moved, fabs(product));
            assert_true(fabs((double)w[16 * i + o] + product - (double)sum[16 * i + o]) < 1e-6);
            assert_true(fabsf(sum[16 * i + o] - other[16 * i + o]) < 1e-6f);
        }
    assert_true(moved > 1e-3);
    tr_free(w);
    tr_free(a);
    tr_free(b);
    tr_free(sum);
    tr_free(other);
    tr_safetensors_close(&apart);
    tr_safetensors_close(&merged);
    tr_safetensors_close(&again);
}

/* ---- names ---- */

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *layer, *part;
    } known[] = {
        {"transformer.h.11.attn.c_attn", "attention11", "input"},
        {"transformer.h.0.attn.c_proj", "attention0", "output"},
        {"transformer.h.3.mlp.c_proj", "down3", NULL},
        {"model.layers.7.self_attn.k_proj", "attention7", "key"},
        {"model.layers.0.mlp.gate_proj", "gate0", NULL},
        {"lm_head", "scores", NULL},
    };
    static const char *const unknown[] = {"transformer.h.01.attn.c_attn",
                                          "transformer.h..attn.c_attn",
                                          "lm_head2",
                                          "model.layers.1234567.mlp.up_proj",
                                          "transformer.wte",
                                          ""};
    struct peft_module module;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_true(peft_find_module(known[i].name, &module));
        assert_string_equal(module.layer, known[i].layer);
        if (known[i].part) assert_string_equal(module.part, known[i].part);
        if (!known[i].part) assert_null(module.part);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_false(peft_find_module(unknown[i], &module));
}

/* ---- refused ---- */

static void test_refused(void **state)
{
    (void)state;
    char path[SCRATCH_PATH], other[SCRATCH_PATH];
    scratch_join(path, scratch_place, "no");
    assert_int_equal(export_as(base, false, "peft", path), TR_EUNSUPPORTED);
    assert_int_equal(export_as(base, true, "safetensors", path), TR_EINVAL);
    assert_int_equal(export_as(run, false, "onnx", path), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "merge"));
    train("adapters={rank: 2, on: [gate0], train: [scores]}", base,
          scratch_join(other, scratch_place, "head"));
    assert_int_equal(export_as(other, false, "peft", path), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "scores"));
    assert_false(tr_file_exists(path));
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    settings.file = scratch_join(other, scratch_place, "peft");
    settings.out = path;
    assert_int_equal(tr_import(&settings, NULL), TR_EINVAL);
    settings.base = run; /* which has adapters itself */
    assert_int_equal(tr_import(&settings, NULL), TR_EUNSUPPORTED);
    assert_false(tr_file_exists(path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors),         cmocka_unit_test(test_base),  cmocka_unit_test(test_config),
        cmocka_unit_test(test_merged_and_back), cmocka_unit_test(test_names), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, set_up, scratch_place_remove);
}
