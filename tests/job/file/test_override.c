/* Changes to a model file by the command line: what the tree is after them, whatever its sections were
 * abbreviated to.
 */
#include "job/file/override.h"

#include "base/alloc.h"
#include "refuse.h"
#include "strategy/strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static tr_config *parse(const char *text)
{
    tr_config *root;
    if (tr_config_parse(text, strlen(text), "m.yaml", &root) != TR_OK) fail_msg("%s", tr_error_message());
    return root;
}

static char *dump(const tr_config *root)
{
    char *text;
    assert_int_equal(tr_config_dump(root, &text), TR_OK);
    return text;
}

/* Fails unless the tree of `text` is that of `expected` after these settings. */
static void expect_tree(const char *text, const struct tr_job_settings *settings, const char *expected,
                        const char *about)
{
    tr_config *root = parse(text), *other = parse(expected);
    if (tr_job_override(root, settings) != TR_OK) fail_msg("%s: %s", about, tr_error_message());
    char *is = dump(root), *should = dump(other);
    if (strcmp(is, should) != 0) fail_msg("%s on %s gives\n%snot\n%s", about, text, is, should);
    tr_free(is);
    tr_free(should);
    tr_config_destroy(&root);
    tr_config_destroy(&other);
}

/* A key below an abbreviated section first makes it a whole one. */
static void short_sections_are_continued(void **state)
{
    static const struct {
        const char *text, *set, *expected;
    } cases[] = {
        {"layers: [{dense: 10}]", "layers[0].dense.use_bias=false",
         "layers: [{dense: {units: 10, use_bias: false}}]"},
        {"layers: [relu]", "layers[0].relu.name=r", "layers: [{relu: {name: r}}]"},
        {"layers: [{dropout: 0.5}]", "layers[0].dropout.name=d", "layers: [{dropout: {rate: 0.5, name: d}}]"},
        /* layers without options have a name */
        {"layers: [{tanh: a}]", "layers[0].tanh.from=b", "layers: [{tanh: {name: a, from: b}}]"},
        /* an initializer is a name, and a number one without */
        {"layers: [{dense: {units: 3, weights: normal}}]", "layers[0].dense.weights.normal.deviation=2",
         "layers: [{dense: {units: 3, weights: {normal: {deviation: 2}}}}]"},
        {"layers: [{dense: {units: 3, weights: normal}}]", "layers[0].dense.weights.deviation=2",
         "layers: [{dense: {units: 3, weights: {normal: {deviation: 2}}}}]"},
        {"data: {train: {csv: a.csv}}", "data.train.csv.label=value",
         "data: {train: {csv: {path: a.csv, label: value}}}"},
        {"loss: huber", "loss.delta=2", "loss: {kind: huber, delta: 2}"},
        {"optimizer: sgd", "optimizer.rate=2", "optimizer: {rule: sgd, rate: 2}"},
        {"optimizer: {rule: sgd, schedule: cosine}", "optimizer.schedule.warmup=2",
         "optimizer: {rule: sgd, schedule: {kind: cosine, warmup: 2}}"},
        {"adapters: lora", "adapters.alpha=2", "adapters: {kind: lora, alpha: 2}"},
        {"distill: run", "distill.alpha=0.5", "distill: {teacher: run, alpha: 0.5}"},
        {"train: 32", "train.steps=7", "train: {batch: 32, steps: 7}"},
        {"input: 3", "input.steps=7", "input: {shape: 3, steps: 7}"},
        {"strategy: allreduce", "strategy.bucket=7", "strategy: {allreduce: {bucket: 7}}"},
        {"strategy: {local-sgd: 4}", "strategy.local-sgd.every=7",
         "strategy: {local-sgd: {replicas: 4, every: 7}}"},
        {"x: 1", "train.steps=7", "x: 1\ntrain: {steps: 7}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_job_settings settings = {
            .set = &cases[i].set, .set_count = 1, .first_of_strategy = tr_strategy_first_option};
        expect_tree(cases[i].text, &settings, cases[i].expected, cases[i].set);
    }
}

/* What is no such section stays, and the path says how far it goes. */
static void other_values_are_not_continued(void **state)
{
    static const struct {
        const char *text, *set;
    } cases[] = {
        {"layers: [{dense: {units: 3, weights: 0.5}}]", "layers[0].dense.weights.normal=2"},
        {"layers: [{dense: {units: 3, activation: relu}}]", "layers[0].dense.activation.slope=2"},
        {"layers: [{dense: {units: 3}}]", "layers[0].dense.units.more=2"},
        {"layers: [{nothing: 3}]", "layers[0].nothing.more=2"},
        {"layers: [{nothing: {weights: normal}}]", "layers[0].nothing.weights.normal.deviation=2"},
        {"data: {train: {nothing: 3}}", "data.train.nothing.more=2"},
        {"loss: [huber]", "loss.delta=2"},
        {"name: n", "name.more=2"},
        {"optimizer: {rate: 1}", "optimizer.rate.more=2"},
        {"strategy: {nothing: 3}", "strategy.nothing.more=2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_job_settings settings = {
            .set = &cases[i].set, .set_count = 1, .first_of_strategy = tr_strategy_first_option};
        tr_config *root = parse(cases[i].text);
        char *before = dump(root);
        if (tr_job_override(root, &settings) != TR_EINVAL) fail_msg("%s changes %s", cases[i].set, before);
        char *after = dump(root);
        assert_string_equal(after, before);
        tr_free(before);
        tr_free(after);
        tr_config_destroy(&root);
    }
    /* Of an unknown first option of strategies. */
    const char *set = "strategy.local-sgd.every=7";
    const struct tr_job_settings settings = {.set = &set, .set_count = 1};
    tr_config *root = parse("strategy: {local-sgd: 4}");
    assert_int_equal(tr_job_override(root, &settings), TR_EINVAL);
    tr_config_destroy(&root);
}

static void strategies_are_texts_with_options(void **state)
{
    static const char *const cases[][2] = {
        {"pipeline", "strategy: pipeline"},
        {"parameter-server,mode=async,servers=2", "strategy: {parameter-server: {mode: async, servers: 2}}"},
        {"x,,a=1,", "strategy: {x: {a: 1}}"},
        {"x,a=[1,[2,3],4],b=5", "strategy: {x: {a: [1, [2, 3], 4], b: 5}}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_job_settings settings = {.strategy = cases[i][0]};
        expect_tree("strategy: {easgd: {every: 3}}", &settings, cases[i][1], cases[i][0]);
    }
}

/* Overrides are later than a strategy, and earlier than a seed and a length. */
static void settings_have_an_order(void **state)
{
    static const char *const set[] = {"seed=3", "train.steps=5", "strategy.easgd.every=9", "train.steps=6"};
    struct tr_job_settings settings = {.set = set, .set_count = 4};
    (void)state;
    expect_tree("a: 1", &settings, "a: 1\nseed: 3\ntrain: {steps: 6}\nstrategy: {easgd: {every: 9}}",
                "overrides");
    settings.strategy = "easgd,every=2";
    settings.has_seed = true, settings.seed = UINT64_MAX;
    settings.steps = 70;
    expect_tree(
        "a: 1", &settings,
        "a: 1\nstrategy: {easgd: {every: 9}}\nseed: 18446744073709551615\ntrain: {steps: 70, epochs: 0}",
        "settings");
    settings.steps = 0, settings.epochs = 8;
    expect_tree(
        "a: 1", &settings,
        "a: 1\nstrategy: {easgd: {every: 9}}\nseed: 18446744073709551615\ntrain: {steps: 0, epochs: 8}",
        "epochs");
    settings.steps = 7;
    tr_config *root = parse("a: 1");
    assert_int_equal(tr_job_override(root, &settings), TR_EINVAL);
    assert_string_equal(tr_error_message(), "`steps` 7 and `epochs` 8 both say how long to train; give one");
    char *text = dump(root);
    assert_string_equal(text, "a: 1\n");
    tr_free(text);
    tr_config_destroy(&root);
}

/* A data set from the program gets a line, unless the file has one or there is no such set. */
static void given_data_need_no_line(void **state)
{
    static const struct tr_named_source given[] = {{.name = "train"}, {.name = "test"}, {.name = "other"}};
    const struct tr_job_settings settings = {.given = given, .given_count = 3};
    (void)state;
    expect_tree("data: {test: {csv: t}}", &settings, "data: {test: {csv: t}, train: {memory: {name: train}}}",
                "data");
    expect_tree("a: 1", &settings,
                "a: 1\ndata: {train: {memory: {name: train}}, test: {memory: {name: test}}}", "no data");
}

static void missing_memory_is_told(void **state)
{
    static const char *const set[] = {"layers[0].dense.weights.deviation=2"};
    static const struct tr_named_source given[] = {{.name = "train"}};
    const struct tr_job_settings settings = {.set = set,
                                             .set_count = 1,
                                             .strategy = "easgd,every=2",
                                             .has_seed = true,
                                             .epochs = 3,
                                             .given = given,
                                             .given_count = 1};
    bool done = false;
    (void)state;
    for (int64_t at = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        tr_config *root = parse("layers: [{dense: {units: 3, weights: normal}}]");
        refuse_begin(at);
        const tr_status status = tr_job_override(root, &settings);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_config_destroy(&root);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_sections_are_continued),      cmocka_unit_test(other_values_are_not_continued),
        cmocka_unit_test(strategies_are_texts_with_options), cmocka_unit_test(settings_have_an_order),
        cmocka_unit_test(given_data_need_no_line),           cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("job.override", tests, NULL, NULL);
}
