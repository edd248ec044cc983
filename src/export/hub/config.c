/* config.json. */
#include "export/hub/hub.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/text/json.h"

#include <math.h>
#include <string.h>

#define CONFIG_MAX            ((uint64_t)1 << 20)
#define SIZE_MAX_OF_A_NETWORK (1 << 24)

static const char *const kinds[TR_HUB_KINDS] = {"gpt2", "llama",      "mistral", "qwen2",
                                                "bert", "distilbert", "roberta"};

struct reading {
    const char *path;
    const struct tr_json_value *root;
};

static tr_status refuse(const struct reading *reading, const char *key, const char *value, const char *known)
{
    return tr_fail(TR_EUNSUPPORTED, "%s: %s is \"%s\"; %s", reading->path, key, value, known);
}

static bool is_null(const struct tr_json_value *value)
{
    return !value || value->kind == TR_JSON_NULL;
}

/* A size. `otherwise` if it is missing or null, or an error if `otherwise` is 0. */
static tr_status size_of(const struct reading *reading, const char *key, int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    if (is_null(tr_json_find(reading->root, key)) && otherwise > 0) return TR_OK;
    return tr_json_get_integer(reading->root, reading->path, key, 1, SIZE_MAX_OF_A_NETWORK, out);
}

/* A number above 0; `otherwise` if it is missing. */
static tr_status number_of(const struct reading *reading, const struct tr_json_value *object, const char *key,
                           double otherwise, double *out)
{
    *out = is_null(tr_json_find(object, key)) ? otherwise : tr_json_number_or_nan(object, key);
    if (*out > 0 && *out <= 1e9) return TR_OK;
    return tr_fail(TR_EFORMAT, "%s: %s is no number above 0", reading->path, key);
}

static bool truth_of(const struct reading *reading, const char *key, bool otherwise)
{
    const struct tr_json_value *value = tr_json_find(reading->root, key);
    return value && value->kind == TR_JSON_BOOL ? value->truth : otherwise;
}

/* An option that must have this value, or be missing. */
static tr_status must_be(const struct reading *reading, const char *key, const char *wanted)
{
    const struct tr_json_value *value = tr_json_find(reading->root, key);
    if (is_null(value) || (value->kind == TR_JSON_TEXT && strcmp(value->text, wanted) == 0)) return TR_OK;
    return refuse(reading, key, value->kind == TR_JSON_TEXT ? value->text : tr_json_kind_name(value->kind),
                  "that is another network; known is the one of the published files");
}

static tr_status must_not(const struct reading *reading, const char *key)
{
    if (!truth_of(reading, key, false)) return TR_OK;
    return refuse(reading, key, "true", "that is another network");
}

/* ---- GPT-2 ---- */

static tr_status read_gpt2(const struct reading *reading, struct tr_hub_config *out)
{
    TR_TRY(size_of(reading, "n_embd", 0, &out->width));
    TR_TRY(size_of(reading, "n_layer", 0, &out->layers));
    TR_TRY(size_of(reading, "n_head", 0, &out->heads));
    TR_TRY(size_of(reading, "n_inner", 4 * out->width, &out->inner));
    TR_TRY(size_of(reading, "n_positions", 1024, &out->context));
    TR_TRY(number_of(reading, reading->root, "layer_norm_epsilon", 1e-5, &out->epsilon));
    out->exact_gelu = strcmp(tr_json_text_or_empty(reading->root, "activation_function"), "gelu") == 0;
    if (!out->exact_gelu) TR_TRY(must_be(reading, "activation_function", "gelu_new"));
    TR_TRY(must_not(reading, "scale_attn_by_inverse_layer_idx"));
    if (!truth_of(reading, "scale_attn_weights", true))
        return refuse(reading, "scale_attn_weights", "false", "that is another network");
    out->kv_heads = out->heads;
    out->head_size = out->width / out->heads;
    out->bias = true;
    return TR_OK;
}

/* ---- Llama and its kin ---- */

/* The forms of both: `rope_theta` and `rope_scaling`, or all in `rope_parameters`. */
static tr_status read_rotary(const struct reading *reading, struct tr_hub_config *out)
{
    const struct tr_json_value *all = tr_json_find(reading->root, "rope_parameters");
    const struct tr_json_value *scaling = is_null(all) ? tr_json_find(reading->root, "rope_scaling") : all;
    TR_TRY(number_of(reading, is_null(all) ? reading->root : all, "rope_theta", 10000, &out->rotary));
    out->factor = 1;
    if (is_null(scaling)) return TR_OK;
    const char *type = tr_json_text_or_empty(scaling, "rope_type");
    if (!*type) type = tr_json_text_or_empty(scaling, "type");
    if (!*type || strcmp(type, "default") == 0) return TR_OK;
    if (strcmp(type, "linear") != 0 && strcmp(type, "llama3") != 0)
        return refuse(reading, "rope_type", type, "linear and llama3 are known");
    TR_TRY(number_of(reading, scaling, "factor", NAN, &out->factor));
    if (strcmp(type, "linear") == 0) return TR_OK;
    TR_TRY(number_of(reading, scaling, "low_freq_factor", NAN, &out->low));
    TR_TRY(number_of(reading, scaling, "high_freq_factor", NAN, &out->high));
    return number_of(reading, scaling, "original_max_position_embeddings", NAN, &out->original);
}

static tr_status read_window(const struct reading *reading, struct tr_hub_config *out)
{
    const bool wanted = out->kind == TR_HUB_MISTRAL || truth_of(reading, "use_sliding_window", false);
    if (!wanted || is_null(tr_json_find(reading->root, "sliding_window"))) return TR_OK;
    if (out->kind == TR_HUB_QWEN2)
        return refuse(reading, "use_sliding_window", "true",
                      "layers with and without a window are not known");
    return size_of(reading, "sliding_window", 0, &out->window);
}

static tr_status read_llama(const struct reading *reading, struct tr_hub_config *out)
{
    TR_TRY(size_of(reading, "hidden_size", 0, &out->width));
    TR_TRY(size_of(reading, "num_hidden_layers", 0, &out->layers));
    TR_TRY(size_of(reading, "num_attention_heads", 0, &out->heads));
    TR_TRY(size_of(reading, "num_key_value_heads", out->heads, &out->kv_heads));
    TR_TRY(size_of(reading, "head_dim", out->width / out->heads, &out->head_size));
    TR_TRY(size_of(reading, "intermediate_size", 0, &out->inner));
    TR_TRY(size_of(reading, "max_position_embeddings", 2048, &out->context));
    TR_TRY(number_of(reading, reading->root, "rms_norm_eps", 1e-6, &out->epsilon));
    TR_TRY(must_be(reading, "hidden_act", "silu"));
    TR_TRY(must_not(reading, "attention_bias"));
    TR_TRY(must_not(reading, "mlp_bias"));
    TR_TRY(read_rotary(reading, out));
    out->bias = out->kind == TR_HUB_QWEN2;
    return read_window(reading, out);
}

/* ---- BERT and its kin ---- */

/* `id2label` has a member for each class; a configuration without it has two classes. */
static tr_status read_classes(const struct reading *reading, struct tr_hub_config *out)
{
    const struct tr_json_value *names = tr_json_find(reading->root, "id2label");
    TR_TRY(size_of(reading, "num_labels", 2, &out->classes));
    if (names && names->kind == TR_JSON_OBJECT) out->classes = names->count;
    const char *problem = tr_json_text_or_empty(reading->root, "problem_type");
    if (*problem && strcmp(problem, "single_label_classification") != 0)
        return refuse(reading, "problem_type", problem, "classes of which a text has one are known");
    if (out->classes >= 2 && out->classes <= SIZE_MAX_OF_A_NETWORK) return TR_OK;
    return refuse(reading, "id2label", "of fewer than two classes",
                  "a network that gives values is another one");
}

/* The head of the network, on the vectors of tokens. Without it the classes start untrained. */
static tr_status read_task(const struct reading *reading, struct tr_hub_config *out)
{
    static const char *const begins[] = {"Model", "ForMaskedLM", "ForPreTraining"};
    static const char *const families[] = {"Bert", "DistilBert", "Roberta"};
    const struct tr_json_value *all = tr_json_find(reading->root, "architectures");
    const struct tr_json_value *first = all && all->kind == TR_JSON_ARRAY ? all->first : NULL;
    const char *name = first && first->kind == TR_JSON_TEXT ? first->text : "";
    const char *family = families[out->kind - TR_HUB_BERT], *task = name + strlen(family);
    TR_TRY(read_classes(reading, out));
    if (strncmp(name, family, strlen(family)) != 0)
        return refuse(reading, "architectures", name, "that is no network of this model_type");
    out->tags = strcmp(task, "ForTokenClassification") == 0;
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) out->begins |= strcmp(task, begins[i]) == 0;
    if (out->tags || out->begins || strcmp(task, "ForSequenceClassification") == 0) return TR_OK;
    return refuse(
        reading, "architectures", name,
        "classes of texts (ForSequenceClassification) and of tokens (ForTokenClassification) are known");
}

static tr_status read_gelu(const struct reading *reading, const char *key, struct tr_hub_config *out)
{
    const struct tr_json_value *value = tr_json_find(reading->root, key);
    out->exact_gelu = is_null(value) || (value->kind == TR_JSON_TEXT && strcmp(value->text, "gelu") == 0);
    return out->exact_gelu ? TR_OK : must_be(reading, key, "gelu_new");
}

static tr_status read_distilbert(const struct reading *reading, struct tr_hub_config *out)
{
    TR_TRY(size_of(reading, "dim", 0, &out->width));
    TR_TRY(size_of(reading, "n_layers", 0, &out->layers));
    TR_TRY(size_of(reading, "n_heads", 0, &out->heads));
    TR_TRY(size_of(reading, "hidden_dim", 0, &out->inner));
    TR_TRY(size_of(reading, "max_position_embeddings", 512, &out->context));
    out->epsilon = 1e-12;
    return read_gelu(reading, "activation", out);
}

static tr_status read_bert(const struct reading *reading, struct tr_hub_config *out)
{
    TR_TRY(size_of(reading, "hidden_size", 0, &out->width));
    TR_TRY(size_of(reading, "num_hidden_layers", 0, &out->layers));
    TR_TRY(size_of(reading, "num_attention_heads", 0, &out->heads));
    TR_TRY(size_of(reading, "intermediate_size", 0, &out->inner));
    TR_TRY(size_of(reading, "max_position_embeddings", 512, &out->context));
    TR_TRY(size_of(reading, "type_vocab_size", 2, &out->types));
    TR_TRY(number_of(reading, reading->root, "layer_norm_eps", 1e-12, &out->epsilon));
    TR_TRY(must_be(reading, "position_embedding_type", "absolute"));
    TR_TRY(must_not(reading, "is_decoder"));
    TR_TRY(must_not(reading, "add_cross_attention"));
    return read_gelu(reading, "hidden_act", out);
}

/* RoBERTa counts places from the number of the padding token, and skips that one. */
static tr_status read_places(const struct reading *reading, struct tr_hub_config *out)
{
    if (out->kind != TR_HUB_ROBERTA) return TR_OK;
    if (is_null(tr_json_find(reading->root, "pad_token_id")))
        out->skipped = 1;
    else
        TR_TRY(tr_json_get_integer(reading->root, reading->path, "pad_token_id", 0, SIZE_MAX_OF_A_NETWORK,
                                   &out->skipped));
    out->skipped++;
    out->context -= out->skipped;
    if (out->context > 0) return TR_OK;
    return tr_fail(TR_EFORMAT, "%s: max_position_embeddings leaves no place behind that of pad_token_id",
                   reading->path);
}

static tr_status read_encoder(const struct reading *reading, struct tr_hub_config *out)
{
    TR_TRY(out->kind == TR_HUB_DISTILBERT ? read_distilbert(reading, out) : read_bert(reading, out));
    TR_TRY(read_places(reading, out));
    out->kv_heads = out->heads;
    out->head_size = out->width / out->heads;
    out->bias = true;
    return read_task(reading, out);
}

static tr_status check(const struct reading *reading, const struct tr_hub_config *out)
{
    if (out->heads % out->kv_heads == 0 && out->head_size > 0 &&
        ((out->kind != TR_HUB_GPT2 && !tr_hub_is_encoder(out)) || out->width % out->heads == 0) &&
        out->head_size <= SIZE_MAX_OF_A_NETWORK / out->heads)
        return TR_OK;
    return tr_fail(TR_EFORMAT, "%s: %lld heads, %lld of keys, of %lld numbers do not fit a width of %lld",
                   reading->path, (long long)out->heads, (long long)out->kv_heads, (long long)out->head_size,
                   (long long)out->width);
}

static tr_status read_all(struct reading *reading, struct tr_hub_config *out)
{
    const char *type = tr_json_text_or_empty(reading->root, "model_type");
    int kind = 0;
    *out = (struct tr_hub_config){.factor = 1};
    while (kind < TR_HUB_KINDS && strcmp(type, kinds[kind]) != 0) kind++;
    if (kind == TR_HUB_KINDS)
        return refuse(reading, "model_type", type,
                      "known are gpt2, llama, mistral, qwen2, bert, distilbert and roberta");
    out->kind = (enum tr_hub_kind)kind;
    TR_TRY(size_of(reading, "vocab_size", 0, &out->vocabulary));
    TR_TRY(kind == TR_HUB_GPT2      ? read_gpt2(reading, out)
           : tr_hub_is_encoder(out) ? read_encoder(reading, out)
                                    : read_llama(reading, out));
    out->tied = truth_of(reading, "tie_word_embeddings", kind == TR_HUB_GPT2);
    return check(reading, out);
}

const char *tr_hub_kind_name(enum tr_hub_kind kind)
{
    return kinds[kind];
}

bool tr_hub_is_directory(const char *path)
{
    char *config = tr_file_is_directory(path) ? tr_path_join(path, "config.json") : NULL;
    const bool there = config && tr_file_exists(config);
    tr_free(config);
    return there;
}

tr_status tr_hub_read_config(const char *directory, struct tr_hub_config *out)
{
    struct tr_file_content file = {0};
    tr_json *json = NULL;
    char *path = tr_path_join(directory, "config.json");
    tr_status status = path ? tr_file_read(path, CONFIG_MAX, &file) : TR_ENOMEM;
    if (status == TR_OK) status = tr_json_parse(file.data, file.size, path, &json);
    if (status == TR_OK) {
        struct reading reading = {path, tr_json_root(json)};
        status = read_all(&reading, out);
    }
    tr_json_destroy(&json);
    tr_file_content_free(&file);
    tr_free(path);
    return status;
}
