/* Writing the file of a log. */
#include "strategy/updates/internal.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

/* ---- blocks ---- */

/* Bytes to write, and the writer's state once they are written. */
struct batch {
    uint8_t *bytes;
    size_t size, room;
    struct tr_update_writer after;
};

static void put(uint8_t *to, uint64_t number, int size)
{
    for (int i = 0; i < size; i++) to[i] = (uint8_t)(number >> 8 * i);
}

/* An unknown digest stays zeros. */
static void put_digest(uint8_t *to, const char *text)
{
    struct tr_sha256_sum sum;
    if (tr_sha256_parse(text, &sum)) memcpy(to, sum.byte, sizeof sum.byte);
}

/* Room for a block with `bytes` bytes, zeroed; its data are returned. NULL: no memory. */
static uint8_t *begin_block(struct batch *batch, size_t bytes)
{
    size_t wanted = batch->size + TR_UPDATE_HEAD_BYTES + bytes;
    if (wanted > batch->room) {
        uint8_t *grown = tr_realloc(batch->bytes, 2 * wanted, 1);
        if (!grown) return NULL;
        batch->bytes = grown;
        batch->room = 2 * wanted;
    }
    memset(batch->bytes + batch->size, 0, TR_UPDATE_HEAD_BYTES + bytes);
    return batch->bytes + batch->size + TR_UPDATE_HEAD_BYTES;
}

static void end_block(struct batch *batch, enum tr_update_block kind, size_t bytes, int64_t step)
{
    uint8_t *head = batch->bytes + batch->size;
    memcpy(head, "TRUL", 4);
    put(head + 4, kind, 4);
    put(head + 8, bytes, 4);
    put(head + 12, batch->after.blocks++, 4);
    put(head + 16, (uint64_t)step, 8);
    batch->after.crc = tr_crc32c(batch->after.crc, head, 24);
    batch->after.crc = tr_crc32c(batch->after.crc, head + TR_UPDATE_HEAD_BYTES, bytes);
    put(head + 24, batch->after.crc, 4);
    batch->size += TR_UPDATE_HEAD_BYTES + bytes;
}

static tr_status add_session(struct batch *batch, const struct tr_update_session *session)
{
    uint8_t *to = begin_block(batch, TR_UPDATE_SESSION_BYTES);
    if (!to) return TR_ENOMEM;
    put(to, TR_UPDATE_FORMAT, 4);
    put(to + 4, (uint64_t)session->numerics, 4);
    put(to + 8, (uint64_t)session->mode, 4);
    put(to + 12, (uint64_t)session->workers, 4);
    put(to + 16, (uint64_t)session->servers, 4);
    put(to + 20, (uint64_t)session->parts, 4);
    put(to + 24, (uint64_t)session->staleness, 8);
    put(to + 32, (uint64_t)session->first, 8);
    put(to + 40, (uint64_t)session->steps, 8);
    put_digest(to + 48, session->job);
    put_digest(to + 80, session->data);
    put_digest(to + 112, session->hash);
    end_block(batch, TR_UPDATE_BLOCK_SESSION, TR_UPDATE_SESSION_BYTES, session->first);
    batch->after.session = *session;
    batch->after.count = session->first;
    batch->after.taken = 0;
    return TR_OK;
}

/* Updates are counted as tr_update_walk_next() does. */
static void count_record(struct tr_update_writer *writer, const struct tr_update *record)
{
    if (record->kind != TR_UPDATE_APPLIED || ++writer->taken < writer->session.parts) return;
    writer->taken = 0;
    writer->count++;
}

/* One block of `count` records. */
static tr_status add_records(struct batch *batch, const struct tr_update *record, int64_t count)
{
    size_t bytes = (size_t)count * TR_UPDATE_RECORD_BYTES;
    uint8_t *to = count > 0 ? begin_block(batch, bytes) : NULL;
    if (count == 0) return TR_OK;
    if (!to) return TR_ENOMEM;
    for (int64_t i = 0; i < count; i++, to += TR_UPDATE_RECORD_BYTES) {
        put(to, (uint64_t)record[i].number, 8);
        put(to + 8, record[i].missed, 4);
        put(to + 12, record[i].worker, 2);
        put(to + 14, record[i].kind, 1);
        count_record(&batch->after, &record[i]);
    }
    end_block(batch, TR_UPDATE_BLOCK_RECORDS, bytes, batch->after.count);
    return TR_OK;
}

static tr_status add_state(struct batch *batch, const struct tr_update_state *state)
{
    uint8_t *to = begin_block(batch, TR_UPDATE_STATE_BYTES);
    if (!to) return TR_ENOMEM;
    put_digest(to, state->hash);
    end_block(batch, TR_UPDATE_BLOCK_STATE, TR_UPDATE_STATE_BYTES, state->step);
    return TR_OK;
}

/* A log as blocks. */
static tr_status add_log(struct batch *batch, const struct tr_update_log *log)
{
    int64_t at = 0, session = 0, state = 0;
    for (;;) {
        int64_t to = log->records;
        if (session < log->sessions && log->session[session].begin < to) to = log->session[session].begin;
        if (state < log->states && log->state[state].at < to) to = log->state[state].at;
        TR_TRY(add_records(batch, log->record + at, to - at));
        at = to;
        if (state < log->states && log->state[state].at == at)
            TR_TRY(add_state(batch, &log->state[state++]));
        else if (session < log->sessions && log->session[session].begin == at)
            TR_TRY(add_session(batch, &log->session[session++]));
        else if (at == log->records)
            return TR_OK;
    }
}

/* ---- the file ---- */

/* The bytes that a checkpoint after `step` updates covers: up to the first block that ends there, and
   states directly after it. */
static void cut(struct tr_update_blocks *blocks, int64_t step)
{
    struct tr_update_block_view block;
    struct tr_update_blocks end = {.bytes = blocks->bytes}, next = *blocks;
    bool there = false;
    while (tr_update_block_next(&next, &block)) {
        bool ends = block.step == step && (there ? block.kind == TR_UPDATE_BLOCK_STATE : true);
        if (there && !ends) break;
        if (!ends) continue;
        there = true;
        end = next;
    }
    *blocks = end;
}

/* Sets the file to the first `size` bytes of `bytes`. */
static tr_status rewrite(const tr_file_system *files, const struct tr_update_writer *writer,
                         const void *bytes)
{
    return tr_file_write_atomic(files, writer->path, bytes, (size_t)writer->size);
}

tr_status tr_update_writer_begin(const tr_file_system *files, const char *path, const char *history,
                                 int64_t step, struct tr_update_writer *writer, bool *found)
{
    struct tr_file_content content = {0};
    *writer = (struct tr_update_writer){.path = tr_strdup(path)};
    *found = false;
    if (!writer->path) return TR_ENOMEM;
    /* An unreadable file is no history; a log that lacks its beginning is reported. */
    tr_status status = history && *history ? tr_update_file_content(history, &content) : TR_ENOTFOUND;
    if (status == TR_ENOMEM) {
        tr_update_writer_release(writer);
        return status;
    }
    if (status == TR_OK) {
        struct tr_update_blocks blocks = {.bytes = (const uint8_t *)content.data, .size = content.size};
        cut(&blocks, step);
        writer->size = blocks.at;
        writer->blocks = blocks.count;
        writer->crc = blocks.crc;
        *found = blocks.count > 0;
    }
    status = rewrite(files, writer, content.data);
    tr_file_content_free(&content);
    if (status != TR_OK) tr_update_writer_release(writer);
    return status;
}

/* Removes the remains of a failed write. */
static tr_status mend(const tr_file_system *files, struct tr_update_writer *writer)
{
    struct tr_file_content content;
    TR_TRY(tr_update_file_content(writer->path, &content));
    tr_status status =
        content.size >= writer->size
            ? rewrite(files, writer, content.data)
            : tr_fail(TR_EIO, "\"%s\" has become shorter, from %llu to %zu bytes; nothing more is added",
                      writer->path, (unsigned long long)writer->size, content.size);
    tr_file_content_free(&content);
    return status;
}

static tr_status append(const tr_file_system *files, const char *path, const struct batch *batch)
{
    struct tr_file_writer file;
    TR_TRY(tr_file_begin(files, path, TR_FILE_APPEND, batch->size, &file));
    tr_status status = tr_file_write(&file, batch->bytes, batch->size);
    if (status == TR_OK) return tr_file_finish(&file, true);
    tr_file_abandon(&file);
    return status;
}

tr_status tr_update_writer_add(const tr_file_system *files, struct tr_update_writer *writer,
                               const struct tr_update_log *log)
{
    if (!writer->path || log->sessions + log->records + log->states == 0) return TR_OK;
    if (writer->torn) TR_TRY(mend(files, writer));
    writer->torn = false;
    struct batch batch = {.after = *writer};
    tr_status status = add_log(&batch, log);
    if (status == TR_OK) {
        status = append(files, writer->path, &batch);
        writer->torn = status != TR_OK;
    }
    batch.after.size += batch.size;
    if (status == TR_OK) *writer = batch.after;
    tr_free(batch.bytes);
    return status;
}

void tr_update_writer_release(struct tr_update_writer *writer)
{
    tr_free(writer->path);
    *writer = (struct tr_update_writer){0};
}
