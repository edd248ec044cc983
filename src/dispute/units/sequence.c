/* Units of embeddings, positions, and rows made of neighbours. */
#include "base/numbers/math.h"
#include "device/rotary.h"
#include "dispute/units/numbers.h"

UNIT(embedding_forward)
{
    const int64_t token = whole(a->token + to->at / a->width);
    return in(a->table + token * a->width + to->at % a->width);
}

static struct num embedding_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_embedding_backward *a = arguments;
    struct num sum = constant(0);
    for (int64_t r = cut_begin(&a->cut, microbatch); r < cut_end(&a->cut, microbatch); r++)
        if (whole(a->token + r) == at / a->width) sum = add(sum, in(a->dy + r * a->width + at % a->width));
    return sum;
}

UNIT(embedding_backward)
{
    return over_cut(&a->cut, to->node, embedding_leaf, a, to->at);
}

UNIT(sequence_last_forward)
{
    const int64_t e = to->at / a->width, end = whole(a->offset + e + 1);
    if (whole(a->offset + e) == end) return constant(0);
    return in(a->x + (end - 1) * a->width + to->at % a->width);
}

UNIT(sequence_last_backward)
{
    const int64_t r = to->at / a->width;
    const struct unit_example rows = example_of(a->offset, a->examples, r);
    return r + 1 == rows.end ? in(a->dy + rows.number * a->width + to->at % a->width) : constant(0);
}

UNIT(sequence_unfold)
{
    const int64_t k = to->at % a->width, tap = to->at / a->width % a->taps, r = to->at / a->width / a->taps;
    const struct unit_example rows = example_of(a->offset, a->examples, r);
    const int64_t from = r + tap * a->dilation - a->before;
    return from < rows.begin || from >= rows.end ? constant(0) : in(a->x + from * a->width + k);
}

UNIT(sequence_fold)
{
    const int64_t k = to->at % a->width, r = to->at / a->width;
    const struct unit_example rows = example_of(a->offset, a->examples, r);
    struct num sum = constant(0);
    for (int64_t tap = 0; tap < a->taps; tap++) {
        const int64_t from = r - tap * a->dilation + a->before;
        if (from >= rows.begin && from < rows.end)
            sum = add(sum, in(a->dy + (from * a->taps + tap) * a->width + k));
    }
    return sum;
}

UNIT(sequence_copy)
{
    const int64_t k = to->at % a->width, r = to->at / a->width;
    const struct unit_example rows = example_of(a->offset, a->examples, r);
    return in(a->x + (a->reverse ? rows.begin + rows.end - 1 - r : r) * a->x_step + k);
}

/* ---- positions ---- */

static int64_t table_row(int64_t t, int64_t length)
{
    return t < length ? t : length - 1;
}

UNIT(position_forward)
{
    const int64_t r = to->at / a->width;
    const struct unit_example rows = example_of(a->offset, a->examples, r);
    const float *row = a->table + table_row(r - rows.begin, a->length) * a->width;
    return add(in(a->x + to->at), in(row + to->at % a->width));
}

static struct num position_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct tr_op_position_backward *a = arguments;
    struct num sum = constant(0);
    for (int64_t e = cut_begin(&a->cut, microbatch); e < cut_end(&a->cut, microbatch); e++) {
        const int64_t begin = whole(a->offset + e), end = whole(a->offset + e + 1);
        for (int64_t r = begin; r < end; r++)
            if (table_row(r - begin, a->length) == at / a->width)
                sum = add(sum, in(a->dy + r * a->width + at % a->width));
    }
    return sum;
}

UNIT(position_backward)
{
    return over_cut(&a->cut, to->node, position_leaf, a, to->at);
}

/* The angle depends on no data, so its sine and cosine are constants. */
UNIT(rotary)
{
    const int64_t columns = a->heads * a->size, r = to->at / columns, half = a->size / 2;
    const int64_t head = to->at % columns / a->size, i = to->at % a->size;
    const int64_t k = a->pairs ? i / 2 : i % half;
    const bool is_first = a->pairs ? i % 2 == 0 : i < half;
    const struct unit_example rows = example_of(a->offset, a->examples, r);
    const double angle = (double)(a->past + r - rows.begin) * tr_rotary_turn(a, k);
    const float c = (float)tr_cos(angle), turned = (float)tr_cos(angle - 0x1.921fb54442d18p0);
    const float s = a->inverse ? -turned : turned;
    const float *x = a->x + r * a->step + head * a->size;
    const struct num first = in(x + (a->pairs ? 2 * k : k)),
                     second = in(x + (a->pairs ? 2 * k + 1 : k + half));
    return is_first ? fused(constant(-s), second, mul(constant(c), first))
                    : fused(constant(s), first, mul(constant(c), second));
}

const struct unit_entry unit_sequence[] = {
    UNIT_ENTRY(embedding_forward) UNIT_ENTRY(embedding_backward) UNIT_ENTRY(sequence_last_forward)
        UNIT_ENTRY(sequence_last_backward) UNIT_ENTRY(sequence_unfold) UNIT_ENTRY(sequence_fold)
            UNIT_ENTRY(sequence_copy) UNIT_ENTRY(position_forward) UNIT_ENTRY(position_backward)
                UNIT_ENTRY(rotary) UNIT_END};
