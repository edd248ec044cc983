#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/log.h"
#include "base/text/text.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/wrap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int first_error; /* errno of the first failed write, 0 before */
static char prefix[64] = "trireme: ";
static char buffer[1 << 16];
static void (*before_message)(void *user);
static void *before_message_user;

/* Warnings of the library, which it gives while it opens data and saves, on the thread of the command. */
static void print_log(void *user, enum tr_log_level level, const char *message)
{
    (void)user;
    cli_message("%s: %s", tr_log_level_name(level), message);
}

void cli_output_begin(void)
{
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
        /* Opened for the other direction, so that use of it still fails. */
        if (open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) != descriptor) abort();
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like others */
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    tr_log_set_sink(print_log, NULL, TR_LOG_WARNING);
}

bool cli_output_flush(void)
{
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && first_error == 0) first_error = errno ? errno : EIO;
    return first_error == 0;
}

tr_status cli_output_end(void)
{
    cli_output_flush();
    errno = 0;
    if (fclose(stdout) != 0 && errno != EBADF && first_error == 0) first_error = errno ? errno : EIO;
    if (first_error == 0) return TR_OK;
    return tr_fail(TR_EIO, "standard output: %s; what was printed is not complete", strerror(first_error));
}

/* The bytes of the character at `at`. 1 for one that must not be shown; then *shown is false. */
static size_t look(const char *at, size_t left, bool *shown)
{
    char copy[5] = {0};
    uint32_t character = 0;
    memcpy(copy, at, left < 4 ? left : 4);
    size_t length = tr_text_utf8(copy, &character);
    bool c0 = (character < ' ' && character != '\n' && character != '\t') || character == 0x7f;
    /* Some terminals take U+009B for ESC [. */
    bool c1 = character >= 0x80 && character < 0xa0;
    *shown = length > 0 && !c0 && !c1;
    return length > 0 ? length : 1;
}

void cli_output_tame(char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length) {
        bool shown;
        length = look(text + at, size - at, &shown);
        if (!shown) memset(text + at, '?', length);
    }
}

size_t cli_output_unfinished(const char *text, size_t size)
{
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        unsigned char byte = (unsigned char)text[size - back];
        size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
        if (length > back) return back;
        if (length > 1 || byte < 0x80) break;
    }
    return 0;
}

void cli_output_put(FILE *stream, const char *text, size_t size)
{
    char piece[4096]; /* messages are one write, so that those of several processes do not mix */
    for (size_t at = 0, length; at < size; at += length) {
        length = size - at;
        if (length > sizeof piece) length = sizeof piece - cli_output_unfinished(text + at, sizeof piece);
        memcpy(piece, text + at, length);
        cli_output_tame(piece, length);
        fwrite(piece, 1, length, stream);
    }
}

void cli_output_raw(const char *bytes, size_t size)
{
    fwrite(bytes, 1, size, stdout);
}

static void print_list(FILE *stream, const char *format, va_list arguments)
{
    char line[1024], *longer = NULL;
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(line, sizeof line, format, arguments);
    if (length >= (int)sizeof line) longer = tr_alloc((size_t)length + 1, 1);
    if (longer) vsnprintf(longer, (size_t)length + 1, format, again);
    va_end(again);
    bool cut = length < 0 || (length >= (int)sizeof line && !longer);
    if (cut && first_error == 0) first_error = ENOMEM;
    if (length >= 0) cli_output_put(stream, longer ? longer : line, cut ? strlen(line) : (size_t)length);
    tr_free(longer);
}

void cli_printf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_list(stdout, format, arguments);
    va_end(arguments);
}

void cli_fprintf(FILE *stream, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_list(stream, format, arguments);
    va_end(arguments);
}

void cli_print(char *text)
{
    cli_output_put(stdout, text, strlen(text));
    tr_free(text);
}

/* Lines for people: those of a terminal are folded to its width, unless memory fails. */
static void put_lines(FILE *stream, const char *text)
{
    struct tr_text lines = TR_TEXT_INIT;
    int width = cli_terminal_fold(fileno(stream));
    if (width > 0) cli_wrap(&lines, text, width);
    if (lines.bytes && !lines.failed) text = lines.bytes;
    cli_output_put(stream, text, strlen(text));
    tr_text_release(&lines);
}

void cli_print_lines(char *text)
{
    put_lines(stdout, text);
    tr_free(text);
}

tr_status cli_print_json(struct tr_json_writer *json)
{
    char *line;
    TR_TRY(tr_json_finish(json, &line));
    cli_printf("%s\n", line);
    tr_free(line);
    return TR_OK;
}

tr_status cli_output_file(const char *path, char *text)
{
    tr_status status = tr_file_write_atomic(NULL, path, text, strlen(text));
    tr_free(text);
    return status;
}

void cli_output_before_message(void (*hook)(void *user), void *user)
{
    before_message = hook;
    before_message_user = user;
}

void cli_message(const char *format, ...)
{
    if (before_message) before_message(before_message_user);
    cli_output_flush();
    va_list arguments;
    va_start(arguments, format);
    char line[2048];
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *feed = line; (feed = strchr(feed, '\n'));) *feed = '?';
    char whole[sizeof prefix + sizeof line + 1];
    snprintf(whole, sizeof whole, "%s%s\n", prefix, line);
    put_lines(stderr, whole);
}

void cli_warnings(const char *lines)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        if (length > 0) cli_message("warning: %.*s", (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
}

void cli_output_name(const char *command)
{
    snprintf(prefix, sizeof prefix, "trireme %s: ", command);
}

const char *cli_output_prefix(void)
{
    return prefix;
}

static bool leaves_at_once;
static int code_of_another;

void cli_output_leave_at_once(void)
{
    leaves_at_once = true;
}

void cli_output_leave_with(int code)
{
    code_of_another = code;
}

int cli_output_leave(int code)
{
    if (code == 0) code = code_of_another;
    if (leaves_at_once) _exit(code);
    return code;
}
