/* manifest.json of a checkpoint: the facts, and the checksums of everything.
 *
 *     {
 *       "format": "trireme checkpoint",
 *       "format_version": 1,
 *       "program": "trireme 0.1.0",
 *       "step": 100,
 *       "seed": "1",                      a text, since JSON readers differ on large numbers
 *       "microbatches": 4,
 *       "model_digest": "...", "data_digest": "...", "parameter_hash": "...",
 *       "metrics": {"loss": 0.25},
 *       "tensor_files": {
 *         "parameters.safetensors": {
 *           "bytes": 13098536, "header_crc32c": "89abcdef", "tensors": {"conv1.weight": "01234567", ...}
 *         },
 *         "optimizer.safetensors": {...}
 *       },
 *       "files": {"model.yaml": {"bytes": 612, "crc32c": "..."}},
 *       "manifest_crc32c": "..."
 *     }
 *
 * Checksums are CRC-32C, in 8 hexadecimal digits. The last one is that of all bytes before its own key
 * (before the quote), and the text after it is fixed, so that any changed bit is noticed. All versions of
 * the format keep the first two and the last member.
 */
#ifndef TR_CHECKPOINT_MANIFEST_H
#define TR_CHECKPOINT_MANIFEST_H

#include "base/text/json.h"
#include "checkpoint/checkpoint.h"

#define TR_MANIFEST_VERSION 1
#define TR_MANIFEST_NAME    "manifest.json"

/* "parameters.safetensors", "optimizer.safetensors". */
extern const char *const tr_checkpoint_group_file[TR_CHECKPOINT_GROUPS];

/* Whether a kept file may have this name. */
bool tr_manifest_may_name(const char *name);

/* Checksums of the written data, in the order of the content. The caller owns the memory. */
struct tr_manifest_sums {
    struct tr_safetensors_summary summary[TR_CHECKPOINT_GROUPS];
    uint32_t *tensor_crc[TR_CHECKPOINT_GROUPS]; /* [count of the group] */
    uint32_t *file_crc;                         /* [file_count] */
};

/* The manifest's text. Returned, free with tr_free(). TR_ENOMEM. */
tr_status tr_manifest_write(const struct tr_checkpoint_content *content, const struct tr_manifest_sums *sums,
                            char **text);

struct tr_manifest_file {
    const char *name;
    uint64_t bytes;
    uint32_t crc;
};

/* A manifest that was read. */
struct tr_manifest {
    tr_json *document; /* owns all texts */
    struct tr_checkpoint_facts facts;
    struct tr_checkpoint_metric *metrics;
    struct tr_safetensors_summary summary[TR_CHECKPOINT_GROUPS];
    const struct tr_json_value *tensors[TR_CHECKPOINT_GROUPS]; /* name: checksum */
    struct tr_manifest_file *files;
    int64_t file_count;
};

/* Checks and parses the text of the manifest `path`, which is borrowed for the call. Returned, free with
   tr_manifest_free(). TR_ECORRUPT: the checksum is wrong. TR_EUNSUPPORTED: it is correct, but the version
   is unknown. TR_EFORMAT: it is correct, but the content is invalid. TR_ENOMEM. */
tr_status tr_manifest_read(const char *path, const char *text, size_t size, struct tr_manifest *out);
/* Accepts an empty manifest; empties it. */
void tr_manifest_free(struct tr_manifest *manifest);

/* The checksum of a tensor. TR_EFORMAT if the manifest (called `path` in the message) has none. */
tr_status tr_manifest_tensor_crc(const struct tr_manifest *manifest, const char *path,
                                 enum tr_checkpoint_group group, const char *name, uint32_t *crc);

#endif
