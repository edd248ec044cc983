/* What practitioners ask of a training beyond the plain run: layers that are frozen or learn at their own
 * pace, a validation split, a rate that falls where nothing becomes better, draws by class, and beginnings
 * out of other runs and files. All on any number of ranks and over stops with the same bits.
 */
#include "support/files/npy.h"
#include "support/ranks.h"

#include "base/text/text.h"
#include "base/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Two values and their class by name: "in" within a circle, which is rare, else "out". */
static void write_points(const char *name, int count)
{
    struct tr_text text = TR_TEXT_INIT;
    char *bytes;
    uint32_t random = 7;
    tr_text_add(&text, "x,y,where\n");
    for (int i = 0; i < count; i++) {
        double at[2];
        for (int k = 0; k < 2; k++) {
            random = random * 1664525 + 1013904223;
            at[k] = (double)(random >> 8) / (1 << 23) - 1;
        }
        tr_text_addf(&text, "%.5f,%.5f,%s\n", at[0], at[1],
                     at[0] * at[0] + at[1] * at[1] < 0.25 ? "in" : "out");
    }
    must_train(tr_text_finish(&text, &bytes));
    scratch_write_text(name, bytes);
    tr_free(bytes);
}

#define BODY                                                                                                 \
    "  - dense: {units: 16, activation: tanh, name: one}\n"                                                  \
    "  - dense: {units: 16, activation: tanh, name: two}\n"

static int make_place(void **state)
{
    scratch_place_make(state);
    write_points("points.csv", 403);
    scratch_write_text("points.yaml", "name: points\n"
                                      "data: {train: {csv: {path: points.csv}}}\n"
                                      "layers:\n" BODY "  - dense: {units: 2, name: head}\n"
                                      "optimizer: {rule: momentum, rate: 0.1}\n"
                                      "train: {batch: 40, microbatches: 4, steps: 30, log_every: 1}\n");
    scratch_write_text("normed.yaml",
                       "name: normed\n"
                       "data: {train: {csv: {path: points.csv}}}\n"
                       "layers:\n  - dense: {units: 16, name: one}\n  - batch_norm: {name: norm}\n  - tanh\n"
                       "  - dense: {units: 2, name: head}\n"
                       "optimizer: {rule: adam, rate: 0.01, ema: 0.9}\n"
                       "train: {batch: 40, microbatches: 4, steps: 10, log_every: 1}\n");
    return 0;
}

static void points_job(struct job *job, const char *const *set)
{
    job_begin(job, scratch_in("points.yaml"));
    job->settings.journal = "";
    job_set_all(job, set);
}

static struct outcome points_outcome(const char *const *set)
{
    return begun_outcome(points_job, set);
}

#define OUTCOME(...) points_outcome((const char *const[]){__VA_ARGS__, NULL})

static void expect_equal(const struct outcome *a, const struct outcome *b)
{
    expect_same(a, b, "written in another way");
}

/* ---- the pace of layers ---- */

/* Factors that are powers of two are no other than another rate and another decay, to the bit. */
static void test_factors(void **state)
{
    (void)state;
    struct outcome plain = OUTCOME("optimizer={rule: momentum, rate: 0.25, l2: 0.5}");
    struct outcome factors =
        OUTCOME("optimizer={rule: momentum, rate: 0.5, l2: 0.25}", "layers.one.rate_factor=0.5",
                "layers.one.decay_factor=2", "layers.two.rate_factor=0.5", "layers.two.decay_factor=2",
                "layers.head.rate_factor=0.5", "layers.head.decay_factor=2");
    assert_string_equal(plain.hash, factors.hash);
    struct outcome adam = OUTCOME("optimizer={rule: adamw, rate: 0.01, weight_decay: 0}");
    struct outcome undecayed =
        OUTCOME("optimizer={rule: adamw, rate: 0.01, weight_decay: 0.1}", "layers.one.decay_factor=0",
                "layers.two.decay_factor=0", "layers.head.decay_factor=0");
    assert_string_equal(adam.hash, undecayed.hash);
    assert_string_not_equal(plain.hash, adam.hash);
}

/* Fills `out` with all of a trainer's parameter. */
static void parameter_of(tr_trainer *trainer, const char *name, float *out, int count)
{
    must_train(tr_trainer_parameter(trainer, name, out, count));
}

/* The weights of the three layers, one after the other. */
enum { ONE = 32, TWO = 256, HEAD = 32, WEIGHTS = ONE + TWO + HEAD };

/* Their values, and how far the first step moves them. */
static void step_of(const char *optimizer, const char *set, float before[WEIGHTS], double moved[WEIGHTS])
{
    struct job job;
    float after[WEIGHTS];
    points_job(&job, (const char *const[]){optimizer, "train.steps=1", set, NULL});
    tr_trainer *trainer = job_trainer(&job);
    for (int i = 0; i < 2; i++) {
        float *values = i ? after : before;
        parameter_of(trainer, "one.weights", values, ONE);
        parameter_of(trainer, "two.weights", values + ONE, TWO);
        parameter_of(trainer, "head.weights", values + ONE + TWO, HEAD);
        if (i == 0) must_train(tr_trainer_step(trainer, NULL));
    }
    for (int i = 0; i < WEIGHTS; i++) moved[i] = (double)after[i] - (double)before[i];
    tr_trainer_destroy(&trainer);
}

/* The factors of a layer are its own: others, beside it in memory, go on as without them. Biases do not
   decay, so without decay alone do a layer and the one behind it differ by nothing but their rates. */
static void test_factors_of_one_layer(void **state)
{
    (void)state;
    static const struct {
        const char *layer;
        int begin, end;
    } layers[] = {{"one", 0, ONE}, {"two", ONE, ONE + TWO}, {"head", ONE + TWO, WEIGHTS}};
    float before[WEIGHTS], same[WEIGHTS];
    double plain[WEIGHTS], paced[WEIGHTS];
    char set[64];
    for (int i = 0; i < 6; i++) {
        bool decay = i >= 3;
        const char *optimizer =
            decay ? "optimizer={rule: sgd, rate: 0.5, l2: 0.25}" : "optimizer={rule: sgd, rate: 0.5}";
        step_of(optimizer, NULL, before, plain);
        snprintf(set, sizeof set, "layers.%s.%s", layers[i % 3].layer,
                 decay ? "decay_factor=3" : "rate_factor=0.25");
        step_of(optimizer, set, same, paced);
        assert_memory_equal(before, same, sizeof before);
        for (int k = 0; k < WEIGHTS; k++) {
            bool own = k >= layers[i % 3].begin && k < layers[i % 3].end;
            double wanted = !own    ? plain[k]
                            : decay ? plain[k] - 0.5 * 0.25 * (3 - 1) * (double)before[k]
                                    : 0.25 * plain[k];
            if (fabs(paced[k] - wanted) > (own ? 1e-6 : 0))
                fail_msg("%s: weight %d moved by %g, not by %g", set, k, paced[k], wanted);
        }
    }
}

/* Whether the parameter keeps its values through a run; the same question for another one is answered, too.
 */
static void expect_frozen(const char *model, const char *const *set, const char *strategy, const char *frozen,
                          int frozen_count, const char *moving, int moving_count)
{
    struct job job;
    struct outcome outcome;
    float before[2][64], after[2][64];
    job_begin(&job, scratch_in(model));
    job.settings.journal = "";
    job.settings.strategy = strategy;
    for (; *set; set++) job_set(&job, *set);
    tr_trainer *trainer = job_trainer(&job);
    parameter_of(trainer, frozen, before[0], frozen_count);
    parameter_of(trainer, moving, before[1], moving_count);
    trainer_outcome(trainer, &outcome);
    must_train(outcome.status);
    parameter_of(trainer, frozen, after[0], frozen_count);
    parameter_of(trainer, moving, after[1], moving_count);
    if (memcmp(before[0], after[0], (size_t)frozen_count * sizeof(float)) != 0)
        fail_msg("%s: %s moved", strategy ? strategy : "alone", frozen);
    if (memcmp(before[1], after[1], (size_t)moving_count * sizeof(float)) == 0)
        fail_msg("%s: %s did not move", strategy ? strategy : "alone", moving);
    tr_trainer_destroy(&trainer);
}

/* Means of three equal numbers are rounded, so strategies that average replicas would move what is frozen. */
static void test_frozen_layers_stay(void **state)
{
    (void)state;
    static const char *const strategies[] = {NULL, "local-sgd,replicas=3,every=2,rate=0.5,momentum=0.9",
                                             "gossip,replicas=3,neighbours=1,consensus=2"};
    static const char *const first[] = {"layers.one.frozen=true", NULL};
    static const char *const middle[] = {"layers.two.frozen=true", "optimizer.l2=0.1", NULL};
    static const char *const norm[] = {"layers.norm.frozen=true", NULL};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        expect_frozen("points.yaml", first, strategies[i], "one.weights", 32, "head.weights", 32);
        expect_frozen("points.yaml", middle, strategies[i], "two.bias", 16, "one.weights", 32);
        expect_frozen("normed.yaml", norm, strategies[i], "norm.gamma", 16, "norm.running_mean", 16);
    }
}

/* What is frozen is not part of the norm by which gradients are clipped: a step of the head alone, whose
   gradient is clipped, is as long as the rate times the limit. */
static void test_frozen_layers_do_not_clip(void **state)
{
    (void)state;
    struct job job;
    float before[34], after[34];
    points_job(&job, (const char *const[]){"layers.one.frozen=true", "layers.two.frozen=true",
                                           "optimizer={rule: sgd, rate: 0.5, clip_norm: 0.001}",
                                           "train.steps=1", NULL});
    tr_trainer *trainer = job_trainer(&job);
    for (int i = 0; i < 2; i++) {
        float *values = i ? after : before;
        parameter_of(trainer, "head.weights", values, 32);
        parameter_of(trainer, "head.bias", values + 32, 2);
        if (i == 0) must_train(tr_trainer_step(trainer, NULL));
    }
    double squares = 0;
    for (int i = 0; i < 34; i++) {
        double difference = (double)after[i] - (double)before[i];
        squares += difference * difference;
    }
    assert_true(squares > 0.0005 * 0.0005 * 0.98 && squares < 0.0005 * 0.0005 * 1.02);
    tr_trainer_destroy(&trainer);
}

static void test_a_pace_needs_parameters(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    job_begin(&job, scratch_in("normed.yaml"));
    job_set(&job, "layers.tanh1.frozen=true");
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_EINVAL);
    if (!strstr(outcome.message, "layers[2]: layer \"tanh1\": has no parameters"))
        fail_msg("%s", outcome.message);
}

/* ---- the same on any number of ranks, and over stops ---- */

struct stop {
    tr_trainer *trainer;
    int64_t at;
};

static int stop_at(void *user, const struct tr_train_event *event)
{
    struct stop *stop = user;
    if (event->kind == TR_EVENT_STEP && event->step == stop->at) tr_trainer_stop(stop->trainer);
    return 0;
}

/* Stops the run after `step` steps and takes it up again; returns how it ends. */
static struct outcome resumed_outcome(const char *const *set, int64_t step)
{
    struct job job;
    struct outcome outcome;
    const char *out = scratch_in("stopped");
    if (tr_file_is_directory(out)) scratch_remove(out);
    points_job(&job, set);
    job.settings.out = out;
    tr_trainer *trainer = job_trainer(&job);
    struct stop stop = {trainer, step};
    assert_int_equal(tr_trainer_run(trainer, stop_at, &stop), TR_EINTERRUPTED);
    tr_trainer_destroy(&trainer);
    job_begin(&job, NULL);
    job.settings.resume = job.settings.out = out;
    job.settings.journal = "";
    job_outcome(&job, &outcome);
    return outcome;
}

/* A way to train, which `what` names, has one hash; `splits`: a pipeline can divide its network. */
static void expect_one_hash_of(const char *what, const char *const *set, bool splits)
{
    const struct outcome alone = points_outcome(set);
    expect_hash_by(&alone, points_job, set, "allreduce", 3, 0, what);
    expect_hash_by(&alone, points_job, set, "parameter-server,servers=2", 4, 1, what);
    if (splits) expect_hash_by(&alone, points_job, set, "pipeline", 2, 0, what);
    for (int64_t step = 7; step < 30; step += 8) {
        struct outcome resumed = resumed_outcome(set, step);
        if (resumed.status != TR_OK) fail_msg("%s: %s", what, resumed.message);
        if (strcmp(resumed.hash, alone.hash) != 0)
            fail_msg("%s: another hash after a stop at %d", what, (int)step);
    }
}

static void expect_one_hash(const char *what, const char *const *set)
{
    expect_one_hash_of(what, set, true);
}

/* A teacher whose evaluation is another thing than its training: statistics of the run in the place of the
   batch's, nothing dropped, averages. */
static void train_teacher(const char *name, const char *more)
{
    struct job job;
    struct outcome outcome;
    char out[SCRATCH_PATH];
    job_begin(&job, scratch_in("wise.yaml"));
    job_set(&job, more);
    job.settings.journal = "";
    job.settings.out = scratch_join(out, scratch_place, name);
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
}

static void test_teachers(void **state)
{
    (void)state;
    char distill[SCRATCH_PATH + 64], colder[SCRATCH_PATH + 64], other[SCRATCH_PATH + 64];
    scratch_write_text("wise.yaml",
                       "name: wise\n"
                       "data: {train: {csv: {path: points.csv}}}\n"
                       "layers:\n  - dense: 24\n  - batch_norm\n  - tanh\n  - dropout: 0.5\n  - dense: 2\n"
                       "optimizer: {rule: adam, rate: 0.01, ema: 0.9}\n"
                       "train: {batch: 40, steps: 40, checkpoint_every: 40}\n");
    train_teacher("wise", "seed=2");
    train_teacher("wiser", "seed=3");
    snprintf(distill, sizeof distill, "distill={teacher: %s, temperature: 3}", scratch_in("wise"));
    snprintf(colder, sizeof colder, "distill={teacher: %s, temperature: 2}", scratch_in("wise"));
    snprintf(other, sizeof other, "distill.teacher=%s", scratch_in("wiser"));
    expect_one_hash_of("a teacher", (const char *const[]){distill, NULL}, false);
    expect_one_hash_of("a teacher, passes, and a clipped gradient",
                       (const char *const[]){distill, "train.pass=1", "optimizer.clip_norm=0.1", NULL},
                       false);
    struct outcome taught = OUTCOME(distill), plain = OUTCOME("seed=1"), cold = OUTCOME(colder);
    assert_string_not_equal(taught.hash, plain.hash);
    assert_string_not_equal(taught.hash, cold.hash);
    /* The run goes on with the teacher that it began with, and no other. */
    struct outcome outcome = resumed_outcome((const char *const[]){distill, NULL}, 12);
    assert_string_equal(outcome.hash, taught.hash);
    struct job job;
    job_begin(&job, NULL);
    job.settings.resume = job.settings.out = scratch_in("stopped");
    job_set(&job, other);
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_EMISMATCH);
    assert_non_null(strstr(outcome.message, "the teacher of the run has hash"));
}

static void test_teachers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *set[3];
        tr_status status;
        const char *parts[2];
    } cases[] = {
        {{"distill={temperature: 2}"}, TR_EINVAL, {"there is no teacher", "distill.teacher"}},
        {{"distill={teacher: nowhere}"}, TR_ENOTFOUND, {"distill.teacher", "nowhere"}},
        {{"distill={teacher: wise, alpha: 2}"}, TR_EINVAL, {"alpha", "2 is out of range"}},
        {{"distill={teacher: wise}", "loss=focal"}, TR_EINVAL, {"softmax_cross_entropy", "leave it out"}},
        {{"distill={teacher: wise}", "layers.head.units=3"},
         TR_EMISMATCH,
         {"answers with 2", "the network with 3"}},
        {{"distill={teacher: wise}", "data.train.csv.standardize=true"},
         TR_EMISMATCH,
         {"other means", "train both on the same data"}},
        {{"distill={teacher: wise}", "data.train.csv.skip_columns=y"},
         TR_EMISMATCH,
         {"takes 2", "the network 1"}},
        {{"distill={teacher: wise}", "strategy=pipeline"},
         TR_EINVAL,
         {"a pipeline has no teacher", "allreduce"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome outcome = points_outcome(cases[i].set);
        if (outcome.status != cases[i].status)
            fail_msg("%s: %s: %s", cases[i].set[0], tr_status_name(outcome.status), outcome.message);
        for (int k = 0; k < 2; k++)
            if (!strstr(outcome.message, cases[i].parts[k]))
                fail_msg("\"%s\" is not in: %s", cases[i].parts[k], outcome.message);
    }
}

static void test_one_hash(void **state)
{
    (void)state;
    expect_one_hash("frozen and paced layers",
                    (const char *const[]){
                        "layers.one.frozen=true", "layers.two.rate_factor=0.3", "layers.head.decay_factor=3",
                        "optimizer={rule: momentum, rate: 0.1, l2: 0.01, clip_norm: 0.1}", NULL});
    expect_one_hash(
        "RMSprop with momentum, a split and a plateau",
        (const char *const[]){"optimizer={rule: rmsprop, rate: 0.01, momentum: 0.5, schedule: {kind: "
                              "plateau, patience: 1, factor: 0.5, threshold: 0.1}}",
                              "data.validation_split=0.2", "train.evaluate_every=2", NULL});
    expect_one_hash("Lion",
                    (const char *const[]){"optimizer={rule: lion, rate: 0.003, weight_decay: 0.1}", NULL});
    expect_one_hash("AMSGrad",
                    (const char *const[]){
                        "optimizer={rule: adamw, rate: 0.03, beta2: 0.9, amsgrad: true, ema: 0.9}", NULL});
    expect_one_hash("LAMB",
                    (const char *const[]){"optimizer={rule: lamb, rate: 0.03, weight_decay: 0.1}", NULL});
    expect_one_hash(
        "LAMB of all, clipped and averaged",
        (const char *const[]){"optimizer={rule: lamb, rate: 0.03, l2_biases: true, clip_norm: 0.1, "
                              "ema: 0.9, schedule: {kind: linear, warmup: 3}}",
                              NULL});
    expect_one_hash("Muon",
                    (const char *const[]){"optimizer={rule: muon, rate: 0.01, adam_rate: 0.03}", NULL});
    expect_one_hash(
        "Muon, clipped and averaged",
        (const char *const[]){"optimizer={rule: muon, rate: 0.01, nesterov: false, clip_norm: 0.1, "
                              "ema: 0.9}",
                              "layers.two.frozen=true", NULL});
    expect_one_hash("SAM", (const char *const[]){"optimizer.sam=0.1", NULL});
    expect_one_hash(
        "SAM, clipped, of Muon, and a frozen layer",
        (const char *const[]){"optimizer={rule: muon, rate: 0.01, sam: 0.5, clip_norm: 0.1, ema: 0.9}",
                              "layers.one.frozen=true", "train.pass=1", NULL});
    expect_one_hash("Adagrad and balanced draws",
                    (const char *const[]){"optimizer={rule: adagrad, rate: 0.1, ema: 0.9}",
                                          "train.sampling=balanced", NULL});
}

/* A greatest second moment that is forgotten at a stop, or never taken, would go unseen where it never rules.
 */
static void test_amsgrad_differs(void **state)
{
    (void)state;
    struct outcome plain = OUTCOME("optimizer={rule: adam, rate: 0.03, beta2: 0.9}"),
                   amsgrad = OUTCOME("optimizer={rule: adam, rate: 0.03, beta2: 0.9, amsgrad: true}"),
                   off = OUTCOME("optimizer={rule: adam, rate: 0.03, beta2: 0.9, amsgrad: false}");
    assert_string_not_equal(plain.hash, amsgrad.hash);
    assert_string_equal(plain.hash, off.hash);
    struct outcome outcome = OUTCOME("optimizer={rule: lion, rate: 0.03, amsgrad: true}");
    assert_non_null(strstr(outcome.message, "amsgrad"));
    assert_non_null(strstr(outcome.message, "adam, adamw only"));
}

/* Statistics are moved by nothing, the loss that is told is that at the parameters, and replicas apart have
   each their own. */
static void test_sam(void **state)
{
    (void)state;
    struct outcome plain = OUTCOME("optimizer={rule: sgd, rate: 0.1}", "train.steps=1"),
                   sam = OUTCOME("optimizer={rule: sgd, rate: 0.1, sam: 0.5}", "train.steps=1"),
                   none = OUTCOME("optimizer={rule: sgd, rate: 0.1, sam: 0}", "train.steps=1");
    assert_string_equal(plain.hash, none.hash);
    assert_string_not_equal(plain.hash, sam.hash);
    assert_true(plain.loss == sam.loss);
    /* After a step of nearly no length the loss shows that parameters are back from where the gradient was
     * taken. */
    struct outcome back = OUTCOME("optimizer={rule: sgd, rate: 1e-30, sam: 0.5}", "train.steps=2"),
                   still = OUTCOME("optimizer={rule: sgd, rate: 1e-30}", "train.steps=2");
    if (back.status != TR_OK) fail_msg("%s", back.message);
    assert_true(back.loss == still.loss);
    struct outcome apart = OUTCOME("optimizer.sam=0.1", "strategy={local-sgd: {replicas: 2, every: 3}}");
    if (apart.status != TR_OK) fail_msg("%s", apart.message);
    struct outcome again = OUTCOME("optimizer.sam=0.1", "strategy={local-sgd: {replicas: 2, every: 3}}"),
                   less = OUTCOME("strategy={local-sgd: {replicas: 2, every: 3}}");
    assert_string_equal(apart.hash, again.hash);
    assert_string_not_equal(apart.hash, less.hash);
    struct outcome refused = OUTCOME("optimizer.sam=0.1", "strategy={parameter-server: {mode: async}}");
    assert_int_equal(refused.status, TR_EINVAL);
    assert_non_null(strstr(refused.message, "choose a synchronous strategy"));
}

/* ---- evaluations ---- */

struct seen {
    int64_t examples, evaluations;
    double rate[64]; /* of each step */
    char set[32];
};

static int see(void *user, const struct tr_train_event *event)
{
    struct seen *seen = user;
    if (event->kind == TR_EVENT_STEP && event->step < 64) seen->rate[event->step] = event->rate;
    if (event->kind != TR_EVENT_EVALUATION) return 0;
    seen->evaluations++;
    seen->examples = event->examples;
    snprintf(seen->set, sizeof seen->set, "%s", event->name);
    return 0;
}

static struct seen seen_of(const char *const *set, struct tr_train_info *info)
{
    struct job job;
    struct seen seen = {0};
    points_job(&job, set);
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_info(trainer, info));
    must_train(tr_trainer_run(trainer, see, &seen));
    tr_trainer_destroy(&trainer);
    return seen;
}

static void test_validation_split(void **state)
{
    (void)state;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    struct seen seen =
        seen_of((const char *const[]){"data.validation_split=0.25", "train.evaluate_every=10", NULL}, &info);
    assert_int_equal(seen.evaluations, 3);
    assert_int_equal(seen.examples, 101); /* a quarter of 403, rounded */
    assert_string_equal(seen.set, "validation");
    assert_int_equal(info.train_examples, 302);
    assert_int_equal(info.steps_per_epoch, 8);
    struct outcome both = OUTCOME("data.validation_split=0.25", "data.validation={csv: {path: points.csv}}");
    assert_int_equal(both.status, TR_EINVAL);
    assert_non_null(strstr(both.message, "there are validation data and a validation_split"));
    struct outcome other = OUTCOME("data.validation_split=0.25"), plain = OUTCOME("train.steps=30");
    assert_string_not_equal(other.hash, plain.hash);
}

/* With a loss that cannot become better by half any more the rate falls after every third evaluation. */
static void test_plateau(void **state)
{
    (void)state;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    static const char *const set[] = {
        "data.validation_split=0.25", "train.evaluate_every=1",
        "optimizer={rule: sgd, rate: 1e-6, schedule: {kind: plateau, factor: 0.25, "
        "patience: 2, threshold: 0.5}}",
        NULL};
    struct seen seen = seen_of(set, &info);
    for (int step = 1; step <= 30; step++) {
        double expected = 1e-6;
        for (int k = 4; k < step; k += 3) expected *= 0.25; /* the first evaluation is the best */
        if (seen.rate[step] != expected)
            fail_msg("step %d: rate %g, not %g", step, seen.rate[step], expected);
    }
    struct outcome outcome = OUTCOME("optimizer.schedule=plateau");
    assert_int_equal(outcome.status, TR_EINVAL);
    assert_non_null(strstr(outcome.message, "set train.evaluate_every"));
    outcome = OUTCOME("optimizer.schedule=plateau", "train.evaluate_every=5");
    assert_int_equal(outcome.status, TR_EINVAL);
    assert_non_null(strstr(outcome.message, "data.validation_split"));
    struct job job;
    struct rank ranks[RANKS];
    points_job(&job, set);
    job.settings.strategy = "parameter-server,mode=async";
    job.settings.set = job.set;
    run_ranks(&job.settings, 3, false, ranks);
    assert_true(ranks[0].outcome.status == TR_EUNSUPPORTED);
    assert_non_null(strstr(ranks[0].outcome.message, "follows evaluations"));
}

/* ---- the figure that judges ---- */

/* What evaluations say of one figure, and which is the best by it. */
struct judged {
    const char *name;
    double sign; /* -1: the more the better */
    int64_t step, evaluations;
    double best, loss;
    int told;
};

static int judge(void *user, const struct tr_train_event *event)
{
    struct judged *judged = user;
    double value = strcmp(judged->name, "loss") == 0       ? event->loss
                   : strcmp(judged->name, "accuracy") == 0 ? event->accuracy
                                                           : NAN;
    if (event->kind != TR_EVENT_EVALUATION) return 0;
    for (int i = 0; i < event->metrics->count; i++)
        if (strcmp(event->metrics->metric[i].name, judged->name) == 0)
            value = event->metrics->metric[i].value;
    if (isnan(value)) fail_msg("an evaluation has no %s", judged->name);
    judged->evaluations++;
    judged->told += event->best;
    double cost = judged->sign * value;
    if (judged->step >= 0 && (cost > judged->best || (cost == judged->best && event->loss >= judged->loss)))
        return 0;
    judged->step = event->step;
    judged->best = cost;
    judged->loss = event->loss;
    return 0;
}

/* Every figure that may judge is measured, and keeps the evaluation that is the best by it. */
static void test_monitors(void **state)
{
    (void)state;
    static const struct {
        const char *monitor, *name;
        double sign;
        const char *loss;
    } cases[] = {{"loss", "loss", 1, "softmax_cross_entropy"},
                 {"accuracy", "accuracy", -1, "softmax_cross_entropy"},
                 {"macro_f1", "f1", -1, "softmax_cross_entropy"},
                 {"precision", "precision", -1, "softmax_cross_entropy"},
                 {"recall", "recall", -1, "softmax_cross_entropy"},
                 {"roc_auc", "roc_auc", -1, "softmax_cross_entropy"},
                 {"perplexity", "perplexity", 1, "softmax_cross_entropy"},
                 {"top_1", "top_1", -1, "softmax_cross_entropy"},
                 {"rmse", "rmse", 1, "huber"},
                 {"mae", "mae", 1, "huber"},
                 {"r2", "r2", -1, "huber"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char monitor[64];
        bool values = strcmp(cases[i].loss, "huber") == 0;
        snprintf(monitor, sizeof monitor, "train.monitor=%s", cases[i].monitor);
        const char *set[] = {monitor,
                             "train.evaluate_every=1",
                             "data.validation_split=0.25",
                             "train.top_k=1",
                             "optimizer={rule: momentum, rate: 0.5}",
                             values ? "data.train={csv: {path: points.csv, label: value, label_columns: [y], "
                                      "skip_columns: [where]}}"
                                    : "train.steps=30",
                             values ? "layers.head.units=1" : "train.steps=30",
                             values ? "loss=huber" : "train.steps=30",
                             NULL};
        struct job job;
        struct judged judged = {cases[i].name, cases[i].sign, -1, 0, 0, 0, 0};
        struct tr_train_info info = TR_TRAIN_INFO_INIT;
        points_job(&job, set);
        tr_trainer *trainer = job_trainer(&job);
        must_train(tr_trainer_run(trainer, judge, &judged));
        must_train(tr_trainer_info(trainer, &info));
        if (info.best_step != judged.step || info.best_monitor != judged.sign * judged.best)
            fail_msg("%s: step %lld with %g, not %lld with %g", cases[i].monitor, (long long)info.best_step,
                     info.best_monitor, (long long)judged.step, judged.sign * judged.best);
        assert_string_equal(info.monitor, cases[i].name);
        assert_true(judged.told >= 1);
        assert_int_equal(judged.evaluations, 30);
        tr_trainer_destroy(&trainer);
    }
}

static void test_bad_monitors(void **state)
{
    (void)state;
    struct outcome outcome = OUTCOME("train.monitor=f1");
    assert_int_equal(outcome.status, TR_EINVAL);
    assert_non_null(strstr(outcome.message, "set train.evaluate_every"));
    outcome = OUTCOME("train.monitor=f2", "train.evaluate_every=5", "data.validation_split=0.2");
    assert_int_equal(outcome.status, TR_EINVAL);
    assert_non_null(strstr(outcome.message,
                           "\"f2\" is none of loss, accuracy, precision, recall, f1, roc_auc, "
                           "perplexity; did you mean \"f1\"?"));
    outcome = OUTCOME("train.monitor=macro_loss", "train.evaluate_every=5", "data.validation_split=0.2");
    assert_int_equal(outcome.status, TR_EINVAL);
    outcome = OUTCOME("train.monitor=f1", "train.evaluate_every=5");
    assert_int_equal(outcome.status, TR_EINVAL);
    assert_non_null(strstr(outcome.message, "name data to evaluate"));
}

/* The rate follows the figure, so the job is another one; else the figure changes no bit. */
static void test_a_monitor_and_hashes(void **state)
{
    (void)state;
    struct outcome plain = OUTCOME("data.validation_split=0.25", "train.evaluate_every=1");
    struct outcome monitored =
        OUTCOME("data.validation_split=0.25", "train.evaluate_every=1", "train.monitor=f1");
    assert_string_equal(plain.hash, monitored.hash);
    expect_one_hash("a plateau by the f1",
                    (const char *const[]){"optimizer={rule: sgd, rate: 0.3, schedule: {kind: plateau, "
                                          "patience: 0, factor: 0.5, threshold: 0.05}}",
                                          "data.validation_split=0.2", "train.evaluate_every=2",
                                          "train.monitor=macro_f1", NULL});
    expect_one_hash("a stratified fold",
                    (const char *const[]){"data.folds=4", "data.fold=2", "data.split=stratified", NULL});
}

/* Points of other seeds have the same validation rows where they have one split_seed. */
static void test_split_seeds(void **state)
{
    (void)state;
    struct outcome own = OUTCOME("data.validation_split=0.25"),
                   same = OUTCOME("data.validation_split=0.25", "data.split_seed=1"),
                   other = OUTCOME("data.validation_split=0.25", "data.split_seed=2");
    assert_string_equal(own.hash, same.hash); /* the job's seed is 1 */
    assert_string_not_equal(own.hash, other.hash);
    static const struct {
        const char *set[3], *message;
    } bad[] = {{{"data.folds=1"}, "folds: 1 leaves nothing to train on"},
               {{"data.folds=3", "data.fold=4"}, "fold 4 of 3; give 1 to 3"},
               {{"data.fold=2"}, "fold: 2 is one of folds, and there are none"},
               {{"data.folds=3", "data.validation_split=0.1"}, "there are folds and a validation_split"},
               {{"data.split=stratified"}, "split: stratified is of a split, and there is none"},
               {{"data.split_seed=3"}, "split_seed is of a split, and there is none"},
               {{"data.folds=3", "data.validation={csv: {path: points.csv}}"},
                "there are validation data and a number of folds"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct outcome outcome = points_outcome(bad[i].set);
        assert_int_equal(outcome.status, TR_EINVAL);
        if (!strstr(outcome.message, bad[i].message)) fail_msg("%s", outcome.message);
    }
}

/* ---- sequences of numbers ---- */

/* A wave that two columns show, one ahead of the other; the next value is to be predicted. */
static void write_wave(void)
{
    struct tr_text text = TR_TEXT_INIT;
    char *bytes;
    tr_text_add(&text, "sine,cosine\n");
    for (int i = 0; i < 200; i++) tr_text_addf(&text, "%.5f,%.5f\n", sin(i * 0.3), cos(i * 0.3));
    must_train(tr_text_finish(&text, &bytes));
    scratch_write_text("wave.csv", bytes);
    tr_free(bytes);
    scratch_write_text(
        "wave.yaml",
        "name: wave\n"
        "data:\n"
        "  train: {series: {path: wave.csv, window: 8, targets: sine, standardize: true, part: [0, 0.8]}}\n"
        "  test: {series: {path: wave.csv, window: 8, targets: sine, part: [0.8, 1]}}\n"
        "layers:\n  - conv1d: {filters: 6, kernel: 3, activation: tanh, name: near}\n"
        "  - attention: {heads: 2}\n  - lstm: {units: 6, name: story}\n  - gru: {units: 5, from: input}\n"
        "  - concat: {from: [story, gru1]}\n  - last\n  - dense: 1\n"
        "loss: mean_squared_error\noptimizer: {rule: adam, rate: 0.02}\n"
        "train: {batch: 32, microbatches: 4, steps: 60, log_every: 1}\n");
}

static struct outcome wave_outcome(const char *const *set)
{
    struct job job;
    struct outcome outcome;
    job_begin(&job, scratch_in("wave.yaml"));
    job.settings.journal = "";
    for (; set && *set; set++) job_set(&job, *set);
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
    return outcome;
}

/* Windows enter recurrent layers, convolutions and attention as they are: with the hash of the layers that
   say so, on any number of ranks, and they learn. */
static void test_sequences_of_numbers(void **state)
{
    (void)state;
    write_wave();
    struct outcome own = wave_outcome(NULL);
    static const char *const written[] = {"input.shape=[16]",
                                          "layers=[{reshape: {shape: [8, 1, 2], name: rows}}, {tokens: "
                                          "{name: wave}}, {conv1d: {filters: 6, kernel: 3, "
                                          "activation: tanh, name: near}}, {attention: {heads: 2}}, {lstm: "
                                          "{units: 6, name: story}}, {gru: {units: 5, "
                                          "from: wave}}, {concat: {from: [story, gru1]}}, last, {dense: 1}]",
                                          NULL};
    struct outcome said = wave_outcome(written);
    assert_string_equal(own.hash, said.hash);
    struct job job;
    struct rank ranks[RANKS];
    job_begin(&job, scratch_in("wave.yaml"));
    job.settings.journal = "";
    job.settings.strategy = "pipeline";
    run_ranks(&job.settings, 2, false, ranks);
    expect_ranks(&own, ranks, 2, "sequences of numbers");
    if (!(own.evaluated_loss < 0.05)) fail_msg("loss %g", own.evaluated_loss);
}

/* ---- pages ---- */

static int count_in(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) count++;
    return count;
}

static char *page_of_run(const char *name, const char *const *set)
{
    struct job job;
    struct outcome outcome;
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    const char *runs[] = {scratch_in(name)};
    char *html;
    points_job(&job, set);
    job.settings.out = runs[0];
    job.settings.journal = NULL;
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    settings.examples = true;
    must_train(tr_report(runs, 1, &settings, &html));
    return html;
}

/* Without test data the page is about the validation data: classes by their names, as rows, columns and lines
   of metrics, and values against those that are true. */
static void test_pages(void **state)
{
    (void)state;
    char *html = page_of_run(
        "page", (const char *const[]){"data.validation_split=0.25", "train.evaluate_every=15", NULL});
    assert_non_null(strstr(html, "<h2>Validation data</h2>"));
    assert_non_null(strstr(html, " of 101 validation examples are right"));
    assert_non_null(
        strstr(html, "<thead><tr><td></td><th>in</th><th>out</th></tr></thead><tbody><tr><th>in</th>"));
    assert_int_equal(count_in(html, "<th>out</th>"), 2);
    assert_int_equal(count_in(html, "<td>out</td>"), 1);
    tr_text_free(html);
    html = page_of_run(
        "values", (const char *const[]){"data.validation_split=0.25", "layers.head.units=1", "loss=huber",
                                        "data.train.csv={path: points.csv, label: value, label_columns: y, "
                                        "skip_columns: where}",
                                        NULL});
    assert_non_null(strstr(html, "predicted against true values of 101 validation examples"));
    tr_text_free(html);
}

/* ---- draws ---- */

static void test_sampling(void **state)
{
    (void)state;
    struct outcome shares = OUTCOME("train.sampling=shares", "train.sampling_shares=[1, 1]");
    struct outcome balanced = OUTCOME("train.sampling=balanced");
    expect_equal(&balanced, &shares);
    struct outcome one = OUTCOME("train.sampling=shares", "train.sampling_shares=[0, 1]");
    assert_true(one.status == TR_OK && one.accuracy == 1); /* all are "out" */
    struct outcome outcome = OUTCOME("train.sampling=shares");
    assert_non_null(strstr(outcome.message, "sampling: shares needs sampling_shares"));
    outcome = OUTCOME("train.sampling_shares=[1, 1]");
    assert_non_null(strstr(outcome.message, "sampling is not shares"));
    outcome = OUTCOME("train.sampling=shares", "train.sampling_shares=[1, 1, 1]");
    assert_non_null(strstr(outcome.message, "3 shares of classes, but 2 classes"));
}

/* ---- beginnings ---- */

static void test_from_another_run(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    float there[32], here[32], fresh[32];
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    points_job(&job, NULL);
    job.settings.out = scratch_in("first");
    tr_trainer *trainer = job_trainer(&job);
    trainer_outcome(trainer, &outcome);
    must_train(outcome.status);
    parameter_of(trainer, "one.weights", there, 32);
    tr_trainer_destroy(&trainer);

    static const char *const head[] = {"layers.head.units=5", "layers.one.frozen=true", "optimizer.ema=0.9",
                                       NULL};
    points_job(&job, head);
    trainer = job_trainer(&job);
    parameter_of(trainer, "one.weights", fresh, 32);
    tr_trainer_destroy(&trainer);
    char from[SCRATCH_PATH];
    snprintf(from, sizeof from, "%s", scratch_in("first"));
    job.settings.from = from;
    trainer = job_trainer(&job);
    parameter_of(trainer, "one.weights", here, 32);
    assert_memory_equal(here, there, sizeof here);
    assert_memory_not_equal(here, fresh, sizeof here);
    must_train(tr_trainer_info(trainer, &info));
    assert_non_null(strstr(info.start,
                           "checkpoint-00000030: 4 of 6 parameters, new are head.weights F32[16,5] "
                           "(there F32[16,2]), head.bias F32[5] (there F32[2])\n"));
    struct outcome alone;
    trainer_outcome(trainer, &alone);
    must_train(alone.status);
    tr_trainer_destroy(&trainer);

    /* The same from memory. */
    struct job first = {.settings = TR_TRAIN_SETTINGS_INIT};
    struct tr_run_state memory = {0};
    void *bytes;
    first.settings.resume = from;
    must_train(tr_trainer_create(&first.settings, &trainer));
    must_train(tr_trainer_save_state(trainer, &bytes, &memory.size));
    tr_trainer_destroy(&trainer);
    memory.bytes = bytes;

    static const char *const strategies[] = {"allreduce", "pipeline", "parameter-server"};
    for (size_t i = 0; i < 6; i++) {
        struct rank ranks[RANKS];
        job.settings.set = job.set;
        job.settings.strategy = strategies[i % 3];
        job.settings.from = i < 3 ? from : NULL;
        job.settings.from_state = i < 3 ? (struct tr_run_state){0} : memory;
        run_ranks(&job.settings, 3 - (i % 3 == 1), i % 3 == 0, ranks);
        expect_ranks(&alone, ranks, 3 - (i % 3 == 1), strategies[i % 3]);
    }
    job.settings.from = from;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_EINVAL);
    assert_non_null(strstr(outcome.message, "both `from` and `from_state` are given"));
    job.settings.from = NULL;
    job.settings.resume = from;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_EINVAL);
    tr_state_free(bytes);
    job_begin(&job, scratch_in("normed.yaml"));
    job_set(&job, "layers.one.units=8");
    job_set(&job, "layers.head.name=top");
    job.settings.from = from;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_EMISMATCH);
    assert_non_null(strstr(outcome.message, "has nothing in common with the network"));
    job.settings.resume = from;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_EINVAL);
}

/* ---- vectors ---- */

static void words_job(struct job *job, const char *vectors)
{
    static char set[SCRATCH_PATH + 64];
    scratch_write_text("words.tsv", "the good film\tgood\na bad film\tbad\nthe bad one\tbad\n");
    scratch_write_text("words.yaml",
                       "name: words\ndata: {train: {text: {path: words.tsv, lower_case: true}}}\n"
                       "layers:\n  - embedding: {width: 3, name: words}\n  - last\n  - dense: 2\n"
                       "optimizer: {rule: sgd, rate: 0.1}\ntrain: {batch: 3, steps: 2}\n");
    job_begin(job, scratch_in("words.yaml"));
    job->settings.journal = "";
    snprintf(set, sizeof set, "layers.words.vectors=%s", vectors);
    if (vectors) job_set(job, set);
}

/* Tokens: 0 unknown, then by count and bytes: bad, film, the (2 each), a, good, one. */
#define WORDS 7
static void vectors_of(const char *vectors, float values[WORDS * 3], const char *note)
{
    struct job job;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    words_job(&job, vectors);
    tr_trainer *trainer = job_trainer(&job);
    parameter_of(trainer, "words.weights", values, WORDS * 3);
    must_train(tr_trainer_info(trainer, &info));
    if (note ? !strstr(info.start, note) : *info.start) fail_msg("%s", info.start);
    tr_trainer_destroy(&trainer);
}

static void expect_bad_vectors(const char *name, tr_status status, const char *part)
{
    struct job job;
    struct outcome outcome;
    words_job(&job, name);
    job_outcome(&job, &outcome);
    if (outcome.status != status || !strstr(outcome.message, part)) fail_msg("%s: %s", name, outcome.message);
}

static void test_vectors(void **state)
{
    (void)state;
    float plain[WORDS * 3], values[WORDS * 3], expected[WORDS * 3];
    vectors_of(NULL, plain, NULL);
    scratch_write_text("glove.txt",
                       "The 1 2 3\nthe 9 9 9\nstrange 4 5 6\ngood -1.5 2e-1 0\nbad 0.25 0.5 0.75\n");
    vectors_of("glove.txt", values, "glove.txt: vectors of 3 of 7 words of words");
    memcpy(expected, plain, sizeof expected);
    memcpy(expected + 3 * 3, (float[]){1, 2, 3}, 12);
    memcpy(expected + 5 * 3, (float[]){-1.5f, 0.2f, 0}, 12);
    memcpy(expected + 1 * 3, (float[]){0.25f, 0.5f, 0.75f}, 12);
    assert_memory_equal(values, expected, sizeof values);
    scratch_write_text("word2vec.txt", "2 3\nfilm 7 8 9\nno 1 1 1\n");
    vectors_of("word2vec.txt", values, "vectors of 1 of 7 words");
    memcpy(expected, plain, sizeof expected);
    memcpy(expected + 2 * 3, (float[]){7, 8, 9}, 12);
    assert_memory_equal(values, expected, sizeof values);

    float rows[WORDS * 3];
    for (int i = 0; i < WORDS * 3; i++) rows[i] = (float)i;
    npy_write(scratch_in("rows.npy"), "<f4", "7, 3", rows, sizeof rows);
    vectors_of("rows.npy", values, "vectors of 7 of 7 words");
    assert_memory_equal(values, rows, sizeof values);
    rows[4] = __builtin_inff();
    npy_write(scratch_in("infinite.npy"), "<f4", "7, 3", rows, sizeof rows);
    expect_bad_vectors("infinite.npy", TR_ENONFINITE, "element 4");
    npy_write(scratch_in("short.npy"), "<f4", "6, 3", rows, 6 * 3 * sizeof *rows);
    expect_bad_vectors("short.npy", TR_EMISMATCH, "6 x 3, where the layer has 7 vectors of width 3");
    scratch_write_text("wide.txt", "the 1 2 3 4\n");
    expect_bad_vectors("wide.txt", TR_EMISMATCH,
                       "wide.txt:1: a vector of 4 numbers, the layer's width is 3; set width: 4");
    scratch_write_text("other.txt", "der 1 2 3\n");
    expect_bad_vectors("other.txt", TR_EMISMATCH, "has no word of the training text");
    scratch_write_text("broken.txt", "the 1 two 3\n");
    expect_bad_vectors("broken.txt", TR_EFORMAT, "broken.txt:1:7: \"two\" is not a number");
    expect_bad_vectors("missing.txt", TR_ENOTFOUND, "missing.txt");
}

/* Of a run with moving averages another one begins with these, as evaluations and predictions take them. */
static void test_from_averages(void **state)
{
    (void)state;
    struct job job;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    float values[32], average[32], begun[32];
    char from[SCRATCH_PATH];
    snprintf(from, sizeof from, "%s", scratch_in("averaged"));
    job_begin(&job, scratch_in("normed.yaml"));
    job.settings.journal = "";
    job.settings.out = from;
    tr_trainer *trainer = job_trainer(&job);
    parameter_of(trainer, "one.weights", average, 32);
    for (int step = 0; step < 10; step++) {
        must_train(tr_trainer_step(trainer, NULL));
        parameter_of(trainer, "one.weights", values, 32);
        for (int i = 0; i < 32; i++) average[i] = 0.9f * average[i] + 0.1f * values[i];
    }
    must_train(tr_trainer_save(trainer, NULL));
    tr_trainer_destroy(&trainer);
    job_begin(&job, scratch_in("normed.yaml"));
    job.settings.journal = "";
    job.settings.from = from;
    trainer = job_trainer(&job);
    parameter_of(trainer, "one.weights", begun, 32);
    double off = 0, moved = 0;
    for (int i = 0; i < 32; i++) {
        double difference = (double)begun[i] - (double)average[i],
               step = (double)begun[i] - (double)values[i];
        off = difference * difference > off ? difference * difference : off;
        moved += step * step;
    }
    assert_true(off < 1e-12 && moved > 1e-4);
    must_train(tr_trainer_info(trainer, &info));
    if (!strstr(info.start, ": 8 of 8 parameters, of 8 their moving averages\n") &&
        !strstr(info.start, ": 8 of 8 parameters, of 6 their moving averages\n"))
        fail_msg("%s", info.start);
    tr_trainer_destroy(&trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_factors),
        cmocka_unit_test(test_factors_of_one_layer),
        cmocka_unit_test(test_frozen_layers_stay),
        cmocka_unit_test(test_frozen_layers_do_not_clip),
        cmocka_unit_test(test_a_pace_needs_parameters),
        cmocka_unit_test(test_one_hash),
        cmocka_unit_test(test_teachers),
        cmocka_unit_test(test_teachers_are_refused),
        cmocka_unit_test(test_amsgrad_differs),
        cmocka_unit_test(test_sam),
        cmocka_unit_test(test_validation_split),
        cmocka_unit_test(test_plateau),
        cmocka_unit_test(test_monitors),
        cmocka_unit_test(test_bad_monitors),
        cmocka_unit_test(test_a_monitor_and_hashes),
        cmocka_unit_test(test_split_seeds),
        cmocka_unit_test(test_sequences_of_numbers),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_from_another_run),
        cmocka_unit_test(test_from_averages),
        cmocka_unit_test(test_vectors),
    };
    return cmocka_run_group_tests(tests, make_place, scratch_place_remove);
}
