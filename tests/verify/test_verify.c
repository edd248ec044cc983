/* Verifying: an honest receipt holds, in whole, in part and shared; each forged thing is seen, and what is
 * missing is named. */
#include "base/alloc.h"
#include "checkpoint/checkpoint.h"
#include "receipt/receipt.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define SEGMENTS 4 /* 8 steps, with a checkpoint after each second one */

static char run[SCRATCH_PATH]; /* the directory of the honest run */
static char honest_hash[65];

static void begin(struct job *job)
{
    family_job(job, &families[family_count - 2], family_place); /* everything */
    job_set(job, "train.receipt_every=2");
    job_set(job, "train.checkpoint_every=2");
    job_set(job, "train.keep=100");
    job->settings.receipt = true;
}

static void train(struct job *job, const char *out)
{
    struct outcome outcome;
    job->settings.out = out;
    job_outcome(job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
}

static void read_file(const char *directory, struct tr_receipt *out)
{
    char path[SCRATCH_PATH];
    struct tr_file_content content;
    must_train(tr_file_read(scratch_join(path, directory, TR_RECEIPT_FILE), TR_RECEIPT_MOST, &content));
    must_train(tr_receipt_read(path, content.data, content.size, out));
    tr_file_content_free(&content);
}

/* A receipt in a directory of its own, without checkpoints. Its path is in static storage. */
static const char *put(const struct tr_receipt *receipt)
{
    static char path[SCRATCH_PATH];
    static int number;
    char name[32], directory[SCRATCH_PATH], *text;
    snprintf(name, sizeof name, "forged-%d", number++);
    must_train(tr_file_make_directories(NULL, scratch_join(directory, family_place, name)));
    must_train(tr_receipt_write(receipt, &text));
    must_train(
        tr_file_write_atomic(NULL, scratch_join(path, directory, TR_RECEIPT_FILE), text, strlen(text)));
    tr_free(text);
    return path;
}

static struct tr_verify_settings settings_of(const char *path)
{
    struct tr_verify_settings settings = TR_VERIFY_SETTINGS_INIT;
    settings.path = path;
    settings.threads = 1;
    return settings;
}

static struct tr_verify_result result;
static char said[2048];

static enum tr_verify_outcome verify(const struct tr_verify_settings *settings)
{
    char *text;
    result = (struct tr_verify_result)TR_VERIFY_RESULT_INIT;
    must_train(tr_verify(settings, NULL, NULL, &result, &text));
    snprintf(said, sizeof said, "%s", text);
    tr_text_free(text);
    return result.outcome;
}

static void expect(const struct tr_verify_settings *settings, enum tr_verify_outcome outcome, int64_t step,
                   const char *words)
{
    if (verify(settings) != outcome) fail_msg("outcome %d: %s", (int)result.outcome, said);
    if (outcome == TR_DIFFERS && result.step != step)
        fail_msg("step %d instead of %d: %s", (int)result.step, (int)step, said);
    if (!strstr(said, words)) fail_msg("\"%s\" is not in \"%s\"", words, said);
}

static int set_up(void **state)
{
    struct job job;
    struct tr_receipt receipt;
    family_place_make(state);
    begin(&job);
    train(&job, scratch_join(run, family_place, "run"));
    read_file(run, &receipt);
    assert_int_equal(receipt.count, SEGMENTS + 1);
    snprintf(honest_hash, sizeof honest_hash, "%s", receipt.parameters);
    tr_receipt_release(&receipt);
    return 0;
}

/* ---- honest ones ---- */

static int follow(void *user, const struct tr_verify_event *event)
{
    int64_t *end = user;
    assert_int_equal(event->first, *end);
    assert_int_equal(event->end, *end + 2);
    *end = event->end;
    return 0;
}

static void an_honest_receipt_holds(void **state)
{
    (void)state;
    struct tr_verify_settings settings = settings_of(run);
    int64_t end = 0;
    char *text;
    result = (struct tr_verify_result)TR_VERIFY_RESULT_INIT;
    must_train(tr_verify(&settings, follow, &end, &result, &text));
    assert_int_equal(end, 2 * SEGMENTS);
    assert_int_equal(result.outcome, TR_VERIFIED);
    assert_int_equal(result.segments, SEGMENTS);
    assert_int_equal(result.checked, SEGMENTS);
    assert_int_equal(result.steps, 2 * SEGMENTS);
    assert_string_equal(result.hash, honest_hash);
    tr_text_free(text);
}

/* With whatever data share, scale and number, under whatever layers. */
static void receipts_of_every_family_hold(void **state)
{
    (void)state;
    for (int i = 0; i < family_count; i++) {
        struct job job;
        char out[SCRATCH_PATH];
        family_job(&job, &families[i], family_place);
        job_set(&job, "train.receipt_every=2");
        job.settings.receipt = true;
        train(&job, scratch_join(out, family_place, families[i].name));
        struct tr_verify_settings settings = settings_of(out);
        expect(&settings, TR_VERIFIED, 0, "");
        assert_true(result.checked >= 2);
    }
}

/* The first run unpacks what the second finds in the cache; validation data are a part of the rest. */
static void data_from_the_cache_are_the_same(void **state)
{
    (void)state;
    struct job job;
    char cache[SCRATCH_PATH], out[SCRATCH_PATH];
    job_begin(&job, TRIREME_SOURCE_DIR "/models/penguins.yaml");
    job.settings.receipt = true;
    job.settings.steps = 20;
    job.settings.data_cache = scratch_join(cache, family_place, "cache");
    train(&job, scratch_join(out, family_place, "cached"));
    struct tr_verify_settings settings = settings_of(out);
    expect(&settings, TR_VERIFIED, 0, "");
    settings.data_cache = cache;
    expect(&settings, TR_VERIFIED, 0, "");
}

/* From checkpoints: no more is run than was drawn. */
static void some_segments_are_run_alone(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct tr_verify_settings settings = settings_of(run);
        settings.segments = 1 + (int64_t)seed % 3;
        settings.seed = seed;
        expect(&settings, TR_VERIFIED, 0, "");
        assert_int_equal(result.checked, settings.segments);
        assert_int_equal(result.steps, 2 * settings.segments);
    }
}

static void shares_are_all_together(void **state)
{
    (void)state;
    for (int shares = 2; shares <= SEGMENTS + 1; shares++) {
        int64_t checked = 0, ends = 0;
        for (int share = 0; share < shares; share++) {
            struct tr_verify_settings settings = settings_of(run);
            settings.share = share;
            settings.shares = shares;
            expect(&settings, TR_VERIFIED, 0, "");
            checked += result.checked;
            ends += result.hash[0] != '\0';
        }
        assert_int_equal(checked, SEGMENTS);
        assert_int_equal(ends, 1);
    }
}

static int end_it(void *user, const struct tr_verify_event *event)
{
    (void)user, (void)event;
    return 1;
}

static void a_listener_ends_it(void **state)
{
    (void)state;
    struct tr_verify_settings settings = settings_of(run);
    char *text;
    result = (struct tr_verify_result)TR_VERIFY_RESULT_INIT;
    assert_int_equal(tr_verify(&settings, end_it, NULL, &result, &text), TR_EINTERRUPTED);
    assert_null(text);
}

static void an_expected_hash_counts(void **state)
{
    (void)state;
    struct tr_verify_settings settings = settings_of(run);
    char prefix[32];
    settings.expect = honest_hash;
    expect(&settings, TR_VERIFIED, 0, "");
    snprintf(prefix, sizeof prefix, "%.20s", honest_hash);
    settings.expect = prefix;
    settings.segments = 1; /* and the last */
    expect(&settings, TR_VERIFIED, 0, "");
    assert_string_equal(result.hash, honest_hash);
    prefix[19] = prefix[19] == '0' ? '1' : '0';
    expect(&settings, TR_DIFFERS, 2 * SEGMENTS, "expected");
}

/* As many digits as a hash has, or at least 16 of them. */
static void an_expected_hash_is_one(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "0123456789abcde",
        "0123456789abcdeg",
        "0123456789ABCDEF",
        " 123456789abcdef",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0",
    };
    struct tr_verify_settings settings = settings_of(run);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *text, named[TR_SHA256_TEXT + 2];
        settings.expect = wrong[i];
        result = (struct tr_verify_result)TR_VERIFY_RESULT_INIT;
        if (tr_verify(&settings, NULL, NULL, &result, &text) != TR_EINVAL)
            fail_msg("\"%s\" is a hash", wrong[i]);
        snprintf(named, sizeof named, "\"%s\" is", wrong[i]);
        assert_non_null(strstr(tr_error_message(), named));
        assert_null(text);
    }
    char least[17];
    snprintf(least, sizeof least, "%.16s", honest_hash);
    settings.expect = least;
    settings.segments = 1;
    expect(&settings, TR_VERIFIED, 0, "");
}

/* ---- forged ones ---- */

/* Makes the chain begin as a forger would. */
static void begin_chain(struct tr_receipt *receipt)
{
    struct tr_chain_begin from = {receipt->settings, receipt->data, receipt->boundary[0].root};
    must_train(tr_chain_begin(&from, &receipt->boundary[0].chain));
}

static void expect_forged(const struct tr_receipt *receipt, int64_t step, const char *words)
{
    struct tr_verify_settings settings = settings_of(put(receipt));
    expect(&settings, TR_DIFFERS, step, words);
}

static void a_forged_root_or_chain_is_seen(void **state)
{
    (void)state;
    for (int64_t i = 0; i <= SEGMENTS; i++) {
        struct tr_receipt receipt;
        read_file(run, &receipt);
        receipt.boundary[i].root.byte[i] ^= 1;
        if (i == 0) begin_chain(&receipt);
        expect_forged(&receipt, 2 * i, "state");
        receipt.boundary[i].root.byte[i] ^= 1;
        if (i == 0) begin_chain(&receipt);
        if (i > 0) {
            receipt.boundary[i].chain.byte[31] ^= 0x80;
            expect_forged(&receipt, 2 * i, "losses or batches");
        }
        tr_receipt_release(&receipt);
    }
}

static void forged_parameters_are_seen(void **state)
{
    (void)state;
    struct tr_receipt receipt;
    read_file(run, &receipt);
    receipt.parameters[3] = receipt.parameters[3] == 'a' ? 'b' : 'a';
    expect_forged(&receipt, 2 * SEGMENTS, "hash of the parameters");
    tr_receipt_release(&receipt);
}

/* A run that met its target ended there, whatever a receipt tells of later steps. */
static void steps_after_the_end_are_seen(void **state)
{
    struct job job;
    struct tr_receipt receipt;
    char out[SCRATCH_PATH];
    (void)state;
    begin(&job);
    job_set(&job, "train.until_accuracy=0.001");
    train(&job, scratch_join(out, family_place, "ended"));
    read_file(out, &receipt);
    assert_int_equal(receipt.count, 3); /* after 0, 2 and 4 steps, where it was evaluated */
    struct tr_verify_settings settings = settings_of(put(&receipt));
    expect(&settings, TR_VERIFIED, 0, "2 of 2 segments");
    for (int more = 6; more <= 8; more += 2) {
        struct tr_receipt_boundary later = receipt.boundary[2];
        later.step = more;
        must_train(tr_receipt_add(&receipt, &later));
        expect_forged(&receipt, 6, "the run ends before that here");
    }
    tr_receipt_release(&receipt);
}

/* So did one whose loss was not finite after four steps: the reason is told. */
static void steps_after_a_failure_are_seen(void **state)
{
    struct job job;
    struct outcome outcome;
    struct tr_receipt receipt;
    char out[SCRATCH_PATH];
    (void)state;
    begin(&job);
    job_set(&job, "optimizer={rule: sgd, rate: 0.01, schedule: {kind: step, milestones: [4], factor: 1e30}}");
    job.settings.out = scratch_join(out, family_place, "failed");
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_ENONFINITE);
    read_file(out, &receipt);
    assert_int_equal(receipt.boundary[receipt.count - 1].step, 4);
    struct tr_receipt_boundary later = receipt.boundary[receipt.count - 1];
    later.step += 2;
    must_train(tr_receipt_add(&receipt, &later));
    expect_forged(&receipt, later.step, "not finite");
    tr_receipt_release(&receipt);
}

/* Another run is given out for the one that the receipt names: what others did is told by its first
 * boundary, or its first state. */
static void the_receipt_of_another_run_is_seen(void **state)
{
    static const struct {
        const char *set;
        int64_t step;
    } others[] = {
        {"optimizer.rate=0.0500001", 2}, {"seed=4", 0},
        {"layers[13].dropout=0.31", 2},  {"optimizer.l2=2e-3", 2},
        {"train.shuffle=false", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct job job;
        struct tr_receipt honest, other;
        char out[SCRATCH_PATH], name[32];
        snprintf(name, sizeof name, "other-%zu", i);
        begin(&job);
        job_set(&job, others[i].set);
        train(&job, scratch_join(out, family_place, name));
        read_file(run, &honest);
        read_file(out, &other);
        assert_memory_not_equal(&honest.settings, &other.settings, sizeof honest.settings);
        for (int64_t b = 0; b <= SEGMENTS; b++) honest.boundary[b] = other.boundary[b];
        begin_chain(&honest);
        expect_forged(&honest, others[i].step, "");
        tr_receipt_release(&other);
        tr_receipt_release(&honest);
    }
}

/* Where the checkpoints of the honest run have been put, with one of them changed. */
static void copy_run(const char *to)
{
    char command[3 * SCRATCH_PATH];
    snprintf(command, sizeof command, "cp -r '%s' '%s'", run, to);
    assert_int_equal(system(command), 0);
}

#define TENSORS 64

/* Reads the checkpoint, flips a bit of this tensor of the optimizer's, and saves it as a whole one. */
static void flip_moment(const char *path, const char *tensor)
{
    struct tr_stored_tensor tensors[TR_CHECKPOINT_GROUPS][TENSORS];
    struct tr_checkpoint_file files[2];
    tr_checkpoint *checkpoint;
    bool found = false;
    must_train(tr_checkpoint_open(path, &checkpoint));
    struct tr_checkpoint_content content = {
        .facts = *tr_checkpoint_facts(checkpoint), .files = files, .file_count = 2};
    static const char *const names[] = {"model.yaml", TR_RECEIPT_FILE};
    for (int i = 0; i < 2; i++) {
        files[i].name = names[i];
        files[i].data = tr_checkpoint_file(checkpoint, names[i], &files[i].size);
        assert_non_null(files[i].data);
    }
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) {
        const tr_safetensors *file = tr_checkpoint_tensors(checkpoint, (enum tr_checkpoint_group)g);
        content.group[g].tensors = tensors[g];
        content.group[g].count = tr_safetensors_count(file);
        assert_true(content.group[g].count <= TENSORS);
        for (int64_t i = 0; i < content.group[g].count; i++) {
            const struct tr_safetensors_entry *entry = tr_safetensors_at(file, i);
            tensors[g][i] = entry->tensor;
            tensors[g][i].data = tr_alloc((size_t)entry->bytes, 1);
            must_train(
                tr_checkpoint_read(checkpoint, (enum tr_checkpoint_group)g, entry, tensors[g][i].data));
            if (g != TR_CHECKPOINT_OPTIMIZER || strcmp(entry->tensor.name, tensor) != 0) continue;
            ((uint8_t *)tensors[g][i].data)[entry->bytes - 4] ^= 1;
            found = true;
        }
    }
    assert_true(found);
    must_train(tr_file_remove(NULL, path));
    must_train(tr_checkpoint_save_at(path, &content));
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++)
        for (int64_t i = 0; i < content.group[g].count; i++) tr_free(tensors[g][i].data);
    tr_checkpoint_close(&checkpoint);
}

/* A checkpoint whose checksums are right, with one bit of a moment or an average that is not. */
static void a_forged_moment_is_seen(void **state)
{
    static const char *const names[] = {"m.", "ema."};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char out[SCRATCH_PATH], name[32], path[SCRATCH_PATH], tensor[SCRATCH_PATH];
        tr_checkpoint *checkpoint;
        snprintf(name, sizeof name, "moment-%d", i);
        copy_run(scratch_join(out, family_place, name));
        scratch_join(path, out, "checkpoint-00000004");
        must_train(tr_checkpoint_open(path, &checkpoint));
        const tr_safetensors *file = tr_checkpoint_tensors(checkpoint, TR_CHECKPOINT_OPTIMIZER);
        for (int64_t t = 0; t < tr_safetensors_count(file); t++)
            if (strncmp(tr_safetensors_at(file, t)->tensor.name, names[i], strlen(names[i])) == 0)
                snprintf(tensor, sizeof tensor, "%s", tr_safetensors_at(file, t)->tensor.name);
        tr_checkpoint_close(&checkpoint);
        flip_moment(path, tensor);
        struct tr_verify_settings settings = settings_of(out);
        settings.share = 2; /* of as many as there are stretches: the one that begins there */
        settings.shares = SEGMENTS;
        expect(&settings, TR_DIFFERS, 4, "checkpoint at hand");
        settings.shares = settings.share = 0; /* run from the beginning, it is not needed */
        expect(&settings, TR_VERIFIED, 0, "");
    }
}

/* ---- what is missing ---- */

static void other_data_are_named(void **state)
{
    (void)state;
    struct tr_verify_settings settings = settings_of(run);
    const char *const set[] = {"data.train.idx={images: test-images, labels: test-labels}"};
    char path[SCRATCH_PATH];
    struct tr_file_content images;
    settings.set = set;
    settings.set_count = 1;
    expect(&settings, TR_UNVERIFIABLE, 0, "training data: the receipt is of ");
    /* One byte of one image. */
    must_train(tr_file_read(scratch_join(path, family_place, "train-images"), 1 << 30, &images));
    images.data[images.size - 300] ^= 1;
    must_train(tr_file_write_atomic(NULL, path, images.data, images.size));
    settings.set_count = 0;
    expect(&settings, TR_UNVERIFIABLE, 0, "training data: the receipt is of ");
    images.data[images.size - 300] ^= 1;
    must_train(tr_file_write_atomic(NULL, path, images.data, images.size));
    expect(&settings, TR_VERIFIED, 0, "");
    tr_file_content_free(&images);
}

static void another_model_file_is_named(void **state)
{
    (void)state;
    struct tr_verify_settings settings = settings_of(run);
    const char *set[] = {"optimizer.rate=0.1"};
    settings.set = set;
    settings.set_count = 1;
    expect(&settings, TR_UNVERIFIABLE, 0, "model file: the receipt is of ");
    set[0] = "train.evaluate_every=5";
    expect(&settings, TR_UNVERIFIABLE, 0, "model file: the receipt is of ");
    set[0] = "train.steps=9";
    expect(&settings, TR_UNVERIFIABLE, 0, "8 steps");
    set[0] = "seed=9";
    expect(&settings, TR_UNVERIFIABLE, 0, "seed");
    set[0] = "train.log_every=2"; /* decides nothing */
    expect(&settings, TR_VERIFIED, 0, "");
    settings.set_count = 0;
    settings.model = "nowhere.yaml";
    expect(&settings, TR_UNVERIFIABLE, 0, "nowhere.yaml");
}

static void a_forged_seed_or_numerics_is_named(void **state)
{
    (void)state;
    struct tr_receipt receipt;
    read_file(run, &receipt);
    receipt.seed++;
    struct tr_verify_settings settings = settings_of(put(&receipt));
    expect(&settings, TR_UNVERIFIABLE, 0, "seed");
    receipt.seed--;
    receipt.numerics = 1;
    settings = settings_of(put(&receipt));
    expect(&settings, TR_UNVERIFIABLE, 0, "release 0.1.0");
    receipt.numerics = 77;
    settings = settings_of(put(&receipt));
    expect(&settings, TR_UNVERIFIABLE, 0, "the one that made it");
    tr_receipt_release(&receipt);
}

static void what_is_no_receipt_is_refused(void **state)
{
    (void)state;
    struct tr_verify_settings settings = settings_of(family_place);
    char *text;
    result = (struct tr_verify_result)TR_VERIFY_RESULT_INIT;
    assert_int_equal(tr_verify(&settings, NULL, NULL, &result, &text), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "--receipt"));
    settings.path = "nowhere";
    assert_int_equal(tr_verify(&settings, NULL, NULL, &result, &text), TR_ENOTFOUND);
    settings.path = NULL;
    assert_int_equal(tr_verify(&settings, NULL, NULL, &result, &text), TR_EINVAL);
    settings.path = run;
    settings.share = 2;
    settings.shares = 2;
    assert_int_equal(tr_verify(&settings, NULL, NULL, &result, &text), TR_EINVAL);
}

/* ---- the mathematics ---- */

/* How many of all ways to draw `checked` of `segments` miss the first `forged`, by trying them all. */
static double count_chance(int segments, int forged, int checked)
{
    int all = 0, seen = 0;
    for (unsigned set = 0; set < 1U << segments; set++) {
        if (__builtin_popcount(set) != checked) continue;
        all++;
        seen += (set & ((1U << forged) - 1)) != 0;
    }
    return (double)seen / all;
}

static void chances_are_as_counted(void **state)
{
    (void)state;
    for (int segments = 1; segments <= 8; segments++)
        for (int forged = 0; forged <= segments; forged++)
            for (int checked = 0; checked <= segments; checked++)
                assert_true(fabs(tr_verify_chance(segments, forged, checked) -
                                 count_chance(segments, forged, checked)) < 1e-12);
    assert_true(isnan(tr_verify_chance(3, 4, 1)));
    assert_true(isnan(tr_verify_chance(3, 1, 4)));
    /* One of a hundred is seen with 95 % if 95 are run again. */
    assert_true(fabs(tr_verify_chance(100, 1, 95) - 0.95) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_honest_receipt_holds),
        cmocka_unit_test(receipts_of_every_family_hold),
        cmocka_unit_test(data_from_the_cache_are_the_same),
        cmocka_unit_test(some_segments_are_run_alone),
        cmocka_unit_test(shares_are_all_together),
        cmocka_unit_test(a_listener_ends_it),
        cmocka_unit_test(an_expected_hash_counts),
        cmocka_unit_test(an_expected_hash_is_one),
        cmocka_unit_test(a_forged_root_or_chain_is_seen),
        cmocka_unit_test(forged_parameters_are_seen),
        cmocka_unit_test(steps_after_the_end_are_seen),
        cmocka_unit_test(steps_after_a_failure_are_seen),
        cmocka_unit_test(the_receipt_of_another_run_is_seen),
        cmocka_unit_test(a_forged_moment_is_seen),
        cmocka_unit_test(other_data_are_named),
        cmocka_unit_test(another_model_file_is_named),
        cmocka_unit_test(a_forged_seed_or_numerics_is_named),
        cmocka_unit_test(what_is_no_receipt_is_refused),
        cmocka_unit_test(chances_are_as_counted),
    };
    return cmocka_run_group_tests(tests, set_up, family_place_remove);
}
