/* Settles a number in which two parties differ: its unit, with the inputs that it opens, and the case for
 * the referee.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "dispute/court.h"
#include "job/job.h"
#include "optim/schedule.h"
#include "train/loop/trainer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GIVEN (-1) /* in place of a region: given by the model file and the data */
#define STATE (-2) /* likewise: a leaf of the state before the step */

/* The disputed number. */
struct dispute {
    struct court *court;
    int64_t entry, region, byte;
    /* Another output of the same operation on which it depends, and in which they differ, too. */
    bool moved;
    int64_t moved_region, moved_byte;
};

static const char *name_of_address(const struct court *court, const char *address)
{
    const struct dispute_state *state = &court->own.before;
    for (int64_t i = 0; i < state->count; i++) {
        const char *begin = (const char *)state->leaf[i].device;
        if (begin && address >= begin && address < begin + state->leaf[i].size) return state->leaf[i].name;
    }
    return NULL;
}

/* ---- leaves of the case ---- */

static struct court_leaf *find_leaf(struct court *court, int64_t region, int64_t leaf)
{
    for (int64_t i = court->leaves - 1; i >= 0; i--)
        if (court->leaf[i].region == region && court->leaf[i].leaf == leaf) return &court->leaf[i];
    return NULL;
}

static struct court_leaf *add_leaf(struct court *court, int64_t region, int64_t leaf, int64_t size)
{
    if (!tr_grow(&court->leaf, court->leaves, sizeof *court->leaf)) {
        court->status = TR_ENOMEM;
        return NULL;
    }
    struct court_leaf *out = &court->leaf[court->leaves++];
    *out = (struct court_leaf){.region = region, .leaf = leaf, .size = size};
    return out;
}

static int write_leaf(struct court *court, const void *bytes, int64_t size)
{
    tr_text_add(&court->leaf_text, "leaf");
    tr_wire_add_bytes(&court->leaf_text, bytes, (size_t)size);
    tr_text_add(&court->leaf_text, "\n");
    return court->cased++;
}

static void write_by(struct court *court, int record, int64_t number, const struct tr_merkle_proof *proof)
{
    const struct tr_evidence *own = &court->own.evidence;
    int64_t entry = 0;
    while (own->entry[entry].first + own->entry[entry].regions <= number) entry++;
    tr_text_addf(&court->leaf_text, "by %d %" PRId64 " %" PRId64 " %" PRId64, record,
                 number - own->entry[entry].first, proof->leaf, proof->leaves);
    tr_wire_add_way(&court->leaf_text, proof);
    tr_text_add(&court->leaf_text, "\n");
}

static int64_t entry_of_region(const struct tr_evidence *own, int64_t region)
{
    int64_t low = 0, high = own->entries - 1;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (own->entry[middle].first <= region)
            low = middle;
        else
            high = middle - 1;
    }
    return low; /* entries without regions begin where the next one does, so they are not the last */
}

/* A leaf that the judge has itself. */
static struct court_leaf *given_leaf(struct court *court, const void *bytes, int64_t size, int64_t place)
{
    struct court_leaf *leaf = add_leaf(court, GIVEN, place, size);
    if (!leaf) return NULL;
    memcpy(leaf->bytes, bytes, (size_t)size);
    leaf->id = write_leaf(court, bytes, size);
    tr_text_add(&court->leaf_text, "given\n");
    return leaf;
}

/* ---- opening inputs ---- */

/* A leaf from before the disputed entry: both are committed to the same one. */
static struct court_leaf *open_before(struct court *court, int64_t region, int64_t number)
{
    struct court_leaf *leaf = find_leaf(court, region, number);
    struct tr_merkle_proof proof;
    if (leaf) return leaf;
    const int64_t at = entry_of_region(&court->own.evidence, region);
    const struct court_entry *entry = court_entry_of(court, at);
    if (!entry) return NULL;
    const int64_t index = region - court->own.evidence.entry[at].first;
    if (entry->record[A] != entry->record[B]) {
        court_conclude(court, TR_DISPUTE_OPEN, "they differ in what came before what they differ in first");
        return NULL;
    }
    leaf =
        add_leaf(court, region, number, tr_evidence_leaf_bytes(&court->own.evidence.region[region], number));
    if (!leaf || !court_leaf_of(court, A, region, number, &entry->root[A][index], leaf->bytes, &proof)) {
        if (leaf) court->leaves--;
        return NULL;
    }
    leaf->id = write_leaf(court, leaf->bytes, leaf->size);
    write_by(court, entry->record[A], region, &proof);
    return leaf;
}

/* Bytes of a leaf of the disputed entry itself: both open theirs; where these bytes are equal they become
   a separate leaf. NULL with dispute->moved where they differ. */
static struct court_leaf *open_own(struct dispute *dispute, int64_t region, int64_t byte, int bytes)
{
    struct court *court = dispute->court;
    const int64_t number = byte / TR_EVIDENCE_LEAF, in_leaf = byte % TR_EVIDENCE_LEAF;
    const int64_t key = -8 - byte; /* distinct from keys of whole leaves */
    struct court_leaf *leaf = find_leaf(court, region, key);
    unsigned char has[SIDES][TR_EVIDENCE_LEAF];
    int id[SIDES];
    if (leaf) return leaf;
    const struct court_entry *entry = court_entry_of(court, dispute->entry);
    if (!entry) return NULL;
    const int64_t index = region - court->own.evidence.entry[dispute->entry].first;
    for (int side = 0; side < SIDES; side++) {
        struct tr_merkle_proof proof;
        if (!court_leaf_of(court, side, region, number, &entry->root[side][index], has[side], &proof))
            return NULL;
        id[side] =
            write_leaf(court, has[side], tr_evidence_leaf_bytes(&court->own.evidence.region[region], number));
        write_by(court, entry->record[side], region, &proof);
    }
    if (memcmp(has[A] + in_leaf, has[B] + in_leaf, (size_t)bytes) != 0) {
        dispute->moved = true;
        dispute->moved_region = region;
        dispute->moved_byte = byte;
        return NULL;
    }
    leaf = add_leaf(court, region, key, bytes);
    if (!leaf) return NULL;
    memcpy(leaf->bytes, has[A] + in_leaf, (size_t)bytes);
    leaf->id = court->cased++;
    tr_text_addf(&court->leaf_text, "both %d %d %" PRId64 " %d\n", id[A], id[B], in_leaf, bytes);
    return leaf;
}

static tr_status outcome_of(const struct court *court)
{
    return court->status != TR_OK ? court->status : tr_fail(TR_EINTERRUPTED, "the dispute has ended");
}

/* A source of units' inputs. */
static tr_status open_input(void *user, const void *address, int bytes, bool own, uint64_t *value,
                            uint32_t *id, uint32_t *place)
{
    struct dispute *dispute = user;
    struct court *court = dispute->court;
    const struct tr_evidence *evidence = &court->own.evidence;
    int64_t byte = 0;
    const int64_t region = tr_evidence_writer(evidence, address, dispute->entry + (own ? 1 : 0), &byte);
    const bool is_own = region >= 0 && entry_of_region(evidence, region) == dispute->entry;
    struct court_leaf *leaf;
    *value = 0;
    if (own && !is_own) return tr_fail(TR_EFORMAT, "a unit takes for an output what is none");
    if (region < 0) {
        unsigned char kept[8];
        const int64_t key = (int64_t)(uintptr_t)address;
        TR_TRY(tr_evidence_kept(evidence, address, bytes, kept));
        leaf = find_leaf(court, GIVEN, key);
        if (!leaf || leaf->size < bytes) leaf = given_leaf(court, kept, bytes, key);
        byte = 0;
    } else if (is_own) {
        leaf = open_own(dispute, region, byte, bytes);
        byte = 0;
    } else {
        leaf = open_before(court, region, byte / TR_EVIDENCE_LEAF);
        byte %= TR_EVIDENCE_LEAF;
    }
    if (!leaf || !court_goes_on(court)) return outcome_of(court);
    if (byte + bytes > leaf->size) return tr_fail(TR_EFORMAT, "a number lies across leaves");
    memcpy(value, leaf->bytes + byte, (size_t)bytes);
    *id = (uint32_t)leaf->id;
    *place = (uint32_t)byte;
    return TR_OK;
}

/* ---- units ---- */

/* The contents of an address at the time of the entry. */
static tr_status copy_unit(struct dispute *dispute, const char *address, int size,
                           struct tr_unit_program *program)
{
    uint64_t value;
    uint32_t id, place;
    TR_TRY(open_input(dispute, address, size, false, &value, &id, &place));
    tr_program_load(program, size == 1, id, place, (uint32_t)value);
    return program->status;
}

/* Data from the host follow from the model file and the data. */
static tr_status upload_unit(struct dispute *dispute, struct tr_unit_program *program)
{
    struct court *court = dispute->court;
    const struct tr_evidence_region *region = &court->own.evidence.region[dispute->region];
    unsigned char bytes[4] = {0};
    uint32_t value = 0;
    if (trainer_job(court->trainer)->optimizer.schedule.kind == TR_SCHEDULE_PLATEAU &&
        tr_evidence_bytes(region) == (int64_t)sizeof(struct tr_step_scalars)) {
        court_conclude(court, TR_DISPUTE_OPEN,
                       "step %" PRId64 ": they differ in the learning rate, which follows evaluations here",
                       court->first + 1);
        return outcome_of(court);
    }
    TR_TRY(tr_evidence_read(&court->own.evidence, region->at + dispute->byte, region->size, bytes));
    const struct court_leaf *leaf = given_leaf(court, bytes, region->size, -1 - dispute->byte);
    if (!leaf) return TR_ENOMEM;
    memcpy(&value, bytes, sizeof value);
    tr_program_load(program, region->size == 1, (uint32_t)leaf->id, 0, value);
    return program->status;
}

/* A number of an arena before the step is part of the state. */
static tr_status state_unit(struct dispute *dispute, const char *address, struct tr_unit_program *program)
{
    struct court *court = dispute->court;
    const struct dispute_state *state = &court->own.before;
    static const unsigned char zero[4] = {0};
    int64_t i = 0;
    for (; i < state->count; i++) {
        const char *begin = (const char *)state->leaf[i].device;
        if (begin && address >= begin && address < begin + state->leaf[i].size) break;
    }
    if (i == state->count) { /* between parameters there are zeros */
        const struct court_leaf *leaf = given_leaf(court, zero, sizeof zero, -1);
        if (!leaf) return TR_ENOMEM;
        tr_program_load(program, false, (uint32_t)leaf->id, 0, 0);
        return program->status;
    }
    struct tr_wire wire;
    struct tr_sha256_sum sum;
    struct tr_merkle_proof proof;
    const size_t size = (size_t)state->leaf[i].size,
                 at = (size_t)(address - (const char *)state->leaf[i].device);
    unsigned char *bytes = tr_alloc(size + 1, 1);
    uint32_t value = 0;
    if (!bytes) return TR_ENOMEM;
    if (court_ask(court, A, &wire, "leaf before %" PRId64, i)) {
        wire.bad |= tr_wire_bytes(&wire, bytes, size) != size;
        court->status = tr_merkle_leaf(court->own.evidence.hash, bytes, size, &sum);
        tr_wire_way(&wire, i, state->count, &sum, &proof);
        if (court_took(court, A, &wire) && !court_equal(&sum, &court->before[A].root))
            court_forfeit(court, A, "opens a leaf of its state that does not lead to its root");
    }
    if (court_goes_on(court)) {
        const int id = write_leaf(court, bytes, (int64_t)size);
        tr_text_addf(&court->leaf_text, "state S %" PRId64 " %" PRId64, i, state->count);
        tr_wire_add_way(&court->leaf_text, &proof);
        tr_text_add(&court->leaf_text, "\n");
        memcpy(&value, bytes + at, sizeof value);
        tr_program_load(program, false, (uint32_t)id, (uint32_t)at, value);
    }
    tr_free(bytes);
    return court_goes_on(court) ? program->status : outcome_of(court);
}

static tr_status build(struct dispute *dispute, struct tr_unit_program *program)
{
    const struct tr_evidence *own = &dispute->court->own.evidence;
    const struct tr_evidence_entry *entry = &own->entry[dispute->entry];
    const struct tr_evidence_region *region = &own->region[dispute->region];
    const char *address = tr_evidence_address(region, dispute->byte);
    const int64_t at = dispute->byte / region->size, per_row = region->width / region->size;
    const struct tr_unit_output place = {region->name, region->nodes ? at / per_row : 0,
                                         region->nodes ? at % per_row : at};
    const struct tr_unit_source source = {open_input, dispute};
    switch (entry->kind) {
    case TR_EVIDENCE_OPERATION:
        return tr_unit_build(entry->operation, entry->arguments, &place, &source, program);
    case TR_EVIDENCE_UPLOAD:
        return upload_unit(dispute, program);
    case TR_EVIDENCE_INITIAL:
        return state_unit(dispute, address, program);
    case TR_EVIDENCE_DOWNLOAD:
        break;
    }
    return copy_unit(dispute, address, region->size, program);
}

/* ---- the verdict ---- */

static void add_root(struct tr_text *text, const char *name, const struct tr_sha256_sum *root)
{
    tr_text_addf(text, "root %s", name);
    tr_wire_add_digest(text, root);
    tr_text_add(text, "\n");
}

/* The number that each party claims, with the leaf that it opens. */
struct claimed {
    uint32_t value[SIDES];
    int leaf[SIDES];
    int64_t at; /* offset in the leaf */
};

static void write_case(struct court *court, const struct claimed *claimed, int size, bool floats,
                       const struct tr_unit_program *program)
{
    struct tr_text text = TR_TEXT_INIT;
    if (court->record_text.failed || court->leaf_text.failed) {
        court->status = TR_ENOMEM;
        return;
    }
    tr_text_addf(&text, "# step %" PRId64 ", %s\n", court->first + 1, court->result->place);
    add_root(&text, "A", &court->root[A]);
    add_root(&text, "B", &court->root[B]);
    add_root(&text, "S", &court->before[A].root);
    add_root(&text, "P", &court->state_after[A]);
    add_root(&text, "Q", &court->state_after[B]);
    if (court->record_text.length) tr_text_add(&text, court->record_text.bytes);
    tr_text_add(&text, court->leaf_text.bytes);
    for (int side = 0; side < SIDES; side++)
        tr_text_addf(&text, "claim %c %d %" PRId64 " %d\n", "AB"[side], claimed -> leaf[side], claimed -> at,
                     size);
    tr_text_add(&text, floats ? "float\n" : "bits\n");
    tr_program_write(program, &text);
    court->status = tr_text_finish(&text, &court->result->referee);
}

static void judge(struct court *court, const struct claimed *claimed, int size, bool floats,
                  const struct tr_unit_program *program)
{
    static const char *const words[] = {"both are right: which NaN a NaN is is not defined", "A is right",
                                        "B is right", "neither is right"};
    static const enum tr_dispute_outcome outcomes[] = {TR_DISPUTE_BOTH, TR_DISPUTE_A, TR_DISPUTE_B,
                                                       TR_DISPUTE_NEITHER};
    const uint32_t value = tr_program_result(program);
    const bool a = tr_program_same(claimed->value[A], value, floats);
    const bool b = tr_program_same(claimed->value[B], value, floats);
    const int which = a && b ? 0 : a ? 1 : b ? 2 : 3;
    write_case(court, claimed, size, floats, program);
    court_conclude(court, outcomes[which],
                   "step %" PRId64 ", %s: A has %08" PRIx32 ", B has %08" PRIx32
                   "; computed out of the inputs it is %08" PRIx32 " (%" PRId64 " instructions): %s",
                   court->first + 1, court->result->place, claimed->value[A], claimed->value[B], value,
                   program->count, words[which]);
}

/* Both open their number of the disputed entry. */
static bool hear_claims(struct dispute *dispute, struct claimed *out)
{
    struct court *court = dispute->court;
    const struct tr_evidence_region *region = &court->own.evidence.region[dispute->region];
    const struct court_entry *entry = court_entry_of(court, dispute->entry);
    const int64_t index = dispute->region - court->own.evidence.entry[dispute->entry].first;
    const int64_t number = dispute->byte / TR_EVIDENCE_LEAF;
    out->at = dispute->byte % TR_EVIDENCE_LEAF;
    for (int side = 0; side < SIDES && entry; side++) {
        unsigned char bytes[TR_EVIDENCE_LEAF];
        struct tr_merkle_proof proof;
        out->value[side] = 0;
        if (!court_leaf_of(court, side, dispute->region, number, &entry->root[side][index], bytes, &proof))
            return false;
        memcpy(&out->value[side], bytes + out->at, (size_t)region->size);
        out->leaf[side] = write_leaf(court, bytes, tr_evidence_leaf_bytes(region, number));
        write_by(court, entry->record[side], dispute->region, &proof);
    }
    return entry != NULL;
}

static void name_place(struct court *court, const struct dispute *dispute)
{
    const struct tr_evidence_entry *entry = &court->own.evidence.entry[dispute->entry];
    const struct tr_evidence_region *region = &court->own.evidence.region[dispute->region];
    const char *address = tr_evidence_address(region, dispute->byte);
    const char *tensor = name_of_address(court, address);
    snprintf(court->result->place, sizeof court->result->place, "%s %" PRId64 " %s[%" PRId64 "]%s%s",
             entry->name, dispute->entry, region->name, dispute->byte / region->size, tensor ? " of " : "",
             tensor ? tensor : "");
}

void court_settle_number(struct court *court, int64_t entry, int64_t region, int64_t byte)
{
    struct dispute dispute = {.court = court, .entry = entry, .region = region, .byte = byte};
    for (bool again = true; again && court_goes_on(court);) {
        struct tr_unit_program program = {0};
        struct claimed claimed;
        const struct tr_evidence_region *at = &court->own.evidence.region[dispute.region];
        const bool floats = at->size == 4 && court->own.evidence.entry[entry].kind != TR_EVIDENCE_UPLOAD;
        dispute.moved = false;
        name_place(court, &dispute);
        tr_status status = hear_claims(&dispute, &claimed) ? build(&dispute, &program) : TR_OK;
        again = dispute.moved;
        if (again) {
            dispute.region = dispute.moved_region;
            dispute.byte = dispute.moved_byte;
        } else if (court_goes_on(court) && status == TR_EUNSUPPORTED) {
            court_conclude(court, TR_DISPUTE_OPEN, "step %" PRId64 ", %s: %s", court->first + 1,
                           court->result->place, tr_error_message());
        } else if (court_goes_on(court) && status != TR_OK) {
            court->status = status;
        } else if (court_goes_on(court)) {
            judge(court, &claimed, at->size, floats, &program);
        }
        tr_program_release(&program);
    }
}

/* ---- the state after the step ---- */

/* For a step with equal numbers but different losses. */
static void settle_rest(struct court *court)
{
    court_conclude(court, TR_DISPUTE_OPEN,
                   "step %" PRId64
                   ": all its numbers are equal, and so are all tensors after it; they differ in "
                   "what they say of the loss, or in the figures of an evaluation",
                   court->first + 1);
}

static bool hear_state_leaf(struct court *court, int side, int64_t number, unsigned char *bytes, int *id)
{
    const struct dispute_state *state = &court->own.after;
    const size_t size = (size_t)state->leaf[number].size;
    struct tr_wire wire;
    struct tr_sha256_sum sum;
    struct tr_merkle_proof proof;
    if (!court_ask(court, side, &wire, "leaf after %" PRId64, number)) return false;
    wire.bad |= tr_wire_bytes(&wire, bytes, size) != size;
    court->status = tr_merkle_leaf(court->own.evidence.hash, bytes, size, &sum);
    tr_wire_way(&wire, number, state->count, &sum, &proof);
    if (court_took(court, side, &wire) && !court_equal(&sum, &court->state_after[side]))
        court_forfeit(court, side, "opens a leaf of its state that does not lead to its root");
    if (!court_goes_on(court)) return false;
    *id = write_leaf(court, bytes, (int64_t)size);
    tr_text_addf(&court->leaf_text, "state %c %" PRId64 " %" PRId64, "PQ"[side], number, state -> count);
    tr_wire_add_way(&court->leaf_text, &proof);
    tr_text_add(&court->leaf_text, "\n");
    return true;
}

static void settle_state_leaf(struct court *court, int64_t number, unsigned char *bytes[SIDES])
{
    const struct dispute_leaf *leaf = &court->own.after.leaf[number];
    struct dispute dispute = {.court = court, .entry = court->own.evidence.entries};
    struct tr_unit_program program = {0};
    struct claimed claimed;
    int64_t at = 0;
    for (int side = 0; side < SIDES; side++)
        if (!hear_state_leaf(court, side, number, bytes[side], &claimed.leaf[side])) return;
    while (at < leaf->size && bytes[A][at] == bytes[B][at]) at++;
    if (at == leaf->size) {
        court_conclude(court, TR_DISPUTE_OPEN, "they open a leaf alike in which they differ");
        return;
    }
    claimed.at = at -= at % 4;
    for (int side = 0; side < SIDES; side++) memcpy(&claimed.value[side], bytes[side] + at, 4);
    snprintf(court->result->place, sizeof court->result->place, "state %s leaf %" PRId64 " byte %" PRId64,
             leaf->name, number, at);
    tr_status status = copy_unit(&dispute, (const char *)leaf->device + at, 4, &program);
    if (court_goes_on(court) && status != TR_OK) court->status = status;
    if (court_goes_on(court)) judge(court, &claimed, 4, false, &program);
    tr_program_release(&program);
}

void court_settle_state(struct court *court)
{
    struct tr_sha256_sum node[SIDES] = {court->state_after[A], court->state_after[B]};
    const struct dispute_state *state = &court->own.after;
    unsigned char *bytes[SIDES];
    int64_t number;
    if (court_equal(&node[A], &node[B])) {
        settle_rest(court);
        return;
    }
    if (!court_descend(court, "after", state->count, node, &number)) return;
    if (!state->leaf[number].device) {
        settle_rest(court);
        return;
    }
    for (int side = 0; side < SIDES; side++) {
        bytes[side] = tr_alloc((size_t)state->leaf[number].size + 1, 1);
        if (!bytes[side]) court->status = TR_ENOMEM;
    }
    if (court_goes_on(court)) settle_state_leaf(court, number, bytes);
    for (int side = 0; side < SIDES; side++) tr_free(bytes[side]);
}
