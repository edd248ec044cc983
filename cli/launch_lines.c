#include "launch_lines.h"

#include "base/alloc.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Only lines of the program are compared: others', such as a debugger's, may repeat themselves for a reason.
 */
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

/* Open MPI 4.1 says this whenever a process of a job that outlives it is gone; it means nothing. */
static const char *const noise = "PMIX ERROR: BAD-PARAM in file ../../../src/event/pmix_event_notification.c";

static bool was_said(struct cli_lines *lines)
{
    if (strncmp(lines->line, OUR_OWN, strlen(OUR_OWN)) != 0) return false;
    for (int i = 0; i < CLI_LINES_KEPT; i++)
        if (lines->said[i] && strcmp(lines->said[i], lines->line) == 0) return true;
    tr_free(lines->said[lines->next]);
    lines->said[lines->next] = tr_strdup(lines->line); /* NULL: then it may be said twice */
    lines->next = (lines->next + 1) % CLI_LINES_KEPT;
    return false;
}

static void end_line(struct cli_lines *lines)
{
    struct cli_note note;
    lines->line[lines->length] = '\0';
    if (!lines->passing && cli_note_read(lines->line, lines->token, &note)) {
        lines->hear(lines->user, &note);
    } else if (lines->passing || (!was_said(lines) && !strstr(lines->line, noise))) {
        lines->line[lines->length] = '\n';
        pass(lines->line, lines->length + 1);
    }
    lines->length = 0;
    lines->passing = false;
}

void cli_lines_begin(struct cli_lines *lines, const char *token,
                     void (*hear)(void *user, const struct cli_note *note), void *user)
{
    *lines = (struct cli_lines){.token = token, .hear = hear, .user = user};
}

static void pass_on(struct cli_lines *lines)
{
    pass(lines->line, lines->length);
    lines->length = 0;
    lines->passing = true;
}

void cli_lines_flush(struct cli_lines *lines)
{
    /* The rest of a note is about to come. */
    bool note = !lines->passing && lines->line[0] == CLI_NOTE_MARK;
    if (lines->length > 0 && !note) pass_on(lines);
}

void cli_lines_add(struct cli_lines *lines, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
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
    for (int i = 0; i < CLI_LINES_KEPT; i++) tr_free(lines->said[i]);
}
