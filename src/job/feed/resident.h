/* A resident set: the examples of a source in a device's memory for good, so that a step sends no more there
 * than the numbers of those that it takes.
 *
 * Images are kept as the bytes that they are stored as, all else as words of 32 bits: floats, tokens, labels.
 * Data that a device can read in the host's memory are not copied. Sets that are not in the host's
 * memory as a whole (they are decoded or read from files as needed), and joined ones with images, are never
 * kept, nor are those that would take more than half of what room a device has left.
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
    /* Images [count][height][width][channels] for the device to read; NULL: they are not kept, or none. */
    const uint8_t *images;
    bool here; /* all that was wanted is in memory of the device alone: what follows */
    uint8_t *bytes;
    int32_t *features, *labels; /* one example after the other; of a running text both are in `features` */
    int64_t *start;             /* [count + 1] where lengths differ: first word of each example */
    size_t memory;              /* bytes of the device that they take */
};

/* Whether the images of a source that lie in the host's memory are taken from there, so that batches need not
   have them. Where they are a file's, a device that shares that memory reads them instead: as long as nobody
   touches the pages of a file, they take no memory. */
bool tr_resident_in_place(const tr_device *device, const tr_source *source);

/* Keeps what of a source is wanted, if that can be; else says in the log why not, where it is for want of
   room. Without `keep` nothing is copied. `device` and `source` are borrowed until tr_resident_release(),
   which is called after a failure, too. TR_ENOMEM. */
tr_status tr_resident_make(tr_device *device, const tr_source *source, bool keep, bool features, bool labels,
                           struct tr_resident *out);
/* The device memory that all of a source would take if it were kept; 0 where it would not be. */
tr_status tr_resident_expect(tr_device *device, const tr_source *source, int64_t *bytes);
/* Accepts zeros. */
void tr_resident_release(struct tr_resident *resident);

/* Enqueue that floats or tokens, or labels of any kind but pixels, of the examples index[0..rows) go to `to`.
   `offset` [rows + 1] says where those of each example begin, if they are tokens or belong to tokens; else it
   is not read. All device memory. */
tr_status tr_resident_features(const struct tr_resident *resident, int64_t rows, const int64_t *index,
                               const int32_t *offset, void *to);
tr_status tr_resident_labels(const struct tr_resident *resident, int64_t rows, const int64_t *index,
                             const int32_t *offset, void *to);

#endif
