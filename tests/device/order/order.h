/* The order of arithmetic, judged by somebody else: each operation of TR_DEVICE_OPS once more, in a few lines
 * of the tests' own words, which state in which order numbers are combined and nothing about how that is done
 * quickly. test_order.c holds `ref` to the byte to it, in all cases.
 *
 * To add an operation: write ORDER(operation) in the file of its family, from the text in
 * device/ops/, not from the loops in device/ref/. Terms are pushed in the order of the text; chain(), tree()
 * and their like combine what was pushed and forget it. Nothing here is for several threads.
 *
 * Faults: test_order.c also combines in wrong orders on purpose, and fails for an operation whose cases do
 * not notice.
 */
#ifndef TESTS_DEVICE_ORDER_H
#define TESTS_DEVICE_ORDER_H

#include "device/device.h"

#include <math.h>

#define ORDER(op)          void order_##op(const struct tr_op_##op *a)
#define ORDER_FUNCTION(op) __attribute__((weak)) ORDER(op);
TR_DEVICE_OPS(ORDER_FUNCTION)
#undef ORDER_FUNCTION

enum order_fault {
    ORDER_RIGHT,
    ORDER_DESCENDING, /* the last term first; of equal greatest numbers the last */
    ORDER_SWAPPED,    /* fma(a, c, b) for fma(a, b, c) */
    ORDER_TREE,       /* halves for the largest power of two; lanes combine with their neighbours */
    ORDER_CUT,        /* the second half of a chain begins anew, and is added to the first */
    ORDER_FAULTS
};
extern enum order_fault order_fault;
/* Whether the fault could have changed something since order_forget(). */
extern bool order_used[ORDER_FAULTS];
void order_forget(void);
/* Memory of terms and leaves; after all sums. */
void order_release(void);

/* a * b in one rounding with c. */
float fused(float a, float b, float c);

/* The next term of a sum: a * b, or a alone. */
void term(float a, float b);
void number(float a);
/* acc = fma(a, b, acc) over the terms, or acc = acc + a; ascending, from `from`. */
float chain(float from);
float sum_chain(float from);
/* The same in 16 lanes, as device/ops.h has them. */
float lane_chain(void);
float lane_sum(void);
/* Where the greatest is: the first of equals; NaN is greater than all. */
int64_t greatest(void);

/* The next leaf; and the sum of all in the tree of base/numbers/tree.h, +0 of none. */
void leaf(float x);
float tree(void);
/* Each node of a cut: out[k], k < width, is the tree over its microbatches of value(a, first row, end row,
 * k).
 */
typedef float order_leaf(const void *a, int64_t first, int64_t end, int64_t k);
void each_node(const struct tr_cut *cut, int64_t width, float *out, order_leaf *value, const void *a);

/* Activations, by their formulas. */
float activated(enum tr_activation activation, float slope, float x);
/* Whether and where a tap of an output lies inside the image: the number of the pixel, or -1. */
int64_t pixel_of(const struct tr_sliding_window *window, int64_t output, int64_t tap);
/* By which tap an output reads a pixel, or -1: [pixel][output], which the caller frees. */
int64_t *taps_between(const struct tr_sliding_window *window);
int64_t pixels_in(const struct tr_sliding_window *window);
int64_t pixels_out(const struct tr_sliding_window *window);
int64_t taps_of(const struct tr_sliding_window *window);
int64_t rows_of(const struct tr_cut *cut);
float flushed(float x);

#endif
