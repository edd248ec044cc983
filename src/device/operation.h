/* Descriptions of operations: what each reads and writes, what determines its cost, and how much it
 * computes.
 *
 * A description is TR_ABOUT_<operation>(_), below the operation's arguments in device/ops/. It is a list
 * of lines _(ROLE, member, ...) in any order, from which a table is made for plans, profiles, exports and
 * tests. An operation of TR_DEVICE_OPS without a description does not compile, nor does a line that names
 * no member. tests/device/test_operation.c runs all cases and names any incorrect or missing line.
 *
 *   _(SIZE, member)                 int64_t: rows, examples or numbers, which the batch determines
 *   _(SHAPE, member)                a size that the network determines, of any type without padding
 *   _(CUT, member)                  the struct tr_cut of a call whose rows it counts
 *   _(OFFSET, member)               where the rows of examples begin: [examples + 1], or NULL
 *   _(READS, member, elements)      a pointer to an input
 *   _(WRITES, member, elements)     a pointer to an output; all `elements` are written
 *   _(KEEPS, member, elements)      the same, needed only by a backward pass
 *   _(UPDATES, member, elements)    a pointer to data that are read and overwritten
 *   _(REPLACES, member, elements)   a pointer to an input, replaced by data for a backward pass
 *   _(NODES, member, elements)      a pointer to the output for each node of the cut
 *   _(INDEX, member, elements)      a pointer to indices, such as rows or labels
 *   _(WORKSPACE, member, elements)  a pointer to memory whose contents do not matter before and after
 *   _(READS_PART, member, elements), _(WRITES_PART, ...), _(UPDATES_PART, ...)
 *                                   a pointer into something larger, of which so many elements are touched
 *   _(PART, member, operation)      of a fusion: the arguments of an operation that it is made of
 *   _(OPERATIONS, count)            floating-point operations (a multiply-add: 2), without those of parts
 *
 * `elements` and `count` are expressions in `a`, the arguments, `rows`, the rows of the call, `host`,
 * whether offsets may be read, and the functions at the head of operation.c. They are not evaluated where
 * the pointer is NULL. An operation with SIZE has so many rows, or, with OFFSET, those of so many
 * examples; one with CUT alone has the cut's. Where offsets may not be read each example counts as one
 * row.
 *
 * Pure functions of constant tables: any thread.
 */
#ifndef TR_DEVICE_OPERATION_H
#define TR_DEVICE_OPERATION_H

#include "device/ops.h"

#include <stddef.h>

#define TR_OPERATION_NUMBER(op) TR_OPERATION_##op,
enum tr_operation_number { TR_DEVICE_OPS(TR_OPERATION_NUMBER) TR_OPERATIONS };
#undef TR_OPERATION_NUMBER

enum tr_role {
    TR_ROLE_SIZE,
    TR_ROLE_SHAPE,
    TR_ROLE_CUT,
    TR_ROLE_OFFSET,
    TR_ROLE_READS,
    TR_ROLE_READS_PART,
    TR_ROLE_WRITES,
    TR_ROLE_WRITES_PART,
    TR_ROLE_KEEPS,
    TR_ROLE_UPDATES,
    TR_ROLE_UPDATES_PART,
    TR_ROLE_REPLACES,
    TR_ROLE_NODES,
    TR_ROLE_INDEX,
    TR_ROLE_WORKSPACE,
    TR_ROLE_PART,
    TR_ROLE_OPERATIONS
};

/* One line of a description. */
struct tr_operand {
    enum tr_role role;
    const char *name;     /* of the member; NULL for OPERATIONS */
    size_t offset, bytes; /* of the member within the arguments; bytes of one element of its data, or of
                             the member itself where it is not a pointer to data */
    enum tr_operation_number other; /* PART: the operation */
};

enum tr_operation_class { TR_CORE_OPERATION, TR_HOST_OPERATION, TR_FUSION }; /* the lists of device/ops.h */

struct tr_operation {
    const char *name;
    enum tr_operation_class class;
    int count;
    const struct tr_operand *operand; /* [count], in the order of the description */
    /* Fills elements[count], 0 for lines without a pointer, unless it is NULL; returns the operations. */
    int64_t (*measure)(const void *arguments, int64_t rows, bool host, int64_t *elements);
};

#define TR_OPERANDS_MOST 24 /* most lines of a description */

const struct tr_operation *tr_operation_of(enum tr_operation_number number);

/* Arguments are the struct tr_op_... of the operation. `host`: whether offsets, and other data that
   operations find in device memory, may be read. */
struct tr_operation_cost {
    int64_t operations, bytes; /* bytes: read and written, each once, indices included */
};
struct tr_operation_cost tr_operation_cost(const struct tr_operation *operation, const void *arguments,
                                           bool host);

/* The rows of a call. */
int64_t tr_operation_rows(const struct tr_operation *operation, const void *arguments, bool host);

/* The cut of a call; NULL where the operation takes none. */
const struct tr_cut *tr_operation_cut(const struct tr_operation *operation, const void *arguments);

/* The data that an operand points to; NULL for NULL, and for operands that are not pointers to data. */
const void *tr_operand_pointer(const struct tr_operand *operand, const void *arguments);
/* Whether it is a pointer whose contents the operation reads, or leaves for later operations (other than a
   backward pass). */
bool tr_operand_reads(const struct tr_operand *operand);
bool tr_operand_writes(const struct tr_operand *operand);

#endif
