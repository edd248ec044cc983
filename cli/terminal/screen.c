#include "cli/terminal/screen.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "cli/terminal/output.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/wrap.h"

#include <string.h>

#define REDRAW_SECONDS 0.1
#define CLEAR_LINE     "\r\033[K"

static void flush(struct cli_screen *screen)
{
    if (screen->stream == stdout)
        cli_output_flush();
    else
        fflush(screen->stream);
}

/* Takes the progress line off the screen; it comes back when it is drawn next. */
static void hide(void *user)
{
    struct cli_screen *screen = user;
    if (screen->shown) {
        fputs(CLEAR_LINE, screen->stream);
        flush(screen);
    }
    screen->shown = false;
}

void cli_screen_begin(struct cli_screen *screen, FILE *stream)
{
    *screen = (struct cli_screen){.stream = stream, .interactive = cli_terminal_interactive(fileno(stream))};
    screen->style.color = cli_terminal_color();
    screen->style.unicode = cli_terminal_unicode();
    cli_output_before_message(hide, screen);
}

void cli_screen_line(struct cli_screen *screen, const char *line)
{
    /* stderr has no buffer, so that the parts are put together here. */
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, screen->shown ? CLEAR_LINE : "");
    size_t begin = text.length;
    cli_wrap(&text, line, cli_terminal_fold(fileno(screen->stream)));
    tr_text_add(&text, "\n");
    if (!text.failed) cli_output_tame(text.bytes + begin, text.length - begin);
    if (screen->shown && screen->bar.bytes) tr_text_add(&text, screen->bar.bytes);
    if (!text.failed) {
        fputs(text.bytes, screen->stream);
    } else {
        hide(screen);
        cli_fprintf(screen->stream, "%s\n", line);
    }
    flush(screen);
    tr_text_release(&text);
}

tr_status cli_screen_text(struct cli_screen *screen, char *text)
{
    if (!text) return TR_ENOMEM;
    for (char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        bool more = line[length] != '\0';
        line[length] = '\0';
        cli_screen_line(screen, line);
        line += length + more;
    }
    tr_free(text);
    return TR_OK;
}

/* Whether a progress line may be drawn now. */
static bool due(const struct cli_screen *screen)
{
    if (!screen->interactive) return false;
    return !screen->shown || tr_clock_seconds() - screen->drawn >= REDRAW_SECONDS;
}

/* Draws what is in screen->bar. */
static void draw(struct cli_screen *screen)
{
    struct tr_text frame = TR_TEXT_INIT;
    if (screen->bar.failed || !screen->bar.bytes) {
        tr_text_release(&screen->bar);
        return;
    }
    tr_text_addf(&frame, "\r%s\033[K", screen->bar.bytes);
    if (!frame.failed) fputs(frame.bytes, screen->stream);
    tr_text_release(&frame);
    flush(screen);
    screen->shown = true;
    screen->drawn = tr_clock_seconds();
}

static void compose(struct cli_screen *screen, const struct cli_progress *progress)
{
    tr_text_release(&screen->bar);
    cli_progress_line(progress, cli_terminal_width(fileno(screen->stream)), screen->style, &screen->bar);
}

void cli_screen_progress(struct cli_screen *screen, const struct cli_progress *progress)
{
    if (!due(screen)) return;
    compose(screen, progress);
    draw(screen);
}

void cli_screen_renew(struct cli_screen *screen, const struct cli_progress *progress)
{
    if (screen->shown) compose(screen, progress);
}

void cli_screen_status(struct cli_screen *screen, const char *status)
{
    if (!due(screen)) return;
    size_t length = strlen(status), room = (size_t)cli_terminal_width(fileno(screen->stream)) - 1;
    tr_text_release(&screen->bar);
    tr_text_add_bytes(&screen->bar, status, length < room ? length : room);
    if (screen->bar.bytes) cli_output_tame(screen->bar.bytes, screen->bar.length);
    draw(screen);
}

void cli_screen_end(struct cli_screen *screen)
{
    hide(screen);
    cli_output_before_message(NULL, NULL);
    tr_text_release(&screen->bar);
}
