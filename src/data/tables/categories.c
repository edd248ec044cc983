#include "data/tables/categories.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/state.h"

#include <inttypes.h>
#include <string.h>

#define COLUMNS_MOST (1 << 20)

tr_status tr_categories_create(int32_t columns, struct tr_categories *out)
{
    *out = (struct tr_categories){columns, tr_alloc_zero((size_t)columns + 1, sizeof *out->names)};
    if (out->names) return TR_OK;
    out->columns = 0;
    return TR_ENOMEM;
}

void tr_categories_release(struct tr_categories *categories)
{
    for (int32_t c = 0; c < categories->columns; c++) tr_class_names_release(&categories->names[c]);
    tr_free(categories->names);
    *categories = (struct tr_categories){0};
}

tr_status tr_categories_copy(const struct tr_categories *categories, struct tr_categories *out)
{
    *out = (struct tr_categories){0};
    if (categories->columns == 0) return TR_OK;
    tr_status status = tr_categories_create(categories->columns, out);
    for (int32_t c = 0; status == TR_OK && c < categories->columns; c++)
        for (int32_t i = 0; status == TR_OK && i < categories->names[c].count; i++) {
            const char *name = categories->names[c].name[i];
            status = tr_class_names_add(&out->names[c], name, strlen(name));
        }
    if (status != TR_OK) tr_categories_release(out);
    return status;
}

int64_t tr_categories_width(const struct tr_categories *categories)
{
    int64_t width = 0;
    for (int32_t c = 0; c < categories->columns; c++) width += tr_category_width(categories, c);
    return width;
}

float tr_category_find(const struct tr_categories *categories, int32_t column, const char *at, size_t length)
{
    return (float)tr_class_names_find(&categories->names[column], at, length);
}

void tr_categories_expand(const struct tr_categories *categories, const float *from, float *to)
{
    for (int32_t c = 0; c < categories->columns; c++) {
        int32_t names = categories->names[c].count;
        if (names == 0) *to++ = from[c];
        for (int32_t i = 0; i < names; i++) *to++ = from[c] == (float)i ? 1 : 0;
    }
}

/* ---- in states ---- */

void tr_categories_write(const struct tr_categories *categories, struct tr_text *state)
{
    int64_t lines = categories->columns;
    if (categories->columns == 0) return;
    for (int32_t c = 0; c < categories->columns; c++) lines += categories->names[c].count;
    tr_state_add_head(state, TR_STATE_CATEGORIES, 0, lines);
    for (int32_t c = 0; c < categories->columns; c++) {
        const struct tr_class_names *names = &categories->names[c];
        tr_text_addf(state, "%" PRId32 "\n", names->count);
        for (int32_t i = 0; i < names->count; i++) tr_text_addf(state, "%s\n", names->name[i]);
    }
}

static tr_status refuse(int64_t line, const char *why)
{
    return tr_fail(TR_EFORMAT, "categories:%" PRId64 ": %s; take the file that was saved with the model",
                   line + 1, why);
}

/* Reads the number on a line. */
static bool read_count(const char *line, size_t length, int64_t most, int64_t *count)
{
    char text[16];
    if (length >= sizeof text) return false;
    memcpy(text, line, length);
    text[length] = '\0';
    return !tr_text_int64(text, count) && *count >= 0 && *count <= most;
}

/* Reads the columns, of which there are *columns; with `out`, also takes their names. */
static tr_status read_columns(const char *part, int32_t *columns, struct tr_categories *out)
{
    struct tr_state_reader reader;
    const char *line;
    size_t length;
    *columns = 0;
    TR_TRY(tr_state_begin(part, TR_STATE_CATEGORIES, &reader));
    while (reader.line < reader.lines) {
        int64_t count;
        TR_TRY(tr_state_next(&reader, &line, &length));
        if (*columns == COLUMNS_MOST || !read_count(line, length, TR_CLASS_NAMES_MAX, &count))
            return refuse(reader.line, "is not the number of the names of a column");
        for (int64_t i = 0; i < count; i++) {
            TR_TRY(tr_state_next(&reader, &line, &length));
            if (!out) continue;
            struct tr_class_names *names = &out->names[*columns];
            TR_TRY(tr_class_names_add(names, line, length));
            if (names->count != i + 1 || strlen(names->name[i]) != length ||
                memcmp(names->name[i], line, length) != 0)
                return refuse(reader.line, "names do not ascend");
        }
        ++*columns;
    }
    return tr_state_end(&reader);
}

tr_status tr_categories_read(const char *state, struct tr_categories *categories)
{
    const char *part = state ? tr_state_part(state, TR_STATE_CATEGORIES) : NULL;
    int32_t columns;
    *categories = (struct tr_categories){0};
    if (!part) return TR_OK;
    TR_TRY(read_columns(part, &columns, NULL));
    if (columns == 0) return refuse(1, "has no columns");
    TR_TRY(tr_categories_create(columns, categories));
    return read_columns(part, &columns, categories);
}
