/* Batches by step, and reading ahead.
 *
 * With reading ahead there are prefetch + 1 slots; step s lives in slot s % slots. The slot of `next` is
 * filled, and `next` moves up while next <= current + prefetch. The caller owns the slot of `current`, and
 * the slots of steps in between are ready. Rows of the slot of `next` are taken in portions. The thread
 * that takes a portion reads it outside the lock: the reader thread takes all rows that are left; with
 * help, idle threads take small portions. The batch is ready once all rows are taken and no thread is
 * busy. With help, the reader thread reads only the next batch and leaves later ones to idle threads, or
 * it would take processor time from computation. Examples of a file in the system's cache are worth idle
 * time, but no thread of their own: there the caller reads the rows that are left. Help is paused when a
 * portion took so long that others may have waited for the helper. A request for a step outside [current,
 * next] waits until no thread is busy and starts again there. All of this is guarded by `lock`.
 */
#include "data/order/assembly.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/threads/pause.h"
#include "base/threads/thread.h"
#include "base/threads/timeline.h"
#include "base/numbers/tree.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

/* Rows of a helper's portion, which takes a microsecond or two: of examples in memory, and of a file, each a
   call of the system. */
#define PORTION       4
#define PORTION_FILED 1
/* A portion that took longer was not in memory: then helpers pause for so many steps, twice as many each
   time. */
#define PORTION_SECONDS 100e-6
#define PAUSE_FIRST     16
#define PAUSE_MOST      4096
/* How often the caller looks for the end of a helper's portion before it sleeps: for as long as a portion
   takes. */
#define LOOKS 1000

struct slot {
    struct tr_batch batch;
    struct tr_failure outcome; /* kept here, since messages belong to threads; of the first row that failed */
};

struct tr_loader {
    struct tr_assembly assembly;
    int slots;
    struct slot *slot;

    bool guarded; /* the lock and its conditions exist */
    bool reading; /* the thread exists */
    pthread_t thread;
    tr_timeline *timeline; /* where the thread records, or NULL */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* wakes the caller */
    pthread_cond_t wanted;  /* wakes the reader */
    int64_t current;        /* step that the caller has, -1 before the first */
    int64_t next;           /* step that is being filled, or the next to be filled */
    bool begun;             /* the batch of `next`: rows before `taken` have been taken */
    int64_t taken, failed;  /* failed: the first row that could not be read, INT64_MAX: none */
    atomic_int busy;        /* threads that are reading; looked at without the lock, too */
    bool quit;
    bool helped;             /* helpers may take rows */
    int64_t portion;         /* rows of a helper's portion */
    int64_t paused, pause;   /* steps left in this pause; length of the next pause */
    atomic_bool offers_rows; /* a helper would find rows; read without the lock */
};

/* Rows [begin, end) of the batch of a step; of a batch that is not divisible, all rows. */
struct portion {
    int64_t step, begin, end;
};

static struct slot *slot_of(tr_loader *loader, int64_t step)
{
    return &loader->slot[step % loader->slots];
}

/* A whole batch. */
static void fill(tr_loader *loader, int64_t step)
{
    struct slot *slot = slot_of(loader, step);
    tr_assembly_begin(&loader->assembly, step, &slot->batch);
    tr_failure_keep(&slot->outcome, tr_assembly_read(&loader->assembly, 0, slot->batch.rows, &slot->batch));
}

/* ---- with the lock ---- */

static bool may_read(const tr_loader *loader)
{
    const struct tr_loader_options *options = &loader->assembly.options;
    return loader->current >= 0 && loader->next - loader->current <= options->prefetch &&
           (loader->next < options->end_step || loader->next == loader->current);
}

/* Whether rows are left to helpers. */
static bool shares(const tr_loader *loader)
{
    return loader->helped && loader->paused == 0;
}

static bool reader_may_read(const tr_loader *loader)
{
    return may_read(loader) && (!shares(loader) || loader->next <= loader->current + 1);
}

static bool rows_are_left(tr_loader *loader)
{
    return !loader->begun || loader->taken < slot_of(loader, loader->next)->batch.rows;
}

static void offer(tr_loader *loader)
{
    atomic_store_explicit(&loader->offers_rows, shares(loader) && may_read(loader) && rows_are_left(loader),
                          memory_order_relaxed);
}

/* Takes up to `most` rows, if there are any. */
static bool take(tr_loader *loader, int64_t most, struct portion *portion)
{
    struct slot *slot = slot_of(loader, loader->next);
    if (!may_read(loader) || !rows_are_left(loader)) return false;
    if (!loader->begun) {
        loader->begun = true;
        loader->taken = 0;
        loader->failed = INT64_MAX;
        tr_failure_keep(&slot->outcome, TR_OK);
        tr_assembly_begin(&loader->assembly, loader->next, &slot->batch);
    }
    const int64_t left = slot->batch.rows - loader->taken;
    *portion = (struct portion){loader->next, loader->taken, loader->taken + (left < most ? left : most)};
    loader->taken = portion->end;
    loader->busy++;
    offer(loader);
    return true;
}

/* Reads the portion; the lock is released meanwhile. */
static void read_portion(tr_loader *loader, const struct portion *portion)
{
    struct slot *slot = slot_of(loader, portion->step);
    pthread_mutex_unlock(&loader->lock);
    tr_status status = tr_assembly_read(&loader->assembly, portion->begin, portion->end, &slot->batch);
    pthread_mutex_lock(&loader->lock);
    loader->busy--;
    if (status != TR_OK && portion->begin < loader->failed) {
        loader->failed = portion->begin;
        tr_failure_keep(&slot->outcome, status);
    }
    if (loader->busy > 0) return;
    if (!rows_are_left(loader)) {
        loader->next = portion->step + 1;
        loader->begun = false;
        offer(loader);
        if (reader_may_read(loader)) pthread_cond_signal(&loader->wanted);
    }
    pthread_cond_broadcast(&loader->changed);
}

/* ---- who reads ---- */

static void *read_ahead(void *user)
{
    tr_loader *loader = user;
    struct portion portion;
    tr_timeline_enter(loader->timeline, "reader");
    /* The caller takes a batch and then computes: the thread that it wakes must not preempt it. This
       matters where all processors compute. If the call fails, the priority stays as it was. */
    sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    pthread_mutex_lock(&loader->lock);
    while (!loader->quit) {
        if (!reader_may_read(loader) || !take(loader, INT64_MAX, &portion)) {
            pthread_cond_wait(&loader->wanted, &loader->lock);
            continue;
        }
        tr_timeline_step(portion.step);
        tr_span_begin(TR_ACTIVITY_INPUT, "read ahead");
        read_portion(loader, &portion);
        tr_span_end();
    }
    pthread_mutex_unlock(&loader->lock);
    tr_timeline_leave();
    return NULL;
}

bool tr_loader_help(void *arguments)
{
    tr_loader *loader = arguments;
    struct portion portion;
    if (!atomic_load_explicit(&loader->offers_rows, memory_order_relaxed)) return false;
    if (pthread_mutex_trylock(&loader->lock) != 0) return false;
    const bool took = shares(loader) && take(loader, loader->portion, &portion);
    if (took) {
        const double start = tr_clock_seconds();
        read_portion(loader, &portion);
        if (tr_clock_seconds() - start > PORTION_SECONDS) {
            loader->paused = loader->pause;
            loader->pause = loader->pause < PAUSE_MOST ? 2 * loader->pause : PAUSE_MOST;
            offer(loader);
            pthread_cond_signal(&loader->wanted);
        }
    }
    pthread_mutex_unlock(&loader->lock);
    return took;
}

bool tr_loader_may_be_helped(const tr_loader *loader)
{
    return loader->guarded && tr_assembly_is_divisible(&loader->assembly);
}

void tr_loader_expect_help(tr_loader *loader)
{
    assert(tr_loader_may_be_helped(loader));
    pthread_mutex_lock(&loader->lock);
    loader->helped = true;
    pthread_mutex_unlock(&loader->lock);
}

/* ---- making ---- */

static tr_status refused(void)
{
    return tr_fail(TR_ENOMEM,
                   "start a thread that reads data ahead: the system refused; set prefetch: 0 or free "
                   "processes");
}

static tr_status make_lock(tr_loader *loader)
{
    if (pthread_mutex_init(&loader->lock, NULL) != 0) return refused();
    if (pthread_cond_init(&loader->changed, NULL) != 0) goto no_condition;
    if (pthread_cond_init(&loader->wanted, NULL) != 0) goto no_second_condition;
    loader->guarded = true;
    return TR_OK;
no_second_condition:
    pthread_cond_destroy(&loader->changed);
no_condition:
    pthread_mutex_destroy(&loader->lock);
    return refused();
}

static tr_status start_reading(tr_loader *loader)
{
    loader->timeline = tr_timeline_current();
    if (tr_thread_start(&loader->thread, read_ahead, loader) != 0) return refused();
    loader->reading = true;
    return TR_OK;
}

static tr_status check_options(const struct tr_assembly *assembly)
{
    const struct tr_loader_options *options = &assembly->options;
    if (options->microbatches < 1 || options->first_microbatch < 0 ||
        options->end_microbatch <= options->first_microbatch ||
        options->end_microbatch > options->microbatches) {
        return tr_fail(TR_EINVAL,
                       "microbatches [%" PRId64 ", %" PRId64 ") of %" PRId64 ": not a range of them",
                       options->first_microbatch, options->end_microbatch, options->microbatches);
    }
    if (options->prefetch < 0 || options->prefetch > TR_PREFETCH_MAX) {
        return tr_fail(TR_EINVAL, "prefetch is %d; give 0 to %d", options->prefetch, TR_PREFETCH_MAX);
    }
    if (assembly->order.order.count > assembly->source->info.count) {
        return tr_fail(TR_EINVAL, "the order is over %" PRId64 " examples, the source has %" PRId64,
                       assembly->order.order.count, assembly->source->info.count);
    }
    return TR_OK;
}

tr_status tr_loader_create(const tr_source *source, const struct tr_order *order,
                           const struct tr_loader_options *options, tr_loader **out)
{
    tr_status status;
    tr_loader *loader = tr_alloc_zero(1, sizeof *loader);
    if (!loader) return TR_ENOMEM;
    struct tr_assembly *assembly = &loader->assembly;
    *assembly = (struct tr_assembly){.source = source, .options = *options};
    loader->current = -1;
    loader->pause = PAUSE_FIRST;
    loader->portion = source->filed ? PORTION_FILED : PORTION;
    if (options->prefetch == TR_PREFETCH_AUTO) assembly->options.prefetch = source->info.slow ? 2 : 0;
    TR_TRY_GOTO(tr_order_reader_make(order, &assembly->order), fail);
    TR_TRY_GOTO(check_options(assembly), fail);
    /* With images in memory only numbers and labels are read, which takes less time than waking a thread. */
    const bool in_place = tr_assembly_in_place(assembly);
    if (in_place) assembly->options.prefetch = 0;
    const bool thread = assembly->options.prefetch > 0;
    if (!thread && options->prefetch == TR_PREFETCH_AUTO && source->filed && !in_place)
        assembly->options.prefetch = 1; /* by idle threads, if there are any */

    /* The most rows that tr_cut() gives to a range of microbatches, for batches up to this size. */
    int64_t parts = options->end_microbatch - options->first_microbatch;
    __extension__ __int128 rows =
        ((__int128)order->batch * parts + options->microbatches - 1) / options->microbatches;
    assembly->capacity = (int64_t)rows;
    const int32_t second = source->parts ? source->parts->second_tokens : 0;
    const int32_t longest = source->info.max_tokens > second ? source->info.max_tokens : second;
    int64_t most;
    if (source->info.features == TR_FEATURE_TOKENS &&
        (__builtin_mul_overflow(assembly->capacity, (int64_t)longest, &most) || most > INT32_MAX)) {
        status = tr_fail(TR_EINVAL,
                         "a batch of %" PRId64 " rows of up to %" PRId32
                         " tokens is more than %d tokens; make the "
                         "batch or max_tokens smaller",
                         assembly->capacity, longest, INT32_MAX);
        goto fail;
    }
    if (source->info.features == TR_FEATURE_TOKENS) {
        assembly->tokens = assembly->capacity * source->info.max_tokens;
        assembly->second_tokens = assembly->capacity * second;
    }
    loader->slots = assembly->options.prefetch + 1;
    loader->slot = tr_alloc_zero((size_t)loader->slots, sizeof *loader->slot);
    if (!loader->slot) {
        status = TR_ENOMEM;
        goto fail;
    }
    for (int i = 0; i < loader->slots; i++)
        TR_TRY_GOTO(tr_assembly_alloc(assembly, &loader->slot[i].batch), fail);
    if (assembly->options.prefetch > 0) TR_TRY_GOTO(make_lock(loader), fail);
    if (thread) TR_TRY_GOTO(start_reading(loader), fail);
    *out = loader;
    return TR_OK;
fail:
    tr_loader_destroy(&loader);
    return status;
}

void tr_loader_destroy(tr_loader **handle)
{
    tr_loader *loader = *handle;
    if (!loader) return;
    if (loader->reading) {
        pthread_mutex_lock(&loader->lock);
        loader->quit = true;
        pthread_cond_signal(&loader->wanted);
        pthread_mutex_unlock(&loader->lock);
        pthread_join(loader->thread, NULL);
    }
    if (loader->guarded) {
        pthread_cond_destroy(&loader->wanted);
        pthread_cond_destroy(&loader->changed);
        pthread_mutex_destroy(&loader->lock);
    }
    for (int i = 0; loader->slot && i < loader->slots; i++) tr_assembly_free(&loader->slot[i].batch);
    tr_order_reader_release(&loader->assembly.order);
    tr_free(loader->slot);
    tr_free(loader);
    *handle = NULL;
}

/* Looks for a while whether all that read are through; the lock is released meanwhile. A portion takes less
   time than sleep and wake-up. */
static void look_for_end(tr_loader *loader)
{
    pthread_mutex_unlock(&loader->lock);
    for (int i = 0; i < LOOKS && atomic_load_explicit(&loader->busy, memory_order_relaxed) > 0; i++)
        tr_pause();
    pthread_mutex_lock(&loader->lock);
}

/* Waits until the batch of `step` is ready; with help, the caller takes part in reading it. */
static void wait_for(tr_loader *loader, int64_t step)
{
    struct portion portion;
    pthread_mutex_lock(&loader->lock);
    if (loader->current < 0 || step < loader->current || step > loader->next) {
        /* A jump: batches read ahead are useless. */
        loader->current = -1;
        offer(loader);
        while (loader->busy > 0) pthread_cond_wait(&loader->changed, &loader->lock);
        loader->next = step;
        loader->begun = false;
    }
    loader->current = step;
    if (loader->paused > 0) loader->paused--;
    offer(loader);
    if (reader_may_read(loader)) pthread_cond_signal(&loader->wanted);
    while (loader->helped && loader->next <= step && take(loader, loader->portion, &portion))
        read_portion(loader, &portion);
    if (loader->helped && loader->next <= step) look_for_end(loader);
    while (loader->next <= step) pthread_cond_wait(&loader->changed, &loader->lock);
    pthread_mutex_unlock(&loader->lock);
}

tr_status tr_loader_get(tr_loader *loader, int64_t step, const struct tr_batch **out)
{
    if (step < 0) return tr_fail(TR_EINVAL, "step %" PRId64 " of a data set: steps count from 0", step);
    struct slot *slot = slot_of(loader, step);
    tr_span_begin(TR_ACTIVITY_INPUT, "read");
    if (loader->reading || loader->helped) {
        wait_for(loader, step);
    } else {
        fill(loader, step);
    }
    tr_span_end();
    if (slot->outcome.status != TR_OK) return tr_failure_restore(&slot->outcome);
    *out = &slot->batch;
    return TR_OK;
}

int64_t tr_loader_rows(const tr_loader *loader)
{
    return loader->assembly.capacity;
}

int64_t tr_loader_tokens(const tr_loader *loader)
{
    return loader->assembly.tokens;
}

int64_t tr_loader_second_tokens(const tr_loader *loader)
{
    return loader->assembly.second_tokens;
}
