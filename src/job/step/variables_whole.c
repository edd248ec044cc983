/* Updates of parameters as wholes: LAMB and Muon, each a fixed order of operations.
 *
 * LAMB (You and others 2020, "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes",
 * algorithm 2, with the identity for phi):
 *     u = decay * w                               scale
 *     m, v as in Adam; u = u + its step            update to u, at a rate of -1
 *     a = |w|^2, b = |u|^2                        sum_squares
 *     w = w - rate * sqrt(a) / sqrt(b) * u        advance; without the ratio where a or b is 0
 *
 * Muon (Jordan and others 2024, "Muon: An optimizer for hidden layers in neural networks") of W, which is
 * [in][out]:
 *     U = 0                                       fill
 *     m as in momentum; U = rate * step           update to U, at -1 times the rate
 *     X = U / |U|                                 sum_squares, advance from 0
 *     five times, with (a, b, c) = (3.4445, -4.7750, 2.0315):
 *         G = X X^T, or X^T X where in > out      dense_backward_data or dense_backward_weights
 *         H = G G; G = b G + c H                  dense_forward to H; scale, advance
 *         U = G X, or X G; X = a X + U            dense_forward to U; scale, advance
 *     W = W - rate * decay * W - rate * sqrt(max(1, out / in)) * X      advance
 * Gradients of weights are those of one microbatch. The length of U does not matter.
 *
 * Invariant: the new value of a parameter depends only on it, its moments and its gradient, not on how
 * ranks divide the arenas.
 */
#include "job/step/variables_internal.h"

#include "base/fail.h"

#define ITERATIONS 5
#define CACHE_LINE 16 /* floats */

static int64_t rounded(int64_t floats)
{
    return (floats + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

int64_t tr_variables_cut(const struct tr_model *model, const struct tr_optimizer *optimizer, int64_t at)
{
    if (!tr_optimizer_takes_wholes(optimizer) || at >= model->arena_floats) return at;
    for (int i = model->parameter_count - 1; i > 0; i--)
        if (model->parameters[i].offset <= at) return model->parameters[i].offset;
    return 0;
}

static void widen(struct variables_scratch *most, const struct tr_whole_update *whole, int64_t count,
                  int64_t in, int64_t out)
{
    int64_t least = in < out ? in : out;
    if (whole->kind == TR_WHOLE_NONE) return;
    if (count > most->matrix) most->matrix = count;
    if (whole->kind != TR_WHOLE_MUON) return;
    if (count > most->gram[0]) most->gram[0] = count; /* sizes at first */
    if (least * least > most->gram[1]) most->gram[1] = least * least;
}

/* Converts sizes to offsets. */
static void place(struct variables_scratch *out)
{
    int64_t direction = rounded(out->matrix), matrix = rounded(out->gram[0]), gram = rounded(out->gram[1]);
    if (direction == 0) return;
    out->matrix = direction;
    out->gram[0] = out->matrix + matrix;
    out->gram[1] = out->gram[0] + gram;
    out->squares = out->gram[1] + gram;
    out->floats = out->squares + CACHE_LINE;
}

void variables_plan_scratch(const struct variables_group *groups, int count, struct variables_scratch *out)
{
    *out = (struct variables_scratch){0};
    for (int i = 0; i < count; i++)
        widen(out, &groups[i].whole, groups[i].update.count, groups[i].in, groups[i].out);
    place(out);
}

int64_t tr_variables_scratch(const struct tr_model *model, const struct tr_optimizer *optimizer)
{
    struct variables_scratch scratch = {0};
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        struct tr_whole_update whole;
        int64_t in, out;
        if (parameter->pace.frozen) continue;
        tr_model_hidden_matrix(model, i, &in, &out);
        tr_optimizer_whole(optimizer, parameter->kind, &parameter->pace, in, out, &whole);
        widen(&scratch, &whole, parameter->count, in, out);
    }
    place(&scratch);
    int64_t around = optimizer->sam > 0 ? model->arena_floats + 3 : 0;
    return (scratch.floats + around) * (int64_t)sizeof(float);
}

/* Updates moments, and adds to `direction` what an update would make of a w of 0 at a rate of -1. */
static tr_status update_direction(tr_variables *variables, const struct variables_group *group,
                                  const float *gradient, float *direction)
{
    struct tr_op_update update = group->whole.elements;
    update.count = group->update.count;
    update.grad = gradient;
    update.w = direction;
    update.m = group->update.m;
    update.v = group->whole.kind == TR_WHOLE_LAMB ? group->update.v : NULL;
    update.scalars = variables->scalars;
    return tr_device_update(variables->device, &update);
}

static tr_status advance(tr_variables *variables, const struct variables_group *group, const float *direction,
                         const float *squares)
{
    struct tr_op_advance advance = group->whole.advance;
    advance.count = group->update.count;
    advance.direction = direction;
    advance.squares = squares;
    advance.w = group->update.w;
    advance.ema = group->update.ema;
    advance.scalars = variables->scalars;
    return tr_device_advance(variables->device, &advance);
}

static tr_status lamb(tr_variables *variables, const struct variables_group *group, const float *gradient)
{
    tr_device *device = variables->device;
    const int64_t count = group->update.count;
    float *u = variables->scratch.memory, *squares = u + variables->scratch.squares;
    struct tr_op_scale decayed = {count, group->whole.elements.decay, group->update.w, u};
    struct tr_op_sum_squares of_w = {count, group->update.w, squares}, of_u = {count, u, squares + 1};
    TR_TRY(tr_device_scale(device, &decayed));
    TR_TRY(update_direction(variables, group, gradient, u));
    if (!group->whole.ratio) return advance(variables, group, u, NULL);
    TR_TRY(tr_device_sum_squares(device, &of_w));
    TR_TRY(tr_device_sum_squares(device, &of_u));
    return advance(variables, group, u, squares);
}

/* ---- Muon ---- */

/* y = factor * y + more * x. */
static tr_status blend(tr_device *device, int64_t count, float factor, float more, const float *x, float *y)
{
    struct tr_op_scale scale = {count, factor, y, y};
    struct tr_op_advance add = {.count = count, .rate_factor = 1, .factor = -more, .direction = x, .w = y};
    TR_TRY(tr_device_scale(device, &scale));
    return tr_device_advance(device, &add);
}

/* y = x w, [rows][in] times [in][out]. */
static tr_status product(tr_device *device, int64_t rows, int64_t in, int64_t out, const float *x,
                         const float *w, float *y)
{
    struct tr_op_dense_forward op = {rows, in, out, x, w, NULL, y, TR_ACT_NONE, 0};
    return tr_device_dense_forward(device, &op);
}

/* The smaller of x x^T and x^T x, for an x of [in][out]. */
static tr_status gram(tr_device *device, int64_t in, int64_t out, const float *x, float *y)
{
    const int64_t row[] = {0, in};
    const int32_t bound[] = {0, 1};
    struct tr_op_dense_backward_data wide = {in, in, out, x, x, y};
    struct tr_op_dense_backward_weights tall = {out, out, x, x, y, NULL, {1, row, 1, bound, out * out}};
    return in > out ? tr_device_dense_backward_weights(device, &tall)
                    : tr_device_dense_backward_data(device, &wide);
}

/* Makes x nearly orthogonal: its singular values come close to 1. `spare` has the size of x. */
static tr_status orthogonalize(tr_device *device, int64_t in, int64_t out, float *x, float *spare, float *g,
                               float *h)
{
    const float a = 3.4445f, b = -4.7750f, c = 2.0315f;
    const int64_t least = in < out ? in : out;
    for (int i = 0; i < ITERATIONS; i++) {
        TR_TRY(gram(device, in, out, x, g));
        TR_TRY(product(device, least, least, least, g, g, h));
        TR_TRY(blend(device, least * least, b, c, h, g));
        TR_TRY(in > out ? product(device, in, out, out, x, g, spare)
                        : product(device, in, in, out, g, x, spare));
        TR_TRY(blend(device, in * out, a, 1, spare, x));
    }
    return TR_OK;
}

static tr_status muon(tr_variables *variables, const struct variables_group *group, const float *gradient)
{
    tr_device *device = variables->device;
    const struct variables_scratch *scratch = &variables->scratch;
    const int64_t count = group->update.count;
    float *u = scratch->memory, *x = u + scratch->matrix, *squares = u + scratch->squares;
    struct tr_op_fill nothing = {count, 0, u}, zeros = {count, 0, x}, one = {1, 1, squares};
    struct tr_op_sum_squares length = {count, u, squares + 1};
    struct tr_op_advance unit = {
        .count = count, .rate_factor = 1, .factor = -1, .direction = u, .squares = squares, .w = x};
    TR_TRY(tr_device_fill(device, &nothing));
    TR_TRY(update_direction(variables, group, gradient, u));
    TR_TRY(tr_device_fill(device, &one));
    TR_TRY(tr_device_sum_squares(device, &length));
    TR_TRY(tr_device_fill(device, &zeros));
    TR_TRY(tr_device_advance(device, &unit));
    TR_TRY(orthogonalize(device, group->in, group->out, x, u, u + scratch->gram[0], u + scratch->gram[1]));
    return advance(variables, group, x, NULL);
}

tr_status variables_update_whole(tr_variables *variables, const struct variables_group *group,
                                 const float *gradient)
{
    return group->whole.kind == TR_WHOLE_LAMB ? lamb(variables, group, gradient)
                                              : muon(variables, group, gradient);
}
