/* config.json, as both generations of the library read it: positions by `rope_theta` and `rope_scaling`. */
#include "base/text/json.h"
#include "export/hub/outgoing.h"

#include <math.h>

static void add_token(struct tr_json_writer *json, const char *key, int32_t token)
{
    if (token < 0)
        tr_json_double(json, key, (double)NAN); /* null */
    else
        tr_json_integer(json, key, token);
}

static void add_gpt2(const struct tr_hub_config *config, struct tr_json_writer *json)
{
    tr_json_integer(json, "n_embd", config->width);
    tr_json_integer(json, "n_layer", config->layers);
    tr_json_integer(json, "n_head", config->heads);
    tr_json_integer(json, "n_inner", config->inner);
    tr_json_integer(json, "n_positions", config->context);
    tr_json_double(json, "layer_norm_epsilon", config->epsilon);
    tr_json_text(json, "activation_function", config->exact_gelu ? "gelu" : "gelu_new");
}

static void add_scaling(const struct tr_hub_config *config, struct tr_json_writer *json)
{
    const bool llama3 = config->original > 0;
    if (config->factor <= 1 && !llama3) return;
    tr_json_open_object(json, "rope_scaling");
    tr_json_text(json, "rope_type", llama3 ? "llama3" : "linear");
    tr_json_double(json, "factor", config->factor);
    if (llama3) {
        tr_json_double(json, "low_freq_factor", config->low);
        tr_json_double(json, "high_freq_factor", config->high);
        tr_json_double(json, "original_max_position_embeddings", config->original);
    }
    tr_json_close_object(json);
}

static void add_llama(const struct tr_hub_config *config, struct tr_json_writer *json)
{
    tr_json_integer(json, "hidden_size", config->width);
    tr_json_integer(json, "num_hidden_layers", config->layers);
    tr_json_integer(json, "num_attention_heads", config->heads);
    tr_json_integer(json, "num_key_value_heads", config->kv_heads);
    tr_json_integer(json, "head_dim", config->head_size);
    tr_json_integer(json, "intermediate_size", config->inner);
    tr_json_integer(json, "max_position_embeddings", config->context);
    tr_json_double(json, "rms_norm_eps", config->epsilon);
    tr_json_text(json, "hidden_act", "silu");
    tr_json_double(json, "rope_theta", config->rotary);
    add_scaling(config, json);
    if (config->kind == TR_HUB_LLAMA) {
        tr_json_bool(json, "attention_bias", false);
        tr_json_bool(json, "mlp_bias", false);
    } else if (config->kind == TR_HUB_MISTRAL) {
        tr_json_integer(json, "sliding_window", config->window);
    } else {
        tr_json_bool(json, "use_sliding_window", false);
    }
}

tr_status tr_hub_write_config(const struct tr_hub_config *config, int32_t end, bool half, char **text)
{
    static const char *const classes[] = {
        [TR_HUB_GPT2] = "GPT2LMHeadModel",
        [TR_HUB_LLAMA] = "LlamaForCausalLM",
        [TR_HUB_MISTRAL] = "MistralForCausalLM",
        [TR_HUB_QWEN2] = "Qwen2ForCausalLM",
    };
    struct tr_json_writer json;
    tr_json_begin(&json, true);
    tr_json_open_array(&json, "architectures");
    tr_json_text(&json, NULL, classes[config->kind]);
    tr_json_close_array(&json);
    tr_json_text(&json, "model_type", tr_hub_kind_name(config->kind));
    tr_json_integer(&json, "vocab_size", config->vocabulary);
    if (config->kind == TR_HUB_GPT2)
        add_gpt2(config, &json);
    else
        add_llama(config, &json);
    tr_json_bool(&json, "tie_word_embeddings", config->tied);
    add_token(&json, "bos_token_id", config->kind == TR_HUB_GPT2 ? end : -1);
    add_token(&json, "eos_token_id", end);
    tr_json_text(&json, "torch_dtype", half ? "float16" : "float32");
    return tr_json_finish(&json, text);
}
