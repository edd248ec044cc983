/* The cost of operations of a device, from measured examples.
 *
 * An operation has a *shape* (the sizes that a layer decides) and a *size* (rows, examples or numbers, which
 * the batch decides). Between and beyond measured sizes of one shape time is a straight line; a shape that
 * was not measured takes as long for each of its operations as the nearest one that was.
 */
#ifndef TR_PLAN_COSTS_H
#define TR_PLAN_COSTS_H

#include "device/device.h"
#include "device/operation.h"

#define TR_COST_SHAPE 128

/* What a call of an operation is as far as its cost goes. */
struct tr_cost_key {
    enum tr_operation_number op;
    int64_t size;
    double volume; /* operations for each of `size`; bytes where it only moves numbers */
    int bytes;     /* of the shape */
    unsigned char shape[TR_COST_SHAPE];
};
/* Of the arguments of an operation, struct tr_op_... `reads_rows`: where examples have rows of their own, as
   sequences do, their number is the size; it is read from offsets, which must be memory of the host. Else
   the number of examples. */
void tr_cost_key_of(enum tr_operation_number op, const void *arguments, bool reads_rows,
                    struct tr_cost_key *out);

typedef struct tr_costs tr_costs;

/* Returned, destroy with tr_costs_destroy(). TR_ENOMEM. */
tr_status tr_costs_create(tr_costs **out);
/* Whether keys are made with `reads_rows`: said before the first sample, by the device that measures; at
   first they are not. */
void tr_costs_read_rows(tr_costs *costs, bool reads_rows);
bool tr_costs_reads_rows(const tr_costs *costs);
/* Accepts NULL, nulls the handle. */
void tr_costs_destroy(tr_costs **costs);
/* Adds that a call took so long. TR_ENOMEM. */
tr_status tr_costs_add(tr_costs *costs, const struct tr_cost_key *key, double seconds);
/* What was added since the last call is one step: a key's sample is the mean over its calls, so that what
   only some of them take (the host's work between two steps, memory that is touched first) is not lost. */
void tr_costs_end_step(tr_costs *costs);
/* Samples are complete: each key has the median over steps; sizes that lie near each other and were seen a
   few times only, as those of sequences are, become one. From then on costs are read only. */
void tr_costs_settle(tr_costs *costs);
/* Seconds; 0 of an operation of which nothing is known. Any thread, once settled. */
double tr_costs_of(const tr_costs *costs, const struct tr_cost_key *key);
/* Whether anything is known of an operation. */
bool tr_costs_know(const tr_costs *costs, enum tr_operation_number op);
/* Whether anything is known of a fusion. */
bool tr_costs_know_fusions(const tr_costs *costs);
/* Keys, for tests. */
int64_t tr_costs_count(const tr_costs *costs);

/* ---- devices ---- */

/* Seconds by which what `device` does is measured: where the calling thread does all by itself, its own time,
   for what other programs take of the machine is not the job's; else those of the clock. */
double tr_device_time(const tr_device *device);

/* A device that hands everything on to `inner`, borrowed for its life, and measures how long each operation
   took, with the time since the one before: so that what the host does in between counts, too. Unless it
   `fuses` it lacks all fusions, so that their parts are measured. Always called by the same thread. Returned,
   destroy with tr_device_destroy(). */
tr_status tr_timing_device_create(tr_device *inner, tr_costs *costs, bool fuses, tr_device **out);
/* The time before the next operation is not its own. */
void tr_timing_device_pause(tr_device *device);
/* Whether operations are measured; at first they are not. */
void tr_timing_device_enable(tr_device *device, bool enabled);

/* A device that computes nothing: each operation takes its cost, which `spend` lets pass. It lacks the
   fusions of which nothing is known, as what was measured lacked them. Memory is addresses
   (plan/world/transport.h); copies of more than 64 KiB are left out, so that of a pass of more sequences than
   that has offsets only their number is known. All borrowed for its life. */
typedef tr_status (*tr_cost_spender)(void *user, double seconds);
tr_status tr_virtual_device_create(const tr_costs *costs, int threads, tr_cost_spender spend, void *user,
                                   tr_device **out);

#endif
