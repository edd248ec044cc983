/* What sources from memory share: the examples of the caller, kept until the last source over them is closed.
 *
 * A source that the caller made is only a handle for them. A job opens views: the same examples, changed
 * as the model file asks (standardized, gaps filled), with the scaling of its training data.
 */
#ifndef TR_DATA_MEMORY_KEPT_H
#define TR_DATA_MEMORY_KEPT_H

#include "data/source.h"
#include "trireme/arrays.h"

#include <pthread.h>
#include <stdatomic.h>

#define TR_KEPT_OWNED 8 /* more than the arrays of a source */

struct tr_kept {
    atomic_int users;           /* sources that use it */
    struct tr_source_info info; /* as the caller gave them; class_names are its own */
    char **class_name;          /* [info.classes], or NULL */
    bool gaps;                  /* some numbers are NaN */
    enum tr_number_range range; /* of images of numbers */
    void (*release)(void *user);
    void *user;
    /* From arrays. Converted arrays are owned; those used in place are the caller's. */
    const uint8_t *images;
    const float *numbers;       /* [count][floats] */
    const int32_t *tokens;      /* of all examples */
    const int64_t *begin;       /* [count + 1]: where the tokens of an example lie */
    const int32_t *length;      /* [count]; NULL: up to where the next example begins */
    const int32_t *label;       /* [count], or as `tokens`, or [count][height][width] */
    const float *value;         /* [count][values] */
    void *owned[TR_KEPT_OWNED]; /* freed with it */
    int owned_count;
    /* From a function. */
    int (*read)(void *user, int64_t index, void *features, int64_t *length, void *label);
    pthread_mutex_t *turn; /* locked for each call, where only one thread at a time may call it; else NULL */
};

/* Without examples yet, with one user. release(user), which may be NULL, ends the caller's part; where memory
   fails, it is called at once and the result is NULL. */
struct tr_kept *tr_kept_create(void (*release)(void *user), void *user);
/* Adds a user. Any thread. */
struct tr_kept *tr_kept_share(struct tr_kept *kept);
/* Removes a user; the last one releases everything. Accepts NULL. Any thread. */
void tr_kept_leave(struct tr_kept *kept);

/* Memory that is freed with it; NULL when memory fails. */
void *tr_kept_own(struct tr_kept *kept, size_t count, size_t size);
/* Copies names of classes. TR_ENOMEM. */
tr_status tr_kept_name_classes(struct tr_kept *kept, const char *const *names);

/* As `read` of a source's class, with the numbers as the caller gave them. */
tr_status tr_kept_read(const struct tr_kept *kept, int64_t index, void *features, int64_t *length,
                       void *label);

/* The number of tokens of an example that have a label, with TR_LABEL_TOKENS. */
int64_t tr_kept_labelled(const struct tr_kept *kept, int64_t index);
/* Adds the examples to a hash, each with its length and label. */
tr_status tr_kept_digest(const struct tr_kept *kept, tr_sha256 *hash);

/* A handle for the caller over `kept`, which is taken, also after a failure. Returned, close with
   tr_source_close(). TR_ENOMEM. */
tr_status tr_kept_handle(struct tr_kept *kept, tr_source **out);
/* The examples behind a source of tr_kept_handle(); NULL for other sources. Borrowed. */
struct tr_kept *tr_kept_of(const tr_source *source);

#endif
