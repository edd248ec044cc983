/* Dropout: masks are computed from counters where they are needed, VW Philox blocks at a time. */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/mask.h"

#include "base/numbers/rng.h"

/* Elements for VW blocks of four words. Members start at multiples of it within an example. */
#define SPAN (4 * VW)

#define NANOSECONDS_PER_ELEMENT (8.0 / VW)

/* Elements [begin, end) of an example whose element 0 is x[0]; begin is a multiple of SPAN. */
static void drop(const struct mask *mask, uint32_t example, int64_t begin, int64_t end, const float *x,
                 float *y)
{
    vi words[4];
    int64_t i = begin;
    for (; i + SPAN <= end; i += SPAN) {
        mask_words(mask, (uint32_t)(i / 4), example, words);
        for (int k = 0; k < 4; k++)
            v_store(y + i + k * VW, mask_kept(mask, words[k], v_load(x + i + k * VW)));
    }
    if (i == end) return;
    mask_words(mask, (uint32_t)(i / 4), example, words);
    for (int k = 0; k < 4 && i < end; k++, i += VW) {
        int64_t n = end - i < VW ? end - i : VW;
        v_store_part(y + i, mask_kept(mask, words[k], v_load_part(x + i, n)), n);
    }
}

static int64_t first_row(const struct tr_op_dropout *a, int64_t example)
{
    return a->offset ? a->offset[example] : example;
}

static int64_t clamp(int64_t position, int64_t length)
{
    return position < 0 ? 0 : position > length ? length : position;
}

/* A member takes a range of all elements, whose ends are moved down to the start of a span within each
   example. */
static void dropout_part(void *arguments, int member, int size)
{
    const struct tr_op_dropout *a = arguments;
    const struct mask mask = mask_of(a->key, a->scalars->step, a->layer, a->rate);
    int64_t base = first_row(a, 0) * a->width, begin, end;
    tr_team_chunk(first_row(a, a->examples) * a->width - base, SPAN, member, size, &begin, &end);
    for (int64_t e = 0; e < a->examples; e++) {
        int64_t start = first_row(a, e) * a->width, length = first_row(a, e + 1) * a->width - start;
        int64_t from = clamp(base + begin - start, length), to = clamp(base + end - start, length);
        from = from == length ? from : from / SPAN * SPAN;
        to = to == length ? to : to / SPAN * SPAN;
        if (from < to) drop(&mask, a->first_example + (uint32_t)e, from, to, a->x + start, a->y + start);
    }
}

tr_status CPU_KERNEL(dropout)(tr_device *device, const struct tr_op_dropout *a)
{
    if (a->examples == 0) return TR_OK;
    double elements = (double)(first_row(a, a->examples) - first_row(a, 0)) * (double)a->width;
    cpu_run(cpu_device_of(device), elements * NANOSECONDS_PER_ELEMENT, dropout_part, (void *)a);
    return TR_OK;
}

/* ---- whole examples ---- */

static void drop_examples_part(void *arguments, int member, int size)
{
    const struct tr_op_drop_examples *a = arguments;
    const vf grown = v_set1(1 / (1 - a->rate));
    int64_t begin, end;
    tr_team_chunk(a->examples, 1, member, size, &begin, &end);
    for (int64_t e = begin; e < end; e++) {
        uint32_t words[4];
        tr_rng_philox((tr_rng_key){a->key[0], a->key[1]}, 0, a->first_example + (uint32_t)e, a->scalars->step,
                      a->layer, words);
        const bool kept = tr_rng_unit(words[0]) >= a->rate;
        int64_t i = (a->offset ? a->offset[e] : e) * a->width;
        const int64_t stop = (a->offset ? a->offset[e + 1] : e + 1) * a->width;
        for (; i + VW <= stop; i += VW) v_store(a->y + i, kept ? v_mul(v_load(a->x + i), grown) : v_zero());
        const int64_t n = stop - i;
        if (n > 0) v_store_part(a->y + i, kept ? v_mul(v_load_part(a->x + i, n), grown) : v_zero(), n);
    }
}

tr_status CPU_KERNEL(drop_examples)(tr_device *device, const struct tr_op_drop_examples *a)
{
    if (a->examples == 0) return TR_OK;
    const int64_t rows = a->offset ? a->offset[a->examples] : a->examples;
    cpu_run(cpu_device_of(device), (double)(rows * a->width) / VW, drop_examples_part, (void *)a);
    return TR_OK;
}
