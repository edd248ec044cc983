#include "strategy/parameter_server/schedule.h"

#include "base/alloc.h"

#include <assert.h>

enum state { IDLE, WAITS, WORKS, LOST };

struct worker {
    enum state state;
    int64_t number, version; /* of its work */
    int64_t turn;            /* when it requested work */
    int64_t served;          /* the version for which its last gradient was taken, -1: none */
};

struct ps_schedule {
    struct ps_schedule_settings settings;
    int64_t count; /* updates */
    int taken;     /* gradients of the next update that were taken */
    int64_t next;  /* the lowest number never handed out */
    int64_t *back; /* [backs] numbers given back; at most one for each worker */
    int backs;
    int64_t turns;
    struct worker worker[];
};

tr_status ps_schedule_create(const struct ps_schedule_settings *settings, ps_schedule **out)
{
    assert(settings->workers > 0 && settings->parts > 0 && settings->first <= settings->end);
    size_t workers = (size_t)settings->workers;
    ps_schedule *schedule = tr_alloc_zero(1, sizeof *schedule + workers * sizeof schedule->worker[0]);
    *out = schedule;
    if (!schedule) return TR_ENOMEM;
    schedule->settings = *settings;
    schedule->count = settings->first;
    schedule->next = settings->first * settings->parts;
    for (int w = 0; w < settings->workers; w++) schedule->worker[w].served = -1;
    schedule->back = tr_alloc(workers, sizeof *schedule->back);
    if (schedule->back) return TR_OK;
    ps_schedule_destroy(out);
    return TR_ENOMEM;
}

void ps_schedule_destroy(ps_schedule **handle)
{
    ps_schedule *schedule = *handle;
    if (!schedule) return;
    tr_free(schedule->back);
    tr_free(schedule);
    *handle = NULL;
}

/* ---- numbers ---- */

static void give_back(ps_schedule *schedule, int64_t number)
{
    assert(schedule->backs < schedule->settings.workers);
    schedule->back[schedule->backs++] = number;
}

static bool has_number(const ps_schedule *schedule)
{
    return schedule->backs > 0 || schedule->next < schedule->settings.end * schedule->settings.parts;
}

/* The lowest number that was given back, else a new one. */
static int64_t draw_number(ps_schedule *schedule)
{
    int lowest = 0;
    if (schedule->backs == 0) return schedule->next++;
    for (int i = 1; i < schedule->backs; i++)
        if (schedule->back[i] < schedule->back[lowest]) lowest = i;
    int64_t number = schedule->back[lowest];
    schedule->back[lowest] = schedule->back[--schedule->backs];
    return number;
}

/* ---- who may begin ---- */

/* Number of gradients under way with at least this version. */
static int under_way(const ps_schedule *schedule, int64_t version)
{
    int count = 0;
    for (int w = 0; w < schedule->settings.workers; w++)
        count += schedule->worker[w].state == WORKS && schedule->worker[w].version >= version;
    return count;
}

static int64_t oldest_version(const ps_schedule *schedule)
{
    int64_t oldest = schedule->count;
    for (int w = 0; w < schedule->settings.workers; w++)
        if (schedule->worker[w].state == WORKS && schedule->worker[w].version < oldest)
            oldest = schedule->worker[w].version;
    return oldest;
}

static bool may_begin(const ps_schedule *schedule, const struct worker *worker)
{
    const struct ps_schedule_settings *settings = &schedule->settings;
    /* Once in each update, and again only where too few others are left to complete it. */
    if (settings->drops)
        return worker->served < schedule->count ||
               schedule->taken + under_way(schedule, schedule->count) < settings->parts;
    if (settings->staleness == PS_STALENESS_ANY) return true;
    /* In the worst case the oldest gradient under way comes last: after all others under way, and after
       this one. (For this one all others under way may come first, which is not more.) */
    return schedule->count + under_way(schedule, 0) <= oldest_version(schedule) + settings->staleness;
}

void ps_schedule_ask(ps_schedule *schedule, int worker)
{
    assert(schedule->worker[worker].state == IDLE);
    schedule->worker[worker].state = WAITS;
    schedule->worker[worker].turn = schedule->turns++;
}

void ps_schedule_withdraw(ps_schedule *schedule, int worker)
{
    assert(schedule->worker[worker].state == WAITS);
    schedule->worker[worker].state = IDLE;
}

bool ps_schedule_next(ps_schedule *schedule, bool room, struct ps_work *out)
{
    const bool *distant = room ? NULL : schedule->settings.distant;
    int chosen = -1;
    if (ps_schedule_is_over(schedule) || !has_number(schedule)) return false;
    for (int w = 0; w < schedule->settings.workers; w++) {
        const struct worker *worker = &schedule->worker[w];
        if (worker->state != WAITS || !may_begin(schedule, worker)) continue;
        if (distant && distant[w]) continue;
        if (chosen < 0 || worker->turn < schedule->worker[chosen].turn) chosen = w;
    }
    if (chosen < 0) return false;
    struct worker *worker = &schedule->worker[chosen];
    worker->state = WORKS;
    worker->number = draw_number(schedule);
    worker->version = schedule->count;
    *out = (struct ps_work){chosen, worker->number, worker->version};
    return true;
}

/* ---- gradients ---- */

struct ps_taken ps_schedule_take(ps_schedule *schedule, int index)
{
    const struct ps_schedule_settings *settings = &schedule->settings;
    struct worker *worker = &schedule->worker[index];
    assert(worker->state == WORKS);
    worker->state = IDLE;
    struct ps_taken taken = {.number = worker->number, .missed = schedule->count - worker->version};
    taken.late = settings->drops && taken.missed > 0;
    if (taken.late) {
        give_back(schedule, worker->number);
        return taken;
    }
    assert(taken.missed <= settings->staleness);
    worker->served = schedule->count;
    taken.first = schedule->taken == 0;
    taken.completes = ++schedule->taken == settings->parts;
    if (taken.completes) {
        schedule->taken = 0;
        schedule->count++;
    }
    return taken;
}

int64_t ps_schedule_lose(ps_schedule *schedule, int index)
{
    struct worker *worker = &schedule->worker[index];
    bool worked = worker->state == WORKS;
    worker->state = LOST;
    if (!worked) return -1;
    give_back(schedule, worker->number);
    return worker->number;
}

/* ---- questions ---- */

int64_t ps_schedule_count(const ps_schedule *schedule)
{
    return schedule->count;
}

bool ps_schedule_is_over(const ps_schedule *schedule)
{
    return schedule->count >= schedule->settings.end;
}

bool ps_schedule_waits(const ps_schedule *schedule, int worker)
{
    return schedule->worker[worker].state == WAITS;
}

bool ps_schedule_works(const ps_schedule *schedule, int worker)
{
    return schedule->worker[worker].state == WORKS;
}

bool ps_schedule_is_exhausted(const ps_schedule *schedule)
{
    return ps_schedule_is_over(schedule) || !has_number(schedule);
}
