#include "output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int first_error; /* errno of the first failed write, 0 before */
static char prefix[64] = "trireme: ";
static char buffer[1 << 16];
static void (*before_message)(void *user);
static void *before_message_user;

/* What the library got over. It says so while it opens data and saves, on the thread of the command. */
static void print_log(void *user, enum tr_log_level level, const char *message)
{
    (void)user;
    cli_message("%s: %s", tr_log_level_name(level), message);
}

void cli_output_begin(void)
{
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
        /* Opened the wrong way round, so that using it still fails. */
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

void cli_output_tame(char *text, size_t size)
{
    for (unsigned char *at = (unsigned char *)text, *end = at + size; at < end; at++) {
        bool c0 = (*at < ' ' && *at != '\n' && *at != '\t') || *at == 0x7f;
        /* U+0080 to U+009F, of which some terminals take one for ESC [. */
        bool c1 = *at == 0xc2 && at + 1 < end && at[1] >= 0x80 && at[1] < 0xa0;
        if (c1) *at++ = '?';
        if (c0 || c1) *at = '?';
    }
}

void cli_print(char *text)
{
    cli_output_tame(text, strlen(text));
    fputs(text, stdout);
    tr_free(text);
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
    cli_output_tame(line, strlen(line));
    for (char *feed = line; (feed = strchr(feed, '\n'));) *feed = '?';
    fprintf(stderr, "%s%s\n", prefix, line);
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
