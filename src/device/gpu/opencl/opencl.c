/* The OpenCL side of api.h: sessions, and the order of their commands. One queue computes; another one
 * copies concurrently, after marks of the first.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "device/gpu/opencl/internal.h"

#include <stdio.h>
#include <string.h>

#define cl opencl_library

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

/* Called by drivers, from any thread, when an error occurs. */
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
    opencl_release_pinned(session);
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
    struct gpu_signals signals;
    gpu_keep_signals(&signals);
    int32_t error;
    session->context = cl.clCreateContext(NULL, 1, &found.device, notice, session, &error);
    if (session->context)
        session->queue = cl.clCreateCommandQueue(session->context, found.device, session->properties, &error);
    gpu_restore_signals(&signals);
    opencl_find_lists(found.platform, session);
    if (!session->queue) {
        tr_status status = opencl_failed(session, "when it was opened", error);
        opencl_close(session);
        return status;
    }
    *out = session;
    return TR_OK;
}

int32_t opencl_mark(cl_queue queue, const cl_event *before, cl_event *event)
{
    int32_t error = cl.clEnqueueMarkerWithWaitList(queue, before ? 1 : 0, before, event);
    if (error != CL_SUCCESS) return error;
    error = cl.clFlush(queue);
    if (error != CL_SUCCESS) cl.clReleaseEvent(*event);
    return error;
}

static tr_status opencl_wait(void *session_)
{
    struct opencl_session *session = session_;
    int32_t error = cl.clFinish(session->queue);
    if (error == CL_SUCCESS && session->copies) error = cl.clFinish(session->copies);
    return opencl_failed(session, "computing", error);
}

/* With copies beside the queue, after them too: recording in their queue waits for both. */
static tr_status opencl_record(void *session_, void **out)
{
    struct opencl_session *session = session_;
    cl_event event;
    int32_t error = opencl_mark(session->queue, NULL, &event);
    if (error == CL_SUCCESS && session->copies) {
        cl_event before = event;
        error = opencl_mark(session->copies, &before, &event);
        cl.clReleaseEvent(before);
    }
    if (error == CL_SUCCESS) *out = event;
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

/* A mark was flushed when it was made. */
static tr_status opencl_wait_for(void *session, void *event)
{
    bool reached;
    cl_event mark = event;
    int32_t error = cl.clWaitForEvents(1, &mark);
    TR_TRY(opencl_reached(session, event, &reached)); /* which gives the reason */
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
    .exact = OPENCL_STRICT,
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
