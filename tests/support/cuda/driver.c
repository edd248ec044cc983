/* libcuda.so.1 for tests: see stand_in.h. */
#include "support/cuda/machine.h"
#include "support/cuda/stand_in.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* As the program declares them. */
#define DECLARE(result, name, parameters) EXPORT result name parameters;
CUDA_FUNCTIONS(DECLARE)
CUDA_POOL_FUNCTIONS(DECLARE)
CUDA_GRAPH_FUNCTIONS(DECLARE)
STAND_IN_FUNCTIONS(DECLARE)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool begun;
static struct cu_context_s primary[MOST_DEVICES];

static int64_t fail_at = -1;
static int fail_code;
static const char *failed;

enum { LOST = 719, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, MOST_DEPTH = 8 };

static _Thread_local struct cu_context_s *current[MOST_DEPTH];
static _Thread_local int depth;

/* ---- around every call ---- */

static bool is_lost(void)
{
    if (machine.lost || !machine.trigger[0] || access(machine.trigger, F_OK) != 0) return machine.lost;
    int made = open(machine.mark, O_CREAT | O_EXCL | O_WRONLY, 0600);
    machine.lost = made >= 0;
    if (machine.lost)
        close(made);
    else
        machine.trigger[0] = '\0'; /* only another process can be lost */
    return machine.lost;
}

/* The arranged result of this call; the lock is held from here to end(). */
static cu_result begin(const char *name, bool on_device)
{
    pthread_mutex_lock(&lock);
    if (!begun) misuse("%s: cuInit was not called", name);
    if (on_device && depth == 0 && !failed) misuse("%s: no context is current", name);
    if (fail_at == 0) failed = name;
    if (fail_at >= 0 && fail_at-- == 0) return fail_code;
    if (on_device && depth == 0) return INVALID_CONTEXT;
    return on_device && is_lost() ? LOST : CUDA_SUCCESS;
}

static cu_result end(cu_result result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

static struct cu_context_s *context(void)
{
    return current[depth - 1];
}

/* Whether a failure may have been reported to the host when it wanted to wait. */
static bool gave_errors(cu_result result)
{
    return result != CUDA_SUCCESS || failed || machine.lost;
}

/* A failed call has no effect, unless it ends the life of something. */
#define DO(name, on_device)                                                                                  \
    do {                                                                                                     \
        cu_result arranged = begin(#name, on_device);                                                        \
        if (arranged != CUDA_SUCCESS) return end(arranged);                                                  \
    } while (0)

static void *fresh(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory) misuse("no memory for the stand-in itself");
    machine.live++;
    return memory;
}

/* ---- what tests ask ---- */

EXPORT void stand_in_fail(int64_t at, int code)
{
    pthread_mutex_lock(&lock);
    fail_at = at;
    fail_code = code;
    failed = NULL;
    pthread_mutex_unlock(&lock);
}

EXPORT const char *stand_in_failed(void)
{
    return failed;
}

EXPORT void stand_in_lose(int lost)
{
    machine.lost = lost != 0;
}

EXPORT int64_t stand_in_live(void)
{
    return machine.live;
}

EXPORT int64_t stand_in_done(void)
{
    return machine.done;
}

EXPORT int stand_in_depth(void)
{
    return depth;
}

EXPORT int64_t stand_in_graphs(void)
{
    return machine.graph_launches;
}

EXPORT int64_t stand_in_changes(void)
{
    return machine.changes;
}

EXPORT int64_t stand_in_moved(void)
{
    return machine.moved;
}

/* ---- errors ---- */

static const struct {
    int code;
    const char *name, *words;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for the device"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {LOST, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

static int find_error(int code)
{
    int i = (int)(sizeof errors / sizeof errors[0]) - 1;
    while (i >= 0 && errors[i].code != code) i--;
    return i;
}

EXPORT cu_result cuGetErrorName(cu_result error, const char **name)
{
    int i = find_error(error);
    *name = i >= 0 ? errors[i].name : NULL;
    return i >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT cu_result cuGetErrorString(cu_result error, const char **words)
{
    int i = find_error(error);
    *words = i >= 0 ? errors[i].words : NULL;
    return i >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- devices ---- */

EXPORT cu_result cuInit(unsigned flags)
{
    pthread_mutex_lock(&lock);
    if (flags) misuse("cuInit: flags %u", flags);
    if (!begun) machine_begin();
    begun = true;
    return end(machine.devices == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS);
}

/* NVRTC asks a driver for it, and continues without. */
EXPORT cu_result cuGetExportTable(const void **table, const void *id);
EXPORT cu_result cuGetExportTable(const void **table, const void *id)
{
    (void)id;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

EXPORT cu_result cuDriverGetVersion(int *version)
{
    DO(cuDriverGetVersion, false);
    *version = machine.version;
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuDeviceGetCount(int *count)
{
    DO(cuDeviceGetCount, false);
    *count = machine.devices;
    return end(CUDA_SUCCESS);
}

static void must_be_device(cu_device device)
{
    if (device < 0 || device >= machine.devices) misuse("there is no device %d", device);
}

EXPORT cu_result cuDeviceGet(cu_device *device, int number)
{
    DO(cuDeviceGet, false);
    must_be_device(number);
    *device = number;
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuDeviceGetName(char *name, int size, cu_device device)
{
    DO(cuDeviceGetName, false);
    must_be_device(device);
    snprintf(name, (size_t)size, "stand-in for a GPU");
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuDeviceTotalMem_v2(size_t *bytes, cu_device device)
{
    DO(cuDeviceTotalMem_v2, false);
    must_be_device(device);
    *bytes = machine.memory;
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuDeviceGetAttribute(int *value, int what, cu_device device)
{
    DO(cuDeviceGetAttribute, false);
    must_be_device(device);
    *value = what == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK         ? 1024
             : what == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK ? 48 << 10
             : what == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT        ? 4
             : what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR    ? machine.arch / 10
             : what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR    ? machine.arch % 10
             : what == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED      ? machine.pools
                                                                       : 0;
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuDeviceGetPCIBusId(char *text, int size, cu_device device)
{
    DO(cuDeviceGetPCIBusId, false);
    must_be_device(device);
    snprintf(text, (size_t)size, "0000:%02X:00.0", 10 + (unsigned)device);
    return end(CUDA_SUCCESS);
}

/* ---- contexts ---- */

EXPORT cu_result cuDevicePrimaryCtxRetain(cu_context *out, cu_device device)
{
    DO(cuDevicePrimaryCtxRetain, false);
    must_be_device(device);
    if (is_lost()) return end(LOST);
    primary[device].device = device;
    primary[device].users++;
    machine.live++;
    *out = &primary[device];
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuDevicePrimaryCtxRelease_v2(cu_device device)
{
    cu_result result = begin("cuDevicePrimaryCtxRelease_v2", false);
    must_be_device(device);
    if (primary[device].users-- == 0) misuse("a context is released that nobody holds");
    machine.live--;
    return end(result);
}

EXPORT cu_result cuCtxPushCurrent_v2(cu_context context)
{
    DO(cuCtxPushCurrent_v2, false);
    if (!context || context->users == 0) misuse("a context that nobody holds is made current");
    if (depth == MOST_DEPTH) misuse("contexts are not taken back");
    current[depth++] = context;
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuCtxPopCurrent_v2(cu_context *out)
{
    cu_result result = begin("cuCtxPopCurrent_v2", false);
    if (depth == 0) misuse("no context is current");
    *out = current[--depth];
    return end(result);
}

/* ---- streams ---- */

EXPORT cu_result cuStreamCreate(cu_stream *out, unsigned flags)
{
    DO(cuStreamCreate, true);
    if (flags != CU_STREAM_NON_BLOCKING) misuse("a stream that waits for the default one");
    struct cu_stream_s *stream = fresh(sizeof *stream);
    stream->context = context();
    stream->users = 1;
    stream->last = &stream->first;
    stream_begin(stream);
    *out = stream;
    return end(CUDA_SUCCESS);
}

static void must_be_here(const struct cu_context_s *of, const char *name)
{
    if (depth > 0 && of != context()) misuse("%s: of a context that is not current", name);
}

EXPORT cu_result cuStreamDestroy_v2(cu_stream stream)
{
    cu_result result = begin("cuStreamDestroy_v2", true);
    must_be_here(stream->context, "cuStreamDestroy_v2");
    run_until(stream, stream->enqueued);
    stream_end(stream);
    stream_drop(stream);
    machine.live--;
    return end(result);
}

EXPORT cu_result cuStreamSynchronize(cu_stream stream)
{
    DO(cuStreamSynchronize, true);
    must_be_here(stream->context, "cuStreamSynchronize");
    run_until(stream, stream->enqueued);
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuStreamWaitEvent(cu_stream stream, cu_event event, unsigned flags)
{
    DO(cuStreamWaitEvent, true);
    must_be_here(stream->context, "cuStreamWaitEvent");
    if (flags) misuse("cuStreamWaitEvent: flags %u", flags);
    if (event->stream && event->stream != stream) {
        const struct command command = {.kind = AWAIT, .stream = event->stream, .at = event->at};
        enqueue(stream, &command);
    }
    return end(CUDA_SUCCESS);
}

/* ---- events ---- */

EXPORT cu_result cuEventCreate(cu_event *out, unsigned flags)
{
    DO(cuEventCreate, true);
    struct cu_event_s *event = fresh(sizeof *event);
    event->context = context();
    event->users = 1;
    event->flags = flags;
    *out = event;
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuEventDestroy_v2(cu_event event)
{
    cu_result result = begin("cuEventDestroy_v2", true);
    must_be_here(event->context, "cuEventDestroy_v2");
    event_drop(event);
    machine.live--;
    return end(result);
}

EXPORT cu_result cuEventRecord(cu_event event, cu_stream stream)
{
    DO(cuEventRecord, true);
    must_be_here(event->context, "cuEventRecord");
    must_be_here(stream->context, "cuEventRecord");
    const struct command command = {.kind = RECORD, .event = event};
    enqueue(stream, &command);
    if (event->stream) stream_drop(event->stream);
    stream->users++;
    event->stream = stream;
    event->at = stream->enqueued;
    return end(CUDA_SUCCESS);
}

static bool is_done(const struct cu_event_s *event)
{
    return !event->stream || event->stream->done >= event->at;
}

/* Each query does one more command. */
EXPORT cu_result cuEventQuery(cu_event event)
{
    DO(cuEventQuery, true);
    must_be_here(event->context, "cuEventQuery");
    if (is_done(event)) return end(CUDA_SUCCESS);
    run_one(event->stream);
    return end(CUDA_ERROR_NOT_READY);
}

EXPORT cu_result cuEventSynchronize(cu_event event)
{
    DO(cuEventSynchronize, true);
    must_be_here(event->context, "cuEventSynchronize");
    if (event->stream) run_until(event->stream, event->at);
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuEventElapsedTime(float *out, cu_event from, cu_event to)
{
    DO(cuEventElapsedTime, true);
    if (!from->stream || !to->stream || (from->flags | to->flags) & CU_EVENT_DISABLE_TIMING)
        misuse("times of events that have none");
    if (!is_done(from) || !is_done(to)) return end(CUDA_ERROR_NOT_READY);
    *out = (float)((double)(to->time - from->time) / 1e6);
    return end(CUDA_SUCCESS);
}

/* ---- memory ---- */

EXPORT cu_result cuMemAlloc_v2(cu_pointer *out, size_t bytes)
{
    DO(cuMemAlloc_v2, true);
    if (bytes == 0) return end(CUDA_ERROR_INVALID_VALUE);
    if (!block_has_room(context()->device, bytes)) return end(CUDA_ERROR_OUT_OF_MEMORY);
    *out = block_make(context()->device, bytes, NULL);
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuMemFree_v2(cu_pointer address)
{
    cu_result result = begin("cuMemFree_v2", true);
    block_doom(address, depth > 0 ? context()->device : -1);
    machine_finish(NULL);
    block_free(address);
    return end(result);
}

EXPORT cu_result cuMemPoolCreate(cu_pool *out, const struct cu_pool_properties *properties)
{
    static const unsigned char zeros[sizeof properties->reserved];
    DO(cuMemPoolCreate, false);
    if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED || properties->handles != 0 ||
        properties->location_type != CU_MEM_LOCATION_TYPE_DEVICE || properties->windows || properties->most ||
        memcmp(properties->reserved, zeros, sizeof zeros) != 0)
        misuse("cuMemPoolCreate: properties that are not known");
    must_be_device(properties->location);
    struct cu_pool_s *pool = fresh(sizeof *pool);
    pool->device = properties->location;
    *out = pool;
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuMemPoolDestroy(cu_pool pool)
{
    cu_result result = begin("cuMemPoolDestroy", false);
    free(pool);
    machine.live--;
    return end(result);
}

EXPORT cu_result cuMemPoolSetAttribute(cu_pool pool, int attribute, void *value)
{
    DO(cuMemPoolSetAttribute, false);
    if (!pool || attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD || *(uint64_t *)value != UINT64_MAX)
        misuse("cuMemPoolSetAttribute: %d", attribute);
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuMemPoolTrimTo(cu_pool pool, size_t bytes)
{
    DO(cuMemPoolTrimTo, false);
    (void)pool;
    (void)bytes;
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuMemAllocFromPoolAsync(cu_pointer *out, size_t bytes, cu_pool pool, cu_stream stream)
{
    DO(cuMemAllocFromPoolAsync, true);
    must_be_here(stream->context, "cuMemAllocFromPoolAsync");
    if (pool->device != stream->context->device) misuse("a pool of another device");
    if (bytes == 0) return end(CUDA_ERROR_INVALID_VALUE);
    if (!block_has_room(pool->device, bytes)) return end(CUDA_ERROR_OUT_OF_MEMORY);
    *out = block_make(pool->device, bytes, stream);
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuMemFreeAsync(cu_pointer address, cu_stream stream)
{
    DO(cuMemFreeAsync, true);
    must_be_here(stream->context, "cuMemFreeAsync");
    block_doom(address, stream->context->device);
    const struct command command = {.kind = FREE, .there = address};
    enqueue(stream, &command);
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    DO(cuMemHostAlloc, true);
    if (flags != CU_MEMHOSTALLOC_PORTABLE) misuse("cuMemHostAlloc: flags %u", flags);
    *out = pinned_make(bytes);
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuMemFreeHost(void *memory)
{
    cu_result result = begin("cuMemFreeHost", true);
    if (gave_errors(result)) machine_finish(NULL);
    pinned_free(memory);
    return end(result);
}

/* ---- copies ---- */

EXPORT cu_result cuMemcpyHtoDAsync_v2(cu_pointer to, const void *from, size_t bytes, cu_stream stream)
{
    DO(cuMemcpyHtoDAsync_v2, true);
    must_be_here(stream->context, "cuMemcpyHtoDAsync_v2");
    const struct command command = {
        .kind = TO_DEVICE, .there = to, .here = (void *)(uintptr_t)from, .bytes = bytes};
    enqueue(stream, &command);
    return end(CUDA_SUCCESS);
}

/* A copy to memory that is not pinned returns when it is done. */
EXPORT cu_result cuMemcpyDtoHAsync_v2(void *to, cu_pointer from, size_t bytes, cu_stream stream)
{
    DO(cuMemcpyDtoHAsync_v2, true);
    must_be_here(stream->context, "cuMemcpyDtoHAsync_v2");
    const struct command command = {.kind = TO_HOST, .there = from, .here = to, .bytes = bytes};
    enqueue(stream, &command);
    if (!is_pinned(to, bytes)) run_until(stream, stream->enqueued);
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuMemsetD32Async(cu_pointer to, unsigned value, size_t count, cu_stream stream)
{
    DO(cuMemsetD32Async, true);
    must_be_here(stream->context, "cuMemsetD32Async");
    if (count != 1 || to % 4) misuse("cuMemsetD32Async: %zu numbers at %#zx", count, (size_t)to);
    const struct command command = {.kind = SET, .there = to, .value = value};
    enqueue(stream, &command);
    return end(CUDA_SUCCESS);
}

/* ---- modules ---- */

/* The first line of an image is its architecture, the second one its options: *text becomes the rest; NULL
   for an image of the real compiler, if these are taken. */
static cu_result look_at_image(const char **text, char options[1024])
{
    const char *at = *text;
    char kind[8];
    int arch, head = 0;
    at += at[0] == '\177' ? 4 : at[0] == '/' ? 2 : 0;
    if (sscanf(at, " stand-in %7s %d\n%1023[^\n]\n%n", kind, &arch, options, &head) != 3 || head == 0) {
        *text = NULL;
        return machine.paper ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    }
    *text = at + head;
    if (arch > machine.arch) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    return strcmp(kind, "ptx") == 0 || arch / 10 == machine.arch / 10 ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

EXPORT cu_result cuModuleLoadDataEx(cu_module *out, const void *image, unsigned count, int *names,
                                    void **values)
{
    DO(cuModuleLoadDataEx, true);
    if (count != 2 || names[0] != CU_JIT_ERROR_LOG_BUFFER || names[1] != CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
        misuse("cuModuleLoadDataEx: options");
    if (machine.aborts) misuse("the driver aborts");
    char options[1024];
    const char *text = image;
    cu_result result = look_at_image(&text, options);
    if (result == CUDA_ERROR_INVALID_IMAGE)
        snprintf(values[0], (size_t)(uintptr_t)values[1], "no image of the stand-in");
    if (result != CUDA_SUCCESS) return end(result);
    struct cu_module_s *module = fresh(sizeof *module);
    module->context = context();
    if (text) module->built = program_make(options, text);
    module_begin(module);
    *out = module;
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuModuleUnload(cu_module module)
{
    cu_result result = begin("cuModuleUnload", true);
    must_be_here(module->context, "cuModuleUnload");
    machine_finish(module->context);
    module_end(module);
    return end(result);
}

EXPORT cu_result cuModuleGetFunction(cu_function *out, cu_module module, const char *name)
{
    DO(cuModuleGetFunction, true);
    must_be_here(module->context, "cuModuleGetFunction");
    return end(function_make(module, name, out) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
}

EXPORT cu_result cuModuleGetGlobal_v2(cu_pointer *out, size_t *bytes, cu_module module, const char *name)
{
    DO(cuModuleGetGlobal_v2, true);
    must_be_here(module->context, "cuModuleGetGlobal_v2");
    if (strcmp(name, "d_first_group") != 0) return end(CUDA_ERROR_NOT_FOUND);
    *out = module->first_group;
    *bytes = sizeof module->first;
    return end(CUDA_SUCCESS);
}

/* A launch as a command, with its arguments as they are now. */
static struct command launch_of(cu_function function, const unsigned grid[3], const unsigned group[3],
                                unsigned shared, void **arguments, void **extra)
{
    struct command command = {
        .kind = RUN, .function = function, .grid = {grid[0], grid[1], grid[2]}, .threads = group[0]};
    must_be_here(function->module->context, "a launch");
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > INT32_MAX || grid[1] > 65535 ||
        grid[2] > 65535)
        misuse("a launch of %u x %u x %u groups", grid[0], grid[1], grid[2]);
    if (group[0] == 0 || group[0] > 1024 || group[1] != 1 || group[2] != 1 || shared != 0 || extra)
        misuse("a launch with groups that are not known here");
    command.count = function->count;
    for (int i = 0; i < function->count; i++) {
        command.argument[i].size = function->size[i];
        memcpy(&command.argument[i].value, arguments[i], function->size[i] ? function->size[i] : 8);
    }
    return command;
}

EXPORT cu_result cuLaunchKernel(cu_function function, unsigned x, unsigned y, unsigned z, unsigned threads,
                                unsigned threads_y, unsigned threads_z, unsigned shared, cu_stream stream,
                                void **arguments, void **extra)
{
    DO(cuLaunchKernel, true);
    must_be_here(stream->context, "cuLaunchKernel");
    const struct command command =
        launch_of(function, (const unsigned[]){x, y, z}, (const unsigned[]){threads, threads_y, threads_z},
                  shared, arguments, extra);
    enqueue(stream, &command);
    return end(CUDA_SUCCESS);
}

/* ---- graphs ---- */

EXPORT cu_result cuGraphCreate(cu_graph *out, unsigned flags)
{
    DO(cuGraphCreate, false);
    if (flags) misuse("cuGraphCreate: flags %u", flags);
    struct cu_graph_s *graph = fresh(sizeof *graph);
    graph->last = &graph->first;
    *out = graph;
    return end(CUDA_SUCCESS);
}

static cu_result add_node(cu_graph_node *out, cu_graph graph, const cu_graph_node *after, size_t count,
                          const struct command *command)
{
    if (graph->of) misuse("a node is added to a graph that is made to be launched");
    *out = (cu_graph_node)graph_add(graph, context()->device, command, (const struct command *const *)after,
                                    count);
    return CUDA_SUCCESS;
}

EXPORT cu_result cuGraphAddKernelNode(cu_graph_node *out, cu_graph graph, const cu_graph_node *after,
                                      size_t count, const struct cu_kernel_node *node)
{
    DO(cuGraphAddKernelNode, true);
    const struct command command =
        launch_of(node->function, node->grid, node->group, node->shared, node->arguments, node->extra);
    return end(add_node(out, graph, after, count, &command));
}

EXPORT cu_result cuGraphAddMemsetNode(cu_graph_node *out, cu_graph graph, const cu_graph_node *after,
                                      size_t count, const struct cu_set_node *node, cu_context of)
{
    DO(cuGraphAddMemsetNode, true);
    must_be_here(of, "cuGraphAddMemsetNode");
    if (node->element != 4 || node->width != 1 || node->height != 1 || node->to % 4)
        misuse("cuGraphAddMemsetNode: %zu x %zu numbers of %u bytes at %#zx", node->width, node->height,
               node->element, (size_t)node->to);
    const struct command command = {.kind = SET, .there = node->to, .value = node->value};
    return end(add_node(out, graph, after, count, &command));
}

EXPORT cu_result cuGraphInstantiateWithFlags(cu_graph_exec *out, cu_graph graph, unsigned long long flags)
{
    DO(cuGraphInstantiateWithFlags, true);
    if (flags) misuse("cuGraphInstantiateWithFlags: flags %llu", flags);
    if (graph->of) misuse("cuGraphInstantiateWithFlags: it is made to be launched already");
    *out = (cu_graph_exec)graph_copy(graph);
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuGraphExecKernelNodeSetParams(cu_graph_exec list, cu_graph_node of,
                                                const struct cu_kernel_node *node)
{
    DO(cuGraphExecKernelNodeSetParams, true);
    const struct command command =
        launch_of(node->function, node->grid, node->group, node->shared, node->arguments, node->extra);
    graph_change((struct cu_graph_s *)list, context()->device, (struct command *)of, &command);
    machine.changes++;
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuGraphLaunch(cu_graph_exec list, cu_stream stream)
{
    DO(cuGraphLaunch, true);
    must_be_here(stream->context, "cuGraphLaunch");
    const struct command command = {.kind = GRAPH, .graph = (struct cu_graph_s *)list};
    enqueue(stream, &command);
    return end(CUDA_SUCCESS);
}

EXPORT cu_result cuGraphExecDestroy(cu_graph_exec list)
{
    cu_result result = begin("cuGraphExecDestroy", true);
    if (gave_errors(result)) machine_finish(NULL);
    graph_free((struct cu_graph_s *)list);
    return end(result);
}

EXPORT cu_result cuGraphDestroy(cu_graph graph)
{
    cu_result result = begin("cuGraphDestroy", true);
    graph_free(graph);
    return end(result);
}
