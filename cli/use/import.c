/* trireme import: a network from a file of another program. */
#include "cli/program/commands.h"
#include "cli/terminal/output.h"
#include "cli/train/run_directory.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "trireme/trireme.h"

#include <stdio.h>
#include <string.h>

struct options {
    struct cli_common common;
    char *file, *model, *out;
    struct tr_string_list set, rename;
    int32_t layout; /* enum tr_layout */
    char *prefix, *text, *base;
    bool partial, overwrite;
};

static const struct tr_choice layouts[] = {
    {"auto", TR_LAYOUT_AUTO, "as its header says, torch where that says nothing"},
    {"torch", TR_LAYOUT_TORCH, "as PyTorch has them"},
    {"trireme", TR_LAYOUT_TRIREME, "as in a checkpoint"},
    {NULL, 0},
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    {.key = "file",
     .type = TR_OPTION_STRING,
     .offset = AT(file),
     .fallback = NULL,
     .help = "a safetensors file; or a directory of Hugging Face (config.json, model.safetensors, tokenizer) "
             "with "
             "GPT-2, Llama, Mistral, Qwen2, BERT, DistilBERT or RoBERTa, which needs no --model; or a "
             "directory of PEFT "
             "with adapters of "
             "such a network, with --base",
     .flags = TR_OPTION_POSITIONAL},
    {.key = "model",
     .type = TR_OPTION_STRING,
     .offset = AT(model),
     .fallback = "",
     .help = CLI_MODEL_HELP "; its training data are read, too",
     .letter = 'm',
     .value_name = "FILE"},
    CLI_OPTION_SET(struct options),
    {.key = "out",
     .type = TR_OPTION_STRING,
     .offset = AT(out),
     .fallback = "",
     .help = "directory for the checkpoint; default: runs/NAME after the job",
     .letter = 'o',
     .value_name = "DIR"},
    {.key = "layout",
     .type = TR_OPTION_CHOICE,
     .offset = AT(layout),
     .fallback = "auto",
     .choices = layouts,
     .help = "names and shapes of the tensors in the file; auto: as its header says, else torch"},
    {.key = "rename",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(rename),
     .fallback = "",
     .help = "name of a layer in the file, for instance features.0=conv1, or of a tensor: "
             "h.*.attn.c_attn.weight^T=attn*.in_proj_weight, where * is a number and ^T transposes; nothing "
             "on the right: ignore it. May be given several times",
     .value_name = "NAME=LAYER"},
    {.key = "prefix",
     .type = TR_OPTION_STRING,
     .offset = AT(prefix),
     .fallback = "",
     .help = "prefix of names in the file that is removed, for instance transformer.",
     .value_name = "TEXT"},
    {.key = "text",
     .type = TR_OPTION_STRING,
     .offset = AT(text),
     .fallback = "",
     .help = "with a directory, the file of text to train on; of encoders like BERT, of texts as numbers of "
             "tokens",
     .value_name = "FILE"},
    {.key = "base",
     .type = TR_OPTION_STRING,
     .offset = AT(base),
     .fallback = "",
     .help = "with a directory of PEFT, the run with the network beside which its adapters stand",
     .value_name = "RUN"},
    {.key = "partial",
     .type = TR_OPTION_BOOL,
     .offset = AT(partial),
     .fallback = "false",
     .help = "take the tensors that fit the network; the others start as the model file says"},
    {.key = "overwrite",
     .type = TR_OPTION_BOOL,
     .offset = AT(overwrite),
     .fallback = "false",
     .help = "remove the checkpoints and files for TensorBoard of the directory, once the file has been read "
             "and fits"},
    CLI_OPTION_HELP(struct options),
};
#undef AT

static tr_status run_import(const struct options *options, const char *out)
{
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    char *path;
    settings.file = options->file;
    settings.model = options->model;
    settings.set = (const char *const *)options->set.item;
    settings.set_count = options->set.count;
    settings.out = out;
    settings.layout = (enum tr_layout)options->layout;
    settings.rename = (const char *const *)options->rename.item;
    settings.rename_count = options->rename.count;
    settings.partial = options->partial;
    settings.overwrite = options->overwrite;
    settings.prefix = options->prefix;
    settings.text = options->text;
    settings.base = options->base;
    TR_TRY(tr_import(&settings, &path));
    char *word = tr_text_word(out);
    if (word) cli_printf("checkpoint  %s\nnext        trireme train --resume %s\n", path, word);
    tr_free(word);
    tr_text_free(path);
    return word ? TR_OK : TR_ENOMEM;
}

/* "b" from "a/b" and "a/b/": the run is named after the directory. */
static const char *last_name(char *path)
{
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--) path[n - 1] = 0;
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    if (options->out) return run_import(options, options->out);
    char *out;
    if (options->model)
        TR_TRY(cli_run_directory(options->model, &options->set, NULL, &out));
    else
        out = tr_format("runs/%s", last_name(options->file));
    if (!out) return TR_ENOMEM;
    tr_status status = run_import(options, out);
    tr_free(out);
    return status;
}

const struct cli_command cli_import = {
    .name = "import",
    .summary = "make a checkpoint from the weights of another program",
    .about =
        "Makes a checkpoint of step 0 from the tensors of a safetensors file and a model file, or from a "
        "directory of Hugging Face, whose model file is written to the run's directory. It can "
        "be trained (--resume), evaluated and used like any other.",
    CLI_OPTIONS(table, struct options),
    .model = offsetof(struct options, model),
    .run = run,
};
