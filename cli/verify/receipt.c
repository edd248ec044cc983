/* trireme receipt: converts a receipt to a format of other programs. */
#include "base/fail.h"
#include "cli/program/commands.h"
#include "cli/terminal/output.h"
#include "trireme/receipt.h"

enum form { JSON, IN_TOTO, CYCLONEDX };

struct options {
    struct cli_common common;
    char *path, *output;
    int32_t format; /* enum form */
};

static const struct tr_choice formats[] = {
    {"json", JSON, "the receipt itself"},
    {"in-toto", IN_TOTO, "a Statement, version 1, with SLSA's predicate of provenance"},
    {"cyclonedx", CYCLONEDX, "a bill of materials, version 1.6, with a model card"},
    {NULL, 0, NULL},
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    {.key = "path",
     .type = TR_OPTION_STRING,
     .offset = AT(path),
     .fallback = NULL,
     .help = "a receipt, or the directory of a run",
     .flags = TR_OPTION_POSITIONAL,
     .value_name = "RECEIPT|RUN"},
    {.key = "format",
     .type = TR_OPTION_CHOICE,
     .offset = AT(format),
     .fallback = "json",
     .choices = formats,
     .help = "form to write"},
    {.key = "output",
     .type = TR_OPTION_STRING,
     .offset = AT(output),
     .fallback = "",
     .help = "file to write; default: standard output",
     .letter = 'o',
     .value_name = "FILE"},
    CLI_OPTION_HELP(struct options),
};
#undef AT

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    char *text;
    TR_TRY(tr_receipt_form(options->path, formats[options->format].name, &text));
    if (options->output) return cli_output_file(options->output, text);
    cli_print(text);
    return TR_OK;
}

const struct cli_command cli_receipt = {
    .name = "receipt",
    .summary = "write a receipt in a form that other programs read",
    .about = "Checks the receipt of a run and writes it as it is, as a Statement of in-toto or as a bill of "
             "materials of CycloneDX, to be signed by another program.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
