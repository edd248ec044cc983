#include "data/example.h"

#include "base/fail.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- decoding ---- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* A message being read. The first failure is kept, and reading stops there. */
struct reader {
    const uint8_t *at, *end;
    const uint8_t *start; /* of the example, for positions in messages */
};

struct field {
    uint64_t number;
    enum wire wire;
    uint64_t value;       /* WIRE_VARINT */
    const uint8_t *bytes; /* the others */
    size_t size;
};

static tr_status refuse(const struct reader *reader, const char *what)
{
    return tr_fail(TR_EFORMAT, "byte %td of the Example: %s", reader->at - reader->start, what);
}

static tr_status read_varint(struct reader *reader, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (reader->at == reader->end) return refuse(reader, "ends within a number");
        uint8_t byte = *reader->at++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return TR_OK;
        }
    }
    return refuse(reader, "a number of more than 10 bytes");
}

static tr_status take(struct reader *reader, uint64_t size, struct field *field)
{
    if (size > (uint64_t)(reader->end - reader->at)) return refuse(reader, "a field reaches beyond its end");
    field->bytes = reader->at;
    field->size = (size_t)size;
    reader->at += size;
    return TR_OK;
}

static tr_status read_field(struct reader *reader, struct field *field)
{
    uint64_t tag = 0, size = 0;
    TR_TRY(read_varint(reader, &tag));
    *field = (struct field){.number = tag >> 3, .wire = (enum wire)(tag & 7)};
    if (field->number == 0) return refuse(reader, "a field with number 0");
    switch (field->wire) {
    case WIRE_VARINT:
        return read_varint(reader, &field->value);
    case WIRE_64:
        return take(reader, 8, field);
    case WIRE_32:
        return take(reader, 4, field);
    case WIRE_BYTES:
        TR_TRY(read_varint(reader, &size));
        return take(reader, size, field);
    }
    return refuse(reader, "a field of unknown wire type");
}

/* Whether the field is a message or string with this number. */
static bool is(const struct field *field, uint64_t number)
{
    return field->number == number && field->wire == WIRE_BYTES;
}

static struct reader inside(const struct reader *reader, const uint8_t *data, size_t size)
{
    return (struct reader){data, data + size, reader->start};
}

/* Reads a Feature whose kind is TR_LIST_NONE so far: remembers its last list. */
static tr_status read_feature(struct reader reader, struct tr_example_feature *feature)
{
    while (reader.at < reader.end) {
        struct field field;
        TR_TRY(read_field(&reader, &field));
        if (field.wire != WIRE_BYTES || field.number > TR_LIST_INT64) continue;
        feature->kind = (enum tr_list_kind)field.number;
        feature->list = field.bytes;
        feature->size = field.size;
    }
    return TR_OK;
}

static tr_status read_entry(struct reader reader, struct tr_example_feature *features, int count)
{
    struct field key = {.bytes = reader.at}, value = key; /* a missing one is empty */
    while (reader.at < reader.end) {
        struct field field;
        TR_TRY(read_field(&reader, &field));
        if (is(&field, 1)) key = field;
        if (is(&field, 2)) value = field;
    }
    for (int i = 0; i < count; i++) {
        if (features[i].name_length != key.size || key.size == 0 ||
            memcmp(features[i].name, key.bytes, key.size) != 0) {
            continue;
        }
        features[i].kind = TR_LIST_NONE;
        if (value.bytes) TR_TRY(read_feature(inside(&reader, value.bytes, value.size), &features[i]));
    }
    return TR_OK;
}

static tr_status read_features(struct reader reader, struct tr_example_feature *features, int count)
{
    while (reader.at < reader.end) {
        struct field field;
        TR_TRY(read_field(&reader, &field));
        if (is(&field, 1)) TR_TRY(read_entry(inside(&reader, field.bytes, field.size), features, count));
    }
    return TR_OK;
}

tr_status tr_example_find(const uint8_t *data, size_t size, struct tr_example_feature *features, int count)
{
    struct reader reader = {data, data + size, data};
    for (int i = 0; i < count; i++) features[i].kind = TR_LIST_NONE;
    while (reader.at < reader.end) {
        struct field field;
        TR_TRY(read_field(&reader, &field));
        if (is(&field, 1)) TR_TRY(read_features(inside(&reader, field.bytes, field.size), features, count));
    }
    return TR_OK;
}

/* ---- values ---- */

static tr_status expect(const struct tr_example_feature *feature, enum tr_list_kind kind)
{
    static const char *const names[] = {"nothing", "bytes", "floats", "integers"};
    if (feature->kind == kind) return TR_OK;
    if (feature->kind == TR_LIST_NONE) {
        return tr_fail(TR_EFORMAT, "no feature \"%s\"; name the feature that holds it", feature->name);
    }
    return tr_fail(TR_EFORMAT, "feature \"%s\" holds %s, not %s", feature->name, names[feature->kind],
                   names[kind]);
}

static tr_status not_one(const struct tr_example_feature *feature, size_t count)
{
    return tr_fail(TR_EFORMAT, "feature \"%s\" has %zu values; 1 is needed", feature->name, count);
}

static struct reader list_of(const struct tr_example_feature *feature)
{
    return (struct reader){feature->list, feature->list + feature->size, feature->list};
}

tr_status tr_example_bytes(const struct tr_example_feature *feature, const uint8_t **data, size_t *size)
{
    TR_TRY(expect(feature, TR_LIST_BYTES));
    struct reader reader = list_of(feature);
    size_t count = 0;
    while (reader.at < reader.end) {
        struct field field;
        TR_TRY(read_field(&reader, &field));
        if (!is(&field, 1)) continue;
        *data = field.bytes;
        *size = field.size;
        count++;
    }
    return count == 1 ? TR_OK : not_one(feature, count);
}

tr_status tr_example_int64(const struct tr_example_feature *feature, int64_t *value)
{
    TR_TRY(expect(feature, TR_LIST_INT64));
    struct reader reader = list_of(feature);
    size_t count = 0;
    while (reader.at < reader.end) {
        struct field field;
        TR_TRY(read_field(&reader, &field));
        if (field.number == 1 && field.wire == WIRE_VARINT) {
            *value = (int64_t)field.value;
            count++;
        } else if (is(&field, 1)) {
            struct reader packed = inside(&reader, field.bytes, field.size);
            for (; packed.at < packed.end; count++) {
                uint64_t number = 0;
                TR_TRY(read_varint(&packed, &number));
                *value = (int64_t)number;
            }
        }
    }
    return count == 1 ? TR_OK : not_one(feature, count);
}

/* Little-endian, on any machine. */
static float float_at(const uint8_t *bytes)
{
    uint32_t bits =
        (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

tr_status tr_example_floats(const struct tr_example_feature *feature, float *values, size_t room,
                            size_t *count)
{
    TR_TRY(expect(feature, TR_LIST_FLOATS));
    struct reader reader = list_of(feature);
    *count = 0;
    while (reader.at < reader.end) {
        struct field field;
        TR_TRY(read_field(&reader, &field));
        if (field.number != 1 || (field.wire != WIRE_32 && field.wire != WIRE_BYTES)) continue;
        if (field.size % 4 != 0) return refuse(&reader, "packed floats that are no multiple of 4 bytes");
        for (size_t i = 0; i < field.size; i += 4, ++*count) {
            if (*count < room) values[*count] = float_at(field.bytes + i);
        }
    }
    return TR_OK;
}

/* ---- encoding ---- */

static size_t varint_size(uint64_t value)
{
    size_t size = 1;
    while (value >= 0x80) {
        value >>= 7;
        size++;
    }
    return size;
}

static uint8_t *write_varint(uint8_t *to, uint64_t value)
{
    while (value >= 0x80) {
        *to++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *to++ = (uint8_t)value;
    return to;
}

/* A field with a length: its one-byte tag, the length, `size` bytes. */
static size_t field_size(size_t size)
{
    return 1 + varint_size(size) + size;
}

static uint8_t *write_head(uint8_t *to, int number, size_t size)
{
    *to++ = (uint8_t)(number << 3 | WIRE_BYTES);
    return write_varint(to, size);
}

/* The sizes of the nested messages of one feature, outermost first. */
struct sizes {
    size_t entry, feature, list, payload;
};

static struct sizes sizes_of(const struct tr_example_value *value)
{
    struct sizes sizes = {.payload = value->kind == TR_LIST_FLOATS ? 4 * value->count : value->count};
    if (value->kind == TR_LIST_INT64) {
        sizes.payload = 0;
        for (size_t i = 0; i < value->count; i++)
            sizes.payload += varint_size(((const uint64_t *)value->data)[i]);
    }
    sizes.list = field_size(sizes.payload);
    sizes.feature = field_size(sizes.list);
    sizes.entry = field_size(strlen(value->name)) + field_size(sizes.feature);
    return sizes;
}

static uint8_t *write_payload(uint8_t *to, const struct tr_example_value *value)
{
    switch (value->kind) {
    case TR_LIST_BYTES:
        memcpy(to, value->data, value->count);
        return to + value->count;
    case TR_LIST_FLOATS:
        for (size_t i = 0; i < value->count; i++) {
            uint32_t bits;
            memcpy(&bits, (const float *)value->data + i, sizeof bits);
            for (int byte = 0; byte < 4; byte++) *to++ = (uint8_t)(bits >> 8 * byte);
        }
        return to;
    case TR_LIST_INT64:
        for (size_t i = 0; i < value->count; i++) to = write_varint(to, ((const uint64_t *)value->data)[i]);
        return to;
    case TR_LIST_NONE:
        break;
    }
    assert(!"a feature without a kind");
    return to;
}

static size_t features_size(const struct tr_example_value *values, int count)
{
    size_t size = 0;
    for (int i = 0; i < count; i++) size += field_size(sizes_of(&values[i]).entry);
    return size;
}

size_t tr_example_encoded_size(const struct tr_example_value *values, int count)
{
    return field_size(features_size(values, count));
}

void tr_example_encode(const struct tr_example_value *values, int count, uint8_t *to)
{
    to = write_head(to, 1, features_size(values, count));
    for (int i = 0; i < count; i++) {
        struct sizes sizes = sizes_of(&values[i]);
        size_t name = strlen(values[i].name);
        to = write_head(to, 1, sizes.entry);
        to = write_head(to, 1, name);
        memcpy(to, values[i].name, name);
        to = write_head(to + name, 2, sizes.feature);
        to = write_head(to, (int)values[i].kind, sizes.list);
        to = write_head(to, 1, sizes.payload);
        to = write_payload(to, &values[i]);
    }
}
