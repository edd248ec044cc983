/* Model files become trees whose every node knows its place; bad input of every kind is refused with that
 * place; overrides change what they name; the canonical form is stable. */
#include "base/options/config.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "mutate.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char model[] = "# a comment\n"
                            "name: \"mnist cnn\"   # another\n"
                            "batch: 50\n"
                            "empty:\n"
                            "layers:\n"
                            "  - conv: {filters: 32, kernel: [5, 3], padding: same, name: conv1}\n"
                            "  - relu\n"
                            "  - flatten:\n"
                            "  - dense: 10\n"
                            "  - dense: &head\n"
                            "      units: 1024\n"
                            "      weights: {truncated_normal: 0.1}\n"
                            "  - dense: *head\n"
                            "optimizer:\n"
                            "  rule: adam\n"
                            "  rate: 1e-4\n"
                            "text: 'it''s: #1'\n"
                            "folded: >-\n"
                            "  one\n"
                            "  two\n";

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

/* The node at the end of a chain of keys and, for numbers, items. */
static const tr_config *walk(const tr_config *node, const char *const *step)
{
    for (; *step; step++) {
        bool item = tr_config_kind(node) == TR_CONFIG_SEQUENCE;
        node = item ? tr_config_at(node, atoi(*step)) : tr_config_get(node, *step);
        assert_non_null(node);
    }
    return node;
}

#define WALK(...) walk(root, (const char *const[]){__VA_ARGS__, NULL})

static void trees_know_their_places(void **state)
{
    (void)state;
    char text[TR_CONFIG_PATH_SIZE];
    tr_config *root = parse(model);
    assert_int_equal(tr_config_kind(root), TR_CONFIG_MAPPING);
    assert_int_equal(tr_config_count(root), 7);
    assert_string_equal(tr_config_key(root, 3), "layers");
    assert_int_equal(tr_config_count(WALK("layers")), 6);
    assert_string_equal(tr_config_text(WALK("layers", "1")), "relu");
    assert_int_equal(tr_config_kind(WALK("layers", "2", "flatten")), TR_CONFIG_NULL);
    assert_null(tr_config_text(WALK("empty")));
    assert_string_equal(tr_config_text(WALK("text")), "it's: #1");
    assert_string_equal(tr_config_text(WALK("folded")), "one two");
    assert_null(tr_config_get(root, "nothing"));
    assert_null(tr_config_get(NULL, "nothing"));
    assert_null(tr_config_get(WALK("batch"), "nothing"));

    const tr_config *item = WALK("layers", "0", "conv", "kernel", "1");
    assert_string_equal(tr_config_text(item), "3");
    assert_string_equal(tr_config_path(item, text, sizeof text), "layers[0].conv.kernel[1]");
    assert_string_equal(tr_config_location(item, text, sizeof text), "m.yaml:6:37: layers[0].conv.kernel[1]");
    assert_string_equal(tr_config_location(root, text, sizeof text), "m.yaml:2:1");
    assert_string_equal(tr_config_path(root, text, sizeof text), "");
    assert_string_equal(tr_config_path(item, text, 12), "layers[0].c");
    assert_string_equal(tr_config_location(item, text, 5), "m.ya");
    tr_config_fail(TR_EINVAL, item, "is %d", 3);
    assert_string_equal(tr_error_message(), "m.yaml:6:37: layers[0].conv.kernel[1]: is 3");
    tr_config_fail_key(TR_EINVAL, WALK("optimizer"), "is wrong");
    assert_string_equal(tr_error_message(), "m.yaml:14:1: optimizer: is wrong");
    /* A copy of an anchored value stands where the original does, but has its own path. */
    assert_string_equal(tr_config_location(WALK("layers", "5", "dense", "units"), text, sizeof text),
                        "m.yaml:11:14: layers[5].dense.units");
    tr_config_destroy(&root);
    assert_null(root);
    tr_config_destroy(&root);
    tr_config_destroy(NULL);
}

static void only_unquoted_words_are_nothing(void **state)
{
    (void)state;
    tr_config *root = parse("[~, null, Null, NULL, \"\", '~', \"null\", nil]");
    for (int32_t i = 0; i < 8; i++) {
        const tr_config *item = tr_config_at(root, i);
        assert_int_equal(tr_config_kind(item), i < 4 ? TR_CONFIG_NULL : TR_CONFIG_SCALAR);
        if (i >= 4) assert_non_null(tr_config_text(item));
    }
    tr_config_destroy(&root);
}

#define N100                                                                                                 \
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"

static void bad_documents_name_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "m.yaml: is empty"},
        {"# only a comment\n", "m.yaml: is empty"},
        {"a: 1\nb: 2\na: 3\n", "m.yaml:3:1: key \"a\" stands here twice; the first is in line 1"},
        {"a: 1\n---\nb: 2\n", "m.yaml:2:1: a second document begins"},
        {"a: !!str 1\n", "m.yaml:1:4: tag tag:yaml.org,2002:str: tags are not supported"},
        {"a: !mine [1]\n", "m.yaml:1:4: tag !mine"},
        {"a: !mine {b: 1}\n", "m.yaml:1:4: tag !mine"},
        {"a: \"x\\0y\"\n", "m.yaml:1:4: text contains a NUL"},
        {"\"a\\0b\": 1\n", "m.yaml:1:1: text contains a NUL"},
        {"a: *b\n", "m.yaml:1:4: alias *b: no finished value is called &b"},
        {"a: &b [1, *b]\n", "m.yaml:1:11: alias *b: no finished value"},
        {"a: &b {c: *b}\n", "m.yaml:1:11: alias *b: no finished value"},
        {"a: &b {c: 1}\nd: {<<: *b}\n", "m.yaml:2:5: merge keys"},
        {"[1]: 2\n", "m.yaml:1:1: a key must be a text, not a list"},
        {"{a: 1}: 2\n", "m.yaml:1:1: a key must be a text, not a mapping"},
        {"a: &x b\n*x : 2\n", "m.yaml:2:1: a key must be a text, not an alias"},
        {"&x a: 2\n", "m.yaml:1:1: a key cannot have an anchor"},
        {"? \n: 2\n", "m.yaml:1:2: empty key"},
        {"\"\": 2\n", "m.yaml:1:1: empty key"},
        {"a: [1, 2\nb: 3\n",
         "m.yaml:1:4: the [ that stands here is not closed: ] is missing, or a comma before line 2; the line "
         "is: a: [1, 2"},
        {"a: 1\n  b: 2\n", "m.yaml:2:4: no key can stand here, since the value in the line before goes on"},
        {"a: b: c\n", "m.yaml:1:5: a second colon in one value"},
        {"\ta: 1\n",
         "m.yaml:1:1: a tab stands here; lines are indented by blanks alone; the line is: \\ta: 1"},
        {"a: \"open\n", "m.yaml:1:4: the quote \" that begins here has no end; the line is: a: \"open"},
        {"a: \xFF\n", "m.yaml: byte 3: invalid leading UTF-8 octet; the file must be UTF-8 text"},
        {"a: \x01\n", "m.yaml: byte 3: control characters are not allowed"},
        {"a: @x\n", "m.yaml:1:4: no value begins with @; put quotes around it; the line is: a: @x"},
        /* The line is quoted by whole characters, of up to four bytes, as far as there is room. */
        {"\xF0\x9F\x9A\xA3\xC3\xA9\tb: @x \t\n", "m.yaml:1:7: no value begins with @; put quotes around it; "
                                                 "the line is: \xF0\x9F\x9A\xA3\xC3\xA9\\tb: @x"},
        {"a: @" N100 "01234567\n", "m.yaml:1:4: no value begins with @; put quotes around it; the line is: "
                                   "a: @" N100 "01234567"},
        {"a: @" N100 "0123456789\n", "m.yaml:1:4: no value begins with @; put quotes around it; the line is: "
                                     "a: @" N100 "01234567..."},
        {"%YAML 3.0\n---\na: 1\n", "m.yaml:1:1: cannot be read as YAML: found incompatible YAML document"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t live = tr_alloc_live();
        tr_config *root = (void *)1;
        tr_status status = tr_config_parse(cases[i].text, strlen(cases[i].text), "m.yaml", &root);
        assert_int_equal(status, TR_EFORMAT);
        assert_null(root);
        const size_t length = strlen(cases[i].message);
        const bool whole = strstr(cases[i].message, "the line is: ") != NULL;
        if (strncmp(tr_error_message(), cases[i].message, length + whole) != 0)
            fail_msg("case %zu: \"%s\" is not \"%s\"", i, tr_error_message(), cases[i].message);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void expect_refusal(const char *text, size_t length, const char *words)
{
    tr_config *root;
    assert_int_equal(tr_config_parse(text, length, "m.yaml", &root), TR_EFORMAT);
    if (!strstr(tr_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tr_error_message(), words);
}

static void limits_hold(void **state)
{
    (void)state;
    struct tr_text text = TR_TEXT_INIT;
    /* Depth: 32 levels are read, 33 are not. */
    tr_text_pad(&text, '[', TR_CONFIG_DEPTH_MAX);
    tr_text_pad(&text, ']', TR_CONFIG_DEPTH_MAX);
    tr_config *root = parse(text.bytes);
    tr_config_destroy(&root);
    tr_text_release(&text);
    tr_text_pad(&text, '[', TR_CONFIG_DEPTH_MAX);
    tr_text_add(&text, "1");
    tr_text_pad(&text, ']', TR_CONFIG_DEPTH_MAX);
    expect_refusal(text.bytes, text.length, "nested deeper than 32 levels");
    tr_text_release(&text);
    tr_text_pad(&text, '[', TR_CONFIG_BYTES_MAX);
    expect_refusal(text.bytes, text.length, "nested deeper than 32 levels");
    tr_text_add(&text, "[");
    expect_refusal(text.bytes, text.length, "1048577 bytes; a model file has at most 1048576");
    tr_text_release(&text);
    /* Width and number of nodes. */
    for (int i = 0; i <= TR_CONFIG_WIDTH_MAX; i++) tr_text_addf(&text, "k%d: 1\n", i);
    expect_refusal(text.bytes, text.length, "mapping with more than 1024 keys");
    tr_text_release(&text);
    tr_text_add(&text, "[");
    for (int i = 0; i < TR_CONFIG_NODES_MAX; i++) tr_text_add(&text, "1,");
    tr_text_add(&text, "]");
    expect_refusal(text.bytes, text.length, "more than 20000 values");
    tr_text_release(&text);
    tr_text_pad(&text, 'k', TR_CONFIG_KEY_MAX + 1);
    tr_text_add(&text, ": 1\n");
    expect_refusal(text.bytes, text.length, "key of 129 bytes");
    tr_text_release(&text);
    /* Aliases that multiply: nodes, text and depth. */
    tr_text_add(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 12; i++) {
        tr_text_addf(&text, "a%d: &a%d [", i, i);
        for (int j = 0; j < 10; j++) tr_text_addf(&text, "%s*a%d", j ? ", " : "", i - 1);
        tr_text_add(&text, "]\n");
    }
    expect_refusal(text.bytes, text.length, "more than 20000 values");
    tr_text_release(&text);
    tr_text_add(&text, "a: &a \"");
    tr_text_pad(&text, 'x', 500000);
    tr_text_add(&text, "\"\nb: [");
    for (int i = 0; i < 20; i++) tr_text_add(&text, "*a, ");
    tr_text_add(&text, "]\n");
    expect_refusal(text.bytes, text.length, "more than 4194304 bytes of text");
    tr_text_release(&text);
    tr_text_add(&text, "a0: &a0 [x]\n");
    for (int i = 1; i < 40; i++) tr_text_addf(&text, "a%d: &a%d [*a%d]\n", i, i, i - 1);
    expect_refusal(text.bytes, text.length, "nested deeper than 32 levels");
    tr_text_release(&text);
}

static void the_canonical_form_is_stable(void **state)
{
    (void)state;
    static const char expected[] = "name: \"mnist cnn\"\n"
                                   "batch: 50\n"
                                   "empty: ~\n"
                                   "layers:\n"
                                   "  - conv:\n"
                                   "      filters: 32\n"
                                   "      kernel: [5, 3]\n"
                                   "      padding: same\n"
                                   "      name: conv1\n"
                                   "  - relu\n"
                                   "  - flatten: ~\n"
                                   "  - dense: 10\n"
                                   "  - dense:\n"
                                   "      units: 1024\n"
                                   "      weights:\n"
                                   "        truncated_normal: 0.1\n"
                                   "  - dense:\n"
                                   "      units: 1024\n"
                                   "      weights:\n"
                                   "        truncated_normal: 0.1\n"
                                   "optimizer:\n"
                                   "  rule: adam\n"
                                   "  rate: 1e-4\n"
                                   "text: \"it's: #1\"\n"
                                   "folded: \"one two\"\n";
    static const struct {
        const char *text, *canonical;
    } cases[] = {
        {model, expected},
        {expected, expected},
        {"word", "word\n"},
        {"~", "~\n"},
        {"[]", "[]\n"},
        {"{}", "{}\n"},
        {"{a: '5', b: [], c: {}, d: \"\"}", "a: 5\nb: []\nc: {}\nd: \"\"\n"},
        {"- - - 1\n  - [2, [3]]\n- ~\n", "- - [1]\n  - - 2\n    - [3]\n- ~\n"},
        {"['~', 'null', '', '-', '--', '-1', '...', '..', 'a b', 'a:', '#', '*x', 'yes']",
         "[\"~\", \"null\", \"\", \"-\", \"--\", -1, \"...\", .., \"a b\", \"a:\", \"#\", \"*x\", yes]\n"},
        {"a: \"l1\\nl2\\t\\u0085\\u2028\\uFEFF\\U0001F6A3\"",
         "a: \"l1\\nl2\\t\\u0085\\u2028\\ufeff\xF0\x9F\x9A\xA3\"\n"},
        {"\"a b\": {\"~\": 1, \"-\": {x: 1}}", "\"a b\":\n  \"~\": 1\n  \"-\":\n    x: 1\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_config *root = parse(cases[i].text);
        char *text = dump(root);
        assert_string_equal(text, cases[i].canonical);
        tr_config *again = parse(text);
        char *second = dump(again);
        assert_string_equal(second, text);
        tr_free(second);
        tr_free(text);
        tr_config_destroy(&again);
        tr_config_destroy(&root);
    }
}

static void trees_become_json(void **state)
{
    (void)state;
    tr_config *root =
        parse("{a: [1, -2.5e3, 007, 1., .5, 0x10, true, yes, ~, 'x\"y'], b: {c: word}, d: {}, e: []}");
    struct tr_text text = TR_TEXT_INIT;
    tr_config_json(root, &text);
    assert_string_equal(text.bytes,
                        "{\"a\": [1, -2.5e3, \"007\", \"1.\", \".5\", \"0x10\", true, \"yes\", null, "
                        "\"x\\\"y\"], \"b\": {\"c\": \"word\"}, \"d\": {}, \"e\": []}");
    json_t *json = json_loads(text.bytes, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    json_decref(json);
    tr_text_release(&text);
    tr_config_destroy(&root);
}

/* ---- files, memory, damage ---- */

static void files_are_read(void **state)
{
    (void)state;
    char directory[SCRATCH_PATH], path[SCRATCH_PATH];
    tr_config *root;
    scratch_make(directory);
    scratch_join(path, directory, "m.yaml");
    assert_int_equal(tr_config_read(path, &root), TR_ENOTFOUND);
    assert_null(root);
    assert_int_equal(tr_config_read(directory, &root), TR_EFORMAT);
    assert_int_equal(tr_file_write_atomic(NULL, path, model, strlen(model)), TR_OK);
    assert_int_equal(tr_config_read(path, &root), TR_OK);
    assert_string_equal(tr_config_text(WALK("batch")), "50");
    tr_config_destroy(&root);
    assert_int_equal(tr_file_write_atomic(NULL, path, "a: [", 4), TR_OK);
    assert_int_equal(tr_config_read(path, &root), TR_EFORMAT);
    assert_memory_equal(tr_error_message(), path, strlen(path));
    scratch_remove(directory);
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        tr_config *root = NULL;
        char *text = NULL;
        refuse_begin(at);
        tr_status status = tr_config_parse(model, strlen(model), "m.yaml", &root);
        if (status == TR_OK) status = tr_config_dump(root, &text);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_free(text);
        tr_config_destroy(&root);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* Whatever parses survives its canonical form and is JSON; whatever does not says so. */
static void check_any(const char *text, size_t size)
{
    tr_config *root, *again;
    tr_status status = tr_config_parse(text, size, "m.yaml", &root);
    if (status != TR_OK) {
        assert_int_equal(status, TR_EFORMAT);
        assert_null(root);
        return;
    }
    char *first = dump(root);
    tr_status reread = tr_config_parse(first, strlen(first), "canonical", &again);
    if (reread != TR_OK) fail_msg("%s in\n%s", tr_error_message(), first);
    char *second = dump(again);
    assert_string_equal(second, first);
    struct tr_text json = TR_TEXT_INIT;
    tr_config_json(root, &json);
    json_error_t error;
    json_t *value =
        json_loads(json.bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &error);
    /* Numbers beyond a double are JSON, though not for every reader. */
    if (!value && json_error_code(&error) != json_error_numeric_overflow)
        fail_msg("%s in %s", error.text, json.bytes);
    json_decref(value);
    tr_text_release(&json);
    tr_free(first);
    tr_free(second);
    tr_config_destroy(&again);
    tr_config_destroy(&root);
}

static void damaged_files_do_no_harm(void **state)
{
    (void)state;
    static const char *const tokens[] = {"\n",
                                         ": ",
                                         "- ",
                                         "&a ",
                                         "*a",
                                         "&head ",
                                         "*head",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         "|\n",
                                         ">\n",
                                         "\"",
                                         "'",
                                         "\\",
                                         "#",
                                         "? ",
                                         "<<",
                                         "!!x ",
                                         "---\n",
                                         "...\n",
                                         "\t",
                                         "  ",
                                         "\xEF\xBB\xBF",
                                         "\xC2\x85",
                                         "\xE2\x80\xA8",
                                         "\xF0\x9F\x9A\xA3",
                                         "%YAML 1.1\n",
                                         "~",
                                         "\"\\x00\"",
                                         "\"\\uFFFE\"",
                                         "\r"};
    static char text[sizeof model + 256];
    int64_t live = tr_alloc_live();
    for (uint32_t round = 0; round < 30000; round++) {
        size_t size = mutate_bytes(round, model, strlen(model), text);
        for (uint32_t i = mutate_number(round, 1000) % 4; i > 0; i--) {
            const char *token = tokens[mutate_number(round, 1000 + i) % (sizeof tokens / sizeof tokens[0])];
            size_t at = mutate_number(round, 2000 + i) % (size + 1), length = strlen(token);
            memmove(text + at + length, text + at, size - at);
            memcpy(text + at, token, length);
            size += length;
        }
        check_any(text, size);
        assert_int_equal(tr_alloc_live(), live);
    }
    /* Cut at every length. */
    for (size_t size = 0; size < strlen(model); size++) check_any(model, size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_know_their_places),
        cmocka_unit_test(only_unquoted_words_are_nothing),
        cmocka_unit_test(bad_documents_name_the_place),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(the_canonical_form_is_stable),
        cmocka_unit_test(trees_become_json),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(memory_may_fail_anywhere),
        cmocka_unit_test(damaged_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
