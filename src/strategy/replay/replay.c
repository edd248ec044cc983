/* Going through the log. */
#include "strategy/replay/replay.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "trireme/trireme.h"

#include <string.h>

/* ---- making ---- */

/* The record that completes the last update. */
static int64_t find_last(const struct tr_update_log *log)
{
    struct tr_update_walk walk = {.log = log};
    struct tr_update_entry entry;
    int64_t last = -1;
    while (tr_update_walk_next(&walk, &entry))
        if (entry.completes) last = walk.next - 1;
    return last;
}

static tr_status check_said(const char *what, const char *there, const char *here, const char *advice)
{
    if (!*there || strcmp(there, here) == 0) return TR_OK;
    return tr_fail(TR_EMISMATCH, "the log is of a run with other %s (digest %.16s, here %.16s); %s", what,
                   there, here, advice);
}

static tr_status check_sessions(const struct replay *self)
{
    const struct tr_update_log *log = self->source;
    const struct tr_job *job = self->head.job;
    if (log->session[0].first > 0)
        return tr_fail(TR_EINVAL,
                       "the log begins after step %lld: the run was resumed there without its earlier log; "
                       "only a log from the first step on can be replayed",
                       (long long)log->session[0].first);
    for (int64_t i = 0; i < log->sessions; i++) {
        const struct tr_update_session *session = &log->session[i];
        if (session->numerics > 0 && session->numerics != tr_numerics_version())
            return tr_fail(
                TR_EMISMATCH,
                "the log is of version %d of the arithmetic, this program has version %d; replay it with the "
                "program that wrote it",
                session->numerics, tr_numerics_version());
        TR_TRY(check_said("settings", session->job, job->digest,
                          "give the model file and the options of the run, or none to use its own"));
        if (session->parts > job->train.microbatches)
            return tr_fail(TR_EINVAL,
                           "%d gradients make an update of the log, but a batch has %lld microbatches",
                           session->parts, (long long)job->train.microbatches);
        if (session->servers > job->model->arena_floats)
            return tr_fail(TR_EINVAL, "%d servers of the log share %lld numbers", session->servers,
                           (long long)job->model->arena_floats);
    }
    struct tr_update_figures figures;
    tr_update_log_count(log, &figures);
    if (figures.updates <= job->train.steps) return TR_OK;
    return tr_fail(TR_EINVAL, "the log has %lld updates, the job %lld steps; set train.steps higher",
                   (long long)figures.updates, (long long)job->train.steps);
}

static tr_status create(tr_strategy *strategy)
{
    struct replay *self = replay_of(strategy);
    const struct tr_job *job = strategy->job;
    int64_t floats = job->model->arena_floats;
    struct tr_variables_part whole = {0, floats, 0, floats}, alone = {0, floats, 0, 0};
    self->source = strategy->settings.log;
    self->walk.log = self->ahead.log = self->source;
    TR_TRY(check_sessions(self));
    self->last = find_last(self->source);
    for (int64_t i = 0; i < self->source->records; i++)
        self->marked = self->marked || self->source->record[i].kind == TR_UPDATE_TOLD;
    TR_TRY(replay_versions_create(self->source, strategy->rank, strategy->size, floats, &self->versions));
    TR_TRY(tr_variables_create_part(strategy->holder, job->model, &job->optimizer, &whole, NULL,
                                    &strategy->replicas->variables));
    TR_TRY(
        tr_variables_create_part(strategy->holder, job->model, &job->optimizer, &alone, NULL, &self->reader));
    strategy->memory += tr_variables_memory(self->reader);
    return TR_OK;
}

static tr_status make_gradient(struct replay *self, const struct tr_update_session *session)
{
    struct tr_strategy *head = &self->head;
    struct tr_gradient_part part = {
        .end = head->job->train.microbatches,
        .end_step = head->job->train.steps,
        .alone = session->parts > 1,
    };
    tr_gradient_destroy(&head->replicas->gradient);
    TR_TRY(tr_gradient_create(head->device, head->job, self->reader, &part, NULL, &head->replicas->gradient));
    return tr_gradient_open(head->replicas->gradient, &self->gradient);
}

/* Adapts to a session that differs from the one before. */
static tr_status settle_session(struct replay *self, const struct tr_update_session *session)
{
    const struct tr_update_session *before = self->session;
    if (!before || before->servers != session->servers || before->parts != session->parts)
        TR_TRY(replay_make_shards(self, session));
    if (!before || before->parts != session->parts) TR_TRY(make_gradient(self, session));
    self->session = session;
    return TR_OK;
}

static tr_status begin(tr_strategy *strategy)
{
    struct replay *self = replay_of(strategy);
    return settle_session(self, &self->source->session[0]);
}

static void destroy(tr_strategy *strategy)
{
    struct replay *self = replay_of(strategy);
    replay_release_shards(self);
    replay_release_waiting(self);
    replay_versions_destroy(&self->versions);
    tr_variables_destroy(&self->reader);
}

static void placement(const tr_strategy *strategy, int rank, struct tr_placement *out)
{
    const struct tr_job *job = strategy->job;
    (void)rank;
    *out = (struct tr_placement){
        .role = "worker",
        .end_microbatch = job->train.microbatches,
        .end_layer = job->model->layer_count,
        .end_update = job->model->arena_floats,
        .updates = job->model->arena_floats,
    };
}

/* ---- what the run had ---- */

/* Compares the current parameters with those of the run. */
static tr_status compare(struct replay *self, const char *there, const char *when)
{
    char here[TR_SHA256_TEXT];
    if (!*there || self->head.rank > 0) return TR_OK;
    TR_TRY(tr_variables_hash(self->head.replicas->variables, here));
    if (strcmp(here, there) == 0) return TR_OK;
    return tr_fail(
        TR_EMISMATCH,
        "after step %lld, %s, the run had parameters of hash %.16s, the replay has %.16s; one of the two "
        "computed otherwise, or the log is not of this run",
        (long long)self->walk.count, when, there, here);
}

/* Compares the states that the log has at this entry. */
static tr_status compare_states(struct replay *self)
{
    const struct tr_update_log *log = self->source;
    for (; self->state < log->states && log->state[self->state].at <= self->walk.next; self->state++)
        TR_TRY(compare(self, log->state[self->state].hash, "where it was saved"));
    return TR_OK;
}

/* ---- records ---- */

static tr_status begin_session(struct replay *self, const struct tr_update_session *session)
{
    TR_TRY(settle_session(self, session));
    TR_TRY(compare(self, session->hash,
                   session->first > 0 ? "where it was taken up again" : "at its beginning"));
    return tr_update_log_begin(&self->head.log, session);
}

/* Computes and applies a gradient. */
static tr_status work_off(struct replay *self, const struct tr_update_entry *entry)
{
    struct ps_figures figures;
    float *gradient;
    TR_TRY(replay_obtain(self, entry, &figures, &gradient));
    TR_TRY(replay_apply(self, entry, &figures, gradient));
    if (!entry->completes) return TR_OK;
    return replay_versions_keep(self->versions, self->head.replicas->variables, entry->count + 1);
}

static void count(struct replay *self, const struct tr_update *record)
{
    struct tr_update_figures *told = &self->told;
    int64_t last = TR_UPDATE_BINS - 1;
    if (record->kind == TR_UPDATE_DROPPED) told->dropped++;
    if (record->kind != TR_UPDATE_APPLIED) return;
    told->applied++;
    told->staleness[record->missed < last ? record->missed : last]++;
}

/* The next record; false: there is none, or something is not finite. */
static tr_status play(struct replay *self, struct tr_update_entry *entry, bool *there)
{
    *there = !self->halted && tr_update_walk_next(&self->walk, entry);
    if (!*there) return TR_OK;
    if (entry->begins) TR_TRY(begin_session(self, entry->session));
    if (entry->record->kind == TR_UPDATE_APPLIED) TR_TRY(work_off(self, entry));
    count(self, entry->record);
    TR_TRY(tr_update_log_add(&self->head.log, entry->record, 1));
    return compare_states(self);
}

/* Exchanges the figures of all ranks. */
static tr_status exchange(struct replay *self, struct tr_rank_statistics *ranks)
{
    ranks[self->head.rank] = self->head.done;
    if (!self->head.comm) return TR_OK;
    struct tr_comm_statistics moved;
    tr_comm_statistics(self->head.comm, &moved);
    ranks[self->head.rank].bytes_sent = moved.bytes_sent;
    ranks[self->head.rank].bytes_received = moved.bytes_received;
    ranks[self->head.rank].bytes_shared = moved.bytes_shared;
    ranks[self->head.rank].wait_seconds = moved.wait_seconds;
    return tr_comm_exchange(self->head.comm, ranks, sizeof *ranks, "statistics");
}

static tr_status tell_statistics(struct replay *self)
{
    struct tr_rank_statistics *ranks = tr_alloc_zero((size_t)self->head.size, sizeof *ranks);
    tr_status status = ranks ? exchange(self, ranks) : TR_ENOMEM;
    tr_free(ranks);
    return status;
}

/* The next record that is applied. */
static tr_status follow_record(struct replay *self)
{
    struct tr_update_entry entry;
    bool there = true;
    do TR_TRY(play(self, &entry, &there));
    while (there && entry.record->kind != TR_UPDATE_APPLIED);
    tr_update_log_clear(&self->head.log); /* the root keeps it */
    return there ? TR_OK
                 : tr_fail(TR_EMISMATCH,
                           "rank 0 goes on after the end of the log; give all ranks the same log");
}

/* Ranks other than the root follow it. */
static tr_status follow(struct replay *self)
{
    for (;;) {
        enum replay_word word = REPLAY_END;
        TR_TRY(replay_say(self, &word));
        if (word == REPLAY_END) return TR_OK;
        TR_TRY(word == REPLAY_STATISTICS ? tell_statistics(self) : follow_record(self));
    }
}

static tr_status work(tr_strategy *strategy, const atomic_int *stop, int32_t request,
                      struct tr_step_figures *figures)
{
    struct replay *self = replay_of(strategy);
    struct tr_update_entry entry;
    bool there = true, told = false;
    (void)stop;
    if (strategy->rank > 0) return follow(self);
    while (!told) {
        TR_TRY(play(self, &entry, &there));
        if (!there) break;
        told =
            self->news.steps > 0 && (self->marked ? entry.record->kind == TR_UPDATE_TOLD : entry.completes);
    }
    self->news.request = request;
    ps_news_tell(&self->news, figures);
    self->news = (struct ps_news){0};
    return TR_OK;
}

static bool is_over(const tr_strategy *strategy)
{
    const struct replay *self = (const struct replay *)strategy;
    return self->walk.next > self->last;
}

/* How many records there are up to the next one of `kind`, unless the root got a message before; 0: there
   is none. */
static int64_t distance(const struct replay *self, enum tr_update_kind kind)
{
    const struct tr_update_log *log = self->source;
    for (int64_t at = self->walk.next; at < log->records; at++) {
        if (log->record[at].kind == kind) return at + 1 - self->walk.next;
        if (log->record[at].kind == TR_UPDATE_TOLD) return 0;
    }
    return 0;
}

static tr_status play_to(struct replay *self, enum tr_update_kind kind)
{
    struct tr_update_entry entry;
    bool there = true;
    for (int64_t left = distance(self, kind); left > 0 && there; left--) TR_TRY(play(self, &entry, &there));
    self->head.ahead += self->news.steps;
    self->news.steps = 0;
    return TR_OK;
}

static tr_status gather(tr_strategy *strategy, unsigned arenas)
{
    struct replay *self = replay_of(strategy);
    if (strategy->rank > 0) return TR_OK;
    if (arenas & TR_GATHER_DRAINED) TR_TRY(play_to(self, TR_UPDATE_DRAINED));
    return play_to(self, TR_UPDATE_GATHERED);
}

static tr_status connect(tr_strategy *strategy, int64_t step)
{
    struct replay *self = replay_of(strategy);
    if (step != 0)
        return tr_fail(TR_EINVAL,
                       "a replay begins before the first step, not after step %lld; resume nothing",
                       (long long)step);
    return replay_versions_keep(self->versions, strategy->replicas->variables, 0);
}

/* The root has ended the run. Records after the last update change nothing, and belong to the log. */
static tr_status finish(struct replay *self)
{
    struct tr_update_entry entry;
    enum replay_word word = REPLAY_END;
    for (bool there = is_over(&self->head); there;) TR_TRY(play(self, &entry, &there));
    return self->head.comm ? replay_say(self, &word) : TR_OK;
}

static tr_status end(tr_strategy *strategy, struct tr_strategy_statistics *out)
{
    struct replay *self = replay_of(strategy);
    enum replay_word word = REPLAY_STATISTICS;
    if (strategy->rank > 0) return TR_OK;
    if (!out) return finish(self);
    out->asynchronous = true;
    out->dropped = self->told.dropped;
    memcpy(out->staleness, self->told.staleness, sizeof out->staleness);
    if (strategy->comm) TR_TRY(replay_say(self, &word));
    return exchange(self, out->rank);
}

static const struct tr_strategy_division division = {.placement = placement, .gather = gather};
static const struct tr_strategy_asynchronous asynchronous = {.work = work, .end = end, .is_over = is_over};

static void traits(const void *options, struct tr_strategy_traits *out)
{
    (void)options;
    out->asynchronous = true;
}

const struct tr_strategy_class tr_strategy_replay = {
    .version = TR_STRATEGY_CLASS_VERSION,
    .name = "replay",
    .help = "goes through the log of an asynchronous run again",
    .size = sizeof(struct replay),
    .traits = traits,
    .create = create,
    .begin = begin,
    .connect = connect,
    .destroy = destroy,
    .division = &division,
    .asynchronous = &asynchronous,
};
