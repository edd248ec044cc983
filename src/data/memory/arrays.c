/* Sources over arrays of the caller: which arrays form which examples. */
#include "trireme/arrays.h"

#include "base/fail.h"
#include "base/sized.h"
#include "data/memory/array.h"

#include <inttypes.h>

#define SIDE_MOST    UINT16_MAX /* pixels */
#define NUMBERS_MOST (1 << 24)  /* of an example */

/* ---- features ---- */

/* The sizes of images, of bytes or of other numbers. */
static tr_status take_sides(struct tr_kept *kept, const struct tr_array *array)
{
    struct tr_source_info *info = &kept->info;
    int64_t channels = array->dimensions == 4 ? array->shape[3] : 1;
    if (array->shape[1] > SIDE_MOST || array->shape[2] > SIDE_MOST || channels > INT16_MAX)
        return tr_fail(TR_EINVAL,
                       "features: images of %" PRId64 " x %" PRId64 " x %" PRId64
                       "; at most %d pixels a side are read",
                       array->shape[1], array->shape[2], channels, SIDE_MOST);
    info->height = (int32_t)array->shape[1];
    info->width = (int32_t)array->shape[2];
    info->channels = (int32_t)channels;
    return TR_OK;
}

static tr_status take_image(struct tr_kept *kept, const struct tr_array *array)
{
    TR_TRY(take_sides(kept, array));
    kept->info.features = TR_FEATURE_IMAGE;
    return tr_array_bytes(kept, array, &kept->images);
}

static tr_status take_vector(struct tr_kept *kept, const struct tr_array *array)
{
    int64_t numbers = array->dimensions == 1 ? 1 : array->shape[1];
    if (array->dimensions == 3) {
        kept->info.steps = (int32_t)(array->shape[1] <= NUMBERS_MOST ? array->shape[1] : 0);
        numbers = array->shape[1] <= NUMBERS_MOST && array->shape[2] <= NUMBERS_MOST
                      ? array->shape[1] * array->shape[2]
                      : INT64_MAX;
    }
    if (array->dimensions == 4) {
        TR_TRY(take_sides(kept, array));
        kept->range = array->type == TR_ARRAY_UINT16  ? TR_RANGE_U16
                      : array->type == TR_ARRAY_INT16 ? TR_RANGE_I16
                                                      : TR_RANGE_OPEN;
        numbers = (int64_t)kept->info.height * kept->info.width * kept->info.channels;
    }
    if (numbers > NUMBERS_MOST)
        return tr_fail(TR_EINVAL, "features: %" PRId64 " numbers an example; at most %d are read", numbers,
                       NUMBERS_MOST);
    kept->info.features = TR_FEATURE_FLOATS;
    kept->info.floats = (int32_t)numbers;
    return tr_array_numbers(kept, "features", array, &kept->gaps, &kept->numbers);
}

/* Where the tokens of each example lie. */
static tr_status take_offsets(struct tr_kept *kept, const struct tr_array *given, int64_t tokens)
{
    struct tr_array array;
    int64_t longest;
    TR_TRY(tr_array_settle("offsets", given, &array));
    if (array.dimensions != 1 || !tr_array_is_integer(&array) || array.shape[0] < 2)
        return tr_fail(TR_EINVAL, "offsets: %" PRId32 " dimensions of %s; integers [count + 1] are wanted",
                       array.dimensions, tr_array_type_name(array.type));
    TR_TRY(tr_array_offsets(kept, &array, tokens, &kept->begin, &longest));
    kept->info.count = array.shape[0] - 1;
    kept->info.max_tokens = (int32_t)longest;
    return TR_OK;
}

static tr_status take_lengths(struct tr_kept *kept, const struct tr_array *given, int64_t count,
                              int64_t longest)
{
    struct tr_array array;
    int64_t *begin = tr_kept_own(kept, (size_t)count + 1, sizeof *begin);
    int32_t largest = (int32_t)longest;
    if (!begin) return TR_ENOMEM;
    for (int64_t i = 0; i <= count; i++) begin[i] = i * longest;
    kept->begin = begin;
    kept->info.count = count;
    if (tr_array_is_given(given)) {
        TR_TRY(tr_array_settle("lengths", given, &array));
        if (array.dimensions != 1 || array.shape[0] != count)
            return tr_fail(TR_EINVAL, "lengths: %" PRId64 " of them for %" PRId64 " examples", array.shape[0],
                           count);
        TR_TRY(tr_array_integers(kept, "lengths", &array, 1, longest, &kept->length, &largest));
    }
    kept->info.max_tokens = largest;
    return TR_OK;
}

static tr_status take_tokens(struct tr_kept *kept, const struct tr_arrays *arrays,
                             const struct tr_array *array)
{
    int32_t largest;
    const bool ragged = tr_array_is_given(&arrays->offsets);
    if (array->dimensions != (ragged ? 1 : 2))
        return tr_fail(TR_EINVAL,
                       "features: tokens in %" PRId32
                       " dimensions; they are [count, longest], or [all] with offsets",
                       array->dimensions);
    if (ragged && tr_array_is_given(&arrays->lengths))
        return tr_fail(TR_EINVAL, "lengths and offsets are both given; offsets say all");
    if (!ragged && array->shape[1] > INT32_MAX)
        return tr_fail(TR_EINVAL, "features: %" PRId64 " tokens an example are too many", array->shape[1]);
    kept->info.features = TR_FEATURE_TOKENS;
    TR_TRY(ragged ? take_offsets(kept, &arrays->offsets, array->shape[0])
                  : take_lengths(kept, &arrays->lengths, array->shape[0], array->shape[1]));
    TR_TRY(tr_array_integers(kept, "features", array, 0,
                             arrays->vocabulary > 0 ? arrays->vocabulary - 1 : INT32_MAX - 1, &kept->tokens,
                             &largest));
    kept->info.vocabulary = arrays->vocabulary > 0 ? arrays->vocabulary : largest + 1;
    return TR_OK;
}

static tr_status take_features(struct tr_kept *kept, const struct tr_arrays *arrays)
{
    struct tr_array array;
    if (!tr_array_is_given(&arrays->features))
        return tr_fail(TR_EINVAL, "there are no features; give the array of struct tr_arrays");
    TR_TRY(tr_array_settle("features", &arrays->features, &array));
    if (arrays->tokens) return take_tokens(kept, arrays, &array);
    if (tr_array_is_given(&arrays->lengths) || tr_array_is_given(&arrays->offsets))
        return tr_fail(TR_EINVAL, "lengths and offsets are those of tokens; set tokens");
    kept->info.count = array.shape[0];
    bool image = array.dimensions > 2 && array.type == TR_ARRAY_UINT8;
    return image ? take_image(kept, &array) : take_vector(kept, &array);
}

/* ---- labels ---- */

/* Replaces negative labels (such as -100) by TR_NO_LABEL, which readers of a source expect. */
static tr_status mark_unlabelled(struct tr_kept *kept, const struct tr_array *array)
{
    int64_t count = 1, i = 0;
    for (int d = 0; d < array->dimensions; d++) count *= array->shape[d];
    while (i < count && kept->label[i] >= TR_NO_LABEL) i++;
    if (i == count) return TR_OK;
    int32_t *copy = tr_kept_own(kept, (size_t)count, sizeof *copy);
    if (!copy) return TR_ENOMEM;
    for (i = 0; i < count; i++) copy[i] = kept->label[i] < 0 ? TR_NO_LABEL : kept->label[i];
    kept->label = copy;
    return TR_OK;
}

static tr_status take_token_labels(struct tr_kept *kept, const struct tr_arrays *arrays,
                                   const struct tr_array *array, int64_t most, int32_t *largest)
{
    for (int i = 0; i < array->dimensions; i++)
        if (array->dimensions != arrays->features.dimensions || array->shape[i] != arrays->features.shape[i])
            return tr_fail(TR_EINVAL, "labels: they have another shape than the tokens of features");
    kept->info.labels = TR_LABEL_TOKENS;
    TR_TRY(tr_array_integers(kept, "labels", array, INT32_MIN, most, &kept->label, largest));
    return mark_unlabelled(kept, array);
}

static tr_status take_pixel_labels(struct tr_kept *kept, const struct tr_array *array, int64_t most,
                                   int32_t *largest)
{
    const struct tr_source_info *info = &kept->info;
    if (array->shape[1] != info->height || array->shape[2] != info->width)
        return tr_fail(TR_EINVAL,
                       "labels: %" PRId64 " x %" PRId64 " pixels, and the images of features have %" PRId32
                       " x %" PRId32 "; give a label for each pixel",
                       array->shape[1], array->shape[2], info->height, info->width);
    kept->info.labels = TR_LABEL_PIXELS;
    TR_TRY(tr_array_integers(kept, "labels", array, INT32_MIN, most, &kept->label, largest));
    return mark_unlabelled(kept, array);
}

static tr_status take_classes(struct tr_kept *kept, const struct tr_arrays *arrays,
                              const struct tr_array *array)
{
    const int64_t most = arrays->classes > 0 ? arrays->classes - 1 : (1 << 24) - 1;
    int32_t largest;
    bool of_tokens = arrays->tokens && (array->dimensions > 1 || array->shape[0] != kept->info.count);
    bool of_pixels = kept->info.height > 0 && array->dimensions == 3;
    if (of_pixels) {
        TR_TRY(take_pixel_labels(kept, array, most, &largest));
    } else if (of_tokens) {
        TR_TRY(take_token_labels(kept, arrays, array, most, &largest));
    } else {
        if (array->dimensions != 1)
            return tr_fail(TR_EINVAL,
                           "labels: integers in %" PRId32
                           " dimensions; classes are [count], those of pixels [count, height, width], and "
                           "values to learn are floats",
                           array->dimensions);
        kept->info.labels = TR_LABEL_CLASS;
        TR_TRY(tr_array_integers(kept, "labels", array, 0, most, &kept->label, &largest));
    }
    if (largest < 0 && arrays->classes <= 0)
        return tr_fail(TR_EINVAL, "labels: no token or pixel has a class; give classes");
    kept->info.classes = arrays->classes > 0 ? arrays->classes : largest + 1;
    return tr_kept_name_classes(kept, arrays->class_names);
}

static tr_status take_labels(struct tr_kept *kept, const struct tr_arrays *arrays)
{
    struct tr_array array;
    kept->info.labels = TR_LABEL_NONE;
    if (!tr_array_is_given(&arrays->labels)) return TR_OK;
    TR_TRY(tr_array_settle("labels", &arrays->labels, &array));
    bool flat_tokens = tr_array_is_given(&arrays->offsets) && array.shape[0] == arrays->features.shape[0];
    if (array.shape[0] != kept->info.count && !flat_tokens)
        return tr_fail(TR_EINVAL, "labels: %" PRId64 " of them for %" PRId64 " examples", array.shape[0],
                       kept->info.count);
    if (tr_array_is_integer(&array)) return take_classes(kept, arrays, &array);
    if (array.dimensions > 2)
        return tr_fail(TR_EINVAL, "labels: %" PRId32 " dimensions; values are [count] or [count, values]",
                       array.dimensions);
    int64_t values = array.dimensions == 2 ? array.shape[1] : 1;
    if (values > NUMBERS_MOST)
        return tr_fail(TR_EINVAL, "labels: %" PRId64 " values an example; at most %d are read", values,
                       NUMBERS_MOST);
    kept->info.labels = TR_LABEL_VALUES;
    kept->info.values = (int32_t)values;
    return tr_array_numbers(kept, "labels", &array, NULL, &kept->value);
}

tr_status tr_source_from_arrays(const struct tr_arrays *given, tr_source **out)
{
    static const struct tr_arrays defaults = {.size = sizeof defaults};
    struct tr_arrays arrays;
    TR_TRY(tr_sized_take(given, &defaults, sizeof arrays, "TR_ARRAYS_INIT", &arrays));
    struct tr_kept *kept = tr_kept_create(arrays.release, arrays.user);
    if (!kept) return TR_ENOMEM;
    tr_status status = take_features(kept, &arrays);
    if (status == TR_OK) status = take_labels(kept, &arrays);
    if (status == TR_OK) return tr_kept_handle(kept, out);
    tr_kept_leave(kept);
    return status;
}
