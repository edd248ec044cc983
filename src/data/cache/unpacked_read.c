#include "data/cache/unpacked_format.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/log.h"
#include "data/text/vocabulary.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define PIECE ((size_t)8 << 20)
#define LARGE ((size_t)32 << 20)

struct unpacked_source {
    tr_source base;
    struct tr_file_map map;
    int descriptor; /* of the file that examples are read from; -1: they are taken from the map */
    char *path;
    int64_t features_offset; /* of the features in the file */
    const uint8_t *features;
    const int64_t *start; /* [count + 1], or NULL */
    const uint8_t *labels;
    size_t label_size;
    const char *state;        /* or NULL */
    const char **class_names; /* [classes], or NULL */
};

/* ---- the class ---- */

static tr_status unpacked_read(const tr_source *base, int64_t index, void *features, int64_t *length,
                               void *label)
{
    const struct unpacked_source *source = (const struct unpacked_source *)base;
    int64_t element = tr_unpacked_element(base->info.features);
    int64_t first = source->start ? source->start[index] : index * tr_source_capacity(base);
    *length = source->start ? source->start[index + 1] - first : tr_source_capacity(base);
    if (features && source->descriptor >= 0)
        TR_TRY(tr_file_read_at(source->descriptor, source->path,
                               (uint64_t)(source->features_offset + first * element), features,
                               (size_t)(*length * element)));
    else if (features)
        memcpy(features, source->features + first * element, (size_t)(*length * element));
    if (label && base->info.labels == TR_LABEL_TOKENS)
        memcpy(label, source->labels + first * 4, (size_t)*length * 4);
    else if (label && source->label_size)
        memcpy(label, source->labels + (size_t)index * source->label_size, source->label_size);
    return TR_OK;
}

/* Reading a batch from a file takes hardly longer than reading one example. */
static tr_status unpacked_read_run(const tr_source *base, int64_t index, int64_t count, void *features,
                                   void *label)
{
    const struct unpacked_source *source = (const struct unpacked_source *)base;
    int64_t example = tr_source_capacity(base) * tr_unpacked_element(base->info.features);
    size_t bytes = (size_t)(count * example);
    if (features && source->descriptor >= 0)
        TR_TRY(tr_file_read_at(source->descriptor, source->path,
                               (uint64_t)(source->features_offset + index * example), features, bytes));
    else if (features)
        memcpy(features, source->features + index * example, bytes);
    if (label && source->label_size)
        memcpy(label, source->labels + (size_t)index * source->label_size,
               (size_t)count * source->label_size);
    return TR_OK;
}

static int64_t unpacked_labelled(const tr_source *base, int64_t index)
{
    const struct unpacked_source *source = (const struct unpacked_source *)base;
    const int32_t *labels = (const int32_t *)(const void *)source->labels;
    return tr_labels_count(labels + source->start[index], source->start[index + 1] - source->start[index]);
}

static tr_status unpacked_state(const tr_source *base, char **text)
{
    const struct unpacked_source *source = (const struct unpacked_source *)base;
    if (!source->state) return TR_OK;
    *text = tr_strdup(source->state);
    return *text ? TR_OK : TR_ENOMEM;
}

/* The words that the state names; only texts come here. */
static tr_status unpacked_show(const tr_source *base, int64_t index, struct tr_text *text)
{
    const struct unpacked_source *source = (const struct unpacked_source *)base;
    const int32_t *tokens = (const int32_t *)(const void *)source->features;
    int64_t first = source->start ? source->start[index] : index * base->stride;
    int64_t end = source->start ? source->start[index + 1] : first + base->window;
    tr_vocabulary *vocabulary;
    int32_t classes;
    TR_TRY(tr_vocabulary_read(source->state ? source->state : "", &vocabulary, &classes));
    if (tr_vocabulary_size(vocabulary) < base->info.vocabulary) {
        tr_vocabulary_destroy(&vocabulary);
        return tr_fail(TR_EFORMAT, "unpacked data: the vocabulary lacks words that the texts have");
    }
    tr_vocabulary_show(vocabulary, tokens + first, end - first, text);
    tr_text_add(text, "\n");
    tr_vocabulary_destroy(&vocabulary);
    return TR_OK;
}

static void unpacked_destroy(tr_source *base)
{
    struct unpacked_source *source = (struct unpacked_source *)base;
    if (source->descriptor >= 0) close(source->descriptor);
    tr_free(source->path);
    tr_file_unmap(&source->map);
    tr_free(source->class_names);
    tr_free(source);
}

/* The digest is known from the file. */
static const struct tr_source_class unpacked_class = {
    .name = "unpacked",
    .version = TR_SOURCE_VERSION,
    .read = unpacked_read,
    .read_run = unpacked_read_run,
    .state = unpacked_state,
    .destroy = unpacked_destroy,
};
static const struct tr_source_class unpacked_texts_class = {
    .name = "unpacked",
    .version = TR_SOURCE_VERSION,
    .read = unpacked_read,
    .labelled = unpacked_labelled,
    .state = unpacked_state,
    .show = unpacked_show,
    .destroy = unpacked_destroy,
};
static const struct tr_source_class unpacked_windows_class = {
    .name = "unpacked",
    .version = TR_SOURCE_VERSION,
    .read = tr_source_read_window,
    .labelled = tr_source_window_labels,
    .state = unpacked_state,
    .show = unpacked_show,
    .destroy = unpacked_destroy,
};

/* ---- checking ---- */

static tr_status damaged(const char *name, const char *what)
{
    return tr_fail(TR_ECORRUPT, "unpacked data \"%s\": %s", name, what);
}

static tr_status check_tail(const struct tr_unpacked_tail *tail, const char *name, const char *key)
{
    if (memcmp(tail->magic, TR_UNPACKED_MAGIC, sizeof tail->magic) != 0)
        return damaged(name, "the end of the file is missing");
    if (tail->version != TR_UNPACKED_VERSION || tail->order != TR_UNPACKED_ORDER)
        return damaged(name, "written by another version of the program or another kind of machine");
    if (tr_crc32c(0, tail, offsetof(struct tr_unpacked_tail, crc)) != tail->crc)
        return damaged(name, "the checksum of its header does not match");
    if (memcmp(tail->key, key, sizeof tail->key) != 0)
        return damaged(name, "the contents belong to another name");
    return TR_OK;
}

/* The size of a section according to the tail; -1 where the tail does not determine it. */
static int64_t expected_bytes(const struct tr_unpacked_tail *tail, enum tr_unpacked_section section,
                              int64_t capacity)
{
    int64_t bytes = 0, element = tr_unpacked_element(tail->features);
    bool texts = tail->features == TR_FEATURE_TOKENS;
    switch (section) {
    case TR_UNPACKED_FEATURES:
        if (tail->window > 0) return 4 * tr_unpacked_stream(tail->count, tail->window, tail->stride);
        if (texts) return -1;
        if (__builtin_mul_overflow(capacity, element, &bytes) ||
            __builtin_mul_overflow(bytes, tail->count, &bytes))
            return INT64_MAX;
        return bytes;
    case TR_UNPACKED_START:
        return texts && tail->window == 0 ? (tail->count + 1) * (int64_t)sizeof(int64_t) : 0;
    case TR_UNPACKED_LABELS:
        if (tail->labels == TR_LABEL_TOKENS)
            return tail->window > 0 ? 0 : tail->section[TR_UNPACKED_FEATURES].bytes;
        element = tail->labels == TR_LABEL_CLASS    ? 4
                  : tail->labels == TR_LABEL_VALUES ? 4 * (int64_t)tail->values
                  : tail->labels == TR_LABEL_PIXELS ? 4 * (int64_t)tail->height * tail->width
                                                    : 0;
        return __builtin_mul_overflow(element, tail->count, &bytes) ? INT64_MAX : bytes;
    case TR_UNPACKED_NAMES:
    case TR_UNPACKED_STATE:
    case TR_UNPACKED_SECTIONS:
        break;
    }
    return -1;
}

static bool in_range(int64_t value, int64_t most)
{
    return value >= 0 && value <= most;
}

static bool is_digest(const char digest[TR_SHA256_TEXT - 1])
{
    int i = 0;
    while (i < TR_SHA256_TEXT - 1 && digest[i] && strchr("0123456789abcdef", digest[i])) i++;
    return i == TR_SHA256_TEXT - 1;
}

/* Windows lie in a text, and their labels follow from it. The longest text is below 2^52 tokens. */
static bool windows_fit(const struct tr_unpacked_tail *tail)
{
    bool tokens = tail->features == TR_FEATURE_TOKENS;
    if (tail->window == 0) return tail->stride == 0 && (tokens || tail->labels != TR_LABEL_TOKENS);
    return tokens && tail->labels == TR_LABEL_TOKENS && in_range(tail->window - 1, TR_TOKENS_MAX - 1) &&
           in_range(tail->stride - 1, TR_TOKENS_MAX - 1) && tail->count < (int64_t)1 << 32 &&
           tail->max_tokens == tail->window && tail->classes == tail->vocabulary;
}

/* Sides are in the range of 16 bits. */
static bool is_number_image(const struct tr_unpacked_tail *tail)
{
    return tail->features == TR_FEATURE_FLOATS && tail->height > 0 &&
           tail->height * tail->width * tail->channels == tail->floats;
}

static bool figures_fit(const struct tr_unpacked_tail *tail)
{
    return tail->count >= 1 && tail->count < INT64_MAX / 16 && in_range(tail->features, TR_FEATURE_TOKENS) &&
           in_range(tail->labels, TR_LABEL_PIXELS) && in_range(tail->height, UINT16_MAX) &&
           in_range(tail->width, UINT16_MAX) && in_range(tail->channels, UINT16_MAX) &&
           in_range(tail->floats, INT32_MAX) && in_range(tail->max_tokens, INT32_MAX) &&
           in_range(tail->vocabulary, INT32_MAX) && in_range(tail->classes, INT32_MAX) &&
           in_range(tail->values, INT32_MAX) && in_range(tail->skipped, INT64_MAX) &&
           (tail->labels == TR_LABEL_VALUES || tail->values == 0) &&
           (tail->labels != TR_LABEL_PIXELS || tail->features == TR_FEATURE_IMAGE || is_number_image(tail)) &&
           (tail->range == TR_RANGE_OPEN || (tail->range <= TR_RANGE_PICTURE && is_number_image(tail))) &&
           is_digest(tail->digest) && memchr(tail->state_name, '\0', sizeof tail->state_name) &&
           windows_fit(tail);
}

/* Whether all bytes from `at` to `end` are zero, as between sections. */
static bool is_zero(const struct tr_file_map *map, int64_t at, int64_t end)
{
    while (at < end && map->data[at] == 0) at++;
    return at >= end;
}

/* Only a piece of a large section is in memory at a time. */
static uint32_t checksum(const struct tr_file_map *map, const struct tr_unpacked_extent *extent)
{
    const size_t bytes = (size_t)extent->bytes;
    uint32_t crc = 0;
    for (size_t at = 0; at < bytes; at += PIECE) {
        crc = tr_crc32c(crc, map->data + extent->offset + at, bytes - at < PIECE ? bytes - at : PIECE);
        if (bytes >= LARGE) tr_file_map_leave(map);
    }
    return crc;
}

static tr_status check_sections(const struct tr_unpacked_tail *tail, const struct tr_file_map *map,
                                int64_t capacity, const char *name, bool verify)
{
    int64_t end = (int64_t)(map->size - sizeof *tail), at = TR_UNPACKED_PAGE;
    for (int i = 0; i < TR_UNPACKED_SECTIONS; i++) {
        const struct tr_unpacked_extent *extent = &tail->section[i];
        int64_t expected = expected_bytes(tail, (enum tr_unpacked_section)i, capacity);
        if (extent->offset < at || extent->offset > end || extent->offset % TR_UNPACKED_ALIGN != 0 ||
            !in_range(extent->bytes, end - extent->offset) || (expected >= 0 && extent->bytes != expected))
            return damaged(name, "its length is not what its header says");
        bool whole = extent->offset - at < TR_UNPACKED_ALIGN && is_zero(map, at, extent->offset);
        at = extent->offset + extent->bytes;
        if (!whole || (verify && checksum(map, extent) != extent->crc))
            return damaged(name, "the checksum of its contents does not match");
    }
    return at == end ? TR_OK : damaged(name, "its length is not what its header says");
}

/* Devices rely on this: labels and tokens are in range, and texts lie within the data. */
static tr_status check_examples(const struct unpacked_source *source, int64_t token_count, const char *name)
{
    const struct tr_source_info *info = &source->base.info;
    const int32_t *labels = (const int32_t *)(const void *)source->labels;
    for (int64_t i = 0; info->labels == TR_LABEL_CLASS && i < info->count; i++)
        if (labels[i] < 0 || labels[i] >= info->classes) return damaged(name, "a label is out of range");
    for (int64_t i = 0; i < info->count * tr_source_pixels(info); i++)
        if (labels[i] < TR_NO_LABEL || labels[i] >= info->classes)
            return damaged(name, "the label of a pixel is out of range");
    if (info->features != TR_FEATURE_TOKENS) return TR_OK;
    const int32_t *tokens = (const int32_t *)(const void *)source->features;
    int64_t longest = 0;
    for (int64_t i = 0; i < token_count; i++)
        if (tokens[i] < 0 || tokens[i] >= info->vocabulary) return damaged(name, "a word is out of range");
    for (int64_t i = 0; !source->base.stream && info->labels == TR_LABEL_TOKENS && i < token_count; i++)
        if (labels[i] < TR_NO_LABEL || labels[i] >= info->classes)
            return damaged(name, "the label of a word is out of range");
    if (source->base.stream) return TR_OK;
    if (source->start[0] != 0 || source->start[info->count] != token_count)
        return damaged(name, "its texts do not fill it");
    for (int64_t i = 0; i < info->count; i++) {
        int64_t length = source->start[i + 1] - source->start[i];
        if (length < 1 || length > info->max_tokens || source->start[i + 1] > token_count)
            return damaged(name, "the length of a text is out of range");
        if (length > longest) longest = length;
    }
    if (longest != info->max_tokens) return damaged(name, "no text is as long as they are said to be");
    return TR_OK;
}

/* ---- opening ---- */

static void take_info(struct tr_source_info *info, const struct tr_unpacked_tail *tail)
{
    *info = (struct tr_source_info){
        .count = tail->count,
        .features = (enum tr_feature_kind)tail->features,
        .labels = (enum tr_label_kind)tail->labels,
        .height = (int32_t)tail->height,
        .width = (int32_t)tail->width,
        .channels = (int32_t)tail->channels,
        .floats = (int32_t)tail->floats,
        .max_tokens = (int32_t)tail->max_tokens,
        .vocabulary = (int32_t)tail->vocabulary,
        .classes = (int32_t)tail->classes,
        .values = (int32_t)tail->values,
        .skipped = tail->skipped,
    };
}

static tr_status take_names(struct unpacked_source *source, const struct tr_unpacked_extent *extent,
                            const char *name)
{
    const char *at = (const char *)source->map.data + extent->offset, *end = at + extent->bytes;
    int32_t classes = source->base.info.classes;
    if (extent->bytes == 0) return TR_OK;
    if (classes < 1 || classes > extent->bytes) return damaged(name, "names of classes are missing");
    source->class_names = tr_alloc((size_t)classes, sizeof *source->class_names);
    if (!source->class_names) return TR_ENOMEM;
    for (int32_t i = 0; i < classes; i++) {
        const char *stop = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        if (!stop) return damaged(name, "names of classes are missing");
        source->class_names[i] = at;
        at = stop + 1;
    }
    source->base.info.class_names = source->class_names;
    return TR_OK;
}

/* Only a few names of states exist. */
static tr_status take_state(struct unpacked_source *source, const struct tr_unpacked_tail *tail,
                            const char *name)
{
    static const char *const known[] = {"classes.txt", "scaling.txt", "vocabulary.txt"};
    const struct tr_unpacked_extent *extent = &tail->section[TR_UNPACKED_STATE];
    const char *text = (const char *)source->map.data + extent->offset;
    if (extent->bytes == 0) return TR_OK;
    if (text[extent->bytes - 1] != '\0') return damaged(name, "its state has no end");
    source->state = text;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(tail->state_name, known[i]) == 0) source->base.state_name = known[i];
    return source->base.state_name ? TR_OK : damaged(name, "its state has no name");
}

static tr_status fill(struct unpacked_source *source, const char *name, const char *key, bool verify)
{
    struct tr_unpacked_tail tail;
    const struct tr_file_map *map = &source->map;
    struct tr_source_info *info = &source->base.info;
    if (map->size < TR_UNPACKED_PAGE + sizeof tail) return damaged(name, "the file is too short");
    memcpy(&tail, map->data + map->size - sizeof tail, sizeof tail);
    TR_TRY(check_tail(&tail, name, key));
    if (!figures_fit(&tail)) return damaged(name, "a figure in its header is out of range");
    take_info(info, &tail);
    source->base.range = (enum tr_number_range)tail.range;
    if (tr_source_capacity(&source->base) < 1) return damaged(name, "its examples are empty");
    TR_TRY(check_sections(&tail, map, tr_source_capacity(&source->base), name, verify));
    source->features_offset = tail.section[TR_UNPACKED_FEATURES].offset;
    source->features = map->data + source->features_offset;
    source->labels = map->data + tail.section[TR_UNPACKED_LABELS].offset;
    source->label_size = (size_t)(tail.section[TR_UNPACKED_LABELS].bytes / info->count);
    if (tail.window > 0) {
        source->base.stream = (const int32_t *)(const void *)source->features;
        source->base.window = tail.window;
        source->base.stride = tail.stride;
    } else if (info->features == TR_FEATURE_TOKENS)
        source->start = (const int64_t *)(const void *)(map->data + tail.section[TR_UNPACKED_START].offset);
    if (info->features == TR_FEATURE_IMAGE) source->base.resident = source->features;
    source->base.class = source->base.stream ? &unpacked_windows_class
                         : source->start     ? &unpacked_texts_class
                                             : &unpacked_class;
    memcpy(source->base.digest, tail.digest, sizeof tail.digest);
    TR_TRY(take_names(source, &tail.section[TR_UNPACKED_NAMES], name));
    TR_TRY(take_state(source, &tail, name));
    if (!verify) return TR_OK;
    return check_examples(source, tail.section[TR_UNPACKED_FEATURES].bytes / 4, name);
}

tr_status tr_unpacked_open(struct tr_file_map *map, const char *name, const char key[TR_SHA256_TEXT],
                           bool verify, tr_source **out)
{
    struct unpacked_source *source = tr_alloc_zero(1, sizeof *source);
    if (!source) {
        tr_file_unmap(map);
        return TR_ENOMEM;
    }
    source->descriptor = -1;
    source->map = *map;
    *map = (struct tr_file_map){0};
    tr_status status = fill(source, name, key, verify);
    if (status != TR_OK) {
        unpacked_destroy(&source->base);
        return status;
    }
    if (source->base.info.skipped > 0)
        tr_log_line(TR_LOG_WARNING, "the data leave out %" PRId64 " bad records", source->base.info.skipped);
    *out = &source->base;
    return TR_OK;
}

void tr_unpacked_read_from(tr_source *base, int descriptor, const char *path)
{
    struct unpacked_source *source = (struct unpacked_source *)base;
    /* Not for texts, which may be short or overlap. */
    if (base->info.features != TR_FEATURE_TOKENS) source->path = tr_strdup(path);
    if (!source->path) {
        close(descriptor);
        return;
    }
    source->descriptor = descriptor;
    base->filed = true;
    tr_file_map_leave(&source->map);
}
