/* A resident set: the examples of a source, kept in a device's memory, so that a step sends only the
 * numbers of its examples.
 *
 * Images are kept as their stored bytes, all else as words of 32 bits: floats, tokens, labels. Data that a
 * device can read in the host's memory are not copied. Sets that are not in the host's memory as a whole
 * (they are decoded or read from files as needed), and joined ones with images, are never kept, nor are
 * those that would take more than half of the device's free memory.
 *
 * Invariant: a set is kept whole, or not at all.
 */
#ifndef TR_JOB_RESIDENT_H
#define TR_JOB_RESIDENT_H

#include "data/source.h"
#include "device/device.h"

struct tr_resident {
    tr_device *device;
    const tr_source *source;
    /* Images [count][height][width][channels] for the device to read; NULL: not kept, or no images. */
    const uint8_t *images;
    bool here; /* all wanted data are in the device's own memory: the members below */
    uint8_t *bytes;
    int32_t *features, *labels; /* one example after the other; of a running text both are in `features` */
    int64_t *start;             /* [count + 1] where lengths differ: first word of each example */
    size_t memory;              /* bytes of device memory that they take */
};

/* Whether images are read from the source's memory on the host, so that batches need not contain them.
   Where that memory is a mapped file, a device that shares the host's memory gets them with batches
   instead: pages of a file take no memory as long as they are not touched. */
bool tr_resident_in_place(const tr_device *device, const tr_source *source);

/* Keeps the wanted data of a source, if possible; if there is no room, says so in the log. Without `keep`
   nothing is copied. `device` and `source` are borrowed until tr_resident_release(), which must be called
   after a failure, too. TR_ENOMEM. */
tr_status tr_resident_make(tr_device *device, const tr_source *source, bool keep, bool features, bool labels,
                           struct tr_resident *out);
/* The device memory that a source's data would take if kept; 0 where they would not be. */
tr_status tr_resident_expect(tr_device *device, const tr_source *source, int64_t *bytes);
/* Accepts zeros. */
void tr_resident_release(struct tr_resident *resident);

/* Enqueue copies of the floats or tokens, or of labels of any kind except pixels, of the examples
   index[0..rows) to `to`. `offset` [rows + 1] has the beginning of each example, if they are tokens or
   belong to tokens; else it is not read. All device memory. */
tr_status tr_resident_features(const struct tr_resident *resident, int64_t rows, const int64_t *index,
                               const int32_t *offset, void *to);
tr_status tr_resident_labels(const struct tr_resident *resident, int64_t rows, const int64_t *index,
                             const int32_t *offset, void *to);

#endif
