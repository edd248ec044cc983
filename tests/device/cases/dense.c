/* Cases of dense layers and LSTM. */
#include "device/cases/cases.h"

#include <stdio.h>

static const struct {
    int64_t rows, in, out;
} dense_shapes[] = {
    {1, 1, 1},
    {2, 3, 5},
    {13, 7, 17},
    {25, 33, 31},
    {50, 64, 10},
    {14, 16, 32},
    {15, 17, 33},
    {29, 5, 65},
    {27, 500, 11},
    {61, 801, 97},
    {7, 390, 530},
    {3, 37, 1100},
    {1, 770, 129},
    {128, 40, 64},
    {0, 5, 7},
    {12, 1, 48},
    {5, 100, 1},
    {100, 20, 15},
    {6, 2, 16},
    {97, 31, 127},
    {1, 1030, 2},
    /* rows that fall on the same places of a cache */
    {18, 512, 512},
    /* more rows than a block, and more steps than a group of blocks, of any device */
    {690, 2400, 9},
    {690, 5, 2400},
};

/* Gradients of more rows, and of more outputs that wait for their partner, than fit into a block; and of
   biases that end after each half of a panel, with one panel before or none. */
static const struct {
    int microbatches, rows; /* rows of each */
    int in, out;
} tall_shapes[] = {{3, 124, 33, 70}, {16, 17, 545, 485}, {2, 25, 9, 26},
                   {3, 20, 5, 50},   {2, 6, 9, 58},      {2, 9, 3, 29}};

static struct tr_cut tall_cut(struct scene *s, int index)
{
    const int count = tall_shapes[index].microbatches;
    for (int i = 0; i <= count; i++) s->row[i] = (int64_t)i * tall_shapes[index].rows;
    s->bound[0] = 0;
    s->bound[1] = count;
    return (struct tr_cut){.count = count, .row = s->row, .nodes = 1, .bound = s->bound};
}

bool case_dense_forward(struct scene *s, int index)
{
    int shapes = LENGTH(dense_shapes);
    if (index >= 2 * shapes) return false;
    struct tr_op_dense_forward a = {.rows = dense_shapes[index % shapes].rows,
                                    .in = dense_shapes[index % shapes].in,
                                    .out = dense_shapes[index % shapes].out,
                                    .activation = (enum tr_activation)(index % TR_ACT_GELU),
                                    .slope = 0.2f};
    scene_name(s, "rows %d, in %d, out %d, activation %d, %s bias", (int)a.rows, (int)a.in, (int)a.out,
               a.activation, index % 3 == 2 ? "no" : "with");
    a.x = scene_in(s, "x", a.rows * a.in);
    a.w = scene_in(s, "w", a.in * a.out);
    a.b = index % 3 == 2 ? NULL : scene_in(s, "b", a.out);
    a.y = scene_out(s, "y", a.rows * a.out);
    scene_end(s, tr_device_dense_forward(s->device, &a));
    return true;
}

bool case_dense_backward_data(struct scene *s, int index)
{
    if (index >= LENGTH(dense_shapes)) return false;
    struct tr_op_dense_backward_data a = {
        .rows = dense_shapes[index].rows, .in = dense_shapes[index].in, .out = dense_shapes[index].out};
    scene_name(s, "rows %d, in %d, out %d", (int)a.rows, (int)a.in, (int)a.out);
    a.dy = scene_in(s, "dy", a.rows * a.out);
    a.w = scene_in(s, "w", a.in * a.out);
    a.dx = scene_out(s, "dx", a.rows * a.in);
    scene_end(s, tr_device_dense_backward_data(s->device, &a));
    return true;
}

bool case_dense_gelu_forward(struct scene *s, int index)
{
    int shapes = LENGTH(dense_shapes);
    if (index >= 2 * shapes) return false;
    struct tr_op_dense_gelu_forward a = {
        .dense = {.rows = dense_shapes[index % shapes].rows,
                  .in = dense_shapes[index % shapes].in,
                  .out = dense_shapes[index % shapes].out,
                  .activation = index < shapes ? TR_ACT_GELU : TR_ACT_GELU_TANH}};
    scene_name(s, "rows %d, in %d, out %d, activation %d, %s bias", (int)a.dense.rows, (int)a.dense.in,
               (int)a.dense.out, a.dense.activation, index % 3 == 2 ? "no" : "with");
    a.dense.x = scene_in(s, "x", a.dense.rows * a.dense.in);
    a.dense.w = scene_in(s, "w", a.dense.in * a.dense.out);
    a.dense.b = index % 3 == 2 ? NULL : scene_in(s, "b", a.dense.out);
    a.dense.y = scene_out(s, "y", a.dense.rows * a.dense.out);
    a.derivative = scene_out(s, "derivative", a.dense.rows * a.dense.out);
    scene_end(s, tr_device_dense_gelu_forward(s->device, &a));
    return true;
}

bool case_dense_gelu_backward_data(struct scene *s, int index)
{
    if (index >= LENGTH(dense_shapes)) return false;
    struct tr_op_dense_gelu_backward_data a = {.dense = {.rows = dense_shapes[index].rows,
                                                         .in = dense_shapes[index].in,
                                                         .out = dense_shapes[index].out}};
    scene_name(s, "rows %d, in %d, out %d", (int)a.dense.rows, (int)a.dense.in, (int)a.dense.out);
    a.dense.dy = scene_in(s, "dy", a.dense.rows * a.dense.out);
    a.dense.w = scene_in(s, "w", a.dense.in * a.dense.out);
    a.derivative = scene_in(s, "derivative", a.dense.rows * a.dense.in);
    a.dense.dx = scene_out(s, "dx", a.dense.rows * a.dense.in);
    scene_end(s, tr_device_dense_gelu_backward_data(s->device, &a));
    return true;
}

bool case_dense_backward_weights(struct scene *s, int index)
{
    static const int in[] = {1, 3, 16, 33, 70, 400}, out[] = {1, 10, 17, 32, 65, 130};
    const int tall = index - 3 * scene_cuts(), bare = tall - LENGTH(tall_shapes);
    if (bare >= scene_cuts()) return false;
    struct tr_op_dense_backward_weights a = {0};
    if (bare >= 0) { /* the bias alone */
        a.out = out[bare % LENGTH(out)];
        a.cut = scene_cut(s, bare);
        a.cut.stride = a.out + 3;
    } else if (tall >= 0) {
        a.in = tall_shapes[tall].in;
        a.out = tall_shapes[tall].out;
        a.cut = tall_cut(s, tall);
    } else {
        a.in = in[index % LENGTH(in)];
        a.out = out[(index * 5 + index / 6) % LENGTH(out)];
        a.cut = scene_cut(s, index % scene_cuts());
    }
    const int64_t rows = a.cut.row[a.cut.count];
    scene_name(s, "%d microbatches, %d rows, in %d, out %d", a.cut.count, (int)rows, (int)a.in, (int)a.out);
    a.x = scene_in(s, "x", rows * a.in);
    a.dy = scene_in(s, "dy", rows * a.out);
    a.dw = scene_nodes(s, "dw", a.in * a.out, &a.cut);
    a.db = bare < 0 && index % 4 == 3 ? NULL : scene_nodes(s, "db", a.out, &a.cut);
    scene_end(s, tr_device_dense_backward_weights(s->device, &a));
    return true;
}

bool case_dense_backward_update(struct scene *s, int index)
{
    static const int in[] = {1, 16, 33, 71}, out[] = {1, 17, 32, 65, 131};
    const int rounds = 32 * CASE_RULES, tall = index - rounds - CASE_RULES;
    if (tall >= LENGTH(tall_shapes)) return false;
    struct tr_op_dense_backward_update a = {
        .weights = {.in = in[index % LENGTH(in)], .out = out[(index / 4) % LENGTH(out)]}};
    struct tr_op_dense_backward_weights *weights = &a.weights;
    if (tall >= 0) {
        weights->in = tall_shapes[tall].in;
        weights->out = tall_shapes[tall].out;
        weights->cut = tall_cut(s, tall);
    } else { /* one node of microbatches as they come; at least one, which may be empty */
        weights->cut = scene_cut(s, index % scene_cuts());
        if (weights->cut.count == 0) s->row[++weights->cut.count] = 0;
        s->bound[0] = 0;
        s->bound[1] = weights->cut.count;
        weights->cut.nodes = 1;
    }
    const int options = tall >= 0 ? 16 : index >= rounds ? CASE_HELD : index / CASE_RULES;
    const int64_t rows = weights->cut.row[weights->cut.count];
    char before[80];
    a.update = case_update_options((enum tr_rule)(index % CASE_RULES), options, weights->in * weights->out);
    snprintf(before, sizeof before, "%d microbatches, %d rows, in %d, out %d; ", weights->cut.count,
             (int)rows, (int)weights->in, (int)weights->out);
    case_update_name(s, &a.update, options, before);
    weights->x = scene_in(s, "x", rows * weights->in);
    weights->dy = scene_in(s, "dy", rows * weights->out);
    case_update_state(s, options, &a.update);
    scene_end(s, tr_device_dense_backward_update(s->device, &a));
    return true;
}

static const struct {
    int64_t examples, hidden;
    int32_t longest;
    bool empty, even; /* even: all are the longest */
} lstm_shapes[] = {
    {1, 1, 1, false},         {3, 3, 5, false},    {5, 8, 7, true},    {13, 17, 9, false},
    {17, 16, 4, true},        {31, 33, 6, false},  {2, 64, 19, false}, {29, 5, 12, true},
    {0, 4, 1, false},         {14, 130, 3, false}, {3, 270, 3, false}, /* more units than a group of a gpu has
                                                                          threads */
    {13, 40, 4, false, true},
};

#define LSTM_MOST_EXAMPLES 128

static int32_t *lstm_offsets(struct scene *s, int shape, int32_t *offset)
{
    const int64_t examples = lstm_shapes[shape].examples;
    if (!lstm_shapes[shape].even)
        return scene_offsets(s, examples, lstm_shapes[shape].longest, lstm_shapes[shape].empty, offset);
    for (int32_t e = 0; e <= examples; e++) offset[e] = e * lstm_shapes[shape].longest;
    return scene_data(s, "offset", (size_t)(examples + 1) * sizeof *offset, sizeof *offset, offset);
}

bool case_lstm_forward(struct scene *s, int index)
{
    if (index >= 2 * LENGTH(lstm_shapes)) return false;
    bool goes_on = index >= LENGTH(lstm_shapes);
    index %= LENGTH(lstm_shapes);
    int64_t examples = lstm_shapes[index].examples, hidden = lstm_shapes[index].hidden;
    int32_t offset[LSTM_MOST_EXAMPLES + 1];
    struct tr_op_lstm_forward a = {.examples = examples, .hidden = hidden};
    scene_name(s, "examples %d up to %d rows, hidden %d%s", (int)examples, lstm_shapes[index].longest,
               (int)hidden, goes_on ? ", going on" : "");
    a.h_before = goes_on ? scene_in(s, "h_before", hidden * examples) : NULL;
    a.c_before = goes_on ? scene_in(s, "c_before", hidden * examples) : NULL;
    a.offset = lstm_offsets(s, index, offset);
    a.w = scene_in(s, "w", 4 * hidden * hidden);
    a.b = scene_in(s, "b", 4 * hidden);
    a.gates = scene_in(s, "gates", 4 * hidden * offset[examples]);
    a.c = scene_out(s, "c", hidden * offset[examples]);
    a.h = scene_out(s, "h", hidden * offset[examples]);
    scene_end(s, tr_device_lstm_forward(s->device, &a));
    return true;
}

bool case_lstm_backward(struct scene *s, int index)
{
    static const int32_t truncates[] = {0, 1, 2, 5};
    int shapes = LENGTH(lstm_shapes), shape = index % shapes;
    if (index >= shapes * LENGTH(truncates)) return false;
    int64_t examples = lstm_shapes[shape].examples, hidden = lstm_shapes[shape].hidden;
    int32_t offset[LSTM_MOST_EXAMPLES + 1];
    struct tr_op_lstm_backward a = {
        .examples = examples, .hidden = hidden, .truncate = truncates[index / shapes]};
    scene_name(s, "examples %d up to %d rows, hidden %d, truncate %d", (int)examples,
               lstm_shapes[shape].longest, (int)hidden, a.truncate);
    a.offset = lstm_offsets(s, shape, offset);
    a.w = scene_in(s, "w", 4 * hidden * hidden);
    a.gates = scene_in(s, "gates", 4 * hidden * offset[examples]);
    a.c = scene_in(s, "c", hidden * offset[examples]);
    a.dy = scene_in(s, "dy", hidden * offset[examples]);
    a.dgates = scene_out(s, "dgates", 4 * hidden * offset[examples]);
    scene_end(s, tr_device_lstm_backward(s->device, &a));
    return true;
}

bool case_lstm_backward_weights(struct scene *s, int index)
{
    static const int hiddens[] = {1, 4, 9, 16, 33};
    if (index >= scene_cuts() + 8) return false;
    int cut = index % scene_cuts();
    int64_t examples = scene_cut_rows(cut), hidden = hiddens[index % LENGTH(hiddens)];
    int32_t offset[LSTM_MOST_EXAMPLES + 1];
    struct tr_op_lstm_backward_weights a = {.examples = examples, .hidden = hidden, .cut = scene_cut(s, cut)};
    scene_name(s, "cut %d of %d examples, hidden %d", cut, (int)examples, (int)hidden);
    a.offset = scene_offsets(s, examples, 6, index % 2, offset);
    a.h = scene_in(s, "h", hidden * offset[examples]);
    a.dgates = scene_in(s, "dgates", 4 * hidden * offset[examples]);
    a.dw = scene_nodes(s, "dw", 4 * hidden * hidden, &a.cut);
    scene_end(s, tr_device_lstm_backward_weights(s->device, &a));
    return true;
}
