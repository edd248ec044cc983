/* A team of threads.
 *
 * Members wait only for counters, which only grow: `run` (runs started), `done` (chunks finished, over all
 * runs) and `passed` (barriers passed).
 *
 * Chunks are claimed: `claimed` of a member is the last run in which its chunk was taken, by the member
 * itself or by one that had nothing left to do. A run ends when all its chunks are done, so a member that
 * claims a chunk of run r finds the function of run r; a member that comes late to run r fails to claim
 * one.
 *
 * All waits are alike: spin for some tens of microseconds, since work usually comes in quick succession;
 * then sleep, so that an idle or oversubscribed machine is not kept busy. A waiter increments `sleepers`
 * before it reads the counter for the last time, and a waker reads `sleepers` after it has changed the
 * counter. Both orders are sequentially consistent, so one sees the other and no wake-up is lost.
 *
 * Idle work replaces spinning. A member sets `idling` before it reads the idle function, and the thread
 * that removes the function looks for such members afterwards, in the same order.
 */
#include "base/threads/team.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/pause.h"
#include "base/threads/thread.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

/* How long a waiter spins: longer than the gap between two operations of a step, and too short to be
   noticed as load. */
#define SPIN_NANOSECONDS 40000
/* With more members than processors a spinning member keeps another from working. */
#define SPIN_NANOSECONDS_CROWDED 1000
/* Pauses between two looks at the clock. */
#define SPIN_ROUND 32

struct member {
    struct tr_team *team;
    pthread_t thread;
    int index;
    _Alignas(TR_CACHE_LINE) atomic_uint claimed;
    _Alignas(TR_CACHE_LINE) atomic_bool idling; /* in a call of the team's idle work, or about to be */
};

/* Where members sleep that wait for the same counter. */
struct condition {
    _Alignas(TR_CACHE_LINE) atomic_int sleepers;
    pthread_cond_t changed;
};

struct tr_team {
    int size;
    int64_t spin; /* nanoseconds */
    tr_team_function function;
    void *arguments;
    atomic_bool leave;
    atomic_bool together; /* no member takes over another's chunk */
    _Atomic(tr_team_idle) idle;
    void *idle_arguments; /* set before `idle`, and not while it is set */
    _Alignas(TR_CACHE_LINE) atomic_uint run;
    _Alignas(TR_CACHE_LINE) atomic_uint done;
    _Alignas(TR_CACHE_LINE) atomic_uint arrived;
    _Alignas(TR_CACHE_LINE) atomic_uint passed;
    pthread_mutex_t lock;
    struct condition members_wait, caller_waits; /* for a run or barrier, for the end of a run */
    struct member members[];
};

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Whether `word` has reached `target`; the counters wrap, so the comparison is by difference. */
static inline bool reached(atomic_uint *word, unsigned target)
{
    return (int)(atomic_load_explicit(word, memory_order_acquire) - target) >= 0;
}

/* Calls the idle work once for `member`; false: there is none. */
static bool do_idle_work(struct tr_team *team, struct member *member)
{
    if (!atomic_load_explicit(&team->idle, memory_order_relaxed)) return false;
    atomic_store(&member->idling, true);
    tr_team_idle idle = atomic_load(&team->idle);
    const bool more = idle && idle(team->idle_arguments);
    atomic_store_explicit(&member->idling, false, memory_order_release);
    return more;
}

/* `member` is the one that waits. */
static void wait_until(struct tr_team *team, int member, struct condition *condition, atomic_uint *word,
                       unsigned target)
{
    if (reached(word, target)) return;
    int64_t end = nanoseconds() + team->spin;
    do {
        while (do_idle_work(team, &team->members[member])) {
            if (reached(word, target)) return;
            end = nanoseconds() + team->spin;
        }
        for (int i = 0; i < SPIN_ROUND; i++) {
            if (reached(word, target)) return;
            tr_pause();
        }
        /* The scheduler may have put the awaited member on this very processor, and keep both there while
           other processors are busy: yield, so that it need not wait for the whole spin. */
        sched_yield();
    } while (nanoseconds() < end);
    for (int i = 0; i < 2; i++) {
        sched_yield();
        if (reached(word, target)) return;
    }
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(&condition->sleepers, 1);
    while ((int)(atomic_load(word) - target) < 0) pthread_cond_wait(&condition->changed, &team->lock);
    atomic_fetch_sub(&condition->sleepers, 1);
    pthread_mutex_unlock(&team->lock);
}

/* Adds to a counter and wakes sleepers. Returns the earlier value. */
static unsigned advance(struct tr_team *team, struct condition *condition, atomic_uint *word, unsigned by)
{
    unsigned before = atomic_fetch_add(word, by);
    if (atomic_load(&condition->sleepers) > 0) {
        pthread_mutex_lock(&team->lock);
        pthread_cond_broadcast(&condition->changed);
        pthread_mutex_unlock(&team->lock);
    }
    return before;
}

/* Runs the chunk of `index`, then chunks of members that have not begun. */
static void work(struct tr_team *team, unsigned run, int index)
{
    unsigned done = 0;
    for (int i = 0; i < team->size; i++) {
        int chunk = (index + i) % team->size;
        unsigned before = run - 1;
        if (i > 0 && atomic_load_explicit(&team->together, memory_order_relaxed)) break;
        if (!atomic_compare_exchange_strong(&team->members[chunk].claimed, &before, run)) continue;
        team->function(team->arguments, chunk, team->size);
        done++;
    }
    if (done > 0) advance(team, &team->caller_waits, &team->done, done);
}

static void *member_main(void *argument)
{
    struct member *self = argument;
    struct tr_team *team = self->team;
    for (unsigned run = 0;;) {
        wait_until(team, self->index, &team->members_wait, &team->run, run + 1);
        run = atomic_load(&team->run); /* runs that other members finished meanwhile are over */
        /* After the counter, since the last increment is not a run but the request to leave. */
        if (team->leave) return NULL;
        work(team, run, self->index);
    }
}

int tr_team_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set)) return 1;
    return CPU_COUNT(&set);
}

/* Ends the `started` threads besides the caller. */
static void dismiss(struct tr_team *team, int started)
{
    team->leave = true;
    advance(team, &team->members_wait, &team->run, 1);
    for (int i = 1; i <= started; i++) pthread_join(team->members[i].thread, NULL);
    pthread_cond_destroy(&team->members_wait.changed);
    pthread_cond_destroy(&team->caller_waits.changed);
    pthread_mutex_destroy(&team->lock);
    tr_free(team);
}

tr_status tr_team_create(int size, tr_team **out)
{
    *out = NULL;
    if (size < 1 || size > TR_TEAM_MAX)
        return tr_fail(TR_EINVAL, "threads: %d is out of range; choose 1 to %d", size, TR_TEAM_MAX);
    size_t bytes = sizeof(struct tr_team) + (size_t)size * sizeof(struct member);
    struct tr_team *team = tr_alloc_aligned(bytes, 1);
    if (!team) return TR_ENOMEM;
    memset(team, 0, bytes);
    team->size = size;
    team->spin = size > tr_team_processors() ? SPIN_NANOSECONDS_CROWDED : SPIN_NANOSECONDS;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->members_wait.changed, NULL);
    pthread_cond_init(&team->caller_waits.changed, NULL);
    for (int i = 1; i < size; i++) {
        team->members[i].team = team;
        team->members[i].index = i;
        int error = tr_thread_start(&team->members[i].thread, member_main, &team->members[i]);
        if (error) {
            dismiss(team, i - 1);
            return tr_fail(TR_ENOMEM, "threads: thread %d of %d could not start: %s; use fewer threads",
                           i + 1, size, strerror(error));
        }
    }
    *out = team;
    return TR_OK;
}

void tr_team_destroy(tr_team **team)
{
    if (!*team) return;
    dismiss(*team, (*team)->size - 1);
    *team = NULL;
}

int tr_team_size(const tr_team *team)
{
    return team->size;
}

static void run(struct tr_team *team, tr_team_function function, void *arguments, bool together)
{
    if (team->size == 1) {
        function(arguments, 0, 1);
        return;
    }
    team->function = function;
    team->arguments = arguments;
    atomic_store_explicit(&team->together, together, memory_order_relaxed);
    /* Every chunk adds one to `done` in each run, so this is its value when all are finished. */
    unsigned finished = atomic_load_explicit(&team->done, memory_order_relaxed) + (unsigned)team->size;
    unsigned number = advance(team, &team->members_wait, &team->run, 1) + 1;
    work(team, number, 0);
    wait_until(team, 0, &team->caller_waits, &team->done, finished);
}

void tr_team_run(tr_team *team, tr_team_function function, void *arguments)
{
    run(team, function, arguments, false);
}

void tr_team_run_together(tr_team *team, tr_team_function function, void *arguments)
{
    run(team, function, arguments, true);
}

void tr_team_barrier(tr_team *team, int member)
{
    assert(member >= 0 && member < team->size);
    if (team->size == 1) return;
    assert(atomic_load_explicit(&team->together, memory_order_relaxed));
    unsigned next = atomic_load_explicit(&team->passed, memory_order_relaxed) + 1;
    if (atomic_fetch_add(&team->arrived, 1) + 1 == (unsigned)team->size) {
        atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
        advance(team, &team->members_wait, &team->passed, 1);
    } else {
        wait_until(team, member, &team->members_wait, &team->passed, next);
    }
}

void tr_team_set_idle(tr_team *team, tr_team_idle idle, void *arguments)
{
    atomic_store(&team->idle, NULL);
    for (int i = 0; i < team->size; i++)
        while (atomic_load(&team->members[i].idling)) sched_yield();
    if (!idle) return;
    team->idle_arguments = arguments;
    atomic_store(&team->idle, idle);
}

void tr_team_chunk(int64_t count, int64_t grain, int member, int size, int64_t *begin, int64_t *end)
{
    int64_t grains = count / grain + (count % grain != 0);
    int64_t first = grains / size * member + grains % size * member / size;
    int64_t last = grains / size * (member + 1) + grains % size * (member + 1) / size;
    *begin = first * grain; /* at most count, since only `last` can be all grains */
    *end = last * grain < count ? last * grain : count;
}
