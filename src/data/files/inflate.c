#include "data/files/inflate.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/counted.h"

#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <string.h>

/* ISA-L counts in 32 bits. */
#define PIECE ((size_t)1 << 30)

struct tr_inflate {
    const char *name;
    const uint8_t *data;
    size_t size, used; /* packed bytes, and how many of them were given to ISA-L */
    enum tr_packing packing;
    bool ended;
    uint64_t offset;
    struct inflate_state state;
};

enum tr_packing tr_packing_of(const uint8_t *data, size_t size)
{
    if (size >= 2 && data[0] == 0x1f && data[1] == 0x8b) return TR_PACKING_GZIP;
    if (size >= 2 && (data[0] & 0x0f) == 8 && data[0] >> 4 <= 7 && (data[0] << 8 | data[1]) % 31 == 0) {
        return TR_PACKING_ZLIB;
    }
    return TR_PACKING_NONE;
}

static void start_member(tr_inflate *inflate)
{
    isal_inflate_init(&inflate->state);
    inflate->state.crc_flag = inflate->packing == TR_PACKING_GZIP ? ISAL_GZIP : ISAL_ZLIB;
}

tr_status tr_inflate_create(const char *name, const uint8_t *data, size_t size, enum tr_packing packing,
                            tr_inflate **out)
{
    tr_inflate *inflate = tr_alloc_aligned(1, sizeof *inflate);
    if (!inflate) return TR_ENOMEM;
    inflate->name = name;
    inflate->data = data;
    inflate->size = size;
    inflate->used = 0;
    inflate->packing = packing;
    inflate->ended = false;
    inflate->offset = 0;
    if (packing != TR_PACKING_NONE) start_member(inflate);
    *out = inflate;
    return TR_OK;
}

void tr_inflate_destroy(tr_inflate **inflate)
{
    tr_free(*inflate);
    *inflate = NULL;
}

static tr_status refuse(const tr_inflate *inflate, int code)
{
    const char *packing = inflate->packing == TR_PACKING_GZIP ? "gzip" : "zlib";
    if (code == ISAL_INCORRECT_CHECKSUM) {
        return tr_fail(TR_ECORRUPT,
                       "%s: the %s checksum before offset %zu does not match the unpacked bytes; get the "
                       "file again",
                       inflate->name, packing, inflate->used);
    }
    return tr_fail(TR_EFORMAT,
                   "%s: invalid %s data near offset %zu (unpacked %" PRIu64 " bytes); get the file again",
                   inflate->name, packing, inflate->used, inflate->offset);
}

/* A member is complete: starts the next one, or ends. */
static tr_status finish_member(tr_inflate *inflate)
{
    size_t left = inflate->size - inflate->used;
    if (left == 0) {
        inflate->ended = true;
    } else if (inflate->packing == TR_PACKING_GZIP &&
               tr_packing_of(inflate->data + inflate->used, left) == TR_PACKING_GZIP) {
        start_member(inflate);
    } else {
        char trailing[TR_COUNTED_SIZE];
        return tr_fail(TR_EFORMAT, "%s: %s at offset %zu after the packed data; get the file again",
                       inflate->name, tr_counted((int64_t)left, "trailing byte", trailing), inflate->used);
    }
    return TR_OK;
}

/* One call of ISA-L for up to `wanted` bytes. */
static tr_status unpack_piece(tr_inflate *inflate, uint8_t *to, size_t wanted, size_t *got)
{
    struct inflate_state *state = &inflate->state;
    size_t left = inflate->size - inflate->used;
    uint32_t given = (uint32_t)(left < PIECE ? left : PIECE),
             room = (uint32_t)(wanted < PIECE ? wanted : PIECE);
    /* ISA-L's pointers are not const, but it only reads the input. */
    state->next_in = (uint8_t *)(uintptr_t)(inflate->data + inflate->used);
    state->avail_in = given;
    state->next_out = to;
    state->avail_out = room;
    int code = isal_inflate(state);
    *got = room - state->avail_out;
    inflate->used += given - state->avail_in;
    inflate->offset += *got;
    if (code < 0) return refuse(inflate, code);
    if (state->block_state == ISAL_BLOCK_FINISH) return finish_member(inflate);
    if (*got == 0 && state->avail_in == given) {
        return tr_fail(TR_EFORMAT,
                       "%s: truncated at offset %zu, in the midst of packed data (unpacked %" PRIu64
                       " bytes); get the file again",
                       inflate->name, inflate->size, inflate->offset);
    }
    return TR_OK;
}

tr_status tr_inflate_read(tr_inflate *inflate, void *to, size_t wanted, size_t *got)
{
    uint8_t *bytes = to;
    *got = 0;
    if (inflate->packing == TR_PACKING_NONE) {
        size_t left = inflate->size - inflate->used;
        *got = wanted < left ? wanted : left;
        if (*got > 0) memcpy(to, inflate->data + inflate->used, *got); /* an empty file has no data at all */
        inflate->used += *got;
        inflate->offset += *got;
        return TR_OK;
    }
    while (*got < wanted && !inflate->ended) {
        size_t piece;
        TR_TRY(unpack_piece(inflate, bytes + *got, wanted - *got, &piece));
        *got += piece;
    }
    return TR_OK;
}

tr_status tr_inflate_exact(tr_inflate *inflate, void *to, size_t wanted, const char *what)
{
    uint64_t start = inflate->offset;
    size_t got;
    TR_TRY(tr_inflate_read(inflate, to, wanted, &got));
    if (got == wanted) return TR_OK;
    return tr_fail(TR_EFORMAT,
                   "%s: truncated at offset %" PRIu64 "%s: %s should take %zu bytes, %zu are there; get the "
                   "file again",
                   inflate->name, start + got, inflate->packing == TR_PACKING_NONE ? "" : " (unpacked)", what,
                   wanted, got);
}

tr_status tr_inflate_end(tr_inflate *inflate)
{
    uint8_t extra;
    size_t got;
    TR_TRY(tr_inflate_read(inflate, &extra, 1, &got));
    if (got == 0) return TR_OK;
    return tr_fail(TR_EFORMAT,
                   "%s: trailing bytes at offset %" PRIu64 "%s, where the contents should end; get the file "
                   "again",
                   inflate->name, inflate->offset - 1,
                   inflate->packing == TR_PACKING_NONE ? "" : " (unpacked)");
}

/* Bytes that `check` is given at once. */
#define JUDGED ((size_t)4 << 20)

tr_status tr_inflate_all(tr_inflate *inflate, size_t limit, tr_inflate_check *check, void *user,
                         uint8_t **out, size_t *length)
{
    tr_status status;
    size_t room = 0, used = 0;
    uint8_t *block = NULL;
    for (;;) {
        if (used == room) {
            /* Memory grows with the bytes that arrive. One byte of room beyond the limit shows that there
               are more. */
            room = room == 0 ? 4 * inflate->size + 4096 : 2 * room;
            if (room > limit) room = limit + 1;
            uint8_t *grown = tr_realloc(block, room, 1);
            if (!grown) {
                status = TR_ENOMEM;
                goto fail;
            }
            block = grown;
        }
        size_t got, wanted = room - used < JUDGED ? room - used : JUDGED;
        TR_TRY_GOTO(tr_inflate_read(inflate, block + used, wanted, &got), fail);
        if (check && got > 0) TR_TRY_GOTO(check(user, block + used, got), fail);
        used += got;
        if (used > limit) {
            status = tr_fail(TR_EFORMAT, "%s: unpacks to more than %zu bytes; unpack the file first",
                             inflate->name, limit);
            goto fail;
        }
        if (got < wanted) break;
    }
    *out = block;
    *length = used;
    return TR_OK;
fail:
    tr_free(block);
    return status;
}

uint64_t tr_inflate_offset(const tr_inflate *inflate)
{
    return inflate->offset;
}
