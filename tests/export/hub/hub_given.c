#include "export/hub/hub_given.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "data/bpe/bpe.h"
#include "io/safetensors.h"
#include "scratch.h"
#include "trireme/export.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define WIDTH  8
#define INNER  12
#define PLACES 16

/* Two heads of six numbers, one of keys and values. */
#define LLAMA_BLOCK                                                                                          \
    {"model.layers.0.input_layernorm.weight", "blk.0.attn_norm.weight", 1, WIDTH, 1, false, 0},              \
        {"model.layers.0.self_attn.q_proj.weight", "blk.0.attn_q.weight", 2, 12, WIDTH, false, 2},           \
        {"model.layers.0.self_attn.k_proj.weight", "blk.0.attn_k.weight", 2, 6, WIDTH, false, 1},            \
        {"model.layers.0.self_attn.v_proj.weight", "blk.0.attn_v.weight", 2, 6, WIDTH, false, 0},            \
        {"model.layers.0.self_attn.o_proj.weight", "blk.0.attn_output.weight", 2, WIDTH, 12, false, 0},      \
        {"model.layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight", 1, WIDTH, 1, false, 0},  \
        {"model.layers.0.mlp.gate_proj.weight", "blk.0.ffn_gate.weight", 2, INNER, WIDTH, false, 0},         \
        {"model.layers.0.mlp.up_proj.weight", "blk.0.ffn_up.weight", 2, INNER, WIDTH, false, 0},             \
        {"model.layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight", 2, WIDTH, INNER, false, 0},

#define LLAMA_BEGIN                                                                                          \
    {                                                                                                        \
        "model.embed_tokens.weight", "token_embd.weight", 2, GIVEN_VOCABULARY, WIDTH, false, 0               \
    }
#define LLAMA_END                                                                                            \
    {                                                                                                        \
        "model.norm.weight", "output_norm.weight", 1, WIDTH, 1, false, 0                                     \
    }
#define SCORES                                                                                               \
    {                                                                                                        \
        "lm_head.weight", "output.weight", 2, GIVEN_VOCABULARY, WIDTH, false, 0                              \
    }

static const struct given_tensor untied[] = {LLAMA_BEGIN, LLAMA_BLOCK LLAMA_END, SCORES, {0}};
static const struct given_tensor tied[] = {LLAMA_BEGIN, LLAMA_BLOCK LLAMA_END, {0}};
static const struct given_tensor biased[] = {
    LLAMA_BEGIN,
    LLAMA_BLOCK{"model.layers.0.self_attn.q_proj.bias", "blk.0.attn_q.bias", 1, 12, 1, false, 2},
    {"model.layers.0.self_attn.k_proj.bias", "blk.0.attn_k.bias", 1, 6, 1, false, 1},
    {"model.layers.0.self_attn.v_proj.bias", "blk.0.attn_v.bias", 1, 6, 1, false, 0},
    LLAMA_END,
    {0}};
static const struct given_tensor gpt2[] = {
    {"transformer.wte.weight", "token_embd.weight", 2, GIVEN_VOCABULARY, WIDTH, false, 0},
    {"transformer.wpe.weight", "position_embd.weight", 2, PLACES, WIDTH, false, 0},
    {"transformer.h.0.ln_1.weight", "blk.0.attn_norm.weight", 1, WIDTH, 1, false, 0},
    {"transformer.h.0.ln_1.bias", "blk.0.attn_norm.bias", 1, WIDTH, 1, false, 0},
    {"transformer.h.0.ln_2.weight", "blk.0.ffn_norm.weight", 1, WIDTH, 1, false, 0},
    {"transformer.h.0.ln_2.bias", "blk.0.ffn_norm.bias", 1, WIDTH, 1, false, 0},
    {"transformer.h.0.attn.c_attn.weight", "blk.0.attn_qkv.weight", 2, WIDTH, 3 * WIDTH, true, 0},
    {"transformer.h.0.attn.c_attn.bias", "blk.0.attn_qkv.bias", 1, 3 * WIDTH, 1, false, 0},
    {"transformer.h.0.attn.c_proj.weight", "blk.0.attn_output.weight", 2, WIDTH, WIDTH, true, 0},
    {"transformer.h.0.attn.c_proj.bias", "blk.0.attn_output.bias", 1, WIDTH, 1, false, 0},
    {"transformer.h.0.mlp.c_fc.weight", "blk.0.ffn_up.weight", 2, WIDTH, INNER, true, 0},
    {"transformer.h.0.mlp.c_fc.bias", "blk.0.ffn_up.bias", 1, INNER, 1, false, 0},
    {"transformer.h.0.mlp.c_proj.weight", "blk.0.ffn_down.weight", 2, INNER, WIDTH, true, 0},
    {"transformer.h.0.mlp.c_proj.bias", "blk.0.ffn_down.bias", 1, WIDTH, 1, false, 0},
    {"transformer.ln_f.weight", "output_norm.weight", 1, WIDTH, 1, false, 0},
    {"transformer.ln_f.bias", "output_norm.bias", 1, WIDTH, 1, false, 0},
    {0}};

#define OF(kind)                                                                                             \
    "{\"model_type\": \"" kind "\", \"hidden_size\": 8, \"intermediate_size\": 12, "                         \
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 6, "    \
    "\"vocab_size\": 264, \"max_position_embeddings\": 16, "

const struct given_network
    given_llama3 = {OF("llama") "\"rms_norm_eps\": 1e-06, \"rope_theta\": 500.0, \"rope_scaling\": "
                                "{\"rope_type\": \"llama3\", \"factor\": 4.0, \"low_freq_factor\": 1.0, "
                                "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 64}}",
                    TR_BPE_CL100K, untied},
    given_llama_linear = {OF("llama") "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.5}, "
                                      "\"tie_word_embeddings\": true}",
                          TR_BPE_CL100K, tied},
    given_mistral = {OF("mistral") "\"sliding_window\": 7}", TR_BPE_GPT2, untied},
    given_qwen2 = {OF("qwen2") "\"rms_norm_eps\": 1e-05, \"tie_word_embeddings\": true}", TR_BPE_QWEN2,
                   biased},
    given_gpt2 = {
        "{\"model_type\": \"gpt2\", \"n_embd\": 8, \"n_layer\": 1, \"n_head\": 2, \"vocab_size\": 264, "
        "\"n_positions\": 16, \"n_inner\": 12}",
        TR_BPE_GPT2, gpt2};

float given_number(int tensor, int64_t k)
{
    return (float)(k % 331) + (float)tensor / 4;
}

int64_t given_floats(const struct given_tensor *tensor)
{
    return tensor->rows * tensor->columns;
}

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

/* 256 bytes, two special tokens, and three merges; the second special one counts as a word of users. */
static void put_tokenizer(enum tr_bpe_pattern pattern, const char *directory)
{
    static const char *const special[] = {"<|endoftext|>", "<mark>", NULL};
    static const char text[] = "abcab abcab abcd abcd abcd";
    const struct tr_bpe_training training = {
        .pattern = pattern, .size = GIVEN_TOKENS, .least = 1, .special = special};
    char path[SCRATCH_PATH], *written;
    tr_bpe_trainer *trainer;
    tr_bpe *bpe;
    must(tr_bpe_trainer_create(&training, &trainer));
    must(tr_bpe_trainer_count(trainer, text, sizeof text - 1));
    must(tr_bpe_trainer_finish(trainer, &bpe));
    tr_bpe_trainer_destroy(&trainer);
    assert_int_equal(tr_bpe_size(bpe), GIVEN_TOKENS);
    must(tr_bpe_write(bpe, &written));
    tr_bpe_destroy(&bpe);
    char *mark = strstr(written, "<mark>"), *is = mark ? strstr(mark, "\"special\": true") : NULL;
    assert_non_null(is);
    memcpy(is, "\"special\":false", 15);
    must(tr_file_write_atomic(NULL, scratch_join(path, directory, "tokenizer.json"), written,
                              strlen(written)));
    tr_free(written);
}

void given_import(const struct given_network *network, const char *directory, const char *out)
{
    struct tr_stored_tensor tensors[32];
    char path[SCRATCH_PATH];
    int64_t count = 0;
    must(tr_file_make_directories(NULL, directory));
    must(tr_file_write_atomic(NULL, scratch_join(path, directory, "config.json"), network->config,
                              strlen(network->config)));
    put_tokenizer(network->pattern, directory);
    for (const struct given_tensor *tensor = network->tensor; tensor->theirs; tensor++, count++) {
        float *values = tr_alloc((size_t)given_floats(tensor), sizeof *values);
        assert_non_null(values);
        for (int64_t k = 0; k < given_floats(tensor); k++) values[k] = given_number((int)count, k);
        tensors[count] = (struct tr_stored_tensor){
            tensor->theirs, TR_DTYPE_F32, tensor->rank, {tensor->rows, tensor->columns}, values};
    }
    must(tr_safetensors_replace(NULL, scratch_join(path, directory, "model.safetensors"), tensors, count,
                                NULL, 0));
    for (int64_t i = 0; i < count; i++) tr_free(tensors[i].data);
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    settings.file = directory;
    settings.out = out;
    must(tr_import(&settings, NULL));
}

tr_status given_export(const char *run, const char *format, bool half, const char *path)
{
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    settings.checkpoint = run;
    settings.half = half;
    tr_status status = tr_exporter_create(&settings, &exporter);
    if (status == TR_OK) status = tr_exporter_write(exporter, format, path);
    tr_exporter_destroy(&exporter);
    return status;
}
