/* Timelines: which thread did what, and when.
 *
 * A timeline belongs to one rank and has a lane for each thread that entered it. While a thread is in a lane,
 * pairs of tr_span_begin() and tr_span_end() record spans, which nest; a thread in no lane pays one branch.
 * Every lane keeps as many single spans as its timeline allows, and adds them up by activity and name where
 * that is wanted. A thread in a lane that records nothing at the time pays a call.
 *
 * Invariants: a lane is written by its thread alone; its single spans are read once its timeline is closed,
 * its sums once it is frozen. A span's own time is what its children do not cover, so that own times add up
 * to the time in the lane.
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
    /* Whatever happens within these is part of them. */
    TR_ACTIVITY_EVALUATION,
    TR_ACTIVITY_CHECKPOINT,
    TR_ACTIVITIES
};
/* "step", "input", ... */
extern const char *const tr_activity_names[TR_ACTIVITIES];

struct tr_span {
    int64_t begin, end; /* nanoseconds of tr_timeline_clock() */
    int32_t name;       /* of the lane's names */
    int32_t about;      /* the rank that was waited for, or -1 */
    int64_t step;       /* in which it was recorded */
    enum tr_activity activity;
};

/* The sum over spans of one activity, name and rank waited for. */
struct tr_span_total {
    enum tr_activity activity;
    int32_t name, about;
    int64_t count;
    int64_t whole, own; /* nanoseconds, with and without what nested spans took */
    double work;        /* sum of what tr_span_work() said, with the largest number of bytes */
    int64_t bytes;
};

typedef struct tr_timeline tr_timeline;
typedef struct tr_lane tr_lane;

#define TR_TIMELINE_DEPTH 32

struct tr_timeline_settings {
    int64_t spans;                /* single spans to keep per lane; later ones count in the sums only */
    int64_t first_step, end_step; /* keep single spans of steps [first_step, end_step) only */
    bool sums;                    /* add up spans, of all steps */
};

/* Returned, destroy with tr_timeline_destroy(). */
tr_status tr_timeline_create(const struct tr_timeline_settings *settings, tr_timeline **out);
/* Accepts NULL, nulls the handle. No thread may be in a lane. */
void tr_timeline_destroy(tr_timeline **timeline);

/* Takes the calling thread into its lane of this name, which is made if need be; nothing for NULL. A thread
   is in one lane at a time. Without memory for one the thread goes on unrecorded. `name` is borrowed for the
   call. */
void tr_timeline_enter(tr_timeline *timeline, const char *name);
/* Ends all open spans and leaves the lane. */
void tr_timeline_leave(void);
/* The step that the calling thread's next spans belong to. */
void tr_timeline_step(int64_t step);
/* The timeline whose lane the calling thread is in, or NULL: for handing it to another thread. */
tr_timeline *tr_timeline_current(void);
/* Nanoseconds since some moment in the past. */
int64_t tr_timeline_clock(void);

/* ---- recording ---- */

extern _Thread_local tr_lane *tr_lane_current;
/* The slow halves of what follows. */
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

/* Says of the innermost open span how many operations it does and how many bytes it makes. */
static inline void tr_span_work(double operations, int64_t bytes)
{
    if (__builtin_expect(tr_lane_current != NULL, 0)) tr_lane_work(tr_lane_current, operations, bytes);
}

/* What the innermost open span of a thread is. */
struct tr_span_here {
    tr_timeline *timeline;
    enum tr_activity activity;
    const char *name; /* as long as the timeline */
    int64_t step;
};
/* Of the calling thread; false where nothing is recorded. For those who learn later how long what the thread
   asked for took. */
bool tr_span_here(struct tr_span_here *out);
/* Records a span that no thread went through but another device, in the lane of this name, which no thread
   enters. Any thread. */
void tr_timeline_add(const struct tr_span_here *what, const char *lane, int64_t begin, int64_t end);

/* ---- reading ---- */

/* The first step there is: where single spans were to be kept from an earlier one on, as many steps are kept
   from this one on. Any thread. */
void tr_timeline_from(tr_timeline *timeline, int64_t step);
/* The first step whose single spans are not kept any more. */
int64_t tr_timeline_end_step(const tr_timeline *timeline);
/* Ends the keeping of single spans for good, so that they can be read while threads are still in lanes; sums
   go on. Any thread. */
void tr_timeline_close(tr_timeline *timeline);
/* Ends sums as well. Any thread. */
void tr_timeline_freeze(tr_timeline *timeline);

int tr_timeline_lanes(tr_timeline *timeline);
tr_lane *tr_timeline_lane(const tr_timeline *timeline, int index);
const char *tr_lane_name(const tr_lane *lane);
/* A name of a span or total. */
const char *tr_lane_text(tr_lane *lane, int32_t name);
/* Spans in the order in which they ended. Waits for the same thing, one right after the other, are one span.
 */
const struct tr_span *tr_lane_spans(const tr_lane *lane, int64_t *count);
/* Spans that were to be kept and were not, for lack of room. */
int64_t tr_lane_dropped(const tr_lane *lane);
const struct tr_span_total *tr_lane_totals(const tr_lane *lane, int *count);

#endif
