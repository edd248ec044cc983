#include "support/operations/shadow.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int64_t shadow_room = INT64_MAX;
int64_t shadow_memory;
bool shadow_open;
void (*shadow_goes_on)(void);
atomic_llong shadow_waits, shadow_taken;

#define MARKS 4096 /* greatest number of pending events */

/* Memory of the device. */
struct range {
    void *memory;
    size_t bytes; /* whole pages */
    size_t asked;
    struct range *next;
};

/* A pending copy. While `late` is NULL it is from the host. Otherwise the host will get `late`, which is
   read from `from` only then, if that is not NULL. */
struct copy {
    void *to;
    const void *from;
    void *late;
    void *sent; /* the host's bytes when it was enqueued, which must not change until it is done */
    bool taken; /* from the host: the device has the bytes */
    size_t bytes;
    uint64_t behind; /* the event before it */
    struct copy *next;
};

struct shadow {
    tr_device base;
    tr_device *cpu;
    struct range *ranges;
    struct copy *copies, **last;
    uint64_t recorded, done, asked; /* events: the last one, the last finished one, and the last one
                                       queried */
    /* Operations and copies: how many were enqueued, how many of the first are known to be done, and how
       many had been enqueued at an event. */
    uint64_t given, known, at[MARKS];
    bool spoilt; /* the host wrote to bytes of a pending copy */
};

static struct shadow *shadow_of(tr_device *device)
{
    return (struct shadow *)device;
}

static void protect(const struct shadow *shadow, int rights)
{
    if (shadow_open) return;
    for (const struct range *range = shadow->ranges; range; range = range->next)
        if (mprotect(range->memory, range->bytes, rights) != 0) assert(!"mprotect failed");
}

/* ---- memory ---- */

static tr_status shadow_alloc(tr_device *device, size_t bytes, void **out)
{
    struct shadow *shadow = shadow_of(device);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct range *range = tr_alloc(1, sizeof *range);
    if (!range) return TR_ENOMEM;
    range->bytes = (bytes / page + 1) * page;
    range->memory = mmap(NULL, range->bytes, shadow_open ? PROT_READ | PROT_WRITE : PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (range->memory == MAP_FAILED) {
        tr_free(range);
        return tr_fail(TR_ENOMEM, "no shadow memory: %s", strerror(errno));
    }
    range->next = shadow->ranges;
    range->asked = bytes;
    shadow->ranges = range;
    shadow_taken += (long long)bytes;
    *out = range->memory;
    return TR_OK;
}

static void shadow_free(tr_device *device, void *memory)
{
    struct range **at = &shadow_of(device)->ranges;
    while (*at && (*at)->memory != memory) at = &(*at)->next;
    assert(*at && "memory that is not this device's");
    struct range *range = *at;
    *at = range->next;
    shadow_taken -= (long long)range->asked;
    munmap(range->memory, range->bytes);
    tr_free(range);
}

/* ---- copies ---- */

static tr_status enqueue(struct shadow *shadow, void *to, const void *from, size_t bytes, bool to_host)
{
    if (bytes == 0) return TR_OK;
    shadow->given++;
    struct copy *copy = tr_alloc_zero(1, sizeof *copy);
    if (!copy) return TR_ENOMEM;
    *copy = (struct copy){.to = to, .from = from, .bytes = bytes, .behind = shadow->recorded};
    void **own = to_host ? &copy->late : &copy->sent;
    if (!(*own = tr_alloc(1, bytes))) {
        tr_free(copy);
        return TR_ENOMEM;
    }
    if (!to_host) memcpy(copy->sent, from, bytes);
    *shadow->last = copy;
    shadow->last = &copy->next;
    return TR_OK;
}

/* Data from the host before the current operation has arrived. */
static void take_from_host(struct shadow *shadow)
{
    for (struct copy *copy = shadow->copies; copy; copy = copy->next) {
        if (copy->late || copy->taken) continue;
        memcpy(copy->to, copy->from, copy->bytes);
        copy->taken = true;
    }
}

/* The copy is done: the host's bytes must not have changed meanwhile. */
static void check_sent(struct shadow *shadow, struct copy *copy)
{
    if (copy->sent && memcmp(copy->from, copy->sent, copy->bytes) != 0) shadow->spoilt = true;
    tr_free(copy->sent);
    copy->sent = NULL;
}

/* The device is about to write there, after the copies that read it. */
static void check_sent_from(struct shadow *shadow, const void *memory, size_t bytes)
{
    uintptr_t begin = (uintptr_t)memory, end = begin + bytes;
    for (struct copy *copy = shadow->copies; copy; copy = copy->next)
        if ((uintptr_t)copy->from < end && begin < (uintptr_t)copy->from + copy->bytes)
            check_sent(shadow, copy);
}

static void free_copy(struct copy *copy)
{
    tr_free(copy->late);
    tr_free(copy->sent);
    tr_free(copy);
}

static void begin(struct shadow *shadow)
{
    shadow->given++;
    protect(shadow, PROT_READ | PROT_WRITE);
    take_from_host(shadow);
}

static void end(struct shadow *shadow)
{
    protect(shadow, PROT_NONE);
}

static tr_status shadow_to_device(tr_device *device, void *to, const void *from, size_t bytes)
{
    return enqueue(shadow_of(device), to, from, bytes, false);
}

static tr_status shadow_to_host(tr_device *device, void *to, const void *from, size_t bytes)
{
    struct shadow *shadow = shadow_of(device);
    TR_TRY(enqueue(shadow, to, NULL, bytes, true));
    if (bytes == 0) return TR_OK;
    struct copy *copy = shadow->copies;
    while (copy->next) copy = copy->next;
    begin(shadow);
    memcpy(copy->late, from, bytes);
    end(shadow);
    check_sent_from(shadow, to, bytes);
    memset(to, 0xff, bytes); /* for readers that do not wait */
    return TR_OK;
}

/* As late as possible: a write to the source before the wait spoils the copy. */
static tr_status shadow_to_host_beside(tr_device *device, void *to, const void *from, size_t bytes)
{
    struct shadow *shadow = shadow_of(device);
    TR_TRY(enqueue(shadow, to, from, bytes, true));
    check_sent_from(shadow, to, bytes);
    if (bytes > 0) memset(to, 0xff, bytes);
    return TR_OK;
}

/* Ends the copies before `event`; those after it are as late as possible. *told: some went to the host. A
   device that lags would have read what the host wrote without waiting: the run ends then. */
static tr_status end_copies(struct shadow *shadow, uint64_t event, bool *told)
{
    *told = false;
    protect(shadow, PROT_READ | PROT_WRITE);
    take_from_host(shadow);
    for (struct copy *copy = shadow->copies; copy && copy->behind < event; copy = copy->next)
        if (copy->late && copy->from) memcpy(copy->late, copy->from, copy->bytes);
    end(shadow);
    while (shadow->copies && shadow->copies->behind < event) {
        struct copy *copy = shadow->copies;
        if (copy->late) memcpy(copy->to, copy->late, copy->bytes);
        *told |= copy->late != NULL;
        check_sent(shadow, copy);
        shadow->copies = copy->next;
        free_copy(copy);
    }
    if (!shadow->copies) shadow->last = &shadow->copies;
    if (shadow->spoilt)
        return tr_fail(TR_EINVAL, "the host wrote to memory that was on its way to the device");
    return tr_device_wait(shadow->cpu);
}

/* A wait for the first operations that were enqueued. */
static void count_wait(struct shadow *shadow, uint64_t given)
{
    if (given <= shadow->known) return;
    shadow->known = given;
    atomic_fetch_add(&shadow_waits, 1);
}

static tr_status shadow_wait(tr_device *device)
{
    struct shadow *shadow = shadow_of(device);
    bool told;
    count_wait(shadow, shadow->given);
    shadow->done = shadow->recorded;
    return end_copies(shadow, UINT64_MAX, &told);
}

static tr_status shadow_wait_for(tr_device *device, tr_event event)
{
    struct shadow *shadow = shadow_of(device);
    assert(event.number > 0 && event.number <= shadow->recorded);
    if (event.number <= shadow->done) return TR_OK;
    bool told;
    count_wait(shadow, shadow->at[event.number % MARKS]);
    shadow->done = event.number;
    TR_TRY(end_copies(shadow, event.number, &told));
    if (shadow_goes_on && told && shadow->copies) shadow_goes_on();
    return TR_OK;
}

static tr_status shadow_record(tr_device *device, tr_event *out)
{
    struct shadow *shadow = shadow_of(device);
    out->number = ++shadow->recorded;
    shadow->at[out->number % MARKS] = shadow->given;
    return TR_OK;
}

/* Not finished, at the first query. */
static tr_status shadow_reached(tr_device *device, tr_event event, bool *out)
{
    struct shadow *shadow = shadow_of(device);
    assert(event.number > 0 && event.number <= shadow->recorded);
    if (event.number > shadow->done && shadow->asked == event.number) TR_TRY(shadow_wait(device));
    shadow->asked = event.number;
    *out = event.number <= shadow->done;
    return TR_OK;
}

static void shadow_destroy(tr_device *device)
{
    struct shadow *shadow = shadow_of(device);
    while (shadow->copies) {
        struct copy *copy = shadow->copies;
        shadow->copies = copy->next;
        free_copy(copy);
    }
    while (shadow->ranges) shadow_free(device, shadow->ranges->memory);
    tr_device_destroy(&shadow->cpu);
    tr_free(shadow);
}

/* ---- operations ---- */

#define OPERATION(op)                                                                                        \
    static tr_status shadow_##op(tr_device *device, const struct tr_op_##op *arguments)                      \
    {                                                                                                        \
        struct shadow *shadow = shadow_of(device);                                                           \
        begin(shadow);                                                                                       \
        tr_status status = tr_device_##op(shadow->cpu, arguments);                                           \
        end(shadow);                                                                                         \
        return status;                                                                                       \
    }
TR_DEVICE_OPS(OPERATION)

static int64_t room(tr_device *device)
{
    (void)device;
    return shadow_room;
}

static int64_t memory(const tr_device *device)
{
    (void)device;
    return shadow_memory;
}

static const struct tr_device_class shadow_class = {.name = "shadow",
                                                    .version = TR_DEVICE_VERSION,
                                                    .alloc = shadow_alloc,
                                                    .free = shadow_free,
                                                    .to_device = shadow_to_device,
                                                    .to_host = shadow_to_host,
                                                    .to_host_beside = shadow_to_host_beside,
                                                    .wait = shadow_wait,
                                                    .record = shadow_record,
                                                    .reached = shadow_reached,
                                                    .wait_for = shadow_wait_for,
                                                    .room = room,
                                                    .memory = memory,
                                                    .destroy = shadow_destroy,
#define SLOT(op) .op = shadow_##op,
                                                    TR_DEVICE_OPS(SLOT)
#undef SLOT
};

tr_status shadow_create(int threads, const char *isa, tr_device **out)
{
    *out = NULL;
    struct shadow *shadow = tr_alloc_zero(1, sizeof *shadow);
    if (!shadow) return TR_ENOMEM;
    tr_status status = tr_device_create("cpu", threads, isa, &shadow->cpu);
    if (status != TR_OK) {
        tr_free(shadow);
        return status;
    }
    shadow->base.class = &shadow_class;
    shadow->base.threads = shadow->cpu->threads;
    snprintf(shadow->base.description, sizeof shadow->base.description, "shadow (%d threads)",
             shadow->cpu->threads);
    shadow->last = &shadow->copies;
    *out = &shadow->base;
    return TR_OK;
}
