/* trireme predict: what a trained network makes of images, texts and numbers. */
#include "cli/use/answer.h"
#include "cli/program/commands.h"
#include "cli/terminal/output.h"
#include "cli/use/predictor.h"
#include "cli/terminal/terminal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/images/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    struct cli_common common;
    char *checkpoint, *set_name, *data, *idx;
    struct tr_string_list image, text;
    struct tr_float_list values;
    struct tr_int_list index;
    int32_t fit, top;
    bool invert, show, average, best, json;
    struct cli_device device;
    struct cli_data_cache cache;
};

static const struct tr_choice fits[] = {
    {"exact", TR_IMAGE_EXACT, "it must have that size"},
    {"crop", TR_IMAGE_CROP, "the middle is cut out"},
    {"scale", TR_IMAGE_SCALE, "it is scaled"},
    {NULL, 0, NULL},
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    CLI_OPTION_CHECKPOINT(struct options),
    {.key = "image",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(image),
     .fallback = "",
     .help = "a PNG or JPEG image; may be given several times",
     .letter = 'i',
     .value_name = "FILE"},
    {.key = "fit",
     .type = TR_OPTION_CHOICE,
     .offset = AT(fit),
     .fallback = "exact",
     .choices = fits,
     .help = "how an --image is brought to the size that the network takes",
     .value_name = "HOW"},
    {.key = "invert",
     .type = TR_OPTION_BOOL,
     .offset = AT(invert),
     .fallback = "false",
     .help = "swap dark and bright in each --image: for dark digits on white paper"},
    {.key = "idx",
     .type = TR_OPTION_STRING,
     .offset = AT(idx),
     .fallback = "",
     .help = "an IDX file of images, plain or gzip, of which --index are taken",
     .value_name = "FILE"},
    CLI_OPTION_SET_NAME(struct options, ""),
    CLI_OPTION_DATA(struct options),
    {.key = "index",
     .type = TR_OPTION_INT_LIST,
     .offset = AT(index),
     .fallback = "0",
     .least = 0,
     .most = TR_OPTION_WHOLE,
     .help = "numbers of examples, from 0, of --idx, --set-name or --data",
     .letter = 'n'},
    {.key = "text",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(text),
     .fallback = "",
     .help = "a text; may be given several times; without any input, lines are read from standard input",
     .letter = 'x',
     .value_name = "LINE"},
    {.key = "values",
     .type = TR_OPTION_FLOAT_LIST,
     .offset = AT(values),
     .fallback = "",
     .help = "the numbers of one example, for networks that take numbers"},
    {.key = "top",
     .type = TR_OPTION_INT32,
     .offset = AT(top),
     .fallback = "3",
     .least = 1,
     .most = 1000,
     .help = "classes to print, the likeliest first",
     .letter = 'k'},
    {.key = "show",
     .type = TR_OPTION_BOOL,
     .offset = AT(show),
     .fallback = "false",
     .help = "draw images with characters"},
    CLI_OPTION_BEST(struct options),
    CLI_OPTION_AVERAGE(struct options),
    CLI_OPTION_JSON(struct options),
    CLI_OPTION_DEVICE(struct options),
    CLI_OPTION_DATA_CACHE(struct options),
    CLI_OPTION_HELP(struct options),
};
#undef AT

/* A predictor at work. */
struct work {
    const struct options *options;
    tr_predictor *predictor;
    struct tr_predict_info info;
    struct cli_answer answer;
    float *output; /* [info.outputs] */
};

static bool shows(const struct work *work)
{
    return work->options->show && !work->options->json;
}

/* ---- image files ---- */

static tr_status show_image(const struct work *work, const uint8_t *pixels)
{
    struct tr_image_size size = {work->info.height, work->info.width, work->info.channels};
    char *text;
    TR_TRY(tr_image_show(pixels, size, cli_terminal_width(STDOUT_FILENO), &text));
    cli_print(text);
    return TR_OK;
}

static tr_status read_image(const struct work *work, const char *path, uint8_t **out)
{
    struct tr_image_size size, wanted = {work->info.height, work->info.width, work->info.channels};
    uint8_t *stored = NULL, *pixels = NULL;
    if (work->info.features != TR_FEATURE_IMAGE || (wanted.channels != 1 && wanted.channels != 3))
        return tr_fail(TR_EINVAL, "--image: the network \"%s\" does not take grey or colour images",
                       work->info.name);
    TR_TRY(tr_image_read(path, wanted.channels, &size, &stored));
    size_t bytes = (size_t)wanted.height * (size_t)wanted.width * (size_t)wanted.channels;
    tr_status status = TR_ENOMEM;
    pixels = tr_alloc(bytes, 1);
    if (!pixels) goto out;
    TR_TRY_GOTO(tr_image_fit(path, (enum tr_image_fit)work->options->fit, stored, size, pixels, wanted), out);
    for (size_t i = 0; work->options->invert && i < bytes; i++) pixels[i] = (uint8_t)(255 - pixels[i]);
    *out = pixels;
    pixels = NULL;
out:
    tr_free(pixels);
    tr_free(stored);
    return status;
}

static tr_status predict_image(const struct work *work, const char *path)
{
    uint8_t *pixels = NULL;
    TR_TRY(read_image(work, path, &pixels));
    tr_status status = tr_predictor_image(work->predictor, pixels, work->output);
    if (status == TR_OK && shows(work)) status = show_image(work, pixels);
    if (status == TR_OK) status = cli_answer_print(&work->answer, path, work->output, -1);
    tr_free(pixels);
    return status;
}

/* ---- examples of a data set ---- */

static tr_status show_example(const tr_source *source, int64_t index)
{
    char *text;
    TR_TRY(tr_source_show(source, index, 1, cli_terminal_width(STDOUT_FILENO), &text));
    cli_print(text);
    return TR_OK;
}

static tr_status predict_example(const struct work *work, const tr_source *source, const char *name,
                                 int64_t index)
{
    const struct tr_source_info *facts = tr_source_info(source);
    char input[512];
    int32_t label = -1;
    if (index >= facts->count)
        return tr_fail(TR_EINVAL,
                       "--index: there is no example %" PRId64 "; %s has %" PRId64 ", counted from 0", index,
                       name, facts->count);
    TR_TRY(tr_predictor_source(work->predictor, source, index, 1, work->output));
    if (facts->labels == TR_LABEL_CLASS) TR_TRY(tr_source_read(source, index, NULL, 0, NULL, &label));
    if (shows(work)) TR_TRY(show_example(source, index));
    snprintf(input, sizeof input, "%s[%" PRId64 "]", name, index);
    return cli_answer_print(&work->answer, input, work->output, label);
}

static tr_status predict_set(const struct work *work, const char *set_name, const char *data,
                             const char *name)
{
    tr_source *source;
    tr_status status = TR_OK;
    TR_TRY(cli_predictor_open(work->predictor, set_name, data, &source));
    for (int32_t i = 0; i < work->options->index.count && status == TR_OK; i++)
        status = predict_example(work, source, name, work->options->index.item[i]);
    tr_source_close(&source);
    return status;
}

static tr_status predict_idx(const struct work *work, const char *path)
{
    struct tr_text text = TR_TEXT_INIT;
    char *description;
    tr_text_add(&text, "{idx: {images: ");
    tr_text_add_quoted(&text, path);
    tr_text_add(&text, "}}");
    TR_TRY(tr_text_finish(&text, &description));
    tr_status status = predict_set(work, NULL, description, path);
    tr_free(description);
    return status;
}

/* ---- texts ---- */

static tr_status predict_text(const struct work *work, const char *text)
{
    TR_TRY(tr_predictor_text(work->predictor, text, work->output));
    return cli_answer_print(&work->answer, text, work->output, -1);
}

/* One text a line. Answers are written at once, so that a program at the other end of two pipes can wait for
 * them. */
static tr_status predict_lines(const struct work *work)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    tr_status status = TR_OK;
    if (isatty(STDIN_FILENO)) cli_message("type a text a line; Ctrl-D ends");
    while (status == TR_OK && (length = getline(&line, &room, stdin)) >= 0) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) line[--length] = '\0';
        if (line[strspn(line, " \t")] == '\0') continue;
        status = predict_text(work, line);
        if (!cli_output_flush()) break;
    }
    if (status == TR_OK && ferror(stdin)) status = tr_fail(TR_EIO, "standard input could not be read");
    free(line);
    return status;
}

/* ---- all of it ---- */

static tr_status predict_values(const struct work *work)
{
    const struct tr_float_list *values = &work->options->values;
    if (work->info.floats > 0 && values->count != work->info.floats)
        return tr_fail(TR_EINVAL, "--values: %" PRId32 " numbers, the network takes %" PRId32, values->count,
                       work->info.floats);
    TR_TRY(tr_predictor_floats(work->predictor, values->item, work->output));
    return cli_answer_print(&work->answer, "values", work->output, -1);
}

static tr_status predict_all(const struct work *work)
{
    const struct options *options = work->options;
    bool any = options->image.count || options->idx || options->set_name || options->data ||
               options->values.count || options->text.count;
    for (int32_t i = 0; i < options->image.count; i++) TR_TRY(predict_image(work, options->image.item[i]));
    if (options->idx) TR_TRY(predict_idx(work, options->idx));
    if (options->set_name) TR_TRY(predict_set(work, options->set_name, NULL, options->set_name));
    if (options->data) TR_TRY(predict_set(work, NULL, options->data, "data"));
    if (options->values.count) TR_TRY(predict_values(work));
    for (int32_t i = 0; i < options->text.count; i++) TR_TRY(predict_text(work, options->text.item[i]));
    if (any) return TR_OK;
    if (work->info.features == TR_FEATURE_TOKENS) return predict_lines(work);
    return tr_fail(TR_EINVAL, "nothing to predict; give %s",
                   work->info.features == TR_FEATURE_IMAGE
                       ? "--image FILE, --idx FILE or --set-name test, the last two with --index N"
                   : work->info.floats == 0
                       ? "--set-name test, or --data with a `join` of sources, both with --index N"
                       : "--values X,... or --set-name test with --index N");
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    struct work work = {.options = options, .info = TR_PREDICT_INFO_INIT};
    tr_status status;
    TR_TRY_GOTO(cli_predictor_create(options->checkpoint, options->best, &options->device, &options->cache,
                                     options->average, &work.predictor),
                out);
    TR_TRY_GOTO(tr_predictor_info(work.predictor, &work.info), out);
    work.answer = (struct cli_answer){.info = &work.info, .top = options->top, .json = options->json};
    work.output = tr_alloc((size_t)work.info.outputs, sizeof *work.output);
    status = work.output ? predict_all(&work) : TR_ENOMEM;
out:
    tr_free(work.output);
    tr_predictor_destroy(&work.predictor);
    return status;
}

const struct cli_command cli_predict = {
    .name = "predict",
    .summary = "use a trained network on images, texts or numbers",
    .about = "Prints what the network of a checkpoint makes of images, texts, numbers, or examples of a data "
             "set: the "
             "likeliest classes with their probabilities, or the computed values.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
