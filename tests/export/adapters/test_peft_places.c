/* Where adapters of PEFT may stand: modules of a GPT-2, layers that are none of an imported network, two
 * adapters that would be one module, and as many places as a model file holds. */
#include "checkpoint/checkpoint.h"
#include "export/adapters/peft.h"
#include "io/safetensors.h"
#include "support/training.h"

#include "base/alloc.h"
#include "base/options/option.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* ---- out ---- */

#define BEGIN                                                                                                \
    "name: small\nseed: 3\n"                                                                                 \
    "data: {train: {corpus: {path: text, unit: characters, window: 6}}}\n"                                   \
    "layers:\n- embedding: {width: 8, name: tokens}\n"
#define END                                                                                                  \
    "- dense: {units: 9, name: scores}\n"                                                                    \
    "optimizer: {rule: adam, rate: 0.05}\ntrain: {batch: 4, microbatches: 1, steps: 1}\n"
#define ATTENTION(name) "- attention: {heads: 2, causal: true, rotary: 100, name: " name "}\n"

/* Trains such a network, then adapters beside it, and exports these to `path`. */
static tr_status export_adapters(const char *text, const char *adapters, const char *path)
{
    static int number;
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    struct outcome outcome;
    tr_exporter *exporter;
    char model[SCRATCH_PATH], run[2][SCRATCH_PATH], name[24];
    scratch_write_text("small.yaml", text);
    scratch_join(model, scratch_place, "small.yaml");
    for (int i = 0; i < 2; i++) {
        struct job job;
        snprintf(name, sizeof name, "run%d", number++);
        scratch_join(run[i], scratch_place, name);
        job_begin(&job, model);
        if (i) job_set(&job, adapters);
        job.settings.from = i ? run[0] : NULL;
        job.settings.out = run[i];
        job_outcome(&job, &outcome);
        if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
    }
    settings.checkpoint = run[1];
    must_train(tr_exporter_create(&settings, &exporter));
    const tr_status status = tr_exporter_write(exporter, "peft", path);
    tr_exporter_destroy(&exporter);
    return status;
}

static void expect_shape(tr_safetensors *file, const char *name, int64_t rows, int64_t columns)
{
    const struct tr_safetensors_entry *entry = tr_safetensors_find(file, name);
    if (!entry) fail_msg("there is no tensor %s", name);
    assert_int_equal(entry->tensor.shape[0], rows);
    assert_int_equal(entry->tensor.shape[1], columns);
}

/* Its projections to queries, keys and values are one module. */
static void modules_of_gpt2(void **state)
{
    static const char network[] =
        BEGIN "- position: {length: 6, name: places}\n- layer_norm\n"
              "- attention: {heads: 2, causal: true, name: attention0}\n- dense: {units: 12, name: up0}\n"
              "- dense: {units: 8, name: down0}\n" END;
    struct tr_file_content content;
    tr_safetensors *file;
    char path[SCRATCH_PATH], inside[SCRATCH_PATH];
    (void)state;
    scratch_join(path, scratch_place, "gpt2");
    must_train(export_adapters(
        network, "adapters={rank: 2, alpha: 5, dropout: 0.25, on: [attention0, up0, down0, scores]}", path));
    must_train(tr_file_read(scratch_join(inside, path, "adapter_config.json"), 1 << 16, &content));
    assert_non_null(strstr(content.data, "\"fan_in_fan_out\": true"));
    assert_non_null(strstr(content.data, "\"lora_alpha\": 5"));
    assert_non_null(strstr(content.data, "\"lora_dropout\": 0.25"));
    assert_non_null(
        strstr(content.data,
               "\"target_modules\": [\"transformer.h.0.attn.c_attn\", \"transformer.h.0.attn.c_proj\", "
               "\"transformer.h.0.mlp.c_fc\", \"transformer.h.0.mlp.c_proj\", \"lm_head\"],\n"));
    tr_file_content_free(&content);
    must_train(tr_safetensors_open(scratch_join(inside, path, "adapter_model.safetensors"), &file));
    assert_int_equal(tr_safetensors_count(file), 10);
    assert_string_equal(tr_safetensors_metadata(file, "format"), "pt");
    expect_shape(file, "base_model.model.transformer.h.0.attn.c_attn.lora_A.weight", 2, 8);
    expect_shape(file, "base_model.model.transformer.h.0.attn.c_attn.lora_B.weight", 24, 2);
    expect_shape(file, "base_model.model.transformer.h.0.mlp.c_fc.lora_B.weight", 12, 2);
    expect_shape(file, "base_model.model.transformer.h.0.mlp.c_proj.lora_A.weight", 2, 12);
    expect_shape(file, "base_model.model.lm_head.lora_B.weight", 9, 2);
    tr_safetensors_close(&file);
}

static void other_networks_are_refused(void **state)
{
    static const char unknown[] = "its layers are not named as those of an imported GPT-2, Llama";
    static const struct {
        const char *text, *adapters, *message;
    } cases[] = {
        {BEGIN ATTENTION("sees") "- dense: {units: 8, name: gate0}\n" END, "adapters={rank: 2, on: [gate0]}",
         unknown},
        {BEGIN ATTENTION("attention0") "- dense: {units: 8, name: opens}\n" END,
         "adapters={rank: 2, on: [attention0]}", unknown},
        {BEGIN "- position: {length: 6, name: places}\n- attention: {heads: 2, causal: true, name: "
               "attention0}\n- dense: {units: 8, name: gate0}\n" END,
         "adapters={rank: 2, on: [attention0]}", unknown},
        {BEGIN ATTENTION("attention0") ATTENTION("other") "- dense: {units: 8, name: gate0}\n" END,
         "adapters={rank: 2, on: [attention0, other]}",
         "layer \"other\": input: adapters there have no module in transformers' network; export with "
         "`merge`"},
        {BEGIN ATTENTION(
             "attention0") "- dense: {units: 8, name: gate0}\n- dense: {units: 8, name: middle}\n" END,
         "adapters={rank: 2, on: [middle]}", "layer \"middle\": adapters there have no module"},
        {BEGIN ATTENTION("attention0") "- dense: {units: 8, name: gate0}\n" END,
         "adapters={rank: 2, on: [attention0.query, attention0.input]}",
         "layer \"attention0\" has two adapters that are one module, model.layers.0.self_attn.q_proj, in"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tr_status status = export_adapters(cases[i].text, cases[i].adapters, scratch_in("refused"));
        if (status != TR_EUNSUPPORTED || !strstr(tr_error_message(), cases[i].message))
            fail_msg("case %d: %s, \"%s\"", (int)i, tr_status_name(status), tr_error_message());
        assert_false(tr_file_exists(scratch_in("refused")));
    }
}

/* ---- in ---- */

#define MOST TR_OPTION_STRINGS_MAX

static void places_have_a_limit(void **state)
{
    static char names[MOST + 1][80];
    static struct tr_stored_tensor tensors[MOST + 1];
    static float value[] = {1};
    const struct tr_checkpoint_file file = {"model.yaml", "name: there\n", 12};
    const struct tr_checkpoint_content content = {
        .facts = {.step = 1, .microbatches = 1, .model_digest = "", .data_digest = "", .parameter_hash = ""},
        .files = &file,
        .file_count = 1};
    char base[SCRATCH_PATH], given[SCRATCH_PATH], *model;
    void *bytes;
    size_t size;
    (void)state;
    for (int i = 0; i <= MOST; i++) {
        snprintf(names[i], sizeof names[i], "base_model.model.model.layers.%d.mlp.up_proj.lora_A.weight", i);
        tensors[i] = (struct tr_stored_tensor){names[i], TR_DTYPE_F32, 2, {1, 1}, value};
    }
    must_train(tr_checkpoint_save_at(scratch_join(base, scratch_place, "base"), &content));
    must_train(tr_file_make_directories(NULL, scratch_join(given, scratch_place, "given")));
    scratch_write_text("given/adapter_config.json", "{\"peft_type\": \"LORA\", \"r\": 1, \"lora_alpha\": 1}");
    for (int more = 0; more < 2; more++) {
        const char *weights = scratch_in("given/adapter_model.safetensors");
        must_train(tr_safetensors_replace(NULL, weights, tensors, MOST + more, NULL, 0));
        const tr_status status = tr_peft_read(given, base, &model, &bytes, &size);
        assert_int_equal(status, more ? TR_EUNSUPPORTED : TR_OK);
        if (!more) {
            assert_non_null(strstr(model, "up4095"));
            tr_free(model);
            tr_free(bytes);
            continue;
        }
        assert_non_null(
            strstr(tr_error_message(), "adapter_model.safetensors\" has adapters in more than 4096 places"));
        assert_null(model);
        assert_null(bytes);
    }
}

static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_write_text("text", "abacabadabacabaefgabacabadabacabahhgfedcbaabacabadabacaba");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_of_gpt2),
        cmocka_unit_test(other_networks_are_refused),
        cmocka_unit_test(places_have_a_limit),
    };
    return cmocka_run_group_tests_name("export.peft_places", tests, set_up, scratch_place_remove);
}
