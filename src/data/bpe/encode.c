/* Texts as tokens.
 *
 * Nearly all pieces are short: each merge searches the whole piece for the least rank. For long pieces a
 * heap holds the pairs that could merge, so that they take n log n time. Both make the same merges.
 */
#include "data/bpe/internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/bpe/unicode.h"

#include <string.h>

/* Bytes of the longest piece that counts as short. */
#define SHORT 64

struct encoding {
    const tr_bpe *bpe;
    int32_t *token;
    int64_t count, room;
};

static tr_status put(struct encoding *out, const int32_t *tokens, int64_t count)
{
    if (out->room - out->count < count) {
        const int64_t room = 2 * out->room + count + 64;
        int32_t *grown = tr_realloc(out->token, (size_t)room, sizeof *grown);
        if (!grown) return TR_ENOMEM;
        out->token = grown;
        out->room = room;
    }
    if (count > 0) memcpy(out->token + out->count, tokens, (size_t)count * sizeof *tokens);
    out->count += count;
    return TR_OK;
}

/* ---- short pieces ---- */

static tr_status encode_short(struct encoding *out, const char *piece, size_t length)
{
    const tr_bpe *bpe = out->bpe;
    int32_t token[SHORT], rank[SHORT]; /* rank: of the pair that begins here */
    int64_t count = (int64_t)length;
    for (int64_t i = 0; i < count; i++) token[i] = bpe->byte[(uint8_t)piece[i]];
    for (int64_t i = 0; i + 1 < count; i++) rank[i] = bpe_rank(bpe, token[i], token[i + 1]);
    while (count > 1) {
        int64_t at = 0;
        for (int64_t i = 1; i + 1 < count; i++)
            if (rank[i] < rank[at]) at = i;
        if (rank[at] == INT32_MAX) break;
        token[at] = bpe->merge[rank[at]].made;
        count--;
        memmove(token + at + 1, token + at + 2, (size_t)(count - at - 1) * sizeof *token);
        memmove(rank + at, rank + at + 1, (size_t)(count - at) * sizeof *rank);
        if (at + 1 < count) rank[at] = bpe_rank(bpe, token[at], token[at + 1]);
        if (at > 0) rank[at - 1] = bpe_rank(bpe, token[at - 1], token[at]);
    }
    return put(out, token, count);
}

/* ---- long pieces ---- */

/* A token at the place of its first byte. */
struct symbol {
    int32_t token; /* -1: merged into an earlier one */
    int64_t before, behind;
};

/* A pair that could merge: only if the tokens at both places are the ones noted here. */
struct candidate {
    int32_t rank;
    int64_t at;
};

struct heap {
    struct candidate *item;
    int64_t count;
};

static bool is_less(const struct candidate *a, const struct candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static tr_status heap_push(struct heap *heap, struct candidate item)
{
    if (!tr_grow(&heap->item, heap->count, sizeof *heap->item)) return TR_ENOMEM;
    int64_t i = heap->count++;
    for (; i > 0 && is_less(&item, &heap->item[(i - 1) / 2]); i = (i - 1) / 2)
        heap->item[i] = heap->item[(i - 1) / 2];
    heap->item[i] = item;
    return TR_OK;
}

static struct candidate heap_pop(struct heap *heap)
{
    const struct candidate top = heap->item[0], last = heap->item[--heap->count];
    int64_t i = 0;
    for (int64_t child; child = 2 * i + 1, child < heap->count; i = child) {
        if (child + 1 < heap->count && is_less(&heap->item[child + 1], &heap->item[child])) child++;
        if (!is_less(&heap->item[child], &last)) break;
        heap->item[i] = heap->item[child];
    }
    if (heap->count > 0) heap->item[i] = last;
    return top;
}

static tr_status push_pair(const tr_bpe *bpe, const struct symbol *symbol, int64_t at, struct heap *heap)
{
    if (at < 0 || symbol[at].behind < 0) return TR_OK;
    const int32_t rank = bpe_rank(bpe, symbol[at].token, symbol[symbol[at].behind].token);
    return rank == INT32_MAX ? TR_OK : heap_push(heap, (struct candidate){rank, at});
}

static tr_status merge_all(const tr_bpe *bpe, struct symbol *symbol, struct heap *heap)
{
    while (heap->count > 0) {
        const struct candidate next = heap_pop(heap);
        const struct bpe_merge *merge = &bpe->merge[next.rank];
        struct symbol *left = &symbol[next.at];
        if (left->token != merge->left || left->behind < 0 || symbol[left->behind].token != merge->right)
            continue;
        struct symbol *right = &symbol[left->behind];
        left->token = merge->made;
        right->token = -1;
        left->behind = right->behind;
        if (left->behind >= 0) symbol[left->behind].before = next.at;
        TR_TRY(push_pair(bpe, symbol, left->before, heap));
        TR_TRY(push_pair(bpe, symbol, next.at, heap));
    }
    return TR_OK;
}

static tr_status encode_long(struct encoding *out, const char *piece, size_t length)
{
    const tr_bpe *bpe = out->bpe;
    const int64_t count = (int64_t)length;
    struct heap heap = {0};
    tr_status status = TR_OK;
    struct symbol *symbol = tr_alloc(length, sizeof *symbol);
    if (!symbol) return TR_ENOMEM;
    for (int64_t i = 0; i < count; i++)
        symbol[i] = (struct symbol){bpe->byte[(uint8_t)piece[i]], i - 1, i + 1 < count ? i + 1 : -1};
    for (int64_t i = 0; i < count && status == TR_OK; i++) status = push_pair(bpe, symbol, i, &heap);
    if (status == TR_OK) status = merge_all(bpe, symbol, &heap);
    for (int64_t i = 0; i >= 0 && status == TR_OK; i = symbol[i].behind)
        status = put(out, &symbol[i].token, 1);
    tr_free(heap.item);
    tr_free(symbol);
    return status;
}

/* ---- texts ---- */

static tr_status encode_piece(struct encoding *out, const char *piece, size_t length)
{
    const tr_bpe *bpe = out->bpe;
    if (length == 1) return put(out, &bpe->byte[(uint8_t)*piece], 1);
    if (bpe->ignore_merges) {
        const int32_t whole = tr_bpe_find(bpe, piece, length);
        if (whole >= 0) return put(out, &whole, 1);
    }
    return length <= SHORT ? encode_short(out, piece, length) : encode_long(out, piece, length);
}

/* The longest added token at `at`, -1 for none. */
static int32_t added_at(const tr_bpe *bpe, bool normalized, const char *at, const char *end)
{
    int32_t found = -1;
    if (!bpe->added_first[(uint8_t)*at]) return -1;
    for (int32_t i = 0; i < bpe->added_count; i++) {
        const struct bpe_token *token = &bpe->token[bpe->added[i]];
        if (token->normalized != normalized || token->length > (size_t)(end - at)) continue;
        if (found >= 0 && token->length <= bpe->token[found].length) continue;
        if (memcmp(bpe->bytes + token->start, at, token->length) == 0) found = bpe->added[i];
    }
    return found;
}

tr_status bpe_each_part(const tr_bpe *bpe, bool normalized, const char *text, size_t length, bpe_part part,
                        void *user)
{
    const char *end = text + length, *begin = text;
    for (const char *at = text; bpe->added_count > 0 && at < end;) {
        const int32_t token = added_at(bpe, normalized, at, end);
        if (token < 0) {
            at++;
            continue;
        }
        if (at > begin) TR_TRY(part(user, begin, (size_t)(at - begin), -1));
        TR_TRY(part(user, at, bpe->token[token].length, token));
        at += bpe->token[token].length;
        begin = at;
    }
    return begin < end ? part(user, begin, (size_t)(end - begin), -1) : TR_OK;
}

static tr_status encode_plain(void *user, const char *text, size_t length, int32_t token)
{
    struct encoding *out = user;
    const char *end = text + length, *behind;
    if (token >= 0) return put(out, &token, 1);
    for (const char *at = text; at < end; at = behind) {
        behind = tr_bpe_split(out->bpe->pattern, at, end);
        TR_TRY(encode_piece(out, at, (size_t)(behind - at)));
    }
    return TR_OK;
}

/* Splits at the added tokens found in the composed form, between those found in the text as it is. */
static tr_status encode_part(void *user, const char *text, size_t length, int32_t token)
{
    struct encoding *out = user;
    struct tr_text composed = TR_TEXT_INIT;
    tr_status status;
    if (token >= 0) return put(out, &token, 1);
    if (!out->bpe->compose) return bpe_each_part(out->bpe, true, text, length, encode_plain, out);
    tr_unicode_compose(text, length, &composed);
    status = composed.failed
                 ? TR_ENOMEM
                 : bpe_each_part(out->bpe, true, composed.bytes, composed.length, encode_plain, out);
    tr_text_release(&composed);
    return status;
}

tr_status tr_bpe_encode(const tr_bpe *bpe, const char *text, size_t length, int32_t **tokens, int64_t *count)
{
    struct encoding out = {.bpe = bpe};
    tr_status status = bpe_each_part(bpe, false, text, length, encode_part, &out);
    if (status == TR_OK) status = put(&out, NULL, 0);
    if (status != TR_OK) {
        tr_free(out.token);
        return status;
    }
    *tokens = out.token;
    *count = out.count;
    return TR_OK;
}
