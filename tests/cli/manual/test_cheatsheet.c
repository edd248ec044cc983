/* What the cheat sheet tells people to type is read by the program as a command line, word by word. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cli/manual/manual.h"
#include "cli/program/arguments.h"
#include "cli/program/commands.h"
#include "cli/program/texts.h"
#include "cli/session.h"

#define WORDS 24

/* Cuts a command line at its blanks, but for those in single quotes, which go. */
static int split(char *line, const char *words[WORDS])
{
    int count = 0;
    for (char *at = line; *at;) {
        bool quoted = *at == '\'';
        char *end = quoted ? strchr(at + 1, '\'') : at + strcspn(at, " ");
        assert_non_null(end);
        assert_true(count < WORDS);
        words[count++] = at + quoted;
        at = end + (*end != '\0');
        *end = '\0';
        at += strspn(at, " ");
    }
    return count;
}

/* Reads the words behind "trireme" as the program does. */
static void expect_command(const char *const *words, int count, const char *line)
{
    static const char *const environment[] = {NULL};
    int used;
    void *options;
    const struct cli_command *command = cli_command_find(words, count, &used);
    if (!command || cli_command_read(command, count - used, words + used, environment, &options) != TR_OK)
        fail_msg("%s: %s", line, tr_error_message());
    cli_command_release(command, &options);
    for (int i = used; command->passes_arguments && i < count; i++)
        if (strcmp(words[i], "train") == 0) {
            expect_command(words + i, count - i, line);
            return;
        }
    assert_false(command->passes_arguments);
}

/* This program is not where models ship: files of their names stand for them. */
static int set_up(void **state)
{
    if (place_make(state) != 0) return -1;
    DIR *models = opendir(TRIREME_SOURCE_DIR "/models");
    if (!models) return -1;
    for (const struct dirent *entry; (entry = readdir(models));) {
        char name[256];
        snprintf(name, sizeof name, "%s", entry->d_name);
        char *end = strstr(name, ".yaml");
        if (!end) continue;
        *end = '\0';
        write_text(name, "");
    }
    closedir(models);
    write_text("model.yaml", "");
    return 0;
}

static void every_line_is_a_command(void **state)
{
    (void)state;
    char *copy, *rest, *line;
    int lines = 0;
    assert_int_equal(cli_text("cheatsheet", &copy), TR_OK);
    rest = copy;
    while ((line = strsep(&rest, "\n")) != NULL && *line) {
        const char *words[WORDS];
        char whole[256];
        if (*line == '#') continue;
        char *command = strstr(line, " | ");
        if (!command) fail_msg("no bar in \"%s\"", line);
        snprintf(whole, sizeof whole, "%s", command + 3);
        int count = split(command + 3, words);
        assert_string_equal(words[0], "trireme");
        expect_command(words + 1, count - 1, whole);
        lines++;
    }
    assert_int_equal(lines, 40);
    tr_free(copy);
}

/* In a terminal of 80 columns each command is whole in its line. */
static void it_is_printed_in_eighty_columns(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run_with(&session, (struct setup){.columns = 80}, "help", "cheatsheet", NULL), 0);
    assert_non_null(strstr(session.text[0], "see that it works"));
    assert_non_null(strstr(session.text[0], "trireme train mnist-quick\r\n"));
    for (const char *line = session.text[0]; *line; line += strcspn(line, "\n"), line += *line == '\n')
        assert_true(strcspn(line, "\r\n") <= 80);
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_is_a_command),
        cmocka_unit_test(it_is_printed_in_eighty_columns),
    };
    return cmocka_run_group_tests(tests, set_up, place_remove);
}
