/* A program without branches that computes one number from opened inputs: the form in which the referee
 * (referee.c) gets a unit, line by line.
 *
 * Values are words of 32 bits: floats by their bits, whole numbers, single bytes. Each instruction is
 * evaluated when it is added, so the result is known once the program is built. After a failure no
 * instructions are added, and the status stays.
 *
 * Invariant: an instruction refers only to earlier values.
 */
#ifndef TR_DISPUTE_PROGRAM_H
#define TR_DISPUTE_PROGRAM_H

#include "base/text/text.h"
#include "trireme/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Instructions, with their numbers of operands. Floats as in IEEE 754, to nearest even; EQUAL and LESS
   give the third operand if true, else the fourth. SHR is arithmetic. */
#define TR_PROGRAM_OPS(X)                                                                                    \
    X(CONST, 0)                                                                                              \
    X(LOAD, 0)                                                                                               \
    X(BYTE, 0)                                                                                               \
    X(FMA, 3)                                                                                                \
    X(ADD, 2)                                                                                                \
    X(SUB, 2)                                                                                                \
    X(MUL, 2)                                                                                                \
    X(DIV, 2)                                                                                                \
    X(SQRT, 1)                                                                                               \
    X(LESS, 4)                                                                                               \
    X(EQUAL, 4)                                                                                              \
    X(FLOAT, 1)                                                                                              \
    X(IADD, 2)                                                                                               \
    X(ISUB, 2)                                                                                               \
    X(IMUL, 2)                                                                                               \
    X(HIGH, 2)                                                                                               \
    X(AND, 2)                                                                                                \
    X(OR, 2)                                                                                                 \
    X(XOR, 2)                                                                                                \
    X(SHL, 2)                                                                                                \
    X(SHR, 2)

#define TR_PROGRAM_OP(name, values) TR_PROGRAM_##name,
enum tr_program_op { TR_PROGRAM_OPS(TR_PROGRAM_OP) TR_PROGRAM_OP_COUNT };
#undef TR_PROGRAM_OP

/* Most instructions of a program: enough for an output of a large operation. */
#define TR_PROGRAM_MOST ((int64_t)1 << 24)

struct tr_program_step {
    uint8_t op;
    uint32_t of[4]; /* operands; CONST: the word; LOAD, BYTE: the opened leaf, and the offset within it */
    uint32_t value; /* its result */
};

/* Begins as zeros. */
struct tr_unit_program {
    struct tr_program_step *step; /* [count] */
    int64_t count;
    tr_status status; /* the first failure */
};

void tr_program_release(struct tr_unit_program *program);
/* Each adds an instruction and returns its number. */
uint32_t tr_program_constant(struct tr_unit_program *program, uint32_t word);
/* A word, or a byte, at byte `at` of the opened leaf `leaf`, with its value. */
uint32_t tr_program_load(struct tr_unit_program *program, bool byte, uint32_t leaf, uint32_t at,
                         uint32_t value);
uint32_t tr_program_add(struct tr_unit_program *program, enum tr_program_op op, const uint32_t of[4]);
/* The value of the last instruction; 0 if there is none. */
uint32_t tr_program_result(const struct tr_unit_program *program);
/* A line for each instruction: its name and operands, in decimal; the word of CONST in hexadecimal. */
void tr_program_write(const struct tr_unit_program *program, struct tr_text *text);

/* Whether two words are equal: as floats (`bytes` 4), where all NaNs are equal; otherwise by their bits. */
bool tr_program_same(uint32_t a, uint32_t b, bool floats);

#endif
