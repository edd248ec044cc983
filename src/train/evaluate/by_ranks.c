#include "train/evaluate/by_ranks.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/sized.h"
#include "train/loop/internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void trainer_evaluation_drop(struct trainer_evaluation *evaluation)
{
    for (int i = 0; i < TR_SETS; i++) tr_evaluator_destroy(&evaluation->evaluator[i]);
    tr_mirror_destroy(&evaluation->mirror);
}

void trainer_evaluation_release(struct trainer_evaluation *evaluation)
{
    trainer_evaluation_drop(evaluation);
    tr_metrics_destroy(&evaluation->metrics);
}

enum tr_data_set trainer_judging_set(const struct tr_job *job)
{
    if (tr_job_has_set(job, TR_SET_VALIDATION)) return TR_SET_VALIDATION;
    return tr_job_has_set(job, TR_SET_TEST) ? TR_SET_TEST : TR_SETS;
}

/* A rank's examples of a set: the same fraction as of each step's microbatches. */
static void examples_of(const tr_trainer *trainer, const struct tr_placement *placement, int64_t count,
                        int64_t *first, int64_t *end)
{
    int64_t microbatches = trainer->job->train.microbatches;
    *first = count * placement->first_microbatch / microbatches;
    *end = count * placement->end_microbatch / microbatches;
}

/* The rank with the layers before or after `layer` for the same examples as `own`. */
static int neighbour(const tr_trainer *trainer, const struct tr_placement *own, int layer, bool begins)
{
    for (int r = 0; r < tr_comm_size(trainer->crew.comm); r++) {
        struct tr_placement other;
        tr_strategy_placement(trainer->variables.strategy, r, &other);
        if ((begins ? other.first_layer : other.end_layer) == layer &&
            other.first_microbatch == own->first_microbatch && other.end_microbatch == own->end_microbatch)
            return r;
    }
    return -1;
}

/* Of a trainer, with the layers of its rank. */
struct finder {
    const tr_trainer *trainer;
    struct tr_placement own;
};

/* The rank that has a layer for the same examples. */
static int rank_of_layer(const void *user, int layer)
{
    const struct finder *finder = user;
    for (int r = 0; r < tr_comm_size(finder->trainer->crew.comm); r++) {
        struct tr_placement other;
        tr_strategy_placement(finder->trainer->variables.strategy, r, &other);
        if (layer >= other.first_layer && layer < other.end_layer &&
            other.first_microbatch == finder->own.first_microbatch &&
            other.end_microbatch == finder->own.end_microbatch)
            return r;
    }
    return -1;
}

static struct tr_evaluation_part part_of(const struct finder *finder)
{
    const tr_trainer *trainer = finder->trainer;
    const struct tr_placement *own = &finder->own;
    int layers = trainer->job->model->layer_count;
    return (struct tr_evaluation_part){
        .first_layer = own->first_layer,
        .end_layer = own->end_layer,
        .previous = own->first_layer > 0 ? neighbour(trainer, own, own->first_layer, false) : -1,
        .next = own->end_layer < layers ? neighbour(trainer, own, own->end_layer, true) : -1,
        .comm = trainer->crew.comm,
        .rank_of = rank_of_layer,
        .user = finder,
    };
}

tr_status trainer_evaluated(tr_trainer *trainer, const float **parameters)
{
    /* On ranks other than the root of an asynchronous run, the evaluated parameters replace theirs. */
    bool shown = tr_strategy_is_asynchronous(trainer->variables.strategy) && !trainer_is_root(trainer);
    bool averaged = !shown && tr_variables_arena(trainer->variables.arenas, TR_ARENA_EMA) != NULL;
    if (!trainer->evaluation.mirror)
        TR_TRY(tr_mirror_create(trainer->variables.arenas, trainer->variables.device,
                                &trainer->evaluation.mirror));
    if (averaged && !trainer->crew.comm) TR_TRY(tr_strategy_gather_averages(trainer->variables.strategy));
    if (averaged) TR_TRY(tr_variables_complete_ema(trainer->variables.arenas));
    TR_TRY(tr_mirror_renew(trainer->evaluation.mirror, averaged ? TR_ARENA_EMA : TR_ARENA_PARAMETERS));
    *parameters = tr_mirror_parameters(trainer->evaluation.mirror);
    return TR_OK;
}

/* The results of an evaluation, for all `count` examples. */
struct trainer_found {
    int64_t count, width;
    struct tr_evaluated_row *rows; /* [count] */
    float *answers;                /* [count][width], or NULL */
};

static tr_status make_found(const tr_trainer *trainer, int64_t count, struct trainer_found *found)
{
    *found = (struct trainer_found){.count = count, .width = tr_metrics_width(trainer->job, count)};
    found->rows = tr_alloc((size_t)count + 1, sizeof *found->rows);
    if (found->width > 0) found->answers = tr_alloc((size_t)(count * found->width), sizeof *found->answers);
    return found->rows && (found->answers || found->width == 0) ? TR_OK : TR_ENOMEM;
}

static void release_found(struct trainer_found *found)
{
    tr_free(found->rows);
    tr_free(found->answers);
}

/* Runs examples [first, end) through this rank's part, NULL for all layers, into `rows` and `answers`. */
static tr_status run_part(tr_trainer *trainer, enum tr_data_set set, const struct tr_evaluation_part *part,
                          int64_t first, int64_t end, struct tr_evaluated_row *rows, float *answers)
{
    tr_evaluator **evaluator = &trainer->evaluation.evaluator[set];
    const float *parameters;
    if (first == end) return TR_OK;
    if (!*evaluator)
        TR_TRY(tr_evaluator_create(trainer->variables.device, trainer->job, trainer->job->source[set], part,
                                   true, evaluator));
    TR_TRY(trainer_evaluated(trainer, &parameters));
    tr_span_begin(TR_ACTIVITY_EVALUATION, tr_data_set_names[set]);
    tr_status status = tr_evaluator_run(*evaluator, parameters, first, end, NULL, NULL, rows, answers);
    tr_span_end();
    return status;
}

/* Those of the examples from `first` on. */
static float *answers_of(const struct trainer_found *found, int64_t first)
{
    return found->answers ? found->answers + first * found->width : NULL;
}

/* Gathers all ranks' results on all: `bytes` for each of `count` examples. */
static tr_status share(tr_trainer *trainer, int64_t count, size_t bytes, void *values)
{
    int size = tr_comm_size(trainer->crew.comm);
    tr_ticket *ticket = NULL;
    int64_t *bound = tr_alloc_zero((size_t)size + 1, sizeof *bound);
    if (!bound) return TR_ENOMEM;
    for (int r = 0; r < size; r++) {
        struct tr_placement placement;
        int64_t first, end;
        tr_strategy_placement(trainer->variables.strategy, r, &placement);
        examples_of(trainer, &placement, count, &first, &end);
        bool has = placement.end_layer == trainer->job->model->layer_count;
        assert(!has || first == end || bound[r] == first * (int64_t)bytes);
        bound[r + 1] = bound[r] + (has ? end - first : 0) * (int64_t)bytes;
    }
    tr_status status = tr_comm_all_gather(trainer->crew.comm, values, bound, NULL, "evaluation", &ticket);
    if (status == TR_OK) status = tr_comm_wait(trainer->crew.comm, &ticket);
    tr_free(bound);
    return status;
}

static tr_status share_found(tr_trainer *trainer, const struct trainer_found *found)
{
    TR_TRY(share(trainer, found->count, sizeof *found->rows, found->rows));
    if (!found->answers) return TR_OK;
    return share(trainer, found->count, (size_t)found->width * sizeof *found->answers, found->answers);
}

static tr_status evaluate_together(tr_trainer *trainer, enum tr_data_set set,
                                   const struct trainer_found *found)
{
    struct finder finder = {.trainer = trainer};
    int64_t first, end;
    tr_strategy_placement(trainer->variables.strategy, tr_comm_rank(trainer->crew.comm), &finder.own);
    examples_of(trainer, &finder.own, found->count, &first, &end);
    struct tr_evaluation_part part = part_of(&finder);
    TR_TRY(tr_strategy_gather_averages(trainer->variables.strategy));
    tr_status status =
        run_part(trainer, set, &part, first, end, found->rows + first, answers_of(found, first));
    trainer_variables_drop(&trainer->variables);
    if (status == TR_OK) return share_found(trainer, found);
    tr_evaluator_destroy(
        &trainer->evaluation.evaluator[set]); /* before its messages are ended with all others */
    return status;
}

/* ---- pieces that workers take as they come to it ---- */

/* The result of a piece: the rows of its examples, then their answers. */
static tr_status evaluate(void *user, const struct tr_shared_evaluation *evaluation, int64_t first,
                          int64_t end, void *found)
{
    tr_trainer *trainer = user;
    enum tr_data_set set = (enum tr_data_set)evaluation->set;
    struct tr_evaluated_row *rows = found;
    if (evaluation->set < 0 || evaluation->set >= TR_SETS)
        return tr_fail(TR_EMISMATCH, "an evaluation of data set %lld", (long long)evaluation->set);
    TR_TRY(tr_job_open_set(trainer->job, set));
    int64_t count = tr_source_info(trainer->job->source[set])->count,
            width = tr_metrics_width(trainer->job, count),
            bytes = (int64_t)sizeof *rows + width * (int64_t)sizeof(float);
    if (evaluation->count != count || evaluation->bytes != bytes)
        return tr_fail(TR_EMISMATCH,
                       "%lld examples to evaluate, where there are %lld; give all hosts the same data",
                       (long long)evaluation->count, (long long)count);
    float *answers = width > 0 ? (float *)(void *)(rows + (end - first)) : NULL;
    return run_part(trainer, set, NULL, first, end, rows, answers);
}

static tr_status take(void *user, const struct tr_shared_evaluation *evaluation, int64_t first, int64_t end,
                      const void *piece)
{
    const tr_trainer *trainer = user;
    const struct trainer_found *found = trainer->evaluation.found;
    const struct tr_evaluated_row *rows = piece;
    size_t count = (size_t)(end - first);
    (void)evaluation;
    memcpy(found->rows + first, rows, count * sizeof *rows);
    if (found->answers)
        memcpy(answers_of(found, first), rows + count, count * (size_t)found->width * sizeof(float));
    return TR_OK;
}

void trainer_set_evaluation_hooks(tr_trainer *trainer)
{
    tr_strategy_set_evaluation_hooks(trainer->variables.strategy,
                                     &(struct tr_evaluation_hooks){evaluate, take, trainer});
}

/* Average number of pieces of each worker in an evaluation: enough for slow ones to do less. */
#define PIECES 4

static tr_status evaluate_in_pieces(tr_trainer *trainer, enum tr_data_set set, struct trainer_found *found)
{
    int64_t most = trainer->job->train.evaluate_batch,
            parts = (int64_t)PIECES * tr_comm_size(trainer->crew.comm);
    struct tr_shared_evaluation evaluation = {
        .set = set,
        .count = found->count,
        .piece = (found->count + parts - 1) / parts,
        .bytes = (int64_t)sizeof *found->rows + found->width * (int64_t)sizeof *found->answers,
    };
    if (evaluation.piece > most) evaluation.piece = most;
    trainer->evaluation.found = found;
    tr_status status = tr_strategy_evaluate(trainer->variables.strategy, &evaluation);
    trainer->evaluation.found = NULL;
    return status;
}

/* Evaluates on all ranks; or on the workers of an asynchronous run under way; or on this rank. */
static tr_status find(tr_trainer *trainer, enum tr_data_set set, struct trainer_found *found)
{
    if (trainer->crew.comm && !tr_strategy_is_asynchronous(trainer->variables.strategy))
        return evaluate_together(trainer, set, found);
    bool shares = trainer->evaluation.shares && tr_strategy_shares_evaluations(trainer->variables.strategy);
    if (shares && trainer->crew.comm) return evaluate_in_pieces(trainer, set, found);
    return run_part(trainer, set, NULL, 0, found->count, found->rows, found->answers);
}

tr_status trainer_evaluate(tr_trainer *trainer, enum tr_data_set set, struct tr_train_event *event)
{
    bool together = trainer->crew.comm && !tr_strategy_is_asynchronous(trainer->variables.strategy);
    TR_TRY(tr_job_open_set(trainer->job, set));
    int64_t count = tr_source_info(trainer->job->source[set])->count;
    struct trainer_found found;
    struct tr_evaluation evaluation = {0};
    tr_metrics_destroy(&trainer->evaluation.metrics);
    tr_status status = make_found(trainer, count, &found);
    if (status != TR_OK) {
        release_found(&found);
        return status;
    }
    double start = tr_clock_seconds();
    status = find(trainer, set, &found);
    /* After a failure the rows of others may arrive later. */
    bool over =
        status == TR_OK || !together || tr_comm_end_operations(trainer->crew.comm, tr_error_message());
    if (status == TR_OK) {
        evaluation = tr_evaluation_of(found.rows, count);
        status = tr_metrics_make(trainer->job, count, found.rows, found.answers, evaluation.loss,
                                 &trainer->evaluation.metrics);
    }
    if (over) release_found(&found);
    if (status != TR_OK) return status;
    double seconds = tr_clock_seconds() - start;
    *event = (struct tr_train_event){
        .size = sizeof *event,
        .kind = TR_EVENT_EVALUATION,
        .step = trainer->variables.step,
        .steps = trainer->job->train.steps,
        .epoch = (double)trainer->variables.step / (double)trainer->steps_per_epoch,
        .loss = evaluation.loss,
        .accuracy = evaluation.accuracy,
        .perplexity = tr_job_perplexity(trainer->job, evaluation.loss),
        .tokens_per_second = NAN,
        .gradient_norm = NAN,
        .examples = count,
        .seconds = seconds,
        .examples_per_second = seconds > 0 ? (double)count / seconds : 0,
        .name = tr_data_set_names[set],
        .hash = "",
        .metrics = trainer->evaluation.metrics,
    };
    return TR_OK;
}

tr_status tr_trainer_evaluate(tr_trainer *trainer, const char *name, struct tr_train_event *out)
{
    enum tr_data_set set = TR_SET_TEST;
    struct tr_train_event event;
    TR_TRY(trainer_check_process(trainer));
    TR_TRY(tr_sized_check(out, "TR_TRAIN_EVENT_INIT"));
    TR_TRY(tr_data_set_find(name, &set));
    TR_TRY(trainer_evaluate(trainer, set, &event));
    return tr_sized_give(&event, sizeof event, "TR_TRAIN_EVENT_INIT", out);
}
