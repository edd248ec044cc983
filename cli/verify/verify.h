/* The parts of `trireme verify`. */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include "cli/data/cache.h"
#include "cli/program/command.h"
#include "trireme/receipt.h"

struct cli_verify_options {
    struct cli_common common;
    char *path, *model, *from, *share, *expect, *burn_in;
    struct tr_string_list set;
    int64_t segments, seed;
    int32_t workers;
    bool memory_check, json;
    struct cli_device device;
    struct cli_data_cache cache;
};

/* The result, of one process or of several. */
struct cli_verify_conclusion {
    struct tr_verify_result result;
    char *text; /* the reason; free with tr_free() */
};

/* Verifies in `workers` processes of this program, each of which takes a part. Errors are those of
   starting them, TR_EINTERRUPTED, and TR_EIO if one ended without an outcome. */
tr_status cli_verify_by_workers(const struct cli_verify_options *options, struct cli_verify_conclusion *out);

/* Runs options->burn_in, and prints its result. TR_EINVAL if it is not a time. */
tr_status cli_verify_burn_in(const struct cli_verify_options *options);

/* Prints the conclusion, and makes the program leave with its exit code. TR_ENOMEM. */
tr_status cli_verify_conclude(const struct cli_verify_options *options,
                              const struct cli_verify_conclusion *conclusion);
/* "verified", "differs", "cannot". Static storage. */
const char *cli_verify_word(enum tr_verify_outcome outcome);

#endif
