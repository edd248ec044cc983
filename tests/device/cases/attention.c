/* Cases of attention and of positions. */
#include "device/cases/cases.h"

#define MOST_EXAMPLES 128

static const struct {
    int64_t examples;
    int32_t longest;
    int64_t heads, size;
    bool causal, empty;
    float rate;
    int32_t older;            /* keys that are older than the first query */
    int64_t kv_heads, window; /* 0: as many as heads; none */
    int32_t others; /* the keys are of another sequence, with up to so many tokens an example; 0: not */
} shapes[] = {
    {1, 1, 1, 1, false, false, 0, 0},
    {1, 1, 1, 3, true, false, 0, 4},
    {5, 4, 2, 3, true, true, 0, 0},
    {4, 9, 1, 16, false, true, 0.3f, 0},
    {3, 17, 3, 7, true, false, 0.5f, 0},
    {2, 40, 1, 33, true, false, 0, 3},
    {2, 40, 2, 32, false, false, 0, 0},
    {1, 70, 1, 20, true, false, 0.1f, 0},
    {1, 70, 1, 64, false, false, 0.2f, 5},
    {1, 99, 2, 8, true, false, 0, 17},
    {2, 130, 1, 5, true, false, 0, 0},
    {0, 3, 2, 4, true, false, 0, 0},
    {3, 3, 2, 65, false, true, 0, 0},
    {1, 97, 1, 4, false, false, 0, 0},
    {4, 9, 4, 5, true, true, 0, 0, 2, 0},
    {2, 70, 6, 16, false, false, 0.3f, 0, 2, 0},
    {2, 40, 3, 33, true, false, 0, 0, 1, 1},
    {3, 130, 1, 8, true, true, 0, 0, 0, 17},
    {1, 150, 2, 16, true, false, 0.4f, 0, 1, 64},
    {2, 99, 2, 7, false, false, 0, 0, 0, 5},
    {1, 140, 4, 20, false, false, 0.2f, 0, 2, 70},
    {1, 5, 2, 6, true, false, 0, 90, 1, 33},
    {1, 90, 1, 4, true, false, 0.1f, 3, 0, 40},
    {1, 20, 2, 3, false, false, 0, 6, 1, 4},
    {2, 30, 2, 8, true, false, 0, 0, 2, 1000},
    {3, 9, 2, 5, false, false, 0, 0, 0, 0, 30},
    {2, 130, 4, 16, false, false, 0.3f, 0, 2, 0, 7},
    {1, 3, 1, 33, false, false, 0.2f, 0, 0, 0, 150},
    {5, 40, 3, 20, false, false, 0, 0, 1, 0, 99},
};

/* The keys of all examples, where they are of another sequence. */
static int64_t keys_of(int index)
{
    int64_t keys = 0;
    for (int64_t e = 0; e < shapes[index].examples; e++) keys += shapes[index].others / (1 + e);
    return keys;
}

/* Queries, keys and values side by side, or keys of their own where there are older ones. */
static struct tr_attention attention_of(struct scene *s, int index, int64_t *rows)
{
    int32_t offset[MOST_EXAMPLES + 1], key_offset[MOST_EXAMPLES + 1];
    const int64_t examples = shapes[index].examples;
    struct tr_attention a = {.examples = examples,
                             .heads = shapes[index].heads,
                             .size = shapes[index].size,
                             .kv_heads =
                                 shapes[index].kv_heads ? shapes[index].kv_heads : shapes[index].heads,
                             .window = shapes[index].window,
                             .causal = shapes[index].causal,
                             .scale = 0.3f,
                             .rate = shapes[index].rate,
                             .key = {0x12345678u, 0x9abcdef0u},
                             .layer = 3,
                             .first_example = 7};
    const int64_t width = a.heads * a.size, kv_width = a.kv_heads * a.size;
    scene_name(s, "examples %d up to %d rows, %d heads on %d of %d%s, window %d, rate %g, %d older keys",
               (int)examples, shapes[index].longest, (int)a.heads, (int)a.kv_heads, (int)a.size,
               a.causal ? ", causal" : "", (int)a.window, (double)a.rate, shapes[index].older);
    a.offset = scene_offsets(s, examples, shapes[index].longest, shapes[index].empty, offset);
    a.key_offset = a.offset;
    *rows = offset[examples];
    a.q_step = a.kv_step = width + 2 * kv_width;
    float *packed = scene_in(s, "qkv", *rows * a.q_step);
    a.q = packed;
    a.k = packed + width;
    a.v = packed + width + kv_width;
    if (shapes[index].older > 0 || shapes[index].others > 0) {
        for (int64_t e = 0; e <= examples; e++) key_offset[e] = offset[e] + (int32_t)e * shapes[index].older;
        for (int64_t e = 0; e < examples && shapes[index].others > 0; e++)
            key_offset[e + 1] = key_offset[e] + shapes[index].others / (1 + (int32_t)e);
        a.key_offset = scene_data(s, "key_offset", (size_t)(examples + 1) * sizeof *key_offset,
                                  sizeof *key_offset, key_offset);
        float *own = scene_in(s, "kv", key_offset[examples] * 2 * kv_width);
        a.k = own;
        a.v = own + kv_width;
        a.kv_step = 2 * kv_width;
    }
    if (a.rate > 0) a.scalars = scene_scalars(s);
    return a;
}

bool case_attention_forward(struct scene *s, int index)
{
    int64_t rows;
    if (index >= LENGTH(shapes)) return false;
    struct tr_op_attention_forward a = {.at = attention_of(s, index, &rows)};
    a.at.shift = scene_out(s, "shift", rows * a.at.heads);
    a.at.inv = scene_out(s, "inv", rows * a.at.heads);
    a.y = scene_out(s, "y", rows * a.at.heads * a.at.size);
    scene_end(s, tr_device_attention_forward(s->device, &a));
    return true;
}

bool case_attention_backward(struct scene *s, int index)
{
    int64_t rows;
    if (index >= LENGTH(shapes)) return false;
    struct tr_op_attention_backward a = {.at = attention_of(s, index, &rows)};
    const int64_t width = a.at.heads * a.at.size, kv_width = a.at.kv_heads * a.at.size;
    const bool apart = shapes[index].others > 0;
    if (shapes[index].older > 0) { /* there is no backward of these: keys become those of the queries */
        a.at.key_offset = a.at.offset;
        a.at.k = a.at.q + width;
        a.at.v = a.at.q + width + kv_width;
        a.at.kv_step = a.at.q_step;
    }
    a.at.shift = scene_in(s, "shift", rows * a.at.heads);
    a.at.inv = scene_in(s, "inv", rows * a.at.heads);
    a.y = scene_in(s, "y", rows * width);
    a.dy = scene_in(s, "dy", rows * width);
    a.gradient_step = width + 2 * kv_width;
    a.dq = scene_out(s, "gradients", rows * a.gradient_step);
    const int64_t keys = apart ? keys_of(index) : 0;
    a.dk = apart ? scene_out(s, "key_gradients", keys * a.gradient_step) : a.dq + width;
    a.dv = a.dk + kv_width;
    scene_end(s, tr_device_attention_backward(s->device, &a));
    return true;
}

static const int widths[] = {1, 3, 16, 17, 33, 128};

bool case_position_forward(struct scene *s, int index)
{
    int32_t offset[MOST_EXAMPLES + 1];
    if (index >= 4 * LENGTH(widths)) return false;
    struct tr_op_position_forward a = {
        .examples = index * 5 % 23, .width = widths[index % LENGTH(widths)], .length = 1 + index % 13};
    scene_name(s, "examples %d, width %d, length %d%s", (int)a.examples, (int)a.width, (int)a.length,
               index % 2 ? ", in place" : "");
    a.offset = scene_offsets(s, a.examples, 9, index % 3 == 0, offset);
    a.table = scene_in(s, "table", a.length * a.width);
    float *x = scene_in(s, "x", offset[a.examples] * a.width);
    a.x = x;
    a.y = index % 2 ? x : scene_out(s, "y", offset[a.examples] * a.width);
    scene_end(s, tr_device_position_forward(s->device, &a));
    return true;
}

bool case_position_backward(struct scene *s, int index)
{
    int32_t offset[MOST_EXAMPLES + 1];
    if (index >= scene_cuts() + 8) return false;
    int cut = index % scene_cuts();
    int64_t examples = scene_cut_rows(cut);
    struct tr_op_position_backward a = {
        .width = widths[index % LENGTH(widths)], .length = 1 + index % 11, .cut = scene_cut(s, cut)};
    scene_name(s, "cut %d of %d examples, width %d, length %d", cut, (int)examples, (int)a.width,
               (int)a.length);
    a.offset = scene_offsets(s, examples, 9, index % 2, offset);
    a.dy = scene_in(s, "dy", offset[examples] * a.width);
    a.dtable = scene_nodes(s, "dtable", a.length * a.width, &a.cut);
    scene_end(s, tr_device_position_backward(s->device, &a));
    return true;
}

bool case_rotary(struct scene *s, int index)
{
    static const int sizes[] = {2, 4, 14, 32, 34};
    int32_t offset[MOST_EXAMPLES + 1];
    if (index >= 6 * LENGTH(sizes)) return false;
    struct tr_op_rotary a = {.examples = index * 3 % 8,
                             .heads = 1 + index % 3,
                             .size = sizes[index % LENGTH(sizes)],
                             .base = index % 4 ? 10000 : 100,
                             .inverse = index % 2,
                             .past = index >= 2 * LENGTH(sizes) ? 7 * index : 0,
                             .pairs = index >= 3 * LENGTH(sizes) && index % 2,
                             .factor = index >= 4 * LENGTH(sizes) ? 2.5 : 1};
    if (index >= 5 * LENGTH(sizes)) { /* some turn as before, some slower, some in between */
        a.original = 60;
        a.low = 1;
        a.high = 4;
    }
    a.step = a.heads * a.size + (index % 3) * 5;
    scene_name(s, "examples %d, %d heads of %d, step %d%s%s, factor %g of %g tokens", (int)a.examples,
               (int)a.heads, (int)a.size, (int)a.step, a.inverse ? ", inverse" : "", a.pairs ? ", pairs" : "",
               a.factor, a.original);
    a.offset = scene_offsets(s, a.examples, 30, index % 3 == 1, offset);
    a.x = scene_in(s, "x", offset[a.examples] * a.step);
    scene_end(s, tr_device_rotary(s->device, &a));
    return true;
}
