/* The structure of an event writer, shared by its kinds of values. */
#ifndef TR_IO_EVENTS_INTERNAL_H
#define TR_IO_EVENTS_INTERNAL_H

#include "io/events.h"

#include "io/proto/event.pb-c.h"

struct tr_events {
    struct tr_file_writer file;
    char *path;
    int64_t step;
    double wall;
    uint8_t *buffer; /* whole records that are pending */
    size_t used, capacity;
    bool failed;
};

/* Adds a value to the present step; its tag and kind are set. Borrowed for the call. */
tr_status events_add_value(tr_events *events, Tensorboard__Summary__Value *value);
/* Adds an empty value that a plugin of TensorBoard finds by its metadata. */
tr_status events_add_content(tr_events *events, const char *tag, const char *plugin,
                             const ProtobufCMessage *content);
/* A caller's string in the type of protobuf-c, which only reads it for packing. */
static inline char *events_text(const char *text)
{
    return (char *)(uintptr_t)text;
}

#endif
