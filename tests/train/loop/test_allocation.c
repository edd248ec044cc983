/* Memory: a step takes none, and when there is none anywhere, each failure is an error that leaves nothing
 * behind.
 *
 * Steps are watched twice: by the library's own count, and by counters in front of malloc and its kin, which
 * the linker puts there (--wrap), so that no allocation goes around tr_alloc().
 */
#include "support/training.h"

#include "base/alloc.h"

#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char out[SCRATCH_PATH];

/* ---- counting ---- */

static atomic_llong mallocs;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
    atomic_fetch_add(&mallocs, 1);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    atomic_fetch_add(&mallocs, 1);
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    atomic_fetch_add(&mallocs, 1);
    return __real_realloc(block, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    atomic_fetch_add(&mallocs, 1);
    return __real_aligned_alloc(alignment, size);
}

/* ---- steps ---- */

/* Lets a job run and looks at the steps from the third on: the first two may still size what depends on
 * shapes. */
static void watch_steps(const struct family *family, bool large, int threads, const char *extra)
{
    struct job job;
    if (large)
        family_job_large(&job, family, scratch_place);
    else
        family_job(&job, family, scratch_place);
    job.settings.threads = threads;
    job.settings.steps = 9;
    if (large) {
        job_set(&job, "train.batch=16");
        job_set(&job, "train.microbatches=3");
    }
    if (extra) job_set(&job, extra);
    tr_trainer *trainer = job_trainer(&job);
    int64_t library = 0;
    long long all = 0;
    for (int step = 0; step < 9; step++) {
        if (step == 2) {
            library = tr_alloc_total();
            all = atomic_load(&mallocs);
        }
        struct tr_train_event event = TR_TRAIN_EVENT_INIT;
        must_train(tr_trainer_step(trainer, &event));
        if (step < 2) continue;
        /* What a thread that reads ahead allocates between steps counts as well. */
        int64_t library_more = tr_alloc_total() - library;
        long long all_more = atomic_load(&mallocs) - all;
        if (library_more || all_more)
            fail_msg(
                "%s, %d threads, %s: by step %d there were %lld allocations through tr_alloc(), %lld in all",
                family->name, threads, extra ? extra : "as it is", step + 1, (long long)library_more,
                all_more);
    }
    tr_trainer_destroy(&trainer);
}

static void test_a_step_allocates_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < family_count; i++) {
        watch_steps(&families[i], false, 1, NULL);
        watch_steps(&families[i], false, 3, NULL);
        watch_steps(&families[i], false, 2, "train.pass=1");
        watch_steps(&families[i], false, 2, "train.prefetch=3");
        watch_steps(&families[i], false, 1, "optimizer.clip_norm=0.01");
        watch_steps(&families[i], false, 1, "train.on_nonfinite=skip");
    }
}

static void test_a_step_of_a_large_network_allocates_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        if (i != 1) watch_steps(&families[i], true, 2, NULL); /* the wide one would take 1 GB and long */
}

/* The counters would prove nothing if they were not in the way of the library's allocations. */
static void test_counters_count(void **state)
{
    (void)state;
    long long before = atomic_load(&mallocs);
    int64_t total = tr_alloc_total();
    void *blocks[] = {tr_alloc(1, 1), tr_alloc_zero(1, 1), tr_realloc(NULL, 1, 1), tr_alloc_aligned(1, 1)};
    assert_int_equal(tr_alloc_total() - total, 4);
    assert_int_equal(atomic_load(&mallocs) - before, 4);
    for (int i = 0; i < 4; i++) tr_free(blocks[i]);
}

/* ---- failures ---- */

/* Each life refuses one allocation: the first that no life before it refused. Allocations are told apart by
   the calls that lead to them; of those with the same calls the first two are refused, the second of which
   has something to undo. Data are opened on a thread of their own. */
enum { FRAMES = 24, PLACES = 1 << 15 };

static struct place {
    uint64_t calls; /* hash of the return addresses; 0: free */
    int came, refused;
} places[PLACES];
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
static bool refused_one;

static struct place *place_of_calls(void)
{
    void *frame[FRAMES];
    uint64_t hash = 0xcbf29ce484222325u;
    int frames = backtrace(frame, FRAMES);
    for (int i = 0; i < frames; i++) hash = (hash ^ (uintptr_t)frame[i]) * 0x100000001b3u;
    size_t at = hash % PLACES;
    while (places[at].calls && places[at].calls != hash) at = (at + 1) % PLACES;
    places[at].calls = hash;
    return &places[at];
}

static int refuse_one(size_t size, void *user)
{
    (void)size, (void)user;
    pthread_mutex_lock(&places_lock);
    struct place *place = place_of_calls();
    place->came++;
    bool refuse = !refused_one && place->came <= 2 && place->refused < place->came;
    if (refuse) place->refused = place->came;
    refused_one |= refuse;
    pthread_mutex_unlock(&places_lock);
    return refuse;
}

static void refuse_next(void)
{
    for (int i = 0; i < PLACES; i++) places[i].came = 0;
    refused_one = false;
    tr_alloc_set_hook(refuse_one, NULL);
}

static int warn_only(void *user, const struct tr_train_event *event)
{
    int *warnings = user;
    *warnings += event->kind == TR_EVENT_WARNING;
    return 0;
}

/* A whole life with an allocation refused: create, run with a checkpoint on the way, save, take up again.
   Returns whether everything was allowed. A refusal while a checkpoint on the way is saved, while
   the journal is written, or while an `observed` run writes for TensorBoard, is only a warning.
 */
static bool live_through(const struct family *family, bool observed)
{
    struct job job;
    tr_trainer *trainer = NULL;
    int warnings = 0;
    family_job(&job, family, scratch_place);
    job.settings.out = out;
    job.settings.steps = 2;
    job.settings.set = job.set;
    if (observed) {
        job.settings.tensorboard = out;
        job.settings.histograms = 1;
    }
    job_set(&job, "train.checkpoint_every=1");
    job_set(&job, "train.evaluate_every=1");
    job_set(&job, "train.prefetch=0"); /* a reader would still allocate when the hook is gone */
    refuse_next();
    tr_status status = tr_trainer_create(&job.settings, &trainer);
    if (status == TR_OK) status = tr_trainer_run(trainer, warn_only, &warnings);
    tr_trainer_destroy(&trainer);
    if (status == TR_OK && warnings == 0) {
        job.settings.resume = out;
        status = tr_trainer_create(&job.settings, &trainer);
        tr_trainer_destroy(&trainer);
    }
    tr_alloc_set_hook(NULL, NULL);
    if (refused_one && status != TR_ENOMEM && !(status == TR_OK && warnings == 1))
        fail_msg("%s: a refused allocation gives %s: %s", family->name, tr_status_name(status),
                 status == TR_OK ? "" : tr_error_message());
    if (!refused_one && status != TR_OK)
        fail_msg("%s, nothing refused: %s", family->name, tr_error_message());
    return !refused_one;
}

/* Lives on until one has all it asks for. */
static void check_failures(const struct family *family, bool observed)
{
    bool done = false;
    int lives = 0;
    for (; !done; lives++) {
        int64_t live = tr_alloc_live();
        done = live_through(family, observed);
        if (tr_alloc_live() != live)
            fail_msg("%s: refused allocation %d leaves %lld blocks behind", family->name, lives,
                     (long long)(tr_alloc_live() - live));
        if (tr_file_is_directory(out)) scratch_remove(out);
    }
    assert_true(lives > 1);
}

/* One loop, so that calls are the same for all. */
static void test_refused_allocations(void **state)
{
    static const struct {
        int family;
        bool observed;
    } lives[] = {{0, false}, {2, false}, {3, false}, {4, false}, {0, true}, {3, true}};
    (void)state;
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++)
        check_failures(&families[lives[i].family], lives[i].observed);
}

static int make_place(void **state)
{
    scratch_place_make(state);
    family_files(scratch_place);
    scratch_join(out, scratch_place, "out");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters_count),
        cmocka_unit_test(test_a_step_allocates_nothing),
        cmocka_unit_test(test_a_step_of_a_large_network_allocates_nothing),
        cmocka_unit_test(test_refused_allocations),
    };
    return cmocka_run_group_tests(tests, make_place, scratch_place_remove);
}
