/* Names and places: the identifier of each layer, and the place of each value in the workspace. */
#include "export/c/network.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/ascii.h"
#include "tensor/planner.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- identifiers ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* `name` with '_' for characters that C does not allow, and `fallback` before it where it does not begin
   with a letter. */
static void make_identifier(const char *name, const char *fallback, char identifier[TR_C_IDENTIFIER])
{
    snprintf(identifier, TR_C_IDENTIFIER, "%s%.70s", is_letter(*name) ? "" : fallback, name);
    for (char *c = identifier; *c; c++)
        if (!is_letter(*c) && !tr_is_digit(*c)) *c = '_';
}

static bool is_taken(const struct tr_c_network *network, int layers, const char *identifier)
{
    for (int i = 0; i < layers; i++)
        if (strcmp(network->layer_name[i], identifier) == 0) return true;
    return false;
}

static tr_status name_layers(struct tr_c_network *network)
{
    const struct tr_model *model = network->trace->model;
    network->layer_name = tr_alloc((size_t)model->layer_count, sizeof *network->layer_name);
    if (!network->layer_name) return TR_ENOMEM;
    for (int i = 0; i < model->layer_count; i++) {
        char first[TR_C_IDENTIFIER];
        make_identifier(model->layers[i].name, "layer_", first);
        memcpy(network->layer_name[i], first, sizeof first);
        for (int n = 2; is_taken(network, i, network->layer_name[i]); n++)
            snprintf(network->layer_name[i], TR_C_IDENTIFIER, "%.80s_%d", first, n);
    }
    return TR_OK;
}

static void name_network(struct tr_c_network *network)
{
    make_identifier(network->settings->name, "net_", network->name);
    for (size_t i = 0; i < sizeof network->upper; i++) network->upper[i] = tr_text_upper(network->name[i]);
}

/* ---- sizes ---- */

#define TOKENS_MOST 512 /* where nothing in the network limits the number of tokens */

/* Whether a token sees those after it, or the operation takes them all in another way. */
static bool looks_ahead(const struct tr_traced *traced)
{
    if (traced->kind == TR_TRACED_attention_forward) return !traced->as.attention_forward.at.causal;
    return traced->kind != TR_TRACED_sequence_last_forward && tr_c_is_of_all(traced);
}

/* Attention keeps all tokens, as everything does where tokens see those after them. Texts may be longer than
 * a table of positions, whose last vector all further ones get; the shortest table, or what attention is
 * meant for where that is no more than there is room for, says how far texts that are written look back. */
static void count_tokens(struct tr_c_network *network)
{
    const struct tr_trace *trace = network->trace;
    const int64_t image_tokens = trace->model->image_tokens;
    int64_t least = 0;
    bool keeps = false;
    network->whole = image_tokens > 0;
    for (int i = 0; i < trace->count; i++) {
        const struct tr_traced *traced = &trace->item[i];
        network->whole |= looks_ahead(traced);
        keeps |= traced->kind == TR_TRACED_attention_forward;
        if (traced->kind != TR_TRACED_position_forward) continue;
        int64_t length = traced->as.position_forward.length;
        if (least == 0 || length < least) least = length;
    }
    const int64_t longest = tr_model_longest(trace->model);
    network->context = least == 0 && longest > TOKENS_MOST ? 0 : longest;
    if (keeps || network->whole) network->most_tokens = least > TOKENS_MOST ? least : TOKENS_MOST;
    if (image_tokens > 0) network->most_tokens = image_tokens;
}

/* Memory of attention: the earlier tokens, or the scores of all. */
static bool is_of_attention(const struct tr_c_network *network, const struct tr_traced *traced, int value)
{
    return traced->kind == TR_TRACED_attention_forward &&
           value == tr_trace_value(network->trace, traced->as.attention_forward.at.shift);
}

/* The size of an operation's output for an example or token; private memory of a layer has no shape. */
static int64_t written_floats(const struct tr_c_network *network, const struct tr_traced *traced, int value)
{
    const struct tr_trace *trace = network->trace;
    switch (traced->kind) {
    case TR_TRACED_attention_forward: {
        const struct tr_attention *at = &traced->as.attention_forward.at;
        if (!is_of_attention(network, traced, value)) return at->heads * at->size;
        return network->whole ? 1 : 2 * at->kv_heads * at->size + 1;
    }
    case TR_TRACED_dense_forward:
        return traced->as.dense_forward.out;
    case TR_TRACED_gru_forward: /* and the additions of the recurrence to its gates */
        return traced->as.gru_forward.hidden *
               (value == tr_trace_value(trace, traced->as.gru_forward.inner) ? 3 : 1);
    case TR_TRACED_join_columns: {
        const struct tr_op_join_columns *op = &traced->as.join_columns;
        int64_t width = 0;
        for (int32_t k = 0; k < op->parts; k++) width += op->width[k];
        return op->rows * width;
    }
    case TR_TRACED_lstm_forward:
        return traced->as.lstm_forward.hidden;
    case TR_TRACED_rotary:
        return traced->as.rotary.step;
    case TR_TRACED_sequence_copy:
        return traced->as.sequence_copy.y_step;
    case TR_TRACED_sequence_unfold:
        return traced->as.sequence_unfold.width * traced->as.sequence_unfold.taps;
    default:
        return tr_shape_count(&trace->value[value].shape);
    }
}

/* Whether an operation's output exists once, though the operation is called for each token. */
static bool is_single(const struct tr_c_network *network, const struct tr_traced *traced, int value)
{
    const struct tr_trace *trace = network->trace;
    switch (traced->kind) {
    case TR_TRACED_gru_forward:
        return value == tr_trace_value(trace, traced->as.gru_forward.inner);
    case TR_TRACED_lstm_forward:
        return value == tr_trace_value(trace, traced->as.lstm_forward.c);
    case TR_TRACED_pool_rows_forward:
    case TR_TRACED_sequence_last_forward:
        return true;
    default:
        return false;
    }
}

/* Of tokens that see those after them, and of attention in any case, there is as much as there are tokens.
 */
static void size_value(struct tr_c_network *network, const struct tr_traced *traced, int value)
{
    struct tr_c_value *at = &network->value[value];
    const struct tr_layer *layer = traced->layer < 0 ? NULL : &network->trace->model->layers[traced->layer];
    const int64_t floats = written_floats(network, traced, value);
    const bool attention = is_of_attention(network, traced, value);
    const bool rows = network->whole && traced->per_token && !is_single(network, traced, value);
    at->floats = floats;
    if (rows || attention) {
        at->row = attention ? 0 : floats;
        at->floats = network->tokens ? 0 : floats * network->most_tokens;
        at->each = network->tokens ? floats : 0;
    } else if (network->whole && layer && layer->out.rank == 3 && !is_single(network, traced, value)) {
        at->row = layer->out.size[2]; /* an image, which others may take as tokens */
    } else if (network->whole && layer && layer->out.sequence && layer->tokens_out > 0 &&
               !traced->per_token) { /* all tokens at once */
        at->row = floats;
        at->floats = floats * layer->tokens_out;
    }
}

static tr_status check_sizes(const struct tr_c_network *network)
{
    const struct tr_trace *trace = network->trace;
    for (int i = 0; i < trace->value_count; i++) {
        const int64_t floats = network->value[i].floats + network->value[i].each * network->most_tokens;
        if (floats > INT32_MAX)
            return tr_fail(TR_EUNSUPPORTED,
                           "the output of layer \"%s\" has %" PRId64 " values; files of C take at most %d",
                           tr_trace_value_name(trace, i), floats, INT32_MAX);
    }
    for (int i = 0; i < trace->model->parameter_count; i++)
        if (trace->model->parameters[i].count > INT32_MAX)
            return tr_fail(TR_EUNSUPPORTED,
                           "parameter \"%s\" has %" PRId64 " values; files of C take at most %d",
                           trace->model->parameters[i].name, trace->model->parameters[i].count, INT32_MAX);
    return TR_OK;
}

/* ---- places ---- */

static void name_value(struct tr_c_network *network, int value, const char *what)
{
    const char *layer = network->layer_name[network->trace->value[value].layer];
    char *name = network->value[value].name;
    snprintf(name, TR_C_IDENTIFIER, "%.80s_%s", layer, what);
    for (int i = 0; i < network->trace->value_count; i++) /* a layer may be made of two */
        if (i != value && strcmp(network->value[i].name, name) == 0)
            snprintf(name, TR_C_IDENTIFIER, "%.80s_%s_2", layer, what);
}

static void extend(struct tr_interval *life, int event)
{
    if (event < life->first) life->first = event;
    if (event > life->last) life->last = event;
}

/* Names of private memory. */
static void name_memory(struct tr_c_network *network, const struct tr_traced *traced,
                        const struct tr_traced_ports *ports)
{
    switch (traced->kind) {
    case TR_TRACED_attention_forward:
        name_value(network, ports->read[0], "projected");
        name_value(network, ports->write[0], "attended");
        name_value(network, ports->write[1], network->whole ? "scores" : "cache");
        break;
    case TR_TRACED_join_columns:
        if (ports->write[0] >= TR_VALUE_LAYERS + network->trace->model->layer_count)
            name_value(network, ports->write[0], "widened");
        break;
    case TR_TRACED_gru_forward:
    case TR_TRACED_lstm_forward:
        name_value(network, ports->read[0], "gates");
        name_value(network, ports->write[1], traced->kind == TR_TRACED_gru_forward ? "inner" : "state");
        break;
    default:
        break;
    }
}

/* Operations run in the order of the trace; those of tokens, which come first, once for each token. */
static void find_lives(struct tr_c_network *network, struct tr_interval *life)
{
    const struct tr_trace *trace = network->trace;
    int tokens_end = 0;
    for (int i = 0; i < trace->count; i++) {
        assert(!trace->item[i].per_token || tokens_end == i || network->whole);
        tokens_end += trace->item[i].per_token;
    }
    for (int i = 0; i < trace->count; i++) {
        const struct tr_traced *traced = &trace->item[i];
        struct tr_traced_ports ports = tr_trace_ports(trace, traced);
        for (int k = 0; k < 2; k++) {
            int to = ports.write[k];
            if (to < 0) continue;
            size_value(network, traced, to);
            extend(&life[to], i);
        }
        for (int k = 0; k < TR_TRACED_READS; k++)
            if (ports.read[k] >= 0) extend(&life[ports.read[k]], i);
        name_memory(network, traced, &ports);
        bool attends = traced->kind == TR_TRACED_attention_forward;
        bool recurs = traced->kind == TR_TRACED_lstm_forward || traced->kind == TR_TRACED_gru_forward;
        if (network->whole) continue;
        /* Values that pass from token to token live for all tokens. */
        for (int k = attends ? 1 : 0; k < 2 && (attends || recurs); k++) {
            extend(&life[ports.write[k]], 0);
            extend(&life[ports.write[k]], tokens_end - 1);
        }
    }
}

/* The vector of the last token lies in its place after the last token; zeros if there were no tokens. */
static void follow_last(struct tr_c_network *network, struct tr_interval *life)
{
    const struct tr_trace *trace = network->trace;
    for (int i = trace->count - 1; i >= 0; i--) {
        if (trace->item[i].kind != TR_TRACED_sequence_last_forward) continue;
        struct tr_traced_ports ports = tr_trace_ports(trace, &trace->item[i]);
        int from = ports.read[0], to = ports.write[0];
        extend(&life[from], 0);
        extend(&life[from], life[to].last);
        network->value[from].zeroed = true;
        network->value[to].storage = TR_C_SAME;
        network->value[to].same = from;
    }
}

/* Whether the output is computed in its place. A value that passes from token to token would be
   overwritten. */
static bool makes_output(const struct tr_c_network *network)
{
    const struct tr_trace *trace = network->trace;
    const int writer = tr_trace_writer(trace, trace->output);
    if (writer < 0) return false;
    const struct tr_traced *traced = &trace->item[writer];
    if (network->whole || !traced->per_token) return true;
    return trace->model->output.sequence && traced->kind != TR_TRACED_lstm_forward &&
           traced->kind != TR_TRACED_gru_forward;
}

/* The rows of a sequence in name only: numbers of the data, or an image, which a layer takes as tokens. */
static void note_rows(struct tr_c_network *network)
{
    const struct tr_trace *trace = network->trace;
    const struct tr_model *model = trace->model;
    for (int i = 0; i < model->layer_count && network->whole; i++) {
        const struct tr_layer *layer = &model->layers[i];
        int source = tr_model_source(model, i),
            value = source < 0 ? TR_VALUE_INPUT : TR_VALUE_LAYERS + source;
        if (!layer->alias || !layer->out.sequence || layer->in[0].sequence) continue;
        while (trace->value[value].same != value) value = trace->value[value].same;
        network->value[value].row = layer->out.size[0];
    }
}

/* Sources of an example follow one another. */
static void store_given(struct tr_c_network *network)
{
    const struct tr_trace *trace = network->trace;
    for (int i = 0; i < trace->given; i++) {
        struct tr_c_value *value = &network->value[TR_VALUE_GIVEN + i];
        value->storage = TR_C_GIVEN;
        value->floats = tr_shape_count(&trace->value[TR_VALUE_GIVEN + i].shape);
        snprintf(value->name, TR_C_IDENTIFIER, network->inputs > 0 ? "input + %" PRId64 : "input",
                 network->inputs);
        network->inputs += value->floats;
    }
    snprintf(network->value[TR_VALUE_INPUT].name, TR_C_IDENTIFIER, "%s",
             trace->model->input.rank == 3 ? "pixels" : "scaled");
    note_rows(network);
}

#define UNIT 64 /* the planner rounds offsets to multiples of this: a float counts as so many bytes */

/* Places the values that grow with the tokens, or the others. */
static tr_status plan_storage(struct tr_c_network *network, struct tr_interval *life, bool each,
                              int64_t *floats)
{
    const int count = network->trace->value_count;
    size_t bytes;
    for (int i = 0; i < count; i++) {
        const struct tr_c_value *value = &network->value[i];
        const bool placed = value->storage == TR_C_WORKSPACE && (value->each > 0) == each;
        life[i].bytes = placed ? (size_t)(each ? value->each : value->floats) * UNIT : 0;
    }
    TR_TRY(tr_plan(life, (size_t)count, &bytes));
    for (int i = 0; i < count; i++)
        if (life[i].bytes > 0) network->value[i].offset = (int64_t)(life[i].offset / UNIT);
    *floats = (int64_t)(bytes / UNIT);
    return TR_OK;
}

static tr_status assign_storage(struct tr_c_network *network, struct tr_interval *life)
{
    const struct tr_trace *trace = network->trace;
    for (int i = 0; i < trace->value_count; i++) {
        life[i] = (struct tr_interval){.first = trace->count, .last = -1};
        network->value[i].storage = TR_C_WORKSPACE;
        if (trace->value[i].layer < 0) continue;
        char what[24] = "out";
        if (i >= TR_VALUE_LAYERS + trace->model->layer_count) /* private memory */
            snprintf(what, sizeof what, "memory%d",
                     (i - TR_VALUE_LAYERS - trace->model->layer_count) % TR_LAYER_BUFFERS);
        name_value(network, i, what);
    }
    store_given(network);
    find_lives(network, life);
    TR_TRY(check_sizes(network));
    extend(&life[trace->output], trace->count);
    if (!network->whole) follow_last(network, life);
    if (makes_output(network)) network->value[trace->output].storage = TR_C_OUTPUT;
    for (int i = 0; i < trace->value_count; i++)
        if (network->value[i].storage == TR_C_WORKSPACE && life[i].last < 0)
            network->value[i].storage = TR_C_NOWHERE;
    TR_TRY(plan_storage(network, life, false, &network->workspace));
    return plan_storage(network, life, true, &network->workspace_each);
}

tr_status tr_c_network_plan(const struct tr_trace *trace, const struct tr_c_settings *settings,
                            struct tr_c_network *network)
{
    const struct tr_model *model = trace->model;
    *network = (struct tr_c_network){.trace = trace, .settings = settings, .tokens = model->input.sequence};
    name_network(network);
    TR_TRY(tr_c_texts_unpack(&network->texts));
    TR_TRY(name_layers(network));
    count_tokens(network);
    network->value = tr_alloc_zero((size_t)trace->value_count, sizeof *network->value);
    network->parameter_used = tr_alloc_zero((size_t)model->parameter_count + 1, sizeof(bool));
    struct tr_interval *life = tr_alloc((size_t)trace->value_count, sizeof *life);
    tr_status status =
        network->value && network->parameter_used && life ? assign_storage(network, life) : TR_ENOMEM;
    tr_free(life);
    return status;
}

void tr_c_network_release(struct tr_c_network *network)
{
    tr_text_release(&network->body);
    tr_free(network->parameter_used);
    tr_free(network->value);
    tr_free(network->layer_name);
    tr_free(network->texts);
    *network = (struct tr_c_network){0};
}

const char *tr_c_parameter_name(const struct tr_c_network *network, int parameter,
                                char name[2 * TR_C_IDENTIFIER])
{
    const struct tr_model *model = network->trace->model;
    const char *full = model->parameters[parameter].name, *own = strchr(full, '.');
    int layer = 0;
    for (int i = 0; i < model->layer_count; i++)
        for (int k = 0; k < model->layers[i].parameter_count; k++)
            if (model->layers[i].parameter[k] == parameter) layer = i;
    snprintf(name, 2 * TR_C_IDENTIFIER, "%s_%s", network->layer_name[layer], own ? own + 1 : full);
    for (char *c = name; *c; c++)
        if (*c == '.') *c = '_'; /* of a layer within the layer */
    return name;
}
