/* The text of a job's settings: whatever weights depend on changes it, and nothing else does. */
#include "job/file/settings.h"

#include "base/alloc.h"
#include "refuse.h"
#include "strategy/strategy.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char place[SCRATCH_PATH], path[SCRATCH_PATH];

static const char rows[] = "1,2,0.5\n2,3,1.5\n3,1,2.5\n4,7,3.5\n5,2,0.25\n6,1,4\n7,7,1\n8,3,2\n";
static const char labelled[] = "1,2,0\n2,3,1\n3,1,0\n4,7,1\n5,2,0\n6,1,1\n7,7,0\n8,3,1\n";
static const char model[] =
    "name: settings\n"
    "data:\n"
    "  train: {csv: {path: rows.csv, label: value}}\n"
    "layers: [{dense: {units: 3, activation: tanh, name: hidden}}, {dense: 1}]\n"
    "loss: {kind: huber, delta: 0.5}\n"
    "optimizer: {rule: adam, rate: 0.01, schedule: {kind: exponential, every: 2, decay: 0.5}}\n"
    "train: {batch: 4, microbatches: 2, steps: 3}\n";

static int set_up(void **state)
{
    char data[SCRATCH_PATH];
    (void)state;
    scratch_make(place);
    must_train(tr_file_write_atomic(NULL, scratch_join(data, place, "rows.csv"), rows, sizeof rows - 1));
    must_train(
        tr_file_write_atomic(NULL, scratch_join(data, place, "classes.csv"), labelled, sizeof labelled - 1));
    must_train(tr_file_write_atomic(NULL, scratch_join(path, place, "job.yaml"), model, sizeof model - 1));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(place);
    return 0;
}

/* Free with tr_free(). `set` may be NULL. */
static char *settings_with(const char *set)
{
    const struct tr_job_settings settings = {
        .set = &set, .set_count = set ? 1 : 0, .first_of_strategy = tr_strategy_first_option};
    struct tr_job *job;
    char *text;
    if (tr_job_open(path, &settings, &job) != TR_OK) fail_msg("%s: %s", set, tr_error_message());
    must_train(tr_settings_text(job, &text));
    tr_job_destroy(&job);
    return text;
}

static void what_weights_depend_on_is_there(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "seed=2",
        "train.batch=8",
        "train.microbatches=4",
        "train.shuffle=false",
        "train.last_batch=drop",
        "data.validation_split=0.25",
        "layers.hidden.units=4",
        "layers.hidden.activation=relu",
        "layers.hidden.use_bias=false",
        "loss.delta=0.25",
        "loss=mean_squared_error",
        "optimizer.rate=0.02",
        "optimizer.rule=sgd",
        "optimizer.epsilon=0.1",
        "optimizer.clip_norm=1",
        "optimizer.schedule.every=3",
        "optimizer.schedule.decay=0.25",
        "optimizer.schedule={kind: constant}",
    };
    char *plain = settings_with(NULL), *changed[sizeof sets / sizeof sets[0]];
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        changed[i] = settings_with(sets[i]);
        if (strcmp(changed[i], plain) == 0) fail_msg("%s is not told: %s", sets[i], plain);
        for (size_t k = 0; k < i; k++)
            if (strcmp(changed[i], changed[k]) == 0) fail_msg("%s and %s are told alike", sets[i], sets[k]);
    }
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) tr_free(changed[i]);
    tr_free(plain);
}

/* The seed of a split is told where it is given, whichever it is. */
static void seeds_of_splits_are_told(void **state)
{
    (void)state;
#define SPLIT "data={train: {csv: {path: rows.csv, label: value}}, validation_split: 0.25"
    char *own = settings_with(SPLIT "}"), *zero = settings_with(SPLIT ", split_seed: 0}"),
         *one = settings_with(SPLIT ", split_seed: 1}");
    assert_string_not_equal(own, zero);
    assert_string_not_equal(own, one);
    assert_string_not_equal(zero, one);
    tr_free(own);
    tr_free(zero);
    tr_free(one);
}

/* A network that scores classes, of a table in which both are there. */
static const char classes[] =
    "name: settings\n"
    "data: {train: {csv: classes.csv}}\n"
    "layers: [{dense: {units: 3, name: hidden}}, {dense: 2}]\n"
    "optimizer: {rule: sgd, rate: 0.01, schedule: {kind: plateau, factor: 0.5, patience: 1}}\n"
    "train: {batch: 4, microbatches: 2, steps: 3, evaluate_every: 1}\n";

static char *settings_of_classes(const char *set)
{
    const struct tr_job_text text = {classes, sizeof classes - 1, "m.yaml", place};
    const struct tr_job_settings settings = {.set = &set, .set_count = set ? 1 : 0};
    struct tr_job *job;
    char *told;
    if (tr_job_open_text(&text, &settings, &job) != TR_OK) fail_msg("%s: %s", set, tr_error_message());
    must_train(tr_settings_text(job, &told));
    tr_job_destroy(&job);
    return told;
}

/* Draws of examples, divisions of the data, and the figure that a plateau follows have lines, each where it
   is there; without them the text is as long as it was before they were options. */
static void rarer_settings_have_lines(void **state)
{
    static const char *const cases[][2] = {
        {"train.sampling=balanced", "sampling: {balanced: []}\n"},
        {"train={batch: 4, steps: 3, evaluate_every: 1, sampling: shares, sampling_shares: [1, 0.25]}",
         "sampling: {shares: [1, 0.25]}\n"},
        {"data={train: {csv: classes.csv}, folds: 2, fold: 2}", "folds: {folds: 2, fold: 2}\n"},
        {"data={train: {csv: classes.csv}, validation_split: 0.25}", "data: {validation_split: 0.25}\n"},
        {"data={train: {csv: classes.csv}, folds: 2, split: stratified}",
         "folds: {folds: 2, fold: 1}\nsplit: stratified\n"},
        {"train.monitor=macro_f1", "monitor: f1\n"},
        {"train.monitor=accuracy", "monitor: accuracy\n"},
    };
    static const char *const words[] = {"sampling", "data:",    "fold",   "split",
                                        "monitor",  "adapters", "distill"};
    (void)state;
    char *plain = settings_of_classes(NULL), *loss = settings_of_classes("train.monitor=loss");
    assert_string_equal(plain, loss);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(plain, words[i])) fail_msg("%s in %s", words[i], plain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *told = settings_of_classes(cases[i][0]);
        if (!strstr(told, cases[i][1])) fail_msg("no %s in %s", cases[i][1], told);
        tr_free(told);
    }
    tr_free(plain);
    tr_free(loss);
    /* Another schedule does not follow it. */
    char *own = settings_with(NULL), *other = settings_with("train={batch: 4, microbatches: 2, steps: 3, "
                                                            "evaluate_every: 1, monitor: rmse}");
    assert_string_equal(own, other);
    tr_free(own);
    tr_free(other);
}

/* A base and a teacher are told by their hashes, wherever they lie. */
static void runs_that_are_used_are_told_by_hash(void **state)
{
    static char here[] = "/here", there[] = "/there", hash[] = "5ea5", other[] = "ea5e";
    const struct tr_job_settings settings = {.set_count = 0};
    struct tr_job *job;
    char *text[5];
    (void)state;
    must_train(tr_job_open(path, &settings, &job));
    for (int i = 0; i < 5; i++) {
        job->adapters = (struct tr_adapters){
            .rank = 4, .alpha = 8, .base = i == 1 ? there : here, .base_hash = i == 2 ? other : hash};
        job->distill = (struct tr_distill_options){
            .teacher = i == 3 ? there : here, .teacher_hash = i == 4 ? other : hash, .alpha = 0.25f};
        must_train(tr_settings_text(job, &text[i]));
    }
    job->adapters = (struct tr_adapters){0};
    job->distill = (struct tr_distill_options){0};
    assert_non_null(strstr(text[0], "adapters: {"));
    assert_non_null(strstr(text[0], "distill: {"));
    assert_null(strstr(text[0], here));
    assert_string_equal(text[0], text[1]);
    assert_string_not_equal(text[0], text[2]);
    assert_string_equal(text[0], text[3]);
    assert_string_not_equal(text[0], text[4]);
    for (int i = 0; i < 5; i++) tr_free(text[i]);
    tr_job_destroy(&job);
}

/* Whichever allocation fails, there is no text, and nothing stays behind. */
static void without_memory_there_is_no_text(void **state)
{
    const struct tr_job_settings settings = {.set_count = 0};
    struct tr_job *job;
    char *text;
    (void)state;
    must_train(tr_job_open(path, &settings, &job));
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_settings_text(job, &text);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) tr_free(text);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_job_destroy(&job);
}

static void what_they_do_not_depend_on_is_not(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "name=other",
        "train.log_every=2",
        "train.evaluate_every=2",
        "train.checkpoint_every=1",
        "strategy=pipeline",
        "strategy=easgd",
        "data.train.csv.path=./rows.csv",
    };
    char *plain = settings_with(NULL);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        char *text = settings_with(sets[i]);
        if (strcmp(text, plain) != 0) fail_msg("%s is told: %s", sets[i], text);
        tr_free(text);
    }
    tr_free(plain);
}

/* Each difference by its path, with the value there first; as many as are asked for. */
static void differences_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *there, *here;
        int most;
        const char *told;
    } cases[] = {
        {"a: 1\nb: {c: 2}\n", "a: 1\nb: {c: 2}\n", 8, ""},
        {"a: 1", "a: 2", 8, "a 1, here 2"},
        {"a: {b: 1, c: x}", "a: {b: 2, c: y}", 8, "a.b 1, here 2; a.c \"x\", here \"y\""},
        {"a: 1\nb: 2", "b: 2", 8, "a 1, here not given"},
        {"b: 2", "a: 1\nb: 2", 8, "a not given, here 1"},
        {"a: [1, 2]", "a: [1, 3, 4]", 8, "a[1] 2, here 3; a[2] not given, here 4"},
        {"a: [1, 2, 3]", "a: [1]", 8, "a[1] 2, here not given; a[2] 3, here not given"},
        {"a: 1", "a: [1]", 8, "a 1, here [1]"},
        {"a: {b: 1}", "a: [1]", 8, "a {\"b\": 1}, here [1]"},
        {"a: 1\nb: 2\nc: 3", "a: 2\nb: 3\nc: 4", 3, "a 1, here 2; b 2, here 3; c 3, here 4"},
        {"a: 1\nb: 2\nc: 3", "a: 2\nb: 3\nc: 4", 2, "a 1, here 2; b 2, here 3; and 1 more"},
        {"a: 1\nb: 2\nc: 3", "a: 2\nb: 3\nc: 4", 1, "a 1, here 2; and 2 more"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *told;
        must_train(tr_settings_compare(cases[i].there, cases[i].here, ", here ", cases[i].most, &told));
        assert_string_equal(told, cases[i].told);
        tr_free(told);
    }
}

/* Values of more than 60 bytes are cut, and no others. */
static void long_values_are_cut(void **state)
{
    (void)state;
    for (int length = 58; length <= 59; length++) {
        char word[64], there[80], expected[160], *told;
        memset(word, 'w', sizeof word);
        word[length] = 0;
        snprintf(there, sizeof there, "a: %s", word);
        snprintf(expected, sizeof expected, length == 58 ? "a \"%s\" and 1" : "a \"%s... and 1", word);
        must_train(tr_settings_compare(there, "a: 1", " and ", 8, &told));
        assert_string_equal(told, expected);
        tr_free(told);
    }
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    char *told = NULL;
    assert_int_equal(tr_settings_compare("a: [", "a: 1", "", 8, &told), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "settings there"));
    assert_int_equal(tr_settings_compare("a: 1", "a: [", "", 8, &told), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "settings here"));
    assert_null(told);
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_settings_compare("a: [1, {b: 2}]", "a: [2]\nc: 3", ", here ", 8, &told);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) tr_free(told);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_weights_depend_on_is_there),
        cmocka_unit_test(rarer_settings_have_lines),
        cmocka_unit_test(runs_that_are_used_are_told_by_hash),
        cmocka_unit_test(without_memory_there_is_no_text),
        cmocka_unit_test(what_they_do_not_depend_on_is_not),
        cmocka_unit_test(seeds_of_splits_are_told),
        cmocka_unit_test(differences_are_named),
        cmocka_unit_test(long_values_are_cut),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests_name("job.settings", tests, set_up, tear_down);
}
