#include "dispute/step.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "job/step/variables.h"
#include "train/loop/trainer.h"
#include "train/receipt/state_root.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void dispute_step_begin(struct dispute_step *step)
{
    *step = (struct dispute_step){.evidence.file = -1};
}

static void release_state(struct dispute_state *state)
{
    tr_free(state->leaf);
    tr_free(state->sum);
    *state = (struct dispute_state){0};
}

void dispute_step_release(struct dispute_step *step)
{
    release_state(&step->before);
    release_state(&step->after);
    tr_evidence_release(&step->evidence);
    dispute_step_begin(step);
}

/* ---- states ---- */

struct taking {
    struct tr_evidence *evidence;
    struct dispute_state *state;
};

static tr_status take_leaf(void *user, const struct trainer_leaf *given)
{
    const struct taking *taking = user;
    struct dispute_state *state = taking->state;
    if (!tr_grow(&state->leaf, state->count, sizeof *state->leaf) ||
        !tr_grow(&state->sum, state->count, sizeof *state->sum))
        return TR_ENOMEM;
    struct dispute_leaf *leaf = &state->leaf[state->count];
    *leaf = (struct dispute_leaf){.device = given->device, .size = (int64_t)given->size};
    snprintf(leaf->name, sizeof leaf->name, "%s", given->name ? given->name : "");
    TR_TRY(tr_merkle_leaf(taking->evidence->hash, given->bytes, given->size, &state->sum[state->count]));
    state->count++;
    return tr_evidence_store(taking->evidence, given->bytes, (int64_t)given->size, &leaf->at);
}

static tr_status take_state(struct dispute_step *step, tr_trainer *trainer, struct dispute_state *state)
{
    struct taking taking = {&step->evidence, state};
    TR_TRY(trainer_state_tell(trainer, take_leaf, &taking));
    return tr_merkle_root(state->sum, state->count, &state->root);
}

/* ---- the step ---- */

static tr_status add_arenas(struct dispute_step *step, tr_trainer *trainer)
{
    const tr_variables *variables = trainer_variables(trainer);
    const int64_t bytes = tr_variables_floats(variables) * (int64_t)sizeof(float);
    for (int i = 0; i < TR_ARENAS; i++) {
        const float *arena = tr_variables_arena(variables, (enum tr_arena)i);
        if (arena && bytes > 0)
            TR_TRY(tr_evidence_memory(&step->evidence, TR_EVIDENCE_INITIAL, tr_arena_names[i], arena, bytes));
    }
    return TR_OK;
}

tr_status dispute_step_make(struct dispute_step *step, tr_trainer *trainer, tr_device *witness, bool keeps)
{
    TR_TRY(tr_evidence_open(tr_witness_inner(witness), &step->evidence));
    TR_TRY(take_state(step, trainer, &step->before));
    TR_TRY(add_arenas(step, trainer));
    if (keeps) TR_TRY(tr_witness_keep(witness, &step->evidence));
    tr_witness_watch(witness, &step->evidence);
    tr_status status = tr_trainer_step(trainer, NULL);
    tr_witness_watch(witness, NULL);
    if (status == TR_ENONFINITE) status = TR_OK; /* the dispute is about the numbers up to there */
    if (status == TR_OK) status = take_state(step, trainer, &step->after);
    if (status == TR_OK) status = tr_evidence_close(&step->evidence);
    if (status == TR_OK) status = tr_merkle_root(step->evidence.leaf, step->evidence.entries, &step->root);
    step->made = status == TR_OK;
    return status;
}

/* ---- answers ---- */

void dispute_step_tell(const struct dispute_step *step, struct tr_text *text)
{
    tr_text_addf(text, "record %" PRId64, step->evidence.entries);
    tr_wire_add_digest(text, &step->root);
    tr_text_addf(text, " %" PRId64, step->before.count);
    tr_wire_add_digest(text, &step->before.root);
    tr_text_addf(text, " %" PRId64, step->after.count);
    tr_wire_add_digest(text, &step->after.root);
}

/* The tree named in a question. */
struct tree {
    const struct tr_sha256_sum *sum; /* [count] */
    int64_t count;
    const struct dispute_state *state; /* or NULL */
    int64_t region;                    /* or -1 */
};

static tr_status find_tree(struct dispute_step *step, struct tr_wire *wire, struct tree *out)
{
    *out = (struct tree){.region = -1};
    if (tr_wire_begins(wire, "entries")) {
        out->sum = step->evidence.leaf;
        out->count = step->evidence.entries;
        return TR_OK;
    }
    if (tr_wire_begins(wire, "before"))
        out->state = &step->before;
    else if (tr_wire_begins(wire, "after"))
        out->state = &step->after;
    if (out->state) {
        out->sum = out->state->sum;
        out->count = out->state->count;
        return TR_OK;
    }
    out->region = tr_wire_number(wire, step->evidence.regions - 1);
    if (wire->bad) return tr_fail(TR_EINVAL, "there is no such tree");
    out->count = tr_evidence_leaves(&step->evidence.region[out->region]);
    return tr_evidence_leaf_sums(&step->evidence, out->region, &out->sum);
}

static tr_status answer_node(struct dispute_step *step, struct tr_wire *wire, struct tr_text *text)
{
    struct tree tree;
    struct tr_sha256_sum left, right;
    TR_TRY(find_tree(step, wire, &tree));
    const int64_t first = tr_wire_number(wire, INT64_MAX / 4), count = tr_wire_number(wire, INT64_MAX / 4);
    if (!tr_wire_ends(wire) || count < 2 || first + count > tree.count)
        return tr_fail(TR_EINVAL, "there is no such node");
    int64_t half = 1;
    while (half < count - half) half *= 2;
    TR_TRY(tr_merkle_root(tree.sum + first, half, &left));
    TR_TRY(tr_merkle_root(tree.sum + first + half, count - half, &right));
    tr_text_add(text, "node");
    tr_wire_add_digest(text, &left);
    tr_wire_add_digest(text, &right);
    return TR_OK;
}

static tr_status answer_leaf(struct dispute_step *step, struct tr_wire *wire, struct tr_text *text)
{
    struct tree tree;
    struct tr_merkle_proof proof;
    TR_TRY(find_tree(step, wire, &tree));
    const int64_t leaf = tr_wire_number(wire, INT64_MAX);
    if (!tr_wire_ends(wire) || leaf >= tree.count || (!tree.state && tree.region < 0))
        return tr_fail(TR_EINVAL, "there is no such leaf");
    const struct tr_evidence_region *region = tree.region >= 0 ? &step->evidence.region[tree.region] : NULL;
    const int64_t size = region ? tr_evidence_leaf_bytes(region, leaf) : tree.state->leaf[leaf].size;
    const int64_t at = region ? region->at + leaf * TR_EVIDENCE_LEAF : tree.state->leaf[leaf].at;
    void *bytes = tr_alloc((size_t)size + 1, 1);
    if (!bytes) return TR_ENOMEM;
    tr_status status = tr_evidence_read(&step->evidence, at, size, bytes);
    if (status == TR_OK) status = tr_merkle_prove(tree.sum, tree.count, leaf, &proof);
    if (status == TR_OK) {
        tr_text_add(text, "leaf");
        tr_wire_add_bytes(text, bytes, (size_t)size);
        tr_wire_add_way(text, &proof);
    }
    tr_free(bytes);
    return status;
}

static tr_status answer_entry(struct dispute_step *step, struct tr_wire *wire, struct tr_text *text)
{
    struct tr_merkle_proof proof;
    const struct tr_evidence *evidence = &step->evidence;
    const int64_t number = tr_wire_number(wire, evidence->entries - 1);
    if (!tr_wire_ends(wire)) return tr_fail(TR_EINVAL, "there is no such entry");
    const struct tr_evidence_entry *entry = &evidence->entry[number];
    tr_text_addf(text, "entry %s %d", entry->name, entry->regions);
    for (int i = 0; i < entry->regions; i++)
        tr_wire_add_digest(text, &evidence->region[entry->first + i].root);
    TR_TRY(tr_merkle_prove(evidence->leaf, evidence->entries, number, &proof));
    tr_wire_add_way(text, &proof);
    return TR_OK;
}

tr_status dispute_step_answer(struct dispute_step *step, struct tr_wire *wire, struct tr_text *text)
{
    if (!step->made) return tr_fail(TR_EINVAL, "no step has been recorded");
    if (tr_wire_begins(wire, "node")) return answer_node(step, wire, text);
    if (tr_wire_begins(wire, "leaf")) return answer_leaf(step, wire, text);
    if (tr_wire_begins(wire, "entry")) return answer_entry(step, wire, text);
    return tr_fail(TR_EINVAL, "there is no such question");
}
