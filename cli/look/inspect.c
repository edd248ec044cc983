/* trireme inspect */
#include "cli/program/commands.h"
#include "cli/terminal/output.h"

#include "base/fail.h"
#include "trireme/trireme.h"

struct options {
    struct cli_common common;
    char *path;
    struct tr_string_list set;
    bool json, layers, manual;
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    {.key = "path",
     .type = TR_OPTION_STRING,
     .offset = AT(path),
     .fallback = "",
     .help = "a model file, the name of one that ships (`trireme models`), a checkpoint, or a run's "
             "directory; files here come first",
     .flags = TR_OPTION_POSITIONAL,
     .value_name = "MODEL|CHECKPOINT"},
    CLI_OPTION_SET(struct options),
    {.key = "layers",
     .type = TR_OPTION_BOOL,
     .offset = AT(layers),
     .fallback = "false",
     .help = "list the kinds of layers and their options",
     .letter = 'l'},
    {.key = "manual",
     .type = TR_OPTION_BOOL,
     .offset = AT(manual),
     .fallback = "false",
     .help = "print the reference of the model file as Markdown"},
    CLI_OPTION_JSON(struct options),
    CLI_OPTION_HELP(struct options),
};
#undef AT

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    char *text;
    if (options->layers + options->manual + (options->path != NULL) != 1)
        return tr_fail(TR_EINVAL, "name a model file or a checkpoint, or give --layers or --manual alone");
    if (options->layers)
        TR_TRY(tr_layers(&text));
    else if (options->manual)
        TR_TRY(tr_manual(&text));
    else
        TR_TRY((options->json ? tr_inspect_json : tr_inspect)(
            options->path, (const char *const *)options->set.item, options->set.count, &text));
    /* JSON and Markdown are not folded to the terminal. */
    (options->json || options->manual ? cli_print : cli_print_lines)(text);
    return TR_OK;
}

const struct cli_command cli_inspect = {
    .name = "inspect",
    .summary = "show layers, shapes, memory and operations of a network",
    .about = "Shows the layers of a model file or checkpoint: shapes, parameters, memory of an example in "
             "training, floating-point operations of its forward pass, the algorithm of a convolution and "
             "the reason; then the memory of a training step.",
    CLI_OPTIONS(table, struct options),
    .model = offsetof(struct options, path),
    .takes_runs = true,
    .run = run,
};
