/* trireme export: the network of a checkpoint for other programs. */
#include "cli/program/commands.h"
#include "cli/terminal/output.h"
#include "cli/use/predictor.h"

#include "base/fail.h"
#include "export/formats.h"

#include <stdio.h>

struct options {
    struct cli_common common;
    char *checkpoint, *name;
    bool average, best, merge, half;
    int32_t layout; /* enum tr_layout */
#define ADD_FIELD(id, text, value) char *id;
    TR_EXPORT_FORMATS(ADD_FIELD)
#undef ADD_FIELD
};

static const struct tr_choice layouts[] = {
    {"auto", TR_LAYOUT_AUTO, "torch beside --torch, else trireme"},
    {"trireme", TR_LAYOUT_TRIREME, "as in a checkpoint"},
    {"torch", TR_LAYOUT_TORCH, "as PyTorch's load_state_dict() wants them"},
    {NULL, 0},
};

#define AT(field) offsetof(struct options, field)
#define ADD_OPTION(id, text, value)                                                                          \
    {.key = #id,                                                                                             \
     .type = TR_OPTION_STRING,                                                                               \
     .offset = AT(id),                                                                                       \
     .fallback = "",                                                                                         \
     .help = "write " text,                                                                                  \
     .value_name = value},
static const struct tr_option table[] = {
    CLI_OPTION_CHECKPOINT(struct options),
    TR_EXPORT_FORMATS(ADD_OPTION){
        .key = "layout",
        .type = TR_OPTION_CHOICE,
        .offset = AT(layout),
        .fallback = "auto",
        .choices = layouts,
        .help = "names and shapes of the tensors; auto: torch with --torch, else trireme",
    },
    {
        .key = "name",
        .type = TR_OPTION_STRING,
        .offset = AT(name),
        .fallback = "",
        .help = "name of the network in the files; default: the job's name",
        .value_name = "NAME",
    },
    {
        .key = "merge",
        .type = TR_OPTION_BOOL,
        .offset = AT(merge),
        .fallback = "false",
        .help = "add adapters to the weights that they adapt",
    },
    {
        .key = "half",
        .type = TR_OPTION_BOOL,
        .offset = AT(half),
        .fallback = "false",
        .help = "numbers of 16 bits in --hub and --gguf",
    },
    CLI_OPTION_BEST(struct options),
    CLI_OPTION_AVERAGE(struct options),
    CLI_OPTION_HELP(struct options),
};
#undef ADD_OPTION
#undef AT

/* The paths for the formats, in their order; NULL for unwanted ones. */
struct target {
    const char *format, *path;
};

static tr_status write_all(const struct options *options, const struct target *targets, int count)
{
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    settings.checkpoint = options->checkpoint;
    settings.use_average = options->average;
    settings.best = options->best;
    settings.layout = (enum tr_layout)options->layout;
    if (settings.layout == TR_LAYOUT_AUTO)
        settings.layout = options->torch ? TR_LAYOUT_TORCH : TR_LAYOUT_TRIREME;
    settings.name = options->name;
    settings.merge = options->merge;
    settings.half = options->half;
    TR_TRY(tr_exporter_create(&settings, &exporter));
    cli_warnings(tr_exporter_skipped(exporter));
    tr_status status = TR_OK;
    for (int i = 0; i < count && status == TR_OK; i++) {
        if (!targets[i].path) continue;
        status = tr_exporter_write(exporter, targets[i].format, targets[i].path);
        if (status == TR_OK) cli_printf("%-12s %s\n", targets[i].format, targets[i].path);
    }
    tr_exporter_destroy(&exporter);
    return status;
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
#define ADD_TARGET(id, text, value) {#id, options->id},
    const struct target targets[] = {TR_EXPORT_FORMATS(ADD_TARGET)};
#undef ADD_TARGET
    const int count = (int)(sizeof targets / sizeof targets[0]);
    bool any = false;
    for (int i = 0; i < count; i++) any |= targets[i].path != NULL;
    if (!any)
        return tr_fail(TR_EINVAL, "nothing to write; give a format with its file, for instance --%s FILE",
                       targets[0].format);
    return write_all(options, targets, count);
}

const struct cli_command cli_export = {
    .name = "export",
    .summary = "write a trained network for other programs",
    .about = "Writes the network of a checkpoint as files for other programs, in one or several formats.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
