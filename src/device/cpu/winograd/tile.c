#include "device/cpu/winograd/winograd.h"

#include "device/cpu/vectors/math.h"

#include <assert.h>

#define W_NAME(name)   v_winograd_##name
#define W_F            vf
#define W_SET(c)       v_set1(c)
#define W_FMA(a, b, c) v_fma(a, b, c)
#define W_ADD(a, b)    v_add(a, b)
#define W_SUB(a, b)    v_sub(a, b)
#define W_MUL(a, b)    v_mul(a, b)
#define W_INLINE       V_INLINE
#include "device/winograd.inc"

#define POINTS    TR_WINOGRAD_POINTS
#define POSITIONS TR_WINOGRAD_POSITIONS

/* Loops over all points, or those of a tile; with a constant number they compile without tests. */
#define EACH(i, end)     V_UNROLL for (int i = 0; i < (end); i++)
#define EACH_POINT(i, n) V_UNROLL for (int i = 0; i < POINTS; i++) if (tr_winograd_has(n, i))

/* Loops with one copy of their body. */
#ifdef __clang__
#define V_ONCE _Pragma("clang loop unroll(disable)")
#else
#define V_ONCE _Pragma("GCC unroll 1")
#endif
/* Loops over the columns and the lines of a tile. Where a tile has twice as many numbers as there are
   registers, each column and line comes from memory in any case: one copy of the loop's body is 4 to 16 %
   faster than six, and takes a third of the code. */
#ifdef TR_ISA_AVX2
#define V_ROLL V_ONCE
#else
#define V_ROLL V_UNROLL
#endif
#define ROLL(i, end)      V_ROLL for (int i = 0; i < (end); i++)
#define ROLL_POINTS(i, n) V_ROLL for (int i = 0; i < POINTS; i++) if (tr_winograd_has(n, i))

V_INLINE vf load(const bool whole, const float *from, int64_t valid)
{
    return whole ? v_load(from) : v_load_part(from, valid);
}

/* ---- from pixels to positions ---- */

/* A line of positions. */
V_INLINE void store_line(const int w, const vf at[POINTS], float *to, const int64_t *offset)
{
    EACH_POINT(j, w) v_store(to + offset[j], at[j]);
}

/* Prefetches pixels that are read soon, `side` x `side` of them. */
V_INLINE void fetch_ahead(const int side, const struct winograd_read *a, int64_t at_channel)
{
    if (!a->next) return;
    const float *next = a->next + at_channel;
    EACH(i, side)
    EACH(j, side) __builtin_prefetch(next + i * a->next_line + j * a->pixel);
}

V_INLINE void input_vector(const int h, const int w, const bool whole, const struct winograd_read *a,
                           int64_t at_channel)
{
    vf half[POSITIONS], d[POINTS], at[POINTS];
    const float *from = a->from + at_channel;
    const int64_t left = a->readable - at_channel, valid = left < 0 ? 0 : left;
    fetch_ahead(TR_WINOGRAD_OUTPUTS, a, at_channel);
    ROLL(j, w)
    {
        EACH(i, h) d[i] = load(whole, from + i * a->line + j * a->pixel, valid);
        v_winograd_input(h, 0, d, 1, half + j, POINTS);
    }
    ROLL_POINTS(i, h)
    {
        v_winograd_input(w, 0, half + i * POINTS, 1, at, 1);
        store_line(w, at, a->to + at_channel, a->offset + i * POINTS);
    }
}

V_INLINE void output_adjoint_vector(const int taps, const int h, const int w, const bool whole,
                                    const struct winograd_read *a, int64_t at_channel)
{
    const int high = h + 1 - taps, wide = w + 1 - taps;
    vf half[POSITIONS], d[POINTS], at[POINTS];
    const float *from = a->from + at_channel;
    const int64_t left = a->readable - at_channel, valid = left < 0 ? 0 : left;
    fetch_ahead(POINTS + 1 - taps, a, at_channel);
    ROLL(j, wide)
    {
        EACH(i, high) d[i] = load(whole, from + i * a->line + j * a->pixel, valid);
        v_winograd_output_adjoint(h, high, d, 1, half + j, POINTS);
    }
    ROLL_POINTS(i, h)
    {
        v_winograd_output_adjoint(w, wide, half + i * POINTS, 1, at, 1);
        store_line(w, at, a->to + at_channel, a->offset + i * POINTS);
    }
}

/* ---- from positions to pixels ---- */

/* Column j of the positions. */
V_INLINE void load_column(const int h, const float *from, int64_t position, int j, vf at[POINTS])
{
    EACH_POINT(i, h) at[i] = v_load(from + (i * POINTS + j) * position);
}

/* Prefetches the pixels of the next image, which are written next. */
V_INLINE void fetch_next(const int h, const int w, const struct winograd_write *a, const float *to)
{
    to += a->image;
    EACH(i, h) EACH(j, w) __builtin_prefetch(to + i * a->line + j * a->pixel, 1, 3);
}

V_INLINE void store(const bool whole, float *to, vf value, int64_t valid)
{
    if (whole)
        v_store(to, value);
    else
        v_store_part(to, value, valid);
}

V_INLINE void output_vector(const int taps, const int h, const int w, const bool whole,
                            const struct winograd_write *a, const struct winograd_finish *finish,
                            const float *from, float *to, int64_t channel)
{
    const int high = h + 1 - taps, wide = w + 1 - taps;
    vf half[POSITIONS], at[POINTS];
    fetch_next(high, wide, a, to);
    ROLL_POINTS(j, w)
    {
        load_column(h, from, a->position, j, at);
        v_winograd_output(h, high, at, 1, half + j, POINTS);
    }
    const vf zero = v_zero(), slope = v_set1(finish->slope);
    ROLL(i, high)
    {
        vf y[POINTS];
        v_winograd_output(w, wide, half + i * POINTS, 1, y, 1);
        if (finish->bias) {
            const vf bias = v_load(finish->bias + channel);
            EACH(j, wide) y[j] = v_add(y[j], bias);
        }
        if (finish->activation == TR_ACT_RELU) {
            EACH(j, wide) y[j] = v_select(v_gt(zero, y[j]), zero, y[j]);
        } else if (finish->activation == TR_ACT_LEAKY_RELU) {
            EACH(j, wide) y[j] = v_select(v_gt(zero, y[j]), v_mul(slope, y[j]), y[j]);
        }
        EACH(j, wide) store(whole, to + i * a->line + j * a->pixel, y[j], a->columns - channel);
    }
}

/* Adds to a line of pixels, or begins it. */
V_INLINE void add_line(const int w, const bool whole, const struct winograd_clip *clip, bool added,
                       const vf dx[POINTS], float *to, int64_t pixel, int64_t valid)
{
    const vf zero = v_zero();
    if (clip->column == 0 && clip->column_end == w && clip->added_left) { /* most lines */
        EACH(j, w)
        {
            const vf before = added || j < clip->overlap ? load(whole, to + j * pixel, valid) : zero;
            store(whole, to + j * pixel, v_add(before, dx[j]), valid);
        }
        return;
    }
    EACH(j, w)
    {
        if (j < clip->column || j >= clip->column_end) continue;
        const vf before =
            added || (clip->added_left && j < clip->overlap) ? load(whole, to + j * pixel, valid) : zero;
        store(whole, to + j * pixel, v_add(before, dx[j]), valid);
    }
}

V_INLINE void input_adjoint_vector(const int h, const int w, const bool whole, const struct winograd_write *a,
                                   const struct winograd_clip *clip, const float *from, float *to,
                                   int64_t channel)
{
    vf half[POSITIONS], at[POINTS];
    const int64_t valid = a->columns - channel;
    fetch_next(h, w, a, to);
    ROLL_POINTS(j, w)
    {
        load_column(h, from, a->position, j, at);
        v_winograd_input_adjoint(h, 0, at, 1, half + j, POINTS);
    }
    V_ONCE for (int i = 0; i < h; i++)
    {
        if (i < clip->line || i >= clip->line_end) continue;
        vf dx[POINTS];
        v_winograd_input_adjoint(w, 0, half + i * POINTS, 1, dx, 1);
        add_line(w, whole, clip, clip->added_above && i < clip->overlap, dx, to + i * a->line, a->pixel,
                 valid);
    }
}

/* ---- the shapes ---- */

V_INLINE void each_input(const int h, const int w, const struct winograd_read *a)
{
    for (int64_t k = 0; k < a->count; k += VW) {
        if (k + VW <= a->readable)
            input_vector(h, w, true, a, k);
        else
            input_vector(h, w, false, a, k);
    }
}

V_INLINE void each_output_adjoint(const int taps, const int h, const int w, const struct winograd_read *a)
{
    for (int64_t k = 0; k < a->count; k += VW) {
        if (k + VW <= a->readable)
            output_adjoint_vector(taps, h, w, true, a, k);
        else
            output_adjoint_vector(taps, h, w, false, a, k);
    }
}

V_INLINE void each_output(const int taps, const int h, const int w, const struct winograd_write *a,
                          const struct winograd_finish *finish)
{
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t k = 0; k < a->columns; k += VW) {
            const float *from = a->from + r * a->row + k;
            float *to = a->to + r * a->image + k;
            if (k + VW <= a->columns)
                output_vector(taps, h, w, true, a, finish, from, to, k);
            else
                output_vector(taps, h, w, false, a, finish, from, to, k);
        }
}

V_INLINE void each_input_adjoint(const int h, const int w, const struct winograd_write *a,
                                 const struct winograd_clip *clip)
{
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t k = 0; k < a->columns; k += VW) {
            const float *from = a->from + r * a->row + k;
            float *to = a->to + r * a->image + k;
            if (k + VW <= a->columns)
                input_adjoint_vector(h, w, true, a, clip, from, to, k);
            else
                input_adjoint_vector(h, w, false, a, clip, from, to, k);
        }
}

#define EACH_SHAPE(X) X(4, 4) X(4, 5) X(4, 6) X(5, 4) X(5, 5) X(5, 6) X(6, 4) X(6, 5) X(6, 6)
/* The shapes of 3 taps are all, those of 5 taps have 5 or 6 points. */
#define EACH_SHAPE_OF_5(X) X(5, 5) X(5, 6) X(6, 5) X(6, 6)

#define DEFINE_INPUT(h, w)                                                                                   \
    static void input_##h##_##w(const struct winograd_read *a)                                               \
    {                                                                                                        \
        each_input(h, w, a);                                                                                 \
    }                                                                                                        \
    static void input_adjoint_##h##_##w(const struct winograd_write *a, const struct winograd_clip *clip)    \
    {                                                                                                        \
        each_input_adjoint(h, w, a, clip);                                                                   \
    }
#define DEFINE_OUTPUT(taps, h, w)                                                                            \
    static void output_adjoint_##taps##_##h##_##w(const struct winograd_read *a)                             \
    {                                                                                                        \
        each_output_adjoint(taps, h, w, a);                                                                  \
    }                                                                                                        \
    static void output_##taps##_##h##_##w(const struct winograd_write *a,                                    \
                                          const struct winograd_finish *finish)                              \
    {                                                                                                        \
        each_output(taps, h, w, a, finish);                                                                  \
    }
#define DEFINE_OUTPUT_3(h, w) DEFINE_OUTPUT(3, h, w)
#define DEFINE_OUTPUT_5(h, w) DEFINE_OUTPUT(5, h, w)
EACH_SHAPE(DEFINE_INPUT)
EACH_SHAPE(DEFINE_OUTPUT_3)
EACH_SHAPE_OF_5(DEFINE_OUTPUT_5)

#define READ(h, w)           [h - 4][w - 4] = input_##h##_##w,
#define WRITE_ADJOINT(h, w)  [h - 4][w - 4] = input_adjoint_##h##_##w,
#define READ_ADJOINT_3(h, w) [0][h - 4][w - 4] = output_adjoint_3_##h##_##w,
#define READ_ADJOINT_5(h, w) [1][h - 4][w - 4] = output_adjoint_5_##h##_##w,
#define WRITE_3(h, w)        [0][h - 4][w - 4] = output_3_##h##_##w,
#define WRITE_5(h, w)        [1][h - 4][w - 4] = output_5_##h##_##w,
static void (*const inputs[3][3])(const struct winograd_read *) = {EACH_SHAPE(READ)};
static void (*const input_adjoints[3][3])(const struct winograd_write *,
                                          const struct winograd_clip *) = {EACH_SHAPE(WRITE_ADJOINT)};
/* Of 3 taps, of 5. */
static void (*const output_adjoints[2][3][3])(const struct winograd_read *) = {
    EACH_SHAPE(READ_ADJOINT_3) EACH_SHAPE_OF_5(READ_ADJOINT_5)};
static void (*const outputs[2][3][3])(const struct winograd_write *, const struct winograd_finish *) = {
    EACH_SHAPE(WRITE_3) EACH_SHAPE_OF_5(WRITE_5)};

void winograd_input(int points_h, int points_w, const struct winograd_read *read)
{
    if (V_SHAPES)
        inputs[points_h - 4][points_w - 4](read);
    else
        each_input(points_h, points_w, read);
}

void winograd_output_adjoint(int taps, int points_h, int points_w, const struct winograd_read *read)
{
    if (V_SHAPES)
        output_adjoints[taps == 5][points_h - 4][points_w - 4](read);
    else
        each_output_adjoint(taps, points_h, points_w, read);
}

/* Applies the activations that take many registers, after the outputs were written. */
static void activate(int high, int wide, const struct winograd_write *a, enum tr_activation activation)
{
    for (int64_t r = 0; r < a->rows; r++)
        for (int i = 0; i < high; i++)
            for (int j = 0; j < wide; j++)
                for (int64_t k = 0; k < a->columns; k += VW) {
                    float *to = a->to + r * a->image + i * a->line + j * a->pixel + k;
                    const int64_t n = a->columns - k < VW ? a->columns - k : VW;
                    const vf y = v_load_part(to, n);
                    v_store_part(to, activation == TR_ACT_TANH ? v_tanh(y) : v_sigmoid(y), n);
                }
}

void winograd_output(int taps, int points_h, int points_w, const struct winograd_write *write,
                     const struct winograd_finish *finish)
{
    if (V_SHAPES)
        outputs[taps == 5][points_h - 4][points_w - 4](write, finish);
    else
        each_output(taps, points_h, points_w, write, finish);
    if (finish->activation == TR_ACT_TANH || finish->activation == TR_ACT_SIGMOID)
        activate(points_h + 1 - taps, points_w + 1 - taps, write, finish->activation);
}

void winograd_input_adjoint(int points_h, int points_w, const struct winograd_write *write,
                            const struct winograd_clip *clip)
{
    if (V_SHAPES)
        input_adjoints[points_h - 4][points_w - 4](write, clip);
    else
        each_input_adjoint(points_h, points_w, write, clip);
}

/* ---- weights ---- */

V_INLINE void each_weight(const int taps, const float *from, int64_t depth, float *to, int64_t position)
{
    const int64_t tap = depth * TILE_COLUMNS;
    for (int64_t k = 0; k < depth * TILE_COLUMNS; k += VW) {
        vf g[TR_WINOGRAD_TAPS], half[POINTS * TR_WINOGRAD_TAPS], at[POINTS];
        V_ONCE for (int j = 0; j < taps; j++)
        {
            EACH(i, taps) g[i] = v_load(from + (i * taps + j) * tap + k);
            v_winograd_weights(taps, g, 1, half + j, taps);
        }
        V_ONCE for (int i = 0; i < POINTS; i++)
        {
            v_winograd_weights(taps, half + i * taps, 1, at, 1);
            EACH(j, POINTS) v_store(to + (i * POINTS + j) * position + k, at[j]);
        }
    }
}

void winograd_weights(int taps, const float *from, int64_t depth, float *to, int64_t position)
{
    if (taps == 3)
        each_weight(3, from, depth, to, position);
    else
        each_weight(5, from, depth, to, position);
}

V_INLINE void each_sum(const int taps, const struct winograd_leaf *a)
{
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t k = 0; k < a->columns; k += VW) {
            vf at[POINTS], half[TR_WINOGRAD_TAPS * POINTS], g[TR_WINOGRAD_TAPS];
            const float *from = a->from + r * a->width + k;
            float *to = a->to + r * a->row + k;
            V_ONCE for (int j = 0; j < POINTS; j++)
            {
                load_column(6, from, a->position, j, at);
                v_winograd_weights_adjoint(taps, at, 1, half + j, POINTS);
            }
            V_ONCE for (int i = 0; i < taps; i++)
            {
                v_winograd_weights_adjoint(taps, half + i * POINTS, 1, g, 1);
                for (int n = 0; n < a->lefts; n++) {
                    const float *left = a->left[n] + r * a->left_row + k + i * taps * a->left_tap;
                    EACH(j, taps) g[j] = v_add(v_load(left + j * a->left_tap), g[j]);
                }
                EACH(j, taps) store(k + VW <= a->columns, to + (i * taps + j) * a->tap, g[j], a->columns - k);
            }
        }
}

void winograd_sums(const struct winograd_leaf *a)
{
    if (a->taps == 3)
        each_sum(3, a);
    else
        each_sum(5, a);
}
