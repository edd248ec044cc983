#include "verify/forms.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/options/config.h"
#include "trireme/receipt.h"

#include <string.h>
#include <unistd.h>

/* Bytes that are read at a time. */
#define PIECE ((size_t)1 << 20)

static tr_status form_json(const struct form *form, char **text)
{
    return tr_receipt_write(&form->claim->receipt, text);
}

static const struct {
    const char *name;
    tr_status (*write)(const struct form *form, char **text);
} forms[] = {
    {"json", form_json},
    {"in-toto", form_in_toto},
    {"cyclonedx", form_cyclonedx},
};
#define FORMS (sizeof forms / sizeof forms[0])

/* ---- digests ---- */

static tr_status digest_open(int file, const char *path, uint64_t size, char hex[TR_SHA256_TEXT])
{
    tr_sha256 *hash = NULL;
    char *piece = tr_alloc(PIECE, 1);
    tr_status status = piece ? tr_sha256_begin(&hash) : TR_ENOMEM;
    for (uint64_t at = 0; status == TR_OK && at < size; at += PIECE) {
        size_t bytes = size - at < PIECE ? (size_t)(size - at) : PIECE;
        status = tr_file_read_at(file, path, at, piece, bytes);
        if (status == TR_OK) tr_sha256_add(hash, piece, bytes);
    }
    if (status == TR_OK) status = tr_sha256_end(&hash, hex);
    tr_sha256_destroy(&hash);
    tr_free(piece);
    return status;
}

/* Of the file of parameters after the last boundary, if it is available. */
static tr_status digest_parameters(const struct claim *claim, char hex[TR_SHA256_TEXT])
{
    const char *checkpoint = claim->checkpoint[claim->receipt.count - 1];
    int file;
    uint64_t size;
    hex[0] = '\0';
    if (!checkpoint) return TR_OK;
    char *path = tr_path_join(checkpoint, "parameters.safetensors");
    tr_status status = path ? tr_file_open(path, &file, &size) : TR_ENOMEM;
    if (status == TR_OK) {
        status = digest_open(file, path, size, hex);
        close(file);
    }
    tr_free(path);
    return status;
}

static tr_status digest_receipt(const struct claim *claim, char hex[TR_SHA256_TEXT])
{
    char *text;
    TR_TRY(tr_receipt_write(&claim->receipt, &text));
    tr_status status = tr_sha256_of(text, strlen(text), hex);
    tr_free(text);
    return status;
}

/* ---- all ---- */

static tr_status write_form(size_t index, const struct claim *claim, char **text)
{
    struct form form = {.claim = claim, .job = "model"};
    tr_config *model = NULL;
    TR_TRY(digest_receipt(claim, form.receipt));
    TR_TRY(digest_parameters(claim, form.parameters));
    TR_TRY(tr_config_parse(claim->receipt.model, strlen(claim->receipt.model), claim->path, &model));
    const tr_config *name = tr_config_get(model, "name");
    if (name && tr_config_kind(name) == TR_CONFIG_SCALAR) form.job = tr_config_text(name);
    tr_status status = forms[index].write(&form, text);
    tr_config_destroy(&model);
    return status;
}

tr_status tr_receipt_form(const char *path, const char *format, char **text)
{
    const char *names[FORMS];
    struct claim claim;
    size_t index = 0;
    *text = NULL;
    for (size_t i = 0; i < FORMS; i++) names[i] = forms[i].name;
    while (index < FORMS && strcmp(format, names[index]) != 0) index++;
    if (index == FORMS) {
        struct tr_text message = TR_TEXT_INIT;
        tr_text_add_unknown(&message, format, names, (int32_t)FORMS);
        tr_status status =
            tr_fail(TR_EINVAL, "form of a receipt: %s", message.bytes ? message.bytes : "unknown");
        tr_text_release(&message);
        return status;
    }
    tr_status status = claim_open(path, &claim);
    if (status == TR_OK) status = write_form(index, &claim, text);
    claim_release(&claim);
    return status;
}
