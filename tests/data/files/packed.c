#include "data/files/packed.h"

#include <string.h>

static uint32_t crc_of(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static uint32_t adler_of(const uint8_t *data, size_t size)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < size; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static size_t put_head(enum tr_packing packing, uint8_t *to)
{
    static const uint8_t gzip[GZIP_HEAD] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}, zlib[] = {0x78, 0x01};
    const size_t size = packing == TR_PACKING_GZIP ? sizeof gzip : sizeof zlib;
    memcpy(to, packing == TR_PACKING_GZIP ? gzip : zlib, size);
    return size;
}

static size_t put_tail(enum tr_packing packing, const uint8_t *data, size_t size, uint8_t *to)
{
    if (packing == TR_PACKING_ZLIB) {
        for (int i = 0; i < 4; i++) to[i] = (uint8_t)(adler_of(data, size) >> (24 - 8 * i));
        return 4;
    }
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(crc_of(data, size) >> 8 * i);
    for (int i = 0; i < 4; i++) to[4 + i] = (uint8_t)(size >> 8 * i);
    return 8;
}

size_t put_member(enum tr_packing packing, const void *data, size_t size, uint8_t *to)
{
    uint8_t *at = to + put_head(packing, to);
    const uint8_t head[STORED_HEAD] = {1, (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)~size,
                                       (uint8_t)(~size >> 8)};
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, data, size);
    at += sizeof head + size;
    return (size_t)(at - to) + put_tail(packing, data, size, at);
}

static void put_bits(uint8_t *to, size_t *at, unsigned bits, int count)
{
    for (int i = count; i-- > 0; ++*at) /* codes begin with their highest bit */
        to[*at / 8] |= (uint8_t)((bits >> i & 1) << *at % 8);
}

size_t put_zeros(enum tr_packing packing, const uint8_t *zeros, size_t copies, uint8_t *to)
{
    const size_t head = put_head(packing, to);
    size_t at = 0;
    put_bits(to + head, &at, 6,
             3); /* the last block, with fixed codes: 1, then 01 with its lowest bit first */
    put_bits(to + head, &at, 0x30, 8);
    for (size_t i = 0; i < copies; i++) put_bits(to + head, &at, 0xc5u << 5, 13); /* 258 bytes, 1 back */
    put_bits(to + head, &at, 0, 7);
    const size_t size = head + (at + 7) / 8;
    return size + put_tail(packing, zeros, 1 + 258 * copies, to + size);
}
