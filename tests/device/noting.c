#include "device/noting.h"

#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

struct tr_device_choice noted_choice;
char noted_calls[512];

static void note(const char *name)
{
    strncat(noted_calls, noted_calls[0] ? " " : "", sizeof noted_calls - strlen(noted_calls) - 1);
    strncat(noted_calls, name, sizeof noted_calls - strlen(noted_calls) - 1);
}

void expect_called(const char *names)
{
    assert_string_equal(noted_calls, names);
    noted_calls[0] = '\0';
}

static tr_status own_alloc(tr_device *device, size_t bytes, void **out)
{
    (void)device;
    note("alloc");
    if (bytes > 1000) return tr_fail(TR_ENOMEM, "no room");
    *out = noted_calls;
    return TR_OK;
}

static void own_free(tr_device *device, void *memory)
{
    (void)device;
    assert_ptr_equal(memory, noted_calls);
    note("free");
}

static tr_status own_copy(tr_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    note("copy");
    if (bytes > 0) memcpy(to, from, bytes);
    return TR_OK;
}

static tr_status own_copy_beside(tr_device *device, void *to, const void *from, size_t bytes)
{
    (void)device, (void)to, (void)from, (void)bytes;
    note("beside");
    return TR_OK;
}

static tr_status own_wait(tr_device *device)
{
    (void)device;
    note("wait");
    return tr_fail(TR_EIO, "lost");
}

static tr_status own_record(tr_device *device, tr_event *out)
{
    (void)device;
    note("record");
    out->number = 5;
    return TR_OK;
}

static tr_status own_reached(tr_device *device, tr_event event, bool *out)
{
    (void)device;
    note("reached");
    *out = event.number != 5;
    return TR_OK;
}

static tr_status own_wait_for(tr_device *device, tr_event event)
{
    (void)device, (void)event;
    note("wait_for");
    return TR_OK;
}

static void own_free_pinned(tr_device *device, void *memory)
{
    (void)device, (void)memory;
    note("free_pinned");
}

static tr_status own_create_like(const tr_device *device, int threads, tr_device **out)
{
    (void)device;
    noted_choice = (struct tr_device_choice){.threads = threads};
    *out = NULL;
    note("create_like");
    return TR_OK;
}

static int64_t own_room(tr_device *device)
{
    (void)device;
    return 123;
}

static int64_t own_memory(const tr_device *device)
{
    (void)device;
    return 456;
}

static double own_peak(tr_device *device, double seconds)
{
    (void)device;
    return 2 * seconds;
}

static bool own_set_idle(tr_device *device, tr_team_idle idle, void *arguments)
{
    (void)device, (void)idle;
    return arguments != NULL;
}

static void own_destroy(tr_device *device)
{
    (void)device;
    note("destroy");
}

static const struct tr_device_class bare = {.name = "bare",
                                            .version = TR_DEVICE_VERSION,
                                            .alloc = own_alloc,
                                            .free = own_free,
                                            .to_device = own_copy,
                                            .to_host = own_copy,
                                            .wait = own_wait,
                                            .destroy = own_destroy};
static const struct tr_device_class full = {.name = "full",
                                            .version = TR_DEVICE_VERSION,
                                            .host_memory = true,
                                            .alloc = own_alloc,
                                            .free = own_free,
                                            .to_device = own_copy,
                                            .to_host = own_copy,
                                            .to_host_beside = own_copy_beside,
                                            .wait = own_wait,
                                            .record = own_record,
                                            .reached = own_reached,
                                            .wait_for = own_wait_for,
                                            .alloc_pinned = own_alloc,
                                            .free_pinned = own_free_pinned,
                                            .create_like = own_create_like,
                                            .room = own_room,
                                            .memory = own_memory,
                                            .set_idle = own_set_idle,
                                            .peak = own_peak,
                                            .destroy = own_destroy};
tr_device bare_device = {.class = &bare, .description = "a bare one", .threads = 3};
tr_device full_device = {.class = &full, .description = "a full one", .threads = 3};
