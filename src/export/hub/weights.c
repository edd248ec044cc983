/* The weights of a directory as tensors with our names, in float32.
 *
 * Ours are those of PyTorch's modules of the same network: the projections to queries, keys and values are
 * one matrix, whose rows are theirs one after the other. GPT-2 has its matrices [in][out].
 */
#include "base/alloc.h"
#include "base/numbers/half.h"
#include "export/hub/files.h"
#include "export/hub/pieces.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct made {
    char name[64];
    struct tr_stored_tensor tensor;
};

struct work {
    const struct tr_hub_files *files;
    struct made *made;
    int64_t count;
    bool partial;
};

/* ---- reading ---- */

/* The names that save_pretrained() writes, and those of the network without its head. */
static const struct tr_safetensors_entry *find(const struct work *work, const char *name,
                                               tr_safetensors **file)
{
    static const char *const prefixes[] = {"transformer.", "model.", "bert.", "distilbert.", "roberta."};
    const struct tr_safetensors_entry *entry = tr_hub_files_find(work->files, name, file);
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0] && !entry; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            entry = tr_hub_files_find(work->files, name + strlen(prefixes[i]), file);
    return entry;
}

/* Widens `count` numbers in place, from the last to the first. */
static void widen(enum tr_dtype dtype, int64_t count, float *values)
{
    const uint16_t *from = (const uint16_t *)(const void *)values;
    for (int64_t i = count - 1; i >= 0 && dtype != TR_DTYPE_F32; i--) {
        uint16_t half;
        memcpy(&half, from + i, sizeof half);
        const float value = dtype == TR_DTYPE_F16 ? tr_half_to_float(half) : tr_bfloat_to_float(half);
        memcpy(values + i, &value, sizeof value);
    }
}

static tr_status check_entry(const struct work *work, const char *name,
                             const struct tr_safetensors_entry *entry, int rank, int64_t rows,
                             int64_t columns)
{
    char text[TR_STORED_TEXT];
    const char *path = tr_hub_files_name(work->files);
    if (!entry)
        return tr_fail(TR_EMISMATCH, "\"%s\" has no tensor \"%s\", which config.json asks for", path, name);
    const struct tr_stored_tensor *tensor = &entry->tensor;
    if (tensor->rank != rank || tensor->shape[0] != rows || (rank == 2 && tensor->shape[1] != columns))
        return tr_fail(TR_EMISMATCH,
                       "\"%s\": tensor \"%s\" is %s; by config.json it has %" PRId64 " rows of %" PRId64,
                       path, name, tr_stored_describe(tensor, text), rows, columns);
    if (tensor->dtype == TR_DTYPE_F32 || tensor->dtype == TR_DTYPE_F16 || tensor->dtype == TR_DTYPE_BF16)
        return TR_OK;
    return tr_fail(TR_EUNSUPPORTED, "\"%s\": tensor \"%s\" is %s; F32, F16 and BF16 are read", path, name,
                   tr_stored_describe(tensor, text));
}

/* All numbers of a tensor, `count` of them; free with tr_free(). NULL when it fails, with *status. */
static float *read_values(tr_safetensors *file, const struct tr_safetensors_entry *entry, int64_t count,
                          tr_status *status)
{
    float *values = tr_alloc((size_t)count, sizeof *values);
    *status = values ? tr_safetensors_read(file, entry, values, NULL) : TR_ENOMEM;
    if (*status != TR_OK) {
        tr_free(values);
        return NULL;
    }
    widen(entry->tensor.dtype, count, values);
    return values;
}

/* Copies to `to` with rows and columns exchanged. */
static tr_status read_across(tr_safetensors *file, const struct tr_safetensors_entry *entry, int64_t rows,
                             int64_t columns, float *to)
{
    tr_status status;
    float *values = read_values(file, entry, rows * columns, &status);
    for (int64_t i = 0; status == TR_OK && i < columns; i++)
        for (int64_t k = 0; k < rows; k++) to[k * columns + i] = values[i * rows + k];
    tr_free(values);
    return status;
}

/* Begins one of our tensors with the first of its pieces. */
static tr_status begin(struct work *work, const struct tr_hub_piece *piece)
{
    if (!tr_grow(&work->made, work->count, sizeof *work->made)) return TR_ENOMEM;
    struct made *made = &work->made[work->count++];
    *made = (struct made){
        .tensor = {.dtype = TR_DTYPE_F32, .rank = piece->rank, .shape = {piece->total, piece->columns}}};
    snprintf(made->name, sizeof made->name, "%s.%s", piece->layer, piece->part);
    return TR_OK;
}

/* The rows of a tensor after the skipped ones. */
static tr_status read_rest(tr_safetensors *file, const struct tr_safetensors_entry *entry,
                           const struct tr_hub_piece *piece, float *to)
{
    const int64_t skipped = piece->skipped * piece->columns, count = piece->rows * piece->columns;
    tr_status status;
    float *values = read_values(file, entry, skipped + count, &status);
    if (status == TR_OK) memcpy(to, values + skipped, (size_t)count * sizeof *to);
    tr_free(values);
    return status;
}

/* Adds the first row of another tensor to each row. */
static tr_status add_row(const struct work *work, const struct tr_hub_piece *piece, float *to)
{
    tr_safetensors *file = NULL;
    const struct tr_safetensors_entry *entry = find(work, piece->added, &file);
    tr_status status;
    TR_TRY(check_entry(work, piece->added, entry, 2, piece->added_rows, piece->columns));
    float *values = read_values(file, entry, piece->added_rows * piece->columns, &status);
    for (int64_t i = 0; status == TR_OK && i < piece->rows * piece->columns; i++)
        to[i] += values[i % piece->columns];
    tr_free(values);
    return status;
}

/* Whether the file may lack a tensor. */
static tr_status check_lack(const struct work *work, const struct tr_hub_piece *piece, bool *lacks)
{
    tr_safetensors *file = NULL;
    *lacks = piece->may_lack && !find(work, piece->theirs, &file);
    if (!*lacks || work->partial) return TR_OK;
    return tr_fail(TR_EMISMATCH,
                   "\"%s\" has no tensor \"%s\": the network makes no classes; set `partial` to begin with "
                   "untrained ones",
                   tr_hub_files_name(work->files), piece->theirs);
}

static tr_status take(void *user, const struct tr_hub_piece *piece)
{
    struct work *work = user;
    tr_safetensors *file = NULL;
    bool lacks;
    TR_TRY(check_lack(work, piece, &lacks));
    if (lacks) return TR_OK;
    if (piece->first == 0) TR_TRY(begin(work, piece));
    struct tr_stored_tensor *tensor = &work->made[work->count - 1].tensor;
    const int64_t rows = piece->rows, columns = piece->columns;
    const struct tr_safetensors_entry *entry = find(work, piece->theirs, &file);
    TR_TRY(check_entry(work, piece->theirs, entry, piece->rank,
                       piece->across ? columns : rows + piece->skipped, piece->across ? rows : columns));
    /* Memory is allocated only once a tensor of the file fits: sizes in config.json alone do not suffice. */
    if (!tensor->data) tensor->data = tr_alloc((size_t)piece->total * (size_t)columns, sizeof(float));
    if (!tensor->data) return TR_ENOMEM;
    float *to = (float *)tensor->data + piece->first * columns;
    if (piece->across) return read_across(file, entry, rows, columns, to);
    if (piece->skipped > 0) {
        TR_TRY(read_rest(file, entry, piece, to));
    } else {
        TR_TRY(tr_safetensors_read(file, entry, to, NULL));
        widen(entry->tensor.dtype, rows * columns, to);
    }
    return piece->added[0] ? add_row(work, piece, to) : TR_OK;
}

/* ---- writing ---- */

static tr_status give(const struct work *work, void **bytes, size_t *size)
{
    struct tr_stored_tensor *tensors = tr_alloc((size_t)work->count, sizeof *tensors);
    if (!tensors) return TR_ENOMEM;
    for (int64_t i = 0; i < work->count; i++) {
        tensors[i] = work->made[i].tensor;
        tensors[i].name = work->made[i].name;
    }
    tr_status status = tr_safetensors_to_memory(tensors, work->count, NULL, 0, bytes, size);
    tr_free(tensors);
    return status;
}

tr_status tr_hub_weights(const struct tr_hub_config *config, const char *directory, bool partial,
                         void **bytes, size_t *size)
{
    struct tr_hub_files *files;
    TR_TRY(tr_hub_files_open(directory, &files));
    struct work work = {.files = files, .partial = partial};
    tr_status status = tr_hub_each_piece(config, take, &work);
    if (status == TR_OK) status = give(&work, bytes, size);
    for (int64_t i = 0; i < work.count; i++) tr_free(work.made[i].tensor.data);
    tr_free(work.made);
    tr_hub_files_close(&files);
    return status;
}
