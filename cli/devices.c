/* trireme devices */
#include "commands.h"
#include "output.h"

#include "base/fail.h"
#include "trireme/trireme.h"

struct options {
    struct cli_common common;
    bool json;
};

static const struct tr_option table[] = {
    CLI_OPTION_JSON(struct options),
    CLI_OPTION_HELP(struct options),
};

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    char *text;
    TR_TRY(options->json ? tr_devices_json(&text) : tr_devices(&text));
    cli_print(text);
    return TR_OK;
}

const struct cli_command cli_devices = {
    .name = "devices",
    .summary = "list what can compute on this machine",
    .about = "Lists the devices of this machine and the instruction sets that the cpu device can use. All "
             "devices and "
             "instruction sets compute the same bits; they differ in speed.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
