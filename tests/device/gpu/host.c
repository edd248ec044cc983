#include "device/gpu/host.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/timeline.h"
#include "device/gpu/self_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct host host;

/* Whether this call fails. */
static tr_status due(const char *name)
{
    if (!host.fails || strcmp(host.fails, name) != 0 || host.after-- > 0) return TR_OK;
    return tr_fail(host.how, "%s failed", name);
}

tr_status gpu_self_test(struct gpu *gpu)
{
    assert_non_null(gpu->session);
    host.self_tests++;
    return due("self_test");
}

static tr_status describe(int number, struct gpu_info *out)
{
    if (number > 0) return tr_fail(TR_ENOTFOUND, "there is one host");
    *out = host.info;
    return TR_OK;
}

static tr_status open_session(int number, bool timed, void **session)
{
    (void)number, (void)timed;
    *session = &host;
    return due("open");
}

static void close_session(void *session)
{
    assert_ptr_equal(session, &host);
}

static tr_status alloc(void *session, size_t bytes, void **block)
{
    (void)session;
    TR_TRY(due("alloc"));
    *block = tr_alloc_aligned(bytes, 1);
    if (!*block) return TR_ENOMEM;
    host.blocks++;
    return TR_OK;
}

static void free_block(void *session, void *block)
{
    (void)session;
    tr_free(block);
    host.blocks--;
}

/* ---- events ---- */

struct host_event {
    struct gpu_times times;
    bool reached;
};

static tr_status make_event(void **out)
{
    struct host_event *event = tr_alloc(1, sizeof *event);
    if (!event) return TR_ENOMEM;
    const int64_t now = tr_timeline_clock() + host.ahead;
    *event = (struct host_event){{now, now + 100, now + 300}, !host.late};
    *out = event;
    host.events++;
    return TR_OK;
}

static void free_event(void *session, void *event)
{
    (void)session;
    tr_free(event);
    host.events--;
}

static tr_status record(void *session, void **event)
{
    (void)session;
    TR_TRY(due("record"));
    return make_event(event);
}

static tr_status reached(void *session, void *event, bool *out)
{
    (void)session;
    *out = ((const struct host_event *)event)->reached;
    return due("reached");
}

static tr_status wait_for(void *session, void *event)
{
    (void)session;
    host.waits++;
    ((struct host_event *)event)->reached = true;
    return due("wait_for");
}

static tr_status wait_all(void *session)
{
    (void)session;
    host.waits++;
    host.running = false;
    return due("wait");
}

static tr_status times(void *session, void *event, struct gpu_times *out)
{
    (void)session;
    *out = ((const struct host_event *)event)->times;
    return due("times");
}

/* ---- copies ---- */

static tr_status copy(const char *name, void *to, const void *from, size_t bytes, void **event)
{
    TR_TRY(due(name));
    host.copies++;
    assert_true(bytes > 0);
    memcpy(to, from, bytes);
    return event ? make_event(event) : TR_OK;
}

static tr_status to_device(void *session, void *block, size_t at, const void *from, size_t bytes,
                           void **event)
{
    (void)session;
    return copy("to_device", (char *)block + at, from, bytes, event);
}

static tr_status to_host(void *session, void *to, void *block, size_t at, size_t bytes, void **event)
{
    (void)session;
    return copy("to_host", to, (const char *)block + at, bytes, event);
}

static tr_status to_host_beside(void *session, void *to, void *block, size_t at, size_t bytes, void **event)
{
    (void)session;
    return copy("to_host_beside", to, (const char *)block + at, bytes, event);
}

static tr_status alloc_pinned(void *session, size_t bytes, void **memory)
{
    (void)session;
    TR_TRY(due("alloc_pinned"));
    assert_true(bytes > 0);
    *memory = tr_alloc_aligned(bytes, 1);
    if (!*memory) return TR_ENOMEM;
    host.pinned++;
    return TR_OK;
}

static void free_pinned(void *session, void *memory)
{
    (void)session;
    tr_free(memory);
    host.pinned--;
}

/* ---- programs: a binary is its options ---- */

static tr_status build(void *session, const struct gpu_program_source *source, void **program)
{
    (void)session;
    TR_TRY(due("build"));
    if (source->binary) {
        if (source->binary_bytes != strlen(source->options) ||
            memcmp(source->binary, source->options, source->binary_bytes) != 0)
            return tr_fail(TR_EFORMAT, "that is no binary of it");
        host.from_binary++;
    } else {
        host.builds++;
    }
    snprintf(host.options, sizeof host.options, "%s", source->options);
    *program = tr_strdup(source->options);
    if (!*program) return TR_ENOMEM;
    host.programs++;
    return TR_OK;
}

static void free_program(void *session, void *program)
{
    (void)session;
    tr_free(program);
    host.programs--;
}

static tr_status binary(void *session, void *program, void **out, size_t *bytes)
{
    (void)session;
    TR_TRY(due("binary"));
    *bytes = strlen(program);
    *out = tr_strdup(program);
    return *out ? TR_OK : TR_ENOMEM;
}

static tr_status kernel(void *session, void *program, const char *name, void **out)
{
    (void)session, (void)program;
    TR_TRY(due("kernel"));
    *out = tr_strdup(name);
    if (!*out) return TR_ENOMEM;
    host.kernels++;
    return TR_OK;
}

static void free_kernel(void *session, void *name)
{
    (void)session;
    tr_free(name);
    host.kernels--;
}

/* ---- launches ---- */

static int64_t whole(const struct gpu_launch *launch, int index)
{
    int64_t number;
    assert_true(index < launch->count && launch->arguments[index].size == sizeof number);
    memcpy(&number, launch->arguments[index].value, sizeof number);
    return number;
}

/* The array whose block is argument `index`. */
static float *array(const struct gpu_launch *launch, int index)
{
    return (float *)launch->arguments[index].block + whole(launch, index + 1);
}

static void compute(const struct gpu_launch *launch)
{
    const char *name = launch->kernel;
    float factor;
    memcpy(&factor, launch->arguments[1].value, sizeof factor);
    if (strcmp(name, "fill") == 0) {
        float *y = array(launch, 2);
        for (int64_t i = 0; i < whole(launch, 0); i++) y[i] = factor;
    } else if (strcmp(name, "scale") == 0) {
        const float *x = array(launch, 2);
        float *y = array(launch, 4);
        for (int64_t i = 0; i < whole(launch, 0); i++) y[i] = factor * x[i];
    } else if (strcmp(name, "add") == 0 || strcmp(name, "multiply_each") == 0) {
        const float *a = array(launch, 1), *b = array(launch, 3);
        float *y = array(launch, 5);
        for (int64_t i = 0; i < whole(launch, 0); i++) y[i] = *name == 'a' ? a[i] + b[i] : a[i] * b[i];
    }
}

static tr_status launch(void *session, const struct gpu_launch *what)
{
    (void)session;
    TR_TRY(due("launch"));
    assert_true(what->count <= GPU_ARGUMENTS);
    host.launches++;
    host.last = *what;
    memcpy(host.argument, what->arguments, (size_t)what->count * sizeof *what->arguments);
    compute(what);
    return what->event ? make_event(what->event) : TR_OK;
}

/* Lists remember their launches. */
struct host_list {
    int count;
    struct gpu_launch launch[64];
    struct gpu_argument argument[64][GPU_ARGUMENTS];
};

static void keep(struct host_list *list, int index, const struct gpu_launch *what)
{
    list->launch[index] = *what;
    list->launch[index].arguments = list->argument[index];
    memcpy(list->argument[index], what->arguments, (size_t)what->count * sizeof *what->arguments);
}

static tr_status build_list(void *session, const struct gpu_launch *launches, int count, void **out)
{
    (void)session;
    TR_TRY(due("build_list"));
    struct host_list *list = tr_alloc_zero(1, sizeof *list);
    if (!list) return TR_ENOMEM;
    list->count = count;
    assert_true(count <= 64);
    for (int i = 0; i < count; i++) keep(list, i, &launches[i]);
    host.lists++;
    *out = list;
    return TR_OK;
}

static tr_status launch_list(void *session, void *handle)
{
    (void)session;
    const struct host_list *list = handle;
    TR_TRY(due("launch_list"));
    host.running = true;
    for (int i = 0; i < list->count; i++) compute(&list->launch[i]);
    return TR_OK;
}

static tr_status change_list(void *session, void *list, int index, const struct gpu_launch *what)
{
    (void)session;
    TR_TRY(due("change_list"));
    keep(list, index, what);
    return TR_OK;
}

static void free_list(void *session, void *list)
{
    (void)session;
    assert_false(host.running);
    tr_free(list);
    host.lists--;
}

const struct gpu_api gpu_api_host = {
    .name = "host",
    .version = GPU_API_VERSION,
    .exact = "-exact",
    .describe = describe,
    .open = open_session,
    .close = close_session,
    .alloc = alloc,
    .free = free_block,
    .to_device = to_device,
    .to_host = to_host,
    .to_host_beside = to_host_beside,
    .alloc_pinned = alloc_pinned,
    .free_pinned = free_pinned,
    .build = build,
    .free_program = free_program,
    .binary = binary,
    .kernel = kernel,
    .free_kernel = free_kernel,
    .launch = launch,
    .build_list = build_list,
    .launch_list = launch_list,
    .change_list = change_list,
    .free_list = free_list,
    .wait = wait_all,
    .record = record,
    .reached = reached,
    .wait_for = wait_for,
    .free_event = free_event,
    .times = times,
};

void host_begin(void)
{
    host = (struct host){.info = {.platform = "a platform",
                                  .name = "a host",
                                  .vendor = "a vendor",
                                  .driver = "a driver",
                                  .memory = (uint64_t)1 << 30,
                                  .allocation = (uint64_t)1 << 29,
                                  .shared = 48 << 10,
                                  .group = 1024,
                                  .units = 4},
                         .how = TR_EPEER};
}

tr_device *host_open(const char *cache, bool timed)
{
    const struct tr_device_choice choice = {.name = "host", .cache = cache, .timed = timed};
    tr_device *device;
    if (gpu_device_create(&gpu_api_host, &choice, &device) != TR_OK) fail_msg("%s", tr_error_message());
    return device;
}
