/* A worker's part: from work to gradient; and the root's additional part. */
#include "strategy/parameter_server/parameter_server.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "comm/program.h"

#include <stdatomic.h>
#include <string.h>

/* A server, as a worker sees it. */
struct line {
    int rank;
    bool near;
    int64_t begin, end; /* its shard */
    struct ps_down down;
    tr_ticket *heard; /* the awaited message */
    /* Of the gradient on its way, if it is far: */
    tr_ticket **pushing; /* [pieces] */
    int pieces, pushed;  /* in all, and those that were sent */
};

struct ps_worker {
    struct line *line; /* [servers]; the first is the coordinator */
    const struct tr_staging *gradient, *parameters;
    int64_t copied;        /* the gradient is in host memory from this float on */
    bool distant, granted; /* its gradient needs room at some server; and has it */
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
        .begin = self->shard[server],
        .end = self->shard[server + 1],
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
    self->worker->distant = self->distant[head->rank];
    self->worker->line = tr_alloc_zero((size_t)self->servers, sizeof *self->worker->line);
    if (!self->worker->line) return TR_ENOMEM;
    for (int s = 0; s < self->servers; s++) TR_TRY(make_line(self, s));
    float *window = self->memory ? ps_gradient_of(self, head->rank) : NULL;
    TR_TRY(tr_gradient_create(head->device, head->job, head->replicas->variables, &part, window,
                              &head->replicas->gradient));
    TR_TRY(tr_gradient_open(head->replicas->gradient, &self->worker->gradient));
    TR_TRY(tr_variables_open(head->replicas->variables, TR_ARENA_PARAMETERS, &self->worker->parameters));
    tr_gradient_listen(head->replicas->gradient, listen, self);
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

tr_status ps_worker_say(struct ps *self, int server, struct ps_up *up)
{
    ps_own_statistics(self, &up->done);
    return ps_outbox_send(&self->outbox, self->worker->line[server].rank, PS_TAG_UP, up, sizeof *up,
                          "word of a worker");
}

tr_status ps_worker_hear(struct ps *self, int server)
{
    struct line *line = &self->worker->line[server];
    TR_TRY(tr_comm_receive(self->head.comm, line->rank, PS_TAG_DOWN, &line->down, sizeof line->down,
                           "word of a server", &line->heard));
    TR_TRY(ps_watch_wait(&self->watch, &line->heard));
    if (line->down.kind != PS_FENCED) return ps_root_take_updates(self, line->down.updates);
    return tr_fail(
        TR_EPEER,
        "rank %d was not heard of for too long, and the others went on without it; raise the time-out if "
        "it was only slow",
        self->head.rank);
}

tr_status ps_worker_refuse(int kind)
{
    return tr_fail(TR_EMISMATCH,
                   "a server sent an unexpected message (kind %d); all ranks must run the same program",
                   kind);
}

const struct ps_down *ps_worker_word(const struct ps *self)
{
    return &self->worker->line[0].down;
}

tr_status ps_worker_take_parameters(struct ps *self)
{
    const struct tr_staging *parameters = self->worker->parameters;
    tr_ticket *coming = NULL;
    for (int s = 0; s < self->servers; s++) {
        struct line *line = &self->worker->line[s];
        if (line->near) {
            tr_program_moved(line->end - line->begin, line->end - line->begin);
        } else {
            TR_TRY(tr_comm_receive(self->head.comm, line->rank, PS_TAG_PARAMETERS,
                                   parameters->host + line->begin,
                                   (size_t)(line->end - line->begin) * sizeof(float), "parameters", &coming));
            TR_TRY(ps_watch_wait(&self->watch, &coming));
        }
        if (s > 0) TR_TRY(ps_worker_hear(self, s));
        if (s > 0 && line->down.kind != PS_GIVEN) return ps_worker_refuse(line->down.kind);
    }
    atomic_thread_fence(memory_order_seq_cst); /* servers' writes before their message are visible */
    TR_TRY(tr_staging_to_device(parameters, 0, parameters->floats));
    return tr_device_wait(self->head.holder);
}

/* ---- working ---- */

/* Copies the gradient to host memory as far as it is complete: from float `from` on. */
static tr_status copy_from(struct ps *self, int64_t from)
{
    struct ps_worker *worker = self->worker;
    if (from < worker->copied) TR_TRY(tr_staging_to_host(worker->gradient, from, worker->copied));
    worker->copied = from;
    return tr_device_wait(self->head.device);
}

/* Sends the complete pieces of the gradient, from float `from` on, to far servers. The progress thread
   sends them while backward continues. */
static tr_status push_from(struct ps *self, int64_t from)
{
    const float *gradient = self->worker->gradient->host;
    bool waited = false;
    if (self->worker->distant && !self->worker->granted) return TR_OK;
    for (int s = self->servers - 1; s >= 0; s--) {
        struct line *line = &self->worker->line[s];
        for (; !line->near && line->pushed < line->pieces; line->pushed++) {
            int64_t begin, end;
            ps_piece(self, s, line->pushed, &begin, &end);
            if (begin < from) break;
            if (!waited) TR_TRY(copy_from(self, from));
            waited = true;
            TR_TRY(tr_comm_send_numbers(self->head.comm, line->rank, PS_TAG_GRADIENT, gradient + begin,
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

/* Computes the gradient of a contribution; *up gets its figures. */
static tr_status compute(struct ps *self, int64_t number, struct ps_up *up)
{
    struct tr_strategy *head = &self->head;
    struct ps_figures figures;
    self->worker->copied = head->job->model->arena_floats;
    TR_TRY(ps_contribution_compute(head, head->replicas->variables, self->parts, number, &figures));
    up->examples = figures.examples;
    up->loss = figures.loss;
    up->correct = figures.correct;
    return TR_OK;
}

/* Waits for room at the servers, which gradients of other workers occupy. */
static tr_status wait_for_room(struct ps *self)
{
    struct ps_up up = {.kind = PS_OFFER};
    const struct ps_down *down = ps_worker_word(self);
    TR_TRY(ps_worker_say(self, 0, &up));
    TR_TRY(ps_worker_hear(self, 0));
    if (down->kind != PS_GRANTED) return ps_worker_refuse(down->kind);
    self->worker->granted = true;
    return TR_OK;
}

/* Sends the rest of the gradient, and announces it to all servers. Does not wait: the answer comes when
   all of them have it. */
static tr_status push(struct ps *self, struct ps_up *up)
{
    up->kind = PS_PUSH;
    if (self->worker->distant && !self->worker->granted) TR_TRY(wait_for_room(self));
    TR_TRY(push_from(self, 0));
    TR_TRY(copy_from(self, 0));                /* near servers read it there */
    atomic_thread_fence(memory_order_seq_cst); /* the gradient comes before the message */
    for (int s = 0; s < self->servers; s++) TR_TRY(ps_worker_say(self, s, up));
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

/* Does the work of the coordinator's last message, and receives its next message. */
static tr_status contribute(struct ps *self, int32_t request)
{
    const struct ps_down *down = ps_worker_word(self);
    struct ps_up up = {.request = request};
    self->count = down->version;
    struct ps_up got = {.kind = PS_GOT};
    int64_t number = down->number;
    self->worker->granted = down->granted;
    TR_TRY(ps_worker_take_parameters(self));
    if (self->worker->distant) TR_TRY(ps_worker_say(self, 0, &got));
    TR_TRY(compute(self, number, &up));
    TR_TRY(push(self, &up));
    TR_TRY(ps_worker_hear(self, 0));
    return settle(self);
}

static tr_status ask(struct ps *self, int32_t request)
{
    struct ps_up up = {.kind = PS_ASK, .request = request};
    TR_TRY(ps_worker_say(self, 0, &up));
    return ps_worker_hear(self, 0);
}

tr_status ps_worker_run(struct ps *self, const atomic_int *stop, int32_t request)
{
    const struct ps_down *down = ps_worker_word(self);
    TR_TRY(ask(self, 0));
    while (down->kind == PS_WORK || down->kind == PS_PIECE)
        TR_TRY(down->kind == PS_WORK ? contribute(self, *stop ? request : 0) : ps_worker_evaluate(self));
    if (down->kind != PS_ENDED) return ps_worker_refuse(down->kind);
    if (down->lost > 0) tr_comm_dissolve(self->head.comm);
    return TR_OK;
}

/* ---- the root ---- */

static void take_news(struct ps *self, struct tr_step_figures *figures)
{
    const struct ps_down *down = ps_worker_word(self);
    self->count = down->version;
    ps_news_tell(&down->news, figures);
}

tr_status ps_root_step(struct ps *self, int32_t request, struct tr_step_figures *figures)
{
    const struct ps_down *down = ps_worker_word(self);
    TR_TRY(ask(self, request));
    while (down->kind == PS_WORK) TR_TRY(contribute(self, 0));
    if (down->kind != PS_NEWS) return ps_worker_refuse(down->kind);
    take_news(self, figures);
    return TR_OK;
}

static tr_status fetch_arena(struct ps *self, enum tr_arena arena)
{
    const struct tr_staging *values;
    tr_ticket *coming = NULL;
    TR_TRY(tr_variables_open(self->head.replicas->variables, arena, &values));
    if (!values) return TR_OK;
    for (int s = 0; s < self->servers; s++) {
        const struct line *line = &self->worker->line[s];
        TR_TRY(tr_comm_receive(self->head.comm, line->rank, PS_TAG_STATE + (int)arena,
                               values->host + line->begin, (size_t)(line->end - line->begin) * sizeof(float),
                               tr_arena_names[arena], &coming));
        TR_TRY(ps_watch_wait(&self->watch, &coming));
    }
    TR_TRY(tr_staging_to_device(values, 0, values->floats));
    return tr_device_wait(self->head.holder);
}

/* Sends a request that is answered with the steps done so far. */
static tr_status enquire(struct ps *self, enum ps_up_kind kind, enum ps_down_kind answer)
{
    struct ps_up up = {.kind = kind};
    const struct ps_down *down = ps_worker_word(self);
    TR_TRY(ps_worker_say(self, 0, &up));
    TR_TRY(ps_worker_hear(self, 0));
    if (down->kind != (int32_t)answer) return ps_worker_refuse(down->kind);
    self->count = down->version;
    self->head.ahead += down->news.steps;
    return TR_OK;
}

tr_status ps_root_drain(struct ps *self)
{
    return enquire(self, PS_DRAIN, PS_DRAINED);
}

tr_status ps_root_gather(struct ps *self)
{
    TR_TRY(enquire(self, PS_GATHER, PS_GATHERED));
    for (int i = 0; i < TR_ARENAS; i++) TR_TRY(fetch_arena(self, (enum tr_arena)i));
    return TR_OK;
}

tr_status ps_root_statistics(struct ps *self, struct tr_strategy_statistics *out)
{
    struct ps_up up = {.kind = PS_STATISTICS};
    struct ps_table *table = &self->worker->table;
    size_t ranks = (size_t)self->head.size * sizeof *out->rank;
    tr_ticket *coming = NULL;
    tr_comm *comm = self->head.comm;
    int coordinator = self->worker->line[0].rank;
    TR_TRY(ps_worker_say(self, 0, &up));
    TR_TRY(tr_comm_receive(comm, coordinator, PS_TAG_TABLE, table, sizeof *table, "statistics", &coming));
    TR_TRY(ps_watch_wait(&self->watch, &coming));
    TR_TRY(tr_comm_receive(comm, coordinator, PS_TAG_TABLE, out->rank, ranks, "statistics", &coming));
    TR_TRY(ps_watch_wait(&self->watch, &coming));
    out->asynchronous = true;
    out->dropped = table->dropped;
    memcpy(out->staleness, table->staleness, sizeof out->staleness);
    return TR_OK;
}

tr_status ps_root_end(struct ps *self)
{
    struct ps_up up = {.kind = PS_END};
    const struct ps_down *down = ps_worker_word(self);
    TR_TRY(ps_worker_say(self, 0, &up));
    TR_TRY(ps_worker_hear(self, 0));
    if (down->kind != PS_ENDED) return ps_worker_refuse(down->kind);
    if (down->lost > 0) tr_comm_dissolve(self->head.comm);
    return TR_OK;
}
