#include "job/feed/resident.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/log.h"
#include "base/text/text.h"

/* A set larger than the device's free memory divided by this is not kept, since passes and evaluations
 * need memory, too.
 */
#define ROOM_PARTS 2
/* Least words that are read before they are sent to the device. */
#define PIECE (INT64_C(1) << 18)

/* ---- size ---- */

/* Words of an example; for tokens, the most that there are. */
static int64_t feature_words(const tr_source *source)
{
    return source->info.features == TR_FEATURE_IMAGE ? 0 : tr_source_capacity(source);
}

static int64_t label_words(const tr_source *source)
{
    switch (source->info.labels) {
    case TR_LABEL_NONE:
        return 0;
    case TR_LABEL_CLASS:
        return 1;
    case TR_LABEL_VALUES:
        return source->info.values;
    case TR_LABEL_TOKENS:
        return source->info.max_tokens;
    case TR_LABEL_PIXELS:
        return tr_source_pixels(&source->info);
    }
    return 0;
}

/* Whether examples differ in length. */
static bool is_ragged(const tr_source *source)
{
    return source->info.features == TR_FEATURE_TOKENS && !source->stream;
}

/* What is kept, in words, each part in separate memory. */
struct extent {
    int64_t features, labels, bytes; /* `bytes`: part of `features` for images */
    int64_t *start;                  /* [count + 1] of the set; host memory */
};

static tr_status measure(const tr_source *source, bool features, bool labels, struct extent *out)
{
    const struct tr_source_info *info = &source->info;
    int64_t count = info->count;
    *out = (struct extent){0};
    if (source->stream) {
        if (features || (labels && info->labels == TR_LABEL_TOKENS))
            out->features = (count - 1) * source->stride + source->window + 1;
    } else if (is_ragged(source) && (features || info->labels == TR_LABEL_TOKENS)) {
        if (!(out->start = tr_alloc((size_t)count + 1, sizeof *out->start))) return TR_ENOMEM;
        out->start[0] = 0;
        for (int64_t i = 0; i < count; i++) {
            int64_t length;
            TR_TRY(source->class->read(source, i, NULL, &length, NULL));
            out->start[i + 1] = out->start[i] + length;
        }
        if (features) out->features = out->start[count];
    } else if (features) {
        out->features = count * feature_words(source);
        out->bytes = info->features == TR_FEATURE_IMAGE ? count * tr_source_capacity(source) : 0;
    }
    if (labels && info->labels == TR_LABEL_TOKENS)
        out->labels = out->start ? out->start[count] : 0;
    else if (labels)
        out->labels = count * label_words(source);
    return TR_OK;
}

/* ---- upload ---- */

/* Words on their way to `to`, piece by piece. */
struct upload {
    tr_device *device;
    int32_t *to; /* NULL: they are not wanted */
    int32_t *piece;
    int64_t room, used, sent;
};

/* Memory for `count` words on the device, which are written at most `most` at a time. */
static tr_status begin(struct tr_resident *resident, int64_t count, int64_t most, int32_t **words,
                       struct upload *out)
{
    *out = (struct upload){.device = resident->device, .room = most > PIECE ? most : PIECE};
    if (count == 0) return TR_OK;
    size_t bytes = (size_t)count * sizeof *out->to;
    TR_TRY(tr_device_alloc(resident->device, bytes, (void **)words));
    resident->memory += bytes;
    out->to = *words;
    out->piece = tr_alloc((size_t)out->room, sizeof *out->piece);
    return out->piece ? TR_OK : TR_ENOMEM;
}

static tr_status send(struct upload *upload)
{
    if (upload->used == 0) return TR_OK;
    TR_TRY(tr_device_to_device(upload->device, upload->to + upload->sent, upload->piece,
                               (size_t)upload->used * sizeof *upload->piece));
    upload->sent += upload->used;
    upload->used = 0;
    return tr_device_wait(upload->device);
}

/* Where to write the next words, at most `most`; NULL: they are not wanted. */
static tr_status place(struct upload *upload, int64_t most, int32_t **out)
{
    if (upload->to && upload->room - upload->used < most) TR_TRY(send(upload));
    *out = upload->to ? upload->piece + upload->used : NULL;
    return TR_OK;
}

static tr_status read_all(const tr_source *source, struct upload *features, struct upload *labels)
{
    int64_t feature_most = feature_words(source), label_most = label_words(source);
    for (int64_t i = 0; (features->to || labels->to) && i < source->info.count; i++) {
        int32_t *feature, *label;
        int64_t length;
        TR_TRY(place(features, feature_most, &feature));
        TR_TRY(place(labels, label_most, &label));
        TR_TRY(source->class->read(source, i, feature, &length, label));
        if (feature) features->used += length;
        if (label) labels->used += source->info.labels == TR_LABEL_TOKENS ? length : label_most;
    }
    TR_TRY(send(features));
    return send(labels);
}

/* Copies data that the host has in the device's form. */
static tr_status copy(struct tr_resident *resident, const void *from, size_t bytes, void **to)
{
    TR_TRY(tr_device_alloc(resident->device, bytes, to));
    resident->memory += bytes;
    TR_TRY(tr_device_to_device(resident->device, *to, from, bytes));
    return tr_device_wait(resident->device);
}

static tr_status bring(struct tr_resident *resident, const struct extent *extent)
{
    const tr_source *source = resident->source;
    struct upload features = {0}, labels = {0};
    if (extent->bytes > 0)
        TR_TRY(copy(resident, source->resident, (size_t)extent->bytes, (void **)&resident->bytes));
    if (extent->start)
        TR_TRY(copy(resident, extent->start, (size_t)(source->info.count + 1) * sizeof *extent->start,
                    (void **)&resident->start));
    if (source->stream && extent->features > 0)
        TR_TRY(copy(resident, source->stream, (size_t)extent->features * sizeof *source->stream,
                    (void **)&resident->features));
    tr_status status = begin(resident, source->stream ? 0 : extent->features, feature_words(source),
                             &resident->features, &features);
    if (status == TR_OK)
        status = begin(resident, extent->labels, label_words(source), &resident->labels, &labels);
    if (status == TR_OK) status = read_all(source, &features, &labels);
    tr_free(features.piece);
    tr_free(labels.piece);
    return status;
}

/* ---- the set ---- */

static bool is_in_memory(const tr_source *source)
{
    bool images = source->info.features == TR_FEATURE_IMAGE,
         parts = source->parts && source->parts->images > 0;
    return !source->info.slow && !parts && (!images || source->resident);
}

static void tell_why_not(const struct tr_resident *resident, int64_t bytes)
{
    char all[TR_TEXT_NUMBER_SIZE], room[TR_TEXT_NUMBER_SIZE];
    tr_log_line(
        TR_LOG_WARNING,
        "the examples of a data set, %s, are not kept on %s, which has room for %s: those of each step "
        "go there",
        tr_text_from_bytes(bytes, all), resident->device->description,
        tr_text_from_bytes(tr_device_room(resident->device), room));
}

static int64_t bytes_of(const tr_source *source, const struct extent *extent)
{
    int64_t words = extent->features + extent->labels,
            starts = extent->start ? (source->info.count + 1) * (int64_t)sizeof *extent->start : 0;
    return words + extent->bytes == 0 ? 0 : extent->bytes + starts + words * (int64_t)sizeof(int32_t);
}

static bool has_room(tr_device *device, int64_t bytes)
{
    return bytes <= tr_device_room(device) / ROOM_PARTS;
}

static tr_status keep_set(struct tr_resident *resident, const struct extent *extent)
{
    int64_t bytes = bytes_of(resident->source, extent);
    if (bytes == 0) return TR_OK;
    if (!has_room(resident->device, bytes)) {
        tell_why_not(resident, bytes);
        return TR_OK;
    }
    TR_TRY(bring(resident, extent));
    resident->here = true;
    resident->images = resident->bytes;
    return TR_OK;
}

/* Whether it would be kept, if there is room. */
static bool is_candidate(const tr_device *device, const tr_source *source)
{
    return !device->class->host_memory && is_in_memory(source);
}

bool tr_resident_in_place(const tr_device *device, const tr_source *source)
{
    return source->resident && !(source->filed && device->class->host_memory);
}

tr_status tr_resident_make(tr_device *device, const tr_source *source, bool keep, bool features, bool labels,
                           struct tr_resident *out)
{
    *out = (struct tr_resident){.device = device, .source = source};
    if (features && tr_resident_in_place(device, source))
        out->images = tr_device_adopt(device, source->resident);
    if (!keep || !is_candidate(device, source)) return TR_OK;
    struct extent extent;
    tr_status status = measure(source, features, labels, &extent);
    if (status == TR_OK) status = keep_set(out, &extent);
    tr_free(extent.start);
    return status;
}

tr_status tr_resident_expect(tr_device *device, const tr_source *source, int64_t *bytes)
{
    struct extent extent;
    *bytes = 0;
    if (!is_candidate(device, source)) return TR_OK;
    tr_status status = measure(source, true, true, &extent);
    if (status == TR_OK) *bytes = bytes_of(source, &extent);
    if (!has_room(device, *bytes)) *bytes = 0;
    tr_free(extent.start);
    return status;
}

void tr_resident_release(struct tr_resident *resident)
{
    if (!resident->device) return;
    tr_device_free(resident->device, resident->bytes);
    tr_device_free(resident->device, resident->features);
    tr_device_free(resident->device, resident->labels);
    tr_device_free(resident->device, resident->start);
}

/* ---- gathering ---- */

/* Gathers rows of `width` words; for tokens as many as an example has, `behind` its first one. */
static tr_status gather(const struct tr_resident *resident, int64_t rows, const int64_t *index,
                        const int32_t *offset, int64_t width, bool of_tokens, int64_t behind,
                        const int32_t *from, void *to)
{
    const tr_source *source = resident->source;
    struct tr_op_gather_rows op = {
        .rows = rows, .width = width, .stride = width, .index = index, .x = from + behind, .y = to};
    if (of_tokens && resident->start) {
        op.start = resident->start;
        op.offset = offset;
    } else if (of_tokens) {
        op.stride = source->stride;
    }
    return tr_device_gather_rows(resident->device, &op);
}

tr_status tr_resident_features(const struct tr_resident *resident, int64_t rows, const int64_t *index,
                               const int32_t *offset, void *to)
{
    const tr_source *source = resident->source;
    return gather(resident, rows, index, offset, feature_words(source),
                  source->info.features == TR_FEATURE_TOKENS, 0, resident->features, to);
}

tr_status tr_resident_labels(const struct tr_resident *resident, int64_t rows, const int64_t *index,
                             const int32_t *offset, void *to)
{
    const tr_source *source = resident->source;
    bool of_tokens = source->info.labels == TR_LABEL_TOKENS, shifted = of_tokens && source->stream;
    return gather(resident, rows, index, offset, label_words(source), of_tokens, shifted,
                  shifted ? resident->features : resident->labels, to);
}
