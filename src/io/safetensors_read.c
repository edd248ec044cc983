#include "io/safetensors.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "base/text/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER_MAX 100000000
/* Read in pieces that stay in the cache between copy and checksum. */
#define PIECE ((size_t)1 << 20)

struct tr_safetensors {
    char *path;
    int descriptor;
    const char *memory; /* the whole file, if it is in memory; else NULL */
    struct tr_safetensors_summary summary;
    uint64_t data_offset;
    int64_t count;
    struct tr_safetensors_entry *entries;        /* in the order of their data */
    const struct tr_safetensors_entry **by_name; /* the same, ascending by name */
    tr_json *header;                             /* the header; owns all names */
    char *piece;                                 /* PIECE bytes, allocated when data are first read without
                                                    a destination */
};

/* Within the file, whose size was known when it was opened. */
static tr_status read_at(const tr_safetensors *file, uint64_t offset, void *to, size_t size)
{
    if (!file->memory) return tr_file_read_at(file->descriptor, file->path, offset, to, size);
    memcpy(to, file->memory + offset, size);
    return TR_OK;
}

/* The size of the header is checked against the file's before anything is allocated. */
static tr_status read_header(tr_safetensors *file)
{
    uint64_t length;
    const char *path = file->path;
    if (file->summary.bytes < 8)
        return tr_fail(TR_EFORMAT, "\"%s\": %" PRIu64 " bytes are too few for a safetensors file", path,
                       file->summary.bytes);
    TR_TRY(read_at(file, 0, &length, 8));
    if (length > HEADER_MAX || length > file->summary.bytes - 8)
        return tr_fail(TR_EFORMAT,
                       "\"%s\": says that its header has %" PRIu64 " bytes, but the file has %" PRIu64
                       " and a header at most %d; is it a safetensors file, and complete?",
                       path, length, file->summary.bytes, HEADER_MAX);
    char *header = tr_alloc(8 + (size_t)length, 1);
    if (!header) return tr_fail_in(TR_ENOMEM, "\"%s\"", path);
    tr_status status;
    TR_TRY_GOTO(read_at(file, 0, header, 8 + (size_t)length), out);
    if (length == 0 || header[8] != '{') {
        status = tr_fail(TR_EFORMAT, "\"%s\": the header does not begin with '{'; is it a safetensors file?",
                         path);
        goto out;
    }
    TR_TRY_GOTO(tr_json_parse(header + 8, (size_t)length, path, &file->header), out);
    file->summary.header_crc = tr_crc32c(0, header, 8 + (size_t)length);
    file->data_offset = 8 + length;
out:
    tr_free(header);
    return status;
}

static tr_status check_metadata(const struct tr_json_value *metadata)
{
    if (metadata->kind != TR_JSON_OBJECT)
        return tr_fail(TR_EFORMAT, "\"__metadata__\" must be an object of texts");
    for (const struct tr_json_value *item = metadata->first; item; item = item->next)
        if (item->kind != TR_JSON_TEXT)
            return tr_fail(TR_EFORMAT, "\"__metadata__\": \"%.200s\" must be a text", item->key);
    return TR_OK;
}

static tr_status find_dtype(const char *name, enum tr_dtype *out)
{
    for (int i = 0; i < TR_DTYPE_COUNT; i++) {
        if (strcmp(name, tr_dtype_name((enum tr_dtype)i)) == 0) {
            *out = (enum tr_dtype)i;
            return TR_OK;
        }
    }
    return tr_fail(TR_EUNSUPPORTED, "the type \"%.32s\" is not known", name);
}

static tr_status read_sizes(const struct tr_json_value *array, const char *key, int64_t *out)
{
    for (const struct tr_json_value *value = array->first; value; value = value->next, out++) {
        if (value->kind != TR_JSON_INTEGER || value->integer < 0)
            return tr_fail(TR_EFORMAT, "all elements of \"%s\" must be integers >= 0", key);
        *out = value->integer;
    }
    return TR_OK;
}

/* Fills an entry except its name; messages do not have the name. */
static tr_status read_entry(const tr_safetensors *file, const struct tr_json_value *object,
                            struct tr_safetensors_entry *entry)
{
    const char *dtype;
    const struct tr_json_value *shape, *offsets;
    int64_t bounds[2];
    if (object->kind != TR_JSON_OBJECT || object->count != 3)
        return tr_fail(TR_EFORMAT, "must be an object of \"dtype\", \"shape\" and \"data_offsets\"");
    TR_TRY(tr_json_get_text(object, "entry", "dtype", &dtype));
    TR_TRY(find_dtype(dtype, &entry->tensor.dtype));

    TR_TRY(tr_json_get_array(object, "entry", "shape", &shape));
    if (shape->count > TR_STORED_RANK)
        return tr_fail(TR_EUNSUPPORTED, "the shape has %" PRId64 " dimensions; at most %d are supported",
                       shape->count, TR_STORED_RANK);
    entry->tensor.rank = (int)shape->count;
    TR_TRY(read_sizes(shape, "shape", entry->tensor.shape));
    if (tr_stored_bytes(&entry->tensor, &entry->bytes) != TR_OK)
        return tr_fail(TR_EFORMAT, "%s", tr_error_message());

    TR_TRY(tr_json_get_array(object, "entry", "data_offsets", &offsets));
    if (offsets->count != 2) return tr_fail(TR_EFORMAT, "\"data_offsets\" must be [begin, end]");
    TR_TRY(read_sizes(offsets, "data_offsets", bounds));
    uint64_t begin = (uint64_t)bounds[0], end = (uint64_t)bounds[1],
             data_bytes = file->summary.bytes - file->data_offset;
    if (begin > end || end > data_bytes)
        return tr_fail(TR_EFORMAT,
                       "data_offsets [%" PRIu64 ", %" PRIu64 "] do not lie in the %" PRIu64 " bytes of data",
                       begin, end, data_bytes);
    if (end - begin != entry->bytes) {
        char text[TR_STORED_TEXT];
        return tr_fail(TR_EFORMAT,
                       "%s needs %" PRIu64 " bytes, but data_offsets [%" PRIu64 ", %" PRIu64
                       "] give %" PRIu64,
                       tr_stored_describe(&entry->tensor, text), entry->bytes, begin, end, end - begin);
    }
    entry->offset = file->data_offset + begin;
    return TR_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct tr_safetensors_entry *left = a, *right = b;
    if (left->offset != right->offset) return left->offset < right->offset ? -1 : 1;
    /* Empty tensors may share an offset with the one that follows. */
    if (left->bytes != right->bytes) return left->bytes < right->bytes ? -1 : 1;
    return strcmp(left->tensor.name, right->tensor.name);
}

static int by_name(const void *a, const void *b)
{
    const struct tr_safetensors_entry *const *left = a, *const *right = b;
    return strcmp((*left)->tensor.name, (*right)->tensor.name);
}

/* Entries must be consecutive from the first byte of the data to the last of the file. */
static tr_status check_tiling(const tr_safetensors *file)
{
    uint64_t at = file->data_offset;
    for (int64_t i = 0; i < file->count; i++) {
        const struct tr_safetensors_entry *entry = &file->entries[i];
        if (entry->offset != at)
            return tr_fail(TR_EFORMAT,
                           "\"%s\": tensor \"%.200s\" begins at offset %" PRIu64
                           " of the file, but the data before it end at %" PRIu64,
                           file->path, entry->tensor.name, entry->offset, at);
        at += entry->bytes;
    }
    if (at == file->summary.bytes) return TR_OK;
    return tr_fail(TR_EFORMAT, "\"%s\": has %" PRIu64 " bytes, but its tensors end at %" PRIu64, file->path,
                   file->summary.bytes, at);
}

static tr_status read_entries(tr_safetensors *file)
{
    const struct tr_json_value *header = tr_json_root(file->header);
    file->entries = tr_alloc_zero((size_t)header->count, sizeof *file->entries);
    file->by_name = tr_alloc((size_t)header->count, sizeof *file->by_name);
    if (!file->entries || !file->by_name) return tr_fail_in(TR_ENOMEM, "\"%s\"", file->path);
    for (const struct tr_json_value *member = header->first; member; member = member->next) {
        bool metadata = strcmp(member->key, "__metadata__") == 0;
        struct tr_safetensors_entry *entry = &file->entries[file->count];
        tr_status status = metadata ? check_metadata(member) : read_entry(file, member, entry);
        if (status == TR_OK && member->key[0] == '\0') status = tr_fail(TR_EFORMAT, "has no name");
        if (status != TR_OK) return tr_fail_in(status, "\"%s\": tensor \"%.200s\"", file->path, member->key);
        if (metadata) continue;
        entry->tensor.name = member->key;
        file->count++;
    }
    if (file->count > 1) qsort(file->entries, (size_t)file->count, sizeof *file->entries, by_offset);
    for (int64_t i = 0; i < file->count; i++) file->by_name[i] = &file->entries[i];
    if (file->count > 1) qsort(file->by_name, (size_t)file->count, sizeof *file->by_name, by_name);
    return check_tiling(file);
}

/* Opens the file `path` or, with `memory`, these `size` bytes. */
static tr_status open_either(const char *path, const void *memory, size_t size, tr_safetensors **out)
{
    *out = NULL;
    tr_safetensors *file = tr_alloc_zero(1, sizeof *file);
    if (!file) return TR_ENOMEM;
    file->descriptor = -1;
    tr_status status = TR_ENOMEM;
    file->path = tr_strdup(path);
    if (!file->path) goto out;
    file->memory = memory;
    file->summary.bytes = size;
    if (!memory) TR_TRY_GOTO(tr_file_open(path, &file->descriptor, &file->summary.bytes), out);
    TR_TRY_GOTO(read_header(file), out);
    TR_TRY_GOTO(read_entries(file), out);
    *out = file;
    file = NULL;
out:
    tr_safetensors_close(&file);
    return status;
}

tr_status tr_safetensors_open(const char *path, tr_safetensors **out)
{
    return open_either(path, NULL, 0, out);
}

tr_status tr_safetensors_open_memory(const char *path, const void *data, size_t size, tr_safetensors **out)
{
    return open_either(path, data, size, out);
}

void tr_safetensors_close(tr_safetensors **file)
{
    if (!*file) return;
    if ((*file)->descriptor >= 0) close((*file)->descriptor);
    tr_json_destroy(&(*file)->header);
    tr_free((*file)->piece);
    tr_free((*file)->by_name);
    tr_free((*file)->entries);
    tr_free((*file)->path);
    tr_free(*file);
    *file = NULL;
}

int64_t tr_safetensors_count(const tr_safetensors *file)
{
    return file->count;
}

const struct tr_safetensors_entry *tr_safetensors_at(const tr_safetensors *file, int64_t index)
{
    return &file->entries[index];
}

const struct tr_safetensors_entry *tr_safetensors_find(const tr_safetensors *file, const char *name)
{
    const struct tr_safetensors_entry key = {.tensor.name = name}, *wanted = &key;
    const struct tr_safetensors_entry **found =
        bsearch(&wanted, file->by_name, (size_t)file->count, sizeof *file->by_name, by_name);
    return found ? *found : NULL;
}

const char *tr_safetensors_metadata(const tr_safetensors *file, const char *key)
{
    const struct tr_json_value *metadata = tr_json_find(tr_json_root(file->header), "__metadata__");
    const struct tr_json_value *item = tr_json_find(metadata, key);
    return item ? item->text : NULL;
}

struct tr_safetensors_summary tr_safetensors_summarize(const tr_safetensors *file)
{
    return file->summary;
}

const char *tr_safetensors_path(const tr_safetensors *file)
{
    return file->path;
}

/* Reads an entry in pieces to `to` or, where that is NULL, to the file's own piece, and passes them on. */
static tr_status read_pieces(tr_safetensors *file, const struct tr_safetensors_entry *entry, void *to,
                             tr_safetensors_taker take, void *user)
{
    if (!to && !file->piece) {
        file->piece = tr_alloc(PIECE, 1);
        if (!file->piece) return tr_fail_in(TR_ENOMEM, "\"%s\"", file->path);
    }
    for (uint64_t done = 0; done < entry->bytes;) {
        size_t size = entry->bytes - done < PIECE ? (size_t)(entry->bytes - done) : PIECE;
        char *piece = to ? (char *)to + done : file->piece;
        TR_TRY(read_at(file, entry->offset + done, piece, size));
        if (take) TR_TRY(take(user, piece, size));
        done += size;
    }
    return TR_OK;
}

static tr_status add_crc(void *user, const void *piece, size_t bytes)
{
    uint32_t *sum = user;
    *sum = tr_crc32c(*sum, piece, bytes);
    return TR_OK;
}

tr_status tr_safetensors_read(tr_safetensors *file, const struct tr_safetensors_entry *entry, void *to,
                              uint32_t *crc)
{
    uint32_t sum = 0;
    TR_TRY(read_pieces(file, entry, to, crc ? add_crc : NULL, &sum));
    if (crc) *crc = sum;
    return TR_OK;
}

tr_status tr_safetensors_stream(tr_safetensors *file, const struct tr_safetensors_entry *entry,
                                tr_safetensors_taker take, void *user)
{
    return read_pieces(file, entry, NULL, take, user);
}
