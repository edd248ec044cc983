#include "cli/use/input_lines.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define CHUNK ((size_t)1 << 16)

tr_status cli_input_lines_begin(int64_t most, struct cli_input_lines *lines)
{
    *lines = (struct cli_input_lines){.most = most};
    lines->line = tr_alloc((size_t)most, sizeof *lines->line);
    return lines->line ? TR_OK : TR_ENOMEM;
}

void cli_input_lines_release(struct cli_input_lines *lines)
{
    tr_free(lines->buffer);
    tr_free(lines->line);
    *lines = (struct cli_input_lines){0};
}

/* Whether reading would not wait. */
static bool is_ready(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

static tr_status read_more(struct cli_input_lines *lines)
{
    if (lines->room - lines->size < CHUNK) {
        size_t room = 2 * lines->room + 2 * CHUNK;
        char *grown = tr_realloc(lines->buffer, room, 1);
        if (!grown) return TR_ENOMEM;
        lines->buffer = grown;
        lines->room = room;
    }
    for (;;) {
        ssize_t got = read(STDIN_FILENO, lines->buffer + lines->size, CHUNK - 1); /* room for a NUL */
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return tr_fail(TR_EIO, "standard input could not be read: %s", strerror(errno));
        lines->ended = got == 0;
        lines->size += (size_t)got;
        return TR_OK;
    }
}

/* Takes the line in [begin, end) of the buffer. */
static tr_status take(struct cli_input_lines *lines, size_t begin, size_t end)
{
    char *text = lines->buffer + begin;
    int64_t number = lines->number++;
    if (memchr(text, 0, end - begin))
        return tr_fail(TR_EFORMAT, "standard input:%" PRId64 ": a byte 0; give lines of text", number + 1);
    while (end > begin && lines->buffer[end - 1] == '\r') end--;
    lines->buffer[end] = '\0';
    if (text[strspn(text, " \t")])
        lines->line[lines->count++] = (struct cli_input_line){.number = number, .begin = begin};
    return TR_OK;
}

/* Takes the whole lines that have been read; the last one may lack its line feed. */
static tr_status take_all(struct cli_input_lines *lines)
{
    while (lines->count < lines->most && lines->used < lines->size) {
        size_t left = lines->size - lines->used, begin = lines->used;
        const char *feed = memchr(lines->buffer + begin + lines->searched, '\n', left - lines->searched);
        size_t end = feed ? (size_t)(feed - lines->buffer) : lines->size;
        if (end - begin > CLI_INPUT_LINE_MAX)
            return tr_fail(TR_EFORMAT, "standard input:%" PRId64 ": a line of more than %zu bytes",
                           lines->number + 1, CLI_INPUT_LINE_MAX);
        lines->searched = feed || lines->ended ? 0 : left;
        if (!feed && !lines->ended) return TR_OK;
        lines->used = feed ? end + 1 : end;
        TR_TRY(take(lines, begin, end));
    }
    return TR_OK;
}

tr_status cli_input_lines_next(struct cli_input_lines *lines)
{
    lines->count = 0;
    if (lines->used > 0) {
        memmove(lines->buffer, lines->buffer + lines->used, lines->size - lines->used);
        lines->size -= lines->used;
        lines->used = 0;
    }
    for (;;) {
        TR_TRY(take_all(lines));
        if (lines->count == lines->most || (lines->ended && lines->used == lines->size)) break;
        if (lines->count > 0 && !is_ready()) break;
        TR_TRY(read_more(lines));
    }
    for (int64_t i = 0; i < lines->count; i++) lines->line[i].text = lines->buffer + lines->line[i].begin;
    return TR_OK;
}
