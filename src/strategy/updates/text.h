/* A log of updates as text, for people to read and write.
 *
 *     # two workers, the second slow
 *     session, workers=2, servers=1, mode=async, steps=4
 *     applied, 0, 0, 0        contribution 0 of worker 0, which read version 0
 *     applied, 1, 0, 1
 *     applied, 3, 0, 2
 *     applied, 2, 1, 0        after three other updates
 *
 * A line is a record; columns are separated by commas, blanks, or both; text after '#' is a comment.
 *
 *     session, KEY=VALUE...             workers, servers, parts, mode, staleness, first, steps,
 *                                       numerics, job, data, hash
 *     applied, CONTRIBUTION, WORKER, VERSION
 *     dropped, CONTRIBUTION, WORKER, VERSION
 *     lost, WORKER, CONTRIBUTION        without the second: it had none under way
 *     told | gathered | drained
 *     state, HASH
 *
 * The defaults of a session are one server, one part, `async`, any staleness, and as many workers and steps
 * as the records have; without a session line there is one session of that kind. A session begins where the
 * one before it ended.
 */
#ifndef TR_STRATEGY_UPDATES_TEXT_H
#define TR_STRATEGY_UPDATES_TEXT_H

#include "base/text/text.h"
#include "strategy/updates/log.h"

/* Reads a log of `size` bytes, and checks it. `log` must be empty; release it. TR_EFORMAT with `name` and
   line, TR_ENOMEM. */
tr_status tr_update_text_read(const char *name, const char *bytes, size_t size, struct tr_update_log *log);
/* The same from a file. TR_ENOTFOUND, TR_EIO. */
tr_status tr_update_text_file(const char *path, struct tr_update_log *log);
/* Adds a checked log as text; reading that gives the same log. */
void tr_update_text_write(const struct tr_update_log *log, struct tr_text *text);

#endif
