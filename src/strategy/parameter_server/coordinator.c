/* The coordinator: the first server, which decides and commands. */
#include "strategy/parameter_server/coordinator.h"

#include "base/alloc.h"
#include "base/fail.h"

/* ---- making ---- */

tr_status ps_coordinator_create(struct ps *self)
{
    struct ps_coordinator *coordinator = tr_alloc_zero(1, sizeof *coordinator);
    self->server->coordinator = coordinator;
    if (!coordinator) return TR_ENOMEM;
    coordinator->colleague = tr_alloc_zero((size_t)self->servers, sizeof *coordinator->colleague);
    coordinator->rank = tr_alloc_zero((size_t)self->head.size, sizeof *coordinator->rank);
    if (!coordinator->colleague || !coordinator->rank) return TR_ENOMEM;
    TR_TRY(ps_credits_create(self->workers, self->credits, &coordinator->incoming));
    return ps_credits_create(self->workers, self->credits, &coordinator->outgoing);
}

void ps_coordinator_cancel(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    bool back = true;
    if (!coordinator || !coordinator->colleague) return;
    for (int s = 1; s < self->servers; s++)
        back = tr_comm_cancel(self->head.comm, &coordinator->colleague[s].heard) && back;
    if (!back) coordinator->colleague = NULL; /* a message may still arrive there */
}

void ps_coordinator_destroy(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    if (!coordinator) return;
    tr_free(coordinator->colleague);
    tr_free(coordinator->rank);
    tr_update_log_release(&coordinator->updates);
    ps_schedule_destroy(&coordinator->schedule);
    ps_assignment_destroy(&coordinator->assignment);
    ps_credits_destroy(&coordinator->incoming);
    ps_credits_destroy(&coordinator->outgoing);
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
    /* A resumed run may have done more steps than requested: then it is at its end. */
    const int64_t steps = self->head.job->train.steps;
    struct ps_schedule_settings settings = {
        .workers = self->workers,
        .first = self->first,
        .end = steps > self->first ? steps : self->first,
        .parts = self->parts,
        .staleness = ps_staleness(self),
        .drops = ps_options_of(self)->mode == PS_BACKUP,
        .distant = self->distant,
    };
    self->server->coordinator->logged = self->first;
    TR_TRY(ps_schedule_create(&settings, &self->server->coordinator->schedule));
    for (int s = 1; s < self->servers; s++) TR_TRY(listen_to(self, s));
    return TR_OK;
}

/* ---- commanding ---- */

tr_status ps_coordinator_command(struct ps *self, const struct ps_command *order, struct ps_report *result)
{
    for (int s = 1; s < self->servers; s++)
        TR_TRY(ps_outbox_send(&self->outbox, ps_server_rank(self, s), PS_TAG_COMMAND, order, sizeof *order,
                              "command"));
    *result = (struct ps_report){.kind = -1};
    return ps_server_execute(self, order, result);
}

tr_status ps_coordinator_tell(struct ps *self, int worker, const struct ps_down *text, const char *name)
{
    return ps_outbox_send(&self->outbox, worker, PS_TAG_DOWN, text, sizeof *text, name);
}

static bool can_hand_out(const struct ps_coordinator *coordinator)
{
    return !coordinator->ending && !coordinator->halted && !coordinator->settling;
}

bool ps_coordinator_draw(struct ps *self, struct ps_work *work)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    if (!can_hand_out(coordinator) || ps_assignment_is_open(coordinator->assignment) ||
        !ps_schedule_next(coordinator->schedule, ps_credits_free(coordinator->outgoing) > 0, work))
        return false;
    if (self->distant[work->worker]) ps_credits_take(coordinator->outgoing, work->worker);
    return true;
}

/* Makes all servers keep room for the gradient of a worker that was granted it. */
static tr_status expect(struct ps *self, int worker)
{
    struct ps_command order = {.kind = PS_EXPECT, .worker = worker, .give = -1};
    struct ps_report result;
    return ps_coordinator_command(self, &order, &result);
}

tr_status ps_coordinator_give(struct ps *self, const struct ps_work *work, bool given)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_command order = {.kind = PS_GIVE, .worker = work->worker, .give = -1};
    struct ps_down text = {.kind = PS_WORK, .number = work->number, .version = work->version};
    struct ps_report result;
    if (!given) TR_TRY(ps_coordinator_command(self, &order, &result));
    self->server->peer[work->worker].shown = false; /* the buffer of what it had to evaluate was reused */
    if (work->worker == 0) coordinator->root_asks = coordinator->root_waits = false;
    if (self->distant[work->worker] && ps_is_roomy(self)) {
        ps_credits_take(coordinator->incoming, work->worker);
        TR_TRY(expect(self, work->worker));
        text.granted = true;
    }
    return ps_coordinator_tell(self, work->worker, &text, "work");
}

static bool has_news(const struct ps_coordinator *coordinator)
{
    const struct ps_news *news = &coordinator->news;
    return news->steps > 0 || news->bad_loss || news->poisoned;
}

void ps_coordinator_recall_root(struct ps_coordinator *coordinator)
{
    if (!coordinator->root_asks || !has_news(coordinator)) return;
    if (!coordinator->root_waits && !coordinator->halted && !ps_schedule_is_exhausted(coordinator->schedule))
        return;
    ps_schedule_withdraw(coordinator->schedule, 0);
    coordinator->root_asks = false;
    coordinator->root_waits = true;
}

/* All workers that may begin now get parameters and work. */
static tr_status hand_out(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_work work;
    ps_coordinator_recall_root(coordinator);
    while (ps_coordinator_draw(self, &work)) TR_TRY(ps_coordinator_give(self, &work, false));
    return TR_OK;
}

/* Grants room to waiting gradients, as far as there is any. */
static tr_status grant(struct ps *self)
{
    struct ps_down text = {.kind = PS_GRANTED};
    int worker;
    while (ps_credits_next(self->server->coordinator->incoming, &worker)) {
        TR_TRY(expect(self, worker));
        TR_TRY(ps_coordinator_tell(self, worker, &text, "room for a gradient"));
    }
    return TR_OK;
}

/* Sends the root the news that it waits for, if there is any. */
static tr_status inform_root(struct ps *self)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    struct ps_down text = {
        .kind = PS_NEWS, .version = ps_schedule_count(coordinator->schedule), .news = coordinator->news};
    ps_coordinator_recall_root(coordinator);
    if (!coordinator->root_waits || !has_news(coordinator)) return TR_OK;
    coordinator->root_waits = false;
    coordinator->news = (struct ps_news){0};
    return ps_coordinator_tell_root(self, &text, TR_UPDATE_TOLD, "news");
}

/* ---- hearing ---- */

static tr_status hear_report(struct ps *self, struct ps_colleague *colleague, const struct ps_report *report)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    switch ((enum ps_report_kind)report->kind) {
    case PS_HAVE:
        if (report->worker < 0 || report->worker >= self->workers) break;
        self->server->peer[report->worker].haves++;
        return TR_OK;
    case PS_MEASURED:
        coordinator->measured++;
        colleague->squares = report->squares;
        return TR_OK;
    case PS_POISONED:
        coordinator->news.poisoned = coordinator->halted = true;
        return TR_OK;
    case PS_REQUEST:
        coordinator->news.request |= report->request;
        return TR_OK;
    }
    return tr_fail(TR_EMISMATCH, "a report of unknown kind %d about worker %d", report->kind, report->worker);
}

tr_status ps_coordinator_hear_servers(struct ps *self, bool *quiet)
{
    for (int s = 1; s < self->servers; s++) {
        struct ps_colleague *colleague = &self->server->coordinator->colleague[s];
        if (!tr_comm_is_done(self->head.comm, &colleague->heard)) continue;
        *quiet = false;
        struct ps_report report = colleague->report;
        colleague->done = report.done;
        TR_TRY(listen_to(self, s));
        TR_TRY(hear_report(self, colleague, &report));
    }
    return TR_OK;
}

static tr_status send_statistics(struct ps *self)
{
    struct ps_server *server = self->server;
    struct ps_coordinator *coordinator = server->coordinator;
    struct tr_rank_statistics *rank = coordinator->rank;
    for (int w = 0; w < self->workers; w++) {
        rank[w] = server->peer[w].done;
        rank[w].contributions = server->peer[w].applied;
    }
    ps_own_statistics(self, &rank[self->workers]);
    for (int s = 1; s < self->servers; s++) rank[ps_server_rank(self, s)] = coordinator->colleague[s].done;
    TR_TRY(ps_outbox_send(&self->outbox, 0, PS_TAG_TABLE, &coordinator->table, sizeof coordinator->table,
                          "statistics"));
    return ps_outbox_send(&self->outbox, 0, PS_TAG_TABLE, rank, (size_t)self->head.size * sizeof *rank,
                          "statistics");
}

tr_status ps_coordinator_answer(struct ps *self, enum ps_down_kind kind)
{
    struct ps_news *news = &self->server->coordinator->news;
    struct ps_down text = {.kind = kind, .version = self->count, .news = {.steps = news->steps}};
    news->steps = 0;
    return ps_coordinator_tell_root(self, &text, kind == PS_DRAINED ? TR_UPDATE_DRAINED : TR_UPDATE_GATHERED,
                                    "state of the run");
}

static tr_status send_state(struct ps *self)
{
    struct ps_command order = {.kind = PS_SNAPSHOT, .worker = -1, .give = -1};
    struct ps_report result;
    TR_TRY(ps_coordinator_answer(self, PS_GATHERED));
    return ps_coordinator_command(self, &order, &result);
}

tr_status ps_coordinator_hear(struct ps *self, int worker)
{
    struct ps_peer *peer = &self->server->peer[worker];
    struct ps_coordinator *coordinator = self->server->coordinator;
    coordinator->news.request |= peer->up.request;
    peer->done = peer->up.done;
    switch ((enum ps_up_kind)peer->up.kind) {
    case PS_ASK:
        ps_schedule_ask(coordinator->schedule, worker);
        if (worker == 0) coordinator->root_asks = true;
        if (worker == 0) coordinator->settling = coordinator->settled = false;
        return TR_OK;
    case PS_GOT:
        ps_credits_leave(coordinator->outgoing, worker);
        return TR_OK;
    case PS_OFFER:
        if (!ps_schedule_works(coordinator->schedule, worker)) break;
        if (!self->distant[worker] || ps_credits_has(coordinator->incoming, worker)) break;
        ps_credits_ask(coordinator->incoming, worker);
        return TR_OK;
    case PS_PUSH:
        if (!ps_schedule_works(coordinator->schedule, worker)) break;
        peer->pushed = peer->up;
        peer->haves++;
        return TR_OK;
    case PS_DRAIN:
        coordinator->settling = true;
        return TR_OK;
    case PS_GATHER:
        return send_state(self);
    case PS_EVALUATE:
        coordinator->root_evaluates = true;
        return ps_coordinator_begin_evaluation(self, &peer->up.evaluation);
    case PS_EVALUATED:
        return ps_coordinator_hear_evaluated(self, worker);
    case PS_STATISTICS:
        return send_statistics(self);
    case PS_END:
        coordinator->ending = true;
        return TR_OK;
    }
    return tr_fail(TR_EMISMATCH,
                   "worker %d sent an unexpected message (kind %d); all ranks must run the same program",
                   worker, peer->up.kind);
}

/* ---- a turn ---- */

tr_status ps_coordinator_turn(struct ps *self, int32_t request, bool *quiet)
{
    struct ps_coordinator *coordinator = self->server->coordinator;
    coordinator->news.request |= request;
    TR_TRY(ps_coordinator_hear_servers(self, quiet));
    for (int w = 0; w < self->workers; w++)
        if (self->server->peer[w].haves == self->servers) TR_TRY(ps_coordinator_take(self, w));
    TR_TRY(ps_coordinator_look_after(self));
    TR_TRY(grant(self));
    TR_TRY(ps_coordinator_evaluate(self));
    TR_TRY(hand_out(self));
    TR_TRY(inform_root(self));
    TR_TRY(ps_coordinator_settle(self));
    return coordinator->ending ? ps_coordinator_finish(self) : TR_OK;
}
