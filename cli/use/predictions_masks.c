/* Masks: for each example a PNG of one channel, whose pixels are the numbers of the likeliest classes. */
#include "cli/use/predictions.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/ops.h"
#include "base/numbers/hash.h"
#include "data/images/image.h"

#include <inttypes.h>
#include <string.h>

tr_status cli_masks_begin(const struct cli_predictions *predictions)
{
    const struct tr_predict_info *info = predictions->info;
    if (!cli_predictions_are_of_pixels(predictions))
        return tr_fail(
            TR_EINVAL,
            "--masks: the network of \"%s\" answers for whole examples, not for pixels; leave it out",
            info->checkpoint);
    if (info->outputs > 256)
        return tr_fail(TR_EUNSUPPORTED,
                       "--masks: the network of \"%s\" has %" PRId32
                       " classes, a mask holds 256; write the classes with --output FILE.npy",
                       info->checkpoint, info->outputs);
    return tr_file_is_directory(predictions->masks) ? TR_OK
                                                    : tr_file_make_directory(NULL, predictions->masks);
}

/* ---- names: none is that of two masks ---- */

/* Where a path is, or belongs. */
static char **slot_of(const struct cli_masks_written *written, const char *path)
{
    int64_t slot = tr_hash_name(path, strlen(path)) & (written->room - 1);
    while (written->path[slot] && strcmp(written->path[slot], path) != 0)
        slot = (slot + 1) & (written->room - 1);
    return &written->path[slot];
}

static tr_status widen(struct cli_masks_written *written)
{
    struct cli_masks_written wide = {.count = written->count,
                                     .room = written->room > 0 ? 2 * written->room : 64};
    wide.path = tr_alloc_zero((size_t)wide.room, sizeof *wide.path);
    if (!wide.path) return TR_ENOMEM;
    for (int64_t i = 0; i < written->room; i++)
        if (written->path[i]) *slot_of(&wide, written->path[i]) = written->path[i];
    tr_free(written->path);
    *written = wide;
    return TR_OK;
}

static tr_status take_name(struct cli_predictions *predictions, const char *path, const char *input)
{
    struct cli_masks_written *written = &predictions->written;
    if (2 * written->count >= written->room) TR_TRY(widen(written));
    char **slot = slot_of(written, path);
    if (*slot)
        return tr_fail(TR_EINVAL,
                       "--masks: \"%s\" has the name of an earlier image, whose mask is \"%s\"; run "
                       "predict for each folder of images, with another folder for the masks",
                       input, path);
    *slot = tr_strdup(path);
    if (!*slot) return TR_ENOMEM;
    written->count++;
    return TR_OK;
}

void cli_masks_release(struct cli_predictions *predictions)
{
    struct cli_masks_written *written = &predictions->written;
    for (int64_t i = 0; i < written->room; i++) tr_free(written->path[i]);
    tr_free(written->path);
    *written = (struct cli_masks_written){0};
}

/* ---- files ---- */

/* The mask of an image file has its name, any other one the number of its example. */
static char *path_of(const struct cli_predictions *predictions, const struct cli_prediction *prediction)
{
    if (!predictions->named)
        return tr_format("%s/%06" PRId64 ".png", predictions->masks, prediction->example);
    const char *slash = strrchr(prediction->input, '/'), *name = slash ? slash + 1 : prediction->input;
    const char *dot = strrchr(name, '.');
    return tr_format("%s/%.*s.png", predictions->masks, (int)(dot ? dot - name : (ptrdiff_t)strlen(name)),
                     name);
}

static tr_status write(const struct cli_predictions *predictions, const char *path, const uint8_t *numbers)
{
    const struct tr_image_size size = {predictions->info->pixel_height, predictions->info->pixel_width, 1};
    uint8_t *png;
    size_t bytes;
    TR_TRY(tr_image_encode(numbers, size, &png, &bytes));
    tr_status status = tr_file_write_atomic(NULL, path, png, bytes);
    tr_free(png);
    return status;
}

tr_status cli_masks_add(struct cli_predictions *predictions, const struct cli_prediction *prediction)
{
    const int32_t classes = predictions->info->outputs;
    char *path = path_of(predictions, prediction);
    uint8_t *numbers = tr_alloc((size_t)prediction->rows, 1);
    tr_status status = path && numbers ? TR_OK : TR_ENOMEM;
    if (status == TR_OK && predictions->named) status = take_name(predictions, path, prediction->input);
    for (int64_t p = 0; status == TR_OK && p < prediction->rows; p++)
        numbers[p] = (uint8_t)cli_predictions_best(prediction->output + p * classes, classes);
    if (status == TR_OK) status = write(predictions, path, numbers);
    tr_free(numbers);
    tr_free(path);
    return status;
}
