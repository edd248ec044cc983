/* trireme devices */
#include "cli/program/commands.h"
#include "cli/data/cache.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "trireme/trireme.h"

struct options {
    struct cli_common common;
    struct cli_data_cache cache;
    bool json;
};

static const struct tr_option table[] = {
    CLI_OPTION_CACHE_DIRECTORY(struct options),
    CLI_OPTION_JSON(struct options),
    CLI_OPTION_HELP(struct options),
};

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    const struct cli_data_cache cache = {.use = true, .directory = options->cache.directory};
    char *text, *directory, *programs;
    TR_TRY(cli_data_cache_directory(&cache, &directory));
    tr_status status = cli_program_cache_directory(directory, &programs);
    if (status == TR_OK) status = tr_devices_tested(programs, options->json, &text);
    tr_free(programs);
    tr_free(directory);
    if (status == TR_OK) (options->json ? cli_print : cli_print_lines)(text);
    return status;
}

const struct cli_command cli_devices = {
    .name = "devices",
    .summary = "list the processors and GPUs that can compute here",
    .about =
        "Lists the devices of this machine, the instruction sets of the cpu device, and the caches of "
        "the processors with the number of processors that share them. All devices and instruction sets "
        "compute the same bits; they differ in speed. A device with a driver (CUDA, OpenCL) is tested for "
        "that, and refused if it does not.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
