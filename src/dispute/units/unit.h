/* Units: how one output of an operation follows from inputs, as a program for the referee.
 *
 * Each operation has a function here that builds the program of the output that it is asked for. It is
 * written from the text of device/ops/, with numbers (`struct num`) in place of floats. It reads memory
 * from before the operation by in(). Where the text defines an output by another output, it reads that one
 * by own(), so that units stay small, and both parties agree on all of a unit's inputs. It reads integers
 * that refer to others (labels, offsets) by whole() and wide().
 *
 * To add an operation: UNIT(operation) in the file of its family, and a line in the list at the file's
 * end. tests/dispute/test_units.c runs all cases of all operations and names missing units. Fusions have
 * none: a dispute runs their parts.
 *
 * One unit is built at a time on a thread.
 */
#ifndef TR_DISPUTE_UNIT_H
#define TR_DISPUTE_UNIT_H

#include "device/operation.h"
#include "dispute/program.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The source of inputs. `bytes` 1, 4 or 8 at `at`, memory of the device as in the arguments; `own`: after
   the operation, else before it. Sets *value and, for `bytes` 1 and 4, the opened leaf and the offset in
   it. A failure ends the unit. */
struct tr_unit_source {
    tr_status (*open)(void *user, const void *at, int bytes, bool own, uint64_t *value, uint32_t *leaf,
                      uint32_t *byte);
    void *user;
};

/* An output of a call: the operand, and which of its numbers: for NODES number `at` of node `node`;
   otherwise number `at`, with rows one after the other even where they are apart in memory. The numbers of
   a structure are its words. */
struct tr_unit_output {
    const char *operand;
    int64_t node, at;
};

/* The extent of a written operand: `rows` rows of `width` bytes, `step` bytes apart, of numbers of `size`
   bytes. */
struct tr_unit_region {
    const struct tr_operand *operand;
    const char *begin;
    int64_t rows, width, step;
    int size;
};
#define TR_UNIT_REGIONS 10

/* The regions of a call, in the order of its description, without empty ones; returns their number. `rows`
   as from tr_operation_rows(). */
int tr_unit_regions(enum tr_operation_number operation, const void *arguments, int64_t rows,
                    struct tr_unit_region out[TR_UNIT_REGIONS]);

/* Whether an operation has a unit. */
bool tr_unit_is_there(enum tr_operation_number operation);
/* Builds the program of an output, whose result is its number. `program` begins as zeros; release it also
   after a failure. TR_EUNSUPPORTED where the operation has no unit, or one that is too large; errors of
   the source; TR_ENOMEM. */
tr_status tr_unit_build(enum tr_operation_number operation, const void *arguments,
                        const struct tr_unit_output *place, const struct tr_unit_source *source,
                        struct tr_unit_program *program);

#endif
