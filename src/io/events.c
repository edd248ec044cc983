/* The file: names, records, and values one by one. */
#include "io/events_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "io/record.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "events.out.tfevents."
#define DUE    ((size_t)256 << 10) /* once so many bytes are pending, adding writes them */

/* ---- the file ---- */

static bool is_event_file(const char *name)
{
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

tr_status tr_events_remove(const tr_file_system *files, const char *directory)
{
    struct tr_file_names names;
    if (!tr_file_is_directory(directory)) return TR_OK;
    TR_TRY(tr_file_list(files, directory, &names));
    tr_status status = TR_OK;
    for (int64_t i = 0; i < names.count && status == TR_OK; i++) {
        if (!is_event_file(names.name[i])) continue;
        char *path = tr_path_join(directory, names.name[i]);
        status = path ? tr_file_remove(files, path) : TR_ENOMEM;
        tr_free(path);
    }
    tr_file_names_free(&names);
    return status;
}

/* The time for the name of a new file: now, or later than those of the existing files. */
static tr_status make_time(const tr_file_system *files, const char *directory, double wall, long long *out)
{
    struct tr_file_names names;
    TR_TRY(tr_file_list(files, directory, &names));
    long long latest = wall > 0 ? (long long)wall : 0;
    for (int64_t i = 0; i < names.count; i++) {
        if (!is_event_file(names.name[i])) continue;
        long long seconds = strtoll(names.name[i] + strlen(PREFIX), NULL, 10);
        if (seconds >= latest && seconds < 9999999999) latest = seconds + 1;
    }
    tr_file_names_free(&names);
    *out = latest;
    return TR_OK;
}

static tr_status open_file(tr_events *events, const tr_file_system *files, const char *directory, double wall)
{
    char host[256] = "";
    long long seconds;
    TR_TRY(make_time(files, directory, wall, &seconds));
    if (gethostname(host, sizeof host - 1) != 0 || !*host) strcpy(host, "localhost");
    char *name = tr_format(PREFIX "%010lld.%s.%ld", seconds, host, (long)getpid());
    if (!name) return TR_ENOMEM;
    events->path = tr_path_join(directory, name);
    tr_free(name);
    if (!events->path) return TR_ENOMEM;
    return tr_file_begin(files, events->path, TR_FILE_NEW, 0, &events->file);
}

/* Room for `size` more bytes of records. */
static tr_status make_room(tr_events *events, size_t size)
{
    if (events->used > 0 && events->used + size > DUE) TR_TRY(tr_events_flush(events));
    if (events->capacity - events->used >= size) return TR_OK;
    size_t capacity = events->used + size > DUE ? events->used + size : DUE;
    uint8_t *buffer = tr_realloc(events->buffer, capacity, 1);
    if (!buffer) return TR_ENOMEM;
    events->buffer = buffer;
    events->capacity = capacity;
    return TR_OK;
}

static tr_status add(tr_events *events, Tensorboard__Event *event)
{
    event->wall_time = events->wall;
    event->step = events->step;
    size_t size = tensorboard__event__get_packed_size(event);
    TR_TRY(make_room(events, size + TR_RECORD_OVERHEAD));
    uint8_t *record = events->buffer + events->used, *data = record + TR_RECORD_HEAD;
    tensorboard__event__pack(event, data);
    tr_record_frame(data, size, record, data + size);
    events->used += size + TR_RECORD_OVERHEAD;
    return TR_OK;
}

tr_status tr_events_create(const tr_file_system *files, const char *directory, double wall, tr_events **out)
{
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    tr_events *events = tr_alloc_zero(1, sizeof *events);
    if (!events) return TR_ENOMEM;
    events->file.descriptor = -1;
    events->wall = wall;
    event.what_case = TENSORBOARD__EVENT__WHAT_FILE_VERSION;
    event.file_version = events_text("brain.Event:2");
    tr_status status = open_file(events, files, directory, wall);
    if (status == TR_OK) status = add(events, &event);
    if (status == TR_OK) status = tr_events_flush(events);
    if (status == TR_OK) {
        *out = events;
        return TR_OK;
    }
    events->failed = true;
    tr_events_close(&events);
    return status;
}

tr_status tr_events_flush(tr_events *events)
{
    assert(!events->failed);
    tr_status status = tr_file_write(&events->file, events->buffer, events->used);
    events->used = 0;
    events->failed = status != TR_OK;
    return status;
}

tr_status tr_events_close(tr_events **handle)
{
    tr_events *events = *handle;
    if (!events) return TR_OK;
    tr_status status = events->failed ? TR_OK : tr_events_flush(events);
    if (status == TR_OK && !events->failed)
        status = tr_file_finish(&events->file, false);
    else
        tr_file_abandon(&events->file);
    tr_free(events->path);
    tr_free(events->buffer);
    tr_free(events);
    *handle = NULL;
    return status;
}

const char *tr_events_path(const tr_events *events)
{
    return events->path;
}

void tr_events_stamp(tr_events *events, int64_t step, double wall)
{
    events->step = step;
    events->wall = wall;
}

/* ---- its contents ---- */

tr_status tr_events_restart(tr_events *events)
{
    Tensorboard__SessionLog log = TENSORBOARD__SESSION_LOG__INIT;
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    log.status = TENSORBOARD__SESSION_LOG__STATUS__START;
    event.what_case = TENSORBOARD__EVENT__WHAT_SESSION_LOG;
    event.session_log = &log;
    return add(events, &event);
}

tr_status tr_events_graph(tr_events *events, const void *graph, size_t size)
{
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    event.what_case = TENSORBOARD__EVENT__WHAT_GRAPH_DEF;
    event.graph_def = (ProtobufCBinaryData){size, (uint8_t *)(uintptr_t)graph};
    return add(events, &event);
}

tr_status events_add_value(tr_events *events, Tensorboard__Summary__Value *value)
{
    Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    summary.n_value = 1;
    summary.value = &value;
    event.what_case = TENSORBOARD__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    return add(events, &event);
}

static Tensorboard__Summary__Value value_of(const char *tag, Tensorboard__Summary__Value__ValueCase kind)
{
    Tensorboard__Summary__Value value = TENSORBOARD__SUMMARY__VALUE__INIT;
    value.tag = events_text(tag);
    value.value_case = kind;
    return value;
}

tr_status tr_events_scalar(tr_events *events, const char *tag, double value)
{
    Tensorboard__Summary__Value item = value_of(tag, TENSORBOARD__SUMMARY__VALUE__VALUE_SIMPLE_VALUE);
    item.simple_value = (float)value;
    return events_add_value(events, &item);
}

tr_status tr_events_histogram(tr_events *events, const char *tag, const struct tr_histogram *histogram)
{
    double limit[TR_HISTOGRAM_BUCKETS], count[TR_HISTOGRAM_BUCKETS];
    Tensorboard__Summary__Value item = value_of(tag, TENSORBOARD__SUMMARY__VALUE__VALUE_HISTO);
    Tensorboard__Histogram histo = TENSORBOARD__HISTOGRAM__INIT;
    histo.min = histogram->min;
    histo.max = histogram->max;
    histo.num = (double)histogram->count;
    histo.sum = histogram->sum;
    histo.sum_squares = histogram->sum_squares;
    histo.n_bucket_limit = histo.n_bucket = (size_t)tr_histogram_list(histogram, limit, count);
    histo.bucket_limit = limit;
    histo.bucket = count;
    item.histo = &histo;
    return events_add_value(events, &item);
}

tr_status tr_events_image(tr_events *events, const char *tag, const struct tr_events_image *image)
{
    Tensorboard__Summary__Value item = value_of(tag, TENSORBOARD__SUMMARY__VALUE__VALUE_IMAGE);
    Tensorboard__Summary__Image message = TENSORBOARD__SUMMARY__IMAGE__INIT;
    message.height = image->height;
    message.width = image->width;
    message.colorspace = image->channels;
    message.encoded_image_string = (ProtobufCBinaryData){image->size, (uint8_t *)(uintptr_t)image->png};
    item.image = &message;
    return events_add_value(events, &item);
}

/* ---- values of plugins ---- */

tr_status tr_events_text(tr_events *events, const char *tag, const char *text)
{
    Tensorboard__SummaryMetadata__PluginData plugin = TENSORBOARD__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    Tensorboard__SummaryMetadata metadata = TENSORBOARD__SUMMARY_METADATA__INIT;
    Tensorboard__TensorShape scalar = TENSORBOARD__TENSOR_SHAPE__INIT;
    Tensorboard__Tensor tensor = TENSORBOARD__TENSOR__INIT;
    Tensorboard__Summary__Value item = value_of(tag, TENSORBOARD__SUMMARY__VALUE__VALUE_TENSOR);
    ProtobufCBinaryData string = {strlen(text), (uint8_t *)(uintptr_t)text};
    plugin.plugin_name = events_text("text");
    metadata.plugin_data = &plugin;
    tensor.dtype = TENSORBOARD__DATA_TYPE__DT_STRING;
    tensor.tensor_shape = &scalar;
    tensor.n_string_val = 1;
    tensor.string_val = &string;
    item.metadata = &metadata;
    item.tensor = &tensor;
    return events_add_value(events, &item);
}

tr_status events_add_content(tr_events *events, const char *tag, const char *name,
                             const ProtobufCMessage *content)
{
    Tensorboard__SummaryMetadata__PluginData plugin = TENSORBOARD__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    Tensorboard__SummaryMetadata metadata = TENSORBOARD__SUMMARY_METADATA__INIT;
    Tensorboard__TensorShape scalar = TENSORBOARD__TENSOR_SHAPE__INIT;
    Tensorboard__Tensor tensor = TENSORBOARD__TENSOR__INIT;
    Tensorboard__Summary__Value item = value_of(tag, TENSORBOARD__SUMMARY__VALUE__VALUE_TENSOR);
    float nothing = 0;
    size_t size = protobuf_c_message_get_packed_size(content);
    uint8_t *bytes = tr_alloc(size, 1);
    if (!bytes) return TR_ENOMEM;
    protobuf_c_message_pack(content, bytes);
    plugin.plugin_name = events_text(name);
    plugin.content = (ProtobufCBinaryData){size, bytes};
    metadata.plugin_data = &plugin;
    tensor.dtype = TENSORBOARD__DATA_TYPE__DT_FLOAT;
    tensor.tensor_shape = &scalar;
    tensor.n_float_val = 1;
    tensor.float_val = &nothing;
    item.metadata = &metadata;
    item.tensor = &tensor;
    tr_status status = events_add_value(events, &item);
    tr_free(bytes);
    return status;
}
