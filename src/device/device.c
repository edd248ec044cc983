#include "device/device.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/team.h"
#include "base/threads/timeline.h"
#include "device/operation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number after the colon of "opencl:1". */
static tr_status read_number(const char *name, const char *digits, int *out)
{
    char *end;
    long number = strtol(digits, &end, 10);
    if (end == digits || *end || *digits < '0' || *digits > '9' || number > 999)
        return tr_fail(TR_EINVAL, "device \"%s\": after the colon stands the number of a device, from 0",
                       name);
    *out = (int)number;
    return TR_OK;
}

/* Adds the devices that this machine has beside its processors to the message about an unknown kind. */
static tr_status say_what_there_is(void)
{
    struct tr_failure unknown;
    struct tr_text text = TR_TEXT_INIT;
    tr_failure_keep(&unknown, TR_ENOTFOUND);
    tr_text_add(&text, unknown.message);
    for (const struct tr_entry *const *entry = tr_device_kinds.entries; *entry; entry++) {
        const struct tr_device_kind *kind = (const struct tr_device_kind *)*entry;
        char facts[256];
        if (kind->resolve) continue; /* it is listed under its own name */
        tr_status status = kind->describe ? kind->describe(0, facts, sizeof facts) : TR_ENOTFOUND;
        if (status == TR_OK)
            tr_text_addf(&text, "; %s:0 is %s", kind->name, facts);
        else if (kind->describe)
            tr_text_addf(&text, "; %s:0 cannot be used here: %s", kind->name, tr_error_message());
    }
    tr_status status = text.failed ? TR_ENOMEM : tr_fail(TR_ENOTFOUND, "%s", text.bytes);
    tr_text_release(&text);
    return status;
}

/* The kind and number that a name denotes. */
static tr_status find_kind(const char *name, const struct tr_device_kind **out, int *number)
{
    char kind[64];
    size_t length = strcspn(name, ":");
    snprintf(kind, sizeof kind, "%.*s", length < sizeof kind ? (int)length : (int)sizeof kind - 1, name);
    const struct tr_entry *entry;
    if (tr_registry_get(&tr_device_kinds, kind, &entry) != TR_OK) return say_what_there_is();
    *out = (const struct tr_device_kind *)entry;
    *number = 0;
    if (name[length] && !(*out)->describe)
        return tr_fail(TR_EINVAL, "device \"%s\": there is one %s device, without a number", name, kind);
    if (name[length]) TR_TRY(read_number(name, name + length + 1, number));
    return (*out)->resolve ? (*out)->resolve(number, out) : TR_OK;
}

static void write_name(const struct tr_device_kind *kind, int number, char out[TR_DEVICE_NAME])
{
    if (kind->describe)
        snprintf(out, TR_DEVICE_NAME, "%s:%d", kind->name, number);
    else
        snprintf(out, TR_DEVICE_NAME, "%s", kind->name);
}

tr_status tr_device_find(const char *name, char out[TR_DEVICE_NAME])
{
    const struct tr_device_kind *kind;
    int number;
    TR_TRY(find_kind(name, &kind, &number));
    write_name(kind, number, out);
    return TR_OK;
}

tr_status tr_device_open(const struct tr_device_choice *given, tr_device **out)
{
    struct tr_device_choice choice = *given;
    const struct tr_device_kind *kind;
    *out = NULL;
    if (choice.threads < 0 || choice.threads > TR_TEAM_MAX)
        return tr_fail(TR_EINVAL, "threads: %d is out of range; choose 1 to %d, or 0 for one per core",
                       choice.threads, TR_TEAM_MAX);
    TR_TRY(find_kind(choice.name, &kind, &choice.number));
    TR_TRY(kind->create(&choice, out));
    write_name(kind, choice.number, (*out)->name);
    return TR_OK;
}

tr_status tr_device_create(const char *name, int threads, const char *isa, tr_device **out)
{
    struct tr_device_choice choice = {.name = name, .threads = threads, .isa = isa};
    return tr_device_open(&choice, out);
}

tr_status tr_device_create_like(const tr_device *device, int threads, tr_device **out)
{
    if (device->class->create_like) return device->class->create_like(device, threads, out);
    return tr_device_create(device->name, threads, NULL, out);
}

void tr_device_destroy(tr_device **device)
{
    if (!*device) return;
    (*device)->class->destroy(*device);
    *device = NULL;
}

void tr_device_finish(tr_device *device)
{
    struct tr_failure how;
    tr_failure_keep(&how, TR_OK);
    (void)tr_device_wait(device);
    (void)tr_failure_restore(&how);
}

double tr_device_peak(tr_device *device, double seconds)
{
    return device->class->peak ? device->class->peak(device, seconds) : 0;
}

bool tr_device_set_idle(tr_device *device, tr_team_idle idle, void *arguments)
{
    return device->class->set_idle && device->class->set_idle(device, idle, arguments);
}

int64_t tr_device_room(tr_device *device)
{
    return device->class->room ? device->class->room(device) : INT64_MAX;
}

int64_t tr_device_memory(const tr_device *device)
{
    return device->class->memory ? device->class->memory(device) : 0;
}

tr_status tr_device_alloc(tr_device *device, size_t bytes, void **out)
{
    *out = NULL;
    return device->class->alloc(device, bytes, out);
}

void tr_device_free(tr_device *device, void *memory)
{
    if (memory) device->class->free(device, memory);
}

void tr_device_discard(tr_device *device, void *memory, size_t bytes)
{
    if (device->class->host_memory) tr_discard(memory, bytes);
}

tr_status tr_device_to_device(tr_device *device, void *to, const void *from, size_t bytes)
{
    assert(bytes == 0 || (to && from));
    return device->class->to_device(device, to, from, bytes);
}

tr_status tr_device_to_host(tr_device *device, void *to, const void *from, size_t bytes)
{
    assert(bytes == 0 || (to && from));
    return device->class->to_host(device, to, from, bytes);
}

tr_status tr_device_to_host_beside(tr_device *device, void *to, const void *from, size_t bytes)
{
    const struct tr_device_class *class = device->class;
    assert(bytes == 0 || (to && from));
    return (class->to_host_beside ? class->to_host_beside : class->to_host)(device, to, from, bytes);
}

tr_status tr_device_wait(tr_device *device)
{
    return device->class->wait(device);
}

tr_status tr_device_record(tr_device *device, tr_event *out)
{
    *out = (tr_event){0};
    return device->class->record ? device->class->record(device, out) : TR_OK;
}

tr_status tr_device_reached(tr_device *device, tr_event event, bool *out)
{
    *out = true;
    return device->class->reached ? device->class->reached(device, event, out) : TR_OK;
}

tr_status tr_device_wait_for(tr_device *device, tr_event event)
{
    return device->class->wait_for ? device->class->wait_for(device, event) : tr_device_wait(device);
}

tr_status tr_device_alloc_pinned(tr_device *device, size_t bytes, void **out)
{
    *out = NULL;
    if (device->class->alloc_pinned) return device->class->alloc_pinned(device, bytes, out);
    *out = tr_alloc_aligned(bytes, 1);
    return *out ? TR_OK : TR_ENOMEM;
}

void tr_device_free_pinned(tr_device *device, void *memory)
{
    if (!memory) return;
    if (device->class->free_pinned)
        device->class->free_pinned(device, memory);
    else
        tr_free(memory);
}

const void *tr_device_host_view(const tr_device *device, const void *memory)
{
    return device->class->host_memory ? memory : NULL;
}

const void *tr_device_adopt(const tr_device *device, const void *host)
{
    return device->class->host_memory ? host : NULL;
}

/* Notes in the timeline's span of an operation how much the operation computes. */
static void tell_work(const tr_device *device, enum tr_operation_number number, const void *arguments)
{
    const bool host = device->class->host_memory;
    if (!tr_lane_current) return;
    tr_span_work((double)tr_operation_cost(tr_operation_of(number), arguments, host).operations, 0);
}

#define WRAPPER(op)                                                                                          \
    tr_status tr_device_##op(tr_device *device, const struct tr_op_##op *arguments)                          \
    {                                                                                                        \
        assert(arguments);                                                                                   \
        if (!device->class->op)                                                                              \
            return tr_fail(TR_EUNSUPPORTED, "device %s has no operation \"" #op "\"; use another device",    \
                           device->description);                                                             \
        tell_work(device, TR_OPERATION_##op, arguments);                                                     \
        return device->class->op(device, arguments);                                                         \
    }
TR_DEVICE_OPS(WRAPPER)
#undef WRAPPER
