/* The life of a strategy: the trainer's calls, passed to the class or handled here for all classes. Steps
 * are in the driver (driver.c).
 */
#include "strategy/choice.h"
#include "strategy/driver.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/tree.h"
#include "job/step/mirror.h"
#include "strategy/replicas/replicas.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- making ---- */

/* The strategy's own structure, with the choice in it. */
static tr_status make(const struct tr_strategy_choice *choice, tr_strategy **out)
{
    size_t size = choice->class->size ? choice->class->size : sizeof **out;
    tr_strategy *strategy = *out = tr_alloc_zero(1, size);
    if (!strategy) return TR_ENOMEM;
    strategy->class = choice->class;
    strategy->options = choice->options;
    strategy->traits = choice->traits;
    strategy->replicas = &strategy->single;
    strategy->replica_count = 1;
    return TR_OK;
}

static tr_status create_chosen(tr_strategy *strategy)
{
    if (strategy->settings.outlives && strategy->comm && !strategy->class->succession)
        return tr_fail(
            TR_EUNSUPPORTED,
            "a rank of the strategy %s keeps what no other has, so the others cannot go on without "
            "it; choose allreduce, or let the job restart from its checkpoints",
            strategy->class->name);
    TR_TRY(tr_shares_create(strategy));
    return strategy->class->create ? strategy->class->create(strategy) : TR_OK;
}

tr_status tr_strategy_create(tr_device *device, const struct tr_job *job, tr_comm *comm,
                             const struct tr_strategy_settings *settings, tr_strategy **out)
{
    struct tr_strategy_choice choice;
    tr_strategy *strategy;
    *out = NULL;
    int size = comm ? tr_comm_size(comm) : 1;
    TR_TRY(tr_strategy_choose_for(job, settings->log != NULL, size, &choice));
    tr_status status = make(&choice, &strategy);
    if (status != TR_OK) {
        tr_strategy_choice_release(&choice);
        return status;
    }
    strategy->device = device;
    strategy->holder = settings->holder ? settings->holder : device;
    strategy->job = job;
    strategy->comm = comm;
    strategy->rank = comm ? tr_comm_rank(comm) : 0;
    strategy->size = size;
    strategy->servers = strategy->size > 1 ? choice.traits.servers : 0;
    strategy->settings = *settings;
    status = create_chosen(strategy);
    if (status != TR_OK) {
        tr_strategy_destroy(&strategy);
        return status;
    }
    *out = strategy;
    return TR_OK;
}

/* Ends all access to the strategy's memory. False: after a failure messages may be using it. */
static bool end_messages(tr_strategy *strategy)
{
    static const char why[] = "it ended while operations were under way";
    bool over = true;
    if (strategy->class->cancel) over = strategy->class->cancel(strategy);
    if (strategy->part) over = tr_comm_end_operations(strategy->part, why) && over;
    if (strategy->comm) over = tr_comm_end_operations(strategy->comm, why) && over;
    return over;
}

static void release_replicas(tr_strategy *strategy)
{
    for (int i = 0; i < strategy->replica_count; i++) {
        tr_gradient_destroy(&strategy->replicas[i].gradient);
        tr_variables_destroy(&strategy->replicas[i].variables);
    }
    if (strategy->state) tr_variables_destroy(&strategy->state);
    tr_strategy_release_arenas(strategy);
}

void tr_strategy_destroy(tr_strategy **handle)
{
    tr_strategy *strategy = *handle;
    if (!strategy) return;
    *handle = NULL;
    if (!end_messages(strategy)) {
        for (int i = 0; i < strategy->replica_count; i++) tr_gradient_leave(&strategy->replicas[i].gradient);
        return;
    }
    /* Nor do devices use it, after a step that failed, or work that was not waited for. */
    tr_device_finish(strategy->device);
    if (strategy->holder != strategy->device) tr_device_finish(strategy->holder);
    tr_driver_destroy(strategy);
    release_replicas(strategy);
    if (strategy->class->destroy) strategy->class->destroy(strategy);
    if (strategy->replicas != &strategy->single) tr_free(strategy->replicas);
    tr_free(strategy->replica_bound);
    tr_free(strategy->piece);
    tr_update_log_release(&strategy->log);
    tr_shares_destroy(strategy);
    struct tr_strategy_choice choice = {.class = strategy->class, .options = strategy->options};
    tr_strategy_choice_release(&choice);
    tr_free(strategy);
}

tr_status tr_strategy_begin(tr_strategy *strategy)
{
    if (strategy->class->begin) TR_TRY(strategy->class->begin(strategy));
    if (strategy->arena_count > 0 || (tr_strategy_is_spread(strategy) && strategy->rank == 0)) {
        int64_t floats = strategy->job->model->arena_floats;
        if (floats > TR_STRATEGY_PIECE) floats = TR_STRATEGY_PIECE;
        strategy->piece = tr_alloc((size_t)floats, sizeof *strategy->piece);
        if (!strategy->piece) return TR_ENOMEM;
        strategy->memory += (size_t)floats * sizeof *strategy->piece;
    }
    return tr_driver_create(strategy);
}

const char *tr_strategy_name(const tr_strategy *strategy)
{
    return strategy->class->name;
}

tr_status tr_strategy_options_text(const tr_strategy *strategy, char **out)
{
    return tr_options_dump(strategy->class->options, strategy->class->option_count, strategy->options, out);
}

bool tr_strategy_is_asynchronous(const tr_strategy *strategy)
{
    return strategy->traits.asynchronous;
}

bool tr_strategy_is_spread(const tr_strategy *strategy)
{
    return strategy->comm && tr_strategy_class_spreads(strategy->class);
}

tr_device *tr_strategy_holder(const tr_strategy *strategy)
{
    return strategy->holder;
}

tr_variables *tr_strategy_variables(const tr_strategy *strategy)
{
    return strategy->state ? strategy->state : strategy->replicas->variables;
}

/* How a rank with separate replicas takes part. */
static void place_replicas(const tr_strategy *strategy, int rank, struct tr_placement *out)
{
    const struct tr_job *job = strategy->job;
    const int64_t *bound = strategy->replica_bound;
    int64_t all = bound[strategy->size], own = bound[rank + 1] - bound[rank];
    *out = (struct tr_placement){
        .role = "worker",
        .first_microbatch = tr_cut(job->train.microbatches, all, bound[rank]),
        .end_microbatch = tr_cut(job->train.microbatches, all, bound[rank + 1]),
        .end_layer = job->model->layer_count,
        .end_update = job->model->arena_floats,
        .updates = job->model->arena_floats * own,
    };
}

void tr_strategy_placement(const tr_strategy *strategy, int rank, struct tr_placement *out)
{
    const struct tr_strategy_division *division = strategy->class->division;
    const struct tr_model *model = strategy->job->model;
    if (division && division->placement)
        division->placement(strategy, rank, out);
    else
        place_replicas(strategy, rank, out);
    out->parameters = out->confined ? 0 : model->parameter_total;
    for (int i = out->first_layer; out->confined && i < out->end_layer; i++)
        out->parameters += tr_model_learned(model, i);
}

const char *tr_strategy_shares(const tr_strategy *strategy)
{
    return strategy->shares.text;
}

void tr_strategy_memory_parts(const tr_strategy *strategy, int64_t *variables, int64_t *gradients)
{
    *variables = tr_strategy_arenas_memory(strategy) + (int64_t)strategy->holding;
    if (strategy->state) *variables += (int64_t)tr_variables_memory(strategy->state);
    *gradients = (int64_t)strategy->computing;
    for (int i = 0; i < strategy->replica_count; i++) {
        const struct tr_replica *replica = &strategy->replicas[i];
        *variables += replica->variables ? (int64_t)tr_variables_memory(replica->variables) : 0;
        *gradients += replica->gradient ? (int64_t)tr_gradient_memory(replica->gradient) : 0;
    }
}

size_t tr_strategy_memory(const tr_strategy *strategy)
{
    int64_t variables, gradients;
    tr_strategy_memory_parts(strategy, &variables, &gradients);
    return strategy->memory + (size_t)(variables + gradients);
}

/* ---- the run ---- */

tr_status tr_strategy_connect(tr_strategy *strategy, int64_t step)
{
    tr_ticket *ticket = NULL;
    if (!strategy->state) TR_TRY(tr_replicas_copy(strategy));
    TR_TRY(tr_strategy_begin_arenas(strategy));
    if (strategy->class->connect) TR_TRY(strategy->class->connect(strategy, step));
    if (!strategy->comm) return TR_OK;
    tr_status status = tr_comm_barrier(strategy->comm, &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

/* The traffic of this rank's communicators so far. */
static struct tr_comm_statistics traffic(const tr_strategy *strategy)
{
    struct tr_comm_statistics all = {0}, part = {0};
    if (strategy->comm) tr_comm_statistics(strategy->comm, &all);
    if (strategy->part) tr_comm_statistics(strategy->part, &part);
    all.bytes_sent += part.bytes_sent;
    all.bytes_received += part.bytes_received;
    all.bytes_shared += part.bytes_shared;
    all.wait_seconds += part.wait_seconds;
    return all;
}

tr_status tr_strategy_step(tr_strategy *strategy, int64_t step, int32_t request,
                           struct tr_step_figures *figures)
{
    struct tr_comm_statistics before = traffic(strategy);
    struct tr_rank_statistics *done = &strategy->done;
    *figures = (struct tr_step_figures){.steps = 1, .norm = NAN};
    tr_status status = strategy->traits.asynchronous
                           ? strategy->class->asynchronous->work(strategy, NULL, request, figures)
                           : tr_driver_round(strategy, step, request, figures);
    struct tr_comm_statistics after = traffic(strategy);
    done->bytes_sent += after.bytes_sent - before.bytes_sent;
    done->bytes_received += after.bytes_received - before.bytes_received;
    done->bytes_shared += after.bytes_shared - before.bytes_shared;
    done->wait_seconds += after.wait_seconds - before.wait_seconds;
    return status;
}

void tr_strategy_allow_next(tr_strategy *strategy, bool allowed)
{
    strategy->allows_next = allowed;
}

static tr_status show_layer(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    const tr_strategy *strategy = user;
    for (int i = 0; i < TR_OBSERVERS; i++) {
        const struct tr_strategy_observer *observer = &strategy->observer[i];
        if (observer->layer) TR_TRY(observer->layer(observer->user, layer, output, count));
    }
    return TR_OK;
}

static tr_status show_update(void *user, const float *gradient, int64_t begin, int64_t end)
{
    const tr_strategy *strategy = user;
    for (int i = 0; i < TR_OBSERVERS; i++) {
        const struct tr_strategy_observer *observer = &strategy->observer[i];
        if (observer->update) TR_TRY(observer->update(observer->user, gradient, begin, end));
    }
    return TR_OK;
}

void tr_strategy_observe(tr_strategy *strategy, enum tr_observer who, struct tr_strategy_observer observer)
{
    struct tr_strategy_observer all = {.user = strategy};
    assert(!tr_strategy_has_begun(strategy));
    strategy->observer[who] = observer;
    for (int i = 0; i < TR_OBSERVERS; i++) {
        if (strategy->observer[i].layer) all.layer = show_layer;
        if (strategy->observer[i].update) all.update = show_update;
    }
    strategy->all_observers = all;
    tr_variables_observe(strategy->replicas->variables, all.update, all.user);
}

tr_status tr_strategy_run_worker(tr_strategy *strategy, const atomic_int *stop, int32_t request)
{
    return strategy->class->asynchronous->work(strategy, stop, request, NULL);
}

tr_status tr_strategy_inherit(tr_strategy *strategy, tr_strategy *from, int64_t step)
{
    return strategy->class->succession->inherit(strategy, from, step);
}

static tr_status put(tr_strategy *strategy, tr_variables *variables, enum tr_arena arena, int64_t begin,
                     int64_t end, const float *values)
{
    float *to = tr_variables_arena(variables, arena);
    bool fills =
        arena == TR_ARENA_PARAMETERS ? tr_variables_fills(variables) : tr_variables_fills_state(variables);
    if (!to || !fills || !tr_variables_keep(variables, arena, begin, end)) return TR_OK;
    return tr_device_to_device(strategy->holder, to + begin, values, (size_t)(end - begin) * sizeof *to);
}

tr_status tr_strategy_put(tr_strategy *strategy, enum tr_arena arena, int64_t begin, int64_t end,
                          const float *values)
{
    if (strategy->state) TR_TRY(put(strategy, strategy->state, arena, begin, end, values));
    for (int i = 0; i < strategy->replica_count; i++)
        TR_TRY(put(strategy, strategy->replicas[i].variables, arena, begin, end, values));
    return tr_device_wait(strategy->holder);
}

void tr_strategy_set_evaluation_hooks(tr_strategy *strategy, const struct tr_evaluation_hooks *hooks)
{
    strategy->hooks = *hooks;
}

tr_status tr_strategy_evaluate(tr_strategy *strategy, const struct tr_shared_evaluation *evaluation)
{
    const struct tr_strategy_asynchronous *class = strategy->class->asynchronous;
    if (class && class->evaluate) return class->evaluate(strategy, evaluation);
    return tr_fail(TR_EUNSUPPORTED, "evaluations are not shared under the strategy %s; evaluate by the root",
                   strategy->class->name);
}

tr_status tr_strategy_end(tr_strategy *strategy)
{
    return strategy->traits.asynchronous ? strategy->class->asynchronous->end(strategy, NULL) : TR_OK;
}

int64_t tr_strategy_take_ahead(tr_strategy *strategy)
{
    int64_t ahead = strategy->ahead;
    strategy->ahead = 0;
    return ahead;
}

tr_status tr_strategy_broadcast(tr_strategy *strategy, void *data, size_t bytes)
{
    if (!strategy->comm || tr_strategy_is_asynchronous(strategy)) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status = tr_comm_broadcast(strategy->comm, 0, data, bytes, "decision", &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

tr_status tr_strategy_locate_nonfinite(tr_strategy *strategy, int64_t step, char *name, size_t size)
{
    return tr_driver_locate_nonfinite(strategy, step, name, size);
}

/* ---- statistics ---- */

/* Every rank sends its figures to all. */
static tr_status gather_statistics(tr_strategy *strategy, struct tr_strategy_statistics *out)
{
    out->rank[strategy->rank] = strategy->done;
    if (!strategy->comm) return TR_OK;
    return tr_comm_exchange(strategy->comm, out->rank, sizeof *out->rank, "statistics");
}

void tr_strategy_count_anew(tr_strategy *strategy)
{
    strategy->shares.computed -= strategy->done.compute_seconds;
    strategy->done = (struct tr_rank_statistics){0};
    if (strategy->comm) tr_comm_statistics_reset(strategy->comm);
}

tr_status tr_strategy_statistics(tr_strategy *strategy, struct tr_strategy_statistics *out)
{
    *out = (struct tr_strategy_statistics){.ranks = strategy->size};
    out->rank = tr_alloc_zero((size_t)strategy->size, sizeof *out->rank);
    if (!out->rank) return TR_ENOMEM;
    tr_status status = strategy->traits.asynchronous ? strategy->class->asynchronous->end(strategy, out)
                                                     : gather_statistics(strategy, out);
    if (status != TR_OK) tr_strategy_statistics_release(out);
    return status;
}

void tr_strategy_statistics_release(struct tr_strategy_statistics *statistics)
{
    tr_free(statistics->rank);
    statistics->rank = NULL;
}
