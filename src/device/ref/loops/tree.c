#include "device/ref/loops/tree.h"

#include "base/alloc.h"
#include "base/numbers/tree.h"

#include <string.h>

/* The sum of the microbatches [begin, end), left at the bottom of the stack. */
static void reduce(int32_t begin, int32_t end, int64_t width, ref_leaf leaf, const void *arguments,
                   float *stack)
{
    struct tr_tree_fold fold = {0};
    if (begin == end) memset(stack, 0, (size_t)width * sizeof *stack);
    for (int32_t i = begin; i < end; i++) {
        float *fresh = stack + fold.waiting * width;
        memset(fresh, 0, (size_t)width * sizeof *fresh);
        leaf(arguments, i, fresh);
        tr_tree_push(&fold, i + 1 == end);
        for (int top; (top = tr_tree_combine(&fold)) > 0;) {
            float *left = stack + (top - 1) * width;
            const float *right = stack + top * width;
            for (int64_t k = 0; k < width; k++) left[k] = left[k] + right[k];
        }
    }
}

tr_status ref_tree(const struct tr_cut *cut, int64_t width, ref_leaf leaf, const void *arguments, float *out)
{
    int32_t most = 1;
    for (int32_t j = 0; j < cut->nodes; j++) {
        int32_t leaves = cut->bound[j + 1] - cut->bound[j];
        most = leaves > most ? leaves : most;
    }
    int levels = tr_tree_levels(most);
    float *stack = tr_alloc((size_t)width * (size_t)levels, sizeof *stack);
    if (!stack) return TR_ENOMEM;
    for (int32_t j = 0; j < cut->nodes; j++) {
        reduce(cut->bound[j], cut->bound[j + 1], width, leaf, arguments, stack);
        memcpy(out + j * cut->stride, stack, (size_t)width * sizeof *out);
    }
    tr_free(stack);
    return TR_OK;
}
