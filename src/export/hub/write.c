/* Export to a directory that Hugging Face's from_pretrained() loads: config.json, model.safetensors, and
 * where the network's texts have a tokenizer of bytes, tokenizer.json and tokenizer_config.json.
 *
 * Invariant: config.json is removed first and written last, so that a failure does not leave such a
 * directory.
 */
#include "base/alloc.h"
#include "base/files/file.h"
#include "base/text/json.h"
#include "export/hub/outgoing.h"
#include "io/safetensors.h"

#include <string.h>

static const char *const names[] = {"config.json", "model.safetensors", "tokenizer.json",
                                    "tokenizer_config.json"};
enum { CONFIG, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG, FILES };

/* A directory with other files is refused: weights in several files would stay beside ours. */
static tr_status check_directory(const char *path)
{
    struct tr_file_names found;
    tr_status status = TR_OK;
    if (!tr_file_is_directory(path)) return TR_OK;
    TR_TRY(tr_file_list(NULL, path, &found));
    for (int64_t i = 0; i < found.count && status == TR_OK; i++) {
        bool known = false;
        for (int k = 0; k < FILES; k++) known |= strcmp(found.name[i], names[k]) == 0;
        if (!known)
            status =
                tr_fail(TR_EINVAL,
                        "\"%s\" has a \"%.200s\", which is no file of this export; name a directory that is "
                        "empty or not there",
                        path, found.name[i]);
    }
    tr_file_names_free(&found);
    return status;
}

struct giver {
    struct tr_hub_outgoing *out;
    bool half;
};

static tr_status give(void *user, int64_t index, uint64_t at, const void **piece, size_t *bytes)
{
    const struct giver *giver = user;
    const struct tr_hub_piece *wanted = &giver->out->piece[index];
    uint64_t size = (uint64_t)(wanted->rows * wanted->columns) * (giver->half ? 2 : 4);
    if (at == 0) TR_TRY(tr_hub_numbers(giver->out, wanted, wanted->across, giver->half, &size));
    *piece = (const char *)giver->out->numbers + at;
    *bytes = (size_t)(size - at);
    return TR_OK;
}

static tr_status write_to(void *user, const void *data, size_t size)
{
    return tr_file_write(user, data, size);
}

static tr_status write_weights(struct tr_hub_outgoing *out, bool half, const char *path)
{
    static const struct tr_stored_metadata metadata = {"format", "pt"};
    struct giver giver = {out, half};
    const struct tr_stored_giver source = {give, &giver};
    struct tr_safetensors_summary summary;
    struct tr_file_replacement file;
    struct tr_stored_tensor *tensors = tr_alloc((size_t)out->count, sizeof *tensors);
    if (!tensors) return TR_ENOMEM;
    for (int64_t i = 0; i < out->count; i++) {
        const struct tr_hub_piece *piece = &out->piece[i];
        tensors[i] = (struct tr_stored_tensor){
            .name = piece->theirs,
            .dtype = half ? TR_DTYPE_F16 : TR_DTYPE_F32,
            .rank = piece->rank,
            .shape = {piece->across ? piece->columns : piece->rows,
                      piece->across ? piece->rows : piece->columns},
        };
    }
    tr_status status = tr_file_replace_begin(NULL, path, 0, &file);
    if (status == TR_OK) {
        const struct tr_stored_sink sink = {write_to, &file.writer};
        status = tr_safetensors_give(&sink, tensors, out->count, &source, &metadata, 1, NULL, &summary);
        if (status == TR_OK)
            status = tr_file_replace_finish(&file);
        else
            tr_file_replace_abandon(&file);
    }
    tr_free(tensors);
    return status;
}

static tr_status write_text(const char *path, tr_status status, char *text)
{
    if (status == TR_OK) status = tr_file_write_atomic(NULL, path, text, strlen(text));
    tr_free(text);
    return status;
}

/* Without a tokenizer, remove that of an earlier export. */
static tr_status write_tokenizer(const struct tr_hub_outgoing *out, char *const *path)
{
    char *text = NULL;
    if (!out->bpe) {
        TR_TRY(tr_file_remove(NULL, path[TOKENIZER]));
        return tr_file_remove(NULL, path[TOKENIZER_CONFIG]);
    }
    tr_status status = tr_bpe_write(out->bpe, &text);
    TR_TRY(write_text(path[TOKENIZER], status, text));
    struct tr_json_writer json;
    struct tr_text end = TR_TEXT_INIT;
    tr_json_begin(&json, true);
    tr_json_text(&json, "tokenizer_class", "PreTrainedTokenizerFast");
    tr_json_bool(&json, "clean_up_tokenization_spaces", false);
    tr_json_integer(&json, "model_max_length", out->match.config.context);
    if (out->end >= 0) tr_bpe_add_letters(out->bpe, out->end, &end);
    if (end.length) tr_json_text(&json, "eos_token", end.bytes);
    text = NULL;
    status = tr_json_finish(&json, &text);
    if (end.failed && status == TR_OK) status = TR_ENOMEM;
    tr_text_release(&end);
    return write_text(path[TOKENIZER_CONFIG], status, text);
}

static tr_status write_all(struct tr_hub_outgoing *out, bool half, const char *directory, char *const *path)
{
    char *text = NULL;
    TR_TRY(check_directory(directory));
    TR_TRY(tr_file_make_directories(NULL, directory));
    TR_TRY(tr_file_remove(NULL, path[CONFIG]));
    TR_TRY(write_weights(out, half, path[WEIGHTS]));
    TR_TRY(write_tokenizer(out, path));
    const tr_status status = tr_hub_write_config(&out->match.config, out->end, half, &text);
    return write_text(path[CONFIG], status, text);
}

tr_status tr_export_hub(const struct tr_export *what, const char *directory)
{
    struct tr_hub_outgoing out;
    char *path[FILES] = {0};
    tr_status status = tr_hub_outgoing_begin(what, &out);
    for (int i = 0; status == TR_OK && i < FILES; i++)
        if (!(path[i] = tr_path_join(directory, names[i]))) status = TR_ENOMEM;
    if (status == TR_OK) status = write_all(&out, what->half, directory, path);
    for (int i = 0; i < FILES; i++) tr_free(path[i]);
    tr_hub_outgoing_release(&out);
    return status;
}
