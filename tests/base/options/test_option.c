/* One table reads model files and command lines, checks what it reads, and explains itself. */
#include "base/options/option.h"

#include "base/alloc.h"
#include "mutate.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <string.h>

enum shape { ROUND, SQUARE = 3, FLAT };

struct thing {
    enum shape shape;
    bool fast, slow;
    int32_t units;
    int64_t steps;
    float rate, share;
    double fine;
    char *label;
    int32_t kernel[2];
    struct tr_int_list sizes;
    struct tr_float_list scales;
    struct tr_string_list names;
    const tr_config *weights;
};

static const struct tr_choice shapes[] = {{"round", ROUND, "without corners"},
                                          {"square", SQUARE, NULL},
                                          {"flat", FLAT, "without height | depth"},
                                          {0}};

#define FIELD(name) offsetof(struct thing, name)
static const struct tr_option table[] = {
    {.key = "units",
     .type = TR_OPTION_INT32,
     .offset = FIELD(units),
     .least = 1,
     .most = 100,
     .help = "number of outputs",
     .letter = 'u'},
    {.key = "shape",
     .type = TR_OPTION_CHOICE,
     .offset = FIELD(shape),
     .fallback = "square",
     .choices = shapes,
     .help = "how it looks"},
    {.key = "fast",
     .type = TR_OPTION_BOOL,
     .offset = FIELD(fast),
     .fallback = "false",
     .help = "go",
     .letter = 'f'},
    {.key = "slow",
     .type = TR_OPTION_BOOL,
     .offset = FIELD(slow),
     .fallback = "true",
     .help = "wait",
     .letter = 's'},
    {.key = "steps", .type = TR_OPTION_INT64, .offset = FIELD(steps), .fallback = "-1", .help = "steps"},
    {.key = "rate",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(rate),
     .fallback = "1/255",
     .least = 0,
     .most = INFINITY,
     .flags = TR_OPTION_ABOVE_LEAST,
     .help = "learning rate"},
    {.key = "drop_share",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(share),
     .fallback = "0.1",
     .least = 0,
     .most = 1,
     .flags = TR_OPTION_BELOW_MOST | TR_OPTION_ENVIRONMENT,
     .help = "share dropped"},
    {.key = "fine", .type = TR_OPTION_DOUBLE, .offset = FIELD(fine), .fallback = "0.1", .help = "a double"},
    {.key = "label",
     .type = TR_OPTION_STRING,
     .offset = FIELD(label),
     .fallback = "",
     .help = "a text",
     .flags = TR_OPTION_ENVIRONMENT},
    {.key = "kernel",
     .type = TR_OPTION_PAIR,
     .offset = FIELD(kernel),
     .fallback = "3",
     .least = 1,
     .most = 9,
     .help = "height and width"},
    {.key = "sizes",
     .type = TR_OPTION_INT_LIST,
     .offset = FIELD(sizes),
     .fallback = "1, 2",
     .least = 0,
     .most = 50,
     .help = "sizes",
     .flags = TR_OPTION_ENVIRONMENT},
    {.key = "scales",
     .type = TR_OPTION_FLOAT_LIST,
     .offset = FIELD(scales),
     .fallback = "",
     .help = "scales"},
    {.key = "names",
     .type = TR_OPTION_STRING_LIST,
     .offset = FIELD(names),
     .fallback = "",
     .help = "names",
     .letter = 'n',
     .value_name = "NAME"},
    {.key = "weights",
     .type = TR_OPTION_NODE,
     .offset = FIELD(weights),
     .fallback = "he_normal",
     .help = "weights"},
};
#define COUNT TR_OPTION_COUNT(table)

static tr_config *parse(const char *text)
{
    tr_config *root;
    if (tr_config_parse(text, strlen(text), "t.yaml", &root) != TR_OK) fail_msg("%s", tr_error_message());
    return root;
}

static struct thing defaults(void)
{
    struct thing thing;
    memset(&thing, 0xA5, sizeof thing);
    assert_int_equal(tr_options_defaults(table, COUNT, &thing), TR_OK);
    return thing;
}

static void release(struct thing *thing)
{
    tr_options_release(table, COUNT, thing);
    assert_null(thing->label);
    assert_int_equal(thing->names.count, 0);
}

static void expect_message(const char *message)
{
    if (strcmp(tr_error_message(), message) != 0)
        fail_msg("\"%s\" is not \"%s\"", tr_error_message(), message);
}

static void fallbacks_are_read_like_input(void **state)
{
    (void)state;
    struct thing thing = defaults();
    assert_int_equal(thing.units, 0);
    assert_int_equal(thing.shape, SQUARE);
    assert_false(thing.fast);
    assert_true(thing.slow);
    assert_int_equal(thing.steps, -1);
    assert_true(thing.rate == (float)(1.0 / 255));
    assert_true(thing.share == 0.1f && thing.fine == 0.1);
    assert_null(thing.label);
    assert_true(thing.kernel[0] == 3 && thing.kernel[1] == 3);
    assert_true(thing.sizes.count == 2 && thing.sizes.item[0] == 1 && thing.sizes.item[1] == 2);
    assert_int_equal(thing.scales.count, 0);
    assert_int_equal(thing.names.count, 0);
    assert_null(thing.weights);
    release(&thing);
}

static void mappings_are_read(void **state)
{
    (void)state;
    tr_config *root =
        parse("units: 0x10\nshape: flat\nfast: yes\nslow: off\nsteps: 9223372036854775807\nrate: 1e-3\n"
              "drop_share: 0\nfine: 1/3\nlabel: \"\"\nkernel: [5, 3]\nsizes: []\nscales: [1, 0.5]\n"
              "names: [a, 'b c']\nweights: {normal: 1}\n");
    struct thing thing = defaults();
    assert_int_equal(tr_options_read(table, COUNT, root, "thing", &thing), TR_OK);
    assert_int_equal(thing.units, 16);
    assert_int_equal(thing.shape, FLAT);
    assert_true(thing.fast);
    assert_false(thing.slow);
    assert_true(thing.steps == INT64_MAX);
    assert_true(thing.rate == 1e-3f && thing.share == 0 && thing.fine == 1.0 / 3);
    assert_string_equal(thing.label, "");
    assert_true(thing.kernel[0] == 5 && thing.kernel[1] == 3);
    assert_int_equal(thing.sizes.count, 0);
    assert_true(thing.scales.count == 2 && thing.scales.item[1] == 0.5f);
    assert_int_equal(thing.names.count, 2);
    assert_string_equal(thing.names.item[1], "b c");
    assert_ptr_equal(thing.weights, tr_config_get(root, "weights"));
    release(&thing);
    tr_config_destroy(&root);
}

static void short_forms_mean_the_first_option(void **state)
{
    (void)state;
    struct thing thing = defaults();
    tr_config *root = parse("10");
    assert_int_equal(tr_options_read(table, COUNT, root, "thing", &thing), TR_OK);
    assert_int_equal(thing.units, 10);
    tr_config_destroy(&root);
    /* Tables that begin with a pair or list take a list. */
    root = parse("[5, 3]");
    assert_int_equal(tr_options_read(table + 9, 1, root, "thing", &thing), TR_OK);
    assert_true(thing.kernel[0] == 5 && thing.kernel[1] == 3);
    assert_int_equal(tr_options_read(table + 10, 1, root, "thing", &thing), TR_OK);
    assert_int_equal(thing.sizes.item[1], 3);
    assert_int_equal(tr_options_read(table, COUNT, root, "thing", &thing), TR_EINVAL);
    expect_message("t.yaml:1:1: expected an integer, found a list (number of outputs)");
    tr_config_destroy(&root);
    /* Nothing at all is fine where nothing is required. */
    root = parse("~");
    assert_int_equal(tr_options_read(table + 1, COUNT - 1, root, "thing", &thing), TR_OK);
    assert_int_equal(tr_options_read(table + 1, COUNT - 1, NULL, "thing", &thing), TR_OK);
    assert_int_equal(tr_options_read(table, COUNT, NULL, "thing", &thing), TR_EINVAL);
    expect_message("thing: \"units\" is missing (number of outputs)");
    assert_int_equal(tr_options_read(table, COUNT, root, "thing", &thing), TR_EINVAL);
    expect_message("t.yaml:1:1: \"units\" is missing (number of outputs)");
    tr_config_destroy(&root);
    root = parse("5");
    assert_int_equal(tr_options_read(table, 0, root, "thing", &thing), TR_EINVAL);
    expect_message("t.yaml:1:1: takes no options");
    tr_config_destroy(&root);
    release(&thing);
}

static void bad_values_name_place_and_range(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"shape: round", "t.yaml:1:1: \"units\" is missing (number of outputs)"},
        {"unit: 3", "t.yaml:1:1: unit: unknown key \"unit\"; did you mean \"units\"?"},
        {"a: 1", "t.yaml:1:1: a: unknown key \"a\"; known are units, shape, fast, slow, steps, rate, "
                 "drop_share, fine, "
                 "label, kernel, sizes, scales, names, weights"},
        {"units: 1\n\n\nzebra:\n  x: 1",
         "t.yaml:4:1: zebra: unknown key \"zebra\"; known are units, "
         "shape, fast, slow, steps, rate, drop_share, fine, label, kernel, sizes, "
         "scales, names, weights"},
        {"units: ten", "t.yaml:1:8: units: \"ten\" is not an integer (number of outputs)"},
        {"units: 10x", "t.yaml:1:8: units: \"10x\" is not an integer (number of outputs)"},
        {"units: 1.5", "t.yaml:1:8: units: \"1.5\" is not an integer (number of outputs)"},
        {"units: 0", "t.yaml:1:8: units: 0 is out of range; allowed: 1 .. 100 (number of outputs)"},
        {"units: 101", "t.yaml:1:8: units: 101 is out of range; allowed: 1 .. 100 (number of outputs)"},
        {"units:", "t.yaml:1:7: units: expected an integer, found nothing (number of outputs)"},
        {"units: {a: 1}", "t.yaml:1:8: units: expected an integer, found a mapping (number of outputs)"},
        {"units: 99999999999999999999",
         "t.yaml:1:8: units: \"99999999999999999999\" is too large (number of outputs)"},
        {"shape: squar",
         "t.yaml:1:8: shape: \"squar\" is none of round, square, flat; did you mean \"square\"?"},
        {"shape: [round]",
         "t.yaml:1:8: shape: expected one of round, square, flat, found a list (how it looks)"},
        {"fast: 1", "t.yaml:1:7: fast: \"1\" is neither true nor false (go)"},
        {"rate: 0", "t.yaml:1:7: rate: 0 is out of range; allowed: > 0 (learning rate)"},
        {"rate: nan", "t.yaml:1:7: rate: \"nan\" is not a number (learning rate)"},
        {"rate: inf", "t.yaml:1:7: rate: \"inf\" is not a number (learning rate)"},
        {"rate: 1e39", "t.yaml:1:7: rate: \"1e39\" is too large (learning rate)"},
        {"rate: 1e-60",
         "t.yaml:1:7: rate: 1e-60 is too small: the least that 32-bit floats hold in full is 1.1755e-38 "
         "(learning rate)"},
        {"drop_share: 1",
         "t.yaml:1:13: drop_share: 1 is out of range; allowed: >= 0 and < 1 (share dropped)"},
        {"drop_share: 0.99999999999",
         "t.yaml:1:13: drop_share: 0.99999999999 is out of range; allowed: >= 0 and < 1 (share dropped)"},
        {"kernel: [1, 2, 3]",
         "t.yaml:1:9: kernel: expected an integer or a list of two, found a list of 3 (height and width)"},
        {"kernel: [1]",
         "t.yaml:1:9: kernel: expected an integer or a list of two, found a list of 1 (height and width)"},
        {"kernel: [1, 10]", "t.yaml:1:13: kernel[1]: 10 is out of range; allowed: 1 .. 9 (height and width)"},
        {"kernel: [[1], 2]",
         "t.yaml:1:10: kernel[0]: expected an integer or a list of two, found a list (height and width)"},
        {"sizes: [1, 51]", "t.yaml:1:12: sizes[1]: 51 is out of range; allowed: 0 .. 50 (sizes)"},
        {"sizes: 1,2", "t.yaml:1:8: sizes: \"1,2\" is not an integer (sizes)"},
        {"sizes: {a: 1}", "t.yaml:1:8: sizes: expected a list of integers, found a mapping (sizes)"},
        {"names: [a, [b]]", "t.yaml:1:12: names[1]: expected a list of texts, found a list (names)"},
        {"label: [a]", "t.yaml:1:8: label: expected a text, found a list (a text)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t live = tr_alloc_live();
        tr_config *root = parse(cases[i].text);
        struct thing thing = defaults();
        assert_int_equal(tr_options_read(table, COUNT, root, "thing", &thing), TR_EINVAL);
        expect_message(cases[i].message);
        release(&thing);
        tr_config_destroy(&root);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void check_bound(const char *beginning, const char *message, bool floats)
{
    struct thing thing = defaults();
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, beginning);
    for (int i = 0; i < TR_OPTION_LIST_MAX; i++) tr_text_add(&text, "1, ");
    tr_text_add(&text, "]");
    tr_config *root = parse(text.bytes);
    assert_int_equal(tr_options_read(table, COUNT, root, "thing", &thing), TR_OK);
    assert_int_equal(floats ? thing.scales.count : thing.sizes.count, TR_OPTION_LIST_MAX);
    tr_config_destroy(&root);
    text.length--;
    tr_text_add(&text, "1]");
    root = parse(text.bytes);
    assert_int_equal(tr_options_read(table, COUNT, root, "thing", &thing), TR_EINVAL);
    expect_message(message);
    tr_config_destroy(&root);
    tr_text_release(&text);
    release(&thing);
}

static void lists_are_bounded(void **state)
{
    (void)state;
    check_bound("units: 1\nsizes: [", "t.yaml:2:201: sizes[64]: more than 64 items", false);
    check_bound("units: 1\nscales: [", "t.yaml:2:202: scales[64]: more than 64 items", true);
}

/* ---- options that belong to some kinds only ---- */

struct kinds {
    enum shape shape;
    int32_t corners, radius;
};

static const struct tr_option kinds_table[] = {
    {.key = "shape",
     .type = TR_OPTION_CHOICE,
     .offset = offsetof(struct kinds, shape),
     .choices = shapes,
     .help = "the kind"},
    {.key = "corners",
     .type = TR_OPTION_INT32,
     .offset = offsetof(struct kinds, corners),
     .fallback = "4",
     .only = 1u << SQUARE | 1u << FLAT,
     .help = "number of corners"},
    {.key = "radius",
     .type = TR_OPTION_INT32,
     .offset = offsetof(struct kinds, radius),
     .only = 1u << ROUND,
     .help = "half the diameter"},
};

static void options_belong_to_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{shape: round, radius: 2}", NULL},
        {"{radius: 2, shape: round}", NULL},
        {"square", NULL},
        {"{shape: flat, corners: 3}", NULL},
        {"round", "t.yaml:1:1: \"radius\" is missing (half the diameter)"},
        {"{shape: square, radius: 2}", "t.yaml:1:17: radius: \"radius\" belongs to shape: round only"},
        {"{radius: 1, corners: 2, shape: round}",
         "t.yaml:1:13: corners: \"corners\" belongs to shape: square, flat only"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kinds kinds;
        tr_config *root = parse(cases[i].text);
        assert_int_equal(tr_options_defaults(kinds_table, 3, &kinds), TR_OK);
        tr_status status = tr_options_read(kinds_table, 3, root, "kinds", &kinds);
        assert_int_equal(status, cases[i].message ? TR_EINVAL : TR_OK);
        if (cases[i].message) expect_message(cases[i].message);
        tr_config_destroy(&root);
    }
}

/* ---- what tables say ---- */

static void values_are_dumped_and_read_back(void **state)
{
    (void)state;
    tr_config *root =
        parse("{units: 7, rate: 1/3, fine: 1/3, label: 'a\"b', names: [x, \"y\\n\"], scales: [0.1, 1e-30], "
              "weights: {normal: [1, a]}}");
    struct thing thing = defaults(), second = defaults();
    char *text, *again;
    assert_int_equal(tr_options_read(table, COUNT, root, "thing", &thing), TR_OK);
    assert_int_equal(tr_options_dump(table, COUNT, &thing, &text), TR_OK);
    assert_string_equal(
        text, "{\"units\": 7, \"shape\": \"square\", \"fast\": false, \"slow\": true, \"steps\": -1, "
              "\"rate\": 0.33333334, \"drop_share\": 0.1, \"fine\": 0.3333333333333333, "
              "\"label\": \"a\\\"b\", \"kernel\": [3, 3], \"sizes\": [1, 2], \"scales\": [0.1, 1e-30], "
              "\"names\": [\"x\", \"y\\n\"], \"weights\": {\"normal\": [1, \"a\"]}}");
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    json_decref(json);
    /* It is YAML too. */
    tr_config *dumped = parse(text);
    assert_int_equal(tr_options_read(table, COUNT, dumped, "thing", &second), TR_OK);
    assert_true(second.rate == thing.rate && second.fine == thing.fine);
    assert_int_equal(tr_options_dump(table, COUNT, &second, &again), TR_OK);
    assert_string_equal(again, text);
    tr_free(text);
    tr_free(again);
    tr_config_destroy(&dumped);
    release(&thing);
    release(&second);
    tr_config_destroy(&root);

    thing = defaults();
    thing.fine = NAN;
    assert_int_equal(tr_options_dump(table, COUNT, &thing, &text), TR_OK);
    assert_non_null(strstr(text, "\"fine\": null, \"label\": null"));
    tr_free(text);
    thing.rate = INFINITY;
    assert_int_equal(tr_options_dump(table, COUNT, &thing, &text), TR_OK);
    assert_non_null(strstr(text, "\"rate\": null, "));
    tr_free(text);
    release(&thing);
}

static struct tr_value get(const struct tr_option *options, int32_t count, const char *key,
                           const void *object)
{
    struct tr_value value = {.kind = TR_VALUE_NONE};
    for (int32_t i = 0; i < count; i++)
        if (strcmp(options[i].key, key) == 0)
            assert_int_equal(tr_options_get(options, i, object, &value), TR_OK);
    return value;
}

static void expect_text(const char *key, const struct thing *thing, const char *text)
{
    struct tr_value value = get(table, COUNT, key, thing);
    assert_int_equal(value.kind, TR_VALUE_TEXT);
    assert_string_equal(value.text, text);
    tr_free(value.text);
}

static void values_are_handed_out_one_by_one(void **state)
{
    (void)state;
    tr_config *root =
        parse("units: 7\nslow: on\nrate: 1/3\nfine: 1/3\nlabel: 'a\"b'\nkernel: 3\nnames: [x, y]\n"
              "weights: {normal: [1, a]}\n");
    struct thing thing = defaults();
    assert_int_equal(tr_options_read(table, COUNT, root, "thing", &thing), TR_OK);
    struct tr_value value = get(table, COUNT, "units", &thing);
    assert_true(value.kind == TR_VALUE_INTEGER && value.integer == 7);
    value = get(table, COUNT, "slow", &thing);
    assert_true(value.kind == TR_VALUE_BOOL && value.integer == 1);
    value = get(table, COUNT, "rate", &thing);
    assert_true(value.kind == TR_VALUE_NUMBER && value.number == (double)(1.0f / 3));
    value = get(table, COUNT, "fine", &thing);
    assert_true(value.kind == TR_VALUE_NUMBER && value.number == 1.0 / 3);
    expect_text("shape", &thing, "square");
    expect_text("label", &thing, "a\"b");
    expect_text("kernel", &thing, "[3, 3]");
    expect_text("names", &thing, "[\"x\", \"y\"]");
    expect_text("weights", &thing, "{\"normal\": [1, \"a\"]}");
    for (int32_t i = 0; i < COUNT; i++)
        for (int64_t at = 0, done = 0; !done; at++) {
            refuse_begin(at);
            const tr_status status = tr_options_get(table, i, &thing, &value);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            if (done && value.kind == TR_VALUE_TEXT) tr_free(value.text);
        }
    release(&thing);
    tr_config_destroy(&root);
    /* What is not given, or belongs to another kind, is nothing. */
    struct kinds kinds = {.shape = ROUND, .corners = 4, .radius = 2};
    assert_int_equal(get(kinds_table, 3, "corners", &kinds).kind, TR_VALUE_NONE);
    assert_int_equal(get(kinds_table, 3, "radius", &kinds).integer, 2);
    thing = defaults();
    assert_int_equal(get(table, COUNT, "label", &thing).kind, TR_VALUE_NONE);
    assert_int_equal(get(table, COUNT, "weights", &thing).kind, TR_VALUE_NONE);
    release(&thing);
}

/* Limits that nobody comes near to are told to those who do. */
static void far_limits_are_not_shown(void **state)
{
    (void)state;
    static const struct {
        double least, most;
        const char *cell;
    } cases[] = {{0, TR_OPTION_WHOLE, "a number, >= 0 |"},
                 {-1e300, 1e300, "a number |"},
                 {0, 1e6, "a number, 0 .. 1000000 |"},
                 {1e-12, 1, "a number, > 0 and <= 1 |"},
                 {-1e9, 5, "a number, <= 5 |"},
                 {1e-3, 1, "a number, 0.001 .. 1 |"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_option far[] = {{.key = "far",
                                         .type = TR_OPTION_DOUBLE,
                                         .offset = FIELD(fine),
                                         .fallback = "1",
                                         .least = cases[i].least,
                                         .most = cases[i].most,
                                         .help = "far"}};
        char *text;
        assert_int_equal(tr_options_markdown("Far", far, 1, &text), TR_OK);
        if (!strstr(text, cases[i].cell)) fail_msg("%s lacks %s", text, cases[i].cell);
        tr_free(text);
    }
    const struct tr_option far[] = {{.key = "far",
                                     .type = TR_OPTION_DOUBLE,
                                     .offset = FIELD(fine),
                                     .fallback = "1",
                                     .least = 0,
                                     .most = 1e300,
                                     .help = "far"}};
    struct thing thing = {0};
    assert_int_equal(tr_options_arguments(far, 1, 1, (const char *const[]){"--far=-1"}, &thing), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "allowed: 0 .. 1e+300"));
}

static void manuals_are_tables(void **state)
{
    (void)state;
    char *text;
    assert_int_equal(tr_options_markdown("Things", table, 3, &text), TR_OK);
    assert_string_equal(
        text, "### Things\n\n"
              "| key | value | default | meaning |\n"
              "|---|---|---|---|\n"
              "| `units` | an integer, 1 .. 100 | required | number of outputs |\n"
              "| `shape` | `round`, `square`, `flat` | `square` | how it looks. `round`: without corners; "
              "`flat`: without height \\| depth |\n"
              "| `fast` | true or false | `false` | go |\n");
    tr_free(text);
    assert_int_equal(tr_options_markdown("Kinds", kinds_table, 3, &text), TR_OK);
    assert_non_null(strstr(text, "| `corners` | an integer | `4` | `square`, `flat`: number of corners |\n"));
    tr_free(text);
    /* Long explanations of choices have a table below. */
    static const struct tr_choice wordy[] = {
        {"a", 0,
         "a meaning that takes many words, more than a cell of a table can hold and still be read at a "
         "glance"},
        {"b", 1, NULL},
        {"c", 2,
         "another one that takes as many, so that both | together are longer than two hundred characters, as "
         "they are"},
        {NULL, 0, NULL},
    };
    static const struct tr_option which[] = {
        {.key = "which", .type = TR_OPTION_CHOICE, .fallback = "a", .choices = wordy, .help = "which one"},
        {.key = "fast", .type = TR_OPTION_BOOL, .fallback = "false", .help = "go"}};
    assert_int_equal(tr_options_markdown("Words", which, 2, &text), TR_OK);
    assert_string_equal(
        text,
        "### Words\n\n"
        "| key | value | default | meaning |\n"
        "|---|---|---|---|\n"
        "| `which` | `a`, `b`, `c` | `a` | which one; see below |\n"
        "| `fast` | true or false | `false` | go |\n"
        "\n| `which` | meaning |\n"
        "|---|---|\n"
        "| `a` | a meaning that takes many words, more than a cell of a table can hold and still be read "
        "at a glance |\n"
        "| `b` |  |\n"
        "| `c` | another one that takes as many, so that both \\| together are longer than two hundred "
        "characters, as they are |\n");
    tr_free(text);
    assert_int_equal(tr_options_markdown("None", NULL, 0, &text), TR_OK);
    assert_string_equal(text, "### None\n\nNo options.\n");
    tr_free(text);
}

/* ---- memory and damage ---- */

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    tr_config *root =
        parse("{units: 7, label: a, names: [x, y, z], scales: [0.1, 1e-30], weights: {normal: [1, a]}}");
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        struct thing thing;
        char *dump = NULL, *manual = NULL, *help = NULL;
        refuse_begin(at);
        tr_status status = tr_options_defaults(table, COUNT, &thing);
        if (status == TR_OK) status = tr_options_read(table, COUNT, root, "thing", &thing);
        if (status == TR_OK) status = tr_options_dump(table, COUNT, &thing, &dump);
        if (status == TR_OK) status = tr_options_markdown("Things", table, COUNT, &manual);
        if (status == TR_OK) status = tr_options_help("thing", "About.", table, COUNT, &help);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_options_release(table, COUNT, &thing);
        tr_free(dump);
        tr_free(manual);
        tr_free(help);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_config_destroy(&root);
    /* Refusals that build their message from parts. */
    static const char *const bad[] = {"{a: 1}", "{shape: x}", "{units: [1]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        root = parse(bad[i]);
        for (int64_t at = 0, done = 0; !done; at++) {
            struct thing thing = defaults();
            refuse_begin(at);
            tr_status status = tr_options_read(table, COUNT, root, "thing", &thing);
            done = refuse_end();
            assert_int_equal(status, done ? TR_EINVAL : TR_ENOMEM);
            release(&thing);
        }
        tr_config_destroy(&root);
    }
    root = parse("{shape: square, radius: 2}");
    for (int64_t at = 0, done = 0; !done; at++) {
        struct kinds kinds;
        assert_int_equal(tr_options_defaults(kinds_table, 3, &kinds), TR_OK);
        refuse_begin(at);
        tr_status status = tr_options_read(kinds_table, 3, root, "kinds", &kinds);
        done = refuse_end();
        assert_int_equal(status, done ? TR_EINVAL : TR_ENOMEM);
    }
    tr_config_destroy(&root);
}

static void damaged_files_do_no_harm(void **state)
{
    (void)state;
    static const char seed[] =
        "{units: 16, shape: flat, fast: yes, rate: 1e-3, fine: 1/3, label: \"x\", kernel: [5, 3], "
        "sizes: [1, 2], scales: 0.5, names: [a, 'b c'], weights: {normal: 1}}";
    char text[sizeof seed + 64];
    int64_t live = tr_alloc_live();
    int read = 0;
    for (uint32_t round = 0; round < 20000; round++) {
        size_t size = mutate_bytes(round, seed, strlen(seed), text);
        tr_config *root;
        struct thing thing = defaults();
        if (tr_config_parse(text, size, "t.yaml", &root) == TR_OK) {
            tr_status status = tr_options_read(table, COUNT, root, "thing", &thing);
            assert_true(status == TR_OK || status == TR_EINVAL);
            if (status == TR_OK) {
                read++;
                assert_true(thing.units >= 1 && thing.units <= 100 && thing.rate > 0 && isfinite(thing.rate));
                assert_true(thing.kernel[0] >= 1 && thing.kernel[1] <= 9);
            }
            tr_config_destroy(&root);
        }
        release(&thing);
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_true(read > 100); /* else the damage hides what this test is about */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fallbacks_are_read_like_input),
        cmocka_unit_test(mappings_are_read),
        cmocka_unit_test(short_forms_mean_the_first_option),
        cmocka_unit_test(bad_values_name_place_and_range),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(options_belong_to_kinds),
        cmocka_unit_test(values_are_dumped_and_read_back),
        cmocka_unit_test(values_are_handed_out_one_by_one),
        cmocka_unit_test(far_limits_are_not_shown),
        cmocka_unit_test(manuals_are_tables),
        cmocka_unit_test(memory_may_fail_anywhere),
        cmocka_unit_test(damaged_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
