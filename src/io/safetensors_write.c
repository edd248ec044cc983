#include "io/safetensors.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "base/text/json.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "data are written as they lie in memory");

/* Written in pieces that stay in the cache between checksum and copy. */
#define PIECE ((size_t)1 << 20)

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* TR_EINVAL unless readers accept the names. */
static tr_status check_names(const struct tr_stored_tensor *tensors, int64_t count)
{
    const char **names = tr_alloc((size_t)count, sizeof *names);
    if (!names) return TR_ENOMEM;
    tr_status status = TR_OK;
    for (int64_t i = 0; i < count; i++) names[i] = tensors[i].name;
    if (count > 1) qsort(names, (size_t)count, sizeof *names, by_name);
    for (int64_t i = 0; i < count && status == TR_OK; i++) {
        if (names[i][0] == '\0' || strcmp(names[i], "__metadata__") == 0)
            status = tr_fail(TR_EINVAL, "a tensor cannot be stored under the name \"%s\"", names[i]);
        else if (i > 0 && strcmp(names[i], names[i - 1]) == 0)
            status = tr_fail(TR_EINVAL, "two tensors have the name \"%s\"", names[i]);
    }
    tr_free(names);
    return status;
}

/* A tensor in the order of the file. */
struct entry {
    int64_t index;
    uint64_t bytes;
};

/* Fills `entries` with the order of the data: wider elements first, otherwise as given. */
static tr_status arrange(const struct tr_stored_tensor *tensors, int64_t count, struct entry *entries)
{
    int64_t placed = 0;
    for (size_t size = 8; size > 0; size /= 2) {
        for (int64_t i = 0; i < count; i++) {
            if (tr_dtype_size(tensors[i].dtype) != size) continue;
            uint64_t bytes;
            tr_status status = tr_stored_bytes(&tensors[i], &bytes);
            if (status != TR_OK) return tr_fail_in(status, "tensor \"%s\"", tensors[i].name);
            entries[placed++] = (struct entry){i, bytes};
        }
    }
    assert(placed == count);
    return TR_OK;
}

/* The JSON text, and the size of all data. */
static tr_status make_header(const struct tr_stored_tensor *tensors, const struct entry *entries,
                             int64_t count, const struct tr_stored_metadata *metadata, int64_t metadata_count,
                             char **text, uint64_t *data_bytes)
{
    struct tr_json_writer json;
    tr_json_begin(&json, false);
    if (metadata_count > 0) {
        tr_json_open_object(&json, "__metadata__");
        for (int64_t i = 0; i < metadata_count; i++) tr_json_text(&json, metadata[i].key, metadata[i].value);
        tr_json_close_object(&json);
    }
    uint64_t offset = 0;
    for (int64_t i = 0; i < count; i++) {
        const struct tr_stored_tensor *tensor = &tensors[entries[i].index];
        tr_json_open_object(&json, tensor->name);
        tr_json_text(&json, "dtype", tr_dtype_name(tensor->dtype));
        tr_json_open_array(&json, "shape");
        for (int d = 0; d < tensor->rank; d++) tr_json_integer(&json, NULL, tensor->shape[d]);
        tr_json_close_array(&json);
        tr_json_open_array(&json, "data_offsets");
        tr_json_integer(&json, NULL, (int64_t)offset);
        if (__builtin_add_overflow(offset, entries[i].bytes, &offset) || offset > INT64_MAX) {
            tr_json_release(&json);
            return tr_fail(TR_EINVAL, "the tensors have more bytes than 64 bits can count");
        }
        tr_json_integer(&json, NULL, (int64_t)offset);
        tr_json_close_array(&json);
        tr_json_close_object(&json);
    }
    *data_bytes = offset;
    return tr_json_finish(&json, text);
}

/* Turns the JSON text (taken) into the padded bytes, preceded by their length. */
static tr_status frame_header(char *json, char **out, size_t *size)
{
    size_t length = strlen(json), padded = (length + 7) / 8 * 8;
    char *header = tr_alloc(8 + padded, 1);
    if (header) {
        uint64_t stored = padded;
        memcpy(header, &stored, 8);
        memcpy(header + 8, json, length);
        memset(header + 8 + length, ' ', padded - length);
    }
    tr_free(json);
    *out = header;
    *size = 8 + padded;
    return header ? TR_OK : TR_ENOMEM;
}

tr_status tr_stored_give(void *tensors, int64_t index, uint64_t at, const void **piece, size_t *bytes)
{
    const struct tr_stored_tensor *tensor = (const struct tr_stored_tensor *)tensors + index;
    uint64_t all;
    TR_TRY(tr_stored_bytes(tensor, &all));
    *piece = (const char *)tensor->data + at;
    *bytes = all - at < PIECE ? (size_t)(all - at) : PIECE;
    return TR_OK;
}

static tr_status write_data(const struct tr_stored_sink *sink, const struct tr_stored_giver *giver,
                            const struct entry *entry, uint32_t *crc)
{
    uint32_t sum = 0;
    for (uint64_t at = 0; at < entry->bytes;) {
        const void *piece;
        size_t bytes;
        TR_TRY(giver->give(giver->user, entry->index, at, &piece, &bytes));
        assert(bytes > 0 && bytes <= entry->bytes - at);
        if (crc) sum = tr_crc32c(sum, piece, bytes);
        TR_TRY(sink->write(sink->user, piece, bytes));
        at += bytes;
    }
    if (crc) *crc = sum;
    return TR_OK;
}

/* The layout of a file. */
struct plan {
    struct entry *entries;
    char *header;
    size_t header_size;
    uint64_t data_bytes;
};

static void release_plan(struct plan *plan)
{
    tr_free(plan->header);
    tr_free(plan->entries);
}

/* On failure there is nothing to release. */
static tr_status make_plan(const struct tr_stored_tensor *tensors, int64_t count,
                           const struct tr_stored_metadata *metadata, int64_t metadata_count,
                           struct plan *plan)
{
    char *json;
    tr_status status;
    *plan = (struct plan){.entries = tr_alloc((size_t)count, sizeof *plan->entries)};
    if (!plan->entries) return TR_ENOMEM;
    TR_TRY_GOTO(check_names(tensors, count), out);
    TR_TRY_GOTO(arrange(tensors, count, plan->entries), out);
    TR_TRY_GOTO(
        make_header(tensors, plan->entries, count, metadata, metadata_count, &json, &plan->data_bytes), out);
    status = frame_header(json, &plan->header, &plan->header_size);
out:
    if (status != TR_OK) release_plan(plan);
    return status;
}

static tr_status write_plan(const struct plan *plan, const struct tr_stored_tensor *tensors, int64_t count,
                            const struct tr_stored_giver *giver, uint32_t *crcs,
                            const struct tr_stored_sink *sink)
{
    struct tr_stored_giver memory = {tr_stored_give, (void *)(uintptr_t)tensors};
    TR_TRY(sink->write(sink->user, plan->header, plan->header_size));
    for (int64_t i = 0; i < count; i++) {
        const struct entry *entry = &plan->entries[i];
        TR_TRY(write_data(sink, giver ? giver : &memory, entry, crcs ? &crcs[entry->index] : NULL));
    }
    return TR_OK;
}

static struct tr_safetensors_summary summary_of(const struct plan *plan)
{
    return (struct tr_safetensors_summary){plan->header_size + plan->data_bytes,
                                           tr_crc32c(0, plan->header, plan->header_size)};
}

static tr_status write_to_file(void *writer, const void *data, size_t size)
{
    return tr_file_write(writer, data, size);
}

tr_status tr_safetensors_size(const struct tr_stored_tensor *tensors, int64_t count,
                              const struct tr_stored_metadata *metadata, int64_t metadata_count,
                              uint64_t *bytes)
{
    struct plan plan;
    TR_TRY(make_plan(tensors, count, metadata, metadata_count, &plan));
    *bytes = plan.header_size + plan.data_bytes;
    release_plan(&plan);
    return TR_OK;
}

tr_status tr_safetensors_give(const struct tr_stored_sink *sink, const struct tr_stored_tensor *tensors,
                              int64_t count, const struct tr_stored_giver *giver,
                              const struct tr_stored_metadata *metadata, int64_t metadata_count,
                              uint32_t *crcs, struct tr_safetensors_summary *summary)
{
    struct plan plan;
    TR_TRY(make_plan(tensors, count, metadata, metadata_count, &plan));
    tr_status status = write_plan(&plan, tensors, count, giver, crcs, sink);
    if (status == TR_OK) *summary = summary_of(&plan);
    release_plan(&plan);
    return status;
}

/* Memory that is filled from its beginning. */
struct memory {
    char *bytes;
    size_t used, size;
};

static tr_status write_to_memory(void *user, const void *data, size_t size)
{
    struct memory *memory = user;
    if (size > memory->size - memory->used)
        return tr_fail(TR_EIO, "a file in memory is larger than it was said to be");
    memcpy(memory->bytes + memory->used, data, size);
    memory->used += size;
    return TR_OK;
}

tr_status tr_safetensors_to_memory(const struct tr_stored_tensor *tensors, int64_t count,
                                   const struct tr_stored_metadata *metadata, int64_t metadata_count,
                                   void **bytes, size_t *size)
{
    struct memory memory = {0};
    const struct tr_stored_sink sink = {write_to_memory, &memory};
    struct tr_safetensors_summary summary;
    uint64_t needed;
    *bytes = NULL;
    *size = 0;
    TR_TRY(tr_safetensors_size(tensors, count, metadata, metadata_count, &needed));
    memory.size = (size_t)needed;
    memory.bytes = tr_alloc(memory.size, 1);
    if (!memory.bytes) return TR_ENOMEM;
    tr_status status =
        tr_safetensors_give(&sink, tensors, count, NULL, metadata, metadata_count, NULL, &summary);
    if (status != TR_OK) {
        tr_free(memory.bytes);
        return status;
    }
    *bytes = memory.bytes;
    *size = memory.used;
    return TR_OK;
}

tr_status tr_safetensors_write(const tr_file_system *files, const char *path,
                               const struct tr_stored_tensor *tensors, int64_t count,
                               const struct tr_stored_giver *giver, const struct tr_stored_metadata *metadata,
                               int64_t metadata_count, uint32_t *crcs, struct tr_safetensors_summary *summary)
{
    struct plan plan;
    struct tr_file_writer writer = {.descriptor = -1};
    const struct tr_stored_sink sink = {write_to_file, &writer};
    TR_TRY(make_plan(tensors, count, metadata, metadata_count, &plan));
    uint64_t bytes = plan.header_size + plan.data_bytes;
    tr_status status = tr_file_begin(files, path, TR_FILE_NEW, bytes, &writer);
    if (status == TR_OK) status = write_plan(&plan, tensors, count, giver, crcs, &sink);
    if (status == TR_OK) status = tr_file_finish(&writer, true);
    if (status == TR_OK) *summary = summary_of(&plan);
    tr_file_abandon(&writer);
    release_plan(&plan);
    return status;
}

tr_status tr_safetensors_replace(const tr_file_system *files, const char *path,
                                 const struct tr_stored_tensor *tensors, int64_t count,
                                 const struct tr_stored_metadata *metadata, int64_t metadata_count)
{
    struct plan plan;
    struct tr_file_replacement file;
    TR_TRY(make_plan(tensors, count, metadata, metadata_count, &plan));
    tr_status status = tr_file_replace_begin(files, path, plan.header_size + plan.data_bytes, &file);
    if (status == TR_OK) {
        const struct tr_stored_sink sink = {write_to_file, &file.writer};
        status = write_plan(&plan, tensors, count, NULL, NULL, &sink);
        if (status == TR_OK) status = tr_file_replace_finish(&file);
        tr_file_replace_abandon(&file);
    }
    release_plan(&plan);
    return status;
}
