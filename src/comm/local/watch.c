#include "comm/local/watch.h"

#include "comm/location.h"

#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/threads/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* Between two checks of processes whose end the system does not report. */
#define LOOK_SECONDS 0.2
/* Most processes that a rank watches. Each is watched by as many ranks, so that simultaneous ends are
   hardly missed. A small part of the descriptors that a process may have. */
#define WATCHED_MOST  64
#define WATCHED_SHARE 8

struct watched {
    int rank;
    bool looks; /* check its processes at intervals */
};

struct local_watch {
    const struct local_area *area;
    int rank, count;
    double interval;
    pthread_t thread;
    /* Time of this rank's last beat, and the time since which silence counts, in nanoseconds of the host's
       clock. */
    atomic_llong last, since;
    struct watched *watched; /* [count] */
    struct pollfd *waiting;  /* [count + 1]: processes, and last a descriptor that ends the thread */
};

static int64_t now_in_nanoseconds(void)
{
    return (int64_t)(tr_clock_seconds() * 1e9);
}

/* ---- processes ---- */

/* Begins to watch a process. One that has ended already is found at once; a new process with its id is not
   mistaken for it. */
static void find_process(struct local_watch *watch, int index)
{
    struct watched *watched = &watch->watched[index];
    struct tr_location location = watch->area->record[watched->rank].location,
                       own = watch->area->record[watch->rank].location;
    location.machine[TR_LOCATION_MACHINE - 1] = 0;
    /* Process ids are meaningful only within the same name space; elsewhere only beats count. */
    if (strcmp(location.machine, own.machine) != 0 || location.process <= 0 || location.process > INT32_MAX)
        return;
    watch->waiting[index].fd = tr_location_watch(&location);
    watched->looks = watch->waiting[index].fd < 0;
    if (!tr_location_runs(&location)) tr_local_bury(watch->area, watched->rank);
}

static void look_around(struct local_watch *watch)
{
    for (int i = 0; i < watch->count; i++) {
        const struct local_record *record = &watch->area->record[watch->watched[i].rank];
        struct tr_location location = record->location;
        if (watch->watched[i].looks && atomic_load(&record->ended) == 0 && !tr_location_runs(&location))
            tr_local_bury(watch->area, watch->watched[i].rank);
    }
}

/* ---- beats ---- */

static void beat(struct local_watch *watch)
{
    int64_t now = now_in_nanoseconds(), last = atomic_load(&watch->last);
    /* If this process was stopped, or the whole machine slept, no other rank is to blame for the silence. */
    if (now - last > (int64_t)(3e9 * watch->interval)) atomic_store(&watch->since, now);
    atomic_store(&watch->area->record[watch->rank].seen, now);
    atomic_store(&watch->last, now);
}

double tr_local_watch_silence(const struct local_watch *watch, int rank)
{
    /* In this order: both grow, and signs of life since then count. */
    int64_t last = atomic_load(&watch->last), since = atomic_load(&watch->since);
    int64_t seen = atomic_load(&watch->area->record[rank].seen);
    if (seen < since) seen = since;
    return last > seen ? 1e-9 * (double)(last - seen) : 0;
}

/* ---- the thread ---- */

static void *watch_main(void *argument)
{
    struct local_watch *watch = argument;
    bool looks = false;
    for (int i = 0; i < watch->count; i++) looks = looks || watch->watched[i].looks;
    double pause = looks && watch->interval > LOOK_SECONDS ? LOOK_SECONDS : watch->interval;
    int64_t next = 0;
    while (!watch->waiting[watch->count].revents) {
        if (now_in_nanoseconds() >= next) {
            beat(watch);
            next = now_in_nanoseconds() + (int64_t)(1e9 * watch->interval);
        }
        if (looks) look_around(watch);
        if (poll(watch->waiting, (nfds_t)watch->count + 1, (int)(pause * 1000)) <= 0) continue;
        for (int i = 0; i < watch->count; i++) {
            if (!watch->waiting[i].revents) continue;
            close(watch->waiting[i].fd);
            watch->waiting[i].fd = -1;
            tr_local_bury(watch->area, watch->watched[i].rank);
        }
    }
    return NULL;
}

static void release(struct local_watch *watch)
{
    for (int i = 0; watch->waiting && i <= watch->count; i++)
        if (watch->waiting[i].fd >= 0) close(watch->waiting[i].fd);
    tr_free(watch->waiting);
    tr_free(watch->watched);
    tr_free(watch);
}

static int count_watched(int size)
{
    struct rlimit limit;
    int count = size - 1 < WATCHED_MOST ? size - 1 : WATCHED_MOST;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / WATCHED_SHARE < (rlim_t)count)
        count = (int)(limit.rlim_cur / WATCHED_SHARE);
    return count;
}

/* Opens descriptors, and sets the first times. */
static tr_status furnish(struct local_watch *watch)
{
    int size = watch->area->size, count = count_watched(size);
    int64_t now = now_in_nanoseconds();
    watch->watched = tr_alloc_zero((size_t)count, sizeof *watch->watched);
    watch->waiting = tr_alloc((size_t)count + 1, sizeof *watch->waiting);
    if (!watch->watched || !watch->waiting) {
        watch->count = -1; /* nothing to close */
        return TR_ENOMEM;
    }
    watch->count = count;
    for (int i = 0; i <= count; i++) watch->waiting[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    watch->waiting[count].fd = eventfd(0, EFD_CLOEXEC);
    if (watch->waiting[count].fd < 0)
        return tr_fail(TR_ENOMEM, "cannot have a descriptor to watch other ranks by: %s", strerror(errno));
    atomic_store(&watch->last, now);
    atomic_store(&watch->since, now);
    for (int i = 0; i < count; i++) {
        watch->watched[i].rank = (watch->rank + 1 + i) % size;
        find_process(watch, i);
    }
    return TR_OK;
}

tr_status tr_local_watch_start(const struct local_area *area, int rank, double interval,
                               struct local_watch **out)
{
    struct local_watch *watch = tr_alloc_zero(1, sizeof *watch);
    *out = NULL;
    if (!watch) return TR_ENOMEM;
    watch->area = area;
    watch->rank = rank;
    watch->interval = interval;
    tr_status status = furnish(watch);
    if (status == TR_OK) {
        int error = tr_thread_start(&watch->thread, watch_main, watch);
        if (error)
            status = tr_fail(TR_ENOMEM, "the thread that watches other ranks could not start: %s",
                             strerror(error));
    }
    if (status == TR_OK)
        *out = watch;
    else
        release(watch);
    return status;
}

void tr_local_watch_stop(struct local_watch **handle)
{
    struct local_watch *watch = *handle;
    if (!watch) return;
    *handle = NULL;
    eventfd_write(watch->waiting[watch->count].fd, 1);
    pthread_join(watch->thread, NULL);
    release(watch);
}
