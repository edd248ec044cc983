#include "io/npy.h"

#include "base/fail.h"
#include "base/text/ascii.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DESCRIPTION_MAX 64

/* The dictionary in the header: the reader's position, and the values read. */
struct header {
    const char *path;
    const char *begin, *at, *end;
    bool has_description, has_order, has_shape, fortran;
    char description[DESCRIPTION_MAX];
    struct tr_npy *out;
};

static tr_status bad(const struct header *header, const char *what)
{
    return tr_fail(TR_EFORMAT,
                   "\"%s\": %s at character %td of the header; write the file again with numpy.save()",
                   header->path, what, header->at - header->begin + 1);
}

static void skip_blanks(struct header *header)
{
    while (header->at < header->end && strchr(" \t\n\r", *header->at) && *header->at) header->at++;
}

/* Takes the character `c`, with blanks before it. */
static bool take(struct header *header, char c)
{
    skip_blanks(header);
    if (header->at == header->end || *header->at != c) return false;
    header->at++;
    return true;
}

static bool take_word(struct header *header, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(header);
    if ((size_t)(header->end - header->at) < length || memcmp(header->at, word, length) != 0) return false;
    header->at += length;
    return true;
}

/* A text in quotes of either kind, without escapes. */
static tr_status take_text(struct header *header, char *text, size_t room)
{
    skip_blanks(header);
    char quote = header->at < header->end ? *header->at : 0;
    if (quote != '\'' && quote != '"') return bad(header, "there is no text in quotes");
    const char *begin = ++header->at;
    while (header->at < header->end && *header->at != quote && *header->at != '\\' && *header->at)
        header->at++;
    if (header->at == header->end || *header->at != quote) return bad(header, "a text does not end");
    size_t length = (size_t)(header->at - begin);
    if (length >= room) return bad(header, "a text is too long");
    memcpy(text, begin, length);
    text[length] = '\0';
    header->at++;
    return TR_OK;
}

static tr_status take_size(struct header *header, int64_t *size)
{
    const char *begin = header->at;
    *size = 0;
    for (; header->at < header->end && tr_is_digit(*header->at); header->at++)
        if (__builtin_mul_overflow(*size, 10, size) || __builtin_add_overflow(*size, *header->at - '0', size))
            return bad(header, "a size is too large");
    if (header->at == begin) return bad(header, "there is no size");
    if (header->at < header->end && *header->at == 'L')
        header->at++; /* a suffix of Python 2's long
                         integers */
    return TR_OK;
}

/* "(60000, 28, 28)", "(7,)", "()". */
static tr_status take_shape(struct header *header)
{
    struct tr_npy *out = header->out;
    if (!take(header, '(')) return bad(header, "there is no shape in parentheses");
    out->rank = 0;
    while (!take(header, ')')) {
        if (out->rank == TR_STORED_RANK)
            return tr_fail(TR_EUNSUPPORTED, "\"%s\" has more than %d dimensions", header->path,
                           TR_STORED_RANK);
        TR_TRY(take_size(header, &out->shape[out->rank++]));
        if (take(header, ',')) continue;
        /* Without a comma it must be the last of several. */
        if (out->rank < 2 || !take(header, ')')) return bad(header, "the shape is not a tuple");
        break;
    }
    header->has_shape = true;
    return TR_OK;
}

static tr_status take_description(struct header *header)
{
    skip_blanks(header);
    if (header->at < header->end && (*header->at == '[' || *header->at == '('))
        return tr_fail(TR_EUNSUPPORTED,
                       "\"%s\" is an array of records; save each field as an array of its own", header->path);
    TR_TRY(take_text(header, header->description, sizeof header->description));
    header->has_description = true;
    return TR_OK;
}

static tr_status take_order(struct header *header)
{
    header->fortran = take_word(header, "True");
    if (!header->fortran && !take_word(header, "False"))
        return bad(header, "fortran_order is neither True nor False");
    header->has_order = true;
    return TR_OK;
}

static tr_status take_member(struct header *header)
{
    char key[16];
    TR_TRY(take_text(header, key, sizeof key));
    if (!take(header, ':')) return bad(header, "there is no colon after a key");
    if (strcmp(key, "descr") == 0 && !header->has_description) return take_description(header);
    if (strcmp(key, "fortran_order") == 0 && !header->has_order) return take_order(header);
    if (strcmp(key, "shape") == 0 && !header->has_shape) return take_shape(header);
    return bad(header, "there is an unknown or second key");
}

static tr_status take_dictionary(struct header *header)
{
    if (!take(header, '{')) return bad(header, "there is no dictionary");
    while (!take(header, '}')) {
        TR_TRY(take_member(header));
        if (take(header, ',')) continue;
        if (!take(header, '}')) return bad(header, "there is neither comma nor closing brace");
        break;
    }
    skip_blanks(header);
    if (header->at != header->end) return bad(header, "something follows the dictionary");
    if (!header->has_description || !header->has_order || !header->has_shape)
        return bad(header, "one of descr, fortran_order and shape is missing");
    return TR_OK;
}

/* "<f4": order, kind, bytes. */
static tr_status read_description(const struct header *header)
{
    static const struct {
        const char *name;
        enum tr_dtype dtype;
    } types[] = {{"f8", TR_DTYPE_F64}, {"f4", TR_DTYPE_F32}, {"f2", TR_DTYPE_F16}, {"i8", TR_DTYPE_I64},
                 {"i4", TR_DTYPE_I32}, {"i2", TR_DTYPE_I16}, {"i1", TR_DTYPE_I8},  {"u8", TR_DTYPE_U64},
                 {"u4", TR_DTYPE_U32}, {"u2", TR_DTYPE_U16}, {"u1", TR_DTYPE_U8},  {"b1", TR_DTYPE_BOOL}};
    const char *text = header->description;
    const char order = text[0];
    if (order && strchr("<>|=", order)) text++;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(text, types[i].name) != 0) continue;
        header->out->dtype = types[i].dtype;
        header->out->big_endian = order == '>';
        return TR_OK;
    }
    const char *what = text[0] == 'O'   ? "Python objects, which only Python can read"
                       : text[0] == 'c' ? "complex numbers"
                       : text[0] == 'U' || text[0] == 'S' || text[0] == 'a' ? "texts"
                       : text[0] == 'M' || text[0] == 'm'                   ? "times"
                                                                            : "a type that is not known";
    return tr_fail(TR_EUNSUPPORTED,
                   "\"%s\" is an array of %s (descr '%.40s'); save numbers, for instance "
                   "x.astype('float32')",
                   header->path, what, header->description);
}

static tr_status check_data(const struct header *header, size_t size)
{
    struct tr_npy *out = header->out;
    struct tr_stored_tensor tensor = {.dtype = out->dtype, .rank = out->rank};
    uint64_t bytes;
    memcpy(tensor.shape, out->shape, sizeof tensor.shape);
    /* In one dimension, and in none, both orders are the same. */
    if (header->fortran && out->rank > 1)
        return tr_fail(TR_EUNSUPPORTED, "\"%s\" is in Fortran order; save numpy.ascontiguousarray(x)",
                       header->path);
    if (tr_stored_bytes(&tensor, &bytes) != TR_OK || bytes != size - out->offset) {
        char text[TR_STORED_TEXT];
        return tr_fail(TR_EFORMAT,
                       "\"%s\": %zu bytes follow the header, which does not fit %s; is it complete?",
                       header->path, size - out->offset, tr_stored_describe(&tensor, text));
    }
    out->bytes = (size_t)bytes;
    return TR_OK;
}

tr_status tr_npy_parse(const char *path, const uint8_t *data, size_t size, struct tr_npy *out)
{
    *out = (struct tr_npy){0};
    if (size < 10 || memcmp(data, "\x93NUMPY", 6) != 0)
        return tr_fail(TR_EFORMAT, "\"%s\" does not begin as an .npy file does; write it with numpy.save()",
                       path);
    if (data[6] < 1 || data[6] > 3)
        return tr_fail(TR_EUNSUPPORTED, "\"%s\" is an .npy file of version %d.%d; known are 1.0 to 3.0", path,
                       data[6], data[7]);
    size_t head = data[6] == 1 ? 10 : 12;
    uint64_t length = (uint64_t)data[8] | (uint64_t)data[9] << 8;
    if (head == 12 && size >= 12) length |= (uint64_t)data[10] << 16 | (uint64_t)data[11] << 24;
    if (size < head || length > size - head)
        return tr_fail(TR_EFORMAT,
                       "\"%s\": a header of %" PRIu64 " bytes does not fit a file of %zu; is it complete?",
                       path, length, size);
    const char *text = (const char *)data + head;
    struct header header = {.path = path, .begin = text, .at = text, .end = text + length, .out = out};
    out->offset = head + (size_t)length;
    TR_TRY(take_dictionary(&header));
    TR_TRY(read_description(&header));
    return check_data(&header, size);
}
