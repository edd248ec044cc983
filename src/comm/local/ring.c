#include "comm/local/ring.h"

#include "base/fail.h"

#include <string.h>

/* Frames begin at multiples of this. */
#define STEP 8

static size_t padded(uint64_t count)
{
    return (size_t)(count + STEP - 1) / STEP * STEP;
}

static size_t capacity_of(const struct local_area *area)
{
    return area->ring_bytes - sizeof(struct local_ring);
}

struct local_writer tr_local_writer(const struct local_area *area, int from, int to)
{
    return (struct local_writer){.ring = tr_local_area_ring(area, from, to), .capacity = capacity_of(area)};
}

struct local_reader tr_local_reader(const struct local_area *area, int from, int to)
{
    return (struct local_reader){.ring = tr_local_area_ring(area, from, to), .capacity = capacity_of(area)};
}

size_t tr_local_ring_piece(size_t capacity)
{
    return capacity / 4 / STEP * STEP - sizeof(struct local_frame);
}

/* ---- bytes, around the end of the ring ---- */

static void put(struct local_writer *writer, uint64_t at, const void *data, size_t bytes)
{
    size_t offset = (size_t)(at % writer->capacity), first = writer->capacity - offset;
    if (first > bytes) first = bytes;
    memcpy(writer->ring->data + offset, data, first);
    memcpy(writer->ring->data, (const char *)data + first, bytes - first);
}

static void get(const struct local_reader *reader, uint64_t at, void *data, size_t bytes)
{
    size_t offset = (size_t)(at % reader->capacity), first = reader->capacity - offset;
    if (first > bytes) first = bytes;
    memcpy(data, reader->ring->data + offset, first);
    memcpy((char *)data + first, reader->ring->data, bytes - first);
}

static tr_status fail_damaged(void)
{
    return tr_fail(TR_EPEER, "the memory shared by the ranks of this host is damaged; restart the job from "
                             "its last checkpoint");
}

/* ---- the sender ---- */

/* Reads the receiver's position. */
static tr_status look(struct local_writer *writer)
{
    uint64_t tail = atomic_load(&writer->ring->tail);
    if (tail - writer->tail > writer->head - writer->tail) return fail_damaged();
    writer->tail = tail;
    return TR_OK;
}

static bool fits(const struct local_writer *writer, size_t bytes)
{
    return writer->capacity - (size_t)(writer->head - writer->tail) >= bytes;
}

/* Skips the rest of an empty ring, so that the next frame is at its start. At least a quarter must be
   used, so that any frame fits into the rest. */
static void restart(struct local_writer *writer)
{
    size_t offset = (size_t)(writer->head % writer->capacity), rest = writer->capacity - offset;
    if (writer->head != writer->tail || offset < writer->capacity / 4 || rest < sizeof(struct local_frame))
        return;
    struct local_frame skip = {.kind = LOCAL_SKIP, .count = rest - sizeof skip};
    put(writer, writer->head, &skip, sizeof skip);
    writer->head += rest;
}

tr_status tr_local_write(struct local_writer *writer, const struct local_frame *frame, const void *data,
                         bool *done)
{
    size_t bytes = sizeof *frame + padded(frame->count);
    *done = false;
    TR_TRY(look(writer));
    if (!fits(writer, bytes)) {
        /* Either the receiver sees the mark, or we see how far it has read. */
        atomic_store(&writer->ring->full, 1);
        TR_TRY(look(writer));
        if (!fits(writer, bytes)) return TR_OK;
    }
    restart(writer);
    put(writer, writer->head, frame, sizeof *frame);
    if (frame->count > 0) put(writer, writer->head + sizeof *frame, data, (size_t)frame->count);
    writer->head += bytes;
    atomic_store_explicit(&writer->ring->head, writer->head, memory_order_release);
    *done = true;
    return TR_OK;
}

/* ---- the receiver ---- */

static void advance(struct local_reader *reader, const struct local_frame *frame)
{
    reader->tail += sizeof *frame + padded(frame->count);
    atomic_store(&reader->ring->tail, reader->tail);
}

/* Whether the sender waits for room and has a good part of it now. */
static bool relieves(struct local_reader *reader)
{
    bool roomy = reader->head - reader->tail <= reader->capacity / 2;
    return roomy && atomic_load(&reader->ring->full) != 0 && atomic_exchange(&reader->ring->full, 0) != 0;
}

tr_status tr_local_read(struct local_reader *reader, struct local_frame *frame, bool *found)
{
    *found = false;
    do {
        if (reader->head == reader->tail) {
            uint64_t head = atomic_load_explicit(&reader->ring->head, memory_order_acquire);
            if (head - reader->tail > reader->capacity) return fail_damaged();
            reader->head = head;
            if (head == reader->tail) return TR_OK;
        }
        size_t there = (size_t)(reader->head - reader->tail);
        if (there < sizeof *frame) return fail_damaged();
        get(reader, reader->tail, frame, sizeof *frame);
        if (frame->count > there || padded(frame->count) > there - sizeof *frame) return fail_damaged();
        /* The next frame, published together with it, notifies a waiting sender. */
        if (frame->kind == LOCAL_SKIP) advance(reader, frame);
    } while (frame->kind == LOCAL_SKIP);
    *found = true;
    return TR_OK;
}

bool tr_local_take(struct local_reader *reader, const struct local_frame *frame, void *data)
{
    if (data && frame->count > 0) get(reader, reader->tail + sizeof *frame, data, (size_t)frame->count);
    advance(reader, frame);
    return relieves(reader);
}
