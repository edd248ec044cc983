/* Sources over a function of the caller. */
#include "trireme/arrays.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/sized.h"
#include "data/memory/kept.h"

#include <inttypes.h>

#define NUMBERS_MOST (1 << 24)

static tr_status check_size(const char *name, int64_t size, int64_t most)
{
    if (size >= 1 && size <= most) return TR_OK;
    return tr_fail(TR_EINVAL, "info.%s is %" PRId64 "; give 1 to %" PRId64, name, size, most);
}

static tr_status check_features(const struct tr_source_info *info)
{
    TR_TRY(check_size("count", info->count, INT64_MAX / 16));
    switch (info->features) {
    case TR_FEATURE_IMAGE:
        TR_TRY(check_size("height", info->height, UINT16_MAX));
        TR_TRY(check_size("width", info->width, UINT16_MAX));
        return check_size("channels", info->channels, INT16_MAX);
    case TR_FEATURE_FLOATS:
        TR_TRY(check_size("floats", info->floats, NUMBERS_MOST));
        if (info->steps >= 0 && (info->steps == 0 || info->floats % info->steps == 0)) return TR_OK;
        return tr_fail(TR_EINVAL, "info.steps is %d, and %d floats are no vectors of one size",
                       (int)info->steps, (int)info->floats);
    case TR_FEATURE_TOKENS:
        TR_TRY(check_size("max_tokens", info->max_tokens, NUMBERS_MOST));
        return check_size("vocabulary", info->vocabulary, INT32_MAX);
    }
    return tr_fail(TR_EINVAL, "info.features is %d, none of enum tr_feature_kind", (int)info->features);
}

static tr_status check_labels(const struct tr_source_info *info)
{
    switch (info->labels) {
    case TR_LABEL_NONE:
        return TR_OK;
    case TR_LABEL_VALUES:
        return check_size("values", info->values, NUMBERS_MOST);
    case TR_LABEL_TOKENS:
        if (info->features != TR_FEATURE_TOKENS)
            return tr_fail(TR_EINVAL, "info.labels are of tokens, but features are not tokens");
        return check_size("classes", info->classes, 1 << 24);
    case TR_LABEL_PIXELS:
        if (info->features != TR_FEATURE_IMAGE && !tr_source_is_number_image(info))
            return tr_fail(TR_EINVAL, "info.labels are of pixels, but features are not images");
        return check_size("classes", info->classes, 1 << 24);
    case TR_LABEL_CLASS:
        return check_size("classes", info->classes, 1 << 24);
    }
    return tr_fail(TR_EINVAL, "info.labels is %d, none of enum tr_label_kind", (int)info->labels);
}

/* Copies the figures that the kinds use; others become 0. */
static struct tr_source_info tidy(const struct tr_source_info *given)
{
    struct tr_source_info info = {
        .count = given->count, .features = given->features, .labels = given->labels};
    const bool image = info.features == TR_FEATURE_IMAGE || tr_source_is_number_image(given),
               tokens = info.features == TR_FEATURE_TOKENS;
    const bool classes =
        info.labels == TR_LABEL_CLASS || info.labels == TR_LABEL_TOKENS || info.labels == TR_LABEL_PIXELS;
    info.height = image ? given->height : 0;
    info.width = image ? given->width : 0;
    info.channels = image ? given->channels : 0;
    info.floats = info.features == TR_FEATURE_FLOATS ? given->floats : 0;
    info.steps = info.features == TR_FEATURE_FLOATS ? given->steps : 0;
    info.max_tokens = tokens ? given->max_tokens : 0;
    info.vocabulary = tokens ? given->vocabulary : 0;
    info.classes = classes ? given->classes : 0;
    info.values = info.labels == TR_LABEL_VALUES ? given->values : 0;
    info.slow = true;
    return info;
}

static tr_status fill(struct tr_kept *kept, const struct tr_example_reader *reader)
{
    if (!reader->read) return tr_fail(TR_EINVAL, "read is NULL; give the function that reads examples");
    TR_TRY(check_features(&reader->info));
    TR_TRY(check_labels(&reader->info));
    kept->info = tidy(&reader->info);
    kept->gaps = kept->info.features == TR_FEATURE_FLOATS;
    kept->read = reader->read;
    if (!reader->any_thread) {
        kept->turn = tr_alloc(1, sizeof *kept->turn);
        if (!kept->turn) return TR_ENOMEM;
        pthread_mutex_init(kept->turn, NULL);
    }
    return kept->info.classes > 0 ? tr_kept_name_classes(kept, reader->info.class_names) : TR_OK;
}

tr_status tr_source_from_reader(const struct tr_example_reader *given, tr_source **out)
{
    static const struct tr_example_reader defaults = {.size = sizeof defaults};
    struct tr_example_reader reader;
    TR_TRY(tr_sized_take(given, &defaults, sizeof reader, "TR_EXAMPLE_READER_INIT", &reader));
    struct tr_kept *kept = tr_kept_create(reader.release, reader.user);
    if (!kept) return TR_ENOMEM;
    tr_status status = fill(kept, &reader);
    if (status == TR_OK) return tr_kept_handle(kept, out);
    tr_kept_leave(kept);
    return status;
}
