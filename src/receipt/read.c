#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/json.h"
#include "receipt/format.h"
#include "receipt/receipt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const members[] = {"format",   "format_version", "program", "numerics",
                                      "settings", "data",           "seed",    "steps",
                                      "log",      "parameters",     "model",   "boundaries"};

#define MEMBERS (sizeof members / sizeof members[0])

/* ---- members ---- */

static tr_status refuse(const char *path, const char *what, const char *found)
{
    return tr_fail(TR_EFORMAT, "\"%s\" is no receipt: %s is \"%.80s\"", path, what, found);
}

static tr_status check_members(const char *path, const struct tr_json_value *root)
{
    for (const struct tr_json_value *member = root->first; member; member = member->next) {
        size_t i = 0;
        while (i < MEMBERS && strcmp(member->key, members[i]) != 0) i++;
        if (i == MEMBERS)
            return tr_fail(TR_EFORMAT, "\"%s\" is no receipt: it has a member \"%.80s\"", path, member->key);
    }
    return TR_OK;
}

static tr_status read_sum(const char *path, const struct tr_json_value *object, const char *key,
                          struct tr_sha256_sum *out)
{
    const char *text;
    TR_TRY(tr_json_get_text(object, path, key, &text));
    return tr_sha256_parse(text, out) ? TR_OK : refuse(path, key, text);
}

/* A digest, or an empty text. */
static tr_status read_digest(const char *path, const struct tr_json_value *object, const char *key,
                             char out[TR_SHA256_TEXT])
{
    const char *text;
    struct tr_sha256_sum sum;
    TR_TRY(tr_json_get_text(object, path, key, &text));
    if (*text && !tr_sha256_parse(text, &sum)) return refuse(path, key, text);
    memcpy(out, text, strlen(text) + 1);
    return TR_OK;
}

/* Decimal digits without leading zeros, at most `most`. */
static bool read_number(const char *text, uint64_t most, uint64_t *out)
{
    uint64_t value = 0;
    if (!*text || (*text == '0' && text[1])) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value) || value > most)
            return false;
    }
    *out = value;
    return true;
}

static tr_status read_seed(const char *path, const struct tr_json_value *root, uint64_t *out)
{
    const char *text;
    TR_TRY(tr_json_get_text(root, path, "seed", &text));
    return read_number(text, UINT64_MAX, out) ? TR_OK : refuse(path, "seed", text);
}

static tr_status copy_text(const char *path, const struct tr_json_value *root, const char *key, char **out)
{
    const char *text;
    TR_TRY(tr_json_get_text(root, path, key, &text));
    *out = tr_strdup(text);
    return *out ? TR_OK : TR_ENOMEM;
}

/* ---- boundaries ---- */

static bool is_sum(const struct tr_json_value *value, struct tr_sha256_sum *out)
{
    return value && value->kind == TR_JSON_TEXT && tr_sha256_parse(value->text, out);
}

static tr_status read_boundary(const char *path, const struct tr_json_value *value, struct tr_receipt *out)
{
    struct tr_receipt_boundary boundary;
    uint64_t step;
    if (!read_number(value->key, (uint64_t)out->steps, &step))
        return tr_fail(TR_EFORMAT, "\"%s\" is no receipt: a boundary after \"%.80s\" of %" PRId64 " steps",
                       path, value->key, out->steps);
    boundary.step = (int64_t)step;
    if (out->count > 0 && out->boundary[out->count - 1].step >= boundary.step)
        return tr_fail(TR_EFORMAT,
                       "\"%s\" is no receipt: the boundary of step %" PRId64 " stands after that of %" PRId64,
                       path, boundary.step, out->boundary[out->count - 1].step);
    bool is_pair = value->kind == TR_JSON_ARRAY && value->count == 2;
    if (!is_pair || !is_sum(value->first, &boundary.root) || !is_sum(value->first->next, &boundary.chain))
        return tr_fail(TR_EFORMAT, "\"%s\" is no receipt: the boundary of step %" PRId64 " is no two digests",
                       path, boundary.step);
    return tr_receipt_add(out, &boundary);
}

/* The chain of the first boundary of a run that began there. */
static tr_status check_begin(const char *path, const struct tr_receipt *receipt)
{
    struct tr_chain_begin begin = {receipt->settings, receipt->data, receipt->boundary[0].root};
    struct tr_sha256_sum chain;
    TR_TRY(tr_chain_begin(&begin, &chain));
    if (memcmp(&chain, &receipt->boundary[0].chain, sizeof chain) == 0) return TR_OK;
    return tr_fail(TR_ECORRUPT,
                   "\"%s\" contradicts itself: its chain does not begin with its settings, its data and its "
                   "first state",
                   path);
}

/* ---- all ---- */

static tr_status check_format(const char *path, const struct tr_json_value *root)
{
    const char *format;
    int64_t version;
    TR_TRY(tr_json_get_text(root, path, "format", &format));
    if (strcmp(format, FORMAT_NAME) != 0) return refuse(path, "format", format);
    TR_TRY(tr_json_get_integer(root, path, "format_version", 1, INT64_MAX, &version));
    if (version > FORMAT_VERSION)
        return tr_fail(TR_EUNSUPPORTED,
                       "\"%s\" has version %" PRId64
                       " of the format, this program reads %d; take a newer one",
                       path, version, FORMAT_VERSION);
    return check_members(path, root);
}

static tr_status read_root(const char *path, const struct tr_json_value *root, struct tr_receipt *out)
{
    const struct tr_json_value *boundaries;
    TR_TRY(check_format(path, root));
    TR_TRY(copy_text(path, root, "program", &out->program));
    TR_TRY(tr_json_get_integer(root, path, "numerics", 1, INT32_MAX, &out->numerics));
    TR_TRY(read_sum(path, root, "settings", &out->settings));
    TR_TRY(read_sum(path, root, "data", &out->data));
    TR_TRY(read_seed(path, root, &out->seed));
    TR_TRY(tr_json_get_integer(root, path, "steps", 1, INT64_MAX, &out->steps));
    TR_TRY(read_digest(path, root, "log", out->log));
    TR_TRY(copy_text(path, root, "model", &out->model));
    TR_TRY(tr_json_get_object(root, path, "boundaries", &boundaries));
    if (boundaries->count == 0) return tr_fail(TR_EFORMAT, "\"%s\" is no receipt: it has no boundary", path);
    for (const struct tr_json_value *value = boundaries->first; value; value = value->next)
        TR_TRY(read_boundary(path, value, out));
    TR_TRY(check_begin(path, out));
    return read_digest(path, root, "parameters", out->parameters);
}

tr_status tr_receipt_read(const char *path, const char *text, size_t size, struct tr_receipt *out)
{
    tr_json *document;
    *out = (struct tr_receipt){0};
    TR_TRY(tr_json_parse(text, size, path, &document));
    tr_status status = read_root(path, tr_json_root(document), out);
    tr_json_destroy(&document);
    if (status != TR_OK) tr_receipt_release(out);
    return status;
}
