/* The OpenCL side of api.h: sessions. One queue computes; another one, behind marks of it, copies beside. */
#include "base/alloc.h"
#include "base/fail.h"
#include "device/gpu/opencl/internal.h"

#include <stdio.h>
#include <string.h>

#define cl opencl_library

/* ---- a session ---- */

struct opencl_pinned {
    void *memory;
    cl_memory buffer;
    struct opencl_pinned *next;
};

tr_status opencl_failed(const struct opencl_session *session, const char *what, int32_t error)
{
    switch (error) {
    case CL_SUCCESS:
        return TR_OK;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
        return tr_fail(TR_ENOMEM,
                       "%s: out of memory or other resources %s (OpenCL error %d); fewer examples at a time "
                       "(train.pass) need less",
                       session->name, what, error);
    default:
        return tr_fail(
            TR_EPEER,
            "%s: the device failed %s (OpenCL error %d%s%s) and is lost to this run; go on from the last "
            "checkpoint",
            session->name, what, error, session->notice[0] ? ", " : "", session->notice);
    }
}

/* Called by drivers, from any thread, when something goes wrong. */
static void notice(const char *text, const void *information, size_t bytes, void *user)
{
    struct opencl_session *session = user;
    (void)information;
    (void)bytes;
    snprintf(session->notice, sizeof session->notice, "%.*s", (int)sizeof session->notice - 1, text);
}

static void opencl_close(void *session_)
{
    struct opencl_session *session = session_;
    if (session->queue) cl.clFinish(session->queue);
    if (session->copies) {
        cl.clFinish(session->copies);
        cl.clReleaseCommandQueue(session->copies);
    }
    while (session->pinned) {
        struct opencl_pinned *pinned = session->pinned;
        session->pinned = pinned->next;
        cl.clEnqueueUnmapMemObject(session->queue, pinned->buffer, pinned->memory, 0, NULL, NULL);
        cl.clFinish(session->queue);
        cl.clReleaseMemObject(pinned->buffer);
        tr_free(pinned);
    }
    if (session->queue) cl.clReleaseCommandQueue(session->queue);
    if (session->context) cl.clReleaseContext(session->context);
    tr_free(session);
}

static tr_status opencl_open(int number, bool timed, void **out)
{
    struct opencl_found found;
    TR_TRY(opencl_find(number, &found));
    struct opencl_session *session = tr_alloc_zero(1, sizeof *session);
    if (!session) return TR_ENOMEM;
    session->device = found.device;
    session->properties = timed ? CL_QUEUE_PROFILING_ENABLE : 0;
    opencl_text_of(found.device, CL_DEVICE_NAME, session->name, sizeof session->name);
    struct opencl_signals signals;
    opencl_keep_signals(&signals);
    int32_t error;
    session->context = cl.clCreateContext(NULL, 1, &found.device, notice, session, &error);
    if (session->context)
        session->queue = cl.clCreateCommandQueue(session->context, found.device, session->properties, &error);
    opencl_restore_signals(&signals);
    opencl_find_lists(found.platform, session);
    if (!session->queue) {
        tr_status status = opencl_failed(session, "when it was opened", error);
        opencl_close(session);
        return status;
    }
    *out = session;
    return TR_OK;
}

/* ---- memory ---- */

static tr_status opencl_alloc(void *session_, size_t bytes, void **block)
{
    struct opencl_session *session = session_;
    int32_t error;
    *block = cl.clCreateBuffer(session->context, CL_MEM_READ_WRITE, bytes, NULL, &error);
    return *block ? TR_OK : opencl_failed(session, "making room for data", error);
}

static void opencl_free(void *session, void *block)
{
    (void)session;
    cl.clReleaseMemObject(block);
}

static tr_status opencl_to_device(void *session_, void *block, size_t at, const void *from, size_t bytes,
                                  void **event)
{
    struct opencl_session *session = session_;
    return opencl_failed(
        session, "copying to it",
        cl.clEnqueueWriteBuffer(session->queue, block, 0, at, bytes, from, 0, NULL, (cl_event *)event));
}

static tr_status opencl_to_host(void *session_, void *to, void *block, size_t at, size_t bytes, void **event)
{
    struct opencl_session *session = session_;
    return opencl_failed(
        session, "copying from it",
        cl.clEnqueueReadBuffer(session->queue, block, 0, at, bytes, to, 0, NULL, (cl_event *)event));
}

static int32_t need_copies(struct opencl_session *session)
{
    int32_t error = CL_SUCCESS;
    struct opencl_signals signals;
    if (session->copies) return error;
    opencl_keep_signals(&signals);
    session->copies = cl.clCreateCommandQueue(session->context, session->device, session->properties, &error);
    opencl_restore_signals(&signals);
    return error;
}

/* A mark behind all that the queue was given, which it is told to come to. */
static int32_t mark(struct opencl_session *session, cl_event *event)
{
    int32_t error = cl.clEnqueueMarkerWithWaitList(session->queue, 0, NULL, event);
    return error == CL_SUCCESS ? cl.clFlush(session->queue) : error;
}

static tr_status opencl_to_host_beside(void *session_, void *to, void *block, size_t at, size_t bytes,
                                       void **event)
{
    struct opencl_session *session = session_;
    cl_event before;
    int32_t error = need_copies(session);
    if (error == CL_SUCCESS) error = mark(session, &before);
    if (error != CL_SUCCESS) return opencl_failed(session, "copying from it", error);
    error = cl.clEnqueueReadBuffer(session->copies, block, 0, at, bytes, to, 1, &before, (cl_event *)event);
    cl.clReleaseEvent(before);
    if (error == CL_SUCCESS) error = cl.clFlush(session->copies);
    return opencl_failed(session, "copying from it", error);
}

static tr_status opencl_alloc_pinned(void *session_, size_t bytes, void **memory)
{
    struct opencl_session *session = session_;
    struct opencl_pinned *pinned = tr_alloc_zero(1, sizeof *pinned);
    int32_t error;
    if (!pinned) return TR_ENOMEM;
    pinned->buffer =
        cl.clCreateBuffer(session->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &error);
    if (pinned->buffer)
        pinned->memory = cl.clEnqueueMapBuffer(session->queue, pinned->buffer, 1, CL_MAP_READ_WRITE, 0, bytes,
                                               0, NULL, NULL, &error);
    if (!pinned->memory) {
        if (pinned->buffer) cl.clReleaseMemObject(pinned->buffer);
        tr_free(pinned);
        return opencl_failed(session, "making room for copies", error);
    }
    pinned->next = session->pinned;
    session->pinned = pinned;
    *memory = pinned->memory;
    return TR_OK;
}

static void opencl_free_pinned(void *session_, void *memory)
{
    struct opencl_session *session = session_;
    struct opencl_pinned **at = &session->pinned;
    while (*at && (*at)->memory != memory) at = &(*at)->next;
    struct opencl_pinned *pinned = *at;
    if (!pinned) return;
    *at = pinned->next;
    cl.clEnqueueUnmapMemObject(session->queue, pinned->buffer, memory, 0, NULL, NULL);
    cl.clFinish(session->queue);
    cl.clReleaseMemObject(pinned->buffer);
    tr_free(pinned);
}

/* ---- programs ---- */

/* What exactness needs: the language rounds divisions and square roots as it likes otherwise. Options that
   trade bits for speed are never given. */
#define STRICT "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt "

static tr_status build_failed(struct opencl_session *session, cl_program program,
                              const struct gpu_program_source *source, int32_t error)
{
    size_t bytes = 0;
    cl.clGetProgramBuildInfo(program, session->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    char *text = tr_alloc_zero(bytes + 1, 1);
    if (text && bytes > 0)
        cl.clGetProgramBuildInfo(program, session->device, CL_PROGRAM_BUILD_LOG, bytes, text, NULL);
    tr_status status =
        tr_fail(TR_EUNSUPPORTED, "%s: its compiler refuses the kernels \"%s\" (OpenCL error %d): %.700s",
                session->name, source->name, error, text ? text : "");
    tr_free(text);
    return status;
}

static tr_status create_program(struct opencl_session *session, const struct gpu_program_source *source,
                                cl_program *program)
{
    int32_t error, loaded = CL_SUCCESS;
    if (source->binary) {
        const unsigned char *binary = source->binary;
        *program = cl.clCreateProgramWithBinary(session->context, 1, &session->device, &source->binary_bytes,
                                                &binary, &loaded, &error);
        if (*program && loaded != CL_SUCCESS) {
            cl.clReleaseProgram(*program);
            *program = NULL;
        }
        return *program ? TR_OK : tr_fail(TR_EFORMAT, "%s: not a program of this device", source->name);
    }
    *program = cl.clCreateProgramWithSource(session->context, (uint32_t)source->count,
                                            (const char **)(uintptr_t)source->parts, NULL, &error);
    return *program ? TR_OK : opencl_failed(session, "making a program", error);
}

static tr_status opencl_build(void *session_, const struct gpu_program_source *source, void **out)
{
    struct opencl_session *session = session_;
    cl_program program;
    TR_TRY(create_program(session, source, &program));
    char *options = tr_format(STRICT "%s", source->options);
    if (!options) {
        cl.clReleaseProgram(program);
        return TR_ENOMEM;
    }
    struct opencl_signals signals;
    opencl_keep_signals(&signals);
    int32_t error = cl.clBuildProgram(program, 1, &session->device, options, NULL, NULL);
    opencl_restore_signals(&signals);
    tr_free(options);
    if (error != CL_SUCCESS) {
        tr_status status = source->binary
                               ? tr_fail(TR_EFORMAT, "%s: not a program of this device", source->name)
                               : build_failed(session, program, source, error);
        cl.clReleaseProgram(program);
        return status;
    }
    *out = program;
    return TR_OK;
}

static void opencl_free_program(void *session, void *program)
{
    (void)session;
    cl.clReleaseProgram(program);
}

static tr_status opencl_binary(void *session_, void *program, void **binary, size_t *bytes)
{
    struct opencl_session *session = session_;
    *binary = NULL;
    *bytes = 0;
    int32_t error = cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL);
    if (error != CL_SUCCESS) return opencl_failed(session, "telling a program's size", error);
    unsigned char *memory = tr_alloc(*bytes, 1);
    if (!memory) return TR_ENOMEM;
    struct opencl_signals signals;
    opencl_keep_signals(&signals);
    error = cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof memory, &memory, NULL);
    opencl_restore_signals(&signals);
    if (error != CL_SUCCESS) {
        tr_free(memory);
        return opencl_failed(session, "giving a program's binary", error);
    }
    *binary = memory;
    return TR_OK;
}

static tr_status opencl_kernel(void *session_, void *program, const char *name, void **out)
{
    struct opencl_session *session = session_;
    int32_t error;
    struct opencl_kernel *kernel = tr_alloc_zero(1, sizeof *kernel);
    if (!kernel) return TR_ENOMEM;
    kernel->least = UINT32_MAX;
    kernel->program = program;
    kernel->kernel = cl.clCreateKernel(program, name, &error);
    if (!kernel->kernel) {
        tr_free(kernel);
        return opencl_failed(session, name, error);
    }
    *out = kernel;
    return TR_OK;
}

static void opencl_free_kernel(void *session, void *kernel_)
{
    struct opencl_kernel *kernel = kernel_;
    (void)session;
    cl.clReleaseKernel(kernel->kernel);
    tr_free(kernel);
}

/* Whether a launch of so many groups may be one that a driver compiles for. */
static bool is_new(struct opencl_kernel *kernel, const uint32_t groups[3])
{
    uint32_t most = groups[0];
    for (int i = 1; i < 3; i++)
        if (groups[i] > most) most = groups[i];
    bool fresh = most < kernel->least || most > kernel->most;
    if (most < kernel->least) kernel->least = most;
    if (most > kernel->most) kernel->most = most;
    return fresh;
}

int32_t opencl_set_arguments(cl_kernel kernel, const struct gpu_launch *launch)
{
    for (int i = 0; i < launch->count; i++) {
        const struct gpu_argument *argument = &launch->arguments[i];
        size_t size = argument->size ? argument->size : sizeof argument->block;
        const void *value = argument->size ? (const void *)argument->value : (const void *)&argument->block;
        int32_t error = cl.clSetKernelArg(kernel, (uint32_t)i, size, value);
        if (error != CL_SUCCESS) return error;
    }
    return CL_SUCCESS;
}

void opencl_set_range(const struct gpu_launch *launch, struct opencl_range *range)
{
    for (int i = 0; i < 3; i++) {
        range->local[i] = i == 0 ? launch->threads : 1;
        range->global[i] = range->local[i] * launch->groups[i];
        range->first[i] = range->local[i] * launch->first[i];
    }
    range->offset = launch->first[1] == 0 && launch->first[2] == 0 ? NULL : range->first;
}

static tr_status opencl_launch(void *session_, const struct gpu_launch *launch)
{
    struct opencl_session *session = session_;
    struct opencl_kernel *kernel = launch->kernel;
    int32_t error = opencl_set_arguments(kernel->kernel, launch);
    if (error != CL_SUCCESS) return opencl_failed(session, launch->name, error);
    struct opencl_range range;
    opencl_set_range(launch, &range);
    struct opencl_signals signals;
    bool guarded = is_new(kernel, launch->groups) || range.offset;
    if (guarded) opencl_keep_signals(&signals);
    error = cl.clEnqueueNDRangeKernel(session->queue, kernel->kernel, 3, range.offset, range.global,
                                      range.local, 0, NULL, (cl_event *)launch->event);
    if (guarded) opencl_restore_signals(&signals);
    return opencl_failed(session, launch->name, error);
}

/* ---- order ---- */

static tr_status opencl_wait(void *session_)
{
    struct opencl_session *session = session_;
    int32_t error = cl.clFinish(session->queue);
    if (error == CL_SUCCESS && session->copies) error = cl.clFinish(session->copies);
    return opencl_failed(session, "computing", error);
}

/* Where there are copies beside, behind them, too: their queue keeps order. */
static tr_status opencl_record(void *session_, void **out)
{
    struct opencl_session *session = session_;
    cl_event event, both;
    int32_t error = mark(session, &event);
    if (error == CL_SUCCESS && session->copies) {
        error = cl.clEnqueueMarkerWithWaitList(session->copies, 1, &event, &both);
        cl.clReleaseEvent(event);
        event = both;
        if (error == CL_SUCCESS) error = cl.clFlush(session->copies);
    }
    *out = event;
    return opencl_failed(session, "marking a moment", error);
}

static tr_status opencl_reached(void *session_, void *event, bool *out)
{
    struct opencl_session *session = session_;
    int32_t state = CL_COMPLETE;
    int32_t error = cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (error == CL_SUCCESS && state < 0) error = state;
    *out = state == CL_COMPLETE;
    return opencl_failed(session, "computing", error);
}

/* A mark was sent off when it was made. */
static tr_status opencl_wait_for(void *session, void *event)
{
    bool reached;
    cl_event mark = event;
    int32_t error = cl.clWaitForEvents(1, &mark);
    TR_TRY(opencl_reached(session, event, &reached)); /* which knows the reason */
    return opencl_failed(session, "computing", error);
}

static void opencl_free_event(void *session, void *event)
{
    (void)session;
    cl.clReleaseEvent(event);
}

static tr_status opencl_times(void *session_, void *event, struct gpu_times *out)
{
    struct opencl_session *session = session_;
    uint64_t queued = 0, begin = 0, end = 0;
    int32_t error =
        cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof queued, &queued, NULL);
    if (error == CL_SUCCESS)
        error = cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL);
    if (error == CL_SUCCESS)
        error = cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    *out = (struct gpu_times){(int64_t)queued, (int64_t)begin, (int64_t)end};
    return opencl_failed(session, "telling times", error);
}

const struct gpu_api gpu_api_opencl = {
    .name = "opencl",
    .version = GPU_API_VERSION,
    .exact = STRICT,
    .describe = opencl_describe,
    .open = opencl_open,
    .close = opencl_close,
    .alloc = opencl_alloc,
    .free = opencl_free,
    .to_device = opencl_to_device,
    .to_host = opencl_to_host,
    .to_host_beside = opencl_to_host_beside,
    .alloc_pinned = opencl_alloc_pinned,
    .free_pinned = opencl_free_pinned,
    .build = opencl_build,
    .free_program = opencl_free_program,
    .binary = opencl_binary,
    .kernel = opencl_kernel,
    .free_kernel = opencl_free_kernel,
    .launch = opencl_launch,
    .build_list = opencl_build_list,
    .launch_list = opencl_launch_list,
    .free_list = opencl_free_list,
    .wait = opencl_wait,
    .record = opencl_record,
    .reached = opencl_reached,
    .wait_for = opencl_wait_for,
    .free_event = opencl_free_event,
    .times = opencl_times,
};
