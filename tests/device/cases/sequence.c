/* Cases of embeddings, of what becomes of rows of a sequence, and of the gated recurrent unit. */
#include "device/cases/cases.h"

static const int widths[] = {1, 3, 16, 17, 33, 128};

#define MOST_EXAMPLES 64
#define WIDE          300 /* more than a group of a gpu has threads */

bool case_embedding_forward(struct scene *s, int index)
{
    static const int rows[] = {1, 7, 0, 100, 333};
    bool wide = index == LENGTH(rows) * LENGTH(widths);
    if (index >= LENGTH(rows) * LENGTH(widths) + 1) return false;
    struct tr_op_embedding_forward a = {.rows = wide ? 9 : rows[index / LENGTH(widths)],
                                        .vocabulary = 1 + index * 7,
                                        .width = wide ? WIDE : widths[index % LENGTH(widths)]};
    scene_name(s, "rows %d, vocabulary %d, width %d", (int)a.rows, (int)a.vocabulary, (int)a.width);
    a.token = scene_indices(s, "token", a.rows, (int32_t)a.vocabulary);
    a.table = scene_in(s, "table", a.vocabulary * a.width);
    a.y = scene_out(s, "y", a.rows * a.width);
    scene_end(s, tr_device_embedding_forward(s->device, &a));
    return true;
}

bool case_embedding_backward(struct scene *s, int index)
{
    static const int vocabularies[] = {1, 5, 50, 301};
    /* And long ones: some words in many rows, most in none. */
    static const struct {
        int64_t vocabulary, width, row[6];
        int32_t nodes, bound[4];
    } many[] = {
        {7, 5, {0, 256, 256, 600}, 1, {0, 3}},
        {700, 3, {0, 1, 299, 301, 700, 769}, 2, {0, 4, 5}},
        {301, WIDE, {0, 10, 20}, 2, {0, 1, 2}},
    };
    int large = index - 3 * scene_cuts();
    if (large >= LENGTH(many)) return false;
    int cut = index % scene_cuts();
    struct tr_op_embedding_backward a = {
        .vocabulary = vocabularies[(index + index / scene_cuts()) % LENGTH(vocabularies)],
        .width = widths[index % LENGTH(widths)]};
    if (large >= 0) {
        a.vocabulary = many[large].vocabulary;
        a.width = many[large].width;
        a.cut = (struct tr_cut){.count = many[large].bound[many[large].nodes],
                                .row = many[large].row,
                                .nodes = many[large].nodes,
                                .bound = many[large].bound};
    } else {
        a.cut = scene_cut(s, cut);
    }
    int64_t rows = a.cut.row[a.cut.count];
    scene_name(s, "%d microbatches, %d rows, vocabulary %d, width %d", a.cut.count, (int)rows,
               (int)a.vocabulary, (int)a.width);
    a.token = scene_indices(s, "token", rows, (int32_t)a.vocabulary);
    a.dy = scene_in(s, "dy", rows * a.width);
    a.dtable = scene_nodes(s, "dtable", a.vocabulary * a.width, &a.cut);
    a.workspace = scene_workspace(s, (a.vocabulary + 1 + rows) * (int64_t)sizeof(int32_t), sizeof(int32_t));
    scene_end(s, tr_device_embedding_backward(s->device, &a));
    return true;
}

bool case_sequence_last_forward(struct scene *s, int index)
{
    int32_t offset[MOST_EXAMPLES + 1];
    if (index >= 3 * LENGTH(widths) + 1) return false;
    bool wide = index == 3 * LENGTH(widths);
    struct tr_op_sequence_last_forward a = {.examples = index * 5 % 23,
                                            .width = wide ? WIDE : widths[index % LENGTH(widths)]};
    scene_name(s, "examples %d, width %d", (int)a.examples, (int)a.width);
    a.offset = scene_offsets(s, a.examples, 9, index % 2, offset);
    a.x = scene_in(s, "x", offset[a.examples] * a.width);
    a.y = scene_out(s, "y", a.examples * a.width);
    scene_end(s, tr_device_sequence_last_forward(s->device, &a));
    return true;
}

bool case_sequence_last_backward(struct scene *s, int index)
{
    int32_t offset[MOST_EXAMPLES + 1];
    if (index >= 3 * LENGTH(widths) + 1) return false;
    bool wide = index == 3 * LENGTH(widths);
    struct tr_op_sequence_last_backward a = {.examples = index * 5 % 23,
                                             .width = wide ? WIDE : widths[index % LENGTH(widths)]};
    scene_name(s, "examples %d, width %d", (int)a.examples, (int)a.width);
    a.offset = scene_offsets(s, a.examples, 9, index % 2, offset);
    a.dy = scene_in(s, "dy", a.examples * a.width);
    a.dx = scene_out(s, "dx", offset[a.examples] * a.width);
    scene_end(s, tr_device_sequence_last_backward(s->device, &a));
    return true;
}

/* Examples of a batch, in images of so many pixels or as sequences. */
static const int32_t *rows_of_examples(struct scene *s, int index, int64_t examples, int64_t *spatial,
                                       int64_t *rows)
{
    int32_t offset[MOST_EXAMPLES + 1];
    *spatial = index % 3 ? 0 : 1 + index % 7;
    *rows = examples * *spatial;
    if (*spatial) return NULL;
    const int32_t *device = scene_offsets(s, examples, 9, index % 2, offset);
    *rows = offset[examples];
    return device;
}

bool case_pool_rows_forward(struct scene *s, int index)
{
    int64_t rows;
    if (index >= 6 * LENGTH(widths)) return false;
    struct tr_op_pool_rows_forward a = {.examples = index * 5 % 23,
                                        .width = widths[index % LENGTH(widths)],
                                        .kind = index / 6 % 2 ? TR_POOL_MAX : TR_POOL_AVERAGE};
    scene_name(s, "examples %d, width %d, kind %d", (int)a.examples, (int)a.width, (int)a.kind);
    a.offset = rows_of_examples(s, index, a.examples, &a.spatial, &rows);
    a.x = scene_in(s, "x", rows * a.width);
    a.y = scene_out(s, "y", a.examples * a.width);
    if (a.kind == TR_POOL_MAX && index % 4)
        a.taken = (int32_t *)(void *)scene_out(s, "taken", a.examples * a.width);
    scene_end(s, tr_device_pool_rows_forward(s->device, &a));
    return true;
}

bool case_pool_rows_backward(struct scene *s, int index)
{
    int64_t rows;
    if (index >= 6 * LENGTH(widths)) return false;
    struct tr_op_pool_rows_backward a = {.examples = index * 5 % 23,
                                         .width = widths[index % LENGTH(widths)],
                                         .kind = index / 6 % 2 ? TR_POOL_MAX : TR_POOL_AVERAGE};
    scene_name(s, "examples %d, width %d, kind %d", (int)a.examples, (int)a.width, (int)a.kind);
    a.offset = rows_of_examples(s, index, a.examples, &a.spatial, &rows);
    a.dy = scene_in(s, "dy", a.examples * a.width);
    a.taken = scene_indices(s, "taken", a.examples * a.width, 4);
    a.dx = scene_out(s, "dx", rows * a.width);
    scene_end(s, tr_device_pool_rows_backward(s->device, &a));
    return true;
}

static const int taps[] = {1, 2, 3, 5};

bool case_sequence_unfold(struct scene *s, int index)
{
    int32_t offset[MOST_EXAMPLES + 1];
    if (index >= 6 * LENGTH(widths)) return false;
    struct tr_op_sequence_unfold a = {.examples = index * 5 % 23,
                                      .width = widths[index % LENGTH(widths)],
                                      .taps = taps[index % LENGTH(taps)]};
    a.dilation = index < 4 * LENGTH(widths) ? 1 : 2 + index % 2;
    a.before = index / 4 % a.taps * a.dilation;
    scene_name(s, "examples %d, width %d, %d taps, %d before, %d apart", (int)a.examples, (int)a.width,
               (int)a.taps, (int)a.before, (int)a.dilation);
    a.offset = scene_offsets(s, a.examples, 6, index % 3 == 0, offset);
    a.x = scene_in(s, "x", offset[a.examples] * a.width);
    a.y = scene_out(s, "y", offset[a.examples] * a.taps * a.width);
    scene_end(s, tr_device_sequence_unfold(s->device, &a));
    return true;
}

bool case_sequence_fold(struct scene *s, int index)
{
    int32_t offset[MOST_EXAMPLES + 1];
    if (index >= 6 * LENGTH(widths)) return false;
    struct tr_op_sequence_fold a = {.examples = index * 5 % 23,
                                    .width = widths[index % LENGTH(widths)],
                                    .taps = taps[index % LENGTH(taps)]};
    a.dilation = index < 4 * LENGTH(widths) ? 1 : 2 + index % 2;
    a.before = index / 4 % a.taps * a.dilation;
    scene_name(s, "examples %d, width %d, %d taps, %d before, %d apart", (int)a.examples, (int)a.width,
               (int)a.taps, (int)a.before, (int)a.dilation);
    a.offset = scene_offsets(s, a.examples, 6, index % 3 == 0, offset);
    a.dy = scene_in(s, "dy", offset[a.examples] * a.taps * a.width);
    a.dx = scene_out(s, "dx", offset[a.examples] * a.width);
    scene_end(s, tr_device_sequence_fold(s->device, &a));
    return true;
}

bool case_sequence_copy(struct scene *s, int index)
{
    int32_t offset[MOST_EXAMPLES + 1];
    if (index >= 4 * LENGTH(widths)) return false;
    struct tr_op_sequence_copy a = {
        .examples = index * 5 % 23, .width = widths[index % LENGTH(widths)], .reverse = index % 2};
    a.x_step = a.width + index % 3;
    a.y_step = a.width + index % 5;
    scene_name(s, "examples %d, width %d%s", (int)a.examples, (int)a.width, a.reverse ? ", reversed" : "");
    a.offset = scene_offsets(s, a.examples, 6, index % 3 == 0, offset);
    a.x = scene_in(s, "x", offset[a.examples] * a.x_step);
    a.y = scene_out(s, "y", offset[a.examples] * a.y_step);
    scene_end(s, tr_device_sequence_copy(s->device, &a));
    return true;
}

/* ---- gated recurrent unit ---- */

static const struct {
    int64_t examples;
    int32_t longest;
    int64_t hidden;
    bool empty;
} gru_shapes[] = {{1, 1, 1, false},  {3, 4, 3, true},   {17, 5, 16, false}, {30, 9, 17, true},
                  {7, 6, 33, false}, {40, 3, 20, true}, {0, 3, 4, false},   {2, 12, 50, false}};

bool case_gru_forward(struct scene *s, int index)
{
    int32_t offset[MOST_EXAMPLES + 1];
    if (index >= LENGTH(gru_shapes)) return false;
    int64_t examples = gru_shapes[index].examples, hidden = gru_shapes[index].hidden;
    struct tr_op_gru_forward a = {.examples = examples, .hidden = hidden};
    scene_name(s, "examples %d up to %d rows, hidden %d", (int)examples, gru_shapes[index].longest,
               (int)hidden);
    a.offset = scene_offsets(s, examples, gru_shapes[index].longest, gru_shapes[index].empty, offset);
    a.w = scene_in(s, "w", 3 * hidden * hidden);
    a.b = scene_in(s, "b", 3 * hidden);
    a.b_hidden = scene_in(s, "b_hidden", 3 * hidden);
    a.gates = scene_in(s, "gates", 3 * hidden * offset[examples]);
    a.inner = scene_out(s, "inner", hidden * offset[examples]);
    a.h = scene_out(s, "h", hidden * offset[examples]);
    scene_end(s, tr_device_gru_forward(s->device, &a));
    return true;
}

bool case_gru_backward(struct scene *s, int index)
{
    int32_t offset[MOST_EXAMPLES + 1];
    if (index >= LENGTH(gru_shapes)) return false;
    int64_t examples = gru_shapes[index].examples, hidden = gru_shapes[index].hidden;
    struct tr_op_gru_backward a = {.examples = examples, .hidden = hidden};
    scene_name(s, "examples %d up to %d rows, hidden %d", (int)examples, gru_shapes[index].longest,
               (int)hidden);
    a.offset = scene_offsets(s, examples, gru_shapes[index].longest, gru_shapes[index].empty, offset);
    a.w = scene_in(s, "w", 3 * hidden * hidden);
    a.gates = scene_in(s, "gates", 3 * hidden * offset[examples]);
    a.inner = scene_in(s, "inner", hidden * offset[examples]);
    a.h = scene_in(s, "h", hidden * offset[examples]);
    a.dy = scene_in(s, "dy", hidden * offset[examples]);
    a.dgates = scene_out(s, "dgates", 3 * hidden * offset[examples]);
    a.dhidden = scene_out(s, "dhidden", 3 * hidden * offset[examples]);
    scene_end(s, tr_device_gru_backward(s->device, &a));
    return true;
}

bool case_gru_backward_weights(struct scene *s, int index)
{
    static const int hiddens[] = {1, 4, 9, 16, 33};
    int32_t offset[128 + 1];
    if (index >= scene_cuts()) return false;
    int64_t examples = scene_cut_rows(index), hidden = hiddens[index % LENGTH(hiddens)];
    struct tr_op_gru_backward_weights a = {
        .examples = examples, .hidden = hidden, .cut = scene_cut(s, index)};
    scene_name(s, "cut %d of %d examples, hidden %d", index, (int)examples, (int)hidden);
    a.offset = scene_offsets(s, examples, 6, index % 2, offset);
    a.h = scene_in(s, "h", hidden * offset[examples]);
    a.dhidden = scene_in(s, "dhidden", 3 * hidden * offset[examples]);
    a.dw = scene_nodes(s, "dw", 3 * hidden * hidden, &a.cut);
    scene_end(s, tr_device_gru_backward_weights(s->device, &a));
    return true;
}
