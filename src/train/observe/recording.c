#include "train/observe/recording.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"

#include <string.h>

/* Single spans of a lane: about 40 MiB. */
#define SPANS_MOST 1000000

/* A path that cannot be written should be noticed before the run rather than after it. */
static tr_status take_path(struct tr_recording *recording, const char *path)
{
    recording->path = tr_strdup(path);
    char *parent = tr_path_parent(path);
    tr_status status = TR_OK;
    if (!recording->path || !parent)
        status = TR_ENOMEM;
    else if (!tr_file_is_directory(parent))
        status = tr_fail(TR_ENOTFOUND,
                         "the trace cannot be written to \"%s\": there is no directory \"%s\"; create it, or "
                         "choose another path",
                         path, parent);
    tr_free(parent);
    return status;
}

tr_status tr_recording_begin(struct tr_recording *recording, const struct tr_train_settings *settings)
{
    if (!settings->trace && !settings->profile) return TR_OK;
    struct tr_timeline_settings keep = {.spans = SPANS_MOST, .sums = settings->profile};
    if (settings->trace) {
        if (settings->trace_first < 0 || settings->trace_steps < 1)
            return tr_fail(TR_EINVAL, "a trace of %lld steps after step %lld; give 1 or more after 0 or more",
                           (long long)settings->trace_steps, (long long)settings->trace_first);
        keep.first_step = settings->trace_first;
        if (__builtin_add_overflow(settings->trace_first, settings->trace_steps, &keep.end_step))
            keep.end_step = INT64_MAX;
        TR_TRY(take_path(recording, settings->trace));
    }
    recording->profiles = settings->profile;
    return tr_timeline_create(&keep, &recording->timeline);
}

tr_status tr_recording_connect(struct tr_recording *recording, tr_comm *comm, int64_t step)
{
    if (comm)
        TR_TRY(tr_comm_agree(comm, "recording",
                             !recording->timeline ? "nothing"
                             : recording->path    ? "a trace"
                                                  : "a profile",
                             "start all ranks with equal options"));
    if (!recording->path) return TR_OK;
    tr_timeline_from(recording->timeline, step);
    return tr_trace_compare_clocks(comm, 0, &recording->clock);
}

void tr_recording_enter(struct tr_recording *recording)
{
    tr_timeline_enter(recording->timeline, TR_PROFILE_LANE);
}

void tr_recording_leave(struct tr_recording *recording)
{
    if (recording->timeline) tr_timeline_leave();
}

static tr_status write_trace(struct tr_recording *recording, tr_comm *comm, bool alone)
{
    struct tr_trace_clock *clock = &recording->clock;
    clock->at[1] = clock->at[0];
    if (alone) return tr_trace_write_own(recording->timeline, clock, comm, recording->path);
    TR_TRY(tr_trace_compare_clocks(comm, 1, clock));
    return tr_trace_write(recording->timeline, clock, comm, recording->path, &recording->written);
}

tr_status tr_recording_step(struct tr_recording *recording, int64_t step, tr_comm *comm, bool alone)
{
    if (!recording->path || recording->closed || step < tr_timeline_end_step(recording->timeline))
        return TR_OK;
    recording->closed = true;
    tr_timeline_close(recording->timeline);
    return write_trace(recording, comm, alone);
}

tr_status tr_recording_end(struct tr_recording *recording, const struct tr_model *model, tr_device *device,
                           tr_comm *comm, bool alone)
{
    if (!recording->timeline || recording->ended) return TR_OK;
    recording->ended = true;
    tr_timeline_freeze(recording->timeline);
    if (recording->path && !recording->written) TR_TRY(write_trace(recording, comm, alone));
    if (!recording->profiles) return TR_OK;
    return tr_profile_make(recording->timeline, model, device, alone ? NULL : comm, &recording->profile);
}

void tr_recording_release(struct tr_recording *recording)
{
    tr_profile_release(&recording->profile);
    tr_timeline_destroy(&recording->timeline);
    tr_free(recording->path);
    recording->path = NULL;
}
