/* The steps of a stage: units in flight, messages to and from its neighbours, and the tree of gradients.
 *
 * A unit's life: admitted (its rows are described and fed, its input activations may arrive) -> forward ->
 * its output activations are sent, their gradient may arrive -> backward -> the gradient of its inputs is
 * sent, its parameter gradients enter the tree.
 *
 * A flight is taken again when its unit has gone backward. By then all its messages are done but the last,
 * and the entry's gradient has separate memory (nn/pass/pass.h), so that nobody waits for a neighbour to
 * fetch it.
 */
#include "strategy/pipeline/stage_internal.h"

#include "base/threads/clock.h"
#include "base/fail.h"

#include <assert.h>

static bool is_first(const struct stage *stage)
{
    return stage->cell.stage == 0;
}

static bool is_last(const struct stage *stage)
{
    return stage->cell.stage == stage->cell.stages - 1;
}

static struct flight *flight_of(struct stage *stage, int64_t unit)
{
    return &stage->flights[unit % stage->plan.flights];
}

/* ---- messages ---- */

static tr_status wait_for(struct stage *stage, tr_ticket **ticket)
{
    return *ticket ? tr_comm_wait(stage->strategy->comm, ticket) : TR_OK;
}

static size_t bytes_in(const struct flight *flight)
{
    return (size_t)tr_pass_entry_floats(flight->pass, &flight->batch) * sizeof(float);
}

static tr_status receive_activations(struct stage *stage, struct flight *flight)
{
    if (is_first(stage)) return TR_OK;
    return tr_comm_receive(stage->strategy->comm, stage->cell.previous, STAGE_TAG_ACTIVATIONS,
                           flight->in.values.host, bytes_in(flight), "activations", &flight->entry);
}

static tr_status send_activations(struct stage *stage, struct flight *flight)
{
    if (is_last(stage)) return TR_OK;
    size_t bytes = (size_t)tr_pass_exit_floats(flight->pass, &flight->batch) * sizeof(float);
    TR_TRY(tr_comm_send_numbers(stage->strategy->comm, stage->cell.next, STAGE_TAG_ACTIVATIONS,
                                flight->out.values.host, bytes, "activations", &flight->exit));
    if (!flight->out.gradient.data) return TR_OK;
    return tr_comm_receive(stage->strategy->comm, stage->cell.next, STAGE_TAG_GRADIENTS,
                           flight->out.gradient.host, bytes, "gradient of activations",
                           &flight->exit_gradient);
}

/* ---- weights that other stages share ---- */

static size_t leaves_bytes(const struct stage *stage, const struct flight *flight, int i)
{
    return (size_t)flight->batch.microbatches * (size_t)stage->shared.item[i].tie.floats * sizeof(float);
}

/* A lender's leaves may arrive after the pass's forward. */
static tr_status receive_leaves(struct stage *stage, struct flight *flight)
{
    for (int i = 0; i < stage->shared.count; i++) {
        const struct tr_shared_weight *item = &stage->shared.item[i];
        if (!item->tie.lends) continue;
        TR_TRY(tr_comm_receive(stage->strategy->comm, item->peer, STAGE_TAG_LEAVES, flight->leaves[i].host,
                               leaves_bytes(stage, flight, i), "gradient of shared weights",
                               &flight->leaves_ticket[i]));
    }
    return TR_OK;
}

/* A lender's leaves have arrived; a borrower's leaves of the unit before have been sent. */
static tr_status wait_for_leaves(struct stage *stage, struct flight *flight)
{
    for (int i = 0; i < stage->shared.count; i++) TR_TRY(wait_for(stage, &flight->leaves_ticket[i]));
    return TR_OK;
}

/* Copies between the device and the memory of messages: data for lenders, or of borrowers. */
static tr_status move_leaves(struct stage *stage, struct flight *flight, bool lends)
{
    for (int i = 0; i < stage->shared.count; i++) {
        const int64_t floats = (int64_t)(leaves_bytes(stage, flight, i) / sizeof(float));
        if (stage->shared.item[i].tie.lends != lends) continue;
        TR_TRY(lends ? tr_staging_to_device(&flight->leaves[i], 0, floats)
                     : tr_staging_to_host(&flight->leaves[i], 0, floats));
    }
    return TR_OK;
}

static tr_status send_leaves(struct stage *stage, struct flight *flight)
{
    for (int i = 0; i < stage->shared.count; i++) {
        const struct tr_shared_weight *item = &stage->shared.item[i];
        if (item->tie.lends) continue;
        TR_TRY(tr_comm_send_numbers(stage->strategy->comm, item->peer, STAGE_TAG_LEAVES,
                                    flight->leaves[i].host, leaves_bytes(stage, flight, i),
                                    "gradient of shared weights", &flight->leaves_ticket[i]));
    }
    return TR_OK;
}

/* ---- the device ---- */

/* Copies between the device and the memory of messages, where needed. */
static tr_status take(const struct tr_staging *from_neighbour, int64_t floats)
{
    return from_neighbour->data ? tr_staging_to_device(from_neighbour, 0, floats) : TR_OK;
}

static tr_status give(const struct tr_staging *to_neighbour, int64_t floats)
{
    return to_neighbour->data ? tr_staging_to_host(to_neighbour, 0, floats) : TR_OK;
}

static tr_status send_gradient(struct stage *stage, struct flight *flight)
{
    if (is_first(stage)) return TR_OK;
    if (!flight->in.gradient.data) return TR_OK;
    return tr_comm_send_numbers(stage->strategy->comm, stage->cell.previous, STAGE_TAG_GRADIENTS,
                                flight->in.gradient.host, bytes_in(flight), "gradient of activations",
                                &flight->entry_gradient);
}

/* ---- the tree ---- */

/* The slot for the gradients of a unit. */
static float *take_slot(struct stage *stage, const struct unit *unit)
{
    if (unit->leaf == 0) return stage->results + unit->node * stage->plan.stride;
    assert(stage->spares > 0);
    return stage->spare[--stage->spares];
}

/* Adds the youngest of the waiting gradients to the one before it. */
static tr_status combine(struct stage *stage)
{
    float *left = stage->waiting[stage->depth - 2], *right = stage->waiting[stage->depth - 1];
    struct tr_op_add add = {stage->plan.stride, left, right, left};
    stage->depth--;
    stage->spare[stage->spares++] = right;
    return tr_device_add(stage->strategy->device, &add);
}

static tr_status enter_tree(struct stage *stage, const struct unit *unit, float *slot)
{
    stage->waiting[stage->depth++] = slot;
    for (int i = tr_tree_combines_after(unit->leaf); i > 0; i--) TR_TRY(combine(stage));
    while (unit->last && stage->depth > 1) TR_TRY(combine(stage));
    if (unit->last) stage->depth = 0; /* the rest is in the node's own slot */
    return TR_OK;
}

/* The same for the last unit of the last stage, whose sums are copied to the host. */
static tr_status end_tree(struct stage *stage, const struct unit *unit, float *slot)
{
    const struct stage_plan *plan = &stage->plan;
    const float *sums = stage->results + (plan->arena_end - plan->arena_begin);
    TR_TRY(enter_tree(stage, unit, slot));
    return tr_device_to_host(stage->strategy->device, stage->sums, sums, TR_PASS_SUMS * sizeof *sums);
}

/* ---- a unit ---- */

static tr_status admit(struct stage *stage, const struct tr_batch *batch, int64_t number)
{
    const struct tr_job *job = stage->strategy->job;
    const struct unit *unit = &stage->units[number];
    struct flight *flight = flight_of(stage, number);
    struct tr_step_scalars *scalars = tr_mirror_scalars(stage->mirror);
    tr_rows_describe(&flight->rows, job, batch, unit->first, unit->end, batch->global_rows,
                     batch->global_labels, scalars, &flight->batch);
    int64_t begin = (int64_t)flight->batch.first_example - batch->first;
    TR_TRY(receive_activations(stage, flight));
    return tr_feed_rows(stage->feed, flight->pass, batch, begin, begin + flight->batch.examples,
                        (uint64_t)job->file.seed, scalars);
}

/* Between layers, messages of other units make progress: a large one may need both sides to do so. */
static tr_status move_on(void *user)
{
    const struct stage *stage = user;
    return stage->strategy->comm ? tr_comm_progress(stage->strategy->comm) : TR_OK;
}

void stage_accompany(struct stage *stage)
{
    for (int i = 0; i < stage->plan.flights; i++) tr_pass_accompany(stage->flights[i].pass, move_on, stage);
}

/* Reports how long the rank computed, and sleeps as a straggler does. */
static void account(struct stage *stage, int64_t step, double start)
{
    tr_strategy_delay(stage->strategy, step, tr_clock_seconds() - start);
    stage->strategy->done.compute_seconds += tr_clock_seconds() - start;
}

static tr_status forward(struct stage *stage, int64_t step, int64_t number)
{
    tr_strategy *strategy = stage->strategy;
    struct flight *flight = flight_of(stage, number);
    const struct tr_strategy_observer *observer = &strategy->all_observers;
    const float *parameters = tr_mirror_parameters(stage->mirror);
    TR_TRY(wait_for(stage, &flight->entry));
    tr_pass_observe(flight->pass, observer->layer, observer->user);
    double start = tr_clock_seconds();
    flight->slot = stage->plan.early ? take_slot(stage, &stage->units[number]) : NULL;
    tr_status status = take(&flight->in.values, tr_pass_entry_floats(flight->pass, &flight->batch));
    if (status == TR_OK)
        status = tr_pass_forward(flight->pass, &flight->batch, parameters, flight->slot, stage->plan.stride);
    if (status == TR_OK && is_last(stage)) status = tr_pass_loss(flight->pass, &flight->batch);
    if (status == TR_OK)
        status = give(&flight->out.values, tr_pass_exit_floats(flight->pass, &flight->batch));
    /* In the last stage backward follows at once, and is waited for. */
    if (status == TR_OK && !is_last(stage)) status = tr_device_wait(strategy->device);
    account(stage, step, start);
    if (status == TR_OK) status = receive_leaves(stage, flight);
    return status == TR_OK ? send_activations(stage, flight) : status;
}

static tr_status backward(struct stage *stage, int64_t step, int64_t number)
{
    tr_strategy *strategy = stage->strategy;
    const struct unit *unit = &stage->units[number];
    struct flight *flight = flight_of(stage, number);
    const float *parameters = tr_mirror_parameters(stage->mirror);
    TR_TRY(wait_for(stage, &flight->exit_gradient));
    TR_TRY(wait_for(stage, &flight->exit));
    TR_TRY(wait_for(stage, &flight->entry_gradient)); /* of the unit before in this flight */
    TR_TRY(wait_for_leaves(stage, flight));
    double start = tr_clock_seconds();
    if (!flight->slot) flight->slot = take_slot(stage, unit);
    tr_status status = take(&flight->out.gradient, tr_pass_exit_floats(flight->pass, &flight->batch));
    if (status == TR_OK) status = move_leaves(stage, flight, true);
    if (status == TR_OK)
        status = tr_pass_backward(flight->pass, &flight->batch, parameters, flight->slot, stage->plan.stride);
    if (status == TR_OK)
        status = give(&flight->in.gradient, tr_pass_entry_floats(flight->pass, &flight->batch));
    if (status == TR_OK) status = move_leaves(stage, flight, false);
    bool ends = stage->sums && number == stage->plan.units - 1;
    if (status == TR_OK && ends) status = end_tree(stage, unit, flight->slot);
    /* If no rank waits for the result, waits for the next forward, or for the end of the last unit. */
    bool tells = !is_first(stage) || stage->shared.count > 0 || ends;
    if (status == TR_OK && tells) status = tr_device_wait(strategy->device);
    if (status == TR_OK) status = send_leaves(stage, flight);
    if (status == TR_OK) status = send_gradient(stage, flight);
    if (status == TR_OK && !ends) status = enter_tree(stage, unit, flight->slot);
    account(stage, step, start);
    return status;
}

tr_status stage_step(struct stage *stage, int64_t step, int64_t *examples)
{
    const struct tr_batch *batch;
    const struct stage_plan *plan = &stage->plan;
    int64_t units = plan->units, flights = plan->flights, gone = 0, back = 0;
    TR_TRY(tr_mirror_renew(stage->mirror, TR_ARENA_PARAMETERS));
    TR_TRY(tr_shared_weights_hand(&stage->shared, tr_mirror_parameters(stage->mirror)));
    TR_TRY(tr_loader_get(stage->loader, step, &batch));
    *examples = batch->global_rows;
    for (int64_t i = 0; i < flights; i++) TR_TRY(admit(stage, batch, i));
    while (back < units) {
        if (gone < units && gone - back < plan->depth) {
            TR_TRY(forward(stage, step, gone++));
            continue;
        }
        TR_TRY(backward(stage, step, back++));
        if (back - 1 + flights < units) TR_TRY(admit(stage, batch, back - 1 + flights));
    }
    for (int64_t i = 0; i < flights; i++) {
        TR_TRY(wait_for(stage, &stage->flights[i].entry_gradient));
        TR_TRY(wait_for_leaves(stage, &stage->flights[i]));
    }
    TR_TRY(tr_shared_weights_wait(&stage->shared));
    stage->strategy->done.contributions++;
    return TR_OK;
}
