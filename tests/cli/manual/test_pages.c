/* The pages for man(1): what a page of a command consists of, the headings of its options, lines of code as
 * they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "cli/manual/manual.h"
#include "cli/program/commands.h"
#include "scratch.h"

static char place[SCRATCH_PATH];

static int make(void **state)
{
    (void)state;
    scratch_make(place);
    const int64_t live = tr_alloc_live();
    const tr_status status = cli_manual_write(place, "2001-02-03");
    assert_int_equal(tr_alloc_live(), live);
    return status == TR_OK ? 0 : -1;
}

static int clear(void **state)
{
    (void)state;
    scratch_remove(place);
    return 0;
}

static struct tr_file_content page_of(const char *name)
{
    char path[2 * SCRATCH_PATH];
    struct tr_file_content page;
    snprintf(path, sizeof path, "%s/%s", place, name);
    if (tr_file_read(path, 1 << 20, &page) != TR_OK) fail_msg("%s", tr_error_message());
    return page;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) count++;
    return count;
}

static void a_command_has_a_page(void **state)
{
    (void)state;
    static const char expected[] =
        ".TH TRIREME\\-DATA\\-VERIFY 1 2001-02-03 \"Trireme " TRIREME_VERSION "\" \"Trireme\"\n"
        ".SH NAME\n"
        "trireme\\-data\\-verify \\- check the files of data sets against their SHA\\-256\n"
        ".SH SYNOPSIS\n"
        "trireme data verify [options] [SET...]\n"
        ".SH DESCRIPTION\n"
        "Checks the files of data sets against their SHA\\-256 and prints the state of\n"
        "each. Damaged files give exit code 5, missing ones 2.\n"
        ".SH ARGUMENTS\n"
        ".TP\n";
    struct tr_file_content page = page_of("man1/trireme-data-verify.1");
    assert_int_equal(strncmp(page.data, expected, strlen(expected)), 0);
    assert_int_equal(count_of(page.data, ".SH ARGUMENTS\n"), 1);
    assert_int_equal(count_of(page.data, ".SS "), 0); /* options without groups have no headings */
    assert_non_null(
        strstr(page.data, "\n.SH OPTIONS\n.TP\n\\fB\\-\\-dir DIR\\fR\ndirectory of the data sets, each"));
    assert_non_null(strstr(
        page.data, "\n.TP\n\\fB\\-h, \\-\\-help\\fR\nprint this text.\n.SH EXIT STATUS\n.TP\n.B 0\ndone\n"));
    assert_non_null(strstr(page.data, "\n.SH SEE ALSO\n.BR trireme (1) ,\n"));
    tr_file_content_free(&page);
    page = page_of("man1/trireme-version.1");
    assert_null(strstr(page.data, ".SH ARGUMENTS"));
    tr_file_content_free(&page);
}

/* Each heading once, without the backquotes of --help; each option below one. */
static void options_have_headings(void **state)
{
    (void)state;
    struct tr_file_content page = page_of("man1/trireme-train.1");
    int groups = 0;
    for (; cli_train.groups[groups].heading; groups++) {
        char heading[200] = "\n.SS ";
        size_t length = strlen(heading);
        for (const char *at = cli_train.groups[groups].heading; *at; at++)
            if (*at != '`') heading[length++] = *at;
        strcpy(heading + length, "\n.TP\n");
        if (count_of(page.data, heading) != 1) fail_msg("not once: %s", heading);
    }
    assert_int_equal(count_of(page.data, ".SS "), groups);
    assert_int_equal(count_of(page.data, ".SH ARGUMENTS\n"), 1);
    assert_int_equal(count_of(page.data, "\n\\fB\\-\\-resume\\-changed\\fR\n"), 1);
    tr_file_content_free(&page);
}

/* What is typed stands as it is, between its marks; other lines are filled. */
static void code_is_not_filled(void **state)
{
    (void)state;
    struct tr_file_content page = page_of("man7/trireme.7");
    assert_non_null(
        strstr(page.data, "\n.EX\n    trireme train mnist\\-quick\n    trireme report runs/mnist\\-quick\n"));
    assert_int_equal(count_of(page.data, "\n.EX\n"), count_of(page.data, "\n.EE\n"));
    bool code = false;
    for (const char *line = page.data; *line; line = strchr(line, '\n') + 1) {
        const size_t length = strcspn(line, "\n");
        if (strncmp(line, ".EX", 3) == 0 || strncmp(line, ".EE", 3) == 0) code = line[2] == 'X';
        if (!code && *line != '.' && length > 78 && strncmp(line, "\\fB", 3) != 0)
            fail_msg("%zu bytes: %.*s", length, (int)length, line);
        assert_true(length > 0);
    }
    tr_file_content_free(&page);
    /* Sections of the introduction, and of what one wants to do. */
    static const char *const heads[] = {"\n.SS Begin\n", "\n.SS Train\n", "\n.SS Use\n",
                                        "\n.SH A FIRST RUN\n"};
    page = page_of("man7/trireme.7");
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        assert_int_equal(count_of(page.data, heads[i]), 1);
    tr_file_content_free(&page);
    page = page_of("man1/trireme.1");
    assert_non_null(
        strstr(page.data, "\n.SH SYNOPSIS\n.B trireme\n.I COMMAND\n[options]\n.SH DESCRIPTION\n"));
    for (int i = 0; cli_commands[i]; i++) {
        char line[200];
        snprintf(line, sizeof line, "\n.TP\n.BR trireme\\-%s (1)\n", cli_commands[i]->name);
        if (count_of(page.data, line) != 1) fail_msg("not once: %s", line);
    }
    tr_file_content_free(&page);
}

static void places_that_cannot_be_are_named(void **state)
{
    (void)state;
    char path[2 * SCRATCH_PATH];
    snprintf(path, sizeof path, "%s/man7/trireme.7/below", place);
    const int64_t live = tr_alloc_live();
    assert_int_not_equal(cli_manual_write(path, "2001-02-03"), TR_OK);
    assert_non_null(strstr(tr_error_message(), "man7/trireme.7"));
    assert_int_equal(tr_alloc_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_has_a_page),
        cmocka_unit_test(options_have_headings),
        cmocka_unit_test(code_is_not_filled),
        cmocka_unit_test(places_that_cannot_be_are_named),
    };
    return cmocka_run_group_tests_name("cli.pages", tests, make, clear);
}
