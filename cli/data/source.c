/* trireme data show, trireme data convert: looking at examples and writing them out in another format. */
#include "cli/data/data.h"

#include "cli/terminal/output.h"
#include "cli/terminal/terminal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/counted.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* ---- show ---- */

struct show_options {
    struct cli_common common;
    char *what, *part, *directory;
    int64_t first, count;
};

static const struct tr_option show_table[] = {
    CLI_OPTION_WHAT(struct show_options),
    CLI_OPTION_PART(struct show_options, "train", ""),
    CLI_OPTION_DIRECTORY(struct show_options),
    {.key = "first",
     .type = TR_OPTION_INT64,
     .offset = offsetof(struct show_options, first),
     .fallback = "0",
     .least = 0,
     .most = TR_OPTION_WHOLE,
     .help = "number of the first example, from 0",
     .letter = 'f'},
    {.key = "count",
     .type = TR_OPTION_INT64,
     .offset = offsetof(struct show_options, count),
     .fallback = "3",
     .least = 1,
     .most = TR_OPTION_WHOLE,
     .help = "examples to show",
     .letter = 'n'},
    CLI_OPTION_HELP(struct show_options),
};

/* "60,000 examples: images 28x28x1, 10 classes". */
static void print_facts(const struct tr_source_info *info)
{
    char number[TR_COUNTED_SIZE];
    cli_printf("%s: ", tr_counted_long(info->count, "example", number));
    if (info->features == TR_FEATURE_IMAGE)
        cli_printf("images %" PRId32 "x%" PRId32 "x%" PRId32, info->height, info->width, info->channels);
    else if (info->features == TR_FEATURE_FLOATS && info->height > 0)
        cli_printf("images of numbers %" PRId32 "x%" PRId32 "x%" PRId32, info->height, info->width,
                   info->channels);
    else if (info->features == TR_FEATURE_FLOATS)
        cli_printf("%s numbers each", tr_text_from_count(info->floats, number));
    else
        cli_printf("texts of up to %" PRId32 " %s", info->max_tokens,
                   info->labels == TR_LABEL_TOKENS ? "tokens" : "words");
    if (info->features == TR_FEATURE_TOKENS)
        cli_printf(", %s different", tr_text_from_count(info->vocabulary, number));
    if (info->labels == TR_LABEL_CLASS)
        cli_printf(", %" PRId32 " classes\n", info->classes);
    else if (info->labels == TR_LABEL_VALUES)
        cli_printf(", %" PRId32 " target value%s each\n", info->values, info->values == 1 ? "" : "s");
    else if (info->labels == TR_LABEL_TOKENS)
        cli_printf(", a label for each token\n");
    else if (info->labels == TR_LABEL_PIXELS)
        cli_printf(", a label for each pixel, %" PRId32 " classes\n", info->classes);
    else
        cli_printf(", no labels\n");
}

static tr_status run_show(const void *options_)
{
    const struct show_options *options = options_;
    tr_source *source;
    char *text;
    TR_TRY(cli_data_open(options->what, options->part, options->directory, &source));
    tr_status status =
        tr_source_show(source, options->first, options->count, cli_terminal_width(STDOUT_FILENO), &text);
    if (status == TR_OK) {
        print_facts(tr_source_info(source));
        cli_print(text);
    }
    tr_source_close(&source);
    return status;
}

const struct cli_command cli_data_show = {
    .name = "data show",
    .summary = "print examples: images as characters, texts, numbers",
    .about = "Prints the kind and size of a data set and some of its examples: images drawn with characters, "
             "texts, numbers.",
    CLI_OPTIONS(show_table, struct show_options),
    .run = run_show,
};

/* ---- convert ---- */

struct convert_options {
    struct cli_common common;
    char *what, *path, *part, *directory, *format, *packing;
};

static const struct tr_option convert_table[] = {
    CLI_OPTION_WHAT(struct convert_options),
    {.key = "path",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct convert_options, path),
     .fallback = NULL,
     .help = "file to write; for idx the prefix of its files: PATH-images-idx3-ubyte, PATH-labels-idx1-ubyte",
     .flags = TR_OPTION_POSITIONAL},
    CLI_OPTION_PART(struct convert_options, "",
                    "; default: all, each to PATH/PART.tfrecord or PATH/PART-..."),
    CLI_OPTION_DIRECTORY(struct convert_options),
    {.key = "format",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct convert_options, format),
     .fallback = "tfrecord",
     .help = "format to write: tfrecord or idx",
     .letter = 'f',
     .value_name = "NAME"},
    {.key = "packing",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct convert_options, packing),
     .fallback = "none",
     .help = "compression of a tfrecord file: none, gzip or zlib",
     .value_name = "NAME"},
    CLI_OPTION_HELP(struct convert_options),
};

/* Converts one part, or the data of a description. */
static tr_status convert_to(const struct convert_options *options, const char *part, const char *path)
{
    tr_source *source;
    char number[TR_COUNTED_SIZE];
    TR_TRY(cli_data_open(options->what, part, options->directory, &source));
    tr_status status = tr_source_convert(source, options->format, options->packing, path);
    if (status == TR_OK)
        cli_printf("wrote %s to %s\n", tr_counted_long(tr_source_info(source)->count, "example", number),
                   path);
    tr_source_close(&source);
    return status;
}

static tr_status convert_all(const struct convert_options *options, const struct tr_data_set_info *set)
{
    const char *suffix = strcmp(options->format, "idx") == 0 ? "" : ".";
    TR_TRY(tr_file_make_directories(NULL, options->path));
    for (int i = 0; set->parts[i]; i++) {
        char *path =
            tr_format("%s/%s%s%s", options->path, set->parts[i], suffix, *suffix ? options->format : "");
        if (!path) return TR_ENOMEM;
        tr_status status = convert_to(options, set->parts[i], path);
        tr_free(path);
        if (status != TR_OK) return status;
    }
    return TR_OK;
}

static tr_status run_convert(const void *options_)
{
    const struct convert_options *options = options_;
    const struct tr_data_set_info *set;
    if (options->part) return convert_to(options, options->part, options->path);
    for (int i = 0; (set = tr_data_set_at(i)) != NULL; i++)
        if (strcmp(set->name, options->what) == 0) return convert_all(options, set);
    /* A description, or an unknown name, which is refused with the nearest one. */
    return convert_to(options, "train", options->path);
}

const struct cli_command cli_data_convert = {
    .name = "data convert",
    .summary = "write a data set in another format",
    .about = "Writes all examples of a data set as TFRecord or IDX files. In TFRecord files the features of "
             "images are "
             "called image_raw, pixels and label.",
    CLI_OPTIONS(convert_table, struct convert_options),
    .run = run_convert,
};
