/* The interface of a pass to its users: its inputs and outputs, the tensors at the ends of its range, the
 * range of its parameters, and its listeners.
 */
#include "nn/pass/internal.h"

float *tr_pass_input(tr_pass *pass)
{
    return pass->input;
}

/* The output of the layer that the feed writes, tokens or not; NULL without one. */
static void *fed_output(const tr_pass *pass, bool sequence)
{
    for (int i = 0; i < pass->model->part_layers; i++)
        if (pass->model->layers[i].fed && pass->model->layers[i].out.sequence == sequence &&
            pass_has(pass, i))
            return pass->layer[i].output;
    return NULL;
}

float *tr_pass_columns(tr_pass *pass)
{
    return fed_output(pass, false);
}

int32_t *tr_pass_second_token(tr_pass *pass)
{
    return fed_output(pass, true);
}

int32_t *tr_pass_second_offset(tr_pass *pass)
{
    return pass->second.offset;
}

int32_t *tr_pass_token(tr_pass *pass)
{
    return pass->token;
}

int32_t *tr_pass_offset(tr_pass *pass)
{
    return pass->offset;
}

int32_t *tr_pass_label(tr_pass *pass)
{
    return pass->label;
}

float *tr_pass_target(tr_pass *pass)
{
    return pass->target;
}

const float *tr_pass_output(const tr_pass *pass)
{
    return pass->layer[pass->exit].output;
}

static struct tr_pass_port port_at(const tr_pass *pass, int layer)
{
    const struct tr_shape *shape = &pass->model->layers[layer].out;
    return (struct tr_pass_port){pass->layer[layer].output, pass->layer[layer].gradient,
                                 tr_shape_count(shape), shape->sequence};
}

struct tr_pass_port tr_pass_entry(const tr_pass *pass)
{
    return pass->entry < 0 ? (struct tr_pass_port){0} : port_at(pass, pass->entry);
}

struct tr_pass_port tr_pass_exit(const tr_pass *pass)
{
    return pass_is_last(pass) ? (struct tr_pass_port){0} : port_at(pass, pass->exit);
}

tr_status tr_pass_stage(tr_device *device, const struct tr_pass_port *port, float *memory,
                        const struct tr_pass_limits *limits, struct tr_staging *out)
{
    if (!memory) return TR_OK;
    tr_staging_over(device, (port->sequence ? limits->tokens : limits->examples) * port->width, memory, out);
    return tr_staging_open(out);
}

bool tr_pass_tie(const tr_pass *pass, int index, struct tr_pass_tie *out)
{
    const struct tr_model *model = pass->model;
    for (int i = 0; i < model->layer_count; i++) {
        const int lender = model->layers[i].tie.lender;
        if (lender < 0 || tr_layer_is_base(&model->layers[lender])) continue;
        if (pass_has(pass, i) == pass_has(pass, lender) || index-- > 0) continue;
        const struct tr_layer *layer = &model->layers[lender];
        const bool lends = pass_has(pass, lender);
        *out = (struct tr_pass_tie){
            .lender = lender,
            .borrower = i,
            .lends = lends,
            .floats = model->parameters[layer->parameter[0]].count,
            .leaves = lends ? pass->layer[lender].buffer[layer->tie.buffer] : pass->layer[i].leaves,
        };
        return true;
    }
    return false;
}

void tr_pass_lend(tr_pass *pass, int borrower, const float *parameter)
{
    pass->layer[borrower].lent = parameter;
}

static int64_t port_floats(struct tr_pass_port port, const struct tr_pass_batch *batch)
{
    return (port.sequence ? batch->tokens : batch->examples) * port.width;
}

int64_t tr_pass_entry_floats(const tr_pass *pass, const struct tr_pass_batch *batch)
{
    return port_floats(tr_pass_entry(pass), batch);
}

int64_t tr_pass_exit_floats(const tr_pass *pass, const struct tr_pass_batch *batch)
{
    return port_floats(tr_pass_exit(pass), batch);
}

/* Parameters lie in the order of their layers. */
static int64_t arena_before(const struct tr_model *model, int layer)
{
    for (; layer < model->layer_count; layer++)
        if (model->layers[layer].parameter_count)
            return model->parameters[model->layers[layer].parameter[0]].offset;
    return model->arena_floats;
}

void tr_pass_arena(const struct tr_model *model, int first_layer, int end_layer, int64_t *begin, int64_t *end)
{
    *begin = first_layer == 0 ? 0 : arena_before(model, first_layer);
    *end = arena_before(model, end_layer);
}

const float *tr_pass_loss_rows(const tr_pass *pass)
{
    return pass->loss_rows;
}

const float *tr_pass_correct_rows(const tr_pass *pass)
{
    return pass->correct_rows;
}

void tr_pass_observe(tr_pass *pass, tr_pass_observer observer, void *user)
{
    pass->observer = observer;
    pass->observer_user = user;
}

void tr_pass_accompany(tr_pass *pass, tr_pass_companion companion, void *user)
{
    pass->companion = companion;
    pass->companion_user = user;
}

void tr_pass_leave_apart(tr_pass *pass, const bool *apart, tr_pass_taker taker, void *user)
{
    pass->apart = apart;
    pass->taker = taker;
    pass->taker_user = user;
}

void tr_pass_listen(tr_pass *pass, tr_pass_listener listener, void *user)
{
    pass->listener = listener;
    pass->listener_user = user;
}
