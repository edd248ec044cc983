/* The function that predicts: places, loops over tokens, and the operations in their order. */
#include "export/c/network.h"

#include "base/fail.h"

#include <inttypes.h>

static void write_storage(struct tr_c_network *network)
{
    for (int i = 0; i < network->trace->value_count; i++) {
        const struct tr_c_value *value = &network->value[i];
        if (value->storage != TR_C_WORKSPACE) continue;
        const struct tr_c_name offset = value->each == 0
                                            ? tr_c_size(network, value->offset, 0)
                                            : tr_c_size(network, network->workspace, value->offset);
        tr_text_addf(&network->body, "    float *const %s = workspace + %s;\n", value->name, offset.text);
    }
    for (int i = 0; i < network->trace->value_count; i++) {
        if (!network->value[i].zeroed) continue;
        tr_c_begin_call(network, NULL, TR_C_zero, "zero");
        tr_text_addf(&network->body, "%" PRId64 ", %s);\n", network->value[i].floats, network->value[i].name);
    }
}

static void write_comment(struct tr_c_network *network, const struct tr_traced *traced)
{
    char shape[TR_SHAPE_TEXT];
    if (traced->layer < 0 || traced->kind == TR_TRACED_sequence_last_forward) return;
    const struct tr_layer *layer = &network->trace->model->layers[traced->layer];
    tr_text_pad(&network->body, ' ', network->whole ? 4 : tr_c_indent(network, traced));
    tr_text_addf(&network->body, "/* %s: %s */\n", network->layer_name[traced->layer],
                 tr_shape_text(&layer->out, shape));
}

static tr_status write_operation(struct tr_c_network *network, const struct tr_traced *traced)
{
    const bool loop = network->whole && traced->per_token && !tr_c_is_of_all(traced);
    if (loop) tr_text_add(&network->body, "    for (int32_t t = 0; t < length; t++) {\n");
    tr_status status = tr_c_write_operation(network, traced);
    if (loop) tr_text_add(&network->body, "    }\n");
    return status;
}

/* Where layers take sequences of several lengths, sets `length` to that of the next operations. */
static void set_length(struct tr_c_network *network, int64_t tokens, int64_t *length)
{
    if (tokens == 0 || tokens == *length) return;
    tr_text_addf(&network->body, "    length = %" PRId64 ";\n", tokens);
    *length = tokens;
}

/* Whether some layers take fewer tokens than others. */
static bool has_lengths(const struct tr_model *model)
{
    for (int i = 0; i < model->layer_count; i++)
        if (model->layers[i].tokens_out > 0 && model->layers[i].tokens_out != model->image_tokens)
            return true;
    return false;
}

/* The operations for every token, those for the whole example, or all. */
static tr_status write_operations(struct tr_c_network *network, bool per_token)
{
    const struct tr_trace *trace = network->trace;
    int layer = -1;
    int64_t length = network->most_tokens;
    for (int i = 0; i < trace->count; i++) {
        const struct tr_traced *traced = &trace->item[i];
        if (!network->whole && traced->per_token != per_token) continue;
        if (traced->layer != layer) write_comment(network, traced);
        layer = traced->layer;
        if (layer >= 0) set_length(network, trace->model->layers[layer].tokens_in, &length);
        TR_TRY(write_operation(network, traced));
    }
    set_length(network, trace->model->layers[trace->model->layer_count - 1].tokens_out, &length);
    return TR_OK;
}

/* Where the output is not computed in its place. */
static void write_copy(struct tr_c_network *network, const char *count)
{
    const struct tr_trace *trace = network->trace;
    if (network->value[trace->output].storage == TR_C_OUTPUT) return;
    tr_c_begin_call(network, NULL, TR_C_copy, "copy");
    tr_text_addf(&network->body, "%s%" PRId64 ", %s, output);\n", count,
                 tr_shape_count(&trace->model->output),
                 tr_c_all_name(network, tr_trace_address(trace, trace->output)).text);
}

static void begin_body(struct tr_c_network *network, const char *type, const char *function,
                       const char *input)
{
    struct tr_text *body = &network->body;
    tr_text_addf(body, "%s %s_%s(%s, float *output, float *workspace)\n{\n", type, network->name, function,
                 input);
    size_t before = body->length;
    write_storage(network);
    if (body->length == before) tr_text_add(body, "    (void)workspace;\n");
}

static void write_limit(struct tr_c_network *network)
{
    if (network->most_tokens > 0)
        tr_text_addf(&network->body, "    if (length > %s_TOKENS) length = %s_TOKENS;\n", network->upper,
                     network->upper);
}

/* A function that takes one token, and one that takes all tokens and calls it for each. */
static tr_status write_next(struct tr_c_network *network)
{
    struct tr_text *body = &network->body;
    network->indent = 4;
    begin_body(network, "void", "next", "int32_t t, int32_t token");
    tr_text_add(body, "    (void)t;\n");
    TR_TRY(write_operations(network, true));
    write_copy(network, "");
    tr_text_addf(body,
                 "}\n\nint32_t %s_predict(const int32_t *tokens, int32_t length, float *output, float "
                 "*workspace)\n{\n",
                 network->name);
    write_limit(network);
    tr_text_addf(body,
                 "    for (int32_t t = 0; t < length; t++)\n"
                 "        %s_next(t, tokens[t], output + t * %s_OUTPUTS, workspace);\n"
                 "    return length;\n}\n",
                 network->name, network->upper);
    return TR_OK;
}

static tr_status write_predict(struct tr_c_network *network)
{
    struct tr_text *body = &network->body;
    network->indent = 8;
    begin_body(network, network->tokens ? "int32_t" : "void", "predict",
               network->tokens ? "const int32_t *tokens, int32_t length" : "const float *input");
    if (network->tokens)
        write_limit(network);
    else if (network->whole)
        tr_text_addf(body, "    %sint32_t length = %" PRId64 ";\n",
                     has_lengths(network->trace->model) ? "" : "const ", network->most_tokens);
    if (network->tokens && !network->whole) {
        tr_text_add(body, "    for (int32_t t = 0; t < length; t++) {\n        int32_t token = tokens[t];\n");
        TR_TRY(write_operations(network, true));
        tr_text_add(body, "    }\n");
    }
    TR_TRY(write_operations(network, false));
    write_copy(network, network->trace->model->output.sequence ? "length * " : "");
    tr_text_add(body, network->tokens ? "    return length;\n}\n" : "}\n");
    return TR_OK;
}

tr_status tr_c_network_body(struct tr_c_network *network)
{
    const struct tr_trace *trace = network->trace;
    return trace->model->output.sequence && !network->whole ? write_next(network) : write_predict(network);
}
