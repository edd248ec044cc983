/* The measuring device and the simulating one. */
#include "plan/costs.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "plan/world/transport.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- measuring ---- */

struct timing_device {
    struct tr_device head;
    struct tr_device_class class;
    tr_device *inner;
    tr_costs *costs;
    double last; /* when the operation before ended */
    bool enabled;
};

double tr_device_time(const tr_device *device)
{
    struct timespec own;
    if (!device->class->host_memory || device->threads > 1) return tr_clock_seconds();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
    return (double)own.tv_sec + 1e-9 * (double)own.tv_nsec;
}

static struct timing_device *timing_of(tr_device *device)
{
    return (struct timing_device *)device;
}

static tr_status timing_alloc(tr_device *device, size_t bytes, void **out)
{
    return tr_device_alloc(timing_of(device)->inner, bytes, out);
}

static void timing_free(tr_device *device, void *memory)
{
    tr_device_free(timing_of(device)->inner, memory);
}

static tr_status timing_to_device(tr_device *device, void *to, const void *from, size_t bytes)
{
    return tr_device_to_device(timing_of(device)->inner, to, from, bytes);
}

static tr_status timing_to_host(tr_device *device, void *to, const void *from, size_t bytes)
{
    return tr_device_to_host(timing_of(device)->inner, to, from, bytes);
}

static tr_status timing_wait(tr_device *device)
{
    return tr_device_wait(timing_of(device)->inner);
}

static void timing_destroy(tr_device *device)
{
    tr_free(timing_of(device));
}

static tr_status record(struct timing_device *timing, enum tr_operation_number op, const void *arguments)
{
    struct tr_cost_key key;
    if (!timing->inner->class->host_memory) TR_TRY(tr_device_wait(timing->inner));
    double now = tr_device_time(timing->inner), seconds = now - timing->last;
    timing->last = now;
    if (!timing->enabled) return TR_OK;
    tr_cost_key_of(op, arguments, tr_costs_reads_rows(timing->costs), &key);
    TR_TRY(tr_costs_add(timing->costs, &key, seconds));
    timing->last = tr_device_time(timing->inner); /* recording is not part of the next operation */
    return TR_OK;
}

#define TIME(op)                                                                                             \
    static tr_status time_##op(tr_device *device, const struct tr_op_##op *arguments)                        \
    {                                                                                                        \
        struct timing_device *timing = timing_of(device);                                                    \
        TR_TRY(timing->inner->class->op(timing->inner, arguments));                                          \
        return record(timing, TR_OPERATION_##op, arguments);                                                 \
    }
TR_DEVICE_OPS(TIME)
#undef TIME

tr_status tr_timing_device_create(tr_device *inner, tr_costs *costs, bool fuses, tr_device **out)
{
    struct timing_device *timing = tr_alloc_zero(1, sizeof *timing);
    *out = NULL;
    if (!timing) return TR_ENOMEM;
    timing->inner = inner;
    timing->costs = costs;
    timing->class = (struct tr_device_class){.name = inner->class->name,
                                             .version = TR_DEVICE_VERSION,
                                             .host_memory = inner->class->host_memory,
                                             .alloc = timing_alloc,
                                             .free = timing_free,
                                             .to_device = timing_to_device,
                                             .to_host = timing_to_host,
                                             .wait = timing_wait,
                                             .destroy = timing_destroy,
#define SLOT(op) .op = inner->class->op ? time_##op : NULL,
                                             TR_DEVICE_OPS(SLOT)
#undef SLOT
    };
#define LEAVE_OUT(op) timing->class.op = NULL;
    if (!fuses) {
        TR_DEVICE_FUSIONS(LEAVE_OUT)
    }
#undef LEAVE_OUT
    if (costs) tr_costs_read_rows(costs, inner->class->host_memory);
    timing->head = *inner;
    timing->head.class = &timing->class;
    timing->last = tr_device_time(timing->inner);
    *out = &timing->head;
    return TR_OK;
}

void tr_timing_device_pause(tr_device *device)
{
    timing_of(device)->last = tr_device_time(timing_of(device)->inner);
}

void tr_timing_device_enable(tr_device *device, bool enabled)
{
    timing_of(device)->enabled = enabled;
    tr_timing_device_pause(device);
}

/* ---- pretending ---- */

struct virtual_device {
    struct tr_device head;
    struct tr_device_class class;
    const tr_costs *costs;
    tr_cost_spender spend;
    void *user;
    double speed; /* times that of the device that was measured */
};

/* Data that determine an operation's cost are not longer than this. */
#define COPIED ((size_t)64 << 10)
/* The length of a block is stored before it. */
#define HEAD ((size_t)4096)

static tr_status virtual_alloc(tr_device *device, size_t bytes, void **out)
{
    (void)device;
    char *block = tr_sim_reserve(bytes + HEAD);
    if (!block) return TR_ENOMEM;
    bytes += HEAD;
    memcpy(block, &bytes, sizeof bytes);
    *out = block + HEAD;
    return TR_OK;
}

static void virtual_free(tr_device *device, void *memory)
{
    size_t bytes;
    char *block = (char *)memory - HEAD;
    (void)device;
    memcpy(&bytes, block, sizeof bytes);
    tr_sim_unreserve(block, bytes);
}

static tr_status virtual_copy(tr_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    if (bytes > 0 && bytes <= COPIED) memcpy(to, from, bytes);
    return TR_OK;
}

static tr_status virtual_wait(tr_device *device)
{
    (void)device;
    return TR_OK;
}

static void virtual_destroy(tr_device *device)
{
    tr_free((struct virtual_device *)device);
}

static tr_status pretend(tr_device *device, enum tr_operation_number op, const void *arguments)
{
    const struct virtual_device *self = (const struct virtual_device *)device;
    struct tr_cost_key key;
    tr_cost_key_of(op, arguments, tr_costs_reads_rows(self->costs), &key);
    return self->spend(self->user, tr_costs_of(self->costs, &key) / self->speed);
}

#define PRETEND(op)                                                                                          \
    static tr_status pretend_##op(tr_device *device, const struct tr_op_##op *arguments)                     \
    {                                                                                                        \
        return pretend(device, TR_OPERATION_##op, arguments);                                                \
    }
TR_DEVICE_OPS(PRETEND)
#undef PRETEND

/* With more threads its work takes proportionally less time. */
static tr_status virtual_create_like(const tr_device *device, int threads, tr_device **out)
{
    const struct virtual_device *self = (const struct virtual_device *)device;
    TR_TRY(tr_virtual_device_create(self->costs, threads, self->spend, self->user, out));
    ((struct virtual_device *)*out)->speed = self->speed * threads / device->threads;
    return TR_OK;
}

static const struct tr_device_class virtual_class = {.name = "virtual",
                                                     .version = TR_DEVICE_VERSION,
                                                     .host_memory = true,
                                                     .alloc = virtual_alloc,
                                                     .free = virtual_free,
                                                     .to_device = virtual_copy,
                                                     .to_host = virtual_copy,
                                                     .wait = virtual_wait,
                                                     .create_like = virtual_create_like,
                                                     .destroy = virtual_destroy,
#define SLOT(op) .op = pretend_##op,
                                                     TR_DEVICE_OPS(SLOT)
#undef SLOT
};

tr_status tr_virtual_device_create(const tr_costs *costs, int threads, tr_cost_spender spend, void *user,
                                   tr_device **out)
{
    struct virtual_device *self = tr_alloc_zero(1, sizeof *self);
    *out = NULL;
    if (!self) return TR_ENOMEM;
    *self = (struct virtual_device){.head = {.threads = threads},
                                    .class = virtual_class,
                                    .costs = costs,
                                    .spend = spend,
                                    .user = user,
                                    .speed = 1};
    self->head.class = &self->class;
#define LEAVE_OUT(op)                                                                                        \
    if (!tr_costs_know(costs, TR_OPERATION_##op)) self->class.op = NULL;
    TR_DEVICE_FUSIONS(LEAVE_OUT)
#undef LEAVE_OUT
    snprintf(self->head.name, sizeof self->head.name, "virtual");
    snprintf(self->head.description, sizeof self->head.description, "virtual (%d threads)", threads);
    *out = &self->head;
    return TR_OK;
}
