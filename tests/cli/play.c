#include "cli/play.h"

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
