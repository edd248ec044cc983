/* verify --burn-in: whether all processors and devices of this machine compute correctly. */
#include "base/fail.h"
#include "cli/program/arguments.h"
#include "cli/terminal/output.h"
#include "cli/verify/verify.h"

#include <inttypes.h>

#define SECONDS_MOST 1e9

static tr_status read_seconds(const char *text, double *out)
{
    if (!cli_argument_seconds(text, out) && *out < SECONDS_MOST) return TR_OK;
    return tr_fail(TR_EINVAL, "--burn-in \"%.40s\" is no time; 10m are ten minutes, 90s as many seconds",
                   text);
}

static void print_place(void *user, const struct tr_burn_in_event *event)
{
    (void)user;
    if (*event->failure)
        cli_printf("%-14s FAILED after %" PRId64 " trainings: %s\n", event->place, event->rounds,
                   event->failure);
    else if (event->wrong > 0)
        cli_printf("%-14s WRONG in %" PRId64 " of %" PRId64 " trainings, first with hash %s\n", event->place,
                   event->wrong, event->rounds, event->hash);
    else
        cli_printf("%-14s right in %" PRId64 " trainings\n", event->place, event->rounds);
}

tr_status cli_verify_burn_in(const struct cli_verify_options *options)
{
    struct tr_burn_in_settings settings = TR_BURN_IN_SETTINGS_INIT;
    bool good;
    TR_TRY(read_seconds(options->burn_in, &settings.seconds));
    TR_TRY(tr_burn_in(&settings, print_place, NULL, &good));
    cli_printf(good ? "VERIFIED: all processors and devices compute rightly\n"
                    : "DIFFERS: what is named above computes wrongly\n");
    if (!good) cli_output_leave_with(CLI_EXIT_DIFFERS);
    return TR_OK;
}
