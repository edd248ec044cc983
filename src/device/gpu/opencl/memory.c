/* Memory of the device and of the host, and copies between them. */
#include "base/alloc.h"
#include "base/fail.h"
#include "device/gpu/opencl/internal.h"

#define cl opencl_library

struct opencl_pinned {
    void *memory;
    cl_memory buffer;
    struct opencl_pinned *next;
};

tr_status opencl_alloc(void *session_, size_t bytes, void **block)
{
    struct opencl_session *session = session_;
    int32_t error;
    *block = cl.clCreateBuffer(session->context, CL_MEM_READ_WRITE, bytes, NULL, &error);
    return *block ? TR_OK : opencl_failed(session, "making room for data", error);
}

void opencl_free(void *session, void *block)
{
    (void)session;
    cl.clReleaseMemObject(block);
}

tr_status opencl_to_device(void *session_, void *block, size_t at, const void *from, size_t bytes,
                           void **event)
{
    struct opencl_session *session = session_;
    return opencl_failed(
        session, "copying to it",
        cl.clEnqueueWriteBuffer(session->queue, block, 0, at, bytes, from, 0, NULL, (cl_event *)event));
}

tr_status opencl_to_host(void *session_, void *to, void *block, size_t at, size_t bytes, void **event)
{
    struct opencl_session *session = session_;
    return opencl_failed(
        session, "copying from it",
        cl.clEnqueueReadBuffer(session->queue, block, 0, at, bytes, to, 0, NULL, (cl_event *)event));
}

static int32_t need_copies(struct opencl_session *session)
{
    int32_t error = CL_SUCCESS;
    struct gpu_signals signals;
    if (session->copies) return error;
    gpu_keep_signals(&signals);
    session->copies = cl.clCreateCommandQueue(session->context, session->device, session->properties, &error);
    gpu_restore_signals(&signals);
    return error;
}

tr_status opencl_to_host_beside(void *session_, void *to, void *block, size_t at, size_t bytes, void **event)
{
    struct opencl_session *session = session_;
    cl_event before;
    int32_t error = need_copies(session);
    if (error == CL_SUCCESS) error = opencl_mark(session->queue, NULL, &before);
    if (error != CL_SUCCESS) return opencl_failed(session, "copying from it", error);
    error = cl.clEnqueueReadBuffer(session->copies, block, 0, at, bytes, to, 1, &before, (cl_event *)event);
    cl.clReleaseEvent(before);
    if (error == CL_SUCCESS) {
        error = cl.clFlush(session->copies);
        if (error != CL_SUCCESS && event) cl.clReleaseEvent(*event);
    }
    return opencl_failed(session, "copying from it", error);
}

tr_status opencl_alloc_pinned(void *session_, size_t bytes, void **memory)
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

static void release_pinned(struct opencl_session *session, struct opencl_pinned *pinned)
{
    cl.clEnqueueUnmapMemObject(session->queue, pinned->buffer, pinned->memory, 0, NULL, NULL);
    cl.clFinish(session->queue);
    cl.clReleaseMemObject(pinned->buffer);
    tr_free(pinned);
}

void opencl_release_pinned(struct opencl_session *session)
{
    while (session->pinned) {
        struct opencl_pinned *pinned = session->pinned;
        session->pinned = pinned->next;
        release_pinned(session, pinned);
    }
}

void opencl_free_pinned(void *session_, void *memory)
{
    struct opencl_session *session = session_;
    struct opencl_pinned **at = &session->pinned;
    while (*at && (*at)->memory != memory) at = &(*at)->next;
    struct opencl_pinned *pinned = *at;
    if (!pinned) return;
    *at = pinned->next;
    release_pinned(session, pinned);
}
