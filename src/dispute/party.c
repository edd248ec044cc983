#include "dispute/party.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "dispute/step.h"
#include "dispute/wire.h"
#include "job/job.h"
#include "train/loop/trainer.h"
#include "train/receipt/keeper.h"
#include "trireme/trireme.h"
#include "verify/claim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Most steps of a replay. */
#define STEPS_MOST 1000000

/* The result of a replay after a step. */
struct made {
    struct tr_receipt_boundary boundary;
    struct tr_chain_link link;
    bool single; /* a single link led there */
};

struct tr_party {
    struct tr_party_settings settings;
    struct claim claim;
    tr_trainer *trainer; /* of the last replay, where steps are followed; or NULL */
    struct made *made;   /* [count] of the last replay, ascending */
    int64_t count;
    int64_t *at;   /* steps after which it takes boundaries; lives as long as the trainer */
    int64_t until; /* the replay ends there */
    struct dispute_step step;
};

tr_status tr_party_create(const struct tr_party_settings *settings, tr_party **out)
{
    tr_party *party = tr_alloc_zero(1, sizeof *party);
    *out = NULL;
    if (!party) return TR_ENOMEM;
    party->settings = *settings;
    dispute_step_begin(&party->step);
    tr_status status = claim_open(settings->path, &party->claim);
    if (status == TR_OK && party->claim.log)
        status = tr_fail(TR_EUNSUPPORTED,
                         "\"%s\" is a receipt of an asynchronous run, about which no dispute can be held; "
                         "verify it, with its log",
                         party->claim.path);
    if (status != TR_OK) {
        tr_party_destroy(&party);
        return status;
    }
    *out = party;
    return TR_OK;
}

void tr_party_destroy(tr_party **handle)
{
    tr_party *party = *handle;
    if (!party) return;
    dispute_step_release(&party->step);
    claim_release(&party->claim);
    tr_free(party->made);
    tr_free(party->at);
    tr_free(party);
    *handle = NULL;
}

/* ---- trainers ---- */

static tr_status open_device(const struct tr_party_settings *given, tr_device **out)
{
    const struct tr_device_choice choice = {
        .name = given->device ? given->device : "cpu", .threads = given->threads, .isa = given->isa};
    tr_device *inner;
    *out = NULL;
    if (given->open_device)
        TR_TRY(given->open_device(given->user, &inner));
    else
        TR_TRY(tr_device_open(&choice, &inner));
    if (inner->class->host_memory) return tr_witness_create(inner, out);
    tr_status status =
        tr_fail(TR_EUNSUPPORTED, "a dispute computes on the processor, not on device %s; choose cpu or ref",
                inner->name);
    tr_device_destroy(&inner);
    return status;
}

tr_status tr_party_trainer(const struct tr_party_settings *given, const char *text, const char *name,
                           const char *resume, tr_trainer **out, tr_device **witness)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    *out = NULL;
    settings.model = given->model;
    if (!given->model) {
        settings.model_text = text;
        settings.model_name = name;
    }
    settings.set = given->set;
    settings.set_count = given->set_count;
    settings.threads = given->threads;
    settings.resume = resume;
    if (!resume) settings.from = given->from;
    settings.resume_changed = true; /* the facts of the receipts have been compared */
    settings.journal = "";
    settings.no_memory_check = given->no_memory_check;
    settings.data_cache = given->data_cache;
    settings.data_cache_bytes = given->data_cache_bytes;
    settings.stop = given->stop;
    TR_TRY(open_device(given, witness));
    return trainer_create_on(&settings, *witness, out);
}

static tr_status prepare(const struct tr_party_settings *given, tr_trainer *trainer)
{
    if (trainer_job(trainer)->distill.teacher)
        return tr_fail(
            TR_EUNSUPPORTED,
            "a run with a teacher (`distill`) is not disputed, since the teacher's parameters are in no "
            "receipt; verify it (`trireme verify`)");
    return given->prepare ? given->prepare(given->user, trainer) : TR_OK;
}

/* ---- replays ---- */

static tr_status done(void)
{
    return tr_fail(TR_EINTERRUPTED, "the steps have been made again");
}

static tr_status meet(void *user, const struct tr_receipt_boundary *boundary)
{
    tr_party *party = user;
    int64_t links = 0;
    const struct tr_chain_link *link = trainer_receipt_links(party->trainer, &links);
    if (!tr_grow(&party->made, party->count, sizeof *party->made)) return TR_ENOMEM;
    struct made *made = &party->made[party->count++];
    *made = (struct made){.boundary = *boundary, .single = party->count > 1 && links == 1};
    if (made->single) made->link = link[0];
    return boundary->step >= party->until ? done() : TR_OK;
}

/* Continues from the last available state up to boundary `first`, until `until` steps are done; takes
   boundaries after each step from `from` on. */
static tr_status run_again(tr_party *party, int64_t first, int64_t from, int64_t until, tr_device **witness)
{
    const struct claim *claim = &party->claim;
    const struct tr_receipt_boundary *boundary = claim->receipt.boundary;
    while (first > 0 && !claim->checkpoint[first]) first--;
    const int64_t begin = boundary[first].step;
    if (from <= begin) from = begin + 1;
    int64_t count = 0;
    if (until - from >= STEPS_MOST)
        return tr_fail(TR_EUNSUPPORTED,
                       "%" PRId64
                       " steps between two states at hand, of which %d at most are followed; keep more "
                       "boundaries and checkpoints",
                       until - from + 1, STEPS_MOST);
    tr_free(party->at);
    party->at = tr_alloc((size_t)(until >= from ? until - from : 0) + 1, sizeof *party->at);
    if (!party->at) return TR_ENOMEM;
    for (int64_t step = from; step <= until; step++) party->at[count++] = step;
    party->count = 0;
    party->until = until;
    tr_status status =
        tr_party_trainer(&party->settings, claim->receipt.model, claim->path,
                         begin > 0 ? claim->checkpoint[first] : NULL, &party->trainer, witness);
    if (status == TR_OK)
        status = trainer_receipt_follow(party->trainer, first > 0 ? &boundary[first] : NULL, party->at, count,
                                        meet, party);
    if (status == TR_OK) status = prepare(&party->settings, party->trainer);
    if (status == TR_OK) status = trainer_receipt_open(party->trainer);
    if (status == TR_OK && trainer_steps_done(party->trainer) < until)
        status = tr_trainer_run(party->trainer, NULL, NULL);
    const bool came = party->count > 0 && party->made[party->count - 1].boundary.step == until;
    if (came && status == TR_EINTERRUPTED) status = TR_OK;
    if (status == TR_OK && !came)
        status = tr_fail(TR_EUNSUPPORTED, "the run ends before %" PRId64 " steps here", until);
    return status;
}

static tr_status replay(tr_party *party, int64_t boundary)
{
    tr_device *witness;
    const struct tr_receipt_boundary *of = party->claim.receipt.boundary;
    tr_status status = run_again(party, boundary, of[boundary].step, of[boundary + 1].step, &witness);
    tr_trainer_destroy(&party->trainer);
    return status;
}

/* Evidence of the step after which `step` steps are done. */
static tr_status record(tr_party *party, int64_t step)
{
    const struct tr_receipt *receipt = &party->claim.receipt;
    int64_t first = 0;
    tr_device *witness;
    while (first + 1 < receipt->count && receipt->boundary[first + 1].step < step) first++;
    dispute_step_release(&party->step);
    dispute_step_begin(&party->step);
    tr_status status = run_again(party, first, step - 1, step - 1, &witness);
    if (status == TR_OK) status = dispute_step_make(&party->step, party->trainer, witness, false);
    tr_trainer_destroy(&party->trainer);
    return status;
}

/* ---- answers ---- */

static void add_hello(const tr_party *party, struct tr_text *text)
{
    const struct tr_receipt *receipt = &party->claim.receipt;
    tr_text_addf(text, "hello %d %" PRId64, TR_WIRE_VERSION, receipt->numerics);
    tr_wire_add_digest(text, &receipt->settings);
    tr_wire_add_digest(text, &receipt->data);
    tr_text_addf(text, " %" PRIu64 " %" PRId64 " %" PRId64, receipt->seed, receipt->steps, receipt->count);
}

static void add_pair(struct tr_text *text, const struct tr_receipt_boundary *boundary)
{
    tr_wire_add_digest(text, &boundary->root);
    tr_wire_add_digest(text, &boundary->chain);
}

static tr_status no_such(const char *what)
{
    return tr_fail(TR_EINVAL, "there is no such %s", what);
}

static const struct made *find_made(const tr_party *party, int64_t step)
{
    for (int64_t i = 0; i < party->count; i++)
        if (party->made[i].boundary.step == step) return &party->made[i];
    return NULL;
}

static tr_status answer_step(const tr_party *party, int64_t step, struct tr_text *text)
{
    const struct made *made = find_made(party, step);
    uint32_t loss;
    if (!made) return no_such("step in what was made again last");
    memcpy(&loss, &made->link.loss, sizeof loss);
    tr_text_add(text, "step");
    add_pair(text, &made->boundary);
    tr_text_addf(text, " %" PRId64 " %d %08" PRIx32, made->single ? made->link.steps : 0, made->link.skipped,
                 loss);
    tr_wire_add_digest(text, &made->link.batch);
    return TR_OK;
}

/* The examples of a batch, according to the model file. */
static tr_status answer_batch(tr_party *party, int64_t step, struct tr_text *text)
{
    const struct claim *claim = &party->claim;
    tr_device *witness;
    tr_trainer *trainer = NULL;
    struct tr_order order;
    tr_status status =
        tr_party_trainer(&party->settings, claim->receipt.model, claim->path, NULL, &trainer, &witness);
    if (status == TR_OK) status = prepare(&party->settings, trainer);
    if (status == TR_OK) status = tr_job_order(trainer_job(trainer), &order);
    if (status == TR_OK) {
        const struct tr_order_step at = tr_order_at(&order, step - 1);
        tr_text_add(text, "batch");
        for (int64_t row = 0; row < at.rows; row++)
            tr_text_addf(text, " %" PRId64, tr_order_example(&order, at.epoch, at.first + row));
    }
    tr_trainer_destroy(&trainer);
    return status;
}

static tr_status answer_replay(tr_party *party, int64_t boundary, struct tr_text *text)
{
    TR_TRY(replay(party, boundary));
    tr_text_add(text, "replay");
    add_pair(text, &party->made[party->count - 1].boundary);
    return TR_OK;
}

/* Fills in an answer. */
static tr_status answer(tr_party *party, struct tr_wire *wire, struct tr_text *text)
{
    const struct tr_receipt *receipt = &party->claim.receipt;
    int64_t number;
    if (tr_wire_begins(wire, "hello")) {
        number = tr_wire_number(wire, INT32_MAX);
        if (!tr_wire_ends(wire) || number != TR_WIRE_VERSION) return no_such("version of these questions");
        add_hello(party, text);
        return TR_OK;
    }
    if (tr_wire_begins(wire, "model")) {
        if (!tr_wire_ends(wire) || strlen(receipt->model) > TR_WIRE_MOST / 2 - 8)
            return no_such("model file");
        tr_text_add(text, "model");
        tr_wire_add_bytes(text, receipt->model, strlen(receipt->model));
        return TR_OK;
    }
    if (tr_wire_begins(wire, "boundary")) {
        number = tr_wire_number(wire, receipt->count - 1);
        if (!tr_wire_ends(wire)) return no_such("boundary");
        tr_text_addf(text, "boundary %" PRId64, receipt->boundary[number].step);
        add_pair(text, &receipt->boundary[number]);
        return TR_OK;
    }
    if (tr_wire_begins(wire, "replay")) {
        number = tr_wire_number(wire, receipt->count - 2);
        if (!tr_wire_ends(wire)) return no_such("segment");
        return answer_replay(party, number, text);
    }
    const bool is_step = tr_wire_begins(wire, "step"), is_batch = !is_step && tr_wire_begins(wire, "batch");
    if (is_step || is_batch || tr_wire_begins(wire, "record")) {
        number = tr_wire_number(wire, receipt->steps);
        if (!tr_wire_ends(wire) || number < 1) return no_such("step");
        if (is_step) return answer_step(party, number, text);
        if (is_batch) return answer_batch(party, number, text);
        TR_TRY(record(party, number));
        dispute_step_tell(&party->step, text);
        return TR_OK;
    }
    return dispute_step_answer(&party->step, wire, text);
}

tr_status tr_party_answer(tr_party *party, const char *question, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    struct tr_wire wire = {.at = question};
    *out = NULL;
    tr_status status = answer(party, &wire, &text);
    if (status == TR_OK && text.length >= TR_WIRE_MOST)
        status = tr_fail(TR_EUNSUPPORTED, "the answer would be too long");
    if (status != TR_OK) {
        tr_text_release(&text);
        if (status == TR_ENOMEM || status == TR_EINTERRUPTED) return status;
        char message[TR_MESSAGE_SIZE];
        snprintf(message, sizeof message, "%s", tr_error_message());
        for (char *at = message; *at; at++)
            if (*at == '\n') *at = ' ';
        tr_text_addf(&text, "sorry %s", message);
    }
    return tr_text_finish(&text, out);
}
