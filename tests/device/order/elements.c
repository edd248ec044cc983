/* Element by element, columns, dropout, input, updates. */
#include "device/order/order.h"

#include "base/numbers/mathf.h"
#include "base/numbers/rng.h"

#include <assert.h>

ORDER(activation_forward)
{
    for (int64_t i = 0; i < a->count; i++) a->y[i] = activated(a->activation, a->slope, a->x[i]);
}

static float slope_at(const struct tr_op_activation_backward *a, int64_t i)
{
    const float x = a->x ? a->x[i] : 0, y = a->y ? a->y[i] : 0, half = 0.5f;
    if (a->activation == TR_ACT_TANH) return fused(-y, y, 1);
    if (a->activation == TR_ACT_SIGMOID) return y * (1 - y);
    if (a->activation == TR_ACT_GELU)
        return fused(x, tr_expf(-half * (x * x)) * 0x1.988454p-2f, half * (1 + tr_erff(x * 0x1.6a09e6p-1f)));
    if (a->activation == TR_ACT_SILU) return tr_sigmoidf(x) * fused(x, 1 - tr_sigmoidf(x), 1);
    if (a->activation == TR_ACT_HARD_SWISH) return fused(x, 0x1.555556p-2f, half);
    const float t = tr_tanhf(x * fused(x * x, 0x1.2444f2p-5f, 0x1.988454p-1f));
    return fused((half * x) * fused(-t, t, 1), fused(x * x, 0x1.b6676cp-4f, 0x1.988454p-1f), half * (1 + t));
}

ORDER(activation_backward)
{
    for (int64_t i = 0; i < a->count; i++) {
        const float dy = a->dy[i];
        const bool hard = a->activation == TR_ACT_HARD_SWISH;
        if (a->activation == TR_ACT_RELU6)
            a->dx[i] = a->x[i] <= 0 || a->x[i] >= 6 ? 0 : dy;
        else if (a->activation == TR_ACT_NONE || (hard && a->x[i] >= 3))
            a->dx[i] = dy;
        else if (hard && a->x[i] <= -3)
            a->dx[i] = 0;
        else if (a->activation == TR_ACT_RELU)
            a->dx[i] = a->y[i] > 0 ? dy : 0;
        else if (a->activation == TR_ACT_LEAKY_RELU)
            a->dx[i] = a->y[i] > 0 ? dy : a->slope * dy;
        else
            a->dx[i] = dy * slope_at(a, i);
    }
}

ORDER(add)
{
    for (int64_t i = 0; i < a->count; i++) a->y[i] = a->a[i] + a->b[i];
}

ORDER(multiply)
{
    for (int64_t i = 0; i < a->rows * a->spatial * a->width; i++)
        a->y[i] = a->a[i] * a->b[i / (a->spatial * a->width) * a->width + i % a->width];
}

ORDER(multiply_sum)
{
    for (int64_t i = 0; i < a->rows * a->width; i++) {
        const int64_t first = i / a->width * a->spatial * a->width + i % a->width;
        for (int64_t p = 0; p < a->spatial; p++) term(a->a[first + p * a->width], a->b[first + p * a->width]);
        a->y[i] = chain(0);
    }
}

ORDER(scale)
{
    for (int64_t i = 0; i < a->count; i++) a->y[i] = a->factor * a->x[i];
}

ORDER(fill)
{
    for (int64_t i = 0; i < a->count; i++) a->y[i] = a->value;
}

ORDER(join_columns)
{
    float *y = a->y;
    for (int64_t r = 0; r < a->rows; r++)
        for (int part = 0; part < a->parts; part++)
            for (int64_t k = 0; k < a->width[part]; k++)
                *y++ = a->x[part] ? a->x[part][r * a->width[part] + k] : 0;
}

ORDER(split_columns)
{
    const float *x = a->x;
    for (int64_t r = 0; r < a->rows; r++)
        for (int part = 0; part < a->parts; part++)
            for (int64_t k = 0; k < a->width[part]; k++, x++)
                if (a->y[part]) a->y[part][r * a->width[part] + k] = *x;
}

/* ---- random numbers: which words of which counters ---- */

static uint32_t word_of(const uint32_t key[2], uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, int word)
{
    uint32_t words[4];
    tr_rng_philox((tr_rng_key){key[0], key[1]}, c0, c1, c2, c3, words);
    return words[word];
}

ORDER(dropout)
{
    for (int64_t e = 0; e < a->examples; e++) {
        const int64_t first = (a->offset ? a->offset[e] : e) * a->width;
        const int64_t end = (a->offset ? a->offset[e + 1] : e + 1) * a->width;
        for (int64_t i = 0; i < end - first; i++) {
            const uint32_t bits = word_of(a->key, (uint32_t)(i / 4), a->first_example + (uint32_t)e,
                                          a->scalars->step, a->layer, (int)(i % 4));
            a->y[first + i] = tr_rng_unit(bits) >= a->rate ? a->x[first + i] * (1 / (1 - a->rate)) : 0;
        }
    }
}

ORDER(drop_examples)
{
    for (int64_t e = 0; e < a->examples; e++) {
        const int64_t first = (a->offset ? a->offset[e] : e) * a->width;
        const int64_t end = (a->offset ? a->offset[e + 1] : e + 1) * a->width;
        const uint32_t bits =
            word_of(a->key, 0, a->first_example + (uint32_t)e, a->scalars->step, a->layer, 0);
        for (int64_t i = first; i < end; i++)
            a->y[i] = tr_rng_unit(bits) >= a->rate ? a->x[i] * (1 / (1 - a->rate)) : 0;
    }
}

ORDER(load_images)
{
    for (int64_t r = 0; r < a->rows; r++) {
        const uint32_t example = a->first_example + (uint32_t)r, step = a->random ? a->scalars->step : 0;
        int32_t top = (a->in_h - a->out_h) / 2, left = (a->in_w - a->out_w) / 2;
        bool mirrored = false;
        if (a->random) {
            const uint32_t rows = (uint32_t)(a->in_h + 2 * a->pad - a->out_h + 1);
            const uint32_t columns = (uint32_t)(a->in_w + 2 * a->pad - a->out_w + 1);
            top = (int32_t)(word_of(a->key, example, step, 0, 0, 0) % rows) - a->pad;
            left = (int32_t)(word_of(a->key, example, step, 0, 0, 1) % columns) - a->pad;
            mirrored = a->flip && word_of(a->key, example, step, 0, 0, 2) % 2;
        }
        for (int32_t k = 0; k < a->out_h * a->out_w * a->channels; k++) {
            const int32_t c = k % a->channels, j = k / a->channels % a->out_w;
            const int32_t h = k / a->channels / a->out_w + top, w = (mirrored ? a->out_w - 1 - j : j) + left;
            const bool inside = h >= 0 && h < a->in_h && w >= 0 && w < a->in_w;
            const int64_t at = ((a->index[r] * a->in_h + h) * a->in_w + w) * a->channels + c;
            a->y[r * a->out_h * a->out_w * a->channels + k] =
                fused(inside ? (float)a->source[at] : 0, a->scale[c % 4], a->shift[c % 4]);
        }
    }
}

ORDER(load_labels)
{
    for (int64_t r = 0; r < a->rows; r++) {
        const uint32_t example = a->first_example + (uint32_t)r, step = a->random ? a->scalars->step : 0;
        int32_t top = (a->in_h - a->out_h) / 2, left = (a->in_w - a->out_w) / 2;
        bool mirrored = false;
        if (a->random) {
            const uint32_t rows = (uint32_t)(a->in_h + 2 * a->pad - a->out_h + 1);
            const uint32_t columns = (uint32_t)(a->in_w + 2 * a->pad - a->out_w + 1);
            top = (int32_t)(word_of(a->key, example, step, 0, 0, 0) % rows) - a->pad;
            left = (int32_t)(word_of(a->key, example, step, 0, 0, 1) % columns) - a->pad;
            mirrored = a->flip && word_of(a->key, example, step, 0, 0, 2) % 2;
        }
        for (int32_t k = 0; k < a->out_h * a->out_w; k++) {
            const int32_t j = k % a->out_w;
            const int32_t h = k / a->out_w + top, w = (mirrored ? a->out_w - 1 - j : j) + left;
            const bool inside = h >= 0 && h < a->in_h && w >= 0 && w < a->in_w;
            const int64_t at = ((a->index ? a->index[r] : r) * a->in_h + h) * a->in_w + w;
            a->y[r * a->out_h * a->out_w + k] = inside ? a->source[at] : -1;
        }
    }
}

/* The value that is stored at place (h, w), 0 outside of the image. */
static float image_value(const struct tr_op_augment_images *a, int64_t image, int64_t h, int64_t w, int32_t c)
{
    if (h < 0 || w < 0 || h >= a->in_h || w >= a->in_w) return 0;
    const int64_t at = ((image * a->in_h + h) * a->in_w + w) * a->channels + c;
    return a->source ? (float)a->source[at] : a->numbers[at];
}

/* Between two, `part` of the way. */
static float between(float from, float to, float part)
{
    return fused(part, to - from, from);
}

static float cut_off(float x, float most)
{
    if (x < 0) x = 0;
    if (x > most) x = most;
    return x;
}

ORDER(augment_images)
{
    const float size = a->most - a->least;
    for (int64_t k = 0; k < a->rows * a->out_h * a->out_w; k++) {
        const int64_t r = k / a->out_w / a->out_h, i = k / a->out_w % a->out_h, j = k % a->out_w;
        const struct tr_image_view *view = &a->view[r];
        const double v = (double)view->down + (double)i * view->down_i + (double)j * view->down_j;
        const double u = (double)view->right + (double)i * view->right_i + (double)j * view->right_j;
        const int64_t h = (int64_t)floor(v / 65536), w = (int64_t)floor(u / 65536);
        const float down = (float)(v / 65536 - (double)h), right = (float)(u / 65536 - (double)w);
        const bool erased =
            i >= view->top && i - view->top < view->height && j >= view->left && j - view->left < view->width;
        float x[32];
        assert(a->channels <= 32);
        for (int32_t c = 0; c < a->channels; c++) {
            const int64_t image = a->index[r];
            const float upper =
                between(image_value(a, image, h, w, c), image_value(a, image, h, w + 1, c), right);
            const float lower =
                between(image_value(a, image, h + 1, w, c), image_value(a, image, h + 1, w + 1, c), right);
            x[c] = between(upper, lower, down);
            if (!a->tint) continue;
            x[c] = cut_off((x[c] - a->least) * view->brightness, size);
            x[c] = cut_off(fused(view->contrast, x[c] - size / 2, size / 2), size);
        }
        const float grey =
            fused(0.114f, x[2 % a->channels], fused(0.587f, x[1 % a->channels], 0.299f * x[0]));
        for (int32_t c = 0; c < a->channels; c++) {
            if (a->tint && a->channels == 3) x[c] = cut_off(fused(view->saturation, x[c] - grey, grey), size);
            if (a->tint) x[c] += a->least;
            if (erased) x[c] = a->erased;
            a->y[k * a->channels + c] = fused(x[c], a->scale[c % 4], a->shift[c % 4]);
        }
    }
}

ORDER(augment_labels)
{
    for (int64_t k = 0; k < a->rows * a->out_h * a->out_w; k++) {
        const int64_t r = k / a->out_w / a->out_h, i = k / a->out_w % a->out_h, j = k % a->out_w;
        const struct tr_image_view *view = &a->view[r];
        const double v = (double)view->down + (double)i * view->down_i + (double)j * view->down_j;
        const double u = (double)view->right + (double)i * view->right_i + (double)j * view->right_j;
        const int64_t h = (int64_t)floor(v / 65536 + 0.5), w = (int64_t)floor(u / 65536 + 0.5);
        const bool inside = h >= 0 && h < a->in_h && w >= 0 && w < a->in_w;
        a->y[k] = inside ? a->source[((a->index ? a->index[r] : r) * a->in_h + h) * a->in_w + w] : -1;
    }
}

ORDER(mix_images)
{
    for (int64_t k = 0; k < a->rows * a->height * a->width * a->channels; k++) {
        const int64_t pixel = k / a->channels, j = pixel % a->width, i = pixel / a->width % a->height;
        const struct tr_image_mix *mix = &a->mix[pixel / a->width / a->height];
        const bool boxed =
            i >= mix->top && i - mix->top < mix->height && j >= mix->left && j - mix->left < mix->width;
        const float x = a->x[k], z = a->z[k];
        float y = mix->share < 1 ? between(z, x, mix->share) : x;
        if (boxed) y = z;
        a->y[k] = y;
    }
}

ORDER(gather_rows)
{
    int32_t *y = a->y;
    for (int64_t r = 0; r < a->rows; r++) {
        const int64_t from = a->start ? a->start[a->index[r]] : a->index[r] * a->stride;
        const int64_t length = a->start ? a->offset[r + 1] - a->offset[r] : a->width;
        for (int64_t k = 0; k < length; k++) *y++ = a->x[from + k];
    }
}

/* ---- updates ---- */

static float adam_step(const struct tr_op_update *a, int64_t i, float g, float w)
{
    a->m[i] = flushed(fused(a->beta1, a->m[i], (1 - a->beta1) * g));
    a->v[i] = flushed(fused(a->beta2, a->v[i], (1 - a->beta2) * (g * g)));
    float v = a->v[i];
    if (a->vmax && (v < a->vmax[i] || v == a->vmax[i])) v = a->vmax[i];
    if (a->vmax) a->vmax[i] = v;
    const float divisor = fused(sqrtf(v), a->scalars->adam_correction, a->epsilon);
    return fused(-(a->scalars->adam_rate * a->rate_factor), a->m[i] / divisor, w);
}

static float new_weight(const struct tr_op_update *a, int64_t i)
{
    const float w = a->w[i], rate = a->scalars->rate * a->rate_factor;
    float g = a->grad[i], q;
    if (a->rule == TR_RULE_STATISTIC) return fused(a->beta1, g - w, w);
    if (a->clip_norm) g *= a->scalars->clip_scale;
    if (a->clip_value > 0 && fabsf(g) > a->clip_value) g = copysignf(a->clip_value, g);
    if (a->l2 > 0) g = fused(a->l2, w, g);
    switch (a->rule) {
    case TR_RULE_SGD:
        return fused(-rate, g, w);
    case TR_RULE_MOMENTUM:
        a->m[i] = flushed(fused(a->beta1, a->m[i], g));
        return fused(-rate, a->nesterov ? fused(a->beta1, a->m[i], g) : a->m[i], w);
    case TR_RULE_ADAM:
        return adam_step(a, i, g, w);
    case TR_RULE_ADAMW:
        return adam_step(a, i, g, fused(-(rate * a->decay), w, w));
    case TR_RULE_LION:
        q = fused(a->beta1, a->m[i], (1 - a->beta1) * g);
        a->m[i] = flushed(fused(a->beta2, a->m[i], (1 - a->beta2) * g));
        return fused(-rate, fused(a->decay, w, q == 0 || isnan(q) ? q : copysignf(1, q)), w);
    case TR_RULE_RMSPROP:
        a->v[i] = flushed(fused(a->beta2, a->v[i], (1 - a->beta2) * (g * g)));
        q = g / (sqrtf(a->v[i]) + a->epsilon);
        if (a->m) q = a->m[i] = flushed(fused(a->beta1, a->m[i], q));
        return fused(-rate, q, w);
    default:
        a->v[i] = fused(g, g, a->v[i]);
        return fused(-rate, g / (sqrtf(a->v[i]) + a->epsilon), w);
    }
}

ORDER(update)
{
    for (int64_t i = 0; a->scalars->held == 0 && i < a->count; i++) {
        const float w = new_weight(a, i);
        if (a->ema && a->rule != TR_RULE_STATISTIC)
            a->ema[i] = fused(1 - a->scalars->ema_decay, w - a->ema[i], a->ema[i]);
        if (!isfinite(w)) a->scalars->nonfinite = 1;
        a->w[i] = w;
    }
}

ORDER(advance)
{
    struct tr_step_scalars *s = a->scalars;
    const float rate = s ? s->rate * a->rate_factor : a->rate_factor;
    float size = a->factor;
    if (a->squares && a->squares[0] > 0 && a->squares[1] > 0)
        size *= sqrtf(a->squares[0]) / sqrtf(a->squares[1]);
    for (int64_t i = 0; (!s || s->held == 0) && i < a->count; i++) {
        if (a->decay > 0) a->w[i] = fused(-(rate * a->decay), a->w[i], a->w[i]);
        a->w[i] = fused(-(rate * size), a->direction[i], a->w[i]);
        if (a->ema) a->ema[i] = fused(1 - s->ema_decay, a->w[i] - a->ema[i], a->ema[i]);
        if (s && !isfinite(a->w[i])) s->nonfinite = 1;
    }
}

ORDER(sum_squares)
{
    float blocks[64];
    int count = 0;
    for (int64_t first = 0; first < a->count; first += 4096) {
        for (int64_t i = first; i < a->count && i < first + 4096; i++) term(a->x[i], a->x[i]);
        blocks[count++] = lane_chain();
    }
    for (int i = 0; i < count; i++) number(blocks[i]);
    *a->out = sum_chain(0);
}

ORDER(clip_scale)
{
    for (int64_t i = 0; i < a->count; i++) number(a->squares[i]);
    *a->norm = sqrtf(sum_chain(0));
    a->scalars->clip_scale = *a->norm > a->max_norm ? a->max_norm / *a->norm : 1;
}

ORDER(hold)
{
    for (int64_t i = 0; i < a->count; i++)
        if (!isfinite(a->x[i])) a->scalars->held = 1;
    if (a->count > 0 && a->scalars->nonfinite) a->scalars->held = 1;
}
