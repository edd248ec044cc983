/* trireme generate: text from a trained language model, printed as it is drawn. */
#include "cli/program/commands.h"
#include "cli/terminal/output.h"
#include "cli/use/predictor.h"

#include "base/fail.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct options {
    struct cli_common common;
    char *checkpoint, *prompt, *source;
    int64_t tokens, seed, context;
    double temperature;
    int32_t top_k;
    bool echo, average, best;
    struct cli_device device;
    struct cli_data_cache cache;
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    CLI_OPTION_CHECKPOINT(struct options),
    {.key = "prompt",
     .type = TR_OPTION_STRING,
     .offset = AT(prompt),
     .fallback = "",
     .help =
         "the beginning of the text; default: a line feed, or nothing where the network writes whole texts",
     .letter = 'p',
     .value_name = "TEXT"},
    {.key = "source",
     .type = TR_OPTION_STRING,
     .offset = AT(source),
     .fallback = "",
     .help = "the text to translate, for a network that was trained on two texts",
     .value_name = "TEXT"},
    {.key = "tokens",
     .type = TR_OPTION_INT64,
     .offset = AT(tokens),
     .fallback = "500",
     .least = 1,
     .most = 1 << 30,
     .help =
         "most tokens to generate: characters, bytes or words, as the network was trained; a network that "
         "writes whole texts may end before",
     .letter = 'n'},
    {.key = "temperature",
     .type = TR_OPTION_DOUBLE,
     .offset = AT(temperature),
     .fallback = "-1",
     .least = -1,
     .most = 1e6,
     .help = "1: draw by the network's probabilities; less: prefer likelier tokens; 0: take the likeliest; "
             "-1: 0 with --source, else 1",
     .letter = 'T'},
    {.key = "top_k",
     .type = TR_OPTION_INT32,
     .offset = AT(top_k),
     .fallback = "0",
     .most = 1 << 24,
     .help = "draw from the N likeliest tokens only; 0: from all",
     .letter = 'k'},
    {.key = "seed",
     .type = TR_OPTION_INT64,
     .offset = AT(seed),
     .fallback = "1",
     .most = TR_OPTION_WHOLE,
     .help = "seed of the draws: equal seeds give equal texts on any machine",
     .letter = 's'},
    {.key = "context",
     .type = TR_OPTION_INT64,
     .offset = AT(context),
     .fallback = "0",
     .most = 1 << 30,
     .help = "the network sees at most the last N tokens; 0: as many as it can"},
    {.key = "echo",
     .type = TR_OPTION_BOOL,
     .offset = AT(echo),
     .fallback = "true",
     .help = "print the prompt in front of the text"},
    CLI_OPTION_AVERAGE(struct options),
    CLI_OPTION_BEST(struct options),
    CLI_OPTION_DEVICE(struct options),
    CLI_OPTION_DATA_CACHE(struct options),
    CLI_OPTION_HELP(struct options),
};

/* The text as it is printed. */
struct printing {
    const char *before; /* printed before the first piece, once */
    bool tame;          /* for a terminal, control characters are replaced; a pipe or file gets the text
                           unchanged */
    char held[4];       /* the beginning of a character whose rest will follow */
    size_t held_size;
};

static void print_tame(struct printing *printing, const char *text, size_t length)
{
    char piece[512];
    while (length > 0) {
        size_t held = printing->held_size,
               taken = sizeof piece - held < length ? sizeof piece - held : length;
        memcpy(piece, printing->held, held);
        memcpy(piece + held, text, taken);
        size_t size = held + taken, unfinished = cli_output_unfinished(piece, size);
        cli_output_put(stdout, piece, size - unfinished);
        memcpy(printing->held, piece + size - unfinished, unfinished);
        printing->held_size = unfinished;
        text += taken;
        length -= taken;
    }
}

static void print_text(struct printing *printing, const char *text, size_t length)
{
    if (printing->tame)
        print_tame(printing, text, length);
    else
        cli_output_raw(text, length);
}

static int print_piece(void *user, const char *piece, size_t length)
{
    struct printing *printing = user;
    print_text(printing, printing->before, strlen(printing->before));
    printing->before = "";
    print_text(printing, piece, length);
    return !cli_output_flush();
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    struct tr_generate_settings settings = TR_GENERATE_SETTINGS_INIT;
    tr_predictor *predictor;
    TR_TRY(cli_predictor_create(options->checkpoint, options->best, &options->device, &options->cache,
                                options->average, &predictor));
    if (options->prompt) settings.prompt = options->prompt;
    settings.tokens = options->tokens;
    settings.source = options->source;
    settings.temperature = options->temperature >= 0 ? options->temperature : options->source ? 0 : 1;
    settings.top_k = options->top_k;
    settings.seed = (uint64_t)options->seed;
    settings.context = options->context;
    struct printing printing = {
        .before = options->echo && options->prompt ? options->prompt : "",
        .tame = isatty(STDOUT_FILENO),
    };
    tr_status status = tr_predictor_generate(predictor, &settings, print_piece, &printing);
    if (status == TR_OK) print_text(&printing, "\n", 1);
    tr_predictor_destroy(&predictor);
    return status == TR_EINTERRUPTED ? TR_OK : status; /* the reader has gone */
}

const struct cli_command cli_generate = {
    .name = "generate",
    .summary = "let a trained language model write text",
    .about = "Prints text that the network of a checkpoint generates, token by token, after a prompt. The "
             "same checkpoint, prompt and seed give the same text on any machine.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
