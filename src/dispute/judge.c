/* From two receipts to the first step in which they differ. */
#include "base/alloc.h"
#include "base/fail.h"
#include "dispute/court.h"
#include "job/job.h"
#include "train/loop/trainer.h"
#include "train/receipt/keeper.h"
#include "train/receipt/batches.h"
#include "train/receipt/state_root.h"
#include "trireme/trireme.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[SIDES] = {"A", "B"};

void tr_dispute_release(struct tr_dispute_result *result)
{
    tr_free(result->text);
    tr_free(result->referee);
    *result = (struct tr_dispute_result){0};
}

/* ---- concluding and asking ---- */

static void conclude(struct court *court, enum tr_dispute_outcome outcome, const char *before,
                     const char *format, va_list arguments)
{
    char text[TR_MESSAGE_SIZE];
    if (!court_goes_on(court)) return;
    vsnprintf(text, sizeof text, format, arguments);
    court->over = true;
    court->result->outcome = outcome;
    court->result->text = tr_format("%s%s", before, text);
    if (!court->result->text) court->status = TR_ENOMEM;
}

void court_conclude(struct court *court, enum tr_dispute_outcome outcome, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    conclude(court, outcome, "", format, arguments);
    va_end(arguments);
}

void court_forfeit(struct court *court, int side, const char *format, ...)
{
    char before[8];
    va_list arguments;
    snprintf(before, sizeof before, "%s ", names[side]);
    va_start(arguments, format);
    conclude(court, side == A ? TR_DISPUTE_B : TR_DISPUTE_A, before, format, arguments);
    va_end(arguments);
}

bool court_ask(struct court *court, int side, struct tr_wire *wire, const char *format, ...)
{
    char question[256], word[16];
    va_list arguments;
    if (!court_goes_on(court)) return false;
    va_start(arguments, format);
    vsnprintf(question, sizeof question, format, arguments);
    va_end(arguments);
    snprintf(word, sizeof word, "%.*s", (int)strcspn(question, " "), question);
    tr_free(court->answer[side]);
    court->answer[side] = NULL;
    court->status = court->side[side].ask(court->side[side].user, question, &court->answer[side]);
    if (court->status != TR_OK) return false;
    const char *answer = court->answer[side];
    if (strcmp(word, "leaf") == 0 || strcmp(word, "entry") == 0)
        court->result->opened++;
    else
        court->result->questions++;
    court->result->bytes += (int64_t)(strlen(question) + strlen(answer)) + 2;
    *wire = (struct tr_wire){.at = answer};
    if (strlen(answer) >= TR_WIRE_MOST)
        court_forfeit(court, side, "answers with %zu bytes", strlen(answer));
    else if (tr_wire_begins(wire, "sorry"))
        court_conclude(court, TR_DISPUTE_OPEN, "%s cannot answer \"%s\": %.600s", names[side], question,
                       wire->at);
    else if (!tr_wire_begins(wire, word))
        court_forfeit(court, side, "answers \"%.40s\" to \"%s\"", answer, question);
    return court_goes_on(court);
}

bool court_took(struct court *court, int side, struct tr_wire *wire)
{
    if (wire->status != TR_OK)
        court->status = wire->status;
    else if (!tr_wire_ends(wire))
        court_forfeit(court, side, "answers with what is no answer: \"%.40s\"", court->answer[side]);
    return court_goes_on(court);
}

/* ---- what they are of ---- */

static bool hear_hello(struct court *court, int side)
{
    struct tr_wire wire;
    struct tr_receipt *hello = &court->hello[side];
    if (!court_ask(court, side, &wire, "hello %d", TR_WIRE_VERSION)) return false;
    const int64_t version = tr_wire_number(&wire, INT32_MAX);
    hello->numerics = tr_wire_number(&wire, INT32_MAX);
    tr_wire_digest(&wire, &hello->settings);
    tr_wire_digest(&wire, &hello->data);
    hello->seed = tr_wire_seed(&wire);
    hello->steps = tr_wire_number(&wire, INT64_MAX);
    court->boundaries[side] = tr_wire_number(&wire, TR_RECEIPT_BOUNDARIES);
    wire.bad |= version != TR_WIRE_VERSION || court->boundaries[side] < 1 || hello->steps < 1;
    return court_took(court, side, &wire);
}

/* Both must agree on everything that determines the steps; where they do not, the judge's own job shows
   which of them is right. */
static void compare_jobs(struct court *court, const struct tr_receipt *own)
{
    const struct tr_receipt *a = &court->hello[A], *b = &court->hello[B];
    char a_hex[TR_SHA256_TEXT], b_hex[TR_SHA256_TEXT];
    const bool data = court_equal(&a->settings, &b->settings);
    const struct tr_sha256_sum *of_a = data ? &a->data : &a->settings, *of_b = data ? &b->data : &b->settings;
    const struct tr_sha256_sum *of_own = data ? &own->data : &own->settings;
    if (court_equal(&a->settings, &b->settings) && court_equal(&a->data, &b->data) && a->seed == b->seed &&
        a->steps == b->steps) {
        if (!court_equal(&a->settings, &own->settings))
            court_conclude(court, TR_DISPUTE_OPEN, "the model file at hand is not that of the receipts");
        else if (!court_equal(&a->data, &own->data))
            court_conclude(court, TR_DISPUTE_OPEN, "the data at hand are not those of the receipts");
        return;
    }
    tr_sha256_text(of_a, a_hex);
    tr_sha256_text(of_b, b_hex);
    if (court_equal(of_a, of_b))
        court_conclude(court, TR_DISPUTE_OPEN, "the receipts are of other seeds or numbers of steps");
    else if (!data && !court->settings->model)
        court_conclude(
            court, TR_DISPUTE_OPEN,
            "the receipts are of other settings: A's are %s, B's %s; give the model file that counts", a_hex,
            b_hex);
    else
        court_conclude(court,
                       court_equal(of_a, of_own)   ? TR_DISPUTE_A
                       : court_equal(of_b, of_own) ? TR_DISPUTE_B
                                                   : TR_DISPUTE_NEITHER,
                       "the receipts are of other %s: A's are %s, B's %s; those at hand are %s's",
                       data ? "data" : "settings", a_hex, b_hex,
                       court_equal(of_a, of_own)   ? "A"
                       : court_equal(of_b, of_own) ? "B"
                                                   : "neither");
}

static bool hear_model(struct court *court)
{
    struct tr_wire wire;
    if (court->settings->model) return true;
    if (!court_ask(court, A, &wire, "model")) return false;
    court->model = tr_alloc_zero(strlen(wire.at) / 2 + 1, 1);
    if (!court->model) court->status = TR_ENOMEM;
    if (court_goes_on(court)) tr_wire_bytes(&wire, court->model, strlen(wire.at) / 2);
    return court_goes_on(court) && court_took(court, A, &wire);
}

bool court_open(struct court *court)
{
    const int numerics = tr_numerics_version();
    if (!hear_hello(court, A) || !hear_hello(court, B)) return false;
    for (int side = 0; side < SIDES; side++)
        if (court->hello[side].numerics != numerics)
            court_conclude(court, TR_DISPUTE_OPEN,
                           "numerics version: that of %s is %" PRId64 ", this program has %d", names[side],
                           court->hello[side].numerics, numerics);
    if (!court_goes_on(court) || !hear_model(court)) return false;
    tr_status status = tr_party_trainer(court->settings, court->model, "the model file", NULL,
                                        &court->trainer, &court->witness);
    if (status == TR_OK) status = trainer_receipt_follow(court->trainer, NULL, NULL, 0, NULL, NULL);
    if (status == TR_ENOMEM || status == TR_EINTERRUPTED)
        court->status = status;
    else if (status != TR_OK)
        court_conclude(court, TR_DISPUTE_OPEN, "the judge cannot make the step: %s", tr_error_message());
    if (court_goes_on(court)) compare_jobs(court, trainer_receipt(court->trainer));
    return court_goes_on(court);
}

/* ---- boundaries ---- */

static bool hear_boundary(struct court *court, int side, int64_t number, struct court_step *out)
{
    struct tr_wire wire;
    if (!court_ask(court, side, &wire, "boundary %" PRId64, number)) return false;
    *out = (struct court_step){.step = tr_wire_number(&wire, court->hello[side].steps)};
    tr_wire_digest(&wire, &out->root);
    tr_wire_digest(&wire, &out->chain);
    return court_took(court, side, &wire);
}

static bool same_step(const struct court_step *a, const struct court_step *b)
{
    return court_equal(&a->root, &b->root) && court_equal(&a->chain, &b->chain);
}

static bool hear_boundaries(struct court *court, int64_t number, struct court_step out[SIDES])
{
    if (!hear_boundary(court, A, number, &out[A]) || !hear_boundary(court, B, number, &out[B])) return false;
    if (out[A].step != out[B].step)
        court_conclude(court, TR_DISPUTE_OPEN,
                       "boundary %" PRId64 " is after %" PRId64 " steps in A's receipt, after %" PRId64
                       " in B's; make receipts with boundaries at the same steps",
                       number, out[A].step, out[B].step);
    return court_goes_on(court);
}

/* The first state follows only from the model file. */
static void settle_beginning(struct court *court, const struct court_step said[SIDES])
{
    struct tr_sha256_sum own;
    if (said[A].step != 0 || court->settings->from) {
        court_conclude(court, TR_DISPUTE_OPEN, "they begin with other states");
        return;
    }
    court->status = trainer_state_root(court->trainer, &own);
    if (court->status != TR_OK) return;
    const bool a = court_equal(&own, &said[A].root), b = court_equal(&own, &said[B].root);
    court_conclude(court,
                   a && b ? TR_DISPUTE_OPEN
                   : a    ? TR_DISPUTE_A
                   : b    ? TR_DISPUTE_B
                          : TR_DISPUTE_NEITHER,
                   "they begin with other states, and that of the model file is %s's",
                   a   ? "A"
                   : b ? "B"
                       : "neither");
}

/* The number of the first segment in which they differ. */
static bool find_segment(struct court *court, int64_t *segment)
{
    const int64_t count =
        court->boundaries[A] < court->boundaries[B] ? court->boundaries[A] : court->boundaries[B];
    struct court_step said[SIDES];
    int64_t low = 0, high = count - 1;
    if (!hear_boundaries(court, 0, said)) return false;
    if (!same_step(&said[A], &said[B])) settle_beginning(court, said);
    court->before[A] = said[A];
    court->before[B] = said[B];
    if (!court_goes_on(court) || !hear_boundaries(court, high, said)) return false;
    if (same_step(&said[A], &said[B])) {
        court_conclude(court, TR_DISPUTE_EQUAL, "the receipts are equal up to step %" PRId64, said[A].step);
        return false;
    }
    court->after[A] = said[A];
    court->after[B] = said[B];
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (!hear_boundaries(court, middle, said)) return false;
        const bool same = same_step(&said[A], &said[B]);
        struct court_step *to = same ? court->before : court->after;
        to[A] = said[A];
        to[B] = said[B];
        *(same ? &low : &high) = middle;
    }
    *segment = low;
    return true;
}

/* Each repeats the segment, and must arrive at its own receipt, or it loses. */
static bool hear_replays(struct court *court, int64_t segment)
{
    bool repeats[SIDES], as_other[SIDES];
    for (int side = 0; side < SIDES; side++) {
        struct tr_wire wire;
        struct court_step came;
        if (!court_ask(court, side, &wire, "replay %" PRId64, segment)) return false;
        tr_wire_digest(&wire, &came.root);
        tr_wire_digest(&wire, &came.chain);
        if (!court_took(court, side, &wire)) return false;
        repeats[side] = same_step(&came, &court->after[side]);
        as_other[side] = same_step(&came, &court->after[1 - side]);
    }
    if (repeats[A] && repeats[B]) return true;
    if (!repeats[A] && !repeats[B])
        court_conclude(court, TR_DISPUTE_OPEN,
                       "neither comes again to what its receipt says of step %" PRId64, court->after[A].step);
    const int loser = repeats[A] ? B : A;
    court->result->step = court->after[A].step;
    court_forfeit(court, loser, "does not come again to what its receipt says of step %" PRId64 "%s",
                  court->after[A].step, as_other[loser] ? ", but to what the other's says" : "");
    return false;
}

/* ---- steps ---- */

static bool hear_step(struct court *court, int side, int64_t number, struct court_step *out)
{
    struct tr_wire wire;
    if (!court_ask(court, side, &wire, "step %" PRId64, number)) return false;
    *out = (struct court_step){.step = number};
    tr_wire_digest(&wire, &out->root);
    tr_wire_digest(&wire, &out->chain);
    out->link.step = number;
    out->link.steps = tr_wire_number(&wire, INT64_MAX);
    out->link.skipped = tr_wire_number(&wire, 1) != 0;
    const uint32_t loss = tr_wire_bits(&wire);
    memcpy(&out->link.loss, &loss, sizeof loss);
    tr_wire_digest(&wire, &out->link.batch);
    return court_took(court, side, &wire);
}

/* The first step in which they differ is after court->before. */
static bool find_step(struct court *court)
{
    int64_t low = court->before[A].step, high = court->after[A].step;
    struct court_step said[SIDES];
    while (high > low) {
        const int64_t middle = high - low > 1 ? low + (high - low) / 2 : high;
        if (!hear_step(court, A, middle, &said[A]) || !hear_step(court, B, middle, &said[B])) return false;
        const bool same = same_step(&said[A], &said[B]);
        struct court_step *to = same ? court->before : court->after;
        to[A] = said[A];
        to[B] = said[B];
        if (middle == high && same)
            court_conclude(court, TR_DISPUTE_OPEN, "both make step %" PRId64 " alike when asked for it",
                           high);
        if (middle == high) break;
        *(same ? &low : &high) = middle;
    }
    court->first = low;
    court->result->step = low + 1;
    return court_goes_on(court);
}

/* The step's number, loss and batch must lead from one link of the chain to the next. */
static bool check_links(struct court *court)
{
    for (int side = 0; side < SIDES && court_goes_on(court); side++) {
        struct tr_sha256_sum chain = court->before[side].chain;
        tr_sha256 *hash = NULL;
        if (court->after[side].link.steps != 1) {
            court_conclude(court, TR_DISPUTE_OPEN, "%s makes several steps as one", names[side]);
            break;
        }
        court->status = tr_sha256_begin(&hash);
        if (court->status == TR_OK) court->status = tr_chain_add(hash, &court->after[side].link, &chain);
        tr_sha256_destroy(&hash);
        if (court->status == TR_OK && !court_equal(&chain, &court->after[side].chain))
            court_forfeit(court, side, "says what does not lead to its own chain at step %" PRId64,
                          court->first + 1);
    }
    return court_goes_on(court);
}

/* The first example of the batch in which a party differs; -1 where there is none. */
static int64_t find_example(struct court *court, int side, int64_t *has, int64_t *should)
{
    struct tr_wire wire;
    struct tr_order order;
    court->status = tr_job_order(trainer_job(court->trainer), &order);
    if (!court_ask(court, side, &wire, "batch %" PRId64, court->first + 1)) return -1;
    const struct tr_order_step at = tr_order_at(&order, court->first);
    for (int64_t row = 0; row < at.rows && !wire.bad; row++) {
        *has = tr_wire_number(&wire, INT64_MAX);
        *should = tr_order_example(&order, at.epoch, at.first + row);
        if (*has != *should && !wire.bad) return row;
    }
    return -1;
}

static void settle_batch(struct court *court)
{
    struct tr_chain_link own = {.step = court->first + 1, .steps = 1};
    int64_t has = 0, should = 0;
    court->status = trainer_digest_batches(court->trainer, &own, 1);
    if (court->status != TR_OK) return;
    const bool a = court_equal(&own.batch, &court->after[A].link.batch);
    const bool b = court_equal(&own.batch, &court->after[B].link.batch);
    snprintf(court->result->place, sizeof court->result->place, "batch");
    if (!a && !b) {
        court_conclude(court, TR_DISPUTE_NEITHER,
                       "step %" PRId64 ": neither batch is in the order of the seed", court->first + 1);
        return;
    }
    const int loser = a ? B : A;
    const int64_t row = find_example(court, loser, &has, &should);
    if (!court_goes_on(court)) return;
    if (row >= 0) snprintf(court->result->place, sizeof court->result->place, "batch [%" PRId64 "]", row);
    court_conclude(court, a ? TR_DISPUTE_A : TR_DISPUTE_B,
                   "step %" PRId64 ": the batch of %s is not in the order of the seed; example %" PRId64
                   " of it is number %" PRId64 ", and must be %" PRId64,
                   court->first + 1, names[loser], row, has, should);
}

/* ---- all ---- */

static void settle(struct court *court)
{
    int64_t segment = 0;
    if (!court_open(court) || !find_segment(court, &segment)) return;
    if (!hear_replays(court, segment) || !find_step(court) || !check_links(court)) return;
    if (!court_equal(&court->after[A].link.batch, &court->after[B].link.batch))
        settle_batch(court);
    else
        court_settle_step(court);
}

tr_status tr_dispute_settle(const struct tr_party_settings *settings, const struct tr_dispute_side side[2],
                            struct tr_dispute_result *out)
{
    struct court court = {.settings = settings, .side = side, .result = out};
    *out = (struct tr_dispute_result){.outcome = TR_DISPUTE_OPEN};
    dispute_step_begin(&court.own);
    settle(&court);
    tr_trainer_destroy(&court.trainer);
    dispute_step_release(&court.own);
    for (int i = 0; i < SIDES; i++) tr_free(court.answer[i]);
    tr_free(court.model);
    tr_free(court.entry);
    tr_free(court.leaf);
    tr_text_release(&court.record_text);
    tr_text_release(&court.leaf_text);
    if (court.status != TR_OK) tr_dispute_release(out);
    return court.status;
}
