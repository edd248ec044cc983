#include "train/observe/trace.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Tags of messages; no other code uses them between steps. */
#define TAG_CLOCK (TR_COMM_TAG_MOST - 1)
#define TAG_TRACE (TR_COMM_TAG_MOST - 2)
#define PINGS     16
/* Events are sent in pieces, so that the root needs no memory for those of others. */
#define PIECE (64 << 10)

/* ---- clocks ---- */

/* Whether a message is on its way. The others wait for one that cannot be begun: they are told, and no rank
   goes on. */
static tr_status begun(tr_comm *comm, tr_status status)
{
    struct tr_failure how;
    if (status == TR_OK || status == TR_EPEER) return status;
    tr_failure_keep(&how, TR_EPEER);
    tr_comm_abort(comm, tr_error_message());
    return tr_failure_restore(&how);
}

static tr_status send(tr_comm *comm, int to, int tag, const void *data, size_t bytes, const char *name)
{
    tr_ticket *ticket = NULL;
    TR_TRY(begun(comm, tr_comm_send(comm, to, tag, data, bytes, name, &ticket)));
    return tr_comm_wait(comm, &ticket);
}

static tr_status receive(tr_comm *comm, int from, int tag, void *data, size_t bytes, const char *name)
{
    tr_ticket *ticket = NULL;
    TR_TRY(begun(comm, tr_comm_receive(comm, from, tag, data, bytes, name, &ticket)));
    return tr_comm_wait(comm, &ticket);
}

/* The root's side: answers with its own time. */
static tr_status answer(tr_comm *comm, int rank)
{
    for (int i = 0; i < PINGS; i++) {
        int64_t now;
        TR_TRY(receive(comm, rank, TAG_CLOCK, &now, sizeof now, "clock"));
        now = tr_timeline_clock();
        TR_TRY(send(comm, rank, TAG_CLOCK, &now, sizeof now, "clock"));
    }
    return TR_OK;
}

/* The quickest answer is the least disturbed one; it was given about half-way (Cristian 1989). */
static tr_status ask(tr_comm *comm, int64_t *at, int64_t *ahead)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < PINGS; i++) {
        int64_t before = tr_timeline_clock(), root;
        TR_TRY(send(comm, 0, TAG_CLOCK, &before, sizeof before, "clock"));
        TR_TRY(receive(comm, 0, TAG_CLOCK, &root, sizeof root, "clock"));
        int64_t took = tr_timeline_clock() - before;
        if (took >= best) continue;
        best = took;
        *at = before + took / 2;
        *ahead = *at - root;
    }
    return TR_OK;
}

tr_status tr_trace_compare_clocks(tr_comm *comm, int moment, struct tr_trace_clock *clock)
{
    clock->at[moment] = tr_timeline_clock();
    clock->ahead[moment] = 0;
    if (!comm) return TR_OK;
    int rank = tr_comm_rank(comm), host = tr_comm_host_of(comm, 0);
    if (rank > 0)
        return tr_comm_host_of(comm, rank) == host ? TR_OK
                                                   : ask(comm, &clock->at[moment], &clock->ahead[moment]);
    for (int r = 1; r < tr_comm_size(comm); r++)
        if (tr_comm_host_of(comm, r) != host) TR_TRY(answer(comm, r));
    return TR_OK;
}

/* A moment of this rank in the root's time. */
static int64_t root_time(const struct tr_trace_clock *clock, int64_t time)
{
    double span = (double)(clock->at[1] - clock->at[0]), ahead = (double)clock->ahead[0];
    if (span > 0) {
        double share = (double)(time - clock->at[0]) / span;
        ahead += share * (double)(clock->ahead[1] - clock->ahead[0]);
    }
    return time - (int64_t)ahead;
}

/* ---- events ---- */

static void add_name(struct tr_text *text, int rank, int lane, const char *what, const char *name)
{
    tr_text_addf(text, "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"args\":{\"name\":", rank, lane,
                 what);
    tr_text_add_quoted(text, name);
    tr_text_add(text, "}},\n");
}

static void add_span(struct tr_text *text, int rank, int index, tr_lane *lane, const struct tr_span *span,
                     const struct tr_trace_clock *clock)
{
    int64_t begin = root_time(clock, span->begin), end = root_time(clock, span->end);
    tr_text_addf(text,
                 "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%" PRId64 ".%03d,\"dur\":%" PRId64
                 ".%03d,\"cat\":\"%s\",\"name\":",
                 rank, index, begin / 1000, (int)(begin % 1000), (end - begin) / 1000,
                 (int)((end - begin) % 1000), tr_activity_names[span->activity]);
    tr_text_add_quoted(text, tr_lane_text(lane, span->name));
    tr_text_addf(text, ",\"args\":{\"step\":%" PRId64, span->step + 1);
    if (span->about >= 0) tr_text_addf(text, ",\"for rank\":%d", span->about);
    tr_text_add(text, "}},\n");
}

static void add_lane(struct tr_text *text, int rank, int index, tr_lane *lane,
                     const struct tr_trace_clock *clock)
{
    int64_t count;
    const struct tr_span *spans = tr_lane_spans(lane, &count);
    char name[96];
    int64_t dropped = tr_lane_dropped(lane);
    snprintf(name, sizeof name, dropped ? "%s (%" PRId64 " later spans left out)" : "%s", tr_lane_name(lane),
             dropped);
    add_name(text, rank, index, "thread_name", name);
    for (int64_t i = 0; i < count; i++) add_span(text, rank, index, lane, &spans[i], clock);
}

/* This rank's events, each with a comma and a line's end after it. */
static tr_status make_events(tr_timeline *timeline, const struct tr_trace_clock *clock, tr_comm *comm,
                             char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    int rank = comm ? tr_comm_rank(comm) : 0;
    char name[128] = "rank 0";
    if (comm) snprintf(name, sizeof name, "rank %d on %s", rank, tr_comm_host(comm, rank));
    add_name(&text, rank, 0, "process_name", name);
    for (int i = 0; i < tr_timeline_lanes(timeline); i++)
        add_lane(&text, rank, i, tr_timeline_lane(timeline, i), clock);
    tr_status status = tr_text_finish(&text, out);
    tr_text_release(&text);
    return status;
}

/* ---- the file ---- */

static tr_status write_text(struct tr_file_replacement *file, const char *text)
{
    return tr_file_write(&file->writer, text, strlen(text));
}

/* Receives all that a rank sends, even after a failure: `*written` is the status of the file. */
static tr_status write_of_rank(struct tr_file_replacement *file, tr_comm *comm, int rank, tr_status *written)
{
    int64_t left;
    char piece[PIECE];
    TR_TRY(receive(comm, rank, TAG_TRACE, &left, sizeof left, "trace"));
    if (left < 0 && *written == TR_OK)
        *written = tr_fail(TR_ENOMEM, "rank %d has no memory for its part of the trace", rank);
    while (left > 0) {
        size_t size = left < PIECE ? (size_t)left : PIECE;
        TR_TRY(receive(comm, rank, TAG_TRACE, piece, size, "trace"));
        if (*written == TR_OK) *written = tr_file_write(&file->writer, piece, size);
        left -= (int64_t)size;
    }
    return TR_OK;
}

/* The list ends with an event that has no comma after it. */
static const char head[] = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
static const char tail[] = "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"process_sort_index\",\"args\":"
                           "{\"sort_index\":0}}\n]}\n";

/* Failures of the file are in *written; the other ranks' messages are received nevertheless. */
static tr_status write_file(const char *events, tr_comm *comm, const char *path, tr_status *written)
{
    struct tr_file_replacement file;
    *written = events ? tr_file_replace_begin(NULL, path, 0, &file) : TR_ENOMEM;
    bool begun = *written == TR_OK;
    if (*written == TR_OK) *written = write_text(&file, head);
    if (*written == TR_OK) *written = write_text(&file, events);
    tr_status status = TR_OK;
    for (int r = 1; comm && status == TR_OK && r < tr_comm_size(comm); r++)
        status = write_of_rank(&file, comm, r, written);
    if (*written == TR_OK) *written = write_text(&file, tail);
    if (status == TR_OK && *written == TR_OK)
        *written = tr_file_replace_finish(&file);
    else if (begun)
        tr_file_replace_abandon(&file);
    return status;
}

static tr_status send_events(const char *events, tr_comm *comm)
{
    int64_t left = events ? (int64_t)strlen(events) : -1;
    TR_TRY(send(comm, 0, TAG_TRACE, &left, sizeof left, "trace"));
    while (left > 0) {
        size_t size = left < PIECE ? (size_t)left : PIECE;
        TR_TRY(send(comm, 0, TAG_TRACE, events, size, "trace"));
        events += size;
        left -= (int64_t)size;
    }
    return TR_OK;
}

/* The root's part, and its result for the others. */
static tr_status gather(const char *events, tr_comm *comm, const char *path, bool *whole)
{
    tr_status written;
    struct tr_failure failure;
    TR_TRY(write_file(events, comm, path, &written));
    tr_failure_keep(&failure, written);
    int32_t verdict = written == TR_OK;
    for (int r = 1; comm && r < tr_comm_size(comm); r++)
        TR_TRY(send(comm, r, TAG_TRACE, &verdict, sizeof verdict, "trace"));
    *whole = verdict;
    return tr_failure_restore(&failure);
}

static tr_status contribute(const char *events, tr_comm *comm, bool *whole)
{
    int32_t verdict;
    TR_TRY(send_events(events, comm));
    TR_TRY(receive(comm, 0, TAG_TRACE, &verdict, sizeof verdict, "trace"));
    *whole = verdict;
    return TR_OK;
}

tr_status tr_trace_write(tr_timeline *timeline, const struct tr_trace_clock *clock, tr_comm *comm,
                         const char *path, bool *whole)
{
    char *events = NULL;
    *whole = false;
    if (make_events(timeline, clock, comm, &events) != TR_OK) events = NULL; /* the others are told */
    tr_status status =
        comm && tr_comm_rank(comm) > 0 ? contribute(events, comm, whole) : gather(events, comm, path, whole);
    tr_free(events);
    return status;
}

tr_status tr_trace_write_own(tr_timeline *timeline, const struct tr_trace_clock *clock, tr_comm *comm,
                             const char *path)
{
    char *events;
    tr_status written;
    if (comm && tr_comm_rank(comm) > 0) return TR_OK;
    TR_TRY(make_events(timeline, clock, comm, &events));
    write_file(events, NULL, path, &written);
    tr_free(events);
    return written;
}
