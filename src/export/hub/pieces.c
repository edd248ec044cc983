/* Which tensor of a directory, and of a GGUF file, corresponds to which rows of which parameter. */
#include "export/hub/pieces.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Sizes from config.json. */
enum extent { ONE, WIDTH, INNER, VOCABULARY, CONTEXT, OWN, SHARED, QKV, CLASSES };

struct row {
    const char *layer, *part; /* ours; a * stands for the number of the block */
    enum extent rows, columns;
    const char *theirs, *gguf;
    bool across;
    enum tr_hub_role role;
};

static const struct row gpt2_first[] = {
    {"tokens", "weight", VOCABULARY, WIDTH, "transformer.wte.weight", "token_embd.weight", false,
     TR_HUB_TABLE},
    {"places", "weight", CONTEXT, WIDTH, "transformer.wpe.weight", "position_embd.weight", false,
     TR_HUB_TABLE},
    {0},
};
static const struct row gpt2_block[] = {
    {"first_norm*", "weight", WIDTH, ONE, "transformer.h.*.ln_1.weight", "blk.*.attn_norm.weight"},
    {"first_norm*", "bias", WIDTH, ONE, "transformer.h.*.ln_1.bias", "blk.*.attn_norm.bias"},
    {"second_norm*", "weight", WIDTH, ONE, "transformer.h.*.ln_2.weight", "blk.*.ffn_norm.weight"},
    {"second_norm*", "bias", WIDTH, ONE, "transformer.h.*.ln_2.bias", "blk.*.ffn_norm.bias"},
    {"attention*", "in_proj_weight", QKV, WIDTH, "transformer.h.*.attn.c_attn.weight",
     "blk.*.attn_qkv.weight", true},
    {"attention*", "in_proj_bias", QKV, ONE, "transformer.h.*.attn.c_attn.bias", "blk.*.attn_qkv.bias"},
    {"attention*", "out_proj.weight", WIDTH, WIDTH, "transformer.h.*.attn.c_proj.weight",
     "blk.*.attn_output.weight", true},
    {"attention*", "out_proj.bias", WIDTH, ONE, "transformer.h.*.attn.c_proj.bias", "blk.*.attn_output.bias"},
    {"up*", "weight", INNER, WIDTH, "transformer.h.*.mlp.c_fc.weight", "blk.*.ffn_up.weight", true},
    {"up*", "bias", INNER, ONE, "transformer.h.*.mlp.c_fc.bias", "blk.*.ffn_up.bias"},
    {"down*", "weight", WIDTH, INNER, "transformer.h.*.mlp.c_proj.weight", "blk.*.ffn_down.weight", true},
    {"down*", "bias", WIDTH, ONE, "transformer.h.*.mlp.c_proj.bias", "blk.*.ffn_down.bias"},
    {0},
};
static const struct row gpt2_last[] = {
    {"last_norm", "weight", WIDTH, ONE, "transformer.ln_f.weight", "output_norm.weight"},
    {"last_norm", "bias", WIDTH, ONE, "transformer.ln_f.bias", "output_norm.bias"},
    {0},
};

static const struct row llama_first[] = {
    {"tokens", "weight", VOCABULARY, WIDTH, "model.embed_tokens.weight", "token_embd.weight", false,
     TR_HUB_TABLE},
    {0},
};
static const struct row llama_block[] = {
    {"first_norm*", "weight", WIDTH, ONE, "model.layers.*.input_layernorm.weight", "blk.*.attn_norm.weight"},
    {"attention*", "in_proj_weight", OWN, WIDTH, "model.layers.*.self_attn.q_proj.weight",
     "blk.*.attn_q.weight", false, TR_HUB_QUERIES},
    {"attention*", "in_proj_weight", SHARED, WIDTH, "model.layers.*.self_attn.k_proj.weight",
     "blk.*.attn_k.weight", false, TR_HUB_KEYS},
    {"attention*", "in_proj_weight", SHARED, WIDTH, "model.layers.*.self_attn.v_proj.weight",
     "blk.*.attn_v.weight", false, TR_HUB_VALUES},
    {"attention*", "out_proj.weight", WIDTH, OWN, "model.layers.*.self_attn.o_proj.weight",
     "blk.*.attn_output.weight"},
    {"second_norm*", "weight", WIDTH, ONE, "model.layers.*.post_attention_layernorm.weight",
     "blk.*.ffn_norm.weight"},
    {"gate*", "weight", INNER, WIDTH, "model.layers.*.mlp.gate_proj.weight", "blk.*.ffn_gate.weight"},
    {"up*", "weight", INNER, WIDTH, "model.layers.*.mlp.up_proj.weight", "blk.*.ffn_up.weight"},
    {"down*", "weight", WIDTH, INNER, "model.layers.*.mlp.down_proj.weight", "blk.*.ffn_down.weight"},
    {0},
};
static const struct row llama_biases[] = {
    {"attention*", "in_proj_bias", OWN, ONE, "model.layers.*.self_attn.q_proj.bias", "blk.*.attn_q.bias",
     false, TR_HUB_QUERIES},
    {"attention*", "in_proj_bias", SHARED, ONE, "model.layers.*.self_attn.k_proj.bias", "blk.*.attn_k.bias",
     false, TR_HUB_KEYS},
    {"attention*", "in_proj_bias", SHARED, ONE, "model.layers.*.self_attn.v_proj.bias", "blk.*.attn_v.bias",
     false, TR_HUB_VALUES},
    {0},
};
static const struct row llama_last[] = {
    {"last_norm", "weight", WIDTH, ONE, "model.norm.weight", "output_norm.weight"},
    {0},
};

static const struct row scores[] = {
    {"scores", "weight", VOCABULARY, WIDTH, "lm_head.weight", "output.weight"},
    {0},
};

/* ---- encoders ---- */

static const struct row bert_first[] = {
    {"tokens", "weight", VOCABULARY, WIDTH, "@embeddings.word_embeddings.weight", "", false, TR_HUB_TABLE},
    {"places", "weight", CONTEXT, WIDTH, "@embeddings.position_embeddings.weight", "", false, TR_HUB_TABLE},
    {"begun", "weight", WIDTH, ONE, "@embeddings.LayerNorm.weight", ""},
    {"begun", "bias", WIDTH, ONE, "@embeddings.LayerNorm.bias", ""},
    {0},
};
static const struct row bert_block[] = {
    {"attention*", "in_proj_weight", OWN, WIDTH, "@encoder.layer.*.attention.self.query.weight", "", false,
     TR_HUB_QUERIES},
    {"attention*", "in_proj_weight", OWN, WIDTH, "@encoder.layer.*.attention.self.key.weight", "", false,
     TR_HUB_KEYS},
    {"attention*", "in_proj_weight", OWN, WIDTH, "@encoder.layer.*.attention.self.value.weight", "", false,
     TR_HUB_VALUES},
    {"attention*", "in_proj_bias", OWN, ONE, "@encoder.layer.*.attention.self.query.bias", "", false,
     TR_HUB_QUERIES},
    {"attention*", "in_proj_bias", OWN, ONE, "@encoder.layer.*.attention.self.key.bias", "", false,
     TR_HUB_KEYS},
    {"attention*", "in_proj_bias", OWN, ONE, "@encoder.layer.*.attention.self.value.bias", "", false,
     TR_HUB_VALUES},
    {"attention*", "out_proj.weight", WIDTH, WIDTH, "@encoder.layer.*.attention.output.dense.weight", ""},
    {"attention*", "out_proj.bias", WIDTH, ONE, "@encoder.layer.*.attention.output.dense.bias", ""},
    {"attended*", "weight", WIDTH, ONE, "@encoder.layer.*.attention.output.LayerNorm.weight", ""},
    {"attended*", "bias", WIDTH, ONE, "@encoder.layer.*.attention.output.LayerNorm.bias", ""},
    {"up*", "weight", INNER, WIDTH, "@encoder.layer.*.intermediate.dense.weight", ""},
    {"up*", "bias", INNER, ONE, "@encoder.layer.*.intermediate.dense.bias", ""},
    {"down*", "weight", WIDTH, INNER, "@encoder.layer.*.output.dense.weight", ""},
    {"down*", "bias", WIDTH, ONE, "@encoder.layer.*.output.dense.bias", ""},
    {"block*", "weight", WIDTH, ONE, "@encoder.layer.*.output.LayerNorm.weight", ""},
    {"block*", "bias", WIDTH, ONE, "@encoder.layer.*.output.LayerNorm.bias", ""},
    {0},
};
static const struct row bert_pooled[] = {
    {"pooled", "weight", WIDTH, WIDTH, "@pooler.dense.weight", ""},
    {"pooled", "bias", WIDTH, ONE, "@pooler.dense.bias", ""},
    {0},
};
static const struct row bert_classes[] = {
    {"classes", "weight", CLASSES, WIDTH, "classifier.weight", ""},
    {"classes", "bias", CLASSES, ONE, "classifier.bias", ""},
    {0},
};

static const struct row distilbert_block[] = {
    {"attention*", "in_proj_weight", OWN, WIDTH, "@transformer.layer.*.attention.q_lin.weight", "", false,
     TR_HUB_QUERIES},
    {"attention*", "in_proj_weight", OWN, WIDTH, "@transformer.layer.*.attention.k_lin.weight", "", false,
     TR_HUB_KEYS},
    {"attention*", "in_proj_weight", OWN, WIDTH, "@transformer.layer.*.attention.v_lin.weight", "", false,
     TR_HUB_VALUES},
    {"attention*", "in_proj_bias", OWN, ONE, "@transformer.layer.*.attention.q_lin.bias", "", false,
     TR_HUB_QUERIES},
    {"attention*", "in_proj_bias", OWN, ONE, "@transformer.layer.*.attention.k_lin.bias", "", false,
     TR_HUB_KEYS},
    {"attention*", "in_proj_bias", OWN, ONE, "@transformer.layer.*.attention.v_lin.bias", "", false,
     TR_HUB_VALUES},
    {"attention*", "out_proj.weight", WIDTH, WIDTH, "@transformer.layer.*.attention.out_lin.weight", ""},
    {"attention*", "out_proj.bias", WIDTH, ONE, "@transformer.layer.*.attention.out_lin.bias", ""},
    {"attended*", "weight", WIDTH, ONE, "@transformer.layer.*.sa_layer_norm.weight", ""},
    {"attended*", "bias", WIDTH, ONE, "@transformer.layer.*.sa_layer_norm.bias", ""},
    {"up*", "weight", INNER, WIDTH, "@transformer.layer.*.ffn.lin1.weight", ""},
    {"up*", "bias", INNER, ONE, "@transformer.layer.*.ffn.lin1.bias", ""},
    {"down*", "weight", WIDTH, INNER, "@transformer.layer.*.ffn.lin2.weight", ""},
    {"down*", "bias", WIDTH, ONE, "@transformer.layer.*.ffn.lin2.bias", ""},
    {"block*", "weight", WIDTH, ONE, "@transformer.layer.*.output_layer_norm.weight", ""},
    {"block*", "bias", WIDTH, ONE, "@transformer.layer.*.output_layer_norm.bias", ""},
    {0},
};
static const struct row distilbert_pooled[] = {
    {"pooled", "weight", WIDTH, WIDTH, "pre_classifier.weight", ""},
    {"pooled", "bias", WIDTH, ONE, "pre_classifier.bias", ""},
    {0},
};

static const struct row roberta_pooled[] = {
    {"pooled", "weight", WIDTH, WIDTH, "classifier.dense.weight", ""},
    {"pooled", "bias", WIDTH, ONE, "classifier.dense.bias", ""},
    {"classes", "weight", CLASSES, WIDTH, "classifier.out_proj.weight", ""},
    {"classes", "bias", CLASSES, ONE, "classifier.out_proj.bias", ""},
    {0},
};

static int64_t extent_of(const struct tr_hub_config *config, enum extent extent)
{
    const int64_t own = config->heads * config->head_size, shared = config->kv_heads * config->head_size;
    switch (extent) {
    case WIDTH:
        return config->width;
    case INNER:
        return config->inner;
    case VOCABULARY:
        return config->vocabulary;
    case CONTEXT:
        return config->context;
    case OWN:
        return own;
    case SHARED:
        return shared;
    case QKV:
        return own + 2 * shared;
    case CLASSES:
        return config->classes;
    case ONE:
        break;
    }
    return 1;
}

static void set_name(const char *name, int64_t block, char *out, size_t size)
{
    const char *star = name ? strchr(name, '*') : NULL;
    if (star)
        snprintf(out, size, "%.*s%" PRId64 "%s", (int)(star - name), name, block, star + 1);
    else
        snprintf(out, size, "%s", name ? name : "");
}

/* Tensors of an encoder have its name in front, instead of the @. */
static void set_their_name(const struct tr_hub_config *config, const char *name, int64_t block, char *out,
                           size_t size)
{
    char own[78];
    set_name(name, block, own, sizeof own);
    if (own[0] == '@')
        snprintf(out, size, "%.16s.%s", tr_hub_kind_name(config->kind), own + 1);
    else
        snprintf(out, size, "%s", own);
}

/* For encoders: places before the first token's, and the vector of the first kind of texts. */
static void place_encoder(const struct tr_hub_config *config, struct tr_hub_piece *piece)
{
    piece->may_lack =
        config->begins && (strcmp(piece->layer, "pooled") == 0 || strcmp(piece->layer, "classes") == 0);
    if (!tr_hub_is_encoder(config) || strcmp(piece->layer, "places") != 0) return;
    piece->skipped = config->skipped;
    piece->added_rows = config->types;
    if (config->types > 0)
        set_their_name(config, "@embeddings.token_type_embeddings.weight", 0, piece->added,
                       sizeof piece->added);
}

/* The rows of their parameter that the roles take, and how many rows it has. */
static void place(const struct tr_hub_config *config, struct tr_hub_piece *piece)
{
    const int64_t own = extent_of(config, OWN), shared = extent_of(config, SHARED);
    piece->first = 0;
    piece->total = piece->rows;
    if (piece->role < TR_HUB_QUERIES) return;
    piece->total = own + 2 * shared;
    if (piece->role == TR_HUB_KEYS) piece->first = own;
    if (piece->role == TR_HUB_VALUES) piece->first = own + shared;
}

static tr_status visit_rows(const struct tr_hub_config *config, const struct row *row, int64_t block,
                            tr_hub_visit visit, void *user)
{
    for (; row->layer; row++) {
        struct tr_hub_piece piece = {
            .part = row->part,
            .rank = row->columns == ONE ? 1 : 2,
            .rows = extent_of(config, row->rows),
            .columns = extent_of(config, row->columns),
            .across = row->across,
            .role = row->role,
        };
        place(config, &piece);
        set_name(row->layer, block, piece.layer, sizeof piece.layer);
        set_their_name(config, row->theirs, block, piece.theirs, sizeof piece.theirs);
        set_name(row->gguf, block, piece.gguf, sizeof piece.gguf);
        place_encoder(config, &piece);
        TR_TRY(visit(user, &piece));
    }
    return TR_OK;
}

static tr_status visit_encoder(const struct tr_hub_config *config, tr_hub_visit visit, void *user)
{
    const bool distilled = config->kind == TR_HUB_DISTILBERT, roberta = config->kind == TR_HUB_ROBERTA;
    TR_TRY(visit_rows(config, bert_first, 0, visit, user));
    for (int64_t i = 0; i < config->layers; i++)
        TR_TRY(visit_rows(config, distilled ? distilbert_block : bert_block, i, visit, user));
    if (roberta && !config->tags) return visit_rows(config, roberta_pooled, 0, visit, user);
    if (!config->tags)
        TR_TRY(visit_rows(config, distilled ? distilbert_pooled : bert_pooled, 0, visit, user));
    return visit_rows(config, bert_classes, 0, visit, user);
}

tr_status tr_hub_each_piece(const struct tr_hub_config *config, tr_hub_visit visit, void *user)
{
    const bool gpt2 = config->kind == TR_HUB_GPT2;
    if (tr_hub_is_encoder(config)) return visit_encoder(config, visit, user);
    TR_TRY(visit_rows(config, gpt2 ? gpt2_first : llama_first, 0, visit, user));
    for (int64_t i = 0; i < config->layers; i++) {
        TR_TRY(visit_rows(config, gpt2 ? gpt2_block : llama_block, i, visit, user));
        if (!gpt2 && config->bias) TR_TRY(visit_rows(config, llama_biases, i, visit, user));
    }
    TR_TRY(visit_rows(config, gpt2 ? gpt2_last : llama_last, 0, visit, user));
    return config->tied ? TR_OK : visit_rows(config, scores, 0, visit, user);
}
