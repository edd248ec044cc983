#include "base/threads/timeline.h"

#include "base/alloc.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LANES     64
#define LANE_NAME 32
#define NAMES     4096 /* names of a lane; the last is "...", for all further ones */
/* Waits that follow each other within so many nanoseconds count as one. */
#define CLOSE      5000
#define UNRECORDED (-1)
#define SLOTS      8192 /* slots of the hash tables below, a power of two; at most half are used */

const char *const tr_activity_names[TR_ACTIVITIES] = {
    "step", "input", "forward", "backward", "communication", "waiting", "update", "evaluation", "checkpoint",
};

struct open_span {
    enum tr_activity activity;
    int32_t name; /* UNRECORDED if nothing was recorded when it began */
    int64_t begin, children;
    double work;
    int64_t bytes;
};

struct tr_lane {
    tr_timeline *timeline;
    char name[LANE_NAME];
    bool taken;           /* by a thread */
    pthread_mutex_t lock; /* against threads that close, freeze and read */
    bool closed, frozen;
    atomic_bool idle; /* nothing is recorded; depends on the step and on the settings above, see set_idle() */
    int64_t step;
    int depth; /* of open spans; those beyond TR_TIMELINE_DEPTH are only counted */
    struct open_span open[TR_TIMELINE_DEPTH];
    char *text[NAMES];
    int32_t names, name_slot[SLOTS]; /* number + 1; 0: free */
    struct tr_span *spans;
    int64_t count, dropped;
    struct tr_span_total *totals;
    int total_count;
    int32_t total_slot[SLOTS];
};

struct tr_timeline {
    struct tr_timeline_settings settings;
    pthread_mutex_t lock; /* guards the list of lanes */
    tr_lane *lane[LANES];
    int lanes;
    bool closed, frozen;
};

_Thread_local tr_lane *tr_lane_current;

int64_t tr_timeline_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- timelines and lanes ---- */

tr_status tr_timeline_create(const struct tr_timeline_settings *settings, tr_timeline **out)
{
    tr_timeline *timeline = tr_alloc_zero(1, sizeof *timeline);
    if (!timeline) return TR_ENOMEM;
    timeline->settings = *settings;
    pthread_mutex_init(&timeline->lock, NULL);
    *out = timeline;
    return TR_OK;
}

void tr_timeline_destroy(tr_timeline **handle)
{
    tr_timeline *timeline = *handle;
    if (!timeline) return;
    for (int i = 0; i < timeline->lanes; i++) {
        tr_lane *lane = timeline->lane[i];
        assert(!lane->taken);
        for (int32_t n = 0; n < lane->names; n++) tr_free(lane->text[n]);
        pthread_mutex_destroy(&lane->lock);
        tr_free(lane->spans);
        tr_free(lane->totals);
        tr_free(lane);
    }
    pthread_mutex_destroy(&timeline->lock);
    tr_free(timeline);
    *handle = NULL;
}

static bool keeps_step(const tr_lane *lane)
{
    const struct tr_timeline_settings *settings = &lane->timeline->settings;
    return !lane->closed && lane->step >= settings->first_step && lane->step < settings->end_step;
}

/* The lane's lock is held, or no other thread knows the lane. */
static void set_idle(tr_lane *lane)
{
    bool records = !lane->frozen && (lane->timeline->settings.sums || keeps_step(lane));
    atomic_store_explicit(&lane->idle, !records, memory_order_relaxed);
}

/* A free lane of this name, or a new one; NULL without memory. */
static tr_lane *take_lane(tr_timeline *timeline, const char *name)
{
    for (int i = 0; i < timeline->lanes; i++)
        if (!timeline->lane[i]->taken && strcmp(timeline->lane[i]->name, name) == 0) return timeline->lane[i];
    if (timeline->lanes == LANES) return NULL;
    tr_lane *lane = tr_alloc_zero(1, sizeof *lane);
    if (!lane) return NULL;
    pthread_mutex_init(&lane->lock, NULL);
    lane->timeline = timeline;
    lane->closed = timeline->closed;
    lane->frozen = timeline->frozen;
    set_idle(lane);
    snprintf(lane->name, sizeof lane->name, "%s", name);
    timeline->lane[timeline->lanes++] = lane;
    return lane;
}

void tr_timeline_enter(tr_timeline *timeline, const char *name)
{
    if (!timeline || tr_lane_current) return;
    pthread_mutex_lock(&timeline->lock);
    tr_lane *lane = take_lane(timeline, name);
    if (lane) lane->taken = true;
    pthread_mutex_unlock(&timeline->lock);
    tr_lane_current = lane;
}

void tr_timeline_leave(void)
{
    tr_lane *lane = tr_lane_current;
    if (!lane) return;
    while (lane->depth > 0) tr_lane_end(lane, -1);
    tr_lane_current = NULL;
    pthread_mutex_lock(&lane->timeline->lock);
    lane->taken = false;
    pthread_mutex_unlock(&lane->timeline->lock);
}

void tr_timeline_step(int64_t step)
{
    tr_lane *lane = tr_lane_current;
    if (!lane) return;
    pthread_mutex_lock(&lane->lock);
    lane->step = step;
    set_idle(lane);
    pthread_mutex_unlock(&lane->lock);
}

tr_timeline *tr_timeline_current(void)
{
    return tr_lane_current ? tr_lane_current->timeline : NULL;
}

void tr_timeline_from(tr_timeline *timeline, int64_t step)
{
    struct tr_timeline_settings *settings = &timeline->settings;
    pthread_mutex_lock(&timeline->lock);
    for (int i = 0; i < timeline->lanes; i++) pthread_mutex_lock(&timeline->lane[i]->lock);
    if (step > settings->first_step) {
        int64_t steps = settings->end_step - settings->first_step;
        settings->first_step = step;
        if (__builtin_add_overflow(step, steps, &settings->end_step)) settings->end_step = INT64_MAX;
    }
    for (int i = 0; i < timeline->lanes; i++) {
        set_idle(timeline->lane[i]);
        pthread_mutex_unlock(&timeline->lane[i]->lock);
    }
    pthread_mutex_unlock(&timeline->lock);
}

int64_t tr_timeline_end_step(const tr_timeline *timeline)
{
    return timeline->settings.end_step;
}

/* ---- recording ---- */

static uint32_t hash_text(const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 16777619u;
    return hash;
}

/* The number of a name, which is copied when first seen; one that none has without memory. */
static int32_t intern(tr_lane *lane, const char *name)
{
    uint32_t slot = hash_text(name) % SLOTS;
    for (; lane->name_slot[slot]; slot = (slot + 1) % SLOTS)
        if (strcmp(lane->text[lane->name_slot[slot] - 1], name) == 0) return lane->name_slot[slot] - 1;
    if (lane->names == NAMES) return NAMES - 1;
    const bool last = lane->names == NAMES - 1;
    char *copy = tr_strdup(last ? "..." : name);
    if (!copy) return NAMES;
    lane->text[lane->names] = copy;
    if (!last) lane->name_slot[slot] = lane->names + 1;
    return lane->names++;
}

static void add_total(tr_lane *lane, const struct open_span *span, int about, int64_t whole)
{
    uint32_t slot =
        ((uint32_t)span->name * 2654435761u + (uint32_t)span->activity * 40503u + (uint32_t)about * 977u) %
        SLOTS;
    struct tr_span_total *total;
    for (; lane->total_slot[slot]; slot = (slot + 1) % SLOTS) {
        total = &lane->totals[lane->total_slot[slot] - 1];
        if (total->activity == span->activity && total->name == span->name && total->about == about) goto add;
    }
    if (lane->total_count == SLOTS / 2) return;
    if (!tr_grow(&lane->totals, lane->total_count, sizeof *lane->totals)) return;
    total = &lane->totals[lane->total_count];
    *total = (struct tr_span_total){.activity = span->activity, .name = span->name, .about = about};
    lane->total_slot[slot] = ++lane->total_count;
add:
    total->count++;
    total->whole += whole;
    total->own += whole - span->children;
    total->work += span->work;
    if (span->bytes > total->bytes) total->bytes = span->bytes;
}

static void keep(tr_lane *lane, const struct open_span *span, int about, int64_t end)
{
    if (!keeps_step(lane)) return;
    if (lane->count >= lane->timeline->settings.spans ||
        !tr_grow(&lane->spans, lane->count, sizeof *lane->spans)) {
        lane->dropped++;
        return;
    }
    struct tr_span *last = lane->count ? &lane->spans[lane->count - 1] : NULL;
    if (last && span->activity == TR_ACTIVITY_WAITING && last->activity == span->activity &&
        last->name == span->name && last->about == about && span->begin - last->end < CLOSE) {
        last->end = end;
        return;
    }
    lane->spans[lane->count++] = (struct tr_span){
        .begin = span->begin,
        .end = end,
        .name = span->name,
        .about = about,
        .step = lane->step,
        .activity = span->activity,
    };
}

void tr_lane_begin(tr_lane *lane, enum tr_activity activity, const char *name)
{
    if (lane->depth++ >= TR_TIMELINE_DEPTH) return;
    if (lane->depth > 1 && lane->open[lane->depth - 2].activity >= TR_ACTIVITY_EVALUATION)
        activity = lane->open[lane->depth - 2].activity;
    struct open_span *span = &lane->open[lane->depth - 1];
    span->activity = activity;
    span->name = UNRECORDED;
    if (atomic_load_explicit(&lane->idle, memory_order_relaxed)) return;
    pthread_mutex_lock(&lane->lock);
    int32_t number = intern(lane, name);
    pthread_mutex_unlock(&lane->lock);
    *span = (struct open_span){.activity = activity, .name = number, .begin = tr_timeline_clock()};
}

void tr_lane_work(tr_lane *lane, double operations, int64_t bytes)
{
    if (lane->depth == 0 || lane->depth > TR_TIMELINE_DEPTH) return;
    struct open_span *span = &lane->open[lane->depth - 1];
    span->work += operations;
    if (bytes > span->bytes) span->bytes = bytes;
}

void tr_lane_end(tr_lane *lane, int about)
{
    assert(lane->depth > 0);
    if (lane->depth-- > TR_TIMELINE_DEPTH) return;
    const struct open_span *span = &lane->open[lane->depth];
    if (span->name == UNRECORDED) return;
    int64_t end = tr_timeline_clock(), whole = end - span->begin;
    if (lane->depth > 0) lane->open[lane->depth - 1].children += whole;
    pthread_mutex_lock(&lane->lock);
    if (!lane->frozen) {
        if (lane->timeline->settings.sums) add_total(lane, span, about, whole);
        keep(lane, span, about, end);
    }
    pthread_mutex_unlock(&lane->lock);
}

bool tr_span_here(struct tr_span_here *out)
{
    tr_lane *lane = tr_lane_current;
    if (!lane || lane->depth == 0 || lane->depth > TR_TIMELINE_DEPTH) return false;
    const struct open_span *span = &lane->open[lane->depth - 1];
    if (span->name == UNRECORDED || span->name >= lane->names) return false;
    *out = (struct tr_span_here){lane->timeline, span->activity, lane->text[span->name], lane->step};
    return true;
}

void tr_timeline_add(const struct tr_span_here *what, const char *name, int64_t begin, int64_t end)
{
    tr_timeline *timeline = what->timeline;
    pthread_mutex_lock(&timeline->lock);
    tr_lane *lane = take_lane(timeline, name);
    if (lane) pthread_mutex_lock(&lane->lock);
    pthread_mutex_unlock(&timeline->lock);
    if (!lane) return;
    lane->step = what->step;
    if (!lane->frozen) {
        struct open_span span = {what->activity, intern(lane, what->name), begin, 0, 0, 0};
        if (timeline->settings.sums) add_total(lane, &span, -1, end - begin);
        keep(lane, &span, -1, end);
    }
    pthread_mutex_unlock(&lane->lock);
}

/* ---- reading ---- */

static void end_recording(tr_timeline *timeline, bool sums_too)
{
    pthread_mutex_lock(&timeline->lock);
    timeline->closed = true;
    timeline->frozen |= sums_too;
    for (int i = 0; i < timeline->lanes; i++) {
        tr_lane *lane = timeline->lane[i];
        pthread_mutex_lock(&lane->lock);
        lane->closed = true;
        lane->frozen |= sums_too;
        set_idle(lane);
        pthread_mutex_unlock(&lane->lock);
    }
    pthread_mutex_unlock(&timeline->lock);
}

void tr_timeline_close(tr_timeline *timeline)
{
    end_recording(timeline, false);
}

void tr_timeline_freeze(tr_timeline *timeline)
{
    end_recording(timeline, true);
}

int tr_timeline_lanes(tr_timeline *timeline)
{
    pthread_mutex_lock(&timeline->lock);
    int lanes = timeline->lanes;
    pthread_mutex_unlock(&timeline->lock);
    return lanes;
}

tr_lane *tr_timeline_lane(const tr_timeline *timeline, int index)
{
    return timeline->lane[index];
}

const char *tr_lane_name(const tr_lane *lane)
{
    return lane->name;
}

const char *tr_lane_text(tr_lane *lane, int32_t name)
{
    pthread_mutex_lock(&lane->lock); /* its thread may be adding names */
    const char *text = name < lane->names ? lane->text[name] : "?";
    pthread_mutex_unlock(&lane->lock);
    return text;
}

const struct tr_span *tr_lane_spans(const tr_lane *lane, int64_t *count)
{
    *count = lane->count;
    return lane->spans;
}

int64_t tr_lane_dropped(const tr_lane *lane)
{
    return lane->dropped;
}

const struct tr_span_total *tr_lane_totals(const tr_lane *lane, int *count)
{
    *count = lane->total_count;
    return lane->totals;
}
