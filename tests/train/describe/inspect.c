#include "train/describe/inspect.h"

#include "base/text/text.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

int inspect_make(void **state)
{
    scratch_place_make(state);
    if (chdir(scratch_place) != 0) return -1;
    scratch_write_text("numbers.csv", "0,0,0\n1,0,1\n0,1,2\n1,1,0\n");
    scratch_write_text("words.tsv", "a b c\t0\nb a\t1\nc c c c c\t1\n");
    scratch_write_text("two.csv", "long,short\nabc,ab\nba,b\ncab,a\n");
    scratch_write_text("plain.yaml",
                       "name: plain\ndata: {train: {csv: {path: numbers.csv}}}\n"
                       "layers: [{dense: {units: 4, name: one}}, {dense: {units: 4, name: two}}, "
                       "{add: {with: one}}, {dense: 3}]\n"
                       "optimizer: {rule: adam, rate: 0.01}\n"
                       "train: {batch: 2, microbatches: 1, steps: 10}\n");
    scratch_write_text("words.yaml", "name: words\ndata: {train: {text: {path: words.tsv}}}\n"
                                     "layers: [{embedding: 7}, {lstm: 5}, last, {dense: 2}]\n"
                                     "optimizer: {rule: momentum, rate: 0.25}\n"
                                     "train: {batch: 2, microbatches: 2, steps: 1}\n");
    scratch_write_text(
        "two.yaml",
        "name: texts\ndata: {train: {join: {sources: {long: {text: {path: two.csv, layout: table, header: "
        "true, unit: characters, labels: false, text_columns: long}}, short: {text: {path: two.csv, layout: "
        "table, header: true, unit: characters, next: true, text_columns: short}}}}}}\n"
        "layers: [{embedding: {width: 4, from: long, name: memory}}, {embedding: {width: 4, from: short}}, "
        "{cross_attention: {heads: 1, with: memory}}, {dense: 4}]\n"
        "optimizer: {rule: sgd, rate: 0.5}\ntrain: {batch: 2, microbatches: 2, steps: 1}\n");
    scratch_write_text(
        "parts.yaml",
        "name: parts\ndata: {train: {join: {sources: {left: {csv: {path: numbers.csv}}, right: "
        "{csv: {path: numbers.csv, label: none}}}}}}\n"
        "layers: [{dense: {units: 3, from: left}}, {dense: {units: 3, from: right}}, {add: {with: "
        "dense1}}]\noptimizer: {rule: sgd, rate: 0.5}\ntrain: {batch: 2, steps: 1}\n");
    return 0;
}

int inspect_clean(void **state)
{
    return chdir("/") == 0 ? scratch_place_remove(state) : -1;
}

struct tr_inspect_settings inspect_asked(const char *path, const char *const *set, int count)
{
    struct tr_inspect_settings settings = TR_INSPECT_SETTINGS_INIT;
    settings.path = path;
    settings.set = set;
    settings.set_count = count;
    return settings;
}

void expect_number(const json_t *object, const char *key, int64_t expected)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) != expected)
        fail_msg("%s is %lld, not %lld", key, (long long)json_integer_value(value), (long long)expected);
}

void expect_flag(const json_t *object, const char *key, bool expected)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value) || json_is_true(value) != expected) fail_msg("%s", key);
}

json_t *inspect_json(const char *path, const char *const *set, int count)
{
    char *text;
    struct tr_inspect_settings settings = inspect_asked(path, set, count);
    settings.json = 1;
    must_train(tr_inspect_model(&settings, &text));
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    tr_text_free(text);
    return root;
}
