#include "cli/launch/launched.h"

#include "base/threads/clock.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define STEP_SECONDS 1.0

static const char *const words[CLI_NOTE_KINDS] = {
    [CLI_NOTE_STARTED] = "started", [CLI_NOTE_STOPPING] = "stopping", [CLI_NOTE_BEGUN] = "begun",
    [CLI_NOTE_STEP] = "step",       [CLI_NOTE_SAVED] = "saved",       [CLI_NOTE_FEWER] = "fewer",
    [CLI_NOTE_LOST] = "lost",       [CLI_NOTE_ENDED] = "ended",       [CLI_NOTE_UNHEARD] = "unheard",
};

bool cli_note_read(const char *line, const char *token, struct cli_note *note)
{
    size_t length = strlen(token);
    if (line[0] != CLI_NOTE_MARK || strncmp(line + 1, token, length) != 0 || line[1 + length] != ' ')
        return false;
    const char *word = line + 1 + length + 1;
    for (int kind = 0; kind < CLI_NOTE_KINDS; kind++) {
        size_t size = strlen(words[kind]);
        int64_t number;
        if (strncmp(word, words[kind], size) != 0 || word[size] != ' ' ||
            tr_text_int64(word + size + 1, &number))
            continue;
        *note = (struct cli_note){(enum cli_note_kind)kind, number};
        return true;
    }
    return false;
}

static const char *launcher;
static char stopping[160]; /* a note prepared in advance */
static size_t stopping_length;
static double last_step = -STEP_SECONDS;

static size_t make_note(char *line, size_t size, enum cli_note_kind kind, int64_t number)
{
    int length = snprintf(line, size, "%c%s %s %" PRId64 "\n", CLI_NOTE_MARK, launcher, words[kind], number);
    return length > 0 && (size_t)length < size ? (size_t)length : 0;
}

/* In one write, so that no other text comes between. A launcher that has ended needs no notes. */
static void write_note(const char *line, size_t length)
{
    ssize_t written = length > 0 ? write(STDERR_FILENO, line, length) : 0;
    (void)written;
}

void cli_launched_begin(const char *token)
{
    launcher = token;
    if (!token) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also for a process that is stopped, and cannot notice by itself */
    stopping_length = make_note(stopping, sizeof stopping, CLI_NOTE_STOPPING, getpid());
    cli_launched_note(CLI_NOTE_STARTED, getpid());
}

void cli_launched_note(enum cli_note_kind kind, int64_t number)
{
    char line[160];
    if (launcher) write_note(line, make_note(line, sizeof line, kind, number));
}

void cli_launched_stopping(void)
{
    write_note(stopping, stopping_length);
}

void cli_launched_step(int64_t step)
{
    double now = tr_clock_seconds();
    if (now - last_step < STEP_SECONDS) return;
    last_step = now;
    cli_launched_note(CLI_NOTE_STEP, step);
}
