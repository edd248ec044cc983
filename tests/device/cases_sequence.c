/* Cases of embeddings and of the last row of a sequence. */
#include "device/cases.h"

static const int widths[] = {1, 3, 16, 17, 33, 128};

#define MOST_EXAMPLES 64

bool case_embedding_forward(struct scene *s, int index)
{
    static const int rows[] = {1, 7, 0, 100, 333};
    if (index >= LENGTH(rows) * LENGTH(widths)) return false;
    struct tr_op_embedding_forward a = {.rows = rows[index / LENGTH(widths)],
                                        .vocabulary = 1 + index * 7,
                                        .width = widths[index % LENGTH(widths)]};
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
    if (index >= 3 * scene_cuts()) return false;
    int cut = index % scene_cuts();
    int64_t rows = scene_cut_rows(cut);
    struct tr_op_embedding_backward a = {
        .vocabulary = vocabularies[(index + index / scene_cuts()) % LENGTH(vocabularies)],
        .width = widths[index % LENGTH(widths)],
        .cut = scene_cut(s, cut)};
    scene_name(s, "cut %d of %d rows, vocabulary %d, width %d", cut, (int)rows, (int)a.vocabulary,
               (int)a.width);
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
    if (index >= 3 * LENGTH(widths)) return false;
    struct tr_op_sequence_last_forward a = {.examples = index * 5 % 23,
                                            .width = widths[index % LENGTH(widths)]};
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
    if (index >= 3 * LENGTH(widths)) return false;
    struct tr_op_sequence_last_backward a = {.examples = index * 5 % 23,
                                             .width = widths[index % LENGTH(widths)]};
    scene_name(s, "examples %d, width %d", (int)a.examples, (int)a.width);
    a.offset = scene_offsets(s, a.examples, 9, index % 2, offset);
    a.dy = scene_in(s, "dy", a.examples * a.width);
    a.dx = scene_out(s, "dx", offset[a.examples] * a.width);
    scene_end(s, tr_device_sequence_last_backward(s->device, &a));
    return true;
}
