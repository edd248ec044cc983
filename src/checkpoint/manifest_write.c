#include "checkpoint/manifest.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/hash.h"
#include "checkpoint/manifest_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const tr_checkpoint_group_file[TR_CHECKPOINT_GROUPS] = {
    [TR_CHECKPOINT_PARAMETERS] = "parameters.safetensors",
    [TR_CHECKPOINT_OPTIMIZER] = "optimizer.safetensors"};

bool tr_manifest_may_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strlen(name);
    if (length == 0 || length > 100 || name[0] == '.' || strspn(name, letters) != length) return false;
    if (strcmp(name, TR_MANIFEST_NAME) == 0) return false;
    for (int i = 0; i < TR_CHECKPOINT_GROUPS; i++)
        if (strcmp(name, tr_checkpoint_group_file[i]) == 0) return false;
    return true;
}

static void write_crc(struct tr_json_writer *json, const char *key, uint32_t crc)
{
    char text[CRC_TEXT];
    snprintf(text, sizeof text, "%08" PRIx32, crc);
    tr_json_text(json, key, text);
}

static void write_facts(struct tr_json_writer *json, const struct tr_checkpoint_facts *facts)
{
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, facts->seed);
    tr_json_text(json, "format", FORMAT_NAME);
    tr_json_integer(json, "format_version", TR_MANIFEST_VERSION);
    tr_json_text(json, "program", "trireme " TRIREME_VERSION);
    tr_json_integer(json, "step", facts->step);
    tr_json_text(json, "seed", seed);
    tr_json_integer(json, "microbatches", facts->microbatches);
    tr_json_text(json, "model_digest", facts->model_digest);
    tr_json_text(json, "data_digest", facts->data_digest);
    tr_json_text(json, "parameter_hash", facts->parameter_hash);
    tr_json_open_object(json, "metrics");
    for (int64_t i = 0; i < facts->metric_count; i++)
        tr_json_double(json, facts->metrics[i].name, facts->metrics[i].value);
    tr_json_close_object(json);
}

tr_status tr_manifest_write(const struct tr_checkpoint_content *content, const struct tr_manifest_sums *sums,
                            char **text)
{
    struct tr_json_writer json;
    tr_json_begin(&json, true);
    write_facts(&json, &content->facts);
    tr_json_open_object(&json, "tensor_files");
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) {
        tr_json_open_object(&json, tr_checkpoint_group_file[g]);
        tr_json_integer(&json, "bytes", (int64_t)sums->summary[g].bytes);
        write_crc(&json, "header_crc32c", sums->summary[g].header_crc);
        tr_json_open_object(&json, "tensors");
        for (int64_t i = 0; i < content->group[g].count; i++)
            write_crc(&json, content->group[g].tensors[i].name, sums->tensor_crc[g][i]);
        tr_json_close_object(&json);
        tr_json_close_object(&json);
    }
    tr_json_close_object(&json);
    tr_json_open_object(&json, "files");
    for (int64_t i = 0; i < content->file_count; i++) {
        tr_json_open_object(&json, content->files[i].name);
        tr_json_integer(&json, "bytes", (int64_t)content->files[i].size);
        write_crc(&json, "crc32c", sums->file_crc[i]);
        tr_json_close_object(&json);
    }
    tr_json_close_object(&json);
    write_crc(&json, "manifest_crc32c", 0);
    TR_TRY(tr_json_finish(&json, text));

    /* The text ends as in TAIL_FORMAT; its checksum replaces the zeros. */
    size_t covered = strlen(*text) - TAIL_SIZE;
    char tail[TAIL_SIZE + 1];
    snprintf(tail, sizeof tail, TAIL_FORMAT, tr_crc32c(0, *text, covered));
    memcpy(*text + covered, tail, TAIL_SIZE);
    return TR_OK;
}
