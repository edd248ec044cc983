/* GGUF: entries, tokens and tensors of small networks, as a reader written from ggml's specification finds
 * them. Whether llama.cpp's own reader agrees, tests/interop/test_hub.py shows. */
#include "base/alloc.h"
#include "base/numbers/half.h"
#include "export/hub/gguf_file.h"
#include "export/hub/hub_given.h"
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

/* ---- networks ---- */

/* Its run, from a directory of that name; the result is as good as the next calls of scratch_in(). */
static const char *run_of(const struct given_network *network, const char *name)
{
    char directory[SCRATCH_PATH], run[64];
    snprintf(directory, sizeof directory, "%s", scratch_in(name));
    snprintf(run, sizeof run, "%s-run", name);
    given_import(network, directory, scratch_in(run));
    return scratch_in(run);
}

/* The number of a tensor of the network at a place of the file's. */
static float expected_at(const struct given_tensor *tensor, int t, int64_t row, int64_t column, bool turns)
{
    if (turns && tensor->heads > 0) { /* neighbours of the file are half a head apart */
        const int64_t head = tensor->rows / tensor->heads, in = row % head;
        row = row - in + in / 2 + in % 2 * (head / 2);
    }
    return given_number(t, tensor->across ? column * tensor->columns + row : row * tensor->columns + column);
}

static void expect_tensors(const struct gguf_file *file, const struct given_network *network, bool turns,
                           bool half)
{
    int t = 0;
    for (const struct given_tensor *tensor = network->tensor; tensor->theirs; tensor++, t++) {
        uint64_t i = 0;
        while (i < file->tensors && strcmp(file->name[i], tensor->gguf) != 0) i++;
        if (i == file->tensors) fail_msg("there is no %s", tensor->gguf);
        const int64_t rows = tensor->across ? tensor->columns : tensor->rows,
                      columns = tensor->across ? tensor->rows : tensor->columns;
        const char *data = file->content.data + file->data + file->offset[i];
        for (int64_t k = 0; k < rows * columns; k++) {
            float value;
            uint16_t narrow;
            if (half && tensor->rank == 2) {
                memcpy(&narrow, data + 2 * k, sizeof narrow);
                value = tr_half_to_float(narrow);
            } else {
                memcpy(&value, data + 4 * k, sizeof value);
            }
            const float expected = expected_at(tensor, t, k / columns, k % columns, turns);
            if (value != expected)
                fail_msg("%s: %g instead of %g at %d", tensor->gguf, (double)value, (double)expected, (int)k);
        }
    }
}

static void expect_file(const struct given_network *network, const char *name, bool turns, const char *told)
{
    struct gguf_file file;
    char run[SCRATCH_PATH];
    snprintf(run, sizeof run, "%s", run_of(network, name));
    must_train(given_export(run, "gguf", false, scratch_in("file.gguf")));
    gguf_read(scratch_in("file.gguf"), &file);
    assert_string_equal(file.told.bytes, told);
    expect_tensors(&file, network, turns, false);
    gguf_release(&file);
    must_train(given_export(run, "gguf", true, scratch_in("half.gguf")));
    gguf_read(scratch_in("half.gguf"), &file);
    assert_non_null(strstr(file.told.bytes, "general.file_type 1\n"));
    assert_non_null(strstr(file.told.bytes, "token_embd.weight [8,264] f16\n"));
    assert_non_null(strstr(file.told.bytes, "blk.0.attn_norm.weight [8] f32\n"));
    expect_tensors(&file, network, turns, true);
    gguf_release(&file);
}

#define HEAD(architecture, name, context)                                                                    \
    "general.architecture \"" architecture "\"\ngeneral.name \"" name                                        \
    "\"\ngeneral.alignment 32\ngeneral.file_type 0\n" architecture ".vocab_size 264\n" architecture          \
    ".context_length " context "\n" architecture ".embedding_length 8\n" architecture                        \
    ".block_count 1\n" architecture ".feed_forward_length 12\n" architecture ".attention.head_count 2\n"
#define LLAMA(architecture, epsilon, base)                                                                   \
    architecture ".attention.head_count_kv 1\n" architecture ".attention.layer_norm_rms_epsilon " epsilon    \
                 "\n" architecture ".attention.key_length 6\n" architecture                                  \
                 ".attention.value_length 6\n" architecture ".rope.dimension_count 6\n" architecture         \
                 ".rope.freq_base " base "\n"
#define TOKENIZER(pattern)                                                                                   \
    "tokenizer.ggml.model \"gpt2\"\ntokenizer.ggml.pre \"" pattern "\"\n"                                    \
    "tokenizer.ggml.tokens 264 texts\ntokenizer.ggml.token_type 264 numbers\n"                               \
    "tokenizer.ggml.merges 3 texts\ntokenizer.ggml.add_bos_token false\n"
#define LLAMA_TENSORS                                                                                        \
    "token_embd.weight [8,264] f32\nblk.0.attn_norm.weight [8] f32\nblk.0.attn_q.weight [8,12] f32\n"        \
    "blk.0.attn_k.weight [8,6] f32\nblk.0.attn_v.weight [8,6] f32\n"

#define BIASES "blk.0.attn_q.bias [12] f32\nblk.0.attn_k.bias [6] f32\nblk.0.attn_v.bias [6] f32\n"
#define LLAMA_REST                                                                                           \
    "blk.0.attn_output.weight [12,8] f32\nblk.0.ffn_norm.weight [8] f32\nblk.0.ffn_gate.weight [8,12] f32\n" \
    "blk.0.ffn_up.weight [8,12] f32\nblk.0.ffn_down.weight [12,8] f32\n"

static void networks_are_as_their_programs_know_them(void **state)
{
    (void)state;
    expect_file(
        &given_llama3, "llama3", true,
        HEAD("llama", "llama3", "16") LLAMA("llama", "1e-06f", "500f") TOKENIZER(
            "dbrx") "tokenizer.ggml.eos_token_id 0\n" LLAMA_TENSORS LLAMA_REST
                    "output_norm.weight [8] f32\noutput.weight [8,264] f32\nrope_freqs.weight [3] f32\n");
    expect_file(&given_llama_linear, "linear", true,
                HEAD("llama", "linear", "16")
                    LLAMA("llama", "1e-06f",
                          "10000f") "llama.rope.scaling.type \"linear\"\nllama.rope.scaling.factor "
                                    "2.5f\n" TOKENIZER(
                                        "dbrx") "tokenizer.ggml.eos_token_id 0\n" LLAMA_TENSORS LLAMA_REST
                                                "output_norm.weight [8] f32\n");
    expect_file(&given_mistral, "mistral", true,
                HEAD("llama", "mistral", "7") LLAMA("llama", "1e-06f", "10000f")
                    TOKENIZER("gpt-2") "tokenizer.ggml.eos_token_id 0\n" LLAMA_TENSORS LLAMA_REST
                                       "output_norm.weight [8] f32\noutput.weight [8,264] f32\n");
    expect_file(&given_qwen2, "qwen2", false,
                HEAD("qwen2", "qwen2", "16") LLAMA("qwen2", "1e-05f", "10000f")
                    TOKENIZER("qwen2") "tokenizer.ggml.eos_token_id 0\n" LLAMA_TENSORS LLAMA_REST BIASES
                                       "output_norm.weight [8] f32\n");
    expect_file(&given_gpt2, "gpt2", false,
                HEAD("gpt2", "gpt2", "16") "gpt2.attention.layer_norm_epsilon 1e-05f\n" TOKENIZER(
                    "gpt-2") "tokenizer.ggml.bos_token_id 0\ntokenizer.ggml.eos_token_id 0\n"
                             "token_embd.weight [8,264] f32\nposition_embd.weight [8,16] f32\n"
                             "blk.0.attn_norm.weight [8] f32\nblk.0.attn_norm.bias [8] f32\n"
                             "blk.0.ffn_norm.weight [8] f32\nblk.0.ffn_norm.bias [8] f32\n"
                             "blk.0.attn_qkv.weight [8,24] f32\nblk.0.attn_qkv.bias [24] f32\n"
                             "blk.0.attn_output.weight [8,8] f32\nblk.0.attn_output.bias [8] f32\n"
                             "blk.0.ffn_up.weight [8,12] f32\nblk.0.ffn_up.bias [12] f32\n"
                             "blk.0.ffn_down.weight [12,8] f32\nblk.0.ffn_down.bias [8] f32\n"
                             "output_norm.weight [8] f32\noutput_norm.bias [8] f32\n");
}

/* ---- more of one network ---- */

/* Waves of 2 pi 500^(i/3) tokens of 64: the first turns more than 4 times, the last less than once. */
static void divisors_of_angles_are_those_of_llama3(void **state)
{
    (void)state;
    struct gguf_file file;
    must_train(given_export(run_of(&given_llama3, "turns"), "gguf", true, scratch_in("turns.gguf")));
    gguf_read(scratch_in("turns.gguf"), &file);
    assert_string_equal(file.name[file.tensors - 1], "rope_freqs.weight");
    const double wave = 2 * acos(-1) * cbrt(500), smooth = (64 / wave - 1) / (4 - 1);
    const double expected[] = {1, 1 / ((1 - smooth) / 4 + smooth), 4};
    for (int i = 0; i < 3; i++) {
        float value;
        memcpy(&value, file.content.data + file.data + file.offset[file.tensors - 1] + 4 * i, sizeof value);
        assert_true(fabs((double)value - expected[i]) < 1e-6);
    }
    gguf_release(&file);
}

static void expect_text(struct gguf_file *file, const char *text)
{
    char found[96];
    gguf_take_text(file, found);
    assert_string_equal(found, text);
}

/* Two added tokens, bytes in the order of the letters for them, merges, and three that only the network has.
 */
static void tokens_are_those_of_the_tokenizer(void **state)
{
    (void)state;
    struct gguf_file file;
    must_train(given_export(run_of(&given_gpt2, "tokens"), "gguf", false, scratch_in("tokens.gguf")));
    gguf_read(scratch_in("tokens.gguf"), &file);
    assert_int_equal(file.token_count, GIVEN_VOCABULARY);
    assert_int_equal(file.type_count, GIVEN_VOCABULARY);
    assert_int_equal(file.merge_count, 3);
    file.at = file.tokens;
    expect_text(&file, "<|endoftext|>");
    expect_text(&file, "<mark>");
    for (char letter = '!'; letter <= '~'; letter++) expect_text(&file, (const char[]){letter, '\0'});
    for (int i = 2 + '~' - '!' + 1; i < 258; i++) gguf_take_text(&file, (char[96]){0});
    expect_text(&file, "ab");
    expect_text(&file, "abc");
    expect_text(&file, "\xc4\xa0"
                       "abc"); /* a space is a G with a dot above */
    expect_text(&file, "[PAD261]");
    expect_text(&file, "[PAD262]");
    expect_text(&file, "[PAD263]");
    file.at = file.types;
    for (int i = 0; i < GIVEN_VOCABULARY; i++)
        assert_int_equal(gguf_take_number(&file, 4), i == 0 ? 3 : i == 1 ? 4 : i < GIVEN_TOKENS ? 1 : 5);
    file.at = file.merges;
    expect_text(&file, "a b");
    expect_text(&file, "ab c");
    expect_text(&file, "\xc4\xa0 abc");
    gguf_release(&file);
}

/* Pieces that are whole tokens are taken as they are. */
static void a_tokenizer_that_ignores_merges_has_a_name(void **state)
{
    (void)state;
    struct gguf_file file;
    struct tr_file_content content;
    char run[SCRATCH_PATH];
    snprintf(run, sizeof run, "%s", run_of(&given_llama_linear, "whole"));
    must_train(tr_file_read(scratch_in("whole/tokenizer.json"), 1 << 20, &content));
    char *merges = strstr(content.data, "\"ignore_merges\": false");
    assert_non_null(merges);
    memcpy(merges, "\"ignore_merges\":  true", 22);
    scratch_write("whole/tokenizer.json", content.data, content.size);
    tr_file_content_free(&content);
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    settings.file = scratch_in("whole");
    settings.out = run;
    settings.overwrite = true;
    must_train(tr_import(&settings, NULL));
    must_train(given_export(run, "gguf", false, scratch_in("whole.gguf")));
    gguf_read(scratch_in("whole.gguf"), &file);
    assert_non_null(strstr(file.told.bytes, "tokenizer.ggml.pre \"llama-bpe\"\n"));
    gguf_release(&file);
}

/* ---- networks that nobody imported ---- */

static const char by_hand[] =
    "name: hand\nseed: 3\n"
    "data: {train: {corpus: {path: text, unit: characters, window: 6}}}\n"
    "layers: [{embedding: {width: 6, name: words}}, {position: 32}, layer_norm, "
    "{attention: {heads: 3, causal: true}}, {add: position1}, layer_norm, {dense: 8}, "
    "{gelu: {approximate: tanh}}, {dense: 6}, {add: add1}, layer_norm, "
    "{unembedding: words}]\n"
    "optimizer: {rule: adam, rate: 0.05}\n"
    "train: {batch: 4, microbatches: 1, steps: 1}\n";

static tr_status export_by_hand(const char *set, const char *format, const char *path)
{
    struct job job;
    struct outcome outcome;
    static int number;
    char run[32];
    snprintf(run, sizeof run, "hand-%d", number++);
    scratch_write_text("text", "abacabadabacabaefgabacabadabacabahhgfedcbaabacabadabacaba");
    scratch_write_text("hand.yaml", by_hand);
    job_begin(&job, scratch_in("hand.yaml"));
    if (set) job_set(&job, set);
    job.settings.out = scratch_in(run);
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
    return given_export(scratch_in(run), format, false, path);
}

/* Letters are no tokens of bytes: the file then takes numbers. */
static void a_network_of_letters_has_no_vocabulary(void **state)
{
    (void)state;
    struct gguf_file file;
    must_train(export_by_hand(NULL, "gguf", scratch_in("letters.gguf")));
    gguf_read(scratch_in("letters.gguf"), &file);
    assert_non_null(strstr(file.told.bytes, "gpt2.attention.layer_norm_epsilon 1e-05f\n"
                                            "tokenizer.ggml.model \"no_vocab\"\ntoken_embd.weight [6,"));
    gguf_release(&file);
}

/* What a network with rotary positions was made for: what its attention says, else the texts of its data. */
static void texts_are_as_long_as_those_of_the_data(void **state)
{
    static const char *const layers[] = {
        "layers=[{embedding: {width: 8, name: words}}, rms_norm, {attention: {heads: 2, causal: true, "
        "rotary: "
        "100, rotary_factor: 1.5, use_bias: false}}, {add: words}, rms_norm, {dense: {units: 6, use_bias: "
        "false}}, silu, {dense: {units: 6, use_bias: false, from: rms_norm2}}, {multiply: silu1}, {dense: "
        "{units: 8, use_bias: false}}, {add: add1}, rms_norm, {unembedding: words}]",
        "layers=[{embedding: {width: 8, name: words}}, rms_norm, {attention: {heads: 2, causal: true, "
        "rotary: "
        "100, rotary_factor: 1.5, use_bias: false, context: 9}}, {add: words}, rms_norm, {dense: {units: 6, "
        "use_bias: false}}, silu, {dense: {units: 6, use_bias: false, from: rms_norm2}}, {multiply: silu1}, "
        "{dense: {units: 8, use_bias: false}}, {add: add1}, rms_norm, {unembedding: words}]",
    };
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct gguf_file file;
        struct tr_file_content config;
        must_train(export_by_hand(layers[i], "gguf", scratch_in("long.gguf")));
        gguf_read(scratch_in("long.gguf"), &file);
        assert_non_null(strstr(file.told.bytes, i ? "llama.context_length 9\n" : "llama.context_length 6\n"));
        assert_non_null(strstr(file.told.bytes, "llama.rope.scaling.factor 1.5f\n"));
        gguf_release(&file);
        must_train(export_by_hand(layers[i], "hub", scratch_in("long")));
        must_train(tr_file_read(scratch_in("long/config.json"), 1 << 16, &config));
        assert_non_null(
            strstr(config.data, i ? "\"max_position_embeddings\": 9," : "\"max_position_embeddings\": 6,"));
        assert_non_null(strstr(config.data, "\"eos_token_id\": null"));
        tr_file_content_free(&config);
        assert_false(tr_file_exists(scratch_in("long/tokenizer.json")));
    }
}

static void what_llama_cpp_computes_otherwise_is_refused(void **state)
{
    static const char exact[] =
        "layers=[{embedding: {width: 6, name: words}}, {position: 32}, layer_norm, {attention: {heads: 3, "
        "causal: "
        "true}}, {add: position1}, layer_norm, {dense: 8}, gelu, {dense: 6}, {add: add1}, layer_norm, "
        "{unembedding: words}]";
    (void)state;
    struct given_network scaled = given_qwen2;
    scaled.config =
        "{\"model_type\": \"qwen2\", \"hidden_size\": 8, \"intermediate_size\": 12, \"num_hidden_layers\": "
        "1, "
        "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 6, \"vocab_size\": 264, "
        "\"tie_word_embeddings\": true, \"max_position_embeddings\": 16, \"rope_scaling\": {\"rope_type\": "
        "\"llama3\", \"factor\": 4.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
        "\"original_max_position_embeddings\": 64}}";
    assert_int_equal(given_export(run_of(&scaled, "scaled"), "gguf", false, scratch_in("no.gguf")),
                     TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "llama.cpp scales no positions as Llama 3 does"));
    assert_int_equal(export_by_hand(exact, "gguf", scratch_in("no.gguf")), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "computes the `gelu` of a network like gpt2 by tanh"));
    assert_false(tr_file_exists(scratch_in("no.gguf")));
}

/* ---- failures ---- */

static void a_failure_leaves_the_old_file(void **state)
{
    (void)state;
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    struct tr_file_content before, after;
    tr_exporter *exporter;
    char path[SCRATCH_PATH];
    snprintf(path, sizeof path, "%s", scratch_in("old.gguf"));
    settings.checkpoint = run_of(&given_llama3, "failing");
    must_train(tr_exporter_create(&settings, &exporter));
    must_train(tr_exporter_write(exporter, "gguf", path));
    must_train(tr_file_read(path, 1 << 24, &before));
    scratch_write_text("old.gguf", "old");
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = tr_exporter_write(exporter, "gguf", path);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
        must_train(tr_file_read(path, 1 << 24, &after));
        if (done) {
            assert_int_equal(after.size, before.size);
            assert_memory_equal(after.data, before.data, before.size);
        } else {
            assert_string_equal(after.data, "old");
        }
        tr_file_content_free(&after);
    }
    tr_file_content_free(&before);
    assert_int_equal(tr_exporter_write(exporter, "gguf", scratch_in("nowhere/new.gguf")), TR_ENOTFOUND);
    tr_exporter_destroy(&exporter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_are_as_their_programs_know_them),
        cmocka_unit_test(divisors_of_angles_are_those_of_llama3),
        cmocka_unit_test(tokens_are_those_of_the_tokenizer),
        cmocka_unit_test(a_tokenizer_that_ignores_merges_has_a_name),
        cmocka_unit_test(a_network_of_letters_has_no_vocabulary),
        cmocka_unit_test(texts_are_as_long_as_those_of_the_data),
        cmocka_unit_test(what_llama_cpp_computes_otherwise_is_refused),
        cmocka_unit_test(a_failure_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
