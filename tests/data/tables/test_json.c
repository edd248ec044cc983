/* Lines that are JSON objects: the rows of the table that they say, and what is refused. */
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* The examples of two descriptions are the same, labels and names of classes too. */
static void expect_same(const char *json, const char *csv)
{
    tr_source *a = must_open(json), *b = must_open(csv);
    const struct tr_source_info *of_a = tr_source_info(a), *of_b = tr_source_info(b);
    assert_int_equal(of_a->count, of_b->count);
    assert_int_equal(of_a->floats, of_b->floats);
    assert_int_equal(of_a->labels, of_b->labels);
    assert_int_equal(of_a->classes, of_b->classes);
    for (int32_t c = 0; of_b->class_names && c < of_b->classes; c++)
        assert_string_equal(of_a->class_names[c], of_b->class_names[c]);
    for (int64_t i = 0; i < of_a->count; i++) {
        float row[2][16], value[2][4];
        int64_t length;
        assert_int_equal(tr_source_read(a, i, row[0], 16, &length, value[0]), TR_OK);
        assert_int_equal(tr_source_read(b, i, row[1], 16, &length, value[1]), TR_OK);
        assert_memory_equal(row[0], row[1], (size_t)length * sizeof(float));
        assert_memory_equal(value[0], value[1], sizeof(float));
    }
    char digest[2][65];
    assert_int_equal(tr_source_digest(a, digest[0]), TR_OK);
    assert_int_equal(tr_source_digest(b, digest[1]), TR_OK);
    assert_string_not_equal(digest[0], digest[1]); /* another format */
    tr_source_close(&a);
    tr_source_close(&b);
}

static void test_rows(void **unused)
{
    (void)unused;
    write_text("a.jsonl", "{\"x\": 1.5, \"big\": true, \"where\": \"Rome, \\u00e9\", \"kind\": \"cat\"}\n"
                          "\n"
                          "{\"kind\": \"dog\", \"where\": null, \"big\": false, \"x\": -2e3}\r\n"
                          "{\"where\": \"Paris\", \"kind\": \"cat\", \"big\": true}");
    write_text("a.csv", "x,big,where,kind\n1.5,1,\"Rome, \xc3\xa9\",cat\n-2000,0,,dog\n,1,Paris,cat\n");
    expect_same("{json: {path: a.jsonl, categories: where, missing: mean, standardize: true}}",
                "{csv: {path: a.csv, categories: where, missing: mean, standardize: true}}");
    expect_same("{json: {path: a.jsonl, skip_columns: [where, kind], label: value, label_columns: big, "
                "missing: constant}}",
                "{csv: {path: a.csv, skip_columns: [where, kind], label: value, label_columns: big, missing: "
                "constant}}");
    expect_same("{json: {path: a.jsonl, label_columns: 1, categories: [2, 3], missing: skip}}",
                "{csv: {path: a.csv, label_columns: 1, categories: [2, 3], missing: skip}}");
}

/* A member that the first line lacks a value of is a column, and what is left out may have line feeds. */
static void test_first_lines_may_have_gaps(void **unused)
{
    (void)unused;
    write_text("gap.jsonl",
               "{\"x\": null, \"note\": \"a\\nb\", \"y\": 0}\n{\"x\": 3, \"note\": \"\", \"y\": 1}\n");
    write_text("gap.csv", "x,y\n,0\n3,1\n");
    expect_same("{json: {path: gap.jsonl, skip_columns: note, missing: constant, missing_value: 7}}",
                "{csv: {path: gap.csv, missing: constant, missing_value: 7}}");
}

/* Members within members, and elements of arrays. */
static void test_nested(void **unused)
{
    (void)unused;
    write_text("deep", "{\"at\": {\"x\": 1, \"y\": [2, 3]}, \"label\": 0}\n{\"label\": 1, \"at\": {\"y\": "
                       "[5, 6], \"x\": 4}}\n");
    write_text("flat", "at.x,at.y.0,at.y.1,label\n1,2,3,0\n4,5,6,1\n");
    expect_same("{json: {path: deep}}", "{csv: {path: flat}}");
    expect_same("{json: {path: deep, label_columns: label, skip_columns: at.y.0}}",
                "{csv: {path: flat, label_columns: label, skip_columns: at.y.0}}");
}

static void test_what_is_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *options, *message;
    } cases[] = {
        {"{\"x\": 1, \"y\": 0}\n{\"x\": \"red\", \"y\": 1}\n", "",
         "bad:2:1: column \"x\": \"red\" is not a number; write numbers, "
         "name the column in categories"},
        {"{\"x\": 1, \"y\": 0}\n{\"x\": 1, \"z\": 1}\n", "",
         "bad:2:1: member \"z\" is not in the first line"},
        {"{\"x\": 1, \"y\": 0}\n{\"y\": 1}\n", "", "bad:2:1: column \"x\": \"\" is empty; set missing"},
        {"{\"x\": 1, \"y\": 0}\n{\"x\": 1, \"y\"\n", "", "bad:2:1: is no JSON object: "},
        {"{\"x\": 1, \"y\": 0}\n[1, 2]\n", "", "bad:2:1: is no JSON object: "},
        {"{}\n", "", "bad:1:1: has no members"},
        {"x,y\n1,2\n", "", "bad:1:1: is no JSON object: "},
        {"{\"a.b\": 1, \"a\": {\"b\": 2}, \"y\": 0}\n", "", "bad:1:1: two values are called \"a.b\""},
        {"{\"x\": 1, \"y\": 0}\n", ", label_columns: z", "label column \"z\""},
        {"{\"x\": \"a\\nb\", \"y\": 0}\n", ", categories: x", "bad:1:1: \"x\" has a line feed"},
        {"{\"x\": \"a\\nb\", \"z\": 1, \"y\": 0}\n", ", categories: x, skip_columns: z",
         "bad:1:1: \"x\" has a line feed"},
        {"{\"a.b\": 1, \"y\": 0}\n{\"a.b\": 1, \"a\": {\"b\": 2}, \"y\": 0}\n", "",
         "bad:2:1: two values are called \"a.b\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char description[128];
        tr_source *source;
        write_text("bad", cases[i].text);
        snprintf(description, sizeof description, "{json: {path: bad%s}}", cases[i].options);
        tr_status status = tr_source_open(description, test_directory(), NULL, &source);
        assert_true(status == TR_EFORMAT || status == TR_EINVAL);
        if (!strstr(tr_error_message(), cases[i].message)) fail_msg("%s", tr_error_message());
    }
    expect_refusal("{json: {path: bad, separator: tab}}", TR_EINVAL, "separator");
    write_text("some", "{\"x\": 1, \"y\": 0}\n{\"x\": 1\n{\"x\": 2, \"y\": 1}\n");
    tr_source *source = must_open("{json: {path: some, on_bad_record: skip, max_bad: 0.5}}");
    assert_int_equal(tr_source_info(source)->count, 2);
    assert_int_equal(tr_source_info(source)->skipped, 1);
    tr_source_close(&source);
}

/* The first line has so many members, numbers all. */
static void write_members(int count)
{
    static char text[(1 << 16) * 16];
    size_t at = 0;
    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%c\"m%d\":%d", i ? ',' : '{', i, i % 2);
    at += (size_t)snprintf(text + at, sizeof text - at, "}\n");
    write_file("wide", text, at);
}

static void test_columns_have_a_limit(void **unused)
{
    (void)unused;
    write_members(1 << 16);
    tr_source *source = must_open("{json: {path: wide}}");
    assert_int_equal(tr_source_info(source)->floats, (1 << 16) - 1);
    tr_source_close(&source);
    write_members((1 << 16) + 1);
    expect_refusal("{json: {path: wide}}", TR_EFORMAT, "wide:1:1: more than 65536 columns");
}

static void test_allocation_failures(void **unused)
{
    (void)unused;
    write_text("rows", "{\"x\": 1, \"w\": \"a\", \"y\": 0}\n{\"x\": 2, \"w\": \"b\", \"y\": 1}\n");
    expect_out_of_memory("{json: {path: rows, categories: w, standardize: true}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_first_lines_may_have_gaps),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_columns_have_a_limit),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
