#include "data/memory/kept.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define LARGE ((size_t)256 << 20) /* bytes from which on a copy first checks for free memory */

struct tr_kept *tr_kept_create(void (*release)(void *user), void *user)
{
    struct tr_kept *kept = tr_alloc_zero(1, sizeof *kept);
    if (!kept) {
        if (release) release(user);
        return NULL;
    }
    kept->users = 1;
    kept->release = release;
    kept->user = user;
    return kept;
}

struct tr_kept *tr_kept_share(struct tr_kept *kept)
{
    atomic_fetch_add(&kept->users, 1);
    return kept;
}

void tr_kept_leave(struct tr_kept *kept)
{
    if (!kept || atomic_fetch_sub(&kept->users, 1) > 1) return;
    for (int i = 0; i < kept->owned_count; i++) tr_free(kept->owned[i]);
    for (int32_t i = 0; kept->class_name && i < kept->info.classes; i++) tr_free(kept->class_name[i]);
    tr_free(kept->class_name);
    if (kept->turn) pthread_mutex_destroy(kept->turn);
    tr_free(kept->turn);
    if (kept->release) kept->release(kept->user);
    tr_free(kept);
}

/* Systems promise more memory than they have, and kill processes that use it. */
static bool has_room(size_t count, size_t size)
{
    struct tr_memory_room room;
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return true; /* the allocation reports the overflow */
    if (bytes < LARGE) return true;
    tr_memory_look(NULL, &room);
    if (bytes <= (uint64_t)room.free) return true;
    tr_fail(TR_ENOMEM,
            "a copy of %zu bytes is needed, %s has %" PRId64
            " free; give arrays whose elements lie one after the other, of a type that is used as it is, or "
            "fewer examples",
            bytes, room.where, room.free);
    return false;
}

void *tr_kept_own(struct tr_kept *kept, size_t count, size_t size)
{
    if (!has_room(count, size)) return NULL;
    assert(kept->owned_count < TR_KEPT_OWNED);
    void *memory = tr_alloc(count, size);
    if (memory) kept->owned[kept->owned_count++] = memory;
    return memory;
}

tr_status tr_kept_name_classes(struct tr_kept *kept, const char *const *names)
{
    if (!names) return TR_OK;
    kept->class_name = tr_alloc_zero((size_t)kept->info.classes + 1, sizeof *kept->class_name);
    if (!kept->class_name) return TR_ENOMEM;
    for (int32_t i = 0; i < kept->info.classes; i++) {
        if (!names[i])
            return tr_fail(TR_EINVAL, "class_names[%" PRId32 "] is NULL; name all classes, or none", i);
        if (!(kept->class_name[i] = tr_strdup(names[i]))) return TR_ENOMEM;
    }
    kept->info.class_names = (const char *const *)kept->class_name;
    return TR_OK;
}

/* ---- reading ---- */

static int64_t length_of(const struct tr_kept *kept, int64_t index)
{
    if (kept->length) return kept->length[index];
    return kept->begin[index + 1] - kept->begin[index];
}

static tr_status read_arrays(const struct tr_kept *kept, int64_t index, void *features, int64_t *length,
                             void *label)
{
    const struct tr_source_info *info = &kept->info;
    int64_t first = index * *length;
    if (info->features == TR_FEATURE_TOKENS) {
        first = kept->begin[index];
        *length = length_of(kept, index);
        if (features) memcpy(features, kept->tokens + first, (size_t)*length * sizeof *kept->tokens);
    } else if (info->features == TR_FEATURE_IMAGE) {
        if (features) memcpy(features, kept->images + first, (size_t)*length);
    } else if (features) {
        memcpy(features, kept->numbers + first, (size_t)*length * sizeof *kept->numbers);
    }
    if (!label) return TR_OK;
    if (info->labels == TR_LABEL_CLASS) *(int32_t *)label = kept->label[index];
    if (info->labels == TR_LABEL_TOKENS)
        memcpy(label, kept->label + first, (size_t)*length * sizeof *kept->label);
    if (info->labels == TR_LABEL_PIXELS) {
        const int64_t pixels = tr_source_pixels(info);
        memcpy(label, kept->label + index * pixels, (size_t)pixels * sizeof *kept->label);
    }
    if (info->labels == TR_LABEL_VALUES)
        memcpy(label, kept->value + index * info->values, (size_t)info->values * sizeof *kept->value);
    return TR_OK;
}

/* ---- what a function writes ---- */

static tr_status check_below(int64_t index, const char *what, const int32_t *number, int64_t count,
                             int32_t most)
{
    for (int64_t i = 0; i < count; i++)
        if (number[i] < 0 || number[i] >= most)
            return tr_fail(TR_EFORMAT,
                           "the function that reads examples gave %s %" PRId32 " for example %" PRId64
                           "; it is from 0 to %" PRId32,
                           what, number[i], index, most - 1);
    return TR_OK;
}

static tr_status check_finite(int64_t index, const char *what, const float *number, int64_t count, bool gaps)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(number[i]) && !(gaps && isnan(number[i])))
            return tr_fail(TR_EFORMAT,
                           "the function that reads examples gave a %s for example %" PRId64 " that is %s",
                           what, index, isnan(number[i]) ? "NaN" : "infinite");
    return TR_OK;
}

static tr_status check_read(const struct tr_kept *kept, int64_t index, const void *features, int64_t length,
                            const void *label)
{
    const struct tr_source_info *info = &kept->info;
    bool tokens = info->features == TR_FEATURE_TOKENS;
    if (tokens && (length < 1 || length > info->max_tokens))
        return tr_fail(TR_EFORMAT,
                       "the function that reads examples gave %" PRId64 " tokens for example %" PRId64
                       "; there are from 1 to %" PRId32,
                       length, index, info->max_tokens);
    if (features && tokens) TR_TRY(check_below(index, "token", features, length, info->vocabulary));
    if (features && info->features == TR_FEATURE_FLOATS)
        TR_TRY(check_finite(index, "number", features, length, true));
    if (!label) return TR_OK;
    if (info->labels == TR_LABEL_CLASS) return check_below(index, "class", label, 1, info->classes);
    if (info->labels == TR_LABEL_VALUES) return check_finite(index, "value", label, info->values, false);
    const int64_t labels = info->labels == TR_LABEL_TOKENS ? length : tr_source_pixels(info);
    for (int64_t i = 0; i < labels; i++)
        if (((const int32_t *)label)[i] >= 0)
            TR_TRY(check_below(index, "class", (const int32_t *)label + i, 1, info->classes));
    return TR_OK;
}

static tr_status read_function(const struct tr_kept *kept, int64_t index, void *features, int64_t *length,
                               void *label)
{
    const int64_t fixed = *length;
    if (kept->turn) pthread_mutex_lock(kept->turn);
    int failed = kept->read(kept->user, index, features, length, label);
    if (kept->turn) pthread_mutex_unlock(kept->turn);
    if (failed)
        return tr_fail(TR_EIO, "the function that reads examples returned %d for example %" PRId64, failed,
                       index);
    if (kept->info.features != TR_FEATURE_TOKENS) *length = fixed;
    TR_TRY(check_read(kept, index, features, *length, label));
    int32_t *classes = label;
    const int64_t labels = kept->info.labels == TR_LABEL_TOKENS ? *length : tr_source_pixels(&kept->info);
    for (int64_t i = 0; label && i < labels; i++)
        if (classes[i] < 0) classes[i] = TR_NO_LABEL;
    return TR_OK;
}

tr_status tr_kept_read(const struct tr_kept *kept, int64_t index, void *features, int64_t *length,
                       void *label)
{
    const struct tr_source_info *info = &kept->info;
    switch (info->features) {
    case TR_FEATURE_IMAGE:
        *length = (int64_t)info->height * info->width * info->channels;
        break;
    case TR_FEATURE_FLOATS:
        *length = info->floats;
        break;
    case TR_FEATURE_TOKENS:
        *length = info->max_tokens;
        break;
    }
    return (kept->read ? read_function : read_arrays)(kept, index, features, length, label);
}

/* Room for the features and the label of one example. */
struct room {
    void *features, *label;
};

static tr_status make_room(const struct tr_kept *kept, struct room *room)
{
    const struct tr_source_info *info = &kept->info;
    int64_t most = info->features == TR_FEATURE_IMAGE ? (int64_t)info->height * info->width * info->channels
                   : info->features == TR_FEATURE_FLOATS ? info->floats
                                                         : info->max_tokens;
    int64_t labels = info->labels == TR_LABEL_TOKENS   ? most
                     : info->labels == TR_LABEL_PIXELS ? tr_source_pixels(info)
                                                       : info->values + 1;
    room->features = tr_alloc((size_t)most, sizeof(float));
    room->label = tr_alloc((size_t)labels, sizeof(float));
    return room->features && room->label ? TR_OK : TR_ENOMEM;
}

static void release_room(struct room *room)
{
    tr_free(room->features);
    tr_free(room->label);
}

int64_t tr_kept_labelled(const struct tr_kept *kept, int64_t index)
{
    int64_t length, count = 0;
    if (!kept->read) return tr_labels_count(kept->label + kept->begin[index], length_of(kept, index));
    struct room room;
    if (make_room(kept, &room) == TR_OK &&
        tr_kept_read(kept, index, room.features, &length, room.label) == TR_OK)
        count = tr_labels_count(room.label, length);
    release_room(&room);
    return count;
}

static size_t label_bytes(const struct tr_source_info *info, int64_t length)
{
    switch (info->labels) {
    case TR_LABEL_CLASS:
        return sizeof(int32_t);
    case TR_LABEL_VALUES:
        return (size_t)info->values * sizeof(float);
    case TR_LABEL_TOKENS:
        return (size_t)length * sizeof(int32_t);
    case TR_LABEL_PIXELS:
        return (size_t)tr_source_pixels(info) * sizeof(int32_t);
    case TR_LABEL_NONE:
        break;
    }
    return 0;
}

static tr_status add_examples(const struct tr_kept *kept, const struct room *room, tr_sha256 *hash)
{
    const size_t element = kept->info.features == TR_FEATURE_IMAGE ? 1 : sizeof(float);
    for (int64_t i = 0; i < kept->info.count; i++) {
        int64_t length;
        TR_TRY(tr_kept_read(kept, i, room->features, &length, room->label));
        tr_sha256_add_number(hash, length);
        tr_sha256_add(hash, room->features, (size_t)length * element);
        tr_sha256_add(hash, room->label, label_bytes(&kept->info, length));
    }
    return TR_OK;
}

tr_status tr_kept_digest(const struct tr_kept *kept, tr_sha256 *hash)
{
    struct room room;
    tr_status status = make_room(kept, &room);
    if (status == TR_OK) status = add_examples(kept, &room, hash);
    release_room(&room);
    return status;
}

/* ---- handles ---- */

struct handle {
    tr_source base;
    struct tr_kept *kept;
};

static tr_status handle_read(const tr_source *base, int64_t index, void *features, int64_t *length,
                             void *label)
{
    return tr_kept_read(((const struct handle *)base)->kept, index, features, length, label);
}

static int64_t handle_labelled(const tr_source *base, int64_t index)
{
    return tr_kept_labelled(((const struct handle *)base)->kept, index);
}

static tr_status handle_digest(const tr_source *base, tr_sha256 *hash)
{
    return tr_kept_digest(((const struct handle *)base)->kept, hash);
}

static void handle_destroy(tr_source *base)
{
    tr_kept_leave(((struct handle *)base)->kept);
    tr_free(base);
}

static const struct tr_source_class handle_class = {
    .name = "memory",
    .version = TR_SOURCE_VERSION,
    .read = handle_read,
    .labelled = handle_labelled,
    .digest = handle_digest,
    .destroy = handle_destroy,
};

tr_status tr_kept_handle(struct tr_kept *kept, tr_source **out)
{
    struct handle *handle = tr_alloc_zero(1, sizeof *handle);
    if (!handle) {
        tr_kept_leave(kept);
        return TR_ENOMEM;
    }
    handle->base.class = &handle_class;
    handle->base.info = kept->info;
    handle->base.resident = kept->images;
    handle->base.range = kept->range;
    handle->kept = kept;
    *out = &handle->base;
    return TR_OK;
}

struct tr_kept *tr_kept_of(const tr_source *source)
{
    return source->class == &handle_class ? ((const struct handle *)source)->kept : NULL;
}
