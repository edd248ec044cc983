/* Tables: columns as wide as their widest cell, both alignments, nothing at the end of a line. */
#include "base/text/table.h"

#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void columns_fit_their_cells(void **state)
{
    (void)state;
    struct tr_table table;
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "before\n");
    tr_table_begin(&table, "lrl");
    static const char *const cells[] = {"name", "count", "note", "a", "12345", "", "longer", "7", "x"};
    for (int i = 0; i < 9; i++) tr_table_cell(&table, "%s", cells[i]);
    tr_table_finish(&table, &text);
    assert_string_equal(text.bytes, "before\n"
                                    "name    count  note\n"
                                    "a       12345\n"
                                    "longer      7  x\n");
    tr_text_release(&text);
}

static void characters_count_not_bytes(void **state)
{
    (void)state;
    struct tr_table table;
    struct tr_text text = TR_TEXT_INIT;
    tr_table_begin(&table, "rl");
    tr_table_cell(&table, "é");
    tr_table_cell(&table, "1");
    tr_table_cell(&table, "xyz");
    tr_table_cell(&table, "2");
    tr_table_finish(&table, &text);
    assert_string_equal(text.bytes, "  é  1\nxyz  2\n");
    tr_text_release(&text);
}

static void empty_and_unfinished_tables(void **state)
{
    (void)state;
    struct tr_table table;
    struct tr_text text = TR_TEXT_INIT;
    tr_table_begin(&table, "ll");
    tr_table_finish(&table, &text);
    assert_null(text.bytes);
    tr_table_begin(&table, "ll");
    for (int i = 0; i < 3; i++) tr_table_cell(&table, "%d", i);
    tr_table_finish(&table, &text);
    assert_string_equal(text.bytes, "0  1\n2\n");
    tr_text_release(&text);
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        struct tr_table table;
        struct tr_text text = TR_TEXT_INIT;
        char *all = NULL;
        refuse_begin(at);
        tr_table_begin(&table, "lr");
        for (int i = 0; i < 200; i++) tr_table_cell(&table, "%d", i * i);
        tr_table_finish(&table, &text);
        tr_status status = tr_text_finish(&text, &all);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_free(all);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_fit_their_cells),
        cmocka_unit_test(characters_count_not_bytes),
        cmocka_unit_test(empty_and_unfinished_tables),
        cmocka_unit_test(memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
