#include "dispute/evidence.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- life ---- */

static tr_status open_file(int *out)
{
    const char *const above[] = {getenv("TMPDIR"), "/tmp"};
    char path[4096];
    for (size_t i = 0; i < sizeof above / sizeof above[0]; i++) {
        if (!above[i] || !*above[i]) continue;
        snprintf(path, sizeof path, "%s/trireme-dispute-XXXXXX", above[i]);
        *out = mkstemp(path);
        if (*out < 0) continue;
        unlink(path);
        return TR_OK;
    }
    return tr_fail(TR_EIO, "no file for the numbers of a step can be made in /tmp: %s; set TMPDIR",
                   strerror(errno));
}

tr_status tr_evidence_open(tr_device *device, struct tr_evidence *out)
{
    *out = (struct tr_evidence){.device = device, .file = -1, .cached_region = -1};
    TR_TRY(tr_sha256_begin(&out->hash));
    return open_file(&out->file);
}

void tr_evidence_release(struct tr_evidence *evidence)
{
    for (int64_t i = 0; i < evidence->entries; i++) tr_free(evidence->entry[i].arguments);
    tr_free(evidence->entry);
    tr_free(evidence->region);
    tr_free(evidence->range);
    tr_free(evidence->leaf);
    tr_free(evidence->cached);
    tr_free(evidence->room);
    tr_sha256_destroy(&evidence->hash);
    if (evidence->device && evidence->file >= 0) close(evidence->file);
    *evidence = (struct tr_evidence){.file = -1};
}

/* ---- contents ---- */

static tr_status take_room(struct tr_evidence *evidence, int64_t bytes)
{
    if (bytes <= evidence->room_bytes) return TR_OK;
    tr_free(evidence->room);
    evidence->room_bytes = 0;
    evidence->room = tr_alloc((size_t)bytes, 1);
    if (!evidence->room) return TR_ENOMEM;
    evidence->room_bytes = bytes;
    return TR_OK;
}

static tr_status append(struct tr_evidence *evidence, const void *bytes, int64_t count)
{
    const char *at = bytes;
    while (count > 0) {
        ssize_t written = pwrite(evidence->file, at, (size_t)count, (off_t)evidence->end);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0)
            return tr_fail(TR_EIO, "writing the numbers of a step: %s; set TMPDIR to where there is room",
                           strerror(errno));
        at += written;
        count -= written;
        evidence->end += written;
    }
    return TR_OK;
}

tr_status tr_evidence_read(const struct tr_evidence *evidence, int64_t at, int64_t bytes, void *out)
{
    char *to = out;
    while (bytes > 0) {
        ssize_t got = pread(evidence->file, to, (size_t)bytes, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return tr_fail(TR_EIO, "reading the numbers of a step: %s", strerror(errno));
        to += got;
        at += got;
        bytes -= got;
    }
    return TR_OK;
}

/* Copies memory of the device to evidence->room. */
static tr_status see(struct tr_evidence *evidence, const struct tr_evidence_region *region)
{
    const int64_t bytes = tr_evidence_bytes(region);
    char *to;
    TR_TRY(take_room(evidence, bytes + 1));
    to = evidence->room;
    if (region->step == region->width || region->rows == 1) {
        TR_TRY(tr_device_to_host(evidence->device, to, region->begin, (size_t)bytes));
        return tr_device_wait(evidence->device);
    }
    for (int64_t row = 0; row < region->rows; row++)
        TR_TRY(tr_device_to_host(evidence->device, to + row * region->width,
                                 region->begin + row * region->step, (size_t)region->width));
    return tr_device_wait(evidence->device);
}

static tr_status hash_leaves(struct tr_evidence *evidence, const char *bytes, int64_t size,
                             struct tr_sha256_sum *out)
{
    for (int64_t at = 0; at < size; at += TR_EVIDENCE_LEAF) {
        const int64_t left = size - at;
        const size_t count = (size_t)(left < TR_EVIDENCE_LEAF ? left : TR_EVIDENCE_LEAF);
        TR_TRY(tr_merkle_leaf(evidence->hash, bytes + at, count, out++));
    }
    return TR_OK;
}

static tr_status add_region(struct tr_evidence *evidence, struct tr_evidence_region region)
{
    const int64_t bytes = tr_evidence_bytes(&region), leaves = tr_evidence_leaves(&region);
    if (!tr_grow(&evidence->region, evidence->regions, sizeof *evidence->region)) return TR_ENOMEM;
    TR_TRY(see(evidence, &region));
    struct tr_sha256_sum *sums = tr_alloc((size_t)leaves + 1, sizeof *sums);
    if (!sums) return TR_ENOMEM;
    tr_status status = hash_leaves(evidence, evidence->room, bytes, sums);
    if (status == TR_OK) status = tr_merkle_root(sums, leaves, &region.root);
    tr_free(sums);
    region.at = evidence->end;
    if (status == TR_OK) status = append(evidence, evidence->room, bytes);
    if (status == TR_OK) evidence->region[evidence->regions++] = region;
    return status;
}

/* ---- entries ---- */

static struct tr_evidence_entry *add_entry(struct tr_evidence *evidence, enum tr_evidence_kind kind,
                                           const char *name)
{
    if (!tr_grow(&evidence->entry, evidence->entries, sizeof *evidence->entry)) return NULL;
    struct tr_evidence_entry *entry = &evidence->entry[evidence->entries++];
    *entry = (struct tr_evidence_entry){.kind = kind, .name = name, .first = evidence->regions};
    return entry;
}

tr_status tr_evidence_memory(struct tr_evidence *evidence, enum tr_evidence_kind kind, const char *name,
                             const void *begin, int64_t bytes)
{
    struct tr_evidence_entry *entry = add_entry(evidence, kind, name);
    if (!entry) return TR_ENOMEM;
    entry->regions = 1;
    return add_region(evidence, (struct tr_evidence_region){.name = "bytes",
                                                            .begin = begin,
                                                            .rows = 1,
                                                            .width = bytes,
                                                            .step = bytes,
                                                            .size = bytes % 4 == 0 ? 4 : 1});
}

/* A copy of arguments, followed by the arrays of their cut. */
static void *copy_arguments(enum tr_operation_number number, const void *arguments, size_t size)
{
    const struct tr_operation *operation = tr_operation_of(number);
    const struct tr_cut *cut = tr_operation_cut(operation, arguments);
    const size_t whole = (size + 7) / 8 * 8;
    size_t rows = cut && cut->row ? (size_t)cut->count + 1 : 0;
    size_t bounds = cut && cut->bound ? (size_t)cut->nodes + 1 : 0;
    char *copy = tr_alloc_zero(whole + rows * sizeof(int64_t) + bounds * sizeof(int32_t), 1);
    if (!copy) return NULL;
    memcpy(copy, arguments, size);
    if (!cut) return copy;
    struct tr_cut *own = (struct tr_cut *)(copy + ((const char *)cut - (const char *)arguments));
    int64_t *row = (int64_t *)(copy + whole);
    int32_t *bound = (int32_t *)(row + rows);
    if (rows > 0) memcpy(row, cut->row, rows * sizeof *row);
    if (bounds > 0) memcpy(bound, cut->bound, bounds * sizeof *bound);
    own->row = rows > 0 ? row : NULL;
    own->bound = bounds > 0 ? bound : NULL;
    return copy;
}

tr_status tr_evidence_operation(struct tr_evidence *evidence, enum tr_operation_number operation,
                                const void *arguments, size_t size)
{
    struct tr_unit_region region[TR_UNIT_REGIONS];
    const bool host = evidence->device->class->host_memory;
    const int64_t rows = tr_operation_rows(tr_operation_of(operation), arguments, host);
    struct tr_evidence_entry *entry =
        add_entry(evidence, TR_EVIDENCE_OPERATION, tr_operation_of(operation)->name);
    if (!entry) return TR_ENOMEM;
    entry->operation = operation;
    entry->arguments = copy_arguments(operation, arguments, size);
    if (!entry->arguments) return TR_ENOMEM;
    entry->regions = tr_unit_regions(operation, entry->arguments, rows, region);
    const int count = entry->regions;
    for (int i = 0; i < count; i++)
        TR_TRY(add_region(evidence,
                          (struct tr_evidence_region){.name = region[i].operand->name,
                                                      .nodes = region[i].operand->role == TR_ROLE_NODES,
                                                      .begin = region[i].begin,
                                                      .rows = region[i].rows,
                                                      .width = region[i].width,
                                                      .step = region[i].step,
                                                      .size = region[i].size}));
    return TR_OK;
}

tr_status tr_evidence_keep(struct tr_evidence *evidence, const void *begin, int64_t bytes)
{
    const struct tr_evidence_region region = {.begin = begin, .rows = 1, .width = bytes, .step = bytes};
    if (bytes == 0) return TR_OK;
    if (!tr_grow(&evidence->range, evidence->ranges, sizeof *evidence->range)) return TR_ENOMEM;
    TR_TRY(see(evidence, &region));
    evidence->range[evidence->ranges++] = (struct tr_evidence_range){begin, bytes, evidence->end};
    return append(evidence, evidence->room, bytes);
}

tr_status tr_evidence_store(struct tr_evidence *evidence, const void *bytes, int64_t count, int64_t *at)
{
    *at = evidence->end;
    return append(evidence, bytes, count);
}

tr_status tr_evidence_sum(const char *name, const struct tr_sha256_sum *roots, int count,
                          struct tr_sha256_sum *out)
{
    tr_sha256 *hash;
    static const uint8_t of_leaf = 0;
    TR_TRY(tr_sha256_begin(&hash));
    tr_sha256_add(hash, &of_leaf, 1);
    tr_sha256_add(hash, name, strlen(name) + 1);
    tr_sha256_add(hash, roots, (size_t)count * sizeof *roots);
    tr_status status = tr_sha256_take(hash, out);
    tr_sha256_destroy(&hash);
    return status;
}

tr_status tr_evidence_close(struct tr_evidence *evidence)
{
    evidence->leaf = tr_alloc((size_t)evidence->entries + 1, sizeof *evidence->leaf);
    if (!evidence->leaf) return TR_ENOMEM;
    for (int64_t i = 0; i < evidence->entries; i++) {
        const struct tr_evidence_entry *entry = &evidence->entry[i];
        struct tr_sha256_sum roots[TR_UNIT_REGIONS];
        for (int k = 0; k < entry->regions; k++) roots[k] = evidence->region[entry->first + k].root;
        TR_TRY(tr_evidence_sum(entry->name, roots, entry->regions, &evidence->leaf[i]));
    }
    return TR_OK;
}

/* ---- asking ---- */

tr_status tr_evidence_leaf_sums(struct tr_evidence *evidence, int64_t number,
                                const struct tr_sha256_sum **out)
{
    const struct tr_evidence_region *region = &evidence->region[number];
    const int64_t bytes = tr_evidence_bytes(region);
    *out = NULL;
    if (evidence->cached_region != number) {
        evidence->cached_region = -1;
        tr_free(evidence->cached);
        evidence->cached = tr_alloc((size_t)tr_evidence_leaves(region) + 1, sizeof *evidence->cached);
        if (!evidence->cached) return TR_ENOMEM;
        TR_TRY(take_room(evidence, bytes + 1));
        TR_TRY(tr_evidence_read(evidence, region->at, bytes, evidence->room));
        TR_TRY(hash_leaves(evidence, evidence->room, bytes, evidence->cached));
        evidence->cached_region = number;
    }
    *out = evidence->cached;
    return TR_OK;
}

/* The offset of an address in a region's contents, -1 outside. */
static int64_t byte_at(const struct tr_evidence_region *region, const char *address)
{
    if (address < region->begin || region->width == 0) return -1;
    const int64_t away = address - region->begin, row = region->step > 0 ? away / region->step : 0;
    if (row >= region->rows || away - row * region->step >= region->width) return -1;
    return row * region->width + away - row * region->step;
}

int64_t tr_evidence_writer(const struct tr_evidence *evidence, const void *address, int64_t before,
                           int64_t *byte)
{
    for (int64_t i = before - 1; i >= 0; i--) {
        const struct tr_evidence_entry *entry = &evidence->entry[i];
        if (entry->kind == TR_EVIDENCE_DOWNLOAD) continue; /* which writes nothing */
        for (int64_t k = entry->first; k < entry->first + entry->regions; k++) {
            *byte = byte_at(&evidence->region[k], address);
            if (*byte >= 0) return k;
        }
    }
    return -1;
}

tr_status tr_evidence_kept(const struct tr_evidence *evidence, const void *address, int64_t bytes, void *out)
{
    const char *at = address;
    for (int64_t i = 0; i < evidence->ranges; i++) {
        const struct tr_evidence_range *range = &evidence->range[i];
        if (at >= range->begin && at + bytes <= range->begin + range->bytes)
            return tr_evidence_read(evidence, range->at + (at - range->begin), bytes, out);
    }
    return tr_fail(TR_ENOTFOUND, "a number is read that nothing wrote");
}

const char *tr_evidence_address(const struct tr_evidence_region *region, int64_t byte)
{
    return region->begin + byte / region->width * region->step + byte % region->width;
}
