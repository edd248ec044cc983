/* Tokens and merges, and their tables. */
#include "data/bpe/internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/hash.h"
#include "data/bpe/unicode.h"

#include <inttypes.h>
#include <string.h>

tr_bpe *bpe_create(void)
{
    tr_bpe *bpe = tr_alloc_zero(1, sizeof *bpe);
    for (int i = 0; bpe && i < 256; i++) bpe->byte[i] = -1;
    return bpe;
}

void tr_bpe_destroy(tr_bpe **handle)
{
    tr_bpe *bpe = *handle;
    if (!bpe) return;
    tr_free(bpe->added);
    tr_free(bpe->pair);
    tr_free(bpe->merge);
    tr_free(bpe->slot);
    tr_free(bpe->token);
    tr_free(bpe->bytes);
    tr_free(bpe);
    *handle = NULL;
}

/* ---- the alphabet of tokenizer.json ---- */

/* Bytes that are visible characters of Latin-1 stand for themselves, the others for those from U+0100 on. */
static bool is_plain(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

uint32_t bpe_letter_of(uint8_t byte)
{
    uint32_t next = 0x100;
    if (is_plain(byte)) return byte;
    for (int b = 0; b < byte; b++) next += !is_plain(b);
    return next;
}

/* The byte that a character stands for, -1 for none. */
static int byte_of(uint32_t letter)
{
    if (letter < 0x100) return is_plain((int)letter) ? (int)letter : -1;
    for (int b = 0, left = (int)(letter < 0x200 ? letter - 0x100 : 0x100); b < 256; b++)
        if (!is_plain(b) && left-- == 0) return b;
    return -1;
}

int64_t bpe_bytes_of(const char *text, char *bytes)
{
    int64_t count = 0;
    uint32_t letter;
    for (size_t size; *text; text += size) {
        size = tr_text_utf8(text, &letter);
        const int byte = size > 0 ? byte_of(letter) : -1;
        if (byte < 0) return -1;
        bytes[count++] = (char)byte;
    }
    return count;
}

void bpe_add_letters(struct tr_text *text, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) tr_character_add(text, bpe_letter_of((uint8_t)bytes[i]));
}

/* ---- tokens ---- */

tr_status bpe_reserve(tr_bpe *bpe, int32_t size)
{
    if (size <= bpe->size) return TR_OK;
    struct bpe_token *grown = tr_realloc(bpe->token, (size_t)size, sizeof *grown);
    if (!grown) return TR_ENOMEM;
    bpe->token = grown;
    memset(grown + bpe->size, 0, (size_t)(size - bpe->size) * sizeof *grown);
    bpe->size = size;
    return TR_OK;
}

tr_status bpe_set_token(tr_bpe *bpe, int32_t id, const char *bytes, size_t length)
{
    if (bpe->used + length > UINT32_MAX) return tr_fail(TR_EFORMAT, "tokens have more than 4 GiB of text");
    if (bpe->room - bpe->used < length) {
        const size_t room = 2 * bpe->room + length + 4096;
        char *grown = tr_realloc(bpe->bytes, room, 1);
        if (!grown) return TR_ENOMEM;
        bpe->bytes = grown;
        bpe->room = room;
    }
    struct bpe_token *token = &bpe->token[id];
    *token = (struct bpe_token){
        .start = (uint32_t)bpe->used, .length = (uint32_t)length, .there = true, .in_vocabulary = true};
    memcpy(bpe->bytes + bpe->used, bytes, length);
    bpe->used += length;
    return TR_OK;
}

tr_status bpe_set_added(tr_bpe *bpe, int32_t id, const char *bytes, size_t length, bool special,
                        bool normalized)
{
    const struct bpe_token before = bpe->token[id];
    const bool same =
        before.there && before.length == length && memcmp(bpe->bytes + before.start, bytes, length) == 0;
    TR_TRY(bpe_set_token(bpe, id, bytes, length));
    bpe->token[id].in_vocabulary = before.in_vocabulary;
    bpe->token[id].opaque = before.opaque || !same;
    bpe->token[id].added = true;
    bpe->token[id].special = special;
    bpe->token[id].normalized = normalized;
    if (!tr_grow(&bpe->added, bpe->added_count, sizeof *bpe->added)) return TR_ENOMEM;
    bpe->added[bpe->added_count++] = id;
    bpe->added_first[(uint8_t)*bytes] = true;
    return TR_OK;
}

/* The slot of the token with these bytes, or the free slot for it. */
static uint32_t slot_of(const tr_bpe *bpe, const char *bytes, size_t length)
{
    const uint32_t mask = bpe->slots - 1;
    for (uint32_t at = tr_hash_name(bytes, length) & mask;; at = (at + 1) & mask) {
        if (bpe->slot[at] < 0) return at;
        const struct bpe_token *token = &bpe->token[bpe->slot[at]];
        if (token->length == length && memcmp(bpe->bytes + token->start, bytes, length) == 0) return at;
    }
}

int32_t tr_bpe_find(const tr_bpe *bpe, const char *bytes, size_t length)
{
    return bpe->slot[slot_of(bpe, bytes, length)];
}

/* Makes a table of free slots; their number is a power of two and at least twice `count`. */
static tr_status make_table(int32_t count, int32_t **table, uint32_t *slots)
{
    *slots = 1024;
    while (*slots < 4 * (uint32_t)count) *slots *= 2;
    int32_t *made = tr_alloc(*slots, sizeof *made);
    if (!made) return TR_ENOMEM;
    memset(made, 0xff, *slots * sizeof *made);
    tr_free(*table);
    *table = made;
    return TR_OK;
}

tr_status bpe_settle_tokens(tr_bpe *bpe, const char *where)
{
    TR_TRY(make_table(bpe->size, &bpe->slot, &bpe->slots));
    for (int32_t id = 0; id < bpe->size; id++) {
        const struct bpe_token *token = &bpe->token[id];
        if (!token->in_vocabulary || token->opaque) continue;
        const uint32_t slot = slot_of(bpe, bpe->bytes + token->start, token->length);
        if (bpe->slot[slot] >= 0)
            return tr_fail(TR_EFORMAT, "%s: tokens %" PRId32 " and %" PRId32 " are the same", where,
                           bpe->slot[slot], id);
        bpe->slot[slot] = id;
        if (token->length == 1) bpe->byte[(uint8_t)bpe->bytes[token->start]] = id;
    }
    for (int i = 0; i < 256; i++)
        if (bpe->byte[i] < 0)
            return tr_fail(
                TR_EFORMAT,
                "%s: no token is the byte 0x%02x; a byte-level vocabulary has all 256, which any text is "
                "made of",
                where, i);
    return TR_OK;
}

tr_status bpe_settle_token(tr_bpe *bpe, int32_t id)
{
    if (2 * (uint32_t)bpe->size >= bpe->slots) return bpe_settle_tokens(bpe, "vocabulary");
    const struct bpe_token *token = &bpe->token[id];
    bpe->slot[slot_of(bpe, bpe->bytes + token->start, token->length)] = id;
    return TR_OK;
}

/* ---- merges ---- */

static uint32_t pair_slot_of(const tr_bpe *bpe, int32_t left, int32_t right)
{
    const uint32_t mask = bpe->pairs - 1;
    const uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    for (uint32_t at = (uint32_t)(h >> 32) & mask;; at = (at + 1) & mask) {
        if (bpe->pair[at] < 0) return at;
        const struct bpe_merge *merge = &bpe->merge[bpe->pair[at]];
        if (merge->left == left && merge->right == right) return at;
    }
}

int32_t bpe_rank(const tr_bpe *bpe, int32_t left, int32_t right)
{
    if (bpe->merges == 0) return INT32_MAX;
    const int32_t rank = bpe->pair[pair_slot_of(bpe, left, right)];
    return rank < 0 ? INT32_MAX : rank;
}

/* The token that the two become when they are merged, -1 if they do not merge. */
static tr_status find_made(const tr_bpe *bpe, int32_t left, int32_t right, int32_t *made)
{
    const struct bpe_token *a = &bpe->token[left], *b = &bpe->token[right];
    char small[256], *both = small;
    const size_t length = (size_t)a->length + b->length;
    if (length > sizeof small && !(both = tr_alloc(length, 1))) return TR_ENOMEM;
    memcpy(both, bpe->bytes + a->start, a->length);
    memcpy(both + a->length, bpe->bytes + b->start, b->length);
    *made = tr_bpe_find(bpe, both, length);
    if (both != small) tr_free(both);
    return TR_OK;
}

tr_status bpe_add_merge(tr_bpe *bpe, int32_t left, int32_t right, int32_t *made)
{
    TR_TRY(find_made(bpe, left, right, made));
    if (*made < 0) return TR_OK;
    if (!tr_grow(&bpe->merge, bpe->merges, sizeof *bpe->merge)) return TR_ENOMEM;
    if (2 * (uint32_t)bpe->merges >= bpe->pairs) {
        TR_TRY(make_table(2 * bpe->merges, &bpe->pair, &bpe->pairs));
        for (int32_t i = 0; i < bpe->merges; i++)
            bpe->pair[pair_slot_of(bpe, bpe->merge[i].left, bpe->merge[i].right)] = i;
    }
    bpe->merge[bpe->merges] = (struct bpe_merge){left, right, *made};
    bpe->pair[pair_slot_of(bpe, left, right)] = bpe->merges++; /* of equal pairs the last one counts */
    return TR_OK;
}

/* ---- questions ---- */

int32_t tr_bpe_size(const tr_bpe *bpe)
{
    return bpe->size;
}

enum tr_bpe_pattern tr_bpe_pattern_of(const tr_bpe *bpe)
{
    return bpe->pattern;
}

bool tr_bpe_composes(const tr_bpe *bpe)
{
    return bpe->compose;
}

bool tr_bpe_ignores_merges(const tr_bpe *bpe)
{
    return bpe->ignore_merges;
}

const char *tr_bpe_token(const tr_bpe *bpe, int32_t token, size_t *length)
{
    *length = bpe->token[token].length;
    return bpe->bytes + bpe->token[token].start;
}

bool tr_bpe_is_added(const tr_bpe *bpe, int32_t token)
{
    return bpe->token[token].added;
}

bool tr_bpe_is_special(const tr_bpe *bpe, int32_t token)
{
    return bpe->token[token].special;
}

int32_t tr_bpe_find_added(const tr_bpe *bpe, const char *text)
{
    const size_t length = strlen(text);
    for (int32_t i = 0; i < bpe->added_count; i++) {
        const struct bpe_token *token = &bpe->token[bpe->added[i]];
        if (token->length == length && memcmp(bpe->bytes + token->start, text, length) == 0)
            return bpe->added[i];
    }
    return -1;
}

int32_t tr_bpe_merges(const tr_bpe *bpe)
{
    return bpe->merges;
}

void tr_bpe_merge(const tr_bpe *bpe, int32_t rank, int32_t *left, int32_t *right, int32_t *made)
{
    *left = bpe->merge[rank].left;
    *right = bpe->merge[rank].right;
    *made = bpe->merge[rank].made;
}
