/* Files of tokenizers: tokenizer.json, and vocab.json with merges.txt.
 *
 * Read from tokenizer.json:
 *   model           BPE: `vocab` {token: number}, `merges` ["a b", ...] or [["a", "b"], ...], `ignore_merges`
 *   added_tokens    [{id, content, special, normalized, ...}]
 *   normalizer      null, NFC
 *   pre_tokenizer   ByteLevel, or a Split by one of the patterns of split.h and then ByteLevel
 * `post_processor`, `decoder`, `truncation` and `padding` do not change the tokens of a text itself.
 */
#include "data/bpe/internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/json.h"
#include "data/files/lines.h"

#include <inttypes.h>
#include <string.h>

struct reading {
    const char *where;
    tr_bpe *bpe;
    char *left, *right; /* each has room for the longest text of a token */
};

static tr_status refuse(const struct reading *reading, const char *what, const char *value)
{
    return tr_fail(
        TR_EUNSUPPORTED,
        "%s: %s %s is not known; byte-level BPE with the patterns of GPT-2, cl100k (Llama 3) and Qwen2 is",
        reading->where, what, value);
}

/* Whether a member is missing, null, false, or an empty text. */
static bool is_unset(const struct tr_json_value *object, const char *key)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    return !value || value->kind == TR_JSON_NULL || (value->kind == TR_JSON_BOOL && !value->truth) ||
           (value->kind == TR_JSON_TEXT && !*value->text);
}

static bool is_true(const struct tr_json_value *object, const char *key)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    return value && value->kind == TR_JSON_BOOL && value->truth;
}

/* ---- vocabulary ---- */

static tr_status check_id(const struct reading *reading, const char *text, const struct tr_json_value *id)
{
    if (id && id->kind == TR_JSON_INTEGER && id->integer >= 0 && id->integer < TR_BPE_TOKENS_MAX)
        return TR_OK;
    return tr_fail(TR_EFORMAT, "%s: the number of token \"%.60s\" is not within 0 and %d", reading->where,
                   text, TR_BPE_TOKENS_MAX - 1);
}

/* Reads all tokens into `bpe`. The longest text determines the size of `left` and `right`. */
static tr_status read_vocabulary(struct reading *reading, const struct tr_json_value *vocabulary)
{
    tr_bpe *bpe = reading->bpe;
    size_t longest = 0;
    int32_t size = 0;
    for (const struct tr_json_value *v = vocabulary->first; v; v = v->next) {
        TR_TRY(check_id(reading, v->key, v));
        if (v->integer >= size) size = (int32_t)v->integer + 1;
        if (strlen(v->key) > longest) longest = strlen(v->key);
    }
    TR_TRY(bpe_reserve(bpe, size));
    reading->left = tr_alloc(longest + 1, 1);
    reading->right = tr_alloc(longest + 1, 1);
    if (!reading->left || !reading->right) return TR_ENOMEM;
    for (const struct tr_json_value *v = vocabulary->first; v; v = v->next) {
        const int32_t id = (int32_t)v->integer;
        const int64_t length = bpe_bytes_of(v->key, reading->left);
        if (bpe->token[id].there)
            return tr_fail(TR_EFORMAT, "%s: number %" PRId32 " is that of two tokens", reading->where, id);
        if (length > 0) {
            TR_TRY(bpe_set_token(bpe, id, reading->left, (size_t)length));
        } else {
            TR_TRY(bpe_set_token(bpe, id, v->key, strlen(v->key)));
            bpe->token[id].opaque = true;
        }
    }
    return TR_OK;
}

static tr_status read_added(struct reading *reading, const struct tr_json_value *list)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip"};
    tr_bpe *bpe = reading->bpe;
    if (!list || list->kind == TR_JSON_NULL) return TR_OK;
    if (list->kind != TR_JSON_ARRAY)
        return tr_fail(TR_EFORMAT, "%s: added_tokens is %s, not an array", reading->where,
                       tr_json_kind_name(list->kind));
    for (const struct tr_json_value *item = list->first; item; item = item->next) {
        const char *content;
        TR_TRY(tr_json_get_text(item, reading->where, "content", &content));
        TR_TRY(check_id(reading, content, tr_json_find(item, "id")));
        for (int i = 0; i < 3; i++)
            if (!is_unset(item, flags[i])) return refuse(reading, "an added token with", flags[i]);
        if (!*content) return tr_fail(TR_EFORMAT, "%s: an added token has no text", reading->where);
        const int32_t id = (int32_t)tr_json_find(item, "id")->integer;
        TR_TRY(bpe_reserve(bpe, id + 1));
        if (bpe->token[id].added)
            return tr_fail(TR_EFORMAT, "%s: added token %" PRId32 " is there twice", reading->where, id);
        TR_TRY(bpe_set_added(bpe, id, content, strlen(content), is_true(item, "special"),
                             is_true(item, "normalized")));
    }
    return TR_OK;
}

/* ---- merges ---- */

static tr_status add_merge(struct reading *reading, int64_t number, const char *left, const char *right)
{
    int32_t made = -1, a = -1, b = -1;
    const int64_t m = bpe_bytes_of(left, reading->left), n = bpe_bytes_of(right, reading->right);
    if (m > 0) a = tr_bpe_find(reading->bpe, reading->left, (size_t)m);
    if (n > 0) b = tr_bpe_find(reading->bpe, reading->right, (size_t)n);
    if (a >= 0 && b >= 0) TR_TRY(bpe_add_merge(reading->bpe, a, b, &made));
    if (made >= 0) return TR_OK;
    return tr_fail(TR_EFORMAT,
                   "%s: merge %" PRId64 ", \"%.40s\" and \"%.40s\": %s is no token of the vocabulary",
                   reading->where, number, left, right,
                   a < 0   ? "the first"
                   : b < 0 ? "the second"
                           : "both together");
}

/* "a b", cut in place at its one blank. */
static tr_status add_merge_line(struct reading *reading, int64_t number, char *line, size_t longest)
{
    char *blank = strchr(line, ' ');
    if (!blank || strchr(blank + 1, ' ') || (size_t)(blank - line) > longest || strlen(blank + 1) > longest)
        return tr_fail(TR_EFORMAT, "%s: merge %" PRId64 " is \"%.60s\", not two tokens and a blank between",
                       reading->where, number, line);
    *blank = 0;
    return add_merge(reading, number, line, blank + 1);
}

static tr_status read_merges(struct reading *reading, const struct tr_json_value *merges, size_t longest)
{
    int64_t number = 0;
    for (const struct tr_json_value *m = merges->first; m; m = m->next, number++) {
        if (m->kind == TR_JSON_TEXT) {
            char *line = tr_strdup(m->text);
            if (!line) return TR_ENOMEM;
            tr_status status = add_merge_line(reading, number, line, longest);
            tr_free(line);
            TR_TRY(status);
            continue;
        }
        const struct tr_json_value *a = m->kind == TR_JSON_ARRAY ? m->first : NULL, *b = a ? a->next : NULL;
        if (!b || b->next || a->kind != TR_JSON_TEXT || b->kind != TR_JSON_TEXT ||
            strlen(a->text) > longest || strlen(b->text) > longest)
            return tr_fail(TR_EFORMAT, "%s: merge %" PRId64 " is no pair of tokens", reading->where, number);
        TR_TRY(add_merge(reading, number, a->text, b->text));
    }
    return TR_OK;
}

static size_t longest_key(const struct tr_json_value *vocabulary)
{
    size_t longest = 0;
    for (const struct tr_json_value *v = vocabulary->first; v; v = v->next)
        if (strlen(v->key) > longest) longest = strlen(v->key);
    return longest;
}

/* ---- the parts of tokenizer.json ---- */

static tr_status read_model(struct reading *reading, const struct tr_json_value *root)
{
    static const char *const unknown[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                          "byte_fallback"};
    const struct tr_json_value *model, *vocabulary, *merges;
    TR_TRY(tr_json_get_object(root, reading->where, "model", &model));
    const char *type = tr_json_text_or_empty(model, "type");
    if (*type && strcmp(type, "BPE") != 0) return refuse(reading, "model", type);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (!is_unset(model, unknown[i])) return refuse(reading, "option", unknown[i]);
    TR_TRY(tr_json_get_object(model, reading->where, "vocab", &vocabulary));
    TR_TRY(tr_json_get_array(model, reading->where, "merges", &merges));
    reading->bpe->ignore_merges = is_true(model, "ignore_merges");
    TR_TRY(read_vocabulary(reading, vocabulary));
    TR_TRY(read_added(reading, tr_json_find(root, "added_tokens")));
    TR_TRY(bpe_settle_tokens(reading->bpe, reading->where));
    return read_merges(reading, merges, longest_key(vocabulary));
}

static tr_status read_normalizer(struct reading *reading, const struct tr_json_value *normalizer)
{
    if (!normalizer || normalizer->kind == TR_JSON_NULL) return TR_OK;
    const char *type = tr_json_text_or_empty(normalizer, "type");
    if (strcmp(type, "NFC") != 0) return refuse(reading, "normalizer", type);
    reading->bpe->compose = true;
    return TR_OK;
}

static tr_status read_byte_level(struct reading *reading, const struct tr_json_value *part, bool *cuts)
{
    const struct tr_json_value *regex = tr_json_find(part, "use_regex");
    if (!is_unset(part, "add_prefix_space")) return refuse(reading, "option", "add_prefix_space");
    *cuts = !regex || regex->kind != TR_JSON_BOOL || regex->truth;
    return TR_OK;
}

static tr_status read_split(struct reading *reading, const struct tr_json_value *part)
{
    const struct tr_json_value *pattern;
    TR_TRY(tr_json_get_object(part, reading->where, "pattern", &pattern));
    const char *text = tr_json_text_or_empty(pattern, "Regex");
    if (strcmp(tr_json_text_or_empty(part, "behavior"), "Isolated") != 0)
        return refuse(reading, "behaviour", tr_json_text_or_empty(part, "behavior"));
    if (!is_unset(part, "invert")) return refuse(reading, "option", "invert");
    for (int i = 0; i < TR_BPE_PATTERNS; i++)
        if (strcmp(text, tr_bpe_pattern_texts[i]) == 0) {
            reading->bpe->pattern = (enum tr_bpe_pattern)i;
            return TR_OK;
        }
    return refuse(reading, "pattern", text);
}

static tr_status read_pre_tokenizer(struct reading *reading, const struct tr_json_value *part)
{
    const char *type = part ? tr_json_text_or_empty(part, "type") : "null";
    bool cuts = false;
    if (strcmp(type, "ByteLevel") == 0) {
        TR_TRY(read_byte_level(reading, part, &cuts));
        return cuts ? TR_OK : refuse(reading, "pre_tokenizer", "ByteLevel without a pattern");
    }
    const struct tr_json_value *list = tr_json_find(part, "pretokenizers");
    const struct tr_json_value *first = list && list->kind == TR_JSON_ARRAY ? list->first : NULL;
    const struct tr_json_value *second = first ? first->next : NULL;
    if (strcmp(type, "Sequence") != 0 || !second || second->next ||
        strcmp(tr_json_text_or_empty(first, "type"), "Split") != 0 ||
        strcmp(tr_json_text_or_empty(second, "type"), "ByteLevel") != 0)
        return refuse(reading, "pre_tokenizer", type);
    TR_TRY(read_split(reading, first));
    TR_TRY(read_byte_level(reading, second, &cuts));
    return cuts ? refuse(reading, "option", "use_regex after a Split") : TR_OK;
}

static void end_reading(struct reading *reading, tr_status status, tr_bpe **out)
{
    tr_free(reading->left);
    tr_free(reading->right);
    if (status == TR_OK)
        *out = reading->bpe;
    else
        tr_bpe_destroy(&reading->bpe);
}

tr_status tr_bpe_parse(const char *text, size_t length, const char *where, tr_bpe **out)
{
    struct reading reading = {.where = where, .bpe = bpe_create()};
    tr_json *json = NULL;
    tr_status status = reading.bpe ? tr_json_parse(text, length, where, &json) : TR_ENOMEM;
    const struct tr_json_value *root = status == TR_OK ? tr_json_root(json) : NULL;
    if (status == TR_OK) status = read_normalizer(&reading, tr_json_find(root, "normalizer"));
    if (status == TR_OK) status = read_pre_tokenizer(&reading, tr_json_find(root, "pre_tokenizer"));
    if (status == TR_OK) status = read_model(&reading, root);
    tr_json_destroy(&json);
    end_reading(&reading, status, out);
    return status;
}

/* ---- vocab.json and merges.txt ---- */

/* Tokens that are neither a byte nor the result of a merge were added: GPT-2's "<|endoftext|>". */
static tr_status add_unmade(struct reading *reading)
{
    tr_bpe *bpe = reading->bpe;
    bool *made = tr_alloc_zero((size_t)bpe->size, sizeof *made);
    if (!made) return TR_ENOMEM;
    for (int32_t i = 0; i < bpe->merges; i++) made[bpe->merge[i].made] = true;
    tr_status status = TR_OK;
    for (int32_t id = 0; id < bpe->size && status == TR_OK; id++) {
        const struct bpe_token *token = &bpe->token[id];
        if (!token->there || made[id] || token->length <= 1) continue;
        char *copy = tr_alloc(token->length, 1);
        if (!copy) {
            status = TR_ENOMEM;
            break;
        }
        memcpy(copy, bpe->bytes + token->start, token->length);
        status = bpe_set_added(bpe, id, copy, token->length, true, false);
        tr_free(copy);
    }
    tr_free(made);
    return status;
}

static tr_status read_merge_lines(struct reading *reading, const char *path, const struct tr_load *file,
                                  size_t longest)
{
    struct tr_lines lines = tr_lines_of(path, (const char *)file->data, file->size);
    tr_status status = TR_OK;
    while (status == TR_OK && tr_lines_next(&lines)) {
        if (lines.length == 0 ||
            (lines.number == 1 && lines.length >= 8 && memcmp(lines.line, "#version", 8) == 0))
            continue;
        if (memchr(lines.line, 0, lines.length))
            return tr_lines_fail(&lines, lines.line, "a merge has a byte 0");
        char *line = tr_format("%.*s", (int)lines.length, lines.line);
        if (!line) return TR_ENOMEM;
        status = add_merge_line(reading, lines.number, line, longest);
        tr_free(line);
    }
    return status;
}

static tr_status open_pair(const char *vocabulary_path, const char *merges_path, tr_bpe **out)
{
    struct reading reading = {.where = vocabulary_path, .bpe = bpe_create()};
    struct tr_load vocabulary = {0}, merges = {0};
    tr_json *json = NULL;
    tr_status status = reading.bpe ? TR_OK : TR_ENOMEM;
    TR_TRY_GOTO(status, out);
    TR_TRY_GOTO(tr_load_file(vocabulary_path, &vocabulary), out);
    TR_TRY_GOTO(tr_load_lines(merges_path, &merges), out);
    TR_TRY_GOTO(tr_json_parse((const char *)vocabulary.data, vocabulary.size, vocabulary_path, &json), out);
    TR_TRY_GOTO(read_vocabulary(&reading, tr_json_root(json)), out);
    TR_TRY_GOTO(bpe_settle_tokens(reading.bpe, vocabulary_path), out);
    reading.where = merges_path;
    TR_TRY_GOTO(read_merge_lines(&reading, merges_path, &merges, longest_key(tr_json_root(json))), out);
    TR_TRY_GOTO(add_unmade(&reading), out);
out:
    tr_json_destroy(&json);
    tr_free(merges.data);
    tr_free(vocabulary.data);
    end_reading(&reading, status, out);
    return status;
}

/* ---- paths ---- */

static bool ends_with(const char *path, const char *name)
{
    const size_t length = strlen(path), size = strlen(name);
    return length >= size && strcmp(path + length - size, name) == 0;
}

static tr_status open_json(const char *path, tr_bpe **out)
{
    struct tr_load file;
    TR_TRY(tr_load_file(path, &file));
    tr_status status = tr_bpe_parse((const char *)file.data, file.size, path, out);
    tr_free(file.data);
    return status;
}

tr_status tr_bpe_open(const char *path, tr_bpe **out)
{
    const bool directory = tr_file_is_directory(path), pair = ends_with(path, "vocab.json");
    char *json = tr_format("%s/tokenizer.json", path), *vocabulary = tr_format("%s/vocab.json", path);
    char *merges = pair ? tr_format("%.*smerges.txt", (int)(strlen(path) - strlen("vocab.json")), path)
                        : tr_format("%s/merges.txt", path);
    tr_status status = TR_ENOMEM;
    if (!json || !vocabulary || !merges) goto out;
    if (pair)
        status = open_pair(path, merges, out);
    else if (!directory)
        status = open_json(path, out);
    else if (tr_file_exists(json) || !tr_file_exists(vocabulary))
        status = open_json(json, out);
    else
        status = open_pair(vocabulary, merges, out);
out:
    tr_free(json);
    tr_free(vocabulary);
    tr_free(merges);
    return status;
}
