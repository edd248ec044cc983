#include "strategy/updates/blocks.h"

#include "base/numbers/hash.h"

#include <assert.h>
#include <string.h>

void bytes_number(struct bytes *bytes, uint64_t number, int size)
{
    for (int i = 0; i < size; i++) bytes_fill(bytes, (uint8_t)(number >> 8 * i), 1);
}

void bytes_text(struct bytes *bytes, const char *text)
{
    for (; *text; text++) bytes_fill(bytes, (uint8_t)*text, 1);
}

void bytes_fill(struct bytes *bytes, uint8_t byte, size_t count)
{
    assert(bytes->size + count <= sizeof bytes->at);
    memset(bytes->at + bytes->size, byte, count);
    bytes->size += count;
}

void bytes_block(struct bytes *bytes, uint32_t kind, const struct bytes *data, int64_t step)
{
    const uint8_t *head = bytes->at + bytes->size;
    bytes_text(bytes, "TRUL");
    bytes_number(bytes, kind, 4);
    bytes_number(bytes, data->size, 4);
    bytes_number(bytes, bytes->blocks++, 4);
    bytes_number(bytes, (uint64_t)step, 8);
    bytes->crc = tr_crc32c(tr_crc32c(bytes->crc, head, 24), data->at, data->size);
    bytes_number(bytes, bytes->crc, 4);
    bytes_number(bytes, 0, 4);
    for (size_t i = 0; i < data->size; i++) bytes_fill(bytes, data->at[i], 1);
}

struct bytes bytes_session(const uint32_t numbers[6], int64_t staleness, int64_t first, int64_t steps)
{
    struct bytes data = {.size = 0};
    for (int i = 0; i < 6; i++) bytes_number(&data, numbers[i], 4);
    bytes_number(&data, (uint64_t)staleness, 8);
    bytes_number(&data, (uint64_t)first, 8);
    bytes_number(&data, (uint64_t)steps, 8);
    bytes_fill(&data, 0, 96);
    return data;
}

void bytes_record(struct bytes *data, int64_t number, uint32_t missed, uint16_t worker, uint8_t kind)
{
    bytes_number(data, (uint64_t)number, 8);
    bytes_number(data, missed, 4);
    bytes_number(data, worker, 2);
    bytes_number(data, kind, 1);
    bytes_number(data, 0, 1);
}
