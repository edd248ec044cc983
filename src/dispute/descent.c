/* From a step in which two parties differ to the first number that differs. */
#include "base/alloc.h"
#include "base/fail.h"
#include "dispute/court.h"
#include "job/job.h"
#include "train/loop/trainer.h"
#include "train/receipt/keeper.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const names[SIDES] = {"A", "B"};

/* ---- trees ---- */

bool court_descend(struct court *court, const char *tree, int64_t count, struct tr_sha256_sum node[SIDES],
                   int64_t *leaf)
{
    int64_t first = 0;
    while (count > 1) {
        struct tr_sha256_sum half[SIDES][2], joined;
        int64_t left = 1;
        while (left < count - left) left *= 2;
        for (int side = 0; side < SIDES; side++) {
            struct tr_wire wire;
            if (!court_ask(court, side, &wire, "node %s %" PRId64 " %" PRId64, tree, first, count))
                return false;
            tr_wire_digest(&wire, &half[side][0]);
            tr_wire_digest(&wire, &half[side][1]);
            if (!court_took(court, side, &wire)) return false;
            court->status = tr_merkle_root(half[side], 2, &joined);
            if (court->status == TR_OK && !court_equal(&joined, &node[side]))
                court_forfeit(court, side, "opens what is not below its own digest");
            if (!court_goes_on(court)) return false;
        }
        const int part = court_equal(&half[A][0], &half[B][0]) ? 1 : 0;
        for (int side = 0; side < SIDES; side++) node[side] = half[side][part];
        first += part ? left : 0;
        count = part ? count - left : left;
    }
    *leaf = first;
    return true;
}

bool court_leaf_of(struct court *court, int side, int64_t number, int64_t leaf,
                   const struct tr_sha256_sum *root, unsigned char bytes[TR_EVIDENCE_LEAF],
                   struct tr_merkle_proof *proof)
{
    const struct tr_evidence_region *region = &court->own.evidence.region[number];
    const size_t size = (size_t)tr_evidence_leaf_bytes(region, leaf);
    struct tr_sha256_sum sum;
    struct tr_wire wire;
    if (!court_ask(court, side, &wire, "leaf %" PRId64 " %" PRId64, number, leaf)) return false;
    const size_t got = tr_wire_bytes(&wire, bytes, size);
    court->status = tr_merkle_leaf(court->own.evidence.hash, bytes, size, &sum);
    wire.bad |= got != size;
    tr_wire_way(&wire, leaf, tr_evidence_leaves(region), &sum, proof);
    if (court->status != TR_OK || !court_took(court, side, &wire)) return false;
    if (!court_equal(&sum, root)) court_forfeit(court, side, "opens a leaf that does not lead to its root");
    return court_goes_on(court);
}

/* ---- entries ---- */

/* Opened by one party; the path to the root is added to the text of the case. */
static bool hear_entry(struct court *court, int side, int64_t number, struct tr_sha256_sum *root,
                       struct tr_merkle_proof *proof)
{
    const struct tr_evidence_entry *own = &court->own.evidence.entry[number];
    char name[64];
    struct tr_sha256_sum sum;
    struct tr_wire wire;
    if (!court_ask(court, side, &wire, "entry %" PRId64, number)) return false;
    tr_wire_word(&wire, name, sizeof name);
    const int64_t count = tr_wire_number(&wire, TR_UNIT_REGIONS);
    for (int64_t i = 0; i < count; i++) tr_wire_digest(&wire, &root[i]);
    if (!wire.bad && (strcmp(name, own->name) != 0 || count != own->regions)) {
        court_forfeit(court, side, "does \"%s\" where the model file has \"%s\"", name, own->name);
        return false;
    }
    court->status = tr_evidence_sum(name, root, (int)count, &sum);
    tr_wire_way(&wire, number, court->own.evidence.entries, &sum, proof);
    if (court->status != TR_OK || !court_took(court, side, &wire)) return false;
    if (!court_equal(&sum, &court->root[side]))
        court_forfeit(court, side, "opens an entry that does not lead to its root");
    return court_goes_on(court);
}

static void write_record(struct court *court, const char *of, int64_t number,
                         const struct tr_sha256_sum *root, const struct tr_merkle_proof *a,
                         const struct tr_merkle_proof *b)
{
    const struct tr_evidence_entry *own = &court->own.evidence.entry[number];
    struct tr_text *text = &court->record_text;
    tr_text_addf(text, "record %d %s %" PRId64 " %" PRId64 " %s %d", court->records++, of, number,
                 court->own.evidence.entries, own->name, own->regions);
    for (int i = 0; i < own->regions; i++) tr_wire_add_digest(text, &root[i]);
    if (a) tr_wire_add_way(text, a);
    if (b) tr_wire_add_way(text, b);
    tr_text_add(text, "\n");
}

const struct court_entry *court_entry_of(struct court *court, int64_t number)
{
    struct tr_merkle_proof proof[SIDES];
    for (int64_t i = court->entries - 1; i >= 0; i--)
        if (court->entry[i].number == number) return &court->entry[i];
    if (!tr_grow(&court->entry, court->entries, sizeof *court->entry)) {
        court->status = TR_ENOMEM;
        return NULL;
    }
    struct court_entry *entry = &court->entry[court->entries];
    *entry = (struct court_entry){.number = number};
    for (int side = 0; side < SIDES; side++)
        if (!hear_entry(court, side, number, entry->root[side], &proof[side])) return NULL;
    entry->record[A] = entry->record[B] = court->records;
    const size_t bytes = (size_t)court->own.evidence.entry[number].regions * sizeof entry->root[A][0];
    if (memcmp(entry->root[A], entry->root[B], bytes) == 0) {
        write_record(court, "AB", number, entry->root[A], &proof[A], &proof[B]);
    } else {
        entry->record[B]++;
        write_record(court, "A", number, entry->root[A], &proof[A], NULL);
        write_record(court, "B", number, entry->root[B], NULL, &proof[B]);
    }
    court->entries++;
    return entry;
}

/* ---- the step ---- */

static bool hear_record(struct court *court, int side)
{
    struct tr_wire wire;
    if (!court_ask(court, side, &wire, "record %" PRId64, court->first + 1)) return false;
    const int64_t entries = tr_wire_number(&wire, INT64_MAX);
    tr_wire_digest(&wire, &court->root[side]);
    const int64_t before = tr_wire_number(&wire, INT64_MAX);
    tr_wire_digest(&wire, &court->state_before[side]);
    const int64_t after = tr_wire_number(&wire, INT64_MAX);
    tr_wire_digest(&wire, &court->state_after[side]);
    if (!court_took(court, side, &wire)) return false;
    if (entries != court->own.evidence.entries)
        court_forfeit(court, side,
                      "makes step %" PRId64 " of %" PRId64
                      " operations and copies; by the model file and the "
                      "data it has %" PRId64,
                      court->first + 1, entries, court->own.evidence.entries);
    else if (before != court->own.before.count || after != court->own.after.count)
        court_conclude(court, TR_DISPUTE_OPEN,
                       "the state of %s has %" PRId64 " leaves before the step and %" PRId64
                       " after it, here it has %" PRId64 " and %" PRId64,
                       names[side], before, after, court->own.before.count, court->own.after.count);
    return court_goes_on(court);
}

static void make_own(struct court *court)
{
    trainer_go_to(court->trainer, court->first);
    tr_status status = trainer_receipt_open(court->trainer);
    if (status == TR_OK) status = dispute_step_make(&court->own, court->trainer, court->witness, true);
    if (status == TR_ENOMEM || status == TR_EINTERRUPTED || status == TR_EIO)
        court->status = status;
    else if (status != TR_OK)
        court_conclude(court, TR_DISPUTE_OPEN, "the judge cannot make the step: %s", tr_error_message());
}

/* They differ in an entry, the first one. */
static void settle_entry(struct court *court, int64_t number)
{
    const struct tr_evidence *own = &court->own.evidence;
    const struct court_entry *entry = court_entry_of(court, number);
    struct tr_sha256_sum node[SIDES];
    char tree[24];
    int64_t leaf = 0;
    int region = 0;
    if (!entry) return;
    while (region < own->entry[number].regions &&
           court_equal(&entry->root[A][region], &entry->root[B][region]))
        region++;
    if (region == own->entry[number].regions) {
        court_conclude(court, TR_DISPUTE_OPEN, "they open an entry alike in which they differ");
        return;
    }
    const int64_t at = own->entry[number].first + region;
    for (int side = 0; side < SIDES; side++) node[side] = entry->root[side][region];
    snprintf(tree, sizeof tree, "%" PRId64, at);
    if (!court_descend(court, tree, tr_evidence_leaves(&own->region[at]), node, &leaf)) return;
    unsigned char bytes[SIDES][TR_EVIDENCE_LEAF];
    struct tr_merkle_proof proof;
    for (int side = 0; side < SIDES; side++)
        if (!court_leaf_of(court, side, at, leaf, &entry->root[side][region], bytes[side], &proof)) return;
    int64_t byte = 0;
    while (bytes[A][byte] == bytes[B][byte]) byte++;
    byte += leaf * TR_EVIDENCE_LEAF;
    court_settle_number(court, number, at, byte - byte % own->region[at].size);
}

void court_settle_step(struct court *court)
{
    make_own(court);
    if (!court_goes_on(court) || !hear_record(court, A) || !hear_record(court, B)) return;
    for (int side = 0; side < SIDES; side++)
        if (!court_equal(&court->state_before[side], &court->before[side].root))
            court_conclude(court, TR_DISPUTE_OPEN,
                           "%s does not come to the same state twice before step %" PRId64, names[side],
                           court->first + 1);
    if (!court_goes_on(court)) return;
    if (court_equal(&court->root[A], &court->root[B])) {
        court_settle_state(court);
        return;
    }
    struct tr_sha256_sum node[SIDES] = {court->root[A], court->root[B]};
    int64_t number;
    if (court_descend(court, "entries", court->own.evidence.entries, node, &number))
        settle_entry(court, number);
}
