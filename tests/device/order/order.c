#include "device/order/order.h"

#include "base/alloc.h"
#include "base/numbers/mathf.h"

#include <assert.h>

enum order_fault order_fault;
bool order_used[ORDER_FAULTS];

void order_forget(void)
{
    for (int i = 0; i < ORDER_FAULTS; i++) order_used[i] = false;
}

/* ---- terms ---- */

/* They grow with the longest sum, and stay. */
struct list {
    float *number;
    int64_t count, room;
};
static struct list lefts, rights, leaves;

static void push(struct list *list, float x)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 1024;
        list->number = tr_realloc(list->number, (size_t)list->room, sizeof *list->number);
        assert(list->number);
    }
    list->number[list->count++] = x;
}

void term(float a, float b)
{
    push(&lefts, a);
    push(&rights, b);
}

void number(float a)
{
    push(&lefts, a);
}

void leaf(float x)
{
    push(&leaves, x);
}

void order_release(void)
{
    struct list *const lists[] = {&lefts, &rights, &leaves};
    for (int i = 0; i < 3; i++) {
        tr_free(lists[i]->number);
        *lists[i] = (struct list){0};
    }
}

float fused(float a, float b, float c)
{
    order_used[ORDER_SWAPPED] = true;
    return order_fault == ORDER_SWAPPED ? fmaf(a, c, b) : fmaf(a, b, c);
}

/* Terms first, first + step, ...; `products`: of a and b. */
static float combine(float acc, int64_t first, int64_t step, bool products)
{
    const int64_t count = lefts.count > first ? (lefts.count - first + step - 1) / step : 0;
    float before = 0;
    bool cut = false;
    if (count >= 3) order_used[ORDER_DESCENDING] = order_used[ORDER_CUT] = true;
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = first + (order_fault == ORDER_DESCENDING ? count - 1 - i : i) * step;
        if (order_fault == ORDER_CUT && count >= 2 && i == count / 2) {
            before = acc;
            acc = 0;
            cut = true;
        }
        acc = products ? fused(lefts.number[k], rights.number[k], acc) : acc + lefts.number[k];
    }
    return cut ? before + acc : acc;
}

static float all(float from, bool products)
{
    const float result = combine(from, 0, 1, products);
    lefts.count = rights.count = 0;
    return result;
}

float chain(float from)
{
    return all(from, true);
}

float sum_chain(float from)
{
    return all(from, false);
}

static float lanes(bool products)
{
    float lane[16];
    for (int j = 0; j < 16; j++) lane[j] = combine(0, j, 16, products);
    if (lefts.count > 2) order_used[ORDER_TREE] = true;
    for (int half = 8; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] = order_fault == ORDER_TREE ? lane[2 * j] + lane[2 * j + 1] : lane[j] + lane[j + half];
    lefts.count = rights.count = 0;
    return lane[0];
}

float lane_chain(void)
{
    return lanes(true);
}

float lane_sum(void)
{
    return lanes(false);
}

int64_t greatest(void)
{
    int64_t best = 0;
    for (int64_t k = 1; k < lefts.count; k++) {
        const float x = lefts.number[k], kept = lefts.number[best];
        if (x == kept) order_used[ORDER_DESCENDING] = true;
        if (x > kept || (isnan(x) && !isnan(kept)) || (x == kept && order_fault == ORDER_DESCENDING))
            best = k;
    }
    lefts.count = rights.count = 0;
    return best;
}

/* ---- trees ---- */

static float sum_of(const float *x, int64_t count)
{
    int64_t left = 1;
    if (count == 0) return 0;
    if (count == 1) return *x;
    while (2 * left < count) left *= 2;
    if (left != count / 2) order_used[ORDER_TREE] = true;
    if (order_fault == ORDER_TREE) left = count / 2;
    return sum_of(x, left) + sum_of(x + left, count - left);
}

float tree(void)
{
    const float result = sum_of(leaves.number, leaves.count);
    leaves.count = 0;
    return result;
}

void each_node(const struct tr_cut *cut, int64_t width, float *out, order_leaf *value, const void *a)
{
    for (int32_t node = 0; node < cut->nodes; node++)
        for (int64_t k = 0; k < width; k++) {
            for (int32_t i = cut->bound[node]; i < cut->bound[node + 1]; i++)
                leaf(value(a, cut->row[i], cut->row[i + 1], k));
            out[node * cut->stride + k] = tree();
        }
}

int64_t rows_of(const struct tr_cut *cut)
{
    return cut->count > 0 ? cut->row[cut->count] : 0;
}

/* ---- pieces ---- */

float activated(enum tr_activation activation, float slope, float x)
{
    switch (activation) {
    case TR_ACT_RELU:
        return 0 > x ? 0 : x;
    case TR_ACT_LEAKY_RELU:
        return 0 > x ? slope * x : x;
    case TR_ACT_TANH:
        return tr_tanhf(x);
    case TR_ACT_SIGMOID:
        return tr_sigmoidf(x);
    case TR_ACT_GELU:
        return (0.5f * x) * (1 + tr_erff(x * 0x1.6a09e6p-1f));
    case TR_ACT_GELU_TANH:
        return (0.5f * x) * (1 + tr_tanhf(x * fused(x * x, 0x1.2444f2p-5f, 0x1.988454p-1f)));
    case TR_ACT_SILU:
        return x * tr_sigmoidf(x);
    case TR_ACT_RELU6:
        return x < 0 ? 0 : x > 6 ? 6 : x;
    case TR_ACT_HARD_SWISH:
        return x * ((x + 3 < 0 ? 0 : x + 3 > 6 ? 6 : x + 3) * 0x1.555556p-3f);
    default:
        return x;
    }
}

int64_t *taps_between(const struct tr_sliding_window *window)
{
    const int64_t in = pixels_in(window), out = pixels_out(window), taps = taps_of(window);
    int64_t *tap_of = tr_alloc_zero((size_t)(in * out) + 1, sizeof *tap_of);
    for (int64_t i = 0; i < in * out; i++) tap_of[i] = -1;
    for (int64_t i = 0; i < out * taps; i++) {
        const int64_t from = pixel_of(window, i / taps, i % taps);
        if (from >= 0) tap_of[from * out + i / taps] = i % taps;
    }
    return tap_of;
}

int64_t pixels_in(const struct tr_sliding_window *w)
{
    return (int64_t)w->in_h * w->in_w;
}

int64_t pixels_out(const struct tr_sliding_window *w)
{
    return (int64_t)w->out_h * w->out_w;
}

int64_t taps_of(const struct tr_sliding_window *w)
{
    return (int64_t)w->kernel_h * w->kernel_w;
}

int64_t pixel_of(const struct tr_sliding_window *w, int64_t output, int64_t tap)
{
    const int64_t h = output / w->out_w * w->stride_h + tap / w->kernel_w * w->dilation_h - w->pad_top;
    const int64_t v = output % w->out_w * w->stride_w + tap % w->kernel_w * w->dilation_w - w->pad_left;
    return h < 0 || h >= w->in_h || v < 0 || v >= w->in_w ? -1 : h * w->in_w + v;
}

float flushed(float x)
{
    return fabsf(x) < 0x1p-100f ? 0.0f : x;
}
