/* Reads a run's records, with a JSON value on each line (`journal.jsonl`, `digests.jsonl`).
 *
 * Such a file may end anywhere, since a run can be killed while it writes: an incomplete last line is
 * ignored, and so is everything from the first damaged line on.
 */
#ifndef TR_REPORT_LINES_H
#define TR_REPORT_LINES_H

#include "base/text/json.h"
#include "trireme/status.h"

#include <stdint.h>

struct tr_json_lines {
    tr_json **line;
    int64_t count;
};

/* Reads a file of at most `most` bytes. TR_ENOTFOUND where there is none, TR_EFORMAT where not even its
   first line can be read, TR_EIO, TR_ENOMEM. Release `out` in any case. */
tr_status tr_json_lines_read(const char *path, uint64_t most, struct tr_json_lines *out);
void tr_json_lines_release(struct tr_json_lines *lines);

#endif
