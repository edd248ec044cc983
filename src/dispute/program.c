#include "dispute/program.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    int values;
} ops[TR_PROGRAM_OP_COUNT] = {
#define OP(name, values) {#name, values},
    TR_PROGRAM_OPS(OP)
#undef OP
};

void tr_program_release(struct tr_unit_program *program)
{
    tr_free(program->step);
    *program = (struct tr_unit_program){0};
}

/* ---- arithmetic ---- */

static float float_of(uint32_t word)
{
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static uint32_t word_of(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static uint32_t shifted_right(uint32_t word, uint32_t count)
{
    uint32_t filled = word >> 31 ? ~(uint32_t)0 : 0;
    count &= 31;
    return count ? word >> count | filled << (32 - count) : word;
}

static uint32_t compute(enum tr_program_op op, const uint32_t a[4])
{
    const float x = float_of(a[0]), y = float_of(a[1]);
    switch (op) {
    case TR_PROGRAM_FMA:
        return word_of(fmaf(x, y, float_of(a[2])));
    case TR_PROGRAM_ADD:
        return word_of(x + y);
    case TR_PROGRAM_SUB:
        return word_of(x - y);
    case TR_PROGRAM_MUL:
        return word_of(x * y);
    case TR_PROGRAM_DIV:
        return word_of(x / y);
    case TR_PROGRAM_SQRT:
        return word_of(sqrtf(x));
    case TR_PROGRAM_LESS:
        return x < y ? a[2] : a[3];
    case TR_PROGRAM_EQUAL:
        return x == y ? a[2] : a[3];
    case TR_PROGRAM_FLOAT: {
        int32_t whole;
        memcpy(&whole, &a[0], sizeof whole);
        return word_of((float)whole);
    }
    case TR_PROGRAM_IADD:
        return a[0] + a[1];
    case TR_PROGRAM_ISUB:
        return a[0] - a[1];
    case TR_PROGRAM_IMUL:
        return a[0] * a[1];
    case TR_PROGRAM_HIGH:
        return (uint32_t)((uint64_t)a[0] * a[1] >> 32);
    case TR_PROGRAM_AND:
        return a[0] & a[1];
    case TR_PROGRAM_OR:
        return a[0] | a[1];
    case TR_PROGRAM_XOR:
        return a[0] ^ a[1];
    case TR_PROGRAM_SHL:
        return a[0] << (a[1] & 31);
    case TR_PROGRAM_SHR:
        return shifted_right(a[0], a[1]);
    default:
        assert(!"an instruction that takes values");
        return 0;
    }
}

/* ---- building ---- */

static uint32_t append(struct tr_unit_program *program, const struct tr_program_step *step)
{
    if (program->status != TR_OK) return 0;
    if (program->count == TR_PROGRAM_MOST)
        program->status =
            tr_fail(TR_EUNSUPPORTED,
                    "the number takes more than %" PRId64 " instructions, the most that a referee runs",
                    TR_PROGRAM_MOST);
    else if (!tr_grow(&program->step, program->count, sizeof *program->step))
        program->status = TR_ENOMEM;
    if (program->status != TR_OK) return 0;
    program->step[program->count] = *step;
    return (uint32_t)program->count++;
}

uint32_t tr_program_constant(struct tr_unit_program *program, uint32_t word)
{
    const struct tr_program_step step = {TR_PROGRAM_CONST, {word}, word};
    return append(program, &step);
}

uint32_t tr_program_load(struct tr_unit_program *program, bool byte, uint32_t leaf, uint32_t at,
                         uint32_t value)
{
    const struct tr_program_step step = {byte ? TR_PROGRAM_BYTE : TR_PROGRAM_LOAD, {leaf, at}, value};
    return append(program, &step);
}

uint32_t tr_program_add(struct tr_unit_program *program, enum tr_program_op op, const uint32_t of[4])
{
    struct tr_program_step step = {(uint8_t)op, {0}, 0};
    uint32_t value[4] = {0};
    if (program->status != TR_OK) return 0;
    for (int i = 0; i < ops[op].values; i++) {
        assert(of[i] < program->count);
        step.of[i] = of[i];
        value[i] = program->step[of[i]].value;
    }
    step.value = compute(op, value);
    return append(program, &step);
}

uint32_t tr_program_result(const struct tr_unit_program *program)
{
    return program->count > 0 ? program->step[program->count - 1].value : 0;
}

/* ---- text ---- */

void tr_program_write(const struct tr_unit_program *program, struct tr_text *text)
{
    for (int64_t i = 0; i < program->count; i++) {
        const struct tr_program_step *step = &program->step[i];
        int values = ops[step->op].values;
        tr_text_add(text, ops[step->op].name);
        if (step->op == TR_PROGRAM_CONST)
            tr_text_addf(text, " %08" PRIx32, step->of[0]);
        else if (step->op == TR_PROGRAM_LOAD || step->op == TR_PROGRAM_BYTE)
            values = 2;
        for (int k = 0; k < values; k++) tr_text_addf(text, " %" PRIu32, step->of[k]);
        tr_text_add(text, "\n");
    }
}

bool tr_program_same(uint32_t a, uint32_t b, bool floats)
{
    return a == b || (floats && isnan(float_of(a)) && isnan(float_of(b)));
}
