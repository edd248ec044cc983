/* Reading the file of a log: hostile until checked. */
#include "strategy/updates/internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"

#include <inttypes.h>
#include <string.h>

/* About 250 million records. */
#define FILE_MOST ((uint64_t)4 << 30)

static uint64_t number_at(const uint8_t *bytes, int size)
{
    uint64_t number = 0;
    for (int i = size; i-- > 0;) number = number << 8 | bytes[i];
    return number;
}

static int32_t int32_at(const uint8_t *bytes)
{
    return (int32_t)(uint32_t)number_at(bytes, 4);
}

static int64_t int64_at(const uint8_t *bytes)
{
    return (int64_t)number_at(bytes, 8);
}

/* 32 bytes as digits; zeros as none. */
static void digest_at(const uint8_t *bytes, char text[TR_SHA256_TEXT])
{
    static const struct tr_sha256_sum unknown;
    struct tr_sha256_sum sum;
    memcpy(sum.byte, bytes, sizeof sum.byte);
    tr_sha256_text(&sum, text);
    if (memcmp(&sum, &unknown, sizeof sum) == 0) text[0] = '\0';
}

bool tr_update_block_next(struct tr_update_blocks *blocks, struct tr_update_block_view *out)
{
    const uint8_t *head = blocks->bytes + blocks->at;
    size_t left = blocks->size - blocks->at;
    if (left < TR_UPDATE_HEAD_BYTES || memcmp(head, "TRUL", 4) != 0) return false;
    uint64_t bytes = number_at(head + 8, 4);
    if (bytes > left - TR_UPDATE_HEAD_BYTES || number_at(head + 12, 4) != blocks->count ||
        number_at(head + 28, 4) != 0)
        return false;
    uint32_t crc = tr_crc32c(blocks->crc, head, 24);
    crc = tr_crc32c(crc, head + TR_UPDATE_HEAD_BYTES, (size_t)bytes);
    if (crc != number_at(head + 24, 4)) return false;
    *out = (struct tr_update_block_view){.kind = int32_at(head + 4),
                                         .step = int64_at(head + 16),
                                         .data = head + TR_UPDATE_HEAD_BYTES,
                                         .bytes = (size_t)bytes};
    blocks->crc = crc;
    blocks->count++;
    blocks->at += TR_UPDATE_HEAD_BYTES + (size_t)bytes;
    return true;
}

/* Whether the rest of the file is a partial block, as a crash or power failure leaves it. */
static bool is_torn(const struct tr_update_blocks *blocks)
{
    const uint8_t *rest = blocks->bytes + blocks->at;
    size_t left = blocks->size - blocks->at, zeros = 0;
    while (zeros < left && rest[zeros] == 0) zeros++;
    if (zeros == left) return true;
    if (memcmp(rest, "TRUL", left < 4 ? left : 4) != 0) return false;
    return left < TR_UPDATE_HEAD_BYTES || number_at(rest + 8, 4) >= left - TR_UPDATE_HEAD_BYTES;
}

static tr_status refuse_block(const char *name, const struct tr_update_blocks *blocks, const char *what,
                              int64_t got)
{
    return tr_fail(TR_ECORRUPT,
                   "%s: block %" PRIu32 ", which ends at byte %zu, %s %" PRId64 "; the log is damaged", name,
                   blocks->count - 1, blocks->at, what, got);
}

static tr_status read_session(const char *name, const struct tr_update_blocks *blocks,
                              const struct tr_update_block_view *block, struct tr_update_log *log)
{
    const uint8_t *data = block->data;
    if (block->bytes >= 4 && int32_at(data) != TR_UPDATE_FORMAT)
        return tr_fail(TR_EUNSUPPORTED,
                       "%s: a log of format %d, this program reads %d; use the one that wrote it", name,
                       int32_at(data), TR_UPDATE_FORMAT);
    if (block->bytes != TR_UPDATE_SESSION_BYTES)
        return refuse_block(name, blocks, "is a session, which has 144 bytes, but here are",
                            (int64_t)block->bytes);
    struct tr_update_session session = {
        .numerics = int32_at(data + 4),
        .mode = int32_at(data + 8),
        .workers = int32_at(data + 12),
        .servers = int32_at(data + 16),
        .parts = int32_at(data + 20),
        .staleness = int64_at(data + 24),
        .first = int64_at(data + 32),
        .steps = int64_at(data + 40),
    };
    digest_at(data + 48, session.job);
    digest_at(data + 80, session.data);
    digest_at(data + 112, session.hash);
    return tr_update_log_begin(log, &session);
}

static tr_status read_records(const char *name, const struct tr_update_blocks *blocks,
                              const struct tr_update_block_view *block, struct tr_update_log *log)
{
    if (block->bytes % TR_UPDATE_RECORD_BYTES != 0)
        return refuse_block(name, blocks, "is of records of 16 bytes, but has", (int64_t)block->bytes);
    for (size_t at = 0; at < block->bytes; at += TR_UPDATE_RECORD_BYTES) {
        const uint8_t *data = block->data + at;
        struct tr_update record = {.number = int64_at(data),
                                   .missed = (uint32_t)number_at(data + 8, 4),
                                   .worker = (uint16_t)number_at(data + 12, 2),
                                   .kind = data[14],
                                   .zero = data[15]};
        TR_TRY(tr_update_log_add(log, &record, 1));
    }
    return TR_OK;
}

static tr_status read_block(const char *name, const struct tr_update_blocks *blocks,
                            const struct tr_update_block_view *block, struct tr_update_log *log)
{
    char hash[TR_SHA256_TEXT];
    switch (block->kind) {
    case TR_UPDATE_BLOCK_SESSION:
        return read_session(name, blocks, block, log);
    case TR_UPDATE_BLOCK_RECORDS:
        return read_records(name, blocks, block, log);
    case TR_UPDATE_BLOCK_STATE:
        if (block->bytes != TR_UPDATE_STATE_BYTES)
            return refuse_block(name, blocks, "is a hash of 32 bytes, but has", (int64_t)block->bytes);
        digest_at(block->data, hash);
        return tr_update_log_mark(log, block->step, hash);
    default:
        return refuse_block(name, blocks, "is of none of the kinds 1 to 3, but of", block->kind);
    }
}

static tr_status read_all(const char *name, struct tr_update_blocks *blocks, struct tr_update_log *log)
{
    struct tr_update_block_view block;
    if (blocks->size < 4 || memcmp(blocks->bytes, "TRUL", 4) != 0)
        return tr_fail(
            TR_EFORMAT,
            "%s is no log of updates: it does not begin with \"TRUL\"; name the directory of an asynchronous "
            "run, or its " TR_UPDATE_FILE,
            name);
    while (tr_update_block_next(blocks, &block)) TR_TRY(read_block(name, blocks, &block, log));
    if (is_torn(blocks)) return TR_OK;
    return tr_fail(TR_ECORRUPT,
                   "%s: %" PRIu32
                   " blocks are whole, and what follows from byte %zu on is no block whose checksum goes on "
                   "from them: one is damaged, missing or out of turn; take the file from a copy",
                   name, blocks->count, blocks->at);
}

tr_status tr_update_bytes_read(const char *name, const void *bytes, size_t size, struct tr_update_log *log,
                               int64_t *torn)
{
    struct tr_update_blocks blocks = {.bytes = bytes, .size = size};
    tr_status status = read_all(name, &blocks, log);
    if (torn) *torn = (int64_t)(blocks.size - blocks.at);
    if (status == TR_OK) status = tr_update_log_check(log, name);
    if (status != TR_OK) tr_update_log_release(log);
    return status;
}

tr_status tr_update_file_read(const char *path, struct tr_update_log *log, int64_t *torn)
{
    struct tr_file_content content;
    TR_TRY(tr_update_file_content(path, &content));
    tr_status status = tr_update_bytes_read(path, content.data, content.size, log, torn);
    tr_file_content_free(&content);
    return status;
}

tr_status tr_update_file_content(const char *path, struct tr_file_content *out)
{
    return tr_file_read(path, FILE_MOST, out);
}
