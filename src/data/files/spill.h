/* Memory that lies in a file without a name, for data that may be larger than the machine's memory: the
 * system writes pages to the disk when memory is needed, and reads them back on access.
 */
#ifndef TR_DATA_SPILL_H
#define TR_DATA_SPILL_H

#include "base/files/file.h"
#include "data/files/lines.h"

struct tr_spill {
    uint8_t *data; /* NULL: none */
    size_t size;
};

/* `size` bytes of zeros in a file in `directory`, which reserves room for all of them and vanishes with
   the last process that uses it. Returned, release with tr_spill_release(). TR_EIO where the file cannot
   be made, or the disk has no room. */
tr_status tr_spill_make(const char *directory, size_t size, struct tr_spill *out);
/* Lets the system drop its pages from memory; they are read back on access. Any thread. */
void tr_spill_leave(const struct tr_spill *spill);
/* Accepts an empty one; empties it. */
void tr_spill_release(struct tr_spill *spill);

/* A text that is not held in memory: the mapped file or, where that is packed, a file with its unpacked
   contents. */
struct tr_spilled_text {
    const uint8_t *data;
    size_t size;
    struct tr_file_map map;
    struct tr_spill unpacked;
};
/* As tr_load_lines(), but unpacked contents go into a file as above. Release with
   tr_spilled_text_release(), also after a failure. */
tr_status tr_spill_lines(const char *path, const char *directory, struct tr_spilled_text *out);
void tr_spilled_text_leave(const struct tr_spilled_text *text);
void tr_spilled_text_release(struct tr_spilled_text *text);

#endif
