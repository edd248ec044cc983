/* trireme predict: the outputs of a trained network for images, texts and numbers. */
#include "cli/use/predict.h"

#include "cli/program/commands.h"
#include "cli/use/predictor.h"

#include "base/fail.h"
#include "data/images/image.h"

static const struct tr_choice fits[] = {
    {"exact", TR_IMAGE_EXACT, "it must have that size"},
    {"crop", TR_IMAGE_CROP, "the middle is cut out"},
    {"scale", TR_IMAGE_SCALE, "it is scaled"},
    {NULL, 0, NULL},
};

#define AT(field) offsetof(struct cli_predict_options, field)
static const struct tr_option table[] = {
    CLI_OPTION_CHECKPOINT(struct cli_predict_options),
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
     .help = "how an --image is brought to the size of the network's input",
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
     .help = "an IDX file of images, plain or gzip; --index selects some",
     .value_name = "FILE"},
    CLI_OPTION_SET_NAME(struct cli_predict_options, ""),
    CLI_OPTION_DATA(struct cli_predict_options),
    {.key = "index",
     .type = TR_OPTION_STRING,
     .offset = AT(index),
     .fallback = "",
     .help = "examples of --idx, --set-name or --data, counted from 0: 0-99,200,500-; default: all",
     .letter = 'n',
     .value_name = "RANGES"},
    {.key = "text",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(text),
     .fallback = "",
     .help = "a text; may be given several times",
     .letter = 'x',
     .value_name = "LINE"},
    {.key = "values",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(values),
     .fallback = "",
     .help = "the numbers of an example: 46.1,13.2,,4500; an empty one or NA is missing and is filled in as "
             "in training; may be given several times",
     .value_name = "NUMBERS"},
    {.key = "output",
     .type = TR_OPTION_STRING,
     .offset = AT(output),
     .fallback = "",
     .help = "write all predictions to this file; its ending chooses the format: .csv, .npy (the outputs; of "
             "pixels their classes), .jsonl, or .conll (columns of words and tags)",
     .letter = 'o',
     .value_name = "FILE"},
    {.key = "masks",
     .type = TR_OPTION_STRING,
     .offset = AT(masks),
     .fallback = "",
     .help =
         "of a network that answers for pixels: write the classes of each example's pixels to this folder, "
         "as a PNG of one channel with the name of the image, or the number of the example",
     .value_name = "DIR"},
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
    CLI_OPTION_BEST(struct cli_predict_options),
    CLI_OPTION_AVERAGE(struct cli_predict_options),
    CLI_OPTION_JSON(struct cli_predict_options),
    CLI_OPTION_DEVICE(struct cli_predict_options),
    CLI_OPTION_DATA_CACHE(struct cli_predict_options),
    CLI_OPTION_HELP(struct cli_predict_options),
};
#undef AT

tr_status cli_predict_add_text(struct cli_predict *work, int64_t example, const char *input, char *written,
                               char *truth, bool *unread)
{
    const struct cli_prediction one = {
        .example = example, .input = input, .rows = 1, .written = written, .truth = truth};
    tr_status status = cli_predictions_add(&work->predictions, &one);
    tr_text_free(written);
    tr_text_free(truth);
    *unread = status == TR_OK && !cli_predictions_show(&work->predictions);
    return status;
}

int cli_predict_take(void *user, const struct tr_prediction *prediction)
{
    struct cli_predict_taker *taker = user;
    for (int64_t i = 0; i < prediction->count; i++) {
        const tr_status status = taker->add(taker->user, prediction, i);
        if (status == TR_OK) continue;
        tr_failure_keep(&taker->failure, status); /* the predictor says that it was ended */
        return 1;
    }
    return !cli_predictions_show(&taker->predict->predictions);
}

tr_status cli_predict_taken(const struct cli_predict_taker *taker, tr_status status, bool *unread)
{
    *unread = status == TR_EINTERRUPTED && taker->failure.status == TR_OK;
    if (*unread) return TR_OK;
    return status == TR_EINTERRUPTED ? tr_failure_restore(&taker->failure) : status;
}

tr_status cli_predict_begin(struct cli_predict *work, enum tr_label_kind labels, bool named, int64_t expected)
{
    const struct cli_predict_options *options = work->options;
    struct cli_predictions *predictions = &work->predictions;
    *predictions = (struct cli_predictions){
        .info = &work->info,
        .top = options->top,
        .labels = labels == TR_LABEL_CLASS || labels == TR_LABEL_TOKENS || labels == TR_LABEL_PIXELS,
        .values = labels == TR_LABEL_VALUES,
        .named = named,
        .expected = expected,
        .format = options->json ? &cli_predictions_json : &cli_predictions_text,
        .path = options->output,
        .masks = options->masks,
    };
    if (options->output) TR_TRY(cli_predictions_format(options->output, &predictions->format));
    return cli_predictions_begin(predictions, work->predictor);
}

/* ---- what there is to predict ---- */

/* Ends what an input began. */
static tr_status end(struct cli_predict *work, tr_status status)
{
    if (status == TR_OK) return cli_predictions_end(&work->predictions);
    cli_predictions_abandon(&work->predictions);
    return status;
}

static int inputs_of(const struct cli_predict_options *options)
{
    return !!options->image.count + !!options->idx + !!options->set_name + !!options->data +
           !!options->values.count + !!options->text.count;
}

static tr_status predict_list(struct cli_predict *work, enum tr_feature_kind kind, const char *name,
                              const struct tr_string_list *list)
{
    const struct cli_given given = {kind, name, false, list == &work->options->image};
    return list->count > 0 ? end(work, cli_predict_given(work, &given, list)) : TR_OK;
}

static tr_status predict_all(struct cli_predict *work)
{
    const struct cli_predict_options *options = work->options;
    const bool numbers = work->info.features == TR_FEATURE_FLOATS && work->info.height > 0;
    TR_TRY(predict_list(work, numbers ? TR_FEATURE_FLOATS : TR_FEATURE_IMAGE, "--image", &options->image));
    if (options->idx) TR_TRY(end(work, cli_predict_idx(work)));
    if (options->set_name)
        TR_TRY(end(work, cli_predict_set(work, options->set_name, NULL, options->set_name)));
    if (options->data) TR_TRY(end(work, cli_predict_set(work, NULL, options->data, "data")));
    TR_TRY(predict_list(work, TR_FEATURE_FLOATS, "--values", &options->values));
    TR_TRY(predict_list(work, TR_FEATURE_TOKENS, "--text", &options->text));
    return inputs_of(options) > 0 ? TR_OK : end(work, cli_predict_lines(work));
}

/* Errors that do not depend on the network. */
static tr_status check(const struct cli_predict_options *options)
{
    const struct cli_prediction_format *format;
    if (options->index && !options->idx && !options->set_name && !options->data)
        return tr_fail(TR_EINVAL, "--index: chooses examples of a data set; add --set-name, --data or --idx");
    if (options->show && options->json)
        return tr_fail(TR_EINVAL, "--show: draws for people, and --json is for programs; leave one out");
    if (!options->output) return TR_OK;
    TR_TRY(cli_predictions_format(options->output, &format));
    if (options->json || options->show)
        return tr_fail(TR_EINVAL, "--%s: is for standard output; leave it out, or --output",
                       options->json ? "json" : "show");
    if (inputs_of(options) > 1)
        return tr_fail(TR_EINVAL,
                       "--output: takes one kind of input; leave out all but one of --image, --idx, "
                       "--set-name, --data, --values and --text");
    return TR_OK;
}

static tr_status check_network(const struct cli_predict *work)
{
    if (!work->info.language_model || work->info.two_texts) return TR_OK;
    return tr_fail(
        TR_EINVAL,
        "the network of \"%s\" is a language model, which has no answer to an example; let it write with "
        "`trireme generate %s`, or measure it with `trireme eval %s`",
        work->info.checkpoint, work->options->checkpoint, work->options->checkpoint);
}

static tr_status run(const void *options_)
{
    const struct cli_predict_options *options = options_;
    struct cli_predict work = {.options = options, .info = TR_PREDICT_INFO_INIT};
    TR_TRY(check(options));
    TR_TRY(cli_predictor_create(options->checkpoint, options->best, &options->device, &options->cache,
                                options->average, &work.predictor));
    tr_status status = tr_predictor_info(work.predictor, &work.info);
    if (status == TR_OK) status = check_network(&work);
    if (status == TR_OK) status = predict_all(&work);
    tr_predictor_destroy(&work.predictor);
    return status;
}

const struct cli_command cli_predict = {
    .name = "predict",
    .summary = "use a trained network on images, texts or numbers",
    .about =
        "Predicts images, texts, numbers, or the examples of a data set with the network of a checkpoint: "
        "the likeliest classes with their probabilities, values, or a tag for each word. Without --image, "
        "--idx, --set-name, --data, --values and --text it reads standard input: a line is a text, the "
        "numbers of an example, or the name of an image file. With --output the predictions go to a file.",
    CLI_OPTIONS(table, struct cli_predict_options),
    .run = run,
};
