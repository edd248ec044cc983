/* Batch normalization, alone and with the sum and activation after it. The work is cut into pieces, a
 * microbatch by a block of channels each, so that a piece's data is read again while it is in the caches;
 * the trees over microbatches follow after all pieces.
 *
 * A microbatch often exceeds the second-level cache. Sums over it are chains, so they go forwards; the
 * elementwise work after them goes backwards, and so begins with the data that were read last. Pieces go
 * backwards, too: the operation before has just written the last one, and the next operation begins with
 * the first.
 */
#ifndef TR_DEVICE_CPU_BATCH_NORM_H
#define TR_DEVICE_CPU_BATCH_NORM_H

#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/columns.h"

#define NANOSECONDS_PER_ELEMENT (4.0 / VW)

static inline double batch_norm_cost(const struct tr_cut *cut, int64_t spatial, int64_t channels)
{
    return (double)cut->row[cut->count] * (double)spatial * (double)channels * NANOSECONDS_PER_ELEMENT;
}

/* Channels per piece: full groups, or less where members would otherwise be idle. */
static inline int64_t piece_channels(int32_t microbatches, int64_t channels, int size)
{
    int64_t groups = (channels + COLUMN_GROUP - 1) / COLUMN_GROUP;
    return microbatches * groups < 2 * size ? COLUMN_GRAIN : COLUMN_GROUP;
}

struct batch_piece {
    int32_t microbatch;
    int64_t channel, end; /* channels [channel, end) */
};

/* The pieces of a call, and a member's share of them. */
struct batch_pieces {
    int64_t begin, end, blocks, width, channels;
};

static inline struct batch_pieces pieces_of(int32_t microbatches, int64_t channels, int member, int size)
{
    struct batch_pieces p = {.width = piece_channels(microbatches, channels, size), .channels = channels};
    p.blocks = (channels + p.width - 1) / p.width;
    tr_team_chunk(microbatches * p.blocks, 1, member, size, &p.begin, &p.end);
    return p;
}

static inline struct batch_piece piece_at(const struct batch_pieces *p, int64_t index)
{
    int64_t channel = index % p->blocks * p->width, end = channel + p->width;
    return (struct batch_piece){(int32_t)(index / p->blocks), channel, end < p->channels ? end : p->channels};
}

#endif
