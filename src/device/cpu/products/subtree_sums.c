#include "device/cpu/products/subtree_sums.h"

#include "base/numbers/tree.h"
#include "device/cpu/vectors/vec.h"

struct addition {
    const struct subtrees *subtrees;
    float *dw, *db;
};

/* Adds `count` <= VW floats: those of the first subtree at `to`, those of the others from `from` on,
   `step` apart. */
V_INLINE void add_vector(const struct subtrees *s, float *to, const float *from, int64_t step, int64_t count)
{
    vf sum[TR_TREE_DEPTH];
    struct tr_tree_fold fold = {0};
    for (int i = 0; i < s->count; i++) {
        sum[fold.waiting] = v_load_part(i == 0 ? to : from + (i - 1) * step, count);
        tr_tree_push(&fold, i + 1 == s->count);
        for (int right; (right = tr_tree_combine(&fold)) > 0;)
            sum[right - 1] = v_add(sum[right - 1], sum[right]);
    }
    v_store_part(to, sum[0], count);
}

static void add(void *arguments, int member, int size)
{
    const struct addition *a = arguments;
    const struct subtrees *s = a->subtrees;
    const int64_t step = s->weights + s->biases;
    int64_t begin, end;
    tr_team_chunk(step, VW, member, size, &begin, &end);
    for (int64_t i = begin; i < end;) {
        const bool bias = i >= s->weights;
        const int64_t left = (bias || end < s->weights ? end : s->weights) - i, count = left < VW ? left : VW;
        add_vector(s, bias ? a->db + (i - s->weights) : a->dw + i, s->sums + i, step, count);
        i += count;
    }
}

void subtrees_add(struct cpu_device *cpu, const struct subtrees *subtrees, float *dw, float *db)
{
    struct addition addition = {subtrees, dw, db};
    const double floats = (double)subtrees->count * (double)(subtrees->weights + subtrees->biases);
    cpu_run(cpu, 4.0 * floats / VW, add, &addition);
}
