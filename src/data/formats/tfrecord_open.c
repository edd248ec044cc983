/* Opening TFRecord files: reads through all records and notes where the good ones are. Unless the option
 * is `check: read`, each record is verified entirely, so that the number of examples is fixed before
 * training starts.
 */
#include "data/formats/tfrecord_source.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/files/lines.h"
#include "data/state.h"

#include <inttypes.h>
#include <string.h>

#define CLASSES_MAX (1 << 20)
#define FLOATS_MAX  (1 << 24)

enum check { CHECK_OPEN, CHECK_READ };

struct tfrecord_options {
    struct tr_string_list path;
    int packing;
    char *image, *pixels, *floats, *label, *targets;
    int32_t height, width, channels, classes;
    int check, on_bad_record;
    double max_bad;
};

static const struct tr_choice packings[] = {
    {.name = "auto", .value = -1, .help = "detected from the contents"},
    {.name = "none", .value = TR_PACKING_NONE},
    {.name = "gzip", .value = TR_PACKING_GZIP},
    {.name = "zlib", .value = TR_PACKING_ZLIB},
    {.name = NULL},
};
static const struct tr_choice checks[] = {
    {.name = "open", .value = CHECK_OPEN, .help = "every record, before training"},
    {.name = "read",
     .value = CHECK_READ,
     .help = "lengths before training, each record when it is read; needs classes"},
    {.name = NULL},
};

#define FIELD(name) .offset = offsetof(struct tfrecord_options, name)
static const struct tr_option tfrecord_options[] = {
    {.key = "path",
     .type = TR_OPTION_STRING_LIST,
     FIELD(path),
     .fallback = NULL,
     .help = "one file of records or a list of them, read as one set in this order"},
    {.key = "packing",
     .type = TR_OPTION_CHOICE,
     FIELD(packing),
     .fallback = "auto",
     .choices = packings,
     .help = "compression of the whole file; compressed files are unpacked into memory"},
    {.key = "image",
     .type = TR_OPTION_STRING,
     FIELD(image),
     .fallback = "image_raw",
     .help = "feature that holds an image as height x width x channels raw bytes"},
    {.key = "pixels",
     .type = TR_OPTION_STRING,
     FIELD(pixels),
     .fallback = "pixels",
     .help = "feature that holds the number of bytes of the image, compared where it is present"},
    {.key = "height",
     .type = TR_OPTION_INT32,
     FIELD(height),
     .fallback = "0",
     .most = UINT16_MAX,
     .help = "height of the images; needed for images"},
    {.key = "width",
     .type = TR_OPTION_INT32,
     FIELD(width),
     .fallback = "0",
     .most = UINT16_MAX,
     .help = "width of the images; needed for images"},
    {.key = "channels",
     .type = TR_OPTION_INT32,
     FIELD(channels),
     .fallback = "1",
     .least = 1,
     .most = UINT16_MAX,
     .help = "channels of the images"},
    {.key = "floats",
     .type = TR_OPTION_STRING,
     FIELD(floats),
     .fallback = "",
     .help = "feature that holds a list of floats, in place of an image"},
    {.key = "label",
     .type = TR_OPTION_STRING,
     FIELD(label),
     .fallback = "label",
     .help = "feature that holds the class, an integer from 0; an empty text for examples without labels"},
    {.key = "targets",
     .type = TR_OPTION_STRING,
     FIELD(targets),
     .fallback = "",
     .help = "feature that holds a list of floats to be predicted, in place of a class"},
    TR_OPTION_CLASSES(struct tfrecord_options, CLASSES_MAX),
    {.key = "check",
     .type = TR_OPTION_CHOICE,
     FIELD(check),
     .fallback = "open",
     .choices = checks,
     .help = "when checksums and contents are verified"},
    TR_OPTIONS_BAD(struct tfrecord_options),
};

/* An empty name counts as none. */
static bool given(const char *name)
{
    return name && *name;
}

/* Copies the names, since the options do not outlive opening. */
static tr_status take_names(struct tr_tfrecord_source *source, const struct tfrecord_options *options)
{
    const char *name[TR_TFRECORD_FEATURES];
    name[TR_TFRECORD_FEATURE] = given(options->floats) ? options->floats : options->image;
    name[TR_TFRECORD_LABEL] = given(options->targets) ? options->targets : options->label;
    name[TR_TFRECORD_PIXELS] = given(options->floats) ? NULL : options->pixels;
    size_t size = 1, used = 1;
    for (int i = 0; i < TR_TFRECORD_FEATURES; i++) size += name[i] ? strlen(name[i]) + 1 : 0;
    source->names = tr_alloc_zero(size, 1);
    if (!source->names) return TR_ENOMEM;
    for (int i = 0; i < TR_TFRECORD_FEATURES; i++) {
        source->feature[i].name = source->names; /* "" */
        if (!name[i]) continue;
        source->feature[i].name_length = strlen(name[i]);
        source->feature[i].name = memcpy(source->names + used, name[i], source->feature[i].name_length + 1);
        used += source->feature[i].name_length + 1;
    }
    return TR_OK;
}

static tr_status check_options(const struct tfrecord_options *options, int32_t classes)
{
    bool has_class = given(options->label) && !given(options->targets);
    if (!given(options->floats) && !given(options->image))
        return tr_fail(TR_EINVAL, "tfrecord: give image or floats");
    if (!given(options->floats) && (options->height == 0 || options->width == 0)) {
        return tr_fail(
            TR_EINVAL,
            "tfrecord: height and width of the images are needed: records hold bytes without a shape");
    }
    if (options->check == CHECK_READ && options->on_bad_record == TR_BAD_SKIP) {
        return tr_fail(
            TR_EINVAL,
            "tfrecord: on_bad_record: skip needs check: open, since the number of examples must be known "
            "before training");
    }
    if (options->check == CHECK_READ && has_class && classes == 0) {
        return tr_fail(TR_EINVAL,
                       "tfrecord: check: read needs classes, since labels are not looked at before training");
    }
    if (options->path.count == 0) return tr_fail(TR_EINVAL, "tfrecord: path is an empty list; name a file");
    return TR_OK;
}

/* The length of a list of floats in the first record that has one applies to all. */
static tr_status settle_width(const struct tr_example_feature *feature, int32_t *width)
{
    size_t count;
    if (*width > 0) return TR_OK;
    TR_TRY(tr_example_floats(feature, NULL, 0, &count));
    if (count == 0 || count > FLOATS_MAX) {
        return tr_fail(TR_EFORMAT, "feature \"%s\" has %zu floats; 1 to %d can be read", feature->name, count,
                       FLOATS_MAX);
    }
    *width = (int32_t)count;
    return TR_OK;
}

static tr_status settle_widths(struct tr_tfrecord_source *source, const uint8_t *data, size_t size)
{
    struct tr_source_info *info = &source->base.info;
    struct tr_example_feature feature[TR_TFRECORD_FEATURES];
    memcpy(feature, source->feature, sizeof feature);
    TR_TRY(tr_example_find(data, size, feature, TR_TFRECORD_FEATURES));
    int32_t floats = info->floats;
    if (info->features == TR_FEATURE_FLOATS) TR_TRY(settle_width(&feature[TR_TFRECORD_FEATURE], &floats));
    if (info->labels == TR_LABEL_VALUES) TR_TRY(settle_width(&feature[TR_TFRECORD_LABEL], &info->values));
    info->floats = floats;
    return TR_OK;
}

/* Collected over all files while opening. */
struct survey {
    const struct tfrecord_options *options;
    struct tr_bad bad;
    int32_t largest; /* label */
};

/* Looks into a record whose checksum is right. */
static tr_status survey_record(struct tr_tfrecord_source *source, struct survey *survey, const uint8_t *data,
                               size_t size)
{
    struct tr_source_info *info = &source->base.info;
    bool first = survey->bad.records == survey->bad.bad + 1;
    if (first) TR_TRY(settle_widths(source, data, size));
    if (survey->options->check == CHECK_READ) return TR_OK;
    int32_t label = 0;
    TR_TRY(tr_tfrecord_decode(source, data, size, NULL, info->labels == TR_LABEL_CLASS ? &label : NULL));
    if (label > survey->largest) survey->largest = label;
    return TR_OK;
}

static tr_status note(struct tr_tfrecord_source *source, uint64_t offset)
{
    int64_t count = source->base.info.count;
    if (!tr_grow(&source->offset, count, sizeof *source->offset)) return TR_ENOMEM;
    source->offset[count] = offset;
    source->base.info.count = count + 1;
    return TR_OK;
}

/* After a bad length the rest of a file is lost. The number of lost records is estimated from those before
 * it.
 */
static int64_t records_lost(uint64_t offset, int64_t records_before, uint64_t size)
{
    uint64_t mean = records_before > 0 ? offset / (uint64_t)records_before : size;
    uint64_t lost = (size - offset) / (mean > 0 ? mean : 1);
    return lost < 1 ? 1 : (int64_t)lost;
}

static tr_status survey_file(struct tr_tfrecord_source *source, const struct tr_record_file *file,
                             struct survey *survey)
{
    bool check = survey->options->check == CHECK_OPEN;
    int64_t records_before = survey->bad.records;
    for (uint64_t offset = 0; offset < file->size;) {
        const uint8_t *data = NULL;
        size_t size = 0;
        enum tr_record_fault fault;
        tr_status status = tr_record_at(file, offset, check, &data, &size, &fault);
        if (fault == TR_RECORD_BAD_LENGTH) {
            TR_TRY(tr_bad_record(&survey->bad, status));
            int64_t lost = records_lost(offset, survey->bad.records - records_before, file->size);
            survey->bad.records += lost;
            survey->bad.bad += lost - 1;
            return TR_OK;
        }
        survey->bad.records++;
        if (status == TR_OK) {
            status = survey_record(source, survey, data, size);
            if (status != TR_OK) tr_fail_in(status, "%s: record at offset %" PRIu64, file->path, offset);
        }
        if (status == TR_OK) {
            TR_TRY(note(source, offset));
        } else {
            TR_TRY(tr_bad_record(&survey->bad, status));
        }
        offset += size + TR_RECORD_OVERHEAD;
    }
    return TR_OK;
}

static tr_status open_files(struct tr_tfrecord_source *source, const char *directory, struct survey *survey)
{
    const struct tfrecord_options *options = survey->options;
    size_t files = (size_t)options->path.count;
    source->file = tr_alloc_zero(files, sizeof *source->file);
    source->first = tr_alloc_zero(files + 1, sizeof *source->first);
    if (!source->file || !source->first) return TR_ENOMEM;
    for (int32_t i = 0; i < options->path.count; i++) {
        char *path = tr_source_path(directory, options->path.item[i]);
        if (!path) return TR_ENOMEM;
        source->files = i + 1;
        TR_TRY(tr_record_file_open(path, options->packing, &source->file[i]));
        TR_TRY(survey_file(source, &source->file[i], survey));
        source->first[i + 1] = source->base.info.count;
    }
    return tr_bad_finish(&survey->bad, source->file[0].path);
}

static tr_status fill(struct tr_tfrecord_source *source, const struct tfrecord_options *options,
                      const char *directory, const char *state)
{
    struct tr_source_info *info = &source->base.info;
    struct survey survey = {
        .options = options,
        .bad = {.action = (enum tr_bad_action)options->on_bad_record, .most = options->max_bad},
    };
    int32_t classes = 0;
    TR_TRY(tr_state_read_classes(state, &classes));
    if (options->classes > 0) classes = options->classes;
    TR_TRY(check_options(options, classes));
    TR_TRY(take_names(source, options));
    info->slow = true;
    info->features = given(options->floats) ? TR_FEATURE_FLOATS : TR_FEATURE_IMAGE;
    if (!given(options->floats)) {
        info->height = options->height;
        info->width = options->width;
        info->channels = options->channels;
    }
    info->labels = given(options->targets) ? TR_LABEL_VALUES
                   : given(options->label) ? TR_LABEL_CLASS
                                           : TR_LABEL_NONE;
    info->classes = info->labels != TR_LABEL_CLASS ? 0 : classes > 0 ? classes : CLASSES_MAX;
    TR_TRY(open_files(source, directory, &survey));
    if (info->labels == TR_LABEL_CLASS && classes == 0) info->classes = survey.largest + 1;
    info->skipped = survey.bad.bad;
    return TR_OK;
}

static tr_status tfrecord_open(const void *options, const char *directory, const char *state, tr_source **out)
{
    struct tr_tfrecord_source *source = tr_alloc_zero(1, sizeof *source);
    if (!source) return TR_ENOMEM;
    source->base.class = &tr_tfrecord_class;
    tr_status status = fill(source, options, directory, state);
    if (status != TR_OK) {
        tr_tfrecord_class.destroy(&source->base);
        return status;
    }
    *out = &source->base;
    return TR_OK;
}

static tr_status tfrecord_files(const void *options_, const char *directory, struct tr_source_files *files)
{
    const struct tfrecord_options *options = options_;
    for (int32_t i = 0; i < options->path.count; i++)
        TR_TRY(tr_source_files_add(files, directory, options->path.item[i]));
    return TR_OK;
}

/* Packed files are unpacked into memory. */
static bool tfrecord_unpacks(const void *options_, const struct tr_source_files *files)
{
    const struct tfrecord_options *options = options_;
    bool packed = options->packing > TR_PACKING_NONE;
    for (int64_t i = 0; options->packing < 0 && !packed && i < files->count; i++)
        packed = tr_record_file_is_packed(files->file[i].path);
    return packed;
}

const struct tr_source_format tr_source_format_tfrecord = {
    .name = "tfrecord",
    .help = "TFRecord files of tf.train.Example, read from disk as needed",
    .options = tfrecord_options,
    .option_count = TR_OPTION_COUNT(tfrecord_options),
    .options_size = sizeof(struct tfrecord_options),
    .open = tfrecord_open,
    .files = tfrecord_files,
    .unpacks = tfrecord_unpacks,
};
