#include "dispute/two_sides.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "train/loop/trainer.h"
#include "train/receipt/keeper.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char run_place[SCRATCH_PATH];
struct dispute_step run_forged;
struct tr_receipt run_receipt;
char run_path[SCRATCH_PATH], run_model[SCRATCH_PATH];

/* ---- answers ---- */

const char *word_of(const char *line, int number)
{
    static char word[256];
    for (; number > 0 && *line; number--) {
        line += strcspn(line, " ");
        line += *line == ' ';
    }
    snprintf(word, sizeof word, "%.*s", (int)strcspn(line, " "), line);
    return word;
}

static void change_answer(char **answer, const struct change *change)
{
    if (change->word < 0) {
        tr_free(*answer);
        *answer = tr_strdup(change->with);
        return;
    }
    char *at = *answer;
    for (int i = 0; i < change->word; i++) {
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    const size_t length = strcspn(at, " ");
    if (strcmp(change->with, "*") == 0) {
        assert_true(length > 0);
        at[length - 1] = at[length - 1] == '3' ? '4' : '3';
        return;
    }
    char *changed = tr_format("%.*s%s%s%s", (int)(at - *answer), *answer,
                              at > *answer && at[-1] != ' ' ? " " : "", change->with, at + length);
    tr_free(*answer);
    *answer = changed;
}

static void digest_of(const char *hex, struct tr_sha256_sum *out)
{
    for (size_t i = 0; i < sizeof out->byte; i++) {
        const char two[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        out->byte[i] = (uint8_t)strtol(two, NULL, 16);
    }
}

char *side_says(struct side *side, const char *question)
{
    char *answer;
    must_train(tr_party_answer(side->party, question, &answer));
    return answer;
}

/* Another batch, with the chain to which it leads from the step before. */
static void change_batch(struct side *side, int64_t step, char **answer)
{
    char question[64], hex[TR_SHA256_TEXT];
    struct tr_sha256_sum chain;
    struct tr_chain_link link = {.step = step, .steps = 1};
    tr_sha256 *hash;
    snprintf(question, sizeof question, "step %" PRId64, step - 1);
    char *before = side_says(side, question);
    digest_of(word_of(before, 2), &chain);
    tr_free(before);
    change_answer(answer, &(struct change){NULL, 6, side->batch ? side->batch : "*"});
    const uint32_t loss = (uint32_t)strtoul(word_of(*answer, 5), NULL, 16);
    memcpy(&link.loss, &loss, sizeof loss);
    digest_of(word_of(*answer, 6), &link.batch);
    must_train(tr_sha256_begin(&hash));
    must_train(tr_chain_add(hash, &link, &chain));
    tr_sha256_destroy(&hash);
    change_answer(answer, &(struct change){NULL, 2, tr_sha256_text(&chain, hex)});
}

tr_status side_ask(void *user, const char *question, char **answer)
{
    static const struct change root = {NULL, 1, "*"}, root_of_boundary = {NULL, 2, "*"};
    struct side *side = user;
    struct tr_wire wire = {.at = question};
    *answer = NULL;
    if (++side->asked == side->fails) return tr_fail(TR_EIO, "the line is dead");
    const bool is_record = strncmp(question, "record ", 7) == 0;
    if (side->step && (is_record || strncmp(question, "node ", 5) == 0 ||
                       strncmp(question, "leaf ", 5) == 0 || strncmp(question, "entry ", 6) == 0)) {
        struct tr_text text = TR_TEXT_INIT;
        if (is_record)
            dispute_step_tell(side->step, &text);
        else
            must_train(dispute_step_answer(side->step, &wire, &text));
        must_train(tr_text_finish(&text, answer));
    } else {
        *answer = side_says(side, question);
    }
    const int64_t number = strtoll(word_of(question, 1), NULL, 10);
    if (side->from > 0) {
        if (strncmp(question, "boundary ", 9) == 0 && number * RUN_EVERY >= side->from)
            change_answer(answer, &root_of_boundary);
        else if (strncmp(question, "replay ", 7) == 0 && (number + 1) * RUN_EVERY >= side->from &&
                 !side->repeats_honestly)
            change_answer(answer, &root);
        else if (strncmp(question, "step ", 5) == 0 && number >= side->from)
            change_answer(answer, &root);
    }
    if (strncmp(question, "step ", 5) == 0 && number == side->other_batch) change_batch(side, number, answer);
    for (int i = 0; i < CHANGES && side->change[i].question; i++)
        if (strncmp(question, side->change[i].question, strlen(side->change[i].question)) == 0)
            change_answer(answer, &side->change[i]);
    side->opened += strncmp(question, "leaf ", 5) == 0 || strncmp(question, "entry ", 6) == 0;
    side->bytes += (int64_t)(strlen(question) + 1 + strlen(*answer) + 1);
    return TR_OK;
}

void sides_begin(struct side side[2])
{
    const struct tr_party_settings settings = {.path = run_path, .device = "ref"};
    for (int i = 0; i < 2; i++) {
        side[i] = (struct side){0};
        must_train(tr_party_create(&settings, &side[i].party));
    }
}

void sides_begin_forged(struct side side[2], int forger)
{
    sides_begin(side);
    side[forger].from = FORGED_STEP;
    side[forger].step = &run_forged;
}

void sides_end(struct side side[2])
{
    for (int i = 0; i < 2; i++) tr_party_destroy(&side[i].party);
}

tr_status sides_settle(struct side side[2], const struct tr_party_settings *judge,
                       struct tr_dispute_result *out)
{
    static const struct tr_party_settings usual = {.device = "ref"};
    const struct tr_dispute_side sides[2] = {{side_ask, &side[0]}, {side_ask, &side[1]}};
    for (int i = 0; i < 2; i++) side[i].asked = side[i].opened = side[i].bytes = 0;
    return tr_dispute_settle(judge ? judge : &usual, sides, out);
}

void sides_expect(struct side side[2], enum tr_dispute_outcome outcome, int64_t step, const char *place,
                  const char *text, const struct tr_party_settings *judge)
{
    struct tr_dispute_result result;
    must_train(sides_settle(side, judge, &result));
    if (result.outcome != outcome || !strstr(result.text, text) || result.step != step ||
        strcmp(result.place, place) != 0)
        fail_msg("outcome %d, step %" PRId64 ", place \"%s\": %s\ninstead of outcome %d, step %" PRId64
                 ", place \"%s\": %s",
                 (int)result.outcome, result.step, result.place, result.text, (int)outcome, step, place,
                 text);
    assert_null(result.referee);
    assert_int_equal(result.questions + result.opened, side[0].asked + side[1].asked);
    assert_int_equal(result.opened, side[0].opened + side[1].opened);
    assert_int_equal(result.bytes, side[0].bytes + side[1].bytes);
    tr_dispute_release(&result);
    assert_null(result.text);
    sides_end(side);
}

/* ---- numbers ---- */

void true_step(struct dispute_step *out, int64_t step)
{
    const struct tr_party_settings settings = {.model = run_model, .device = "ref"};
    tr_trainer *trainer;
    tr_device *witness;
    dispute_step_begin(out);
    must_train(tr_party_trainer(&settings, NULL, NULL, NULL, &trainer, &witness));
    must_train(trainer_receipt_follow(trainer, NULL, NULL, 0, NULL, NULL));
    must_train(trainer_receipt_open(trainer));
    for (int64_t i = 1; i < step; i++) must_train(tr_trainer_step(trainer, NULL));
    must_train(dispute_step_make(out, trainer, witness, false));
    tr_trainer_destroy(&trainer);
}

static void put(const struct tr_evidence *evidence, int64_t at, const void *bytes, int size)
{
    assert_int_equal(pwrite(evidence->file, bytes, (size_t)size, (off_t)at), size);
}

void claim_number(struct dispute_step *step, int64_t number, int64_t byte, const void *bytes, int size)
{
    struct tr_evidence *evidence = &step->evidence;
    struct tr_evidence_region *region = &evidence->region[number];
    const struct tr_sha256_sum *sums;
    put(evidence, region->at + byte, bytes, size);
    evidence->cached_region = -1;
    must_train(tr_evidence_leaf_sums(evidence, number, &sums));
    must_train(tr_merkle_root(sums, tr_evidence_leaves(region), &region->root));
    tr_free(evidence->leaf);
    must_train(tr_evidence_close(evidence));
    must_train(tr_merkle_root(evidence->leaf, evidence->entries, &step->root));
}

void claim_state(struct dispute_step *step, int64_t number, int64_t byte, const void *bytes, int size)
{
    struct dispute_state *state = &step->after;
    const struct dispute_leaf *leaf = &state->leaf[number];
    put(&step->evidence, leaf->at + byte, bytes, size);
    char *all = tr_alloc((size_t)leaf->size + 1, 1);
    assert_non_null(all);
    must_train(tr_evidence_read(&step->evidence, leaf->at, leaf->size, all));
    must_train(tr_merkle_leaf(step->evidence.hash, all, (size_t)leaf->size, &state->sum[number]));
    must_train(tr_merkle_root(state->sum, state->count, &state->root));
    tr_free(all);
}

/* ---- the run ---- */

static const char model[] = "name: two\n"
                            "seed: 4\n"
                            "data:\n"
                            "  train: {csv: {path: two.csv, label_columns: kind}}\n"
                            "layers:\n"
                            "  - dense: {units: 9, activation: tanh}\n"
                            "  - reshape: [3, 3, 1]\n"
                            "  - max_pool: {size: 2, stride: 1}\n" /* whose places are bytes */
                            "  - flatten\n"
                            "  - dense: 3\n"
                            "optimizer: {rule: adam, rate: 1e-2}\n"
                            "train: {batch: 10, steps: 6, log_every: 1}\n";

int run_make(void **state)
{
    struct job job;
    struct outcome outcome;
    struct tr_text text = TR_TEXT_INIT;
    char path[SCRATCH_PATH];
    (void)state;
    scratch_make(run_place);
    tr_text_add(&text, "a,b,c,kind\n");
    for (int i = 0; i < 30; i++)
        tr_text_addf(&text, "%d,%d,%d,%d\n", i % 7 - 3, i % 5 - 2, i % 11 - 5, i % 3);
    must_write(scratch_join(path, run_place, "two.csv"), &text);
    must_train(
        tr_file_write_atomic(NULL, scratch_join(run_model, run_place, "two.yaml"), model, sizeof model - 1));
    job_begin(&job, run_model);
    job_set(&job, "train.receipt_every=2");
    job_set(&job, "train.checkpoint_every=4"); /* from which the last segment is repeated */
    job_set(&job, "train.keep=100");
    job.settings.receipt = true;
    job.settings.device = "ref";
    job.settings.out = scratch_join(run_path, run_place, "run");
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    const uint32_t its = 0x3f800000;
    int64_t i = 0;
    true_step(&run_forged, FORGED_STEP);
    while (run_forged.evidence.entry[i].kind != TR_EVIDENCE_OPERATION) i++;
    claim_number(&run_forged, run_forged.evidence.entry[i].first, 4, &its, sizeof its);
    struct tr_file_content file;
    must_train(tr_file_read(scratch_join(path, run_path, TR_RECEIPT_FILE), TR_RECEIPT_MOST, &file));
    must_train(tr_receipt_read(path, file.data, file.size, &run_receipt));
    tr_file_content_free(&file);
    return 0;
}

int run_remove(void **state)
{
    (void)state;
    tr_receipt_release(&run_receipt);
    dispute_step_release(&run_forged);
    scratch_remove(run_place);
    return 0;
}
tr_party *party_with(const struct tr_receipt *receipt)
{
    static char path[SCRATCH_PATH];
    const struct tr_party_settings settings = {.path = path, .device = "ref"};
    tr_party *party;
    char *text;
    must_train(tr_receipt_write(receipt, &text));
    must_train(tr_file_write_atomic(NULL, scratch_join(path, run_path, "other.receipt"), text, strlen(text)));
    tr_free(text);
    must_train(tr_party_create(&settings, &party));
    return party;
}
