/* Choosing a strategy by the model file, and what all strategies have in common. */
#include "strategy/strategy.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/rng.h"
#include "base/timeline.h"
#include "job/reach.h"
#include "strategy/class.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- choosing ---- */

static tr_status find_class(const tr_config *node, const struct tr_strategy_class **class,
                            const tr_config **options)
{
    const char *name = node ? tr_config_text(node) : tr_strategy_classes[0]->name;
    *options = NULL;
    if (node && tr_config_kind(node) == TR_CONFIG_NULL) name = tr_strategy_classes[0]->name;
    if (node && tr_config_kind(node) == TR_CONFIG_MAPPING && tr_config_count(node) == 1) {
        name = tr_config_key(node, 0);
        *options = tr_config_at(node, 0);
    }
    if (!name)
        return tr_config_fail(
            TR_EINVAL, node, "a strategy is written as `allreduce` or `local-sgd: {replicas: 2}`, here is %s",
            tr_config_kind_name(node));
    for (int i = 0; tr_strategy_classes[i]; i++) {
        *class = tr_strategy_classes[i];
        if (strcmp(name, (*class)->name) == 0) return TR_OK;
    }
    struct tr_text names = TR_TEXT_INIT;
    for (int i = 0; tr_strategy_classes[i]; i++)
        tr_text_addf(&names, "%s%s", i ? ", " : "", tr_strategy_classes[i]->name);
    tr_status status = tr_config_fail(TR_EINVAL, node, "there is no strategy \"%s\"; choose one of %s", name,
                                      names.bytes ? names.bytes : "");
    tr_text_release(&names);
    return status;
}

/* Reads the options; *out is returned, free with release_options(). */
static tr_status read_options(const tr_config *choice, const struct tr_strategy_class **class, void **out)
{
    const tr_config *node;
    TR_TRY(find_class(choice, class, &node));
    void *options = tr_alloc_zero(1, (*class)->options_size + 1);
    if (!options) return TR_ENOMEM;
    tr_status status = tr_options_defaults((*class)->options, (*class)->option_count, options);
    if (status == TR_OK)
        status = tr_options_read((*class)->options, (*class)->option_count, node, (*class)->name, options);
    if (status != TR_OK) {
        tr_options_release((*class)->options, (*class)->option_count, options);
        tr_free(options);
        return status;
    }
    *out = options;
    return TR_OK;
}

static void release_options(const struct tr_strategy_class *class, void *options)
{
    if (options) tr_options_release(class->options, class->option_count, options);
    tr_free(options);
}

static tr_status check(const struct tr_job *job, const struct tr_strategy_class *class, const void *options,
                       int ranks)
{
    if (ranks > TR_STRATEGY_RANKS)
        return tr_fail(TR_EINVAL, "%d ranks; at most %d can share a job", ranks, TR_STRATEGY_RANKS);
    return class->check(job, options, ranks);
}

tr_status tr_strategy_check(const struct tr_job *job, int ranks)
{
    const struct tr_strategy_class *class;
    void *options;
    TR_TRY(read_options(job->file.strategy, &class, &options));
    tr_status status = check(job, class, options, ranks);
    release_options(class, options);
    return status;
}

tr_status tr_strategy_peek(const tr_config *choice, const char **name, bool *asynchronous)
{
    const struct tr_strategy_class *class;
    void *options;
    TR_TRY(read_options(choice, &class, &options));
    *name = class->name;
    *asynchronous = class->asynchronous && class->asynchronous(options);
    release_options(class, options);
    return TR_OK;
}

tr_status tr_strategy_outline(const struct tr_job *job, int workers, struct tr_strategy_outline *out)
{
    const struct tr_strategy_class *class;
    void *options;
    TR_TRY(read_options(job->file.strategy, &class, &options));
    *out = (struct tr_strategy_outline){
        .name = class->name,
        .ranks = class->ranks ? class->ranks(options, workers) : workers,
        .asynchronous = class->asynchronous && class->asynchronous(options),
        .own_hash = class->own_hash,
    };
    tr_status status = check(job, class, options, out->ranks);
    release_options(class, options);
    return status;
}

/* ---- making ---- */

static tr_status create_chosen(tr_strategy *strategy)
{
    TR_TRY(check(strategy->job, strategy->class, strategy->options, strategy->size));
    bool direct = tr_reach_is_direct(strategy->device, strategy->holder);
    if (!direct && (strategy->comm || strategy->class != &tr_strategy_all_reduce))
        return tr_fail(TR_EUNSUPPORTED,
                       "parameters on %s and computing on %s share no memory; several processes, and the "
                       "strategy %s, need devices that do",
                       strategy->holder->class->name, strategy->device->class->name, strategy->class->name);
    return strategy->class->create(strategy);
}

tr_status tr_strategy_create(tr_device *device, const struct tr_job *job, tr_comm *comm,
                             const struct tr_strategy_settings *settings, tr_strategy **out)
{
    const struct tr_strategy_class *class;
    void *options;
    *out = NULL;
    TR_TRY(read_options(job->file.strategy, &class, &options));
    tr_strategy *strategy = tr_alloc_zero(1, class->size);
    if (!strategy) {
        release_options(class, options);
        return TR_ENOMEM;
    }
    *strategy = (tr_strategy){
        .class = class,
        .options = options,
        .device = device,
        .holder = settings->holder ? settings->holder : device,
        .job = job,
        .comm = comm,
        .rank = comm ? tr_comm_rank(comm) : 0,
        .size = comm ? tr_comm_size(comm) : 1,
        .settings = *settings,
    };
    strategy->watch = &strategy->own_watch;
    tr_status status = create_chosen(strategy);
    if (status != TR_OK) {
        tr_strategy_destroy(&strategy);
        return status;
    }
    *out = strategy;
    return TR_OK;
}

tr_status tr_strategy_create_inner(const tr_strategy *outer, const struct tr_strategy_class *class,
                                   tr_device *device, int servers, tr_strategy **out)
{
    *out = NULL;
    tr_strategy *strategy = tr_alloc_zero(1, class->size);
    void *options = tr_alloc_zero(1, class->options_size + 1);
    if (!strategy || !options) {
        tr_free(strategy);
        tr_free(options);
        return TR_ENOMEM;
    }
    *strategy = *outer;
    strategy->class = class;
    strategy->options = options;
    strategy->device = device;
    if (outer->holder == outer->device) strategy->holder = device;
    strategy->servers = servers;
    strategy->variables = NULL;
    strategy->gradient = NULL;
    tr_status status = tr_options_defaults(class->options, class->option_count, options);
    if (status == TR_OK) status = class->create(strategy);
    if (status == TR_OK)
        *out = strategy;
    else
        tr_strategy_destroy(&strategy);
    return status;
}

/* Nothing reads or writes the strategy's memory any more. False: messages after a failure may. */
static bool end_messages(tr_strategy *strategy)
{
    static const char why[] = "it ended while operations were under way";
    bool over = true;
    if (strategy->class->cancel) over = strategy->class->cancel(strategy);
    if (strategy->part) over = tr_comm_end_operations(strategy->part, why) && over;
    if (strategy->comm) over = tr_comm_end_operations(strategy->comm, why) && over;
    return over;
}

void tr_strategy_destroy(tr_strategy **handle)
{
    tr_strategy *strategy = *handle;
    if (!strategy) return;
    *handle = NULL;
    if (!end_messages(strategy)) {
        tr_gradient_leave(&strategy->gradient);
        if (strategy->class->leave) strategy->class->leave(strategy);
        return;
    }
    tr_gradient_destroy(&strategy->gradient);
    tr_variables_destroy(&strategy->variables);
    strategy->class->destroy(strategy);
    release_options(strategy->class, strategy->options);
    tr_free(strategy);
}

tr_status tr_strategy_begin(tr_strategy *strategy)
{
    return strategy->class->begin(strategy);
}

const char *tr_strategy_name(const tr_strategy *strategy)
{
    return strategy->class->name;
}

bool tr_strategy_is_asynchronous(const tr_strategy *strategy)
{
    return strategy->class->asynchronous && strategy->class->asynchronous(strategy->options);
}

bool tr_strategy_is_spread(const tr_strategy *strategy)
{
    return strategy->comm && strategy->class->release;
}

tr_variables *tr_strategy_variables(const tr_strategy *strategy)
{
    return strategy->variables;
}

void tr_strategy_placement(const tr_strategy *strategy, int rank, struct tr_placement *out)
{
    const struct tr_model *model = strategy->job->model;
    strategy->class->placement(strategy, rank, out);
    out->parameters = out->confined ? 0 : model->parameter_total;
    for (int i = out->first_layer; out->confined && i < out->end_layer; i++)
        for (int k = 0; k < model->layers[i].parameter_count; k++)
            out->parameters += model->parameters[model->layers[i].parameter[k]].count;
}

size_t tr_strategy_memory(const tr_strategy *strategy)
{
    return strategy->class->memory ? strategy->class->memory(strategy) : tr_strategy_usual_memory(strategy);
}

size_t tr_strategy_usual_memory(const tr_strategy *strategy)
{
    return tr_variables_memory(strategy->variables) +
           (strategy->gradient ? tr_gradient_memory(strategy->gradient) : 0);
}

/* ---- the run ---- */

tr_status tr_strategy_meet(tr_strategy *strategy, int64_t step)
{
    return strategy->class->meet ? strategy->class->meet(strategy, step) : tr_strategy_barrier(strategy);
}

tr_status tr_strategy_barrier(tr_strategy *strategy)
{
    if (!strategy->comm) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status = tr_comm_barrier(strategy->comm, &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

/* What this rank's communicators have moved so far. */
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

tr_status tr_strategy_step(tr_strategy *strategy, int64_t step, int32_t wish, struct tr_step_figures *figures)
{
    struct tr_comm_statistics before = traffic(strategy);
    struct tr_rank_statistics *done = &strategy->done;
    *figures = (struct tr_step_figures){.steps = 1, .norm = NAN, .settled = true};
    tr_status status = strategy->class->step(strategy, step, wish, figures);
    struct tr_comm_statistics after = traffic(strategy);
    done->bytes_sent += after.bytes_sent - before.bytes_sent;
    done->bytes_received += after.bytes_received - before.bytes_received;
    done->bytes_shared += after.bytes_shared - before.bytes_shared;
    done->wait_seconds += after.wait_seconds - before.wait_seconds;
    return status;
}

static tr_status show_layer(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    const tr_strategy *strategy = user;
    for (int i = 0; i < TR_WATCHERS; i++) {
        const struct tr_strategy_watch *watcher = &strategy->watcher[i];
        if (watcher->layer) TR_TRY(watcher->layer(watcher->user, layer, output, count));
    }
    return TR_OK;
}

static tr_status show_update(void *user, const float *gradient, int64_t begin, int64_t end)
{
    const tr_strategy *strategy = user;
    for (int i = 0; i < TR_WATCHERS; i++) {
        const struct tr_strategy_watch *watcher = &strategy->watcher[i];
        if (watcher->update) TR_TRY(watcher->update(watcher->user, gradient, begin, end));
    }
    return TR_OK;
}

void tr_strategy_watch(tr_strategy *strategy, enum tr_watcher who, struct tr_strategy_watch watch)
{
    struct tr_strategy_watch all = {.user = strategy};
    strategy->watcher[who] = watch;
    for (int i = 0; i < TR_WATCHERS; i++) {
        if (strategy->watcher[i].layer) all.layer = show_layer;
        if (strategy->watcher[i].update) all.update = show_update;
    }
    *strategy->watch = all;
    tr_variables_watch(strategy->variables, all.update, all.user);
}

tr_status tr_strategy_follow(tr_strategy *strategy, const volatile sig_atomic_t *stop, int32_t wish)
{
    return strategy->class->follow(strategy, stop, wish);
}

tr_status tr_strategy_end(tr_strategy *strategy)
{
    return strategy->class->end ? strategy->class->end(strategy) : TR_OK;
}

tr_status tr_strategy_settle(tr_strategy *strategy)
{
    return strategy->class->settle ? strategy->class->settle(strategy) : TR_OK;
}

tr_status tr_strategy_gather(tr_strategy *strategy)
{
    return strategy->class->gather ? strategy->class->gather(strategy) : TR_OK;
}

tr_status tr_strategy_gather_parameters(tr_strategy *strategy)
{
    return strategy->class->gather_parameters ? strategy->class->gather_parameters(strategy)
                                              : tr_strategy_gather(strategy);
}

tr_status tr_strategy_gather_averages(tr_strategy *strategy)
{
    if (!tr_variables_arena(strategy->variables, TR_ARENA_EMA)) return TR_OK;
    return strategy->class->gather_averages ? strategy->class->gather_averages(strategy) : TR_OK;
}

void tr_strategy_release(tr_strategy *strategy)
{
    if (strategy->class->release) strategy->class->release(strategy);
}

tr_status tr_strategy_bring(tr_strategy *strategy, enum tr_arena arena, int64_t begin, int64_t end,
                            const float **values)
{
    *values = NULL;
    return strategy->class->bring(strategy, arena, begin, end, values);
}

/* Brings a parameter to the chief, and there adds it to the hash; `hash` is NULL elsewhere. */
static tr_status feed(void *user, const struct tr_parameter *parameter, tr_sha256 *hash)
{
    int64_t end = parameter->offset + parameter->count, next;
    for (int64_t at = parameter->offset; at < end; at = next) {
        const float *values;
        next = end - at < TR_STRATEGY_PIECE ? end : at + TR_STRATEGY_PIECE;
        TR_TRY(tr_strategy_bring(user, TR_ARENA_PARAMETERS, at, next, &values));
        if (hash) tr_sha256_add(hash, values, (size_t)(next - at) * sizeof *values);
    }
    return TR_OK;
}

tr_status tr_strategy_hash(tr_strategy *strategy, char hex[TR_SHA256_TEXT])
{
    const struct tr_model *model = strategy->job->model;
    if (!tr_strategy_is_spread(strategy)) return tr_variables_hash(strategy->variables, hex);
    if (strategy->rank == 0) TR_TRY(tr_model_hash_fed(model, feed, strategy, hex));
    for (int i = 0; strategy->rank > 0 && i < model->parameter_count; i++)
        TR_TRY(feed(strategy, &model->parameters[i], NULL));
    return tr_strategy_share(strategy, hex, TR_SHA256_TEXT);
}

int64_t tr_strategy_take_ahead(tr_strategy *strategy)
{
    int64_t ahead = strategy->ahead;
    strategy->ahead = 0;
    return ahead;
}

tr_status tr_strategy_share(tr_strategy *strategy, void *data, size_t bytes)
{
    if (!strategy->comm || tr_strategy_is_asynchronous(strategy)) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status = tr_comm_broadcast(strategy->comm, 0, data, bytes, "decision", &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

tr_status tr_strategy_blame(tr_strategy *strategy, int64_t step, char *name, size_t size)
{
    if (strategy->class->blame) return strategy->class->blame(strategy, step, name, size);
    if (strategy->gradient) return tr_gradient_blame(strategy->gradient, step, name, size);
    snprintf(name, size, "gradient");
    return TR_OK;
}

/* ---- statistics ---- */

tr_status tr_strategy_gather_statistics(tr_strategy *strategy, struct tr_strategy_statistics *out)
{
    out->rank[strategy->rank] = strategy->done;
    if (!strategy->comm) return TR_OK;
    return tr_comm_exchange(strategy->comm, out->rank, sizeof *out->rank, "statistics");
}

tr_status tr_strategy_statistics(tr_strategy *strategy, struct tr_strategy_statistics *out)
{
    *out = (struct tr_strategy_statistics){.ranks = strategy->size};
    out->rank = tr_alloc_zero((size_t)strategy->size, sizeof *out->rank);
    if (!out->rank) return TR_ENOMEM;
    tr_status status = strategy->class->statistics ? strategy->class->statistics(strategy, out)
                                                   : tr_strategy_gather_statistics(strategy, out);
    if (status != TR_OK) tr_strategy_statistics_release(out);
    return status;
}

void tr_strategy_statistics_release(struct tr_strategy_statistics *statistics)
{
    tr_free(statistics->rank);
    statistics->rank = NULL;
}

/* ---- for classes ---- */

bool tr_strategy_measures(const struct tr_job *job)
{
    return job->optimizer.clip_norm > 0 || job->train.on_nonfinite == TR_NONFINITE_SKIP;
}

tr_status tr_strategy_measure(tr_strategy *strategy, const float *gradient, struct tr_step_figures *figures)
{
    if (!tr_strategy_measures(strategy->job)) return TR_OK;
    if (!figures->bad_loss) TR_TRY(tr_variables_measure(strategy->variables, gradient));
    return tr_strategy_judge(strategy, figures);
}

tr_status tr_strategy_judge(tr_strategy *strategy, struct tr_step_figures *figures)
{
    bool skips = strategy->job->train.on_nonfinite == TR_NONFINITE_SKIP;
    if (!figures->bad_loss) TR_TRY(tr_variables_norm(strategy->variables, &figures->norm));
    figures->skipped = skips && (figures->bad_loss || !isfinite(figures->norm));
    return TR_OK;
}

void tr_strategy_delay(const tr_strategy *strategy, int64_t step, double seconds)
{
    const struct tr_strategy_settings *settings = &strategy->settings;
    double delay = settings->slow > 1 ? (settings->slow - 1) * seconds : 0;
    if (settings->delay_seed) {
        /* Exponential with a mean of half a step, as the waiting times of independent disturbances are. */
        uint32_t words[4];
        tr_rng_philox(tr_rng_key_make(settings->delay_seed, TR_RNG_DELAY), (uint32_t)strategy->rank,
                      (uint32_t)step, 0, 0, words);
        double uniform = ((double)words[0] + 0.5) / 4294967296.0;
        delay += -log(uniform) * 0.5 * seconds;
    }
    if (delay <= 0) return;
    struct timespec time = {(time_t)delay, (long)((delay - floor(delay)) * 1e9)};
    while (nanosleep(&time, &time) != 0) continue;
}

tr_status tr_strategy_compute(tr_strategy *strategy, int64_t step, int64_t *examples)
{
    if (!strategy->gradient) {
        struct tr_order order;
        TR_TRY(tr_job_order(strategy->job, &order));
        *examples = tr_order_at(&order, step).rows;
        return TR_OK;
    }
    return tr_strategy_compute_with(strategy, strategy->gradient, step, examples);
}

tr_status tr_strategy_compute_with(tr_strategy *strategy, tr_gradient *gradient, int64_t step,
                                   int64_t *examples)
{
    double start = tr_clock_seconds();
    tr_timeline_step(step); /* for those who do not step with the others */
    if (strategy->watch->layer) tr_gradient_watch(gradient, strategy->watch->layer, strategy->watch->user);
    tr_status status = tr_gradient_step(gradient, step, examples);
    if (strategy->watch->layer) tr_gradient_watch(gradient, NULL, NULL);
    TR_TRY(status);
    tr_strategy_delay(strategy, step, tr_clock_seconds() - start);
    strategy->done.compute_seconds += tr_clock_seconds() - start;
    strategy->done.contributions++;
    return TR_OK;
}

tr_status tr_strategy_window(tr_strategy *strategy, size_t bytes, tr_window **out)
{
    return tr_strategy_window_of(strategy, strategy->comm, bytes, out);
}

tr_status tr_strategy_window_of(tr_strategy *strategy, tr_comm *part, size_t bytes, tr_window **out)
{
    return tr_strategy_window_sparse(strategy, part, bytes, 0, bytes, out);
}

tr_status tr_strategy_window_sparse(tr_strategy *strategy, tr_comm *part, size_t bytes, size_t begin,
                                    size_t end, tr_window **out)
{
    *out = NULL;
    if (!tr_device_host_view(strategy->device, strategy)) return TR_OK;
    tr_status status = tr_window_create_sparse(part, bytes, begin, end, out);
    return status == TR_EUNSUPPORTED ? TR_OK : status;
}

tr_status tr_strategy_wait(tr_strategy *strategy, tr_status status, tr_ticket *ticket)
{
    return status == TR_OK ? tr_comm_wait(strategy->comm, &ticket) : status;
}

tr_status tr_strategy_keep_moving(tr_strategy *strategy, const tr_window *window)
{
    if (!strategy->comm || (window && tr_comm_hosts(strategy->comm) == 1)) return TR_OK;
    return tr_comm_keep_moving(strategy->comm, true);
}

/* What ranks tell each other at the end of a step. */
struct notice {
    int32_t poisoned, wish;
};

tr_status tr_strategy_exchange(tr_strategy *strategy, bool poisoned, int32_t wish,
                               struct tr_step_figures *figures)
{
    struct notice notices[TR_STRATEGY_RANKS] = {{poisoned, wish}};
    if (strategy->comm) {
        notices[strategy->rank] = (struct notice){poisoned, wish};
        TR_TRY(tr_comm_exchange(strategy->comm, notices, sizeof *notices, "end of step"));
    }
    for (int r = 0; r < strategy->size; r++) {
        figures->poisoned |= notices[r].poisoned != 0;
        figures->wish |= notices[r].wish;
    }
    return TR_OK;
}
