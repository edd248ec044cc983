/* verify --burn-in: whether all processors and devices of this machine compute correctly. */
#include "base/fail.h"
#include "base/text/text.h"
#include "cli/terminal/output.h"
#include "cli/verify/verify.h"

#include <inttypes.h>
#include <string.h>

/* "90", "90s", "10m", "2h" */
static tr_status read_seconds(const char *text, double *out)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
    char number[32];
    size_t length = strlen(text);
    double scale = 1;
    for (size_t i = 0; i < sizeof units / sizeof units[0] && length > 0; i++)
        if (text[length - 1] == units[i].unit) scale = units[i].seconds;
    if (scale != 1 || (length > 0 && text[length - 1] == 's')) length--;
    if (length > 0 && length < sizeof number) {
        memcpy(number, text, length);
        number[length] = '\0';
        if (!tr_text_double(number, out) && *out >= 0 && *out * scale < 1e9) {
            *out *= scale;
            return TR_OK;
        }
    }
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
