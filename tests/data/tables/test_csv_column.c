/* One column of a table, the names of files: by its name or number, and what is refused. */
#include "data/tables/csv_column.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/support.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

enum { MOST = 4096 };

static const struct {
    const char *table;
    size_t size; /* 0: up to its end */
    const char *column;
    const char *wanted; /* all names with a bar after each, or, */
    const char *says;   /* after the table's path, this */
} cases[] = {
    {"file,label\na.png,1\nb.png,0\n", 0, "file", "a.png|b.png|", NULL},
    {"label;file\n1;a.png\n0;b.png\n", 0, "file", "a.png|b.png|", NULL},
    {"file,label\na.png,1\n", 0, "label", "1|", NULL},
    /* a number means that the first line is a row, unless it is a name there */
    {"a.png,1\nb.png,0\n", 0, "0", "a.png|b.png|", NULL},
    {"a.png,7\nb.png,0\n", 0, "1", "7|0|", NULL},
    {"x,0\na.png,b.png\n", 0, "0", "b.png|", NULL},
    {"a.png\nb.png", 0, "0", "a.png|b.png|", NULL},
    /* empty lines are no rows, and fields may be quoted */
    {"\n\nfile,label\n\na.png,1\n\n\n\"b, c.png\",0\n\n", 0, "file", "a.png|b, c.png|", NULL},
    {"a.png,1\nb.png,0\n", 0, "2", NULL,
     ": image column \"2\" is neither a name in the first line nor a number from 0 to 1"},
    {"a.png,1\nb.png,0\n", 0, "-1", NULL, ": image column \"-1\" is neither a name"},
    {"file,label\na.png,1\n", 0, "fiel", NULL,
     ": image column \"fiel\" is neither a name in the first line nor a number from 0 to 1; did you mean "
     "\"file\"?"},
    {"file,label\na.png,1\n,0\n", 0, "file", NULL,
     ":3:1: no name of a file; give one, or take the row out of the table"},
    {"file,label\na.png,1\nb\0c,0\n", 25, "file", NULL, ":3:1: a byte 0 in a name; give a text file"},
    {"file,label\na.png,1\nb.png,0,2\n", 0, "file", NULL, ":3:1: 3 columns; the first line has 2"},
    {"file,label\na.png,1\nb.png\n", 0, "file", NULL, ":3:1: 1 columns; the first line has 2"},
    {"\"file,label\na.png,1\n", 0, "file", NULL, ":1:1: a quote that is not closed on its line"},
    {"file,label\n\"a.png,1\n", 0, "file", NULL, ":2:1: a quote that is not closed on its line"},
    {"file,label\na.png,1\n\"b.png,1\n", 0, "file", NULL, ":3:1: a quote that is not closed on its line"},
    {"file,label\n", 0, "file", NULL, ": no row after the first line"},
    {"file,label\n\n\n", 0, "file", NULL, ": no row after the first line"},
    {"\n\n", 0, "file", NULL, ": the file is empty"},
    {"", 0, "file", NULL, ": the file is empty"},
};

static void columns_are_read_or_refused(void **state)
{
    (void)state;
    for (int i = 0; i < LENGTH(cases); i++) {
        struct tr_file_names names;
        char got[128] = "", message[512];
        write_file("table", cases[i].table, cases[i].size ? cases[i].size : strlen(cases[i].table));
        const tr_status status = tr_csv_column(test_path("table"), cases[i].column, &names);
        if (cases[i].wanted) {
            if (status != TR_OK) fail_msg("case %d: %s", i, tr_error_message());
            for (int64_t k = 0; k < names.count; k++) {
                strcat(got, names.name[k]);
                strcat(got, "|");
            }
            assert_string_equal(got, cases[i].wanted);
        } else {
            snprintf(message, sizeof message, "%s%s", test_path("table"), cases[i].says);
            if (status == TR_OK || !strstr(tr_error_message(), message))
                fail_msg("case %d: %s, \"%s\" lacks \"%s\"", i, tr_status_name(status),
                         status ? tr_error_message() : "", message);
            const bool of_column = strstr(message, "image column") != NULL;
            assert_int_equal(status, of_column ? TR_EINVAL : TR_EFORMAT);
        }
        tr_file_names_free(&names);
        assert_int_equal(tr_alloc_live(), 0);
    }
}

/* A row of so many fields, twice. */
static void write_wide(int columns)
{
    const size_t size = 4 * (size_t)columns;
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t i = 0; i < size; i++) text[i] = i % 2 ? ',' : 'x';
    text[size / 2 - 1] = text[size - 1] = '\n';
    write_file("wide", text, size);
    free(text);
}

static void tables_have_a_limit_of_columns(void **state)
{
    (void)state;
    struct tr_file_names names;
    char column[16], message[300];
    snprintf(column, sizeof column, "%d", MOST - 1);
    write_wide(MOST);
    assert_int_equal(tr_csv_column(test_path("wide"), column, &names), TR_OK);
    assert_int_equal(names.count, 2);
    tr_file_names_free(&names);
    write_wide(MOST + 1);
    assert_int_equal(tr_csv_column(test_path("wide"), "0", &names), TR_EFORMAT);
    snprintf(message, sizeof message, "%s: %d columns; 1 to %d can be read", test_path("wide"), MOST + 1,
             MOST);
    assert_string_equal(tr_error_message(), message);
    tr_file_names_free(&names);
}

static void a_lack_of_memory_leaves_nothing(void **state)
{
    (void)state;
    write_text("table", "file,label\na.png,1\nb.png,0\n");
    for (int64_t at = 0, done = 0; !done; at++) {
        struct tr_file_names names;
        refuse_begin(at);
        const tr_status status = tr_csv_column(test_path("table"), "file", &names);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_file_names_free(&names);
        assert_int_equal(tr_alloc_live(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_read_or_refused),
        cmocka_unit_test(tables_have_a_limit_of_columns),
        cmocka_unit_test(a_lack_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
