/* Units of softmax, layer, root mean square and batch normalization. */
#include "dispute/units/numbers.h"

UNIT(softmax_forward)
{
    const float *x = a->x + to->at / a->width * a->width;
    struct greatest greatest = {.any = false};
    struct lane_sum sum = lanes_begin();
    struct num wanted = constant(0);
    for (int64_t k = 0; k < a->width; k++) greatest_add(&greatest, in(x + k), k);
    for (int64_t k = 0; k < a->width; k++) {
        const struct num e = exponential(sub(in(x + k), greatest.value));
        lanes_add(&sum, e);
        if (k == to->at % a->width) wanted = e;
    }
    return over(wanted, lanes_total(&sum));
}

UNIT(softmax_backward)
{
    const int64_t first = to->at / a->width * a->width;
    struct lane_sum sum = lanes_begin();
    for (int64_t k = 0; k < a->width; k++) lanes_fused(&sum, in(a->y + first + k), in(a->dy + first + k));
    return mul(in(a->y + to->at), sub(in(a->dy + to->at), lanes_total(&sum)));
}

/* 1 / sqrt(var + epsilon). */
static struct num inverse(struct num var, float epsilon)
{
    return over(constant(1), root(add(var, constant(epsilon))));
}

UNIT(layer_norm_forward)
{
    const struct num width = constant((float)a->width);
    if (is(to, "y")) {
        const int64_t r = to->at / a->width, k = to->at % a->width;
        const struct num d = sub(in(a->x + to->at), own(a->mean + r));
        return fused(mul(d, own(a->inv + r)), in(a->gamma + k), in(a->beta + k));
    }
    const float *x = a->x + to->at * a->width;
    struct lane_sum sum = lanes_begin();
    if (is(to, "mean")) {
        for (int64_t k = 0; k < a->width; k++) lanes_add(&sum, in(x + k));
        return over(lanes_total(&sum), width);
    }
    const struct num mean = own(a->mean + to->at);
    for (int64_t k = 0; k < a->width; k++) {
        const struct num d = sub(in(x + k), mean);
        lanes_fused(&sum, d, d);
    }
    return inverse(over(lanes_total(&sum), width), a->epsilon);
}

static struct num layer_norm_xhat(const struct tr_op_layer_norm_backward *a, int64_t i)
{
    const int64_t r = i / a->width;
    return mul(sub(in(a->x + i), in(a->mean + r)), in(a->inv + r));
}

static struct num layer_gamma_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_layer_norm_backward *a = arguments;
    struct num sum = constant(0);
    for (int64_t r = cut_begin(&a->cut, microbatch); r < cut_end(&a->cut, microbatch); r++)
        sum = fused(in(a->dy + r * a->width + at), layer_norm_xhat(a, r * a->width + at), sum);
    return sum;
}

static struct num layer_beta_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_layer_norm_backward *a = arguments;
    struct num sum = constant(0);
    for (int64_t r = cut_begin(&a->cut, microbatch); r < cut_end(&a->cut, microbatch); r++)
        sum = add(sum, in(a->dy + r * a->width + at));
    return sum;
}

UNIT(layer_norm_backward)
{
    if (!is(to, "dx"))
        return over_cut(&a->cut, to->node, is(to, "dgamma") ? layer_gamma_leaf : layer_beta_leaf, a, to->at);
    const int64_t r = to->at / a->width, first = r * a->width;
    const struct num width = constant((float)a->width);
    struct lane_sum sums = lanes_begin(), products = lanes_begin();
    for (int64_t k = 0; k < a->width; k++) {
        const struct num g = mul(in(a->dy + first + k), in(a->gamma + k));
        lanes_add(&sums, g);
        lanes_fused(&products, g, layer_norm_xhat(a, first + k));
    }
    const struct num mean = over(lanes_total(&sums), width), product = over(lanes_total(&products), width);
    const struct num g = mul(in(a->dy + to->at), in(a->gamma + to->at % a->width));
    return mul(in(a->inv + r), fused(negated(layer_norm_xhat(a, to->at)), product, sub(g, mean)));
}

UNIT(rms_norm_forward)
{
    if (is(to, "y"))
        return mul(mul(in(a->x + to->at), own(a->inv + to->at / a->width)), in(a->gamma + to->at % a->width));
    struct lane_sum sum = lanes_begin();
    for (int64_t k = 0; k < a->width; k++) {
        const struct num x = in(a->x + to->at * a->width + k);
        lanes_fused(&sum, x, x);
    }
    return inverse(over(lanes_total(&sum), constant((float)a->width)), a->epsilon);
}

static struct num rms_norm_xhat(const struct tr_op_rms_norm_backward *a, int64_t i)
{
    return mul(in(a->x + i), in(a->inv + i / a->width));
}

static struct num rms_gamma_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_rms_norm_backward *a = arguments;
    struct num sum = constant(0);
    for (int64_t r = cut_begin(&a->cut, microbatch); r < cut_end(&a->cut, microbatch); r++)
        sum = fused(in(a->dy + r * a->width + at), rms_norm_xhat(a, r * a->width + at), sum);
    return sum;
}

UNIT(rms_norm_backward)
{
    if (!is(to, "dx")) return over_cut(&a->cut, to->node, rms_gamma_leaf, a, to->at);
    const int64_t r = to->at / a->width, first = r * a->width;
    struct lane_sum products = lanes_begin();
    for (int64_t k = 0; k < a->width; k++)
        lanes_fused(&products, mul(in(a->dy + first + k), in(a->gamma + k)), rms_norm_xhat(a, first + k));
    const struct num product = over(lanes_total(&products), constant((float)a->width));
    const struct num g = mul(in(a->dy + to->at), in(a->gamma + to->at % a->width));
    return mul(in(a->inv + r), fused(negated(rms_norm_xhat(a, to->at)), product, g));
}

/* ---- batch normalization ---- */

/* The variance of channel c in a microbatch, given its mean. */
static struct num batch_var(const struct tr_op_batch_norm_forward *a, int32_t microbatch, int64_t c)
{
    const int64_t begin = cut_begin(&a->cut, microbatch) * a->spatial;
    const int64_t end = cut_end(&a->cut, microbatch) * a->spatial;
    const struct num mean = own(a->mean + microbatch * a->channels + c);
    struct num sum = constant(0);
    for (int64_t p = begin; p < end; p++) {
        const struct num d = sub(in(a->x + p * a->channels + c), mean);
        sum = fused(d, d, sum);
    }
    return over(sum, constant((float)(end - begin)));
}

static bool is_empty(const struct tr_cut *cut, int32_t microbatch)
{
    return cut_begin(cut, microbatch) == cut_end(cut, microbatch);
}

static struct num share_of(const struct tr_op_batch_norm_forward *a, int32_t microbatch)
{
    const int64_t rows = cut_end(&a->cut, microbatch) - cut_begin(&a->cut, microbatch);
    return constant((float)rows / (float)a->global_rows);
}

static struct num mean_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_batch_norm_forward *a = arguments;
    return mul(share_of(a, microbatch), own(a->mean + microbatch * a->channels + at));
}

static struct num var_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_batch_norm_forward *a = arguments;
    const int64_t n = (cut_end(&a->cut, microbatch) - cut_begin(&a->cut, microbatch)) * a->spatial;
    if (n == 0) return mul(share_of(a, microbatch), constant(0));
    const float unbiased = n > 1 ? (float)n / (float)(n - 1) : 1;
    return mul(share_of(a, microbatch), mul(batch_var(a, microbatch, at), constant(unbiased)));
}

UNIT(batch_norm_forward)
{
    if (is(to, "batch_mean")) return over_cut(&a->cut, to->node, mean_leaf, a, to->at);
    if (is(to, "batch_var")) return over_cut(&a->cut, to->node, var_leaf, a, to->at);
    if (is(to, "y")) {
        const int64_t c = to->at % a->channels;
        const int64_t at = microbatch_of(&a->cut, to->at / a->channels / a->spatial) * a->channels + c;
        const struct num d = sub(in(a->x + to->at), own(a->mean + at));
        return fused(mul(d, own(a->inv + at)), in(a->gamma + c), in(a->beta + c));
    }
    const int32_t microbatch = (int32_t)(to->at / a->channels);
    const int64_t c = to->at % a->channels;
    if (is_empty(&a->cut, microbatch)) return constant(0);
    if (is(to, "inv")) return inverse(batch_var(a, microbatch, c), a->epsilon);
    const int64_t begin = cut_begin(&a->cut, microbatch) * a->spatial;
    const int64_t end = cut_end(&a->cut, microbatch) * a->spatial;
    struct num sum = constant(0);
    for (int64_t p = begin; p < end; p++) sum = add(sum, in(a->x + p * a->channels + c));
    return over(sum, constant((float)(end - begin)));
}

static struct num batch_norm_xhat(const struct tr_op_batch_norm_backward *a, int32_t microbatch, int64_t i)
{
    const int64_t at = microbatch * a->channels + i % a->channels;
    return mul(sub(in(a->x + i), in(a->mean + at)), in(a->inv + at));
}

static struct num batch_gamma_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_batch_norm_backward *a = arguments;
    const int64_t end = cut_end(&a->cut, microbatch) * a->spatial;
    struct num sum = constant(0);
    for (int64_t p = cut_begin(&a->cut, microbatch) * a->spatial; p < end; p++) {
        const int64_t i = p * a->channels + at;
        sum = fused(in(a->dy + i), batch_norm_xhat(a, microbatch, i), sum);
    }
    return sum;
}

static struct num batch_beta_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_batch_norm_backward *a = arguments;
    const int64_t end = cut_end(&a->cut, microbatch) * a->spatial;
    struct num sum = constant(0);
    for (int64_t p = cut_begin(&a->cut, microbatch) * a->spatial; p < end; p++)
        sum = add(sum, in(a->dy + p * a->channels + at));
    return sum;
}

UNIT(batch_norm_backward)
{
    if (!is(to, "dx"))
        return over_cut(&a->cut, to->node, is(to, "dgamma") ? batch_gamma_leaf : batch_beta_leaf, a, to->at);
    const int64_t c = to->at % a->channels;
    const int32_t microbatch = microbatch_of(&a->cut, to->at / a->channels / a->spatial);
    const int64_t rows = cut_end(&a->cut, microbatch) - cut_begin(&a->cut, microbatch);
    const struct num n = constant((float)(rows * a->spatial));
    const struct num mean = over(batch_beta_leaf(a, microbatch, c), n);
    const struct num product = over(batch_gamma_leaf(a, microbatch, c), n);
    const struct num slope = mul(in(a->gamma + c), in(a->inv + microbatch * a->channels + c));
    return mul(slope, fused(negated(batch_norm_xhat(a, microbatch, to->at)), product,
                            sub(in(a->dy + to->at), mean)));
}

UNIT(batch_norm_infer)
{
    const int64_t c = to->at % a->channels;
    const struct num inv = inverse(in(a->var + c), a->epsilon);
    return fused(mul(sub(in(a->x + to->at), in(a->mean + c)), inv), in(a->gamma + c), in(a->beta + c));
}

const struct unit_entry unit_norm[] = {
    UNIT_ENTRY(softmax_forward) UNIT_ENTRY(softmax_backward) UNIT_ENTRY(layer_norm_forward)
        UNIT_ENTRY(layer_norm_backward) UNIT_ENTRY(rms_norm_forward) UNIT_ENTRY(rms_norm_backward)
            UNIT_ENTRY(batch_norm_forward) UNIT_ENTRY(batch_norm_backward) UNIT_ENTRY(batch_norm_infer)
                UNIT_END};
