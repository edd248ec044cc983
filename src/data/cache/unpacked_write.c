#include "data/cache/unpacked_format.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stddef.h>
#include <string.h>

#define PIECE ((size_t)1 << 20)

/* A file under way. */
struct output {
    struct tr_file_writer *writer;
    uint64_t begin; /* bytes that had been written to the file first */
    struct tr_unpacked_tail tail;
    uint8_t *piece; /* [room] bytes of features, of which `filled` are waiting to be written */
    size_t room, filled;
};

static tr_status put(struct output *output, enum tr_unpacked_section section, const void *data, size_t size)
{
    struct tr_unpacked_extent *extent = &output->tail.section[section];
    TR_TRY(tr_file_write(output->writer, data, size));
    extent->crc = tr_crc32c(extent->crc, data, size);
    extent->bytes += (int64_t)size;
    return TR_OK;
}

/* Pads the file to the alignment at which the section begins. */
static tr_status begin(struct output *output, enum tr_unpacked_section section)
{
    static const uint8_t zeros[TR_UNPACKED_ALIGN];
    uint64_t at = output->writer->written - output->begin + TR_UNPACKED_PAGE;
    size_t gap = (size_t)(-at % TR_UNPACKED_ALIGN);
    output->tail.section[section].offset = (int64_t)(at + gap);
    return tr_file_write(output->writer, zeros, gap);
}

static tr_status flush(struct output *output)
{
    size_t size = output->filled;
    output->filled = 0;
    return put(output, TR_UNPACKED_FEATURES, output->piece, size);
}

/* Writes a section that lies in memory in the form of the file. */
static tr_status write_whole(struct output *output, const void *data, size_t size)
{
    for (size_t at = 0; at < size; at += PIECE)
        TR_TRY(put(output, TR_UNPACKED_FEATURES, (const uint8_t *)data + at,
                   size - at < PIECE ? size - at : PIECE));
    return TR_OK;
}

/* Windows are places in a text, which has their labels, too. */
static tr_status write_windows(struct output *output, const tr_source *source)
{
    int64_t tokens = tr_unpacked_stream(source->info.count, source->window, source->stride);
    TR_TRY(begin(output, TR_UNPACKED_FEATURES));
    TR_TRY(write_whole(output, source->stream, (size_t)tokens * sizeof *source->stream));
    TR_TRY(begin(output, TR_UNPACKED_START));
    return begin(output, TR_UNPACKED_LABELS);
}

/* Labels, gathered example by example. */
struct labels {
    size_t size;   /* bytes of an example's labels; 0 where there are none or they are of tokens */
    bool tokens;   /* they are of tokens */
    uint8_t *data; /* [filled] */
    size_t filled, room;
};

/* Room for the labels of an example of at most `tokens` tokens. */
static tr_status make_room(struct labels *labels, int64_t tokens)
{
    size_t most = labels->tokens ? (size_t)tokens * sizeof(int32_t) : labels->size;
    if (labels->room - labels->filled >= most) return TR_OK;
    size_t room = 2 * labels->room + most + PIECE;
    uint8_t *grown = tr_realloc(labels->data, room, 1);
    if (!grown) return TR_ENOMEM;
    labels->data = grown;
    labels->room = room;
    return TR_OK;
}

/* Writes example by example, and notes where texts start, and the labels. */
static tr_status write_examples(struct output *output, const tr_source *source, int64_t *start,
                                struct labels *labels)
{
    size_t element = (size_t)tr_unpacked_element(source->info.features);
    size_t most = (size_t)tr_source_capacity(source) * element;
    bool resident = source->resident != NULL;
    int64_t total = 0;
    for (int64_t i = 0; i < source->info.count; i++) {
        int64_t length = 0;
        if (!resident && output->room - output->filled < most) TR_TRY(flush(output));
        TR_TRY(make_room(labels, source->info.max_tokens));
        TR_TRY(source->class->read(source, i, resident ? NULL : output->piece + output->filled, &length,
                                   labels->data ? labels->data + labels->filled : NULL));
        labels->filled += labels->tokens ? (size_t)length * sizeof(int32_t) : labels->size;
        if (!resident) output->filled += (size_t)length * element;
        if (start) start[i] = total;
        total += length;
    }
    if (start) start[source->info.count] = total;
    return resident ? TR_OK : flush(output);
}

static tr_status write_features(struct output *output, const tr_source *source)
{
    const struct tr_source_info *info = &source->info;
    size_t count = (size_t)info->count;
    struct labels labels = {
        .size = info->labels == TR_LABEL_CLASS    ? sizeof(int32_t)
                : info->labels == TR_LABEL_VALUES ? (size_t)info->values * sizeof(float)
                                                  : (size_t)tr_source_pixels(info) * sizeof(int32_t),
        .tokens = info->labels == TR_LABEL_TOKENS,
    };
    bool texts = info->features == TR_FEATURE_TOKENS;
    tr_status status = TR_ENOMEM;
    int64_t *start = texts ? tr_alloc(count + 1, sizeof *start) : NULL;
    output->room = (size_t)tr_source_capacity(source) * 4 + PIECE;
    output->piece = tr_alloc(output->room, 1);
    if ((texts && !start) || !output->piece) goto out;
    TR_TRY_GOTO(begin(output, TR_UNPACKED_FEATURES), out);
    if (source->resident)
        TR_TRY_GOTO(write_whole(output, source->resident, count * (size_t)tr_source_capacity(source)), out);
    TR_TRY_GOTO(write_examples(output, source, start, &labels), out);
    TR_TRY_GOTO(begin(output, TR_UNPACKED_START), out);
    if (start) TR_TRY_GOTO(put(output, TR_UNPACKED_START, start, (count + 1) * sizeof *start), out);
    TR_TRY_GOTO(begin(output, TR_UNPACKED_LABELS), out);
    if (labels.filled) TR_TRY_GOTO(put(output, TR_UNPACKED_LABELS, labels.data, labels.filled), out);
    status = TR_OK;
out:
    tr_free(output->piece);
    tr_free(labels.data);
    tr_free(start);
    return status;
}

static tr_status write_texts(struct output *output, const tr_source *source)
{
    const char *const *names = source->info.class_names, *name;
    char *state;
    TR_TRY(begin(output, TR_UNPACKED_NAMES));
    for (int32_t i = 0; names && i < source->info.classes; i++)
        TR_TRY(put(output, TR_UNPACKED_NAMES, names[i], strlen(names[i]) + 1));
    TR_TRY(begin(output, TR_UNPACKED_STATE));
    TR_TRY(tr_source_state(source, &name, &state));
    if (!state) return TR_OK;
    strncpy(output->tail.state_name, name, sizeof output->tail.state_name - 1);
    tr_status status = put(output, TR_UNPACKED_STATE, state, strlen(state) + 1);
    tr_text_free(state);
    return status;
}

static void fill_tail(struct tr_unpacked_tail *tail, const tr_source *source)
{
    const struct tr_source_info *info = &source->info;
    memcpy(tail->magic, TR_UNPACKED_MAGIC, sizeof tail->magic);
    tail->version = TR_UNPACKED_VERSION;
    tail->order = TR_UNPACKED_ORDER;
    tail->count = info->count;
    tail->features = info->features;
    tail->labels = info->labels;
    tail->height = info->height;
    tail->width = info->width;
    tail->channels = info->channels;
    tail->floats = info->floats;
    tail->max_tokens = info->max_tokens;
    tail->vocabulary = info->vocabulary;
    tail->classes = info->classes;
    tail->values = info->values;
    tail->skipped = info->skipped;
    tail->range = (uint32_t)source->range;
    tail->window = source->stream ? source->window : 0;
    tail->stride = source->stream ? source->stride : 0;
    tail->crc = tr_crc32c(0, tail, offsetof(struct tr_unpacked_tail, crc));
}

tr_status tr_unpacked_write(const tr_source *source, const char key[TR_SHA256_TEXT],
                            struct tr_file_writer *writer)
{
    char digest[TR_SHA256_TEXT];
    struct output output = {.writer = writer, .begin = writer->written};
    TR_TRY(tr_source_digest(source, digest));
    memcpy(output.tail.digest, digest, sizeof output.tail.digest);
    memcpy(output.tail.key, key, sizeof output.tail.key);
    TR_TRY(source->stream ? write_windows(&output, source) : write_features(&output, source));
    TR_TRY(write_texts(&output, source));
    fill_tail(&output.tail, source);
    return tr_file_write(writer, &output.tail, sizeof output.tail);
}
