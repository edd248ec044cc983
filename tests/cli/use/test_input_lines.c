/* Lines of standard input: in batches, with their numbers, whatever their ends; and those that are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/use/input_lines.h"
#include "refuse.h"

static int before;

/* From here on standard input is this text. */
static void give(const char *text, size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fflush(file), 0);
    before = dup(STDIN_FILENO);
    assert_true(dup2(fileno(file), STDIN_FILENO) >= 0);
    assert_int_equal(lseek(STDIN_FILENO, 0, SEEK_SET), 0);
    fclose(file);
}

static void take_back(void)
{
    assert_true(dup2(before, STDIN_FILENO) >= 0);
    close(before);
}

/* Batches of `most`; "number:text" for each line, "|" after each batch. */
static void expect_lines(const char *text, int64_t most, const char *expected)
{
    struct cli_input_lines lines;
    char said[1000] = "";
    const int64_t live = tr_alloc_live();
    give(text, strlen(text));
    assert_int_equal(cli_input_lines_begin(most, &lines), TR_OK);
    for (;;) {
        if (cli_input_lines_next(&lines) != TR_OK) fail_msg("%s", tr_error_message());
        if (lines.count == 0) break;
        assert_true(lines.count <= most);
        for (int64_t i = 0; i < lines.count; i++)
            snprintf(said + strlen(said), sizeof said - strlen(said), "%d:%s ", (int)lines.line[i].number,
                     lines.line[i].text);
        strcat(said, "|");
    }
    cli_input_lines_release(&lines);
    take_back();
    assert_string_equal(said, expected);
    assert_int_equal(tr_alloc_live(), live);
}

static void lines_come_in_batches(void **state)
{
    (void)state;
    expect_lines("", 3, "");
    expect_lines("\n \n\t\r\n", 3, "");
    expect_lines("a\nb\nc\nd\n", 3, "0:a 1:b 2:c |3:d |");
    expect_lines("a\nb\nc\nd", 2, "0:a 1:b |2:c 3:d |");
    expect_lines("a\nb\nc", 1, "0:a |1:b |2:c |");
    expect_lines("a\r\n\n  b c\t\r\r\n\nd\re", 9, "0:a 2:  b c\t 4:d\re |");
    expect_lines("\n\n\na", 1, "3:a |");
}

/* More than is read at a time, and the longest line that is taken. */
static void long_lines_are_whole(void **state)
{
    (void)state;
    const size_t size = CLI_INPUT_LINE_MAX + 100;
    char *text = malloc(size);
    struct cli_input_lines lines;
    assert_non_null(text);
    memset(text, 'x', size);
    text[CLI_INPUT_LINE_MAX] = '\n';
    memcpy(text + CLI_INPUT_LINE_MAX + 1, "last\n", 5);
    give(text, CLI_INPUT_LINE_MAX + 6);
    assert_int_equal(cli_input_lines_begin(1, &lines), TR_OK);
    assert_int_equal(cli_input_lines_next(&lines), TR_OK);
    assert_int_equal(lines.count, 1);
    assert_int_equal(strlen(lines.line[0].text), CLI_INPUT_LINE_MAX);
    assert_int_equal(cli_input_lines_next(&lines), TR_OK);
    assert_int_equal(lines.count, 1);
    assert_string_equal(lines.line[0].text, "last");
    cli_input_lines_release(&lines);
    take_back();
    /* One byte more is too many, with and without an end. */
    for (int ended = 0; ended < 2; ended++) {
        char part[64];
        memcpy(text, "a\n", 2);
        memset(text + 2, 'x', CLI_INPUT_LINE_MAX + 1);
        text[CLI_INPUT_LINE_MAX + 3] = '\n';
        give(text, CLI_INPUT_LINE_MAX + 3 + (size_t)ended);
        assert_int_equal(cli_input_lines_begin(9, &lines), TR_OK);
        tr_status status = TR_OK;
        for (int i = 0; i < 2 && status == TR_OK; i++) status = cli_input_lines_next(&lines);
        assert_int_equal(status, TR_EFORMAT);
        snprintf(part, sizeof part, "standard input:2: a line of more than %zu bytes", CLI_INPUT_LINE_MAX);
        assert_string_equal(tr_error_message(), part);
        cli_input_lines_release(&lines);
        take_back();
    }
    free(text);
}

static void what_is_no_text_is_refused(void **state)
{
    (void)state;
    struct cli_input_lines lines;
    give("a\n\nb\0c\nd\n", 9);
    assert_int_equal(cli_input_lines_begin(9, &lines), TR_OK);
    assert_int_equal(cli_input_lines_next(&lines), TR_EFORMAT);
    assert_string_equal(tr_error_message(), "standard input:3: a byte 0; give lines of text");
    cli_input_lines_release(&lines);
    take_back();
    const int directory = open("/", O_RDONLY);
    before = dup(STDIN_FILENO);
    assert_true(directory >= 0 && dup2(directory, STDIN_FILENO) >= 0);
    assert_int_equal(cli_input_lines_begin(9, &lines), TR_OK);
    assert_int_equal(cli_input_lines_next(&lines), TR_EIO);
    assert_non_null(strstr(tr_error_message(), "standard input could not be read: "));
    cli_input_lines_release(&lines);
    take_back();
    close(directory);
}

/* What is there is answered before more comes. */
static void nobody_waits_for_more(void **state)
{
    (void)state;
    struct cli_input_lines lines;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    before = dup(STDIN_FILENO);
    assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
    assert_int_equal(cli_input_lines_begin(9, &lines), TR_OK);
    assert_int_equal(write(ends[1], "one\ntwo\nth", 10), 10);
    assert_int_equal(cli_input_lines_next(&lines), TR_OK);
    assert_int_equal(lines.count, 2);
    assert_string_equal(lines.line[1].text, "two");
    assert_int_equal(write(ends[1], "ree\n", 4), 4);
    assert_int_equal(cli_input_lines_next(&lines), TR_OK);
    assert_int_equal(lines.count, 1);
    assert_string_equal(lines.line[0].text, "three");
    assert_int_equal(lines.line[0].number, 2);
    close(ends[1]);
    assert_int_equal(cli_input_lines_next(&lines), TR_OK);
    assert_int_equal(lines.count, 0);
    cli_input_lines_release(&lines);
    take_back();
    close(ends[0]);
}

static void without_memory_nothing_stays(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        struct cli_input_lines lines;
        const int64_t live = tr_alloc_live();
        give("a\nb\n", 4);
        refuse_begin(at);
        tr_status status = cli_input_lines_begin(9, &lines);
        if (status == TR_OK) status = cli_input_lines_next(&lines);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        cli_input_lines_release(&lines);
        take_back();
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_in_batches),        cmocka_unit_test(long_lines_are_whole),
        cmocka_unit_test(what_is_no_text_is_refused),   cmocka_unit_test(nobody_waits_for_more),
        cmocka_unit_test(without_memory_nothing_stays),
    };
    return cmocka_run_group_tests_name("cli.input_lines", tests, NULL, NULL);
}
