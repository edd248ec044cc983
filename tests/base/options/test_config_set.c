/* Overrides change what they name and nothing else. */
#include "base/options/config.h"

#include "base/alloc.h"
#include "mutate.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static tr_config *parse(const char *text)
{
    tr_config *root;
    if (tr_config_parse(text, strlen(text), "m.yaml", &root) != TR_OK) fail_msg("%s", tr_error_message());
    return root;
}

static char *dump(const tr_config *node)
{
    char *text;
    assert_int_equal(tr_config_dump(node, &text), TR_OK);
    return text;
}

#define LONG_KEY    "a-key-of-thirty-two-bytes-in-all"
#define LONGEST_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY

static const char small[] = "layers:\n"
                            "  - conv: {filters: 8, name: c1}\n"
                            "  - dense: {units: 5}\n"
                            "  - flatten:\n"
                            "  - relu\n"
                            "  - {name: plain, x: 1}\n"
                            "  - dense: 10\n"
                            "optimizer: {rule: adam, rate: 1}\n"
                            "none:\n";

static void overrides_change_what_they_name(void **state)
{
    (void)state;
    static const struct {
        const char *assignment, *line; /* of the canonical form afterwards */
    } cases[] = {
        {"optimizer.rate=1e-3", "\n  rate: 1e-3\n"},
        {"optimizer.l2=1/3", "\n  rate: 1\n  l2: 1/3\n"},
        {"optimizer=sgd", "\noptimizer: sgd\n"},
        {"optimizer={rule: sgd, rate: 2}", "\noptimizer:\n  rule: sgd\n  rate: 2\n"},
        {"optimizer.schedule.kind=cosine", "\n  schedule:\n    kind: cosine\n"},
        {"new.a.b=[1, 2]", "\nnew:\n  a:\n    b: [1, 2]\n"},
        {"none.a=1", "\nnone:\n  a: 1\n"},
        {"none=", "\nnone: ~\n"},
        {"none=\"\"", "\nnone: \"\"\n"},
        {"none=a=b", "\nnone: \"a=b\"\n"},
        {"layers[0].conv.filters=16", "      filters: 16\n"},
        {"layers.0.conv.filters=16", "      filters: 16\n"},
        {"layers.0.filters=16", "      filters: 16\n"},
        {"layers[0].filters=16", "      filters: 16\n"},
        {"layers.c1.filters=16", "      filters: 16\n      name: c1\n"},
        {"layers.c1.kernel=[5, 3]", "      name: c1\n      kernel: [5, 3]\n"},
        {"layers.c1=relu", "layers:\n  - relu\n  - dense:\n"},
        {"layers.1.units=7", "  - dense:\n      units: 7\n"},
        {"layers.1.dense=7", "  - dense: 7\n"},
        {"layers.dense1.units=7", "  - dense:\n      units: 7\n"},
        {"layers.dense00001.units=7", "  - dense:\n      units: 7\n"},
        {LONGEST_KEY "=7", "\n" LONGEST_KEY ": 7\n"},
        {"layers.dense2={dense: 7}", "  - dense: 7\n"},
        {"layers.flatten1.x=7", "  - flatten:\n      x: 7\n"},
        {"layers.relu1=tanh", "  - tanh\n"},
        {"layers.2.flatten.x=7", "  - flatten:\n      x: 7\n"},
        {"layers.2.x=7", "  - flatten:\n      x: 7\n"},
        {"layers[3]={dense: 3}", "  - dense: 3\n"},
        {"layers.plain.x=2", "  - name: plain\n    x: 2\n"},
        {"layers[4].y=2", "  - name: plain\n    x: 1\n    y: 2\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_config *root = parse(small);
        if (tr_config_set(root, cases[i].assignment) != TR_OK) fail_msg("%s", tr_error_message());
        char *text = dump(root);
        if (!strstr(text, cases[i].line)) fail_msg("%s gives\n%s", cases[i].assignment, text);
        tr_config *again = parse(text);
        tr_config_destroy(&again);
        tr_free(text);
        tr_config_destroy(&root);
    }
    /* The place of what was given on the command line. */
    tr_config *root = parse(small);
    char text[TR_CONFIG_PATH_SIZE];
    assert_int_equal(tr_config_set(root, "a.b=[1, 2]"), TR_OK);
    assert_string_equal(
        tr_config_location(tr_config_at(tr_config_get(tr_config_get(root, "a"), "b"), 1), text, sizeof text),
        "`set` a.b[1]");
    assert_string_equal(tr_config_location(tr_config_get(root, "a"), text, sizeof text), "`set` a");
    assert_int_equal(tr_config_set(root, "new.part.key=1"), TR_OK);
    assert_string_equal(
        tr_config_location(tr_config_get(tr_config_get(root, "new"), "part"), text, sizeof text),
        "`set` new.part");
    tr_config_destroy(&root);
}

/* What those who read `small` know. */
static enum tr_config_short short_form(void *user, const tr_config *node, const char **key)
{
    char path[TR_CONFIG_PATH_SIZE];
    (void)user;
    tr_config_path(node, path, sizeof path);
    if (strcmp(path, "layers[5].dense") == 0) *key = "units";
    if (strcmp(path, "optimizer") == 0) *key = "rule";
    if (strcmp(path, "list") == 0) *key = "items";
    if (*key) return TR_CONFIG_FIRST_KEY;
    bool named = strcmp(path, "layers[3]") == 0 || strcmp(path, "way") == 0 || strcmp(path, "other") == 0;
    return named ? TR_CONFIG_BY_NAME : TR_CONFIG_NO_SHORT;
}

static const char shorter[] = "layers: [a, b, c, relu, d, {dense: 10}]\n"
                              "optimizer: sgd\n"
                              "way: fast\n"
                              "other: {slow: {far: 1}}\n"
                              "list: [x, y]\n"
                              "text: plain\n";

static void short_forms_are_filled_in(void **state)
{
    (void)state;
    static const struct {
        const char *assignment, *part; /* of the canonical form afterwards; NULL: refused */
    } cases[] = {
        {"layers[5].bias=1", "  - dense:\n      units: 10\n      bias: 1\n"},
        {"layers.dense1.bias.deep=1", "      units: 10\n      bias:\n        deep: 1\n"},
        {"layers.5.dense.bias=1", "      units: 10\n      bias: 1\n"},
        {"layers[5].units=7", "  - dense:\n      units: 7\noptimizer"},
        {"layers[3].slope=2", "  - relu:\n      slope: 2\n"},
        {"layers.relu1.slope=2", "  - relu:\n      slope: 2\n"},
        {"layers[3].relu.slope=2", "  - relu:\n      slope: 2\n"},
        {"optimizer.rate=2", "optimizer:\n  rule: sgd\n  rate: 2\n"},
        {"way.bucket=2", "way:\n  fast:\n    bucket: 2\n"},
        {"way.fast.bucket=2", "way:\n  fast:\n    bucket: 2\n"},
        {"way.fast=2", "way:\n  fast: 2\n"},
        {"way=2", "way: 2\n"},
        {"other.far=2", "other:\n  slow:\n    far: 2\n"},
        {"other.near=2", "other:\n  slow:\n    far: 1\n    near: 2\n"},
        {"other.slow.near=2", "    far: 1\n    near: 2\n"},
        {"list.more=2", "list:\n  items: [x, y]\n  more: 2\n"},
        {"text.more=2", NULL},
        {"layers[0].more=2", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_config *root = parse(shorter);
        tr_status status = tr_config_set_in(root, cases[i].assignment, short_form, NULL);
        assert_int_equal(status, cases[i].part ? TR_OK : TR_EINVAL);
        char *text = dump(root);
        if (!strstr(text, cases[i].part ? cases[i].part : "text: plain"))
            fail_msg("%s gives\n%s", cases[i].assignment, text);
        tr_config *again = parse(text);
        tr_config_destroy(&again);
        tr_free(text);
        tr_config_destroy(&root);
    }
}

static void bad_overrides_change_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *assignment, *message;
    } cases[] = {
        {"", "`set` : expected path=value"},
        {"optimizer.rate", "`set` optimizer.rate: expected path=value"},
        {"=1", "`set` =1: no path stands before the ="},
        {".a=1", "`set` .a: empty key"},
        {"a.\xcd\xcd=1", "`set` a.\xcd\xcd: key that is no UTF-8"},
        {"a.=1", "`set` a.: ends in a point"},
        {"a..b=1", "`set` a..b: empty key"},
        {"a]=1", "`set` a]: "},
        {"layers[=1", "`set` layers[: '[' without a number and ']'"},
        {"layers[]=1", "`set` layers[]: '[' without a number"},
        {"layers[x]=1", "`set` layers[x]: the text between"},
        {"layers[0]x=1", "`set` layers[0]x: ']' must be followed"},
        {"layers[6].x=1", "`set` layers[6].x: layers has 6 items, numbered from 0; there is no item 6"},
        {"layers.99999999999999999999=1", "`set` layers.99999999999999999999: layers has 6 items"},
        {"layers.c9.x=1", "`set` layers.c9.x: layers has no item with name: c9"},
        {"layers.conv1.x=1",
         "`set` layers.conv1.x: layers has no item with name: conv1"}, /* its name is c1 */
        {"layers.dense3.x=1", "`set` layers.dense3.x: layers has no item with name: dense3"},
        {"layers.dense0.x=1", "`set` layers.dense0.x: layers has no item"},
        {"layers.dense000001.x=1", "`set` layers.dense000001.x: layers has no item"},
        {LONGEST_KEY "s=7", "`set` " LONGEST_KEY "s: key too long"},
        {"layers.dense2.units=1", "`set` layers.dense2.units: layers[5].dense is a text (\"10\") and has no"},
        {"layers.5.units=1", "`set` layers.5.units: layers[5].dense is a text (\"10\") and has no \"units\""},
        {"layers.3.x=1", "`set` layers.3.x: layers[3] is a text (\"relu\") and has no \"x\""},
        {"optimizer[0]=1", "`set` optimizer[0]: optimizer is a mapping and has no \"0\""},
        {"optimizer.rate.x=1", "`set` optimizer.rate.x: optimizer.rate is a text (\"1\") and has no \"x\""},
        {"new[0]=1", "`set` new[0]: a list that is not there has no items"},
        {"[0]=1", "`set` [0]: the document is a mapping"},
        {"a=[1", "`set` a: the [ that stands here is not closed: ] is missing: [1"},
        {"a=*x", "`set` a: alias *x"},
        {"a=!!str x", "`set` a: tag"},
        {"a=b: c: d", "`set` a: a second colon in one value"},
        {"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1",
         "`set` a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a: the configuration would "
         "become too "
         "large (33 levels"},
        {"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1",
         "`set` a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a: too many steps"},
    };
    tr_config *root = parse(small);
    char *before = dump(root);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t live = tr_alloc_live();
        assert_int_equal(tr_config_set(root, cases[i].assignment), TR_EINVAL);
        if (strncmp(tr_error_message(), cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("\"%s\" is not \"%s\"", tr_error_message(), cases[i].message);
        assert_int_equal(tr_alloc_live(), live);
    }
    char *after = dump(root);
    assert_string_equal(after, before);
    /* The nearest name, among items that have their own, one of their kind, or none. */
    static const struct {
        const char *assignment, *meant; /* "": none is near */
    } near[] = {
        {"list.dens3.x=1", "; did you mean \"dense3\"?"},
        {"list.fist.x=1", "; did you mean \"first\"?"},
        {"list.rleu1.x=1", "; did you mean \"relu1\"?"},
        {"list.far.x=1", ""},
        {"list.lats.x=1", "; did you mean \"last\"?"},
        {"list.nmae2.x=1", "; did you mean \"name2\"?"},
        {"list." LONGEST_KEY ".x=1", ""},
    };
    tr_config *mixed = parse("list:\n  - {name: first}\n  - [1, 2]\n  - dense: 3\n  - ~\n  - {a: 1, b: 2}\n"
                             "  - relu\n  - dense: {name: last}\n  - dense: 5\n  - {name: [x]}\n"
                             "  - {name: " LONGEST_KEY "s, a: 1}\n  - " LONGEST_KEY "s\n");
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        assert_int_equal(tr_config_set(mixed, near[i].assignment), TR_EINVAL);
        const char *got = strstr(tr_error_message(), "; did you mean");
        const size_t length = strlen(near[i].meant);
        if (length ? !got || strncmp(got, near[i].meant, length) != 0 : got != NULL)
            fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), near[i].meant);
    }
    tr_config_destroy(&mixed);
    tr_config *alone = parse("alone");
    assert_int_equal(tr_config_set(alone, "a.b=1"), TR_EINVAL);
    assert_string_equal(tr_error_message(), "`set` a.b: the document is a text and has no \"a\"");
    tr_config_destroy(&alone);
    tr_free(before);
    tr_free(after);
    tr_config_destroy(&root);
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    static const char *const assignments[] = {"layers.c1.weights.normal={deviation: [1, 2], x: 1}",
                                              "optimizer.schedule.kind=cosine",
                                              "a=1",
                                              "b=2",
                                              "c=3",
                                              "d=4",
                                              "e=5",
                                              "layers[0]=3"};
    for (int64_t at = 0, done = 0; !done; at++) {
        tr_config *root = parse(small);
        tr_status status = TR_OK;
        refuse_begin(at);
        for (size_t i = 0; i < sizeof assignments / sizeof assignments[0] && status == TR_OK; i++)
            status = tr_config_set(root, assignments[i]);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        char *text = dump(root);
        assert_non_null(strstr(text, done ? "layers:\n  - 3\n" : "filters: 8"));
        tr_free(text);
        tr_config_destroy(&root);
        assert_int_equal(tr_alloc_live(), 0);
    }
}

static void memory_may_fail_in_short_forms(void **state)
{
    (void)state;
    static const char *const assignments[] = {"layers[5].bias=1", "way.bucket=2"};
    for (int64_t at = 0, done = 0; !done; at++) {
        tr_config *root = parse(shorter);
        tr_status status = TR_OK;
        refuse_begin(at);
        for (size_t i = 0; i < 2 && status == TR_OK; i++)
            status = tr_config_set_in(root, assignments[i], short_form, NULL);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        char *text = dump(root);
        assert_non_null(strstr(text, done ? "    bucket: 2\n" : "way: fast\n"));
        tr_free(text);
        tr_config_destroy(&root);
        assert_int_equal(tr_alloc_live(), 0);
    }
}

static void damaged_overrides_do_no_harm(void **state)
{
    (void)state;
    static const char seed[] = "layers[0].conv.kernel=[5, {a: b}]";
    char text[sizeof seed + 64];
    int carried_out = 0;
    for (uint32_t round = 0; round < 20000; round++) {
        tr_config *root = parse(small);
        int64_t live = tr_alloc_live();
        text[mutate_bytes(round, seed, strlen(seed), text)] = '\0';
        tr_status status = tr_config_set(root, text);
        if (status != TR_OK) {
            assert_int_equal(status, TR_EINVAL);
            assert_int_equal(tr_alloc_live(), live);
        } else {
            char *out = dump(root);
            tr_config *again = parse(out);
            tr_config_destroy(&again);
            tr_free(out);
            carried_out++;
        }
        tr_config_destroy(&root);
        assert_int_equal(tr_alloc_live(), 0);
    }
    assert_true(carried_out > 100); /* else the damage hides what this test is about */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overrides_change_what_they_name), cmocka_unit_test(short_forms_are_filled_in),
        cmocka_unit_test(memory_may_fail_in_short_forms),  cmocka_unit_test(bad_overrides_change_nothing),
        cmocka_unit_test(memory_may_fail_anywhere),        cmocka_unit_test(damaged_overrides_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
