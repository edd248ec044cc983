/* The caches of the processors that this thread may use, as the system reports.
 *
 * The report is checked: a level whose files are missing, truncated or implausible counts as unknown.
 */
#ifndef TR_BASE_CACHES_H
#define TR_BASE_CACHES_H

#include <stdint.h>

#define TR_CACHE_LEVELS 3

/* For data. */
struct tr_cache_level {
    int64_t bytes;  /* 0: there is none, or it is not known */
    int processors; /* processors that share it; 0 without bytes */
};

struct tr_caches {
    struct tr_cache_level level[TR_CACHE_LEVELS]; /* the first level first */
};

/* The caches of one processor. `root` is ""; tests give the folder of another machine's files. */
void tr_caches_look(const char *root, int processor, struct tr_caches *out);
/* The caches that every processor of the calling thread has at least. It looks at the first and the last
   of them, since processors of two kinds are numbered kind by kind. */
void tr_caches_find(struct tr_caches *out);
/* The least of `one` and `other`: for each level the one that gives a processor less. */
struct tr_caches tr_caches_least(const struct tr_caches *one, const struct tr_caches *other);

#endif
