/* Tables and texts that cannot be read: what is wrong with them is named, and as soon as it can be known. */
#include "data/files/data_set.h"
#include "data/files/lines.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ASCII in UTF-16. */
static void write_wide(const char *name, const char *text, bool little, bool marked)
{
    char wide[256];
    size_t size = 0;
    if (marked) {
        memcpy(wide, little ? "\xff\xfe" : "\xfe\xff", 2);
        size = 2;
    }
    for (; *text; text++) {
        wide[size++] = little ? *text : 0;
        wide[size++] = little ? 0 : *text;
    }
    write_file(name, wide, size);
}

static void utf_16_is_named(void **state)
{
    (void)state;
    static const char *const readers[] = {
        "{csv: {path: wide}}",
        "{text: {path: wide}}",
        "{corpus: {path: wide, unit: characters, window: 4}}",
        "{corpus: {path: wide, unit: words, window: 2}}",
        "{folder: {path: ., table: wide, column: a}}",
    };
    for (int kind = 0; kind < 4; kind++) {
        write_wide("wide", "a,b,label\n1,2,0\n3,4,1\n", kind & 1, kind & 2);
        for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
            expect_refusal(readers[i], TR_EFORMAT,
                           kind & 1 ? "wide: the text is in UTF-16LE; only UTF-8 is read"
                                    : "wide: the text is in UTF-16BE; only UTF-8 is read");
    }
    /* As bytes a text may be anything. */
    tr_source *source = must_open("{corpus: {path: wide, unit: bytes, window: 4}}");
    tr_source_close(&source);
}

static void refuse(const char *table, const char *part)
{
    write_file("bad", table, strlen(table));
    expect_refusal("{csv: {path: bad}}", TR_EFORMAT, part);
}

static void decimal_commas_are_named(void **state)
{
    (void)state;
    refuse("a;b;label\n3,14;2.5;0\n",
           "bad:2:1: column \"a\": \"3,14\" is not a number; numbers have a decimal point");
    refuse("a;b;label\n1;-2,5;0\n",
           "bad:2:3: column \"b\": \"-2,5\" is not a number; numbers have a decimal point");
    refuse("3,14;2,5;0\n1,5;2,25;1\n",
           "bad:2:1: column \"3,14\": \"1,5\" is not a number; numbers have a decimal point");
    refuse("a\tb\tl\n1,5\t2\t1\n", "decimal point");
    refuse("\"x\",label\n\"1,5\",1\n", "decimal point");
    /* What only looks like one is not. */
    write_file("bad", "a;b;l\n1;2,x;1\n", 14);
    assert_int_equal(try_open("{csv: {path: bad}}"), TR_EFORMAT);
    assert_null(strstr(tr_error_message(), "decimal"));
    /* Commas between digits separate where nothing else does. */
    write_file("good", "1,2,0\n3,4,1\n", 12);
    tr_source *source = must_open("{csv: {path: good}}");
    assert_int_equal(tr_source_info(source)->floats, 2);
    tr_source_close(&source);
}

static void empty_tables_say_so(void **state)
{
    (void)state;
    refuse("", "bad: the file is empty; a table has a line for each example");
    refuse("\n\n", "bad: the file is empty");
    refuse("a,b,label\n", "bad: no row after the first line, which has the names of the columns");
}

/* 3 GiB without a line feed, of which the disk has a page: refused when 64 MiB were seen. */
static void endless_lines_are_refused(void **state)
{
    (void)state;
    static const char *const readers[] = {
        "{csv: {path: long}}",
        "{text: {path: long}}",
        "{folder: {path: ., table: long, column: a}}",
    };
    write_file("long", "a,b\n1,2", 7);
    assert_int_equal(truncate(test_path("long"), (off_t)3 << 30), 0);
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        expect_refusal(readers[i], TR_EFORMAT, "long:2: a line of more than 64 MiB");
    /* The longest that is read, in as many columns as there may be and more. */
    struct tr_load file;
    write_file("long", "1", 1);
    assert_int_equal(truncate(test_path("long"), (off_t)TR_LINE_MAX), 0);
    assert_int_equal(tr_load_lines(test_path("long"), &file), TR_OK);
    assert_int_equal(file.size, TR_LINE_MAX);
    tr_text_free((char *)file.data);
}

/* Whoever names a file where a data set is wanted is told how to describe it. */
static void files_are_no_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *part;
    } cases[] = {
        {"table.csv", "\"table.csv\" is no data set that is known by name; describe what to read: "
                      "'{csv: {path: table.csv}}'"},
        {"some/table.tsv.gz", "'{csv: {path: some/table.tsv.gz}}'"},
        {"x.npy", "'{npy: {features: x.npy}}'"},
        {"a b.tfrecord", "'{tfrecord: {path: \"a b.tfrecord\"}}'"},
        {"/", "'{folder: {path: /}}'"},
        {"mnits", "did you mean \"mnist\"?"},
    };
    tr_source *source = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tr_data_set_open(cases[i].name, "train", NULL, NULL, &source), TR_ENOTFOUND);
        if (!strstr(tr_error_message(), cases[i].part)) fail_msg("%s", tr_error_message());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf_16_is_named),     cmocka_unit_test(decimal_commas_are_named),
        cmocka_unit_test(empty_tables_say_so), cmocka_unit_test(endless_lines_are_refused),
        cmocka_unit_test(files_are_no_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
