#include "cli/terminal/terminal.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FOLDED_LEAST 40

bool cli_terminal_interactive(int descriptor)
{
    const char *term = getenv("TERM");
    return isatty(descriptor) && term && *term && strcmp(term, "dumb") != 0;
}

int cli_terminal_width(int descriptor)
{
    struct winsize size;
    if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

int cli_terminal_fold(int descriptor)
{
    int width = isatty(descriptor) ? cli_terminal_width(descriptor) : 0;
    return width < FOLDED_LEAST ? 0 : width;
}

bool cli_terminal_color(void)
{
    const char *no = getenv("NO_COLOR");
    return !no || !*no;
}

bool cli_terminal_unicode(void)
{
    return strcasecmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
