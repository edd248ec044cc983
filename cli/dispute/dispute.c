/* trireme dispute: where two runs diverge, and which is right. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/data/cache.h"
#include "cli/dispute/speaker.h"
#include "cli/program/commands.h"
#include "cli/program/signals.h"
#include "cli/program/texts.h"
#include "cli/terminal/output.h"
#include "dispute/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct options {
    struct cli_common common;
    char *a, *b, *answer, *model, *from, *output;
    struct tr_string_list set;
    bool memory_check, json;
    struct cli_device device;
    struct cli_data_cache cache;
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    {.key = "a",
     .type = TR_OPTION_STRING,
     .offset = AT(a),
     .fallback = "",
     .help = "a receipt, or the directory of a run, to be repeated here; or, after \"|\", a command that "
             "answers for a receipt elsewhere: \"|ssh host trireme dispute --answer runs/a\"",
     .flags = TR_OPTION_POSITIONAL},
    {.key = "b",
     .type = TR_OPTION_STRING,
     .offset = AT(b),
     .fallback = "",
     .help = "the other party, likewise",
     .flags = TR_OPTION_POSITIONAL},
    {.key = "answer",
     .type = TR_OPTION_STRING,
     .offset = AT(answer),
     .fallback = "",
     .help = "act as a party for this receipt or the run in this directory: read questions from standard "
             "input, one a line, and answer on standard output",
     .value_name = "RECEIPT|RUN"},
    {.key = "output",
     .type = TR_OPTION_STRING,
     .offset = AT(output),
     .fallback = "",
     .help = "directory for the case (the differing number with its inputs) and the referee (one C file "
             "that decides it)",
     .letter = 'o',
     .value_name = "DIR"},
    CLI_OPTIONS_REPEATED_RUN(struct options),
    CLI_OPTION_MEMORY_CHECK(struct options),
    CLI_OPTION_JSON(struct options),
    CLI_OPTION_DEVICE(struct options),
    CLI_OPTION_DATA_CACHE(struct options),
    CLI_OPTION_HELP(struct options),
};
#undef AT

static struct tr_party_settings settings_of(const struct options *options, const char *cache, tr_stop *stop)
{
    return (struct tr_party_settings){
        .model = options->model,
        .set = (const char *const *)options->set.item,
        .set_count = options->set.count,
        .from = options->from,
        .device = options->device.device,
        .isa = options->device.isa,
        .threads = options->device.threads,
        .no_memory_check = !options->memory_check,
        .data_cache = cache,
        .data_cache_bytes = cli_data_cache_bytes(&options->cache),
        .stop = stop,
    };
}

/* ---- sides ---- */

/* A party in this process, or one that a command starts. */
struct side {
    tr_party *party;
    struct cli_speaker speaker;
};

static tr_status ask_here(void *user, const char *question, char **answer)
{
    const struct side *side = user;
    if (cli_signals_received()) return tr_fail(TR_EINTERRUPTED, "the dispute was stopped");
    return tr_party_answer(side->party, question, answer);
}

static tr_status open_side(const struct tr_party_settings *given, const char *path, struct side *side,
                           struct tr_dispute_side *out)
{
    struct tr_party_settings settings = *given;
    if (path[0] == '|') {
        *out = (struct tr_dispute_side){cli_speaker_ask, &side->speaker};
        return cli_speaker_start(&side->speaker, path + 1);
    }
    settings.path = path;
    *out = (struct tr_dispute_side){ask_here, side};
    return tr_party_create(&settings, &side->party);
}

/* ---- the outcome ---- */

static const struct {
    const char *word, *line;
    int code;
} outcomes[] = {
    [TR_DISPUTE_EQUAL] = {"equal", "EQUAL", CLI_EXIT_DONE},
    [TR_DISPUTE_A] = {"a", "A IS RIGHT", CLI_EXIT_DIFFERS},
    [TR_DISPUTE_B] = {"b", "B IS RIGHT", CLI_EXIT_DIFFERS},
    [TR_DISPUTE_BOTH] = {"both", "BOTH ARE RIGHT", CLI_EXIT_DIFFERS},
    [TR_DISPUTE_NEITHER] = {"neither", "NEITHER IS RIGHT", CLI_EXIT_DIFFERS},
    [TR_DISPUTE_OPEN] = {"cannot", "CANNOT", CLI_EXIT_CANNOT},
};

static tr_status print_json(const struct tr_dispute_result *result)
{
    struct tr_json_writer json;
    tr_json_begin(&json, false);
    tr_json_text(&json, "outcome", outcomes[result->outcome].word);
    if (result->step > 0) tr_json_integer(&json, "step", result->step);
    tr_json_text(&json, "number", result->place);
    tr_json_integer(&json, "questions", result->questions);
    tr_json_integer(&json, "opened", result->opened);
    tr_json_integer(&json, "bytes", result->bytes);
    tr_json_text(&json, "text", result->text);
    return cli_print_json(&json);
}

static tr_status write_file(const char *directory, const char *name, const char *text)
{
    char *path = tr_path_join(directory, name);
    if (!path) return TR_ENOMEM;
    tr_status status = tr_file_write_atomic(NULL, path, text, strlen(text));
    tr_free(path);
    return status;
}

static tr_status write_case(const char *directory, const struct tr_dispute_result *result)
{
    if (!result->referee) {
        cli_message("no case was written: the dispute did not end at a number that a referee can compute");
        return TR_OK;
    }
    TR_TRY(tr_file_make_directories(NULL, directory));
    TR_TRY(write_file(directory, "case", result->referee));
    char *referee;
    TR_TRY(cli_text("referee", &referee));
    tr_status status = write_file(directory, "referee.c", referee);
    tr_free(referee);
    return status;
}

static tr_status conclude(const struct options *options, const struct tr_dispute_result *result)
{
    if (options->output) TR_TRY(write_case(options->output, result));
    if (options->json) {
        TR_TRY(print_json(result));
    } else {
        if (result->step > 0) cli_printf("step        %" PRId64 "\n", result->step);
        if (result->place[0]) cli_printf("number      %s\n", result->place);
        cli_printf("questions   %" PRId64 ", opened %" PRId64 ", %" PRId64 " bytes\n", result->questions,
                   result->opened, result->bytes);
        cli_printf("%s: %s\n", outcomes[result->outcome].line, result->text);
    }
    if (outcomes[result->outcome].code) cli_output_leave_with(outcomes[result->outcome].code);
    return TR_OK;
}

static tr_status settle(const struct options *options, const struct tr_party_settings *settings)
{
    struct side side[2] = {{.speaker = {.process = 0}}, {.speaker = {.process = 0}}};
    struct tr_dispute_side asked[2];
    struct tr_dispute_result result = {.outcome = TR_DISPUTE_OPEN};
    tr_status status = open_side(settings, options->a, &side[0], &asked[0]);
    if (status == TR_OK) status = open_side(settings, options->b, &side[1], &asked[1]);
    if (status == TR_OK) status = tr_dispute_settle(settings, asked, &result);
    for (int i = 0; i < 2; i++) {
        tr_party_destroy(&side[i].party);
        cli_speaker_end(&side[i].speaker);
    }
    if (status == TR_OK) status = conclude(options, &result);
    tr_dispute_release(&result);
    return status;
}

static tr_status answer(const struct options *options, const struct tr_party_settings *given)
{
    struct tr_party_settings settings = *given;
    tr_party *party;
    settings.path = options->answer;
    TR_TRY(tr_party_create(&settings, &party));
    tr_status status = cli_speaker_answer(party);
    tr_party_destroy(&party);
    return status;
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    char *cache = NULL;
    tr_stop *stop;
    if (options->answer ? options->a != NULL : !options->a || !options->b)
        return tr_fail(TR_EINVAL,
                       "name two receipts, directories of runs, or commands after \"|\"; or one with "
                       "--answer");
    TR_TRY(tr_stop_create(&stop));
    cli_signals_catch(NULL, options->answer ? NULL : "stopping the dispute");
    cli_signals_stop(stop); /* between two questions a party may repeat steps for minutes */
    tr_status status = cli_data_cache_directory(&options->cache, &cache);
    const struct tr_party_settings settings = settings_of(options, cache, stop);
    if (status == TR_OK) status = options->answer ? answer(options, &settings) : settle(options, &settings);
    tr_free(cache);
    cli_signals_release();
    tr_stop_destroy(&stop);
    return status;
}

static const struct tr_option_group groups[] = {
    {"Parties", "answer model set from"},
    {"Output", "output json"},
    {"For experts", NULL},
    {NULL, NULL},
};

const struct cli_command cli_dispute = {
    .name = "dispute",
    .summary = "find the first number in which two runs differ, and which run is right",
    .about =
        "Finds the first number in which two runs differ. Each party repeats its own run and answers "
        "questions about it. Bisection leads to the first boundary that differs, then the step, the "
        "operation and the number, which is computed from the inputs on which both agree. The last line "
        "names the party that is right. The exit code is 0 if the runs are equal, 6 if they differ, 7 if "
        "no decision is possible.",
    CLI_OPTIONS(table, struct options),
    .groups = groups,
    .run = run,
};
