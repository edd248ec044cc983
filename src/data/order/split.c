#include "data/order/split.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/rng.h"

#include <inttypes.h>
#include <string.h>

/* What both parts share. */
struct whole {
    tr_source *source;
    struct tr_permutation order; /* the permutation of all examples */
    int64_t begin, end;          /* positions of the second part; the first part has all others */
    int64_t *example; /* [count] example at each position, with the second part's consecutive; NULL: use
                         the order */
    int users;        /* parts that are open */
};

struct part {
    tr_source base;
    struct tr_source_class class; /* that of the whole, with the changes below */
    struct whole *whole;
    bool second;
};

static int64_t index_of(const tr_source *base, int64_t index)
{
    const struct part *part = (const struct part *)base;
    const struct whole *whole = part->whole;
    int64_t position = part->second           ? whole->begin + index
                       : index < whole->begin ? index
                                              : index + whole->end - whole->begin;
    if (whole->example) return whole->example[position];
    return (int64_t)tr_permutation_at(&whole->order, (uint64_t)position);
}

static tr_status part_read(const tr_source *base, int64_t index, void *features, int64_t *length, void *label)
{
    const tr_source *source = ((const struct part *)base)->whole->source;
    return source->class->read(source, index_of(base, index), features, length, label);
}

static tr_status part_read_parts(const tr_source *base, int64_t index, uint8_t *const image[TR_SOURCE_PARTS],
                                 float *floats, void *label)
{
    const tr_source *source = ((const struct part *)base)->whole->source;
    return source->class->read_parts(source, index_of(base, index), image, floats, label);
}

static int64_t part_labelled(const tr_source *base, int64_t index)
{
    const tr_source *source = ((const struct part *)base)->whole->source;
    return source->class->labelled(source, index_of(base, index));
}

static void part_fetch(const tr_source *base, int64_t index)
{
    const tr_source *source = ((const struct part *)base)->whole->source;
    source->class->fetch(source, index_of(base, index));
}

static tr_status part_read_second(const tr_source *base, int64_t index, int32_t *tokens, int64_t *length)
{
    const tr_source *source = ((const struct part *)base)->whole->source;
    return source->class->read_second(source, index_of(base, index), tokens, length);
}

static tr_status part_digest(const tr_source *base, tr_sha256 *hash)
{
    const struct part *part = (const struct part *)base;
    char hex[TR_SHA256_TEXT];
    TR_TRY(tr_source_digest(part->whole->source, hex));
    tr_sha256_add(hash, hex, sizeof hex);
    for (int64_t i = 0; i < base->info.count; i++) tr_sha256_add_number(hash, index_of(base, i));
    return TR_OK;
}

static tr_status part_state(const tr_source *base, char **text)
{
    const tr_source *source = ((const struct part *)base)->whole->source;
    return source->class->state(source, text);
}

static tr_status part_show(const tr_source *base, int64_t index, struct tr_text *text)
{
    const tr_source *source = ((const struct part *)base)->whole->source;
    return source->class->show(source, index_of(base, index), text);
}

static void release(struct whole *whole)
{
    if (__atomic_sub_fetch(&whole->users, 1, __ATOMIC_ACQ_REL) > 0) return;
    tr_source_close(&whole->source);
    tr_permutation_release(&whole->order);
    tr_free(whole->example);
    tr_free(whole);
}

static void part_destroy(tr_source *base)
{
    struct part *part = (struct part *)base;
    release(part->whole);
    tr_free(part);
}

/* Adds a user of the whole on success. */
static tr_status make_part(struct whole *whole, bool second, tr_source **out)
{
    const tr_source *source = whole->source;
    int64_t own = whole->end - whole->begin;
    struct part *part = tr_alloc_zero(1, sizeof *part);
    if (!part) return TR_ENOMEM;
    part->class = *source->class;
    part->class.name = "part"; /* part of the digest: it must not depend on whether the cache unpacked the
                                  data */
    part->class.read = part_read;
    part->class.read_run = NULL; /* no two examples of a part are consecutive in the whole */
    part->class.digest = part_digest;
    part->class.destroy = part_destroy;
    if (source->class->labelled) part->class.labelled = part_labelled;
    if (source->class->read_parts) part->class.read_parts = part_read_parts;
    if (source->class->read_second) part->class.read_second = part_read_second;
    if (source->class->fetch) part->class.fetch = part_fetch;
    if (source->class->state) part->class.state = part_state;
    if (source->class->show) part->class.show = part_show;
    part->whole = whole;
    part->second = second;
    part->base.class = &part->class;
    part->base.info = source->info;
    part->base.info.count = second ? own : source->info.count - own;
    part->base.parts = source->parts;
    part->base.range = source->range;
    part->base.state_name = source->state_name;
    __atomic_add_fetch(&whole->users, 1, __ATOMIC_RELAXED);
    *out = &part->base;
    return TR_OK;
}

/* ---- which examples ---- */

/* Determines which positions the second part has. */
static tr_status place_parts(struct whole *whole, const struct tr_split *split)
{
    int64_t count = whole->source->info.count, second = (int64_t)((double)count * split->share + 0.5);
    if (count < 2) return tr_fail(TR_EINVAL, "%" PRId64 " examples cannot be split; give at least 2", count);
    if (whole->source->overlaps)
        return tr_fail(TR_EINVAL,
                       "windows share rows, so a random part of them would share rows with the rest; leave "
                       "validation_split and folds out, and name data.validation by time, with "
                       "part: [0.8, 1] there and part: [0, 0.8] in data.train");
    if (split->folds > count)
        return tr_fail(TR_EINVAL,
                       "%" PRId64 " examples cannot be cut into %" PRId32 " folds; set fewer folds", count,
                       split->folds);
    if (second < 1) second = 1;
    if (second > count - 1) second = count - 1;
    whole->begin = split->folds > 0 ? count * (split->fold - 1) / split->folds : count - second;
    whole->end = split->folds > 0 ? count * split->fold / split->folds : count;
    return TR_OK;
}

/* Reads the classes of examples by position, and for each class the number of examples of lower classes. */
static tr_status read_classes(const struct whole *whole, int32_t *label, int64_t *lower)
{
    const tr_source *source = whole->source;
    int64_t count = source->info.count, length, sum = 0;
    for (int64_t p = 0; p < count; p++) {
        int64_t example = (int64_t)tr_permutation_at(&whole->order, (uint64_t)p);
        TR_TRY(source->class->read(source, example, NULL, &length, &label[p]));
        lower[label[p]]++;
    }
    for (int32_t c = 0; c < source->info.classes; c++) {
        int64_t own = lower[c];
        lower[c] = sum;
        sum += own;
    }
    return TR_OK;
}

static bool is_in_second(const struct whole *whole, const struct tr_split *split, int64_t number)
{
    int64_t count = whole->source->info.count, second = whole->end - whole->begin;
    if (split->folds > 0) return number % split->folds == split->fold - 1;
    __extension__ typedef __int128 wide;
    return (wide)(number + 1) * second / count != (wide)number * second / count;
}

/* Lists the examples of the first part and then those of the second, by class. */
static tr_status stratify(struct whole *whole, const struct tr_split *split)
{
    const struct tr_source_info *info = &whole->source->info;
    if (info->labels != TR_LABEL_CLASS)
        return tr_fail(TR_EINVAL, "the split is stratified, but the training data have no classes; set "
                                  "data.split: random");
    int32_t *label = tr_alloc((size_t)info->count, sizeof *label);
    int64_t *number = tr_alloc_zero((size_t)info->classes, sizeof *number), firsts = 0, seconds = 0;
    whole->example = tr_alloc((size_t)info->count, sizeof *whole->example);
    tr_status status = label && number && whole->example ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) status = read_classes(whole, label, number);
    for (int64_t p = 0; p < info->count && status == TR_OK; p++) {
        bool second = is_in_second(whole, split, number[label[p]]++);
        int64_t at = second ? info->count - ++seconds : firsts++;
        whole->example[at] = (int64_t)tr_permutation_at(&whole->order, (uint64_t)p);
    }
    /* The second part was listed in reverse, from the end. */
    for (int64_t low = firsts, high = info->count - 1; low < high && status == TR_OK; low++, high--) {
        int64_t kept = whole->example[low];
        whole->example[low] = whole->example[high];
        whole->example[high] = kept;
    }
    whole->begin = firsts;
    whole->end = info->count;
    tr_free(number);
    tr_free(label);
    return status;
}

/* Up to so many examples a list of all is worth its memory, 512 KiB. */
#define LISTED ((int64_t)1 << 16)

/* Lists the examples in the order of the split. */
static tr_status list(struct whole *whole)
{
    const int64_t count = whole->source->info.count;
    if (count > LISTED) return TR_OK;
    whole->example = tr_alloc((size_t)count, sizeof *whole->example);
    if (!whole->example) return TR_ENOMEM;
    tr_permutation_run(&whole->order, 0, count, whole->example);
    return TR_OK;
}

tr_status tr_split_first(tr_source *source, const struct tr_split *split, tr_source **out)
{
    struct whole *whole = tr_alloc_zero(1, sizeof *whole);
    if (!whole) {
        tr_source_close(&source);
        return TR_ENOMEM;
    }
    *whole = (struct whole){.source = source, .users = 1};
    tr_status status = place_parts(whole, split);
    if (status == TR_OK)
        status = tr_permutation_set(&whole->order, tr_rng_key_make(split->seed, TR_RNG_SPLIT), 0,
                                    (uint64_t)source->info.count);
    if (status == TR_OK) status = split->stratified ? stratify(whole, split) : list(whole);
    if (status == TR_OK) status = make_part(whole, false, out);
    release(whole); /* Warnings about changed files, and about lack of memory, are given once. */
    if (status != TR_OK) return status;
    /* Changes of the files, and lack of memory, are reported once. */
    (*out)->files = source->files;
    (*out)->unpacked = source->unpacked;
    source->files = (struct tr_source_files){0};
    return TR_OK;
}

tr_status tr_split_second(const tr_source *first, tr_source **out)
{
    return make_part(((const struct part *)first)->whole, true, out);
}
