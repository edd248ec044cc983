/* Timelines: which thread did what, and when.
 *
 * A timeline belongs to one rank and has a lane for each thread that entered it. While a thread is in a
 * lane, pairs of tr_span_begin() and tr_span_end() record spans, which nest; in a thread without a lane a
 * span costs one branch. Every lane keeps as many single spans as its timeline allows and, where wanted,
 * sums by activity and name. In a lane that currently records nothing a span costs a call.
 *
 * Invariants: only its thread writes a lane; its single spans are read after its timeline is closed, its
 * sums after it is frozen. A span's own time is the part that its children do not cover, so that own times
 * add up to the time in the lane.
 */
#ifndef TR_BASE_TIMELINE_H
#define TR_BASE_TIMELINE_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tr_activity {
    TR_ACTIVITY_STEP,
    TR_ACTIVITY_INPUT,
    TR_ACTIVITY_FORWARD,
    TR_ACTIVITY_BACKWARD,
    TR_ACTIVITY_COMMUNICATION,
    TR_ACTIVITY_WAITING,
    TR_ACTIVITY_UPDATE,
    /* Everything within these is part of them. */
    TR_ACTIVITY_EVALUATION,
    TR_ACTIVITY_CHECKPOINT,
    TR_ACTIVITIES
};
/* "step", "input", ... */
extern const char *const tr_activity_names[TR_ACTIVITIES];

struct tr_span {
    int64_t begin, end; /* nanoseconds of tr_timeline_clock() */
    int32_t name;       /* of the lane's names */
    int32_t about;      /* the rank that it waited for, or -1 */
    int64_t step;       /* step in which it was recorded */
    enum tr_activity activity;
};

/* The sum over spans of one activity, name and rank waited for. */
struct tr_span_total {
    enum tr_activity activity;
    int32_t name, about;
    int64_t count;
    int64_t whole, own; /* nanoseconds, with and without nested spans */
    double work;        /* sum of tr_span_work(), and the largest number of bytes */
    int64_t bytes;
};

typedef struct tr_timeline tr_timeline;
typedef struct tr_lane tr_lane;

#define TR_TIMELINE_DEPTH 32

struct tr_timeline_settings {
    int64_t spans;                /* single spans to keep per lane; later ones count only in the sums */
    int64_t first_step, end_step; /* keep single spans of steps [first_step, end_step) only */
    bool sums;                    /* add up spans, of all steps */
};

/* Returned, destroy with tr_timeline_destroy(). */
tr_status tr_timeline_create(const struct tr_timeline_settings *settings, tr_timeline **out);
/* Accepts NULL, nulls the handle. No thread may be in a lane. */
void tr_timeline_destroy(tr_timeline **timeline);

/* Moves the calling thread into the lane of this name, which is created if needed; does nothing for NULL.
   A thread is in one lane at a time. Without memory for a lane the thread is not recorded. `name` is
   borrowed for the call. */
void tr_timeline_enter(tr_timeline *timeline, const char *name);
/* Ends all open spans and leaves the lane. */
void tr_timeline_leave(void);
/* The step that the calling thread's next spans belong to. */
void tr_timeline_step(int64_t step);
/* The timeline of the calling thread's lane, or NULL: to pass it to another thread. */
tr_timeline *tr_timeline_current(void);
/* Nanoseconds since some moment in the past. */
int64_t tr_timeline_clock(void);

/* ---- recording ---- */

extern _Thread_local tr_lane *tr_lane_current;
/* The slow parts of the functions below. */
void tr_lane_begin(tr_lane *lane, enum tr_activity activity, const char *name);
void tr_lane_end(tr_lane *lane, int about);
void tr_lane_work(tr_lane *lane, double operations, int64_t bytes);

/* `name` is borrowed for the call. */
static inline void tr_span_begin(enum tr_activity activity, const char *name)
{
    if (__builtin_expect(tr_lane_current != NULL, 0)) tr_lane_begin(tr_lane_current, activity, name);
}

/* Ends the innermost open span. */
static inline void tr_span_end(void)
{
    if (__builtin_expect(tr_lane_current != NULL, 0)) tr_lane_end(tr_lane_current, -1);
}

/* The same, naming the rank that was waited for (-1: none). */
static inline void tr_span_end_about(int rank)
{
    if (__builtin_expect(tr_lane_current != NULL, 0)) tr_lane_end(tr_lane_current, rank);
}

/* Notes how many operations the innermost open span computes and how many bytes it writes. */
static inline void tr_span_work(double operations, int64_t bytes)
{
    if (__builtin_expect(tr_lane_current != NULL, 0)) tr_lane_work(tr_lane_current, operations, bytes);
}

/* The innermost open span of a thread. */
struct tr_span_here {
    tr_timeline *timeline;
    enum tr_activity activity;
    const char *name; /* as long as the timeline */
    int64_t step;
};
/* That of the calling thread; false where nothing is recorded. For code that learns later how long the
   thread's request took. */
bool tr_span_here(struct tr_span_here *out);
/* Records a span of another device, not of a thread, in the lane of this name, which no thread enters. Any
   thread. */
void tr_timeline_add(const struct tr_span_here *what, const char *lane, int64_t begin, int64_t end);

/* ---- reading ---- */

/* The first step: where single spans would be kept from an earlier step on, as many steps are kept from
   this one on. Any thread. */
void tr_timeline_from(tr_timeline *timeline, int64_t step);
/* The first step after those whose single spans are kept. */
int64_t tr_timeline_end_step(const tr_timeline *timeline);
/* Stops keeping single spans for good, so that they can be read while threads are in lanes; sums continue.
   Any thread. */
void tr_timeline_close(tr_timeline *timeline);
/* Stops sums as well. Any thread. */
void tr_timeline_freeze(tr_timeline *timeline);

int tr_timeline_lanes(tr_timeline *timeline);
tr_lane *tr_timeline_lane(const tr_timeline *timeline, int index);
const char *tr_lane_name(const tr_lane *lane);
/* A name of a span or total. */
const char *tr_lane_text(tr_lane *lane, int32_t name);
/* Spans in the order in which they ended. Waits for the same thing, one right after the other, are one span.
 */
const struct tr_span *tr_lane_spans(const tr_lane *lane, int64_t *count);
/* Spans that were not kept for lack of room. */
int64_t tr_lane_dropped(const tr_lane *lane);
const struct tr_span_total *tr_lane_totals(const tr_lane *lane, int *count);

#endif
