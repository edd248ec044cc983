#include "job/opening.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/thread.h"

#include <pthread.h>
#include <string.h>

static const enum tr_data_set wanted[] = {TR_SET_TRAIN, TR_SET_TEST};
#define WANTED (sizeof wanted / sizeof wanted[0])

struct tr_opening {
    struct tr_job *job;
    pthread_t thread;
    bool threaded;
    tr_source *source[TR_SETS];
    struct tr_failure failure; /* kept here, since messages belong to threads */
};

/* The job must not be changed yet, so the state that other sets share with the training data is kept here. */
static tr_status open_all(tr_opening *opening, char **state)
{
    const struct tr_job *job = opening->job;
    for (size_t i = 0; i < WANTED; i++) {
        enum tr_data_set set = wanted[i];
        if (job->source[set] || !tr_job_has_set(job, set)) continue;
        TR_TRY(tr_job_open_source(job, set, *state, &opening->source[set]));
        const char *name;
        if (set == TR_SET_TRAIN && !job->state) TR_TRY(tr_source_state(opening->source[set], &name, state));
    }
    return TR_OK;
}

static void *open_sets(void *user)
{
    tr_opening *opening = user;
    char *state = NULL;
    tr_failure_keep(&opening->failure, open_all(opening, &state));
    tr_free(state);
    return NULL;
}

tr_status tr_opening_begin(struct tr_job *job, tr_opening **out)
{
    tr_opening *opening = tr_alloc_zero(1, sizeof *opening);
    if (!opening) return TR_ENOMEM;
    opening->job = job;
    opening->threaded = tr_thread_start(&opening->thread, open_sets, opening) == 0;
    *out = opening;
    return TR_OK;
}

static tr_status hand_over(tr_opening *opening)
{
    if (opening->failure.status != TR_OK) return tr_failure_restore(&opening->failure);
    for (size_t i = 0; i < WANTED; i++) {
        tr_source *source = opening->source[wanted[i]];
        opening->source[wanted[i]] = NULL;
        if (source) TR_TRY(tr_job_take_source(opening->job, wanted[i], source));
    }
    return TR_OK;
}

tr_status tr_opening_finish(tr_opening **handle, bool abandon)
{
    tr_opening *opening = *handle;
    if (!opening) return TR_OK;
    if (opening->threaded)
        pthread_join(opening->thread, NULL);
    else if (!abandon)
        open_sets(opening);
    tr_status status = abandon ? TR_OK : hand_over(opening);
    for (int i = 0; i < TR_SETS; i++) tr_source_close(&opening->source[i]);
    tr_free(opening);
    *handle = NULL;
    return status;
}
