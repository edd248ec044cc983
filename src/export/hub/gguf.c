/* Export to GGUF, the file of llama.cpp and its kin (specified by ggml), version 3, little-endian:
 *
 *     "GGUF"  u32 version  u64 tensors  u64 entries
 *     entries:  text key  u32 type  value;  a text is u64 bytes and these; an array u32 type, u64 count,
 * values tensors:  text name  u32 axes  u64 size of each, the fastest first  u32 type  u64 offset of its data
 *     padding to 32 bytes, then the data of each tensor, each padded to 32
 *
 * Names and entries are those that llama.cpp gives the architectures "gpt2", "llama" (Llama and Mistral)
 * and "qwen2". For "llama" it rotates neighbouring numbers, whereas Hugging Face rotates numbers half a
 * head apart; so rows of queries and keys are put in llama.cpp's order. Matrices have 16 bits if wanted;
 * vectors always have 32.
 */
#include "base/alloc.h"
#include "base/files/file.h"
#include "export/hub/outgoing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ALIGNMENT 32
#define PI        3.14159265358979323846

enum type { U32 = 4, I32 = 5, F32 = 6, BOOL = 7, TEXT = 8, ARRAY = 9 };
enum { TENSOR_F32 = 0, TENSOR_F16 = 1 };

struct writing {
    struct tr_hub_outgoing *out;
    const struct tr_hub_config *config;
    const char *architecture;
    bool half;
    struct tr_text text;
    uint64_t entries;
    float *turns; /* [turn_count] divisors of the angles; NULL: none */
    int64_t turn_count;
};

/* ---- entries ---- */

static void add(struct tr_text *text, const void *bytes, size_t size)
{
    tr_text_add_bytes(text, bytes, size);
}

static void add_u32(struct tr_text *text, uint32_t value)
{
    add(text, &value, sizeof value);
}

static void add_u64(struct tr_text *text, uint64_t value)
{
    add(text, &value, sizeof value);
}

static void add_text(struct tr_text *text, const char *bytes, size_t length)
{
    add_u64(text, length);
    add(text, bytes, length);
}

/* A key that begins with a dot belongs to the architecture. */
static void begin_entry(struct writing *writing, const char *key, enum type type)
{
    char full[96];
    snprintf(full, sizeof full, "%s%s", *key == '.' ? writing->architecture : "", key);
    add_text(&writing->text, full, strlen(full));
    add_u32(&writing->text, type);
    writing->entries++;
}

static void entry_u32(struct writing *writing, const char *key, int64_t value)
{
    begin_entry(writing, key, U32);
    add_u32(&writing->text, (uint32_t)value);
}

static void entry_f32(struct writing *writing, const char *key, double value)
{
    const float single = (float)value;
    begin_entry(writing, key, F32);
    add(&writing->text, &single, sizeof single);
}

static void entry_bool(struct writing *writing, const char *key, bool value)
{
    const uint8_t byte = value;
    begin_entry(writing, key, BOOL);
    add(&writing->text, &byte, sizeof byte);
}

static void entry_text(struct writing *writing, const char *key, const char *value)
{
    begin_entry(writing, key, TEXT);
    add_text(&writing->text, value, strlen(value));
}

static void begin_array(struct writing *writing, const char *key, enum type type, int64_t count)
{
    begin_entry(writing, key, ARRAY);
    add_u32(&writing->text, type);
    add_u64(&writing->text, (uint64_t)count);
}

/* ---- the network ---- */

static void add_network(struct writing *writing)
{
    const struct tr_hub_config *config = writing->config;
    /* Beyond its window a network like Mistral's would see more in llama.cpp than here. */
    const bool narrow = config->window > 0 && config->window < config->context;
    entry_text(writing, "general.architecture", writing->architecture);
    entry_text(writing, "general.name", writing->out->what->name);
    entry_u32(writing, "general.alignment", ALIGNMENT);
    entry_u32(writing, "general.file_type", writing->half ? 1 : 0);
    entry_u32(writing, ".vocab_size", config->vocabulary);
    entry_u32(writing, ".context_length", narrow ? config->window : config->context);
    entry_u32(writing, ".embedding_length", config->width);
    entry_u32(writing, ".block_count", config->layers);
    entry_u32(writing, ".feed_forward_length", config->inner);
    entry_u32(writing, ".attention.head_count", config->heads);
    if (config->kind == TR_HUB_GPT2) {
        entry_f32(writing, ".attention.layer_norm_epsilon", config->epsilon);
        return;
    }
    entry_u32(writing, ".attention.head_count_kv", config->kv_heads);
    entry_f32(writing, ".attention.layer_norm_rms_epsilon", config->epsilon);
    entry_u32(writing, ".attention.key_length", config->head_size);
    entry_u32(writing, ".attention.value_length", config->head_size);
    entry_u32(writing, ".rope.dimension_count", config->head_size);
    entry_f32(writing, ".rope.freq_base", config->rotary);
    if (config->factor > 1 && config->original == 0) {
        entry_text(writing, ".rope.scaling.type", "linear");
        entry_f32(writing, ".rope.scaling.factor", config->factor);
    }
}

/* ---- the tokenizer ---- */

/* The name of the tokenizer of llama.cpp that cuts texts alike. */
static const char *pattern_of(const tr_bpe *bpe)
{
    switch (tr_bpe_pattern_of(bpe)) {
    case TR_BPE_GPT2:
        return "gpt-2";
    case TR_BPE_QWEN2:
        return "qwen2";
    default: /* one takes pieces that are whole tokens, the other does not */
        return tr_bpe_ignores_merges(bpe) ? "llama-bpe" : "dbrx";
    }
}

static bool is_there(const tr_bpe *bpe, int64_t token)
{
    size_t length = 0;
    if (token < tr_bpe_size(bpe)) tr_bpe_token(bpe, (int32_t)token, &length);
    return length > 0;
}

static void add_tokens(struct writing *writing)
{
    const tr_bpe *bpe = writing->out->bpe;
    const int64_t count = writing->config->vocabulary;
    struct tr_text *text = &writing->text;
    begin_array(writing, "tokenizer.ggml.tokens", TEXT, count);
    for (int64_t i = 0; i < count; i++) {
        struct tr_text token = TR_TEXT_INIT;
        if (is_there(bpe, i))
            tr_bpe_add_letters(bpe, (int32_t)i, &token);
        else
            tr_text_addf(&token, "[PAD%lld]", (long long)i);
        text->failed |= token.failed;
        add_text(text, token.bytes ? token.bytes : "", token.length);
        tr_text_release(&token);
    }
    begin_array(writing, "tokenizer.ggml.token_type", I32, count);
    for (int64_t i = 0; i < count; i++) {
        enum { NORMAL = 1, CONTROL = 3, OF_USERS = 4, UNUSED = 5 } type = UNUSED;
        if (is_there(bpe, i))
            type = !tr_bpe_is_added(bpe, (int32_t)i)    ? NORMAL
                   : tr_bpe_is_special(bpe, (int32_t)i) ? CONTROL
                                                        : OF_USERS;
        add_u32(text, type);
    }
}

static void add_merges(struct writing *writing)
{
    const tr_bpe *bpe = writing->out->bpe;
    begin_array(writing, "tokenizer.ggml.merges", TEXT, tr_bpe_merges(bpe));
    for (int32_t i = 0; i < tr_bpe_merges(bpe); i++) {
        struct tr_text merge = TR_TEXT_INIT;
        int32_t left, right, made;
        tr_bpe_merge(bpe, i, &left, &right, &made);
        tr_bpe_add_letters(bpe, left, &merge);
        tr_text_add(&merge, " ");
        tr_bpe_add_letters(bpe, right, &merge);
        writing->text.failed |= merge.failed;
        add_text(&writing->text, merge.bytes ? merge.bytes : "", merge.length);
        tr_text_release(&merge);
    }
}

static void add_tokenizer(struct writing *writing)
{
    if (!writing->out->bpe) { /* the program then takes and gives numbers */
        entry_text(writing, "tokenizer.ggml.model", "no_vocab");
        return;
    }
    entry_text(writing, "tokenizer.ggml.model", "gpt2");
    entry_text(writing, "tokenizer.ggml.pre", pattern_of(writing->out->bpe));
    add_tokens(writing);
    add_merges(writing);
    entry_bool(writing, "tokenizer.ggml.add_bos_token", false);
    if (writing->out->end < 0) return;
    if (writing->config->kind == TR_HUB_GPT2)
        entry_u32(writing, "tokenizer.ggml.bos_token_id", writing->out->end);
    entry_u32(writing, "tokenizer.ggml.eos_token_id", writing->out->end);
}

/* ---- tensors ---- */

/* The divisors of Llama 3's angles, one for each pair of a head, as the library computes them. */
static tr_status make_turns(struct writing *writing)
{
    const struct tr_hub_config *config = writing->config;
    if (config->original == 0) return TR_OK;
    writing->turn_count = config->head_size / 2;
    writing->turns = tr_alloc((size_t)writing->turn_count, sizeof *writing->turns);
    if (!writing->turns) return TR_ENOMEM;
    for (int64_t i = 0; i < writing->turn_count; i++) {
        const double wave = 2 * PI * pow(config->rotary, 2 * (double)i / (double)config->head_size);
        const double turns = config->original / wave;
        const double smooth = (turns - config->low) / (config->high - config->low);
        writing->turns[i] = (float)(turns > config->high  ? 1
                                    : turns < config->low ? config->factor
                                                          : 1 / ((1 - smooth) / config->factor + smooth));
    }
    return TR_OK;
}

static bool is_half(const struct writing *writing, const struct tr_hub_piece *piece)
{
    return writing->half && piece->rank == 2;
}

static uint64_t padded(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void add_tensor(struct tr_text *text, const char *name, int rank, int64_t rows, int64_t columns,
                       bool half, uint64_t *offset)
{
    add_text(text, name, strlen(name));
    add_u32(text, (uint32_t)rank);
    if (rank == 2) add_u64(text, (uint64_t)columns);
    add_u64(text, (uint64_t)rows);
    add_u32(text, half ? TENSOR_F16 : TENSOR_F32);
    add_u64(text, *offset);
    *offset = padded(*offset + (uint64_t)(rows * columns) * (half ? 2 : 4));
}

static void add_tensors(struct writing *writing)
{
    const struct tr_hub_outgoing *out = writing->out;
    uint64_t offset = 0;
    for (int64_t i = 0; i < out->count; i++) {
        const struct tr_hub_piece *piece = &out->piece[i];
        add_tensor(&writing->text, piece->gguf, piece->rank, piece->rows, piece->columns,
                   is_half(writing, piece), &offset);
    }
    if (writing->turns)
        add_tensor(&writing->text, "rope_freqs.weight", 1, writing->turn_count, 1, false, &offset);
}

/* Pairs half a head apart become neighbours: row 2i + j of a head is row i + j * half of the original. */
static tr_status interleave(const struct writing *writing, const struct tr_hub_piece *piece, size_t row)
{
    const size_t head = (size_t)writing->config->head_size, half = head / 2;
    if (writing->config->kind == TR_HUB_QWEN2 ||
        (piece->role != TR_HUB_QUERIES && piece->role != TR_HUB_KEYS))
        return TR_OK;
    char *of_head = tr_alloc(head, row);
    if (!of_head) return TR_ENOMEM;
    for (size_t h = 0; h < (size_t)piece->rows / head; h++) {
        char *rows = (char *)writing->out->numbers + h * head * row;
        for (size_t k = 0; k < head; k++) memcpy(of_head + k * row, rows + (k / 2 + k % 2 * half) * row, row);
        memcpy(rows, of_head, head * row);
    }
    tr_free(of_head);
    return TR_OK;
}

static tr_status write_padded(struct tr_file_writer *writer, const void *data, uint64_t bytes)
{
    static const char zeros[ALIGNMENT] = {0};
    TR_TRY(tr_file_write(writer, data, (size_t)bytes));
    return tr_file_write(writer, zeros, (size_t)(padded(bytes) - bytes));
}

static tr_status write_data(struct writing *writing, struct tr_file_writer *writer)
{
    struct tr_hub_outgoing *out = writing->out;
    for (int64_t i = 0; i < out->count; i++) {
        const struct tr_hub_piece *piece = &out->piece[i];
        uint64_t bytes;
        TR_TRY(tr_hub_numbers(out, piece, false, is_half(writing, piece), &bytes));
        TR_TRY(interleave(writing, piece, (size_t)bytes / (size_t)piece->rows));
        TR_TRY(write_padded(writer, out->numbers, bytes));
    }
    if (!writing->turns) return TR_OK;
    return write_padded(writer, writing->turns, (uint64_t)writing->turn_count * sizeof(float));
}

/* ---- the file ---- */

static tr_status check(const struct tr_hub_config *config)
{
    if (config->kind == TR_HUB_QWEN2 && config->original > 0)
        return tr_fail(TR_EUNSUPPORTED,
                       "llama.cpp scales no positions as Llama 3 does (`rotary_original`) in a network with "
                       "biases of queries, keys and values");
    if (config->kind == TR_HUB_GPT2 && config->exact_gelu)
        return tr_fail(TR_EUNSUPPORTED,
                       "llama.cpp computes the `gelu` of a network like gpt2 by tanh; this one has "
                       "`approximate: none`");
    return TR_OK;
}

static tr_status write_file(struct writing *writing, const char *path)
{
    struct tr_text *text = &writing->text;
    char *bytes;
    const uint64_t tensors = (uint64_t)writing->out->count + (writing->turns != NULL);
    add(text, "GGUF", 4);
    add_u32(text, 3);
    add_u64(text, tensors);
    add_u64(text, 0); /* the number of entries, once it is known */
    add_network(writing);
    add_tokenizer(writing);
    add_tensors(writing);
    tr_text_pad(text, '\0', (size_t)(padded(text->length) - text->length));
    const size_t length = text->length;
    TR_TRY(tr_text_finish(text, &bytes));
    memcpy(bytes + 16, &writing->entries, sizeof writing->entries);
    struct tr_file_replacement file;
    tr_status status = tr_file_replace_begin(NULL, path, 0, &file);
    if (status == TR_OK) {
        status = tr_file_write(&file.writer, bytes, length);
        if (status == TR_OK) status = write_data(writing, &file.writer);
        if (status == TR_OK)
            status = tr_file_replace_finish(&file);
        else
            tr_file_replace_abandon(&file);
    }
    tr_free(bytes);
    return status;
}

tr_status tr_export_gguf(const struct tr_export *what, const char *path)
{
    static const char *const architectures[] = {"gpt2", "llama", "llama", "qwen2"};
    struct tr_hub_outgoing out;
    struct writing writing = {.out = &out, .config = &out.match.config, .half = what->half};
    tr_status status = tr_hub_outgoing_begin(what, &out);
    if (status == TR_OK) status = check(writing.config);
    if (status == TR_OK) status = make_turns(&writing);
    if (status == TR_OK) {
        writing.architecture = architectures[writing.config->kind];
        status = write_file(&writing, path);
    }
    tr_text_release(&writing.text);
    tr_free(writing.turns);
    tr_hub_outgoing_release(&out);
    return status;
}
