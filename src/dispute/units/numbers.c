#include "dispute/units/numbers.h"

#include "base/fail.h"

#include <inttypes.h>

/* The unit being built on this thread. */
static _Thread_local struct {
    struct tr_unit_program *program;
    const struct tr_unit_source *source;
} now;

struct num unit_emit(enum tr_program_op op, struct num a, struct num b, struct num c, struct num d)
{
    return (struct num){tr_program_add(now.program, op, (const uint32_t[]){a.id, b.id, c.id, d.id})};
}

struct num word(uint32_t bits)
{
    return (struct num){tr_program_constant(now.program, bits)};
}

struct num constant(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return word(bits);
}

void unit_refuse(const char *why)
{
    if (now.program->status == TR_OK) now.program->status = tr_fail(TR_EFORMAT, "%s", why);
}

/* ---- functions, by the definitions that everybody shares ---- */

#define M_NAME(name)           num_##name
#define M_F                    struct num
#define M_I                    struct num
#define M_SET(c)               constant(c)
#define M_SET_INT(c)           word((uint32_t)(c))
#define M_INFINITY             __builtin_inff()
#define M_NAN                  __builtin_nanf("")
#define M_FMA(a, b, c)         fused(a, b, c)
#define M_ADD(a, b)            add(a, b)
#define M_SUB(a, b)            sub(a, b)
#define M_MUL(a, b)            mul(a, b)
#define M_DIV(a, b)            over(a, b)
#define M_LESS(a, b, yes, no)  if_less(a, b, yes, no)
#define M_EQUAL(a, b, yes, no) if_equal(a, b, yes, no)
#define M_BITS(x)              (x)
#define M_FLOAT(bits)          (bits)
#define M_TO_FLOAT(n)          unit_emit(TR_PROGRAM_FLOAT, n, n, n, n)
#define M_IADD(a, b)           unit_emit(TR_PROGRAM_IADD, a, b, a, a)
#define M_ISUB(a, b)           unit_emit(TR_PROGRAM_ISUB, a, b, a, a)
#define M_AND(a, b)            unit_emit(TR_PROGRAM_AND, a, b, a, a)
#define M_OR(a, b)             unit_emit(TR_PROGRAM_OR, a, b, a, a)
#define M_SHL(a, count)        unit_emit(TR_PROGRAM_SHL, a, word(count), a, a)
#define M_SHR(a, count)        unit_emit(TR_PROGRAM_SHR, a, word(count), a, a)
#include "base/numbers/mathf.inc"

struct num flushed(struct num a)
{
    return num_flush(a);
}

struct num exponential(struct num a)
{
    return num_exp(a);
}

struct num logarithm(struct num a)
{
    return num_log(a);
}

struct num tangent(struct num a)
{
    return num_tanh(a);
}

struct num sigmoid(struct num a)
{
    return num_sigmoid(a);
}

struct num error_function(struct num a)
{
    return num_erf(a);
}

/* ---- inputs ---- */

static uint64_t open(const void *at, int bytes, bool own, uint32_t *leaf, uint32_t *byte)
{
    uint64_t value = 0;
    if (now.program->status == TR_OK)
        now.program->status = now.source->open(now.source->user, at, bytes, own, &value, leaf, byte);
    return now.program->status == TR_OK ? value : 0;
}

static struct num load(const void *at, int bytes, bool own)
{
    uint32_t leaf = 0, byte = 0;
    uint32_t value = (uint32_t)open(at, bytes, own, &leaf, &byte);
    return (struct num){tr_program_load(now.program, bytes == 1, leaf, byte, value)};
}

struct num in(const void *at)
{
    return load(at, 4, false);
}

struct num own(const void *at)
{
    return load(at, 4, true);
}

struct num in_byte(const void *at)
{
    return load(at, 1, false);
}

static uint64_t number_at(const void *at, int bytes)
{
    uint32_t leaf, byte;
    return open(at, bytes, false, &leaf, &byte);
}

int64_t whole(const int32_t *at)
{
    return (int32_t)(uint32_t)number_at(at, 4);
}

int64_t whole_byte(const uint8_t *at)
{
    return (int64_t)number_at(at, 1);
}

int64_t wide(const int64_t *at)
{
    return (int64_t)number_at(at, 8);
}

struct unit_example example_of(const int32_t *offset, int64_t examples, int64_t row)
{
    int64_t low = 0, high = examples - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (whole(offset + middle + 1) > row)
            high = middle;
        else
            low = middle + 1;
    }
    return (struct unit_example){low, whole(offset + low), whole(offset + low + 1)};
}

/* ---- what texts of operations share ---- */

struct lane_sum lanes_begin(void)
{
    struct lane_sum lanes = {.count = 0};
    const struct num zero = constant(0);
    for (int i = 0; i < LANES; i++) lanes.lane[i] = zero;
    return lanes;
}

void lanes_add(struct lane_sum *lanes, struct num a)
{
    struct num *lane = &lanes->lane[lanes->count++ % LANES];
    *lane = add(*lane, a);
}

void lanes_fused(struct lane_sum *lanes, struct num a, struct num b)
{
    struct num *lane = &lanes->lane[lanes->count++ % LANES];
    *lane = fused(a, b, *lane);
}

struct num lanes_total(const struct lane_sum *lanes)
{
    struct num lane[LANES];
    memcpy(lane, lanes->lane, sizeof lane);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) lane[j] = add(lane[j], lane[j + half]);
    return lane[0];
}

/* NaN replaces a number, and nothing replaces NaN. */
static struct num replaced(struct num later, struct num before, struct num yes, struct num no)
{
    const struct num greater = if_less(before, later, yes, no);
    return if_equal(later, later, greater, if_equal(before, before, yes, no));
}

void greatest_add(struct greatest *greatest, struct num value, int64_t at)
{
    const struct num number = word((uint32_t)at);
    if (!greatest->any) {
        *greatest = (struct greatest){value, number, true};
        return;
    }
    const struct num before = greatest->value;
    greatest->value = replaced(value, before, value, before);
    greatest->at = replaced(value, before, number, greatest->at);
}

struct num activated(enum tr_activation activation, float slope, struct num x)
{
    const struct num zero = constant(0);
    switch (activation) {
    case TR_ACT_NONE:
        return x;
    case TR_ACT_RELU:
        return if_less(x, zero, zero, x);
    case TR_ACT_LEAKY_RELU:
        return if_less(x, zero, mul(constant(slope), x), x);
    case TR_ACT_TANH:
        return tangent(x);
    case TR_ACT_SIGMOID:
        return sigmoid(x);
    case TR_ACT_GELU:
        return mul(mul(constant(0.5f), x),
                   add(constant(1), error_function(mul(x, constant(0x1.6a09e6p-1f)))));
    case TR_ACT_GELU_TANH: {
        const struct num inner = fused(mul(x, x), constant(0x1.2444f2p-5f), constant(0x1.988454p-1f));
        return mul(mul(constant(0.5f), x), add(constant(1), tangent(mul(x, inner))));
    }
    case TR_ACT_SILU:
        return mul(x, sigmoid(x));
    case TR_ACT_HARD_SWISH: {
        const struct num t = add(x, constant(3)), most = constant(6);
        const struct num gate = if_less(t, zero, zero, if_less(most, t, most, t));
        return mul(x, mul(gate, constant(0x1.555556p-3f)));
    }
    case TR_ACT_RELU6: {
        const struct num most = constant(6);
        return if_less(x, zero, zero, if_less(most, x, most, x));
    }
    default:
        break;
    }
    unit_refuse("an activation that has no unit");
    return x;
}

struct num philox(const uint32_t key[2], const struct num counter[4], int which)
{
    struct num c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const struct num m0 = word(0xD2511F53u), m1 = word(0xCD9E8D57u);
        const struct num high0 = unit_emit(TR_PROGRAM_HIGH, m0, c0, c0, c0);
        const struct num high1 = unit_emit(TR_PROGRAM_HIGH, m1, c2, c2, c2);
        const struct num low0 = unit_emit(TR_PROGRAM_IMUL, m0, c0, c0, c0);
        const struct num low1 = unit_emit(TR_PROGRAM_IMUL, m1, c2, c2, c2);
        c0 = unit_emit(TR_PROGRAM_XOR, unit_emit(TR_PROGRAM_XOR, high1, c1, c1, c1), word(k0), c1, c1);
        c2 = unit_emit(TR_PROGRAM_XOR, unit_emit(TR_PROGRAM_XOR, high0, c3, c3, c3), word(k1), c3, c3);
        c1 = low1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const struct num out[] = {c0, c1, c2, c3};
    return out[which];
}

struct num kept(struct num bits, float rate, struct num x)
{
    struct num high = unit_emit(TR_PROGRAM_SHR, bits, word(8), bits, bits);
    high = unit_emit(TR_PROGRAM_AND, high, word(0xffffff), high, high);
    const struct num unit = mul(unit_emit(TR_PROGRAM_FLOAT, high, high, high, high), constant(0x1p-24f));
    return if_less(unit, constant(rate), constant(0), mul(x, constant(1 / (1 - rate))));
}

struct num over_cut(const struct tr_cut *cut, int64_t node, unit_leaf *leaf, const void *arguments,
                    int64_t at)
{
    struct num stack[TR_TREE_DEPTH + 1];
    struct tr_tree_fold fold = {0};
    const int32_t begin = cut->bound[node], end = cut->bound[node + 1];
    if (begin == end) return constant(0);
    for (int32_t i = begin; i < end; i++) {
        stack[fold.waiting] = leaf(arguments, i, at);
        tr_tree_push(&fold, i + 1 == end);
        for (int top; (top = tr_tree_combine(&fold)) > 0;) stack[top - 1] = add(stack[top - 1], stack[top]);
    }
    return stack[0];
}

int32_t microbatch_of(const struct tr_cut *cut, int64_t row)
{
    int32_t microbatch = 0;
    while (microbatch + 1 < cut->count && cut->row[microbatch + 1] <= row) microbatch++;
    return microbatch;
}

int64_t pixel_of(const struct tr_sliding_window *w, int64_t output, int64_t tap)
{
    const int64_t h = output / w->out_w * w->stride_h + tap / w->kernel_w * w->dilation_h - w->pad_top;
    const int64_t v = output % w->out_w * w->stride_w + tap % w->kernel_w * w->dilation_w - w->pad_left;
    return h < 0 || h >= w->in_h || v < 0 || v >= w->in_w ? -1 : h * w->in_w + v;
}

/* The position of a tap along an axis. */
static int64_t along(int64_t position, int64_t output, int32_t stride, int32_t dilation, int32_t pad,
                     int32_t kernel)
{
    const int64_t from = position + pad - output * stride;
    return from < 0 || from % dilation || from / dilation >= kernel ? -1 : from / dilation;
}

int64_t tap_of(const struct tr_sliding_window *w, int64_t output, int64_t pixel)
{
    const int64_t h =
        along(pixel / w->in_w, output / w->out_w, w->stride_h, w->dilation_h, w->pad_top, w->kernel_h);
    const int64_t v =
        along(pixel % w->in_w, output % w->out_w, w->stride_w, w->dilation_w, w->pad_left, w->kernel_w);
    return h < 0 || v < 0 ? -1 : h * w->kernel_w + v;
}

/* ---- building ---- */

static unit_function *function_of(enum tr_operation_number operation)
{
    static const struct unit_entry *const lists[] = {
        unit_attention, unit_dense,     unit_elements, unit_group,  unit_input,  unit_losses,  unit_norm,
        unit_pool,      unit_recurrent, unit_sequence, unit_update, unit_window, unit_winograd};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const struct unit_entry *entry = lists[i]; entry->value; entry++)
            if (entry->operation == operation) return entry->value;
    return NULL;
}

bool tr_unit_is_there(enum tr_operation_number operation)
{
    return function_of(operation) != NULL;
}

tr_status tr_unit_build(enum tr_operation_number operation, const void *arguments,
                        const struct tr_unit_output *place, const struct tr_unit_source *source,
                        struct tr_unit_program *program)
{
    unit_function *value = function_of(operation);
    if (!value)
        return tr_fail(TR_EUNSUPPORTED, "operation \"%s\" has no unit that a referee could compute",
                       tr_operation_of(operation)->name);
    now.program = program;
    now.source = source;
    const struct num result = value(arguments, place);
    /* The result is the last value. */
    if (program->status == TR_OK && result.id + 1 != program->count)
        unit_emit(TR_PROGRAM_OR, result, word(0), result, result);
    now.program = NULL;
    now.source = NULL;
    return program->status;
}
