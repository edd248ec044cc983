/* model.safetensors as tensors of our names, in float32.
 *
 * Ours are those of PyTorch's modules of the same network: the projections to queries, keys and values are
 * one matrix, whose rows are theirs one behind the other. GPT-2 has its matrices [in][out].
 */
#include "export/hub/hub.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "io/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_SIZE 128

struct made {
    char name[NAME_SIZE];
    struct tr_stored_tensor tensor;
    int64_t filled; /* rows */
};

struct work {
    const struct tr_hub_config *config;
    tr_safetensors *file;
    struct made *made;
    int64_t count;
};

/* ---- reading ---- */

static const struct tr_safetensors_entry *find(const struct work *work, const char *name)
{
    static const char *const prefixes[] = {"", "transformer.", "model."};
    for (int i = 0; i < 3; i++) {
        char full[NAME_SIZE];
        snprintf(full, sizeof full, "%s%s", prefixes[i], name);
        const struct tr_safetensors_entry *entry = tr_safetensors_find(work->file, full);
        if (entry) return entry;
    }
    return NULL;
}

/* The float32 of a float16: an exponent of 5 bits, a fraction of 10. */
static float from_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f,
                   fraction = half & 0x3ff;
    uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
    float value;
    if (exponent == 0) { /* subnormal: a whole number of 2^-24 */
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    if (exponent == 31) bits = sign | 0x7f800000 | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* `count` numbers in place of what was read into their memory, from the last to the first. */
static void widen(enum tr_dtype dtype, int64_t count, float *values)
{
    const uint16_t *from = (const uint16_t *)(const void *)values;
    for (int64_t i = count - 1; i >= 0 && dtype != TR_DTYPE_F32; i--) {
        uint16_t half;
        float value;
        memcpy(&half, from + i, sizeof half);
        if (dtype == TR_DTYPE_F16) {
            value = from_half(half);
        } else {
            const uint32_t bits = (uint32_t)half << 16;
            memcpy(&value, &bits, sizeof value);
        }
        memcpy(values + i, &value, sizeof value);
    }
}

static tr_status check_entry(const struct work *work, const char *name,
                             const struct tr_safetensors_entry *entry, int rank, int64_t rows,
                             int64_t columns)
{
    char text[TR_STORED_TEXT];
    const char *path = tr_safetensors_path(work->file);
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

/* ---- ours ---- */

/* Begins a tensor of ours, which gets memory with the first of theirs that fits; columns 1 and rank 1 for a
 * vector. */
static tr_status begin(struct work *work, int rank, int64_t rows, int64_t columns, const char *name,
                       int64_t layer)
{
    if (!tr_grow(&work->made, work->count, sizeof *work->made)) return TR_ENOMEM;
    struct made *made = &work->made[work->count];
    *made = (struct made){.tensor = {.dtype = TR_DTYPE_F32, .rank = rank, .shape = {rows, columns}}};
    const char *star = strchr(name, '*');
    if (star)
        snprintf(made->name, sizeof made->name, "%.*s%" PRId64 "%s", (int)(star - name), name, layer,
                 star + 1);
    else
        snprintf(made->name, sizeof made->name, "%s", name);
    work->count++;
    return TR_OK;
}

/* The next rows of it, a tensor of theirs; `across`: its rows and columns are exchanged there. */
static tr_status fill(struct work *work, int64_t rows, bool across, const char *name, int64_t layer)
{
    struct made *made = &work->made[work->count - 1];
    const int64_t columns = made->tensor.rank == 2 ? made->tensor.shape[1] : 1;
    char full[NAME_SIZE];
    const char *star = strchr(name, '*');
    snprintf(full, sizeof full, "%.*s", star ? (int)(star - name) : NAME_SIZE - 1, name);
    if (star) snprintf(full + strlen(full), sizeof full - strlen(full), "%" PRId64 "%s", layer, star + 1);
    const struct tr_safetensors_entry *entry = find(work, full);
    TR_TRY(
        check_entry(work, full, entry, made->tensor.rank, across ? columns : rows, across ? rows : columns));
    if (!made->tensor.data)
        made->tensor.data = tr_alloc((size_t)made->tensor.shape[0] * (size_t)columns, sizeof(float));
    if (!made->tensor.data) return TR_ENOMEM;
    float *to = (float *)made->tensor.data + made->filled * columns;
    made->filled += rows;
    if (!across) {
        TR_TRY(tr_safetensors_read(work->file, entry, to, NULL));
        widen(entry->tensor.dtype, rows * columns, to);
        return TR_OK;
    }
    float *values = tr_alloc((size_t)(rows * columns), sizeof *values);
    if (!values) return TR_ENOMEM;
    tr_status status = tr_safetensors_read(work->file, entry, values, NULL);
    if (status == TR_OK) widen(entry->tensor.dtype, rows * columns, values);
    for (int64_t i = 0; status == TR_OK && i < columns; i++)
        for (int64_t k = 0; k < rows; k++) to[k * columns + i] = values[i * rows + k];
    tr_free(values);
    return status;
}

/* A tensor of ours that is one of theirs. */
static tr_status take(struct work *work, int rank, int64_t rows, int64_t columns, bool across,
                      const char *ours, const char *theirs, int64_t layer)
{
    TR_TRY(begin(work, rank, rows, columns, ours, layer));
    return fill(work, rows, across, theirs, layer);
}

static tr_status take_gpt2(struct work *work)
{
    const struct tr_hub_config *c = work->config;
    static const char *const norms[][2] = {{"first_norm*.weight", "h.*.ln_1.weight"},
                                           {"first_norm*.bias", "h.*.ln_1.bias"},
                                           {"second_norm*.weight", "h.*.ln_2.weight"},
                                           {"second_norm*.bias", "h.*.ln_2.bias"}};
    TR_TRY(take(work, 2, c->vocabulary, c->width, false, "tokens.weight", "wte.weight", 0));
    TR_TRY(take(work, 2, c->context, c->width, false, "places.weight", "wpe.weight", 0));
    for (int64_t i = 0; i < c->layers; i++) {
        for (int n = 0; n < 4; n++) TR_TRY(take(work, 1, c->width, 1, false, norms[n][0], norms[n][1], i));
        TR_TRY(take(work, 2, 3 * c->width, c->width, true, "attention*.in_proj_weight",
                    "h.*.attn.c_attn.weight", i));
        TR_TRY(take(work, 1, 3 * c->width, 1, false, "attention*.in_proj_bias", "h.*.attn.c_attn.bias", i));
        TR_TRY(take(work, 2, c->width, c->width, true, "attention*.out_proj.weight", "h.*.attn.c_proj.weight",
                    i));
        TR_TRY(take(work, 1, c->width, 1, false, "attention*.out_proj.bias", "h.*.attn.c_proj.bias", i));
        TR_TRY(take(work, 2, c->inner, c->width, true, "up*.weight", "h.*.mlp.c_fc.weight", i));
        TR_TRY(take(work, 1, c->inner, 1, false, "up*.bias", "h.*.mlp.c_fc.bias", i));
        TR_TRY(take(work, 2, c->width, c->inner, true, "down*.weight", "h.*.mlp.c_proj.weight", i));
        TR_TRY(take(work, 1, c->width, 1, false, "down*.bias", "h.*.mlp.c_proj.bias", i));
    }
    TR_TRY(take(work, 1, c->width, 1, false, "last_norm.weight", "ln_f.weight", 0));
    return take(work, 1, c->width, 1, false, "last_norm.bias", "ln_f.bias", 0);
}

static tr_status take_attention(struct work *work, int64_t i)
{
    const struct tr_hub_config *c = work->config;
    const int64_t own = c->heads * c->head_size, shared = c->kv_heads * c->head_size;
    static const char *const parts[][2] = {
        {"layers.*.self_attn.q_proj.weight", "layers.*.self_attn.q_proj.bias"},
        {"layers.*.self_attn.k_proj.weight", "layers.*.self_attn.k_proj.bias"},
        {"layers.*.self_attn.v_proj.weight", "layers.*.self_attn.v_proj.bias"}};
    TR_TRY(begin(work, 2, own + 2 * shared, c->width, "attention*.in_proj_weight", i));
    for (int n = 0; n < 3; n++) TR_TRY(fill(work, n ? shared : own, false, parts[n][0], i));
    TR_TRY(take(work, 2, c->width, own, false, "attention*.out_proj.weight",
                "layers.*.self_attn.o_proj.weight", i));
    if (!c->bias) return TR_OK;
    TR_TRY(begin(work, 1, own + 2 * shared, 1, "attention*.in_proj_bias", i));
    for (int n = 0; n < 3; n++) TR_TRY(fill(work, n ? shared : own, false, parts[n][1], i));
    return TR_OK;
}

static tr_status take_llama(struct work *work)
{
    const struct tr_hub_config *c = work->config;
    TR_TRY(take(work, 2, c->vocabulary, c->width, false, "tokens.weight", "embed_tokens.weight", 0));
    for (int64_t i = 0; i < c->layers; i++) {
        TR_TRY(take(work, 1, c->width, 1, false, "first_norm*.weight", "layers.*.input_layernorm.weight", i));
        TR_TRY(take_attention(work, i));
        TR_TRY(take(work, 1, c->width, 1, false, "second_norm*.weight",
                    "layers.*.post_attention_layernorm.weight", i));
        TR_TRY(take(work, 2, c->inner, c->width, false, "gate*.weight", "layers.*.mlp.gate_proj.weight", i));
        TR_TRY(take(work, 2, c->inner, c->width, false, "up*.weight", "layers.*.mlp.up_proj.weight", i));
        TR_TRY(take(work, 2, c->width, c->inner, false, "down*.weight", "layers.*.mlp.down_proj.weight", i));
    }
    TR_TRY(take(work, 1, c->width, 1, false, "last_norm.weight", "norm.weight", 0));
    return c->tied ? TR_OK
                   : take(work, 2, c->vocabulary, c->width, false, "scores.weight", "lm_head.weight", 0);
}

/* ---- writing ---- */

struct memory {
    char *bytes;
    size_t used, size;
};

static tr_status write_bytes(void *user, const void *data, size_t size)
{
    struct memory *memory = user;
    if (size > memory->size - memory->used)
        return tr_fail(TR_EIO, "a file in memory is larger than it was said to be");
    memcpy(memory->bytes + memory->used, data, size);
    memory->used += size;
    return TR_OK;
}

static tr_status give(const struct work *work, void **bytes, size_t *size)
{
    struct tr_stored_tensor *tensors = tr_alloc((size_t)work->count, sizeof *tensors);
    struct memory memory = {0};
    const struct tr_stored_sink sink = {write_bytes, &memory};
    uint64_t needed;
    tr_status status = tensors ? TR_OK : TR_ENOMEM;
    for (int64_t i = 0; status == TR_OK && i < work->count; i++) {
        tensors[i] = work->made[i].tensor;
        tensors[i].name = work->made[i].name;
    }
    if (status == TR_OK) status = tr_safetensors_size(tensors, work->count, NULL, 0, &needed);
    if (status == TR_OK && !(memory.bytes = tr_alloc((size_t)needed, 1))) status = TR_ENOMEM;
    memory.size = status == TR_OK ? (size_t)needed : 0;
    struct tr_safetensors_summary summary;
    if (status == TR_OK)
        status = tr_safetensors_give(&sink, tensors, work->count, NULL, NULL, 0, NULL, &summary);
    tr_free(tensors);
    if (status == TR_OK) {
        *bytes = memory.bytes;
        *size = memory.used;
    } else {
        tr_free(memory.bytes);
    }
    return status;
}

static tr_status open_weights(const char *directory, tr_safetensors **file)
{
    char *path = tr_path_join(directory, "model.safetensors");
    char *index = tr_path_join(directory, "model.safetensors.index.json");
    tr_status status = TR_ENOMEM;
    if (path && index && !tr_file_exists(path) && tr_file_exists(index))
        status = tr_fail(TR_EUNSUPPORTED,
                         "%s: the weights are spread over several files; save the network again in one "
                         "(save_pretrained(..., max_shard_size=\"100GB\"))",
                         directory);
    else if (path && index)
        status = tr_safetensors_open(path, file);
    tr_free(path);
    tr_free(index);
    return status;
}

tr_status tr_hub_weights(const struct tr_hub_config *config, const char *directory, void **bytes,
                         size_t *size)
{
    struct work work = {.config = config};
    TR_TRY(open_weights(directory, &work.file));
    tr_status status = config->kind == TR_HUB_GPT2 ? take_gpt2(&work) : take_llama(&work);
    if (status == TR_OK) status = give(&work, bytes, size);
    for (int64_t i = 0; i < work.count; i++) tr_free(work.made[i].tensor.data);
    tr_free(work.made);
    tr_safetensors_close(&work.file);
    return status;
}
