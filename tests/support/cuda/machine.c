#include "support/cuda/machine.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define POISON 0xA5

struct machine machine;

void misuse(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fprintf(stderr, "stand-in for CUDA: ");
    vfprintf(stderr, format, values);
    fprintf(stderr, "\n");
    va_end(values);
    abort();
}

static void *must(void *memory)
{
    if (!memory) misuse("no memory for the stand-in itself");
    return memory;
}

/* ---- OpenCL ---- */

#define MORE_FUNCTIONS(X)                                                                                    \
    X(int32_t, clGetKernelInfo, -1, (cl_kernel, uint32_t, size_t, void *, size_t *))                         \
    X(int32_t, clGetKernelArgInfo, -1, (cl_kernel, uint32_t, uint32_t, size_t, void *, size_t *))            \
    X(int32_t, clEnqueueFillBuffer, -1,                                                                      \
      (cl_queue, cl_memory, const void *, size_t, size_t, size_t, uint32_t, const cl_event *, cl_event *))
enum { CL_KERNEL_NUM_ARGS = 0x1191, CL_KERNEL_ARG_TYPE_NAME = 0x1198 };

static struct {
#define MEMBER(result, name, place, parameters) result(*name) parameters;
    OPENCL_FUNCTIONS(MEMBER)
    MORE_FUNCTIONS(MEMBER)
#undef MEMBER
    cl_context context;
    cl_device device;
    cl_queue queue;
} cl;

static void check(int32_t error, const char *what)
{
    if (error != CL_SUCCESS) misuse("%s: OpenCL error %d", what, error);
}

static void begin_opencl(void)
{
    cl_platform platform;
    int32_t error;
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) misuse("%s", dlerror());
#define LOAD(result, name, place, parameters) *(void **)(void *)&cl.name = must(dlsym(library, #name));
    OPENCL_FUNCTIONS(LOAD)
    MORE_FUNCTIONS(LOAD)
#undef LOAD
    check(cl.clGetPlatformIDs(1, &platform, NULL), "platforms");
    check(cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &cl.device, NULL), "devices");
    cl.context = cl.clCreateContext(NULL, 1, &cl.device, NULL, NULL, &error);
    check(error, "a context");
    cl.queue = cl.clCreateCommandQueue(cl.context, cl.device, 0, &error);
    check(error, "a queue");
}

void machine_begin(void)
{
    const char *words = getenv("TRIREME_STAND_IN");
    machine = (struct machine){
        .devices = 2, .arch = 80, .version = 12040, .pools = true, .memory = (size_t)512 << 20};
    for (const char *at = words; at && *at;) {
        char word[1100];
        unsigned long long full;
        int length = (int)strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", length, at);
        at += length + (at[length] == ',');
        if (sscanf(word, "devices=%d", &machine.devices) == 1 ||
            sscanf(word, "arch=%d", &machine.arch) == 1 ||
            sscanf(word, "version=%d", &machine.version) == 1 ||
            sscanf(word, "lost=%511[^:]:%511s", machine.trigger, machine.mark) == 2)
            continue;
        if (sscanf(word, "full=%llu", &full) == 1)
            machine.memory = full;
        else if (strcmp(word, "nopools") == 0)
            machine.pools = false;
        else if (strcmp(word, "paper") == 0)
            machine.paper = true;
        else if (strcmp(word, "abort") == 0)
            machine.aborts = true;
        else
            misuse("TRIREME_STAND_IN: \"%s\" is not known", word);
    }
    if (machine.devices < 0 || machine.devices > MOST_DEVICES) misuse("%d devices", machine.devices);
}

/* ---- memory ---- */

struct block {
    cu_pointer begin;
    size_t bytes;
    int device;
    bool doomed;
    struct cu_stream_s *born; /* whoever uses it must come after `at` there; NULL: it is there */
    uint64_t at;
    cl_memory memory;
};

static struct block *blocks; /* ascending */
static int block_count, block_room;
static size_t used[MOST_DEVICES];

static int place_of(cu_pointer address)
{
    int low = 0, high = block_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (blocks[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static struct block *find_block(cu_pointer address, size_t bytes)
{
    int place = place_of(address);
    if (place < 0 || address - blocks[place].begin + bytes > blocks[place].bytes)
        misuse("%zu bytes at %#zx are no memory of a device, or were freed", bytes, (size_t)address);
    return &blocks[place];
}

static void *reserve(size_t bytes)
{
    void *range = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) misuse("no addresses for %zu bytes", bytes);
    return range;
}

static void poison(cl_memory memory, size_t bytes)
{
    static const unsigned char pattern = POISON;
    check(cl.clEnqueueFillBuffer(cl.queue, memory, &pattern, 1, 0, bytes, 0, NULL, NULL), "poisoning");
    check(cl.clFinish(cl.queue), "poisoning");
}

bool block_has_room(int device, size_t bytes)
{
    return bytes <= machine.memory - used[device];
}

cu_pointer block_make(int device, size_t bytes, struct cu_stream_s *born)
{
    int32_t error;
    if (!cl.context) begin_opencl();
    if (block_count == block_room) {
        block_room = 2 * block_room + 16;
        blocks = must(realloc(blocks, (size_t)block_room * sizeof *blocks));
    }
    struct block fresh = {
        .begin = (cu_pointer)reserve(bytes), .bytes = bytes, .device = device, .born = born};
    if (born) {
        born->users++;
        fresh.at = born->enqueued;
    }
    fresh.memory = cl.clCreateBuffer(cl.context, CL_MEM_READ_WRITE, bytes, NULL, &error);
    check(error, "memory");
    poison(fresh.memory, bytes);
    int place = place_of(fresh.begin) + 1;
    memmove(blocks + place + 1, blocks + place, (size_t)(block_count - place) * sizeof *blocks);
    blocks[place] = fresh;
    block_count++;
    used[device] += bytes;
    machine.live++;
    return fresh.begin;
}

void block_doom(cu_pointer address, int device)
{
    struct block *block = find_block(address, 1);
    if (block->begin != address || (device >= 0 && block->device != device) || block->doomed)
        misuse("%#zx is no block of this device to be freed", (size_t)address);
    block->doomed = true;
}

void block_free(cu_pointer address)
{
    struct block *block = find_block(address, 1);
    poison(block->memory, block->bytes);
    check(cl.clReleaseMemObject(block->memory), "freeing");
    munmap((void *)block->begin, block->bytes);
    used[block->device] -= block->bytes;
    if (block->born) stream_drop(block->born);
    block_count--;
    memmove(block, block + 1, (size_t)(blocks + block_count - block) * sizeof *blocks);
    machine.live--;
}

/* The memory of an address for a command that is done now. */
static struct block *use_block(const struct cu_stream_s *stream, cu_pointer address, size_t bytes)
{
    struct block *block = find_block(address, bytes);
    if (block->device != stream->context->device) misuse("memory of another device");
    if (block->born && block->born->done < block->at)
        misuse("memory is used before the stream that gives it came there");
    return block;
}

/* ---- pinned memory ---- */

struct pinned {
    char *memory;
    size_t bytes;
    int under_way;
    struct pinned *next;
};
static struct pinned *pinned;

void *pinned_make(size_t bytes)
{
    struct pinned *fresh = must(calloc(1, sizeof *fresh));
    fresh->memory = must(aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
    memset(fresh->memory, POISON, bytes);
    fresh->bytes = bytes;
    fresh->next = pinned;
    pinned = fresh;
    machine.live++;
    return fresh->memory;
}

static struct pinned *find_pinned(const void *memory_, size_t bytes)
{
    const char *memory = memory_;
    for (struct pinned *one = pinned; one; one = one->next)
        if (memory >= one->memory && memory + bytes <= one->memory + one->bytes) return one;
    return NULL;
}

bool is_pinned(const void *memory, size_t bytes)
{
    return find_pinned(memory, bytes) != NULL;
}

void pinned_free(void *memory)
{
    struct pinned **at = &pinned;
    while (*at && (*at)->memory != memory) at = &(*at)->next;
    struct pinned *one = *at;
    if (!one) misuse("pinned memory that is none is freed");
    if (one->under_way) misuse("pinned memory is freed under a copy");
    *at = one->next;
    memset(one->memory, POISON, one->bytes);
    free(one->memory);
    free(one);
    machine.live--;
}

/* ---- programs ---- */

static cl_program build(const char *options, const char *text)
{
    int32_t error;
    cl_program program = cl.clCreateProgramWithSource(cl.context, 1, &text, NULL, &error);
    check(error, "a program");
    error = cl.clBuildProgram(program, 1, &cl.device, options, NULL, NULL);
    if (error == CL_SUCCESS) return program;
    char log[4000] = "";
    cl.clGetProgramBuildInfo(program, cl.device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    misuse("a program cannot be built: %s", log);
}

/* Twice: pocl finds what others compiled only by the same options, and with these tells no parameters. */
const struct built *program_make(const char *options, const char *text)
{
    static struct built *all;
    char telling[1024];
    if (!cl.context) begin_opencl();
    for (struct built *one = all; one; one = one->next)
        if (strcmp(one->options, options) == 0 && strcmp(one->text, text) == 0) return one;
    struct built *fresh = must(calloc(1, sizeof *fresh));
    fresh->options = must(strdup(options));
    fresh->text = must(strdup(text));
    fresh->program = build(options, text);
    snprintf(telling, sizeof telling, "%s -cl-kernel-arg-info", options);
    fresh->telling = build(telling, text);
    fresh->next = all;
    all = fresh;
    return fresh;
}

static size_t size_of(const char *type)
{
    static const struct {
        const char *name;
        size_t size;
    } sizes[] = {{"int", 4},  {"uint", 4},  {"float", 4},   {"int32_t", 4}, {"uint32_t", 4},
                 {"long", 8}, {"ulong", 8}, {"int64_t", 8}, {"uint64_t", 8}};
    if (strchr(type, '*')) return 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (strcmp(sizes[i].name, type) == 0) return sizes[i].size;
    misuse("a parameter of type \"%s\"", type);
}

bool function_make(struct cu_module_s *module, const char *name, struct cu_function_s **out)
{
    int32_t error;
    uint32_t count = 0;
    cl_kernel kernel = cl.clCreateKernel(module->built->program, name, &error);
    if (!kernel) return false;
    cl_kernel telling = cl.clCreateKernel(module->built->telling, name, &error);
    check(error, name);
    struct cu_function_s *function = must(calloc(1, sizeof *function));
    check(cl.clGetKernelInfo(telling, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL), "parameters");
    if (count > MOST_ARGUMENTS) misuse("%s has %u parameters", name, count);
    for (uint32_t i = 0; i < count; i++) {
        char type[128] = "";
        check(cl.clGetKernelArgInfo(telling, i, CL_KERNEL_ARG_TYPE_NAME, sizeof type, type, NULL), "types");
        function->size[i] = size_of(type);
    }
    cl.clReleaseKernel(telling);
    function->module = module;
    function->kernel = kernel;
    function->count = (int)count;
    function->next = module->functions;
    module->functions = function;
    *out = function;
    return true;
}

/* ---- streams ---- */

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void set_argument(cl_kernel kernel, int index, size_t size, const void *value)
{
    check(cl.clSetKernelArg(kernel, (uint32_t)index, size, value), "an argument");
}

static void launch(const struct cu_stream_s *stream, const struct command *command)
{
    const struct cu_function_s *function = command->function;
    const uint32_t *first = function->module->first;
    size_t global[3], local[3], offset[3];
    for (int i = 0; i < command->count; i++) {
        uint64_t value = command->argument[i].value;
        size_t size = command->argument[i].size;
        if (size)
            set_argument(function->kernel, i, size, &value);
        else
            set_argument(function->kernel, i, sizeof(cl_memory),
                         value ? &use_block(stream, value, 1)->memory : &(cl_memory){NULL});
    }
    for (int i = 0; i < 3; i++) {
        local[i] = i == 0 ? command->threads : 1;
        global[i] = local[i] * command->grid[i];
        offset[i] = local[i] * first[i];
    }
    bool moved = first[1] || first[2];
    machine.moved += moved;
    check(cl.clEnqueueNDRangeKernel(cl.queue, function->kernel, 3, moved ? offset : NULL, global, local, 0,
                                    NULL, NULL),
          "a launch");
    check(cl.clFinish(cl.queue), "a launch");
}

/* The one address that is no block: the first group of a module. */
static struct cu_module_s *modules_first[4096];

static void set(const struct command *command)
{
    for (size_t i = 0; i < sizeof modules_first / sizeof modules_first[0]; i++) {
        struct cu_module_s *module = modules_first[i];
        if (!module || command->there < module->first_group || command->there >= module->first_group + 12)
            continue;
        module->first[(command->there - module->first_group) / 4] = command->value;
        return;
    }
    misuse("memory is set that is no number of a first group");
}

static void forget_copy(const struct command *command)
{
    struct pinned *host = find_pinned(command->here, command->bytes);
    if (host) host->under_way--;
}

static void release_nodes(struct command *first)
{
    while (first) {
        struct command *command = first;
        first = command->next;
        free(command);
    }
}

/* Where nodes are told apart, each says which one it is of. */
static struct command *copy_nodes(const struct command *first, struct command ***last)
{
    struct command *copies = NULL, **end = &copies;
    for (const struct command *node = first; node; node = node->next) {
        struct command *command = must(malloc(sizeof *command));
        *command = *node;
        if (!command->node) command->node = (struct command *)(uintptr_t)node;
        command->next = NULL;
        *end = command;
        end = &command->next;
    }
    if (last) *last = end;
    return copies;
}

static void do_one(struct cu_stream_s *stream, struct command *command)
{
    struct block *block;
    switch (command->kind) {
    case RUN:
        if (!machine.lost) launch(stream, command);
        break;
    case TO_DEVICE:
    case TO_HOST:
        if (machine.lost) {
            forget_copy(command);
            break;
        }
        block = use_block(stream, command->there, command->bytes);
        size_t at = command->there - block->begin;
        if (command->kind == TO_DEVICE)
            check(cl.clEnqueueWriteBuffer(cl.queue, block->memory, 1, at, command->bytes, command->here, 0,
                                          NULL, NULL),
                  "a copy");
        else
            check(cl.clEnqueueReadBuffer(cl.queue, block->memory, 1, at, command->bytes, command->here, 0,
                                         NULL, NULL),
                  "a copy");
        forget_copy(command);
        break;
    case SET:
        if (!machine.lost) set(command);
        break;
    case RECORD:
        command->event->time = now();
        event_drop(command->event);
        break;
    case AWAIT:
        run_until(command->stream, command->at);
        stream_drop(command->stream);
        break;
    case FREE:
        block_free(command->there);
        break;
    case GRAPH:
        for (struct command *node = command->nodes; node; node = node->next) do_one(stream, node);
        release_nodes(command->nodes);
        command->graph->under_way--;
        machine.graph_launches++;
        break;
    }
    machine.done++;
}

void run_one(struct cu_stream_s *stream)
{
    struct command *command = stream->first;
    if (!command) return;
    stream->first = command->next;
    if (!stream->first) stream->last = &stream->first;
    do_one(stream, command);
    stream->done++;
    free(command);
}

void run_until(struct cu_stream_s *stream, uint64_t at)
{
    while (stream->done < at) run_one(stream);
}

/* What is wrong already when it is said. */
static void look_at(int device, const struct command *command)
{
    for (int i = 0; command->kind == RUN && i < command->count; i++) {
        cu_pointer address = command->argument[i].value;
        if (command->argument[i].size || !address) continue;
        const struct block *block = find_block(address, 1);
        if (block->begin != address || block->device != device || block->doomed)
            misuse("argument %d is no block of the device", i);
    }
    if (command->kind == TO_DEVICE || command->kind == TO_HOST) {
        const struct block *block = find_block(command->there, command->bytes);
        if (block->device != device || block->doomed) misuse("a copy from or to no block of the device");
    }
}

void enqueue(struct cu_stream_s *stream, const struct command *given)
{
    struct command *command = must(malloc(sizeof *command));
    look_at(stream->context->device, given);
    *command = *given;
    command->next = NULL;
    struct pinned *host = command->kind == TO_DEVICE || command->kind == TO_HOST
                              ? find_pinned(command->here, command->bytes)
                              : NULL;
    if (host) host->under_way++;
    if (command->kind == RECORD) command->event->users++;
    if (command->kind == AWAIT) command->stream->users++;
    if (command->kind == GRAPH) {
        command->graph->under_way++;
        command->nodes = copy_nodes(command->graph->first, NULL);
    }
    *stream->last = command;
    stream->last = &command->next;
    stream->enqueued++;
}

static struct cu_stream_s *streams;

void stream_begin(struct cu_stream_s *stream)
{
    stream->next = streams;
    streams = stream;
}

void stream_end(struct cu_stream_s *stream)
{
    struct cu_stream_s **at = &streams;
    while (*at != stream) at = &(*at)->next;
    *at = stream->next;
}

void machine_finish(const struct cu_context_s *context)
{
    for (struct cu_stream_s *stream = streams; stream; stream = stream->next)
        if (!context || stream->context == context) run_until(stream, stream->enqueued);
}

void stream_drop(struct cu_stream_s *stream)
{
    if (--stream->users == 0) free(stream);
}

void event_drop(struct cu_event_s *event)
{
    if (--event->users > 0) return;
    if (event->stream) stream_drop(event->stream);
    free(event);
}

struct command *graph_add(struct cu_graph_s *graph, int device, const struct command *given,
                          const struct command *const *after, size_t count)
{
    struct command *command = must(malloc(sizeof *command));
    bool behind = graph->first ? count == 1 && &((struct command *)(uintptr_t)after[0])->next == graph->last
                               : count == 0;
    if (!behind) misuse("a node that is not behind the last one of its graph");
    look_at(device, given);
    *command = *given;
    *graph->last = command;
    graph->last = &command->next;
    return command;
}

void graph_change(struct cu_graph_s *list, int device, const struct command *node,
                  const struct command *given)
{
    struct command *own = list->first;
    if (!list->of || list->of->gone)
        misuse("a graph is changed that was not made to be launched, or whose nodes are gone");
    while (own && own->node != node) own = own->next;
    if (!own || own->kind != RUN || own->function != given->function)
        misuse("a node that is none of the graph, or of another kernel");
    look_at(device, given);
    struct command *next = own->next;
    *own = *given;
    own->node = (struct command *)(uintptr_t)node;
    own->next = next;
}

static void release_graph(struct cu_graph_s *graph)
{
    release_nodes(graph->first);
    free(graph);
}

void graph_free(struct cu_graph_s *graph)
{
    if (graph->under_way) misuse("a graph is freed under way");
    machine.live--;
    graph->gone = true;
    struct cu_graph_s *of = graph->of;
    if (graph->made == 0) release_graph(graph);
    if (of && --of->made == 0 && of->gone) release_graph(of);
}

struct cu_graph_s *graph_copy(struct cu_graph_s *graph)
{
    struct cu_graph_s *copy = must(calloc(1, sizeof *copy));
    copy->of = graph;
    graph->made++;
    copy->first = copy_nodes(graph->first, &copy->last);
    machine.live++;
    return copy;
}

void module_begin(struct cu_module_s *module)
{
    module->first_group = (cu_pointer)reserve(4096);
    for (size_t i = 0; i < sizeof modules_first / sizeof modules_first[0]; i++)
        if (!modules_first[i]) {
            modules_first[i] = module;
            return;
        }
    misuse("too many modules");
}

void module_end(struct cu_module_s *module)
{
    for (size_t i = 0; i < sizeof modules_first / sizeof modules_first[0]; i++)
        if (modules_first[i] == module) modules_first[i] = NULL;
    munmap((void *)module->first_group, 4096);
    while (module->functions) {
        struct cu_function_s *function = module->functions;
        module->functions = function->next;
        cl.clReleaseKernel(function->kernel);
        free(function);
    }
    free(module);
    machine.live--;
}
