/* A worker's part: from work to gradient; and what the chief does besides. */
#include "strategy/parameter_server/parameter_server.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/tree.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* A server, as a worker sees it. */
struct line {
    int rank;
    bool near;
    int64_t begin, end; /* its share */
    struct ps_down down;
    tr_ticket *heard; /* the word that is awaited */
    /* Of the gradient on its way, if it is far: */
    tr_ticket **pushing; /* [pieces] */
    int pieces, pushed;  /* in all, and those that were sent */
};

struct ps_worker {
    struct line *line; /* [servers]; the first is the coordinator */
    struct ps_table table;
};

/* ---- making ---- */

static tr_status make_line(struct ps *self, int server)
{
    int rank = ps_server_rank(self, server);
    struct line *line = &self->worker->line[server];
    *line = (struct line){
        .rank = rank,
        .near = ps_is_near(self, rank),
        .begin = self->share[server],
        .end = self->share[server + 1],
        .pieces = ps_pieces(self, server),
    };
    if (line->near) return TR_OK;
    line->pushing = tr_alloc_zero((size_t)line->pieces + 1, sizeof *line->pushing);
    return line->pushing ? TR_OK : TR_ENOMEM;
}

static tr_status listen(void *user, int64_t from);

tr_status ps_worker_create(struct ps *self)
{
    struct tr_strategy *head = &self->head;
    struct tr_gradient_part part = {
        .end = head->job->train.microbatches,
        .end_step = head->job->train.steps,
        .alone = self->parts > 1,
    };
    self->worker = tr_alloc_zero(1, sizeof *self->worker);
    if (!self->worker) return TR_ENOMEM;
    self->worker->line = tr_alloc_zero((size_t)self->servers, sizeof *self->worker->line);
    if (!self->worker->line) return TR_ENOMEM;
    for (int s = 0; s < self->servers; s++) TR_TRY(make_line(self, s));
    float *slots = self->memory ? ps_gradient_of(self, head->rank) : NULL;
    TR_TRY(tr_gradient_create(head->device, head->job, head->variables, &part, slots, &head->gradient));
    tr_gradient_listen(head->gradient, listen, self);
    return TR_OK;
}

bool ps_worker_cancel(struct ps *self)
{
    struct ps_worker *worker = self->worker;
    tr_comm *comm = self->head.comm;
    bool back = true;
    for (int s = 0; worker && worker->line && s < self->servers; s++) {
        struct line *line = &worker->line[s];
        back = tr_comm_cancel(comm, &line->heard) && back;
        for (int i = 0; line->pushing && i < line->pieces; i++)
            back = tr_comm_cancel(comm, &line->pushing[i]) && back;
    }
    return back;
}

void ps_worker_destroy(struct ps *self)
{
    struct ps_worker *worker = self->worker;
    if (!worker) return;
    for (int s = 0; worker->line && s < self->servers; s++) tr_free(worker->line[s].pushing);
    tr_free(worker->line);
    tr_free(worker);
    self->worker = NULL;
}

/* ---- talking ---- */

static tr_status say(struct ps *self, int server, struct ps_up *up)
{
    ps_own_statistics(self, &up->done);
    return ps_outbox_send(&self->outbox, self->worker->line[server].rank, PS_TAG_UP, up, sizeof *up,
                          "word of a worker");
}

/* Waits for the next word of a server. */
static tr_status hear(struct ps *self, int server)
{
    struct line *line = &self->worker->line[server];
    TR_TRY(tr_comm_receive(self->head.comm, line->rank, PS_TAG_DOWN, &line->down, sizeof line->down,
                           "word of a server", &line->heard));
    TR_TRY(ps_watch_wait(&self->watch, &line->heard));
    if (line->down.kind != PS_FENCED) return TR_OK;
    return tr_fail(
        TR_EPEER,
        "rank %d was not heard of for too long, and the others went on without it; raise the time-out if "
        "it was only slow",
        self->head.rank);
}

static tr_status unexpected(int kind)
{
    return tr_fail(TR_EMISMATCH,
                   "a server says something out of turn (%d); all ranks must run the same program", kind);
}

/* After the coordinator's word: waits until all servers' parameters are there. */
static tr_status take_parameters(struct ps *self)
{
    float *parameters = tr_variables_arena(self->head.variables, TR_ARENA_PARAMETERS);
    tr_ticket *coming = NULL;
    for (int s = 0; s < self->servers; s++) {
        struct line *line = &self->worker->line[s];
        if (!line->near) {
            TR_TRY(tr_comm_receive(self->head.comm, line->rank, PS_TAG_PARAMETERS, parameters + line->begin,
                                   (size_t)(line->end - line->begin) * sizeof *parameters, "parameters",
                                   &coming));
            TR_TRY(ps_watch_wait(&self->watch, &coming));
        }
        if (s > 0) TR_TRY(hear(self, s));
        if (s > 0 && line->down.kind != PS_GIVEN) return unexpected(line->down.kind);
    }
    atomic_thread_fence(memory_order_seq_cst); /* what servers wrote before their word is there */
    return TR_OK;
}

/* ---- working ---- */

/* Sends the pieces of the gradient that are complete, which it is from float `from` on, to servers that are
   far. The mover takes them there while backward goes on. */
static tr_status push_from(struct ps *self, int64_t from)
{
    const float *gradient = tr_gradient_slots(self->head.gradient);
    bool waited = false;
    for (int s = self->servers - 1; s >= 0; s--) {
        struct line *line = &self->worker->line[s];
        for (; !line->near && line->pushed < line->pieces; line->pushed++) {
            int64_t begin, end;
            ps_piece(self, s, line->pushed, &begin, &end);
            if (begin < from) break;
            if (!waited) TR_TRY(tr_device_wait(self->head.device));
            waited = true;
            TR_TRY(tr_comm_send(self->head.comm, line->rank, PS_TAG_GRADIENT, gradient + begin,
                                (size_t)(end - begin) * sizeof *gradient, "gradient",
                                &line->pushing[line->pushed]));
        }
    }
    return TR_OK;
}

static tr_status listen(void *user, int64_t from)
{
    return push_from(user, from);
}

/* The gradient of a contribution; *up gets its figures. */
static tr_status compute(struct ps *self, int64_t number, struct ps_up *up)
{
    struct tr_strategy *head = &self->head;
    int64_t batch = number / self->parts, part = number % self->parts;
    int64_t microbatches = head->job->train.microbatches, floats = head->job->model->arena_floats;
    float sums[TR_PASS_SUMS];
    if (self->parts > 1)
        tr_gradient_narrow(head->gradient, tr_cut(microbatches, self->parts, part),
                           tr_cut(microbatches, self->parts, part + 1));
    TR_TRY(tr_variables_begin_step(head->variables, batch));
    TR_TRY(tr_strategy_compute(head, batch, &up->examples));
    float *gradient = tr_gradient_slots(head->gradient);
    if (up->examples == 0) {
        /* A part of a ragged batch with fewer rows than microbatches. */
        struct tr_op_fill zero = {floats + TR_PASS_SUMS, 0, gradient};
        TR_TRY(tr_device_fill(head->device, &zero));
    }
    TR_TRY(tr_device_to_host(head->device, sums, gradient + floats, sizeof sums));
    TR_TRY(tr_device_wait(head->device));
    up->loss = sums[0];
    up->correct = sums[1];
    return TR_OK;
}

/* Sends what is left of the gradient, and tells all servers that it is there. Not waited for: the answer
   comes when all of them have it. */
static tr_status push(struct ps *self, struct ps_up *up)
{
    up->kind = PS_PUSH;
    TR_TRY(push_from(self, 0));
    atomic_thread_fence(memory_order_seq_cst); /* the gradient comes before the word */
    for (int s = 0; s < self->servers; s++) TR_TRY(say(self, s, up));
    return TR_OK;
}

/* The servers have the gradient, since they answered. */
static tr_status settle(struct ps *self)
{
    for (int s = 0; s < self->servers; s++) {
        struct line *line = &self->worker->line[s];
        for (int i = 0; i < line->pushed; i++) TR_TRY(ps_watch_wait(&self->watch, &line->pushing[i]));
        line->pushed = 0;
    }
    return TR_OK;
}

/* Does the work that the coordinator's last word was about, and hears its next word. */
static tr_status contribute(struct ps *self, int32_t wish)
{
    const struct ps_down *down = &self->worker->line[0].down;
    struct ps_up up = {.wish = wish};
    self->count = down->version;
    int64_t number = down->number;
    TR_TRY(take_parameters(self));
    TR_TRY(compute(self, number, &up));
    TR_TRY(push(self, &up));
    TR_TRY(hear(self, 0));
    return settle(self);
}

static tr_status ask(struct ps *self, int32_t wish)
{
    struct ps_up up = {.kind = PS_ASK, .wish = wish};
    TR_TRY(say(self, 0, &up));
    return hear(self, 0);
}

tr_status ps_worker_run(struct ps *self, const volatile sig_atomic_t *stop, int32_t wish)
{
    const struct ps_down *down = &self->worker->line[0].down;
    TR_TRY(ask(self, 0));
    while (down->kind == PS_WORK) TR_TRY(contribute(self, *stop ? wish : 0));
    if (down->kind != PS_ENDED) return unexpected(down->kind);
    if (down->lost > 0) tr_comm_disband(self->head.comm);
    return TR_OK;
}

/* ---- the chief ---- */

static void take_news(struct ps *self, struct tr_step_figures *figures)
{
    const struct ps_down *down = &self->worker->line[0].down;
    const struct ps_news *news = &down->news;
    self->count = down->version;
    figures->steps = news->steps;
    figures->examples = news->examples;
    figures->loss = (float)news->loss;
    figures->correct = (float)news->correct;
    if (news->measured > 0) figures->norm = (float)(news->norms / (double)news->measured);
    figures->skipped = news->skipped != 0;
    figures->bad_loss = news->bad_loss != 0;
    figures->poisoned = news->poisoned != 0;
    figures->wish = news->wish;
}

tr_status ps_chief_step(struct ps *self, int32_t wish, struct tr_step_figures *figures)
{
    const struct ps_down *down = &self->worker->line[0].down;
    TR_TRY(ask(self, wish));
    while (down->kind == PS_WORK) TR_TRY(contribute(self, 0));
    if (down->kind != PS_NEWS) return unexpected(down->kind);
    take_news(self, figures);
    return TR_OK;
}

static tr_status fetch_arena(struct ps *self, enum tr_arena arena)
{
    float *floats = tr_variables_arena(self->head.variables, arena);
    tr_ticket *coming = NULL;
    if (!floats) return TR_OK;
    for (int s = 0; s < self->servers; s++) {
        const struct line *line = &self->worker->line[s];
        TR_TRY(tr_comm_receive(self->head.comm, line->rank, PS_TAG_STATE + (int)arena, floats + line->begin,
                               (size_t)(line->end - line->begin) * sizeof *floats, tr_arena_names[arena],
                               &coming));
        TR_TRY(ps_watch_wait(&self->watch, &coming));
    }
    return TR_OK;
}

/* Asks for something that is answered with the steps done so far. */
static tr_status enquire(struct ps *self, enum ps_up_kind kind, enum ps_down_kind answer)
{
    struct ps_up up = {.kind = kind};
    const struct ps_down *down = &self->worker->line[0].down;
    TR_TRY(say(self, 0, &up));
    TR_TRY(hear(self, 0));
    if (down->kind != (int32_t)answer) return unexpected(down->kind);
    self->count = down->version;
    self->head.ahead += down->news.steps;
    return TR_OK;
}

tr_status ps_chief_settle(struct ps *self)
{
    return enquire(self, PS_SETTLE, PS_SETTLED);
}

tr_status ps_chief_gather(struct ps *self)
{
    TR_TRY(enquire(self, PS_GATHER, PS_GATHERED));
    for (int i = 0; i < TR_ARENAS; i++) TR_TRY(fetch_arena(self, (enum tr_arena)i));
    return TR_OK;
}

tr_status ps_chief_statistics(struct ps *self, struct tr_strategy_statistics *out)
{
    struct ps_up up = {.kind = PS_STATISTICS};
    struct ps_table *table = &self->worker->table;
    size_t ranks = (size_t)self->head.size * sizeof *out->rank;
    tr_ticket *coming = NULL;
    tr_comm *comm = self->head.comm;
    int coordinator = self->worker->line[0].rank;
    TR_TRY(say(self, 0, &up));
    TR_TRY(tr_comm_receive(comm, coordinator, PS_TAG_TABLE, table, sizeof *table, "statistics", &coming));
    TR_TRY(ps_watch_wait(&self->watch, &coming));
    TR_TRY(tr_comm_receive(comm, coordinator, PS_TAG_TABLE, out->rank, ranks, "statistics", &coming));
    TR_TRY(ps_watch_wait(&self->watch, &coming));
    out->asynchronous = true;
    out->dropped = table->dropped;
    memcpy(out->staleness, table->staleness, sizeof out->staleness);
    return TR_OK;
}

tr_status ps_chief_end(struct ps *self)
{
    struct ps_up up = {.kind = PS_END};
    const struct ps_down *down = &self->worker->line[0].down;
    TR_TRY(say(self, 0, &up));
    TR_TRY(hear(self, 0));
    if (down->kind != PS_ENDED) return unexpected(down->kind);
    if (down->lost > 0) tr_comm_disband(self->head.comm);
    return TR_OK;
}
