/* The weight gradient of convolutions by groups of several channels: a unit is one tap of some inputs and
 * some outputs of a group, whose sums stay in registers along a line of output pixels.
 */
#include "device/cpu/grouped/grouped.h"

#define OUT_VECTORS (GROUPS_OUTPUTS / VW)

/* The work of a unit: inputs [in, in + inputs) and outputs [out, out + outputs) of all channels, and a
   tap. */
struct part {
    int64_t in, out, c; /* c: of the first input within its group */
    int64_t inputs, outputs;
    int32_t kh, kw;
};

static struct part part_of(const struct grouped_gradient *g, int64_t unit)
{
    const struct tr_sliding_window *w = &g->op->window;
    const int64_t ins = divide_up(g->in_each, GROUPS_INPUTS), outs = divide_up(g->out_each, GROUPS_OUTPUTS);
    const int64_t o = unit % outs * GROUPS_OUTPUTS, c = unit / outs % ins * GROUPS_INPUTS;
    const int64_t taps = (int64_t)w->kernel_h * w->kernel_w, tap = unit / outs / ins % taps;
    const int64_t group = unit / outs / ins / taps;
    return (struct part){.in = group * g->in_each + c,
                         .out = group * g->out_each + o,
                         .c = c,
                         .inputs = smaller(GROUPS_INPUTS, g->in_each - c),
                         .outputs = smaller(GROUPS_OUTPUTS, g->out_each - o),
                         .kh = (int32_t)(tap / w->kernel_w),
                         .kw = (int32_t)(tap % w->kernel_w)};
}

/* A line of output pixels: x and dy of the first pixel that has the tap, `count` of them. */
V_INLINE void pixels(const struct grouped_gradient *g, const struct part *part, const float *x,
                     const float *dy, int64_t count, const int inputs, const int vectors, float *sums)
{
    const int64_t step = (int64_t)g->op->window.stride_w * g->op->in_c;
    vf sum[GROUPS_INPUTS][OUT_VECTORS];
    V_UNROLL for (int c = 0; c < inputs; c++)
    {
        V_UNROLL for (int v = 0; v < vectors; v++) sum[c][v] = v_load(sums + c * GROUPS_OUTPUTS + v * VW);
    }
    for (int64_t i = 0; i < count; i++, x += step, dy += g->op->out_c) {
        V_UNROLL for (int v = 0; v < vectors; v++)
        {
            const int64_t n = part->outputs - v * VW;
            const vf d = n >= VW ? v_load(dy + v * VW) : v_load_part(dy + v * VW, n);
            V_UNROLL for (int c = 0; c < inputs; c++) sum[c][v] = v_fma(v_set1(x[c]), d, sum[c][v]);
        }
    }
    V_UNROLL for (int c = 0; c < inputs; c++)
    {
        V_UNROLL for (int v = 0; v < vectors; v++) v_store(sums + c * GROUPS_OUTPUTS + v * VW, sum[c][v]);
    }
}

static void line(const struct grouped_gradient *g, const struct part *part, const float *x, const float *dy,
                 int64_t count, float *sums)
{
    const bool wide = part->outputs > VW;
    if (part->inputs == GROUPS_INPUTS && wide) {
        pixels(g, part, x, dy, count, GROUPS_INPUTS, OUT_VECTORS, sums);
    } else if (part->inputs == GROUPS_INPUTS) {
        pixels(g, part, x, dy, count, GROUPS_INPUTS, 1, sums);
    } else {
        for (int64_t c = 0; c < part->inputs; c++) {
            if (wide)
                pixels(g, part, x + c, dy, count, 1, OUT_VECTORS, sums + c * GROUPS_OUTPUTS);
            else
                pixels(g, part, x + c, dy, count, 1, 1, sums + c * GROUPS_OUTPUTS);
        }
    }
}

static void microbatch(const struct grouped_gradient *g, const struct part *part, int32_t number, float *sums)
{
    const struct tr_op_conv_backward_weights *op = g->op;
    const struct tr_sliding_window *w = &op->window;
    const int64_t across = (int64_t)part->kw * w->dilation_w - w->pad_left;
    /* The output pixels of a line that have the tap. */
    const int64_t begin = across < 0 ? divide_up(-across, w->stride_w) : 0;
    const int64_t end = across >= w->in_w ? 0 : smaller(w->out_w, (w->in_w - 1 - across) / w->stride_w + 1);
    for (int64_t i = 0; i < g->unit_floats; i++) sums[i] = 0;
    for (int64_t r = op->cut.row[number]; begin < end && r < op->cut.row[number + 1]; r++)
        for (int32_t oh = 0; oh < w->out_h; oh++) {
            const int64_t ih = (int64_t)oh * w->stride_h + part->kh * w->dilation_h - w->pad_top;
            if (ih < 0 || ih >= w->in_h) continue;
            line(g, part,
                 op->x + ((r * w->in_h + ih) * w->in_w + begin * w->stride_w + across) * op->in_c + part->in,
                 op->dy + ((r * w->out_h + oh) * w->out_w + begin) * op->out_c + part->out, end - begin,
                 sums);
        }
}

void groups_gradient(const struct grouped_gradient *g, int64_t unit, float *sums)
{
    const struct part part = part_of(g, unit);
    const struct tr_cut *cut = &g->op->cut;
    const int64_t tap = (int64_t)part.kh * g->op->window.kernel_w + part.kw;
    for (int32_t node = 0; node < cut->nodes; node++) {
        struct tr_tree_fold fold = {0};
        const int32_t begin = cut->bound[node], end = cut->bound[node + 1];
        if (begin == end)
            for (int64_t i = 0; i < g->unit_floats; i++) sums[i] = 0;
        for (int32_t i = begin; i < end; i++) {
            microbatch(g, &part, i, sums + fold.waiting * g->unit_floats);
            tr_tree_push(&fold, i + 1 == end);
            grouped_combine(&fold, sums, g->unit_floats);
        }
        float *to = g->op->dw + node * cut->stride + (tap * g->in_each + part.c) * g->op->out_c + part.out;
        for (int64_t c = 0; c < part.inputs; c++)
            for (int64_t o = 0; o < part.outputs; o++)
                to[c * g->op->out_c + o] = sums[c * GROUPS_OUTPUTS + o];
    }
}
