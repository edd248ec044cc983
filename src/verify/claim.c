#include "verify/claim.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "checkpoint/names.h"
#include "strategy/updates/file.h"

static tr_status find_path(const char *path, struct claim *out)
{
    bool is_run = tr_file_is_directory(path);
    out->path = is_run ? tr_path_join(path, TR_RECEIPT_FILE) : tr_strdup(path);
    out->directory = is_run ? tr_strdup(path) : tr_path_parent(path);
    if (!out->path || !out->directory) return TR_ENOMEM;
    if (!is_run || tr_file_exists(out->path)) return TR_OK;
    return tr_fail(TR_ENOTFOUND,
                   "\"%s\" has no receipt (%s); runs keep one with train.receipt: true in the model file, or "
                   "`trireme train --receipt`",
                   path, TR_RECEIPT_FILE);
}

static tr_status read_receipt(struct claim *out)
{
    struct tr_file_content content;
    TR_TRY(tr_file_read(out->path, TR_RECEIPT_MOST, &content));
    tr_status status = tr_receipt_read(out->path, content.data, content.size, &out->receipt);
    tr_file_content_free(&content);
    return status;
}

/* Of several checkpoints of a step, the last one is used. */
static tr_status find_checkpoints(struct claim *out)
{
    struct tr_checkpoint_scan scan;
    tr_status status = TR_OK;
    out->checkpoint = tr_alloc_zero((size_t)out->receipt.count, sizeof *out->checkpoint);
    if (!out->checkpoint) return TR_ENOMEM;
    TR_TRY(tr_checkpoint_scan(NULL, out->directory, &scan));
    for (int64_t i = 0; status == TR_OK && i < scan.count; i++) {
        const struct tr_receipt_boundary *boundary = tr_receipt_find(&out->receipt, scan.found[i].step);
        if (!boundary) continue;
        char **place = &out->checkpoint[boundary - out->receipt.boundary];
        tr_free(*place);
        *place = tr_checkpoint_make_path(out->directory, scan.found[i], "");
        if (!*place) status = TR_ENOMEM;
    }
    tr_checkpoint_scan_free(&scan);
    return status;
}

tr_status claim_open(const char *path, struct claim *out)
{
    *out = (struct claim){0};
    TR_TRY(find_path(path, out));
    TR_TRY(read_receipt(out));
    if (*out->receipt.log) {
        out->log = tr_path_join(out->directory, TR_UPDATE_FILE);
        out->checkpoint = tr_alloc_zero((size_t)out->receipt.count, sizeof *out->checkpoint);
        return out->log && out->checkpoint ? TR_OK : TR_ENOMEM;
    }
    return find_checkpoints(out);
}

void claim_release(struct claim *claim)
{
    for (int64_t i = 0; claim->checkpoint && i < claim->receipt.count; i++) tr_free(claim->checkpoint[i]);
    tr_free(claim->checkpoint);
    tr_free(claim->log);
    tr_receipt_release(&claim->receipt);
    tr_free(claim->directory);
    tr_free(claim->path);
    *claim = (struct claim){0};
}
