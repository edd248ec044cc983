#include "data/tables/join_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/counted.h"
#include "data/cache/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct join_options {
    const tr_config *sources;
    char *labels;
};

#define FIELD(name) .offset = offsetof(struct join_options, name)
static const struct tr_option join_options[] = {
    {.key = "sources",
     .type = TR_OPTION_NODE,
     FIELD(sources),
     .fallback = NULL,
     .help =
         "two to four sources, each `NAME: {FORMAT: ...}`, at most two of them texts, with equal numbers of "
         "examples; layers take them by name, `from: NAME`"},
    {.key = "labels",
     .type = TR_OPTION_STRING,
     FIELD(labels),
     .fallback = "",
     .help = "name of the source with the labels; default: the only one that has labels"},
};

/* ---- the description ---- */

static tr_status check_name(const tr_config *node, const char *name)
{
    if (strlen(name) > 0 && strlen(name) < TR_NAMED_SHAPE_NAME && !name[strcspn(name, "./ \t\n\"")] &&
        strcmp(name, "input") != 0)
        return TR_OK;
    return tr_config_fail_key(
        TR_EINVAL, node,
        "\"%s\" cannot be the name of a source: give one of fewer than %d characters, none of "
        "them . / or blank, and not \"input\"",
        name, TR_NAMED_SHAPE_NAME);
}

/* Checks that there are sources, with names. */
static tr_status check_sources(const struct join_options *options)
{
    const tr_config *sources = options->sources;
    int32_t count = tr_config_count(sources);
    if (tr_config_kind(sources) != TR_CONFIG_MAPPING || count < 2 || count > TR_SOURCE_PARTS)
        return tr_config_fail(TR_EINVAL, sources,
                              "wants two to %d sources, for instance {photo: {folder: ...}, facts: {csv: "
                              "...}}",
                              TR_SOURCE_PARTS);
    for (int32_t k = 0; k < count; k++) {
        TR_TRY(check_name(tr_config_at(sources, k), tr_config_key(sources, k)));
        if (tr_config_get(tr_config_at(sources, k), tr_source_format_join.name))
            return tr_config_fail(TR_EINVAL, tr_config_at(sources, k),
                                  "a source of a join cannot be a join; list its sources beside the others");
    }
    return TR_OK;
}

/* The number of the source called `name`, -1 if there is none. */
static int32_t find_source(const tr_config *sources, const char *name)
{
    for (int32_t k = 0; k < tr_config_count(sources); k++)
        if (strcmp(tr_config_key(sources, k), name) == 0) return k;
    return -1;
}

static tr_status check_labels(const struct join_options *options)
{
    const char *names[TR_SOURCE_PARTS];
    if (!options->labels || find_source(options->sources, options->labels) >= 0) return TR_OK;
    for (int32_t k = 0; k < tr_config_count(options->sources); k++)
        names[k] = tr_config_key(options->sources, k);
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "labels: source ");
    tr_text_add_unknown(&text, options->labels, names, tr_config_count(options->sources));
    tr_status status =
        text.failed ? TR_ENOMEM : tr_config_fail(TR_EINVAL, options->sources, "%s", text.bytes);
    tr_text_release(&text);
    return status;
}

static tr_status join_check(const void *options_)
{
    const struct join_options *options = options_;
    TR_TRY(check_sources(options));
    for (int32_t k = 0; k < tr_config_count(options->sources); k++)
        TR_TRY(tr_source_check_config(tr_config_at(options->sources, k)));
    return check_labels(options);
}

tr_status tr_join_names(const tr_config *node, struct tr_source_parts *parts)
{
    const tr_config *own = tr_config_get(node, tr_source_format_join.name);
    const struct join_options options = {.sources = tr_config_get(own, "sources")};
    *parts = (struct tr_source_parts){0};
    if (!own) return TR_OK;
    if (!options.sources) return tr_source_check_config(node);
    TR_TRY(check_sources(&options));
    for (; parts->count < tr_config_count(options.sources); parts->count++)
        snprintf(parts->part[parts->count].name, TR_NAMED_SHAPE_NAME, "%s",
                 tr_config_key(options.sources, parts->count));
    return TR_OK;
}

/* ---- opening ---- */

/* Source `k` is a text. */
static tr_status take_text(struct join_source *join, int32_t k)
{
    if (join->source[k]->stream)
        return tr_fail(TR_EUNSUPPORTED,
                       "source \"%s\" is running text, which has no examples to join; take the format text, "
                       "or the corpus alone",
                       join->name[k]);
    if (join->second >= 0)
        return tr_fail(TR_EUNSUPPORTED, "sources \"%s\", \"%s\" and \"%s\" are texts; two can be joined",
                       join->name[join->text], join->name[join->second], join->name[k]);
    *(join->text < 0 ? &join->text : &join->second) = k;
    return TR_OK;
}

static tr_status open_one(struct join_source *join, int32_t k, const tr_config *node, const char *directory,
                          const char *state, tr_store *store, int slot)
{
    char *own;
    TR_TRY(tr_join_state_of(state, join->name[k], &own));
    tr_status status = tr_source_open_part(node, directory, own, store,
                                           slot < 0 ? -1 : slot + TR_STORE_SETS * k, &join->source[k]);
    tr_free(own);
    if (status != TR_OK) return tr_fail_in(status, "source \"%s\"", join->name[k]);
    const struct tr_source_info *info = &join->source[k]->info;
    if (info->features == TR_FEATURE_TOKENS) TR_TRY(take_text(join, k));
    if (info->skipped > 0)
        return tr_fail(TR_EFORMAT,
                       "source \"%s\" has left out %" PRId64
                       " rows, so that its rows no longer belong to those of the others; correct them, or "
                       "set missing: mean or constant",
                       join->name[k], info->skipped);
    return TR_OK;
}

static tr_status check_counts(const struct join_source *join)
{
    const int64_t count = join->source[0]->info.count;
    char counted[TR_COUNTED_SIZE];
    for (int32_t k = 1; k < join->count; k++)
        if (join->source[k]->info.count != count)
            return tr_fail(TR_EMISMATCH,
                           "source \"%s\" has %s, source \"%s\" %" PRId64
                           "; joined sources have as many, example by example in the same order",
                           join->name[0], tr_counted_long(count, "example", counted), join->name[k],
                           join->source[k]->info.count);
    return TR_OK;
}

/* Determines which source has the labels. */
static tr_status choose_labels(struct join_source *join, const struct join_options *options)
{
    join->labels = options->labels ? find_source(options->sources, options->labels) : -1;
    if (join->labels >= 0 && join->source[join->labels]->info.labels == TR_LABEL_NONE)
        return tr_fail(TR_EINVAL, "labels: source \"%s\" has none; name another one, or leave `labels` out",
                       options->labels);
    for (int32_t k = 0; k < join->count; k++)
        if (join->source[k]->info.labels == TR_LABEL_PIXELS)
            return tr_fail(TR_EUNSUPPORTED,
                           "source \"%s\" has labels of pixels, which joined sources cannot have; train on "
                           "its images alone",
                           join->name[k]);
    for (int32_t k = 0; !options->labels && k < join->count; k++) {
        if (join->source[k]->info.labels == TR_LABEL_NONE) continue;
        if (join->labels >= 0)
            return tr_fail(TR_EINVAL,
                           "sources \"%s\" and \"%s\" both have labels; name the one whose labels are to be "
                           "learned by `labels`",
                           join->name[join->labels], join->name[k]);
        join->labels = k;
    }
    return TR_OK;
}

/* Images of numbers would be mere vectors among the parts, and pictures were meant as images. */
static tr_status check_pictures(const struct join_source *join)
{
    for (int32_t k = 0; k < join->count; k++)
        if (join->source[k]->range == TR_RANGE_PICTURE)
            return tr_fail(TR_EUNSUPPORTED,
                           "source \"%s\" has images of 16 bits, which cannot be joined; set its depth: 8, "
                           "which takes the high bytes",
                           join->name[k]);
    return TR_OK;
}

/* Orders the parts, images first. A source with only labels is no part. */
static void order_parts(struct join_source *join)
{
    struct tr_source_parts *parts = &join->parts;
    for (int vectors = 0; vectors < 2; vectors++) {
        for (int32_t k = 0; k < join->count; k++) {
            const struct tr_source_info *info = &join->source[k]->info;
            bool image = info->features == TR_FEATURE_IMAGE;
            if (k == join->text || k == join->second || image == vectors || (!image && info->floats == 0))
                continue;
            struct tr_named_shape *part = &parts->part[parts->count];
            snprintf(part->name, sizeof part->name, "%s", join->name[k]);
            part->shape = image ? (struct tr_shape){3, {info->height, info->width, info->channels}, false}
                                : (struct tr_shape){1, {info->floats}, false};
            join->of_part[parts->count++] = k;
            parts->images += image;
        }
    }
}

/* The text of an example takes the place of its features, with the numbers of the others beside it. */
static tr_status describe_text(struct join_source *join)
{
    struct tr_source_info *info = &join->base.info;
    const struct tr_source_info *text = &join->source[join->text]->info;
    if (join->parts.images > 0)
        return tr_fail(TR_EUNSUPPORTED,
                       "source \"%s\" has texts and source \"%s\" images; a text can be joined with numbers",
                       join->name[join->text], join->parts.part[0].name);
    snprintf(join->parts.text, sizeof join->parts.text, "%s", join->name[join->text]);
    if (join->second >= 0) {
        const struct tr_source_info *second = &join->source[join->second]->info;
        snprintf(join->parts.second, sizeof join->parts.second, "%s", join->name[join->second]);
        join->parts.second_tokens = second->max_tokens;
        join->parts.second_vocabulary = second->vocabulary;
    }
    info->features = TR_FEATURE_TOKENS;
    info->vocabulary = text->vocabulary;
    info->max_tokens = text->max_tokens;
    return TR_OK;
}

/* Of two texts the one whose tokens have the labels comes first. */
static void choose_text(struct join_source *join)
{
    const int32_t labels = join->labels;
    if (labels < 0 || join->source[labels]->info.labels != TR_LABEL_TOKENS) return;
    if (labels != join->second) return;
    join->second = join->text;
    join->text = labels;
}

static tr_status describe(struct join_source *join)
{
    struct tr_source_info *info = &join->base.info;
    int64_t floats = 0;
    TR_TRY(check_pictures(join));
    choose_text(join);
    order_parts(join);
    for (int32_t i = 0; i < join->parts.count; i++) floats += tr_shape_count(&join->parts.part[i].shape);
    if (floats < 1 && join->text >= 0 && join->second < 0)
        return tr_fail(
            TR_EINVAL,
            "beside the text \"%s\" there are no numbers and no other text; take the text alone, whose "
            "format reads labels of tables",
            join->name[join->text]);
    if ((floats < 1 && join->second < 0) || floats > INT32_MAX)
        return tr_fail(TR_EINVAL,
                       "an example of the joined sources has %" PRId64 " numbers; 1 to %d are taken", floats,
                       INT32_MAX);
    info->count = join->source[0]->info.count;
    info->features = TR_FEATURE_FLOATS;
    info->floats = (int32_t)floats;
    if (join->text >= 0) TR_TRY(describe_text(join));
    for (int32_t k = 0; k < join->count; k++) {
        info->slow |= join->source[k]->info.slow;
        join->base.unpacked += join->source[k]->unpacked;
    }
    if (join->labels < 0) return TR_OK;
    const struct tr_source_info *labels = &join->source[join->labels]->info;
    info->labels = labels->labels;
    info->classes = labels->classes;
    info->values = labels->values;
    info->class_names = labels->class_names;
    return TR_OK;
}

static tr_status fill(struct join_source *join, const struct join_options *options, const char *directory,
                      const char *state, tr_store *store, int slot)
{
    TR_TRY(check_sources(options));
    TR_TRY(check_labels(options));
    for (; join->count < tr_config_count(options->sources); join->count++) {
        join->name[join->count] = tr_strdup(tr_config_key(options->sources, join->count));
        if (!join->name[join->count]) return TR_ENOMEM;
        TR_TRY(open_one(join, join->count, tr_config_at(options->sources, join->count), directory, state,
                        store, slot));
    }
    TR_TRY(check_counts(join));
    TR_TRY(choose_labels(join, options));
    return describe(join);
}

static tr_status join_open_through(const void *options, const char *directory, const char *state,
                                   tr_store *store, int slot, tr_source **out)
{
    struct join_source *join = tr_alloc_zero(1, sizeof *join);
    if (!join) return TR_ENOMEM;
    join->base.class = &join_class;
    join->text = join->second = -1;
    join->base.parts = &join->parts;
    tr_status status = fill(join, options, directory, state, store, slot);
    if (status != TR_OK) {
        join_destroy(&join->base);
        return status;
    }
    *out = &join->base;
    return TR_OK;
}

static tr_status join_open(const void *options, const char *directory, const char *state, tr_source **out)
{
    return join_open_through(options, directory, state, NULL, -1, out);
}

static tr_status join_files(const void *options_, const char *directory, struct tr_source_files *files)
{
    const struct join_options *options = options_;
    TR_TRY(check_sources(options));
    for (int32_t k = 0; k < tr_config_count(options->sources); k++) {
        const struct tr_entry *entry;
        void *own;
        TR_TRY(tr_registry_read(&tr_source_formats, tr_config_at(options->sources, k), &entry, &own));
        tr_status status = ((const struct tr_source_format *)entry)->files(own, directory, files);
        tr_entry_release(entry, own);
        if (status != TR_OK) return status;
    }
    return TR_OK;
}

/* The sources unpack, each for itself. */
static bool join_unpacks(const void *options, const struct tr_source_files *files)
{
    (void)options;
    (void)files;
    return false;
}

const struct tr_source_format tr_source_format_join = {
    .name = "join",
    .help = "several sources, joined example by example: images or a text, and columns of a table, for "
            "instance; or "
            "a text and what it becomes, for networks that translate",
    .options = join_options,
    .option_count = TR_OPTION_COUNT(join_options),
    .options_size = sizeof(struct join_options),
    .open = join_open,
    .files = join_files,
    .unpacks = join_unpacks,
    .check = join_check,
    .open_through = join_open_through,
};
