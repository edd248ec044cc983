#include "strategy/all_reduce/shrink.h"

#include "support/comm_thread/thread.h"
#include "train/loop/trainer.h"

#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct part {
    struct plan *plan;
    struct rank *rank;
    tr_trainer *trainer;
    int number, layers, updates;
    int64_t step; /* that these are of */
};

static struct plan *plan_of_all; /* threads see one, processes copies */

/* This rank dies here, in mid-step. */
static tr_status die(struct part *part)
{
    ranks_die(part->rank->comm);
    return tr_fail(TR_EPEER, "this rank was to die here");
}

/* Whether the rank is to die at this call, the `calls`th of the step. */
static bool is_due(struct part *part, enum place place, int calls)
{
    for (int i = 0; i < BLOWS; i++) {
        const struct blow *blow = &part->plan->blow[i];
        if (blow->place == place && blow->victim == part->number &&
            blow->step == trainer_steps_done(part->trainer) && blow->nth == calls)
            return true;
    }
    return false;
}

static void enter_step(struct part *part)
{
    if (part->step == trainer_steps_done(part->trainer)) return;
    part->step = trainer_steps_done(part->trainer);
    part->layers = part->updates = 0;
}

static tr_status at_layer(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    struct part *part = user;
    (void)layer, (void)output, (void)count;
    enter_step(part);
    return is_due(part, AT_LAYER, part->layers++) ? die(part) : TR_OK;
}

static tr_status at_update(void *user, const float *gradient, int64_t begin, int64_t end)
{
    struct part *part = user;
    (void)gradient;
    enter_step(part);
    if (begin == end || !is_due(part, AT_UPDATE, part->updates++)) return TR_OK;
    for (int i = 0; i < TR_ARENAS; i++) {
        float *arena = tr_variables_arena(trainer_variables(part->trainer), (enum tr_arena)i);
        for (int64_t k = begin; arena && k < end; k += 3) arena[k] = 1e30F;
    }
    return die(part);
}

static int hear(void *user, const struct tr_train_event *event)
{
    struct part *part = user;
    struct outcome *outcome = &part->rank->outcome;
    if (event->kind == TR_EVENT_SHARES) snprintf(outcome->shares, sizeof outcome->shares, "%s", event->name);
    for (int i = 0; i < BLOWS; i++) {
        const struct blow *blow = &part->plan->blow[i];
        if (part->plan->dealt[i] || blow->place != AT_EVENT || blow->event != event->kind ||
            event->step < blow->step)
            continue;
        part->plan->dealt[i] = true;
        if (blow->victim == part->number)
            ranks_die(part->rank->comm);
        else if (!ranks_are_processes())
            tr_comm_thread_kill(part->plan->comm[blow->victim]);
    }
    return 0;
}

static void *run_part(void *user)
{
    struct rank *rank = user;
    struct part part = {.plan = plan_of_all, .rank = rank, .number = tr_comm_rank(rank->comm), .step = -1};
    struct outcome *outcome = &rank->outcome;
    *outcome = (struct outcome){.step = -1};
    part.plan->comm[part.number] = rank->comm;
    outcome->status = trainer_create(rank->settings, rank->comm, &part.trainer);
    if (outcome->status == TR_OK) {
        tr_strategy_observe(trainer_strategy(part.trainer), TR_OBSERVER_DIGESTS,
                            (struct tr_strategy_observer){at_layer, at_update, &part});
        outcome->status = tr_trainer_run(part.trainer, hear, &part);
    }
    snprintf(outcome->message, sizeof outcome->message, "%s",
             outcome->status == TR_OK ? "" : tr_error_message());
    if (outcome->status == TR_OK) {
        outcome->step = trainer_steps_done(part.trainer);
        if (tr_trainer_hash(part.trainer, outcome->hash) != TR_OK) outcome->hash[0] = '\0';
    } else if (!part.trainer) {
        tr_comm_abort(rank->comm, outcome->message);
    }
    tr_trainer_destroy(&part.trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* ---- checks ---- */

static bool is_victim(const struct plan *plan, int rank)
{
    for (int i = 0; i < BLOWS; i++)
        if (plan->blow[i].victim == rank && plan->blow[i].place != NOWHERE) return true;
    return false;
}

void shrink_run(struct job *job, const struct plan *blows, int size, int apart, struct rank *ranks)
{
    struct plan plan = *blows;
    plan_of_all = &plan;
    job->settings.outlives = true;
    run_ranks_by(run_part, &job->settings, size, apart, ranks);
    job->settings.outlives = false;
}

void shrink_expect_of(struct job *job, const struct outcome *alone, const struct plan *blows, int size,
                      int apart, const char *how, char shares[SHARES])
{
    struct rank ranks[RANKS];
    shrink_run(job, blows, size, apart, ranks);
    shares[0] = '\0';
    for (int r = 0; r < size; r++) {
        const struct outcome *outcome = &ranks[r].outcome;
        if (outcome->status == TR_OK && outcome->shares[0]) memcpy(shares, outcome->shares, SHARES);
        if (is_victim(blows, r)) {
            if (outcome->status == TR_OK) fail_msg("%s: rank %d lives", how, r);
        } else if (outcome->status != TR_OK) {
            fail_msg("%s, rank %d of %d: %s", how, r, size, outcome->message);
        } else if (strcmp(outcome->hash, alone->hash) != 0 || outcome->step != alone->step) {
            fail_msg("%s, rank %d of %d: hash %s after %lld steps, one process has %s", how, r, size,
                     outcome->hash, (long long)outcome->step, alone->hash);
        }
    }
}

void shrink_expect(struct job *job, const struct outcome *alone, const struct plan *blows, int size,
                   const char *how)
{
    char shares[SHARES];
    shrink_expect_of(job, alone, blows, size, 0, how, shares);
}

void shrink_begin(struct job *job, const struct family *family, struct outcome *alone)
{
    family_job(job, family, family_place);
    job_set(job, "train.microbatches=5");
    job_set(job, "train.evaluate_every=2");
    job->settings.set = job->set;
    job->settings.steps = STEPS;
    job_outcome(job, alone);
    if (alone->status != TR_OK) fail_msg("%s: %s", family->name, alone->message);
}
