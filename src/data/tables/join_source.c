/* Reading joined sources, and what a checkpoint keeps of them. */
#include "data/tables/join_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/state.h"

#include <string.h>

#define STATE_KIND "sources"

/* ---- reading ---- */

static tr_status read_label(const struct join_source *join, int64_t index, void *label)
{
    int64_t ignored;
    if (!label || join->labels < 0) return TR_OK;
    const tr_source *source = join->source[join->labels];
    return source->class->read(source, index, NULL, &ignored, label);
}

static tr_status join_read_parts(const tr_source *base, int64_t index, uint8_t *const image[TR_SOURCE_PARTS],
                                 float *floats, void *label)
{
    const struct join_source *join = (const struct join_source *)base;
    int64_t length;
    for (int32_t i = 0; i < join->parts.count; i++) {
        const tr_source *source = join->source[join->of_part[i]];
        void *features = i < join->parts.images ? (void *)image[i] : (void *)floats;
        TR_TRY(source->class->read(source, index, features, &length, NULL));
        if (i >= join->parts.images) floats += length;
    }
    return read_label(join, index, label);
}

static tr_status join_read_second(const tr_source *base, int64_t index, int32_t *tokens, int64_t *length)
{
    const struct join_source *join = (const struct join_source *)base;
    const tr_source *source = join->source[join->second];
    return source->class->read(source, index, tokens, length, NULL);
}

/* The bytes of an image as numbers. */
static tr_status read_image(const tr_source *source, int64_t index, float *to)
{
    int64_t count = tr_source_capacity(source), length;
    uint8_t *bytes = tr_alloc((size_t)count, 1);
    if (!bytes) return TR_ENOMEM;
    tr_status status = source->class->read(source, index, bytes, &length, NULL);
    for (int64_t i = 0; status == TR_OK && i < count; i++) to[i] = (float)bytes[i];
    tr_free(bytes);
    return status;
}

static tr_status join_read(const tr_source *base, int64_t index, void *features, int64_t *length, void *label)
{
    const struct join_source *join = (const struct join_source *)base;
    float *to = features;
    int64_t ignored;
    if (join->text >= 0) {
        const tr_source *text = join->source[join->text];
        TR_TRY(text->class->read(text, index, features, length, NULL));
        return read_label(join, index, label);
    }
    *length = base->info.floats;
    for (int32_t i = 0; to && i < join->parts.count; i++) {
        const tr_source *source = join->source[join->of_part[i]];
        TR_TRY(i < join->parts.images ? read_image(source, index, to)
                                      : source->class->read(source, index, to, &ignored, NULL));
        to += tr_source_capacity(source);
    }
    return read_label(join, index, label);
}

static int64_t join_labelled(const tr_source *base, int64_t index)
{
    const struct join_source *join = (const struct join_source *)base;
    const tr_source *source = join->source[join->labels];
    return source->class->labelled(source, index);
}

static void join_fetch(const tr_source *base, int64_t index)
{
    const struct join_source *join = (const struct join_source *)base;
    for (int32_t k = 0; k < join->count; k++)
        if (join->source[k]->class->fetch) join->source[k]->class->fetch(join->source[k], index);
}

static tr_status join_digest(const tr_source *base, tr_sha256 *hash)
{
    const struct join_source *join = (const struct join_source *)base;
    char hex[TR_SHA256_TEXT];
    for (int32_t k = 0; k < join->count; k++) {
        TR_TRY(tr_source_digest(join->source[k], hex));
        tr_sha256_add(hash, join->name[k], strlen(join->name[k]) + 1);
        tr_sha256_add(hash, hex, sizeof hex);
    }
    tr_sha256_add(hash, &(uint8_t){(uint8_t)(join->labels + 1)}, 1);
    return TR_OK;
}

static tr_status join_show(const tr_source *base, int64_t index, struct tr_text *text)
{
    const struct join_source *join = (const struct join_source *)base;
    for (int32_t i = 0; i < join->parts.count; i++) {
        const struct tr_named_shape *part = &join->parts.part[i];
        char shape[TR_SHAPE_TEXT];
        tr_text_addf(text, "%s%s ", i ? ", " : "", part->name);
        if (i < join->parts.images)
            tr_text_add(text, tr_shape_text(&part->shape, shape));
        else
            TR_TRY(tr_source_add_floats(join->source[join->of_part[i]], index, text));
    }
    if (join->text < 0) {
        tr_text_add(text, "\n");
        return TR_OK;
    }
    const tr_source *source = join->source[join->text];
    if (join->second >= 0) {
        const tr_source *second = join->source[join->second];
        tr_text_addf(text, "%s%s ", join->parts.count ? ", " : "", join->name[join->second]);
        TR_TRY(second->class->show(second, index, text));
        while (text->length > 0 && text->bytes[text->length - 1] == '\n') text->length--;
    }
    tr_text_addf(text, "%s%s ", join->parts.count || join->second >= 0 ? ", " : "", join->name[join->text]);
    return source->class->show(source, index, text);
}

/* ---- state ---- */

static int64_t count_lines(const char *text)
{
    int64_t lines = 0;
    for (; text && (text = strchr(text, '\n')); text++) lines++;
    return lines;
}

static tr_status join_state(const tr_source *base, char **out)
{
    const struct join_source *join = (const struct join_source *)base;
    struct tr_text text = TR_TEXT_INIT;
    for (int32_t k = 0; k < join->count; k++) {
        const char *ignored;
        char *own;
        tr_status status = tr_source_state(join->source[k], &ignored, &own);
        if (status != TR_OK) {
            tr_text_release(&text);
            return status;
        }
        tr_state_add_head(&text, STATE_KIND, 0, 1 + count_lines(own));
        tr_text_addf(&text, "%s\n", join->name[k]);
        if (own) tr_text_add(&text, own);
        tr_text_free(own);
    }
    return tr_text_finish(&text, out);
}

tr_status tr_join_state_of(const char *state, const char *name, char **out)
{
    struct tr_state_reader reader;
    *out = NULL;
    if (!state) return TR_OK;
    do {
        const char *line, *begin;
        size_t length;
        TR_TRY(tr_state_begin(state, STATE_KIND, &reader));
        TR_TRY(tr_state_next(&reader, &line, &length));
        bool found = length == strlen(name) && memcmp(line, name, length) == 0;
        begin = reader.at;
        while (reader.line < reader.lines) TR_TRY(tr_state_next(&reader, &line, &length));
        state = reader.at;
        if (!found) continue;
        if (state == begin) return TR_OK;
        *out = tr_format("%.*s", (int)(state - begin), begin);
        return *out ? TR_OK : TR_ENOMEM;
    } while (*state);
    return tr_fail(TR_EMISMATCH,
                   "the training data have no source \"%s\"; give all data sets sources of the same names",
                   name);
}

/* ---- the class ---- */

void join_destroy(tr_source *base)
{
    struct join_source *join = (struct join_source *)base;
    for (int32_t k = 0; k < TR_SOURCE_PARTS; k++) {
        tr_source_close(&join->source[k]);
        tr_free(join->name[k]);
    }
    tr_free(join);
}

const struct tr_source_class join_class = {
    .name = "join",
    .version = TR_SOURCE_VERSION,
    .read = join_read,
    .read_parts = join_read_parts,
    .read_second = join_read_second,
    .fetch = join_fetch,
    .labelled = join_labelled,
    .digest = join_digest,
    .state_name = "sources.txt",
    .state = join_state,
    .show = join_show,
    .destroy = join_destroy,
};
