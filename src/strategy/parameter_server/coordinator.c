/* The coordinator: the first server, which decides what happens and commands it. */
#include "strategy/parameter_server/schedule.h"
#include "strategy/parameter_server/server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Between two looks at the workers, and how long one that is lost is given for what it sent before. */
#define LOOK_SECONDS  0.05
#define GRACE_SECONDS 0.2

/* Figures of an update. The chief is told of them once it is complete. */
struct ps_update {
    int64_t examples;
    double loss, correct;
    bool spoiled; /* a loss of it is not finite */
};

struct ps_coordinator {
    ps_schedule *schedule;
    struct ps_colleague *colleague; /* [servers]; the first, ourselves, unused */
    struct ps_update update;        /* the one that is being collected, or was last */
    /* The chief. */
    bool chief_asks, chief_waits; /* for work; for news */
    struct ps_news news;          /* since it was last told */
    bool halted;                  /* something is not finite: no more work until the chief knows */
    bool settling;                /* the chief wants nobody to work */
    bool settled;                 /* and knows that nobody does */
    bool ending;                  /* the chief has ended the run */
    double next_look;
    int lost; /* workers */
    struct ps_table table;
    struct tr_rank_statistics *rank; /* [size], to be sent */
    /* Answers to MEASURE that have come. */
    int measured;
    double squares;
};

/* ---- making ---- */

static int64_t staleness_of(const struct ps *self)
{
    const struct ps_options *options = ps_options_of(self);
    if (options->mode != PS_BOUNDED) return PS_STALENESS_ANY;
    return options->staleness < 0 ? 2 * (int64_t)self->workers : options->staleness;
}

tr_status ps_coordinator_create(struct ps *self)
{
    struct ps_coordinator *coordinator = tr_alloc_zero(1, sizeof *coordinator);
    self->server->coordinator = coordinator;
    if (!coordinator) return TR_ENOMEM;
    coordinator->colleague = tr_alloc_zero((size_t)self->servers, sizeof *coordinator->colleague);
    coordinator->rank = tr_alloc_zero((size_t)self->head.size, sizeof *coordinator->rank);
    return coordinator->colleague && coordinator->rank ? TR_OK : TR_ENOMEM;
}

void ps_coordinator_cancel(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    bool back = true;
    if (!coordinator || !coordinator->colleague) return;
    for (int s = 1; s < self->servers; s++)
        back = tr_comm_cancel(self->head.comm, &coordinator->colleague[s].heard) && back;
    if (!back) coordinator->colleague = NULL; /* something may still arrive there */
}

void ps_coordinator_destroy(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    if (!coordinator) return;
    tr_free(coordinator->colleague);
    tr_free(coordinator->rank);
    ps_schedule_destroy(&coordinator->schedule);
    tr_free(coordinator);
    self->server->coordinator = NULL;
}

static tr_status listen_to(struct ps *self, int server)
{
    struct ps_colleague *colleague = &self->server->coordinator->colleague[server];
    return tr_comm_receive(self->head.comm, ps_server_rank(self, server), PS_TAG_REPORT, &colleague->report,
                           sizeof colleague->report, "report", &colleague->heard);
}

tr_status ps_coordinator_begin(struct ps *self)
{
    struct ps_schedule_settings settings = {
        .workers = self->workers,
        .first = self->first,
        .end = self->head.job->train.steps,
        .parts = self->parts,
        .staleness = staleness_of(self),
        .drops = ps_options_of(self)->mode == PS_BACKUP,
    };
    TR_TRY(ps_schedule_create(&settings, &self->server->coordinator->schedule));
    for (int s = 1; s < self->servers; s++) TR_TRY(listen_to(self, s));
    return TR_OK;
}

/* ---- commanding ---- */

static tr_status command(struct ps *self, const struct ps_command *order, struct ps_report *result)
{
    for (int s = 1; s < self->servers; s++)
        TR_TRY(ps_outbox_send(&self->outbox, ps_server_rank(self, s), PS_TAG_COMMAND, order, sizeof *order,
                              "command"));
    *result = (struct ps_report){.kind = -1};
    return ps_server_execute(self, order, result);
}

static tr_status tell(struct ps *self, int worker, const struct ps_down *text, const char *name)
{
    return ps_outbox_send(&self->outbox, worker, PS_TAG_DOWN, text, sizeof *text, name);
}

static bool can_hand_out(const struct ps_coordinator *coordinator)
{
    return !coordinator->ending && !coordinator->halted && !coordinator->settling;
}

/* Sends parameters, unless they are there already, and then the work. */
static tr_status give_work(struct ps *self, const struct ps_work *work, bool given)
{
    struct ps_command order = {.kind = PS_GIVE, .worker = work->worker, .give = -1};
    struct ps_down text = {.kind = PS_WORK, .number = work->number, .version = work->version};
    struct ps_report result;
    if (!given) TR_TRY(command(self, &order, &result));
    if (work->worker == 0)
        self->server->coordinator->chief_asks = self->server->coordinator->chief_waits = false;
    return tell(self, work->worker, &text, "work");
}

static bool has_news(const struct ps_coordinator *coordinator)
{
    const struct ps_news *news = &coordinator->news;
    return news->steps > 0 || news->bad_loss || news->poisoned;
}

/* The chief is to get news rather than work: where it waits for them, or where no work is left for it. */
static void recall_chief(struct ps_coordinator *coordinator)
{
    if (!coordinator->chief_asks || !has_news(coordinator)) return;
    if (!coordinator->chief_waits && !coordinator->halted && !ps_schedule_is_exhausted(coordinator->schedule))
        return;
    ps_schedule_withdraw(coordinator->schedule, 0);
    coordinator->chief_asks = false;
    coordinator->chief_waits = true;
}

/* Everybody who may begin now gets parameters and work. */
static tr_status hand_out(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_work work;
    recall_chief(coordinator);
    while (can_hand_out(coordinator) && ps_schedule_next(coordinator->schedule, &work))
        TR_TRY(give_work(self, &work, false));
    return TR_OK;
}

/* Tells the chief what it waits for, if there is something to tell. */
static tr_status inform_chief(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_down text = {
        .kind = PS_NEWS, .version = ps_schedule_count(coordinator->schedule), .news = coordinator->news};
    recall_chief(coordinator);
    if (!coordinator->chief_waits || !has_news(coordinator)) return TR_OK;
    coordinator->chief_waits = false;
    coordinator->news = (struct ps_news){0};
    return tell(self, 0, &text, "news");
}

/* ---- hearing ---- */

static tr_status hear_report(struct ps *self, const struct ps_report *report)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    switch ((enum ps_report_kind)report->kind) {
    case PS_HAVE:
        if (report->worker < 0 || report->worker >= self->workers) break;
        self->server->seat[report->worker].haves++;
        return TR_OK;
    case PS_MEASURED:
        coordinator->measured++;
        coordinator->squares += report->squares;
        return TR_OK;
    case PS_POISONED:
        coordinator->news.poisoned = coordinator->halted = true;
        return TR_OK;
    case PS_WISH:
        coordinator->news.wish |= report->wish;
        return TR_OK;
    }
    return tr_fail(TR_EMISMATCH, "a report of unknown kind %d about worker %d", report->kind, report->worker);
}

static tr_status hear_servers(struct ps *self, bool *quiet)
{
    for (int s = 1; s < self->servers; s++) {
        struct ps_colleague *colleague = &self->server->coordinator->colleague[s];
        if (!tr_comm_is_done(self->head.comm, &colleague->heard)) continue;
        *quiet = false;
        struct ps_report report = colleague->report;
        colleague->done = report.done;
        TR_TRY(listen_to(self, s));
        TR_TRY(hear_report(self, &report));
    }
    return TR_OK;
}

static tr_status send_statistics(struct ps *self)
{
    struct ps_server *server = self->server;
    struct ps_coordinator *coordinator = server->coordinator;
    struct tr_rank_statistics *rank = coordinator->rank;
    for (int w = 0; w < self->workers; w++) {
        rank[w] = server->seat[w].done;
        rank[w].contributions = server->seat[w].applied;
    }
    ps_own_statistics(self, &rank[self->workers]);
    for (int s = 1; s < self->servers; s++) rank[ps_server_rank(self, s)] = coordinator->colleague[s].done;
    TR_TRY(ps_outbox_send(&self->outbox, 0, PS_TAG_TABLE, &coordinator->table, sizeof coordinator->table,
                          "statistics"));
    return ps_outbox_send(&self->outbox, 0, PS_TAG_TABLE, rank, (size_t)self->head.size * sizeof *rank,
                          "statistics");
}

/* Answers the chief with the steps that it has not been told of; their figures come with the next news. */
static tr_status answer(struct ps *self, enum ps_down_kind kind)
{
    struct ps_news *news = &self->server->coordinator->news;
    struct ps_down text = {.kind = kind, .version = self->count, .news = {.steps = news->steps}};
    news->steps = 0;
    return tell(self, 0, &text, "state of the run");
}

static tr_status send_state(struct ps *self)
{
    struct ps_command order = {.kind = PS_SNAPSHOT, .worker = -1, .give = -1};
    struct ps_report result;
    TR_TRY(answer(self, PS_GATHERED));
    return command(self, &order, &result);
}

tr_status ps_coordinator_hear(struct ps *self, int worker)
{
    struct ps_seat *seat = &self->server->seat[worker];
    struct ps_coordinator *coordinator = self->server->coordinator;
    coordinator->news.wish |= seat->up.wish;
    seat->done = seat->up.done;
    switch ((enum ps_up_kind)seat->up.kind) {
    case PS_ASK:
        ps_schedule_ask(coordinator->schedule, worker);
        if (worker == 0) coordinator->chief_asks = true;
        if (worker == 0) coordinator->settling = coordinator->settled = false;
        return TR_OK;
    case PS_PUSH:
        if (!ps_schedule_works(coordinator->schedule, worker)) break;
        seat->pushed = seat->up;
        seat->haves++;
        return TR_OK;
    case PS_SETTLE:
        coordinator->settling = true;
        return TR_OK;
    case PS_GATHER:
        return send_state(self);
    case PS_STATISTICS:
        return send_statistics(self);
    case PS_END:
        coordinator->ending = true;
        return TR_OK;
    }
    return tr_fail(TR_EMISMATCH, "worker %d says something out of turn (%d)", worker, seat->up.kind);
}

/* ---- gradients ---- */

/* The norm of the gradient that is about to be applied, over all servers. */
static tr_status measure(struct ps *self, const struct ps_command *update, double *norm)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_command order = *update;
    struct ps_report result;
    order.kind = PS_MEASURE;
    coordinator->measured = 0;
    coordinator->squares = 0;
    TR_TRY(command(self, &order, &result));
    for (double began = tr_clock_seconds(); coordinator->measured < self->servers - 1;) {
        bool quiet = true;
        TR_TRY(tr_comm_progress(self->head.comm));
        TR_TRY(hear_servers(self, &quiet));
        TR_TRY(ps_watch_look(&self->watch));
        if (quiet) tr_comm_idle(self->head.comm, ps_nap(tr_clock_seconds() - began));
    }
    *norm = sqrt(coordinator->squares + result.squares);
    return TR_OK;
}

/* Has the chosen gradient applied, unless it is not finite and such are left out. *given becomes -1 if it
   was, and the parameters were given on. */
static tr_status apply(struct ps *self, struct ps_command *order, int *given)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    const struct tr_job *job = self->head.job;
    struct ps_report result;
    double norm = 0;
    order->clip = 1;
    if (tr_strategy_measures(job)) {
        TR_TRY(measure(self, order, &norm));
        order->chosen = true;
        double most = job->optimizer.clip_norm;
        if (most > 0 && norm > most) order->clip = (float)(most / norm);
        if (!isfinite(norm) && job->train.on_nonfinite == TR_NONFINITE_SKIP) {
            coordinator->news.skipped = true;
            return TR_OK;
        }
        coordinator->news.norms += norm;
        coordinator->news.measured++;
    }
    TR_TRY(command(self, order, &result));
    *given = -1;
    if (result.kind == PS_POISONED) coordinator->news.poisoned = coordinator->halted = true;
    return TR_OK;
}

static void count_staleness(struct ps_coordinator *coordinator, int64_t missed)
{
    int64_t last = TR_STALENESS_BINS - 1;
    coordinator->table.staleness[missed < last ? missed : last]++;
}

/* A gradient that is taken becomes part of an update; the last one of it completes it. *give, unless -1, is
   the worker that gets the new parameters, and becomes -1 if it got them with the update. */
static tr_status use(struct ps *self, int worker, const struct ps_taken *taken, int *give)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    const struct ps_up *push = &self->server->seat[worker].pushed;
    struct ps_command order = {.worker = worker, .give = -1, .first = taken->first, .factor = 1};
    struct ps_report result;
    if (self->parts > 1) {
        /* Each is the mean over its own examples; together they shall be the mean over all of them. */
        order.kind = PS_ADD;
        order.factor = (float)push->examples;
        TR_TRY(command(self, &order, &result));
        order.worker = -1;
        order.factor = coordinator->update.examples > 0 ? 1 / (float)coordinator->update.examples : 0;
    }
    if (!taken->completes || coordinator->update.spoiled) return TR_OK;
    order.kind = PS_UPDATE;
    order.give = *give;
    order.count = ps_schedule_count(coordinator->schedule) - 1;
    return apply(self, &order, give);
}

/* Adds a contribution to the figures of its update, and tells the chief of updates that are complete. A loss
   that is not finite spoils the update, or halts the run as if it were complete. */
static void note(struct ps *self, const struct ps_up *push, const struct ps_taken *taken)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_update *update = &coordinator->update;
    struct ps_news *news = &coordinator->news;
    if (taken->first) *update = (struct ps_update){0};
    if (isfinite(push->loss)) {
        update->examples += push->examples;
        update->loss += push->loss;
        update->correct += push->correct;
    } else {
        update->spoiled = true;
    }
    bool skips = self->head.job->train.on_nonfinite == TR_NONFINITE_SKIP;
    bool bad = update->spoiled && !skips;
    if (!taken->completes && !bad) return;
    news->steps++;
    news->examples += update->examples;
    news->loss += update->loss;
    news->correct += update->correct;
    if (bad) news->bad_loss = coordinator->halted = true;
    if (update->spoiled && skips) news->skipped = true;
}

/* All servers have the gradient of a worker. */
static tr_status arrive(struct ps *self, int worker)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_seat *seat = &self->server->seat[worker];
    struct ps_taken taken = ps_schedule_take(coordinator->schedule, worker);
    seat->haves = 0;
    if (worker == 0) coordinator->chief_waits = true;
    /* The chief asks again only if its gradient is not news yet and too few others might be left. */
    if (worker > 0 || (!taken.late && !taken.completes)) ps_schedule_ask(coordinator->schedule, worker);
    if (worker == 0) coordinator->chief_asks = !taken.late && !taken.completes;
    if (taken.late) {
        coordinator->table.dropped++;
        return TR_OK;
    }
    if (coordinator->halted) return TR_OK; /* what was bad stays the last step */
    count_staleness(coordinator, taken.missed);
    seat->applied++;
    note(self, &seat->pushed, &taken);
    recall_chief(coordinator);
    /* Whoever may begin with the new parameters gets them in the pass that makes them. */
    struct ps_work work = {.worker = -1};
    if (can_hand_out(coordinator) && ps_schedule_next(coordinator->schedule, &work)) {
        int give = work.worker;
        TR_TRY(use(self, worker, &taken, &give));
        return give_work(self, &work, give < 0);
    }
    int none = -1;
    return use(self, worker, &taken, &none);
}

/* ---- workers that are lost ---- */

static tr_status lose(struct ps *self, int worker, const char *why)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_command order = {.kind = PS_DROP, .worker = worker, .give = -1};
    struct ps_down fence = {.kind = PS_FENCED};
    struct ps_report result;
    int64_t number = ps_schedule_lose(coordinator->schedule, worker);
    char again[96] = "";
    if (number >= 0)
        snprintf(again, sizeof again, "; batch %lld is computed by another",
                 (long long)(number / self->parts));
    tr_log_line(TR_LOG_WARNING, "after step %lld: worker %d on host %s %s; going on without it%s",
                (long long)self->count, worker, tr_comm_host(self->head.comm, worker), why, again);
    coordinator->lost++;
    self->server->seat[worker].haves = 0;
    TR_TRY(command(self, &order, &result));
    return tell(self, worker, &fence, "end of the part in the run"); /* should it come to life again */
}

static tr_status look_after_workers(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    double now = tr_clock_seconds();
    if (now < coordinator->next_look) return TR_OK;
    coordinator->next_look = now + LOOK_SECONDS;
    for (int w = 1; w < self->workers; w++) {
        struct ps_seat *seat = &self->server->seat[w];
        char why[256];
        if (seat->gone || seat->ended) continue;
        if (tr_comm_life(self->head.comm, w, why, sizeof why) == TR_COMM_ALIVE)
            seat->troubled = 0;
        else if (seat->troubled == 0)
            seat->troubled = now;
        else if (now - seat->troubled > GRACE_SECONDS)
            TR_TRY(lose(self, w, why));
    }
    return TR_OK;
}

/* ---- the end ---- */

/* Whether a worker has work. */
static bool anybody_works(struct ps *self)
{
    bool works = false;
    for (int w = 0; w < self->workers; w++)
        works = works || ps_schedule_works(self->server->coordinator->schedule, w);
    return works;
}

static tr_status settle(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    if (!coordinator->settling || coordinator->settled || anybody_works(self)) return TR_OK;
    coordinator->settled = true;
    return answer(self, PS_SETTLED);
}

/* Releases the workers as they have no work any more, then the servers and the chief. */
static tr_status finish(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_down text = {.kind = PS_ENDED, .lost = coordinator->lost};
    struct ps_report result;
    bool all = true;
    for (int w = 1; w < self->workers; w++) {
        struct ps_seat *seat = &self->server->seat[w];
        if (seat->gone || seat->ended) continue;
        if (ps_schedule_works(coordinator->schedule, w)) {
            all = false;
            continue;
        }
        seat->ended = true;
        TR_TRY(tell(self, w, &text, "end of the run"));
    }
    if (!all) return TR_OK;
    struct ps_command order = {.kind = PS_FINISH, .worker = -1, .give = -1, .lost = coordinator->lost};
    TR_TRY(tell(self, 0, &text, "end of the run"));
    return command(self, &order, &result);
}

tr_status ps_coordinator_turn(struct ps *self, int32_t wish, bool *quiet)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    coordinator->news.wish |= wish;
    TR_TRY(hear_servers(self, quiet));
    for (int w = 0; w < self->workers; w++)
        if (self->server->seat[w].haves == self->servers) TR_TRY(arrive(self, w));
    TR_TRY(look_after_workers(self));
    TR_TRY(hand_out(self));
    TR_TRY(inform_chief(self));
    TR_TRY(settle(self));
    return coordinator->ending ? finish(self) : TR_OK;
}
