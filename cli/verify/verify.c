/* trireme verify: runs the training of a receipt again, and compares. */
#include "cli/verify/verify.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "cli/program/commands.h"
#include "cli/program/signals.h"
#include "cli/terminal/output.h"

#include <string.h>

#define AT(field) offsetof(struct cli_verify_options, field)
static const struct tr_option table[] = {
    {.key = "path",
     .type = TR_OPTION_STRING,
     .offset = AT(path),
     .fallback = "",
     .help = "a receipt, or the directory of a run, which has run.receipt; its checkpoints serve as "
             "starting points",
     .flags = TR_OPTION_POSITIONAL,
     .value_name = "RECEIPT|RUN"},
    CLI_OPTIONS_REPEATED_RUN(struct cli_verify_options),
    {.key = "segments",
     .type = TR_OPTION_INT64,
     .offset = AT(segments),
     .fallback = "0",
     .least = 0,
     .most = TR_OPTION_WHOLE,
     .help = "number of segments (between two boundaries) to verify, drawn at random; 0: all"},
    {.key = "seed",
     .type = TR_OPTION_INT64,
     .offset = AT(seed),
     .fallback = "1",
     .least = 0,
     .most = TR_OPTION_WHOLE,
     .help = "seed of the draw of segments; choose it after the run, so that the maker of the receipt "
             "cannot know it"},
    {.key = "workers",
     .type = TR_OPTION_INT32,
     .offset = AT(workers),
     .fallback = "1",
     .least = 1,
     .most = 256,
     .help = "processes that share the segments; each begins at a checkpoint",
     .letter = 'w'},
    {.key = "share",
     .type = TR_OPTION_STRING,
     .offset = AT(share),
     .fallback = "",
     .help = "the part that this machine verifies, if several share the work: 1/3 is the first of three",
     .value_name = "I/N"},
    {.key = "expect",
     .type = TR_OPTION_STRING,
     .offset = AT(expect),
     .fallback = "",
     .help = "hash that the run must end with, or at least its first 16 digits; checked in addition to the "
             "receipt",
     .value_name = "HASH"},
    {.key = "burn_in",
     .type = TR_OPTION_STRING,
     .offset = AT(burn_in),
     .fallback = "",
     .help = "instead of verifying a receipt, train a small job with a known hash for this time on each "
             "processor and device, and name those with another hash; as in 90s, 10m, 2h",
     .value_name = "TIME"},
    CLI_OPTION_MEMORY_CHECK(struct cli_verify_options),
    CLI_OPTION_JSON(struct cli_verify_options),
    CLI_OPTION_DEVICE(struct cli_verify_options),
    CLI_OPTION_DATA_CACHE(struct cli_verify_options),
    CLI_OPTION_HELP(struct cli_verify_options),
};
#undef AT

/* "2/3" */
static tr_status read_share(const char *text, struct tr_verify_settings *settings)
{
    int64_t share = 0, shares = 0;
    const char *slash = text ? strchr(text, '/') : NULL;
    char first[16];
    if (!text) return TR_OK;
    if (slash && (size_t)(slash - text) < sizeof first) {
        memcpy(first, text, (size_t)(slash - text));
        first[slash - text] = '\0';
        if (!tr_text_int64(first, &share) && !tr_text_int64(slash + 1, &shares) && share >= 1 &&
            share <= shares && shares <= 1000000) {
            settings->share = (int)share - 1;
            settings->shares = (int)shares;
            return TR_OK;
        }
    }
    return tr_fail(TR_EINVAL, "--share \"%s\" is no part of several; 1/3 is the first of three", text);
}

static struct tr_verify_settings settings_of(const struct cli_verify_options *options)
{
    struct tr_verify_settings settings = TR_VERIFY_SETTINGS_INIT;
    settings.path = options->path;
    settings.model = options->model;
    settings.set = (const char *const *)options->set.item;
    settings.set_count = options->set.count;
    settings.from = options->from;
    settings.device = options->device.device;
    settings.isa = options->device.isa;
    settings.threads = options->device.threads;
    settings.segments = options->segments;
    settings.seed = (uint64_t)options->seed;
    settings.expect = options->expect;
    settings.no_memory_check = !options->memory_check;
    settings.data_cache_bytes = cli_data_cache_bytes(&options->cache);
    return settings;
}

static int is_stopped(void *user, const struct tr_verify_event *event)
{
    (void)user, (void)event;
    return cli_signals_received() != 0;
}

/* In this process. */
static tr_status verify_here(const struct cli_verify_options *options, struct cli_verify_conclusion *out)
{
    struct tr_verify_settings settings = settings_of(options);
    char *cache, *programs = NULL;
    TR_TRY(read_share(options->share, &settings));
    TR_TRY(cli_data_cache_directory(&options->cache, &cache));
    tr_status status = cli_program_cache_directory(cache, &programs);
    settings.data_cache = cache;
    settings.program_cache = programs;
    if (status == TR_OK) status = tr_verify(&settings, is_stopped, NULL, &out->result, &out->text);
    tr_free(programs);
    tr_free(cache);
    return status;
}

static tr_status run(const void *options_)
{
    const struct cli_verify_options *options = options_;
    struct cli_verify_conclusion conclusion = {.result = TR_VERIFY_RESULT_INIT};
    if ((options->path != NULL) == (options->burn_in != NULL))
        return tr_fail(TR_EINVAL, "name a receipt or the directory of a run, or give --burn-in");
    if (options->burn_in) return cli_verify_burn_in(options);
    tr_status status = options->workers > 1 ? cli_verify_by_workers(options, &conclusion)
                                            : verify_here(options, &conclusion);
    if (status == TR_OK) status = cli_verify_conclude(options, &conclusion);
    tr_free(conclusion.text);
    return status;
}

static const struct tr_option_group groups[] = {
    {"What is verified", "model set from expect"},
    {"Extent, and sharing of the work", "segments seed workers share"},
    {"The machine", "burn_in"},
    {"For experts", NULL},
    {NULL, NULL},
};

const struct cli_command cli_verify = {
    .name = "verify",
    .summary = "repeat a run and check it against its receipt",
    .about =
        "Repeats the training that a receipt describes (train --receipt), all of it or some segments, and "
        "compares the digests of the whole state at each boundary. The last line is VERIFIED, DIFFERS at "
        "step N, or CANNOT with the reason; the exit code is 0, 6 or 7.",
    CLI_OPTIONS(table, struct cli_verify_options),
    .groups = groups,
    .run = run,
};
