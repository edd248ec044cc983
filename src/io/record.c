#include "io/record.h"

#include "base/numbers/hash.h"

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> 8 * i);
}

uint32_t tr_record_checksum(const void *data, size_t size)
{
    return tr_crc32c_mask(tr_crc32c(0, data, size));
}

void tr_record_frame(const void *data, size_t size, uint8_t head[TR_RECORD_HEAD],
                     uint8_t tail[TR_RECORD_TAIL])
{
    put_u32(head, (uint32_t)size);
    put_u32(head + 4, (uint32_t)((uint64_t)size >> 32));
    put_u32(head + 8, tr_record_checksum(head, 8));
    put_u32(tail, tr_record_checksum(data, size));
}
