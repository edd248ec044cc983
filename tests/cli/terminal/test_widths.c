/* Lines that fit the terminal: no word is broken or lost, whatever the width. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/text/width.h"
#include "cli/terminal/columns.h"
#include "cli/session.h"
#include "cli/terminal/wrap.h"

/* ---- in a terminal ---- */

static const char *const commands[][4] = {
    {"help"},
    {"help", "train"},
    {"help", "data"},
    {"help", "data", "convert"},
    {"launch", "--help"},
    {"models"},
    {"data", "list"},
    {"devices"},
    {"inspect", "mnist-cnn"},
    {"inspect", "--layers"},
    {"inspect", "tiny.yaml"},
    {"train", "nothing-that-is-there"},
};

/* Columns of a line without what erases the progress line before it. */
static size_t columns_of(const char *line, size_t length)
{
    for (size_t i = 0; i + 2 < length; i++)
        if (memcmp(line + i, "\033[K", 3) == 0) line += i + 3, length -= i + 3, i = 0;
    return tr_text_columns(line, length - (length > 0 && line[length - 1] == '\r'));
}

/* A line may be too wide by its only word, or by the last of a row of two: a path, a hash. */
static bool is_excused(const char *line, size_t length, size_t width)
{
    size_t longest = 0;
    for (size_t at = 0; at < length;) {
        size_t word = strcspn(line + at, " \r\n");
        if (word > longest) longest = word;
        at += word + 1;
    }
    return longest + 14 > width;
}

static void expect_width(const struct session *session, size_t width)
{
    for (const char *line = session->text[0]; *line;) {
        size_t length = strcspn(line, "\n");
        if (columns_of(line, length) > width && !is_excused(line, length, width))
            fail_msg("more than %zu columns: %.*s", width, (int)length, line);
        line += length + (line[length] == '\n');
    }
}

/* The words of a text with one blank between two; free with free(). */
static char *words_of(const char *text)
{
    char *words = malloc(strlen(text) + 1), *end = words;
    for (const char *at = text; *at; at++) {
        if (strchr(" \r\n", *at)) {
            if (end > words && end[-1] != ' ') *end++ = ' ';
        } else {
            *end++ = *at;
        }
    }
    while (end > words && end[-1] == ' ') end--;
    *end = '\0';
    return words;
}

static void every_command_follows_the_width(void **state)
{
    (void)state;
    static const int widths[] = {60, 80, 133};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        struct session piped;
        run(&piped, commands[i][0], commands[i][1], commands[i][2], NULL);
        char *said = words_of(piped.size[0] > 0 ? piped.text[0] : piped.text[1]);
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
            struct session session;
            run_with(&session, (struct setup){.columns = widths[w]}, commands[i][0], commands[i][1],
                     commands[i][2], NULL);
            char *shown = words_of(session.text[0]);
            /* Help has lines of at most 100 columns, however wide the terminal is. */
            const bool helps = strcmp(commands[i][0], "help") == 0;
            expect_width(&session, (size_t)(helps && widths[w] > 100 ? 100 : widths[w]));
            assert_string_equal(shown, said);
            free(shown);
            session_release(&session);
        }
        free(said);
        session_release(&piped);
    }
}

static void comparisons_drop_columns_that_have_no_room(void **state)
{
    (void)state;
    static const struct {
        int width;
        const char *head, *hidden; /* parts; NULL: nothing is hidden */
    } cases[] = {
        {133, "workers  threads  examples/s  speed-up  accuracy  staleness  moved/step  waiting  hash", NULL},
        {80, "workers  examples/s  speed-up  accuracy  waiting  hash", "threads, staleness, moved/step:"},
        {60, "workers  examples/s  speed-up  hash", "threads, accuracy, staleness, moved/step,"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct session session;
        int code =
            run_with(&session, (struct setup){.columns = cases[i].width}, "compare", "tiny.yaml", "--steps",
                     "2", "-w", "1,2", "-t", "2", "--strategies", "allreduce,local-sgd,every=2", NULL);
        if (code != 0) session_show(&session);
        assert_int_equal(code, 0);
        expect_width(&session, (size_t)cases[i].width);
        if (!strstr(session.text[0], cases[i].head)) session_show(&session);
        assert_non_null(strstr(session.text[0], cases[i].head));
        if (cases[i].hidden)
            assert_non_null(strstr(session.text[0], cases[i].hidden));
        else
            assert_null(strstr(session.text[0], "not shown"));
        session_release(&session);
    }
}

/* ---- the folding itself ---- */

static void lines_go_on_below_their_last_cell(void **state)
{
    (void)state;
    static const struct {
        int width;
        const char *text, *folded;
    } cases[] = {
        {0, "a line that nobody folds however long it may be\n",
         "a line that nobody folds however long it may be\n"},
        {30, "one two three four five six seven eight\n", "one two three four five six\nseven eight\n"},
        {30, "exactly thirty columns, not one", "exactly thirty columns, not\none"},
        {30, "exactly thirty columns, no one", "exactly thirty columns, no one"},
        {40, "  name    a text that goes on below itself\n\nnext\n",
         "  name    a text that goes on below\n          itself\n\nnext\n"},
        {44, "a  1  22  333  4444  what no longer fits behind\n",
         "a  1  22  333  4444  what no longer fits\n                     behind\n"},
        {30, "layer  kind  8 x 8  12  KiB  a remark on it\n",
         "layer  kind  8 x 8  12  KiB\n    a remark on it\n"},
        {20, "settings    0123456789abcdef0123456789abcdef\n",
         "settings\n    0123456789abcdef0123456789abcdef\n"},
        {24, "z\303\244hlt Zeichen und Breite\n", "z\303\244hlt Zeichen und Breite\n"},
        {24, "z\303\244hlt Zeichen und Breiten\n", "z\303\244hlt Zeichen und\nBreiten\n"},
        {20, "", ""},
        {20, "\n", "\n"},
        {20, "a\n\n\nb", "a\n\n\nb"},
        {-1, "more than any width\n", "more than any width\n"},
        {20, "twenty columns stand\n", "twenty columns stand\n"},
        {20, "twenty columns stand and go on\n", "twenty columns stand\nand go on\n"},
        {20, "go on and then twenty columns stand\n", "go on and then\ntwenty columns stand\n"},
        {20, "twenty columns stands\n", "twenty columns\nstands\n"},
        {20, "  an indented text goes on so\n", "  an indented text\n  goes on so\n"},
        {12, "an_endless_word_of_text and\n", "an_endless_word_of_text\nand\n"},
        {12, "and an_endless_word_of_text\n", "and\nan_endless_word_of_text\n"},
        /* 20 columns are enough for the last cell to go on below itself, 19 are not. */
        {30, "a cell    words that go on below\n", "a cell    words that go on\n          below\n"},
        {29, "a cell    words that go on below\n", "a cell\n    words that go on below\n"},
        /* Only two blanks and more part cells. */
        {24, "one two three  four five six seven\n", "one two three\n    four five six seven\n"},
        {24, "  one  two  three  four  five  six\n", "  one  two  three  four\n      five  six\n"},
        {23, "  one  two  three  four  five  six\n", "  one  two  three  four\n      five  six\n"},
        {22, "  one  two  three  four  five  six\n", "  one  two  three\n      four  five  six\n"},
        {16, "aaaa  bbbb  cccc  dddd  eeee  ffff\n", "aaaa  bbbb  cccc\n    dddd eeee\n    ffff\n"},
        /* Where not even the first cell fits there are words only. */
        {16, "a first cell much wider than that  b  c\n", "a first cell\nmuch wider than\nthat b c\n"},
        {16, "  a first cell much wider than that  b  c\n",
         "  a first cell\n  much wider\n  than that b c\n"},
        {16, "sixteen columns!  b  c\n", "sixteen columns!\n    b  c\n"},
        {15, "sixteen columns!  b  c\n", "sixteen\ncolumns! b c\n"},
        {4, "      \n", "      \n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_text text = TR_TEXT_INIT;
        char *folded;
        cli_wrap(&text, cases[i].text, cases[i].width);
        assert_int_equal(tr_text_finish(&text, &folded), TR_OK);
        if (strcmp(folded, cases[i].folded) != 0) fail_msg("case %zu: %s", i, folded);
        tr_free(folded);
    }
}

static void long_names_have_a_line_of_their_own(void **state)
{
    (void)state;
    static const struct cli_column columns[] = {{"first", 9, 0}, {"second", 9, 2}, {"third", 9, 1}};
    struct tr_text text = TR_TEXT_INIT;
    struct cli_layout layout = cli_layout_make(columns, 3, 0, 30, 6, 42);
    assert_int_equal(layout.hidden, 2); /* the greatest to drop, and no more */
    assert_int_equal(layout.name, 42 - 6 - 18);
    cli_layout_name(&layout, &text, "a name of twenty-two c");
    for (int i = 0; i < 3; i++) cli_layout_cell(&layout, &text, i, "x");
    char *row = cli_columns_end(&text);
    assert_string_equal(row, "a name of twenty-two c\n                          x        x");
    tr_free(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_follows_the_width),
        cmocka_unit_test(comparisons_drop_columns_that_have_no_room),
        cmocka_unit_test(lines_go_on_below_their_last_cell),
        cmocka_unit_test(long_names_have_a_line_of_their_own),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
