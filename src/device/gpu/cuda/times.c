/* Times at which commands began and ended.
 *
 * CUDA events give only the time between two of them, as a float of milliseconds. So the session notes
 * moments at which the host's time is known: it marks the device's queue while that is empty, so that the
 * device reaches the mark at once. Times are the host's time of the last such moment plus the difference
 * to it. Floats hold microseconds up to about ten seconds, so a moment is renewed after a second if the
 * device is idle.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/timeline.h"
#include "device/gpu/cuda/internal.h"

#define cu cuda_library

#define MOMENT_LASTS INT64_C(1000000000)

void cuda_release_moment(struct cuda_moment *moment)
{
    if (!moment || --moment->users > 0) return;
    if (moment->event) cu.cuEventDestroy_v2(moment->event);
    tr_free(moment);
}

static cu_result make_moment(struct cuda_session *session)
{
    struct cuda_moment *moment = tr_alloc_zero(1, sizeof *moment);
    if (!moment) return CUDA_ERROR_OUT_OF_MEMORY;
    moment->users = 1;
    cu_result error = cu.cuEventCreate(&moment->event, CU_EVENT_DEFAULT);
    if (error != CUDA_SUCCESS) {
        tr_free(moment);
        return error;
    }
    error = cu.cuStreamSynchronize(session->queue);
    int64_t before = tr_timeline_clock();
    if (error == CUDA_SUCCESS) error = cu.cuEventRecord(moment->event, session->queue);
    if (error == CUDA_SUCCESS) error = cu.cuEventSynchronize(moment->event);
    moment->host = before + (tr_timeline_clock() - before) / 2;
    if (error != CUDA_SUCCESS) {
        cuda_release_moment(moment);
        return error;
    }
    cuda_release_moment(session->moment);
    session->moment = moment;
    return CUDA_SUCCESS;
}

static cu_result make_events(struct cuda_session *session, cu_stream stream, struct cuda_event *event)
{
    cu_result error = cu.cuEventCreate(&event->begin, CU_EVENT_DEFAULT);
    if (error != CUDA_SUCCESS) {
        event->begin = NULL;
        return error;
    }
    error = cu.cuEventCreate(&event->end, CU_EVENT_DEFAULT);
    if (error != CUDA_SUCCESS) {
        event->end = NULL;
        return error;
    }
    event->by = session->moment;
    session->moment->users++;
    event->queued = tr_timeline_clock();
    return cu.cuEventRecord(event->begin, stream);
}

cu_result cuda_times_begin(struct cuda_session *session, cu_stream stream, struct cuda_event **event)
{
    bool rests = session->rests;
    session->rests = false;
    if (!event) return CUDA_SUCCESS;
    *event = NULL;
    if (!session->moment || (rests && tr_timeline_clock() - session->moment->host > MOMENT_LASTS)) {
        cu_result error = make_moment(session);
        if (error != CUDA_SUCCESS) return error;
    }
    struct cuda_event *fresh = tr_alloc_zero(1, sizeof *fresh);
    if (!fresh) return CUDA_ERROR_OUT_OF_MEMORY;
    cu_result error = make_events(session, stream, fresh);
    if (error != CUDA_SUCCESS)
        cuda_release_event(fresh);
    else
        *event = fresh;
    return error;
}

cu_result cuda_times_end(cu_stream stream, struct cuda_event *event)
{
    return event ? cu.cuEventRecord(event->end, stream) : CUDA_SUCCESS;
}

void cuda_release_event(struct cuda_event *event)
{
    if (!event) return;
    if (event->begin) cu.cuEventDestroy_v2(event->begin);
    if (event->end) cu.cuEventDestroy_v2(event->end);
    cuda_release_moment(event->by);
    tr_free(event);
}

tr_status cuda_times(void *session_, void *event_, struct gpu_times *out)
{
    const struct cuda_session *session = session_;
    const struct cuda_event *event = event_;
    float begin = 0, end = 0;
    cu_result error = cuda_enter(session);
    if (error == CUDA_SUCCESS) {
        error = cu.cuEventElapsedTime(&begin, event->by->event, event->begin);
        if (error == CUDA_SUCCESS) error = cu.cuEventElapsedTime(&end, event->by->event, event->end);
        cuda_leave();
    }
    *out = (struct gpu_times){.queued = event->queued,
                              .begin = event->by->host + (int64_t)((double)begin * 1e6),
                              .end = event->by->host + (int64_t)((double)end * 1e6)};
    return cuda_failed(session, "telling times", error);
}
