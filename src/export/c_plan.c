/* Names and places: which identifier each layer gets, and where in the workspace each value lies. */
#include "export/c_network.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "tensor/planner.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- identifiers ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* `name` with '_' for what C does not allow, and `fallback` before it where it does not begin with a letter.
 */
static void make_identifier(const char *name, const char *fallback, char identifier[TR_C_IDENTIFIER])
{
    snprintf(identifier, TR_C_IDENTIFIER, "%s%.70s", is_letter(*name) ? "" : fallback, name);
    for (char *c = identifier; *c; c++)
        if (!is_letter(*c) && !is_digit(*c)) *c = '_';
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

/* What an operation writes to private memory of its layer has no shape. */
static int64_t written_floats(const struct tr_trace *trace, const struct tr_traced *traced, int value)
{
    if (traced->kind == TR_TRACED_dense_forward) return traced->as.dense_forward.out;
    if (traced->kind == TR_TRACED_lstm_forward) return traced->as.lstm_forward.hidden;
    return tr_shape_count(&trace->value[value].shape);
}

static tr_status check_sizes(const struct tr_c_network *network)
{
    const struct tr_trace *trace = network->trace;
    for (int i = 0; i < trace->value_count; i++)
        if (network->value[i].floats > INT32_MAX)
            return tr_fail(TR_EUNSUPPORTED,
                           "the output of layer \"%s\" has %" PRId64 " values; files of C take at most %d",
                           tr_trace_value_name(trace, i), network->value[i].floats, INT32_MAX);
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
    snprintf(network->value[value].name, TR_C_IDENTIFIER, "%.80s_%s", layer, what);
}

static void extend(struct tr_interval *life, int event)
{
    if (event < life->first) life->first = event;
    if (event > life->last) life->last = event;
}

/* Operations run in the order of the trace; those of tokens, which come first, once for each token. */
static void find_lives(struct tr_c_network *network, struct tr_interval *life)
{
    const struct tr_trace *trace = network->trace;
    int tokens_end = 0;
    for (int i = 0; i < trace->count; i++) {
        assert(!trace->item[i].per_token || tokens_end == i);
        tokens_end += trace->item[i].per_token;
    }
    for (int i = 0; i < trace->count; i++) {
        const struct tr_traced *traced = &trace->item[i];
        struct tr_traced_ports ports = tr_trace_ports(trace, traced);
        for (int k = 0; k < 2; k++) {
            int to = ports.write[k], from = ports.read[k];
            if (to >= 0) {
                network->value[to].floats = written_floats(trace, traced, to);
                extend(&life[to], i);
            }
            if (from >= 0) extend(&life[from], i);
        }
        if (traced->kind != TR_TRACED_lstm_forward) continue;
        /* What goes from token to token lives as long as there are tokens. */
        for (int k = 0; k < 2; k++) {
            extend(&life[ports.write[k]], 0);
            extend(&life[ports.write[k]], tokens_end - 1);
        }
        name_value(network, ports.read[0], "gates");
        name_value(network, ports.write[1], "state");
    }
}

/* The vector of the last token is what lies in its place when the tokens have ended; zeros if there were
 * none. */
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
        network->value[to].place = TR_C_SAME;
        network->value[to].same = from;
    }
}

static tr_status place(struct tr_c_network *network, struct tr_interval *life)
{
    const struct tr_trace *trace = network->trace;
    size_t bytes;
    for (int i = 0; i < trace->value_count; i++) {
        life[i] = (struct tr_interval){.first = trace->count, .last = -1};
        network->value[i].place = TR_C_WORKSPACE;
        snprintf(network->value[i].name, TR_C_IDENTIFIER, "%s", i == TR_VALUE_GIVEN ? "input" : "pixels");
        if (trace->value[i].layer < 0) continue;
        name_value(network, i, "out");
    }
    network->value[TR_VALUE_GIVEN].place = TR_C_GIVEN;
    network->value[TR_VALUE_GIVEN].floats = tr_shape_count(&trace->value[TR_VALUE_GIVEN].shape);
    find_lives(network, life);
    TR_TRY(check_sizes(network));
    extend(&life[trace->output], trace->count);
    follow_last(network, life);
    int writer = tr_trace_writer(trace, trace->output);
    if (writer >= 0 && !trace->item[writer].per_token) network->value[trace->output].place = TR_C_OUTPUT;
    for (int i = 0; i < trace->value_count; i++) {
        bool placed = network->value[i].place == TR_C_WORKSPACE && life[i].last >= 0;
        if (placed)
            life[i].bytes = (size_t)network->value[i].floats * sizeof(float);
        else if (network->value[i].place == TR_C_WORKSPACE)
            network->value[i].place = TR_C_NOWHERE;
    }
    TR_TRY(tr_plan(life, (size_t)trace->value_count, &bytes));
    for (int i = 0; i < trace->value_count; i++)
        network->value[i].offset = (int64_t)(life[i].offset / sizeof(float));
    network->workspace = bytes ? (int64_t)(bytes / sizeof(float)) : 1;
    return TR_OK;
}

tr_status tr_c_network_plan(const struct tr_trace *trace, const struct tr_c_settings *settings,
                            struct tr_c_network *network)
{
    const struct tr_model *model = trace->model;
    *network = (struct tr_c_network){.trace = trace, .settings = settings, .tokens = model->input.sequence};
    name_network(network);
    TR_TRY(name_layers(network));
    network->value = tr_alloc_zero((size_t)trace->value_count, sizeof *network->value);
    network->parameter_used = tr_alloc_zero((size_t)model->parameter_count + 1, sizeof(bool));
    struct tr_interval *life = tr_alloc((size_t)trace->value_count, sizeof *life);
    tr_status status = network->value && network->parameter_used && life ? place(network, life) : TR_ENOMEM;
    tr_free(life);
    return status;
}

void tr_c_network_release(struct tr_c_network *network)
{
    tr_text_release(&network->body);
    tr_free(network->parameter_used);
    tr_free(network->value);
    tr_free(network->layer_name);
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
    return name;
}
