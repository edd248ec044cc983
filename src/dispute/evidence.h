/* Evidence: all numbers of one step of a run, and their origins. Entries are, in order of time: the
 * contents of the state's arenas before the step (INITIAL), data from the host (UPLOAD), outputs of
 * operations (OPERATION), and data read by the host (DOWNLOAD). Each entry has regions of memory, whose
 * contents are in a file without a name.
 *
 * A party commits to all of it by one digest: regions are cut into leaves of TR_EVIDENCE_LEAF bytes, and
 * the root of their tree (receipt/merkle.h) is the region's; an entry is SHA-256(00 || name || 00 ||
 * roots); and the root of the entries' tree is the step's. Equal steps have equal roots on all devices, as
 * long as the device lacks fusions.
 *
 * Used by one thread.
 */
#ifndef TR_DISPUTE_EVIDENCE_H
#define TR_DISPUTE_EVIDENCE_H

#include "device/device.h"
#include "dispute/units/unit.h"
#include "receipt/merkle.h"

#define TR_EVIDENCE_LEAF 256

enum tr_evidence_kind {
    TR_EVIDENCE_INITIAL,
    TR_EVIDENCE_UPLOAD,
    TR_EVIDENCE_OPERATION,
    TR_EVIDENCE_DOWNLOAD
};

struct tr_evidence_region {
    const char *name;  /* of the operand; static storage */
    bool nodes;        /* rows are nodes of a cut */
    const char *begin; /* on the device: rows of `width` bytes, `step` apart, numbers of `size` bytes */
    int64_t rows, width, step;
    int size;
    int64_t at; /* offset of its contents in the file, row after row */
    struct tr_sha256_sum root;
};

struct tr_evidence_entry {
    enum tr_evidence_kind kind;
    const char *name; /* "dense_forward", "upload", ... static storage */
    enum tr_operation_number operation;
    void *arguments; /* of an operation: a copy, with its cut; owned */
    int64_t first;   /* region */
    int regions;
};

/* Memory before the step, of all allocations. */
struct tr_evidence_range {
    const char *begin;
    int64_t bytes, at; /* in the file */
};

struct tr_evidence {
    tr_device *device; /* whose memory is recorded; borrowed */
    int file;
    int64_t end; /* bytes in the file */
    struct tr_evidence_entry *entry;
    int64_t entries;
    struct tr_evidence_region *region;
    int64_t regions;
    struct tr_evidence_range *range;
    int64_t ranges;
    struct tr_sha256_sum *leaf; /* [entries], once tr_evidence_close() was called */
    /* The leaves of the region that was requested last. */
    struct tr_sha256_sum *cached;
    int64_t cached_region; /* or -1 */
    tr_sha256 *hash;
    void *room; /* working memory, of `room_bytes` */
    int64_t room_bytes;
};

/* Begins evidence of a device. Release with tr_evidence_release(), also after a failure. TR_EIO, TR_ENOMEM.
 */
tr_status tr_evidence_open(tr_device *device, struct tr_evidence *out);
void tr_evidence_release(struct tr_evidence *evidence);

/* Each adds an entry. TR_EIO, TR_ENOMEM, failures of the device. */
tr_status tr_evidence_memory(struct tr_evidence *evidence, enum tr_evidence_kind kind, const char *name,
                             const void *begin, int64_t bytes);
tr_status tr_evidence_operation(struct tr_evidence *evidence, enum tr_operation_number operation,
                                const void *arguments, size_t size);
/* Keeps the present memory, which is not an entry. */
tr_status tr_evidence_keep(struct tr_evidence *evidence, const void *begin, int64_t bytes);
/* Adds bytes only to the file, at *at. */
tr_status tr_evidence_store(struct tr_evidence *evidence, const void *bytes, int64_t count, int64_t *at);
/* Call after the last entry. */
tr_status tr_evidence_close(struct tr_evidence *evidence);

/* ---- asking ---- */

static inline int64_t tr_evidence_bytes(const struct tr_evidence_region *region)
{
    return region->rows * region->width;
}
static inline int64_t tr_evidence_leaves(const struct tr_evidence_region *region)
{
    return (tr_evidence_bytes(region) + TR_EVIDENCE_LEAF - 1) / TR_EVIDENCE_LEAF;
}
/* Bytes of a leaf. */
static inline int64_t tr_evidence_leaf_bytes(const struct tr_evidence_region *region, int64_t leaf)
{
    const int64_t left = tr_evidence_bytes(region) - leaf * TR_EVIDENCE_LEAF;
    return left < TR_EVIDENCE_LEAF ? left : TR_EVIDENCE_LEAF;
}

/* Bytes of the file. */
tr_status tr_evidence_read(const struct tr_evidence *evidence, int64_t at, int64_t bytes, void *out);
/* The digests of a region's leaves; borrowed until the next call. */
tr_status tr_evidence_leaf_sums(struct tr_evidence *evidence, int64_t region,
                                const struct tr_sha256_sum **out);
/* The digest of an entry with these regions' roots. */
tr_status tr_evidence_sum(const char *name, const struct tr_sha256_sum *roots, int count,
                          struct tr_sha256_sum *out);

/* Which entry before `entry` last wrote the byte at an address: its region, and the offset within its
   contents. -1: none did. */
int64_t tr_evidence_writer(const struct tr_evidence *evidence, const void *address, int64_t before,
                           int64_t *byte);
/* The bytes at an address before the step, as tr_evidence_keep() kept them. TR_ENOTFOUND. */
tr_status tr_evidence_kept(const struct tr_evidence *evidence, const void *address, int64_t bytes, void *out);
/* The address of a byte of a region's contents. */
const char *tr_evidence_address(const struct tr_evidence_region *region, int64_t byte);

#endif
