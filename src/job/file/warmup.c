#include "job/file/warmup.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/log.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <math.h>

/* Longer than any warm-up. */
#define ENDLESS ((int64_t)1 << 53)

static int64_t number_of(const tr_config *train, const char *key)
{
    int64_t value = 0;
    const tr_config *node = tr_config_get(train, key);
    bool given =
        node && tr_config_kind(node) == TR_CONFIG_SCALAR && !tr_text_int64(tr_config_text(node), &value);
    return given && value > 0 ? value : 0;
}

void tr_warmup_record(struct tr_job *job, const struct tr_job_settings *settings)
{
    const tr_config *train = tr_config_get(job->root, "train");
    if (settings->steps <= 0 && settings->epochs <= 0) return;
    job->meant.steps = number_of(train, "steps");
    job->meant.epochs = number_of(train, "epochs");
}

/* The length of a cosine or a line over the whole training; 0 for any other schedule. */
static int64_t warmup_of(const struct tr_job *job)
{
    struct tr_optimizer optimizer;
    bool good = tr_optimizer_read(job->file.optimizer, ENDLESS, &optimizer) == TR_OK;
    bool ends =
        optimizer.schedule.kind == TR_SCHEDULE_COSINE || optimizer.schedule.kind == TR_SCHEDULE_LINEAR;
    bool whole = good && ends && optimizer.schedule.steps == ENDLESS;
    return whole ? optimizer.schedule.warmup : 0;
}

bool tr_warmup_is_long(const struct tr_job *job)
{
    bool replaced = job->meant.steps > 0 || job->meant.epochs > 0;
    return replaced && job->train.steps > 0 && warmup_of(job) >= job->train.steps;
}

bool tr_warmup_needs_data(const struct tr_job *job)
{
    return job->meant.epochs > 0 && tr_warmup_is_long(job);
}

tr_status tr_warmup_shrink(struct tr_job *job)
{
    int64_t steps = job->train.steps, meant = job->meant.steps;
    if (!tr_warmup_is_long(job)) return TR_OK;
    int64_t warmup = warmup_of(job);
    if (job->meant.epochs > 0 &&
        __builtin_mul_overflow(tr_job_steps_per_epoch(job), job->meant.epochs, &meant))
        return TR_OK;
    if (warmup >= meant) return TR_OK; /* the file itself is invalid, which reading it reports */
    int64_t less = (int64_t)floor((double)warmup / (double)meant * (double)steps + 0.5);
    if (less < 1) less = 1;
    if (less >= steps) less = steps - 1;
    char *assignment = tr_format("optimizer.schedule.warmup=%" PRId64, less);
    tr_status status = assignment ? tr_config_set(job->root, assignment) : TR_ENOMEM;
    tr_free(assignment);
    if (status != TR_OK) return status;
    job->file.optimizer = tr_config_get(job->root, "optimizer");
    tr_log_line(TR_LOG_WARNING,
                "a warm-up of %" PRId64 " steps leaves nothing of %" PRId64 "; it takes %" PRId64
                ", the same share as of the %" PRId64 " steps that the model file trains",
                warmup, steps, less, meant);
    return TR_OK;
}
