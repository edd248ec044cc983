/* Networks as directories of Hugging Face: what came in goes out again, number for number; other directories
 * and failures. */
#include "base/alloc.h"
#include "base/numbers/half.h"
#include "data/bpe/bpe.h"
#include "export/hub/match.h"
#include "export/hub/hub_given.h"
#include "io/safetensors.h"
#include "refuse.h"
#include "scratch.h"
#include "support/training.h"

#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* "NAME/FILE" in the scratch directory. */
static const char *in(const char *name, const char *file)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", name, file);
    return scratch_in(path);
}

static void import(const struct given_network *network, const char *name, char run[SCRATCH_PATH])
{
    char directory[SCRATCH_PATH];
    snprintf(directory, sizeof directory, "%s", scratch_in(name));
    snprintf(run, SCRATCH_PATH, "%s", in("runs", name));
    must_train(tr_file_make_directories(NULL, scratch_in("runs")));
    given_import(network, directory, run);
}

static void expect_numbers(const struct given_network *network, const char *path, bool half)
{
    tr_safetensors *file;
    int t = 0;
    must_train(tr_safetensors_open(path, &file));
    assert_string_equal(tr_safetensors_metadata(file, "format"), "pt");
    for (const struct given_tensor *tensor = network->tensor; tensor->theirs; tensor++, t++) {
        const struct tr_safetensors_entry *entry = tr_safetensors_find(file, tensor->theirs);
        static char bytes[GIVEN_VOCABULARY * 32];
        if (!entry) fail_msg("there is no %s", tensor->theirs);
        assert_int_equal(entry->tensor.rank, tensor->rank);
        assert_int_equal(entry->tensor.dtype, half ? TR_DTYPE_F16 : TR_DTYPE_F32);
        assert_int_equal(entry->tensor.shape[0], tensor->rows);
        if (tensor->rank == 2) assert_int_equal(entry->tensor.shape[1], tensor->columns);
        assert_true(entry->bytes <= sizeof bytes);
        must_train(tr_safetensors_read(file, entry, bytes, NULL));
        for (int64_t k = 0; k < given_floats(tensor); k++) {
            float value;
            uint16_t narrow;
            memcpy(&value, bytes + (half ? 0 : 4 * k), sizeof value);
            memcpy(&narrow, bytes + 2 * k, sizeof narrow);
            if (half) value = tr_half_to_float(narrow);
            if (value != given_number(t, k)) fail_msg("%s: %g at %d", tensor->theirs, (double)value, (int)k);
        }
    }
    assert_int_equal(tr_safetensors_count(file), t);
    tr_safetensors_close(&file);
}

static void expect_part(const char *path, const char *part)
{
    struct tr_file_content content;
    must_train(tr_file_read(path, 1 << 20, &content));
    if (!strstr(content.data, part)) fail_msg("\"%s\" is not in %s", part, content.data);
    tr_file_content_free(&content);
}

static void expect_same_config(const char *given, const char *written)
{
    struct tr_hub_config a, b;
    must_train(tr_hub_read_config(scratch_in(given), &a));
    must_train(tr_hub_read_config(scratch_in(written), &b));
    assert_true(a.kind == b.kind && a.width == b.width && a.inner == b.inner && a.layers == b.layers);
    assert_true(a.heads == b.heads && a.kv_heads == b.kv_heads && a.head_size == b.head_size);
    assert_true(a.context == b.context && a.vocabulary == b.vocabulary && a.window == b.window);
    assert_true(a.epsilon == b.epsilon && a.rotary == b.rotary && a.factor == b.factor);
    assert_true(a.original == b.original && a.low == b.low && a.high == b.high);
    assert_true(a.tied == b.tied && a.bias == b.bias && a.exact_gelu == b.exact_gelu);
}

static void expect_same_file(const char *a, const char *b)
{
    struct tr_file_content one, other;
    must_train(tr_file_read(a, 1 << 20, &one));
    must_train(tr_file_read(b, 1 << 20, &other));
    assert_int_equal(one.size, other.size);
    assert_memory_equal(one.data, other.data, one.size);
    tr_file_content_free(&one);
    tr_file_content_free(&other);
}

static void what_came_in_goes_out(void **state)
{
    static const struct {
        const struct given_network *network;
        const char *name, *out, *class, *begin;
    } cases[] = {
        {&given_llama3, "llama3", "llama3-out", "\"LlamaForCausalLM\"", "\"bos_token_id\": null"},
        {&given_llama_linear, "linear", "linear-out", "\"LlamaForCausalLM\"", "\"bos_token_id\": null"},
        {&given_mistral, "mistral", "mistral-out", "\"MistralForCausalLM\"", "\"bos_token_id\": null"},
        {&given_qwen2, "qwen2", "qwen2-out", "\"Qwen2ForCausalLM\"", "\"bos_token_id\": null"},
        {&given_gpt2, "gpt2", "gpt2-out", "\"GPT2LMHeadModel\"", "\"bos_token_id\": 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *out = cases[i].out;
        char run[SCRATCH_PATH];
        import(cases[i].network, cases[i].name, run);
        must_train(given_export(run, "hub", false, scratch_in(out)));
        expect_numbers(cases[i].network, in(out, "model.safetensors"), false);
        expect_same_config(cases[i].name, out);
        expect_part(in(out, "config.json"), cases[i].class);
        expect_part(in(out, "config.json"), cases[i].begin);
        expect_part(in(out, "config.json"), "\"eos_token_id\": 0");
        expect_part(in(out, "config.json"), "\"torch_dtype\": \"float32\"");
        expect_part(in(out, "tokenizer_config.json"), "\"tokenizer_class\": \"PreTrainedTokenizerFast\"");
        expect_part(in(out, "tokenizer_config.json"), "\"clean_up_tokenization_spaces\": false");
        expect_part(in(out, "tokenizer_config.json"), "\"model_max_length\": 16");
        expect_part(in(out, "tokenizer_config.json"), "\"eos_token\": \"<|endoftext|>\"");
        must_train(given_export(run, "hub", true, scratch_in(out))); /* takes the place of the first */
        expect_numbers(cases[i].network, in(out, "model.safetensors"), true);
        expect_part(in(out, "config.json"), "\"torch_dtype\": \"float16\"");
        /* In again, it is the same run. */
        struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
        char again[SCRATCH_PATH];
        snprintf(again, sizeof again, "%s", in("runs-again", out));
        settings.file = scratch_in(out);
        settings.out = again;
        must_train(tr_import(&settings, NULL));
        must_train(given_export(again, "hub", false, in("runs", "twice")));
        expect_numbers(cases[i].network, in("runs", "twice/model.safetensors"), false);
        expect_same_file(in(out, "tokenizer.json"), in("runs", "twice/tokenizer.json"));
    }
}

/* The tokenizer cuts as the one that came in. */
static void the_tokenizer_goes_along(void **state)
{
    static const char text[] = "abcab abcd <mark>, it's 12345 words<|endoftext|>";
    (void)state;
    char run[SCRATCH_PATH];
    int32_t *tokens[2];
    int64_t count[2];
    import(&given_qwen2, "talks", run);
    must_train(given_export(run, "hub", false, scratch_in("talks-out")));
    for (int i = 0; i < 2; i++) {
        tr_bpe *bpe;
        must_train(tr_bpe_open(scratch_in(i ? "talks-out" : "talks"), &bpe));
        assert_int_equal(tr_bpe_size(bpe), GIVEN_TOKENS);
        assert_int_equal(tr_bpe_pattern_of(bpe), TR_BPE_QWEN2);
        assert_true(tr_bpe_is_special(bpe, 0));
        assert_false(tr_bpe_is_special(bpe, 1));
        must_train(tr_bpe_encode(bpe, text, sizeof text - 1, &tokens[i], &count[i]));
        tr_bpe_destroy(&bpe);
    }
    assert_int_equal(count[0], count[1]);
    assert_memory_equal(tokens[0], tokens[1], (size_t)count[0] * sizeof *tokens[0]);
    assert_int_equal(tokens[0][count[0] - 1], 0);
    tr_free(tokens[0]);
    tr_free(tokens[1]);
}

/* ---- directories and failures ---- */

static void a_directory_of_other_files_is_refused(void **state)
{
    (void)state;
    char run[SCRATCH_PATH];
    import(&given_gpt2, "beside", run);
    must_train(tr_file_make_directories(NULL, scratch_in("others")));
    scratch_write_text("others/model-00001-of-00002.safetensors", "");
    assert_int_equal(given_export(run, "hub", false, scratch_in("others")), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "others\" has a \"model-00001-of-00002.safetensors\""));
    assert_false(tr_file_exists(scratch_in("others/config.json")));
    assert_false(tr_file_exists(scratch_in("others/model.safetensors")));
    must_train(tr_file_remove(NULL, scratch_in("others/model-00001-of-00002.safetensors")));
    must_train(given_export(run, "hub", false, scratch_in("others")));
    scratch_write_text("a file", "");
    assert_int_not_equal(given_export(run, "hub", false, scratch_in("a file")), TR_OK);
}

/* A number that 16 bits do not hold ends the export, and what was there is no such directory any more. */
static void a_number_beyond_16_bits_is_refused(void **state)
{
    (void)state;
    char run[SCRATCH_PATH];
    struct tr_file_content content;
    const float most = 65504, beyond = 65520;
    import(&given_gpt2, "large", run);
    must_train(tr_file_read(scratch_in("large/model.safetensors"), 1 << 20, &content));
    for (int i = 0; i < 2; i++) {
        /* The last number of the last tensor. */
        memcpy(content.data + content.size - 4, i ? &beyond : &most, 4);
        scratch_write("large/model.safetensors", content.data, content.size);
        struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
        settings.file = scratch_in("large");
        settings.out = run;
        settings.overwrite = true;
        must_train(tr_import(&settings, NULL));
        assert_int_equal(given_export(run, "hub", true, scratch_in("large-out")),
                         i ? TR_EUNSUPPORTED : TR_OK);
        if (i)
            assert_non_null(
                strstr(tr_error_message(), "has 65520, which is beyond what 16 bits hold (65504)"));
        assert_true(tr_file_exists(scratch_in("large-out/config.json")) == (i == 0));
    }
    assert_int_equal(given_export(run, "gguf", true, scratch_in("large.gguf")), TR_OK); /* a vector */
    must_train(given_export(run, "hub", false, scratch_in("large-out")));
    tr_file_content_free(&content);
}

static void lack_of_memory_leaves_no_directory(void **state)
{
    (void)state;
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    char run[SCRATCH_PATH], path[SCRATCH_PATH], config[SCRATCH_PATH + 16];
    import(&given_llama3, "short", run);
    settings.checkpoint = run;
    must_train(tr_exporter_create(&settings, &exporter));
    snprintf(path, sizeof path, "%s", scratch_in("short-out"));
    snprintf(config, sizeof config, "%s/config.json", path);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = tr_exporter_write(exporter, "hub", path);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
        assert_true(tr_file_exists(config) == (done != 0));
    }
    expect_numbers(&given_llama3, in("short-out", "model.safetensors"), false);
    tr_exporter_destroy(&exporter);
}

/* GPT-2 has a bias wherever it has weights. */
static void biases_that_are_not_there_are_zeros(void **state)
{
    struct tr_layer theirs[2] = {{.name = "first"}, {.name = "second"}};
    struct tr_layer ours[2] = {{.parameter_count = 2, .parameter = {0, 1}},
                               {.parameter_count = 1, .parameter = {2}}};
    struct tr_parameter parameters[3] = {{.offset = 0}, {.offset = 4}, {.offset = 8}};
    struct tr_model like = {.layers = theirs}, model = {.layers = ours, .parameters = parameters};
    const struct tr_hub_match match = {.model = &model, .like = &like, .layer = (int[]){0, 1}};
    const float arena[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    struct tr_hub_piece piece = {.part = "bias", .rank = 1, .rows = 3, .columns = 1, .total = 3};
    float values[4] = {-1, -1, -1, -1};
    (void)state;
    snprintf(piece.layer, sizeof piece.layer, "second");
    tr_hub_gather(&match, &piece, false, arena, values);
    assert_memory_equal(values, ((float[]){0, 0, 0, -1}), sizeof values);
    snprintf(piece.layer, sizeof piece.layer, "first");
    tr_hub_gather(&match, &piece, false, arena, values);
    assert_memory_equal(values, ((float[]){5, 6, 7, -1}), sizeof values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_came_in_goes_out),
        cmocka_unit_test(the_tokenizer_goes_along),
        cmocka_unit_test(a_directory_of_other_files_is_refused),
        cmocka_unit_test(a_number_beyond_16_bits_is_refused),
        cmocka_unit_test(lack_of_memory_leaves_no_directory),
        cmocka_unit_test(biases_that_are_not_there_are_zeros),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
