/* A team of threads.
 *
 * Everything that members wait for is a counter that only grows: `run` (work handed out), `done` (members
 * that finished, over all runs) and `passed` (barriers passed). Waiting is the same everywhere: spin for some
 * tens of microseconds, since work usually comes in quick succession; then sleep on the one condition, so
 * that an idle or oversubscribed machine is not kept busy. A waiter announces itself in `sleepers` before it
 * looks at the counter for the last time, and a waker looks at `sleepers` after it has changed the counter;
 * both orders are sequentially consistent, so one of them sees the other and no wake-up is lost.
 */
#include "base/team.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

/* How long a waiter spins: longer than the gap between two operations of a step, much shorter than what
   anybody would notice as load. */
#define SPIN_NANOSECONDS 40000
/* With more members than processors a spinning member keeps another from working. */
#define SPIN_NANOSECONDS_CROWDED 1000
/* Pauses between two looks at the clock. */
#define SPIN_ROUND 32

struct member {
    struct tr_team *team;
    pthread_t thread;
    int index;
};

struct tr_team {
    int size;
    int64_t spin; /* nanoseconds */
    tr_team_function function;
    void *arguments;
    bool leave;
    _Alignas(TR_CACHE_LINE) atomic_uint run;
    _Alignas(TR_CACHE_LINE) atomic_uint done;
    _Alignas(TR_CACHE_LINE) atomic_uint arrived;
    _Alignas(TR_CACHE_LINE) atomic_uint passed;
    _Alignas(TR_CACHE_LINE) atomic_int sleepers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct member members[];
};

static inline void pause_shortly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* True once `word` has come to `target` or beyond; the counters wrap, so the comparison is by difference. */
static inline bool reached(atomic_uint *word, unsigned target)
{
    return (int)(atomic_load_explicit(word, memory_order_acquire) - target) >= 0;
}

static void wait_until(struct tr_team *team, atomic_uint *word, unsigned target)
{
    if (reached(word, target)) return;
    int64_t end = nanoseconds() + team->spin;
    do {
        for (int i = 0; i < SPIN_ROUND; i++) {
            if (reached(word, target)) return;
            pause_shortly();
        }
        /* The scheduler may have put the member that is waited for on this very processor, and keeps both
           there as long as others are busy: it must not lose the whole spin before it can begin. */
        sched_yield();
    } while (nanoseconds() < end);
    for (int i = 0; i < 2; i++) {
        sched_yield();
        if (reached(word, target)) return;
    }
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(&team->sleepers, 1);
    while ((int)(atomic_load(word) - target) < 0) pthread_cond_wait(&team->changed, &team->lock);
    atomic_fetch_sub(&team->sleepers, 1);
    pthread_mutex_unlock(&team->lock);
}

/* Adds one to a counter and wakes who sleeps. Returns the value before. */
static unsigned advance(struct tr_team *team, atomic_uint *word)
{
    unsigned before = atomic_fetch_add(word, 1);
    if (atomic_load(&team->sleepers) > 0) {
        pthread_mutex_lock(&team->lock);
        pthread_cond_broadcast(&team->changed);
        pthread_mutex_unlock(&team->lock);
    }
    return before;
}

static void *member_main(void *argument)
{
    struct member *self = argument;
    struct tr_team *team = self->team;
    for (unsigned run = 1;; run++) {
        wait_until(team, &team->run, run);
        if (team->leave) return NULL;
        team->function(team->arguments, self->index, team->size);
        advance(team, &team->done);
    }
}

/* Processors that this process may use. */
static int processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set)) return 1;
    return CPU_COUNT(&set);
}

/* Ends the `started` threads besides the caller. */
static void dismiss(struct tr_team *team, int started)
{
    team->leave = true;
    advance(team, &team->run);
    for (int i = 1; i <= started; i++) pthread_join(team->members[i].thread, NULL);
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->lock);
    tr_free(team);
}

tr_status tr_team_create(int size, tr_team **out)
{
    *out = NULL;
    if (size < 1 || size > TR_TEAM_MAX)
        return tr_fail(TR_EINVAL, "threads: %d is out of range; choose 1 to %d", size, TR_TEAM_MAX);
    struct tr_team *team = tr_alloc_aligned(sizeof(struct tr_team) + (size_t)size * sizeof(struct member), 1);
    if (!team) return TR_ENOMEM;
    memset(team, 0, sizeof(*team));
    team->size = size;
    team->spin = size > processors() ? SPIN_NANOSECONDS_CROWDED : SPIN_NANOSECONDS;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
    for (int i = 1; i < size; i++) {
        team->members[i] = (struct member){.team = team, .index = i};
        int error = pthread_create(&team->members[i].thread, NULL, member_main, &team->members[i]);
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

void tr_team_run(tr_team *team, tr_team_function function, void *arguments)
{
    if (team->size == 1) {
        function(arguments, 0, 1);
        return;
    }
    team->function = function;
    team->arguments = arguments;
    /* Every member adds one to `done` in each run, so this is where it stands when all have finished. */
    unsigned finished = atomic_load_explicit(&team->done, memory_order_relaxed) + (unsigned)(team->size - 1);
    advance(team, &team->run);
    function(arguments, 0, team->size);
    wait_until(team, &team->done, finished);
}

void tr_team_barrier(tr_team *team, int member)
{
    assert(member >= 0 && member < team->size);
    (void)member;
    if (team->size == 1) return;
    unsigned next = atomic_load_explicit(&team->passed, memory_order_relaxed) + 1;
    if (atomic_fetch_add(&team->arrived, 1) + 1 == (unsigned)team->size) {
        atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
        advance(team, &team->passed);
    } else {
        wait_until(team, &team->passed, next);
    }
}

void tr_team_share(int64_t count, int64_t grain, int member, int size, int64_t *begin, int64_t *end)
{
    int64_t grains = count / grain + (count % grain != 0);
    int64_t first = grains / size * member + grains % size * member / size;
    int64_t last = grains / size * (member + 1) + grains % size * (member + 1) / size;
    *begin = first * grain < count ? first * grain : count;
    *end = last * grain < count ? last * grain : count;
}
