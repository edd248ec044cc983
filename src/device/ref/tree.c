/* A binary counter of partial sums: level 0 of the stack is the oldest, and leaves combine as soon as a pair
 * of equal size is complete. What remains after the last leaf combines from the youngest to the oldest.
 */
#include "device/ref/tree.h"

#include "base/alloc.h"
#include "base/tree.h"

#include <string.h>

/* stack[top - 1] = stack[top - 1] + stack[top]: left + right. */
static void combine(float *stack, int64_t width, int top)
{
    float *left = stack + (top - 1) * width;
    const float *right = stack + top * width;
    for (int64_t i = 0; i < width; i++) left[i] = left[i] + right[i];
}

/* The sum of the microbatches [begin, end), left at the bottom of the stack. */
static void reduce(int32_t begin, int32_t end, int64_t width, ref_leaf leaf, const void *arguments,
                   float *stack)
{
    int top = -1;
    for (int32_t i = begin; i < end; i++) {
        float *fresh = stack + ++top * width;
        memset(fresh, 0, (size_t)width * sizeof *fresh);
        leaf(arguments, i, fresh);
        for (int due = tr_tree_combines_after(i - begin); due > 0; due--) combine(stack, width, top--);
    }
    for (; top > 0; top--) combine(stack, width, top);
}

tr_status ref_tree(const struct tr_cut *cut, int64_t width, ref_leaf leaf, const void *arguments, float *out)
{
    int32_t most = 1;
    for (int32_t j = 0; j < cut->nodes; j++) {
        int32_t leaves = cut->bound[j + 1] - cut->bound[j];
        most = leaves > most ? leaves : most;
    }
    int levels = 1; /* of n leaves at most 1 + log2(n) partial sums wait at a time */
    while (most >> levels) levels++;
    float *stack = tr_alloc((size_t)width * (size_t)levels, sizeof *stack);
    if (!stack) return TR_ENOMEM;
    for (int32_t j = 0; j < cut->nodes; j++) {
        reduce(cut->bound[j], cut->bound[j + 1], width, leaf, arguments, stack);
        memcpy(out + j * cut->stride, stack, (size_t)width * sizeof *out);
    }
    tr_free(stack);
    return TR_OK;
}
