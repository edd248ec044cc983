/* Memory that lies in a file without a name, for data that may be larger than the machine's memory: the
 * system writes its pages to the disk and takes them back where others need the memory.
 */
#ifndef TR_DATA_SPILL_H
#define TR_DATA_SPILL_H

#include "base/files/file.h"
#include "data/files/lines.h"

struct tr_spill {
    uint8_t *data; /* NULL: none */
    size_t size;
};

/* `size` bytes of zeros in a file in `directory`, which has room for all of them from now on, and vanishes
   with the last process that has it. Returned, release with tr_spill_release(). TR_EIO where the file cannot
   be made, or the disk has no room. */
tr_status tr_spill_make(const char *directory, size_t size, struct tr_spill *out);
/* What lies in memory of it need not stay there: it comes back when it is looked at. Any thread. */
void tr_spill_leave(const struct tr_spill *spill);
/* Accepts an empty one; empties it. */
void tr_spill_release(struct tr_spill *spill);

/* A text that is not held in memory: the file itself or, where that is packed, its contents unpacked. */
struct tr_spilled_text {
    const uint8_t *data;
    size_t size;
    struct tr_file_map map;
    struct tr_spill unpacked;
};
/* As tr_load_lines(), with what is unpacked in a file as above. Release with tr_spilled_text_release(), also
   after a failure. */
tr_status tr_spill_lines(const char *path, const char *directory, struct tr_spilled_text *out);
void tr_spilled_text_leave(const struct tr_spilled_text *text);
void tr_spilled_text_release(struct tr_spilled_text *text);

#endif
