/* Evaluations of a trainer: by all ranks that compute, each its part. */
#include "train/trainer_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"

#include <assert.h>
#include <math.h>

/* Those of a set that a rank has: as large a part of all as of each step's microbatches. */
static void examples_of(const tr_trainer *trainer, const struct tr_placement *place, int64_t count,
                        int64_t *first, int64_t *end)
{
    int64_t microbatches = trainer->job->train.microbatches;
    *first = count * place->first_microbatch / microbatches;
    *end = count * place->end_microbatch / microbatches;
}

/* The rank with the layers that begin or end with `layer` for the same examples as `own`. */
static int neighbour(const tr_trainer *trainer, const struct tr_placement *own, int layer, bool begins)
{
    for (int r = 0; r < tr_comm_size(trainer->comm); r++) {
        struct tr_placement other;
        tr_strategy_placement(trainer->strategy, r, &other);
        if ((begins ? other.first_layer : other.end_layer) == layer &&
            other.first_microbatch == own->first_microbatch && other.end_microbatch == own->end_microbatch)
            return r;
    }
    return -1;
}

static struct tr_evaluation_part part_of(const tr_trainer *trainer, const struct tr_placement *own)
{
    int layers = trainer->job->model->layer_count;
    return (struct tr_evaluation_part){
        .first_layer = own->first_layer,
        .end_layer = own->end_layer,
        .previous = own->first_layer > 0 ? neighbour(trainer, own, own->first_layer, false) : -1,
        .next = own->end_layer < layers ? neighbour(trainer, own, own->end_layer, true) : -1,
        .comm = trainer->comm,
    };
}

tr_status trainer_evaluated(tr_trainer *trainer, const float **parameters)
{
    bool averaged = tr_variables_arena(trainer->variables, TR_ARENA_EMA) != NULL;
    if (!trainer->reach) TR_TRY(tr_reach_create(trainer->variables, trainer->device, &trainer->reach));
    if (averaged) TR_TRY(tr_variables_complete_ema(trainer->variables));
    TR_TRY(tr_reach_renew(trainer->reach, averaged ? TR_ARENA_EMA : TR_ARENA_PARAMETERS));
    *parameters = tr_reach_parameters(trainer->reach);
    return TR_OK;
}

/* Runs examples [first, end) through this rank's part, NULL for all layers; `rows` are those of all examples.
 */
static tr_status run_part(tr_trainer *trainer, enum tr_data_set set, const struct tr_evaluation_part *part,
                          int64_t first, int64_t end, struct tr_evaluated_row *rows)
{
    tr_evaluator **evaluator = &trainer->evaluator[set];
    const float *parameters;
    if (first == end) return TR_OK;
    if (!*evaluator)
        TR_TRY(
            tr_evaluator_create(trainer->device, trainer->job, trainer->job->source[set], part, evaluator));
    TR_TRY(trainer_evaluated(trainer, &parameters));
    tr_span_begin(TR_ACTIVITY_EVALUATION, tr_data_set_names[set]);
    tr_status status = tr_evaluator_run(*evaluator, parameters, first, end, NULL, NULL, rows + first);
    tr_span_end();
    return status;
}

/* Brings the rows of all ranks to all. */
static tr_status share_rows(tr_trainer *trainer, int64_t count, struct tr_evaluated_row *rows)
{
    int size = tr_comm_size(trainer->comm);
    tr_ticket *ticket = NULL;
    int64_t *bound = tr_alloc_zero((size_t)size + 1, sizeof *bound);
    if (!bound) return TR_ENOMEM;
    for (int r = 0; r < size; r++) {
        struct tr_placement place;
        int64_t first, end;
        tr_strategy_placement(trainer->strategy, r, &place);
        examples_of(trainer, &place, count, &first, &end);
        bool has = place.end_layer == trainer->job->model->layer_count;
        assert(!has || first == end || bound[r] == first * (int64_t)sizeof *rows);
        bound[r + 1] = bound[r] + (has ? end - first : 0) * (int64_t)sizeof *rows;
    }
    tr_status status = tr_comm_all_gather(trainer->comm, rows, bound, NULL, "evaluation", &ticket);
    if (status == TR_OK) status = tr_comm_wait(trainer->comm, &ticket);
    tr_free(bound);
    return status;
}

static tr_status evaluate_together(tr_trainer *trainer, enum tr_data_set set, int64_t count,
                                   struct tr_evaluated_row *rows)
{
    struct tr_placement own;
    int64_t first, end;
    tr_strategy_placement(trainer->strategy, tr_comm_rank(trainer->comm), &own);
    examples_of(trainer, &own, count, &first, &end);
    struct tr_evaluation_part part = part_of(trainer, &own);
    TR_TRY(tr_strategy_gather_averages(trainer->strategy));
    tr_status status = run_part(trainer, set, &part, first, end, rows);
    trainer_release(trainer);
    if (status == TR_OK) return share_rows(trainer, count, rows);
    tr_evaluator_destroy(&trainer->evaluator[set]); /* before its messages are ended with all others */
    return status;
}

tr_status trainer_evaluate(tr_trainer *trainer, enum tr_data_set set, struct tr_train_event *event)
{
    bool together = trainer->comm && !tr_strategy_is_asynchronous(trainer->strategy);
    TR_TRY(tr_job_open_set(trainer->job, set));
    int64_t count = tr_source_info(trainer->job->source[set])->count;
    struct tr_evaluated_row *rows = tr_alloc((size_t)count + 1, sizeof *rows);
    if (!rows) return TR_ENOMEM;
    double start = tr_clock_seconds();
    tr_status status = together ? evaluate_together(trainer, set, count, rows)
                                : run_part(trainer, set, NULL, 0, count, rows);
    struct tr_evaluation evaluation = {0};
    if (status == TR_OK) evaluation = tr_evaluation_of(rows, count);
    /* After a failure the rows of others may still arrive. */
    bool over = status == TR_OK || !together || tr_comm_end_operations(trainer->comm, tr_error_message());
    if (over) tr_free(rows);
    if (status != TR_OK) return status;
    double seconds = tr_clock_seconds() - start;
    *event = (struct tr_train_event){
        .kind = TR_EVENT_EVALUATION,
        .step = trainer->step,
        .steps = trainer->job->train.steps,
        .epoch = (double)trainer->step / (double)trainer->steps_per_epoch,
        .loss = evaluation.loss,
        .accuracy = evaluation.accuracy,
        .gradient_norm = NAN,
        .examples = count,
        .seconds = seconds,
        .examples_per_second = seconds > 0 ? (double)count / seconds : 0,
        .name = tr_data_set_names[set],
        .hash = "",
    };
    return TR_OK;
}

tr_status tr_trainer_evaluate(tr_trainer *trainer, const char *name, struct tr_train_event *event)
{
    enum tr_data_set set = TR_SET_TEST;
    TR_TRY(tr_data_set_find(name, &set));
    return trainer_evaluate(trainer, set, event);
}
