/* Operations over tokens as calls of parts. Tokens come one at a time, and what goes from one to the next
 * lies in the workspace; or, where a token sees those after it, all of them are taken through an operation
 * before the next one (`whole`).
 */
#include "export/c/network.h"

#include "device/rotary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- single tokens ---- */

static tr_status write_embedding(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_embedding_forward *op = &traced->as.embedding_forward;
    TR_C_BEGIN(embedding);
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, %s, %s);\n", op->vocabulary, op->width,
                 TR_C_ARRAY(op->table), network->whole ? "tokens[t]" : "token", TR_C_VALUE(op->y));
    return TR_OK;
}

static tr_status write_unembedding(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_dense_backward_data *op = &traced->as.dense_backward_data;
    TR_C_BEGIN(unembedding);
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, %s, %s);\n", op->in, op->out,
                 TR_C_ARRAY(op->w), TR_C_VALUE(op->dy), TR_C_VALUE(op->dx));
    return TR_OK;
}

static tr_status write_position(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_position_forward *op = &traced->as.position_forward;
    TR_C_BEGIN(position);
    tr_text_addf(&network->body, "t, %" PRId64 ", %" PRId64 ", %s, %s, %s);\n", op->length, op->width,
                 TR_C_ARRAY(op->table), TR_C_VALUE(op->x), TR_C_VALUE(op->y));
    return TR_OK;
}

/* The frequencies stand in a block with the call. */
static tr_status write_rotary(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_rotary *op = &traced->as.rotary;
    struct tr_text *body = &network->body;
    tr_text_add(body, "    {\n    static const double frequency[] = {");
    for (int64_t k = 0; k < op->size / 2; k++)
        tr_text_addf(body, "%s%a,", k % 4 ? " " : "\n        ", tr_rotary_turn(op, k));
    tr_text_add(body, "\n    };\n");
    TR_C_BEGIN(rotary);
    tr_text_addf(body, "t, %" PRId64 ", %" PRId64 ", %d, frequency, %s);\n    }\n", op->heads, op->size,
                 op->pairs, TR_C_VALUE(op->x));
    return TR_OK;
}

/* The output for the token before: in the same place, or before it. */
static struct tr_c_name before(const struct tr_c_network *network, const float *h, int64_t hidden)
{
    struct tr_c_name name = tr_c_all_name(network, h);
    char *end = name.text + strlen(name.text);
    if (network->whole)
        snprintf(end, (size_t)(name.text + sizeof name.text - end), " + (t ? t - 1 : 0) * %" PRId64, hidden);
    return name;
}

static tr_status write_lstm(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_lstm_forward *op = &traced->as.lstm_forward;
    TR_C_BEGIN(lstm);
    tr_text_addf(&network->body, "t == 0, %" PRId64 ", %s, %s, %s, %s, %s, %s);\n", op->hidden,
                 TR_C_ARRAY(op->w), TR_C_ARRAY(op->b), before(network, op->h, op->hidden).text,
                 TR_C_VALUE(op->gates), TR_C_VALUE(op->c), TR_C_VALUE(op->h));
    return TR_OK;
}

static tr_status write_gru(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_gru_forward *op = &traced->as.gru_forward;
    TR_C_BEGIN(gru);
    tr_text_addf(&network->body, "t == 0, %" PRId64 ", %s, %s, %s, %s, %s, %s, %s);\n", op->hidden,
                 TR_C_ARRAY(op->w), TR_C_ARRAY(op->b), TR_C_ARRAY(op->b_hidden),
                 before(network, op->h, op->hidden).text, TR_C_VALUE(op->gates), TR_C_VALUE(op->inner),
                 TR_C_VALUE(op->h));
    return TR_OK;
}

/* ---- several tokens ---- */

static tr_status write_attention(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_attention_forward *op = &traced->as.attention_forward;
    char text[TR_C_CONSTANT];
    tr_c_constant(op->at.scale, text);
    if (network->whole) {
        TR_C_BEGIN(attend);
        tr_text_addf(&network->body, "length, %d, ", op->at.causal);
    } else {
        TR_C_BEGIN(attention);
        tr_text_addf(&network->body, "t, %s_TOKENS, ", network->upper);
    }
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %s, %s, %s, %s);\n",
                 op->at.heads, op->at.kv_heads, op->at.size,
                 op->at.window < INT32_MAX / 2 ? op->at.window : INT32_MAX / 2, text,
                 tr_c_all_name(network, op->at.q).text, tr_c_all_name(network, op->at.shift).text,
                 tr_c_all_name(network, op->y).text);
    return TR_OK;
}

static tr_status write_unfold(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_sequence_unfold *op = &traced->as.sequence_unfold;
    TR_C_BEGIN(unfold);
    tr_text_addf(&network->body, "length, %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %s, %s);\n",
                 op->width, op->taps, op->before, op->dilation, tr_c_all_name(network, op->x).text,
                 tr_c_all_name(network, op->y).text);
    return TR_OK;
}

static tr_status write_order(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_sequence_copy *op = &traced->as.sequence_copy;
    TR_C_BEGIN(order);
    tr_text_addf(&network->body, "length, %d, %" PRId64 ", %" PRId64 ", %s, %s);\n", op->reverse, op->width,
                 op->y_step, tr_c_all_name(network, op->x).text, tr_c_all_name(network, op->y).text);
    return TR_OK;
}

/* Writes zeros where an example has no tokens. */
static void write_or_zero(struct tr_c_network *network, const struct tr_traced *traced, int64_t width,
                          const void *y)
{
    tr_text_add(&network->body, "    if (length == 0)\n    ");
    TR_C_BEGIN(zero);
    tr_text_addf(&network->body, "%" PRId64 ", %s);\n    else\n    ", width, tr_c_all_name(network, y).text);
}

static tr_status write_pool(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_pool_rows_forward *op = &traced->as.pool_rows_forward;
    write_or_zero(network, traced, op->width, op->y);
    if (op->kind == TR_POOL_MAX)
        TR_C_BEGIN(greatest_row);
    else
        TR_C_BEGIN(mean_row);
    tr_text_addf(&network->body, "length, %" PRId64 ", %s, %s);\n", op->width,
                 tr_c_all_name(network, op->x).text, tr_c_all_name(network, op->y).text);
    return TR_OK;
}

/* For tokens that come one at a time only places matter, see c/plan.c. */
static tr_status write_last(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_sequence_last_forward *op = &traced->as.sequence_last_forward;
    if (!network->whole) return TR_OK;
    write_or_zero(network, traced, op->width, op->y);
    TR_C_BEGIN(copy);
    tr_text_addf(&network->body, "%" PRId64 ", %s + (length - 1) * %" PRId64 ", %s);\n", op->width,
                 tr_c_all_name(network, op->x).text, op->width, tr_c_all_name(network, op->y).text);
    return TR_OK;
}

bool tr_c_is_of_all(const struct tr_traced *traced)
{
    switch (traced->kind) {
    case TR_TRACED_pool_rows_forward:
        return traced->per_token;
    case TR_TRACED_attention_forward:
    case TR_TRACED_sequence_copy:
    case TR_TRACED_sequence_last_forward:
    case TR_TRACED_sequence_unfold:
        return true;
    default:
        return false;
    }
}

tr_status tr_c_write_tokens(struct tr_c_network *network, const struct tr_traced *traced)
{
    switch (traced->kind) {
    case TR_TRACED_attention_forward:
        return write_attention(network, traced);
    case TR_TRACED_dense_backward_data:
        return write_unembedding(network, traced);
    case TR_TRACED_embedding_forward:
        return write_embedding(network, traced);
    case TR_TRACED_gru_forward:
        return write_gru(network, traced);
    case TR_TRACED_lstm_forward:
        return write_lstm(network, traced);
    case TR_TRACED_pool_rows_forward:
        return traced->per_token ? write_pool(network, traced) : TR_ENOTFOUND;
    case TR_TRACED_position_forward:
        return write_position(network, traced);
    case TR_TRACED_rotary:
        return write_rotary(network, traced);
    case TR_TRACED_sequence_copy:
        return write_order(network, traced);
    case TR_TRACED_sequence_last_forward:
        return write_last(network, traced);
    case TR_TRACED_sequence_unfold:
        return write_unfold(network, traced);
    default:
        return TR_ENOTFOUND;
    }
}
