/* The tables by which GPUs compute convolutions, played on the host: each output is met once, and its chain
 * goes over the places that device/ops.h names, in that order. For every small axis, in pairs, and both sides
 * of them.
 */
#include "device/gpu/conv_plan.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

struct axis {
    int32_t in, out, kernel, stride, dilation, pad;
};

enum { IN_C = 2, OUT_C = 3, MOST_PLACES = 1024, MOST_CHAIN = 128 };

static int32_t table_at(const struct gpu_conv_plan *plan, int64_t index)
{
    assert_true(index >= 0 && (size_t)index < plan->bytes / sizeof *plan->table);
    return plan->table[index];
}

/* ---- what the definition says ---- */

/* Pairs of places in A and B. */
struct chain {
    int count;
    int32_t place[MOST_CHAIN][2];
};

static void add(struct chain *chain, int32_t a, int32_t b)
{
    assert_true(chain->count < MOST_CHAIN);
    chain->place[chain->count][0] = a;
    chain->place[chain->count++][1] = b;
}

static bool meets(int32_t out, int32_t kernel, int32_t stride, int32_t dilation, int32_t pad, int32_t in)
{
    return out * stride + kernel * dilation - pad == in;
}

/* Of the output pixel (h, w), channel 0. */
static void forward_chain(const struct tr_sliding_window *w, int32_t h, int32_t v, struct chain *chain)
{
    for (int32_t kh = 0; kh < w->kernel_h; kh++)
        for (int32_t kw = 0; kw < w->kernel_w; kw++) {
            int32_t y = h * w->stride_h + kh * w->dilation_h - w->pad_top;
            int32_t x = v * w->stride_w + kw * w->dilation_w - w->pad_left;
            if (y < 0 || y >= w->in_h || x < 0 || x >= w->in_w) continue;
            for (int32_t c = 0; c < IN_C; c++)
                add(chain, (y * w->in_w + x) * IN_C + c, ((kh * w->kernel_w + kw) * IN_C + c) * OUT_C);
        }
}

/* Of the input pixel (h, w), channel 0: by outputs. */
static void data_chain(const struct tr_sliding_window *w, int32_t h, int32_t v, struct chain *chain)
{
    for (int32_t y = 0; y < w->out_h; y++)
        for (int32_t x = 0; x < w->out_w; x++)
            for (int32_t kh = 0; kh < w->kernel_h; kh++)
                for (int32_t kw = 0; kw < w->kernel_w; kw++) {
                    if (!meets(y, kh, w->stride_h, w->dilation_h, w->pad_top, h) ||
                        !meets(x, kw, w->stride_w, w->dilation_w, w->pad_left, v))
                        continue;
                    for (int32_t o = 0; o < OUT_C; o++)
                        add(chain, (y * w->out_w + x) * OUT_C + o,
                            (kh * w->kernel_w + kw) * IN_C * OUT_C + o);
                }
}

/* Of the weight (tap, c, 0), over the pixels of one image. */
static void weight_chain(const struct tr_sliding_window *w, int32_t tap, int32_t c, struct chain *chain)
{
    for (int32_t h = 0; h < w->out_h; h++)
        for (int32_t v = 0; v < w->out_w; v++) {
            int32_t y = h * w->stride_h + tap / w->kernel_w * w->dilation_h - w->pad_top;
            int32_t x = v * w->stride_w + tap % w->kernel_w * w->dilation_w - w->pad_left;
            if (y < 0 || y >= w->in_h || x < 0 || x >= w->in_w) continue;
            add(chain, (y * w->in_w + x) * IN_C + c, (h * w->out_w + v) * OUT_C);
        }
}

/* ---- what the tables say ---- */

static void expect(const struct chain *chain, int64_t count, int32_t k, int32_t a, int32_t b)
{
    assert_int_equal(count, chain->count);
    assert_int_equal(a, chain->place[k][0]);
    assert_int_equal(b, chain->place[k][1]);
}

static void check_pixels(const struct gpu_conv_shape *shape, const struct gpu_conv_plan *plan)
{
    const struct tr_sliding_window *w = &shape->window;
    bool forward = shape->kind == GPU_CONV_FORWARD;
    int32_t width = forward ? w->out_w : w->in_w, channels = forward ? OUT_C : IN_C;
    int32_t places = (forward ? w->out_h : w->in_h) * width * channels;
    char met[MOST_PLACES] = {0};
    int64_t most = 0;
    assert_true(places <= MOST_PLACES);
    for (int32_t s = 0; s < plan->sets; s++) {
        int32_t r[10];
        for (int i = 0; i < 10; i++) r[i] = table_at(plan, s * 10 + i);
        if (r[0] * r[1] > most) most = r[0] * r[1];
        for (int32_t pixel = 0; pixel < r[0] * r[1]; pixel++) {
            int32_t i = pixel / r[1], j = pixel % r[1], c = r[5] + i * r[6] + j * r[7];
            struct chain chain = {0};
            assert_true(c >= 0 && c < places && c % channels == 0 && !met[c]);
            met[c] = 1;
            (forward ? forward_chain : data_chain)(w, c / channels / width, c / channels % width, &chain);
            assert_int_equal(r[9], chain.count);
            for (int32_t k = 0; k < r[9]; k++)
                expect(&chain, r[9], k, r[2] + i * r[3] + j * r[4] + table_at(plan, r[8] + 2 * k),
                       table_at(plan, r[8] + 2 * k + 1));
        }
    }
    for (int32_t c = 0; c < places; c += channels) assert_true(met[c]);
    assert_int_equal(plan->most, most);
}

static void check_taps(const struct gpu_conv_shape *shape, const struct gpu_conv_plan *plan)
{
    const struct tr_sliding_window *w = &shape->window;
    int32_t a_image = w->in_h * w->in_w * IN_C, b_image = w->out_h * w->out_w * OUT_C;
    int32_t places = w->kernel_h * w->kernel_w * IN_C * OUT_C;
    char met[MOST_PLACES] = {0};
    int64_t most = 0;
    assert_true(places <= MOST_PLACES);
    for (int32_t s = 0; s < plan->sets; s++) {
        int32_t t[4];
        for (int i = 0; i < 4; i++) t[i] = table_at(plan, s * 4 + i);
        if (t[0] > most) most = t[0];
        for (int32_t m = 0; m < t[0]; m++) {
            int32_t from = table_at(plan, t[1] + 2 * m), c = table_at(plan, t[1] + 2 * m + 1);
            struct chain chain = {0};
            assert_true(c >= 0 && c < places && c % OUT_C == 0 && !met[c]);
            met[c] = 1;
            weight_chain(w, c / OUT_C / IN_C, c / OUT_C % IN_C, &chain);
            assert_int_equal(t[2], chain.count);
            /* and on into the next images */
            for (int32_t k = 0; t[2] > 0 && k < t[2] + GPU_CONV_WRAP; k++)
                expect(&chain, t[2], k % t[2], from + table_at(plan, t[3] + 2 * k) - k / t[2] * a_image,
                       table_at(plan, t[3] + 2 * k + 1) - k / t[2] * b_image);
        }
    }
    for (int32_t c = 0; c < places; c += OUT_C) assert_true(met[c]);
    assert_int_equal(plan->most, most);
}

static void check(const struct axis *y, const struct axis *x)
{
    const struct tr_sliding_window window = {y->in,       x->in,       y->out,    x->out,
                                             y->kernel,   x->kernel,   y->stride, x->stride,
                                             y->dilation, x->dilation, y->pad,    x->pad};
    for (int kind = GPU_CONV_FORWARD; kind <= GPU_CONV_WEIGHTS; kind++) {
        const struct gpu_conv_shape shape = {(enum gpu_conv)kind, IN_C, OUT_C, window};
        struct gpu_conv_plan plan;
        assert_int_equal(gpu_conv_plan_make(&shape, &plan), TR_OK);
        (kind == GPU_CONV_WEIGHTS ? check_taps : check_pixels)(&shape, &plan);
        tr_free(plan.table);
    }
}

/* ---- all small axes ---- */

static struct axis axes[5 * 4 * 3 * 3 * 2 * 4];
static int axis_count;

static int list_axes(void **state)
{
    (void)state;
    for (int32_t in = 1; in <= 5; in++)
        for (int32_t out = 1; out <= 4; out++)
            for (int32_t kernel = 1; kernel <= 3; kernel++)
                for (int32_t stride = 1; stride <= 3; stride++)
                    for (int32_t dilation = 1; dilation <= 2; dilation++)
                        for (int32_t pad = 0; pad <= 3; pad++)
                            axes[axis_count++] = (struct axis){in, out, kernel, stride, dilation, pad};
    return 0;
}

/* Each with some others, which differ from one to the next in everything. */
static void chains_are_those_of_the_definition(void **state)
{
    enum { OTHERS = 60, APART = 643 };
    (void)state;
    for (int i = 0; i < axis_count; i++)
        for (int n = 1; n <= OTHERS; n++) check(&axes[i], &axes[(i * 7 + n * APART) % axis_count]);
}

/* Tables are indexed with 32 bits. */
static void what_is_too_large_is_refused(void **state)
{
    static const char sizes[] = "images may have 2^26 numbers, its weights 2^31";
    static const char table[] = "the table of its places would have ";
    static const struct {
        struct gpu_conv_shape shape;
        const char *part; /* NULL: it is just small enough */
    } cases[] = {
        {{GPU_CONV_FORWARD, 64, 1, {2048, 2048, 2048, 2048, 3, 3, 1, 1, 1, 1, 1, 1}}, sizes},
        {{GPU_CONV_FORWARD, 1 << 15, 1 << 15, {2, 2, 1, 1, 2, 2, 1, 1, 1, 1, 0, 0}}, sizes},
        {{GPU_CONV_FORWARD, 512, 16, {200, 200, 200, 200, 101, 101, 1, 1, 1, 1, 50, 50}}, table},
        {{GPU_CONV_WEIGHTS, 1, 1, {8190, 8190, 8190, 8190, 5, 5, 1, 1, 1, 1, 2, 2}}, table},
        {{GPU_CONV_FORWARD, 1, 1, {1, (1 << 26) - 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}}, NULL},
        {{GPU_CONV_FORWARD, 1, 1, {1, 1 << 26, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}}, sizes},
        {{GPU_CONV_FORWARD, 1, 1, {1, 1, 1, (1 << 26) - 1, 1, 1, 1, 1, 1, 1, 0, 0}}, NULL},
        /* a tap that meets one output: its places go on through 64 more images */
        {{GPU_CONV_WEIGHTS, 1, 1, {1, 1, 1, INT32_MAX / 65, 1, 1, 1, 1, 1, 1, 0, 0}}, NULL},
        {{GPU_CONV_WEIGHTS, 1, 1, {1, 1, 1, INT32_MAX / 65 + 1, 1, 1, 1, 1, 1, 1, 0, 0}}, sizes},
        {{GPU_CONV_WEIGHTS, 1, 1, {1, 1, 1, 1 << 26, 1, 1, 1, 1, 1, 1, 0, 0}}, sizes},
        {{GPU_CONV_WEIGHTS, 46340, 46340, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}}, NULL},
        {{GPU_CONV_WEIGHTS, 46341, 46341, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}}, sizes},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gpu_conv_plan plan;
        const int64_t live = tr_alloc_live();
        assert_int_equal(gpu_conv_plan_make(&cases[i].shape, &plan), cases[i].part ? TR_EUNSUPPORTED : TR_OK);
        if (cases[i].part) assert_null(plan.table);
        if (cases[i].part && !strstr(tr_error_message(), cases[i].part)) fail_msg("%s", tr_error_message());
        tr_free(plan.table);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void memory_may_fail(void **state)
{
    (void)state;
    for (int kind = GPU_CONV_FORWARD; kind <= GPU_CONV_WEIGHTS; kind++)
        for (int64_t at = 0, done = 0; !done; at++) {
            const struct gpu_conv_shape shape = {
                (enum gpu_conv)kind, IN_C, OUT_C, {5, 6, 4, 3, 3, 3, 1, 2, 1, 1, 1, 1}};
            struct gpu_conv_plan plan;
            const int64_t live = tr_alloc_live();
            refuse_begin(at);
            const tr_status status = gpu_conv_plan_make(&shape, &plan);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            if (!done) assert_null(plan.table);
            tr_free(plan.table);
            assert_int_equal(tr_alloc_live(), live);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_are_those_of_the_definition),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests_name("plans of convolutions", tests, list_axes, NULL);
}
