/* The conclusion of a verification. */
#include "base/fail.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "cli/terminal/output.h"
#include "cli/verify/verify.h"

#include <inttypes.h>
#include <stdio.h>

const char *cli_verify_word(enum tr_verify_outcome outcome)
{
    return outcome == TR_VERIFIED ? "verified" : outcome == TR_DIFFERS ? "differs" : "cannot";
}

static tr_status print_json(const struct cli_verify_conclusion *conclusion)
{
    const struct tr_verify_result *result = &conclusion->result;
    struct tr_json_writer json;
    tr_json_begin(&json, false);
    tr_json_text(&json, "outcome", cli_verify_word(result->outcome));
    if (result->outcome == TR_DIFFERS) tr_json_integer(&json, "step", result->step);
    tr_json_integer(&json, "segments", result->segments);
    tr_json_integer(&json, "checked", result->checked);
    tr_json_integer(&json, "steps", result->steps);
    tr_json_text(&json, "hash", result->hash);
    tr_json_text(&json, "text", conclusion->text);
    return cli_print_json(&json);
}

/* The probability that forged segments would have been among the drawn ones. */
static void print_chances(const struct tr_verify_result *result)
{
    static const double shares[] = {0, 0.01, 0.05, 0.1, 0.25, 0.5};
    int64_t before = 0;
    if (result->checked >= result->segments) return;
    cli_printf("forged segments   seen with probability\n");
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        int64_t forged = (int64_t)(shares[i] * (double)result->segments + 0.5);
        if (forged == 0) forged = 1;
        if (forged <= before) continue;
        before = forged;
        cli_printf("%15" PRId64 "   %.4f\n", forged,
                   tr_verify_chance(result->segments, forged, result->checked));
    }
}

static void print_lines(const struct cli_verify_conclusion *conclusion)
{
    const struct tr_verify_result *result = &conclusion->result;
    if (result->outcome == TR_VERIFIED) print_chances(result);
    if (result->hash[0]) cli_printf("hash        %s\n", result->hash);
    if (result->outcome == TR_VERIFIED)
        cli_printf("VERIFIED: %s\n", conclusion->text);
    else if (result->outcome == TR_DIFFERS)
        cli_printf("DIFFERS at step %" PRId64 ": %s\n", result->step, conclusion->text);
    else
        cli_printf("CANNOT: %s\n", conclusion->text);
}

tr_status cli_verify_conclude(const struct cli_verify_options *options,
                              const struct cli_verify_conclusion *conclusion)
{
    static const int codes[] = {CLI_EXIT_DONE, CLI_EXIT_DIFFERS, CLI_EXIT_CANNOT};
    if (options->json)
        TR_TRY(print_json(conclusion));
    else
        print_lines(conclusion);
    if (conclusion->result.outcome != TR_VERIFIED) cli_output_leave_with(codes[conclusion->result.outcome]);
    return TR_OK;
}
