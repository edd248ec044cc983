/* The caches of the processors that this thread may use, as the system reports.
 *
 * The report is checked: a level whose files are missing, cut, or say what no cache can be counts as
 * unknown.
 */
#ifndef TR_BASE_CACHES_H
#define TR_BASE_CACHES_H

#include <stdint.h>

#define TR_CACHE_LEVELS 3

/* For data. */
struct tr_cache_level {
    int64_t bytes;  /* 0: there is none, or it is not known */
    int processors; /* that share it; 0 without bytes */
};

struct tr_caches {
    struct tr_cache_level level[TR_CACHE_LEVELS]; /* the first one first */
};

/* The caches of one processor. `root` is "", but in tests, whose machines lie in folders. */
void tr_caches_look(const char *root, int processor, struct tr_caches *out);
/* Those that all processors which the calling thread may use have at least: of the first and the last of
   them, since processors of two kinds are counted one kind after the other. */
void tr_caches_find(struct tr_caches *out);
/* What `one` and `other` have at least: of each level that which leaves less for a processor. */
struct tr_caches tr_caches_least(const struct tr_caches *one, const struct tr_caches *other);

#endif
