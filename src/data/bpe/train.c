/* Training: the pieces of a text and how often each occurs; then pairs of neighbours, counted once and
 * kept up to date as they merge. Pairs wait in a heap by count. The heap is not updated when a count
 * shrinks: a pair that is taken with an old count goes back with the present one.
 */
#include "data/bpe/internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/hash.h"

#include <stdlib.h>
#include <string.h>

/* A piece: symbols [start, start + length) of the array of all pieces. After merges only the first
   `length` are used. */
struct piece {
    int64_t start, count;
    uint32_t length, hash;
};

struct occurrence {
    int32_t piece, next; /* -1: the last */
};

/* A pair of neighbours. `places` lists the pieces that contain it or once did. */
struct pair {
    int32_t left, right;
    int64_t count;
    int32_t places, stamp;
};

/* A pair as it waits in the heap. */
struct waiting {
    int64_t count;
    int32_t pair;
};

struct tr_bpe_trainer {
    const struct tr_bpe_training *settings;
    tr_bpe *bpe; /* begins with the special tokens and bytes */
    uint8_t *bytes;
    int64_t used, room;
    struct piece *piece;
    int32_t pieces;
    int32_t *slot; /* hash table of pieces */
    uint32_t slots;
    int32_t *symbol;
    struct pair *pair;
    int32_t pairs;
    int32_t *pair_slot;
    uint32_t pair_slots;
    struct occurrence *place;
    int32_t places;
    struct waiting *heap;
    int64_t waiting;
    int32_t *changed; /* pairs that a merge made more frequent */
    int32_t changes;
};

/* ---- pieces ---- */

static tr_status set_first_tokens(tr_bpe *bpe, const struct tr_bpe_training *settings)
{
    int32_t count = 0;
    for (; settings->special[count]; count++) {
        if (!*settings->special[count]) return tr_fail(TR_EINVAL, "a special token is empty; leave it out");
        for (int32_t i = 0; i < count; i++)
            if (strcmp(settings->special[i], settings->special[count]) == 0)
                return tr_fail(TR_EINVAL, "special token \"%s\" is there twice", settings->special[i]);
    }
    if (settings->size < count + 256)
        return tr_fail(TR_EINVAL, "a vocabulary of %d tokens has no room for 256 bytes and %d special tokens",
                       (int)settings->size, (int)count);
    if (settings->size > TR_BPE_TOKENS_MAX)
        return tr_fail(TR_EINVAL, "a vocabulary of %d tokens; at most %d are possible", (int)settings->size,
                       TR_BPE_TOKENS_MAX);
    TR_TRY(bpe_reserve(bpe, count + 256));
    for (int32_t i = 0; i < count; i++) {
        const size_t length = strlen(settings->special[i]);
        TR_TRY(bpe_set_token(bpe, i, settings->special[i], length));
        TR_TRY(bpe_set_added(bpe, i, settings->special[i], length, true, false));
        bpe->token[i].opaque = true; /* a text whose own bytes may merge to the same */
    }
    for (uint32_t letter = 0; letter < 0x200; letter++)
        for (int byte = 0; byte < 256; byte++)
            if (bpe_letter_of((uint8_t)byte) == letter)
                TR_TRY(bpe_set_token(bpe, count++, &(char){(char)byte}, 1));
    return bpe_settle_tokens(bpe, "trained vocabulary");
}

tr_status tr_bpe_trainer_create(const struct tr_bpe_training *settings, tr_bpe_trainer **out)
{
    tr_bpe_trainer *trainer = tr_alloc_zero(1, sizeof *trainer);
    if (!trainer) return TR_ENOMEM;
    trainer->settings = settings;
    trainer->bpe = bpe_create();
    tr_status status = trainer->bpe ? set_first_tokens(trainer->bpe, settings) : TR_ENOMEM;
    if (status == TR_OK) trainer->bpe->pattern = settings->pattern;
    if (status != TR_OK)
        tr_bpe_trainer_destroy(&trainer);
    else
        *out = trainer;
    return status;
}

void tr_bpe_trainer_destroy(tr_bpe_trainer **handle)
{
    tr_bpe_trainer *trainer = *handle;
    if (!trainer) return;
    void *const blocks[] = {trainer->bytes,     trainer->piece, trainer->slot, trainer->symbol, trainer->pair,
                            trainer->pair_slot, trainer->place, trainer->heap, trainer->changed};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) tr_free(blocks[i]);
    tr_bpe_destroy(&trainer->bpe);
    tr_free(trainer);
    *handle = NULL;
}

/* Replaces *table by a table of `slots` free slots. */
static tr_status make_free(uint32_t slots, int32_t **table)
{
    int32_t *made = tr_alloc(slots, sizeof *made);
    if (!made) return TR_ENOMEM;
    memset(made, 0xff, slots * sizeof *made);
    tr_free(*table);
    *table = made;
    return TR_OK;
}

static tr_status append_piece(tr_bpe_trainer *trainer, const char *piece, size_t length, uint32_t hash)
{
    if (trainer->pieces == INT32_MAX || length > INT32_MAX)
        return tr_fail(TR_EFORMAT, "the text has too many different pieces, or one of over 2 GiB");
    if (!tr_grow(&trainer->piece, trainer->pieces, sizeof *trainer->piece)) return TR_ENOMEM;
    if (trainer->room - trainer->used < (int64_t)length) {
        const int64_t room = 2 * trainer->room + (int64_t)length + 4096;
        uint8_t *grown = tr_realloc(trainer->bytes, (size_t)room, 1);
        if (!grown) return TR_ENOMEM;
        trainer->bytes = grown;
        trainer->room = room;
    }
    trainer->piece[trainer->pieces++] = (struct piece){trainer->used, 1, (uint32_t)length, hash};
    memcpy(trainer->bytes + trainer->used, piece, length);
    trainer->used += (int64_t)length;
    return TR_OK;
}

static tr_status count_piece(tr_bpe_trainer *trainer, const char *piece, size_t length)
{
    const uint32_t hash = tr_hash_name(piece, length);
    if (2 * (uint32_t)trainer->pieces >= trainer->slots) {
        trainer->slots = trainer->slots ? 2 * trainer->slots : 4096;
        TR_TRY(make_free(trainer->slots, &trainer->slot));
        for (int32_t i = 0; i < trainer->pieces; i++) {
            uint32_t at = trainer->piece[i].hash & (trainer->slots - 1);
            while (trainer->slot[at] >= 0) at = (at + 1) & (trainer->slots - 1);
            trainer->slot[at] = i;
        }
    }
    uint32_t at = hash & (trainer->slots - 1);
    for (; trainer->slot[at] >= 0; at = (at + 1) & (trainer->slots - 1)) {
        struct piece *other = &trainer->piece[trainer->slot[at]];
        if (other->hash != hash || other->length != length ||
            memcmp(trainer->bytes + other->start, piece, length) != 0)
            continue;
        other->count++;
        return TR_OK;
    }
    trainer->slot[at] = trainer->pieces;
    return append_piece(trainer, piece, length, hash);
}

static tr_status count_part(void *user, const char *text, size_t length, int32_t token)
{
    tr_bpe_trainer *trainer = user;
    const char *end = text + length, *behind;
    for (const char *at = text; token < 0 && at < end; at = behind) {
        behind = tr_bpe_split(trainer->settings->pattern, at, end);
        TR_TRY(count_piece(trainer, at, (size_t)(behind - at)));
    }
    return TR_OK;
}

tr_status tr_bpe_trainer_count(tr_bpe_trainer *trainer, const char *text, size_t length)
{
    return bpe_each_part(trainer->bpe, false, text, length, count_part, trainer);
}

/* ---- pairs ---- */

static uint32_t find_pair(const tr_bpe_trainer *trainer, int32_t left, int32_t right)
{
    const uint32_t mask = trainer->pair_slots - 1;
    const uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    for (uint32_t at = (uint32_t)(h >> 32) & mask;; at = (at + 1) & mask) {
        const int32_t pair = trainer->pair_slot[at];
        if (pair < 0 || (trainer->pair[pair].left == left && trainer->pair[pair].right == right)) return at;
    }
}

static tr_status intern_pair(tr_bpe_trainer *trainer, int32_t left, int32_t right, int32_t *pair)
{
    if (2 * (uint32_t)trainer->pairs >= trainer->pair_slots) {
        trainer->pair_slots = trainer->pair_slots ? 2 * trainer->pair_slots : 4096;
        TR_TRY(make_free(trainer->pair_slots, &trainer->pair_slot));
        for (int32_t i = 0; i < trainer->pairs; i++)
            trainer->pair_slot[find_pair(trainer, trainer->pair[i].left, trainer->pair[i].right)] = i;
    }
    const uint32_t at = find_pair(trainer, left, right);
    if (trainer->pair_slot[at] < 0) {
        if (trainer->pairs == INT32_MAX / 2 ||
            !tr_grow(&trainer->pair, trainer->pairs, sizeof *trainer->pair))
            return TR_ENOMEM;
        trainer->pair[trainer->pairs] = (struct pair){left, right, 0, -1, -1};
        trainer->pair_slot[at] = trainer->pairs++;
    }
    *pair = trainer->pair_slot[at];
    return TR_OK;
}

/* Changes the count of a pair in a piece. Where the count grows, the piece is added to its places. */
static tr_status change_pair(tr_bpe_trainer *trainer, int32_t left, int32_t right, int64_t change,
                             int32_t piece)
{
    int32_t number;
    TR_TRY(intern_pair(trainer, left, right, &number));
    struct pair *pair = &trainer->pair[number];
    pair->count += change;
    if (change < 0) return TR_OK;
    if (pair->places < 0 || trainer->place[pair->places].piece != piece) {
        if (trainer->places == INT32_MAX ||
            !tr_grow(&trainer->place, trainer->places, sizeof *trainer->place))
            return TR_ENOMEM;
        trainer->place[trainer->places] = (struct occurrence){piece, pair->places};
        pair->places = trainer->places++;
    }
    if (pair->stamp == trainer->bpe->merges) return TR_OK;
    pair->stamp = trainer->bpe->merges;
    if (!tr_grow(&trainer->changed, trainer->changes, sizeof *trainer->changed)) return TR_ENOMEM;
    trainer->changed[trainer->changes++] = number;
    return TR_OK;
}

/* ---- the heap ---- */

/* Whether `a` merges before `b`. */
static bool comes_first(const tr_bpe_trainer *trainer, const struct waiting *a, const struct waiting *b)
{
    const struct pair *p = &trainer->pair[a->pair], *q = &trainer->pair[b->pair];
    if (a->count != b->count) return a->count > b->count;
    return p->left != q->left ? p->left < q->left : p->right < q->right;
}

static tr_status push(tr_bpe_trainer *trainer, int32_t pair)
{
    const struct waiting item = {trainer->pair[pair].count, pair};
    if (item.count < trainer->settings->least) return TR_OK;
    if (!tr_grow(&trainer->heap, trainer->waiting, sizeof *trainer->heap)) return TR_ENOMEM;
    int64_t i = trainer->waiting++;
    for (; i > 0 && comes_first(trainer, &item, &trainer->heap[(i - 1) / 2]); i = (i - 1) / 2)
        trainer->heap[i] = trainer->heap[(i - 1) / 2];
    trainer->heap[i] = item;
    return TR_OK;
}

static struct waiting pop(tr_bpe_trainer *trainer)
{
    struct waiting *heap = trainer->heap;
    const struct waiting top = heap[0], last = heap[--trainer->waiting];
    int64_t i = 0;
    for (int64_t child; child = 2 * i + 1, child < trainer->waiting; i = child) {
        if (child + 1 < trainer->waiting && comes_first(trainer, &heap[child + 1], &heap[child])) child++;
        if (!comes_first(trainer, &heap[child], &last)) break;
        heap[i] = heap[child];
    }
    if (trainer->waiting > 0) heap[i] = last;
    return top;
}

/* ---- merging ---- */

/* Puts the pairs whose count a merge increased into the heap; at first, all pairs. */
static tr_status push_changed(tr_bpe_trainer *trainer)
{
    for (int32_t i = 0; i < trainer->changes; i++) TR_TRY(push(trainer, trainer->changed[i]));
    trainer->changes = 0;
    return TR_OK;
}

static tr_status begin_pairs(tr_bpe_trainer *trainer)
{
    trainer->symbol = tr_alloc((size_t)trainer->used + 1, sizeof *trainer->symbol);
    if (!trainer->symbol) return TR_ENOMEM;
    for (int64_t i = 0; i < trainer->used; i++) trainer->symbol[i] = trainer->bpe->byte[trainer->bytes[i]];
    for (int32_t i = 0; i < trainer->pieces; i++) {
        const struct piece *piece = &trainer->piece[i];
        const int32_t *symbol = trainer->symbol + piece->start;
        for (uint32_t k = 0; k + 1 < piece->length; k++)
            TR_TRY(change_pair(trainer, symbol[k], symbol[k + 1], piece->count, i));
    }
    return push_changed(trainer);
}

/* Merges the pair in a piece from the left, and counts what that changes. */
static tr_status merge_piece(tr_bpe_trainer *trainer, int32_t number, int32_t left, int32_t right,
                             int32_t made)
{
    struct piece *piece = &trainer->piece[number];
    int32_t *symbol = trainer->symbol + piece->start;
    uint32_t count = 0;
    for (uint32_t i = 0; i < piece->length; i++) {
        if (i + 1 == piece->length || symbol[i] != left || symbol[i + 1] != right) {
            symbol[count++] = symbol[i];
            continue;
        }
        if (count > 0) {
            TR_TRY(change_pair(trainer, symbol[count - 1], left, -piece->count, number));
            TR_TRY(change_pair(trainer, symbol[count - 1], made, piece->count, number));
        }
        if (i + 2 < piece->length) {
            TR_TRY(change_pair(trainer, right, symbol[i + 2], -piece->count, number));
            TR_TRY(change_pair(trainer, made, symbol[i + 2], piece->count, number));
        }
        symbol[count++] = made;
        i++;
    }
    piece->length = count;
    return TR_OK;
}

/* The token that a pair becomes: a new one, unless a token with its bytes exists. */
static tr_status make_token(tr_bpe *bpe, int32_t left, int32_t right, int32_t *made)
{
    const struct bpe_token a = bpe->token[left], b = bpe->token[right];
    const size_t length = (size_t)a.length + b.length;
    char *both = tr_alloc(length, 1);
    if (!both) return TR_ENOMEM;
    memcpy(both, bpe->bytes + a.start, a.length);
    memcpy(both + a.length, bpe->bytes + b.start, b.length);
    tr_status status = TR_OK;
    if (tr_bpe_find(bpe, both, length) < 0) {
        const int32_t id = bpe->size;
        status = bpe_reserve(bpe, id + 1);
        if (status == TR_OK) status = bpe_set_token(bpe, id, both, length);
        if (status == TR_OK) status = bpe_settle_token(bpe, id);
    }
    tr_free(both);
    return status == TR_OK ? bpe_add_merge(bpe, left, right, made) : status;
}

static int by_piece(const void *a_, const void *b_)
{
    const int32_t a = *(const int32_t *)a_, b = *(const int32_t *)b_;
    return (a > b) - (a < b);
}

/* Merges the pair in all pieces. A piece that is listed more than once is merged once. */
static tr_status merge_pair(tr_bpe_trainer *trainer, int32_t number)
{
    const struct pair pair = trainer->pair[number];
    int32_t made = -1, count = 0, *list = NULL;
    for (int32_t at = pair.places; at >= 0; at = trainer->place[at].next) count++;
    tr_status status = make_token(trainer->bpe, pair.left, pair.right, &made);
    if (status == TR_OK && !(list = tr_alloc((size_t)count, sizeof *list))) status = TR_ENOMEM;
    if (status != TR_OK) return status;
    count = 0;
    for (int32_t at = pair.places; at >= 0; at = trainer->place[at].next)
        list[count++] = trainer->place[at].piece;
    qsort(list, (size_t)count, sizeof *list, by_piece);
    for (int32_t i = 0; i < count && status == TR_OK; i++)
        if (i == 0 || list[i] != list[i - 1])
            status = merge_piece(trainer, list[i], pair.left, pair.right, made);
    tr_free(list);
    return status == TR_OK ? push_changed(trainer) : status;
}

tr_status tr_bpe_trainer_finish(tr_bpe_trainer *trainer, tr_bpe **out)
{
    TR_TRY(begin_pairs(trainer));
    while (trainer->bpe->size < trainer->settings->size && trainer->waiting > 0) {
        const struct waiting next = pop(trainer);
        if (next.count != trainer->pair[next.pair].count)
            TR_TRY(push(trainer, next.pair));
        else
            TR_TRY(merge_pair(trainer, next.pair));
    }
    *out = trainer->bpe;
    trainer->bpe = NULL;
    return TR_OK;
}
