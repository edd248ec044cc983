/* The CUDA side of api.h: sessions, and the order of their commands. One stream computes; another one
 * copies concurrently, after marks of the first.
 *
 * Invariant: each function leaves the thread's current context as it found it.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "device/gpu/cuda/internal.h"

#include <stdio.h>

#define cu cuda_library

tr_status cuda_failed(const struct cuda_session *session, const char *what, cu_result error)
{
    char text[CUDA_MESSAGE_SIZE];
    if (error == CUDA_SUCCESS) return TR_OK;
    cuda_error_text(error, text, sizeof text);
    if (error == CUDA_ERROR_OUT_OF_MEMORY)
        return tr_fail(TR_ENOMEM,
                       "%s: out of memory %s (%s); fewer examples at a time (train.pass) need less",
                       session->name, what, text);
    return tr_fail(TR_EPEER,
                   "%s: the device failed %s (%s) and is lost to this run; go on from the last checkpoint",
                   session->name, what, text);
}

cu_result cuda_enter(const struct cuda_session *session)
{
    return cu.cuCtxPushCurrent_v2(session->context);
}

void cuda_leave(void)
{
    cu_context context;
    (void)cu.cuCtxPopCurrent_v2(&context);
}

/* ---- sessions ---- */

static void close_streams(struct cuda_session *session)
{
    if (session->queue) cu.cuStreamSynchronize(session->queue);
    if (session->copies) {
        cu.cuStreamSynchronize(session->copies);
        cu.cuStreamDestroy_v2(session->copies);
    }
    cuda_release_moment(session->moment);
    cuda_release_memory(session);
    if (session->queue) cu.cuStreamDestroy_v2(session->queue);
}

static void cuda_close(void *session_)
{
    struct cuda_session *session = session_;
    if (session->context) {
        bool entered = cuda_enter(session) == CUDA_SUCCESS;
        close_streams(session);
        if (entered) cuda_leave();
        cu.cuDevicePrimaryCtxRelease_v2(session->device);
    }
    tr_free(session->staged);
    tr_free(session);
}

static cu_result open_session(struct cuda_session *session)
{
    cu_result error = cu.cuDevicePrimaryCtxRetain(&session->context, session->device);
    if (error != CUDA_SUCCESS) {
        session->context = NULL;
        return error;
    }
    error = cuda_enter(session);
    if (error != CUDA_SUCCESS) return error;
    error = cu.cuStreamCreate(&session->queue, CU_STREAM_NON_BLOCKING);
    if (error != CUDA_SUCCESS)
        session->queue = NULL;
    else
        error = cuda_prepare_memory(session);
    cuda_leave();
    return error;
}

static tr_status cuda_open(int number, bool timed, void **out)
{
    cu_device device;
    TR_TRY(cuda_find(number, &device));
    struct cuda_session *session = tr_alloc_zero(1, sizeof *session);
    if (!session) return TR_ENOMEM;
    session->device = device;
    session->timed = timed;
    session->rests = true;
    session->arch = cuda_arch_of(device, &session->own_arch);
    if (cu.cuDeviceGetName(session->name, sizeof session->name, device) != CUDA_SUCCESS)
        snprintf(session->name, sizeof session->name, "CUDA device %d", number);
    session->name[sizeof session->name - 1] = '\0';
    struct gpu_signals signals;
    gpu_keep_signals(&signals);
    cu_result error = open_session(session);
    gpu_restore_signals(&signals);
    if (error != CUDA_SUCCESS) {
        tr_status status = cuda_failed(session, "when it was opened", error);
        cuda_close(session);
        return status;
    }
    *out = session;
    return TR_OK;
}

/* ---- order ---- */

cu_result cuda_order(cu_stream earlier, cu_stream later)
{
    cu_event mark;
    cu_result error = cu.cuEventCreate(&mark, CU_EVENT_DISABLE_TIMING);
    if (error != CUDA_SUCCESS) return error;
    error = cu.cuEventRecord(mark, earlier);
    if (error == CUDA_SUCCESS) error = cu.cuStreamWaitEvent(later, mark, 0);
    cu.cuEventDestroy_v2(mark); /* CUDA frees it once it is reached */
    return error;
}

static tr_status cuda_wait(void *session_)
{
    struct cuda_session *session = session_;
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = cu.cuStreamSynchronize(session->queue);
        cu_result beside = session->copies ? cu.cuStreamSynchronize(session->copies) : CUDA_SUCCESS;
        if (error == CUDA_SUCCESS) error = beside;
        cuda_leave();
    }
    session->rests = error == CUDA_SUCCESS;
    if (error == CUDA_SUCCESS)
        cuda_deliver(session, session->staged_number);
    else
        cuda_drop_staged(session);
    return cuda_failed(session, "computing", error);
}

/* With copies beside the stream, after them too: recording in their stream waits for both. */
static cu_result record(struct cuda_session *session, struct cuda_event *event)
{
    cu_result error = cu.cuEventCreate(&event->end, CU_EVENT_DISABLE_TIMING);
    if (error != CUDA_SUCCESS) {
        event->end = NULL;
        return error;
    }
    if (!session->copies) return cu.cuEventRecord(event->end, session->queue);
    error = cuda_order(session->queue, session->copies);
    return error == CUDA_SUCCESS ? cu.cuEventRecord(event->end, session->copies) : error;
}

static tr_status cuda_record(void *session_, void **out)
{
    struct cuda_session *session = session_;
    struct cuda_event *event = tr_alloc_zero(1, sizeof *event);
    if (!event) return TR_ENOMEM;
    event->staged = session->staged_number;
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = record(session, event);
        if (error != CUDA_SUCCESS) cuda_release_event(event);
        cuda_leave();
    } else {
        tr_free(event);
    }
    if (error == CUDA_SUCCESS) *out = event;
    return cuda_failed(session, "marking a moment", error);
}

static tr_status cuda_reached(void *session_, void *event_, bool *out)
{
    struct cuda_session *session = session_;
    const struct cuda_event *event = event_;
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = cu.cuEventQuery(event->end);
        cuda_leave();
    }
    *out = error == CUDA_SUCCESS;
    if (*out) cuda_deliver(session, event->staged);
    return error == CUDA_ERROR_NOT_READY ? TR_OK : cuda_failed(session, "computing", error);
}

static tr_status cuda_wait_for(void *session_, void *event_)
{
    struct cuda_session *session = session_;
    const struct cuda_event *event = event_;
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = cu.cuEventSynchronize(event->end);
        cuda_leave();
    }
    if (error == CUDA_SUCCESS) cuda_deliver(session, event->staged);
    return cuda_failed(session, "computing", error);
}

static void cuda_free_event(void *session, void *event)
{
    bool entered = cuda_enter(session) == CUDA_SUCCESS;
    cuda_release_event(event);
    if (entered) cuda_leave();
}

const struct gpu_api gpu_api_cuda = {
    .name = "cuda",
    .version = GPU_API_VERSION,
    .exact = CUDA_STRICT,
    .describe = cuda_describe,
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .to_device = cuda_to_device,
    .to_host = cuda_to_host,
    .to_host_beside = cuda_to_host_beside,
    .alloc_pinned = cuda_alloc_pinned,
    .free_pinned = cuda_free_pinned,
    .build = cuda_build,
    .free_program = cuda_free_program,
    .binary = cuda_binary,
    .kernel = cuda_kernel,
    .free_kernel = cuda_free_kernel,
    .launch = cuda_launch,
    .build_list = cuda_build_list,
    .launch_list = cuda_launch_list,
    .change_list = cuda_change_list,
    .free_list = cuda_free_list,
    .wait = cuda_wait,
    .record = cuda_record,
    .reached = cuda_reached,
    .wait_for = cuda_wait_for,
    .free_event = cuda_free_event,
    .times = cuda_times,
};
