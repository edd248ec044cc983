#include "cli/launch/lost_file.h"

#include "cli/program/exit_codes.h"
#include "cli/terminal/output.h"
#include "cli/terminal/terminal.h"

#include "base/files/mapped.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static bool on_terminal; /* a progress line may be on the screen */

static void say(const char *text)
{
    size_t length = strlen(text);
    while (length > 0) {
        ssize_t written = write(STDERR_FILENO, text, length);
        if (written <= 0 && errno != EINTR) return;
        if (written <= 0) continue;
        text += written;
        length -= (size_t)written;
    }
}

/* Neither allocates nor prints by stdio: the access may have happened anywhere. */
static void handle(int number, siginfo_t *info, void *context)
{
    (void)context;
    const char *path = info->si_code > 0 ? tr_mapped_at(info->si_addr) : NULL;
    if (!path) {
        signal(number, SIG_DFL);
        raise(number); /* takes effect on return; an access of our own is repeated then, and ends the
                          process */
        return;
    }
    char shown[4096] = "";
    strncpy(shown, path, sizeof shown - 1);
    cli_output_tame(shown, strlen(shown));
    if (on_terminal) say("\r\033[K");
    say(cli_output_prefix());
    say("\"");
    say(shown);
    say("\": was cut short, or its disk failed, while it was being read; restore the file and start again\n");
    _exit(CLI_EXIT_FAILED);
}

void cli_lost_file_catch(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    on_terminal = cli_terminal_interactive(STDERR_FILENO);
    sigaction(SIGBUS, &action, NULL);
}
