/* What is printed: bytes that a terminal must not see, characters that the end of a piece cuts, descriptors
 * that were closed, files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/terminal/output.h"
#include "refuse.h"
#include "scratch.h"

static void what_a_terminal_obeys_is_masked(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"plain ~ text\n\tand more", "plain ~ text\n\tand more"},
        {"\001\a\b\v\f\r\033\037 \177", "???????? ?"},
        {"\302\200\302\233\302\237\302\240", "??????\302\240"}, /* U+0080 to U+009F, and the next */
        {"z\303\244h \342\202\254 \360\237\230\200", "z\303\244h \342\202\254 \360\237\230\200"},
        {"a\200b\377c\303", "a?b?c?"}, /* no characters */
        {"\342\202", "??"},            /* cut */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        strcpy(text, cases[i][0]);
        cli_output_tame(text, strlen(text));
        assert_string_equal(text, cases[i][1]);
    }
    char zero[] = "a\0b";
    cli_output_tame(zero, 3);
    assert_string_equal(zero, "a?b");
    char part[] = "\001\001\001";
    cli_output_tame(part, 2);
    assert_string_equal(part, "??\001"); /* no further than asked */
}

static void cut_characters_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t unfinished;
    } cases[] = {
        {"", 0},
        {"a", 0},
        {"\303", 1},
        {"\303\244", 0},
        {"\337", 1},
        {"\340", 1},
        {"\342\202", 2},
        {"\357", 1},
        {"\342\202\254", 0},
        {"\360", 1},
        {"\360\237", 2},
        {"\360\237\230", 3},
        {"\360\237\230\200", 0},
        {"\200\200\200\200", 0},
        {"\303\244a", 0},
        {"a\303", 1},
        {"\342a\202", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (cli_output_unfinished(cases[i].text, strlen(cases[i].text)) != cases[i].unfinished)
            fail_msg("case %zu: %zu", i, cli_output_unfinished(cases[i].text, strlen(cases[i].text)));
    assert_int_equal(cli_output_unfinished("\360\237\230\200", 3), 3);
    assert_int_equal(cli_output_unfinished("\342\202\254", 1), 1);
}

/* A long text is written in pieces, and no character is lost where two of them meet. */
static void long_texts_are_written_whole(void **state)
{
    (void)state;
    static const size_t before[] = {0, 1, 2, 3, 4092, 4093, 4094, 4095, 4096, 4097, 8190};
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        enum { SIZE = 9000 };
        char text[SIZE + 1], *written;
        size_t size, at = before[i];
        memset(text, 'x', at);
        for (; at + 4 <= SIZE; at += 4) memcpy(text + at, "\360\237\230\200", 4);
        FILE *stream = open_memstream(&written, &size);
        assert_non_null(stream);
        cli_output_put(stream, text, at);
        fclose(stream);
        assert_int_equal(size, at);
        assert_memory_equal(written, text, at);
        free(written);
    }
}

static void long_lines_are_printed_whole(void **state)
{
    (void)state;
    for (int length = 1020; length < 1030; length++) {
        char *written;
        size_t size;
        FILE *stream = open_memstream(&written, &size);
        assert_non_null(stream);
        cli_fprintf(stream, "%*s|", length, "\033");
        fclose(stream);
        assert_int_equal(size, length + 1);
        assert_string_equal(written + length - 2, " ?|");
        free(written);
    }
}

/* Whether all was printed so far, asked in a process that ends with the answer. */
static bool all_is_printed_after(const char *text, bool refused)
{
    char *written;
    size_t size;
    int status;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        FILE *stream = open_memstream(&written, &size);
        if (refused) refuse_begin(0);
        cli_fprintf(stream, "%s", text);
        if (refused) refuse_end();
        fclose(stream);
        /* Without memory it is the beginning of a long text. */
        const size_t least = refused && strlen(text) > 1023 ? 1023 : strlen(text);
        if (size != least || memcmp(written, text, size) != 0) _exit(2);
        _exit(cli_output_flush() ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 0;
}

static void what_is_cut_is_known(void **state)
{
    (void)state;
    char text[1100];
    memset(text, 'x', sizeof text);
    text[0] = '\0';
    assert_true(all_is_printed_after(text, false)); /* nothing is all of nothing */
    assert_true(all_is_printed_after(text, true));
    text[0] = 'x';
    text[1023] = '\0';
    assert_true(all_is_printed_after(text, true)); /* needs no memory */
    text[1023] = 'x';
    text[1024] = '\0';
    assert_true(all_is_printed_after(text, false));
    assert_false(all_is_printed_after(text, true));
}

/* Closed descriptors are taken before a file of ours gets one, and then fail as they did before. */
static void closed_descriptors_are_taken(void **state)
{
    (void)state;
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char byte = 0;
        for (int i = 0; i <= 2; i++) close(i);
        cli_output_begin();
        const int next = open("/dev/null", O_RDWR);
        _exit(next < 3                    ? 1
              : read(0, &byte, 1) >= 0    ? 2
              : write(1, &byte, 1) >= 0   ? 3
              : write(2, &byte, 1) >= 0   ? 4
              : cli_output_end() == TR_OK ? 0 /* nothing was printed */
                                          : 5);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void files_are_written_whole_or_not_at_all(void **state)
{
    (void)state;
    char place[SCRATCH_PATH], path[SCRATCH_PATH + 16], read_back[16] = "";
    scratch_make(place);
    const int64_t live = tr_alloc_live();
    snprintf(path, sizeof path, "%s/file", place);
    assert_int_equal(cli_output_file(path, tr_strdup("some text\n")), TR_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(read_back, 1, sizeof read_back, file), 10);
    assert_string_equal(read_back, "some text\n");
    fclose(file);
    snprintf(path, sizeof path, "%s/none/file", place);
    assert_int_not_equal(cli_output_file(path, tr_strdup("some text\n")), TR_OK);
    assert_non_null(strstr(tr_error_message(), "none/file"));
    assert_int_equal(tr_alloc_live(), live);
    scratch_remove(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_terminal_obeys_is_masked),
        cmocka_unit_test(cut_characters_are_found),
        cmocka_unit_test(long_texts_are_written_whole),
        cmocka_unit_test(long_lines_are_printed_whole),
        cmocka_unit_test(what_is_cut_is_known),
        cmocka_unit_test(closed_descriptors_are_taken),
        cmocka_unit_test(files_are_written_whole_or_not_at_all),
    };
    return cmocka_run_group_tests_name("cli.output", tests, NULL, NULL);
}
