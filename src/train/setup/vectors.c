#include "train/setup/vectors.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/tables/csv_fields.h"
#include "data/files/lines.h"
#include "data/state.h"
#include "data/text/vocabulary.h"
#include "io/npy.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A text file being read. */
struct reading {
    const struct tr_vectors_wanted *wanted;
    tr_vocabulary *vocabulary;
    bool *seen; /* [words] */
    float *row; /* [width] */
    int64_t taken;
};

/* The next field of a line, from `at` on; false at its end. */
static bool next_field(const char **at, const char *end, struct tr_csv_field *field)
{
    while (*at < end && (**at == ' ' || **at == '\t')) ++*at;
    const char *start = *at;
    while (*at < end && **at != ' ' && **at != '\t') ++*at;
    *field = (struct tr_csv_field){start, (size_t)(*at - start)};
    return *at > start;
}

/* The numbers after the word. */
static tr_status read_row(struct reading *reading, const struct tr_lines *lines, const char *at)
{
    const char *end = lines->line + lines->length;
    int64_t width = reading->wanted->width, count = 0;
    struct tr_csv_field field;
    while (next_field(&at, end, &field)) {
        double number;
        const char *wrong = tr_csv_number(field, &number);
        if (!wrong && fabs(number) > (double)FLT_MAX) wrong = "is too large for a float";
        if (wrong)
            return tr_lines_fail(lines, field.at, "\"%.*s\" %s", field.length < 40 ? (int)field.length : 40,
                                 field.at, wrong);
        if (count < width) reading->row[count] = (float)number;
        count++;
    }
    if (count == width) return TR_OK;
    return tr_fail(TR_EMISMATCH,
                   "%s:%" PRId64 ": a vector of %" PRId64 " numbers, the layer's width is %" PRId64
                   "; set width: %" PRId64,
                   lines->path, lines->number, count, width, count);
}

/* "400000 100": the numbers of words and of numbers that follow. */
static bool is_head(const struct tr_lines *lines)
{
    const char *at = lines->line, *end = at + lines->length;
    struct tr_csv_field field;
    int fields = 0;
    while (next_field(&at, end, &field)) {
        for (size_t i = 0; i < field.length; i++)
            if (field.at[i] < '0' || field.at[i] > '9') return false;
        fields++;
    }
    return lines->number == 1 && fields == 2;
}

static tr_status read_line(struct reading *reading, const struct tr_lines *lines)
{
    const struct tr_vectors_wanted *wanted = reading->wanted;
    const char *at = lines->line;
    struct tr_csv_field word;
    int32_t token;
    if (!next_field(&at, lines->line + lines->length, &word) || is_head(lines)) return TR_OK;
    if (tr_vocabulary_tokens(reading->vocabulary, word.at, word.length) != 1) return TR_OK;
    tr_vocabulary_encode(reading->vocabulary, word.at, word.length, 1, &token);
    if (token == 0 || token >= wanted->words || reading->seen[token]) return TR_OK;
    TR_TRY(read_row(reading, lines, at));
    reading->seen[token] = true;
    reading->taken++;
    if (wanted->values)
        memcpy(wanted->values + token * wanted->width, reading->row, (size_t)wanted->width * sizeof(float));
    return TR_OK;
}

static tr_status read_text(const char *path, const struct tr_load *file,
                           const struct tr_vectors_wanted *wanted, int64_t *taken)
{
    struct reading reading = {.wanted = wanted};
    int32_t classes;
    if (!wanted->state || !tr_state_is(wanted->state, "vocabulary"))
        return tr_fail(
            TR_EINVAL,
            "%s: vectors by word need data with words (the format `text`); give an array .npy with a "
            "row for each token",
            path);
    TR_TRY(tr_vocabulary_read(wanted->state, &reading.vocabulary, &classes));
    if (tr_vocabulary_bpe(reading.vocabulary)) {
        tr_vocabulary_destroy(&reading.vocabulary);
        return tr_fail(TR_EINVAL,
                       "%s: vectors by word, and the data have subwords; give an array .npy with a row "
                       "for each token",
                       path);
    }
    reading.seen = tr_alloc_zero((size_t)wanted->words, sizeof *reading.seen);
    reading.row = tr_alloc((size_t)wanted->width, sizeof *reading.row);
    tr_status status = reading.seen && reading.row ? TR_OK : TR_ENOMEM;
    struct tr_lines lines = tr_lines_of(path, (const char *)file->data, file->size);
    while (status == TR_OK && tr_lines_next(&lines)) status = read_line(&reading, &lines);
    if (status == TR_OK && reading.taken == 0)
        status =
            tr_fail(TR_EMISMATCH,
                    "%s has no word of the training text; give vectors of its language, as text with a word "
                    "and its numbers on each line",
                    path);
    *taken = reading.taken;
    tr_free(reading.row);
    tr_free(reading.seen);
    tr_vocabulary_destroy(&reading.vocabulary);
    return status;
}

static tr_status read_array(const char *path, const struct tr_load *file,
                            const struct tr_vectors_wanted *wanted, int64_t *taken)
{
    struct tr_npy array;
    TR_TRY(tr_npy_parse(path, file->data, file->size, &array));
    bool wide = array.dtype == TR_DTYPE_F64;
    if ((!wide && array.dtype != TR_DTYPE_F32) || array.big_endian)
        return tr_fail(TR_EUNSUPPORTED,
                       "%s: vectors are little-endian floats of 4 or 8 bytes; save "
                       "array.astype('<f4')",
                       path);
    if (array.rank != 2 || array.shape[0] != wanted->words || array.shape[1] != wanted->width)
        return tr_fail(TR_EMISMATCH,
                       "%s: an array of %d dimensions, %" PRId64 " x %" PRId64
                       ", where the layer has %" PRId64 " vectors of width %" PRId64,
                       path, array.rank, array.rank > 0 ? array.shape[0] : 0,
                       array.rank > 1 ? array.shape[1] : 0, wanted->words, wanted->width);
    const uint8_t *data = file->data + array.offset;
    for (int64_t i = 0; i < wanted->words * wanted->width; i++) {
        double number;
        float narrow;
        if (wide)
            memcpy(&number, data + (size_t)i * sizeof number, sizeof number);
        else
            memcpy(&narrow, data + (size_t)i * sizeof narrow, sizeof narrow);
        if (wide) narrow = (float)number;
        if (!isfinite(narrow))
            return tr_fail(TR_ENONFINITE, "%s: element %" PRId64 " is not a finite float", path, i);
        if (wanted->values) wanted->values[i] = narrow;
    }
    *taken = wanted->words;
    return TR_OK;
}

tr_status tr_vectors_read(const char *path, const struct tr_vectors_wanted *wanted, int64_t *taken,
                          char digest[TR_SHA256_TEXT])
{
    struct tr_load file = {0};
    TR_TRY(tr_load_file(path, &file));
    tr_status status = tr_sha256_of(file.data, file.size, digest);
    bool array = file.size >= 6 && memcmp(file.data, "\x93NUMPY", 6) == 0;
    if (status == TR_OK) status = (array ? read_array : read_text)(path, &file, wanted, taken);
    tr_free(file.data);
    return status;
}
