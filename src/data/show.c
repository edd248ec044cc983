/* Shows examples as characters, and lists the formats to convert to, for `trireme data`. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "data/convert.h"
#include "data/images/image.h"
#include "data/source.h"

#include <inttypes.h>
#include <string.h>

#define NUMBERS_MAX 16 /* most numbers shown of a vector */

/* Characters by darkness of their ink. */
static const char shades[] = " .:-=+*#%@";
#define SHADES ((int)sizeof shades - 1)

static void add_label(const tr_source *source, const void *label, struct tr_text *text)
{
    const struct tr_source_info *info = &source->info;
    if (info->labels == TR_LABEL_CLASS) {
        int32_t class = *(const int32_t *)label;
        tr_text_addf(text, "%" PRId32, class);
        if (info->class_names) tr_text_addf(text, " %s", info->class_names[class]);
    }
    for (int32_t i = 0; i < info->values && i < NUMBERS_MAX; i++) {
        char number[TR_TEXT_NUMBER_SIZE];
        tr_text_addf(text, "%s%s", i > 0 ? " " : "", tr_text_from_float(((const float *)label)[i], number));
    }
}

/* ---- images ---- */

/* How images are drawn. A character stands for `step` pixels across and twice as many down, since
   characters are about twice as high as wide. */
struct drawing {
    int32_t step, width, height; /* in characters */
    int64_t across;              /* images side by side */
};

static struct drawing plan(struct tr_image_size size, int columns)
{
    struct drawing drawing = {.step = 1};
    while ((size.width + drawing.step - 1) / drawing.step > columns) drawing.step++;
    drawing.width = (size.width + drawing.step - 1) / drawing.step;
    drawing.height = (size.height + 2 * drawing.step - 1) / (2 * drawing.step);
    drawing.across = (columns + 2) / (drawing.width + 2);
    if (drawing.across < 1) drawing.across = 1;
    return drawing;
}

static struct tr_image_size size_of(const tr_source *source)
{
    return (struct tr_image_size){source->info.height, source->info.width, source->info.channels};
}

/* The mean brightness of the pixels that a character stands for. */
static char shade(struct tr_image_size size, const struct drawing *drawing, const uint8_t *image, int32_t row,
                  int32_t column)
{
    int64_t sum = 0, count = 0;
    int32_t top = row * 2 * drawing->step, left = column * drawing->step;
    for (int32_t y = top; y < top + 2 * drawing->step && y < size.height; y++) {
        for (int32_t x = left; x < left + drawing->step && x < size.width; x++) {
            for (int32_t c = 0; c < size.channels; c++, count++) {
                sum += image[((int64_t)y * size.width + x) * size.channels + c];
            }
        }
    }
    return shades[sum * SHADES / (count * 256)];
}

/* Draws `count` images side by side under their labels. */
static tr_status draw_row(const tr_source *source, const struct drawing *drawing, int64_t first,
                          int64_t count, uint8_t *images, void *label, struct tr_text *text)
{
    int64_t size = tr_source_capacity(source);
    size_t line = text->length;
    for (int64_t i = 0; i < count; i++) {
        TR_TRY(tr_source_read(source, first + i, images + i * size, size, NULL, label));
        size_t wanted = (size_t)i * (size_t)(drawing->width + 2), used = text->length - line;
        if (i > 0) tr_text_pad(text, ' ', used < wanted ? wanted - used : 1);
        tr_text_addf(text, "[%" PRId64 "] ", first + i);
        add_label(source, label, text);
    }
    tr_text_add(text, "\n");
    for (int32_t row = 0; row < drawing->height; row++) {
        for (int64_t i = 0; i < count; i++) {
            if (i > 0) tr_text_add(text, "  ");
            for (int32_t column = 0; column < drawing->width; column++) {
                tr_text_pad(text, shade(size_of(source), drawing, images + i * size, row, column), 1);
            }
        }
        tr_text_add(text, "\n");
    }
    return TR_OK;
}

static tr_status show_images(const tr_source *source, int64_t first, int64_t count, int columns, void *label,
                             struct tr_text *text)
{
    struct drawing drawing = plan(size_of(source), columns);
    if (drawing.across > count) drawing.across = count;
    uint8_t *images = tr_alloc((size_t)drawing.across, (size_t)tr_source_capacity(source));
    if (!images) return TR_ENOMEM;
    tr_status status = TR_OK;
    for (int64_t i = 0; i < count && status == TR_OK; i += drawing.across) {
        int64_t left = count - i;
        status = draw_row(source, &drawing, first + i, left < drawing.across ? left : drawing.across, images,
                          label, text);
    }
    tr_free(images);
    return status;
}

tr_status tr_image_show(const uint8_t *pixels, struct tr_image_size size, int columns, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    struct drawing drawing = plan(size, columns);
    for (int32_t row = 0; row < drawing.height; row++) {
        for (int32_t column = 0; column < drawing.width; column++)
            tr_text_pad(&text, shade(size, &drawing, pixels, row, column), 1);
        tr_text_add(&text, "\n");
    }
    return tr_text_finish(&text, out);
}

/* ---- others ---- */

tr_status tr_source_add_floats(const tr_source *source, int64_t index, struct tr_text *text)
{
    int64_t length = 0;
    float *features = tr_alloc((size_t)source->info.floats, sizeof(float));
    if (!features) return TR_ENOMEM;
    tr_status status = tr_source_read(source, index, features, source->info.floats, &length, NULL);
    for (int64_t i = 0; status == TR_OK && i < length && i < NUMBERS_MAX; i++) {
        char number[TR_TEXT_NUMBER_SIZE];
        tr_text_addf(text, "%s%s", i > 0 ? " " : "", tr_text_from_float(features[i], number));
    }
    if (length > NUMBERS_MAX) tr_text_add(text, " ...");
    tr_free(features);
    return status;
}

static tr_status show_lines(const tr_source *source, int64_t first, int64_t count, void *label,
                            struct tr_text *text)
{
    for (int64_t index = first; index < first + count; index++) {
        TR_TRY(tr_source_read(source, index, NULL, 0, NULL, label));
        tr_text_addf(text, "[%" PRId64 "] ", index);
        add_label(source, label, text);
        tr_text_add(text, source->info.labels == TR_LABEL_NONE ? "" : ": ");
        TR_TRY(source->class->show ? source->class->show(source, index, text)
                                   : tr_source_add_floats(source, index, text));
        if (!source->class->show) tr_text_add(text, "\n");
    }
    return TR_OK;
}

tr_status tr_source_show(const tr_source *source, int64_t first, int64_t count, int columns, char **out)
{
    const struct tr_source_info *info = &source->info;
    if (first < 0 || first >= info->count || count < 0) {
        return tr_fail(TR_EINVAL,
                       "examples %" PRId64 " and %" PRId64
                       " more were asked for; the data set has 0 to %" PRId64,
                       first, count, info->count - 1);
    }
    if (columns < 1)
        return tr_fail(TR_EINVAL, "%d columns are no room to show anything; give at least 1", columns);
    if (count > info->count - first) count = info->count - first;
    struct tr_text text = TR_TEXT_INIT;
    int64_t labels = info->labels == TR_LABEL_TOKENS   ? info->max_tokens
                     : info->labels == TR_LABEL_PIXELS ? tr_source_pixels(info)
                                                       : info->values;
    void *label = tr_alloc_zero((size_t)labels + 1, sizeof(float));
    if (!label) return TR_ENOMEM;
    tr_text_add(&text, "");
    tr_status status = count == 0 ? TR_OK
                       : info->features == TR_FEATURE_IMAGE
                           ? show_images(source, first, count, columns, label, &text)
                           : show_lines(source, first, count, label, &text);
    tr_free(label);
    if (status == TR_OK) return tr_text_finish(&text, out);
    tr_text_release(&text);
    return status;
}

/* ---- converting ---- */

static tr_status packing_by_name(const char *name, enum tr_packing *packing)
{
    static const char *const names[] = {"none", "gzip", "zlib"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *packing = (enum tr_packing)i;
        return TR_OK;
    }
    return tr_fail(TR_EINVAL, "packing \"%s\" is unknown; give none, gzip or zlib", name);
}

tr_status tr_source_convert(const tr_source *source, const char *format, const char *packing,
                            const char *path)
{
    enum tr_packing how = TR_PACKING_NONE;
    TR_TRY(packing_by_name(packing, &how));
    if (strcmp(format, "tfrecord") == 0) return tr_convert_to_tfrecord(source, path, how);
    if (strcmp(format, "idx") != 0) {
        return tr_fail(TR_EINVAL, "format \"%s\" cannot be written; give tfrecord or idx", format);
    }
    if (how != TR_PACKING_NONE)
        return tr_fail(TR_EUNSUPPORTED, "idx files are written with packing none; pack them with gzip");
    return tr_convert_to_idx(source, path);
}
