#include "cli/launch/lines.h"

#include "cli/terminal/terminal.h"

#include "base/alloc.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Only lines of the program are compared: those of other programs, such as a debugger, may repeat for a
   reason. */
#define OUR_OWN "trireme "

static void pass(const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(STDERR_FILENO, bytes, count);
        if (written < 0 && errno != EINTR) return;
        if (written < 0) continue;
        bytes += written;
        count -= (size_t)written;
    }
}

/* Open MPI 4.1 prints this whenever a process has died and its job has not; it is meaningless. */
static const char *const noise = "PMIX ERROR: BAD-PARAM in file ../../../src/event/pmix_event_notification.c";

/* The subject of a line: the cause after "gave up: ", which one process reports and others repeat,
   otherwise the text after "trireme COMMAND: ". */
static const char *cause_in(const char *line)
{
    static const char others[] = "gave up: ";
    const char *cause = line, *at = strstr(line, ": ");
    if (at) cause = at + strlen(": ");
    while ((at = strstr(cause, others))) cause = at + strlen(others);
    return cause;
}

/* The same message by several processes is printed once, also if some report it of another: "rank 0 gave
   up: disk full". */
static bool was_said(struct cli_said *said, const char *line)
{
    if (strncmp(line, OUR_OWN, strlen(OUR_OWN)) != 0) return false;
    for (int i = 0; i < CLI_LINES_KEPT; i++)
        if (said->line[i] && strcmp(cause_in(line), cause_in(said->line[i])) == 0) return true;
    tr_free(said->line[said->next]);
    said->line[said->next] = tr_strdup(line); /* NULL: then it may be printed twice */
    said->next = (said->next + 1) % CLI_LINES_KEPT;
    return false;
}

/* The line replaces a progress line, which its process draws again below. */
static void make_room(const struct cli_lines *lines)
{
    static const char erase[] = "\r\033[K";
    if (!lines->passing && cli_terminal_interactive(STDERR_FILENO)) pass(erase, sizeof erase - 1);
}

static void end_line(struct cli_lines *lines)
{
    struct cli_said *said = lines->said;
    struct cli_note note;
    lines->line[lines->length] = '\0';
    if (!lines->passing && cli_note_read(lines->line, said->token, &note)) {
        said->hear(said->user, &note);
    } else if (lines->passing || (!was_said(said, lines->line) && !strstr(lines->line, noise))) {
        make_room(lines);
        lines->line[lines->length] = '\n';
        pass(lines->line, lines->length + 1);
    }
    lines->length = 0;
    lines->passing = false;
}

void cli_said_begin(struct cli_said *said, const char *token,
                    void (*hear)(void *user, const struct cli_note *note), void *user)
{
    *said = (struct cli_said){.token = token, .hear = hear, .user = user};
}

void cli_said_end(struct cli_said *said)
{
    for (int i = 0; i < CLI_LINES_KEPT; i++) tr_free(said->line[i]);
}

void cli_lines_begin(struct cli_lines *lines, struct cli_said *said, int descriptor)
{
    *lines = (struct cli_lines){.said = said, .descriptor = descriptor};
}

static void pass_on(struct cli_lines *lines)
{
    make_room(lines);
    pass(lines->line, lines->length);
    lines->length = 0;
    lines->passing = true;
}

void cli_lines_flush(struct cli_lines *lines)
{
    /* The rest of a note will follow. */
    bool note = !lines->passing && lines->line[0] == CLI_NOTE_MARK;
    if (lines->length > 0 && !note) pass_on(lines);
}

void cli_lines_add(struct cli_lines *lines, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\0') continue; /* PRRTE's mpirun ends its messages in this way */
        if (bytes[i] == '\n') {
            end_line(lines);
            continue;
        }
        if (lines->length == CLI_LINE_MOST) pass_on(lines);
        lines->line[lines->length++] = bytes[i];
    }
}

void cli_lines_end(struct cli_lines *lines)
{
    cli_lines_flush(lines);
}
