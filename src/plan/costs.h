/* The cost of operations of a device, from measured examples.
 *
 * An operation has a *shape* (the sizes that a layer determines) and a *size* (rows, examples or numbers,
 * which the batch determines). Between and beyond measured sizes of a shape, time is linear; an unmeasured
 * shape takes as long for each of its operations as the nearest measured one.
 */
#ifndef TR_PLAN_COSTS_H
#define TR_PLAN_COSTS_H

#include "device/device.h"
#include "device/operation.h"

#define TR_COST_SHAPE 128

/* The facts about a call that determine its cost. */
struct tr_cost_key {
    enum tr_operation_number op;
    int64_t size;
    double volume; /* operations for each of `size`; bytes where it only moves numbers */
    int bytes;     /* of the shape */
    unsigned char shape[TR_COST_SHAPE];
};
/* From the arguments of an operation, struct tr_op_... `reads_rows`: where examples have varying rows, as
   sequences do, the size is the number of rows, read from offsets, which must be host memory. Else it is
   the number of examples. */
void tr_cost_key_of(enum tr_operation_number op, const void *arguments, bool reads_rows,
                    struct tr_cost_key *out);

typedef struct tr_costs tr_costs;

/* Returned, destroy with tr_costs_destroy(). TR_ENOMEM. */
tr_status tr_costs_create(tr_costs **out);
/* Whether keys are made with `reads_rows`: set before the first sample by the measuring device; initially
   they are not. */
void tr_costs_read_rows(tr_costs *costs, bool reads_rows);
bool tr_costs_reads_rows(const tr_costs *costs);
/* Accepts NULL, nulls the handle. */
void tr_costs_destroy(tr_costs **costs);
/* Adds the time of a call. TR_ENOMEM. */
tr_status tr_costs_add(tr_costs *costs, const struct tr_cost_key *key, double seconds);
/* Ends a step: a key's sample is the mean over its calls, so that time which only some of them take (the
   host's work between two steps, first touching of memory) is not lost. */
void tr_costs_end_step(tr_costs *costs);
/* Ends sampling: each key gets the median over steps; similar sizes with few samples, as sequences have,
   are merged. From then on costs are only read. */
void tr_costs_settle(tr_costs *costs);
/* Seconds; 0 for an unknown operation. Any thread, once settled. */
double tr_costs_of(const tr_costs *costs, const struct tr_cost_key *key);
/* Whether anything is known of an operation. */
bool tr_costs_know(const tr_costs *costs, enum tr_operation_number op);
/* Whether anything is known of a fusion. */
bool tr_costs_know_fusions(const tr_costs *costs);
/* Keys, for tests. */
int64_t tr_costs_count(const tr_costs *costs);

/* ---- devices ---- */

/* Seconds in which the work of `device` is measured: where the calling thread does it all, that thread's
   own time, which excludes other programs; else the clock's. */
double tr_device_time(const tr_device *device);

/* A device that passes everything to `inner`, borrowed for its life, and measures each operation,
   including the time since the last one, so that the host's work in between counts, too. Unless it `fuses`
   it lacks all fusions, so that their parts are measured. Always called by the same thread. Returned,
   destroy with tr_device_destroy(). */
tr_status tr_timing_device_create(tr_device *inner, tr_costs *costs, bool fuses, tr_device **out);
/* The time before the next operation is not counted for it. */
void tr_timing_device_pause(tr_device *device);
/* Whether operations are measured; initially they are not. */
void tr_timing_device_enable(tr_device *device, bool enabled);

/* A device that computes nothing: each operation takes its cost, which it gives to `spend`. It lacks
   unknown fusions, as the measured device did. Memory is addresses (plan/world/transport.h); copies of
   more than 64 KiB are left out, so that longer offsets of sequences are not known, only their number. All
   borrowed for its life. */
typedef tr_status (*tr_cost_spender)(void *user, double seconds);
tr_status tr_virtual_device_create(const tr_costs *costs, int threads, tr_cost_spender spend, void *user,
                                   tr_device **out);

#endif
