/* How long the device takes for its commands: events with times of its own clock, turned into spans of a
 * timeline when all is complete, so that recording does not make anything wait.
 *
 * The clocks: the device notes when a command was enqueued, and the host reads its own clock before and
 * after. So each event bounds the difference between the clocks, and the narrowest bounds are precise
 * enough to draw both in one picture.
 */
#include "device/gpu/internal.h"

#include "base/alloc.h"

void **gpu_times_begin(struct gpu *gpu)
{
    struct tr_span_here what;
    if (!gpu->base.timed || !tr_span_here(&what)) return NULL;
    if (!tr_grow(&gpu->timed, gpu->timed_count, sizeof *gpu->timed)) return NULL; /* is not recorded */
    struct gpu_timed *timed = &gpu->timed[gpu->timed_count];
    *timed = (struct gpu_timed){.what = what, .before = tr_timeline_clock()};
    return &timed->event;
}

tr_status gpu_times_end(struct gpu *gpu, tr_status status)
{
    struct gpu_timed *timed = &gpu->timed[gpu->timed_count];
    if (status != TR_OK) return status;
    timed->after = tr_timeline_clock();
    gpu->timed_count++;
    return TR_OK;
}

/* When one clock is slower, the bounds eventually contradict each other: then they begin anew. */
static void compare_clocks(struct gpu *gpu, const struct gpu_timed *timed, const struct gpu_times *times)
{
    int64_t least = times->queued - timed->after, most = times->queued - timed->before;
    if (least > gpu->ahead_least) gpu->ahead_least = least;
    if (most < gpu->ahead_most) gpu->ahead_most = most;
    if (gpu->ahead_least <= gpu->ahead_most) return;
    gpu->ahead_least = least;
    gpu->ahead_most = most;
}

static void forget(struct gpu *gpu)
{
    for (int i = 0; i < gpu->timed_count; i++) gpu->api->free_event(gpu->session, gpu->timed[i].event);
    gpu->timed_count = 0;
}

tr_status gpu_times_take(struct gpu *gpu)
{
    tr_status status = TR_OK;
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < gpu->timed_count && status == TR_OK; i++) {
            const struct gpu_timed *timed = &gpu->timed[i];
            struct gpu_times times;
            status = gpu->api->times(gpu->session, timed->event, &times);
            if (status != TR_OK) break;
            if (turn == 0) {
                compare_clocks(gpu, timed, &times);
                continue;
            }
            int64_t ahead = gpu->ahead_least + (gpu->ahead_most - gpu->ahead_least) / 2;
            tr_timeline_add(&timed->what, gpu->base.name, times.begin - ahead, times.end - ahead);
        }
    forget(gpu);
    return status;
}

void gpu_times_release(struct gpu *gpu)
{
    forget(gpu);
    tr_free(gpu->timed);
}
