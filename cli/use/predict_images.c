/* Image files, converted to the format of the network's input. */
#include "cli/terminal/output.h"
#include "cli/use/predict.h"
#include "cli/terminal/terminal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/images/image.h"

#include <inttypes.h>
#include <unistd.h>

static struct tr_image_size wanted_by(const struct cli_predict *work)
{
    return (struct tr_image_size){work->info.height, work->info.width, work->info.channels};
}

/* Whether the image has the right size, or fitting was ordered. */
static tr_status check_size(const struct cli_predict *work, const char *path, struct tr_image_size is,
                            struct tr_image_size wanted)
{
    bool same = is.height == wanted.height && is.width == wanted.width;
    bool large = is.height >= wanted.height && is.width >= wanted.width;
    if (same || work->options->fit == TR_IMAGE_SCALE || (large && work->options->fit == TR_IMAGE_CROP))
        return TR_OK;
    return tr_fail(TR_EFORMAT,
                   "%s: %" PRId32 " x %" PRId32 " pixels, and the network takes %" PRId32 " x %" PRId32
                   "; add --fit scale%s",
                   path, is.width, is.height, wanted.width, wanted.height,
                   large ? ", or --fit crop for the middle" : "");
}

static tr_status check_channels(const struct cli_predict *work, enum tr_feature_kind features)
{
    const int32_t channels = work->info.channels;
    if (work->info.features == features && (channels == 1 || channels == 3)) return TR_OK;
    return tr_fail(TR_EINVAL, "--image: the network \"%s\" does not take grey or colour images",
                   work->info.name);
}

tr_status cli_predict_read_image(const struct cli_predict *work, const char *path, uint8_t *pixels)
{
    struct tr_image_size size, wanted = wanted_by(work);
    uint8_t *stored = NULL;
    TR_TRY(check_channels(work, TR_FEATURE_IMAGE));
    TR_TRY(tr_image_read(path, wanted.channels, &size, &stored));
    tr_status status = check_size(work, path, size, wanted);
    if (status == TR_OK)
        status = tr_image_fit(path, (enum tr_image_fit)work->options->fit, stored, size, pixels, wanted);
    tr_free(stored);
    if (status != TR_OK || !work->options->invert) return status;
    int64_t bytes = (int64_t)wanted.height * wanted.width * wanted.channels;
    for (int64_t i = 0; i < bytes; i++) pixels[i] = (uint8_t)(255 - pixels[i]);
    return TR_OK;
}

tr_status cli_predict_read_numbers(const struct cli_predict *work, const char *path, float *values)
{
    struct tr_image_size size, wanted = wanted_by(work);
    uint16_t *stored = NULL, *fitted = NULL;
    TR_TRY(check_channels(work, TR_FEATURE_FLOATS));
    const size_t count = (size_t)wanted.height * (size_t)wanted.width * (size_t)wanted.channels;
    TR_TRY(tr_image_read_wide(path, wanted.channels, &size, &stored));
    tr_status status = check_size(work, path, size, wanted);
    if (status == TR_OK && !(fitted = tr_alloc(count, sizeof *fitted))) status = TR_ENOMEM;
    if (status == TR_OK)
        status = tr_image_fit_wide(path, (enum tr_image_fit)work->options->fit, stored, size, fitted, wanted);
    for (size_t i = 0; status == TR_OK && i < count; i++)
        values[i] = (float)(work->options->invert ? UINT16_MAX - fitted[i] : fitted[i]);
    tr_free(fitted);
    tr_free(stored);
    return status;
}

tr_status cli_predict_show_image(const struct cli_predict *work, const uint8_t *pixels)
{
    char *text;
    TR_TRY(tr_image_show(pixels, wanted_by(work), cli_terminal_width(STDOUT_FILENO), &text));
    cli_print(text);
    return TR_OK;
}
