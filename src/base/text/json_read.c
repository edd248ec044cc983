/* The reader works on a copy of the text: strings are decoded in place, which never needs more room. The
 * number of commas and brackets limits that of values, so all memory is allocated before parsing.
 */
#include "base/text/json.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64

struct tr_json {
    char *text;
    struct tr_json_value *values; /* the root first */
    int64_t value_count;
    const struct tr_json_value **by_key; /* the lists of all objects, one after the other */
    int64_t key_count;
};

struct parser {
    tr_json *document;
    char *at; /* the text ends with a NUL */
};

static int ascending(const void *a, const void *b)
{
    const struct tr_json_value *const *left = a, *const *right = b;
    return strcmp((*left)->key, (*right)->key);
}

static void skip_space(struct parser *parser)
{
    parser->at += strspn(parser->at, " \t\n\r");
}

/* The functions below return NULL on success, or the fault, with `at` at its place. */

static const char *read_value(struct parser *parser, struct tr_json_value **out, int depth);

/* Four hexadecimal digits. */
static const char *read_unit(struct parser *parser, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, parser->at++) {
        char c = *parser->at;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) return "four hexadecimal digits are needed after \\u";
        *out = *out << 4 | digit;
    }
    return NULL;
}

/* The character of an escape that begins with \u (`at` is after that), written to *to as UTF-8. */
static const char *read_unicode(struct parser *parser, char **to)
{
    uint32_t character, low;
    const char *problem = read_unit(parser, &character);
    if (problem) return problem;
    if (character == 0) return "a text must not have a NUL";
    if (character >= 0xD800 && character <= 0xDFFF) {
        if (character >= 0xDC00 || parser->at[0] != '\\' || parser->at[1] != 'u')
            return "half of a surrogate pair";
        parser->at += 2;
        problem = read_unit(parser, &low);
        if (problem) return problem;
        if (low < 0xDC00 || low > 0xDFFF) return "half of a surrogate pair";
        character = 0x10000 + ((character - 0xD800) << 10) + (low - 0xDC00);
    }
    int more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
    *(*to)++ = (char)(lead[more] | character >> 6 * more);
    while (more-- > 0) *(*to)++ = (char)(0x80 | (character >> 6 * more & 0x3F));
    return NULL;
}

static const char *read_text(struct parser *parser, const char **out)
{
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char *to = ++parser->at;
    *out = to;
    while (*parser->at != '"') {
        uint32_t character;
        if (*parser->at == '\\') {
            const char *escape = parser->at[1] ? strchr(escapes, parser->at[1]) : NULL;
            if (!escape && parser->at[1] != 'u') return "no such escape";
            parser->at += 2;
            const char *problem = NULL;
            if (escape)
                *to++ = meanings[escape - escapes];
            else
                problem = read_unicode(parser, &to);
            if (problem) return problem;
            continue;
        }
        if (*parser->at == '\0') return "a text has no end, or a NUL";
        if ((unsigned char)*parser->at < 0x20) return "a control character must be escaped";
        size_t length = tr_text_utf8(parser->at, &character);
        if (length == 0) return "bad UTF-8";
        memmove(to, parser->at, length);
        to += length;
        parser->at += length;
    }
    parser->at++;
    *to = '\0';
    return NULL;
}

/* At least one digit. */
static bool skip_digits(struct parser *parser)
{
    size_t length = strspn(parser->at, "0123456789");
    parser->at += length;
    return length > 0;
}

static const char *read_number(struct parser *parser, struct tr_json_value *value)
{
    static const char bad[] = "a number is incomplete";
    char *begin = parser->at;
    if (*parser->at == '-') parser->at++;
    bool zero = *parser->at == '0';
    char *digits = parser->at;
    if (!skip_digits(parser)) return bad;
    if (zero && parser->at - digits > 1) return "a number must not begin with 0";
    value->kind = TR_JSON_INTEGER;
    if (*parser->at == '.') {
        value->kind = TR_JSON_REAL;
        parser->at++;
        if (!skip_digits(parser)) return bad;
    }
    if (*parser->at == 'e' || *parser->at == 'E') {
        value->kind = TR_JSON_REAL;
        parser->at++;
        if (*parser->at == '-' || *parser->at == '+') parser->at++;
        if (!skip_digits(parser)) return bad;
    }
    char behind = *parser->at;
    *parser->at = '\0';
    const char *problem = value->kind == TR_JSON_REAL ? tr_text_double(begin, &value->real)
                                                      : tr_text_int64(begin, &value->integer);
    *parser->at = behind;
    return problem ? "a number does not fit 64 bits" : NULL;
}

/* Sorts the members of an object and checks that no two have the same key. */
static const char *index_members(tr_json *document, struct tr_json_value *object)
{
    object->by_key = document->by_key + document->key_count;
    document->key_count += object->count;
    int64_t count = 0;
    for (const struct tr_json_value *member = object->first; member; member = member->next)
        object->by_key[count++] = member;
    if (count > 1) qsort(object->by_key, (size_t)count, sizeof *object->by_key, ascending);
    for (int64_t i = 1; i < count; i++)
        if (strcmp(object->by_key[i - 1]->key, object->by_key[i]->key) == 0)
            return "an object has a key twice";
    return NULL;
}

/* An object or an array; `at` is after its bracket. */
static const char *read_container(struct parser *parser, struct tr_json_value *container, int depth)
{
    bool object = container->kind == TR_JSON_OBJECT;
    char close = object ? '}' : ']';
    const struct tr_json_value **link = &container->first;
    const char *problem, *key = NULL;
    if (depth == DEPTH_MAX) return "nested too deeply";
    container->count = 0;
    container->first = NULL;
    skip_space(parser);
    while (*parser->at != close) {
        struct tr_json_value *value;
        if (container->count > 0) {
            if (*parser->at != ',') return object ? "',' or '}' is needed" : "',' or ']' is needed";
            parser->at++;
            skip_space(parser);
        }
        if (object) {
            if (*parser->at != '"') return "a key in quotes is needed";
            problem = read_text(parser, &key);
            if (problem) return problem;
            skip_space(parser);
            if (*parser->at != ':') return "':' is needed";
            parser->at++;
            skip_space(parser);
        }
        problem = read_value(parser, &value, depth + 1);
        if (problem) return problem;
        value->key = key;
        *link = value;
        link = &value->next;
        container->count++;
        skip_space(parser);
    }
    parser->at++;
    return object ? index_members(parser->document, container) : NULL;
}

static bool skip_word(struct parser *parser, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(parser->at, word, length) != 0) return false;
    parser->at += length;
    return true;
}

static const char *read_value(struct parser *parser, struct tr_json_value **out, int depth)
{
    struct tr_json_value *value = *out = &parser->document->values[parser->document->value_count++];
    *value = (struct tr_json_value){.kind = TR_JSON_NULL};
    switch (*parser->at) {
    case '{':
    case '[':
        value->kind = *parser->at++ == '{' ? TR_JSON_OBJECT : TR_JSON_ARRAY;
        return read_container(parser, value, depth);
    case '"':
        value->kind = TR_JSON_TEXT;
        return read_text(parser, &value->text);
    case 't':
    case 'f':
        value->kind = TR_JSON_BOOL;
        value->truth = *parser->at == 't';
        return skip_word(parser, value->truth ? "true" : "false") ? NULL : "a value is needed";
    case 'n':
        return skip_word(parser, "null") ? NULL : "a value is needed";
    case '-':
        return read_number(parser, value);
    default:
        return *parser->at >= '0' && *parser->at <= '9' ? read_number(parser, value) : "a value is needed";
    }
}

/* The text has no more values than this: one is the root; each other one follows a bracket or a comma. */
static size_t most_values(const char *text, size_t size)
{
    size_t count = 1;
    for (size_t i = 0; i < size; i++) count += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return count;
}

static tr_status bad_text(const char *where, const char *text, size_t offset, const char *problem)
{
    size_t line = 1, begin = 0;
    for (size_t i = 0; i < offset; i++) {
        if (text[i] != '\n') continue;
        line++;
        begin = i + 1;
    }
    return tr_fail(TR_EFORMAT, "%s:%zu:%zu: bad JSON: %s", where, line, offset - begin + 1, problem);
}

tr_status tr_json_parse(const char *text, size_t size, const char *where, tr_json **out)
{
    *out = NULL;
    size_t room = most_values(text, size);
    tr_json *document = tr_alloc_zero(1, sizeof *document);
    if (!document) return tr_fail_in(TR_ENOMEM, "%s", where);
    tr_status status = TR_ENOMEM;
    document->text = tr_alloc(size + 1, 1);
    document->values = tr_alloc(room, sizeof *document->values);
    document->by_key = tr_alloc(room, sizeof *document->by_key);
    if (!document->text || !document->values || !document->by_key) {
        tr_fail_in(TR_ENOMEM, "%s", where);
        goto out;
    }
    memcpy(document->text, text, size);
    document->text[size] = '\0';

    struct parser parser = {document, document->text};
    struct tr_json_value *root;
    skip_space(&parser);
    const char *problem = *parser.at == '{' ? read_value(&parser, &root, 0) : "an object {...} is needed";
    if (!problem) skip_space(&parser);
    if (!problem && parser.at != document->text + size) problem = "something follows the end";
    assert((size_t)document->value_count <= room);
    if (problem) {
        status = bad_text(where, text, (size_t)(parser.at - document->text), problem);
        goto out;
    }
    *out = document;
    return TR_OK;
out:
    tr_json_destroy(&document);
    return status;
}

void tr_json_destroy(tr_json **document)
{
    if (!*document) return;
    tr_free((*document)->by_key);
    tr_free((*document)->values);
    tr_free((*document)->text);
    tr_free(*document);
    *document = NULL;
}

const struct tr_json_value *tr_json_root(const tr_json *document)
{
    return &document->values[0];
}

const struct tr_json_value *tr_json_find(const struct tr_json_value *object, const char *key)
{
    if (!object || object->kind != TR_JSON_OBJECT) return NULL;
    const struct tr_json_value wanted = {.key = key}, *pointer = &wanted;
    const struct tr_json_value **found =
        bsearch(&pointer, object->by_key, (size_t)object->count, sizeof *object->by_key, ascending);
    return found ? *found : NULL;
}

const char *tr_json_kind_name(enum tr_json_kind kind)
{
    static const char *const names[] = {
        [TR_JSON_NULL] = "null",          [TR_JSON_BOOL] = "true or false",
        [TR_JSON_INTEGER] = "an integer", [TR_JSON_REAL] = "a number with a point",
        [TR_JSON_TEXT] = "a text",        [TR_JSON_ARRAY] = "an array",
        [TR_JSON_OBJECT] = "an object"};
    return names[kind];
}

/* The member `key` of `object` if it has the kind. */
static tr_status get(const struct tr_json_value *object, const char *where, const char *key,
                     enum tr_json_kind kind, const struct tr_json_value **out)
{
    *out = tr_json_find(object, key);
    if (!*out) return tr_fail(TR_EFORMAT, "%s: \"%.200s\" is missing", where, key);
    if ((*out)->kind == kind) return TR_OK;
    return tr_fail(TR_EFORMAT, "%s: \"%.200s\" is %s; it must be %s", where, key,
                   tr_json_kind_name((*out)->kind), tr_json_kind_name(kind));
}

tr_status tr_json_get_integer(const struct tr_json_value *object, const char *where, const char *key,
                              int64_t least, int64_t most, int64_t *out)
{
    const struct tr_json_value *value;
    TR_TRY(get(object, where, key, TR_JSON_INTEGER, &value));
    *out = value->integer;
    if (*out >= least && *out <= most) return TR_OK;
    return tr_fail(TR_EFORMAT, "%s: \"%.200s\" is %" PRId64 "; it must be from %" PRId64 " to %" PRId64,
                   where, key, *out, least, most);
}

tr_status tr_json_get_text(const struct tr_json_value *object, const char *where, const char *key,
                           const char **out)
{
    const struct tr_json_value *value;
    TR_TRY(get(object, where, key, TR_JSON_TEXT, &value));
    *out = value->text;
    return TR_OK;
}

tr_status tr_json_get_object(const struct tr_json_value *object, const char *where, const char *key,
                             const struct tr_json_value **out)
{
    return get(object, where, key, TR_JSON_OBJECT, out);
}

tr_status tr_json_get_array(const struct tr_json_value *object, const char *where, const char *key,
                            const struct tr_json_value **out)
{
    return get(object, where, key, TR_JSON_ARRAY, out);
}

double tr_json_number_or_nan(const struct tr_json_value *object, const char *key)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    if (value && value->kind == TR_JSON_INTEGER) return (double)value->integer;
    return value && value->kind == TR_JSON_REAL ? value->real : NAN;
}

int64_t tr_json_integer_or(const struct tr_json_value *object, const char *key, int64_t fallback)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    return value && value->kind == TR_JSON_INTEGER ? value->integer : fallback;
}

const char *tr_json_text_or_empty(const struct tr_json_value *object, const char *key)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    return value && value->kind == TR_JSON_TEXT ? value->text : "";
}
