#include "checkpoint/manifest.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/hash.h"
#include "base/text/ascii.h"
#include "checkpoint/manifest_format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* TR_ECORRUPT unless the text contains its correct checksum. */
static tr_status check_sum(const char *path, const char *text, size_t size)
{
    char tail[TAIL_SIZE + 1];
    if (size < TAIL_SIZE)
        return tr_fail(TR_ECORRUPT, "\"%s\": %zu bytes are too few for a manifest; was it cut?", path, size);
    uint32_t crc = tr_crc32c(0, text, size - TAIL_SIZE);
    snprintf(tail, sizeof tail, TAIL_FORMAT, crc);
    if (memcmp(text + size - TAIL_SIZE, tail, TAIL_SIZE) == 0) return TR_OK;
    return tr_fail(TR_ECORRUPT,
                   "\"%s\": is damaged or was edited: its bytes have the CRC-32C %08" PRIx32
                   ", which is not what its end says",
                   path, crc);
}

static bool all_digits(const char *text, const char *digits, size_t length)
{
    return strlen(text) == length && strspn(text, digits) == length;
}

static tr_status get_crc(const struct tr_json_value *object, const char *where, const char *key,
                         uint32_t *out)
{
    const char *text;
    TR_TRY(tr_json_get_text(object, where, key, &text));
    if (!all_digits(text, "0123456789abcdef", CRC_DIGITS))
        return tr_fail(TR_EFORMAT, "%s: \"%.200s\" is \"%.20s\"; it must be 8 hexadecimal digits", where, key,
                       text);
    *out = 0;
    for (; *text; text++) *out = *out << 4 | (uint32_t)(*text <= '9' ? *text - '0' : *text - 'a' + 10);
    return TR_OK;
}

static tr_status get_digest(const struct tr_json_value *object, const char *where, const char *key,
                            const char **out)
{
    TR_TRY(tr_json_get_text(object, where, key, out));
    if ((*out)[0] == '\0' || all_digits(*out, "0123456789abcdef", TR_SHA256_TEXT - 1)) return TR_OK;
    return tr_fail(TR_EFORMAT, "%s: \"%s\" is \"%.80s\"; it must be 64 hexadecimal digits", where, key, *out);
}

static tr_status get_seed(const struct tr_json_value *object, const char *where, uint64_t *out)
{
    const char *text;
    TR_TRY(tr_json_get_text(object, where, "seed", &text));
    bool good = text[0] != '\0';
    *out = 0;
    for (const char *at = text; *at && good; at++)
        good = tr_is_digit(*at) && !__builtin_mul_overflow(*out, (uint64_t)10, out) &&
               !__builtin_add_overflow(*out, (uint64_t)(*at - '0'), out);
    if (good) return TR_OK;
    return tr_fail(TR_EFORMAT, "%s: \"seed\" is \"%.40s\"; it must be an integer from 0 to 2^64 - 1", where,
                   text);
}

static tr_status read_metrics(struct tr_manifest *manifest, const char *where)
{
    const struct tr_json_value *object;
    TR_TRY(tr_json_get_object(tr_json_root(manifest->document), where, "metrics", &object));
    manifest->metrics = tr_alloc((size_t)object->count, sizeof *manifest->metrics);
    if (!manifest->metrics) return TR_ENOMEM;
    int64_t count = 0;
    for (const struct tr_json_value *value = object->first; value; value = value->next) {
        double number = value->kind == TR_JSON_INTEGER ? (double)value->integer
                        : value->kind == TR_JSON_REAL  ? value->real
                                                       : NAN;
        if (isnan(number) && value->kind != TR_JSON_NULL)
            return tr_fail(TR_EFORMAT, "%s: metric \"%.200s\" is %s; it must be a number or null", where,
                           value->key, tr_json_kind_name(value->kind));
        manifest->metrics[count++] = (struct tr_checkpoint_metric){value->key, number};
    }
    manifest->facts.metrics = manifest->metrics;
    manifest->facts.metric_count = count;
    return TR_OK;
}

static tr_status read_facts(struct tr_manifest *manifest, const char *where)
{
    struct tr_checkpoint_facts *facts = &manifest->facts;
    const struct tr_json_value *root = tr_json_root(manifest->document);
    const char *format;
    int64_t version;
    TR_TRY(tr_json_get_text(root, where, "format", &format));
    if (strcmp(format, FORMAT_NAME) != 0)
        return tr_fail(TR_EFORMAT, "%s: the format is \"%.40s\", not \"" FORMAT_NAME "\"", where, format);
    TR_TRY(tr_json_get_integer(root, where, "format_version", 1, INT64_MAX, &version));
    if (version != TR_MANIFEST_VERSION)
        return tr_fail(TR_EUNSUPPORTED,
                       "%s: the format has version %" PRId64
                       ", this program reads version %d; use a newer program",
                       where, version, TR_MANIFEST_VERSION);
    TR_TRY(tr_json_get_text(root, where, "program", &facts->program));
    TR_TRY(tr_json_get_integer(root, where, "step", 0, INT64_MAX, &facts->step));
    TR_TRY(get_seed(root, where, &facts->seed));
    TR_TRY(tr_json_get_integer(root, where, "microbatches", 1, INT64_MAX, &facts->microbatches));
    TR_TRY(get_digest(root, where, "model_digest", &facts->model_digest));
    TR_TRY(get_digest(root, where, "data_digest", &facts->data_digest));
    TR_TRY(get_digest(root, where, "parameter_hash", &facts->parameter_hash));
    return read_metrics(manifest, where);
}

static tr_status get_bytes(const struct tr_json_value *object, const char *where, int64_t most, uint64_t *out)
{
    int64_t bytes;
    TR_TRY(tr_json_get_integer(object, where, "bytes", 0, most, &bytes));
    *out = (uint64_t)bytes;
    return TR_OK;
}

static tr_status read_groups(struct tr_manifest *manifest, const char *where)
{
    const struct tr_json_value *groups, *group;
    TR_TRY(tr_json_get_object(tr_json_root(manifest->document), where, "tensor_files", &groups));
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) {
        TR_TRY(tr_json_get_object(groups, where, tr_checkpoint_group_file[g], &group));
        TR_TRY(get_bytes(group, where, INT64_MAX, &manifest->summary[g].bytes));
        TR_TRY(get_crc(group, where, "header_crc32c", &manifest->summary[g].header_crc));
        TR_TRY(tr_json_get_object(group, where, "tensors", &manifest->tensors[g]));
    }
    return TR_OK;
}

static tr_status read_files(struct tr_manifest *manifest, const char *where)
{
    const struct tr_json_value *files;
    TR_TRY(tr_json_get_object(tr_json_root(manifest->document), where, "files", &files));
    manifest->files = tr_alloc((size_t)files->count, sizeof *manifest->files);
    if (!manifest->files) return TR_ENOMEM;
    for (const struct tr_json_value *value = files->first; value; value = value->next) {
        struct tr_manifest_file *file = &manifest->files[manifest->file_count];
        if (!tr_manifest_may_name(value->key) || value->kind != TR_JSON_OBJECT)
            return tr_fail(TR_EFORMAT, "%s: \"%.200s\" is no file that a checkpoint may keep", where,
                           value->key);
        file->name = value->key;
        TR_TRY(get_bytes(value, where, (int64_t)TR_CHECKPOINT_FILE_MAX, &file->bytes));
        TR_TRY(get_crc(value, where, "crc32c", &file->crc));
        manifest->file_count++;
    }
    return TR_OK;
}

tr_status tr_manifest_read(const char *path, const char *text, size_t size, struct tr_manifest *out)
{
    *out = (struct tr_manifest){0};
    TR_TRY(check_sum(path, text, size));
    TR_TRY(tr_json_parse(text, size, path, &out->document));
    tr_status status;
    TR_TRY_GOTO(read_facts(out, path), out);
    TR_TRY_GOTO(read_groups(out, path), out);
    TR_TRY_GOTO(read_files(out, path), out);
    return TR_OK;
out:
    tr_manifest_free(out);
    return status;
}

void tr_manifest_free(struct tr_manifest *manifest)
{
    tr_free(manifest->files);
    tr_free(manifest->metrics);
    tr_json_destroy(&manifest->document);
    *manifest = (struct tr_manifest){0};
}

tr_status tr_manifest_tensor_crc(const struct tr_manifest *manifest, const char *path,
                                 enum tr_checkpoint_group group, const char *name, uint32_t *crc)
{
    return get_crc(manifest->tensors[group], path, name, crc);
}
