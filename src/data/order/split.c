#include "data/order/split.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/rng.h"

#include <inttypes.h>
#include <string.h>

/* What both parts share. */
struct whole {
    tr_source *source;
    tr_rng_key key;
    int64_t first_count; /* examples of the first part */
    int users;           /* parts that are open */
};

struct part {
    tr_source base;
    struct tr_source_class class; /* the whole's, but for what is below */
    struct whole *whole;
    int64_t begin; /* position of its first example */
};

static int64_t index_of(const tr_source *base, int64_t index)
{
    const struct part *part = (const struct part *)base;
    const struct whole *whole = part->whole;
    uint64_t count = (uint64_t)whole->source->info.count, position = (uint64_t)(part->begin + index);
    return (int64_t)tr_rng_permute(whole->key, 0, count, position);
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
    tr_free(whole);
}

static void part_destroy(tr_source *base)
{
    struct part *part = (struct part *)base;
    release(part->whole);
    tr_free(part);
}

/* Counts as a user of the whole on success. */
static tr_status make_part(struct whole *whole, int64_t begin, int64_t end, tr_source **out)
{
    const tr_source *source = whole->source;
    struct part *part = tr_alloc_zero(1, sizeof *part);
    if (!part) return TR_ENOMEM;
    part->class = *source->class;
    part->class.name = "part"; /* which the digest has, so that it is the same of what the cache unpacked */
    part->class.read = part_read;
    part->class.read_run = NULL; /* no two examples are in a row there */
    part->class.digest = part_digest;
    part->class.destroy = part_destroy;
    if (source->class->labelled) part->class.labelled = part_labelled;
    if (source->class->read_parts) part->class.read_parts = part_read_parts;
    if (source->class->fetch) part->class.fetch = part_fetch;
    if (source->class->state) part->class.state = part_state;
    if (source->class->show) part->class.show = part_show;
    part->whole = whole;
    part->begin = begin;
    part->base.class = &part->class;
    part->base.info = source->info;
    part->base.info.count = end - begin;
    part->base.parts = source->parts;
    part->base.state_name = source->state_name;
    __atomic_add_fetch(&whole->users, 1, __ATOMIC_RELAXED);
    *out = &part->base;
    return TR_OK;
}

tr_status tr_split_first(tr_source *source, uint64_t seed, double share, tr_source **out)
{
    int64_t count = source->info.count, second = (int64_t)((double)count * share + 0.5);
    struct whole *whole = tr_alloc_zero(1, sizeof *whole);
    tr_status status = whole ? TR_OK : TR_ENOMEM;
    if (status == TR_OK && count < 2)
        status = tr_fail(TR_EINVAL, "%" PRId64 " examples cannot be split; give at least 2", count);
    if (second < 1) second = 1;
    if (second > count - 1) second = count - 1;
    if (status == TR_OK) {
        *whole = (struct whole){source, tr_rng_key_make(seed, TR_RNG_SPLIT), count - second, 0};
        status = make_part(whole, 0, count - second, out);
    }
    if (status != TR_OK) {
        tr_source_close(&source);
        tr_free(whole);
        return status;
    }
    /* Changes of the files, and memory, are told of once. */
    (*out)->files = source->files;
    (*out)->unpacked = source->unpacked;
    source->files = (struct tr_source_files){0};
    return TR_OK;
}

tr_status tr_split_second(const tr_source *first, tr_source **out)
{
    struct whole *whole = ((const struct part *)first)->whole;
    return make_part(whole, whole->first_count, whole->source->info.count, out);
}
