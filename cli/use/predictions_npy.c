/* An array [examples][outputs] of NumPy, or [tokens][outputs] for the tokens of all texts; for pixels
 * their classes, integers [examples][height][width].
 */
#include "cli/use/predictions.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "io/npy.h"

/* For `rows` rows, or for so many examples with pixels. */
static tr_status add_header(struct tr_text *text, int64_t rows, const struct tr_predict_info *info)
{
    struct tr_stored_tensor tensor = {.dtype = TR_DTYPE_F32, .rank = 2, .shape = {rows, info->outputs}};
    if (info->pixel_height > 0)
        tensor = (struct tr_stored_tensor){
            .dtype = TR_DTYPE_I32, .rank = 3, .shape = {rows, info->pixel_height, info->pixel_width}};
    uint8_t *header;
    size_t size;
    TR_TRY(tr_npy_header(&tensor, &header, &size));
    tr_text_add_bytes(text, (const char *)header, size);
    tr_free(header);
    return TR_OK;
}

static tr_status check(const struct cli_predictions *predictions)
{
    if (!predictions->info->two_texts) return TR_OK;
    return tr_fail(
        TR_EINVAL,
        "--output: the network of \"%s\" writes texts, which an array does not hold; take .csv or .jsonl",
        predictions->info->checkpoint);
}

/* The header, with the number of rows, comes first. */
static tr_status begin(struct cli_predictions *predictions)
{
    predictions->keep = predictions->expected < 0 || predictions->info->of_tokens;
    if (predictions->keep) return TR_OK;
    return add_header(&predictions->text, predictions->expected, predictions->info);
}

static tr_status add(struct cli_predictions *predictions, const struct cli_prediction *prediction)
{
    const int32_t classes = predictions->info->outputs;
    for (int64_t p = 0; cli_predictions_are_of_pixels(predictions) && p < prediction->rows; p++) {
        const int32_t class = cli_predictions_best(prediction->output + p * classes, classes);
        tr_text_add_bytes(&predictions->text, (const char *)&class, sizeof class);
    }
    if (cli_predictions_are_of_pixels(predictions)) return TR_OK;
    size_t floats = (size_t)(prediction->rows * predictions->info->outputs);
    tr_text_add_bytes(&predictions->text, (const char *)prediction->output, floats * sizeof(float));
    return TR_OK;
}

static tr_status end(struct cli_predictions *predictions)
{
    struct tr_text header = TR_TEXT_INIT;
    if (!predictions->keep) return TR_OK;
    tr_status status =
        add_header(&header, predictions->info->pixel_height > 0 ? predictions->examples : predictions->rows,
                   predictions->info);
    if (status == TR_OK) status = header.failed ? TR_ENOMEM : TR_OK;
    if (status == TR_OK) status = tr_file_write(&predictions->file.writer, header.bytes, header.length);
    tr_text_release(&header);
    return status;
}

const struct cli_prediction_format cli_predictions_npy = {
    .ending = ".npy", .check = check, .begin = begin, .add = add, .end = end};
