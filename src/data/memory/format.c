/* The data format `memory`: views of sources that a program made over its own examples (trireme/arrays.h),
 * changed as the model file asks.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "data/cache/store.h"
#include "data/images/class_names.h"
#include "data/memory/format.h"
#include "data/memory/kept.h"
#include "data/state.h"
#include "data/tables/missing.h"
#include "data/tables/scaling.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct tr_choice missing_choices[] = {TR_MISSING_CHOICES("feature", ), {.name = NULL}};

#define FIELD(name) .offset = offsetof(struct tr_memory_options, name)
static const struct tr_option memory_options[] = {
    {.key = "name",
     .type = TR_OPTION_STRING,
     FIELD(name),
     .fallback = NULL,
     .help = "name under which the program provides the examples"},
    {.key = "missing",
     .type = TR_OPTION_CHOICE,
     FIELD(missing),
     .fallback = "stop",
     .choices = missing_choices,
     .help = "replacement of a number that is NaN"},
    TR_OPTION_MISSING_VALUE(struct tr_memory_options),
    {.key = "standardize",
     .type = TR_OPTION_BOOL,
     FIELD(standardize),
     .fallback = "false",
     .help = "shift and scale each feature to mean 0 and deviation 1 over the training data"},
};

struct view {
    tr_source base;
    struct tr_kept *kept;
    struct tr_scaling scaling; /* of numbers; otherwise empty */
    int32_t missing;           /* enum tr_missing */
    float missing_value;
    bool changes; /* numbers differ from the caller's */
};

/* ---- reading ---- */

/* Fills gaps in the caller's `numbers`; a missing name counts as none of the names. */
static tr_status fill_gaps(const struct view *view, int64_t index, float *numbers)
{
    const struct tr_categories *categories = &view->scaling.categories;
    int32_t place = -1;
    for (int32_t i = 0; i < view->kept->info.floats; i++) {
        bool names = categories->columns > 0 && categories->names[i].count > 0;
        place += names ? categories->names[i].count : 1;
        if (!isnan(numbers[i]) || (names && view->missing != TR_MISSING_STOP)) continue;
        if (view->missing == TR_MISSING_STOP)
            return tr_fail(TR_EFORMAT,
                           "number %" PRId32 " of example %" PRId64
                           " is NaN; correct it, or set missing: mean or constant",
                           i, index);
        numbers[i] =
            view->missing == TR_MISSING_MEAN ? (float)view->scaling.fill[place] : view->missing_value;
    }
    return TR_OK;
}

/* Reads rows in which columns of names are expanded to several numbers. */
static tr_status read_names(const struct view *view, int64_t index, float *features, int64_t *length,
                            void *label)
{
    float few[64], *given = few;
    const int32_t columns = view->kept->info.floats;
    if (columns > 64 && !(given = tr_alloc((size_t)columns, sizeof *given))) return TR_ENOMEM;
    tr_status status = tr_kept_read(view->kept, index, given, length, label);
    if (status == TR_OK && view->kept->gaps) status = fill_gaps(view, index, given);
    if (status == TR_OK) tr_scaling_apply(&view->scaling, 1, given, features);
    *length = view->base.info.floats;
    if (given != few) tr_free(given);
    return status;
}

static tr_status view_read(const tr_source *base, int64_t index, void *features, int64_t *length, void *label)
{
    const struct view *view = (const struct view *)base;
    if (features && view->scaling.categories.columns > 0)
        return read_names(view, index, features, length, label);
    TR_TRY(tr_kept_read(view->kept, index, features, length, label));
    if (!features || !view->changes) return TR_OK;
    if (view->kept->gaps) TR_TRY(fill_gaps(view, index, features));
    tr_scaling_apply(&view->scaling, 1, features, features);
    return TR_OK;
}

static int64_t view_labelled(const tr_source *base, int64_t index)
{
    return tr_kept_labelled(((const struct view *)base)->kept, index);
}

/* Hashes the caller's numbers and the changes to them. */
static tr_status view_digest(const tr_source *base, tr_sha256 *hash)
{
    const struct view *view = (const struct view *)base;
    char *text = NULL;
    TR_TRY(tr_kept_digest(view->kept, hash));
    if (!view->changes) return TR_OK;
    TR_TRY(tr_scaling_write(&view->scaling, 0, &text));
    tr_sha256_add(hash, text, strlen(text) + 1);
    tr_sha256_add(hash, &view->missing_value, sizeof view->missing_value);
    tr_free(text);
    return TR_OK;
}

static tr_status view_state(const tr_source *base, char **text)
{
    const struct view *view = (const struct view *)base;
    const struct tr_source_info *info = &base->info;
    const bool classified = info->labels == TR_LABEL_CLASS || info->labels == TR_LABEL_PIXELS;
    const int32_t classes = classified ? info->classes : 0;
    if (info->features == TR_FEATURE_FLOATS) return tr_scaling_write(&view->scaling, classes, text);
    return classes > 0 ? tr_state_of_classes(NULL, classes, text) : TR_OK;
}

static void view_destroy(tr_source *base)
{
    struct view *view = (struct view *)base;
    tr_scaling_release(&view->scaling);
    tr_kept_leave(view->kept);
    tr_free(view);
}

static const struct tr_source_class view_class = {
    .name = "memory",
    .version = TR_SOURCE_VERSION,
    .read = view_read,
    .labelled = view_labelled,
    .digest = view_digest,
    .state_name = "classes.txt",
    .state = view_state,
    .destroy = view_destroy,
};

/* ---- opening ---- */

/* Example `index` before scaling, to measure the scaling over. */
static tr_status raw_row(void *user, int64_t index, float *to)
{
    int64_t length;
    return tr_kept_read(((struct view *)user)->kept, index, to, &length, NULL);
}

static tr_status filled_row(void *user, int64_t index, float *to)
{
    TR_TRY(raw_row(user, index, to));
    return fill_gaps(user, index, to);
}

static tr_status measure(struct view *view, const struct tr_memory_options *options)
{
    const int64_t count = view->base.info.count;
    TR_TRY(tr_scaling_create(view->base.info.floats, &view->scaling));
    if (options->missing == TR_MISSING_MEAN)
        TR_TRY(tr_scaling_measure_present(&view->scaling, count, raw_row, view, options->name));
    return options->standardize ? tr_scaling_measure(&view->scaling, count, filled_row, view) : TR_OK;
}

static tr_status take_scaling(struct view *view, const struct tr_memory_options *options, const char *state,
                              int32_t *classes)
{
    TR_TRY(tr_scaling_read(state, &view->scaling, classes));
    if (tr_scaling_columns(&view->scaling) != view->base.info.floats)
        return tr_fail(TR_EMISMATCH,
                       "the data \"%s\" have %" PRId32
                       " numbers an example, the model was trained with %" PRId32 "; give the same features",
                       options->name, view->base.info.floats, tr_scaling_columns(&view->scaling));
    view->base.info.floats = view->scaling.count;
    if (options->missing == TR_MISSING_MEAN && !view->scaling.fill)
        return tr_fail(TR_EMISMATCH,
                       "the data \"%s\": missing: mean takes the means of the training data, which were read "
                       "without; set it for data.train too",
                       options->name);
    return TR_OK;
}

/* Determines the classes: those of the training data, where there are some. */
static tr_status settle_classes(struct view *view, const char *name, int32_t trained)
{
    struct tr_source_info *info = &view->base.info;
    const bool classified = info->labels == TR_LABEL_CLASS || info->labels == TR_LABEL_PIXELS;
    if (!classified || trained <= 0) return TR_OK;
    if (info->classes > trained)
        return tr_fail(TR_EMISMATCH,
                       "the data \"%s\" have %" PRId32 " classes, the training data %" PRId32
                       "; correct the labels",
                       name, info->classes, trained);
    info->classes = trained;
    return TR_OK;
}

static tr_status fill(struct view *view, const struct tr_memory_options *options, const char *state)
{
    struct tr_source_info *info = &view->base.info;
    int32_t classes = 0;
    *info = view->kept->info;
    view->base.resident = view->kept->images;
    view->base.range = view->kept->range;
    view->missing = options->missing;
    view->missing_value = (float)options->missing_value;
    if (info->features == TR_FEATURE_FLOATS) {
        view->base.state_name = "scaling.txt";
        TR_TRY(state ? take_scaling(view, options, state, &classes) : measure(view, options));
        view->changes = view->kept->gaps || !tr_scaling_is_plain(&view->scaling);
    } else {
        if (options->standardize || options->missing != TR_MISSING_STOP)
            return tr_fail(TR_EINVAL, "the data \"%s\" are not numbers; leave out standardize and missing",
                           options->name);
        TR_TRY(tr_state_read_classes(state, &classes));
    }
    TR_TRY(settle_classes(view, options->name, classes));
    if (view->kept->gaps && options->missing == TR_MISSING_STOP && !view->kept->read) {
        float *row = tr_alloc((size_t)view->kept->info.floats, sizeof *row);
        tr_status status = row ? TR_OK : TR_ENOMEM;
        for (int64_t i = 0; status == TR_OK && i < info->count; i++) status = filled_row(view, i, row);
        tr_free(row);
        TR_TRY(status);
    }
    return TR_OK;
}

static tr_status memory_open_through(const void *options_, const char *directory, const char *state,
                                     tr_store *store, int slot, tr_source **out)
{
    (void)directory, (void)slot;
    const struct tr_memory_options *options = options_;
    const tr_source *given = tr_store_given(store, options->name);
    struct tr_kept *kept = given ? tr_kept_of(given) : NULL;
    if (!given)
        return tr_fail(
            TR_ENOTFOUND,
            "the data \"%s\" come from the memory of a program, which has to give them in `data` of its "
            "settings",
            options->name);
    if (!kept)
        return tr_fail(TR_EINVAL,
                       "the data \"%s\" are a source of files; give one of tr_source_from_arrays() or "
                       "tr_source_from_reader(), and describe files in the model file",
                       options->name);
    struct view *view = tr_alloc_zero(1, sizeof *view);
    if (!view) return TR_ENOMEM;
    view->base.class = &view_class;
    view->kept = tr_kept_share(kept);
    tr_status status = fill(view, options, state);
    if (status == TR_OK)
        *out = &view->base;
    else
        view_destroy(&view->base);
    return status;
}

static tr_status memory_open(const void *options, const char *directory, const char *state, tr_source **out)
{
    return memory_open_through(options, directory, state, NULL, -1, out);
}

static tr_status memory_files(const void *options, const char *directory, struct tr_source_files *files)
{
    (void)options, (void)directory, (void)files;
    return TR_OK;
}

static bool memory_unpacks(const void *options, const struct tr_source_files *files)
{
    (void)options, (void)files;
    return false;
}

const struct tr_source_format tr_source_format_memory = {
    .name = "memory",
    .help = "examples that a program gives from its memory, by the C interface or from Python",
    .options = memory_options,
    .option_count = TR_OPTION_COUNT(memory_options),
    .options_size = sizeof(struct tr_memory_options),
    .open = memory_open,
    .files = memory_files,
    .unpacks = memory_unpacks,
    .open_through = memory_open_through,
};
