#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/play.h"

#include "base/files/file.h"
#include "cli/program/exit_codes.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void end_in_order(int number)
{
    (void)number;
    _exit(CLI_EXIT_INTERRUPTED);
}

bool is_played(int argc)
{
    return argc > 1 && getenv("PLAY_FILE");
}

int play(char **argv)
{
    const bool evaluates = strcmp(argv[1], "eval") == 0;
    const char *code = getenv("PLAY_CODE"), *error = getenv("PLAY_ERROR"),
               *text = getenv(evaluates ? "PLAY_EVAL" : "PLAY_TEXT"), *other = NULL;
    if (access(getenv("PLAY_FILE"), F_OK) == 0) other = getenv("PLAY_LATER");
    if (strcmp(argv[1], "launch") == 0) other = getenv("PLAY_LAUNCH");
    if (other && !evaluates) text = other;
    FILE *file = fopen(getenv("PLAY_FILE"), "a");
    for (int i = 1; file && argv[i]; i++) fprintf(file, "%s\n", argv[i]);
    if (file) fclose(file);
    signal(SIGTERM, end_in_order);
    fputs(text ? text : "", stdout);
    fflush(stdout);
    if (error) fputs(error, stderr);
    if (evaluates || !code) return 0;
    while (strcmp(code, "wait") == 0) pause();
    return atoi(code);
}

void play_with(const char *file, const char *text, const char *code)
{
    setenv("PLAY_FILE", file, 1);
    setenv("PLAY_TEXT", text, 1);
    setenv("PLAY_CODE", code, 1);
    unlink(file);
}

const char *play_arguments(void)
{
    static char arguments[16384];
    const char *path = getenv("PLAY_FILE");
    struct tr_file_content content = {0};
    arguments[0] = '\0';
    if (!tr_file_exists(path)) return arguments;
    assert_int_equal(tr_file_read(path, sizeof arguments - 1, &content), TR_OK);
    memcpy(arguments, content.data, content.size + 1);
    tr_file_content_free(&content);
    return arguments;
}

void play_expect(const char *part, int count)
{
    const char *arguments = play_arguments();
    int found = 0;
    for (const char *at = arguments; (at = strstr(at, part)) != NULL; at++) found++;
    if (found != count) fail_msg("\"%s\" %d times, not %d: %s", part, found, count, arguments);
}
