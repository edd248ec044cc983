/* A program without branches that computes one number out of opened inputs: the form in which a unit goes to
 * the referee (referee.c), which takes it line by line.
 *
 * Values are words of 32 bits: floats by their bits, whole numbers, single bytes. Each instruction has the
 * value that it came to when it was added, so the result is known once the program is built. After a failure
 * instructions are left out, and the status stays.
 *
 * Invariant: an instruction names only values before it.
 */
#ifndef TR_DISPUTE_PROGRAM_H
#define TR_DISPUTE_PROGRAM_H

#include "base/text/text.h"
#include "trireme/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Instructions, with the number of values that they take. Floats as IEEE 754 has them, to nearest even; of
   EQUAL and LESS the third value where it holds, else the fourth. SHR is arithmetic. */
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

/* Instructions that a program may have: what one output of a large operation takes. */
#define TR_PROGRAM_MOST ((int64_t)1 << 24)

struct tr_program_step {
    uint8_t op;
    uint32_t of[4]; /* values; CONST: the word; LOAD, BYTE: the opened leaf, and the byte within it */
    uint32_t value; /* that it came to */
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
/* The value of the last instruction; 0 of none. */
uint32_t tr_program_result(const struct tr_unit_program *program);
/* A line for each instruction: its name and what it takes, in decimals; the word of CONST in hexadecimals. */
void tr_program_write(const struct tr_unit_program *program, struct tr_text *text);

/* Whether two words say the same: as floats (`bytes` 4), where which NaN a NaN is is not defined; otherwise
   by their bits. */
bool tr_program_same(uint32_t a, uint32_t b, bool floats);

#endif
