/* The cpu device: vectorized kernels over a team of threads.
 *
 * Operations are done when their function returns. Kernels split *outputs* among the members of the team, so
 * the number of threads cannot change a bit.
 *
 * Scratch memory belongs to the device: one block per member and one shared block, which grow on first use
 * and are kept. The size that a kernel needs depends on layer shapes and caches, not on the number of
 * rows, so nothing is allocated after the first step.
 */
#ifndef TR_DEVICE_CPU_CPU_H
#define TR_DEVICE_CPU_CPU_H

#include "base/threads/team.h"
#include "device/cpu/balance.h"
#include "device/cpu/blocks.h"
#include "device/cpu/room.h"
#include "device/device.h"

#include <stddef.h>

/* Parts of scratch are laid out in units of this many bytes, so that each starts on a cache line. */
#define CPU_ALIGN 64

struct cpu_scratch {
    void *memory;
    size_t bytes;
};

struct cpu_device {
    tr_device base;
    struct tr_device_class class; /* the kernels' functions, and those of ref where there is no kernel */
    const struct cpu_kernels *kernels;
    tr_team *team;
    bool idles;           /* the team has idle work */
    double alone;         /* work of fewer nanoseconds is done by the caller alone; tests set 0, so that small
                             cases are split too */
    struct cpu_room room; /* sizes of blocks follow from this; tests set less, so that small cases have
                             several blocks, or the sizes of other machines */
    struct cpu_blocks blocks;    /* for this processor and instruction set; bench/tune tries other values */
    struct cpu_balance *balance; /* how much members take; tests fix unequal parts */
    struct cpu_scratch shared;
    struct cpu_scratch member[]; /* [threads] */
};

extern const struct tr_device_kind tr_device_kind_cpu;

static inline struct cpu_device *cpu_device_of(tr_device *device)
{
    return (struct cpu_device *)device;
}

static inline size_t cpu_round(size_t bytes)
{
    return (bytes + CPU_ALIGN - 1) / CPU_ALIGN * CPU_ALIGN;
}

/* Makes sure that each member has `member_bytes` of scratch and that the shared block has `shared_bytes`.
   Contents are undefined afterwards. Called before cpu_run(), by the device's thread. */
tr_status cpu_reserve(struct cpu_device *cpu, size_t member_bytes, size_t shared_bytes);

/* The scratch of a member, as reserved. */
static inline void *cpu_scratch(const struct cpu_device *cpu, int member)
{
    return cpu->member[member].memory;
}

static inline void *cpu_shared(const struct cpu_device *cpu)
{
    return cpu->shared.memory;
}

/* Runs `function` on the whole team, or on the caller alone (member 0 of 1) when one thread is expected to
   take less than about ten microseconds. */
void cpu_run(struct cpu_device *cpu, double nanoseconds, tr_team_function function, void *arguments);
/* The same for functions with cpu_barrier(). Where possible, use two runs instead: they do not wait for a
   member whose processor is busy with another process. */
void cpu_run_together(struct cpu_device *cpu, double nanoseconds, tr_team_function function, void *arguments);

/* Within a cpu_run_together() of `size` members: returns when all members have called it. */
static inline void cpu_barrier(const struct cpu_device *cpu, int member, int size)
{
    if (size > 1) tr_team_barrier(cpu->team, member);
}

#endif
