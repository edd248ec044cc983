#include "plan/world/internal.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/threads/thread.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#define STACK ((size_t)1 << 20) /* stack of a rank's thread, which takes only what it touches */

/* ---- what comes next ---- */

static bool is_before(const struct entry *a, const struct entry *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static bool push(tr_world *world, struct entry entry)
{
    assert(entry.time >= world->now);
    if (!tr_grow(&world->entry, world->entries, sizeof *world->entry)) return false;
    int64_t at = world->entries++;
    entry.order = world->announced++;
    for (; at > 0 && is_before(&entry, &world->entry[(at - 1) / 2]); at = (at - 1) / 2)
        world->entry[at] = world->entry[(at - 1) / 2];
    world->entry[at] = entry;
    return true;
}

static struct entry pop(tr_world *world)
{
    struct entry first = world->entry[0], last = world->entry[--world->entries];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < world->entries; at = child) {
        if (child + 1 < world->entries && is_before(&world->entry[child + 1], &world->entry[child])) child++;
        if (!is_before(&world->entry[child], &last)) break;
        world->entry[at] = world->entry[child];
    }
    world->entry[at] = last;
    return first;
}

/* A rank awakes in any case: its next awakening is kept with it where there is no memory. */
static void push_rank(struct member *member, double time)
{
    tr_world *world = member->world;
    struct entry entry = {.time = time, .rank = member->rank, .sleep = member->sleep};
    if (push(world, entry)) return;
    entry.order = world->announced++;
    world->kept += !member->keeps;
    if (!member->keeps || member->kept.sleep != member->sleep || is_before(&entry, &member->kept))
        member->kept = entry;
    member->keeps = true;
}

/* The earliest of what members keep, NULL: none comes before the heap's first one. */
static struct member *first_kept(tr_world *world)
{
    struct member *first = NULL;
    for (int rank = 0; rank < world->ranks && world->kept > 0; rank++) {
        struct member *member = &world->member[rank];
        if (member->keeps && (!first || is_before(&member->kept, &first->kept))) first = member;
    }
    return first && world->entries > 0 && is_before(&world->entry[0], &first->kept) ? NULL : first;
}

static bool take_next(tr_world *world, struct entry *out)
{
    struct member *kept = first_kept(world);
    if (kept) {
        kept->keeps = false;
        world->kept--;
        *out = kept->kept;
    } else if (world->entries > 0) {
        *out = pop(world);
    } else {
        return false;
    }
    return true;
}

/* The rank whose turn it is; -1: none any more. */
static int next_rank(tr_world *world)
{
    struct entry entry;
    while (take_next(world, &entry)) {
        if (entry.rank < 0) {
            assert(entry.time >= world->now);
            world->now = entry.time;
            entry.happen(entry.user, entry.what, entry.time);
            continue;
        }
        struct member *member = &world->member[entry.rank];
        if (!member->sleeps || entry.sleep != member->sleep) continue; /* it awoke before */
        world->now = entry.time;
        return entry.rank;
    }
    return -1;
}

/* The turn passes from thread to thread by the next one's semaphore: a common lock would be contended each
   time. True: it is the turn of `self` again (-1 for none); else the world must not be touched. */
static bool hand_on(tr_world *world, int self)
{
    int rank = next_rank(world);
    world->running = rank;
    if (rank < 0) return false;
    world->member[rank].sleeps = false;
    if (rank == self) return true;
    sem_post(&world->member[rank].turn);
    return false;
}

static void await(sem_t *turn)
{
    while (sem_wait(turn) != 0 && errno == EINTR) continue;
}

static struct member *self_of(const tr_world *world)
{
    assert(world->running >= 0);
    return &world->member[world->running];
}

/* Sleeps until `time`, or news if `light`. */
static void sleep_until(tr_world *world, double time, bool light)
{
    struct member *self = self_of(world);
    self->sleep++;
    self->sleeps = true;
    self->light = light;
    push_rank(self, time);
    if (!hand_on(world, self->rank)) await(&self->turn);
}

void world_set_alarm(struct member *member, double time)
{
    member->sleep++;
    push_rank(member, time);
}

/* Its processors work for so long, or until news if `light`; returns the rest. */
static double work(tr_world *world, double seconds, bool light)
{
    struct member *self = self_of(world);
    double until = world->now + seconds;
    if (!self->host) {
        sleep_until(world, until, light);
        return until > world->now ? until - world->now : 0;
    }
    self->sleeps = true;
    self->light = light;
    world_begin_work(self, seconds);
    if (!hand_on(world, self->rank)) await(&self->turn);
    return world_end_work(self);
}

/* ---- time ---- */

int tr_world_running(const tr_world *world)
{
    return self_of(world)->rank;
}

double tr_world_now(const tr_world *world)
{
    return world->running < 0 ? world->now : world->now + self_of(world)->debt;
}

static double read_clock(void *user)
{
    return tr_world_now(user);
}

void tr_world_spend(tr_world *world, double seconds)
{
    struct member *self = self_of(world);
    self->debt += seconds;
    self->spent += seconds;
}

double tr_world_debt(const tr_world *world)
{
    return self_of(world)->debt;
}

double tr_world_put_off(tr_world *world)
{
    struct member *self = self_of(world);
    const double seconds = self->debt;
    self->debt = 0;
    return seconds;
}

void tr_world_resume(tr_world *world, double seconds)
{
    self_of(world)->debt += seconds;
}

double tr_world_spent(const tr_world *world, int rank)
{
    return world->member[rank].spent;
}

void tr_world_pass(tr_world *world)
{
    struct member *self = self_of(world);
    while (self->debt > 0) {
        double seconds = self->debt;
        self->debt = 0;
        seconds = work(world, seconds, false);
        self->debt += seconds;
    }
}

void tr_world_pass_until_news(tr_world *world, uint64_t moment)
{
    struct member *self = self_of(world);
    double seconds = self->debt;
    if (seconds == 0 || self->moment != moment) return;
    self->debt = 0;
    seconds = work(world, seconds, true);
    self->debt += seconds;
}

double tr_world_idled(const tr_world *world, int rank)
{
    const struct member *member = &world->member[rank];
    return member->idled + (member->idles < 0 ? 0 : world->now - member->idles);
}

static void idle(tr_world *world, double seconds, bool light)
{
    struct member *self = self_of(world);
    world_leave_core(self);
    self->idles = world->now;
    sleep_until(world, world->now + seconds, light);
    self->idled += world->now - self->idles;
    self->idles = -1;
}

void tr_world_sleep(tr_world *world, uint64_t moment, double seconds)
{
    struct member *self = self_of(world);
    tr_world_pass(world);
    if (self->moment == moment) idle(world, seconds, true);
}

void tr_world_rest(tr_world *world, double seconds)
{
    tr_world_pass(world);
    if (seconds > 0) idle(world, seconds, false);
}

uint64_t tr_world_moment(const tr_world *world, int rank)
{
    return world->member[rank].moment;
}

void tr_world_wake(tr_world *world, int rank)
{
    struct member *member = &world->member[rank];
    member->moment++;
    if (!member->sleeps || !member->light) return;
    member->light = false; /* notified once */
    member->notified = true;
    if (member->host && world_waits(member)) return;
    push_rank(member, world->now);
}

bool tr_world_at(tr_world *world, double time, tr_world_event happen, void *user, void *what)
{
    struct entry entry = {.time = time, .rank = -1, .happen = happen, .user = user, .what = what};
    const bool fits = push(world, entry);
    world->lost |= !fits;
    return fits;
}

/* ---- ranks ---- */

static void *rank_main(void *argument)
{
    struct member *self = argument;
    tr_world *world = self->world;
    await(&self->turn);
    tr_clock_use(read_clock, world);
    world->main(world->user, self->rank);
    tr_clock_use(NULL, NULL);
    tr_world_pass(world);
    world_leave_core(self);
    if (--world->alive > 0)
        hand_on(world, -1);
    else
        sem_post(&world->over);
    return NULL;
}

tr_status tr_world_create(int ranks, tr_world **out)
{
    tr_world *world = *out = tr_alloc_zero(1, sizeof *world);
    if (!world) return TR_ENOMEM;
    world->running = -1;
    world->member = tr_alloc_zero((size_t)ranks, sizeof *world->member);
    sem_init(&world->over, 0, 0);
    if (!world->member) {
        tr_world_destroy(out);
        return TR_ENOMEM;
    }
    world->ranks = ranks;
    for (int rank = 0; rank < ranks; rank++) {
        world->member[rank] = (struct member){.world = world, .rank = rank, .idles = -1};
        sem_init(&world->member[rank].turn, 0, 0);
    }
    return TR_OK;
}

void tr_world_destroy(tr_world **handle)
{
    tr_world *world = *handle;
    if (!world) return;
    for (int rank = 0; rank < world->ranks; rank++) sem_destroy(&world->member[rank].turn);
    sem_destroy(&world->over);
    tr_free(world->entry);
    world_release_hosts(world);
    tr_free(world->member);
    tr_free(world);
    *handle = NULL;
}

/* Ranks for which the system has no thread; the others have not begun. */
static int start_threads(tr_world *world)
{
    pthread_attr_t small;
    int started = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (; started < world->ranks; started++) {
        struct member *member = &world->member[started];
        if (pthread_create(&member->thread, &small, rank_main, member) != 0) break;
    }
    pthread_attr_destroy(&small);
    return started;
}

static void do_nothing(void *user, int rank)
{
    (void)user, (void)rank;
}

tr_status tr_world_run(tr_world *world, tr_world_main main, void *user)
{
    int started = start_threads(world);
    const bool all = started == world->ranks;
    world->main = all ? main : do_nothing;
    world->user = user;
    world->alive = started;
    for (int rank = 0; rank < started; rank++) {
        world->member[rank].sleeps = true;
        push_rank(&world->member[rank], 0);
    }
    if (started > 0) {
        hand_on(world, -1);
        await(&world->over);
    }
    world->running = -1;
    for (int rank = 0; rank < started; rank++) pthread_join(world->member[rank].thread, NULL);
    if (all && world->lost)
        return tr_fail(TR_ENOMEM, "out of memory for what happens to %d ranks; simulate fewer", world->ranks);
    if (all) return TR_OK;
    return tr_fail(TR_ENOMEM, "the system gave threads for %d of %d ranks; simulate fewer", started,
                   world->ranks);
}
